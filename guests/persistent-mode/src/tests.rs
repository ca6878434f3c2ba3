//! The glue: events in, files and answers out.

use std::{fs, path::Path};

use omc_guest::testing::{Outcome, World};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;

fn ago(ms: i64) -> String {
    now().plus_ms(-ms).to_string()
}

fn ralph(session: &str, over: &[(&str, Value)]) -> Value {
    let mut state = json!({
        "active": true, "iteration": 3, "max_iterations": 100, "prompt": "port the parser", "session_id": session,
        "started_at": ago(600_000), "last_checked_at": ago(60_000),
    });
    for (name, value) in over {
        state[*name] = value.clone();
    }
    state
}

fn plant(omc: &TempDir, path: &str, value: &Value) {
    let path = omc.path().join(path);
    fs::create_dir_all(path.parent().expect("a parent")).expect("folders");
    fs::write(path, value.to_string()).expect("a file");
}

fn read(omc: &TempDir, path: &str) -> Value {
    serde_json::from_str(&fs::read_to_string(omc.path().join(path)).expect("a file")).expect("JSON")
}

fn omc_with_ralph() -> TempDir {
    let omc = tempfile::tempdir().expect("a folder");
    plant(&omc, RALPH, &ralph("s1", &[]));
    omc
}

fn world(omc: &TempDir, kind: &str, over: &Value) -> World {
    let mut payload = json!({"session_id": "s1", "cwd": "/p"});
    for (name, value) in over.as_object().expect("an object") {
        payload[name] = value.clone();
    }
    World::new(kind, payload).with_omc_dir(omc.path())
}

fn event(omc: &TempDir, kind: &str, over: &Value) -> Outcome {
    world(omc, kind, over).call::<PersistentMode>()
}

fn held(outcome: &Outcome) -> bool {
    matches!(outcome.decision, Ok(Decision::Block(_)))
}

fn reason(outcome: Outcome) -> String {
    match outcome.decision {
        Ok(Decision::Block(reason)) => reason,
        other => panic!("not held: {other:?}"),
    }
}

const RALPH: &str = "state/sessions/s1/ralph-state.json";
const ULTRAWORK: &str = "state/sessions/s1/ultrawork-state.json";

#[test]
fn every_stop_counts_also_the_one_after_a_refusal() {
    let omc = omc_with_ralph();
    for iteration in 4..8 {
        let outcome = event(&omc, "stop", &json!({"stop_hook_active": iteration > 4}));
        assert!(reason(outcome).starts_with(&format!("[RALPH LOOP - ITERATION {iteration}/100]")));
        assert_eq!(read(&omc, RALPH)["iteration"], iteration);
    }
}

#[test]
fn codex_reads_its_own_command() {
    let omc = omc_with_ralph();
    let mut world = world(&omc, "stop", &json!({}));
    "codex".clone_into(&mut world.agent);
    let reason = reason(world.call::<PersistentMode>());
    assert!(reason.contains("end the mode with $cancel; ") && !reason.contains(":cancel"), "{reason}");
}

#[test]
fn without_a_state_nothing_is_said_read_or_made() {
    let omc = tempfile::tempdir().expect("a folder");
    for kind in
        ["stop", "subagent-stop", "post-tool-use", "post-tool-use-failure", "pre-tool-use", "session-start", "new-kind"]
    {
        let outcome = event(&omc, kind, &json!({"tool_name": "Skill", "tool_input": {"skill": "omc:ralph"}}));
        assert_eq!(outcome.decision, Ok(Decision::Pass), "{kind}");
        assert!(outcome.messages.is_empty() && outcome.context.is_empty() && outcome.logged.is_empty(), "{kind}");
    }
    assert_eq!(fs::read_dir(omc.path()).expect("a folder").count(), 0);
}

#[test]
fn subagents_neither_obey_nor_advance_the_mode() {
    let omc = omc_with_ralph();
    let before = read(&omc, RALPH);
    for kind in ["subagent-stop", "stop"] {
        let outcome = event(&omc, kind, &json!({"agent_id": "a1", "agent_type": "Explore"}));
        assert_eq!(outcome.decision, Ok(Decision::Pass), "{kind}");
    }
    assert_eq!(read(&omc, RALPH), before);
    assert!(held(&event(&omc, "stop", &json!({}))));
}

