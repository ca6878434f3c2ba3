//! The ledger of skills, `state/sessions/ID/skill-active-state.json`, as far as Stop reads it: which modes have completed.
//!
//! In its second version the ledger has a slot for every workflow skill under `active_skills`; a slot with `completed_at` is
//! a tombstone. The first version is a flat object of one skill and has no tombstones.

use serde_json::Value;

use crate::{Error, Fields, Mode, ModeState, SessionId, Store, Timestamp, session_path};

/// How long a tombstone hides the state of its mode, in milliseconds: 24 hours, the original's rule.
const TOMBSTONE_MS: i64 = 24 * 60 * 60 * 1000;

const FILE: &str = "skill-active-state.json";

/// The skills of one session.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SkillLedger {
    fields: Fields,
}

impl SkillLedger {
    /// Whether the mode has completed, so that what is left of its state does not count.
    ///
    /// A tombstone counts for 24 hours; one whose time cannot be read counts, because it was set. A run of the mode that
    /// started after it is a new one.
    pub fn has_completed(&self, mode: Mode, state: &ModeState, now: Timestamp) -> bool {
        let slot = self.fields.get("active_skills").and_then(|slots| slots.get(mode.name())).and_then(Value::as_object);
        let Some(slot) = slot.cloned().map(Fields::from) else { return false };
        match slot.get("completed_at") {
            None | Some(Value::Null | Value::Bool(false)) => false,
            Some(_) => slot.time("completed_at").is_none_or(|completed| {
                let restarted =
                    state.started_at().is_some_and(|started| started > completed && !started.is_future(now));
                !restarted && now.ms_since(completed) <= TOMBSTONE_MS
            }),
        }
    }
}

impl From<Fields> for SkillLedger {
    fn from(fields: Fields) -> Self {
        Self { fields }
    }
}

impl Store {
    /// The session's ledger; empty if there is none that can be read.
    pub fn read_skills(&self, session: &SessionId) -> SkillLedger {
        let fields = self.read_fields(&session_path(session, FILE)).ok().flatten();
        fields.map(SkillLedger::from).unwrap_or_default()
    }

    /// Forgets that the mode has completed: it starts anew. For use under the session's lock.
    ///
    /// The rest of the ledger stays; one that is empty then is removed, as the original does.
    ///
    /// # Errors
    ///
    /// What keeps the ledger from being read or written.
    pub fn clear_tombstone(&self, session: &SessionId, mode: Mode) -> Result<(), Error> {
        let path = session_path(session, FILE);
        let Some(mut fields) = self.read_fields(&path)? else { return Ok(()) };
        let Some(slots) = fields.get_mut("active_skills").and_then(Value::as_object_mut) else { return Ok(()) };
        let completed = |slot: &Value| slot.get("completed_at").is_some_and(|time| !time.is_null());
        if !slots.get(mode.name()).is_some_and(completed) {
            return Ok(());
        }
        slots.shift_remove(mode.name());
        let nothing_left = slots.is_empty() && fields.get("support_skill").is_none_or(Value::is_null);
        if nothing_left { self.remove(&path) } else { self.replace(&path, &fields) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{ago, fields, now, plant, session, state, store};
    use serde_json::json;

    const HOUR: i64 = 60 * 60 * 1000;

    #[test]
    fn a_tombstone_hides_its_mode_for_a_day() {
        let run = state(json!({"started_at": ago(30 * HOUR)}));
        for (completed_at, hidden) in [
            (json!(ago(100_000)), true),
            (json!(ago(24 * HOUR)), true),
            (json!(ago(25 * HOUR)), false),
            (json!("garbage"), true),
            (json!(null), false),
        ] {
            let ledger = SkillLedger::from(fields(json!({"active_skills": {"ralph": {"completed_at": completed_at}}})));
            assert_eq!(ledger.has_completed(Mode::Ralph, &run, now()), hidden, "{completed_at}");
            assert!(!ledger.has_completed(Mode::Autopilot, &run, now()));
        }
        for ledger in [json!({}), json!({"active_skills": []}), json!({"active_skills": {"ralph": "x"}})] {
            assert!(!SkillLedger::from(fields(ledger)).has_completed(Mode::Ralph, &run, now()));
        }
    }

    #[test]
    fn a_run_that_started_after_the_end_is_a_new_one() {
        let ledger = SkillLedger::from(fields(json!({"active_skills": {"ralph": {"completed_at": ago(HOUR)}}})));
        for (started, hidden) in [(2 * HOUR, true), (HOUR / 2, false), (-HOUR, true)] {
            let run = state(json!({"started_at": ago(started)}));
            assert_eq!(ledger.has_completed(Mode::Ralph, &run, now()), hidden, "started {started} ms ago");
        }
        assert!(ledger.has_completed(Mode::Ralph, &state(json!({})), now()));
    }

    #[test]
    fn clearing_a_tombstone_leaves_the_rest_of_the_ledger() {
        let (folder, store) = store();
        let s1 = session("s1");
        store.clear_tombstone(&s1, Mode::Ralph).expect("no ledger");
        let done = json!({"completed_at": ago(1)});
        let ledger = json!({"version": 2, "active_skills": {"ralph": done, "autopilot": {"completed_at": null}}});
        plant(&folder, "state/sessions/s1/skill-active-state.json", ledger.to_string());
        store.clear_tombstone(&s1, Mode::Autopilot).expect("it has not completed");
        assert_eq!(store.read_skills(&s1), fields(ledger).into());
        store.clear_tombstone(&s1, Mode::Ralph).expect("a write");
        let left = json!({"version": 2, "active_skills": {"autopilot": {"completed_at": null}}});
        assert_eq!(store.read_skills(&s1), fields(left).into());

        plant(
            &folder,
            "state/sessions/s1/skill-active-state.json",
            json!({"active_skills": {"ralph": done}}).to_string(),
        );
        store.clear_tombstone(&s1, Mode::Ralph).expect("removed");
        assert!(
            !folder.path().join("state/sessions/s1/skill-active-state.json").exists(),
            "an empty ledger is removed"
        );
    }
}
