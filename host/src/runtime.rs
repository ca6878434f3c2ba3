//! Running guests: the engine, a store with limits for each call, and what comes back.
//!
//! Called by `dispatch` with the guests that an event selects. Each runs on a thread of its own, may block there, and sends back
//! what it did; the calling thread turns wall-clock time into the engine's epochs and stops waiting at the event's deadline. So
//! whatever a guest or a file system does, the answer is in time. Nothing here compiles.

mod bindings;
mod call;
mod code;
mod fault;
mod store;

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use omc_artifact::WASM_STACK_BYTES;
use wasmtime::Engine;
use wasmtime::component::Linker;

pub(crate) use bindings::omc::hook as wit;
pub(crate) use call::{Call, Called, LogLine};
pub(crate) use code::{Aligned, Code, EmbeddedCode};
pub(crate) use fault::{Fault, FaultKind};
pub(crate) use store::GuestState;

/// Length of an epoch, in milliseconds: a guest is stopped at most this long after its deadline. Shorter costs more wake-ups of
/// the waiting thread, and only on events that take this long at all.
const TICK: Duration = Duration::from_millis(10);

/// Stack for the host functions that a guest calls, in bytes, beside the guest's own: an overflow of the guest never meets it.
const HOST_STACK_BYTES: usize = 1024 * 1024;

/// What a thread asks the allocator for at its start, in bytes, to give it back at once: glibc grows the heap of a thread by a page
/// at a time, a system call each, and keeps what it has. A call needs about this much, and less than that is not a mapping of its own.
const ARENA_BYTES: usize = 120 * 1024;

/// The engines of this process, each with its linker. One engine has one size of stack, and nearly always there is one.
#[derive(Default)]
pub(crate) struct Runtime {
    linked: BTreeMap<usize, Arc<Linked>>,
}

/// An engine, and what guests are linked with.
///
/// The linker holds what the guests of this event import, and is made once for all of them: while they load their code, which takes
/// about as long, or by the first that needs it.
struct Linked {
    engine: Engine,
    imports: Arc<[String]>,
    linker: OnceLock<Result<Linker<GuestState>, Fault>>,
}

impl Linked {
    fn new(wasm_stack_bytes: usize, imports: Arc<[String]>) -> Result<Self, Fault> {
        Ok(Self { engine: engine(wasm_stack_bytes)?, imports, linker: OnceLock::new() })
    }

    fn linker(&self) -> Result<&Linker<GuestState>, Fault> {
        // The same name is only given twice if our own tables say so.
        let make = || call::linker(&self.engine, &self.imports).map_err(|error| Fault::host(format!("{error:#}")));
        self.linker.get_or_init(make).as_ref().map_err(Fault::clone)
    }
}

impl Runtime {
    /// The engine that gives guests a stack of this size, in bytes.
    fn linked(&mut self, wasm_stack_bytes: usize, imports: &Arc<[String]>) -> Result<Arc<Linked>, Fault> {
        match self.linked.entry(wasm_stack_bytes) {
            Entry::Occupied(linked) => Ok(Arc::clone(linked.get())),
            Entry::Vacant(place) => {
                Ok(Arc::clone(place.insert(Arc::new(Linked::new(wasm_stack_bytes, Arc::clone(imports))?))))
            }
        }
    }

    /// Runs the calls side by side and returns what each did, in their order. Those that are not done by the deadline are given
    /// up: their threads are left behind, and the process is about to end.
    pub(crate) fn call_all(mut self, mut calls: Vec<Call>, deadline: Instant) -> Vec<Called> {
        let began = Instant::now();
        let mut done: Vec<Option<Called>> = calls.iter().map(|_| None).collect();
        let imports: BTreeSet<_> = calls.iter_mut().flat_map(|call| mem::take(&mut call.imports)).collect();
        let imports: Arc<[String]> = imports.into_iter().collect();
        let (sender, receiver) = mpsc::channel();
        for (place, call) in calls.into_iter().enumerate() {
            let wasm_stack_bytes = usize::try_from(call.limits.wasm_stack_bytes).unwrap_or(usize::MAX);
            let linked = match self.linked(wasm_stack_bytes, &imports) {
                Ok(linked) => linked,
                Err(fault) => {
                    done[place] = Some(Called::failed(fault, began.elapsed()));
                    continue;
                }
            };
            let sender = sender.clone();
            let work = move || {
                drop(Vec::<u8>::with_capacity(ARENA_BYTES));
                let called = catch_unwind(AssertUnwindSafe(|| call.run(&linked, began)))
                    .unwrap_or_else(|_| Called::failed(Fault::host("the host's own code panicked"), began.elapsed()));
                // Nobody listens after the deadline.
                drop(sender.send((place, called)));
            };
            let stack_size = wasm_stack_bytes.saturating_add(HOST_STACK_BYTES);
            if let Err(error) = thread::Builder::new().stack_size(stack_size).spawn(work) {
                let fault = Fault::host(format!("failed to start a thread: {error}"));
                done[place] = Some(Called::failed(fault, began.elapsed()));
            }
        }
        drop(sender);
        for linked in self.linked.values() {
            // What goes wrong is told by the guests that need it.
            drop(linked.linker());
        }
        collect(&receiver, &mut done, deadline, || {
            self.linked.values().for_each(|linked| linked.engine.increment_epoch());
        });
        let elapsed = began.elapsed();
        done.into_iter()
            .map(|called| {
                called.unwrap_or_else(|| Called { fuel: None, ..Called::failed(Fault::event_deadline(), elapsed) })
            })
            .collect()
    }
}

