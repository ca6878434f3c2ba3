//! Looks for input that breaks a promise: libFuzzer over the targets of `host/fuzz`.
//!
//! Any toolchain will do: what cargo-fuzz passes are flags for LLVM, which stable has too. libFuzzer itself is C++ and is compiled
//! along. A finding lands in `host/fuzz/kept/TARGET`, where the ordinary tests replay it from then on; what merely reached new
//! code stays in the target folder.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::build::{self, Workspace, host_triple, run};

/// Counts what runs, and lets libFuzzer see what is compared with what.
const COVERAGE: &[&str] = &[
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
];

/// Between the flags in the variable that cargo reads.
const FLAG_SEPARATOR: &str = "\u{1f}";

/// Seconds after which an input counts as one that hangs: the host has 2.5 for all of an event.
const HANG_SECONDS: u32 = 10;

/// Memory at which an input counts as one that exhausts it, in MiB: an event of 64 MiB takes less.
const MEMORY_MIB: u32 = 1024;

/// Fuzzes one target, or one after the other, for so many seconds each.
pub(crate) fn fuzz(target: Option<&str>, seconds: u32) -> Result<()> {
    let workspace = Workspace::find()?;
    let package = workspace.root.join("host/fuzz");
    let mut names = entry_points(&package.join("fuzz_targets"))?;
    if let Some(wanted) = target {
        names.retain(|name| name == wanted);
        if names.is_empty() {
            bail!("there is no target `{wanted}` in `{}`", package.join("fuzz_targets").display());
        }
    }
    let guests = build::guests(&workspace)?;
    let (folder, triple) = (workspace.target.join("fuzz"), host_triple()?);
    let mut cargo = workspace.cargo(Some(&guests));
    cargo.env("CARGO_ENCODED_RUSTFLAGS", COVERAGE.join(FLAG_SEPARATOR));
    // With a named target the flags are not for build scripts, which libFuzzer is not linked into.
    cargo.args(["build", "--package", "omc-fuzz", "--features", "libfuzzer", "--profile", "fuzz", "--target", &triple]);
    cargo.arg("--target-dir").arg(&folder);
    for name in &names {
        cargo.args(["--bin", name]);
    }
    run(&mut cargo)?;

    // In memory, where there is such a place: targets that write files would wait for a disk most of the time.
    let memory = Path::new("/dev/shm");
    let scratch = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    let scratch = scratch.context("failed to create a scratch folder")?;

    let mut broken = Vec::new();
    for name in &names {
        let (corpus, kept) = (folder.join("corpus").join(name), package.join("kept").join(name));
        for folder in [&corpus, &kept] {
            fs::create_dir_all(folder).with_context(|| format!("failed to create `{}`", folder.display()))?;
        }
        let mut fuzzer = Command::new(folder.join(&triple).join("fuzz").join(build::executable(name)));
        fuzzer.env("TMPDIR", scratch.path());
        fuzzer.arg(&corpus).arg(package.join("seeds").join(name)).arg(&kept);
        fuzzer.arg(format!("-artifact_prefix={}/", kept.display()));
        fuzzer.arg(format!("-max_total_time={seconds}"));
        fuzzer.arg(format!("-timeout={HANG_SECONDS}")).arg(format!("-rss_limit_mb={MEMORY_MIB}"));
        if run(&mut fuzzer).is_err() {
            broken.push(name.as_str());
        }
        // Empty unless something was found.
        drop(fs::remove_dir(&kept));
    }
    drop(fs::remove_dir(package.join("kept")));
    if !broken.is_empty() {
        bail!("promises of these targets were broken: {}; the inputs are in `host/fuzz/kept`", broken.join(", "));
    }
    Ok(())
}

fn entry_points(folder: &Path) -> Result<Vec<String>> {
    let entries = fs::read_dir(folder).with_context(|| format!("failed to list `{}`", folder.display()))?;
    let mut names = Vec::new();
    for entry in entries {
        names.extend(entry?.path().file_stem().and_then(|stem| stem.to_str()).map(str::to_owned));
    }
    names.sort();
    Ok(names)
}
