//! The MCP server and the commands beside it, with real clients, real hook events and a hostile repository.
//!
//! The client is the one of the SDK that the server is made with, and once the official one in Python, which shares no code with
//! it. What both faces have in common, and refuse, is tried here; the operations' details are tried beside their code.
#![cfg(unix)]

mod snapshot;
#[allow(dead_code, reason = "what other tests need of it")]
mod world;

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use rmcp::ServiceExt as _;
use rmcp::model::CallToolRequestParams;
use rmcp::service::{RoleClient, RunningService};
use rmcp::transport::TokioChildProcess;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use snapshot::Snapshot;
use world::{Run, Running, World, create_dirs, write};

/// Longest time for an answer of a tool: the longest wait for a lock, several times.
const IN_TIME: Duration = Duration::from_secs(5);

const PROMPT: &str = "ralph: fix src/queue.rs until all tests pass";

/// All tools, by the original's names.
const TOOLS: [&str; 28] = [
    "notepad_prune",
    "notepad_read",
    "notepad_stats",
    "notepad_write_manual",
    "notepad_write_priority",
    "notepad_write_working",
    "project_memory_add_directive",
    "project_memory_add_note",
    "project_memory_read",
    "project_memory_write",
    "shared_memory_cleanup",
    "shared_memory_delete",
    "shared_memory_list",
    "shared_memory_read",
    "shared_memory_write",
    "state_clear",
    "state_get_status",
    "state_list_active",
    "state_read",
    "state_write",
    "wiki_add",
    "wiki_delete",
    "wiki_ingest",
    "wiki_lint",
    "wiki_list",
    "wiki_query",
    "wiki_read",
    "wiki_refresh",
];

/// A model with the server's tools.
struct Model {
    // Before the runtime: it ends in it.
    client: RunningService<RoleClient, ()>,
    runtime: Runtime,
}

/// What a tool said.
#[derive(Debug)]
struct Said {
    failed: bool,
    text: String,
}

impl Model {
    /// Starts the server in a project, as an agent does.
    fn of(world: &World) -> Self {
        Self::with(world.host(["mcp"]))
    }

    fn with(command: Command) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let client = runtime.block_on(async {
            let server = TokioChildProcess::new(tokio::process::Command::from(command)).expect("the server starts");
            ().serve(server).await.expect("they agree on a protocol")
        });
        Self { client, runtime }
    }

    /// Calls a tool; a refusal by the protocol is a failure as well.
    fn call(&self, tool: &'static str, arguments: &Value) -> Said {
        let began = Instant::now();
        let arguments = arguments.as_object().expect("arguments are an object").clone();
        let request = CallToolRequestParams::new(tool).with_arguments(arguments);
        let said = match self.runtime.block_on(self.client.call_tool(request)) {
            Ok(result) => {
                let result = serde_json::to_value(result).expect("JSON");
                let text = result["content"][0]["text"].as_str().expect("a text").to_owned();
                Said { failed: result["isError"] == true, text }
            }
            Err(error) => Said { failed: true, text: error.to_string() },
        };
        assert!(began.elapsed() < IN_TIME, "{tool} took {:?}", began.elapsed());
        said
    }

    /// Calls a tool that has to work.
    fn ask(&self, tool: &'static str, arguments: &Value) -> String {
        let said = self.call(tool, arguments);
        assert!(!said.failed, "{tool}: {}", said.text);
        said.text
    }

    /// Calls a tool that has to fail.
    fn fail(&self, tool: &'static str, arguments: &Value) -> String {
        let said = self.call(tool, arguments);
        assert!(said.failed, "{tool} {arguments}: {}", said.text);
        said.text
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        // So that no server outlives its test.
        drop(self.runtime.block_on(self.client.close()));
    }
}

fn event(world: &World, session: &str, kind: &str, more: &Value) -> Running {
    let mut event = json!({"hook_event_name": kind, "session_id": session, "cwd": world.project()});
    let members = event.as_object_mut().expect("it is an object");
    members.extend(more.as_object().expect("members are an object").clone());
    Running::start(world.host(["hook", "--agent", "claude"]), event.to_string().into_bytes())
}

fn send(world: &World, session: &str, kind: &str, more: &Value) -> Run {
    let run = event(world, session, kind, more).finish();
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{kind}");
    run
}

/// Starts ralph in a session as a user does: a keyword, then the skill.
fn begin(world: &World, session: &str) {
    send(world, session, "UserPromptSubmit", &json!({"prompt": PROMPT}));
    send(world, session, "PreToolUse", &json!({"tool_name": "Skill", "tool_input": {"skill": "ralph"}}));
}

/// Whether the session's agent may not stop.
fn is_held(world: &World, session: &str) -> bool {
    let run = send(world, session, "Stop", &json!({}));
    serde_json::from_slice::<Value>(&run.stdout).is_ok_and(|answer| answer["decision"] == "block")
}

fn command(world: &World, args: &[&str]) -> Run {
    Running::start(world.host(args), Vec::new()).finish()
}

/// What a command that has to work prints.
fn printed(world: &World, args: &[&str]) -> String {
    let run = command(world, args);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{args:?}");
    String::from_utf8(run.stdout).expect("UTF-8")
}

fn omc(world: &World, path: &str) -> PathBuf {
    world.path("project/.omc").join(path)
}

