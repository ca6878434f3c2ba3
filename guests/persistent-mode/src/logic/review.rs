//! What reviewers answered, from the end of the transcript.
//!
//! A reviewer ends its answer with `<ralph-approved critic="…" request-id="…">VERIFIED_COMPLETE</ralph-approved>` or with
//! `<ralph-rejected … >what is missing</ralph-rejected>`. Only the result of a subagent counts, or of a command where Codex
//! reviews: what the model writes itself, or reads from a file, is no review. Transcripts of Claude Code and of Codex are
//! understood; with other agents ralph ends as it does without a PRD.

use omc_guest::ToolKind;
use omc_state::Critic;
use serde_json::Value;

/// Longest feedback that is kept, in bytes: more than is ever quoted.
const MAX_FEEDBACK_BYTES: usize = 4 * 1024;

/// Names of the elements, and whether they approve. `architect-approved` is the original's older spelling.
const ELEMENTS: [(&str, bool); 3] = [("ralph-approved", true), ("architect-approved", true), ("ralph-rejected", false)];

/// What an approval has to say.
const APPROVAL: &str = "VERIFIED_COMPLETE";

/// One answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Review {
    /// The request that it answers.
    pub request_id: String,
    /// The story that it is about, if it says so.
    pub story_id: Option<String>,
    /// Whether all is as it should be.
    pub approves: bool,
    /// What is missing. The reviewer's words: not to be shown as they are.
    pub feedback: String,
    /// It came from a command, which only Codex may answer through.
    pub from_command: bool,
}

impl Review {
    /// Whether this answers the request, from somebody who may.
    pub fn answers(&self, request_id: &str, story_id: Option<&str>, critic: Critic) -> bool {
        let same_story = match (self.story_id.as_deref(), story_id) {
            (Some(said), Some(asked)) => said == asked,
            _ => true,
        };
        self.request_id == request_id && same_story && (!self.from_command || critic == Critic::Codex)
    }
}

/// The answers in `tail`, the transcript's end with one JSON document on each line; the newest comes last.
pub fn reviews(tail: &str) -> Vec<Review> {
    if !ELEMENTS.iter().any(|(name, _)| tail.contains(name)) {
        return Vec::new();
    }
    let mut calls = Calls::default();
    let mut found = Vec::new();
    for line in tail.lines() {
        let Ok(entry) = serde_json::from_str::<Value>(line) else { continue };
        if let Some(blocks) = entry.pointer("/message/content").and_then(Value::as_array) {
            if entry.get("isSidechain") != Some(&Value::Bool(true)) {
                for block in blocks {
                    claude_block(block, &mut calls, &mut found);
                }
            }
        } else if let Some(item) = entry.get("payload").filter(|_| text(&entry, "type") == Some("response_item")) {
            codex_item(item, &mut calls, &mut found);
        }
    }
    found
}

/// Ids of the calls whose results may hold reviews, and whether each was a command.
#[derive(Default)]
struct Calls(Vec<(String, bool)>);

/// Tools that send words to a subagent: what they give may repeat those words, which are the model's.
const SENDERS: [&str; 4] = ["SendMessage", "send_input", "send_message", "followup_task"];

impl Calls {
    /// Notes a call, if it is one of a subagent or a command.
    fn note(&mut self, agent: &str, tool: Option<&str>, id: Option<&str>) {
        if let (Some(tool), Some(id)) = (tool, id)
            && !SENDERS.contains(&tool)
            && let kind @ (ToolKind::Agent | ToolKind::Execute) = ToolKind::of_tool(agent, tool)
        {
            self.0.push((id.to_owned(), kind == ToolKind::Execute));
        }
    }

    /// Whether the result of this call is that of a command; absent if it is none that counts.
    fn is_command(&self, id: Option<&str>) -> Option<bool> {
        self.0.iter().find(|(known, _)| Some(known.as_str()) == id).map(|(_, is_command)| *is_command)
    }
}

fn text<'a>(value: &'a Value, name: &str) -> Option<&'a str> {
    value.get(name).and_then(Value::as_str)
}

/// A block of a message of Claude Code: a call, or the result of one.
fn claude_block(block: &Value, calls: &mut Calls, found: &mut Vec<Review>) {
    match text(block, "type") {
        Some("tool_use") => calls.note("claude", text(block, "name"), text(block, "id")),
        Some("tool_result") => {
            if let (Some(from_command), Some(content)) =
                (calls.is_command(text(block, "tool_use_id")), block.get("content"))
            {
                found.extend(texts(content).iter().filter_map(|text| last_review(text, from_command)));
            }
        }
        _ => {}
    }
}

/// How Codex tells the model, in the name of the user, that a subagent is done; what follows is JSON.
const CODEX_NOTICE: &str = "<subagent_notification>";

