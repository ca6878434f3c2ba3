use serde_json::json;

use super::*;

/// The report on a file of an agent; the name says the format.
fn report(agent: Agent, name: &str, text: &str, trusted: Option<&Trusted>) -> Report {
    check(text, &Context { path: Path::new(name), source: "/h.json", agent: Some(agent), trusted })
}

/// The report on a file with one group on one event.
fn of_group(agent: Agent, event: &str, group: &Value) -> Report {
    report(agent, "hooks.json", &json!({"hooks": {event: [group]}}).to_string(), None)
}

/// The report on a file with one handler for everything.
fn of_handler(agent: Agent, event: &str, handler: &Value) -> Report {
    of_group(agent, event, &json!({"hooks": [handler]}))
}

fn problems(report: &Report) -> Vec<&str> {
    let of_handlers = report.handlers.iter().flat_map(|handler| &handler.findings);
    let all = report.findings.iter().chain(of_handlers);
    all.filter(|finding| finding.severity == Severity::Problem).map(|finding| &*finding.text).collect()
}

fn has(report: &Report, part: &str) -> bool {
    let of_handlers = report.handlers.iter().flat_map(|handler| &handler.findings);
    report.findings.iter().chain(of_handlers).any(|finding| finding.text.contains(part))
}

const CLAUDE: Agent = Agent::Claude;
const CODEX: Agent = Agent::Codex;

#[test]
fn the_files_of_this_project_are_in_order() {
    for agent in [CLAUDE, CODEX] {
        let text = super::super::plugin_file(agent).expect("a file");
        let report = report(agent, "hooks.json", &text, None);
        assert_eq!(problems(&report), [""; 0], "{}", agent.name());
        assert!(report.is_in_order());
        assert!(report.handlers.iter().all(|handler| handler.outcome == Outcome::Runs));
    }
    // Each is a broken or half-dead one for the other.
    let claudes = report(CODEX, "hooks.json", &super::super::plugin_file(CLAUDE).expect("a file"), None);
    assert!(has(&claudes, "without its arguments") && has(&claudes, "no event `Setup`"));
    let codexs = report(CLAUDE, "hooks.json", &super::super::plugin_file(CODEX).expect("a file"), None);
    assert!(has(&codexs, "told to answer `codex`") && has(&codexs, "`commandWindows` is ignored"));
}

