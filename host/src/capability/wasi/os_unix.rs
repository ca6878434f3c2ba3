//! Files and folders by handle, on Unix. The only place where guests' names become system calls.
//!
//! Every function takes one name inside an open folder and follows no link. Names come without `/`, `.` or `..`; `tree.rs` sees
//! to it. Nothing here blocks on a FIFO or a lease, and nothing changes what it opens by opening it.

use std::ffi::CString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT};
use rustix::io::Errno;

/// For every folder: refuse a link or anything else with its name.
const DIR: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);

/// For every file: refuse a link, never wait for a FIFO's other end, never become a terminal's owner.
const FILE: OFlags = OFlags::NOFOLLOW.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// New files and folders are the user's alone.
const FILE_MODE: Mode = Mode::from_raw_mode(0o600);
const DIR_MODE: Mode = Mode::from_raw_mode(0o700);

/// What an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    File,
    Dir,
    Symlink,
    Fifo,
    Socket,
    CharDevice,
    BlockDevice,
    Unknown,
}

impl From<FileType> for Kind {
    fn from(file_type: FileType) -> Self {
        match file_type {
            FileType::RegularFile => Self::File,
            FileType::Directory => Self::Dir,
            FileType::Symlink => Self::Symlink,
            FileType::Fifo => Self::Fifo,
            FileType::Socket => Self::Socket,
            FileType::CharacterDevice => Self::CharDevice,
            FileType::BlockDevice => Self::BlockDevice,
            FileType::Unknown => Self::Unknown,
        }
    }
}

/// Seconds since 1970 and nanoseconds.
pub type Time = (i64, u32);

/// What is known about an entry.
#[derive(Clone, Copy, Debug)]
pub struct Stat {
    pub kind: Kind,
    /// Device and inode: the same for two names of one file.
    pub identity: (u64, u64),
    pub owner: u32,
    pub links: u64,
    pub size: u64,
    pub accessed: Time,
    pub modified: Time,
    pub changed: Time,
}

impl From<rustix::fs::Stat> for Stat {
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_possible_wrap,
        clippy::cast_sign_loss,
        clippy::unnecessary_cast,
        clippy::useless_conversion,
        reason = "the widths and signs of these fields differ between platforms; none of them is negative or large"
    )]
    fn from(stat: rustix::fs::Stat) -> Self {
        Self {
            kind: FileType::from_raw_mode(stat.st_mode).into(),
            identity: (stat.st_dev as u64, stat.st_ino as u64),
            owner: stat.st_uid,
            links: stat.st_nlink as u64,
            size: stat.st_size as u64,
            accessed: (stat.st_atime as i64, stat.st_atime_nsec as u32),
            modified: (stat.st_mtime as i64, stat.st_mtime_nsec as u32),
            changed: (stat.st_ctime as i64, stat.st_ctime_nsec as u32),
        }
    }
}

/// What to do with a time of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetTime {
    Keep,
    Now,
    To(Time),
}

impl SetTime {
    fn timespec(self) -> Timespec {
        match self {
            Self::Keep => Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
            Self::Now => Timespec { tv_sec: 0, tv_nsec: UTIME_NOW },
            Self::To((seconds, nanoseconds)) => Timespec { tv_sec: seconds, tv_nsec: nanoseconds.into() },
        }
    }
}

fn timestamps(accessed: SetTime, modified: SetTime) -> Timestamps {
    Timestamps { last_access: accessed.timespec(), last_modification: modified.timespec() }
}

/// An open folder.
#[derive(Debug)]
pub struct Dir(OwnedFd);

impl Dir {
    /// Opens the folder that holds the directory of a preopen. Its path is the host's own and may lead over links.
    pub fn open_parent(path: &Path) -> io::Result<Self> {
        Ok(Self(rustix::fs::open(path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?))
    }

    /// Opens a folder in this one. A link, like anything else that is no folder, is `NotADirectory`.
    pub fn open_dir(&self, name: &str) -> io::Result<Self> {
        match rustix::fs::openat(&self.0, name, DIR, Mode::empty()) {
            Ok(dir) => Ok(Self(dir)),
            // Systems differ in what they say of a link where a folder has to be.
            Err(Errno::LOOP | Errno::MLINK) => Err(Errno::NOTDIR.into()),
            Err(error) => Err(error.into()),
        }
    }

    /// Opens an existing file. What was opened has to be looked at before it is used: it may have become something else.
    pub fn open_file(&self, name: &str, read: bool, write: bool) -> io::Result<File> {
        let access = match (read, write) {
            (_, false) => OFlags::RDONLY,
            (true, true) => OFlags::RDWR,
            (false, true) => OFlags::WRONLY,
        };
        Ok(File(rustix::fs::openat(&self.0, name, FILE | access, Mode::empty())?))
    }

    /// Creates a file that is not there yet; `AlreadyExists` for anything of this name, a dangling link too.
    pub fn create_file(&self, name: &str, read: bool) -> io::Result<File> {
        let access = if read { OFlags::RDWR } else { OFlags::WRONLY };
        let flags = FILE | access | OFlags::CREATE | OFlags::EXCL;
        Ok(File(rustix::fs::openat(&self.0, name, flags, FILE_MODE)?))
    }

    /// Creates a folder.
    pub fn create_dir(&self, name: &str) -> io::Result<()> {
        Ok(rustix::fs::mkdirat(&self.0, name, DIR_MODE)?)
    }

    /// The same folder as a handle of its own, for a lock that ends with it.
    pub fn reopen(&self) -> io::Result<Self> {
        Ok(Self(rustix::fs::openat(&self.0, ".", DIR, Mode::empty())?))
    }

    /// Takes the folder's lock, which ends with this handle; `WouldBlock` if another handle has it.
    pub fn try_lock(&self) -> io::Result<()> {
        Ok(rustix::fs::flock(&self.0, rustix::fs::FlockOperation::NonBlockingLockExclusive)?)
    }

    /// Looks at this folder.
    pub fn stat(&self) -> io::Result<Stat> {
        Ok(rustix::fs::fstat(&self.0)?.into())
    }

    /// Looks at an entry, and at a link itself.
    pub fn stat_at(&self, name: &str) -> io::Result<Stat> {
        Ok(rustix::fs::statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW)?.into())
    }

