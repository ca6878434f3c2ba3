//! The states of modes: what is at work, and how it is changed, ended and cleared.

use std::fmt;
use std::path::PathBuf;

use omc_state::{
    Area, Error as StoreError, Fields, Mode, ModeState, OwnedState, Place, SessionId, Store, Timestamp, mode_path,
};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{Error, Project, Result, check_length, mode, now, pretty};

/// Longest texts of a change, in UTF-16 units: the original's limits.
const MAX_PHASE_UNITS: usize = 200;
const MAX_TEXT_UNITS: usize = 2_000;
const MAX_PATH_UNITS: usize = 500;
const MAX_TIME_UNITS: usize = 100;

/// Most members of a change, and its deepest nesting: the original's limits.
const MAX_MEMBERS: usize = 100;
const MAX_DEPTH: usize = 10;

/// Longest preview of a state, in UTF-16 units: the original's limit.
const MAX_PREVIEW_UNITS: usize = 500;

/// Members that say whose a state is, and who wrote it: not for the caller to say.
const OURS: [&str; 2] = ["session_id", "_meta"];

/// What to change of a state. What is absent stays as it is.
#[derive(Debug, Clone, Default)]
#[expect(missing_docs, reason = "the members of the file, by their names there")]
pub struct Change {
    pub active: Option<bool>,
    pub iteration: Option<u64>,
    pub max_iterations: Option<u64>,
    pub current_phase: Option<String>,
    pub task_description: Option<String>,
    pub plan_path: Option<String>,
    pub started_at: Option<String>,
    pub completed_at: Option<String>,
    pub error: Option<String>,
    /// Any other members; those above win.
    pub state: Map<String, Value>,
    /// Whether members that the change does not name go.
    pub replace: bool,
}

impl Change {
    /// The members that the change names, checked.
    fn members(&self) -> Result<Map<String, Value>> {
        if self.state.len() > MAX_MEMBERS {
            return Err(Error::argument("state", format!("it has more than {MAX_MEMBERS} members")));
        }
        if self.state.values().any(|value| depth(value) >= MAX_DEPTH) {
            return Err(Error::argument("state", format!("it is nested deeper than {MAX_DEPTH} levels")));
        }
        let mut members = self.state.clone();
        members.retain(|name, _| !OURS.contains(&name.as_str()));
        if let Some(active) = self.active {
            members.insert("active".to_owned(), json!(active));
        }
        for (name, number) in [("iteration", self.iteration), ("max_iterations", self.max_iterations)] {
            if let Some(number) = number {
                members.insert(name.to_owned(), json!(number));
            }
        }
        let texts = [
            ("current_phase", &self.current_phase, MAX_PHASE_UNITS),
            ("task_description", &self.task_description, MAX_TEXT_UNITS),
            ("plan_path", &self.plan_path, MAX_PATH_UNITS),
            ("started_at", &self.started_at, MAX_TIME_UNITS),
            ("completed_at", &self.completed_at, MAX_TIME_UNITS),
            ("error", &self.error, MAX_TEXT_UNITS),
        ];
        for (name, text, max_units) in texts {
            if let Some(text) = text {
                check_length(name, text, max_units)?;
                members.insert(name.to_owned(), json!(text));
            }
        }
        if members.get("active").is_some_and(|active| !active.is_boolean()) {
            return Err(Error::argument("state", "its member `active` is neither true nor false"));
        }
        Ok(members)
    }
}

/// How many objects and lists are inside each other.
fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

/// How a mode stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// At work: Stop is refused.
    AtWork,
    /// A keyword asked for it, and its skill has not started yet.
    Awaiting,
    /// Nobody touched it for two hours: it holds nobody.
    Stale,
    /// Over.
    Ended,
}

