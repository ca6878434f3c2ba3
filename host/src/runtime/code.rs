//! Trusted compiled code: the one place that turns bytes into something to execute.
//!
//! Compiled code is native code. Loading it is safe if and only if our own compiler wrote it, so this module says who may hand
//! it in, and nothing else in the host is allowed to use `unsafe`.
#![expect(unsafe_code, reason = "loading compiled code is unsafe by nature; see the argument at each use")]

use std::fs::File;
use std::io::Read as _;

use wasmtime::Engine;
use wasmtime::component::Component;

use super::fault::{Fault, FaultKind};

/// Compiled code and where its trust comes from.
pub(crate) enum Code {
    /// Put into this binary when it was built.
    Embedded(&'static [u8]),
    /// Opened from a cache file that only the user can write; see [`crate::registry::trusted_code`], which checks the opened
    /// file, not its name.
    Cached(File),
}

impl Code {
    /// Loads the code. It fails if the code was made by another version of the engine, for another target or with other settings.
    pub(super) fn load(self, engine: &Engine) -> Result<Component, Fault> {
        let loaded = match self {
            // SAFETY: the bytes were written by `omc-compiler`, of the same engine version, while this binary was built, and
            // they are part of it: whoever could change them could change the host.
            Self::Embedded(bytes) => unsafe { Component::deserialize(engine, bytes) },
            Self::Cached(mut file) => {
                let mut bytes = Vec::new();
                file.read_to_end(&mut bytes).map_err(|error| {
                    Fault::new(FaultKind::NotCompiled, format!("failed to read compiled code: {error}"))
                })?;
                // SAFETY: `registry::trusted_code` opened the file without following links, and saw that it and its folder
                // belong to the user and nobody else can write them. Into that folder only `omc-host guests add` writes, and
                // what it writes comes from `omc-compiler`. Whoever can write there as the user can replace the host as well.
                // The bytes are a private copy: a later change of the file does not reach them.
                unsafe { Component::deserialize(engine, bytes) }
            }
        };
        loaded.map_err(|error| Fault::new(FaultKind::NotCompiled, format!("compiled code does not load: {error:#}")))
    }
}