#[test]
fn only_the_sessions_own_state_counts() {
    for (path, owner, session, counts) in [
        (RALPH, json!("s1"), json!("s1"), true),
        ("state/ralph-state.json", json!("s1"), json!("s1"), true),
        (RALPH, json!("s2"), json!("s1"), false),
        (RALPH, json!(""), json!("s1"), false),
        (RALPH, json!(null), json!("s1"), false),
        ("state/ralph-state.json", json!(null), json!("s1"), false),
        ("state/sessions/s2/ralph-state.json", json!("s2"), json!("s1"), false),
        ("state/sessions/unknown/ralph-state.json", json!("unknown"), json!("unknown"), false),
        ("state/ralph-state.json", json!(""), json!(""), false),
        ("state/ralph-state.json", json!(null), json!(null), false),
        (RALPH, json!("s1"), json!("../sessions/s1"), false),
        (RALPH, json!("s1"), json!("s1/"), false),
        (RALPH, json!("s1"), json!(["s1"]), false),
    ] {
        let omc = tempfile::tempdir().expect("a folder");
        plant(&omc, path, &ralph("s1", &[("session_id", owner.clone())]));
        let outcome = event(&omc, "stop", &json!({"session_id": session}));
        assert_eq!(held(&outcome), counts, "{path} of {owner}, event of {session}");
        assert_eq!(read(&omc, path)["iteration"], if counts { 4 } else { 3 });
    }
}

#[test]
fn nobody_is_held_by_a_count_that_cannot_be_written() {
    let omc = omc_with_ralph();
    let mut world = world(&omc, "stop", &json!({}));
    world.locks_are_free = false;
    let outcome = world.call::<PersistentMode>();
    assert_eq!(outcome.decision, Ok(Decision::Pass));
    assert!(outcome.logged[0].contains("warn: let the agent stop"), "{:?}", outcome.logged);

    // A folder in the place of the breaker's file.
    fs::create_dir_all(omc.path().join("state/sessions/s1/no-progress-stop-breaker.json/x")).expect("a folder");
    let outcome = event(&omc, "stop", &json!({}));
    assert_eq!(outcome.decision, Ok(Decision::Pass));
    assert!(outcome.logged[0].contains("no-progress-stop-breaker.json"), "{:?}", outcome.logged);
}

#[test]
fn broken_states_hold_nobody_and_stay_as_they_are() {
    for content in ["{\"active\": true, \"session_id\": \"s1\", \"iter", "[]", "", "null"] {
        let omc = tempfile::tempdir().expect("a folder");
        plant(&omc, RALPH, &json!({}));
        fs::write(omc.path().join(RALPH), content).expect("a file");
        let outcome = event(&omc, "stop", &json!({}));
        assert_eq!(outcome.decision, Ok(Decision::Pass), "{content:?}");
        assert!(outcome.logged[0].contains("ralph does not count"), "{:?}", outcome.logged);
        assert_eq!(fs::read_to_string(omc.path().join(RALPH)).expect("still there"), content);
    }
}

