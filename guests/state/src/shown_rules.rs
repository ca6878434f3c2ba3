//! Which rule files a session has been shown: `state/sessions/ID/rules-injected.json`.

use serde_json::Value;

use crate::{Error, Locker, SessionId, Store, Timestamp, session_path, text::fingerprint};

const FILE: &str = "rules-injected.json";

/// Most rules that are remembered, each by path and by text; a session has a few dozen.
const MAX_REMEMBERED: usize = 1_000;

impl Store {
    /// The paths of the rules that the session has been shown. Asks without a lock, for callers in a hurry.
    pub fn shown_rules(&self, session: &SessionId) -> Vec<String> {
        let fields = self.read_fields(&session_path(session, FILE)).ok().flatten().unwrap_or_default();
        let paths = fields.get("injectedRealPaths").and_then(Value::as_array).into_iter().flatten();
        paths.filter_map(Value::as_str).map(str::to_owned).collect()
    }

    /// Picks those of the rules (path and text of each) that the session has not been shown, neither by path nor by text, lets
    /// `show` say how many of them it takes, and remembers these. Of two that ask at once, one gets each rule.
    ///
    /// # Errors
    ///
    /// What keeps the file from being locked or written; nothing should be shown then, or it would be shown every time.
    pub fn claim_rules<L: Locker, T>(
        &self,
        locker: &L,
        session: &SessionId,
        rules: &[(String, String)],
        now: Timestamp,
        show: impl FnOnce(&[usize]) -> (usize, T),
    ) -> Result<T, Error> {
        self.locked(locker, session, |store| {
            let path = session_path(session, FILE);
            let mut fields = store.read_fields(&path).ok().flatten().unwrap_or_default();
            let list = |name| -> Vec<String> {
                let items = fields.get(name).and_then(Value::as_array).into_iter().flatten();
                items.filter_map(Value::as_str).map(str::to_owned).collect()
            };
            let (mut hashes, mut paths) = (list("injectedHashes"), list("injectedRealPaths"));
            let mut fresh = Vec::new();
            let mut added = Vec::new();
            for (at, (path, text)) in rules.iter().enumerate() {
                let hash = fingerprint(text);
                let is_known = paths.contains(path) || hashes.contains(&hash) || added.contains(&hash);
                if !is_known {
                    fresh.push(at);
                    added.push(hash);
                }
            }
            let (taken, shown) = show(&fresh);
            if taken > 0 {
                hashes.extend(added.into_iter().take(taken));
                paths.extend(fresh.iter().take(taken).map(|&at| rules[at].0.clone()));
                let newest = |mut list: Vec<String>| list.split_off(list.len().saturating_sub(MAX_REMEMBERED));
                fields.set("sessionId", session.as_str());
                fields.set("injectedHashes", newest(hashes));
                fields.set("injectedRealPaths", newest(paths));
                fields.set("updatedAt", now.epoch_ms());
                store.replace(&path, &fields)?;
            }
            Ok(shown)
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::{
        lock::testing::ThreadLocker,
        testing::{now, plant, session, store},
    };

    fn rules(rules: &[(&str, &str)]) -> Vec<(String, String)> {
        rules.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect()
    }

    #[test]
    fn each_rule_is_shown_once_by_path_and_by_text() {
        let (_folder, store) = store();
        let locks = &ThreadLocker::default();
        let claim = |id: &str, given: &[(&str, &str)], most: usize| {
            let show = |fresh: &[usize]| (fresh.len().min(most), fresh.to_vec());
            store.claim_rules(&locks, &session(id), &rules(given), now(), show).expect("a write")
        };
        assert_eq!(claim("s1", &[("a", "A"), ("b", "B"), ("copy", "A")], 1), [0, 1], "the copy is the same text");
        assert_eq!(claim("s1", &[("a", "A"), ("b", "B")], 9), [1], "only what was taken is remembered");
        assert_eq!(claim("s1", &[("a", "new text"), ("c", "B")], 9), [0; 0], "known by path, known by text");
        assert_eq!(claim("s2", &[("a", "A")], 9), [0]);
        assert_eq!(store.shown_rules(&session("s1")), ["a", "b"]);
        assert_eq!(store.shown_rules(&session("s3")), [""; 0]);
    }

    #[test]
    fn a_broken_file_is_begun_anew() {
        for content in ["{", "{\"injectedHashes\": 7, \"injectedRealPaths\": [7]}"] {
            let (folder, store) = store();
            plant(&folder, "state/sessions/s1/rules-injected.json", content);
            let show = |fresh: &[usize]| (fresh.len(), fresh.len());
            let shown =
                store.claim_rules(&&ThreadLocker::default(), &session("s1"), &rules(&[("a", "A")]), now(), show);
            assert_eq!(shown.expect("a write"), 1, "{content}");
        }
    }
}
