//! Files that only the user can write: the lock file, guests of others, their compiled code.
//!
//! What is opened is checked, not what its name says: the handle's owner and mode, and those of the folder it is in. Whoever
//! else could write there could make the host run code of theirs.

use std::ffi::OsStr;
#[cfg(unix)]
use std::fs::TryLockError;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;
use std::process::Stdio;
#[cfg(unix)]
use std::thread;
use std::time::Duration;
#[cfg(unix)]
use std::time::Instant;

/// An open folder that belongs to the user (or to root) and that nobody else can write.
pub(crate) struct PrivateDir {
    #[cfg(unix)]
    folder: File,
    #[cfg(not(unix))]
    path: std::path::PathBuf,
}

/// A folder that is locked against other processes, until this is dropped and every process that inherited it has ended.
///
/// The lock is the system's on the folder itself: it dies with its holders and leaves no file behind.
pub(crate) struct Locked(PrivateDir);

/// How often somebody looks whether a lock is free.
#[cfg(unix)]
const LOCK_NAP: Duration = Duration::from_millis(2);

impl PrivateDir {
    /// Opens a folder. Whatever leads there, what was opened is checked.
    #[cfg(unix)]
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        use rustix::fs::{Mode, OFlags};

        let folder = rustix::fs::open(path, OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        let folder = File::from(folder);
        check(&folder.metadata()?, "its folder")?;
        Ok(Self { folder })
    }

    /// Opens a file in it for reading, if it is a regular one that nobody else can write. Nothing is waited for.
    #[cfg(unix)]
    pub(crate) fn open_file(&self, name: &OsStr) -> io::Result<File> {
        use rustix::fs::{Mode, OFlags};

        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = File::from(rustix::fs::openat(&self.folder, name, flags, Mode::empty())?);
        let about = file.metadata()?;
        if !about.is_file() {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "it is not a regular file"));
        }
        check(&about, "it")?;
        Ok(file)
    }

    /// Elsewhere the user's folders are protected by the system's own access lists, which are not read here.
    #[cfg(not(unix))]
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        if path.is_dir() { Ok(Self { path: path.to_owned() }) } else { Err(io::ErrorKind::NotFound.into()) }
    }

    #[cfg(not(unix))]
    pub(crate) fn open_file(&self, name: &OsStr) -> io::Result<File> {
        let file = File::open(self.path.join(name))?;
        if file.metadata()?.is_file() { Ok(file) } else { Err(io::ErrorKind::PermissionDenied.into()) }
    }

    /// Locks the folder, if that can be had within a time.
    ///
    /// # Errors
    ///
    /// `WouldBlock` if another process holds the lock all the time.
    #[cfg(unix)]
    pub(crate) fn lock(self, wait: Duration) -> io::Result<Locked> {
        let until = Instant::now() + wait;
        loop {
            match self.folder.try_lock() {
                Ok(()) => return Ok(Locked(self)),
                Err(TryLockError::WouldBlock) if Instant::now() < until => thread::sleep(LOCK_NAP),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Folders cannot be locked there: what two processes write at once, one of them has written.
    #[cfg(not(unix))]
    pub(crate) fn lock(self, _: Duration) -> io::Result<Locked> {
        Ok(Locked(self))
    }
}

impl Locked {
    /// The folder.
    pub(crate) fn dir(&self) -> &PrivateDir {
        &self.0
    }

    /// A handle that holds the lock as long as a child process has it as its standard input.
    #[cfg(unix)]
    pub(crate) fn into_stdio(self) -> Stdio {
        self.0.folder.into()
    }

    #[cfg(not(unix))]
    pub(crate) fn into_stdio(self) -> Stdio {
        Stdio::null()
    }
}

/// Opens a file for reading if it and its folder belong to the user (or to root) and nobody else can write them.
///
/// A symbolic link in the file's place is refused, and nothing is waited for.
pub(crate) fn open_private(path: &Path) -> io::Result<File> {
    let folder = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    PrivateDir::open(folder)?.open_file(name)
}

/// Creates a folder if it is missing, and locks it.
pub(crate) fn lock_dir(path: &Path, wait: Duration) -> io::Result<Locked> {
    create_private_dir(path)?;
    PrivateDir::open(path)?.lock(wait)
}

#[cfg(unix)]
fn check(about: &fs::Metadata, what: &str) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt as _;

    const WRITABLE_BY_OTHERS: u32 = 0o022;
    let own = rustix::process::geteuid().as_raw();
    if about.uid() != own && about.uid() != 0 {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, format!("{what} belongs to another user")));
    }
    if about.mode() & WRITABLE_BY_OTHERS != 0 {
        let reason = format!("{what} can be written by others; `chmod go-w` it if you put it there");
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, reason));
    }
    Ok(())
}

