//! Whether the pages for people hold together: the book in `docs/`, the READMEs, and what they say about commands, guests and
//! keywords.
//!
//! Only tests. What can be read off the sources is compared with them by text, so that a command, a guest or a keyword that nobody
//! wrote about fails here, and no page names what is gone. `BLESS=1` rewrites the table of guests.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use serde_json::Value;

/// Folders whose Markdown files are checked, from the top. Every file of the first one is a page of the book.
const FOLDERS: &[&str] = &["docs", "", "tests", "hooks/claude", "hooks/codex", "guests/sdk"];

/// The book's table of contents.
const SUMMARY: &str = "docs/SUMMARY.md";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace is around this package")
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("failed to read `{path}`: {error}"))
}

/// A page, as far as links need it.
#[derive(Default)]
struct Page {
    links: Vec<String>,
    anchors: BTreeSet<String>,
    /// Headings and where the texts below them are, up to the next one.
    sections: Vec<(String, Range<usize>)>,
    /// Code, in a line and in blocks.
    code: Vec<String>,
}

impl Page {
    fn of(text: &str) -> Self {
        let mut page = Self::default();
        let mut heading: Option<String> = None;
        let mut in_code = false;
        for (event, range) in Parser::new_ext(text, Options::ENABLE_TABLES).into_offset_iter() {
            match event {
                Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                    page.links.push(dest_url.into_string());
                }
                Event::Start(Tag::Heading { .. }) => {
                    if let Some((_, section)) = page.sections.last_mut() {
                        section.end = range.start;
                    }
                    heading = Some(String::new());
                }
                Event::End(TagEnd::Heading(_)) => {
                    let title = heading.take().unwrap_or_default();
                    page.add_anchor(&title);
                    page.sections.push((title, range.end..text.len()));
                }
                Event::Start(Tag::CodeBlock(_)) => in_code = true,
                Event::End(TagEnd::CodeBlock) => in_code = false,
                Event::Text(code) if in_code => page.code.push(code.into_string()),
                Event::Code(part) | Event::Text(part) if heading.is_some() => {
                    heading = heading.map(|heading| heading + &part);
                }
                Event::Code(code) => page.code.push(code.into_string()),
                _ => {}
            }
        }
        page
    }

    /// Headings of the same words are told apart by a number, as mdBook and GitHub do it.
    fn add_anchor(&mut self, title: &str) {
        let slug = slug(title);
        let numbered = (1..).map(|number| format!("{slug}-{number}"));
        let anchor = std::iter::once(slug.clone()).chain(numbered).find(|anchor| !self.anchors.contains(anchor));
        self.anchors.extend(anchor);
    }

    fn section<'a>(&self, title: &str, text: &'a str) -> Option<&'a str> {
        self.sections.iter().find(|(found, _)| found == title).map(|(_, range)| &text[range.clone()])
    }
}

