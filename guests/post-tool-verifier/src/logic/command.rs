//! Whether a shell command failed, by what it printed: the agents do not say it in every version.

use super::{of_result, without_quotes};

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// Nothing says that it failed.
    Well,
    /// It has an exit status other than 0, but its output is what was wanted: `grep` without a match, `diff` with a difference.
    Soft(u32),
    /// It failed.
    Badly,
}

/// Signs in an output that its exit status is meant.
const BAD_WORDS: [&str; 8] =
    ["error:", "failed", "cannot", "permission denied", "command not found", "no such file", "fatal:", "abort"];

/// Shells, at the beginning of what they complain about.
const SHELLS: [&str; 5] = ["bash", "zsh", "sh", "dash", "fish"];
const SHELL_COMPLAINTS: [&str; 3] = ["command not found", "no such file", "permission denied"];

/// Programs whose own complaints, after their name, mean that the command failed.
const PROGRAMS: [&str; 19] = [
    "rm", "cp", "mv", "cat", "chmod", "chown", "git", "node", "npm", "pnpm", "yarn", "python", "python3", "pip",
    "pip3", "cargo", "go", "rustc", "docker",
];

/// What a line may begin with that tells of a failed step.
const STEPS: [&str; 4] = ["build failed", "command failed", "task failed", "operation failed"];

/// How the command ended. `said_failed` is what the agent itself says, if it does.
pub fn ending(output: &str, said_failed: Option<bool>) -> Ending {
    let lines: Vec<String> = of_result(output)
        .flat_map(str::lines)
        .map(|line| line.trim().to_ascii_lowercase())
        .filter(|line| !line.is_empty() && !is_shell_noise(line))
        .collect();
    let status = lines.iter().find_map(|line| exit_status(line));
    if let Some(code) = status
        && is_soft(&lines)
    {
        return Ending::Soft(code);
    }
    // A test run that reports failures has done its work.
    if is_pytest(&lines) {
        return Ending::Well;
    }
    let failed = said_failed == Some(true) || status.is_some() || lines.iter().any(|line| tells_failure(line));
    if failed { Ending::Badly } else { Ending::Well }
}

/// What zsh on macOS says about its own temporary files.
fn is_shell_noise(line: &str) -> bool {
    line.starts_with("zsh:")
        && line.contains("permission denied")
        && line.contains("/t/claude-")
        && line.ends_with("-cwd")
}

/// The exit status in a line that is nothing else.
fn exit_status(line: &str) -> Option<u32> {
    let code = line.strip_prefix("error: exit code ")?;
    code.parse().ok().filter(|code| *code != 0)
}

/// Whether there is an output beside the exit status, and nothing bad in it.
fn is_soft(lines: &[String]) -> bool {
    let mut others = lines.iter().filter(|line| exit_status(line).is_none() && !is_inert(line)).peekable();
    others.peek().is_some()
        && others.all(|line| {
            let line = without_quotes(line);
            !BAD_WORDS.iter().any(|word| line.contains(word))
        })
}

/// Lines of reports and of shown code that have bad words and mean nothing.
fn is_inert(line: &str) -> bool {
    let field = line.trim_matches([',', '"']);
    field == "severity: error"
        || field.starts_with("totalerrors: 0")
        || field.starts_with("error: \"") && field.ends_with('"')
        || line.starts_with("return {") && line.contains("error: \"")
}

fn is_pytest(lines: &[String]) -> bool {
    let header = lines.iter().any(|line| {
        line.contains("test session starts")
            || line.starts_with("pytest-")
            || line.strip_prefix("collected ").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    });
    let body = |line: &String| {
        line.contains("short test summary info")
            || line.contains("= failures =")
            || ["failed ", "error "].iter().any(|word| line.strip_prefix(word).is_some_and(|rest| rest.contains("::")))
            || line.contains(".py::") && ["passed", "failed", "error"].iter().any(|word| line.contains(word))
    };
    header && lines.iter().any(body)
}