/// An item of a Codex session: a call, the result of one, or the notice of a subagent's end.
fn codex_item(item: &Value, calls: &mut Calls, found: &mut Vec<Review>) {
    match text(item, "type") {
        Some("function_call" | "custom_tool_call") => calls.note("codex", text(item, "name"), text(item, "call_id")),
        Some("function_call_output" | "custom_tool_call_output") => {
            if let (Some(from_command), Some(output)) = (calls.is_command(text(item, "call_id")), item.get("output")) {
                found.extend(texts(output).iter().filter_map(|text| last_review(text, from_command)));
            }
        }
        Some("message") if text(item, "role") == Some("user") => {
            let blocks = item.get("content").and_then(Value::as_array).into_iter().flatten();
            let notices = blocks.filter_map(|block| {
                let notice = text(block, "text")?.trim().strip_prefix(CODEX_NOTICE)?;
                serde_json::from_str::<Value>(notice.split_once("</subagent_notification>")?.0).ok()
            });
            found.extend(notices.flat_map(|notice| texts(&notice)).filter_map(|text| last_review(&text, false)));
        }
        _ => {}
    }
}

/// The texts of a result: a string, blocks of texts, or an object; a string may itself be JSON, as that of Codex's `wait_agent`
/// is, which has a text for each subagent.
fn texts(result: &Value) -> Vec<String> {
    let mut texts = Vec::new();
    let mut values = vec![result.clone()];
    while let Some(value) = values.pop() {
        match value {
            Value::String(text) => match text.trim_start().starts_with(['{', '[']).then(|| serde_json::from_str(&text))
            {
                Some(Ok(inner @ (Value::Object(_) | Value::Array(_)))) => values.push(inner),
                _ => texts.push(text),
            },
            Value::Array(items) => values.extend(items.into_iter().rev()),
            Value::Object(members) => values.extend(members.into_iter().map(|(_, value)| value).rev()),
            _ => {}
        }
    }
    texts
}

/// The last answer in a text: before it, a reviewer may repeat how it was told to answer.
fn last_review(text: &str, from_command: bool) -> Option<Review> {
    let (at, name, approves) = ELEMENTS
        .iter()
        .filter_map(|(name, approves)| Some((text.rfind(&format!("<{name} "))?, *name, *approves)))
        .max_by_key(|(at, ..)| *at)?;
    let (attributes, rest) = text[at + 1 + name.len()..].split_once('>')?;
    let (body, _) = rest.split_once(&format!("</{name}>"))?;
    if approves && body.trim() != APPROVAL {
        return None;
    }
    Some(Review {
        request_id: attribute(attributes, "request-id")?.to_owned(),
        story_id: attribute(attributes, "story-id").map(str::to_owned),
        approves,
        feedback: body[..body.floor_char_boundary(MAX_FEEDBACK_BYTES)].to_owned(),
        from_command,
    })
}

