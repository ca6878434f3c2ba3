//! The `/goal` that a session was last seen to have: `state/sessions/ID/seen-goal.json`.
//!
//! A transcript is only read at its end, and a goal is set once; what was seen there has to be remembered.

use std::path::PathBuf;

use crate::{Error, Fields, Locker, SessionId, Store, Timestamp, session_path, truncate_units};

/// Longest objective, in UTF-16 units.
const MAX_OBJECTIVE_UNITS: usize = 2_000;

fn path(session: &SessionId) -> PathBuf {
    session_path(session, "seen-goal.json")
}

impl Store {
    /// The session's goal. Text from a file: not to be shown as it is.
    pub fn read_seen_goal(&self, session: &SessionId) -> Option<String> {
        let fields = self.read_fields(&path(session)).ok().flatten()?;
        fields.text("objective").filter(|_| fields.belongs_to(session)).map(str::to_owned)
    }

    /// Remembers the session's goal; none forgets it. Writes only what is new.
    ///
    /// # Errors
    ///
    /// What keeps the file from being locked or written.
    pub fn remember_goal<L: Locker>(
        &self,
        locker: &L,
        session: &SessionId,
        objective: Option<&str>,
        now: Timestamp,
    ) -> Result<(), Error> {
        let objective = objective.map(|objective| truncate_units(objective.trim(), MAX_OBJECTIVE_UNITS));
        if self.read_seen_goal(session) == objective {
            return Ok(());
        }
        self.locked(locker, session, |store| {
            let Some(objective) = objective else { return store.remove(&path(session)) };
            let mut fields = Fields::default();
            fields.set("session_id", session.as_str());
            fields.set("objective", objective);
            fields.set_time("seen_at", now);
            store.replace(&path(session), &fields)
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::{
        lock::testing::{NeverFree, ThreadLocker},
        testing::{now, plant, session, store},
    };

    #[test]
    fn a_goal_is_remembered_for_its_session_and_forgotten() {
        let (_folder, store) = store();
        let (s1, locks) = (session("s1"), &ThreadLocker::default());
        store.remember_goal(&locks, &s1, Some(" ship it "), now()).expect("a write");
        assert_eq!(store.read_seen_goal(&s1).as_deref(), Some("ship it"));
        store.remember_goal(&NeverFree, &s1, Some("ship it"), now()).expect("nothing to write");
        assert_eq!(store.read_seen_goal(&session("s2")), None);
        store.remember_goal(&locks, &s1, None, now()).expect("removed");
        assert_eq!(store.read_seen_goal(&s1), None);
    }

    #[test]
    fn a_goal_of_nobody_or_of_another_session_is_none() {
        for content in [
            "{",
            "{\"objective\": \"x\"}",
            "{\"objective\": \"x\", \"session_id\": \"s2\"}",
            "{\"objective\": 7, \"session_id\": \"s1\"}",
        ] {
            let (folder, store) = store();
            plant(&folder, "state/sessions/s1/seen-goal.json", content);
            assert_eq!(store.read_seen_goal(&session("s1")), None, "{content}");
        }
    }
}
