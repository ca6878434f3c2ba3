use std::fmt::Write as _;
use std::path::Path;

use serde_json::json;

use super::*;
use crate::input::{Limits, Readiness, Source, read_event};
use crate::protocol::contract;
use crate::protocol::decision::{Decision, Effects, Opinion, merge};
use crate::protocol::event::Kind;
use crate::protocol::samples;

fn payload(value: Value) -> Map<String, Value> {
    let Value::Object(payload) = value else { panic!("an event is an object") };
    payload
}

fn text(reply: &Reply) -> &str {
    std::str::from_utf8(&reply.stdout).expect("UTF-8")
}

/// What one guest may say, by a name for it.
fn opinions() -> Vec<(&'static str, Opinion)> {
    let reason = "use \"make\"\ninstead";
    let decisions = [
        ("pass", Decision::Pass),
        ("allow", Decision::Allow),
        ("ask", Decision::Ask(reason.to_owned())),
        ("block", Decision::Block(reason.to_owned())),
        ("block without a reason", Decision::Block(" ".to_owned())),
        ("halt", Decision::Halt(reason.to_owned())),
    ];
    let context = Effects { context: vec!["for the model".to_owned()], ..Effects::default() };
    let message = Effects { messages: vec!["for the person".to_owned()], ..Effects::default() };
    let rewrite = Effects { updated_input: Some(json!({"command": "ls", "n": 1})), ..Effects::default() };
    let everything = Effects {
        context: context.context.clone(),
        messages: message.messages.clone(),
        updated_input: rewrite.updated_input.clone(),
        ..Effects::default()
    };
    let with = |decision: &Decision, effects: &Effects| Opinion {
        guest: "guest".to_owned(),
        decision: decision.clone(),
        effects: effects.clone(),
    };
    let effects = [
        ("context", Decision::Pass, &context),
        ("message", Decision::Pass, &message),
        ("rewrite", Decision::Pass, &rewrite),
        ("allow + rewrite", Decision::Allow, &rewrite),
        ("ask + rewrite", Decision::Ask(reason.to_owned()), &rewrite),
        ("block + everything", Decision::Block(reason.to_owned()), &everything),
        ("pass + everything", Decision::Pass, &everything),
    ];
    let decided = decisions.iter().map(|(name, decision)| (*name, with(decision, &Effects::default())));
    decided.chain(effects.iter().map(|(name, decision, effects)| (*name, with(decision, effects)))).collect()
}

/// The merged answer, with no place for texts that are too long.
fn fitted(event: &Event, opinions: &[Opinion]) -> Merged {
    merge(event, opinions).fit(event.contract(), &mut |_| None)
}

/// Every answer to every event, against the bytes that were looked over once. `BLESS=1` writes them anew.
#[test]
fn every_decision_on_every_event_has_exactly_these_bytes() {
    let mut replies = String::new();
    for (agent, payload) in samples::payloads() {
        let dialect = of(agent);
        let event = dialect.decode(payload);
        writeln!(replies, "## {} {}", agent.name(), event.contract().event).expect("a string takes everything");
        for (name, opinion) in opinions() {
            let merged = fitted(&event, &[opinion]);
            let reply = dialect.encode(&event, &merged);
            assert_eq!(reply.exit_code, 0);
            let dropped: Vec<String> = merged.dropped.iter().map(|d| format!("{} {:?}", d.what, d.why)).collect();
            let dropped = if dropped.is_empty() { String::new() } else { format!("    ({})", dropped.join("; ")) };
            writeln!(replies, "{name} => {}{dropped}", line(&reply)).expect("a string");
        }
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/protocol/testdata/replies.txt");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &replies).expect("the file is written");
    }
    let expected = std::fs::read_to_string(&path).expect("the file is there");
    for (line, (got, expected)) in replies.lines().zip(expected.lines()).enumerate() {
        assert_eq!(got, expected, "line {}", line + 1);
    }
    assert_eq!(replies.len(), expected.len());
}

/// The one line of a reply, or a word for no bytes. More than one line would be a fault.
fn line(reply: &Reply) -> &str {
    let text = text(reply);
    let line = text.strip_suffix('\n').unwrap_or("(no bytes)");
    assert!(text.is_empty() || line.len() + 1 == text.len() && !line.contains('\n'), "{text:?}");
    line
}

