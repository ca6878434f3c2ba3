//! What each mode wants at a Stop: one row of a table, one small function.
//!
//! A function sees only a state that counts (on, the session's own, touched lately, confirmed, not cancelled, not completed)
//! and decides by its members. Counters of a wrong type start anew, limits of a wrong type are the default.

use omc_state::{Breaker, Mode, ModeState, Timestamp};

use super::{
    SessionState, StopFacts, Write, reason,
    verification::{self, Step},
};

/// Limit of ralph's iterations where its state has none, and by how much it grows when it is reached.
const RALPH_MAX_ITERATIONS: u64 = 100;
const RALPH_EXTENSION: u64 = 10;

/// Refusals after which a mode ends: the original's numbers. Those of ralplan count for 45 minutes, a team's for 5.
const AUTOPILOT_MAX_REFUSALS: u64 = 20;
const TEAM_MAX_REFUSALS: u64 = 20;
const RALPLAN_MAX_REFUSALS: u64 = 30;
const ULTRAWORK_MAX_REFUSALS: u64 = 50;
const ULTRAGOAL_MAX_REFUSALS: u64 = 50;
const ULTRAQA_MAX_CYCLES: u64 = 10;

/// Stages in which a team has something to do. In any other one, known or not, it holds nobody.
const TEAM_STAGES: [&str; 11] = [
    "team-plan",
    "team-prd",
    "team-exec",
    "team-verify",
    "team-fix",
    "planning",
    "executing",
    "verify",
    "verification",
    "fix",
    "fixing",
];

/// Members in which writers of team states keep the stage.
const TEAM_STAGE_MEMBERS: [&str; 5] = ["phase", "current_phase", "currentStage", "current_stage", "stage"];

/// One mode that can hold the agent.
pub(super) struct Rule {
    pub(super) mode: Mode,
    pub(super) judge: fn(&Case<'_>) -> Ruling,
}

/// The modes in the order in which they are asked; the first that wants to go on wins, and the others are not touched.
pub(super) const RULES: [Rule; 8] = [
    Rule { mode: Mode::Ralph, judge: ralph },
    Rule { mode: Mode::Ultragoal, judge: ultragoal },
    Rule { mode: Mode::Autopilot, judge: autopilot },
    Rule { mode: Mode::Team, judge: team },
    Rule { mode: Mode::OmcTeams, judge: omc_teams },
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
    /// To let go this once, with a word for the person; the refusals so far no longer count.
    LetGo { message: String, breaker: Breaker },
    /// To go on, for this reason.
    Refuse {
        text: String,
        /// The state after this refusal.
        state: ModeState,
        /// What is kept outside of the state.
        also: Vec<Write>,
    },
    /// To end: it is done, or its limit is reached.
    End {
        /// A word for programs.
        why: &'static str,
        /// A sentence for the person.
        message: String,
        /// What is over with the mode.
        also: Vec<Write>,
    },
}

impl Case<'_> {
    fn count(&self, name: &str) -> u64 {
        self.state.fields().count(name).unwrap_or(0)
    }

    fn limit(&self, name: &str, default: u64) -> u64 {
        self.state.fields().limit(name).unwrap_or(default)
    }

    /// A refusal after which these members have these counts, and the rest is written too.
    fn refuse(&self, text: String, counts: &[(&str, u64)], also: Vec<Write>) -> Ruling {
        let mut state = self.state.clone();
        for (name, count) in counts {
            state.fields_mut().set(name, *count);
        }
        state.fields_mut().set_time("last_checked_at", self.now);
        Ruling::Refuse { text, state, also }
    }
}

fn end(why: &'static str, message: String) -> Ruling {
    Ruling::End { why, message, also: Vec::new() }
}

fn ralph(case: &Case<'_>) -> Ruling {
    if case.state.is_finished() {
        return Ruling::Silent;
    }
    if let Some((why, message)) = team_of_ralph(case) {
        return end(why, message);
    }
    let cap = case.facts.hard_cap;
    let done = case.count("iteration");
    if done >= cap {
        return end("hard_limit_reached", reason::ralph_hard_limit(cap));
    }
    let limit = case.limit("max_iterations", RALPH_MAX_ITERATIONS);
    let is_extended = done >= limit;
    let limit = if is_extended { done.max(limit).saturating_add(RALPH_EXTENSION) } else { limit }.min(cap);
    let counts = [("iteration", done + 1), ("max_iterations", limit)];
    match verification::next(case) {
        Step::Done => Ruling::End {
            why: "verified_complete",
            message: reason::ralph_verified(),
            also: vec![Write::ClearVerification],
        },
        Step::Remind { text, verification } => case.refuse(text, &[], vec![Write::Verification(verification)]),
        Step::Ask { text, verification } => case.refuse(text, &counts, vec![Write::Verification(verification)]),
        Step::Work { hint, verification } => {
            let text = reason::ralph(done + 1, limit, is_extended, hint.as_deref(), case.state.prompt());
            case.refuse(text, &counts, verification.map(Write::Verification).into_iter().collect())
        }
    }
}

