//! The glue: events and files in, approvals out.

use omc_guest::testing::{Repository, World};
use serde_json::{Value, json};

use super::*;

fn world(over: &Value) -> World {
    let mut payload =
        json!({"session_id": "s1", "cwd": "/p", "tool_name": "Bash", "tool_input": {"command": "git status"}});
    for (name, value) in over.as_object().expect("an object") {
        payload[name] = value.clone();
    }
    let mut world = World::new("permission-request", payload).with_file(Root::Project, "src/a.ts", "v");
    world.project_root = Some("/p".to_owned());
    world.git = Some(Repository::default());
    world
}

fn approves_in(world: &World) -> bool {
    match world.call::<PermissionHandler>().decision {
        Ok(Decision::Allow) => true,
        Ok(Decision::Pass) => false,
        other => panic!("{other:?}"),
    }
}

#[test]
fn only_shell_commands_of_known_agents_are_judged() {
    for (over, approved) in [
        (json!({}), true),
        (json!({"tool_name": "proxy_Bash"}), true),
        (json!({"tool_name": "Edit"}), false),
        (json!({"tool_name": "bash"}), false),
        (json!({"tool_name": "mcp__shell__run"}), false),
        (json!({"tool_name": null}), false),
        (json!({"tool_input": {"command": "cat src/a.ts"}}), true),
        (json!({"tool_input": {"command": "cat src/b.ts"}}), false),
        (json!({"tool_input": {"command": "cat a.ts"}, "cwd": "/p/src"}), true),
        (json!({"tool_input": {"command": "ls src"}}), true),
        (json!({"tool_input": {"command": ["git", "status"]}}), false),
        (json!({"tool_input": {"command": ""}}), false),
        (json!({"tool_input": "git status"}), false),
        (json!({"tool_input": {"command": "rm -rf /"}}), false),
    ] {
        assert_eq!(approves_in(&world(&over)), approved, "{over}");
    }
    let mut other = world(&json!({}));
    other.agent = "gemini".to_owned();
    assert!(!approves_in(&other));
    assert_eq!(
        World::new("pre-tool-use", json!({"tool_name": "Bash"})).call::<PermissionHandler>().decision,
        Ok(Decision::Pass)
    );
}

#[test]
fn outside_of_a_repository_no_file_is_shown() {
    let outside = |command: &str| {
        let mut world = world(&json!({"tool_input": {"command": command}}));
        world.git = None;
        approves_in(&world)
    };
    assert!(!outside("cat src/a.ts") && !outside("ls src") && !outside("git diff a b"));
    assert!(outside("ls") && outside("git status"));
}

#[test]
fn the_users_rules_in_every_settings_file_win() {
    let ask = r#"{"permissions": {"ask": ["Bash(git status)"]}}"#;
    for (root, path) in [
        (Root::Agent, "settings.json"),
        (Root::Agent, "settings.local.json"),
        (Root::Project, ".claude/settings.json"),
        (Root::Project, ".claude/settings.local.json"),
        (Root::Project, "src/.claude/settings.json"),
    ] {
        let over = json!({"cwd": "/p/src"});
        assert!(!approves_in(&world(&over).with_file(root, path, ask)), "{path}");
        assert!(!approves_in(&world(&over).with_file(root, path, &ask.replace("ask", "deny"))), "{path}");
        assert!(!approves_in(&world(&over).with_file(root, path, "// none\n{}")), "{path}");
        assert!(!approves_in(&world(&over).with_file(root, path, &" ".repeat(300_000))), "{path}");
        assert!(approves_in(&world(&over).with_file(root, path, &ask.replace("ask", "allow"))), "{path}");
        assert!(approves_in(&world(&over).with_file(root, path, &ask.replace("status", "push"))), "{path}");
    }
    assert!(
        approves_in(&world(&json!({})).with_file(Root::Project, "src/.claude/settings.json", ask)),
        "not on the way"
    );
}

#[test]
fn codex_rules_that_hold_something_back_end_all_approvals() {
    let mut codex = world(&json!({}));
    codex.agent = "codex".to_owned();
    assert!(approves_in(&codex));
    let rule = "prefix_rule(pattern=[\"git\"], decision=\"prompt\")";
    assert!(!approves_in(&codex.clone().with_file(Root::Agent, "rules/default.rules", rule)));
    assert!(!approves_in(&codex.clone().with_file(Root::Project, ".codex/rules/x.rules", rule)));
    let allow = rule.replace("prompt", "allow");
    assert!(approves_in(&codex.with_file(Root::Agent, "rules/default.rules", &allow)));
}

#[test]
fn the_projects_code_runs_only_where_the_user_switched_that_on() {
    let lint = world(&json!({"tool_input": {"command": "npm run lint"}}));
    assert!(!approves_in(&lint));
    assert!(approves_in(&lint.with_setting("permissionHandler.approveProjectCommands", true)));
}
