//! The path of one event, top to bottom: the agent's bytes in, an answer out, records left behind.
//!
//! [`handle`] is what `omc-host hook` does. It always gives an answer, in time and in the agent's dialect: the work is done on a
//! thread of its own, and if that panics or is late, the answer is silence (or what a required guest's failure means) and the
//! trail says so.

use std::error::Error;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc;
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use crate::audit::{self, About, Record};
use crate::capability::session_environment;
use crate::config::{Env, Paths};
use crate::input::{self, Input, Unreadable};
use crate::policy::{FailurePolicy, Grants};
use crate::protocol::contract::Carry;
use crate::protocol::decision::{Effects, Merged, Opinion, merge};
use crate::protocol::dialect::{self, Dialect, Reply};
use crate::protocol::event::{Event, Kind};
use crate::registry::{Handler, Registry};
use crate::runtime::{Call, Called, Fault, FaultKind, Runtime};
use crate::surroundings::Surroundings;

/// How much longer than the event's deadline the main thread waits for the event's own thread, in milliseconds: guests that are
/// late are its business, and only a stuck file system makes it late itself.
const GRACE: Duration = Duration::from_millis(100);

/// An answer, and what to write into the trail once it is out.
pub struct Answer {
    /// What the agent gets.
    pub reply: Reply,
    /// What the guests say together, if any was called.
    pub(crate) merged: Option<Merged>,
    pub(crate) trail: Trail,
}

/// Records and where they go.
pub(crate) struct Trail {
    /// Absent where they were not found in time: to look for them must not hold up the answer.
    paths: Option<Paths>,
    pub(crate) records: Vec<Record>,
}

impl Answer {
    /// Writes the trail. What goes wrong with that is nobody's to hear: the agent has its answer.
    pub fn leave_trail(self) {
        let Trail { paths, records } = self.trail;
        let paths = paths
            .unwrap_or_else(|| Paths::resolve(&Env::from_process(), None, std::env::current_dir().ok().as_deref()));
        if let Some(folder) = &paths.state_dir {
            drop(audit::append(folder, &records));
        }
    }
}

/// Handles one event from standard input. `agent` is what `--agent` said, `began` when the process started, `complaint` what is
/// wrong with the command line.
pub fn handle(agent: Option<&str>, began: Instant, complaint: Option<&str>) -> Answer {
    let env = Env::from_process();
    let (payload, unreadable, repaired) = match input::read_stdin(&input::Limits::default()) {
        Ok(Input { payload, repaired, .. }) => (payload, None, repaired),
        Err(Unreadable { fault, partial }) => (partial, Some(fault), false),
    };
    let dialect = dialect::resolve(agent, &payload, &|name| std::env::var_os(name).is_some());
    let event = Arc::new(dialect.decode(payload));

    let mut notes = Vec::new();
    notes.extend(complaint.map(|complaint| format!("wrong arguments: {complaint}")));
    if let Some(agent) = agent
        && dialect::dialect(agent).is_none()
    {
        notes.push(format!("unknown agent `{agent}`; the event reads as one of `{}`", event.agent().name()));
    }
    if repaired {
        notes.push("the event was not JSON by the letter and has been repaired".to_owned());
    }
    let unreadable =
        unreadable.map(|fault| Fault::new(FaultKind::Input, format!("the event could not be read: {fault}")));
    notes.extend(unreadable.as_ref().map(|fault| fault.detail.clone()));

    let (sender, receiver) = mpsc::channel();
    let deadline = event.contract().due(began, Instant::now());
    let standby = Arc::new(OnceLock::new());
    let work = {
        let (event, notes, standby) = (Arc::clone(&event), notes.clone(), Arc::clone(&standby));
        move || {
            let work = || {
                let surroundings = Arc::new(Surroundings::find(&event, &env));
                answer(dialect, &event, unreadable, &surroundings, deadline, &standby, notes)
            };
            // Nobody listens after the deadline.
            drop(sender.send(catch_unwind(AssertUnwindSafe(work))));
        }
    };
    let failure = match thread::Builder::new().spawn(work) {
        Err(error) => format!("the host failed to start a thread: {error}"),
        Ok(_) => match receiver.recv_timeout((deadline + GRACE).saturating_duration_since(Instant::now())) {
            Ok(Ok(answer)) => return answer,
            Ok(Err(_)) | Err(mpsc::RecvTimeoutError::Disconnected) => "the host's own code panicked".to_owned(),
            Err(mpsc::RecvTimeoutError::Timeout) => "the host was not done by the event's deadline".to_owned(),
        },
    };
    notes.push(failure);
    Answer {
        reply: standby.get().cloned().unwrap_or_else(|| dialect.silent(&event)),
        merged: None,
        trail: Trail::about(&About::event(&event, None), None, notes),
    }
}

