//! `omc-host guests`: which guests there are, and what those of others may do.

mod add;
mod grants;
mod new;
mod pack;
mod publish;
mod source;
mod stats;
mod switch;
mod verify;

use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use super::table::table;
use crate::config::paths::{SYSTEM_CONFIG_FILE, account_name};
use crate::config::{Paths, Settings};
use crate::registry::{self, Guest, InstallError, Registry, Streak};
use crate::signature::Key;
use crate::text::inert;

pub(super) const EXAMPLES: &str = "\
Examples:
  omc-host guests list
  omc-host guests add ./guest.wasm
  omc-host guests remove mine";

/// List, add, change and remove guests.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// List all guests
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show a guest, ask what to grant it, compile and add it
    #[command(after_help = add::EXAMPLES)]
    Add(add::AddArgs),
    /// Look where guests came from, show what is different there, ask, and replace them
    #[command(after_help = add::UPDATE_EXAMPLES)]
    Update(add::UpdateArgs),
    /// Remove a guest and its files
    Remove {
        /// Its name
        name: String,
    },
    /// Switch a guest on, in your configuration
    Enable {
        /// Its name
        name: String,
    },
    /// Switch a guest off, in your configuration
    Disable {
        /// Its name
        name: String,
    },
    /// Grant a guest more of what it requests
    #[command(after_help = grants::EXAMPLES)]
    Grant(grants::Args),
    /// Take grants away from a guest
    #[command(after_help = grants::REVOKE_EXAMPLES)]
    Revoke(grants::Args),
    /// See that guests are what was agreed to: bytes, compiled code, signatures, and who can write them
    Verify(verify::Args),
    /// Show how often guests were called, how long they took, their fuel and faults
    Stats(stats::Args),
    /// Write a project for a guest that builds and passes its test
    #[command(after_help = new::EXAMPLES)]
    New(new::Args),
    /// Put the manifest of guest.toml on a component, and see that the two fit
    #[command(after_help = pack::EXAMPLES)]
    Pack(pack::Args),
    /// Publish a guest to an OCI registry, with its signature if there is one beside it
    #[command(after_help = publish::EXAMPLES)]
    Push(publish::Args),
}

pub(super) fn run(command: Command, paths: &Paths) -> Result<bool> {
    match command {
        Command::List { json } => list(json, paths),
        Command::Add(args) => add::add(&args, paths),
        Command::Update(args) => add::update(&args, paths),
        Command::Remove { name } => remove(&name, paths),
        Command::Enable { name } => switch::set(&name, true, paths),
        Command::Disable { name } => switch::set(&name, false, paths),
        Command::Grant(args) => grants::grant(&args, paths),
        Command::Revoke(args) => grants::revoke(&args, paths),
        Command::Verify(args) => verify::run(&args, paths),
        Command::Stats(args) => stats::run(&args, paths),
        Command::New(args) => new::run(&args),
        Command::Pack(args) => pack::run(&args),
        Command::Push(args) => publish::run(&args),
    }
}

/// The operator's and the user's settings; no project has a say in what these commands do.
pub(super) fn settings(paths: &Paths) -> Settings {
    let settings = Settings::load(SYSTEM_CONFIG_FILE.as_ref(), paths.user_config_file().as_deref(), None);
    super::warn(settings.problems.iter().map(ToString::to_string));
    settings
}

/// All guests; an unusable lock file is an error here.
fn registry(paths: &Paths) -> Result<Registry> {
    let mut registry = Registry::load(paths);
    match registry.problem.take() {
        Some(problem) => Err(problem.into()),
        None => Ok(registry),
    }
}

/// The guest of that name.
fn find(registry: &Registry, name: &str) -> Result<Guest> {
    let guest = registry.guests().find(|guest| guest.name() == name);
    guest.ok_or_else(|| InstallError::Unknown(name.to_owned()).into())
}

/// What is said to whoever wants to change one of our own guests as if it were somebody else's.
fn refuse_built_in(registry: &Registry, name: &str, next: &str) -> Result<()> {
    match find(registry, name)? {
        Guest::FirstParty(_) => bail!("`{name}` is built into omc-host; {next}"),
        Guest::Installed(_) => Ok(()),
    }
}