#[test]
fn the_payload_and_the_surroundings_are_read() {
    type Make = Box<dyn Fn(&TempDir) -> World>;
    let full = json!({"message": {"usage": {"input_tokens": 960}}, "context_window": 1000}).to_string();
    let plain = |over: Value| move |omc: &TempDir| world(omc, "stop", &over);
    let cases: [(&str, Make, bool); 20] = [
        ("a plain end", Box::new(plain(json!({"stop_reason": "end_turn"}))), true),
        (
            "words in the answer",
            Box::new(plain(json!({"last_assistant_message": "401, 429, context_limit, user_cancel"}))),
            true,
        ),
        ("stop_reason", Box::new(plain(json!({"stop_reason": "rate_limit"}))), false),
        ("stopReason", Box::new(plain(json!({"stopReason": "rate_limit"}))), false),
        ("end_turn_reason", Box::new(plain(json!({"end_turn_reason": "max tokens"}))), false),
        ("error", Box::new(plain(json!({"error": "429 too many requests"}))), false),
        ("an error object", Box::new(plain(json!({"error": {"type": "overloaded_error", "message": "x"}}))), false),
        ("an error code", Box::new(plain(json!({"error": {"status": 403}}))), false),
        ("user_requested", Box::new(plain(json!({"user_requested": true}))), false),
        ("user_requested, but not", Box::new(plain(json!({"user_requested": false}))), true),
        ("prompt", Box::new(plain(json!({"prompt": "/cancel"}))), false),
        ("tool", Box::new(plain(json!({"tool_name": "ScheduleWakeup"}))), false),
        ("a running task", Box::new(plain(json!({"background_tasks": [{"id": "1", "status": "running"}]}))), false),
        ("a finished task", Box::new(plain(json!({"background_tasks": [{"id": "1", "status": "completed"}]}))), true),
        ("a job every day", Box::new(plain(json!({"session_crons": [{"id": "1", "recurring": true}]}))), true),
        ("a job once", Box::new(plain(json!({"session_crons": [{"id": "1", "recurring": false}]}))), false),
        ("context_window", Box::new(plain(json!({"context_window": {"used_percentage": 96}}))), false),
        (
            "OMC_TEAM_WORKER",
            Box::new(|omc| world(omc, "stop", &json!({})).with_env("OMC_TEAM_WORKER", "blue/w1")),
            false,
        ),
        ("no team", Box::new(|omc| world(omc, "stop", &json!({})).with_env("OMC_TEAM_WORKER", " ")), true),
        (
            "the transcript",
            Box::new(move |omc| {
                let mut world = world(omc, "stop", &json!({}));
                world.transcript = Some(full.clone());
                world
            }),
            false,
        ),
    ];
    for (name, make, is_held) in cases {
        let omc = omc_with_ralph();
        let outcome = make(&omc).call::<PersistentMode>();
        assert_eq!(held(&outcome), is_held, "{name}: {outcome:?}");
        assert_eq!(read(&omc, RALPH)["iteration"], if is_held { 4 } else { 3 }, "{name}");
    }
}

#[test]
fn fields_of_the_wrong_type_are_no_reason() {
    let omc = omc_with_ralph();
    let payload = json!({
        "stop_reason": [], "error": [{"a": 1}], "user_requested": {}, "prompt": 7, "tool_name": null, "tool_input": [],
        "background_tasks": "running", "session_crons": {"recurring": false}, "context_window": "full",
    });
    assert!(held(&event(&omc, "stop", &payload)));
}

#[test]
fn the_cap_comes_from_the_settings() {
    for (setting, at, is_held) in [
        (None, 499, true),
        (None, 500, false),
        (Some(json!(120)), 119, true),
        (Some(json!(120)), 120, false),
        (Some(json!(1000)), 500, true),
        (Some(json!(0)), 120, true),
        (Some(json!("120")), 120, true),
    ] {
        let omc = tempfile::tempdir().expect("a folder");
        plant(&omc, RALPH, &ralph("s1", &[("iteration", json!(at)), ("max_iterations", json!(2000))]));
        let mut world = world(&omc, "stop", &json!({}));
        if let Some(cap) = setting.clone() {
            world = world.with_setting("ralph.hardMaxIterations", cap);
        }
        let outcome = world.call::<PersistentMode>();
        assert_eq!(held(&outcome), is_held, "{setting:?} at {at}");
        assert_eq!(outcome.messages.len(), usize::from(!is_held), "the person is told");
        assert_eq!(read(&omc, RALPH)["active"], is_held);
    }
}

#[test]
fn the_no_progress_limit_comes_from_the_settings() {
    let omc = omc_with_ralph();
    let stop =
        || world(&omc, "stop", &json!({})).with_setting("persistentMode.noProgressLimit", 2).call::<PersistentMode>();
    assert!(held(&stop()) && held(&stop()));
    assert!(stop().messages[0].contains("sent on 2 times"));
}

