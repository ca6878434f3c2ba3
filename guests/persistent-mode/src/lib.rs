//! Refuses the end of a turn while a mode of the session is on and not done.
//!
//! On Stop the guest reads the session's states and lets [`logic::on_stop`] decide; a refusal counts, so it is decided and
//! written under the session's lock, and only what could be written is said. When the Skill tool starts a mode, its state no
//! longer awaits confirmation; when it starts another skill that needs more than a turn, that skill is at work until the tool
//! reports its end; when it has started `cancel`, everything ends. Any tool that ran proves progress. Subagents neither obey
//! nor advance the modes of their parent, whose session id they carry.
//!
//! Faults are silent and open: a state that cannot be read holds nobody, and if it cannot be written, nobody is held by a
//! count that would never end.

pub mod logic;
mod payload;

use std::cell::OnceCell;
use std::time::SystemTime;

use omc_bare as _;
use omc_guest::{Decision, Effects, Error, Event, EventKind, Guest, log, state_lock};
use omc_state::{ActiveSkill, Breaker, Invocation, Mode, SessionId, Store, Timestamp, bare_skill_name};

use logic::{SessionState, Verdict, on_stop};

/// The guest.
#[derive(Debug)]
pub struct PersistentMode;

omc_guest::export!(PersistentMode, {
    "description": "Keeps the agent at work while a mode such as ralph, or a skill, is on and not done",
    "subscriptions": [
        {"event": "stop", "order": 200, "when": ["file:/omc/state/sessions/{session}/*-state.json", "file:/omc/state/*-state.json"]},
        {"event": "pre-tool-use", "matcher": "Skill|SlashCommand", "order": 200},
        {"event": "pre-tool-use", "matcher": "Bash|shell|shell_command|local_shell|exec_command", "order": 200, "when": ["payload:/SKILL.md"]},
        {"event": "post-tool-use", "matcher": "Skill|SlashCommand", "order": 200},
        {"event": "post-tool-use", "order": 200, "when": ["file:/omc/state/sessions/{session}/no-progress-stop-breaker.json"]},
        {"event": "post-tool-use-failure", "order": 200, "when": ["file:/omc/state/sessions/{session}/no-progress-stop-breaker.json"]}
    ],
    "requests": [
        {"capability": "omc", "scope": ["rw:/omc/state", "ro:/omc/prd.json", "ro:/omc/todos.json", "ro:/omc/ultragoal"], "reason": "reads the states of the modes and what they work through, and counts in the states"},
        {"capability": "read", "scope": ["project:prd.json", "project:.claude/todos.json", "agent:tasks/*/*.json"], "reason": "reads what ralph works through, if it lies beside the code, and counts what the agent's own lists have open"},
        {"capability": "transcript", "reason": "lets go when the context is full, and reads there how full it is"},
        {"capability": "env", "scope": ["OMC_TEAM_WORKER"], "reason": "a worker of a team has a leader who holds it"}
    ]
});

impl Guest for PersistentMode {
    fn handle(event: &Event<'_>, effects: &mut Effects<'_>) -> Result<Decision, Error> {
        let Some(session) = event.session_id().as_deref().and_then(SessionId::parse) else { return Ok(Decision::Pass) };
        let store = Store::new(&omc_guest::omc_dir());
        match event.kind() {
            EventKind::Stop if event.subagent_id().is_none() => return Ok(stop(event, effects, &store, &session)),
            EventKind::PreToolUse if event.subagent_id().is_none() => skill_starts(event, &store, &session),
            EventKind::PostToolUse => {
                note_progress(&store, &session);
                if event.subagent_id().is_none() {
                    skill_returned(event, &store, &session);
                }
            }
            EventKind::PostToolUseFailure => note_progress(&store, &session),
            _ => {}
        }
        Ok(Decision::Pass)
    }
}

fn now() -> Timestamp {
    SystemTime::now().into()
}

fn stop(event: &Event<'_>, effects: &mut Effects<'_>, store: &Store, session: &SessionId) -> Decision {
    let modes = SessionState::load_modes(store, session);
    for (mode, error) in &modes.unreadable {
        log::warn(&format!("{mode} does not count: {}", error.chain()));
    }
    if !modes.could_hold(now()) {
        return Decision::Pass;
    }
    let facts = payload::facts(event);
    // Looked for once, and only where they matter.
    let (prd_of_project, open_items) = (OnceCell::new(), OnceCell::new());
    let decide = |store: &Store| {
        let now = now();
        let mut state = SessionState::load(store, session, now);
        if state.is_on(Mode::Ralph) {
            state.prd = state.prd.or_else(|| prd_of_project.get_or_init(payload::prd_of_project).clone());
        } else if state.is_on(Mode::Ultrawork) {
            state.open_todos += open_items.get_or_init(|| payload::open_items(session));
        }
        (on_stop(&facts, &state, now), now)
    };

    // Most Stops write nothing and need no lock.
    let (mut verdict, _) = decide(store);
    if !verdict.writes.is_empty() {
        let counted = store.locked(&state_lock::acquire, session, |store| {
            let (verdict, now) = decide(store);
            verdict.writes.iter().try_for_each(|write| write.apply(store, session, now))?;
            Ok(verdict)
        });
        verdict = counted.unwrap_or_else(|error| {
            log::warn(&format!("let the agent stop: {}", error.chain()));
            Verdict::default()
        });
    }
    if let Some(message) = &verdict.message
        && let Err(error) = effects.add_message(message)
    {
        log::warn(&format!("the message was not taken: {error}"));
    }
    verdict.refusal.map_or(Decision::Pass, Decision::Block)
}

