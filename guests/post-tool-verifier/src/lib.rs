//! Looks at what tools and agents gave: failures that are easily overlooked, notes that an agent wants to be kept, counts, and how
//! full the context is.
//!
//! On PostToolUse every use is counted; what is then said depends on the tool. `<remember>` is looked for only where an agent
//! speaks: in the result of a subagent, at once or from the background, and in the last words of a turn. Codex has no event for a tool that failed and sends
//! this one, so its failures are recorded here for the next Stop, as `tool-failure` does it for other agents. Nothing is written
//! outside `.omc`.

pub mod logic;
mod payload;

use std::time::SystemTime;

use omc_bare as _;
use omc_guest::{
    Decision, Effects, Error, Event, EventKind, Guest, ToolKind, environment, log, state_lock, transcript,
};
use omc_state::notepad::Section;
use omc_state::{SessionId, Store, Timestamp, ToolFailure, context, remember};

use logic::command::{Ending, ending};
use logic::ends;
use logic::notes::{self, Fill, Routine};

/// How long a kind of note is not repeated, in milliseconds: the original's 5 minutes.
const COOLDOWN_MS: i64 = 5 * 60 * 1000;

/// The same for the fill of the context, unless the user set another time: the original's minute.
const FILL_COOLDOWN_MS: i64 = 60 * 1000;

/// How much of the transcript's end is looked at for the fill of the context, in bytes: a few turns without tool output.
const TAIL_BYTES: u32 = 32 * 1024;

/// Most of an agent's words in which notes are looked for, in bytes; of longer ones, the beginning and the end. What agents really
/// answer is a tenth of it.
const MAX_WORDS_BYTES: usize = 1024 * 1024;

/// Reads and agents from which a session is told how many there were: the original's.
const MANY_READS: u64 = 10;
const MANY_AGENTS: u64 = 5;

/// Tools whose results fill the context.
const FILLING: [&str; 9] =
    ["Read", "Grep", "Glob", "Bash", "WebFetch", "Task", "TaskCreate", "TaskUpdate", "TaskOutput"];

/// The guest.
#[derive(Debug)]
pub struct PostToolVerifier;

omc_guest::export!(PostToolVerifier, {
    "description": "Tells failures from successes, keeps what agents want to be remembered, counts, and watches the context",
    "subscriptions": [
        {"event": "post-tool-use", "order": 100},
        {"event": "stop", "order": 50, "when": ["payload:<remember"]},
        {"event": "subagent-stop", "order": 50, "when": ["payload:<remember"]}
    ],
    "requests": [
        {"capability": "omc", "scope": ["rw:/omc"], "reason": "keeps notes in the notepad, counts in the session's state, reads the tracker of subagents"},
        {"capability": "transcript", "reason": "looks how full the context is"},
        {"capability": "env", "scope": [
            "OMC_QUIET", "OMC_AGENT_OUTPUT_ANALYSIS_LIMIT", "OMC_AGENT_OUTPUT_SUMMARY_LIMIT", "OMC_PREEMPTIVE_COMPACTION_WARNING_PERCENT",
            "OMC_PREEMPTIVE_COMPACTION_CRITICAL_PERCENT", "OMC_PREEMPTIVE_COMPACTION_COOLDOWN_MS"
        ], "reason": "the user's switches and limits"}
    ]
});

impl Guest for PostToolVerifier {
    fn handle(event: &Event<'_>, effects: &mut Effects<'_>) -> Result<Decision, Error> {
        let after = After {
            event,
            store: Store::new(&omc_guest::omc_dir()),
            session: event.session_id().as_deref().and_then(SessionId::parse),
            now: SystemTime::now().into(),
            quiet: number("OMC_QUIET").unwrap_or(0),
        };
        match event.kind() {
            EventKind::Stop | EventKind::SubagentStop => {
                after.remember(&event.text("/last_assistant_message").unwrap_or_default());
            }
            EventKind::PostToolUse => {
                let Some(tool) = event.tool_name().filter(|tool| !tool.is_empty()) else { return Ok(Decision::Pass) };
                let texts = after.tool(&tool);
                if !texts.is_empty() {
                    effects.add_context(&texts.join(" | "))?;
                }
            }
            _ => {}
        }
        Ok(Decision::Pass)
    }
}

/// A variable that is a whole number, not below 0.
fn number(name: &str) -> Option<u64> {
    environment::get(name)?.trim().parse().ok()
}

/// What has happened, and what is around it.
struct After<'a> {
    event: &'a Event<'a>,
    store: Store,
    session: Option<SessionId>,
    now: Timestamp,
    quiet: u64,
}