/// A heading's anchor: its letters and digits in lower case, with `-` for spaces.
fn slug(title: &str) -> String {
    let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
    title.trim().to_lowercase().chars().filter(kept).map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// The pages of a folder, by path from the top.
fn pages_in(folder: &str) -> impl Iterator<Item = (String, String)> {
    let entries =
        fs::read_dir(root().join(folder)).unwrap_or_else(|error| panic!("failed to list `{folder}`: {error}"));
    let mut names: Vec<_> =
        entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8")).collect();
    names.sort_unstable();
    let is_page = |name: &String| Path::new(name).extension().is_some_and(|extension| extension == "md");
    let path = move |name: String| if folder.is_empty() { name } else { format!("{folder}/{name}") };
    names.into_iter().filter(is_page).map(path).map(|path| {
        let text = read(&path);
        (path, text)
    })
}

fn pages() -> BTreeMap<String, String> {
    FOLDERS.iter().flat_map(|folder| pages_in(folder)).collect()
}

/// Where a link leads: a path from the top, and an anchor.
fn target(page: &str, link: &str) -> (String, String) {
    let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
    if path.is_empty() {
        return (page.to_owned(), anchor.to_owned());
    }
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in path.split('/') {
        match part {
            "." | "" => {}
            ".." if parts.pop().is_some() => {}
            part => parts.push(part),
        }
    }
    (parts.join("/"), anchor.to_owned())
}

fn is_elsewhere(link: &str) -> bool {
    link.contains("://") || link.starts_with("mailto:")
}

#[test]
fn every_page_is_in_the_table_of_contents_and_every_entry_is_there() {
    let entries: Vec<_> = Page::of(&read(SUMMARY)).links.iter().map(|link| target(SUMMARY, link).0).collect();
    let named: BTreeSet<_> = entries.iter().cloned().collect();
    assert_eq!(named.len(), entries.len(), "an entry is there twice");
    let there: BTreeSet<_> = pages_in("docs").map(|(path, _)| path).filter(|path| path != SUMMARY).collect();
    assert_eq!(named, there, "left: {SUMMARY}, right: the pages in docs/");
}

#[test]
fn every_link_and_anchor_leads_somewhere() {
    let pages = pages();
    let mut broken = Vec::new();
    for (page, text) in &pages {
        for link in Page::of(text).links.into_iter().filter(|link| !is_elsewhere(link)) {
            let (path, anchor) = target(page, &link);
            let leads = match pages.get(&path) {
                Some(text) => anchor.is_empty() || Page::of(text).anchors.contains(&anchor),
                None => anchor.is_empty() && root().join(&path).exists(),
            };
            // What the book is made from is all that it can show.
            let leaves_book = page.starts_with("docs/") && !path.starts_with("docs/");
            if !leads || leaves_book {
                broken.push(format!("{page}: {link}"));
            }
        }
    }
    assert!(broken.is_empty(), "links that lead nowhere, or out of the book: {broken:#?}");
}

/// The commands of an `enum Command` in a source of the command line, as they are typed.
fn commands_in(source: &str) -> Vec<String> {
    let (_, body) = source.split_once("enum Command {\n").expect("the enum of commands");
    let variants = body.lines().take_while(|line| *line != "}").filter_map(|line| line.strip_prefix("    "));
    let names = variants.filter(|line| line.starts_with(|c: char| c.is_ascii_uppercase()));
    names.map(|line| kebab(line.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default())).collect()
}

/// `session-start` for `SessionStart`.
fn kebab(name: &str) -> String {
    let mut kebab = String::new();
    for c in name.chars() {
        if c.is_ascii_uppercase() && !kebab.is_empty() {
            kebab.push('-');
        }
        kebab.push(c.to_ascii_lowercase());
    }
    kebab
}

/// `SessionStart` for `session-start`.
fn pascal(kebab: &str) -> String {
    let capital = |part: &str| part[..1].to_ascii_uppercase() + &part[1..];
    kebab.split('-').filter(|part| !part.is_empty()).map(capital).collect()
}

#[test]
fn every_command_is_on_its_page() {
    let page = read("docs/commands.md");
    let commands = commands_in(&read("host/src/cli.rs"));
    assert!(commands.len() > 5, "the command line has another form now");
    let mut missing = Vec::new();
    for command in commands {
        let below = fs::read_to_string(root().join(format!("host/src/cli/{command}.rs"))).unwrap_or_default();
        let below = if below.contains("enum Command {\n") { commands_in(&below) } else { Vec::new() };
        let all = std::iter::once(command.clone()).chain(below.iter().map(|below| format!("{command} {below}")));
        missing.extend(all.filter(|command| !page.contains(&format!("`omc-host {command}"))));
    }
    assert!(missing.is_empty(), "not in docs/commands.md: {missing:?}");
}

#[test]
fn no_page_names_a_command_that_is_not_there() {
    let mut known = commands_in(&read("host/src/cli.rs"));
    known.push("help".to_owned());
    let mut unknown = Vec::new();
    for (path, text) in pages() {
        for code in Page::of(&text).code {
            for (_, after) in code.match_indices("omc-host ").map(|(at, found)| code.split_at(at + found.len())) {
                let end = after.find(|c: char| !(c.is_ascii_lowercase() || c == '-')).unwrap_or(after.len());
                let command = &after[..end];
                if command.starts_with(|c: char| c.is_ascii_lowercase()) && !known.iter().any(|known| known == command)
                {
                    unknown.push(format!("{path}: omc-host {command}"));
                }
            }
        }
    }
    assert!(unknown.is_empty(), "no such commands: {unknown:#?}");
}

/// The manifests of the first-party guests, by name.
fn manifests() -> BTreeMap<String, Value> {
    let mut manifests = BTreeMap::new();
    for entry in fs::read_dir(root().join("guests")).expect("the guests") {
        let folder: PathBuf = entry.expect("an entry").path();
        let Ok(source) = fs::read_to_string(folder.join("src/lib.rs")) else { continue };
        // The SDK shows the macro in its documentation, a guest starts a line with it.
        let Some((_, rest)) = source.split_once("\nomc_guest::export!(") else { continue };
        let manifest = rest.split_once('{').and_then(|(_, rest)| rest.split_once("\n});"));
        let (manifest, _) = manifest.unwrap_or_else(|| panic!("no manifest in `{}`", folder.display()));
        let name = folder.file_name().and_then(|name| name.to_str()).expect("UTF-8").to_owned();
        manifests.insert(name, serde_json::from_str(&format!("{{{manifest}}}")).expect("a manifest is JSON"));
    }
    assert!(manifests.len() > 15, "guests have another form now");
    manifests
}

fn texts(value: &Value) -> impl Iterator<Item = &str> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str)
}

