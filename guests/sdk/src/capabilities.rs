//! The host's interfaces beside event and effects, one module each; natively they answer from [`crate::testing::World`].

use std::path::PathBuf;

/// The project's `.omc` directory as this guest sees it, for plain `std::fs`: what of it can be read or written is a grant.
pub fn omc_dir() -> PathBuf {
    #[cfg(target_arch = "wasm32")]
    return PathBuf::from("/omc");
    #[cfg(not(target_arch = "wasm32"))]
    crate::testing::World::with_current(crate::testing::World::omc_dir)
}

/// The user's own `.omc` directory, beside the project's.
pub fn omc_user_dir() -> PathBuf {
    #[cfg(target_arch = "wasm32")]
    return PathBuf::from("/omc-user");
    #[cfg(not(target_arch = "wasm32"))]
    crate::testing::World::with_current(crate::testing::World::omc_user_dir)
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
    use std::fmt;
    use std::time::Duration;

    #[cfg(target_arch = "wasm32")]
    use crate::bindings::omc::hook::{state_lock as host, types};

    /// A lock, held until it is dropped. It ends with its holder, however that ends.
    #[derive(Debug)]
    pub struct Lock {
        #[cfg(target_arch = "wasm32")]
        _held: host::Lock,
    }

    /// Why there is no lock.
    #[derive(Clone, Debug, Eq, PartialEq)]
    #[non_exhaustive]
    pub enum LockError {
        /// Somebody else held it for the whole time.
        Held,
        /// The guest may not write in that folder. The refusal is in the trail.
        Denied,
        /// Anything else; the text is for people and not stable.
        Other(String),
    }

    impl fmt::Display for LockError {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(match self {
                Self::Held => "somebody else held it for the whole time",
                Self::Denied => "the guest may not write there",
                Self::Other(text) => text,
            })
        }
    }

    impl std::error::Error for LockError {}

    impl From<LockError> for crate::Error {
        fn from(error: LockError) -> Self {
            Self::new(error.to_string())
        }
    }

    /// Waits at most `wait` for the lock of a folder, by its path below the project's `.omc` (`guests/mine`; `.` is `.omc` itself):
    /// for those who change files in it. Folders in it have locks of their own. A guest holds one lock at a time.
    ///
    /// # Errors
    ///
    /// [`LockError`] says why there is none.
    pub fn acquire(folder: &str, wait: Duration) -> Result<Lock, LockError> {
        #[cfg(target_arch = "wasm32")]
        {
            let wait_ms = u32::try_from(wait.as_millis()).unwrap_or(u32::MAX);
            host::acquire(folder, wait_ms).map(|held| Lock { _held: held }).map_err(|error| match error {
                types::AccessError::NotFound => LockError::Held,
                types::AccessError::Denied => LockError::Denied,
                types::AccessError::TooLarge => LockError::Other("its path is too long".to_owned()),
                types::AccessError::Other(text) => LockError::Other(text),
            })
        }
        #[cfg(not(target_arch = "wasm32"))]
        crate::testing::World::with_current(|world| world.lock(folder, wait)).map(|()| Lock {})
    }
}

/// Files of the project, of the agent and of the user, to be read and never written: what the globs of the grant `read` match.
///
/// Paths are relative to a [`Root`](project_files::Root), with `/` between names and without `.` and `..`. Only regular files and
/// folders count, and links are not followed. A call may read 16 MiB and look at 20,000 entries.
pub mod project_files {
    use crate::AccessError;
    #[cfg(target_arch = "wasm32")]
    use crate::bindings::omc::hook::project_files as host;
    #[cfg(not(target_arch = "wasm32"))]
    use crate::testing::World;

    /// What a path is relative to.
    #[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
    #[non_exhaustive]
    pub enum Root {
        /// `project`: the project's root.
        Project,
        /// `agent`: the agent's own folder of settings, such as `~/.claude` or `~/.codex`.
        Agent,
        /// `home`: the user's home folder.
        Home,
    }

