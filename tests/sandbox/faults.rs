//! Guests that fault again and again.

use serde_json::{Value, json};

use crate::world::World;
use crate::{Outcome, act, configure, printed, world_with_puppet};

fn trap(world: &World) -> Outcome {
    act(world, &json!([{"trap": null}]))
}

/// Lets time pass for the guests that are set aside.
fn pass_minutes(world: &World, minutes: u64) {
    let path = world.path("home/.local/state/omc-host/faults.json");
    let mut faults: Value = serde_json::from_slice(&std::fs::read(&path).expect("faults are counted")).expect("JSON");
    for (_, streak) in faults["guests"].as_object_mut().expect("guests") {
        for time in ["until", "last"] {
            let moment = streak[time].as_u64().expect("a time");
            streak[time] = json!(moment.saturating_sub(minutes * 60_000));
        }
    }
    std::fs::write(&path, faults.to_string()).expect("written");
}

#[test]
fn a_guest_that_faults_again_and_again_is_set_aside_and_comes_back() {
    let world = world_with_puppet();
    for _ in 0..4 {
        let outcome = trap(&world);
        assert_eq!((outcome.fault(), outcome.notes.len()), ("trap", 0));
    }
    let fifth = trap(&world);
    let begins = "the guest `puppet` is set aside for 1 min after 5 faults in a row, the last of them `trap`";
    assert_eq!((fifth.fault(), fifth.notes.as_slice()), ("trap", [begins.to_owned()].as_slice()));

    // It is not called, even where it would do well, and people can see why.
    let sixth = act(&world, &json!([]));
    assert_eq!((&sixth.puppet, sixth.notes.len()), (&Value::Null, 0));
    let list = printed(&world, ["guests", "list"]);
    assert!(list.contains("set-aside") && list.contains("`puppet` is set aside until"), "{list}");
    let guests: Value = serde_json::from_str(&printed(&world, ["guests", "list", "--json"])).expect("JSON");
    let puppet =
        guests.as_array().expect("guests").iter().find(|guest| guest["name"] == "puppet").expect("it is there");
    assert_eq!((&puppet["state"], &puppet["set-aside"]["faults"]), (&json!("set-aside"), &json!(5)));

    // One more chance; it faults again, and the time doubles.
    pass_minutes(&world, 1);
    let seventh = trap(&world);
    assert!(seventh.notes[0].contains("for 2 min after 6 faults"), "{:?}", seventh.notes);
    assert_eq!(act(&world, &json!([])).puppet, Value::Null);

    // The next chance it takes.
    pass_minutes(&world, 2);
    let back = act(&world, &json!([]));
    assert_eq!((back.fault(), back.notes.as_slice()), ("", ["the guest `puppet` works again".to_owned()].as_slice()));
    assert!(!world.path("home/.local/state/omc-host/faults.json").exists(), "nothing is left to look at");
    assert!(printed(&world, ["guests", "list"]).contains("puppet"));
    assert!(!printed(&world, ["guests", "list"]).contains("set-aside"));
}

#[test]
fn an_error_of_the_guests_own_counts_and_a_success_in_between_begins_anew() {
    let world = world_with_puppet();
    for round in 0..2 {
        for _ in 0..4 {
            assert_eq!(act(&world, &json!([{"fail": "no"}])).fault(), "guest", "round {round}");
        }
        assert_eq!(act(&world, &json!([])).fault(), "");
    }
}

#[test]
fn a_required_guest_is_never_set_aside() {
    let world = world_with_puppet();
    configure(&world, "[guests.puppet]\nrequired = true\n");
    let event = json!({
        "hook_event_name": "PreToolUse", "session_id": "s1", "cwd": world.project(),
        "tool_name": "Bash", "tool_input": {"command": "ls"}, "puppet": [{"trap": null}],
    });
    for _ in 0..8 {
        let host = world.host(["hook", "--agent", "claude"]);
        let run = crate::Running::start(host, event.to_string().into_bytes()).finish();
        assert!(String::from_utf8_lossy(&run.stdout).contains("could not judge (trap)"));
    }
    assert!(!world.path("home/.local/state/omc-host/faults.json").exists());
}
