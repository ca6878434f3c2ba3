//! Grants, switches and checks of guests that are there; and what a project has to say to that.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use serde_json::{Value, json};

use crate::world::{World, create_dirs, write};
use crate::{act, change, configure, entry, printed, refused, run, world_with};

/// What the puppet finds out in one event.
fn logged(world: &World, steps: &Value) -> String {
    act(world, "puppet", steps)["log"].to_string()
}

#[test]
fn grants_are_given_and_taken_part_by_part_and_hold_from_the_next_event_on() {
    let world = world_with(&["read=project:docs/**/*.md"]);
    write(&world.path("project/docs/a.md"), 0o600, b"12345");
    write(&world.path("project/b.md"), 0o600, b"12345");
    let steps = json!([{"read-file": ["project", "docs/a.md"]}, {"read-file": ["project", "b.md"]}, {"write": ["/omc/notes/x", "1"]}]);
    let seen = logged(&world, &steps);
    assert!(seen.contains("project:docs/a.md: ok 5") && seen.contains("project:b.md: error"), "{seen}");
    assert!(seen.contains("write /omc/notes/x: error"), "{seen}");

    create_dirs(&world.path("project/.omc/notes"));
    let shown = printed(&world, ["guests", "grant", "puppet", "read=project:*.md", "omc=rw:/omc/notes", "allow"]);
    assert_eq!(shown, "`puppet` is granted: read project:docs/**/*.md, read project:*.md, omc rw:/omc/notes, allow\n");
    let seen = logged(&world, &steps);
    assert!(seen.contains("project:b.md: ok 5") && seen.contains("write /omc/notes/x: ok 1"), "{seen}");

    let why = refused(&world, ["guests", "revoke", "puppet", "omc=rw:/omc/notes/sub"]);
    assert!(why.contains("revoke the whole, `rw:/omc/notes`, and grant what is to remain"), "{why}");
    assert_eq!(
        printed(&world, ["guests", "revoke", "puppet", "read=project:*.md", "omc"]),
        "`puppet` is granted: allow, read project:docs/**/*.md\n"
    );
    let seen = logged(&world, &steps);
    assert!(seen.contains("project:b.md: error") && seen.contains("write /omc/notes/x: error"), "{seen}");
    assert_eq!(printed(&world, ["guests", "revoke", "puppet", "allow", "read"]), "`puppet` is granted nothing\n");
    assert_eq!(entry(&world, "puppet")["grants"], json!([]));
}

#[test]
fn decisions_and_rewriting_are_grants_of_their_own() {
    let world = world_with(&["omc=rw:/omc"]);
    let ask = |decision: &str| {
        let record = act(&world, "puppet", &json!([{decision: "x"}]));
        (record["decision"].clone(), record["refused"].to_string())
    };
    assert_eq!(ask("halt"), (json!("block"), "[\"halt ×1\"]".to_owned()));
    assert_eq!(ask("allow"), (json!("pass"), "[\"allow ×1\"]".to_owned()));
    printed(&world, ["guests", "grant", "puppet", "halt"]);
    assert_eq!(ask("halt"), (json!("halt"), "null".to_owned()));
    assert_eq!(ask("allow").0, json!("pass"), "one is not the other");
}

#[test]
fn a_switch_changes_one_word_of_the_configuration_and_keeps_a_copy() {
    let world = world_with(&[]);
    let file = world.path("home/.config/omc-host/config.toml");
    let before = "# mine\n[guests.puppet] # theirs\norder = 7\n\n[limits]\nfuel = 2_000_000_000\n";
    configure(&world, before);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).expect("a mode");
    assert_eq!(printed(&world, ["guests", "disable", "puppet"]), "`puppet` is off\n");
    let after = before.replace("theirs\n", "theirs\nenabled = false\n");
    assert_eq!(fs::read_to_string(&file).expect("a file"), after);
    assert_eq!(fs::read_to_string(file.with_extension("toml.bak")).expect("a copy"), before);
    assert_eq!(fs::metadata(&file).expect("a file").permissions().mode() & 0o777, 0o640);
    assert_eq!(act(&world, "puppet", &json!([])), Value::Null, "it is not called");
    assert_eq!(printed(&world, ["guests", "enable", "puppet"]), "`puppet` is on\n");
    assert_ne!(act(&world, "puppet", &json!([])), Value::Null);
    // Ours have the same switch, and a link stays one.
    let real = world.path("outside/config.toml");
    fs::rename(&file, &real).expect("moved");
    symlink(&real, &file).expect("a link");
    assert_eq!(printed(&world, ["guests", "enable", "workflow-drift-guard"]), "`workflow-drift-guard` is on\n");
    assert!(fs::symlink_metadata(&file).expect("a link").is_symlink());
    assert!(fs::read_to_string(&real).expect("a file").ends_with("\n[guests.workflow-drift-guard]\nenabled = true\n"));
}

