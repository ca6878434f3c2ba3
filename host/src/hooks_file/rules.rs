//! What each agent takes in its hooks files: types of handlers, their members, and the tools that matchers can name.
//!
//! Tables only. From the vendors' references of November 2026 (Claude Code 2.1.303, Codex 0.155): what is younger is unknown
//! here, so nothing unknown is ever an error by itself.

use crate::protocol::event::{Agent, Kind};

/// A kind of JSON value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    Text,
    Texts,
    Number,
    Flag,
    Object,
}

/// Types of handlers.
pub(super) const COMMAND: &str = "command";
pub(super) const HTTP: &str = "http";
pub(super) const MCP_TOOL: &str = "mcp_tool";
pub(super) const PROMPT: &str = "prompt";
pub(super) const AGENT: &str = "agent";

const ALL: &[&str] = &[COMMAND, HTTP, MCP_TOOL, PROMPT, AGENT];
const CODEX_ALL: &[&str] = &[COMMAND, MCP_TOOL];

/// A member of a handler.
pub(super) struct Member {
    pub(super) name: &'static str,
    /// The types of handlers that have it.
    pub(super) types: &'static [&'static str],
    pub(super) shape: Shape,
    /// Whether a handler of these types cannot do without it.
    pub(super) required: bool,
}

const fn optional(name: &'static str, types: &'static [&'static str], shape: Shape) -> Member {
    Member { name, types, shape, required: false }
}

const fn required(name: &'static str, types: &'static [&'static str], shape: Shape) -> Member {
    Member { name, types, shape, required: true }
}

/// Claude Code's members.
static CLAUDE: [Member; 23] = [
    required("type", ALL, Shape::Text),
    optional("if", ALL, Shape::Text),
    optional("timeout", ALL, Shape::Number),
    optional("statusMessage", ALL, Shape::Text),
    optional("once", ALL, Shape::Flag),
    required("command", &[COMMAND], Shape::Text),
    optional("args", &[COMMAND], Shape::Texts),
    optional("async", &[COMMAND], Shape::Flag),
    optional("asyncRewake", &[COMMAND], Shape::Flag),
    // The vendor's own plugins have these two.
    optional("rewakeMessage", &[COMMAND], Shape::Text),
    optional("rewakeSummary", &[COMMAND], Shape::Text),
    optional("shell", &[COMMAND], Shape::Text),
    optional("onFailure", &[COMMAND, HTTP], Shape::Text),
    required("url", &[HTTP], Shape::Text),
    optional("headers", &[HTTP], Shape::Object),
    optional("allowedEnvVars", &[HTTP], Shape::Texts),
    required("server", &[MCP_TOOL], Shape::Text),
    required("tool", &[MCP_TOOL], Shape::Text),
    optional("input", &[MCP_TOOL], Shape::Object),
    required("prompt", &[PROMPT, AGENT], Shape::Text),
    optional("model", &[PROMPT, AGENT], Shape::Text),
    optional("continueOnBlock", &[PROMPT], Shape::Flag),
    optional("description", ALL, Shape::Text),
];

/// Codex's members.
static CODEX: [Member; 11] = [
    required("type", CODEX_ALL, Shape::Text),
    required("command", &[COMMAND], Shape::Text),
    optional("commandWindows", &[COMMAND], Shape::Text),
    optional("command_windows", &[COMMAND], Shape::Text),
    optional("timeout", CODEX_ALL, Shape::Number),
    optional("async", &[COMMAND], Shape::Flag),
    optional("statusMessage", CODEX_ALL, Shape::Text),
    optional("additionalContextLimit", &[COMMAND], Shape::Number),
    required("server", &[MCP_TOOL], Shape::Text),
    required("tool", &[MCP_TOOL], Shape::Text),
    optional("input", &[MCP_TOOL], Shape::Object),
];

/// The members that the agent knows.
pub(super) fn members(agent: Agent) -> &'static [Member] {
    if agent == Agent::Codex { &CODEX } else { &CLAUDE }
}

/// All types of handlers that the agent's file may have; others break Codex's file and are left out by Claude Code.
pub(super) fn known_types(agent: Agent) -> &'static [&'static str] {
    // Codex reads the last two and never runs them.
    if agent == Agent::Codex { &[COMMAND, MCP_TOOL, PROMPT, AGENT] } else { ALL }
}

