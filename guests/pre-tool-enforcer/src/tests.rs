//! The glue: events, files and variables in, answers and files out.

use std::fs;
use std::time::Duration;

use omc_guest::testing::{Outcome, World};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;

fn omc() -> TempDir {
    tempfile::tempdir().expect("a folder")
}

fn world(omc: &TempDir, tool: &str, input: &Value) -> World {
    let payload = json!({"session_id": "s1", "cwd": "/p", "tool_name": tool, "tool_input": input});
    let mut world = World::new("pre-tool-use", payload).with_omc_dir(omc.path());
    world.project_root = Some("/p".to_owned());
    world
}

fn plant(omc: &TempDir, path: &str, value: &Value) {
    let path = omc.path().join(path);
    fs::create_dir_all(path.parent().expect("a parent")).expect("folders");
    fs::write(path, value.to_string()).expect("a file");
}

fn call(world: &World) -> Outcome {
    world.call::<PreToolEnforcer>()
}

fn said(outcome: &Outcome) -> String {
    assert_eq!(outcome.decision, Ok(Decision::Pass));
    outcome.context.join("\n")
}

fn refused(outcome: Outcome) -> String {
    match outcome.decision {
        Ok(Decision::Block(reason)) => reason,
        other => panic!("not refused: {other:?}"),
    }
}

fn mode_on(over: &Value) -> Value {
    let now: Timestamp = SystemTime::now().into();
    let mut state =
        json!({"active": true, "session_id": "s1", "started_at": now.to_string(), "last_checked_at": now.to_string()});
    for (name, value) in over.as_object().expect("an object") {
        state[name] = value.clone();
    }
    state
}

#[test]
fn a_reminder_comes_once_in_its_cool_down_for_each_session() {
    let omc = omc();
    let bash = world(&omc, "Bash", &json!({"command": "ls"}));
    assert!(said(&call(&bash)).contains("run_in_background"));
    assert_eq!(said(&call(&world(&omc, "Bash", &json!({"command": "pwd"})))), "");
    assert_ne!(said(&call(&world(&omc, "Edit", &json!({"file_path": "/p/a"})))), "", "another kind");
    assert_eq!(said(&call(&world(&omc, "Write", &json!({"file_path": "/p/b"})))), "", "the same kind");
    assert_ne!(said(&call(&bash.clone().with_env("OMC_PRE_TOOL_ADVISORY_COOLDOWN_MS", "0"))), "");
    assert_eq!(said(&call(&bash.clone().with_env("OMC_PRE_TOOL_ADVISORY_COOLDOWN_MS", "x"))), "");
    let mut busy = world(&omc, "Read", &json!({}));
    busy.locks_are_free = false;
    assert_ne!(said(&call(&busy)), "", "what cannot be remembered is said again");
}

#[test]
fn without_anything_to_say_nothing_is_written() {
    let omc = omc();
    for tool in ["MultiEdit", "WebFetch", "mcp__a__b", "TaskList", "FutureTool", "bash", ""] {
        for input in [json!({}), json!(null), json!([1]), json!("text")] {
            let outcome = call(&world(&omc, tool, &input));
            assert_eq!(said(&outcome), "", "{tool} {input}");
            assert!(outcome.logged.is_empty(), "{tool} {:?}", outcome.logged);
        }
    }
    let quiet = world(&omc, "Bash", &json!({"command": "ls"})).with_env("OMC_QUIET", "1");
    assert_eq!(said(&call(&quiet)), "");
    assert_eq!(fs::read_dir(omc.path()).expect("a folder").count(), 0);
    assert_eq!(call(&World::new("stop", json!({}))).decision, Ok(Decision::Pass));
}

#[test]
fn the_boulder_rolls_only_in_a_mode_that_would_hold_a_stop() {
    let old = SystemTime::now() - Duration::from_hours(30);
    let old = Timestamp::from(old).to_string();
    for (path, state, rolls) in [
        ("state/sessions/s1/ralph-state.json", mode_on(&json!({})), true),
        ("state/ultrawork-state.json", mode_on(&json!({})), true),
        ("state/sessions/s1/ralph-state.json", mode_on(&json!({"active": false})), false),
        ("state/sessions/s1/ralph-state.json", mode_on(&json!({"session_id": "s2"})), false),
        ("state/sessions/s1/ralph-state.json", mode_on(&json!({"started_at": old, "last_checked_at": old})), false),
        ("state/sessions/s1/ralph-state.json", mode_on(&json!({"awaiting_confirmation": true})), false),
        ("state/sessions/s1/ralplan-state.json", mode_on(&json!({})), false),
    ] {
        let omc = omc();
        plant(&omc, path, &state);
        assert_eq!(said(&call(&world(&omc, "WebFetch", &json!({})))) == BOULDER, rolls, "{path} {state}");
    }
}

