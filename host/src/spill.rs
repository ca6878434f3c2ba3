//! Texts that are longer than the agent takes, in files: the whole goes to `.omc/spill/`, and the answer names the file.
//!
//! Called with the merged answer, before it is encoded, and only for a text that is too long. The files are the user's alone,
//! ignored by git, and named by what they hold, so that the same text has the same place and an answer the same bytes. What is
//! old or too much is removed when the next one comes. All goes through the handle of the `.omc` directory, so that nothing a
//! project planted there leads anywhere else; if anything is in the way, there is no file and the text is cut.

use std::ffi::CStr;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use sha2::{Digest as _, Sha256};

use crate::capability::OmcDir;
use crate::capability::wasi::os::{Dir, Kind};

/// The folder in the `.omc` directory.
const FOLDER: &str = "spill";
/// Keeps the folder out of the project's history, itself included.
const GIT_IGNORE: (&str, &str) = (".gitignore", "*\n");
/// Ends the name of a kept text, after [`NAME_BYTES`] of its SHA-256 in hex.
const EXTENSION: &str = ".txt";
/// Ends the name of a file that is being written.
const UNFINISHED: &str = ".tmp";
/// Bytes of the SHA-256 in a name: no two texts of one user ever share them by chance.
const NAME_BYTES: usize = 12;

/// Longest text that is kept, in bytes: the texts that all guests of an event may give, with room.
const MAX_TEXT_BYTES: usize = 4 * 1024 * 1024;
/// Most texts that are kept, and most bytes of all of them: some days of work, and little beside a build folder.
const MAX_FILES: usize = 64;
const MAX_TOTAL_BYTES: u64 = 16 * 1024 * 1024;
/// How long a text is kept: sessions are resumed after days, not weeks.
const MAX_AGE: Duration = Duration::from_hours(7 * 24);
/// How long an unfinished file is let be: a writer needs milliseconds, and one that was killed never comes back.
const MAX_UNFINISHED_AGE: Duration = Duration::from_mins(1);
/// Most entries of the folder that are looked at: more than that are not ours, and the event has a deadline.
const MAX_ENTRIES: usize = 1_000;

/// Where the texts of an event go.
#[derive(Clone)]
pub(crate) struct Spill {
    dir: Arc<OmcDir>,
    /// The directory's path, for the one who reads the answer.
    path: PathBuf,
}

impl Spill {
    /// Texts go into this `.omc` directory, which is at this path.
    pub(crate) fn new(dir: Arc<OmcDir>, path: PathBuf) -> Self {
        Self { dir, path }
    }

    /// Keeps a text and says where. Does not wait beyond `until`: a file system that hangs costs the file, not the answer.
    pub(crate) fn save_until(&self, text: &str, until: Instant) -> io::Result<String> {
        let (sender, receiver) = mpsc::channel();
        let (spill, text) = (self.clone(), text.to_owned());
        // Nobody listens after the deadline.
        let work = move || drop(sender.send(spill.save(&text, SystemTime::now())));
        thread::Builder::new().spawn(work)?;
        receiver.recv_timeout(until.saturating_duration_since(Instant::now())).unwrap_or_else(|error| match error {
            mpsc::RecvTimeoutError::Timeout => Err(io::ErrorKind::TimedOut.into()),
            mpsc::RecvTimeoutError::Disconnected => Err(io::Error::other("the host's own code panicked")),
        })
    }

    /// Where a text would be kept, as the answer says it.
    pub(crate) fn place(&self, text: &str) -> String {
        let name = file_name(text);
        let path = self.path.join(FOLDER).join(&name);
        match path.to_str() {
            // Backticks end where the path would.
            Some(path) if !path.contains(|letter: char| letter.is_control() || letter == '`') => format!("`{path}`"),
            _ => format!("`.omc/{FOLDER}/{name}`"),
        }
    }

