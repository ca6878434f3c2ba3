//! Anybody's hooks file, as `omc-host check` reads it.

use std::path::Path;

use omc_host::hooks_file::check::{self, Context};
use omc_host::hooks_file::{convert, trusted};
use omc_host::protocol::event::Agent;

/// Names that decide about the format.
const NAMES: &[&str] = &[".claude/settings.json", "hooks/hooks.json", ".codex/hooks.json", ".codex/config.toml"];

/// Checks a file and converts it, under every name and as every agent's.
///
/// Promises: each gives a report; a file that was converted is one that its agent loads.
pub fn hooks_file(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let report = |text: &str, path, agent, trusted: Option<&_>| {
        check::check(text, &Context { path, source: "/home/user/.codex/hooks.json", agent, trusted })
    };
    for path in NAMES.iter().map(Path::new) {
        let trusted = trusted(path, &text);
        for agent in [None, Some(Agent::Claude), Some(Agent::Codex)] {
            serde_json::to_string(&report(&text, path, agent, trusted.as_ref())).expect("a report is JSON");
            for to in [Agent::Claude, Agent::Codex] {
                if let Ok(converted) = convert(path, &text, agent, to) {
                    let again = report(&converted.file.to_string(), Path::new("hooks.json"), Some(to), None);
                    let loads = serde_json::to_value(&again).expect("a report is JSON")["loads"] == true;
                    assert!(loads, "a converted file is not loaded");
                }
            }
        }
    }
}
