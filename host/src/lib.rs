//! To be written.

pub mod capability;
pub mod config;
