//! Calls as the agents make them, and as an attacker would.

use serde_json::{Value, json};

use super::*;
use Operation::{Delete, Edit, Read, Write};

fn call<'a>(agent: &'a str, name: &'a str, input: &'a Value) -> ToolCall<'a> {
    ToolCall {
        agent,
        event: "pre-tool-use",
        name,
        input: Some(input),
        response: None,
        error: None,
        interrupted: false,
        cwd: Some("/p/sub"),
        linked: None,
    }
}

fn paths(agent: &str, name: &str, input: &Value) -> Vec<(String, Operation)> {
    let paths = call(agent, name, input).paths().expect("few paths");
    paths.into_iter().map(|path| (path.path, path.operation)).collect()
}

#[test]
fn a_kind_is_read_from_its_name_and_an_unknown_name_is_another_kind() {
    for kind in ToolKind::NAMED {
        assert_eq!(ToolKind::from_name(kind.name()), kind);
    }
    for name in ["other", "Read", "", "teleport"] {
        assert_eq!(ToolKind::from_name(name), ToolKind::Other, "{name}");
    }
}

#[test]
fn a_tool_has_the_same_kind_with_every_agent() {
    let none = json!({});
    for (agent, name, kind) in [
        ("claude", "Bash", ToolKind::Execute),
        ("claude", "PowerShell", ToolKind::Execute),
        ("codex", "Bash", ToolKind::Execute),
        ("codex", "shell", ToolKind::Execute),
        ("claude", "Read", ToolKind::Read),
        ("claude", "Grep", ToolKind::Read),
        ("claude", "Write", ToolKind::Write),
        ("claude", "MultiEdit", ToolKind::Edit),
        ("claude", "NotebookEdit", ToolKind::Edit),
        ("claude", "WebFetch", ToolKind::Network),
        ("codex", "web_search", ToolKind::Network),
        ("claude", "Task", ToolKind::Agent),
        ("claude", "Agent", ToolKind::Agent),
        ("codex", "spawn_agent", ToolKind::Agent),
        ("claude", "mcp__github__create_issue", ToolKind::Mcp),
        ("codex", "mcp__files__write", ToolKind::Mcp),
        ("claude", "TodoWrite", ToolKind::Other),
        ("claude", "bash", ToolKind::Other),
        ("codex", "update_plan", ToolKind::Other),
        ("qwen", "Edit", ToolKind::Edit),
        ("unknown", "apply_patch", ToolKind::Edit),
        ("claude", "", ToolKind::Other),
    ] {
        assert_eq!(call(agent, name, &none).kind(), kind, "{agent} {name}");
        assert_eq!(ToolKind::of_tool(agent, name), kind, "{agent} {name}");
    }
}

#[test]
fn paths_are_absolute_and_without_detours() {
    for (name, input, expected) in [
        ("Read", json!({ "file_path": "/p/a.rs" }), "/p/a.rs"),
        ("Read", json!({ "file_path": "a.rs" }), "/p/sub/a.rs"),
        ("Read", json!({ "filePath": "a.rs" }), "/p/sub/a.rs"),
        ("Read", json!({ "file_path": "./x/../../a.rs" }), "/p/a.rs"),
        ("Read", json!({ "file_path": "/../../etc/passwd" }), "/etc/passwd"),
        ("Read", json!({ "file_path": "/p//a/./b/" }), "/p/a/b"),
        ("NotebookRead", json!({ "notebook_path": "n.ipynb" }), "/p/sub/n.ipynb"),
        ("Grep", json!({ "pattern": "x" }), "/p/sub"),
        ("Grep", json!({ "pattern": "x", "path": "../src" }), "/p/src"),
        ("Glob", json!({ "pattern": "**/*.rs" }), "/p/sub"),
        ("Glob", json!({ "pattern": "src/**/*.rs", "path": "/p" }), "/p/src"),
        ("Glob", json!({ "pattern": "/etc/*.conf" }), "/etc"),
        ("Glob", json!({ "pattern": "/*" }), "/"),
        ("Glob", json!({ "pattern": "../../home/{a,b}/x" }), "/home"),
    ] {
        assert_eq!(paths("claude", name, &input), [(expected.to_owned(), Read)], "{name} {input}");
    }
    let input = json!({ "file_path": "a" });
    let without_cwd = ToolCall { cwd: None, ..call("claude", "Write", &input) };
    assert_eq!(without_cwd.paths().expect("one"), [ToolPath { path: "a".to_owned(), operation: Write }]);
}

