//! The cancel signal: for half a minute after a cancel, Stop holds nobody, whatever the states say.
//!
//! Written as `cancel-signal.json` in the session's folder; `cancel-signal-state.json`, the original's name, is read too, and
//! so are both names in `state/`, where a cancel that knew no session leaves them.

use std::path::PathBuf;

use crate::{
    ActiveSkill, Error, Fields, Locker, Mode, ModeState, SessionId, Store, Timestamp, session_path, shared_path,
};

/// How long a signal counts, in milliseconds: long enough for the turn that was asked to stop to reach its end.
const LIFE_MS: i64 = 30_000;

const FILE: &str = "cancel-signal.json";
const ALIAS: &str = "cancel-signal-state.json";

/// A request to end the session's modes.
#[derive(Debug, Clone, PartialEq)]
pub struct CancelSignal {
    fields: Fields,
}

impl CancelSignal {
    /// A request to end every mode, made now by `source` (a word for people, such as `keyword`).
    pub fn new(session: &SessionId, source: &str, now: Timestamp) -> Self {
        let mut fields = Fields::default();
        fields.set("active", true);
        fields.set_time("requested_at", now);
        fields.set_time("expires_at", now.plus_ms(LIFE_MS));
        fields.set("session_id", session.as_str());
        fields.set("source", source);
        Self { fields }
    }

    /// The same for one mode only.
    #[must_use]
    pub fn of_mode(mut self, mode: Mode) -> Self {
        self.fields.set("mode", mode.name());
        self
    }

    /// The one mode that the signal ends; absent if it ends every mode.
    pub fn mode(&self) -> Option<&str> {
        self.fields.text("mode").filter(|mode| !matches!(*mode, "all" | "*"))
    }

    /// Whether the signal still counts: it is not switched off, its time can be read and is not over.
    pub fn is_valid(&self, now: Timestamp) -> bool {
        // A file without `active` is somebody's cancel all the same: when in doubt, the user gets out.
        let on = self.fields.get("active").is_none() || self.fields.flag("active");
        let requested = self.fields.time("requested_at").is_some_and(|time| time.is_within(LIFE_MS, now));
        let expired = self.fields.time("expires_at").is_some_and(|time| time <= now);
        on && requested && !expired
    }

    /// Whether the signal ends this mode.
    ///
    /// A plain one ends every mode; one that names a mode ends that one. It says nothing about a mode that started after it.
    pub fn covers(&self, mode: Mode, state: &ModeState, now: Timestamp) -> bool {
        self.covers_name(mode.name(), state.started_at(), now)
    }

    /// The same for a skill that is no mode.
    pub fn covers_skill(&self, skill: &ActiveSkill, now: Timestamp) -> bool {
        self.covers_name(skill.name(), skill.started_at(), now)
    }

    fn covers_name(&self, name: &str, started: Option<Timestamp>, now: Timestamp) -> bool {
        let meant = self.mode().is_none_or(|meant| meant == name);
        let older = match (self.fields.time("requested_at"), started) {
            (Some(requested), Some(started)) => requested < started,
            _ => false,
        };
        meant && !older && self.is_valid(now)
    }
}

impl From<Fields> for CancelSignal {
    fn from(fields: Fields) -> Self {
        Self { fields }
    }
}

fn own_paths(session: &SessionId) -> [PathBuf; 2] {
    [session_path(session, FILE), session_path(session, ALIAS)]
}

impl Store {
    /// Ends every mode of the session and its skill at work, and says which modes; `source` is a word for people.
    ///
    /// The signal comes first and needs no lock: whatever happens after it, the next Stop holds nobody.
    ///
    /// # Errors
    ///
    /// The first thing that could not be written, after all has been tried.
    pub fn cancel<L: Locker>(
        &self,
        locker: &L,
        session: &SessionId,
        source: &str,
        now: Timestamp,
    ) -> Result<Vec<Mode>, Error> {
        let signal = self.write_cancel_signal(session, &CancelSignal::new(session, source, now));
        let ended = self.locked(locker, session, |store| {
            let skill = store.end_active_skill(session);
            // First: the state of the mode may name one of them.
            let had_team = store.end_teams(session, now);
            let mut modes = store.end_modes(session, "cancelled", now)?;
            if had_team? && !modes.contains(&Mode::Team) {
                modes.push(Mode::Team);
            }
            skill.map(|()| modes)
        });
        signal.and(ended)
    }

    /// Writes the session's cancel signal.
    ///
    /// # Errors
    ///
    /// What keeps the file from being written.
    pub fn write_cancel_signal(&self, session: &SessionId, signal: &CancelSignal) -> Result<(), Error> {
        self.replace(&session_path(session, FILE), &signal.fields)
    }

    /// Removes the session's cancel signals, under both names: a mode starts anew.
    ///
    /// # Errors
    ///
    /// The first file that could not be removed, after both have been tried.
    pub fn clear_cancel_signal(&self, session: &SessionId) -> Result<(), Error> {
        let [first, second] = own_paths(session).map(|path| self.remove(&path));
        first.and(second)
    }

    /// The signals that concern the session, valid or not. A file that cannot be read is no signal.
    pub fn read_cancel_signals(&self, session: &SessionId) -> Vec<CancelSignal> {
        let read = |path: PathBuf| self.read_fields(&path).ok().flatten();
        let named = |fields: &Fields| fields.get("session_id").is_some();
        let own = own_paths(session).into_iter().filter_map(read);
        let shared = [shared_path(FILE), shared_path(ALIAS)].into_iter().filter_map(read);
        own.chain(shared)
            .filter(|fields| !named(fields) || fields.belongs_to(session))
            .map(CancelSignal::from)
            .collect()
    }

