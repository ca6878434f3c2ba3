//! What is said before a tool runs, and what is refused. Pure: facts in, texts out.
//!
//! One module is one rule. A refusal comes first and is never throttled; of what is said, only routine reminders are.

pub mod delegation;
pub mod goal;
pub mod model;
pub mod reminder;
pub mod slop;

/// The percentage of the context from which no new agent starts, unless the user set another: the original's.
pub const DEFAULT_PREFLIGHT_PERCENT: u64 = 72;

/// Why no new agent may start in a context that is this full.
pub fn preflight_refusal(percent: u64, threshold: u64) -> Option<String> {
    (percent >= threshold).then(|| {
        format!(
            "[OMC] Preflight context guard: the context is {percent}% full, and from {threshold}% no new agent starts. Stop \
             fanning out. Run /compact first, or open a fresh session and go on from `.omc/state` and `.omc/notepad.md`."
        )
    })
}
