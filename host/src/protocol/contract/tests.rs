use super::*;
use crate::protocol::samples;

fn all_rows() -> impl Iterator<Item = &'static Contract> {
    CLAUDE.iter().chain(&CODEX)
}

#[test]
fn every_sample_has_a_row_and_every_row_a_sample() {
    let samples = samples::payloads();
    for (agent, payload) in &samples {
        let event = payload["hook_event_name"].as_str().expect("a name");
        assert_ne!(of(*agent, event).kind, Kind::Other, "no row for {event} of {agent:?}");
    }
    assert_eq!(all_rows().count(), samples.len());
}

#[test]
fn a_row_is_the_only_one_for_its_name_and_spells_its_kind() {
    for row in all_rows() {
        let kebab = row.kind.name();
        let pascal: String = kebab.split('-').map(|word| word[..1].to_ascii_uppercase() + &word[1..]).collect();
        assert_eq!(row.event, pascal);
        assert!(std::ptr::eq(of(row.agent, row.event), row), "{} of {:?} is hidden", row.event, row.agent);
        assert_eq!(Kind::from_name(kebab), Some(row.kind));
    }
    for kind in Kind::KNOWN {
        assert!(all_rows().any(|row| row.kind == *kind), "{kind:?} is nobody's");
    }
}

#[test]
fn an_event_without_a_row_can_change_nothing() {
    for (position, row) in UNKNOWN.iter().enumerate() {
        assert_eq!(row.agent as usize, position);
        assert!(std::ptr::eq(of(row.agent, "FutureEvent"), row));
        assert!(std::ptr::eq(of(row.agent, ""), row));
        let decisions = [row.allow, row.ask, row.block, row.halt];
        assert_eq!(decisions, [Carry::No; 4]);
        assert_eq!((row.context, row.updated_input, row.message), (Context::No, Rewrite::No, false));
        assert_eq!(row.silence == Silence::Quiet, row.agent == Agent::Claude);
    }
}

#[test]
fn a_decision_that_becomes_a_block_finds_one() {
    for row in all_rows() {
        if [row.ask, row.halt].contains(&Carry::AsBlock) || row.halt == Carry::StopAndBlock {
            assert!(!matches!(row.block, Carry::No | Carry::AsBlock), "{}", row.event);
        }
        assert!(!matches!(row.block, Carry::AsBlock | Carry::Unsaid), "{}", row.event);
        assert!(matches!(row.allow, Carry::No | Carry::Permission | Carry::Behavior), "{}", row.event);
    }
}

#[test]
fn no_stop_is_turned_into_the_end_of_the_agent() {
    for row in all_rows().filter(|row| matches!(row.kind, Kind::Stop | Kind::SubagentStop)) {
        assert_eq!((row.block, row.halt, row.context), (Carry::Decision, Carry::No, Context::No));
        assert_eq!(row.silence, Silence::NoBytes);
    }
}

#[test]
fn only_hooks_that_were_asked_for_are_answered_without_bytes_elsewhere() {
    let quiet_on_claude = |kind| {
        use Kind::{FileChanged, MessageDisplay, PreModelSwitch, Stop, SubagentStop, WorktreeCreate, WorktreeRemove};
        !matches!(
            kind,
            Stop | SubagentStop | WorktreeCreate | WorktreeRemove | MessageDisplay | FileChanged | PreModelSwitch
        )
    };
    for row in &CLAUDE {
        assert_eq!(row.silence == Silence::Quiet, quiet_on_claude(row.kind), "{}", row.event);
        let on_request = !quiet_on_claude(row.kind) && !matches!(row.kind, Kind::Stop | Kind::SubagentStop);
        assert_eq!(row.install == Install::OnRequest, on_request, "{}", row.event);
    }
    for row in &CODEX {
        assert_eq!((row.silence, row.install), (Silence::NoBytes, Install::WhenNeeded), "{}", row.event);
    }
}

#[test]
fn the_host_answers_before_the_agent_gives_up() {
    for row in all_rows() {
        let expected = match row.kind {
            Kind::SessionEnd | Kind::Interrupt => 800,
            // Four fifths of the three seconds in our hooks files.
            _ if row.hook_timeout_s == Some(3) => 2_400,
            _ => 2_500,
        };
        assert_eq!(row.deadline(), Duration::from_millis(expected), "{}", row.event);
        for timeout_ms in [1, 1_000, 1_500, 3_000, 5_000, 600_000, u32::MAX] {
            let deadline = row.deadline_within(timeout_ms);
            assert!(deadline.as_millis() * 100 <= u128::from(timeout_ms) * 80);
            assert!(deadline.as_millis() <= 2_500);
        }
    }
    // Three seconds are the most that Codex waits on these, whatever its hooks file says.
    assert_eq!(of(Agent::Codex, "Interrupt").deadline_within(500), Duration::from_millis(400));
    assert_eq!(of(Agent::Claude, "FutureEvent").deadline(), Duration::from_millis(800));
}

#[test]
fn an_event_that_came_slowly_still_has_its_time_as_far_as_the_agent_waits() {
    let began = Instant::now();
    let ms = Duration::from_millis;
    for (agent, event, read_after, due_after) in [
        (Agent::Claude, "UserPromptSubmit", ms(0), ms(2_500)),
        (Agent::Claude, "UserPromptSubmit", ms(4_000), ms(6_500)),
        // Our hooks files give it three seconds.
        (Agent::Claude, "PreToolUse", ms(0), ms(2_400)),
        (Agent::Claude, "PreToolUse", ms(1_000), ms(2_400)),
        (Agent::Claude, "SessionEnd", ms(100), ms(900)),
        (Agent::Claude, "SessionEnd", ms(1_000), ms(1_200)),
        (Agent::Claude, "SessionEnd", ms(4_000), ms(1_200)),
    ] {
        let due = of(agent, event).due(began, began + read_after);
        assert_eq!(due - began, due_after, "{event} read after {read_after:?}");
    }
}

#[test]
fn a_cap_counts_what_its_agent_counts() {
    let (units, bytes) = (of(Agent::Claude, "Stop").cap, of(Agent::Codex, "Stop").cap);
    let cases = [("", 0, 0), ("abc", 3, 3), ("é", 1, 2), ("가나", 2, 6), ("🚀", 2, 4)];
    for (text, in_units, in_bytes) in cases {
        assert_eq!((units.measure(text), bytes.measure(text)), (in_units, in_bytes), "{text}");
    }
    for (text, limit, in_units, in_bytes) in [
        ("abc", 2, "ab", "ab"),
        ("abc", 3, "abc", "abc"),
        ("가나다", 2, "가나", ""),
        ("a🚀b", 2, "a", "a"),
        ("a🚀b", 5, "a🚀b", "a🚀"),
        ("", 0, "", ""),
    ] {
        assert_eq!(
            (units.beginning(text, limit), bytes.beginning(text, limit)),
            (in_units, in_bytes),
            "{text} {limit}"
        );
    }
    for (text, limit, in_units, in_bytes) in [
        ("abc", 2, "bc", "bc"),
        ("abc", 3, "abc", "abc"),
        ("가나다", 2, "나다", ""),
        ("a🚀b", 2, "b", "b"),
        ("a🚀b", 5, "a🚀b", "🚀b"),
        ("", 0, "", ""),
    ] {
        assert_eq!((units.end(text, limit), bytes.end(text, limit)), (in_units, in_bytes), "{text} {limit}");
    }
}
