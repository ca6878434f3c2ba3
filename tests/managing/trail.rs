//! What guests did, as `log`, `guests stats` and the audit show it.

use serde_json::{Value, json};

use crate::{act, printed, world_with};

#[test]
fn the_log_is_filtered_and_the_numbers_add_up() {
    let world = world_with(&["omc=rw:/omc"]);
    act(&world, "puppet", &json!([{"log": "fine"}]));
    act(&world, "puppet", &json!([{"fail": "not fine"}]));
    act(&world, "puppet", &json!([{"trap": 1}]));
    let lines = |args: &[&str]| {
        let shown = printed(&world, [&["log", "--json", "--guest", "puppet"], args].concat());
        shown.lines().inspect(|line| drop(serde_json::from_str::<Value>(line).expect("a record"))).count()
    };
    assert_eq!(lines(&[]), 3);
    assert_eq!((lines(&["--fault"]), lines(&["--fault", "trap"]), lines(&["--fault", "fuel"])), (2, 1, 0));
    assert_eq!((lines(&["--event", "user-prompt-submit"]), lines(&["--event", "stop"])), (3, 0));
    assert_eq!((lines(&["--session", "s1"]), lines(&["--session", "s2"])), (3, 0));
    assert_eq!((lines(&["--since", "1h"]), lines(&["--until", "2026-01-01"]), lines(&["--last", "1"])), (3, 0, 1));
    let shown = printed(&world, ["log", "--guest", "puppet", "--fault", "trap"]);
    assert!(shown.lines().next().is_some_and(|line| line.contains("FUEL")), "{shown}");
    assert_eq!(printed(&world, ["log", "--session", "s2"]), "the trail has no such records\n");

    let stats: Value = serde_json::from_str(&printed(&world, ["guests", "stats", "puppet", "--json"])).expect("JSON");
    assert_eq!((&stats[0]["calls"], &stats[0]["faults"]), (&json!(3), &json!(2)));
    assert_eq!(stats[0]["faults-by-kind"], json!({"guest": 1, "trap": 1}));
    assert!(stats[0]["fuel-max"].as_u64() >= stats[0]["fuel-p50"].as_u64());
    let table = printed(&world, ["guests", "stats"]);
    assert!(table.contains("keyword-detector") && table.contains("guest ×1, trap ×1"), "{table}");
    assert_eq!(printed(&world, ["guests", "stats", "--until", "2026-01-01"]), "the trail has no calls of that time\n");
}
