//! Texts of guests and payloads that want to be taken for something else.

use serde_json::{Value, json};

use crate::components::adding;
use crate::packed::with_manifest;
use crate::world::World;
use crate::{act, configure, printed, run, world_with_puppet};

/// A line end, a carriage return, colours in both spellings, another line end, a turned direction, a tag.
const HOSTILE: &str = "x\n  guard  1.0  on  forged\r\u{1b}[2K\u{1b}[31mred\u{9b}1m\u{2028}\u{202e}turned\u{e0041}";

/// Whether a text would do anything to a terminal but show itself.
fn acts(text: &str) -> bool {
    text.chars().any(|letter| {
        letter != '\n' && (letter.is_control() || matches!(letter, '\u{2028}' | '\u{202e}' | '\u{e0041}'))
    })
}

#[test]
fn a_manifest_forges_no_line_and_no_colour_anywhere() {
    let world = World::new(&[]);
    let manifest = json!({
        "name": "evil", "version": HOSTILE, "description": HOSTILE,
        "subscriptions": [{"event": "user-prompt-submit"}, {"event": HOSTILE}],
        "requests": [{"capability": "transcript", "reason": HOSTILE}, {"capability": HOSTILE, "reason": "none"}],
    });
    let file = world.path("evil.wasm");
    std::fs::write(&file, with_manifest(&manifest)).expect("written");
    let file = file.to_str().expect("UTF-8");

    let audit = run(&world, ["audit", file]);
    let added = adding(&world, file);
    assert_eq!(added.code, Some(0), "{}", added.stderr);
    act(&world, &json!([{"log": HOSTILE}, {"context": "x"}, {"print": HOSTILE}, {"fail": HOSTILE}]));
    let mut shown = vec![
        ("audit of the file", String::from_utf8_lossy(&audit.stdout).into_owned()),
        ("guests add", String::from_utf8_lossy(&added.stdout).into_owned()),
        ("guests add, errors", added.stderr),
    ];
    for args in
        [&["guests", "list"][..], &["guests", "list", "--json"], &["log"], &["log", "--json"], &["audit", "--json"]]
    {
        shown.push((args[0], String::from_utf8_lossy(&run(&world, args.iter().copied()).stdout).into_owned()));
    }
    shown.push(("trail", world.trail()));
    for (what, text) in &shown {
        assert!(!acts(text), "{what}: {text:?}");
        assert!(!text.lines().any(|line| line.trim_start().starts_with("guard")), "{what} shows a forged line: {text}");
    }
    assert!(world.trail().contains("\"name\":\"evil\""), "it was called");
}

#[test]
fn a_manifest_whose_name_is_no_name_is_refused_without_showing_it() {
    let world = World::new(&[]);
    for name in [HOSTILE, "../../etc/passwd", "A", "", "keyword-detector"] {
        let manifest = json!({"name": name, "version": "1", "subscriptions": []});
        let file = world.path("evil.wasm");
        std::fs::write(&file, with_manifest(&manifest)).expect("written");
        let added = adding(&world, file.to_str().expect("UTF-8"));
        assert_eq!(added.code, Some(1), "{name:?}");
        assert!(!acts(&added.stderr) && added.stderr.lines().count() == 1, "{name:?}: {}", added.stderr);
    }
    assert!(!world.path("home/.local/share/omc-host/guests.json").exists());
}

#[test]
fn ten_megabytes_of_log_are_a_short_record() {
    let world = world_with_puppet();
    let before = world.trail().len();
    let outcome = act(&world, &json!([{"log-of-bytes": 10 << 20}, {"log-times": 20_000}]));
    assert_eq!(outcome.fault(), "");
    assert!(outcome.puppet["refused"][0].as_str().is_some_and(|entry| entry.starts_with("limit: log-bytes ×")));
    assert!(world.trail().len() - before < 64 << 10, "{} bytes", world.trail().len() - before);
}

#[test]
fn payloads_are_in_the_trail_only_when_the_operator_says_so_and_everybody_can_see_that() {
    let world = world_with_puppet();
    let secret = "sk-secret-4711";
    let steps = json!([{"unknown": secret}]);
    act(&world, &steps);
    assert!(!printed(&world, ["guests", "list"]).contains("log-payloads"));
    let quiet = world.trail().replace("unknown step", "");
    assert!(!quiet.contains("\"payload\"") && !quiet.contains(secret), "{quiet}");

    // A project cannot switch it on.
    std::fs::write(world.path("project/omc-host.toml"), "log-payloads = true\n").expect("written");
    act(&world, &steps);
    assert!(!world.trail().contains("\"payload\""));

    configure(&world, "log-payloads = true\n");
    let before = world.trail().len();
    act(&world, &steps);
    let trail = world.trail();
    let records: Vec<Value> =
        trail[before..].lines().map(|line| serde_json::from_str(line).expect("a record")).collect();
    let says_so = |record: &Value| record["note"].as_str().is_some_and(|note| note.contains("`log-payloads` is on"));
    assert!(records.len() >= 3 && records.iter().all(says_so), "{records:#?}");
    assert!(records.iter().any(|record| record["payload"].as_str().is_some_and(|payload| payload.contains(secret))));
    assert!(printed(&world, ["guests", "list"]).contains("`log-payloads` is on"));
    assert!(printed(&world, ["log"]).contains("payload {"));
}
