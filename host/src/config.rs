//! Everything the host reads about its surroundings before it calls guests.
//!
//! Second step of an event, after its bytes are decoded: which project it belongs to, where our own folders are, what the
//! operator, the user and the project configured, and what the person switched off. [`Config::read`] is the whole of
//! it; the modules are its parts, each usable alone by the other commands.
//!
//! All of it is on the path of every event. A missing file costs one failed open, a parser runs only where a file exists,
//! the walk upwards is bounded, and what guests may ask for is read when they ask. Nothing is created and nothing is
//! written. Nothing fails either: a bad file or variable becomes a [`Problem`] for the audit trail and `doctor`, and stricter
//! values hold.
//!
//! The payload, the project and, through a project's settings, the environment are hostile. See [`paths`] for what an
//! environment variable is believed, [`project`] for what a project's file may say, and [`guest_settings`] for the keys.

pub(crate) mod audit_policy;
pub(crate) mod edit;
pub mod env;
pub(crate) mod file;
pub(crate) mod guest_manifest;
pub mod guest_settings;
pub mod kill_switch;
pub mod limits;
pub mod operator;
mod options;
pub mod paths;
mod problem;
pub mod project;
pub mod reference;
pub mod state_root;

pub use env::{Env, EnvVars};
pub use guest_settings::GuestSettings;
pub use kill_switch::{KillSwitch, Occasion};
pub use limits::{Limit, Limits};
pub use operator::{GuestPolicy, Settings, Switch, Telemetry};
pub use options::{CAPABILITIES, DenyChannel};
pub use paths::Paths;
pub use problem::Problem;
pub use state_root::{Refusal, StateRoot};

use std::path::Path;

/// All configuration that one event is handled with, and where its state is.
#[derive(Debug)]
#[non_exhaustive]
pub struct Config {
    /// The event's project and its state, or why it has none.
    pub state: Result<StateRoot, Refusal>,
    /// The host's and the user's folders.
    pub paths: Paths,
    /// The operator's, the user's and the project's configuration.
    pub settings: Settings,
    /// What the person switched off for now.
    pub kill_switch: KillSwitch,
    /// The settings that guests may ask for.
    pub guest_settings: GuestSettings,
}

impl Config {
    /// Reads the configuration for an event whose payload names this folder.
    pub fn read(env: &Env, cwd: Option<&str>) -> Self {
        let process_cwd = std::env::current_dir().ok();
        Self::read_at(env, cwd, process_cwd.as_deref(), Path::new(paths::SYSTEM_CONFIG_FILE))
    }

    fn read_at(env: &Env, cwd: Option<&str>, process_cwd: Option<&Path>, system_file: &Path) -> Self {
        let state = StateRoot::resolve(cwd, process_cwd, env);
        let project_root = state.as_ref().ok().map(|state| state.project_root.as_path());
        let paths = Paths::resolve(env, project_root, process_cwd);
        let settings = Settings::load(system_file, paths.user_config_file().as_deref(), project_root);
        let guest_settings = GuestSettings::new(&paths, project_root, env);
        Self { kill_switch: KillSwitch::from_env(env), state, paths, settings, guest_settings }
    }

    /// What a guest runs under, if it is called on this occasion; `by_default` is its manifest's word.
    pub fn admit(&self, guest: &str, by_default: bool, occasion: Occasion<'_>) -> Option<GuestPolicy> {
        let policy = self.settings.guest(guest);
        // A repository's own settings can set the variables behind the kill switch, so they do not reach required guests.
        let is_called =
            policy.switch.is_on(by_default) && (policy.required || !self.kill_switch.skips(guest, occasion));
        is_called.then_some(policy)
    }

