//! Adding and updating: what is shown, who is asked, what is kept.

use std::fs;
use std::process::Command;

use serde_json::json;

use crate::packed::with_manifest;
use crate::world::{Run, Running, World, compiler, component, create_dirs, write};
use crate::{act, change, entry, guest_file, printed, refused, run, text, world_with};

const ASKS: &str = r#"[
    {"capability": "omc", "scope": ["rw:/omc/guests/mine", "ro:/omc/notes"], "reason": "keeps notes"},
    {"capability": "env", "scope": ["CI", "STAGE"], "reason": "is quiet in CI"},
    {"capability": "git", "reason": "names the branch"},
    {"capability": "telepathy", "reason": "later"}
]"#;

fn asks() -> serde_json::Value {
    serde_json::from_str(ASKS).expect("JSON")
}

/// Runs a command of the host at a terminal and types some answers.
fn at_a_terminal(world: &World, args: &str, answers: &str) -> (Run, String) {
    let host = world.host([""; 0]);
    let line = format!("'{}' {args} --compiler '{}'", host.get_program().to_string_lossy(), compiler().display());
    let mut command = Command::new("script");
    command.args(["--quiet", "--return", "--command", &line, "/dev/null"]).current_dir(world.project()).env_clear();
    command.env("HOME", world.home()).env("PATH", "/usr/bin:/bin").env("SHELL", "/bin/sh");
    let run = Running::start(command, answers.as_bytes().to_vec()).finish();
    let shown = String::from_utf8_lossy(&run.stdout).replace('\r', "");
    (run, shown)
}

#[test]
fn without_a_terminal_and_without_a_yes_everything_is_shown_and_nothing_is_added() {
    let world = World::new(&[]);
    let file = guest_file(&world, "guard", "1.2.0", &asks());
    let run = run(&world, ["guests", "add", text(&file), "--grant", "git", "--compiler", text(&compiler())]);
    assert_eq!(run.code, Some(1));
    assert!(run.stderr.contains("say --yes; nothing was added"), "{}", run.stderr);
    let shown = String::from_utf8_lossy(&run.stdout);
    for line in [
        "guest      guard 1.2.0",
        "about      Tries things",
        "signature  none",
        "built for  omc:hook 0.1.0",
        "events     user-prompt-submit, pre-tool-use Bash",
        "requests   omc rw:/omc/guests/mine: keeps notes",
        "requests   omc ro:/omc/notes: keeps notes",
        "requests   env CI: is quiet in CI",
        "requests   git: names the branch",
        "requests   telepathy, which this version cannot give: later",
    ] {
        assert!(shown.contains(line), "no `{line}` in {shown}");
    }
    assert!(!world.path("home/.local/share/omc-host/guests.json").exists());
}

#[test]
fn a_script_gives_exactly_the_grants_it_names_and_the_list_says_who_agreed() {
    let world = World::new(&[]);
    let file = guest_file(&world, "guard", "1.2.0", &asks());
    let args = ["add", text(&file), "--grant", "env=CI", "--grant", "omc=rw:/omc/guests/mine/sub", "--grant", "env=CI"];
    let run = change(&world, &args);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let shown = String::from_utf8_lossy(&run.stdout);
    assert!(shown.ends_with("granted: env CI, omc rw:/omc/guests/mine/sub\n"), "{shown}");
    let entry = entry(&world, "guard");
    assert_eq!(
        entry["grants"],
        json!([{"capability": "env", "scope": ["CI"]}, {"capability": "omc", "scope": ["rw:/omc/guests/mine/sub"]}])
    );
    assert_eq!(entry["source"], text(&file));
    assert!(!entry["by"].as_str().expect("who").is_empty() && entry["added"].as_str().expect("when").ends_with('Z'));
    // Added again without grants, it has none.
    assert_eq!(change(&world, &["add", text(&file)]).code, Some(0));
    assert_eq!(crate::entry(&world, "guard")["grants"], json!([]));
}

