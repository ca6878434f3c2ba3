//! Whether a subscription's matcher is about an event.
//!
//! A matcher is nothing, `""` or `"*"` (every event of its kind), or names with `|` between them, compared as they are.
//! Anything else is refused when the subscription is registered: a pattern that is not understood must never match
//! everything, and a guard that matches nothing must not look like one that works.

use super::contract::Target;
use super::event::{Event, canonical_tool};

/// A parsed matcher.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Matcher(Option<Vec<String>>);

/// Why a matcher was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MatcherError {
    /// It holds something else than names.
    #[error("unsupported character `{character}` in matcher `{pattern}`: names with `|` between them, or `*`")]
    Unsupported {
        /// The matcher.
        pattern: String,
        /// The first character that no name has.
        character: char,
    },
    /// There is nothing between two `|`, or at an end.
    #[error("empty name in matcher `{pattern}`")]
    EmptyName {
        /// The matcher.
        pattern: String,
    },
}

impl Matcher {
    /// Parses a matcher as it is written in a manifest.
    pub fn parse(pattern: Option<&str>) -> Result<Self, MatcherError> {
        let pattern = match pattern.map(str::trim) {
            None | Some("" | "*") => return Ok(Self(None)),
            Some(pattern) => pattern,
        };
        let is_allowed = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '-' | ':' | '/' | ' ' | '|');
        if let Some(character) = pattern.chars().find(|&letter| !is_allowed(letter)) {
            return Err(MatcherError::Unsupported { pattern: pattern.to_owned(), character });
        }
        let names: Vec<String> = pattern.split('|').map(|name| name.trim().to_owned()).collect();
        if names.iter().any(String::is_empty) {
            return Err(MatcherError::EmptyName { pattern: pattern.to_owned() });
        }
        Ok(Self(Some(names)))
    }

    /// Whether the event's target is one of the names. An event that lacks its target matches only what matches everything.
    pub fn matches(&self, event: &Event) -> bool {
        let Some(names) = &self.0 else { return true };
        let is_named = |target: &str| names.iter().any(|name| name == target);
        let is_tool = |tool: &str| names.iter().any(|name| canonical_tool(name) == canonical_tool(tool));
        match event.contract().target {
            // As in the agents: a matcher on an event that has nothing to match is ignored.
            Target::None => true,
            Target::Member(name, _) => event.text(name).is_some_and(is_named),
            Target::Tool(aliases) => event.tool_name().is_some_and(|tool| {
                let further = aliases.iter().filter(|(name, _)| *name == tool).flat_map(|(_, aliases)| *aliases);
                is_tool(tool) || further.copied().any(is_tool)
            }),
            Target::FileName => event.text("file_path").and_then(file_name).is_some_and(is_named),
        }
    }
}

/// The last part of a path, with either kind of separator: the agent may run on another system than its paths suggest.
fn file_name(path: &str) -> Option<&str> {
    path.rsplit(['/', '\\']).next()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::protocol::event::Agent;

    fn event(agent: Agent, payload: serde_json::Value) -> Event {
        let serde_json::Value::Object(payload) = payload else { panic!("an event is an object") };
        Event::new(agent, payload)
    }

    #[test]
    fn a_matcher_is_about_the_events_whose_target_it_names() {
        let tool = |name: &str| json!({"hook_event_name": "PreToolUse", "tool_name": name});
        let start = |source: &str| json!({"hook_event_name": "SessionStart", "source": source});
        let cases = [
            (None, Agent::Claude, tool("Bash"), true),
            (Some(""), Agent::Claude, tool("Bash"), true),
            (Some("*"), Agent::Claude, json!({"hook_event_name": "PreToolUse"}), true),
            (Some("Bash"), Agent::Claude, tool("Bash"), true),
            (Some("Bash"), Agent::Claude, tool("BashOutput"), false),
            (Some("Bash"), Agent::Claude, tool("bash"), false),
            (Some("Edit|Write"), Agent::Claude, tool("Write"), true),
            (Some("Edit | Write"), Agent::Claude, tool("Write"), true),
            (Some("Edit|Write"), Agent::Claude, tool("Edit|Write"), false),
            (Some("mcp__memory"), Agent::Claude, tool("mcp__memory__read"), false),
            (Some("Task"), Agent::Claude, tool("Agent"), true),
            (Some("Agent"), Agent::Claude, tool("Task"), true),
            (Some("Agent"), Agent::Codex, tool("spawn_agent"), true),
            (Some("Task"), Agent::Codex, tool("spawn_agent"), true),
            (Some("Write"), Agent::Codex, tool("apply_patch"), true),
            (Some("Write"), Agent::Claude, tool("apply_patch"), false),
            (Some("Bash"), Agent::Claude, json!({"hook_event_name": "PreToolUse", "tool_name": ["Bash"]}), false),
            (Some("Bash"), Agent::Claude, json!({"hook_event_name": "PreToolUse", "toolName": "Bash"}), true),
            (Some("startup|resume"), Agent::Claude, start("resume"), true),
            (Some("startup|resume"), Agent::Claude, start("clear"), false),
            (Some("Bash"), Agent::Claude, json!({"hook_event_name": "Stop"}), true),
            (Some("notes"), Agent::Claude, json!({"hook_event_name": "FileChanged", "file_path": "/p/notes"}), true),
            (Some("notes"), Agent::Claude, json!({"hook_event_name": "FileChanged", "file_path": "/notes/p"}), false),
            (Some("Task"), Agent::Claude, json!({"hook_event_name": "SubagentStart", "agent_type": "Agent"}), false),
            (
                Some("plugin:reviewer"),
                Agent::Claude,
                json!({"hook_event_name": "SubagentStart", "agent_type": "plugin:reviewer"}),
                true,
            ),
        ];
        for (pattern, agent, payload, expected) in cases {
            let matcher = Matcher::parse(pattern).unwrap();
            let event = event(agent, payload);
            assert_eq!(matcher.matches(&event), expected, "{pattern:?} on {}", event.payload());
        }
    }

    #[test]
    fn a_pattern_that_is_not_understood_is_refused_and_never_matches_everything() {
        for pattern in [".*", "Bash.*", "^Bash$", "(Edit)", "[a]", "a+", "a?", "a\\b", "Edit,Write", "**", "Bash\u{0}"]
        {
            assert!(
                matches!(Matcher::parse(Some(pattern)), Err(MatcherError::Unsupported { .. })),
                "{pattern:?} was taken"
            );
        }
        for pattern in ["|", "Bash|", "|Bash", "Edit||Write", "Edit| |Write"] {
            assert!(
                matches!(Matcher::parse(Some(pattern)), Err(MatcherError::EmptyName { .. })),
                "{pattern:?} was taken"
            );
        }
    }
}