#[test]
fn a_required_guest_is_not_switched_off_and_a_broken_file_is_not_touched() {
    let world = world_with(&[]);
    configure(&world, "[guests.puppet]\nrequired = true\n");
    let why = refused(&world, ["guests", "disable", "puppet"]);
    assert!(why.contains("`puppet` is required, which keeps it on"), "{why}");
    configure(&world, "[guests.puppet\n");
    let why = refused(&world, ["guests", "disable", "puppet"]);
    assert!(why.contains("it is not valid TOML; mend it first"), "{why}");
    assert_eq!(
        fs::read_to_string(world.path("home/.config/omc-host/config.toml")).expect("a file"),
        "[guests.puppet\n"
    );
}

/// What was done to a guest's files, and what is said about it.
type Damage<'a> = (&'a str, &'a dyn Fn(&World), &'a str);

#[test]
fn every_change_of_a_guests_files_is_found() {
    let whole = |world: &World| run(world, ["guests", "verify", "puppet"]);
    let world = world_with(&[]);
    assert_eq!(whole(&world).code, Some(0), "{}", String::from_utf8_lossy(&whole(&world).stdout));
    assert_eq!(run(&world, ["guests", "verify"]).code, Some(0), "ours and theirs");

    let data = "home/.local/share/omc-host";
    let component = |world: &World| {
        let mut files =
            fs::read_dir(world.path(data).join("guests")).expect("guests").map(|entry| entry.expect("an entry").path());
        files.next().expect("a component")
    };
    let cases: &[Damage<'_>] = &[
        (
            "its bytes",
            &|world| {
                let file = component(world);
                let mut bytes = fs::read(&file).expect("bytes");
                bytes.extend([0, 1, 0]);
                fs::write(file, bytes).expect("written");
            },
            "are not those that were agreed to; add it again",
        ),
        ("no bytes", &|world| fs::remove_file(component(world)).expect("removed"), "cannot be read"),
        (
            "everybody's",
            &|world| fs::set_permissions(component(world), fs::Permissions::from_mode(0o666)).expect("a mode"),
            "can be written by others",
        ),
        (
            "compiled code",
            &|world| fs::remove_dir_all(world.path("home/.cache/omc-host/code")).expect("removed"),
            "no compiled code",
        ),
        (
            "more in the list than in the component",
            &|world| {
                let list = world.path(data).join("guests.json");
                let mut lock: Value = serde_json::from_slice(&fs::read(&list).expect("a list")).expect("JSON");
                lock["guests"][0]["manifest"]["requests"]
                    .as_array_mut()
                    .expect("requests")
                    .push(json!({"capability": "env", "scope": ["HOME"], "reason": "x"}));
                lock["guests"][0]["grants"] = json!([{"capability": "env", "scope": ["HOME"]}]);
                write(&list, 0o600, lock.to_string().as_bytes());
            },
            "the lock file says something else",
        ),
    ];
    for (what, damage, expected) in cases {
        let world = world_with(&[]);
        damage(&world);
        let run = whole(&world);
        let shown = String::from_utf8_lossy(&run.stdout);
        assert_eq!(run.code, Some(1), "{what}: {shown}");
        assert!(shown.contains(expected), "{what}: {shown}");
    }
    let world = world_with(&[]);
    write(&world.path(data).join("guests/stray.wasm"), 0o600, b"x");
    let run = run(&world, ["guests", "verify"]);
    assert_eq!(run.code, Some(1));
    assert!(String::from_utf8_lossy(&run.stdout).contains("stray.wasm` belongs to no guest"));
}

