//! What a prompt asks for: the pure part of the guest, from text to [`Detection`].
//!
//! The path of a prompt: [`text`] bounds it, [`lines`] and [`sanitize`] take away what is not the user's request, [`invocation`]
//! looks for commands, [`keywords`] finds the words, [`context`] tells requests from mentions, [`gate`] sends vague requests to
//! planning first, [`texts`] says it to the model. Nothing here reads a file, a clock or the host.
//!
//! Every step is linear in the part of the prompt that is looked at (128 KiB at most), whatever stands in it.

mod activation;
mod context;
mod echo;
mod gate;
mod invocation;
mod keywords;
mod lines;
pub mod plan;
mod sanitize;
mod text;
mod texts;
#[rustfmt::skip] // Lists of words are read in rows.
mod words;
mod work;

pub use activation::{Activation, activate};
pub use keywords::{Keyword, Sort};
pub use texts::{cancelled, started};

use omc_state::Invocation;

use context::Context;
use invocation::Opening;
use keywords::ROWS;

/// What the user and their agent settled about keywords.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Names of keywords that do nothing. Cancel stays: there must be a way out.
    pub disabled: Vec<String>,
    /// Whether short and vague requests for work are planned first.
    pub gate: bool,
    /// Words from which a request is long enough to pass the gate without naming anything concrete.
    pub gate_words: usize,
    /// How the agent is told to start a skill.
    pub invocation: Invocation,
}

impl Default for Settings {
    fn default() -> Self {
        Self { disabled: Vec::new(), gate: true, gate_words: 15, invocation: Invocation::default() }
    }
}

/// What a prompt asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Detection {
    /// Nothing that concerns this guest.
    Nothing,
    /// The end of every mode of the session.
    Cancel,
    /// Something starts.
    Start(Start),
}

/// What a prompt starts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Start {
    /// Instructions for this turn, in the order in which they are given.
    pub blocks: Vec<Keyword>,
    /// Modes and skills, the most important first.
    pub modes: Vec<Keyword>,
    /// Modes that were asked for and that the gate turned into a plan.
    pub redirected: Vec<Keyword>,
    /// The mode was invoked by its command: the agent starts its skill without further ado, nothing is left to confirm.
    pub by_command: bool,
    /// Autopilot was asked for and does not start, as another session of the project has one at work. For the caller to find out.
    pub autopilot_elsewhere: bool,
    /// Modes that do not start, as their states could not be written. For the caller to find out.
    pub unwritten: Vec<Keyword>,
    /// The prompt without our own words, for the model.
    pub request: String,
    /// The prompt as a mode's state keeps it, at least as much as it keeps.
    pub prompt: String,
}

/// The order of the blocks in the context; the most general comes first.
const BLOCK_ORDER: &[Keyword] = &[
    Keyword::Ultrathink,
    Keyword::Deepsearch,
    Keyword::Analyze,
    Keyword::Tdd,
    Keyword::CodeReview,
    Keyword::SecurityReview,
];

/// Bytes of a prompt that go to a mode's state: more than the state keeps (500 UTF-16 units, 1,500 bytes at most), so that it
/// sees when there was more.
const STATE_PROMPT_BYTES: usize = 2048;

/// Lines of a prompt in which a review's menu is looked for, and the entries of such menus, in lower case.
const REVIEW_MENU_LINES: usize = 20;
const REVIEW_MENU: &[&[&str]] =
    &[&["approve"], &["request changes", "request-changes"], &["merge ready", "merge-ready"], &["blocked"]];

/// What the prompt asks for.
///
/// `plan_is_approved` is asked only if it matters: whether a plan waits for the word to start its work.
pub fn detect(prompt: &str, settings: &Settings, plan_is_approved: impl FnOnce() -> bool) -> Detection {
    let prompt = text::excerpt(prompt);
    let text = sanitize::sanitize(&prompt);
    let opening = invocation::opening(&text.request, settings.invocation);
    if opening == Opening::Delegation {
        return Detection::Nothing;
    }
    let found = keywords::find(&text);
    let mut around = None;
    let mut asked = |keyword: Keyword| {
        let any = found.of(keyword).next().is_some();
        any && context::asks_for(around.get_or_insert_with(|| Context::new(&text, &found)), &found, keyword)
    };
    let enabled = |keyword: &Keyword| {
        *keyword == Keyword::Cancel
            || !settings.disabled.iter().any(|name| name.trim().eq_ignore_ascii_case(keyword.name()))
    };

    if opening == Opening::Command(Keyword::Cancel) || opening.is_followed_by_words() && asked(Keyword::Cancel) {
        return Detection::Cancel;
    }
    let reviews_are_options = names_review_menu(&text.lower);
    let mut asked_for: Vec<Keyword> = ROWS
        .iter()
        .map(|row| row.keyword)
        .filter(enabled)
        .filter(|keyword| match (keyword.sort(), opening) {
            (Sort::Cancel, _) => false,
            (sort, Opening::OtherCommand) if sort.has_skill() => false,
            (sort, Opening::Command(invoked)) if sort.has_skill() => *keyword == invoked,
            (_, Opening::Marked(invoked)) if *keyword == invoked => true,
            (Sort::Block, _)
                if reviews_are_options && matches!(keyword, Keyword::CodeReview | Keyword::SecurityReview) =>
            {
                false
            }
            _ => asked(*keyword),
        })
        .collect();

    let mut start = Start { by_command: matches!(opening, Opening::Command(_)), ..Start::default() };
    let wants_work = asked_for.iter().any(|keyword| keyword.sort() == Sort::Execution);
    let gated = settings.gate
        && wants_work
        && !opening.skips_gate()
        && !asked_for.contains(&Keyword::Ralplan)
        && enabled(&Keyword::Ralplan)
        && gate::is_vague(&text.request, settings.gate_words)
        && !(plan::is_go_ahead(&text.request) && plan_is_approved());
    if gated {
        start.redirected = asked_for.extract_if(.., |keyword| keyword.sort() == Sort::Execution).collect();
        asked_for.push(Keyword::Ralplan);
    }
    start.blocks = BLOCK_ORDER.iter().copied().filter(|block| asked_for.contains(block)).collect();
    start.modes = asked_for.into_iter().filter(|keyword| keyword.sort() != Sort::Block).collect();
    if start.blocks.is_empty() && start.modes.is_empty() {
        return Detection::Nothing;
    }
    let prompt = echo::kept_prompt(&text.request);
    prompt[..prompt.floor_char_boundary(STATE_PROMPT_BYTES)].clone_into(&mut start.prompt);
    start.request = text.request;
    Detection::Start(start)
}

/// The prompt offers the outcomes of a review to choose from: it talks about reviews.
fn names_review_menu(lower: &str) -> bool {
    let end = lower.match_indices('\n').nth(REVIEW_MENU_LINES - 1).map_or(lower.len(), |(at, _)| at);
    let top = &lower[..end];
    REVIEW_MENU.iter().filter(|spellings| spellings.iter().any(|option| top.contains(option))).count() >= 2
}

#[cfg(test)]
mod tests;
