//! Codex CLI's events: 12, as of 0.155 (autumn 2026), from its source and generated schemas.
//!
//! One member too many, one null, or one value of a reserved kind makes Codex discard the whole answer and go on as if there
//! was none. These rows are the subset that every version of that time takes.

use super::{Carry, Context, Contract, Kind, Rewrite, Target};
use crate::protocol::event::Agent;

/// Matchers know these tools by further names.
const TOOL: Target = Target::Tool(&[("apply_patch", &["Write", "Edit"]), ("spawn_agent", &["Agent"])]);
const AGENT_TYPE: Target = Target::Member("agent_type", &[]);
const TRIGGER: Target = Target::Member("trigger", &["manual", "auto"]);

const fn row(kind: Kind, event: &'static str, target: Target) -> Contract {
    Contract::nothing(Agent::Codex, kind, event, target)
}

/// One row an event, in the order of a session.
pub static CODEX: [Contract; 12] = [
    Contract {
        halt: Carry::Stop,
        context: Context::Specific,
        hook_timeout_s: Some(5),
        ..row(Kind::SessionStart, "SessionStart", Target::Member("source", &["startup", "resume", "clear", "compact"]))
    },
    Contract {
        block: Carry::Decision,
        halt: Carry::Stop,
        context: Context::Specific,
        hook_timeout_s: Some(30),
        ..row(Kind::UserPromptSubmit, "UserPromptSubmit", Target::None)
    },
    // A bare `allow`, `ask` and `continue:false` are errors here, and after an error the tool runs.
    Contract {
        ask: Carry::AsBlock,
        block: Carry::Permission,
        halt: Carry::AsBlock,
        context: Context::Specific,
        updated_input: Rewrite::WithAllow(&["Bash", "apply_patch"]),
        hook_timeout_s: Some(3),
        ..row(Kind::PreToolUse, "PreToolUse", TOOL)
    },
    // The person is about to be asked: to leave it at that is `ask`.
    Contract {
        allow: Carry::Behavior,
        ask: Carry::Unsaid,
        block: Carry::Behavior,
        halt: Carry::AsBlock,
        hook_timeout_s: Some(5),
        ..row(Kind::PermissionRequest, "PermissionRequest", TOOL)
    },
    // The tool has run: a block puts its reason in the result's place.
    Contract {
        block: Carry::Decision,
        halt: Carry::Stop,
        context: Context::Specific,
        hook_timeout_s: Some(3),
        ..row(Kind::PostToolUse, "PostToolUse", TOOL)
    },
    // To refuse compaction takes the end of the turn.
    Contract {
        block: Carry::Stop,
        halt: Carry::Stop,
        hook_timeout_s: Some(10),
        ..row(Kind::PreCompact, "PreCompact", TRIGGER)
    },
    Contract { halt: Carry::Stop, ..row(Kind::PostCompact, "PostCompact", TRIGGER) },
    Contract {
        context: Context::Specific,
        hook_timeout_s: Some(3),
        ..row(Kind::SubagentStart, "SubagentStart", AGENT_TYPE)
    },
    Contract { block: Carry::Decision, hook_timeout_s: Some(5), ..row(Kind::SubagentStop, "SubagentStop", AGENT_TYPE) },
    Contract { block: Carry::Decision, hook_timeout_s: Some(10), ..row(Kind::Stop, "Stop", Target::None) },
    Contract { timeout_ms: 1_000, max_timeout_ms: Some(3_000), ..row(Kind::Interrupt, "Interrupt", Target::None) },
    // Standard output is not read.
    Contract {
        message: false,
        timeout_ms: 1_000,
        max_timeout_ms: Some(3_000),
        hook_timeout_s: Some(3),
        ..row(Kind::SessionEnd, "SessionEnd", Target::Member("reason", &["other"]))
    },
];
