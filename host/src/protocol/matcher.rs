//! Whether a matcher is about an event: that of a guest's subscription, or that of a group in an agent's hooks file.
//!
//! A matcher is nothing, `""` or `"*"` (every event of its kind), a list of names, compared as they are, or a regular
//! expression that has to match somewhere. Which patterns are lists differs, see [`Syntax`]. A pattern that cannot be read is
//! an error and never matches everything: a guard that matches nothing must not look like one that works.
//!
//! Expressions are built only for patterns that need one. The engine has no look-around and no back references, so that its
//! time is bounded by the product of pattern and text; its classes (`\d`, `\w`, `\s`) are ASCII, as tools' names are.

use regex_lite::{Regex, RegexBuilder};

use super::contract::{Contract, Target};
use super::event::{Agent, Event, Kind, canonical_tool};

/// Longest pattern, in bytes: a list of some hundred tools.
const MAX_PATTERN_BYTES: usize = 4 * 1024;
/// Largest compiled expression, in bytes. Nested counted repetitions multiply, and this is built on an event.
const MAX_REGEX_BYTES: usize = 64 * 1024;
/// Deepest nesting of an expression: the parser recurses.
const MAX_REGEX_DEPTH: u32 = 32;

/// A parsed matcher.
#[derive(Clone, Debug)]
pub struct Matcher(Pattern);

#[derive(Clone, Debug)]
enum Pattern {
    Everything,
    Names(Vec<String>),
    Regex(Regex),
}

/// Which patterns are lists of names, and how those are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Syntax {
    /// Subscriptions of guests: letters and digits of any script, `_`, `-`, `:` (agents of plugins have it) and `/`, with `|`
    /// or `,` between names.
    Subscription,
    /// Claude Code: ASCII letters and digits, `_`, `-` and blanks, with `|` or `,` between names.
    Claude,
    /// Claude Code where commas and hyphens are part of what is matched: ASCII letters and digits and `_`, with `|` between.
    ClaudeNarrow,
    /// Codex: the same characters, and blanks count.
    Codex,
}

impl Syntax {
    /// The syntax of an event's matchers in its agent's hooks file.
    pub fn of(contract: &Contract) -> Self {
        match (contract.agent, contract.kind) {
            (Agent::Codex, _) => Self::Codex,
            (_, Kind::FileChanged | Kind::StopFailure) => Self::ClaudeNarrow,
            _ => Self::Claude,
        }
    }

    /// What may stand between names.
    fn separators(self) -> &'static [char] {
        match self {
            Self::Subscription | Self::Claude => &['|', ','],
            Self::ClaudeNarrow | Self::Codex => &['|'],
        }
    }

    fn is_in_name(self, letter: char) -> bool {
        match self {
            Self::Subscription => letter.is_alphanumeric() || matches!(letter, '_' | '-' | ':' | '/' | ' '),
            Self::Claude => letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | ' '),
            Self::ClaudeNarrow | Self::Codex => letter.is_ascii_alphanumeric() || letter == '_',
        }
    }
}

/// Why a matcher cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MatcherError {
    /// It is longer than anybody's list of names.
    #[error("the matcher has {bytes} bytes, more than {MAX_PATTERN_BYTES}")]
    TooLong {
        /// Its length.
        bytes: usize,
    },
    /// It holds a character that nothing to be matched has.
    #[error("the matcher `{}` holds a control character", pattern.escape_debug())]
    ControlCharacter {
        /// The matcher.
        pattern: String,
    },
    /// There is nothing between two names, or at an end.
    #[error("empty name in matcher `{pattern}`")]
    EmptyName {
        /// The matcher.
        pattern: String,
    },
    /// It is no list of names and no regular expression.
    #[error("the matcher `{pattern}` is no regular expression that this host takes: {problem}")]
    Regex {
        /// The matcher.
        pattern: String,
        /// What is wrong with it.
        problem: String,
    },
}

