//! The guest as the host calls it.

use std::collections::BTreeMap;

use omc_guest::git::{Change, ChangeKind};
use omc_guest::testing::{File, Outcome, Repository, World};
use serde_json::{Value, json};

use super::*;

fn stop(payload: Value, files: &[(&str, ChangeKind, &str)]) -> Outcome {
    let mut world = World::new("stop", payload);
    let changes = files.iter().map(|(path, kind, _)| Change { path: (*path).to_owned(), kind: *kind }).collect();
    world.git = Some(Repository {
        changes,
        added_lines: BTreeMap::from([("src/old.rs".to_owned(), vec![5])]),
        ..Repository::default()
    });
    for (path, _, text) in files {
        world.files.insert((Root::Project, (*path).to_owned()), File { text: (*text).to_owned(), modified_ms: 0 });
    }
    world.call::<WorkflowDriftGuard>()
}

fn reason(outcome: &Outcome) -> &str {
    match &outcome.decision {
        Ok(Decision::Block(reason)) => reason,
        Ok(Decision::Pass) => "",
        other => panic!("{other:?}"),
    }
}

const TODO: &str = "fn a() {\n    // TODO: implement this\n}\n";

#[test]
fn a_choice_in_prose_is_objected_to_once() {
    for (payload, objected) in [
        (json!({"last_assistant_message": "Redis or Postgres?"}), true),
        (json!({"lastAssistantMessage": "Redis or Postgres?"}), true),
        (json!({"last_assistant_message": "Redis or Postgres?", "stop_hook_active": false}), true),
        (json!({"last_assistant_message": "Redis or Postgres?", "stop_hook_active": true}), false),
        (json!({"last_assistant_message": "Redis or Postgres?", "agent_id": "a1"}), false),
        (json!({"last_assistant_message": "", "message": "Redis or Postgres?"}), false),
        (json!({"last_assistant_message": 7}), false),
        (json!({}), false),
    ] {
        assert_eq!(reason(&stop(payload.clone(), &[])).starts_with("[WORKFLOW DRIFT GUARD]"), objected, "{payload}");
    }
}

#[test]
fn leftovers_in_new_files_contradict_a_claim() {
    let done = || json!({"last_assistant_message": "Everything is done."});
    let outcome = stop(done(), &[("src/a.rs", ChangeKind::Untracked, TODO), ("b.md", ChangeKind::Untracked, TODO)]);
    assert!(reason(&outcome).contains("\nsrc/a.rs:2 placeholder TODO: // TODO: implement this\n"), "{outcome:?}");
    assert!(!reason(&outcome).contains("b.md"));
    for (payload, files) in [
        (done(), vec![]),
        (done(), vec![("src/a.rs", ChangeKind::Modified, TODO)]),
        (done(), vec![("src/a.rs", ChangeKind::Untracked, "fn a() {}\n")]),
        (json!({"last_assistant_message": "Not done yet."}), vec![("src/a.rs", ChangeKind::Untracked, TODO)]),
    ] {
        assert_eq!(reason(&stop(payload, &files)), "");
    }
    let old =
        stop(done(), &[("src/old.rs", ChangeKind::Modified, &TODO.repeat(3)), ("src/new/", ChangeKind::Untracked, "")]);
    assert_eq!(reason(&old).matches("placeholder TODO").count(), 1, "{old:?}");
    assert!(reason(&old).contains("\nsrc/old.rs:5 "), "only what was added: {old:?}");
    let many: String = TODO.repeat(100);
    let outcome = stop(done(), &[("a.rs", ChangeKind::Added, &many), ("b.rs", ChangeKind::Added, &many)]);
    assert_eq!(reason(&outcome).matches("placeholder TODO").count(), MAX_FINDINGS);
    assert!(reason(&outcome).encode_utf16().count() < 4_000, "the host's limit");
}
