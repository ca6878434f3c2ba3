//! `omc-host audit`: what each guest can do, what of it is used, and whether a policy holds.

pub(super) mod report;
mod shown;

use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use omc_artifact::Component;

use super::difference::{self, Difference, Side};
use super::log;
use crate::audit::Record;
use crate::config::Paths;
use crate::config::audit_policy::AuditPolicy;
use crate::registry::{Registry, signature_beside};
use crate::text::inert;

use report::{Context, Subject};

pub(super) const EXAMPLES: &str = "\
Examples:
  omc-host audit                    all guests
  omc-host audit keyword-detector   one of them
  omc-host audit ./guest.wasm       a file, before it is added
  omc-host audit --policy ci.toml   for CI: the exit status says whether it holds
  omc-host audit --diff guard ./guard-2.wasm
  omc-host audit --json             for programs; docs/audit.md describes it

The exit status is 1 if a guest imports something it does not request, requests something this version cannot give, has a
signature that does not fit, or breaks the policy; with --diff if the new one can do more than the old one.";

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// A guest's name, or a component's file; all guests unless given
    guest: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Judge the guests by this file as well
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
    /// Show what is different between two guests, each a name or a file
    #[arg(long, num_args = 2, value_names = ["OLD", "NEW"], conflicts_with_all = ["guest", "policy"])]
    diff: Option<Vec<String>>,
}

pub(super) fn run(args: &Args, paths: &Paths) -> Result<bool> {
    let mut registry = Registry::load(paths);
    if let Some(problem) = registry.problem.take() {
        return Err(problem.into());
    }
    if let Some([old, new]) = args.diff.as_deref() {
        return diff(&find(&registry, old)?, &find(&registry, new)?, args.json);
    }
    let settings = super::guests::settings(paths);
    let policy = args.policy.as_deref().map(load_policy).transpose()?;
    let subjects = match &args.guest {
        None => registry.guests().map(Subject::Guest).collect(),
        Some(named) => vec![find(&registry, named)?],
    };
    let records: Vec<Record> = if paths.state_dir.is_some() { log::read(paths)? } else { Vec::new() };
    let mut trusted = settings.trusted_keys();
    trusted.extend(policy.iter().flat_map(AuditPolicy::publishers).cloned());
    let context = Context {
        paths,
        settings: &settings,
        faults: &registry.faults,
        records: &records,
        trusted: &trusted,
        policy: policy.as_ref(),
    };
    let reports: Vec<_> = subjects.iter().map(|subject| report::of(subject, &context)).collect();
    let mut stdout = std::io::stdout().lock();
    if args.json {
        writeln!(stdout, "{}", crate::text::inert_json(serde_json::to_string_pretty(&reports)?))?;
    } else if let ([report], Some(_)) = (reports.as_slice(), &args.guest) {
        write!(stdout, "{}", shown::whole(report))?;
    } else {
        writeln!(stdout, "{}", shown::table(&reports))?;
    }
    Ok(settings.problems.is_empty() && reports.iter().all(|report| report.findings.is_empty()))
}

fn load_policy(path: &Path) -> Result<AuditPolicy> {
    AuditPolicy::load(path).map_err(|problems| {
        let lines: Vec<_> = problems.iter().map(ToString::to_string).collect();
        anyhow::anyhow!("the policy cannot be used: {}", lines.join("; "))
    })
}

/// The guest of that name, or the component in that file.
fn find(registry: &Registry, named: &str) -> Result<Subject> {
    if let Some(guest) = registry.guests().find(|guest| guest.name() == named) {
        return Ok(Subject::Guest(guest));
    }
    let path = Path::new(named);
    if !path.is_file() {
        bail!("there is neither a guest nor a file `{named}`; `omc-host guests list` shows the guests");
    }
    let (component, bytes) = Component::load(path).with_context(|| format!("`{named}` is not a guest"))?;
    let signature = signature_beside(path)?;
    Ok(Subject::File { named: named.to_owned(), component: Box::new(component), bytes, signature })
}

fn diff(old: &Subject, new: &Subject, json: bool) -> Result<bool> {
    let (old, new) = (old.about(), new.about());
    let side = |about: &report::About| (about.digest.clone(), about.manifest.clone(), about.imports.clone());
    let ((d1, m1, i1), (d2, m2, i2)) = (side(&old), side(&new));
    let found = difference::between(
        Side { digest: &d1, manifest: &m1, imports: &i1 },
        Side { digest: &d2, manifest: &m2, imports: &i2 },
    );
    let mut stdout = std::io::stdout().lock();
    if json {
        writeln!(stdout, "{}", crate::text::inert_json(serde_json::to_string_pretty(&found)?))?;
    } else if found.is_empty() {
        writeln!(stdout, "nothing is different")?;
    } else {
        for line in found.iter().map(Difference::line) {
            writeln!(stdout, "{}", inert(&line))?;
        }
    }
    Ok(!found.iter().any(|difference| difference.widens))
}
