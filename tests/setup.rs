//! Setting an agent up, as its user does: install, events as the agent sends them, doctor, uninstall.
#![cfg(unix)]

mod world;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use world::{Run, Running, World, create_dirs, write};

/// Something that goes wrong with an installation.
type Break = fn(&Machine);

/// A folder of programs with everything in its name that a shell could trip over.
const FOLDER: &str = "bin/omc \"host\" it's $HOME 한국어";

/// A world with a complete release in it, in which both agents have been used.
struct Machine {
    world: World,
    program: PathBuf,
}

impl Machine {
    fn new() -> Self {
        let world = World::new(&[]);
        let program = world.path(FOLDER).join("omc-host");
        create_dirs(&world.path(FOLDER));
        link_or_copy(Path::new(env!("CARGO_BIN_EXE_omc-host")), &program);
        for companion in ["omc-compiler", "omc-mcp", "omc-net"] {
            write(&world.path(FOLDER).join(companion), 0o700, b"#!/bin/sh\n");
        }
        for folder in ["home/.claude", "home/.codex"] {
            create_dirs(&world.path(folder));
        }
        Self { world, program }
    }

    /// A command line of the program under the name by which a person starts it.
    fn command(&self, program: &Path, args: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(args).current_dir(self.world.project()).env_clear().env("HOME", self.world.home());
        command.envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
        command
    }

    fn run(&self, args: &[&str]) -> Run {
        Running::start(self.command(&self.program, args), Vec::new()).finish()
    }

    fn ok(&self, args: &[&str]) -> String {
        let run = self.run(args);
        assert_eq!(run.code, Some(0), "{args:?}: {}{}", String::from_utf8_lossy(&run.stdout), run.stderr);
        String::from_utf8(run.stdout).expect("UTF-8")
    }

    /// What the doctor finds, and whether all is in order.
    fn doctor(&self, args: &[&str]) -> (bool, Vec<Value>) {
        let run = self.run(&[&["doctor", "--json"], args].concat());
        let report: Value = serde_json::from_slice(&run.stdout).unwrap_or_else(|_| panic!("no JSON: {}", run.stderr));
        assert_eq!(run.code, Some(i32::from(report["in-order"] != true)), "{report:#}");
        (report["in-order"] == true, report["findings"].as_array().expect("findings").clone())
    }

    /// The problems that the doctor finds, each with its check and what to do.
    fn problems(&self) -> Vec<String> {
        let is_problem = |finding: &&Value| finding["state"] == "problem";
        let text = |finding: &Value| format!("{}: {} -> {}", finding["check"], finding["text"], finding["fix"]);
        self.doctor(&[]).1.iter().filter(is_problem).map(text).collect()
    }

