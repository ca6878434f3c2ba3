//! Modes and their states: `state/sessions/ID/MODE-state.json`, or the older `state/MODE-state.json` shared by all sessions.
//!
//! A state belongs to the session that it names, wherever it lies. What a mode means (when it holds the agent, how far it
//! counts) is not known here; this module knows the members that all modes have in common.

use std::{fmt, path::PathBuf};

use crate::{
    Error, Fields, Locker, MAX_CLOCK_SKEW_MS, SessionId, Store, Timestamp, session_path, shared_path, truncate_units,
};

/// Age from which a state that nobody touched is stale, in milliseconds: 2 hours, the original's rule.
pub const STALE_MS: i64 = 2 * 60 * 60 * 1000;

/// How long a state that a keyword wrote waits for its skill to start, in milliseconds: 2 minutes, the original's rule.
pub const AWAITING_MS: i64 = 2 * 60 * 1000;

/// Longest prompt that a state keeps, in UTF-16 units with the three dots at its end: the original's limit.
const MAX_PROMPT_UNITS: usize = 500;

/// Values of a phase that say that the work is over, whatever the mode. `handoff` also begins longer ones.
const FINISHED_PHASES: [&str; 8] =
    ["complete", "completed", "done", "failed", "cancelled", "canceled", "aborted", "terminated"];

macro_rules! modes {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)*) => {
        /// A way of working that outlasts a turn and has a state file.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Mode {
            $($(#[$doc])* $variant,)*
        }

        impl Mode {
            /// All modes.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The name in file names, keywords and skills.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }
        }
    };
}

modes! {
    /// Goes on until it is cancelled.
    Ralph = "ralph",
    /// From an idea to working code, in phases; one at a time in a project.
    Autopilot = "autopilot",
    /// A staged team of agents.
    Team = "team",
    /// Teams of other agents' command lines.
    OmcTeams = "omc-teams",
    /// Planning by consensus.
    Ralplan = "ralplan",
    /// Parallel work until all is done.
    Ultrawork = "ultrawork",
    /// Test, fix, repeat.
    Ultraqa = "ultraqa",
    /// Goes on until a goal is reached.
    Ultragoal = "ultragoal",
    /// Questions before work.
    DeepInterview = "deep-interview",
    /// A mission of experiments with a deadline.
    Autoresearch = "autoresearch",
    /// Checks before a merge.
    MergeReadiness = "merge-readiness",
    /// Works on its own tools.
    SelfImprove = "self-improve",
}

impl Mode {
    /// The mode of that exact name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|mode| mode.name() == name)
    }

    /// The mode that a skill or a slash command of this name starts: with a prefix of this plugin, or bare.
    pub fn from_skill(name: &str) -> Option<Self> {
        Self::from_name(&bare_skill_name(name))
    }

    /// Whether only one session of a project may be at work in it. All other modes go together, in one session and in several.
    pub fn is_exclusive(self) -> bool {
        self == Self::Autopilot
    }

    pub(crate) fn path(self, session: &SessionId, place: Place) -> PathBuf {
        let file = format!("{}-state.json", self.name());
        match place {
            Place::Session => session_path(session, &file),
            Place::Shared => shared_path(&file),
        }
    }
}

/// The name of a skill or slash command without the slash and this plugin's prefix, in lower case.
///
/// `/omc:NAME`, `/oh-my-claudecode:NAME` and `/NAME` mean the same; a name of another plugin stays as it is.
pub fn bare_skill_name(name: &str) -> String {
    let name = name.trim().to_ascii_lowercase();
    let name = name.strip_prefix('/').unwrap_or(&name);
    without_prefix(name).unwrap_or(name).to_owned()
}

/// The same for a name that carries this plugin's prefix; absent for any other, which may be another plugin's.
pub fn own_skill_name(name: &str) -> Option<String> {
    let name = name.trim().to_ascii_lowercase();
    without_prefix(name.strip_prefix('/').unwrap_or(&name)).filter(|name| !name.is_empty()).map(str::to_owned)
}

fn without_prefix(name: &str) -> Option<&str> {
    name.strip_prefix("omc:").or_else(|| name.strip_prefix("oh-my-claudecode:"))
}

