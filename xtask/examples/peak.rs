//! Runs a program to its end and prints the largest resident set that it had, in bytes.
//!
//! A process counts what its parent had when it was started, so the parent has to be smaller than what is measured: this one is.

use std::error::Error;
use std::io::Write as _;
use std::process::{Command, Stdio};

use wait4::Wait4 as _;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args_os().skip(1);
    let program = args.next().ok_or("usage: peak PROGRAM [ARGUMENT...]")?;
    let child = Command::new(program).args(args).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    let ended = child.wait4()?;
    write!(std::io::stdout(), "{}", ended.rusage.maxrss)?;
    Ok(())
}
