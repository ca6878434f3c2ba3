//! What happened in a session, line by line: `state/agent-replay-ID.jsonl`, for people and for viewers.

use std::{
    fs::OpenOptions,
    io::{self, Write},
};

use serde_json::{Map, Value};

use crate::{Error, SessionId, Store, Timestamp, shared_path};

/// Length from which a trace is full, in bytes: thousands of agents. What happens later is in the tracker only.
const MAX_TRACE_BYTES: u64 = 2 * 1024 * 1024;

impl Store {
    /// Appends an event of the session to its trace, with the time. For use under the session's lock.
    ///
    /// # Errors
    ///
    /// What keeps the line from being written.
    pub fn trace(&self, session: &SessionId, event: Map<String, Value>, now: Timestamp) -> Result<(), Error> {
        let path = shared_path(&format!("agent-replay-{session}.jsonl"));
        if self.plain_file(&path)?.is_some_and(|about| about.len > MAX_TRACE_BYTES) {
            return Ok(());
        }
        if let Some(folder) = path.parent() {
            self.make_folder(folder)?;
        }
        let mut line = Map::new();
        #[expect(clippy::cast_precision_loss, reason = "milliseconds since 1970 are exact in a double")]
        line.insert("t".to_owned(), (now.epoch_ms() as f64 / 1000.0).into());
        line.extend(event);
        let append = || -> io::Result<()> {
            let mut options = OpenOptions::new();
            options.append(true).create(true);
            #[cfg(unix)]
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
            options.open(self.root.join(&path))?.write_all(format!("{}\n", Value::Object(line)).as_bytes())
        };
        append().map_err(|source| Error::Write { path: path.clone(), source })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{now, plant, session, store};
    use serde_json::json;
    use std::fs;

    const PATH: &str = "state/agent-replay-s1.jsonl";

    fn members(value: &Value) -> Map<String, Value> {
        value.as_object().cloned().expect("an object")
    }

    #[test]
    fn each_event_is_a_line_with_its_time() {
        let (folder, store) = store();
        for event in ["agent_start", "agent_stop"] {
            store.trace(&session("s1"), members(&json!({"agent": "a\n1", "event": event})), now()).expect("a write");
        }
        let text = fs::read_to_string(folder.path().join(PATH)).expect("a file");
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[1], json!({"t": 1_796_048_880.0, "agent": "a\n1", "event": "agent_stop"}));
    }

    #[test]
    fn a_full_trace_and_one_that_is_no_file_are_left_alone() {
        let (folder, store) = store();
        let full = usize::try_from(MAX_TRACE_BYTES).expect("it fits") + 1;
        plant(&folder, PATH, " ".repeat(full));
        store.trace(&session("s1"), Map::new(), now()).expect("nothing to do");
        assert_eq!(fs::metadata(folder.path().join(PATH)).expect("a file").len(), MAX_TRACE_BYTES + 1);
        #[cfg(unix)]
        {
            let other = folder.path().join("precious");
            fs::write(&other, "mine").expect("a file");
            std::os::unix::fs::symlink(&other, folder.path().join("state/agent-replay-s2.jsonl")).expect("a link");
            assert!(store.trace(&session("s2"), Map::new(), now()).is_err());
            assert_eq!(fs::read_to_string(other).expect("a file"), "mine");
        }
    }
}