#[test]
fn a_project_that_is_reached_over_a_link_has_one_name() {
    let linked = Some(Linked { written: "/home/u/link", canonical: "/real/p" });
    let resolved = |path: &str| {
        let input = json!({ "file_path": path });
        let call = ToolCall { cwd: Some("/home/u/link/sub"), linked, ..call("claude", "Read", &input) };
        call.paths().expect("one").remove(0).path
    };
    for (path, expected) in [
        ("/home/u/link/src/a.rs", "/real/p/src/a.rs"),
        ("/real/p/src/a.rs", "/real/p/src/a.rs"),
        ("a.rs", "/real/p/sub/a.rs"),
        ("../a.rs", "/real/p/a.rs"),
        ("/home/u/link", "/real/p"),
        // Beside it, and what only begins with the same letters.
        ("../../a.rs", "/home/u/a.rs"),
        ("/home/u/link/../../v/a.rs", "/home/v/a.rs"),
        ("/home/u/link-2/a.rs", "/home/u/link-2/a.rs"),
        ("/x/home/u/link/a.rs", "/x/home/u/link/a.rs"),
    ] {
        assert_eq!(resolved(path), expected, "{path}");
    }
    let patch = "*** Begin Patch\n*** Update File: /home/u/link/a\n@@\n*** Update File: /real/p/a\n@@\n*** End Patch";
    let input = json!({ "command": patch });
    let call = ToolCall { linked, ..call("codex", "apply_patch", &input) };
    assert_eq!(call.paths().expect("one"), [ToolPath { path: "/real/p/a".to_owned(), operation: Edit }], "one file");
}

#[test]
fn members_of_the_wrong_type_are_absent() {
    for input in [json!(null), json!([]), json!("x"), json!({ "file_path": 5 }), json!({ "file_path": "" }), json!({})]
    {
        assert!(paths("claude", "Write", &input).is_empty(), "{input}");
        assert!(paths("codex", "apply_patch", &input).is_empty(), "{input}");
        assert_eq!(call("claude", "Bash", &input).command(), None, "{input}");
    }
}

const PATCH: &str = "*** Begin Patch\n\
*** Add File: new.txt\n\
+*** Delete File: /not/a/header\n\
+\n\
*** Update File: src/a.rs\n\
*** Move to: src/b.rs\n\
@@ fn main\n \
*** Delete File: /neither\n\
-old\n\
+*** Add File: /nor/this\n\
*** Update File: ../c.rs\n\
@@\n\
+x\n\
*** Delete File: d.rs\n  \
*** Delete File: /abs/e.rs  \n\
*** End Patch";

#[test]
fn every_file_of_a_patch_is_named() {
    let expected = [
        ("/p/sub/new.txt", Write),
        ("/p/sub/src/a.rs", Delete),
        ("/p/sub/src/b.rs", Write),
        ("/p/c.rs", Edit),
        ("/p/sub/d.rs", Delete),
        ("/abs/e.rs", Delete),
    ]
    .map(|(path, operation)| (path.to_owned(), operation));
    assert_eq!(paths("codex", "apply_patch", &json!({ "command": PATCH })), expected);
    assert_eq!(paths("codex", "apply_patch", &json!({ "command": ["apply_patch", PATCH] })), expected);
    assert_eq!(paths("codex", "apply_patch", &json!({ "input": PATCH.replace('\n', "\r\n") })), expected);
    let heredoc = json!({ "command": format!("cd x && apply_patch <<'EOF'\n{PATCH}\nEOF\n") });
    assert_eq!(paths("codex", "Bash", &heredoc), expected);
    assert!(paths("codex", "Bash", &json!({ "command": "echo '*** Add File: x'" })).is_empty());
}

