//! `omc-host audit`: what each guest can do.

use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use omc_artifact::{Capability, Component, MAX_COMPONENT_BYTES, Manifest};
use serde::Serialize;

use super::table::table;
use crate::config::paths::SYSTEM_CONFIG_FILE;
use crate::config::{Paths, Settings};
use crate::policy::Grants;
use crate::registry::{Guest, Registry};

pub(super) const EXAMPLES: &str = "\
Examples:
  omc-host audit                    all guests
  omc-host audit keyword-detector   one of them
  omc-host audit ./guest.wasm       a file, before it is added
  omc-host audit --json             for programs

The exit status is 1 if a guest imports something it does not request, or requests something this version cannot give.";

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// A guest's name, or a component's file; all guests unless given
    guest: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What one guest can do.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct Report {
    name: String,
    version: String,
    digest: String,
    /// `built-in`, `installed`, or the file's path.
    source: String,
    enabled: bool,
    subscriptions: Vec<String>,
    imports: Imports,
    requested: Vec<Requested>,
    /// What of it is granted, `capability scope…` each.
    granted: Vec<String>,
    /// What does not fit together.
    findings: Vec<String>,
}

/// A component's imports by what they mean.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
struct Imports {
    /// Of `omc:hook`, always granted.
    always: Vec<String>,
    /// Of `omc:hook`, each a capability.
    capability: Vec<String>,
    /// Of WASI: what the language's runtime imports, asked for or not. Files are only what `omc` grants, sockets are denied.
    runtime: Vec<String>,
    /// Anything else: this host has no such interface.
    unknown: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Requested {
    capability: String,
    scope: Vec<String>,
    reason: String,
}

/// The interfaces of `omc:hook` and the capability that each one is; none is always granted.
const INTERFACES: &[(&str, Option<&str>)] = &[
    ("omc:hook/types", None),
    ("omc:hook/log", None),
    ("omc:hook/settings", None),
    ("omc:hook/state-lock", Some("omc")),
    ("omc:hook/transcript", Some("transcript")),
    ("omc:hook/environment", Some("env")),
    ("omc:hook/project-files", Some("read")),
    ("omc:hook/git", Some("git")),
    ("omc:hook/session-environment", Some("session-environment")),
];

pub(super) fn run(args: &Args, paths: &Paths) -> Result<bool> {
    let registry = Registry::load(paths);
    if let Some(problem) = registry.problem {
        return Err(problem.into());
    }
    let settings = Settings::load(SYSTEM_CONFIG_FILE.as_ref(), paths.user_config_file().as_deref(), None);
    let reports = match &args.guest {
        None => registry.guests().map(|guest| of_guest(&guest, &settings)).collect(),
        Some(named) => match registry.guests().find(|guest| guest.name() == named) {
            Some(guest) => vec![of_guest(&guest, &settings)],
            None => vec![of_file(named)?],
        },
    };
    let mut stdout = std::io::stdout().lock();
    if args.json {
        writeln!(stdout, "{}", crate::text::inert_json(serde_json::to_string_pretty(&reports)?))?;
    } else {
        writeln!(stdout, "{}", render(&reports))?;
    }
    Ok(reports.iter().all(|report| report.findings.is_empty()))
}

fn of_guest(guest: &Guest, settings: &Settings) -> Report {
    let policy = settings.guest(guest.name());
    let grants = Grants::of(&guest.requests(), guest.granted(), &policy.withheld);
    let source = match guest {
        Guest::FirstParty(_) => "built-in",
        Guest::Installed(_) => "installed",
    };
    let enabled = policy.switch.is_on(guest.is_on_by_default());
    report(&guest.manifest(), guest.digest(), &guest.imports(), source, enabled, &grants)
}

fn of_file(named: &str) -> Result<Report> {
    let path = PathBuf::from(named);
    if !path.is_file() {
        bail!("there is neither a guest nor a file `{named}`; `omc-host guests list` shows the guests");
    }
    let component = read(&path)?;
    let Component { manifest, imports, digest } = component;
    Ok(report(&manifest, &digest, &imports, named, false, &Grants::default()))
}

fn read(path: &Path) -> Result<Component> {
    let file = std::fs::File::open(path).with_context(|| format!("failed to open `{}`", path.display()))?;
    let mut bytes = Vec::new();
    file.take(MAX_COMPONENT_BYTES as u64 + 1)
        .read_to_end(&mut bytes)
        .with_context(|| format!("failed to read `{}`", path.display()))?;
    Component::read(&bytes).with_context(|| format!("`{}` is not a guest", path.display()))
}

fn report(
    manifest: &Manifest,
    digest: &str,
    imports: &[String],
    source: &str,
    enabled: bool,
    grants: &Grants,
) -> Report {
    let imports = split(imports);
    let mut findings: Vec<_> =
        imports.unknown.iter().map(|import| format!("imports `{import}`, which this host does not have")).collect();
    for import in &imports.capability {
        let capability = capability_of(import).unwrap_or_default();
        if !manifest.requests.iter().any(|request| request.capability.name() == capability) {
            findings.push(format!("imports `{import}` without requesting `{capability}`"));
        }
    }
    for request in &manifest.requests {
        if let Capability::Unknown { name, .. } = &request.capability {
            findings.push(format!("requests `{name}`, which this version cannot give"));
        }
    }
    Report {
        name: manifest.name.clone(),
        version: manifest.version.clone(),
        digest: digest.to_owned(),
        source: source.to_owned(),
        enabled,
        subscriptions: manifest
            .subscriptions
            .iter()
            .map(|wanted| match &wanted.matcher {
                Some(matcher) => format!("{} {matcher}", wanted.event),
                None => wanted.event.clone(),
            })
            .collect(),
        imports,
        requested: manifest
            .requests
            .iter()
            .map(|request| Requested {
                capability: request.capability.name().to_owned(),
                scope: request.capability.scope(),
                reason: request.reason.clone(),
            })
            .collect(),
        granted: grants.describe(),
        findings,
    }
}

fn split(imports: &[String]) -> Imports {
    let mut split = Imports::default();
    for import in imports {
        let bare = import.split_once('@').map_or(import.as_str(), |(bare, _)| bare);
        let list = match INTERFACES.iter().find(|(interface, _)| *interface == bare) {
            Some((_, None)) => &mut split.always,
            Some((_, Some(_))) => &mut split.capability,
            None if bare.starts_with("wasi:") => &mut split.runtime,
            None => &mut split.unknown,
        };
        list.push(import.clone());
    }
    split
}

fn capability_of(import: &str) -> Option<&'static str> {
    let bare = import.split_once('@').map_or(import, |(bare, _)| bare);
    INTERFACES.iter().find(|(interface, _)| *interface == bare).and_then(|(_, capability)| *capability)
}

fn render(reports: &[Report]) -> String {
    let rows = reports.iter().map(|report| {
        let short = |import: &String| import.strip_prefix("omc:hook/").unwrap_or(import).to_owned();
        let mut imports: Vec<_> = report.imports.capability.iter().chain(&report.imports.unknown).map(short).collect();
        imports.push(format!("({} of the language runtime)", report.imports.runtime.len()));
        let requested = report.requested.iter().map(|request| {
            let scope = request.scope.join(", ");
            let separator = if scope.is_empty() { "" } else { " " };
            format!("{}{separator}{scope}: {}", request.capability, request.reason)
        });
        [
            format!("{} {}\n{}\n{}", report.name, report.version, &report.digest[..12], report.source),
            report.subscriptions.join("\n"),
            imports.join("\n"),
            requested.collect::<Vec<_>>().join("\n"),
            report.granted.join("\n"),
        ]
    });
    let mut text = table(["GUEST", "EVENTS", "IMPORTS", "REQUESTED", "GRANTED"], rows);
    for report in reports {
        for finding in &report.findings {
            text.extend(["\nfinding: ", report.name.as_str(), " ", &crate::text::inert(finding)]);
        }
    }
    text
}