impl fmt::Display for Mode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// Where a state lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// In the folder of its session, where new states go.
    Session,
    /// In the file that older versions shared between sessions.
    Shared,
}

/// What a new state is made from.
#[derive(Debug, Clone, Copy)]
pub struct NewMode<'a> {
    /// Whose state it is.
    pub session: &'a SessionId,
    /// What the user asked for; only its beginning is kept.
    pub prompt: &'a str,
    /// The project's root as the agent names it, for people and the status line.
    pub project_path: Option<&'a str>,
    /// Whether Stop has to wait until the mode's skill has started.
    pub awaiting_confirmation: bool,
    /// The time of the start.
    pub now: Timestamp,
}

/// The state of one mode of one session.
#[derive(Debug, Clone, PartialEq)]
pub struct ModeState {
    fields: Fields,
    place: Place,
}

impl ModeState {
    /// The state of a mode that starts now, with the members and the order of the original.
    pub fn new(mode: Mode, start: &NewMode<'_>) -> Self {
        let mut fields = Fields::default();
        let prompt = truncate_units(start.prompt, MAX_PROMPT_UNITS);
        fields.set("active", true);
        if mode == Mode::Ralph {
            fields.set("iteration", 1);
            fields.set("max_iterations", 100);
        }
        fields.set_time("started_at", start.now);
        match mode {
            Mode::Ralph => fields.set("prompt", prompt),
            Mode::Ralplan => {
                fields.set("current_phase", "ralplan");
                fields.set("original_prompt", prompt);
            }
            Mode::Ultragoal => {
                fields.set("current_phase", "executing");
                fields.set("original_prompt", prompt);
            }
            _ => fields.set("original_prompt", prompt),
        }
        fields.set("session_id", start.session.as_str());
        if let Some(path) = start.project_path {
            fields.set("project_path", path);
        }
        match mode {
            Mode::Ralph => fields.set("linked_ultrawork", true),
            Mode::Ralplan => {}
            Mode::Ultragoal => {
                fields.set("reinforcement_count", 0);
                fields.set("max_reinforcements", 50);
            }
            _ => fields.set("reinforcement_count", 0),
        }
        if start.awaiting_confirmation {
            fields.set("awaiting_confirmation", true);
            fields.set_time("awaiting_confirmation_set_at", start.now);
        }
        fields.set_time("last_checked_at", start.now);
        Self { fields, place: Place::Session }
    }

    /// A state with these members, to be written at `place`.
    pub fn from_fields(fields: Fields, place: Place) -> Self {
        Self { fields, place }
    }

    /// The members.
    pub fn fields(&self) -> &Fields {
        &self.fields
    }

    /// The members, to change them.
    pub fn fields_mut(&mut self) -> &mut Fields {
        &mut self.fields
    }

    /// Where the state was read, or will be written.
    pub fn place(&self) -> Place {
        self.place
    }

    /// Whether the mode is on.
    pub fn is_active(&self) -> bool {
        self.fields.flag("active")
    }

    /// Whether nobody touched the state for [`STALE_MS`].
    ///
    /// What counts is the newest of `last_checked_at`, `updated_at` and `started_at` that can be read. If none can, or the
    /// newest is in the future, nobody knows when the state was touched, and it is stale.
    pub fn is_stale(&self, now: Timestamp) -> bool {
        !self.was_touched_within(STALE_MS, now)
    }

    /// Whether somebody touched the state in that time, by the same rule.
    pub fn was_touched_within(&self, window_ms: i64, now: Timestamp) -> bool {
        let times = ["last_checked_at", "updated_at", "started_at"];
        let newest = times.iter().filter_map(|name| self.fields.time(name)).max();
        newest.is_some_and(|time| time.is_within(window_ms, now))
    }

    /// Whether a keyword wrote the state less than [`AWAITING_MS`] ago and its skill has not started yet.
    pub fn is_awaiting_confirmation(&self, now: Timestamp) -> bool {
        let set_at = || self.fields.time("awaiting_confirmation_set_at").or_else(|| self.fields.time("started_at"));
        self.fields.flag("awaiting_confirmation") && set_at().is_some_and(|time| time.is_within(AWAITING_MS, now))
    }

