use serde_json::json;

use super::*;
use crate::protocol::samples;

fn event(payload: Value) -> Event {
    let Value::Object(payload) = payload else { panic!("an event is an object") };
    Event::new(Agent::Claude, payload)
}

#[test]
fn every_sample_decodes_to_its_kind() {
    for (agent, payload) in samples::payloads() {
        let spelling = payload["hook_event_name"].as_str().expect("a name").to_owned();
        let session = payload["session_id"].as_str().map(str::to_owned);
        let event = Event::new(agent, payload);
        assert_ne!(event.kind(), Kind::Other);
        assert_eq!(event.kind_name(), event.kind().name());
        assert_eq!(event.spelling(), Some(spelling.as_str()));
        assert_eq!(event.session_id(), session.as_deref());
        assert!(event.cwd().is_some_and(|cwd| cwd.starts_with("/home/dev/project")));
        assert!(event.transcript_path().is_some());
    }
}

#[test]
fn an_event_without_a_contract_is_called_by_its_own_name() {
    let cases = [
        (json!("FutureEvent"), "future-event"),
        (json!("beforeMCPExecution"), "before-mcp-execution"),
        (json!("BeforeTool"), "before-tool"),
        (json!("before_tool-call"), "before-tool-call"),
        (json!("Tool2Use"), "tool2-use"),
        (json!("  A../../B\u{0}é  "), "a-b"),
        (json!("stop"), "stop"),
        (json!(""), "unknown"),
        (json!("../.."), "unknown"),
        (json!(7), "unknown"),
        (json!(null), "unknown"),
        (json!(["Stop"]), "unknown"),
    ];
    for (spelling, name) in cases {
        let event = event(json!({"hook_event_name": spelling}));
        assert_eq!((event.kind(), event.kind_name()), (Kind::Other, name), "{spelling}");
    }
    assert_eq!(event(json!({})).kind_name(), "unknown");
    let endless = event(json!({"hook_event_name": "Ab".repeat(10_000)}));
    assert!(endless.kind_name().len() <= MAX_KIND_NAME + 1);
}

#[test]
fn only_a_plain_session_id_is_one() {
    let longest = "a".repeat(256);
    let cases = [
        (json!({"session_id": "3f0c9a52-6b1e-4d5a"}), Some("3f0c9a52-6b1e-4d5a")),
        (json!({"session_id": "0_-"}), Some("0_-")),
        (json!({"session_id": longest}), Some(longest.as_str())),
        (json!({"session_id": "a".repeat(257)}), None),
        (json!({"session_id": ""}), None),
        (json!({"session_id": "."}), None),
        (json!({"session_id": ".."}), None),
        (json!({"session_id": "../../evil"}), None),
        (json!({"session_id": "a/b"}), None),
        (json!({"session_id": "a\\b"}), None),
        (json!({"session_id": "-rf"}), None),
        (json!({"session_id": "_a"}), None),
        (json!({"session_id": "a\u{0}"}), None),
        (json!({"session_id": "a\n"}), None),
        (json!({"session_id": "é"}), None),
        (json!({"session_id": 1}), None),
        (json!({"sessionId": "s9"}), Some("s9")),
        (json!({"sessionid": "s9"}), Some("s9")),
        (json!({"session_id": "s1", "sessionId": "other"}), Some("s1")),
        (json!({"session_id": "../evil", "sessionId": "other"}), None),
        (json!({"session_id": null, "sessionId": "other"}), Some("other")),
        (json!({"nested": {"session_id": "s1"}}), None),
    ];
    for (payload, expected) in cases {
        assert_eq!(event(payload.clone()).session_id(), expected, "{payload}");
    }
}

#[test]
fn only_an_event_that_names_no_session_takes_another_ones_word_for_it() {
    for (payload, expected) in [
        (json!({}), Some("env")),
        (json!({"session_id": null}), Some("env")),
        (json!({"session_id": " "}), Some("env")),
        (json!({"session_id": "s1"}), Some("s1")),
        (json!({"sessionId": "s9"}), Some("s9")),
        (json!({"session_id": "../evil"}), None),
        (json!({"session_id": 5}), None),
    ] {
        assert_eq!(event(payload.clone()).with_session("env").session_id(), expected, "{payload}");
    }
    assert_eq!(event(json!({})).with_session("../evil").session_id(), None);
}

