//! Answers of the real host by the agents' own rules: every event of both agents against everything that a guest can say, and the
//! command that looks into hooks files.
#![cfg(unix)]

mod dialects;
mod world;

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::{Map, Value, json};

use world::{Guest, Run, Running, World, write};

/// One real-looking event of each kind that either agent has, one a line.
const EVENTS: &str = include_str!("../host/src/protocol/testdata/events.jsonl");

/// Longest time for an answer: the design's bound for an event, and the process around it.
const IN_TIME: Duration = Duration::from_secs(3);

/// Events that the host plays at the same time.
const AT_ONCE: usize = 3;

/// The agent and the event of each sample, and of an event that neither agent has yet.
fn events() -> Vec<(String, Map<String, Value>)> {
    let mut events: Vec<_> = EVENTS
        .lines()
        .map(|line| {
            let sample: Value = serde_json::from_str(line).expect("a sample is JSON");
            let event = sample["event"].as_object().expect("an event is an object").clone();
            (sample["agent"].as_str().expect("an agent has a name").to_owned(), event)
        })
        .collect();
    let future = json!({"hook_event_name": "FutureEvent", "session_id": "s1", "future": {"member": [null]}});
    for agent in ["claude", "codex"] {
        events.push((agent.to_owned(), future.as_object().expect("an object").clone()));
    }
    events
}

/// Everything that a guest can say, a list of the puppet's steps each.
fn sayings() -> Vec<Value> {
    let rewrite = json!({"command": "ls", "n": 1});
    vec![
        json!([]),
        json!([{"allow": true}]),
        json!([{"ask": "use \"make\"\ninstead"}]),
        json!([{"block": "use \"make\"\ninstead"}]),
        json!([{"block": " "}]),
        json!([{"block-with-units": 9_000}]),
        json!([{"halt": "enough"}]),
        json!([{"fail": "no judgement"}]),
        json!([{"context": "for the model"}]),
        json!([{"context": "가".repeat(5_000)}]),
        json!([{"context": "\u{1b}]0;x\u{7}\u{2028}\u{0}🚀"}, {"message": "\u{1b}[31m"}]),
        json!([{"message": "for the person"}]),
        json!([{"update-input": rewrite}]),
        json!([{"update-input": rewrite}, {"allow": true}]),
        json!([{"context-of-units": 10_000}, {"message": "m"}, {"update-input": rewrite}, {"block": "no"}]),
        json!([{"context": "c"}, {"message": "m"}, {"update-input": rewrite}, {"halt": "enough"}]),
    ]
}

fn puppet_world() -> World {
    let grants = ["allow", "halt", "update-input"].map(str::to_owned).to_vec();
    World::new(&[Guest { name: "puppet".to_owned(), grants }])
}

fn run(world: &World, args: &[&str], stdin: Vec<u8>) -> Run {
    Running::start(world.host(args), stdin).finish()
}

#[test]
fn whatever_a_guest_says_on_whatever_event_the_agent_takes_the_answer() {
    let (events, sayings, next) = (events(), sayings(), AtomicUsize::new(0));
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                let world = puppet_world();
                while let Some((agent, event)) = events.get(next.fetch_add(1, Ordering::Relaxed)) {
                    for saying in &sayings {
                        let mut event = event.clone();
                        event.insert("cwd".to_owned(), json!(world.project()));
                        event.insert("puppet".to_owned(), saying.clone());
                        let event = Value::Object(event);
                        let run = run(&world, &["hook", "--agent", agent], event.to_string().into_bytes());
                        let what = format!("{agent} {} {saying:.80}", event["hook_event_name"]);
                        assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{what}");
                        assert!(run.took < IN_TIME, "{what} took {:?}", run.took);
                        if let Err(fault) = dialects::fault(agent, &event, &run.stdout) {
                            panic!("{what}: {fault}: {:.400}", String::from_utf8_lossy(&run.stdout));
                        }
                    }
                }
            });
        }
    });
}

