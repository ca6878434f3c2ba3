//! The canonical event: an agent's payload with the few facts that every part of the host needs.
//!
//! Decoding cannot fail: unknown events, unknown members and members of the wrong type are normal, because agents add to
//! their payloads every few weeks. A member of the wrong type is an absent value. All text is hostile: it comes from the
//! agent, from the model, or from the repository being worked on.

use std::borrow::Cow;
use std::fmt;

use serde_json::{Map, Value};

use super::contract::{self, Contract, Target};

/// Who sent the event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Agent {
    /// Claude Code.
    Claude,
    /// Codex CLI.
    Codex,
    /// Cursor.
    Cursor,
    /// Copilot CLI.
    Copilot,
    /// Gemini CLI.
    Gemini,
    /// Qwen Code.
    Qwen,
    /// Factory Droid.
    Droid,
    /// Grok Build.
    Grok,
    /// None of those, as far as anyone can tell.
    Unknown,
}

impl Agent {
    /// The name that `--agent` takes and that guests read.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Cursor => "cursor",
            Self::Copilot => "copilot",
            Self::Gemini => "gemini",
            Self::Qwen => "qwen",
            Self::Droid => "droid",
            Self::Grok => "grok",
            Self::Unknown => "unknown",
        }
    }
}

macro_rules! kinds {
    ($($variant:ident $name:literal,)+) => {
        /// A kind of event, in whatever way its agent spells it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Kind {
            $(
                #[doc = concat!("`", $name, "`")]
                $variant,
            )+
            /// An event that no contract is about.
            Other,
        }

        impl Kind {
            /// Every kind that has a contract with some agent.
            pub const KNOWN: &[Self] = &[$(Self::$variant),+];

            /// The name in kebab-case, as manifests and guests write it.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                    Self::Other => "unknown",
                }
            }
        }
    };
}

kinds! {
    SessionStart "session-start",
    Setup "setup",
    InstructionsLoaded "instructions-loaded",
    UserPromptSubmit "user-prompt-submit",
    UserPromptExpansion "user-prompt-expansion",
    MessageDisplay "message-display",
    PreToolUse "pre-tool-use",
    PermissionRequest "permission-request",
    PermissionDenied "permission-denied",
    PostToolUse "post-tool-use",
    PostToolUseFailure "post-tool-use-failure",
    PostToolBatch "post-tool-batch",
    Notification "notification",
    SubagentStart "subagent-start",
    SubagentStop "subagent-stop",
    Stop "stop",
    StopFailure "stop-failure",
    TeammateIdle "teammate-idle",
    TaskCreated "task-created",
    TaskCompleted "task-completed",
    ConfigChange "config-change",
    CwdChanged "cwd-changed",
    DirectoryAdded "directory-added",
    FileChanged "file-changed",
    WorktreeCreate "worktree-create",
    WorktreeRemove "worktree-remove",
    PreCompact "pre-compact",
    PostCompact "post-compact",
    PreModelSwitch "pre-model-switch",
    PostModelSwitch "post-model-switch",
    Interrupt "interrupt",
    SessionEnd "session-end",
    Elicitation "elicitation",
    ElicitationResult "elicitation-result",
}

impl Kind {
    /// The kind of that name, if it has a contract with some agent.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::KNOWN.iter().copied().find(|kind| kind.name() == name)
    }
}

/// Longest name that an event of an unknown kind gets, in bytes: names are shown, logged and compared.
const MAX_KIND_NAME: usize = 64;

/// Longest session id, in bytes: it becomes a file name, and file systems take 255 bytes.
const MAX_SESSION_ID: usize = 256;

/// The member that names the event, in every dialect that names it at all.
const EVENT_NAME: &str = "hook_event_name";

/// Members that some agents or versions spell differently. The usual name wins where both are there.
const ALIASES: &[(&str, &[&str])] = &[
    ("cwd", &["directory"]),
    ("end_turn_reason", &["endTurnReason"]),
    ("session_id", &["sessionId", "sessionid"]),
    ("stop_reason", &["stopReason"]),
    ("tool_input", &["toolInput"]),
    ("tool_name", &["toolName"]),
    ("tool_response", &["toolResponse", "toolOutput"]),
    ("transcript_path", &["transcriptPath"]),
    ("user_requested", &["userRequested"]),
];

/// One event of an agent.
pub struct Event {
    agent: Agent,
    kind_name: Cow<'static, str>,
    contract: &'static Contract,
    payload: Value,
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Payloads hold secrets and do not belong into diagnostics.
        f.debug_struct("Event").field("agent", &self.agent).field("kind", &self.kind_name).finish_non_exhaustive()
    }
}

impl Event {
    /// The event that `agent` means by this payload.
    pub fn new(agent: Agent, payload: Map<String, Value>) -> Self {
        let spelling = payload.get(EVENT_NAME).and_then(Value::as_str).unwrap_or_default();
        let contract = contract::of(agent, spelling);
        let kind_name = match contract.kind {
            Kind::Other => kebab_case(spelling),
            kind => Cow::Borrowed(kind.name()),
        };
        Self { agent, kind_name, contract, payload: Value::Object(payload) }
    }

    /// The event of this session, if its payload names none: older versions leave that to the environment.
    #[must_use]
    pub fn with_session(mut self, session: &str) -> Self {
        let is_named = match self.member("session_id") {
            None => false,
            Some(Value::String(id)) => !id.trim().is_empty(),
            // Somebody was named, and it cannot be said who.
            Some(_) => true,
        };
        if !is_named && let Some(payload) = self.payload.as_object_mut() {
            payload.insert("session_id".to_owned(), Value::String(session.to_owned()));
        }
        self
    }

    /// Who sent it.
    pub fn agent(&self) -> Agent {
        self.agent
    }

