//! `omc-host cancel`: the way out of every mode.

use anyhow::Result;

use super::answer::{print, session};
use crate::config::Env;
use crate::operations::Project;

pub(super) const EXAMPLES: &str = "\
Examples:
  omc-host cancel                    the session this runs in, else the only one at work here
  omc-host cancel --session S1       another one; `omc-host state list` shows which there are
  omc-host cancel --all              every session of this project

Every mode and skill of the session ends at once, and its next stop is not refused.";

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Every session of this project that is at work
    #[arg(long, conflicts_with = "session")]
    all: bool,
    /// This session
    #[arg(long, value_name = "ID", value_parser = session)]
    session: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args, env: &Env) -> Result<bool> {
    print(&Project::find(env)?.cancel(args.session.as_deref(), args.all)?, args.json)?;
    Ok(true)
}