#[test]
fn the_model_ends_its_own_mode_and_the_next_stop_is_allowed() {
    for session in [None, Some("s1")] {
        let world = World::new(&[]);
        let model = Model::of(&world);
        begin(&world, "s1");
        assert!(is_held(&world, "s1"));
        let active = model.ask("state_list_active", &json!({}));
        assert!(active.contains("ralph of session s1: at work, iteration 2/100"), "{active}");

        let mut arguments = json!({"mode": "ralph", "active": false});
        arguments.as_object_mut().expect("an object").extend(session.map(|id| ("session_id".to_owned(), json!(id))));
        let said = model.ask("state_write", &arguments);
        assert!(said.contains("wrote ralph of session s1: ended"), "{said}");
        assert!(!is_held(&world, "s1"));
        assert_eq!(model.ask("state_list_active", &json!({})), "no mode is on");

        // The state is there still, with what the user asked for.
        let state = model.ask("state_read", &json!({"mode": "ralph", "session_id": "s1"}));
        assert!(state.contains(PROMPT) && state.contains("\"active\": false"), "{state}");
        begin(&world, "s1");
        assert!(is_held(&world, "s1"), "a new request starts it anew");
    }
}

#[test]
fn an_end_of_what_never_began_is_said_and_makes_no_file() {
    let world = World::new(&[]);
    let model = Model::of(&world);
    for (arguments, said) in [
        (json!({"mode": "ralph", "active": false}), "nothing to end: no session is at work in ralph"),
        (
            json!({"mode": "ralph", "active": false, "session_id": "s7", "current_phase": "complete"}),
            "nothing to end: session s7 has no state of ralph",
        ),
    ] {
        assert_eq!(model.ask("state_write", &arguments), said);
    }
    assert!(!omc(&world, "state").exists());
    let json = printed(&world, &["state", "write", "ralph", "--active", "false", "--session", "s7", "--json"]);
    let json: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json, json!({"mode": "ralph", "session": "s7", "standing": "ended"}));

    // What is to be kept is kept.
    let said = model.ask("state_write", &json!({"mode": "ralph", "active": false, "session_id": "s7", "error": "x"}));
    assert!(said.contains("wrote ralph of session s7: ended"), "{said}");
    assert!(omc(&world, "state/sessions/s7/ralph-state.json").exists());
}

#[test]
fn the_official_client_in_python_sees_the_same() {
    let Some(python) = std::env::var_os("OMC_TEST_MCP_PYTHON") else {
        eprintln!("skipped: `OMC_TEST_MCP_PYTHON` is not set; `cargo xtask test` sets it where there is a python3");
        return;
    };
    let world = World::new(&[]);
    begin(&world, "s1");
    assert!(is_held(&world, "s1"));
    let host = world.host(["mcp"]);
    let mut client = Command::new(python);
    client.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/mcp_client.py")).arg(host.get_program()).arg("mcp");
    client.current_dir(world.project()).env_clear().env("HOME", world.home());
    client.envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
    let calls = json!([
        ["state_read", {"mode": "ralph"}],
        ["notepad_write_working", {"content": "tests pass"}],
        ["notepad_read", {"section": "working"}],
        ["state_write", {"mode": "ralph", "active": false}],
        ["state_clear", {"mode": "no-such-mode"}],
    ]);
    let run = Running::start(client, calls.to_string().into_bytes()).finish();
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let seen: Value = serde_json::from_slice(&run.stdout).expect("JSON");
    assert_eq!(seen["tools"], json!(TOOLS));
    let said = |tool: &str, part: &str| seen["said"][tool]["text"].as_str().is_some_and(|text| text.contains(part));
    assert!(said("state_read", PROMPT) && said("notepad_read", "tests pass"), "{seen:#}");
    assert_eq!(seen["said"]["state_clear"]["error"], true, "{seen:#}");
    assert!(!is_held(&world, "s1"));
}

#[test]
fn every_tool_says_what_it_takes() {
    let world = World::new(&[]);
    let model = Model::of(&world);
    let tools = model.runtime.block_on(model.client.list_all_tools()).expect("tools");
    let names: Vec<_> = tools.iter().map(|tool| tool.name.to_string()).collect::<BTreeSet<_>>().into_iter().collect();
    assert_eq!(names, TOOLS);
    for tool in tools {
        let tool = serde_json::to_value(tool).expect("JSON");
        let name = &tool["name"];
        assert!(tool["description"].as_str().is_some_and(|text| text.len() > 20), "{name}");
        assert_eq!(tool["inputSchema"]["additionalProperties"], false, "{name} takes what it does not know");
        for (argument, schema) in tool["inputSchema"]["properties"].as_object().expect("properties") {
            assert!(schema["description"].is_string(), "{name}.{argument} is not described: {schema}");
        }
        let is_reader = tool["annotations"]["readOnlyHint"] == true;
        let reads = ["read", "list", "status", "stats", "query", "lint"];
        let name = name.as_str().expect("a name");
        assert_eq!(is_reader, reads.iter().any(|read| name.contains(read)), "{name}");
    }
    assert!(!omc(&world, "").exists(), "a server that is asked nothing writes nothing");
    for (tool, arguments) in [
        ("state_read", json!({"mode": "ralph"})),
        ("state_list_active", json!({})),
        ("state_get_status", json!({})),
        ("state_clear", json!({"mode": "ralph"})),
        ("notepad_read", json!({})),
        ("notepad_stats", json!({})),
        ("notepad_prune", json!({})),
        ("project_memory_read", json!({})),
        ("shared_memory_list", json!({})),
        ("shared_memory_read", json!({"namespace": "n", "key": "k"})),
        ("shared_memory_delete", json!({"namespace": "n", "key": "k"})),
        ("shared_memory_cleanup", json!({})),
        ("wiki_query", json!({"query": "x"})),
        ("wiki_list", json!({})),
        ("wiki_lint", json!({})),
        ("wiki_refresh", json!({})),
    ] {
        model.ask(tool, &arguments);
    }
    assert!(!omc(&world, "").exists(), "what only reads or removes makes nothing");
}