    /// The first of `phase` and `current_phase` that says something.
    pub fn phase(&self) -> Option<&str> {
        self.fields.text("phase").or_else(|| self.fields.text("current_phase"))
    }

    /// Whether a phase, the status, or a mark of its own says that the work is over.
    pub fn is_finished(&self) -> bool {
        const PHASES: [&str; 6] = ["phase", "current_phase", "stage", "current_stage", "currentStage", "status"];
        const MARKS: [&str; 4] = ["terminal", "completed", "cancelled", "canceled"];
        MARKS.iter().any(|name| self.fields.flag(name))
            || PHASES.iter().filter_map(|name| self.fields.text(name)).any(|phase| {
                let phase = phase.to_ascii_lowercase();
                FINISHED_PHASES.contains(&phase.as_str())
                    || phase.strip_prefix("handoff").is_some_and(|rest| rest.is_empty() || rest.starts_with([':', '-']))
            })
    }

    /// Whether the mode is on, was touched lately and is not finished: the state of somebody who is at work.
    pub fn is_live(&self, now: Timestamp) -> bool {
        self.is_active() && !self.is_stale(now) && !self.is_finished()
    }

    /// What the user asked for when the mode started.
    pub fn prompt(&self) -> Option<&str> {
        self.fields.text("prompt").or_else(|| self.fields.text("original_prompt"))
    }

    /// When the mode started.
    pub fn started_at(&self) -> Option<Timestamp> {
        self.fields.time("started_at")
    }

    /// Whether this ultrawork is the one that ralph brought along, and that ends with it.
    ///
    /// Ralph's keyword writes both states at once. One that was started later stands for itself.
    pub fn came_with(&self, ralph: &Self) -> bool {
        let together = match (ralph.started_at(), self.started_at()) {
            (Some(ralph), Some(own)) => own.ms_since(ralph).abs() <= MAX_CLOCK_SKEW_MS,
            _ => true,
        };
        ralph.fields.flag("linked_ultrawork") && together || self.fields.flag("linked_to_ralph")
    }

    /// The mode's skill has started: it no longer waits.
    pub fn confirm(&mut self, now: Timestamp) {
        self.fields.remove("awaiting_confirmation");
        self.fields.set_time("last_checked_at", now);
    }

    /// The mode is over, for this reason (a word for programs, such as `cancelled`).
    pub fn end(&mut self, reason: &str, now: Timestamp) {
        self.fields.set("active", false);
        self.fields.remove("awaiting_confirmation");
        self.fields.set("deactivated_reason", reason);
        self.fields.set_time("completed_at", now);
    }
}

impl Store {
    /// The session's state of the mode: its own file, else the shared one if that names this session.
    ///
    /// A state that names nobody or somebody else is absent.
    ///
    /// # Errors
    ///
    /// The first file that could not be read, if no other holds the session's state.
    pub fn read_mode(&self, session: &SessionId, mode: Mode) -> Result<Option<ModeState>, Error> {
        let mut first_error = None;
        for place in [Place::Session, Place::Shared] {
            match self.read_fields(&mode.path(session, place)) {
                Ok(Some(fields)) if fields.belongs_to(session) => return Ok(Some(ModeState { fields, place })),
                Ok(_) => {}
                Err(error) => first_error = first_error.or(Some(error)),
            }
        }
        first_error.map_or(Ok(None), Err)
    }

    /// Writes the state where it was read; a new one goes to the session's folder.
    ///
    /// A corrupt file in its place is kept as `MODE-state.json.corrupt-TIME` (three at most).
    ///
    /// # Errors
    ///
    /// What keeps the file from being written; the old one is then untouched.
    pub fn write_mode(&self, session: &SessionId, mode: Mode, state: &ModeState) -> Result<(), Error> {
        self.replace(&mode.path(session, state.place), &state.fields)
    }

