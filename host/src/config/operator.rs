//! The operator's and the user's configuration, and the settings that result from all files.
//!
//! Two files, the system's and the user's, are read on every event; a missing one costs a failed open. Layers combine in
//! one place, `Settings::resolve`, under these rules:
//!
//! - What the system's file sets cannot be loosened by the user's: of two limits the smaller holds, a guest that is
//!   disabled, required, or has a capability withheld stays so, and its order stays. What it leaves open is the user's.
//! - Within a file, a guest's own limit comes before the general one.
//! - A project's file may only narrow, and not at all for a required guest ([`super::project`]).
//! - A file that is broken, unreadable or writable by others counts where it is stricter than the default, and nowhere
//!   else. If that is the system's file, the same holds for the user's: what it would have forbidden is not known.

use super::file::{self, ReadError, Writers};
use super::limits::{Limit, Limits};
use super::options::{DenyChannel, GuestOptions, Loaded, Options, Standing};
use super::problem::{Problem, ProblemLog};
use crate::signature::Key;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Largest configuration file of an operator or user, in bytes; room for thousands of guests.
pub const MAX_OPERATOR_BYTES: u64 = 256 << 10;

/// Most conflicts of a kind that are noted; a hostile file could hold thousands.
const MAX_CONFLICTS: usize = 8;

/// Whether somebody decided that a guest is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Switch {
    /// Nobody did: the guest's own default holds.
    #[default]
    Default,
    /// It is called.
    On,
    /// It is not called.
    Off,
}

impl Switch {
    /// Whether the guest is called, given its own default.
    pub fn is_on(self, by_default: bool) -> bool {
        match self {
            Self::Default => by_default,
            Self::On => true,
            Self::Off => false,
        }
    }
}

/// What the files say about one guest.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct GuestPolicy {
    /// Whether it is called.
    pub switch: Switch,
    /// Whether its fault means ask or deny, and nothing but the operator turns it off.
    pub required: bool,
    /// Its place among the guests of an event; `None` is the one in its manifest.
    pub order: Option<i32>,
    /// What one call may use.
    pub limits: Limits,
    /// Capabilities that it does not get, whatever it was granted.
    pub withheld: BTreeSet<&'static str>,
}

/// Where the trail is sent, and what of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Telemetry {
    /// The base of an OTLP/HTTP endpoint, as written.
    pub endpoint: String,
    /// Whether texts of guests, notes, sessions and projects are sent as well.
    pub texts: bool,
    /// A file with headers for the endpoint, which may hold secrets.
    pub headers_file: Option<PathBuf>,
}

/// The resolved configuration of the host for one event.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Settings {
    /// What is wrong with the files.
    pub problems: Vec<Problem>,
    layers: Layers,
}

impl Settings {
    /// Reads the files and resolves them. `user_file` and `project_root` are absent where there is none.
    pub fn load(system_file: &Path, user_file: Option<&Path>, project_root: Option<&Path>) -> Self {
        let system = load(system_file);
        let user = user_file.map(load).unwrap_or_default();
        let project = project_root.map(super::project::load).unwrap_or_default();
        Self::resolve(system, user, project)
    }

    /// What holds for a guest. Worked out when asked, so that guests which are not called cost nothing.
    pub fn guest(&self, name: &str) -> GuestPolicy {
        self.layers.guest(name)
    }

    /// The names of all guests that an operator requires, whether or not they are there.
    pub fn required(&self) -> BTreeSet<&str> {
        let named = self.layers.operators().flat_map(|file| file.guests.keys().map(String::as_str));
        named.filter(|name| self.guest(name).required).collect()
    }

    /// Longest time for the whole event, in milliseconds.
    pub fn event_deadline_ms(&self) -> u64 {
        // A deadline that a repository chose could let every required guest run out of time.
        let narrowing = if self.layers.require_any() { Narrowing::No } else { Narrowing::Yes };
        self.layers.limit(None, Limit::EventDeadlineMs, narrowing)
    }

