//! The tasks of this repository. `cargo xtask --help` lists them; the README and `.ci/run` call nothing else.
//!
//! A host needs its first-party guests as compiled code before it can be built, and cargo cannot do that in one command: guests
//! are built for another target, then compiled ahead of time by a package with a compiler inside, then embedded. So the order
//! lives here.

mod bench;
mod build;
mod compat;
mod demo;
#[cfg(test)]
mod docs;
mod fuzz;
mod instructions;
mod test;

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

#[derive(Debug, Parser)]
#[command(name = "cargo xtask", about = "The tasks of this repository")]
struct Args {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Build all that is needed: guests, `omc-host` and the programs beside it, in `target/release`
    Build,
    /// Build only the guests and their compiler, after which plain `cargo build` and `cargo clippy` work
    Guests,
    /// Build, then show a keyword turn into an answer and a refused stop, on a scratch project
    Demo,
    /// Run every check that decides whether a change may land: formats, lints, tests, documents
    Test {
        /// Only the tests (no formats, lints, documents)
        #[arg(long)]
        only_tests: bool,
    },
    /// Compare what events cost with a program that reads its input and prints `{}`, and with `node -e 0`
    Bench {
        /// How often each case runs
        #[arg(long, default_value_t = 31)]
        rounds: usize,
    },
    /// Count the instructions of events with callgrind and compare them with the stored ones; needs valgrind
    Instructions {
        /// Store what is counted
        #[arg(long)]
        bless: bool,
    },
    /// Build the frozen guests of tests/compat for the interface in wit/; needs npm and python3, and takes minutes
    Compat {
        /// Build them anew for a version that is not released yet
        #[arg(long)]
        refresh: bool,
    },
    /// Look for input that breaks a promise, with libFuzzer; needs a C++ compiler
    Fuzz {
        /// One target of `host/fuzz`; all, one after the other, if none is named
        target: Option<String>,
        /// How long to look, for each target
        #[arg(long, default_value_t = 60)]
        seconds: u32,
    },
}

fn main() -> ExitCode {
    match run(&Args::parse().task) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(task: &Task) -> Result<()> {
    match task {
        Task::Build => build::release().map(drop),
        Task::Guests => build::guests(&build::Workspace::find()?).map(drop),
        Task::Demo => demo::run(),
        Task::Test { only_tests } => test::run_all(*only_tests),
        Task::Bench { rounds } => bench::run_all(*rounds),
        Task::Instructions { bless } => instructions::run(*bless),
        Task::Compat { refresh } => compat::freeze(*refresh),
        Task::Fuzz { target, seconds } => fuzz::fuzz(target.as_deref(), *seconds),
    }
}
