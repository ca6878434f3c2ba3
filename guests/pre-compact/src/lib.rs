//! Notes what is going on before a conversation is compacted, so that it can go on after.
//!
//! The checkpoint holds the session's modes, the to-do lists and the wisdom of plans. What it says is shown to the person; the
//! model is told again when its session starts anew after the compaction.

pub mod logic;

use std::time::SystemTime;

use omc_bare as _;
use omc_guest::project_files::{self, Root};
use omc_guest::{Decision, Effects, Error, Event, EventKind, Guest, log, state_lock};
use omc_state::{Mode, ModeState, NewCheckpoint, SessionId, Store, Todos};

/// The guest.
#[derive(Debug)]
pub struct PreCompact;

omc_guest::export!(PreCompact, {
    "description": "Writes a checkpoint before a conversation is compacted",
    "subscriptions": [{"event": "pre-compact", "order": 100}],
    "requests": [
        {"capability": "omc", "scope": ["ro:/omc", "rw:/omc/state/checkpoints"], "reason": "reads the session's modes, to-do lists and plan notepads; writes the checkpoint"},
        {"capability": "read", "scope": ["project:.claude/todos.json"], "reason": "counts what is left to do in the agent's own list"}
    ]
});

impl Guest for PreCompact {
    fn handle(event: &Event<'_>, effects: &mut Effects<'_>) -> Result<Decision, Error> {
        if event.kind() != EventKind::PreCompact {
            return Ok(Decision::Pass);
        }
        let Some(session) = event.session_id().as_deref().and_then(SessionId::parse) else { return Ok(Decision::Pass) };
        let store = Store::new(&omc_guest::omc_dir());
        let now = SystemTime::now().into();
        let trigger = event.source().filter(|trigger| matches!(trigger.as_str(), "manual" | "auto"));
        let modes = active_modes(&store, &session);
        let wisdom = store.read_wisdom();
        let checkpoint = NewCheckpoint {
            session: &session,
            trigger: trigger.as_deref(),
            modes: &modes,
            todos: store.read_todos().and(agents_todos()),
            wisdom: wisdom.as_deref(),
            now,
        };
        if let Err(error) = store.write_checkpoint(&state_lock::acquire, &checkpoint) {
            log::warn(&format!("there is no checkpoint: {}", error.chain()));
        }
        effects.add_message(&logic::message(&checkpoint))?;
        Ok(Decision::Pass)
    }
}

/// The agent's own to-do list.
fn agents_todos() -> Todos {
    let text = project_files::read(Root::Project, ".claude/todos.json", Todos::MAX_BYTES);
    text.map_or_else(|_| Todos::default(), |text| Todos::parse(&text))
}

/// The session's modes that are on and not finished.
fn active_modes(store: &Store, session: &SessionId) -> Vec<(Mode, ModeState)> {
    let mut modes = Vec::new();
    let mut first_error = None;
    for &mode in Mode::ALL {
        match store.read_mode(session, mode) {
            Ok(Some(state)) if state.is_active() && !state.is_finished() => modes.push((mode, state)),
            Ok(_) => {}
            Err(error) => first_error = first_error.or(Some(error)),
        }
    }
    // One line for all: what is wrong with a folder is wrong with each file in it.
    if let Some(error) = first_error {
        log::warn(&format!("not every mode counts: {}", error.chain()));
    }
    modes
}

#[cfg(test)]
mod tests {
    use super::*;
    use omc_guest::testing::{Outcome, World};
    use omc_state::Timestamp;
    use serde_json::{Value, json};
    use std::fs;
    use tempfile::TempDir;

    fn plant(omc: &TempDir, path: &str, content: &str) {
        let path = omc.path().join(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("folders");
        fs::write(path, content).expect("a file");
    }

    fn compact(omc: &TempDir, session: &str) -> Outcome {
        let payload = json!({"session_id": session, "trigger": "manual"});
        World::new("pre-compact", payload).with_omc_dir(omc.path()).call::<PreCompact>()
    }

    #[test]
    fn what_is_going_on_is_written_down_and_said() {
        let omc = tempfile::tempdir().expect("a folder");
        let started = Timestamp::from(SystemTime::now()).to_string();
        let ralph = json!({"active": true, "session_id": "s1", "started_at": started, "iteration": 7, "prompt": "split the billing module"});
        plant(&omc, "state/sessions/s1/ralph-state.json", &ralph.to_string());
        plant(
            &omc,
            "state/ultrawork-state.json",
            &json!({"active": true, "session_id": "s2", "original_prompt": "other"}).to_string(),
        );
        plant(&omc, "todos.json", r#"[{}, {"status": "completed"}]"#);
        plant(&omc, "notepads/plan/learnings.md", "retries need jitter");
        let outcome = compact(&omc, "s1");
        assert_eq!(outcome.decision, Ok(Decision::Pass));
        assert!(outcome.messages[0].contains("split the billing module") && !outcome.messages[0].contains("other"));
        let session = SessionId::parse("s1").expect("an id");
        let checkpoint = Store::new(omc.path()).latest_checkpoint(&session).expect("a checkpoint");
        assert_eq!(
            checkpoint.fields().get("active_modes"),
            Some(&json!({"ralph": {"iteration": 7, "prompt": "split the billing module"}}))
        );
        assert_eq!(checkpoint.fields().get("trigger"), Some(&Value::from("manual")));
        assert_eq!(checkpoint.todos().completed, 1);
        let wisdom = fs::read_to_string(omc.path().join(checkpoint.wisdom_path().expect("wisdom"))).expect("a file");
        assert!(wisdom.contains("retries need jitter"));
    }

    #[test]
    fn without_a_usable_id_nothing_is_written_or_said() {
        let omc = tempfile::tempdir().expect("a folder");
        for id in ["../evil", "unknown", ""] {
            assert!(compact(&omc, id).messages.is_empty());
        }
        assert_eq!(fs::read_dir(omc.path()).expect("a folder").count(), 0);
    }

    #[test]
    fn where_nothing_can_be_written_the_message_is_said_all_the_same() {
        let omc = tempfile::tempdir().expect("a folder");
        plant(&omc, "state", "a file in the folder's place");
        let outcome = compact(&omc, "s1");
        assert_eq!(outcome.messages.len(), 1);
        assert!(outcome.logged.last().is_some_and(|line| line.contains("no checkpoint")), "{:?}", outcome.logged);
    }
}
