//! Files of the project, of the agent and of the user, for guests that were granted globs of them.
//!
//! What is in those folders is hostile: every folder and file is opened by handle, one name at a time, no link is followed, and
//! what is no regular file is not opened. What a guest may look at is decided by the path's text before anything is opened
//! ([`glob`]). A call has a [`Budget`]; what is over it is an error or, in a search, said to be left out.

mod glob;

use std::collections::VecDeque;
use std::path::Path;
use std::time::{Duration, Instant};

use omc_artifact::{ReadRoot, ReadScope};

use super::wasi::os::{Dir, Kind, Stat};
use crate::runtime::wit::project_files::{Entry, EntryKind, Found};
use crate::runtime::wit::types::AccessError;
use glob::{Globs, Place};

/// Longest text that one call of `read` gives, in bytes: instructions and settings have some ten KiB.
const MAX_READ_BYTES: u32 = 1024 * 1024;
/// Most entries that one answer holds: what goes into a guest's memory.
const MAX_ENTRIES: u32 = 4_096;
/// Longest path of a guest, in bytes, and most names in it: each is a system call and an open folder.
const MAX_PATH_BYTES: usize = 1024;
const MAX_DEPTH: usize = 32;
/// How deep a search goes, in folders; rules and skills are not deeper.
const MAX_FIND_DEPTH: usize = 16;
/// How many entries one search looks at: a few milliseconds, in a repository of any size.
const MAX_FIND_ENTRIES: u32 = 10_000;
/// How long one search takes, where the file system is slower than that.
const MAX_FIND_TIME: Duration = Duration::from_millis(20);
/// Entries between two looks at the clock.
const CLOCK_EVERY: u32 = 128;

/// What is left of what a call may do.
#[derive(Debug)]
pub(crate) struct Budget {
    /// Bytes to be read.
    bytes: u64,
    /// Entries to be looked at.
    entries: u32,
}

impl Default for Budget {
    /// 16 MiB, more than a guest could use in a context; 20,000 entries, two whole searches.
    fn default() -> Self {
        Self { bytes: 16 * 1024 * 1024, entries: 20_000 }
    }
}

/// What a guest may read below one root.
pub(super) struct Files<'a> {
    folder: &'a Path,
    globs: Globs<'a>,
    budget: &'a mut Budget,
}

impl<'a> Files<'a> {
    /// The files below `folder`, which is the host's own choice and may lead over links.
    pub(super) fn new(folder: &'a Path, root: ReadRoot, granted: &'a [ReadScope], budget: &'a mut Budget) -> Self {
        Self { folder, globs: Globs::new(root, granted), budget }
    }

