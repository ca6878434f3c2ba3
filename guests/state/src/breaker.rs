//! Counters that end an endless refusal: `state/sessions/ID/NAME-stop-breaker.json` with `count` and `updated_at`.

use std::path::PathBuf;

use crate::{Error, SessionId, Store, Timestamp, session_path};

/// Which refusals are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Breaker {
    /// Refusals by ralplan.
    Ralplan,
    /// Refusals by the stages of a team.
    Team,
    /// Refusals because of a context that fills, since the last compaction.
    ContextGuard,
    /// Refusals by any mode without a tool in between.
    NoProgress,
}

impl Breaker {
    fn path(self, session: &SessionId) -> PathBuf {
        let name = match self {
            Self::Ralplan => "ralplan",
            Self::Team => "team-pipeline",
            Self::ContextGuard => "context-guard",
            Self::NoProgress => "no-progress",
        };
        session_path(session, &format!("{name}-stop-breaker.json"))
    }

    /// Age from which a count is history, in milliseconds; absent if only an event ends it.
    fn life_ms(self) -> Option<i64> {
        match self {
            // Ralplan's rounds are slow: 45 minutes, the original's number.
            Self::Ralplan => Some(45 * 60 * 1000),
            // Members report within minutes: 5 minutes, the original's number.
            Self::Team => Some(5 * 60 * 1000),
            Self::ContextGuard | Self::NoProgress => None,
        }
    }
}

impl Store {
    /// How many refusals were counted. A count that is too old, or cannot be read, is 0.
    pub fn read_breaker(&self, session: &SessionId, breaker: Breaker, now: Timestamp) -> u64 {
        let Ok(Some(fields)) = self.read_fields(&breaker.path(session)) else { return 0 };
        let current = breaker
            .life_ms()
            .is_none_or(|life| fields.time("updated_at").is_some_and(|time| time.is_within(life, now)));
        if current { fields.count("count").unwrap_or(0) } else { 0 }
    }

    /// Writes a count. For use under the session's lock.
    ///
    /// # Errors
    ///
    /// What keeps the file from being written.
    pub fn write_breaker(
        &self,
        session: &SessionId,
        breaker: Breaker,
        count: u64,
        now: Timestamp,
    ) -> Result<(), Error> {
        let path = breaker.path(session);
        let mut fields = self.read_fields(&path).ok().flatten().unwrap_or_default();
        fields.set("count", count);
        fields.set_time("updated_at", now);
        self.replace(&path, &fields)
    }

    /// Whether there is a file with a count: one question to the file system.
    pub fn has_breaker(&self, session: &SessionId, breaker: Breaker) -> bool {
        self.exists(&breaker.path(session))
    }

    /// Forgets a count.
    ///
    /// # Errors
    ///
    /// What keeps the file from being removed.
    pub fn clear_breaker(&self, session: &SessionId, breaker: Breaker) -> Result<(), Error> {
        self.remove(&breaker.path(session))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{ago, now, plant, session, store};
    use serde_json::json;

    #[test]
    fn a_count_lives_as_long_as_its_breaker() {
        for (breaker, file, members, count) in [
            (Breaker::Ralplan, "ralplan", json!({"count": 30, "updated_at": ago(45 * 60_000)}), 30),
            (Breaker::Ralplan, "ralplan", json!({"count": 30, "updated_at": ago(45 * 60_000 + 1)}), 0),
            (Breaker::Ralplan, "ralplan", json!({"count": 30, "updated_at": ago(-60_000)}), 0),
            (Breaker::Ralplan, "ralplan", json!({"count": 30}), 0),
            (Breaker::Ralplan, "ralplan", json!({"count": "4", "updated_at": ago(1)}), 4),
            (Breaker::Ralplan, "ralplan", json!({"count": [4], "updated_at": ago(1)}), 0),
            (Breaker::Team, "team-pipeline", json!({"count": 20, "updated_at": ago(5 * 60_000)}), 20),
            (Breaker::Team, "team-pipeline", json!({"count": 20, "updated_at": ago(5 * 60_000 + 1)}), 0),
            (Breaker::NoProgress, "no-progress", json!({"count": 8}), 8),
            (Breaker::NoProgress, "no-progress", json!({"count": -8}), 0),
        ] {
            let (folder, store) = store();
            plant(&folder, &format!("state/sessions/s1/{file}-stop-breaker.json"), members.to_string());
            assert_eq!(store.read_breaker(&session("s1"), breaker, now()), count, "{breaker:?} {members}");
        }
    }

    #[test]
    fn a_count_is_written_and_forgotten() {
        let (_folder, store) = store();
        let s1 = session("s1");
        assert!(!store.has_breaker(&s1, Breaker::NoProgress));
        store.write_breaker(&s1, Breaker::NoProgress, 3, now()).expect("a write");
        assert!(store.has_breaker(&s1, Breaker::NoProgress));
        assert_eq!(store.read_breaker(&s1, Breaker::NoProgress, now()), 3);
        assert_eq!(store.read_breaker(&session("s2"), Breaker::NoProgress, now()), 0);
        store.clear_breaker(&s1, Breaker::NoProgress).expect("removed");
        assert!(!store.has_breaker(&s1, Breaker::NoProgress));
    }
}
