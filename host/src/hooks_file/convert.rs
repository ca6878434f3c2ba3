//! The nearest file for the other agent, and what it cannot say.
//!
//! A handler whose condition the other agent does not know is left out: without it, it would run where it was not meant to.

use serde_json::{Map, Value, json};

use super::check::{fits, own_arguments, shortened, title};
use super::document::Document;
use super::rules::{self, COMMAND, Member};
use crate::protocol::contract::{self, Contract, Target};
use crate::protocol::event::{Agent, Kind};
use crate::protocol::matcher::{Matcher, Syntax};

/// A converted file.
#[derive(Debug, PartialEq, serde::Serialize)]
pub struct Converted {
    pub file: Value,
    /// What the original says and the file does not, a sentence each.
    pub lost: Vec<String>,
}

/// What an agent calls the other one's tools, where it has others of the same use.
const TOOL_NAMES: &[(Agent, &str, &[&str])] = &[
    (Agent::Codex, "Task", &["Agent"]),
    (Agent::Codex, "MultiEdit", &["Edit"]),
    (Agent::Claude, "apply_patch", &["Edit", "Write"]),
    (Agent::Claude, "spawn_agent", &["Agent"]),
];

/// Converts a document into a hooks file of another agent.
pub(super) fn convert(document: &Document, to: Agent) -> Converted {
    let mut converter = Converter { from: document.agent, to, lost: Vec::new() };
    let mut hooks = Map::new();
    for (event, groups) in document.events() {
        let (from, into) = (contract::of(document.agent, event), contract::of(to, event));
        if from.kind == Kind::Other || into.kind == Kind::Other {
            converter.lost.push(format!("{event}: {} has no such event", title(to)));
            continue;
        }
        let groups = groups.as_array().map_or(&[][..], Vec::as_slice);
        let groups: Vec<Value> = groups.iter().filter_map(|group| converter.group(from, into, group)).collect();
        if !groups.is_empty() {
            hooks.insert(event.to_owned(), Value::Array(groups));
        }
    }
    let mut file = Map::new();
    if let Some(description) = document.root.get("description").filter(|description| description.is_string()) {
        file.insert("description".to_owned(), description.clone());
    }
    file.insert("hooks".to_owned(), Value::Object(hooks));
    Converted { file: Value::Object(file), lost: converter.lost }
}

struct Converter {
    from: Agent,
    to: Agent,
    lost: Vec<String>,
}

impl Converter {
    fn lose(&mut self, contract: &Contract, what: impl std::fmt::Display) {
        self.lost.push(format!("{}: {what}", contract.event));
    }

    fn group(&mut self, from: &Contract, into: &Contract, group: &Value) -> Option<Value> {
        let matcher = group.get("matcher").and_then(Value::as_str);
        let matcher = match matcher.filter(|_| into.target != Target::None) {
            None => None,
            Some(matcher) => Some(self.matcher(from, into, matcher)?),
        };
        let handlers = group.get("hooks").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let handlers: Vec<Value> =
            handlers.iter().filter_map(|handler| self.handler(into, handler.as_object()?)).collect();
        if handlers.is_empty() {
            return None;
        }
        let mut group = Map::new();
        if let Some(matcher) = matcher {
            group.insert("matcher".to_owned(), Value::String(matcher));
        }
        group.insert("hooks".to_owned(), Value::Array(handlers));
        Some(Value::Object(group))
    }

