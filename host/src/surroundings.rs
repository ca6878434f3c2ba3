//! What lies around one event: its configuration, and the `.omc` directories of project and user.
//!
//! Found once on the event's own thread and shared by all its guests, so that they all see the same root. Nothing is created here.

use std::borrow::Cow;
use std::env;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use omc_artifact::ReadRoot;
use omc_tool::{Linked, ToolCall};

use crate::capability::OmcDir;
use crate::config::state_root::{LinkedFolder, OMC_DIR, Parent};
use crate::config::{self, Env, EnvVars, StateRoot};
use crate::protocol::event::{Agent, Event};
use crate::spill::Spill;

/// What lies around one event.
pub(crate) struct Surroundings {
    pub(crate) config: config::Config,
    project_dir: Option<Arc<OmcDir>>,
    user_dir: Option<Arc<OmcDir>>,
    session_env_file: Option<PathBuf>,
    is_dry_run: bool,
}

impl Surroundings {
    /// Looks around from the folder that the event names.
    pub(crate) fn find(event: &Event, env: &Env) -> Self {
        let config = config::Config::read(env, event.cwd());
        let project_dir = config.state.as_ref().ok().map(|root| Arc::new(project_dir(root)));
        let user_dir = config.paths.user_omc_parent().map(|home| Arc::new(OmcDir::find(home, OMC_DIR)));
        let session_env_file = env.absolute(EnvVars::CLAUDE_ENV_FILE).map(Path::to_owned);
        Self { config, project_dir, user_dir, session_env_file, is_dry_run: false }
    }

    /// Puts copies in the place of the directories: from here on it is a dry run.
    pub(crate) fn become_copies(&mut self, project: Option<Arc<OmcDir>>, user: Option<Arc<OmcDir>>) {
        (self.project_dir, self.user_dir, self.is_dry_run) = (project, user, true);
    }

    /// Capabilities that nobody has in a dry run: what they do cannot be done on copies.
    pub(crate) fn withheld(&self) -> &'static [&'static str] {
        if self.is_dry_run { &["http"] } else { &[] }
    }

    /// Whether nothing may change outside of the copies.
    pub(crate) fn is_dry_run(&self) -> bool {
        self.is_dry_run
    }

    /// Where the agent takes variables for the session's later commands from, as it says itself.
    pub(crate) fn session_env_file(&self) -> Option<&Path> {
        self.session_env_file.as_deref()
    }

    /// The project's root, if the event has a project.
    pub(crate) fn project_root(&self) -> Option<&Path> {
        self.config.state.as_ref().ok().map(|root| root.project_root.as_path())
    }

    /// The call of a tool that the event is about; its paths in the project begin with the project's root.
    pub(crate) fn tool_call<'a>(&'a self, event: &'a Event) -> Option<ToolCall<'a>> {
        Some(ToolCall { linked: self.linked(), ..event.tool_call()? })
    }

    /// A path of the agent's, with the project's root as its beginning where it is in the project.
    pub(crate) fn without_link<'a>(&self, path: &'a str) -> Cow<'a, str> {
        self.linked().and_then(|linked| linked.resolve(path)).map_or(Cow::Borrowed(path), Cow::Owned)
    }

    fn linked(&self) -> Option<Linked<'_>> {
        self.config.state.as_ref().ok()?.linked.as_ref().map(LinkedFolder::names)
    }

    /// Whether the project's root is the top of a git work tree.
    pub(crate) fn in_work_tree(&self) -> bool {
        self.config.state.as_ref().is_ok_and(|root| root.is_work_tree)
    }

    /// The project's `.omc`.
    pub(crate) fn project_dir(&self) -> Option<&Arc<OmcDir>> {
        self.project_dir.as_ref()
    }

    /// Where the project's texts go that are too long for an answer.
    pub(crate) fn spill(&self) -> Option<Spill> {
        let root = self.config.state.as_ref().ok()?;
        Some(Spill::new(Arc::clone(self.project_dir()?), root.omc_parent.join(&root.omc_name)))
    }

    /// The user's `.omc`.
    pub(crate) fn user_dir(&self) -> Option<&Arc<OmcDir>> {
        self.user_dir.as_ref()
    }

    /// The folder in which a root of readable files lies, if there is one for this agent.
    pub(crate) fn readable(&self, root: ReadRoot, agent: Agent) -> Option<PathBuf> {
        let paths = &self.config.paths;
        match (root, agent) {
            (ReadRoot::Project, _) => self.project_root().map(Path::to_owned),
            (ReadRoot::Home, _) => paths.home.clone(),
            (ReadRoot::Agent, Agent::Claude) => paths.claude_dir.clone(),
            (ReadRoot::Agent, Agent::Codex) => paths.codex_dir.clone(),
            (ReadRoot::Agent, _) => None,
        }
    }

    /// An environment variable, if it is set and UTF-8.
    pub(crate) fn variable(name: &str) -> Option<String> {
        // The system's own call panics at such a name.
        if name.is_empty() || name.contains(['=', '\0']) {
            return None;
        }
        env::var_os(name)?.into_string().ok()
    }
}

/// The state directory of a project.
pub(crate) fn project_dir(root: &StateRoot) -> OmcDir {
    // The name is ours (`.omc`) or made of a folder's name with what is not plain replaced.
    let name = root.omc_name.to_string_lossy();
    match root.parent {
        Parent::Present => OmcDir::find(&root.omc_parent, &name),
        Parent::Missing => OmcDir::below_missing(root.clone(), &name),
    }
}
