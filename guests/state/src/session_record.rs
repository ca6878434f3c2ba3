//! The beginning and the end of a session: `state/sessions/ID/session-started.json` and `sessions/ID.json`.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::{Error, Fields, Mode, Place, SessionId, Store, Timestamp, session_path, shared_path};

const STARTED: &str = "session-started.json";

/// Files of a session that mean nothing once it is over. States of modes, and what others may still want to read, are not here.
const TRANSIENT: &[&str] = &[
    STARTED,
    "cancel-signal.json",
    "cancel-signal-state.json",
    "hud-stdin-cache.json",
    "last-tool-error-state.json",
    "skill-active-state.json",
];

/// End of the names of the counters that end an endless refusal.
const BREAKER_END: &str = "-stop-breaker.json";

/// The same in the shared folder, where a file belongs to the session that it names.
const SHARED_TRANSIENT: &[&str] = &[
    "hud-state.json",
    "hud-stdin-cache.json",
    "idle-notif-cooldown.json",
    "last-tool-error.json",
    "subagent-tracking.json",
];

/// Names, around the session's id, of files in the shared folder that are one session's alone.
const SHARED_BY_NAME: &[(&str, &str)] = &[
    ("agent-replay-", ".jsonl"),
    ("drift-warned-", ".json"),
    ("session-summary-", ".json"),
    ("sibling-retrofit-warned-", ".json"),
];

/// Most files of a session that are looked at when it ends.
const MAX_SESSION_FILES: usize = 256;

/// What the summary of a session says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionFacts {
    /// When it started first, if anybody knows.
    pub started_at: Option<Timestamp>,
    /// The modes it had, on or off.
    pub modes: Vec<Mode>,
    /// How many subagents it started.
    pub agents_spawned: u64,
    /// How many of them finished.
    pub agents_completed: u64,
}

fn summary_path(session: &SessionId) -> PathBuf {
    Path::new("sessions").join(format!("{session}.json"))
}

impl Store {
    /// Notes that the session is there. The first start stays the start, however often it is resumed or compacted.
    ///
    /// # Errors
    ///
    /// What keeps the file from being written.
    pub fn begin_session(&self, session: &SessionId, cwd: Option<&str>, now: Timestamp) -> Result<(), Error> {
        let path = session_path(session, STARTED);
        let known = self.read_fields(&path).ok().flatten().filter(|fields| fields.belongs_to(session));
        let mut fields = known.unwrap_or_default();
        let started = fields.time("started_at").filter(|started| !started.is_future(now)).unwrap_or(now);
        fields.set("session_id", session.as_str());
        fields.set_time("started_at", started);
        if let Some(cwd) = cwd {
            fields.set("cwd", cwd);
        }
        self.replace(&path, &fields)
    }

    /// What the session's files say about it.
    pub fn session_facts(&self, session: &SessionId) -> SessionFacts {
        let states: Vec<_> =
            Mode::ALL.iter().filter_map(|&mode| Some((mode, self.read_mode(session, mode).ok().flatten()?))).collect();
        let marker = self.read_fields(&session_path(session, STARTED)).ok().flatten();
        let first = marker.filter(|fields| fields.belongs_to(session)).and_then(|fields| fields.time("started_at"));
        let started_at = first.or_else(|| states.iter().filter_map(|(_, state)| state.started_at()).min());
        let (agents_spawned, agents_completed) = self.count_agents(session);
        let modes = states.into_iter().map(|(mode, _)| mode).collect();
        SessionFacts { started_at, modes, agents_spawned, agents_completed }
    }

    /// Subagents that were started and that finished.
    fn count_agents(&self, session: &SessionId) -> (u64, u64) {
        let read = |path: PathBuf| self.read_fields(&path).ok().flatten();
        if let Some(own) = read(session_path(session, "subagent-tracking-state.json")) {
            let (spawned, completed) = count_agents(&own, |_| true);
            let total = |name, counted: u64| own.count(name).unwrap_or(0).max(counted);
            return (total("total_spawned", spawned), total("total_completed", completed));
        }
        read(shared_path("subagent-tracking.json"))
            .map_or((0, 0), |shared| count_agents(&shared, |agent| agent.belongs_to(session)))
    }

    /// Whether the session was summed up.
    pub(crate) fn has_summary(&self, session: &SessionId) -> bool {
        self.exists(&summary_path(session))
    }

