//! Copies of the `.omc` directories for a dry run.
//!
//! Read and written through handles, as guests would: no link is followed, nothing that is no regular file is opened, and a
//! repository that planted a million files costs a bounded amount of work.

use std::io;
use std::sync::Arc;

use tempfile::TempDir;

use crate::capability::OmcDir;
use crate::capability::omc_dir::Status;
use crate::capability::wasi::os::{Dir, Kind, SetTime};
use crate::config::state_root::OMC_DIR;
use crate::surroundings::Surroundings;

/// Most files and folders that are copied of a directory: years of sessions.
const MAX_ENTRIES: usize = 20_000;
/// Most bytes that are copied of a directory.
const MAX_BYTES: u64 = 256 << 20;
/// Deepest folder that is copied; guests nest four.
const MAX_DEPTH: usize = 16;
/// Bytes that are copied at a time.
const CHUNK_BYTES: usize = 64 << 10;

/// The copies; they are removed when this is dropped.
pub(super) struct Copies {
    _folder: TempDir,
    notes: Vec<String>,
}

impl Copies {
    /// Puts copies in the place of the directories. One that must not be used stays what it is: guests are refused it anyway.
    pub(super) fn take(surroundings: &mut Surroundings) -> io::Result<Self> {
        let folder = tempfile::Builder::new().prefix("omc-host-explain-").tempdir()?;
        let mut notes = Vec::new();
        let mut copied = |what: &str, original: Option<&Arc<OmcDir>>| -> io::Result<Option<Arc<OmcDir>>> {
            let Some(original) = original else { return Ok(None) };
            if let Status::Refused(unusable) = original.status() {
                notes.push(format!("the {what}'s `.omc` cannot be used: {unusable}"));
                return Ok(Some(Arc::clone(original)));
            }
            let parent = folder.path().join(what);
            std::fs::create_dir(&parent)?;
            let copy = OmcDir::find(&parent, OMC_DIR);
            if let Ok(Some(from)) = original.handle() {
                let to = copy.ensure().map_err(|unusable| io::Error::other(unusable.to_string()))?;
                let mut work = Work { entries: 0, bytes: 0, left_out: 0 };
                work.copy(&from, &to, 0)?;
                notes.push(work.note(what));
            } else {
                notes.push(format!("the {what} has no `.omc` yet"));
            }
            Ok(Some(Arc::new(copy)))
        };
        let project = copied("project", surroundings.project_dir())?;
        let user = copied("user", surroundings.user_dir())?;
        surroundings.become_copies(project, user);
        Ok(Self { _folder: folder, notes })
    }

    /// What was copied, for people.
    pub(super) fn notes(&self) -> &[String] {
        &self.notes
    }
}

/// Copying, with what it took so far.
struct Work {
    entries: usize,
    bytes: u64,
    left_out: usize,
}

impl Work {
    fn copy(&mut self, from: &Dir, to: &Dir, depth: usize) -> io::Result<()> {
        let mut entries = from.entries()?;
        while let Some(entry) = entries.read() {
            let (name, _) = entry?;
            if self.entries >= MAX_ENTRIES {
                self.left_out += 1;
                return Ok(());
            }
            self.entries += 1;
            let name = name.to_str().ok();
            // What vanished since it was listed, or cannot be read, a guest would not see either.
            let copied =
                name.and_then(|name| Some((name, from.stat_at(name).ok()?.kind))).and_then(|(name, kind)| match kind {
                    Kind::Dir if depth < MAX_DEPTH => self.folder(from, to, name, depth).ok(),
                    Kind::File => self.file(from, to, name).ok(),
                    _ => None,
                });
            if copied.is_none() {
                self.left_out += 1;
            }
        }
        Ok(())
    }

    fn folder(&mut self, from: &Dir, to: &Dir, name: &str, depth: usize) -> io::Result<()> {
        let from = from.open_dir(name)?;
        to.create_dir(name)?;
        let to = to.open_dir(name)?;
        self.copy(&from, &to, depth + 1)?;
        // Guests judge by age.
        to.set_times(SetTime::Keep, SetTime::To(from.stat()?.modified))
    }

