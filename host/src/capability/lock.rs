//! The locks behind `state-lock`: those of the operating system on folders of the project's `.omc`.
//!
//! A folder's lock ends with its holder, leaves no file behind and cannot be left over. A guest gets the locks of folders that it
//! may write, so one that was granted a corner of `.omc` holds up nobody outside of it; and all that change files of one folder
//! ask for one lock, whatever else each of them may write.

use std::time::Instant;

use crate::capability::OmcDir;
use crate::capability::wasi::{Access, PathGrant};
use crate::runtime::wit::types::AccessError;

/// The name of `.omc` itself.
const ROOT: &str = ".";

/// A held lock.
#[derive(Debug)]
pub struct LockHandle {
    /// The locked folder; none once it is released.
    #[cfg(unix)]
    folder: Option<super::wasi::os::Dir>,
}

impl LockHandle {
    /// Ends it; says whether it was held until now.
    pub(super) fn release(&mut self) -> bool {
        #[cfg(unix)]
        return self.folder.take().is_some();
        #[cfg(not(unix))]
        false
    }
}

/// The path below `.omc` that a guest names, if it is one: what can be granted can be locked.
pub(super) fn path(folder: &str) -> Option<&str> {
    match folder {
        "" => None,
        ROOT => Some(""),
        path => PathGrant::new(path, Access::ReadWrite).is_ok().then_some(path),
    }
}

/// Waits for the lock of a folder, at most `wait_ms` and never beyond the deadline.
#[cfg(unix)]
pub(super) fn acquire(dir: &OmcDir, path: &str, wait_ms: u32, deadline: Instant) -> Result<LockHandle, AccessError> {
    use std::io::ErrorKind;
    use std::time::Duration;

    // The system has no wait with a limit. Holders keep the lock for a few file operations, so that short naps lose little.
    const FIRST_NAP: Duration = Duration::from_micros(200);
    const LONGEST_NAP: Duration = Duration::from_millis(5);

    let failed = |error: &dyn std::fmt::Display| AccessError::Other(error.to_string());
    let until = deadline.min(Instant::now() + Duration::from_millis(u64::from(wait_ms)));
    let mut nap = FIRST_NAP;
    let mut folder = dir.lockable(path).map_err(|unusable| failed(&unusable))?;
    loop {
        match folder.try_lock() {
            Ok(()) if dir.is_at(path, &folder).map_err(|error| failed(&error))? => {
                return Ok(LockHandle { folder: Some(folder) });
            }
            // Somebody cleared the folder away before it was locked: nobody else will find it.
            Ok(()) => folder = dir.lockable(path).map_err(|unusable| failed(&unusable))?,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                std::thread::sleep(nap.min(until.saturating_duration_since(Instant::now())));
                nap = (nap * 2).min(LONGEST_NAP);
            }
            Err(error) => return Err(failed(&error)),
        }
        if Instant::now() >= until {
            return Err(AccessError::NotFound);
        }
    }
}

/// Folders cannot be locked there.
#[cfg(not(unix))]
pub(super) fn acquire(_: &OmcDir, _: &str, _: u32, _: Instant) -> Result<LockHandle, AccessError> {
    Err(AccessError::Other("locks are not supported on this system".to_owned()))
}

#[cfg(all(test, unix))]
mod tests {
    use std::time::Duration;

    use super::*;

    fn acquire_in(dir: &OmcDir, path: &str) -> Result<LockHandle, AccessError> {
        acquire(dir, path, 20, Instant::now() + Duration::from_secs(5))
    }

    #[test]
    fn each_folder_has_a_lock_of_its_own_that_ends_with_its_holder() {
        let project = tempfile::tempdir().unwrap();
        // Two of them, as two processes would have.
        let (ours, theirs) = (OmcDir::find(project.path(), ".omc"), OmcDir::find(project.path(), ".omc"));
        for path in ["", "state", "guests/mine"] {
            let held = acquire_in(&ours, path).unwrap();
            assert!(matches!(acquire_in(&theirs, path), Err(AccessError::NotFound)), "{path}");
            for other in ["", "state", "guests", "guests/mine"].iter().filter(|other| **other != path) {
                acquire_in(&theirs, other).unwrap();
            }
            drop(held);
            let mut held = acquire_in(&theirs, path).unwrap();
            assert!(held.release() && !held.release(), "{path}");
            acquire_in(&ours, path).unwrap();
        }
    }

    #[test]
    fn the_lock_of_a_folder_that_was_cleared_away_is_no_lock() {
        let project = tempfile::tempdir().unwrap();
        let dir = OmcDir::find(project.path(), ".omc");
        let stale = dir.lockable("state").unwrap();
        std::fs::remove_dir(project.path().join(".omc/state")).unwrap();
        assert!(!dir.is_at("state", &stale).unwrap());
        let held = acquire_in(&dir, "state").unwrap();
        assert!(stale.try_lock().is_ok(), "it is another folder");
        assert!(matches!(acquire_in(&dir, "state"), Err(AccessError::NotFound)));
        drop(held);
    }

    #[test]
    fn links_lead_to_no_lock() {
        let project = tempfile::tempdir().unwrap();
        let dir = OmcDir::find(project.path(), ".omc");
        dir.ensure().unwrap();
        std::os::unix::fs::symlink(project.path(), project.path().join(".omc/state")).unwrap();
        assert!(matches!(acquire_in(&dir, "state"), Err(AccessError::Other(_))));
        assert!(matches!(acquire_in(&dir, "state/deeper"), Err(AccessError::Other(_))));
        assert!(!project.path().join("deeper").exists());
    }

    #[test]
    fn only_paths_that_could_be_granted_name_a_lock() {
        for (folder, expected) in [(".", Some("")), ("state", Some("state")), ("guests/mine", Some("guests/mine"))] {
            assert_eq!(path(folder), expected);
        }
        for bad in ["", "..", "/", "/state", "state/", "a//b", "a/../b", "./state", "a\0b", "\u{e9}"] {
            assert_eq!(path(bad), None, "{bad:?}");
        }
    }
}