/// The rows of the table of guests, a subscription each, in the order of the events.
fn guest_rows(manifests: &BTreeMap<String, Value>) -> String {
    let mut rows = String::from("| guest | event | matcher | order | called if |\n|---|---|---|---|---|\n");
    for (name, manifest) in manifests {
        for (at, wanted) in manifest["subscriptions"].as_array().expect("subscriptions").iter().enumerate() {
            let name = if at == 0 { format!("[`{name}`](#{name})") } else { String::new() };
            let event = pascal(wanted["event"].as_str().expect("an event"));
            let code = |text: &str| format!("`{}`", text.replace('|', "\\|"));
            let matcher = wanted["matcher"].as_str().map_or_else(|| "all".to_owned(), code);
            let conditions: Vec<_> = texts(&wanted["when"]).map(code).collect();
            let conditions = match conditions.as_slice() {
                [] if manifest["enabled"] == false => "it is switched on".to_owned(),
                [] => "always".to_owned(),
                conditions => conditions.join(", "),
            };
            let order = &wanted["order"];
            // Writing to a string cannot fail.
            let _ = writeln!(rows, "| {name} | `{event}` | {matcher} | {order} | {conditions} |");
        }
    }
    rows
}

#[test]
fn every_guest_has_its_section_with_its_events_and_variables() {
    const PAGE: &str = "docs/first-party.md";
    const BEGIN: &str = "<!-- generated: guests -->\n";
    const END: &str = "<!-- end -->";
    let manifests = manifests();
    let mut text = read(PAGE);
    let start = text.find(BEGIN).expect("the table of guests") + BEGIN.len();
    let end = start + text[start..].find(END).expect("the end of the table");
    let rows = guest_rows(&manifests);
    if std::env::var_os("BLESS").is_some() && text[start..end] != rows {
        text.replace_range(start..end, &rows);
        fs::write(root().join(PAGE), &text).expect("the page can be written");
    } else {
        assert_eq!(&text[start..end], rows, "BLESS=1 rewrites the table of {PAGE}");
    }

    let page = Page::of(&text);
    let mut missing = Vec::new();
    for (name, manifest) in &manifests {
        let Some(section) = page.section(name, &text) else {
            missing.push(format!("{name}: no section"));
            continue;
        };
        let events = manifest["subscriptions"].as_array().into_iter().flatten();
        let events = events.filter_map(|wanted| wanted["event"].as_str()).map(pascal);
        let requests = manifest["requests"].as_array().into_iter().flatten();
        let variables =
            requests.filter(|request| request["capability"] == "env").flat_map(|request| texts(&request["scope"]));
        let wanted = events.chain(variables.filter(|name| !matches!(*name, "HOME")).map(str::to_owned));
        missing.extend(wanted.filter(|word| !section.contains(word)).map(|word| format!("{name}: {word}")));
    }
    assert!(missing.is_empty(), "not said in {PAGE}: {missing:#?}");
}

#[test]
fn every_spelling_of_a_keyword_is_in_the_book() {
    let page = read("docs/skills.md");
    let source = read("guests/keyword-detector/src/logic/keywords.rs");
    let (_, rows) = source.split_once("ROWS: &[Row] = &[\n").expect("the table of keywords");
    let (rows, _) = rows.split_once("\n];").expect("the end of the table");
    let spellings = ["name(\"", "name_but(\"", "coined(\"", "object(\"", "untidy(\"", "Alias::Text(\"", "name: \""];
    let mut found = 0;
    for start in spellings {
        for spelling in rows.split(start).skip(1).filter_map(|rest| rest.split('"').next()) {
            assert!(page.contains(&format!("`{spelling}`")), "`{spelling}` is not in docs/skills.md");
            found += 1;
        }
    }
    assert!(found > 80, "the table of keywords has another form now: {found}");
}

#[test]
fn anchors_and_links_are_read_as_readers_do() {
    let page = Page::of("# A `b`: c?\n\n## Twice\n\n## Twice\n\n[x](y.md#z) `omc-host log`\n");
    assert_eq!(page.anchors.iter().map(String::as_str).collect::<Vec<_>>(), ["a-b-c", "twice", "twice-1"]);
    assert_eq!(page.links, ["y.md#z"]);
    for (page, link, path, anchor) in [
        ("docs/a.md", "b.md", "docs/b.md", ""),
        ("docs/a.md", "#c", "docs/a.md", "c"),
        ("docs/a.md", "../README.md#d", "README.md", "d"),
        ("README.md", "docs/./e.md", "docs/e.md", ""),
    ] {
        assert_eq!(target(page, link), (path.to_owned(), anchor.to_owned()), "{page} {link}");
    }
}