    impl Root {
        /// The root's name in scopes and in the interface.
        pub const fn name(self) -> &'static str {
            match self {
                Self::Project => "project",
                Self::Agent => "agent",
                Self::Home => "home",
            }
        }
    }

    /// A file or folder of a listing.
    #[derive(Clone, Debug, Eq, PartialEq)]
    pub struct Entry {
        /// Its name in the folder.
        pub name: String,
        /// Whether it is a folder; else it is a regular file.
        pub is_folder: bool,
        /// Its size in bytes; 0 for a folder.
        pub size: u64,
        /// When it was changed last, in milliseconds since 1970.
        pub modified_ms: u64,
    }

    /// What a search found.
    #[derive(Clone, Debug, Default, Eq, PartialEq)]
    pub struct Found {
        /// Paths of files, relative to the root; those in outer folders first, those of a folder by name.
        pub paths: Vec<String>,
        /// Whether everything was looked at: false if the search ended at a limit.
        pub complete: bool,
    }

    /// The whole text of a file; what is not UTF-8 in it becomes U+FFFD.
    ///
    /// # Errors
    ///
    /// [`AccessError::TooLarge`] if the file has more than `max_bytes` bytes, 1 MiB at most; [`AccessError::Denied`] if no granted
    /// glob matches the path; [`AccessError::NotFound`] if there is no regular file; [`AccessError::Other`] if there
    /// is a link, which is not followed.
    pub fn read(root: Root, path: &str, max_bytes: u32) -> Result<String, AccessError> {
        #[cfg(target_arch = "wasm32")]
        return host::read(root.name(), path, max_bytes).map_err(AccessError::from);
        #[cfg(not(target_arch = "wasm32"))]
        World::with_current(|world| world.read_file(root, path, max_bytes))
    }

    /// The text of a file's first `max_bytes` bytes, 1 MiB at most, cut at a character's end.
    ///
    /// # Errors
    ///
    /// As of [`read`], but for `TooLarge`.
    pub fn read_start(root: Root, path: &str, max_bytes: u32) -> Result<String, AccessError> {
        #[cfg(target_arch = "wasm32")]
        return host::read_start(root.name(), path, max_bytes).map_err(AccessError::from);
        #[cfg(not(target_arch = "wasm32"))]
        World::with_current(|world| world.read_file_start(root, path, max_bytes))
    }

    /// The entries of a folder that a granted glob matches or leads through, by name; the empty path is the root itself.
    ///
    /// # Errors
    ///
    /// [`AccessError::TooLarge`] if there are more than `max_entries`, 4,096 at most; [`AccessError::Denied`] if no granted glob
    /// leads to the folder; [`AccessError::NotFound`] if there is none; [`AccessError::Other`] if a link is in the way.
    pub fn list(root: Root, folder: &str, max_entries: u32) -> Result<Vec<Entry>, AccessError> {
        #[cfg(target_arch = "wasm32")]
        {
            let entries = host::list(root.name(), folder, max_entries)?;
            let entry = |entry: host::Entry| Entry {
                name: entry.name,
                is_folder: matches!(entry.kind, host::EntryKind::Folder),
                size: entry.size,
                modified_ms: entry.modified_ms,
            };
            Ok(entries.into_iter().map(entry).collect())
        }
        #[cfg(not(target_arch = "wasm32"))]
        World::with_current(|world| world.list_folder(root, folder, max_entries))
    }

    /// All files in and below a folder that a granted glob matches, at most `max_entries`, 4,096 at most.
    ///
    /// The search goes 16 folders deep, looks at 10,000 entries and takes 20 ms at most.
    ///
    /// # Errors
    ///
    /// [`AccessError::Denied`] if no granted glob leads to the folder; [`AccessError::NotFound`] if there is none; [`AccessError::Other`] if a link is in the way.
    pub fn find(root: Root, folder: &str, max_entries: u32) -> Result<Found, AccessError> {
        #[cfg(target_arch = "wasm32")]
        {
            let found = host::find(root.name(), folder, max_entries)?;
            Ok(Found { paths: found.paths, complete: found.complete })
        }
        #[cfg(not(target_arch = "wasm32"))]
        World::with_current(|world| world.find_files(root, folder, max_entries))
    }
}

/// Facts about the project's repository, for guests that were granted `git`. On events about tools every answer is
/// [`AccessError::Denied`](crate::AccessError::Denied): those are too many to wait for.
pub mod git {
    use crate::AccessError;
    #[cfg(target_arch = "wasm32")]
    use crate::bindings::omc::hook::git as host;
    #[cfg(not(target_arch = "wasm32"))]
    use crate::testing::World;

    /// How a path differs from the last commit. A renamed file is one that was deleted and one that was added.
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub enum ChangeKind {
        /// It is new and in the index.
        Added,
        /// Its contents, its mode or its type differ.
        Modified,
        /// It is gone.
        Deleted,
        /// A merge left it in conflict.
        Conflicted,
        /// It is new and not in the index.
        Untracked,
    }