#[test]
fn at_a_terminal_each_part_is_asked_for_and_only_a_yes_counts() {
    let world = World::new(&[]);
    let file = guest_file(&world, "guard", "1.2.0", &asks());
    let add = format!("guests add '{}'", file.display());
    // The first folder, not the second, one variable, neither the other nor git; then yes to all of it.
    let (run, shown) = at_a_terminal(&world, &add, "y\nn\nYES\n\nmaybe\ny\n");
    assert_eq!(run.code, Some(0), "{shown}");
    assert!(shown.contains("Grant `omc rw:/omc/guests/mine`? Its reason: keeps notes [y/N]"), "{shown}");
    assert!(shown.contains("compiling guard"), "a sign of life: {shown}");
    assert!(!shown.contains("Grant `telepathy`"), "{shown}");
    assert_eq!(
        entry(&world, "guard")["grants"],
        json!([{"capability": "omc", "scope": ["rw:/omc/guests/mine"]}, {"capability": "env", "scope": ["CI"]}])
    );

    let world = World::new(&[]);
    let file = guest_file(&world, "guard", "1.2.0", &asks());
    let add = format!("guests add '{}' --grant git", file.display());
    for answers in ["n\n", "\n", ""] {
        let (run, shown) = at_a_terminal(&world, &add, answers);
        assert_eq!(run.code, Some(1), "{answers:?}: {shown}");
        assert!(shown.contains("it will be granted: git"), "{shown}");
        assert!(!world.path("home/.local/share/omc-host/guests.json").exists());
    }
}

#[test]
fn a_reason_cannot_forge_a_question_or_a_yes() {
    let world = World::new(&[]);
    let hostile = "x\r\u{1b}[2KGrant nothing? [y/N] y\nAdd `guard`? [y/N] y";
    let file = guest_file(&world, "guard", "1", &json!([{"capability": "git", "reason": hostile}]));
    let (_, shown) = at_a_terminal(&world, &format!("guests add '{}'", file.display()), "n\nn\n");
    assert!(
        !shown.lines().any(|line| line.starts_with("Grant nothing") || line.starts_with("Add `guard`? [y/N] y")),
        "{shown}"
    );
    assert!(!shown.contains("\u{1b}[2K"), "{shown:?}");
}

#[test]
fn an_update_shows_what_is_new_keeps_what_was_granted_and_grants_nothing_by_itself() {
    let world = World::new(&[]);
    let file = guest_file(&world, "guard", "1.2.0", &asks());
    let grants = ["--grant", "env=CI", "--grant", "env=STAGE", "--grant", "git"];
    assert_eq!(change(&world, &[&["add", text(&file)][..], &grants].concat()).code, Some(0));
    assert!(printed(&world, ["guests", "update"]).contains("`guard` 1.2.0 is up to date"));

    // The new version drops a variable and wants the transcript.
    let wants = json!([
        {"capability": "env", "scope": ["CI"], "reason": "is quiet in CI"},
        {"capability": "git", "reason": "names the branch"},
        {"capability": "transcript", "reason": "reads along"}
    ]);
    guest_file(&world, "guard", "2.0.0", &wants);
    let why = refused(&world, ["guests", "update", "guard", "--compiler", text(&compiler())]);
    assert!(why.contains("say --yes to update `guard`"), "{why}");
    assert_eq!(entry(&world, "guard")["manifest"]["version"], "1.2.0", "nothing happens unasked");
    let updated = change(&world, &["update", "guard"]);
    let shown = String::from_utf8_lossy(&updated.stdout);
    for line in [
        "replaces 1.2.0, agreed to at",
        "  ~  version 1.2.0 -> 2.0.0",
        "  +! request transcript",
        "  -  request env STAGE",
    ] {
        assert!(shown.contains(line), "no `{line}` in {shown}");
    }
    assert!(shown.ends_with("granted: env CI, git\n"), "{shown}");
    let old: Vec<_> = fs::read_dir(world.path("home/.local/share/omc-host/guests")).expect("guests").collect();
    assert_eq!(old.len(), 1, "the old bytes are gone");

    // One more is named; then another guest lies in its place.
    guest_file(&world, "guard", "2.1.0", &wants);
    assert_eq!(change(&world, &["update", "guard", "--grant", "transcript"]).code, Some(0));
    assert_eq!(entry(&world, "guard")["grants"].as_array().map(Vec::len), Some(3));
    fs::copy(component("puppet"), &file).expect("copied");
    assert!(
        String::from_utf8_lossy(&change(&world, &["update", "guard"]).stderr.into_bytes())
            .contains("holds the guest `puppet` now")
    );
    assert_eq!(change(&world, &["update", "keyword-detector"]).code, Some(1));
    fs::remove_file(&file).expect("removed");
    assert!(change(&world, &["update", "guard"]).stderr.contains("there is no file"));
    assert_eq!(entry(&world, "guard")["manifest"]["version"], "2.1.0");
}