#[test]
fn what_one_tool_keeps_another_finds() {
    let world = World::new(&[]);
    let model = Model::of(&world);
    for (tool, arguments, part) in [
        (
            "notepad_write_priority",
            json!({"content": "The API stays."}),
            "noted in section `priority` of .omc/notepad.md",
        ),
        ("notepad_write_priority", json!({"content": "x".repeat(600)}), "500 are advised"),
        ("notepad_read", json!({"section": "manual"}), "the section `manual` is empty"),
        ("project_memory_add_note", json!({"category": "runtime", "content": "Needs Node 22"}), "the note is kept"),
        ("project_memory_add_note", json!({"category": "runtime", "content": "Needs Node 22"}), "was known already"),
        ("project_memory_add_directive", json!({"directive": "Use tabs", "priority": "high"}), "the directive is kept"),
        ("project_memory_write", json!({"memory": {"build": {"testCommand": "make check"}}}), "the memory is kept"),
        ("project_memory_read", json!({"section": "build"}), "make check"),
        ("project_memory_read", json!({"section": "notes"}), "Needs Node 22"),
        ("project_memory_read", json!({"section": "directives"}), "Use tabs"),
        (
            "shared_memory_write",
            json!({"namespace": "team", "key": "plan", "value": {"a": [1]}}),
            "stored `plan` in `team`",
        ),
        ("shared_memory_read", json!({"namespace": "team", "key": "plan"}), "\"a\": ["),
        ("shared_memory_list", json!({}), "team"),
        ("shared_memory_list", json!({"namespace": "team"}), "plan (updated "),
        ("shared_memory_delete", json!({"namespace": "team", "key": "plan"}), "removed `plan` in `team`"),
        ("shared_memory_read", json!({"namespace": "team", "key": "plan"}), "not found"),
        (
            "wiki_add",
            json!({"title": "Retry policy", "content": "Three times.", "category": "decision"}),
            "added retry-policy.md",
        ),
        ("wiki_ingest", json!({"title": "Retry policy", "content": "Then [[give up]]."}), "extended retry-policy.md"),
        ("wiki_query", json!({"query": "retry"}), "retry-policy.md: Retry policy [decision]"),
        ("wiki_read", json!({"page": "retry-policy"}), "Three times."),
        ("wiki_read", json!({"page": "RETRY policy"}), "Three times."),
        ("wiki_list", json!({}), "retry-policy.md"),
        ("wiki_lint", json!({}), "error retry-policy.md: it links to `give-up.md`, which is not there (broken-ref)"),
        ("wiki_refresh", json!({}), "the index names 1 pages"),
        ("wiki_delete", json!({"page": "retry-policy.md"}), "removed retry-policy.md"),
        ("state_write", json!({"mode": "deep-interview", "state": {"questions": 3}}), "belongs to nobody"),
        ("state_read", json!({"mode": "deep-interview"}), "\"questions\": 3"),
        ("state_get_status", json!({"mode": "deep-interview"}), "deep-interview of no session"),
        ("state_clear", json!({"mode": "deep-interview"}), "cleared deep-interview of the shared file"),
        ("state_clear", json!({"mode": "deep-interview"}), "nothing to clear"),
        (
            "state_write",
            json!({"mode": "ralph", "session_id": "s1", "active": true, "max_iterations": 0}),
            "wrote ralph of session s1: at work, iteration 1, touched",
        ),
        ("state_clear", json!({"mode": "ralph", "session_id": "s1"}), "cleared ralph of session s1"),
    ] {
        let said = model.ask(tool, &arguments);
        assert!(said.contains(part), "{tool} {arguments} says {said:?}, without {part:?}");
    }
    for (tool, arguments, part) in [
        ("wiki_add", json!({"title": "", "content": "x"}), "it is empty"),
        ("wiki_read", json!({"page": "retry-policy"}), "there is no page `retry-policy`; `wiki_list` lists them"),
        ("wiki_delete", json!({"page": "index.md"}), "`wiki/index.md` is the wiki's own file"),
        ("wiki_delete", json!({"page": "../notepad"}), "no page can be called `../notepad.md`"),
        ("wiki_add", json!({"title": "Log", "content": "x"}), "`wiki/log.md` is the wiki's own file"),
        ("wiki_ingest", json!({"title": "environment", "content": "x"}), "no page can have its name; take another one"),
        ("wiki_query", json!({"query": "x", "limit": 51}), "from 1 to 50"),
        ("notepad_prune", json!({"daysOld": 0}), "from 1 to 365"),
        ("notepad_write_working", json!({"content": "x".repeat(4_001)}), "4000 is the limit"),
        ("notepad_read", json!({"section": "nowhere"}), "nowhere"),
        ("shared_memory_write", json!({"namespace": "n", "key": "k", "value": 1, "ttl": 604_801}), "604800"),
    ] {
        let said = model.fail(tool, &arguments);
        assert!(said.contains(part), "{tool} {arguments} says {said:?}, without {part:?}");
    }
}

