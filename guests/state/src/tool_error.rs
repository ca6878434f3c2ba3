//! The last failure of a tool: `state/sessions/ID/last-tool-error-state.json` and `state/last-tool-error.json`.

use crate::{Fields, SessionId, Store, Timestamp, session_path, shared_path};

/// How long a failure is worth a word, in milliseconds: 60 seconds, the seed's number.
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
    /// The shared file counts only if it names this session. A file that cannot be read is no failure.
    pub fn read_tool_error(&self, session: &SessionId, now: Timestamp) -> Option<ToolError> {
        let own = self.read_fields(&session_path(session, "last-tool-error-state.json")).ok().flatten();
        let own = own.filter(|fields| fields.get("session_id").is_none() || fields.belongs_to(session));
        let shared = self.read_fields(&shared_path("last-tool-error.json")).ok().flatten();
        let shared = shared.filter(|fields| fields.belongs_to(session));
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
}

#[cfg(test)]
mod tests {
    use crate::testing::{ago, now, plant, session, store};
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
            (vec![(SHARED, record(None, "nobody's", 1_000))], None),
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
    fn a_cut_file_is_no_failure() {
        let (folder, store) = store();
        plant(&folder, SHARED, "{\"tool_name\": \"Bash\",");
        assert_eq!(store.read_tool_error(&session("s1"), now()), None);
    }
}