    /// The matcher that matches the same in the other agent's syntax.
    fn matcher(&mut self, from: &Contract, into: &Contract, pattern: &str) -> Option<String> {
        let Ok(matcher) = Matcher::with_syntax(Syntax::of(from), Some(pattern)) else {
            self.lose(from, format_args!("the hooks for `{}`, an expression that cannot be read", shortened(pattern)));
            return None;
        };
        if matcher.is_everything() {
            return Some(pattern.to_owned());
        }
        let Some(names) = matcher.names() else {
            // The same letters may be a list of names on the other side.
            let reads_the_same =
                Matcher::with_syntax(Syntax::of(into), Some(pattern)).is_ok_and(|matcher| matcher.names().is_none());
            return Some(if reads_the_same { pattern.to_owned() } else { format!("(?:{pattern})") });
        };
        let is_tool = matches!(into.target, Target::Tool(_));
        let mut kept: Vec<&str> = Vec::new();
        for name in names {
            let theirs = if is_tool { self.tools(name) } else { vec![name.as_str()] };
            if theirs.is_empty() {
                let (name, agent) = (shortened(name), title(self.to));
                self.lose(from, format_args!("the tool `{name}`, which {agent} does not have"));
            }
            kept.extend(theirs);
        }
        kept.dedup();
        if kept.is_empty() {
            return None;
        }
        let list = kept.join("|");
        let reads_the_same =
            Matcher::with_syntax(Syntax::of(into), Some(&list)).is_ok_and(|matcher| matcher.names().is_some());
        Some(if reads_the_same { list } else { format!("^({list})$") })
    }

    /// What the other agent calls a tool; nothing if it has none like it.
    fn tools<'a>(&self, name: &'a str) -> Vec<&'a str> {
        let is_known = |agent: Agent| rules::tools(agent).any(|tool| tool == name);
        // A tool that nobody knows is a server's or a new one.
        if is_known(self.to) || !is_known(self.from) {
            return vec![name];
        }
        let renamed = TOOL_NAMES.iter().find(|(to, theirs, _)| *to == self.to && *theirs == name);
        renamed.map(|(.., names)| names.to_vec()).unwrap_or_default()
    }

    fn handler(&mut self, into: &Contract, handler: &Map<String, Value>) -> Option<Value> {
        let kind = handler.get("type").and_then(Value::as_str).unwrap_or_default();
        if !rules::types(self.to, into.kind).contains(&kind) {
            self.lose(into, format_args!("a handler of type `{}`, which does not run there", shortened(kind)));
            return None;
        }
        if let Some(condition) = handler.get("if").filter(|_| self.to == Agent::Codex) {
            self.lose(into, format_args!("a handler that runs only if {}", shortened(&condition.to_string())));
            return None;
        }
        let mut out = Map::new();
        out.insert("type".to_owned(), json!(kind));
        if kind == COMMAND {
            self.command(handler, &mut out);
        }
        let (ours, theirs) = (rules::members(self.from), rules::members(self.to));
        for (name, value) in handler.iter().filter(|(_, value)| !value.is_null()) {
            let is_known = theirs.iter().any(|member| member.name == name && member.types.contains(&kind));
            if name == "timeout" {
                out.insert(name.clone(), self.timeout(into, value));
            } else if is_known && !out.contains_key(name) {
                out.insert(name.clone(), value.clone());
            } else if !is_known && name != "args" && ours.iter().any(|member| member.name == name) {
                self.lose(into, format_args!("`{name}` of a handler"));
            }
        }
        // What one agent leaves out the other may refuse the whole file for.
        let takes = |member: &Member| out.get(member.name).map_or(!member.required, |value| fits(value, member.shape));
        if let Some(Member { name, .. }) = theirs.iter().find(|member| member.types.contains(&kind) && !takes(member)) {
            self.lose(into, format_args!("a handler whose `{name}` is missing or of the wrong kind"));
            return None;
        }
        Some(Value::Object(out))
    }

    /// The command line, in one text for Codex's shell. A call of this program names the other agent.
    fn command(&mut self, handler: &Map<String, Value>, out: &mut Map<String, Value>) {
        let Some(command) = handler.get("command").and_then(Value::as_str) else { return };
        let args = handler.get("args").and_then(Value::as_array);
        let args: Vec<&str> = args.into_iter().flatten().filter_map(Value::as_str).collect();
        let is_ours = own_arguments(command, &args).is_some();
        let renamed = |word: &str| {
            let word = word.to_owned();
            if is_ours && word == self.from.name() { self.to.name().to_owned() } else { word }
        };
        if self.to == Agent::Codex && !args.is_empty() {
            let words: Vec<String> =
                [command].into_iter().chain(args.iter().copied()).map(renamed).map(quoted).collect();
            out.insert("command".to_owned(), json!(words.join(" ")));
            return;
        }
        let flag = |agent: Agent| format!("--agent {}", agent.name());
        let command = if is_ours { command.replace(&flag(self.from), &flag(self.to)) } else { command.to_owned() };
        out.insert("command".to_owned(), json!(command));
        if !args.is_empty() {
            out.insert("args".to_owned(), args.into_iter().map(|arg| json!(renamed(arg))).collect());
        }
    }

    /// The timeout within what the other agent takes.
    fn timeout(&mut self, into: &Contract, written: &Value) -> Value {
        let Some(seconds) = written.as_f64() else { return written.clone() };
        let max = into.max_timeout_ms.map_or(f64::INFINITY, |max| f64::from(max) / 1_000.0);
        let mut fits = seconds.min(max);
        if self.to == Agent::Codex {
            fits = fits.ceil().max(1.0);
        }
        #[expect(clippy::float_cmp, reason = "it was either taken over as it is or not")]
        let is_kept = fits == seconds;
        if !is_kept {
            self.lose(into, format_args!("the timeout of {written} s, which becomes {fits} s"));
        } else if self.to != Agent::Codex || written.is_u64() {
            return written.clone();
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is whole, positive and small")]
        let whole = fits as u64;
        if self.to == Agent::Codex { json!(whole) } else { json!(fits) }
    }
}

