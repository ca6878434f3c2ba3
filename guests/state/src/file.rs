//! Reading and replacing single files below the root: bounded, plain files only, never torn.
//!
//! Paths are built by this crate from fixed names and checked ids, so they never climb. What lies on the way and at their end is
//! not trusted: folders are reached without following a link (see `folder.rs`), and a file's type is looked at before it is
//! opened and, where it could have been swapped, again afterwards.

use std::{
    collections::hash_map::RandomState,
    ffi::{OsStr, OsString},
    fs::File,
    hash::{BuildHasher, Hasher},
    io::{self, ErrorKind, Read, Write},
    path::{Path, PathBuf},
};

pub(crate) use crate::folder::Kind;
use crate::{
    Error, Fields, Store, Timestamp,
    folder::{About, Folder, NoFolder},
};

/// Longest state file that is read, in bytes.
///
/// Real ones have a few kilobytes; the longest members are a prompt of 500 units and a list of a few hundred subagents.
pub const MAX_FILE_BYTES: u64 = 256 * 1024;

/// Deepest nesting of what is written below an object of a file: the JSON parser gives up at 128 levels.
const MAX_DEPTH: usize = 100;

/// Start of the name of a file that is being written. It becomes the real file or, if its writer died, debris.
pub(crate) const TEMP_PREFIX: &str = ".tmp-";

/// Age from which such a file is debris, in milliseconds: no write takes a minute.
const TEMP_MAX_AGE_MS: i64 = 60 * 1000;

/// Most entries of a folder that are looked at for debris, so that a crowded folder does not slow down a write.
const MAX_LISTED: usize = 256;

/// What the name of a file says that was moved out of the way.
const CORRUPT: &str = "corrupt";

/// Most names that are tried for such a file: there are as many files of the same millisecond.
const MAX_ASIDE_TRIES: i64 = 100;

/// Most corrupt versions that are kept of one file: enough to see what happened, too few to fill a disk.
const MAX_CORRUPT_KEPT: usize = 3;

/// Most times that a folder is made anew for a file: whoever clears away empty folders may take it between the two steps.
const MAX_FOLDER_TRIES: usize = 4;

/// Most names that are tried for a new file before the folder counts as broken; the first is practically always free.
const MAX_TEMP_TRIES: usize = 8;

