//! Why the host did not give what was asked.

use std::fmt;

use crate::bindings::omc::hook::types;

/// Why an interface of the host did not give what was asked.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum AccessError {
    /// The guest has no grant for this. The refusal is in the trail.
    Denied,
    /// There is no such thing.
    NotFound,
    /// It is larger than a limit.
    TooLarge,
    /// Anything else; the text is for people and not stable.
    Other(String),
}

impl From<types::AccessError> for AccessError {
    fn from(error: types::AccessError) -> Self {
        match error {
            types::AccessError::Denied => Self::Denied,
            types::AccessError::NotFound => Self::NotFound,
            types::AccessError::TooLarge => Self::TooLarge,
            types::AccessError::Other(text) => Self::Other(text),
        }
    }
}

impl fmt::Display for AccessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Denied => "the guest has no grant for this",
            Self::NotFound => "there is no such thing",
            Self::TooLarge => "it is larger than a limit",
            Self::Other(text) => text,
        })
    }
}

impl std::error::Error for AccessError {}

impl From<AccessError> for crate::Error {
    fn from(error: AccessError) -> Self {
        Self::new(error.to_string())
    }
}
