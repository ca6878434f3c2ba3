//! Write guests for omc-host in Rust: a struct, one trait, one macro.
//!
//! A guest is a WebAssembly component that omc-host calls with an event of a coding agent. It looks at the event, may add
//! [`Effects`], and returns a [`Decision`]. It reaches only what its manifest requests and the operator grants: files below
//! [`omc_dir`] through plain `std::fs`, and the functions of this crate's modules.
//!
//! ```
//! use omc_guest::{Decision, Effects, Error, Event, EventKind, Guest};
//!
//! struct NoForcePush;
//!
//! impl Guest for NoForcePush {
//!     fn handle(event: &Event, _effects: &mut Effects) -> Result<Decision, Error> {
//!         if event.kind() != EventKind::PreToolUse {
//!             return Ok(Decision::Pass);
//!         }
//!         let command = event.text("/tool_input/command").unwrap_or_default();
//!         if command.contains("push --force") {
//!             return Ok(Decision::Block("ask a person before you rewrite a shared branch".into()));
//!         }
//!         Ok(Decision::Pass)
//!     }
//! }
//!
//! omc_guest::export!(NoForcePush, {
//!     "description": "Keeps shared branches as they are",
//!     "subscriptions": [{ "event": "pre-tool-use", "matcher": "Bash" }],
//!     "requests": []
//! });
//! # fn main() {}
//! ```
//!
//! `cargo build --release --target wasm32-wasip2` makes the component, with the manifest inside; the crate is a `cdylib`.
//! `omc-host guests new NAME` writes such a crate, and `omc-host guests add FILE` adds what was built.
//!
//! # What an event tells
//!
//! [`Event`] has what most guests ask for in typed form, the same for every agent: what a tool does ([`Event::tool_kind`]), which
//! files it names ([`Event::tool_paths`]), its command, its result. Everything else is in the agent's payload, by JSON pointer.
//!
//! ```
//! use omc_guest::testing::World;
//! use omc_guest::{Decision, Effects, Error, Event, Guest, Operation};
//!
//! /// Asks a person before a lock file is written by hand, whichever tool does it.
//! struct LockFiles;
//!
//! impl Guest for LockFiles {
//!     fn handle(event: &Event, _effects: &mut Effects) -> Result<Decision, Error> {
//!         let Ok(paths) = event.tool_paths() else { return Ok(Decision::Ask("too many files to look at".into())) };
//!         let is_written = |operation| matches!(operation, Operation::Write | Operation::Edit | Operation::Delete);
//!         match paths.iter().find(|found| is_written(found.operation) && found.path.ends_with(".lock")) {
//!             Some(found) => Ok(Decision::Ask(format!("`{}` is written by a tool of its own", found.path))),
//!             None => Ok(Decision::Pass),
//!         }
//!     }
//! }
//!
//! let payload = serde_json::json!({
//!     "cwd": "/work", "tool_name": "Edit",
//!     "tool_input": { "file_path": "Cargo.lock", "old_string": "1", "new_string": "2" },
//! });
//! let outcome = World::new("pre-tool-use", payload).call::<LockFiles>();
//! assert_eq!(outcome.decision, Ok(Decision::Ask("`/work/Cargo.lock` is written by a tool of its own".into())));
//! ```
//!
//! # What a guest keeps
//!
//! No memory is kept between calls: each event is a process. [`State`] has a guest's own files, changed under a lock and never half
//! written; [`log`] writes lines to the audit trail.
//!
//! # Tests
//!
//! Natively the same functions answer from [`testing::World`], so that a guest's logic and glue are tested without wasm and without a
//! host: `cargo test`.
#![warn(missing_docs)]

mod access;
mod capabilities;
mod decision;
mod effects;
mod event;
mod export;
mod state;
#[cfg(not(target_arch = "wasm32"))]
pub mod testing;

#[doc(hidden)]
#[allow(missing_docs, unreachable_pub, unsafe_code, clippy::all, clippy::pedantic, reason = "written by wit-bindgen")]
pub mod bindings {
    wit_bindgen::generate!({
        world: "guest",
        path: "wit",
        pub_export_macro: true,
        default_bindings_module: "omc_guest::bindings",
    });
}

pub use access::AccessError;
pub use capabilities::{
    environment, git, log, omc_dir, omc_user_dir, project_files, session_environment, settings, state_lock, transcript,
};
pub use decision::{Decision, Error};
pub use effects::{EffectError, Effects};
pub use event::{Event, EventKind};
#[doc(hidden)]
pub use export::{Adapter, exports, section};
pub use omc_tool::{Operation, ToolKind, ToolPath};
pub use state::{State, StateError};

/// What a guest is: one function from an event to a decision.
pub trait Guest {
    /// Handles one event.
    ///
    /// Keep no state between calls: each event may get an instance of its own. Answer [`Decision::Pass`] to kinds of events
    /// that you do not know.
    ///
    /// # Errors
    ///
    /// An error is a fault: it is recorded in the trail, the operator's failure policy decides (by default the agent goes on),
    /// and what was added to `effects` is dropped.
    fn handle(event: &Event<'_>, effects: &mut Effects<'_>) -> Result<Decision, Error>;
}

/// The example of the README compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
