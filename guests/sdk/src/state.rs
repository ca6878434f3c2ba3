//! A guest's own files: JSON, written whole or not at all, changed by one process at a time.

use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::state_lock::{self, LockError};
use crate::{Error, log, omc_dir};

/// Largest file that is read or written, in bytes: what a host lets a guest write into one, unless the operator says otherwise.
const MAX_FILE_BYTES: u64 = 4 * 1024 * 1024;

/// How long a change waits for another one, which takes a millisecond: an event should not wait for a hundred.
const WAIT: Duration = Duration::from_millis(200);

/// A folder of state files in the project's `.omc`: `guests/NAME`, which is what a guest of somebody else usually requests.
///
/// The guest's manifest requests it: `{"capability": "omc", "scope": ["rw:/omc/guests/NAME"], "reason": "…"}`. Every hook is a
/// process of its own, and many run at once, so what is read, changed and written is changed under a lock:
///
/// ```
/// use omc_guest::{Decision, Effects, Error, Event, Guest, State};
///
/// struct Counter;
///
/// impl Guest for Counter {
///     fn handle(_event: &Event, effects: &mut Effects) -> Result<Decision, Error> {
///         let state = State::of(env!("CARGO_PKG_NAME"));
///         let calls = state.update("calls.json", |calls: &mut u64| {
///             *calls += 1;
///             *calls
///         })?;
///         effects.add_message(&format!("this is call {calls}"))?;
///         Ok(Decision::Pass)
///     }
/// }
/// # let folder = std::env::temp_dir().join(format!("omc-guest-doc-{}", std::process::id()));
/// # let world = omc_guest::testing::World::new("stop", serde_json::json!({})).with_omc_dir(&folder);
/// assert_eq!(world.call::<Counter>().messages, ["this is call 1"]);
/// assert_eq!(world.call::<Counter>().messages, ["this is call 2"]);
/// # std::fs::remove_dir_all(folder).unwrap();
/// ```
#[derive(Clone, Debug)]
pub struct State {
    folder: PathBuf,
    /// The folder's path below `.omc`, which its lock is named by.
    lock: String,
}

impl State {
    /// The folder of the guest of this name, which is `env!("CARGO_PKG_NAME")` in a guest's crate.
    pub fn of(guest: &str) -> Self {
        let below = format!("guests/{guest}");
        Self { folder: omc_dir().join(&below), lock: below }
    }

