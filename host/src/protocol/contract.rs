//! The contract of each event: what an answer to it can still change, and how the agent wants that written.
//!
//! One table of data, a row for each event of each agent that is answered with more than silence. Merging, encoding, the
//! checks of hooks files, `explain` and the documentation read it; nothing else knows what an agent takes. An effect that a
//! row cannot carry is dropped and recorded, never sent in the hope that it is understood: Codex discards a whole answer
//! for one member too many, and the tool that was to be refused then runs.

mod claude;
mod codex;
pub mod reference;

use std::time::{Duration, Instant};

use super::event::{Agent, Kind};

pub use claude::CLAUDE;
pub use codex::CODEX;

/// One row: an event of an agent.
#[derive(Debug)]
pub struct Contract {
    /// The agent that sends the event.
    pub agent: Agent,
    /// The event's kind; [`Kind::Other`] in the rows for events that have no contract.
    pub kind: Kind,
    /// The event's name as the agent spells it.
    pub event: &'static str,
    /// What a matcher is compared with.
    pub target: Target,
    /// How `allow` is said.
    pub allow: Carry,
    /// How `ask` is said.
    pub ask: Carry,
    /// How `block` is said.
    pub block: Carry,
    /// How `halt` is said.
    pub halt: Carry,
    /// Where text for the model goes.
    pub context: Context,
    /// Whether a text for the person is shown: `systemMessage`.
    pub message: bool,
    /// How the tool's input is replaced.
    pub updated_input: Rewrite,
    /// Whether the agent names a file of variables for the session's later commands.
    pub session_environment: bool,
    /// What "no opinion" looks like.
    pub silence: Silence,
    /// Bound on each text of an answer.
    pub cap: Cap,
    /// How long the agent waits when its hooks file does not say, in milliseconds.
    pub timeout_ms: u32,
    /// Longest time a hooks file can make it wait, in milliseconds, where there is such a bound.
    pub max_timeout_ms: Option<u32>,
    /// How long it waits by our own hooks files, in seconds; none where they have no entry, since no guest of ours needs one.
    pub hook_timeout_s: Option<u32>,
    /// What the agent does when no answer comes.
    pub unanswered: Unanswered,
    /// Whether a hook for the event is installed unasked.
    pub install: Install,
}

/// What a matcher of an event is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// Nothing: every handler is called, whatever its matcher says.
    None,
    /// A text member of the payload, with the values that are known; an empty list is an open set.
    Member(&'static str, &'static [&'static str]),
    /// The tool's name, and further names that tools go by.
    Tool(&'static [(&'static str, &'static [&'static str])]),
    /// The name of the file at `file_path`, without its folders.
    FileName,
}

/// How a decision is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carry {
    /// Not at all: it is dropped and recorded.
    No,
    /// By silence: it is what the agent does anyway.
    Unsaid,
    /// `hookSpecificOutput.permissionDecision` with `permissionDecisionReason`.
    Permission,
    /// `hookSpecificOutput.decision` with a `behavior` and a `message`.
    Behavior,
    /// `decision: "block"` with `reason`, at the top.
    Decision,
    /// `hookSpecificOutput.action: "decline"`; there is no place for the reason but the message.
    Decline,
    /// `continue: false` with `stopReason`.
    Stop,
    /// The same, and the event is refused in its own way as well, so that nothing runs while the agent ends.
    StopAndBlock,
    /// The agent has no such answer: it becomes a `block`.
    AsBlock,
}

/// Where text for the model goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Context {
    /// Nowhere: it is dropped and recorded.
    No,
    /// `hookSpecificOutput.additionalContext`.
    Specific,
    /// `systemMessage`, in front of the messages.
    AsMessage,
}

/// How a tool's input is replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rewrite {
    /// Not at all: it is dropped and recorded.
    No,
    /// `hookSpecificOutput.updatedInput`, with or without a decision: the agent's own permission rules judge the new input.
    Alone,
    /// The same, but only beside `permissionDecision: "allow"`, which approves nothing there. The tools named need a text
    /// `command` in their input.
    WithAllow(&'static [&'static str]),
    /// `hookSpecificOutput.decision.updatedInput`, only beside an `allow`.
    InAllow,
}

/// What "no opinion" looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Silence {
    /// `{"continue":true,"suppressOutput":true}`.
    Quiet,
    /// No bytes.
    NoBytes,
}

/// Bound on each text of an answer. What is longer the agent keeps from the model, or shows a small part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cap {
    /// The bound.
    pub limit: usize,
    /// What it counts.
    pub unit: Unit,
}

impl Cap {
    /// Length of a text in the cap's unit.
    pub fn measure(self, text: &str) -> usize {
        match self.unit {
            Unit::Utf16 => text.chars().map(char::len_utf16).sum(),
            Unit::Bytes => text.len(),
        }
    }

    /// The longest beginning of `text` that takes `limit` at most.
    pub fn beginning(self, text: &str, limit: usize) -> &str {
        let mut left = limit;
        let end = text.char_indices().find_map(|(at, letter)| {
            let fits = left.checked_sub(self.unit.length(letter));
            left = fits.unwrap_or(left);
            fits.is_none().then_some(at)
        });
        &text[..end.unwrap_or(text.len())]
    }

    /// The longest end of `text` that takes `limit` at most.
    pub fn end(self, text: &str, limit: usize) -> &str {
        let mut left = limit;
        let begin = text.char_indices().rev().find_map(|(at, letter)| {
            let fits = left.checked_sub(self.unit.length(letter));
            left = fits.unwrap_or(left);
            fits.is_none().then_some(at + letter.len_utf8())
        });
        &text[begin.unwrap_or(0)..]
    }
}

