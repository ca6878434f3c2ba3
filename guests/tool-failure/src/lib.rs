//! Records that a tool has failed, and says what to do about it.
//!
//! The record lives for a minute and is what persistent-mode repeats when the agent wants to stop; the same call that fails again
//! and again is counted, and from the fifth time on the advice is another one. What is no failure of the work (a person's
//! interruption, a server that lacks a method, the noise of a wide search) is neither recorded nor commented.

pub mod logic;

use std::time::SystemTime;

use omc_bare as _;
use omc_guest::{Decision, Effects, Error, Event, EventKind, Guest, log, state_lock};
use omc_state::{SessionId, Store, ToolFailure};
use serde_json::Value;

use logic::{Failure, advice};

/// Longest input of a tool that is made into a text to know the call by, in bytes of its JSON.
const MAX_INPUT_BYTES: usize = 64 * 1024;

/// The guest.
#[derive(Debug)]
pub struct ToolFailureGuest;

omc_guest::export!(ToolFailureGuest, {
    "description": "Records failures of tools and says what to do about them",
    "subscriptions": [{"event": "post-tool-use-failure", "order": 100}],
    "requests": [
        {"capability": "omc", "scope": ["rw:/omc/state"], "reason": "keeps the last failure for a minute, for the next Stop"}
    ]
});

impl Guest for ToolFailureGuest {
    fn handle(event: &Event<'_>, effects: &mut Effects<'_>) -> Result<Decision, Error> {
        if event.kind() != EventKind::PostToolUseFailure || event.tool_interrupted() {
            return Ok(Decision::Pass);
        }
        let (Some(tool), Some(error)) = (event.tool_name(), event.text("/error")) else { return Ok(Decision::Pass) };
        let command = event.tool_command();
        let failure = Failure { tool: tool.trim(), error: error.trim(), command: command.as_deref() };
        if !failure.counts() {
            return Ok(Decision::Pass);
        }
        let retries = record(event, &failure);
        effects.add_context(&advice(failure.tool, retries))?;
        Ok(Decision::Pass)
    }
}

/// Records the failure, and says how often the same call has failed.
fn record(event: &Event<'_>, failure: &Failure<'_>) -> u64 {
    let Some(session) = event.session_id().as_deref().and_then(SessionId::parse) else { return 1 };
    let input = match event.field("/tool_input") {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text,
        Some(input) => input.to_string(),
    };
    let input = &input[..input.floor_char_boundary(MAX_INPUT_BYTES)];
    let recorded = ToolFailure { tool_name: failure.tool, input, error: failure.error };
    let now = SystemTime::now().into();
    let store = Store::new(&omc_guest::omc_dir());
    store.record_tool_error(&state_lock::acquire, &session, &recorded, now).unwrap_or_else(|error| {
        log::warn(&format!("the failure was not recorded: {}", error.chain()));
        1
    })
}

#[cfg(test)]
mod tests;
