//! A plugin for an agent: a folder with everything in it, for people who install by the agent's own means.
//!
//! The layout is the one that the agents document: only the manifest is in the folder named after the agent, everything else is at
//! the plugin's root and found by its place. Programs are those of the computer on which the bundle is made, so a release makes
//! one bundle for each platform.

use std::env::consts::EXE_SUFFIX;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

use super::places::NAME;
use super::skills::{self, OwnFile};
use crate::hooks_file;
use crate::protocol::event::Agent;

/// The programs of a bundle: each with what is missing without it.
pub(crate) const COMPANIONS: [(&str, &str); 3] = [
    ("omc-compiler", "guests of others cannot be added"),
    ("omc-mcp", "the model has no tools to read and end its own modes"),
    ("omc-net", "guests do not come from registries or go there, and no telemetry is sent"),
];

/// What was bundled.
#[derive(Debug)]
pub(crate) struct Bundled {
    pub(crate) files: Vec<PathBuf>,
    /// What is missing in it, and what that means.
    pub(crate) missing: Vec<String>,
}

/// Writes the plugin of an agent into a folder that is not there yet, or empty.
pub(crate) fn bundle(agent: Agent, to: &Path) -> Result<Bundled> {
    match fs::read_dir(to).map(|mut entries| entries.next().is_none()) {
        Ok(true) => {}
        Ok(false) => bail!("`{}` is not empty; name a folder that is", to.display()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(error).with_context(|| format!("failed to look into `{}`", to.display())),
    }
    let mut bundled = Bundled { files: Vec::new(), missing: Vec::new() };
    for (path, text) in texts(agent).context("this agent has no plugins")? {
        write(&to.join(&path), text.as_bytes())?;
        bundled.files.push(path);
    }
    let own = std::env::current_exe().context("failed to find this program's own path")?;
    let programs = [("omc-host", own.clone())]
        .into_iter()
        .chain(COMPANIONS.map(|(name, _)| (name, own.with_file_name(format!("{name}{EXE_SUFFIX}")))));
    for (name, from) in programs {
        if !from.is_file() {
            let without = COMPANIONS.iter().find(|(companion, _)| *companion == name).map(|(_, what)| *what);
            let (from, without) = (from.display(), without.unwrap_or_default());
            bundled.missing.push(format!("`{from}` is not there and not in the bundle: {without}"));
            continue;
        }
        let path = Path::new("bin").join(format!("{name}{EXE_SUFFIX}"));
        let target = to.join(&path);
        create_folder_of(&target)?;
        // The mode comes with it.
        fs::copy(&from, &target).with_context(|| format!("failed to copy `{}`", from.display()))?;
        bundled.files.push(path);
    }
    Ok(bundled)
}

/// The files of a plugin that are texts; nothing for an agent without plugins.
fn texts(agent: Agent) -> Option<Vec<OwnFile>> {
    let hooks = (PathBuf::from("hooks/hooks.json"), hooks_file::plugin_file(agent)?);
    let mut manifest = skills::manifest();
    let (place, root) = match agent {
        Agent::Claude => (".claude-plugin/plugin.json", "${CLAUDE_PLUGIN_ROOT}"),
        Agent::Codex => {
            // Claude Code finds these by their places; Codex wants to be told.
            manifest["skills"] = json!("./skills/");
            manifest["hooks"] = json!("./hooks/hooks.json");
            manifest["mcpServers"] = json!("./.mcp.json");
            (".codex-plugin/plugin.json", "${PLUGIN_ROOT}")
        }
        _ => return None,
    };
    let server = json!({ "command": format!("{root}/bin/omc-host"), "args": ["mcp"] });
    let mut files = vec![
        skills::json_file(place, &manifest),
        hooks,
        skills::json_file(".mcp.json", &json!({ "mcpServers": { NAME: server } })),
    ];
    if agent == Agent::Claude {
        files.push(skills::json_file(".claude-plugin/marketplace.json", &marketplace(&manifest)));
    }
    files.extend(skills::skills(agent, "skills"));
    Some(files)
}

/// A marketplace with this one plugin, so that the folder can be installed as it is.
fn marketplace(manifest: &Value) -> Value {
    json!({
        "name": "omc-host",
        "owner": manifest["author"],
        "plugins": [{ "name": NAME, "source": "./", "description": manifest["description"] }],
    })
}

fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    create_folder_of(path)?;
    fs::write(path, bytes).with_context(|| format!("failed to write `{}`", path.display()))
}

