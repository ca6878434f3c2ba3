//! The wiki, `wiki/*.md`: pages that agents write for those after them, an index of them and a log.
//!
//! A page is front matter between two lines `---` and Markdown below. Of the front matter only lines `key: value` are understood;
//! the others, and keys that nobody here knows, come back as they were. A file without front matter is no page. `index.md`,
//! `log.md` and `environment.md` are ours and no pages.

mod edit;
mod links;
mod lint;
mod search;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use crate::{
    Error, SessionId, Store, Timestamp,
    file::Kind,
    one_line,
    project_memory::{Command, ProjectMemory},
};

pub use edit::{CATEGORIES, CONFIDENCES, Ingested, Knowledge};
pub use lint::{Finding, Severity};
pub use search::Match;

/// Most pages that are looked at.
const MAX_PAGES: usize = 500;

/// Longest log, in bytes; its oldest entries go first.
const MAX_LOG_BYTES: usize = 64 * 1024;

/// Most pages that ends of sessions leave behind. Older ones go, unless somebody has written in them.
const MAX_CAPTURES: usize = 30;

/// Longest title in the index, in UTF-16 units, and longest summary.
const MAX_TITLE_UNITS: usize = 200;
const MAX_SUMMARY_UNITS: usize = 80;

const FOLDER: &str = "wiki";
const INDEX: &str = "index.md";
const LOG: &str = "log.md";
const ENVIRONMENT: &str = "environment.md";
const RESERVED: [&str; 3] = [INDEX, LOG, ENVIRONMENT];
const CAPTURE_BEFORE: &str = "session-log-";
const LOG_TITLE: &str = "# Wiki Log\n";

/// A line of a page's front matter.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Line {
    /// The value as it stands behind the colon, white space and quotes included.
    Member {
        key: String,
        value: String,
    },
    Other(String),
}

/// One page.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Page {
    front: Vec<Line>,
    body: String,
}

impl Page {
    /// A page with the members of the original.
    pub fn new(title: &str, category: &str, now: Timestamp) -> Self {
        let mut page = Self::default();
        page.set_text("title", title);
        page.set_list("tags", &[]);
        page.set_plain("created", &now.to_string());
        page.set_plain("updated", &now.to_string());
        page.set_list("sources", &[]);
        page.set_list("links", &[]);
        page.set_plain("category", category);
        page.set_plain("confidence", "medium");
        page.set_plain("schemaVersion", "1");
        page.body = format!("\n# {}\n", one_line(title, MAX_TITLE_UNITS));
        page
    }

