//! What a guest file is to omc-host: its manifest, its imports, its digest, and how it is compiled.
//!
//! The host and the ahead-of-time compiler both use this crate, so that code compiled by one is loaded by the other
//! ([`engine_config`]), and so that both read the same manifest out of the same bytes. Nothing here runs a guest.
#![warn(missing_docs)]

mod component;
mod condition;
mod engine;
mod manifest;
mod pack;
mod scope;
mod seal;

pub use component::{Component, ComponentError, MAX_COMPONENT_BYTES, hex};
pub use condition::{Condition, MAX_CONDITION_BYTES, SESSION};
pub use engine::{BASELINE_TARGETS, Baseline, WASM_STACK_BYTES, engine_config, engine_config_for};
pub use manifest::{
    Access, Capability, DEFAULT_ORDER, DirScope, MANIFEST_SECTION, MAX_MANIFEST_BYTES, Manifest, ManifestError,
    Preopen, Request, Subscription, WishedLimits,
};
pub use pack::pack;
pub use scope::{ReadRoot, ReadScope, SKIPPED_FOLDERS, part_matches};
pub use seal::{CacheEntry, MAX_SEAL_BYTES, Seal, Verdict};
