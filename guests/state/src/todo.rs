//! The project's list of things to do, `todos.json`: an array, or an object with the array in `todos`.

use std::path::Path;

use serde_json::Value;

use crate::Store;

impl Store {
    /// How many items are open: all but those whose status is `completed` or `cancelled`.
    ///
    /// A list that cannot be read has none.
    pub fn open_todos(&self) -> usize {
        let list: Option<Value> = self.read_json(Path::new("todos.json")).ok().flatten();
        let items = match &list {
            Some(Value::Object(object)) => object.get("todos").and_then(Value::as_array),
            Some(list) => list.as_array(),
            None => None,
        };
        let is_over =
            |item: &Value| matches!(item.get("status").and_then(Value::as_str), Some("completed" | "cancelled"));
        items.map_or(0, |items| items.iter().filter(|item| item.is_object() && !is_over(item)).count())
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{plant, store};

    #[test]
    fn items_are_open_until_they_are_completed_or_cancelled() {
        for (list, open) in [
            (r#"[{"status": "pending"}, {"status": "completed"}, {"status": "cancelled"}, {}]"#, 2),
            (r#"{"todos": [{"status": "in_progress"}]}"#, 1),
            (r#"[null, 7, "pending"]"#, 0),
            (r#"{"todos": "none"}"#, 0),
            ("7", 0),
            ("[{", 0),
        ] {
            let (folder, store) = store();
            plant(&folder, "todos.json", list);
            assert_eq!(store.open_todos(), open, "{list}");
        }
        assert_eq!(store().1.open_todos(), 0);
    }
}