#[test]
fn arguments_that_would_leave_the_project_or_mean_another_session_are_refused() {
    let world = World::new(&[]);
    let model = Model::of(&world);
    begin(&world, "s1");
    create_dirs(&world.path("project/sub"));
    let outside = world.path("outside");
    write(&outside.join(".git/HEAD"), 0o600, b"ref: refs/heads/main\n");
    let before = Snapshot::of(&[outside.clone(), world.home()], &[world.path("home/.local/state")]);
    let deep = (0..11).fold(json!(1), |inner, _| json!([inner]));
    let many: Value = (0..101).map(|at| (format!("m{at}"), json!(at))).collect::<serde_json::Map<_, _>>().into();
    for (tool, arguments) in [
        ("state_read", json!({"mode": "../../../outside/x"})),
        ("state_read", json!({"mode": "ralph", "session_id": "../s1"})),
        ("state_write", json!({"mode": "ralph", "session_id": "unknown", "active": true})),
        ("state_write", json!({"mode": "ralph", "session_id": "a/b", "active": true})),
        ("state_write", json!({"mode": "merge-readiness", "active": true})),
        ("state_clear", json!({"mode": "ralph", "sessionId": "s2"})),
        ("state_clear", json!({"mode": "ralph", "session_id": "s".repeat(257)})),
        ("state_write", json!({"mode": "ralph", "session_id": "s1", "state": {"x": deep}})),
        ("state_write", json!({"mode": "ralph", "session_id": "s1", "state": many})),
        ("state_write", json!({"mode": "ralph", "session_id": "s1", "state": {"x": "x".repeat(1_100_000)}})),
        ("state_write", json!({"mode": "ralph", "session_id": "s1", "state": {"active": "false"}})),
        ("state_write", json!({"mode": "ralph", "session_id": "s1", "iteration": -1})),
        ("shared_memory_write", json!({"namespace": "..", "key": "k", "value": 1})),
        ("shared_memory_write", json!({"namespace": "n", "key": "../k", "value": 1})),
        ("shared_memory_read", json!({"namespace": "n/../..", "key": "k"})),
        ("wiki_read", json!({"page": "../notepad"})),
        ("wiki_read", json!({"page": "/etc/passwd"})),
        ("wiki_delete", json!({"page": "../notepad.md"})),
        ("notepad_read", json!({"workingDirectory": outside})),
        ("notepad_write_manual", json!({"content": "x", "workingDirectory": outside})),
        ("notepad_write_manual", json!({"content": "x", "workingDirectory": "../outside"})),
        ("notepad_write_manual", json!({"content": "x", "workingDirectory": "/"})),
        ("notepad_write_manual", json!({"content": "x", "workingDirectory": world.home()})),
        ("notepad_write_manual", json!({"content": "x", "workingDirectory": "nowhere"})),
        ("notepad_write_manual", json!({"content": "x", "workingDirectory": "a\u{0}b"})),
    ] {
        let said = model.fail(tool, &arguments);
        assert!(!said.contains("root:"), "{said}");
    }
    before.assert_same(
        &Snapshot::of(&[outside, world.home()], &[world.path("home/.local/state")]),
        "arguments of all kinds",
    );
    assert!(is_held(&world, "s1"), "nothing of that ended the mode");
    // A repository inside the project has its own notepad; from any other folder inside it is the project's.
    write(&world.path("project/nested/.git/HEAD"), 0o600, b"ref: refs/heads/main\n");
    model.ask("notepad_write_manual", &json!({"content": "nested", "workingDirectory": "nested"}));
    assert!(world.path("project/nested/.omc/notepad.md").exists());
    model.ask("notepad_write_manual", &json!({"content": "from below", "workingDirectory": "sub"}));
    assert!(fs::read_to_string(omc(&world, "notepad.md")).expect("a notepad").contains("from below"));
}

#[test]
fn a_session_that_is_not_clear_is_asked_for() {
    let world = World::new(&[]);
    begin(&world, "s1");
    begin(&world, "s2");
    let model = Model::of(&world);
    let said = model.fail("state_write", &json!({"mode": "ralph", "active": false}));
    assert!(said.contains("several sessions are at work (s1, s2)") && said.contains("`session_id`"), "{said}");
    let run = command(&world, &["cancel"]);
    let names_the_way = run.stderr.contains("several sessions") && run.stderr.contains("`--session ID`");
    assert_eq!((run.code, names_the_way), (Some(1), true), "{}", run.stderr);
    assert!(is_held(&world, "s1") && is_held(&world, "s2"));

    // A server that knows its session means that one, as long as the project does.
    let mut own = world.host(["mcp"]);
    own.env("CLAUDE_CODE_SESSION_ID", "s2");
    Model::with(own).ask("state_write", &json!({"mode": "ralph", "active": false}));
    assert!(is_held(&world, "s1") && !is_held(&world, "s2"));
    let mut gone = world.host(["mcp"]);
    gone.env("CLAUDE_CODE_SESSION_ID", "s3");
    Model::with(gone).ask("state_write", &json!({"mode": "ralph", "active": false}));
    assert!(!is_held(&world, "s1"));
}

#[test]
fn clearing_a_mode_ends_it_in_the_session_that_is_named_or_in_all() {
    let world = World::new(&[]);
    let model = Model::of(&world);
    for session in ["s1", "s2", "s3"] {
        begin(&world, session);
    }
    let said = model.ask("state_clear", &json!({"mode": "ralph", "session_id": "s1"}));
    assert_eq!(said, "cleared ralph of session s1, ultrawork of session s1");
    assert!(!is_held(&world, "s1") && is_held(&world, "s2"));
    model.ask("state_clear", &json!({"mode": "ralph"}));
    assert!(!is_held(&world, "s2") && !is_held(&world, "s3"));
}