fn tells_failure(line: &str) -> bool {
    let nonzero = |text: &str| {
        let digits: String = text.trim_start().chars().take_while(char::is_ascii_digit).collect();
        digits.parse::<u32>().is_ok_and(|code| code != 0)
    };
    let after = |words: &str| line.split_once(words).is_some_and(|(_, rest)| nonzero(rest));
    if after("exit code:") || after("exit status ") {
        return true;
    }
    if line.starts_with("error: ") || line.starts_with("fatal: ") || STEPS.iter().any(|step| line.starts_with(step)) {
        return true;
    }
    if line.split(|c: char| !c.is_alphanumeric()).next().is_some_and(|word| matches!(word, "abort" | "aborted")) {
        return true;
    }
    let Some((speaker, complaint)) = line.split_once(':') else { return false };
    let speaker = speaker.rsplit('/').next().unwrap_or_default();
    if SHELLS.contains(&speaker) {
        return SHELL_COMPLAINTS.iter().any(|words| complaint.contains(words));
    }
    let changes_mode = matches!(speaker, "chmod" | "chown");
    PROGRAMS.contains(&speaker)
        && (complaint.contains(": permission denied") || complaint.contains(": no such file") && !changes_mode)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_told_from_words_about_them() {
        for (output, bad) in [
            ("error: nope", true),
            ("Error: Exit code 1", true),
            ("Error: Exit code 1\nerror: x failed", true),
            ("bash: foo: command not found", true),
            ("/bin/bash: line 1: foo: command not found", true),
            ("zsh: no such file or directory: ./x", true),
            ("fatal: not a git repository", true),
            ("rm: x: Permission denied", true),
            ("cat: x: No such file or directory", true),
            ("Build failed in 2s", true),
            ("Aborted (core dumped)", true),
            ("process ended with exit status 3", true),
            ("make: exit code: 2", true),
            ("ok", false),
            ("", false),
            ("some text error: nope", false),
            ("foo: command not found", false),
            ("head: x: No such file or directory", false),
            ("git: fatal: x", false),
            ("chmod: x: No such file", false),
            ("exit status 0", false),
            ("0 errors, 0 warnings\nchecked 3 files; handled error: retry ok", false),
            ("test result: ok. 12 passed; 0 failed", false),
            ("aborting nothing", false),
            ("running in background", false),
            ("===== test session starts =====\ncollected 2 items\ntest_a.py::test_x FAILED\nError: Exit code 1", false),
            ("zsh:1: permission denied: /var/T/claude-a1-cwd", false),
        ] {
            assert_eq!(ending(output, None) == Ending::Badly, bad, "{output:?}");
        }
        assert_eq!(ending("anything", Some(true)), Ending::Badly);
        assert_eq!(ending("anything", Some(false)), Ending::Well);
    }

    #[test]
    fn an_exit_status_with_a_good_output_is_soft() {
        for (output, code) in [
            ("Error: Exit code 8\nchecks pending", Some(8)),
            ("1 difference\nError: Exit code 1", Some(1)),
            ("Error: Exit code 1\nsee \"error: x\" in the log", Some(1)),
            ("Error: Exit code 1\nseverity: error\nlist of findings", Some(1)),
            ("Error: Exit code 1\nseverity: error", None),
            ("Error: Exit code 1\ncannot open", None),
            ("Error: Exit code 0\nfine", None),
        ] {
            let soft = match ending(output, None) {
                Ending::Soft(code) => Some(code),
                _ => None,
            };
            assert_eq!(soft, code, "{output:?}");
        }
    }

    #[test]
    fn a_huge_output_is_judged_by_its_ends() {
        let middle = "0123456789abcde\n".repeat(327_680);
        assert_eq!(ending(&middle, None), Ending::Well);
        assert_eq!(ending(&format!("{middle}\nfatal: x"), None), Ending::Badly);
        assert_eq!(ending(&format!("fatal: x\n{middle}"), None), Ending::Badly);
    }
}
