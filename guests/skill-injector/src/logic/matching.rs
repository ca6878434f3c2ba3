//! How well a skill fits a prompt: ten for each trigger that stands in it, a little less for one that nearly does.

use super::skill::Skill;

/// Beginning of a prompt that is looked at, in bytes: a request stands in it; what is pasted after it does not call for skills.
const MAX_PROMPT_BYTES: usize = 32 * 1024;

/// Score of a trigger that is found.
const FOUND: u32 = 10;

/// Words of a prompt that are compared with triggers of fuzzy skills.
const MAX_FUZZY_WORDS: usize = 200;

/// Shortest and longest word or trigger that is compared fuzzily, in characters: shorter ones resemble everything, longer ones
/// are not words.
const FUZZY_CHARS: std::ops::RangeInclusive<usize> = 4..=40;

/// Likeness of two words, in percent, from which they count as one: the original's number.
const MIN_LIKENESS: u32 = 60;

/// Likeness of two words of which one contains the other, in percent: likewise.
const CONTAINED: u32 = 80;

/// What Koreans write for English triggers.
const KOREAN: &[(&str, &[&str])] = &[
    ("deep dive", &["딥다이브", "딥 다이브"]),
    ("deep-dive", &["딥다이브"]),
    ("trace and interview", &["트레이스 앤 인터뷰"]),
    ("deep-pipeline", &["딥파이프라인", "딥 파이프라인"]),
    ("deep-pipe", &["딥파이프"]),
];

/// A prompt, made ready for comparing.
pub struct Prompt {
    lower: String,
    /// Its first words of a length that can be compared fuzzily.
    words: Vec<Vec<char>>,
}

impl Prompt {
    /// Makes the beginning of the prompt ready.
    pub fn new(prompt: &str) -> Self {
        let lower = prompt[..prompt.floor_char_boundary(MAX_PROMPT_BYTES)].to_lowercase();
        let mut words: Vec<Vec<char>> = Vec::new();
        for word in lower.split(|c: char| !c.is_alphanumeric() && c != '-' && c != '_') {
            let word: Vec<char> = word.chars().take(FUZZY_CHARS.end() + 1).collect();
            if FUZZY_CHARS.contains(&word.len()) && !words.contains(&word) {
                words.push(word);
            }
            if words.len() == MAX_FUZZY_WORDS {
                break;
            }
        }
        Self { lower, words }
    }

    /// The skill's score; 0 if it does not fit.
    pub fn score(&self, skill: &Skill) -> u32 {
        skill.triggers.iter().map(|trigger| self.score_trigger(trigger, skill.is_fuzzy)).sum()
    }

    fn score_trigger(&self, trigger: &str, is_fuzzy: bool) -> u32 {
        let korean = KOREAN.iter().find(|(english, _)| *english == trigger).map_or(&[][..], |(_, korean)| korean);
        if has_phrase(&self.lower, trigger) || korean.iter().any(|korean| self.lower.contains(korean)) {
            return FOUND;
        }
        if !is_fuzzy {
            return 0;
        }
        let trigger: Vec<char> = trigger.chars().take(FUZZY_CHARS.end() + 1).collect();
        if !FUZZY_CHARS.contains(&trigger.len()) {
            return 0;
        }
        let best = self.words.iter().map(|word| likeness(word, &trigger)).max().unwrap_or(0);
        // Rounded to tenths.
        if best >= MIN_LIKENESS { (best + 5) / 10 } else { 0 }
    }
}

/// Whether the phrase stands in the text, and not inside of a longer word of a script that has spaces between words.
fn has_phrase(text: &str, phrase: &str) -> bool {
    let is_joined = |inner: Option<char>, outer: Option<char>| {
        inner.is_some_and(is_spaced_letter) && outer.is_some_and(is_spaced_letter)
    };
    text.match_indices(phrase).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + phrase.len()..].chars().next();
        !is_joined(phrase.chars().next(), before) && !is_joined(phrase.chars().next_back(), after)
    })
}

/// A letter or digit of a script that writes spaces between words and puts no particles behind them, as Latin.
fn is_spaced_letter(c: char) -> bool {
    c.is_alphanumeric() && (c < '\u{e00}' || ('\u{1e00}'..'\u{2000}').contains(&c))
}

/// How alike two words are, in percent.
fn likeness(word: &[char], trigger: &[char]) -> u32 {
    let (short, long) = if word.len() <= trigger.len() { (word, trigger) } else { (trigger, word) };
    if long.windows(short.len()).any(|window| window == short) {
        return CONTAINED;
    }
    // A distance is at least the difference of lengths, so that this one is too far away already.
    let percent = |distance: usize| u32::try_from((long.len() - distance) * 100 / long.len()).unwrap_or(0);
    if percent(long.len() - short.len()) < MIN_LIKENESS { 0 } else { percent(distance(short, long)) }
}

/// Levenshtein's distance.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn score(trigger: &str, is_fuzzy: bool, prompt: &str) -> u32 {
        Prompt::new(prompt).score_trigger(trigger, is_fuzzy)
    }

    #[test]
    fn a_trigger_is_found_as_words_of_its_own() {
        for (trigger, prompt, found) in [
            ("release notes", "Write the RELEASE NOTES now", true),
            ("release notes", "write the release  notes", false),
            ("at", "the cat sat on the mat", false),
            ("at", "look at it", true),
            ("at", "(at)", true),
            ("c++", "port it to c++", true),
            ("c++", "c++20", true),
            ("cache", "caches", false),
            ("cache", "```\nclear the cache\n```", true),
            ("deploy", "deploy를 해줘", true),
            ("배포", "빨리배포해줘", true),
            ("デプロイ", "今日デプロイする", true),
            ("部署", "请部署一下", true),
            ("über", "überall", false),
            ("über", "rede über es", true),
            ("тест", "тесты", false),
            ("deep dive", "딥다이브 해줘", true),
            ("deep dive", "딥 다이브 해줘", true),
            ("deep-pipe", "딥파이프로", true),
            ("deep dive", "deep sea dive", false),
        ] {
            assert_eq!(score(trigger, false, prompt) == FOUND, found, "{trigger:?} in {prompt:?}");
        }
    }

    #[test]
    fn a_fuzzy_trigger_needs_a_word_that_is_long_and_like_it() {
        for (trigger, prompt, expected) in [
            ("deployment", "check the deploymnt today", 9),
            ("deployment", "check the deployment today", 10),
            ("deployment", "deploy it", 8),
            ("deployment", "redeployments", 8),
            ("deployment", "plan b is a go", 0),
            ("deployment", "department", 7),
            ("go", "a go got", 10),
            ("go", "got", 0),
            ("plan", "a b c pla", 0),
            ("kubernetes", "kubernets!", 9),
            ("kubernetes", "kitchen", 0),
        ] {
            assert_eq!(score(trigger, true, prompt), expected, "{trigger:?} in {prompt:?}");
        }
        assert_eq!(score("deployment", false, "check the deploymnt today"), 0);
    }

    #[test]
    fn long_prompts_are_looked_at_in_part_and_cut_between_characters() {
        let late = format!("{} deploy", "가".repeat(20_000));
        assert_eq!(score("deploy", true, &late), 0);
        let endless = "x".repeat(1_000_000);
        assert_eq!(Prompt::new(&endless).words.len(), 0);
        let words: Vec<_> = (0..100_000).map(|n| format!("word{n}")).collect();
        assert_eq!(Prompt::new(&words.join(" ")).words.len(), MAX_FUZZY_WORDS);
        assert_eq!(likeness(&['a'; 40], &['b'; 40]), 0);
    }
}