#[test]
fn a_handler_that_does_not_run_is_found_out() {
    let command = json!({"type": "command", "command": "run"});
    let with = |name: &str, value: Value| {
        let mut handler = command.clone();
        handler[name] = value;
        handler
    };
    let (prompt, http) = (json!({"type": "prompt", "prompt": "ok?"}), json!({"type": "http", "url": "https://a"}));
    let tool = json!({"type": "mcp_tool", "server": "s", "tool": "t"});
    let cases = [
        (CLAUDE, "PreToolUse", command.clone(), Outcome::Runs, None),
        (CODEX, "PreToolUse", command.clone(), Outcome::Runs, None),
        (CLAUDE, "PreToolUse", prompt.clone(), Outcome::Runs, None),
        (CODEX, "PreToolUse", prompt.clone(), Outcome::Skipped, Some("no handler of type `prompt` on any event")),
        (CODEX, "Stop", json!({"type": "agent", "prompt": "ok?"}), Outcome::Skipped, Some("type `agent`")),
        (CLAUDE, "PermissionRequest", json!({"type": "agent", "prompt": "ok?"}), Outcome::Skipped, Some("`agent`")),
        (CLAUDE, "Notification", prompt, Outcome::Skipped, Some("type `prompt` on `Notification`")),
        (CLAUDE, "SessionStart", http.clone(), Outcome::Skipped, Some("type `http` on `SessionStart`")),
        (CLAUDE, "PreToolUse", http.clone(), Outcome::Runs, None),
        (CODEX, "PreToolUse", http, Outcome::BreaksFile, Some("refuses the whole file")),
        (CODEX, "PreToolUse", json!({"command": "run"}), Outcome::BreaksFile, Some("no type")),
        (CLAUDE, "PreToolUse", json!({"command": "run"}), Outcome::Skipped, Some("leaves it out")),
        (CODEX, "SessionEnd", tool.clone(), Outcome::Skipped, Some("on `SessionEnd`")),
        (CODEX, "Stop", tool, Outcome::Runs, None),
        (CODEX, "Stop", with("command", json!("  ")), Outcome::Skipped, Some("the command is empty")),
        (CODEX, "Stop", json!({"type": "command"}), Outcome::BreaksFile, Some("`command` is missing")),
        (CLAUDE, "Stop", json!({"type": "command"}), Outcome::Skipped, Some("`command` is missing")),
        (CODEX, "Stop", with("async", Value::Null), Outcome::BreaksFile, Some("`async` is null")),
        (CODEX, "Stop", with("statusMessage", Value::Null), Outcome::Runs, None),
        (CODEX, "Stop", with("timeout", json!(1.5)), Outcome::BreaksFile, Some("no whole number")),
        (CODEX, "Stop", with("timeout", json!(-1)), Outcome::BreaksFile, Some("no whole number")),
        (CODEX, "Stop", with("timeout", json!("5")), Outcome::BreaksFile, Some("`timeout` is")),
        (CLAUDE, "Stop", with("timeout", json!(1.5)), Outcome::Runs, None),
        (CLAUDE, "Stop", with("timeout", json!("5")), Outcome::Skipped, Some("`timeout` is")),
        (CLAUDE, "Stop", with("if", json!("Bash(git *)")), Outcome::NeverMatches, Some("`if` is never met")),
        (CLAUDE, "PreToolUse", with("if", json!("Bash(git *)")), Outcome::Runs, None),
        (CODEX, "PreToolUse", with("if", json!("Bash(git *)")), Outcome::Runs, Some("without its condition")),
        (CODEX, "PreToolUse", with("args", json!(["a"])), Outcome::Runs, Some("without its arguments")),
        (CODEX, "PreToolUse", with("onFailure", json!("block")), Outcome::Runs, Some("`onFailure` is ignored")),
        (CLAUDE, "PreToolUse", with("onFailure", json!("block")), Outcome::Runs, None),
        (CLAUDE, "Stop", with("onFailure", json!("block")), Outcome::Runs, Some("does nothing here")),
        (CLAUDE, "PreToolUse", with("commandWindows", json!("run")), Outcome::Runs, Some("is ignored")),
        (CLAUDE, "PreToolUse", with("once", json!(true)), Outcome::Runs, Some("skill")),
        (CLAUDE, "NoSuchEvent", command.clone(), Outcome::Skipped, Some("no event `NoSuchEvent`")),
        (CLAUDE, "preToolUse", command.clone(), Outcome::Skipped, Some("is `PreToolUse` meant?")),
        (CODEX, "Notification", command.clone(), Outcome::Skipped, Some("no event `Notification`")),
        (CODEX, "Stop", with("additionalContextLimit", json!(9)), Outcome::Runs, Some("is ignored on `Stop`")),
        (CODEX, "Stop", with("commandWindows", json!("\"C:\\a b\\x\"")), Outcome::Runs, Some("PowerShell prints")),
        (CODEX, "Stop", with("command", json!("$CLAUDE_PROJECT_DIR/x")), Outcome::Runs, Some("CLAUDE_PROJECT_DIR")),
    ];
    for (agent, event, handler, outcome, finding) in cases {
        let report = of_handler(agent, event, &handler);
        let what = format!("{handler} on {event} of {}: {report:?}", agent.name());
        assert_eq!(report.handlers[0].outcome, outcome, "{what}");
        assert_eq!(report.loads, outcome != Outcome::BreaksFile, "{what}");
        assert_eq!(report.is_in_order(), finding.is_none(), "{what}");
        assert!(finding.is_none_or(|finding| has(&report, finding)), "{what}");
    }
}

#[test]
fn a_timeout_that_is_not_what_it_seems_is_named() {
    let cases = [
        (CLAUDE, "Stop", json!(10), None),
        (CLAUDE, "Stop", json!(600), None),
        (CLAUDE, "Stop", json!(5_000), Some("looks like milliseconds")),
        (CODEX, "Stop", json!(30_000), Some("looks like milliseconds")),
        (CODEX, "SessionEnd", json!(3), None),
        (CODEX, "SessionEnd", json!(10), Some("above the maximum of 3 s")),
        (CODEX, "Interrupt", json!(4), Some("above the maximum of 3 s")),
        (CLAUDE, "SessionEnd", json!(61), Some("above the maximum of 60 s")),
        (CLAUDE, "Stop", json!(0), Some("leaves no time")),
        (CODEX, "Stop", json!(0), Some("leaves no time")),
    ];
    for (agent, event, timeout, expected) in cases {
        let report = of_handler(agent, event, &json!({"type": "command", "command": "run", "timeout": timeout}));
        assert_eq!(report.is_in_order(), expected.is_none(), "{timeout} on {event}: {report:?}");
        assert!(expected.is_none_or(|expected| has(&report, expected)), "{timeout} on {event}: {report:?}");
    }
    let own =
        |timeout: u64| json!({"type": "command", "command": "/opt/omc-host hook --agent codex", "timeout": timeout});
    assert!(!of_handler(CODEX, "Stop", &own(2)).is_in_order());
    assert!(of_handler(CODEX, "Stop", &own(3)).is_in_order());
}

