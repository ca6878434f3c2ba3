//! What each mode wants at a Stop: one row of a table, one small function.
//!
//! A function sees only a state that counts (on, the session's own, touched lately, confirmed, not cancelled, not completed)
//! and decides by its members. Counters of a wrong type start anew, limits of a wrong type are the default.

use omc_state::{Breaker, Mode, ModeState, Timestamp};

use super::{SessionState, StopFacts, reason};

/// Limit of ralph's iterations where its state has none, and by how much it grows when it is reached.
const RALPH_MAX_ITERATIONS: u64 = 100;
const RALPH_EXTENSION: u64 = 10;

/// Refusals after which a mode ends: the seed's numbers. Those of ralplan count for 45 minutes.
const AUTOPILOT_MAX_REFUSALS: u64 = 20;
const RALPLAN_MAX_REFUSALS: u64 = 30;
const ULTRAWORK_MAX_REFUSALS: u64 = 50;
const ULTRAQA_MAX_CYCLES: u64 = 10;

/// One mode that can hold the agent.
pub(super) struct Rule {
    pub(super) mode: Mode,
    pub(super) judge: fn(&Case<'_>) -> Ruling,
}

/// The modes in the order in which they are asked; the first that wants to go on wins, and the others are not touched.
pub(super) const RULES: [Rule; 5] = [
    Rule { mode: Mode::Ralph, judge: ralph },
    Rule { mode: Mode::Autopilot, judge: autopilot },
    Rule { mode: Mode::Ralplan, judge: ralplan },
    Rule { mode: Mode::Ultraqa, judge: ultraqa },
    Rule { mode: Mode::Ultrawork, judge: ultrawork },
];

/// What a rule decides by.
pub(super) struct Case<'a> {
    pub(super) state: &'a ModeState,
    pub(super) session: &'a SessionState,
    pub(super) facts: &'a StopFacts,
    pub(super) now: Timestamp,
}

/// What a mode wants.
pub(super) enum Ruling {
    /// Nothing.
    Silent,
    /// Nothing, and its refusals so far no longer count.
    Rest(Breaker),
    /// To go on, for this reason.
    Refuse {
        text: String,
        /// The state after this refusal.
        state: ModeState,
        /// A count that is kept outside of the state.
        breaker: Option<(Breaker, u64)>,
    },
    /// To end, because its limit is reached.
    End {
        /// A word for programs.
        why: &'static str,
        /// A sentence for the person.
        message: String,
        /// A count that is over with the mode.
        breaker: Option<Breaker>,
    },
}

impl Case<'_> {
    fn count(&self, name: &str) -> u64 {
        self.state.fields().count(name).unwrap_or(0)
    }

    fn limit(&self, name: &str, default: u64) -> u64 {
        self.state.fields().count(name).filter(|limit| *limit > 0).unwrap_or(default)
    }

    /// A refusal after which these members have these counts.
    fn refuse(&self, text: String, counts: &[(&str, u64)]) -> Ruling {
        let mut state = self.state.clone();
        for (name, count) in counts {
            state.fields_mut().set(name, *count);
        }
        state.fields_mut().set_time("last_checked_at", self.now);
        Ruling::Refuse { text, state, breaker: None }
    }
}

fn end(why: &'static str, message: String) -> Ruling {
    Ruling::End { why, message, breaker: None }
}

fn ralph(case: &Case<'_>) -> Ruling {
    if case.state.is_finished() {
        return Ruling::Silent;
    }
    let cap = case.facts.hard_cap;
    let done = case.count("iteration");
    if done >= cap {
        return end("hard_limit_reached", reason::ralph_hard_limit(cap));
    }
    let limit = case.limit("max_iterations", RALPH_MAX_ITERATIONS);
    let is_extended = done >= limit;
    let limit = if is_extended { done.max(limit).saturating_add(RALPH_EXTENSION) } else { limit }.min(cap);
    let text = reason::ralph(done + 1, limit, is_extended, case.state.prompt());
    case.refuse(text, &[("iteration", done + 1), ("max_iterations", limit)])
}

fn autopilot(case: &Case<'_>) -> Ruling {
    let phase = case.state.phase();
    // A command without a task, whose skill never said a word: there is nothing to go on with.
    let is_orphan = phase.is_none()
        && matches!(
            case.state.prompt().map(str::to_ascii_lowercase).as_deref(),
            Some(
                "[magic keyword: autopilot]"
                    | "/autopilot"
                    | "/autopilot execute"
                    | "/omc:autopilot"
                    | "/oh-my-claudecode:autopilot"
            )
        );
    if case.state.is_finished() || is_orphan {
        return Ruling::Silent;
    }
    let refusals = case.count("reinforcement_count");
    if refusals >= AUTOPILOT_MAX_REFUSALS {
        return end("max_reinforcements_reached", reason::exhausted(Mode::Autopilot, AUTOPILOT_MAX_REFUSALS));
    }
    case.refuse(reason::autopilot(phase, case.state.prompt()), &[("reinforcement_count", refusals + 1)])
}

fn ralplan(case: &Case<'_>) -> Ruling {
    let refusals = case.session.ralplan_refusals;
    if case.state.is_finished() || awaits_approval(case.state) {
        return if refusals > 0 { Ruling::Rest(Breaker::Ralplan) } else { Ruling::Silent };
    }
    if refusals >= RALPLAN_MAX_REFUSALS {
        return Ruling::End {
            why: "stop_breaker_exhausted",
            message: reason::ralplan_breaker(RALPLAN_MAX_REFUSALS),
            breaker: Some(Breaker::Ralplan),
        };
    }
    let text = reason::ralplan(refusals + 1, RALPLAN_MAX_REFUSALS, case.state.prompt());
    match case.refuse(text, &[]) {
        Ruling::Refuse { text, state, .. } => {
            Ruling::Refuse { text, state, breaker: Some((Breaker::Ralplan, refusals + 1)) }
        }
        other => other,
    }
}

/// Whether the plan is ready and the user has to say something about it.
fn awaits_approval(state: &ModeState) -> bool {
    ["phase", "current_phase", "status"].iter().filter_map(|name| state.fields().text(name)).any(|phase| {
        let phase = phase.to_ascii_lowercase().replace([' ', '-'], "_");
        matches!(phase.as_str(), "pending_approval" | "awaiting_approval" | "approval_required")
    })
}

fn ultraqa(case: &Case<'_>) -> Ruling {
    if case.state.is_finished() || case.state.fields().flag("all_passing") {
        return Ruling::Silent;
    }
    let (cycle, limit) = (case.count("cycle"), case.limit("max_cycles", ULTRAQA_MAX_CYCLES).min(case.facts.hard_cap));
    if cycle >= limit {
        return end("max_cycles_reached", reason::exhausted(Mode::Ultraqa, limit));
    }
    let goal = case.state.fields().text("goal_pattern").or_else(|| case.state.fields().text("goal_type"));
    let text = reason::ultraqa(cycle + 1, limit, case.state.prompt().or(goal));
    case.refuse(text, &[("cycle", cycle + 1)])
}

fn ultrawork(case: &Case<'_>) -> Ruling {
    if case.state.is_finished() {
        return Ruling::Silent;
    }
    let limit = case.limit("max_reinforcements", ULTRAWORK_MAX_REFUSALS).min(case.facts.hard_cap);
    let refusals = case.count("reinforcement_count");
    if refusals >= limit {
        return end("max_reinforcements_reached", reason::exhausted(Mode::Ultrawork, limit));
    }
    let text = reason::ultrawork(refusals + 1, limit, case.state.prompt());
    case.refuse(text, &[("reinforcement_count", refusals + 1)])
}