impl After<'_> {
    /// What is to be said about a tool's result.
    fn tool(&self, tool: &str) -> Vec<String> {
        let count = self.count(tool);
        let mut texts: Vec<String> = match tool {
            "Task" => self.agent(count),
            "TaskCreate" | "TaskUpdate" => self.task_list(),
            "TaskOutput" => self.background_output(),
            "Edit" | "apply_patch" => self.change(notes::EDIT_FAILED, notes::EDITED).into_iter().collect(),
            "Write" => self.change(notes::WRITE_FAILED, notes::WRITTEN).into_iter().collect(),
            "TodoWrite" => self.todo().into_iter().collect(),
            "Read" if count > MANY_READS => {
                self.throttled("many-reads", 1, || notes::many_reads(count)).into_iter().collect()
            }
            "Grep" => self.nothing_found(notes::GREP_NONE, |text| text == "0" || text.contains("no matches")),
            "Glob" => self.nothing_found(notes::GLOB_NONE, |text| text.is_empty() || text.contains("no files")),
            _ if self.event.tool_kind() == Some(ToolKind::Execute) => self.command().into_iter().collect(),
            _ => Vec::new(),
        };
        if FILLING.iter().any(|name| name.eq_ignore_ascii_case(tool)) {
            texts.extend(self.fill());
        }
        texts.extend(self.deliverables());
        texts
    }

    fn count(&self, tool: &str) -> u64 {
        let Some(session) = &self.session else { return 0 };
        self.store.count_tool(&state_lock::acquire, session, tool, self.now).unwrap_or_else(|error| {
            log::warn(&format!("the use of a tool was not counted: {}", error.chain()));
            0
        })
    }

    fn command(&self) -> Option<String> {
        let output = self.event.tool_result().unwrap_or_default();
        match ending(&output, self.event.tool_failed()) {
            Ending::Soft(code) => Some(notes::soft_exit(code)),
            Ending::Badly => {
                self.record_failure(&output);
                Some(notes::COMMAND_FAILED.to_owned())
            }
            Ending::Well if payload::is_in_background(self.event) => self.routine(notes::BACKGROUND),
            Ending::Well => None,
        }
    }

    fn agent(&self, count: u64) -> Vec<String> {
        let answer = self.event.tool_result().unwrap_or_default();
        self.remember(&answer);
        let length = answer.chars().count();
        let limit = number("OMC_AGENT_OUTPUT_ANALYSIS_LIMIT").and_then(|limit| usize::try_from(limit).ok());
        let is_launched = ["Async agent launched", "Background task launched", "Background task resumed"]
            .iter()
            .any(|begin| answer.trim_start().starts_with(begin));
        let first = if payload::is_failed_start(&answer, self.event.tool_failed()) {
            Some(notes::AGENT_FAILED.to_owned())
        } else if is_launched || payload::is_in_background(self.event) {
            self.routine(notes::AGENT_IN_BACKGROUND)
        } else if count > MANY_AGENTS {
            self.throttled("many-agents", 2, || notes::many_agents(count))
        } else {
            None
        };
        let long = (length > limit.unwrap_or(notes::DEFAULT_ANALYSIS_CHARS)).then(|| notes::long_answer(length));
        [first, long, self.agent_counts()].into_iter().flatten().collect()
    }

    /// What the model writes into its list of tasks are its own words, and who plans them wants to know who is at work.
    fn task_list(&self) -> Vec<String> {
        self.remember(&self.event.tool_result().unwrap_or_default());
        self.agent_counts().into_iter().collect()
    }

    fn agent_counts(&self) -> Option<String> {
        let counts = self.store.read_subagents(self.session.as_ref()?).counts();
        notes::agents(&counts, self.quiet >= 2)
    }

    fn background_output(&self) -> Vec<String> {
        let output = payload::background_text(self.event);
        if !payload::is_output_of_shell(self.event) {
            self.remember(&output);
        }
        let length = output.chars().count();
        let limit = |name, default| number(name).and_then(|limit| usize::try_from(limit).ok()).unwrap_or(default);
        let max_units = limit("OMC_AGENT_OUTPUT_SUMMARY_LIMIT", notes::DEFAULT_SUMMARY_UNITS).clamp(40, 4_000);
        let digest = notes::digest(&output, max_units).filter(|_| self.quiet < 2);
        let is_long = length > limit("OMC_AGENT_OUTPUT_ANALYSIS_LIMIT", notes::DEFAULT_ANALYSIS_CHARS);
        let long = (is_long && self.quiet < 2).then(|| notes::long_output(length));
        digest.map(|digest| format!("TaskOutput summary: {digest}")).into_iter().chain(long).collect()
    }

    fn change(&self, failed: &str, done: Routine) -> Option<String> {
        if !payload::evidence(self.event).is_failure() {
            return self.routine(done);
        }
        self.record_failure(&self.event.tool_result().unwrap_or_default());
        Some(failed.to_owned())
    }

    /// Records a failure of which the agent has no event of its own.
    fn record_failure(&self, output: &str) {
        let Some(session) = self.session.as_ref().filter(|_| self.event.agent() == "codex") else { return };
        let tool = self.event.tool_name().unwrap_or_default();
        let input = self.event.field("/tool_input").map(|input| input.to_string()).unwrap_or_default();
        let failure = ToolFailure { tool_name: &tool, input: &input, error: output.trim() };
        if let Err(error) = self.store.record_tool_error(&state_lock::acquire, session, &failure, self.now) {
            log::warn(&format!("a failure was not recorded: {}", error.chain()));
        }
    }

    fn todo(&self) -> Option<String> {
        let output = self.event.tool_result().unwrap_or_default().to_lowercase();
        let has = |words: &[&str]| words.iter().any(|word| output.contains(word));
        if has(&["created", "added"]) {
            self.routine(notes::TODO_NEW)
        } else if has(&["completed", "done"]) {
            self.routine(notes::TODO_DONE)
        } else if has(&["in_progress"]) {
            self.routine(notes::TODO_DOING)
        } else {
            None
        }
    }

    fn nothing_found(&self, note: Routine, is_nothing: fn(&str) -> bool) -> Vec<String> {
        /// Longest text that says that there is nothing, in bytes.
        const LONGEST: usize = 400;
        let says_so = || {
            let output = self.event.tool_result().filter(|output| output.len() <= LONGEST);
            output.is_some_and(|output| is_nothing(&output.trim().to_lowercase()))
        };
        (payload::is_empty_search(self.event) || says_so()).then(|| self.routine(note)).flatten().into_iter().collect()
    }

    fn fill(&self) -> Option<String> {
        let session = self.session.as_ref()?;
        let of_transcript = transcript::tail(TAIL_BYTES).as_deref().and_then(context::percent_of_tail);
        let percent = of_transcript
            .or_else(|| self.event.field("/context_window").as_ref().and_then(context::percent_of_window))
            .or_else(|| self.store.read_status_line_percent(session))?;
        let level = |name, default| number(name).map_or(default, |percent| percent.clamp(1, 100));
        let fill = Fill::of(
            percent.min(100),
            level("OMC_PREEMPTIVE_COMPACTION_WARNING_PERCENT", notes::DEFAULT_WARNING_PERCENT),
            level("OMC_PREEMPTIVE_COMPACTION_CRITICAL_PERCENT", notes::DEFAULT_CRITICAL_PERCENT),
        )?;
        let cooldown = number("OMC_PREEMPTIVE_COMPACTION_COOLDOWN_MS").and_then(|time| i64::try_from(time).ok());
        self.claim(fill.kinds(), cooldown.unwrap_or(FILL_COOLDOWN_MS)).then(|| fill.text())
    }

    /// What a team's stage lacks is said to its leader, not to the agent that has just finished.
    fn deliverables(&self) -> Option<String> {
        let session = self.session.as_ref().filter(|_| self.event.subagent_id().is_none())?;
        let taken = self.store.take_deliverable_issues(&state_lock::acquire, session).unwrap_or_else(|error| {
            log::warn(&format!("missing deliverables were not told: {}", error.chain()));
            None
        });
        taken.as_ref().map(notes::deliverables)
    }

    fn routine(&self, note: Routine) -> Option<String> {
        self.throttled(note.kind, note.silent_from, || note.text.to_owned())
    }

    fn throttled(&self, kind: &str, silent_from: u64, text: impl FnOnce() -> String) -> Option<String> {
        (self.quiet < silent_from && self.claim(&[kind], COOLDOWN_MS)).then(text)
    }

    /// Whether a kind of note may be said now. What cannot be remembered is said again.
    fn claim(&self, kinds: &[&str], cooldown_ms: i64) -> bool {
        let Some(session) = &self.session else { return true };
        self.store.claim_advice(&state_lock::acquire, session, kinds, cooldown_ms, self.now).unwrap_or_else(|error| {
            log::warn(&format!("a note was not noted: {}", error.chain()));
            true
        })
    }

    /// Keeps what an agent wants to be kept. What is known already (an agent's last words are also its result) is not kept twice.
    fn remember(&self, words: &str) {
        // One look for most words, of which there may be megabytes.
        let is_tag = |found: &[u8]| found[0] == b'<' && found[1..].eq_ignore_ascii_case(b"remember");
        let mentions = words.as_bytes().windows("<remember".len()).any(is_tag);
        if !mentions {
            return;
        }
        let mut found: Vec<_> = ends(words, MAX_WORDS_BYTES / 2).flat_map(remember::find_notes).collect();
        if found.is_empty() {
            return;
        }
        if let Ok(Some(notepad)) = self.store.read_notepad() {
            let known = notepad.entries(Section::Working);
            found.retain(|note| note.is_priority || !known.iter().any(|entry| entry.content == note.text));
        }
        match self.store.remember(&state_lock::acquire, &found, self.now) {
            Ok(None) => {}
            Ok(Some(aside)) => {
                log::warn(&format!("the notepad could not be read and is kept as `{}`", aside.display()));
            }
            Err(error) => log::warn(&format!("{} notes were not kept: {}", found.len(), error.chain())),
        }
    }
}

#[cfg(test)]
mod tests;
