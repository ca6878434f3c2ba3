//! The frozen guest in Rust: it uses every function of `omc:hook` 0.1.0 and says what it got. See `tests/compat/README.md`.

use std::fmt::Display;
use std::time::Duration;

use omc_guest::git::ChangeKind;
use omc_guest::project_files::Root;
use omc_guest::{
    AccessError, Decision, EffectError, Effects, Error, Event, Guest, ToolKind, environment, git, log, project_files,
    session_environment, settings, state_lock, transcript,
};
use serde_json::{Value, json};

struct Compat;

impl Guest for Compat {
    fn handle(event: &Event<'_>, effects: &mut Effects<'_>) -> Result<Decision, Error> {
        let wanted = event.text("/compat");
        if wanted.as_deref() == Some("fail") {
            return Err("on purpose".into());
        }
        log::info(&format!("asked for {}", shown(wanted.as_deref())));
        let mut facts = event_facts(event);
        if wanted.as_deref() == Some("everything") {
            facts.extend(capability_facts(effects));
        }
        effects.add_context(&facts.join("\n"))?;
        let reason = |wanted: &str| format!("for the reason {wanted}");
        Ok(match wanted.as_deref() {
            Some("allow") => Decision::Allow,
            Some(wanted @ "ask") => Decision::Ask(reason(wanted)),
            Some(wanted @ "block") => Decision::Block(reason(wanted)),
            Some(wanted @ "halt") => Decision::Halt(reason(wanted)),
            _ => Decision::Pass,
        })
    }
}

omc_guest::export!(Compat, {
    "description": "Uses every function of omc:hook, from Rust",
    "subscriptions": [{ "event": "pre-tool-use" }, { "event": "user-prompt-submit" }],
    "requests": [
        { "capability": "omc", "scope": ["rw:/omc/guests/compat-rust"], "reason": "takes a lock" },
        { "capability": "read", "scope": ["project:*.md"], "reason": "reads notes" },
        { "capability": "transcript", "reason": "reads its end" },
        { "capability": "git", "reason": "names the branch" },
        { "capability": "env", "scope": ["CI"], "reason": "looks at one variable" },
        { "capability": "session-environment", "scope": ["COMPAT"], "reason": "sets one variable" },
        { "capability": "allow", "reason": "answers allow" },
        { "capability": "halt", "reason": "answers halt" },
        { "capability": "update-input", "reason": "rewrites an input" }
    ]
});

fn shown<T: Display>(value: Option<T>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

/// What a call gave, or the name of its error.
fn asked<T: Display>(answer: Result<T, AccessError>) -> String {
    match answer {
        Ok(value) => value.to_string(),
        Err(AccessError::Denied) => "error denied".to_owned(),
        Err(AccessError::NotFound) => "error not-found".to_owned(),
        Err(AccessError::TooLarge) => "error too-large".to_owned(),
        Err(_) => "error other".to_owned(),
    }
}

fn taken(answer: Result<(), EffectError>, done: &str) -> String {
    match answer {
        Ok(()) => done.to_owned(),
        Err(EffectError::Denied) => "error denied".to_owned(),
        Err(error) => format!("error {error}"),
    }
}

fn event_facts(event: &Event<'_>) -> Vec<String> {
    let paths = event.tool_paths().map(|paths| {
        let paths: Vec<_> = paths.iter().map(|found| format!("{} {}", operation(found), found.path)).collect();
        paths.join(" ")
    });
    vec![
        format!("kind: {}", event.kind().name()),
        format!("agent: {}", event.agent()),
        format!("session-id: {}", shown(event.session_id())),
        format!("subagent-id: {}", shown(event.subagent_id())),
        format!("cwd: {}", event.cwd().is_some()),
        format!("project-root: {}", event.project_root().is_some()),
        format!("in-work-tree: {}", event.in_work_tree()),
        format!("prompt: {}", shown(event.prompt())),
        format!("tool-name: {}", shown(event.tool_name())),
        format!("field: {}", shown(event.field("/number"))),
        format!("text: {}", shown(event.text("/number"))),
        format!("permission-mode: {}", shown(event.permission_mode())),
        format!("source: {}", shown(event.source())),
        format!("tool-kind: {}", shown(event.tool_kind().map(ToolKind::name))),
        format!("tool-paths: {}", asked(paths)),
        format!("tool-command: {}", shown(event.tool_command())),
        format!("tool-result: {}", shown(event.tool_result())),
        format!("tool-failed: {}", shown(event.tool_failed())),
        format!("tool-interrupted: {}", event.tool_interrupted()),
    ]
}

fn operation(found: &omc_guest::ToolPath) -> &'static str {
    match found.operation {
        omc_guest::Operation::Read => "read",
        omc_guest::Operation::Write => "write",
        omc_guest::Operation::Edit => "edit",
        omc_guest::Operation::Delete => "delete",
    }
}

