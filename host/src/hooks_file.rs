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
pub(crate) use trust::Trust;
pub use trust::Trusted;

use self::document::Document;
use crate::protocol::event::Agent;

/// Converts the text of a hooks file for another agent; an error says why it cannot be read.
pub fn convert(path: &Path, text: &str, from: Option<Agent>, to: Agent) -> Result<Converted, String> {
    Ok(convert::convert(&Document::parse(path, text, from)?, to))
}

/// A handler as it is written, with its event.
#[derive(Debug)]
pub(crate) struct Registered {
    pub(crate) event: String,
    pub(crate) handler: Value,
}

/// Every handler of a hooks file; an error says why it cannot be read.
pub(crate) fn handlers(path: &Path, text: &str, agent: Agent) -> Result<Vec<Registered>, String> {
    let document = Document::parse(path, text, Some(agent))?;
    let list = |value: &Value, member: &str| value.get(member).and_then(Value::as_array).cloned().unwrap_or_default();
    let registered = document.events().flat_map(|(event, groups)| {
        let handlers = groups.as_array().into_iter().flatten().flat_map(|group| list(group, "hooks"));
        handlers.map(|handler| Registered { event: event.to_owned(), handler }).collect::<Vec<_>>()
    });
    Ok(registered.collect())
}

/// The members of a TOML file; an error says why it cannot be read.
pub(crate) fn toml(text: &str) -> Result<Map<String, Value>, String> {
    Ok(Document::parse(Path::new("config.toml"), text, None)?.root)
}

/// The hashes that a Codex configuration trusts; nothing if it cannot be read.
pub fn trusted(path: &Path, text: &str) -> Option<Trusted> {
    Some(Trusted::of(&Document::parse(path, text, Some(Agent::Codex)).ok()?.root))
}
