//! The limits that every call of a guest runs under, as one table.
//!
//! The table gives the keys of `[limits]`, what may be written there, the defaults and the reference in
//! `docs/configuration.md`, so that none of them can disagree. The operator may change each limit, a project may lower it,
//! a guest can do neither.

use crate::protocol::contract;

/// Declares each limit once: field, key, unit, default, range and reason.
macro_rules! limits {
    ($($(#[doc = $doc:literal])+ $field:ident: $variant:ident, $key:literal, $unit:literal, $default:expr, $range:expr,
       because $reason:literal;)+) => {
        /// What one call of a guest may use, and one event as a whole.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub struct Limits {
            $($(#[doc = $doc])+ pub $field: u64,)+
        }

        impl Limits {
            /// Makes limits by asking for each.
            pub(crate) fn from_fn(mut value: impl FnMut(Limit) -> u64) -> Self {
                Self { $($field: value(Limit::$variant),)+ }
            }

            /// The value of one limit.
            pub fn get(&self, limit: Limit) -> u64 {
                match limit {
                    $(Limit::$variant => self.$field,)+
                }
            }
        }

        /// One of [`Limits`].
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Limit {
            $($(#[doc = $doc])+ $variant,)+
        }

        impl Limit {
            /// Every limit, in the order of the reference.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// What the reference says about it.
            pub fn spec(self) -> &'static LimitSpec {
                match self {
                    $(Self::$variant => const {
                        &LimitSpec {
                            key: $key,
                            unit: $unit,
                            default: $default,
                            min: *$range.start(),
                            max: *$range.end(),
                            doc: concat!($($doc),+),
                            reason: $reason,
                        }
                    },)+
                }
            }
        }
    };
}

/// A limit's key and what may be written for it.
#[derive(Debug)]
pub struct LimitSpec {
    /// The key in `[limits]`.
    pub key: &'static str,
    /// What the number counts.
    pub unit: &'static str,
    /// What holds if nobody sets it.
    pub default: u64,
    /// The least value with which a guest can still do something.
    pub min: u64,
    /// The largest value that the host can keep.
    pub max: u64,
    /// What it limits.
    pub doc: &'static str,
    /// Why the default is what it is.
    pub reason: &'static str,
}

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
/// No event has more time, whatever is configured, so a longer deadline would be a promise that nobody keeps.
const MAX_DEADLINE_MS: u64 = contract::MAX_DEADLINE_MS as u64;

limits! {
    /// Instructions of one call, as wasmtime counts them.
    fuel: Fuel, "fuel", "fuel", 1_000_000_000, 1_000_000..=1_000_000_000_000,
        because "About 40 ms of work: far more than any hook needs, and a loop ends before a person notices.";
    /// Linear memory of one call.
    memory_bytes: MemoryBytes, "memory-bytes", "bytes", 128 * MIB, MIB..=4 * GIB,
        because "Room for the largest payload beside the heap of an interpreter.";
    /// Stack of one call's wasm code.
    wasm_stack_bytes: WasmStackBytes, "wasm-stack-bytes", "bytes", MIB, 64 * KIB..=16 * MIB,
        because "What compilers assume for a main thread; deeper recursion is a fault.";
    /// Tables of one call.
    tables: Tables, "tables", "tables", 100, 1..=10_000,
        because "A component has a handful; one that is linked from many libraries has dozens.";
    /// Core instances of one call.
    instances: Instances, "instances", "instances", 100, 1..=10_000,
        because "A component has a handful; one that is linked from many libraries has dozens.";
    /// Elements of all tables of one call together.
    table_elements: TableElements, "table-elements", "elements", 1_000_000, 10..=100_000_000,
        because "A language runtime with its whole interpreter has some ten thousand functions.";
    /// Calls that a guest makes into the host.
    host_calls: HostCalls, "host-calls", "calls", 100_000, 100..=100_000_000,
        because "Work of the host costs no fuel, so it is counted; a guest with reason to call makes some hundred.";
    /// Data that a guest hands to the host in one call, or in what it returns.
    host_call_bytes: HostCallBytes, "host-call-bytes", "bytes", 16 * MIB, 64 * KIB..=GIB,
        because "Twice the longest text of an event. The host holds it for a moment, outside of the guest's own memory.";
    /// Handles that a guest holds at the same time: files, folders, streams, locks, and resources of its own.
    resources: Resources, "resources", "handles", 1_024, 16..=1_000_000,
        because "The host keeps a little for each; language runtimes hold a few dozen.";
    /// Files and listings of folders that are open at the same time.
    open_files: OpenFiles, "open-files", "files", 128, 0..=100_000,
        because "So that twenty guests side by side leave the host descriptors to answer with.";
    /// Bytes that one call reads from files, all together.
    read_bytes: ReadBytes, "read-bytes", "bytes", 64 * MIB, 0..=64 * GIB,
        because "Some 30 ms from a warm cache; a file that grows while it is read ends here.";
    /// Names of folder entries that one call is given.
    listed_entries: ListedEntries, "listed-entries", "entries", 10_000, 0..=10_000_000,
        because "A folder with more is no state of ours; a repository may have planted it.";
    /// Bytes that one call writes to files, all together.
    written_bytes: WrittenBytes, "written-bytes", "bytes", 16 * MIB, 0..=GIB,
        because "A disk's worth of mischief takes many events, each of them in the audit trail.";
    /// Size of one file after a write.
    file_bytes: FileBytes, "file-bytes", "bytes", 4 * MIB, 0..=GIB,
        because "Far above any state file or note; what needs more does not belong into `.omc`.";
    /// Files and folders that one call creates.
    new_files: NewFiles, "new-files", "files", 1_000, 0..=1_000_000,
        because "A disk of small files runs out of inodes before it runs out of bytes.";
    /// Text for the model of one guest in one event.
    context_units: ContextUnits, "context-units", "UTF-16 units", 10_000, 0..=1_000_000,
        because "The agents' own limit for all guests together.";
    /// Text for the person of one guest in one event.
    message_units: MessageUnits, "message-units", "UTF-16 units", 4_000, 0..=1_000_000,
        because "A screenful.";
    /// The reason of one decision.
    reason_units: ReasonUnits, "reason-units", "UTF-16 units", 4_000, 100..=1_000_000,
        because "A screenful; a reason tells what to do next, and what is longer belongs into context.";
    /// Lines for the audit trail of one call.
    log_bytes: LogBytes, "log-bytes", "bytes", 16 * KIB, 0..=MIB,
        because "A record that a person can still read; what is over is dropped and counted.";
    /// What is kept of standard output and standard error of one call, both together. The trail has its beginning.
    output_bytes: OutputBytes, "output-bytes", "bytes", 16 * KIB, 0..=MIB,
        because "Enough for the message of a panic, for which guests do not plan.";
    /// Wall-clock time of one call.
    call_deadline_ms: CallDeadlineMs, "call-deadline-ms", "ms", 1_000, 10..=MAX_DEADLINE_MS,
        because "Fuel stops wasm code earlier; this stops a host call that blocks. More than the event has would be of no use.";
    /// Wall-clock time of one event, at most; less where the agent waits less.
    event_deadline_ms: EventDeadlineMs, "event-deadline-ms", "ms", MAX_DEADLINE_MS, 50..=MAX_DEADLINE_MS,
        because "Below every agent's own timeout together with the start of the process, so that the host answers first; the host does not know what longer one a hooks file may name. `SessionEnd` and `Interrupt` have 800 ms.";
}

impl Default for Limits {
    fn default() -> Self {
        Self::from_fn(|limit| limit.spec().default)
    }
}

impl Limit {
    /// The limit with this key.
    pub(crate) fn from_key(key: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|limit| limit.spec().key == key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_is_in_its_range_and_every_key_is_its_own() {
        for (at, limit) in Limit::ALL.iter().enumerate() {
            let spec = limit.spec();
            assert!((spec.min..=spec.max).contains(&spec.default), "{}", spec.key);
            assert!(spec.max <= i64::MAX.unsigned_abs(), "{}: TOML has no larger numbers", spec.key);
            assert_eq!(Limit::ALL.iter().position(|other| other.spec().key == spec.key), Some(at), "{}", spec.key);
            assert_eq!(Limit::from_key(spec.key), Some(*limit));
        }
        assert_eq!(Limit::from_key("feul"), None);
    }

    #[test]
    fn the_defaults_are_those_of_the_design() {
        let limits = Limits::default();
        assert_eq!(limits.fuel, 1_000_000_000);
        assert_eq!((limits.memory_bytes, limits.wasm_stack_bytes), (134_217_728, 1_048_576));
        assert_eq!((limits.host_calls, limits.new_files), (100_000, 1_000));
        assert_eq!((limits.written_bytes, limits.file_bytes, limits.log_bytes), (16_777_216, 4_194_304, 16_384));
        assert_eq!((limits.context_units, limits.reason_units), (10_000, 4_000));
        assert_eq!((limits.call_deadline_ms, limits.event_deadline_ms), (1_000, 2_500));
    }
}
