//! `omc-host guests grant` and `revoke`, and how a grant is written on the command line.

use std::io::Write as _;

use anyhow::{Result, anyhow, bail};
use omc_artifact::Capability;

use super::{agreed, parse_all, refuse_built_in, registry};
use crate::cli::difference::capability_parts;
use crate::config::Paths;
use crate::policy;
use crate::registry::{self as guests, InstallError};
use crate::text::inert;

pub(super) const EXAMPLES: &str = "\
Examples:
  omc-host guests grant guard transcript
  omc-host guests grant guard omc=rw:/omc/guests/guard env=CI

A grant may be less than the guest requests, never more; `omc-host audit GUEST` shows its requests.";

pub(super) const REVOKE_EXAMPLES: &str = "\
Examples:
  omc-host guests revoke guard env=CI     this part of it
  omc-host guests revoke guard env        all of it

From a guest of omc-host itself a capability is withheld in the configuration instead: `withhold` in `[guests.NAME]`.";

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Args {
    /// The guest's name
    name: String,
    /// A capability, or a capability and a part of its scope after `=`
    #[arg(required = true, value_name = "CAPABILITY[=SCOPE]")]
    grants: Vec<String>,
}

const BUILT_IN: &str = "it is granted what it requests; to take a capability away, `withhold` it in `[guests.NAME]` of the \
                        configuration";

pub(super) fn grant(args: &Args, paths: &Paths) -> Result<bool> {
    refuse_built_in(&registry(paths)?, &args.name, BUILT_IN)?;
    let more = parse_all(&args.grants)?;
    let (by, at) = agreed();
    let now = guests::change_grants(paths, &args.name, by, at, |guest| Ok([guest.grants.clone(), more].concat()))?;
    show(&args.name, &now)
}

pub(super) fn revoke(args: &Args, paths: &Paths) -> Result<bool> {
    refuse_built_in(&registry(paths)?, &args.name, BUILT_IN)?;
    let (by, at) = agreed();
    let now = guests::change_grants(paths, &args.name, by, at, |guest| {
        args.grants
            .iter()
            .try_fold(guest.clone(), |mut left, text| {
                let (capability, part) = split(text);
                left.grants = guests::without(&left, capability, part)?;
                Ok::<_, InstallError>(left)
            })
            .map(|left| left.grants)
    })?;
    show(&args.name, &now)
}

fn show(name: &str, grants: &[Capability]) -> Result<bool> {
    let mut stdout = std::io::stdout().lock();
    let granted: Vec<_> = grants.iter().flat_map(capability_parts).map(|part| inert(&part)).collect();
    match granted.as_slice() {
        [] => writeln!(stdout, "`{name}` is granted nothing")?,
        granted => writeln!(stdout, "`{name}` is granted: {}", granted.join(", "))?,
    }
    Ok(true)
}

fn split(text: &str) -> (&str, Option<&str>) {
    text.split_once('=').map_or((text, None), |(capability, part)| (capability, Some(part)))
}

/// Reads `omc=rw:/omc/state` or `transcript`.
pub(super) fn parse(text: &str) -> Result<Capability> {
    let (capability, part) = split(text);
    let scoped = match capability {
        "omc" => Some("omc=rw:/omc/guests/mine"),
        "read" => Some("read=project:docs/**"),
        "env" => Some("env=CI"),
        "session-environment" => Some("session-environment=STAGE"),
        _ => None,
    };
    let scope = match (part, scoped) {
        (None | Some(""), Some(example)) => bail!("the grant `{text}` needs a scope, such as `{example}`"),
        (Some(""), None) => {
            bail!("the grant `{text}` has nothing after `=`; `{capability}` has no scope, so leave the `=` out")
        }
        (Some(part), _) => vec![part.to_owned()],
        (None, None) => Vec::new(),
    };
    policy::parse_grant(capability, &scope).map_err(|problem| anyhow!("the grant `{text}` cannot be used: {problem}"))
}