    fn json(&self, path: &str) -> Value {
        let text = fs::read_to_string(self.world.path(path)).expect("readable");
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    /// The one handler of ours on an event in a hooks file.
    fn handler(&self, path: &str, event: &str) -> Value {
        let groups = self.json(path)["hooks"][event].as_array().cloned().expect("groups");
        assert_eq!(groups.len(), 1, "{groups:?}");
        groups[0]["hooks"][0].clone()
    }

    /// Sends an event through a handler, started as the agent starts it.
    fn send(&self, handler: &Value, event: &Value) -> String {
        let line = handler["command"].as_str().expect("a command");
        let command = match handler["args"].as_array() {
            Some(args) => {
                let args: Vec<&str> = args.iter().filter_map(Value::as_str).collect();
                self.command(Path::new(line), &args)
            }
            None => self.command(Path::new("/bin/sh"), &["-c", line]),
        };
        let run = Running::start(command, event.to_string().into_bytes()).finish();
        assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
        String::from_utf8(run.stdout).expect("UTF-8")
    }

    fn prompt(&self, prompt: &str) -> Value {
        json!({"hook_event_name": "UserPromptSubmit", "session_id": "s1", "cwd": self.world.project(), "prompt": prompt})
    }

    /// Trusts every hook of Codex, as a person does in `/hooks`.
    fn trust(&self) {
        let hooks = self.world.path("home/.codex/hooks.json");
        let run = self.run(&["check", hooks.to_str().expect("UTF-8"), "--agent", "codex", "--json"]);
        let report: Value = serde_json::from_slice(&run.stdout).expect("JSON");
        let mut config = fs::read_to_string(self.world.path("home/.codex/config.toml")).unwrap_or_default();
        for handler in report["handlers"].as_array().expect("handlers") {
            let event = handler["event"].as_str().expect("an event");
            let label = event.chars().enumerate().fold(String::new(), |label, (at, letter)| {
                let gap = if at > 0 && letter.is_ascii_uppercase() { "_" } else { "" };
                label + gap + &letter.to_ascii_lowercase().to_string()
            });
            let place = format!("{}:{label}:{}:{}", hooks.display(), handler["group"], handler["handler"]);
            config.extend([format!("\n[hooks.state.{}]\ntrusted_hash = {}\n", Value::from(place), handler["hash"])]);
        }
        fs::write(self.world.path("home/.codex/config.toml"), config).expect("written");
    }
}

/// Every file and folder of some trees, with its mode and bytes.
fn files(trees: &[PathBuf]) -> BTreeMap<PathBuf, (u32, Option<Vec<u8>>)> {
    let mut found = BTreeMap::new();
    let mut folders = trees.to_vec();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap_or_else(|error| panic!("`{}`: {error}", folder.display())) {
            let path = entry.expect("an entry").path();
            let about = fs::symlink_metadata(&path).expect("it is there");
            let bytes = about.is_file().then(|| fs::read(&path).expect("readable"));
            if about.is_dir() {
                folders.push(path.clone());
            }
            found.insert(path, (about.permissions().mode(), bytes));
        }
    }
    found
}

fn link_or_copy(from: &Path, to: &Path) {
    if fs::hard_link(from, to).is_err() {
        fs::copy(from, to).expect("copied");
    }
}

#[test]
fn a_person_installs_works_and_uninstalls_and_every_file_is_as_it_was() {
    let machine = Machine::new();
    let settings = b"{\n  // mine\n  \"model\": \"opus\",\n  \"hooks\": {\n    \"Stop\": [ { \"hooks\": [ { \"type\": \"command\", \"command\": \"true\" } ] } ],\n  },\n}";
    write(&machine.world.path("home/.claude/settings.json"), 0o644, settings);
    write(&machine.world.path("home/.codex/config.toml"), 0o600, b"model = \"m\"");
    let trees = ["home/.claude", "home/.codex"].map(|tree| machine.world.path(tree));
    let before = files(&trees);

    let shown = machine.ok(&["install", "--dry-run"]);
    assert!(shown.contains("settings.json") && shown.contains("+ ") && shown.contains("UserPromptSubmit"), "{shown}");
    assert_eq!(files(&trees), before, "a dry run changes nothing");

    machine.ok(&["install"]);
    let installed = files(&trees);
    assert!(machine.ok(&["install"]).contains("nothing was changed"));
    assert_eq!(files(&trees), installed);
    for agent in ["home/.codex/hooks.json", "home/.claude/settings.json"] {
        let text = fs::read_to_string(machine.world.path(agent)).expect("readable");
        let hooks: Value =
            jsonc_parser::parse_to_serde_value(&text, &jsonc_parser::ParseOptions::default()).expect("JSON");
        let handler = &hooks["hooks"]["UserPromptSubmit"][0]["hooks"][0];
        let answer = machine.send(handler, &machine.prompt("ralph fix the login in src/login.rs"));
        assert!(answer.contains("additionalContext") && answer.contains("ralph"), "{answer}");
    }

    machine.ok(&["uninstall"]);
    assert_eq!(files(&trees), before);
    assert!(!machine.world.path("home/.agents").exists());
    assert!(machine.ok(&["uninstall"]).contains("nothing was changed"));
}

