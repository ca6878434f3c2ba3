//! The command line: one type for each command, and exit statuses.
//!
//! `hook` is the main job and is recognised before anything else is set up; whatever else is wrong with its arguments, the agent
//! gets a valid answer. Exit statuses: 0 in order, 1 findings or failure, 64 wrong usage, 70 a bug of ours; never 2, which
//! agents read as a refusal.

mod audit;
mod check;
mod difference;
mod explain;
mod guests;
mod hook;
mod log;
mod net;
mod table;
mod telemetry;
mod terminal;

use std::ffi::OsString;
use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::time::Instant;

use clap::{Parser, Subcommand};

use crate::config::{Env, Paths};

pub(crate) use hook::Arguments as HookArguments;

/// Exit status for findings and failures.
const FAILURE: u8 = 1;
/// Exit status for a wrong command line (`EX_USAGE`).
const USAGE: u8 = 64;
/// Exit status for a bug of ours (`EX_SOFTWARE`).
const BUG: u8 = 70;

/// Routes the hook events of coding agents to sandboxed WebAssembly guests.
#[derive(Debug, Parser)]
#[command(name = "omc-host", version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Handle one event: the agent's JSON on standard input, the answer on standard output
    #[command(after_help = hook::EXAMPLES)]
    Hook {
        /// The agent that sends the event: claude, codex, …; found out from the event unless given
        #[arg(long, value_name = "NAME")]
        agent: Option<String>,
    },
    /// Run one event dry, on copies, and show which guests it calls and why, what each says, and what the agent would get
    #[command(after_help = explain::EXAMPLES)]
    Explain(explain::Args),
    /// Show what each guest can do: imports in the binary, what it requests, what it is granted
    #[command(after_help = audit::EXAMPLES)]
    Audit(audit::Args),
    /// Show what guests did: the audit trail
    #[command(after_help = log::EXAMPLES)]
    Log(log::Args),
    /// Say which hooks of a hooks file an agent runs, skips or chokes on
    #[command(after_help = check::EXAMPLES)]
    Check(check::Args),
    /// List, add, change and remove guests
    #[command(subcommand)]
    Guests(guests::Command),
    /// Send the audit trail to where the operator wants it
    #[command(subcommand)]
    Telemetry(telemetry::Command),
}

/// Runs the command line. `began` is when the process started.
pub fn run(args: Vec<OsString>, began: Instant) -> ExitCode {
    if args.get(1).is_some_and(|command| command == "hook")
        && let Some(code) = hook::run(&args[2..], began)
    {
        return code;
    }
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(error) => {
            // Nobody is there to hear that the terminal is gone.
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { USAGE } else { 0 });
        }
    };
    let env = Env::from_process();
    // The same folders that the hooks find from here: `log` must show what they wrote, `guests` what they would call.
    let paths = Paths::resolve(&env, None, std::env::current_dir().ok().as_deref());
    warn(paths.problems.iter().map(ToString::to_string));
    let outcome = catch_unwind(AssertUnwindSafe(|| match cli.command {
        // Only with `--help`, which the parser has answered.
        Command::Hook { .. } => Ok(true),
        Command::Explain(args) => explain::run(&args, &env),
        Command::Audit(args) => audit::run(&args, &paths),
        Command::Log(args) => log::run(&args, &paths),
        Command::Check(args) => check::run(&args, &env),
        Command::Guests(command) => guests::run(command, &paths),
        Command::Telemetry(command) => telemetry::run(command, &paths),
    }));
    match outcome {
        Ok(Ok(in_order)) => ExitCode::from(if in_order { 0 } else { FAILURE }),
        Ok(Err(error)) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Ok(Err(error)) => {
            let _ = writeln!(std::io::stderr(), "omc-host: {}", crate::text::inert(&format!("{error:#}")));
            ExitCode::from(FAILURE)
        }
        Err(_) => ExitCode::from(BUG),
    }
}

/// Tells a person what is wrong with their surroundings, beside what they asked for.
fn warn(problems: impl IntoIterator<Item = String>) {
    for problem in problems {
        let _ = writeln!(std::io::stderr(), "omc-host: {}", crate::text::inert(&problem));
    }
}

/// A program that ships beside this one. No configuration, project or variable names another.
fn beside(program: &str, flag: &str) -> anyhow::Result<std::path::PathBuf> {
    use anyhow::Context as _;
    let own = std::env::current_exe().context("failed to find this program's own folder")?;
    let beside = own.with_file_name(format!("{program}{}", std::env::consts::EXE_SUFFIX));
    if !beside.is_file() {
        let beside = beside.display();
        anyhow::bail!("the program `{beside}` is not there; it ships beside `omc-host`, or name it with {flag}");
    }
    Ok(beside)
}

/// Whether the reader of the output has gone away, as `head` does: that is its good right.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let is_broken = |error: &std::io::Error| error.kind() == std::io::ErrorKind::BrokenPipe;
    error.chain().any(|cause| cause.downcast_ref().is_some_and(is_broken))
}
