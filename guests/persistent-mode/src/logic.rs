//! Whether the agent may stop: a pure function of the event, the session's states and the time.
//!
//! The path of a decision: the modes in their [order](rules) say what they want; if that is anything at all, a
//! [bypass](bypass) may still let the agent go and leave every state as it is; a refusal then has to pass the no-progress
//! breaker. The caller makes the verdict's writes, and refuses only if they succeeded.

pub mod bypass;
mod reason;
pub mod review;
mod rules;
mod verification;

use omc_state::{
    ActiveSkill, Breaker, CancelSignal, Error, Goals, Invocation, Mode, ModeState, Pending, Prd, SessionId,
    SkillLedger, Store, Timestamp, ToolError, Verification,
};
use omc_turn::Turn;

pub use bypass::Bypass;
use rules::{RULES, Ruling};

/// Iteration at which ralph ends whatever its limit says, unless the user set another.
pub const DEFAULT_HARD_CAP: u64 = 500;

/// So many refusals in a row without a tool in between show that refusing does not help, unless the user set another number;
/// the next Stop is allowed. It is Claude Code's own number, so that the user gets our explanation and not its warning.
pub const DEFAULT_REFUSALS_WITHOUT_TOOL: u64 = 8;

/// What the event says.
#[derive(Debug, Clone, Default)]
pub struct StopFacts {
    /// The turn that ends.
    pub turn: Turn,
    /// What the session is waiting for, as the agent says.
    pub pending: Option<Pending>,
    /// What reviewers have answered lately, the newest last.
    pub reviews: Vec<review::Review>,
    /// A name that nobody has used, for a request to a reviewer.
    pub fresh_id: String,
    /// The session is a member of a team.
    pub is_team_worker: bool,
    /// Iteration at which ralph ends.
    pub hard_cap: u64,
    /// Refusals without a tool after which the agent may stop.
    pub max_refusals_without_tool: u64,
    /// How the agent is told to use a skill.
    pub invocation: Invocation,
}

/// What the session's files say.
#[derive(Debug, Default)]
pub struct SessionState {
    /// The session's own states, on or off.
    pub modes: Vec<(Mode, ModeState)>,
    /// States that could not be read, and why. They hold nobody.
    pub unreadable: Vec<(Mode, Error)>,
    /// Which modes have completed, and which other skill is at work.
    pub skills: SkillLedger,
    /// Cancel signals, valid or not.
    pub cancel_signals: Vec<CancelSignal>,
    /// Refusals by ralplan.
    pub ralplan_refusals: u64,
    /// Refusals by a team's stages.
    pub team_refusals: u64,
    /// Refusals since the last tool.
    pub refusals_without_tool: u64,
    /// What ultragoal works for.
    pub goals: Goals,
    /// What ralph works through.
    pub prd: Option<Prd>,
    /// What reviewers were asked and confirmed in this run of ralph.
    pub verification: Verification,
    /// Work that goes on without this turn.
    pub pending: Option<Pending>,
    /// A tool that failed a moment ago.
    pub tool_error: Option<ToolError>,
    /// Items of the project's to-do list that are open, for the words of ultrawork.
    pub open_todos: u64,
}

impl SessionState {
    /// Reads only what could hold the agent: the states of the modes, and the skill at work.
    pub fn load_modes(store: &Store, session: &SessionId) -> Self {
        let mut loaded = Self { skills: store.read_skills(session), ..Self::default() };
        for rule in &RULES {
            match store.read_mode(session, rule.mode) {
                Ok(Some(state)) => loaded.modes.push((rule.mode, state)),
                Ok(None) => {}
                Err(error) => loaded.unreadable.push((rule.mode, error)),
            }
        }
        loaded
    }

    /// Reads all that a decision needs.
    pub fn load(store: &Store, session: &SessionId, now: Timestamp) -> Self {
        let modes = Self::load_modes(store, session);
        let active = |mode| modes.active(mode);
        let verification = active(Mode::Ralph).map(|ralph| store.read_verification(session).of_run(ralph));
        Self {
            cancel_signals: store.read_cancel_signals(session),
            ralplan_refusals: store.read_breaker(session, Breaker::Ralplan, now),
            team_refusals: store.read_breaker(session, Breaker::Team, now),
            refusals_without_tool: store.read_breaker(session, Breaker::NoProgress, now),
            goals: active(Mode::Ultragoal).map(|_| store.read_goals()).unwrap_or_default(),
            prd: active(Mode::Ralph).and_then(|_| store.read_prd(session)),
            verification: verification.unwrap_or_default(),
            pending: store.read_pending(session, now),
            tool_error: store.read_tool_error(session, now),
            open_todos: active(Mode::Ultrawork).map_or(0, |_| store.read_todos().open()),
            ..modes
        }
    }