    /// Removes an entry that is no folder; of a link, the link.
    pub fn remove_file(&self, name: &str) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.0, name, AtFlags::empty())?)
    }

    /// Removes an empty folder.
    pub fn remove_dir(&self, name: &str) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.0, name, AtFlags::REMOVEDIR)?)
    }

    /// Renames an entry into another folder, over what is there; links are renamed and replaced, not followed.
    pub fn rename(&self, name: &str, to: &Self, new_name: &str) -> io::Result<()> {
        Ok(rustix::fs::renameat(&self.0, name, &to.0, new_name)?)
    }

    /// Starts a listing of its own.
    pub fn entries(&self) -> io::Result<Entries> {
        Ok(Entries(rustix::fs::Dir::read_from(&self.0)?))
    }

    /// Sets this folder's times.
    pub fn set_times(&self, accessed: SetTime, modified: SetTime) -> io::Result<()> {
        Ok(rustix::fs::futimens(&self.0, &timestamps(accessed, modified))?)
    }

    /// Waits until the folder's entries are on disk.
    pub fn sync(&self) -> io::Result<()> {
        Ok(rustix::fs::fsync(&self.0)?)
    }

    /// Whether the folder belongs to the user that this process acts for.
    pub fn is_own(&self) -> io::Result<bool> {
        Ok(self.stat()?.owner == rustix::process::geteuid().as_raw())
    }
}

/// A listing of a folder.
pub struct Entries(rustix::fs::Dir);

impl Entries {
    /// The next entry but `.` and `..`. The kind is `Unknown` where the file system does not tell.
    pub fn read(&mut self) -> Option<io::Result<(CString, Kind)>> {
        loop {
            match self.0.read()? {
                Ok(entry) if matches!(entry.file_name().to_bytes(), b"." | b"..") => {}
                Ok(entry) => return Some(Ok((entry.file_name().to_owned(), entry.file_type().into()))),
                Err(error) => return Some(Err(error.into())),
            }
        }
    }

    /// Looks at an entry of the folder that is listed, and at a link itself.
    pub fn stat_at(&self, name: &str) -> io::Result<Stat> {
        Ok(rustix::fs::statat(self.0.fd()?, name, AtFlags::SYMLINK_NOFOLLOW)?.into())
    }
}

/// An open file.
#[derive(Debug)]
pub struct File(OwnedFd);

impl File {
    /// Looks at what was opened.
    pub fn stat(&self) -> io::Result<Stat> {
        Ok(rustix::fs::fstat(&self.0)?.into())
    }

    /// Reads at most `len` bytes at an offset.
    pub fn read_at(&self, len: usize, offset: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::with_capacity(len);
        rustix::io::retry_on_intr(|| rustix::io::pread(&self.0, rustix::buffer::spare_capacity(&mut bytes), offset))?;
        // The allocator may give more room than was asked for.
        bytes.truncate(len);
        Ok(bytes)
    }

    /// Writes at an offset, and returns how much was written.
    pub fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        Ok(rustix::io::retry_on_intr(|| rustix::io::pwrite(&self.0, bytes, offset))?)
    }

    /// Writes at the end, wherever other processes have moved it to.
    pub fn append(&self, bytes: &[u8]) -> io::Result<usize> {
        // The descriptor is ours alone, so the flag is set for this write only; with the flag, writes at an offset would append.
        let flags = rustix::fs::fcntl_getfl(&self.0)?;
        rustix::fs::fcntl_setfl(&self.0, flags | OFlags::APPEND)?;
        let written = rustix::io::retry_on_intr(|| rustix::io::write(&self.0, bytes));
        rustix::fs::fcntl_setfl(&self.0, flags)?;
        Ok(written?)
    }

    /// Sets the size.
    pub fn set_len(&self, size: u64) -> io::Result<()> {
        Ok(rustix::io::retry_on_intr(|| rustix::fs::ftruncate(&self.0, size))?)
    }

    /// Sets the times.
    pub fn set_times(&self, accessed: SetTime, modified: SetTime) -> io::Result<()> {
        Ok(rustix::fs::futimens(&self.0, &timestamps(accessed, modified))?)
    }

    /// Waits until the contents are on disk.
    pub fn sync(&self) -> io::Result<()> {
        Ok(rustix::fs::fsync(&self.0)?)
    }
}
