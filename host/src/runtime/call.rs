//! One call of one guest: from its compiled code to what it did.

use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::sync::Arc;
use std::time::{Duration, Instant};

use wasmtime::component::{Component, Linker, Resource};
use wasmtime::{CallHook, Engine, Store, Trap};

use super::bindings::GuestPre;
use super::bindings::exports::omc::hook::handler::Decision as WitDecision;
use super::code::Code;
use super::fault::{Fault, FaultKind};
use super::store::{GuestState, Memories};
use super::{Linked, ticks};
use crate::capability::wasi::{self, Usage, Wasi};
use crate::capability::{self, FilesBudget};
use crate::config::{Limit, Limits};
use crate::policy::Grants;
use crate::protocol::decision::{Decision, Effects};
use crate::protocol::event::Event;
use crate::surroundings::Surroundings;
use crate::text;

/// Handles that a guest has without having asked for them: event, effects, and what they are lent to.
const LENT_HANDLES: usize = 16;

/// What is needed to call a guest.
pub(crate) struct Call {
    /// Opened or found by the call itself, since it may have to read files.
    pub(crate) code: Box<dyn FnOnce() -> Result<Code, Fault> + Send>,
    /// The interfaces that it imports, as far as is known before it is loaded.
    pub(crate) imports: Vec<String>,
    pub(crate) event: Arc<Event>,
    pub(crate) surroundings: Arc<Surroundings>,
    pub(crate) grants: Grants,
    pub(crate) limits: Limits,
    /// The event's deadline: the call's own is never later.
    pub(crate) deadline: Instant,
}

/// What a guest did.
pub(crate) struct Called {
    pub(crate) outcome: Result<(Decision, Effects), Fault>,
    /// The decision or effect that the guest wanted and had no grant for.
    pub(crate) not_granted: Option<&'static str>,
    /// What it used of its fuel; absent where it was stopped in the midst of a function, before that was written down.
    pub(crate) fuel: Option<u64>,
    pub(crate) memory_bytes: usize,
    pub(crate) elapsed: Duration,
    pub(crate) log: Vec<LogLine>,
    pub(crate) refused: BTreeMap<String, u32>,
    pub(crate) used: BTreeMap<&'static str, u32>,
    pub(crate) usage: Option<Usage>,
    /// Whether the seal of its compiled code should be renewed.
    pub(crate) stale_seal: bool,
}

/// A line that a guest wrote.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct LogLine {
    pub(crate) level: &'static str,
    pub(crate) text: String,
}

impl Called {
    /// A call that never got as far as the guest.
    pub(crate) fn failed(fault: Fault, elapsed: Duration) -> Self {
        Self {
            outcome: Err(fault),
            not_granted: None,
            fuel: Some(0),
            memory_bytes: 0,
            elapsed,
            log: Vec::new(),
            refused: BTreeMap::new(),
            used: BTreeMap::new(),
            usage: None,
            stale_seal: false,
        }
    }
}

impl Call {
    /// Runs the guest to its end or its limits.
    pub(super) fn run(self, linked: &Linked, began: Instant) -> Called {
        let prepared = (self.code)().and_then(|code| Ok((code.has_stale_seal(), code.load(&linked.engine)?)));
        let (stale_seal, component) = match prepared {
            Ok(prepared) => prepared,
            Err(fault) => return Called::failed(fault, began.elapsed()),
        };
        let fuel = self.limits.fuel;
        let deadline = self.deadline.min(Instant::now() + Duration::from_millis(self.limits.call_deadline_ms));
        let memories = Memories::new(&self.limits);
        let state = GuestState {
            wasi: Wasi::new(wasi::WasiConfig {
                preopens: capability::preopens(&self.grants, &self.surroundings),
                limits: capability::fs_limits(&self.limits),
                deadline,
            }),
            event: self.event,
            surroundings: self.surroundings,
            grants: self.grants,
            limits: self.limits,
            deadline,
            effects: Effects::default(),
            log: Vec::new(),
            log_bytes: 0,
            refused: BTreeMap::new(),
            used: BTreeMap::new(),
            files: FilesBudget::default(),
            holds_lock: false,
            memories,
            host_calls: 0,
        };
        let mut store = Store::new(&linked.engine, state);
        let mut fuel_is_known = true;
        let outcome = call(linked, &mut store, &component, &mut fuel_is_known);
        let left = store.get_fuel().ok().filter(|_| fuel_is_known);
        let state = store.data_mut();
        let (outcome, not_granted) = match outcome {
            Ok(decision) => {
                let (decision, not_granted) = state.grants.permit(decision);
                (Ok((decision, mem::take(&mut state.effects))), not_granted)
            }
            Err(fault) if fault.kind == FaultKind::Deadline && Instant::now() >= self.deadline => {
                // The event left it less time than its own limit, which is no fault of the guest.
                (Err(Fault::event_deadline()), None)
            }
            Err(fault) => (Err(fault), None),
        };
        let called = Called {
            outcome,
            not_granted,
            fuel: left.map(|left| fuel.saturating_sub(left)),
            memory_bytes: state.memories.used_bytes,
            elapsed: began.elapsed(),
            log: mem::take(&mut state.log),
            refused: mem::take(&mut state.refused),
            used: mem::take(&mut state.used),
            usage: Some(state.wasi.end()),
            stale_seal,
        };
        // The process is about to end, and unmapping the guest's memory and code would only delay the answer.
        mem::forget((store, component));
        called
    }
}

