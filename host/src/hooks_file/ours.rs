//! Hooks of ours: in the files that this project ships, in the ones that `install` edits, and how they are recognised there.
//!
//! The shipped files are generated, with one entry for each event that has a timeout for them in its contract, and compared with
//! `hooks/` by a test. No command line holds anything that changes between versions: Codex asks for trust again when one does.

use serde_json::{Map, Value, json};

use crate::protocol::contract::{self, Contract, Target};
use crate::protocol::event::Agent;

/// Timeout in seconds on events for which no guest of ours asks: above the host's own deadline, and no longer than a person likes
/// to wait.
const USUAL_TIMEOUT_S: u32 = 5;

/// Scripts of the original by which its hooks are known wherever they were copied to. Each is on an event of its own.
const SCRIPTS_OF_THE_ORIGINAL: &[&str] = &[
    "keyword-detector.mjs",
    "session-start.mjs",
    "pre-tool-enforcer.mjs",
    "post-tool-verifier.mjs",
    "persistent-mode.mjs",
    "session-end.mjs",
];

/// The program that a hook starts.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Program<'a> {
    /// The one in the plugin that the hooks file belongs to.
    InPlugin,
    /// The one at this path, which is absolute.
    At(&'a str),
}

/// What stands under an event in a hooks file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    pub(crate) event: &'static str,
    pub(crate) matcher: Option<&'static str>,
    pub(crate) handler: Value,
}

impl Entry {
    /// The entry for an event; nothing for an agent that has no hooks files of this shape.
    pub(crate) fn new(contract: &Contract, program: Program<'_>) -> Option<Self> {
        let bound = contract.max_timeout_ms.map_or(u32::MAX, |max| max / 1_000);
        let seconds = contract.hook_timeout_s.unwrap_or(USUAL_TIMEOUT_S).min(bound);
        let handler = match (contract.agent, program) {
            // No shell: neither quoting nor a chatty profile is in the way.
            (Agent::Claude, program) => {
                let command = match program {
                    Program::InPlugin => "${CLAUDE_PLUGIN_ROOT}/bin/omc-host",
                    Program::At(path) => path,
                };
                json!({"type": "command", "command": command, "args": ["hook", "--agent", "claude"], "timeout": seconds})
            }
            // Always a shell. PowerShell takes a quoted path for a text, so that one stays bare.
            (Agent::Codex, Program::InPlugin) => json!({
                "type": "command",
                "command": "\"${PLUGIN_ROOT}/bin/omc-host\" hook --agent codex",
                "commandWindows": "${PLUGIN_ROOT}\\bin\\omc-host.exe hook --agent codex",
                "timeout": seconds,
            }),
            (Agent::Codex, Program::At(path)) => {
                let program = if cfg!(windows) { path.to_owned() } else { quoted(path) };
                json!({"type": "command", "command": format!("{program} hook --agent codex"), "timeout": seconds})
            }
            _ => return None,
        };
        // Claude Code means the same by no matcher at all. Which events a guest wants is for the host to know: a file that says
        // it too has to be trusted anew with every change.
        let matcher = (contract.agent == Agent::Codex && contract.target != Target::None).then_some("*");
        Some(Self { event: contract.event, matcher, handler })
    }

    /// The group of handlers with nothing but this one.
    pub(crate) fn group(&self) -> Value {
        let mut group = Map::new();
        group.extend(self.matcher.map(|matcher| ("matcher".to_owned(), json!(matcher))));
        group.insert("hooks".to_owned(), json!([self.handler]));
        Value::Object(group)
    }
}

/// The file for a plugin of that agent; nothing for an agent that has no hooks files of this shape.
pub fn plugin_file(agent: Agent) -> Option<String> {
    let rows = contract::rows(agent).iter().filter(|row| row.hook_timeout_s.is_some());
    let entries = rows.map(|row| Entry::new(row, Program::InPlugin)).collect::<Option<Vec<_>>>()?;
    if entries.is_empty() {
        return None;
    }
    let hooks: Map<String, Value> =
        entries.iter().map(|entry| (entry.event.to_owned(), json!([entry.group()]))).collect();
    let file = json!({
        "description": "omc-host: every event goes to one program, which calls the guests that want it",
        "hooks": hooks,
    });
    // Parsed JSON always serialises.
    serde_json::to_string_pretty(&file).ok().map(|text| text + "\n")
}

