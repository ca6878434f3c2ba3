//! `omc-host audit`: what each guest can do.

use std::io::Write as _;
use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};
use omc_artifact::{Capability, Component, Manifest};
use serde::Serialize;

use super::table::table;
use crate::config::paths::SYSTEM_CONFIG_FILE;
use crate::config::{Paths, Settings};
use crate::interfaces::{self, Import, Mismatch};
use crate::policy::Grants;
use crate::registry::{Guest, Registry};
use crate::text::inert;

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

pub(super) fn run(args: &Args, paths: &Paths) -> Result<bool> {
    let registry = Registry::load(paths);
    if let Some(problem) = registry.problem {
        return Err(problem.into());
    }
    let settings = Settings::load(SYSTEM_CONFIG_FILE.as_ref(), paths.user_config_file().as_deref(), None);
    super::warn(settings.problems.iter().map(ToString::to_string));
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
    Ok(settings.problems.is_empty() && reports.iter().all(|report| report.findings.is_empty()))
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
    let (component, _) = Component::load(&path).with_context(|| format!("`{named}` is not a guest"))?;
    let mut report =
        report(&component.manifest, &component.digest, &component.imports, named, false, &Grants::default());
    let fits = interfaces::check(&component.imports, &component.exports);
    // What is missing has been found import by import.
    if let Err(mismatch @ (Mismatch::Version(_) | Mismatch::WrongWorld)) = fits {
        report.findings.push(mismatch.to_string());
    }
    Ok(report)
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
        if let Import::Capability(capability) = Import::of(import)
            && !manifest.requests.iter().any(|request| request.capability.name() == capability)
        {
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
        let list = match Import::of(import) {
            Import::Always => &mut split.always,
            Import::Capability(_) => &mut split.capability,
            Import::Runtime => &mut split.runtime,
            Import::Unknown => &mut split.unknown,
        };
        list.push(import.clone());
    }
    split
}

fn render(reports: &[Report]) -> String {
    let rows = reports.iter().map(|report| {
        // Every text of the guest on one line: a line end in it must not look like another entry.
        let short = |import: &String| inert(import.strip_prefix("omc:hook/").unwrap_or(import));
        let mut imports: Vec<_> = report.imports.capability.iter().chain(&report.imports.unknown).map(short).collect();
        imports.push(format!("({} of the language runtime)", report.imports.runtime.len()));
        let requested = report.requested.iter().map(|request| {
            let scope = request.scope.join(", ");
            let separator = if scope.is_empty() { "" } else { " " };
            inert(&format!("{}{separator}{scope}: {}", request.capability, request.reason))
        });
        [
            format!("{} {}\n{}\n{}", report.name, inert(&report.version), &report.digest[..12], inert(&report.source)),
            report.subscriptions.iter().map(|wanted| inert(wanted)).collect::<Vec<_>>().join("\n"),
            imports.join("\n"),
            requested.collect::<Vec<_>>().join("\n"),
            report.granted.join("\n"),
        ]
    });
    let mut text = table(["GUEST", "EVENTS", "IMPORTS", "REQUESTED", "GRANTED"], rows);
    for report in reports {
        for finding in &report.findings {
            text.extend(["\nfinding: ", report.name.as_str(), " ", &inert(finding)]);
        }
    }
    text
}
