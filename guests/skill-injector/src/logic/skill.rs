//! A skill's file: front matter between `---` lines, then its body.
//!
//! The front matter is YAML, read event by event: anchors are not followed and nothing is built that grows beyond the text. What
//! people write is often not quite YAML (`description: Use when: …`), so a value that YAML would not read is quoted and read
//! again.

use saphyr_parser::{Event, Parser};

/// Longest beginning of a file that is read for its front matter, in bytes.
pub const MAX_HEAD_BYTES: u32 = 16 * 1024;

/// Most triggers of one skill, and the longest one, in characters.
const MAX_TRIGGERS: usize = 50;
const MAX_TRIGGER_CHARS: usize = 100;

/// Longest summary from a body, in characters: the original's limit.
const MAX_SUMMARY_CHARS: usize = 240;

/// Longest text of a field that is kept, in characters; the block cuts it further.
const MAX_TEXT_CHARS: usize = 4_000;

/// Whose skill it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The project's.
    Project,
    /// The user's own.
    User,
}

impl Scope {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Project => "project",
            Self::User => "user",
        }
    }
}

/// What a skill says about itself. Texts from a file: not to be shown as they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skill {
    /// Where the model finds it.
    pub path: String,
    /// Whose it is.
    pub scope: Scope,
    /// Its name, else the file's.
    pub name: String,
    /// What it says it is for, else the first line of its body.
    pub summary: String,
    /// Words that call for it, in lower case.
    pub triggers: Vec<String>,
    /// Whether words that are nearly a trigger count.
    pub is_fuzzy: bool,
}

impl Skill {
    /// Reads the beginning of a file; absent if it has no front matter or no triggers.
    ///
    /// `stem` is the file's name without its ending.
    pub fn read(text: &str, path: String, stem: &str, scope: Scope) -> Option<Self> {
        let (front, body) = split(text)?;
        let fields = Fields::read(front).or_else(|| Fields::read(&quoted(front)))?;
        let triggers: Vec<_> = fields
            .triggers
            .iter()
            .map(|trigger| trigger.trim().to_lowercase())
            .filter(|trigger| !trigger.is_empty() && trigger.chars().count() <= MAX_TRIGGER_CHARS)
            .take(MAX_TRIGGERS)
            .collect();
        if triggers.is_empty() {
            return None;
        }
        let or = |text: String, other: &dyn Fn() -> String| if text.trim().is_empty() { other() } else { text };
        Some(Self {
            path,
            scope,
            name: or(fields.name, &|| stem.to_owned()),
            summary: or(fields.description, &|| first_line(body)),
            triggers,
            is_fuzzy: fields.matching.trim().eq_ignore_ascii_case("fuzzy"),
        })
    }
}

/// Front matter and body.
fn split(text: &str) -> Option<(&str, &str)> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let (first, rest) = text.split_once('\n')?;
    if first.trim_end() != "---" {
        return None;
    }
    let mut at = 0;
    for line in rest.split_inclusive('\n') {
        if line.trim_end() == "---" {
            return Some((&rest[..at], &rest[at + line.len()..]));
        }
        at += line.len();
    }
    None
}

/// The first line of the body that says something, without the marks of a heading.
fn first_line(body: &str) -> String {
    let lines = body.lines().map(|line| line.trim().trim_start_matches('#').trim());
    lines
        .filter(|line| line.chars().any(char::is_alphanumeric))
        .map(|line| cut(line, MAX_SUMMARY_CHARS))
        .next()
        .unwrap_or_default()
}

fn cut(text: &str, max_chars: usize) -> String {
    text.chars().take(max_chars).collect()
}

/// The members of the front matter that matter here.
#[derive(Debug, Default)]
struct Fields {
    name: String,
    description: String,
    matching: String,
    triggers: Vec<String>,
}

impl Fields {
    /// Reads a mapping; absent if it is none, or no YAML.
    fn read(yaml: &str) -> Option<Self> {
        let mut fields = Self::default();
        let mut key: Option<String> = None;
        // 0 outside, 1 in the mapping, 2 and more in the value of a member.
        let mut depth = 0_usize;
        let mut is_mapping = false;
        for event in Parser::new_from_str(yaml) {
            let (event, _) = event.ok()?;
            match event {
                Event::MappingStart(..) | Event::SequenceStart(..) => {
                    is_mapping |= depth == 0 && matches!(event, Event::MappingStart(..));
                    if depth == 0 && !is_mapping {
                        return None;
                    }
                    depth += 1;
                }
                Event::MappingEnd | Event::SequenceEnd => {
                    depth = depth.saturating_sub(1);
                    if depth == 1 {
                        key = None;
                    }
                }
                Event::Scalar(text, ..) if depth == 1 => match key.take() {
                    None => key = Some(text.into_owned()),
                    Some(key) => fields.set(&key, &text),
                },
                // An item of a list; what is deeper belongs to nothing that is known here.
                Event::Scalar(text, ..) if depth == 2 && key.as_deref() == Some("triggers") => {
                    fields.set("triggers", &text);
                }
                Event::Alias(_) if depth == 1 => key = None,
                Event::DocumentEnd => break,
                _ => {}
            }
        }
        is_mapping.then_some(fields)
    }

