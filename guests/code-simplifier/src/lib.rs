//! Has changed code simplified before a turn ends.
//!
//! Off unless the setting `codeSimplifier.enabled` is on. On a Stop of the main conversation the guest asks the host which files
//! differ from the last commit and refuses the end of the turn once for those that the session was not asked about yet. While a
//! mode is at work the code is not finished, and when the turn ended for another reason than that the model was done, nobody is
//! held.

pub mod logic;

use std::time::SystemTime;

use omc_bare as _;
use omc_guest::{Decision, Effects, Error, Event, EventKind, Guest, git, log, settings, state_lock};
use omc_state::{Invocation, SessionId, Store};
use omc_turn::{Turn, changed_files};

use logic::{DEFAULT_EXTENSIONS, DEFAULT_MAX_FILES, refusal, to_simplify};

/// The guest.
#[derive(Debug)]
pub struct CodeSimplifier;

omc_guest::export!(CodeSimplifier, {
    "description": "Has changed code simplified before a turn ends, if the user wants that",
    "subscriptions": [{"event": "stop", "order": 300, "when": ["setting:codeSimplifier.enabled"]}],
    "requests": [
        {"capability": "omc", "scope": ["rw:/omc/state"], "reason": "notes which files a session was asked about, and sees whether a mode is at work"},
        {"capability": "git", "reason": "knows from it which files were changed"},
        {"capability": "read", "scope": ["project:**"], "reason": "finds the names of the files in new folders, whatever kinds of files the user wants to be simplified"},
        {"capability": "transcript", "reason": "lets go when the context is full, and reads there how full it is"}
    ]
});

impl Guest for CodeSimplifier {
    fn handle(event: &Event<'_>, _effects: &mut Effects<'_>) -> Result<Decision, Error> {
        if event.kind() != EventKind::Stop
            || event.subagent_id().is_some()
            || settings::get("codeSimplifier.enabled") != Some(true)
        {
            return Ok(Decision::Pass);
        }
        let Some(session) = event.session_id().as_deref().and_then(SessionId::parse) else { return Ok(Decision::Pass) };
        let store = Store::new(&omc_guest::omc_dir());
        if !store.live_modes(&session, SystemTime::now().into()).is_empty() || Turn::of(event).cause().is_some() {
            return Ok(Decision::Pass);
        }
        let invocation = Invocation::of_agent(&event.agent());
        Ok(ask(&store, &session, invocation).map_or(Decision::Pass, Decision::Block))
    }
}

/// The words for files that the session was not asked about yet, if there are any.
fn ask(store: &Store, session: &SessionId, invocation: Invocation) -> Option<String> {
    let changed = match changed_files() {
        Ok(changed) => changed,
        Err(error) => {
            log::debug(&format!("nothing is known of changes: {error}"));
            return None;
        }
    };
    let head = git::head().ok().flatten().unwrap_or_default();
    let extensions = settings::get::<Vec<String>>("codeSimplifier.extensions").filter(|list| !list.is_empty());
    let extensions = extensions.unwrap_or_else(|| DEFAULT_EXTENSIONS.iter().map(|&it| it.to_owned()).collect());
    let max_files = settings::get("codeSimplifier.maxFiles").unwrap_or(DEFAULT_MAX_FILES);
    let noted = store.locked(&state_lock::acquire, session, |store| {
        let known = store.read_simplified(session, &head);
        let files = to_simplify(changed.iter().map(|file| file.path.as_str()), &extensions, &known);
        if !files.is_empty() {
            store.note_simplified(session, &head, &files)?;
        }
        Ok(files)
    });
    match noted {
        Ok(files) => refusal(&files, max_files, invocation),
        Err(error) => {
            log::warn(&format!("let the agent stop: {}", error.chain()));
            None
        }
    }
}

#[cfg(test)]
mod tests;
