//! Faults: calls that gave no decision, each with a kind for programs and a text for people.

use std::fmt;

use thiserror::Error;
use wasmtime::Trap;
use wasmtime::component::ResourceTableError;

use crate::capability::wasi;
use crate::config::{Limit, Limits};
use crate::interfaces::{self, Mismatch};

/// A call that gave no decision.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Fault {
    pub(crate) kind: FaultKind,
    pub(crate) detail: String,
}

/// What kind of fault it was. The names are part of the trail's format.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum FaultKind {
    /// The guest aborted: a trap of WebAssembly, such as `unreachable` after a panic.
    Trap,
    /// It used up its stack.
    Stack,
    /// It used up its fuel.
    Fuel,
    /// It ran beyond the deadline for a call.
    Deadline,
    /// It was not done by the deadline for the event.
    EventDeadline,
    /// It asked for more linear memory than its limit.
    Memory,
    /// It has more tables, or more elements in them, than its limits.
    Tables,
    /// It has more core instances or memories than its limit.
    Instances,
    /// It called the host more often than its limit.
    HostCalls,
    /// It handed the host more data in one call than its limit.
    HostCallBytes,
    /// It held more handles than its limit.
    Resources,
    /// It imports an interface that this host does not have.
    MissingImport,
    /// It does not export what a guest exports.
    WrongWorld,
    /// It is built for another version of `omc:hook`.
    WitVersion,
    /// A function that it imports or exports is not of the type that it has here.
    Link,
    /// There is no compiled code for this host.
    NotCompiled,
    /// The operator requires a signature that it does not have.
    Signature,
    /// It returned an error.
    Guest,
    /// It ended itself by an exit.
    Exit,
    /// The event could not be read.
    Input,
    /// The host failed.
    Host,
}

impl FaultKind {
    /// The kind's name in the trail.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Trap => "trap",
            Self::Stack => "stack",
            Self::Fuel => "fuel",
            Self::Deadline => "deadline",
            Self::EventDeadline => "event-deadline",
            Self::Memory => "memory",
            Self::Tables => "tables",
            Self::Instances => "instances",
            Self::HostCalls => "host-calls",
            Self::HostCallBytes => "host-call-bytes",
            Self::Resources => "resources",
            Self::MissingImport => "missing-import",
            Self::WrongWorld => "wrong-world",
            Self::WitVersion => "wit-version",
            Self::Link => "link",
            Self::NotCompiled => "not-compiled",
            Self::Signature => "signature",
            Self::Guest => "guest",
            Self::Exit => "exit",
            Self::Input => "input",
            Self::Host => "host",
        }
    }
}

impl FaultKind {
    /// Whether a fault is the guest's own doing, and not that of the host, the machine or the event.
    pub(crate) fn is_the_guests(self) -> bool {
        !matches!(self, Self::NotCompiled | Self::Signature | Self::EventDeadline | Self::Input | Self::Host)
    }
}

impl Fault {
    pub(crate) fn new(kind: FaultKind, detail: impl Into<String>) -> Self {
        Self { kind, detail: detail.into() }
    }

    /// A fault of the host itself.
    pub(crate) fn host(detail: impl Into<String>) -> Self {
        Self::new(FaultKind::Host, detail)
    }

    /// The event was over before the guest was.
    pub(super) fn event_deadline() -> Self {
        Self::new(FaultKind::EventDeadline, "no answer by the event's deadline")
    }

    /// A limit that the guest ran into; the text names it as the configuration does.
    fn limit(kind: FaultKind, what: &str, limit: Limit, limits: &Limits) -> Self {
        Self::new(kind, format!("{what} (`{}` is {})", limit.spec().key, limits.get(limit)))
    }