#[test]
fn the_skill_of_a_mode_confirms_it() {
    for (tool, input, confirmed) in [
        ("Skill", json!({"skill": "oh-my-claudecode:ralph"}), true),
        ("Skill", json!({"skill": "omc:ralph"}), true),
        ("Skill", json!({"skill": "ralph"}), true),
        ("Skill", json!({"skill_name": "ralph"}), true),
        ("Skill", json!({"skillName": "ralph"}), true),
        ("Skill", json!({"command": "ralph"}), true),
        ("SlashCommand", json!({"command": "/omc:ralph fix the parser"}), true),
        ("Skill", json!({"skill": "omc:ultrawork"}), false),
        ("Skill", json!({"skill": "other:ralph"}), false),
        ("Skill", json!({"skill": 7}), false),
        ("Skill", json!("ralph"), false),
        ("Bash", json!({"command": "ralph"}), false),
    ] {
        let omc = tempfile::tempdir().expect("a folder");
        let waiting =
            ralph("s1", &[("awaiting_confirmation", json!(true)), ("awaiting_confirmation_set_at", json!(ago(1_000)))]);
        plant(&omc, RALPH, &waiting);
        plant(&omc, ULTRAWORK, &waiting);
        assert!(!held(&event(&omc, "stop", &json!({}))), "it awaits its skill");

        let outcome = event(&omc, "pre-tool-use", &json!({"tool_name": tool, "tool_input": input}));
        assert_eq!(outcome.decision, Ok(Decision::Pass));
        assert_eq!(read(&omc, RALPH).get("awaiting_confirmation").is_none(), confirmed, "{tool} {input}");
        let of_ultrawork = confirmed || input["skill"] == "omc:ultrawork";
        assert_eq!(read(&omc, ULTRAWORK).get("awaiting_confirmation").is_none(), of_ultrawork, "{tool} {input}");
        assert_eq!(held(&event(&omc, "stop", &json!({}))), of_ultrawork, "{tool} {input}");
    }
}

#[test]
fn in_codex_reading_the_skill_of_a_mode_confirms_it() {
    for (agent, tool, command, confirmed) in [
        ("codex", "Bash", json!("cat /home/me/.agents/skills/omc/ralph/SKILL.md"), true),
        ("codex", "Bash", json!("sed -n '1,200p' \"skills/ralph/SKILL.md\""), true),
        ("codex", "Bash", json!("cd ~/.agents/skills/omc && cat cancel/SKILL.md ralph/SKILL.md"), true),
        ("codex", "shell", json!(["bash", "-lc", "cat skills/ralph/SKILL.md"]), true),
        ("codex", "Bash", json!("cat skills/ultrawork/SKILL.md"), false),
        ("codex", "Bash", json!("cat skills/not-ralph/SKILL.md"), false),
        ("codex", "Bash", json!("grep -r ralph skills/*/SKILL.md"), false),
        ("codex", "Bash", json!("cat /SKILL.md"), false),
        ("codex", "Bash", json!("cat skills/ralph/README.md"), false),
        ("codex", "Bash", Value::Null, false),
        ("claude", "Bash", json!("cat skills/ralph/SKILL.md"), false),
    ] {
        let omc = tempfile::tempdir().expect("a folder");
        let waiting =
            ralph("s1", &[("awaiting_confirmation", json!(true)), ("awaiting_confirmation_set_at", json!(ago(1_000)))]);
        plant(&omc, RALPH, &waiting);
        let reading = json!({"tool_name": tool, "tool_input": {"command": command}});
        let mut world = world(&omc, "pre-tool-use", &reading);
        agent.clone_into(&mut world.agent);
        let outcome = world.call::<PersistentMode>();
        assert_eq!(outcome.decision, Ok(Decision::Pass));
        assert_eq!(read(&omc, RALPH).get("awaiting_confirmation").is_none(), confirmed, "{agent} {command}");
        assert!(!omc.path().join(SKILL).exists(), "what is read is not at work by that: {command}");
    }
}

#[test]
fn a_subagents_skill_confirms_nothing() {
    let omc = tempfile::tempdir().expect("a folder");
    plant(
        &omc,
        RALPH,
        &ralph("s1", &[("awaiting_confirmation", json!(true)), ("awaiting_confirmation_set_at", json!(ago(1)))]),
    );
    event(&omc, "pre-tool-use", &json!({"agent_id": "a1", "tool_name": "Skill", "tool_input": {"skill": "omc:ralph"}}));
    assert!(!held(&event(&omc, "stop", &json!({}))));
}

