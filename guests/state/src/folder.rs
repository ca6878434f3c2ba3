//! One folder of `.omc`, and what is done in it by name.
//!
//! On Unix the folder is an open handle, reached component by component without following a link: whoever swaps a folder or a
//! file for a link meanwhile changes nothing about where we read and write. A guest's file system is the host's, which works in
//! this way itself, so there paths do; and so they do on other systems, where links are looked for first.

pub(crate) use os::Folder;

use std::{fs, io::ErrorKind, path::Path};

use crate::Timestamp;

/// What a folder's entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    File,
    Folder,
    /// A link, a pipe, a device.
    Other,
}

/// What is known about an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct About {
    pub(crate) kind: Kind,
    /// Length in bytes.
    pub(crate) len: u64,
    /// When its content changed last; 1970 where the file system does not say.
    pub(crate) modified: Timestamp,
}

impl From<fs::Metadata> for About {
    fn from(metadata: fs::Metadata) -> Self {
        let kind = match metadata.file_type() {
            kind if kind.is_file() => Kind::File,
            kind if kind.is_dir() => Kind::Folder,
            _ => Kind::Other,
        };
        let modified = metadata.modified().map_or(Timestamp::from_epoch_ms(0), Timestamp::from);
        Self { kind, len: metadata.len(), modified }
    }
}

/// Why a folder could not be opened.
#[derive(Debug)]
pub(crate) enum NoFolder {
    /// It, or one above it, is not there.
    Missing,
    /// There is a link, or no folder at all, in this place below the root.
    NotPlain(std::path::PathBuf),
    /// Anything else.
    Failed(std::io::Error),
}

/// The components of a path below the root, each with the path up to it.
fn steps(path: &Path) -> impl Iterator<Item = (&std::ffi::OsStr, std::path::PathBuf)> {
    let mut reached = std::path::PathBuf::new();
    path.components().map(move |component| {
        reached.push(component);
        (component.as_os_str(), reached.clone())
    })
}

fn no_folder(error: std::io::Error, path: std::path::PathBuf) -> NoFolder {
    match error.kind() {
        ErrorKind::NotFound => NoFolder::Missing,
        ErrorKind::NotADirectory => NoFolder::NotPlain(path),
        _ => NoFolder::Failed(error),
    }
}

#[cfg(unix)]
mod os {
    use std::{
        ffi::{OsStr, OsString},
        fs::{DirBuilder, File},
        io,
        os::{
            fd::OwnedFd,
            unix::{ffi::OsStringExt as _, fs::DirBuilderExt as _},
        },
        path::Path,
    };

    use rustix::{
        fs::{AtFlags, FileType, Mode, OFlags, Stat},
        io::Errno,
    };

    use super::{About, Kind, NoFolder, no_folder, steps};
    use crate::Timestamp;

    const DIR: OFlags =
        OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);

    /// Never waits for the other end of a pipe.
    const FILE: OFlags = OFlags::NOFOLLOW.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

    /// An open folder.
    #[derive(Debug)]
    pub(crate) struct Folder(OwnedFd);

    impl Folder {
        /// Opens a folder below the root, which may itself be reached over links but be none.
        pub(crate) fn open(root: &Path, path: &Path) -> Result<Self, NoFolder> {
            let mut folder =
                open_dir(rustix::fs::CWD, root.as_os_str()).map_err(|error| no_folder(error, "".into()))?;
            for (name, reached) in steps(path) {
                folder = open_dir(&folder, name).map_err(|error| no_folder(error, reached))?;
            }
            Ok(Self(folder))
        }

        /// The same, with those folders made that are missing, for the user alone.
        pub(crate) fn make(root: &Path, path: &Path) -> Result<Self, NoFolder> {
            DirBuilder::new().recursive(true).mode(0o700).create(root).map_err(NoFolder::Failed)?;
            let mut folder =
                open_dir(rustix::fs::CWD, root.as_os_str()).map_err(|error| no_folder(error, "".into()))?;
            for (name, reached) in steps(path) {
                match rustix::fs::mkdirat(&folder, name, Mode::RWXU) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(error) => return Err(no_folder(error.into(), reached)),
                }
                folder = open_dir(&folder, name).map_err(|error| no_folder(error, reached))?;
            }
            Ok(Self(folder))
        }

        /// Looks at an entry, and at a link itself.
        pub(crate) fn about(&self, name: &OsStr) -> io::Result<About> {
            Ok(rustix::fs::statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW)?.into())
        }

        /// Opens a file to read it. What was opened has to be looked at before it is read.
        pub(crate) fn open_file(&self, name: &OsStr) -> io::Result<File> {
            Ok(rustix::fs::openat(&self.0, name, FILE | OFlags::RDONLY, Mode::empty())?.into())
        }

        /// Makes a file that is not there yet, for the user alone.
        pub(crate) fn create_file(&self, name: &OsStr) -> io::Result<File> {
            let flags = FILE | OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
            Ok(rustix::fs::openat(&self.0, name, flags, Mode::RUSR | Mode::WUSR)?.into())
        }

        pub(crate) fn rename(&self, name: &OsStr, to: &OsStr) -> io::Result<()> {
            Ok(rustix::fs::renameat(&self.0, name, &self.0, to)?)
        }

        pub(crate) fn remove_file(&self, name: &OsStr) -> io::Result<()> {
            Ok(rustix::fs::unlinkat(&self.0, name, AtFlags::empty())?)
        }

        pub(crate) fn remove_folder(&self, name: &OsStr) -> io::Result<()> {
            Ok(rustix::fs::unlinkat(&self.0, name, AtFlags::REMOVEDIR)?)
        }

        /// The names of the entries; none if they cannot be listed.
        pub(crate) fn names(&self) -> impl Iterator<Item = OsString> {
            let entries = rustix::fs::Dir::read_from(&self.0).into_iter().flatten().flatten();
            let names = entries.map(|entry| OsString::from_vec(entry.file_name().to_bytes().to_vec()));
            names.filter(|name| name != "." && name != "..")
        }
    }

    impl From<Stat> for About {
        #[allow(
            clippy::cast_lossless,
            clippy::cast_possible_wrap,
            clippy::cast_sign_loss,
            clippy::unnecessary_cast,
            reason = "the widths and signs of these fields differ between platforms; none of them is negative or large"
        )]
        fn from(stat: Stat) -> Self {
            let kind = match FileType::from_raw_mode(stat.st_mode) {
                FileType::RegularFile => Kind::File,
                FileType::Directory => Kind::Folder,
                _ => Kind::Other,
            };
            let modified =
                (stat.st_mtime as i64).saturating_mul(1000).saturating_add(stat.st_mtime_nsec as i64 / 1_000_000);
            Self { kind, len: stat.st_size as u64, modified: Timestamp::from_epoch_ms(modified) }
        }
    }

    fn open_dir(folder: impl std::os::fd::AsFd, name: &OsStr) -> io::Result<OwnedFd> {
        match rustix::fs::openat(folder, name, DIR, Mode::empty()) {
            Ok(folder) => Ok(folder),
            // Systems differ in what they say of a link where a folder has to be.
            Err(Errno::LOOP | Errno::MLINK) => Err(Errno::NOTDIR.into()),
            Err(error) => Err(error.into()),
        }
    }
}

