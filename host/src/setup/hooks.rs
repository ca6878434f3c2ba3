//! Our entries in the text of a hooks file: put in, kept up to date, taken out.
//!
//! One entry for each event. Codex's trust hangs on a handler's text and place, so what is right stays where it is, what is not is
//! changed in its place, and what is new comes last. Entries of others are not touched, whatever is wrong with them.

use jsonc_parser::ParseOptions;
use jsonc_parser::ast::{Array, Object, ObjectProp, Value as Node};
use serde::de::IgnoredAny;
use serde_json::{Map, Value, json};
use thiserror::Error;

use super::splice::{Container, Tree, bytes};
use crate::config::guest_settings::jsonc;
use crate::hooks_file::ours::{self, Entry};
use crate::protocol::event::Agent;

/// Most edits of one file: more than entries that anybody has. Each edit makes one thing right, so this is never reached.
const MAX_EDITS: usize = 10_000;

/// Why a file is left alone.
#[derive(Debug, Error, PartialEq, Eq)]
pub(crate) enum Refusal {
    #[error("it is not JSON as {agent} reads it ({problem}); mend it first")]
    NotJson { agent: &'static str, problem: String },
    #[error("`{name}` is not {wanted}, and {agent} would not read it; mend it first")]
    Shape { agent: &'static str, name: String, wanted: &'static str },
    #[error("`{0}` stands in it twice, and only one of them counts; put them together first")]
    Twice(String),
    #[error("it has more entries of omc-host than can be; remove them by hand")]
    TooMany,
}

/// The text with an entry for each of these events, and no other of ours.
pub(super) fn register(text: &str, agent: Agent, entries: &[Entry]) -> Result<String, Refusal> {
    let mut text = text.to_owned();
    for _ in 0..MAX_EDITS {
        match (Editor { agent, entries }).edit(&text)? {
            Some(edited) => text = edited,
            None => return Ok(text),
        }
    }
    Err(Refusal::TooMany)
}

/// The text without entries of ours.
pub(super) fn unregister(text: &str, agent: Agent) -> Result<String, Refusal> {
    register(text, agent, &[])
}

struct Editor<'a> {
    agent: Agent,
    entries: &'a [Entry],
}

/// An event's groups, and where handlers of ours are in them.
struct Event<'t, 'a> {
    groups: &'t Array<'a>,
    ours: Vec<(usize, usize)>,
}

impl Editor<'_> {
    /// The text with one thing made right; nothing if all is.
    fn edit(&self, text: &str) -> Result<Option<String>, Refusal> {
        let not_json = |problem| Refusal::NotJson { agent: title(self.agent), problem };
        if self.agent == Agent::Codex && !text.trim().is_empty() {
            // The other parser lets some comments through that Codex refuses the file for.
            serde_json::from_str::<IgnoredAny>(text).map_err(|error| not_json(error.to_string()))?;
        }
        let tree = Tree::parse(text, &options(self.agent)).map_err(not_json)?;
        let root = match &tree.root {
            Some(Node::Object(root)) => root,
            Some(_) => return Err(self.shape("the whole file", "an object")),
            None if self.entries.is_empty() => return Ok(None),
            None => return Ok(Some(tree.with_root(&json!({ "hooks": self.hooks() })))),
        };
        let Some(hooks) = member(root, "hooks")? else {
            let hooks = self.hooks();
            let is_wanted = !self.entries.is_empty();
            return Ok(is_wanted.then(|| tree.with_appended(&Container::of_object(root), Some("hooks"), &hooks)));
        };
        let Node::Object(hooks) = &hooks.value else { return Err(self.shape("hooks", "an object")) };
        for (at, property) in hooks.properties.iter().enumerate() {
            let Some(event) = self.event(text, hooks, property)? else { continue };
            let wanted = self.entries.iter().find(|entry| entry.event == property.name.as_str());
            let kept = wanted.and_then(|entry| event.ours.iter().copied().find(|&at| keeps(&event, at, entry)));
            if let Some(&surplus) = event.ours.iter().rev().find(|&&at| Some(at) != kept) {
                return Ok(Some(without(&tree, root, hooks, at, event.groups, surplus)));
            }
            match (wanted, kept) {
                (Some(entry), None) => {
                    return Ok(Some(tree.with_appended(&Container::of_array(event.groups), None, &entry.group())));
                }
                (Some(entry), Some(kept)) => {
                    let handler = handler(event.groups, kept);
                    if value(&text[bytes(handler)]) != Some(entry.handler.clone()) {
                        return Ok(Some(tree.with_replaced(bytes(handler), &entry.handler)));
                    }
                }
                (None, _) => {}
            }
        }
        let missing = self.entries.iter().find(|entry| hooks.properties.iter().all(|p| p.name.as_str() != entry.event));
        Ok(missing
            .map(|entry| tree.with_appended(&Container::of_object(hooks), Some(entry.event), &json!([entry.group()]))))
    }

    /// All entries, for a file that has none.
    fn hooks(&self) -> Value {
        let events = self.entries.iter().map(|entry| (entry.event.to_owned(), json!([entry.group()])));
        Value::Object(events.collect::<Map<_, _>>())
    }

    /// An event, if it concerns us: an entry of ours is in it or wanted.
    fn event<'t, 'a>(
        &self,
        text: &str,
        hooks: &Object<'a>,
        property: &'t ObjectProp<'a>,
    ) -> Result<Option<Event<'t, 'a>>, Refusal> {
        let name = property.name.as_str();
        let is_wanted = self.entries.iter().any(|entry| entry.event == name);
        if is_wanted {
            member(hooks, name)?;
        }
        match &property.value {
            Node::Array(groups) => {
                let is_ours = |handler: &Node<'_>| {
                    value(&text[bytes(handler)]).is_some_and(|handler| ours::program_of(&handler).is_some())
                };
                let ours = places(groups, is_ours);
                Ok((is_wanted || !ours.is_empty()).then_some(Event { groups, ours }))
            }
            _ if is_wanted => Err(self.shape(&format!("hooks.{name}"), "a list")),
            _ => Ok(None),
        }
    }

    fn shape(&self, name: &str, wanted: &'static str) -> Refusal {
        Refusal::Shape { agent: title(self.agent), name: name.to_owned(), wanted }
    }
}