#[test]
fn whatever_the_guests_say_the_agent_takes_the_answer() {
    let mut random = Random(1);
    let choices = opinions();
    let hostile = ["\u{1b}]0;x\u{7}", "\u{2028}", "\0", "\"}{\"", "🚀", "가", "\r\n", " ", ""];
    for (agent, payload) in samples::payloads() {
        let dialect = of(agent);
        let event = dialect.decode(payload);
        for _ in 0..100 {
            let some: Vec<Opinion> = (0..random.below(5))
                .map(|_| {
                    let mut opinion = choices[random.below(choices.len())].1.clone();
                    let text = hostile[random.below(hostile.len())].repeat(random.below(7_000));
                    match &mut opinion.decision {
                        Decision::Ask(reason) | Decision::Block(reason) | Decision::Halt(reason) => {
                            reason.push_str(&text);
                        }
                        Decision::Pass | Decision::Allow => opinion.effects.context.push(text),
                    }
                    opinion
                })
                .collect();
            let reply = dialect.encode(&event, &fitted(&event, &some));
            assert_eq!(reply.exit_code, 0);
            if let Err(fault) = accepted(agent, event.contract().event, &reply.stdout) {
                panic!("{} does not take {:.300}: {fault}", agent.name(), text(&reply));
            }
        }
    }
}

#[test]
fn a_stop_is_never_refused_by_a_text_alone() {
    for agent in [Agent::Claude, Agent::Codex] {
        for spelling in ["Stop", "SubagentStop"] {
            let event = samples::event(agent, spelling);
            for (name, opinion) in opinions().into_iter().filter(|(_, opinion)| opinion.decision == Decision::Pass) {
                let reply = of(agent).encode(&event, &merge(&event, &[opinion]));
                assert!(!text(&reply).contains("hookSpecificOutput"), "{name}");
                assert!(!text(&reply).contains("decision"), "{name}");
            }
        }
    }
}

#[test]
fn silence_is_what_each_agent_takes_for_no_opinion() {
    const QUIET: &str = "{\"continue\":true,\"suppressOutput\":true}\n";
    let cases = [
        (Agent::Claude, "PreToolUse", QUIET),
        (Agent::Claude, "Stop", ""),
        (Agent::Claude, "SubagentStop", ""),
        (Agent::Claude, "WorktreeCreate", ""),
        (Agent::Claude, "PreModelSwitch", ""),
        (Agent::Claude, "FutureEvent", QUIET),
        (Agent::Claude, "", QUIET),
        (Agent::Codex, "PreToolUse", ""),
        (Agent::Codex, "Interrupt", ""),
        (Agent::Codex, "FutureEvent", ""),
        (Agent::Codex, "", ""),
        (Agent::Cursor, "beforeShellExecution", "{\"permission\":\"allow\"}\n"),
        (Agent::Cursor, "preToolUse", "{\"permission\":\"allow\"}\n"),
        (Agent::Cursor, "beforeSubmitPrompt", "{\"continue\":true}\n"),
        (Agent::Cursor, "stop", "{}\n"),
        (Agent::Cursor, "", "{}\n"),
        (Agent::Copilot, "preToolUse", ""),
        (Agent::Gemini, "BeforeTool", ""),
        (Agent::Unknown, "PreToolUse", ""),
    ];
    for (agent, spelling, expected) in cases {
        let dialect = of(agent);
        let event = dialect.decode(payload(json!({"hook_event_name": spelling})));
        let reply = dialect.silent(&event);
        assert_eq!((text(&reply), reply.exit_code), (expected, 0), "{spelling} of {agent:?}");
        assert_eq!(dialect.encode(&event, &merge(&event, &[])), reply);
        let refusal =
            Opinion { guest: "g".into(), decision: Decision::Block("no".into()), effects: Effects::default() };
        if !matches!(agent, Agent::Claude | Agent::Codex) {
            assert_eq!(dialect.encode(&event, &merge(&event, &[refusal])), reply, "{agent:?} is only told to go on");
        }
    }
}

