//! Why a turn ended other than that the model thought it was done.

use omc_state::{bare_skill_name, truncate_units};

use crate::Turn;

/// Why a turn ended, if not because the model thought it was done. Refusing the end would trap the user, waste requests or break
/// the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// The context is full, or nearly.
    ContextFull,
    /// The user cancels.
    Cancelled,
    /// The user interrupted the turn.
    Aborted,
    /// The provider takes no more requests for now.
    RateLimited,
    /// The provider does not know the user any more.
    NotAuthorised,
    /// The session will be woken.
    WakeUp,
}

/// Fill of the context from which another turn is a risk, in percent: the original's number.
pub const CRITICAL_PERCENT: u64 = 95;

/// How much of a reason is looked at, in UTF-16 units: the message of an error, not its trace.
const MAX_REASON_UNITS: usize = 1_000;

// Reasons are compared in lower case, with `_` for spaces and hyphens. A list says what a reason contains, unless its name
// says that the whole reason is meant.

const CONTEXT: &[&str] = &[
    "context_limit",
    "context_window",
    "context_exceeded",
    "context_full",
    "max_context",
    "token_limit",
    "max_tokens",
    "conversation_too_long",
    "input_too_long",
    "prompt_is_too_long",
    "prompt_too_long",
];
const RATE: &[&str] = &[
    "rate_limit",
    "ratelimit",
    "too_many_requests",
    "quota_exceeded",
    "quota_limit",
    "quota_exhausted",
    "request_limit",
    "api_limit",
    "usage_limit",
    "overloaded",
    "capacity",
];
const RATE_CODES: &[&str] = &["429", "529"];
const AUTH: &[&str] = &[
    "authentication_error",
    "authentication_failed",
    "auth_error",
    "unauthorized",
    "unauthorised",
    "forbidden",
    "invalid_token",
    "token_invalid",
    "token_expired",
    "expired_token",
    "oauth_expired",
    "oauth_token_expired",
    "invalid_grant",
    "insufficient_scope",
];
const AUTH_CODES: &[&str] = &["401", "403"];
const ABORT: &[&str] = &["user_cancel", "user_interrupt", "ctrl_c", "manual_stop"];
const ABORT_WHOLE: &[&str] = &["aborted", "abort", "cancel", "interrupt", "interrupted"];
const CANCEL_WHOLE: &[&str] = &["cancelled", "canceled", "cancel_force", "force_cancel"];
const WAKE_UP: &[&str] = &[
    "schedulewakeup",
    "schedule_wakeup",
    "scheduled_wakeup",
    "scheduled_task",
    "scheduled_resume",
    "loop_resume",
    "loop_wakeup",
];

impl Cause {
    /// The cause of this end, if it has one.
    pub(crate) fn of(turn: &Turn) -> Option<Self> {
        let reasons: Vec<_> = turn.reasons.iter().map(|reason| normalise(reason)).collect();
        let any = |test: &dyn Fn(&str) -> bool| reasons.iter().any(|reason| test(reason));
        let contains = |tokens: &[&str]| any(&|reason| tokens.iter().any(|token| reason.contains(token)));
        let has_code = |codes: &[&str]| any(&|reason| codes.iter().any(|code| has_word(reason, code)));
        let is = |whole: &[&str]| any(&|reason| whole.contains(&reason));
        let tool = turn.tool_name.as_deref().map(normalise).unwrap_or_default();

        if contains(CONTEXT) || turn.context_percent.is_some_and(|percent| percent >= CRITICAL_PERCENT) {
            Some(Self::ContextFull)
        } else if is_cancel_prompt(turn.prompt.as_deref())
            || is(CANCEL_WHOLE)
            || (tool == "skill" && turn.skill.as_deref().is_some_and(|skill| bare_skill_name(skill) == "cancel"))
        {
            Some(Self::Cancelled)
        } else if turn.user_requested || is(ABORT_WHOLE) || contains(ABORT) {
            Some(Self::Aborted)
        } else if contains(RATE) || has_code(RATE_CODES) {
            Some(Self::RateLimited)
        } else if contains(AUTH) || has_code(AUTH_CODES) {
            Some(Self::NotAuthorised)
        } else if contains(WAKE_UP) || WAKE_UP.contains(&tool.as_str()) {
            Some(Self::WakeUp)
        } else {
            None
        }
    }
}

fn normalise(reason: &str) -> String {
    truncate_units(reason.trim(), MAX_REASON_UNITS).to_ascii_lowercase().replace([' ', '-'], "_")
}

/// Whether the code stands in the text as a word of its own, and not inside of a longer number or id.
fn has_word(text: &str, code: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric();
    text.match_indices(code).any(|(at, _)| {
        !text[..at].chars().next_back().is_some_and(is_part)
            && !text[at + code.len()..].chars().next().is_some_and(is_part)
    })
}

fn is_cancel_prompt(prompt: Option<&str>) -> bool {
    let mut words = prompt.unwrap_or_default().split_whitespace();
    let Some(first) = words.next() else { return false };
    let rest: Vec<_> = words.take(2).collect();
    let is_command =
        first.starts_with('/') && bare_skill_name(first) == "cancel" && matches!(rest.as_slice(), [] | ["--force"]);
    let is_word = rest.is_empty() && ["cancelomc", "stopomc"].iter().any(|word| first.eq_ignore_ascii_case(word));
    is_command || is_word
}
