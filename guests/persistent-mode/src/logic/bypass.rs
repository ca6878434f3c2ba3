//! When the agent may stop whatever the modes want: the turn did not end because the model thought it was done.
//!
//! A refusal here would trap the user (who stopped it), waste requests (which the provider refuses anyway) or break the
//! session (whose context is full). The states stay as they are, so the next plain Stop is held again.

use omc_state::Pending;
use omc_turn::Cause;

use super::{StopFacts, reason::CANCEL};

/// Why the agent may stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bypass {
    /// A team's leader decides about its workers.
    TeamWorker,
    /// The turn ended for a reason of its own.
    Turn(Cause),
    /// Work of the session goes on without this turn, and will wake it.
    WorkPending,
}

/// The bypass of this Stop, if there is one; `pending` is what the session is waiting for.
pub fn find(facts: &StopFacts, pending: Option<Pending>) -> Option<Bypass> {
    if facts.is_team_worker {
        return Some(Bypass::TeamWorker);
    }
    facts.turn.cause().map(Bypass::Turn).or_else(|| pending.map(|_| Bypass::WorkPending))
}

impl Bypass {
    /// What the person should know, about the mode or skill that was let go: only what they did not do or see themselves.
    pub(super) fn message(self, holder: &str) -> Option<String> {
        match self {
            Self::Turn(Cause::RateLimited) => Some(format!(
                "[{} PAUSED - RATE LIMITED] The provider takes no more requests for now, so the agent may stop. It is \
                 still on: send a message to go on later, or end it with {CANCEL}.",
                holder.to_uppercase()
            )),
            Self::Turn(Cause::NotAuthorised) => Some(format!(
                "[PERSISTENT MODE PAUSED - AUTHENTICATION ERROR] The provider refused the login, so the agent may stop. {holder} \
                 is still on: log in again and send a message to go on, or end it with {CANCEL}."
            )),
            _ => None,
        }
    }
}
