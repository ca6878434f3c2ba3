//! Codex's trust in hooks: a hash of each handler, kept in the user's `config.toml` under the handler's place in its file.
//!
//! A handler whose hash or place is another is skipped, and `codex exec` does not even say so. The hash is computed here to
//! say what would be skipped; it is for the user to trust, so nothing here writes one.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use crate::protocol::contract::{Contract, Target};

/// Codex's default for `additionalContextLimit`, in tokens, which does not count as set.
const DEFAULT_CONTEXT_LIMIT: u64 = 2_500;

/// What Codex knows of a handler.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "state")]
pub(crate) enum Trust {
    /// Trusted, at this place.
    Trusted,
    /// Never seen: Codex asks once, and skips it where it cannot ask.
    New,
    /// Trusted as it was, and changed since.
    Changed,
    /// Trusted at another place of the file: something was put before it, or taken away.
    Moved {
        /// That place.
        from: String,
    },
}

/// Hashes that a user trusts, by place.
#[derive(Clone, Debug, Default)]
pub struct Trusted(BTreeMap<String, String>);

impl Trusted {
    /// Reads `[hooks.state]` of a `config.toml`.
    pub(super) fn of(config: &Map<String, Value>) -> Self {
        let state = config.get("hooks").and_then(|hooks| hooks.get("state")).and_then(Value::as_object);
        let entry =
            |(key, value): (&String, &Value)| Some((key.clone(), value.get("trusted_hash")?.as_str()?.to_owned()));
        Self(state.into_iter().flatten().filter_map(entry).collect())
    }

    /// What is known of the handler at this place with this hash.
    pub(super) fn judge(&self, place: &str, hash: &str) -> Trust {
        let known = self.0.get(place);
        if known.is_some_and(|known| known == hash) {
            return Trust::Trusted;
        }
        let event = |place: &str| place.rsplitn(3, ':').last().map(str::to_owned);
        let elsewhere = self.0.iter().find(|(other, known)| *known == hash && event(other) == event(place));
        match (elsewhere, known) {
            (Some((from, _)), _) => Trust::Moved { from: from.clone() },
            (None, Some(_)) => Trust::Changed,
            (None, None) => Trust::New,
        }
    }
}

/// The key under which Codex keeps a handler's hash.
pub(super) fn place(source: &str, contract: &Contract, group: usize, handler: usize) -> String {
    format!("{source}:{}:{group}:{handler}", label(contract))
}

/// The hash of a command handler as Codex computes it; nothing for another type, whose members are not known to the letter.
pub(super) fn hash(contract: &Contract, matcher: Option<&str>, handler: &Map<String, Value>) -> Option<String> {
    /// Compact JSON with its keys in order is what is hashed.
    #[derive(Serialize)]
    struct Identity<'a> {
        event_name: &'a str,
        hooks: [BTreeMap<&'a str, Value>; 1],
        #[serde(skip_serializing_if = "Option::is_none")]
        matcher: Option<&'a str>,
    }

    if handler.get("type")?.as_str()? != "command" {
        return None;
    }
    let windows = ["commandWindows", "command_windows"].iter().find_map(|name| handler.get(*name));
    let command = windows.filter(|_| cfg!(windows)).or_else(|| handler.get("command"))?.as_str()?;
    let is_async = handler.get("async").and_then(Value::as_bool).unwrap_or_default();
    let mut members = BTreeMap::from([
        ("async", Value::from(is_async)),
        ("command", Value::from(command)),
        ("timeout", Value::from(timeout_s(contract, handler))),
        ("type", Value::from("command")),
    ]);
    if let Some(text) = handler.get("statusMessage").and_then(Value::as_str) {
        members.insert("statusMessage", Value::from(text));
    }
    let limit = handler.get("additionalContextLimit").and_then(Value::as_u64);
    if let Some(limit) = limit.filter(|&limit| limit != DEFAULT_CONTEXT_LIMIT) {
        members.insert("additionalContextLimit", Value::from(limit));
    }
    let matcher = matcher.filter(|_| contract.target != Target::None);
    let identity = Identity { event_name: &label(contract), hooks: [members], matcher };
    let digest = Sha256::digest(serde_json::to_vec(&identity).ok()?);
    Some(format!("sha256:{}", omc_artifact::hex(&digest)))
}

