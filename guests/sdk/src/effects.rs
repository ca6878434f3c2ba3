//! What a guest adds to its decision.

use std::fmt;

use serde_json::Value;

use crate::bindings::omc::hook::types;
#[cfg(not(target_arch = "wasm32"))]
use crate::testing::Recorded;

/// What a guest adds to its decision. What the event of this agent cannot carry is dropped and recorded in the trail.
#[derive(Debug)]
pub struct Effects<'a>(Sink<'a>);

#[derive(Debug)]
enum Sink<'a> {
    Host(&'a types::Effects),
    #[cfg(not(target_arch = "wasm32"))]
    Test(&'a mut Recorded),
}

impl<'a> Effects<'a> {
    pub(crate) fn from_host(effects: &'a types::Effects) -> Self {
        Self(Sink::Host(effects))
    }

    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn record(recorded: &'a mut Recorded) -> Self {
        Self(Sink::Test(recorded))
    }

    /// Adds text for the model: at most 10,000 UTF-16 units for all calls together, unless the operator set another limit.
    ///
    /// # Errors
    ///
    /// [`EffectError::TooLong`]: nothing of the text was taken.
    pub fn add_context(&mut self, text: &str) -> Result<(), EffectError> {
        match &mut self.0 {
            Sink::Host(effects) => effects.add_context(text).map_err(EffectError::from),
            #[cfg(not(target_arch = "wasm32"))]
            Sink::Test(recorded) => recorded.add_context(text),
        }
    }

    /// Adds a short text for the person at the keyboard: at most 4,000 UTF-16 units together.
    ///
    /// # Errors
    ///
    /// [`EffectError::TooLong`]: nothing of the text was taken.
    pub fn add_message(&mut self, text: &str) -> Result<(), EffectError> {
        match &mut self.0 {
            Sink::Host(effects) => effects.add_message(text).map_err(EffectError::from),
            #[cfg(not(target_arch = "wasm32"))]
            Sink::Test(recorded) => recorded.add_message(text),
        }
    }

    /// Replaces the tool's whole input by this JSON object, 1 MiB at most.
    ///
    /// # Errors
    ///
    /// [`EffectError::Denied`] without the grant `update-input`; [`EffectError::Invalid`] if it is not an object;
    /// [`EffectError::TooMany`] the second time.
    pub fn update_input(&mut self, input: &Value) -> Result<(), EffectError> {
        match &mut self.0 {
            Sink::Host(effects) => effects.update_input(&input.to_string()).map_err(EffectError::from),
            #[cfg(not(target_arch = "wasm32"))]
            Sink::Test(recorded) => recorded.update_input(input),
        }
    }
}

/// Why an effect was not taken.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum EffectError {
    /// The guest has no grant for this effect.
    Denied,
    /// The text is over the limit; nothing of it was taken.
    TooLong,
    /// It is set already, or there are too many.
    TooMany,
    /// The text is not what the effect needs, such as a JSON object.
    Invalid,
    /// Any other reason.
    Other,
}

impl From<types::EffectError> for EffectError {
    fn from(error: types::EffectError) -> Self {
        match error {
            types::EffectError::Denied => Self::Denied,
            types::EffectError::TooLong => Self::TooLong,
            types::EffectError::TooMany => Self::TooMany,
            types::EffectError::Invalid => Self::Invalid,
            types::EffectError::Other => Self::Other,
        }
    }
}

impl fmt::Display for EffectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Denied => "the guest has no grant for this effect",
            Self::TooLong => "the text is over the limit",
            Self::TooMany => "the effect is set already",
            Self::Invalid => "the text is not what the effect needs",
            Self::Other => "the host did not take the effect",
        })
    }
}

impl std::error::Error for EffectError {}

impl From<EffectError> for crate::Error {
    fn from(error: EffectError) -> Self {
        Self::new(error.to_string())
    }
}