/// What a power cut may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Durability {
    /// The version of a moment before: right for modes and counters and for what can be found out again, and free.
    Rename,
    /// Nothing: right for what a person wrote or asked to be kept.
    Synced,
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
        let Some((folder, name, about)) = self.look_at_file(path)? else { return Ok(None) };
        if about.len > MAX_FILE_BYTES {
            return Err(too_large());
        }
        let file = match folder.open_file(name) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        // Another question to the file system, which in a guest looks at what it opens by itself.
        if cfg!(not(target_family = "wasm")) && !file.metadata().map_err(failed)?.is_file() {
            return Err(Error::NotPlain { path: path.to_owned() });
        }
        let mut bytes = Vec::with_capacity(usize::try_from(about.len).unwrap_or(0));
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
    pub(crate) fn plain_file(&self, path: &Path) -> Result<Option<About>, Error> {
        Ok(self.look_at_file(path)?.map(|(_, _, about)| about))
    }

    /// The same, with its folder and its name there.
    fn look_at_file<'a>(&self, path: &'a Path) -> Result<Option<(Folder, &'a OsStr, About)>, Error> {
        let Some((folder, name)) = self.place_of(path)? else { return Ok(None) };
        match folder.about(name) {
            Ok(about) if about.kind == Kind::File => Ok(Some((folder, name, about))),
            Ok(_) => Err(Error::NotPlain { path: path.to_owned() }),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(source) => Err(Error::Read { path: path.to_owned(), source }),
        }
    }

    /// The folder of a path, and the name in it; absent if there is no such folder, an error if a link leads there.
    fn place_of<'a>(&self, path: &'a Path) -> Result<Option<(Folder, &'a OsStr)>, Error> {
        let (parent, name) = split(path)?;
        Ok(self.folder(parent)?.map(|folder| (folder, name)))
    }

    fn folder(&self, path: &Path) -> Result<Option<Folder>, Error> {
        match Folder::open(&self.root, path) {
            Ok(folder) => Ok(Some(folder)),
            Err(NoFolder::Missing) => Ok(None),
            Err(NoFolder::NotPlain(path)) => Err(Error::NotPlain { path }),
            Err(NoFolder::Failed(source)) => Err(Error::Read { path: path.to_owned(), source }),
        }
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

    /// Puts bytes in the place of the file, whatever is there.
    pub(crate) fn replace_bytes(&self, path: &Path, bytes: &[u8], durability: Durability) -> Result<(), Error> {
        // What nobody could read again must not take the place of something that can be read.
        if bytes.len() as u64 > MAX_FILE_BYTES {
            return Err(Error::TooLarge { path: path.to_owned() });
        }
        let (parent, name) = split(path)?;
        let failed = |source| Error::Write { path: path.to_owned(), source };
        let mut tries = 1;
        let (folder, mut file, temp) = loop {
            // Made only when it is missing, which costs nothing as long as it is not.
            let folder = if tries == 1 { self.folder(parent)? } else { Some(self.made_folder(parent)?) };
            let created = folder.map(|folder| create_temp(&folder).map(|(file, temp)| (folder, file, temp)));
            match created {
                None if tries < MAX_FOLDER_TRIES => tries += 1,
                Some(Err(error)) if error.kind() == ErrorKind::NotFound && tries < MAX_FOLDER_TRIES => tries += 1,
                None => return Err(failed(ErrorKind::NotFound.into())),
                Some(created) => break created.map_err(failed)?,
            }
        };
        let written = file.write_all(bytes).and_then(|()| match durability {
            Durability::Rename => Ok(()),
            Durability::Synced => file.sync_all(),
        });
        drop(file);
        if let Err(error) = written.and_then(|()| folder.rename(&temp, name)) {
            // The write failed; that its debris stays too would be no news.
            drop(folder.remove_file(&temp));
            return Err(failed(error));
        }
        sweep(&folder, name);
        Ok(())
    }

    fn made_folder(&self, path: &Path) -> Result<Folder, Error> {
        let failed = |source| Error::Write { path: path.to_owned(), source };
        Folder::make(&self.root, path).map_err(|error| match error {
            NoFolder::Missing => failed(ErrorKind::NotFound.into()),
            NoFolder::NotPlain(path) => Error::NotPlain { path },
            NoFolder::Failed(source) => failed(source),
        })
    }

    /// Moves a file that is no JSON out of the way. Of those of one name the newest are kept.
    fn set_aside(&self, path: &Path) -> Result<(), Error> {
        let Some(aside) = self.place_aside(path, CORRUPT)? else { return Ok(()) };
        self.rename(path, &aside)?;
        let Some((folder, file)) = self.place_of(path)? else { return Ok(()) };
        let prefix = file.to_str().map(|name| format!("{name}.{CORRUPT}-"));
        let mut kept: Vec<_> = folder
            .names()
            .filter(|name| name.to_str().zip(prefix.as_deref()).is_some_and(|(name, prefix)| name.starts_with(prefix)))
            .collect();
        kept.sort_unstable();
        let surplus = kept.len().saturating_sub(MAX_CORRUPT_KEPT);
        for oldest in &kept[..surplus] {
            folder.remove_file(oldest).map_err(|source| Error::Write { path: path.to_owned(), source })?;
        }
        Ok(())
    }

    /// A free name beside a file that cannot be understood, which says what is wrong with it and from when it is; absent if there is
    /// no file.
    pub(crate) fn place_aside(&self, path: &Path, what: &str) -> Result<Option<PathBuf>, Error> {
        let Some((folder, file, about)) = self.look_at_file(path)? else { return Ok(None) };
        let Some(file) = file.to_str() else { return Ok(None) };
        let ms = about.modified.epoch_ms();
        let mut names = (0..MAX_ASIDE_TRIES).map(|more| format!("{file}.{what}-{:013}", ms.saturating_add(more)));
        // A copy has the time of its original.
        let is_free =
            |name: &String| matches!(folder.about(name.as_ref()), Err(error) if error.kind() == ErrorKind::NotFound);
        let name = names.find(is_free).ok_or_else(|| Error::Exists { path: path.to_owned() })?;
        Ok(Some(path.with_file_name(name)))
    }

    /// Gives a file another name in its folder.
    pub(crate) fn rename(&self, path: &Path, to: &Path) -> Result<(), Error> {
        let Some((folder, name)) = self.place_of(path)? else { return Ok(()) };
        let (_, to) = split(to)?;
        folder.rename(name, to).map_err(|source| Error::Write { path: path.to_owned(), source })
    }

    /// Removes a file; it is no error if there is none.
    pub(crate) fn remove(&self, path: &Path) -> Result<(), Error> {
        let Some((folder, name)) = self.place_of(path)? else { return Ok(()) };
        match folder.remove_file(name) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(Error::Write { path: path.to_owned(), source: error })
            }
            _ => Ok(()),
        }
    }

    /// Removes a folder if it is empty, and says whether it is gone now.
    pub(crate) fn remove_folder(&self, path: &Path) -> bool {
        matches!(self.place_of(path), Ok(Some((folder, name))) if folder.remove_folder(name).is_ok())
    }

    /// Removes a folder with all that is in it, `depth` folders deep and `budget` entries at most; of a link only the link.
    pub(crate) fn remove_tree(&self, folder: &Path, depth: usize, budget: &mut usize) -> Result<(), Error> {
        for entry in self.entries(folder, *budget) {
            *budget = budget.saturating_sub(1);
            let path = folder.join(&entry.name);
            if entry.kind == Kind::Folder && depth > 0 {
                self.remove_tree(&path, depth - 1, budget)?;
            } else {
                self.remove(&path)?;
            }
        }
        let Some((above, name)) = self.place_of(folder)? else { return Ok(()) };
        match above.remove_folder(name) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(Error::Write { path: folder.to_owned(), source: error })
            }
            _ => Ok(()),
        }
    }

    /// Makes a folder, for the user alone, with those above it. It is no error if there is one.
    pub(crate) fn make_folder(&self, path: &Path) -> Result<(), Error> {
        self.made_folder(path).map(drop)
    }

    /// When the file changed last; absent if there is no plain file.
    pub(crate) fn modified(&self, path: &Path) -> Option<Timestamp> {
        Some(self.plain_file(path).ok()??.modified)
    }

    /// Whether there is anything at the path: one question to the file system in a guest, for callers in a hurry.
    pub(crate) fn exists(&self, path: &Path) -> bool {
        matches!(self.place_of(path), Ok(Some((folder, name))) if folder.about(name).is_ok())
    }

    /// Names of the folder's entries, at most `limit`; none if it cannot be listed.
    pub(crate) fn names(&self, folder: &Path, limit: usize) -> Vec<String> {
        let folder = self.folder(folder).ok().flatten();
        let names = folder.iter().flat_map(Folder::names).filter_map(|name| name.into_string().ok());
        names.take(limit).collect()
    }

    /// The folder's entries, `limit` at most, in no order; none if it cannot be listed or a link leads there.
    pub(crate) fn entries(&self, folder: &Path, limit: usize) -> Vec<Entry> {
        let Ok(Some(folder)) = self.folder(folder) else { return Vec::new() };
        let entry = |name: String| {
            let About { kind, modified, .. } = folder.about(name.as_ref()).ok()?;
            Some(Entry { name, kind, modified })
        };
        folder.names().filter_map(|name| name.into_string().ok()).take(limit).filter_map(entry).collect()
    }
}

