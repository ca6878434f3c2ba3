//! Tools that the user wants to be left to subagents after a few uses.

use omc_state::ToolUse;
use regex_lite::RegexBuilder;
use serde::Deserialize;

/// Largest program that a pattern may become, in bytes: real ones are names with a `|` or a `.*` between them.
const MAX_PATTERN_BYTES: usize = 64 * 1024;

/// One rule, as the host hands it out.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Rule {
    pattern: String,
    count: u64,
    window_seconds: i64,
    deny_message: Option<String>,
    bypass_env: Option<String>,
    is_bypassed: bool,
}

impl Rule {
    /// Whether the rule is about the tool: its pattern matches the whole name. One that is no pattern matches nothing.
    pub fn is_about(&self, tool: &str) -> bool {
        // Most patterns are one name or a few, and need no engine.
        if !self.pattern.contains(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '|')) {
            return self.pattern.split('|').any(|name| name == tool);
        }
        let whole = format!("^(?:{})$", self.pattern);
        RegexBuilder::new(&whole).size_limit(MAX_PATTERN_BYTES).build().is_ok_and(|pattern| pattern.is_match(tool))
    }

    /// Why one more use of the tool is refused, given the uses before it.
    pub fn refusal(&self, tool: &str, uses: &[ToolUse]) -> Option<String> {
        if self.is_bypassed {
            return None;
        }
        let counts = |used: &&ToolUse| used.seconds_ago <= self.window_seconds && self.is_about(&used.tool);
        let count = uses.iter().filter(counts).count() as u64 + 1;
        if count < self.count {
            return None;
        }
        Some(self.deny_message.clone().unwrap_or_else(|| {
            format!(
                "[OMC] Force-agent-delegation: use {count} of tools like `{tool}` within {} s, and from {} on they are left to \
                 subagents. Delegate this work to one, or wait. (The user can lift this with {}=1.)",
                self.window_seconds,
                self.count,
                self.bypass_env.as_deref().unwrap_or("ALLOW_RAW_READ")
            )
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(pattern: &str, count: u64) -> Rule {
        serde_json::from_value(serde_json::json!({
            "pattern": pattern, "count": count, "windowSeconds": 60, "denyMessage": null, "bypassEnv": null, "isBypassed": false,
        }))
        .expect("a rule")
    }

    #[test]
    fn a_pattern_matches_whole_names() {
        for (pattern, tool, about) in [
            ("Read|Grep", "Read", true),
            ("Read|Grep", "Grep", true),
            ("Read|Grep", "ReadMcpResource", false),
            ("Read", "read", false),
            ("mcp__.*", "mcp__a__b", true),
            ("(Read|Gr.p)", "Grep", true),
            ("Rea.?", "Read", true),
            ("R", "Read", false),
            ("(", "(", false),
            ("", "Read", false),
            (".*", "anything", true),
            ("(((((a{99}){99}){99}){99}){99})", "a", false),
        ] {
            assert_eq!(rule(pattern, 1).is_about(tool), about, "{pattern} {tool}");
        }
    }

    #[test]
    fn the_use_that_reaches_the_threshold_within_the_window_is_refused() {
        let used = |tool: &str, seconds_ago| ToolUse { tool: tool.to_owned(), seconds_ago };
        for (count, uses, refused) in [
            (1, vec![], true),
            (2, vec![], false),
            (2, vec![used("Read", 5)], true),
            (2, vec![used("Grep", 60)], true),
            (2, vec![used("Read", 61)], false),
            (2, vec![used("Bash", 5)], false),
            (3, vec![used("Read", 5)], false),
        ] {
            assert_eq!(rule("Read|Grep", count).refusal("Read", &uses).is_some(), refused, "{count} {uses:?}");
        }
        let text = rule("Edit", 1).refusal("Edit", &[]).expect("refused");
        assert!(text.starts_with("[OMC] Force-agent-delegation:") && text.contains("ALLOW_RAW_READ"), "{text}");
        let own = Rule { deny_message: Some("ask the explorer".into()), ..rule("Edit", 1) };
        assert_eq!(own.refusal("Edit", &[]).as_deref(), Some("ask the explorer"));
        assert_eq!(Rule { is_bypassed: true, ..rule("Edit", 1) }.refusal("Edit", &[]), None);
    }
}
