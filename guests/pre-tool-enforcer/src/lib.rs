//! Reminders and rules before a tool runs.
//!
//! The rules come first, the cheapest in front: an ultragoal run without its goal, a model that cannot be routed, tools that are
//! left to subagents, a context that is too full for a new agent. One refusal ends the event, and it is never throttled. What is
//! then said is at most a question about the new text and one routine reminder; that one is throttled by its kind, and most
//! calls end at the look into the throttle's file.
//!
//! Skills are confirmed and protected by persistent-mode. Faults are silent and open, but for the throttle: what cannot be
//! remembered is said again.

pub mod logic;
mod payload;

use std::collections::BTreeMap;
use std::time::SystemTime;

use omc_bare as _;
use omc_guest::project_files::{self, Root};
use omc_guest::{
    Decision, Effects, Error, Event, EventKind, Guest, environment, log, settings, state_lock, transcript,
};
use omc_state::{Mode, SessionId, Store, Timestamp, Todos};

use logic::goal::{self, Goal, Seen};
use logic::model::{self, Routing, Surroundings};
use logic::reminder::{self, BOULDER, Reminder, Spawn};
use logic::{DEFAULT_PREFLIGHT_PERCENT, delegation, preflight_refusal, slop};

/// How long a kind of reminder is not repeated, in milliseconds, unless the user set another time: the original's 5 minutes.
const COOLDOWN_MS: i64 = 5 * 60 * 1000;

/// How much of the transcript's end is looked at for a goal, in bytes: as much as the host gives.
const GOAL_TAIL_BYTES: u32 = 256 * 1024;

/// How much of an agent's definition is read, in bytes: its front matter.
const DEFINITION_BYTES: u32 = 4 * 1024;

/// Largest list of to-dos that is read, in bytes.
const TODO_BYTES: u32 = 256 * 1024;

/// Modes that the boulder rolls in. Ralplan plans, and its end is near.
const BOULDER_MODES: [Mode; 7] =
    [Mode::Ralph, Mode::Autopilot, Mode::Ultrawork, Mode::Ultraqa, Mode::Ultragoal, Mode::Team, Mode::OmcTeams];

/// The guest.
#[derive(Debug)]
pub struct PreToolEnforcer;

omc_guest::export!(PreToolEnforcer, {
    "description": "Reminds, and refuses what the user's rules refuse, before a tool runs",
    "subscriptions": [{"event": "pre-tool-use", "order": 100}],
    "requests": [
        {"capability": "omc", "scope": ["rw:/omc/state", "ro:/omc/todos.json", "ro:/omc/ultragoal"], "reason": "reads modes, agents, goals and to-dos, and remembers what was said when"},
        {"capability": "read", "scope": ["project:.claude/todos.json", "project:.claude/agents/*.md", "agent:agents/*.md"], "reason": "counts to-dos, and looks up the model in an agent's definition"},
        {"capability": "transcript", "reason": "looks how full the context is before an agent starts, and whether the goal of a run is set"},
        {"capability": "update-input", "reason": "fills in the model that the user configured for an agent"},
        {"capability": "env", "scope": [
            "OMC_QUIET", "OMC_PRE_TOOL_ADVISORY_COOLDOWN_MS", "OMC_AGENT_PREFLIGHT_CONTEXT_THRESHOLD", "ALLOW_ULTRAGOAL_WITHOUT_GOAL",
            "OMC_ROUTING_FORCE_INHERIT", "OMC_SUBAGENT_MODEL", "CLAUDE_MODEL", "ANTHROPIC_MODEL", "CLAUDE_CODE_USE_BEDROCK",
            "CLAUDE_CODE_USE_VERTEX", "ANTHROPIC_BASE_URL",
            "CLAUDE_CODE_BEDROCK_OPUS_MODEL", "CLAUDE_CODE_BEDROCK_SONNET_MODEL", "CLAUDE_CODE_BEDROCK_HAIKU_MODEL", "CLAUDE_CODE_BEDROCK_FABLE_MODEL",
            "ANTHROPIC_DEFAULT_OPUS_MODEL", "ANTHROPIC_DEFAULT_SONNET_MODEL", "ANTHROPIC_DEFAULT_HAIKU_MODEL", "ANTHROPIC_DEFAULT_FABLE_MODEL"
        ], "reason": "switches and limits, and which models the session's provider knows"}
    ]
});

