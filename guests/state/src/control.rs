//! Modes in the hands of people and models: which there are, in all sessions, and how one is written, ended and cleared.
//!
//! Hooks look at the modes of their own session; who asks here may know none. A state in the shared file belongs to the session
//! that it names, and to nobody if it names none.

use std::path::{Path, PathBuf};

use crate::{
    Area, CancelSignal, Error, Fields, Locker, Mode, ModeState, Place, SessionId, Store, Timestamp, session_path,
    shared_path,
};

/// Most sessions that are looked at: two weeks of heavy use; those that ended are cleaned up before.
const MAX_SESSIONS: usize = 256;

/// Ends of the names of what helpers leave beside the state of a mode.
const BESIDE: [&str; 3] = ["-stop-breaker.json", "-last-steer-at", "-continue-steer.lock"];

/// A state and whose it is.
#[derive(Debug, Clone, PartialEq)]
pub struct OwnedState {
    /// The mode.
    pub mode: Mode,
    /// Whose state it is; absent for one in the shared file that names nobody.
    pub session: Option<SessionId>,
    /// The state.
    pub state: ModeState,
}

impl OwnedState {
    /// Where the state lies, below the root.
    pub fn path(&self) -> PathBuf {
        mode_path(self.mode, self.session.as_ref(), self.state.place())
    }
}

/// Where the state of a mode lies, below the root; without a session, the shared file.
pub fn mode_path(mode: Mode, session: Option<&SessionId>, place: Place) -> PathBuf {
    match (session, place) {
        (Some(session), Place::Session) => mode.path(session, place),
        _ => shared_mode_path(mode),
    }
}

fn shared_mode_path(mode: Mode) -> PathBuf {
    shared_path(&format!("{}-state.json", mode.name()))
}

impl Store {
    /// The sessions of the project that have a folder, sorted.
    pub fn sessions(&self) -> Vec<SessionId> {
        let mut sessions: Vec<_> = self
            .names(&Path::new("state").join("sessions"), MAX_SESSIONS)
            .iter()
            .filter_map(|name| SessionId::parse(name))
            .collect();
        sessions.sort_unstable_by(|a, b| a.as_str().cmp(b.as_str()));
        sessions
    }

    /// The states of these modes: of one session, else of all, the shared file last.
    ///
    /// # Errors
    ///
    /// The first file that could not be read, if nothing else was found.
    pub fn owned_states(&self, modes: &[Mode], session: Option<&SessionId>) -> Result<Vec<OwnedState>, Error> {
        let mut found: Vec<OwnedState> = Vec::new();
        let mut first_error = None;
        let sessions = session.map_or_else(|| self.sessions(), |session| vec![session.clone()]);
        for &mode in modes {
            for session in &sessions {
                match self.read_mode(session, mode) {
                    Ok(Some(state)) => found.push(OwnedState { mode, session: Some(session.clone()), state }),
                    Ok(None) => {}
                    Err(error) => first_error = first_error.or(Some(error)),
                }
            }
            if session.is_some() {
                continue;
            }
            match self.read_fields(&shared_mode_path(mode)) {
                Ok(Some(fields)) => {
                    let owner = fields.text("session_id").and_then(SessionId::parse);
                    // A session without a folder is not listed above.
                    let is_known = found.iter().any(|known| {
                        known.mode == mode && known.session == owner && known.state.place() == Place::Shared
                    });
                    if !is_known {
                        let state = ModeState::from_fields(fields, Place::Shared);
                        found.push(OwnedState { mode, session: owner, state });
                    }
                }
                Ok(None) => {}
                Err(error) => first_error = first_error.or(Some(error)),
            }
        }
        match first_error {
            Some(error) if found.is_empty() => Err(error),
            _ => Ok(found),
        }
    }

    /// The state of the mode that names nobody, in the shared file.
    ///
    /// # Errors
    ///
    /// What keeps the file from being read.
    pub fn read_unowned_mode(&self, mode: Mode) -> Result<Option<ModeState>, Error> {
        let fields = self.read_fields(&shared_mode_path(mode))?;
        let unowned = fields.filter(|fields| fields.text("session_id").is_none());
        Ok(unowned.map(|fields| ModeState::from_fields(fields, Place::Shared)))
    }

    /// Writes a state that names nobody to the shared file. For use under the lock of the state.
    ///
    /// # Errors
    ///
    /// What keeps the file from being written.
    pub fn write_unowned_mode(&self, mode: Mode, fields: &Fields) -> Result<(), Error> {
        self.replace(&shared_mode_path(mode), fields)
    }

    /// Ends the mode of the session, and with ralph the ultrawork that it brought along, with a team what the store says of it. Says
    /// which ended. For use under the session's lock.
    ///
    /// # Errors
    ///
    /// What keeps a state from being read or written.
    pub fn end_mode(&self, session: &SessionId, mode: Mode, reason: &str, now: Timestamp) -> Result<Vec<Mode>, Error> {
        let mut ended = Vec::new();
        if mode == Mode::Team {
            self.end_teams(session, now)?;
        }
        for mode in self.with_linked(session, mode)? {
            if let Some(mut state) = self.read_mode(session, mode)?.filter(ModeState::is_active) {
                state.end(reason, now);
                self.write_mode(session, mode, &state)?;
                ended.push(mode);
            }
        }
        Ok(ended)
    }

