//! The last failure of a tool: `state/sessions/ID/last-tool-error-state.json` and `state/last-tool-error.json`.

use std::path::PathBuf;

use crate::{Error, Fields, Locker, SessionId, Store, Timestamp, session_path, shared_path, truncate_units};

const FILE: &str = "last-tool-error-state.json";
const SHARED_FILE: &str = "last-tool-error.json";

/// Longest preview of a tool's input, in UTF-16 units with its dots: the original's 200.
const MAX_PREVIEW_UNITS: usize = 203;

/// Longest error, in UTF-16 units with its dots: the original's 500.
const MAX_ERROR_UNITS: usize = 503;

/// Longest name of a tool, in UTF-16 units.
const MAX_NAME_UNITS: usize = 128;

/// How long a failure is worth a word, in milliseconds: 60 seconds, the original's number.
const LIFE_MS: i64 = 60_000;

/// A tool that failed a moment ago.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolError {
    /// The tool's name, as the agent gave it.
    pub tool_name: String,
    /// What it said.
    pub error: String,
    /// How often the same call has failed in a row.
    pub retry_count: u64,
}

impl Store {
    /// The session's newest failure of the last 60 seconds.
    ///
    /// A file that names another session does not count, nor one that cannot be read. The shared one may name nobody: the
    /// original leaves it so.
    pub fn read_tool_error(&self, session: &SessionId, now: Timestamp) -> Option<ToolError> {
        let read = |path: PathBuf| self.read_fields(&path).ok().flatten();
        let ours = |fields: &Fields| fields.is_nobodys() || fields.belongs_to(session);
        let own = read(session_path(session, FILE)).filter(ours);
        let shared = read(shared_path(SHARED_FILE)).filter(ours);
        let dated = |fields: Fields| fields.time("timestamp").map(|time| (time, fields));
        let (_, newest) = own
            .and_then(dated)
            .into_iter()
            .chain(shared.and_then(dated))
            .filter(|(time, _)| time.is_within(LIFE_MS, now))
            .max_by_key(|(time, _)| *time)?;
        Some(ToolError {
            tool_name: newest.text("tool_name")?.to_owned(),
            error: newest.text("error").unwrap_or_default().to_owned(),
            retry_count: newest.count("retry_count").unwrap_or(1),
        })
    }

    /// Notes that a call of a tool has failed, and says how often that same call has, each time within 60 seconds of the last.
    ///
    /// `input` is the call's input as text; of it and of the error only the beginning is kept. A call with another beginning is
    /// another call.
    ///
    /// # Errors
    ///
    /// What keeps the files from being locked or written.
    pub fn record_tool_error<L: Locker>(
        &self,
        locker: &L,
        session: &SessionId,
        failure: &ToolFailure<'_>,
        now: Timestamp,
    ) -> Result<u64, Error> {
        let tool = truncate_units(failure.tool_name, MAX_NAME_UNITS);
        let preview = truncate_units(failure.input, MAX_PREVIEW_UNITS);
        self.locked(locker, session, |store| {
            let path = session_path(session, FILE);
            let last = store.read_fields(&path).ok().flatten().filter(|last| {
                let is_fresh = last.time("timestamp").is_some_and(|time| time.is_within(LIFE_MS, now));
                is_fresh && last.text("tool_name") == Some(tool.trim())
            });
            let again = |name, counts: bool| {
                let before = last.as_ref().filter(|_| counts).and_then(|last| last.count(name));
                before.unwrap_or(0).saturating_add(1)
            };
            let is_same = last.as_ref().and_then(|last| last.get("tool_input_preview")?.as_str()) == Some(&preview);
            let retries = again("retry_count", is_same);
            let mut fields = Fields::default();
            fields.set("session_id", session.as_str());
            fields.set("tool_name", tool.as_str());
            fields.set("tool_input_preview", preview.as_str());
            fields.set("error", truncate_units(failure.error, MAX_ERROR_UNITS));
            fields.set_time("timestamp", now);
            fields.set("retry_count", retries);
            fields.set("tool_failure_count", again("tool_failure_count", true));
            store.replace(&path, &fields)?;
            store.replace(&shared_path(SHARED_FILE), &fields)?;
            Ok(retries)
        })
    }
}

