//! The `.omc` directory of an event: found and checked once, then shared by all guests.
//!
//! The directory is opened by handle, without following a link, and has to be a folder of the user's own. Everything after that
//! goes through the handle, so that nobody can put another folder in its place. It is created, for the user alone, at the first
//! write and not before: an event in which no guest writes leaves no trace. Its parent is never created.

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use super::wasi::os::{Dir, Kind};
use crate::config::StateRoot;

/// Why a directory cannot be used. Guests get "access denied" for everything in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unusable {
    /// The folder that should hold it is not there or cannot be opened.
    #[error("the folder that should hold it cannot be opened ({0})")]
    NoParent(io::ErrorKind),
    /// Its name is not the name of one entry.
    #[error("its name is not the name of a folder")]
    BadName,
    /// A symbolic link has its name.
    #[error("it is a symbolic link")]
    SymbolicLink,
    /// Something else that is no folder has its name.
    #[error("it is not a folder")]
    NotAFolder,
    /// It belongs to another user.
    #[error("it belongs to another user")]
    ForeignOwner,
    /// Anything else went wrong.
    #[error("it cannot be opened or created ({0})")]
    Failed(io::ErrorKind),
}

/// What is known of the directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It is not there. The first write creates it.
    Missing,
    /// It is there and can be used.
    Open,
    /// It must not be used.
    Refused(Unusable),
}

/// One `.omc` directory.
#[derive(Debug)]
pub struct OmcDir {
    name: String,
    /// Kept open, so that the directory is created where it was looked for.
    parent: Mutex<Result<Arc<Dir>, Unusable>>,
    /// Where the parent itself is created, if it is the user's folder for all state and not there yet.
    missing_parent: Option<StateRoot>,
    /// `None` while the directory is missing.
    found: Mutex<Option<Result<Arc<Dir>, Unusable>>>,
}

impl OmcDir {
    /// Looks for the directory called `name` in the folder at `parent`. What is wrong with it shows in [`OmcDir::status`].
    ///
    /// `parent` is the host's own choice and may lead over links; `name` may not be one.
    pub fn find(parent: &Path, name: &str) -> Self {
        let parent = if matches!(name, "" | "." | "..") || name.contains(['/', '\\', '\0']) {
            Err(Unusable::BadName)
        } else {
            open_parent(parent)
        };
        let dir =
            Self { name: name.to_owned(), parent: Mutex::new(parent), missing_parent: None, found: Mutex::new(None) };
        // Taken now, so that all guests of the event work in the folder that was there at its start.
        let _shows_in_status = dir.handle();
        dir
    }

    /// A directory whose parent is created with it at the first write, as the state root knows how to.
    pub fn below_missing(root: StateRoot, name: &str) -> Self {
        let found = Self::find(&root.omc_parent, name);
        // Without the verdict of a search that did not know that the parent may be missing.
        Self { missing_parent: Some(root), found: Mutex::new(None), ..found }
    }

    /// What is known of the directory now.
    pub fn status(&self) -> Status {
        match self.handle() {
            Ok(None) => Status::Missing,
            Ok(Some(_)) => Status::Open,
            Err(unusable) => Status::Refused(unusable),
        }
    }

    /// The open directory, or `None` while there is none.
    pub fn handle(&self) -> Result<Option<Arc<Dir>>, Unusable> {
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        if found.is_none() {
            *found = self.open().transpose();
        }
        found.clone().transpose()
    }

