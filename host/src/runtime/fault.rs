//! Faults: calls that gave no decision, each with a kind for programs and a text for people.

use std::fmt;

use wasmtime::Trap;

use crate::capability::wasi;

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
    /// It asked for more linear memory, tables or instances than the limits give.
    Memory,
    /// It called the host more often than the limit allows.
    HostCalls,
    /// It imports something that this host does not have, or does not export what a guest exports.
    Link,
    /// There is no compiled code for this host.
    NotCompiled,
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
            Self::HostCalls => "host-calls",
            Self::Link => "link",
            Self::NotCompiled => "not-compiled",
            Self::Guest => "guest",
            Self::Exit => "exit",
            Self::Input => "input",
            Self::Host => "host",
        }
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

    /// What the engine's error during a call means: limits of ours are found by their type, the rest are traps.
    pub(super) fn from_call(error: &wasmtime::Error) -> Self {
        if let Some(limit) = error.downcast_ref::<LimitReached>() {
            return Self::new(limit.kind, limit.detail.clone());
        }
        if let Some(exit) = error.downcast_ref::<wasi::Exit>() {
            return Self::new(FaultKind::Exit, exit.to_string());
        }
        if let Some(passed) = error.downcast_ref::<wasi::DeadlinePassed>() {
            return Self::new(FaultKind::Deadline, passed.to_string());
        }
        match error.downcast_ref::<Trap>() {
            Some(Trap::OutOfFuel) => Self::new(FaultKind::Fuel, "the guest used up its fuel"),
            Some(Trap::Interrupt) => Self::new(FaultKind::Deadline, "the guest ran beyond its deadline"),
            Some(Trap::StackOverflow) => Self::new(FaultKind::Stack, "the guest used up its stack"),
            Some(trap) => Self::new(FaultKind::Trap, trap.to_string()),
            None => Self::new(FaultKind::Trap, format!("{error:#}")),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind.name(), self.detail)
    }
}

/// The error with which our own limits stop a guest, so that its cause survives the way through the engine.
#[derive(Clone, Debug)]
pub(super) struct LimitReached {
    pub(super) kind: FaultKind,
    pub(super) detail: String,
}

impl fmt::Display for LimitReached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.detail)
    }
}

impl std::error::Error for LimitReached {}
