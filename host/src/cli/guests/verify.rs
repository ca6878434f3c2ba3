//! `omc-host guests verify`: whether guests are still what was agreed to.

use std::io::Write as _;

use anyhow::Result;
use serde::Serialize;

use super::{find, registry, settings, short};
use crate::cli::table::table;
use crate::config::Paths;
use crate::registry::{self as guests, Guest, Lock};
use crate::text::inert;

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Args {
    /// A guest's name; all guests unless given
    name: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Verified {
    name: String,
    digest: String,
    /// What is wrong; nothing if all is in order.
    problems: Vec<String>,
}

pub(super) fn run(args: &Args, paths: &Paths) -> Result<bool> {
    let registry = registry(paths)?;
    let settings = settings(paths);
    let trusted = settings.trusted_keys();
    let chosen = match &args.name {
        Some(name) => vec![find(&registry, name)?],
        None => registry.guests().collect(),
    };
    let verified: Vec<_> = chosen
        .iter()
        .map(|guest| Verified {
            name: guest.name().to_owned(),
            digest: guest.digest().to_owned(),
            problems: match guest {
                // Its code is a part of the program that is running.
                Guest::FirstParty(_) => Vec::new(),
                Guest::Installed(installed) => {
                    let mut problems = installed.verify(paths, &trusted);
                    if !settings.admits_signer(installed.signer()) {
                        problems.push("it has no signature by a key of `require-signature`".to_owned());
                    }
                    problems
                }
            },
        })
        .collect();
    let strays = if args.name.is_none() { guests::strays(paths, &Lock::load(paths)?) } else { Vec::new() };
    let strays: Vec<_> = strays.iter().map(|path| path.display().to_string()).collect();
    let is_in_order = strays.is_empty() && verified.iter().all(|guest| guest.problems.is_empty());
    let mut stdout = std::io::stdout().lock();
    if args.json {
        let all = serde_json::json!({ "guests": verified, "strays": strays });
        writeln!(stdout, "{}", crate::text::inert_json(serde_json::to_string_pretty(&all)?))?;
        return Ok(is_in_order);
    }
    let rows = verified.iter().map(|guest| {
        let verdict = match guest.problems.as_slice() {
            [] => "in order".to_owned(),
            problems => problems.iter().map(|problem| inert(problem)).collect::<Vec<_>>().join("\n"),
        };
        [guest.name.clone(), short(&guest.digest), verdict]
    });
    writeln!(stdout, "{}", table(["GUEST", "DIGEST", "VERDICT"], rows))?;
    for stray in strays {
        writeln!(stdout, "\n`{}` belongs to no guest; it is never run, and can be removed", inert(&stray))?;
    }
    Ok(is_in_order)
}
