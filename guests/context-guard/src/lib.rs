//! Asks for a compaction before the context is full.
//!
//! On a Stop of the main conversation the guest looks at how full the context is: as the event says, else the transcript's end,
//! else what the status line noted. From the threshold on it refuses the end of the turn twice and asks for `/compact`; a
//! compaction starts the count anew. From [`CRITICAL_PERCENT`] on, and whenever the turn ended for another reason than that the
//! model was done, it lets go. Without a session nobody could count, so it says nothing.

pub mod logic;

use std::time::SystemTime;

use omc_bare as _;
use omc_guest::{Decision, Effects, Error, Event, EventKind, Guest, environment, log, state_lock};
use omc_state::{Breaker, SessionId, Store, Timestamp};
use omc_turn::{CRITICAL_PERCENT, Turn};

use logic::{DEFAULT_THRESHOLD, MAX_REFUSALS, refusal};

/// The variable with which the user moves the threshold.
const THRESHOLD: &str = "OMC_CONTEXT_GUARD_THRESHOLD";

/// The guest.
#[derive(Debug)]
pub struct ContextGuard;

omc_guest::export!(ContextGuard, {
    "description": "Asks for a compaction before the context is full",
    "subscriptions": [
        {"event": "stop", "order": 100},
        {"event": "pre-compact", "order": 900, "when": ["file:/omc/state/sessions/{session}/context-guard-stop-breaker.json"]},
        {"event": "session-start", "matcher": "compact", "order": 900, "when": ["file:/omc/state/sessions/{session}/context-guard-stop-breaker.json"]}
    ],
    "requests": [
        {"capability": "omc", "scope": ["rw:/omc/state"], "reason": "counts its refusals for each session, and reads what the status line noted"},
        {"capability": "transcript", "reason": "reads there how full the context is"},
        {"capability": "env", "scope": ["OMC_CONTEXT_GUARD_THRESHOLD"], "reason": "the user's own threshold"}
    ]
});

impl Guest for ContextGuard {
    fn handle(event: &Event<'_>, _effects: &mut Effects<'_>) -> Result<Decision, Error> {
        let Some(session) = event.session_id().as_deref().and_then(SessionId::parse) else { return Ok(Decision::Pass) };
        if event.subagent_id().is_some() {
            return Ok(Decision::Pass);
        }
        let store = Store::new(&omc_guest::omc_dir());
        Ok(match event.kind() {
            EventKind::Stop => stop(event, &store, &session),
            EventKind::PreCompact | EventKind::SessionStart => {
                start_anew(&store, &session);
                Decision::Pass
            }
            _ => Decision::Pass,
        })
    }
}

fn now() -> Timestamp {
    SystemTime::now().into()
}

fn stop(event: &Event<'_>, store: &Store, session: &SessionId) -> Decision {
    let turn = Turn::of(event);
    let noted = || store.read_status_line_percent(session);
    let Some(percent) = turn.context_percent.or_else(noted) else { return Decision::Pass };
    let Some(threshold) = threshold() else { return Decision::Pass };
    if percent < threshold || percent >= CRITICAL_PERCENT || turn.cause().is_some() {
        return Decision::Pass;
    }
    let counted = store.locked(&state_lock::acquire, session, |store| {
        let before = store.read_breaker(session, Breaker::ContextGuard, now());
        if before >= MAX_REFUSALS {
            return Ok(None);
        }
        store.write_breaker(session, Breaker::ContextGuard, before + 1, now())?;
        Ok(Some(before + 1))
    });
    match counted {
        Ok(Some(count)) => Decision::Block(refusal(percent, threshold, count)),
        Ok(None) => Decision::Pass,
        Err(error) => {
            log::warn(&format!("let the agent stop: {}", error.chain()));
            Decision::Pass
        }
    }
}

/// The user's threshold; absent if it is no number, which switches the guard off.
fn threshold() -> Option<u64> {
    let Some(text) = environment::get(THRESHOLD).filter(|text| !text.trim().is_empty()) else {
        return Some(DEFAULT_THRESHOLD);
    };
    let threshold = text.trim().parse().ok();
    if threshold.is_none() {
        log::warn(&format!("{THRESHOLD} is no whole number, so the guard is off"));
    }
    threshold
}

/// The context is compacted: what was refused before does not count for the next time it fills.
fn start_anew(store: &Store, session: &SessionId) {
    if store.has_breaker(session, Breaker::ContextGuard)
        && let Err(error) = store.clear_breaker(session, Breaker::ContextGuard)
    {
        log::warn(&format!("the count goes on: {}", error.chain()));
    }
}

#[cfg(test)]
mod tests;
