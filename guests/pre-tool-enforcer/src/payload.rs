//! Where the payloads of the agents, and the environment, have what the logic wants to know.

use omc_guest::{Event, environment, transcript};
use omc_state::{SessionId, Store, context};
use serde_json::Value;

use crate::logic::goal;

/// How much of the transcript's end is looked at for the fill of the context, in bytes: a few turns without tool output.
const TAIL_BYTES: u32 = 32 * 1024;

/// Most edits of one call that are looked at.
const MAX_EDITS: usize = 64;

/// A variable that is a whole number.
pub(crate) fn number(name: &str) -> Option<i64> {
    environment::get(name)?.trim().parse().ok()
}

/// How full the context is, if anybody knows: the transcript, the payload, the status line.
pub(crate) fn context_percent(event: &Event<'_>, store: &Store, session: Option<&SessionId>) -> Option<u64> {
    let of_transcript = transcript::tail(TAIL_BYTES).as_deref().and_then(context::percent_of_tail);
    of_transcript
        .or_else(|| event.field("/context_window").as_ref().and_then(context::percent_of_window))
        .or_else(|| store.read_status_line_percent(session?))
}

/// The call, as far as the guard of an ultragoal run looks at it.
pub(crate) fn goal_call(event: &Event<'_>, tool: &str) -> GoalCall {
    let skill = ["skill", "skill_name", "skillName", "command"];
    GoalCall {
        tool: tool.to_owned(),
        skill: skill.iter().find_map(|name| event.text(&format!("/tool_input/{name}"))),
        path: event.text("/tool_input/file_path"),
        command: event.tool_command(),
    }
}

/// A [`goal::Call`] that owns its texts.
pub(crate) struct GoalCall {
    tool: String,
    skill: Option<String>,
    path: Option<String>,
    command: Option<String>,
}

impl GoalCall {
    pub(crate) fn is_about_the_run(&self) -> bool {
        let call = goal::Call {
            tool: &self.tool,
            skill: self.skill.as_deref().and_then(|skill| skill.split_whitespace().next()),
            path: self.path.as_deref(),
            command: self.command.as_deref(),
        };
        call.is_about_the_run()
    }
}

/// The texts that the tool would write, run or hand on. What it replaces or looks for is not new.
pub(crate) fn new_texts(event: &Event<'_>, tool: &str) -> Vec<String> {
    let texts = |names: &[&str]| names.iter().filter_map(|name| event.text(&format!("/tool_input/{name}"))).collect();
    match tool {
        "Task" => texts(&["prompt", "description"]),
        "Bash" => texts(&["command", "description"]),
        "Edit" => texts(&["new_string"]),
        "Write" => texts(&["content"]),
        "NotebookEdit" => texts(&["new_source"]),
        "MultiEdit" => {
            let edits = event.field("/tool_input/edits");
            let edits = edits.as_ref().and_then(Value::as_array).into_iter().flatten().take(MAX_EDITS);
            edits.filter_map(|edit| edit.get("new_string")?.as_str()).map(str::to_owned).collect()
        }
        "apply_patch" => {
            let patch = event.text("/tool_input/command").unwrap_or_default();
            vec![patch.lines().filter_map(|line| line.strip_prefix('+')).collect::<Vec<_>>().join("\n")]
        }
        _ => Vec::new(),
    }
}
