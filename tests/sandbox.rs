//! The promises about guests of others, each broken on purpose: limits, components that do not fit, compiled code that is
//! damaged, guests that fault again and again, and texts that want to be taken for something else.
//!
//! Through the real host, with the puppet as the guest of others and keyword-detector as the one that must not notice.
#![cfg(target_os = "linux")]

mod packed;
mod small_disk;
mod world;

#[path = "sandbox/code.rs"]
mod code;
#[path = "sandbox/components.rs"]
mod components;
#[path = "sandbox/faults.rs"]
mod faults;
#[path = "sandbox/limits.rs"]
mod limits;
#[path = "sandbox/texts.rs"]
mod texts;

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use world::{Guest, Running, World, printed, run, write};

/// Longest time for an answer: the design's bound for an event, and the process around it.
const IN_TIME: Duration = Duration::from_secs(3);

/// A world with the puppet, which may write all of `.omc`.
fn world_with_puppet() -> World {
    World::new(&[Guest { name: "puppet".to_owned(), grants: vec!["omc=rw:/omc".to_owned()] }])
}

/// A prompt that keyword-detector has something to say about, and with which the puppet is to take some steps.
fn prompt(world: &World, steps: &Value) -> Vec<u8> {
    let event = json!({
        "hook_event_name": "UserPromptSubmit",
        "session_id": "s1",
        "cwd": world.project(),
        "prompt": "ralph: fix src/queue.rs until all tests pass",
        "puppet": steps,
    });
    event.to_string().into_bytes()
}

/// What became of an event.
struct Outcome {
    /// The answer without what the puppet adds to it.
    answer: Value,
    /// The puppet's record; null if it was not called.
    puppet: Value,
    /// Notes about the event.
    notes: Vec<String>,
}

impl Outcome {
    fn fault(&self) -> &str {
        self.puppet["fault"]["kind"].as_str().unwrap_or_default()
    }

    fn detail(&self) -> &str {
        self.puppet["fault"]["detail"].as_str().unwrap_or_default()
    }
}

/// Sends the prompt; the answer must be in time and hold what keyword-detector says, whatever the puppet does.
fn send(world: &World, host: Command, steps: &Value) -> Outcome {
    let before = world.trail().len();
    let run = Running::start(host, prompt(world, steps)).finish();
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{steps}");
    assert!(run.took < IN_TIME, "it took {:?}: {steps}", run.took);
    let answer: Value = serde_json::from_slice(&run.stdout).expect("an answer");
    assert!(answer.to_string().contains("[MAGIC KEYWORD: RALPH]"), "the other guest is not heard: {answer}");
    let trail = world.trail();
    let records: Vec<Value> =
        trail[before..].lines().map(|line| serde_json::from_str(line).expect("a record is never torn")).collect();
    let of = |name: &str| records.iter().map(|record| record["guest"].clone()).find(|guest| guest["name"] == name);
    let honest = of("keyword-detector").expect("the other guest is called");
    assert_eq!(honest.get("fault"), None, "{honest}");
    let notes = records.iter().filter(|record| record.get("guest").is_none());
    let notes = notes.filter_map(|record| Some(record["note"].as_str()?.to_owned())).collect();
    Outcome { answer, puppet: of("puppet").unwrap_or_default(), notes }
}

/// Sends the prompt to the host as it was built, which has no compiler beside it.
fn act(world: &World, steps: &Value) -> Outcome {
    send(world, world.host(["hook", "--agent", "claude"]), steps)
}

fn configure(world: &World, text: &str) {
    write(&config_file(world), 0o600, text.as_bytes());
}

fn config_file(world: &World) -> PathBuf {
    world.path("home/.config/omc-host/config.toml")
}
