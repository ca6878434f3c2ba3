//! A hooks file as it is written: which agent's, in which format, and its groups of handlers by event.
//!
//! Four formats: Claude Code's settings, the hooks file of a plugin, and Codex's `hooks.json` and `config.toml`. Nothing is
//! judged here; what cannot be read at all is an error.

use std::path::Path;

use serde_json::{Map, Number, Value};
use toml::de::{DeTable, DeValue};

use crate::config::guest_settings::jsonc;
use crate::protocol::event::Agent;

/// How a hooks file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// Claude Code's `settings.json`: hooks beside everything else.
    Settings,
    /// A file with nothing but hooks: a plugin's, or Codex's `hooks.json`.
    Hooks,
    /// Codex's `config.toml`.
    Toml,
}

/// A hooks file.
#[derive(Debug)]
pub(super) struct Document {
    pub(super) agent: Agent,
    pub(super) format: Format,
    /// Everything in it.
    pub(super) root: Map<String, Value>,
}

/// Members of `hooks` in `config.toml` that are no events.
const NO_EVENTS: &[&str] = &["state", "managed_dir", "windows_managed_dir"];

/// Deepest nesting of TOML that is looked at: hooks need five.
const MAX_DEPTH: usize = 64;

impl Document {
    /// Reads a file of this name. `agent` is the one that was named; else name, folder and contents tell.
    pub(super) fn parse(path: &Path, text: &str, agent: Option<Agent>) -> Result<Self, String> {
        if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("toml")) {
            let table = DeTable::parse(text).map_err(|error| error.message().to_owned())?;
            return Ok(Self {
                agent: agent.unwrap_or(Agent::Codex),
                format: Format::Toml,
                root: object(table.get_ref(), 0),
            });
        }
        let agent = agent.unwrap_or_else(|| guess(path, text));
        let root: Result<Value, String> = match agent {
            // Its files may have comments.
            Agent::Claude => jsonc_parser::parse_to_serde_value(text, &jsonc()).map_err(|error| error.to_string()),
            _ => serde_json::from_str(text).map_err(|error| error.to_string()),
        };
        let Value::Object(root) = root? else { return Err("it is not an object".to_owned()) };
        let is_plain = root.keys().all(|key| matches!(key.as_str(), "description" | "hooks" | "$schema"));
        let format = if agent == Agent::Claude && !is_plain { Format::Settings } else { Format::Hooks };
        Ok(Self { agent, format, root })
    }

    /// The events with their groups, as they are written.
    pub(super) fn events(&self) -> impl Iterator<Item = (&str, &Value)> {
        let hooks = self.root.get("hooks").and_then(Value::as_object).into_iter().flatten();
        let is_event = |name: &str| self.format != Format::Toml || !NO_EVENTS.contains(&name);
        hooks.map(|(name, groups)| (name.as_str(), groups)).filter(move |(name, _)| is_event(name))
    }
}

/// The agent that a JSON file is for, from the surest sign to the weakest.
fn guess(path: &Path, text: &str) -> Agent {
    let has_part = |part: &str| path.components().any(|component| component.as_os_str() == part);
    let says_codex = ["--agent codex", "--agent=codex", "commandWindows", "command_windows", "${PLUGIN_ROOT}"];
    if has_part(".codex") || !has_part(".claude") && says_codex.iter().any(|sign| text.contains(sign)) {
        Agent::Codex
    } else {
        Agent::Claude
    }
}

/// A TOML table as JSON. What is nested too deeply is null.
fn object(table: &DeTable<'_>, depth: usize) -> Map<String, Value> {
    table.iter().map(|(key, value)| (key.get_ref().to_string(), value_of(value.get_ref(), depth + 1))).collect()
}

fn value_of(value: &DeValue<'_>, depth: usize) -> Value {
    if depth > MAX_DEPTH {
        return Value::Null;
    }
    match value {
        DeValue::String(text) => Value::String(text.to_string()),
        DeValue::Boolean(flag) => Value::Bool(*flag),
        DeValue::Integer(number) => {
            i64::from_str_radix(number.as_str(), number.radix()).map_or(Value::Null, Value::from)
        }
        DeValue::Float(number) => {
            number.as_str().parse().ok().and_then(Number::from_f64).map_or(Value::Null, Value::Number)
        }
        DeValue::Datetime(time) => Value::String(time.to_string()),
        DeValue::Array(items) => items.iter().map(|item| value_of(item.get_ref(), depth + 1)).collect(),
        DeValue::Table(table) => Value::Object(object(table, depth)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_agent_is_told_by_name_folder_and_contents() {
        let cases = [
            ("settings.json", "{}", Agent::Claude),
            ("hooks.json", r#"{"hooks": {}}"#, Agent::Claude),
            ("/home/u/.codex/hooks.json", "{}", Agent::Codex),
            ("config.toml", "", Agent::Codex),
            ("hooks.json", r#"{"description": "x --agent codex"}"#, Agent::Codex),
            ("/r/.claude/settings.json", r#"{"description": "x --agent codex"}"#, Agent::Claude),
        ];
        for (path, text, agent) in cases {
            assert_eq!(Document::parse(Path::new(path), text, None).unwrap().agent, agent, "{path} {text}");
        }
        let named = Document::parse(Path::new("/r/.claude/hooks.json"), "{}", Some(Agent::Codex)).unwrap();
        assert_eq!(named.agent, Agent::Codex);
    }

    #[test]
    fn comments_are_fine_in_settings_and_break_codexs_file() {
        let text = "{ // mine\n \"hooks\": {}, }";
        assert!(Document::parse(Path::new("settings.json"), text, Some(Agent::Claude)).is_ok());
        assert!(Document::parse(Path::new("hooks.json"), text, Some(Agent::Codex)).is_err());
        for text in ["", "[]", "{", "nonsense"] {
            assert!(Document::parse(Path::new("settings.json"), text, None).is_err(), "{text:?}");
            assert!(Document::parse(Path::new("hooks.json"), text, Some(Agent::Codex)).is_err(), "{text:?}");
        }
    }

    #[test]
    fn toml_reads_like_the_json_that_means_the_same() {
        let text = r#"
            model = "m"
            [features]
            hooks = true
            [[hooks.PreToolUse]]
            matcher = "*"
            [[hooks.PreToolUse.hooks]]
            type = "command"
            command = "run"
            timeout = 0x0a
            async = false
            [hooks.state."/a:stop:0:0"]
            trusted_hash = "sha256:00"
        "#;
        let document = Document::parse(Path::new("config.toml"), text, None).unwrap();
        let events: Vec<_> = document.events().collect();
        let groups = json!([{"matcher": "*", "hooks": [
            {"type": "command", "command": "run", "timeout": 10, "async": false},
        ]}]);
        assert_eq!(events, [("PreToolUse", &groups)]);
        assert!(Document::parse(Path::new("config.toml"), "a = ", None).is_err());
    }
}
