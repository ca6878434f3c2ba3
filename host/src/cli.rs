//! The command line: one type for each command, and exit statuses.
//!
//! `hook` is the main job and is recognised before anything else is set up; whatever else is wrong with its arguments, the agent
//! gets a valid answer. Exit statuses: 0 in order, 1 findings or failure, 64 wrong usage, 70 a bug of ours; never 2, which
//! agents read as a refusal.

mod agents;
mod answer;
mod audit;
mod bench;
mod bundle;
mod cancel;
mod check;
mod companion;
mod difference;
mod doctor;
mod explain;
mod guests;
mod hook;
mod install;
mod log;
mod memory;
mod net;
mod notepad;
mod state;
mod table;
mod telemetry;
mod terminal;

use std::ffi::OsString;
use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::time::Instant;

use clap::{CommandFactory as _, Parser, Subcommand};

use crate::config::{Env, Paths};
use crate::setup::Aim;

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
    #[command(subcommand, after_help = guests::EXAMPLES)]
    Guests(guests::Command),
    /// Send the audit trail to where the operator wants it
    #[command(subcommand, after_help = telemetry::EXAMPLES)]
    Telemetry(telemetry::Command),
    /// Set up an agent: its hooks, the skills and the server of tools
    #[command(after_help = install::EXAMPLES)]
    Install(install::Args),
    /// Take everything out of an agent's settings again
    #[command(after_help = install::EXAMPLES)]
    Uninstall(install::Args),
    /// Write a plugin for an agent, with everything in it
    #[command(after_help = bundle::EXAMPLES)]
    Bundle(bundle::Args),
    /// Say whether everything is in order, and what to do about what is not
    #[command(after_help = doctor::EXAMPLES)]
    Doctor(doctor::Args),
    /// Show how long the events of a session take on this computer
    #[command(after_help = bench::EXAMPLES)]
    Bench(bench::Args),
    /// End every mode of a session, so that its agent may stop
    #[command(after_help = cancel::EXAMPLES)]
    Cancel(cancel::Args),
    /// Show and change the states of modes
    #[command(subcommand, after_help = state::EXAMPLES)]
    State(state::Command),
    /// Read and write the project's notepad
    #[command(subcommand, after_help = notepad::EXAMPLES)]
    Notepad(notepad::Command),
    /// Read and write what is known about the project, and what its agents share
    #[command(subcommand, after_help = memory::EXAMPLES)]
    Memory(memory::Command),
    /// Serve the tools with which a model reads and ends its modes and keeps its notes (MCP on standard input and output)
    #[command(after_help = companion::MCP_EXAMPLES)]
    Mcp,
    /// Print a script with which a shell completes this program's arguments
    #[command(after_help = companion::COMPLETIONS_EXAMPLES)]
    Completions {
        /// The shell
        #[arg(value_parser = companion::SHELLS)]
        shell: String,
    },
    /// Print the manual page of this program or of one of its commands
    #[command(after_help = companion::MAN_EXAMPLES)]
    Man {
        /// The command, and the command of that
        command: Vec<String>,
    },
}

impl Command {
    /// Whether the command changes an agent's settings, or shows how it would.
    fn sets_up(&self) -> bool {
        match self {
            Self::Install(_) | Self::Uninstall(_) => true,
            Self::Doctor(args) => args.mends(),
            _ => false,
        }
    }
}

/// The definition of the command line, for what is generated from it.
pub fn command() -> clap::Command {
    Cli::command()
}

/// Runs the command line. `began` is when the process started.
pub fn run(args: Vec<OsString>, began: Instant) -> ExitCode {
    survive_full_files();
    if args.get(1).is_some_and(|command| command == "hook")
        && let Some(code) = hook::run(&args[2..], began)
    {
        return code;
    }
    if args.get(1..).is_some_and(|args| args == bench::BARE_PROCESS) {
        return bench::bare();
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
    let sets_up = cli.command.sets_up();
    if !sets_up {
        warn(paths.problems.iter().map(ToString::to_string));
    }
    let outcome = catch_unwind(AssertUnwindSafe(|| match cli.command {
        _ if sets_up && !paths.problems.is_empty() => Err(other_folders(&paths)),
        // Only with `--help`, which the parser has answered.
        Command::Hook { .. } => Ok(true),
        Command::Explain(args) => explain::run(&args, &env),
        Command::Audit(args) => audit::run(&args, &paths),
        Command::Log(args) => log::run(&args, &paths),
        Command::Check(args) => check::run(&args, &env),
        Command::Guests(command) => guests::run(command, &paths),
        Command::Telemetry(command) => telemetry::run(command, &paths),
        Command::Install(args) => install::run(Aim::Install, &args, &env, &paths),
        Command::Uninstall(args) => install::run(Aim::Uninstall, &args, &env, &paths),
        Command::Bundle(args) => bundle::run(&args),
        Command::Doctor(args) => doctor::run(&args, &env, &paths),
        Command::Bench(args) => bench::run(&args, &paths),
        Command::Cancel(args) => cancel::run(&args, &env),
        Command::State(command) => state::run(command, &env),
        Command::Notepad(command) => notepad::run(command, &env),
        Command::Memory(command) => memory::run(command, &env),
        Command::Mcp => companion::run::<&str>(&[]),
        Command::Completions { shell } => companion::run(&["completions", &shell]),
        Command::Man { command } => {
            companion::run(&std::iter::once("man").chain(command.iter().map(String::as_str)).collect::<Vec<_>>())
        }
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

/// Why nothing is set up where a variable was not believed: whoever set it means other folders than those that would be changed.
fn other_folders(paths: &Paths) -> anyhow::Error {
    let ignored: Vec<_> = paths.problems.iter().map(|problem| problem.what.as_str()).collect();
    let home = paths.home.as_ref().map_or("nobody's home".to_owned(), |home| format!("`{}`", home.display()));
    anyhow::anyhow!(
        "nothing was changed: {}, so that this would be about the folders in {home}; start it outside of the project, or \
         without the variable if those are the ones you mean",
        ignored.join(", ")
    )
}

/// Makes a write beyond the largest size that a file may have here (`ulimit -f`) fail, instead of ending the process before it
/// has answered.
fn survive_full_files() {
    #[cfg(unix)]
    if rustix::process::getrlimit(rustix::process::Resource::Fsize).current.is_some() {
        // A handler of any kind turns the signal into an error of the write. If there cannot be one, all is as it was.
        drop(signal_hook::flag::register(rustix::process::Signal::XFSZ.as_raw(), std::sync::Arc::default()));
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
