//! Taking another memory in: what a model or a person hands over, joined with what is known.
//!
//! Objects are joined member by member, `null` removes a member. The lists that mean something keep one entry for each note,
//! directive, path, language and framework; other lists become their union. Bounds hold afterwards as they do for single entries.

use serde_json::{Map, Value};

use super::{
    MAX_DIRECTIVE_UNITS, MAX_DIRECTIVES, MAX_HOT_PATHS, MAX_NOTE_UNITS, MAX_NOTES, ProjectMemory, fields_of, hot,
};
use crate::{Fields, Timestamp, units};

/// Deepest that objects are joined; below, the new value stands for itself.
const MAX_DEPTH: usize = 10;

impl ProjectMemory {
    /// Takes in these members. What is not in them stays.
    pub fn merge(&mut self, members: Map<String, Value>) {
        let mut known: Map<String, Value> = std::mem::take(&mut self.fields).into();
        merge_objects(&mut known, members, 0);
        self.fields = known.into();
        self.keep_bounds();
    }

    /// Replaces everything by these members; what makes a memory complete stays where they lack it.
    pub fn replace(&mut self, members: Map<String, Value>) {
        let known = std::mem::replace(&mut self.fields, members.into());
        for name in ["version", "lastScanned", "projectRoot"] {
            if let Some(value) = known.get(name).filter(|_| self.fields.get(name).is_none()) {
                self.fields.set(name, value.clone());
            }
        }
        self.keep_bounds();
    }

    fn keep_bounds(&mut self) {
        let rank = |flag: bool, fields: &Fields| (flag, fields.time("timestamp").map(Timestamp::epoch_ms));
        self.keep("customNotes", ("content", MAX_NOTE_UNITS), MAX_NOTES, |note| {
            rank(note.text("source") == Some("manual"), note)
        });
        self.keep("userDirectives", ("directive", MAX_DIRECTIVE_UNITS), MAX_DIRECTIVES, |directive| {
            rank(directive.text("priority") == Some("high"), directive)
        });
        self.keep("hotPaths", ("path", MAX_NOTE_UNITS), MAX_HOT_PATHS, |path| {
            (false, path.count("accessCount").and_then(|count| i64::try_from(count).ok()))
        });
    }

    /// Keeps the entries of a list that have a text of bounded length, and of more than `max` those that rank highest.
    fn keep<Rank: Ord>(
        &mut self,
        list: &str,
        (text, max_units): (&str, usize),
        max: usize,
        rank: impl Fn(&Fields) -> Rank,
    ) {
        if self.fields.get(list).is_none() {
            return;
        }
        let entries = self.list_mut(list);
        entries.retain(|entry| fields_of(entry).text(text).is_some_and(|text| units(text) <= max_units));
        while entries.len() > max {
            let Some(least) = (0..entries.len()).min_by_key(|&at| rank(&fields_of(&entries[at]))) else { break };
            entries.remove(least);
        }
    }
}

fn merge_objects(known: &mut Map<String, Value>, new: Map<String, Value>, depth: usize) {
    for (name, value) in new {
        // The original reads these files, too, and for it these names are more than names.
        if matches!(name.as_str(), "__proto__" | "constructor" | "prototype") {
            continue;
        }
        if value.is_null() {
            known.shift_remove(&name);
            continue;
        }
        match (known.get_mut(&name), value) {
            (Some(Value::Object(known)), Value::Object(new)) if depth < MAX_DEPTH => {
                merge_objects(known, new, depth + 1);
            }
            (Some(Value::Array(known)), Value::Array(new)) => merge_lists(&name, known, new),
            (_, value) => drop(known.insert(name, value)),
        }
    }
}

/// What makes two entries of a list the same thing.
fn key(list: &str, entry: &Value) -> Value {
    let member = |name: &str| entry.get(name).cloned().unwrap_or_default();
    match list {
        "customNotes" => Value::Array(vec![member("category"), member("content")]),
        "userDirectives" => member("directive"),
        "hotPaths" => member("path"),
        "languages" | "frameworks" if entry.is_object() => member("name"),
        _ => entry.clone(),
    }
}

