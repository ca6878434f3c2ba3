//! The library behind `omc-host`: what happens between a coding agent's event and the answer to it.

pub mod capability;
pub mod config;
pub mod input;
pub mod protocol;