/// The types of handlers that run on an event.
pub(super) fn types(agent: Agent, kind: Kind) -> &'static [&'static str] {
    use Kind::{
        PermissionDenied, PermissionRequest, PostToolBatch, PostToolUse, PostToolUseFailure, PreToolUse, SessionEnd,
        SessionStart, Setup, Stop, SubagentStop, TaskCompleted, TaskCreated, TeammateIdle, UserPromptExpansion,
        UserPromptSubmit,
    };
    match (agent, kind) {
        (Agent::Codex, SessionEnd) => &[COMMAND],
        (Agent::Codex, _) => CODEX_ALL,
        (_, PermissionRequest) => &[COMMAND, HTTP, MCP_TOOL, PROMPT],
        (
            _,
            PreToolUse | PostToolUse | PostToolUseFailure | PostToolBatch | PermissionDenied | UserPromptSubmit
            | UserPromptExpansion | Stop | SubagentStop | TaskCreated | TaskCompleted | TeammateIdle,
        ) => ALL,
        (_, SessionStart) => &[COMMAND, MCP_TOOL],
        // Tools of servers are documented and never there yet.
        (_, Setup) => &[COMMAND],
        _ => &[COMMAND, HTTP, MCP_TOOL],
    }
}

/// Events of Claude Code on which a handler's `if` is looked at; on all others a handler that has one never runs.
pub(super) const EVENTS_WITH_IF: &[Kind] =
    &[Kind::PreToolUse, Kind::PostToolUse, Kind::PostToolUseFailure, Kind::PermissionRequest, Kind::PermissionDenied];

/// Events of Claude Code on which `onFailure: "block"` does nothing.
pub(super) const EVENTS_WITHOUT_ON_FAILURE: &[Kind] =
    &[Kind::Stop, Kind::SubagentStop, Kind::TaskCompleted, Kind::TeammateIdle];

/// Events of Codex on which `additionalContextLimit` counts.
pub(super) const EVENTS_WITH_CONTEXT_LIMIT: &[Kind] =
    &[Kind::PreToolUse, Kind::PostToolUse, Kind::SessionStart, Kind::UserPromptSubmit, Kind::SubagentStart];

/// Tools that matchers can name, and whether Codex has them under that name (its own and its aliases).
static TOOLS: [(&str, bool, bool); 27] = [
    ("Bash", true, true),
    ("PowerShell", true, false),
    ("Read", true, false),
    ("Write", true, true),
    ("Edit", true, true),
    ("MultiEdit", true, false),
    ("NotebookEdit", true, false),
    ("Glob", true, false),
    ("Grep", true, false),
    ("WebFetch", true, false),
    ("WebSearch", true, false),
    ("Agent", true, true),
    ("Task", true, false),
    ("TaskCreate", true, false),
    ("TaskUpdate", true, false),
    ("TodoWrite", true, false),
    ("Skill", true, false),
    ("SlashCommand", true, false),
    ("AskUserQuestion", true, false),
    ("EnterPlanMode", true, false),
    ("ExitPlanMode", true, false),
    ("BashOutput", true, false),
    ("KillShell", true, false),
    ("apply_patch", false, true),
    ("spawn_agent", false, true),
    ("update_plan", false, true),
    ("request_permissions", false, true),
];

/// The tools of an agent that are known by name. There are more: those of MCP servers, and new ones.
pub(super) fn tools(agent: Agent) -> impl Iterator<Item = &'static str> {
    let is_codex = agent == Agent::Codex;
    TOOLS.iter().filter(move |(_, claude, codex)| if is_codex { *codex } else { *claude }).map(|(name, ..)| *name)
}
