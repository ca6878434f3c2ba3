//! Work of the session that goes on without its turn, and will wake the agent when it is done.
//!
//! Three families of files, all read only: the status line's background tasks, the tracker of subagents, and wake-ups that
//! somebody scheduled.

use std::path::PathBuf;

use crate::{Fields, SessionId, Store, Timestamp, session_path, shared_path};

/// Age from which a background task that still says `running` was forgotten, in milliseconds: 24 hours.
const TASK_LIFE_MS: i64 = 24 * 60 * 60 * 1000;

/// The same for a subagent: 30 minutes.
const AGENT_LIFE_MS: i64 = 30 * 60 * 1000;

/// The same for a wake-up that has no due time: 24 hours.
const WAKE_UP_LIFE_MS: i64 = 24 * 60 * 60 * 1000;

const WAKE_UP_FILES: [&str; 3] = ["scheduled-wakeup-state.json", "schedule-wakeup-state.json", "wakeup-state.json"];
const WAKE_UP_DUE: [&str; 5] = ["due_at", "wakeup_at", "scheduled_for", "deadline_at", "expires_at"];
const WAKE_UP_OVER: [&str; 6] = ["completed", "complete", "cancelled", "canceled", "failed", "expired"];

/// What the session is waiting for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pending {
    /// A command in the background.
    BackgroundTask,
    /// A subagent.
    Subagent,
    /// A moment that it asked to be woken at.
    WakeUp,
}

impl Store {
    /// Work of this session that is still going on.
    ///
    /// What names another session is that one's. What names nobody counts, in the folder that all sessions share too, where the
    /// original leaves it: in doubt the agent may stop. A file that cannot be read says nothing.
    pub fn read_pending(&self, session: &SessionId, now: Timestamp) -> Option<Pending> {
        let is_running = |item: &Fields| item.text("status") == Some("running");
        let started = |item: &Fields, names: &[&str], life_ms| {
            names.iter().find_map(|name| item.time(name)).is_some_and(|time| time.is_within(life_ms, now))
        };

        if self.own_and_shared(session, &["hud-state.json"], &["hud-state.json"]).any(|(file, own)| {
            own && file
                .objects("backgroundTasks")
                .any(|task| is_running(&task) && started(&task, &["startedAt", "startTime"], TASK_LIFE_MS))
        }) {
            return Some(Pending::BackgroundTask);
        }
        if self.own_and_shared(session, &["subagent-tracking-state.json"], &["subagent-tracking.json"]).any(
            |(file, own)| {
                file.objects("agents").any(|agent| {
                    (agent.belongs_to(session) || own && agent.is_nobodys())
                        && is_running(&agent)
                        && started(&agent, &["started_at"], AGENT_LIFE_MS)
                })
            },
        ) {
            return Some(Pending::Subagent);
        }
        let is_ahead = |file: &Fields| {
            if file.text("status").is_some_and(|status| WAKE_UP_OVER.contains(&status)) {
                return false;
            }
            if let Some(due) = WAKE_UP_DUE.iter().find_map(|name| file.time(name)) {
                return due > now;
            }
            let set = file.flag("active") || file.flag("pending");
            set && started(file, &["created_at", "updated_at", "started_at"], WAKE_UP_LIFE_MS)
        };
        self.own_and_shared(session, &WAKE_UP_FILES, &WAKE_UP_FILES)
            .any(|(file, own)| own && is_ahead(&file))
            .then_some(Pending::WakeUp)
    }