fn create_folder_of(path: &Path) -> Result<()> {
    let folder = path.parent().unwrap_or(path);
    fs::create_dir_all(folder).with_context(|| format!("failed to create `{}`", folder.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hooks_file::check::{self, Context};

    fn files(agent: Agent) -> Vec<(String, String)> {
        texts(agent).expect("a plugin").into_iter().map(|(path, text)| (path.display().to_string(), text)).collect()
    }

    fn json_of(files: &[(String, String)], path: &str) -> Value {
        let text = &files.iter().find(|(found, _)| found == path).unwrap_or_else(|| panic!("no {path}")).1;
        serde_json::from_str(text).expect("JSON")
    }

    #[test]
    fn a_manifest_has_the_members_that_agents_document_and_no_others() {
        const TEXTS: [&str; 8] =
            ["name", "version", "description", "repository", "license", "skills", "hooks", "mcpServers"];
        for (agent, path) in
            [(Agent::Claude, ".claude-plugin/plugin.json"), (Agent::Codex, ".codex-plugin/plugin.json")]
        {
            let files = files(agent);
            let manifest = json_of(&files, path);
            for (name, value) in manifest.as_object().expect("an object") {
                let is_right = match name.as_str() {
                    "author" => value["name"].is_string(),
                    "keywords" => value.as_array().is_some_and(|words| words.iter().all(Value::is_string)),
                    name => TEXTS.contains(&name) && value.is_string(),
                };
                assert!(is_right, "{name}: {value}");
            }
            let name = manifest["name"].as_str().expect("a name");
            assert!(name.chars().all(|letter| letter.is_ascii_lowercase() || letter == '-'));
            // Paths begin with `./`, stay inside and lead somewhere.
            for path in ["skills", "hooks", "mcpServers"].iter().filter_map(|member| manifest[member].as_str()) {
                let inside = path.strip_prefix("./").expect("relative to the plugin");
                assert!(!inside.contains("..") && files.iter().any(|(path, _)| path.starts_with(inside)), "{path}");
            }
            let others = files.iter().filter(|(found, _)| Path::new(found).parent() == Path::new(path).parent());
            assert!(others.clone().all(|(found, _)| found == path || found.ends_with("marketplace.json")));
        }
    }

    #[test]
    fn the_hooks_of_a_bundle_run_and_are_found_by_their_place_only_once() {
        for agent in [Agent::Claude, Agent::Codex] {
            let files = files(agent);
            let (_, text) = files.iter().find(|(path, _)| path == "hooks/hooks.json").expect("hooks");
            let path = Path::new("hooks/hooks.json");
            let context = Context { path, source: "omc@omc-host:hooks/hooks.json", agent: Some(agent), trusted: None };
            assert!(check::check(text, &context).is_in_order());
        }
        assert!(json_of(&files(Agent::Claude), ".claude-plugin/plugin.json").get("hooks").is_none());
    }

    #[test]
    fn a_bundle_names_its_own_program_and_nothing_of_this_computer() {
        for (agent, root) in [(Agent::Claude, "${CLAUDE_PLUGIN_ROOT}"), (Agent::Codex, "${PLUGIN_ROOT}")] {
            let files = files(agent);
            let server = &json_of(&files, ".mcp.json")["mcpServers"]["omc"];
            assert_eq!(*server, json!({"command": format!("{root}/bin/omc-host"), "args": ["mcp"]}));
            let own = std::env::current_exe().expect("a path").display().to_string();
            assert!(files.iter().all(|(_, text)| !text.contains(&own)));
        }
    }

    #[test]
    fn a_folder_with_something_in_it_is_left_alone() {
        let dir = tempfile::tempdir().expect("a folder");
        fs::write(dir.path().join("mine"), "x").expect("written");
        assert!(bundle(Agent::Claude, dir.path()).is_err());
        assert_eq!(fs::read_dir(dir.path()).expect("a folder").count(), 1);
    }
}
