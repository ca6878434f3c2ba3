//! The keywords: their names, aliases, and what each does. A new keyword is a row of [`ROWS`].
//!
//! The scanner finds every place where an alias stands as a word of its own. Whether that place is a request is for
//! [`context`](super::context) to say.

use super::{invocation, sanitize::Sanitized, text::is_word_byte, work};

/// What a keyword asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Keyword {
    /// Ends every mode of the session.
    Cancel,
    /// Works until the request is done and verified.
    Ralph,
    /// Works until a goal is reached.
    Ultragoal,
    /// From an idea to working code.
    Autopilot,
    /// Work in parallel.
    Ultrawork,
    /// Test, fix, repeat.
    Ultraqa,
    /// Three models give advice, one brings it together.
    Ccg,
    /// A plan by consensus before work.
    Ralplan,
    /// Questions to the user before work.
    DeepInterview,
    /// Cleans up what machines write too much of.
    AiSlopCleaner,
    /// Tests first.
    Tdd,
    /// A full review of code.
    CodeReview,
    /// A review of security.
    SecurityReview,
    /// Long thought.
    Ultrathink,
    /// An exhaustive search.
    Deepsearch,
    /// Analysis before conclusions.
    Analyze,
    /// The project's wiki.
    Wiki,
}

/// What kind of thing a keyword starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sort {
    /// It ends modes, and nothing else happens.
    Cancel,
    /// A mode that does work: short and vague requests for it are planned first.
    Execution,
    /// A mode that works for a goal, which makes a plan of its own.
    Goal,
    /// A mode that plans.
    Planning,
    /// A skill without a state: it is done when it is done.
    Skill,
    /// A block of instructions for this one turn; no state.
    Block,
}

impl Sort {
    /// Whether it is a mode, with a state that outlasts the turn.
    pub fn is_mode(self) -> bool {
        matches!(self, Self::Execution | Self::Goal | Self::Planning)
    }

    /// Whether a skill of its own does it, that a slash command can call.
    pub fn has_skill(self) -> bool {
        self != Self::Block
    }
}

/// How sure an alias is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// A name: it counts where a request can stand.
    Name,
    /// A coined word that has no other meaning and starts nothing that lasts: it counts wherever it is not talked about.
    Coined,
    /// A name that is also an abbreviation of other things: only in lower case.
    LowerCase,
    /// Ordinary words that are a request only at the end of one ("build it end to end").
    Ending,
    /// Words that are an order by themselves ("wiki add"), whatever they are about.
    Order,
    /// A thing that is a request as the object of an order ("remove the ai slop").
    Object,
    /// A thing that is a request as the object of an order to clean up ("prune the dead code").
    Untidy,
}

