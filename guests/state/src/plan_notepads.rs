//! Notepads of plans, `notepads/PLAN/{learnings,decisions,issues,problems}.md`: what was found out while a plan was carried out.
//!
//! Agents write these files themselves; the form is a title, then entries under `## YYYY-MM-DD HH:MM:SS`. Nothing is ever dropped.

use std::path::{Path, PathBuf};

use crate::{Area, Error, Locker, Store, Timestamp, file::Kind};

/// Most plans whose wisdom is looked at, and most of what one file adds to it, in bytes: together below what a file may have.
const MAX_PLANS: usize = 32;
const MAX_WISDOM_FILE_BYTES: usize = 16 * 1024;
const MAX_WISDOM_BYTES: usize = 192 * 1024;

/// Largest file that we append to, in bytes: above it a person has to tidy up.
const MAX_FILE_BYTES: usize = 128 * 1024;

const FOLDER: &str = "notepads";

/// What an entry is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Category {
    /// What was learned.
    Learnings,
    /// What was decided, and why.
    Decisions,
    /// What is open.
    Issues,
    /// What went wrong.
    Problems,
}

impl Category {
    /// In the order in which wisdom is exported.
    pub const ALL: [Self; 4] = [Self::Learnings, Self::Decisions, Self::Issues, Self::Problems];

    fn title(self) -> &'static str {
        match self {
            Self::Learnings => "Learnings",
            Self::Decisions => "Decisions",
            Self::Issues => "Issues",
            Self::Problems => "Problems",
        }
    }

    fn file(self) -> String {
        format!("{}.md", self.title().to_ascii_lowercase())
    }
}

/// One entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// When it was written.
    pub written: Timestamp,
    /// What it says, without the white space around it.
    pub content: String,
}

/// Reads the entries of a file; each goes on to the next line that is a date.
pub fn parse_entries(text: &str) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    for line in text.lines() {
        if let Some(written) = date_of_line(line) {
            entries.push(Entry { written, content: String::new() });
        } else if let Some(entry) = entries.last_mut() {
            entry.content.push_str(line.strip_prefix('\\').filter(|rest| is_date(rest)).unwrap_or(line));
            entry.content.push('\n');
        }
    }
    for entry in &mut entries {
        entry.content = entry.content.trim().to_owned();
    }
    entries
}

/// An entry as it stands in the file. A line in it that would read as a date gets a backslash.
fn render_entry(entry: &Entry) -> String {
    let time = &entry.written.to_string()[..19].replace('T', " ");
    let content: Vec<_> = entry
        .content
        .trim()
        .lines()
        .map(|line| if is_date(line) { format!("\\{line}") } else { line.to_owned() })
        .collect();
    format!("\n## {time}\n\n{}\n", content.join("\n"))
}

/// Whether a line is a date, or one behind backslashes.
fn is_date(line: &str) -> bool {
    date_of_line(line.trim_start_matches('\\')).is_some()
}

fn date_of_line(line: &str) -> Option<Timestamp> {
    let time = line.trim_end().strip_prefix("## ")?;
    if time.len() == 19 { format!("{time}Z").parse().ok() } else { None }
}

/// The folder of a plan: other characters than letters, digits, `_` and `-` become `-`.
fn folder_of(plan: &str) -> PathBuf {
    /// Longest name of a folder, in characters.
    const MAX_CHARS: usize = 100;
    let safe = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '-' };
    Path::new(FOLDER).join(plan.chars().take(MAX_CHARS).map(safe).collect::<String>())
}

impl Store {
    /// Appends an entry to a plan's notepad, under its lock.
    ///
    /// # Errors
    ///
    /// [`Error::Full`] if the file is large already, or what keeps it from being read or written.
    pub fn append_wisdom<L: Locker>(
        &self,
        locker: &L,
        plan: &str,
        category: Category,
        content: &str,
        now: Timestamp,
    ) -> Result<(), Error> {
        let path = folder_of(plan).join(category.file());
        self.locked_in(locker, Area::Root, |store| {
            let text = store.read_text(&path)?;
            let title = || format!("# {} - {}\n", category.title(), crate::one_line(plan, 100));
            let mut text = text.unwrap_or_else(title);
            text.push_str(&render_entry(&Entry { written: now, content: content.to_owned() }));
            if text.len() > MAX_FILE_BYTES {
                return Err(Error::Full { path: path.clone(), max_bytes: MAX_FILE_BYTES });
            }
            store.replace_text(&path, &text)
        })
    }

