//! Where the payloads of the agents have what the logic wants to know.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher as _, Hasher as _};

use omc_guest::{Event, environment, settings};
use omc_state::{Invocation, Pending};
use omc_turn::Turn;
use serde_json::Value;

use crate::logic::{DEFAULT_HARD_CAP, DEFAULT_REFUSALS_WITHOUT_TOOL, StopFacts, review};

/// The facts of a Stop event and what is around it.
pub(crate) fn facts(event: &Event<'_>) -> StopFacts {
    // A limit of 0 would end every mode at its first Stop; the host does not hand one out.
    let limit = |key: &str, default| settings::get::<u64>(key).filter(|limit| *limit > 0).unwrap_or(default);
    let turn = Turn::of(event);
    StopFacts {
        pending: pending(event),
        reviews: turn.tail.as_deref().map(review::reviews).unwrap_or_default(),
        // The standard library's hash keys are the random numbers that it has on every platform.
        fresh_id: format!("{:016x}", RandomState::new().build_hasher().finish()),
        is_team_worker: environment::get("OMC_TEAM_WORKER").is_some_and(|worker| !worker.trim().is_empty()),
        hard_cap: limit("ralph.hardMaxIterations", DEFAULT_HARD_CAP),
        max_refusals_without_tool: limit("persistentMode.noProgressLimit", DEFAULT_REFUSALS_WITHOUT_TOOL),
        invocation: Invocation::of_agent(&event.agent()),
        turn,
    }
}

/// Whether the Skill tool says only that the skill has been started, so that its work is still to come.
///
/// Claude Code answers so for skills that run in the conversation; one that runs in a fork of its own is done.
pub(crate) fn is_only_launched(event: &Event<'_>) -> bool {
    match event.field("/tool_response") {
        Some(Value::Object(response)) => {
            let text = |name: &str| response.get(name).and_then(Value::as_str);
            text("commandName").is_some() && text("status") != Some("forked")
        }
        Some(Value::String(text)) => text.starts_with("Launching skill"),
        _ => false,
    }
}

/// Whether the skill of this bare name plans by consensus, as ralplan does.
pub(crate) fn plans_by_consensus(event: &Event<'_>, name: &str) -> bool {
    const ARGUMENTS: [&str; 8] =
        ["args", "arguments", "argument", "skill_args", "skillArgs", "prompt", "description", "input"];
    let arguments = || {
        let mut texts = ARGUMENTS.iter().filter_map(|argument| event.text(&format!("/tool_input/{argument}")));
        texts.find(|text| !text.trim().is_empty())
    };
    match name {
        "ralplan" => true,
        "plan" | "omc-plan" => arguments().is_some_and(|text| text.contains("--consensus")),
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