impl Matcher {
    /// Parses a matcher of a guest's subscription. An empty name in a list is a slip and refused.
    pub fn parse(pattern: Option<&str>) -> Result<Self, MatcherError> {
        let matcher = Self::with_syntax(Syntax::Subscription, pattern.map(str::trim))?;
        match (&matcher.0, pattern) {
            (Pattern::Names(names), Some(pattern)) if names.iter().any(String::is_empty) => {
                Err(MatcherError::EmptyName { pattern: pattern.to_owned() })
            }
            _ => Ok(matcher),
        }
    }

    /// Parses a matcher as an agent reads it in its hooks file.
    pub fn with_syntax(syntax: Syntax, pattern: Option<&str>) -> Result<Self, MatcherError> {
        let pattern = match pattern {
            None | Some("" | "*") => return Ok(Self(Pattern::Everything)),
            Some(pattern) => pattern,
        };
        if pattern.len() > MAX_PATTERN_BYTES {
            return Err(MatcherError::TooLong { bytes: pattern.len() });
        }
        if pattern.contains(char::is_control) {
            return Err(MatcherError::ControlCharacter { pattern: pattern.to_owned() });
        }
        let separators = syntax.separators();
        if pattern.chars().all(|letter| separators.contains(&letter) || syntax.is_in_name(letter)) {
            let names = pattern.split(separators).map(|name| if syntax == Syntax::Codex { name } else { name.trim() });
            return Ok(Self(Pattern::Names(names.map(str::to_owned).collect())));
        }
        let regex = RegexBuilder::new(pattern).size_limit(MAX_REGEX_BYTES).nest_limit(MAX_REGEX_DEPTH).build();
        regex
            .map(|regex| Self(Pattern::Regex(regex)))
            .map_err(|error| MatcherError::Regex { pattern: pattern.to_owned(), problem: error.to_string() })
    }

    /// Whether it matches whatever comes.
    pub fn is_everything(&self) -> bool {
        matches!(self.0, Pattern::Everything)
    }

    /// The names, if it is a list of names.
    pub fn names(&self) -> Option<&[String]> {
        match &self.0 {
            Pattern::Names(names) => Some(names),
            Pattern::Everything | Pattern::Regex(_) => None,
        }
    }

    /// Whether the event's target matches. An event that lacks its target matches only what matches everything.
    pub fn matches(&self, event: &Event) -> bool {
        // As in the agents: a matcher on an event that has nothing to match is ignored.
        let is_ignored = event.contract().target == Target::None;
        is_ignored
            || self.is_everything()
            || event.target().is_some_and(|target| self.matches_target(event.contract(), target))
    }

    /// Whether it matches this value of what the event's matchers are compared with. Tools match by each of their names.
    pub fn matches_target(&self, contract: &Contract, target: &str) -> bool {
        let Target::Tool(aliases) = contract.target else { return self.matches_name(target) };
        let further = aliases.iter().filter(|(name, _)| *name == target).flat_map(|(_, aliases)| *aliases);
        let mut names = further.copied().chain([target]);
        names.any(|name| self.matches_name(name) || other_name(name).is_some_and(|other| self.matches_name(other)))
    }

    fn matches_name(&self, name: &str) -> bool {
        match &self.0 {
            Pattern::Everything => true,
            Pattern::Names(names) => names.iter().any(|one| one == name),
            Pattern::Regex(regex) => regex.is_match(name),
        }
    }
}