    /// Writes the summary of a session that ends now.
    ///
    /// # Errors
    ///
    /// What keeps the file from being written.
    pub fn write_summary(
        &self,
        session: &SessionId,
        facts: &SessionFacts,
        reason: Option<&str>,
        now: Timestamp,
    ) -> Result<(), Error> {
        let mut fields = Fields::default();
        fields.set("session_id", session.as_str());
        let started = facts.started_at.filter(|started| !started.is_future(now));
        if let Some(started) = started {
            fields.set_time("started_at", started);
        }
        fields.set_time("ended_at", now);
        fields.set("reason", reason.unwrap_or("other"));
        fields.set("agents_spawned", facts.agents_spawned);
        fields.set("agents_completed", facts.agents_completed);
        fields.set("modes_used", facts.modes.iter().map(|mode| mode.name().into()).collect::<Vec<Value>>());
        if let Some(started) = started {
            fields.set("duration_ms", now.ms_since(started).max(0));
        }
        self.replace(&summary_path(session), &fields)
    }

    /// Removes what the session alone left behind and nobody needs once it is over: its modes that are on, its marker, its
    /// signals and counters. For use under the session's lock.
    ///
    /// # Errors
    ///
    /// The first file that could not be removed, after all have been tried.
    pub fn end_session(&self, session: &SessionId) -> Result<(), Error> {
        let mut first_error = None;
        let mut remove = |path: &Path| {
            if let Err(error) = self.remove(path) {
                first_error.get_or_insert(error);
            }
        };
        for &mode in Mode::ALL {
            // Twice: behind the session's own state an older one in the shared file may come to light.
            for _ in [Place::Session, Place::Shared] {
                match self.read_mode(session, mode) {
                    Ok(Some(state)) if state.is_active() => remove(&mode.path(session, state.place())),
                    _ => break,
                }
            }
        }
        let folder = session_path(session, "");
        for name in self.names(&folder, MAX_SESSION_FILES) {
            if TRANSIENT.contains(&name.as_str()) || name.ends_with(BREAKER_END) {
                remove(&folder.join(name));
            }
        }
        for name in SHARED_TRANSIENT {
            let path = shared_path(name);
            if self.read_fields(&path).is_ok_and(|fields| fields.is_some_and(|fields| fields.belongs_to(session))) {
                remove(&path);
            }
        }
        for (before, after) in SHARED_BY_NAME {
            remove(&shared_path(&format!("{before}{session}{after}")));
        }
        self.remove_folder(&folder);
        first_error.map_or(Ok(()), Err)
    }
}

