//! The host's own guests under load, through the real host: results of megabytes, prompts made to cost time, and many subagents at
//! once. What each guest says is tested beside it; here it is about fuel, memory and lost updates.
#![cfg(target_os = "linux")]

mod world;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use world::{Guest, Run, Running, World, printed, write};

/// Most fuel that a guest may burn on an event, however large: half of what it gets, so that growth shows before it hurts.
const MAX_FUEL: u64 = 500_000_000;

/// Most memory of one run of the host, in KiB: a payload of 20 MiB, read and parsed, and the parts of it that guests look at.
const MAX_MEMORY_KIB: u64 = 256 * 1024;

/// A run of the host with all of its own guests. `world.rs` leaves most of them out of other tests.
fn hook(world: &World, agent: &str) -> Command {
    let mut command = world.host(["hook", "--agent", agent]);
    command.env_remove("OMC_SKIP_HOOKS");
    command
}

fn event(world: &World, kind: &str, more: &Value) -> Vec<u8> {
    let mut event = json!({"hook_event_name": kind, "session_id": "s1", "cwd": world.project()});
    event.as_object_mut().expect("an object").extend(more.as_object().expect("members").clone());
    event.to_string().into_bytes()
}

/// Sends an event and says how much memory its run took at most, in KiB, as far as that could be seen.
fn send(world: &World, agent: &str, kind: &str, more: &Value) -> (Run, u64) {
    let running = Running::start(hook(world, agent), event(world, kind, more));
    let status = format!("/proc/{}/status", running.child.id());
    let watch = thread::spawn(move || {
        let mut most = 0;
        // The kernel keeps the maximum, so that the last look before the end counts.
        while let Ok(text) = fs::read_to_string(&status) {
            let peak =
                text.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse().ok());
            let Some(peak) = peak else { break };
            most = most.max(peak);
            thread::sleep(Duration::from_millis(1));
        }
        most
    });
    let run = running.finish();
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{kind}");
    (run, watch.join().expect("nothing panics there"))
}

/// The calls of guests since the world began.
fn calls(world: &World) -> Vec<Value> {
    let trail = world.trail();
    let records = trail.lines().map(|line| serde_json::from_str::<Value>(line).expect("a record is never torn"));
    records.map(|record| record["guest"].clone()).filter(|guest| guest["name"].is_string()).collect()
}

/// Every call has ended by itself, far from the end of its fuel.
fn assert_cheap(world: &World, what: &str) {
    let calls = calls(world);
    assert!(!calls.is_empty(), "{what}");
    for call in calls {
        assert!(call.get("fault").is_none(), "{what}: {call}");
        assert!(call["fuel"].as_u64().is_some_and(|fuel| fuel < MAX_FUEL), "{what}: {call}");
    }
}

#[test]
fn results_of_five_and_twenty_megabytes_stay_within_fuel_and_memory() {
    for megabytes in [5, 20] {
        let size = megabytes << 20;
        let text = |piece: &str| piece.repeat(size / piece.len());
        for (agent, tool, response) in [
            (
                "claude",
                "Bash",
                json!({"stdout": text("error: a line of output\n"), "stderr": "", "interrupted": false}),
            ),
            ("claude", "Read", json!({"type": "text", "file": {"filePath": "/p/a", "content": text("x")}})),
            (
                "claude",
                "Agent",
                json!({"status": "completed", "content": [{"type": "text", "text": text("<remember>\n<")}]}),
            ),
            ("claude", "mcp__x__y", json!(vec![json!({"type": "text", "text": "가"}); size / 30])),
            ("codex", "Bash", json!(text("Exit code: 1\nOutput:\n\"'`\\"))),
        ] {
            let what = format!("{megabytes} MB of {tool} by {agent}");
            let world = World::new(&[]);
            let more = json!({"tool_name": tool, "tool_input": {"command": "x", "file_path": "/p/a"}, "tool_response": response});
            let (run, memory) = send(&world, agent, "PostToolUse", &more);
            assert!(run.stdout.len() < 64 * 1024, "{what}: the result is never echoed");
            assert!(memory < MAX_MEMORY_KIB, "{what}: {memory} KiB, in {:?}", run.took);
            assert_cheap(&world, &what);
        }
    }
}