    /// Removes those of the session's signals whose time is over. For use under the session's lock.
    ///
    /// # Errors
    ///
    /// The first file that could not be removed.
    pub fn sweep_cancel_signals(&self, session: &SessionId, now: Timestamp) -> Result<(), Error> {
        for path in own_paths(session) {
            if let Ok(Some(fields)) = self.read_fields(&path)
                && !CancelSignal::from(fields).is_valid(now)
            {
                self.remove(&path)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        lock::testing::{NeverFree, ThreadLocker},
        testing::{ago, fields, now, plant, session, state, store},
    };
    use serde_json::json;

    #[test]
    fn a_signal_counts_for_thirty_seconds() {
        for (members, valid) in [
            (json!({"active": true, "requested_at": ago(5_000), "expires_at": ago(-25_000)}), true),
            (json!({"active": true, "requested_at": ago(5_000)}), true),
            (json!({"requested_at": ago(5_000)}), true),
            (json!({"active": false, "requested_at": ago(5_000)}), false),
            (json!({"active": "true", "requested_at": ago(5_000)}), false),
            (json!({"active": true, "requested_at": ago(30_000)}), true),
            (json!({"active": true, "requested_at": ago(30_001)}), false),
            (json!({"active": true, "requested_at": ago(65_000), "expires_at": ago(35_000)}), false),
            (json!({"active": true, "requested_at": ago(65_000), "expires_at": ago(-900_000)}), false),
            (json!({"active": true, "requested_at": ago(5_000), "expires_at": ago(1_000)}), false),
            (json!({"active": true, "requested_at": ago(-60_000)}), false),
            (json!({"active": true, "requested_at": "now"}), false),
            (json!({"active": true}), false),
        ] {
            assert_eq!(CancelSignal::from(fields(members.clone())).is_valid(now()), valid, "{members}");
        }
    }

    #[test]
    fn a_plain_signal_covers_every_mode_and_a_named_one_its_own() {
        let running = state(json!({"started_at": ago(60_000)}));
        for (name, mode, covered) in [
            (json!(null), Mode::Ralph, true),
            (json!(""), Mode::Autopilot, true),
            (json!("all"), Mode::Ultrawork, true),
            (json!("ralph"), Mode::Ralph, true),
            (json!("ralph"), Mode::Autopilot, false),
            (json!(7), Mode::Ralph, true),
        ] {
            let signal = CancelSignal::from(fields(json!({"active": true, "requested_at": ago(5_000), "mode": name})));
            assert_eq!(signal.covers(mode, &running, now()), covered, "{name} for {mode}");
        }
        let signal = CancelSignal::new(&session("s1"), "test", now().plus_ms(-5_000));
        assert!(signal.covers(Mode::Ralph, &state(json!({})), now()));
        assert!(!signal.covers(Mode::Ralph, &state(json!({"started_at": ago(1_000)})), now()), "started after it");
    }

    #[test]
    fn signals_are_found_under_both_names_and_only_the_sessions_own() {
        let signal = |members: &str| format!("{{\"active\": true, \"requested_at\": \"{}\"{members}}}", ago(1_000));
        for (path, members, found) in [
            ("state/sessions/s1/cancel-signal.json", "", true),
            ("state/sessions/s1/cancel-signal-state.json", "", true),
            ("state/sessions/s1/cancel-signal.json", ", \"session_id\": \"s2\"", false),
            ("state/sessions/s2/cancel-signal.json", "", false),
            ("state/cancel-signal.json", "", true),
            ("state/cancel-signal-state.json", ", \"session_id\": \"s1\"", true),
            ("state/cancel-signal.json", ", \"session_id\": \"s2\"", false),
            ("state/cancel-signal.json", ", \"session_id\": \"\"", false),
        ] {
            let (folder, store) = store();
            plant(&folder, path, signal(members));
            assert_eq!(!store.read_cancel_signals(&session("s1")).is_empty(), found, "{path} {members}");
        }
    }

    #[test]
    fn a_signal_is_written_read_and_cleared() {
        let (folder, store) = store();
        let s1 = session("s1");
        let signal = CancelSignal::new(&s1, "test", now());
        store.write_cancel_signal(&s1, &signal).expect("a write");
        plant(&folder, "state/sessions/s1/cancel-signal-state.json", "{}");
        assert_eq!(store.read_cancel_signals(&s1)[0], signal);
        store.sweep_cancel_signals(&s1, now()).expect("a sweep");
        assert_eq!(store.read_cancel_signals(&s1), [signal], "what is over is gone, what counts stays");
        store.clear_cancel_signal(&s1).expect("removed");
        assert!(store.read_cancel_signals(&s1).is_empty());
    }

    #[test]
    fn a_cancel_ends_modes_and_skill_and_leaves_its_signal_even_without_a_lock() {
        let (folder, store) = store();
        let s1 = session("s1");
        let running = json!({"active": true, "session_id": "s1"}).to_string();
        plant(&folder, "state/sessions/s1/ralph-state.json", &running);
        let skill = ActiveSkill::start("omc:plan", &s1, now()).expect("protected");
        store.start_skill(&s1, &skill).expect("writes");
        assert!(matches!(store.cancel(&NeverFree, &s1, "test", now()), Err(Error::Lock { .. })));
        assert!(store.read_cancel_signals(&s1)[0].covers_skill(&skill, now()));
        let ended = store.cancel(&&ThreadLocker::default(), &s1, "test", now()).expect("writes");
        assert_eq!(ended, [Mode::Ralph]);
        assert!(store.read_skills(&s1).active().is_none());
    }
}
