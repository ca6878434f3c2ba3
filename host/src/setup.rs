//! Setting agents up: which events go to this program, where its skills and its server are found.
//!
//! Not on the path of an event. [`plan`] reads and decides, [`Plan::carry_out`] writes; a dry run does only the first. `places` knows
//! where things are, `hooks` and `servers` edit texts of others, `skills` has the files that are ours alone, `files` replaces files
//! and brings them back. `doctor` looks at all of that from outside, `bundle` writes the same things for a plugin.
//!
//! Registered are the events for which an enabled guest asks, and never those that change what an agent does by a hook's mere
//! presence. Codex's trust is for the user to give: nothing here writes it.

pub(crate) mod bundle;
pub(crate) mod doctor;
pub(crate) mod files;
mod hooks;
pub(crate) mod places;
mod program;
mod servers;
mod skills;
mod splice;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow, bail};
use serde::Serialize;

pub(crate) use self::places::{AGENTS, Places, Scope};
pub(crate) use self::program::own_program;

use self::files::{Archive, Change, Origin, Original};
use crate::config::paths::SYSTEM_CONFIG_FILE;
use crate::config::{Paths, Settings};
use crate::hooks_file::ours::{self, Entry, Program};
use crate::hooks_file::{self, Registered};
use crate::protocol::contract::{self, Contract, Install};
use crate::protocol::event::Agent;
use crate::registry::{Durability, Guest, Registry};

/// What to do with an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Aim {
    Install,
    Uninstall,
}

/// Everything that would be changed, and what a person should know.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    pub(crate) steps: Vec<Step>,
    pub(crate) notes: Vec<String>,
    /// The agents for which nothing is planned, because something of theirs is in the way.
    pub(crate) problems: Vec<Problem>,
}

/// Why an agent stays as it is.
#[derive(Debug)]
pub(crate) struct Problem {
    pub(crate) agent: Agent,
    pub(crate) error: anyhow::Error,
}

/// One file that would be changed.
#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) agent: Agent,
    pub(crate) change: Change,
    /// What about it, for people.
    pub(crate) what: String,
    /// The folder that is ours alone, for a file in it.
    pub(crate) own_folder: Option<PathBuf>,
}

/// A file that was changed.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Done {
    pub(crate) agent: &'static str,
    pub(crate) path: PathBuf,
    pub(crate) change: &'static str,
    pub(crate) what: String,
    #[serde(skip)]
    pub(crate) own_folder: Option<PathBuf>,
    /// Where the file from before is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) copy: Option<PathBuf>,
}

impl Step {
    /// What happens to the file, in a word.
    pub(crate) fn kind(&self) -> &'static str {
        match (&self.change.before, &self.change.after) {
            (None, _) => "create",
            (_, None) => "remove",
            _ => "edit",
        }
    }
}

/// Decides what is to be changed at these places. `program` is the path that hooks are to name. What is wrong with one agent's
/// files keeps nobody from the others.
pub(crate) fn plan(aim: Aim, places: &[Places], program: &str, paths: &Paths, archive: &Archive) -> Plan {
    let mut plan = Plan::default();
    for places in places {
        let mut own = Plan::default();
        let planned = match aim {
            Aim::Install => own.install(places, program, paths, archive),
            Aim::Uninstall => own.uninstall(places, program, archive),
        };
        match planned {
            Ok(()) => {
                plan.steps.extend(own.steps);
                plan.notes.extend(own.notes);
            }
            // Half of an agent's files would be worse than none.
            Err(error) => plan.problems.push(Problem { agent: places.agent, error }),
        }
    }
    plan
}

impl Plan {
    /// Makes the changes, one file after the other. What was done stays done if a later one fails.
    pub(crate) fn carry_out(&self, aim: Aim, archive: &mut Archive) -> Result<Vec<Done>> {
        let mut done = Vec::new();
        if self.steps.is_empty() {
            return Ok(done);
        }
        let _locked = archive.lock()?;
        for step in &self.steps {
            let applied = match aim {
                Aim::Install => archive.apply(&step.change),
                Aim::Uninstall => archive.undo(&step.change),
            };
            if applied.is_err() || step.change.durability == Durability::Synced {
                archive.save()?;
            }
            let Step { agent, change, what, own_folder } = step;
            done.push(Done {
                agent: agent.name(),
                path: change.path.clone(),
                change: step.kind(),
                what: what.clone(),
                own_folder: own_folder.clone(),
                copy: applied?,
            });
        }
        archive.sweep();
        archive.save()?;
        Ok(done)
    }