const SKILL: &str = "state/sessions/s1/skill-active-state.json";

#[test]
fn a_skill_is_protected_from_its_start_to_its_end() {
    let omc = tempfile::tempdir().expect("a folder");
    let use_of = |kind: &str, skill: &str, response: Value| {
        event(&omc, kind, &json!({"tool_name": "Skill", "tool_input": {"skill": skill}, "tool_response": response}))
    };
    use_of("pre-tool-use", "omc:deep-interview", json!(null));
    assert_eq!(read(&omc, SKILL)["max_reinforcements"], 10);
    assert_eq!(read(&omc, "state/skill-active-state.json")["session_id"], "s1");
    use_of("pre-tool-use", "omc:plan", json!(null));
    use_of("post-tool-use", "omc:plan", json!("done"));
    assert_eq!(read(&omc, SKILL)["skill_name"], "deep-interview", "a nested skill is a part of it");
    for launched in
        [json!({"success": true, "commandName": "omc:deep-interview"}), json!("Launching skill: deep-interview")]
    {
        use_of("post-tool-use", "omc:deep-interview", launched);
        assert!(reason(event(&omc, "stop", &json!({}))).starts_with("[SKILL ACTIVE: deep-interview]"));
    }
    assert_eq!(read(&omc, SKILL)["reinforcement_count"], 2);
    use_of("post-tool-use", "omc:deep-interview", json!({"commandName": "omc:deep-interview", "status": "forked"}));
    assert!(!omc.path().join(SKILL).exists() && !omc.path().join("state/skill-active-state.json").exists());
    assert!(!held(&event(&omc, "stop", &json!({}))));
}

#[test]
fn only_skills_of_this_plugin_in_the_main_conversation_are_protected() {
    for (skill, agent) in [("other:plan", None), ("plan", None), ("omc:trace", None), ("omc:plan", Some("a1"))] {
        let omc = tempfile::tempdir().expect("a folder");
        event(&omc, "pre-tool-use", &json!({"tool_name": "Skill", "tool_input": {"skill": skill}, "agent_id": agent}));
        assert_eq!(fs::read_dir(omc.path()).expect("a folder").count(), 0, "{skill} {agent:?}");
    }
}

#[test]
fn the_cancel_skill_ends_everything_however_it_answers() {
    for response in [json!({"success": true, "commandName": "omc:cancel"}), json!("done"), json!(null)] {
        let omc = omc_with_ralph();
        event(&omc, "pre-tool-use", &json!({"tool_name": "Skill", "tool_input": {"skill": "omc:plan"}}));
        let cancel = json!({"tool_name": "Skill", "tool_input": {"skill": "omc:cancel"}, "tool_response": response});
        event(&omc, "pre-tool-use", &cancel);
        assert_eq!(read(&omc, RALPH)["active"], true, "it has not run yet");
        event(&omc, "post-tool-use", &cancel);
        assert_eq!(read(&omc, RALPH)["deactivated_reason"], "cancelled");
        assert!(!omc.path().join(SKILL).exists());
        assert!(!held(&event(&omc, "stop", &json!({}))));
    }
}

#[test]
fn ralplan_ends_with_its_skill() {
    for (input, phase, ended) in [
        (json!({"skill": "omc:ralplan"}), "planning", Some("complete")),
        (json!({"skill": "omc:plan", "args": "--consensus do it"}), "planning", Some("complete")),
        (json!({"skill": "omc:plan", "args": "do it"}), "planning", None),
        (json!({"skill": "omc:omc-plan", "prompt": "x --consensus"}), "FAILED", Some("FAILED")),
        (json!({"skill": "omc:review"}), "planning", None),
    ] {
        let omc = tempfile::tempdir().expect("a folder");
        let path = "state/sessions/s1/ralplan-state.json";
        plant(&omc, path, &ralph("s1", &[("current_phase", json!(phase))]));
        event(&omc, "post-tool-use", &json!({"tool_name": "Skill", "tool_input": input, "tool_response": "done"}));
        let after = read(&omc, path);
        assert_eq!(after["active"], ended.is_none(), "{input}");
        assert_eq!(after["current_phase"], ended.unwrap_or(phase), "{input}");
    }
}

