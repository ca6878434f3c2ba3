//! `omc-host notepad`: what every session is told, and what was noted.

use anyhow::Result;
use omc_state::notepad::{Section, WORKING_DAYS};

use super::answer::{print, text_of};
use crate::config::Env;
use crate::operations::Project;
use crate::operations::notepad::{MAX_DAYS, section_name};

pub(super) const EXAMPLES: &str = "\
Examples:
  omc-host notepad read
  omc-host notepad write priority 'The API must stay compatible with 2.x'
  git log -3 --format=%s | omc-host notepad write working -
  omc-host notepad prune --days 2";

const READ_EXAMPLES: &str = "\
Examples:
  omc-host notepad read
  omc-host notepad read priority --json";

const WRITE_EXAMPLES: &str = "\
Examples:
  omc-host notepad write priority 'The API must stay compatible with 2.x'
  omc-host notepad write manual 'Ask Kim before changing the schema'
  git log -3 --format=%s | omc-host notepad write working -

Another priority text takes the place of the last one; the other sections get an entry more.";

const PRUNE_EXAMPLES: &str = "\
Examples:
  omc-host notepad prune
  omc-host notepad prune --days 2 --json";

const STATS_EXAMPLES: &str = "\
Examples:
  omc-host notepad stats
  omc-host notepad stats --json";

/// Read and write the project's notepad.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Show the notepad, or a section of it
    #[command(after_help = READ_EXAMPLES)]
    Read {
        /// priority, working or manual; all unless given
        #[arg(value_parser = section)]
        section: Option<Section>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Write to a section
    #[command(after_help = WRITE_EXAMPLES)]
    Write {
        /// priority (in every session), working (dropped after 7 days) or manual (for ever)
        #[arg(value_parser = section)]
        section: Section,
        /// The text; `-` reads it from standard input
        text: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Drop old entries of the working memory
    #[command(after_help = PRUNE_EXAMPLES)]
    Prune {
        /// The age from which they go, in days
        #[arg(long, value_name = "N", default_value_t = WORKING_DAYS, value_parser = clap::value_parser!(i64).range(1..=MAX_DAYS))]
        days: i64,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Say how much is in it
    #[command(after_help = STATS_EXAMPLES)]
    Stats {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

fn section(name: &str) -> Result<Section, String> {
    let known = Section::ALL.into_iter().find(|section| section_name(*section) == name);
    known.ok_or_else(|| "the sections are priority, working and manual".to_owned())
}

pub(super) fn run(command: Command, env: &Env) -> Result<bool> {
    let project = Project::find(env)?;
    match command {
        Command::Read { section, json } => print(&project.read_notes(section)?, json)?,
        Command::Write { section, text, json } => print(&project.note(section, &text_of(&text)?)?, json)?,
        Command::Prune { days, json } => print(&project.prune_notes(days)?, json)?,
        Command::Stats { json } => print(&project.note_stats()?, json)?,
    }
    Ok(true)
}