    fn install(&mut self, places: &Places, program: &str, paths: &Paths, archive: &Archive) -> Result<()> {
        program::check(program, places.agent)?;
        let (entries, left_out) = entries(places.agent, Program::At(program), paths);
        self.notes.extend(left_out);
        if entries.is_empty() {
            bail!("no enabled guest wants an event of {}; see `omc-host guests list`", title(places.agent));
        }
        let what = format!("{} hooks", entries.len());
        self.edit(
            places,
            &places.hooks,
            what,
            archive,
            |text| Ok(hooks::register(text, places.agent, &entries)?),
            |text| Ok(hooks::unregister(text, places.agent)?),
        )?;
        if let Some(file) = &places.servers {
            let register = |text: &str| Ok(servers::register(text, program)?);
            let unregister = |text: &str| Ok(servers::unregister(text)?);
            self.edit(places, file, "the server `omc`".to_owned(), archive, register, unregister)?;
        }
        self.own_folder(places, program, archive)
    }

    /// Plans the edit of a file that is somebody's. `without` takes out what is ours.
    fn edit(
        &mut self,
        places: &Places,
        path: &Path,
        what: String,
        archive: &Archive,
        with: impl FnOnce(&str) -> Result<String>,
        without: impl FnOnce(&str) -> Result<String>,
    ) -> Result<()> {
        let beneath = beneath(places, path)?;
        let before = files::read(path)?;
        let bytes = before.clone().unwrap_or_default();
        let (has_mark, text) = files::text(path, &bytes)?;
        let failed = || format!("failed to set up {} in `{}`", title(places.agent), path.display());
        let new = with(&text).with_context(failed)?;
        if new == text {
            return Ok(());
        }
        let is_clean = without(&text).with_context(failed)? == text;
        let origin = archive.origin(path, before.as_deref(), is_clean);
        let after = Some(marked(has_mark, new));
        let durability = Durability::Synced;
        let change = Change { path: path.to_owned(), before, after, origin, beneath, durability };
        self.steps.push(Step { agent: places.agent, change, what, own_folder: None });
        Ok(())
    }

    /// Plans the files of the folder that is ours alone.
    fn own_folder(&mut self, places: &Places, program: &str, archive: &Archive) -> Result<()> {
        let files = skills::folder(places, program);
        let wanted: BTreeSet<PathBuf> = files.iter().map(|(path, _)| places.skills.join(path)).collect();
        for (path, text) in files {
            let (path, what) = (places.skills.join(&path), path.display().to_string());
            let beneath = beneath(places, &path)?;
            let before = files::read(&path)?;
            if before.as_deref() == Some(text.as_bytes()) {
                continue;
            }
            if before.is_some() && !archive.knows(&path) {
                bail!(
                    "`{}` is there and not omc-host's; move `{}` away, or remove it",
                    path.display(),
                    places.skills.display()
                );
            }
            let origin = archive.origin(&path, before.as_deref(), true);
            let (after, durability) = (Some(text.into_bytes()), Durability::Unsynced);
            let change = Change { path, before, after, origin, beneath, durability };
            self.steps.push(Step { agent: places.agent, change, what, own_folder: Some(places.skills.clone()) });
        }
        // What an older version put there.
        for path in archive.below(&places.skills).into_iter().filter(|path| !wanted.contains(path)) {
            self.remove(places, path, archive)?;
        }
        Ok(())
    }

    fn uninstall(&mut self, places: &Places, program: &str, archive: &Archive) -> Result<()> {
        let agent = places.agent;
        self.clean(places, &places.hooks, "hooks", archive, |text| Ok(hooks::unregister(text, agent)?))?;
        if let Some(file) = &places.servers {
            self.clean(places, file, "the server `omc`", archive, |text| Ok(servers::unregister(text)?))?;
        }
        for path in archive.below(&places.skills) {
            self.remove(places, path, archive)?;
        }
        // Without a receipt a file is ours if this version would write the same.
        for (path, text) in skills::folder(places, program) {
            let path = places.skills.join(path);
            if !archive.knows(&path) && files::read(&path)?.is_some_and(|bytes| bytes == text.as_bytes()) {
                self.removal(places, path, text.into_bytes())?;
            }
        }
        Ok(())
    }

