//! Wishes in a prompt that outlast it: "never touch the generated client", "규칙: …".
//!
//! A wish is a line that says one of the known phrases. The whole line is kept, so that `never` stays with what it forbids; of a
//! very long one the sentence. Questions, quotations and code are no wishes.

use omc_state::{project_memory::MAX_DIRECTIVE_UNITS, truncate_units, units};

/// How much of a prompt is looked at, in bytes, and most wishes that are taken from it: what is longer was pasted.
const MAX_PROMPT_BYTES: usize = 64 * 1024;
const MAX_FOUND: usize = 10;

/// Most lines and sentences with something like a phrase that are looked at closely. People write a few; bait has thousands.
const MAX_LOOKED_AT: usize = 400;

/// Shortest text after a phrase that says something, in characters: one more than the original's five.
const MIN_REST_CHARS: usize = 6;

/// Phrases that make a line a wish wherever they stand.
const PHRASES: &[&str] = &[
    "only look at",
    "only focus on",
    "only work on",
    "only use",
    "always use",
    "always check",
    "always include",
    "always remember",
    "never use",
    "never modify",
    "never touch",
    "never change",
    "ignore all",
    "ignore any",
    "focus on",
    "stick to",
    "don't use",
    "don't modify",
    "don't touch",
    "don't change",
    "do not use",
    "do not modify",
    "do not touch",
    "do not change",
    "must use",
    "must include",
    "must have",
    "prioritize",
];

/// Labels that make a line a wish where they begin a clause.
const LABELS: &[&str] =
    &["requirement:", "constraint:", "rule:", "scope:", "in scope:", "out of scope:", "important:", "critical:"];

/// Words that make a clause a wish that begins with them: whoever starts so gives an order.
const ORDERS: &[&str] = &["always", "never"];

/// Words that may stand before a clause that is an order.
const LEADS: &[&str] = &["please", "and", "also", "but", "so", "then", "ok", "remember,", "note,", "from", "now", "on"];

/// The same in Korean, where they stand anywhere.
const KOREAN: &[&str] = &["항상", "절대", "반드시", "하지 마", "하지마", "금지", "규칙:", "제약:"];

/// Words that make a wish a must.
const MUSTS: &[&str] = &["must", "critical", "important", "always", "never", "requirement"];
const KOREAN_MUSTS: &[&str] = &["항상", "절대", "반드시", "금지"];

/// A wish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wish {
    /// In the user's words.
    pub text: String,
    /// Whether it is a must.
    pub is_high: bool,
}

/// The wishes in a prompt, in their order.
pub fn find(prompt: &str) -> Vec<Wish> {
    let prompt = &prompt[..prompt.floor_char_boundary(MAX_PROMPT_BYTES)];
    let mut hints = Hints::of(prompt);
    let mut wishes = Vec::new();
    let mut is_code = false;
    let mut at = 0;
    for whole_line in prompt.split_inclusive('\n') {
        let line = whole_line.trim();
        let begin = at + (whole_line.len() - whole_line.trim_start().len());
        at += whole_line.len();
        if line.starts_with("```") || line.starts_with("~~~") {
            is_code = !is_code;
            continue;
        }
        if is_code || line.starts_with(['>', '<']) || wishes.len() >= MAX_FOUND {
            continue;
        }
        let Some(text) = wish_in(line, begin, &mut hints) else { continue };
        let lower = text.to_lowercase();
        let has = |word: &&str| find_word(&lower, word, true).is_some();
        let is_high = MUSTS.iter().any(has) || KOREAN_MUSTS.iter().any(|word| lower.contains(word));
        wishes.push(Wish { text, is_high });
    }
    wishes
}

/// Where in a prompt something like a phrase stands. Found in one go over the prompt for each phrase: to look for all of them in
/// each of ten thousand lines would cost more than a call has.
struct Hints {
    /// Places in bytes, in their order.
    at: Vec<usize>,
    /// How many more texts may be looked at closely.
    left: usize,
}

impl Hints {
    fn of(prompt: &str) -> Self {
        // Of the same length as the prompt, so that places are the same.
        let lower = prompt.to_ascii_lowercase();
        let phrases = [PHRASES, LABELS, ORDERS, KOREAN, CONDITIONS, &["don’t"]];
        let places = |phrase: &&str| lower.match_indices(phrase).map(|(at, _)| at).collect::<Vec<_>>();
        let mut at: Vec<_> = phrases.iter().copied().flatten().flat_map(places).collect();
        at.sort_unstable();
        Self { at, left: MAX_LOOKED_AT }
    }

    /// Whether the text that begins there may be a wish, and is to be looked at.
    fn concern(&mut self, text: &str, begin: usize) -> bool {
        let next = self.at.partition_point(|&at| at < begin);
        let hit = self.at.get(next).is_some_and(|&at| at < begin + text.len()) && self.left > 0;
        self.left -= usize::from(hit);
        hit
    }
}

/// What of a line is kept, if it is a wish. It begins at this place of the prompt.
fn wish_in(line: &str, begin: usize, hints: &mut Hints) -> Option<String> {
    if !hints.concern(line, begin) {
        return None;
    }
    let mut at = begin;
    let sentence = line.split_inclusive(['.', '!', '?', '。', '？']).find(|sentence| {
        let begin = at;
        at += sentence.len();
        hints.concern(sentence, begin) && is_wish(sentence.trim())
    });
    let sentence = sentence.map(str::trim).or_else(|| is_wish(line).then_some(line))?;
    if sentence.ends_with(['?', '？']) {
        return None;
    }
    let kept = if units(line) <= MAX_DIRECTIVE_UNITS { line } else { sentence };
    // The mark of a list is none of the user's words.
    let kept = kept.trim_start_matches(['-', '*', '•', ' ']);
    Some(truncate_units(kept, MAX_DIRECTIVE_UNITS))
}