    /// The text of a file. `whole` makes it an error if the file is longer than `max_bytes`.
    pub(super) fn read(&mut self, path: &str, max_bytes: u32, whole: bool) -> Result<String, AccessError> {
        let names = names(path).ok_or(AccessError::Denied)?;
        let (name, folders) = names.split_last().ok_or(AccessError::Denied)?;
        let place = self.place(&names);
        if !self.globs.matches(&place) {
            return Err(AccessError::Denied);
        }
        let max_bytes = max_bytes.min(MAX_READ_BYTES);
        let dir = self.open(folders)?;
        // Before opening, because opening a device may already do something; after it, because it may have been replaced.
        is_file(&dir.stat_at(name).map_err(|problem| error(&problem))?)?;
        let file = dir.open_file(name, true, false).map_err(|problem| error(&problem))?;
        let size = is_file(&file.stat().map_err(|problem| error(&problem))?)?;
        if whole && size > u64::from(max_bytes) {
            return Err(AccessError::TooLarge);
        }
        let mut bytes = Vec::new();
        // One byte more tells whether the file has grown, and whether a character is cut.
        let wanted = max_bytes as usize + 1;
        if self.budget.bytes < size.min(wanted as u64) {
            return Err(AccessError::Other("the call has read all that it may".to_owned()));
        }
        let room = usize::try_from(size).unwrap_or(wanted).saturating_add(1).min(wanted);
        while bytes.len() < room {
            let part = file.read_at(room - bytes.len(), bytes.len() as u64).map_err(|problem| error(&problem))?;
            if part.is_empty() {
                break;
            }
            bytes.extend(part);
        }
        self.budget.bytes = self.budget.bytes.saturating_sub(bytes.len() as u64);
        if bytes.len() > max_bytes as usize {
            if whole {
                return Err(AccessError::TooLarge);
            }
            bytes.truncate(whole_characters(&bytes, max_bytes as usize));
        }
        Ok(match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
        })
    }

    /// The entries of a folder, by name.
    pub(super) fn list(&mut self, folder: &str, max_entries: u32) -> Result<Vec<Entry>, AccessError> {
        let (names, place) = self.folder(folder)?;
        let max_entries = max_entries.min(MAX_ENTRIES) as usize;
        let dir = self.open(&names)?;
        let mut entries = Vec::new();
        for (name, kind, _) in self.entries(&dir, &place, None)?.0 {
            let Some(stat) = dir.stat_at(&name).ok().filter(|stat| stat.kind == kind) else { continue };
            if entries.len() == max_entries {
                return Err(AccessError::TooLarge);
            }
            let (kind, size) = if kind == Kind::Dir { (EntryKind::Folder, 0) } else { (EntryKind::File, stat.size) };
            entries.push(Entry { name, kind, size, modified_ms: milliseconds(stat.modified) });
        }
        Ok(entries)
    }

    /// The files in and below a folder that are granted: level by level, so that what is cut is what lies deepest.
    pub(super) fn find(&mut self, folder: &str, max_entries: u32) -> Result<Found, AccessError> {
        let (names, place) = self.folder(folder)?;
        let max_entries = max_entries.min(MAX_ENTRIES) as usize;
        let names: Vec<_> = names.into_iter().map(str::to_owned).collect();
        self.open(&names)?;
        let mut search = Search { until: Instant::now() + MAX_FIND_TIME, entries: MAX_FIND_ENTRIES };
        let mut found = Found { paths: Vec::new(), complete: true };
        let mut folders = VecDeque::from([(names, place, 0)]);
        while let Some((names, place, depth)) = folders.pop_front() {
            // A folder that is gone or closed to us holds nothing for the guest.
            let Ok(dir) = self.open(&names) else { continue };
            let Ok((entries, complete)) = self.entries(&dir, &place, Some(&mut search)) else { continue };
            found.complete &= complete;
            for (name, kind, place) in entries {
                let path = || names.iter().map(String::as_str).chain([name.as_str()]);
                if kind == Kind::Dir {
                    if !self.globs.lead_on(&place) {
                        continue;
                    }
                    if depth == MAX_FIND_DEPTH {
                        found.complete = false;
                        continue;
                    }
                    folders.push_back((path().map(str::to_owned).collect(), place, depth + 1));
                } else if self.globs.matches(&place) {
                    if found.paths.len() == max_entries {
                        found.complete = false;
                        return Ok(found);
                    }
                    found.paths.push(path().collect::<Vec<_>>().join("/"));
                }
            }
            if search.is_over() || self.budget.entries == 0 {
                found.complete &= folders.is_empty();
                break;
            }
        }
        Ok(found)
    }

    fn place(&self, names: &[&str]) -> Place {
        names.iter().fold(self.globs.start(), |place, name| self.globs.enter(&place, name))
    }

    /// A folder that a granted glob leads through.
    fn folder<'b>(&self, path: &'b str) -> Result<(Vec<&'b str>, Place), AccessError> {
        let names = if path.is_empty() { Vec::new() } else { names(path).ok_or(AccessError::Denied)? };
        let place = self.place(&names);
        if self.globs.lead_on(&place) { Ok((names, place)) } else { Err(AccessError::Denied) }
    }

    fn open(&self, names: &[impl AsRef<str>]) -> Result<Dir, AccessError> {
        let mut dir = Dir::open_parent(self.folder).map_err(|problem| error(&problem))?;
        for name in names {
            dir = match dir.open_dir(name.as_ref()) {
                Ok(dir) => dir,
                Err(problem) => {
                    let stat = dir.stat_at(name.as_ref());
                    return Err(
                        stat.map_or_else(|_| error(&problem), |stat| linked(stat.kind).unwrap_or(error(&problem)))
                    );
                }
            };
        }
        Ok(dir)
    }

    /// The files and folders in a folder that the globs match or lead through, by name, and whether all were looked at.
    fn entries(
        &mut self,
        dir: &Dir,
        place: &Place,
        mut search: Option<&mut Search>,
    ) -> Result<(Vec<Seen>, bool), AccessError> {
        let mut kept = Vec::new();
        let mut keep = |name: &str, kind: Kind| {
            // Most entries are files that no glob matches, and for those nothing is kept or looked up.
            let is_matched = self.globs.match_in(place, name);
            if kind == Kind::File && !is_matched {
                return;
            }
            let place = self.globs.enter(place, name);
            let leads_on = self.globs.lead_on(&place);
            if !is_matched && !leads_on {
                return;
            }
            let kind = match kind {
                // The file system does not tell by itself.
                Kind::Unknown => dir.stat_at(name).map_or(Kind::Unknown, |stat| stat.kind),
                kind => kind,
            };
            if kind == Kind::Dir || kind == Kind::File && is_matched {
                kept.push((name.to_owned(), kind, place));
            }
        };
        if let Some(names) = self.globs.only_names(place) {
            self.budget.entries = self.budget.entries.saturating_sub(1);
            for name in names {
                keep(name, Kind::Unknown);
            }
            return Ok((kept, true));
        }
        let mut listing = dir.entries().map_err(|problem| error(&problem))?;
        while let Some(entry) = listing.read() {
            let (name, kind) = entry.map_err(|problem| error(&problem))?;
            if self.budget.entries == 0 || search.as_mut().is_some_and(|search| !search.goes_on()) {
                // A search says that it left something out; a listing with a hole would be a lie.
                if search.is_none() {
                    return Err(AccessError::Other("the call has looked at all the entries that it may".to_owned()));
                }
                kept.sort_unstable_by(|(one, ..), (other, ..)| one.cmp(other));
                return Ok((kept, false));
            }
            self.budget.entries -= 1;
            if let Ok(name) = name.to_str() {
                keep(name, kind);
            }
        }
        kept.sort_unstable_by(|(one, ..), (other, ..)| one.cmp(other));
        Ok((kept, true))
    }
}

