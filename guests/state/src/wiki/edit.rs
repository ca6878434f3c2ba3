//! Writing pages: new ones, and what is added to a page that is there. Nothing that a page says is ever replaced.

use super::links::{Titles, names};
use super::{MAX_TITLE_UNITS, Page, distinct_slug, folded, slug};
use crate::{Area, Error, Locker, Store, Timestamp, one_line};

/// Categories of pages.
pub const CATEGORIES: [&str; 8] =
    ["architecture", "decision", "pattern", "debugging", "environment", "session-log", "reference", "convention"];

/// How sure the author of a page is, the least first.
pub const CONFIDENCES: [&str; 3] = ["low", "medium", "high"];

/// What is known about something, to be kept.
#[derive(Debug, Clone, Copy)]
pub struct Knowledge<'a> {
    /// The page's title, from which its file name is made.
    pub title: &'a str,
    /// Markdown; `[[Title]]` links to another page.
    pub content: &'a str,
    /// Words to find it by.
    pub tags: &'a [String],
    /// Where it comes from.
    pub sources: &'a [String],
    /// One of [`CATEGORIES`]; that of the page, or `reference`, if absent.
    pub category: Option<&'a str>,
    /// One of [`CONFIDENCES`]; that of the page, or `medium`, if absent.
    pub confidence: Option<&'a str>,
}

/// What became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ingested {
    /// The page's file name.
    pub file: String,
    /// Whether the page is new.
    pub is_new: bool,
}

impl Store {
    /// Keeps knowledge: on a new page, or below what the page of this title says already; `only_new` refuses the latter. Index
    /// and log follow, under the wiki's lock.
    ///
    /// # Errors
    ///
    /// [`Error::Exists`] if there must be no such page, [`Error::Reserved`] if its file would be the wiki's own, or what keeps a file
    /// from being read or written.
    pub fn ingest<L: Locker>(
        &self,
        locker: &L,
        knowledge: &Knowledge<'_>,
        only_new: bool,
        now: Timestamp,
    ) -> Result<Ingested, Error> {
        self.locked_in(locker, Area::Wiki, |store| {
            let file = store.file_for(knowledge.title)?;
            super::check_page_file(&file)?;
            let known = store.read_text(&super::path_of(&file))?;
            let is_new = known.is_none();
            if !is_new && only_new {
                return Err(Error::Exists { path: super::path_of(&file) });
            }
            // Somebody's own file without front matter gets one, and loses nothing.
            let mut page = match known.as_deref().map(|text| (Page::parse(text), text)) {
                None => new_page(knowledge, now),
                Some((Some(page), _)) => extended(page, knowledge, now),
                Some((None, text)) => {
                    let mut page = Page::new(knowledge.title, "reference", now);
                    page.set_body(text);
                    extended(page, knowledge, now)
                }
            };
            let pages = store.wiki_pages();
            let others = pages.iter().filter(|(other, _)| *other != file).map(|(file, page)| (file.as_str(), page));
            let titles = Titles::of(others.chain([(file.as_str(), &page)]));
            update_links(&mut page, &titles);
            store.write_page(&file, &page)?;
            let (operation, what) =
                if only_new { ("add", "added") } else { ("ingest", if is_new { "added" } else { "extended" }) };
            store.append_wiki_log(
                operation,
                &[&file],
                &format!("{what}: {}", one_line(knowledge.title, MAX_TITLE_UNITS)),
                now,
            )?;
            store.rebuild_index(now)?;
            Ok(Ingested { file, is_new })
        })
    }

    /// The file of the page with this title. Names of files keep less than titles ("Été" and "T" are both `t.md`), so that the page
    /// of another title may have the first choice. A file that says no title is taken for the page.
    fn file_for(&self, title: &str) -> Result<String, Error> {
        let file = slug(title);
        let page = self.read_text(&super::path_of(&file))?.and_then(|text| Page::parse(&text));
        let known = page.and_then(|page| page.text("title"));
        let is_other = known.is_some_and(|known| folded(&known) != folded(title));
        Ok(if is_other { distinct_slug(title) } else { file })
    }