#[test]
fn the_doctor_is_content_with_a_fresh_installation_and_finds_what_is_broken_later() {
    let machine = Machine::new();
    machine.ok(&["install"]);
    let problems = machine.problems();
    assert!(problems.len() == 1 && problems[0].contains("Codex does not trust"), "{problems:#?}");
    machine.trust();
    assert_eq!(machine.problems(), [""; 0]);

    let settings = "home/.claude/settings.json";
    let cases: [(&str, Break, &str, bool); 10] = [
        (
            "an event is missing",
            |machine| {
                let mut value = machine.json("home/.claude/settings.json");
                value["hooks"].as_object_mut().expect("hooks").remove("Stop");
                write(&machine.world.path("home/.claude/settings.json"), 0o600, value.to_string().as_bytes());
            },
            "Stop: guests ask for these events",
            true,
        ),
        (
            "a timeout is too small and another in milliseconds",
            |machine| {
                let mut value = machine.json("home/.claude/settings.json");
                value["hooks"]["Stop"][0]["hooks"][0]["timeout"] = json!(1);
                value["hooks"]["PreToolUse"][0]["hooks"][0]["timeout"] = json!(3000);
                write(&machine.world.path("home/.claude/settings.json"), 0o600, value.to_string().as_bytes());
            },
            "the timeout of Stop is 1 s",
            true,
        ),
        (
            "the program is gone from where a hook looks for it",
            |machine| {
                let mut value = machine.json("home/.claude/settings.json");
                value["hooks"]["Stop"][0]["hooks"][0]["command"] = json!("/gone/omc-host");
                write(&machine.world.path("home/.claude/settings.json"), 0o600, value.to_string().as_bytes());
            },
            "`/gone/omc-host`, which is not there",
            true,
        ),
        (
            "a hook is there twice",
            |machine| {
                let mut value = machine.json("home/.claude/settings.json");
                let group = value["hooks"]["Stop"][0].clone();
                value["hooks"]["Stop"].as_array_mut().expect("groups").push(group);
                write(&machine.world.path("home/.claude/settings.json"), 0o600, value.to_string().as_bytes());
            },
            "Stop: these events are sent more than once",
            true,
        ),
        (
            "a skill is missing",
            |machine| {
                fs::remove_file(machine.world.path("home/.claude/skills/omc/skills/ralph/SKILL.md")).expect("removed");
            },
            "skills or the server of Claude Code are missing",
            true,
        ),
        (
            "others can write where guests are kept",
            |machine| {
                let folder = machine.world.path("home/.local/state/omc-host");
                fs::set_permissions(folder, fs::Permissions::from_mode(0o777)).expect("set");
            },
            "can be written by others",
            true,
        ),
        (
            "the original is on, too",
            |machine| {
                let mut value = machine.json("home/.claude/settings.json");
                value["enabledPlugins"] = json!({"oh-my-claudecode@omc": true});
                write(&machine.world.path("home/.claude/settings.json"), 0o600, value.to_string().as_bytes());
            },
            "the plugin `oh-my-claudecode@omc` is on",
            false,
        ),
        (
            "the original's plugin is gone from its folder",
            |machine| {
                let installed = json!({"version": 2, "plugins": {"oh-my-claudecode@omc": [{"scope": "user", "installPath": "/gone/4.9.0"}]}});
                let path = machine.world.path("home/.claude/plugins/installed_plugins.json");
                write(&path, 0o600, installed.to_string().as_bytes());
            },
            "is installed in `/gone/4.9.0`, which is not there",
            false,
        ),
        (
            "the original has been at work in this project",
            |machine| {
                let lock = machine.world.path("project/.omc/state/mission-state.json.lock");
                write(&lock, 0o600, b"{\"pid\":1,\"timestamp\":1790000000000}");
            },
            "oh-my-claudecode has been at work",
            false,
        ),
        (
            "hooks are switched off",
            |machine| {
                let mut value = machine.json("home/.claude/settings.json");
                value["disableAllHooks"] = json!(true);
                write(&machine.world.path("home/.claude/settings.json"), 0o600, value.to_string().as_bytes());
            },
            "`disableAllHooks` is true",
            false,
        ),
    ];
    for (what, break_it, finding, can_be_mended) in cases {
        let before = fs::read(machine.world.path(settings)).expect("readable");
        break_it(&machine);
        let problems = machine.problems();
        assert!(problems.iter().any(|problem| problem.contains(finding)), "{what}: {problems:#?}");
        assert!(problems.iter().all(|problem| !problem.ends_with("null")), "each with its fix: {problems:#?}");
        let (in_order, findings) = machine.doctor(&["--fix"]);
        assert_eq!(in_order, can_be_mended, "{what}: {findings:#?}");
        write(&machine.world.path(settings), 0o600, &before);
        for rest in ["project/.omc", "home/.claude/plugins"] {
            drop(fs::remove_dir_all(machine.world.path(rest)));
        }
        machine.ok(&["install"]);
        assert_eq!(machine.problems(), [""; 0], "after {what}");
    }
}