    /// The skill of these modes has started: their states no longer await confirmation. Says whether one did.
    ///
    /// Takes the session's lock, but only if there is something to change. A state that cannot be read awaits nothing.
    ///
    /// # Errors
    ///
    /// As [`locked`](Self::locked) and [`write_mode`](Self::write_mode).
    pub fn confirm_modes<L: Locker>(
        &self,
        locker: &L,
        session: &SessionId,
        modes: &[Mode],
        now: Timestamp,
    ) -> Result<bool, Error> {
        let awaiting = |store: &Self, mode| {
            let state = store.read_mode(session, mode).ok().flatten();
            state.filter(|state| state.is_active() && state.fields.get("awaiting_confirmation").is_some())
        };
        if !modes.iter().any(|&mode| awaiting(self, mode).is_some()) {
            return Ok(false);
        }
        self.locked(locker, session, |store| {
            let mut confirmed = false;
            for &mode in modes {
                if let Some(mut state) = awaiting(store, mode) {
                    state.confirm(now);
                    store.write_mode(session, mode, &state)?;
                    confirmed = true;
                }
            }
            Ok(confirmed)
        })
    }

    /// Ends every mode of the session that is on, and says which. For use under the session's lock.
    ///
    /// A state that cannot be read holds nobody and is passed over.
    ///
    /// # Errors
    ///
    /// The first state that could not be written, after all have been tried.
    pub fn end_modes(&self, session: &SessionId, reason: &str, now: Timestamp) -> Result<Vec<Mode>, Error> {
        let mut ended = Vec::new();
        let mut first_error = None;
        for &mode in Mode::ALL {
            let Ok(Some(mut state)) = self.read_mode(session, mode) else { continue };
            if !state.is_active() {
                continue;
            }
            state.end(reason, now);
            match self.write_mode(session, mode, &state) {
                Ok(()) => ended.push(mode),
                Err(error) => first_error = first_error.or(Some(error)),
            }
        }
        first_error.map_or(Ok(ended), Err)
    }

    /// The modes in which the session is at work. A state that cannot be read is none.
    pub fn live_modes(&self, session: &SessionId, now: Timestamp) -> Vec<Mode> {
        let is_live =
            |mode| self.read_mode(session, mode).ok().flatten().is_some_and(|state: ModeState| state.is_live(now));
        Mode::ALL.iter().copied().filter(|&mode| is_live(mode)).collect()
    }

    /// The other session of this project because of which the mode may not start: it is at work in it, and only one may be.
    ///
    /// Looks through 256 sessions at most, and only for a mode that is exclusive: not for the path of an ordinary event.
    pub fn excluded_by(&self, session: &SessionId, mode: Mode, now: Timestamp) -> Option<SessionId> {
        /// So many sessions are two weeks of heavy use; those that ended are cleaned up before.
        const MAX_SESSIONS: usize = 256;
        if !mode.is_exclusive() {
            return None;
        }
        let is_at_work = |other: &SessionId, place| {
            let fields = self.read_fields(&mode.path(other, place)).ok().flatten();
            let own = fields.filter(|fields| fields.belongs_to(other));
            own.is_some_and(|fields| ModeState::from_fields(fields, place).is_live(now))
        };
        // Older versions kept one state for all sessions; it names whose it is.
        let shared = self.read_fields(&mode.path(session, Place::Shared)).ok().flatten();
        let owner = shared.as_ref().and_then(|fields| SessionId::parse(fields.text("session_id")?));
        if let Some(owner) = owner.filter(|owner| owner != session && is_at_work(owner, Place::Shared)) {
            return Some(owner);
        }
        let folder = PathBuf::from("state").join("sessions");
        let mut others = self.names(&folder, MAX_SESSIONS).into_iter().filter_map(|name| SessionId::parse(&name));
        others.find(|other| other != session && is_at_work(other, Place::Session))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        lock::testing::{NeverFree, ThreadLocker},
        testing::{ago, now, plant, session, state, store},
    };
    use serde_json::json;
    use std::{fs, thread};

