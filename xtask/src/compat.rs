//! Builds the frozen guests of `tests/compat`: one in each language, for the version of the interface in `wit/`.
//!
//! The tools for JavaScript and Python come from npm and PyPI into the target folder; nothing of that happens on CI, where the
//! frozen files count. They are kept compressed: a language's runtime is most of them.

use std::fs;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use lzma_rust2::{XzOptions, XzReader, XzWriter};

use crate::build::{self, Workspace, executable, run};

/// The interface's text.
const WIT: &str = "wit/hook.wit";
/// Compression that makes the least bytes: this runs once in a version.
const COMPRESSION: u32 = 9;

/// Builds the guests, and freezes the interface's text beside them.
pub(crate) fn freeze(refresh: bool) -> Result<()> {
    let workspace = Workspace::find()?;
    let text = fs::read_to_string(workspace.root.join(WIT)).with_context(|| format!("failed to read `{WIT}`"))?;
    let version = version(&text).with_context(|| format!("`{WIT}` names no version"))?;
    let folder = workspace.root.join("tests/compat");
    let frozen = folder.join(format!("{version}.wit"));
    if frozen.exists() && !refresh {
        bail!(
            "{version} is frozen already; once it is released, a change needs another version in `{WIT}`, and before that say \
             --refresh"
        );
    }
    let scratch = workspace.target.join("compat");
    fs::create_dir_all(&scratch).with_context(|| format!("failed to create `{}`", scratch.display()))?;
    let guests = build::guests(&workspace)?;
    let wit = workspace.root.join(WIT);
    let sources = folder.join("src");

    let rust = build::build_wasm(&workspace, std::iter::once(&"compat-rust".to_owned()))?.join("compat_rust.wasm");
    let js = javascript(&sources.join("js"), &scratch.join("js"), &wit)?;
    let python = python(&sources.join("python"), &scratch.join("python"), &wit)?;
    for (built, language) in [(&js, "js"), (&python, "python")] {
        let mut pack = workspace.cargo(Some(&guests));
        pack.args(["run", "--quiet", "--package", "omc-host", "--", "guests", "pack"]).arg(built);
        run(pack.arg("--manifest").arg(sources.join(language).join("guest.toml")))?;
    }
    for (built, language) in [(&rust, "rust"), (&js, "js"), (&python, "python")] {
        compress(built, &folder.join(format!("{version}-{language}.wasm.xz")))?;
    }
    fs::write(&frozen, text).with_context(|| format!("failed to write `{}`", frozen.display()))
}

/// The version in `package omc:hook@0.1.0;`.
fn version(wit: &str) -> Option<&str> {
    wit.lines().find_map(|line| line.strip_prefix("package omc:hook@")?.strip_suffix(';'))
}

fn javascript(sources: &Path, scratch: &Path, wit: &Path) -> Result<PathBuf> {
    copy(sources, scratch, &["build.mjs", "guest.js", "package.json"])?;
    let built = scratch.join("guest.wasm");
    run(Command::new("npm").args(["install", "--no-audit", "--no-fund"]).current_dir(scratch))?;
    run(Command::new("node").arg("build.mjs").arg(wit).arg(&built).current_dir(scratch))?;
    Ok(built)
}

fn python(sources: &Path, scratch: &Path, wit: &Path) -> Result<PathBuf> {
    copy(sources, scratch, &["guest.py", "requirements.txt"])?;
    let (programs, built) = (scratch.join("venv").join("bin"), scratch.join("guest.wasm"));
    if !programs.is_dir() {
        run(Command::new("python3").args(["-m", "venv", "venv"]).current_dir(scratch))?;
    }
    let mut install = Command::new(programs.join(executable("pip")));
    run(install.args(["install", "--quiet", "--requirement", "requirements.txt"]).current_dir(scratch))?;
    let mut componentize = Command::new(programs.join(executable("componentize-py")));
    componentize.arg("--quiet").arg("--wit-path").arg(wit).args([
        "--world",
        "guest",
        "componentize",
        "guest",
        "--output",
    ]);
    run(componentize.arg(&built).current_dir(scratch))?;
    Ok(built)
}

fn copy(from: &Path, to: &Path, names: &[&str]) -> Result<()> {
    fs::create_dir_all(to).with_context(|| format!("failed to create `{}`", to.display()))?;
    for name in names {
        fs::copy(from.join(name), to.join(name)).with_context(|| format!("failed to copy `{name}`"))?;
    }
    Ok(())
}

fn compress(component: &Path, to: &Path) -> Result<()> {
    let failed = || format!("failed to compress `{}` into `{}`", component.display(), to.display());
    let bytes = fs::read(component).with_context(failed)?;
    let mut writer = XzWriter::new(Vec::new(), XzOptions::with_preset(COMPRESSION)).with_context(failed)?;
    writer.write_all(&bytes).with_context(failed)?;
    let packed = writer.finish().with_context(failed)?;
    fs::write(to, packed).with_context(failed)
}

/// Writes a frozen guest's component to a file.
pub(crate) fn unpack(packed: &Path, to: &Path) -> Result<()> {
    let file = fs::File::open(packed).with_context(|| format!("failed to open `{}`", packed.display()))?;
    let mut component = Vec::new();
    let read = XzReader::new(file, false).read_to_end(&mut component);
    read.with_context(|| format!("failed to unpack `{}`", packed.display()))?;
    fs::write(to, component).with_context(|| format!("failed to write `{}`", to.display()))
}
