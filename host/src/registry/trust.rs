//! Files that only the user can write: the lock file, guests of others, their compiled code.
//!
//! What is opened is checked, not what its name says: the handle's owner and mode, and those of the folder it is in. Whoever
//! else could write there could make the host run code of theirs.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;

/// Opens a file for reading if it and its folder belong to the user (or to root) and nobody else can write them.
///
/// A symbolic link in the file's place is refused, and nothing is waited for.
#[cfg(unix)]
pub(crate) fn open_private(path: &Path) -> io::Result<File> {
    use rustix::fs::{Mode, OFlags};

    let folder = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let folder = rustix::fs::open(folder, OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    let folder = File::from(folder);
    check(&folder.metadata()?, "its folder")?;
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::openat(&folder, name, flags, Mode::empty())?);
    let about = file.metadata()?;
    if !about.is_file() {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "it is not a regular file"));
    }
    check(&about, "it")?;
    Ok(file)
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

/// Elsewhere the user's folders are protected by the system's own access lists, which are not read here.
#[cfg(not(unix))]
pub(crate) fn open_private(path: &Path) -> io::Result<File> {
    let file = File::open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::ErrorKind::PermissionDenied.into()) }
}

/// Creates a folder and its missing parents, each for the user alone.
pub(crate) fn create_private_dir(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// Writes a file for the user alone, so that a reader sees the old or the new one. The folder must exist.
pub(crate) fn replace_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    let temporary = path.with_file_name(name);
    let mut options = File::options();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    // What an earlier process of the same number left behind is nobody's.
    drop(fs::remove_file(&temporary));
    let written = options.open(&temporary).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&temporary, path)
    });
    if written.is_err() {
        drop(fs::remove_file(&temporary));
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
        replace_private(&file, b"one").unwrap();
        replace_private(&file, b"two").unwrap();
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
}