/// The program of a handler that is one of ours, wherever it lies and whichever version wrote it.
pub(crate) fn program_of(handler: &Value) -> Option<String> {
    if handler.get("type")?.as_str()? != "command" {
        return None;
    }
    let command = handler.get("command")?.as_str()?;
    let (program, verb) = if let Some(args) = handler.get("args").and_then(Value::as_array) {
        (command.to_owned(), args.first()?.as_str()?.to_owned())
    } else {
        let mut words = words(command).into_iter();
        (words.next()?, words.next()?)
    };
    let name = program.rsplit(['/', '\\']).next()?;
    (matches!(name, "omc-host" | "omc-host.exe") && verb == "hook").then_some(program)
}

/// Whether a handler is one of oh-my-claudecode's, from its plugin or copied by its installer.
pub(crate) fn is_of_the_original(handler: &Value) -> bool {
    let command = handler.get("command").and_then(Value::as_str).unwrap_or_default();
    command.contains("oh-my-claudecode") || SCRIPTS_OF_THE_ORIGINAL.iter().any(|script| command.contains(script))
}

/// A path as one word of a Unix shell, quoted only where it has to be.
fn quoted(path: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "/._-+,@%:=".contains(letter);
    if path.chars().all(is_plain) { path.to_owned() } else { format!("'{}'", path.replace('\'', r"'\''")) }
}

/// The first two words of a command line, as a shell takes them. A backslash is only taken for an escape before a character that
/// needs one, since others stand in paths of Windows.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    let mut letters = line.chars().peekable();
    while let Some(letter) = letters.next() {
        match (letter, quote) {
            (' ' | '\t', None) => words.extend(word.take()),
            ('\'' | '"', None) => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (letter, Some(open)) if letter == open => quote = None,
            ('\\', None | Some('"')) if letters.peek().is_some_and(|next| " \t'\"\\$".contains(*next)) => {
                word.get_or_insert_default().extend(letters.next());
            }
            (letter, _) => word.get_or_insert_default().push(letter),
        }
        if words.len() == 2 {
            return words;
        }
    }
    words.extend(word);
    words.truncate(2);
    words
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
    fn our_handlers_are_recognised_whatever_their_path() {
        for path in ["/opt/omc-host", "/a b/it's \"x\"/omc-host", "/한국어/$HOME/`x`/omc-host", "/a\\b/omc-host"] {
            for agent in AGENTS {
                let entry = Entry::new(contract::of(agent, "Stop"), Program::At(path)).expect("an entry");
                assert_eq!(program_of(&entry.handler).as_deref(), Some(path), "{}", entry.handler);
            }
        }
        for (handler, program) in [
            (json!({"type": "command", "command": "omc-host hook"}), Some("omc-host")),
            (
                json!({"type": "command", "command": "C:\\omc\\omc-host.exe hook --agent codex"}),
                Some("C:\\omc\\omc-host.exe"),
            ),
            (json!({"type": "command", "command": "/a/omc-host", "args": ["log"]}), None),
            (json!({"type": "command", "command": "/a/omc-host log"}), None),
            (json!({"type": "command", "command": "/a/omc-hosts hook"}), None),
            (json!({"type": "command", "command": "echo omc-host hook"}), None),
            (json!({"type": "http", "url": "omc-host hook"}), None),
            (json!("omc-host hook"), None),
        ] {
            assert_eq!(program_of(&handler).as_deref(), program, "{handler}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_shell_reads_a_quoted_path_as_one_word() {
        for path in ["/opt/omc-host", "/a b/it's \"x\"", "/$HOME/`x`/\\/;&|*?#~", "/한국어"] {
            let line = format!("printf %s {}", quoted(path));
            let output = std::process::Command::new("sh").args(["-c", &line]).output().expect("a shell");
            assert_eq!(String::from_utf8(output.stdout).expect("UTF-8"), path);
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