#[test]
fn a_dialect_is_found_by_its_name() {
    for name in ["claude", "codex", "cursor", "copilot", "gemini", "qwen", "droid", "grok"] {
        assert_eq!(dialect(name).map(|dialect| dialect.agent().name()), Some(name));
    }
    assert_eq!(dialect("CLAUDE").map(Dialect::agent), Some(Agent::Claude));
    for name in ["", "clade", "claude ", "unknown", "claude-code"] {
        assert!(dialect(name).is_none(), "{name}");
    }
}

#[test]
fn the_agent_is_told_by_its_payload() {
    let cases = [
        (json!({"hook_event_name": "Stop", "session_id": "s1"}), Agent::Claude),
        (json!({"hook_event_name": "FutureEvent"}), Agent::Claude),
        (json!({"session_id": "s1"}), Agent::Claude),
        (json!({}), Agent::Unknown),
        (json!({"hook_event_name": "PreToolUse", "turn_id": "T1"}), Agent::Codex),
        (json!({"hook_event_name": "PreToolUse", "turn_id": null}), Agent::Claude),
        (
            json!({"hook_event_name": "PreToolUse", "tool_input": {"turn_id": "T1", "cursor_version": "1"}}),
            Agent::Claude,
        ),
        (json!({"hook_event_name": "MessageDisplay", "turn_id": "T1"}), Agent::Claude),
        (json!({"hook_event_name": "Interrupt"}), Agent::Codex),
        (json!({"hook_event_name": "SessionStart", "model": "m", "permission_mode": "default"}), Agent::Codex),
        (
            json!({"hook_event_name": "SessionStart", "model": "m", "permission_mode": "x", "prompt_id": "p"}),
            Agent::Claude,
        ),
        (json!({"hook_event_name": "SessionStart", "model": "m"}), Agent::Claude),
        (json!({"hook_event_name": "beforeShellExecution", "cursor_version": "2.4.0"}), Agent::Cursor),
        (json!({"hook_event_name": "stop", "conversation_id": "c"}), Agent::Cursor),
        (json!({"sessionId": "k1", "toolName": "view"}), Agent::Copilot),
        (json!({"toolName": "view"}), Agent::Copilot),
        (json!({"hook_event_name": "PostToolUse", "timestamp": "2026-10-08", "tool_result": {}}), Agent::Copilot),
        (json!({"hook_event_name": "PreToolUse", "timestamp": "2026-10-08", "tool_name": "bash"}), Agent::Copilot),
        (json!({"hook_event_name": "BeforeTool", "timestamp": "2026-10-08", "tool_name": "x"}), Agent::Gemini),
        (json!({"hook_event_name": "SessionStart", "timestamp": "2026", "transcript_path": "/t"}), Agent::Claude),
    ];
    for (value, agent) in cases {
        let found = resolve(None, &payload(value.clone()), &|_| false).agent();
        assert_eq!(found, agent, "{value}");
    }
    for (agent, sample) in samples::payloads() {
        // Codex's last event has nothing that tells it from Claude Code's, and neither agent reads the answer.
        let agent = if sample["hook_event_name"] == "SessionEnd" { Agent::Claude } else { agent };
        assert_eq!(resolve(None, &sample, &|_| false).agent(), agent, "{sample:?}");
    }
}

#[test]
fn the_environment_tells_agents_apart_that_speak_alike() {
    let stop = payload(json!({"hook_event_name": "Stop"}));
    for (variable, agent) in [
        ("FACTORY_PROJECT_DIR", Agent::Droid),
        ("QWEN_PROJECT_DIR", Agent::Qwen),
        ("GEMINI_PROJECT_DIR", Agent::Gemini),
        ("CLAUDE_PROJECT_DIR", Agent::Claude),
    ] {
        assert_eq!(resolve(None, &stop, &|name| name == variable).agent(), agent);
        assert_eq!(resolve(Some("codex"), &stop, &|name| name == variable).agent(), Agent::Codex);
    }
}