    /// Reads a file's text; absent if it has no front matter. Line ends become `\n`.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.replace("\r\n", "\n");
        let mut front = Vec::new();
        let mut rest = text.strip_prefix("---\n")?;
        loop {
            let (line, after) = rest.split_once('\n').unwrap_or((rest, ""));
            if line.trim_end() == "---" {
                return Some(Self { front, body: after.to_owned() });
            }
            if rest.is_empty() {
                return None;
            }
            front.push(match line.split_once(':') {
                Some((key, value)) if is_key(key) => Line::Member { key: key.to_owned(), value: value.to_owned() },
                _ => Line::Other(line.to_owned()),
            });
            rest = after;
        }
    }

    /// The file's text.
    pub fn render(&self) -> String {
        let mut text = "---\n".to_owned();
        for line in &self.front {
            match line {
                Line::Member { key, value } => text.extend([key.as_str(), ":", value, "\n"]),
                Line::Other(line) => text.extend([line.as_str(), "\n"]),
            }
        }
        text + "---\n" + &self.body
    }

    /// The Markdown below the front matter.
    pub fn body(&self) -> &str {
        &self.body
    }

    /// Replaces the Markdown below the front matter.
    pub fn set_body(&mut self, body: &str) {
        self.body = body.replace("\r\n", "\n");
    }

    /// A member as text; absent if there is none or nothing in it.
    pub fn text(&self, key: &str) -> Option<String> {
        let (text, _) = scalar(self.value(key)?.trim());
        (!text.is_empty()).then_some(text)
    }

    /// A member as a list; one without brackets is its only item.
    pub fn list(&self, key: &str) -> Vec<String> {
        let Some(value) = self.value(key).map(str::trim).filter(|value| !value.is_empty()) else { return Vec::new() };
        let Some(mut rest) = value.strip_prefix('[').map(|inner| inner.strip_suffix(']').unwrap_or(inner)) else {
            return vec![scalar(value).0];
        };
        let mut items = Vec::new();
        while !rest.trim().is_empty() {
            let (item, after) = scalar_until_comma(rest.trim_start());
            if !item.is_empty() {
                items.push(item);
            }
            rest = after;
        }
        items
    }

    /// Sets a member to a text, in quotes.
    pub fn set_text(&mut self, key: &str, text: &str) {
        self.set_plain(key, &quoted(text));
    }

    /// Sets a member to a list of texts, in quotes.
    pub fn set_list(&mut self, key: &str, items: &[&str]) {
        let items: Vec<_> = items.iter().map(|item| quoted(item)).collect();
        self.set_plain(key, &format!("[{}]", items.join(", ")));
    }

    /// Sets a member to a word or a time.
    fn set_plain(&mut self, key: &str, value: &str) {
        let value = format!(" {value}");
        for line in &mut self.front {
            if let Line::Member { key: known, value: old } = line
                && known == key
            {
                *old = value;
                return;
            }
        }
        self.front.push(Line::Member { key: key.to_owned(), value });
    }

    /// The page's category.
    pub fn category(&self) -> String {
        self.text("category").unwrap_or_else(|| "reference".to_owned())
    }

    /// When it was changed last, as it says itself.
    pub fn updated(&self) -> Option<Timestamp> {
        self.text("updated")?.parse().ok()
    }

    /// The first line of the body that is no heading.
    fn summary(&self) -> String {
        let line = self.body.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#'));
        one_line(line.unwrap_or_default(), MAX_SUMMARY_UNITS)
    }

    fn value(&self, key: &str) -> Option<&str> {
        self.front.iter().find_map(|line| match line {
            Line::Member { key: known, value } if known == key => Some(value.as_str()),
            _ => None,
        })
    }
}