#[test]
fn a_patch_is_what_all_its_sections_are() {
    for (patch, kind) in [
        ("*** Add File: a\n+x\n*** Add File: b\n+y", ToolKind::Write),
        ("*** Delete File: a\n*** Delete File: b", ToolKind::Delete),
        ("*** Delete File: a\n*** Add File: b\n+x", ToolKind::Edit),
        ("*** Update File: a\n*** Move to: b\n", ToolKind::Edit),
        ("nothing", ToolKind::Edit),
    ] {
        let input = json!({ "command": format!("*** Begin Patch\n{patch}\n*** End Patch") });
        assert_eq!(call("codex", "apply_patch", &input).kind(), kind, "{patch}");
    }
}

#[test]
fn a_file_named_twice_is_given_once_for_an_operation() {
    let patch = "*** Update File: a\n@@\n+x\n*** Update File: ./a\n@@\n+x\n*** Delete File: a";
    let found = paths("codex", "apply_patch", &json!({ "command": patch }));
    assert_eq!(found, [("/p/sub/a".to_owned(), Edit), ("/p/sub/a".to_owned(), Delete)]);
}

#[test]
fn a_flood_of_paths_is_an_error_and_not_a_part_of_them() {
    let many: Vec<_> = (0..=MAX_PATHS).map(|number| format!("*** Delete File: {number}")).collect();
    assert_eq!(call("codex", "apply_patch", &json!({ "command": many.join("\n") })).paths(), Err(TooMany));
    let long = json!({ "file_path": "x".repeat(MAX_PATH_BYTES + 1) });
    assert_eq!(call("claude", "Write", &long).paths(), Err(TooMany));
    let detours = json!({ "file_path": "../".repeat(300_000) });
    assert_eq!(paths("claude", "Write", &detours), [("/".to_owned(), Write)]);
}

#[test]
fn commands_are_texts_or_lists_of_words() {
    for (agent, name, input, expected) in [
        ("claude", "Bash", json!({ "command": "ls -l" }), Some("ls -l")),
        ("codex", "Bash", json!({ "command": ["bash", "-lc", "ls"] }), Some("bash -lc ls")),
        ("codex", "exec_command", json!({ "cmd": "ls" }), Some("ls")),
        ("codex", "apply_patch", json!({ "command": "*** Begin Patch" }), None),
        ("claude", "Read", json!({ "command": "ls" }), None),
        ("claude", "mcp__shell__run", json!({ "command": "ls" }), None),
    ] {
        assert_eq!(call(agent, name, &input).command().as_deref(), expected, "{agent} {name}");
    }
}

fn result(response: &Value) -> Option<String> {
    let input = json!({});
    match (ToolCall { response: Some(response), ..call("claude", "Bash", &input) }).output()? {
        Output::Text(text) => Some(text.into_owned()),
        Output::Json(value) => Some(format!("json {value}")),
    }
}

#[test]
fn results_of_every_shape_are_text() {
    for (response, expected) in [
        (json!("plain"), "plain"),
        (json!({ "stdout": "out\n", "stderr": "err", "interrupted": false }), "out\nerr"),
        (json!({ "stdout": "", "stderr": "" }), ""),
        (json!({ "stdout": "", "stderr": "err" }), "err"),
        (json!([{ "type": "text", "text": "a" }, { "type": "image", "data": "…" }, "b"]), "a\nb"),
        (json!({ "content": [{ "type": "text", "text": "a" }], "isError": true }), "a"),
        (json!({ "type": "text", "file": { "filePath": "/a", "content": "code" } }), "code"),
        (json!({ "filenames": ["a", "b"], "numFiles": 2 }), "a\nb"),
        (json!({ "mode": "content", "content": "a:1", "filenames": [] }), "a:1"),
        (json!({ "code": 200, "result": "page", "url": "u" }), "page"),
        (json!({ "query": "q", "results": ["a", { "content": [] }] }), "a"),
        (json!({ "filePath": "/a", "oldString": "x" }), "json {\"filePath\":\"/a\",\"oldString\":\"x\"}"),
        (json!([{ "type": "image" }]), "json [{\"type\":\"image\"}]"),
        (json!(5), "json 5"),
    ] {
        assert_eq!(result(&response).as_deref(), Some(expected), "{response}");
    }
    let input = json!({});
    let error = json!("Exit code 1\nno");
    let failed = ToolCall { error: Some(&error), ..call("claude", "Bash", &input) };
    assert_eq!(failed.output(), Some(Output::Text("Exit code 1\nno".into())));
    assert_eq!(call("claude", "Bash", &input).output(), None);
}

