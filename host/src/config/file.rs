//! Reading a small configuration file without being held up or led astray by what lies there.
//!
//! A missing file costs one failed open. What is opened is checked after opening, on the handle: a FIFO, a device or a
//! folder in the file's place is refused at once, and a file over its cap is not read. Files of a project are opened
//! component by component from the project's root, and no link is followed below that.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Why a file that is there cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    #[error("it is larger than {cap} bytes")]
    TooLarge { cap: u64 },
    #[error("it is no regular file")]
    NotRegular,
    #[error("it is reached through a symbolic link")]
    Link,
    #[error("it is not UTF-8 text")]
    NotUtf8,
    #[error("it cannot be read ({0})")]
    Io(#[source] io::Error),
}

/// Whether others than the user and root could have written a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Writers {
    /// Only the user and root.
    Own,
    /// Its owner is somebody else, or everybody may write it.
    Others,
}

/// The text of a file, without a byte order mark.
#[derive(Debug)]
pub(crate) struct Text {
    pub(crate) text: String,
    pub(crate) writers: Writers,
}

/// Reads a file of the user's or the operator's. Links are followed: many people keep their configuration behind some.
pub(crate) fn read(path: &Path, cap: u64) -> Result<Option<Text>, ReadError> {
    match sys::open(path) {
        Ok(file) => read_regular(file, cap).map(Some),
        Err(error) => absent_or(error),
    }
}

/// Reads the file `root/components[0]/components[1]/…`, following no link below `root`.
pub(crate) fn read_beneath(root: &Path, components: &[&str], cap: u64) -> Result<Option<Text>, ReadError> {
    match sys::open_beneath(root, components) {
        Ok(file) => read_regular(file, cap).map(Some),
        Err(error) => absent_or(error),
    }
}

fn absent_or<T>(error: ReadError) -> Result<Option<T>, ReadError> {
    match error {
        ReadError::Io(io) if matches!(io.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(None),
        error => Err(error),
    }
}

fn read_regular(file: File, cap: u64) -> Result<Text, ReadError> {
    let metadata = file.metadata().map_err(ReadError::Io)?;
    if !metadata.is_file() {
        return Err(ReadError::NotRegular);
    }
    if metadata.len() > cap {
        return Err(ReadError::TooLarge { cap });
    }
    // The file may grow while it is read, so the cap holds for the reading too.
    let mut bytes = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or(0) + 1);
    file.take(cap + 1).read_to_end(&mut bytes).map_err(ReadError::Io)?;
    if bytes.len() as u64 > cap {
        return Err(ReadError::TooLarge { cap });
    }
    let mut text = String::from_utf8(bytes).map_err(|_| ReadError::NotUtf8)?;
    if text.starts_with('\u{feff}') {
        text.drain(..'\u{feff}'.len_utf8());
    }
    Ok(Text { text, writers: sys::writers(&metadata) })
}

#[cfg(unix)]
mod sys {
    use super::{ReadError, Writers};
    use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, openat, statat};
    use rustix::io::Errno;
    use std::fs::{File, Metadata};
    use std::os::fd::{AsFd, BorrowedFd};
    use std::os::unix::fs::MetadataExt;
    use std::path::Path;

    /// Everybody may write, in a file's mode.
    const WORLD_WRITABLE: u32 = 0o002;

    /// Without `NONBLOCK`, opening a FIFO waits for a writer for ever.
    const SAFE: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::CLOEXEC).union(OFlags::NOCTTY);

    pub(super) fn open(path: &Path) -> Result<File, ReadError> {
        openat(CWD, path, SAFE, Mode::empty()).map(File::from).map_err(error)
    }

    pub(super) fn open_beneath(root: &Path, components: &[&str]) -> Result<File, ReadError> {
        let mut folder = openat(CWD, root, SAFE | OFlags::DIRECTORY, Mode::empty()).map_err(error)?;
        let Some((name, parents)) = components.split_last() else { return Err(ReadError::NotRegular) };
        for parent in parents {
            let flags = SAFE | OFlags::DIRECTORY | OFlags::NOFOLLOW;
            folder = openat(&folder, *parent, flags, Mode::empty())
                .map_err(|errno| link_or(folder.as_fd(), parent, errno))?;
        }
        let opened = openat(&folder, *name, SAFE | OFlags::NOFOLLOW, Mode::empty());
        opened.map(File::from).map_err(|errno| link_or(folder.as_fd(), name, errno))
    }

    /// Systems disagree on the error for a link that must not be followed, so the link itself is looked at.
    fn link_or(folder: BorrowedFd<'_>, name: &str, errno: Errno) -> ReadError {
        let is_link = errno != Errno::NOENT
            && statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)
                .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Symlink);
        if is_link { ReadError::Link } else { error(errno) }
    }

    fn error(errno: Errno) -> ReadError {
        // What opening a socket, or a device without a driver, gives.
        if errno == Errno::NXIO || errno == Errno::NODEV { ReadError::NotRegular } else { ReadError::Io(errno.into()) }
    }

    pub(super) fn writers(metadata: &Metadata) -> Writers {
        let own = metadata.uid() == 0 || metadata.uid() == rustix::process::geteuid().as_raw();
        if own && metadata.mode() & WORLD_WRITABLE == 0 { Writers::Own } else { Writers::Others }
    }
}

