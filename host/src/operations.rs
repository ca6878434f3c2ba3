//! What people, scripts and models do with a project's state by hand: its modes, notes, memories and wiki.
//!
//! The commands (`omc-host state`, `notepad`, `memory`, `cancel`) and the MCP server are two faces of these functions, so that
//! both mean the same. Formats and their limits are those of `omc-state`; here are the project, the session that somebody means
//! without naming it, bounds on what a model hands over, and answers: each serialises for programs and displays for readers.
//!
//! The repository is not trusted: `.omc` is found and checked as it is for guests, and every change is made under the lock that
//! guests take, so that a command, the server and any number of events lose no update of each other.

pub mod memory;
pub mod notepad;
pub mod shared;
pub mod state;
pub mod wiki;

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use omc_state::{Locker, Mode, SessionId, Store, Timestamp};

use crate::capability::omc_dir::{Status, Unusable};
use crate::capability::{self, LockHandle, NotLocked, OmcDir};
use crate::config::state_root::OMC_DIR;
use crate::config::{Env, EnvVars, GuestSettings, Paths, Refusal, StateRoot};
use crate::surroundings::project_dir;

/// Variables that name the session somebody is in, the best witness first.
const SESSION_VARIABLES: [&str; 3] =
    [EnvVars::OMC_SESSION_ID, EnvVars::CLAUDE_CODE_SESSION_ID, EnvVars::CLAUDE_SESSION_ID];

/// Longest argument that a message repeats, in UTF-16 units.
const MAX_SHOWN_UNITS: usize = 80;