/// One spelling of a keyword.
pub(super) enum Alias {
    /// A text in lower case, and what must not follow it.
    Text(&'static str, Form, &'static [&'static str]),
    /// Words in a row, each one of several; an empty one may be missing.
    Words(&'static [&'static [&'static str]]),
}

/// A keyword with all its spellings.
pub(super) struct Row {
    pub(super) keyword: Keyword,
    /// The name in settings, slash commands and skills.
    name: &'static str,
    sort: Sort,
    aliases: &'static [Alias],
}

const fn name(text: &'static str) -> Alias {
    Alias::Text(text, Form::Name, &[])
}

const fn name_but(text: &'static str, not_before: &'static [&'static str]) -> Alias {
    Alias::Text(text, Form::Name, not_before)
}

const fn object(text: &'static str) -> Alias {
    Alias::Text(text, Form::Object, &[])
}

const fn untidy(text: &'static str) -> Alias {
    Alias::Text(text, Form::Untidy, &[])
}

const fn coined(text: &'static str) -> Alias {
    Alias::Text(text, Form::Coined, &[])
}

/// What "build me a …" makes.
const PRODUCTS: &[&str] = &[
    "app",
    "feature",
    "project",
    "tool",
    "plugin",
    "website",
    "api",
    "server",
    "cli",
    "script",
    "system",
    "service",
    "dashboard",
    "bot",
    "extension",
];

const ARTICLE: &[&str] = &["a", "an"];
const MAYBE_ARTICLE: &[&str] = &["a", "an", ""];

/// All keywords, most important first.
pub(super) const ROWS: &[Row] = &[
    Row {
        keyword: Keyword::Cancel,
        name: "cancel",
        sort: Sort::Cancel,
        aliases: &[name("cancelomc"), name("stopomc")],
    },
    Row {
        keyword: Keyword::Ralph,
        name: "ralph",
        sort: Sort::Execution,
        aliases: &[
            name_but("ralph", &[" lauren"]),
            name_but("랄프", &["로렌", " 로렌"]),
            name_but("ラルフ", &["ローレン", "・ローレン", " ローレン"]),
        ],
    },
    Row { keyword: Keyword::Ultragoal, name: "ultragoal", sort: Sort::Goal, aliases: &[name("ultragoal")] },
    Row {
        keyword: Keyword::Autopilot,
        name: "autopilot",
        sort: Sort::Execution,
        aliases: &[
            name("autopilot"),
            name("auto pilot"),
            name("auto-pilot"),
            name("full auto"),
            name("fullsend"),
            name("오토파일럿"),
            name("オートパイロット"),
            name("handle it all"),
            name("e2e this"),
            Alias::Text("end to end", Form::Ending, &[]),
            Alias::Words(&[&["build", "create", "make"], &["me"], MAYBE_ARTICLE, PRODUCTS]),
            Alias::Words(&[&["i"], &["want"], ARTICLE, PRODUCTS]),
        ],
    },
    Row {
        keyword: Keyword::Ultrawork,
        name: "ultrawork",
        sort: Sort::Execution,
        aliases: &[
            name("ultrawork"),
            name("ulw"),
            Alias::Text("uw", Form::LowerCase, &[]),
            name("울트라워크"),
            name("ウルトラワーク"),
        ],
    },
    Row { keyword: Keyword::Ultraqa, name: "ultraqa", sort: Sort::Execution, aliases: &[name("ultraqa")] },
    Row {
        keyword: Keyword::Ccg,
        name: "ccg",
        sort: Sort::Skill,
        aliases: &[
            Alias::Text("ccg", Form::LowerCase, &[]),
            name("claude-codex-gemini"),
            name("씨씨지"),
            name("シーシージー"),
        ],
    },
    Row {
        keyword: Keyword::Ralplan,
        name: "ralplan",
        sort: Sort::Planning,
        aliases: &[name("ralplan"), name("랄플랜"), name("ラルプラン")],
    },
    Row {
        keyword: Keyword::DeepInterview,
        name: "deep-interview",
        sort: Sort::Skill,
        aliases: &[
            name("deep interview"),
            name("deep-interview"),
            name("ouroboros"),
            name("딥인터뷰"),
            name("딥 인터뷰"),
            name("ディープインタビュー"),
            name("ディープ インタビュー"),
        ],
    },
    Row {
        keyword: Keyword::AiSlopCleaner,
        name: "ai-slop-cleaner",
        sort: Sort::Skill,
        aliases: &[
            name("ai-slop-cleaner"),
            name("ai slop cleaner"),
            name("deslop"),
            name("de-slop"),
            name("de slop"),
            name("anti slop"),
            name("anti-slop"),
            name("antislop"),
            name("ai slop cleanup"),
            name("ai-slop cleanup"),
            name("aislop cleanup"),
            object("ai slop"),
            object("ai-slop"),
            object("aislop"),
            untidy("slop"),
            untidy("dead code"),
            untidy("unused code"),
            untidy("duplicate"),
            untidy("duplicates"),
            untidy("duplicated"),
            untidy("duplication"),
            untidy("ai-generated"),
            untidy("generated code"),
            untidy("tech debt"),
            untidy("wrapper layer"),
            untidy("wrapper layers"),
            untidy("boundary violation"),
            untidy("boundary violations"),
            untidy("needless abstraction"),
            untidy("needless abstractions"),
            untidy("unnecessary abstraction"),
            untidy("unnecessary abstractions"),
            untidy("over-abstraction"),
            untidy("over-abstracted"),
        ],
    },
    Row {
        keyword: Keyword::Tdd,
        name: "tdd",
        sort: Sort::Block,
        aliases: &[
            name("tdd"),
            name("test first"),
            name("red green"),
            name("테스트퍼스트"),
            name("테스트 퍼스트"),
            name("テストファースト"),
            name("テスト ファースト"),
        ],
    },
    Row {
        keyword: Keyword::CodeReview,
        name: "code-review",
        sort: Sort::Block,
        aliases: &[
            name("code review"),
            name("review code"),
            name_but("코드리뷰", &["어"]),
            name_but("코드 리뷰", &["어"]),
            name_but("コードレビュー", &["ア"]),
            name_but("コード レビュー", &["ア"]),
        ],
    },
    Row {
        keyword: Keyword::SecurityReview,
        name: "security-review",
        sort: Sort::Block,
        aliases: &[
            name("security review"),
            name("review security"),
            name_but("보안리뷰", &["어"]),
            name_but("보안 리뷰", &["어"]),
            name_but("セキュリティレビュー", &["ア"]),
            name_but("セキュリティーレビュー", &["ア"]),
            name_but("セキュリティ レビュー", &["ア"]),
            name_but("セキュリティー レビュー", &["ア"]),
        ],
    },
    Row {
        keyword: Keyword::Ultrathink,
        name: "ultrathink",
        sort: Sort::Block,
        aliases: &[
            coined("ultrathink"),
            name("think hard"),
            name("think deeply"),
            coined("울트라씽크"),
            coined("ウルトラシンク"),
        ],
    },
    Row {
        keyword: Keyword::Deepsearch,
        name: "deepsearch",
        sort: Sort::Block,
        aliases: &[
            name("deepsearch"),
            name("딥서치"),
            name("딥 서치"),
            name("ディープサーチ"),
            name("ディープ サーチ"),
            Alias::Words(&[&["search"], &["the", ""], &["codebase", "code", "file", "files", "project"]]),
            Alias::Words(&[&["find"], &["in", ""], &["codebase", "code"]]),
            Alias::Words(&[&["find"], &["in", ""], &["all"], &["file", "files"]]),
        ],
    },
    Row {
        keyword: Keyword::Analyze,
        name: "analyze",
        sort: Sort::Block,
        aliases: &[
            name("deep analyze"),
            name("deep-analyze"),
            name("deepanalyze"),
            name("딥분석"),
            name("딥 분석"),
            name("ディープアナライズ"),
            name("ディープ アナライズ"),
        ],
    },
    Row {
        keyword: Keyword::Wiki,
        name: "wiki",
        sort: Sort::Skill,
        // The word alone is one of everyday language; what it does with the wiki makes it a request.
        aliases: &[Alias::Words(&[&["wiki"], &["this", "add", "ingest", "lint", "query"]])],
    },
];

impl Keyword {
    /// All keywords, most important first.
    pub fn all() -> impl Iterator<Item = Self> {
        ROWS.iter().map(|row| row.keyword)
    }

    fn row(self) -> &'static Row {
        &ROWS[self as usize]
    }

    /// The name in settings, slash commands and skills.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// Whether a question can be what it is to work on: for plans, skills and thought.
    pub(super) fn takes_question(self) -> bool {
        matches!(self.sort(), Sort::Planning | Sort::Skill)
            || matches!(self, Self::Ultrathink | Self::Deepsearch | Self::Analyze)
    }

    /// What kind of thing it starts.
    pub fn sort(self) -> Sort {
        self.row().sort
    }

    /// The keyword of which this is the name or a spelling without spaces, whatever the case.
    pub(super) fn from_command(word: &str) -> Option<Self> {
        let spelled = |row: &&Row| {
            let alias = |alias: &Alias| matches!(alias, Alias::Text(text, ..) if text.eq_ignore_ascii_case(word));
            row.name.eq_ignore_ascii_case(word) || row.aliases.iter().any(alias)
        };
        ROWS.iter().find(spelled).map(|row| row.keyword)
    }
}

/// A place where a keyword stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Occurrence {
    pub(super) keyword: Keyword,
    pub(super) form: Form,
    pub(super) start: usize,
    pub(super) end: usize,
}

/// Occurrences of one keyword that are judged from each end of a prompt.
///
/// Judging one costs far more than finding it. Whoever wants a mode names it early or late, so that the bound costs nothing to
/// people, and to a prompt of a million keywords no more than to one of thirty.
const JUDGED_FROM_EACH_END: usize = 12;

/// The occurrences of each keyword, in the order of [`ROWS`].
pub(super) struct Found([Vec<Occurrence>; ROWS.len()]);

impl Found {
    /// The occurrences of the keyword that are worth judging.
    pub(super) fn of(&self, keyword: Keyword) -> impl Iterator<Item = &Occurrence> {
        let all = &self.0[keyword as usize];
        let late = all.len().saturating_sub(JUDGED_FROM_EACH_END).max(JUDGED_FROM_EACH_END.min(all.len()));
        all[..all.len().min(JUDGED_FROM_EACH_END)].iter().chain(&all[late..])
    }

    /// How many modes are named at all.
    pub(super) fn modes_named(&self) -> usize {
        ROWS.iter().filter(|row| row.sort.is_mode()).filter(|row| !self.0[row.keyword as usize].is_empty()).count()
    }
}

/// How often a spelling is listed in [`INDEX`]: once for each of its first words.
const INDEXED: usize = index_by_first_byte::<0>().0[256] as usize;

/// The spellings by their first byte: those of byte `b` are at `INDEX.0[b]..INDEX.0[b + 1]` of `INDEX.1`, as row and alias.
const INDEX: ([u16; 257], [(u8, u8); INDEXED]) = index_by_first_byte();

/// Makes [`INDEX`], at compile time. With a length of 0 only its first part is right.
const fn index_by_first_byte<const N: usize>() -> ([u16; 257], [(u8, u8); N]) {
    let mut starts = [0; 257];
    let mut places = [(0, 0); N];
    let mut used = 0;
    let mut byte = 0;
    while byte < 256 {
        let mut row = 0;
        while row < ROWS.len() {
            let mut alias = 0;
            while alias < ROWS[row].aliases.len() {
                if ROWS[row].aliases[alias].can_start_with(byte) {
                    if N > 0 {
                        #[expect(
                            clippy::cast_possible_truncation,
                            reason = "there are a dozen rows of a dozen aliases"
                        )]
                        let place = (row as u8, alias as u8);
                        places[used] = place;
                    }
                    used += 1;
                }
                alias += 1;
            }
            row += 1;
        }
        byte += 1;
        #[expect(clippy::cast_possible_truncation, reason = "there are a few dozen spellings")]
        let end = used as u16;
        starts[byte] = end;
    }
    (starts, places)
}

/// Finds every keyword in the clean text.
pub(super) fn find(text: &Sanitized) -> Found {
    let mut found = Found(std::array::from_fn(|_| Vec::new()));
    let lower = text.lower.as_str();
    let bytes = lower.as_bytes();
    let mut in_word = false;
    for (at, byte) in bytes.iter().copied().enumerate() {
        let within_word = in_word && is_word_byte(byte);
        in_word = is_word_byte(byte);
        let first = usize::from(byte);
        let spellings = &INDEX.1[usize::from(INDEX.0[first])..usize::from(INDEX.0[first + 1])];
        if within_word || spellings.is_empty() {
            continue;
        }
        work::spend(spellings.len());
        for (row, alias) in spellings {
            let row = &ROWS[usize::from(*row)];
            let Some((end, form)) = row.aliases[usize::from(*alias)].matches_at(lower, at) else { continue };
            let as_written = form != Form::LowerCase || text.clean[at..end] == lower[at..end];
            if as_written && stands_alone(lower, at, end) {
                found.0[row.keyword as usize].push(Occurrence { keyword: row.keyword, form, start: at, end });
            }
        }
    }
    found
}

/// Whether one of the spellings of a mode ends exactly at `end`; where it begins.
pub(super) fn ends_with_keyword(lower: &str, end: usize) -> Option<usize> {
    let before = &lower[..end];
    ROWS.iter().flat_map(|row| row.aliases).find_map(|alias| match alias {
        Alias::Text(text, ..) if before.ends_with(text) => {
            let start = end - text.len();
            let word = text.as_bytes()[0].is_ascii_alphanumeric();
            (!(word && start > 0 && is_word_byte(lower.as_bytes()[start - 1]))).then_some(start)
        }
        _ => None,
    })
}

/// Whether one of the spellings begins exactly at the start of the text; where it ends.
pub(super) fn starts_with_keyword(lower: &str) -> Option<usize> {
    ROWS.iter().flat_map(|row| row.aliases).find_map(|alias| match alias {
        Alias::Text(..) => alias.matches_at(lower, 0).map(|(end, _)| end),
        Alias::Words(_) => None,
    })
}

impl Alias {
    /// Whether the spelling, or one of its first words, starts with this byte.
    const fn can_start_with(&self, byte: usize) -> bool {
        match self {
            Self::Text(text, ..) => text.as_bytes()[0] as usize == byte,
            Self::Words(words) => {
                let mut choice = 0;
                while choice < words[0].len() {
                    if words[0][choice].as_bytes()[0] as usize == byte {
                        return true;
                    }
                    choice += 1;
                }
                false
            }
        }
    }