/// Creates a folder and its missing parents, each for the user alone.
pub(crate) fn create_private_dir(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// Whether a file has to survive a power cut that comes right after it was written.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Durability {
    /// It does: a person decided what is in it.
    Synced,
    /// It does not: losing the last change of it costs nothing.
    Unsynced,
}

/// Writes a file for the user alone, so that a reader sees the old or the new one.
///
/// The folder must exist, and be locked by the caller: so the temporary file can have a fixed name, and what a killed process
/// left of one is overwritten by the next.
pub(crate) fn replace_private(path: &Path, bytes: &[u8], durability: Durability) -> io::Result<()> {
    let mut name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_owned();
    name.push(".tmp");
    let temporary = path.with_file_name(name);
    replace_over(&temporary, path, bytes, durability, None)
}

/// The same with a temporary file of this name in the folder, and with these permissions instead of the user's alone.
pub(crate) fn replace_over(
    temporary: &Path,
    path: &Path,
    bytes: &[u8],
    durability: Durability,
    permissions: Option<fs::Permissions>,
) -> io::Result<()> {
    let mut options = File::options();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    // Never written into: it might be a link, or have another mode.
    drop(fs::remove_file(temporary));
    let written = options.open(temporary).and_then(|mut file| {
        if let Some(permissions) = permissions {
            file.set_permissions(permissions)?;
        }
        file.write_all(bytes)?;
        if durability == Durability::Synced {
            file.sync_all()?;
        }
        fs::rename(temporary, path)
    });
    if written.is_err() {
        drop(fs::remove_file(temporary));
    }
    written
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn only_files_that_nobody_else_can_write_are_opened() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("a/b");
        create_private_dir(&folder).unwrap();
        assert_eq!(fs::metadata(home.path().join("a")).unwrap().permissions().mode() & 0o777, 0o700);
        let file = folder.join("lock");
        fs::write(folder.join("lock.tmp"), "of a killed process").unwrap();
        replace_private(&file, b"one", Durability::Synced).unwrap();
        replace_private(&file, b"two", Durability::Unsynced).unwrap();
        assert_eq!(io::read_to_string(open_private(&file).unwrap()).unwrap(), "two");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "no debris");

        let set = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        for mode in [0o620, 0o602, 0o666] {
            set(&file, mode);
            assert!(open_private(&file).is_err(), "a file of mode {mode:o}");
        }
        set(&file, 0o644);
        assert!(open_private(&file).is_ok());
        for mode in [0o770, 0o707, 0o1777] {
            set(&folder, mode);
            assert!(open_private(&file).is_err(), "a folder of mode {mode:o}");
        }
        set(&folder, 0o700);

        let link = folder.join("link");
        symlink(&file, &link).unwrap();
        assert!(open_private(&link).is_err());
        rustix::fs::mknodat(rustix::fs::CWD, folder.join("pipe"), rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        assert!(open_private(&folder.join("pipe")).is_err());
        assert!(open_private(&folder).is_err());
        if std::os::unix::fs::chown(&file, Some(54321), None).is_ok() {
            assert!(open_private(&file).is_err(), "somebody else's file");
        }
    }

    #[test]
    fn a_lock_keeps_others_out_until_its_holder_and_all_heirs_are_gone() {
        let home = tempfile::tempdir().unwrap();
        let lock = || lock_dir(&home.path().join("folder"), Duration::ZERO).map(drop);
        lock().unwrap();
        let held = lock_dir(&home.path().join("folder"), Duration::ZERO).unwrap();
        assert_eq!(lock().unwrap_err().kind(), io::ErrorKind::WouldBlock);
        let mut heir = std::process::Command::new("sleep").arg("60").stdin(held.into_stdio()).spawn().unwrap();
        assert_eq!(lock().unwrap_err().kind(), io::ErrorKind::WouldBlock, "the child holds it now");
        heir.kill().unwrap();
        heir.wait().unwrap();
        lock().unwrap();
        assert_eq!(fs::read_dir(home.path().join("folder")).unwrap().count(), 0, "no file is left behind");
    }
}
