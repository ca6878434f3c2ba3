//! What one call may use, and what it did use: limits in, a record for the audit trail out.
//!
//! The record is bounded whatever a guest does. Texts in it that a guest chose are cut and made inert.

use std::fmt::Write as _;

/// How much of WASI one call may use. No guest can change it. What each is by default, and why, is in the table of
/// [`crate::config::Limits`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FsLimits {
    /// Bytes written to files, all together.
    pub bytes_written: u64,
    /// Size to which one file may be brought.
    pub file_bytes: u64,
    /// Files and folders created.
    pub new_entries: u32,
    /// Bytes read from files, all together.
    pub bytes_read: u64,
    /// Files open at the same time.
    pub open_files: u32,
    /// Entries of the table of resources: descriptors, streams, pollables and the host's own.
    pub resources: u32,
    /// Names of folder entries given out, all together.
    pub listed_entries: u32,
    /// Bytes of standard output and standard error that are kept, both together.
    pub output_bytes: u32,
}

#[cfg(test)]
impl Default for FsLimits {
    fn default() -> Self {
        crate::capability::fs_limits(&crate::config::Limits::default())
    }
}

/// A limit that a call ran into. The guest got an error and went on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LimitHit {
    /// [`FsLimits::bytes_written`]
    BytesWritten,
    /// [`FsLimits::file_bytes`]
    FileBytes,
    /// [`FsLimits::new_entries`]
    NewEntries,
    /// [`FsLimits::bytes_read`]
    BytesRead,
    /// [`FsLimits::open_files`]
    OpenFiles,
    /// [`FsLimits::resources`]
    Resources,
    /// [`FsLimits::listed_entries`]
    ListedEntries,
    /// [`FsLimits::output_bytes`]
    OutputBytes,
}

impl LimitHit {
    /// The limit's key in the configuration, by which the trail names it.
    pub fn name(self) -> &'static str {
        match self {
            Self::BytesWritten => "written-bytes",
            Self::FileBytes => "file-bytes",
            Self::NewEntries => "new-files",
            Self::BytesRead => "read-bytes",
            Self::OpenFiles => "open-files",
            Self::Resources => "resources",
            Self::ListedEntries => "listed-entries",
            Self::OutputBytes => "output-bytes",
        }
    }
}

/// Why something was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// No grant covers the path.
    NotGranted,
    /// The grant is read-only.
    ReadOnly,
    /// The path is absolute or leads above the descriptor.
    Escape,
    /// A symbolic link is in the way; none is ever followed.
    SymbolicLink,
    /// It is neither a regular file nor a folder.
    SpecialFile,
    /// The file has a second name, so that writing would change something that may be elsewhere.
    HardLink,
    /// Links are never created.
    NewLink,
    /// Moving or removing it would change what a grant means.
    HoldsGrant,
    /// The name holds control characters or is not UTF-8.
    BadName,
    /// The directory behind the preopen cannot be used; `OmcDir::status` says why.
    Directory,
    /// Network.
    Network,
    /// The disk has no room left. A guest that writes to a stream is told of nothing but an error.
    DiskFull,
    /// The disk takes nothing.
    DiskReadOnly,
}

impl Reason {
    /// The reason's name in kebab-case, as it is in the trail.
    pub fn name(self) -> &'static str {
        match self {
            Self::NotGranted => "not-granted",
            Self::ReadOnly => "read-only",
            Self::Escape => "escape",
            Self::SymbolicLink => "symbolic-link",
            Self::SpecialFile => "special-file",
            Self::HardLink => "hard-link",
            Self::NewLink => "new-link",
            Self::HoldsGrant => "holds-grant",
            Self::BadName => "bad-name",
            Self::Directory => "directory",
            Self::Network => "network",
            Self::DiskFull => "disk-full",
            Self::DiskReadOnly => "disk-read-only",
        }
    }
}

/// Something that a guest tried and did not get.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// What it was about: a path of the guest's, or a function. Inert, and cut at [`MAX_NOTED_BYTES`].
    pub what: String,
    /// Why it was refused.
    pub reason: Reason,
}

/// Longest text of a guest's choice that is kept, in bytes.
pub const MAX_NOTED_BYTES: usize = 256;

/// Most paths that are kept as written.
pub const MAX_NOTED_PATHS: usize = 32;

/// Most refusals that are kept.
pub const MAX_NOTED_REFUSALS: usize = 16;

