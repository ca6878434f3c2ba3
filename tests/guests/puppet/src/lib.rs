//! A guest for tests that does what the event asks of it, good or bad.
//!
//! The payload's member `puppet` is a list of steps, done in order; the last decision counts. What a step finds out is written
//! to the log, so that a test sees it in the trail: `read /omc/x: ok 12` or `read /omc/x: error …`.

use std::fs;
use std::hint::black_box;
use std::io::Read as _;
use std::path::Path;
use std::time::{Duration, Instant};

use omc_guest::{
    Decision, Effects, Error, Event, Guest, environment, git, log, project_files, session_environment, settings,
    state_lock, transcript,
};
use serde_json::Value;

struct Puppet;

impl Guest for Puppet {
    fn handle(event: &Event<'_>, effects: &mut Effects<'_>) -> Result<Decision, Error> {
        let mut decision = Decision::Pass;
        let steps = event.field("/puppet").and_then(|steps| steps.as_array().cloned()).unwrap_or_default();
        for step in &steps {
            let Some((verb, argument)) = step.as_object().and_then(|step| step.iter().next()) else {
                return Err(Error::new(format!("not a step: {step}")));
            };
            if let Some(chosen) = act(verb, argument, event, effects)? {
                decision = chosen;
            }
        }
        Ok(decision)
    }
}

