//! To be written.

pub mod capability;