#[test]
fn a_long_result_is_lent_and_not_copied() {
    let long = "x".repeat(20 * 1024 * 1024);
    let address = long.as_ptr();
    for response in [Value::String(long.clone()), json!({ "stdout": long, "stderr": "" })] {
        let input = json!({});
        let of = ToolCall { response: Some(&response), ..call("claude", "Bash", &input) };
        let Some(Output::Text(Cow::Borrowed(text))) = of.output() else { panic!("a copy") };
        assert!(text.len() == 20 * 1024 * 1024 && text.as_ptr() != address);
    }
    let blocks = json!([{ "text": "é".repeat(MAX_TEXT_BYTES) }, { "text": "b" }, { "text": "c" }]);
    assert!(result(&blocks).is_some_and(|text| text.len() <= 2 * MAX_TEXT_BYTES));
    let blocks = json!(["a", "é".repeat(MAX_TEXT_BYTES)]);
    assert!(result(&blocks).is_some_and(|text| text.len() <= MAX_TEXT_BYTES));
}

#[test]
fn failure_is_said_by_the_event_or_the_result_and_never_guessed() {
    let claude = |response: Value| ("claude", "post-tool-use", "Bash", Some(response));
    let codex = |name, response: Value| ("codex", "post-tool-use", name, Some(response));
    for ((agent, event, name, response), expected) in [
        (("claude", "post-tool-use-failure", "Bash", None), Some(true)),
        (("claude", "pre-tool-use", "Bash", None), None),
        (claude(json!({ "stdout": "error: no" })), Some(false)),
        (claude(json!({ "content": [], "isError": true })), Some(true)),
        (claude(json!({ "success": false })), Some(true)),
        (claude(json!({ "exitCode": 3 })), Some(true)),
        (codex("Bash", json!("running 12 tests")), None),
        (codex("Bash", json!("Exit code: 0\nWall time: 1 s\nOutput:\nx")), Some(false)),
        (codex("Bash", json!("Chunk ID: 1\nWall time: 1 s\nProcess exited with code 101\nOutput:")), Some(true)),
        (codex("Bash", json!({ "output": "x", "metadata": { "exit_code": 1 } })), Some(true)),
        (codex("Bash", json!("1\n2\n3\n4\n5\n6\nExit code: 1")), None),
        (codex("apply_patch", json!("Done")), Some(false)),
        (codex("mcp__a__b", json!({ "content": [], "isError": false })), Some(false)),
        (("claude", "notification", "Bash", Some(json!("x"))), None),
    ] {
        let input = json!({});
        let call = ToolCall { agent, event, response: response.as_ref(), ..call(agent, name, &input) };
        assert_eq!(call.failed(), expected, "{agent} {event} {name} {response:?}");
    }
}

#[test]
fn interruption_is_said_by_the_event_or_the_result() {
    let input = json!({});
    let stopped = json!({ "stdout": "", "interrupted": true });
    assert!((ToolCall { response: Some(&stopped), ..call("claude", "Bash", &input) }).interrupted());
    assert!((ToolCall { interrupted: true, ..call("claude", "Bash", &input) }).interrupted());
    assert!(!call("claude", "Bash", &input).interrupted());
}