fn is_key(key: &str) -> bool {
    !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '\\' => quoted.push_str("\\\\"),
            '"' => quoted.push_str("\\\""),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

/// The text of a quoted or bare value, and what is left after it.
fn scalar(value: &str) -> (String, &str) {
    match value.chars().next() {
        Some('"') => {
            let mut text = String::new();
            let mut characters = value[1..].char_indices();
            while let Some((at, character)) = characters.next() {
                match character {
                    '"' => return (text, &value[at + 2..]),
                    '\\' => text.push(match characters.next() {
                        Some((_, 'n')) => '\n',
                        Some((_, 'r')) => '\r',
                        Some((_, other)) => other,
                        None => '\\',
                    }),
                    other => text.push(other),
                }
            }
            (text, "")
        }
        Some('\'') => match value[1..].split_once('\'') {
            Some((text, after)) => (text.to_owned(), after),
            None => (value[1..].to_owned(), ""),
        },
        _ => (value.trim_end().to_owned(), ""),
    }
}

/// The same in a list: a bare value ends at a comma.
fn scalar_until_comma(value: &str) -> (String, &str) {
    if value.starts_with(['"', '\'']) {
        let (text, after) = scalar(value);
        return (text, after.split_once(',').map_or("", |(_, after)| after));
    }
    let (text, after) = value.split_once(',').unwrap_or((value, ""));
    (text.trim().to_owned(), after)
}

/// The file name of a page with this title: lower-case letters and digits with `-` between them; a title without any gets a hash.
pub fn slug(title: &str) -> String {
    let stem = stem(title);
    if stem.is_empty() { format!("page-{:08x}.md", hash(title)) } else { format!("{stem}.md") }
}

/// The file name of a page with this title where a page of another title has that of [`slug`] already: it gets a hash too.
fn distinct_slug(title: &str) -> String {
    let stem = stem(title);
    let stem = if stem.is_empty() { "page" } else { &stem };
    format!("{stem}-{:08x}.md", hash(&folded(title)))
}

/// A title without what people write now so and now so: case, and white space, `-` and `_` between words. Other signs tell titles
/// apart: C is not C++.
fn folded(title: &str) -> String {
    let separates = |character: char| character.is_whitespace() || matches!(character, '-' | '_');
    title.to_lowercase().split(separates).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

/// The part of a file name that a title is readable by; empty for a title without ASCII letters and digits.
fn stem(title: &str) -> String {
    /// Longest stem, in bytes.
    const MAX_BYTES: usize = 64;
    let mut slug = String::new();
    for character in title.to_lowercase().chars() {
        if character.is_ascii_alphanumeric() {
            slug.push(character);
        } else if !slug.ends_with('-') {
            slug.push('-');
        }
    }
    let slug = slug.trim_matches('-');
    slug[..slug.len().min(MAX_BYTES)].trim_end_matches('-').to_owned()
}

/// The original's hash of a text, for names.
fn hash(text: &str) -> u32 {
    let hash = text.encode_utf16().fold(0_i32, |hash, unit| hash.wrapping_mul(31).wrapping_add(i32::from(unit)));
    hash.unsigned_abs()
}

/// What the wiki holds, in short.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Overview {
    /// How many pages.
    pub pages: usize,
    /// Their categories, sorted.
    pub categories: Vec<String>,
    /// When the newest was changed.
    pub updated: Option<Timestamp>,
    /// The text of the index.
    pub index: String,
}

/// Makes the index of pages, each with its file name.
fn overview(pages: &[(String, Page)], now: Timestamp) -> Overview {
    let updated = pages.iter().filter_map(|(_, page)| page.updated()).max();
    let mut by_category: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (file, page) in pages {
        let title = page.text("title").unwrap_or_else(|| file.trim_end_matches(".md").to_owned());
        // Brackets would end the link.
        let title = one_line(&title, MAX_TITLE_UNITS).replace(['[', ']'], "");
        let line = format!("- [{title}]({file}) — {}", page.summary());
        by_category.entry(one_line(&page.category(), MAX_SUMMARY_UNITS)).or_default().push(line);
    }
    let mut index = format!("# Wiki Index\n\n> {} pages | Last updated: {}\n", pages.len(), updated.unwrap_or(now));
    for (category, lines) in &by_category {
        index.extend(["\n## ", category, "\n\n", &lines.join("\n"), "\n"]);
    }
    Overview { pages: pages.len(), categories: by_category.into_keys().collect(), updated, index }
}

/// The page that a line of the index is about.
fn file_of_line(line: &str) -> Option<&str> {
    line.strip_prefix("- [")?.split_once("](")?.1.split(')').next()
}

fn path_of(file: &str) -> PathBuf {
    Path::new(FOLDER).join(file)
}

impl Store {
    /// Whether there is a wiki: one question to the file system.
    pub fn has_wiki(&self) -> bool {
        self.exists(Path::new(FOLDER))
    }

    /// The pages, by file name. What cannot be read, or has no front matter, is no page.
    pub fn wiki_pages(&self) -> Vec<(String, Page)> {
        self.page_files()
            .into_iter()
            .filter_map(|(file, _)| Some((self.read_page(&file)?, file)))
            .map(|(page, file)| (file, page))
            .collect()
    }

    /// The page in a file of the wiki.
    pub fn read_page(&self, file: &str) -> Option<Page> {
        Page::parse(&self.read_text(&path_of(file)).ok().flatten()?)
    }

    /// The text of a page, of the index or of another file of ours; absent if there is none, or if no page may have the name.
    ///
    /// # Errors
    ///
    /// What keeps the file from being read.
    pub fn read_wiki_file(&self, file: &str) -> Result<Option<String>, Error> {
        let is_known = is_page_file(file) || RESERVED.contains(&file);
        if is_known { self.read_text(&path_of(file)) } else { Ok(None) }
    }

    /// Writes a page. For use under the wiki's lock; the index is made anew when it is asked for next.
    ///
    /// # Errors
    ///
    /// [`Error::Reserved`] or [`Error::NoPageName`] for a name that no page may have, or what keeps the file from being written.
    pub fn write_page(&self, file: &str, page: &Page) -> Result<(), Error> {
        check_page_file(file)?;
        self.replace_text(&path_of(file), &page.render())
    }

    /// Removes a page. For use under the wiki's lock.
    ///
    /// # Errors
    ///
    /// As [`write_page`](Self::write_page).
    pub fn remove_page(&self, file: &str) -> Result<(), Error> {
        check_page_file(file)?;
        self.remove(&path_of(file))
    }

    /// What the wiki holds. The pages are only read if the index does not know all of them as they are.
    pub fn wiki_overview(&self, now: Timestamp) -> Overview {
        self.indexed_overview().unwrap_or_else(|| overview(&self.wiki_pages(), now))
    }

    /// The same, and writes the index if it was not up to date. For use under the wiki's lock.
    ///
    /// # Errors
    ///
    /// What keeps the index from being written.
    pub fn refresh_index(&self, now: Timestamp) -> Result<Overview, Error> {
        if let Some(indexed) = self.indexed_overview() {
            return Ok(indexed);
        }
        self.rebuild_index(now)
    }

    /// Makes the index anew: a time of change has too few digits to tell two changes in a row apart. For use under the project's
    /// lock.
    ///
    /// # Errors
    ///
    /// What keeps the index from being written.
    pub fn rebuild_index(&self, now: Timestamp) -> Result<Overview, Error> {
        let overview = overview(&self.wiki_pages(), now);
        if overview.pages > 0 || self.exists(&path_of(INDEX)) {
            self.replace_text(&path_of(INDEX), &overview.index)?;
        }
        Ok(overview)
    }

    /// Whether the index is up to date: lists the folder and reads no page.
    pub fn has_fresh_index(&self) -> bool {
        self.indexed_overview().is_some()
    }

    /// What the index says, if it names exactly the pages that there are and none has changed after it.
    fn indexed_overview(&self) -> Option<Overview> {
        let written = self.modified(&path_of(INDEX))?;
        let files = self.page_files();
        if files.iter().any(|(_, modified)| *modified > written) {
            return None;
        }
        let index = self.read_text(&path_of(INDEX)).ok().flatten()?;
        let mut named: Vec<_> = index.lines().filter_map(file_of_line).collect();
        named.sort_unstable();
        if !named.iter().copied().eq(files.iter().map(|(file, _)| file.as_str())) {
            return None;
        }
        let updated = index.lines().find_map(|line| line.strip_prefix("> ")?.rsplit_once("Last updated: "));
        let updated = updated.and_then(|(_, time)| time.trim().parse().ok());
        let categories = index.lines().filter_map(|line| line.strip_prefix("## ")).map(str::to_owned).collect();
        Some(Overview { pages: files.len(), categories, updated, index })
    }

    /// File names of what may be pages, sorted, each with the time of its last change.
    fn page_files(&self) -> Vec<(String, Timestamp)> {
        let mut files: Vec<_> = self
            .entries(Path::new(FOLDER), MAX_PAGES)
            .into_iter()
            .filter(|entry| entry.kind == Kind::File && is_page_file(&entry.name))
            .map(|entry| (entry.name, entry.modified))
            .collect();
        files.sort_unstable();
        files
    }

    /// Adds an entry to the log, whose oldest ones make room. For use under the wiki's lock.
    ///
    /// # Errors
    ///
    /// What keeps the log from being read or written.
    pub fn append_wiki_log(&self, operation: &str, pages: &[&str], summary: &str, now: Timestamp) -> Result<(), Error> {
        let path = path_of(LOG);
        let known = self.read_text(&path)?.unwrap_or_else(|| LOG_TITLE.to_owned());
        let pages = if pages.is_empty() { "none".to_owned() } else { pages.join(", ") };
        let entry =
            format!("\n## [{now}] {operation}\n- **Pages:** {pages}\n- **Summary:** {}\n", one_line(summary, 400));
        let kept = trimmed_log(&known, MAX_LOG_BYTES.saturating_sub(entry.len())).unwrap_or(known);
        self.replace_text(&path, &(kept + &entry))
    }

    /// Writes the page about the project's surroundings anew if the memory was scanned after it. Says whether it did. For use
    /// under the wiki's lock.
    ///
    /// # Errors
    ///
    /// What keeps the page from being written.
    pub fn feed_environment(&self, memory: &ProjectMemory) -> Result<bool, Error> {
        let Some(page) = environment_page(memory).filter(|_| self.wants_environment(memory)) else { return Ok(false) };
        self.replace_text(&path_of(ENVIRONMENT), &page.render())?;
        Ok(true)
    }

    /// Whether the memory was scanned after the page about the surroundings was written.
    pub fn wants_environment(&self, memory: &ProjectMemory) -> bool {
        let written = self.read_page(ENVIRONMENT).and_then(|page| page.updated());
        memory.is_complete() && memory.last_scanned() > written
    }

    /// Leaves a page about a session that ends now, once. For use under the wiki's lock.
    ///
    /// # Errors
    ///
    /// What keeps the page or the log from being written.
    pub fn capture_session(&self, session: &SessionId, now: Timestamp) -> Result<(), Error> {
        let page = capture_page(session, now);
        let date = &now.to_string()[..10];
        let end: String = session.as_str().chars().rev().take(8).collect::<Vec<_>>().into_iter().rev().collect();
        let end = end.to_ascii_lowercase().replace('_', "-");
        let short = format!("{CAPTURE_BEFORE}{date}-{end}.md");
        let long = format!("{CAPTURE_BEFORE}{date}-{end}-{:08x}.md", hash(session.as_str()));
        for file in [&short, &long] {
            match self.read_page(file) {
                Some(known) if known.body.contains(&capture_key(session)) => return Ok(()),
                // Another session with the same end of its id, or somebody's own page.
                Some(_) => {}
                None if self.exists(&path_of(file)) => {}
                None => {
                    self.write_page(file, &page)?;
                    self.append_wiki_log("add", &[file], "session log", now)?;
                    self.drop_old_captures();
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Removes the oldest pages about sessions in which nobody has written.
    fn drop_old_captures(&self) {
        let captures: Vec<_> = self
            .page_files()
            .into_iter()
            .map(|(file, _)| file)
            .filter(|file| file.starts_with(CAPTURE_BEFORE))
            .collect();
        let surplus = captures.len().saturating_sub(MAX_CAPTURES);
        // Their names sort by date.
        for file in &captures[..surplus] {
            let is_untouched = self.read_page(file).is_some_and(|page| {
                let session = page.list("sources").first().and_then(|id| SessionId::parse(id));
                let written = page.text("created").and_then(|time| time.parse().ok());
                session.zip(written).is_some_and(|(session, written)| page == capture_page(&session, written))
            });
            if is_untouched {
                // Best effort: the next end of a session tries again.
                drop(self.remove_page(file));
            }
        }
    }
}

fn is_page_file(file: &str) -> bool {
    check_page_file(file).is_ok()
}

/// Says why no page may have a name.
fn check_page_file(file: &str) -> Result<(), Error> {
    let is_name = !file.starts_with('.') && !file.contains(['/', '\\', '\0']) && file.strip_suffix(".md").is_some();
    if !is_name {
        return Err(Error::NoPageName { name: one_line(file, MAX_SUMMARY_UNITS) });
    }
    if RESERVED.iter().any(|reserved| file.eq_ignore_ascii_case(reserved)) {
        return Err(Error::Reserved { path: path_of(file) });
    }
    Ok(())
}

/// A log without so many of its oldest entries that it fits; absent if it does already.
fn trimmed_log(log: &str, max_bytes: usize) -> Option<String> {
    let excess = log.len().checked_sub(max_bytes).filter(|excess| *excess > 0)?;
    let from = (excess..log.len()).find(|at| log.is_char_boundary(*at) && log[*at..].starts_with("\n## ["));
    Some(format!("{LOG_TITLE}{}", from.map_or("", |from| &log[from..])))
}

fn capture_key(session: &SessionId) -> String {
    format!("<!-- capture: {session} -->")
}

fn capture_page(session: &SessionId, now: Timestamp) -> Page {
    let date = &now.to_string()[..10];
    let mut page = Page::new(&format!("Session log {date}"), "session-log", now);
    page.set_list("tags", &["session-log", "auto-captured"]);
    page.set_list("sources", &[session.as_str()]);
    page.body = format!(
        "\n# Session log {date}\n\nSession `{session}` ended on {date}.\n{}\n\n\
         Move what is worth keeping to a page of its own; this one is removed when it has become old and nobody wrote in it.\n",
        capture_key(session)
    );
    page
}

/// What the memory knows of the project's surroundings, as a page; absent if that is nothing.
fn environment_page(memory: &ProjectMemory) -> Option<Page> {
    let list = |label: &str, names: Vec<String>| {
        (!names.is_empty()).then(|| format!("- {label}: {}", one_line(&names.join(", "), 500)))
    };
    let text = |label: &str, text: Option<&str>| text.map(|text| format!("- {label}: {}", one_line(text, 200)));
    let command = |label, command| text(label, memory.command(command));
    let lines: Vec<_> = [
        list("Languages", memory.languages()),
        list("Frameworks", memory.frameworks()),
        list("Build tools", memory.build_tools()),
        text("Package manager", memory.package_manager()),
        text("Runtime", memory.runtime()),
        command("Build", Command::Build),
        command("Test", Command::Test),
        command("Lint", Command::Lint),
        command("Run", Command::Dev),
    ]
    .into_iter()
    .flatten()
    .collect();
    let scanned = memory.last_scanned().filter(|_| !lines.is_empty())?;
    let mut page = Page::new("Environment", "environment", scanned);
    page.set_list("tags", &["environment", "auto-detected"]);
    page.body = format!("\n# Environment\n\n{}\n", lines.join("\n"));
    Some(page)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        project_memory::{Build, Language, Scan, TechStack},
        testing::{now, plant, session, store},
    };
    use proptest::prelude::*;
    use std::fs;
    use tempfile::TempDir;

    fn page_text(title: &str, category: &str) -> String {
        format!(
            "---\ntitle: \"{title}\"\ntags: [\"one, two\", 'three', four]\ncreated: 2026-01-02T03:04:05.678Z\nupdated: 2026-02-03T04:05:06.789Z\n\
             sources: [\"s0\"]\nlinks: []\ncategory: {category}\nconfidence: medium\nschemaVersion: 1\nmine: x: y\n# odd\n---\n\n# {title}\n\nSome text.\n"
        )
    }

    fn wiki() -> (TempDir, Store) {
        let (folder, store) = store();
        plant(&folder, "wiki/retry-policy.md", page_text("Retry policy", "decision"));
        plant(&folder, "wiki/queue-layout.md", page_text("Queue layout", "architecture"));
        (folder, store)
    }

    fn read(folder: &TempDir, path: &str) -> String {
        fs::read_to_string(folder.path().join(path)).expect("a file")
    }

    #[test]
    fn front_matter_is_understood_and_comes_back() {
        let text = page_text("A \\\"b\\\"", "decision");
        let page = Page::parse(&text.replace('\n', "\r\n")).expect("a page");
        assert_eq!(page.render(), text);
        assert_eq!(page.text("title").as_deref(), Some("A \"b\""));
        assert_eq!(page.list("tags"), ["one, two", "three", "four"]);
        assert_eq!(page.list("links"), [""; 0]);
        assert_eq!(page.list("category"), ["decision"]);
        assert_eq!(page.text("mine").as_deref(), Some("x: y"));
        assert_eq!(page.summary(), "Some text.");
        for text in ["", "# T\n", "---\ntitle: x\n", "--- \n---\n", "---"] {
            assert_eq!(Page::parse(text), None, "{text:?}");
        }
        assert_eq!(Page::parse("---\n---").map(|page| page.category()).as_deref(), Some("reference"));
    }

    #[test]
    fn names_of_pages_are_the_originals() {
        for (title, file) in [
            ("Retry policy", "retry-policy.md"),
            ("  C++ / Rust!  ", "c-rust.md"),
            ("인증 흐름", "page-56a1850f.md"),
            ("인증 flow", "flow.md"),
        ] {
            assert_eq!(slug(title), file);
        }
        assert_eq!(slug(&"ab ".repeat(60)).len(), 64 + ".md".len());
    }

    #[test]
    fn the_index_is_made_when_it_does_not_know_every_page() {
        let (folder, store) = wiki();
        assert!(!store.has_fresh_index());
        let overview = store.refresh_index(now()).expect("a write");
        assert_eq!((overview.pages, overview.categories.join(" ").as_str()), (2, "architecture decision"));
        let index = "# Wiki Index\n\n> 2 pages | Last updated: 2026-02-03T04:05:06.789Z\n\n## architecture\n\n\
            - [Queue layout](queue-layout.md) — Some text.\n\n## decision\n\n- [Retry policy](retry-policy.md) — Some text.\n";
        assert_eq!(read(&folder, "wiki/index.md"), index);
        assert!(store.has_fresh_index());
        assert_eq!(store.wiki_overview(now()), overview, "from the index alone");
        fs::remove_file(folder.path().join("wiki/retry-policy.md")).expect("removed");
        assert_eq!(store.wiki_overview(now()).pages, 1);
        plant(&folder, "wiki/broken.md", "no page");
        assert_eq!(store.wiki_overview(now()).pages, 1);
    }

    #[test]
    fn without_pages_nothing_is_made() {
        let (folder, store) = store();
        assert!(!store.has_wiki());
        assert_eq!(store.refresh_index(now()).expect("nothing").pages, 0);
        fs::create_dir(folder.path().join("wiki")).expect("a folder");
        assert_eq!(store.refresh_index(now()).expect("nothing").pages, 0);
        assert_eq!(fs::read_dir(folder.path().join("wiki")).expect("a folder").count(), 0);
    }

    #[test]
    fn only_pages_are_written_or_removed() {
        let (_folder, store) = wiki();
        let page = Page::new("New", "pattern", now());
        store.write_page("new.md", &page).expect("a write");
        assert_eq!(store.read_page("new.md"), Some(page.clone()));
        store.remove_page("new.md").expect("removed");
        for file in ["index.md", "LOG.md", "environment.md", "../x.md", "a/b.md", "a\\b.md", ".x.md", "x.txt", ""] {
            for done in [store.write_page(file, &page), store.remove_page(file)] {
                let is_reserved = RESERVED.contains(&file.to_lowercase().as_str());
                match done {
                    Err(Error::Reserved { .. }) if is_reserved => {}
                    Err(Error::NoPageName { .. }) if !is_reserved => {}
                    other => panic!("{file}: {other:?}"),
                }
            }
        }
    }

    #[test]
    fn the_log_forgets_its_oldest_entries() {
        let (folder, store) = store();
        for at in 0..3 {
            store.append_wiki_log("add", &["a.md"], &format!("entry {at}\n## x"), now()).expect("a write");
        }
        let log = read(&folder, "wiki/log.md");
        assert!(log.starts_with(
            "# Wiki Log\n\n## [2026-11-30T14:28:00.000Z] add\n- **Pages:** a.md\n- **Summary:** entry 0 ## x\n"
        ));
        plant(&folder, "wiki/log.md", LOG_TITLE.to_owned() + &"\n## [t] add\n- **Summary:** old\n".repeat(5_000));
        store.append_wiki_log("add", &[], "newest", now()).expect("a write");
        let log = read(&folder, "wiki/log.md");
        assert!(log.len() <= MAX_LOG_BYTES && log.starts_with("# Wiki Log\n\n## [") && log.ends_with("newest\n"));
    }

    #[test]
    fn a_session_is_captured_once_and_old_captures_go_unless_somebody_wrote_in_them() {
        let (folder, store) = wiki();
        let ids = ["s1", "s1", "11111111-aaaaAAAA", "22222222-aaaaAAAA"];
        for id in ids {
            store.capture_session(&session(id), now()).expect("a write");
        }
        let captures = || {
            let pages = store.wiki_pages().into_iter().map(|(file, _)| file);
            pages.filter(|file| file.starts_with(CAPTURE_BEFORE)).collect::<Vec<_>>()
        };
        assert_eq!(captures().len(), 3, "{:?}", captures());
        let text = read(&folder, "wiki/session-log-2026-11-30-s1.md");
        assert!(text.contains("category: session-log") && text.contains("Session `s1` ended"));
        plant(&folder, "wiki/session-log-2026-11-30-s1.md", text + "My own finding.\n");
        for day in 1..=60 {
            store.capture_session(&session(&format!("t{day}")), now().plus_ms(day * 86_400_000)).expect("a write");
        }
        let left = captures();
        assert_eq!(left.len(), MAX_CAPTURES + 1, "{left:?}");
        assert!(left.contains(&"session-log-2026-11-30-s1.md".to_owned()));
        assert!(left.last().is_some_and(|file| file.ends_with("t60.md")));
    }

    #[test]
    fn surroundings_are_written_when_they_were_found_anew() {
        let (folder, store) = wiki();
        let mut memory = ProjectMemory::new(Some("/p"));
        assert!(!store.feed_environment(&memory).expect("nothing known"));
        let language = Language { name: "Rust".into(), ..Language::default() };
        let tech_stack = TechStack { languages: vec![language], ..TechStack::default() };
        let build = Build { test_command: Some("cargo test".into()), ..Build::default() };
        memory.apply_scan(&Scan { tech_stack, build, ..Scan::default() }, "/p", now());
        assert!(store.feed_environment(&memory).expect("a write"));
        let text = read(&folder, "wiki/environment.md");
        assert!(text.contains("- Languages: Rust\n- Test: cargo test\n"), "{text}");
        assert!(!store.feed_environment(&memory).expect("as it was"));
        assert_eq!(store.wiki_overview(now()).pages, 2, "it is no page");
    }

    proptest! {
        #[test]
        fn any_page_comes_back(front in proptest::collection::vec("[a-zA-Z:\\[\\]\"', 가]{0,12}[a-z가]", 0..6), body in "([a-z가]|\n|---\n|# ){0,12}") {
            let front = front.join("\n") + if front.is_empty() { "" } else { "\n" };
            let text = format!("---\n{front}---\n{body}");
            let page = Page::parse(&text).expect("a page");
            prop_assert_eq!(page.render(), text);
        }

        #[test]
        fn whatever_is_set_is_read(title in "\\PC{1,20}", tags in proptest::collection::vec("[a-z,\"'\\\\\n가]{1,8}", 0..5)) {
            let mut page = Page::new("x", "decision", now());
            let tags: Vec<_> = tags.iter().map(String::as_str).collect();
            page.set_text("title", &title);
            page.set_list("tags", &tags);
            let read = Page::parse(&page.render()).expect("a page");
            prop_assert_eq!(&read, &page);
            prop_assert_eq!(read.text("title"), Some(title));
            prop_assert_eq!(read.list("tags"), tags);
        }
    }
}
