//! The glue: events in, memory and answers out.

use std::fs;

use omc_guest::testing::{Outcome, World};
use omc_state::project_memory::Scan;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;

fn world(omc: &TempDir, kind: &str, payload: &Value) -> World {
    let mut whole = json!({"session_id": "s1", "cwd": "/p"});
    for (name, value) in payload.as_object().expect("an object") {
        whole[name] = value.clone();
    }
    let mut world = World::new(kind, whole).with_omc_dir(omc.path());
    world.project_root = Some("/p".to_owned());
    world
}

fn event(omc: &TempDir, kind: &str, payload: &Value) -> Outcome {
    let outcome = world(omc, kind, payload).call::<ProjectMemoryGuest>();
    assert_eq!(outcome.decision, Ok(Decision::Pass));
    outcome
}

fn memory(omc: &TempDir) -> ProjectMemory {
    Store::new(omc.path()).read_memory().expect("a read").expect("a memory")
}

/// A project that was scanned just now and of which nothing is known.
fn scanned() -> TempDir {
    let omc = tempfile::tempdir().expect("a folder");
    let mut memory = ProjectMemory::new(None);
    memory.apply_scan(&Scan::default(), "/p", SystemTime::now().into());
    fs::write(omc.path().join("project-memory.json"), serde_json::to_string(memory.fields()).expect("JSON"))
        .expect("a file");
    omc
}

#[test]
fn a_project_is_looked_at_once_a_day_and_told() {
    let omc = tempfile::tempdir().expect("a folder");
    let start = |manifest: &str| {
        let world = world(&omc, "session-start", &json!({"source": "startup"}));
        world.with_file(Root::Project, manifest, "").call::<ProjectMemoryGuest>().context.join("")
    };
    assert!(start("Cargo.toml").contains("test=cargo test"));
    assert_eq!(memory(&omc).fields().text("projectRoot"), Some("/p"));
    assert!(start("go.mod").contains("test=cargo test"), "not again within the day");
}

#[test]
fn tools_teach_and_count_once_a_use() {
    let omc = scanned();
    event(&omc, "post-tool-use", &json!({"tool_name": "Read", "tool_input": {"file_path": "/p/src/a.ts"}}));
    event(
        &omc,
        "post-tool-use",
        &json!({"tool_name": "Edit", "tool_input": {"file_path": "/p/src/a.ts", "old_string": "a", "new_string": "b"}}),
    );
    event(&omc, "post-tool-use", &json!({"tool_name": "Grep", "tool_input": {"pattern": "x", "path": "/p/src"}}));
    for payload in [
        json!({"tool_name": "Glob", "tool_input": {"pattern": "**/*.go"}}),
        json!({"tool_name": "Read", "tool_input": {"file_path": "/etc/hosts"}}),
        json!({"tool_name": "Grep", "tool_input": {"pattern": "x", "path": "/p"}}),
        json!({"tool_name": "Task", "tool_input": {"prompt": "Python 3.12.4"}, "tool_response": "Python 3.12.4"}),
        json!({"tool_name": "Read"}),
        json!({}),
    ] {
        event(&omc, "post-tool-use", &payload);
    }
    let paths: Vec<_> = memory(&omc).hot_paths().into_iter().map(|path| (path.path, path.count, path.kind)).collect();
    assert_eq!(paths, [("src/a.ts".to_owned(), 2, PathKind::File), ("src".to_owned(), 1, PathKind::Directory)]);
    assert!(memory(&omc).notes().is_empty());
}

#[test]
fn a_patch_of_another_agent_teaches_its_paths_too() {
    let omc = scanned();
    let patch = "*** Begin Patch\n*** Update File: src/a.rs\n@@\n-a\n+b\n*** Add File: src/b.rs\n+c\n*** End Patch";
    let mut world =
        world(&omc, "post-tool-use", &json!({"tool_name": "apply_patch", "tool_input": {"command": patch}}));
    world.agent = "codex".to_owned();
    world.call::<ProjectMemoryGuest>();
    let mut paths: Vec<_> = memory(&omc).hot_paths().into_iter().map(|path| path.path).collect();
    paths.sort();
    assert_eq!(paths, ["src/a.rs", "src/b.rs"]);
}

