//! The guest as the host calls it.

use std::fs;

use omc_guest::testing::{Outcome, World};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;

const COUNT: &str = "state/sessions/s1/context-guard-stop-breaker.json";

fn world(omc: &TempDir, kind: &str, over: &Value) -> World {
    let mut payload = json!({"session_id": "s1", "cwd": "/p"});
    payload.as_object_mut().expect("an object").extend(over.as_object().expect("an object").clone());
    World::new(kind, payload).with_omc_dir(omc.path())
}

fn full(percent: u64) -> Value {
    json!({"context_window": {"used_percentage": percent}})
}

/// The marker of the refusal; empty if the agent may stop.
fn marker(outcome: &Outcome) -> &str {
    match &outcome.decision {
        Ok(Decision::Block(reason)) => reason.split_inclusive(']').next().expect("a marker"),
        Ok(Decision::Pass) => "",
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_guard_speaks_between_its_threshold_and_the_end() {
    for (percent, threshold, said) in [
        (74, None, ""),
        (75, None, "[OMC HIGH]"),
        (89, None, "[OMC HIGH]"),
        (90, None, "[OMC CRITICAL]"),
        (94, None, "[OMC CRITICAL]"),
        (95, None, ""),
        (100, None, ""),
        (85, Some("90"), ""),
        (50, Some("40"), "[OMC HIGH]"),
        (85, Some(" "), "[OMC HIGH]"),
        (85, Some("high"), ""),
        (85, Some("-1"), ""),
    ] {
        let omc = tempfile::tempdir().expect("a folder");
        let mut world = world(&omc, "stop", &full(percent));
        if let Some(threshold) = threshold {
            world = world.with_env(THRESHOLD, threshold);
        }
        assert_eq!(marker(&world.call::<ContextGuard>()), said, "{percent} of {threshold:?}");
        assert_eq!(omc.path().join(COUNT).exists(), !said.is_empty());
    }
}

#[test]
fn the_fill_comes_from_event_transcript_or_status_line() {
    let line =
        |tokens: u64| json!({"message": {"usage": {"input_tokens": tokens}}, "context_window": 1000}).to_string();
    for (window, transcript, noted, said) in [
        (Some(80), None, None, "[OMC HIGH]"),
        (None, Some(850), None, "[OMC HIGH]"),
        (None, Some(740), None, ""),
        (None, None, Some(91), "[OMC CRITICAL]"),
        (Some(10), Some(850), Some(91), ""),
        (None, None, None, ""),
    ] {
        let omc = tempfile::tempdir().expect("a folder");
        let mut world = world(&omc, "stop", &window.map_or(json!({}), full));
        world.transcript = transcript.map(line);
        if let Some(percent) = noted {
            let path = omc.path().join("state/sessions/s1");
            fs::create_dir_all(&path).expect("a folder");
            fs::write(path.join("hud-stdin-cache.json"), full(percent).to_string()).expect("a file");
        }
        assert_eq!(marker(&world.call::<ContextGuard>()), said, "{window:?} {transcript:?} {noted:?}");
    }
}

#[test]
fn two_refusals_are_enough_until_the_next_compaction() {
    for (kind, over) in [("pre-compact", json!({"trigger": "auto"})), ("session-start", json!({"source": "compact"}))] {
        let omc = tempfile::tempdir().expect("a folder");
        let stop = || world(&omc, "stop", &full(85)).call::<ContextGuard>();
        assert_eq!([stop(), stop(), stop()].each_ref().map(marker), ["[OMC HIGH]", "[OMC HIGH]", ""]);
        assert_eq!(world(&omc, kind, &over).call::<ContextGuard>().decision, Ok(Decision::Pass));
        assert_eq!(marker(&stop()), "[OMC HIGH]", "{kind}");
    }
}

#[test]
fn the_guard_lets_go_when_it_cannot_count_or_should_not_speak() {
    let reason = |reason: &str| json!({"stop_reason": reason, "context_window": {"used_percentage": 85}});
    let with = |name: &str, value: Value| {
        let mut event = full(85);
        event[name] = value;
        event
    };
    for event in [
        reason("context_limit"),
        reason("user_cancel"),
        reason("401"),
        reason("429"),
        with("user_requested", json!(true)),
        with("session_id", json!(null)),
        with("session_id", json!("../s1")),
        with("agent_id", json!("a1")),
    ] {
        let omc = tempfile::tempdir().expect("a folder");
        assert_eq!(marker(&world(&omc, "stop", &event).call::<ContextGuard>()), "", "{event}");
        assert!(!omc.path().join("state").exists(), "{event}");
    }
    let omc = tempfile::tempdir().expect("a folder");
    let mut busy = world(&omc, "stop", &full(85));
    busy.locks_are_free = false;
    let outcome = busy.call::<ContextGuard>();
    assert!(marker(&outcome).is_empty() && outcome.logged[0].contains("let the agent stop"));
    let again = json!({"stop_hook_active": true, "context_window": {"used_percentage": 85}});
    assert_eq!(marker(&world(&omc, "stop", &again).call::<ContextGuard>()), "[OMC HIGH]");
}
