//! WASI 0.2 for guests: what a language's standard library needs, inside a box.
//!
//! All of it is our own and synchronous. A guest's files are in the `.omc` directories that it was granted and nowhere else
//! (`tree.rs` walks, `grant.rs` judges, `filesystem.rs` acts); streams are always ready, and waiting ends at the call's deadline
//! (`streams.rs`); clocks and random numbers are there (`clocks.rs`); arguments, environment and standard input are empty, and
//! output is kept for the record (`cli.rs`); every way to the network is denied (`sockets.rs`). No async runtime is ever started,
//! because none is linked.
//!
//! One [`Wasi`] belongs to one call of one guest. It counts what the call uses, refuses what is over its limits, and gives the
//! record back for the audit trail. The resource table in it is shared with the host's other interfaces.

mod bindings;
#[expect(unreachable_pub, reason = "the generated bindings re-export it")]
mod cli;
mod clocks;
#[expect(unreachable_pub, reason = "the generated bindings re-export it")]
mod error;
#[expect(unreachable_pub, reason = "the generated bindings re-export it")]
#[cfg_attr(not(unix), expect(unreachable_code, unused_variables, reason = "an open file has no values there"))]
mod filesystem;
mod grant;
#[cfg(unix)]
#[path = "wasi/os_unix.rs"]
pub mod os;
#[cfg(not(unix))]
#[path = "wasi/os_other.rs"]
pub mod os;
mod path;
mod sockets;
#[expect(unreachable_pub, reason = "the generated bindings re-export it")]
mod streams;
#[cfg(all(test, unix))]
mod tests;
mod tree;
mod usage;

use std::sync::Arc;
use std::time::Instant;

use wasmtime::component::{HasData, Linker, ResourceTable};

pub(crate) use self::bindings::filesystem::types::ErrorCode;
use self::error::FsError;
pub use self::error::{DeadlinePassed, Exit};
use self::grant::Grants;
pub use self::grant::{Access, BadGrantPath, PathGrant};
use self::tree::Mount;
pub use self::usage::{
    FsLimits, LimitHit, MAX_NOTED_BYTES, MAX_NOTED_PATHS, MAX_NOTED_REFUSALS, Reason, Refusal, Usage,
};
use super::omc_dir::OmcDir;

/// A directory that a guest gets, and what it may do there.
#[derive(Clone, Debug)]
pub struct Preopen {
    /// Where the guest finds it: `/omc` for the project's, `/omc-user` for the user's.
    pub guest_path: String,
    /// The directory, shared by all guests of the event.
    pub dir: Arc<OmcDir>,
    /// What is granted in it. Without a grant the guest does not see the directory at all.
    pub grants: Vec<PathGrant>,
}

/// What one call gets.
#[derive(Clone, Debug)]
pub struct WasiConfig {
    /// The directories.
    pub preopens: Vec<Preopen>,
    /// How much may be used.
    pub limits: FsLimits,
    /// When the call ends: a guest that waits is ended then.
    pub deadline: Instant,
}

/// WASI for one call of one guest.
pub struct Wasi {
    table: ResourceTable,
    mounts: Vec<Arc<Mount>>,
    limits: FsLimits,
    usage: Usage,
    deadline: Instant,
    started: Instant,
    /// Its reference count, less one, is the number of open files.
    open_files: Arc<()>,
    /// What the last call was told of a path, for the next one.
    last_stat: Option<LastStat>,
}

/// What was told of a path: standard libraries ask for a file's numbers right after they asked for all else, and one answer from
/// one moment is both cheaper and truer.
struct LastStat {
    descriptor: u32,
    follows_links: bool,
    path: String,
    stat: os::Stat,
}

impl Wasi {
    /// Prepares WASI for a call that begins now. Nothing is opened or created.
    pub fn new(config: WasiConfig) -> Self {
        let mut table = ResourceTable::new();
        table.set_max_capacity(config.limits.resources as usize);
        let mounts = config
            .preopens
            .into_iter()
            .filter(|preopen| !preopen.grants.is_empty())
            .map(|Preopen { guest_path, dir, grants }| Arc::new(Mount { guest_path, dir, grants: Grants::new(grants) }))
            .collect();
        Self {
            table,
            mounts,
            limits: config.limits,
            usage: Usage::default(),
            deadline: config.deadline,
            started: Instant::now(),
            open_files: Arc::new(()),
            last_stat: None,
        }
    }

