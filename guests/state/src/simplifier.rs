//! Which changed files a session was asked to simplify, `state/sessions/ID/code-simplifier.json`, so that it is asked once.
//!
//! The list belongs to one commit: what is changed after the next commit is new work.

use serde_json::Value;

use crate::{Error, Fields, SessionId, Store, session_path};

/// Most paths that are kept, the newest.
const MAX_PATHS: usize = 500;

const FILE: &str = "code-simplifier.json";

impl Store {
    /// The paths that the session was asked about since the commit `head`; none if that cannot be read.
    pub fn read_simplified(&self, session: &SessionId, head: &str) -> Vec<String> {
        let fields = self.read_fields(&session_path(session, FILE)).ok().flatten().unwrap_or_default();
        let paths = fields.get("files").filter(|_| fields.text("head").unwrap_or_default() == head);
        let paths = paths.and_then(Value::as_array).into_iter().flatten();
        paths.filter_map(Value::as_str).map(str::to_owned).collect()
    }

    /// Notes that the session was asked about these paths, beside those of before. For use under the session's lock.
    ///
    /// # Errors
    ///
    /// What keeps the file from being written.
    pub fn note_simplified(&self, session: &SessionId, head: &str, paths: &[String]) -> Result<(), Error> {
        let mut all = self.read_simplified(session, head);
        all.retain(|path| !paths.contains(path));
        all.extend_from_slice(paths);
        all.drain(..all.len().saturating_sub(MAX_PATHS));
        let mut fields = Fields::default();
        fields.set("head", head);
        fields.set("files", all);
        self.replace(&session_path(session, FILE), &fields)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{plant, session, store};

    #[test]
    fn paths_are_remembered_until_the_next_commit() {
        let (folder, store) = store();
        let s1 = session("s1");
        assert!(store.read_simplified(&s1, "c1").is_empty());
        store.note_simplified(&s1, "c1", &["a.rs".into(), "b.rs".into()]).expect("a write");
        store.note_simplified(&s1, "c1", &["a.rs".into(), "c.rs".into()]).expect("a write");
        assert_eq!(store.read_simplified(&s1, "c1"), ["b.rs", "a.rs", "c.rs"]);
        assert!(store.read_simplified(&s1, "c2").is_empty() && store.read_simplified(&session("s2"), "c1").is_empty());
        store.note_simplified(&s1, "c2", &["d.rs".into()]).expect("a write");
        assert_eq!(store.read_simplified(&s1, "c2"), ["d.rs"]);
        let many: Vec<_> = (0..MAX_PATHS + 9).map(|n| format!("{n}.rs")).collect();
        store.note_simplified(&s1, "c2", &many).expect("a write");
        assert_eq!(store.read_simplified(&s1, "c2").len(), MAX_PATHS);
        plant(&folder, "state/sessions/s1/code-simplifier.json", "{\"files\": [1, \"x\"]}");
        assert_eq!(store.read_simplified(&s1, ""), ["x"], "before the first commit");
    }
}