/// The agents of a tracking file that count, and those of them that finished.
fn count_agents(file: &Fields, counts: impl Fn(&Fields) -> bool) -> (u64, u64) {
    file.objects("agents").filter(counts).fold((0, 0), |(all, completed), agent| {
        (all + 1, completed + u64::from(agent.text("status") == Some("completed")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{ago, now, plant, session, store};
    use serde_json::json;
    use std::fs;
    use tempfile::TempDir;

    const HOUR: i64 = 3_600_000;
    const MARKER: &str = "state/sessions/s1/session-started.json";

    fn read(folder: &TempDir, path: &str) -> Value {
        serde_json::from_str(&fs::read_to_string(folder.path().join(path)).expect("a file")).expect("JSON")
    }

    fn mode(session: &str, active: bool) -> String {
        json!({"active": active, "session_id": session, "started_at": ago(HOUR)}).to_string()
    }

    #[test]
    fn the_first_start_stays_the_start() {
        for (planted, started) in [
            (None, ago(0)),
            (Some(json!({"session_id": "s1", "started_at": ago(2 * HOUR), "boot_id": "b"})), ago(2 * HOUR)),
            (Some(json!({"session_id": "s2", "started_at": ago(2 * HOUR)})), ago(0)),
            (Some(json!({"session_id": "s1", "started_at": ago(-2 * HOUR)})), ago(0)),
            (Some(json!({"session_id": "s1", "started_at": "long ago"})), ago(0)),
        ] {
            let (folder, store) = store();
            let kept = planted.as_ref().and_then(|planted| planted.get("boot_id").cloned());
            if let Some(planted) = planted {
                plant(&folder, MARKER, planted.to_string());
            }
            store.begin_session(&session("s1"), Some("/p"), now()).expect("a write");
            let marker = read(&folder, MARKER);
            assert_eq!(marker["started_at"], started);
            assert_eq!((marker["cwd"].as_str(), marker.get("boot_id")), (Some("/p"), kept.as_ref()));
        }
    }

    #[test]
    fn a_summary_counts_what_was_the_sessions_own() {
        let (folder, store) = store();
        plant(&folder, MARKER, json!({"session_id": "s1", "started_at": ago(2 * HOUR)}).to_string());
        plant(&folder, "state/sessions/s1/ralph-state.json", mode("s1", true));
        plant(&folder, "state/team-state.json", mode("s1", false));
        plant(&folder, "state/autopilot-state.json", mode("s2", true));
        let agents = json!({"agents": [{"status": "completed"}, {"status": "running"}], "total_spawned": 5, "total_completed": 1});
        plant(&folder, "state/sessions/s1/subagent-tracking-state.json", agents.to_string());
        let facts = store.session_facts(&session("s1"));
        let modes = vec![Mode::Ralph, Mode::Team];
        let started_at = Some(now().plus_ms(-2 * HOUR));
        assert_eq!(facts, SessionFacts { started_at, modes, agents_spawned: 5, agents_completed: 1 });
        store.write_summary(&session("s1"), &facts, Some("logout"), now()).expect("a write");
        assert_eq!(
            read(&folder, "sessions/s1.json"),
            json!({
                "session_id": "s1", "started_at": ago(2 * HOUR), "ended_at": ago(0), "reason": "logout",
                "agents_spawned": 5, "agents_completed": 1, "modes_used": ["ralph", "team"], "duration_ms": 2 * HOUR,
            })
        );
    }

    #[test]
    fn without_a_marker_a_mode_or_nobody_knows_the_start() {
        let (folder, store) = store();
        assert_eq!(store.session_facts(&session("s1")), SessionFacts::default());
        store.write_summary(&session("s1"), &SessionFacts::default(), None, now()).expect("a write");
        let summary = read(&folder, "sessions/s1.json");
        assert_eq!((summary.get("started_at"), summary.get("duration_ms")), (None, None));
        plant(&folder, "state/sessions/s1/ralph-state.json", mode("s1", false));
        assert_eq!(store.session_facts(&session("s1")).started_at, Some(now().plus_ms(-HOUR)));
        let shared = json!({"agents": [{"session_id": "s1", "status": "completed"}, {"session_id": "s10"}, 7]});
        plant(&folder, "state/subagent-tracking.json", shared.to_string());
        let facts = store.session_facts(&session("s1"));
        assert_eq!((facts.agents_spawned, facts.agents_completed), (1, 1));
    }

    #[test]
    fn the_end_of_a_session_touches_nothing_of_others_or_of_the_user() {
        let (folder, store) = store();
        let gone = [
            (MARKER, "{}".to_owned()),
            ("state/sessions/s1/ralph-state.json", mode("s1", true)),
            ("state/ralph-state.json", mode("s1", true)),
            ("state/ultrawork-state.json", mode("s1", true)),
            ("state/sessions/s1/cancel-signal.json", "{}".to_owned()),
            ("state/sessions/s1/ralplan-stop-breaker.json", "{}".to_owned()),
            ("state/agent-replay-s1.jsonl", "{}".to_owned()),
            ("state/last-tool-error.json", json!({"session_id": "s1"}).to_string()),
            ("state/subagent-tracking.json", json!({"session_id": "s1", "agents": []}).to_string()),
        ];
        let kept = [
            ("state/sessions/s1/team-state.json", mode("s1", false)),
            ("state/sessions/s1/prd.json", "{}".to_owned()),
            ("state/sessions/s10/ralph-state.json", mode("s10", true)),
            ("state/sessions/s10/cancel-signal-state.json", "{}".to_owned()),
            ("state/autopilot-state.json", mode("s10", true)),
            ("state/team-state.json", json!({"active": true}).to_string()),
            ("state/agent-replay-s10.jsonl", "{}".to_owned()),
            ("state/hud-stdin-cache.json", json!({"session_id": "s10"}).to_string()),
            ("state/hud-state.json", "{}".to_owned()),
            ("plans/budget.tmp", "half a plan".to_owned()),
            ("notepad.md", "mine".to_owned()),
        ];
        for (path, content) in gone.iter().chain(&kept) {
            plant(&folder, path, content);
        }
        store.end_session(&session("s1")).expect("removed");
        for (path, _) in &gone {
            assert!(!folder.path().join(path).exists(), "{path}");
        }
        for (path, content) in &kept {
            assert_eq!(&fs::read_to_string(folder.path().join(path)).expect("kept"), content, "{path}");
        }
        store.end_session(&session("s2")).expect("nothing to do");
        plant(&folder, "state/sessions/s3/session-started.json", "{}");
        store.end_session(&session("s3")).expect("removed");
        assert!(!folder.path().join("state/sessions/s3").exists(), "an empty folder goes too");
    }
}
