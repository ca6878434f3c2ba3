//! Paths by the letter: absolute, without `.` and `..`, each once for an operation.

use std::path::{Component, Path, PathBuf};

/// Most paths of one call: far more than a patch that anybody reads touches.
pub const MAX_PATHS: usize = 4_096;
/// Longest all paths of one call together, in bytes.
pub const MAX_PATH_BYTES: usize = 1024 * 1024;

/// What a tool does with a file or folder. Moving one is a `Delete` of the old and a `Write` of the new name.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub enum Operation {
    /// Its contents, its name or the names in it are looked at.
    Read,
    /// It is created, or replaced as a whole.
    Write,
    /// A part of it is changed.
    Edit,
    /// It is removed.
    Delete,
}

/// A file or folder that a tool names.
#[derive(Clone, Debug, Hash, PartialEq, Eq)]
pub struct ToolPath {
    /// Absolute and without `.` and `..`; as written if the event names no folder that is worked in.
    pub path: String,
    /// What happens to it.
    pub operation: Operation,
}

/// A folder that the agent reaches over a link: as the agent writes it, and as it is without links. Both are absolute.
#[derive(Clone, Copy, Debug)]
pub struct Linked<'a> {
    /// With the link.
    pub written: &'a str,
    /// Without links.
    pub canonical: &'a str,
}

impl Linked<'_> {
    /// The path without the link, if it is that folder's or begins with it. By the text alone, so the path may hold no `..`.
    pub fn resolve(&self, path: &str) -> Option<String> {
        let below = path.strip_prefix(self.written).filter(|rest| rest.is_empty() || rest.starts_with('/'))?;
        Some(format!("{}{below}", self.canonical))
    }
}

/// A call names more than [`MAX_PATHS`] paths, or more than [`MAX_PATH_BYTES`] bytes of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooMany;

/// Collects the paths of a call.
pub(crate) struct PathList<'a> {
    cwd: Option<&'a str>,
    linked: Option<Linked<'a>>,
    paths: Vec<ToolPath>,
    seen: std::collections::HashSet<ToolPath>,
    bytes: usize,
}

impl<'a> PathList<'a> {
    pub(crate) fn new(cwd: Option<&'a str>, linked: Option<Linked<'a>>) -> Self {
        Self { cwd, linked, paths: Vec::new(), seen: std::collections::HashSet::new(), bytes: 0 }
    }

    /// Adds a path as a tool's input has it.
    pub(crate) fn add(&mut self, path: &str, operation: Operation) -> Result<(), TooMany> {
        // Before it is resolved: a path of megabytes is not worth the work.
        if path.len() > MAX_PATH_BYTES {
            return Err(TooMany);
        }
        let path = absolute(self.cwd, path);
        let path = self.linked.and_then(|linked| linked.resolve(&path)).unwrap_or(path);
        let path = ToolPath { path, operation };
        if !self.seen.insert(path.clone()) {
            return Ok(());
        }
        self.bytes += path.path.len();
        if self.paths.len() == MAX_PATHS || self.bytes > MAX_PATH_BYTES {
            return Err(TooMany);
        }
        self.paths.push(path);
        Ok(())
    }

    pub(crate) fn finish(self) -> Vec<ToolPath> {
        self.paths
    }
}

/// A path against the folder worked in. `..` takes away the part before it, as the agents' own tools have it.
fn absolute(cwd: Option<&str>, path: &str) -> String {
    let joined = cwd.map_or_else(|| PathBuf::from(path), |cwd| Path::new(cwd).join(path));
    if !joined.is_absolute() {
        return path.to_owned();
    }
    let mut resolved = PathBuf::new();
    for part in joined.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(resolved.pop()),
            part => resolved.push(part),
        }
    }
    resolved.to_string_lossy().into_owned()
}

/// `path` seen from `folder`.
pub(crate) fn join(folder: &str, path: &str) -> String {
    Path::new(folder).join(path).to_string_lossy().into_owned()
}

/// The folders at a pattern's beginning that are no pattern: `/etc` of `/etc/*.conf`, nothing of `*.rs`.
pub(crate) fn literal_folder(pattern: &str) -> &str {
    let wild = pattern.find(['*', '?', '[', '{', '\\']).unwrap_or(pattern.len());
    match pattern[..wild].rfind('/') {
        Some(0) => "/",
        Some(end) => &pattern[..end],
        None => "",
    }
}