/// An entry that the globs match or lead through: its name, what it is, and where that is for the globs.
type Seen = (String, Kind, Place);

/// How far a search may still go.
struct Search {
    until: Instant,
    entries: u32,
}

impl Search {
    fn goes_on(&mut self) -> bool {
        if self.entries == 0 || self.entries.is_multiple_of(CLOCK_EVERY) && Instant::now() >= self.until {
            return false;
        }
        self.entries -= 1;
        true
    }

    fn is_over(&self) -> bool {
        self.entries == 0 || Instant::now() >= self.until
    }
}

/// The names of a path, if it is one of a guest: relative, plain, not too long.
fn names(path: &str) -> Option<Vec<&str>> {
    let names: Vec<_> = path.split('/').take(MAX_DEPTH + 1).collect();
    let plain =
        |name: &&str| !matches!(*name, "" | "." | "..") && !name.contains('\\') && !name.chars().any(char::is_control);
    (path.len() <= MAX_PATH_BYTES && names.len() <= MAX_DEPTH && names.iter().all(plain)).then_some(names)
}

/// The size of a regular file; a link is an error of its own, and anything else is not there.
fn is_file(stat: &Stat) -> Result<u64, AccessError> {
    if stat.kind == Kind::File { Ok(stat.size) } else { Err(linked(stat.kind).unwrap_or(AccessError::NotFound)) }
}

/// The error for a link, which is not followed here. It is no `not-found`: the agent may well follow it, and a guest that
/// looks for the user's rules must not take them for absent.
fn linked(kind: Kind) -> Option<AccessError> {
    (kind == Kind::Symlink).then(|| AccessError::Other("a link is not followed".to_owned()))
}

/// The longest beginning of at most `end` bytes that cuts no character. Of what is not UTF-8 it cuts at most three bytes.
fn whole_characters(bytes: &[u8], end: usize) -> usize {
    let continues = |at: usize| bytes.get(at).is_some_and(|byte| byte & 0b1100_0000 == 0b1000_0000);
    (end.saturating_sub(3)..=end).rev().find(|&at| !continues(at)).unwrap_or(end)
}

fn milliseconds((seconds, nanoseconds): (i64, u32)) -> u64 {
    u64::try_from(seconds).unwrap_or_default().saturating_mul(1_000) + u64::from(nanoseconds / 1_000_000)
}

fn error(error: &std::io::Error) -> AccessError {
    match error.kind() {
        // A file where a folder should be is nothing that can be found this way.
        std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory => AccessError::NotFound,
        kind => AccessError::Other(kind.to_string()),
    }
}

#[cfg(all(test, unix))]
mod tests;
