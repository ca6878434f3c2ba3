//! What Claude Code and Codex accept as the answer of a hook, event by event, from what both publish and by what both were seen to
//! do: not from our own contracts, which it is there to contradict.
//!
//! An accepted answer is taken as it was meant: nothing in it is refused, ignored or lost. Only exit status 0 is known here, since
//! the host knows no other.

use serde::de::{Deserialize, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// What a member may be.
#[derive(Clone, Copy, Debug)]
enum Is {
    Text,
    Flag,
    Object,
    Texts,
    Anything,
    OneOf(&'static [&'static str]),
}

use Is::{Anything, Flag, Object, OneOf, Text, Texts};

type Members = &'static [(&'static str, Is)];

/// Longest text: UTF-16 units for Claude Code, bytes for Codex. Above it the agent cuts.
const CAP: usize = 10_000;

const NONE: Members = &[];
const BLOCK: Members = &[("decision", OneOf(&["block", "approve"])), ("reason", Text)];
const CONTEXT: Members = &[("additionalContext", Text)];
const WATCH: Members = &[("watchPaths", Texts)];
const ELICITED: Members = &[("action", OneOf(&["accept", "decline", "cancel"])), ("content", Object)];
const CLAUDE: Members = &[
    ("continue", Flag),
    ("stopReason", Text),
    ("suppressOutput", Flag),
    ("systemMessage", Text),
    ("terminalSequence", Text),
];
const CODEX: Members = &[("continue", Flag), ("stopReason", Text), ("suppressOutput", Flag), ("systemMessage", Text)];

/// Claude Code's members of an answer beside those of every event, and of `hookSpecificOutput` where the event has one.
fn claude_members(event: &str) -> (Members, Option<Members>) {
    match event {
        "SessionStart" => (
            NONE,
            Some(&[
                ("additionalContext", Text),
                ("initialUserMessage", Text),
                ("sessionTitle", Text),
                ("watchPaths", Texts),
                ("reloadSkills", Flag),
            ]),
        ),
        "Setup" | "Notification" | "SubagentStart" | "PostModelSwitch" => (NONE, Some(CONTEXT)),
        "UserPromptSubmit" => {
            (BLOCK, Some(&[("additionalContext", Text), ("sessionTitle", Text), ("suppressOriginalPrompt", Flag)]))
        }
        "UserPromptExpansion" => (BLOCK, Some(&[("additionalContext", Text), ("suppressOriginalPrompt", Flag)])),
        "MessageDisplay" => (NONE, Some(&[("displayContent", Text)])),
        "PreToolUse" => (
            BLOCK,
            Some(&[
                ("additionalContext", Text),
                ("permissionDecision", OneOf(&["allow", "deny", "ask", "defer"])),
                ("permissionDecisionReason", Text),
                ("updatedInput", Object),
            ]),
        ),
        "PermissionRequest" => (NONE, Some(&[("decision", Object)])),
        "PermissionDenied" => (NONE, Some(&[("retry", Flag)])),
        "PostToolUse" => (
            BLOCK,
            Some(&[
                ("additionalContext", Text),
                ("classifierContext", Text),
                ("updatedToolOutput", Anything),
                ("updatedMCPToolOutput", Anything),
            ]),
        ),
        "PostToolUseFailure" | "PostToolBatch" | "SubagentStop" | "Stop" => (BLOCK, Some(CONTEXT)),
        "TaskCreated" | "TaskCompleted" | "ConfigChange" | "PreCompact" => (BLOCK, None),
        "CwdChanged" | "FileChanged" => (NONE, Some(WATCH)),
        "PreModelSwitch" => (
            BLOCK,
            Some(&[("permissionDecision", OneOf(&["allow", "deny", "ask"])), ("permissionDecisionReason", Text)]),
        ),
        "Elicitation" | "ElicitationResult" => (NONE, Some(ELICITED)),
        _ => (NONE, None),
    }
}

/// The same for Codex, where any other member makes the whole object invalid; absent for events that take none at all.
fn codex_members(event: &str) -> Option<(Members, Option<Members>)> {
    Some(match event {
        "SessionStart" | "SubagentStart" => (NONE, Some(CONTEXT)),
        "UserPromptSubmit" | "PostToolUse" => (BLOCK, Some(CONTEXT)),
        "PreToolUse" => (
            BLOCK,
            Some(&[
                ("additionalContext", Text),
                ("permissionDecision", OneOf(&["allow", "deny", "ask"])),
                ("permissionDecisionReason", Text),
                ("updatedInput", Anything),
            ]),
        ),
        "PermissionRequest" => (NONE, Some(&[("decision", Object)])),
        "PreCompact" | "PostCompact" | "SessionEnd" => (NONE, None),
        "SubagentStop" | "Stop" => (BLOCK, None),
        _ => return None,
    })
}