/// The end of a ralph that works through a team, once the team is over.
fn team_of_ralph(case: &Case<'_>) -> Option<(&'static str, String)> {
    let team = case.session.state_of(Mode::Team)?;
    if !case.state.fields().flag("linked_team") || !team.is_finished() || team.is_stale(case.now) {
        return None;
    }
    let phase = team.phase().or_else(|| team.fields().text("status")).unwrap_or_default();
    Some(match phase.to_ascii_lowercase().as_str() {
        "failed" => ("team_failed", reason::ralph_team_failed()),
        "cancelled" | "canceled" | "aborted" => ("team_cancelled", reason::ralph_team_cancelled()),
        _ => ("team_complete", reason::ralph_team_complete()),
    })
}

fn ultragoal(case: &Case<'_>) -> Ruling {
    let fields = case.state.fields();
    let phase = case.state.phase().or_else(|| fields.text("status")).unwrap_or_default().to_ascii_lowercase();
    let is_done = case.state.is_finished()
        || matches!(phase.as_str(), "all-done" | "all_done")
        || fields.text("completed_at").is_some()
        || fields.flag("all_done")
        || fields.flag("done")
        || case.session.goals.are_over();
    if is_done {
        return Ruling::Silent;
    }
    let limit = case.limit("max_reinforcements", ULTRAGOAL_MAX_REFUSALS).min(case.facts.hard_cap);
    let refusals = case.count("reinforcement_count");
    if refusals >= limit {
        return end("max_reinforcements_reached", reason::exhausted(Mode::Ultragoal, limit));
    }
    let objective = case.session.goals.objective(case.state);
    let text = reason::ultragoal(refusals + 1, limit, objective.as_deref().or(case.state.prompt()));
    case.refuse(text, &[("reinforcement_count", refusals + 1)], Vec::new())
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
    case.refuse(reason::autopilot(phase, case.state.prompt()), &[("reinforcement_count", refusals + 1)], Vec::new())
}

/// The stage in which the team has something to do, if it is in one and nobody has asked it to end.
fn team_stage(team: &ModeState) -> Option<&str> {
    let stage = TEAM_STAGE_MEMBERS.iter().find_map(|name| team.fields().text(name))?;
    let is_cancelled =
        team.fields().get("cancel").and_then(|cancel| cancel.get("requested")).is_some_and(|it| it == true);
    let is_at_work = TEAM_STAGES.iter().any(|known| stage.eq_ignore_ascii_case(known));
    (is_at_work && !is_cancelled && !team.is_finished()).then_some(stage)
}

fn team(case: &Case<'_>) -> Ruling {
    let refusals = case.session.team_refusals;
    let Some(stage) = team_stage(case.state) else {
        return if refusals > 0 { Ruling::Rest(Breaker::Team) } else { Ruling::Silent };
    };
    if refusals >= TEAM_MAX_REFUSALS {
        return Ruling::LetGo { message: reason::team_breaker(TEAM_MAX_REFUSALS), breaker: Breaker::Team };
    }
    let text = reason::team(stage, refusals + 1, TEAM_MAX_REFUSALS, case.state.prompt());
    case.refuse(text, &[], vec![Write::Breaker(Breaker::Team, refusals + 1)])
}

fn omc_teams(case: &Case<'_>) -> Ruling {
    let Some(stage) = team_stage(case.state) else { return Ruling::Silent };
    let refusals = case.count("reinforcement_count");
    if refusals >= TEAM_MAX_REFUSALS {
        return end("max_reinforcements_reached", reason::exhausted(Mode::OmcTeams, TEAM_MAX_REFUSALS));
    }
    let text = reason::omc_teams(stage, case.state.prompt());
    case.refuse(text, &[("reinforcement_count", refusals + 1)], Vec::new())
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
            also: vec![Write::ClearBreaker(Breaker::Ralplan)],
        };
    }
    let text = reason::ralplan(refusals + 1, RALPLAN_MAX_REFUSALS, case.state.prompt());
    case.refuse(text, &[], vec![Write::Breaker(Breaker::Ralplan, refusals + 1)])
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
    case.refuse(text, &[("cycle", cycle + 1)], Vec::new())
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
    case.refuse(text, &[("reinforcement_count", refusals + 1)], Vec::new())
}
