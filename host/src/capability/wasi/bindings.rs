//! The generated bindings of WASI 0.2, in their synchronous form, over our own resource types.

wasmtime::component::bindgen!({
    path: "wit",
    world: "omc:wasi/host",
    imports: { default: trappable },
    trappable_error_type: {
        "wasi:filesystem/types.error-code" => crate::capability::wasi::error::FsError,
        "wasi:io/streams.stream-error" => crate::capability::wasi::error::StreamError,
    },
    with: {
        "wasi:io/error.error": crate::capability::wasi::error::StreamFailure,
        "wasi:io/poll.pollable": crate::capability::wasi::streams::Pollable,
        "wasi:io/streams.input-stream": crate::capability::wasi::streams::InputStream,
        "wasi:io/streams.output-stream": crate::capability::wasi::streams::OutputStream,
        "wasi:filesystem/types.descriptor": crate::capability::wasi::filesystem::Descriptor,
        "wasi:filesystem/types.directory-entry-stream": crate::capability::wasi::filesystem::Listing,
        "wasi:cli/terminal-input.terminal-input": crate::capability::wasi::cli::NoTerminal,
        "wasi:cli/terminal-output.terminal-output": crate::capability::wasi::cli::NoTerminal,
    },
});

pub(super) use self::wasi::*;
