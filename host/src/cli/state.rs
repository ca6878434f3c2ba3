//! `omc-host state`: the modes that are on, and their states.

use std::io::Write as _;

use anyhow::Result;

use super::answer::{modes, object, print, session, text_of};
use super::table::table;
use crate::config::Env;
use crate::operations::Project;
use crate::operations::state::{Change, Listing};

pub(super) const EXAMPLES: &str = "\
Examples:
  omc-host state list                          the modes that are on, in all sessions
  omc-host state read ralph --session S1       the whole state of one
  omc-host state write ralph --active false    end it, so that the agent may stop
  omc-host state clear ralph --json            remove it in all sessions

Without --session, `write` means the session in OMC_SESSION_ID or CLAUDE_CODE_SESSION_ID, else the only one at work in the mode.
To end everything at once, use `omc-host cancel`.";

const READ_EXAMPLES: &str = "\
Examples:
  omc-host state read ralph
  omc-host state read autopilot --session S1 --json";

const LIST_EXAMPLES: &str = "\
Examples:
  omc-host state list
  omc-host state list --session S1 --json";

const STATUS_EXAMPLES: &str = "\
Examples:
  omc-host state status
  omc-host state status ralph --session S1";

const WRITE_EXAMPLES: &str = "\
Examples:
  omc-host state write ralph --active false
  omc-host state write ralph --iteration 7 --phase testing --session S1
  omc-host state write deep-interview --set '{\"questions\": 3}'";

const CLEAR_EXAMPLES: &str = "\
Examples:
  omc-host state clear ralph --session S1
  omc-host state clear ralph                   in all sessions";

/// Show and change the states of modes.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// List the modes that are on
    #[command(after_help = LIST_EXAMPLES)]
    List {
        /// Only of this session; of all unless given
        #[arg(long, value_name = "ID", value_parser = session)]
        session: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show how modes stand, on or off, with the beginning of their states
    #[command(after_help = STATUS_EXAMPLES)]
    Status {
        /// Only this mode
        #[arg(value_parser = modes())]
        mode: Option<String>,
        /// Only of this session; of all unless given
        #[arg(long, value_name = "ID", value_parser = session)]
        session: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show the whole state of a mode
    #[command(after_help = READ_EXAMPLES)]
    Read {
        /// The mode
        #[arg(value_parser = modes())]
        mode: String,
        /// Only of this session; of all unless given
        #[arg(long, value_name = "ID", value_parser = session)]
        session: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Change the state of a mode; what is not named stays
    #[command(after_help = WRITE_EXAMPLES)]
    Write(Write),
    /// Remove the state of a mode
    #[command(after_help = CLEAR_EXAMPLES)]
    Clear {
        /// The mode
        #[arg(value_parser = modes())]
        mode: String,
        /// Only of this session; of all unless given
        #[arg(long, value_name = "ID", value_parser = session)]
        session: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, clap::Args)]
pub(super) struct Write {
    /// The mode
    #[arg(value_parser = modes())]
    mode: String,
    /// Start it, or end it
    #[arg(long, value_name = "BOOL")]
    active: Option<bool>,
    /// How often it went round
    #[arg(long, value_name = "N")]
    iteration: Option<u64>,
    /// How often it may
    #[arg(long, value_name = "N")]
    max_iterations: Option<u64>,
    /// The phase it is in
    #[arg(long, value_name = "TEXT")]
    phase: Option<String>,
    /// Other members, as a JSON object; `-` reads it from standard input
    #[arg(long, value_name = "JSON")]
    set: Option<String>,
    /// Drop the members that are not named
    #[arg(long)]
    replace: bool,
    /// Whose state it is
    #[arg(long, value_name = "ID", value_parser = session)]
    session: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(command: Command, env: &Env) -> Result<bool> {
    let project = Project::find(env)?;
    match command {
        Command::List { session, json } => list(&project.active_states(session.as_deref(), session.is_none())?, json)?,
        Command::Status { mode, session, json } => {
            print(&project.state_status(mode.as_deref(), session.as_deref())?, json)?;
        }
        Command::Read { mode, session, json } => print(&project.read_state(&mode, session.as_deref())?, json)?,
        Command::Write(write) => {
            let state = write.set.as_deref().map(|set| object(&text_of(set)?)).transpose()?;
            let change = Change {
                active: write.active,
                iteration: write.iteration,
                max_iterations: write.max_iterations,
                current_phase: write.phase,
                state: state.unwrap_or_default(),
                replace: write.replace,
                ..Change::default()
            };
            print(&project.write_state(&write.mode, write.session.as_deref(), &change)?, write.json)?;
        }
        Command::Clear { mode, session, json } => print(&project.clear_state(&mode, session.as_deref())?, json)?,
    }
    Ok(true)
}

fn list(listing: &Listing, json: bool) -> Result<()> {
    if json || listing.states.is_empty() {
        return print(listing, json);
    }
    let rows = listing.states.iter().map(|entry| {
        let or_none = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
        [
            entry.mode.to_owned(),
            or_none(&entry.session),
            entry.standing.name().to_owned(),
            or_none(&entry.phase),
            entry.progress(),
            or_none(&entry.touched_at),
        ]
    });
    writeln!(std::io::stdout(), "{}", table(["MODE", "SESSION", "STANDING", "PHASE", "ITERATION", "TOUCHED"], rows))?;
    Ok(())
}
