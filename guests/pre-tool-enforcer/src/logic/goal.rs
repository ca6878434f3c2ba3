//! While an ultragoal run is on, the agent's own `/goal` has to be the same: without it the agent would stop at the first turn's
//! end. Tools that begin, read or end the run are let through.

use omc_state::{Goals, ModeState, Timestamp, bare_skill_name, inert, one_line};
use serde_json::Value;

/// Longest objective that is repeated, in UTF-16 units.
const MAX_QUOTE_UNITS: usize = 300;

/// Members of a payload that may hold the goal.
pub const PAYLOAD: [&str; 9] = [
    "/goal",
    "/claude_goal",
    "/claudeGoal",
    "/goal_state",
    "/goalState",
    "/codex_goal",
    "/codexGoal",
    "/context/goal",
    "/context/claude_goal",
];

/// A goal as the agent has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Goal {
    objective: Option<String>,
    is_active: bool,
}

impl Goal {
    /// The goal that a member of the payload holds.
    pub fn of_payload(value: &Value) -> Option<Self> {
        let value = value.get("goal").filter(|inner| inner.is_object()).unwrap_or(value);
        let text = |names: &[&str]| names.iter().find_map(|name| value.get(*name)?.as_str()).map(str::trim);
        let objective = text(&["objective", "condition", "prompt", "description"]);
        let status = text(&["status", "state"]).map(str::to_ascii_lowercase);
        if objective.is_none() && status.is_none() {
            return None;
        }
        let is_active = matches!(status.as_deref(), None | Some("" | "active" | "in_progress" | "running"));
        Some(Self { objective: objective.filter(|text| !text.is_empty()).map(str::to_owned), is_active })
    }

    /// A goal with this objective, that is on.
    pub fn active(objective: String) -> Self {
        Self { objective: Some(objective), is_active: true }
    }
}

/// What the end of a transcript says about the goal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen {
    /// Nothing.
    Nothing,
    /// It was cleared.
    Cleared,
    /// It was set to this.
    Set(String),
}

/// The last `/goal` command in the lines of a transcript. Only what the user typed counts, not what was printed or quoted.
///
/// A line about the goal that cannot be read may have changed it: what stands before it counts no more.
pub fn in_transcript(tail: &str) -> Seen {
    let mut seen = Seen::Nothing;
    for line in tail.lines().filter(|line| line.contains("/goal")) {
        let is_command = line.contains("<command-name>/goal</command-name>");
        if !is_command && line.starts_with('{') && line.trim_end().ends_with('}') {
            continue;
        }
        let Ok(entry) = serde_json::from_str::<Value>(line) else {
            seen = Seen::Cleared;
            continue;
        };
        let is_user = entry.get("type").and_then(Value::as_str) == Some("user")
            && entry.pointer("/message/role").and_then(Value::as_str).is_none_or(|role| role == "user");
        let content = entry.pointer("/message/content").and_then(Value::as_str).filter(|_| is_user);
        let Some(content) = content.filter(|text| text.trim_start().starts_with("<command-")) else { continue };
        let arguments = content.split_once("<command-args>").and_then(|(_, rest)| rest.split_once("</command-args>"));
        let arguments = arguments.map_or("", |(arguments, _)| arguments.trim());
        seen = match arguments {
            "" => Seen::Cleared,
            clear if clear.eq_ignore_ascii_case("clear") => Seen::Cleared,
            objective => Seen::Set(objective.to_owned()),
        };
    }
    seen
}

/// Whether the run binds the session's tools now.
pub fn binds(state: &ModeState, goals: &Goals, project_root: Option<&str>, now: Timestamp) -> bool {
    let fields = state.fields();
    let elsewhere = match (fields.text("project_path"), project_root) {
        (Some(path), Some(root)) => path.trim_end_matches('/') != root.trim_end_matches('/'),
        _ => false,
    };
    let done = fields.text("completed_at").is_some() || fields.flag("all_done") || fields.flag("done");
    state.is_live(now) && !state.is_awaiting_confirmation(now) && !done && !elsewhere && !goals.are_over()
}

