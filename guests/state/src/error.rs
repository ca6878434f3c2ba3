//! What can go wrong with a file of `.omc`.

use std::{io, path::PathBuf};

/// Why a file was not read or written. Paths are below the root of the store.
///
/// None of these stops a caller that only wants to know a state: for it the file is as good as absent.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file could not be read.
    #[error("failed to read `{}`", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file could not be written, moved or removed.
    #[error("failed to write `{}`", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// There is a folder, a link, a pipe or a device in the place of a file, or a link in the place of a folder.
    #[error("`{}` is not a plain file in plain folders", path.display())]
    NotPlain {
        /// What is there.
        path: PathBuf,
    },
    /// The file is longer than [`MAX_FILE_BYTES`](crate::MAX_FILE_BYTES).
    #[error("`{}` is larger than {} bytes", path.display(), crate::MAX_FILE_BYTES)]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// What was to be written is nested deeper than it could be read again.
    #[error("what is to be written to `{}` is nested deeper than {max_depth} levels", path.display())]
    TooDeep {
        /// The file.
        path: PathBuf,
        /// The limit.
        max_depth: usize,
    },
    /// The file is not the JSON that belongs there.
    #[error("`{}` is corrupt", path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// Where the JSON ends to make sense.
        source: serde_json::Error,
    },
    /// The file is not text in UTF-8. Only a person can say what it was.
    #[error("`{}` is not UTF-8", path.display())]
    NotText {
        /// The file.
        path: PathBuf,
    },
    /// The wiki keeps the file itself.
    #[error("`{}` is the wiki's own file, and no page can have its name; take another one", path.display())]
    Reserved {
        /// The file.
        path: PathBuf,
    },
    /// No page of the wiki can have the name.
    #[error("no page can be called `{name}`: a name ends in `.md`, begins with no `.` and has no `/` or `\\` in it")]
    NoPageName {
        /// The name, cut to a length.
        name: String,
    },
    /// There is a file already where a new one was to be made.
    #[error("`{}` is there already", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// There is no room for more in the file, and nothing in it that may be dropped.
    #[error("`{}` is full: {max_bytes} bytes at most", path.display())]
    Full {
        /// The file.
        path: PathBuf,
        /// Its limit.
        max_bytes: usize,
    },
    /// There are as many entries in the folder as there may be.
    #[error("`{}` holds {max} entries, and no more may be added", path.display())]
    TooMany {
        /// The folder.
        path: PathBuf,
        /// Its limit.
        max: usize,
    },
    /// The text is longer than its place allows; nothing of it was stored.
    #[error("the text is longer than {max_units} UTF-16 units")]
    TooLong {
        /// The limit.
        max_units: usize,
    },
    /// The lock was not to be had: mostly, as somebody else held it for the whole time that we could wait.
    #[error("failed to get the lock `{name}`")]
    Lock {
        /// Name of the lock.
        name: String,
        /// What the locker said.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl Error {
    /// Whether there is a plain file that cannot be read as a text: it is too large, or not UTF-8.
    pub fn is_unreadable_text(&self) -> bool {
        matches!(self, Self::TooLarge { .. } | Self::NotText { .. })
    }

    /// The error with its causes, on one line: what a log wants.
    pub fn chain(&self) -> String {
        chain(self)
    }
}

/// Any error with its causes, on one line.
pub fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |&error| error.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}
