//! Reading and replacing single files below the root: bounded, plain files only, never torn.
//!
//! Paths are built by this crate from fixed names and checked ids, so they never climb. What lies at their end is not
//! trusted: its type is looked at before it is opened, because opening a pipe would wait for ever. On a machine's own file
//! system every folder on the way is looked at too; in a guest the host's file system refuses links by itself.

use std::{
    collections::hash_map::RandomState,
    fs::{self, File, OpenOptions},
    hash::{BuildHasher, Hasher},
    io::{self, ErrorKind, Read, Write},
    path::{Path, PathBuf},
    time::{Duration, UNIX_EPOCH},
};

use crate::{Error, Fields, Store, Timestamp};

/// Longest state file that is read, in bytes.
///
/// Real ones have a few kilobytes; the longest members are a prompt of 500 units and a list of a few hundred subagents.
pub const MAX_FILE_BYTES: u64 = 256 * 1024;

/// Deepest nesting of what is written below an object of a file: the JSON parser gives up at 128 levels.
const MAX_DEPTH: usize = 100;

/// Start of the name of a file that is being written. It becomes the real file or, if its writer died, debris.
pub(crate) const TEMP_PREFIX: &str = ".tmp-";

/// Age from which such a file is debris: no write takes a minute.
const TEMP_MAX_AGE: Duration = Duration::from_mins(1);

/// Most entries of a folder that are looked at for debris, so that a crowded folder does not slow down a write.
const MAX_LISTED: usize = 256;

/// Most corrupt versions that are kept of one file: enough to see what happened, too few to fill a disk.
const MAX_CORRUPT_KEPT: usize = 3;

/// Most times that a folder is made anew for a file: whoever clears away empty folders may take it between the two steps.
const MAX_FOLDER_TRIES: usize = 4;

/// Most names that are tried for a new file before the folder counts as broken; the first is practically always free.
const MAX_TEMP_TRIES: usize = 8;

/// What a power cut may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Durability {
    /// The version of a moment before: right for modes and counters, and free.
    Rename,
    /// Nothing: right for what a person wrote or asked to be kept.
    Synced,
}

/// What a folder's entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    File,
    Folder,
    /// A link, a pipe, a device.
    Other,
}

/// One entry of a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    /// When its content changed last; 1970 where the file system does not say.
    pub(crate) modified: Timestamp,
}

impl Store {
    /// Reads a JSON object; absent if there is no file.
    pub(crate) fn read_fields(&self, path: &Path) -> Result<Option<Fields>, Error> {
        let Some(bytes) = self.read_bytes(path)? else { return Ok(None) };
        serde_json::from_slice(&bytes).map(Some).map_err(|source| Error::Corrupt { path: path.to_owned(), source })
    }

