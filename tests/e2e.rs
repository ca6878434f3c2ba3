//! Scenarios: the real host, events as an agent sends them, and what must come of each.
//!
//! Every folder below `scenarios` is a test by its name; `README.md` beside this file says how to add one. With `BLESS=1` the
//! expectations are written instead of compared.
#![cfg(unix)]

mod redact;
mod scenario;
mod world;

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};

fn main() -> ExitCode {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/scenarios");
    let entries = fs::read_dir(&folder).expect("the scenarios are beside this file");
    let mut trials: Vec<_> = entries
        .map(|entry| {
            let path = entry.expect("a folder can be listed").path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            Trial::test(name, move || scenario::run(&path).map_err(|error| format!("{error:#}").into()))
        })
        .collect();
    assert!(!trials.is_empty(), "no scenarios in `{}`", folder.display());
    trials.sort_by(|a, b| a.name().cmp(b.name()));
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}
