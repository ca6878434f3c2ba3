//! `cargo xtask instructions`: counts the instructions of events with callgrind and compares them with stored limits.
//!
//! Times are noisy, counts are not: the same binary on the same event executes the same code to within a percent, on a busy machine
//! too. So a change that makes every event dearer is seen before it lands. `--bless` stores new counts; the commit says why.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

use crate::bench::{Case, World, events};
use crate::build::{self, Guests, Workspace};

/// Where the counts are stored: instructions by case, for each kind of C library in the guests.
const FILE: &str = "benches/instructions.json";

/// What a guest imports whose C library knows WASI 0.1 only, as Debian's: an adapter is part of it, which imports more than the
/// guest does and makes every event a third dearer.
const ADAPTED: &[u8] = b"wasi_snapshot_preview1";

/// Not counted: its deadline of 0.8 s passes at times while callgrind has it under way, and then it does less.
const UNSTEADY: &str = "SessionEnd";

/// How far a count may be above the stored one, in percent: what compilers and C libraries of other machines may differ by.
const MARGIN_PERCENT: u64 = 15;

/// Counts, and says whether all are within their limits.
pub(crate) fn run(bless: bool) -> Result<()> {
    let version = Command::new("valgrind").arg("--version").stdout(Stdio::null()).status();
    if !version.is_ok_and(|status| status.success()) {
        bail!("counting instructions takes valgrind, which is not installed: install the package `valgrind`");
    }
    let workspace = Workspace::find()?;
    let guests = build::guests(&workspace)?;
    let library = c_library(&guests)?;
    let world = World::new(build::host_for_use(&workspace, &guests)?)?;
    let mut counted = BTreeMap::new();
    for mut case in events(&world)?.into_iter().filter(|case| case.at_once == 1 && case.name != UNSTEADY) {
        // The first event of a project makes folders, which the later ones find.
        case.run()?;
        counted.insert(case.name.clone(), count(&case)?);
    }

    let file = workspace.root.join(FILE);
    let stored = fs::read(&file).with_context(|| format!("failed to read `{}`", file.display()))?;
    let mut stored: BTreeMap<String, BTreeMap<String, u64>> = serde_json::from_slice(&stored)?;
    if bless {
        stored.insert(library.to_owned(), counted);
        let text = serde_json::to_string_pretty(&stored)?;
        return fs::write(&file, text + "\n").with_context(|| format!("failed to write `{}`", file.display()));
    }
    let stored = stored.get(library).with_context(|| format!("`{FILE}` has no counts for `{library}`: use --bless"))?;
    let mut out = std::io::stdout();
    writeln!(out, "| event | instructions | stored | % |\n|---|---|---|---|")?;
    let mut over = Vec::new();
    for (name, &count) in &counted {
        let &limit = stored.get(name).with_context(|| format!("`{FILE}` has no count for `{name}`: use --bless"))?;
        writeln!(out, "| {name} | {count} | {limit} | {} |", count * 100 / limit.max(1))?;
        if count * 100 > limit * (100 + MARGIN_PERCENT) {
            over.push(name.as_str());
        }
    }
    if !over.is_empty() {
        bail!(
            "more than {MARGIN_PERCENT} % above what is stored: {}; find out why, or store the new counts with \
             `cargo xtask instructions --bless` and say in the commit what they buy",
            over.join(", ")
        );
    }
    Ok(())
}

/// The kind of C library in the guests, as the file calls it.
fn c_library(guests: &Guests) -> Result<&'static str> {
    // One that writes files.
    let component = guests.wasm.join("keyword_detector.wasm");
    let bytes = fs::read(&component).with_context(|| format!("failed to read `{}`", component.display()))?;
    let is_adapted = bytes.windows(ADAPTED.len()).any(|window| window == ADAPTED);
    Ok(if is_adapted { "WASI 0.1 and an adapter" } else { "WASI 0.2" })
}

/// The instructions of one run of a case, all threads together.
fn count(case: &Case) -> Result<u64> {
    let folder = tempfile::tempdir().context("failed to create a scratch folder")?;
    let out = folder.path().join("callgrind.out");
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--quiet", "--tool=callgrind"]).arg(format!("--callgrind-out-file={}", out.display()));
    valgrind.arg(&case.program).args(case.args);
    case.run_as(valgrind)?;
    total(&out).with_context(|| format!("callgrind counted nothing for {}", case.name))
}

/// The total that callgrind writes at the end of its file: `totals: 3357435`.
fn total(file: &Path) -> Option<u64> {
    let text = String::from_utf8_lossy(&fs::read(file).ok()?).into_owned();
    text.lines().rev().find_map(|line| line.strip_prefix("totals: ")?.trim().parse().ok())
}
