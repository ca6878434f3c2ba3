//! The guest as the host calls it: prompts in, states and context out.

use std::{fs, path::Path};

use omc_guest::{
    Decision,
    testing::{Outcome, World},
};
use persistent_mode::PersistentMode;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{KeywordDetector, logic::Keyword};

const RALPH: &str = "state/sessions/s1/ralph-state.json";
const ULTRAWORK: &str = "state/sessions/s1/ultrawork-state.json";
const AUTOPILOT: &str = "state/sessions/s1/autopilot-state.json";
const RALPLAN: &str = "state/sessions/s1/ralplan-state.json";
const SIGNAL: &str = "state/sessions/s1/cancel-signal.json";
const LEDGER: &str = "state/sessions/s1/skill-active-state.json";

fn omc() -> TempDir {
    tempfile::tempdir().expect("a folder")
}

/// A prompt in session `s1`, with more members of the payload.
fn world(omc: &TempDir, prompt: &str, more: &Value) -> World {
    let mut payload = json!({"session_id": "s1", "cwd": "/home/u/project/deep", "prompt": prompt});
    for (name, value) in more.as_object().into_iter().flatten() {
        payload[name] = value.clone();
    }
    let mut world = World::new("user-prompt-submit", payload).with_omc_dir(omc.path());
    world.project_root = Some("/home/u/project".to_owned());
    world
}

fn send(omc: &TempDir, prompt: &str) -> Outcome {
    let outcome = world(omc, prompt, &json!({})).call::<KeywordDetector>();
    assert_eq!(outcome.decision, Ok(Decision::Pass), "{prompt}");
    outcome
}

fn plant(omc: &TempDir, path: &str, content: &Value) {
    let path = omc.path().join(path);
    fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    fs::write(path, content.to_string()).expect("a file");
}