#[test]
fn a_megabyte_of_bait_in_a_prompt_stays_within_fuel() {
    for bait in [
        "<a ",
        "</a>",
        "<!--",
        "```",
        "~~~\n",
        "\"",
        "'",
        "`",
        "ralph ",
        "랄프",
        "ralph fix ",
        "do not ",
        "[RALPH LOOP",
        "> ",
        "| a ",
        "https://",
        "/a",
        "a/b.c ",
        "\n",
        "diff --git a/a b/b\n",
        "<user>\n",
        "autopilot? ",
        "<remember>",
        "ultrawork,",
        "${",
        "\u{feff}",
        "never touch ",
        "if a, always ",
        "[[",
        "x\n",
        "nevermore\n",
        "always. ",
        "rule: x\n",
        "--- ",
    ] {
        let world = World::new(&[]);
        let prompt = bait.repeat((1 << 20) / bait.len());
        let (run, _) = send(&world, "claude", "UserPromptSubmit", &json!({"prompt": prompt}));
        assert!(run.stdout.len() < 64 * 1024, "{bait:?}");
        assert_cheap(&world, &format!("{bait:?}"));
    }
}

#[test]
fn thirty_two_subagents_that_start_and_end_at_once_are_all_kept() {
    const AGENTS: usize = 32;
    let world = World::new(&[]);
    let all_at_once = |kind: &str| {
        let start = |at: usize| {
            let more = json!({"agent_id": format!("agent-{at}"), "agent_type": "executor", "prompt": "port it"});
            Running::start(hook(&world, "claude"), event(&world, kind, &more))
        };
        let running: Vec<_> = (0..AGENTS).map(start).collect();
        for run in running.into_iter().map(Running::finish) {
            assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
        }
    };
    let read =
        |path: &Path| serde_json::from_slice::<Value>(&fs::read(path).expect("a file")).expect("JSON, never torn");
    // Who could not have the lock in time is taken in with the next event.
    let once_more = |kind: &str| {
        let more = json!({"agent_id": "last", "agent_type": "writer"});
        Running::start(hook(&world, "claude"), event(&world, kind, &more)).finish();
    };
    let tracked = || read(&world.path("project/.omc/state/sessions/s1/subagent-tracking-state.json"));
    all_at_once("SubagentStart");
    once_more("SubagentStart");
    let kept = tracked();
    assert_eq!(
        (&kept["total_spawned"], kept["agents"].as_array().map(Vec::len)),
        (&json!(AGENTS + 1), Some(AGENTS + 1))
    );
    all_at_once("SubagentStop");
    once_more("SubagentStop");
    let kept = tracked();
    assert_eq!((&kept["total_completed"], &kept["total_failed"]), (&json!(AGENTS + 1), &json!(0)));
    for call in calls(&world) {
        assert!(call.get("fault").is_none(), "{call}");
    }
}