/// The timeout that counts, in seconds.
fn timeout_s(contract: &Contract, handler: &Map<String, Value>) -> u64 {
    let written = handler.get("timeout").and_then(Value::as_u64).map(|seconds| seconds.max(1));
    let seconds = written.unwrap_or(u64::from(contract.timeout_ms / 1_000));
    contract.max_timeout_ms.map_or(seconds, |max| seconds.min(u64::from(max / 1_000)))
}

fn label(contract: &Contract) -> String {
    contract.kind.name().replace('-', "_")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::protocol::contract;
    use crate::protocol::event::Agent;

    fn hash_of(event: &str, matcher: Option<&str>, handler: &Value) -> Option<String> {
        hash(contract::of(Agent::Codex, event), matcher, handler.as_object().expect("an object"))
    }

    #[test]
    fn hashes_are_those_of_codex() {
        let handler = json!({
            "command": "/home/dev/.local/bin/hookhost run --agent codex", "type": "command", "timeout": 10,
        });
        assert_eq!(
            hash_of("PreToolUse", Some("*"), &handler).as_deref(),
            Some("sha256:2d6856dc6d91b701c4e43c7500cb3cca1fb165f1e65c3c7faf1173fcd9563801")
        );
        // The matcher of an event that has none is no part of it.
        for matcher in [None, Some("*")] {
            assert_eq!(
                hash_of("Stop", matcher, &handler).as_deref(),
                Some("sha256:bdcaaa684c1d0cd9999fdacc680377ce22684694fdf49397de4b0d36f4fc1750")
            );
        }
    }

    #[test]
    fn only_what_codex_counts_changes_a_hash() {
        let base = json!({"type": "command", "command": "run"});
        let with = |event: &str, name: &str, value: Value| {
            let mut handler = base.clone();
            handler[name] = value;
            hash_of(event, None, &handler)
        };
        let cases = [
            ("Stop", "timeout", json!(600), true),
            ("Stop", "timeout", json!(10), false),
            ("Stop", "async", json!(false), true),
            ("Stop", "async", json!(true), false),
            ("Stop", "statusMessage", json!("x"), false),
            ("Stop", "additionalContextLimit", json!(2_500), true),
            ("Stop", "additionalContextLimit", json!(9), false),
            ("Stop", "if", json!("Bash(*)"), true),
            ("SessionEnd", "timeout", json!(1), true),
            ("Interrupt", "timeout", json!(3), false),
        ];
        for (event, name, value, same) in cases {
            let changed = with(event, name, value.clone());
            assert_eq!(changed == hash_of(event, None, &base), same, "{event} {name} {value}");
        }
        assert_eq!(with("SessionEnd", "timeout", json!(3)), with("SessionEnd", "timeout", json!(60)));
        assert_eq!(hash_of("Stop", None, &json!({"type": "mcp_tool", "server": "s", "tool": "t"})), None);
    }

    #[test]
    fn a_handler_that_changed_its_place_is_told_from_one_that_changed() {
        let config = json!({"hooks": {"state": {
            "/h.json:stop:0:0": {"trusted_hash": "sha256:aa", "enabled": true},
            "/h.json:stop:1:0": {"trusted_hash": "sha256:bb"},
            "/h.json:pre_tool_use:0:0": {"trusted_hash": "sha256:cc"},
            "/other": 7,
        }}});
        let trusted = Trusted::of(config.as_object().unwrap());
        let moved = |from: &str| Trust::Moved { from: from.to_owned() };
        let cases = [
            ("/h.json:stop:0:0", "sha256:aa", Trust::Trusted),
            ("/h.json:stop:0:0", "sha256:bb", moved("/h.json:stop:1:0")),
            ("/h.json:stop:2:0", "sha256:bb", moved("/h.json:stop:1:0")),
            ("/h.json:stop:0:0", "sha256:dd", Trust::Changed),
            ("/h.json:stop:2:0", "sha256:dd", Trust::New),
            ("/h.json:stop:2:0", "sha256:cc", Trust::New),
            ("/i.json:stop:0:0", "sha256:aa", Trust::New),
        ];
        for (place, hash, expected) in cases {
            assert_eq!(trusted.judge(place, hash), expected, "{place} {hash}");
        }
    }
}