    /// Whether payloads may be written to the audit trail. They hold secrets.
    pub fn log_payloads(&self) -> bool {
        self.layers.log_payloads()
    }

    /// The keys whose signatures are believed: those that are required to have signed are, too.
    pub(crate) fn trusted_keys(&self) -> BTreeSet<Key> {
        let sound = self.layers.operators().filter(|file| file.standing == Standing::Sound);
        sound
            .flat_map(|file| file.trusted_keys.iter().chain(file.require_signature.iter().flatten()))
            .cloned()
            .collect()
    }

    /// Whether a guest of somebody else may run with this signer: each file that requires a signature must name it.
    pub(crate) fn admits_signer(&self, signer: Option<&str>) -> bool {
        let required = self.layers.operators().filter_map(|file| file.require_signature.as_ref());
        required.into_iter().all(|keys| keys.iter().any(|key| Some(key.as_str()) == signer))
    }

    /// Where the trail is sent; `None` unless an operator says so. The strongest file that names an endpoint decides.
    pub fn telemetry(&self) -> Option<Telemetry> {
        let file = self.layers.operators().find(|file| file.telemetry.endpoint.is_some())?;
        let telemetry = &file.telemetry;
        (file.standing == Standing::Sound).then(|| Telemetry {
            endpoint: telemetry.endpoint.clone().unwrap_or_default(),
            texts: telemetry.texts == Some(true),
            headers_file: telemetry.headers_file.clone(),
        })
    }

    /// How the refusal of a tool reaches the agent.
    pub fn deny_channel(&self) -> DenyChannel {
        // The strongest sound file that says something decides.
        let said = |file: &Options| file.deny_channel.filter(|_| file.standing == Standing::Sound);
        self.layers.operators().find_map(said).unwrap_or_default()
    }

    pub(crate) fn resolve(system: Loaded, user: Loaded, project: Loaded) -> Self {
        let mut layers = Layers { system: system.options, user: user.options, project: project.options };
        let system_is_suspect = layers.system.as_ref().is_some_and(|system| system.standing == Standing::Suspect);
        if let (true, Some(user)) = (system_is_suspect, &mut layers.user) {
            user.standing = Standing::Suspect;
        }
        let mut problems = [system.problems, user.problems, project.problems].concat();
        layers.note_conflicts(&mut problems);
        Self { problems, layers }
    }
}

/// Whether a project's file counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Narrowing {
    Yes,
    No,
}

/// The files that are there, strongest first.
#[derive(Debug, Default)]
struct Layers {
    system: Option<Options>,
    user: Option<Options>,
    project: Option<Options>,
}

impl Layers {
    fn operators(&self) -> impl Iterator<Item = &Options> {
        self.system.iter().chain(&self.user)
    }

    fn guest(&self, name: &str) -> GuestPolicy {
        let mut policy = GuestPolicy::default();
        for file in self.operators() {
            let Some(options) = file.guests.get(name) else { continue };
            policy.withheld.extend(&options.withhold);
            if policy.switch == Switch::Off {
                continue;
            }
            policy.required |= options.required == Some(true);
            match options.enabled {
                Some(false) if !policy.required => policy.switch = Switch::Off,
                Some(true) if file.standing == Standing::Sound => policy.switch = Switch::On,
                _ => {}
            }
            if file.standing == Standing::Sound {
                policy.order = policy.order.or(options.order);
            }
        }
        let mut narrowing = Narrowing::Yes;
        if policy.required {
            policy.switch = Switch::On;
            narrowing = Narrowing::No;
        } else if let Some(options) = self.project.as_ref().and_then(|project| project.guests.get(name)) {
            policy.withheld.extend(&options.withhold);
            if options.enabled == Some(false) {
                policy.switch = Switch::Off;
            }
        }
        policy.limits = Limits::from_fn(|limit| self.limit(Some(name), limit, narrowing));
        policy
    }

