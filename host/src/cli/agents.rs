//! Agents as arguments.

use crate::protocol::dialect::{Dialect, dialect};
use crate::protocol::event::Agent;

/// An agent whose hooks files are known.
pub(super) fn agent(name: &str) -> Result<Agent, String> {
    match dialect(name).map(Dialect::agent) {
        Some(agent @ (Agent::Claude | Agent::Codex)) => Ok(agent),
        _ => Err("the hooks files that are known are those of claude and codex".to_owned()),
    }
}