fn merge_lists(list: &str, known: &mut Vec<Value>, new: Vec<Value>) {
    for entry in new {
        let wanted = key(list, &entry);
        match known.iter_mut().find(|known| key(list, known) == wanted) {
            Some(same) => merge_entries(list, same, entry),
            None => known.push(entry),
        }
    }
}

fn merge_entries(list: &str, known: &mut Value, new: Value) {
    match list {
        "customNotes" | "userDirectives" => {
            if fields_of(&new).time("timestamp") > fields_of(known).time("timestamp") {
                *known = new;
            }
        }
        "hotPaths" => {
            if let (Some(old), Some(added)) = (hot(known), hot(&new)) {
                known["accessCount"] = old.count.max(added.count).into();
                known["lastAccessed"] = old.last_used.max(added.last_used).epoch_ms().into();
            }
        }
        _ => *known = new,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::fields;
    use serde_json::json;

    fn merged(known: Value, new: Value) -> Value {
        let mut memory = ProjectMemory::from_fields(fields(known));
        memory.merge(fields(new).into());
        serde_json::to_value(memory.fields()).expect("JSON")
    }

    #[test]
    fn entries_of_the_same_thing_become_one() {
        for (known, new, expected) in [
            (json!({"a": {"b": 1, "c": 2}}), json!({"a": {"b": 3, "c": null}}), json!({"a": {"b": 3}})),
            (json!({"a": [1, 2]}), json!({"a": [2, 3]}), json!({"a": [1, 2, 3]})),
            (json!({"a": 1}), json!({"__proto__": {"x": 1}, "constructor": 1, "b": 2}), json!({"a": 1, "b": 2})),
            (
                json!({"customNotes": [{"category": "a", "content": "x", "timestamp": 1}], "extra": 1}),
                json!({"customNotes": [{"category": "a", "content": "x", "timestamp": 2}, {"category": "b", "content": "y"}], "extra": null}),
                json!({"customNotes": [{"category": "a", "content": "x", "timestamp": 2}, {"category": "b", "content": "y"}]}),
            ),
            (
                json!({"userDirectives": [{"directive": "d", "timestamp": 5}]}),
                json!({"userDirectives": [{"directive": "d", "timestamp": 4, "priority": "high"}]}),
                json!({"userDirectives": [{"directive": "d", "timestamp": 5}]}),
            ),
            (
                json!({"hotPaths": [{"path": "p", "accessCount": 3, "lastAccessed": 9}]}),
                json!({"hotPaths": [{"path": "p", "accessCount": 2, "lastAccessed": 10}]}),
                json!({"hotPaths": [{"path": "p", "accessCount": 3, "lastAccessed": 10}]}),
            ),
            (
                json!({"techStack": {"languages": [{"name": "Rust", "version": "1"}]}}),
                json!({"techStack": {"languages": [{"name": "Rust", "version": "2"}, {"name": "C"}]}}),
                json!({"techStack": {"languages": [{"name": "Rust", "version": "2"}, {"name": "C"}]}}),
            ),
        ] {
            assert_eq!(merged(known.clone(), new.clone()), expected, "{known} and {new}");
        }
    }

    #[test]
    fn bounds_hold_and_what_a_person_wrote_stays() {
        let note = |at: usize, source: &str| json!({"category": "c", "content": format!("n{at}"), "timestamp": at, "source": source});
        let notes: Vec<_> = (0..50).map(|at| note(at, if at == 0 { "manual" } else { "learned" })).collect();
        let known = json!({"customNotes": [], "userDirectives": ["no object", {"directive": "x".repeat(401)}]});
        let memory = merged(known, json!({"customNotes": notes}));
        let kept = memory["customNotes"].as_array().expect("a list");
        assert_eq!((kept.len(), &kept[0]["content"]), (MAX_NOTES, &json!("n0")));
        assert_eq!(memory["userDirectives"], json!([]));
    }

    #[test]
    fn a_replaced_memory_stays_complete() {
        let mut memory = ProjectMemory::from_fields(fields(json!({
            "version": "1.0.0", "lastScanned": 7, "projectRoot": "/p", "customNotes": [{"content": "x"}],
        })));
        memory.replace(fields(json!({"build": {}, "projectRoot": "/q"})).into());
        assert!(memory.is_complete() && memory.notes().is_empty());
        assert_eq!(memory.fields().text("projectRoot"), Some("/q"));
    }
}