/// What is wrong with an answer to an event, if the agent (`claude` or `codex`) would not take it as it was meant.
pub(crate) fn fault(agent: &str, event: &Value, stdout: &[u8]) -> Result<(), String> {
    let name = event["hook_event_name"].as_str().unwrap_or_default();
    let text = std::str::from_utf8(stdout).map_err(|error| error.to_string())?;
    if text.trim().is_empty() {
        return Ok(());
    }
    if agent == "claude" && name == "WorktreeCreate" {
        return Err("any bytes are taken for the path of the worktree".to_owned());
    }
    let Unique(answer) = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let answer = answer.as_object().ok_or("it is no object")?;
    if agent == "claude" { claude(name, answer) } else { codex(name, answer, event) }
}

fn claude(name: &str, answer: &Map<String, Value>) -> Result<(), String> {
    let (own, specific) = claude_members(name);
    let output = common(name, answer, CLAUDE, own, specific)?;
    let refuses = answer.get("decision").is_some_and(|decision| decision == "block");
    if refuses && matches!(name, "Stop" | "SubagentStop") && is_blank(answer.get("reason")) {
        return Err("it holds the agent without a reason".to_owned());
    }
    if answer.get("continue") == Some(&Value::Bool(false)) && matches!(name, "Stop" | "SubagentStop") {
        return Err("it ends the agent where it should hold it".to_owned());
    }
    if !answer.contains_key("decision") && !is_blank(answer.get("reason")) {
        return Err("a reason without a decision is ignored".to_owned());
    }
    if let Some(decision) = output.get("decision").and_then(Value::as_object) {
        let deny: Members = &[("behavior", OneOf(&["deny"])), ("message", Text), ("interrupt", Flag)];
        let allow: Members =
            &[("behavior", OneOf(&["allow"])), ("updatedInput", Object), ("updatedPermissions", Anything)];
        let is_deny = decision.get("behavior").is_some_and(|behavior| behavior == "deny");
        members("decision", decision, &[if is_deny { deny } else { allow }])?;
        if !decision.contains_key("behavior") {
            return Err("a decision without a behavior".to_owned());
        }
    }
    for (name, text) in answer.iter().chain(output.iter()) {
        let units = text.as_str().map_or(0, |text| text.encode_utf16().count());
        if units > CAP && ["additionalContext", "initialUserMessage", "systemMessage"].contains(&name.as_str()) {
            return Err(format!("`{name}` has {units} units"));
        }
    }
    Ok(())
}

fn codex(name: &str, answer: &Map<String, Value>, event: &Value) -> Result<(), String> {
    if name == "Interrupt" {
        return members("the answer", answer, &[&[("systemMessage", Text)]]);
    }
    let Some((own, specific)) = codex_members(name) else { return members("the answer", answer, &[]) };
    let output = common(name, answer, CODEX, own, specific)?;
    let ends = answer.get("continue") == Some(&Value::Bool(false));
    if matches!(name, "PreToolUse" | "PermissionRequest") && (ends || answer.contains_key("stopReason")) {
        return Err("it cannot end the turn here".to_owned());
    }
    let is_quiet = answer.get("suppressOutput") == Some(&Value::Bool(true));
    if is_quiet && matches!(name, "PreToolUse" | "PermissionRequest" | "PostToolUse") {
        return Err("it cannot suppress output here".to_owned());
    }
    if name == "PreToolUse" {
        codex_tool(answer, &output, event)?;
    } else if answer.contains_key("decision") || name == "PostToolUse" && answer.contains_key("reason") && !ends {
        codex_block(answer)?;
    }
    if let Some(decision) = output.get("decision").and_then(Value::as_object) {
        members(
            "decision",
            decision,
            &[&[("behavior", OneOf(&["allow", "deny"])), ("message", Text), ("interrupt", Flag)]],
        )?;
        if !decision.contains_key("behavior") || decision.get("interrupt") == Some(&Value::Bool(true)) {
            return Err("a decision without a behavior, or with what is reserved".to_owned());
        }
    }
    for text in [output.get("additionalContext"), answer.get("reason")].into_iter().flatten() {
        let bytes = text.as_str().map_or(0, str::len);
        if bytes > CAP {
            return Err(format!("a text of {bytes} bytes"));
        }
    }
    Ok(())
}

