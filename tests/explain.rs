//! The dry run against the real one: `explain` shows the bytes that `hook` would send, and nothing changes.
#![cfg(unix)]

mod snapshot;
mod world;

use std::os::unix::fs::symlink;
use std::time::Duration;

use serde_json::{Value, json};

use snapshot::Snapshot;
use world::{Guest, Run, Running, World, write};

/// Longest time for a dry run: the design's bound for an event, the copies and the process around it.
const IN_TIME: Duration = Duration::from_secs(4);

/// A world with the puppet, which may write all of `.omc`, and some state.
fn world() -> World {
    let grants = vec!["omc=rw:/omc".to_owned(), "update-input".to_owned()];
    let world = World::new(&[Guest { name: "puppet".to_owned(), grants }]);
    write(&world.path("project/.omc/state/kept.json"), 0o600, b"{}");
    write(&world.path("outside/precious"), 0o600, b"precious");
    symlink(world.path("outside"), world.path("project/.omc/link")).expect("linked");
    world
}

fn event(world: &World, kind: &str, more: &Value) -> Value {
    let mut event = json!({"hook_event_name": kind, "session_id": "s1", "cwd": world.project()});
    let members = event.as_object_mut().expect("it is an object");
    members.extend(more.as_object().expect("members are an object").clone());
    event
}

fn run(world: &World, args: &[&str], event: &Value) -> Run {
    Running::start(world.host(args), event.to_string().into_bytes()).finish()
}

fn explain(world: &World, event: &Value) -> Value {
    let run = run(world, &["explain", "--agent", "claude", "--json"], event);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    assert!(run.took < IN_TIME, "{:?}", run.took);
    assert_eq!(world.trail(), "", "a dry run leaves no trail");
    serde_json::from_slice(&run.stdout).expect("JSON")
}

fn everything(world: &World) -> Snapshot {
    Snapshot::of(&["project", "home", "outside"].map(|tree| world.path(tree)), &[])
}

fn record<'a>(explanation: &'a Value, guest: &str) -> &'a Value {
    let records = explanation["records"].as_array().expect("records");
    records.iter().map(|record| &record["guest"]).find(|record| record["name"] == guest).expect("it was called")
}

#[test]
fn the_bytes_are_those_of_the_real_run_and_nothing_changes() {
    let cases = [
        ("UserPromptSubmit", json!({"prompt": "ralph fix src/a.rs", "puppet": [{"context": "more"}]})),
        (
            "PreToolUse",
            json!({"tool_name": "Bash", "tool_input": {"command": "ls"}, "puppet": [
                {"write": ["/omc/new", "x"]}, {"write": ["/omc/state/kept.json", "changed"]}, {"block": "no"},
            ]}),
        ),
        (
            "PreToolUse",
            json!({"tool_name": "Bash", "tool_input": {"command": "ls"}, "puppet": [
                {"update-input": {"command": "pwd"}}, {"message": "for you"},
            ]}),
        ),
        ("PreToolUse", json!({"tool_name": "Bash", "tool_input": {"command": "ls"}, "puppet": [{"trap": 1}]})),
        ("Stop", json!({"puppet": [{"block": "go on"}]})),
        ("Notification", json!({"message": "m"})),
    ];
    for (kind, more) in cases {
        let world = world();
        let event = event(&world, kind, &more);
        let before = everything(&world);
        let explanation = explain(&world, &event);
        before.assert_same(&everything(&world), &event.to_string());
        let real = run(&world, &["hook", "--agent", "claude"], &event);
        assert_eq!(explanation["stdout"], String::from_utf8_lossy(&real.stdout).as_ref(), "{event}");
        assert_eq!(explanation["exit-code"], 0);
    }
}

#[test]
fn a_guest_sees_the_state_on_its_copy_and_nothing_beyond() {
    let world = world();
    let steps = json!([
        {"read": "/omc/state/kept.json"},
        {"write": ["/omc/state/kept.json", "changed"]},
        {"read": "/omc/link/precious"},
        {"stat": "/omc/link"},
    ]);
    let event = event(&world, "Stop", &json!({"puppet": steps}));
    let explanation = explain(&world, &event);
    let log: Vec<&str> =
        record(&explanation, "puppet")["log"].as_array().expect("a log").iter().filter_map(Value::as_str).collect();
    assert_eq!(log[..2], ["info: read /omc/state/kept.json: ok 2", "info: write /omc/state/kept.json: ok 7"]);
    assert!(log[2].contains("error") && log[3].contains("error"), "{log:?}");
    assert!(explanation["copied"][0].as_str().is_some_and(|copied| copied.contains("1 left out")), "{explanation}");
}

#[test]
fn each_call_is_there_with_what_became_of_it() {
    let world = world();
    let puppet = json!([{"context": "for the model"}, {"halt": "end"}]);
    let explanation = explain(&world, &event(&world, "Stop", &json!({"puppet": puppet})));
    let record = record(&explanation, "puppet");
    assert_eq!((&record["decision"], &record["reason"]), (&json!("block"), &json!("end")));
    assert_eq!(record["dropped"], json!(["context: this event of this agent cannot carry it"]));
    assert!(record["refused"].as_array().is_some_and(|refused| refused.contains(&json!("halt ×1"))), "{record}");
    assert!(record["fuel"].as_u64().is_some_and(|fuel| fuel > 0));
    assert_eq!(explanation["merged"], json!({"decision": "block", "reason": "end"}));
    let guests = explanation["guests"].as_array().expect("guests");
    let called = |name: &str| guests.iter().find(|guest| guest["guest"] == name).map(|guest| guest["called"].clone());
    assert_eq!((called("puppet"), called("keyword-detector")), (Some(json!(true)), Some(json!(false))));
}

#[test]
fn a_text_over_the_limit_is_kept_in_a_file_by_the_real_run_alone() {
    let world = world();
    // All that one guest may give; with what stands between the texts it is more than the agent takes.
    let many = json!([{"context-of-units": 5_000}, {"context-of-units": 4_996}, {"context": "late"}]);
    let event = event(&world, "SessionStart", &json!({"source": "startup", "puppet": many}));
    let explanation = explain(&world, &event);
    assert!(!world.path("project/.omc/spill").exists());
    let real = run(&world, &["hook", "--agent", "claude"], &event);
    assert_eq!(explanation["stdout"], String::from_utf8_lossy(&real.stdout).as_ref());
    let answer: Value = serde_json::from_slice(&real.stdout).expect("JSON");
    let context = answer["hookSpecificOutput"]["additionalContext"].as_str().expect("a context");
    let path = context.split('`').nth(1).expect("a path");
    let whole = std::fs::read_to_string(path).expect("the file is there");
    assert!(whole.len() > 10_000 && whole.ends_with("late") && context.ends_with("late"));
}

#[test]
fn what_is_no_event_and_who_is_no_agent_is_said() {
    let world = world();
    for (args, stdin) in
        [(&["explain"][..], ""), (&["explain", "--agent", "nobody"], "{}"), (&["explain", "gone.json"], "")]
    {
        let run = Running::start(world.host(args), stdin.as_bytes().to_vec()).finish();
        assert_eq!(run.code, Some(1), "{args:?}");
        assert!(run.stdout.is_empty() && run.stderr.starts_with("omc-host: "), "{}", run.stderr);
    }
}