    /// Whether a state is on that may count (neither stale nor waiting for its skill to start), or a skill is at work.
    pub fn could_hold(&self, now: Timestamp) -> bool {
        let has_mode = self
            .modes
            .iter()
            .any(|(_, state)| state.is_active() && !state.is_stale(now) && !state.is_awaiting_confirmation(now));
        has_mode || self.skills.active().is_some_and(|skill| !skill.is_stale(now))
    }

    /// Whether the mode's state says that it is on.
    pub fn is_on(&self, mode: Mode) -> bool {
        self.active(mode).is_some()
    }

    fn active(&self, mode: Mode) -> Option<&ModeState> {
        self.state_of(mode).filter(|state| state.is_active())
    }

    fn state_of(&self, mode: Mode) -> Option<&ModeState> {
        self.modes.iter().find(|(found, _)| *found == mode).map(|(_, state)| state)
    }

    /// Whether the user, or the work itself, has ended the mode, whatever is left of its state.
    fn is_over(&self, mode: Mode, state: &ModeState, now: Timestamp) -> bool {
        !state.is_active()
            || self.skills.has_completed(mode, now)
            || self.cancel_signals.iter().any(|signal| signal.covers(mode, state, now))
    }

    /// The ultrawork that ralph brought along and that ends with it.
    fn linked_ultrawork(&self) -> Option<&ModeState> {
        let (ralph, ultrawork) = (self.state_of(Mode::Ralph)?, self.state_of(Mode::Ultrawork)?);
        ultrawork.came_with(ralph).then_some(ultrawork)
    }
}

/// What to do about a Stop. The default lets the agent go and says nothing.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Verdict {
    /// Why the agent has to go on; absent if it may stop.
    pub refusal: Option<String>,
    /// A word for the person.
    pub message: Option<String>,
    /// What has to be written before any of it is said.
    pub writes: Vec<Write>,
}

/// A change to the session's files.
#[derive(Debug, Clone, PartialEq)]
pub enum Write {
    /// The mode's new state.
    Mode(Mode, ModeState),
    /// A breaker's new count; 0 lets it start anew.
    Breaker(Breaker, u64),
    /// The skill at work, after it held the agent once more.
    Skill(ActiveSkill),
    /// The skill is no longer at work.
    EndSkill,
    /// What reviewers were asked and confirmed.
    Verification(Verification),
    /// Nothing is asked or confirmed any more.
    ClearVerification,
    /// Cancel signals whose time is over.
    SweepCancelSignals,
}

impl Write {
    /// Makes the change. For use under the session's lock.
    ///
    /// # Errors
    ///
    /// What keeps the file from being written.
    pub fn apply(&self, store: &Store, session: &SessionId, now: Timestamp) -> Result<(), Error> {
        match self {
            Self::Mode(mode, state) => store.write_mode(session, *mode, state),
            Self::Breaker(breaker, count) => store.write_breaker(session, *breaker, *count, now),
            Self::Skill(skill) => store.update_skill(session, skill),
            Self::EndSkill => store.end_active_skill(session),
            Self::Verification(verification) => store.write_verification(session, verification),
            Self::ClearVerification => store.clear_verification(session),
            Self::SweepCancelSignals => store.sweep_cancel_signals(session, now),
        }
    }
}

/// Decides about a Stop of the main conversation.
pub fn on_stop(facts: &StopFacts, state: &SessionState, now: Timestamp) -> Verdict {
    let mut verdict = decide(facts, state, now);
    for text in verdict.refusal.iter_mut().chain(&mut verdict.message) {
        *text = reason::name_commands(text, facts.invocation);
    }
    verdict
}