    /// Removes a page, under the wiki's lock. Says whether there was one.
    ///
    /// # Errors
    ///
    /// [`Error::Reserved`] or [`Error::NoPageName`] for a name that no page may have, or what keeps a file from being removed or
    /// written.
    pub fn delete_page<L: Locker>(&self, locker: &L, file: &str, now: Timestamp) -> Result<bool, Error> {
        self.locked_in(locker, Area::Wiki, |store| {
            let was_there = super::is_page_file(file) && store.exists(&super::path_of(file));
            store.remove_page(file)?;
            if was_there {
                store.append_wiki_log("delete", &[file], "removed", now)?;
                store.rebuild_index(now)?;
            }
            Ok(was_there)
        })
    }
}

fn new_page(knowledge: &Knowledge<'_>, now: Timestamp) -> Page {
    let mut page = Page::new(knowledge.title, knowledge.category.unwrap_or("reference"), now);
    page.set_body(&format!("{}\n{}\n", page.body(), knowledge.content.trim()));
    if let Some(confidence) = knowledge.confidence {
        page.set_plain("confidence", confidence);
    }
    join(&mut page, knowledge);
    page
}

fn extended(mut page: Page, knowledge: &Knowledge<'_>, now: Timestamp) -> Page {
    page.set_body(&format!("{}\n\n---\n\n## Update ({now})\n\n{}\n", page.body().trim_end(), knowledge.content.trim()));
    page.set_plain("updated", &now.to_string());
    if let Some(confidence) = knowledge.confidence {
        page.set_plain("confidence", confidence);
    }
    join(&mut page, knowledge);
    page
}

/// Joins tags and sources with those of the page.
fn join(page: &mut Page, knowledge: &Knowledge<'_>) {
    for (member, new) in [("tags", knowledge.tags), ("sources", knowledge.sources)] {
        add(page, member, page.list(member), new);
    }
}

/// Joins the links of a text with those that the page names, which may have been written before a page of the title was there.
fn update_links(page: &mut Page, titles: &Titles) {
    let names = names(page.body());
    let mut known = page.list("links");
    known.retain(|file| !names.iter().any(|name| slug(name) == *file));
    let files: Vec<_> = names.iter().map(|name| titles.file_of(name)).collect();
    add(page, "links", known, &files);
}