/// What an agent counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// UTF-16 code units.
    Utf16,
    /// Bytes of UTF-8.
    Bytes,
}

impl Unit {
    fn length(self, letter: char) -> usize {
        match self {
            Self::Utf16 => letter.len_utf16(),
            Self::Bytes => letter.len_utf8(),
        }
    }
}

/// What an agent does when no answer comes, or none that it can read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unanswered {
    /// It goes on.
    Proceeds,
    /// It goes on after a failure, but takes a timeout for a refusal.
    TimeoutBlocks,
    /// What it asked for fails: the answer is the work itself.
    Fails,
}

/// Whether a hook for an event is installed unasked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Install {
    /// Whenever an enabled guest subscribes to the event.
    WhenNeeded,
    /// Only on the user's request, because the hook's mere presence changes what the agent does.
    OnRequest,
}

/// Share of the agent's timeout that an event may take, in percent: the rest is for starting and ending the process.
const DEADLINE_PERCENT: u32 = 80;

/// Longest time for an event, in milliseconds: a person or a model waits for the answer.
pub(crate) const MAX_DEADLINE_MS: u32 = 2_500;

/// Longest time for the events at which the agent is leaving, in milliseconds: agents wait about a second in all.
const LEAVING_DEADLINE_MS: u32 = 800;

impl Contract {
    /// How long the host may take over the event by our own hooks files, and by the agent's default where they are silent.
    pub const fn deadline(&self) -> Duration {
        self.deadline_within(self.agent_waits_ms())
    }

    /// When the answer is due to an event that had been read at `received`, in a process that `began` earlier.
    ///
    /// An agent that writes its event slowly, or writes a very large one, does not take the guests' time to judge it away, as
    /// far as it still waits for the answer.
    pub fn due(&self, began: Instant, received: Instant) -> Instant {
        (received + self.deadline()).min(began + self.share_of(self.agent_waits_ms()))
    }

    /// How long the agent waits by our own hooks files, and by its default where they are silent, in milliseconds.
    const fn agent_waits_ms(&self) -> u32 {
        match self.hook_timeout_s {
            Some(seconds) if seconds * 1_000 < self.timeout_ms => seconds * 1_000,
            _ => self.timeout_ms,
        }
    }

    /// The host's share of the time that the agent waits.
    const fn share_of(&self, timeout_ms: u32) -> Duration {
        let timeout_ms = match self.max_timeout_ms {
            Some(max) if max < timeout_ms => max,
            _ => timeout_ms,
        };
        Duration::from_millis(timeout_ms as u64 * DEADLINE_PERCENT as u64 / 100)
    }

    /// How long the host may take over the event when the agent waits for `timeout_ms`.
    pub const fn deadline_within(&self, timeout_ms: u32) -> Duration {
        let bound = Duration::from_millis(match self.kind {
            Kind::SessionEnd | Kind::Interrupt | Kind::Other => LEAVING_DEADLINE_MS,
            _ => MAX_DEADLINE_MS,
        } as u64);
        let share = self.share_of(timeout_ms);
        if share.as_millis() < bound.as_millis() { share } else { bound }
    }

    /// A row of which nothing counts: the start of every row, and the whole of those for events that have no contract.
    const fn nothing(agent: Agent, kind: Kind, event: &'static str, target: Target) -> Self {
        let (silence, unit) = match agent {
            Agent::Claude => (Silence::Quiet, Unit::Utf16),
            _ => (Silence::NoBytes, Unit::Bytes),
        };
        Self {
            agent,
            kind,
            event,
            target,
            allow: Carry::No,
            ask: Carry::No,
            block: Carry::No,
            halt: Carry::No,
            context: Context::No,
            message: true,
            updated_input: Rewrite::No,
            session_environment: false,
            silence,
            cap: Cap { limit: CAP, unit },
            timeout_ms: 600_000,
            max_timeout_ms: None,
            hook_timeout_s: None,
            unanswered: Unanswered::Proceeds,
            install: Install::WhenNeeded,
        }
    }

    /// The row for events that have no contract. Its deadline is the shortest of all: nobody knows how long the agent waits.
    const fn unknown(agent: Agent) -> Self {
        Self { message: false, ..Self::nothing(agent, Kind::Other, "", Target::None) }
    }
}

/// Longest text, in units of the agent: Claude Code's 10,000 characters, Codex's 2,500 tokens of four bytes.
const CAP: usize = 10_000;

/// The rows for events that have no contract.
static UNKNOWN: [Contract; 9] = [
    Contract::unknown(Agent::Claude),
    Contract::unknown(Agent::Codex),
    Contract::unknown(Agent::Cursor),
    Contract::unknown(Agent::Copilot),
    Contract::unknown(Agent::Gemini),
    Contract::unknown(Agent::Qwen),
    Contract::unknown(Agent::Droid),
    Contract::unknown(Agent::Grok),
    Contract::unknown(Agent::Unknown),
];

/// All rows of an agent; none for one that is only answered with silence.
pub fn rows(agent: Agent) -> &'static [Contract] {
    match agent {
        Agent::Claude => &CLAUDE,
        Agent::Codex => &CODEX,
        _ => &[],
    }
}

/// The contract of the event that `agent` spells so.
pub fn of(agent: Agent, event: &str) -> &'static Contract {
    rows(agent).iter().find(|row| row.event == event).unwrap_or(&UNKNOWN[agent as usize])
}

#[cfg(test)]
mod tests;
