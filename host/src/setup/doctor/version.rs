//! Which version of an agent there is.
//!
//! The program is asked, so it is looked for only in absolute folders of PATH, and not in the project: what a repository brings is
//! not started.

use std::env::consts::EXE_SUFFIX;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::{Finding, Patient};

/// Longest wait for an answer: agents are large programs, and start slowly.
const LIMIT: Duration = Duration::from_secs(5);

/// Time between two looks at a program that has not answered.
const LOOK: Duration = Duration::from_millis(10);

/// Longest answer that is read, in bytes.
const MAX_ANSWER_BYTES: u64 = 512;

/// What there is to say about the version of an agent. `oldest` is the first one that does what hooks of ours need.
pub(super) fn of(name: &str, oldest: Option<[u32; 3]>, patient: &Patient<'_>) -> Option<Finding> {
    let program = find(name, &std::env::var_os("PATH")?, patient.project)?;
    let shown = program.display();
    let Some(version) = ask(&program).as_deref().and_then(parse) else {
        return Some(Finding::note(format!("`{shown} --version` names no version")));
    };
    let text = |[major, minor, patch]: [u32; 3]| format!("{major}.{minor}.{patch}");
    match oldest {
        Some(oldest) if version < oldest => Some(Finding::problem(
            format!("`{shown}` is version {}, which starts hooks without their arguments", text(version)),
            format!("update it to {} or later", text(oldest)),
        )),
        _ => Some(Finding::ok(format!("`{shown}` is version {}", text(version)))),
    }
}

fn find(name: &str, path: &std::ffi::OsStr, project: Option<&Path>) -> Option<PathBuf> {
    let is_own = |folder: &PathBuf| {
        let canonical = folder.canonicalize().unwrap_or_else(|_| folder.clone());
        folder.is_absolute() && project.is_none_or(|project| !canonical.starts_with(project))
    };
    let mut programs =
        std::env::split_paths(path).filter(is_own).map(|folder| folder.join(format!("{name}{EXE_SUFFIX}")));
    programs.find(|program| program.is_file())
}

/// What a program says of its version, if it does in time.
fn ask(program: &Path) -> Option<String> {
    let mut command = Command::new(program);
    command.arg("--version").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().ok()?;
    let until = Instant::now() + LIMIT;
    while child.try_wait().ok()?.is_none() {
        if Instant::now() > until {
            drop(child.kill());
            drop(child.wait());
            return None;
        }
        thread::sleep(LOOK);
    }
    let mut answer = String::new();
    child.stdout.take()?.take(MAX_ANSWER_BYTES).read_to_string(&mut answer).ok()?;
    Some(answer)
}

/// The first word of the form `1.2.3` in a text.
fn parse(text: &str) -> Option<[u32; 3]> {
    text.split_whitespace().find_map(|word| {
        let mut parts = word.trim_start_matches('v').splitn(3, '.');
        let mut number = || {
            let part = parts.next()?;
            let digits = part.split(|letter: char| !letter.is_ascii_digit()).next()?;
            digits.parse().ok()
        };
        Some([number()?, number()?, number()?])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_found_in_what_agents_say() {
        for (text, version) in [
            ("2.1.303 (Claude Code)", Some([2, 1, 303])),
            ("codex-cli 0.155.0-alpha.2\n", Some([0, 155, 0])),
            ("v1.2.3", Some([1, 2, 3])),
            ("1.2", None),
            ("", None),
        ] {
            assert_eq!(parse(text), version, "{text}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_program_that_the_project_brings_is_not_started() {
        let dir = tempfile::tempdir().expect("a folder");
        let root = dir.path().canonicalize().expect("canonical");
        for folder in ["project/node_modules/.bin", "own"] {
            std::fs::create_dir_all(root.join(folder)).expect("created");
            std::fs::write(root.join(folder).join("claude"), "").expect("written");
        }
        std::os::unix::fs::symlink(root.join("project/node_modules/.bin"), root.join("link")).expect("linked");
        let project = root.join("project");
        let path = std::env::join_paths([
            PathBuf::from("."),
            project.join("node_modules/.bin"),
            root.join("link"),
            root.join("own"),
        ]);
        assert_eq!(find("claude", &path.expect("a path"), Some(&project)), Some(root.join("own/claude")));
    }
}
