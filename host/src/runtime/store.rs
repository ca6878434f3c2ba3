//! What a call's store holds: everything that host functions need, and the limits on memory and calls.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use wasmtime::ResourceLimiter;

use super::call::LogLine;
use super::fault::{FaultKind, LimitReached};
use crate::capability::FilesBudget;
use crate::capability::wasi::{Wasi, WasiView};
use crate::config::{Limit, Limits};
use crate::policy::Grants;
use crate::protocol::decision::Effects;
use crate::protocol::event::Event;
use crate::surroundings::Surroundings;

/// The data of one call's store.
pub(crate) struct GuestState {
    pub(crate) wasi: Wasi,
    pub(crate) event: Arc<Event>,
    pub(crate) surroundings: Arc<Surroundings>,
    pub(crate) grants: Grants,
    pub(crate) limits: Limits,
    /// When the call ends at the latest.
    pub(crate) deadline: Instant,
    pub(crate) effects: Effects,
    pub(crate) log: Vec<LogLine>,
    pub(crate) log_bytes: usize,
    /// Refusals by what was refused, with how often.
    pub(crate) refused: BTreeMap<String, u32>,
    /// Grants that it used to look around, with how often. What else it used shows in its decision, effects and files.
    pub(crate) used: BTreeMap<&'static str, u32>,
    /// What is left of what it may read beside `.omc`.
    pub(crate) files: FilesBudget,
    /// Whether the guest holds the lock: it may hold one at a time.
    pub(crate) holds_lock: bool,
    pub(super) memories: Memories,
    pub(super) host_calls: u64,
}

/// Most different refusals that are counted for the trail; a guest chooses some of their names.
const MAX_REFUSED_NAMES: usize = 16;

impl GuestState {
    /// Counts a refusal for the trail.
    pub(crate) fn refuse(&mut self, what: &str) {
        if let Some(count) = self.refused.get_mut(what) {
            *count = count.saturating_add(1);
        } else if self.refused.len() < MAX_REFUSED_NAMES {
            self.refused.insert(what.to_owned(), 1);
        }
    }

    /// Counts a use of a grant for the trail.
    pub(crate) fn uses(&mut self, what: &'static str) {
        let count = self.used.entry(what).or_default();
        *count = count.saturating_add(1);
    }

    /// Counts that something was over a limit and not taken.
    pub(crate) fn refuse_over(&mut self, limit: Limit) {
        self.refuse(&format!("limit: {}", limit.spec().key));
    }

    /// Counts a call to the host; an error when there were too many.
    pub(super) fn count_host_call(&mut self) -> wasmtime::Result<()> {
        self.host_calls += 1;
        if self.host_calls > self.limits.host_calls {
            let what = "the guest called the host more often";
            return Err(LimitReached { kind: FaultKind::HostCalls, what, limit: Limit::HostCalls }.into());
        }
        Ok(())
    }
}

impl WasiView for GuestState {
    fn wasi(&mut self) -> &mut Wasi {
        &mut self.wasi
    }
}

/// Limits on what the engine allocates for a guest, all memories and all tables together.
pub(super) struct Memories {
    pub(super) memory_bytes: usize,
    pub(super) instances: usize,
    pub(super) tables: usize,
    pub(super) table_elements: usize,
    /// Bytes of all linear memories so far.
    pub(super) used_bytes: usize,
    used_elements: usize,
}

impl Memories {
    pub(super) fn new(limits: &Limits) -> Self {
        let whole = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        Self {
            memory_bytes: whole(limits.memory_bytes),
            instances: whole(limits.instances),
            tables: whole(limits.tables),
            table_elements: whole(limits.table_elements),
            used_bytes: 0,
            used_elements: 0,
        }
    }
}

impl ResourceLimiter for Memories {
    fn memory_growing(&mut self, current: usize, desired: usize, _maximum: Option<usize>) -> wasmtime::Result<bool> {
        let used = self.used_bytes.saturating_add(desired.saturating_sub(current));
        if used > self.memory_bytes {
            // An error and not a refusal: a guest that cannot grow aborts in its own words, and the trail would not say why.
            let what = "the guest wanted more memory";
            return Err(LimitReached { kind: FaultKind::Memory, what, limit: Limit::MemoryBytes }.into());
        }
        self.used_bytes = used;
        Ok(true)
    }

    fn table_growing(&mut self, current: usize, desired: usize, _maximum: Option<usize>) -> wasmtime::Result<bool> {
        let used = self.used_elements.saturating_add(desired.saturating_sub(current));
        if used > self.table_elements {
            let what = "the guest wanted more elements in its tables";
            return Err(LimitReached { kind: FaultKind::Tables, what, limit: Limit::TableElements }.into());
        }
        self.used_elements = used;
        Ok(true)
    }

    fn instances(&self) -> usize {
        self.instances
    }

    fn tables(&self) -> usize {
        self.tables
    }

    fn memories(&self) -> usize {
        self.instances
    }
}