#[test]
fn changed_bytes_are_found_by_the_doctor_and_an_update_brings_back_those_that_were_agreed_to() {
    let world = world_with(&["env=PUPPET"]);
    let file = fs::read_dir(world.path("home/.local/share/omc-host/guests")).expect("guests").next();
    let file = file.expect("a component").expect("an entry").path();
    let bytes = fs::read(&file).expect("bytes");
    fs::write(&file, [&bytes[..], &[0, 1, 0]].concat()).expect("written");
    let doctor = |world: &World| String::from_utf8_lossy(&run(world, ["doctor"]).stdout).into_owned();
    let complaint = "are not those that were agreed to";
    assert!(doctor(&world).contains(complaint), "{}", doctor(&world));
    let updated = change(&world, &["update", "puppet"]);
    assert_eq!(updated.code, Some(0), "{}", updated.stderr);
    assert_eq!(fs::read(&file).expect("bytes"), bytes);
    assert!(!doctor(&world).contains(complaint), "{}", doctor(&world));
    assert_eq!(entry(&world, "puppet")["grants"], json!([{"capability": "env", "scope": ["PUPPET"]}]));
    assert!(printed(&world, ["guests", "update"]).contains("is up to date"));
}

#[test]
fn nothing_in_a_project_adds_a_guest_or_widens_what_one_may_do() {
    let world = world_with(&["env=PUPPET"]);
    let lock = fs::read(world.path("home/.local/share/omc-host/guests.json")).expect("a lock file");
    let widened = String::from_utf8_lossy(&lock).replace("PUPPET", "HOME");
    for place in ["project", "project/.omc", "project/.local/share/omc-host", "project/.config/omc-host"] {
        write(&world.path(place).join("guests.json"), 0o600, widened.as_bytes());
    }
    let key = "RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3";
    let toml = format!(
        "trusted-keys = [\"{key}\"]\nrequire-signature = [\"{key}\"]\n[telemetry]\nendpoint = \"http://127.0.0.1:9\"\ntexts = true\n\
         [guests.puppet]\nenabled = true\n"
    );
    for file in ["project/omc-host.toml", "project/.omc/config.toml", "project/.config/omc-host/config.toml"] {
        write(&world.path(file), 0o600, toml.as_bytes());
    }
    let all = json!([
        {"env": "HOME"}, {"transcript": 10}, {"read-file": ["project", "README.md"]}, {"write": ["/omc/x", "1"]}, {"git": 1},
        {"write": ["/omc/guests.json", "{}"]}, {"session-env": ["PUPPET_STAGE", "x"]}, {"update-input": {}}, {"halt": "x"}
    ]);
    let record = act(&world, "puppet", &all);
    assert_eq!(record.get("fault"), None, "its signature is not the project's business: {record}");
    assert_eq!(record["decision"], "block", "halt is not granted");
    let seen = record["log"].to_string();
    assert!(!seen.contains(": ok") && !seen.contains("Some(\\\""), "{seen}");
    let notes = world.trail();
    assert!(
        notes.contains("a project cannot set whose signatures count")
            && notes.contains("a project cannot set `telemetry`"),
        "{notes}"
    );
    // Neither do the commands listen to it.
    assert_eq!(printed(&world, ["telemetry", "send"]), "telemetry is off: the configuration names no endpoint\n");
    let list: Value = serde_json::from_str(&printed(&world, ["guests", "list", "--json"])).expect("JSON");
    let puppet = list.as_array().expect("guests").iter().find(|guest| guest["name"] == "puppet").expect("it is there");
    assert_eq!((puppet["state"].as_str(), &puppet["signed-by"]), (Some("on"), &Value::Null));
    assert_eq!(fs::read(world.path("home/.local/share/omc-host/guests.json")).expect("a lock file"), lock);
}
