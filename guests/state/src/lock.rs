//! Who may change files: one at a time.
//!
//! Locks are of folders, and each file has one folder whose lock covers it, see [`Area`]: whoever changes the file takes that one,
//! whatever else it may write.

use std::time::Duration;

use crate::{Error, SessionId, Store};

/// Longest time to wait for a lock.
///
/// A holder needs a few milliseconds; a hundred hooks in a row need less than this, and it is below the second that a guest
/// has for its whole call.
pub const LOCK_WAIT: Duration = Duration::from_millis(800);

/// Files that one lock covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Area {
    /// The state of all sessions and what they share in `state/`: most changes of one session's files also change a shared one.
    State,
    /// The checkpoints.
    Checkpoints,
    /// The wiki.
    Wiki,
    /// All else: notepad, plans' notepads, project memory.
    Root,
}

impl Area {
    /// The folder whose lock it is, below the root.
    const fn folder(self) -> &'static str {
        match self {
            Self::State => "state",
            Self::Checkpoints => "state/checkpoints",
            Self::Wiki => "wiki",
            Self::Root => ".",
        }
    }
}

/// A source of locks on folders between processes.
///
/// Guests pass the host's `state-lock`, which ends with its holder; natively it is a lock on a file, in tests a mutex. Any
/// function of a folder below the root and a time is one.
pub trait Locker {
    /// Holds the lock until it is dropped.
    type Guard;
    /// Why there is no lock.
    type Error: std::error::Error + Send + Sync + 'static;

    /// Waits at most `wait` for the lock.
    ///
    /// # Errors
    ///
    /// Somebody else still holds it then, or there are no locks here.
    fn lock(&self, name: &str, wait: Duration) -> Result<Self::Guard, Self::Error>;
}

impl<Guard, Reason, Lock> Locker for Lock
where
    Reason: std::error::Error + Send + Sync + 'static,
    Lock: Fn(&str, Duration) -> Result<Guard, Reason>,
{
    type Guard = Guard;
    type Error = Reason;

    fn lock(&self, name: &str, wait: Duration) -> Result<Guard, Reason> {
        self(name, wait)
    }
}

impl Store {
    /// Runs `work` while nobody else changes files of sessions.
    ///
    /// For every read that a write depends on. Do not nest: the lock is not re-entrant, and a guest may hold only one. That there
    /// is a session shows that there is something to change; all sessions have one lock, see [`Area::State`].
    ///
    /// # Errors
    ///
    /// [`Error::Lock`] if the lock was not to be had within [`LOCK_WAIT`]; else what `work` returns.
    pub fn locked<L: Locker, T>(
        &self,
        locker: &L,
        _session: &SessionId,
        work: impl FnOnce(&Self) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.locked_in(locker, Area::State, work)
    }

    /// Runs `work` while nobody else changes the files of an area.
    ///
    /// # Errors
    ///
    /// As [`locked`](Self::locked).
    pub fn locked_in<L: Locker, T>(
        &self,
        locker: &L,
        area: Area,
        work: impl FnOnce(&Self) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let name = area.folder();
        let _guard = locker
            .lock(name, LOCK_WAIT)
            .map_err(|source| Error::Lock { name: name.to_owned(), source: Box::new(source) })?;
        work(self)
    }
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;
    use std::convert::Infallible;
    use std::sync::{Mutex, MutexGuard, PoisonError};

    /// One lock for all names, between threads.
    #[derive(Default)]
    pub(crate) struct ThreadLocker(Mutex<()>);

    impl<'a> Locker for &'a ThreadLocker {
        type Guard = MutexGuard<'a, ()>;
        type Error = Infallible;

        fn lock(&self, _name: &str, _wait: Duration) -> Result<Self::Guard, Infallible> {
            Ok(self.0.lock().unwrap_or_else(PoisonError::into_inner))
        }
    }

    /// Somebody else holds every lock.
    pub(crate) struct NeverFree;

    impl Locker for NeverFree {
        type Guard = ();
        type Error = std::io::Error;

        fn lock(&self, _name: &str, _wait: Duration) -> Result<(), std::io::Error> {
            Err(std::io::ErrorKind::WouldBlock.into())
        }
    }
}