#[test]
fn an_unknown_name_is_answered_as_its_payload_shows_or_not_at_all() {
    let cases = [
        (json!({"hook_event_name": "Stop"}), Agent::Claude),
        (json!({"hook_event_name": "PreToolUse", "turn_id": "T1"}), Agent::Codex),
        (json!({"hook_event_name": "FutureEvent"}), Agent::Unknown),
        (json!({"hook_event_name": 7}), Agent::Unknown),
        (json!({}), Agent::Unknown),
    ];
    for (value, agent) in cases {
        for name in ["nonsense", ""] {
            assert_eq!(resolve(Some(name), &payload(value.clone()), &|_| false).agent(), agent, "{value}");
        }
    }
}

/// Bytes in one piece, and then the end.
struct Whole(Option<Vec<u8>>);

impl Source for Whole {
    fn ready(&mut self, _within: std::time::Duration) -> std::io::Result<Readiness> {
        Ok(Readiness::Ready)
    }

    fn read_into(&mut self, buffer: &mut Vec<u8>) -> std::io::Result<usize> {
        let bytes = self.0.take().unwrap_or_default();
        buffer.extend_from_slice(&bytes);
        Ok(bytes.len())
    }
}

#[test]
fn no_bytes_whatever_break_the_way_from_input_to_silence() {
    let mut random = Random(2);
    let interesting = b"\"\\{}[],:0e9\0\n\x1b\x7f\xc3\xed\xff\xef";
    for (_, sample) in samples::payloads() {
        let proper = serde_json::to_vec(&sample).expect("JSON");
        for _ in 0..200 {
            let mut bytes = proper.clone();
            for _ in 0..=random.below(4) {
                let at = random.below(bytes.len());
                match random.below(4) {
                    0 => bytes[at] = interesting[random.below(interesting.len())],
                    1 => bytes[at] = u8::try_from(random.below(256)).expect("a byte"),
                    2 => bytes.insert(at, interesting[random.below(interesting.len())]),
                    _ => bytes.truncate(at.max(1)),
                }
            }
            let read = read_event(&mut Whole(Some(bytes.clone())), &Limits::default());
            let payload = read.map_or_else(|unreadable| unreadable.partial, |input| input.payload);
            for name in [None, Some("claude"), Some("codex"), Some("cursor"), Some("nonsense")] {
                let dialect = resolve(name, &payload, &|_| false);
                let event = dialect.decode(payload.clone());
                let reply = dialect.silent(&event);
                let _ = (event.prompt(), event.session_id(), event.tool_name(), event.pointer("/tool_input/command"));
                let agent = dialect.agent();
                if let Err(fault) = accepted(agent, event.spelling().unwrap_or_default(), &reply.stdout) {
                    panic!("{} does not take {}: {fault}", agent.name(), text(&reply));
                }
            }
        }
    }
}

/// A small linear congruential generator: the same numbers in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).expect("31 bits") % bound
    }
}