/// The other name of a tool that has an older and a newer one.
fn other_name(tool: &str) -> Option<&'static str> {
    match canonical_tool(tool) {
        "Task" if tool == "Task" => Some("Agent"),
        "Task" => Some("Task"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::protocol::contract;

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
            (Some("Edit,Write"), Agent::Claude, tool("Write"), true),
            (Some("Bash.*"), Agent::Claude, tool("BashOutput"), true),
            (Some("^Bash$"), Agent::Claude, tool("BashOutput"), false),
            (Some(".*"), Agent::Claude, tool("Bash"), true),
            (Some(".*"), Agent::Claude, json!({"hook_event_name": "PreToolUse"}), false),
            (Some("mcp__memory__.*"), Agent::Claude, tool("mcp__memory__read"), true),
            (Some("mcp__.*__(write|delete)"), Agent::Codex, tool("mcp__files__write"), true),
            (Some("^(Edit|Write)$"), Agent::Codex, tool("apply_patch"), true),
            (Some("^Task$"), Agent::Claude, tool("Agent"), true),
            (Some("^Agent$"), Agent::Claude, tool("Task"), true),
            (Some("^Agent$"), Agent::Codex, tool("spawn_agent"), true),
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
            (Some("^(start|res)"), Agent::Claude, start("resume"), true),
            (Some("Bash"), Agent::Claude, json!({"hook_event_name": "Stop"}), true),
            (Some("^Bash$"), Agent::Claude, json!({"hook_event_name": "Stop"}), true),
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
    fn a_pattern_that_cannot_be_read_is_refused_and_never_matches_everything() {
        for pattern in ["(Edit", "[a", "**", "+", "^(?!Bash)", "(?<=a)b", r"(a)\1", r"\q", "a{2", "a{99999}{99999}"] {
            assert!(matches!(Matcher::parse(Some(pattern)), Err(MatcherError::Regex { .. })), "{pattern:?} was taken");
        }
        for pattern in ["|", "Bash|", "|Bash", "Edit||Write", "Edit| |Write", "Edit,"] {
            assert!(
                matches!(Matcher::parse(Some(pattern)), Err(MatcherError::EmptyName { .. })),
                "{pattern:?} was taken"
            );
        }
        let long = "a|".repeat(MAX_PATTERN_BYTES);
        assert!(matches!(Matcher::parse(Some(&long)), Err(MatcherError::TooLong { .. })));
        for pattern in ["Bash\0", "a.*\u{1b}b", "a\nb"] {
            assert!(matches!(Matcher::parse(Some(pattern)), Err(MatcherError::ControlCharacter { .. })));
        }
    }

    #[test]
    fn no_pattern_takes_time_or_memory_beyond_its_bounds() {
        let deep = format!("{}a{}", "(".repeat(2_000), ")".repeat(2_000));
        for pattern in [&*deep, "(((a{50}){50}){50}){50}", "(.{1000}){1000}"] {
            assert!(Matcher::parse(Some(pattern)).is_err(), "{pattern:.20} was taken");
        }
        // Backtracking engines need ages for this one.
        let matcher = Matcher::parse(Some("^(a+)+$")).unwrap();
        let began = std::time::Instant::now();
        let name = "a".repeat(10_000) + "!";
        assert!(!matcher.matches(&event(Agent::Claude, json!({"hook_event_name": "PreToolUse", "tool_name": name}))));
        assert!(began.elapsed().as_secs() < 2, "{:?}", began.elapsed());
    }

    #[test]
    fn each_agent_reads_its_own_lists() {
        let tool = |agent| contract::of(agent, "PreToolUse");
        let claude = tool(Agent::Claude);
        let codex = tool(Agent::Codex);
        let cases = [
            (claude, "Edit,Write", "Write", true),
            (codex, "Edit,Write", "Write", false),
            (claude, "Edit | Write", "Write", true),
            (codex, "Edit | Write", "Write", false),
            (claude, "my-agent", "my-agent-2", false),
            (codex, "my-agent", "my-agent-2", true),
            (claude, "mcp__memory", "mcp__memory__read", false),
            (claude, "mcp__memory__.*", "mcp__memory__read", true),
            (codex, "Edit|Write", "apply_patch", true),
            (claude, "bash", "Bash", false),
            (contract::of(Agent::Claude, "SubagentStart"), "my-plugin:reviewer", "my-plugin:reviewer-2", true),
            (contract::of(Agent::Claude, "StopFailure"), "rate_limit|overloaded", "overloaded", true),
            (contract::of(Agent::Claude, "StopFailure"), "rate_limit,overloaded", "overloaded", false),
        ];
        for (contract, pattern, target, expected) in cases {
            let matcher = Matcher::with_syntax(Syntax::of(contract), Some(pattern)).unwrap();
            assert_eq!(matcher.matches_target(contract, target), expected, "{pattern} on {target}");
        }
    }
}
