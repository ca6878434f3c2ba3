//! Tells the model which of the learned skills fit a prompt.
//!
//! On a prompt of the user the guest reads what the skills in four folders say about themselves, picks those whose triggers stand
//! in the prompt, and adds a block of short descriptions; the model reads a skill's text itself if it needs it. Each session is
//! told of a skill once an hour.
//!
//! Folders, in this order: the project's `.omc/skills` and `.agents/skills`, the user's `~/.omc/skills`, and
//! `skills/omc-learned` of the agent's own folder. Whoever has none of them pays for four questions to the file system.

pub mod logic;

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use omc_bare as _;
use omc_guest::project_files::{self, Root};
use omc_guest::{Decision, Effects, Error, Event, EventKind, Guest, environment, log, state_lock};
use omc_state::{SessionId, Store};

use logic::skill::MAX_HEAD_BYTES;
use logic::{Scope, Skill};

/// Files of one folder that are read: more than anybody keeps in view, and a bound on what a prompt costs.
const MAX_FILES: usize = 200;

/// Entries of one folder and its sub-folders that are looked at, and how deep, as in the original.
const MAX_ENTRIES: usize = 2_000;
const MAX_DEPTH: usize = 10;

/// Below the project's root, and below the agent's folder.
const AGENTS_SKILLS: &str = ".agents/skills";
const LEARNED_SKILLS: &str = "skills/omc-learned";

/// The guest.
#[derive(Debug)]
pub struct SkillInjector;

omc_guest::export!(SkillInjector, {
    "description": "Tells the model which learned skills fit a prompt",
    "subscriptions": [{"event": "user-prompt-submit", "order": 200, "when": [
        "file:/omc/skills", "file:/omc-user/skills", "read:project:.agents/skills", "read:agent:skills/omc-learned"
    ]}],
    "requests": [
        {"capability": "omc", "scope": ["ro:/omc/skills", "ro:/omc-user/skills", "rw:/omc/state"], "reason": "reads the skills of the project and of the user, and notes which a session was told of"},
        {"capability": "read", "scope": ["project:.agents/skills/**/*.md", "agent:skills/omc-learned/**/*.md"], "reason": "reads the skills that agents share and those that were learned"},
        {"capability": "env", "scope": ["HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME"], "reason": "names the user's skills by paths that the model can open"}
    ]
});

impl Guest for SkillInjector {
    fn handle(event: &Event<'_>, effects: &mut Effects<'_>) -> Result<Decision, Error> {
        if event.kind() != EventKind::UserPromptSubmit || event.subagent_id().is_some() {
            return Ok(Decision::Pass);
        }
        let skills = discover(event);
        if skills.is_empty() {
            return Ok(Decision::Pass);
        }
        let Some(prompt) = event.prompt() else { return Ok(Decision::Pass) };
        let store = Store::new(&omc_guest::omc_dir());
        let session = event.session_id().as_deref().and_then(SessionId::parse);
        let now = SystemTime::now().into();
        let known = session.as_ref().map(|session| store.read_told_skills(session, now)).unwrap_or_default();
        let fits = logic::best(&prompt, &skills, |path| known.iter().any(|known| known == path));
        let Some(block) = logic::block::block(&fits) else { return Ok(Decision::Pass) };
        effects.add_context(&block.text)?;
        let told: Vec<_> = fits[..block.told].iter().map(|fit| fit.skill.path.as_str()).collect();
        log::info(&format!("told of {} skills", told.len()));
        if let Some(session) = &session
            && let Err(error) = store.note_told_skills(&state_lock::acquire, session, &told, now)
        {
            log::warn(&format!("the session will be told again: {}", error.chain()));
        }
        Ok(Decision::Pass)
    }
}

/// The skills of all folders, in their order.
fn discover(event: &Event<'_>) -> Vec<Skill> {
    let home = environment::get("HOME").unwrap_or_else(|| "~".to_owned());
    let project = event.project_root().unwrap_or_default();
    let agent = match event.agent().as_str() {
        "codex" => environment::get("CODEX_HOME").unwrap_or_else(|| format!("{home}/.codex")),
        _ => environment::get("CLAUDE_CONFIG_DIR").unwrap_or_else(|| format!("{home}/.claude")),
    };
    let mut skills = in_omc(&omc_guest::omc_dir(), &format!("{project}/.omc"), Scope::Project);
    skills.extend(in_files(Root::Project, AGENTS_SKILLS, &project, Scope::Project));
    skills.extend(in_omc(&omc_guest::omc_user_dir(), &format!("{home}/.omc"), Scope::User));
    skills.extend(in_files(Root::Agent, LEARNED_SKILLS, &agent, Scope::User));
    skills
}

/// Skills in and below the folder `skills` of an `.omc` directory, which is `shown` to people.
fn in_omc(omc: &Path, shown: &str, scope: Scope) -> Vec<Skill> {
    let mut found = Vec::new();
    for path in markdown_below(&omc.join("skills")) {
        let Ok(relative) = path.strip_prefix(omc) else { continue };
        let shown = format!("{shown}/{}", relative.to_string_lossy());
        let mut head = Vec::new();
        let read = File::open(&path).and_then(|file| file.take(u64::from(MAX_HEAD_BYTES)).read_to_end(&mut head));
        match read {
            Ok(_) => found.extend(skill(&String::from_utf8_lossy(&head), shown, scope)),
            Err(error) => log::debug(&format!("`{shown}` was not read: {error}")),
        }
    }
    found
}

/// Markdown files in and below a folder, outer ones first and those of a folder by name. Links are not followed.
fn markdown_below(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut looked_at = 0;
    let mut folders = VecDeque::from([(folder.to_owned(), 0)]);
    while let Some((folder, depth)) = folders.pop_front() {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        let mut entries: Vec<_> = entries.flatten().take(MAX_ENTRIES - looked_at).collect();
        looked_at += entries.len();
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let Ok(kind) = entry.file_type() else { continue };
            let path = entry.path();
            if kind.is_dir() && depth < MAX_DEPTH {
                folders.push_back((path, depth + 1));
            } else if kind.is_file() && path.extension().is_some_and(|extension| extension == "md") {
                files.push(path);
            }
        }
        if files.len() >= MAX_FILES || looked_at >= MAX_ENTRIES {
            break;
        }
    }
    files.truncate(MAX_FILES);
    files
}

/// Skills in and below a folder that the host reads for us, whose root is `shown` to people.
fn in_files(root: Root, folder: &str, shown: &str, scope: Scope) -> Vec<Skill> {
    let Ok(found) = project_files::find(root, folder, u32::try_from(MAX_FILES).unwrap_or(u32::MAX)) else {
        return Vec::new();
    };
    let read = |path: &String| {
        let head = project_files::read_start(root, path, MAX_HEAD_BYTES).ok()?;
        skill(&head, format!("{shown}/{path}"), scope)
    };
    found.paths.iter().filter_map(read).collect()
}

fn skill(head: &str, path: String, scope: Scope) -> Option<Skill> {
    let stem = Path::new(&path).file_stem().map(|stem| stem.to_string_lossy().into_owned())?;
    Skill::read(head, path, &stem, scope)
}

#[cfg(test)]
mod tests;