    fn read_bytes(&self, path: &Path) -> Result<Option<Vec<u8>>, Error> {
        let failed = |source| Error::Read { path: path.to_owned(), source };
        let too_large = || Error::TooLarge { path: path.to_owned() };
        let Some(metadata) = self.plain_file(path)? else { return Ok(None) };
        if metadata.len() > MAX_FILE_BYTES {
            return Err(too_large());
        }
        let file = match File::open(self.root.join(path)) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        let mut bytes = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or(0));
        file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
        // It may have grown since its length was asked for.
        if bytes.len() as u64 > MAX_FILE_BYTES { Err(too_large()) } else { Ok(Some(bytes)) }
    }

    /// Reads a text; absent if there is no file.
    pub(crate) fn read_text(&self, path: &Path) -> Result<Option<String>, Error> {
        let Some(bytes) = self.read_bytes(path)? else { return Ok(None) };
        String::from_utf8(bytes).map(Some).map_err(|_| Error::NotText { path: path.to_owned() })
    }

    /// What is known about the file; absent if there is none, an error if it is anything but a plain file.
    pub(crate) fn plain_file(&self, path: &Path) -> Result<Option<fs::Metadata>, Error> {
        self.check_folders(path)?;
        match fs::symlink_metadata(self.root.join(path)) {
            Ok(metadata) if metadata.is_file() => Ok(Some(metadata)),
            Ok(_) => Err(Error::NotPlain { path: path.to_owned() }),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(source) => Err(Error::Read { path: path.to_owned(), source }),
        }
    }

    /// Refuses a path that leads through a link, away from the store.
    fn check_folders(&self, path: &Path) -> Result<(), Error> {
        path.parent().map_or(Ok(()), |folder| self.check_folder(folder))
    }

    fn check_folder(&self, path: &Path) -> Result<(), Error> {
        if cfg!(target_family = "wasm") {
            return Ok(());
        }
        let mut folder = PathBuf::new();
        for component in path.components() {
            folder.push(component);
            match fs::symlink_metadata(self.root.join(&folder)) {
                Ok(metadata) if metadata.is_dir() => {}
                Ok(_) => return Err(Error::NotPlain { path: folder }),
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
                Err(source) => return Err(Error::Read { path: folder, source }),
            }
        }
        Ok(())
    }

    /// Puts a JSON object (two-space, as the original writes it) in the place of the file.
    ///
    /// What is there and is no JSON object, or too large to be read, is set aside first. A power cut may bring back the version
    /// of a moment before, see [`Durability::Rename`].
    pub(crate) fn replace(&self, path: &Path, fields: &Fields) -> Result<(), Error> {
        self.replace_json(path, fields, Durability::Rename)
    }

    /// The same, with a choice.
    pub(crate) fn replace_json(&self, path: &Path, fields: &Fields, durability: Durability) -> Result<(), Error> {
        match self.read_fields(path) {
            Ok(_) => {}
            Err(Error::Corrupt { .. } | Error::TooLarge { .. }) => self.set_aside(path)?,
            Err(error) => return Err(error),
        }
        if fields.is_deeper_than(MAX_DEPTH) {
            return Err(Error::TooDeep { path: path.to_owned(), max_depth: MAX_DEPTH });
        }
        let failed = |source| Error::Write { path: path.to_owned(), source };
        let mut bytes = serde_json::to_vec_pretty(fields).map_err(|error| failed(error.into()))?;
        bytes.push(b'\n');
        self.replace_bytes(path, &bytes, durability)
    }

    /// Puts a text in the place of the file, safe from a power cut.
    ///
    /// A folder, a link or the like in its place is an error; what a plain file held is gone, so read it first.
    pub(crate) fn replace_text(&self, path: &Path, text: &str) -> Result<(), Error> {
        self.plain_file(path)?;
        self.replace_bytes(path, text.as_bytes(), Durability::Synced)
    }

    fn replace_bytes(&self, path: &Path, bytes: &[u8], durability: Durability) -> Result<(), Error> {
        // What nobody could read again must not take the place of something that can be read.
        if bytes.len() as u64 > MAX_FILE_BYTES {
            return Err(Error::TooLarge { path: path.to_owned() });
        }
        self.replace_file(path, bytes, durability).map_err(|source| Error::Write { path: path.to_owned(), source })
    }

    fn replace_file(&self, path: &Path, bytes: &[u8], durability: Durability) -> io::Result<()> {
        let target = self.root.join(path);
        let folder = target.parent().ok_or(ErrorKind::InvalidInput)?;
        let mut tries = 1;
        let (mut file, temp) = loop {
            match create_temp(folder) {
                Err(error) if error.kind() == ErrorKind::NotFound && tries < MAX_FOLDER_TRIES => {
                    tries += 1;
                    create_folders(folder)?;
                }
                created => break created?,
            }
        };
        let written = file.write_all(bytes).and_then(|()| match durability {
            Durability::Rename => Ok(()),
            Durability::Synced => file.sync_all(),
        });
        drop(file);
        if let Err(error) = written.and_then(|()| fs::rename(&temp, &target)) {
            // The write failed; that its debris stays too would be no news.
            drop(fs::remove_file(&temp));
            return Err(error);
        }
        sweep(folder, &target);
        Ok(())
    }

    /// Moves a file that cannot be understood out of the way, under a name that says what and when.
    fn set_aside(&self, path: &Path) -> Result<(), Error> {
        let failed = |source| Error::Write { path: path.to_owned(), source };
        let Some(metadata) = self.plain_file(path)? else { return Ok(()) };
        let source = self.root.join(path);
        let (Some(folder), Some(name)) = (source.parent(), source.file_name().and_then(|name| name.to_str())) else {
            return Ok(());
        };
        // The file's own time, not now: setting the same file aside twice gives the same name.
        let ms = metadata
            .modified()
            .ok()
            .and_then(|time| time.duration_since(UNIX_EPOCH).ok())
            .map_or(0, |age| age.as_millis());
        let prefix = format!("{name}.corrupt-");
        fs::rename(&source, folder.join(format!("{prefix}{ms:013}"))).map_err(failed)?;

        let mut kept: Vec<_> =
            names(folder).filter(|name| name.to_str().is_some_and(|name| name.starts_with(&prefix))).collect();
        kept.sort_unstable();
        let surplus = kept.len().saturating_sub(MAX_CORRUPT_KEPT);
        for oldest in &kept[..surplus] {
            fs::remove_file(folder.join(oldest)).map_err(failed)?;
        }
        Ok(())
    }

    /// Removes a file; it is no error if there is none.
    pub(crate) fn remove(&self, path: &Path) -> Result<(), Error> {
        self.check_folders(path)?;
        match fs::remove_file(self.root.join(path)) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(Error::Write { path: path.to_owned(), source: error })
            }
            _ => Ok(()),
        }
    }

    /// Removes a folder if it is empty, and says whether it is gone now.
    pub(crate) fn remove_folder(&self, path: &Path) -> bool {
        self.check_folders(path).is_ok() && fs::remove_dir(self.root.join(path)).is_ok()
    }

    /// Makes a folder, for the user alone, with those above it. It is no error if there is one.
    pub(crate) fn make_folder(&self, path: &Path) -> Result<(), Error> {
        self.check_folder(path)?;
        create_folders(&self.root.join(path)).map_err(|source| Error::Write { path: path.to_owned(), source })
    }

    /// When the file changed last; absent if there is no plain file.
    pub(crate) fn modified(&self, path: &Path) -> Option<Timestamp> {
        Some(modified(&self.plain_file(path).ok()??))
    }

    /// Whether there is anything at the path: one question to the file system, for callers in a hurry.
    pub(crate) fn exists(&self, path: &Path) -> bool {
        fs::symlink_metadata(self.root.join(path)).is_ok()
    }

    /// Names of the folder's entries, at most `limit`; none if it cannot be listed.
    pub(crate) fn names(&self, folder: &Path, limit: usize) -> Vec<String> {
        names(&self.root.join(folder)).filter_map(|name| name.into_string().ok()).take(limit).collect()
    }

    /// The folder's entries, `limit` at most, in no order; none if it cannot be listed or a link leads there.
    pub(crate) fn entries(&self, folder: &Path, limit: usize) -> Vec<Entry> {
        if self.check_folder(folder).is_err() {
            return Vec::new();
        }
        let path = self.root.join(folder);
        let entry = |name: String| {
            let metadata = fs::symlink_metadata(path.join(&name)).ok()?;
            let kind = match metadata.file_type() {
                kind if kind.is_file() => Kind::File,
                kind if kind.is_dir() => Kind::Folder,
                _ => Kind::Other,
            };
            Some(Entry { name, kind, modified: modified(&metadata) })
        };
        names(&path).filter_map(|name| name.into_string().ok()).take(limit).filter_map(entry).collect()
    }
}

