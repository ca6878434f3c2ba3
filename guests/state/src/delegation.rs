//! When a session used tools that it should leave to subagents: `state/sessions/ID/force-agent-delegation-events.json`.

use serde_json::{Value, json};

use crate::{Error, Fields, Locker, SessionId, Store, Timestamp, session_path};

const FILE: &str = "force-agent-delegation-events.json";

/// Age from which a use is forgotten, in seconds: an hour, the longest window there is.
const KEPT_SECONDS: i64 = 60 * 60;

/// Most uses that are remembered; more than any threshold in use.
const MAX_EVENTS: usize = 1_000;

/// A use of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolUse {
    /// The tool's name.
    pub tool: String,
    /// How long ago it was, in seconds.
    pub seconds_ago: i64,
}

impl Store {
    /// Lets `judge` see the uses of the last hour, and remembers this one unless it refuses it.
    ///
    /// # Errors
    ///
    /// What keeps the file from being locked or written.
    pub fn judge_tool_use<L: Locker, T>(
        &self,
        locker: &L,
        session: &SessionId,
        tool: &str,
        now: Timestamp,
        judge: impl FnOnce(&[ToolUse]) -> Option<T>,
    ) -> Result<Option<T>, Error> {
        self.locked(locker, session, |store| {
            let path = session_path(session, FILE);
            let fields = store.read_fields(&path).ok().flatten().unwrap_or_default();
            let now_s = now.epoch_ms() / 1000;
            let mut uses: Vec<ToolUse> = fields.objects("events").filter_map(|event| of_event(&event, now_s)).collect();
            let refusal = judge(&uses);
            if refusal.is_none() {
                uses.push(ToolUse { tool: tool.to_owned(), seconds_ago: 0 });
                let surplus = uses.len().saturating_sub(MAX_EVENTS);
                let events =
                    uses[surplus..].iter().map(|used| json!({"tool": used.tool, "t": now_s - used.seconds_ago}));
                let mut fields = Fields::default();
                fields.set("events", events.collect::<Vec<_>>());
                store.replace(&path, &fields)?;
            }
            Ok(refusal)
        })
    }
}

fn of_event(event: &Fields, now_s: i64) -> Option<ToolUse> {
    let seconds_ago = now_s.saturating_sub(event.get("t").and_then(Value::as_i64)?);
    let tool = event.text("tool")?.to_owned();
    (0..=KEPT_SECONDS).contains(&seconds_ago).then_some(ToolUse { tool, seconds_ago })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        lock::testing::ThreadLocker,
        testing::{now, plant, session, store},
    };
    use std::thread;

    #[test]
    fn only_what_is_not_refused_is_remembered() {
        let (_folder, store) = store();
        let (s1, locks) = (session("s1"), &ThreadLocker::default());
        let twice_at_most = |uses: &[ToolUse]| (uses.len() >= 2).then_some(uses.len());
        for (later, refusal) in [(0, None), (1, None), (2, Some(2)), (3, Some(2)), (3_601, None), (3_601, Some(2))] {
            let now = now().plus_ms(later * 1000);
            assert_eq!(
                store.judge_tool_use(&locks, &s1, "Read", now, twice_at_most).expect("a write"),
                refusal,
                "{later}"
            );
        }
        let other =
            store.judge_tool_use(&locks, &session("s2"), "Read", now(), |uses| (!uses.is_empty()).then_some(()));
        assert_eq!(other.expect("a write"), None);
    }

    #[test]
    fn uses_at_once_are_all_remembered() {
        let (_folder, store) = store();
        let (s1, locks) = (session("s1"), ThreadLocker::default());
        thread::scope(|scope| {
            for _ in 0..16 {
                scope.spawn(|| store.judge_tool_use(&&locks, &s1, "Read", now(), |_| None::<()>).expect("a write"));
            }
        });
        let seen = store.judge_tool_use(&&locks, &s1, "Read", now(), |uses| Some(uses.len())).expect("a read");
        assert_eq!(seen, Some(16));
    }

    #[test]
    fn what_cannot_be_read_is_nothing() {
        for content in
            ["{", "{\"events\": 7}", "{\"events\": [7, {\"tool\": \"Read\"}, {\"t\": 1}, {\"tool\": 1, \"t\": 1}]}"]
        {
            let (folder, store) = store();
            plant(&folder, "state/sessions/s1/force-agent-delegation-events.json", content);
            let seen =
                store.judge_tool_use(&&ThreadLocker::default(), &session("s1"), "Read", now(), |uses| Some(uses.len()));
            assert_eq!(seen.expect("a read"), Some(0), "{content}");
        }
    }
}
