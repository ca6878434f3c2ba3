//! What authors of guests do: begin a project, put a manifest on a component, and see the guest of the template at work.
//!
//! The template in Rust is built and tested as `guests/no-force-push`. Those in JavaScript and Python need only node and python3 for
//! their tests, which are run where these are; for what else of them is seen without a network, see `authoring/templates.rs`.
#![cfg(target_os = "linux")]

#[path = "authoring/templates.rs"]
mod templates;
mod world;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use world::{Guest, Running, World, component, run, write};

/// A whole manifest of a guest that imports nothing but the event.
const MANIFEST: &str = r#"
name = "guard"
version = "1.2.0"
description = "Guards"

[[subscriptions]]
event = "pre-tool-use"
matcher = "Bash"
when = ["payload:push"]
"#;

fn text(path: &Path) -> &str {
    path.to_str().expect("the folders of tests have plain names")
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().map(|entry| entry.expect("an entry").path());
    entries.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
}

/// Whether a program can be started here.
fn is_there(program: &str) -> bool {
    let known = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    known.is_ok_and(|status| status.success())
}

/// Runs a test of a project, if there is the program for it.
fn passes(project: &Path, program: &str, args: &[&str]) {
    if !is_there(program) {
        return;
    }
    let mut test = Command::new(program);
    test.args(args).current_dir(project).env("PYTHONDONTWRITEBYTECODE", "1");
    let output = test.output().expect("it has just been there");
    assert!(
        output.status.success(),
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn a_new_project_is_whole_and_passes_its_test() {
    let world = World::new(&[]);
    for (language, expected, program, args) in [
        ("rust", "cargo build --release --target wasm32-wasip2", None, &[][..]),
        ("js", "npm run build", Some("node"), &["--test"]),
        ("python", "python3 build.py", Some("python3"), &["-m", "unittest"]),
    ] {
        let name = format!("guard-{language}");
        let run = run(&world, ["guests", "new", &name, "--lang", language]);
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        let shown = String::from_utf8_lossy(&run.stdout);
        assert!(shown.contains(expected), "{shown}");
        let project = world.path("project").join(&name);
        for path in files_below(&project) {
            let text = fs::read_to_string(&path).expect("text");
            assert!(!text.contains("{{"), "{}", path.display());
        }
        assert!(project.join("README.md").is_file() && project.join(".gitignore").is_file());
        assert_eq!(project.join("wit/deps/omc-hook/hook.wit").is_file(), language != "rust");
        if let Some(program) = program {
            passes(&project, program, args);
        }
    }
    let manifest = fs::read_to_string(world.path("project/guard-rust/Cargo.toml")).expect("a manifest");
    let manifest: toml::Table = manifest.parse().expect("TOML");
    assert_eq!(manifest["package"]["name"].as_str(), Some("guard-rust"));
    let sdk = manifest["dependencies"]["omc-guest"].as_table().expect("a dependency");
    assert!(sdk.contains_key("path") || sdk.contains_key("git"), "{sdk:?}");
}

#[test]
fn a_project_is_written_nowhere_else_and_over_nothing() {
    let world = World::new(&[]);
    fs::create_dir(world.path("project/there")).expect("created");
    std::os::unix::fs::symlink(world.path("outside"), world.path("project/link")).expect("linked");
    let before = files_below(&world.path("project"));
    let absolute = world.path("outside/guard");
    for (name, reason) in [
        ("there", "there is a `there` already"),
        ("link", "there is a `link` already"),
        ("../guard", "is not 1 to 64"),
        (text(&absolute), "is not 1 to 64"),
        ("Guard", "is not 1 to 64"),
        ("keyword-detector", "belongs to a guest of omc-host itself"),
    ] {
        let run = run(&world, ["guests", "new", name]);
        assert_eq!(run.code, Some(1), "{name}");
        assert!(run.stderr.contains(reason), "{name}: {}", run.stderr);
    }
    let run = run(&world, ["guests", "new", "guard", "--sdk", "/"]);
    assert!(run.stderr.contains("is not the SDK"), "{}", run.stderr);
    assert_eq!(files_below(&world.path("project")), before);
    assert!(files_below(&world.path("outside")).is_empty());
}

#[test]
fn a_packed_guest_is_what_its_manifest_says_and_can_be_packed_again() {
    let world = World::new(&[]);
    let (manifest, file, packed) = (world.path("guest.toml"), component("no-force-push"), world.path("packed.wasm"));
    write(&manifest, 0o600, MANIFEST.as_bytes());
    let args = ["guests", "pack", text(&file), "--manifest", text(&manifest), "-o", text(&packed)];
    let once = run(&world, args);
    assert_eq!(once.code, Some(0), "{}", once.stderr);
    assert!(String::from_utf8_lossy(&once.stdout).starts_with("packed `guard` 1.2.0 into "));
    let audit = |file: &Path| String::from_utf8(run(&world, ["audit", text(file)]).stdout).expect("UTF-8");
    assert!(audit(&packed).contains("guard 1.2.0"), "{}", audit(&packed));

    // In place, with another version.
    write(&manifest, 0o600, MANIFEST.replace("1.2.0", "1.3.0").as_bytes());
    let again = run(&world, ["guests", "pack", text(&packed), "--manifest", text(&manifest)]);
    assert_eq!(again.code, Some(0), "{}", again.stderr);
    assert!(audit(&packed).contains("guard 1.3.0"), "{}", audit(&packed));
    let left: Vec<_> =
        files_below(&world.path("")).into_iter().filter(|path| path.parent() == packed.parent()).collect();
    assert_eq!(left.len(), 2, "{left:?}");
}

#[test]
fn a_manifest_that_does_not_fit_is_named_and_nothing_is_written() {
    let world = World::new(&[]);
    let manifest = world.path("guest.toml");
    let (plain, puppet) = (component("no-force-push"), component("puppet"));
    let garbage = world.path("garbage.wasm");
    write(&garbage, 0o600, b"garbage garbage");
    let module = world.path("module.wasm");
    write(&module, 0o600, b"\0asm\x01\0\0\0");
    let packed = world.path("packed.wasm");
    for (file, from, to, reason) in [
        (&plain, "pre-tool-use", "PreToolUse", "there is no event `PreToolUse`"),
        (&plain, "\"Bash\"", "\"(?=Bash)\"", "a matcher that cannot be used"),
        (&plain, "payload:push", "file:/etc", "there is no condition `file:/etc`"),
        (&plain, "payload:push", "moon:full", "no condition begins as `moon:full` does"),
        (&plain, "name = \"guard\"", "name = \"keyword-detector\"", "belongs to a guest of omc-host itself"),
        (&plain, "matcher", "macther", "unknown key `macther`"),
        (&plain, "[[sub", "[[requests]]\ncapability = \"telepathy\"\nreason = \"a\"\n[[sub", "requests `telepathy`"),
        (&puppet, "guard", "guard", "without requesting `transcript`"),
        (&garbage, "guard", "guard", "not a WebAssembly component"),
        (&module, "guard", "guard", "core WebAssembly module"),
    ] {
        let text_of_manifest = MANIFEST.replace(from, to);
        write(&manifest, 0o600, text_of_manifest.as_bytes());
        let run = run(&world, ["guests", "pack", text(file), "--manifest", text(&manifest), "-o", text(&packed)]);
        assert_eq!(run.code, Some(1), "{reason}");
        assert!(run.stderr.contains(reason), "{reason}: {}", run.stderr);
        assert!(!packed.exists(), "{reason}");
    }
    let missing = run(&world, ["guests", "pack", text(&plain)]);
    assert!(missing.stderr.contains("guest.toml") && missing.stderr.contains("--manifest"), "{}", missing.stderr);
}

#[test]
fn a_hostile_manifest_drives_no_terminal_and_a_pipe_holds_nobody_up() {
    let world = World::new(&[]);
    let (manifest, file) = (world.path("guest.toml"), component("no-force-push"));
    for (from, to) in [
        ("pre-tool-use", r"\u001b[2J\u202e"),
        ("version = \"1.2.0\"", r#"version = "\u001b[2J""#),
        ("Bash", r"(\u001b[2J"),
    ] {
        write(&manifest, 0o600, MANIFEST.replace(from, to).as_bytes());
        let packed = world.path("packed.wasm");
        let run = run(&world, ["guests", "pack", text(&file), "--manifest", text(&manifest), "-o", text(&packed)]);
        let shown = format!("{}{}", run.stderr, String::from_utf8_lossy(&run.stdout));
        assert!(!shown.contains(['\u{1b}', '\u{202e}']), "{shown:?}");
    }
    let pipe = world.path("pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).expect("a pipe");
    let as_manifest = run(&world, ["guests", "pack", text(&file), "--manifest", text(&pipe)]);
    write(&manifest, 0o600, MANIFEST.as_bytes());
    let as_component = run(&world, ["guests", "pack", text(&pipe), "--manifest", text(&manifest)]);
    for run in [as_manifest, as_component] {
        assert_eq!(run.code, Some(1));
        assert!(run.stderr.contains("regular file"), "{}", run.stderr);
    }
}

#[test]
fn the_guest_of_the_template_blocks_a_forced_push_and_nothing_else() {
    let world = World::new(&[Guest { name: "no-force-push".to_owned(), grants: Vec::new() }]);
    let answer = |command: &str| {
        let event = json!({
            "hook_event_name": "PreToolUse", "session_id": "s1", "cwd": world.project(),
            "tool_name": "Bash", "tool_input": {"command": command},
        });
        let host = world.host(["hook", "--agent", "claude"]);
        let run = Running::start(host, event.to_string().into_bytes()).finish();
        serde_json::from_slice::<Value>(&run.stdout).expect("an answer")
    };
    let output = answer("git push --force")["hookSpecificOutput"].clone();
    assert_eq!(output["permissionDecision"], "deny");
    assert!(output["additionalContext"].as_str().expect("context").contains("new branch"), "{output}");
    assert_eq!(answer("git push")["hookSpecificOutput"], Value::Null);
}
