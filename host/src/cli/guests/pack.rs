//! `omc-host guests pack`: puts a manifest on a component, and says what an author would otherwise learn from an operator.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use omc_artifact::{Component, Condition, Manifest};

use crate::cli::audit::report;
use crate::config::guest_manifest;
use crate::protocol::event::Kind;
use crate::registry;
use crate::text::inert;

pub(super) const EXAMPLES: &str = "\
Examples:
  omc-host guests pack guest.wasm
  omc-host guests pack built/guest.wasm --manifest guest.toml -o guard.wasm

guest.toml has the members of a manifest:
  name = \"guard\"
  version = \"1.2.0\"
  description = \"Keeps shared branches as they are\"

  [[subscriptions]]
  event = \"pre-tool-use\"
  matcher = \"Bash\"

  [[requests]]
  capability = \"env\"
  scope = [\"CI\"]
  reason = \"is quiet in CI\"

A guest in Rust needs none of this: the macro of `omc-guest` leaves the manifest inside.";

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Args {
    /// The component
    file: PathBuf,
    /// The manifest
    #[arg(long, value_name = "FILE", default_value = "guest.toml")]
    manifest: PathBuf,
    /// Where the guest is written; over the component unless given
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(super) fn run(args: &Args) -> Result<bool> {
    let manifest = guest_manifest::load(&args.manifest).map_err(|problems| {
        let lines: Vec<_> = problems.iter().map(ToString::to_string).collect();
        anyhow::anyhow!("the manifest cannot be used: {}", lines.join("; "))
    })?;
    let shown = args.file.display();
    let bytes = Component::bytes(&args.file).with_context(|| format!("failed to read `{shown}`"))?;
    let packed = omc_artifact::pack(&bytes, &manifest).context("failed to write the manifest as JSON")?;
    let component = Component::read(&packed).with_context(|| format!("`{shown}` is not a component"))?;
    registry::check(&component, &[])?;
    let mut problems = report::misfits_of(&component);
    problems.extend(slips(&manifest));
    if !problems.is_empty() {
        bail!(
            "the manifest `{}` does not fit `{shown}`, and nothing was written: {}",
            args.manifest.display(),
            problems.join("; ")
        );
    }
    let output = args.output.as_ref().unwrap_or(&args.file);
    replace(output, &packed).with_context(|| format!("failed to write `{}`", output.display()))?;
    let mut stdout = std::io::stdout().lock();
    writeln!(
        stdout,
        "packed `{}` {} into `{}`; sha256 {}",
        manifest.name,
        inert(&manifest.version),
        inert(&output.display().to_string()),
        component.digest
    )?;
    Ok(true)
}

/// What an operator's host would pass over in a manifest, because a later one may know it, and its author surely did not mean.
fn slips(manifest: &Manifest) -> Vec<String> {
    let mut slips = Vec::new();
    if manifest.subscriptions.is_empty() {
        slips.push("it subscribes to no event, so it is never called".to_owned());
    }
    for subscription in &manifest.subscriptions {
        let event = &subscription.event;
        if Kind::from_name(event).is_none() {
            slips.push(format!("there is no event `{event}`; docs/events.md lists them"));
        }
        let unknown = subscription.when.iter().filter(|text| Condition::parse(text) == Some(Condition::Unknown));
        slips.extend(unknown.map(|text| format!("no condition begins as `{text}` does, so it always holds")));
    }
    for request in manifest.requests.iter().filter(|request| request.reason.trim().is_empty()) {
        slips.push(format!("the request for `{}` gives no reason", request.capability.name()));
    }
    slips
}

/// Writes a file so that there is the old or the new one, readable as the person's other files are.
fn replace(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let mut file = builder.tempfile_in(folder)?;
    file.write_all(bytes)?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_host_would_pass_over_is_a_slip_of_the_author() {
        let manifest = |subscriptions: &str, requests: &str| {
            let json = format!(
                r#"{{"name": "a", "version": "1", "subscriptions": [{subscriptions}], "requests": [{requests}]}}"#
            );
            slips(&Manifest::parse(json.as_bytes()).expect("a manifest")).join("; ")
        };
        let stop = r#"{"event": "stop", "when": ["payload:x"]}"#;
        assert_eq!(manifest(stop, r#"{"capability": "git", "reason": "names the branch"}"#), "");
        assert_eq!(manifest("", ""), "it subscribes to no event, so it is never called");
        assert!(manifest(r#"{"event": "PreToolUse"}"#, "").contains("there is no event `PreToolUse`"));
        assert!(manifest(r#"{"event": "stop", "when": ["moon:full"]}"#, "").contains("`moon:full`"));
        assert!(manifest(stop, r#"{"capability": "git", "reason": " "}"#).contains("`git` gives no reason"));
    }
}
