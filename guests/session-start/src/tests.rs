//! The glue: events in, files and answers out.

use std::{fs, path::Path};

use omc_guest::testing::{Outcome, World};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;

fn plant(omc: &TempDir, path: &str, content: &str) {
    let path = omc.path().join(path);
    fs::create_dir_all(path.parent().expect("a parent")).expect("folders");
    fs::write(path, content).expect("a file");
}

fn start(omc: &TempDir, session: &str, source: &str) -> Outcome {
    let payload = json!({"session_id": session, "cwd": "/p", "source": source});
    World::new("session-start", payload).with_omc_dir(omc.path()).call::<SessionStart>()
}

fn context(outcome: &Outcome) -> String {
    assert_eq!(outcome.decision, Ok(Decision::Pass));
    outcome.context.join("\n")
}

fn ralph(session: &str) -> Value {
    let now = Timestamp::from(SystemTime::now()).to_string();
    json!({"active": true, "session_id": session, "started_at": now, "prompt": "port the parser", "iteration": 3, "max_iterations": 9})
}

const RALPH: &str = "state/sessions/s1/ralph-state.json";

#[test]
fn a_start_is_noted_and_an_empty_project_says_nothing() {
    let omc = tempfile::tempdir().expect("a folder");
    let outcome = start(&omc, "s1", "startup");
    assert_eq!(context(&outcome), "");
    assert_eq!(outcome.logged, [""; 0]);
    let marker = fs::read_to_string(omc.path().join("state/sessions/s1/session-started.json")).expect("a marker");
    assert_eq!(serde_json::from_str::<Value>(&marker).expect("JSON")["cwd"], "/p");
    assert!(omc.path().join(".gitignore").exists());
}

#[test]
fn codex_reads_its_own_command() {
    let omc = tempfile::tempdir().expect("a folder");
    plant(&omc, RALPH, &ralph("s1").to_string());
    let payload = json!({"session_id": "s1", "cwd": "/p", "source": "resume"});
    let mut world = World::new("session-start", payload).with_omc_dir(omc.path());
    "codex".clone_into(&mut world.agent);
    let text = context(&world.call::<SessionStart>());
    assert!(text.contains("\n$cancel ends the mode.") && !text.contains(":cancel"), "{text}");
}

#[test]
fn only_the_sessions_own_modes_are_restored() {
    for (path, owner, restored) in [
        (RALPH, "s1", true),
        ("state/ralph-state.json", "s1", true),
        (RALPH, "s2", false),
        ("state/ralph-state.json", "s2", false),
        ("state/sessions/s2/ralph-state.json", "s2", false),
    ] {
        let omc = tempfile::tempdir().expect("a folder");
        plant(&omc, path, &ralph(owner).to_string());
        assert_eq!(
            context(&start(&omc, "s1", "resume")).contains("[RALPH LOOP RESTORED]"),
            restored,
            "{path} of {owner}"
        );
    }
}

#[test]
fn a_mode_that_was_cancelled_or_completed_does_not_come_back() {
    let now = Timestamp::from(SystemTime::now());
    let signal = json!({"active": true, "requested_at": now.plus_ms(1_000).to_string()});
    let ledger = json!({"active_skills": {"ralph": {"completed_at": now.plus_ms(1_000).to_string()}}});
    for (file, content) in [("cancel-signal.json", signal), ("skill-active-state.json", ledger)] {
        let omc = tempfile::tempdir().expect("a folder");
        plant(&omc, RALPH, &ralph("s1").to_string());
        plant(&omc, &format!("state/sessions/s1/{file}"), &content.to_string());
        assert_eq!(context(&start(&omc, "s1", "compact")), "", "{file}");
    }
}

#[test]
fn without_a_usable_id_only_the_projects_notes_are_told() {
    for id in ["../evil", "unknown", ""] {
        let omc = tempfile::tempdir().expect("a folder");
        plant(&omc, "state/ralph-state.json", &ralph(id).to_string());
        plant(&omc, "notepad.md", "## Priority Context\nread me first\n");
        let text = context(&start(&omc, id, "startup"));
        assert!(text.contains("read me first") && !text.contains("RESTORED"), "{id}: {text}");
        assert!(!omc.path().join("state/sessions").exists());
    }
}