    #[test]
    fn new_states_have_the_members_of_the_original() {
        let session = session("s1");
        let start = NewMode {
            session: &session,
            prompt: "fix it",
            project_path: Some("/p"),
            awaiting_confirmation: true,
            now: now(),
        };
        let time = now().to_string();
        let members =
            |mode, start: &NewMode<'_>| serde_json::to_value(ModeState::new(mode, start).fields()).expect("JSON");
        assert_eq!(
            members(Mode::Ralph, &start).to_string(),
            json!({
                "active": true, "iteration": 1, "max_iterations": 100, "started_at": time, "prompt": "fix it",
                "session_id": "s1", "project_path": "/p", "linked_ultrawork": true, "awaiting_confirmation": true,
                "awaiting_confirmation_set_at": time, "last_checked_at": time,
            })
            .to_string()
        );
        assert_eq!(
            members(Mode::Ultrawork, &NewMode { awaiting_confirmation: false, project_path: None, ..start })
                .to_string(),
            json!({
                "active": true, "started_at": time, "original_prompt": "fix it", "session_id": "s1",
                "reinforcement_count": 0, "last_checked_at": time,
            })
            .to_string()
        );
        assert_eq!(members(Mode::Ralplan, &start)["current_phase"], "ralplan");
        assert_eq!(members(Mode::Ultragoal, &start)["max_reinforcements"], 50);
        let long = members(Mode::Autopilot, &NewMode { prompt: &"ulw src/a.ts ".repeat(200), ..start });
        let kept = long["original_prompt"].as_str().expect("a text");
        assert!(kept.ends_with("...") && kept.len() == MAX_PROMPT_UNITS);
    }

    #[test]
    fn skills_are_known_with_and_without_their_prefix() {
        for (name, mode) in [
            ("ralph", Some(Mode::Ralph)),
            ("omc:ralph", Some(Mode::Ralph)),
            ("oh-my-claudecode:ralph", Some(Mode::Ralph)),
            ("/omc:ultrawork", Some(Mode::Ultrawork)),
            (" ralplan ", Some(Mode::Ralplan)),
            ("deep-interview", Some(Mode::DeepInterview)),
            ("ralph-init", None),
            ("other:ralph", None),
            ("omc:omc:ralph", None),
            ("OMC:Ralph", Some(Mode::Ralph)),
            ("", None),
        ] {
            assert_eq!(Mode::from_skill(name), mode, "{name:?}");
        }
    }

    #[test]
    fn a_state_is_stale_after_two_hours_or_if_nobody_knows() {
        for (members, stale) in [
            (json!({"last_checked_at": ago(STALE_MS)}), false),
            (json!({"last_checked_at": ago(STALE_MS + 1)}), true),
            (json!({"started_at": ago(5 * STALE_MS), "last_checked_at": ago(1)}), false),
            (json!({"started_at": ago(5 * STALE_MS), "updated_at": ago(1)}), false),
            (json!({"started_at": ago(1)}), false),
            (json!({"started_at": ago(1), "last_checked_at": "yesterday"}), false),
            (json!({"started_at": ago(1), "last_checked_at": ago(-STALE_MS)}), true),
            (json!({"last_checked_at": ago(-1000)}), false),
            (json!({"started_at": "yesterday", "last_checked_at": ""}), true),
            (json!({"started_at": null, "last_checked_at": {}}), true),
            (json!({"last_checked_at": now().epoch_ms() - 1000}), false),
            (json!({}), true),
        ] {
            assert_eq!(state(members.clone()).is_stale(now()), stale, "{members}");
        }
    }

    #[test]
    fn a_keyword_awaits_its_skill_for_two_minutes() {
        for (members, awaiting) in [
            (json!({"awaiting_confirmation": true, "awaiting_confirmation_set_at": ago(30_000)}), true),
            (json!({"awaiting_confirmation": true, "awaiting_confirmation_set_at": ago(180_000)}), false),
            (json!({"awaiting_confirmation": true, "awaiting_confirmation_set_at": ago(-600_000)}), false),
            (json!({"awaiting_confirmation": true, "started_at": ago(30_000)}), true),
            (json!({"awaiting_confirmation": true}), false),
            (json!({"awaiting_confirmation": "true", "awaiting_confirmation_set_at": ago(30_000)}), false),
            (json!({"awaiting_confirmation_set_at": ago(30_000)}), false),
        ] {
            assert_eq!(state(members.clone()).is_awaiting_confirmation(now()), awaiting, "{members}");
        }
    }