/// Does one step; a decision step returns its decision.
fn act(verb: &str, argument: &Value, event: &Event<'_>, effects: &mut Effects<'_>) -> Result<Option<Decision>, Error> {
    let text = argument.as_str().unwrap_or_default();
    let pair = |at: usize| argument.get(at).and_then(Value::as_str).unwrap_or_default();
    let number = argument.as_u64().unwrap_or_default();
    match verb {
        // Decisions.
        "pass" => return Ok(Some(Decision::Pass)),
        "allow" => return Ok(Some(Decision::Allow)),
        "ask" => return Ok(Some(Decision::Ask(text.to_owned()))),
        "block" => return Ok(Some(Decision::Block(text.to_owned()))),
        "block-with-units" => return Ok(Some(Decision::Block("x".repeat(usize_of(number))))),
        "halt" => return Ok(Some(Decision::Halt(text.to_owned()))),
        "fail" => return Err(Error::new(text)),

        // Effects.
        "context" => report(verb, text, effects.add_context(text).map(|()| 0)),
        "context-of-units" => report(verb, "", effects.add_context(&"x".repeat(usize_of(number))).map(|()| 0)),
        "message" => report(verb, text, effects.add_message(text).map(|()| 0)),
        "update-input" => report(verb, "", effects.update_input(argument).map(|()| 0)),

        // Misbehaviour.
        "loop" => loop {
            black_box(());
        },
        "trap" => std::process::abort(),
        "panic" => panic!("{text}"),
        "recurse" => log::info(&format!("recurse: {}", recurse(0))),
        "recurse-times" => log::info(&format!("recurse-times: ok {}", recurse_times(number))),
        "allocate" => {
            let mut held = Vec::new();
            loop {
                held.push(black_box(vec![1_u8; 1024 * 1024]));
            }
        }
        "sleep-ms" => std::thread::sleep(Duration::from_millis(number)),
        "spin-ms" => {
            let began = Instant::now();
            while began.elapsed() < Duration::from_millis(number) {
                black_box(());
            }
        }
        "log" => log::info(text),
        "log-of-bytes" => log::info(&"x".repeat(usize_of(number))),
        "log-times" => (0..number).for_each(|_| log::info("again")),
        "print" => println!("{text}"),
        "exit" => std::process::exit(i32::try_from(number).unwrap_or(1)),

        // Files.
        "read" => report(verb, text, fs::read(text).map(|bytes| bytes.len())),
        "read-first-bytes" => report(verb, text, read_first_bytes(Path::new(text))),
        "list" => report(verb, text, fs::read_dir(text).map(Iterator::count)),
        "stat" => report(verb, text, fs::metadata(text).map(|about| usize_of(about.len()))),
        "hold" => {
            let times = argument.get(1).and_then(Value::as_u64).unwrap_or_default();
            let held: Result<Vec<_>, _> = (0..times).map(|_| fs::File::open(pair(0))).collect();
            report(verb, pair(0), held.map(|held| held.len()));
        }
        "write" => report(verb, pair(0), fs::write(pair(0), pair(1)).map(|()| pair(1).len())),
        "write-bytes" => {
            let size = usize_of(argument.get(1).and_then(Value::as_u64).unwrap_or_default());
            report(verb, pair(0), fs::write(pair(0), vec![b'x'; size]).map(|()| size));
        }
        "append" => report(verb, pair(0), append(Path::new(pair(0)), pair(1))),
        "create-dir" => report(verb, text, fs::create_dir_all(text).map(|()| 0)),
        "remove" => report(verb, text, fs::remove_file(text).map(|()| 0)),
        "remove-dir" => report(verb, text, fs::remove_dir(text).map(|()| 0)),
        "rename" => report(verb, pair(0), fs::rename(pair(0), pair(1)).map(|()| 0)),
        "hard-link" => report(verb, pair(0), fs::hard_link(pair(0), pair(1)).map(|()| 0)),
        "read-link" => report(verb, text, fs::read_link(text).map(|_| 0)),
        "truncate" => {
            report(verb, text, fs::File::options().write(true).open(text).and_then(|f| f.set_len(0)).map(|()| 0))
        }

        // The host's interfaces.
        "env" => log::info(&format!("env {text}: {:?}", environment::get(text))),
        "setting" => log::info(&format!("setting {text}: {:?}", settings::get::<Value>(text))),
        "transcript" => {
            let found = transcript::tail(u32::try_from(number).unwrap_or(u32::MAX));
            log::info(&format!("transcript: {:?}", found.map(|tail| tail.len())));
        }
        "lock" => {
            let lock = state_lock::acquire(text, Duration::from_millis(100));
            log::info(&format!("lock {text}: {}", if lock.is_ok() { "held" } else { "not held" }));
        }
        "hold-lock" => {
            let lock = state_lock::acquire(pair(0), Duration::from_millis(100));
            log::info(&format!("hold-lock {}: {}", pair(0), if lock.is_ok() { "held" } else { "not held" }));
            std::thread::sleep(Duration::from_millis(argument.get(1).and_then(Value::as_u64).unwrap_or_default()));
        }
        "read-file" => {
            let found = project_files::read(root(pair(0)), pair(1), MAX_FILE_BYTES);
            report(verb, &format!("{}:{}", pair(0), pair(1)), found.map(|text| text.len()));
        }
        "list-files" => {
            let found = project_files::list(root(pair(0)), pair(1), MAX_ENTRIES);
            let names = found.map(|entries| entries.into_iter().map(|entry| entry.name).collect::<Vec<_>>());
            log::info(&format!("list-files {}:{}: {names:?}", pair(0), pair(1)));
        }
        "find-files" => {
            let found = project_files::find(root(pair(0)), pair(1), MAX_ENTRIES);
            log::info(&format!("find-files {}:{}: {found:?}", pair(0), pair(1)));
        }
        "git" => log::info(&format!(
            "git: {:?} {:?} {:?}",
            git::branch(),
            git::head().map(|head| head.map(|id| id.len())),
            git::changed_paths(MAX_ENTRIES)
        )),
        "session-env" => report(verb, pair(0), session_environment::set(pair(0), pair(1)).map(|()| 0)),
        "tool" => log::info(&format!(
            "tool: {:?} {:?} {:?} {:?} {:?} {} {:?} {:?}",
            event.tool_kind(),
            event.tool_paths(),
            event.tool_command(),
            event.tool_result().map(|text| text.len()),
            event.tool_failed(),
            event.tool_interrupted(),
            event.permission_mode(),
            event.source()
        )),
        "text" => log::info(&format!("text {text}: {:?}", event.text(text).map(|found| found.len()))),
        "facts" => log::info(&format!(
            "facts: {:?} {} {:?} {:?}",
            event.kind(),
            event.agent(),
            event.session_id(),
            event.tool_name()
        )),
        "host-calls" => (0..number).for_each(|_| drop(black_box(event.tool_name()))),
        _ => return Err(Error::new(format!("unknown step `{verb}`"))),
    }
    Ok(None)
}