    /// Everything that was found wrong so far.
    pub fn problems(&self) -> impl Iterator<Item = &Problem> {
        let state = self.state.as_ref().map_or(&[][..], |state| &state.problems);
        state.iter().chain(&self.paths.problems).chain(&self.settings.problems).chain(self.guest_settings.problems())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::PathBuf;

    const STOP: Occasion<'static> = Occasion { kind: "stop", source: None };

    /// A home, a repository and a system's file.
    struct World {
        dir: tempfile::TempDir,
    }

    impl World {
        fn new(files: &[(&str, &str)]) -> Self {
            let world = Self { dir: tempfile::tempdir().expect("a folder") };
            for (path, text) in [("home/.keep", ""), ("repo/.git/HEAD", "")].iter().chain(files) {
                fs::create_dir_all(world.path(path).parent().expect("a parent")).expect("created");
                fs::write(world.path(path), text).expect("written");
            }
            world
        }

        fn path(&self, relative: &str) -> PathBuf {
            self.dir.path().canonicalize().expect("canonical").join(relative)
        }

        fn read(&self, cwd: &str, pairs: &[(&str, &str)]) -> Config {
            let (home, cwd) = (self.path("home"), self.path(cwd));
            let mut all = vec![("HOME", home.to_str().expect("UTF-8"))];
            all.extend_from_slice(pairs);
            // The first of two counts, so a case's own HOME comes last here and first there.
            all.reverse();
            Config::read_at(&Env::from_pairs(&all), cwd.to_str(), Some(&self.path("repo")), &self.path("system.toml"))
        }
    }

    #[test]
    fn everything_is_found_from_one_environment_and_one_folder() {
        let world = World::new(&[
            ("home/.config/omc-host/config.toml", "[guests.a]\nenabled = false\n"),
            ("repo/omc-host.toml", "[guests.b]\nenabled = false\n"),
            ("repo/.claude/omc.jsonc", "{\"ralph\": {\"maxIterations\": 9}}"),
            ("repo/pkg/x", ""),
        ]);
        let found = world.read("repo/pkg", &[]);
        assert_eq!(found.state.as_ref().expect("a project").omc_parent, world.path("repo"));
        assert_eq!(found.paths.user_omc_parent(), Some(&*world.path("home")));
        let admitted = |guest| found.admit(guest, true, STOP).is_some();
        assert_eq!((admitted("a"), admitted("b"), admitted("c")), (false, false, true));
        assert_eq!(found.guest_settings.get("ralph.maxIterations").as_deref(), Some("9"));
        assert_eq!(found.problems().count(), 0);
    }

    #[test]
    fn an_event_without_a_project_still_has_settings() {
        let world = World::new(&[("home/.config/omc-host/config.toml", "[guests.a]\nenabled = false\n")]);
        let found = world.read("repo/gone", &[]);
        assert!(matches!(found.state, Err(Refusal::Unreachable(_))));
        assert!(found.admit("a", true, STOP).is_none());
    }

    #[test]
    fn kill_switches_silence_all_but_required_guests() {
        let world = World::new(&[("home/.config/omc-host/config.toml", "[guests.guard]\nrequired = true\n")]);
        for switch in [("DISABLE_OMC", "1"), ("OMC_SKIP_HOOKS", "guard, other")] {
            let found = world.read("repo", &[switch]);
            assert!(found.admit("guard", true, STOP).is_some_and(|policy| policy.required), "{switch:?}");
            assert!(found.admit("other", true, STOP).is_none(), "{switch:?}");
        }
    }

    #[test]
    fn a_guest_that_is_off_by_default_needs_an_operators_word() {
        let off = World::new(&[("repo/omc-host.toml", "[guests.drift]\nenabled = true\n")]).read("repo", &[]);
        assert!(off.admit("drift", false, STOP).is_none());
        let on =
            World::new(&[("home/.config/omc-host/config.toml", "[guests.drift]\nenabled = true\n")]).read("repo", &[]);
        assert!(on.admit("drift", false, STOP).is_some());
    }

    #[test]
    fn a_repository_that_sets_variables_brings_no_configuration_of_its_own() {
        let evil = "[limits]\nfuel = 9_000_000_000\n[guests.guard]\nenabled = false\n";
        let world = World::new(&[
            ("home/.config/omc-host/config.toml", "[guests.guard]\nrequired = true\n"),
            ("repo/evil/omc-host/config.toml", evil),
            ("repo/evil/.config/omc-host/config.toml", evil),
            ("elsewhere/x", ""),
        ]);
        let into = world.path("repo/evil");
        let into = into.to_str().expect("UTF-8");
        // Where the agent works now does not matter: the process's own folder is in the repository.
        for cwd in ["repo", "elsewhere", "repo/gone"] {
            let found =
                world.read(cwd, &[("XDG_CONFIG_HOME", into), ("XDG_DATA_HOME", into), ("XDG_CACHE_HOME", into)]);
            assert!(found.settings.guest("guard").required, "{cwd}");
            assert_eq!(found.settings.guest("x").limits.fuel, Limits::default().fuel, "{cwd}");
            let own = [&found.paths.data_dir, &found.paths.cache_dir];
            assert!(own.into_iter().flatten().all(|dir| dir.starts_with(world.path("home"))), "{cwd}: {own:?}");
            assert_eq!(found.problems().count(), 3, "{cwd}");
            let found = world.read(cwd, &[("HOME", into)]);
            assert_ne!(found.settings.guest("x").limits.fuel, 9_000_000_000, "{cwd}");
            assert!(!found.paths.data_dir.is_some_and(|dir| dir.starts_with(world.path("repo"))), "{cwd}");
        }
    }

    #[test]
    fn the_systems_file_binds_the_users() {
        let world = World::new(&[
            ("system.toml", "[limits]\nfuel = 5_000_000\n[guests.guard]\nrequired = true\n"),
            ("home/.config/omc-host/config.toml", "[limits]\nfuel = 9_000_000_000\n[guests.guard]\nenabled = false\n"),
        ]);
        let policy = world.read("repo", &[("DISABLE_OMC", "1")]).admit("guard", true, STOP).expect("called");
        assert_eq!((policy.required, policy.limits.fuel), (true, 5_000_000));
    }
}