    fn save(&self, text: &str, now: SystemTime) -> io::Result<String> {
        if text.len() > MAX_TEXT_BYTES {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let omc = self.dir.ensure().map_err(|unusable| io::Error::other(unusable.to_string()))?;
        let folder = open_own(&omc)?;
        match write(&folder, GIT_IGNORE.0, GIT_IGNORE.1) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        let name = file_name(text);
        tidy(&folder, &name, text.len(), now)?;
        let unfinished = format!("{name}.{:016x}{UNFINISHED}", getrandom::u64().map_err(io::Error::other)?);
        let written = write(&folder, &unfinished, text).and_then(|()| folder.rename(&unfinished, &folder, &name));
        if let Err(error) = written {
            // It may not even have been created.
            drop(folder.remove_file(&unfinished));
            return Err(error);
        }
        Ok(self.place(text))
    }
}

fn file_name(text: &str) -> String {
    omc_artifact::hex(&Sha256::digest(text)[..NAME_BYTES]) + EXTENSION
}

/// Opens the folder, created if it is missing. Another user's is refused: they could put another text in a text's place.
fn open_own(omc: &Dir) -> io::Result<Dir> {
    match omc.create_dir(FOLDER) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let folder = omc.open_dir(FOLDER)?;
    if folder.is_own()? { Ok(folder) } else { Err(io::ErrorKind::PermissionDenied.into()) }
}

/// Writes a new file. It need not survive a power failure: the text is of use to this session.
fn write(folder: &Dir, name: &str, text: &str) -> io::Result<()> {
    let file = folder.create_file(name, false)?;
    let mut at = 0;
    while at < text.len() {
        match file.write_at(&text.as_bytes()[at..], at as u64)? {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            written => at += written,
        }
    }
    Ok(())
}

/// A file of ours in the folder.
struct Kept {
    name: String,
    size: u64,
    modified: SystemTime,
}

/// Removes what is too old, and the oldest of what would be too much beside a new text of `size` bytes.
fn tidy(folder: &Dir, new: &str, size: usize, now: SystemTime) -> io::Result<()> {
    let mut entries = folder.entries()?;
    let mut kept = Vec::new();
    for _ in 0..MAX_ENTRIES {
        let Some(entry) = entries.read() else { break };
        let (name, kind) = entry?;
        let Some(name) = own_name(&name).filter(|name| name != new && matches!(kind, Kind::File | Kind::Unknown))
        else {
            continue;
        };
        // Gone already is as good as removed.
        let Ok(about) = folder.stat_at(&name) else { continue };
        let modified = UNIX_EPOCH + Duration::from_secs(u64::try_from(about.modified.0).unwrap_or_default());
        kept.push(Kept { name, size: about.size, modified });
    }
    kept.sort_by(|a, b| a.modified.cmp(&b.modified).then_with(|| a.name.cmp(&b.name)));
    let (mut files, mut bytes) = (kept.len(), kept.iter().map(|file| file.size).sum::<u64>());
    for file in kept {
        let age = now.duration_since(file.modified).unwrap_or_default();
        let max_age = if file.name.ends_with(UNFINISHED) { MAX_UNFINISHED_AGE } else { MAX_AGE };
        if age > max_age || files >= MAX_FILES || bytes + size as u64 > MAX_TOTAL_BYTES {
            folder.remove_file(&file.name)?;
            (files, bytes) = (files - 1, bytes - file.size);
        }
    }
    Ok(())
}

/// The name, if it is one that we give. What somebody else put here is left alone.
fn own_name(name: &CStr) -> Option<String> {
    let name = name.to_str().ok()?;
    let (digest, rest) = name.split_at_checked(2 * NAME_BYTES)?;
    let is_ours = digest.bytes().all(|byte| byte.is_ascii_hexdigit())
        && (rest == EXTENSION || rest.starts_with(EXTENSION) && rest.ends_with(UNFINISHED));
    is_ours.then(|| name.to_owned())
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    use std::path::Path;

    use super::*;

    struct World {
        project: tempfile::TempDir,
    }

    impl World {
        fn new() -> Self {
            Self { project: tempfile::tempdir().unwrap() }
        }

        fn path(&self, relative: &str) -> PathBuf {
            self.project.path().join(relative)
        }

        fn spill(&self) -> Spill {
            Spill::new(Arc::new(OmcDir::find(self.project.path(), ".omc")), self.path(".omc"))
        }

        fn names(&self) -> Vec<String> {
            let entries = fs::read_dir(self.path(".omc/spill")).unwrap();
            let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
            names.sort();
            names
        }
    }

    fn set_age(path: &Path, age: Duration) {
        let file = fs::File::options().write(true).open(path).unwrap();
        file.set_modified(SystemTime::now() - age).unwrap();
    }

    #[test]
    fn the_whole_text_is_in_a_private_file_that_git_ignores() {
        let world = World::new();
        let text = "가".repeat(20_000);
        let place = world.spill().save_until(&text, Instant::now() + Duration::from_secs(5)).unwrap();
        let path = PathBuf::from(place.trim_matches('`'));
        assert!(path.starts_with(world.path(".omc/spill")));
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
        assert_eq!(fs::read_to_string(world.path(".omc/spill/.gitignore")).unwrap(), "*\n");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(&world.path(".omc/spill"))), (0o600, 0o700));
        assert_eq!(world.names().len(), 2, "no debris");
    }

    #[test]
    fn the_same_text_has_the_same_place_and_another_one_its_own() {
        let world = World::new();
        let save = |text: &str| world.spill().save(text, SystemTime::now()).unwrap();
        assert_eq!(save("one"), save("one"));
        assert_ne!(save("one"), save("two"));
        assert_eq!(world.spill().place("one"), save("one"));
        assert_eq!(world.names().len(), 3);
    }

    #[test]
    fn what_is_old_goes_when_the_next_text_comes_and_what_is_not_ours_stays() {
        let world = World::new();
        let save = |text: &str| world.spill().save(text, SystemTime::now()).unwrap();
        let path = |place: String| PathBuf::from(place.trim_matches('`'));
        let (old, young) = (path(save("old")), path(save("young")));
        set_age(&old, MAX_AGE + Duration::from_mins(1));
        set_age(&young, MAX_AGE / 2);
        let half = young.with_file_name(format!("{}.0.tmp", young.file_name().unwrap().to_str().unwrap()));
        fs::write(&half, "half").unwrap();
        set_age(&half, MAX_UNFINISHED_AGE * 2);
        let foreign = world.path(".omc/spill/notes.txt");
        fs::write(&foreign, "mine").unwrap();
        set_age(&foreign, MAX_AGE * 10);

        save("next");
        let there = [&old, &half, &young, &foreign].map(|path| path.exists());
        assert_eq!(there, [false, false, true, true]);
    }

    #[test]
    fn neither_files_nor_bytes_grow_without_bound() {
        let world = World::new();
        for number in 0..MAX_FILES + 20 {
            world.spill().save(&format!("text {number}"), SystemTime::now()).unwrap();
        }
        assert_eq!(world.names().len(), MAX_FILES + 1);
        for number in 0..8 {
            world.spill().save(&format!("{number}{}", "x".repeat(MAX_TEXT_BYTES - 1)), SystemTime::now()).unwrap();
        }
        let sizes =
            world.names().into_iter().map(|name| fs::metadata(world.path(".omc/spill").join(name)).unwrap().len());
        assert!(sizes.sum::<u64>() <= MAX_TOTAL_BYTES + 64);
        assert!(world.spill().save(&"x".repeat(MAX_TEXT_BYTES + 1), SystemTime::now()).is_err());
    }

    #[test]
    fn what_a_project_planted_there_leads_nowhere() {
        let outside = tempfile::tempdir().unwrap();
        let secret = outside.path().join("secret");
        fs::write(&secret, "kept").unwrap();

        let linked = World::new();
        fs::create_dir(linked.path(".omc")).unwrap();
        symlink(outside.path(), linked.path(".omc/spill")).unwrap();
        assert!(linked.spill().save("text", SystemTime::now()).is_err());

        let pipe = World::new();
        fs::create_dir(pipe.path(".omc")).unwrap();
        let fifo = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, pipe.path(".omc/spill"), fifo, 0o600.into(), 0).unwrap();
        assert!(pipe.spill().save("text", SystemTime::now()).is_err());

        // A link with the text's own name is replaced and not written through, and one in the place of `.gitignore` is let be.
        let planted = World::new();
        fs::create_dir_all(planted.path(".omc/spill")).unwrap();
        let own = planted.path(".omc/spill").join(file_name("text"));
        symlink(&secret, &own).unwrap();
        symlink(&secret, planted.path(".omc/spill/.gitignore")).unwrap();
        planted.spill().save("text", SystemTime::now()).unwrap();
        assert!(fs::symlink_metadata(&own).unwrap().is_file());
        assert_eq!(fs::read_to_string(&own).unwrap(), "text");

        let full = World::new();
        fs::create_dir_all(full.path(".omc/spill").join(file_name("text"))).unwrap();
        assert!(full.spill().save("text", SystemTime::now()).is_err());
        assert_eq!(full.names().len(), 2, "no debris");

        let whole = World::new();
        symlink(outside.path(), whole.path(".omc")).unwrap();
        assert!(whole.spill().save("text", SystemTime::now()).is_err());

        assert_eq!(fs::read_to_string(&secret).unwrap(), "kept");
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_place_is_shown_as_text_that_cannot_act_or_end_early() {
        let world = World::new();
        let dir = world.spill().dir;
        for folder in ["a\u{1b}[2J", "a`b", "a\nb"] {
            let place = Spill::new(Arc::clone(&dir), PathBuf::from(folder)).place("text");
            assert_eq!(place, format!("`.omc/spill/{}`", file_name("text")), "{folder:?}");
        }
    }
}