    /// The open directory, created if it is missing.
    ///
    /// Threads and processes may do this at once: one creates the folder, the others find it and check it like any other.
    pub fn ensure(&self) -> Result<Arc<Dir>, Unusable> {
        if let Some(dir) = self.handle()? {
            return Ok(dir);
        }
        let parent = self.parent(true)?.ok_or(Unusable::NoParent(io::ErrorKind::NotFound))?;
        match parent.create_dir(&self.name) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(Unusable::Failed(error.kind())),
            _ => {}
        }
        // It can only be missing again if somebody removed it in between; the next write tries anew.
        self.handle()?.ok_or(Unusable::Failed(io::ErrorKind::NotFound))
    }

    /// A folder in it by its path, or itself by the empty path, as a handle of its own: a lock on it belongs to this handle
    /// alone. What is missing is created.
    #[cfg(unix)]
    pub(crate) fn lockable(&self, path: &str) -> Result<Dir, Unusable> {
        let root = self.ensure()?;
        let failed = |error: io::Error| Unusable::Failed(error.kind());
        let mut names = path.split('/').filter(|name| !name.is_empty());
        let Some(first) = names.next() else { return root.reopen().map_err(failed) };
        let step = |parent: &Dir, name: &str| match parent.open_dir(name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                match parent.create_dir(name) {
                    Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(failed(error)),
                    _ => {}
                }
                parent.open_dir(name).map_err(failed)
            }
            opened => opened.map_err(failed),
        };
        names.try_fold(step(&root, first)?, |parent, name| step(&parent, name))
    }

    /// Whether the folder at the path is still the one that was opened.
    #[cfg(unix)]
    pub(crate) fn is_at(&self, path: &str, opened: &Dir) -> io::Result<bool> {
        if path.is_empty() {
            // The handle that everything else goes through.
            return Ok(true);
        }
        let Some(root) = self.handle().map_err(io::Error::other)? else { return Ok(false) };
        let mut at = root.reopen()?;
        for name in path.split('/').filter(|name| !name.is_empty()) {
            at = match at.open_dir(name) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
                found => found?,
            };
        }
        Ok(at.stat()?.identity == opened.stat()?.identity)
    }

    /// The parent; nothing if it is still to be created and `create` does not say so.
    fn parent(&self, create: bool) -> Result<Option<Arc<Dir>>, Unusable> {
        let mut parent = self.parent.lock().unwrap_or_else(PoisonError::into_inner);
        match (&*parent, &self.missing_parent) {
            (Ok(dir), _) => return Ok(Some(Arc::clone(dir))),
            (Err(Unusable::NoParent(io::ErrorKind::NotFound)), Some(_)) if !create => return Ok(None),
            (Err(Unusable::NoParent(io::ErrorKind::NotFound)), Some(root)) => {
                root.create_parent().map_err(|error| Unusable::NoParent(error.kind()))?;
                *parent = open_parent(&root.omc_parent);
            }
            (Err(_), _) => {}
        }
        parent.clone().map(Some)
    }

    fn open(&self) -> Result<Option<Arc<Dir>>, Unusable> {
        let Some(parent) = self.parent(false)? else { return Ok(None) };
        let dir = match parent.open_dir(&self.name) {
            Ok(dir) => dir,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => {
                return Err(match parent.stat_at(&self.name).map(|stat| stat.kind) {
                    Ok(Kind::Symlink) => Unusable::SymbolicLink,
                    Ok(Kind::Dir) | Err(_) => Unusable::Failed(error.kind()),
                    Ok(_) => Unusable::NotAFolder,
                });
            }
        };
        match dir.is_own() {
            Ok(true) => Ok(Some(Arc::new(dir))),
            Ok(false) => Err(Unusable::ForeignOwner),
            Err(error) => Err(Unusable::Failed(error.kind())),
        }
    }
}

