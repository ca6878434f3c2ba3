//! The project's wiki: pages that agents write for those after them.

use std::fmt;

use omc_state::Area;
use omc_state::wiki::{CATEGORIES, CONFIDENCES, Knowledge};
use serde::Serialize;

use super::{Error, MAX_SHOWN_UNITS, Project, Result, check_text, now};

/// Longest title, text, tag and source, in UTF-16 units, and most tags and sources: the original's limits.
const MAX_TITLE_UNITS: usize = 200;
const MAX_CONTENT_UNITS: usize = 50_000;
const MAX_TAG_UNITS: usize = 50;
const MAX_SOURCE_UNITS: usize = 100;
const MAX_TAGS: usize = 20;
const MAX_SOURCES: usize = 10;

/// Longest question, in UTF-16 units: more words than count.
const MAX_QUERY_UNITS: usize = 1_000;

/// Most matches that can be asked for, and as many as come unasked: the original's numbers.
const MAX_MATCHES: usize = 50;
const MATCHES: usize = 20;

/// What is known about something.
#[derive(Debug, Clone, Default)]
#[expect(missing_docs, reason = "the members of a page, by their names there")]
pub struct Contribution {
    pub title: String,
    pub content: String,
    pub tags: Vec<String>,
    pub sources: Vec<String>,
    pub category: Option<String>,
    pub confidence: Option<String>,
}

impl Contribution {
    fn check(&self) -> Result<()> {
        check_text("title", &self.title, MAX_TITLE_UNITS)?;
        check_text("content", &self.content, MAX_CONTENT_UNITS)?;
        check_items("tags", &self.tags, MAX_TAGS, MAX_TAG_UNITS)?;
        check_items("sources", &self.sources, MAX_SOURCES, MAX_SOURCE_UNITS)?;
        check_word("category", self.category.as_deref(), &CATEGORIES)?;
        check_word("confidence", self.confidence.as_deref(), &CONFIDENCES)
    }
}

fn check_items(argument: &'static str, items: &[String], max: usize, max_units: usize) -> Result<()> {
    if items.len() > max {
        return Err(Error::argument(argument, format!("there are {}, and {max} is the limit", items.len())));
    }
    items.iter().try_for_each(|item| check_text(argument, item, max_units))
}

fn check_word(argument: &'static str, word: Option<&str>, known: &[&str]) -> Result<()> {
    match word {
        Some(word) if !known.contains(&word) => {
            Err(Error::argument(argument, format!("it is one of {}", known.join(", "))))
        }
        _ => Ok(()),
    }
}

/// A page that was written or removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PageDone {
    /// The page's file name.
    pub page: String,
    #[serde(skip)]
    done: &'static str,
}

impl fmt::Display for PageDone {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}", self.done, self.page)
    }
}

/// A page in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PageEntry {
    /// Its file name.
    pub page: String,
    /// Its title.
    pub title: String,
    /// Its category.
    pub category: String,
    /// When it was changed last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated: Option<String>,
    /// How much it has in common with a question.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score: Option<usize>,
    /// Where it has that in common.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snippet: Option<String>,
}

/// Pages that were found or listed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Pages {
    /// The pages.
    pub pages: Vec<PageEntry>,
    #[serde(skip)]
    none: &'static str,
}

impl fmt::Display for Pages {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.pages.is_empty() {
            return formatter.write_str(self.none);
        }
        for (at, page) in self.pages.iter().enumerate() {
            let line_end = if at > 0 { "\n" } else { "" };
            write!(formatter, "{line_end}{}: {} [{}]", page.page, page.title, page.category)?;
            if let Some(updated) = &page.updated {
                write!(formatter, ", updated {updated}")?;
            }
            if let Some(snippet) = &page.snippet {
                write!(formatter, "\n  {snippet}")?;
            }
        }
        Ok(())
    }
}

/// The text of a page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PageText {
    /// Its file name.
    pub page: String,
    /// Front matter and Markdown.
    pub text: String,
}

impl fmt::Display for PageText {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.text.trim_end())
    }
}

/// Something that is wrong with a page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "as in `omc_state::wiki::Finding`")]
pub struct LintFinding {
    pub severity: &'static str,
    pub page: String,
    pub kind: &'static str,
    pub text: String,
}

/// What is wrong with the wiki.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Lint {
    /// The findings, the worst first.
    pub findings: Vec<LintFinding>,
}

impl fmt::Display for Lint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.findings.is_empty() {
            return formatter.write_str("the wiki is in order");
        }
        let line = |finding: &LintFinding| {
            format!("{} {}: {} ({})", finding.severity, finding.page, finding.text, finding.kind)
        };
        formatter.write_str(&self.findings.iter().map(line).collect::<Vec<_>>().join("\n"))
    }
}

/// An index that was made anew.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Refreshed {
    /// How many pages it names.
    pub pages: usize,
    /// Their categories.
    pub categories: Vec<String>,
}

impl fmt::Display for Refreshed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "the index names {} pages", self.pages)
    }
}