#[test]
fn clearing_a_team_takes_its_folder_and_cancelling_it_ends_it_there() {
    let world = World::new(&[]);
    let model = Model::of(&world);
    let phase = omc(&world, "state/team/atlas/phase-state.json");
    let reminder = || {
        let mut host = world.host(["hook", "--agent", "claude"]);
        host.env_remove("OMC_SKIP_HOOKS");
        let tool = json!({
            "hook_event_name": "PreToolUse", "session_id": "s1", "cwd": world.project(), "tool_name": "Task",
            "tool_input": {"subagent_type": "executor", "prompt": "x", "description": "x"},
        });
        let run = Running::start(host, tool.to_string().into_bytes()).finish();
        String::from_utf8_lossy(&run.stdout).contains("[TEAM ROUTING REQUIRED]")
    };
    for by_name in [false, true] {
        for (name, text) in [
            ("manifest", json!({"leader": {"session_id": "s1"}})),
            ("phase-state", json!({"current_phase": "executing"})),
        ] {
            write(&omc(&world, &format!("state/team/atlas/{name}.json")), 0o600, text.to_string().as_bytes());
        }
        assert!(reminder());
        printed(&world, &["cancel", "--session", "s1"]);
        assert!(!reminder() && fs::read_to_string(&phase).expect("a phase").contains("cancelled"));
        let arguments = if by_name { json!({"mode": "team", "session_id": "s1"}) } else { json!({"mode": "team"}) };
        assert!(model.ask("state_clear", &arguments).starts_with("cleared team of session s1"));
        assert!(!omc(&world, "state/team/atlas").exists());
    }
}

#[test]
fn a_person_sees_and_cancels_what_is_at_work() {
    let world = World::new(&[]);
    assert_eq!(printed(&world, &["cancel"]), "nothing is at work\n");
    assert_eq!(printed(&world, &["state", "list"]), "no mode is on\n");
    for session in ["s1", "s2", "s3"] {
        begin(&world, session);
    }
    let table = printed(&world, &["state", "list"]);
    assert!(table.starts_with("MODE") && table.contains("STANDING") && table.lines().count() == 7, "{table}");
    let json: Value =
        serde_json::from_str(&printed(&world, &["state", "list", "--session", "s1", "--json"])).expect("JSON");
    assert_eq!(json["states"][0]["mode"], "ralph");
    assert_eq!(json["states"][0]["standing"], "at-work");
    assert_eq!(printed(&world, &["cancel", "--session", "s1"]), "cancelled session s1: ralph, ultrawork\n");
    assert!(!is_held(&world, "s1") && is_held(&world, "s2") && is_held(&world, "s3"));
    let json: Value = serde_json::from_str(&printed(&world, &["cancel", "--all", "--json"])).expect("JSON");
    assert_eq!(json["sessions"].as_array().map(Vec::len), Some(2), "{json}");
    assert!(!is_held(&world, "s2") && !is_held(&world, "s3"));

    for (args, code) in [
        (&["cancel", "--session", "../s1"][..], 64),
        (&["cancel", "--session", "s1", "--all"], 64),
        (&["state", "read", "no-such-mode"], 64),
        (&["notepad", "prune", "--days", "0"], 64),
        (&["memory", "read", "no-such-section"], 1),
        (&["memory", "shared", "read", "n", "k"], 1),
        (&["man", "no-such-command"], 1),
        (&["completions", "no-such-shell"], 64),
    ] {
        assert_eq!(command(&world, args).code, Some(code), "{args:?}");
    }
}