    /// What the engine's error during a call means: limits are found by their type where they have one, the rest are traps.
    pub(super) fn from_call(error: &wasmtime::Error, limits: &Limits) -> Self {
        let limit = |kind, what, limit| Self::limit(kind, what, limit, limits);
        if let Some(reached) = error.downcast_ref::<LimitReached>() {
            return limit(reached.kind, reached.what, reached.limit);
        }
        if let Some(exit) = error.downcast_ref::<wasi::Exit>() {
            return Self::new(FaultKind::Exit, exit.to_string());
        }
        if error.is::<wasi::DeadlinePassed>() {
            return limit(FaultKind::Deadline, "the guest waited until its deadline", Limit::CallDeadlineMs);
        }
        if is_out_of_address_space(error) {
            return Self::host(NO_ADDRESS_SPACE);
        }
        if let Some(ResourceTableError::Full) = error.downcast_ref::<ResourceTableError>() {
            return limit(FaultKind::Resources, "the guest held more handles", Limit::Resources);
        }
        match error.downcast_ref::<Trap>() {
            Some(Trap::OutOfFuel) => return limit(FaultKind::Fuel, "the guest used up its fuel", Limit::Fuel),
            Some(Trap::Interrupt) => {
                return limit(FaultKind::Deadline, "the guest ran beyond its deadline", Limit::CallDeadlineMs);
            }
            Some(Trap::StackOverflow) => {
                return limit(FaultKind::Stack, "the guest used up its stack", Limit::WasmStackBytes);
            }
            Some(trap) => return Self::new(FaultKind::Trap, trap.to_string()),
            None => {}
        }
        let text = format!("{error:#}");
        match ENGINE_LIMITS.iter().find(|(part, ..)| text.contains(part)) {
            Some((_, kind, what, reached)) => limit(*kind, what, *reached),
            None => Self::new(FaultKind::Trap, text),
        }
    }

    /// Why a component did not link.
    pub(super) fn from_link(error: &wasmtime::Error, imports: &[String], exports: &[String]) -> Self {
        match interfaces::explain(imports, exports) {
            Some(mismatch) => {
                let kind = match mismatch {
                    Mismatch::Version(_) => FaultKind::WitVersion,
                    Mismatch::MissingImport(_) => FaultKind::MissingImport,
                    Mismatch::WrongWorld => FaultKind::WrongWorld,
                };
                Self::new(kind, mismatch.to_string())
            }
            None => Self::new(FaultKind::Link, format!("{error:#}")),
        }
    }
}

/// What is said where the system maps no memory for a guest. Room is reserved for all that 32 bits can address, so that access to
/// memory needs no checks; only what is touched costs memory.
const NO_ADDRESS_SPACE: &str = "the system gave no address space for the guest's memory: each guest that an event calls needs \
    4 GiB of it, of which little is ever used; set `ulimit -v` higher, or to `unlimited`";

/// Whether the system had no room to map memory. No guest can bring that about: what it may have is counted before.
fn is_out_of_address_space(error: &wasmtime::Error) -> bool {
    #[cfg(unix)]
    let is_errno = |cause: &(dyn std::error::Error + 'static)| {
        cause.downcast_ref::<rustix::io::Errno>() == Some(&rustix::io::Errno::NOMEM)
    };
    #[cfg(not(unix))]
    let is_errno = |_: &(dyn std::error::Error + 'static)| false;
    error.chain().any(is_errno)
}

/// Limits of the engine's own, whose errors have no type: a part of the text, and what it means. The tests run into each.
const ENGINE_LIMITS: &[(&str, FaultKind, &str, Limit)] = &[
    ("table count too high", FaultKind::Tables, "the guest has more tables", Limit::Tables),
    ("instance count too high", FaultKind::Instances, "the guest has more instances", Limit::Instances),
    ("memory count too high", FaultKind::Instances, "the guest has more memories", Limit::Instances),
    (
        "fuel allocated for hostcalls has been exhausted",
        FaultKind::HostCallBytes,
        "the guest handed over more in one call",
        Limit::HostCallBytes,
    ),
    ("store handle limit exceeded", FaultKind::Resources, "the guest held more handles", Limit::Resources),
];

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind.name(), self.detail)
    }
}

/// The error with which our own limits stop a guest, so that its cause survives the way through the engine.
#[derive(Clone, Debug, Error)]
#[error("{what}")]
pub(super) struct LimitReached {
    pub(super) kind: FaultKind,
    pub(super) what: &'static str,
    pub(super) limit: Limit,
}