fn open_parent(path: &Path) -> Result<Arc<Dir>, Unusable> {
    Dir::open_parent(path).map(Arc::new).map_err(|error| Unusable::NoParent(error.kind()))
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
    use std::thread;

    use super::*;
    use crate::config::Env;

    #[test]
    fn the_directory_is_created_at_the_first_write_and_not_before() {
        let project = tempfile::tempdir().unwrap();
        let dir = OmcDir::find(project.path(), ".omc");
        assert_eq!(dir.status(), Status::Missing);
        assert!(dir.handle().unwrap().is_none());
        assert!(!project.path().join(".omc").exists());

        dir.ensure().unwrap();
        assert_eq!(dir.status(), Status::Open);
        let mode = fs::metadata(project.path().join(".omc")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
    }

    #[test]
    fn a_directory_that_appears_later_is_found_and_checked() {
        let project = tempfile::tempdir().unwrap();
        let dir = OmcDir::find(project.path(), ".omc");
        symlink("/", project.path().join(".omc")).unwrap();
        assert_eq!(dir.ensure().unwrap_err(), Unusable::SymbolicLink);
        assert_eq!(dir.status(), Status::Refused(Unusable::SymbolicLink));
    }

    #[test]
    fn many_threads_create_one_directory() {
        let project = tempfile::tempdir().unwrap();
        // Two of them, as two processes would have.
        let dirs = [OmcDir::find(project.path(), ".omc"), OmcDir::find(project.path(), ".omc")];
        thread::scope(|scope| {
            for dir in dirs.iter().cycle().take(16) {
                scope.spawn(|| dir.ensure().unwrap());
            }
        });
        let identity = |dir: &OmcDir| dir.ensure().unwrap().stat().unwrap().identity;
        assert_eq!(identity(&dirs[0]), identity(&dirs[1]));
    }

    #[test]
    fn a_parent_is_never_created() {
        let project = tempfile::tempdir().unwrap();
        let gone = project.path().join("gone");
        let dir = OmcDir::find(&gone, ".omc");
        assert_eq!(dir.ensure().unwrap_err(), Unusable::NoParent(io::ErrorKind::NotFound));
        assert!(!gone.exists());
    }

    #[test]
    fn the_users_folder_for_all_state_is_created_at_the_first_write() {
        let home = tempfile::tempdir().unwrap();
        let project = tempfile::tempdir().unwrap();
        let central = home.path().join("state");
        let env = Env::from_pairs(&[("OMC_STATE_DIR", central.as_os_str()), ("HOME", home.path().as_os_str())]);
        let root = StateRoot::resolve(project.path().to_str(), None, &env).unwrap();
        let name = root.omc_name.to_str().unwrap().to_owned();
        let dir = OmcDir::below_missing(root, &name);
        assert_eq!(dir.status(), Status::Missing);
        assert!(!central.exists());
        dir.ensure().unwrap();
        assert_eq!(dir.status(), Status::Open);
        assert!(central.join(name).is_dir());
    }

    #[test]
    fn what_is_no_folder_of_the_users_own_is_refused() {
        let project = tempfile::tempdir().unwrap();
        let other = tempfile::tempdir().unwrap();
        let at = |name: &str| project.path().join(name);
        fs::write(at("file"), "").unwrap();
        symlink(other.path(), at("link")).unwrap();
        symlink("nowhere", at("dangling")).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, at("fifo"), rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();

        for (name, expected) in [
            ("file", Unusable::NotAFolder),
            ("fifo", Unusable::NotAFolder),
            ("link", Unusable::SymbolicLink),
            ("dangling", Unusable::SymbolicLink),
            ("", Unusable::BadName),
            ("..", Unusable::BadName),
            ("a/b", Unusable::BadName),
        ] {
            let dir = OmcDir::find(project.path(), name);
            assert_eq!(dir.status(), Status::Refused(expected), "{name}");
            assert_eq!(dir.ensure().unwrap_err(), expected, "{name}");
        }

        fs::create_dir(at("foreign")).unwrap();
        // Only root can give a folder away, and only root would otherwise be let in.
        if chown(at("foreign"), Some(54321), None).is_ok() {
            assert_eq!(OmcDir::find(project.path(), "foreign").status(), Status::Refused(Unusable::ForeignOwner));
        }
    }

    #[test]
    fn the_parent_may_be_reached_over_a_link() {
        let project = tempfile::tempdir().unwrap();
        fs::create_dir_all(project.path().join("real/.omc")).unwrap();
        symlink("real", project.path().join("link")).unwrap();
        assert_eq!(OmcDir::find(&project.path().join("link"), ".omc").status(), Status::Open);
    }

    #[test]
    fn a_folder_that_is_replaced_later_is_not_followed() {
        let project = tempfile::tempdir().unwrap();
        let other = tempfile::tempdir().unwrap();
        fs::create_dir(project.path().join(".omc")).unwrap();
        let dir = OmcDir::find(project.path(), ".omc");
        fs::rename(project.path().join(".omc"), project.path().join("moved")).unwrap();
        symlink(other.path(), project.path().join(".omc")).unwrap();

        drop(dir.ensure().unwrap().create_file("a", false).unwrap());
        assert!(project.path().join("moved/a").exists());
        assert!(!other.path().join("a").exists());
    }
}
