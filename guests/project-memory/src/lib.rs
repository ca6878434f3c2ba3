//! Keeps what is known about a project, and gives it back to sessions.
//!
//! At the start of a session the project is looked at, once a day, and the model told what is known. Tools teach which paths are
//! used and what the surroundings are like; prompts teach what the user wants to be obeyed. Before a compaction all of it is said
//! again, the user's directives first and complete.
//!
//! Tools come often: where no scan has been, or a tool has nothing to teach, nothing is read.

pub mod logic;

use std::time::SystemTime;

use omc_bare as _;
use omc_guest::project_files::{self, Root};
use omc_guest::{Decision, Effects, Error, Event, EventKind, Guest, ToolKind, log, state_lock};
use omc_state::{
    Store, Timestamp,
    project_memory::{Occasion, PathKind, ProjectMemory},
};

use logic::{directives, learn, scan, summary};

/// The guest.
#[derive(Debug)]
pub struct ProjectMemoryGuest;

omc_guest::export!(ProjectMemoryGuest, {
    "description": "Learns what a project is made of and what its user wants, and tells sessions",
    "subscriptions": [
        {"event": "session-start", "order": 200},
        {"event": "user-prompt-submit", "order": 300, "when": [
            "payload:only", "payload:always", "payload:never", "payload:ignore", "payload:focus", "payload:stick", "payload:don't",
            "payload:don’t", "payload:do not", "payload:must", "payload:prioritize", "payload:should", "payload:requirement:",
            "payload:constraint:", "payload:rule:", "payload:scope:", "payload:important:", "payload:critical:", "payload:항상",
            "payload:절대", "payload:반드시", "payload:하지", "payload:금지", "payload:규칙:", "payload:제약:"
        ]},
        {"event": "post-tool-use", "matcher": "Read|Edit|MultiEdit|Write|NotebookEdit|Glob|Grep|Bash|apply_patch|shell|shell_command|local_shell|exec_command", "order": 300, "when": ["file:/omc/project-memory.json"]},
        {"event": "pre-compact", "order": 200, "when": ["file:/omc/project-memory.json"]}
    ],
    "requests": [
        {"capability": "omc", "scope": ["rw:/omc", "ro:/omc/state"], "reason": "reads and writes project-memory.json"},
        {"capability": "read", "scope": ["project:*", "project:*/*", "project:*/*/*"], "reason": "finds out languages, tools, commands and folders of the project"}
    ]
});

impl Guest for ProjectMemoryGuest {
    fn handle(event: &Event<'_>, effects: &mut Effects<'_>) -> Result<Decision, Error> {
        let store = Store::new(&omc_guest::omc_dir());
        let now = SystemTime::now().into();
        match event.kind() {
            EventKind::SessionStart => {
                let memory = up_to_date(event, &store, now);
                if let Some(text) = memory.and_then(|memory| summary::at_start(&memory, now)) {
                    effects.add_context(&text)?;
                }
            }
            EventKind::UserPromptSubmit if event.subagent_id().is_none() => obey(event, &store, now),
            EventKind::PostToolUse => learn(event, &store, now),
            EventKind::PreCompact => {
                if let Some(text) = read(&store).and_then(|memory| summary::at_compaction(&memory, now)) {
                    effects.add_message(&text)?;
                }
            }
            _ => {}
        }
        Ok(Decision::Pass)
    }
}

fn read(store: &Store) -> Option<ProjectMemory> {
    report(store.read_memory()).flatten()
}

/// The memory, after a look at the project if the last one was too long ago.
fn up_to_date(event: &Event<'_>, store: &Store, now: Timestamp) -> Option<ProjectMemory> {
    let known = read(store);
    let Some(root) = event.project_root() else { return known };
    if known.as_ref().is_some_and(|memory| !memory.wants_scan(now)) {
        return known;
    }
    // Looked at before the lock is taken: it may take a while.
    let found = scan::scan(&ProjectFiles, now);
    let mut updated = None;
    report(store.change_memory(&state_lock::acquire, Occasion::Scan(&root), |memory| {
        let wanted = memory.wants_scan(now);
        if wanted {
            memory.apply_scan(&found, &root, now);
        }
        updated = Some(memory.clone());
        wanted
    }));
    updated.or(known)
}

/// The user's prompt may hold wishes that outlast it.
fn obey(event: &Event<'_>, store: &Store, now: Timestamp) {
    let Some(prompt) = event.prompt() else { return };
    let found = directives::find(&prompt);
    if found.is_empty() {
        return;
    }
    let root = event.project_root();
    report(store.change_memory(&state_lock::acquire, Occasion::User(root.as_deref()), |memory| {
        let mut changed = false;
        for wish in &found {
            changed |= memory.add_directive(&wish.text, &wish.text, wish.is_high, now);
        }
        changed
    }));
}

/// A tool ran: what it used gets hot, what it said may be worth a note.
fn learn(event: &Event<'_>, store: &Store, now: Timestamp) {
    if !store.has_memory() {
        return;
    }
    let lesson = match event.tool_kind() {
        Some(ToolKind::Execute) => learn::Lesson {
            notes: event.tool_result().map(|output| learn::hints(&output)).unwrap_or_default(),
            commands: if has_failed(event) {
                Vec::new()
            } else {
                event.tool_command().map(|command| learn::commands(&command)).unwrap_or_default()
            },
            paths: Vec::new(),
        },
        Some(ToolKind::Read | ToolKind::Write | ToolKind::Edit) => {
            learn::Lesson { paths: used_paths(event), ..learn::Lesson::default() }
        }
        _ => return,
    };
    if !lesson.is_empty() {
        report(store.change_memory(&state_lock::acquire, Occasion::Tool, |memory| lesson.teach(memory, now)));
    }
}

/// Whether a command did not reach its end, or ended with an error, as far as the event or what was printed tells.
fn has_failed(event: &Event<'_>) -> bool {
    event.tool_failed() == Some(true)
        || event.tool_interrupted()
        || event.tool_result().is_some_and(|output| learn::tells_of_failure(&output))
}

/// The paths below the project's root that the tool was given.
fn used_paths(event: &Event<'_>) -> Vec<(String, PathKind)> {
    let Some(root) = event.project_root() else { return Vec::new() };
    let kind = match event.tool_name().as_deref() {
        // Without a path these look through everything, which says nothing about any place.
        Some("Glob" | "Grep") if event.text("/tool_input/path").is_none() => return Vec::new(),
        Some("Glob" | "Grep") => PathKind::Directory,
        _ => PathKind::File,
    };
    let paths = event.tool_paths().unwrap_or_default();
    paths.iter().filter_map(|path| Some((learn::relative_path(&path.path, &root)?, kind))).collect()
}

/// The project's files as the host shows them.
struct ProjectFiles;

impl scan::Files for ProjectFiles {
    fn list(&self, folder: &str) -> Option<Vec<scan::Entry>> {
        let entries = project_files::list(Root::Project, folder, scan::MAX_ENTRIES).ok()?;
        Some(entries.into_iter().map(|entry| scan::Entry { name: entry.name, is_folder: entry.is_folder }).collect())
    }

    fn read(&self, path: &str, max_bytes: u32) -> Option<String> {
        project_files::read_start(Root::Project, path, max_bytes).ok()
    }
}

fn report<T>(done: Result<T, omc_state::Error>) -> Option<T> {
    done.inspect_err(|error| log::warn(&error.chain())).ok()
}

#[cfg(test)]
mod tests;
