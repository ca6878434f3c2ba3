//! The glue: events in, records and advice out.

use std::fs;

use omc_guest::testing::World;
use serde_json::json;
use tempfile::TempDir;

use super::*;

fn fail(omc: &TempDir, over: &Value) -> String {
    let mut payload = json!({"session_id": "s1", "cwd": "/p", "tool_name": "Bash", "tool_input": {"command": "make"}, "error": "boom"});
    for (name, value) in over.as_object().expect("an object") {
        payload[name] = value.clone();
    }
    let outcome = World::new("post-tool-use-failure", payload).with_omc_dir(omc.path()).call::<ToolFailureGuest>();
    assert_eq!(outcome.decision, Ok(Decision::Pass));
    outcome.context.join("\n")
}

fn record_of(omc: &TempDir, path: &str) -> Option<Value> {
    serde_json::from_str(&fs::read_to_string(omc.path().join(path)).ok()?).ok()
}

#[test]
fn a_failure_is_recorded_in_both_places_and_counted() {
    let omc = tempfile::tempdir().expect("a folder");
    for round in 1..=5 {
        let text = fail(&omc, &json!({}));
        assert_eq!(text.contains("5 times"), round == 5, "{text}");
        for path in ["state/last-tool-error.json", "state/sessions/s1/last-tool-error-state.json"] {
            let record = record_of(&omc, path).expect("a record");
            assert_eq!(record["retry_count"], round, "{path}");
            assert_eq!((&record["tool_name"], &record["session_id"]), (&json!("Bash"), &json!("s1")));
            assert_eq!(record["tool_input_preview"], "{\"command\":\"make\"}");
        }
    }
    assert!(fail(&omc, &json!({"tool_input": {"command": "other"}})).contains("`Bash` failed"));
}

#[test]
fn what_does_not_count_leaves_no_trace() {
    for over in [
        json!({"is_interrupt": true}),
        json!({"error": " "}),
        json!({"error": 7}),
        json!({"tool_name": ""}),
        json!({"tool_name": null}),
    ] {
        let omc = tempfile::tempdir().expect("a folder");
        assert_eq!(fail(&omc, &over), "", "{over}");
        assert_eq!(fs::read_dir(omc.path()).expect("a folder").count(), 0, "{over}");
    }
}

#[test]
fn without_a_usable_session_the_advice_comes_and_nothing_is_written() {
    let omc = tempfile::tempdir().expect("a folder");
    for session in [json!("../x"), json!(""), json!("unknown"), json!(null)] {
        assert!(fail(&omc, &json!({"session_id": session})).contains("`Bash` failed"));
    }
    assert_eq!(fs::read_dir(omc.path()).expect("a folder").count(), 0);
}

#[test]
fn inputs_of_any_shape_are_taken() {
    for input in [json!(null), json!("text"), json!([1]), json!({"a": "é".repeat(100_000)})] {
        let omc = tempfile::tempdir().expect("a folder");
        assert_ne!(fail(&omc, &json!({"tool_input": input})), "");
        let record = record_of(&omc, "state/last-tool-error.json").expect("a record");
        assert!(record["tool_input_preview"].as_str().expect("a text").encode_utf16().count() <= 203);
    }
}
