//! Compiles a guest ahead of time: the only program here with a compiler inside.
//!
//! The build uses it for the guests inside the host, and `omc-host guests add` for the guests of others. It never runs on an
//! event. Code for another target than this machine's is a matter of `--target`.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result, anyhow};
use clap::Parser;
use omc_artifact::{BASELINE_TARGETS, Component, engine_config};
use wasmtime::Engine;

/// Compile a guest of omc-host ahead of time.
#[derive(Debug, Parser)]
#[command(version)]
struct Args {
    /// The guest: a WebAssembly component with a manifest.
    component: PathBuf,
    /// Where to write the compiled code.
    output: PathBuf,
    /// The target to compile for, as a triple; this machine's unless given.
    #[arg(long)]
    target: Option<String>,
    /// Where to write what is known of the guest (manifest, imports, digest) as JSON.
    #[arg(long)]
    describe: Option<PathBuf>,
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "omc-compiler: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Result<()> {
    let path = args.component.display();
    let bytes = fs::read(&args.component).with_context(|| format!("failed to read `{path}`"))?;
    let component = Component::read(&bytes).with_context(|| format!("failed to read a guest from `{path}`"))?;
    let engine = engine_for(args.target.as_deref())?;
    let code = engine.precompile_component(&bytes).map_err(|error| anyhow!("failed to compile `{path}`: {error:#}"))?;
    replace(&args.output, &code)?;
    if let Some(file) = &args.describe {
        let about = serde_json::json!({
            "manifest": component.manifest,
            "imports": component.imports,
            "digest": component.digest,
        });
        replace(file, format!("{about:#}\n").as_bytes())?;
    }
    Ok(())
}

/// An engine that makes code for a target, and for no newer processor than its baseline.
fn engine_for(target: Option<&str>) -> Result<Engine> {
    let host = format!("{}", target_lexicon::HOST);
    let triple = target.unwrap_or(&host);
    let baseline = BASELINE_TARGETS.iter().find(|baseline| baseline.triple == triple).with_context(|| {
        let known: Vec<_> = BASELINE_TARGETS.iter().map(|baseline| baseline.triple).collect();
        format!("no guest can be compiled for `{triple}`; known targets are {}", known.join(", "))
    })?;
    let mut config = engine_config();
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

/// Writes a file so that a reader sees the old or the new one, never half of it.
fn replace(path: &Path, bytes: &[u8]) -> Result<()> {
    let mut name = path.file_name().context("the output has no file name")?.to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    let temporary = path.with_file_name(name);
    let mut options = fs::File::options();
    options.write(true).create(true).truncate(true);
    // The host only loads code that nobody else can write, whatever the umask is.
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written =
        options.open(&temporary).and_then(|mut file| file.write_all(bytes)).and_then(|()| fs::rename(&temporary, path));
    written
        .inspect_err(|_| drop(fs::remove_file(&temporary)))
        .with_context(|| format!("failed to write `{}`", path.display()))
}
