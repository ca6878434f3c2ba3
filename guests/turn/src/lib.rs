//! What a Stop event says about the turn that ends: why it ended, how full the context is, and which files were changed.
//!
//! Shared by the guests that may refuse a Stop, so that all of them let go in the same cases. [`Turn::of`] reads the payloads of
//! the agents and the transcript's end; the rest is pure.

#![warn(missing_docs)]

mod cause;
mod changes;

use omc_guest::{Event, transcript};
use omc_state::context;
use serde_json::Value;

pub use cause::{CRITICAL_PERCENT, Cause};
pub use changes::{Changed, changed_files};

/// How much of the transcript's end is looked at for the fill of the context, in bytes: a few turns without tool output.
pub const TAIL_BYTES: u32 = 32 * 1024;

/// The turn that ends.
#[derive(Debug, Clone, Default)]
pub struct Turn {
    /// Why it ends: every text that the payload has for it.
    pub reasons: Vec<String>,
    /// The user stopped it.
    pub user_requested: bool,
    /// The prompt, where the payload repeats it.
    pub prompt: Option<String>,
    /// The tool that ended the turn, if one did.
    pub tool_name: Option<String>,
    /// The skill that this tool started.
    pub skill: Option<String>,
    /// How full the context is, if the event or the transcript say so.
    pub context_percent: Option<u64>,
    /// The end of the transcript, one JSON document on each line.
    pub tail: Option<String>,
}

impl Turn {
    /// The turn that the event ends. Needs the grant `transcript` for the fill of the context where the payload has none.
    pub fn of(event: &Event<'_>) -> Self {
        const REASONS: [&str; 7] = [
            "/stop_reason",
            "/stopReason",
            "/end_turn_reason",
            "/endTurnReason",
            "/reason",
            "/error",
            "/error_details",
        ];
        let in_payload = event.field("/context_window").as_ref().and_then(context::percent_of_window);
        let tail = transcript::tail(TAIL_BYTES);
        Self {
            reasons: REASONS.iter().flat_map(|pointer| texts(event.field(pointer))).collect(),
            user_requested: ["/user_requested", "/userRequested"]
                .iter()
                .any(|pointer| event.field(pointer).is_some_and(|value| is_truthy(&value))),
            prompt: event.text("/prompt"),
            tool_name: ["/tool_name", "/toolName"].iter().find_map(|pointer| event.text(pointer)),
            skill: skill(event),
            context_percent: in_payload.or_else(|| tail.as_deref().and_then(context::percent_of_tail)),
            tail,
        }
    }

    /// Why it ended, if not because the model thought it was done.
    pub fn cause(&self) -> Option<Cause> {
        Cause::of(self)
    }
}

/// The skill or slash command that the event's tool starts, as it was written.
pub fn skill(event: &Event<'_>) -> Option<String> {
    let named = ["skill", "skill_name", "skillName", "command"]
        .iter()
        .find_map(|name| event.text(&format!("/tool_input/{name}")))?;
    named.split_whitespace().next().map(str::to_owned)
}

/// A text, or the texts of an error object.
fn texts(value: Option<Value>) -> Vec<String> {
    match value {
        Some(Value::String(text)) => vec![text],
        Some(Value::Number(code)) => vec![code.to_string()],
        Some(Value::Object(error)) => {
            ["type", "code", "status", "message"].iter().flat_map(|name| texts(error.get(*name).cloned())).collect()
        }
        _ => Vec::new(),
    }
}

fn is_truthy(value: &Value) -> bool {
    match value {
        Value::Bool(value) => *value,
        Value::String(text) => !matches!(text.trim(), "" | "false" | "0"),
        Value::Number(number) => number.as_f64() != Some(0.0),
        _ => false,
    }
}