    /// Files of these names in the session's folder and in the shared one, each with whether it is the session's own.
    fn own_and_shared<'a>(
        &'a self,
        session: &'a SessionId,
        own: &'a [&str],
        shared: &'a [&str],
    ) -> impl Iterator<Item = (Fields, bool)> + 'a {
        let read = |path: PathBuf| self.read_fields(&path).ok().flatten();
        let own = own.iter().filter_map(move |file| read(session_path(session, file)));
        let shared = shared.iter().filter_map(move |file| read(shared_path(file)));
        own.chain(shared).map(move |fields| {
            let is_own =
                fields.is_nobodys() || fields.belongs_to(session) || fields.text("sessionId") == Some(session.as_str());
            (fields, is_own)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{ago, now, plant, session, store};
    use serde_json::{Value, json};

    const MINUTE: i64 = 60_000;
    const HOUR: i64 = 60 * MINUTE;

    fn task(status: &str, age: i64) -> Value {
        json!({"backgroundTasks": [{"id": "b", "status": status, "startedAt": ago(age)}]})
    }

    fn agent(status: &str, age: i64, session: Option<&str>) -> Value {
        json!({"agents": [7, {"agent_id": "a", "status": status, "started_at": ago(age), "session_id": session}]})
    }

    #[test]
    fn only_the_sessions_own_work_that_is_still_going_on_counts() {
        use Pending::{BackgroundTask, Subagent, WakeUp};
        for (path, value, pending) in [
            ("sessions/s1/hud-state.json", task("running", 100_000), Some(BackgroundTask)),
            ("sessions/s1/hud-state.json", task("running", 25 * HOUR), None),
            ("sessions/s1/hud-state.json", task("completed", MINUTE), None),
            ("sessions/s1/hud-state.json", json!({"backgroundTasks": {"0": 1}}), None),
            ("sessions/s2/hud-state.json", task("running", MINUTE), None),
            ("hud-state.json", task("running", MINUTE), Some(BackgroundTask)),
            (
                "hud-state.json",
                json!({"session_id": "s2", "backgroundTasks": [{"status": "running", "startTime": ago(1)}]}),
                None,
            ),
            (
                "hud-state.json",
                json!({"sessionId": "s1", "backgroundTasks": [{"status": "running", "startTime": ago(1)}]}),
                Some(BackgroundTask),
            ),
            ("sessions/s1/subagent-tracking-state.json", agent("running", MINUTE, None), Some(Subagent)),
            ("sessions/s1/subagent-tracking-state.json", agent("running", 31 * MINUTE, None), None),
            ("sessions/s1/subagent-tracking-state.json", agent("failed", MINUTE, None), None),
            ("subagent-tracking.json", agent("running", MINUTE, Some("s1")), Some(Subagent)),
            ("subagent-tracking.json", agent("running", MINUTE, Some("s2")), None),
            ("subagent-tracking.json", agent("running", MINUTE, None), Some(Subagent)),
            ("subagent-tracking.json", agent("running", 31 * MINUTE, None), None),
            (
                "subagent-tracking.json",
                json!({"session_id": "s2", "agents": [{"status": "running", "started_at": ago(1)}]}),
                None,
            ),
            (
                "sessions/s1/scheduled-wakeup-state.json",
                json!({"status": "pending", "due_at": ago(-5 * MINUTE)}),
                Some(WakeUp),
            ),
            ("sessions/s1/scheduled-wakeup-state.json", json!({"status": "pending", "due_at": ago(5 * MINUTE)}), None),
            ("sessions/s1/wakeup-state.json", json!({"status": "cancelled", "due_at": ago(-5 * MINUTE)}), None),
            ("sessions/s1/schedule-wakeup-state.json", json!({"active": true, "created_at": ago(HOUR)}), Some(WakeUp)),
            ("sessions/s1/schedule-wakeup-state.json", json!({"active": true, "created_at": ago(25 * HOUR)}), None),
            ("sessions/s1/schedule-wakeup-state.json", json!({"created_at": ago(HOUR)}), None),
            ("wakeup-state.json", json!({"session_id": "s1", "wakeup_at": ago(-MINUTE)}), Some(WakeUp)),
            ("wakeup-state.json", json!({"session_id": "s2", "wakeup_at": ago(-MINUTE)}), None),
            ("wakeup-state.json", json!({"wakeup_at": ago(-MINUTE)}), Some(WakeUp)),
        ] {
            let (folder, store) = store();
            plant(&folder, &format!("state/{path}"), value.to_string());
            assert_eq!(store.read_pending(&session("s1"), now()), pending, "{path}: {value}");
        }
        assert_eq!(store().1.read_pending(&session("s1"), now()), None);
    }
}
