//! `omc-host bundle`: a plugin as a folder.

use std::io::Write as _;
use std::path::PathBuf;

use anyhow::Result;

use super::agents::agent;
use crate::protocol::event::Agent;
use crate::setup::bundle::bundle;
use crate::text::inert;

pub(super) const EXAMPLES: &str = "\
Examples:
  omc-host bundle claude ./omc && claude --plugin-dir ./omc       try it for one session
  omc-host bundle claude ./omc && claude plugin marketplace add ./omc && claude plugin install omc@omc-host
  omc-host bundle codex ./plugins/omc                             for a marketplace of Codex

The plugin has the programs of this computer in it. It and `omc-host install` are two ways to the same thing: use one of them, or
every event is handled twice.";

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The agent that the plugin is for: claude or codex
    #[arg(value_parser = agent)]
    agent: Agent,
    /// The folder to write it to; it must be empty or not there yet
    folder: PathBuf,
}

pub(super) fn run(args: &Args) -> Result<bool> {
    let bundled = bundle(args.agent, &args.folder)?;
    let mut stdout = std::io::stdout().lock();
    let folder = inert(&args.folder.display().to_string());
    writeln!(stdout, "wrote a plugin of {} files to `{folder}`", bundled.files.len())?;
    for missing in &bundled.missing {
        writeln!(stdout, "{}", inert(missing))?;
    }
    Ok(bundled.missing.is_empty())
}
