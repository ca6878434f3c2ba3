//! How often a session has used which tool: `state/sessions/ID/tool-stats.json`.

use serde_json::{Map, Value};

use crate::{Error, Locker, SessionId, Store, Timestamp, session_path, truncate_units};

const FILE: &str = "tool-stats.json";

/// Most tools that are counted by name; what comes later is counted together, as [`OTHER`].
const MAX_TOOLS: usize = 256;

/// Longest name of a tool, in UTF-16 units: the agents' own limit is 64, names of MCP tools are longer.
const MAX_NAME_UNITS: usize = 128;

/// Stands for all tools that are not counted by name.
const OTHER: &str = "(other)";

impl Store {
    /// Counts one use of a tool, and says how many there are of it now.
    ///
    /// # Errors
    ///
    /// What keeps the file from being locked or written; the use is not counted then.
    pub fn count_tool<L: Locker>(
        &self,
        locker: &L,
        session: &SessionId,
        tool: &str,
        now: Timestamp,
    ) -> Result<u64, Error> {
        let name = truncate_units(tool, MAX_NAME_UNITS);
        self.locked(locker, session, |store| {
            let path = session_path(session, FILE);
            let own = store.read_fields(&path).ok().flatten().filter(|fields| fields.belongs_to(session));
            let mut fields = own.unwrap_or_default();
            let mut counts = match fields.remove("tool_counts") {
                Some(Value::Object(counts)) => counts,
                _ => Map::new(),
            };
            let name = if counts.contains_key(&name) || counts.len() < MAX_TOOLS { name.as_str() } else { OTHER };
            let count = counts.get(name).and_then(Value::as_u64).unwrap_or(0).saturating_add(1);
            counts.insert(name.to_owned(), count.into());
            let total = fields.count("total_calls").unwrap_or(0).saturating_add(1);
            fields.set("session_id", session.as_str());
            if fields.time("started_at").is_none() {
                fields.set_time("started_at", now);
            }
            fields.set("tool_counts", counts);
            fields.set("last_tool", name);
            fields.set("total_calls", total);
            fields.set_time("updated_at", now);
            store.replace(&path, &fields)?;
            Ok(count)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        lock::testing::ThreadLocker,
        testing::{now, plant, session, store},
    };
    use std::thread;

    const PATH: &str = "state/sessions/s1/tool-stats.json";

    #[test]
    fn no_use_is_lost_when_many_tools_return_at_once() {
        let (_folder, store) = store();
        let (s1, locks) = (session("s1"), ThreadLocker::default());
        thread::scope(|scope| {
            for _ in 0..16 {
                scope.spawn(|| {
                    for _ in 0..10 {
                        store.count_tool(&&locks, &s1, "Read", now()).expect("a write");
                    }
                });
            }
        });
        assert_eq!(store.count_tool(&&locks, &s1, "Read", now()).expect("a write"), 161);
        assert_eq!(store.count_tool(&&locks, &s1, "Bash", now()).expect("a write"), 1);
        assert_eq!(store.count_tool(&&locks, &session("s2"), "Read", now()).expect("a write"), 1);
    }

    #[test]
    fn the_file_is_bounded_however_many_tools_there_are() {
        let (folder, store) = store();
        let (s1, locks) = (session("s1"), &ThreadLocker::default());
        for n in 0..300 {
            store.count_tool(&locks, &s1, &format!("mcp__{n}__{}", "x".repeat(300)), now()).expect("a write");
        }
        let text = std::fs::read_to_string(folder.path().join(PATH)).expect("a file");
        let file: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(file["tool_counts"].as_object().expect("counts").len(), MAX_TOOLS + 1);
        assert_eq!((&file["total_calls"], &file["tool_counts"][OTHER]), (&300.into(), &44.into()));
    }

    #[test]
    fn a_file_that_is_broken_or_anothers_is_started_anew() {
        for content in [
            "{",
            "{\"session_id\": \"s2\", \"tool_counts\": {\"Read\": 9}}",
            "{\"session_id\": \"s1\", \"tool_counts\": [1]}",
        ] {
            let (folder, store) = store();
            plant(&folder, PATH, content);
            assert_eq!(store.count_tool(&&ThreadLocker::default(), &session("s1"), "Read", now()).expect("a write"), 1);
        }
    }
}
