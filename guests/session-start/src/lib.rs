//! Tells a session what it left behind, and notes that it began.
//!
//! At every start the guest notes the time of the first one, which the summary at the end counts from, and gives the model back
//! what it cannot know: the modes that are on, the priority context of the notepad, how much is left to do, after a compaction where
//! the plans' wisdom lies, and how to name models where the usual names may be unknown. Old working memory, dead sessions and old
//! checkpoints go on the way.
//!
//! Without a usable session id no state is read or written; notes and to-do lists belong to the project and are told all the
//! same. What cannot be read or written is logged and left out.

pub mod logic;

use std::time::SystemTime;

use omc_bare as _;
use omc_guest::project_files::{self, Root};
use omc_guest::{Decision, Effects, Error, Event, EventKind, Guest, environment, log, settings, state_lock};
use omc_state::{Invocation, Mode, ModeState, SessionId, Store, Timestamp, Todos, notepad, provider::Provider};

use logic::{Facts, compose};

/// The guest.
#[derive(Debug)]
pub struct SessionStart;

omc_guest::export!(SessionStart, {
    "description": "Gives a session back its modes, priority notes and open tasks",
    "subscriptions": [{"event": "session-start", "order": 100}],
    "requests": [
        {"capability": "omc", "scope": ["rw:/omc"], "reason": "notes the start, drops old notes from the notepad, removes dead sessions and old records"},
        {"capability": "read", "scope": ["project:.claude/todos.json"], "reason": "counts what is left to do in the agent's own list"},
        {"capability": "env", "scope": [
            "OMC_ROUTING_FORCE_INHERIT", "CLAUDE_MODEL", "ANTHROPIC_MODEL", "CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX",
            "ANTHROPIC_BASE_URL"
        ], "reason": "tells the model if the session's provider has its own names for models"}
    ]
});

impl Guest for SessionStart {
    fn handle(event: &Event<'_>, effects: &mut Effects<'_>) -> Result<Decision, Error> {
        if event.kind() != EventKind::SessionStart {
            return Ok(Decision::Pass);
        }
        let store = Store::new(&omc_guest::omc_dir());
        let session = event.session_id().as_deref().and_then(SessionId::parse);
        let now = SystemTime::now().into();
        if let Some(session) = &session {
            report("the start was not noted", store.begin_session(session, event.cwd().as_deref(), now));
            report("`.omc` may be in the repository", store.ensure_ignored());
        }
        report("old notes stay", store.prune_notepad(&state_lock::acquire, notepad::WORKING_DAYS, now));

        let source = event.source().unwrap_or_default();
        let agent = event.agent();
        let facts = Facts {
            invocation: Invocation::of_agent(&agent),
            // Only Claude Code's calls name models by tiers.
            has_own_models: agent == "claude" && has_own_models(),
            ..gather(&store, session.as_ref(), &source, now)
        };
        if let Some(text) = compose(&facts) {
            effects.add_context(&text)?;
        }
        report("not everything was cleared away", store.clean_up(&state_lock::acquire, session.as_ref(), now));
        Ok(Decision::Pass)
    }
}

fn gather(store: &Store, session: Option<&SessionId>, source: &str, now: Timestamp) -> Facts {
    let is_compacted = source == "compact";
    let mut unreadable_notepad = None;
    let priority = store.read_notepad().unwrap_or_else(|error| {
        log::warn(&format!("the notepad is left out: {}", error.chain()));
        unreadable_notepad = error.is_unreadable_text().then(|| error.to_string());
        None
    });
    Facts {
        is_compacted,
        modes: session.map(|session| running_modes(store, session, now)).unwrap_or_default(),
        priority: priority.and_then(|notepad| notepad.text(notepad::Section::Priority)),
        unreadable_notepad,
        open_todos: store.read_todos().and(agents_todos()).open(),
        wisdom_path: session
            .filter(|_| is_compacted)
            .and_then(|session| store.latest_checkpoint(session)?.wisdom_path()),
        ..Facts::default()
    }
}

/// Whether the session's provider has its own names for models, or the user said that subagents must not name theirs.
fn has_own_models() -> bool {
    let env = |name: &str| environment::get(name);
    let provider = Provider::new(&env);
    provider.forced().unwrap_or_else(|| {
        provider.is_bedrock()
            || provider.is_vertex()
            || provider.is_elsewhere()
            || settings::get("routing.forceInherit").unwrap_or(false)
    })
}

/// The agent's own to-do list.
fn agents_todos() -> Todos {
    let text = project_files::read(Root::Project, ".claude/todos.json", Todos::MAX_BYTES);
    text.map_or_else(|_| Todos::default(), |text| Todos::parse(&text))
}

/// The session's modes that are on and that nobody has ended.
fn running_modes(store: &Store, session: &SessionId, now: Timestamp) -> Vec<(Mode, ModeState)> {
    let mut modes = Vec::new();
    let mut first_error = None;
    for &mode in Mode::ALL {
        match store.read_mode(session, mode) {
            Ok(Some(state)) if logic::is_running(&state, now) => modes.push((mode, state)),
            Ok(_) => {}
            Err(error) => first_error = first_error.or(Some(error)),
        }
    }
    // One line for all: what is wrong with a folder is wrong with each file in it.
    report("not every mode counts", first_error.map_or(Ok(()), Err));
    if !modes.is_empty() {
        let (skills, signals) = (store.read_skills(session), store.read_cancel_signals(session));
        modes.retain(|(mode, state)| {
            !skills.has_completed(*mode, now) && !signals.iter().any(|signal| signal.covers(*mode, state, now))
        });
    }
    modes
}

fn report<T>(what: &str, done: Result<T, omc_state::Error>) {
    if let Err(error) = done {
        log::warn(&format!("{what}: {}", error.chain()));
    }
}

#[cfg(test)]
mod tests;
