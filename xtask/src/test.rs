//! Every check that decides whether a change may land, in the order in which they fail fastest.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

use crate::build::{self, Guests, Workspace, run};

/// Packages that are built natively.
const NATIVE: &[&str] = &[
    "omc-artifact",
    "omc-fuzz",
    "omc-host",
    "omc-guest",
    "omc-mcp",
    "omc-net",
    "omc-state",
    "omc-tool",
    "omc-turn",
    "xtask",
];

/// The official MCP client in Python, as pip names it: a client that shares no code with our server.
const MCP_CLIENT: &str = "mcp==2.3.0";

/// Packages that authors of guests build with.
const PUBLISHED: &[&str] = &["omc-guest", "omc-tool"];

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
        // The entry points of the fuzz targets with them: what nobody builds rots.
        let all = ["--workspace", "--exclude=omc-compiler", "--features=omc-fuzz/entry-points"];
        for packages in [all.as_slice(), &["--package=omc-compiler"]] {
            let mut clippy = workspace.cargo(Some(&guests));
            clippy.args(["clippy", "--quiet", "--all-targets"]).args(packages);
            run(clippy.args(["--", "--deny", "warnings"]))?;
        }
    }
    step("MCP client")?;
    let client = mcp_client(&workspace)?;
    step("tests")?;
    let count = tests(&workspace, &guests, client.as_deref())?;
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
        step("packages")?;
        let mut package = workspace.cargo(None);
        // Without building them once more: what they are built from is in the package, or this fails.
        package.args(["package", "--quiet", "--allow-dirty", "--no-verify"]);
        run(package.args(PUBLISHED.iter().flat_map(|package| ["--package", package])))?;
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

/// The Python that has [`MCP_CLIENT`], installed below the target folder at the first run; absent where there is no Python.
fn mcp_client(workspace: &Workspace) -> Result<Option<PathBuf>> {
    let folder = workspace.target.join("mcp-client");
    let python = folder.join("bin/python");
    // Made last, so that an installation that was cut short is done again.
    let done = folder.join(MCP_CLIENT);
    if done.is_file() {
        return Ok(Some(python));
    }
    if Command::new("python3").arg("--version").stdout(Stdio::null()).status().is_err() {
        writeln!(std::io::stdout(), "there is no python3: the server is only tried with the client in Rust")?;
        return Ok(None);
    }
    run(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
    run(Command::new(&python).args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", MCP_CLIENT]))?;
    fs::write(&done, "").with_context(|| format!("failed to write `{}`", done.display()))?;
    Ok(Some(python))
}

/// Runs the tests of all packages and counts them.
fn tests(workspace: &Workspace, guests: &Guests, mcp_client: Option<&Path>) -> Result<Count> {
    let mut cargo = workspace.cargo(Some(guests));
    // Without the compiler, which would lend the host its features, and the program that opens sockets: their tests are built as
    // the programs are used, so that their libraries are not built twice.
    cargo.args(["test", "--workspace", "--exclude=omc-compiler", "--exclude=omc-net", "--no-fail-fast"]);
    // Property tests try the same values in every run here, so that a change is judged by what it changes; without this variable
    // they try others each time.
    cargo.env("PROPTEST_RNG_SEED", "1");
    // What end-to-end tests need beside the host itself.
    cargo.env("OMC_TEST_WASM_DIR", &guests.wasm).env("OMC_TEST_COMPILER", &guests.compiler);
    if let Some(python) = mcp_client {
        cargo.env("OMC_TEST_MCP_PYTHON", python);
    }
    cargo.env("OMC_TEST_NET", build::net(workspace)?).env("OMC_TEST_REGISTRY", build::registry(workspace)?);
    let mut count = counted(&mut cargo)?;
    for package in ["omc-compiler", "omc-net"] {
        // Each on its own, too: together they would be built with each other's features.
        let own = counted(workspace.cargo(None).args(["test", "--profile", build::QUICK, "--package", package]))?;
        count = Count { passed: count.passed + own.passed, failed: count.failed + own.failed };
    }
    Ok(count)
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
    use std::collections::BTreeSet;

    use super::*;

    /// The names of all tests in the sources below a folder.
    fn tests_below(folder: &Path, names: &mut BTreeSet<String>) {
        for entry in fs::read_dir(folder).expect("a folder of the sources can be listed") {
            let path = entry.expect("an entry").path();
            if path.is_dir() && !path.ends_with("target") && !path.ends_with(".git") {
                tests_below(&path, names);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).expect("sources are UTF-8");
                let functions =
                    text.split("#[test]").skip(1).filter_map(|rest| rest.split_once("fn ")?.1.split_once('('));
                names.extend(functions.map(|(name, _)| name.to_owned()));
            }
        }
    }

    #[test]
    fn every_test_that_the_security_document_names_exists() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a workspace");
        let mut known = BTreeSet::new();
        tests_below(root, &mut known);
        for entry in fs::read_dir(root.join("tests/scenarios")).expect("the scenarios") {
            known.extend(entry.expect("an entry").file_name().into_string());
        }
        let document = fs::read_to_string(root.join("docs/security.md")).expect("the document");
        // In the tables the last column names them.
        let cells = document.lines().filter(|line| line.starts_with('|')).filter_map(|line| line.rsplit('|').nth(1));
        let named: Vec<_> = cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect();
        assert!(named.len() > 50, "the tables have another form now");
        let missing: Vec<_> = named.iter().filter(|name| !known.contains(**name)).collect();
        assert!(missing.is_empty(), "no such tests: {missing:#?}");
    }

    #[test]
    fn result_lines_are_counted() {
        let line = "ok. 12 passed; 3 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.12s";
        assert_eq!((number_before(line, " passed"), number_before(line, " failed")), (12, 3));
        assert_eq!(number_before("nothing", " passed"), 0);
    }
}