/// Why tools have to wait, if the agent's goal is not the run's.
pub fn refusal(expected: Option<&str>, actual: Option<&Goal>) -> Option<String> {
    let normal = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
    let shown = |text: &str| inert(&one_line(text, MAX_QUOTE_UNITS));
    let fits = actual.is_some_and(|goal| {
        goal.is_active
            && match (expected, &goal.objective) {
                (Some(expected), Some(actual)) => normal(expected) == normal(actual),
                (None, actual) => actual.is_some(),
                (Some(_), None) => false,
            }
    });
    if fits {
        return None;
    }
    let found = match actual {
        None => "No `/goal` of this session is visible.".to_owned(),
        Some(Goal { objective: Some(objective), is_active: true }) => {
            format!("The active `/goal` is another one: \"{}\".", shown(objective))
        }
        Some(goal) => {
            format!("The `/goal` is not active: \"{}\".", shown(goal.objective.as_deref().unwrap_or_default()))
        }
    };
    let wanted = match expected {
        Some(expected) => format!("Activate it: /goal {}", shown(expected)),
        None => "Record the objective in the ultragoal state first, then activate it with /goal.".to_owned(),
    };
    Some(format!(
        "[ULTRAGOAL /GOAL REQUIRED] An ultragoal run is active. {found} {wanted} Until then no tool runs, except those that start, \
         read or cancel the run; ALLOW_ULTRAGOAL_WITHOUT_GOAL=1 lifts this."
    ))
}

/// A call, as far as it may be let through.
#[derive(Debug, Clone, Copy, Default)]
pub struct Call<'a> {
    /// The tool's name.
    pub tool: &'a str,
    /// The skill that it starts.
    pub skill: Option<&'a str>,
    /// The file that it reads.
    pub path: Option<&'a str>,
    /// The command that it executes.
    pub command: Option<&'a str>,
}

impl Call<'_> {
    /// Whether the call starts, reads or ends a run.
    pub fn is_about_the_run(&self) -> bool {
        const STATE_TOOLS: [&str; 5] =
            ["state_clear", "state_read", "state_write", "state_list_active", "state_get_status"];
        const SKILL_FILES: [&str; 2] = ["skills/cancel/SKILL.md", "skill-bodies/cancel/SKILL.md"];
        match self.tool {
            "Skill" | "SlashCommand" => {
                self.skill.is_some_and(|skill| matches!(bare_skill_name(skill).as_str(), "ultragoal" | "cancel"))
            }
            "ToolSearch" => true,
            "Read" => self.path.is_some_and(|path| SKILL_FILES.iter().any(|file| path.ends_with(file))),
            "Bash" => self.command.is_some_and(is_own_command),
            tool => STATE_TOOLS.iter().any(|name| tool.ends_with(name)),
        }
    }
}