#[test]
fn commands_say_the_same_as_the_tools() {
    let world = World::new(&[]);
    let model = Model::of(&world);
    printed(&world, &["notepad", "write", "working", "a note\u{1b}[31m"]);
    assert!(model.ask("notepad_read", &json!({"section": "working"})).contains("a note"));
    let shown = printed(&world, &["notepad", "read", "working"]);
    assert!(shown.contains("a note\\u{1b}[31m") && !shown.contains('\u{1b}'), "{shown:?}");
    printed(&world, &["memory", "note", "build", "make all"]);
    printed(&world, &["memory", "directive", "Use tabs", "--high"]);
    printed(&world, &["memory", "write", r#"{"build": {"testCommand": "make check"}}"#]);
    for (section, part) in [("notes", "make all"), ("directives", "Use tabs"), ("build", "make check")] {
        assert!(model.ask("project_memory_read", &json!({"section": section})).contains(part), "{section}");
    }
    printed(&world, &["memory", "shared", "write", "team", "plan", "ship it", "--ttl", "60"]);
    assert!(model.ask("shared_memory_read", &json!({"namespace": "team", "key": "plan"})).contains("ship it"));
    printed(&world, &["state", "write", "ralph", "--active", "true", "--session", "s1"]);
    assert!(is_held(&world, "s1"));
    printed(&world, &["state", "write", "ralph", "--active", "false"]);
    assert!(!is_held(&world, "s1"));
}

#[test]
fn a_notepad_that_cannot_be_read_is_kept_and_the_next_note_says_where() {
    let world = World::new(&[]);
    let model = Model::of(&world);
    let huge = "x".repeat((256 << 10) + 1).into_bytes();
    for (bytes, why) in [(huge, "is larger than 262144 bytes"), (b"\xff words".to_vec(), "is not UTF-8")] {
        write(&omc(&world, "notepad.md"), 0o600, &bytes);
        for (tool, args) in [("notepad_read", json!({})), ("notepad_stats", json!({})), ("notepad_prune", json!({}))] {
            let said = model.fail(tool, &args);
            assert!(said.contains(why) && said.contains("the next note keeps it under another name"), "{tool}: {said}");
        }
        // Guests do their work without it.
        let mut host = world.host(["hook", "--agent", "claude"]);
        host.env_remove("OMC_SKIP_HOOKS");
        let event =
            json!({"hook_event_name": "SessionStart", "source": "startup", "session_id": "s1", "cwd": world.project()});
        let run = Running::start(host, event.to_string().into_bytes()).finish();
        assert!(String::from_utf8_lossy(&run.stdout).contains(why), "{}", run.stderr);
        assert!(omc(&world, "state/sessions/s1/session-started.json").exists());
        assert!(!world.trail().contains("\"fault\":"), "{}", world.trail());

        let said = printed(&world, &["notepad", "write", "working", "new"]);
        let aside = said.split("is kept as ").nth(1).and_then(|rest| rest.split(';').next()).expect("a place");
        assert_eq!(fs::read(world.project().join(aside)).expect("all of it"), bytes);
        let said = model.ask("notepad_read", &json!({}));
        assert!(said.contains("new") && said.contains(aside.trim_start_matches(".omc/")), "{said}");
    }
}

#[test]
fn a_reader_that_goes_away_early_is_no_failure() {
    let world = World::new(&[]);
    for args in [&["completions", "bash"][..], &["man"], &["audit", "--json"]] {
        let mut child = world.host(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("started");
        // More is written than a pipe holds, or the pipe is gone before anything is.
        drop(child.stdout.take());
        let ended = child.wait_with_output().expect("ended");
        assert_eq!((ended.status.code(), ended.stderr.as_slice()), (Some(0), b"".as_slice()), "{args:?}");
    }
}

#[test]
fn help_completions_and_the_manual_name_every_command() {
    let world = World::new(&[]);
    let (help, script, page) =
        (printed(&world, &["--help"]), printed(&world, &["completions", "bash"]), printed(&world, &["man"]));
    let commands: Vec<_> = help
        .lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| !line.is_empty())
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert!(commands.len() > 10, "{help}");
    for name in commands.iter().filter(|name| **name != "help") {
        assert!(script.contains(&format!("omc__host,{name})")), "{name} is not completed");
        assert!(page.contains(&format!("omc\\-host\\-{name}(1)")), "{name} is not in the manual");
        let text = printed(&world, &[name, "--help"]);
        assert!(text.contains("Examples:"), "`omc-host {name} --help` shows no example");
    }
    // Every page that another one names is there, however deep.
    let mut commands: Vec<Vec<String>> = vec![Vec::new()];
    let mut deepest = 0;
    while let Some(command) = commands.pop() {
        let args: Vec<&str> = std::iter::once("man").chain(command.iter().map(String::as_str)).collect();
        let page = printed(&world, &args);
        let title = [&["omc-host"], &args[1..]].concat();
        assert!(page.contains(&format!(".TH {} 1 ", title.join("-"))), "{page}");
        assert!(page.contains(&format!("\\fB{}\\fR", title.join(" ").replace('-', "\\-"))), "{page}");
        let below = format!("{}-", title.join("-")).replace('-', "\\-");
        let names = page.lines().filter_map(|line| line.strip_prefix(&below)?.strip_suffix("(1)"));
        for name in names.filter(|name| *name != "help") {
            commands.push([command.clone(), vec![name.replace("\\-", "-")]].concat());
        }
        deepest = deepest.max(command.len());
    }
    assert_eq!(deepest, 3, "`memory shared read` has a page");
    assert!(printed(&world, &["man", "state"]).contains("Remove the state of a mode"));
    let unknown = command(&world, &["man", "guests", "no-such-command"]);
    assert!(unknown.stderr.contains("no command `omc-host guests no-such-command`; `omc-host guests --help` lists"));
    for shell in ["elvish", "fish", "powershell", "zsh"] {
        assert!(printed(&world, &["completions", shell]).contains("session"), "{shell}");
    }

    // In bash for real.
    write(&world.path("outside/completions"), 0o600, script.as_bytes());
    for (words, completed) in [("ca", "cancel"), ("cancel --a", "--all"), ("notepad wr", "write")] {
        let lines = format!(
            "source outside/completions; COMP_WORDS=(omc-host {words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); \
             _omc__host omc-host \"${{COMP_WORDS[COMP_CWORD]}}\" \"${{COMP_WORDS[COMP_CWORD-1]}}\"; echo \"${{COMPREPLY[*]}}\""
        );
        let bash =
            Command::new("bash").args(["-c", &lines]).current_dir(world.path("")).output().expect("bash is there");
        assert_eq!(String::from_utf8_lossy(&bash.stdout).trim(), completed, "{words}: {bash:?}");
    }
}

#[test]
fn a_server_ends_with_its_client_and_survives_what_is_no_request() {
    let world = World::new(&[]);
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"},
    }});
    let call = |id: u64| {
        let params = json!({"name": "notepad_stats", "arguments": {}});
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
    };
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let huge = "x".repeat(5 << 20);
    let lines = format!("{hello}\n{ready}\n{}\nnot json\n{{\"a\": 1}}\n\n{huge}\n{}\n", call(2), call(3));
    let run = Running::start(world.host(["mcp"]), lines.into_bytes()).finish();
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let answers = String::from_utf8(run.stdout).expect("UTF-8");
    let answered =
        |id| answers.lines().any(|line| line.contains(&format!("\"id\":{id}")) && line.contains("\"result\""));
    assert!(answered(1) && answered(2) && answered(3), "{answers}");
    // Nobody who says nothing keeps it.
    let run = Running::start(world.host(["mcp"]), Vec::new()).finish();
    assert!(run.stdout.is_empty());
}

