//! `wasi:cli`: an empty environment, no arguments, no terminal, no standard input; what is written to standard output and standard
//! error is kept for the record, up to a limit.

use wasmtime::component::Resource;

use super::Wasi;
use super::bindings::cli::{
    environment, exit, stderr, stdin, stdout, terminal_input, terminal_output, terminal_stderr, terminal_stdin,
    terminal_stdout,
};
use super::error::Exit;
use super::streams::{InputStream, OutputStream};

/// A terminal, which no guest ever gets.
pub enum NoTerminal {}

impl environment::Host for Wasi {
    fn get_environment(&mut self) -> wasmtime::Result<Vec<(String, String)>> {
        Ok(Vec::new())
    }

    fn get_arguments(&mut self) -> wasmtime::Result<Vec<String>> {
        Ok(Vec::new())
    }

    fn initial_cwd(&mut self) -> wasmtime::Result<Option<String>> {
        Ok(None)
    }
}

impl exit::Host for Wasi {
    fn exit(&mut self, status: Result<(), ()>) -> wasmtime::Result<()> {
        Err(Exit(u8::from(status.is_err())).into())
    }

    fn exit_with_code(&mut self, code: u8) -> wasmtime::Result<()> {
        Err(Exit(code).into())
    }
}

impl stdin::Host for Wasi {
    fn get_stdin(&mut self) -> wasmtime::Result<Resource<InputStream>> {
        Ok(self.table.push(InputStream::closed())?)
    }
}

impl stdout::Host for Wasi {
    fn get_stdout(&mut self) -> wasmtime::Result<Resource<OutputStream>> {
        Ok(self.table.push(OutputStream::captured())?)
    }
}

impl stderr::Host for Wasi {
    fn get_stderr(&mut self) -> wasmtime::Result<Resource<OutputStream>> {
        Ok(self.table.push(OutputStream::captured())?)
    }
}

impl terminal_input::Host for Wasi {}

impl terminal_input::HostTerminalInput for Wasi {
    fn drop(&mut self, terminal: Resource<NoTerminal>) -> wasmtime::Result<()> {
        self.table.delete(terminal)?;
        Ok(())
    }
}

impl terminal_output::Host for Wasi {}

impl terminal_output::HostTerminalOutput for Wasi {
    fn drop(&mut self, terminal: Resource<NoTerminal>) -> wasmtime::Result<()> {
        self.table.delete(terminal)?;
        Ok(())
    }
}

impl terminal_stdin::Host for Wasi {
    fn get_terminal_stdin(&mut self) -> wasmtime::Result<Option<Resource<NoTerminal>>> {
        Ok(None)
    }
}

impl terminal_stdout::Host for Wasi {
    fn get_terminal_stdout(&mut self) -> wasmtime::Result<Option<Resource<NoTerminal>>> {
        Ok(None)
    }
}

impl terminal_stderr::Host for Wasi {
    fn get_terminal_stderr(&mut self) -> wasmtime::Result<Option<Resource<NoTerminal>>> {
        Ok(None)
    }
}
