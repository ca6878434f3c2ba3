//! Guests of others as a person manages them: added, updated, granted, signed, switched, verified, audited; and what a project,
//! a stranger's file or a wrong key can do about it, which is nothing.
#![cfg(target_os = "linux")]

mod packed;
mod world;

#[path = "managing/adding.rs"]
mod adding;
#[path = "managing/audit.rs"]
mod audit;
#[path = "managing/changing.rs"]
mod changing;
#[path = "managing/conditions.rs"]
mod conditions;
#[path = "managing/signatures.rs"]
mod signatures;
#[path = "managing/trail.rs"]
mod trail;

use std::path::PathBuf;

use serde_json::{Value, json};

use packed::with_manifest;
use world::{Guest, Run, Running, World, compiler, printed, run, write};

/// A world with the puppet and these grants.
fn world_with(grants: &[&str]) -> World {
    World::new(&[Guest { name: "puppet".to_owned(), grants: grants.iter().map(ToString::to_string).collect() }])
}

/// Why a command fails; it must.
fn refused<'a>(world: &World, args: impl IntoIterator<Item = &'a str>) -> String {
    let run = run(world, args);
    assert_eq!(run.code, Some(1), "{}", String::from_utf8_lossy(&run.stdout));
    run.stderr
}

/// `guests add` or `update` with the compiler of these tests and no questions.
fn change(world: &World, args: &[&str]) -> Run {
    let mut command = world.host(["guests"]);
    command.args(args).args(["--yes", "--compiler"]).arg(compiler());
    Running::start(command, Vec::new()).finish()
}

/// A guest that requests some things, in a file.
fn guest_file(world: &World, name: &str, version: &str, requests: &Value) -> PathBuf {
    let manifest = json!({
        "name": name, "version": version, "description": "Tries things",
        "subscriptions": [{"event": "user-prompt-submit"}, {"event": "pre-tool-use", "matcher": "Bash"}],
        "requests": requests,
    });
    let file = world.path("outside").join(name).with_extension("wasm");
    write(&file, 0o600, &with_manifest(&manifest));
    file
}

fn text(path: &std::path::Path) -> &str {
    path.to_str().expect("the folders of tests have plain names")
}

/// Sends the puppet a prompt; returns its record.
fn act(world: &World, name: &str, steps: &Value) -> Value {
    let before = world.trail().len();
    let event = json!({
        "hook_event_name": "UserPromptSubmit", "session_id": "s1", "cwd": world.project(), "prompt": "hello", "puppet": steps,
    });
    let run = Running::start(world.host(["hook", "--agent", "claude"]), event.to_string().into_bytes()).finish();
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    let trail = world.trail();
    let records = trail[before..].lines().map(|line| serde_json::from_str::<Value>(line).expect("a record"));
    records.map(|record| record["guest"].clone()).find(|guest| guest["name"] == name).unwrap_or_default()
}

fn configure(world: &World, text: &str) {
    write(&world.path("home/.config/omc-host/config.toml"), 0o600, text.as_bytes());
}

/// The lock file's entry for a guest.
fn entry(world: &World, name: &str) -> Value {
    let list = std::fs::read(world.path("home/.local/share/omc-host/guests.json")).expect("a lock file");
    let lock: Value = serde_json::from_slice(&list).expect("JSON");
    let guests = lock["guests"].as_array().expect("guests").clone();
    guests.into_iter().find(|guest| guest["manifest"]["name"] == name).unwrap_or_default()
}
