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
    /// Appends events of the session to its trace, with the time in seconds, to a tenth. For use under the session's lock.
    ///
    /// # Errors
    ///
    /// What keeps the lines from being written.
    pub fn trace(
        &self,
        session: &SessionId,
        events: impl IntoIterator<Item = Map<String, Value>>,
        now: Timestamp,
    ) -> Result<(), Error> {
        let path = shared_path(&format!("agent-replay-{session}.jsonl"));
        if self.plain_file(&path)?.is_some_and(|about| about.len > MAX_TRACE_BYTES) {
            return Ok(());
        }
        #[expect(clippy::cast_precision_loss, reason = "tenths of a second since 1970 need 35 bits")]
        let t = Value::from((now.epoch_ms() / 100) as f64 / 10.0);
        let mut lines = String::new();
        for event in events {
            let line: Map<_, _> = [("t".to_owned(), t.clone())].into_iter().chain(event).collect();
            lines.push_str(&Value::Object(line).to_string());
            lines.push('\n');
        }
        let append = || -> io::Result<()> {
            let mut options = OpenOptions::new();
            options.append(true).create(true);
            #[cfg(unix)]
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
            options.open(self.root.join(&path))?.write_all(lines.as_bytes())
        };
        let appended = match append() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.make_folder(path.parent().unwrap_or(&path))?;
                append()
            }
            appended => appended,
        };
        appended.map_err(|source| Error::Write { path, source })
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
        let event = |event: &str| members(&json!({"agent": "a\n1", "event": event}));
        store.trace(&session("s1"), [event("agent_start")], now()).expect("a write");
        let later = now().plus_ms(1_299);
        store.trace(&session("s1"), [event("agent_stop"), event("agent_start")], later).expect("a write");
        let text = fs::read_to_string(folder.path().join(PATH)).expect("a file");
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        assert_eq!(lines.len(), 3);
        assert_eq!(lines[0], json!({"t": 1_796_048_880.0, "agent": "a\n1", "event": "agent_start"}));
        assert_eq!(lines[1], json!({"t": 1_796_048_881.2, "agent": "a\n1", "event": "agent_stop"}));
    }

    #[test]
    fn a_full_trace_and_one_that_is_no_file_are_left_alone() {
        let (folder, store) = store();
        let full = usize::try_from(MAX_TRACE_BYTES).expect("it fits") + 1;
        plant(&folder, PATH, " ".repeat(full));
        store.trace(&session("s1"), [Map::new()], now()).expect("nothing to do");
        assert_eq!(fs::metadata(folder.path().join(PATH)).expect("a file").len(), MAX_TRACE_BYTES + 1);
        #[cfg(unix)]
        {
            let other = folder.path().join("precious");
            fs::write(&other, "mine").expect("a file");
            std::os::unix::fs::symlink(&other, folder.path().join("state/agent-replay-s2.jsonl")).expect("a link");
            assert!(store.trace(&session("s2"), [Map::new()], now()).is_err());
            assert_eq!(fs::read_to_string(other).expect("a file"), "mine");
        }
    }
}
