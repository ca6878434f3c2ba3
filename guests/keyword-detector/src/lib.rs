//! Finds the words in a prompt that start or cancel a mode.
//!
//! On a prompt of the user [`logic::detect`] says what it asks for. The modes that start get their states, under the session's
//! lock, before the model is told, and a mode whose state cannot be written does not start; the Stop guard (persistent-mode) holds
//! the agent to them. A cancel leaves its signal first and then ends every mode of the session. What started is also noted in the
//! session's trace, for people.
//!
//! Prompts of subagents and of team workers are their leader's words and start nothing. Without a usable session id nothing is
//! read or written, and only the text is given.

mod approved_plan;
pub mod logic;

use std::time::SystemTime;

use omc_bare as _;
use omc_guest::{Decision, Effects, Error, Event, EventKind, Guest, environment, log, settings, state_lock};
use omc_state::{Invocation, Mode, NewMode, SessionId, Store, Timestamp};
use serde_json::json;

use logic::{Activation, Detection, Keyword, Settings, Start, activate, cancelled, detect, started, team};

/// Ralph's first limit of iterations where the host knows no setting: the original's.
const MAX_ITERATIONS: u64 = 100;

/// The guest.
#[derive(Debug)]
pub struct KeywordDetector;

omc_guest::export!(KeywordDetector, {
    "description": "Starts and cancels modes by the words of a prompt",
    "subscriptions": [{"event": "user-prompt-submit", "order": 100}],
    "requests": [
        {"capability": "omc", "scope": ["rw:/omc/state", "ro:/omc/plans"], "reason": "writes the states of the modes that start, and looks for an approved plan"},
        {"capability": "env", "scope": ["OMC_TEAM_WORKER"], "reason": "the prompts of a team worker are its leader's and start nothing"}
    ]
});

impl Guest for KeywordDetector {
    fn handle(event: &Event<'_>, effects: &mut Effects<'_>) -> Result<Decision, Error> {
        if event.kind() != EventKind::UserPromptSubmit || event.subagent_id().is_some() {
            return Ok(Decision::Pass);
        }
        let Some(prompt) = event.prompt() else { return Ok(Decision::Pass) };
        if environment::get("OMC_TEAM_WORKER").is_some_and(|worker| !worker.is_empty()) {
            return Ok(Decision::Pass);
        }
        let store = Store::new(&omc_guest::omc_dir());
        let session = event.session_id().as_deref().and_then(SessionId::parse);
        let plan_is_approved =
            |lane| session.as_ref().is_some_and(|session| approved_plan::exists(&store, session, lane));
        let invocation = Invocation::of_agent(&event.agent());
        match detect(&prompt, &Settings { invocation, ..user_settings() }, plan_is_approved) {
            Detection::Nothing => {}
            Detection::Cancel => {
                let ended = session.is_none_or(|session| cancel(&store, &session));
                effects.add_context(&cancelled(ended, invocation))?;
            }
            Detection::Team => effects.add_context(&team(invocation))?,
            Detection::Start(mut start) => {
                if let Some(session) = &session {
                    let project_path = event.project_root().or_else(|| event.cwd());
                    begin(&store, session, project_path.as_deref(), &mut start);
                }
                effects.add_context(&started(&start, invocation))?;
            }
        }
        Ok(Decision::Pass)
    }
}

fn now() -> Timestamp {
    SystemTime::now().into()
}

fn user_settings() -> Settings {
    let default = Settings::default();
    Settings {
        disabled: settings::get("keywordDetector.disabled").unwrap_or(default.disabled),
        gate: settings::get("keywordDetector.ralplanGate").unwrap_or(default.gate),
        gate_words: settings::get("keywordDetector.ralplanGateWords").unwrap_or(default.gate_words),
        ..default
    }
}

