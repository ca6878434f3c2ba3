//! What reviewers answered, from the end of the transcript.
//!
//! A reviewer ends its answer with `<ralph-approved critic="…" request-id="…">VERIFIED_COMPLETE</ralph-approved>` or with
//! `<ralph-rejected … >what is missing</ralph-rejected>`. Only the result of a subagent counts, or of a command where Codex
//! reviews: what the model writes itself, or reads from a file, is no review. Claude Code's transcripts are understood; with
//! other agents ralph ends as it does without a PRD.

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
    // Ids of the calls of reviewers, and whether each was a command.
    let mut calls: Vec<(String, bool)> = Vec::new();
    let mut found = Vec::new();
    for line in tail.lines() {
        let Ok(entry) = serde_json::from_str::<Value>(line) else { continue };
        if entry.get("isSidechain") == Some(&Value::Bool(true)) {
            continue;
        }
        let Some(blocks) = entry.pointer("/message/content").and_then(Value::as_array) else { continue };
        for block in blocks {
            let text = |name: &str| block.get(name).and_then(Value::as_str);
            match (text("type"), text("name")) {
                (Some("tool_use"), Some(name @ ("Task" | "Agent" | "Bash"))) => {
                    calls.extend(text("id").map(|id| (id.to_owned(), name == "Bash")));
                }
                (Some("tool_result"), _) => {
                    let call = calls.iter().find(|(id, _)| Some(id.as_str()) == text("tool_use_id"));
                    if let Some((_, from_command)) = call {
                        found.extend(last_review(&content(block.get("content")), *from_command));
                    }
                }
                _ => {}
            }
        }
    }
    found
}

/// The text of a result: a string, or blocks of it.
fn content(value: Option<&Value>) -> String {
    match value {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(blocks)) => {
            let texts: Vec<_> = blocks.iter().filter_map(|block| block.get("text")?.as_str()).collect();
            texts.join("\n")
        }
        _ => String::new(),
    }
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
