//! x
pub mod logic;