    fn file(&mut self, from: &Dir, to: &Dir, name: &str) -> io::Result<()> {
        let from = from.open_file(name, true, false)?;
        let about = from.stat()?;
        if about.kind != Kind::File || self.bytes.saturating_add(about.size) > MAX_BYTES {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let to = to.create_file(name, false)?;
        let mut at = 0;
        // It may grow while it is copied.
        while at < about.size {
            let bytes = from.read_at(CHUNK_BYTES, at)?;
            if bytes.is_empty() {
                break;
            }
            let mut written = 0;
            while written < bytes.len() {
                written += to.write_at(&bytes[written..], at + written as u64)?;
            }
            at += bytes.len() as u64;
        }
        self.bytes += at;
        to.set_times(SetTime::Keep, SetTime::To(about.modified))
    }

    fn note(&self, what: &str) -> String {
        let left_out = if self.left_out == 0 { String::new() } else { format!(", {} left out", self.left_out) };
        format!("the {what}'s `.omc` was copied: {} entries, {} bytes{left_out}", self.entries, self.bytes)
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::Path;
    use std::time::{Duration, SystemTime};

    use super::*;

    fn copied(from: &Path, to: &Path, mut work: Work) -> Work {
        work.copy(&Dir::open_parent(from).unwrap(), &Dir::open_parent(to).unwrap(), 0).unwrap();
        work
    }

    fn work() -> Work {
        Work { entries: 0, bytes: 0, left_out: 0 }
    }

    #[test]
    fn a_copy_has_the_files_their_contents_and_their_age() {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let long = vec![b'x'; CHUNK_BYTES * 2 + 7];
        fs::create_dir_all(from.path().join("state/sessions")).unwrap();
        fs::write(from.path().join("state/sessions/a.json"), &long).unwrap();
        fs::write(from.path().join("empty"), "").unwrap();
        let old = SystemTime::now() - Duration::from_hours(48);
        fs::File::open(from.path().join("empty")).unwrap().set_modified(old).unwrap();

        let work = copied(from.path(), to.path(), work());
        assert_eq!((work.entries, work.bytes, work.left_out), (4, long.len() as u64, 0));
        assert_eq!(fs::read(to.path().join("state/sessions/a.json")).unwrap(), long);
        let modified = |folder: &Path| fs::metadata(folder.join("empty")).unwrap().modified().unwrap();
        assert_eq!(modified(to.path()), modified(from.path()));
    }

    #[test]
    fn what_a_project_planted_there_is_left_out() {
        let (from, to, outside) =
            (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(outside.path().join("secret"), "s").unwrap();
        symlink(outside.path(), from.path().join("folder")).unwrap();
        symlink(outside.path().join("secret"), from.path().join("file")).unwrap();
        let fifo = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, from.path().join("fifo"), fifo, 0o600.into(), 0).unwrap();
        let deep = (0..MAX_DEPTH + 4).fold(from.path().to_owned(), |path, _| path.join("d"));
        fs::create_dir_all(&deep).unwrap();
        fs::write(deep.join("x"), "x").unwrap();

        let work = copied(from.path(), to.path(), work());
        assert_eq!(work.left_out, 4);
        assert_eq!(fs::read_dir(to.path()).unwrap().count(), 1);
    }

    #[test]
    fn neither_entries_nor_bytes_are_copied_beyond_their_bounds() {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        for name in ["a", "b", "c"] {
            fs::write(from.path().join(name), name).unwrap();
        }
        let full = Work { entries: MAX_ENTRIES - 1, ..work() };
        copied(from.path(), to.path(), full);
        assert_eq!(fs::read_dir(to.path()).unwrap().count(), 1);

        // A file of one hole takes no room and would take all of it as a copy.
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::File::create(from.path().join("huge")).unwrap().set_len(MAX_BYTES + 1).unwrap();
        fs::write(from.path().join("small"), "s").unwrap();
        let work = copied(from.path(), to.path(), work());
        assert_eq!((work.bytes, work.left_out), (1, 1));
    }
}
