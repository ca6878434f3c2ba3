//! Objects to two habits at the end of a turn: a choice that is put to the user in prose, and work that is called done while its
//! new lines hold skipped tests or placeholders.
//!
//! Off until somebody switches it on: what it looks for are conventions, which not everybody shares. It objects once; on the Stop
//! after a refusal it is silent. New are the lines that the last commit does not have: those of an older day are nobody's lie.

pub mod logic;

use omc_bare as _;
use omc_guest::project_files::{self, Root};
use omc_guest::{Decision, Effects, Error, Event, EventKind, Guest, git};
use omc_turn::{Changed, changed_files};

use logic::leftover::{self, Finding};
use logic::{MAX_FINDINGS, ask_properly, claim, fork, not_done};

/// Changed files that are looked through, and how much of each, in bytes: a bound on what a Stop costs.
const MAX_FILES: usize = 20;
const MAX_FILE_BYTES: u32 = 128 * 1024;

/// New lines of an older file that are looked at.
const MAX_LINES: u32 = 2_000;

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
        {"capability": "git", "reason": "knows from it which files and lines are new"},
        {"capability": "read", "scope": ["project:**/*.{js,jsx,ts,tsx,mjs,cjs,mts,cts,py,sh,bash,zsh,go,rs,java,kt,kts,swift,rb,php,cs,c,cc,cpp,h,hpp}"], "reason": "looks for leftovers in new lines of code"}
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

/// Leftovers in the new lines of the project.
fn leftovers() -> Vec<Finding> {
    let Ok(changed) = changed_files() else { return Vec::new() };
    let inert = |path: &str| !path.chars().any(char::is_control);
    let mut findings = Vec::new();
    for file in changed.iter().filter(|file| leftover::is_code(&file.path) && inert(&file.path)).take(MAX_FILES) {
        findings.extend(in_new_lines(file));
        if findings.len() >= MAX_FINDINGS {
            break;
        }
    }
    findings.truncate(MAX_FINDINGS);
    findings
}

/// Leftovers in the new lines of one file. Git is asked only about an older file in which there are some.
fn in_new_lines(file: &Changed) -> Vec<Finding> {
    let Ok(text) = project_files::read_start(Root::Project, &file.path, MAX_FILE_BYTES) else { return Vec::new() };
    if file.is_new {
        return leftover::find(&file.path, &text).take(MAX_FINDINGS).collect();
    }
    let mut found = leftover::find(&file.path, &text).peekable();
    if found.peek().is_none() {
        return Vec::new();
    }
    let added = git::added_lines(&file.path, MAX_LINES).unwrap_or_default();
    found.filter(|finding| added.iter().any(|&line| line as usize == finding.line)).take(MAX_FINDINGS).collect()
}

#[cfg(test)]
mod tests;