/// Links, instantiates and calls. Says whether the store knows how much fuel was used.
fn call(
    linked: &Linked,
    store: &mut Store<GuestState>,
    component: &Component,
    fuel_is_known: &mut bool,
) -> Result<Decision, Fault> {
    let limits = store.data().limits.clone();
    let whole = |limit: u64| usize::try_from(limit).unwrap_or(usize::MAX);
    let mut stopped = |error: wasmtime::Error| {
        *fuel_is_known = counts_fuel(&error);
        Fault::from_call(&error, &limits)
    };
    store.limiter(|state| &mut state.memories);
    store.set_fuel(limits.fuel).map_err(|error| Fault::host(format!("{error:#}")))?;
    store.set_epoch_deadline(ticks(Duration::from_millis(limits.call_deadline_ms)));
    // What a guest hands over in a call, and what it returns. What it is given is bounded where it is made.
    store.set_hostcall_fuel(whole(limits.host_call_bytes));
    // The host's resources are in a table with this limit, where the guest gets an error; this is for those of its own.
    store.set_max_component_handles(whole(limits.resources).saturating_add(LENT_HANDLES));
    store.call_hook(|mut store, transition| match transition {
        CallHook::CallingHost => store.data_mut().count_host_call(),
        _ => Ok(()),
    });
    let instance = link(linked, component)?.instantiate(&mut *store).map_err(&mut stopped)?;
    // One event and one set of effects a call: their handles carry no number that a guest could change.
    let (event, effects) = (Resource::new_own(0), Resource::new_own(0));
    let returned = instance.omc_hook_handler().call_handle(&mut *store, event, effects);
    match returned.map_err(&mut stopped)? {
        Ok(decision) => Ok(canonical(decision, store.data_mut())),
        Err(detail) => Err(Fault::new(FaultKind::Guest, detail)),
    }
}

/// Whether the fuel in the store is right after this error.
///
/// Compiled code counts in a register and writes it down where a function is entered, left or ends the guest. Other traps come
/// between, and a loop may have used everything by then.
fn counts_fuel(error: &wasmtime::Error) -> bool {
    matches!(
        error.downcast_ref::<Trap>(),
        None | Some(Trap::OutOfFuel | Trap::StackOverflow | Trap::UnreachableCodeReached)
    )
}

/// Links a component, without instantiating it: every import and export is compared with what is here by name and type.
pub(super) fn link(linked: &Linked, component: &Component) -> Result<GuestPre<GuestState>, Fault> {
    let pre = linked.linker()?.instantiate_pre(component).and_then(GuestPre::new);
    pre.map_err(|error| {
        let component_type = component.component_type();
        let imports: Vec<_> = component_type.imports(&linked.engine).map(|(name, _)| name.to_owned()).collect();
        let exports: Vec<_> = component_type.exports(&linked.engine).map(|(name, _)| name.to_owned()).collect();
        Fault::from_link(&error, &imports, &exports)
    })
}

/// A linker with what the components import: linking everything there is would be paid on every event.
pub(super) fn linker(engine: &Engine, imports: &[String]) -> wasmtime::Result<Linker<GuestState>> {
    let mut linker = Linker::new(engine);
    let imports: BTreeSet<_> = imports.iter().map(|import| without_version(import)).collect();
    let wanted = |name: &str| imports.contains(without_version(name));
    wasi::add_to_linker(&mut linker, &wanted)?;
    capability::add_to_linker(&mut linker, &wanted)?;
    Ok(linker)
}

/// The interface that a name of an import is a version of: `wasi:io/streams` of `wasi:io/streams@0.2.6`.
fn without_version(name: &str) -> &str {
    name.split_once('@').map_or(name, |(interface, _)| interface)
}

/// The decision with its reason, which is cut where it is over the limit.
fn canonical(decision: WitDecision, state: &mut GuestState) -> Decision {
    let units = usize::try_from(state.limits.reason_units).unwrap_or(usize::MAX);
    let mut cut = |reason: String| {
        let whole = reason.len();
        let reason = text::cut_to_units(reason, units);
        if reason.len() < whole {
            state.refuse_over(Limit::ReasonUnits);
        }
        reason
    };
    match decision {
        WitDecision::Pass => Decision::Pass,
        WitDecision::Allow => Decision::Allow,
        WitDecision::Ask(reason) => Decision::Ask(cut(reason)),
        WitDecision::Block(reason) => Decision::Block(cut(reason)),
        WitDecision::Halt(reason) => Decision::Halt(cut(reason)),
    }
}