#[test]
fn open_items_of_both_lists_stand_in_front() {
    let omc = omc();
    plant(
        &omc,
        "todos.json",
        &json!({"todos": [{"status": "pending"}, {"status": "in_progress"}, {"status": "completed"}]}),
    );
    let world = world(&omc, "Edit", &json!({"file_path": "/p/a"})).with_file(
        Root::Project,
        ".claude/todos.json",
        r#"[{"status": "pending"}, {"status": "cancelled"}]"#,
    );
    assert!(said(&call(&world)).starts_with("[1 active, 2 pending] "));
}

#[test]
fn the_configured_model_is_filled_in_even_if_nothing_is_said() {
    let omc = omc();
    let input = json!({"subagent_type": "omc:executor", "prompt": "p", "extra": [1]});
    let world = world(&omc, "Agent", &input).with_setting("agents", json!({"executor": "claude-opus-4-6"}));
    for round in 0..2 {
        let outcome = call(&world);
        assert_eq!(said(&outcome).contains("(opus)"), round == 0);
        let mut filled = input.clone();
        filled["model"] = "opus".into();
        assert_eq!(outcome.updated_input, Some(filled));
    }
}

#[test]
fn a_refusal_is_never_throttled_and_changes_no_input() {
    let omc = omc();
    let world = world(&omc, "Task", &json!({"subagent_type": "executor", "model": "gpt-5"}))
        .with_setting("routing.forceInherit", true)
        .with_setting("agents", json!({"executor": "opus"}));
    for _ in 0..3 {
        let outcome = call(&world);
        assert_eq!(outcome.updated_input, None);
        assert!(refused(outcome).starts_with("[MODEL ROUTING]"));
    }
    let defined = "---\nname: reader\nmodel: claude-sonnet-4-6\n---\n";
    let world = self::world(&omc, "Task", &json!({"subagent_type": "reader"}))
        .with_env("OMC_ROUTING_FORCE_INHERIT", "true")
        .with_env("ANTHROPIC_DEFAULT_SONNET_MODEL", "us.anthropic.claude-sonnet-4-6")
        .with_file(Root::Agent, "agents/reader.md", defined);
    assert!(refused(call(&world)).contains("`claude-sonnet-4-6`"));
}

#[test]
fn tools_are_left_to_subagents_by_the_users_rules() {
    let omc = omc();
    let rules = json!([{"pattern": "Read|Grep", "count": 2, "windowSeconds": 60, "denyMessage": "ask the explorer", "bypassEnv": null, "isBypassed": false}]);
    let with = |tool: &str| world(&omc, tool, &json!({})).with_setting("routing.forceDelegation", rules.clone());
    assert_eq!(call(&with("Read")).decision, Ok(Decision::Pass));
    assert_eq!(call(&with("Edit")).decision, Ok(Decision::Pass));
    for _ in 0..3 {
        assert_eq!(refused(call(&with("Grep"))), "ask the explorer");
    }
    let rule = json!([{"pattern": "Bash", "count": 1, "windowSeconds": 60, "denyMessage": null, "bypassEnv": null, "isBypassed": false}]);
    for payload in
        [json!({"tool_name": "Bash"}), json!({"tool_name": "Bash", "tool_input": null, "session_id": "../x"})]
    {
        let world = World::new("pre-tool-use", payload)
            .with_omc_dir(omc.path())
            .with_setting("routing.forceDelegation", rule.clone());
        assert!(refused(call(&world)).starts_with("[OMC] Force-agent-delegation:"));
    }
}

#[test]
fn no_agent_starts_in_a_full_context() {
    let omc = omc();
    let tail = json!({"type": "assistant", "context_window": 200_000, "input_tokens": 150_000}).to_string();
    let full = |tool: &str| {
        let mut world = world(&omc, tool, &json!({"prompt": "p"}));
        world.transcript = Some(tail.clone());
        world
    };
    for tool in ["Task", "Agent", "spawn_agent"] {
        let reason = refused(call(&full(tool)));
        assert!(reason.contains("75%") && reason.contains("72%"), "{reason}");
    }
    for tool in ["Bash", "TaskCreate", "SendMessage"] {
        assert_eq!(call(&full(tool)).decision, Ok(Decision::Pass), "{tool}");
    }
    let lenient = full("Task").with_env("OMC_AGENT_PREFLIGHT_CONTEXT_THRESHOLD", "90");
    assert_eq!(call(&lenient).decision, Ok(Decision::Pass));
    plant(&omc, "state/sessions/s1/hud-stdin-cache.json", &json!({"context_window": {"used_percentage": 80}}));
    refused(call(&world(&omc, "Task", &json!({}))));
}