/// The ahead-of-time compiler: the one named, or the one that ships beside this program.
fn compiler(named: Option<&Path>) -> Result<PathBuf> {
    match named {
        Some(named) if !named.is_file() => bail!("the compiler `{}` is not there", named.display()),
        Some(named) => Ok(named.to_owned()),
        None => super::beside("omc-compiler", "--compiler"),
    }
}

/// Whose decision is written down, and when it was made.
fn agreed() -> (String, String) {
    (account_name(), crate::audit::now())
}

fn remove(name: &str, paths: &Paths) -> Result<bool> {
    let next = format!("it cannot be removed; `omc-host guests disable {name}` switches it off");
    refuse_built_in(&registry(paths)?, name, &next)?;
    registry::remove(paths, name)?;
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "removed `{name}`")?;
    if settings(paths).guest(name).required {
        writeln!(stdout, "it is required by the configuration: tools are refused until it is there again")?;
    }
    Ok(true)
}

fn list(json: bool, paths: &Paths) -> Result<bool> {
    let registry = registry(paths)?;
    let faults = &registry.faults;
    let settings = settings(paths);
    let source = |guest: &Guest| match guest {
        Guest::FirstParty(_) => "built-in".to_owned(),
        Guest::Installed(guest) => guest.source.clone(),
    };
    let signer = |guest: &Guest| match guest {
        Guest::FirstParty(_) => None,
        Guest::Installed(guest) => guest.signer().and_then(Key::parse).map(|key| key.id().to_string()),
    };
    let is_refused =
        |guest: &Guest| matches!(guest, Guest::Installed(guest) if !settings.admits_signer(guest.signer()));
    let state = |guest: &Guest| {
        let policy = settings.guest(guest.name());
        match (policy.switch.is_on(guest.is_on_by_default()), policy.required, faults.sets_aside(guest)) {
            _ if is_refused(guest) => "unsigned",
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
                let agreed = match &guest {
                    Guest::FirstParty(_) => None,
                    Guest::Installed(guest) => Some(serde_json::json!({ "at": guest.added, "by": guest.by })),
                };
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
                    "signed-by": signer(&guest),
                    "agreed": agreed,
                    "description": guest.manifest().description,
                })
            })
            .collect();
        writeln!(stdout, "{}", crate::text::inert_json(serde_json::to_string_pretty(&guests)?))?;
        return Ok(true);
    }
    let rows = registry.guests().map(|guest| {
        let digest = short(guest.digest());
        // A line end in them must not look like another guest.
        let (version, description) = (inert(guest.version()), inert(&guest.manifest().description));
        let key = signer(&guest).unwrap_or_else(|| "-".to_owned());
        [guest.name().to_owned(), version, digest, state(&guest).to_owned(), key, description]
    });
    writeln!(stdout, "{}", table(["NAME", "VERSION", "DIGEST", "STATE", "SIGNED BY", "DESCRIPTION"], rows))?;
    for guest in registry.guests() {
        let name = guest.name();
        match (state(&guest), faults.sets_aside(&guest)) {
            ("set-aside", Some(streak)) => {
                let (faults, kind, until) = (streak.faults, inert(&streak.kind), until(streak));
                writeln!(
                    stdout,
                    "\n`{name}` is set aside until {until}: {faults} faults in a row, the last of them `{kind}`; see `omc-host log --guest {name}`"
                )?;
            }
            ("unsigned", _) => writeln!(
                stdout,
                "\n`{name}` is not called: it has no signature by a key of `require-signature`; add it again when it is signed"
            )?,
            _ => {}
        }
    }
    if settings.log_payloads() {
        writeln!(stdout, "\n`log-payloads` is on: the audit trail holds prompts, files and secrets")?;
    }
    Ok(true)
}

/// The beginning of a digest, enough to tell guests apart.
pub(super) fn short(digest: &str) -> String {
    digest.chars().take(12).collect()
}

/// Reads a number of arguments with a message about each that cannot be read.
fn parse_all(texts: &[String]) -> Result<Vec<omc_artifact::Capability>> {
    texts.iter().map(|text| grants::parse(text)).collect()
}