    /// The table of resources, for the host's other interfaces too. It is bounded by [`FsLimits::resources`].
    pub fn table(&mut self) -> &mut ResourceTable {
        &mut self.table
    }

    /// What the call has done so far.
    pub fn usage(&self) -> &Usage {
        &self.usage
    }

    /// Ends the call: what the guest left open is closed, and its locks are released. Gives what the call has done.
    pub fn end(&mut self) -> Usage {
        self.table = ResourceTable::new();
        std::mem::take(&mut self.usage)
    }

    /// Enters an error into the record, if it belongs there, and turns it into what the guest is told.
    fn note(&mut self, error: FsError) -> wasmtime::Result<ErrorCode> {
        match error {
            FsError::Code(code) => Ok(code),
            FsError::Refused(reason, what) => {
                self.usage.note_refusal(reason, &what);
                Ok(error::refusal_code(reason))
            }
            FsError::Limit(limit) => {
                self.usage.note_limit(limit);
                Ok(error::limit_code(limit))
            }
            FsError::Trap(trap) => Err(trap),
        }
    }
}

/// What the data of a store has to give for WASI.
pub trait WasiView: Send {
    /// The WASI of the call.
    fn wasi(&mut self) -> &mut Wasi;
}

/// Ties the bindings to [`Wasi`], wherever in a store's data it is.
struct HasWasi;

impl HasData for HasWasi {
    type Data<'a> = &'a mut Wasi;
}

/// The version under which the interfaces are linked. Any guest that imports a 0.2.x gets them.
const VERSION: &str = "0.2.12";

fn version(interface: &str) -> String {
    format!("{interface}@{VERSION}")
}

/// Declares each interface once: its name without version, and its bindings.
macro_rules! interfaces {
    ($($name:literal => $interface:path),* $(,)?) => {
        /// The interfaces with bindings; those of sockets are beside them.
        const INTERFACES: &[&str] = &[$($name),*];

        /// Links the WASI interfaces for which `imported` says yes; it is asked by name without version, such as
        /// `wasi:io/streams`.
        ///
        /// A linker is filled for every event, so what no guest of it imports is left out.
        pub fn add_to_linker<T: WasiView + 'static>(
            linker: &mut Linker<T>,
            imported: &dyn Fn(&str) -> bool,
        ) -> wasmtime::Result<()> {
            use self::bindings::{cli, clocks, filesystem, io, random};
            $(if imported($name) {
                use $interface as interface;
                interface::add_to_linker::<T, HasWasi>(linker, T::wasi)?;
            })*
            sockets::add_to_linker(linker, imported)
        }
    };
}

interfaces! {
    "wasi:io/error" => io::error,
    "wasi:io/poll" => io::poll,
    "wasi:io/streams" => io::streams,
    "wasi:clocks/monotonic-clock" => clocks::monotonic_clock,
    "wasi:clocks/wall-clock" => clocks::wall_clock,
    "wasi:random/random" => random::random,
    "wasi:random/insecure" => random::insecure,
    "wasi:random/insecure-seed" => random::insecure_seed,
    "wasi:filesystem/types" => filesystem::types,
    "wasi:filesystem/preopens" => filesystem::preopens,
    "wasi:cli/environment" => cli::environment,
    "wasi:cli/exit" => cli::exit,
    "wasi:cli/stdin" => cli::stdin,
    "wasi:cli/stdout" => cli::stdout,
    "wasi:cli/stderr" => cli::stderr,
    "wasi:cli/terminal-input" => cli::terminal_input,
    "wasi:cli/terminal-output" => cli::terminal_output,
    "wasi:cli/terminal-stdin" => cli::terminal_stdin,
    "wasi:cli/terminal-stdout" => cli::terminal_stdout,
    "wasi:cli/terminal-stderr" => cli::terminal_stderr,
}

/// Whether an import, with its version, is one of these interfaces. All of WASI 0.2 is one line of versions.
pub fn has_interface(import: &str) -> bool {
    import.split_once('@').is_some_and(|(name, version)| {
        version.starts_with("0.2.") && (INTERFACES.contains(&name) || sockets::has_interface(name))
    })
}