#[test]
fn a_request_over_the_limit_is_answered_and_needs_no_memory() {
    /// Many times the limit, in bytes.
    const HUGE: usize = 64 << 20;
    /// A server with a request of the limit in its buffer, in kilobytes: far less than a request over it.
    const MAX_RESIDENT_KB: u64 = 48 << 10;

    let world = World::new(&[]);
    let mut server = world.host(["mcp"]);
    let mut server = server.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the server starts");
    let mut stdin = server.stdin.take().expect("a pipe");
    let stdout = BufReader::new(server.stdout.take().expect("a pipe"));
    let (tell, answers) = mpsc::channel();
    thread::spawn(move || stdout.lines().map_while(Result::ok).try_for_each(|line| tell.send(line)));
    let answer = || -> Value {
        let line = answers.recv_timeout(IN_TIME).expect("an answer");
        serde_json::from_str(&line).expect("JSON")
    };
    // As clients write them: the id comes last.
    let mut request = |method: &str, params: &str, id: u64| {
        writeln!(stdin, r#"{{"method":"{method}","params":{params},"jsonrpc":"2.0","id":{id}}}"#).expect("it reads");
    };
    let note = |content: &str| format!(r#"{{"name":"notepad_write_manual","arguments":{{"content":"{content}"}}}}"#);
    let refuse = |answer: Value, id: u64| {
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(id), &json!(-32600)), "{answer}");
        let text = answer["error"]["message"].as_str().expect("a text");
        assert!(text.contains("4194304 bytes"), "{text}");
    };
    // Before the client has said who it is, and afterwards.
    request("tools/call", &note(&"x".repeat(HUGE)), 1);
    refuse(answer(), 1);
    let hello =
        json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}});
    request("initialize", &hello.to_string(), 2);
    assert_eq!(answer()["id"], 2);
    request("tools/call", &note(&"x".repeat(HUGE)), 3);
    refuse(answer(), 3);
    request("tools/call", &note("short"), 4);
    assert_eq!(answer()["result"]["isError"], false);
    let status = fs::read_to_string(format!("/proc/{}/status", server.id())).unwrap_or_default();
    if let Some(peak) = status.lines().find_map(|line| line.strip_prefix("VmHWM:")) {
        let peak: u64 = peak.trim().trim_end_matches(" kB").parse().expect("a number");
        assert!(peak < MAX_RESIDENT_KB, "{peak} kB");
    }
    drop(stdin);
    assert!(server.wait().expect("it ends").success());
}

#[test]
fn many_writers_of_all_kinds_lose_nothing() {
    /// Of each kind: a client of a server of its own, a command, an event.
    const WRITERS: usize = 7;
    const NOTES: usize = 3;
    let world = World::new(&[]);
    begin(&world, "s1");
    let stops = thread::scope(|scope| {
        for writer in 0..WRITERS {
            let world = &world;
            scope.spawn(move || {
                let model = Model::of(world);
                for note in 0..NOTES {
                    ask_until_free(&model, &json!({"content": format!("tool-{writer}-{note}.")}));
                }
            });
            scope.spawn(move || {
                for note in 0..NOTES {
                    let text = format!("command-{writer}-{note}.");
                    // The longest wait for the lock may not do on a machine with other work; then the command says so.
                    while command(world, &["notepad", "write", "working", &text]).code != Some(0) {}
                }
            });
        }
        let stops: Vec<_> = (0..WRITERS).map(|_| event(&world, "s1", "Stop", &json!({}))).collect();
        stops
            .into_iter()
            .map(Running::finish)
            .filter(|run| String::from_utf8_lossy(&run.stdout).contains("block"))
            .count()
    });
    let notepad = fs::read_to_string(omc(&world, "notepad.md")).expect("a notepad");
    for writer in 0..WRITERS {
        for note in 0..NOTES {
            for kind in ["tool", "command"] {
                let text = format!("{kind}-{writer}-{note}.");
                assert_eq!(notepad.matches(&text).count(), 1, "{text} in {notepad}");
            }
        }
    }
    let state = fs::read(omc(&world, "state/sessions/s1/ralph-state.json")).expect("a state");
    let state: Value = serde_json::from_slice(&state).expect("a state is never torn");
    assert!(state["iteration"].as_u64() > Some(stops as u64), "{stops} refusals, {state}");
    let debris = fs::read_dir(omc(&world, "")).expect("a folder").map(|entry| entry.expect("an entry").file_name());
    assert!(debris.into_iter().all(|name| !name.to_string_lossy().starts_with(".tmp-")));
}

/// Writes a note, again if the lock was not to be had in time.
fn ask_until_free(model: &Model, note: &Value) {
    loop {
        let said = model.call("notepad_write_working", note);
        if !said.failed {
            return;
        }
        assert!(said.text.contains("lock"), "{}", said.text);
    }
}

/// Plants something in a project, given the world.
type Plant = fn(&World);

