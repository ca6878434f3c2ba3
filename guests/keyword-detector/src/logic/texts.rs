//! What the model is told.
//!
//! Order: blocks for this turn, then the modes, then what the gate or another session kept from starting, then the request. The
//! request comes last under the label `User request:` and without blank lines, so that a screen pasted back is recognised from
//! its header to its end (see [`lines`](super::lines)).

use std::fmt::Write as _;

use omc_state::{Invocation, truncate_units};

use super::{Start, keywords::Keyword, text::trim};

/// Longest request that is repeated, in UTF-16 units with the dots at the end of one that was cut: the original's limit.
const MAX_REQUEST_UNITS: usize = 1200;

/// The context after a cancel, which ended the session's modes or failed to.
pub fn cancelled(ended: bool, invocation: Invocation) -> String {
    if !ended {
        return NOT_CANCELLED.to_owned();
    }
    let (skill, use_it) = skill_and_use(Keyword::Cancel, invocation);
    format!(
        "[MAGIC KEYWORD: CANCEL]\n\
         The user cancelled. The modes of this session are ended, and the next stop will not be held up. {skill}, {use_it} to clear \
         up what is left. Then say in one sentence what was ended, and start nothing new: what else the prompt asks for waits until \
         the user asks again."
    )
}

const NOT_CANCELLED: &str = "[MAGIC KEYWORD: CANCEL]\n\
    The user cancelled, but the files of this session could not be written. Stop working on every mode of this session, start \
    nothing new, and tell the user that `omc-host cancel` in a terminal ends what is left and says what is wrong.";

/// The context when something starts.
pub fn started(start: &Start, invocation: Invocation) -> String {
    let mut text = String::new();
    for block in &start.blocks {
        text.push_str(block_text(*block));
        text.push_str("\n---\n");
    }
    match start.modes.as_slice() {
        [] => {}
        [mode] => push(&mut text, &format!("[MAGIC KEYWORD: {}]", mode.name().to_ascii_uppercase())),
        modes => push(&mut text, &format!("[MAGIC KEYWORDS DETECTED: {}]", upper_names(modes))),
    }
    if start.by_command && start.modes.contains(&Keyword::Ralplan) {
        push(&mut text, RALPLAN_INIT);
    }
    if !start.redirected.is_empty() {
        push(&mut text, &gate_text(&start.redirected));
    }
    if start.autopilot_elsewhere {
        push(&mut text, &autopilot_elsewhere(invocation));
    }
    if !start.unwritten.is_empty() {
        push(&mut text, &format!("[NOT STARTED: {}] {UNWRITTEN}", upper_names(&start.unwritten)));
    }
    if start.modes.len() > 1 {
        push(&mut text, "Take up these modes in this order, the first one now; the work is done when all of them are.");
    }
    for mode in &start.modes {
        push(&mut text, &mode_text(*mode, invocation));
    }
    if !start.modes.is_empty() {
        push(&mut text, "User request:");
        push(&mut text, &request_text(&start.request));
    }
    text.truncate(text.trim_end().len());
    text
}

fn upper_names(modes: &[Keyword]) -> String {
    modes.iter().map(|mode| mode.name().to_ascii_uppercase()).collect::<Vec<_>>().join(", ")
}

fn push(text: &mut String, line: &str) {
    text.push_str(line);
    text.push('\n');
}

/// The request in one paragraph: its own blank lines and control characters left out, and cut.
fn request_text(request: &str) -> String {
    let mut paragraph = String::new();
    for line in request.lines().filter(|line| !trim(line).is_empty()) {
        // Bytes are at least as many as units: what is longer than this is cut in any case.
        if paragraph.len() > 4 * MAX_REQUEST_UNITS {
            break;
        }
        paragraph.extend(line.trim_end().chars().filter(|c| *c == '\t' || !c.is_control()).take(MAX_REQUEST_UNITS + 1));
        paragraph.push('\n');
    }
    truncate_units(trim(&paragraph), MAX_REQUEST_UNITS)
}

fn gate_text(redirected: &[Keyword]) -> String {
    let names: Vec<&str> = redirected.iter().map(|mode| mode.name()).collect();
    let mut text = String::from("[RALPLAN GATE] ");
    // Writing to a string cannot fail.
    let _ = write!(
        text,
        "The request for {} is short and names nothing concrete, so ralplan starts instead: agree on a plan first. Tell the user \
         so, and that a file, a symbol, an issue number or an error in the request, or `force:` before it, starts {} at once.",
        names.join(", "),
        names[0],
    );
    text
}

/// The original's marker for a plan that was asked for by its command.
const RALPLAN_INIT: &str =
    "[RALPLAN INIT] The state is set. From now on a stop is held up until there is a plan to approve.";

fn autopilot_elsewhere(invocation: Invocation) -> String {
    format!(
        "[AUTOPILOT NOT STARTED] Another session of this project has an autopilot at work, and there can be one at a time. Tell the \
         user, who can end it there with `{}`; do what else the request asks for.",
        invocation.command(Keyword::Cancel.name())
    )
}

/// When the skill of this keyword is there, and how the model uses it.
fn skill_and_use(keyword: Keyword, invocation: Invocation) -> (String, &'static str) {
    let skill = invocation.skill(keyword.name());
    match invocation {
        Invocation::Slash => (format!("If the Skill tool offers `{skill}`"), "call it"),
        Invocation::Dollar => (format!("If you have the skill `{skill}`"), "read it"),
    }
}

