//! `omc-host guests`: list, add, remove.

use std::io::Write as _;
use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};
use omc_artifact::Capability;

use super::table::table;
use crate::config::paths::SYSTEM_CONFIG_FILE;
use crate::config::{Paths, Settings};
use crate::registry::{self, Guest, Registry, Streak};
use crate::text::inert;

pub(super) const EXAMPLES: &str = "\
Examples:
  omc-host guests list
  omc-host guests add ./guest.wasm --grant omc=rw:/omc/guests/mine
  omc-host guests remove mine";

/// List, add and remove guests.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// List all guests
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Add a guest from a file, with exactly the grants named here; compiles it, which takes a moment
    #[command(after_help = "\
Examples:
  omc-host audit ./guest.wasm
  omc-host guests add ./guest.wasm
  omc-host guests add ./guest.wasm --grant omc=rw:/omc/guests/mine --grant env=CI --grant transcript

A grant never goes beyond what the guest requests. A guest of the same name is replaced.")]
    Add {
        /// The guest: a WebAssembly component with a manifest
        file: PathBuf,
        /// What it may do: a capability, or a capability and a part of its scope after `=`
        #[arg(long = "grant", value_name = "CAPABILITY[=SCOPE]")]
        grants: Vec<String>,
        /// The ahead-of-time compiler; the one beside this program unless given
        #[arg(long, value_name = "FILE")]
        compiler: Option<PathBuf>,
    },
    /// Remove a guest and its files
    Remove {
        /// Its name
        name: String,
    },
}

pub(super) fn run(command: Command, paths: &Paths) -> Result<bool> {
    let mut stdout = std::io::stdout().lock();
    match command {
        Command::List { json } => list(json, paths)?,
        Command::Add { file, grants, compiler } => {
            let grants = grants.iter().map(|grant| parse_grant(grant)).collect::<Result<Vec<_>>>()?;
            let compiler = compiler.map_or_else(compiler_beside, Ok)?;
            let added = registry::install(paths, &file, grants, &compiler, crate::audit::now())?;
            let manifest = &added.manifest;
            writeln!(stdout, "added `{}` {} ({})", manifest.name, inert(&manifest.version), &added.digest[..12])?;
            if added.grants.is_empty() && !manifest.requests.is_empty() {
                let asked: Vec<_> = manifest.requests.iter().map(|request| request.capability.name()).collect();
                let asked = inert(&asked.join(", "));
                writeln!(stdout, "it requests {asked} and is granted nothing; see `omc-host audit {}`", manifest.name)?;
            }
        }
        Command::Remove { name } => {
            registry::remove(paths, &name)?;
            writeln!(stdout, "removed `{name}`")?;
        }
    }
    Ok(true)
}

fn list(json: bool, paths: &Paths) -> Result<()> {
    let mut registry = Registry::load(paths);
    if let Some(problem) = registry.problem.take() {
        return Err(problem.into());
    }
    let faults = &registry.faults;
    let settings = Settings::load(SYSTEM_CONFIG_FILE.as_ref(), paths.user_config_file().as_deref(), None);
    let source = |guest: &Guest| match guest {
        Guest::FirstParty(_) => "built-in".to_owned(),
        Guest::Installed(guest) => guest.source.clone(),
    };
    let state = |guest: &Guest| {
        let policy = settings.guest(guest.name());
        match (policy.switch.is_on(guest.is_on_by_default()), policy.required, faults.sets_aside(guest)) {
            (_, true, _) => "required",
            (true, false, Some(_)) => "set-aside",
            (true, false, None) => "on",
            (false, false, _) => "off",
        }
    };
    let until = |streak: &Streak| omc_state::Timestamp::from(streak.until()).to_string();
    let mut stdout = std::io::stdout().lock();
    if json {
        let guests: Vec<_> = registry
            .guests()
            .map(|guest| {
                serde_json::json!({
                    "name": guest.name(),
                    "version": guest.version(),
                    "digest": guest.digest(),
                    "source": source(&guest),
                    "state": state(&guest),
                    "set-aside": faults.sets_aside(&guest).map(|streak| {
                        serde_json::json!({
                            "until": until(streak),
                            "faults": streak.faults,
                            "kind": streak.kind,
                        })
                    }),
                    "description": guest.manifest().description,
                })
            })
            .collect();
        writeln!(stdout, "{}", crate::text::inert_json(serde_json::to_string_pretty(&guests)?))?;
    } else {
        let rows = registry.guests().map(|guest| {
            let digest = guest.digest()[..12].to_owned();
            // A line end in them must not look like another guest.
            let (version, description) = (inert(guest.version()), inert(&guest.manifest().description));
            [guest.name().to_owned(), version, digest, state(&guest).to_owned(), description]
        });
        writeln!(stdout, "{}", table(["NAME", "VERSION", "DIGEST", "STATE", "DESCRIPTION"], rows))?;
        for guest in registry.guests().filter(|guest| state(guest) == "set-aside") {
            if let Some(streak) = faults.sets_aside(&guest) {
                let (name, faults, kind, until) = (guest.name(), streak.faults, inert(&streak.kind), until(streak));
                writeln!(
                    stdout,
                    "\n`{name}` is set aside until {until}: {faults} faults in a row, the last of them `{kind}`; see `omc-host log --guest {name}`"
                )?;
            }
        }
        if settings.log_payloads() {
            writeln!(stdout, "\n`log-payloads` is on: the audit trail holds prompts, files and secrets")?;
        }
    }
    Ok(())
}

/// Reads `omc=rw:/omc/state` or `transcript`.
fn parse_grant(text: &str) -> Result<Capability> {
    let (capability, scope) = match text.split_once('=') {
        Some((capability, scope)) => (capability, vec![scope.to_owned()]),
        None => (text, Vec::new()),
    };
    if scope.is_empty() && matches!(capability, "omc" | "env") {
        bail!("the grant `{text}` needs a scope, such as `omc=rw:/omc/guests/mine` or `env=CI`");
    }
    registry::parse_grant(capability, &scope)
        .map_err(|problem| anyhow::anyhow!("the grant `{text}` cannot be used: {problem}"))
}

fn compiler_beside() -> Result<PathBuf> {
    let beside = registry::compiler_beside().context("failed to find this program's own folder")?;
    if !beside.is_file() {
        bail!(
            "the compiler `{}` is not there; it ships beside `omc-host`, or name it with --compiler",
            beside.display()
        );
    }
    Ok(beside)
}