    fn set(&mut self, key: &str, text: &str) {
        match key {
            "name" => self.name = cut(text, MAX_TEXT_CHARS),
            "description" => self.description = cut(text, MAX_TEXT_CHARS),
            "matching" => self.matching = cut(text, MAX_TEXT_CHARS),
            "triggers" if self.triggers.len() < MAX_TRIGGERS => self.triggers.push(cut(text, MAX_TEXT_CHARS)),
            _ => {}
        }
    }
}

/// The front matter with every plain value on a line of its own in quotes.
fn quoted(front: &str) -> String {
    let quote = |value: &str| format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\""));
    let is_plain = |value: &str| value.starts_with(|first: char| !"\"'[{|>&*!".contains(first));
    let line = |line: &str| {
        let (indent, rest) = line.split_at(line.len() - line.trim_start().len());
        if let Some(item) = rest.strip_prefix("- ").map(str::trim).filter(|item| is_plain(item)) {
            return format!("{indent}- {}\n", quote(item));
        }
        match rest.split_once(": ") {
            Some((key, value)) if is_plain(value.trim()) => format!("{indent}{key}: {}\n", quote(value.trim())),
            _ => format!("{line}\n"),
        }
    };
    front.lines().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<Skill> {
        Skill::read(text, "/p/file.md".to_owned(), "file", Scope::User)
    }

    #[test]
    fn front_matter_is_read_in_the_forms_that_people_write() {
        for (text, name, summary, triggers) in [
            (
                "---\nname: Release\ndescription: how\ntriggers:\n  - Release Notes\n  - \"deploy\"\n---\nBody",
                "Release",
                "how",
                &["release notes", "deploy"][..],
            ),
            (
                "---\ntriggers: [\"alpha\", 'beta', gamma]\n---\n\n# The heading\ntext",
                "file",
                "The heading",
                &["alpha", "beta", "gamma"],
            ),
            ("---\ntriggers: rollback\n---\n", "file", "", &["rollback"]),
            ("\u{feff}---\r\nname: W\r\ntriggers:\r\n- x\r\n---\r\nB", "W", "B", &["x"]),
            (
                "---\nname: \ntriggers:\n- x # a comment\n- ''\n---\n---\n***\n- first item",
                "file",
                "- first item",
                &["x"],
            ),
            ("---\ndescription: >\n  folded\n  text\ntriggers:\n- x\n---\n", "file", "folded text\n", &["x"]),
            (
                "---\ndescription: Use when: the release is near\ntriggers:\n- on call: now\n---\n",
                "file",
                "Use when: the release is near",
                &["on call: now"],
            ),
            ("---\nmeta:\n  triggers: [no]\n  name: no\nname: N\ntriggers: [yes]\ntags: [t]\n---\n", "N", "", &["yes"]),
            ("---\ntriggers: [[deep, er], x]\n---\n", "file", "", &["x"]),
        ] {
            let skill = read(text).unwrap_or_else(|| panic!("{text:?}"));
            assert_eq!((skill.name.as_str(), skill.summary.as_str()), (name, summary), "{text:?}");
            assert_eq!(skill.triggers, triggers, "{text:?}");
            assert!(!skill.is_fuzzy);
        }
        assert!(read("---\nmatching: Fuzzy\ntriggers: x\n---\n").is_some_and(|skill| skill.is_fuzzy));
    }

    #[test]
    fn what_calls_for_nothing_is_no_skill() {
        for text in [
            "",
            "release notes\n",
            "---\nname: No end\ntriggers: x\n",
            "---\nname: No triggers\n---\n",
            "---\nname: Tags only\ntags: [x]\n---\n",
            "---\ntriggers: []\n---\n",
            "---\ntriggers:\n---\n",
            "---\n- a list\n---\n",
            "---\n[: broken\n---\n",
            " ---\ntriggers: x\n---\n",
            "----\ntriggers: x\n---\n",
            "---\ntriggers: *anchor\n---\n",
        ] {
            assert_eq!(read(text), None, "{text:?}");
        }
    }

    #[test]
    fn hostile_front_matter_stays_small() {
        let list: Vec<_> = (0..5_000).map(|n| format!("- t{n}\n")).collect();
        let skill = read(&format!("---\ntriggers:\n{}- {}\n---\n", list.concat(), "x".repeat(500))).expect("a skill");
        assert_eq!(skill.triggers.len(), MAX_TRIGGERS);
        let bomb = "a: &a [x,x]\nb: &b [*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b]\ntriggers: [*c, y]\n";
        assert_eq!(read(&format!("---\n{bomb}---\n")).expect("a skill").triggers, ["y"]);
        let deep = format!("---\ntriggers: {}x{}\n---\n", "[".repeat(5_000), "]".repeat(5_000));
        assert_eq!(read(&deep), None);
        let long = read(&format!("---\nname: {}\ntriggers: x\n---\n", "n".repeat(10_000))).expect("a skill");
        assert_eq!(long.name.chars().count(), MAX_TEXT_CHARS);
    }
}