#[test]
fn open_tasks_are_counted_over_both_lists() {
    let omc = tempfile::tempdir().expect("a folder");
    plant(&omc, "todos.json", r#"{"todos": [{"status": "pending"}, {"status": "completed"}]}"#);
    let world = World::new("session-start", json!({"session_id": "s1"})).with_omc_dir(omc.path());
    let outcome = world
        .with_file(Root::Project, ".claude/todos.json", r#"[{}, {"status": "in_progress"}]"#)
        .call::<SessionStart>();
    assert!(context(&outcome).contains(" 3 unfinished tasks"), "{outcome:?}");
}

#[test]
fn old_notes_and_dead_sessions_go_on_the_way() {
    let omc = tempfile::tempdir().expect("a folder");
    plant(&omc, "notepad.md", "## Working Memory\n### 2020-05-06 07:08\nlong forgotten\n\n## MANUAL\nmine\n");
    fs::create_dir_all(omc.path().join("state/sessions/hollow")).expect("a folder");
    assert_eq!(context(&start(&omc, "s1", "startup")), "");
    let notepad = fs::read_to_string(omc.path().join("notepad.md")).expect("a file");
    assert!(!notepad.contains("long forgotten") && notepad.contains("mine"));
    assert!(!omc.path().join("state/sessions/hollow").exists());
}

#[test]
fn a_notepad_that_cannot_be_read_is_told_and_the_rest_still_counts() {
    for (bytes, why) in
        [("x".repeat(300_000).into_bytes(), "is larger than 262144 bytes"), (b"\xff".to_vec(), "is not UTF-8")]
    {
        let omc = tempfile::tempdir().expect("a folder");
        fs::write(omc.path().join("notepad.md"), &bytes).expect("written");
        plant(&omc, "todos.json", "[{}]");
        let text = context(&start(&omc, "s1", "startup"));
        assert!(text.contains(&format!("[NOTEPAD - NOT READ] `notepad.md` {why}")), "{text}");
        assert!(text.contains("[PENDING TASKS DETECTED]"), "{text}");
        assert_eq!(fs::read(omc.path().join("notepad.md")).expect("as it was"), bytes);
    }
}

#[cfg(unix)]
#[test]
fn links_are_neither_read_nor_written_and_the_rest_still_counts() {
    let (omc, outside) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    plant(&outside, "private.md", "## Priority Context\nthe spare key is under the mat\n");
    std::os::unix::fs::symlink(outside.path().join("private.md"), omc.path().join("notepad.md")).expect("a link");
    std::os::unix::fs::symlink(outside.path(), omc.path().join("state")).expect("a link");
    plant(&omc, "todos.json", "[{}]");
    let outcome = start(&omc, "s1", "startup");
    let text = context(&outcome);
    assert!(text.contains("[PENDING TASKS DETECTED]") && !text.contains("spare key"), "{text}");
    assert_eq!(outcome.logged.len(), 4, "{:?}", outcome.logged);
    assert_eq!(fs::read_dir(outside.path()).expect("a folder").count(), 1);
}

#[test]
fn other_events_are_none_of_its_business() {
    let outcome = World::new("session-end", json!({"session_id": "s1"}))
        .with_omc_dir(Path::new("/nonexistent"))
        .call::<SessionStart>();
    assert_eq!(context(&outcome), "");
}

#[test]
fn a_provider_with_its_own_names_is_announced_to_the_agent_that_names_models() {
    for (env, setting, agent, announced) in [
        (vec![], false, "claude", false),
        (vec![], true, "claude", true),
        (vec![("CLAUDE_CODE_USE_BEDROCK", "1")], false, "claude", true),
        (vec![("CLAUDE_CODE_USE_BEDROCK", "1")], false, "codex", false),
        (vec![("CLAUDE_CODE_USE_VERTEX", "1"), ("OMC_ROUTING_FORCE_INHERIT", "false")], true, "claude", false),
        (vec![("ANTHROPIC_BASE_URL", "https://proxy.test")], false, "claude", true),
        (vec![("ANTHROPIC_MODEL", "claude-opus-4-6")], false, "claude", false),
        (vec![("OMC_ROUTING_FORCE_INHERIT", "true")], false, "claude", true),
    ] {
        let omc = tempfile::tempdir().expect("a folder");
        let payload = json!({"session_id": "s1", "cwd": "/p", "source": "startup"});
        let mut world = World::new("session-start", payload).with_omc_dir(omc.path());
        world = world.with_setting("routing.forceInherit", setting);
        for (name, value) in &env {
            world = world.with_env(name, value);
        }
        world.agent = agent.to_owned();
        let text = context(&world.call::<SessionStart>());
        assert_eq!(text.contains("[MODEL ROUTING OVERRIDE"), announced, "{env:?} {setting} {agent}: {text}");
    }
}

#[test]
fn what_has_completed_within_a_day_is_not_restored() {
    let ago = |hours: i64| Timestamp::from(SystemTime::now()).plus_ms(-hours * 3_600_000).to_string();
    for (completed, restored) in
        [(json!(ago(1)), false), (json!(ago(25)), true), (json!("garbage"), false), (json!(null), true)]
    {
        let omc = tempfile::tempdir().expect("a folder");
        plant(&omc, RALPH, &ralph("s1").to_string());
        let ledger = json!({"version": 2, "active_skills": {"ralph": {"completed_at": completed}}});
        plant(&omc, "state/sessions/s1/skill-active-state.json", &ledger.to_string());
        let text = context(&start(&omc, "s1", "resume"));
        assert_eq!(text.contains("[RALPH LOOP RESTORED]"), restored, "{completed}");
    }
}