#[test]
fn nothing_that_a_repository_plants_leads_outside_or_makes_the_server_wait() {
    let plants: [(&str, Plant); 9] = [
        ("`.omc` is a link", |world| symlink(world.path("outside"), world.path("project/.omc")).expect("a link")),
        ("`.omc` is a file", |world| write(&world.path("project/.omc"), 0o600, b"x")),
        ("`.omc/state` is a link", |world| {
            create_dirs(&omc(world, ""));
            symlink(world.path("outside"), omc(world, "state")).expect("a link");
        }),
        ("the sessions are a link", |world| {
            create_dirs(&omc(world, "state"));
            symlink(world.path("outside/sessions"), omc(world, "state/sessions")).expect("a link");
        }),
        ("the wiki is a link", |world| {
            create_dirs(&omc(world, ""));
            symlink(world.path("outside"), omc(world, "wiki")).expect("a link");
        }),
        ("files are links", |world| {
            create_dirs(&omc(world, "wiki"));
            for file in FILES {
                create_dirs(omc(world, file).parent().expect("a parent"));
                symlink(world.path("outside/secret.md"), omc(world, file)).expect("a link");
            }
        }),
        ("files are pipes", |world| {
            for file in FILES {
                create_dirs(omc(world, file).parent().expect("a parent"));
                let made = Command::new("mkfifo").arg(omc(world, file)).status().expect("mkfifo is there");
                assert!(made.success());
            }
        }),
        ("files are huge", |world| {
            for file in FILES {
                write(&omc(world, file), 0o600, b"");
                let file = fs::File::options().write(true).open(omc(world, file)).expect("a file");
                file.set_len(300 << 20).expect("a length");
            }
        }),
        ("files are folders", |world| FILES.iter().for_each(|file| create_dirs(&omc(world, file)))),
    ];
    for (what, plant) in plants {
        let world = World::new(&[]);
        let secret = "---\ntitle: secret\n---\nsecret retry\n";
        for file in ["secret.md", "notepad.md", "sessions/s1/ralph-state.json"] {
            write(&world.path("outside").join(file), 0o600, secret.as_bytes());
        }
        plant(&world);
        let trees = ["outside", "home"].map(|tree| world.path(tree));
        let before = Snapshot::of(&trees, &[world.path("home/.local/state")]);
        let model = Model::of(&world);
        for (tool, arguments) in every_call() {
            let said = model.call(tool, &arguments);
            assert!(!said.text.contains("secret"), "{what}: {tool} says {}", said.text);
        }
        for args in [
            &["state", "list"][..],
            &["state", "clear", "ralph"],
            &["notepad", "read"],
            &["notepad", "write", "manual", "x"],
            &["memory", "read"],
            &["memory", "shared", "list"],
            &["cancel", "--all"],
        ] {
            let run = command(&world, args);
            assert!(matches!(run.code, Some(0 | 1)), "{what}: {args:?} ends with {:?}", run.code);
            assert!(!String::from_utf8_lossy(&run.stdout).contains("secret"), "{what}: {args:?}");
        }
        before.assert_same(&Snapshot::of(&trees, &[world.path("home/.local/state")]), what);
    }
}

/// What tools read or write below `.omc`.
const FILES: [&str; 8] = [
    "notepad.md",
    "project-memory.json",
    "state/ralph-state.json",
    "state/sessions/s1/ralph-state.json",
    "state/sessions/s1/cancel-signal.json",
    "state/shared-memory/n/k.json",
    "wiki/retry.md",
    "wiki/index.md",
];

/// A call of every tool.
fn every_call() -> Vec<(&'static str, Value)> {
    vec![
        ("state_read", json!({"mode": "ralph"})),
        ("state_read", json!({"mode": "ralph", "session_id": "s1"})),
        ("state_list_active", json!({})),
        ("state_get_status", json!({})),
        ("state_write", json!({"mode": "ralph", "session_id": "s1", "active": true})),
        ("state_write", json!({"mode": "ralph", "active": false})),
        ("state_clear", json!({"mode": "ralph"})),
        ("notepad_read", json!({})),
        ("notepad_stats", json!({})),
        ("notepad_write_priority", json!({"content": "x"})),
        ("notepad_write_working", json!({"content": "x"})),
        ("notepad_write_manual", json!({"content": "x"})),
        ("notepad_prune", json!({"daysOld": 1})),
        ("project_memory_read", json!({})),
        ("project_memory_write", json!({"memory": {"a": 1}})),
        ("project_memory_add_note", json!({"category": "a", "content": "b"})),
        ("project_memory_add_directive", json!({"directive": "a b"})),
        ("shared_memory_write", json!({"namespace": "n", "key": "k", "value": 1})),
        ("shared_memory_read", json!({"namespace": "n", "key": "k"})),
        ("shared_memory_list", json!({"namespace": "n"})),
        ("shared_memory_cleanup", json!({})),
        ("shared_memory_delete", json!({"namespace": "n", "key": "k"})),
        ("wiki_ingest", json!({"title": "retry", "content": "x"})),
        ("wiki_add", json!({"title": "new page", "content": "x"})),
        ("wiki_query", json!({"query": "retry"})),
        ("wiki_list", json!({})),
        ("wiki_lint", json!({})),
        ("wiki_read", json!({"page": "retry"})),
        ("wiki_read", json!({"page": "index"})),
        ("wiki_refresh", json!({})),
        ("wiki_delete", json!({"page": "retry"})),
    ]
}