#[test]
fn the_rules_refuse_what_the_agents_refuse() {
    let of = |event: &str, members: Value| {
        let mut output = members;
        output["hookEventName"] = json!(event);
        json!({"hookSpecificOutput": output})
    };
    let quiet = json!({"continue": true, "suppressOutput": true});
    for (agent, event, answer) in [
        ("claude", "WorktreeCreate", quiet.clone()),
        ("claude", "PreToolUse", json!({"permissionDecision": "deny"})),
        ("claude", "PreToolUse", of("Other", json!({"additionalContext": "x"}))),
        ("claude", "PreToolUse", of("PreToolUse", json!({"updatedInput": "ls"}))),
        ("claude", "Stop", json!({"decision": "block"})),
        ("claude", "PreCompact", of("PreCompact", json!({"additionalContext": "x"}))),
        ("claude", "UserPromptSubmit", json!({"reason": "lost"})),
        ("claude", "UserPromptSubmit", of("UserPromptSubmit", json!({"additionalContext": null}))),
        ("claude", "SessionStart", of("SessionStart", json!({"additionalContext": "🚀".repeat(5_001)}))),
        ("claude", "PermissionRequest", of("PermissionRequest", json!({"decision": {"message": "no"}}))),
        ("claude", "FutureEvent", of("FutureEvent", json!({"additionalContext": "x"}))),
        ("codex", "PreToolUse", quiet.clone()),
        ("codex", "PreToolUse", of("PreToolUse", json!({"permissionDecision": "allow"}))),
        (
            "codex",
            "PreToolUse",
            of("PreToolUse", json!({"permissionDecision": "ask", "permissionDecisionReason": "?"})),
        ),
        (
            "codex",
            "PreToolUse",
            of("PreToolUse", json!({"permissionDecision": "deny", "permissionDecisionReason": " "})),
        ),
        ("codex", "PreToolUse", json!({"continue": false})),
        (
            "codex",
            "PermissionRequest",
            of("PermissionRequest", json!({"decision": {"behavior": "deny", "interrupt": true}})),
        ),
        ("codex", "PostToolUse", json!({"reason": "x"})),
        ("codex", "UserPromptSubmit", of("UserPromptSubmit", json!({"additionalContext": "가".repeat(3_334)}))),
        ("codex", "PreCompact", json!({"decision": "block", "reason": "x"})),
        ("codex", "Stop", of("Stop", json!({"additionalContext": "x"}))),
        ("codex", "Interrupt", json!({"continue": true})),
        ("codex", "FutureEvent", quiet),
    ] {
        let sent = json!({"hook_event_name": event, "tool_name": "Bash"});
        let refused = dialects::fault(agent, &sent, answer.to_string().as_bytes());
        assert!(refused.is_err(), "{agent} {event} {answer:.200}");
    }
    let stop = json!({"hook_event_name": "Stop"});
    for text in ["hello", "[]", "{}{}", "\u{feff}{}", "{\"decision\":\"block\",\"reason\":\"a\",\"reason\":\"b\"}"] {
        assert!(dialects::fault("claude", &stop, text.as_bytes()).is_err(), "{text}");
    }
}

#[test]
fn a_refused_tool_is_refused_twice_where_the_user_wants_that_and_nowhere_else() {
    let world = puppet_world();
    let config = world.path("home/.config/omc-host/config.toml");
    let send = |agent: &str, kind: &str, saying: Value| {
        let event = json!({
            "hook_event_name": kind, "session_id": "s1", "cwd": world.project(), "tool_name": "Bash",
            "tool_input": {"command": "ls"}, "prompt": "hello", "puppet": saying,
        });
        run(&world, &["hook", "--agent", agent], event.to_string().into_bytes())
    };
    let block = json!([{"block": "not \u{1b}[31mthat"}]);
    for agent in ["claude", "codex"] {
        drop(fs::remove_file(&config));
        write(&world.path("project/omc-host.toml"), 0o600, b"deny-channel = \"both\"\n");
        let once = send(agent, "PreToolUse", block.clone());
        assert_eq!((once.code, once.stderr.as_str()), (Some(0), ""), "a project cannot ask for it");
        write(&config, 0o600, b"deny-channel = \"both\"\n");
        let twice = send(agent, "PreToolUse", block.clone());
        assert_eq!((twice.code, &twice.stdout), (Some(2), &once.stdout), "the answer is the same");
        assert!(twice.stderr.contains("that") && !twice.stderr.contains('\u{1b}'), "{:?}", twice.stderr);
        for (kind, saying) in [
            ("PreToolUse", json!([])),
            ("PreToolUse", json!([{"ask": "really?"}])),
            ("PostToolUse", block.clone()),
            ("UserPromptSubmit", block.clone()),
            ("Stop", block.clone()),
            ("PermissionRequest", block.clone()),
        ] {
            // Codex cannot ask, so that there a question is a refusal.
            let is_refusal = agent == "codex" && saying.to_string().contains("ask");
            let run = send(agent, kind, saying);
            assert_eq!(run.code, Some(if is_refusal { 2 } else { 0 }), "{agent} {kind}");
        }
    }
    write(&config, 0o600, b"deny-channel = \"stderr\"\n");
    assert_eq!(send("claude", "PreToolUse", block).code, Some(0));
    assert!(world.trail().contains("`deny-channel` must be"), "{}", world.trail());
}

