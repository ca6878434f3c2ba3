//! What a tree looks like, to show that an attack changed nothing.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Everything about a tree that an attack could change: names, kinds, contents, modes, owners, links, times of modification.
pub(crate) struct Snapshot(BTreeMap<PathBuf, Facts>);

#[derive(Debug, Eq, PartialEq)]
struct Facts {
    mode: u32,
    owner: (u32, u32),
    links: u64,
    modified: (i64, i64),
    contents: Contents,
}

#[derive(Debug, Eq, PartialEq)]
enum Contents {
    Bytes(Vec<u8>),
    Target(PathBuf),
    None,
}

impl Snapshot {
    /// Looks at some trees, but not into the folders `without`.
    pub(crate) fn of(trees: &[PathBuf], without: &[PathBuf]) -> Self {
        let mut snapshot = Self(BTreeMap::new());
        for tree in trees {
            snapshot.add(tree, without);
        }
        snapshot
    }

    fn add(&mut self, path: &Path, without: &[PathBuf]) {
        if without.iter().any(|folder| folder == path) {
            return;
        }
        let about = fs::symlink_metadata(path).unwrap_or_else(|error| panic!("`{}`: {error}", path.display()));
        let contents = match about.file_type() {
            kind if kind.is_file() => Contents::Bytes(fs::read(path).expect("the world is ours")),
            kind if kind.is_symlink() => Contents::Target(fs::read_link(path).expect("it is a link")),
            _ => Contents::None,
        };
        let facts = Facts {
            mode: about.mode(),
            owner: (about.uid(), about.gid()),
            links: about.nlink(),
            modified: (about.mtime(), about.mtime_nsec()),
            contents,
        };
        self.0.insert(path.to_owned(), facts);
        if about.is_dir() {
            for entry in fs::read_dir(path).expect("the world is ours") {
                self.add(&entry.expect("the world is ours").path(), without);
            }
        }
    }

    /// Fails the test if the tree now looks different, and says where.
    pub(crate) fn assert_same(&self, now: &Self, after: &str) {
        let mut differences = String::new();
        for path in self.0.keys().chain(now.0.keys().filter(|path| !self.0.contains_key(*path))) {
            let (before, after) = (self.0.get(path), now.0.get(path));
            if before != after {
                writeln!(differences, "`{}`: {before:?} became {after:?}", path.display())
                    .expect("a string takes any text");
            }
        }
        assert!(differences.is_empty(), "after {after}:\n{differences}");
    }
}