    /// Where this spelling ends, if it starts at `at`.
    fn matches_at(&self, lower: &str, at: usize) -> Option<(usize, Form)> {
        // Bytes are compared, so that `at` may be any byte; a spelling starts with a character's first byte.
        let rest = &lower.as_bytes()[at..];
        match self {
            Self::Text(text, form, not_before) => {
                let after = rest.strip_prefix(text.as_bytes())?;
                let ends_word = text.bytes().last().is_some_and(is_word_byte);
                let goes_on = ends_word && after.first().copied().is_some_and(is_word_byte);
                let other_name = not_before.iter().any(|next| after.starts_with(next.as_bytes()));
                (!goes_on && !other_name).then_some((at + text.len(), *form))
            }
            Self::Words(words) => {
                let mut length = 0;
                for choices in *words {
                    let space = usize::from(length > 0 && rest.get(length) == Some(&b' '));
                    let word = rest.get(length + space..)?;
                    let word = &word[..word.iter().take_while(|byte| is_word_byte(**byte)).count()];
                    if choices.iter().any(|choice| choice.as_bytes() == word) && (space == 1 || length == 0) {
                        length += space + word.len();
                    } else if !choices.contains(&"") {
                        return None;
                    }
                }
                Some((at + length, Form::Order))
            }
        }
    }
}

/// Whether the stretch is a word and no part of a longer name: `ralph-loop`, `x.ralph`, `ralph's` and `ralph()` are others.
fn stands_alone(lower: &str, start: usize, end: usize) -> bool {
    let before = &lower[..invocation::start_with_prefix(lower, start)];
    let before_ok =
        before.chars().next_back().is_none_or(|c| !"-_\\/.@#$=<>&%~+`{[|:".contains(c) || c == ':' && is_label(before));
    let mut after = lower[end..].chars();
    let after_ok = match after.next() {
        Some('.' | '\'' | '-') => !after.next().is_some_and(char::is_alphanumeric),
        Some(':') => after.next() != Some(':'),
        Some(character) => !"_/\\(=@<[{#+&|~%$>`".contains(character),
        None => true,
    };
    before_ok && after_ok
}

/// The text ends with `force:`, the one label after which no space is needed.
fn is_label(before: &str) -> bool {
    before.trim_start() == invocation::FORCE
}

#[cfg(test)]
mod tests {
    use super::{Form, Keyword, ROWS, find};
    use crate::logic::sanitize::sanitize;

