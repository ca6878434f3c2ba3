use serde_json::{Map, json};

use super::*;
use crate::protocol::event::Agent;
use crate::protocol::samples::{self, permutations};

const CLAUDE: Agent = Agent::Claude;
const CODEX: Agent = Agent::Codex;

fn opinion(guest: &str, decision: Decision) -> Opinion {
    Opinion { guest: guest.to_owned(), decision, effects: Effects::default() }
}

fn ask(reason: &str) -> Decision {
    Decision::Ask(reason.to_owned())
}

fn block(reason: &str) -> Decision {
    Decision::Block(reason.to_owned())
}

fn halt(reason: &str) -> Decision {
    Decision::Halt(reason.to_owned())
}

fn with_context(guest: &str, context: &str) -> Opinion {
    let effects = Effects { context: vec![context.to_owned()], ..Effects::default() };
    Opinion { effects, ..opinion(guest, Decision::Pass) }
}

fn with_input(guest: &str, decision: Decision, input: Value) -> Opinion {
    let effects = Effects { updated_input: Some(input), ..Effects::default() };
    Opinion { effects, ..opinion(guest, decision) }
}

fn dropped(merged: &Merged) -> Vec<(&str, &str, Why)> {
    merged.dropped.iter().map(|dropped| (dropped.guest.as_str(), dropped.what, dropped.why)).collect()
}

#[test]
fn the_strongest_decision_wins() {
    let cases = [
        (vec![], Decision::Pass),
        (vec![Decision::Pass, Decision::Pass], Decision::Pass),
        (vec![Decision::Pass, Decision::Allow], Decision::Allow),
        (vec![Decision::Allow, ask("a")], ask("a")),
        (vec![ask("a"), ask("b")], ask("a\n\nb")),
        (vec![Decision::Allow, ask("a"), block("no")], block("no")),
        (vec![block("no"), Decision::Pass, block("never")], block("no\n\nnever")),
        (vec![block("no"), halt("end"), Decision::Allow], halt("end")),
    ];
    let event = samples::event(CLAUDE, "PreToolUse");
    for (decisions, expected) in cases {
        let opinions: Vec<Opinion> = decisions.into_iter().map(|decision| opinion("g", decision)).collect();
        assert_eq!(merge(&event, &opinions).decision, expected, "{opinions:?}");
    }
}