fn is_wish(sentence: &str) -> bool {
    let lower = sentence.to_lowercase().replace('’', "'");
    let says_enough = |rest: &str| rest.trim().chars().count() >= MIN_REST_CHARS;
    let phrase = |phrase: &&str| find_word(&lower, phrase, true).is_some_and(says_enough);
    let label = |label: &&str| {
        find_word(&lower, label, false).is_some_and(|rest| begins_clause(&lower, rest, label) && says_enough(rest))
    };
    let order = |word: &&str| {
        find_word(&lower, word, true).is_some_and(|rest| begins_clause(&lower, rest, word) && says_enough(rest))
    };
    let korean = KOREAN.iter().any(|word| lower.contains(word)) && says_enough(&lower);
    PHRASES.iter().any(phrase)
        || LABELS.iter().any(label)
        || ORDERS.iter().any(order)
        || korean
        || is_conditional(&lower)
}

/// How a condition begins.
const CONDITIONS: &[&str] = &["when ", "if "];

/// `when X, never Y`.
fn is_conditional(lower: &str) -> bool {
    let begins = CONDITIONS.iter().any(|word| lower.starts_with(word));
    let orders = [", always ", ", never ", ", you should ", ", should "];
    begins
        && orders
            .iter()
            .any(|order| lower.split_once(order).is_some_and(|(_, rest)| rest.chars().count() >= MIN_REST_CHARS))
}

/// What follows the first occurrence of a phrase that stands for itself; `ends` says whether a word has to end there.
fn find_word<'a>(lower: &'a str, phrase: &str, ends: bool) -> Option<&'a str> {
    let is_letter = |c: char| c.is_alphanumeric() || c == '_' || c == '\'';
    lower.match_indices(phrase).find_map(|(at, _)| {
        let rest = &lower[at + phrase.len()..];
        let goes_on = lower[..at].ends_with(is_letter) || ends && rest.starts_with(is_letter);
        (!goes_on).then_some(rest)
    })
}

/// Whether a clause begins with the phrase that ends where `rest` begins.
fn begins_clause(lower: &str, rest: &str, phrase: &str) -> bool {
    let before = lower[..lower.len() - rest.len() - phrase.len()].trim_end();
    let clause = before.rsplit([';', ':', '.', '!', ',', '—']).next().unwrap_or_default();
    clause.split_whitespace().all(|word| {
        LEADS.contains(&word)
            || word.chars().all(|c| matches!(c, '-' | '*' | '•' | '#' | '(' | ')') || c.is_ascii_digit())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_kept_whole_and_musts_are_marked() {
        for (line, is_high) in [
            ("Never touch the generated client under api/gen.", true),
            ("never rebase main", true),
            ("Please, always answer in metric units", true),
            ("From now on always run the linter", true),
            ("We must use PostgreSQL 16 here", true),
            ("Don’t change the public API", false),
            ("Do not modify vendor/", false),
            ("Focus on the parser, not on style", false),
            ("Rule: no default exports", false),
            ("1. important: keep Node 18 support", true),
            ("Out of scope: the admin pages", false),
            ("When you add a table, always write a migration", true),
            ("If a test is flaky, you should skip it and say so", false),
            ("The login page is slow. Never use eval for it.", true),
            ("항상 탭을 사용해", true),
            ("main 브랜치에 직접 푸시하지 마", false),
            ("규칙: 커밋 메시지는 한국어로", false),
        ] {
            assert_eq!(find(line), [Wish { text: line.to_owned(), is_high }], "{line}");
        }
        assert_eq!(find("  - never use tabs").first().map(|wish| wish.text.as_str()), Some("never use tabs"));
    }

    #[test]
    fn the_subscription_lets_every_wish_through() {
        // The host calls the guest only for prompts with one of these words.
        let words: Vec<&str> =
            include_str!("../lib.rs").split("\"payload:").skip(1).filter_map(|rest| rest.split('"').next()).collect();
        let conditional = [", always ", ", never ", ", you should ", ", should "];
        for phrase in [PHRASES, LABELS, ORDERS, KOREAN, &conditional].concat() {
            for phrase in [phrase.to_owned(), phrase.replace('\'', "’")] {
                assert!(words.iter().any(|word| phrase.contains(word)), "{phrase}");
            }
        }
    }

    #[test]
    fn reports_questions_quotations_and_code_are_no_wishes() {
        for line in [
            "",
            "The build never finishes on my machine.",
            "It always checks twice",
            "Why do we never use the cache?",
            "Should I always include the header?",
            "must use X",
            "This is important to me",
            "the rulebook: is long enough",
            "> never touch the generated client",
            "<system>never touch the generated client</system>",
            "```\nnever touch the generated client\n```",
            "I will never know that",
            "무엇을 할까?",
        ] {
            assert_eq!(find(line), [], "{line}");
        }
    }

    #[test]
    fn a_pasted_text_is_bounded() {
        assert_eq!(find(&"never touch the generated client\n".repeat(1_000)).len(), MAX_FOUND);
        let long =
            format!("{} Never touch the generated client. {}", "It was a dark night.".repeat(200), "x ".repeat(5_000));
        assert_eq!(find(&long)[0].text, "Never touch the generated client.");
        let endless = format!("never touch {}", "x".repeat(100_000));
        assert!(units(&find(&endless)[0].text) <= MAX_DIRECTIVE_UNITS);
        find(&"가".repeat(100_000));
    }
}
