//! Finds out who speaks when the command line does not say so.
//!
//! Installed hooks name their agent; this is for hooks files that another agent reads too, and for misspelt names. Only
//! members at the top of the payload count, because what is deeper may be anybody's text.

use serde_json::{Map, Value};

use super::{Dialect, dialect, of};
use crate::protocol::contract;
use crate::protocol::event::{Agent, Kind};

/// Events that only Gemini CLI has. Its others have Claude Code's names.
const GEMINI_EVENTS: &[&str] = &[
    "BeforeAgent",
    "AfterAgent",
    "BeforeModel",
    "AfterModel",
    "BeforeToolSelection",
    "BeforeTool",
    "AfterTool",
    "PreCompress",
];

/// Variables that tell agents which speak like Claude Code apart from it.
const AGENT_VARIABLES: &[(&str, Agent)] =
    &[("FACTORY_PROJECT_DIR", Agent::Droid), ("QWEN_PROJECT_DIR", Agent::Qwen), ("GEMINI_PROJECT_DIR", Agent::Gemini)];

/// The dialect to answer in: the one named, else the one that the payload or the environment shows.
///
/// `is_set` tells whether an environment variable is. Without a name and without a sign the event is taken for Claude
/// Code's. A name that nobody knows means some other agent: without a sign it gets no bytes, because what is silence for
/// Claude Code may be an error there.
pub fn resolve(
    name: Option<&str>,
    payload: &Map<String, Value>,
    is_set: &dyn Fn(&str) -> bool,
) -> &'static dyn Dialect {
    if let Some(dialect) = name.and_then(dialect) {
        return dialect;
    }
    let fallback = if name.is_some() || payload.is_empty() { Agent::Unknown } else { Agent::Claude };
    of(detect(payload, is_set).unwrap_or(fallback))
}

/// The agent that the payload or the environment shows, from the surest sign to the weakest.
fn detect(payload: &Map<String, Value>, is_set: &dyn Fn(&str) -> bool) -> Option<Agent> {
    let has = |name: &str| payload.get(name).is_some_and(|value| !value.is_null());
    let event = payload.get("hook_event_name").and_then(Value::as_str).unwrap_or_default();
    let is_claude = contract::of(Agent::Claude, event).kind != Kind::Other;

    if has("cursor_version") || has("conversation_id") {
        return Some(Agent::Cursor);
    }
    if has("sessionId") || has("toolName") {
        return Some(Agent::Copilot);
    }
    if GEMINI_EVENTS.contains(&event) {
        return Some(Agent::Gemini);
    }
    let has_time = payload.get("timestamp").is_some_and(Value::is_string);
    if has_time && (has("tool_result") || has("tool_name") && !has("transcript_path")) {
        return Some(Agent::Copilot);
    }
    // Claude Code has a turn's id on this one event, and Codex does not have the event.
    let has_turn = has("turn_id") && event != "MessageDisplay";
    let starts_turn = event == "SessionStart" && has("model") && has("permission_mode") && !has("prompt_id");
    if has_turn || starts_turn || event == "Interrupt" {
        return Some(Agent::Codex);
    }
    let named = AGENT_VARIABLES.iter().find(|(variable, _)| is_set(variable)).map(|&(_, agent)| agent);
    named.or(is_claude.then_some(Agent::Claude))
}
