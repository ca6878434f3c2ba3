//! Which learned skills each session was told of, `state/skill-sessions.json`, so that it is told once.
//!
//! One file for all sessions: `{"sessions": {ID: {"injectedPaths": [PATH], "timestamp": MS}}}`. A session's entry counts for an
//! hour after it was told something, and is dropped by the next write then.

use serde_json::{Map, Value, json};

use crate::{Error, Locker, SessionId, Store, Timestamp, shared_path};

/// How long a session remembers, in milliseconds: one hour, the original's rule.
const LIFE_MS: i64 = 60 * 60 * 1000;

/// Most sessions and most paths of one session that are kept, the newest: far more than an hour brings.
const MAX_SESSIONS: usize = 100;
const MAX_PATHS: usize = 200;

const FILE: &str = "skill-sessions.json";

fn is_current(entry: &Value, now: Timestamp) -> bool {
    let time = entry.get("timestamp").and_then(Value::as_i64).map(Timestamp::from_epoch_ms);
    time.is_some_and(|time| time.is_within(LIFE_MS, now))
}

fn paths_of(entry: &Value) -> impl Iterator<Item = &str> {
    entry.get("injectedPaths").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

impl Store {
    /// Paths of the skills that the session was told of within the hour; none if that cannot be read.
    pub fn read_told_skills(&self, session: &SessionId, now: Timestamp) -> Vec<String> {
        let fields = self.read_fields(&shared_path(FILE)).ok().flatten().unwrap_or_default();
        let entry = fields.get("sessions").and_then(|sessions| sessions.get(session.as_str()));
        entry.filter(|entry| is_current(entry, now)).into_iter().flat_map(paths_of).map(str::to_owned).collect()
    }

    /// Notes that the session was told of these skills, and drops entries whose time is over.
    ///
    /// # Errors
    ///
    /// [`Error::Lock`] if the file's lock was not to be had; what keeps the file from being written.
    pub fn note_told_skills<L: Locker>(
        &self,
        locker: &L,
        session: &SessionId,
        paths: &[&str],
        now: Timestamp,
    ) -> Result<(), Error> {
        self.locked(locker, session, |store| {
            // What cannot be read is set aside by the write.
            let mut fields = store.read_fields(&shared_path(FILE)).ok().flatten().unwrap_or_default();
            let sessions = fields.remove("sessions").and_then(|sessions| sessions.as_object().cloned());
            let mut sessions: Map<_, _> =
                sessions.unwrap_or_default().into_iter().filter(|(_, entry)| is_current(entry, now)).collect();
            let entry = sessions.shift_remove(session.as_str()).unwrap_or_default();
            let mut told: Vec<&str> =
                paths_of(&entry).filter(|path| !paths.contains(path)).chain(paths.iter().copied()).collect();
            told.drain(..told.len().saturating_sub(MAX_PATHS));
            let surplus = (sessions.len() + 1).saturating_sub(MAX_SESSIONS);
            let mut sessions: Map<_, _> = sessions.into_iter().skip(surplus).collect();
            sessions.insert(session.to_string(), json!({"injectedPaths": told, "timestamp": now.epoch_ms()}));
            fields.set("sessions", Value::Object(sessions));
            store.replace(&shared_path(FILE), &fields)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        lock::testing::{NeverFree, ThreadLocker},
        testing::{now, plant, session, store},
    };
    use std::{fs, thread};

    const PATH: &str = "state/skill-sessions.json";

    #[test]
    fn a_session_remembers_for_an_hour_what_it_was_told() {
        let (folder, store) = store();
        let ms = |age: i64| now().epoch_ms() - age;
        for (age, known) in [(0, true), (LIFE_MS, true), (LIFE_MS + 1, false), (-LIFE_MS, false)] {
            plant(
                &folder,
                PATH,
                json!({"sessions": {"s1": {"injectedPaths": ["/a", 7], "timestamp": ms(age)}}}).to_string(),
            );
            assert_eq!(store.read_told_skills(&session("s1"), now()), if known { vec!["/a"] } else { vec![] }, "{age}");
            assert!(store.read_told_skills(&session("s2"), now()).is_empty());
        }
        for broken in [
            "{",
            "[]",
            "{\"sessions\": []}",
            "{\"sessions\": {\"s1\": {\"injectedPaths\": \"/a\", \"timestamp\": \"now\"}}}",
        ] {
            plant(&folder, PATH, broken);
            assert!(store.read_told_skills(&session("s1"), now()).is_empty(), "{broken}");
        }
    }

    #[test]
    fn what_is_noted_is_added_and_what_is_over_is_dropped() {
        let (folder, store) = store();
        let locker = &ThreadLocker::default();
        let (s1, s2) = (session("s1"), session("s2"));
        let old = now().epoch_ms() - 2 * LIFE_MS;
        plant(
            &folder,
            PATH,
            json!({"mine": 1, "sessions": {"s0": {"injectedPaths": ["/old"], "timestamp": old}}}).to_string(),
        );
        store.note_told_skills(&locker, &s1, &["/a"], now()).expect("a write");
        store.note_told_skills(&locker, &s2, &["/x"], now()).expect("a write");
        store.note_told_skills(&locker, &s1, &["/b", "/a"], now()).expect("a write");
        assert_eq!(store.read_told_skills(&s1, now()), ["/b", "/a"]);
        assert_eq!(store.read_told_skills(&s2, now()), ["/x"]);
        let text = fs::read_to_string(folder.path().join(PATH)).expect("a file");
        assert!(text.contains("\"mine\": 1") && !text.contains("/old"), "{text}");
        assert!(matches!(store.note_told_skills(&NeverFree, &s1, &["/c"], now()), Err(Error::Lock { .. })));
    }

    #[test]
    fn the_file_stays_small_and_no_note_is_lost() {
        let (_folder, store) = store();
        let locker = &ThreadLocker::default();
        thread::scope(|scope| {
            for writer in 0..4 {
                let store = &store;
                scope.spawn(move || {
                    for n in 0..10 {
                        let path = format!("/{writer}-{n}");
                        store.note_told_skills(&locker, &session("s1"), &[&path], now()).expect("a write");
                    }
                });
            }
        });
        assert_eq!(store.read_told_skills(&session("s1"), now()).len(), 40);
        for n in 0..MAX_SESSIONS + 20 {
            store.note_told_skills(&locker, &session(&format!("t{n}")), &["/a"], now()).expect("a write");
        }
        assert!(store.read_told_skills(&session("s1"), now()).is_empty(), "the oldest went first");
        let many: Vec<_> = (0..MAX_PATHS + 5).map(|n| format!("/{n}")).collect();
        store
            .note_told_skills(&locker, &session("s1"), &many.iter().map(String::as_str).collect::<Vec<_>>(), now())
            .expect("a write");
        assert_eq!(store.read_told_skills(&session("s1"), now()).len(), MAX_PATHS);
    }
}