#[test]
fn a_matcher_that_cannot_match_is_found_out() {
    let cases = [
        (CLAUDE, "PreToolUse", "Bash", Outcome::Runs, true),
        (CLAUDE, "PreToolUse", "*", Outcome::Runs, true),
        (CLAUDE, "PreToolUse", "Edit,Write", Outcome::Runs, true),
        (CODEX, "PreToolUse", "Edit,Write", Outcome::NeverMatches, false),
        (CODEX, "PreToolUse", "Edit|Write, Bash", Outcome::Runs, false),
        (CODEX, "PreToolUse", "Edit|Write", Outcome::Runs, true),
        (CLAUDE, "PreToolUse", "bash", Outcome::NeverMatches, false),
        (CLAUDE, "PreToolUse", "bash|Edit", Outcome::Runs, false),
        (CLAUDE, "PreToolUse", "mcp__memory", Outcome::NeverMatches, false),
        (CLAUDE, "PreToolUse", "mcp__memory__", Outcome::NeverMatches, false),
        (CLAUDE, "PreToolUse", "mcp__memory__.*", Outcome::Runs, true),
        (CODEX, "PreToolUse", "mcp__memory__read", Outcome::Runs, true),
        (CODEX, "PreToolUse", "Read", Outcome::NeverMatches, false),
        (CLAUDE, "PreToolUse", "apply_patch", Outcome::NeverMatches, false),
        (CLAUDE, "PreToolUse", "SomeNewTool", Outcome::Runs, true),
        (CLAUDE, "PreToolUse", "(Bash", Outcome::Skipped, false),
        (CODEX, "PreToolUse", "(Bash", Outcome::Skipped, false),
        (CLAUDE, "PreToolUse", "^(?!Read)", Outcome::Runs, true),
        (CODEX, "PreToolUse", "^(?!Read)", Outcome::Skipped, false),
        (CLAUDE, "Stop", "Bash", Outcome::Runs, false),
        (CLAUDE, "Stop", "*", Outcome::Runs, true),
        (CLAUDE, "SessionStart", "startup|resume", Outcome::Runs, true),
        (CLAUDE, "SessionStart", "startup|init", Outcome::Runs, false),
        (CLAUDE, "SessionStart", "init", Outcome::NeverMatches, false),
        (CODEX, "SessionStart", "fork", Outcome::NeverMatches, false),
        (CLAUDE, "SessionStart", "^re.*", Outcome::Runs, true),
        (CLAUDE, "SessionStart", "^x.*", Outcome::NeverMatches, false),
        (CODEX, "SubagentStart", "my-agent", Outcome::Runs, true),
    ];
    for (agent, event, matcher, outcome, in_order) in cases {
        let group = json!({"matcher": matcher, "hooks": [{"type": "command", "command": "run"}]});
        let report = of_group(agent, event, &group);
        let what = format!("`{matcher}` on {event} of {}: {report:?}", agent.name());
        assert_eq!((report.handlers[0].outcome, report.is_in_order()), (outcome, in_order), "{what}");
    }
    assert!(has(
        &of_group(
            CODEX,
            "SubagentStart",
            &json!({"matcher": "my-agent", "hooks": [
                {"type": "command", "command": "run"},
            ]})
        ),
        "matches `my-agent-2` too"
    ));
}

#[test]
fn one_broken_piece_costs_claude_code_that_piece_and_codex_the_file() {
    let good = json!({"hooks": [{"type": "command", "command": "run"}]});
    for broken in [
        json!(7),
        json!({"hooks": {}}),
        json!({"matcher": 7, "hooks": []}),
        json!({"hooks": [7]}),
        json!({"type": "command", "command": "run"}),
    ] {
        let text = json!({"hooks": {"Stop": [broken, good]}}).to_string();
        let claude = report(CLAUDE, "hooks.json", &text, None);
        assert!(claude.loads && !claude.is_in_order(), "{text}");
        assert_eq!(claude.handlers.last().map(|handler| handler.outcome), Some(Outcome::Runs), "{text}");
        let codex = report(CODEX, "hooks.json", &text, None);
        assert!(!codex.loads, "{text}");
        assert_eq!(codex.handlers.last().map(|handler| handler.outcome), Some(Outcome::NotLoaded), "{text}");
    }
    let beside = json!({"hooks": {"Stop": [good]}, "model": "m"}).to_string();
    assert!(report(CLAUDE, "settings.json", &beside, None).is_in_order());
    assert!(!report(CODEX, "hooks.json", &beside, None).loads);
    for text in ["", "[]", "{\"hooks\": 7}", "{\"hooks\": {\"Stop\": {}}}"] {
        assert!(!report(CODEX, "hooks.json", text, None).loads, "{text}");
        assert!(!report(CLAUDE, "hooks.json", text, None).is_in_order(), "{text}");
    }
}

