//! Where the payloads of the agents have what the logic wants to know.

use omc_guest::Event;
use serde_json::Value;

use crate::logic::write::{self, Evidence};

/// Members of a changed file's result that hold an error, if they hold anything. Its contents are beside them.
const ERRORS: [&str; 8] =
    ["error", "errors", "errorMessage", "error_message", "errorCode", "failure", "failed", "failureReason"];

/// How deep in a result without a file a member is looked for that holds an error.
const MAX_ERROR_DEPTH: usize = 4;

/// Longest text that only tells that an agent could not be started, in bytes; what an agent writes is longer or begins otherwise.
const MAX_START_ERROR_BYTES: usize = 600;

/// Whether the call asked for the background, or an agent was put there unasked.
pub(crate) fn is_in_background(event: &Event<'_>) -> bool {
    event.field("/tool_input/run_in_background") == Some(Value::Bool(true))
        || event.text("/tool_response/status").as_deref() == Some("async_launched")
}

/// What a task in the background has given so far.
pub(crate) fn background_text(event: &Event<'_>) -> String {
    event.text("/tool_response/task/output").or_else(|| event.tool_result()).unwrap_or_default()
}

/// Whether that is what a command printed. Where nothing says so, it is an agent's answer.
pub(crate) fn is_output_of_shell(event: &Event<'_>) -> bool {
    let kinds = ["/tool_response/task/task_type", "/tool_response/task_type"];
    let kind = kinds.iter().find_map(|pointer| event.text(pointer)).unwrap_or_default();
    ["bash", "shell"].iter().any(|shell| kind.contains(shell))
}

/// Whether an agent's answer only tells that there was no agent.
pub(crate) fn is_failed_start(answer: &str, said_failed: Option<bool>) -> bool {
    said_failed == Some(true) || answer.len() <= MAX_START_ERROR_BYTES && write::says_failure(answer)
}

/// What a result says about a changed file. Its contents, which may be long, are not looked at.
pub(crate) fn evidence(event: &Event<'_>) -> Evidence {
    let holds =
        |name: &&str| event.field(&format!("/tool_response/{name}")).is_some_and(|value| says_something(&value));
    let names_file = event.text("/tool_response/filePath").is_some();
    let holds_error = || {
        if names_file {
            ERRORS.iter().any(holds)
        } else {
            event.field("/tool_response").is_some_and(|response| tells_of_error(&response, MAX_ERROR_DEPTH))
        }
    };
    Evidence {
        names_file,
        holds_error: event.tool_failed() == Some(true) || holds_error(),
        // Where the structure names the file, the texts in it are the file's.
        text: if names_file { String::new() } else { event.tool_result().unwrap_or_default() },
    }
}

fn says_something(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(flag) => *flag,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.trim().is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(_) => true,
    }
}

/// Whether an object, or one in it, has a member that names an error and says something.
fn tells_of_error(value: &Value, depth: usize) -> bool {
    let Some(members) = value.as_object().filter(|_| depth > 0) else { return false };
    members.iter().any(|(name, value)| {
        let name = name.to_ascii_lowercase();
        let names_error = name.contains("error") || name.contains("fail");
        names_error && says_something(value) || tells_of_error(value, depth - 1)
    })
}

/// Whether a search says in its members that it found nothing. A search for lines counts them, and not files.
pub(crate) fn is_empty_search(event: &Event<'_>) -> bool {
    let count = |name: &str| event.field(&format!("/tool_response/{name}")).and_then(|count| count.as_u64());
    count("numFiles") == Some(0)
        && ["numLines", "numMatches"].iter().all(|name| count(name).unwrap_or(0) == 0)
        && event.text("/tool_response/content").is_none_or(|content| content.trim().is_empty())
        && event.field("/tool_response/filenames/0").is_none()
}
