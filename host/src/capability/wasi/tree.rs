//! From a guest's path to a handle: the walk that cannot leave the preopen.
//!
//! Folders are opened one by one, each from the handle of the one before, and never over a link. `..` steps back to a handle that
//! the walk holds, so that renaming folders meanwhile leads nowhere. A folder that a guest has open is only a path (there is no
//! handle that could go stale, or be moved somewhere else): each use walks again and is judged by the grants again.

use std::io;
use std::sync::Arc;

use super::bindings::filesystem::types::ErrorCode;
use super::error::FsError;
use super::grant::{Grants, Rights};
use super::os::{Dir, Kind};
use super::path::{self, Step};
use super::usage::Reason;
use crate::capability::omc_dir::{OmcDir, Unusable};

/// A directory with what is granted in it.
#[derive(Debug)]
pub(super) struct Mount {
    /// Where guests find it, such as `/omc`.
    pub(super) guest_path: String,
    pub(super) dir: Arc<OmcDir>,
    pub(super) grants: Grants,
}

impl Mount {
    /// A path in this directory as the guest knows it, for the record.
    pub(super) fn show(&self, path: &str) -> String {
        path::join(&self.guest_path, path)
    }

    pub(super) fn refused(&self, reason: Reason, path: &str) -> FsError {
        FsError::Refused(reason, self.show(path))
    }

    fn unusable(&self, unusable: Unusable) -> FsError {
        FsError::Refused(Reason::Directory, format!("{}: {unusable}", self.guest_path))
    }

    /// The directory's handle; `None` while it is missing.
    pub(super) fn root(&self) -> Result<Option<Arc<Dir>>, FsError> {
        self.dir.handle().map_err(|unusable| self.unusable(unusable))
    }

    /// The directory's handle; it is created if it is missing.
    pub(super) fn ensure_root(&self) -> Result<Arc<Dir>, FsError> {
        self.dir.ensure().map_err(|unusable| self.unusable(unusable))
    }

    /// The rights at `path` if it may at least be looked at.
    pub(super) fn pass(&self, path: &str) -> Result<Rights, FsError> {
        let rights = self.grants.rights(path);
        if rights.pass { Ok(rights) } else { Err(self.refused(Reason::NotGranted, path)) }
    }

    /// Succeeds if `path` may be read.
    pub(super) fn may_read(&self, path: &str) -> Result<(), FsError> {
        if self.pass(path)?.read { Ok(()) } else { Err(self.refused(Reason::NotGranted, path)) }
    }

    /// Succeeds if `path` may be changed.
    pub(super) fn may_write(&self, path: &str) -> Result<(), FsError> {
        let rights = self.pass(path)?;
        match (rights.write, rights.read) {
            (true, _) => Ok(()),
            (false, true) => Err(self.refused(Reason::ReadOnly, path)),
            (false, false) => Err(self.refused(Reason::NotGranted, path)),
        }
    }

    /// Succeeds if the entry at `path` may be removed or given another name: it and the folder that lists it can be changed.
    pub(super) fn may_unlink(&self, path: &str) -> Result<(), FsError> {
        self.may_write(path)?;
        match path::split(path) {
            Some((parent, _)) if self.grants.rights(parent).write => Ok(()),
            _ => Err(self.refused(Reason::HoldsGrant, path)),
        }
    }
}

/// A folder that a guest has open.
#[derive(Clone, Debug)]
pub(super) struct Folder {
    pub(super) mount: Arc<Mount>,
    /// Names from the preopen to here; empty for the preopen itself.
    pub(super) path: String,
}

/// What a path names.
pub(super) enum Target {
    /// The preopened directory itself; `None` while it is missing.
    Root(Option<Arc<Dir>>),
    /// An entry, which may or may not be there.
    Entry(Place),
}

/// Where an entry is, or would be.
pub(super) struct Place {
    parent: Parent,
    /// Names from the preopen to the entry.
    pub(super) path: String,
    /// Whether the guest's path says that it is a folder (`a/`, `a/.`).
    pub(super) must_be_dir: bool,
}

/// The folder that holds an entry.
enum Parent {
    Root(Arc<Dir>),
    Below(Dir),
    /// The preopened directory, which is not there yet.
    Missing(Arc<Mount>),
}

impl Target {
    /// The names from the preopen to here.
    pub(super) fn path(&self) -> &str {
        match self {
            Self::Root(_) => "",
            Self::Entry(place) => &place.path,
        }
    }
}

impl Place {
    /// The entry's own name.
    pub(super) fn name(&self) -> &str {
        path::split(&self.path).map_or("", |(_, name)| name)
    }

    /// The folder that holds the entry; `NotFound` while the preopened directory is missing.
    pub(super) fn parent(&self) -> io::Result<&Dir> {
        match &self.parent {
            Parent::Root(dir) => Ok(dir),
            Parent::Below(dir) => Ok(dir),
            Parent::Missing(_) => Err(io::ErrorKind::NotFound.into()),
        }
    }

    /// The same for a write that creates the entry: now the preopened directory is created, if it is missing.
    pub(super) fn ensure_parent(&mut self) -> Result<&Dir, FsError> {
        if let Parent::Missing(mount) = &self.parent {
            self.parent = Parent::Root(mount.ensure_root()?);
        }
        Ok(self.parent()?)
    }
}