#[test]
fn new_text_is_questioned_and_documentation_is_not() {
    let omc = omc();
    let slop = "// Add a fallback to the old API";
    for (tool, input, questioned) in [
        ("Edit", json!({"file_path": "/p/src/a.ts", "new_string": slop}), true),
        ("Edit", json!({"file_path": "/p/src/a.ts", "old_string": slop, "new_string": "x"}), false),
        ("Edit", json!({"file_path": "/p/docs/a.ts", "new_string": slop}), false),
        ("Write", json!({"file_path": "/p/README.md", "content": slop}), false),
        ("MultiEdit", json!({"file_path": "/p/a.ts", "edits": [{"new_string": "x"}, {"new_string": slop}]}), true),
        ("Bash", json!({"command": "node fallback-shim.js"}), true),
        ("Bash", json!({"command": "cat docs/fallback.md"}), false),
        ("Grep", json!({"pattern": slop}), false),
        ("Task", json!({"prompt": "work around the flaky test runner"}), true),
        (
            "apply_patch",
            json!({"command": format!("*** Begin Patch\n*** Update File: a.ts\n-{slop}\n+ok\n*** End Patch")}),
            false,
        ),
        (
            "apply_patch",
            json!({"command": format!("*** Begin Patch\n*** Update File: a.ts\n+{slop}\n*** End Patch")}),
            true,
        ),
        ("Edit", json!({"file_path": 7, "new_string": [slop]}), false),
    ] {
        let text = said(&call(&world(&omc, tool, &input).with_env("OMC_QUIET", "2")));
        assert_eq!(text.contains("[SLOP WARNING]"), questioned, "{tool} {input}");
    }
}

#[test]
fn an_unnamed_agent_is_sent_to_the_team_every_time() {
    let omc = omc();
    plant(&omc, "state/sessions/s1/team-state.json", &mode_on(&json!({"team_name": "atlas"})));
    for _ in 0..2 {
        let text = said(&call(&world(&omc, "Agent", &json!({"subagent_type": "executor"})).with_env("OMC_QUIET", "2")));
        assert!(text.starts_with("[TEAM ROUTING REQUIRED]") && text.contains("atlas"), "{text}");
    }
    let named = said(&call(&world(&omc, "Agent", &json!({"subagent_type": "executor", "name": "worker-1"}))));
    assert!(named.starts_with("Spawning agent: executor"), "{named}");
}

#[test]
fn running_agents_are_counted_from_the_tracker() {
    let omc = omc();
    let running = json!({"agent_id": "a", "agent_type": "x", "status": "running"});
    plant(&omc, "state/sessions/s1/subagent-tracking-state.json", &json!({"agents": [running]}));
    let text = said(&call(&world(&omc, "Task", &json!({"subagent_type": "x"}))));
    assert!(text.ends_with(" | Active agents: 1"), "{text}");
}

#[test]
fn an_ultragoal_run_waits_for_its_goal_and_remembers_it() {
    let omc = omc();
    plant(&omc, "state/sessions/s1/ultragoal-state.json", &mode_on(&json!({"objective": "ship it"})));
    let read = || world(&omc, "Read", &json!({"file_path": "/p/a"}));
    assert!(refused(call(&read())).contains("ship it"));
    assert!(said(&call(&read().with_env("ALLOW_ULTRAGOAL_WITHOUT_GOAL", "1"))).contains("parallel"));
    for (tool, input) in [
        ("Skill", json!({"skill": "omc:cancel"})),
        ("ToolSearch", json!({})),
        ("mcp__x__state_clear", json!({})),
        ("Bash", json!({"command": "omc ultragoal status"})),
    ] {
        assert_eq!(call(&world(&omc, tool, &input)).decision, Ok(Decision::Pass), "{tool}");
    }
    refused(call(&world(&omc, "Bash", &json!({"command": "omc ultragoal status && rm x"}))));

    let set = json!({"type": "user", "message": {"role": "user", "content":
        "<command-name>/goal</command-name>\n<command-args>Ship It</command-args>"}});
    let mut seen = read();
    seen.transcript = Some(set.to_string());
    assert_eq!(call(&seen).decision, Ok(Decision::Pass));
    assert_eq!(call(&read()).decision, Ok(Decision::Pass), "the transcript has gone on");
    let cleared = set.to_string().replace("Ship It", "clear");
    seen.transcript = Some(cleared);
    refused(call(&seen));
    refused(call(&read()));

    let mut of_subagent = json!({"session_id": "s1", "agent_id": "a1", "tool_name": "Read", "tool_input": {}});
    of_subagent["cwd"] = "/p".into();
    let of_subagent = World::new("pre-tool-use", of_subagent).with_omc_dir(omc.path());
    assert_eq!(call(&of_subagent).decision, Ok(Decision::Pass), "subagents have no goals");
}