    #[test]
    fn a_phase_or_a_status_finishes_a_mode() {
        for (members, finished) in [
            (json!({"stage": "failed"}), true),
            (json!({"currentStage": "team-verify"}), false),
            (json!({"cancelled": true, "phase": "team-exec"}), true),
            (json!({"completed": "yes", "terminal": null}), false),
            (json!({"phase": "complete"}), true),
            (json!({"current_phase": "Failed"}), true),
            (json!({"status": "cancelled"}), true),
            (json!({"current_phase": "handoff"}), true),
            (json!({"current_phase": "handoff:team"}), true),
            (json!({"current_phase": "handoff-team"}), true),
            (json!({"current_phase": "handoffs"}), false),
            (json!({"phase": "qa", "status": "running"}), false),
            (json!({"phase": 3}), false),
            (json!({}), false),
        ] {
            assert_eq!(state(members.clone()).is_finished(), finished, "{members}");
        }
    }

    #[test]
    fn only_the_sessions_own_state_is_read() {
        let own = json!({"active": true, "session_id": "s1"});
        for (path, value, place) in [
            ("state/sessions/s1/ralph-state.json", own.clone(), Some(Place::Session)),
            ("state/ralph-state.json", own.clone(), Some(Place::Shared)),
            ("state/sessions/s2/ralph-state.json", own.clone(), None),
            ("state/sessions/s1/ralph-state.json", json!({"active": true, "session_id": "s2"}), None),
            ("state/sessions/s1/ralph-state.json", json!({"active": true, "session_id": ""}), None),
            ("state/sessions/s1/ralph-state.json", json!({"active": true, "session_id": "unknown"}), None),
            ("state/sessions/s1/ralph-state.json", json!({"active": true}), None),
            ("state/ralph-state.json", json!({"active": true}), None),
        ] {
            let (folder, store) = store();
            plant(&folder, path, value.to_string());
            let read = store.read_mode(&session("s1"), Mode::Ralph).expect("a read");
            assert_eq!(read.map(|state| state.place()), place, "{path}: {value}");
        }
    }

    #[test]
    fn a_state_is_written_where_it_was_read() {
        let (folder, store) = store();
        plant(&folder, "state/ralph-state.json", json!({"active": true, "session_id": "s1", "mine": [1]}).to_string());
        let mut read = store.read_mode(&session("s1"), Mode::Ralph).expect("a read").expect("a state");
        read.fields_mut().set("iteration", 4);
        store.write_mode(&session("s1"), Mode::Ralph, &read).expect("a write");
        assert_eq!(store.read_mode(&session("s1"), Mode::Ralph).expect("a read"), Some(read));
        assert!(!folder.path().join("state/sessions").exists());
    }

    #[test]
    fn confirming_takes_only_the_flag() {
        let (folder, store) = store();
        let locker = ThreadLocker::default();
        let s1 = session("s1");
        assert!(!store.confirm_modes(&&locker, &s1, &[Mode::Ralph], now()).expect("nothing to do"));
        let waiting = json!({"active": true, "session_id": "s1", "awaiting_confirmation": true, "awaiting_confirmation_set_at": ago(5)});
        plant(&folder, "state/sessions/s1/ralph-state.json", waiting.to_string());
        assert!(matches!(store.confirm_modes(&NeverFree, &s1, &[Mode::Ralph], now()), Err(Error::Lock { .. })));
        assert!(store.confirm_modes(&&locker, &s1, &[Mode::Ralph], now()).expect("a write"));
        let read = store.read_mode(&s1, Mode::Ralph).expect("a read").expect("a state");
        assert!(!read.is_awaiting_confirmation(now()));
        assert!(read.fields().time("awaiting_confirmation_set_at").is_some() && read.is_active());
        assert!(!store.confirm_modes(&NeverFree, &s1, &[Mode::Ralph], now()).expect("needs no lock"));
    }