/// Runs the real git, as the user would.
fn git(folder: &Path, args: &[&str]) {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=T", "-c", "user.email=t@example.org"]).args(args).current_dir(folder);
    let output = command.env_remove("GIT_DIR").env("HOME", folder).output().expect("git is there");
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn changed_code_is_judged_by_its_new_lines_and_inside_of_new_folders() {
    const OLD: &str = "fn a() {\n    // TODO: implement this one day\n}\n";
    let world = World::new(&[]);
    let put = |path: &str, text: &str| write(&world.path(path), 0o600, text.as_bytes());
    let project = world.project();
    put("project/src/old.rs", OLD);
    fs::remove_dir_all(project.join(".git")).expect("a folder");
    git(&project, &["init", "--quiet"]);
    git(&project, &["add", "."]);
    git(&project, &["commit", "--quiet", "--message", "first"]);
    put("home/.config/omc-host/config.toml", "[guests.workflow-drift-guard]\nenabled = true\n");
    put("home/.omc/config.json", "{\"codeSimplifier\": {\"enabled\": true}}");
    let said = |session: &str| {
        let more =
            json!({"session_id": session, "stop_hook_active": false, "last_assistant_message": "Everything is done."});
        let (run, _) = send(&world, "claude", "Stop", &more);
        String::from_utf8(run.stdout).expect("UTF-8")
    };
    put("project/src/old.rs", &format!("{OLD}fn b() {{}}\n"));
    let clean = said("s1");
    assert!(
        clean.contains("- src/old.rs") && !clean.contains("WORKFLOW DRIFT GUARD"),
        "what was there is nobody's: {clean}"
    );
    put("project/src/old.rs", &format!("{OLD}fn b() {{\n    // TODO: fix this\n}}\n"));
    put("project/new/deep/c.rs", "#[test]\nfn c() { todo!() }\n");
    put("project/other/d.rs", "fn d() { todo!() }\n");
    git(&world.path("project/other"), &["init", "--quiet"]);
    let found = said("s2");
    for part in ["src/old.rs:5 placeholder TODO", "new/deep/c.rs:2 not implemented", "- new/deep/c.rs"] {
        assert!(found.contains(part), "{part} in {found}");
    }
    assert!(!found.contains("old.rs:2") && !found.contains("other/"), "{found}");
}

#[test]
fn commands_that_read_are_approved_in_a_project_that_is_reached_over_a_link_and_not_beside_it() {
    let world = World::new(&[]);
    let (project, outside) = (world.project(), world.path("outside"));
    for file in [project.join(".git/HEAD"), project.join("src/a.rs"), outside.join("a.rs"), outside.join("src/b.rs")] {
        write(&file, 0o600, b"ref: refs/heads/main\n");
    }
    let (link, deep) = (outside.join("link"), outside.join("deep"));
    symlink(&project, &link).expect("a link");
    symlink(project.join("src"), &deep).expect("a link");
    for (cwd, command, is_approved) in [
        (link.clone(), "cat src/a.rs".to_owned(), true),
        (link.join("src"), "cat a.rs".to_owned(), true),
        (deep.clone(), "cat a.rs".to_owned(), true),
        (link.clone(), "cat ../a.rs".to_owned(), false),
        (link.clone(), "cat ../src/b.rs".to_owned(), false),
        (deep.clone(), "cat ../a.rs".to_owned(), false),
        (link.clone(), format!("cat {}", outside.join("a.rs").display()), false),
        (link.clone(), "cat .git/HEAD".to_owned(), false),
    ] {
        let more = json!({"cwd": cwd, "tool_name": "Bash", "tool_input": { "command": command }});
        let (run, _) = send(&world, "claude", "PermissionRequest", &more);
        let answer: Value = serde_json::from_slice(&run.stdout).expect("JSON");
        let behavior = &answer["hookSpecificOutput"]["decision"]["behavior"];
        assert_eq!(behavior == "allow", is_approved, "{command} in {}: {answer}", cwd.display());
    }
}

#[test]
fn rules_are_shown_for_the_files_of_a_project_that_is_reached_over_a_link() {
    let world = World::new(&[]);
    let (project, outside) = (world.project(), world.path("outside"));
    write(&project.join(".git/HEAD"), 0o600, b"ref: refs/heads/main\n");
    write(&project.join(".claude/rules/r.md"), 0o600, b"---\nglobs: src/*.rs\n---\nNAME THINGS WELL\n");
    write(&project.join("src/a.rs"), 0o600, b"");
    write(&outside.join("src/a.rs"), 0o600, b"");
    symlink(&project, outside.join("link")).expect("a link");
    let link = outside.join("link");
    for (case, (cwd, path, is_shown)) in [
        (link.clone(), link.join("src/a.rs"), true),
        (link.clone(), project.join("src/a.rs"), true),
        (link.clone(), "src/a.rs".into(), true),
        (link.join("src"), link.join("src/a.rs"), true),
        (link.join("src"), "a.rs".into(), true),
        (link.clone(), link.join("other/a.rs"), false),
        (link.clone(), outside.join("src/a.rs"), false),
        (link.clone(), link.join("../src/a.rs"), false),
        (link.join("src"), "../../src/a.rs".into(), false),
    ]
    .into_iter()
    .enumerate()
    {
        let input = json!({ "file_path": path });
        let more = json!({
            "cwd": cwd, "session_id": format!("s{case}"), "tool_name": "Read", "tool_input": input, "tool_response": "x",
        });
        let (run, _) = send(&world, "claude", "PostToolUse", &more);
        let answer = String::from_utf8(run.stdout).expect("UTF-8");
        assert_eq!(
            answer.contains("NAME THINGS WELL"),
            is_shown,
            "{} from {}: {answer}",
            path.display(),
            cwd.display()
        );
    }
}

/// What a core module imports from where the adapter of WASI 0.1 is.
const ADAPTED: &[u8] = b"wasi_snapshot_preview1";

/// What of WASI a guest may import when it was linked without a process around it.
const BARE: &[&str] = &[
    "wasi:cli/stderr",
    "wasi:clocks/wall-clock",
    "wasi:filesystem/preopens",
    "wasi:filesystem/types",
    "wasi:io/error",
    "wasi:io/streams",
    "wasi:random/insecure-seed",
];

/// Whether guests were built with a C library that knows WASI 0.1 only, as Debian's. What translates for it imports a process of
/// its own, and `omc-bare` can do nothing about that.
fn uses_an_adapter() -> bool {
    let component = fs::read(world::component("bare-puppet")).expect("a component");
    component.windows(ADAPTED.len()).any(|bytes| bytes == ADAPTED)
}

#[test]
fn of_wasi_the_hosts_own_guests_import_files_time_and_chance() {
    if uses_an_adapter() {
        return;
    }
    let world = World::new(&[]);
    let guests: Value = serde_json::from_str(&printed(&world, ["audit", "--json"])).expect("JSON");
    let guests = guests.as_array().expect("guests");
    assert!(guests.len() > 15);
    for guest in guests {
        let imports = guest["imports"]["runtime"].as_array().expect("imports");
        for import in imports.iter().filter_map(Value::as_str) {
            let interface = import.split('@').next().unwrap_or_default();
            assert!(BARE.contains(&interface), "{} imports {import}: does the C library name it anew?", guest["name"]);
        }
    }
}

/// The record of a guest that takes some steps in a world of its own.
fn done_by(guest: &str, steps: &Value) -> Value {
    let world = World::new(&[Guest { name: guest.to_owned(), grants: vec!["omc=rw:/omc".to_owned()] }]);
    world::create_dirs(&world.project().join(".omc"));
    let more = json!({"prompt": "hello", "puppet": steps});
    Running::start(world.host(["hook", "--agent", "claude"]), event(&world, "UserPromptSubmit", &more)).finish();
    calls(&world).into_iter().find(|call| call["name"] == guest).expect("it is called")
}

#[test]
fn a_guest_without_a_process_around_it_has_files_as_any_other() {
    let steps = json!([
        {"write": ["/omc/a", "text"]},
        {"append": ["/omc/a", " and more"]},
        {"read": "/omc/a"},
        {"stat": "/omc/a"},
        {"read-first-bytes": "/omc/a"},
        {"create-dir": "/omc/state/deep"},
        {"write-bytes": ["/omc/state/deep/b", 300_000]},
        {"read": "/omc/state/deep/b"},
        {"rename": ["/omc/state/deep/b", "/omc/state/c"]},
        {"hold": ["/omc/state/c", 8]},
        {"list": "/omc/state"},
        {"truncate": "/omc/state/c"},
        {"stat": "/omc/state/c"},
        {"hard-link": ["/omc/state/c", "/omc/d"]},
        {"read-link": "/omc/state/c"},
        {"remove": "/omc/state/c"},
        {"remove-dir": "/omc/state/deep"},
        {"list": "/omc/state"},
        {"read": "/omc/missing"},
        {"read": "/omc"},
        {"write": ["/omc/../out", "x"]},
        {"read": "/etc/passwd"},
    ]);
    let (bare, other) = (done_by("bare-puppet", &steps), done_by("puppet", &steps));
    assert_eq!((&bare["log"], bare.get("fault")), (&other["log"], None));
    assert_eq!(bare["log"].as_array().map(Vec::len), steps.as_array().map(Vec::len));
    assert!(bare["log"].to_string().contains("read /omc/a: ok 13"), "{bare}");
}

#[test]
fn a_guest_without_a_process_around_it_panics_in_words_and_traps_for_what_it_lacks() {
    let panic = json!([{"panic": "out of ideas"}]);
    let (bare, other) = (done_by("bare-puppet", &panic), done_by("puppet", &panic));
    let words =
        |call: &Value| call["output"].as_str().and_then(|output| Some(output.split_once("out of ideas")?.1.to_owned()));
    assert_eq!((&bare["fault"], words(&bare)), (&other["fault"], words(&other)));
    assert!(words(&bare).is_some(), "{bare}");

    if uses_an_adapter() {
        return;
    }
    for steps in [json!([{"exit": 0}]), json!([{"print": "x"}]), json!([{"spin-ms": 1}]), json!([{"sleep-ms": 1}])] {
        assert_eq!(done_by("bare-puppet", &steps)["fault"]["kind"], "trap", "{steps}");
    }
}

#[test]
fn in_codex_a_keyword_holds_once_the_model_has_read_the_skill() {
    let world = World::new(&[]);
    let is_held = || {
        let (run, _) =
            send(&world, "codex", "Stop", &json!({"stop_hook_active": false, "last_assistant_message": "done"}));
        serde_json::from_slice(&run.stdout).is_ok_and(|answer: Value| answer["decision"] == "block")
    };
    send(&world, "codex", "UserPromptSubmit", &json!({"prompt": "ralph fix src/queue.rs until all tests pass"}));
    assert!(!is_held(), "it may have been a false alarm");
    let read = json!({"tool_name": "Bash", "tool_input": {"command": "cat ~/.agents/skills/omc/ralph/SKILL.md"}});
    send(&world, "codex", "PreToolUse", &read);
    assert!(is_held());
}

#[test]
fn a_guest_whose_code_is_packed_works_as_any_other() {
    let world = World::new(&[]);
    let (run, _) = send(&world, "claude", "Setup", &json!({"trigger": "init"}));
    assert!(String::from_utf8_lossy(&run.stdout).contains("[OMC SETUP] "), "{}", String::from_utf8_lossy(&run.stdout));
    assert!(world.project().join(".omc/state/checkpoints").is_dir());
    assert_cheap(&world, "setup");
}
