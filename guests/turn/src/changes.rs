//! The files that were changed since the last commit, those inside of new folders too.

use omc_guest::git::{self, ChangeKind};
use omc_guest::project_files::{self, Root};
use omc_guest::{AccessError, log};

/// Changed paths that are asked for: the most that the host gives.
const MAX_CHANGES: u32 = 4_096;

/// Files of one new folder, and of all together, that are looked at.
const MAX_IN_FOLDER: u32 = 256;
const MAX_IN_FOLDERS: usize = 1_024;

/// Folders of what is made or fetched and not written. Git would ignore them by rules that are not known here.
const NOT_WRITTEN: [&str; 13] = [
    "node_modules",
    "target",
    "dist",
    "build",
    "out",
    "vendor",
    "coverage",
    "__pycache__",
    ".venv",
    "venv",
    ".cache",
    ".next",
    ".nuxt",
];

/// A file that is there and was changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changed {
    /// Its path from the work tree's top.
    pub path: String,
    /// All of it is new. Of another file, some lines are.
    pub is_new: bool,
}

/// The files that were changed, in git's order. Needs the grants `git`, and `read` for what new folders hold.
///
/// # Errors
///
/// What the host says; [`AccessError::NotFound`] if there is no repository.
pub fn changed_files() -> Result<Vec<Changed>, AccessError> {
    let mut files = Vec::new();
    let mut in_folders = 0;
    for change in git::changed_paths(MAX_CHANGES)?.paths {
        let is_new = matches!(change.kind, ChangeKind::Added | ChangeKind::Untracked);
        match change.path.strip_suffix('/') {
            _ if change.kind == ChangeKind::Deleted => {}
            Some(folder) => {
                let inside = in_new_folder(folder, MAX_IN_FOLDERS - in_folders);
                in_folders += inside.len();
                files.extend(inside.into_iter().map(|path| Changed { path, is_new }));
            }
            None => files.push(Changed { path: change.path, is_new }),
        }
    }
    Ok(files)
}

/// The files of a folder that git does not know.
fn in_new_folder(folder: &str, most: usize) -> Vec<String> {
    let found = project_files::find(Root::Project, folder, MAX_IN_FOLDER).unwrap_or_else(|error| {
        log::debug(&format!("the new folder `{}` was not looked into: {error}", folder.escape_debug()));
        project_files::Found::default()
    });
    let is_written = |path: &String| !path.split('/').any(|part| NOT_WRITTEN.contains(&part));
    found.paths.into_iter().filter(is_written).take(most).collect()
}