/// How the agent reads its file.
fn options(agent: Agent) -> ParseOptions {
    let with_extras = agent == Agent::Claude;
    ParseOptions { allow_comments: with_extras, allow_trailing_commas: with_extras, ..jsonc() }
}

/// The agent's name for people.
fn title(agent: Agent) -> &'static str {
    if agent == Agent::Codex { "Codex" } else { "Claude Code" }
}

/// The one member of that name.
fn member<'t, 'a>(object: &'t Object<'a>, name: &str) -> Result<Option<&'t ObjectProp<'a>>, Refusal> {
    let mut members = object.properties.iter().filter(|property| property.name.as_str() == name);
    let first = members.next();
    if members.next().is_some() { Err(Refusal::Twice(name.to_owned())) } else { Ok(first) }
}

/// The groups' handlers that are of a kind, each with its group's and its own number.
fn places(groups: &Array<'_>, is_ours: impl Fn(&Node<'_>) -> bool) -> Vec<(usize, usize)> {
    let handlers = groups.elements.iter().enumerate().flat_map(|(group, element)| {
        let handlers = handlers(element).map_or(&[][..], |handlers| &handlers.elements);
        handlers.iter().enumerate().map(move |(at, handler)| ((group, at), handler))
    });
    handlers.filter(|(_, handler)| is_ours(handler)).map(|(place, _)| place).collect()
}

fn handlers<'t, 'a>(group: &'t Node<'a>) -> Option<&'t Array<'a>> {
    member(group.as_object()?, "hooks").ok()??.value.as_array()
}

fn handler<'t, 'a>(groups: &'t Array<'a>, (group, at): (usize, usize)) -> &'t Node<'a> {
    &handlers(&groups.elements[group]).expect("places are those of handlers").elements[at]
}

/// Whether an entry can stay in this group: it is for the same events.
fn keeps(event: &Event<'_, '_>, (group, _): (usize, usize), entry: &Entry) -> bool {
    let group = event.groups.elements[group].as_object();
    let matcher = group.and_then(|group| group.properties.iter().find(|property| property.name.as_str() == "matcher"));
    let is_everything = |text: &str| matches!(text, "" | "*") || entry.matcher == Some(text);
    matcher.is_none_or(|matcher| matcher.value.as_string_lit().is_some_and(|text| is_everything(&text.value)))
}

/// The text without a handler, and without what would be empty then.
fn without(
    tree: &Tree<'_>,
    root: &Object<'_>,
    hooks: &Object<'_>,
    event: usize,
    groups: &Array<'_>,
    (group, at): (usize, usize),
) -> String {
    let handlers = handlers(&groups.elements[group]).expect("places are those of handlers");
    if handlers.elements.len() > 1 {
        return tree.without(&Container::of_array(handlers), at);
    }
    if groups.elements.len() > 1 {
        return tree.without(&Container::of_array(groups), group);
    }
    if hooks.properties.len() > 1 {
        return tree.without(&Container::of_object(hooks), event);
    }
    let hooks = root.properties.iter().position(|property| property.name.as_str() == "hooks");
    tree.without(&Container::of_object(root), hooks.expect("the handler is in it"))
}

