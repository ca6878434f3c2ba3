//! Hostile input for everything that the host reads: one function a target, each with the promises that must hold.
//!
//! A target takes any bytes and panics when a promise is broken. `tests/replay.rs` runs each over its seeds and over the inputs
//! that once broke it (`seeds/TARGET`, `kept/TARGET`), as part of the ordinary tests; `cargo xtask fuzz TARGET` looks for new
//! ones with libFuzzer, for which `fuzz_targets` holds the entry points.
//!
//! A panic in the host makes it answer with silence, and one in a guest is a fault: in either case a guard has been
//! talked into looking away. So a panic is a finding, although the agent never sees it.

mod compile;
mod config;
mod event;
mod git;
mod guest;
mod hooks_file;
mod notes;
mod scratch;
mod state;

pub use compile::compile;
pub use config::{environment, guest_settings, operator_config};
pub use event::{event, matcher};
pub use git::git;
pub use guest::{component, guests};
pub use hooks_file::hooks_file;
pub use notes::notes;
pub use state::state_files;

/// A target: any bytes in; it panics if a promise is broken.
pub type Target = fn(&[u8]);

/// Every target by its name, which is also that of its entry point and of its folders with inputs.
pub const TARGETS: &[(&str, Target)] = &[
    ("compile", compile),
    ("component", component),
    ("environment", environment),
    ("event", event),
    ("git", git),
    ("guest_settings", guest_settings),
    ("guests", guests),
    ("hooks_file", hooks_file),
    ("matcher", matcher),
    ("notes", notes),
    ("operator_config", operator_config),
    ("state_files", state_files),
];
