//! The text of Codex's `apply_patch`: which files it touches, and how.
//!
//! An envelope with one section a file: `*** Add File: PATH`, `*** Update File: PATH` (with `*** Move to: PATH`), `*** Delete File: PATH`.
//! Lines of a section's contents begin with a letter of their own, so a file that holds such a header cannot add a path. Of a
//! patch that Codex itself would refuse, every header counts: a path too much is seen by a person, one too few by nobody.

use crate::ToolKind;
use crate::path::{Operation, PathList, TooMany};

const BEGIN: &str = "*** Begin Patch";
const MOVE: &str = "*** Move to: ";

/// The headers of sections.
const SECTIONS: &[(&str, Operation)] = &[
    ("*** Add File: ", Operation::Write),
    ("*** Update File: ", Operation::Edit),
    ("*** Delete File: ", Operation::Delete),
];

/// A section of a patch.
struct Section<'a> {
    path: &'a str,
    operation: Operation,
    /// The new name.
    moved_to: Option<&'a str>,
}

/// Adds the paths of a patch.
pub(crate) fn paths(text: &str, paths: &mut PathList<'_>) -> Result<(), TooMany> {
    for section in sections(text) {
        match section.moved_to {
            Some(new) => {
                paths.add(section.path, Operation::Delete)?;
                paths.add(new, Operation::Write)?;
            }
            None => paths.add(section.path, section.operation)?,
        }
    }
    Ok(())
}

/// Adds the paths of a patch that a command line holds, as in `apply_patch <<'EOF'`.
pub(crate) fn inside_command(command: &str, list: &mut PathList<'_>) -> Result<(), TooMany> {
    match command.find(BEGIN) {
        Some(at) => paths(&command[at..], list),
        None => Ok(()),
    }
}

/// What a patch does as a whole: what all its sections do, else an edit.
pub(crate) fn kind(text: &str) -> ToolKind {
    let mut operations = sections(text).map(|section| match section.moved_to {
        Some(_) => Operation::Edit,
        None => section.operation,
    });
    let first = operations.next();
    match first.filter(|first| operations.all(|operation| operation == *first)) {
        Some(Operation::Write) => ToolKind::Write,
        Some(Operation::Delete) => ToolKind::Delete,
        _ => ToolKind::Edit,
    }
}

fn sections(text: &str) -> impl Iterator<Item = Section<'_>> {
    let mut lines = text.lines().peekable();
    let mut inside = None;
    std::iter::from_fn(move || {
        loop {
            let line = lines.next()?;
            let is_content = match inside {
                Some(Operation::Write) => line.starts_with('+'),
                Some(Operation::Edit) => !line.starts_with("***"),
                _ => false,
            };
            let header = line.trim();
            let section =
                SECTIONS.iter().find_map(|&(prefix, operation)| Some((header.strip_prefix(prefix)?, operation)));
            let Some((path, operation)) = section.filter(|_| !is_content) else { continue };
            inside = Some(operation);
            let moved_to = match operation {
                Operation::Edit => lines.peek().and_then(|next| next.trim().strip_prefix(MOVE)),
                _ => None,
            };
            return Some(Section { path, operation, moved_to });
        }
    })
}
