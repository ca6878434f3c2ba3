//! What a guest returns.

use std::fmt;

/// What the guest says about the event.
///
/// Reasons are for the model or the person: short, clear, at most 4,000 UTF-16 units; longer ones are cut by the host.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Decision {
    /// No opinion.
    Pass,
    /// The thing asked about may happen without a question. Needs the grant `allow`.
    Allow,
    /// A person must decide, for this reason.
    Ask(String),
    /// This must not happen, for this reason: a tool is not run, a prompt not sent, a stop not made, a result is objected to.
    Block(String),
    /// The agent must end its turn, for this reason. Needs the grant `halt`; never on a stop.
    Halt(String),
}

/// Why a guest could not decide; a text for the audit trail.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Error(String);

impl Error {
    /// An error with this text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<String> for Error {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl From<&str> for Error {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        Self(error.to_string())
    }
}

impl From<serde_json::Error> for Error {
    fn from(error: serde_json::Error) -> Self {
        Self(error.to_string())
    }
}