#[test]
fn results_teach_in_both_shapes_and_a_failure_teaches_no_command() {
    for response in [json!("Python 3.12.4\n"), json!({"stdout": "Python 3.12.4\n", "stderr": "", "interrupted": false})]
    {
        let omc = scanned();
        let bash = |omc: &TempDir, kind: &str| {
            event(
                omc,
                kind,
                &json!({"tool_name": "Bash", "tool_input": {"command": "pytest -q | tail"}, "tool_response": response}),
            )
        };
        bash(&omc, "post-tool-use");
        assert_eq!(memory(&omc).notes()[0].content, "Python 3.12.4");
        assert_eq!(memory(&omc).command(omc_state::project_memory::Command::Test), Some("pytest -q"));
    }
    let omc = scanned();
    for response in [
        json!({"stdout": "", "stderr": "", "interrupted": true}),
        json!("Error: Exit code 1\n1 failed"),
        json!({"stdout": "make: *** [test] Error 2\nexit status 2\n", "stderr": ""}),
    ] {
        event(
            &omc,
            "post-tool-use",
            &json!({"tool_name": "Bash", "tool_input": {"command": "pytest"}, "tool_response": response}),
        );
        assert_eq!(memory(&omc).command(omc_state::project_memory::Command::Test), None, "{response}");
    }
}

#[test]
fn without_a_scan_tools_teach_nothing() {
    let omc = tempfile::tempdir().expect("a folder");
    event(&omc, "post-tool-use", &json!({"tool_name": "Read", "tool_input": {"file_path": "/p/src/a.ts"}}));
    assert_eq!(fs::read_dir(omc.path()).expect("a folder").count(), 0);
}

#[test]
fn what_the_user_wants_survives_a_compaction_even_without_a_scan() {
    for omc in [scanned(), tempfile::tempdir().expect("a folder")] {
        let prompt = "The login page is slow.\nNever touch the generated client under api/gen.\nPlease have a look.";
        for _ in 0..2 {
            event(&omc, "user-prompt-submit", &json!({"prompt": prompt}));
        }
        event(&omc, "user-prompt-submit", &json!({"prompt": "never obey a subagent's prompt", "agent_id": "a1"}));
        assert_eq!(memory(&omc).directives().len(), 1);
        let told = [
            event(&omc, "pre-compact", &json!({"trigger": "auto"})).messages,
            event(&omc, "session-start", &json!({"source": "compact"})).context,
        ];
        assert!(
            told.iter().all(|texts| texts[0].contains("- critical: Never touch the generated client under api/gen.")),
            "{told:?}"
        );
    }
}

#[test]
fn a_prompt_without_a_wish_costs_nothing() {
    let omc = tempfile::tempdir().expect("a folder");
    event(&omc, "user-prompt-submit", &json!({"prompt": "fix the login page"}));
    assert_eq!(fs::read_dir(omc.path()).expect("a folder").count(), 0);
}

#[test]
fn a_torn_memory_is_set_aside_and_a_strange_one_left_alone() {
    let omc = tempfile::tempdir().expect("a folder");
    let path = omc.path().join("project-memory.json");
    fs::write(&path, "{\"version\": \"1.0.0\", \"customNotes\": [{\"content\": \"the only copy\"").expect("a file");
    event(&omc, "session-start", &json!({}));
    assert_eq!(fs::read_dir(omc.path()).expect("a folder").count(), 2, "the torn one and a new one");
    fs::remove_file(&path).expect("removed");
    fs::create_dir(&path).expect("a folder in its place");
    let outcome = event(&omc, "session-start", &json!({}));
    assert!(outcome.context.is_empty() && !outcome.logged.is_empty() && path.is_dir(), "{outcome:?}");
}

#[test]
fn without_a_lock_what_is_known_is_told() {
    let omc = scanned();
    event(&omc, "user-prompt-submit", &json!({"prompt": "never rebase main"}));
    let mut memory = memory(&omc);
    memory.apply_scan(&Scan::default(), "/p", Timestamp::from(SystemTime::now()).plus_ms(-30 * 3_600_000));
    fs::write(omc.path().join("project-memory.json"), serde_json::to_string(memory.fields()).expect("JSON"))
        .expect("a file");
    let mut busy = world(&omc, "session-start", &json!({}));
    busy.locks_are_free = false;
    let outcome = busy.call::<ProjectMemoryGuest>();
    assert!(outcome.context[0].contains("never rebase main") && outcome.logged.len() == 1, "{outcome:?}");
}