/// Ends every mode of the session. Says whether that worked.
fn cancel(store: &Store, session: &SessionId) -> bool {
    let ended = store.cancel(&state_lock::acquire, session, "keyword", now());
    match &ended {
        Ok(modes) => log::info(&format!("cancelled: {}", names(modes))),
        Err(error) => log::warn(&format!("not everything was ended: {}", error.chain())),
    }
    ended.is_ok()
}

/// Writes the states of the modes that start, and takes an autopilot that may not start out of `start`.
fn begin(store: &Store, session: &SessionId, project_path: Option<&str>, start: &mut Start) {
    let now = now();
    if start.modes.contains(&Keyword::Autopilot)
        && let Some(other) = store.excluded_by(session, Mode::Autopilot, now)
    {
        log::info(&format!("no autopilot beside the one of session {other}"));
        start.modes.retain(|mode| *mode != Keyword::Autopilot);
        start.autopilot_elsewhere = true;
    }
    let mut modes: Vec<Mode> = start
        .modes
        .iter()
        .filter(|mode| mode.sort().is_mode())
        .filter_map(|mode| Mode::from_name(mode.name()))
        .collect();
    if modes.is_empty() {
        return;
    }
    let with_ralph = modes.contains(&Mode::Ralph) && !modes.contains(&Mode::Ultrawork);
    if with_ralph {
        modes.push(Mode::Ultrawork);
    }
    let awaiting_confirmation = !start.by_command;
    let activation = Activation {
        start: NewMode { session, prompt: &start.prompt, project_path, awaiting_confirmation, now },
        max_iterations: settings::get("ralph.maxIterations").unwrap_or(MAX_ITERATIONS),
        with_ralph,
    };
    let written = store.locked(&state_lock::acquire, session, |store| {
        write_states(store, &modes, &activation)?;
        trace(store, session, start, &modes, now);
        Ok(())
    });
    match written {
        Ok(()) => log::info(&format!("started: {}", names(&modes))),
        Err(error) => {
            log::warn(&format!("not started, as not every state could be written: {}", error.chain()));
            start.unwritten = start.modes.extract_if(.., |mode| mode.sort().is_mode()).collect();
            start.redirected.clear();
        }
    }
}

/// Writes the states of all modes, or leaves things as they were.
fn write_states(store: &Store, modes: &[Mode], activation: &Activation<'_>) -> Result<(), omc_state::Error> {
    let NewMode { session, now, .. } = activation.start;
    let mut undo = Vec::new();
    let written = modes.iter().try_for_each(|&mode| {
        // What cannot be read is set aside by the write.
        let existing = store.read_mode(session, mode).unwrap_or_default();
        let state = activate(mode, existing.clone(), activation);
        store.write_mode(session, mode, &state)?;
        undo.push((mode, existing, state));
        store.clear_tombstone(session, mode)
    });
    let written = written.and_then(|()| store.clear_cancel_signal(session));
    if written.is_err() {
        for (mode, existing, mut state) in undo {
            state.end("not_started", now);
            if let Err(error) = store.write_mode(session, mode, existing.as_ref().unwrap_or(&state)) {
                log::warn(&format!("{mode} may be on although nobody was told: {}", error.chain()));
            }
        }
    }
    written
}

/// Notes the keywords and the modes that they started. Nothing depends on it.
fn trace(store: &Store, session: &SessionId, start: &Start, modes: &[Mode], now: Timestamp) {
    let keywords = start.modes.iter().chain(&start.blocks).map(|keyword| keyword.name());
    let keywords = keywords.map(|name| json!({"agent": "system", "event": "keyword_detected", "keyword": name}));
    let changes = modes.iter().map(|mode| mode.name());
    let changes =
        changes.map(|name| json!({"agent": "system", "event": "mode_change", "mode_from": "none", "mode_to": name}));
    let lines = keywords.chain(changes).filter_map(|line| line.as_object().cloned());
    if let Err(error) = store.trace(session, lines, now) {
        log::warn(&format!("the start was not traced: {}", error.chain()));
    }
}

fn names(modes: &[Mode]) -> String {
    modes.iter().map(|mode| mode.name()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests;