#[test]
fn an_agent_that_is_too_old_for_its_hooks_is_named() {
    let machine = Machine::new();
    machine.ok(&["install", "--agent", "claude"]);
    for (says, is_old) in [("2.1.138 (Claude Code)", true), ("2.1.303 (Claude Code)", false)] {
        write(&machine.world.path("home/bin/claude"), 0o700, format!("#!/bin/sh\necho '{says}'\n").as_bytes());
        let mut command = machine.command(&machine.program, &["doctor", "--json"]);
        command.env("PATH", format!("{}:/usr/bin:/bin", machine.world.path("home/bin").display()));
        let run = Running::start(command, Vec::new()).finish();
        let text = String::from_utf8_lossy(&run.stdout);
        assert_eq!(text.contains("starts hooks without their arguments"), is_old, "{text}");
    }
}

#[test]
fn a_folder_for_all_state_that_was_not_used_yet_is_no_problem() {
    let machine = Machine::new();
    machine.ok(&["install", "--agent", "claude"]);
    write(&machine.world.path("outside/file"), 0o600, b"");
    for (state_dir, state, says) in [
        ("central", "ok", "central/project-"),
        ("outside", "ok", "outside/project-"),
        ("outside/file", "note", "no folder that can hold state"),
    ] {
        let mut command = machine.command(&machine.program, &["doctor", "--json"]);
        command.env("OMC_STATE_DIR", machine.world.path(state_dir));
        let run = Running::start(command, Vec::new()).finish();
        let report: Value = serde_json::from_slice(&run.stdout).expect("JSON");
        let findings = report["findings"].as_array().expect("findings");
        let project = findings.iter().find(|finding| finding["check"] == "project").expect("the project");
        let text = project["text"].as_str().expect("a text");
        assert!(project["state"] == state && text.contains(says), "{state_dir}: {project}");
        assert_eq!(text.ends_with("is not there yet"), state == "ok", "{state_dir}: {project}");
    }
    assert!(!machine.world.path("central").exists(), "looking makes nothing");
}

#[test]
fn an_installation_beside_the_original_says_so() {
    let machine = Machine::new();
    let original = json!({
        "enabledPlugins": {"oh-my-claudecode@omc": true},
        "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "node \"$HOME/.claude/hooks/persistent-mode.mjs\""}]}]},
    });
    write(&machine.world.path("home/.claude/settings.json"), 0o600, original.to_string().as_bytes());
    let said = machine.ok(&["install", "--agent", "claude"]);
    for part in ["the plugin `oh-my-claudecode@omc` is on", "has hooks of oh-my-claudecode (1)"] {
        assert!(said.contains(part), "{said}");
    }
}

#[test]
fn the_doctor_of_one_omc_host_leaves_the_hooks_of_another_alone() {
    let machine = Machine::new();
    machine.ok(&["install", "--agent", "claude"]);
    fs::remove_file(machine.world.path("home/.claude/skills/omc/skills/ralph/SKILL.md")).expect("removed");
    let before = files(&[machine.world.path("home/.claude")]);
    let other = machine.world.path("bin/other/omc-host");
    create_dirs(&machine.world.path("bin/other"));
    fs::copy(&machine.program, &other).expect("copied");
    let run = Running::start(machine.command(&other, &["doctor", "--fix"]), Vec::new()).finish();
    let said = String::from_utf8_lossy(&run.stdout);
    assert!(run.code == Some(1) && said.contains("name another omc-host than this one"), "{said}");
    assert_eq!(files(&[machine.world.path("home/.claude")]), before);
}

