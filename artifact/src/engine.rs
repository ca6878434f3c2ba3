//! The engine's configuration: one function for whoever compiles guests and whoever runs them.
//!
//! Compiled code is only loaded by an engine of the same version with the same settings, so both sides must ask here.

use wasmtime::Config;

/// Stack that wasm code may use, in bytes. Deep but honest recursion (a JSON parser, a shell parser) fits well into 1 MiB, and
/// the thread that runs it has room for more, so that a guest's overflow is a trap and never the host's.
pub const WASM_STACK_BYTES: usize = 1024 * 1024;

/// A target, and the processor features that code for it may use.
#[derive(Clone, Copy, Debug)]
pub struct Baseline {
    /// The target's triple.
    pub triple: &'static str,
    /// Cranelift's flags for the features.
    pub flags: &'static [&'static str],
}

/// The oldest processors that compiled guests run on, per target.
///
/// For x86-64 that is the level "v2" of 2009 (the engine's vector code needs SSSE3 and SSE4.1); for the others what the triple
/// itself guarantees. So compiled code does not depend on the machine that compiled it, and a cache entry needs no list of
/// features: the engine writes the ones that code was made for into it, and refuses it at loading where one is missing.
pub const BASELINE_TARGETS: &[Baseline] = &[
    Baseline { triple: "x86_64-unknown-linux-gnu", flags: X86_64_V2 },
    Baseline { triple: "x86_64-apple-darwin", flags: X86_64_V2 },
    Baseline { triple: "x86_64-pc-windows-msvc", flags: X86_64_V2 },
    Baseline { triple: "aarch64-unknown-linux-gnu", flags: &[] },
    Baseline { triple: "aarch64-apple-darwin", flags: &[] },
];

const X86_64_V2: &[&str] = &["has_sse3", "has_ssse3", "has_sse41", "has_sse42", "has_popcnt", "has_cmpxchg16b"];

/// The configuration of an engine that runs code on this machine.
pub fn engine_config() -> Config {
    config(cfg!(windows))
}

/// The configuration of an engine that compiles for a target, without that target.
pub fn engine_config_for(triple: &str) -> Config {
    config(triple.contains("-windows-"))
}

/// The configuration of every engine here.
///
/// - Fuel and epochs: both stop a guest, each alone.
/// - Only the features that components need: no threads, no garbage collection, no 64-bit memories.
/// - No address maps, backtraces or unwind tables: a fault is named by its kind, and less is mapped on each event. Only Windows
///   does not run code without unwind tables.
fn config(is_for_windows: bool) -> Config {
    let mut config = Config::new();
    config
        .consume_fuel(true)
        .epoch_interruption(true)
        .max_wasm_stack(WASM_STACK_BYTES)
        .wasm_component_model(true)
        .concurrency_support(false)
        .wasm_backtrace_max_frames(None)
        .generate_address_map(false)
        .native_unwind_info(is_for_windows);
    config
}
