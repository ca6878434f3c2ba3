//! The notepad: what every session is told, what was noted lately, and what the user wrote.

use std::fmt;
use std::path::Path;

use omc_state::notepad::{ADVISED_PRIORITY_UNITS, MAX_ENTRY_UNITS, MAX_PRIORITY_UNITS, Notepad, Section};
use omc_state::{Error as StoreError, units};
use serde::Serialize;

use super::{Error, Project, Result, check_text, now};

/// The notepad's file, below the state directory.
const FILE: &str = "notepad.md";

/// Most days that old entries can be kept: a year.
pub const MAX_DAYS: i64 = 365;

/// The name of a section in arguments and answers.
pub fn section_name(section: Section) -> &'static str {
    match section {
        Section::Priority => "priority",
        Section::Working => "working",
        Section::Manual => "manual",
    }
}

/// A section, or all of the notepad.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Notes {
    /// `priority`, `working`, `manual` or `all`.
    pub section: &'static str,
    /// What it says; absent if that is nothing.
    pub text: Option<String>,
}

impl fmt::Display for Notes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.text {
            Some(text) => formatter.write_str(text.trim_end()),
            None if self.section == "all" => formatter.write_str("there is no notepad yet"),
            None => write!(formatter, "the section `{}` is empty", self.section),
        }
    }
}

/// A note that was kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Noted {
    /// The section.
    pub section: &'static str,
    /// The notepad's file.
    pub path: String,
    /// What the writer should know.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
}

impl fmt::Display for Noted {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "noted in section `{}` of {}", self.section, self.path)?;
        self.warning.as_ref().map_or(Ok(()), |warning| write!(formatter, "\n{warning}"))
    }
}

/// What a clean-up did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Pruned {
    /// Entries that are gone.
    pub pruned: usize,
    /// Entries that are left.
    pub remaining: usize,
    /// The age from which they go.
    pub days: i64,
}

impl fmt::Display for Pruned {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pruned, remaining, days } = self;
        write!(formatter, "dropped {pruned} entries older than {days} days; {remaining} are left")
    }
}

/// What is in the notepad, in numbers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Stats {
    /// Whether there is one.
    pub exists: bool,
    /// Its file.
    pub path: String,
    /// Its length.
    pub bytes: usize,
    /// Length of the priority context.
    pub priority_bytes: usize,
    /// Entries of the working memory.
    pub working_entries: usize,
    /// When the oldest of them was written.
    pub oldest_entry: Option<String>,
    /// Entries of the manual section.
    pub manual_entries: usize,
}

impl fmt::Display for Stats {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.exists {
            return write!(formatter, "there is no notepad yet; it would be {}", self.path);
        }
        writeln!(formatter, "{}: {} bytes", self.path, self.bytes)?;
        writeln!(formatter, "priority context: {} bytes", self.priority_bytes)?;
        let oldest = self.oldest_entry.as_ref().map(|oldest| format!(", the oldest of {oldest}")).unwrap_or_default();
        writeln!(formatter, "working memory: {} entries{oldest}", self.working_entries)?;
        write!(formatter, "manual: {} entries", self.manual_entries)
    }
}

impl Project {
    /// A section of the notepad, or all of it.
    ///
    /// # Errors
    ///
    /// What keeps the file from being read.
    pub fn read_notes(&self, section: Option<Section>) -> Result<Notes> {
        let notepad = self.notepad()?;
        Ok(match section {
            None => Notes { section: "all", text: notepad.map(|notepad| notepad.render()) },
            Some(section) => {
                Notes { section: section_name(section), text: notepad.and_then(|notepad| notepad.text(section)) }
            }
        })
    }

    /// Replaces the priority context, or adds an entry to another section.
    ///
    /// # Errors
    ///
    /// A text that is empty or too long, or what keeps the file from being written.
    pub fn note(&self, section: Section, content: &str) -> Result<Noted> {
        let max_units = if section == Section::Priority { MAX_PRIORITY_UNITS } else { MAX_ENTRY_UNITS };
        check_text("content", content, max_units)?;
        let now = now();
        let changed = self.writable()?.change_notepad(&self.locker(), now, |notepad| match section {
            Section::Priority => notepad.set_priority(content),
            Section::Working | Section::Manual => notepad.append(section, content, now),
        })?;
        let length = units(content.trim());
        let too_long = (section == Section::Priority && length > ADVISED_PRIORITY_UNITS).then(|| {
            format!("it has {length} characters and is shown in every session; {ADVISED_PRIORITY_UNITS} are advised")
        });
        let set_aside = changed.set_aside.map(|aside| {
            let aside = self.shown(&aside);
            format!(
                "the notepad from before could not be read and is kept as {aside}; take from it what is still needed"
            )
        });
        let warnings: Vec<_> = too_long.into_iter().chain(set_aside).collect();
        let warning = (!warnings.is_empty()).then(|| warnings.join("\n"));
        Ok(Noted { section: section_name(section), path: self.shown(Path::new(FILE)), warning })
    }

    /// Drops entries of the working memory that are older than so many days.
    ///
    /// # Errors
    ///
    /// Days that are out of bounds, or what keeps the file from being written.
    pub fn prune_notes(&self, days: i64) -> Result<Pruned> {
        if !(1..=MAX_DAYS).contains(&days) {
            return Err(Error::argument("daysOld", format!("it is a number of days from 1 to {MAX_DAYS}")));
        }
        let pruned =
            self.store.prune_notepad(&self.locker(), days, now()).map_err(|error| self.notepad_error(error))?;
        Ok(Pruned { pruned: pruned.dropped, remaining: pruned.left, days })
    }

    /// What is in the notepad, in numbers.
    ///
    /// # Errors
    ///
    /// What keeps the file from being read.
    pub fn note_stats(&self) -> Result<Stats> {
        let notepad = self.notepad()?;
        let exists = notepad.is_some();
        let notepad = notepad.unwrap_or_default();
        let working = notepad.entries(Section::Working);
        Ok(Stats {
            exists,
            path: self.shown(Path::new(FILE)),
            bytes: if exists { notepad.render().len() } else { 0 },
            priority_bytes: notepad.text(Section::Priority).map_or(0, |text| text.len()),
            working_entries: working.len(),
            oldest_entry: working.iter().map(|entry| entry.written).min().map(omc_state::Timestamp::to_minute_text),
            manual_entries: notepad.entries(Section::Manual).len(),
        })
    }

    fn notepad(&self) -> Result<Option<Notepad>> {
        self.store.read_notepad().map_err(|error| self.notepad_error(error))
    }

    fn notepad_error(&self, error: StoreError) -> Error {
        if error.is_unreadable_text() {
            Error::UnreadableNotepad(self.shown(Path::new(FILE)), error)
        } else {
            error.into()
        }
    }
}