#[test]
fn an_upgrade_behind_a_link_keeps_codexs_trust_and_every_byte() {
    let machine = Machine::new();
    let link = machine.world.path("home/omc-host");
    symlink(&machine.program, &link).expect("linked");
    let run = |args: &[&str]| Running::start(machine.command(&link, args), Vec::new()).finish();
    assert_eq!(run(&["install"]).code, Some(0));
    let command = machine.handler("home/.codex/hooks.json", "Stop")["command"].clone();
    assert_eq!(command, format!("{} hook --agent codex", link.display()));
    machine.trust();
    let before = files(&["home/.codex", "home/.claude"].map(|tree| machine.world.path(tree)));

    let newer = machine.world.path("bin/newer");
    create_dirs(&newer);
    for name in ["omc-host", "omc-compiler", "omc-mcp", "omc-net"] {
        link_or_copy(&machine.program.with_file_name(name), &newer.join(name));
        fs::remove_file(machine.program.with_file_name(name)).expect("removed");
    }
    fs::remove_file(&link).expect("removed");
    symlink(newer.join("omc-host"), &link).expect("linked");
    assert_eq!(run(&["install"]).code, Some(0));
    assert_eq!(files(&["home/.codex", "home/.claude"].map(|tree| machine.world.path(tree))), before);
    // Whichever name of the program the doctor is called by.
    for name in [&link, &newer.join("omc-host")] {
        let doctor = Running::start(machine.command(name, &["doctor", "--fix"]), Vec::new()).finish();
        assert_eq!(doctor.code, Some(0), "{}", String::from_utf8_lossy(&doctor.stdout));
        assert_eq!(files(&["home/.codex", "home/.claude"].map(|tree| machine.world.path(tree))), before);
    }
}

#[test]
fn a_bundle_works_from_wherever_the_agent_puts_it() {
    let machine = Machine::new();
    for (agent, variable) in [("claude", "CLAUDE_PLUGIN_ROOT"), ("codex", "PLUGIN_ROOT")] {
        let folder = machine.world.path(&format!("bundles of/{agent} it's"));
        machine.ok(&["bundle", agent, folder.to_str().expect("UTF-8")]);
        let hooks = fs::read_to_string(folder.join("hooks/hooks.json")).expect("hooks");
        let hooks: Value = serde_json::from_str(&hooks).expect("JSON");
        let mut handler = hooks["hooks"]["UserPromptSubmit"][0]["hooks"][0].clone();
        // The agent puts the plugin's folder in the variable's place.
        let command = handler["command"]
            .as_str()
            .expect("a command")
            .replace(&format!("${{{variable}}}"), folder.to_str().expect("UTF-8"));
        handler["command"] = json!(command);
        let answer = machine.send(&handler, &machine.prompt("ralph fix the login in src/login.rs"));
        assert!(answer.contains("ralph"), "{answer}");
        let manifest = folder.join(format!(".{agent}-plugin/plugin.json"));
        let manifest: Value = serde_json::from_str(&fs::read_to_string(manifest).expect("a manifest")).expect("JSON");
        assert_eq!(manifest["name"], "omc");
        let programs = ["omc-host", "omc-compiler", "omc-mcp", "omc-net"].map(|name| folder.join("bin").join(name));
        for program in programs {
            let mode = fs::metadata(&program).unwrap_or_else(|_| panic!("{program:?}")).permissions().mode();
            assert_ne!(mode & 0o100, 0, "{program:?} can be started");
        }
        assert_eq!(machine.run(&["bundle", agent, folder.to_str().expect("UTF-8")]).code, Some(1), "not twice");
    }
}

