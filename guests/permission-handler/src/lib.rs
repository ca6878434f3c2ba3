//! Approves, in the user's place, a shell command that is known to only read.
//!
//! On PermissionRequest the guest lets [`logic`] judge the command; most commands are not in its table and cost one comparison.
//! Only for one that would be approved are the user's own rules read, from every settings file that the agent reads between the
//! project's root and the folder worked in. The guest never refuses: without an approval the agent asks, as if there were no guest.
//!
//! What is judged is the text and what lies at its paths now; that a file may be another one when the command runs is so with
//! every approval, also a person's.

pub mod logic;

use omc_bare as _;
use omc_guest::project_files::{self, Root};
use omc_guest::{AccessError, Decision, Effects, Error, Event, EventKind, Guest, log, settings};

use logic::{Command, Folders, Kind, UserRules, approves, forbids_approval};

/// Largest settings file that is read, in bytes; real ones have a few KiB. A larger one is not understood.
const MAX_SETTINGS_BYTES: u32 = 256 * 1024;

/// Most files of rules that Codex may have in one folder.
const MAX_RULE_FILES: u32 = 64;

/// The guest.
#[derive(Debug)]
pub struct PermissionHandler;

omc_guest::export!(PermissionHandler, {
    "description": "Approves single shell commands that only read",
    "subscriptions": [{"event": "permission-request", "matcher": "Bash|proxy_Bash", "order": 100}],
    "requests": [
        {"capability": "allow", "reason": "approves in the user's place what only reads"},
        {"capability": "read", "scope": [
            "project:**", "project:**/.claude/settings.json", "project:**/.claude/settings.local.json", "project:**/.codex/rules/*.rules",
            "agent:settings.json", "agent:settings.local.json", "agent:rules/*.rules"
        ], "reason": "looks whether a command's paths are plain files of the project, and at the user's own rules, which win"}
    ]
});

impl Guest for PermissionHandler {
    fn handle(event: &Event<'_>, _effects: &mut Effects<'_>) -> Result<Decision, Error> {
        let is_shell = event.tool_name().is_some_and(|name| name.strip_prefix("proxy_").unwrap_or(&name) == "Bash");
        if event.kind() != EventKind::PermissionRequest || !is_shell {
            return Ok(Decision::Pass);
        }
        Ok(if may_run(event) == Some(true) { Decision::Allow } else { Decision::Pass })
    }
}

/// Whether the event's command may run unasked; nothing, if that cannot be said.
fn may_run(event: &Event<'_>) -> Option<bool> {
    let text = event.text("/tool_input/command")?;
    let command = Command::parse(&text)?;
    let folders = Folders::new(&event.project_root()?, &event.cwd()?);
    let runs_project_code = settings::get("permissionHandler.approveProjectCommands").unwrap_or(false);
    // Without a repository there is no boundary that files lie inside of.
    let repository = folders.as_ref().filter(|_| event.in_work_tree());
    let approval = approves(&command, repository, runs_project_code, &kind)?;

    let held_back = match event.agent().as_str() {
        "claude" => {
            claude_rules(folders.as_ref()).map(|rules| rules.concern(&text, &command, &approval, folders.as_ref()))
        }
        "codex" => codex_holds_back(folders.as_ref()),
        // Where another agent has its rules is not known.
        _ => return None,
    };
    match held_back {
        Ok(held_back) => Some(!held_back),
        Err(what) => {
            log::info(&format!("nothing is approved: {what}"));
            None
        }
    }
}

/// What lies at a path of the project. The host follows no links, so a path through one has nothing.
fn kind(path: &str) -> Option<Kind> {
    if !path.is_empty() && project_files::read_start(Root::Project, path, 1).is_ok() {
        return Some(Kind::File);
    }
    match project_files::list(Root::Project, path, 1) {
        Ok(_) | Err(AccessError::TooLarge) => Some(Kind::Folder),
        Err(_) => None,
    }
}

/// The folders in which the agent may have been started, below the root.
fn started_in(folders: Option<&Folders>) -> Vec<String> {
    folders.map_or_else(|| vec![String::new()], |folders| folders.ancestry().collect())
}

/// The user's rules from all of Claude Code's settings; an error says which file was not understood.
fn claude_rules(folders: Option<&Folders>) -> Result<UserRules, String> {
    const NAMES: [&str; 2] = ["settings.json", "settings.local.json"];
    let mut rules = UserRules::default();
    let in_project = started_in(folders).into_iter().flat_map(|folder| {
        NAMES.map(|name| (Root::Project, format!("{folder}/.claude/{name}").trim_start_matches('/').to_owned()))
    });
    let all = NAMES.map(|name| (Root::Agent, name.to_owned())).into_iter().chain(in_project);
    for (root, path) in all {
        match project_files::read(root, &path, MAX_SETTINGS_BYTES) {
            Ok(text) => rules.add(&text).map_err(|_| format!("`{path}` is not understood"))?,
            Err(AccessError::NotFound) => {}
            Err(error) => return Err(format!("`{path}` cannot be read: {error}")),
        }
    }
    Ok(rules)
}

/// Whether any of Codex's rules holds anything back; an error says which folder could not be read.
fn codex_holds_back(folders: Option<&Folders>) -> Result<bool, String> {
    let in_project = started_in(folders)
        .into_iter()
        .map(|folder| (Root::Project, format!("{folder}/.codex/rules").trim_start_matches('/').to_owned()));
    for (root, folder) in std::iter::once((Root::Agent, "rules".to_owned())).chain(in_project) {
        let entries = match project_files::list(root, &folder, MAX_RULE_FILES) {
            Ok(entries) => entries,
            Err(AccessError::NotFound) => continue,
            Err(error) => return Err(format!("`{folder}` cannot be read: {error}")),
        };
        for entry in entries.iter().filter(|entry| !entry.is_folder) {
            let path = format!("{folder}/{}", entry.name);
            let text = project_files::read(root, &path, MAX_SETTINGS_BYTES)
                .map_err(|error| format!("`{path}` cannot be read: {error}"))?;
            if forbids_approval(&text) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests;
