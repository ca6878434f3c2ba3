//! Configuration: the operator's, the user's and a project's files, settings that guests ask for, the environment.

use std::ffi::OsStr;
use std::path::Path;

use omc_host::config::{Env, GuestSettings, KillSwitch, Limit, Limits, Occasion, Paths, Settings, StateRoot, Switch};
use serde_json::Value;

use crate::scratch::{parts, plant, with_folder};

/// Guests of which the seeds speak.
const GUESTS: &[&str] = &["guard", "g", "unknown"];

/// Reads three files of one form: the system's, the user's, the project's.
///
/// Promises: a project's file only narrows, whatever is in any of the files; a limit stays in its range.
pub fn operator_config(bytes: &[u8]) {
    with_folder(|folder| {
        let [system, user, project] = parts(bytes);
        let system = plant(folder, "system.toml", system);
        let user = plant(folder, "user.toml", user);
        plant(folder, "project/omc-host.toml", project);
        let load = |project: Option<&Path>| Settings::load(&system, Some(&user), project);
        let (without, with) = (load(None), load(Some(&folder.join("project"))));
        assert!(with.event_deadline_ms() <= without.event_deadline_ms());
        assert_eq!(with.log_payloads(), without.log_payloads());
        for guest in GUESTS {
            let (without, with) = (without.guest(guest), with.guest(guest));
            assert!(with.withheld.is_superset(&without.withheld), "a capability came back");
            assert_eq!((with.required, with.order), (without.required, without.order));
            assert!(with.switch == without.switch || with.switch == Switch::Off, "a guest was switched on");
            let limits = Limit::ALL.iter().zip(values(&with.limits).into_iter().zip(values(&without.limits)));
            for (limit, (with, without)) in limits {
                let spec = limit.spec();
                assert!(with <= without, "a project raised `{}`", spec.key);
                assert!((spec.min..=spec.max).contains(&with), "`{}` is out of its range", spec.key);
            }
            if with.required {
                assert_eq!((with.switch, with.limits, with.withheld), (Switch::On, without.limits, without.withheld));
            }
        }
        for problem in &with.problems {
            assert!(!problem.to_string().contains(|letter: char| letter.is_control()), "a problem is not inert");
        }
    });
}

/// The limits in the order of [`Limit::ALL`].
fn values(limits: &Limits) -> Vec<u64> {
    Limit::ALL.iter().map(|limit| limits.get(*limit)).collect()
}

/// Reads the five files in which people have settings: the project's two and the user's three.
///
/// Promises: every key has a value that is JSON; a project raises no cap and takes nothing off a list.
pub fn guest_settings(bytes: &[u8]) {
    with_folder(|folder| {
        let [claude, project, user, claude_user, shared] = parts(bytes);
        let (home, root) = (folder.join("home"), folder.join("project"));
        plant(&root, ".claude/omc.jsonc", claude);
        plant(&root, ".omc/config.json", project);
        plant(&home, ".config/claude-omc/config.jsonc", user);
        plant(&home, ".claude/.omc-config.json", claude_user);
        plant(&home, ".omc/config.json", shared);
        let env = Env::from_pairs(&[("HOME", home.as_os_str())]);
        let paths = Paths::resolve(&env, Some(&root), Some(&root));
        let with = GuestSettings::new(&paths, Some(&root), &env);
        let without = GuestSettings::new(&paths, None, &env);
        let value = |settings: &GuestSettings, key| -> Value {
            serde_json::from_str(&settings.get(key).expect("a known key")).expect("a value is JSON")
        };
        for key in ["ralph.maxIterations", "ralph.hardMaxIterations", "persistentMode.noProgressLimit"] {
            assert!(value(&with, key).as_i64() <= value(&without, key).as_i64(), "a project raised `{key}`");
        }
        for key in ["keywordDetector.ralplanGate", "keywordDetector.ralplanGateWords"] {
            assert_eq!(value(&with, key), value(&without, key), "a project changed `{key}`");
        }
        let disabled = value(&with, "keywordDetector.disabled");
        let disabled = disabled.as_array().expect("a list");
        assert!(!disabled.contains(&Value::from("cancel")), "cancel was disabled");
        for problem in with.problems() {
            assert!(!problem.to_string().contains(|letter: char| letter.is_control()), "a problem is not inert");
        }
    });
}

/// Reads an environment and finds the project in it: one variable a part, then the event's folder, then a `.git` file.
///
/// Promises: no project is found outside the folder worked in and those above it, unless the environment says so; what names
/// no guest silences none.
pub fn environment(bytes: &[u8]) {
    with_folder(|folder| {
        let folder = folder.canonicalize().expect("the folder exists");
        let [disable, skip, state_dir, cwd, git] = parts(bytes);
        let as_os = |bytes| -> &OsStr { std::os::unix::ffi::OsStrExt::from_bytes(bytes) };
        let pairs = [
            ("DISABLE_OMC", as_os(disable)),
            ("OMC_SKIP_HOOKS", as_os(skip)),
            ("OMC_STATE_DIR", as_os(state_dir)),
            ("HOME", folder.as_os_str()),
        ];
        let env = Env::from_pairs(&pairs);
        let switch = KillSwitch::from_env(&env);
        let occasion = Occasion { kind: "stop", source: None };
        let skipped = switch.skips("no-such-guest", occasion);
        let named = skip.windows("no-such-guest".len()).any(|window| window == b"no-such-guest");
        assert!(!skipped || named || matches!(disable, b"1" | b"true"), "a guest was silenced by nobody");

        let work = folder.join("work");
        plant(&work, ".git", git);
        plant(&work, "sub/file", b"x");
        for cwd in [&String::from_utf8_lossy(cwd), "sub", ""] {
            let Ok(root) = StateRoot::resolve(Some(cwd), Some(&work), &env) else { continue };
            assert_ne!(root.project_root, folder, "the home folder is no project");
            assert!(root.project_root.is_absolute() && root.omc_parent.is_absolute());
            let name = Path::new(&root.omc_name);
            assert_eq!(name.file_name(), Some(root.omc_name.as_os_str()), "the state's name is a path");
            let paths = Paths::resolve(&env, Some(&root.project_root), Some(&work));
            if !folder.starts_with(&root.project_root) {
                let own = [&paths.config_dir, &paths.data_dir, &paths.cache_dir, &paths.state_dir];
                let inside = |path: &&Path| path.starts_with(&root.project_root);
                assert!(!own.into_iter().flatten().map(AsRef::as_ref).any(|path: &Path| inside(&path)));
            }
        }
    });
}
