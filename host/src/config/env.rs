//! The environment variables that the host reads, and one snapshot of them.
//!
//! First step of an event: everything else in `config` takes the snapshot, never the process's own environment, so a test
//! can state a whole environment in a line. Variables that a guest may read are not here: they are granted by name and
//! looked up by the `environment` interface.
//!
//! A variable with an empty value counts as unset throughout, as the XDG specification asks for its own.

use std::ffi::{OsStr, OsString};
use std::path::Path;

/// Declares each variable once: as a constant for the code and as a row for the reference.
macro_rules! env_vars {
    ($($(#[doc = $doc:literal])+ $name:ident,)+) => {
        /// The names of all environment variables that the host reads.
        #[derive(Debug, Clone, Copy)]
        pub struct EnvVars;

        impl EnvVars {
            $($(#[doc = $doc])+ pub const $name: &'static str = stringify!($name);)+

            /// Every variable with its description, in the order of the reference.
            pub const ALL: &'static [(&'static str, &'static str)] =
                &[$((stringify!($name), concat!($($doc),+))),+];
        }
    };
}

env_vars! {
    /// `1` or `true`: no guest is called, except those that an operator marked `required`.
    DISABLE_OMC,
    /// Comma-separated guests (or the original's script names and tokens) that are not called, unless they are `required`.
    OMC_SKIP_HOOKS,
    /// An absolute folder that holds the state of all projects, instead of an `.omc` in each.
    OMC_STATE_DIR,
    /// `1`: `.omc-workspace` markers are not looked for.
    OMC_DISABLE_MULTIREPO,
    /// The session that commands and the MCP server mean where none is named, if the project knows it; and that of an event that names none.
    OMC_SESSION_ID,
    /// Claude Code's own name for the same, where the first is not set.
    CLAUDE_CODE_SESSION_ID,
    /// Another name for the same, where neither is set.
    CLAUDE_SESSION_ID,
    /// `strict`: a mode ends after 200 iterations at the latest.
    OMC_SECURITY,
    /// The user's home folder.
    HOME,
    /// Where the user's configuration is; `~/.config` if unset or relative.
    XDG_CONFIG_HOME,
    /// Where installed guests and their lock file are; `~/.local/share` if unset or relative.
    XDG_DATA_HOME,
    /// Where compiled guests are cached; `~/.cache` if unset or relative.
    XDG_CACHE_HOME,
    /// Where the audit trail is; `~/.local/state` if unset or relative.
    XDG_STATE_HOME,
    /// Claude Code's own configuration folder; `~/.claude` if unset or relative. A leading `~/` is understood.
    CLAUDE_CONFIG_DIR,
    /// The file from which Claude Code takes variables for the session's later commands; set on the events that have it.
    CLAUDE_ENV_FILE,
    /// Codex CLI's own folder; `~/.codex` if unset or relative.
    CODEX_HOME,
    /// The folder in which Claude Code was started: no folder of the user's is believed to lie inside it.
    CLAUDE_PROJECT_DIR,
    /// Windows: the home folder where `HOME` is unset.
    USERPROFILE,
    /// Windows: stands for `~/.config`.
    APPDATA,
    /// Windows: stands for `~/.local/share`, `~/.cache` and `~/.local/state`.
    LOCALAPPDATA,
}

/// The values of [`EnvVars`] at the start of an event.
#[derive(Debug, Clone, Default)]
pub struct Env {
    values: Vec<(&'static str, OsString)>,
    /// The names of all variables that are `1`, also of others: settings may name one as a switch.
    ones: Vec<OsString>,
}

impl Env {
    /// Reads the variables of [`EnvVars`] from the process.
    pub fn from_process() -> Self {
        Self::collect(|name| std::env::var_os(name), std::env::vars_os())
    }

    /// An environment with these variables and no others; names that the host does not read are left out.
    pub fn from_pairs<V: AsRef<OsStr>>(pairs: &[(&str, V)]) -> Self {
        let value = |name: &str| pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| value.as_ref().to_owned());
        Self::collect(value, pairs.iter().map(|(key, value)| (OsString::from(key), value.as_ref().to_owned())))
    }

    fn collect(value: impl Fn(&str) -> Option<OsString>, all: impl Iterator<Item = (OsString, OsString)>) -> Self {
        let set =
            |&(name, _): &(&'static str, _)| value(name).filter(|value| !value.is_empty()).map(|value| (name, value));
        let ones = all.filter(|(_, value)| value == "1").map(|(name, _)| name).collect();
        Self { values: EnvVars::ALL.iter().filter_map(set).collect(), ones }
    }

    /// Whether a variable, of whatever name, is `1`.
    pub(crate) fn is_one(&self, name: &str) -> bool {
        self.ones.iter().any(|one| one == name)
    }

    /// The variable's value, if it is set and not empty.
    pub fn get(&self, name: &'static str) -> Option<&OsStr> {
        debug_assert!(EnvVars::ALL.iter().any(|(known, _)| *known == name), "`{name}` is missing in EnvVars");
        self.values.iter().find(|(key, _)| *key == name).map(|(_, value)| value.as_os_str())
    }

    /// Whether the variable has exactly one of these values.
    pub(crate) fn is(&self, name: &'static str, values: &[&str]) -> bool {
        self.get(name).is_some_and(|value| values.iter().any(|wanted| value == OsStr::new(wanted)))
    }

    /// The variable's value as a path, if it is an absolute one.
    pub(crate) fn absolute(&self, name: &'static str) -> Option<&Path> {
        self.get(name).map(Path::new).filter(|path| path.is_absolute())
    }

    /// The home folder as the environment has it, if that is absolute.
    pub(crate) fn home(&self) -> Option<&Path> {
        let windows = || if cfg!(windows) { self.absolute(EnvVars::USERPROFILE) } else { None };
        self.absolute(EnvVars::HOME).or_else(windows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_value_is_an_unset_one() {
        let env = Env::from_pairs(&[(EnvVars::DISABLE_OMC, ""), (EnvVars::HOME, "/home/u")]);
        assert_eq!(env.get(EnvVars::DISABLE_OMC), None);
        assert_eq!(env.home(), Some(Path::new("/home/u")));
    }

    #[test]
    fn a_relative_home_is_none() {
        assert_eq!(Env::from_pairs(&[(EnvVars::HOME, "home/u")]).home(), None);
    }

    #[test]
    fn variables_of_others_are_not_taken() {
        assert!(Env::from_pairs(&[("SECRET_TOKEN", "x")]).values.is_empty());
    }

    #[test]
    fn every_variable_has_a_description_and_is_listed_once() {
        for (at, (name, doc)) in EnvVars::ALL.iter().enumerate() {
            assert!(doc.trim().ends_with('.'), "{name}: {doc}");
            assert!(EnvVars::ALL[at + 1..].iter().all(|(other, _)| other != name), "{name} is listed twice");
        }
    }
}