#[test]
fn a_review_in_the_transcript_ends_ralph() {
    let omc = omc_with_ralph();
    plant(&omc, "prd.json", &json!({"userStories": [{"id": "US-1", "passes": true, "architectVerified": true}]}));
    let asked = reason(event(&omc, "stop", &json!({})));
    let id = asked.split_once("request-id=\"").and_then(|(_, rest)| rest.split_once('"')).expect("an id").0;
    let answer = format!("<ralph-approved critic=\"architect\" request-id=\"{id}\">VERIFIED_COMPLETE</ralph-approved>");
    let lines = [
        json!({"message": {"content": [{"type": "tool_use", "id": "t1", "name": "Task", "input": {}}]}}),
        json!({"message": {"content": [{"type": "tool_result", "tool_use_id": "t1", "content": answer}]}}),
    ];
    let mut world = world(&omc, "stop", &json!({}));
    world.transcript = Some(lines.map(|line| line.to_string()).join("\n"));
    let outcome = world.call::<PersistentMode>();
    assert_eq!(outcome.decision, Ok(Decision::Pass), "{outcome:?}");
    assert!(outcome.messages[0].starts_with("[RALPH LOOP VERIFIED COMPLETE]"));
    assert_eq!(read(&omc, RALPH)["active"], false);
}

#[test]
fn refusals_without_a_tool_let_go_until_a_tool_runs() {
    for kind in ["post-tool-use", "post-tool-use-failure"] {
        let omc = omc_with_ralph();
        let stop = || event(&omc, "stop", &json!({}));
        let tool = || event(&omc, kind, &json!({"tool_name": "Read", "tool_input": {}})).decision;
        assert!((0..6).all(|_| held(&stop())));
        assert_eq!(tool(), Ok(Decision::Pass));
        assert!((0..8).all(|_| held(&stop())));
        let let_go = stop();
        assert_eq!(let_go.decision, Ok(Decision::Pass));
        assert!(let_go.messages[0].contains("NO TOOL PROGRESS"));
        let again = stop();
        assert_eq!((again.decision, again.messages.len()), (Ok(Decision::Pass), 0), "said once");
        assert_eq!(read(&omc, RALPH)["iteration"], 17, "an allowed Stop does not count");
        assert_eq!(tool(), Ok(Decision::Pass));
        assert!(held(&stop()));
    }
}

#[test]
fn a_tool_of_another_session_proves_nothing() {
    let omc = omc_with_ralph();
    assert!((0..8).all(|_| held(&event(&omc, "stop", &json!({})))));
    event(&omc, "post-tool-use", &json!({"session_id": "s2", "tool_name": "Read"}));
    assert!(!held(&event(&omc, "stop", &json!({}))));
}

#[test]
fn a_cancel_signal_under_either_name_lets_go() {
    for file in ["cancel-signal.json", "cancel-signal-state.json"] {
        let omc = omc_with_ralph();
        let signal = |age: i64| json!({"active": true, "requested_at": ago(age), "expires_at": ago(age - 30_000)});
        let path = format!("state/sessions/s1/{file}");
        plant(&omc, &path, &signal(5_000));
        assert!(!held(&event(&omc, "stop", &json!({}))), "{file}");
        assert_eq!(read(&omc, RALPH)["iteration"], 3);
        plant(&omc, &path, &signal(65_000));
        assert!(held(&event(&omc, "stop", &json!({}))), "{file}");
        assert!(!Path::new(&omc.path().join(path)).exists(), "what is over is swept");
    }
}

#[test]
fn a_deleted_state_does_not_come_back() {
    let omc = omc_with_ralph();
    assert!(held(&event(&omc, "stop", &json!({}))));
    fs::remove_file(omc.path().join(RALPH)).expect("a file");
    assert_eq!(event(&omc, "stop", &json!({})).decision, Ok(Decision::Pass));
    assert!(!omc.path().join(RALPH).exists() && !omc.path().join("state/ralph-state.json").exists());
}