    /// Plans to take what is ours out of a file, or to bring back the file from before if nobody touched it since.
    fn clean(
        &mut self,
        places: &Places,
        path: &Path,
        what: &str,
        archive: &Archive,
        without: impl FnOnce(&str) -> Result<String>,
    ) -> Result<()> {
        let beneath = beneath(places, path)?;
        let Some(before) = files::read(path)? else { return Ok(()) };
        let after = if let Some(Original(original)) = archive.original(path, &before) {
            original
        } else {
            let cleaned = files::text(path, &before).and_then(|(has_mark, text)| Ok((has_mark, without(&text)?, text)));
            let (has_mark, new, text) = match cleaned {
                Ok(cleaned) => cleaned,
                // Whatever is wrong with it, it is not ours to mend.
                Err(_) if !archive.knows(path) && !names_us(&before) => return Ok(()),
                Err(error) => {
                    return Err(error.context(format!("failed to take {what} out of `{}`", path.display())));
                }
            };
            if new == text {
                return Ok(());
            }
            Some(marked(has_mark, new))
        };
        let (before, origin, durability) = (Some(before), Origin::Unknown, Durability::Synced);
        let change = Change { path: path.to_owned(), before, after, origin, beneath, durability };
        if places.agent == Agent::Codex && *path == places.hooks {
            self.notes.extend(moved(places, &change));
        }
        self.steps.push(Step { agent: places.agent, change, what: what.to_owned(), own_folder: None });
        Ok(())
    }

    /// Plans to remove a file of ours, unless somebody made it theirs.
    fn remove(&mut self, places: &Places, path: PathBuf, archive: &Archive) -> Result<()> {
        let Some(bytes) = files::read(&path)? else { return Ok(()) };
        if archive.receipt(&path, &bytes).is_none() {
            self.notes.push(format!("`{}` was changed since it was written and stays", path.display()));
            return Ok(());
        }
        self.removal(places, path, bytes)
    }

    fn removal(&mut self, places: &Places, path: PathBuf, bytes: Vec<u8>) -> Result<()> {
        let beneath = beneath(places, &path)?;
        let what = path.strip_prefix(&places.skills).unwrap_or(&path).display().to_string();
        let (before, origin, durability) = (Some(bytes), Origin::Unknown, Durability::Unsynced);
        let change = Change { path, before, after: None, origin, beneath, durability };
        self.steps.push(Step { agent: places.agent, change, what, own_folder: Some(places.skills.clone()) });
        Ok(())
    }
}

/// Whether a file that cannot be read as what it is may have an entry of ours in it: each names this program.
fn names_us(bytes: &[u8]) -> bool {
    String::from_utf8_lossy(bytes).contains("omc-host")
}

/// What is to be said where entries of others stand behind ours: their places are part of what Codex trusts.
fn moved(places: &Places, change: &Change) -> Option<String> {
    let (_, text) = files::text(&change.path, change.before.as_deref()?).ok()?;
    let handlers = hooks_file::handlers(&change.path, &text, places.agent).ok()?;
    let is_ours = |found: &Registered| ours::program_of(&found.handler).is_some();
    let is_behind_ours = |at: usize| {
        let before = handlers[..at].iter().filter(|earlier| earlier.event == handlers[at].event);
        !is_ours(&handlers[at]) && before.clone().any(is_ours)
    };
    let events: BTreeSet<&str> =
        (0..handlers.len()).filter(|&at| is_behind_ours(at)).map(|at| handlers[at].event.as_str()).collect();
    let events: Vec<_> = events.into_iter().collect();
    (!events.is_empty()).then(|| {
        format!(
            "other hooks on {} move up in `{}`, so that Codex asks you to trust them again",
            events.join(", "),
            change.path.display()
        )
    })
}

