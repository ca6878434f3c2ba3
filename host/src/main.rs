//! The command `omc-host`: arguments in, exit status out. Everything else is in the library.

use std::process::ExitCode;
use std::time::Instant;

fn main() -> ExitCode {
    omc_host::cli::run(std::env::args_os().collect(), Instant::now())
}
