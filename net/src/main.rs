//! Opens sockets so that `omc-host` never does: fetches and publishes guests, sends telemetry.
//!
//! `omc-host` starts it for one task and reads one JSON object from its standard output; what the tasks are given and give is
//! written down at both ends ([`registry`], [`telemetry`], and `cli/net.rs` of the host). It ends with 0, or with 1 and a
//! sentence on standard error; with 64 if its command line is wrong. It has no configuration of its own and decides nothing: what it fetched is a stranger's until the
//! host has looked at it.

mod registry;
mod telemetry;
mod transport;

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use clap::{Parser, Subcommand};

/// Longest time for a task: the largest component over a slow line.
const LONGEST_TASK: Duration = Duration::from_mins(15);

/// Exit status for a wrong command line (`EX_USAGE`).
const USAGE: u8 = 64;

/// Fetch and publish guests of omc-host, and send its telemetry; omc-host calls this.
#[derive(Debug, Parser)]
#[command(version)]
struct Args {
    /// Speak HTTP without TLS to hosts that are not this machine; credentials are not sent then
    #[arg(long, global = true)]
    plain_http: bool,
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Fetch a component into an empty folder
    Pull {
        /// `HOST/NAME[:TAG][@sha256:DIGEST]`
        reference: String,
        /// The folder
        folder: PathBuf,
    },
    /// Publish a component, and its signature if `FILE.minisig` is there; what its config says is read from standard input
    Push {
        /// The component
        file: PathBuf,
        /// `HOST/NAME:TAG`
        reference: String,
    },
    /// Send records from standard input to an OTLP endpoint over HTTP
    SendLogs {
        /// The endpoint's base, such as `https://collector.example.com:4318`
        endpoint: String,
    },
}

fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => {
            // Nobody is there to hear that the terminal is gone.
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { USAGE } else { 0 });
        }
    };
    match run(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "omc-net: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: Args) -> Result<()> {
    transport::bound_memory().context("failed to bound this program's memory")?;
    rustls::crypto::ring::default_provider()
        .install_default()
        .map_err(|_| anyhow!("failed to set up TLS: there is a provider already"))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("failed to start")?;
    let task = async {
        match args.task {
            Task::Pull { reference, folder } => registry::pull(&reference, &folder, args.plain_http).await,
            Task::Push { file, reference } => registry::push(&file, &reference, args.plain_http).await,
            Task::SendLogs { endpoint } => telemetry::send(&endpoint, args.plain_http).await,
        }
    };
    let result = runtime.block_on(async { tokio::time::timeout(LONGEST_TASK, task).await });
    let result = result.map_err(|_| anyhow!("it was not done within {} minutes", LONGEST_TASK.as_secs() / 60))??;
    writeln!(io::stdout(), "{result}").context("failed to write the result")
}