fn attribute<'a>(attributes: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = attributes.split_once(&format!(" {name}=\""))?;
    rest.split_once('"').map(|(value, _)| value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const APPROVED: &str = "Checked.\n<ralph-approved critic=\"architect\" request-id=\"r1\" story-id=\"US-1\">VERIFIED_COMPLETE</ralph-approved>";
    const REJECTED: &str =
        "<ralph-rejected critic=\"architect\" request-id=\"r1\">no test for the empty file</ralph-rejected>";

    fn call(tool: &str, id: &str) -> String {
        json!({"type": "assistant", "message": {"content": [{"type": "tool_use", "id": id, "name": tool, "input": {}}]}}).to_string()
    }

    fn result(id: &str, content: &Value) -> String {
        json!({"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": id, "content": content}]}}).to_string()
    }

    #[test]
    fn only_what_a_reviewer_returned_is_a_review() {
        let said = |text: &str| {
            json!({"type": "assistant", "message": {"content": [{"type": "text", "text": text}]}}).to_string()
        };
        for (lines, verdicts) in [
            (vec![call("Task", "t1"), result("t1", &json!(APPROVED))], vec![(true, false)]),
            (
                vec![call("Agent", "t1"), result("t1", &json!([{"type": "text", "text": APPROVED}]))],
                vec![(true, false)],
            ),
            (vec![call("Bash", "t1"), result("t1", &json!(APPROVED))], vec![(true, true)]),
            (
                vec![
                    call("Task", "t1"),
                    result("t1", &json!(REJECTED)),
                    call("Task", "t2"),
                    result("t2", &json!(APPROVED)),
                ],
                vec![(false, false), (true, false)],
            ),
            (vec![call("Read", "t1"), result("t1", &json!(APPROVED))], vec![]),
            (vec![call("SendMessage", "t1"), result("t1", &json!(APPROVED))], vec![]),
            (vec![call("Task", "t1"), result("t2", &json!(APPROVED))], vec![]),
            (vec![said(APPROVED)], vec![]),
            (vec![json!({"type": "user", "message": {"content": APPROVED}}).to_string()], vec![]),
            (vec!["{\"cut".to_owned() + APPROVED], vec![]),
        ] {
            let found: Vec<_> =
                reviews(&lines.join("\n")).iter().map(|review| (review.approves, review.from_command)).collect();
            assert_eq!(found, verdicts, "{lines:?}");
        }
    }

    fn item(payload: &Value) -> String {
        json!({"timestamp": "2026-11-30T00:00:00.000Z", "type": "response_item", "payload": payload}).to_string()
    }

    fn codex_call(name: &str, id: &str) -> String {
        item(
            &json!({"type": "function_call", "name": name, "call_id": id, "arguments": format!("{{\"message\":{REJECTED:?}}}")}),
        )
    }

    fn codex_output(id: &str, output: &Value) -> String {
        item(&json!({"type": "function_call_output", "call_id": id, "output": output}))
    }

    #[test]
    fn the_answers_of_codexs_subagents_are_reviews_too() {
        let waited =
            json!({"status": {"a1": {"completed": APPROVED}, "a2": {"completed": REJECTED}}, "timed_out": false});
        let notice = |role: &str, inner: &str| {
            let text = format!("<subagent_notification>\n{inner}\n</subagent_notification>");
            item(&json!({"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]}))
        };
        let done = json!({"agent_path": "a1", "status": {"completed": APPROVED}}).to_string();
        for (lines, verdicts) in [
            (
                vec![codex_call("wait_agent", "c1"), codex_output("c1", &json!(waited.to_string()))],
                vec![(true, false), (false, false)],
            ),
            (
                vec![codex_call("spawn_agent", "c1"), codex_output("c1", &json!({"body": APPROVED}))],
                vec![(true, false)],
            ),
            (vec![codex_call("shell", "c1"), codex_output("c1", &json!({"content": APPROVED}))], vec![(true, true)]),
            (vec![codex_call("exec_command", "c1"), codex_output("c1", &json!(APPROVED))], vec![(true, true)]),
            (vec![notice("user", &done)], vec![(true, false)]),
            (vec![notice("assistant", &done)], vec![]),
            (vec![notice("user", APPROVED)], vec![]),
            (vec![codex_call("read_file", "c1"), codex_output("c1", &json!(APPROVED))], vec![]),
            (vec![codex_call("send_input", "c1"), codex_output("c1", &json!(APPROVED))], vec![]),
            (vec![codex_call("wait_agent", "c1"), codex_output("c2", &json!(APPROVED))], vec![]),
            (vec![codex_call("wait_agent", "c1")], vec![]),
            (
                vec![item(
                    &json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": APPROVED}]}),
                )],
                vec![],
            ),
            (
                vec![
                    json!({"type": "event_msg", "payload": {"type": "agent_message", "message": APPROVED}}).to_string(),
                ],
                vec![],
            ),
        ] {
            let found: Vec<_> =
                reviews(&lines.join("\n")).iter().map(|review| (review.approves, review.from_command)).collect();
            assert_eq!(found, verdicts, "{lines:?}");
        }
    }

    #[test]
    fn the_last_element_of_an_answer_counts_and_only_if_it_is_whole() {
        for (text, approves) in [
            (format!("I was told to answer {APPROVED} or {REJECTED}"), Some(false)),
            (format!("{REJECTED} fixed since: {APPROVED}"), Some(true)),
            ("<ralph-approved request-id=\"r1\">maybe</ralph-approved>".to_owned(), None),
            ("<ralph-approved request-id=\"r1\">VERIFIED_COMPLETE".to_owned(), None),
            ("<ralph-approved>VERIFIED_COMPLETE</ralph-approved>".to_owned(), None),
            ("<ralph-approved critic=\"x\">VERIFIED_COMPLETE</ralph-approved>".to_owned(), None),
            ("<architect-approved request-id=\"r1\"> VERIFIED_COMPLETE\n</architect-approved>".to_owned(), Some(true)),
        ] {
            assert_eq!(last_review(&text, false).map(|review| review.approves), approves, "{text}");
        }
        let long = format!("<ralph-rejected request-id=\"r1\">{}</ralph-rejected>", "가".repeat(5_000));
        assert!(last_review(&long, false).is_some_and(|review| review.feedback.len() <= MAX_FEEDBACK_BYTES));
    }

    #[test]
    fn an_answer_is_for_its_request_and_story_and_from_who_may_give_it() {
        let review = last_review(APPROVED, false).expect("a review");
        assert!(review.answers("r1", Some("US-1"), Critic::Architect));
        assert!(review.answers("r1", None, Critic::Architect));
        assert!(!review.answers("r2", Some("US-1"), Critic::Architect));
        assert!(!review.answers("r1", Some("US-2"), Critic::Architect));
        let command = last_review(APPROVED, true).expect("a review");
        assert!(!command.answers("r1", Some("US-1"), Critic::Critic), "the model can print what it likes");
        assert!(command.answers("r1", Some("US-1"), Critic::Codex));
    }
}
