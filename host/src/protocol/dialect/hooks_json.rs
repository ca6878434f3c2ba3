//! The answer that Claude Code defined and that Codex CLI took over: one JSON object with a few top-level members and
//! `hookSpecificOutput`.
//!
//! The agents differ in what they take for which event, and that is in the contracts. Absent members are left out, never
//! null; no member is written that the event does not take; the exit status is always 0.

use serde::Serialize;
use serde_json::Value;

use super::{Agent, Dialect, Event, Merged, Reply};
use crate::protocol::contract::{Carry, Contract, Rewrite, Silence};
use crate::protocol::decision::Decision;

/// Claude Code's silence: to go on is the default, and the second member keeps older versions from showing an empty line.
const QUIET: &str = r#"{"continue":true,"suppressOutput":true}"#;

pub(super) struct HooksJson(Agent);

pub(super) static CLAUDE: HooksJson = HooksJson(Agent::Claude);
pub(super) static CODEX: HooksJson = HooksJson(Agent::Codex);

impl Dialect for HooksJson {
    fn agent(&self) -> Agent {
        self.0
    }

    fn encode(&self, event: &Event, merged: &Merged) -> Reply {
        let contract = event.contract();
        let answer = Answer::new(contract, merged);
        if answer == Answer::default() {
            return self.silent(event);
        }
        match serde_json::to_string(&answer) {
            Ok(json) => Reply::line(&json),
            // Strings, literals and parsed JSON always serialise.
            Err(_) => self.silent(event),
        }
    }

    fn silent(&self, event: &Event) -> Reply {
        match event.contract().silence {
            Silence::Quiet => Reply::line(QUIET),
            Silence::NoBytes => Reply::default(),
        }
    }
}

#[derive(Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer<'a> {
    #[serde(rename = "continue", skip_serializing_if = "Option::is_none")]
    goes_on: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stop_reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    decision: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    system_message: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hook_specific_output: Option<Specific<'a>>,
}

#[derive(Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Specific<'a> {
    hook_event_name: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    permission_decision: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    permission_decision_reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    updated_input: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    decision: Option<Consent<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    action: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    additional_context: Option<&'a str>,
}

#[derive(PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Consent<'a> {
    behavior: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    updated_input: Option<&'a Value>,
}

impl<'a> Answer<'a> {
    fn new(contract: &Contract, merged: &'a Merged) -> Self {
        let mut answer = Self { system_message: merged.message.as_deref(), ..Self::default() };
        let mut specific = Specific { additional_context: merged.context.as_deref(), ..Specific::default() };
        let rewrite = merged.updated_input.as_ref();
        match contract.updated_input {
            Rewrite::No | Rewrite::InAllow => {}
            Rewrite::Alone => specific.updated_input = rewrite,
            Rewrite::WithAllow(_) => {
                specific.updated_input = rewrite;
                specific.permission_decision = rewrite.is_some().then_some("allow");
            }
        }
        match &merged.decision {
            Decision::Pass => {}
            Decision::Allow => answer.say(contract.allow, "allow", None, &mut specific),
            Decision::Ask(reason) => answer.say(contract.ask, "ask", Some(reason), &mut specific),
            Decision::Block(reason) => answer.say(contract.block, "deny", Some(reason), &mut specific),
            Decision::Halt(reason) => {
                answer.say(contract.halt, "deny", Some(reason), &mut specific);
                if contract.halt == Carry::StopAndBlock {
                    answer.say(contract.block, "deny", Some(reason), &mut specific);
                }
            }
        }
        if let (Rewrite::InAllow, Some(decision)) = (contract.updated_input, &mut specific.decision) {
            decision.updated_input = rewrite;
        }
        if specific != Specific::default() {
            answer.hook_specific_output = Some(Specific { hook_event_name: contract.event, ..specific });
        }
        answer
    }

    /// Writes a decision in the given way. `verb` is the agents' word for it, wherever they have more than one.
    fn say(&mut self, carry: Carry, verb: &'static str, reason: Option<&'a str>, specific: &mut Specific<'a>) {
        match carry {
            // What is not carried, or carried as something else, does not survive the merge.
            Carry::No | Carry::Unsaid | Carry::AsBlock => {}
            Carry::Permission => {
                specific.permission_decision = Some(verb);
                specific.permission_decision_reason = reason;
            }
            Carry::Behavior => {
                specific.decision = Some(Consent { behavior: verb, message: reason, updated_input: None });
            }
            Carry::Decision => {
                self.decision = Some("block");
                self.reason = reason;
            }
            Carry::Decline => specific.action = Some("decline"),
            Carry::Stop | Carry::StopAndBlock => {
                self.goes_on = Some(false);
                self.stop_reason = reason;
            }
        }
    }
}