#[test]
fn one_agents_broken_file_keeps_nobody_from_the_other_agent() {
    let machine = Machine::new();
    let settings = machine.world.path("home/.claude/settings.json");
    let codex = [machine.world.path("home/.codex")];
    let before = files(&codex);
    let broken = b"{\"model\": ";
    write(&settings, 0o600, broken);
    for args in [&["install"][..], &["install", "--dry-run"], &["install", "--json"]] {
        let run = machine.run(args);
        let said = String::from_utf8_lossy(&run.stdout) + run.stderr.as_str();
        assert_eq!(run.code, Some(1), "{said}");
        assert!(
            said.contains("Claude Code stays as it is: failed to set up") && said.contains("settings.json"),
            "{said}"
        );
    }
    assert!(fs::read_to_string(machine.world.path("home/.codex/hooks.json")).expect("hooks").contains("omc-host"));
    assert!(!machine.world.path("home/.claude/skills").exists(), "half of an agent is not set up");
    // Nothing of ours is in the broken file, so that it is nobody's problem.
    machine.ok(&["uninstall"]);
    assert_eq!(files(&codex), before);
    assert_eq!(fs::read(&settings).expect("there"), broken);
    let said = machine.ok(&["uninstall"]);
    assert!(said.contains("for the user") && said.contains("--scope project"), "{said}");

    // Something of ours may be in it.
    write(&settings, 0o600, b"{\"hooks\": \"/bin/omc-host\"");
    machine.run(&["install"]);
    let run = machine.run(&["uninstall"]);
    assert!(run.code == Some(1) && run.stderr.contains("Claude Code stays as it is"), "{}", run.stderr);
    assert_eq!(files(&codex), before);
}

#[test]
fn nothing_is_set_up_elsewhere_than_the_environment_says() {
    let machine = Machine::new();
    let (home, project) = (machine.world.home(), machine.world.project());
    create_dirs(&project.join(".claude"));
    let before = files(&[home.clone(), project.clone()]);
    let run = |variable: &str, folder: &Path, args: &[&str]| {
        let mut command = machine.command(&machine.program, args);
        command.env(variable, project.join(".claude")).current_dir(folder);
        Running::start(command, Vec::new()).finish()
    };
    let refused = |variable: &str, args: &[&str]| {
        let run = run(variable, &project, args);
        let (said, stdout) = (run.stderr.as_str(), String::from_utf8_lossy(&run.stdout));
        assert_eq!((run.code, stdout.as_ref()), (Some(1), ""), "{variable} {args:?}: {said}");
        assert!(said.starts_with("omc-host: nothing was changed: ") && said.lines().count() == 1, "{said}");
        assert!(said.contains(&format!("`{variable}` points into the project")), "{said}");
        assert!(said.contains("start it outside of the project, or without the variable"), "{said}");
    };
    for args in [
        &["install"][..],
        &["install", "--dry-run"],
        &["install", "--json", "--agent", "claude"],
        &["install", "--scope", "project"],
        &["uninstall"],
        &["doctor", "--fix"],
        &["doctor", "--fix", "--json"],
    ] {
        for variable in ["CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_STATE_HOME"] {
            refused(variable, args);
        }
    }
    // Of the home only a dry run: what is in its place is the account's own.
    refused("HOME", &["install", "--dry-run"]);
    refused("HOME", &["uninstall", "--dry-run"]);
    assert_eq!(files(&[home, project.clone()]), before);

    // What changes no settings goes on, with a word about it; and so does everything from outside.
    let doctor = run("CLAUDE_CONFIG_DIR", &project, &["doctor"]);
    assert!(String::from_utf8_lossy(&doctor.stdout).contains("`CLAUDE_CONFIG_DIR` points into the project"));
    let plugin = machine.world.path("outside/plugin");
    assert_eq!(run("HOME", &project, &["bundle", "claude", plugin.to_str().expect("UTF-8")]).code, Some(0));
    let shown =
        run("CLAUDE_CONFIG_DIR", &machine.world.path("outside"), &["install", "--dry-run", "--agent", "claude"]);
    let stdout = String::from_utf8_lossy(&shown.stdout);
    assert!(shown.code == Some(0) && stdout.contains("project/.claude/settings.json"), "{stdout}{}", shown.stderr);
}