impl Folder {
    /// Finds what `path` names, seen from this folder. Only the last component may be missing.
    ///
    /// The grants are checked for every folder on the way, but not for what is found.
    pub(super) fn resolve(&self, path: &str) -> Result<Target, FsError> {
        let parsed = path::parse(path)?;
        let mut walk = self.walk()?;
        let floor = walk.depth();
        let mut must_be_dir = parsed.must_be_dir;
        for step in parsed.steps {
            must_be_dir = parsed.must_be_dir || !matches!(step, Step::Into(_));
            match step {
                Step::Here => walk.settle()?,
                Step::Up if walk.depth() > floor => walk.step_up()?,
                Step::Up => return Err(self.mount.refused(Reason::Escape, &path::join(&self.path, path))),
                Step::Into(name) => walk.step_into(name)?,
            }
        }
        Ok(walk.finish(must_be_dir))
    }

    /// Opens this folder; fails if it is not there or is no folder any more.
    pub(super) fn open(&self) -> Result<Handle, FsError> {
        let mut walk = self.walk()?;
        walk.settle()?;
        match (walk.dirs.pop(), walk.root) {
            (Some(dir), _) => Ok(Handle::Below(dir)),
            (None, Some(root)) => Ok(Handle::Root(root)),
            (None, None) => Err(ErrorCode::NoEntry.into()),
        }
    }

    /// A walk that has come as far as this folder, which is still to be opened.
    fn walk(&self) -> Result<Walk<'_>, FsError> {
        let root = self.mount.root()?;
        let mut walk = Walk { mount: &self.mount, root, dirs: Vec::new(), path: String::new(), pending: false };
        for name in path::names(&self.path) {
            walk.step_into(name)?;
        }
        Ok(walk)
    }
}

/// An open folder that may be the shared one of the preopen.
pub(super) enum Handle {
    Root(Arc<Dir>),
    Below(Dir),
}

impl std::ops::Deref for Handle {
    type Target = Dir;

    fn deref(&self) -> &Dir {
        match self {
            Self::Root(dir) => dir,
            Self::Below(dir) => dir,
        }
    }
}

impl Target {
    /// Opens what was found as a folder.
    pub(super) fn open(self, mount: &Mount) -> Result<Handle, FsError> {
        match self {
            Self::Root(Some(dir)) => Ok(Handle::Root(dir)),
            Self::Root(None) => Err(ErrorCode::NoEntry.into()),
            Self::Entry(place) => open_dir(mount, place.parent()?, &place.path).map(Handle::Below),
        }
    }
}

/// Opens the folder at `path`, whose last name is an entry of `parent`.
fn open_dir(mount: &Mount, parent: &Dir, path: &str) -> Result<Dir, FsError> {
    let name = path::split(path).map_or("", |(_, name)| name);
    parent.open_dir(name).map_err(|error| match error.kind() {
        io::ErrorKind::NotADirectory if parent.stat_at(name).is_ok_and(|stat| stat.kind == Kind::Symlink) => {
            mount.refused(Reason::SymbolicLink, path)
        }
        _ => error.into(),
    })
}

/// A walk under way. `path` has one name for each of `dirs`, and one more if the last step is still `pending`.
struct Walk<'a> {
    mount: &'a Arc<Mount>,
    root: Option<Arc<Dir>>,
    dirs: Vec<Dir>,
    path: String,
    /// The last name was not opened yet: if it is what the guest means, it need not be a folder, nor be there.
    pending: bool,
}

impl Walk<'_> {
    fn depth(&self) -> usize {
        self.dirs.len() + usize::from(self.pending)
    }

    fn step_into(&mut self, name: &str) -> Result<(), FsError> {
        self.settle()?;
        let path = path::join(&self.path, name);
        if path.len() > path::MAX_PATH_BYTES || self.dirs.len() == path::MAX_COMPONENTS {
            return Err(ErrorCode::NameTooLong.into());
        }
        self.path = path;
        self.pending = true;
        Ok(())
    }

    fn step_up(&mut self) -> Result<(), FsError> {
        self.settle()?;
        self.dirs.pop();
        let parent = path::split(&self.path).map_or(0, |(parent, _)| parent.len());
        self.path.truncate(parent);
        Ok(())
    }

    /// Opens the pending name: the path goes on behind it, so it has to be a folder that may be passed.
    fn settle(&mut self) -> Result<(), FsError> {
        if self.pending {
            self.mount.pass(&self.path)?;
            let parent = self.dirs.last().or(self.root.as_deref()).ok_or(ErrorCode::NoEntry)?;
            let dir = open_dir(self.mount, parent, &self.path)?;
            self.dirs.push(dir);
            self.pending = false;
        }
        Ok(())
    }

    fn finish(mut self, must_be_dir: bool) -> Target {
        // What was opened last is named by the folder before it.
        if !self.pending && self.dirs.pop().is_none() {
            return Target::Root(self.root);
        }
        let parent = match (self.dirs.pop(), self.root) {
            (Some(dir), _) => Parent::Below(dir),
            (None, Some(root)) => Parent::Root(root),
            (None, None) => Parent::Missing(Arc::clone(self.mount)),
        };
        Target::Entry(Place { parent, path: self.path, must_be_dir })
    }
}
