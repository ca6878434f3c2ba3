//! Where the agents keep what an installation writes.
//!
//! | agent | scope | hooks | tools | skills |
//! |---|---|---|---|---|
//! | Claude Code | user | `~/.claude/settings.json` | `.mcp.json` of the plugin | plugin `~/.claude/skills/omc` |
//! | Claude Code | project | `.claude/settings.local.json` | `.mcp.json` of the plugin | plugin `.claude/skills/omc` |
//! | Codex | user | `~/.codex/hooks.json` | `~/.codex/config.toml` | `~/.agents/skills/omc` |
//! | Codex | project | `.codex/hooks.json` | `.codex/config.toml` | `.agents/skills/omc` |
//!
//! Claude Code takes a folder with a manifest below `skills/` for a plugin, without a marketplace: so `/omc:NAME` works, and the
//! file in which it keeps its own state and its servers, and which it rewrites all the time, stays alone. Hooks are in the
//! settings all the same: only there they can have the time that the end of a session takes.
//!
//! Of a project's files the private one is taken where there is one. Codex has none, and the folder of skills gets an ignore file.

use std::path::{Path, PathBuf};

use crate::config::Paths;
use crate::protocol::event::Agent;

/// The name of our folder of skills, of the plugin, and of the server.
pub(crate) const NAME: &str = "omc";

/// Agents that can be set up.
pub(crate) const AGENTS: [Agent; 2] = [Agent::Claude, Agent::Codex];

/// For whom an agent is set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Scope {
    /// For all projects of this user
    User,
    /// For one project, and for this user alone where the agent knows that
    Project,
}

/// Where things of one agent and scope are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Places {
    pub(crate) agent: Agent,
    pub(crate) scope: Scope,
    /// What all the rest is below: the agent's own folder, or the project.
    pub(crate) root: PathBuf,
    /// The file with the hooks.
    pub(crate) hooks: PathBuf,
    /// The file with the servers, if it is not ours.
    pub(crate) servers: Option<PathBuf>,
    /// Our own folder, with the skills.
    pub(crate) skills: PathBuf,
}

impl Places {
    /// The places of an agent for its user; nothing without a home.
    pub(crate) fn of_user(agent: Agent, paths: &Paths) -> Option<Self> {
        let (root, agents) = match agent {
            Agent::Claude => (paths.claude_dir.clone()?, None),
            Agent::Codex => (paths.codex_dir.clone()?, Some(paths.home.as_ref()?.join(".agents"))),
            _ => return None,
        };
        Some(Self::below(agent, Scope::User, root.clone(), &root, agents.as_ref().unwrap_or(&root)))
    }

    /// The places of an agent in a project.
    pub(crate) fn of_project(agent: Agent, project: &Path) -> Option<Self> {
        let (own, agents) = match agent {
            Agent::Claude => (project.join(".claude"), project.join(".claude")),
            Agent::Codex => (project.join(".codex"), project.join(".agents")),
            _ => return None,
        };
        Some(Self::below(agent, Scope::Project, project.to_owned(), &own, &agents))
    }

    fn below(agent: Agent, scope: Scope, root: PathBuf, own: &Path, agents: &Path) -> Self {
        let hooks = match (agent, scope) {
            (Agent::Codex, _) => "hooks.json",
            (_, Scope::User) => "settings.json",
            (_, Scope::Project) => "settings.local.json",
        };
        Self {
            agent,
            scope,
            root,
            hooks: own.join(hooks),
            servers: (agent == Agent::Codex).then(|| own.join("config.toml")),
            skills: agents.join("skills").join(NAME),
        }
    }

    /// Whether there are signs that the agent is used here.
    pub(crate) fn agent_is_there(&self) -> bool {
        self.root.is_dir()
    }
}