/// A path's folder and name.
fn split(path: &Path) -> Result<(&Path, &OsStr), Error> {
    let no_file = || Error::NotPlain { path: path.to_owned() };
    path.parent().zip(path.file_name()).ok_or_else(no_file)
}

/// A new file of our own in the folder, only for the user.
fn create_temp(folder: &Folder) -> io::Result<(File, OsString)> {
    let mut tries = 1;
    loop {
        // The standard library's hash keys are the random numbers that it has on every platform. A file that is there already
        // makes a collision a retry, so they need not be secret.
        let name = OsString::from(format!("{TEMP_PREFIX}{:016x}", RandomState::new().build_hasher().finish()));
        match folder.create_file(&name) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists && tries < MAX_TEMP_TRIES => tries += 1,
            opened => return opened.map(|file| (file, name)),
        }
    }
}

/// Removes what writers that died left behind in the folder. Best effort: the next write tries again.
fn sweep(folder: &Folder, just_written: &OsStr) {
    let debris =
        folder.names().take(MAX_LISTED).filter(|name| name.to_str().is_some_and(|name| name.starts_with(TEMP_PREFIX)));
    for name in debris {
        // Both times are the file system's, so its clock need not be ours.
        let (Ok(then), Ok(now)) = (folder.about(&name), folder.about(just_written)) else { continue };
        if now.modified.ms_since(then.modified) > TEMP_MAX_AGE_MS {
            drop(folder.remove_file(&name));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{fields, plant, store};
    use serde_json::json;
    use std::{
        fs,
        sync::atomic::{AtomicBool, Ordering},
        thread,
        time::Duration,
    };
    use tempfile::TempDir;

    const FILE: &str = "state/sessions/s1/ralph-state.json";

    fn listing(folder: &TempDir) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(folder.path().join("state/sessions/s1"))
            .into_iter()
            .flatten()
            .map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8"))
            .collect();
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
        assert_eq!(fs::read_dir(outside.path()).expect("a folder").count(), 1, "and nothing beside it");
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

    #[cfg(unix)]
    #[test]
    fn a_folder_that_becomes_a_link_meanwhile_leads_nowhere() {
        let (folder, store) = store();
        let outside = tempfile::tempdir().expect("a folder");
        let secret = json!({"n": 1, "secret": true}).to_string();
        fs::create_dir_all(outside.path().join("sessions/s1")).expect("folders");
        fs::write(outside.path().join("sessions/s1/ralph-state.json"), &secret).expect("a file");
        store.replace(Path::new(FILE), &fields(json!({"n": 0}))).expect("a write");
        let (state, away) = (folder.path().join("state"), folder.path().join("away"));
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    fs::rename(&state, &away).expect("moved");
                    // A writer may have made the folder in between, and may do so again.
                    drop(std::os::unix::fs::symlink(outside.path(), &state));
                    thread::yield_now();
                    drop(fs::remove_file(&state));
                    while fs::rename(&away, &state).is_err() {
                        drop(fs::remove_dir_all(&state));
                    }
                }
            });
            for n in 0..2_000 {
                // It fails or it works; what it never does is to follow.
                drop(store.replace(Path::new(FILE), &fields(json!({"n": n}))));
                if let Ok(Some(read)) = store.read_fields(Path::new(FILE)) {
                    assert!(!read.flag("secret"), "a file outside was read");
                }
                drop(store.entries(Path::new("state/sessions/s1"), 10));
            }
            done.store(true, Ordering::Relaxed);
        });
        assert_eq!(fs::read_dir(outside.path().join("sessions/s1")).expect("a folder").count(), 1);
        let left = fs::read_to_string(outside.path().join("sessions/s1/ralph-state.json")).expect("a file");
        assert_eq!(left, secret);
    }
}
