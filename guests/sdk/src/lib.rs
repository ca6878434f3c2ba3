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
//! Natively the same functions answer from [`testing::World`], so that a guest's logic and glue are tested without wasm.
#![warn(missing_docs)]

mod access;
mod capabilities;
mod decision;
mod effects;
mod event;
mod export;
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