#[cfg(not(unix))]
mod sys {
    //! Without handle-relative opening in the standard library, links are looked for before opening. There are no FIFOs in
    //! folders here, and who may write is a matter of access lists that the user's profile already restricts.

    use super::{ReadError, Writers};
    use std::fs::{File, Metadata};
    use std::path::Path;

    pub(super) fn open(path: &Path) -> Result<File, ReadError> {
        File::open(path).map_err(ReadError::Io)
    }

    pub(super) fn open_beneath(root: &Path, components: &[&str]) -> Result<File, ReadError> {
        let mut path = root.to_owned();
        for component in components {
            path.push(component);
            if std::fs::symlink_metadata(&path).map_err(ReadError::Io)?.is_symlink() {
                return Err(ReadError::Link);
            }
        }
        open(&path)
    }

    pub(super) fn writers(_: &Metadata) -> Writers {
        Writers::Own
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn fifo(path: &Path) {
        rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, 0o600.into(), 0).expect("a FIFO");
    }

    #[test]
    fn a_missing_file_or_folder_is_absent_and_no_error() {
        let dir = tempfile::tempdir().expect("a folder");
        fs::write(dir.path().join("file"), "x").expect("written");
        assert!(read(&dir.path().join("none"), 9).expect("no error").is_none());
        assert!(read(&dir.path().join("file/below"), 9).expect("no error").is_none());
        assert!(read_beneath(dir.path(), &["none", "x"], 9).expect("no error").is_none());
        assert!(read_beneath(dir.path(), &["file", "x"], 9).expect("no error").is_none());
        assert!(read_beneath(&dir.path().join("none"), &["x"], 9).expect("no error").is_none());
    }

    #[test]
    fn what_is_no_regular_file_is_refused_without_waiting() {
        let dir = tempfile::tempdir().expect("a folder");
        fifo(&dir.path().join("fifo"));
        fs::create_dir(dir.path().join("folder")).expect("created");
        let _socket = std::os::unix::net::UnixListener::bind(dir.path().join("socket")).expect("bound");
        for name in ["fifo", "folder", "socket"] {
            assert!(matches!(read(&dir.path().join(name), 9), Err(ReadError::NotRegular)), "{name}");
            assert!(matches!(read_beneath(dir.path(), &[name], 9), Err(ReadError::NotRegular)), "{name} beneath");
        }
        assert!(matches!(read(Path::new("/dev/zero"), 9), Err(ReadError::NotRegular)));
    }

    #[test]
    fn a_link_leads_nowhere_below_a_project_at_any_depth() {
        let dir = tempfile::tempdir().expect("a folder");
        fs::create_dir_all(dir.path().join("outside/sub")).expect("created");
        fs::create_dir_all(dir.path().join("root/real")).expect("created");
        fs::write(dir.path().join("outside/sub/f"), "secret").expect("written");
        fs::write(dir.path().join("root/real/own"), "own").expect("written");
        let root = dir.path().join("root");
        symlink("../outside", root.join("folder")).expect("linked");
        symlink("../../outside/sub/f", root.join("real/leaf")).expect("linked");
        symlink("own", root.join("real/inner")).expect("linked");
        symlink("nowhere", root.join("real/dangling")).expect("linked");
        for components in [&["folder", "sub", "f"][..], &["real", "leaf"], &["real", "inner"], &["real", "dangling"]] {
            assert!(matches!(read_beneath(&root, components, 99), Err(ReadError::Link)), "{components:?}");
        }
        assert_eq!(read_beneath(&root, &["real", "own"], 99).expect("read").expect("there").text, "own");
    }

    #[test]
    fn the_cap_is_exact_and_a_sparse_giant_is_not_read() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("f");
        fs::write(&path, "12345").expect("written");
        assert_eq!(read(&path, 5).expect("read").expect("there").text, "12345");
        assert!(matches!(read(&path, 4), Err(ReadError::TooLarge { cap: 4 })));
        File::create(&path).and_then(|file| file.set_len(1 << 40)).expect("grown");
        assert!(matches!(read(&path, 4), Err(ReadError::TooLarge { .. })));
    }

    #[test]
    fn a_byte_order_mark_goes_and_other_encodings_are_refused() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("f");
        fs::write(&path, "\u{feff}{}").expect("written");
        assert_eq!(read(&path, 99).expect("read").expect("there").text, "{}");
        fs::write(&path, b"\xff\xfe{\0}\0").expect("written");
        assert!(matches!(read(&path, 99), Err(ReadError::NotUtf8)));
    }

    #[test]
    fn a_file_that_others_can_write_is_told_apart() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("f");
        fs::write(&path, "x").expect("written");
        for (mode, writers) in [(0o600, Writers::Own), (0o664, Writers::Own), (0o666, Writers::Others)] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("set");
            assert_eq!(read(&path, 9).expect("read").expect("there").writers, writers, "{mode:o}");
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("set");
        if std::os::unix::fs::chown(&path, Some(54_321), None).is_ok() {
            assert_eq!(read(&path, 9).expect("read").expect("there").writers, Writers::Others, "somebody else's");
        }
    }
}
