//! `omc-host guests add` and `update`: shows what a guest is and asks for, asks what to grant, compiles it, writes it down.
//!
//! The bytes are read once: what is shown is what is added. Nobody is granted anything that was not named on the command line or
//! answered with a yes at a terminal.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use omc_artifact::Capability;

use super::{agreed, compiler, parse_all, refuse_built_in, registry, settings, short, source};
use crate::cli::difference::{self, Difference, Side, capability_parts};
use crate::cli::net::Transport;
use crate::cli::terminal;
use crate::config::{Limit, Paths, Settings};
use crate::interfaces;
use crate::policy;
use crate::registry::{self as guests, Agreement, Candidate, Installed, Registry};
use crate::text::inert;

pub(super) const EXAMPLES: &str = "\
Examples:
  omc-host guests add ./guest.wasm
  omc-host guests add oci://registry.example.com/team/guard:1.2.0
  omc-host guests add ./guest.wasm --yes --grant omc=rw:/omc/guests/mine --grant env=CI --grant transcript

At a terminal it asks; a script names the grants and says --yes. A grant never goes beyond what the guest requests. A
guest of the same name is replaced. A signature of minisign in `FILE.minisig` is checked with the keys that the
configuration trusts.";

pub(super) const UPDATE_EXAMPLES: &str = "\
Examples:
  omc-host guests update           all guests of others
  omc-host guests update guard --yes

What is granted already stays granted as far as the new version requests it. What it requests beyond that is asked for
at a terminal, or named with --grant.";

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct AddArgs {
    /// The guest: a component's file, a folder with one, or `oci://REFERENCE[@sha256:DIGEST]`
    source: String,
    #[command(flatten)]
    consent: Consent,
}

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct UpdateArgs {
    /// Its name; all guests of others unless given
    name: Option<String>,
    #[command(flatten)]
    consent: Consent,
}

/// How a person agrees, and which programs help.
#[derive(Debug, clap::Args)]
struct Consent {
    /// What it may do: a capability, or a capability and a part of its scope after `=`
    #[arg(long = "grant", value_name = "CAPABILITY[=SCOPE]")]
    grants: Vec<String>,
    /// Do not ask: it gets exactly the grants that are named
    #[arg(long)]
    yes: bool,
    /// The ahead-of-time compiler; the one beside this program unless given
    #[arg(long, value_name = "FILE")]
    compiler: Option<PathBuf>,
    #[command(flatten)]
    transport: Transport,
}

pub(super) fn add(args: &AddArgs, paths: &Paths) -> Result<bool> {
    let named = parse_all(&args.consent.grants)?;
    let settings = settings(paths);
    let registry = registry(paths)?;
    let candidate = source::read(&args.source, &args.consent.transport, &settings.trusted_keys())?;
    check_signer(&candidate, &settings)?;
    candidate.check_grants(&named)?;
    let installed = installed(&registry, &candidate.component.manifest.name);
    let wants_all_asked = named.is_empty() && !args.consent.yes;
    let compiler = compiler(args.consent.compiler.as_deref())?;

    show(&candidate, installed, &settings)?;
    if !args.consent.yes && !terminal::is_attended() {
        bail!("nobody is there to ask: name what it may do with --grant and say --yes; nothing was added");
    }
    let mut granted = named;
    if wants_all_asked {
        granted.extend(ask_for(&candidate, &[])?);
    }
    let name = &candidate.component.manifest.name;
    if !args.consent.yes {
        show_grants(&granted)?;
        if !terminal::ask(&format!("Add `{name}`?"))? {
            bail!("`{name}` was not added");
        }
    }
    finish(candidate, granted, paths, &compiler, "added")?;
    Ok(true)
}