impl Standing {
    fn of(state: &ModeState, now: Timestamp) -> Self {
        if !state.is_active() || state.is_finished() {
            Self::Ended
        } else if state.is_stale(now) {
            Self::Stale
        } else if state.is_awaiting_confirmation(now) {
            Self::Awaiting
        } else {
            Self::AtWork
        }
    }

    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::AtWork => "at work",
            Self::Awaiting => "awaits its skill",
            Self::Stale => "stale",
            Self::Ended => "ended",
        }
    }
}

/// One mode of one session.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Entry {
    /// The mode's name.
    pub mode: &'static str,
    /// Whose it is; absent for a state that names nobody.
    pub session: Option<String>,
    /// How it stands.
    pub standing: Standing,
    /// The phase it is in.
    pub phase: Option<String>,
    /// How often it went round.
    pub iteration: Option<u64>,
    /// How often it may; absent where the state leaves it to the default.
    pub max_iterations: Option<u64>,
    /// When it started.
    pub started_at: Option<String>,
    /// When it was touched last.
    pub touched_at: Option<String>,
    /// Its file.
    pub path: String,
    /// The whole state, where it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<Fields>,
}

impl Entry {
    fn new(project: &Project, owned: OwnedState, now: Timestamp, with_state: bool) -> Self {
        let (path, state) = (owned.path(), owned.state);
        let fields = state.fields();
        let time =
            |names: &[&str]| names.iter().filter_map(|name| fields.time(name)).max().map(|time| time.to_string());
        Self {
            mode: owned.mode.name(),
            session: owned.session.map(|session| session.to_string()),
            standing: Standing::of(&state, now),
            phase: state.phase().map(|phase| omc_state::one_line(phase, MAX_PHASE_UNITS)),
            iteration: fields.count("iteration"),
            max_iterations: fields.limit("max_iterations"),
            started_at: time(&["started_at"]),
            touched_at: time(&["last_checked_at", "updated_at", "started_at"]),
            path: project.shown(&path),
            state: with_state.then(|| fields.clone()),
        }
    }

    /// `4/100`, `4`, or nothing.
    pub fn progress(&self) -> String {
        let max = self.max_iterations.map(|max| format!("/{max}")).unwrap_or_default();
        self.iteration.map(|iteration| format!("{iteration}{max}")).unwrap_or_default()
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let owner = self.session.as_ref().map_or("no session".to_owned(), |session| format!("session {session}"));
        write!(formatter, "{} of {owner}: {}", self.mode, self.standing.name())?;
        if let Some(phase) = &self.phase {
            write!(formatter, ", phase {phase}")?;
        }
        if self.iteration.is_some() {
            write!(formatter, ", iteration {}", self.progress())?;
        }
        if let Some(touched) = &self.touched_at {
            write!(formatter, ", touched {touched}")?;
        }
        write!(formatter, " ({})", self.path)
    }
}

/// States that were found, each on a line; with its members below where they were asked for.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Listing {
    /// The states.
    pub states: Vec<Entry>,
    /// What to say if there are none.
    #[serde(skip)]
    none: String,
    /// Longest text of a state's members, in UTF-16 units.
    #[serde(skip)]
    max_units: Option<usize>,
}

impl fmt::Display for Listing {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.states.is_empty() {
            return formatter.write_str(&self.none);
        }
        for (at, entry) in self.states.iter().enumerate() {
            if at > 0 {
                formatter.write_str("\n")?;
            }
            write!(formatter, "{entry}")?;
            let Some(state) = &entry.state else { continue };
            formatter.write_str("\n")?;
            match self.max_units {
                Some(max_units) => {
                    let text = serde_json::to_string_pretty(state).map_err(|_| fmt::Error)?;
                    formatter.write_str(&omc_state::truncate_units(&text, max_units))?;
                }
                None => pretty(state, formatter)?,
            }
        }
        Ok(())
    }
}

/// What became of a change of a state.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Changed {
    /// The state was written.
    Written(Box<Written>),
    /// The mode was to end, and there is no state of it: nothing was written.
    NothingToEnd {
        /// The mode's name.
        mode: &'static str,
        /// Whose state it would be; absent if no session was named or is known.
        session: Option<String>,
        /// As that of any mode that is over.
        standing: Standing,
    },
}