/// Runs `check` on a file in a world of its own, and returns the run and what its JSON says.
fn check(name: &str, file: &Value, more: &[&str]) -> (Run, Value) {
    let world = World::new(&[]);
    let path = world.path("outside").join(name);
    write(&path, 0o600, file.to_string().as_bytes());
    let path = path.to_str().expect("UTF-8").to_owned();
    let args = [&["check", path.as_str()], more].concat();
    let table = run(&world, &args, Vec::new());
    let json = run(&world, &[&args[..], &["--json"]].concat(), Vec::new());
    assert_eq!(json.code, table.code, "the form does not change the verdict");
    let report = serde_json::from_slice(&json.stdout).unwrap_or_else(|error| panic!("{error}: {}", json.stderr));
    (table, report)
}

fn hooks(event: &str, matcher: &str, handler: &Value) -> Value {
    json!({"hooks": {event: [{"matcher": matcher, "hooks": [handler]}]}})
}

#[test]
fn check_says_of_every_handler_what_becomes_of_it() {
    let command = |more: Value| {
        let mut handler = json!({"type": "command", "command": "true"});
        handler.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        handler
    };
    // File, agent, event, matcher, handler; outcome, exit status, a word of the table.
    for (name, agent, event, matcher, handler, outcome, code, word) in [
        ("settings.json", "claude", "PreToolUse", "Bash", command(json!({"timeout": 10})), "runs", 0, "runs"),
        ("settings.json", "claude", "PreToolUse", "(", command(json!({})), "skipped", 1, "no regular expression"),
        ("settings.json", "claude", "PreToolUse", "Bash", command(json!({"timeout": 10_000})), "runs", 1, "!"),
        ("hooks.json", "codex", "PreToolUse", "Bash", command(json!({"timeout": 10})), "runs", 0, "runs"),
        ("hooks.json", "codex", "PreToolUse", "Bash", command(json!({"if": "Bash(rm *)"})), "runs", 1, "`if`"),
        ("hooks.json", "codex", "PreToolUse", "Bash", command(json!({"args": ["x"]})), "runs", 1, "`args`"),
        ("hooks.json", "codex", "Stop", "*", json!({"type": "prompt", "prompt": "?"}), "skipped", 1, "skipped"),
        ("hooks.json", "codex", "Stop", "*", json!({"type": "agent", "prompt": "?"}), "skipped", 1, "skipped"),
        (
            "hooks.json",
            "codex",
            "Stop",
            "*",
            json!({"type": "http", "url": "http://x"}),
            "breaks-file",
            1,
            "breaks the file",
        ),
    ] {
        let (table, report) = check(name, &hooks(event, matcher, &handler), &["--agent", agent]);
        let what = format!("{agent} {handler}: {}{report:#}", String::from_utf8_lossy(&table.stdout));
        assert_eq!((table.code, table.stderr.as_str()), (Some(code), ""), "{what}");
        assert!(String::from_utf8_lossy(&table.stdout).contains(word), "{what}");
        assert_eq!(report["handlers"][0]["outcome"], outcome, "{what}");
        assert_eq!(report["loads"], outcome != "breaks-file", "{what}");
        assert_eq!(report["agent"], agent, "{what}");
    }
}

#[test]
fn check_reads_codexs_configuration_too() {
    let world = World::new(&[]);
    let path = world.path("outside/config.toml");
    write(&path, 0o600, b"[[hooks.Stop]]\n[[hooks.Stop.hooks]]\ntype = \"http\"\nurl = \"http://x\"\n");
    let run = run(&world, &["check", path.to_str().expect("UTF-8"), "--json"], Vec::new());
    let report: Value = serde_json::from_slice(&run.stdout).expect("JSON");
    assert_eq!((run.code, &report["agent"], &report["loads"]), (Some(1), &json!("codex"), &json!(false)), "{report:#}");
}

