//! The host's interfaces beside event and effects, one module each; natively they answer from [`crate::testing::World`].

use std::path::PathBuf;

/// The project's `.omc` directory as this guest sees it, for plain `std::fs`: what of it can be read or written is a grant.
pub fn omc_dir() -> PathBuf {
    #[cfg(target_arch = "wasm32")]
    return PathBuf::from("/omc");
    #[cfg(not(target_arch = "wasm32"))]
    crate::testing::World::with_current(crate::testing::World::omc_dir)
}

/// Lines for the audit trail: 16 KiB for all lines of a call together.
pub mod log {
    use crate::bindings::omc::hook::log::Level;

    /// A step, for the author of the guest.
    pub fn debug(message: &str) {
        write(Level::Debug, message);
    }

    /// What was done.
    pub fn info(message: &str) {
        write(Level::Info, message);
    }

    /// Something is not as it should be; the guest goes on.
    pub fn warn(message: &str) {
        write(Level::Warn, message);
    }

    /// Something failed.
    pub fn error(message: &str) {
        write(Level::Error, message);
    }

    fn write(level: Level, message: &str) {
        #[cfg(target_arch = "wasm32")]
        crate::bindings::omc::hook::log::write(level, message);
        #[cfg(not(target_arch = "wasm32"))]
        {
            let level = match level {
                Level::Debug => "debug",
                Level::Info => "info",
                Level::Warn => "warn",
                Level::Error => "error",
            };
            crate::testing::World::with_current_mut(|world| world.logged.push(format!("{level}: {message}")));
        }
    }
}

/// The user's settings, resolved by the host over all layers.
pub mod settings {
    use serde::de::DeserializeOwned;

    /// The value of a key, with its default where nobody set it; absent for a key the host does not know, or if the value is
    /// not a `T`.
    pub fn get<T: DeserializeOwned>(key: &str) -> Option<T> {
        #[cfg(target_arch = "wasm32")]
        let text = crate::bindings::omc::hook::settings::get(key);
        #[cfg(not(target_arch = "wasm32"))]
        let text = crate::testing::World::with_current(|world| world.settings.get(key).map(ToString::to_string));
        serde_json::from_str(&text?).ok()
    }
}

/// Environment variables of the host process, by the names that the manifest requests.
pub mod environment {
    /// The variable's value; absent if it is not set, not UTF-8, or not granted.
    pub fn get(name: &str) -> Option<String> {
        #[cfg(target_arch = "wasm32")]
        return crate::bindings::omc::hook::environment::get(name).ok().flatten();
        #[cfg(not(target_arch = "wasm32"))]
        crate::testing::World::with_current(|world| world.environment.get(name).cloned())
    }
}

/// The end of the session's transcript.
pub mod transcript {
    /// The last whole lines, one JSON document each, that fit into `max_bytes` (256 KiB at most); absent if there is no
    /// transcript to read, or no grant.
    pub fn tail(max_bytes: u32) -> Option<String> {
        #[cfg(target_arch = "wasm32")]
        return crate::bindings::omc::hook::transcript::tail(max_bytes).ok();
        #[cfg(not(target_arch = "wasm32"))]
        crate::testing::World::with_current(|world| world.transcript_tail(max_bytes))
    }
}

/// Locks between processes for read-modify-write on files in `.omc`.
pub mod state_lock {
    use std::time::Duration;

    /// A lock, held until it is dropped. It ends with its holder, however that ends.
    #[derive(Debug)]
    pub struct Lock {
        #[cfg(target_arch = "wasm32")]
        _held: crate::bindings::omc::hook::state_lock::Lock,
    }

    /// Waits at most `wait` for the lock of this name (1 to 64 of `a-z`, `0-9` and `-`); absent when the time ran out or there
    /// is no grant. A guest holds one lock at a time.
    pub fn acquire(name: &str, wait: Duration) -> Option<Lock> {
        #[cfg(target_arch = "wasm32")]
        {
            let wait_ms = u32::try_from(wait.as_millis()).unwrap_or(u32::MAX);
            crate::bindings::omc::hook::state_lock::acquire(name, wait_ms).ok().map(|held| Lock { _held: held })
        }
        #[cfg(not(target_arch = "wasm32"))]
        crate::testing::World::with_current(|world| world.lock(name, wait)).then_some(Lock {})
    }
}