impl fmt::Display for Changed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Written(written) => written.fmt(formatter),
            Self::NothingToEnd { mode, session: Some(session), .. } => {
                write!(formatter, "nothing to end: session {session} has no state of {mode}")
            }
            Self::NothingToEnd { mode, session: None, .. } => {
                write!(formatter, "nothing to end: no session is at work in {mode}")
            }
        }
    }
}

/// A state that was written.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Written {
    /// The state as it is now.
    #[serde(flatten)]
    pub entry: Entry,
    /// Other modes that ended with it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub also_ended: Vec<&'static str>,
    /// What the caller should know.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warning: Option<&'static str>,
}

impl fmt::Display for Written {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "wrote {}", self.entry)?;
        for mode in &self.also_ended {
            write!(formatter, "\n{mode} ended with it")?;
        }
        if let Some(warning) = self.warning {
            write!(formatter, "\n{warning}")?;
        }
        formatter.write_str("\n")?;
        pretty(&self.entry.state, formatter)
    }
}

/// A state that was cleared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ClearedState {
    /// The mode.
    pub mode: &'static str,
    /// Whose it was; absent for the shared file.
    pub session: Option<String>,
}

/// What was cleared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Cleared {
    /// The states that are gone.
    pub cleared: Vec<ClearedState>,
    /// Where was looked, if there was nothing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub looked_at: Vec<String>,
}

impl fmt::Display for Cleared {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.cleared.is_empty() {
            return write!(formatter, "nothing to clear; looked at {}", self.looked_at.join(", "));
        }
        let one = |cleared: &ClearedState| {
            let owner = cleared.session.as_ref().map_or("the shared file".to_owned(), |id| format!("session {id}"));
            format!("{} of {owner}", cleared.mode)
        };
        write!(formatter, "cleared {}", self.cleared.iter().map(one).collect::<Vec<_>>().join(", "))
    }
}

/// What ended in one session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CancelledSession {
    /// The session.
    pub session: String,
    /// Its modes that were on.
    pub modes: Vec<&'static str>,
}

/// What was cancelled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Cancelled {
    /// The sessions.
    pub sessions: Vec<CancelledSession>,
}

impl fmt::Display for Cancelled {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.sessions.is_empty() {
            return formatter.write_str("nothing is at work");
        }
        for (at, session) in self.sessions.iter().enumerate() {
            let line_end = if at > 0 { "\n" } else { "" };
            let modes = if session.modes.is_empty() { "no mode was on".to_owned() } else { session.modes.join(", ") };
            write!(formatter, "{line_end}cancelled session {}: {modes}", session.session)?;
        }
        Ok(())
    }
}

impl Project {
    /// The states of a mode: of one session, else of all.
    ///
    /// # Errors
    ///
    /// An argument that cannot be used, or what keeps the state from being read.
    pub fn read_state(&self, mode_name: &str, session: Option<&str>) -> Result<Listing> {
        let mode = mode(mode_name)?;
        let session = Self::named_session(session)?;
        let states = self.entries(&[mode], session.as_ref(), true)?;
        let expected = self.shown(&mode_path(mode, session.as_ref(), Place::Session));
        let none = match session {
            Some(session) => format!("session {session} has no state of {mode}; it would be in {expected}"),
            None => format!("no session has a state of {mode}; one for all would be in {expected}"),
        };
        Ok(Listing { states, none, max_units: None })
    }

    /// The modes that are on: of the session that is named or that this process is in, or of all.
    ///
    /// # Errors
    ///
    /// An argument that cannot be used, or what keeps the states from being read.
    pub fn active_states(&self, session: Option<&str>, all: bool) -> Result<Listing> {
        let session = if all { None } else { Self::named_session(session)?.or_else(|| self.own_session()) };
        let mut states = self.entries(Mode::ALL, session.as_ref(), false)?;
        states.retain(|entry| entry.standing != Standing::Ended);
        let none = match session {
            Some(session) => format!("no mode is on in session {session}"),
            None => "no mode is on".to_owned(),
        };
        Ok(Listing { states, none, max_units: None })
    }

