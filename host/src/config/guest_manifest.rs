//! `guest.toml`: a guest's manifest as its author writes it, for `omc-host guests pack`.
//!
//! It has the members that the manifest inside a component has as JSON. There, members of later versions are passed over; here a
//! key that is not known is a slip of its author's pen, and so an error with its line.

use std::path::Path;

use omc_artifact::{MAX_MANIFEST_BYTES, Manifest};
use serde_json::{Map, Value};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::file;
use super::options;
use super::problem::{Problem, ProblemLog};

/// Keys by the table that they are in; the tables of a list by the list's name.
const KEYS: &[(&str, &[&str])] = &[
    ("", &["name", "version", "description", "enabled", "subscriptions", "requests", "limits"]),
    ("subscriptions", &["event", "matcher", "order", "when"]),
    ("requests", &["capability", "scope", "reason"]),
    ("limits", &["fuel", "memory-bytes", "deadline-ms"]),
];

/// Reads a file.
pub(crate) fn load(path: &Path) -> Result<Manifest, Vec<Problem>> {
    let problem = |what: String, next| vec![Problem::of_file(path, what, next)];
    match file::read(path, MAX_MANIFEST_BYTES as u64) {
        Ok(Some(read)) => parse(&read.text, path),
        Ok(None) => Err(problem("there is no such file".to_owned(), "write one, or name it with --manifest")),
        Err(error) => Err(problem(error.to_string(), "mend it, or name another with --manifest")),
    }
}

fn parse(text: &str, origin: &Path) -> Result<Manifest, Vec<Problem>> {
    let mut log = ProblemLog::new(origin, text);
    let (root, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        let offset = error.span().map_or(text.len(), |span| span.start);
        log.at(offset, format!("it is not valid TOML ({})", error.message()), "correct it");
    }
    let json = Value::Object(table("", root.get_ref(), &mut log));
    if log.is_empty() {
        match Manifest::parse(json.to_string().as_bytes()) {
            Ok(manifest) => return Ok(manifest),
            Err(error) => {
                use std::error::Error as _;
                // The cause names the member that is missing or of another type; its position is one in the JSON.
                let cause = error.source().map(ToString::to_string).unwrap_or_default();
                let cause = cause.split(" at line ").next().unwrap_or_default();
                let what = if cause.is_empty() { error.to_string() } else { format!("it is no manifest: {cause}") };
                log.of_file(what, "correct it");
            }
        }
    }
    Err(log.into_problems())
}

/// A table as a JSON object; `name` is that of the table, or of the list that it is in.
fn table(name: &str, table: &DeTable<'_>, log: &mut ProblemLog<'_>) -> Map<String, Value> {
    let known = KEYS.iter().find(|(table, _)| *table == name).map_or(&[][..], |(_, keys)| *keys);
    let mut object = Map::new();
    for (key, member) in table {
        let key_name = options::name(key);
        if known.contains(&key_name) {
            object.insert(key_name.to_owned(), value(key_name, member, log));
        } else {
            options::unknown(key, log);
        }
    }
    object
}

fn value(name: &str, value: &Spanned<DeValue<'_>>, log: &mut ProblemLog<'_>) -> Value {
    match value.get_ref() {
        DeValue::String(text) => Value::String(text.to_string()),
        DeValue::Boolean(truth) => Value::Bool(*truth),
        DeValue::Integer(number) => match i64::from_str_radix(number.as_str(), number.radix()) {
            Ok(number) => Value::from(number),
            Err(_) => refused(value, "the number is too large", log),
        },
        DeValue::Array(list) => list.iter().map(|item| self::value(name, item, log)).collect(),
        DeValue::Table(members) => Value::Object(table(name, members, log)),
        DeValue::Float(_) | DeValue::Datetime(_) => refused(value, "a manifest has no fractions and no dates", log),
    }
}

fn refused(value: &Spanned<DeValue<'_>>, what: &str, log: &mut ProblemLog<'_>) -> Value {
    log.at(value.span().start, what, "correct it");
    Value::Null
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = r#"
name = "guard"
version = "1.2.0"
description = "Guards"
enabled = false

[[subscriptions]]
event = "pre-tool-use"
matcher = "Bash|Edit"
order = 5
when = ["payload:push"]

[[requests]]
capability = "omc"
scope = ["rw:/omc/guests/guard"]
reason = "keeps notes"

[limits]
fuel = 1_000
memory-bytes = 0x100_0000
deadline-ms = 100
"#;

    fn problems(text: &str) -> String {
        let problems = parse(text, Path::new("guest.toml")).unwrap_err();
        problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn a_whole_manifest_has_every_key_that_the_one_inside_has() {
        let manifest = parse(WHOLE, Path::new("guest.toml")).unwrap();
        assert_eq!(manifest.limits.memory_bytes, Some(16 << 20));
        let json = serde_json::to_value(&manifest).unwrap();
        let keys = |value: &Value| {
            let mut keys: Vec<_> = value.as_object().unwrap().keys().cloned().collect();
            keys.sort_unstable();
            keys
        };
        let (first, tables) = (&json, ["subscriptions", "requests", "limits"]);
        for (name, expected) in KEYS {
            let table = match *name {
                "" => first,
                name => first[name].get(0).unwrap_or(&first[name]),
            };
            let mut expected: Vec<_> = expected.iter().map(|key| (*key).to_owned()).collect();
            expected.sort_unstable();
            assert_eq!(keys(table), expected, "{name}");
        }
        assert_eq!(KEYS.len(), tables.len() + 1);
    }

    #[test]
    fn a_slip_of_the_pen_is_named_with_its_line_and_what_to_do() {
        for (from, to, expected) in [
            ("matcher", "macther", "guest.toml` line 9: unknown key `macther`"),
            ("deadline-ms", "deadline", "unknown key `deadline`"),
            ("fuel = 1_000", "fuel = 1.5", "line 19: a manifest has no fractions and no dates"),
            ("fuel = 1_000", "fuel = 99999999999999999999", "the number is too large"),
            ("[limits]", "[limits", "is not valid TOML"),
            ("name = \"guard\"", "", "it is no manifest: missing field `name`"),
            ("name = \"guard\"", "name = \"Guard\"", "the name `Guard` is not 1 to 64"),
            ("rw:/omc/guests", "rw:/etc", "the capability `omc` has no scope `rw:/etc/guard`"),
            ("payload:push", "file:/etc", "there is no condition `file:/etc`"),
            ("order = 5", "order = \"first\"", "it is no manifest: invalid type: string"),
        ] {
            let text = WHOLE.replace(from, to);
            assert_ne!(text, WHOLE, "{from}");
            let problems = problems(&text);
            assert!(problems.contains(expected), "{expected}: {problems}");
        }
        assert!(load(Path::new("/nonexistent/guest.toml")).unwrap_err()[0].to_string().contains("--manifest"));
    }
}
