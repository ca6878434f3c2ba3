//! What is a failure of the work, and what is said about it.

use omc_state::one_line;

/// Longest name of a tool that is repeated, in UTF-16 units.
const MAX_NAME_UNITS: usize = 100;

/// Failures of the same call from which another way is advised: the original's.
const GIVE_UP_AT: u64 = 5;

/// Tools of optional servers that are asked whether they know something; not to have the method is an answer.
const PROBES: [&str; 5] = [
    "mcp__omx_state__state_read",
    "mcp__omx_state__state_get_status",
    "mcp__omx_state__state_list_active",
    "mcp__omx_memory__notepad_read",
    "mcp__omx_memory__project_memory_read",
];

/// Programs that search, and complain about every folder that they may not read.
const SEARCHERS: [&str; 3] = ["find", "grep", "rg"];

/// A call that failed.
#[derive(Debug, Clone, Copy)]
pub struct Failure<'a> {
    /// The tool's name.
    pub tool: &'a str,
    /// What it said.
    pub error: &'a str,
    /// The command, where the tool executes one.
    pub command: Option<&'a str>,
}

impl Failure<'_> {
    /// Whether it is a failure of the work.
    pub fn counts(&self) -> bool {
        if self.tool.is_empty() || self.error.is_empty() {
            return false;
        }
        let lacks_method = PROBES.contains(&self.tool) && self.error.to_ascii_lowercase().contains("method not found");
        !lacks_method && !self.is_noise_of_a_search()
    }

    /// A search that began too high up only says which folders it could not read.
    fn is_noise_of_a_search(&self) -> bool {
        let Some(command) = self.command else { return false };
        let searches_wide = command.contains("AGENTS.md") || {
            let mut words = command.split_whitespace().skip_while(|word| !SEARCHERS.contains(word));
            words.next().is_some() && words.any(|word| word.contains("..") || word.starts_with('/'))
        };
        let refusal = |line: &str| {
            let line = line.to_ascii_lowercase();
            SEARCHERS.iter().any(|name| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(':')))
                && line.ends_with("permission denied")
        };
        let status = |line: &str| {
            let line = line.to_ascii_lowercase();
            let code = line.strip_prefix("exit code ").or_else(|| line.strip_prefix("command failed with exit code "));
            code.is_some_and(|code| code.trim_end_matches(':').bytes().all(|byte| byte.is_ascii_digit()))
        };
        let mut lines = self.error.lines().map(str::trim).filter(|line| !line.is_empty()).peekable();
        searches_wide
            && lines.clone().any(refusal)
            && lines.all(|line| refusal(line) || status(line) || line == command.trim())
    }
}

/// What is said after that many failures of the same call.
pub fn advice(tool: &str, retries: u64) -> String {
    let tool = one_line(tool, MAX_NAME_UNITS);
    if retries < GIVE_UP_AT {
        format!("`{tool}` failed. Read the error, find its cause and fix it, then go on.")
    } else {
        format!(
            "`{tool}` has failed {retries} times in the same way. Stop retrying it like this: try a different command or approach, \
             check that dependencies and permissions are as you think, or ask the user."
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_failure_of_the_work_does_not_count() {
        let probe = "mcp__omx_state__state_read";
        for (tool, error, command, counts) in [
            ("Bash", "boom", Some("x"), true),
            ("", "boom", None, false),
            ("Bash", "", Some("x"), false),
            (probe, "MCP error -32601: Method not found", None, false),
            (probe, "timeout", None, true),
            ("mcp__db__query", "MCP error -32601: Method not found", None, true),
            ("Bash", "Exit code 1\nfind: '/root/x': Permission denied", Some("find / -name AGENTS.md"), false),
            ("Bash", "Exit code 1\ngrep: /proc/1/fd: Permission denied", Some("grep -r x /proc"), false),
            ("Bash", "rg: ../x: Permission denied (os error 13)", Some("rg x .."), true),
            ("Bash", "Exit code 1\nfind: '/root/x': Permission denied\nfind: bad option", Some("find / -name x"), true),
            ("Bash", "Exit code 1\nfind: '/root/x': Permission denied", Some("find src -name x"), true),
            ("Bash", "Exit code 1", Some("find / -name x"), true),
            ("Bash", "find: x: Permission denied", Some("rm /x"), true),
            ("Edit", "find: x: Permission denied", None, true),
        ] {
            assert_eq!(Failure { tool, error, command }.counts(), counts, "{tool} {error:?} {command:?}");
        }
    }

    #[test]
    fn from_the_fifth_time_on_another_way_is_advised() {
        assert!(advice("Bash", 4).contains("`Bash` failed"));
        assert!(advice("Bash", 5).contains("5 times") && advice("Bash", 9).contains("9 times"));
        let odd = advice(&format!("a\n{}", "x".repeat(900)), 1);
        assert!(!odd.contains('\n') && odd.len() < 300);
    }
}
