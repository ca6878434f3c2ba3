//! A folder for targets that read files, and the parts of an input that go into several of them.

use std::cell::OnceCell;
use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// Stands on a line of its own between the parts of an input.
const SEPARATOR: &[u8] = b"\n=====\n";

/// The first `N` parts of an input; parts that are not there are empty, and the last holds the rest.
pub(crate) fn parts<const N: usize>(input: &[u8]) -> [&[u8]; N] {
    let mut rest = input;
    std::array::from_fn(|at| {
        let end = rest.windows(SEPARATOR.len()).position(|window| window == SEPARATOR).filter(|_| at + 1 < N);
        let (part, after) = end.map_or((rest, &[][..]), |end| (&rest[..end], &rest[end + SEPARATOR.len()..]));
        rest = after;
        part
    })
}

/// Calls `work` with a folder that this thread reuses, because creating one costs more than most targets.
pub(crate) fn with_folder<T>(work: impl FnOnce(&Path) -> T) -> T {
    thread_local! {
        static FOLDER: OnceCell<TempDir> = const { OnceCell::new() };
    }
    FOLDER.with(|folder| work(folder.get_or_init(|| tempfile::tempdir().expect("a temporary folder")).path()))
}

/// Writes a file; an empty one is none.
pub(crate) fn plant(folder: &Path, path: &str, bytes: &[u8]) -> PathBuf {
    let path = folder.join(path);
    if bytes.is_empty() {
        drop(fs::remove_file(&path));
    } else {
        fs::create_dir_all(path.parent().expect("a path below the folder")).expect("a folder");
        fs::write(&path, bytes).expect("a file");
    }
    path
}