    /// A path that differs from the last commit.
    #[derive(Clone, Debug, Eq, PartialEq)]
    pub struct Change {
        /// The path from the work tree's top; an untracked folder ends in `/`.
        pub path: String,
        /// How it differs.
        pub kind: ChangeKind,
    }

    /// The paths that differ from the last commit.
    #[derive(Clone, Debug, Default, Eq, PartialEq)]
    pub struct Changes {
        /// The paths, in git's order.
        pub paths: Vec<Change>,
        /// Whether these are all: false if there are more than was asked for.
        pub complete: bool,
    }

    /// The name of the branch that is checked out, such as `main`; absent while none is.
    ///
    /// # Errors
    ///
    /// [`AccessError::NotFound`] if the project is no git work tree.
    pub fn branch() -> Result<Option<String>, AccessError> {
        #[cfg(target_arch = "wasm32")]
        return host::branch().map_err(AccessError::from);
        #[cfg(not(target_arch = "wasm32"))]
        World::with_current(|world| world.repository().map(|git| git.branch.clone()))
    }

    /// The id of the last commit in hex; absent before the first one.
    ///
    /// # Errors
    ///
    /// As of [`branch`].
    pub fn head() -> Result<Option<String>, AccessError> {
        #[cfg(target_arch = "wasm32")]
        return host::head().map_err(AccessError::from);
        #[cfg(not(target_arch = "wasm32"))]
        World::with_current(|world| world.repository().map(|git| git.head.clone()))
    }

    /// The paths that differ from the last commit, in the index or the work tree, at most `max_entries`, 4,096 at most.
    ///
    /// It runs git with nothing of the repository's configuration in force, for half a second at most.
    ///
    /// # Errors
    ///
    /// As of [`branch`], and [`AccessError::NotFound`] where no git is installed.
    pub fn changed_paths(max_entries: u32) -> Result<Changes, AccessError> {
        #[cfg(target_arch = "wasm32")]
        {
            let changes = host::changed_paths(max_entries)?;
            let change = |change: host::Change| {
                let kind = match change.kind {
                    host::ChangeKind::Added => ChangeKind::Added,
                    host::ChangeKind::Modified => ChangeKind::Modified,
                    host::ChangeKind::Deleted => ChangeKind::Deleted,
                    host::ChangeKind::Conflicted => ChangeKind::Conflicted,
                    host::ChangeKind::Untracked => ChangeKind::Untracked,
                };
                Change { path: change.path, kind }
            };
            Ok(Changes { paths: changes.paths.into_iter().map(change).collect(), complete: changes.complete })
        }
        #[cfg(not(target_arch = "wasm32"))]
        World::with_current(|world| world.changed_paths(max_entries))
    }

    /// Numbers (from 1) of the lines of a modified file that its last commit does not have, at most `max_lines`, 4,096 at most.
    ///
    /// # Errors
    ///
    /// [`AccessError::NotFound`] if the project is no git work tree, or no git is installed; [`AccessError::Other`] if git was
    /// not done in half a second, or the path leads out of the work tree.
    pub fn added_lines(path: &str, max_lines: u32) -> Result<Vec<u32>, AccessError> {
        #[cfg(target_arch = "wasm32")]
        return host::added_lines(path, max_lines).map_err(AccessError::from);
        #[cfg(not(target_arch = "wasm32"))]
        World::with_current(|world| world.added_lines(path, max_lines))
    }
}

/// Variables for the commands that the agent runs later in the session, by the names that the manifest requests.
pub mod session_environment {
    use crate::AccessError;

    /// Sets a variable once all guests have answered; of two guests that set the same one, the first in configured order counts.
    ///
    /// Events and agents that have no such variables drop it, as they drop effects, and the trail says so.
    ///
    /// # Errors
    ///
    /// [`AccessError::Denied`] without a grant for the name; [`AccessError::TooLarge`] if the value has more than 4 KiB or the call
    /// has set 32 variables; [`AccessError::Other`] if the value holds control characters.
    pub fn set(name: &str, value: &str) -> Result<(), AccessError> {
        #[cfg(target_arch = "wasm32")]
        return crate::bindings::omc::hook::session_environment::set(name, value).map_err(AccessError::from);
        #[cfg(not(target_arch = "wasm32"))]
        crate::testing::World::with_current_mut(|world| world.set_session_variable(name, value))
    }
}