fn modified(metadata: &fs::Metadata) -> Timestamp {
    metadata.modified().map_or(Timestamp::from_epoch_ms(0), Timestamp::from)
}

fn names(folder: &Path) -> impl Iterator<Item = std::ffi::OsString> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.file_name())
}

/// A new file of our own in the folder, only for the user.
fn create_temp(folder: &Path) -> io::Result<(File, PathBuf)> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut tries = 1;
    loop {
        // The standard library's hash keys are the random numbers that it has on every platform. `create_new` makes a
        // collision a retry, so they need not be secret.
        let path = folder.join(format!("{TEMP_PREFIX}{:016x}", RandomState::new().build_hasher().finish()));
        match options.open(&path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists && tries < MAX_TEMP_TRIES => tries += 1,
            opened => return opened.map(|file| (file, path)),
        }
    }
}

fn create_folders(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// Removes what writers that died left behind in the folder. Best effort: the next write tries again.
fn sweep(folder: &Path, just_written: &Path) {
    let modified = |path: &Path| fs::symlink_metadata(path).and_then(|metadata| metadata.modified());
    let debris =
        names(folder).take(MAX_LISTED).filter(|name| name.to_str().is_some_and(|name| name.starts_with(TEMP_PREFIX)));
    for name in debris {
        let path = folder.join(name);
        // Both times are the file system's, so its clock need not be ours.
        let (Ok(then), Ok(now)) = (modified(&path), modified(just_written)) else { continue };
        if now.duration_since(then).is_ok_and(|age| age > TEMP_MAX_AGE) {
            drop(fs::remove_file(&path));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{fields, plant, store};
    use serde_json::json;
    use std::{
        sync::atomic::{AtomicBool, Ordering},
        thread,
    };
    use tempfile::TempDir;

    const FILE: &str = "state/sessions/s1/ralph-state.json";

    fn listing(folder: &TempDir) -> Vec<String> {
        let mut names: Vec<_> =
            names(&folder.path().join("state/sessions/s1")).map(|name| name.into_string().expect("UTF-8")).collect();
        names.sort();
        names
    }

    fn age(folder: &TempDir, path: &str, seconds: u64) {
        let file = File::options().write(true).open(folder.path().join(path)).expect("the file");
        file.set_modified(std::time::SystemTime::now() - Duration::from_secs(seconds)).expect("a time");
    }

    #[test]
    fn what_was_written_is_read_and_nothing_else_is_left() {
        let (folder, store) = store();
        assert!(store.read_fields(Path::new(FILE)).expect("no error").is_none());
        for iteration in 1..=3 {
            let written = fields(json!({"active": true, "iteration": iteration, "mine": {"too": [1, null]}}));
            store.replace(Path::new(FILE), &written).expect("a write");
            assert_eq!(store.read_fields(Path::new(FILE)).expect("a read"), Some(written));
        }
        assert_eq!(listing(&folder), ["ralph-state.json"]);
    }

    #[cfg(unix)]
    #[test]
    fn files_and_folders_are_for_the_user_alone() {
        use std::os::unix::fs::PermissionsExt;
        let (folder, store) = store();
        store.replace(Path::new(FILE), &Fields::default()).expect("a write");
        let mode = |path| fs::metadata(folder.path().join(path)).expect("metadata").permissions().mode() & 0o777;
        assert_eq!((mode(FILE), mode("state"), mode("state/sessions/s1")), (0o600, 0o700, 0o700));
    }

    #[test]
    fn a_reader_never_sees_a_torn_file_whenever_writers_come_and_die() {
        let (folder, store) = store();
        let path = Path::new(FILE);
        let long = "x".repeat(20_000);
        store.replace(path, &fields(json!({"n": 0, "text": long, "end": 0}))).expect("a write");
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            for writer in 1..=3 {
                let (store, long, done) = (&store, &long, &done);
                scope.spawn(move || {
                    for round in 0..60 {
                        let n = writer * 1000 + round;
                        store.replace(path, &fields(json!({"n": n, "text": long, "end": n}))).expect("a write");
                    }
                    done.store(true, Ordering::Relaxed);
                });
            }
            // One that is killed at any point of its write: what it leaves is a temp file of any length.
            let (folder, done_too) = (&folder, &done);
            scope.spawn(move || {
                let whole = br#"{"n": 7, "text": "xxxx", "end": 7}"#;
                for length in (0..=whole.len()).cycle().take_while(|_| !done_too.load(Ordering::Relaxed)) {
                    plant(folder, &format!("state/sessions/s1/.tmp-dead{length:04}"), &whole[..length]);
                }
            });
            for _ in 0..2 {
                scope.spawn(|| {
                    while !done.load(Ordering::Relaxed) {
                        let read = store.read_fields(path).expect("a read").expect("always a file");
                        assert_eq!(read.count("n"), read.count("end"));
                        assert_eq!(read.text("text").map(str::len), Some(20_000));
                    }
                });
            }
        });
        assert!(!listing(&folder).iter().any(|name| name.contains("corrupt")), "nothing was taken for corrupt");
    }

    #[test]
    fn debris_older_than_a_minute_goes_with_the_next_write() {
        let (folder, store) = store();
        for (name, seconds) in [(".tmp-old", 61 + 5), (".tmp-fresh", 1), ("old.json", 3600), ("x.tmp-old", 3600)] {
            plant(&folder, &format!("state/sessions/s1/{name}"), "{");
            age(&folder, &format!("state/sessions/s1/{name}"), seconds);
        }
        fs::create_dir(folder.path().join("state/sessions/s1/.tmp-folder")).expect("a folder");
        store.replace(Path::new(FILE), &Fields::default()).expect("a write");
        assert_eq!(listing(&folder), [".tmp-folder", ".tmp-fresh", "old.json", "ralph-state.json", "x.tmp-old"]);
    }

    #[test]
    fn corrupt_files_are_set_aside_and_only_a_few_are_kept() {
        let (folder, store) = store();
        for (seconds, content) in ["{\"active\": tr", "[]", "", "\u{feff}{}", "nul\0"].into_iter().enumerate() {
            plant(&folder, FILE, content);
            age(&folder, FILE, 100 - seconds as u64);
            assert!(matches!(store.read_fields(Path::new(FILE)), Err(Error::Corrupt { .. })), "{content:?}");
            store.replace(Path::new(FILE), &fields(json!({"active": false}))).expect("a write");
        }
        let names = listing(&folder);
        assert_eq!(names.len(), 1 + MAX_CORRUPT_KEPT, "{names:?}");
        let contents: Vec<_> = names[1..]
            .iter()
            .map(|name| fs::read_to_string(folder.path().join("state/sessions/s1").join(name)).expect("kept"))
            .collect();
        assert_eq!(contents, ["", "\u{feff}{}", "nul\0"], "the newest, unchanged");
        assert!(names[1].starts_with("ralph-state.json.corrupt-"));
    }

    #[test]
    fn reading_changes_nothing() {
        let (folder, store) = store();
        plant(&folder, FILE, "{");
        assert!(store.read_fields(Path::new(FILE)).is_err());
        assert_eq!(listing(&folder), ["ralph-state.json"]);
    }

    #[test]
    fn a_file_over_the_bound_is_not_read() {
        let (folder, store) = store();
        let longest = usize::try_from(MAX_FILE_BYTES).expect("it fits");
        let padded = |length: usize| format!("{{{}}}", " ".repeat(length - 2));
        plant(&folder, FILE, padded(longest));
        assert!(store.read_fields(Path::new(FILE)).expect("a read").is_some());
        plant(&folder, FILE, padded(longest + 1));
        assert!(matches!(store.read_fields(Path::new(FILE)), Err(Error::TooLarge { .. })));
        store.replace(Path::new(FILE), &Fields::default()).expect("a write");
        assert_eq!(listing(&folder).len(), 2, "the large one is set aside");
    }

    #[test]
    fn nested_json_is_an_error_and_no_crash() {
        let (folder, store) = store();
        plant(&folder, FILE, format!("{{\"a\":{}", "[".repeat(100_000)));
        assert!(matches!(store.read_fields(Path::new(FILE)), Err(Error::Corrupt { .. })));
    }

    #[test]
    fn a_folder_in_the_place_of_a_file_stays_and_is_an_error() {
        let (folder, store) = store();
        plant(&folder, &format!("{FILE}/x"), "1");
        assert!(matches!(store.read_fields(Path::new(FILE)), Err(Error::NotPlain { .. })));
        assert!(matches!(store.replace(Path::new(FILE), &Fields::default()), Err(Error::NotPlain { .. })));
        assert_eq!(listing(&folder), ["ralph-state.json"]);
    }

    #[test]
    fn a_file_in_the_place_of_a_folder_is_an_error() {
        let (folder, store) = store();
        plant(&folder, "state/sessions", "not a folder");
        assert!(store.read_fields(Path::new(FILE)).is_err());
        assert!(store.replace(Path::new(FILE), &Fields::default()).is_err());
        assert!(store.remove(Path::new(FILE)).is_err());
    }

    #[cfg(unix)]
    #[test]
    fn links_lead_nowhere() {
        use std::os::unix::fs::symlink;
        let outside = tempfile::tempdir().expect("a folder");
        let precious = outside.path().join("ralph-state.json");
        fs::write(&precious, "{\"active\":true}").expect("a file");

        let (folder, store) = store();
        fs::create_dir_all(folder.path().join("state/sessions/s1")).expect("folders");
        symlink(&precious, folder.path().join(FILE)).expect("a link");
        assert!(matches!(store.read_fields(Path::new(FILE)), Err(Error::NotPlain { .. })));
        assert!(matches!(store.replace(Path::new(FILE), &Fields::default()), Err(Error::NotPlain { .. })));

        let in_linked_folder = Path::new("state/sessions/s2/ralph-state.json");
        symlink(outside.path(), folder.path().join("state/sessions/s2")).expect("a link");
        assert!(matches!(store.read_fields(in_linked_folder), Err(Error::NotPlain { .. })));
        assert!(matches!(store.replace(in_linked_folder, &Fields::default()), Err(Error::NotPlain { .. })));
        assert!(matches!(store.remove(in_linked_folder), Err(Error::NotPlain { .. })));
        assert_eq!(fs::read_to_string(&precious).expect("still there"), "{\"active\":true}");
        assert_eq!(names(outside.path()).count(), 1, "and nothing beside it");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_pipe_in_the_place_of_a_file_makes_nobody_wait() {
        let (folder, store) = store();
        fs::create_dir_all(folder.path().join("state/sessions/s1")).expect("folders");
        let made = std::process::Command::new("mkfifo").arg(folder.path().join(FILE)).status().expect("mkfifo");
        assert!(made.success());
        assert!(matches!(store.read_fields(Path::new(FILE)), Err(Error::NotPlain { .. })));
        assert!(matches!(store.replace(Path::new(FILE), &Fields::default()), Err(Error::NotPlain { .. })));
    }

    #[test]
    fn removing_what_is_not_there_is_fine() {
        let (folder, store) = store();
        store.remove(Path::new(FILE)).expect("no folder, no file");
        plant(&folder, FILE, "{}");
        store.remove(Path::new(FILE)).expect("a file");
        assert!(!store.exists(Path::new(FILE)));
    }
}
