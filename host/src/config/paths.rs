//! Where the host's own files and the user's settings are.
//!
//! The XDG base directories on every Unix, macOS included, as command-line tools have it; on Windows `%APPDATA%` and
//! `%LOCALAPPDATA%` stand in. A relative XDG value is ignored, as its specification asks. Without a home folder a path is
//! absent, never a guess and never a failure.
//!
//! These folders are trusted: guests, their grants and compiled code come from there. A repository's own settings can set
//! environment variables for hooks (Claude Code's `.claude/settings.json` does), so a variable that points into a project
//! is not believed. For an XDG variable the default takes its place; for `HOME` the account's own home does, because a
//! home inside the project would bring guests and turn required ones off. What is set elsewhere is the user's business;
//! what must hold against everything belongs into [`SYSTEM_CONFIG_FILE`].

use super::env::{Env, EnvVars};
use super::problem::Problem;
use super::state_root::{canonical_or_same, work_tree_of};
use std::path::{Component, Path, PathBuf};

/// The operator's configuration, which nothing below it can weaken.
pub const SYSTEM_CONFIG_FILE: &str =
    if cfg!(windows) { r"C:\ProgramData\omc-host\config.toml" } else { "/etc/omc-host/config.toml" };

/// The name of our own folder in each base directory.
const OWN: &str = "omc-host";

/// The name of our configuration file in its folder.
const CONFIG_FILE: &str = "config.toml";

/// The folders of the host and of its user. What is absent cannot be found in this environment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Paths {
    /// The user's home, canonical if it exists. It is also the folder that holds the user's own `.omc`.
    pub home: Option<PathBuf>,
    /// Configuration: `${XDG_CONFIG_HOME:-~/.config}/omc-host`.
    pub config_dir: Option<PathBuf>,
    /// Installed guests and their lock file: `${XDG_DATA_HOME:-~/.local/share}/omc-host`.
    pub data_dir: Option<PathBuf>,
    /// Compiled guests: `${XDG_CACHE_HOME:-~/.cache}/omc-host`.
    pub cache_dir: Option<PathBuf>,
    /// The audit trail: `${XDG_STATE_HOME:-~/.local/state}/omc-host`.
    pub state_dir: Option<PathBuf>,
    /// The original's folder for the user's settings: `${XDG_CONFIG_HOME:-~/.config}/claude-omc`.
    pub omc_config_dir: Option<PathBuf>,
    /// Claude Code's own folder: `${CLAUDE_CONFIG_DIR:-~/.claude}`.
    pub claude_dir: Option<PathBuf>,
    /// Codex CLI's own folder: `${CODEX_HOME:-~/.codex}`.
    pub codex_dir: Option<PathBuf>,
    /// Which variables were not believed.
    pub problems: Vec<Problem>,
}

impl Paths {
    /// Finds the folders for an event in the project with this root (`None` if it has no project).
    ///
    /// `process_cwd` is the process's own folder: a session's first project may differ from the one now worked in.
    pub fn resolve(env: &Env, project_root: Option<&Path>, process_cwd: Option<&Path>) -> Self {
        Self::resolve_with(env, &projects(env, project_root, process_cwd), account_home)
    }

    /// The user's configuration file.
    pub fn user_config_file(&self) -> Option<PathBuf> {
        self.config_dir.as_ref().map(|dir| dir.join(CONFIG_FILE))
    }

    /// The folder that holds the user's own `.omc`.
    pub fn user_omc_parent(&self) -> Option<&Path> {
        self.home.as_deref()
    }