/// What one call did with WASI.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// How often a file was opened and something of it read.
    pub files_read: u32,
    /// How often a file was opened and something of it written or cut off.
    pub files_written: u32,
    /// Files and folders created.
    pub entries_created: u32,
    /// Files and folders removed.
    pub entries_removed: u32,
    /// Files and folders renamed.
    pub entries_renamed: u32,
    /// Names of folder entries given out.
    pub entries_listed: u32,
    /// Bytes read from files.
    pub bytes_read: u64,
    /// Bytes written to files.
    pub bytes_written: u64,
    /// The first [`MAX_NOTED_PATHS`] paths that were written, created, removed or renamed, as the guest knows them (`/omc/…`).
    pub paths_written: Vec<String>,
    /// How many changes of other paths the list left out.
    pub paths_left_out: u32,
    /// The first [`MAX_NOTED_REFUSALS`] different refusals.
    pub refusals: Vec<Refusal>,
    /// How many refusals the list left out, repeated ones included.
    pub refusals_left_out: u32,
    /// The limits that the call ran into, each one once.
    pub limits_hit: Vec<LimitHit>,
    /// What the guest wrote to standard output and standard error, in order. Raw bytes: whoever shows them makes them inert.
    pub output: Vec<u8>,
}

impl Usage {
    pub(super) fn note_path(&mut self, path: &str) {
        let path = inert(path, MAX_NOTED_BYTES);
        if self.paths_written.contains(&path) {
            return;
        }
        if self.paths_written.len() < MAX_NOTED_PATHS {
            self.paths_written.push(path);
        } else {
            self.paths_left_out = self.paths_left_out.saturating_add(1);
        }
    }

    pub(super) fn note_refusal(&mut self, reason: Reason, what: &str) {
        let refusal = Refusal { what: inert(what, MAX_NOTED_BYTES), reason };
        if self.refusals.len() < MAX_NOTED_REFUSALS && !self.refusals.contains(&refusal) {
            self.refusals.push(refusal);
        } else {
            self.refusals_left_out = self.refusals_left_out.saturating_add(1);
        }
    }

    pub(super) fn note_limit(&mut self, limit: LimitHit) {
        if !self.limits_hit.contains(&limit) {
            self.limits_hit.push(limit);
        }
    }

    /// Keeps what fits of a piece of output.
    pub(super) fn keep_output(&mut self, bytes: &[u8], limit: u32) {
        let room = usize::try_from(limit).unwrap_or(usize::MAX).saturating_sub(self.output.len());
        self.output.extend_from_slice(&bytes[..bytes.len().min(room)]);
        if bytes.len() > room {
            self.note_limit(LimitHit::OutputBytes);
        }
    }
}

/// A text of a guest's choice, made safe to store and show: cut at a character's end, and with everything that a terminal or a
/// reader could take for more than text written as an escape.
fn inert(text: &str, max_bytes: usize) -> String {
    let mut out = String::new();
    for c in text.chars() {
        let before = out.len();
        let hidden =
            matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
        if c.is_control() || hidden {
            // Writing to a string cannot fail.
            let _infallible = write!(out, "{}", c.escape_unicode());
        } else {
            out.push(c);
        }
        if out.len() > max_bytes {
            out.truncate(before);
            break;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_a_guest_are_cut_and_made_inert() {
        for (text, expected) in [
            ("state/ralph-state.json", "state/ralph-state.json"),
            ("a\u{1b}[31m", "a\\u{1b}[31m"),
            ("a\r\nb", "a\\u{d}\\u{a}b"),
            ("\u{202e}txt", "\\u{202e}txt"),
        ] {
            assert_eq!(inert(text, MAX_NOTED_BYTES), expected);
        }
        assert_eq!(inert("ééé", 5), "éé");
        assert_eq!(inert("abc\u{1b}", 5), "abc");
    }

    #[test]
    fn the_record_stays_bounded() {
        let mut usage = Usage::default();
        for n in 0..100 {
            usage.note_path(&format!("/omc/{n}"));
            usage.note_path("/omc/0");
            usage.note_refusal(Reason::Escape, &format!("../{n}"));
            usage.note_limit(LimitHit::BytesRead);
            usage.keep_output(&[b'x'; 1000], 2500);
        }
        assert_eq!((usage.paths_written.len(), usage.paths_left_out), (MAX_NOTED_PATHS, 68));
        assert_eq!((usage.refusals.len(), usage.refusals_left_out), (MAX_NOTED_REFUSALS, 84));
        assert_eq!(usage.limits_hit, [LimitHit::BytesRead, LimitHit::OutputBytes]);
        assert_eq!(usage.output.len(), 2500);
    }
}
