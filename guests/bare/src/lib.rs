//! Leaves out of a guest what its C library imports of a process: a guest has none around it, and loads a tenth faster for it.
//!
//! Rust's standard library brings WASI's C library along, and that imports arguments, environment, standard input and output,
//! terminals, polls and the monotonic clock wherever a file is read. The linker makes an import of a function that nobody
//! defines; those that are defined here are none, and with them go their interfaces and types, which the host else reads and
//! links on every event. A guest says `use omc_bare as _;` and nothing more. Files, the time of day, random numbers and what a
//! panic prints to standard error stay as they were; files have no number, which the C library else asks for with every look at one.
//!
//! A guest that does need what is left out ends with a trap, as with any fault of its own, and never with a wrong answer. Names
//! are those of the C library; one that gives them other names imports as before, and a test over all first-party guests says so.
#![no_std]
#![cfg(target_arch = "wasm32")]
#![expect(
    unsafe_code,
    reason = "a symbol that the C library finds needs an unsafe attribute, and answers go where it points"
)]

/// What is written where an answer is expected: an empty list, or an option that is none. Both have two words at least, and what
/// says that nothing is there comes first.
type Answer = [usize; 2];

/// Functions whose answer is that there is nothing.
macro_rules! nothing {
    ($($name:ident)*) => { $(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(answer: *mut Answer) {
            // SAFETY: the C library hands over the place of the answer, which is aligned as its words are.
            unsafe { answer.write([0; 2]) }
        }
    )* };
}

/// Functions that tell a file's number in two halves, which may be any but none.
macro_rules! one_number_for_all {
    ($($name:ident($($parameter:ty),*);)*) => { $(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name($(_: $parameter,)* answer: *mut [u64; 3]) {
            // SAFETY: as above. The first word says that it went well.
            unsafe { answer.write([0, 1, 1]) }
        }
    )* };
}

/// Functions that a guest has no use for.
macro_rules! never {
    ($($name:ident($($parameter:ty),*) $(-> $result:ty)?;)*) => { $(
        #[unsafe(no_mangle)]
        extern "C" fn $name($(_: $parameter),*) $(-> $result)? {
            core::arch::wasm32::unreachable()
        }
    )* };
}

/// Functions of polls: a stream of the host is always ready, and nothing is waited for.
macro_rules! ready {
    ($($name:ident(i32) $(-> $result:ident = $value:literal)?;)*) => { $(
        #[unsafe(no_mangle)]
        extern "C" fn $name(_: i32) $(-> $result)? {
            $($value)?
        }
    )* };
}

nothing! {
    __wasm_import_environment_get_arguments
    __wasm_import_environment_get_environment
    __wasm_import_environment_initial_cwd
    __wasm_import_terminal_stderr_get_terminal_stderr
    __wasm_import_terminal_stdin_get_terminal_stdin
    __wasm_import_terminal_stdout_get_terminal_stdout
}

one_number_for_all! {
    __wasm_import_filesystem_method_descriptor_metadata_hash(i32);
    __wasm_import_filesystem_method_descriptor_metadata_hash_at(i32, i32, *const u8, usize);
}

never! {
    __wasm_import_exit_exit(i32);
    __wasm_import_monotonic_clock_now() -> i64;
    __wasm_import_monotonic_clock_resolution() -> i64;
    __wasm_import_monotonic_clock_subscribe_duration(i64) -> i32;
    __wasm_import_monotonic_clock_subscribe_instant(i64) -> i32;
    __wasm_import_poll_poll(i32, i32, i32);
    __wasm_import_stdin_get_stdin() -> i32;
    __wasm_import_stdout_get_stdout() -> i32;
    __wasm_import_terminal_input_terminal_input_drop(i32);
    __wasm_import_terminal_output_terminal_output_drop(i32);
}

ready! {
    __wasm_import_poll_method_pollable_block(i32);
    __wasm_import_poll_method_pollable_ready(i32) -> i32 = 1;
    __wasm_import_poll_pollable_drop(i32);
    __wasm_import_streams_method_input_stream_subscribe(i32) -> i32 = 0;
    __wasm_import_streams_method_output_stream_subscribe(i32) -> i32 = 0;
}
