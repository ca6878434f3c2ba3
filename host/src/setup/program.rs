//! The path of this program as hooks name it.
//!
//! Codex's trust hangs on the command line, and every agent's hooks on a path that stays: so it is the name under which the program
//! was started, not what a link of that name points to. A package manager's link survives an upgrade, the folder behind it
//! does not.

use std::env;
use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use crate::protocol::event::Agent;

/// This program's path: absolute, and with links as they are.
pub(crate) fn own_program() -> Result<String> {
    let real = env::current_exe().context("failed to find this program's own path")?;
    let started_as = env::args_os().next().unwrap_or_default();
    let path = named(&started_as, env::var_os("PATH").as_deref(), &real).unwrap_or(real);
    match path.into_os_string().into_string() {
        Ok(path) => Ok(path),
        Err(path) => bail!("the path `{}` is not UTF-8, and no hooks file can hold it; move omc-host", path.display()),
    }
}

/// The path by which a name of this program is found, if it is one that can be written down.
fn named(name: &OsStr, search: Option<&OsStr>, real: &Path) -> Option<PathBuf> {
    let real = real.canonicalize().ok()?;
    let is_it = |path: &PathBuf| {
        let is_plain = path.is_absolute() && path.components().all(|part| part != Component::ParentDir);
        is_plain && path.canonicalize().is_ok_and(|found| found == real)
    };
    if Path::new(name).components().count() > 1 {
        return std::path::absolute(name).ok().filter(is_it);
    }
    env::split_paths(search?).map(|folder| folder.join(name)).find(is_it)
}

/// Whether an agent's hooks can name a path.
pub(super) fn check(path: &str, agent: Agent) -> Result<()> {
    let is_hostile = match agent {
        _ if path.contains(char::is_control) => Some("control characters"),
        // It would be taken for a placeholder.
        Agent::Claude if path.contains("${") => Some("`${`"),
        // What is one word to PowerShell, to `cmd` and to Codex itself.
        Agent::Codex if cfg!(windows) && path.contains([' ', '\'', '"', '&', '`', '$', '(', ')', '%', '^']) => {
            Some("blanks, quotes or characters with a meaning to a shell")
        }
        _ => None,
    };
    match is_hostile {
        Some(what) => bail!("the path `{path}` has {what} in it, and hooks cannot name it; move omc-host"),
        None => Ok(()),
    }
}

/// What is to be said about a path that will not stay.
pub(crate) fn warning(path: &str) -> Option<String> {
    let mut parts = Path::new(path).components().filter_map(|part| part.as_os_str().to_str());
    let versioned = parts.any(|part| part.contains(env!("CARGO_PKG_VERSION")));
    versioned.then(|| {
        format!(
            "`{path}` has the version in it: after an upgrade run `omc-host install` again; a link of a name that stays would spare that"
        )
    })
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_link_that_stays_is_named_and_not_what_it_points_to() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().canonicalize().unwrap().join(name);
        for folder in ["0.1.0", "bin", "other"] {
            fs::create_dir(path(folder)).unwrap();
        }
        let real = path("0.1.0/omc-host");
        fs::write(&real, "").unwrap();
        fs::write(path("other/omc-host"), "another").unwrap();
        symlink(&real, path("bin/omc-host")).unwrap();
        let search = env::join_paths([path("other"), path("bin")]).unwrap();
        let found = |name: &Path| named(name.as_os_str(), Some(&search), &real);
        assert_eq!(found(Path::new("omc-host")), Some(path("bin/omc-host")));
        assert_eq!(found(&path("bin/omc-host")), Some(path("bin/omc-host")));
        for other in [path("other/omc-host"), path("bin/../bin/omc-host"), path("gone"), PathBuf::from("gone")] {
            assert_eq!(found(&other), None, "{other:?}");
        }
        assert!(warning(real.to_str().unwrap()).is_some());
        assert!(warning(path("bin/omc-host").to_str().unwrap()).is_none());
    }

    #[test]
    fn a_path_that_hooks_cannot_name_is_refused() {
        for path in ["/a b/omc-host", "/it's/\"x\"/omc-host", "/한국어/omc-host", "/$HOME/omc-host"] {
            for agent in [Agent::Claude, Agent::Codex] {
                assert!(check(path, agent).is_ok(), "{path}");
            }
        }
        assert!(check("/a\nb/omc-host", Agent::Codex).is_err());
        assert!(check("/a/${HOME}/omc-host", Agent::Claude).is_err());
    }
}
