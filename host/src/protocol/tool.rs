//! What an event says about a tool: from the payload to the facts of [`omc_tool`], which hold for every agent.
//!
//! Nothing is copied here; what is large is lent.

use omc_tool::ToolCall;
use serde_json::Value;

use super::contract::Target;
use super::event::Event;

/// Members that say what set an event off, by which matchers of some events are compared.
const CAUSES: &[&str] = &["source", "trigger", "reason", "load_reason"];

impl Event {
    /// The call of a tool that the event is about.
    pub fn tool_call(&self) -> Option<ToolCall<'_>> {
        Some(ToolCall {
            agent: self.agent().name(),
            event: self.kind_name(),
            name: self.tool_name()?,
            input: self.tool_input(),
            response: self.member("tool_response"),
            error: self.member("error"),
            interrupted: self.member("is_interrupt") == Some(&Value::Bool(true)),
            cwd: self.cwd(),
            linked: None,
        })
    }

    /// How much the agent may do unasked, in its own words.
    pub fn permission_mode(&self) -> Option<&str> {
        self.text("permission_mode")
    }

    /// What set the event off, where events of its kind have several causes.
    pub fn source(&self) -> Option<&str> {
        match self.contract().target {
            Target::Member(member, _) if CAUSES.contains(&member) => self.text(member),
            _ => self.text("source"),
        }
    }
}

#[cfg(test)]
mod tests {
    use omc_tool::{Output, ToolKind};

    use super::super::event::Agent;
    use super::super::samples;

    #[test]
    fn one_policy_sees_the_same_of_both_agents() {
        for agent in [Agent::Claude, Agent::Codex] {
            for spelling in ["PreToolUse", "PostToolUse", "PermissionRequest"] {
                let event = samples::event(agent, spelling);
                let call = event.tool_call().unwrap();
                assert_eq!(call.kind(), ToolKind::Execute, "{agent:?} {spelling}");
                assert!(call.command().unwrap().starts_with("cargo "), "{agent:?} {spelling}");
                assert_eq!(event.permission_mode(), Some("default"));
            }
            let event = samples::event(agent, "PostToolUse");
            let Some(Output::Text(text)) = event.tool_call().unwrap().output() else { panic!("no text") };
            assert!(text.starts_with("running 12 tests"), "{agent:?}");
            assert!(samples::event(agent, "Stop").tool_call().is_none());
        }
        let failure = samples::event(Agent::Claude, "PostToolUseFailure");
        let call = failure.tool_call().unwrap();
        assert_eq!((call.failed(), call.interrupted()), (Some(true), false));
        assert!(matches!(call.output(), Some(Output::Text(text)) if text.starts_with("Exit code 101")));
    }

    #[test]
    fn causes_are_found_under_the_names_of_their_events() {
        for (agent, spelling, member) in [
            (Agent::Claude, "SessionStart", "source"),
            (Agent::Claude, "Setup", "trigger"),
            (Agent::Claude, "PreCompact", "trigger"),
            (Agent::Claude, "SessionEnd", "reason"),
            (Agent::Codex, "PreCompact", "trigger"),
            (Agent::Codex, "SessionStart", "source"),
        ] {
            let event = samples::event(agent, spelling);
            assert_eq!(event.source(), event.payload()[member].as_str(), "{agent:?} {spelling}");
            assert!(event.source().is_some(), "{agent:?} {spelling}");
        }
        assert_eq!(samples::event(Agent::Claude, "PermissionDenied").source(), None);
        assert_eq!(samples::event(Agent::Claude, "Notification").source(), None);
    }
}
