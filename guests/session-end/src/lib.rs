//! Sums up a session that ends and clears away what was its own.
//!
//! The agent waits about a second, so what must not be lost comes first: the summary is written, and only when it is kept does
//! the state go that it was drawn from. Missions, dead sessions and old checkpoints follow. What is not reached, because time or
//! disk ran out, is left to the clean-up of the next start, which sums up dead sessions that nobody has.

use std::time::SystemTime;

use omc_bare as _;
use omc_guest::{Decision, Effects, Error, Event, EventKind, Guest, log, state_lock};
use omc_state::{SessionId, Store, Timestamp, one_line};

/// Longest reason that is written down, in UTF-16 units; agents have words for it.
const MAX_REASON_UNITS: usize = 60;

/// The guest.
#[derive(Debug)]
pub struct SessionEnd;

omc_guest::export!(SessionEnd, {
    "description": "Writes the summary of a session and ends its modes",
    "subscriptions": [{"event": "session-end", "order": 100}],
    "requests": [
        {"capability": "omc", "scope": ["rw:/omc"], "reason": "writes the summary to sessions/, ends the session's modes, removes dead sessions, old records and debris"}
    ]
});

impl Guest for SessionEnd {
    fn handle(event: &Event<'_>, _effects: &mut Effects<'_>) -> Result<Decision, Error> {
        if event.kind() != EventKind::SessionEnd {
            return Ok(Decision::Pass);
        }
        let Some(session) = event.session_id().as_deref().and_then(SessionId::parse) else { return Ok(Decision::Pass) };
        let reason = event.text("/reason").map(|reason| one_line(&reason, MAX_REASON_UNITS));
        let store = Store::new(&omc_guest::omc_dir());
        let now = SystemTime::now().into();
        end(&store, &session, reason.as_deref(), now);
        if let Err(error) = store.clean_up(&state_lock::acquire, Some(&session), now) {
            log::warn(&format!("not everything was cleared away: {}", error.chain()));
        }
        Ok(Decision::Pass)
    }
}

fn end(store: &Store, session: &SessionId, reason: Option<&str>, now: Timestamp) {
    let ended = store.locked(&state_lock::acquire, session, |store| {
        store.write_summary(session, &store.session_facts(session), reason, now)?;
        // Each for itself.
        let removed = store.end_session(session);
        let dropped = store.drop_missions(std::slice::from_ref(session), now);
        Ok([removed, dropped])
    });
    match ended {
        Ok(steps) => steps.into_iter().filter_map(Result::err).for_each(|error| warn(&error)),
        Err(error) => warn(&error),
    }
}

fn warn(error: &omc_state::Error) {
    log::warn(&format!("the session did not end cleanly: {}", error.chain()));
}

#[cfg(test)]
mod tests {
    use super::*;
    use omc_guest::testing::{Outcome, World};
    use serde_json::{Value, json};
    use std::fs;
    use tempfile::TempDir;

    fn plant(omc: &TempDir, path: &str, value: &Value) {
        let path = omc.path().join(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("folders");
        fs::write(path, value.to_string()).expect("a file");
    }

    fn end(omc: &TempDir, session: &str) -> Outcome {
        let payload = json!({"session_id": session, "reason": "logout"});
        World::new("session-end", payload).with_omc_dir(omc.path()).call::<SessionEnd>()
    }

    fn mode(session: &str) -> Value {
        json!({"active": true, "session_id": session, "started_at": Timestamp::from(SystemTime::now()).to_string()})
    }

    #[test]
    fn a_session_ends_with_a_summary_and_takes_only_its_own_with_it() {
        let omc = tempfile::tempdir().expect("a folder");
        plant(&omc, "state/sessions/s1/ralph-state.json", &mode("s1"));
        plant(&omc, "state/sessions/s10/ralph-state.json", &mode("s10"));
        let mission = |id: &str| json!({"id": id, "source": "session"});
        let board = json!({"missions": [mission("session:s1:ralph"), mission("session:s10:ralph")]});
        plant(&omc, "state/mission-state.json", &board);
        let outcome = end(&omc, "s1");
        assert_eq!(outcome.decision, Ok(Decision::Pass));
        assert!(outcome.messages.is_empty() && outcome.context.is_empty() && outcome.logged.is_empty(), "{outcome:?}");
        let read = |path: &str| fs::read_to_string(omc.path().join(path)).expect("a file");
        let summary: Value = serde_json::from_str(&read("sessions/s1.json")).expect("JSON");
        assert_eq!((&summary["reason"], &summary["modes_used"]), (&json!("logout"), &json!(["ralph"])));
        assert!(!omc.path().join("state/sessions/s1").exists());
        assert!(read("state/sessions/s10/ralph-state.json").contains("true"));
        assert!(!read("state/mission-state.json").contains("s1:") && read("state/mission-state.json").contains("s10:"));
    }

    #[test]
    fn without_a_usable_id_or_a_lock_nothing_is_written() {
        let omc = tempfile::tempdir().expect("a folder");
        for id in ["../evil", "unknown", ""] {
            assert_eq!(end(&omc, id).decision, Ok(Decision::Pass));
        }
        let mut world = World::new("session-end", json!({"session_id": "s1"})).with_omc_dir(omc.path());
        world.locks_are_free = false;
        assert_eq!(world.call::<SessionEnd>().logged.len(), 1);
        assert_eq!(fs::read_dir(omc.path()).expect("a folder").count(), 0);
    }

    #[test]
    fn a_state_whose_summary_cannot_be_written_stays() {
        let omc = tempfile::tempdir().expect("a folder");
        plant(&omc, "state/sessions/s1/ralph-state.json", &mode("s1"));
        plant(&omc, "sessions", &json!("no folder"));
        let outcome = end(&omc, "s1");
        assert_eq!(outcome.logged.len(), 1, "{:?}", outcome.logged);
        assert!(omc.path().join("state/sessions/s1/ralph-state.json").exists());
        fs::remove_file(omc.path().join("sessions")).expect("it is a file");
        end(&omc, "s1");
        assert!(!omc.path().join("state/sessions/s1").exists() && omc.path().join("sessions/s1.json").exists());
    }

    #[test]
    fn a_state_that_cannot_be_removed_does_not_cost_the_summary() {
        let omc = tempfile::tempdir().expect("a folder");
        fs::create_dir_all(omc.path().join("state/sessions/s1/cancel-signal.json/x"))
            .expect("a folder in a file's place");
        let outcome = end(&omc, "s1");
        assert_eq!(outcome.logged.len(), 1, "{:?}", outcome.logged);
        assert!(omc.path().join("sessions/s1.json").exists());
    }
}
