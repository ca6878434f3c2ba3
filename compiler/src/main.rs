//! Compiles guests ahead of time: the only program here with a compiler inside.
//!
//! `build` makes the code of a guest inside the host. `cache` makes that of guests of others, for `omc-host guests add`, and for
//! an event that found none: the host then starts it when its answer is out, detached, with the locked folder of the cache as
//! standard input, so that the lock lasts as long as the work. It never runs before an answer.
//!
//! Exit statuses are those of the host: 0 in order, 1 failure, 64 wrong usage.

mod strip;
#[cfg(test)]
#[expect(dead_code, reason = "the tests of the whole program need more of it")]
mod testing;

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result, anyhow, bail};
use clap::{Parser, Subcommand};
use omc_artifact::{BASELINE_TARGETS, CacheEntry, Component, Seal, engine_config_for};
use wasmtime::Engine;

/// Exit status for a wrong command line (`EX_USAGE`).
const USAGE: u8 = 64;

/// Compile guests of omc-host ahead of time.
#[derive(Debug, Parser)]
#[command(version)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Compile one guest into a file.
    Build {
        /// The guest: a WebAssembly component with a manifest.
        component: PathBuf,
        /// Where to write the compiled code.
        output: PathBuf,
        /// The target to compile for, as a triple; this machine's unless given.
        #[arg(long)]
        target: Option<String>,
        /// Where to write what is known of the guest (manifest, imports, digest) and of the engine as JSON.
        #[arg(long)]
        describe: Option<PathBuf>,
    },
    /// Compile guests for this machine into a folder of the host's cache, each under its digest and sealed.
    Cache {
        /// The folder.
        folder: PathBuf,
        /// The guests, each in a file that is named by its SHA-256.
        #[arg(required = true)]
        components: Vec<PathBuf>,
    },
}

fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => {
            // Nobody is there to hear that the terminal is gone.
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { USAGE } else { 0 });
        }
    };
    let done = match args.command {
        Command::Build { component, output, target, describe } => {
            build(&component, &output, target.as_deref(), describe.as_deref())
        }
        Command::Cache { folder, components } => cache(&folder, &components),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "omc-compiler: {}", one_line(&format!("{error:#}")));
            ExitCode::FAILURE
        }
    }
}

/// A reason as one line: names out of a guest's bytes are in it, and what they hold must not act on a terminal.
fn one_line(reason: &str) -> String {
    let words = reason.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join(" ")
}

fn build(path: &Path, output: &Path, target: Option<&str>, describe: Option<&Path>) -> Result<()> {
    let (component, bytes) = load(path)?;
    let engine = engine_for(target)?;
    replace(output, &compile(&engine, path, &bytes)?)?;
    if let Some(file) = describe {
        let about = serde_json::json!({
            "manifest": component.manifest,
            "imports": component.imports,
            "digest": component.digest,
            "engine": name_of(&engine),
        });
        replace(file, format!("{about:#}\n").as_bytes())?;
    }
    Ok(())
}

/// Compiles each guest; one that fails costs the others nothing.
fn cache(folder: &Path, components: &[PathBuf]) -> Result<()> {
    let engine = engine_for(None)?;
    let mut failures = Vec::new();
    for path in components {
        let component = path.file_stem().and_then(|stem| stem.to_str()).context("a component's file has no name")?;
        let entry = CacheEntry { folder: folder.to_owned(), component: component.to_owned() };
        // Written first: if even this cannot be written, or the work is cut off, nobody tries again at once.
        replace(&entry.failure(), b"the compiler did not come to an end")?;
        if let Err(error) = fill(&engine, &entry, path) {
            let text = format!("{error:#}");
            replace(&entry.failure(), text.as_bytes())?;
            failures.push(text);
        } else {
            fs::remove_file(entry.failure())
                .with_context(|| format!("failed to clear `{}`", entry.failure().display()))?;
        }
    }
    if !failures.is_empty() {
        bail!(failures.join("; "));
    }
    Ok(())
}

/// Compiles one guest into the cache: the code, then its seal.
fn fill(engine: &Engine, entry: &CacheEntry, path: &Path) -> Result<()> {
    let (component, bytes) = load(path)?;
    if component.digest != entry.component {
        bail!("`{}` holds another component than its name says: {}", path.display(), component.digest);
    }
    let code = entry.code();
    replace(&code, &compile(engine, path, &bytes)?)?;
    let file = File::open(&code).with_context(|| format!("failed to open `{}`", code.display()))?;
    let seal = Seal::of(&file, &name_of(engine)).with_context(|| format!("failed to seal `{}`", code.display()))?;
    replace(&entry.seal(), seal.to_string().as_bytes())
}

fn load(path: &Path) -> Result<(Component, Vec<u8>)> {
    Component::load(path).with_context(|| format!("failed to read a guest from `{}`", path.display()))
}

fn compile(engine: &Engine, path: &Path, component: &[u8]) -> Result<Vec<u8>> {
    let code = engine
        .precompile_component(component)
        .map_err(|error| anyhow!("failed to compile `{}`: {error:#}", path.display()))?;
    strip::symbols(&code).with_context(|| format!("failed to strip the code of `{}`", path.display()))
}

/// A name for all that code of this engine depends on: its version, target, settings and processor features.
fn name_of(engine: &Engine) -> String {
    let mut hasher = DefaultHasher::new();
    engine.precompile_compatibility_hash().hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

/// An engine that makes code for a target, and for no newer processor than its baseline.
fn engine_for(target: Option<&str>) -> Result<Engine> {
    let host = format!("{}", target_lexicon::HOST);
    let triple = target.unwrap_or(&host);
    let baseline = BASELINE_TARGETS.iter().find(|baseline| baseline.triple == triple).with_context(|| {
        let known: Vec<_> = BASELINE_TARGETS.iter().map(|baseline| baseline.triple).collect();
        format!("no guest can be compiled for `{triple}`; known targets are {}", known.join(", "))
    })?;
    let mut config = engine_config_for(triple);
    config.target(triple).map_err(|error| anyhow!("failed to choose the target `{triple}`: {error:#}"))?;
    for flag in baseline.flags {
        // SAFETY-relevant only in the other direction: the host refuses code that needs features its processor lacks.
        #[expect(unsafe_code, reason = "the engine marks processor flags as unsafe, since it cannot check them here")]
        unsafe {
            config.cranelift_flag_enable(flag);
        }
    }
    Engine::new(&config).map_err(|error| anyhow!("failed to set up the compiler for `{triple}`: {error:#}"))
}

/// Writes a file so that a reader sees the old or the new one, never half of it, not even after a power cut.
fn replace(path: &Path, bytes: &[u8]) -> Result<()> {
    let mut name = path.file_name().context("the output has no file name")?.to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    let temporary = path.with_file_name(name);
    let mut options = File::options();
    options.write(true).create(true).truncate(true);
    // The host only loads code that nobody else can write, whatever the umask is.
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written = options.open(&temporary).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&temporary, path)
    });
    written
        .inspect_err(|_| drop(fs::remove_file(&temporary)))
        .with_context(|| format!("failed to write `{}`", path.display()))
}