/// The skill that the event's tool starts, as it is written there.
fn skill_of(event: &Event<'_>) -> Option<String> {
    matches!(event.tool_name().as_deref(), Some("Skill" | "SlashCommand")).then(|| omc_turn::skill(event))?
}

/// The skills that the event's command reads, where agents have no tool for that: Codex shows a skill's file to the model in the shell.
fn skills_read(event: &Event<'_>) -> Vec<String> {
    if Invocation::of_agent(&event.agent()) != Invocation::Dollar {
        return Vec::new();
    }
    let command = event.tool_command().unwrap_or_default();
    let mut before: Vec<_> = command.split("/SKILL.md").collect();
    before.pop();
    let is_end = |letter: char| !(letter.is_ascii_alphanumeric() || letter == '-');
    before.into_iter().filter_map(|path| path.rsplit(is_end).next()).map(str::to_owned).collect()
}

/// A skill starts: if it is that of a mode, Stop may hold the agent from now on; if it is one that is protected, likewise.
fn skill_starts(event: &Event<'_>, store: &Store, session: &SessionId) {
    let Some(name) = skill_of(event) else {
        // Reading it confirms what a keyword has started, and starts nothing by itself: it may be a look at some file.
        return skills_read(event).iter().for_each(|name| confirm(name, store, session));
    };
    confirm(&name, store, session);
    if let Err(error) = start_anew(&name, store, session) {
        log::warn(&format!("the mode still counts as completed: {}", error.chain()));
    }
    let Some(skill) = ActiveSkill::start(&name, session, now()) else { return };
    let written = store.locked(&state_lock::acquire, session, |store| {
        let skills = store.read_skills(session);
        // A skill that another one calls is a part of that one.
        let is_nested = skills.active().is_some_and(|other| other.name() != skill.name() && !other.is_stale(now()));
        if is_nested { Ok(()) } else { store.start_skill(session, &skill) }
    });
    if let Err(error) = written {
        log::warn(&format!("the skill is not protected: {}", error.chain()));
    }
}

/// What is said of an earlier run of the mode that has this skill, that it has completed, no longer counts.
fn start_anew(skill: &str, store: &Store, session: &SessionId) -> Result<(), omc_state::Error> {
    let modes = modes_of_skill(skill);
    let skills = store.read_skills(session);
    if !modes.iter().any(|&mode| skills.has_completed(mode, now())) {
        return Ok(());
    }
    store.locked(&state_lock::acquire, session, |store| {
        modes.iter().try_for_each(|&mode| store.clear_tombstone(session, mode))
    })
}

/// The tool that started a skill has returned: `cancel` ends everything, and any other skill may be done.
fn skill_returned(event: &Event<'_>, store: &Store, session: &SessionId) {
    let Some(name) = skill_of(event).as_deref().map(bare_skill_name) else { return };
    let done = if name == "cancel" {
        store.cancel(&state_lock::acquire, session, "skill", now()).map(drop)
    } else if payload::is_only_launched(event) {
        Ok(())
    } else {
        finish_skill(store, session, &name, payload::plans_by_consensus(event, &name))
    };
    if let Err(error) = done {
        log::warn(&format!("the end of the skill was not noted: {}", error.chain()));
    }
}

/// Ends the wait for a confirmation of the mode that has this skill.
fn confirm(skill: &str, store: &Store, session: &SessionId) {
    let modes = modes_of_skill(skill);
    if let Err(error) = store.confirm_modes(&state_lock::acquire, session, &modes, now()) {
        log::warn(&format!("the mode still awaits confirmation: {}", error.chain()));
    }
}

/// The modes that this skill starts, if it is that of one. Ralph's keyword starts ultrawork with it.
fn modes_of_skill(skill: &str) -> Vec<Mode> {
    match Mode::from_skill(skill) {
        Some(Mode::Ralph) => vec![Mode::Ralph, Mode::Ultrawork],
        mode => mode.into_iter().collect(),
    }
}

fn finish_skill(store: &Store, session: &SessionId, name: &str, ends_ralplan: bool) -> Result<(), omc_state::Error> {
    let is_at_work = |store: &Store| store.read_skills(session).active().is_some_and(|skill| skill.name() == name);
    let ralplan = |store: &Store| -> Result<_, omc_state::Error> {
        let state = if ends_ralplan { store.read_mode(session, Mode::Ralplan)? } else { None };
        Ok(state.filter(omc_state::ModeState::is_active))
    };
    if !is_at_work(store) && ralplan(store)?.is_none() {
        return Ok(());
    }
    store.locked(&state_lock::acquire, session, |store| {
        if is_at_work(store) {
            store.end_active_skill(session)?;
        }
        if let Some(mut state) = ralplan(store)? {
            if !state.is_finished() {
                state.fields_mut().set("current_phase", "complete");
            }
            state.end("skill_completed", now());
            store.write_mode(session, Mode::Ralplan, &state)?;
        }
        Ok(())
    })
}

/// A tool ran: refusals since the last one no longer count. One question to the file system while nothing was refused.
fn note_progress(store: &Store, session: &SessionId) {
    if store.has_breaker(session, Breaker::NoProgress)
        && let Err(error) = store.clear_breaker(session, Breaker::NoProgress)
    {
        log::warn(&format!("progress was not noted: {}", error.chain()));
    }
}

#[cfg(test)]
mod tests;