/// Why an operation was not done. Nothing was changed then, unless it says otherwise.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no project here.
    #[error("there is no project here")]
    NoProject(#[source] Refusal),
    /// The folder belongs to another project.
    #[error("`{0}` is outside of the project `{1}`; start in that project to work on its state")]
    Outside(String, String),
    /// The state directory must not be used.
    #[error("the state directory `{0}` is not used")]
    Unusable(String, #[source] Unusable),
    /// A file could not be read or written.
    #[error(transparent)]
    Store(#[from] omc_state::Error),
    /// The notepad is too large, or no text.
    #[error("the notepad `{0}` is not read; the next note keeps it under another name and begins a new one")]
    UnreadableNotepad(String, #[source] omc_state::Error),
    /// An argument is not one that can be used.
    #[error("`{argument}` cannot be used: {why}")]
    Argument {
        /// Its name.
        argument: &'static str,
        /// What is wrong with it, and what would be right.
        why: String,
    },
    /// Several sessions could be meant.
    #[error("several sessions are at work ({}); name the one that is meant: `--session ID` of the command, `session_id` of the tool", list(.0))]
    Ambiguous(Vec<SessionId>),
    /// Another session is at work in the mode, and only one may be.
    #[error("session `{other}` is at work in {mode}, and only one session of a project may be; end that one first")]
    Excluded {
        /// The mode.
        mode: Mode,
        /// Who is at work in it.
        other: SessionId,
    },
    /// The user switched it off.
    #[error("{0} is switched off in the settings")]
    SwitchedOff(&'static str),
    /// The page is not there.
    #[error("there is no page `{0}`; `wiki_list` lists them")]
    NoPage(String),
}

impl Error {
    fn argument(argument: &'static str, why: impl Into<String>) -> Self {
        Self::Argument { argument, why: why.into() }
    }
}

/// The result of an operation.
pub type Result<T> = std::result::Result<T, Error>;

fn list(sessions: &[SessionId]) -> String {
    sessions.iter().map(SessionId::as_str).collect::<Vec<_>>().join(", ")
}

/// A project whose state is worked on.
pub struct Project {
    env: Env,
    root: StateRoot,
    dir: OmcDir,
    store: Store,
}

impl Project {
    /// The project of the folder worked in.
    ///
    /// # Errors
    ///
    /// [`Error::NoProject`], or [`Error::Unusable`] if its state directory is a link, somebody else's or no folder.
    pub fn find(env: &Env) -> Result<Self> {
        Self::at(env, None)
    }

    /// The project of a folder that a model names: the one worked in, seen from anywhere inside it, or a project inside of it.
    ///
    /// # Errors
    ///
    /// [`Error::Outside`] for any other folder, or as [`find`](Self::find).
    pub fn find_within(env: &Env, folder: Option<&str>) -> Result<Self> {
        let own = StateRoot::resolve(None, std::env::current_dir().ok().as_deref(), env).map_err(Error::NoProject)?;
        let Some(folder) = folder else { return Self::of(env, own) };
        let named = Self::at(env, Some(folder))?;
        let is_same = (&named.root.omc_parent, &named.root.omc_name) == (&own.omc_parent, &own.omc_name);
        if is_same || named.root.project_root.starts_with(&own.project_root) {
            Ok(named)
        } else {
            Err(Error::Outside(omc_state::one_line(folder, MAX_SHOWN_UNITS), own.project_root.display().to_string()))
        }
    }

    fn at(env: &Env, folder: Option<&str>) -> Result<Self> {
        let root =
            StateRoot::resolve(folder, std::env::current_dir().ok().as_deref(), env).map_err(Error::NoProject)?;
        Self::of(env, root)
    }

    fn of(env: &Env, root: StateRoot) -> Result<Self> {
        let dir = project_dir(&root);
        let store = Store::new(&root.omc_parent.join(&root.omc_name));
        let project = Self { env: env.clone(), root, dir, store };
        match project.dir.status() {
            Status::Refused(why) => Err(Error::Unusable(project.shown(Path::new("")), why)),
            Status::Open | Status::Missing => Ok(project),
        }
    }

    /// The state to write to, whose directory is made if it is missing.
    fn writable(&self) -> Result<&Store> {
        self.dir.ensure().map_err(|why| Error::Unusable(self.shown(Path::new("")), why))?;
        self.store.ensure_ignored()?;
        Ok(&self.store)
    }

    /// The locks that guests take, of the same folders.
    fn locker(&self) -> impl Locker<Guard = LockHandle, Error = NotLocked> + '_ {
        |name: &str, wait: Duration| capability::native_lock(&self.dir, name, wait)
    }

    /// A path below the state directory, as people write it.
    fn shown(&self, path: &Path) -> String {
        let root = if self.root.omc_name == OMC_DIR {
            PathBuf::from(OMC_DIR)
        } else {
            self.root.omc_parent.join(&self.root.omc_name)
        };
        let path: PathBuf = root.join(path).components().collect();
        path.display().to_string()
    }

    /// Whether a setting of this name is on.
    fn is_on(&self, setting: &str) -> bool {
        let cwd = std::env::current_dir().ok();
        let paths = Paths::resolve(&self.env, Some(&self.root.project_root), cwd.as_deref());
        let settings = GuestSettings::new(&paths, Some(&self.root.project_root), &self.env);
        settings.get(setting).as_deref() == Some("true")
    }

    /// The session that is named.
    fn named_session(session: Option<&str>) -> Result<Option<SessionId>> {
        let parse = |text: &str| {
            let why = "an id is a letter or digit and then at most 255 letters, digits, `_` or `-`";
            SessionId::parse(text).ok_or_else(|| Error::argument("session_id", why))
        };
        session.filter(|session| !session.is_empty()).map(parse).transpose()
    }

    /// The session that this process was started in, if the project knows it. A server outlives the session that started it, so
    /// a session that is gone is not believed.
    fn own_session(&self) -> Option<SessionId> {
        let mut named = SESSION_VARIABLES.iter().filter_map(|name| self.env.get(name)?.to_str());
        let session = named.find_map(SessionId::parse)?;
        self.store.sessions().contains(&session).then_some(session)
    }

    /// The one session that somebody means who names none: its own, else the only one of these.
    fn meant_session(&self, at_work: Vec<SessionId>) -> Result<Option<SessionId>> {
        if let Some(own) = self.own_session() {
            return Ok(Some(own));
        }
        match <[SessionId; 1]>::try_from(at_work) {
            Ok([only]) => Ok(Some(only)),
            Err(none) if none.is_empty() => Ok(None),
            Err(several) => Err(Error::Ambiguous(several)),
        }
    }
}

fn now() -> Timestamp {
    Timestamp::from(SystemTime::now())
}

/// A mode by its name.
fn mode(name: &str) -> Result<Mode> {
    Mode::from_name(name).ok_or_else(|| {
        let names: Vec<_> = Mode::ALL.iter().map(|mode| mode.name()).collect();
        Error::argument("mode", format!("the modes are {}", names.join(", ")))
    })
}

/// Refuses a text that is empty or too long.
fn check_text(argument: &'static str, text: &str, max_units: usize) -> Result<()> {
    if text.trim().is_empty() {
        return Err(Error::argument(argument, "it is empty"));
    }
    check_length(argument, text, max_units)
}

/// Refuses a text that is too long.
fn check_length(argument: &'static str, text: &str, max_units: usize) -> Result<()> {
    let units = omc_state::units(text);
    if units > max_units {
        return Err(Error::argument(argument, format!("it has {units} UTF-16 units, and {max_units} is the limit")));
    }
    Ok(())
}

/// JSON for a reader.
fn pretty(value: &impl serde::Serialize, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
    formatter.write_str(&serde_json::to_string_pretty(value).map_err(|_| fmt::Error)?)
}
