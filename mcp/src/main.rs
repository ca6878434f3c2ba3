//! The MCP server of omc-host, on standard input and output: the tools with which a model reads and ends its own modes, and
//! keeps notes, memories and wiki pages of the project that the server was started in.
//!
//! A program of its own, so that nothing that runs on an event has an async runtime; `omc-host mcp` becomes this one. It prints
//! shell completions and manual pages as well (`omc-host completions`, `omc-host man`), for the same reason. What the tools do is
//! `omc_host::operations`, the same as the commands. One thread serves one request after the other: each is a few file operations,
//! bounded by the lock's longest wait.

mod arguments;
mod pages;
mod tools;
mod transport;

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::{Context as _, Result, anyhow};
use rmcp::ServiceExt as _;

use tools::Tools;
use transport::Transport;

/// Longest request, in bytes: several times the largest file of `.omc`, escaped. A longer one is answered with an error.
const MAX_REQUEST_BYTES: usize = 4 << 20;

fn main() -> ExitCode {
    let args: Vec<_> = std::env::args().skip(1).collect();
    let done = match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => serve(),
        ["completions", shell] => pages::completions(shell),
        ["man", ref command @ ..] => pages::man(command),
        _ => Err(anyhow!("this program is started by `omc-host mcp`, `omc-host completions` and `omc-host man`")),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Nobody is there to hear that standard error is gone.
            let _ = writeln!(std::io::stderr(), "omc-mcp: {}", omc_state::inert(&format!("{error:#}")));
            ExitCode::FAILURE
        }
    }
}

fn serve() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().context("failed to start")?;
    let served = runtime.block_on(async {
        let (stdin, stdout) = rmcp::transport::stdio();
        let transport = Transport::new(stdin, stdout, MAX_REQUEST_BYTES);
        let server = Tools::new().serve(transport).await.context("failed to agree on a protocol with the client")?;
        server.waiting().await.context("failed to serve")
    });
    // A thread may still wait for standard input, which nobody closes.
    runtime.shutdown_background();
    served.map(drop)
}