/// A word for a POSIX shell. Variables of plugins stay what they are: they are filled in before the shell sees them.
fn quoted(word: String) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./:=@%+,".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) {
        word
    } else if word.contains("${") && !word.contains(['"', '\\', '`']) {
        format!("\"{word}\"")
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::hooks_file::{convert as convert_text, plugin_file};

    fn converted(from: Agent, to: Agent, file: &Value) -> Converted {
        convert_text(Path::new("hooks.json"), &file.to_string(), Some(from), to).expect("a file")
    }

    /// The only handler and the matcher of what becomes of a group, and what is lost.
    fn one(from: Agent, event: &str, group: &Value) -> (Option<Value>, Vec<String>) {
        let to = if from == Agent::Codex { Agent::Claude } else { Agent::Codex };
        let Converted { file, lost } = converted(from, to, &json!({"hooks": {event: [group]}}));
        (file.pointer(&format!("/hooks/{event}/0")).cloned(), lost)
    }

    #[test]
    fn a_matcher_means_the_same_on_the_other_side() {
        let cases = [
            (Agent::Claude, "PreToolUse", "Edit, Write", Some("Edit|Write"), 0),
            (Agent::Claude, "PreToolUse", "Bash|Task", Some("Bash|Agent"), 0),
            (Agent::Claude, "PreToolUse", "Bash,Read", Some("Bash"), 1),
            (Agent::Claude, "PreToolUse", "Read", None, 1),
            (Agent::Claude, "PreToolUse", "mcp__a-b__c", Some("^(mcp__a-b__c)$"), 0),
            (Agent::Claude, "PreToolUse", "mcp__.*", Some("mcp__.*"), 0),
            (Agent::Claude, "PreToolUse", "^(?!Read)", None, 1),
            (Agent::Claude, "SubagentStart", "my agent", Some("^(my agent)$"), 0),
            (Agent::Codex, "SubagentStart", "my-agent", Some("(?:my-agent)"), 0),
            (Agent::Codex, "PreToolUse", "apply_patch", Some("Edit|Write"), 0),
            (Agent::Codex, "PreToolUse", "*", Some("*"), 0),
        ];
        for (from, event, matcher, expected, lost) in cases {
            let group = json!({"matcher": matcher, "hooks": [{"type": "command", "command": "run"}]});
            let (group, losses) = one(from, event, &group);
            let got = group.as_ref().and_then(|group| group["matcher"].as_str());
            assert_eq!((got, losses.len()), (expected, lost), "{matcher}: {losses:?}");
        }
    }

    #[test]
    fn a_handler_is_carried_as_far_as_it_goes() {
        let command = |more: Value| {
            let mut handler = json!({"type": "command", "command": "run"});
            handler.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
            handler
        };
        let cases = [
            (Agent::Claude, "Stop", command(json!({"timeout": 5})), Some(command(json!({"timeout": 5}))), 0),
            (Agent::Claude, "Stop", command(json!({"timeout": 1.5})), Some(command(json!({"timeout": 2}))), 1),
            (Agent::Claude, "SessionEnd", command(json!({"timeout": 30})), Some(command(json!({"timeout": 3}))), 1),
            (Agent::Claude, "Stop", command(json!({"shell": "bash", "once": true})), Some(command(json!({}))), 2),
            (Agent::Claude, "PreToolUse", command(json!({"if": "Bash(git *)"})), None, 1),
            (Agent::Claude, "Stop", json!({"type": "prompt", "prompt": "ok?"}), None, 1),
            (Agent::Claude, "Notification", command(json!({})), None, 1),
            (
                Agent::Claude,
                "Stop",
                command(json!({"command": "/a b/run", "args": ["it's", "${CLAUDE_PLUGIN_ROOT}/x y", "z"]})),
                Some(json!({
                    "type": "command",
                    "command": r#"'/a b/run' 'it'\''s' "${CLAUDE_PLUGIN_ROOT}/x y" z"#,
                })),
                0,
            ),
            (Agent::Claude, "Stop", command(json!({"timeout": 5.0})), Some(command(json!({"timeout": 5}))), 0),
            (Agent::Claude, "Stop", command(json!({"timeout": "5"})), None, 1),
            (Agent::Claude, "Stop", command(json!({"command": ["run"]})), None, 1),
            (Agent::Claude, "Stop", json!({"type": "command"}), None, 1),
            (Agent::Codex, "Stop", command(json!({"timeout": null})), Some(command(json!({}))), 0),
            (Agent::Codex, "Stop", command(json!({"commandWindows": "x"})), Some(command(json!({}))), 1),
            (Agent::Codex, "Interrupt", command(json!({})), None, 1),
            (
                Agent::Codex,
                "Stop",
                command(json!({"command": "/x/omc-host hook --agent codex"})),
                Some(command(json!({"command": "/x/omc-host hook --agent claude"}))),
                0,
            ),
        ];
        for (from, event, handler, expected, lost) in cases {
            let (group, losses) = one(from, event, &json!({"hooks": [handler]}));
            let got = group.map(|group| group["hooks"][0].clone());
            assert_eq!((got, losses.len()), (expected, lost), "{handler}: {losses:?}");
        }
    }

    #[test]
    fn our_own_files_become_each_other() {
        let file = |agent| serde_json::from_str(&plugin_file(agent).expect("a file")).expect("JSON");
        let Converted { file: codex, lost } = converted(Agent::Claude, Agent::Codex, &file(Agent::Claude));
        assert_eq!(codex["hooks"]["Stop"][0]["hooks"][0]["timeout"], 10);
        let command = codex["hooks"]["Stop"][0]["hooks"][0]["command"].as_str().expect("a command");
        assert_eq!(command, "\"${CLAUDE_PLUGIN_ROOT}/bin/omc-host\" hook --agent codex");
        // The two events that Codex does not have, and the one whose timeout is shorter there.
        assert_eq!(lost.len(), 3, "{lost:?}");
        let Converted { file: claude, lost } = converted(Agent::Codex, Agent::Claude, &file(Agent::Codex));
        let losses: Vec<_> = lost.iter().filter(|lost| !lost.contains("commandWindows")).collect();
        assert!(losses.is_empty(), "{losses:?}");
        assert_eq!(claude["hooks"].as_object().map(Map::len), Some(10));
    }
}
