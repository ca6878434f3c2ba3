//! One real-looking event of each kind, for the tests of this module.

use serde_json::{Map, Value};

use super::event::{Agent, Event};

/// One line an event: the agent that sends it, and what it sends.
const EVENTS: &str = include_str!("testdata/events.jsonl");

/// Every sample, with the agent that sends it.
pub(crate) fn payloads() -> Vec<(Agent, Map<String, Value>)> {
    let sample = |line| {
        let sample: Value = serde_json::from_str(line).unwrap();
        let agent = if sample["agent"] == "codex" { Agent::Codex } else { Agent::Claude };
        (agent, sample["event"].as_object().unwrap().clone())
    };
    EVENTS.lines().map(sample).collect()
}

/// The sample of an agent's event.
pub(crate) fn event(agent: Agent, spelling: &str) -> Event {
    let mut payloads = payloads().into_iter();
    let found = payloads.find(|(from, payload)| *from == agent && payload["hook_event_name"] == spelling);
    let (_, payload) = found.unwrap_or_else(|| panic!("no sample of {spelling}"));
    Event::new(agent, payload)
}

/// Every order of `0..length`.
pub(crate) fn permutations(length: usize) -> Vec<Vec<usize>> {
    let Some(last) = length.checked_sub(1) else { return vec![Vec::new()] };
    let insert = |order: Vec<usize>| {
        (0..length).map(move |at| {
            let mut order = order.clone();
            order.insert(at, last);
            order
        })
    };
    permutations(last).into_iter().flat_map(insert).collect()
}