    /// The folder, for plain `std::fs`. It need not exist yet.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The value in a file, without a lock: the one before a change that is under way, or the one after it. Absent if there is no
    /// such file.
    ///
    /// # Errors
    ///
    /// [`StateError::Io`] if it cannot be read, [`StateError::Damaged`] if it holds something else.
    pub fn read<T: DeserializeOwned>(&self, file: &str) -> Result<Option<T>, StateError> {
        let path = self.path(file)?;
        let file = match fs::File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(StateError::Io(error)),
        };
        let mut bytes = Vec::new();
        file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(StateError::Io)?;
        if bytes.len() as u64 > MAX_FILE_BYTES {
            return Err(StateError::TooLarge);
        }
        serde_json::from_slice(&bytes).map(Some).map_err(|error| StateError::Damaged(error.to_string()))
    }

    /// Replaces a file: who reads it sees the old or the new value, whenever this guest is stopped.
    ///
    /// # Errors
    ///
    /// [`StateError`] says why; then the file is as it was.
    pub fn write<T: Serialize>(&self, file: &str, value: &T) -> Result<(), StateError> {
        let path = self.path(file)?;
        let _lock = self.lock()?;
        self.replace(&path, value)
    }

    /// Changes the value in a file, with nobody else changing it meanwhile, and returns what `change` does. The value is the
    /// default one if there is no such file.
    ///
    /// A file that holds something else is set aside under a name that says so (`NAME.damaged`), noted in the trail, and begun
    /// anew. Locks are one for all files of a guest and do not nest: `change` must not use this folder's functions.
    ///
    /// # Errors
    ///
    /// [`StateError`] says why; then the file is as it was.
    pub fn update<T, R>(&self, file: &str, change: impl FnOnce(&mut T) -> R) -> Result<R, StateError>
    where
        T: Default + DeserializeOwned + Serialize,
    {
        let path = self.path(file)?;
        let _lock = self.lock()?;
        let mut value = match self.read(file) {
            Ok(value) => value.unwrap_or_default(),
            Err(error @ (StateError::Damaged(_) | StateError::TooLarge)) => {
                let aside = with_ending(&path, ".damaged");
                fs::rename(&path, &aside).map_err(StateError::Io)?;
                log::warn(&format!("`{file}` is set aside as `{file}.damaged`: {error}"));
                T::default()
            }
            Err(error) => return Err(error),
        };
        let changed = change(&mut value);
        self.replace(&path, &value)?;
        Ok(changed)
    }

    /// Removes a file; one that is not there is removed already.
    ///
    /// # Errors
    ///
    /// [`StateError`] says why it is still there.
    pub fn remove(&self, file: &str) -> Result<(), StateError> {
        let path = self.path(file)?;
        let _lock = self.lock()?;
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(StateError::Io(error)),
            _ => Ok(()),
        }
    }

    /// A file's path: its name is one, and no way to another folder.
    fn path(&self, file: &str) -> Result<PathBuf, StateError> {
        let is_name = !matches!(file, "" | "." | "..") && !file.contains(['/', '\\', '\0']);
        if is_name { Ok(self.folder.join(file)) } else { Err(StateError::Name(file.to_owned())) }
    }

    fn lock(&self) -> Result<state_lock::Lock, StateError> {
        state_lock::acquire(&self.lock, WAIT).map_err(StateError::Lock)
    }

    /// The caller holds the lock, so that the temporary file can have a fixed name: what was left of one is written over.
    fn replace<T: Serialize>(&self, path: &Path, value: &T) -> Result<(), StateError> {
        let bytes = serde_json::to_vec(value).map_err(|error| StateError::Io(error.into()))?;
        if bytes.len() as u64 > MAX_FILE_BYTES {
            return Err(StateError::TooLarge);
        }
        let temporary = with_ending(path, ".tmp");
        let written = fs::create_dir_all(&self.folder)
            .and_then(|()| fs::write(&temporary, bytes))
            .and_then(|()| fs::rename(&temporary, path));
        written.map_err(StateError::Io)
    }
}

fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(ending);
    path.with_file_name(name)
}

/// Why state could not be read or changed.
#[derive(Debug)]
#[non_exhaustive]
pub enum StateError {
    /// This is no plain name of a file.
    Name(String),
    /// There was no lock.
    Lock(LockError),
    /// The host did not let it be read or written; without a grant it is as if nothing was there.
    Io(io::Error),
    /// The file holds something else than was asked for.
    Damaged(String),
    /// It is over the limit for a file.
    TooLarge,
}

impl std::fmt::Display for StateError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Name(name) => write!(f, "`{name}` is no name of a file"),
            Self::Lock(error) => write!(f, "there is no lock on the state: {error}"),
            Self::Io(error) => write!(f, "the state cannot be read or written: {error}"),
            Self::Damaged(why) => write!(f, "the file holds something else: {why}"),
            Self::TooLarge => write!(f, "the file is over {MAX_FILE_BYTES} bytes"),
        }
    }
}

impl std::error::Error for StateError {}