    /// What happened.
    pub fn kind(&self) -> Kind {
        self.contract.kind
    }

    /// The kind in kebab-case; an event without a contract is called by its agent's name for it.
    pub fn kind_name(&self) -> &str {
        &self.kind_name
    }

    /// The event's name in the agent's own spelling.
    pub fn spelling(&self) -> Option<&str> {
        self.text(EVENT_NAME)
    }

    /// What an answer to this event can change.
    pub fn contract(&self) -> &'static Contract {
        self.contract
    }

    /// The whole payload: always an object.
    pub fn payload(&self) -> &Value {
        &self.payload
    }

    /// The session's id, if it is fit to be part of a file name: `[A-Za-z0-9][A-Za-z0-9_-]{0,255}`.
    pub fn session_id(&self) -> Option<&str> {
        let id = self.text("session_id")?;
        let fit = id.len() <= MAX_SESSION_ID
            && id.starts_with(|first: char| first.is_ascii_alphanumeric())
            && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
        fit.then_some(id)
    }

    /// The id of the subagent that caused the event.
    pub fn subagent_id(&self) -> Option<&str> {
        self.text("agent_id")
    }

    /// The folder the agent works in, as the agent says.
    pub fn cwd(&self) -> Option<&str> {
        self.text("cwd")
    }

    /// Where the session's transcript is, as the agent says.
    pub fn transcript_path(&self) -> Option<&str> {
        self.text("transcript_path")
    }

    /// What the user asked: `prompt`, else the message's content, else its parts of text with blanks between them.
    pub fn prompt(&self) -> Option<Cow<'_, str>> {
        let content = || self.payload.get("message")?.get("content")?.as_str().filter(|content| !content.is_empty());
        if let Some(prompt) = self.text("prompt").or_else(content) {
            return Some(Cow::Borrowed(prompt));
        }
        let is_text = |part: &&Value| part.get("type").and_then(Value::as_str) == Some("text");
        let parts = self.payload.get("parts")?.as_array()?.iter().filter(is_text);
        let texts: Vec<&str> = parts.filter_map(|part| part.get("text")?.as_str()).collect();
        Some(texts.join(" ")).filter(|prompt| !prompt.is_empty()).map(Cow::Owned)
    }

    /// The tool's name. `Agent` is an agent's newer word for `Task`, and reads as `Task`.
    pub fn tool_name(&self) -> Option<&str> {
        self.text("tool_name").map(canonical_tool)
    }

    /// What the tool is called with: usually an object, but any JSON may come.
    pub fn tool_input(&self) -> Option<&Value> {
        self.member("tool_input")
    }

    /// What matchers of the event are compared with; nothing if there is nothing, or if the payload lacks it.
    pub fn target(&self) -> Option<&str> {
        match self.contract.target {
            Target::None => None,
            Target::Member(name, _) => self.text(name),
            Target::Tool(_) => self.tool_name(),
            Target::FileName => self.text("file_path").and_then(file_name),
        }
    }

    /// The value at an RFC 6901 pointer, which is written with the usual names: aliases are looked up behind them.
    pub fn pointer(&self, pointer: &str) -> Option<&Value> {
        let Some(path) = pointer.strip_prefix('/') else { return self.payload.pointer(pointer) };
        let (name, rest) = path.split_at(path.find('/').unwrap_or(path.len()));
        if ALIASES.iter().any(|(usual, _)| *usual == name)
            && let Some(value) = self.member(name)
        {
            return value.pointer(rest);
        }
        self.payload.pointer(pointer)
    }

    /// The text of a top-level member, under its usual name or the first alias that has one; an empty text is none.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.members(name).find_map(Value::as_str).filter(|text| !text.is_empty())
    }

    /// A top-level member, under its usual name or the first alias that has one; null is none.
    pub(super) fn member(&self, name: &str) -> Option<&Value> {
        self.members(name).find(|value| !value.is_null())
    }

    fn members(&self, name: &str) -> impl Iterator<Item = &Value> {
        let aliases = ALIASES.iter().find(|(usual, _)| *usual == name).map_or(&[][..], |(_, aliases)| *aliases);
        self.payload.get(name).into_iter().chain(aliases.iter().filter_map(|alias| self.payload.get(*alias)))
    }
}

/// The name a tool is known by, whichever of its names an agent or a matcher uses.
pub(super) fn canonical_tool(name: &str) -> &str {
    if name == "Agent" { "Task" } else { name }
}

/// The last part of a path, with either kind of separator: the agent may run on another system than its paths suggest.
fn file_name(path: &str) -> Option<&str> {
    path.rsplit(['/', '\\']).next()
}

/// An agent's name for an event in kebab-case: ASCII lower-case letters, digits and single hyphens.
pub(crate) fn kebab_case(spelling: &str) -> Cow<'static, str> {
    let mut name = String::new();
    let mut letters = spelling.chars().peekable();
    let mut last = None;
    while let Some(letter) = letters.next()
        && name.len() < MAX_KIND_NAME
    {
        let begins_word = letter.is_ascii_uppercase()
            && last.is_some_and(|last: char| {
                !last.is_ascii_uppercase() || letters.peek().is_some_and(char::is_ascii_lowercase)
            });
        if (begins_word || !letter.is_ascii_alphanumeric()) && !name.is_empty() && !name.ends_with('-') {
            name.push('-');
        }
        if letter.is_ascii_alphanumeric() {
            name.push(letter.to_ascii_lowercase());
        }
        last = Some(letter);
    }
    name.truncate(name.trim_end_matches('-').len());
    if name.is_empty() { Cow::Borrowed(Kind::Other.name()) } else { Cow::Owned(name) }
}

#[cfg(test)]
mod tests;