const UNWRITTEN: &str = "The state could not be written below `.omc`, so nobody would hold you to the work or know that it is on. \
    Tell the user, who finds the cause with `omc-host doctor`; do the request in the usual way.";

/// What a mode or skill means, complete without its skill.
fn mode_text(mode: Keyword, invocation: Invocation) -> String {
    let (meaning, end) = match mode {
        Keyword::Ralph => (
            "Work on the request below until it is done. Write down what \"done\" means as checks that can be run, do the next piece, \
             run the checks, and go on; independent pieces go to subagents side by side. If you stop before the end, you will be \
             sent back to work.",
            "When every check has passed and a reviewer other than yourself (a subagent) has confirmed the result,",
        ),
        Keyword::Ultragoal => (
            "Reach the goal of the request below. Write it down as goals with checks in `.omc/ultragoal/goals.json`, take one at a \
             time, check it, note its status, and go on with the next. If you stop before the end, you will be sent back to work.",
            "When every goal is complete and the whole is checked,",
        ),
        Keyword::Autopilot => (
            "Take the request below from an idea to working code without waiting for the user: settle what is wanted, design it, \
             plan it, build it in parallel where pieces are independent, run and fix the tests, then have the result reviewed. \
             Ask only what you cannot decide.",
            "When the result works and the review has no open findings,",
        ),
        Keyword::Ultrawork => (
            "Do the request below with as much parallel work as it allows: keep a task list, hand independent tasks to subagents at \
             the same time, run long commands in the background, and check what comes back.",
            "When no task is open and the result is checked,",
        ),
        Keyword::Ultraqa => (
            "Bring the request below to the state in which its checks pass: run them (tests, build, lint, types), find the cause of \
             the first failure, fix it, and run them again. If the same failure comes back three times, say why and stop.",
            "When all checks pass,",
        ),
        Keyword::Ralplan => (
            "Plan the request below before any work on it: draft a plan, have it criticised from the views of an architect and of a \
             sceptical reviewer (subagents), revise until they agree, and show the user the plan with its acceptance criteria. \
             Write no code until the user agrees.",
            "When the user has agreed or refused,",
        ),
        Keyword::Ccg => (
            "Get three opinions on the request below: put the same question to Codex and to Gemini from the command line, where \
             they are installed, and answer it yourself; then compare, say where they agree and differ, and decide.",
            "",
        ),
        Keyword::DeepInterview => (
            "Find out what the user really wants before any work on the request below: ask one question at a time, the one that \
             would change the result most, until goal, limits and acceptance criteria are clear; then write them down and have them \
             confirmed.",
            "",
        ),
        Keyword::AiSlopCleaner => (
            "Clean up the code of the request below without changing what it does: pin its behaviour with tests first, then remove \
             dead code, duplication, needless layers and comments that only narrate, one kind at a time, with the tests run after \
             each.",
            "",
        ),
        Keyword::Wiki => (
            "Use the project's wiki in `.omc/wiki` as the request below says: add what was learned, look something up, or check \
             the pages for gaps and contradictions. Keep one page a subject, and link pages that belong together.",
            "",
        ),
        _ => return String::new(),
    };
    let (skill, use_it) = skill_and_use(mode, invocation);
    let mut text = format!(
        "{}: {meaning} {skill}, {use_it} first and follow it; otherwise follow these lines at once.",
        mode.name().to_ascii_uppercase()
    );
    if !end.is_empty() {
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            " {end} run `{}`; that is also how the user ends the mode at any time.",
            invocation.command(Keyword::Cancel.name())
        );
    }
    text
}

fn block_text(block: Keyword) -> &'static str {
    match block {
        Keyword::Ultrathink => {
            "<think-mode>\nThink at length before you answer. Look at the problem from several sides, name the assumptions, walk \
             through edge cases, weigh at least two ways to go, and check the chosen one step by step.\n</think-mode>"
        }
        Keyword::Deepsearch => {
            "<search-mode>\nSearch exhaustively. Send several search agents out in the background, each with another angle, and use \
             the search tools yourself meanwhile. Do not stop at the first hit: look for other names, callers, tests, settings and \
             documents, and report with paths what was found and where nothing was.\n</search-mode>"
        }
        Keyword::Analyze => {
            "<analyze-mode>\nAnalyse before you conclude. Gather the facts first (code, history, logs), compare what works with what \
             does not, form more than one explanation and test each against the facts. Then conclude, and say how sure you \
             are.\n</analyze-mode>"
        }
        Keyword::Tdd => {
            "<tdd-mode>\n[TDD MODE ACTIVATED]\nFor each piece of behaviour: write the test first, run it and see it fail for the right \
             reason, write the least code that makes it pass, run all tests again, then tidy up. No code without a failing test \
             before it.\n</tdd-mode>"
        }
        Keyword::CodeReview => {
            "<code-review-mode>\n[CODE REVIEW MODE ACTIVATED]\nReview fully: correctness, edge cases, regressions, error handling, \
             maintainability, tests. Give each finding its place, its severity and a way to fix it; say what you checked and found \
             in order.\n</code-review-mode>"
        }
        Keyword::SecurityReview => {
            "<security-review-mode>\n[SECURITY REVIEW MODE ACTIVATED]\nReview for security: trust boundaries, authentication and \
             authorisation, exposure of data, validation of input, access to files and commands, secrets, dependencies. For each \
             finding say how it is attacked, how bad it is, and how to close it.\n</security-review-mode>"
        }
        _ => "",
    }
}
