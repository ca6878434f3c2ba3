//! Finding pages, by words and not by meaning: what a title, tags and a text have in common with a question.

use super::Page;
use crate::{Store, one_line};

/// Most words of a question that count.
const MAX_TERMS: usize = 64;

/// A page that has something in common with the question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Match {
    /// The page's file name.
    pub file: String,
    /// Its title.
    pub title: String,
    /// Its category.
    pub category: String,
    /// How much they have in common; more is better.
    pub score: usize,
    /// Text around the first word that they share.
    pub snippet: String,
}

impl Store {
    /// The pages that match, the best first. Tags that are asked for make a page better and keep none out; a category does.
    pub fn search_wiki(&self, query: &str, tags: &[String], category: Option<&str>, limit: usize) -> Vec<Match> {
        let terms = terms(query);
        let mut found: Vec<_> = self
            .wiki_pages()
            .into_iter()
            .filter(|(_, page)| category.is_none_or(|category| page.category() == category))
            .filter_map(|(file, page)| matched(file, &page, query, &terms, tags))
            .collect();
        found.sort_by(|a, b| b.score.cmp(&a.score).then_with(|| a.file.cmp(&b.file)));
        found.truncate(limit);
        found
    }
}

fn matched(file: String, page: &Page, query: &str, terms: &[String], tags: &[String]) -> Option<Match> {
    let title = page.text("title").unwrap_or_else(|| file.trim_end_matches(".md").to_owned());
    let (folded_title, body) = (title.to_lowercase(), page.body().to_lowercase());
    let page_tags: Vec<_> = page.list("tags").iter().map(|tag| tag.to_lowercase()).collect();
    let count = |holds: &dyn Fn(&String) -> bool| terms.iter().filter(|term| holds(term)).count();
    let query = query.trim().to_lowercase();
    let in_title = if !query.is_empty() && folded_title.contains(&query) {
        5
    } else {
        2 * count(&|term| folded_title.contains(term.as_str()))
    };
    let score = 3 * tags.iter().filter(|tag| page_tags.contains(&tag.to_lowercase())).count()
        + 2 * count(&|term| page_tags.iter().any(|tag| tag.contains(term.as_str())))
        + in_title
        + count(&|term| body.contains(term.as_str()));
    (score > 0).then(|| Match { snippet: snippet(&body, page, terms), title, category: page.category(), file, score })
}

/// Text around the first shared word, else the page's first line.
fn snippet(body: &str, page: &Page, terms: &[String]) -> String {
    /// Bytes before and after the beginning of the word.
    const BEFORE: usize = 40;
    const AFTER: usize = 80;
    let Some(at) = terms.iter().filter_map(|term| body.find(term.as_str())).min() else { return page.summary() };
    // Folding may have changed lengths: the text is taken from where the word was found.
    let begin = (0..=at.saturating_sub(BEFORE)).rev().find(|at| body.is_char_boundary(*at)).unwrap_or(0);
    let end = ((at + AFTER).min(body.len())..=body.len()).find(|at| body.is_char_boundary(*at)).unwrap_or(body.len());
    one_line(&body[begin..end], BEFORE + AFTER)
}

/// The words of a question in lower case; of scripts without spaces, single characters and pairs.
fn terms(query: &str) -> Vec<String> {
    let mut terms: Vec<String> = Vec::new();
    for word in query.to_lowercase().split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
        if !word.contains(is_without_spaces) {
            terms.push(word.to_owned());
            continue;
        }
        let letters: Vec<char> = word.chars().collect();
        terms.extend(letters.windows(2).map(|pair| pair.iter().collect()));
        if let [single] = letters[..] {
            terms.push(single.to_string());
        }
    }
    terms.sort_unstable();
    terms.dedup();
    terms.truncate(MAX_TERMS);
    terms
}

/// Chinese, Japanese and Korean letters.
fn is_without_spaces(letter: char) -> bool {
    matches!(letter, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}' | '\u{f900}'..='\u{faff}')
}

#[cfg(test)]
mod tests {
    use crate::testing::{plant, store};

    fn page(title: &str, category: &str, tags: &str, body: &str) -> String {
        format!("---\ntitle: \"{title}\"\ncategory: {category}\ntags: [{tags}]\n---\n\n# {title}\n\n{body}\n")
    }

    #[test]
    fn the_page_with_most_in_common_comes_first() {
        let (folder, store) = store();
        plant(&folder, "wiki/retry.md", page("Retry policy", "decision", "queue", "Three times, then give up."));
        plant(&folder, "wiki/queue.md", page("Queue layout", "architecture", "", "A retry goes to the end."));
        plant(&folder, "wiki/login.md", page("로그인 흐름", "pattern", "인증", "토큰을 확인한다."));
        let files = |query: &str, tags: &[&str], category: Option<&str>, limit| {
            let tags: Vec<_> = tags.iter().map(|tag| (*tag).to_owned()).collect();
            let found = store.search_wiki(query, &tags, category, limit);
            found.into_iter().map(|found| found.file).collect::<Vec<_>>().join(" ")
        };
        for (query, tags, category, limit, found) in [
            ("retry policy", &[][..], None, 20, "retry.md queue.md"),
            ("RETRY", &[], None, 1, "retry.md"),
            ("retry", &[], Some("architecture"), 20, "queue.md"),
            ("end", &["queue"], None, 20, "retry.md queue.md"),
            ("로그인", &[], None, 20, "login.md"),
            ("토큰", &[], None, 20, "login.md"),
            ("kubernetes", &[], None, 20, ""),
            ("", &[], None, 20, ""),
            ("?!", &[], None, 20, ""),
        ] {
            assert_eq!(files(query, tags, category, limit), found, "{query}");
        }
        let found = store.search_wiki("give", &[], None, 1);
        assert_eq!(found[0].snippet, "# retry policy three times, then give up.");
    }

    #[test]
    fn letters_whose_lower_case_is_longer_break_nothing() {
        let (folder, store) = store();
        plant(&folder, "wiki/a.md", page("İ", "decision", "", &"İ漢😀word".repeat(50)));
        assert_eq!(store.search_wiki("word 漢", &[], None, 5).len(), 1);
    }
}