    #[test]
    fn a_cancel_ends_every_mode_that_is_on_and_no_other_sessions() {
        let (folder, store) = store();
        for mode in Mode::ALL {
            plant(
                &folder,
                &format!("state/sessions/s1/{mode}-state.json"),
                json!({"active": true, "session_id": "s1"}).to_string(),
            );
        }
        plant(
            &folder,
            "state/sessions/s1/ralph-state.json",
            json!({"active": false, "session_id": "s1", "iteration": 3}).to_string(),
        );
        plant(&folder, "state/sessions/s2/ralph-state.json", json!({"active": true, "session_id": "s2"}).to_string());
        fs::write(folder.path().join("state/sessions/s1/team-state.json"), "{").expect("a file");
        let ended = store.end_modes(&session("s1"), "cancelled", now()).expect("writes");
        let expected: Vec<_> =
            Mode::ALL.iter().copied().filter(|mode| !matches!(mode, Mode::Ralph | Mode::Team)).collect();
        assert_eq!(ended, expected);
        let read = |id: &str, mode| store.read_mode(&session(id), mode).expect("a read").expect("a state");
        assert!(!read("s1", Mode::Autopilot).is_active());
        assert!(
            store.live_modes(&session("s1"), now()).is_empty() && store.live_modes(&session("s2"), now()).is_empty()
        );
        let live = json!({"active": true, "session_id": "s2", "started_at": ago(1)}).to_string();
        plant(&folder, "state/sessions/s2/ultraqa-state.json", live);
        assert_eq!(store.live_modes(&session("s2"), now()), [Mode::Ultraqa]);
        assert_eq!(read("s1", Mode::Autopilot).fields().text("deactivated_reason"), Some("cancelled"));
        assert_eq!(read("s1", Mode::Ralph).fields().get("completed_at"), None, "was off before");
        assert!(read("s2", Mode::Ralph).is_active());
    }

    #[test]
    fn another_session_at_work_is_found() {
        let (folder, store) = store();
        let live =
            |id: &str, age| json!({"active": true, "session_id": id, "phase": "qa", "last_checked_at": ago(age)});
        plant(&folder, "state/sessions/s1/autopilot-state.json", live("s1", 0).to_string());
        plant(&folder, "state/sessions/s3/autopilot-state.json", live("s3", 3 * STALE_MS).to_string());
        plant(&folder, "state/sessions/s4/autopilot-state.json", live("s5", 0).to_string());
        plant(&folder, "state/sessions/.x/autopilot-state.json", live(".x", 0).to_string());
        let find = || store.excluded_by(&session("s1"), Mode::Autopilot, now());
        assert_eq!(find(), None);
        for (owner, found) in [("s1", None), ("unknown", None), ("s6", Some(session("s6")))] {
            plant(&folder, "state/autopilot-state.json", live(owner, 0).to_string());
            assert_eq!(find(), found, "the shared file of {owner}");
        }
        fs::remove_file(folder.path().join("state/autopilot-state.json")).expect("a file");
        plant(&folder, "state/sessions/s2/autopilot-state.json", live("s2", 0).to_string());
        assert_eq!(find(), Some(session("s2")));
        for mode in Mode::ALL.iter().copied().filter(|mode| !mode.is_exclusive()) {
            plant(&folder, &format!("state/sessions/s2/{mode}-state.json"), live("s2", 0).to_string());
            assert_eq!(store.excluded_by(&session("s1"), mode, now()), None, "{mode} may run in several sessions");
        }
    }

    #[test]
    fn no_count_is_lost_between_writers() {
        let (_folder, store) = store();
        let locker = ThreadLocker::default();
        let s1 = session("s1");
        let first = state(json!({"active": true, "session_id": "s1", "iteration": 0}));
        store.write_mode(&s1, Mode::Ralph, &first).expect("a write");
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..25 {
                        let add = |store: &Store| {
                            let mut state = store.read_mode(&s1, Mode::Ralph)?.expect("a state");
                            let next = state.fields().count("iteration").expect("a count") + 1;
                            state.fields_mut().set("iteration", next);
                            store.write_mode(&s1, Mode::Ralph, &state)
                        };
                        store.locked(&&locker, &s1, add).expect("a write");
                    }
                });
            }
        });
        let read = store.read_mode(&s1, Mode::Ralph).expect("a read").expect("a state");
        assert_eq!(read.fields().count("iteration"), Some(100));
    }
}