impl From<StateError> for Error {
    fn from(error: StateError) -> Self {
        Self::new(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::{Outcome, World};
    use crate::{Decision, Effects, Event, Guest};

    /// Does what the event asks of it.
    struct Keeper;

    impl Guest for Keeper {
        fn handle(event: &Event<'_>, effects: &mut Effects<'_>) -> Result<Decision, Error> {
            let state = State::of("keeper");
            let file = event.text("/file").unwrap_or_default();
            match event.text("/do").as_deref() {
                Some("add") => {
                    let list = state.update(&file, |list: &mut Vec<Value>| {
                        list.extend(event.field("/value"));
                        list.len()
                    })?;
                    effects.add_message(&list.to_string())?;
                }
                Some("write") => state.write(&file, &event.field("/value"))?,
                Some("remove") => state.remove(&file)?,
                _ => effects.add_message(&format!("{:?}", state.read::<Vec<Value>>(&file)?))?,
            }
            Ok(Decision::Pass)
        }
    }

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let folder = std::env::temp_dir().join(format!("omc-guest-{name}-{}", std::process::id()));
            drop(fs::remove_dir_all(&folder));
            Self(folder)
        }

        fn call(&self, payload: Value) -> Outcome {
            World::new("stop", payload).with_omc_dir(&self.0).call::<Keeper>()
        }

        fn names(&self) -> Vec<String> {
            let entries = fs::read_dir(self.0.join("guests/keeper")).expect("a folder");
            let mut names: Vec<_> =
                entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("a name")).collect();
            names.sort();
            names
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            drop(fs::remove_dir_all(&self.0));
        }
    }

    #[test]
    fn state_is_kept_from_call_to_call_and_nothing_else_is_left() {
        let folder = Folder::new("kept");
        assert_eq!(folder.call(json!({"file": "a.json"})).messages, ["None"]);
        for count in 1..=3 {
            let outcome = folder.call(json!({"do": "add", "file": "a.json", "value": count}));
            assert_eq!(outcome.messages, [count.to_string()]);
        }
        folder.call(json!({"do": "write", "file": "b.json", "value": [true]}));
        assert_eq!(folder.call(json!({"file": "b.json"})).messages, ["Some([Bool(true)])"]);
        assert_eq!(folder.names(), ["a.json", "b.json"]);
        for _ in 0..2 {
            assert!(folder.call(json!({"do": "remove", "file": "b.json"})).decision.is_ok());
        }
        assert_eq!(folder.names(), ["a.json"]);
    }

    #[test]
    fn what_is_damaged_is_set_aside_and_never_written_over() {
        let folder = Folder::new("damaged");
        folder.call(json!({"do": "write", "file": "a.json", "value": "no list"}));
        assert!(folder.call(json!({"file": "a.json"})).decision.is_err());
        let outcome = folder.call(json!({"do": "add", "file": "a.json", "value": 1}));
        assert_eq!(outcome.messages, ["1"]);
        assert!(outcome.logged[0].starts_with("warn: `a.json` is set aside"), "{:?}", outcome.logged);
        let aside = fs::read_to_string(folder.0.join("guests/keeper/a.json.damaged")).expect("it is kept");
        assert_eq!(aside, "\"no list\"");
    }

    #[test]
    fn a_name_leads_nowhere_else_and_without_a_lock_nothing_changes() {
        let folder = Folder::new("elsewhere");
        for file in ["", ".", "..", "../a", "/a", "a/b", "a\\b", "a\0"] {
            let outcome = folder.call(json!({"do": "write", "file": file, "value": 1}));
            let error = outcome.decision.expect_err(file).to_string();
            assert!(error.contains("is no name of a file"), "{file}: {error}");
        }
        let mut world = World::new("stop", json!({"do": "add", "file": "a", "value": 1})).with_omc_dir(&folder.0);
        world.locks_are_free = false;
        assert!(world.call::<Keeper>().decision.expect_err("no lock").to_string().contains("no lock"));
        assert!(!folder.0.exists());
    }

    #[test]
    fn what_would_be_too_large_is_not_written() {
        let folder = Folder::new("large");
        let huge = "x".repeat(usize::try_from(MAX_FILE_BYTES).expect("it fits"));
        let outcome = folder.call(json!({"do": "write", "file": "a", "value": huge}));
        assert!(outcome.decision.expect_err("too large").to_string().contains("over 4194304 bytes"));
    }
}
