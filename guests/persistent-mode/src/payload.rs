//! Where the payloads of the agents have what the logic wants to know.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher as _, Hasher as _};

use omc_guest::project_files::{self, Root};
use omc_guest::{Event, environment, settings};
use omc_state::{Invocation, Pending, Prd, SessionId, Todos};
use omc_turn::Turn;
use serde_json::Value;

use crate::logic::{DEFAULT_HARD_CAP, DEFAULT_REFUSALS_WITHOUT_TOOL, StopFacts, review};

/// Most tasks of a session that are looked at: more than a model keeps in view.
const MAX_TASKS: u32 = 64;

/// Longest file of a task that is read, in bytes; real ones have a few hundred.
const MAX_TASK_BYTES: u32 = 16 * 1024;

/// What ralph works through, where the model has put it beside the code instead of into `.omc`.
pub(crate) fn prd_of_project() -> Option<Prd> {
    Prd::parse(&project_files::read(Root::Project, "prd.json", Prd::MAX_BYTES).ok()?)
}

/// How much is open in the agent's own lists: the session's tasks, and the project's to-do list.
pub(crate) fn open_items(session: &SessionId) -> u64 {
    let todos = project_files::read(Root::Project, ".claude/todos.json", Todos::MAX_BYTES);
    let todos = todos.map_or(0, |text| Todos::parse(&text).open());
    let is_open = |path: &String| {
        let task = project_files::read(Root::Agent, path, MAX_TASK_BYTES).unwrap_or_default();
        let task: Value = serde_json::from_str(&task).unwrap_or_default();
        matches!(task.get("status").and_then(Value::as_str), Some("pending" | "in_progress"))
    };
    let tasks = project_files::find(Root::Agent, &format!("tasks/{session}"), MAX_TASKS);
    let tasks = tasks.map_or(0, |found| found.paths.iter().filter(|path| is_open(path)).count());
    todos + tasks as u64
}

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
