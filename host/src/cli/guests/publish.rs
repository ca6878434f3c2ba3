//! `omc-host guests push`: publishes a guest as an OCI artifact.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::PathBuf;

use anyhow::{Result, bail};

use super::source::OCI;
use crate::cli::net::{self, Transport};
use crate::registry::Candidate;
use crate::signature::Signer;
use crate::text::inert;

pub(super) const EXAMPLES: &str = "\
Examples:
  minisign -Sm guest.wasm
  omc-host guests push guest.wasm oci://registry.example.com/team/guard:1.2.0

Credentials are those of `docker login`. The artifact has the CNCF layout for WebAssembly; a signature in
`FILE.minisig` is published with it.";

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Args {
    /// The guest: a WebAssembly component with a manifest
    file: PathBuf,
    /// Where to: `oci://HOST/NAME:TAG`
    reference: String,
    #[command(flatten)]
    transport: Transport,
}

pub(super) fn run(args: &Args) -> Result<bool> {
    let Some(reference) = args.reference.strip_prefix(OCI) else {
        bail!("`{}` is no reference to a registry; write `oci://HOST/NAME:TAG`", args.reference);
    };
    // What nobody could add is not published.
    let candidate = Candidate::read(&args.file, args.file.display().to_string(), None, &BTreeSet::new())?;
    let digest = net::push(&args.transport, &args.file, &candidate.component, reference)?;
    let (name, version) = (&candidate.component.manifest.name, inert(&candidate.component.manifest.version));
    let signed = if candidate.signer == Signer::None { "without a signature" } else { "with its signature" };
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "published `{name}` {version} {signed}")?;
    writeln!(stdout, "{OCI}{}@{}", inert(reference.split('@').next().unwrap_or(reference)), inert(&digest))?;
    Ok(true)
}