impl Trail {
    fn about(about: &About, paths: Option<Paths>, notes: Vec<String>) -> Self {
        Self { paths, records: notes.into_iter().map(|note| about.note(note)).collect() }
    }
}

/// From an event to its answer. Of an event that could not be read only the beginning is there: enough to know who is
/// responsible for it, not enough to judge, so that only required guests count, as if each had failed.
///
/// `standby` is what is said if this comes to no end in time: from the moment it is known that a guest is required.
pub(crate) fn answer(
    dialect: &dyn Dialect,
    event: &Arc<Event>,
    unreadable: Option<Fault>,
    surroundings: &Arc<Surroundings>,
    deadline: Instant,
    standby: &OnceLock<Reply>,
    mut notes: Vec<String>,
) -> Answer {
    let config = &surroundings.config;
    let paths = config.paths.clone();
    let deadline = deadline.min(Instant::now() + Duration::from_millis(config.settings.event_deadline_ms()));

    let registry = Registry::load(&paths);
    notes.extend(registry.problem.as_ref().map(|problem| with_causes(problem)));
    let mut handlers = registry.select(event, config);
    if unreadable.is_some() {
        handlers.retain(|handler| handler.policy.required);
    }
    if unreadable.is_none() && event.contract().kind == Kind::Other {
        notes.push(format!("unknown event `{}`", event.kind_name()));
    }
    let missing = registry.missing(config.settings.required());
    notes.extend(missing.iter().map(|guest| format!("the guest `{guest}` is required and is not there; add it again")));
    let about = About::event(event, surroundings.project_root());
    // Last, since settings of guests are read when guests ask for them.
    let problems = |notes: &mut Vec<String>| notes.extend(config.problems().map(ToString::to_string));
    if handlers.is_empty() && missing.is_empty() {
        problems(&mut notes);
        return Answer { reply: dialect.silent(event), merged: None, trail: Trail::about(&about, Some(paths), notes) };
    }
    if let Err(refusal) = &config.state {
        notes.push(format!("no project, so guests have no files: {}", with_causes(refusal)));
    }

    let missing_opinions =
        || missing.iter().filter(|_| asks_for_permission(event)).map(|guest| closed_as_missing(guest));
    if !missing.is_empty() || handlers.iter().any(|handler| handler.policy.required) {
        let called = failed(&handlers, &Fault::host("the host came to no answer"));
        let opinions: Vec<_> = opinions(&handlers, &called).chain(missing_opinions()).collect();
        // It is set once, here.
        let _first = standby.set(dialect.encode(event, &merge(event, &opinions)));
    }
    let called = match unreadable {
        None => call(&handlers, event, surroundings, deadline),
        Some(fault) => failed(&handlers, &fault),
    };
    let opinions: Vec<_> = opinions(&handlers, &called).chain(missing_opinions()).collect();
    let mut save = |text: &str| save(surroundings, text, deadline + GRACE / 2, &mut notes);
    let mut merged = merge(event, &opinions).fit(event.contract(), &mut save);
    notes.extend(set_session_environment(surroundings, &mut merged));
    let reply = dialect.encode(event, &merged);
    problems(&mut notes);
    let mut trail = Trail::about(&about, Some(paths), notes);
    trail
        .records
        .extend(handlers.iter().zip(&called).map(|(handler, called)| about.call(&handler.guest, called, &merged)));
    Answer { reply, merged: Some(merged), trail }
}