/// Longest file that `read-file` asks for, in bytes.
const MAX_FILE_BYTES: u32 = 64 * 1024;
/// Most entries that the steps ask for.
const MAX_ENTRIES: u32 = 100;

fn root(name: &str) -> project_files::Root {
    match name {
        "agent" => project_files::Root::Agent,
        "home" => project_files::Root::Home,
        _ => project_files::Root::Project,
    }
}

/// Says in the log how a step went.
fn report<E: std::fmt::Display>(verb: &str, what: &str, outcome: Result<usize, E>) {
    match outcome {
        Ok(count) => log::info(&format!("{verb} {what}: ok {count}")),
        Err(error) => log::info(&format!("{verb} {what}: error {error}")),
    }
}

fn usize_of(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

fn read_first_bytes(path: &Path) -> std::io::Result<usize> {
    let mut first = [0; 16];
    fs::File::open(path)?.read(&mut first)
}

fn append(path: &Path, text: &str) -> std::io::Result<usize> {
    use std::io::Write as _;
    let mut file = fs::File::options().append(true).create(true).open(path)?;
    file.write_all(text.as_bytes())?;
    Ok(text.len())
}

/// Goes down until the stack ends.
#[allow(unconditional_recursion, reason = "it is there to overflow the stack")]
fn recurse(depth: u64) -> u64 {
    black_box(recurse(black_box(depth + 1)) + 1)
}

/// Goes down this many times, and comes back.
fn recurse_times(times: u64) -> u64 {
    if times == 0 { 0 } else { black_box(recurse_times(black_box(times - 1)) + 1) }
}

omc_guest::export!(Puppet, {
    "description": "Does what the event asks of it",
    "subscriptions": [
        { "event": "session-start" },
        { "event": "setup" },
        { "event": "instructions-loaded" },
        { "event": "user-prompt-submit" },
        { "event": "user-prompt-expansion" },
        { "event": "message-display" },
        { "event": "pre-tool-use" },
        { "event": "permission-request" },
        { "event": "permission-denied" },
        { "event": "post-tool-use" },
        { "event": "post-tool-use-failure" },
        { "event": "post-tool-batch" },
        { "event": "notification" },
        { "event": "subagent-start" },
        { "event": "subagent-stop" },
        { "event": "stop" },
        { "event": "stop-failure" },
        { "event": "teammate-idle" },
        { "event": "task-created" },
        { "event": "task-completed" },
        { "event": "config-change" },
        { "event": "cwd-changed" },
        { "event": "directory-added" },
        { "event": "file-changed" },
        { "event": "worktree-create" },
        { "event": "worktree-remove" },
        { "event": "pre-compact" },
        { "event": "post-compact" },
        { "event": "pre-model-switch" },
        { "event": "post-model-switch" },
        { "event": "interrupt" },
        { "event": "session-end" },
        { "event": "elicitation" },
        { "event": "elicitation-result" }
    ],
    "requests": [
        { "capability": "omc", "scope": ["rw:/omc", "ro:/omc/read-only"], "reason": "tries files" },
        { "capability": "env", "scope": ["PUPPET"], "reason": "tries variables" },
        { "capability": "transcript", "reason": "tries the transcript" },
        {
            "capability": "read",
            "scope": ["project:**/*.md", "project:.claude/rules/**", "agent:*.json", "home:.agents/**"],
            "reason": "tries project files"
        },
        { "capability": "git", "reason": "tries the repository" },
        { "capability": "session-environment", "scope": ["PUPPET_STAGE"], "reason": "tries variables of the session" },
        { "capability": "update-input", "reason": "tries to rewrite" },
        { "capability": "allow", "reason": "tries to let things happen" },
        { "capability": "halt", "reason": "tries to end the turn" }
    ]
});
