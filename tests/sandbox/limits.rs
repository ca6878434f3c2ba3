//! Every limit of the table, each lowered alone.

use std::collections::BTreeSet;

use omc_host::config::Limit;
use serde_json::{Value, json};

use crate::{act, configure, world_with_puppet};

/// What running into a limit comes to.
enum Outcome {
    /// A fault of this kind, whose text names the limit.
    Fault(&'static str),
    /// An error for the guest, and an entry in the record that names the limit.
    Error,
    /// An event that is over before the guest is.
    EventEnds,
}

/// Limits that others of the table stand in front of are out of their way.
const WIDE: &str = "log-bytes = 1_048_576\nmessage-units = 1_000_000\n";

#[test]
fn every_limit_alone_stops_what_is_over_it_and_is_named_and_nothing_else_changes() {
    use Outcome::{Error, EventEnds, Fault};
    let world = world_with_puppet();
    for name in ["a", "b", "c"] {
        crate::write(&world.path("project/.omc").join("folder").join(name), 0o600, &[b'x'; 1_000]);
    }
    // The limit, a low value, steps that are over it and within every default, and what that comes to.
    let cases: &[(Limit, u64, Value, Outcome)] = &[
        (Limit::Fuel, 1_000_000, json!([{"host-calls": 50_000}]), Fault("fuel")),
        (Limit::MemoryBytes, 4 << 20, json!([{"write-bytes": ["/omc/x", 4_000_000]}]), Fault("memory")),
        (Limit::WasmStackBytes, 64 << 10, json!([{"recurse-times": 5_000}]), Fault("stack")),
        (Limit::Tables, 1, json!([]), Fault("tables")),
        (Limit::Instances, 1, json!([]), Fault("instances")),
        (Limit::TableElements, 10, json!([]), Fault("tables")),
        (Limit::HostCalls, 100, json!([{"host-calls": 200}]), Fault("host-calls")),
        (Limit::HostCallBytes, 64 << 10, json!([{"log-of-bytes": 100_000}]), Fault("host-call-bytes")),
        (Limit::Resources, 16, json!([{"hold": ["/omc/folder", 20]}]), Error),
        (Limit::OpenFiles, 3, json!([{"hold": ["/omc/folder/a", 5]}]), Error),
        (Limit::ReadBytes, 100, json!([{"read": "/omc/folder/a"}]), Error),
        (Limit::ListedEntries, 2, json!([{"list": "/omc/folder"}]), Error),
        (Limit::WrittenBytes, 100, json!([{"write-bytes": ["/omc/x", 200]}]), Error),
        (Limit::FileBytes, 100, json!([{"write-bytes": ["/omc/x", 200]}]), Error),
        (Limit::NewFiles, 0, json!([{"create-dir": "/omc/new"}]), Error),
        (Limit::ContextUnits, 10, json!([{"context": "longer than ten units"}]), Error),
        (Limit::MessageUnits, 10, json!([{"message": "longer than ten units"}]), Error),
        (Limit::ReasonUnits, 100, json!([{"ask": "x".repeat(200)}]), Error),
        (Limit::LogBytes, 0, json!([{"log": "a line"}]), Error),
        (Limit::OutputBytes, 0, json!([{"print": "a line"}]), Error),
        (Limit::CallDeadlineMs, 50, json!([{"sleep-ms": 200}]), Fault("deadline")),
        (Limit::EventDeadlineMs, 600, json!([{"sleep-ms": 900}]), EventEnds),
    ];
    let tried: BTreeSet<_> = cases.iter().map(|(limit, ..)| *limit).collect();
    assert_eq!(tried, Limit::ALL.iter().copied().collect(), "every limit of the table is tried");

    for (limit, low, steps, comes) in cases {
        let key = limit.spec().key;
        configure(&world, &format!("[limits]\n{WIDE}"));
        let free = act(&world, steps);
        assert_eq!(free.puppet.get("fault"), None, "{key}: {}", free.puppet);
        assert_eq!(free.puppet.get("refused"), None, "{key}: {}", free.puppet);
        std::fs::remove_dir(world.path("project/.omc/new")).ok();

        let table = match comes {
            // There is one deadline for all guests.
            EventEnds => format!("[limits]\n{WIDE}{key} = {low}\n"),
            _ => format!("[limits]\n{WIDE}[guests.puppet.limits]\n{key} = {low}\n"),
        };
        configure(&world, &table);
        let held = act(&world, steps);
        match comes {
            Fault(kind) => {
                assert_eq!(held.fault(), *kind, "{key}: {}", held.puppet);
                assert!(held.detail().contains(&format!("`{key}` is {low}")), "{key}: {}", held.puppet);
                assert_eq!(held.puppet.get("refused"), None, "{key}: {}", held.puppet);
            }
            Error => {
                assert_eq!(held.puppet.get("fault"), None, "{key}: {}", held.puppet);
                let refused: Vec<_> = held.puppet["refused"].as_array().expect("a refusal").clone();
                let named =
                    |entry: &Value| entry.as_str().is_some_and(|entry| entry.starts_with(&format!("limit: {key}")));
                assert!(refused.len() == 1 && refused.iter().all(named), "{key}: {}", held.puppet);
            }
            EventEnds => assert_eq!(held.fault(), "event-deadline", "{key}: {}", held.puppet),
        }
        world.forget_faults();
        // What the other guest says is the same, to the letter.
        let said = |outcome: &crate::Outcome| {
            let context = outcome.answer["hookSpecificOutput"]["additionalContext"].as_str().unwrap_or_default();
            context.split("longer than ten units").next().map(str::trim_end).map(str::to_owned)
        };
        assert_eq!(said(&held), said(&free), "{key}");
    }
}

#[test]
fn the_stack_of_one_guest_is_not_that_of_another() {
    let world = world_with_puppet();
    // Less than the puppet needs for anything, and the other guest runs as ever.
    configure(
        &world,
        "[guests.keyword-detector.limits]\nwasm-stack-bytes = 2_097_152\n[guests.puppet.limits]\nwasm-stack-bytes = 65_536\n",
    );
    assert_eq!(act(&world, &json!([{"recurse-times": 5_000}])).fault(), "stack");
    configure(&world, "[guests.keyword-detector.limits]\nwasm-stack-bytes = 65_536\n");
    assert_eq!(act(&world, &json!([{"recurse-times": 5_000}])).fault(), "");
}