#[test]
fn bench_shows_the_events_of_a_session_and_leaves_nothing() {
    let machine = Machine::new();
    let before = files(&[machine.world.home(), machine.world.project()]);
    let report: Value = serde_json::from_str(&machine.ok(&["bench", "--runs", "2", "--json"])).expect("JSON");
    let events = report["events"].as_array().expect("events");
    assert_eq!(events[0]["event"], "(bare process)");
    for event in ["SessionStart", "PreToolUse Bash", "Stop", "SessionEnd"] {
        let row = events.iter().find(|row| row["event"] == event).expect("a row");
        assert!(row["p50_ms"].as_f64().is_some_and(|time| time > 0.0) && row["runs"] == 2, "{row}");
    }
    let guests = report["guests"].as_array().expect("guests");
    assert!(guests.iter().any(|row| row["guest"] == "keyword-detector"), "{guests:?}");
    assert!(machine.ok(&["bench", "--runs", "2"]).contains("P95 MS"));
    assert_eq!(files(&[machine.world.home(), machine.world.project()]), before);
    assert_eq!(machine.run(&["bench", "--runs", "0"]).code, Some(64));
}

/// An `.omc` as oh-my-claudecode leaves it: modes of several sessions, notes, memory, a wiki, and members that nobody here knows.
/// Without what lives for a day in both (checkpoints, folders of sessions that ended).
fn state_of_the_original(project: &Path, scanned: SystemTime) -> Vec<(&'static str, String)> {
    let scanned = scanned.duration_since(UNIX_EPOCH).expect("after 1970").as_millis();
    let mode = json!({
        "active": false, "started_at": "2026-11-20T08:00:00.000Z", "session_id": "old-1", "iteration": 3, "max_iterations": 100,
        "prompt": "port the parser", "linked_ultrawork": true, "_meta": {"sessionId": "old-1", "mode": "ralph"}, "x-later": [1],
    });
    let memory = json!({
        "version": "1.0.0", "lastScanned": u64::try_from(scanned).expect("it fits"), "projectRoot": project,
        "techStack": {"languages": [{"name": "Rust", "version": null, "confidence": "high", "markers": ["Cargo.toml"]}],
            "frameworks": [], "packageManager": "cargo", "runtime": null},
        "build": {"buildCommand": "cargo build", "testCommand": "cargo test", "lintCommand": null, "devCommand": null, "scripts": {}},
        "conventions": {"namingStyle": null, "importStyle": null, "testPattern": null, "fileOrganization": null},
        "structure": {"isMonorepo": false, "workspaces": [], "mainDirectories": ["src"], "gitBranches": null},
        "customNotes": [{"timestamp": 1_794_000_000_000_u64, "source": "manual", "category": "env", "content": "needs FOO"}],
        "directoryMap": {}, "hotPaths": [],
        "userDirectives": [{"timestamp": 1_794_000_000_000_u64, "directive": "use tabs", "context": "", "source": "explicit", "priority": "high"}],
    });
    let shared = json!({
        "key": "plan", "value": {"a": 1}, "namespace": "team", "createdAt": "2026-11-20T08:00:00.000Z",
        "updatedAt": "2026-11-20T08:00:00.000Z",
    });
    vec![
        ("state/ralph-state.json", format!("{mode:#}")),
        ("state/sessions/old-1/ralph-state.json", format!("{mode:#}")),
        ("state/mission-state.json", json!({"updatedAt": "2026-11-20T08:00:00.000Z", "missions": []}).to_string()),
        ("state/shared-memory/team/plan.json", format!("{shared:#}")),
        (
            "notepad.md",
            "# Notepad\n<!-- Auto-managed by OMC. Manual edits preserved in MANUAL section. -->\n\n## Priority Context\n\
             <!-- ALWAYS loaded. Keep under 500 chars. Critical discoveries only. -->\nthe schema is frozen\n\n## Working Memory\n\
             <!-- Session notes. Auto-pruned after 7 days. -->\n\n## MANUAL\n<!-- User content. Never auto-pruned. -->\nmine, forever\n"
                .to_owned(),
        ),
        ("project-memory.json", format!("{memory:#}")),
        ("prd.json", json!({"userStories": [{"id": "US-1", "title": "t", "acceptanceCriteria": ["a"], "passes": true}]}).to_string()),
        ("plans/port.md", "# Plan\n".to_owned()),
        ("notepads/port/learnings.md", "# Learnings\n\n## 2026-11-20 08:00:00\n\nit works\n\n".to_owned()),
        ("wiki/parser.md", "---\ntitle: \"Parser\"\ntags: [\"a\"]\ncreated: 2026-11-20T08:00:00.000Z\n---\n\n# Parser\n\nwords\n".to_owned()),
        ("skills/release.md", "---\nname: release\ntriggers:\n  - release notes\n---\nwords\n".to_owned()),
        ("sessions/old-1.json", json!({"session_id": "old-1", "ended_at": "2026-11-20T09:00:00.000Z"}).to_string()),
        ("research/x/unknown.bin", "\u{0}what nobody here knows".to_owned()),
    ]
}