    fn found(text: &str) -> Vec<(Keyword, String)> {
        let text = sanitize(text);
        let found = find(&text);
        ROWS.iter()
            .flat_map(|row| {
                found.of(row.keyword).map(|place| (place.keyword, text.clean[place.start..place.end].to_owned()))
            })
            .collect()
    }

    #[test]
    fn the_table_is_in_the_order_of_the_keywords() {
        for (index, row) in ROWS.iter().enumerate() {
            assert_eq!(row.keyword as usize, index);
            assert_eq!(row.keyword.name(), row.name);
        }
    }

    #[test]
    fn every_spelling_is_found() {
        for (text, want) in [
            ("RALPH", Keyword::Ralph),
            ("랄프로", Keyword::Ralph),
            ("ラルフを", Keyword::Ralph),
            ("Auto-Pilot", Keyword::Autopilot),
            ("auto  pilot", Keyword::Autopilot),
            ("full auto", Keyword::Autopilot),
            ("build me a dashboard", Keyword::Autopilot),
            ("make me app", Keyword::Autopilot),
            ("I want an extension", Keyword::Autopilot),
            ("ulw", Keyword::Ultrawork),
            ("uw", Keyword::Ultrawork),
            ("울트라워크", Keyword::Ultrawork),
            ("ultraqa", Keyword::Ultraqa),
            ("랄플랜", Keyword::Ralplan),
            ("테스트 퍼스트", Keyword::Tdd),
            ("코드 리뷰", Keyword::CodeReview),
            ("セキュリティー レビュー", Keyword::SecurityReview),
            ("think deeply", Keyword::Ultrathink),
            ("search the project", Keyword::Deepsearch),
            ("search files", Keyword::Deepsearch),
            ("find in all files", Keyword::Deepsearch),
            ("find code", Keyword::Deepsearch),
            ("딥 분석", Keyword::Analyze),
        ] {
            assert!(found(text).iter().any(|(keyword, _)| *keyword == want), "{text}");
        }
    }

