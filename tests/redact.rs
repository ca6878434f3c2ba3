//! What differs from run to run, replaced by its name: the one place for it.
//!
//! Works on text and on JSON values, so that a number is judged by its key and a text by its form. Runs of one letter, with
//! which guests make long texts, are written as letter and count.

use std::path::{Path, PathBuf};

use serde_json::Value;

/// Members whose numbers depend on the machine, the compiler or the length of its paths, and what stands for them.
const NUMBERS: &[(&str, &str)] = &[
    ("process", "[PROCESS]"),
    ("fuel", "[FUEL]"),
    ("micros", "[MICROS]"),
    ("memory-bytes", "[MEMORY]"),
    ("bytes-read", "[BYTES]"),
    ("bytes-written", "[BYTES]"),
];

/// Times in milliseconds since 1970 that a test can meet: from 2020 to 2100.
const EPOCH_MS: std::ops::Range<u64> = 1_577_836_800_000..4_102_444_800_000;

/// A number of letters above which a run of one of them is counted instead of shown.
const LONGEST_RUN: usize = 64;

/// The names of one world's folders.
pub(crate) struct Redaction {
    folders: Vec<(String, &'static str)>,
}

impl Redaction {
    /// Knows a world's folders by their placeholders; one that is inside another comes before it.
    pub(crate) fn new(folders: &[(PathBuf, &'static str)]) -> Self {
        let text = |path: &Path| path.to_str().expect("the folders of tests have plain names").to_owned();
        Self { folders: folders.iter().map(|(path, name)| (text(path), *name)).collect() }
    }

    /// Puts the world's folders in the place of their placeholders.
    pub(crate) fn fill(&self, text: &str) -> String {
        self.folders.iter().fold(text.to_owned(), |text, (path, name)| text.replace(name, path))
    }

    /// The same, in bytes that need not be UTF-8.
    pub(crate) fn fill_bytes(&self, bytes: &[u8]) -> Vec<u8> {
        bytes.utf8_chunks().flat_map(|chunk| [self.fill(chunk.valid()).as_bytes(), chunk.invalid()].concat()).collect()
    }

    /// Text without what differs.
    pub(crate) fn text(&self, text: &str) -> String {
        let text = self.folders.iter().fold(text.to_owned(), |text, (path, name)| text.replace(path, name));
        let text = text.replace(&format!("{}-{}", env!("CARGO_PKG_VERSION"), std::env::consts::ARCH), "[HOST]");
        // How much of a spilled text fits beside its path depends on the path's length.
        let is_spilled = text.contains("/.omc/spill/");
        let mut out = String::new();
        let mut rest = text.as_str();
        while let Some(first) = rest.chars().next() {
            let run =
                if is_spilled { run(rest).map(|(letter, length)| (format!("[{letter} ×…]"), length)) } else { None };
            let (replacement, length) =
                run.or_else(|| found(rest)).unwrap_or_else(|| (first.to_string(), first.len_utf8()));
            out.push_str(&replacement);
            rest = &rest[length..];
        }
        out
    }

    /// A value without what differs.
    pub(crate) fn json(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.text(text),
            Value::Number(number) if number.as_u64().is_some_and(|number| EPOCH_MS.contains(&number)) => {
                *value = "[MS]".into();
            }
            Value::Array(values) => values.iter_mut().for_each(|value| self.json(value)),
            Value::Object(members) => {
                for (key, value) in members {
                    match NUMBERS.iter().find(|(name, _)| name == key) {
                        Some((_, name)) if value.is_number() => *value = (*name).into(),
                        _ => self.json(value),
                    }
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

/// JSON text in which nothing acts on those who read an expectation, as the host itself writes it.
pub(crate) fn visible(json: &str) -> String {
    let escaped = |letter: char| match letter {
        '\u{7f}'..='\u{9f}' | '\u{2028}'..='\u{202e}' => format!("\\u{:04x}", u32::from(letter)),
        letter => letter.to_string(),
    };
    json.chars().map(escaped).collect()
}

/// What stands for the beginning of `text`, and how long that beginning is.
fn found(text: &str) -> Option<(String, usize)> {
    if let Some(length) = matching(text, "0000-00-00T00:00:00.000Z") {
        return Some(("[TIME]".to_owned(), length));
    }
    if let Some(length) = matching(text, "lib.rs:0") {
        // Where a guest panicked moves with its source.
        let length = length + text[length..].bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b':').count();
        let colon = usize::from(text[..length].ends_with(':'));
        return Some(("lib.rs:[LINE]".to_owned(), length - colon));
    }
    if let Some(length) = matching(text, ".corrupt-0000000000000") {
        return Some((".corrupt-[MS]".to_owned(), length));
    }
    if let Some(rest) = text.strip_prefix(".tmp-") {
        let hex = leading(rest, |letter| letter.is_ascii_hexdigit());
        return (hex == 16).then(|| (".tmp-[RANDOM]".to_owned(), ".tmp-".len() + hex));
    }
    let hex = leading(text, |letter| matches!(letter, '0'..='9' | 'a'..='f'));
    if hex == 64 {
        return Some(("[DIGEST]".to_owned(), hex));
    }
    if hex == 24 && text[hex..].starts_with(".txt") {
        return Some(("[DIGEST]".to_owned(), hex));
    }
    run(text).map(|(letter, length)| (format!("[{letter} ×{}]", length / letter.len_utf8()), length))
}

/// A long run of one letter at the beginning of `text`, and its length in bytes.
fn run(text: &str) -> Option<(char, usize)> {
    let first = text.chars().next()?;
    let length = leading(text, |letter| letter == first);
    (length > LONGEST_RUN * first.len_utf8()).then_some((first, length))
}

/// The length of `form` if `text` begins with it; `0` stands for any digit.
fn matching(text: &str, form: &str) -> Option<usize> {
    let fits = |(letter, form): (u8, u8)| if form == b'0' { letter.is_ascii_digit() } else { letter == form };
    (text.len() >= form.len() && text.bytes().zip(form.bytes()).all(fits)).then_some(form.len())
}

fn leading(text: &str, is: impl Fn(char) -> bool) -> usize {
    text.find(|letter| !is(letter)).unwrap_or(text.len())
}