fn read(omc: &TempDir, path: &str) -> Value {
    let text = fs::read_to_string(omc.path().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
    serde_json::from_str(&text).expect("JSON")
}

fn exists(omc: &TempDir, path: &str) -> bool {
    omc.path().join(path).exists()
}

fn is_empty(folder: &Path) -> bool {
    fs::read_dir(folder).expect("a folder").next().is_none()
}

/// Now, and moved by some seconds, as states have it.
fn time(seconds: i64) -> String {
    let now: omc_state::Timestamp = std::time::SystemTime::now().into();
    now.plus_ms(seconds * 1000).to_string()
}

fn at_work(session: &str, prompt: &str) -> Value {
    json!({"active": true, "iteration": 37, "max_iterations": 100, "prompt": prompt, "session_id": session,
        "started_at": time(-600), "last_checked_at": time(-60)})
}

#[test]
fn ralph_writes_its_state_and_an_ultrawork_that_ends_with_it() {
    let omc = omc();
    let outcome = send(&omc, "ralph fix the date bug in src/parser.rs");
    assert!(outcome.context[0].starts_with("[MAGIC KEYWORD: RALPH]\n"), "{:?}", outcome.context);
    let ralph = read(&omc, RALPH);
    let names: Vec<_> = ralph.as_object().expect("an object").keys().map(String::as_str).collect();
    assert_eq!(
        names,
        [
            "active",
            "iteration",
            "max_iterations",
            "started_at",
            "prompt",
            "session_id",
            "project_path",
            "linked_ultrawork",
            "awaiting_confirmation",
            "awaiting_confirmation_set_at",
            "last_checked_at"
        ]
    );
    assert_eq!(ralph["prompt"], "ralph fix the date bug in src/parser.rs");
    assert_eq!((&ralph["iteration"], &ralph["max_iterations"]), (&json!(1), &json!(100)));
    assert_eq!((&ralph["session_id"], &ralph["project_path"]), (&json!("s1"), &json!("/home/u/project")));
    let ultrawork = read(&omc, ULTRAWORK);
    assert_eq!(ultrawork["linked_to_ralph"], true);
    assert_eq!(ultrawork["started_at"], ralph["started_at"]);
    let trace = fs::read_to_string(omc.path().join("state/agent-replay-s1.jsonl")).expect("a trace");
    let lines = trace.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let events: Vec<_> = lines
        .map(|line| {
            let what = line.get("keyword").or_else(|| line.get("mode_to"));
            format!("{} {}", line["event"], what.expect("a name")).replace('"', "")
        })
        .collect();
    assert_eq!(events, ["keyword_detected ralph", "mode_change ralph", "mode_change ultrawork"]);
}

#[test]
fn in_codex_a_dollar_starts_a_confirmed_mode_and_cancels() {
    let send = |omc: &TempDir, prompt: &str| {
        let mut world = world(omc, prompt, &json!({}));
        "codex".clone_into(&mut world.agent);
        world.call::<KeywordDetector>()
    };
    for prompt in ["$ralph tidy up", "$omc:ralph tidy up"] {
        for cancel in ["$cancel", "$omc:cancel --force", "!cancel", "cancelomc"] {
            let omc = omc();
            send(&omc, prompt);
            let ralph = read(&omc, RALPH);
            assert_eq!((&ralph["active"], ralph.get("awaiting_confirmation")), (&json!(true), None), "{prompt}");
            let outcome = send(&omc, cancel);
            assert!(outcome.context[0].starts_with("[MAGIC KEYWORD: CANCEL]"), "{cancel}: {:?}", outcome.context);
            assert_eq!(read(&omc, RALPH)["active"], false, "{cancel}");
        }
    }
    for (prompt, awaits) in [("what does $ralph do?", None), ("ralph fix the date bug in src/parser.rs", Some(true))] {
        let omc = omc();
        send(&omc, prompt);
        let awaiting = exists(&omc, RALPH).then(|| read(&omc, RALPH)["awaiting_confirmation"].as_bool());
        assert_eq!(awaiting.flatten(), awaits, "words may be a false alarm: {prompt}");
    }
}

#[test]
fn a_command_is_confirmed_and_a_keyword_is_not() {
    for (prompt, awaiting) in [("/ralph tidy up", None), ("force: ralph tidy up", Some(true))] {
        let omc = omc();
        send(&omc, prompt);
        assert_eq!(read(&omc, RALPH)["awaiting_confirmation"].as_bool(), awaiting, "{prompt}");
    }
}

#[test]
fn a_mention_writes_nothing_and_says_nothing() {
    for prompt in
        ["what is ralph?", "do not run ralph on src/a.rs", "[RALPH LOOP - ITERATION 3/100] ralph src/a.rs", ""]
    {
        let omc = omc();
        assert!(send(&omc, prompt).context.is_empty(), "{prompt}");
        assert!(is_empty(omc.path()), "{prompt}");
    }
}

#[test]
fn subagents_team_workers_and_other_events_start_nothing() {
    let omc = omc();
    let prompt = "ralph fix src/parser.rs";
    let subagent = world(&omc, prompt, &json!({"agent_id": "a1"}));
    let worker = world(&omc, prompt, &json!({})).with_env("OMC_TEAM_WORKER", "blue/worker-1");
    let stop = World::new("stop", json!({"session_id": "s1", "prompt": prompt})).with_omc_dir(omc.path());
    for world in [subagent, worker, stop] {
        let outcome = world.call::<KeywordDetector>();
        assert_eq!((outcome.decision, outcome.context), (Ok(Decision::Pass), Vec::new()));
    }
    assert!(is_empty(omc.path()));
    let nobody = world(&omc, prompt, &json!({})).with_env("OMC_TEAM_WORKER", "");
    assert_eq!(nobody.call::<KeywordDetector>().context.len(), 1);
}

#[test]
fn without_a_usable_session_the_text_is_given_and_nothing_is_written() {
    for session in [json!("../../evil"), json!(""), json!("a/b"), json!("."), json!("unknown"), json!(7), json!(null)] {
        for prompt in ["ralph fix src/parser.rs", "cancelomc", "ralph please"] {
            let omc = omc();
            let outcome = world(&omc, prompt, &json!({"session_id": session})).call::<KeywordDetector>();
            assert_eq!(outcome.context.len(), 1, "{session} {prompt}");
            assert!(is_empty(omc.path()), "{session} {prompt}");
        }
    }
}

#[test]
fn the_gate_writes_the_plans_state_only() {
    let omc = omc();
    let outcome = send(&omc, "ralph make the shop nicer");
    assert!(outcome.context[0].contains("[RALPLAN GATE]"));
    assert_eq!(read(&omc, RALPLAN)["current_phase"], "ralplan");
    assert!(!exists(&omc, RALPH) && !exists(&omc, ULTRAWORK));
}

#[test]
fn settings_turn_words_and_the_gate_off_and_set_the_limit() {
    let omc = omc();
    let disabled =
        world(&omc, "ralph fix src/a.rs", &json!({})).with_setting("keywordDetector.disabled", json!(["ralph"]));
    assert!(disabled.call::<KeywordDetector>().context.is_empty());
    let open = world(&omc, "ralph make it nicer", &json!({}))
        .with_setting("keywordDetector.ralplanGate", false)
        .with_setting("ralph.maxIterations", 12);
    open.call::<KeywordDetector>();
    assert_eq!(read(&omc, RALPH)["max_iterations"], 12);
}

#[test]
fn the_same_request_goes_on_and_another_starts_over() {
    for (prompt, iteration) in [("ralph fix src/queue.rs", 37), ("ralph fix src/other.rs", 1)] {
        let omc = omc();
        plant(&omc, RALPH, &at_work("s1", "ralph fix src/queue.rs"));
        send(&omc, prompt);
        assert_eq!(read(&omc, RALPH)["iteration"], iteration, "{prompt}");
    }
}

#[test]
fn a_state_of_another_session_or_a_corrupt_one_is_replaced() {
    let omc = omc();
    plant(&omc, RALPH, &at_work("s2", "ralph fix src/queue.rs"));
    fs::write(omc.path().join(ULTRAWORK), "{\"active\": tr").expect("a file");
    send(&omc, "ralph fix src/queue.rs");
    assert_eq!((&read(&omc, RALPH)["iteration"], &read(&omc, RALPH)["session_id"]), (&json!(1), &json!("s1")));
    assert_eq!(read(&omc, ULTRAWORK)["active"], true);
}

#[test]
fn starting_clears_an_older_cancel_and_the_tombstone_of_the_mode() {
    let omc = omc();
    plant(&omc, SIGNAL, &json!({"active": true, "requested_at": time(-5), "expires_at": time(25)}));
    plant(&omc, "state/sessions/s1/cancel-signal-state.json", &json!({"active": true, "requested_at": time(-5)}));
    let slot = |name: &str| json!({"skill_name": name, "session_id": "s1", "started_at": time(-900), "completed_at": time(-600)});
    let slots = json!({"ultrawork": slot("ultrawork"), "autopilot": slot("autopilot")});
    plant(&omc, LEDGER, &json!({"version": 2, "active_skills": slots, "support_skill": null}));
    send(&omc, "/ultrawork the handlers again");
    assert!(!exists(&omc, SIGNAL) && !exists(&omc, "state/sessions/s1/cancel-signal-state.json"));
    let left = &read(&omc, LEDGER)["active_skills"];
    assert!(left.get("ultrawork").is_none() && left.get("autopilot").is_some(), "{left}");
}

#[test]
fn a_cancel_leaves_its_signal_and_ends_every_mode_of_the_session_only() {
    for prompt in
        ["cancelomc", "please stopomc right away", "/cancel", "/omc:cancel", "/oh-my-claudecode:cancel --force"]
    {
        let omc = omc();
        plant(&omc, RALPH, &at_work("s1", "port the parser"));
        plant(&omc, AUTOPILOT, &at_work("s1", "port the parser"));
        plant(&omc, "state/sessions/s2/ralph-state.json", &at_work("s2", "port the parser"));
        let outcome = send(&omc, prompt);
        assert!(outcome.context[0].starts_with("[MAGIC KEYWORD: CANCEL]"), "{prompt}");
        assert_eq!(read(&omc, RALPH)["active"], false, "{prompt}");
        assert_eq!(read(&omc, AUTOPILOT)["active"], false, "{prompt}");
        assert_eq!(read(&omc, "state/sessions/s2/ralph-state.json")["active"], true, "{prompt}");
        let signal = read(&omc, SIGNAL);
        assert_eq!((&signal["active"], &signal["source"]), (&json!(true), &json!("keyword")));
        assert!(signal["requested_at"].is_string() && signal["expires_at"].is_string());
    }
}

#[test]
fn a_cancel_without_the_lock_still_leaves_its_signal_and_says_what_failed() {
    let omc = omc();
    plant(&omc, RALPH, &at_work("s1", "port the parser"));
    let mut world = world(&omc, "cancelomc", &json!({}));
    world.locks_are_free = false;
    let outcome = world.call::<KeywordDetector>();
    assert!(exists(&omc, SIGNAL));
    assert!(outcome.context[0].contains("`omc-host cancel`"), "{:?}", outcome.context);
    assert!(outcome.logged[0].contains("warn: not everything was ended"), "{:?}", outcome.logged);
}

#[test]
fn a_mode_whose_state_cannot_be_written_is_not_announced_and_does_not_start() {
    for (prompt, blocked, started, said) in [
        ("/ralph fix src/parser.rs", RALPH, ULTRAWORK, "[NOT STARTED: RALPH]"),
        ("/ralph fix src/parser.rs", ULTRAWORK, RALPH, "[NOT STARTED: RALPH]"),
        ("autopilot and ultrawork on src/a.rs", ULTRAWORK, AUTOPILOT, "[NOT STARTED: AUTOPILOT, ULTRAWORK]"),
        ("ralph make the shop nicer", RALPLAN, RALPH, "[NOT STARTED: RALPLAN]"),
    ] {
        let omc = omc();
        fs::create_dir_all(omc.path().join(blocked).join("x")).expect("a folder");
        let outcome = send(&omc, prompt);
        assert!(outcome.context[0].starts_with(said), "{prompt}: {:?}", outcome.context);
        assert!(!outcome.context[0].contains("MAGIC KEYWORD"), "{prompt}: {:?}", outcome.context);
        assert!(outcome.logged.iter().any(|line| line.starts_with("warn: not started")), "{:?}", outcome.logged);
        assert!(!exists(&omc, started) || read(&omc, started)["active"] == false, "{prompt}");
        assert_eq!(stop(&omc), None, "{prompt}");
    }
}

#[test]
fn what_does_not_depend_on_a_state_is_said_although_none_can_be_written() {
    let omc = omc();
    let mut world = world(&omc, "ultrathink, then ralph fix src/parser.rs, and deslop it", &json!({}));
    world.locks_are_free = false;
    let context = world.call::<KeywordDetector>().context;
    for said in ["<think-mode>", "[MAGIC KEYWORD: AI-SLOP-CLEANER]", "[NOT STARTED: RALPH]"] {
        assert!(context[0].contains(said), "{said}: {context:?}");
    }
    assert!(is_empty(omc.path()));
}

#[test]
fn a_start_that_fails_leaves_the_work_that_is_going_on() {
    let omc = omc();
    plant(&omc, RALPH, &at_work("s1", "port the parser"));
    fs::create_dir_all(omc.path().join(ULTRAWORK).join("x")).expect("a folder");
    send(&omc, "ralph fix src/other.rs");
    assert_eq!(
        (&read(&omc, RALPH)["iteration"], &read(&omc, RALPH)["prompt"]),
        (&json!(37), &json!("port the parser"))
    );
}

#[test]
fn there_is_one_autopilot_at_a_time_in_a_project() {
    let other = "state/sessions/s2/autopilot-state.json";
    let omc = omc();
    plant(&omc, other, &at_work("s2", "build the shop"));
    let outcome = send(&omc, "/autopilot build the shop in src/shop.ts");
    assert!(outcome.context[0].starts_with("[AUTOPILOT NOT STARTED]"), "{:?}", outcome.context);
    assert!(!exists(&omc, AUTOPILOT));
    let outcome = send(&omc, "run autopilot on src/a.ts and run ultrawork on src/b.ts");
    assert!(outcome.context[0].contains("[MAGIC KEYWORD: ULTRAWORK]"), "{:?}", outcome.context);
    assert!(!exists(&omc, AUTOPILOT) && exists(&omc, ULTRAWORK));

    let mut stale = at_work("s2", "build the shop");
    stale["started_at"] = json!(time(-4 * 3600));
    stale["last_checked_at"] = json!(time(-3 * 3600));
    plant(&omc, other, &stale);
    send(&omc, "/autopilot build the shop in src/shop.ts");
    assert_eq!(read(&omc, AUTOPILOT)["session_id"], "s1");
}

#[test]
fn the_word_after_an_approved_plan_passes_the_gate() {
    let prd = "# PRD\n## Acceptance criteria\n- stored\n## Requirement coverage map\n- R1\n## Launch\nomc ralph \"build it\"\n";
    let test_spec = "## Unit coverage\n- store\n## Verification mapping\n- T1\n";
    for (what, active, phase, prd, gated) in [
        ("approved", false, "complete", prd, false),
        ("still planning", true, "ralplan", prd, true),
        ("no launch", false, "complete", "# PRD\n## Acceptance criteria\n- stored\n", true),
    ] {
        let omc = omc();
        plant(&omc, RALPLAN, &json!({"active": active, "current_phase": phase, "session_id": "s1"}));
        fs::create_dir_all(omc.path().join("plans")).expect("a folder");
        fs::write(omc.path().join("plans/prd-shop.md"), prd).expect("a file");
        fs::write(omc.path().join("plans/test-spec-shop.md"), test_spec).expect("a file");
        let outcome = send(&omc, "ralph please");
        assert_eq!(outcome.context[0].contains("[RALPLAN GATE]"), gated, "{what}");
        assert_eq!(exists(&omc, RALPH), !gated, "{what}");
        assert!(send(&omc, "team please").context.is_empty(), "{what}: it is ralph's plan");
        fs::write(omc.path().join("plans/prd-shop.md"), prd.replace("omc ralph", "omc team")).expect("a file");
        let outcome = send(&omc, "team please");
        let told = outcome.context.iter().any(|text| text.starts_with("[MAGIC KEYWORD: TEAM]\n"));
        assert_eq!(told, !gated, "{what}: {:?}", outcome.context);
    }
}

/// What the Stop guard says in session `s1`, if it refuses.
fn stop(omc: &TempDir) -> Option<String> {
    let stop = World::new("stop", json!({"session_id": "s1", "stop_hook_active": false})).with_omc_dir(omc.path());
    match stop.call::<PersistentMode>().decision {
        Ok(Decision::Block(reason)) => Some(reason),
        _ => None,
    }
}

fn skill_starts(omc: &TempDir, skill: &str) {
    let tool = json!({"session_id": "s1", "tool_name": "Skill", "tool_input": {"skill": skill}});
    World::new("pre-tool-use", tool).with_omc_dir(omc.path()).call::<PersistentMode>();
}

#[test]
fn a_mode_holds_the_agent_from_its_skill_to_its_cancel_and_again_when_it_starts_anew() {
    for (prompt, skill) in [
        ("ralph fix the date bug in src/parser.rs", "omc:ralph"),
        ("autopilot: build a chess engine in src/engine.ts", "oh-my-claudecode:autopilot"),
        ("ralph make the shop nicer", "omc:ralplan"),
        ("ultraqa src/cart.ts until pytest is green", "omc:ultraqa"),
    ] {
        let omc = omc();
        send(&omc, prompt);
        assert_eq!(stop(&omc), None, "not before the skill starts: {prompt}");
        skill_starts(&omc, skill);
        assert!(stop(&omc).is_some(), "{prompt}");
        send(&omc, "cancelomc");
        assert_eq!(stop(&omc), None, "cancelled: {prompt}");
        send(&omc, prompt);
        skill_starts(&omc, skill);
        assert!(stop(&omc).is_some(), "anew: {prompt}");
    }
}

#[test]
fn a_command_holds_the_agent_at_once() {
    let omc = omc();
    send(&omc, "/omc:ralph tidy the importer");
    assert!(stop(&omc).is_some_and(|reason| reason.contains("[RALPH LOOP - ITERATION 2/100]")));
}

#[test]
fn what_the_stop_guard_says_starts_nothing_when_it_comes_back() {
    for (prompt, skill) in [
        ("ralph run ralph on src/parser.rs", "omc:ralph"),
        ("autopilot: run autopilot on src/engine.ts", "omc:autopilot"),
        ("ralplan: run ralplan for src/engine.ts", "omc:ralplan"),
        ("ultraqa run ultraqa on src/cart.ts", "omc:ultraqa"),
        ("ulw run ulw on src/cart.ts", "omc:ultrawork"),
    ] {
        let omc = omc();
        send(&omc, prompt);
        skill_starts(&omc, skill);
        let tool_error =
            json!({"tool_name": "Bash", "error": "run ralph on src/a.rs", "timestamp": time(-1), "retry_count": 1});
        plant(&omc, "state/last-tool-error.json", &tool_error);
        let reason = stop(&omc).unwrap_or_else(|| panic!("not held: {prompt}"));
        for pasted in [reason.clone(), format!("Stop hook feedback:\n- [omc-host hook]: {reason}")] {
            let other = tempfile::tempdir().expect("a folder");
            assert!(send(&other, &pasted).context.is_empty(), "{pasted}");
            let outcome = send(&other, &format!("{pasted}\n\nuse ultraqa on src/b.rs"));
            assert!(outcome.context[0].starts_with("[MAGIC KEYWORD: ULTRAQA]"), "{pasted}");
        }
    }
}

#[test]
fn skills_name_only_tools_that_the_servers_have() {
    const TOOLS: [&str; 28] = [
        "state_read",
        "state_write",
        "state_clear",
        "state_list_active",
        "state_get_status",
        "notepad_read",
        "notepad_write_priority",
        "notepad_write_working",
        "notepad_write_manual",
        "notepad_prune",
        "notepad_stats",
        "project_memory_read",
        "project_memory_write",
        "project_memory_add_note",
        "project_memory_add_directive",
        "shared_memory_write",
        "shared_memory_read",
        "shared_memory_list",
        "shared_memory_delete",
        "shared_memory_cleanup",
        "wiki_ingest",
        "wiki_query",
        "wiki_lint",
        "wiki_add",
        "wiki_list",
        "wiki_read",
        "wiki_delete",
        "wiki_refresh",
    ];
    /// Arguments of `state_write`; all other members of a state go into `state`.
    const ARGUMENTS: [&str; 13] = [
        "mode",
        "active",
        "iteration",
        "max_iterations",
        "current_phase",
        "task_description",
        "plan_path",
        "started_at",
        "completed_at",
        "error",
        "state",
        "session_id",
        "workingDirectory",
    ];
    let skills = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../skills");
    let (mut named, mut examples) = (0, 0);
    for skill in fs::read_dir(skills).expect("skills").flatten() {
        let text = fs::read_to_string(skill.path().join("SKILL.md")).expect("a skill");
        let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        let families = ["state_", "notepad_", "project_memory_", "shared_memory_", "wiki_"];
        for tool in words.filter(|word| families.iter().any(|family| word.starts_with(family))) {
            assert!(TOOLS.contains(&tool), "{skill:?} names {tool}");
            named += 1;
        }
        for example in text.split('`').filter(|code| code.starts_with("{\"mode\"")) {
            let call: Value = serde_json::from_str(&example.replace('\n', " ")).unwrap_or_else(|_| panic!("{example}"));
            let members = call.as_object().expect("an object");
            assert!(members.keys().all(|name| ARGUMENTS.contains(&name.as_str())), "{skill:?}: {example}");
            let mode = members["mode"].as_str().and_then(omc_state::Mode::from_name);
            assert!(mode.is_some(), "{skill:?}: {example}");
            examples += 1;
        }
    }
    assert!(named > 20 && examples > 7, "{named} tools, {examples} examples");
}

#[test]
fn every_keyword_with_a_skill_routes_to_one_that_exists() {
    let skills = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../skills");
    for keyword in Keyword::all().filter(|keyword| keyword.sort().has_skill()) {
        let path = skills.join(keyword.name()).join("SKILL.md");
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let front = text.strip_prefix("---\n").and_then(|text| text.split_once("\n---\n")).expect("front matter").0;
        let description = front.strip_prefix(&format!("name: {}\ndescription: ", keyword.name())).expect("its name");
        assert!(!description.contains(": ") && !description.contains('\n'), "YAML would read more: {description}");
        if keyword.sort().is_mode() {
            assert!(text.contains("/omc:cancel") && text.contains("state_write"), "{keyword:?} says how it ends");
        }
    }
}
