//! Whatever is written comes back, with the members that nobody here knows: one property for each format that has no module of
//! its own for it (notepad, plan notepads, wiki and project memory have).

use proptest::{collection::vec, prelude::*, test_runner::Config};
use serde_json::{Map, Value, json};

use crate::{
    Breaker, CancelSignal, Fields, Mode, ModeState, NewCheckpoint, Place, Scope, SessionFacts, Store, Timestamp, Todos,
    ToolFailure, Verification,
    lock::testing::ThreadLocker,
    session_path, shared_memory, shared_path,
    subagents::{AgentStart, AgentStop},
    testing::{fields, now, plant, session, store},
    units,
};

/// Texts with what JSON escapes, and with what programs trip over.
fn texts() -> impl Strategy<Value = String> {
    prop_oneof!["\\PC{0,12}", "[\\x00-\\x1f\"\\\\/\u{7f}\u{2028}\u{feff}가🦀]{0,6}"]
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        // As long as people and programs write them: the JSON parser is exact up to 15 digits.
        any::<i32>().prop_map(|number| Value::from(f64::from(number) / 1000.0)),
        texts().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            vec((texts(), inner), 0..4).prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// Members of a file, none of which has a name that means something.
fn unknown() -> impl Strategy<Value = Map<String, Value>> {
    vec(("x_[a-z]{1,4}", any_json()), 0..5).prop_map(|members| members.into_iter().collect())
}

/// The same, and members whose names this crate knows, with any value.
fn any_fields() -> impl Strategy<Value = Fields> {
    const KNOWN: [&str; 12] = [
        "active",
        "session_id",
        "started_at",
        "last_checked_at",
        "iteration",
        "prompt",
        "phase",
        "mode",
        "requested_at",
        "agents",
        "missions",
        "value",
    ];
    let known = vec((proptest::sample::select(&KNOWN[..]), any_json()), 0..4);
    (unknown(), known).prop_map(|(mut members, known)| {
        members.extend(known.into_iter().map(|(name, value)| (name.to_owned(), value)));
        Fields::from(members)
    })
}

/// Whether every member of `known` is in `file` as it was.
fn holds(file: &Fields, known: &Map<String, Value>) -> bool {
    known.iter().all(|(name, value)| file.get(name) == Some(value))
}

fn with(known: &Map<String, Value>, value: &Value) -> Fields {
    let mut all = fields(value.clone());
    for (name, value) in known {
        all.set(name, value.clone());
    }
    all
}

fn file(store: &Store, path: &std::path::Path) -> Fields {
    store.read_fields(path).expect("a read").expect("a file")
}

#[test]
fn what_could_not_be_read_again_is_not_written() {
    let (_folder, store) = store();
    let path = shared_path("x.json");
    let nested = |levels: usize| {
        (0..levels).fold(json!(1), |inner, level| if level % 2 == 0 { json!([inner]) } else { json!({"a": inner}) })
    };
    for (levels, fits) in [(1, true), (100, true), (101, false), (200, false)] {
        let written = fields(json!({"x": nested(levels)}));
        let result = store.replace(&path, &written);
        assert_eq!(result.is_ok(), fits, "{levels}: {result:?}");
        if fits {
            assert_eq!(file(&store, &path), written, "{levels}");
        }
    }
}

proptest! {
    // Each case writes files.
    #![proptest_config(Config::with_cases(64))]

    #[test]
    fn any_object_comes_back(written in any_fields()) {
        let (_folder, store) = store();
        let path = shared_path("x.json");
        store.replace(&path, &written).expect("a write");
        prop_assert_eq!(file(&store, &path), written);
    }

    #[test]
    fn any_state_of_a_mode_comes_back(mode in proptest::sample::select(Mode::ALL), mut members in any_fields(), shared in any::<bool>()) {
        let (_folder, store) = store();
        let s1 = session("s1");
        members.set("session_id", "s1");
        let written = ModeState::from_fields(members, if shared { Place::Shared } else { Place::Session });
        store.write_mode(&s1, mode, &written).expect("a write");
        prop_assert_eq!(store.read_mode(&s1, mode).expect("a read"), Some(written));
    }

    #[test]
    fn signals_and_reviews_come_back(members in any_fields()) {
        let (_folder, store) = store();
        let s1 = session("s1");
        let mut members = members;
        members.set("session_id", "s1");
        let signal = CancelSignal::from(members.clone());
        store.write_cancel_signal(&s1, &signal).expect("a write");
        prop_assert_eq!(store.read_cancel_signals(&s1), vec![signal]);
        let mut review = Verification::from(members);
        let ralph = ModeState::from_fields(Fields::default(), Place::Session);
        review.ask("r1", &Scope::Story("US-1".to_owned()), &ralph, now());
        store.write_verification(&s1, &review).expect("a write");
        prop_assert_eq!(store.read_verification(&s1), review);
    }

    #[test]
    fn counts_come_back(count in any::<u64>()) {
        let (_folder, store) = store();
        let s1 = session("s1");
        for breaker in [Breaker::Ralplan, Breaker::NoProgress, Breaker::ContextGuard] {
            store.write_breaker(&s1, breaker, count, now()).expect("a write");
            prop_assert_eq!(store.read_breaker(&s1, breaker, now()), count);
        }
    }

    #[test]
    fn shared_memory_comes_back(value in any_json(), members in unknown(), ttl in proptest::option::of(1..604_800_u64)) {
        let (folder, store) = store();
        let (namespace, key) = (shared_memory::Name::parse("n").expect("a name"), shared_memory::Name::parse("k").expect("a name"));
        plant(&folder, "state/shared-memory/n/k.json", Value::Object(members.clone()).to_string());
        store.write_shared(&&ThreadLocker::default(), (&namespace, &key), value.clone(), ttl, now()).expect("a write");
        let entry = store.read_shared(&namespace, &key, now()).expect("a read").expect("an entry");
        prop_assert_eq!(entry.value(), &value);
        prop_assert!(holds(entry.fields(), &members));
        prop_assert_eq!(store.list_shared(&namespace, now()), vec![(key, entry)]);
    }

    #[test]
    fn a_checkpoint_comes_back(states in vec((proptest::sample::select(Mode::ALL), any_fields()), 0..4), wisdom in proptest::option::of(texts()), counts in any::<(u64, u64, u64)>()) {
        let (folder, store) = store();
        let s1 = session("s1");
        let modes: Vec<_> =
            states.into_iter().map(|(mode, members)| (mode, ModeState::from_fields(members, Place::Session))).collect();
        let (pending, in_progress, completed) = counts;
        let todos = Todos { pending, in_progress, completed };
        let new = NewCheckpoint { session: &s1, trigger: Some("auto"), modes: &modes, todos, wisdom: wisdom.as_deref(), now: now() };
        let written = store.write_checkpoint(&&ThreadLocker::default(), &new).expect("a write").expect("the first");
        let read = store.latest_checkpoint(&s1).expect("one");
        prop_assert_eq!(&read, &written);
        prop_assert_eq!(read.todos(), todos);
        let noted = read.wisdom_path().map(|path| std::fs::read_to_string(folder.path().join(path)).expect("a file"));
        prop_assert_eq!(noted, wisdom);
    }

    #[test]
    fn what_a_mission_board_holds_of_others_comes_back(board in unknown(), ours in vec(unknown(), 0..3), theirs in vec(any_json(), 0..4)) {
        let (_folder, store) = store();
        let path = shared_path("mission-state.json");
        let ours = ours.iter().map(|members| Value::Object(with(members, &json!({"id": "session:s1:ralph", "source": "session"})).into()));
        let missions: Vec<_> = ours.chain(theirs.iter().cloned()).collect();
        store.replace(&path, &with(&board, &json!({"missions": missions}))).expect("a write");
        store.drop_missions(&[session("s1")], now()).expect("a write");
        let left = file(&store, &path);
        prop_assert_eq!(left.get("missions"), Some(&Value::from(theirs)));
        prop_assert!(holds(&left, &board));
    }

    #[test]
    fn what_is_known_of_subagents_comes_back(top in unknown(), one in unknown(), id in "[a-z]{1,8}", task in texts(), summary in texts()) {
        let (_folder, store) = store();
        let (s1, locks) = (session("s1"), ThreadLocker::default());
        let path = session_path(&s1, "subagent-tracking-state.json");
        let other = Value::Object(with(&one, &json!({"agent_id": "0", "agent_type": "x", "status": "running", "started_at": now().to_string()})).into());
        store.replace(&path, &with(&top, &json!({"session_id": "s1", "agents": [other.clone()]}))).expect("a write");
        let start = AgentStart { id: &id, agent_type: "y", parent_mode: None, task: Some(&task), model: None };
        let stop = AgentStop { id: &id, agent_type: Some("y"), succeeded: true, summary: Some(&summary) };
        store.change_subagents(&&locks, &s1, now(), |agents, _| agents.start(&start, now())).expect("a write");
        store.change_subagents(&&locks, &s1, now(), |agents, _| agents.stop(&stop, now())).expect("a write");
        let left = file(&store, &path);
        prop_assert!(holds(&left, &top));
        prop_assert_eq!(left.get("agents").and_then(|agents| agents.get(0)), Some(&other));
        let counts = store.read_subagents(&s1).counts();
        prop_assert_eq!((counts.running, counts.completed), (1, 1));
    }

    #[test]
    fn a_ledger_of_skills_keeps_what_it_does_not_know(top in unknown(), slot in unknown()) {
        let (_folder, store) = store();
        let s1 = session("s1");
        let path = session_path(&s1, "skill-active-state.json");
        let slots = json!({"ultrawork": slot, "x": 1});
        store.replace(&path, &with(&top, &json!({"version": 2, "active_skills": slots, "support_skill": null}))).expect("a write");
        let skill = crate::ActiveSkill::start("omc:plan", &s1, now()).expect("a protected skill");
        store.start_skill(&s1, &skill).expect("a write");
        let skills = store.read_skills(&s1);
        prop_assert_eq!(skills.active(), Some(&skill));
        store.end_active_skill(&s1).expect("a write");
        let left = file(&store, &path);
        prop_assert!(holds(&left, &top));
        prop_assert_eq!(left.get("active_skills"), Some(&slots));
    }

    #[test]
    fn a_failure_comes_back(tool in "[A-Za-z_]{1,20}", input in texts(), error in texts()) {
        let (_folder, store) = store();
        let s1 = session("s1");
        let failure = ToolFailure { tool_name: &tool, input: &input, error: &error };
        store.record_tool_error(&&ThreadLocker::default(), &s1, &failure, now()).expect("a write");
        let read = store.read_tool_error(&s1, now()).expect("a failure");
        prop_assert_eq!((read.tool_name, read.error.as_str(), read.retry_count), (tool, error.trim(), 1));
    }

    #[test]
    fn the_record_of_a_session_comes_back(members in unknown(), cwd in texts(), earlier in 0..100_000_i64) {
        let (_folder, store) = store();
        let s1 = session("s1");
        let path = session_path(&s1, "session-started.json");
        let began = now().plus_ms(-earlier);
        store.replace(&path, &with(&members, &json!({"session_id": "s1", "started_at": began.to_string()}))).expect("a write");
        store.begin_session(&s1, Some(&cwd), now()).expect("a write");
        prop_assert!(holds(&file(&store, &path), &members));
        let facts = store.session_facts(&s1);
        prop_assert_eq!(&facts, &SessionFacts { started_at: Some(began), ..SessionFacts::default() });
        store.write_summary(&s1, &facts, Some(&cwd), now()).expect("a write");
        let summary = file(&store, std::path::Path::new("sessions/s1.json"));
        prop_assert_eq!(summary.time("started_at"), Some(began));
        prop_assert_eq!(summary.get("reason").and_then(Value::as_str), Some(cwd.as_str()));
        prop_assert_eq!(summary.count("duration_ms"), Some(earlier.unsigned_abs()));
    }

    #[test]
    fn lists_of_a_session_come_back(paths in vec(texts(), 0..8), goal in "[a-z가]{1,20}") {
        let (_folder, store) = store();
        let (s1, locks) = (session("s1"), ThreadLocker::default());
        let mut known: Vec<String> = Vec::new();
        for path in &paths {
            if !known.contains(path) {
                known.push(path.clone());
            }
        }
        store.note_simplified(&s1, "c1", &known).expect("a write");
        prop_assert_eq!(&store.read_simplified(&s1, "c1"), &known);
        let told: Vec<&str> = known.iter().map(String::as_str).collect();
        store.note_told_skills(&&locks, &s1, &told, now()).expect("a write");
        let mut read = store.read_told_skills(&s1, now());
        read.sort();
        known.sort();
        prop_assert_eq!(read, known);
        store.remember_goal(&&locks, &s1, Some(&goal), now()).expect("a write");
        prop_assert_eq!(store.read_seen_goal(&s1), Some(goal));
    }

    #[test]
    fn a_prompt_is_kept_up_to_its_limit(prompt in texts()) {
        let s1 = session("s1");
        let start = crate::NewMode { session: &s1, prompt: &prompt, project_path: None, awaiting_confirmation: true, now: now() };
        let state = ModeState::new(Mode::Ralph, &start);
        prop_assert_eq!(state.prompt().unwrap_or_default(), prompt.trim());
        prop_assert!(units(state.prompt().unwrap_or_default()) <= 500);
        prop_assert_eq!(state.started_at(), Some(now()));
    }

    #[test]
    fn a_time_comes_back(ms in -62_000_000_000_000_i64..200_000_000_000_000) {
        let time = Timestamp::from_epoch_ms(ms);
        prop_assert_eq!(time.to_string().parse(), Ok(time));
    }
}
