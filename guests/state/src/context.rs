//! How full the model's context is, from what agents write down about it: in their transcript, in a payload, and in what they
//! told the status line (`state/sessions/ID/hud-stdin-cache.json`).
//!
//! Claude Code's transcript has a `message.usage` on every answer, Codex's a `token_count` after it; the size of the window is
//! beside it or not known at all. A subagent's answers say nothing about the conversation.

use serde_json::Value;

use crate::{SessionId, Store, session_path};

/// Percent of the window that the last answer of the transcript used, rounded; absent if usage or window is not there.
///
/// `tail` is the transcript's end, one JSON document on each line; lines that are none are passed over.
pub fn percent_of_tail(tail: &str) -> Option<u64> {
    let mut used = None;
    let mut window = None;
    for line in tail.lines().rev() {
        // Most of a transcript is text and tool output, and not worth parsing.
        if !line.contains("\"input_tokens\"") && !line.contains("context_window\"") {
            continue;
        }
        let Ok(entry) = serde_json::from_str::<Value>(line) else { continue };
        if entry.get("isSidechain") == Some(&Value::Bool(true)) {
            continue;
        }
        used = used.or_else(|| {
            let claude = entry.pointer("/message/usage").or_else(|| entry.get("usage")).unwrap_or(&entry);
            claude_tokens(claude).or_else(|| entry.pointer("/payload/info/last_token_usage/input_tokens")?.as_u64())
        });
        window = window.or_else(|| {
            ["/context_window", "/message/context_window", "/payload/info/model_context_window"]
                .iter()
                .find_map(|pointer| entry.pointer(pointer)?.as_u64())
        });
        if let (Some(used), Some(window)) = (used, window) {
            return percent(used, window);
        }
    }
    None
}

/// The same from the `context_window` of a payload: a percentage, or usage and size.
pub fn percent_of_window(context_window: &Value) -> Option<u64> {
    let given =
        context_window.get("used_percentage").and_then(Value::as_f64).filter(|given| (0.0..=100.0).contains(given));
    if let Some(given) = given {
        // Rounds without a cast from float.
        return (0..=100_u8).find(|&percent| given < f64::from(percent) + 0.5).map(u64::from);
    }
    let used = claude_tokens(context_window.get("current_usage")?)?;
    percent(used, context_window.get("context_window_size")?.as_u64()?)
}

impl Store {
    /// The same from what the agent last told the session's status line. Nothing used is nothing known.
    pub fn read_status_line_percent(&self, session: &SessionId) -> Option<u64> {
        let cache = self.read_fields(&session_path(session, "hud-stdin-cache.json")).ok().flatten()?;
        cache.get("context_window").and_then(percent_of_window).filter(|percent| *percent > 0)
    }
}

/// All that went into a request: new, written to the cache, and read from it.
fn claude_tokens(usage: &Value) -> Option<u64> {
    let tokens = |name: &str| usage.get(name).and_then(Value::as_u64);
    let cached = ["cache_creation_input_tokens", "cache_read_input_tokens"].iter().filter_map(|name| tokens(name));
    Some(cached.fold(tokens("input_tokens")?, u64::saturating_add))
}

fn percent(used: u64, window: u64) -> Option<u64> {
    (window > 0).then(|| (used.saturating_mul(100).saturating_add(window / 2)) / window)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{plant, session, store};
    use serde_json::json;

    #[test]
    fn the_status_line_of_the_session_counts() {
        let (folder, store) = store();
        plant(&folder, "state/sessions/s1/hud-stdin-cache.json", "{\"context_window\": {\"used_percentage\": 77}}");
        plant(&folder, "state/sessions/s2/hud-stdin-cache.json", "{\"context_window\": {\"used_percentage\": 0}}");
        plant(&folder, "state/hud-stdin-cache.json", "{\"context_window\": {\"used_percentage\": 99}}");
        let percent = |id| store.read_status_line_percent(&session(id));
        assert_eq!((percent("s1"), percent("s2"), percent("s3")), (Some(77), None, None));
    }

    #[test]
    fn the_last_answer_counts() {
        let answer = |tokens: u64| json!({"type": "assistant", "message": {"usage": {"input_tokens": tokens}}, "context_window": 1000});
        let side = json!({"isSidechain": true, "message": {"usage": {"input_tokens": 999}}, "context_window": 1000});
        let codex = json!({"type": "event_msg", "payload": {"type": "token_count", "info": {
            "total_token_usage": {"input_tokens": 9_000_000}, "last_token_usage": {"input_tokens": 260_000, "cached_input_tokens": 1},
            "model_context_window": 272_000,
        }}});
        for (lines, percent) in [
            (vec![answer(960)], Some(96)),
            (vec![answer(944)], Some(94)),
            (vec![answer(945)], Some(95)),
            (vec![answer(960), answer(200)], Some(20)),
            (vec![answer(960), side], Some(96)),
            (vec![json!({"context_window": 1000}), json!({"usage": {"input_tokens": 500}})], Some(50)),
            (vec![json!({"message": {"usage": {"input_tokens": 960}}})], None),
            (vec![json!({"message": {"usage": {"input_tokens": "960"}}, "context_window": 1000})], None),
            (vec![json!({"message": {"usage": {"input_tokens": 960}}, "context_window": 0})], None),
            (vec![json!({"message": {"usage": {"input_tokens": u64::MAX}}, "context_window": 1})], Some(u64::MAX)),
            (
                vec![json!({"message": {"usage": {
                    "input_tokens": 100, "cache_creation_input_tokens": 200, "cache_read_input_tokens": 500,
                }}, "context_window": 1000})],
                Some(80),
            ),
            (vec![json!({"type": "assistant", "context_window": 1000, "input_tokens": 750})], Some(75)),
            (vec![codex], Some(96)),
            (vec![json!({"message": {"content": "\"input_tokens\": 990, \"context_window\": 1000"}})], None),
            (vec![json!({"message": {"content": "\"input_tokens\": 990"}}), answer(200)], Some(20)),
            (vec![], None),
        ] {
            let tail = lines.iter().map(Value::to_string).collect::<Vec<_>>().join("\n");
            assert_eq!(percent_of_tail(&tail), percent, "{tail}");
        }
    }

    #[test]
    fn lines_that_are_cut_or_broken_are_passed_over() {
        let good = json!({"message": {"usage": {"input_tokens": 960}}, "context_window": 1000});
        let tail = format!(
            "\"input_tokens\": 1}}, \"context_window\": 1000}}\n{good}\n{{\"input_tokens\": 5, \"context_window\""
        );
        assert_eq!(percent_of_tail(&tail), Some(96));
    }

    #[test]
    fn a_payload_gives_a_percentage_or_usage_and_size() {
        for (window, percent) in [
            (json!({"used_percentage": 82.4}), Some(82)),
            (json!({"used_percentage": 94.5}), Some(95)),
            (json!({"used_percentage": 0}), Some(0)),
            (json!({"used_percentage": 100}), Some(100)),
            (json!({"used_percentage": 101}), None),
            (json!({"used_percentage": "99"}), None),
            (
                json!({"context_window_size": 200_000, "current_usage": {"input_tokens": 60_000, "cache_read_input_tokens": 100_000}}),
                Some(80),
            ),
            (json!({"context_window_size": 200_000, "current_usage": null}), None),
            (json!(7), None),
        ] {
            assert_eq!(percent_of_window(&window), percent, "{window}");
        }
    }
}
