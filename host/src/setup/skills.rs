//! The skills, and the folders in which agents look for them.
//!
//! The texts are those of `skills/`, inside this binary: they are small, and an installation needs no other file. They name
//! commands as Claude Code does; what another agent gets has its own form.

use std::path::{Path, PathBuf};

use omc_state::Invocation;
use serde_json::{Value, json};

use super::places::{NAME, Places, Scope};
use super::servers;
use crate::protocol::event::Agent;

macro_rules! skills {
    ($($name:literal,)+) => {
        /// Each skill's name and text.
        pub(crate) const SKILLS: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("../../../skills/", $name, "/SKILL.md")))),+];
    };
}

skills! {
    "ai-slop-cleaner",
    "autopilot",
    "cancel",
    "ccg",
    "code-simplifier",
    "deep-interview",
    "ralph",
    "ralplan",
    "team",
    "ultragoal",
    "ultraqa",
    "ultrawork",
    "wiki",
}

/// A file of our own folder: its place below it, and its text.
pub(super) type OwnFile = (PathBuf, String);

/// The files of our own folder for a program at this path.
pub(super) fn folder(places: &Places, program: &str) -> Vec<OwnFile> {
    let mut files = match places.agent {
        Agent::Claude => {
            let mut files = vec![
                json_file(".claude-plugin/plugin.json", &manifest()),
                json_file(".mcp.json", &json!({ "mcpServers": { NAME: servers::entry(program) } })),
            ];
            files.extend(skills(places.agent, "skills"));
            files
        }
        agent => skills(agent, ""),
    };
    if places.scope == Scope::Project {
        // It names a program of this computer: nothing for a repository.
        files.push((PathBuf::from(".gitignore"), "*\n".to_owned()));
    }
    files
}

/// The skills for an agent, each in a folder of its name below this one.
pub(super) fn skills(agent: Agent, below: &str) -> Vec<OwnFile> {
    // What stands before a skill's name, as the texts have it and as the agent understands it.
    let (written, understood) = (Invocation::Slash.command(""), Invocation::of_agent(agent.name()).command(""));
    let file = |(name, text): &(&str, &str)| {
        (Path::new(below).join(name).join("SKILL.md"), text.replace(&written, &understood))
    };
    SKILLS.iter().map(file).collect()
}

/// A file with this value.
pub(super) fn json_file(path: &str, value: &Value) -> OwnFile {
    (PathBuf::from(path), format!("{value:#}\n"))
}

/// The manifest of a plugin, which both agents read.
pub(super) fn manifest() -> Value {
    json!({
        "name": NAME,
        "version": env!("CARGO_PKG_VERSION"),
        "description": "Modes that work until they are done, memory and guards: omc-host and its sandboxed guests",
        "author": { "name": "omc-host" },
        "repository": env!("CARGO_PKG_REPOSITORY"),
        "license": env!("CARGO_PKG_LICENSE"),
        "keywords": ["hooks", "wasm", "modes", "memory"],
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_skill_of_the_repository_is_inside() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../skills");
        let entries = std::fs::read_dir(folder).expect("the skills");
        let there: BTreeSet<_> =
            entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8")).collect();
        let inside: BTreeSet<_> = SKILLS.iter().map(|(name, _)| (*name).to_owned()).collect();
        assert_eq!(there, inside);
    }

    #[test]
    fn each_agent_reads_commands_that_it_understands() {
        let text_of = |agent, skill: &str| {
            let place = Path::new(skill).join("SKILL.md");
            skills(agent, "").into_iter().find(|(path, _)| *path == place).expect("the skill").1
        };
        for (name, text) in SKILLS {
            assert_eq!(text_of(Agent::Claude, name), *text);
            let text = text_of(Agent::Codex, name);
            assert!(!text.contains("omc:") && text.starts_with(&format!("---\nname: {name}\n")), "{text}");
        }
        assert!(text_of(Agent::Codex, "ralph").contains("`$cancel`"));
        assert!(text_of(Agent::Codex, "deep-interview").contains("`$ralplan`, `$autopilot` or `$ralph`"));
    }

    #[test]
    fn every_skill_has_the_name_of_its_folder_and_says_what_it_is_for() {
        for (name, text) in SKILLS {
            let head = text.strip_prefix("---\n").and_then(|text| text.split_once("\n---\n")).expect("front matter").0;
            let value = |key: &str| head.lines().find_map(|line| line.strip_prefix(key)).unwrap_or_default();
            assert_eq!(value("name: "), *name);
            // Agents show it beside many others.
            assert!((20..=1024).contains(&value("description: ").len()), "{name}");
        }
    }
}
