//! omc-host: routes the hook events of coding agents to sandboxed WebAssembly guests.
//!
//! Read [`dispatch`] first: it follows one event from the agent's bytes to the answer. [`cli`] is what the command line adds.

mod audit;
pub mod capability;
pub mod cli;
pub mod config;
pub mod dispatch;
mod explain;
pub mod hooks_file;
pub mod input;
mod interfaces;
pub mod operations;
mod policy;
pub mod protocol;
mod registry;
mod runtime;
mod setup;
mod signature;
mod spill;
mod surroundings;
mod telemetry;
mod text;
