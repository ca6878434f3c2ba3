//! What guests can reach: the host's side of the interfaces that they import.
//!
//! The only modules that touch files, clocks or processes for a guest. Each one checks its grant at the call.

pub mod omc_dir;
pub mod wasi;