    /// How modes stand, on or off, with the beginning of their states: one mode or all, of one session or of all.
    ///
    /// # Errors
    ///
    /// An argument that cannot be used, or what keeps the states from being read.
    pub fn state_status(&self, mode_name: Option<&str>, session: Option<&str>) -> Result<Listing> {
        let one = mode_name.map(mode).transpose()?;
        let session = Self::named_session(session)?;
        let modes = one.as_ref().map_or(Mode::ALL, std::slice::from_ref);
        let states = self.entries(modes, session.as_ref(), true)?;
        let what = one.map_or("any mode", Mode::name);
        Ok(Listing { states, none: format!("there is no state of {what}"), max_units: Some(MAX_PREVIEW_UNITS) })
    }

    fn entries(&self, modes: &[Mode], session: Option<&SessionId>, with_state: bool) -> Result<Vec<Entry>> {
        let now = now();
        let states = self.store.owned_states(modes, session)?;
        Ok(states.into_iter().map(|owned| Entry::new(self, owned, now, with_state)).collect())
    }

    /// Changes the state of a mode, for the session that is named or meant.
    ///
    /// Members that the change does not name stay, unless it says otherwise. `active: false` ends the mode, so that the next
    /// Stop is not refused because of it, and the ultrawork that ralph brought along; `active: true` starts it if it was off.
    /// An end of what never began makes no file.
    ///
    /// # Errors
    ///
    /// An argument that cannot be used, a session that is not clear, or what keeps the state from being written.
    pub fn write_state(&self, mode_name: &str, session: Option<&str>, change: &Change) -> Result<Changed> {
        let mode = mode(mode_name)?;
        if mode == Mode::MergeReadiness {
            return Err(Error::argument("mode", "the record of merge-readiness is written by its own checks"));
        }
        let members = change.members()?;
        let session = match Self::named_session(session)? {
            Some(session) => Some(session),
            None => self.meant_session(self.candidates(mode)?)?,
        };
        // Looked at before the lock, which makes the folder that it is on. A state that cannot be read is there.
        let has_none = || {
            let states = self.store.owned_states(&[mode], session.as_ref());
            states.is_ok_and(|states| states.iter().all(|owned| owned.session != session))
        };
        if only_ends(&members) && has_none() {
            let session = session.map(|session| session.to_string());
            return Ok(Changed::NothingToEnd { mode: mode.name(), session, standing: Standing::Ended });
        }
        let store = self.writable()?;
        let now = now();
        let written = match session {
            Some(session) => store.locked(&self.locker(), &session, |store| {
                Ok(self.write_own(store, mode, &session, members, change, now))
            })?,
            None => store.locked_in(&self.locker(), Area::State, |store| {
                Ok(self.write_unowned(store, mode, members, change, now))
            })?,
        };
        Ok(Changed::Written(Box::new(written?)))
    }

    /// The sessions that a change of the mode may mean: those in which it is on, else the only one that there is.
    fn candidates(&self, mode: Mode) -> Result<Vec<SessionId>> {
        let states = self.store.owned_states(&[mode], None)?;
        let on = states.into_iter().filter(|owned| owned.state.is_active());
        let on: Vec<_> = on.filter_map(|owned| owned.session).collect();
        if !on.is_empty() {
            return Ok(on);
        }
        let known = self.store.sessions();
        Ok(if known.len() == 1 { known } else { Vec::new() })
    }