    fn limit(&self, guest: Option<&str>, limit: Limit, narrowing: Narrowing) -> u64 {
        let default = limit.spec().default;
        let set = |file: &Options| {
            let value = file.limit(guest, limit)?;
            Some(if file.standing == Standing::Sound { value } else { value.min(default) })
        };
        let operators = self.operators().filter_map(set).min().unwrap_or(default);
        let project = self.project.as_ref().filter(|_| narrowing == Narrowing::Yes);
        project.and_then(|project| project.limit(guest, limit)).map_or(operators, |value| value.min(operators))
    }

    fn log_payloads(&self) -> bool {
        // The strongest file that says something decides; a suspect one may say no, never yes.
        let said = |file: &Options| Some(file.log_payloads? && file.standing == Standing::Sound);
        self.operators().find_map(said).unwrap_or(false)
    }

    fn require_any(&self) -> bool {
        self.operators().any(|file| file.guests.values().any(GuestOptions::is_required))
    }

    /// Notes where a weaker file tries to loosen what a stronger one set.
    fn note_conflicts(&self, problems: &mut Vec<Problem>) {
        if let (Some(system), Some(user)) = (&self.system, &self.user) {
            let disabled = user.guests.iter().filter(|(_, guest)| guest.enabled == Some(false));
            let denied = disabled.filter(|(name, _)| system.guests.get(*name).is_some_and(GuestOptions::is_required));
            problems.extend(denied.take(MAX_CONFLICTS).map(|(name, _)| cannot_narrow(user, name)));
        }
        let Some(project) = &self.project else { return };
        let narrowed = project.guests.iter().filter(|(name, guest)| guest.narrows() && self.requires(name));
        problems.extend(narrowed.take(MAX_CONFLICTS).map(|(name, _)| cannot_narrow(project, name)));
        let own = project.guests.iter().map(|(name, guest)| (Some(name.as_str()), &guest.limits));
        let limits = std::iter::once((None, &project.limits)).chain(own);
        let raised =
            limits.flat_map(|(guest, limits)| limits.iter().map(move |(limit, value)| (guest, *limit, *value)));
        let raised = raised.filter(|(guest, limit, value)| *value > self.limit(*guest, *limit, Narrowing::No));
        problems.extend(raised.take(MAX_CONFLICTS).map(|(_, limit, _)| {
            let what = format!("a project cannot raise `{}`", limit.spec().key);
            Problem::of_file(&project.origin, what, "set it in your own configuration if you want it")
        }));
    }

    fn requires(&self, guest: &str) -> bool {
        self.operators().any(|file| file.guests.get(guest).is_some_and(GuestOptions::is_required))
    }
}

fn cannot_narrow(file: &Options, guest: &str) -> Problem {
    let what = format!("guest `{guest}` is required by the operator, which this file cannot change");
    Problem::of_file(&file.origin, what, "remove its table")
}

/// Reads one of the operator's files.
fn load(path: &Path) -> Loaded {
    let read = match file::read(path, MAX_OPERATOR_BYTES) {
        Ok(Some(read)) => read,
        Ok(None) => return Loaded::default(),
        Err(error) => return unreadable(path, &error),
    };
    let mut log = ProblemLog::new(path, &read.text);
    let mut options = Options::parse(&read.text, path, &mut log);
    let mut problems = log.into_problems();
    if read.writers == Writers::Others {
        options.standing = Standing::Suspect;
        let what = "others than you and root can write it, so only what is stricter than the default counts";
        problems.push(Problem::of_file(path, what.to_owned(), "make it yours and take their write permission away"));
    }
    Loaded { options: Some(options), problems }
}

