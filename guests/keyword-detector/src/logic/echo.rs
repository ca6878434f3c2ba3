//! What our own hooks print, recognised when it comes back in a prompt.
//!
//! People paste whole screens. A banner of a loop in them must never start the loop again. Every header that a guest of this
//! project (or of oh-my-claudecode, whose sessions people carry over) puts at the start of a text is in [`HEADERS`]: a guest
//! with a new one adds it here.

use super::text::{starts_with_ignoring_case, trim};

/// First words of a line that a hook printed, whatever the case.
const HEADERS: &[&str] = &[
    // Stop: one family for each mode, and what stands before or instead of it.
    "[RALPH LOOP",
    "[RALPH - ",
    "[RALPH PAUSED",
    "[RALPH ENDED",
    "[AUTOPILOT",
    "[AUTORESEARCH",
    "[TEAM ",
    "[OMC TEAMS",
    "[OMC-TEAMS",
    "[DEEP-INTERVIEW",
    "[MERGE-READINESS",
    "[SELF-IMPROVE",
    "[RALPLAN",
    "[ULTRAGOAL",
    "[ULTRAPILOT",
    "[ULTRAQA",
    "[ULTRAWORK",
    "[PIPELINE",
    "[SWARM",
    "[SKILL ACTIVE",
    "[TOOL ERROR",
    "[PERSISTENT MODE",
    "[ARCHITECT VERIFICATION",
    "[CODE SIMPLIFIER",
    "[WORKFLOW DRIFT GUARD",
    "[NO PROGRESS",
    // Prompts.
    "[MAGIC KEYWORD",
    "[MODE: ",
    "[NOT STARTED: ",
    "[TASK-SIZE",
    "[PROMPT TRANSLATION",
    "[TDD MODE ACTIVATED",
    "[CODE REVIEW MODE ACTIVATED",
    "[SECURITY REVIEW MODE ACTIVATED",
    // Start of a session, tools, compaction.
    "[OMC]",
    "[OMC ",
    "[PROJECT MEMORY",
    "[PROJECT ENVIRONMENT]",
    "[DIRECTIVES]",
    "[HOT PATHS]",
    "[RECENT LEARNINGS]",
    "[PLAN WISDOM",
    "[LLM WIKI",
    "[WIKI: ",
    "[RULE: ",
    "[NOTEPAD",
    "[PENDING TASKS",
    "[PARALLEL SESSION WARNING",
    "[MODEL ROUTING",
    "[ROOT AGENTS.md LOADED",
    "[SLOP WARNING",
];

/// What an agent writes between an event and what a hook said: `Stop hook feedback: …`, `PreToolUse:Bash hook additional context: …`.
const LABELS: &[&str] =
    &[" hook additional context:", " hook blocking error", " hook feedback", " hook stopped continuation"];

/// Events that stand before a label, alone or with a colon and what they match.
const EVENTS: &[&str] = &[
    "Stop",
    "SubagentStop",
    "SubagentStart",
    "PreToolUse",
    "PostToolUse",
    "PostToolUseFailure",
    "PermissionRequest",
    "UserPromptSubmit",
    "SessionStart",
    "PreCompact",
    "Notification",
    "TeammateIdle",
    "TaskCompleted",
];

/// First words of the lines that follow a header and belong to it, whatever the case.
const CONTINUATIONS: &[&str] = &["Task: ", "run /oh-my-claudecode:cancel", "run /omc:cancel", CLOSINGS[0], CLOSINGS[1]];

/// Beginnings of the last line of a reason: what stands between a header and it in one paragraph is ours too.
pub(super) const CLOSINGS: [&str; 2] = [
    // persistent-mode.
    "When it is done and checked, end the mode with ",
    // The original.
    "When FULLY complete (after Architect verification)",
];

/// Phrases that only a hook's text has, in lower case, wherever they stand.
const SIGNATURES: &[&str] =
    &["when fully complete (after architect verification)", "run /oh-my-claudecode:cancel", "[ralph loop - iteration"];

/// What a state keeps instead of a prompt that is nothing but our own words.
const OMITTED: &str = "(prompt omitted: pasted system echo)";

/// The line begins an echo block.
pub(super) fn is_header(line: &str) -> bool {
    let line = line.trim_start();
    if HEADERS.iter().any(|header| starts_with_ignoring_case(line, header)) {
        return true;
    }
    let (source, rest) = line.split_at(line.find(' ').unwrap_or(line.len()));
    let event = source.split(':').next().unwrap_or_default();
    LABELS.iter().any(|label| starts_with_ignoring_case(rest, label))
        && EVENTS.iter().any(|known| event.eq_ignore_ascii_case(known))
}

/// The line belongs to the echo block before it.
pub(super) fn is_continuation(line: &str) -> bool {
    let line = line.trim_start();
    CONTINUATIONS.iter().any(|start| starts_with_ignoring_case(line, start))
}

/// The line is the last of a reason.
pub(super) fn is_closing(line: &str) -> bool {
    let line = line.trim_start();
    CLOSINGS.iter().any(|start| starts_with_ignoring_case(line, start))
}

