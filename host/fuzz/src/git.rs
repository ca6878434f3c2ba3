//! Repositories that nobody would make.

use std::fs;

use omc_host::capability::git::{branch_and_head, paths_in};

use crate::scratch::{parts, plant, with_folder};

/// Most paths that are asked for.
const MOST: usize = 16;

/// Puts the parts of the input into the files of a repository and of one that is named in a file, asks for branch and commit, and
/// reads the rest as what git prints.
///
/// Promises: a branch is a name that a path can hold and a terminal can show; a commit is an id; the paths are those asked for.
pub fn git(bytes: &[u8]) {
    let [head, reference, packed, common, link, tracked, others] = parts(bytes);
    with_folder(|folder| {
        for (path, bytes) in [
            ("plain/.git/HEAD", head),
            ("plain/.git/refs/heads/main", reference),
            ("plain/.git/packed-refs", packed),
            ("plain/.git/commondir", common),
            ("linked/.git", link),
        ] {
            plant(folder, path, bytes);
        }
        for work_tree in ["plain", "linked"] {
            fs::create_dir_all(folder.join(work_tree)).expect("a folder");
            let [branch, head] = branch_and_head(&folder.join(work_tree));
            if let Some(branch) = branch {
                assert!(
                    !branch.is_empty() && !branch.split('/').any(|part| matches!(part, "" | "." | "..")),
                    "{branch:?}"
                );
                assert!(!branch.contains(|letter: char| letter.is_control() || letter == ' '), "{branch:?}");
            }
            if let Some(id) = head {
                assert!(matches!(id.len(), 40 | 64) && id.bytes().all(|byte| byte.is_ascii_hexdigit()), "{id:?}");
            }
        }
    });
    let paths = paths_in(tracked, others, MOST);
    assert!(paths.len() <= MOST && paths.iter().all(|path| !path.is_empty() && !path.contains('\0')), "{paths:?}");
}
