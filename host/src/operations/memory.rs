//! What is known about the project: found by scans, learned from tools, told by people and models.

use std::fmt;

use omc_state::project_memory::{MAX_DIRECTIVE_UNITS, MAX_NOTE_UNITS, Occasion};
use serde::Serialize;
use serde_json::{Map, Value};

use super::{Error, Project, Result, check_length, check_text, now, pretty};

/// Longest category of a note and longest context of a directive, in UTF-16 units: the original's limits.
const MAX_CATEGORY_UNITS: usize = 50;
const MAX_CONTEXT_UNITS: usize = 500;

/// Sections that can be read, each with the member that holds it.
const SECTIONS: [(&str, &str); 6] = [
    ("techStack", "techStack"),
    ("build", "build"),
    ("conventions", "conventions"),
    ("structure", "structure"),
    ("notes", "customNotes"),
    ("directives", "userDirectives"),
];

/// The memory, or a part of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Memory(Option<Value>);

impl fmt::Display for Memory {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(value) => pretty(value, formatter),
            None => formatter.write_str("nothing is known about this project yet"),
        }
    }
}

/// What became of something that was to be kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Kept {
    /// Whether it changed what is known.
    pub changed: bool,
    #[serde(skip)]
    what: &'static str,
}

impl fmt::Display for Kept {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}", self.what, if self.changed { "kept" } else { "was known already" })
    }
}

impl Project {
    /// The memory, or one of its sections: `techStack`, `build`, `conventions`, `structure`, `notes`, `directives`.
    ///
    /// # Errors
    ///
    /// A section that does not exist, or what keeps the file from being read.
    pub fn read_memory(&self, section: Option<&str>) -> Result<Memory> {
        let member = match section.filter(|section| *section != "all") {
            None => None,
            Some(section) => Some(SECTIONS.iter().find(|(name, _)| *name == section).ok_or_else(|| {
                let names: Vec<_> = SECTIONS.iter().map(|(name, _)| *name).collect();
                Error::argument("section", format!("the sections are all, {}", names.join(", ")))
            })?),
        };
        let memory = self.store.read_memory()?.map(|memory| Map::from(memory.fields().clone()));
        Ok(Memory(match member {
            None => memory.map(Value::Object),
            Some((_, member)) => memory.and_then(|memory| memory.get(*member).cloned()),
        }))
    }

    /// Takes members into the memory: joined with what is known, or in its place.
    ///
    /// # Errors
    ///
    /// What keeps the file from being written.
    pub fn write_memory(&self, members: Map<String, Value>, merge: bool) -> Result<Kept> {
        self.change_memory("the memory is", |memory| {
            let before = memory.fields().clone();
            if merge {
                memory.merge(members);
            } else {
                memory.replace(members);
            }
            *memory.fields() != before
        })
    }

    /// Adds a note to the memory.
    ///
    /// # Errors
    ///
    /// A text that is empty or too long, or what keeps the file from being written.
    pub fn add_memory_note(&self, category: &str, content: &str) -> Result<Kept> {
        check_text("category", category, MAX_CATEGORY_UNITS)?;
        check_text("content", content, MAX_NOTE_UNITS)?;
        self.change_memory("the note is", |memory| memory.add_note(category.trim(), content, true, now()))
    }

    /// Adds something that every session has to obey.
    ///
    /// # Errors
    ///
    /// A text that is empty or too long, or what keeps the file from being written.
    pub fn add_directive(&self, directive: &str, context: Option<&str>, is_high: bool) -> Result<Kept> {
        check_text("directive", directive, MAX_DIRECTIVE_UNITS)?;
        let context = context.unwrap_or_default();
        check_length("context", context, MAX_CONTEXT_UNITS)?;
        self.change_memory("the directive is", |memory| memory.add_directive(directive, context, is_high, now()))
    }

    fn change_memory(
        &self,
        what: &'static str,
        change: impl FnOnce(&mut omc_state::project_memory::ProjectMemory) -> bool,
    ) -> Result<Kept> {
        let root = self.root.project_root.to_str();
        let mut changed = false;
        self.writable()?.change_memory(&self.locker(), Occasion::User(root), |memory| {
            changed = change(memory);
            changed
        })?;
        Ok(Kept { changed, what })
    }
}
