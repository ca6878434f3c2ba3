//! When which advice was last given: `state/sessions/ID/pre-tool-advisory-throttle.json`.
//!
//! An entry is a kind of advice, not a text: a reminder with another number in it is the same reminder.

use serde_json::{Map, Value, json};

use crate::{Error, Fields, Locker, SessionId, Store, Timestamp, session_path};

const FILE: &str = "pre-tool-advisory-throttle.json";

/// Age from which an entry is forgotten, whatever the cool-down, in milliseconds: an hour, the original's number.
const KEPT_MS: i64 = 60 * 60 * 1000;

/// Most entries that are kept; the oldest go first. There are a few dozen kinds, and one for each agent that is started.
const MAX_ENTRIES: usize = 100;

/// Longest name of a kind, in bytes.
const MAX_KIND_BYTES: usize = 64;

impl Store {
    /// Whether the session has had none of these kinds of advice for so long. Asks without a lock, for callers in a hurry.
    pub fn is_advice_due(&self, session: &SessionId, kinds: &[&str], cooldown_ms: i64, now: Timestamp) -> bool {
        let fields = self.read_fields(&session_path(session, FILE)).ok().flatten().unwrap_or_default();
        is_due(&fields, kinds, cooldown_ms, now)
    }

    /// Notes that the first of these kinds of advice is given now, unless one of them was given too lately: then the answer is
    /// no. Of two that ask at once, one is told no.
    ///
    /// # Errors
    ///
    /// What keeps the file from being locked or written.
    pub fn claim_advice<L: Locker>(
        &self,
        locker: &L,
        session: &SessionId,
        kinds: &[&str],
        cooldown_ms: i64,
        now: Timestamp,
    ) -> Result<bool, Error> {
        if !self.is_advice_due(session, kinds, cooldown_ms, now) {
            return Ok(false);
        }
        self.locked(locker, session, |store| {
            let path = session_path(session, FILE);
            let mut fields = store.read_fields(&path).ok().flatten().unwrap_or_default();
            let due = is_due(&fields, kinds, cooldown_ms, now);
            if due {
                note(&mut fields, kinds.first().copied().unwrap_or_default(), cooldown_ms, now);
                store.replace(&path, &fields)?;
            }
            Ok(due)
        })
    }
}

fn given_at(entry: &Value) -> Option<Timestamp> {
    entry.get("last_emitted_at_ms").and_then(Value::as_i64).map(Timestamp::from_epoch_ms)
}

fn is_due(fields: &Fields, kinds: &[&str], cooldown_ms: i64, now: Timestamp) -> bool {
    let entries = fields.get("entries");
    kinds.iter().all(|kind| {
        let last = entries.and_then(|entries| entries.get(*kind)).and_then(given_at);
        last.is_none_or(|last| last.is_future(now) || now.ms_since(last) >= cooldown_ms)
    })
}

fn note(fields: &mut Fields, kind: &str, cooldown_ms: i64, now: Timestamp) {
    let kept_ms = KEPT_MS.max(cooldown_ms.saturating_mul(2));
    let mut entries: Vec<(String, Value)> = match fields.remove("entries") {
        Some(Value::Object(entries)) => entries
            .into_iter()
            .filter(|(name, entry)| {
                let is_kept = given_at(entry).is_some_and(|given| given.is_within(kept_ms, now));
                is_kept && name != kind && name.len() <= MAX_KIND_BYTES
            })
            .collect(),
        _ => Vec::new(),
    };
    entries.push((kind.to_owned(), json!({"last_emitted_at_ms": now.epoch_ms()})));
    // The newest were added last.
    let surplus = entries.len().saturating_sub(MAX_ENTRIES);
    let entries: Map<String, Value> = entries.into_iter().skip(surplus).collect();
    fields.set("version", 1);
    fields.set("entries", entries);
    fields.set_time("updated_at", now);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        lock::testing::{NeverFree, ThreadLocker},
        testing::{now, plant, session, store},
    };
    use std::thread;

    const PATH: &str = "state/sessions/s1/pre-tool-advisory-throttle.json";

    #[test]
    fn advice_is_due_again_after_its_cool_down() {
        let (_folder, store) = store();
        let (s1, locks) = (session("s1"), &ThreadLocker::default());
        let claim = |kinds: &[&str], later| {
            store.claim_advice(&locks, &s1, kinds, 1_000, now().plus_ms(later)).expect("a write")
        };
        assert!(claim(&["bash"], 0));
        assert!(!claim(&["bash"], 999));
        assert!(claim(&["edit"], 999), "another kind has its own time");
        assert!(!claim(&["read", "edit"], 1_500), "it also waits for the other");
        assert!(claim(&["bash"], 1_000));
        assert!(store.claim_advice(&locks, &session("s2"), &["bash"], 1_000, now()).expect("a write"));
    }

    #[test]
    fn of_many_that_ask_at_once_one_is_told_yes() {
        let (_folder, store) = store();
        let (s1, locks) = (session("s1"), ThreadLocker::default());
        let yes: usize = thread::scope(|scope| {
            let askers: Vec<_> = (0..8)
                .map(|_| scope.spawn(|| store.claim_advice(&&locks, &s1, &["bash"], 1_000, now()).expect("a write")))
                .collect();
            askers.into_iter().map(|asker| usize::from(asker.join().expect("no panic"))).sum()
        });
        assert_eq!(yes, 1);
    }

    #[test]
    fn what_cannot_be_read_delays_nothing() {
        let soon = now().plus_ms(60_000).epoch_ms();
        for content in [
            "{",
            "[]",
            "{\"entries\": []}",
            "{\"entries\": {\"bash\": 7}}",
            &format!("{{\"entries\": {{\"bash\": {{\"last_emitted_at_ms\": {soon}}}}}}}"),
        ] {
            let (folder, store) = store();
            plant(&folder, PATH, content);
            assert!(store.is_advice_due(&session("s1"), &["bash"], 1_000, now()), "{content}");
            assert!(
                store
                    .claim_advice(&&ThreadLocker::default(), &session("s1"), &["bash"], 1_000, now())
                    .expect("a write")
            );
        }
        let (_folder, store) = store();
        assert!(store.claim_advice(&NeverFree, &session("s1"), &["bash"], 1_000, now()).is_err());
    }

    #[test]
    fn the_file_stays_small() {
        let (folder, store) = store();
        let s1 = session("s1");
        for n in 0..150 {
            let kind = format!("spawn-{n}");
            assert!(store.claim_advice(&&ThreadLocker::default(), &s1, &[&kind], 1_000, now()).expect("a write"));
        }
        let text = std::fs::read_to_string(folder.path().join(PATH)).expect("a file");
        let file: Value = serde_json::from_str(&text).expect("JSON");
        let entries = file["entries"].as_object().expect("entries");
        assert_eq!(entries.len(), MAX_ENTRIES);
        assert!(entries.contains_key("spawn-149") && !entries.contains_key("spawn-0"));
    }
}