    /// What all plans have noted, as one text; absent if that is nothing. Of a long file the end is taken, which is the newest.
    pub fn read_wisdom(&self) -> Option<String> {
        let mut plans: Vec<_> = self
            .entries(Path::new(FOLDER), MAX_PLANS)
            .into_iter()
            .filter(|entry| entry.kind == Kind::Folder)
            .map(|entry| entry.name)
            .collect();
        plans.sort_unstable();
        let mut wisdom = String::new();
        for plan in plans {
            for category in Category::ALL {
                let file = category.file();
                let Ok(Some(text)) = self.read_text(&Path::new(FOLDER).join(&plan).join(&file)) else { continue };
                let text = text.trim();
                let is_title_only = text.lines().count() <= 1 && text.starts_with("# ");
                if text.is_empty() || is_title_only || wisdom.len() + MAX_WISDOM_FILE_BYTES > MAX_WISDOM_BYTES {
                    continue;
                }
                wisdom.extend(["\n### ", &plan, "/", file.trim_end_matches(".md"), "\n", &tail(text), "\n"]);
            }
        }
        (!wisdom.is_empty()).then(|| format!("## Plan Wisdom\n{wisdom}"))
    }
}

/// The end of a text, from a line's start, and a word that something is missing before it.
fn tail(text: &str) -> String {
    let from = text.len().saturating_sub(MAX_WISDOM_FILE_BYTES);
    let Some(from) = (from..text.len()).find(|at| text.is_char_boundary(*at)).filter(|from| *from > 0) else {
        return text.to_owned();
    };
    let end = text[from..].split_once('\n').map_or(&text[from..], |(_, rest)| rest);
    format!("[older entries are in the file]\n{end}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        lock::testing::ThreadLocker,
        testing::{now, plant, store},
    };
    use proptest::prelude::*;
    use std::fs;

    #[test]
    fn entries_are_appended_in_the_originals_form() {
        let (folder, store) = store();
        let locker = ThreadLocker::default();
        for content in ["retries need jitter", "two\n## 2026-01-02 03:04:05\nlines"] {
            store.append_wisdom(&&locker, "checkout redesign/2", Category::Learnings, content, now()).expect("a write");
        }
        let text = fs::read_to_string(folder.path().join("notepads/checkout-redesign-2/learnings.md")).expect("a file");
        assert!(text.starts_with(
            "# Learnings - checkout redesign/2\n\n## 2026-11-30 14:28:00\n\nretries need jitter\n\n## 2026"
        ));
        let contents: Vec<_> = parse_entries(&text).into_iter().map(|entry| entry.content).collect();
        assert_eq!(contents, ["retries need jitter", "two\n## 2026-01-02 03:04:05\nlines"]);
    }

    #[test]
    fn wisdom_is_what_all_plans_say() {
        let (folder, store) = store();
        assert_eq!(store.read_wisdom(), None);
        plant(&folder, "notepads/b/learnings.md", "# Learnings - b\n");
        assert_eq!(store.read_wisdom(), None, "a title is no wisdom");
        plant(&folder, "notepads/b/decisions.md", "# Decisions - b\n\n## 2026-01-02 03:04:05\n\nkeep sqlite\n");
        plant(&folder, "notepads/a/learnings.md", "free text without a title");
        plant(&folder, "notepads/a/other.md", "not asked for");
        let wisdom = store.read_wisdom().expect("some");
        assert_eq!(
            wisdom,
            "## Plan Wisdom\n\n### a/learnings\nfree text without a title\n\n### b/decisions\n# Decisions - b\n\n## 2026-01-02 03:04:05\n\nkeep sqlite\n"
        );
    }

    #[test]
    fn wisdom_is_bounded_and_the_newest_stays() {
        let (folder, store) = store();
        for plan in 0..40 {
            plant(&folder, &format!("notepads/p{plan:02}/issues.md"), "가나다 line\n".repeat(10_000) + "the newest");
        }
        let wisdom = store.read_wisdom().expect("some");
        assert!(wisdom.len() < 200 * 1024 && wisdom.contains("the newest"), "{}", wisdom.len());
        let locker = ThreadLocker::default();
        let full = store.append_wisdom(&&locker, "p00", Category::Issues, "x", now());
        assert!(matches!(full, Err(Error::Full { .. })));
    }

    proptest! {
        #[test]
        fn an_entry_is_read_as_it_was_written(contents in proptest::collection::vec("(## 2026-01-02 03:04:05|\\\\|\n|[a-z#가 ]{0,5}){0,8}", 0..5)) {
            let entries: Vec<_> = contents.iter().map(|content| Entry { written: now(), content: content.trim().to_owned() }).collect();
            let text: String = entries.iter().map(render_entry).collect();
            prop_assert_eq!(parse_entries(&text), entries);
        }
    }
}