    /// Removes the session's state of the mode, of the ultrawork that ralph brought along, of the teams that it leads, and what helpers
    /// left beside them. Says which modes had a state. A signal comes first, so that an event under way holds nobody.
    ///
    /// # Errors
    ///
    /// The first thing that could not be written or removed, after all have been tried.
    pub fn clear_mode<L: Locker>(
        &self,
        locker: &L,
        session: &SessionId,
        mode: Mode,
        now: Timestamp,
    ) -> Result<Vec<Mode>, Error> {
        // A lock makes the folder that it is on: nobody's session gets none.
        let has_teams = mode == Mode::Team && self.has_teams();
        if !has_teams && !self.exists(&session_path(session, "")) && !self.exists(&shared_mode_path(mode)) {
            return Ok(Vec::new());
        }
        self.locked(locker, session, |store| {
            let mut cleared = Vec::new();
            let mut first_error = None;
            // A state that cannot be read says nothing of others, and goes as well.
            for mode in store.with_linked(session, mode).unwrap_or_else(|_| vec![mode]) {
                let result = store.clear_one(session, mode, now);
                match result {
                    Ok(true) => cleared.push(mode),
                    Ok(false) => {}
                    Err(error) => first_error = first_error.or(Some(error)),
                }
            }
            first_error.map_or(Ok(cleared), Err)
        })
    }

    fn clear_one(&self, session: &SessionId, mode: Mode, now: Timestamp) -> Result<bool, Error> {
        let own = mode.path(session, Place::Session);
        let shared = shared_mode_path(mode);
        let is_own =
            self.read_fields(&shared).is_ok_and(|fields| fields.is_some_and(|fields| fields.belongs_to(session)));
        let had_own = self.exists(&own);
        if had_own || is_own {
            self.signal_end(session, mode, now)?;
        }
        // First: the state may name one of them.
        let teams = if mode == Mode::Team { self.clear_teams(session, now) } else { Ok(false) };
        let mut paths = vec![own];
        paths.extend(is_own.then_some(shared));
        paths.extend(BESIDE.iter().map(|end| session_path(session, &format!("{}{end}", mode.name()))));
        let mut result = Ok(());
        for path in paths {
            let removed = self.remove(&path);
            result = result.and(removed);
        }
        if mode == Mode::Ralph {
            result = result.and(self.clear_verification(session));
        }
        result.and(teams).map(|had_teams| had_own || is_own || had_teams)
    }

    /// Asks for the end of this mode, unless a signal that ends every mode is there already.
    fn signal_end(&self, session: &SessionId, mode: Mode, now: Timestamp) -> Result<(), Error> {
        let ends_all = |signal: &CancelSignal| signal.is_valid(now) && signal.mode().is_none();
        if self.read_cancel_signals(session).iter().any(ends_all) {
            return Ok(());
        }
        self.write_cancel_signal(session, &CancelSignal::new(session, "state_clear", now).of_mode(mode))
    }

    /// Removes the mode's state in the shared file, whoever it belongs to, and every team with that of teams; says whether there
    /// was one.
    ///
    /// # Errors
    ///
    /// What keeps the file from being removed.
    pub fn clear_shared_mode<L: Locker>(&self, locker: &L, mode: Mode, now: Timestamp) -> Result<bool, Error> {
        let path = shared_mode_path(mode);
        let (has_state, has_teams) = (self.exists(&path), mode == Mode::Team && self.has_teams());
        if !has_state && !has_teams {
            return Ok(false);
        }
        self.locked_in(locker, Area::State, |store| {
            for end in BESIDE {
                store.remove(&shared_path(&format!("{}{end}", mode.name())))?;
            }
            store.remove(&path)?;
            Ok(has_state | (has_teams && store.clear_all_teams(now)?))
        })
    }

    /// The mode, and the ultrawork that ends with it.
    fn with_linked(&self, session: &SessionId, mode: Mode) -> Result<Vec<Mode>, Error> {
        if mode == Mode::Ralph
            && let Some(ralph) = self.read_mode(session, mode)?
            && let Some(ultrawork) = self.read_mode(session, Mode::Ultrawork)?
            && ultrawork.came_with(&ralph)
        {
            return Ok(vec![mode, Mode::Ultrawork]);
        }
        Ok(vec![mode])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        lock::testing::ThreadLocker,
        testing::{ago, now, plant, session, store},
    };
    use serde_json::json;
    use std::fs;

    const OWN: &str = "state/sessions/s1/ralph-state.json";
    const LINKED: &str = "state/sessions/s1/ultrawork-state.json";

    fn at_work(session: &str) -> String {
        json!({"active": true, "started_at": ago(1_000), "session_id": session, "linked_ultrawork": true}).to_string()
    }