/// The entries for an agent: an event each for which an enabled guest asks. And what is to be said about events that are left
/// out.
pub(crate) fn entries(agent: Agent, program: Program<'_>, paths: &Paths) -> (Vec<Entry>, Vec<String>) {
    let (rows, on_request): (Vec<_>, Vec<_>) =
        wanted(agent, paths).into_iter().partition(|(row, _)| row.install == Install::WhenNeeded);
    let note = |(row, guest): (&Contract, String)| {
        format!(
            "the guest `{guest}` asks for `{}`, which is left out: a hook for it changes what {} does by being there",
            row.event,
            title(agent)
        )
    };
    let entries = rows.into_iter().filter_map(|(row, _)| Entry::new(row, program)).collect();
    (entries, on_request.into_iter().map(note).collect())
}

/// The events of an agent for which an enabled guest asks, with one that does.
fn wanted(agent: Agent, paths: &Paths) -> Vec<(&'static Contract, String)> {
    let settings = Settings::load(SYSTEM_CONFIG_FILE.as_ref(), paths.user_config_file().as_deref(), None);
    let registry = Registry::load(paths);
    let is_on = |guest: &Guest| settings.guest(guest.name()).switch.is_on(guest.is_on_by_default());
    let guests: Vec<_> = registry.guests().filter(is_on).collect();
    let asked = |row: &'static Contract| {
        let guest = guests.iter().find(|guest| guest.subscribes_to(row.kind.name()))?;
        Some((row, guest.name().to_owned()))
    };
    contract::rows(agent).iter().filter_map(asked).collect()
}

/// The folder below which a path must have no links: a project's content is not its user's.
fn beneath(places: &Places, path: &Path) -> Result<Option<PathBuf>> {
    if places.scope == Scope::User {
        return Ok(None);
    }
    files::refuse_links(&places.root, path)?;
    Ok(Some(places.root.clone()))
}

fn marked(has_mark: bool, text: String) -> Vec<u8> {
    if has_mark { format!("\u{feff}{text}").into_bytes() } else { text.into_bytes() }
}

/// The agent's name for people.
pub(crate) fn title(agent: Agent) -> &'static str {
    match agent {
        Agent::Claude => "Claude Code",
        Agent::Codex => "Codex",
        other => other.name(),
    }
}

/// The places of the agents that are named, or of those that are there.
pub(crate) fn places(agents: &[Agent], scope: Scope, project: Option<&Path>, paths: &Paths) -> Result<Vec<Places>> {
    let of = |agent: Agent| match scope {
        Scope::User => {
            Places::of_user(agent, paths).context("there is no home folder: HOME is not set to an absolute path")
        }
        Scope::Project => {
            let project = project.context("there is no project here; run the command in one")?;
            Places::of_project(agent, project).ok_or_else(|| anyhow!("`{}` cannot be set up", agent.name()))
        }
    };
    if !agents.is_empty() {
        return agents.iter().map(|agent| of(*agent)).collect();
    }
    let is_used = |agent: &Agent| Places::of_user(*agent, paths).is_some_and(|places| places.agent_is_there());
    AGENTS.into_iter().filter(is_used).map(of).collect()
}

/// What a person should do or know after an installation.
pub(crate) fn next_steps(places: &[Places], program: &str, plan: &Plan) -> Vec<String> {
    let mut notes: Vec<String> = program::warning(program).into_iter().collect();
    for places in places {
        let hooks = places.hooks.display();
        let is_changed = plan.steps.iter().any(|step| step.change.path == places.hooks);
        match (places.agent, places.scope) {
            (Agent::Codex, scope) if is_changed => {
                notes.push("Codex runs a hook once you trust it: start `codex` and look at `/hooks`; until then `codex exec` skips it without a word".to_owned());
                if scope == Scope::Project {
                    notes.push(format!("`{hooks}` names a program of this computer, and Codex has no private file in a project: keep it out of the repository, or agree on a path with the others"));
                }
            }
            (Agent::Claude, Scope::Project) if is_changed => notes.push(format!(
                "`{hooks}` names a program of this computer and is private by its name; see that git ignores it"
            )),
            _ => {}
        }
    }
    notes
}

#[cfg(all(test, unix))]
mod tests;