#[test]
fn no_order_of_the_guests_changes_the_verdict_or_loses_a_text() {
    let full = |guest: &str, decision| Opinion {
        guest: guest.to_owned(),
        decision,
        effects: Effects {
            context: vec![format!("context of {guest}")],
            messages: vec![format!("message of {guest}")],
            ..Effects::default()
        },
    };
    let all = [
        full("a", Decision::Pass),
        full("b", Decision::Allow),
        full("c", ask("reason of c")),
        full("d", block("reason of d")),
        full("e", block("reason of e")),
        full("f", halt("reason of f")),
    ];
    let lines = |text: Option<&str>| {
        let mut lines: Vec<String> = text.unwrap_or_default().lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    for (agent, payload) in samples::payloads() {
        let event = Event::new(agent, payload);
        // Every subset of the guests, every order of it.
        for subset in 0..1_u32 << all.len() {
            let chosen: Vec<&Opinion> =
                all.iter().enumerate().filter(|(bit, _)| subset & 1 << bit != 0).map(|(_, opinion)| opinion).collect();
            if chosen.len() > 4 {
                continue;
            }
            let mut expected: Option<Merged> = None;
            for order in permutations(chosen.len()) {
                let opinions: Vec<Opinion> = order.into_iter().map(|at| chosen[at].clone()).collect();
                let merged = merge(&event, &opinions);
                let expected = expected.get_or_insert_with(|| merged.clone());
                assert_eq!(merged.decision.name(), expected.decision.name());
                assert_eq!(lines(merged.decision.reason()), lines(expected.decision.reason()));
                assert_eq!(lines(merged.context.as_deref()), lines(expected.context.as_deref()));
                assert_eq!(lines(merged.message.as_deref()), lines(expected.message.as_deref()));
                assert_eq!(merged.dropped.len(), expected.dropped.len());
            }
        }
    }
}

#[test]
fn no_guest_can_weaken_anothers_refusal() {
    let others = [Decision::Pass, Decision::Allow, ask("a"), halt("h")];
    for (agent, payload) in samples::payloads() {
        let event = Event::new(agent, payload);
        let alone = merge(&event, &[opinion("guard", block("no"))]).decision;
        for other in &others {
            let both = merge(&event, &[opinion("other", other.clone()), opinion("guard", block("no"))]).decision;
            assert!(both.rank() >= alone.rank(), "{other:?} on {event:?}");
        }
    }
}

#[test]
fn what_an_event_cannot_carry_falls_back_or_is_dropped_and_recorded() {
    use Why::{BecameBlock, BecameHalt, NotCarried};
    let asked = format!("sure?{PARAGRAPH}{ASK_THE_USER}");
    let cases = [
        (CODEX, "PreToolUse", ask("sure?"), block(&asked), Some(("ask", BecameBlock))),
        (CODEX, "PreToolUse", ask(" "), block(ASK_THE_USER), Some(("ask", BecameBlock))),
        (CODEX, "PreToolUse", halt("end"), block("end"), Some(("halt", BecameBlock))),
        (CODEX, "PreToolUse", Decision::Allow, Decision::Pass, Some(("allow", NotCarried))),
        (CODEX, "PermissionRequest", halt("end"), block("end"), Some(("halt", BecameBlock))),
        (CODEX, "PermissionRequest", ask("sure?"), ask("sure?"), None),
        (CODEX, "PreCompact", block("no"), block("no"), Some(("block", BecameHalt))),
        (CODEX, "SessionStart", block("no"), Decision::Pass, Some(("block", NotCarried))),
        (CODEX, "SubagentStart", halt("end"), Decision::Pass, Some(("halt", NotCarried))),
        (CODEX, "Interrupt", block("no"), Decision::Pass, Some(("block", NotCarried))),
        (CLAUDE, "PreToolUse", ask("sure?"), ask("sure?"), None),
        (CLAUDE, "PreToolUse", halt("end"), halt("end"), None),
        (CLAUDE, "Stop", halt("end"), Decision::Pass, Some(("halt", NotCarried))),
        (CLAUDE, "Stop", Decision::Allow, Decision::Pass, Some(("allow", NotCarried))),
        (CLAUDE, "Stop", ask("sure?"), Decision::Pass, Some(("ask", NotCarried))),
        (CLAUDE, "PreCompact", halt("end"), block("end"), Some(("halt", BecameBlock))),
        (CLAUDE, "Notification", block("no"), Decision::Pass, Some(("block", NotCarried))),
        (CLAUDE, "WorktreeCreate", block("no"), Decision::Pass, Some(("block", NotCarried))),
    ];
    for (agent, spelling, decision, expected, record) in cases {
        let merged = merge(&samples::event(agent, spelling), &[opinion("g", decision.clone())]);
        assert_eq!(merged.decision, expected, "{decision:?} on {spelling} of {agent:?}");
        let record: Vec<_> = record.map(|(what, why)| ("g", what, why)).into_iter().collect();
        assert_eq!(dropped(&merged), record, "{decision:?} on {spelling} of {agent:?}");
    }
}

#[test]
fn a_refusal_without_a_reason_gets_one_that_names_the_guest() {
    for reason in ["", "  \n\t"] {
        for decision in [ask(reason), block(reason), halt(reason)] {
            for agent in [CLAUDE, CODEX] {
                let merged =
                    merge(&samples::event(agent, "PermissionRequest"), &[opinion("tidy-guest", decision.clone())]);
                assert!(merged.decision.reason().is_some_and(|reason| reason.contains("`tidy-guest`")), "{merged:?}");
            }
        }
    }
}

#[test]
fn on_a_permission_request_a_block_beats_an_allow() {
    for agent in [CLAUDE, CODEX] {
        for order in permutations(3) {
            let all = [opinion("a", Decision::Allow), opinion("b", block("no")), opinion("c", Decision::Allow)];
            let opinions: Vec<Opinion> = order.into_iter().map(|at| all[at].clone()).collect();
            assert_eq!(merge(&samples::event(agent, "PermissionRequest"), &opinions).decision, block("no"));
        }
    }
}

#[test]
fn texts_are_joined_in_configured_order_and_blank_ones_left_out() {
    let effects = |context: &[&str], messages: &[&str]| Effects {
        context: context.iter().map(|&text| text.to_owned()).collect(),
        messages: messages.iter().map(|&text| text.to_owned()).collect(),
        ..Effects::default()
    };
    let opinions = [
        Opinion { effects: effects(&["one", " "], &["m1"]), ..opinion("a", Decision::Pass) },
        Opinion { effects: effects(&["two", "three"], &["", "m2"]), ..opinion("b", Decision::Pass) },
    ];
    let merged = merge(&samples::event(CLAUDE, "UserPromptSubmit"), &opinions);
    assert_eq!(merged.context.as_deref(), Some("one\n\ntwo\n\nthree"));
    assert_eq!(merged.message.as_deref(), Some("m1\nm2"));
    assert_eq!(dropped(&merged), []);

    let merged = merge(&samples::event(CLAUDE, "PreCompact"), &opinions);
    assert_eq!((merged.context, merged.message.as_deref()), (None, Some("one\nm1\ntwo\nthree\nm2")));

    let merged = merge(&samples::event(CODEX, "SessionEnd"), &opinions);
    assert_eq!((merged.context.as_deref(), merged.message.as_deref()), (None, None));
    let lost = ["context", "message", "context", "context", "message"];
    assert_eq!(merged.dropped.iter().map(|dropped| dropped.what).collect::<Vec<_>>(), lost);
}

/// Texts that are too long for either agent, with a character that takes different lengths in each.
fn long_texts() -> [(Agent, String); 5] {
    [
        (CLAUDE, "파서 한 줄\n".repeat(3_000)),
        (CODEX, "파서 한 줄\n".repeat(3_000)),
        (CLAUDE, "🚀".repeat(20_000)),
        (CODEX, "🚀".repeat(20_000)),
        (CODEX, format!("short\n{}", "x".repeat(20_000))),
    ]
}

#[test]
fn a_text_over_the_cap_is_whole_until_it_is_made_to_fit() {
    for (agent, long) in long_texts() {
        let event = samples::event(agent, "SubagentStart");
        let merged = merge(&event, &[with_context("first", "mandatory"), with_context("second", &long)]);
        assert_eq!(merged.context, Some(format!("mandatory\n\n{long}")));
        assert_eq!(dropped(&merged), []);
    }
}

#[test]
fn of_a_text_over_the_cap_the_model_gets_beginning_end_and_where_the_whole_is() {
    for (agent, long) in long_texts() {
        let event = samples::event(agent, "SubagentStart");
        let opinions =
            [with_context("first", "mandatory"), with_context("second", &long), with_context("third", "late")];
        let mut saved = None;
        let merged = merge(&event, &opinions).fit(event.contract(), &mut |whole| {
            saved = Some(whole.to_owned());
            Some("`.omc/spill/a.txt`".to_owned())
        });
        assert_eq!(saved, Some(format!("mandatory\n\n{long}\n\nlate")));
        let context = merged.context.as_deref().expect("a context");
        let cap = event.contract().cap;
        assert!((cap.limit / 2..=cap.limit).contains(&cap.measure(context)), "{}", cap.measure(context));
        let (beginning, rest) = context.split_once("\n\n[The middle").expect("a note");
        let (note, end) = rest.split_once("]\n\n").expect("the note's end");
        assert!(note.contains("`.omc/spill/a.txt`"));
        assert!(beginning.starts_with("mandatory\n\n") && end.ends_with("late"));
        assert!(beginning.len() > end.len());
        if long.starts_with('파') {
            assert!(beginning.ends_with('줄') && end.starts_with('파'), "cut within a line");
        }
        let expected = [("second", "context", Why::Spilled), ("third", "context", Why::Spilled)];
        assert_eq!(dropped(&merged), expected);
    }
}

#[test]
fn without_a_place_for_the_whole_a_text_is_cut_at_a_line_and_says_so() {
    for (agent, long) in long_texts() {
        for place in [None, Some("p".repeat(6_000))] {
            let event = samples::event(agent, "SubagentStart");
            let opinions =
                [with_context("first", "mandatory"), with_context("second", &long), with_context("third", "late")];
            let merged = merge(&event, &opinions).fit(event.contract(), &mut |_| place.clone());
            let context = merged.context.as_deref().expect("a context");
            let cap = event.contract().cap;
            assert!((cap.limit / 2..=cap.limit).contains(&cap.measure(context)), "{}", cap.measure(context));
            let kept = context.strip_suffix(CUT_NOTE).expect("a note");
            assert!(kept.starts_with("mandatory\n\n"));
            assert!(!long.starts_with('파') || kept.ends_with('줄'), "cut within a line");
            let expected = [("second", "context", Why::OverCap), ("third", "context", Why::OverCap)];
            assert_eq!(dropped(&merged), expected);
        }
    }
}

#[test]
fn what_fits_is_neither_saved_nor_changed_and_every_text_is_looked_at() {
    let exactly = "x".repeat(10_000);
    let event = samples::event(CODEX, "SubagentStart");
    let merged = merge(&event, &[with_context("g", &exactly)]).fit(event.contract(), &mut |_| panic!("saved"));
    assert_eq!(merged.context, Some(exactly));

    let long = "가".repeat(12_000);
    let effects = Effects { context: vec![long.clone()], messages: vec![long.clone()], ..Effects::default() };
    let all = Opinion { effects, ..opinion("g", block(&long)) };
    let event = samples::event(CLAUDE, "PreToolUse");
    let mut saved = 0;
    let merged = merge(&event, &[all]).fit(event.contract(), &mut |_| {
        saved += 1;
        None
    });
    assert_eq!(saved, 3);
    let kinds: Vec<&str> = merged.dropped.iter().map(|dropped| dropped.what).collect();
    assert_eq!(kinds, ["reason", "context", "message"]);
}

#[test]
fn a_weaker_decision_is_recorded_as_outvoted() {
    let opinions = [opinion("a", Decision::Allow), opinion("b", block("no")), opinion("c", ask("sure?"))];
    let merged = merge(&samples::event(CLAUDE, "PreToolUse"), &opinions);
    assert_eq!(dropped(&merged), [("a", "allow", Why::Outvoted), ("c", "ask", Why::Outvoted)]);
}

#[test]
fn no_text_acts_on_a_terminal() {
    let hostile = "a\u{1b}[2J\u{1b}]0;owned\u{7}\r\nb\rc\0\u{9b}31m\u{7f}\ttab\n한글 🚀";
    let shown = "a\u{fffd}[2J\u{fffd}]0;owned\u{fffd}\nb\nc\u{fffd}\u{fffd}31m\u{fffd}\ttab\n한글 🚀";
    let opinion = Opinion {
        guest: "g".to_owned(),
        decision: block(hostile),
        effects: Effects {
            context: vec![hostile.to_owned()],
            messages: vec![hostile.to_owned()],
            ..Effects::default()
        },
    };
    let merged = merge(&samples::event(CLAUDE, "PreToolUse"), &[opinion]);
    assert_eq!(merged.decision, block(shown));
    assert_eq!((merged.context.as_deref(), merged.message.as_deref()), (Some(shown), Some(shown)));
}

#[test]
fn one_rewrite_counts_where_the_tool_takes_it_and_the_decision_leaves_room() {
    let (one, two) = (json!({"command": "ls"}), json!({"command": "pwd"}));
    let cases = [
        (CLAUDE, "PreToolUse", Decision::Pass, one.clone(), None),
        (CLAUDE, "PreToolUse", Decision::Allow, one.clone(), None),
        (CLAUDE, "PreToolUse", ask("sure?"), one.clone(), None),
        (CLAUDE, "PreToolUse", block("no"), one.clone(), Some(Why::Undecided)),
        (CLAUDE, "PreToolUse", halt("end"), one.clone(), Some(Why::Undecided)),
        (CLAUDE, "PreToolUse", Decision::Pass, json!({"any": 1}), None),
        (CLAUDE, "PreToolUse", Decision::Pass, json!("ls"), Some(Why::Invalid)),
        (CLAUDE, "PermissionRequest", Decision::Allow, one.clone(), None),
        (CLAUDE, "PermissionRequest", Decision::Pass, one.clone(), Some(Why::Undecided)),
        (CLAUDE, "PostToolUse", Decision::Pass, one.clone(), Some(Why::NotCarried)),
        (CODEX, "PreToolUse", Decision::Pass, one.clone(), None),
        (CODEX, "PreToolUse", block("no"), one.clone(), Some(Why::Undecided)),
        (CODEX, "PreToolUse", Decision::Pass, json!({"cmd": "ls"}), Some(Why::Invalid)),
        (CODEX, "PreToolUse", Decision::Pass, json!({"command": ["ls"]}), Some(Why::Invalid)),
        (CODEX, "PermissionRequest", Decision::Allow, one.clone(), Some(Why::NotCarried)),
    ];
    for (agent, spelling, decision, input, why) in cases {
        let opinions = [with_input("g", decision.clone(), input.clone())];
        let merged = merge(&samples::event(agent, spelling), &opinions);
        assert_eq!(merged.updated_input.is_some(), why.is_none(), "{decision:?} on {spelling} of {agent:?}: {input}");
        let record: Vec<_> = why.map(|why| ("g", "updated-input", why)).into_iter().collect();
        assert_eq!(dropped(&merged), record, "{decision:?} on {spelling} of {agent:?}: {input}");
    }

    let invalid = with_input("a", Decision::Pass, json!(null));
    let first = with_input("b", Decision::Pass, one.clone());
    let second = with_input("c", Decision::Pass, two);
    let merged = merge(&samples::event(CODEX, "PreToolUse"), &[invalid, first, second]);
    assert_eq!(merged.updated_input, Some(one));
    let expected = [("a", "updated-input", Why::Invalid), ("c", "updated-input", Why::Conflict)];
    assert_eq!(dropped(&merged), expected);
}

#[test]
fn nothing_is_carried_for_an_event_without_a_contract() {
    for agent in [CLAUDE, CODEX, Agent::Cursor, Agent::Unknown] {
        let payload = Map::from_iter([("hook_event_name".to_owned(), json!("FutureEvent"))]);
        let guest = Opinion { decision: block("no"), ..with_context("g", "text") };
        let merged = merge(&Event::new(agent, payload), &[guest]);
        assert_eq!((merged.decision, merged.context, merged.dropped.len()), (Decision::Pass, None, 2));
    }
}

#[test]
fn session_variables_count_where_the_agent_has_them_and_the_first_guest_wins() {
    let set = |guest: &str, variables: &[(&str, &str)]| Opinion {
        effects: Effects {
            session_environment: variables.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect(),
            ..Effects::default()
        },
        ..opinion(guest, Decision::Pass)
    };
    let opinions = [set("a", &[("X", "1"), ("Y", "2")]), set("b", &[("X", "3"), ("Z", "4")])];
    let merged = merge(&samples::event(CLAUDE, "SessionStart"), &opinions);
    let kept = [("a", "X", "1"), ("a", "Y", "2"), ("b", "Z", "4")].map(|(guest, name, value)| Variable {
        guest: guest.to_owned(),
        name: name.to_owned(),
        value: value.to_owned(),
    });
    assert_eq!(merged.session_environment, kept);
    let conflict = Dropped { guest: "b".to_owned(), what: "session-environment", why: Why::Conflict };
    assert_eq!(merged.dropped, [conflict]);
    let mut without_place = merged;
    without_place.drop_session_environment();
    assert_eq!((without_place.session_environment.len(), without_place.dropped.len()), (0, 4));

    for (agent, spelling) in [(CLAUDE, "Stop"), (CLAUDE, "PreToolUse"), (Agent::Codex, "SessionStart")] {
        let merged = merge(&samples::event(agent, spelling), &opinions);
        assert_eq!(merged.session_environment, [], "{spelling}");
        assert!(merged.dropped.len() == 4 && merged.dropped.iter().all(|dropped| dropped.why == Why::NotCarried));
    }
}