#[test]
fn a_prompt_is_found_wherever_agents_put_it() {
    let cases = [
        (json!({"prompt": "hello"}), Some("hello")),
        (json!({"prompt": "hello", "message": {"content": "other"}}), Some("hello")),
        (json!({"message": {"content": "hello"}}), Some("hello")),
        (json!({"prompt": "", "message": {"content": "hello"}}), Some("hello")),
        (json!({"message": {"content": [{"type": "text", "text": "no"}]}}), None),
        (json!({"message": "no"}), None),
        (
            json!({"parts": [
                {"type": "text", "text": "one"}, {"type": "image", "text": "no"}, {"text": "no"}, 7, null,
                {"type": "text", "text": 3}, {"type": "text"}, {"type": "text", "text": "two"},
            ]}),
            Some("one two"),
        ),
        (json!({"parts": []}), None),
        (json!({"parts": "no"}), None),
        (json!({"prompt": null}), None),
        (json!({"prompt": {"text": "no"}}), None),
        (json!({}), None),
    ];
    for (payload, expected) in cases {
        assert_eq!(event(payload.clone()).prompt().as_deref(), expected, "{payload}");
    }
}

#[test]
fn tools_are_known_by_one_name() {
    let cases = [
        (json!({"tool_name": "Bash"}), Some("Bash")),
        (json!({"toolName": "Bash"}), Some("Bash")),
        (json!({"tool_name": "Read", "toolName": "Bash"}), Some("Read")),
        (json!({"tool_name": "Agent"}), Some("Task")),
        (json!({"tool_name": "Task"}), Some("Task")),
        (json!({"tool_name": ["Bash"]}), None),
        (json!({}), None),
    ];
    for (payload, expected) in cases {
        assert_eq!(event(payload.clone()).tool_name(), expected, "{payload}");
    }
}

#[test]
fn a_pointer_looks_behind_the_usual_names() {
    let cases = [
        (json!({"tool_input": {"command": "ls"}}), "/tool_input/command", Some(json!("ls"))),
        (json!({"toolInput": {"command": "ls"}}), "/tool_input/command", Some(json!("ls"))),
        (json!({"toolInput": {"command": "ls"}}), "/toolInput/command", Some(json!("ls"))),
        (json!({"tool_input": {}, "toolInput": {"command": "ls"}}), "/tool_input/command", None),
        (json!({"tool_input": null, "toolInput": {"command": "ls"}}), "/tool_input/command", Some(json!("ls"))),
        (json!({"tool_input": {"a/b": [1, {"~": 2}]}}), "/tool_input/a~1b/1/~0", Some(json!(2))),
        (json!({"toolOutput": "text"}), "/tool_response", Some(json!("text"))),
        (json!({"tool_response": {"stdout": "x"}}), "/tool_response/stdout", Some(json!("x"))),
        (json!({"stopReason": "end_turn"}), "/stop_reason", Some(json!("end_turn"))),
        (json!({"directory": "/p"}), "/cwd", Some(json!("/p"))),
        (json!({"other": null}), "/other", Some(json!(null))),
        (json!({"other": 1}), "/Other", None),
        (json!({"other": 1}), "other", None),
        (json!({"": {"": 1}}), "//", Some(json!(1))),
        (json!({"a": 1}), "", Some(json!({"a": 1}))),
    ];
    for (payload, pointer, expected) in cases {
        assert_eq!(event(payload.clone()).pointer(pointer), expected.as_ref(), "{pointer} in {payload}");
    }
}

#[test]
fn members_of_the_wrong_type_are_absent() {
    for wrong in [json!(null), json!(1), json!(true), json!([[]]), json!({"a": {}})] {
        let names = ["session_id", "agent_id", "cwd", "transcript_path", "prompt", "message", "parts", "tool_name"];
        let payload = names.iter().map(|&name| (name.to_owned(), wrong.clone())).collect();
        let event = Event::new(Agent::Codex, payload);
        let texts = [event.session_id(), event.subagent_id(), event.cwd(), event.transcript_path(), event.tool_name()];
        assert_eq!(texts, [None; 5], "{wrong}");
        assert_eq!(event.prompt(), None, "{wrong}");
    }
}

#[test]
fn diagnostics_hold_no_payload() {
    assert!(!format!("{:?}", event(json!({"prompt": "secret"}))).contains("secret"));
}