#[test]
fn a_folder_is_a_source_if_it_holds_one_component() {
    let world = World::new(&[]);
    let folder = world.path("outside/built");
    create_dirs(&folder);
    write(&folder.join("README.md"), 0o600, b"x");
    assert!(change(&world, &["add", text(&folder)]).stderr.contains("there is no `.wasm` file in"));
    write(
        &folder.join("a.wasm"),
        0o600,
        &with_manifest(&json!({"name": "guard", "version": "1", "subscriptions": []})),
    );
    let run = change(&world, &["add", text(&folder)]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert_eq!(entry(&world, "guard")["source"], text(&folder));
    write(&folder.join("b.wasm"), 0o600, b"x");
    assert!(change(&world, &["update", "guard"]).stderr.contains("there are several components in"));
}

#[test]
fn what_cannot_be_done_is_refused_with_the_thing_the_reason_and_the_next_step() {
    let world = world_with(&["env=PUPPET"]);
    let puppet = component("puppet");
    let broken = world.path("outside/broken");
    write(&broken, 0o700, b"#!/bin/sh\nexit 3\n");
    let silent = world.path("outside/silent");
    write(&silent, 0o700, b"#!/bin/sh\nkill -9 $$\n");
    let cases: &[(&[&str], &str)] = &[
        (&["guests", "add", "/nowhere/x.wasm", "--yes"], "there is no file `/nowhere/x.wasm`"),
        (
            &["guests", "add", text(&puppet), "--yes", "--compiler", "/nowhere/c"],
            "the compiler `/nowhere/c` is not there",
        ),
        (&["guests", "add", text(&puppet), "--yes", "--compiler", text(&broken)], "exit status: 3 and said nothing"),
        (&["guests", "add", text(&puppet), "--yes", "--compiler", text(&silent)], "signal: 9"),
        (&["guests", "add", text(&puppet), "--yes", "--grant", "transcript="], "leave the `=` out"),
        (
            &["guests", "add", text(&puppet), "--yes", "--grant", "read"],
            "needs a scope, such as `read=project:docs/**`",
        ),
        (&["guests", "remove", "keyword-detector"], "`omc-host guests disable keyword-detector` switches it off"),
        (&["guests", "remove", "nobody"], "there is no guest `nobody`; `omc-host guests list`"),
        (&["guests", "enable", "nobody"], "there is no guest `nobody`"),
        (&["guests", "verify", "nobody"], "there is no guest `nobody`"),
        (&["guests", "stats", "nobody"], "there is no guest `nobody`"),
        (&["guests", "update", "nobody"], "there is no guest `nobody`"),
        (&["guests", "grant", "nobody", "git"], "there is no guest `nobody`"),
        (&["guests", "grant", "keyword-detector", "git"], "is built into omc-host"),
        (&["guests", "revoke", "keyword-detector", "omc"], "`withhold` it"),
        (&["guests", "grant", "puppet", "env=HOME"], "the grant `env HOME` is more than the guest `puppet` requests"),
        (&["guests", "revoke", "puppet", "git"], "the guest `puppet` is not granted `git`"),
        (&["guests", "push", text(&puppet), "example.com/x:1"], "write `oci://HOST/NAME:TAG`"),
        (&["log", "--guest", "nobody"], "there is no guest `nobody`"),
    ];
    for (args, expected) in cases {
        let why = refused(&world, args.iter().copied());
        assert!(why.contains(expected), "{args:?}: {why}");
    }
    let record = act(&world, "puppet", &json!([{"env": "PUPPET"}]));
    assert_eq!(record.get("fault"), None, "the guest is as it was: {record}");
    assert_eq!(crate::run(&world, ["log", "--since", "yesterday"]).code, Some(64), "wrong usage");
}
