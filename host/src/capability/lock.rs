//! The lock behind `state-lock`: a lock of the operating system on the project's `.omc` folder itself.
//!
//! It ends with its holder and leaves no file behind. There is one for a project, whatever name a guest asks for: names let a
//! later version split it without a change for guests.

use std::time::Instant;

use crate::capability::OmcDir;
use crate::runtime::wit::types::AccessError;

/// A held lock.
#[derive(Debug)]
pub struct LockHandle {
    #[cfg(unix)]
    _folder: std::os::fd::OwnedFd,
}

/// Whether a name is 1 to 64 of `a-z`, `0-9` and `-`.
pub(super) fn is_name(name: &str) -> bool {
    (1..=64).contains(&name.len()) && name.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'))
}

/// Waits for the lock, at most `wait_ms` and never beyond the deadline. The folder is created: a guest locks in order to write.
#[cfg(unix)]
pub(super) fn acquire(dir: &OmcDir, wait_ms: u32, deadline: Instant) -> Result<LockHandle, AccessError> {
    use std::time::Duration;

    use rustix::fs::{FlockOperation, flock};

    // The system has no wait with a limit. Holders keep the lock for a few file operations, so that short naps lose little.
    const FIRST_NAP: Duration = Duration::from_micros(200);
    const LONGEST_NAP: Duration = Duration::from_millis(5);

    let folder = dir.lockable().map_err(|unusable| AccessError::Other(unusable.to_string()))?;
    let until = deadline.min(Instant::now() + Duration::from_millis(u64::from(wait_ms)));
    let mut nap = FIRST_NAP;
    loop {
        match flock(&folder, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(LockHandle { _folder: folder }),
            Err(rustix::io::Errno::INTR) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => {
                let left = until.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return Err(AccessError::NotFound);
                }
                std::thread::sleep(nap.min(left));
                nap = (nap * 2).min(LONGEST_NAP);
            }
            Err(error) => return Err(AccessError::Other(error.to_string())),
        }
    }
}

/// Folders cannot be locked there.
#[cfg(not(unix))]
pub(super) fn acquire(_: &OmcDir, _: u32, _: Instant) -> Result<LockHandle, AccessError> {
    Err(AccessError::Other("locks are not supported on this system".to_owned()))
}
