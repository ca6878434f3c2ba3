//! Which agent speaks, and how it is answered.
//!
//! Last step of the path of an event: a merged answer in, the bytes for standard output and the exit status out. A dialect
//! adds no opinion of its own: what it may write stands in the event's contract, and whatever goes wrong ends in silence,
//! which every agent takes for "no opinion".

mod detect;
mod hooks_json;
mod pass_only;

use serde_json::{Map, Value};

use super::decision::{Decision, Merged};
use super::event::{Event, Kind};

pub use super::event::Agent;
pub use detect::resolve;

/// What the agent gets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reply {
    /// Standard output: one line of JSON, or nothing. To be written with one call.
    pub stdout: Vec<u8>,
    /// Exit status. Agents read 2 as a refusal and some read anything but 0 and 1 as one.
    pub exit_code: u8,
    /// Standard error: nothing, or why, beside an exit status of 2.
    pub stderr: Vec<u8>,
}

impl Reply {
    /// A line of JSON, or nothing, with exit status 0.
    fn line(json: &str) -> Self {
        let mut stdout = json.as_bytes().to_vec();
        if !stdout.is_empty() {
            stdout.push(b'\n');
        }
        Self { stdout, ..Self::default() }
    }

    /// The same answer, and if it refuses the use of a tool, the refusal a second time: as exit status 2 with the reason on standard
    /// error. Codex then reads no more than that, and to Claude Code it looks like a hook that failed.
    pub(crate) fn with_refusal_twice(mut self, event: &Event, merged: &Merged) -> Self {
        if let (Kind::PreToolUse, Agent::Claude | Agent::Codex, Decision::Block(reason)) =
            (event.kind(), event.agent(), &merged.decision)
        {
            self.stderr = format!("{reason}\n").into_bytes();
            self.exit_code = REFUSAL;
        }
        self
    }
}

/// The exit status that both agents read as a refusal.
const REFUSAL: u8 = 2;

/// One agent's way of speaking.
pub trait Dialect: Sync {
    /// The agent.
    fn agent(&self) -> Agent;

    /// The event that the agent means. Also for the readable part of an event that could not be read.
    fn decode(&self, payload: Map<String, Value>) -> Event {
        Event::new(self.agent(), payload)
    }

    /// The answer to an event.
    fn encode(&self, event: &Event, merged: &Merged) -> Reply;

    /// The answer that says nothing: for events that no guest has an opinion about, and for every fault.
    fn silent(&self, event: &Event) -> Reply;
}

/// The dialect of that name, as `--agent` takes it; letter case does not matter.
pub fn dialect(name: &str) -> Option<&'static dyn Dialect> {
    let agents = [
        Agent::Claude,
        Agent::Codex,
        Agent::Cursor,
        Agent::Copilot,
        Agent::Gemini,
        Agent::Qwen,
        Agent::Droid,
        Agent::Grok,
    ];
    agents.into_iter().find(|agent| agent.name().eq_ignore_ascii_case(name)).map(of)
}

/// The dialect of an agent.
pub fn of(agent: Agent) -> &'static dyn Dialect {
    match agent {
        Agent::Claude => &hooks_json::CLAUDE,
        Agent::Codex => &hooks_json::CODEX,
        Agent::Cursor => &pass_only::CURSOR,
        Agent::Copilot => &pass_only::COPILOT,
        Agent::Gemini => &pass_only::GEMINI,
        Agent::Qwen => &pass_only::QWEN,
        Agent::Droid => &pass_only::DROID,
        Agent::Grok => &pass_only::GROK,
        Agent::Unknown => &pass_only::UNKNOWN,
    }
}

#[cfg(test)]
mod tests;
