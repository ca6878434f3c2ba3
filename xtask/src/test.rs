//! Every check that decides whether a change may land, in the order in which they fail fastest.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

use crate::build::{self, Guests, Workspace, run};

/// Packages that are built natively.
const NATIVE: &[&str] = &["omc-artifact", "omc-host", "omc-guest", "omc-state", "omc-tool", "xtask"];

/// How many tests passed and failed.
#[derive(Default)]
struct Count {
    passed: usize,
    failed: usize,
}

pub(crate) fn run_all(only_tests: bool) -> Result<()> {
    let workspace = Workspace::find()?;
    if !only_tests {
        step("formats")?;
        run(workspace.cargo(None).args(["fmt", "--all", "--check"]))?;
    }
    step("guests and compiler")?;
    let guests = build::guests(&workspace)?;
    if !only_tests {
        step("lints")?;
        // The compiler on its own: cargo would otherwise build the host with the compiler's features, too.
        for packages in [["--workspace", "--exclude=omc-compiler"].as_slice(), &["--package=omc-compiler"]] {
            let mut clippy = workspace.cargo(Some(&guests));
            clippy.args(["clippy", "--quiet", "--all-targets"]).args(packages);
            run(clippy.args(["--", "--deny", "warnings"]))?;
        }
    }
    step("tests")?;
    let count = tests(&workspace, &guests)?;
    if !only_tests {
        step("documents")?;
        let mut doc = workspace.cargo(Some(&guests));
        doc.env("RUSTDOCFLAGS", "--deny warnings --allow rustdoc::private_intra_doc_links").args([
            "doc",
            "--quiet",
            "--no-deps",
            "--document-private-items",
        ]);
        run(doc.args(NATIVE.iter().flat_map(|package| ["--package", package])))?;
    }
    let mut stdout = std::io::stdout();
    writeln!(stdout, "\n{} passed, {} failed", count.passed, count.failed)?;
    if count.failed > 0 || count.passed == 0 {
        bail!("the tests are not in order");
    }
    Ok(())
}

fn step(name: &str) -> Result<()> {
    writeln!(std::io::stdout(), "\n== {name}").context("failed to write to standard output")
}

/// Runs the tests of all packages and counts them.
fn tests(workspace: &Workspace, guests: &Guests) -> Result<Count> {
    let mut cargo = workspace.cargo(Some(guests));
    // Without the compiler, which has no tests of its own and would lend the host its features.
    cargo.args(["test", "--workspace", "--exclude=omc-compiler", "--no-fail-fast"]);
    // What end-to-end tests need beside the host itself.
    cargo.env("OMC_TEST_WASM_DIR", &guests.wasm).env("OMC_TEST_COMPILER", &guests.compiler);
    counted(&mut cargo)
}

/// Runs `cargo test`, passes on what it prints, and adds up its result lines.
fn counted(cargo: &mut Command) -> Result<Count> {
    let mut child = cargo.stdout(Stdio::piped()).spawn().with_context(|| format!("failed to start {cargo:?}"))?;
    let printed = child.stdout.take().context("the tests have no output")?;
    let mut count = Count::default();
    let mut stdout = std::io::stdout();
    for line in BufReader::new(printed).lines() {
        let line = line?;
        writeln!(stdout, "{line}")?;
        if let Some(result) = line.trim_start().strip_prefix("test result: ") {
            count.passed += number_before(result, " passed");
            count.failed += number_before(result, " failed");
        }
    }
    let status = child.wait()?;
    if !status.success() && count.failed == 0 {
        bail!("{cargo:?} ended with {status}");
    }
    Ok(count)
}

/// The number in front of a word: 12 for ` passed` in `ok. 12 passed; 0 failed`.
fn number_before(text: &str, word: &str) -> usize {
    let digits = text.split(word).next().unwrap_or_default().rsplit(' ').next().unwrap_or_default();
    digits.parse().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn result_lines_are_counted() {
        let line = "ok. 12 passed; 3 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.12s";
        assert_eq!((number_before(line, " passed"), number_before(line, " failed")), (12, 3));
        assert_eq!(number_before("nothing", " passed"), 0);
    }
}