fn unreadable(path: &Path, error: &ReadError) -> Loaded {
    let next = "mend or remove it; until then the defaults hold";
    Loaded { options: Some(Options::unreadable(path)), problems: vec![Problem::of_file(path, error.to_string(), next)] }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::PathBuf;

    /// A system's, a user's and a project's file; an empty text is no file.
    struct Files {
        dir: tempfile::TempDir,
    }

    impl Files {
        fn new(system: &str, user: &str, project: &str) -> Self {
            let files = Self { dir: tempfile::tempdir().expect("a folder") };
            for (path, text) in [(files.system(), system), (files.user(), user), (files.project_file(), project)] {
                if !text.is_empty() {
                    fs::write(path, text).expect("written");
                }
            }
            files
        }

        fn system(&self) -> PathBuf {
            self.dir.path().join("system.toml")
        }

        fn user(&self) -> PathBuf {
            self.dir.path().join("user.toml")
        }

        fn project_file(&self) -> PathBuf {
            self.dir.path().join("omc-host.toml")
        }

        fn load(&self) -> Settings {
            Settings::load(&self.system(), Some(&self.user()), Some(self.dir.path()))
        }
    }

    fn settings(system: &str, user: &str, project: &str) -> Settings {
        Files::new(system, user, project).load()
    }

    #[test]
    fn without_files_the_defaults_hold() {
        let settings = settings("", "", "");
        assert_eq!(settings.guest("any"), GuestPolicy::default());
        assert_eq!(settings.guest("any").limits, Limits::default());
        assert_eq!((settings.event_deadline_ms(), settings.log_payloads(), settings.problems.len()), (2_500, false, 0));
    }

    #[test]
    fn limits_combine_by_one_rule() {
        // Fuel in millions: system, user, project, what holds, for whom.
        let (general, own) = ("[limits]\nfuel = ", "[guests.g.limits]\nfuel = ");
        for (system, user, project, millions, why) in [
            (("", 0), (general, 5_000), ("", 0), 5_000, "the user may raise what the system leaves open"),
            (("", 0), (general, 5), ("", 0), 5, "or lower it"),
            ((general, 2_000), ("", 0), ("", 0), 2_000, "the system may raise it"),
            ((general, 2_000), (general, 5_000), ("", 0), 2_000, "but not above the system's"),
            ((general, 2_000), (general, 5), ("", 0), 5, "the smaller holds"),
            ((general, 2_000), (own, 5_000), ("", 0), 2_000, "a guest's own one cannot get round it"),
            (("", 0), (own, 5_000), ("", 0), 5_000, "a guest's own limit"),
            (("", 0), ("", 0), (general, 5), 5, "a project may lower"),
            (("", 0), ("", 0), (own, 5), 5, "for one guest too"),
            (("", 0), ("", 0), (general, 5_000), 1_000, "never raise"),
            (("", 0), ("", 0), (own, 5_000), 1_000, "nor for one guest"),
            (("", 0), (general, 5), (general, 50), 5, "nor what the user lowered"),
        ] {
            let text = |(key, millions): (&str, u64)| {
                if key.is_empty() { String::new() } else { format!("{key}{millions}_000_000") }
            };
            let settings = settings(&text(system), &text(user), &text(project));
            assert_eq!(settings.guest("g").limits.fuel, millions * 1_000_000, "{why}");
        }
    }

    #[test]
    fn who_may_switch_a_guest() {
        use Switch::{Default, Off, On};
        let (on, off, required) = ("enabled = true", "enabled = false", "required = true");
        for (system, user, project, switch, is_required, why) in [
            ("", on, "", On, false, "the user may switch on"),
            ("", off, "", Off, false, "and off"),
            (on, off, "", Off, false, "what the system only enables, the user may disable"),
            (off, on, "", Off, false, "what the system disables stays so"),
            (off, required, "", Off, false, "even if the user requires it"),
            (required, off, "", On, true, "what it requires stays so"),
            (required, "required = false", "", On, true, "and stays required"),
            ("", required, "", On, true, "the user may require"),
            ("", "", off, Off, false, "a project may disable"),
            ("", on, off, Off, false, "also what the user enabled"),
            ("", required, off, On, true, "not what the user requires"),
            (required, "", off, On, true, "not what the system requires"),
            ("", "", on, Default, false, "a project enables nothing"),
            ("", off, on, Off, false, "and brings nothing back"),
            ("", "", required, Default, false, "and requires nothing"),
        ] {
            let text = |line: &str| if line.is_empty() { String::new() } else { format!("[guests.g]\n{line}\n") };
            let settings = settings(&text(system), &text(user), &text(project));
            let policy = settings.guest("g");
            assert_eq!(settings.required().contains("g"), is_required, "{why}");
            assert_eq!((policy.switch, policy.required), (switch, is_required), "{why}");
        }
    }

    #[test]
    fn a_switch_gives_way_to_the_guests_default_only_where_nobody_decided() {
        for by_default in [true, false] {
            assert_eq!(Switch::Default.is_on(by_default), by_default);
            assert!(Switch::On.is_on(by_default) && !Switch::Off.is_on(by_default));
        }
    }

    #[test]
    fn capabilities_are_withheld_by_every_layer() {
        let settings = settings(
            "[guests.g]\nwithhold = [\"http\"]\nenabled = false",
            "[guests.g]\nwithhold = [\"env\"]",
            "[guests.g]\nwithhold = [\"git\"]",
        );
        assert_eq!(settings.guest("g").withheld, BTreeSet::from(["http", "env", "git"]));
    }

    #[test]
    fn the_strongest_order_and_answer_on_payloads_hold() {
        for (system, user, order) in [("order = 1", "order = 2", Some(1)), ("", "order = 2", Some(2)), ("", "", None)] {
            let text = |line: &str| format!("[guests.g]\n{line}\n");
            assert_eq!(settings(&text(system), &text(user), "[guests.g]\norder = 3").guest("g").order, order);
        }
        let (yes, no) = ("log-payloads = true", "log-payloads = false");
        for (system, user, project, logged) in
            [("", yes, "", true), (no, yes, "", false), (yes, no, "", true), ("", "", yes, false), (yes, "", no, true)]
        {
            assert_eq!(settings(system, user, project).log_payloads(), logged, "{system} {user} {project}");
        }
    }

    #[test]
    fn a_project_cannot_touch_a_required_guest() {
        let project = "[limits]\nfuel = 1_000_000\nevent-deadline-ms = 50\n\
                       [guests.guard]\nenabled = false\nwithhold = [\"transcript\"]\n[guests.guard.limits]\nhost-calls = 100\n";
        let settings = settings("", "[guests.guard]\nrequired = true\n", project);
        assert_eq!(settings.guest("guard").limits, Limits::default());
        assert_eq!(settings.guest("guard").withheld, BTreeSet::new());
        assert_eq!(settings.event_deadline_ms(), 2_500);
        assert_eq!(settings.guest("other").limits.fuel, 1_000_000);
        assert!(settings.problems[0].to_string().contains("guest `guard` is required"), "{:?}", settings.problems);
    }

    #[test]
    fn a_projects_attempts_to_widen_are_noted_and_have_no_effect() {
        let widening = "log-payloads = true\n[limits]\nfuel = 2_000_000_000\n[guests.g]\nenabled = true\nrequired = true\norder = 1\n";
        let with = settings("", "", widening);
        let noted: Vec<String> = with.problems.iter().map(|problem| problem.what.clone()).collect();
        assert_eq!(
            noted,
            [
                "a project cannot set `log-payloads`",
                "a project cannot set `guests.g.enabled` to `true`",
                "a project cannot set `guests.g.required`",
                "a project cannot set `guests.g.order`",
                "a project cannot raise `fuel`",
            ]
        );
        assert_eq!(with.guest("g"), settings("", "", "").guest("g"));
        assert!(!with.log_payloads());
    }

    #[test]
    fn a_broken_file_counts_only_where_it_is_stricter() {
        let slip = "nonsense = 1\n";
        let text = "log-payloads = true\n[limits]\nfuel = 9_000_000_000\nlog-bytes = 1\n\
                    [guests.on]\nenabled = true\norder = 1\n[guests.off]\nenabled = false\nwithhold = [\"env\"]\n\
                    [guests.guard]\nrequired = true\n";
        let text = format!("{slip}{text}");
        for (system, user) in [(text.as_str(), ""), ("", text.as_str())] {
            let settings = settings(system, user, "");
            let limits = settings.guest("x").limits;
            assert_eq!((limits.fuel, limits.log_bytes, settings.log_payloads()), (1_000_000_000, 1, false));
            assert_eq!((settings.guest("on").switch, settings.guest("on").order), (Switch::Default, None));
            assert_eq!(settings.guest("off").switch, Switch::Off);
            assert_eq!(settings.guest("off").withheld, BTreeSet::from(["env"]));
            assert!(settings.guest("guard").required);
            assert_eq!(settings.problems.len(), 1);
        }
    }

    #[test]
    fn while_the_systems_file_is_broken_the_users_loosens_nothing() {
        let user = "[limits]\nfuel = 9_000_000_000\nlog-bytes = 1\n[guests.g]\nenabled = true\n";
        for system in ["[limits", "limits = 1", "\u{0}"] {
            let settings = settings(system, user, "");
            let limits = settings.guest("g").limits;
            assert_eq!((limits.fuel, limits.log_bytes), (1_000_000_000, 1), "{system:?}");
            assert_eq!(settings.guest("g").switch, Switch::Default, "{system:?}");
        }
        let files = Files::new("", user, "");
        fs::create_dir(files.system()).expect("a folder in its place");
        let settings = files.load();
        assert_eq!(settings.guest("g").limits.fuel, 1_000_000_000);
        assert!(settings.problems[0].what.contains("no regular file"), "{:?}", settings.problems);
    }

    #[test]
    fn whose_signatures_count_is_said_by_operators_and_each_must_be_satisfied() {
        let (a, b) = (
            "RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3",
            "RWQf6LRCGA9i5wAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
        );
        let require = |keys: &[&str]| format!("require-signature = {keys:?}\n");
        // System, user, project; whether none, A and B may run.
        for (system, user, project, expected) in [
            (String::new(), String::new(), String::new(), [true, true, true]),
            (require(&[a]), String::new(), String::new(), [false, true, false]),
            (String::new(), require(&[a, b]), String::new(), [false, true, true]),
            (require(&[a]), require(&[b]), String::new(), [false, false, false]),
            (require(&[a]), require(&[a, b]), String::new(), [false, true, false]),
            (require(&[]), String::new(), String::new(), [false, false, false]),
            (String::new(), String::new(), require(&[a]), [true, true, true]),
            // What is wrong with a file makes it no less strict.
            (format!("{}oops", require(&[a])), require(&[b]), String::new(), [false, false, false]),
            ("require-signature = \"x\"".to_owned(), String::new(), String::new(), [false, false, false]),
        ] {
            let settings = settings(&system, &user, &project);
            let admitted = [None, Some(a), Some(b)].map(|signer| settings.admits_signer(signer));
            assert_eq!(admitted, expected, "{system} {user} {project}");
        }
        let trusted = |system: &str, user: &str, project: &str| settings(system, user, project).trusted_keys().len();
        let trust = format!("trusted-keys = [\"{a}\"]");
        assert_eq!((trusted(&trust, &require(&[b]), ""), trusted("", "", &trust)), (2, 0));
        assert_eq!(trusted("", &format!("{trust}\noops"), ""), 0, "a broken file makes nobody trusted");
    }

    #[test]
    fn telemetry_goes_where_an_operator_says_and_nowhere_else() {
        let at = |endpoint: &str, more: &str| format!("[telemetry]\nendpoint = \"{endpoint}\"\n{more}");
        let (one, two) = (at("https://one", ""), at("https://two", "texts = true\n"));
        for (system, user, project, expected) in [
            ("", "", "", None),
            (&*one, "", "", Some(("https://one", false))),
            ("", &*two, "", Some(("https://two", true))),
            (&*one, &*two, "", Some(("https://one", false))),
            ("", "", &*two, None),
            ("", "[telemetry]\ntexts = true\n", "", None),
            (&*at("https://one", "oops = 1\n"), &*two, "", None),
        ] {
            let telemetry = settings(system, user, project).telemetry();
            let found = telemetry.as_ref().map(|telemetry| (telemetry.endpoint.as_str(), telemetry.texts));
            assert_eq!(found, expected, "{system} {user} {project}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_everybody_can_write_loosens_nothing() {
        use std::os::unix::fs::PermissionsExt;
        let files = Files::new("", "[limits]\nfuel = 9_000_000_000\nlog-bytes = 1\n", "");
        assert_eq!(files.load().guest("g").limits.fuel, 9_000_000_000);
        fs::set_permissions(files.user(), fs::Permissions::from_mode(0o666)).expect("set");
        let settings = files.load();
        assert_eq!((settings.guest("g").limits.fuel, settings.guest("g").limits.log_bytes), (1_000_000_000, 1));
        assert_eq!(settings.problems.len(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn a_projects_file_that_is_no_plain_small_one_is_ignored_at_once() {
        use std::os::unix::fs::symlink;
        type Plant = fn(&Path);
        let narrow = "[guests.g]\nenabled = false\n";
        let planted: [(&str, Plant); 4] = [
            ("a link", |path| symlink("elsewhere.toml", path).expect("linked")),
            ("a FIFO", |path| {
                rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, 0o600.into(), 0).expect("made");
            }),
            ("a folder", |path| fs::create_dir(path).expect("made")),
            ("a giant", |path| fs::write(path, "#".repeat(70_000)).expect("written")),
        ];
        for (what, plant) in planted {
            let files = Files::new("", "", "");
            fs::write(files.dir.path().join("elsewhere.toml"), narrow).expect("written");
            plant(&files.project_file());
            let settings = files.load();
            assert_eq!(settings.guest("g").switch, Switch::Default, "{what}");
            assert_eq!(settings.problems.len(), 1, "{what}: {:?}", settings.problems);
        }
        assert_eq!(settings("", "", narrow).guest("g").switch, Switch::Off, "a plain one counts");
    }

    #[test]
    fn no_project_file_ever_widens_anything() {
        // Every value that a project could write, alone and together, against two operators' files.
        let lines = [
            "log-payloads = true",
            "[limits]\nfuel = 1_000_000_000_000\nmemory-bytes = 4_294_967_296",
            "[guests.a]\nenabled = true\nrequired = false\norder = -1",
            "[guests.b]\nenabled = true\nwithhold = []",
            "[guests.b.limits]\nlog-bytes = 1_048_576\nwritten-bytes = 0",
            "broken = ",
        ];
        let user = "[guests.a]\nrequired = true\n[guests.b]\nenabled = false\nwithhold = [\"env\"]\n";
        for user in ["", user] {
            let plain = settings("", user, "");
            for mask in 0..1_u32 << lines.len() {
                let chosen = lines.iter().enumerate().filter(|(at, _)| mask & (1 << at) != 0);
                let project = chosen.map(|(_, line)| *line).collect::<Vec<_>>().join("\n");
                let narrowed = settings("", user, &project);
                assert!(!narrowed.log_payloads(), "{project}");
                for guest in ["a", "b", "c"] {
                    let (before, after) = (plain.guest(guest), narrowed.guest(guest));
                    assert!(after.switch == before.switch || after.switch == Switch::Off, "{project}");
                    assert_eq!((after.required, after.order), (before.required, before.order), "{project}");
                    assert!(after.withheld.is_superset(&before.withheld), "{project}");
                    assert!(after.limits.fuel <= before.limits.fuel, "{project}");
                    assert!(after.limits.memory_bytes <= before.limits.memory_bytes, "{project}");
                    assert!(after.limits.log_bytes <= before.limits.log_bytes, "{project}");
                }
            }
        }
    }
}