    fn write_own(
        &self,
        store: &Store,
        mode: Mode,
        session: &SessionId,
        members: Map<String, Value>,
        change: &Change,
        now: Timestamp,
    ) -> Result<Written> {
        let read = || match store.read_mode(session, mode) {
            // A file that cannot be understood is set aside when it is replaced.
            Err(StoreError::Corrupt { .. } | StoreError::TooLarge { .. }) => Ok(None),
            read => read,
        };
        let known = read()?;
        let was_on = known.as_ref().is_some_and(ModeState::is_active);
        let ends = members.get("active") == Some(&Value::Bool(false));
        let starts = members.get("active") == Some(&Value::Bool(true)) && !was_on;
        if starts && let Some(other) = store.excluded_by(session, mode, now) {
            return Err(Error::Excluded { mode, other });
        }
        let also_ended = if ends { store.end_mode(session, mode, "state_write", now)? } else { Vec::new() };
        let known = read()?;
        let place = known.as_ref().map_or(Place::Session, ModeState::place);
        let known = known.filter(|_| !change.replace).map(|state| state.fields().clone()).unwrap_or_default();
        let mut state = ModeState::from_fields(known, place);
        apply(&mut state, members, now);
        if starts {
            begin(&mut state, mode, change, now);
            store.clear_cancel_signal(session)?;
            store.clear_tombstone(session, mode)?;
        }
        let fields = state.fields_mut();
        fields.set("session_id", session.as_str());
        fields.set("_meta", meta(mode, Some(session), now));
        store.write_mode(session, mode, &state)?;
        let owned = OwnedState { mode, session: Some(session.clone()), state };
        Ok(Written {
            entry: Entry::new(self, owned, now, true),
            also_ended: also_ended.into_iter().filter(|ended| *ended != mode).map(Mode::name).collect(),
            warning: None,
        })
    }

    fn write_unowned(
        &self,
        store: &Store,
        mode: Mode,
        members: Map<String, Value>,
        change: &Change,
        now: Timestamp,
    ) -> Result<Written> {
        if let Some(owner) = store
            .owned_states(&[mode], None)?
            .into_iter()
            .find_map(|owned| owned.session.filter(|_| owned.state.place() == Place::Shared))
        {
            return Err(Error::argument("session_id", format!("the state is that of session {owner}; name it")));
        }
        let known = store.read_unowned_mode(mode)?.filter(|_| !change.replace);
        let was_on = known.as_ref().is_some_and(ModeState::is_active);
        let mut state = known.unwrap_or_else(|| ModeState::from_fields(Fields::default(), Place::Shared));
        let starts = members.get("active") == Some(&Value::Bool(true)) && !was_on;
        apply(&mut state, members, now);
        if starts {
            begin(&mut state, mode, change, now);
        }
        state.fields_mut().set("_meta", meta(mode, None, now));
        store.write_unowned_mode(mode, state.fields())?;
        let entry = Entry::new(self, OwnedState { mode, session: None, state }, now, true);
        let warning =
            "no session is known, so this state belongs to nobody and holds nobody; name the session to start a mode";
        Ok(Written { entry, also_ended: Vec::new(), warning: Some(warning) })
    }

    /// Removes the state of a mode: of one session, else of all and the shared file.
    ///
    /// # Errors
    ///
    /// An argument that cannot be used, or what keeps a file from being removed.
    pub fn clear_state(&self, mode_name: &str, session: Option<&str>) -> Result<Cleared> {
        let mode = mode(mode_name)?;
        let named = Self::named_session(session)?;
        let sessions = named.clone().map_or_else(|| self.store.sessions(), |session| vec![session]);
        let mut looked_at: Vec<PathBuf> =
            sessions.iter().map(|session| mode_path(mode, Some(session), Place::Session)).collect();
        looked_at.push(mode_path(mode, None, Place::Shared));
        let (now, mut cleared) = (now(), Vec::new());
        for session in &sessions {
            let modes = self.store.clear_mode(&self.locker(), session, mode, now)?;
            let session = Some(session.to_string());
            cleared.extend(modes.into_iter().map(|mode| ClearedState { mode: mode.name(), session: session.clone() }));
        }
        if named.is_none() && self.store.clear_shared_mode(&self.locker(), mode, now)? {
            cleared.push(ClearedState { mode: mode.name(), session: None });
        }
        let nothing = cleared.is_empty();
        let looked_at = looked_at.iter().filter(|_| nothing).map(|path| self.shown(path)).collect();
        Ok(Cleared { cleared, looked_at })
    }

