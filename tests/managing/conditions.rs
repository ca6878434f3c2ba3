//! Conditions of subscriptions: what a guest asks the host to look at is no way past another one, nor past itself.

use serde_json::json;

use super::{change, configure, text};
use crate::packed::with_manifest;
use crate::world::{Running, World, write};

/// A world in which these guests are there: a name, and the conditions of subscriptions to the same event.
fn world_with(guests: &[(&str, Vec<Vec<String>>)]) -> World {
    let world = World::new(&[]);
    for (name, subscriptions) in guests {
        let wanted: Vec<_> = subscriptions.iter().map(|when| json!({"event": "pre-tool-use", "when": when})).collect();
        let manifest = json!({"name": name, "version": "1.0.0", "subscriptions": wanted});
        let file = world.path("outside").join(name).with_extension("wasm");
        write(&file, 0o600, &with_manifest(&manifest));
        let added = change(&world, &["add", text(&file)]);
        assert_eq!(added.code, Some(0), "{}", added.stderr);
    }
    world
}

/// What the agent hears about a tool.
fn answer(world: &World, event: Vec<u8>) -> String {
    let run = Running::start(world.host(["hook", "--agent", "claude"]), event).finish();
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    String::from_utf8(run.stdout).expect("UTF-8")
}

#[test]
fn an_event_that_cannot_be_read_is_no_way_past_the_condition_of_a_required_guest() {
    let world = world_with(&[("guard", vec![vec!["payload:secret".to_owned()]])]);
    configure(&world, "[guests.guard]\nrequired = true\n");
    let event = |command: &str, end: &str| {
        let cwd = world.project();
        let cwd = text(&cwd);
        format!(
            r#"{{"hook_event_name":"PreToolUse","session_id":"s1","cwd":"{cwd}","tool_name":"Bash","tool_input":{{"command":"{command}{end}"#
        )
    };
    assert!(!answer(&world, event("ls", r#""}}"#).into_bytes()).contains("deny"), "it does not want this one");
    assert!(answer(&world, event("ls; ", "").into_bytes()).contains(r#""permissionDecision":"deny""#), "cut off");
}

#[test]
fn conditions_without_end_keep_no_required_guest_from_its_say() {
    let hostile =
        (0..8).map(|row| (0..60).map(|at| format!("payload:{}{row}{at}", "a".repeat(100))).collect()).collect();
    let world = world_with(&[("hog", hostile), ("guard", vec![Vec::new()])]);
    configure(&world, "[guests.guard]\nrequired = true\n");
    let event = json!({
        "hook_event_name": "PreToolUse", "session_id": "s1", "cwd": world.project(), "tool_name": "Write",
        "tool_input": {"file_path": "x", "content": "a".repeat(1_000_000)}, "puppet": [{"block": "never"}],
    });
    let answer = answer(&world, event.to_string().into_bytes());
    assert!(answer.contains(r#""permissionDecision":"deny""#), "{answer}");
    assert!(!world.trail().contains("not done by the event's deadline"), "{}", world.trail());
}