/// Gives the agent the variables that guests set, before the answer: it looks for them when it has that. Says what went wrong.
fn set_session_environment(surroundings: &Surroundings, merged: &mut Merged) -> Option<String> {
    if merged.session_environment.is_empty() || surroundings.is_dry_run() {
        return None;
    }
    let problem = match surroundings.session_env_file() {
        None => "the agent names no file for the session's variables".to_owned(),
        Some(file) => {
            let error = session_environment::append(file, &merged.session_environment).err()?;
            format!("the agent's file for the session's variables cannot be used: {error}")
        }
    };
    merged.drop_session_environment();
    Some(problem)
}

/// Keeps a text that is too long for the answer, until then at the latest, and says where it is.
fn save(surroundings: &Surroundings, text: &str, until: Instant, notes: &mut Vec<String>) -> Option<String> {
    let saved = surroundings.spill()?.save_until(text, until);
    saved.map_err(|error| notes.push(format!("a text that is too long for the agent was cut: {error}"))).ok()
}

/// Calls the guests side by side.
fn call(handlers: &[Handler], event: &Arc<Event>, surroundings: &Arc<Surroundings>, deadline: Instant) -> Vec<Called> {
    // One engine has one size of stack: the smallest that one of the guests may have.
    let stacks = handlers.iter().map(|handler| handler.policy.limits.wasm_stack_bytes);
    let wasm_stack_bytes = stacks.min().and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or_default();
    let runtime = match Runtime::new(wasm_stack_bytes) {
        Ok(runtime) => runtime,
        Err(fault) => return failed(handlers, &fault),
    };
    let calls = handlers.iter().map(|handler| {
        let guest = handler.guest.clone();
        let mut withheld = handler.policy.withheld.clone();
        withheld.extend(surroundings.withheld());
        let grants = Grants::of(&guest.requests(), guest.granted(), &withheld);
        let paths = surroundings.config.paths.clone();
        Call {
            code: Box::new(move || guest.code(&paths)),
            event: Arc::clone(event),
            surroundings: Arc::clone(surroundings),
            grants,
            limits: handler.policy.limits.clone(),
            deadline,
        }
    });
    runtime.call_all(calls.collect(), deadline)
}

/// An error and what caused it, for the trail.
fn with_causes(error: &dyn Error) -> String {
    let causes = std::iter::successors(error.source(), |&error| error.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

/// All guests failed alike, before any of them was called.
fn failed(handlers: &[Handler], fault: &Fault) -> Vec<Called> {
    handlers.iter().map(|_| Called::failed(fault.clone(), Duration::ZERO)).collect()
}

/// Whether the event asks if something may be done.
///
/// Which events a guest that is not there would have judged is not known. To refuse these is enough: whatever else goes on,
/// nothing is done, and the agent can still stop and say why.
fn asks_for_permission(event: &Event) -> bool {
    matches!(event.contract().block, Carry::Permission | Carry::Behavior)
}

/// What stands in for a required guest that is not there: taking it away must not be a way around it.
fn closed_as_missing(guest: &str) -> Opinion {
    let decision = FailurePolicy::Closed.decide(guest, "it is not there");
    Opinion { guest: guest.to_owned(), decision, effects: Effects::default() }
}

/// What the guests said, in their order.
fn opinions<'a>(handlers: &'a [Handler], called: &'a [Called]) -> impl Iterator<Item = Opinion> + 'a {
    handlers.iter().zip(called).map(|(handler, called)| opinion(handler, called))
}

/// What a guest said, or what its failure policy says in its place.
fn opinion(handler: &Handler, called: &Called) -> Opinion {
    let guest = handler.guest.name().to_owned();
    match &called.outcome {
        Ok((decision, effects)) => Opinion { guest, decision: decision.clone(), effects: effects.clone() },
        Err(fault) => {
            let policy = if handler.policy.required { FailurePolicy::Closed } else { FailurePolicy::Open };
            let decision = policy.decide(&guest, fault.kind.name());
            Opinion { guest, decision, effects: Effects::default() }
        }
    }
}
