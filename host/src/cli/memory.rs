//! `omc-host memory`: what is known about the project, and what its agents share.

use anyhow::Result;
use serde_json::Value;

use super::answer::{object, print, text_of};
use crate::config::Env;
use crate::operations::Project;

pub(super) const EXAMPLES: &str = "\
Examples:
  omc-host memory read directives
  omc-host memory note runtime 'Needs Node 22'
  omc-host memory directive 'Never touch the generated files' --high
  omc-host memory shared list";

const READ_EXAMPLES: &str = "\
Examples:
  omc-host memory read
  omc-host memory read techStack --json

The sections are techStack, build, conventions, structure, notes and directives.";

const WRITE_EXAMPLES: &str = "\
Examples:
  omc-host memory write '{\"build\": {\"testCommand\": \"make check\"}}'
  omc-host memory write - --replace < memory.json

Objects and lists are joined with what is known; `null` removes a member.";

const NOTE_EXAMPLES: &str = "\
Examples:
  omc-host memory note runtime 'Needs Node 22'
  omc-host memory note deploy - < notes.txt";

const DIRECTIVE_EXAMPLES: &str = "\
Examples:
  omc-host memory directive 'Use tabs'
  omc-host memory directive 'Never touch the generated files' --high --context 'src/gen is made by make gen'";

const SHARED_EXAMPLES: &str = "\
Examples:
  omc-host memory shared list
  omc-host memory shared write build status '{\"green\": true}' --ttl 3600
  omc-host memory shared read build status --json
  omc-host memory shared cleanup";

/// Read and write what is known about the project.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Show what is known, or a section of it
    #[command(after_help = READ_EXAMPLES)]
    Read {
        /// One section; all unless given
        section: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Take in a JSON object
    #[command(after_help = WRITE_EXAMPLES)]
    Write {
        /// The object; `-` reads it from standard input
        #[arg(value_name = "JSON")]
        members: String,
        /// Put it in the place of what is known
        #[arg(long)]
        replace: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Add a fact about the project
    #[command(after_help = NOTE_EXAMPLES)]
    Note {
        /// A word for what it is about
        category: String,
        /// The fact; `-` reads it from standard input
        text: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Add something that every session has to obey
    #[command(after_help = DIRECTIVE_EXAMPLES)]
    Directive {
        /// What to obey; `-` reads it from standard input
        text: String,
        /// It is a must, and comes first
        #[arg(long)]
        high: bool,
        /// Why, or where
        #[arg(long, value_name = "TEXT")]
        context: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// What the agents of this project share
    #[command(subcommand, after_help = SHARED_EXAMPLES)]
    Shared(Shared),
}

#[derive(Debug, clap::Subcommand)]
pub(super) enum Shared {
    /// List the namespaces, or the keys of one
    List {
        /// The namespace
        namespace: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show the value of a key; exit status 1 if there is none
    Read {
        /// The namespace
        namespace: String,
        /// The key
        key: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Store a value
    Write {
        /// The namespace
        namespace: String,
        /// The key
        key: String,
        /// JSON, or a plain text; `-` reads it from standard input
        value: String,
        /// For how long, in seconds; for ever unless given
        #[arg(long, value_name = "SECONDS")]
        ttl: Option<u64>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Forget a key
    Delete {
        /// The namespace
        namespace: String,
        /// The key
        key: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Remove what is over
    Cleanup {
        /// Only of this namespace
        namespace: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

pub(super) fn run(command: Command, env: &Env) -> Result<bool> {
    let project = Project::find(env)?;
    match command {
        Command::Read { section, json } => print(&project.read_memory(section.as_deref())?, json)?,
        Command::Write { members, replace, json } => {
            print(&project.write_memory(object(&text_of(&members)?)?, !replace)?, json)?;
        }
        Command::Note { category, text, json } => print(&project.add_memory_note(&category, &text_of(&text)?)?, json)?,
        Command::Directive { text, high, context, json } => {
            print(&project.add_directive(&text_of(&text)?, context.as_deref(), high)?, json)?;
        }
        Command::Shared(command) => return shared(command, &project),
    }
    Ok(true)
}

fn shared(command: Shared, project: &Project) -> Result<bool> {
    match command {
        Shared::List { namespace, json } => print(&project.list_shared(namespace.as_deref())?, json)?,
        Shared::Read { namespace, key, json } => {
            let found = project.read_shared(&namespace, &key)?;
            print(&found, json)?;
            return Ok(found.0.is_some());
        }
        Shared::Write { namespace, key, value, ttl, json } => {
            let text = text_of(&value)?;
            let value = serde_json::from_str(&text).unwrap_or(Value::String(text));
            print(&project.write_shared(&namespace, &key, value, ttl)?, json)?;
        }
        Shared::Delete { namespace, key, json } => print(&project.delete_shared(&namespace, &key)?, json)?,
        Shared::Cleanup { namespace, json } => print(&project.clean_up_shared(namespace.as_deref())?, json)?,
    }
    Ok(true)
}