    #[test]
    fn every_session_and_the_shared_file_are_looked_at() {
        let (folder, store) = store();
        plant(&folder, OWN, at_work("s1"));
        plant(&folder, "state/sessions/s2/ralph-state.json", at_work("s2"));
        plant(&folder, "state/sessions/s3/ralph-state.json", at_work("s2"));
        plant(&folder, "state/ralph-state.json", at_work("gone"));
        plant(&folder, "state/autopilot-state.json", "{\"active\": true}");
        let owners = |modes, of: Option<&str>| {
            let states = store.owned_states(modes, of.map(session).as_ref()).expect("states");
            let owner = |state: &OwnedState| state.session.as_ref().map_or("nobody".to_owned(), ToString::to_string);
            states.iter().map(owner).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(owners(&[Mode::Ralph], None), "s1 s2 gone");
        assert_eq!(owners(&[Mode::Ralph], Some("s1")), "s1");
        assert_eq!(owners(&[Mode::Ralph, Mode::Autopilot], None), "s1 s2 gone nobody");
        assert!(store.read_unowned_mode(Mode::Autopilot).expect("a read").is_some());
        assert!(store.read_unowned_mode(Mode::Ralph).expect("a read").is_none());
        assert_eq!(store.sessions().len(), 3);
    }

    #[test]
    fn the_end_of_ralph_is_the_end_of_the_ultrawork_that_it_brought_and_of_no_other() {
        for (ultrawork, ended) in [
            (at_work("s1"), vec![Mode::Ralph, Mode::Ultrawork]),
            (json!({"active": true, "started_at": ago(60_000), "session_id": "s1"}).to_string(), vec![Mode::Ralph]),
        ] {
            let (folder, store) = store();
            let session = session("s1");
            plant(&folder, OWN, at_work("s1"));
            plant(&folder, LINKED, &ultrawork);
            assert_eq!(store.end_mode(&session, Mode::Ralph, "state_write", now()).expect("ended"), ended);
            assert!(!store.live_modes(&session, now()).contains(&Mode::Ralph));
            assert_eq!(store.end_mode(&session, Mode::Ralph, "state_write", now()).expect("nothing to do"), []);
        }
    }

    #[test]
    fn clearing_takes_the_sessions_own_and_nothing_of_others() {
        let (folder, store) = store();
        let locker = ThreadLocker::default();
        let own = session("s1");
        let beside = "state/sessions/s1/ralph-stop-breaker.json";
        for (path, text) in [(OWN, at_work("s1")), (LINKED, at_work("s1")), (beside, "{}".to_owned())] {
            plant(&folder, path, text);
        }
        plant(&folder, "state/ralph-state.json", at_work("s2"));
        plant(&folder, "state/sessions/s2/ralph-state.json", at_work("s2"));
        let cleared = store.clear_mode(&&locker, &own, Mode::Ralph, now()).expect("cleared");
        assert_eq!(cleared, [Mode::Ralph, Mode::Ultrawork]);
        for path in [OWN, LINKED, beside] {
            assert!(!folder.path().join(path).exists(), "{path}");
        }
        assert!(store.read_mode(&session("s2"), Mode::Ralph).expect("a read").is_some());
        assert!(folder.path().join("state/ralph-state.json").exists());
        let signals = store.read_cancel_signals(&own);
        assert_eq!(signals.iter().filter(|signal| signal.is_valid(now())).count(), 1);
        assert_eq!(store.clear_mode(&&locker, &own, Mode::Ralph, now()).expect("nothing"), []);
        assert_eq!(store.clear_mode(&&locker, &session("nobody"), Mode::Autopilot, now()).expect("nothing"), []);
        assert!(!folder.path().join("state/sessions/nobody").exists());
        assert!(store.clear_shared_mode(&&locker, Mode::Ralph, now()).expect("cleared"));
        assert!(!store.clear_shared_mode(&&locker, Mode::Ralph, now()).expect("nothing"));
    }

    #[test]
    fn a_state_that_cannot_be_read_can_be_cleared() {
        let (folder, store) = store();
        plant(&folder, OWN, "{");
        let cleared = store.clear_mode(&&ThreadLocker::default(), &session("s1"), Mode::Ralph, now());
        assert_eq!(cleared.expect("cleared"), [Mode::Ralph]);
        assert!(!folder.path().join(OWN).exists());
    }

    #[test]
    fn clearing_one_mode_does_not_narrow_a_cancel_of_all() {
        let (folder, store) = store();
        let (locker, own) = (ThreadLocker::default(), session("s1"));
        plant(&folder, OWN, at_work("s1"));
        store.cancel(&&locker, &own, "test", now()).expect("cancelled");
        let signal = folder.path().join("state/sessions/s1/cancel-signal.json");
        let before = fs::read(&signal).expect("a signal");
        store.clear_mode(&&locker, &own, Mode::Ralph, now()).expect("cleared");
        assert_eq!(fs::read(&signal).expect("a signal"), before);
    }
}