impl Guest for PreToolEnforcer {
    fn handle(event: &Event<'_>, effects: &mut Effects<'_>) -> Result<Decision, Error> {
        if event.kind() != EventKind::PreToolUse {
            return Ok(Decision::Pass);
        }
        let call = Call {
            tool: event.tool_name().unwrap_or_default(),
            event,
            store: Store::new(&omc_guest::omc_dir()),
            session: event.session_id().as_deref().and_then(SessionId::parse),
            now: SystemTime::now().into(),
        };
        let mut model = None;
        if let Some(reason) = call.refusal(&mut model) {
            return Ok(Decision::Block(reason));
        }
        if let Some(model) = model
            && let Some(mut input) = event.field("/tool_input").filter(serde_json::Value::is_object)
        {
            input["model"] = model.into();
            if let Err(error) = effects.update_input(&input) {
                log::warn(&format!("the model was not filled in: {error}"));
            }
        }
        let texts: Vec<String> = [call.slop(), call.reminder(model)].into_iter().flatten().collect();
        if !texts.is_empty() {
            effects.add_context(&texts.join("\n\n"))?;
        }
        Ok(Decision::Pass)
    }
}

/// A tool that is about to run, and what is around it.
struct Call<'a> {
    tool: String,
    event: &'a Event<'a>,
    store: Store,
    session: Option<SessionId>,
    now: Timestamp,
}