#[test]
fn a_converted_file_is_in_order_for_the_other_agent_and_what_is_lost_is_said() {
    let file = json!({"hooks": {
        "PreToolUse": [{"matcher": "Bash|Edit", "hooks": [
            {"type": "command", "command": "guard", "timeout": 10},
            {"type": "command", "command": "only-rm", "if": "Bash(rm *)"},
        ]}],
        "Notification": [{"hooks": [{"type": "command", "command": "beep"}]}],
    }});
    let world = World::new(&[]);
    let path = world.path("outside/settings.json");
    write(&path, 0o600, file.to_string().as_bytes());
    let path = path.to_str().expect("UTF-8");
    let converted = run(&world, &["check", path, "--convert", "codex"], Vec::new());
    assert_eq!(converted.code, Some(1), "something is lost");
    for lost in ["Notification", "Bash(rm *)"] {
        assert!(
            converted.stderr.lines().any(|line| line.starts_with("lost: ") && line.contains(lost)),
            "{}",
            converted.stderr
        );
    }
    let target = world.path("outside/hooks.json");
    fs::write(&target, &converted.stdout).expect("written");
    let target = target.to_str().expect("UTF-8");
    let checked = run(&world, &["check", target, "--agent", "codex", "--json"], Vec::new());
    let report: Value = serde_json::from_slice(&checked.stdout).expect("JSON");
    assert_eq!(checked.code, Some(0), "{report:#}");
    assert_eq!(report["handlers"].as_array().map(Vec::len), Some(1));

    let back = run(&world, &["check", target, "--agent", "codex", "--convert", "claude", "--json"], Vec::new());
    let back_json: Value = serde_json::from_slice(&back.stdout).expect("JSON");
    assert_eq!((back.code, &back_json["lost"]), (Some(0), &json!([])), "{back_json:#}");
    assert_eq!(back_json["file"]["hooks"]["PreToolUse"][0]["hooks"][0]["command"], "guard");
}

#[test]
fn check_and_explain_refuse_what_they_cannot_read_in_words() {
    let world = World::new(&[]);
    let path = world.path("outside/broken.json");
    write(&path, 0o600, b"{\"hooks\": [");
    let pipe = world.path("outside/pipe.json");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).expect("made");
    let (path, pipe) = (path.to_str().expect("UTF-8"), pipe.to_str().expect("UTF-8"));
    for (args, code) in [
        (&["check", path, "--agent", "claude"][..], 1),
        (&["check", path, "--convert", "codex"], 1),
        (&["check", pipe], 1),
        (&["check", "/nowhere/hooks.json"], 1),
        (&["check", path, "--agent", "cursor"], 64),
        (&["check"], 64),
        (&["explain", "/nowhere/event.json"], 1),
    ] {
        let run = run(&world, args, b"{}".to_vec());
        assert_eq!(run.code, Some(code), "{args:?}: {}{}", String::from_utf8_lossy(&run.stdout), run.stderr);
        assert!(!run.stderr.is_empty() || !run.stdout.is_empty(), "{args:?}");
    }
}

#[test]
fn explain_says_who_matches_and_what_would_be_sent() {
    let world = puppet_world();
    let event = json!({
        "hook_event_name": "PreToolUse", "session_id": "s1", "cwd": world.project(),
        "tool_name": "Bash", "tool_input": {"command": "ls"}, "puppet": [{"block": "not that"}],
    });
    let path = world.path("outside/event.json");
    write(&path, 0o600, event.to_string().as_bytes());
    let path = path.to_str().expect("UTF-8");
    for agent in ["claude", "codex"] {
        let shown = run(&world, &["explain", path, "--agent", agent], Vec::new());
        let text = String::from_utf8_lossy(&shown.stdout).into_owned();
        assert_eq!((shown.code, shown.stderr.as_str()), (Some(0), ""), "{text}");
        for part in ["puppet", "block", "not that", "permissionDecision"] {
            assert!(text.contains(part), "{part} in {text}");
        }
        assert_eq!(world.trail(), "", "a dry run leaves no trail");
    }
}