pub(super) fn update(args: &UpdateArgs, paths: &Paths) -> Result<bool> {
    let named = parse_all(&args.consent.grants)?;
    if args.name.is_none() && !named.is_empty() {
        bail!("a grant is one guest's: name the guest");
    }
    let settings = settings(paths);
    let registry = registry(paths)?;
    if let Some(name) = &args.name {
        refuse_built_in(&registry, name, "it comes with the program, and is updated with it")?;
    }
    let is_chosen = |guest: &&Installed| args.name.as_ref().is_none_or(|name| guest.manifest.name == *name);
    let chosen: Vec<_> = registry.installed.iter().map(AsRef::as_ref).filter(is_chosen).collect();
    let mut is_in_order = true;
    for guest in &chosen {
        let name = &guest.manifest.name;
        match update_one(guest, &args.consent, &named, &settings, paths) {
            Ok(()) => {}
            // One that cannot be reached costs the others nothing.
            Err(error) if chosen.len() > 1 => {
                crate::cli::warn([format!("`{name}` was not updated: {error:#}")]);
                is_in_order = false;
            }
            Err(error) => return Err(error),
        }
    }
    if chosen.is_empty() {
        writeln!(std::io::stdout(), "there are no guests of others")?;
    }
    Ok(is_in_order)
}

fn update_one(
    guest: &Installed,
    consent: &Consent,
    named: &[Capability],
    settings: &Settings,
    paths: &Paths,
) -> Result<()> {
    let name = &guest.manifest.name;
    let candidate = source::read(&guest.source, &consent.transport, &settings.trusted_keys())?;
    let offered = &candidate.component;
    if offered.manifest.name != *name {
        bail!("`{}` holds the guest `{}` now, not `{name}`", inert(&guest.source), offered.manifest.name);
    }
    if offered.digest == guest.digest && candidate.signing_key() == guest.signer() && guest.is_whole(paths) {
        writeln!(std::io::stdout(), "`{name}` {} is up to date", inert(&guest.manifest.version))?;
        return Ok(());
    }
    check_signer(&candidate, settings)?;
    candidate.check_grants(named)?;
    show(&candidate, Some(guest), settings)?;
    let mut granted = policy::merged([still_requested(guest, &candidate), named.to_vec()].concat());
    if !consent.yes {
        if !terminal::is_attended() {
            bail!(
                "nobody is there to ask: say --yes to update `{name}`; what it has of its grants stays, and more is named with --grant"
            );
        }
        if named.is_empty() {
            granted.extend(ask_for(&candidate, &granted)?);
        }
        show_grants(&granted)?;
        if !terminal::ask(&format!("Update `{name}`?"))? {
            writeln!(std::io::stdout(), "`{name}` stays as it is")?;
            return Ok(());
        }
    }
    finish(candidate, granted, paths, &compiler(consent.compiler.as_deref())?, "updated")
}

/// What was granted and the new version requests as well.
fn still_requested(guest: &Installed, candidate: &Candidate) -> Vec<Capability> {
    let requested: Vec<_> = candidate.component.manifest.requests.iter().map(|request| &request.capability).collect();
    let parts = guest.grants.iter().flat_map(policy::in_parts);
    parts.filter(|part| policy::covers(&requested, part)).collect()
}

/// Refuses what the operator's signature policy refuses.
fn check_signer(candidate: &Candidate, settings: &Settings) -> Result<()> {
    if settings.admits_signer(candidate.signing_key()) {
        return Ok(());
    }
    let name = &candidate.component.manifest.name;
    bail!(
        "`require-signature` of the configuration wants a signature by one of its keys, and that of `{name}` is: {}",
        candidate.signer
    )
}

/// Compiles a guest, adds it and says what it got.
fn finish(candidate: Candidate, granted: Vec<Capability>, paths: &Paths, compiler: &Path, done: &str) -> Result<()> {
    let (by, at) = agreed();
    let name = candidate.component.manifest.name.clone();
    let agreement = Agreement { grants: policy::merged(granted), by, at };
    let added = terminal::with_progress(&format!("compiling {name}"), || {
        guests::install(paths, candidate, agreement, compiler)
    })?;
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{done} `{name}` {} ({})", inert(&added.manifest.version), short(&added.digest))?;
    let granted: Vec<_> = added.grants.iter().flat_map(capability_parts).map(|part| inert(&part)).collect();
    match (granted.as_slice(), added.manifest.requests.is_empty()) {
        ([], true) => {}
        ([], false) => writeln!(stdout, "it is granted nothing of what it requests; see `omc-host audit {name}`")?,
        (granted, _) => writeln!(stdout, "granted: {}", granted.join(", "))?,
    }
    Ok(())
}