    /// Ends every mode and skill of the session that is named or meant, or of all sessions that are at work.
    ///
    /// # Errors
    ///
    /// An argument that cannot be used, a session that is not clear, or what keeps a state from being written.
    pub fn cancel(&self, session: Option<&str>, all: bool) -> Result<Cancelled> {
        let at_work = || -> Result<Vec<SessionId>> {
            let is_at_work = |session: &SessionId| {
                let states = self.store.owned_states(Mode::ALL, Some(session)).unwrap_or_default();
                let skill = self.store.read_skills(session);
                states.iter().any(|owned| owned.state.is_active()) || skill.active().is_some()
            };
            let mut sessions = self.store.sessions();
            // A session without a folder may be at work in the shared file.
            for owned in self.store.owned_states(Mode::ALL, None)? {
                sessions.extend(owned.session.filter(|session| !sessions.contains(session)));
            }
            sessions.retain(is_at_work);
            Ok(sessions)
        };
        let sessions = match (Self::named_session(session)?, all) {
            (Some(session), _) => vec![session],
            (None, true) => at_work()?,
            (None, false) => self.meant_session(at_work()?)?.into_iter().collect(),
        };
        if sessions.is_empty() {
            return Ok(Cancelled { sessions: Vec::new() });
        }
        let store = self.writable()?;
        let cancel = |session: SessionId| {
            let modes = store.cancel(&self.locker(), &session, "omc-host cancel", now())?;
            let modes = modes.into_iter().map(Mode::name).collect();
            Ok(CancelledSession { session: session.to_string(), modes })
        };
        Ok(Cancelled { sessions: sessions.into_iter().map(cancel).collect::<Result<_>>()? })
    }
}

/// Whether the change says that the mode is over and nothing that would have to be kept.
fn only_ends(members: &Map<String, Value>) -> bool {
    members.get("active") == Some(&Value::Bool(false))
        && members.keys().all(|name| matches!(name.as_str(), "active" | "completed_at" | "current_phase"))
}

/// Takes the members of a change into a state.
fn apply(state: &mut ModeState, members: Map<String, Value>, now: Timestamp) {
    let ends = members.get("active") == Some(&Value::Bool(false));
    let completed = members.get("completed_at").cloned();
    let fields = state.fields_mut();
    for (name, value) in members {
        fields.set(&name, value);
    }
    if !ends {
        if fields.flag("active") {
            fields.set_time("last_checked_at", now);
            fields.remove("awaiting_confirmation");
        }
        return;
    }
    state.end("state_write", now);
    if let Some(completed) = completed {
        state.fields_mut().set("completed_at", completed);
    }
}

/// Makes the state that of a run that begins now.
fn begin(state: &mut ModeState, mode: Mode, change: &Change, now: Timestamp) {
    let named = |name: &str| change.state.contains_key(name);
    let fields = state.fields_mut();
    if change.started_at.is_none() && !named("started_at") {
        fields.set_time("started_at", now);
    }
    for (name, is_named) in [
        ("completed_at", change.completed_at.is_some() || named("completed_at")),
        ("deactivated_reason", named("deactivated_reason")),
    ] {
        if !is_named {
            fields.remove(name);
        }
    }
    if mode == Mode::Ralph && change.iteration.is_none() && !named("iteration") {
        fields.set("iteration", 1);
    }
}

/// Who wrote a state, as the original notes it.
fn meta(mode: Mode, session: Option<&SessionId>, now: Timestamp) -> Value {
    json!({
        "mode": mode.name(),
        "sessionId": session.map(SessionId::as_str),
        "updatedAt": now.to_string(),
        "updatedBy": "state_write_tool",
    })
}
