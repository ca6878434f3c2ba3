//! The path of one event, top to bottom: the agent's bytes in, an answer out, records left behind.
//!
//! [`handle`] is what `omc-host hook` does. It always gives an answer, in time and in the agent's dialect: the work is done on a
//! thread of its own, and if that panics or is late, the answer is silence (or what a required guest's failure means) and the
//! trail says so.

use std::ffi::OsStr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc;
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Map, Value};

use crate::audit::{self, About, Record};
use crate::capability::conditions::Conditions;
use crate::capability::session_environment;
use crate::config::{DenyChannel, Env, EnvVars, Paths};
use crate::input::{self, Input, Unreadable};
use crate::policy::{self, Grants};
use crate::protocol::contract::{self, Carry};
use crate::protocol::decision::{Merged, Opinion, merge};
use crate::protocol::dialect::{self, Dialect, Reply};
use crate::protocol::event::{Event, Kind};
use crate::registry::{self, Faults, Guest, Handler, Installed, Outcome, Registry};
use crate::runtime::{Call, Called, Fault, FaultKind, Runtime};
use crate::surroundings::Surroundings;

/// How much longer than the event's deadline the main thread waits for the event's own thread, in milliseconds: guests that are
/// late are its business, and only a stuck file system makes it late itself.
const GRACE: Duration = Duration::from_millis(100);

/// An answer, and what is to be done once it is out.
pub struct Answer {
    /// What the agent gets.
    pub reply: Reply,
    /// What the guests say together, if any was called.
    pub(crate) merged: Option<Merged>,
    pub(crate) trail: Trail,
}

/// What an event leaves behind.
pub(crate) struct Trail {
    /// Absent where they were not found in time: to look for them must not hold up the answer.
    paths: Option<Paths>,
    about: About,
    pub(crate) records: Vec<Record>,
    /// What guests did, if it is to be remembered.
    outcomes: Vec<(Guest, Option<FaultKind>)>,
    /// The guests of others that the event may concern, if the compiled code of one of them is missing or needs another seal.
    to_mend: Vec<Arc<Installed>>,
}