    #[test]
    fn parts_of_other_names_are_not_found() {
        for text in [
            "ralphy",
            "x_ralph",
            "ralph-loop이",
            "ralph-step-0a.sh",
            "UW-Milwaukee",
            "UW",
            "ultrawork-banner",
            "autopilot.rs",
            "x.ralph",
            "ralph's",
            "ralph’s",
            "ralph()",
            "ralph=1",
            "--ralph",
            "@ralph",
            "#ralph",
            "autopilot::start",
            "foo/ralph",
            "ralph/x",
            "Ralph Lauren",
            "랄프로렌",
            "랄프 로렌",
            "ラルフローレン",
            "ラルフ・ローレン",
            "코드리뷰어",
            "コードレビューア",
            "make me a fancy dashboard",
            "i want a holiday",
            "i want app",
            "searching files",
            "build a tool",
            "researchthe code",
        ] {
            assert_eq!(found(text), [], "{text}");
        }
    }

    #[test]
    fn the_bound_keeps_the_first_and_the_last_occurrences() {
        let found = find(&sanitize(&"ralph ".repeat(1000)));
        let starts: Vec<_> = found.of(Keyword::Ralph).map(|place| place.start).collect();
        assert_eq!(starts.len(), 24);
        assert_eq!((starts[0], starts[23]), (0, 999 * 6));
        assert!(found.of(Keyword::Ralph).all(|place| place.form == Form::Name));
    }
}
