//! Links between pages: `[[Title]]` in a text means the page of that title, whatever its file is called.
//!
//! Where there is no page of the title, a link means the file that a page of the title would get.

use std::collections::BTreeMap;

use super::{Page, folded, slug};
use crate::Store;

/// The names that a text links to, in its order, each once.
pub(super) fn names(text: &str) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for piece in text.split("[[").skip(1) {
        let Some((name, _)) = piece.split_once("]]") else { continue };
        if !name.trim().is_empty() && !name.contains('\n') && !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// The files of pages by their titles.
pub(super) struct Titles(BTreeMap<String, String>);

impl Titles {
    /// Of two pages with the same title the one counts whose file is named after it.
    pub(super) fn of<'a>(pages: impl IntoIterator<Item = (&'a str, &'a Page)>) -> Self {
        let mut titles = BTreeMap::new();
        for (file, page) in pages {
            let Some(title) = page.text("title") else { continue };
            if slug(&title) == file {
                titles.insert(folded(&title), file.to_owned());
            } else {
                titles.entry(folded(&title)).or_insert_with(|| file.to_owned());
            }
        }
        Self(titles)
    }

    /// The file that a link of this name means; there may be none of that name.
    pub(super) fn file_of(&self, name: &str) -> String {
        self.0.get(&folded(name)).cloned().unwrap_or_else(|| slug(name))
    }
}

impl Store {
    /// The file of the page that a link of this name leads to; absent if it leads nowhere.
    pub fn linked_page(&self, name: &str) -> Option<String> {
        let pages = self.wiki_pages();
        let file = Titles::of(pages.iter().map(|(file, page)| (file.as_str(), page))).file_of(name);
        pages.into_iter().map(|(known, _)| known).find(|known| *known == file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{plant, store};

    #[test]
    fn a_link_leads_to_the_page_of_its_title_else_of_its_file_name() {
        let (folder, store) = store();
        for (file, title) in [
            ("t", "T"),
            ("t-00000000", "Été"),
            ("page-56a1850f", "인증 흐름"),
            ("moved", "Retry policy"),
            ("a", "Twice"),
            ("twice", "Twice"),
            ("z", "twice"),
        ] {
            plant(&folder, &format!("wiki/{file}.md"), format!("---\ntitle: \"{title}\"\n---\n"));
        }
        plant(&folder, "wiki/no-title.md", "---\n---\n");
        for (name, file) in [
            ("T", Some("t.md")),
            ("ÉTÉ", Some("t-00000000.md")),
            ("인증 흐름", Some("page-56a1850f.md")),
            (" retry  POLICY ", Some("moved.md")),
            ("retry-policy", Some("moved.md")),
            ("Twice", Some("twice.md")),
            ("No title", Some("no-title.md")),
            ("Moved!", Some("moved.md")),
            ("Nowhere", None),
            ("../t", Some("t.md")),
            ("Index", None),
        ] {
            assert_eq!(store.linked_page(name).as_deref(), file, "{name}");
        }
    }

    #[test]
    fn names_are_what_stands_between_two_brackets_on_a_line() {
        let text = "[[A]] [[B c]] [[A]] [[]] [[ ]] [[two\nlines]] [[open";
        assert_eq!(names(text), ["A", "B c"]);
    }
}