/// Sets a list to what is known and what is new.
fn add(page: &mut Page, member: &str, mut items: Vec<String>, new: &[String]) {
    for item in new {
        if !items.contains(item) {
            items.push(item.clone());
        }
    }
    page.set_list(member, &items.iter().map(String::as_str).collect::<Vec<_>>());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        lock::testing::ThreadLocker,
        testing::{now, plant, store},
    };
    use std::{fs, thread};

    fn knowledge<'a>(title: &'a str, content: &'a str) -> Knowledge<'a> {
        Knowledge { title, content, tags: &[], sources: &[], category: None, confidence: None }
    }

    #[test]
    fn what_is_known_is_extended_and_never_replaced() {
        let (folder, store) = store();
        let locker = ThreadLocker::default();
        let tags = ["one".to_owned(), "two".to_owned()];
        let first =
            Knowledge { category: Some("decision"), tags: &tags[..1], ..knowledge("Retry policy", "Three times.") };
        let ingested = store.ingest(&&locker, &first, false, now()).expect("written");
        assert_eq!(ingested, Ingested { file: "retry-policy.md".to_owned(), is_new: true });
        let second = Knowledge {
            category: Some("pattern"),
            confidence: Some("low"),
            tags: &tags,
            ..knowledge("Retry policy", "Now [[Queue layout]] twice.")
        };
        assert!(!store.ingest(&&locker, &second, false, now().plus_ms(1000)).expect("written").is_new);
        assert!(matches!(store.ingest(&&locker, &second, true, now()), Err(Error::Exists { .. })));
        let page = store.read_page("retry-policy.md").expect("a page");
        assert_eq!(
            page.body(),
            "\n# Retry policy\n\nThree times.\n\n---\n\n## Update (2026-11-30T14:28:01.000Z)\n\nNow [[Queue layout]] twice.\n"
        );
        assert_eq!((page.list("tags"), page.category()), (tags.to_vec(), "decision".to_owned()));
        assert_eq!(
            (page.list("links"), page.text("confidence").as_deref()),
            (vec!["queue-layout.md".to_owned()], Some("low"))
        );
        let index = fs::read_to_string(folder.path().join("wiki/index.md")).expect("an index");
        assert!(index.contains("- [Retry policy](retry-policy.md) — Three times."), "{index}");
        assert!(store.delete_page(&&locker, "retry-policy.md", now()).expect("removed"));
        assert!(!store.delete_page(&&locker, "retry-policy.md", now()).expect("nothing"));
        assert!(matches!(store.delete_page(&&locker, "../x.md", now()), Err(Error::NoPageName { .. })));
        for (reserved, title) in [("index.md", "Index"), ("log.md", " LOG! "), ("environment.md", "environment")] {
            assert!(matches!(store.delete_page(&&locker, reserved, now()), Err(Error::Reserved { .. })), "{reserved}");
            for only_new in [false, true] {
                let refused = store.ingest(&&locker, &knowledge(title, "x"), only_new, now()).expect_err(title);
                assert!(refused.to_string().contains(&format!("`wiki/{reserved}` is the wiki's own")), "{refused}");
            }
        }
        assert!(fs::read_to_string(folder.path().join("wiki/log.md")).expect("a log").contains("] delete\n"));
    }

    #[test]
    fn a_file_of_somebody_else_keeps_its_text() {
        let (folder, store) = store();
        plant(&folder, "wiki/own.md", "My own words.\n");
        store.ingest(&&ThreadLocker::default(), &knowledge("Own", "More."), false, now()).expect("written");
        let text = fs::read_to_string(folder.path().join("wiki/own.md")).expect("a file");
        assert!(text.contains("---\nMy own words.\n\n---\n\n## Update ("), "{text}");
    }

    #[test]
    fn titles_that_share_a_file_name_get_pages_of_their_own() {
        let (_folder, store) = store();
        let ingest = |title: &str| {
            store.ingest(&&ThreadLocker::default(), &knowledge(title, &format!("About {title}.")), false, now())
        };
        let file = |title: &str, is_new| {
            let ingested = ingest(title).expect("written");
            assert_eq!(ingested.is_new, is_new, "{title} in {}", ingested.file);
            ingested.file
        };
        assert_eq!(file("T", true), "t.md");
        let other = file("Été", true);
        assert!(other.starts_with("t-") && other.len() == "t-00000000.md".len(), "{other}");
        assert_eq!(file("ÉTÉ", false), other, "the case tells no titles apart");
        assert_eq!(file(" t ", false), "t.md");
        let long = "word ".repeat(20);
        assert_ne!(file(&(long.clone() + "one"), true), file(&(long + "two"), true), "beyond the longest name");
        assert_eq!((file("C", true), file("C++", true) == "c.md"), ("c.md".to_owned(), false));
        assert_eq!(file("Retry policy", true), file("retry-policy", false));
        assert!(!store.read_page("t.md").expect("a page").body().contains("Été"));
    }

    #[test]
    fn links_are_noted_by_the_title_that_they_name() {
        let (folder, store) = store();
        let ingest = |title: &str, content: &str| {
            store.ingest(&&ThreadLocker::default(), &knowledge(title, content), false, now()).expect("written").file
        };
        ingest("T", "[[Été]], [[retry-POLICY]] and [[Nowhere yet]]");
        let links = || store.read_page("t.md").expect("a page").list("links");
        assert_eq!(links(), ["t.md", "retry-policy.md", "nowhere-yet.md"], "nobody knows better yet");
        let other = ingest("Été", "[[été]] is [[T]]");
        assert_eq!(store.read_page(&other).expect("a page").list("links"), [other.clone(), "t.md".to_owned()]);
        plant(&folder, "wiki/old-name.md", "---\ntitle: Retry policy\n---\n");
        let broken = |at: usize| store.lint_wiki(now()).into_iter().filter(|found| found.kind == "broken-ref").nth(at);
        assert!(broken(0).is_some_and(|found| found.text.contains("nowhere-yet.md")) && broken(1).is_none());
        ingest("T", "more");
        assert_eq!(links(), [other.as_str(), "old-name.md", "nowhere-yet.md"]);
    }

    #[test]
    fn what_many_add_at_once_is_all_there() {
        let (_folder, store) = store();
        let locker = ThreadLocker::default();
        thread::scope(|scope| {
            for writer in 0..8 {
                let (store, locker) = (&store, &locker);
                scope.spawn(move || {
                    store
                        .ingest(&locker, &knowledge("Shared", &format!("word{writer}.")), false, now())
                        .expect("written");
                });
            }
        });
        let page = store.read_page("shared.md").expect("a page");
        assert!((0..8).all(|writer| page.body().contains(&format!("word{writer}."))));
    }
}
