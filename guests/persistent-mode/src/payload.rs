//! Where the payloads of the agents have what the logic wants to know.

use omc_guest::{Event, environment, settings, transcript};
use omc_state::{Pending, context};
use serde_json::Value;

use crate::logic::{DEFAULT_HARD_CAP, DEFAULT_REFUSALS_WITHOUT_TOOL, StopFacts};

/// How much of the transcript's end is looked at for the fill of the context, in bytes: a few turns without tool output.
const TAIL_BYTES: u32 = 32 * 1024;

/// The facts of a Stop event and what is around it.
pub(crate) fn facts(event: &Event<'_>) -> StopFacts {
    let any_text = |pointers: &[&str]| pointers.iter().find_map(|pointer| event.text(pointer));
    let in_payload = event.field("/context_window").as_ref().and_then(context::percent_of_window);
    let context_percent =
        in_payload.or_else(|| transcript::tail(TAIL_BYTES).as_deref().and_then(context::percent_of_tail));

    // A limit of 0 would end every mode at its first Stop; the host does not hand one out.
    let limit = |key: &str, default| settings::get::<u64>(key).filter(|limit| *limit > 0).unwrap_or(default);
    StopFacts {
        reasons: [
            "/stop_reason",
            "/stopReason",
            "/end_turn_reason",
            "/endTurnReason",
            "/reason",
            "/error",
            "/error_details",
        ]
        .iter()
        .flat_map(|pointer| texts(event.field(pointer)))
        .collect(),
        user_requested: ["/user_requested", "/userRequested"]
            .iter()
            .any(|pointer| event.field(pointer).is_some_and(|value| is_truthy(&value))),
        prompt: event.text("/prompt"),
        tool_name: any_text(&["/tool_name", "/toolName"]),
        skill: skill(event),
        context_percent,
        pending: pending(event),
        is_team_worker: environment::get("OMC_TEAM_WORKER").is_some_and(|worker| !worker.trim().is_empty()),
        hard_cap: limit("ralph.hardMaxIterations", DEFAULT_HARD_CAP),
        max_refusals_without_tool: limit("persistentMode.noProgressLimit", DEFAULT_REFUSALS_WITHOUT_TOOL),
    }
}

/// The skill or slash command that the event's tool starts, as it was written.
pub(crate) fn skill(event: &Event<'_>) -> Option<String> {
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

/// What the agent itself says about work that goes on, and will wake it.
fn pending(event: &Event<'_>) -> Option<Pending> {
    let any = |pointer, test: fn(&Value) -> bool| {
        event.field(pointer).as_ref().and_then(Value::as_array).is_some_and(|items| items.iter().any(test))
    };
    if any("/background_tasks", |task| task.get("status").and_then(Value::as_str) == Some("running")) {
        return Some(Pending::BackgroundTask);
    }
    // A job that comes once is a wake-up; one that comes every day is no reason to stop now.
    any("/session_crons", |job| job.get("recurring") == Some(&Value::Bool(false))).then_some(Pending::WakeUp)
}