/// Sees whether compiled code links with this host. Nothing of it is run.
pub(crate) fn link(code: Code, imports: &[String]) -> Result<(), Fault> {
    let linked = Linked::new(WASM_STACK_BYTES, imports.into())?;
    call::link(&linked, &code.load(&linked.engine)?).map(drop)
}

/// An engine that gives guests a stack of this size, in bytes.
fn engine(wasm_stack_bytes: usize) -> Result<Engine, Fault> {
    let mut config = omc_artifact::engine_config();
    config.max_wasm_stack(wasm_stack_bytes);
    code::use_code_in_place(&mut config);
    Engine::new(&config).map_err(|error| Fault::host(format!("{error:#}")))
}

/// Puts each result into its place, whatever finishes first, until all are there or the deadline has come.
fn collect<T>(
    receiver: &mpsc::Receiver<(usize, T)>,
    done: &mut [Option<T>],
    deadline: Instant,
    mut tick: impl FnMut(),
) {
    let mut next_tick = Instant::now() + TICK;
    while done.iter().any(Option::is_none) {
        let now = Instant::now();
        if now >= deadline {
            break;
        }
        if now >= next_tick {
            tick();
            next_tick = now + TICK;
        }
        match receiver.recv_timeout(next_tick.min(deadline).saturating_duration_since(now)) {
            Ok((place, called)) => done[place] = Some(called),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
}

/// Ticks from now after which a call is stopped.
fn ticks(limit: Duration) -> u64 {
    // One more than fits, since the first tick may come at once.
    u64::try_from(limit.as_nanos().div_ceil(TICK.as_nanos())).unwrap_or(u64::MAX).saturating_add(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::decision::{Decision, Effects, Opinion, merge};
    use crate::protocol::dialect;
    use crate::protocol::samples;

    #[test]
    fn the_same_guests_give_the_same_bytes_whichever_finishes_first() {
        let says = |guest: &str, decision| Opinion {
            guest: guest.to_owned(),
            decision,
            effects: Effects {
                context: vec![format!("context of {guest}")],
                messages: vec![format!("message of {guest}")],
                updated_input: Some(serde_json::json!({"command": guest})),
                ..Effects::default()
            },
        };
        let sets = [
            [Decision::Pass, Decision::Pass, Decision::Allow, Decision::Pass],
            [Decision::Ask("a".into()), Decision::Ask("b".into()), Decision::Allow, Decision::Pass],
            [Decision::Block("a".into()), Decision::Ask("b".into()), Decision::Block("c".into()), Decision::Allow],
            [Decision::Halt("a".into()), Decision::Block("b".into()), Decision::Halt("c".into()), Decision::Pass],
        ];
        for (agent, payload) in samples::payloads() {
            let dialect = dialect::of(agent);
            let event = dialect.decode(payload);
            for decisions in &sets {
                let mut replies = Vec::new();
                for finished in samples::permutations(decisions.len()) {
                    let (sender, receiver) = mpsc::channel();
                    for place in finished {
                        let opinion = says(&format!("guest-{place}"), decisions[place].clone());
                        sender.send((place, opinion)).unwrap();
                    }
                    let mut done = vec![None; decisions.len()];
                    collect(&receiver, &mut done, Instant::now() + Duration::from_secs(5), || {});
                    let opinions: Vec<Opinion> = done.into_iter().map(|opinion| opinion.expect("all came")).collect();
                    replies.push(dialect.encode(&event, &merge(&event, &opinions)));
                }
                assert!(replies.windows(2).all(|pair| pair[0] == pair[1]), "{event:?}");
            }
        }
    }

    #[test]
    fn nobody_is_waited_for_after_the_deadline() {
        let (sender, receiver) = mpsc::channel();
        sender.send((1, "early")).unwrap();
        let mut done = [None, None];
        let (began, mut ticks) = (Instant::now(), 0);
        collect(&receiver, &mut done, began + TICK * 5, || ticks += 1);
        assert_eq!(done, [None, Some("early")]);
        assert!(began.elapsed() >= TICK * 5 && ticks > 0);
    }
}