fn listed() -> Result<String, AccessError> {
    let entry = |entry: &project_files::Entry| {
        let kind = if entry.is_folder { "folder" } else { "file" };
        format!("{kind} {} {} {}", entry.name, entry.size, entry.modified_ms > 0)
    };
    let entries: Vec<_> = project_files::list(Root::Project, "", 9)?.iter().map(entry).collect();
    Ok(entries.join(" "))
}

fn found() -> Result<String, AccessError> {
    let found = project_files::find(Root::Project, "", 9)?;
    Ok(format!("{} {}", found.paths.join(" "), found.complete))
}

fn changed() -> Result<String, AccessError> {
    let change = |change: &git::Change| {
        let kind = match change.kind {
            ChangeKind::Added => "added",
            ChangeKind::Modified => "modified",
            ChangeKind::Deleted => "deleted",
            ChangeKind::Conflicted => "conflicted",
            ChangeKind::Untracked => "untracked",
        };
        format!("{kind} {}", change.path)
    };
    let changes = git::changed_paths(9)?;
    let paths: Vec<_> = changes.paths.iter().map(change).collect();
    Ok(format!("{} {}", paths.join(" "), changes.complete))
}

fn added_lines() -> Result<String, AccessError> {
    let lines: Vec<_> = git::added_lines("notes.md", 9)?.iter().map(ToString::to_string).collect();
    Ok(lines.join(" "))
}

fn capability_facts(effects: &mut Effects<'_>) -> Vec<String> {
    let acquire = || state_lock::acquire("guests/compat-rust", Duration::from_millis(50));
    // Twice, because a guest holds one at a time.
    let lock = acquire().map(drop).and_then(|()| acquire());
    let lock = lock.map_or_else(|error| format!("error {error}"), |_| "held".to_owned());
    let read = |text: String| text.trim().to_owned();
    vec![
        format!("settings: {}", shown(settings::get::<Value>("no.such.key"))),
        format!("state-lock: {lock}"),
        format!("transcript: {}", shown(transcript::tail(64).map(read))),
        format!("environment: {}", shown(environment::get("CI"))),
        format!("read: {}", asked(project_files::read(Root::Project, "notes.md", 100).map(read))),
        format!("read-start: {}", asked(project_files::read_start(Root::Project, "notes.md", 2))),
        format!("list: {}", asked(listed())),
        format!("find: {}", asked(found())),
        format!("branch: {}", asked(git::branch().map(shown))),
        format!("head: {}", asked(git::head().map(|head| shown(head.map(|id| id.len()))))),
        format!("changed-paths: {}", asked(changed())),
        format!("added-lines: {}", asked(added_lines())),
        format!("session-environment: {}", asked(session_environment::set("COMPAT", "1").map(|()| "set"))),
        format!("add-message: {}", taken(effects.add_message("a message"), "added")),
        format!("update-input: {}", taken(effects.update_input(&json!({ "command": "true" })), "updated")),
    ]
}