#[test]
fn switches_for_all_hooks_are_seen() {
    let off = r#"{"disableAllHooks": true, "hooks": {}}"#;
    assert!(has(&report(CLAUDE, "settings.json", off, None), "no hook runs"));
    assert!(has(&report(CODEX, "config.toml", "[features]\nhooks = false", None), "no hook runs"));
}

#[test]
fn the_same_handler_twice_runs_twice_in_codex_alone() {
    let group = json!({"hooks": [{"type": "command", "command": "run"}]});
    let text = json!({"hooks": {"Stop": [group, group]}}).to_string();
    assert!(has(&report(CODEX, "hooks.json", &text, None), "runs as often"));
    assert!(!report(CODEX, "hooks.json", &text, None).is_in_order());
    assert!(report(CLAUDE, "hooks.json", &text, None).is_in_order());
}

#[test]
fn an_order_that_breaks_codexs_trust_is_named() {
    let group = |command: &str| json!({"hooks": [{"type": "command", "command": command}]});
    let file = |commands: &[&str]| {
        let groups: Vec<Value> = commands.iter().map(|command| group(command)).collect();
        json!({"hooks": {"Stop": groups}}).to_string()
    };
    let hashes = report(CODEX, "hooks.json", &file(&["a", "b"]), None);
    let state: Map<String, Value> = hashes
        .handlers
        .iter()
        .map(|handler| (format!("/h.json:stop:{}:0", handler.group), json!({"trusted_hash": handler.hash})))
        .collect();
    let config = json!({"hooks": {"state": state}});
    let trusted = Trusted::of(config.as_object().expect("an object"));
    let trust = |commands: &[&str]| {
        let report = report(CODEX, "hooks.json", &file(commands), Some(&trusted));
        let trust: Vec<_> = report.handlers.iter().map(|handler| handler.trust.clone().expect("known")).collect();
        (trust, report.is_in_order())
    };
    let moved = |from: usize| Trust::Moved { from: format!("/h.json:stop:{from}:0") };
    assert_eq!(trust(&["a", "b"]), (vec![Trust::Trusted, Trust::Trusted], true));
    assert_eq!(trust(&["a", "b", "c"]), (vec![Trust::Trusted, Trust::Trusted, Trust::New], true));
    assert_eq!(trust(&["b", "a"]), (vec![moved(1), moved(0)], false));
    assert_eq!(trust(&["c", "a", "b"]), (vec![Trust::Changed, moved(0), moved(1)], false));
    assert_eq!(trust(&["a", "B"]), (vec![Trust::Trusted, Trust::Changed], false));
    assert!(has(&hashes, "part of what Codex trusts"));
}

#[test]
fn a_call_of_this_program_is_looked_through() {
    let cases = [
        ("omc-host hook --agent codex", None),
        ("\"/a b/omc-host\" hook --agent codex", None),
        ("C:\\x\\omc-host.exe hook --agent=codex", None),
        ("omc-host hook --agent claude", Some("told to answer `claude`")),
        ("omc-host hook --agnt codex", Some("does not take the arguments")),
        ("omc-host hook --help", Some("only asked for help")),
        ("omc-host log", None),
        ("run omc-hosts hook --agent claude", None),
    ];
    for (command, expected) in cases {
        let report = of_handler(CODEX, "Stop", &json!({"type": "command", "command": command}));
        assert_eq!(report.is_in_order(), expected.is_none(), "{command}: {report:?}");
        assert!(expected.is_none_or(|expected| has(&report, expected)), "{command}: {report:?}");
    }
    let handler = json!({"type": "command", "command": "/x/omc-host", "args": ["hook", "--agent", "codex"]});
    assert!(has(&of_handler(CLAUDE, "Stop", &handler), "told to answer `codex`"));
}

#[test]
fn no_file_whatever_breaks_the_check() {
    let pieces = ["{", "}", "[", "]", "\"hooks\"", ":", ",", "\"Stop\"", "null", "7", "\"type\"", "\"command\"", "{}"];
    let mut state = 7_usize;
    for _ in 0..3_000 {
        let mut text = String::new();
        for _ in 0..12 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            text.push_str(pieces[(state >> 33) % pieces.len()]);
        }
        for (agent, name) in [(CLAUDE, "settings.json"), (CODEX, "hooks.json"), (CODEX, "config.toml")] {
            let _ = report(agent, name, &text, None);
        }
    }
    let deep = "[".repeat(20_000);
    for (agent, name) in [(CLAUDE, "settings.json"), (CODEX, "hooks.json"), (CODEX, "config.toml")] {
        let text = if name.ends_with("toml") { format!("a = {deep}") } else { format!("{{\"hooks\": {deep}") };
        assert!(!report(agent, name, &text, None).loads);
    }
}