impl Call<'_> {
    /// Why the tool does not run. Finds out on the way which model an agent gets by the user's configuration.
    fn refusal(&self, model: &mut Option<&'static str>) -> Option<String> {
        if let Some(reason) = self.without_goal() {
            return Some(reason);
        }
        if self.tool == "Task" {
            match self.routing() {
                Routing::Refuse(reason) => return Some(reason),
                Routing::Use(tier) => *model = Some(tier),
                Routing::Keep => {}
            }
        }
        self.not_delegated().or_else(|| self.too_full())
    }

    /// An ultragoal run is on, and the agent's goal is not its objective. Subagents have no goals of their own.
    fn without_goal(&self) -> Option<String> {
        let session = self.session.as_ref().filter(|_| self.event.subagent_id().is_none())?;
        let state = self.store.read_mode(session, Mode::Ultragoal).ok().flatten()?;
        if !state.is_live(self.now) || environment::get("ALLOW_ULTRAGOAL_WITHOUT_GOAL").as_deref() == Some("1") {
            return None;
        }
        let goals = self.store.read_goals();
        let is_about_the_run = payload::goal_call(self.event, &self.tool).is_about_the_run();
        if is_about_the_run || !goal::binds(&state, &goals, self.event.project_root().as_deref(), self.now) {
            return None;
        }
        let in_payload = goal::PAYLOAD.iter().find_map(|pointer| Goal::of_payload(&self.event.field(pointer)?));
        let actual = in_payload.or_else(|| self.goal_of_transcript(session));
        goal::refusal(goals.objective(&state).as_deref(), actual.as_ref())
    }

    /// The goal in the transcript's end, else the one that was there before.
    fn goal_of_transcript(&self, session: &SessionId) -> Option<Goal> {
        let seen = transcript::tail(GOAL_TAIL_BYTES).map_or(Seen::Nothing, |tail| goal::in_transcript(&tail));
        let objective = match seen {
            Seen::Nothing => return self.store.read_seen_goal(session).map(Goal::active),
            Seen::Cleared => None,
            Seen::Set(objective) => Some(objective),
        };
        if let Err(error) = self.store.remember_goal(&state_lock::acquire, session, objective.as_deref(), self.now) {
            log::warn(&format!("the goal was not remembered: {}", error.chain()));
        }
        objective.map(Goal::active)
    }

    fn routing(&self) -> Routing {
        let Some(input) = self.event.field("/tool_input") else { return Routing::Keep };
        let definition = |agent: &str| {
            let places =
                [(Root::Project, format!(".claude/agents/{agent}.md")), (Root::Agent, format!("agents/{agent}.md"))];
            let read = |(root, path): (Root, String)| project_files::read_start(root, &path, DEFINITION_BYTES).ok();
            model::of_definition(&places.into_iter().find_map(read)?)
        };
        let models: BTreeMap<String, String> = settings::get("agents").unwrap_or_default();
        let around = Surroundings {
            env: &|name| environment::get(name),
            force_inherit: settings::get("routing.forceInherit").unwrap_or(false),
            models: &models,
            definition: &definition,
        };
        model::route(&input, &around)
    }

    /// The user wants this tool to be left to subagents by now.
    fn not_delegated(&self) -> Option<String> {
        let rules: Vec<delegation::Rule> = settings::get("routing.forceDelegation").unwrap_or_default();
        let rules: Vec<_> = rules.into_iter().filter(|rule| rule.is_about(&self.tool)).collect();
        if rules.is_empty() {
            return None;
        }
        let judge = |uses: &[omc_state::ToolUse]| rules.iter().find_map(|rule| rule.refusal(&self.tool, uses));
        let Some(session) = &self.session else { return judge(&[]) };
        self.store.judge_tool_use(&state_lock::acquire, session, &self.tool, self.now, judge).unwrap_or_else(|error| {
            log::warn(&format!("the use of `{}` was not counted: {}", self.tool, error.chain()));
            judge(&[])
        })
    }

    /// The context is too full for another agent, whose result would go into it.
    fn too_full(&self) -> Option<String> {
        if !matches!(Reminder::of(&self.tool, 0), Reminder::Spawn) {
            return None;
        }
        let threshold = payload::number("OMC_AGENT_PREFLIGHT_CONTEXT_THRESHOLD");
        let threshold = threshold.map_or(DEFAULT_PREFLIGHT_PERCENT, |set| set.clamp(1, 100).unsigned_abs());
        preflight_refusal(payload::context_percent(self.event, &self.store, self.session.as_ref())?, threshold)
    }

    fn slop(&self) -> Option<String> {
        let texts = payload::new_texts(self.event, &self.tool);
        if !texts.iter().any(|text| slop::is_slop(text)) {
            return None;
        }
        let root = self.event.project_root().unwrap_or_default();
        let paths = self.event.tool_paths().unwrap_or_default();
        let below_root = paths.iter().map(|named| named.path.strip_prefix(&root).unwrap_or(&named.path));
        (!below_root.into_iter().any(slop::is_documentation)).then(|| slop::WARNING.to_owned())
    }

    fn reminder(&self, model: Option<&str>) -> Option<String> {
        let quiet = payload::number("OMC_QUIET").map_or(0, |quiet| u64::try_from(quiet).unwrap_or(0));
        match Reminder::of(&self.tool, quiet) {
            Reminder::Silent => None,
            Reminder::Routine(routine) => self.throttled(routine.kind, || Some(routine.text(self.todos()))),
            Reminder::Boulder => self.throttled("boulder", || self.is_in_a_mode().then(|| BOULDER.to_owned())),
            Reminder::Spawn => self.about_the_agent(model, quiet),
        }
    }

    fn about_the_agent(&self, model: Option<&str>, quiet: u64) -> Option<String> {
        let spawn = self.event.field("/tool_input").as_ref().and_then(|input| Spawn::of(input, model));
        let team = self.session.as_ref().filter(|_| spawn.as_ref().is_some_and(|spawn| !spawn.is_named));
        if let (Some(spawn), Some(session)) = (&spawn, team)
            && let Some(team) = self.store.team_of(session, self.now)
        {
            return Some(spawn.team_line(&team.name));
        }
        if quiet >= reminder::SPAWN_SILENT_FROM {
            return None;
        }
        let Some(spawn) = spawn else {
            return self.throttled("spawn", || Some(reminder::generic_spawn(self.todos())));
        };
        let running = self.session.as_ref().map_or(0, |session| self.store.read_subagents(session).counts().running);
        let (text, kind) = spawn.line(self.todos(), running);
        self.throttled(&kind, || Some(text))
    }

    /// The text, unless one of its kind was given too lately. Looks before the text is made, and claims after that.
    fn throttled(&self, kind: &str, text: impl FnOnce() -> Option<String>) -> Option<String> {
        let cooldown = payload::number("OMC_PRE_TOOL_ADVISORY_COOLDOWN_MS").unwrap_or(COOLDOWN_MS);
        let Some(session) = self.session.as_ref().filter(|_| cooldown > 0) else { return text() };
        if !self.store.is_advice_due(session, &[kind], cooldown, self.now) {
            return None;
        }
        let text = text()?;
        let is_due = self
            .store
            .claim_advice(&state_lock::acquire, session, &[kind], cooldown, self.now)
            .unwrap_or_else(|error| {
                log::warn(&format!("the reminder was not noted: {}", error.chain()));
                true
            });
        is_due.then_some(text)
    }

    fn todos(&self) -> Todos {
        let of_agent = project_files::read(Root::Project, ".claude/todos.json", TODO_BYTES);
        self.store.read_todos().and(of_agent.map_or_else(|_| Todos::default(), |text| Todos::parse(&text)))
    }

    /// Whether a mode of the session is on, by the rules by which it would hold a Stop.
    fn is_in_a_mode(&self) -> bool {
        let Some(session) = &self.session else { return false };
        let is_on = |mode: &Mode| {
            let state = self.store.read_mode(session, *mode).ok().flatten();
            state.is_some_and(|state| state.is_live(self.now) && !state.is_awaiting_confirmation(self.now))
        };
        BOULDER_MODES.iter().any(is_on)
    }
}

#[cfg(test)]
mod tests;
