//! Agents that are only told to go on.
//!
//! Their events are recognised so that a hooks file which they read too does no harm. Guests may see the events; no
//! contract says what an answer could change, so nothing they say is carried.

use super::{Agent, Dialect, Event, Merged, Reply};

/// An agent and its ways to say "no opinion".
pub(super) struct PassOnly {
    agent: Agent,
    /// Answers that depend on the event, by the agent's names for them.
    answers: &'static [(&'static [&'static str], &'static str)],
    /// The answer to every other event.
    otherwise: &'static str,
}

/// Cursor takes silence for invalid JSON where it asks for a permission, and then refuses.
pub(super) static CURSOR: PassOnly = PassOnly {
    agent: Agent::Cursor,
    answers: &[
        (
            &[
                "preToolUse",
                "beforeShellExecution",
                "beforeMCPExecution",
                "beforeReadFile",
                "beforeTabFileRead",
                "subagentStart",
            ],
            r#"{"permission":"allow"}"#,
        ),
        (&["beforeSubmitPrompt"], r#"{"continue":true}"#),
    ],
    otherwise: "{}",
};
pub(super) static COPILOT: PassOnly = PassOnly::without_bytes(Agent::Copilot);
pub(super) static GEMINI: PassOnly = PassOnly::without_bytes(Agent::Gemini);
pub(super) static QWEN: PassOnly = PassOnly::without_bytes(Agent::Qwen);
pub(super) static DROID: PassOnly = PassOnly::without_bytes(Agent::Droid);
pub(super) static GROK: PassOnly = PassOnly::without_bytes(Agent::Grok);
pub(super) static UNKNOWN: PassOnly = PassOnly::without_bytes(Agent::Unknown);

impl PassOnly {
    const fn without_bytes(agent: Agent) -> Self {
        Self { agent, answers: &[], otherwise: "" }
    }
}

impl Dialect for PassOnly {
    fn agent(&self) -> Agent {
        self.agent
    }

    fn encode(&self, event: &Event, _merged: &Merged) -> Reply {
        self.silent(event)
    }

    fn silent(&self, event: &Event) -> Reply {
        let event = event.spelling().unwrap_or_default();
        let answer = self.answers.iter().find(|(events, _)| events.contains(&event));
        Reply::line(answer.map_or(self.otherwise, |(_, answer)| answer))
    }
}