/// Whether an agent takes an answer, by its own rules and not by our contracts: the reason if it does not.
fn accepted(agent: Agent, event: &str, stdout: &[u8]) -> Result<(), String> {
    if stdout.is_empty() {
        return Ok(());
    }
    let answer: Value = serde_json::from_slice(stdout).map_err(|error| error.to_string())?;
    let answer = answer.as_object().ok_or("no object")?;
    match agent {
        Agent::Claude | Agent::Codex => {}
        Agent::Cursor => return Ok(()),
        _ => return Err("bytes".to_owned()),
    }
    let is_codex = agent == Agent::Codex;
    if event == "WorktreeCreate" || is_codex && event == "SessionEnd" {
        return Err("bytes where none are read as JSON".to_owned());
    }

    let blocks = match event {
        "UserPromptSubmit" | "PostToolUse" | "Stop" | "SubagentStop" => true,
        "UserPromptExpansion" | "PostToolBatch" | "TaskCreated" | "TaskCompleted" | "ConfigChange" | "PreCompact" => {
            !is_codex
        }
        _ => false,
    };
    let specific: &[&str] = match event {
        "PreToolUse" => &["additionalContext", "permissionDecision", "permissionDecisionReason", "updatedInput"],
        "PermissionRequest" => &["decision"],
        "UserPromptSubmit" | "PostToolUse" | "SessionStart" | "SubagentStart" => &["additionalContext"],
        "Setup" | "UserPromptExpansion" | "PostToolUseFailure" | "PostToolBatch" | "PostModelSwitch" if !is_codex => {
            &["additionalContext"]
        }
        "PreModelSwitch" => &["permissionDecision", "permissionDecisionReason"],
        "Elicitation" | "ElicitationResult" => &["action"],
        _ => &[],
    };
    let universal: &[&str] = match event {
        "Interrupt" | "PreToolUse" | "PermissionRequest" if is_codex => &["systemMessage"],
        "PostToolUse" if is_codex => &["continue", "stopReason", "systemMessage"],
        _ => &["continue", "stopReason", "suppressOutput", "systemMessage"],
    };
    for (name, value) in answer {
        let known = universal.contains(&name.as_str())
            || blocks && ["decision", "reason"].contains(&name.as_str())
            || !specific.is_empty() && name == "hookSpecificOutput";
        if !known || value.is_null() {
            return Err(format!("`{name}` is {value}"));
        }
    }
    if answer.get("decision").is_some_and(|decision| decision != "block") {
        return Err("a decision other than block".to_owned());
    }
    if answer.contains_key("decision") != answer.contains_key("reason") {
        return Err("a decision and a reason belong together".to_owned());
    }
    if answer.get("continue") == Some(&json!(false)) && ["Stop", "SubagentStop"].contains(&event) {
        return Err("the end of the agent".to_owned());
    }

    let empty = Map::new();
    let output = answer.get("hookSpecificOutput").map_or(Some(&empty), Value::as_object).ok_or("no object inside")?;
    if !output.is_empty() && output.get("hookEventName") != Some(&json!(event)) {
        return Err("another event's output".to_owned());
    }
    for (name, value) in output {
        if name != "hookEventName" && !specific.contains(&name.as_str()) || value.is_null() {
            return Err(format!("`{name}` is {value}"));
        }
    }
    if is_codex && event == "PreToolUse" {
        let decision = output.get("permissionDecision").and_then(Value::as_str);
        let (rewrites, explains) =
            (output.contains_key("updatedInput"), output.contains_key("permissionDecisionReason"));
        match (decision, rewrites, explains) {
            (None, false, false) | (Some("deny"), false, true) => {}
            (Some("allow"), true, false) if output["updatedInput"]["command"].is_string() => {}
            combination => return Err(format!("{combination:?}")),
        }
    }
    if let Some(decision) = output.get("decision") {
        let members = decision.as_object().ok_or("no decision inside")?;
        let allowed: &[&str] = match members.get("behavior").and_then(Value::as_str) {
            Some("allow") if is_codex => &["behavior"],
            Some("allow") => &["behavior", "updatedInput"],
            Some("deny") => &["behavior", "message"],
            _ => &[],
        };
        if members.is_empty() || members.keys().any(|name| !allowed.contains(&name.as_str())) {
            return Err(format!("{decision}"));
        }
    }
    let texts = ["reason", "stopReason", "systemMessage"].iter().filter_map(|&name| answer.get(name));
    let inner = ["additionalContext", "permissionDecisionReason"].iter().filter_map(|&name| output.get(name));
    for text in texts.chain(inner).chain(output.get("decision").and_then(|decision| decision.get("message"))) {
        let text = text.as_str().ok_or("no text")?;
        let length = if is_codex { text.len() } else { text.encode_utf16().count() };
        if text.trim().is_empty()
            || length > 10_000
            || text.contains(|letter: char| letter.is_control() && !"\n\t".contains(letter))
        {
            return Err(format!("a text of {length}"));
        }
    }
    Ok(())
}

#[test]
fn a_partial_event_still_gets_its_agents_silence() {
    let half = br#"{"session_id":"s1","turn_id":"T1","hook_event_name":"PreToolUse","tool_input":{"command":"#;
    let unreadable = read_event(&mut Whole(Some(half.to_vec())), &Limits::default()).expect_err("half an event");
    let dialect = resolve(None, &unreadable.partial, &|_| false);
    let event = dialect.decode(unreadable.partial);
    assert_eq!((dialect.agent(), event.kind()), (Agent::Codex, Kind::PreToolUse));
    assert!(std::ptr::eq(event.contract(), contract::of(Agent::Codex, "PreToolUse")));
    assert_eq!(dialect.silent(&event), Reply::default());
}