    fn resolve_with(env: &Env, projects: &[PathBuf], account_home: impl FnOnce() -> Option<PathBuf>) -> Self {
        let mut problems = Vec::new();
        let mut home = env.home().map(canonical_or_same);
        let mut projects: Vec<&Path> = projects.iter().map(PathBuf::as_path).collect();
        if let Some(claimed) = home.take() {
            let suspect = projects.iter().any(|project| claimed.starts_with(project));
            home = if suspect { account_home().map(|home| canonical_or_same(&home)) } else { Some(claimed.clone()) };
            if home.as_ref() != Some(&claimed) {
                problems.push(disbelieved(EnvVars::HOME));
            }
        }
        if let Some(home) = &home {
            // Somebody works in the home folder or above it: then everything of theirs is inside, and rightly so.
            projects.retain(|project| !home.starts_with(project));
        }

        let mut base = |variable, windows, default: &str| {
            let claimed = env.absolute(variable).or_else(|| if cfg!(windows) { env.absolute(windows) } else { None });
            let claimed = claimed.filter(|path| {
                let inside = projects.iter().any(|project| lies_inside(path, project));
                if inside {
                    problems.push(disbelieved(variable));
                }
                !inside
            });
            claimed.map(Path::to_owned).or_else(|| home.as_ref().map(|home| home.join(default)))
        };
        let config = base(EnvVars::XDG_CONFIG_HOME, EnvVars::APPDATA, ".config");
        let data = base(EnvVars::XDG_DATA_HOME, EnvVars::LOCALAPPDATA, ".local/share");
        let cache = base(EnvVars::XDG_CACHE_HOME, EnvVars::LOCALAPPDATA, ".cache");
        let state = base(EnvVars::XDG_STATE_HOME, EnvVars::LOCALAPPDATA, ".local/state");
        let mut agent =
            |variable, default| agent_dir(env, (variable, default), home.as_deref(), &projects, &mut problems);
        let claude_dir = agent(EnvVars::CLAUDE_CONFIG_DIR, ".claude");
        let codex_dir = agent(EnvVars::CODEX_HOME, ".codex");
        let own = |dir: &Option<PathBuf>| dir.as_ref().map(|dir| dir.join(OWN));
        Self {
            config_dir: own(&config),
            data_dir: own(&data),
            cache_dir: own(&cache),
            state_dir: own(&state),
            omc_config_dir: config.map(|dir| dir.join("claude-omc")),
            claude_dir,
            codex_dir,
            home,
            problems,
        }
    }
}

