//! Guests that were built long ago still work: every frozen component loads, links and gets from each function what it got then,
//! and the interface only grows. `compat/README.md` says what is frozen and how.
//!
//! A guest for a later interface is refused with both versions named: see `sandbox/components.rs`.
#![cfg(target_os = "linux")]

mod world;

#[path = "compat/interface.rs"]
mod interface;

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use lzma_rust2::XzReader;
use serde_json::{Value, json};

use world::{Running, World, compiler, write};

/// Time for adding a guest: a runtime of 18 MB takes seconds to compile, and here both cores compile.
const ADDING: Duration = Duration::from_mins(5);

/// Everything that they request.
const GRANTS: &[&str] = &[
    "read=project:*.md",
    "transcript",
    "git",
    "env=CI",
    "session-environment=COMPAT",
    "allow",
    "halt",
    "update-input",
];

/// What every frozen guest says about an event for a tool when it is asked for everything.
const ABOUT_A_TOOL: &str = "\
kind: pre-tool-use
agent: claude
session-id: s1
subagent-id: a1
cwd: true
project-root: true
in-work-tree: true
prompt: -
tool-name: Edit
field: 7
text: -
permission-mode: default
source: -
tool-kind: edit
tool-paths: edit /p/a.rs
tool-command: -
tool-result: -
tool-failed: -
tool-interrupted: false
settings: -
state-lock: held
transcript: {\"type\":\"user\"}
environment: true
read: # Notes
second
read-start: # 
list: file notes.md 15 true
find: notes.md true
branch: error denied
head: error denied
changed-paths: error denied
added-lines: error denied
session-environment: set
add-message: added
update-input: updated";

/// And about a prompt.
const ABOUT_A_PROMPT: &str = "\
kind: user-prompt-submit
agent: claude
session-id: s1
subagent-id: -
cwd: true
project-root: true
in-work-tree: true
prompt: hello
tool-name: -
field: \"seven\"
text: seven
permission-mode: -
source: -
tool-kind: -
tool-paths: 
tool-command: -
tool-result: -
tool-failed: -
tool-interrupted: false
settings: -
state-lock: held
transcript: {\"type\":\"user\"}
environment: true
read: # Notes
second
read-start: # 
list: file notes.md 15 true
find: notes.md true
branch: main
head: 40
changed-paths: modified notes.md true
added-lines: 2
session-environment: set
add-message: added
update-input: updated";

#[test]
fn every_frozen_guest_loads_and_gets_what_it_got_then() {
    let guests = frozen("wasm.xz");
    for language in ["js", "python", "rust"] {
        let name = format!("0.1.0-{language}.wasm.xz");
        assert!(guests.iter().any(|path| path.ends_with(&name)), "{name} is gone");
    }
    thread::scope(|scope| {
        for path in &guests {
            scope.spawn(|| plays_its_part(path));
        }
    });
}

/// The frozen files with this ending, by name.
fn frozen(ending: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/compat");
    let entries = fs::read_dir(folder).expect("frozen files").map(|entry| entry.expect("an entry").path());
    let mut paths: Vec<_> = entries.filter(|path| path.to_string_lossy().ends_with(ending)).collect();
    paths.sort();
    paths
}

fn plays_its_part(packed: &Path) {
    let world = world_with_a_repository();
    let file = packed.file_stem().expect("a name").to_string_lossy().into_owned();
    let language = file.trim_end_matches(".wasm").rsplit('-').next().expect("a language");
    let mut component = Vec::new();
    let mut reader = XzReader::new(fs::File::open(packed).expect("a frozen guest"), false);
    reader.read_to_end(&mut component).expect("a frozen guest is whole");
    write(&world.path(&file), 0o600, &component);
    add(&world, &file, language);

    let tool = json!({
        "hook_event_name": "PreToolUse", "session_id": "s1", "agent_id": "a1", "permission_mode": "default", "cwd": world.project(),
        "transcript_path": world.path("home/.claude/projects/p/s1.jsonl"), "number": 7,
        "tool_name": "Edit", "tool_input": {"file_path": "/p/a.rs", "old_string": "a", "new_string": "b"},
    });
    let asked_for = |event: &Value, wanted: &str| {
        let mut event = event.clone();
        event["compat"] = json!(wanted);
        call(&world, &event)
    };
    let everything = asked_for(&tool, "everything");
    assert_eq!(everything.context(), ABOUT_A_TOOL, "{file}");
    assert_eq!(everything.answer["systemMessage"], "a message", "{file}");
    assert_eq!(everything.record["log"], json!(["info: asked for everything"]), "{file}");
    assert_eq!(everything.answer["hookSpecificOutput"]["updatedInput"], json!({"command": "true"}), "{file}");

    for (wanted, decision) in [("ask", "ask"), ("block", "deny"), ("allow", "allow")] {
        let output = asked_for(&tool, wanted).answer["hookSpecificOutput"].clone();
        assert_eq!(output["permissionDecision"], decision, "{file}");
        if wanted != "allow" {
            assert_eq!(output["permissionDecisionReason"], format!("for the reason {wanted}"), "{file}");
        }
    }
    let halted = asked_for(&tool, "halt").answer;
    assert_eq!((&halted["continue"], &halted["stopReason"]), (&json!(false), &json!("for the reason halt")), "{file}");
    let failed = asked_for(&tool, "fail");
    assert_eq!(failed.record["fault"], json!({"kind": "guest", "detail": "on purpose"}), "{file}: {}", failed.record);

    let prompt = json!({
        "hook_event_name": "UserPromptSubmit", "session_id": "s1", "cwd": world.project(), "prompt": "hello", "number": "seven",
        "transcript_path": tool["transcript_path"],
    });
    let prompted = asked_for(&prompt, "everything");
    assert_eq!(prompted.context(), ABOUT_A_PROMPT, "{file}");
}

/// What a call of a frozen guest came to.
struct Called {
    answer: Value,
    record: Value,
}

impl Called {
    fn context(&self) -> &str {
        self.answer["hookSpecificOutput"]["additionalContext"].as_str().unwrap_or_default()
    }
}

fn call(world: &World, event: &Value) -> Called {
    let before = world.trail().len();
    let mut host = world.host(["hook", "--agent", "claude"]);
    host.env("CI", "true").env("OMC_SKIP_HOOKS", format!("{},keyword-detector,persistent-mode", world::others()));
    let run = Running::start(host, event.to_string().into_bytes()).finish();
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    let answer = serde_json::from_slice(&run.stdout).expect("an answer");
    let trail = world.trail();
    let records = trail[before..].lines().map(|line| serde_json::from_str::<Value>(line).expect("a record"));
    let record = records.map(|record| record["guest"].clone()).find(Value::is_object).expect("a call in the trail");
    Called { answer, record }
}

fn add(world: &World, file: &str, language: &str) {
    let mut command = world.host(["guests", "add"]);
    command.arg(world.path(file)).args(["--yes", "--compiler"]).arg(compiler());
    command.arg("--grant").arg(format!("omc=rw:/omc/guests/compat-{language}"));
    for grant in GRANTS {
        command.args(["--grant", grant]);
    }
    let run = Running::start(command, Vec::new()).within(ADDING).finish();
    assert_eq!(run.code, Some(0), "{file}: {}", run.stderr);
}

/// A world whose project is a repository with a commit, and a file that differs from it in its second line.
fn world_with_a_repository() -> World {
    let world = World::new(&[]);
    fs::remove_dir_all(world.path("project/.git")).expect("removed");
    let notes = world.path("project/notes.md");
    let git = |args: &[&str]| {
        let mut git = Command::new("git");
        git.args(["-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false"]).args(args);
        git.current_dir(world.project()).env("HOME", world.home()).env("GIT_CONFIG_NOSYSTEM", "1");
        assert!(git.status().expect("git runs").success(), "{args:?}");
    };
    git(&["init", "--quiet", "--initial-branch", "main"]);
    write(&notes, 0o600, b"# Notes\n");
    git(&["add", "notes.md"]);
    git(&["commit", "--quiet", "--message", "notes"]);
    write(&notes, 0o600, b"# Notes\nsecond\n");
    write(&world.path("home/.claude/projects/p/s1.jsonl"), 0o600, b"{\"type\":\"user\"}\n");
    world
}
