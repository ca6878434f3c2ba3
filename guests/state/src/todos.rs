//! To-do lists of agents: an array of items, or an object with one under `todos`.
//!
//! `todos.json` of the project's `.omc` and `.claude/todos.json` have this form; who reads the second has to bring its text.

use std::path::Path;

use serde_json::Value;

use crate::Store;

/// How many items are in which state. An item whose state is unknown, or has none, is pending.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Todos {
    /// Not begun.
    pub pending: u64,
    /// Begun.
    pub in_progress: u64,
    /// Done.
    pub completed: u64,
}

impl Todos {
    /// Longest list that is read, in bytes; real ones have a few kilobytes.
    pub const MAX_BYTES: u32 = 256 * 1024;

    /// Counts the items of a list. What is no list has none, and what is no item does not count.
    pub fn parse(text: &str) -> Self {
        let mut todos = Self::default();
        let Ok(value) = serde_json::from_str::<Value>(text) else { return todos };
        let items = value.as_array().or_else(|| value.get("todos")?.as_array());
        for item in items.into_iter().flatten().filter(|item| item.is_object()) {
            match item.get("status").and_then(Value::as_str) {
                Some("completed") => todos.completed += 1,
                Some("in_progress") => todos.in_progress += 1,
                Some("cancelled") => {}
                _ => todos.pending += 1,
            }
        }
        todos
    }

    /// How many are left to do.
    pub fn open(self) -> u64 {
        self.pending + self.in_progress
    }

    /// Both lists together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            pending: self.pending + other.pending,
            in_progress: self.in_progress + other.in_progress,
            completed: self.completed + other.completed,
        }
    }
}

impl Store {
    /// The project's own list. One that cannot be read has no items.
    pub fn read_todos(&self) -> Todos {
        self.read_text(Path::new("todos.json")).ok().flatten().map_or_else(Todos::default, |text| Todos::parse(&text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{plant, store};

    #[test]
    fn items_are_counted_in_both_shapes() {
        for (text, counts) in [
            (
                r#"{"todos":[{"status":"pending"},{"status":"completed"},{"status":"in_progress"},{"status":"cancelled"}]}"#,
                (1, 1, 1),
            ),
            (r#"[{"status":"pending"},{}]"#, (2, 0, 0)),
            (r#"[{"status":"blocked"},{"status":7}]"#, (2, 0, 0)),
            ("[null]", (0, 0, 0)),
            (r#"{"todos":"x"}"#, (0, 0, 0)),
            ("[{", (0, 0, 0)),
            ("7", (0, 0, 0)),
            ("", (0, 0, 0)),
        ] {
            let todos = Todos::parse(text);
            assert_eq!((todos.pending, todos.in_progress, todos.completed), counts, "{text}");
        }
    }

    #[test]
    fn lists_are_added_up() {
        let (folder, store) = store();
        assert_eq!(store.read_todos(), Todos::default());
        plant(&folder, "todos.json", r#"[{"status":"in_progress"}]"#);
        assert_eq!(store.read_todos().and(Todos::parse("[{}]")).open(), 2);
    }
}
