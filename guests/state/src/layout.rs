//! The `.omc` directory itself: its usual folders, and the file that keeps it out of a repository.

use std::path::Path;

use crate::{Error, Store, file::Durability};

/// Folders that `init` makes.
const FOLDERS: &[&str] = &["state", "state/checkpoints", "plans", "research", "logs", "notepads", "drafts"];

const IGNORE: &str = ".gitignore";

/// Skills are written to be shared; all else is one machine's.
const IGNORED: &str = "*\n!.gitignore\n!skills/\n!skills/**\n";

impl Store {
    /// Makes the usual folders and says how many were missing.
    ///
    /// # Errors
    ///
    /// The first folder that could not be made, after all have been tried.
    pub fn make_folders(&self) -> Result<usize, Error> {
        let mut made = 0;
        let mut first_error = None;
        for folder in FOLDERS.iter().map(Path::new).filter(|folder| !self.exists(folder)) {
            match self.make_folder(folder) {
                Ok(()) => made += 1,
                Err(error) => first_error = first_error.or(Some(error)),
            }
        }
        first_error.map_or(Ok(made), Err)
    }

    /// Keeps the directory out of the repository around it, unless somebody has said already what is to be kept out.
    ///
    /// An empty file says nothing: a power cut may leave one, since writing this file is not waited for on the first event of a
    /// project. Who wants all of the directory in the repository writes `!*`.
    ///
    /// # Errors
    ///
    /// What keeps the file from being looked at or written.
    pub fn ensure_ignored(&self) -> Result<(), Error> {
        let path = Path::new(IGNORE);
        match self.plain_file(path) {
            Ok(Some(about)) if about.len > 0 => Ok(()),
            Ok(_) => self.replace_bytes(path, IGNORED.as_bytes(), Durability::Rename),
            // Whatever it is, somebody made it. A directory that is none is another matter.
            Err(Error::NotPlain { path: found }) if found == path => Ok(()),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{plant, store};
    use std::fs;

    #[test]
    fn folders_are_made_once() {
        let (folder, store) = store();
        plant(&folder, "state/x.json", "{}");
        assert_eq!(store.make_folders().expect("made"), FOLDERS.len() - 1);
        assert_eq!(store.make_folders().expect("made"), 0);
        assert!(folder.path().join("state/checkpoints").is_dir());
    }

    #[test]
    fn the_users_own_word_on_what_is_ignored_stays() {
        let (folder, store) = store();
        store.ensure_ignored().expect("written");
        let read = || fs::read_to_string(folder.path().join(IGNORE)).expect("a file");
        assert_eq!(read(), IGNORED);
        plant(&folder, IGNORE, "wiki/\n");
        store.ensure_ignored().expect("left");
        assert_eq!(read(), "wiki/\n");
        plant(&folder, IGNORE, "");
        store.ensure_ignored().expect("written");
        assert_eq!(read(), IGNORED, "what a power cut left");
        fs::remove_file(folder.path().join(IGNORE)).expect("removed");
        fs::create_dir(folder.path().join(IGNORE)).expect("a folder in its place");
        store.ensure_ignored().expect("left");
    }
}