/// A call of a tool that failed.
#[derive(Debug, Clone, Copy)]
pub struct ToolFailure<'a> {
    /// The tool's name.
    pub tool_name: &'a str,
    /// Its input, as text.
    pub input: &'a str,
    /// What it said.
    pub error: &'a str,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        lock::testing::ThreadLocker,
        testing::{ago, now, plant, session, store},
    };
    use serde_json::{Value, json};

    const OWN: &str = "state/sessions/s1/last-tool-error-state.json";
    const SHARED: &str = "state/last-tool-error.json";

    fn record(session: Option<&str>, error: &str, age: i64) -> Value {
        json!({"session_id": session, "tool_name": "Bash", "error": error, "timestamp": ago(age), "retry_count": 2})
    }

    #[test]
    fn the_sessions_newest_failure_of_the_last_minute_counts() {
        for (files, error) in [
            (vec![(OWN, record(Some("s1"), "own", 1_000))], Some("own")),
            (vec![(SHARED, record(Some("s1"), "shared", 1_000))], Some("shared")),
            (
                vec![(OWN, record(Some("s1"), "own", 9_000)), (SHARED, record(Some("s1"), "shared", 1_000))],
                Some("shared"),
            ),
            (vec![(OWN, record(Some("s1"), "own", 1_000)), (SHARED, record(Some("s1"), "shared", 9_000))], Some("own")),
            (vec![(OWN, record(Some("s1"), "own", 60_000))], Some("own")),
            (vec![(OWN, record(Some("s1"), "own", 60_001))], None),
            (vec![(OWN, record(Some("s1"), "own", -60_000))], None),
            (vec![(OWN, record(Some("s2"), "foreign", 1_000))], None),
            (vec![(SHARED, record(Some("s2"), "foreign", 1_000))], None),
            (vec![(SHARED, record(None, "nobody's", 1_000))], Some("nobody's")),
            (vec![(SHARED, record(Some(""), "unusable", 1_000))], None),
            (vec![(OWN, json!({"tool_name": "Bash", "error": "x", "timestamp": "yesterday"}))], None),
            (vec![(OWN, json!({"tool_name": 5, "error": "x", "timestamp": ago(1)}))], None),
            (vec![], None),
        ] {
            let (folder, store) = store();
            for (path, value) in &files {
                plant(&folder, path, value.to_string());
            }
            let found = store.read_tool_error(&session("s1"), now());
            assert_eq!(found.as_ref().map(|error| error.error.as_str()), error, "{files:?}");
            assert!(found.is_none_or(|error| error.tool_name == "Bash" && error.retry_count == 2));
        }
    }

    #[test]
    fn the_same_call_is_counted_and_another_is_not() {
        let (folder, store) = store();
        let (s1, locks) = (session("s1"), &ThreadLocker::default());
        for (tool_name, input, later, count) in [
            ("Bash", "cargo test", 0, 1),
            ("Bash", "cargo test", 60_000, 2),
            ("Bash", "cargo check", 60_001, 1),
            ("Bash", "cargo check", 120_000, 2),
            ("Bash", "cargo check", 180_001, 1),
            ("Edit", "cargo check", 180_002, 1),
        ] {
            let failure = ToolFailure { tool_name, input, error: "boom" };
            let counted = store.record_tool_error(&locks, &s1, &failure, now().plus_ms(later)).expect("a write");
            assert_eq!(counted, count, "{tool_name} {input} after {later} ms");
        }
        let s2 = session("s2");
        let failure = ToolFailure { tool_name: "Edit", input: &"i".repeat(300), error: &"e".repeat(600) };
        assert_eq!(store.record_tool_error(&locks, &s2, &failure, now()).expect("a write"), 1);
        let text = std::fs::read_to_string(folder.path().join(SHARED)).expect("a file");
        let file: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(
            file,
            json!({
                "session_id": "s2", "tool_name": "Edit", "tool_input_preview": format!("{}...", "i".repeat(200)),
                "error": format!("{}...", "e".repeat(500)), "timestamp": now().to_string(), "retry_count": 1,
                "tool_failure_count": 1,
            })
        );
        assert!(store.read_tool_error(&s1, now().plus_ms(180_003)).is_some_and(|error| error.tool_name == "Edit"));
    }

    #[test]
    fn a_cut_file_is_no_failure() {
        let (folder, store) = store();
        plant(&folder, SHARED, "{\"tool_name\": \"Bash\",");
        assert_eq!(store.read_tool_error(&session("s1"), now()), None);
    }
}
