//! Objects to two habits at the end of a turn: a choice that is put to the user in prose, and work that is called done while new
//! files hold skipped tests or placeholders.
//!
//! Off until somebody switches it on: what it looks for are conventions, which not everybody shares. It objects once; on the Stop
//! after a refusal it is silent. Of changed files only new ones are looked through, since what a change added to an old file is
//! not known to a guest.

pub mod logic;

use omc_guest::git::{self, ChangeKind};
use omc_guest::project_files::{self, Root};
use omc_guest::{Decision, Effects, Error, Event, EventKind, Guest};

use logic::leftover::{self, Finding};
use logic::{MAX_FINDINGS, ask_properly, claim, fork, not_done};

/// New files that are looked through, and how much of each, in bytes: a bound on what a Stop costs.
const MAX_FILES: usize = 20;
const MAX_FILE_BYTES: u32 = 128 * 1024;

/// Changed paths that are asked for.
const MAX_CHANGES: u32 = 1_000;

/// Where the agents keep the last message, the surest first.
const MESSAGES: [&str; 6] =
    ["/last_assistant_message", "/lastAssistantMessage", "/message", "/output", "/response", "/text"];

/// The guest.
#[derive(Debug)]
pub struct WorkflowDriftGuard;

omc_guest::export!(WorkflowDriftGuard, {
    "description": "Objects to choices in prose and to leftovers in work that is called done",
    "enabled": false,
    "subscriptions": [{"event": "stop", "order": 150}],
    "requests": [
        {"capability": "git", "reason": "knows from it which files are new"},
        {"capability": "read", "scope": ["project:**/*.{js,jsx,ts,tsx,mjs,cjs,mts,cts,py,sh,bash,zsh,go,rs,java,kt,kts,swift,rb,php,cs,c,cc,cpp,h,hpp}"], "reason": "looks for leftovers in new files of code"}
    ]
});

impl Guest for WorkflowDriftGuard {
    fn handle(event: &Event<'_>, _effects: &mut Effects<'_>) -> Result<Decision, Error> {
        let is_second = ["/stop_hook_active", "/stopHookActive"]
            .iter()
            .any(|pointer| event.field(pointer).is_some_and(|value| value == true));
        if event.kind() != EventKind::Stop || event.subagent_id().is_some() || is_second {
            return Ok(Decision::Pass);
        }
        let Some(message) = MESSAGES.iter().find_map(|pointer| event.text(pointer)) else { return Ok(Decision::Pass) };
        if fork::is_fork(&message) {
            return Ok(Decision::Block(ask_properly()));
        }
        if !claim::is_claimed(&message) {
            return Ok(Decision::Pass);
        }
        Ok(not_done(&leftovers()).map_or(Decision::Pass, Decision::Block))
    }
}

/// Leftovers in the new files of the project.
fn leftovers() -> Vec<Finding> {
    let Ok(changes) = git::changed_paths(MAX_CHANGES) else { return Vec::new() };
    let is_new = |kind| matches!(kind, ChangeKind::Added | ChangeKind::Untracked);
    let inert = |path: &str| !path.chars().any(char::is_control);
    let files = changes.paths.iter().filter(|change| is_new(change.kind)).map(|change| change.path.as_str());
    let mut findings = Vec::new();
    for path in files.filter(|path| leftover::is_code(path) && inert(path)).take(MAX_FILES) {
        if let Ok(text) = project_files::read_start(Root::Project, path, MAX_FILE_BYTES) {
            findings.extend(leftover::find(path, &text, MAX_FINDINGS - findings.len()));
        }
        if findings.len() == MAX_FINDINGS {
            break;
        }
    }
    findings
}

#[cfg(test)]
mod tests;
