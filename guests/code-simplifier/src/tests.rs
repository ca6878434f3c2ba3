//! The guest as the host calls it.

use std::fs;

use omc_guest::git::{Change, ChangeKind};
use omc_guest::project_files::Root;
use omc_guest::testing::{Outcome, Repository, World};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;

fn change(path: &str, kind: ChangeKind) -> Change {
    Change { path: path.to_owned(), kind }
}

fn world(omc: &TempDir, head: &str, changes: &[Change], over: &Value) -> World {
    let mut payload = json!({"session_id": "s1", "cwd": "/p"});
    payload.as_object_mut().expect("an object").extend(over.as_object().expect("an object").clone());
    let mut world = World::new("stop", payload).with_omc_dir(omc.path()).with_setting("codeSimplifier.enabled", true);
    world.git = Some(Repository { head: Some(head.to_owned()), changes: changes.to_vec(), ..Repository::default() });
    world
}

fn reason(outcome: &Outcome) -> &str {
    match &outcome.decision {
        Ok(Decision::Block(reason)) => reason,
        Ok(Decision::Pass) => "",
        other => panic!("{other:?}"),
    }
}

#[test]
fn each_changed_file_is_asked_about_once() {
    let omc = tempfile::tempdir().expect("a folder");
    let mut changes = vec![
        change("src/a.ts", ChangeKind::Modified),
        change("src/b.md", ChangeKind::Modified),
        change("src/gone.rs", ChangeKind::Deleted),
        change("src/new.go", ChangeKind::Untracked),
    ];
    let stop = |head: &str, changes: &[Change]| world(&omc, head, changes, &json!({})).call::<CodeSimplifier>();
    let first = stop("c1", &changes);
    assert!(reason(&first).contains("- src/a.ts\n- src/new.go\n"), "{first:?}");
    assert_eq!(reason(&stop("c1", &changes)), "");
    changes.push(change("src/d.py", ChangeKind::Modified));
    let second = stop("c1", &changes);
    assert!(reason(&second).contains("src/d.py") && !reason(&second).contains("src/a.ts"));
    assert!(reason(&stop("c2", &changes)).contains("src/a.ts"), "after a commit it is new work");
}

#[test]
fn each_agent_is_told_of_the_skill_by_the_name_that_it_has_there() {
    for (agent, named, not_named) in
        [("claude", "the skill `omc:code-simplifier`.", "$"), ("codex", "the skill `code-simplifier`.", "omc:")]
    {
        let omc = tempfile::tempdir().expect("a folder");
        let mut world = world(&omc, "c1", &[change("src/a.ts", ChangeKind::Modified)], &json!({}));
        agent.clone_into(&mut world.agent);
        let outcome = world.call::<CodeSimplifier>();
        assert!(reason(&outcome).contains(named) && !reason(&outcome).contains(not_named), "{agent}: {outcome:?}");
    }
}

#[test]
fn files_in_new_folders_are_asked_about_unless_nobody_wrote_them() {
    let omc = tempfile::tempdir().expect("a folder");
    let mut world = world(&omc, "c1", &[change("new/", ChangeKind::Untracked)], &json!({}));
    for path in ["new/deep/a.rs", "new/b.md", "new/node_modules/x/c.ts", "old.rs"] {
        world = world.with_file(Root::Project, path, "x");
    }
    let outcome = world.call::<CodeSimplifier>();
    assert!(reason(&outcome).contains("- new/deep/a.rs\n"), "{outcome:?}");
    for left_out in ["b.md", "c.ts", "old.rs"] {
        assert!(!reason(&outcome).contains(left_out), "{left_out}: {outcome:?}");
    }
}

#[test]
fn it_is_off_unless_it_is_wanted() {
    let omc = tempfile::tempdir().expect("a folder");
    let changes = [change("src/a.ts", ChangeKind::Modified)];
    for setting in [json!(false), json!("true"), json!(null)] {
        let outcome = world(&omc, "c1", &changes, &json!({}))
            .with_setting("codeSimplifier.enabled", setting)
            .call::<CodeSimplifier>();
        assert_eq!(reason(&outcome), "");
    }
    assert_eq!(fs::read_dir(omc.path()).expect("a folder").count(), 0);
    let set =
        world(&omc, "c1", &[change("a.md", ChangeKind::Modified), change("b.md", ChangeKind::Modified)], &json!({}))
            .with_setting("codeSimplifier.extensions", json!([".md"]))
            .with_setting("codeSimplifier.maxFiles", 1);
    assert!(reason(&set.call::<CodeSimplifier>()).contains("- a.md\n(and 1 more)"));
}

#[test]
fn nobody_is_held_who_should_not_be() {
    let omc = tempfile::tempdir().expect("a folder");
    let changes = [change("src/a.ts", ChangeKind::Modified)];
    for over in [
        json!({"agent_id": "a1"}),
        json!({"session_id": "../s1"}),
        json!({"stop_reason": "user_cancel"}),
        json!({"stop_reason": "401"}),
        json!({"context_window": {"used_percentage": 97}}),
    ] {
        assert_eq!(reason(&world(&omc, "c1", &changes, &over).call::<CodeSimplifier>()), "", "{over}");
    }
    let mut no_git = world(&omc, "c1", &changes, &json!({}));
    no_git.git = None;
    assert_eq!(reason(&no_git.call::<CodeSimplifier>()), "");
    let mut busy = world(&omc, "c1", &changes, &json!({}));
    busy.locks_are_free = false;
    assert_eq!(reason(&busy.call::<CodeSimplifier>()), "");

    let ralph = json!({"active": true, "session_id": "s1", "started_at": omc_state::Timestamp::from(SystemTime::now()).to_string()});
    let path = omc.path().join("state/sessions/s1/ralph-state.json");
    fs::create_dir_all(path.parent().expect("a parent")).expect("folders");
    fs::write(&path, ralph.to_string()).expect("a file");
    assert_eq!(reason(&world(&omc, "c1", &changes, &json!({})).call::<CodeSimplifier>()), "", "the mode is not done");
    fs::remove_file(&path).expect("a file");
    assert!(reason(&world(&omc, "c1", &changes, &json!({})).call::<CodeSimplifier>()).contains("src/a.ts"));
}
