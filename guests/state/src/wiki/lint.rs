//! What is wrong with the wiki: links that lead nowhere, pages that nobody finds, that are old, too long or contradict each other.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    Page,
    links::{Titles, names},
    slug,
};
use crate::{Store, Timestamp};

/// Age from which a page may no longer be true, in milliseconds: 30 days.
const STALE_MS: i64 = 30 * 24 * 60 * 60 * 1000;

/// Length of a text from which it should be several pages, in bytes.
const LONG_BYTES: usize = 10_240;

/// Something that is wrong with a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// The page's file name.
    pub file: String,
    /// What it is, such as `broken-ref`.
    pub kind: &'static str,
    /// In words.
    pub text: String,
}

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Wrong.
    Error,
    /// Probably wrong.
    Warning,
    /// To know.
    Info,
}

impl Severity {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Info => "info",
        }
    }
}

impl Store {
    /// What is wrong with the pages, the worst first.
    pub fn lint_wiki(&self, now: Timestamp) -> Vec<Finding> {
        let pages = self.wiki_pages();
        let files: BTreeSet<_> = pages.iter().map(|(file, _)| file.as_str()).collect();
        let titles = Titles::of(pages.iter().map(|(file, page)| (file.as_str(), page)));
        let linked: BTreeSet<_> = pages.iter().flat_map(|(_, page)| targets(page, &titles)).collect();
        let mut findings = Vec::new();
        for (file, page) in &pages {
            let mut find = |severity, kind, text: String| {
                findings.push(Finding { severity, file: file.clone(), kind, text });
            };
            for target in targets(page, &titles).difference(&files.iter().map(|file| (*file).to_owned()).collect()) {
                find(Severity::Error, "broken-ref", format!("it links to `{target}`, which is not there"));
            }
            if page.updated().is_some_and(|updated| now.ms_since(updated) > STALE_MS) {
                find(Severity::Warning, "stale", "nobody changed it for more than 30 days".to_owned());
            }
            if page.body().len() > LONG_BYTES {
                find(Severity::Warning, "oversized", format!("its text is longer than {LONG_BYTES} bytes"));
            }
            if !linked.contains(file) {
                find(Severity::Info, "orphan", "no page links to it".to_owned());
            }
            if page.text("confidence").as_deref() == Some("low") {
                find(Severity::Info, "low-confidence", "its author was not sure".to_owned());
            }
        }
        findings.extend(contradictions(&pages));
        findings.sort_by(|a, b| (a.severity, &a.file, a.kind).cmp(&(b.severity, &b.file, b.kind)));
        findings
    }
}

/// The file names that a page links to, in its text and in its front matter. What the latter says about a link of the text is left
/// out: it was true when the page was written.
fn targets(page: &Page, titles: &Titles) -> BTreeSet<String> {
    let names = names(page.body());
    let others = page.list("links").into_iter().filter(|file| !names.iter().any(|name| slug(name) == *file));
    names.iter().map(|name| titles.file_of(name)).chain(others).collect()
}

/// Pages about the same thing, by the first two words of their names, that are filed or trusted differently.
fn contradictions(pages: &[(String, Page)]) -> Vec<Finding> {
    let mut by_subject: BTreeMap<String, Vec<&(String, Page)>> = BTreeMap::new();
    for page in pages.iter().filter(|(_, page)| page.category() != "session-log") {
        let words: Vec<_> = page.0.trim_end_matches(".md").split('-').take(2).collect();
        if words.len() == 2 {
            by_subject.entry(words.join("-")).or_default().push(page);
        }
    }
    let mut findings = Vec::new();
    for same in by_subject.into_values().filter(|same| same.len() > 1) {
        let others: Vec<_> = same[1..].iter().map(|(file, _)| file.as_str()).collect();
        let differs = |of: &dyn Fn(&Page) -> Option<String>| same.iter().any(|(_, page)| of(page) != of(&same[0].1));
        let mut what = Vec::new();
        if differs(&|page| Some(page.category())) {
            what.push("category");
        }
        if differs(&|page| page.text("confidence")) {
            what.push("confidence");
        }
        if !what.is_empty() {
            let text = format!("its {} differ from that of {}", what.join(" and "), others.join(", "));
            findings.push(Finding {
                severity: Severity::Warning,
                file: same[0].0.clone(),
                kind: "contradiction",
                text,
            });
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{ago, now, plant, store};

    #[test]
    fn each_kind_of_trouble_is_found() {
        let (folder, store) = store();
        let page = |updated: &str, confidence: &str, category: &str, body: &str| {
            format!(
                "---\ntitle: T\nupdated: {updated}\nconfidence: {confidence}\ncategory: {category}\nlinks: []\n---\n\n{body}\n"
            )
        };
        let fresh = ago(1_000);
        plant(&folder, "wiki/good.md", page(&fresh, "medium", "decision", "[[Nowhere]] and [[Queue layout new]]"));
        plant(&folder, "wiki/queue-layout-new.md", page(&fresh, "low", "decision", "[[good]]"));
        plant(
            &folder,
            "wiki/queue-layout-old.md",
            page(&ago(STALE_MS + 1_000), "high", "pattern", &"x".repeat(LONG_BYTES + 1)),
        );
        let findings: Vec<_> = store
            .lint_wiki(now())
            .into_iter()
            .map(|finding| format!("{} {} {}", finding.severity.name(), finding.file, finding.kind))
            .collect();
        assert_eq!(
            findings,
            [
                "error good.md broken-ref",
                "warning queue-layout-new.md contradiction",
                "warning queue-layout-old.md oversized",
                "warning queue-layout-old.md stale",
                "info queue-layout-new.md low-confidence",
                "info queue-layout-old.md orphan",
            ]
        );
        assert_eq!(crate::testing::store().1.lint_wiki(now()), []);
    }
}