/// The value of a piece of the file.
fn value(text: &str) -> Option<Value> {
    jsonc_parser::parse_to_serde_value(text, &jsonc()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hooks_file::check::{self, Context};
    use crate::hooks_file::ours::Program;
    use crate::protocol::contract;

    fn entries(agent: Agent, events: &[&str]) -> Vec<Entry> {
        let entry =
            |event: &&str| Entry::new(contract::of(agent, event), Program::At("/opt/omc-host")).expect("an entry");
        events.iter().map(entry).collect()
    }

    fn registered(text: &str, agent: Agent, events: &[&str]) -> String {
        let once = register(text, agent, &entries(agent, events)).expect("registered");
        assert_eq!(register(&once, agent, &entries(agent, events)).as_deref(), Ok(&*once), "not idempotent");
        once
    }

    #[test]
    fn entries_are_added_behind_those_of_others_and_removed_without_a_trace() {
        let text = "{\n  \"model\": \"opus\",\n  \"hooks\": {\n    \"Stop\": [\n      { \"hooks\": [{ \"type\": \"command\", \"command\": \"say done\" }] }\n    ]\n  }\n}\n";
        for agent in [Agent::Claude, Agent::Codex] {
            let with = registered(text, agent, &["Stop", "PreToolUse"]);
            let value: Value = serde_json::from_str(&with).unwrap();
            assert_eq!(value["hooks"]["Stop"][0]["hooks"][0]["command"], "say done");
            assert!(ours::program_of(&value["hooks"]["Stop"][1]["hooks"][0]).is_some());
            assert!(ours::program_of(&value["hooks"]["PreToolUse"][0]["hooks"][0]).is_some());
            assert_eq!(unregister(&with, agent).as_deref(), Ok(text));
        }
    }

    #[test]
    fn what_is_written_is_what_the_agent_runs() {
        for agent in [Agent::Claude, Agent::Codex] {
            let events: Vec<&str> = contract::rows(agent).iter().map(|row| row.event).collect();
            let text = registered("", agent, &events);
            let path = std::path::Path::new("hooks.json");
            let context = Context { path, source: "hooks.json", agent: Some(agent), trusted: None };
            let report = check::check(&text, &context);
            assert!(report.is_in_order(), "{report:#?}");
        }
    }

    #[test]
    fn our_own_older_entries_are_replaced_in_their_place_and_doubles_removed() {
        let old = |command: &str| json!({"type": "command", "command": command, "timeout": 60});
        let theirs = json!({"type": "command", "command": "theirs"});
        let text = serde_json::to_string_pretty(&json!({"hooks": {
            "Stop": [
                {"hooks": [old("/old/omc-host hook"), theirs]},
                {"hooks": [theirs]},
                {"hooks": [old("'/older one/omc-host' hook --agent claude")]},
            ],
            "PreToolUse": [{"matcher": "Bash", "hooks": [old("/old/omc-host hook")]}],
            "Notification": [{"hooks": [old("/old/omc-host hook")]}],
            "SessionEnd": "nonsense",
        }}));
        let with = registered(&text.unwrap(), Agent::Claude, &["Stop", "PreToolUse"]);
        let [stop, pre] = [&entries(Agent::Claude, &["Stop"])[0], &entries(Agent::Claude, &["PreToolUse"])[0]];
        let expected = json!({"hooks": {
            "Stop": [{"hooks": [stop.handler, theirs]}, {"hooks": [theirs]}],
            "PreToolUse": [pre.group()],
            "SessionEnd": "nonsense",
        }});
        assert_eq!(serde_json::from_str::<Value>(&with).unwrap(), expected);
    }

    #[test]
    fn a_place_that_codex_trusts_does_not_move() {
        let first = registered("{\"hooks\": {}}", Agent::Codex, &["Stop", "PreToolUse"]);
        // Somebody appends an entry of their own, and a guest now wants one event more.
        let mut value: Value = serde_json::from_str(&first).unwrap();
        value["hooks"]["Stop"].as_array_mut().unwrap().push(json!({"hooks": [{"type": "command", "command": "x"}]}));
        let text = value.to_string();
        assert_eq!(registered(&text, Agent::Codex, &["Stop", "PreToolUse"]), text);
        let more: Value =
            serde_json::from_str(&registered(&text, Agent::Codex, &["SessionEnd", "PreToolUse", "Stop"])).unwrap();
        assert_eq!(more["hooks"]["Stop"], value["hooks"]["Stop"]);
    }

    #[test]
    fn a_file_that_cannot_be_edited_safely_is_refused_by_name() {
        for (agent, text, complaint) in [
            (Agent::Claude, "[]", "`the whole file` is not an object"),
            (Agent::Claude, "{", "it is not JSON as Claude Code reads it"),
            (Agent::Claude, "{\"hooks\": []}", "`hooks` is not an object"),
            (Agent::Claude, "{\"hooks\": {\"Stop\": {}}}", "`hooks.Stop` is not a list"),
            (Agent::Claude, "{\"hooks\": {}, \"hooks\": {}}", "`hooks` stands in it twice"),
            (Agent::Claude, "{\"hooks\": {\"Stop\": [], \"Stop\": []}}", "`Stop` stands in it twice"),
            (Agent::Codex, "{} // mine", "it is not JSON as Codex reads it"),
            (Agent::Codex, "{\"hooks\": {},}", "it is not JSON as Codex reads it"),
        ] {
            let refusal = register(text, agent, &entries(agent, &["Stop"])).unwrap_err().to_string();
            assert!(refusal.starts_with(complaint), "{text}: {refusal}");
        }
    }
}
