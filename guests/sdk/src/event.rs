//! The event, as a guest sees it.

use omc_tool::{Operation, ToolKind, ToolPath};
use serde_json::Value;

use crate::AccessError;
use crate::bindings::omc::hook::types;
#[cfg(not(target_arch = "wasm32"))]
use crate::testing::World;

/// One event of a coding agent, lent by the host for the length of a call.
///
/// Every text comes from the agent or from the repository being worked on: treat it as hostile.
#[derive(Debug)]
pub struct Event<'a>(Source<'a>);

#[derive(Debug)]
enum Source<'a> {
    Host(&'a types::Event),
    #[cfg(not(target_arch = "wasm32"))]
    Test(&'a World),
}

/// Asks the host, or natively the test's world.
macro_rules! ask {
    ($event:expr, $method:ident $(, $argument:expr)*) => {
        match &$event.0 {
            Source::Host(event) => event.$method($($argument),*),
            #[cfg(not(target_arch = "wasm32"))]
            Source::Test(world) => world.$method($($argument),*),
        }
    };
}

impl<'a> Event<'a> {
    pub(crate) fn from_host(event: &'a types::Event) -> Self {
        Self(Source::Host(event))
    }

    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn from_world(world: &'a World) -> Self {
        Self(Source::Test(world))
    }

    /// The kind of event.
    pub fn kind(&self) -> EventKind {
        EventKind::from_name(&ask!(self, kind))
    }

    /// The agent that sent the event, such as `claude` or `codex`.
    pub fn agent(&self) -> String {
        ask!(self, agent)
    }

    /// The session's id, if it may be used in a file name: an ASCII letter or digit, then up to 255 ASCII letters, digits, `_`
    /// or `-`. With any other id no state belongs to the event.
    pub fn session_id(&self) -> Option<String> {
        ask!(self, session_id)
    }

    /// The agent's id for the subagent that caused the event; absent in the main conversation.
    pub fn subagent_id(&self) -> Option<String> {
        ask!(self, subagent_id)
    }

    /// The folder the agent works in, as an absolute path of the host machine. A text to show, not a path to open.
    ///
    /// In a project that the agent reaches over a link, this and [`Event::tool_paths`] begin with [`Event::project_root`]
    /// nevertheless; how the agent writes it is `event.text("/cwd")`.
    pub fn cwd(&self) -> Option<String> {
        ask!(self, cwd)
    }

    /// The project's root, as an absolute path of the host machine. A text to show, not a path to open.
    pub fn project_root(&self) -> Option<String> {
        ask!(self, project_root)
    }

    /// Whether the project's root is the top of a git work tree.
    pub fn in_work_tree(&self) -> bool {
        ask!(self, in_work_tree)
    }

    /// What the user asked, on events that carry a prompt. Cut at 8 MiB.
    pub fn prompt(&self) -> Option<String> {
        ask!(self, prompt)
    }

    /// The tool's name, where the event concerns one. An agent's `Agent` reads as `Task`.
    pub fn tool_name(&self) -> Option<String> {
        ask!(self, tool_name)
    }

    /// The value at an RFC 6901 pointer into the agent's payload; the empty pointer is the whole.
    ///
    /// Absent if there is no such value, or if its JSON text is longer than 8 MiB.
    pub fn field(&self, pointer: &str) -> Option<Value> {
        serde_json::from_str(&ask!(self, field, pointer)?).ok()
    }

    /// The string at an RFC 6901 pointer into the agent's payload. Cut at 8 MiB; absent if it is not a string.
    pub fn text(&self, pointer: &str) -> Option<String> {
        ask!(self, text, pointer)
    }

    /// How much the agent may do unasked, in its words, such as `default`, `plan` or `bypassPermissions`; absent where the event
    /// does not say.
    pub fn permission_mode(&self) -> Option<String> {
        ask!(self, permission_mode)
    }

    /// What set the event off, where its kind has several causes: `startup` or `resume` of a session's start, `manual` or `auto`
    /// of a compaction, `init` of a setup, …
    pub fn source(&self) -> Option<String> {
        ask!(self, source)
    }

    /// What the tool does, whatever its agent calls it; absent where the event concerns no tool.
    pub fn tool_kind(&self) -> Option<ToolKind> {
        ask!(self, tool_kind).map(|name| ToolKind::from_name(&name))
    }

    /// The files and folders that the tool names, absolute: those of tools for files, and every file of a patch.
    ///
    /// What else a command or a tool of an MCP server touches cannot be known. Links below the project's root are not looked at.
    ///
    /// # Errors
    ///
    /// [`AccessError::TooLarge`] if there are more than 4,096, or if they are longer than 1 MiB together: a guard takes that for
    /// a reason to refuse.
    pub fn tool_paths(&self) -> Result<Vec<ToolPath>, AccessError> {
        let paths = ask!(self, tool_paths).map_err(AccessError::from)?;
        Ok(paths.into_iter().map(ToolPath::from).collect())
    }

    /// The command line of a tool that executes one. Cut at 8 MiB.
    pub fn tool_command(&self) -> Option<String> {
        ask!(self, tool_command)
    }

    /// What the tool gave, as text: a string itself, of an object or of content blocks the text in them, else the JSON text.
    /// After a failure, the error's text. Cut at 8 MiB.
    pub fn tool_result(&self) -> Option<String> {
        ask!(self, tool_result)
    }

    /// Whether the tool failed, by the kind of event or by the shape of the result; absent where neither tells.
    ///
    /// Codex reports a command that ended with an error as any other result, so there it is often absent.
    pub fn tool_failed(&self) -> Option<bool> {
        ask!(self, tool_failed)
    }

    /// Whether the tool was stopped before its end, as far as the event tells.
    pub fn tool_interrupted(&self) -> bool {
        ask!(self, tool_interrupted)
    }
}

/// The kinds of events that agents send today, in the words of this project.
///
/// New kinds appear without notice and read as [`EventKind::Other`].
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum EventKind {
    /// `user-prompt-submit`: a prompt is about to be sent.
    UserPromptSubmit,
    /// `session-start`: a session begins, resumes, is cleared or compacted.
    SessionStart,
    /// `session-end`: a session ends; the agent waits about a second.
    SessionEnd,
    /// `setup`: the agent was started for `init` or `maintenance`.
    Setup,
    /// `pre-tool-use`: a tool is about to run.
    PreToolUse,
    /// `permission-request`: the agent is about to ask whether a tool may run.
    PermissionRequest,
    /// `post-tool-use`: a tool has run.
    PostToolUse,
    /// `post-tool-use-failure`: a tool has failed.
    PostToolUseFailure,
    /// `subagent-start`: a subagent starts.
    SubagentStart,
    /// `subagent-stop`: a subagent is about to finish.
    SubagentStop,
    /// `stop`: the agent is about to finish its turn.
    Stop,
    /// `pre-compact`: the conversation is about to be compacted.
    PreCompact,
    /// Any other kind, by its name in kebab-case.
    Other(String),
}

/// One row per kind: its name in the interface and its variant.
const KINDS: &[(&str, EventKind)] = &[
    ("user-prompt-submit", EventKind::UserPromptSubmit),
    ("session-start", EventKind::SessionStart),
    ("session-end", EventKind::SessionEnd),
    ("setup", EventKind::Setup),
    ("pre-tool-use", EventKind::PreToolUse),
    ("permission-request", EventKind::PermissionRequest),
    ("post-tool-use", EventKind::PostToolUse),
    ("post-tool-use-failure", EventKind::PostToolUseFailure),
    ("subagent-start", EventKind::SubagentStart),
    ("subagent-stop", EventKind::SubagentStop),
    ("stop", EventKind::Stop),
    ("pre-compact", EventKind::PreCompact),
];

impl EventKind {
    fn from_name(name: &str) -> Self {
        KINDS
            .iter()
            .find(|(known, _)| *known == name)
            .map_or_else(|| Self::Other(name.to_owned()), |(_, kind)| kind.clone())
    }

    /// Its name in the interface and in manifests, such as `pre-tool-use`.
    pub fn name(&self) -> &str {
        match self {
            Self::Other(name) => name,
            known => KINDS.iter().find(|(_, kind)| kind == known).map_or("", |(name, _)| name),
        }
    }
}

impl From<types::ToolPath> for ToolPath {
    fn from(named: types::ToolPath) -> Self {
        let operation = match named.operation {
            types::FileOperation::Read => Operation::Read,
            types::FileOperation::Write => Operation::Write,
            types::FileOperation::Edit => Operation::Edit,
            types::FileOperation::Delete => Operation::Delete,
        };
        Self { path: named.path, operation }
    }
}