fn installed<'a>(registry: &'a Registry, name: &str) -> Option<&'a Installed> {
    registry.installed.iter().map(AsRef::as_ref).find(|guest| guest.manifest.name == name)
}

/// Asks for each part of the requests that is not granted already.
fn ask_for(candidate: &Candidate, granted: &[Capability]) -> Result<Vec<Capability>> {
    let granted: Vec<&Capability> = granted.iter().collect();
    let mut agreed = Vec::new();
    for request in &candidate.component.manifest.requests {
        // What this version does not know it cannot give, whatever a person says.
        if matches!(request.capability, Capability::Unknown { .. }) {
            continue;
        }
        for grant in policy::in_parts(&request.capability) {
            if policy::covers(&granted, &grant) {
                continue;
            }
            let part = capability_parts(&grant).join(", ");
            if terminal::ask(&format!("Grant `{part}`? Its reason: {}", request.reason))? {
                agreed.push(grant);
            }
        }
    }
    Ok(agreed)
}

fn show_grants(granted: &[Capability]) -> Result<()> {
    let parts: Vec<_> = granted.iter().flat_map(capability_parts).map(|part| inert(&part)).collect();
    let text = if parts.is_empty() { "nothing".to_owned() } else { parts.join(", ") };
    writeln!(std::io::stdout(), "\nit will be granted: {text}")?;
    Ok(())
}

/// Shows what a person decides about. Every text of the guest stays on its own line.
fn show(candidate: &Candidate, installed: Option<&Installed>, settings: &Settings) -> Result<()> {
    let component = &candidate.component;
    let manifest = &component.manifest;
    let mut lines = vec![
        ("guest", format!("{} {}", manifest.name, manifest.version)),
        ("about", manifest.description.clone()),
        ("source", candidate.source.clone()),
        ("digest", component.digest.clone()),
        ("size", format!("{} kB", candidate.size().div_ceil(1_000))),
        ("signature", candidate.signer.to_string()),
    ];
    lines.extend(candidate.artifact.clone().map(|artifact| ("artifact", artifact)));
    lines.extend(
        interfaces::built_for(&component.imports, &component.exports)
            .map(|version| ("built for", format!("omc:hook {version}"))),
    );
    lines.push(("events", difference::events_in_short(manifest).join(", ")));
    let limits = settings.guest(&manifest.name).limits;
    for (key, wish) in difference::wishes(&manifest.limits) {
        if let (Some(wish), Some(limit)) = (wish, Limit::from_key(key)) {
            lines.push(("limit", format!("{key} {wish} wished for; {} holds", limits.get(limit))));
        }
    }
    for request in &manifest.requests {
        let known = if matches!(request.capability, Capability::Unknown { .. }) {
            ", which this version cannot give"
        } else {
            ""
        };
        lines.extend(
            capability_parts(&request.capability)
                .into_iter()
                .map(|part| ("requests", format!("{part}{known}: {}", request.reason))),
        );
    }
    let mut stdout = std::io::stdout().lock();
    for (what, text) in lines {
        writeln!(stdout, "{what:<10} {}", inert(&text))?;
    }
    let Some(old) = installed else { return Ok(()) };
    let by = if old.by.is_empty() { String::new() } else { format!(" by {}", old.by) };
    writeln!(stdout, "\nreplaces {}, agreed to at {}{}", inert(&old.manifest.version), inert(&old.added), inert(&by))?;
    let side = |digest, manifest, imports| Side { digest, manifest, imports };
    let differences = difference::between(
        side(&old.digest, &old.manifest, &old.imports),
        side(&component.digest, manifest, &component.imports),
    );
    if differences.is_empty() {
        writeln!(stdout, "  nothing is different")?;
    }
    for line in differences.iter().map(Difference::line) {
        writeln!(stdout, "  {}", inert(&line))?;
    }
    Ok(())
}
