//! Claude Code's events: 33, as of 2.1.303 (November 2026), from the vendor's hooks reference and change log.

use super::{Carry, Context, Contract, Install, Kind, Rewrite, Silence, Target, Unanswered};
use crate::protocol::event::Agent;

const TOOL: Target = Target::Tool(&[]);
const TRIGGER: Target = Target::Member("trigger", &["manual", "auto"]);
const SERVER: Target = Target::Member("mcp_server_name", &[]);

const fn row(kind: Kind, event: &'static str, target: Target) -> Contract {
    Contract::nothing(Agent::Claude, kind, event, target)
}

/// One row an event, in the order of a session.
pub static CLAUDE: [Contract; 33] = [
    Contract {
        halt: Carry::Stop,
        context: Context::Specific,
        session_environment: true,
        hook_timeout_s: Some(5),
        ..row(
            Kind::SessionStart,
            "SessionStart",
            Target::Member("source", &["startup", "resume", "clear", "compact", "fork"]),
        )
    },
    // All output is discarded today; older versions delivered the context, and sending it costs nothing.
    Contract {
        context: Context::Specific,
        message: false,
        session_environment: true,
        hook_timeout_s: Some(60),
        ..row(Kind::Setup, "Setup", Target::Member("trigger", &["init", "maintenance"]))
    },
    Contract {
        message: false,
        ..row(
            Kind::InstructionsLoaded,
            "InstructionsLoaded",
            Target::Member(
                "load_reason",
                &["session_start", "nested_traversal", "path_glob_match", "include", "compact"],
            ),
        )
    },
    Contract {
        block: Carry::Decision,
        halt: Carry::StopAndBlock,
        context: Context::Specific,
        timeout_ms: 30_000,
        hook_timeout_s: Some(30),
        ..row(Kind::UserPromptSubmit, "UserPromptSubmit", Target::None)
    },
    Contract {
        block: Carry::Decision,
        halt: Carry::StopAndBlock,
        context: Context::Specific,
        ..row(Kind::UserPromptExpansion, "UserPromptExpansion", Target::Member("command_name", &[]))
    },
    // Every batch of lines waits for the hook.
    Contract {
        message: false,
        silence: Silence::NoBytes,
        timeout_ms: 10_000,
        install: Install::OnRequest,
        ..row(Kind::MessageDisplay, "MessageDisplay", Target::None)
    },
    Contract {
        allow: Carry::Permission,
        ask: Carry::Permission,
        block: Carry::Permission,
        halt: Carry::StopAndBlock,
        context: Context::Specific,
        updated_input: Rewrite::Alone,
        hook_timeout_s: Some(3),
        ..row(Kind::PreToolUse, "PreToolUse", TOOL)
    },
    // The person is about to be asked: to leave it at that is `ask`.
    Contract {
        allow: Carry::Behavior,
        ask: Carry::Unsaid,
        block: Carry::Behavior,
        halt: Carry::StopAndBlock,
        updated_input: Rewrite::InAllow,
        hook_timeout_s: Some(5),
        ..row(Kind::PermissionRequest, "PermissionRequest", TOOL)
    },
    Contract { halt: Carry::Stop, ..row(Kind::PermissionDenied, "PermissionDenied", TOOL) },
    // The tool has run: a block puts its reason beside the result.
    Contract {
        block: Carry::Decision,
        halt: Carry::Stop,
        context: Context::Specific,
        hook_timeout_s: Some(3),
        ..row(Kind::PostToolUse, "PostToolUse", TOOL)
    },
    Contract {
        halt: Carry::Stop,
        context: Context::Specific,
        hook_timeout_s: Some(3),
        ..row(Kind::PostToolUseFailure, "PostToolUseFailure", TOOL)
    },
    Contract {
        block: Carry::Decision,
        halt: Carry::Stop,
        context: Context::Specific,
        ..row(Kind::PostToolBatch, "PostToolBatch", Target::None)
    },
    Contract {
        message: false,
        ..row(
            Kind::Notification,
            "Notification",
            Target::Member(
                "notification_type",
                &[
                    "permission_prompt",
                    "idle_prompt",
                    "auth_success",
                    "elicitation_dialog",
                    "elicitation_url_dialog",
                    "elicitation_complete",
                    "elicitation_response",
                    "agent_needs_input",
                    "agent_completed",
                    "quota_auto_resume_fired",
                    "quota_auto_resume_stale",
                    "quota_auto_resume_disabled",
                ],
            ),
        )
    },
    Contract {
        context: Context::Specific,
        hook_timeout_s: Some(3),
        ..row(Kind::SubagentStart, "SubagentStart", Target::Member("agent_type", &[]))
    },
    // Text for the model would make it go on: a stop that nobody refuses stays one, so context is not carried here. Nor is
    // `halt`: the agent ends anyway.
    Contract {
        block: Carry::Decision,
        silence: Silence::NoBytes,
        hook_timeout_s: Some(5),
        ..row(Kind::SubagentStop, "SubagentStop", Target::Member("agent_type", &[]))
    },
    Contract {
        block: Carry::Decision,
        silence: Silence::NoBytes,
        hook_timeout_s: Some(10),
        ..row(Kind::Stop, "Stop", Target::None)
    },
    Contract {
        message: false,
        ..row(
            Kind::StopFailure,
            "StopFailure",
            Target::Member(
                "error",
                &[
                    "rate_limit",
                    "overloaded",
                    "authentication_failed",
                    "oauth_org_not_allowed",
                    "account_on_hold",
                    "billing_error",
                    "invalid_request",
                    "model_not_found",
                    "server_error",
                    "max_output_tokens",
                    "cloud_credential_error",
                    "verification_required",
                    "unknown",
                ],
            ),
        )
    },
    // To keep a teammate working takes exit status 2, which this host never uses.
    Contract { halt: Carry::Stop, ..row(Kind::TeammateIdle, "TeammateIdle", Target::None) },
    Contract { block: Carry::Decision, halt: Carry::AsBlock, ..row(Kind::TaskCreated, "TaskCreated", Target::None) },
    Contract {
        block: Carry::Decision,
        halt: Carry::StopAndBlock,
        ..row(Kind::TaskCompleted, "TaskCompleted", Target::None)
    },
    Contract {
        block: Carry::Decision,
        halt: Carry::AsBlock,
        message: false,
        ..row(
            Kind::ConfigChange,
            "ConfigChange",
            Target::Member(
                "source",
                &["user_settings", "project_settings", "local_settings", "policy_settings", "skills"],
            ),
        )
    },
    Contract { session_environment: true, ..row(Kind::CwdChanged, "CwdChanged", Target::None) },
    row(Kind::DirectoryAdded, "DirectoryAdded", Target::Member("source", &["slash_command", "register_repo_root"])),
    // The matchers of a hook are also the list of files that are watched.
    Contract {
        session_environment: true,
        silence: Silence::NoBytes,
        install: Install::OnRequest,
        ..row(Kind::FileChanged, "FileChanged", Target::FileName)
    },
    // Replaces the agent's own work tree code: standard output is the path of the new tree, so JSON would be taken for one.
    Contract {
        message: false,
        silence: Silence::NoBytes,
        unanswered: Unanswered::Fails,
        install: Install::OnRequest,
        ..row(Kind::WorktreeCreate, "WorktreeCreate", Target::None)
    },
    Contract {
        message: false,
        silence: Silence::NoBytes,
        install: Install::OnRequest,
        ..row(Kind::WorktreeRemove, "WorktreeRemove", Target::None)
    },
    // The newest versions may discard the message; there is no other place for a text.
    Contract {
        block: Carry::Decision,
        halt: Carry::AsBlock,
        context: Context::AsMessage,
        hook_timeout_s: Some(10),
        ..row(Kind::PreCompact, "PreCompact", TRIGGER)
    },
    row(Kind::PostCompact, "PostCompact", TRIGGER),
    // A hook that is too slow, or in the way, keeps the user from changing the model.
    Contract {
        allow: Carry::Permission,
        ask: Carry::Permission,
        block: Carry::Permission,
        halt: Carry::AsBlock,
        silence: Silence::NoBytes,
        timeout_ms: 30_000,
        unanswered: Unanswered::TimeoutBlocks,
        install: Install::OnRequest,
        ..row(Kind::PreModelSwitch, "PreModelSwitch", Target::Member("to_model", &[]))
    },
    Contract {
        context: Context::Specific,
        timeout_ms: 30_000,
        ..row(Kind::PostModelSwitch, "PostModelSwitch", Target::Member("to_model", &[]))
    },
    // Output is discarded. The budget is one for all hooks; a settings file, not a plugin, can raise it.
    Contract {
        message: false,
        timeout_ms: 1_500,
        max_timeout_ms: Some(60_000),
        hook_timeout_s: Some(30),
        ..row(
            Kind::SessionEnd,
            "SessionEnd",
            Target::Member("reason", &["clear", "resume", "logout", "prompt_input_exit", "other"]),
        )
    },
    Contract { block: Carry::Decline, halt: Carry::AsBlock, ..row(Kind::Elicitation, "Elicitation", SERVER) },
    Contract {
        block: Carry::Decline,
        halt: Carry::AsBlock,
        ..row(Kind::ElicitationResult, "ElicitationResult", SERVER)
    },
];