impl Answer {
    /// Writes the trail, counts faults, and starts the compiler where code was missing. What goes wrong with that is nobody's to
    /// hear: the agent has its answer.
    pub fn leave_trail(self) {
        let Trail { paths, about, mut records, outcomes, to_mend } = self.trail;
        let paths = paths
            .unwrap_or_else(|| Paths::resolve(&Env::from_process(), None, std::env::current_dir().ok().as_deref()));
        if !outcomes.is_empty() {
            let outcomes: Vec<_> = outcomes
                .iter()
                .map(|(guest, fault)| Outcome { guest: guest.name(), digest: guest.digest(), fault: *fault })
                .collect();
            match Faults::record(&paths, &outcomes) {
                Ok(notes) => records.extend(notes.into_iter().map(|note| about.note(note))),
                Err(error) => records.push(about.note(format!("faults were not counted: {error}"))),
            }
        }
        if let Some(folder) = &paths.state_dir {
            drop(audit::append(folder, &records));
        }
        if !to_mend.is_empty() {
            let guests = to_mend.iter().map(Arc::as_ref);
            drop(registry::compiler_beside().and_then(|compiler| registry::mend(&paths, guests, &compiler)));
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
    let event = Arc::new(decode(dialect, payload, &env));

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
        trail: Trail::new(About::event(&event, None), None, notes),
    }
}

/// The event that the agent means, with the session that the environment names where the payload names none.
pub(crate) fn decode(dialect: &dyn Dialect, payload: Map<String, Value>, env: &Env) -> Event {
    let event = dialect.decode(payload);
    match env.get(EnvVars::OMC_SESSION_ID).and_then(OsStr::to_str) {
        Some(session) => event.with_session(session),
        None => event,
    }
}

impl Trail {
    fn new(about: About, paths: Option<Paths>, notes: Vec<String>) -> Self {
        let mut records: Vec<_> = about.payload().into_iter().collect();
        records.extend(notes.into_iter().map(|note| about.note(note)));
        Self { paths, about, records, outcomes: Vec::new(), to_mend: Vec::new() }
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

    let required = config.settings.required();
    // Whether a required guest is there is only known of all of them.
    let registry =
        if required.is_empty() { Registry::load_for(&paths, event.kind_name()) } else { Registry::load(&paths) };
    notes.extend(registry.problem.as_ref().map(|problem| omc_state::chain(problem)));
    let conditions = match &unreadable {
        None => Conditions::new(event, surroundings),
        Some(_) => Conditions::of_unreadable(event, surroundings),
    };
    let mut handlers = registry.select(event, surroundings, &conditions);
    if unreadable.is_some() {
        handlers.retain(|handler| handler.policy.required);
    }
    if contract::rows(event.agent()).is_empty() && !handlers.is_empty() {
        // Whatever a guest did here would be done behind the back of an agent that hears nothing of it.
        handlers.clear();
        notes.push(format!("events of `{}` are only answered with silence", event.agent().name()));
    }
    if unreadable.is_none() && event.contract().kind == Kind::Other {
        notes.push(format!("unknown event `{}`", event.kind_name()));
    }
    let missing = registry.missing(required);
    notes.extend(missing.iter().map(|guest| format!("the guest `{guest}` is required and is not there; add it again")));
    let mut about = About::event(event, surroundings.project_root());
    if config.settings.log_payloads() {
        about.log_payload(event);
    }
    // Last, since settings of guests are read when guests ask for them.
    let problems = |notes: &mut Vec<String>| notes.extend(config.problems().map(ToString::to_string));
    if handlers.is_empty() && missing.is_empty() {
        problems(&mut notes);
        return Answer { reply: dialect.silent(event), merged: None, trail: Trail::new(about, Some(paths), notes) };
    }
    if let Err(refusal) = &config.state {
        notes.push(format!("no project, so guests have no files: {}", omc_state::chain(refusal)));
    }

    let encode = |merged: &Merged| {
        let reply = dialect.encode(event, merged);
        match config.settings.deny_channel() {
            DenyChannel::Json => reply,
            DenyChannel::Both => reply.with_refusal_twice(event, merged),
        }
    };

    // Which events a guest that is not there would have judged is not known. To refuse the use of tools is enough: whatever
    // else goes on, nothing is done, and the agent can still stop and say why.
    let missing_opinions = || {
        let missing = missing.iter().filter(|_| asks_for_permission(event));
        missing.map(|guest| without_judgement(event, guest, "it is not there"))
    };
    if !missing.is_empty() || handlers.iter().any(|handler| handler.policy.required) {
        let called = failed(&handlers, &Fault::host("the host came to no answer"));
        let opinions: Vec<_> = opinions(event, &handlers, &called).chain(missing_opinions()).collect();
        // It is set once, here.
        let _first = standby.set(encode(&merge(event, &opinions)));
    }
    let called = match unreadable {
        None => call(&handlers, event, surroundings, deadline),
        Some(fault) => failed(&handlers, &fault),
    };
    let opinions: Vec<_> = opinions(event, &handlers, &called).chain(missing_opinions()).collect();
    let mut save = |text: &str| save(surroundings, text, deadline + GRACE / 2, &mut notes);
    let mut merged = merge(event, &opinions).fit(event.contract(), &mut save);
    notes.extend(set_session_environment(surroundings, &mut merged));
    let reply = encode(&merged);
    problems(&mut notes);
    let mut trail = Trail::new(about, Some(paths), notes);
    for (handler, called) in handlers.iter().zip(&called) {
        trail.records.push(trail.about.call(&handler.guest, called, &merged));
        let fault = called.outcome.as_ref().err().map(|fault| fault.kind);
        if fault == Some(FaultKind::NotCompiled) || called.stale_seal {
            trail.to_mend.clone_from(&registry.installed);
        }
        if !handler.policy.required && registry.faults.are_changed_by(&handler.guest, fault) {
            trail.outcomes.push((handler.guest.clone(), fault));
        }
    }
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
    let calls = handlers.iter().map(|handler| {
        let guest = handler.guest.clone();
        let mut withheld = handler.policy.withheld.clone();
        withheld.extend(surroundings.withheld());
        let grants = Grants::of(&guest.requests(), guest.granted(), &withheld);
        let paths = surroundings.config.paths.clone();
        let is_refused =
            matches!(&guest, Guest::Installed(guest) if !surroundings.config.settings.admits_signer(guest.signer()));
        Call {
            imports: guest.imports(),
            code: Box::new(move || if is_refused { Err(unsigned()) } else { guest.code(&paths) }),
            event: Arc::clone(event),
            surroundings: Arc::clone(surroundings),
            grants,
            limits: handler.policy.limits.clone(),
            deadline,
        }
    });
    Runtime::default().call_all(calls.collect(), deadline)
}

/// What keeps a guest from being called that has not the signature which an operator requires.
fn unsigned() -> Fault {
    let why =
        "it has no signature by a key of `require-signature`; see `omc-host audit`, and add it again when it is signed";
    Fault::new(FaultKind::Signature, why)
}

/// All guests failed alike, before any of them was called.
fn failed(handlers: &[Handler], fault: &Fault) -> Vec<Called> {
    handlers.iter().map(|_| Called::failed(fault.clone(), Duration::ZERO)).collect()
}

/// Whether the event asks if a tool may be used.
fn asks_for_permission(event: &Event) -> bool {
    matches!(event.contract().block, Carry::Permission | Carry::Behavior)
}

/// Whether a required guest that wants the event and cannot judge it means that what is asked for may not be done.
///
/// Elsewhere a block is no caution: at a stop it would hold the agent for ever, and a result that is there is not undone.
fn can_fail_closed(event: &Event) -> bool {
    asks_for_permission(event) || matches!(event.kind(), Kind::UserPromptSubmit | Kind::UserPromptExpansion)
}

/// What stands in for a required guest that could not judge. Taking it away must not be a way around it.
fn without_judgement(event: &Event, guest: &str, why: &str) -> Opinion {
    let (decision, effects) = policy::unjudged(guest, why, can_fail_closed(event));
    Opinion { guest: guest.to_owned(), decision, effects }
}

/// What the guests said, in their order.
fn opinions<'a>(event: &'a Event, handlers: &'a [Handler], called: &'a [Called]) -> impl Iterator<Item = Opinion> + 'a {
    handlers.iter().zip(called).map(|(handler, called)| opinion(event, handler, called))
}

/// What a guest said, or what its failure policy says in its place.
fn opinion(event: &Event, handler: &Handler, called: &Called) -> Opinion {
    let guest = handler.guest.name();
    match &called.outcome {
        Ok((decision, effects)) => {
            Opinion { guest: guest.to_owned(), decision: decision.clone(), effects: effects.clone() }
        }
        Err(fault) if handler.policy.required => without_judgement(event, guest, fault.kind.name()),
        Err(_) => Opinion { guest: guest.to_owned(), ..Opinion::default() },
    }
}