/// What a mode's state keeps of a prompt: `request`, the prompt without echo blocks, unless it still reads like one.
pub(super) fn kept_prompt(request: &str) -> &str {
    let request = trim(request);
    let lower = request.to_ascii_lowercase();
    let echo = request.is_empty() || SIGNATURES.iter().any(|phrase| lower.contains(phrase)) || is_header(request);
    if echo { OMITTED } else { request }
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use omc_state::Mode;

    use super::{OMITTED, is_continuation, is_header, kept_prompt};

    /// The sources of a folder, without their tests.
    fn sources(folder: &Path, found: &mut Vec<String>) {
        for entry in fs::read_dir(folder).expect("a folder").flatten() {
            let path = entry.path();
            let is_test = path.file_stem().is_some_and(|stem| stem == "tests" || stem == "testing");
            if path.is_dir() {
                sources(&path, found);
            } else if path.extension().is_some_and(|ending| ending == "rs") && !is_test {
                let text = fs::read_to_string(&path).expect("a source");
                found.push(text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default().to_owned());
            }
        }
    }

    #[test]
    fn every_header_that_a_guest_of_ours_prints_is_known() {
        let guests = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let mut texts = Vec::new();
        for guest in fs::read_dir(guests).expect("the guests").flatten() {
            sources(&guest.path().join("src"), &mut texts);
        }
        let mut seen = 0;
        for text in &texts {
            // At the beginning of a text or of a line in it.
            for piece in text.split("\"[").skip(1).chain(text.split("\\n[").skip(1)) {
                let header: String = piece.chars().take_while(|c| !matches!(c, ']' | '"' | '{' | '#' | '\n')).collect();
                let word: String = header.chars().take_while(char::is_ascii_alphabetic).collect();
                if word.len() >= 3 && word.bytes().all(|byte| byte.is_ascii_uppercase()) {
                    assert!(is_header(&format!("[{header}]")), "[{header}");
                    seen += 1;
                }
            }
        }
        assert!(seen > 40, "only {seen} headers were found");
        for mode in Mode::ALL {
            let name = mode.name().to_uppercase();
            // Ralph's own is `[RALPH LOOP RESTORED]`.
            let restored = if *mode == Mode::Ralph { "LOOP" } else { "MODE" };
            for header in
                [format!("[{name} ENDED] x"), format!("[{name} {restored} RESTORED]"), format!("[NOT STARTED: {name}]")]
            {
                assert!(is_header(&header), "{header}");
            }
        }
    }

    #[test]
    fn every_header_of_our_guests_is_known_in_any_case_and_indented() {
        for header in [
            "[RALPH LOOP - ITERATION 3/100]",
            "[RALPH LOOP - EXTENDED]",
            "[RALPH LOOP - HARD LIMIT]",
            "[RALPH LOOP RESTORED]",
            "[RALPH - ITERATION 2/10]",
            "[RALPH PAUSED - RATE LIMITED]",
            "[AUTOPILOT - Phase: qa]",
            "[AUTOPILOT MODE RESTORED]",
            "[TEAM - Phase: team-exec]",
            "[TEAM PIPELINE - PHASE: TEAM-EXEC | REINFORCEMENT 1/20]",
            "[TEAM MODE CONTINUATION]",
            "[OMC TEAMS - Phase: fixing]",
            "[RALPLAN - CONSENSUS PLANNING | REINFORCEMENT 2/30]",
            "[RALPLAN GATE]",
            "[RALPLAN INIT]",
            "[ULTRAWORK #4/50]",
            "[ULTRAQA - Cycle 2/5]",
            "[ULTRAGOAL #1/50]",
            "[SKILL ACTIVE: plan]",
            "[TOOL ERROR - RETRY REQUIRED]",
            "[MAGIC KEYWORD: RALPH]",
            "[MAGIC KEYWORDS DETECTED: RALPH, ULTRAWORK]",
            "[TDD MODE ACTIVATED]",
            "[OMC CRITICAL]",
            "[CODE SIMPLIFIER]",
            "[PROJECT MEMORY]",
            "[NOTEPAD - Priority Context]",
            "Stop hook feedback: go on",
            "Stop hook blocking error from command: x",
            "Stop hook stopped continuation: x",
            "SubagentStop hook feedback: go on",
            "SessionStart:startup hook additional context: x",
            "PreToolUse:Bash hook additional context: x",
            "PostToolUse:mcp__a__b hook additional context: x",
            "UserPromptSubmit hook additional context: x",
        ] {
            assert!(is_header(header), "{header}");
            assert!(is_header(&format!(" \t{}", header.to_lowercase())), "{header}");
        }
    }

    #[test]
    fn lines_of_people_are_no_headers() {
        for line in [
            "ralph fix it",
            "[x] ralph",
            "[WIP] autopilot: build it",
            "see [RALPH LOOP - ITERATION 3]",
            "the hook additional context: x",
            "Pretty hook feedback: x",
            "stop hooking feedback",
            "Stop the hook feedback",
            "",
        ] {
            assert!(!is_header(line), "{line}");
        }
    }

    #[test]
    fn continuations_are_known_by_their_first_words() {
        assert!(is_continuation("Task: port the lexer"));
        assert!(is_continuation("  run /omc:cancel when you are done"));
        assert!(!is_continuation("run ralph now"));
    }

    #[test]
    fn a_state_keeps_a_request_and_never_an_echo() {
        for (request, want) in [
            (" ralph fix it \n", "ralph fix it"),
            ("", OMITTED),
            ("  \n ", OMITTED),
            ("it said run /oh-my-claudecode:cancel\nrun ralph on x", OMITTED),
            ("so [RALPH LOOP - ITERATION 3/100] came again", OMITTED),
        ] {
            assert_eq!(kept_prompt(request), want, "{request:?}");
        }
    }
}
