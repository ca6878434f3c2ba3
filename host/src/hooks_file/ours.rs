//! The hooks files that this project ships: one entry for each event that has a timeout for them in its contract.
//!
//! Generated, and compared with `hooks/` by a test. Their command lines hold nothing that changes between versions: Codex asks
//! for trust again when one does.

use serde_json::{Map, Value, json};

use crate::protocol::contract::{self, Contract, Target};
use crate::protocol::event::Agent;

/// The file for a plugin of that agent; nothing for an agent that has no hooks files of this shape.
pub fn plugin_file(agent: Agent) -> Option<String> {
    let handler: fn(u32) -> Value = match agent {
        // No shell: neither quoting nor a chatty profile is in the way.
        Agent::Claude => |seconds| {
            json!({
                "type": "command",
                "command": "${CLAUDE_PLUGIN_ROOT}/bin/omc-host",
                "args": ["hook", "--agent", "claude"],
                "timeout": seconds,
            })
        },
        // Always a shell. PowerShell takes a quoted path for a text, so that one stays bare.
        Agent::Codex => |seconds| {
            json!({
                "type": "command",
                "command": "\"${PLUGIN_ROOT}/bin/omc-host\" hook --agent codex",
                "commandWindows": "${PLUGIN_ROOT}\\bin\\omc-host.exe hook --agent codex",
                "timeout": seconds,
            })
        },
        _ => return None,
    };
    let entry = |contract: &Contract, seconds| {
        let mut group = Map::new();
        // Claude Code means the same by no matcher at all. Which events a guest wants is for the host to know: a file that
        // says it too has to be trusted anew with every change.
        if agent == Agent::Codex && contract.target != Target::None {
            group.insert("matcher".to_owned(), json!("*"));
        }
        group.insert("hooks".to_owned(), json!([handler(seconds)]));
        json!([group])
    };
    let hooks: Map<String, Value> = contract::rows(agent)
        .iter()
        .filter_map(|row| Some((row.event.to_owned(), entry(row, row.hook_timeout_s?))))
        .collect();
    let file = json!({
        "description": "omc-host: every event goes to one program, which calls the guests that want it",
        "hooks": hooks,
    });
    // Parsed JSON always serialises.
    serde_json::to_string_pretty(&file).ok().map(|text| text + "\n")
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::path::PathBuf;
    use std::time::Duration;

    use super::*;
    use crate::cli::HookArguments;
    use crate::protocol::contract::Install;
    use crate::protocol::dialect;
    use crate::protocol::event::Kind;
    use crate::registry::FIRST_PARTY;

    const AGENTS: [Agent; 2] = [Agent::Claude, Agent::Codex];

    /// Between our deadline and the agent's timeout at least: time to start, to write the answer and to be late on a busy
    /// machine.
    const ROOM: Duration = Duration::from_millis(200);

    fn path(agent: Agent) -> PathBuf {
        [env!("CARGO_MANIFEST_DIR"), "..", "hooks", agent.name(), "hooks.json"].iter().collect()
    }

    fn shipped(agent: Agent) -> Value {
        let text = std::fs::read_to_string(path(agent)).expect("the file is there");
        serde_json::from_str(&text).expect("JSON")
    }

    /// Every handler that an agent's file has, with its event's contract.
    fn handlers(agent: Agent) -> Vec<(&'static Contract, Value)> {
        let file = shipped(agent);
        let events = file["hooks"].as_object().expect("events");
        let of_event = |(event, groups): (&String, &Value)| {
            let handlers: Vec<Value> = groups
                .as_array()
                .expect("groups")
                .iter()
                .flat_map(|group| group["hooks"].as_array().expect("handlers").clone())
                .collect();
            (contract::of(agent, event), handlers)
        };
        events.iter().map(of_event).flat_map(|(row, all)| all.into_iter().map(move |handler| (row, handler))).collect()
    }

    #[test]
    fn the_shipped_files_are_what_the_contracts_make() {
        for agent in AGENTS {
            let expected = plugin_file(agent).expect("a file");
            if std::env::var_os("BLESS").is_some() {
                std::fs::write(path(agent), &expected).expect("written");
            }
            let shipped = std::fs::read_to_string(path(agent)).expect("the file is there");
            assert!(shipped == expected, "hooks/{}/hooks.json is out of date: BLESS=1", agent.name());
        }
    }

    #[test]
    fn every_entry_is_an_event_that_decodes_and_is_installed_unasked() {
        for agent in AGENTS {
            let mut events = Vec::new();
            for (row, _) in handlers(agent) {
                assert_ne!(row.kind, Kind::Other);
                assert_eq!(row.install, Install::WhenNeeded, "{}", row.event);
                assert!(!events.contains(&row.event), "{} has two entries", row.event);
                events.push(row.event);
            }
        }
    }

    #[test]
    fn every_event_that_a_guest_of_ours_wants_has_an_entry() {
        for agent in AGENTS {
            let events: Vec<&str> = handlers(agent).iter().map(|(row, _)| row.kind.name()).collect();
            for guest in FIRST_PARTY {
                for wanted in guest.subscriptions {
                    let row = contract::rows(agent).iter().find(|row| row.kind.name() == wanted.event);
                    let is_missing =
                        row.is_some_and(|row| row.install == Install::WhenNeeded) && !events.contains(&wanted.event);
                    assert!(!is_missing, "`{}` wants {} of {}", guest.name, wanted.event, agent.name());
                }
            }
        }
    }

    #[test]
    fn every_command_line_names_its_agent_and_nothing_else() {
        for agent in AGENTS {
            for (row, handler) in handlers(agent) {
                let words: Vec<OsString> = if let Some(args) = handler["args"].as_array() {
                    args.iter().map(|arg| arg.as_str().expect("a text").into()).collect()
                } else {
                    let command = handler["command"].as_str().expect("a command");
                    let (program, words) = command.rsplit_once('"').expect("a quoted program");
                    assert_eq!(program, "\"${PLUGIN_ROOT}/bin/omc-host");
                    let windows = handler["commandWindows"].as_str().expect("a command for Windows");
                    assert!(windows.ends_with(words) && !windows.contains('"'));
                    words.split_whitespace().map(OsString::from).collect()
                };
                let (command, words) = words.split_first().expect("a command");
                assert_eq!(command, "hook");
                let read = HookArguments::read(words).expect("no help");
                assert_eq!((read.agent.as_deref(), read.complaint), (Some(agent.name()), None), "{}", row.event);
                assert_eq!(dialect::dialect(agent.name()).expect("a dialect").agent(), agent);
            }
        }
    }

    #[test]
    fn every_timeout_lies_above_our_deadline_and_within_what_the_agent_takes() {
        for agent in AGENTS {
            for (row, handler) in handlers(agent) {
                let seconds = handler["timeout"].as_u64().expect("whole seconds");
                let waits = Duration::from_secs(seconds).min(Duration::from_millis(match row.kind {
                    // A plugin cannot raise Claude Code's budget for this one.
                    Kind::SessionEnd if agent == Agent::Claude => row.timeout_ms.into(),
                    _ => u64::MAX,
                }));
                assert!(row.deadline() + ROOM <= waits, "{} of {}", row.event, agent.name());
                assert!(row.max_timeout_ms.is_none_or(|max| seconds * 1_000 <= max.into()), "{}", row.event);
            }
        }
    }
}