/// One command of this project's own programs that starts, reads or ends a run.
fn is_own_command(command: &str) -> bool {
    const STEPS: [&str; 9] = [
        "create",
        "create-goals",
        "complete",
        "complete-goals",
        "next",
        "start-next",
        "status",
        "checkpoint",
        "record-review-blockers",
    ];
    const STATE: [&str; 5] = ["clear", "read", "write", "list-active", "get-status"];
    if command.contains(['\n', '\r', ';', '&', '|', '`', '$', '<', '>', '(', ')']) {
        return false;
    }
    let mut command = command.trim_start();
    let script = ["node ", "nodejs "].iter().find_map(|program| command.strip_prefix(program)).map(str::trim_start);
    if let Some(script) = script {
        let quote = script.chars().next().filter(|first| matches!(first, '"' | '\''));
        let split = match quote {
            Some(quote) => script[1..].split_once(quote),
            None => script.split_once(' '),
        };
        let Some((_, rest)) = split.filter(|(path, _)| path.ends_with("/oh-my-claudecode.js")) else { return false };
        command = rest;
    }
    let mut words = command.split_whitespace().map(|word| word.trim_matches(['"', '\'']));
    let program = if script.is_some() { "omc" } else { words.next().unwrap_or_default() };
    let (first, second) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    match program {
        "omc" | "oh-my-claudecode" if first == "ultragoal" => STEPS.contains(&second),
        "omc" | "oh-my-claudecode" | "gjc" | "omc-host" => {
            first == "cancel" || first == "state" && STATE.contains(&second)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use omc_state::{Fields, Place};
    use serde_json::json;

    fn fields(value: Value) -> Fields {
        serde_json::from_value(value).expect("an object")
    }

    #[test]
    fn tools_wait_for_the_matching_goal() {
        let goal = |value: Value| Goal::of_payload(&value);
        for (expected, actual, refused) in [
            (Some("ship it"), None, Some("No `/goal`")),
            (Some("ship it"), goal(json!({"objective": "Ship   IT", "status": "active"})), None),
            (Some("ship it"), goal(json!({"goal": {"condition": "ship it"}})), None),
            (Some("ship it"), goal(json!({"objective": "write docs"})), Some("write docs")),
            (Some("ship it"), goal(json!({"objective": "ship it", "status": "paused"})), Some("not active")),
            (Some("ship it"), goal(json!({"status": "active"})), Some("not active")),
            (Some("ship it"), Some(Goal::active("ship it".into())), None),
            (None, Some(Goal::active("anything".into())), None),
            (None, None, Some("Record the objective")),
        ] {
            let text = refusal(expected, actual.as_ref());
            match (&text, refused) {
                (None, None) => {}
                (Some(text), Some(named)) => {
                    assert!(text.starts_with("[ULTRAGOAL /GOAL REQUIRED]") && text.contains(named), "{text}");
                    assert!(text.contains("ALLOW_ULTRAGOAL_WITHOUT_GOAL"), "{text}");
                }
                _ => panic!("{expected:?} {actual:?}: {text:?}"),
            }
        }
        assert_eq!(goal(json!({"x": 1})), None);
        assert_eq!(goal(json!("text")), None);
    }

    #[test]
    fn only_a_live_run_of_this_project_binds() {
        let now = Timestamp::from_epoch_ms(1_796_048_880_000);
        let ago = |ms: i64| now.plus_ms(-ms).to_string();
        for (over, goals, binding) in [
            (json!({}), json!({}), true),
            (json!({"project_path": "/p/"}), json!({}), true),
            (json!({"project_path": "/other"}), json!({}), false),
            (json!({"active": false}), json!({}), false),
            (json!({"last_checked_at": ago(3 * 60 * 60 * 1000), "started_at": null}), json!({}), false),
            (json!({"awaiting_confirmation": true, "awaiting_confirmation_set_at": ago(10_000)}), json!({}), false),
            (json!({"completed_at": ago(1)}), json!({}), false),
            (json!({"all_done": true}), json!({}), false),
            (json!({"current_phase": "complete"}), json!({}), false),
            (json!({}), json!({"goals": [{"status": "complete"}, {"status": "review_blocked"}]}), false),
            (json!({}), json!({"aggregateCompletion": {"status": "complete"}}), false),
        ] {
            let mut members =
                json!({"active": true, "session_id": "s1", "started_at": ago(60_000), "last_checked_at": ago(60_000)});
            for (name, value) in over.as_object().expect("an object") {
                members[name] = value.clone();
            }
            let state = ModeState::from_fields(fields(members), Place::Session);
            assert_eq!(binds(&state, &Goals::from(fields(goals.clone())), Some("/p"), now), binding, "{over} {goals}");
        }
    }

    #[test]
    fn the_last_goal_that_the_user_typed_counts() {
        let line = |kind: &str, role: &str, content: Value| {
            json!({"type": kind, "message": {"role": role, "content": content}}).to_string()
        };
        let command = |arguments: &str| {
            json!(format!(
                "<command-name>/goal</command-name>\n<command-message>goal</command-message>\n<command-args>{arguments}</command-args>"
            ))
        };
        let set = line("user", "user", command("Ship it"));
        for (lines, seen) in [
            (vec![], Seen::Nothing),
            (vec![set.clone()], Seen::Set("Ship it".into())),
            (vec![set.clone(), line("user", "user", command("clear"))], Seen::Cleared),
            (vec![set.clone(), line("user", "user", command(""))], Seen::Cleared),
            (vec![set.clone(), line("assistant", "assistant", command("other"))], Seen::Set("Ship it".into())),
            (
                vec![set.clone(), line("user", "user", json!([{"type": "text", "text": command("other")}]))],
                Seen::Set("Ship it".into()),
            ),
            (
                vec![line("user", "user", json!(format!("I saw: {}", command("x").as_str().expect("a text"))))],
                Seen::Nothing,
            ),
            (vec!["<command-name>/goal</command-name> {".to_owned(), set.clone()], Seen::Set("Ship it".into())),
            (vec![set.clone(), "<command-name>/goal</command-name> {".to_owned()], Seen::Cleared),
            (vec![set.clone(), "{\"type\":\"user\", /goal other".to_owned()], Seen::Cleared),
            (vec![set.clone(), line("user", "user", json!("what does /goal do?"))], Seen::Set("Ship it".into())),
            (vec![set.clone(), "{torn".to_owned()], Seen::Set("Ship it".into())),
        ] {
            assert_eq!(in_transcript(&lines.join("\n")), seen, "{lines:?}");
        }
    }

    #[test]
    fn what_begins_reads_or_ends_the_run_is_let_through() {
        let bash = |command| Call { tool: "Bash", command: Some(command), ..Call::default() };
        for command in [
            "omc ultragoal status",
            "oh-my-claudecode ultragoal create-goals --brief x",
            "omc cancel",
            "omc-host cancel --all",
            "gjc state read ralph",
            "node /a/oh-my-claudecode.js cancel",
            "node \"/a/oh-my-claudecode.js\" cancel",
            "nodejs '/a b/oh-my-claudecode.js' state clear",
            "omc state list-active",
        ] {
            assert!(bash(command).is_about_the_run(), "{command}");
        }
        for command in [
            "omc ultragoal status && rm x",
            "omc ultragoal",
            "omc ultragoal destroy",
            "omc cancel; rm x",
            "omc cancel | sh",
            "omc cancel $(rm x)",
            "omc cancel > x",
            "rm x",
            "node x.js cancel",
            "node",
            "node '/a/oh-my-claudecode.js",
            "node '/a/x.js' /b/oh-my-claudecode.js cancel",
            "node /a/oh-my-claudecode.js x cancel",
            "xomc cancel",
            "",
            "omc state drop",
        ] {
            assert!(!bash(command).is_about_the_run(), "{command}");
        }
        let skill = |name| Call { tool: "Skill", skill: Some(name), ..Call::default() };
        assert!(skill("oh-my-claudecode:cancel").is_about_the_run() && skill("ultragoal").is_about_the_run());
        assert!(!skill("omc:plan").is_about_the_run() && !skill("other:cancel").is_about_the_run());
        let tool = |tool| Call { tool, ..Call::default() };
        assert!(tool("ToolSearch").is_about_the_run() && tool("mcp__x__state_write").is_about_the_run());
        assert!(!tool("Read").is_about_the_run() && !tool("Write").is_about_the_run());
        let read = Call { tool: "Read", path: Some("/x/skills/cancel/SKILL.md"), ..Call::default() };
        assert!(read.is_about_the_run());
    }
}
