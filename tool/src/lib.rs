//! What a tool call of a coding agent does, in words that hold for every agent.
//!
//! The host answers guests from here, and so does the SDK's test harness, so that a guest's native tests see what it will see.
//! Everything is text: no file is looked at, and paths are resolved by the letter. What a call carries is hostile, of any type and
//! any size; a member of the wrong type is an absent one, and what cannot be told is said to be unknown, never guessed.

#![warn(missing_docs)]

mod output;
mod patch;
mod path;
mod table;

use std::borrow::Cow;

use serde_json::Value;

pub use output::{MAX_TEXT_BYTES, Output};
pub use path::{Linked, MAX_PATH_BYTES, MAX_PATHS, Operation, TooMany, ToolPath};

use path::PathList;
use table::{Subject, Tool};

/// What a tool does, in words that hold for every agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ToolKind {
    /// It looks at files.
    Read,
    /// It writes whole files.
    Write,
    /// It changes parts of files.
    Edit,
    /// It removes files.
    Delete,
    /// It executes commands.
    Execute,
    /// It goes to the network.
    Network,
    /// It starts or talks to another agent.
    Agent,
    /// It belongs to an MCP server, and may do anything.
    Mcp,
    /// Anything else.
    Other,
}

impl ToolKind {
    const NAMED: [Self; 8] =
        [Self::Read, Self::Write, Self::Edit, Self::Delete, Self::Execute, Self::Network, Self::Agent, Self::Mcp];

    /// What an agent's tool of that name does, as far as the name alone tells.
    pub fn of_tool(agent: &str, tool: &str) -> Self {
        table::find(agent, tool).kind
    }

    /// The kind of that name; a name that is not known here, as of a newer host, is that of [`Other`](Self::Other).
    pub fn from_name(name: &str) -> Self {
        Self::NAMED.into_iter().find(|kind| kind.name() == name).unwrap_or(Self::Other)
    }

    /// The name in the interface between host and guests.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Edit => "edit",
            Self::Delete => "delete",
            Self::Execute => "execute",
            Self::Network => "network",
            Self::Agent => "agent",
            Self::Mcp => "mcp",
            Self::Other => "other",
        }
    }
}

/// One call of a tool, as an event reports it.
#[derive(Clone, Copy, Debug)]
pub struct ToolCall<'a> {
    /// The agent's name, such as `claude` or `codex`.
    pub agent: &'a str,
    /// The kind of event in kebab-case.
    pub event: &'a str,
    /// The tool's name.
    pub name: &'a str,
    /// What it is called with.
    pub input: Option<&'a Value>,
    /// What it gave: the event's `tool_response`.
    pub response: Option<&'a Value>,
    /// Why it failed: the event's `error`.
    pub error: Option<&'a Value>,
    /// Whether the event says that it was stopped: its `is_interrupt`.
    pub interrupted: bool,
    /// The folder worked in.
    pub cwd: Option<&'a str>,
    /// The project's folder, if the agent reaches it over a link. Paths in it are given without that link.
    pub linked: Option<Linked<'a>>,
}

impl<'a> ToolCall<'a> {
    /// What the tool does.
    pub fn kind(&self) -> ToolKind {
        let tool = self.tool();
        match tool.subject {
            Subject::Patch => self.patch().map_or(tool.kind, |text| patch::kind(&text)),
            _ => tool.kind,
        }
    }

    /// The files and folders that the tool names.
    ///
    /// # Errors
    ///
    /// [`TooMany`] if they are more than anybody wants to look at: then none is given, so that none is overlooked.
    pub fn paths(&self) -> Result<Vec<ToolPath>, TooMany> {
        let mut paths = PathList::new(self.cwd, self.linked);
        match self.tool().subject {
            Subject::Nothing => {}
            Subject::Files(members, operation) => {
                for member in members {
                    if let Some(path) = self.text(member) {
                        paths.add(path, operation)?;
                    }
                }
            }
            Subject::Search { folder, pattern } => {
                let folder = folder.iter().find_map(|member| self.text(member)).unwrap_or(".");
                let beginning = pattern.and_then(|member| self.text(member)).map_or("", path::literal_folder);
                paths.add(&path::join(folder, beginning), Operation::Read)?;
            }
            Subject::Command => {
                if let Some(command) = self.command() {
                    patch::inside_command(&command, &mut paths)?;
                }
            }
            Subject::Patch => {
                if let Some(text) = self.patch() {
                    patch::paths(&text, &mut paths)?;
                }
            }
        }
        Ok(paths.finish())
    }

    /// The command line, if the tool executes one.
    pub fn command(&self) -> Option<Cow<'a, str>> {
        if !matches!(self.tool().subject, Subject::Command) {
            return None;
        }
        words(["command", "cmd"].iter().find_map(|member| self.input?.get(member))?)
    }

    /// What the tool gave; after a failure, the error.
    pub fn output(&self) -> Option<Output<'a>> {
        self.response.or(self.error).map(output::of)
    }

    /// Whether the tool failed, where the event or the result tells.
    pub fn failed(&self) -> Option<bool> {
        if self.event == "post-tool-use-failure" {
            return Some(true);
        }
        if let Some(failed) = output::says_failed(self.response?) {
            return Some(failed);
        }
        // Of both agents this event means success, but Codex sends it for commands that ended with an error, too.
        let tells = self.event == "post-tool-use" && !(self.agent == "codex" && self.kind() == ToolKind::Execute);
        tells.then_some(false)
    }

    /// Whether the tool was stopped before its end.
    pub fn interrupted(&self) -> bool {
        self.interrupted
            || self.response.is_some_and(|response| response.get("interrupted") == Some(&Value::Bool(true)))
    }

    fn tool(&self) -> Tool {
        table::find(self.agent, self.name)
    }

    fn text(&self, member: &str) -> Option<&'a str> {
        self.input?.get(member)?.as_str().filter(|text| !text.is_empty())
    }

    /// The text of a patch. A list of words is a command whose last word is the patch.
    fn patch(&self) -> Option<Cow<'a, str>> {
        words(["command", "input", "patch"].iter().find_map(|member| self.input?.get(member))?)
    }
}

/// A command line from a text, or from a list of words with blanks between them.
fn words(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::String(text) => Some(Cow::Borrowed(text)),
        Value::Array(words) => Some(Cow::Owned(words.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" "))),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
