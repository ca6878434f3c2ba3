//! Routine reminders: one kind for each tool that has one, and the boulder for all others while a mode is on.

use omc_state::{Todos, fingerprint, inert, one_line};
use serde_json::Value;

/// Longest text of a call that is repeated in a reminder, in UTF-16 units.
const MAX_QUOTE_UNITS: usize = 120;

/// What is said while a mode is on: the original's words.
pub const BOULDER: &str = "The boulder never stops. Continue until all tasks complete.";

/// A reminder that a tool has of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Routine {
    /// Its kind, for the throttle.
    pub kind: &'static str,
    text: &'static str,
    /// The quiet level from which it is not said.
    silent_from: u64,
}

const BASH: Routine = Routine {
    kind: "bash",
    text: "Run commands that do not depend on each other in parallel. Give long ones (installs, builds, test suites) \
           `run_in_background: true`.",
    silent_from: 1,
};
const EDIT: Routine = Routine {
    kind: "edit",
    text: "After the change, check that it works: test it before you call it complete.",
    silent_from: 1,
};
const READ: Routine =
    Routine { kind: "read", text: "If you need several files, read them in parallel.", silent_from: 1 };
const SEARCH: Routine =
    Routine { kind: "search", text: "Combine several searches in one step, in parallel.", silent_from: 1 };
const TODO: Routine = Routine {
    kind: "todo",
    text: "Mark an item in_progress before you begin it, and completed as soon as it is done.",
    silent_from: 2,
};

/// Tools with a reminder, by the names that agents send. Codex changes files with `apply_patch`.
const TOOLS: &[(&str, Routine)] = &[
    ("TodoWrite", TODO),
    ("Bash", BASH),
    ("Edit", EDIT),
    ("Write", EDIT),
    ("apply_patch", EDIT),
    ("Read", READ),
    ("Grep", SEARCH),
    ("Glob", SEARCH),
];

/// The quiet level from which nothing routine is said about agents either.
pub const SPAWN_SILENT_FROM: u64 = 2;

/// Built-in tools for task lists, which are used all the time: nothing is said.
const SILENT: &[&str] = &["TaskCreate", "TaskUpdate", "TaskList", "TaskGet", "TaskOutput", "TaskStop"];

/// What a tool may be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reminder {
    /// Nothing, ever.
    Silent,
    /// Its own reminder.
    Routine(Routine),
    /// About the agent that it starts.
    Spawn,
    /// The boulder, if a mode is on.
    Boulder,
}

impl Reminder {
    /// What the tool of this name may be told at this quiet level.
    pub fn of(tool: &str, quiet: u64) -> Self {
        if SILENT.contains(&tool) {
            return Self::Silent;
        }
        // Codex starts agents with `spawn_agent`.
        if matches!(tool, "Task" | "spawn_agent") {
            return Self::Spawn;
        }
        match TOOLS.iter().find(|(name, _)| *name == tool) {
            Some((_, routine)) if routine.silent_from > quiet => Self::Routine(*routine),
            Some(_) => Self::Silent,
            None => Self::Boulder,
        }
    }
}

impl Routine {
    /// The text, with the number of items on the to-do lists in front.
    pub fn text(&self, todos: Todos) -> String {
        format!("{}{}", todo_prefix(todos), self.text)
    }
}

/// `[2 active, 3 pending] `, or nothing.
pub fn todo_prefix(todos: Todos) -> String {
    if todos.open() == 0 {
        return String::new();
    }
    format!("[{} active, {} pending] ", todos.in_progress, todos.pending)
}

/// The agent that a call starts, as far as it is said again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spawn {
    agent_type: String,
    model: String,
    in_background: bool,
    task: Option<String>,
    /// The call gives the agent a name.
    pub is_named: bool,
}

impl Spawn {
    /// What the call's input says; absent if it says nothing. `model` is the one that it gets by a rule.
    pub fn of(input: &Value, model: Option<&str>) -> Option<Self> {
        let input = input.as_object()?;
        let text = |name: &str| {
            let text = input.get(name).and_then(Value::as_str).map(|text| inert(&one_line(text, MAX_QUOTE_UNITS)));
            text.filter(|text| !text.is_empty())
        };
        let model = model.map(str::to_owned).or_else(|| text("model"));
        Some(Self {
            agent_type: text("subagent_type").or_else(|| text("agent_type")).unwrap_or_else(|| "unknown".to_owned()),
            model: model.unwrap_or_else(|| "inherit".to_owned()),
            in_background: input.get("run_in_background").is_some_and(is_truthy),
            task: text("description"),
            is_named: text("name").is_some(),
        })
    }

    /// The line about the agent, and its kind for the throttle: another agent is another kind.
    pub fn line(&self, todos: Todos, running: u64) -> (String, String) {
        let mut line = format!("Spawning agent: {} ({})", self.agent_type, self.model);
        if self.in_background {
            line.push_str(" [BACKGROUND]");
        }
        if let Some(task) = &self.task {
            line.push_str(" | Task: ");
            line.push_str(task);
        }
        let kind = format!("spawn-{}", fingerprint(&line));
        if running > 0 {
            line.push_str(" | Active agents: ");
            line.push_str(&running.to_string());
        }
        (format!("{}{line}", todo_prefix(todos)), kind)
    }

