//! What guests can reach: the host's side of the interfaces that they import.
//!
//! The only modules that touch files, clocks or processes for a guest. Each one checks its grant at the call.

pub(crate) mod conditions;
#[doc(hidden)]
pub mod git;
mod host;
mod lock;
pub mod omc_dir;
mod project_files;
pub(crate) mod session_environment;
mod transcript;
pub mod wasi;

use std::time::{Duration, Instant};

use omc_artifact::{Access, Preopen};

use crate::config::Limits;
use crate::policy::Grants;
use crate::runtime::wit::types::AccessError;
use crate::surroundings::Surroundings;

pub(crate) use host::add_to_linker;
pub use host::{EffectsHandle, EventHandle};
pub use lock::LockHandle;
pub use omc_dir::{OmcDir, Status};
pub(crate) use project_files::Budget as FilesBudget;

/// Why the host's own commands do not have the lock.
#[derive(Debug, thiserror::Error)]
pub enum NotLocked {
    /// Somebody held it for all of the time.
    #[error("somebody else holds it; try again")]
    Busy,
    /// There is no lock to be had.
    #[error("{0}")]
    Failed(String),
}

/// The lock that `state-lock` gives guests, for the host's own commands.
pub(crate) fn native_lock(dir: &OmcDir, folder: &str, wait: Duration) -> Result<LockHandle, NotLocked> {
    let path = lock::path(folder).ok_or_else(|| NotLocked::Failed(format!("`{folder}` is no folder of a project")))?;
    let wait_ms = u32::try_from(wait.as_millis()).unwrap_or(u32::MAX);
    lock::acquire(dir, path, wait_ms, Instant::now() + wait).map_err(|error| match error {
        AccessError::NotFound => NotLocked::Busy,
        AccessError::Other(why) => NotLocked::Failed(why),
        other => NotLocked::Failed(other.to_string()),
    })
}

/// The directories of a call: what is granted in the project's and the user's.
pub(crate) fn preopens(grants: &Grants, surroundings: &Surroundings) -> Vec<wasi::Preopen> {
    let dirs = [(Preopen::Project, surroundings.project_dir()), (Preopen::User, surroundings.user_dir())];
    let granted = |preopen: Preopen| {
        let scopes = grants.dirs.iter().filter(move |scope| scope.preopen == preopen);
        scopes.filter_map(|scope| {
            let access = match scope.access {
                Access::ReadOnly => wasi::Access::ReadOnly,
                Access::ReadWrite => wasi::Access::ReadWrite,
            };
            // A path that the file system does not take grants nothing.
            wasi::PathGrant::new(&scope.path, access).ok()
        })
    };
    dirs.into_iter()
        .filter_map(|(preopen, dir)| {
            let guest_path = preopen.guest_path().to_owned();
            Some(wasi::Preopen { guest_path, dir: dir?.clone(), grants: granted(preopen).collect() })
        })
        .collect()
}

/// The limits of a call on files, as the operator set them.
pub(crate) fn fs_limits(limits: &Limits) -> wasi::FsLimits {
    let narrow = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
    wasi::FsLimits {
        bytes_written: limits.written_bytes,
        file_bytes: limits.file_bytes,
        new_entries: narrow(limits.new_files),
        bytes_read: limits.read_bytes,
        open_files: narrow(limits.open_files),
        resources: narrow(limits.resources),
        listed_entries: narrow(limits.listed_entries),
        output_bytes: narrow(limits.output_bytes),
    }
}
