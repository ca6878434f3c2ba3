//! Finds the words in a prompt that start or cancel a mode.
pub mod logic;