    /// What an agent without a name is told in team mode, in the line's place.
    pub fn team_line(&self, team: &str) -> String {
        let (team, agent_type) = (inert(&one_line(team, MAX_QUOTE_UNITS)), &self.agent_type);
        format!(
            "[TEAM ROUTING REQUIRED] Team \"{team}\" is active, but this starts an unnamed subagent outside it. Give it a name: \
             name=\"worker-N\", subagent_type=\"{agent_type}\". The session's own team takes it in by that name (Claude Code \
             2.1.178 and later; `TeamCreate` and `TeamDelete` are gone). `team_name` is ignored: do not rely on it."
        )
    }
}

/// What a call is told that does not say what it starts.
pub fn generic_spawn(todos: Todos) -> String {
    let text = "Prefer parallel agents for independent work, and run_in_background for long work.";
    format!("{}{text}", todo_prefix(todos))
}

fn is_truthy(value: &Value) -> bool {
    match value {
        Value::Bool(flag) => *flag,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !matches!(text.trim(), "" | "false" | "0"),
        Value::Null => false,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn todos(in_progress: u64, pending: u64) -> Todos {
        Todos { pending, in_progress, completed: 9 }
    }

    #[test]
    fn each_tool_has_its_kind_of_reminder_at_its_quiet_level() {
        for (tool, at_0, at_1, at_2) in [
            ("TodoWrite", "todo", "todo", ""),
            ("Bash", "bash", "", ""),
            ("Edit", "edit", "", ""),
            ("Write", "edit", "", ""),
            ("apply_patch", "edit", "", ""),
            ("Read", "read", "", ""),
            ("Grep", "search", "", ""),
            ("Glob", "search", "", ""),
            ("Task", "spawn", "spawn", "spawn"),
            ("TaskCreate", "", "", ""),
            ("TaskOutput", "", "", ""),
            ("MultiEdit", "boulder", "boulder", "boulder"),
            ("bash", "boulder", "boulder", "boulder"),
            ("mcp__a__b", "boulder", "boulder", "boulder"),
            ("", "boulder", "boulder", "boulder"),
        ] {
            for (quiet, kind) in [(0, at_0), (1, at_1), (2, at_2), (9, at_2)] {
                let found = match Reminder::of(tool, quiet) {
                    Reminder::Silent => "",
                    Reminder::Routine(routine) => routine.kind,
                    Reminder::Spawn => "spawn",
                    Reminder::Boulder => "boulder",
                };
                assert_eq!(found, kind, "{tool} at {quiet}");
            }
        }
    }

    #[test]
    fn open_items_stand_in_front() {
        assert_eq!(todo_prefix(todos(1, 3)), "[1 active, 3 pending] ");
        assert_eq!(todo_prefix(todos(0, 1)), "[0 active, 1 pending] ");
        assert_eq!(todo_prefix(todos(0, 0)), "");
        assert!(EDIT.text(todos(1, 3)).starts_with("[1 active, 3 pending] After"));
    }

    #[test]
    fn an_agent_is_named_with_what_the_call_says() {
        let line =
            |input: Value, running| Spawn::of(&input, None).expect("an object").line(Todos::default(), running).0;
        assert_eq!(
            line(
                json!({"subagent_type": "omc:executor", "description": "Fix it", "run_in_background": true, "model": "opus"}),
                0
            ),
            "Spawning agent: omc:executor (opus) [BACKGROUND] | Task: Fix it"
        );
        assert_eq!(line(json!({}), 2), "Spawning agent: unknown (inherit) | Active agents: 2");
        assert_eq!(
            line(
                json!({"subagent_type": 7, "model": null, "description": "a\nb\u{1b}[31m", "run_in_background": "false"}),
                0
            ),
            "Spawning agent: unknown (inherit) | Task: a b [31m"
        );
        let ruled = Spawn::of(&json!({"subagent_type": "x"}), Some("haiku")).expect("an object");
        assert_eq!(ruled.line(todos(1, 0), 0).0, "[1 active, 0 pending] Spawning agent: x (haiku)");
        assert_eq!(ruled.line(todos(1, 0), 0).1, ruled.line(Todos::default(), 3).1, "the same agent is the same kind");
        for input in [json!(null), json!("text"), json!([1])] {
            assert_eq!(Spawn::of(&input, None), None);
        }
        let long = line(json!({"description": "d".repeat(9_000)}), 0);
        assert!(long.len() < 300, "{}", long.len());
    }

    #[test]
    fn only_an_agent_without_a_name_is_sent_to_the_team() {
        let spawn = |input: Value| Spawn::of(&input, None).expect("an object");
        assert!(!spawn(json!({"name": " "})).is_named && spawn(json!({"name": "worker-1"})).is_named);
        let text = spawn(json!({"subagent_type": "executor"})).team_line("at\nlas");
        assert!(
            text.starts_with("[TEAM ROUTING REQUIRED] Team \"at las\"") && text.contains("subagent_type=\"executor\"")
        );
    }
}