#[test]
fn what_the_original_left_is_neither_lost_nor_rewritten_in_a_whole_session() {
    let machine = Machine::new();
    machine.ok(&["install", "--agent", "claude"]);
    for (path, text) in state_of_the_original(&machine.world.project(), SystemTime::now()) {
        write(&machine.world.path("project/.omc").join(path), 0o600, text.as_bytes());
    }
    let omc = [machine.world.path("project/.omc")];
    let before = files(&omc);
    let event = |name: &str, more: Value| {
        let mut event = json!({"hook_event_name": name, "session_id": "s1", "cwd": machine.world.project()});
        event.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        event
    };
    let bash =
        json!({"tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_response": {"stdout": "", "stderr": ""}});
    for event in [
        event("SessionStart", json!({"source": "startup"})),
        event("UserPromptSubmit", json!({"prompt": "please look at the parser"})),
        event("PreToolUse", bash.clone()),
        event("PostToolUse", bash),
        event("SubagentStart", json!({"agent_id": "agent-1", "agent_type": "explore"})),
        event("SubagentStop", json!({"agent_id": "agent-1", "agent_type": "explore"})),
        event("PreCompact", json!({"trigger": "auto"})),
        event("Stop", json!({"stop_hook_active": false})),
        event("SessionEnd", json!({"reason": "other"})),
    ] {
        let handler = machine.handler("home/.claude/settings.json", event["hook_event_name"].as_str().expect("a name"));
        machine.send(&handler, &event);
    }
    assert!(!machine.world.trail().contains("\"fault\""), "{}", machine.world.trail());
    let after = files(&omc);
    let text =
        |facts: &(u32, Option<Vec<u8>>)| facts.1.as_deref().map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    for (path, facts) in before {
        let name = path.strip_prefix(&omc[0]).expect("below").display().to_string();
        let now = after.get(&path).unwrap_or_else(|| panic!("`{name}` is lost"));
        assert_eq!((now.0, text(now)), (facts.0, text(&facts)), "`{name}` was rewritten");
    }
}

#[test]
fn a_project_is_scanned_again_after_a_day_and_what_a_person_said_stays() {
    let machine = Machine::new();
    machine.ok(&["install", "--agent", "claude"]);
    let long_ago = SystemTime::now() - Duration::from_hours(24 * 10);
    let (path, memory) = ("project/.omc/project-memory.json", "project-memory.json");
    let state = state_of_the_original(&machine.world.project(), long_ago);
    let (_, before) = state.iter().find(|(path, _)| *path == memory).expect("the memory");
    write(&machine.world.path(path), 0o600, before.as_bytes());
    let start = json!({"hook_event_name": "SessionStart", "session_id": "s1", "cwd": machine.world.project(), "source": "startup"});
    machine.send(&machine.handler("home/.claude/settings.json", "SessionStart"), &start);
    let (before, after): (Value, Value) = (serde_json::from_str(before).expect("JSON"), machine.json(path));
    assert_ne!(after["lastScanned"], before["lastScanned"]);
    for kept in ["customNotes", "userDirectives", "version"] {
        assert_eq!(after[kept], before[kept], "{kept}");
    }
}
