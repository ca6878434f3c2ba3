//! The guest as the host calls it: skills in four folders, prompts in, descriptions out.

use std::{fs, path::Path};

use omc_guest::testing::{File, Outcome, World};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;

fn plant(folder: &TempDir, path: &str, text: &str) {
    let path = folder.path().join(path);
    fs::create_dir_all(path.parent().expect("a parent")).expect("folders");
    fs::write(path, text).expect("a file");
}

fn text(name: &str, trigger: &str) -> String {
    format!("---\nname: {name}\ndescription: about {name}\ntriggers:\n  - {trigger}\n---\nSecret body.\n")
}

fn world(omc: &TempDir, prompt: &str) -> World {
    let mut world = World::new("user-prompt-submit", json!({"session_id": "s1", "cwd": "/p", "prompt": prompt}))
        .with_omc_dir(omc.path())
        .with_env("HOME", "/home/u");
    world.project_root = Some("/p".to_owned());
    world
}

fn told(outcome: &Outcome) -> &str {
    assert_eq!(outcome.decision, Ok(Decision::Pass));
    outcome.context.first().map_or("", String::as_str)
}

#[test]
fn a_session_is_told_once_of_a_skill_that_fits() {
    let omc = tempfile::tempdir().expect("a folder");
    plant(&omc, "skills/release.md", &text("Release", "release notes"));
    let first = world(&omc, "write the release notes").call::<SkillInjector>();
    assert!(told(&first).contains("### Release (project)") && told(&first).contains("\"/p/.omc/skills/release.md\""));
    assert!(!told(&first).contains("Secret body"));
    assert_eq!(told(&world(&omc, "write the release notes again").call::<SkillInjector>()), "");
    let state: Value =
        serde_json::from_str(&fs::read_to_string(omc.path().join("state/skill-sessions.json")).expect("a file"))
            .expect("JSON");
    assert_eq!(state["sessions"]["s1"]["injectedPaths"], json!(["/p/.omc/skills/release.md"]));
}

#[test]
fn all_four_folders_are_looked_through() {
    let (omc, user) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    plant(&omc, "skills/deep/er/one.md", &text("One", "alpha"));
    plant(&omc, "skills/not.txt", &text("Text", "alpha"));
    plant(&omc, "notes/not.md", &text("Elsewhere", "alpha"));
    plant(&user, "skills/three.md", &text("Three", "alpha"));
    let mut world = world(&omc, "alpha").with_omc_user_dir(user.path());
    for (root, path, name) in [
        (Root::Project, ".agents/skills/q/SKILL.md", "Two"),
        (Root::Agent, "skills/omc-learned/four.md", "Four"),
        (Root::Agent, "skills/other/five.md", "Five"),
    ] {
        world.files.insert((root, path.to_owned()), File { text: text(name, "alpha"), modified_ms: 0 });
    }
    let outcome = world.call::<SkillInjector>();
    let at = |needle: &str| told(&outcome).find(needle).unwrap_or_else(|| panic!("{needle} in {outcome:?}"));
    let order = ["One (project)", "Two (project)", "Three (user)", "Four (user)"].map(at);
    assert!(order.is_sorted(), "{order:?}");
    for path in [
        "/p/.omc/skills/deep/er/one.md",
        "/p/.agents/skills/q/SKILL.md",
        "/home/u/.omc/skills/three.md",
        "/home/u/.claude/skills/omc-learned/four.md",
    ] {
        at(path);
    }
    for absent in ["Text", "Elsewhere", "Five"] {
        assert!(!told(&outcome).contains(absent), "{absent}");
    }
}

#[test]
fn nothing_is_said_or_written_when_nothing_fits() {
    let omc = tempfile::tempdir().expect("a folder");
    assert_eq!(told(&world(&omc, "alpha").call::<SkillInjector>()), "");
    plant(&omc, "skills/a.md", "release notes\n");
    plant(&omc, "skills/b.md", &text("B", "beta"));
    assert_eq!(told(&world(&omc, "alpha").call::<SkillInjector>()), "");
    assert!(!omc.path().join("state").exists());
    for (kind, over) in [("user-prompt-submit", json!({"agent_id": "a1"})), ("stop", json!({}))] {
        let mut payload = json!({"session_id": "s1", "prompt": "beta"});
        payload.as_object_mut().expect("an object").extend(over.as_object().expect("an object").clone());
        let outcome = World::new(kind, payload).with_omc_dir(omc.path()).call::<SkillInjector>();
        assert_eq!(told(&outcome), "", "{kind}");
    }
}

#[test]
fn without_a_session_or_a_lock_nothing_is_remembered() {
    let omc = tempfile::tempdir().expect("a folder");
    plant(&omc, "skills/a.md", &text("A", "alpha"));
    let mut payload = json!({"session_id": "../evil", "prompt": "alpha"});
    let outcome = World::new("user-prompt-submit", payload.clone()).with_omc_dir(omc.path()).call::<SkillInjector>();
    assert!(told(&outcome).contains("### A"));
    payload["session_id"] = json!("s1");
    let mut busy = World::new("user-prompt-submit", payload).with_omc_dir(omc.path());
    busy.locks_are_free = false;
    let outcome = busy.call::<SkillInjector>();
    assert!(told(&outcome).contains("### A") && outcome.logged.iter().any(|line| line.contains("told again")));
    assert!(!omc.path().join("state").exists());
}

#[test]
fn what_does_not_fit_into_the_block_comes_with_the_next_prompt() {
    let omc = tempfile::tempdir().expect("a folder");
    for n in 0..4 {
        let long = format!("---\nname: S{n}\ndescription: {}\ntriggers: alpha\n---\n", "word ".repeat(400));
        plant(&omc, &format!("skills/s{n}.md"), &long);
    }
    let count = || told(&world(&omc, "alpha").call::<SkillInjector>()).matches("<skill-metadata>").count();
    assert_eq!([count(), count(), count()], [2, 2, 0]);
}

#[cfg(unix)]
#[test]
fn a_crowded_folder_and_links_are_no_trap() {
    let (omc, outside) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    plant(&outside, "secret.md", &text("Secret", "alpha"));
    fs::create_dir_all(omc.path().join("skills")).expect("a folder");
    std::os::unix::fs::symlink(outside.path().join("secret.md"), omc.path().join("skills/a.md")).expect("a link");
    std::os::unix::fs::symlink(outside.path(), omc.path().join("skills/b")).expect("a link");
    assert_eq!(told(&world(&omc, "alpha").call::<SkillInjector>()), "");
    for n in 0..MAX_FILES + 50 {
        plant(&omc, &format!("skills/f{n:04}.md"), "no skill");
    }
    let deep = (0..20).map(|_| "d/").collect::<String>();
    plant(&omc, &format!("skills/{deep}x.md"), &text("Deep", "alpha"));
    assert_eq!(markdown_below(&omc.path().join("skills")).len(), MAX_FILES);
    assert_eq!(markdown_below(Path::new("/nonexistent")).len(), 0);
}
