//! The agents' tools: one row for those that do the same.

use crate::{Operation, ToolKind};

/// What a tool does, and where its input says to what.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tool {
    pub(crate) kind: ToolKind,
    pub(crate) subject: Subject,
}

/// Where a tool's input says what it is about.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Subject {
    /// Nowhere.
    Nothing,
    /// In members that hold a path each.
    Files(&'static [&'static str], Operation),
    /// In a folder to search (the folder worked in if it is absent), further down if the pattern begins with folders.
    Search { folder: &'static [&'static str], pattern: Option<&'static str> },
    /// In a command line.
    Command,
    /// In the text of a patch.
    Patch,
}

/// Tools of an agent by their names.
type Row = (&'static [&'static str], ToolKind, Subject);

/// The member of Claude Code's tools for one file, and another spelling that hooks of the original accept.
const FILE: &[&str] = &["file_path", "filePath"];

/// Claude Code's tools. Those that are not here do nothing that guests could judge by paths or commands.
const CLAUDE: &[Row] = &[
    (&["Bash", "PowerShell", "Monitor"], ToolKind::Execute, Subject::Command),
    (&["Read"], ToolKind::Read, Subject::Files(FILE, Operation::Read)),
    (&["NotebookRead"], ToolKind::Read, Subject::Files(&["notebook_path"], Operation::Read)),
    (&["LSP"], ToolKind::Read, Subject::Files(&["filePath"], Operation::Read)),
    (&["Glob"], ToolKind::Read, Subject::Search { folder: &["path"], pattern: Some("pattern") }),
    (&["Grep", "LS"], ToolKind::Read, Subject::Search { folder: &["path"], pattern: None }),
    (&["Write"], ToolKind::Write, Subject::Files(FILE, Operation::Write)),
    (&["Edit", "MultiEdit"], ToolKind::Edit, Subject::Files(FILE, Operation::Edit)),
    (&["NotebookEdit"], ToolKind::Edit, Subject::Files(&["notebook_path"], Operation::Edit)),
    (&["WebFetch", "WebSearch"], ToolKind::Network, Subject::Nothing),
    (&["Task", "Agent", "SendMessage"], ToolKind::Agent, Subject::Nothing),
    (&["ListMcpResourcesTool", "ReadMcpResourceTool"], ToolKind::Mcp, Subject::Nothing),
];

/// Codex CLI's tools, by the names that hooks see and by those of older versions.
const CODEX: &[Row] = &[
    (
        &["Bash", "shell", "shell_command", "local_shell", "exec_command", "container.exec"],
        ToolKind::Execute,
        Subject::Command,
    ),
    (&["write_stdin"], ToolKind::Execute, Subject::Nothing),
    // What the patch does decides; without one that can be read it is an edit.
    (&["apply_patch"], ToolKind::Edit, Subject::Patch),
    (&["read_file"], ToolKind::Read, Subject::Files(&["file_path"], Operation::Read)),
    (&["view_image"], ToolKind::Read, Subject::Files(&["path"], Operation::Read)),
    (&["list_dir", "grep_files"], ToolKind::Read, Subject::Search { folder: &["dir_path", "path"], pattern: None }),
    (&["web_search"], ToolKind::Network, Subject::Nothing),
    (
        &["spawn_agent", "send_input", "send_message", "followup_task", "resume_agent", "wait_agent", "close_agent"],
        ToolKind::Agent,
        Subject::Nothing,
    ),
    (&["list_mcp_resources", "list_mcp_resource_templates", "read_mcp_resource"], ToolKind::Mcp, Subject::Nothing),
];

/// The names of tools of MCP servers begin so, with every agent.
const MCP_PREFIX: &str = "mcp__";

/// The tool of that name. The names do not clash, so an agent that is neither of the two may use either's.
pub(crate) fn find(agent: &str, name: &str) -> Tool {
    if name.starts_with(MCP_PREFIX) {
        return Tool { kind: ToolKind::Mcp, subject: Subject::Nothing };
    }
    let tables = if agent == "codex" { [CODEX, CLAUDE] } else { [CLAUDE, CODEX] };
    let rows = tables.into_iter().flatten();
    let found =
        rows.filter(|(names, ..)| names.contains(&name)).map(|&(_, kind, subject)| Tool { kind, subject }).next();
    found.unwrap_or(Tool { kind: ToolKind::Other, subject: Subject::Nothing })
}