impl Project {
    /// Keeps knowledge: on a new page, or below what the page of this title says. `only_new` refuses the latter.
    ///
    /// # Errors
    ///
    /// An argument that cannot be used, or what keeps a file from being written.
    pub fn contribute(&self, contribution: &Contribution, only_new: bool) -> Result<PageDone> {
        contribution.check()?;
        let knowledge = Knowledge {
            title: contribution.title.trim(),
            content: &contribution.content,
            tags: &contribution.tags,
            sources: &contribution.sources,
            category: contribution.category.as_deref(),
            confidence: contribution.confidence.as_deref(),
        };
        let ingested = self.writable()?.ingest(&self.locker(), &knowledge, only_new, now())?;
        Ok(PageDone { page: ingested.file, done: if ingested.is_new { "added" } else { "extended" } })
    }

    /// The pages that have most in common with a question. Nothing is written.
    ///
    /// # Errors
    ///
    /// An argument that cannot be used.
    pub fn query_wiki(
        &self,
        query: &str,
        tags: &[String],
        category: Option<&str>,
        limit: Option<usize>,
    ) -> Result<Pages> {
        check_text("query", query, MAX_QUERY_UNITS)?;
        check_items("tags", tags, MAX_TAGS, MAX_TAG_UNITS)?;
        check_word("category", category, &CATEGORIES)?;
        let limit = limit.unwrap_or(MATCHES);
        if !(1..=MAX_MATCHES).contains(&limit) {
            return Err(Error::argument("limit", format!("it is a number from 1 to {MAX_MATCHES}")));
        }
        let found = self.store.search_wiki(query, tags, category, limit);
        let pages = found.into_iter().map(|found| PageEntry {
            page: found.file,
            title: omc_state::one_line(&found.title, MAX_TITLE_UNITS),
            category: omc_state::one_line(&found.category, MAX_SHOWN_UNITS),
            updated: None,
            score: Some(found.score),
            snippet: Some(found.snippet),
        });
        Ok(Pages { pages: pages.collect(), none: "no page has anything in common with that" })
    }

    /// All pages.
    pub fn list_wiki(&self) -> Pages {
        let pages = self.store.wiki_pages().into_iter().map(|(file, page)| PageEntry {
            title: omc_state::one_line(&page.text("title").unwrap_or_else(|| file.clone()), MAX_TITLE_UNITS),
            category: omc_state::one_line(&page.category(), MAX_SHOWN_UNITS),
            updated: page.updated().map(|time| time.to_string()),
            page: file,
            score: None,
            snippet: None,
        });
        Pages { pages: pages.collect(), none: "the wiki has no pages yet" }
    }

    /// The text of a page, of the index or of the log. A page is also found by its title, as links name it.
    ///
    /// # Errors
    ///
    /// [`Error::NoPage`], or what keeps the file from being read.
    pub fn read_wiki(&self, page: &str) -> Result<PageText> {
        let mut file = file_name(page);
        let mut text = self.store.read_wiki_file(&file)?;
        if text.is_none()
            && let Some(linked) = self.store.linked_page(page)
        {
            text = self.store.read_wiki_file(&linked)?;
            file = linked;
        }
        text.map(|text| PageText { page: file, text }).ok_or_else(|| no_page(page))
    }

    /// Removes a page. Index and log stay.
    ///
    /// # Errors
    ///
    /// [`Error::NoPage`], or what keeps the file from being removed.
    pub fn delete_wiki(&self, page: &str) -> Result<PageDone> {
        let file = file_name(page);
        if !self.store.has_wiki() || !self.store.delete_page(&self.locker(), &file, now())? {
            return Err(no_page(page));
        }
        Ok(PageDone { page: file, done: "removed" })
    }

    /// What is wrong with the wiki.
    pub fn lint_wiki(&self) -> Lint {
        let findings = self.store.lint_wiki(now()).into_iter().map(|finding| LintFinding {
            severity: finding.severity.name(),
            page: finding.file,
            kind: finding.kind,
            text: finding.text,
        });
        Lint { findings: findings.collect() }
    }

    /// Makes the index anew, and the page about the project's surroundings where they are known.
    ///
    /// # Errors
    ///
    /// What keeps a file from being written.
    pub fn refresh_wiki(&self) -> Result<Refreshed> {
        if !self.store.has_wiki() {
            return Ok(Refreshed { pages: 0, categories: Vec::new() });
        }
        let memory = self.store.read_memory()?;
        let overview = self.writable()?.locked_in(&self.locker(), Area::Wiki, |store| {
            if let Some(memory) = &memory {
                store.feed_environment(memory)?;
            }
            store.rebuild_index(now())
        })?;
        Ok(Refreshed { pages: overview.pages, categories: overview.categories })
    }
}

/// The file of a page, whose name people give with its ending or without.
fn file_name(page: &str) -> String {
    format!("{}.md", page.strip_suffix(".md").unwrap_or(page))
}

fn no_page(page: &str) -> Error {
    Error::NoPage(omc_state::one_line(page, MAX_SHOWN_UNITS))
}
