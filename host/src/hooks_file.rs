//! Agents' hooks files: the ones this project ships, and what anybody's mean.
//!
//! Not on the path of an event. All of it rests on the contracts (an agent, its events, what a matcher of each is compared
//! with, and how long the agent waits) and on the tables of `rules`: what an agent takes in its file.

pub mod check;
mod convert;
mod document;
pub(crate) mod ours;
mod reach;
mod rules;
mod trust;

use std::path::Path;

use serde_json::{Map, Value};

pub use convert::Converted;
pub use ours::plugin_file;
pub use trust::Trusted;

use self::document::Document;
use crate::protocol::event::Agent;

/// Converts the text of a hooks file for another agent; an error says why it cannot be read.
pub fn convert(path: &Path, text: &str, from: Option<Agent>, to: Agent) -> Result<Converted, String> {
    Ok(convert::convert(&Document::parse(path, text, from)?, to))
}

/// The members of a TOML file; an error says why it cannot be read.
pub(crate) fn toml(text: &str) -> Result<Map<String, Value>, String> {
    Ok(Document::parse(Path::new("config.toml"), text, None)?.root)
}

/// The hashes that a Codex configuration trusts; nothing if it cannot be read.
pub fn trusted(path: &Path, text: &str) -> Option<Trusted> {
    Some(Trusted::of(&Document::parse(path, text, Some(Agent::Codex)).ok()?.root))
}