#[cfg(not(unix))]
mod os {
    use std::{
        ffi::{OsStr, OsString},
        fs::{self, DirBuilder, File, OpenOptions},
        io,
        path::{Path, PathBuf},
    };

    use super::{About, NoFolder, no_folder, steps};

    /// The path of a folder.
    #[derive(Debug)]
    pub(crate) struct Folder(PathBuf);

    impl Folder {
        /// A folder below the root. In a guest nothing is asked: the host's file system refuses links by itself.
        pub(crate) fn open(root: &Path, path: &Path) -> Result<Self, NoFolder> {
            if !cfg!(target_family = "wasm") {
                for (_, reached) in steps(path) {
                    match fs::symlink_metadata(root.join(&reached)) {
                        Ok(metadata) if metadata.is_dir() => {}
                        Ok(_) => return Err(NoFolder::NotPlain(reached)),
                        Err(error) => return Err(no_folder(error, reached)),
                    }
                }
            }
            Ok(Self(root.join(path)))
        }

        /// The same, with those folders made that are missing.
        pub(crate) fn make(root: &Path, path: &Path) -> Result<Self, NoFolder> {
            let made = || DirBuilder::new().recursive(true).create(root.join(path)).map_err(NoFolder::Failed);
            match Self::open(root, path) {
                Ok(folder) if cfg!(target_family = "wasm") => made().map(|()| folder),
                Err(NoFolder::Missing) => made().and_then(|()| Self::open(root, path)),
                opened => opened,
            }
        }

        /// Looks at an entry, and at a link itself.
        pub(crate) fn about(&self, name: &OsStr) -> io::Result<About> {
            Ok(fs::symlink_metadata(self.0.join(name))?.into())
        }

        /// Opens a file to read it. What was opened has to be looked at before it is read.
        pub(crate) fn open_file(&self, name: &OsStr) -> io::Result<File> {
            File::open(self.0.join(name))
        }

        /// Makes a file that is not there yet.
        pub(crate) fn create_file(&self, name: &OsStr) -> io::Result<File> {
            OpenOptions::new().write(true).create_new(true).open(self.0.join(name))
        }

        pub(crate) fn rename(&self, name: &OsStr, to: &OsStr) -> io::Result<()> {
            fs::rename(self.0.join(name), self.0.join(to))
        }

        pub(crate) fn remove_file(&self, name: &OsStr) -> io::Result<()> {
            fs::remove_file(self.0.join(name))
        }

        pub(crate) fn remove_folder(&self, name: &OsStr) -> io::Result<()> {
            fs::remove_dir(self.0.join(name))
        }

        /// The names of the entries; none if they cannot be listed.
        pub(crate) fn names(&self) -> impl Iterator<Item = OsString> {
            fs::read_dir(&self.0).into_iter().flatten().flatten().map(|entry| entry.file_name())
        }
    }
}