/// An agent's own folder, from its variable or by its name in the home folder. The value may start with `~`, because settings
/// files, which no shell expands, hold it too.
fn agent_dir(
    env: &Env,
    (variable, name): (&'static str, &str),
    home: Option<&Path>,
    projects: &[&Path],
    problems: &mut Vec<Problem>,
) -> Option<PathBuf> {
    let default = || home.map(|home| home.join(name));
    let Some(value) = env.get(variable) else { return default() };
    let text = value.to_str().map(str::trim);
    let dir = match text.and_then(|text| text.strip_prefix('~')) {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => home?.join(rest.trim_start_matches('/')),
        _ => PathBuf::from(text.map_or(value, str::as_ref)),
    };
    if !dir.is_absolute() {
        return default();
    }
    if projects.iter().any(|project| lies_inside(&dir, project)) {
        problems.push(disbelieved(variable));
        return default();
    }
    Some(dir)
}

fn disbelieved(variable: &str) -> Problem {
    Problem::of_environment(
        format!("`{variable}` points into the project and was ignored"),
        "look for it in the project's settings; if it is yours, point it to a folder outside of projects",
    )
}

/// The roots of the projects that may have had a say in the environment, canonical and without the root of the file system.
fn projects(env: &Env, project_root: Option<&Path>, process_cwd: Option<&Path>) -> Vec<PathBuf> {
    let mut roots: Vec<PathBuf> = project_root.map(Path::to_owned).into_iter().collect();
    for folder in [env.absolute(EnvVars::CLAUDE_PROJECT_DIR), process_cwd].into_iter().flatten() {
        // The usual case, one project for all three, costs no look at the disk.
        if roots.iter().any(|root| folder.starts_with(root)) {
            continue;
        }
        let folder = canonical_or_same(folder);
        roots.push(work_tree_of(&folder, None).unwrap_or(folder));
    }
    roots.retain(|root| root.parent().is_some());
    roots
}

/// Whether a path is a folder or lies in it, whatever name leads there.
fn lies_inside(path: &Path, folder: &Path) -> bool {
    // The part that exists has a canonical form; in the rest only `..` could lead elsewhere, and nothing good needs it.
    for existing in path.ancestors() {
        if let Ok(canonical) = existing.canonicalize() {
            let rest = path.strip_prefix(existing).unwrap_or(Path::new(""));
            return canonical.starts_with(folder) || rest.components().any(|part| part == Component::ParentDir);
        }
    }
    true
}

/// Largest file of accounts that is read, in bytes: far above any real one.
#[cfg(unix)]
const MAX_PASSWD_BYTES: u64 = 1 << 20;

/// The home folder of this account, which no environment variable changes.
///
/// Only asked when `HOME` is suspect. Accounts that are not in the file (directory services, macOS) have none.
#[cfg(unix)]
fn account_home() -> Option<PathBuf> {
    let passwd = super::file::read(Path::new("/etc/passwd"), MAX_PASSWD_BYTES).ok()??;
    home_in(&passwd.text, rustix::process::geteuid().as_raw())
}

#[cfg(not(unix))]
fn account_home() -> Option<PathBuf> {
    None
}

/// The name of this account, or its number where it has none: for records of who agreed to something.
#[cfg(unix)]
pub(crate) fn account_name() -> String {
    let uid = rustix::process::geteuid().as_raw();
    let passwd = super::file::read(Path::new("/etc/passwd"), MAX_PASSWD_BYTES).ok().flatten();
    let name = passwd.and_then(|passwd| {
        passwd.text.lines().find_map(|line| {
            let mut fields = line.split(':');
            let name = fields.next()?;
            (fields.nth(1)?.parse() == Ok(uid)).then(|| name.to_owned())
        })
    });
    name.unwrap_or_else(|| format!("uid {uid}"))
}

#[cfg(not(unix))]
pub(crate) fn account_name() -> String {
    String::new()
}

/// The home folder of a user in the text of `/etc/passwd`.
#[cfg(unix)]
fn home_in(passwd: &str, uid: u32) -> Option<PathBuf> {
    passwd.lines().find_map(|line| {
        let mut fields = line.split(':').skip(2);
        let own = fields.next()?.parse() == Ok(uid);
        fields.nth(2).map(PathBuf::from).filter(|home| own && home.is_absolute())
    })
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    fn unasked() -> Option<PathBuf> {
        panic!("nothing was suspect")
    }

    fn resolve(pairs: &[(&str, &str)]) -> Paths {
        Paths::resolve_with(&Env::from_pairs(pairs), &[], unasked)
    }

    fn path(text: &str) -> PathBuf {
        PathBuf::from(text)
    }

    #[test]
    fn without_xdg_variables_the_folders_are_in_the_home() {
        let paths = resolve(&[("HOME", "/nonexistent/u")]);
        assert_eq!(paths.config_dir, Some(path("/nonexistent/u/.config/omc-host")));
        assert_eq!(paths.user_config_file(), Some(path("/nonexistent/u/.config/omc-host/config.toml")));
        assert_eq!(paths.data_dir, Some(path("/nonexistent/u/.local/share/omc-host")));
        assert_eq!(paths.cache_dir, Some(path("/nonexistent/u/.cache/omc-host")));
        assert_eq!(paths.state_dir, Some(path("/nonexistent/u/.local/state/omc-host")));
        assert_eq!(paths.omc_config_dir, Some(path("/nonexistent/u/.config/claude-omc")));
        assert_eq!(paths.claude_dir, Some(path("/nonexistent/u/.claude")));
        assert_eq!(paths.codex_dir, Some(path("/nonexistent/u/.codex")));
        assert_eq!(paths.user_omc_parent(), Some(Path::new("/nonexistent/u")));
    }

    #[test]
    fn xdg_variables_count_if_they_are_absolute() {
        for (value, expected) in [
            ("/x/c", "/x/c/omc-host"),
            ("c", "/u/.config/omc-host"),
            ("./c", "/u/.config/omc-host"),
            ("~/c", "/u/.config/omc-host"),
        ] {
            assert_eq!(
                resolve(&[("HOME", "/u"), ("XDG_CONFIG_HOME", value)]).config_dir,
                Some(path(expected)),
                "{value}"
            );
        }
    }

    #[test]
    fn without_a_home_folders_are_absent() {
        assert_eq!(resolve(&[]), Paths::default());
        assert_eq!(resolve(&[("HOME", "relative")]), Paths::default());
        let paths = resolve(&[("XDG_STATE_HOME", "/x/s")]);
        assert_eq!((paths.state_dir, paths.config_dir, paths.home), (Some(path("/x/s/omc-host")), None, None));
    }

    #[test]
    fn claude_s_folder_may_start_with_a_tilde() {
        for (value, expected) in [
            ("/c/", "/c"),
            (" /c ", "/c"),
            ("~", "/u"),
            ("~/c/", "/u/c"),
            ("~other/c", "/u/.claude"),
            ("c", "/u/.claude"),
        ] {
            assert_eq!(
                resolve(&[("HOME", "/u"), ("CLAUDE_CONFIG_DIR", value)]).claude_dir,
                Some(path(expected)),
                "{value}"
            );
        }
    }

    #[test]
    fn no_variable_leads_into_a_project() {
        let dir = tempfile::tempdir().expect("a folder");
        let dir = dir.path().canonicalize().expect("canonical");
        let (home, project) = (dir.join("home"), dir.join("project"));
        fs::create_dir_all(project.join("evil/omc-host")).expect("created");
        fs::create_dir(&home).expect("created");
        symlink(&project, dir.join("alias")).expect("linked");
        let good = Paths::resolve_with(&Env::from_pairs(&[("HOME", &home)]), std::slice::from_ref(&project), unasked);
        for value in [
            "project/evil",
            "project",
            "alias/evil",
            "project/not/yet",
            "home/../project/evil",
            "home/new/../../project/evil",
        ] {
            for variable in [
                "XDG_CONFIG_HOME",
                "XDG_DATA_HOME",
                "XDG_CACHE_HOME",
                "XDG_STATE_HOME",
                "CLAUDE_CONFIG_DIR",
                "CODEX_HOME",
            ] {
                let value = dir.join(value);
                let env = Env::from_pairs(&[("HOME", home.as_os_str()), (variable, value.as_os_str())]);
                let mut paths = Paths::resolve_with(&env, std::slice::from_ref(&project), unasked);
                assert_eq!(std::mem::take(&mut paths.problems).len(), 1, "{variable}={}", value.display());
                assert_eq!(paths, good, "{variable}={}", value.display());
            }
        }
        let elsewhere = dir.join("project-two");
        let env = Env::from_pairs(&[("HOME", home.as_os_str()), ("XDG_DATA_HOME", elsewhere.as_os_str())]);
        let paths = Paths::resolve_with(&env, &[project], unasked);
        assert_eq!(paths.data_dir, Some(elsewhere.join("omc-host")), "a name that only begins alike is outside");
    }

    #[test]
    fn a_home_in_a_project_gives_way_to_the_account_s_own() {
        let project = [PathBuf::from("/nonexistent/project")];
        for claimed in ["/nonexistent/project", "/nonexistent/project/fake"] {
            let env = Env::from_pairs(&[("HOME", claimed)]);
            let paths = Paths::resolve_with(&env, &project, || Some(path("/nonexistent/u")));
            assert_eq!((paths.home, paths.problems.len()), (Some(path("/nonexistent/u")), 1), "{claimed}");
            let paths = Paths::resolve_with(&env, &project, || None);
            assert_eq!((paths.home, paths.data_dir, paths.problems.len()), (None, None, 1), "{claimed}, no account");
        }
    }

    #[test]
    fn who_works_in_the_home_folder_keeps_it() {
        for project in ["/nonexistent/u", "/nonexistent"] {
            let env = Env::from_pairs(&[("HOME", "/nonexistent/u"), ("XDG_DATA_HOME", "/nonexistent/u/data")]);
            let paths = Paths::resolve_with(&env, &[project.into()], || Some(path("/nonexistent/u")));
            assert_eq!(
                (paths.data_dir, paths.problems),
                (Some(path("/nonexistent/u/data/omc-host")), vec![]),
                "{project}"
            );
        }
    }

    #[test]
    fn the_session_s_first_project_and_the_process_s_folder_are_projects_too() {
        let dir = tempfile::tempdir().expect("a folder");
        let dir = dir.path().canonicalize().expect("canonical");
        fs::create_dir_all(dir.join("repo/sub")).expect("created");
        fs::create_dir_all(dir.join("repo/.git")).expect("created");
        fs::write(dir.join("repo/.git/HEAD"), "").expect("written");
        let sub = dir.join("repo/sub");
        let env = Env::from_pairs(&[("CLAUDE_PROJECT_DIR", &sub)]);
        assert_eq!(projects(&env, Some(&dir.join("now")), None), [dir.join("now"), dir.join("repo")]);
        assert_eq!(projects(&Env::default(), None, Some(&sub)), [dir.join("repo")]);
        assert_eq!(projects(&env, Some(&dir.join("repo")), Some(&sub)), [dir.join("repo")]);
        assert_eq!(projects(&Env::default(), None, Some(Path::new("/"))), Vec::<PathBuf>::new());
    }

    #[test]
    fn the_account_s_home_is_read_from_its_own_line() {
        let passwd =
            "root:x:0:0:root:/root:/bin/sh\nbad line\nu:x:1000:1000::/home/u:/bin/sh\nv:x:1001:1001::nohome:\n";
        for (uid, home) in [(0, Some("/root")), (1000, Some("/home/u")), (1001, None), (5, None)] {
            assert_eq!(home_in(passwd, uid), home.map(PathBuf::from), "{uid}");
        }
    }
}