fn decide(facts: &StopFacts, state: &SessionState, now: Timestamp) -> Verdict {
    let Wishes { refusal, ended, mut writes } = ask_modes(facts, state, now);
    if refusal.is_none() && writes.is_empty() {
        return Verdict::default();
    }
    if let Some(bypass) = bypass::find(facts, facts.pending.or(state.pending)) {
        let message = refusal.and_then(|refusal| bypass.message(&refusal.holder));
        return Verdict { message, ..Verdict::default() };
    }

    let mut messages = ended;
    let mut said = None;
    if let Some(Refusal { text, writes: counted, .. }) = refusal {
        let (before, limit) = (state.refusals_without_tool, facts.max_refusals_without_tool);
        if before < limit {
            writes.extend(counted);
            said = Some(match &state.tool_error {
                // One paragraph, so that it is known as ours as a whole when it is pasted into a prompt.
                Some(error) => format!("{}\n{text}", reason::tool_error(error)),
                None => text,
            });
        } else if before == limit {
            messages.push(reason::no_progress(limit));
        }
        // One more than the limit remembers that the person was told; a tool starts the count anew.
        if before <= limit {
            writes.push(Write::Breaker(Breaker::NoProgress, before + 1));
        }
    }
    if !writes.is_empty() && state.cancel_signals.iter().any(|signal| !signal.is_valid(now)) {
        writes.push(Write::SweepCancelSignals);
    }
    let message = (!messages.is_empty()).then(|| messages.join("\n"));
    Verdict { refusal: said, message, writes }
}

/// What the modes and the skill want.
struct Wishes {
    /// The first that is not done.
    refusal: Option<Refusal>,
    /// What the person should know about those before it that have ended or let go.
    ended: Vec<String>,
    /// What has to be written about those.
    writes: Vec<Write>,
}

struct Refusal {
    /// The mode's or the skill's name.
    holder: String,
    text: String,
    writes: Vec<Write>,
}

fn ask_modes(facts: &StopFacts, state: &SessionState, now: Timestamp) -> Wishes {
    let mut wishes = Wishes { refusal: None, ended: Vec::new(), writes: Vec::new() };
    let linked = state.linked_ultrawork();
    let mut ralph_is_over = false;
    for rule in &RULES {
        let mode = rule.mode;
        let Some(found) = state.state_of(mode) else { continue };
        let is_over = state.is_over(mode, found, now);
        if mode == Mode::Ralph {
            ralph_is_over = is_over || found.is_finished();
        }
        let hidden = is_over || found.is_stale(now) || found.is_awaiting_confirmation(now);
        if hidden || (mode == Mode::Ultrawork && ralph_is_over && linked.is_some()) {
            continue;
        }
        match (rule.judge)(&rules::Case { state: found, session: state, facts, now }) {
            Ruling::Silent => {}
            Ruling::Rest(breaker) => wishes.writes.push(Write::Breaker(breaker, 0)),
            Ruling::LetGo { message, breaker } => {
                wishes.writes.push(Write::Breaker(breaker, 0));
                wishes.ended.push(message);
            }
            Ruling::Refuse { text, state, also } => {
                let mut writes = vec![Write::Mode(mode, state)];
                writes.extend(also);
                wishes.refusal = Some(Refusal { holder: mode.name().to_owned(), text, writes });
                return wishes;
            }
            Ruling::End { why, message, also } => {
                let mut end = |mode, state: &ModeState| {
                    let mut state = state.clone();
                    state.end(why, now);
                    wishes.writes.push(Write::Mode(mode, state));
                };
                end(mode, found);
                if mode == Mode::Ralph {
                    ralph_is_over = true;
                    if let Some(ultrawork) = linked.filter(|ultrawork| ultrawork.is_active()) {
                        end(Mode::Ultrawork, ultrawork);
                    }
                }
                wishes.writes.extend(also);
                wishes.ended.push(message);
            }
        }
    }
    ask_skill(state, now, &mut wishes);
    wishes
}

/// The skill at work comes last: it holds the agent only if no mode does.
fn ask_skill(state: &SessionState, now: Timestamp, wishes: &mut Wishes) {
    let Some(skill) = state.skills.active().filter(|skill| !skill.is_stale(now)) else { return };
    if state.cancel_signals.iter().any(|signal| signal.covers_skill(skill, now)) {
        return;
    }
    let (refusals, limit) = (skill.refusals(), skill.max_refusals());
    if refusals >= limit {
        wishes.writes.push(Write::EndSkill);
        return;
    }
    let mut counted = skill.clone();
    counted.count_refusal(now);
    wishes.refusal = Some(Refusal {
        holder: reason::name(skill.name()),
        text: reason::skill(skill.name(), refusals + 1, limit),
        writes: vec![Write::Skill(counted)],
    });
}

#[cfg(test)]
mod tests;