fn codex_block(answer: &Map<String, Value>) -> Result<(), String> {
    if answer.get("decision").is_none_or(|decision| decision != "block") {
        return Err("a decision other than block".to_owned());
    }
    if is_blank(answer.get("reason")) { Err("a block without a reason".to_owned()) } else { Ok(()) }
}

/// The specific form is judged where it is there, else the one at the top.
fn codex_tool(answer: &Map<String, Value>, output: &Map<String, Value>, event: &Value) -> Result<(), String> {
    let (explains, rewrites) = (output.get("permissionDecisionReason"), output.get("updatedInput"));
    match (output.get("permissionDecision").and_then(Value::as_str), rewrites) {
        (None, None) if explains.is_none() => {
            if answer.contains_key("decision") || answer.contains_key("reason") {
                codex_block(answer)
            } else {
                Ok(())
            }
        }
        (Some("deny"), None) if !is_blank(explains) => Ok(()),
        (Some("allow"), Some(input)) => {
            let needs_command = matches!(event["tool_name"].as_str(), Some("Bash" | "apply_patch"));
            if needs_command && !input["command"].is_string() {
                Err("a rewrite without a command".to_owned())
            } else {
                Ok(())
            }
        }
        (decision, _) => Err(format!("the decision {decision:?} is not supported so")),
    }
}

/// Members and types of the answer and of its `hookSpecificOutput`, which is returned.
fn common(
    name: &str,
    answer: &Map<String, Value>,
    universal: Members,
    own: Members,
    specific: Option<Members>,
) -> Result<Map<String, Value>, String> {
    const OUTPUT: Members = &[("hookSpecificOutput", Object)];
    members("the answer", answer, &[universal, own, if specific.is_some() { OUTPUT } else { NONE }])?;
    let Some(output) = answer.get("hookSpecificOutput").and_then(Value::as_object) else { return Ok(Map::new()) };
    if output.get("hookEventName").is_none_or(|event| event != name) {
        return Err("the output is another event's".to_owned());
    }
    members("the output", output, &[&[("hookEventName", Text)], specific.unwrap_or(NONE)])?;
    Ok(output.clone())
}

/// Every member is known and of its kind. One that is absent is left out, never null.
fn members(place: &str, got: &Map<String, Value>, known: &[Members]) -> Result<(), String> {
    for (name, value) in got {
        let Some((_, kind)) = known.iter().copied().flatten().find(|(known, _)| known == name) else {
            return Err(format!("{place} has `{name}`, which is not taken there"));
        };
        let fits = match kind {
            Text => value.is_string(),
            Flag => value.is_boolean(),
            Object => value.is_object(),
            Texts => value.as_array().is_some_and(|texts| texts.iter().all(Value::is_string)),
            Anything => !value.is_null(),
            OneOf(words) => value.as_str().is_some_and(|word| words.contains(&word)),
        };
        if !fits {
            return Err(format!("`{name}` of {place} is {value:.60}, not {kind:?}"));
        }
    }
    Ok(())
}

fn is_blank(value: Option<&Value>) -> bool {
    value.and_then(Value::as_str).is_none_or(|text| text.trim().is_empty())
}

/// A value in which no object has a member twice: agents differ in which of the two they take.
struct Unique(Value);

impl<'de> Deserialize<'de> for Unique {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Values;

        impl<'de> Visitor<'de> for Values {
            type Value = Value;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a value without a member twice")
            }

            fn visit_unit<E>(self) -> Result<Value, E> {
                Ok(Value::Null)
            }

            fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
                Ok(value.into())
            }

            fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
                Ok(value.into())
            }

            fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
                Ok(value.into())
            }

            fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
                Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
            }

            fn visit_str<E>(self, value: &str) -> Result<Value, E> {
                Ok(value.into())
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
                let mut list = Vec::new();
                while let Some(Unique(item)) = items.next_element()? {
                    list.push(item);
                }
                Ok(list.into())
            }

            fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
                let mut map = Map::new();
                while let Some((name, Unique(value))) = entries.next_entry::<String, Unique>()? {
                    if map.insert(name.clone(), value).is_some() {
                        return Err(A::Error::custom(format!("`{name}` is there twice")));
                    }
                }
                Ok(map.into())
            }
        }

        deserializer.deserialize_any(Values).map(Unique)
    }
}
