//! The settings that guests ask for by key: one typed view of all the files that people already have.
//!
//! The files belong to the original and to its users, and hold much else; only the keys of `KEYS` are taken out. They are
//! read when a guest asks for the first key of an event, once, and never otherwise.
//!
//! Each key says what a file that the project or a guest can write may do to it (`FromProject`): such a file changes
//! style and guidance, lowers caps and disables more, and never loosens. The user's own `~/.omc/config.json` counts as such
//! a file too, because a guest that was granted `/omc-user` can write it.

use super::env::{Env, EnvVars};
use super::file;
use super::paths::Paths;
use super::problem::{Problem, ProblemLog, quote};
use super::state_root::OMC_DIR;
use jsonc_parser::ast::{Object, Value};
use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Largest settings file that is read, in bytes; real ones have a few KiB.
pub const MAX_SETTINGS_BYTES: u64 = 256 << 10;

/// Most entries taken from a list, over all files: above the number of all keywords, and a bound on what guests are handed.
const MAX_LIST_ENTRIES: usize = 64;

/// Longest entry of a list, in bytes.
const MAX_ENTRY_BYTES: usize = 64;

/// Longest message of a rule for delegation, in bytes: it is a reason, which the host cuts at 4,000 units anyway.
const MAX_MESSAGE_BYTES: usize = 4_000;

/// Longest window of a rule for delegation, in seconds: an hour, as long as the original remembers calls.
const MAX_WINDOW_SECONDS: i64 = 3_600;

/// The variable that lifts a rule for delegation that names none, as the original's message says.
const DEFAULT_BYPASS: &str = "ALLOW_RAW_READ";

/// The cap on a mode's iterations under `OMC_SECURITY=strict`, as the original has it.
const STRICT_MAX_ITERATIONS: i64 = 200;

/// What a key holds and what it is by default.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Flag {
        default: bool,
    },
    Number {
        default: i64,
        min: i64,
        max: i64,
    },
    /// A list of names, empty by default, joined over all files.
    Names {
        never: &'static [&'static str],
    },
    /// An object whose members are objects with this text in them: names and texts, joined over all files.
    Texts {
        member: &'static str,
    },
    /// What must be delegated: `{"enforce": true, "rules": […]}`, joined over all files that enforce theirs.
    Delegation,
}

/// What a file that is not the user's alone may do to a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FromProject {
    /// Nothing: it would loosen a guard.
    Nothing,
    /// Make the number smaller.
    Lower,
    /// Add to the list.
    Extend,
    /// Anything: it is a matter of style, and then the project's word comes first.
    Set,
}

/// One setting.
#[derive(Debug)]
struct Key {
    name: &'static str,
    /// The original's name for it, where that differs.
    other_name: Option<&'static str>,
    kind: Kind,
    from_project: FromProject,
    /// A cap that `OMC_SECURITY=strict` puts on it.
    strict_max: Option<i64>,
    doc: &'static str,
}

const fn key(name: &'static str, kind: Kind, from_project: FromProject, doc: &'static str) -> Key {
    Key { name, other_name: None, kind, from_project, strict_max: None, doc }
}

/// Every key a guest can ask for.
const KEYS: &[Key] = &[
    key(
        "keywordDetector.disabled",
        Kind::Names { never: &["cancel"] },
        FromProject::Extend,
        "Keywords that start nothing. `cancel` always works.",
    ),
    key(
        "keywordDetector.ralplanGate",
        Kind::Flag { default: true },
        FromProject::Nothing,
        "Whether a vague request for an execution mode is planned first.",
    ),
    key(
        "keywordDetector.ralplanGateWords",
        Kind::Number { default: 15, min: 1, max: 1_000 },
        FromProject::Nothing,
        "A request with fewer words than this, and without anything concrete, is vague.",
    ),
    key(
        "ralph.maxIterations",
        Kind::Number { default: 100, min: 1, max: 10_000 },
        FromProject::Lower,
        "Iterations after which ralph first takes stock; it extends itself up to the hard cap.",
    ),
    Key {
        name: "ralph.hardMaxIterations",
        other_name: Some("security.hardMaxIterations"),
        kind: Kind::Number { default: 500, min: 1, max: 10_000 },
        from_project: FromProject::Lower,
        strict_max: Some(STRICT_MAX_ITERATIONS),
        doc: "Iterations after which ralph ends, come what may.",
    },
    key(
        "persistentMode.noProgressLimit",
        Kind::Number { default: 8, min: 1, max: 1_000 },
        FromProject::Lower,
        "Refusals to stop in a row, without a tool in between, after which the agent may stop.",
    ),
    key(
        "codeSimplifier.enabled",
        Kind::Flag { default: false },
        FromProject::Set,
        "Whether changed code is simplified before a turn ends.",
    ),
    key(
        "codeSimplifier.extensions",
        Kind::Names { never: &[] },
        FromProject::Extend,
        "Endings of the files that are simplified; without any, those of common languages.",
    ),
    key(
        "codeSimplifier.maxFiles",
        Kind::Number { default: 10, min: 1, max: 100 },
        FromProject::Set,
        "Most files that are named at once.",
    ),
    key(
        "taskSizeDetection.enabled",
        Kind::Flag { default: true },
        FromProject::Set,
        "Whether the size of a task is estimated from its words.",
    ),
    key(
        "taskSizeDetection.smallWordLimit",
        Kind::Number { default: 50, min: 0, max: 10_000 },
        FromProject::Set,
        "A task of at most this many words is small, if nothing says otherwise.",
    ),
    key(
        "taskSizeDetection.largeWordLimit",
        Kind::Number { default: 200, min: 1, max: 100_000 },
        FromProject::Set,
        "A task of more words than this is large.",
    ),
    key(
        "taskSizeDetection.suppressHeavyModesForSmallTasks",
        Kind::Flag { default: true },
        FromProject::Set,
        "Whether a small task starts no heavy mode, unless it was asked for explicitly.",
    ),
    key(
        "permissionHandler.approveProjectCommands",
        Kind::Flag { default: false },
        FromProject::Nothing,
        "Whether commands that run the project's own code (`npm run lint`, `cargo check`, the tests of one file) are approved \
         unasked, as those are that only read.",
    ),
    key(
        "routing.forceInherit",
        Kind::Flag { default: false },
        FromProject::Set,
        "Whether subagents have to use the session's model, because its provider does not know the usual names.",
    ),
    key(
        "routing.forceDelegation",
        Kind::Delegation,
        FromProject::Extend,
        "Tools (`pattern`, a regular expression for the whole name) that may be called `threshold.count` times within \
         `threshold.windowSeconds` before they are refused with `denyMessage`, unless the variable that `bypassEnv` names \
         (without a name `ALLOW_RAW_READ`) is `1`.",
    ),
    key(
        "agents",
        Kind::Texts { member: "model" },
        FromProject::Set,
        "The model (`AGENT.model`) for the subagents of a kind, such as `executor` or `codeReviewer`, where a call names none.",
    ),
    key(
        "agents.sharedMemory.enabled",
        Kind::Flag { default: true },
        FromProject::Set,
        "Whether agents may store what they share (`omc-host memory shared`, `shared_memory_*`).",
    ),
    key(
        "wiki.autoCapture",
        Kind::Flag { default: true },
        FromProject::Set,
        "Whether the end of a session leaves a page in the project's wiki, where there is one.",
    ),
];

/// Whose word a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Author {
    /// Only the user writes it.
    User,
    /// A repository or a guest can write it.
    Project,
}

/// A settings file: where it is and whose word it is.
#[derive(Debug)]
struct Source {
    author: Author,
    place: Place,
}

#[derive(Debug)]
enum Place {
    /// A file of the user's, links allowed.
    File(PathBuf),
    /// A file below a folder that others can write to; no link is followed below it.
    Beneath(PathBuf, &'static [&'static str]),
}

/// A value that a file holds for a key.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Said {
    Flag(bool),
    Number(i64),
    Names(Vec<String>),
    Texts(Vec<(String, String)>),
    Rules(Vec<DelegationRule>),
}

/// A rule about what must be delegated, with the names that the original's files use.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
struct DelegationRule {
    pattern: String,
    count: i64,
    window_seconds: i64,
    deny_message: Option<String>,
    bypass_env: Option<String>,
    /// The variable is `1`.
    is_bypassed: bool,
}

/// The guests' view of the settings, for one event. Shared by the threads of all guests.
#[derive(Debug)]
pub struct GuestSettings {
    sources: Vec<Source>,
    env: Env,
    resolved: OnceLock<Resolved>,
}

#[derive(Debug)]
struct Resolved {
    /// JSON texts, in the order of [`KEYS`].
    values: Vec<String>,
    problems: Vec<Problem>,
}

impl GuestSettings {
    /// Settings from these folders and the project with this root; nothing is read yet.
    pub fn new(paths: &Paths, project_root: Option<&Path>, env: &Env) -> Self {
        const OMC_CONFIG: &[&str] = &[OMC_DIR, "config.json"];
        const OMC_OWN_CONFIG: &[&str] = &[OMC_DIR, ".omc-config.json"];
        const CLAUDE_OMC: &[&str] = &[".claude", "omc.jsonc"];
        let user = |dir: &Option<PathBuf>, name: &str| {
            dir.as_ref().map(|dir| Source { author: Author::User, place: Place::File(dir.join(name)) })
        };
        let beneath = |root: Option<&Path>, components| {
            root.map(|root| Source { author: Author::Project, place: Place::Beneath(root.to_owned(), components) })
        };
        // The order in which the first to say something is heard.
        let sources = [
            beneath(project_root, CLAUDE_OMC),
            beneath(project_root, OMC_CONFIG),
            beneath(project_root, OMC_OWN_CONFIG),
            user(&paths.omc_config_dir, "config.jsonc"),
            user(&paths.claude_dir, ".omc-config.json"),
            beneath(paths.user_omc_parent(), OMC_CONFIG),
        ];
        Self { sources: sources.into_iter().flatten().collect(), env: env.clone(), resolved: OnceLock::new() }
    }

    /// The value of a key as JSON text, with its default where nobody set it; `None` for a key that is not known.
    pub fn get(&self, key: &str) -> Option<String> {
        let at = KEYS.iter().position(|known| known.name == key)?;
        self.resolved().values.get(at).cloned()
    }

    /// What is wrong with the files; empty as long as no guest asked for a key.
    pub fn problems(&self) -> &[Problem] {
        self.resolved.get().map_or(&[], |resolved| &resolved.problems)
    }

    fn resolved(&self) -> &Resolved {
        self.resolved.get_or_init(|| {
            let mut problems = Vec::new();
            let files: Vec<(Author, Vec<Option<Said>>)> =
                self.sources.iter().map(|source| (source.author, source.read(&mut problems))).collect();
            let value = |(at, key): (usize, &Key)| {
                let said: Vec<(Author, &Said)> =
                    files.iter().filter_map(|(author, said)| Some((*author, said.get(at)?.as_ref()?))).collect();
                key.resolve(&said, &self.env)
            };
            Resolved { values: KEYS.iter().enumerate().map(value).collect(), problems }
        })
    }
}

impl Key {
    /// Combines what the files say, in their order. The only place that knows the rules.
    fn resolve(&self, said: &[(Author, &Said)], env: &Env) -> String {
        let counts = |author: Author| author == Author::User || self.from_project == FromProject::Set;
        let first = said.iter().find(|(author, _)| counts(*author)).map(|(_, said)| *said);
        match self.kind {
            Kind::Flag { default } => match first {
                Some(Said::Flag(flag)) => *flag,
                _ => default,
            }
            .to_string(),
            Kind::Number { default, .. } => {
                let base = match first {
                    Some(Said::Number(number)) => *number,
                    _ => default,
                };
                let lower = said.iter().filter_map(|(author, said)| match said {
                    Said::Number(number) if *author == Author::Project && self.from_project == FromProject::Lower => {
                        Some(*number)
                    }
                    _ => None,
                });
                let strict = self.strict_max.filter(|_| env.is(EnvVars::OMC_SECURITY, &["strict"]));
                lower.chain(strict).fold(base, i64::min).to_string()
            }
            Kind::Names { never } => {
                let mut joined: Vec<&str> = Vec::new();
                for (author, said) in said {
                    let Said::Names(names) = said else { continue };
                    if *author == Author::Project && self.from_project == FromProject::Nothing {
                        continue;
                    }
                    for name in names.iter().map(String::as_str) {
                        if joined.len() < MAX_LIST_ENTRIES && !joined.contains(&name) && !never.contains(&name) {
                            joined.push(name);
                        }
                    }
                }
                serde_json::Value::from(joined).to_string()
            }
            Kind::Texts { .. } => {
                let texts = said.iter().filter_map(|(_, said)| match said {
                    Said::Texts(texts) => Some(texts),
                    _ => None,
                });
                // The first to name one is heard, so the files are gone through backwards.
                let joined: serde_json::Map<_, _> =
                    texts.rev().flatten().map(|(name, text)| (name.clone(), text.as_str().into())).collect();
                serde_json::Value::from(joined).to_string()
            }
            Kind::Delegation => {
                let rules = said.iter().filter_map(|(_, said)| match said {
                    Said::Rules(rules) => Some(rules),
                    _ => None,
                });
                let bypassed = |rule: &DelegationRule| env.is_one(rule.bypass_env.as_deref().unwrap_or(DEFAULT_BYPASS));
                let joined = rules.flatten().take(MAX_LIST_ENTRIES);
                let joined: Vec<_> =
                    joined.map(|rule| DelegationRule { is_bypassed: bypassed(rule), ..rule.clone() }).collect();
                serde_json::to_string(&joined).unwrap_or_else(|_| "[]".to_owned())
            }
        }
    }

    /// Takes the key's value out of a file. A value of the wrong type or size is a problem and does not count.
    fn read(&self, author: Author, root: &Object<'_>, log: &mut ProblemLog<'_>) -> Option<Said> {
        let mut names = std::iter::once(self.name).chain(self.other_name);
        let (name, value) = names.find_map(|name| Some((name, lookup(root, name)?)))?;
        let said = match (self.kind, value) {
            (Kind::Flag { .. }, Value::BooleanLit(flag)) => Some(Said::Flag(flag.value)),
            (Kind::Number { min, max, .. }, Value::NumberLit(number)) => {
                whole_number(number.value).filter(|number| (min..=max).contains(number)).map(Said::Number)
            }
            (Kind::Names { .. }, Value::Array(list)) => {
                let names = list.elements.iter().filter_map(|element| Some(element.as_string_lit()?.value.trim()));
                let names = names.filter(|name| !name.is_empty() && name.len() <= MAX_ENTRY_BYTES);
                Some(Said::Names(names.take(MAX_LIST_ENTRIES).map(str::to_owned).collect()))
            }
            (Kind::Texts { member }, Value::Object(members)) => {
                let texts = members.properties.iter().rev().filter_map(|property| {
                    let text = last(property.value.as_object()?, member)?.as_string_lit()?.value.trim().to_owned();
                    let fits = |text: &str| !text.is_empty() && text.len() <= MAX_ENTRY_BYTES;
                    (fits(property.name.as_str()) && fits(&text)).then(|| (property.name.as_str().to_owned(), text))
                });
                Some(Said::Texts(texts.take(MAX_LIST_ENTRIES).collect()))
            }
            (Kind::Delegation, Value::Object(delegation)) => {
                let enforced = matches!(last(delegation, "enforce"), Some(Value::BooleanLit(flag)) if flag.value);
                let rules = last(delegation, "rules").and_then(Value::as_array).filter(|_| enforced);
                let rules = rules.into_iter().flat_map(|rules| &rules.elements);
                Some(Said::Rules(rules.filter_map(delegation_rule).take(MAX_LIST_ENTRIES).collect()))
            }
            _ => None,
        };
        if said.is_none() {
            log.at(value.start(), format!("{} must be {}", quote(name), self.wanted()), "correct it; it is ignored");
        } else if author == Author::Project && self.from_project == FromProject::Nothing {
            let what = format!("{} counts only in the user's own files", quote(name));
            log.at(value.start(), what, "set it in `claude-omc/config.jsonc` of your configuration folder");
        }
        said
    }

    /// The values it takes, in words.
    fn wanted(&self) -> String {
        match self.kind {
            Kind::Flag { .. } => "`true` or `false`".to_owned(),
            Kind::Number { min, max, .. } => format!("a whole number from {min} to {max}"),
            Kind::Names { .. } => "a list of names".to_owned(),
            Kind::Texts { member } => format!("an object of objects with `{member}`"),
            Kind::Delegation => "an object with `enforce` and a list of `rules`".to_owned(),
        }
    }
}

/// A rule about delegation; nothing if it lacks a pattern or a count.
fn delegation_rule(value: &Value<'_>) -> Option<DelegationRule> {
    let rule = value.as_object()?;
    let text = |name, limit: usize| {
        let text = last(rule, name)?.as_string_lit()?.value.trim();
        (!text.is_empty() && text.len() <= limit).then(|| text.to_owned())
    };
    let threshold = last(rule, "threshold").and_then(Value::as_object);
    let number = |name| match last(threshold?, name)? {
        Value::NumberLit(number) => whole_number(number.value),
        _ => None,
    };
    Some(DelegationRule {
        pattern: text("pattern", 4 * MAX_ENTRY_BYTES)?,
        count: number("count").filter(|count| (1..=10_000).contains(count))?,
        window_seconds: number("windowSeconds").filter(|window| *window > 0).unwrap_or(120).min(MAX_WINDOW_SECONDS),
        deny_message: text("denyMessage", MAX_MESSAGE_BYTES),
        bypass_env: text("bypassEnv", MAX_ENTRY_BYTES),
        is_bypassed: false,
    })
}

/// The value of a member. Of two with the same name the last counts, as in JavaScript.
fn last<'a>(object: &'a Object<'a>, name: &str) -> Option<&'a Value<'a>> {
    Some(&object.properties.iter().rev().find(|property| property.name.as_str() == name)?.value)
}

/// The value at a dotted name.
fn lookup<'a>(root: &'a Object<'a>, name: &str) -> Option<&'a Value<'a>> {
    let mut object = root;
    let mut parts = name.split('.').peekable();
    while let Some(part) = parts.next() {
        let value = last(object, part)?;
        if parts.peek().is_none() {
            return Some(value);
        }
        object = value.as_object()?;
    }
    None
}

/// A JSON number that is whole, in whatever form it is written (`100`, `1e2`, `100.0`).
fn whole_number(text: &str) -> Option<i64> {
    /// Up to here a double holds every whole number.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    text.parse().ok().or_else(|| {
        let number: f64 = text.parse().ok()?;
        #[expect(clippy::cast_possible_truncation, reason = "whole and within what a double holds exactly")]
        (number.fract() == 0.0 && number.abs() <= EXACT).then_some(number as i64)
    })
}

impl Source {
    /// What the file says about each of [`KEYS`]; nothing if there is no such file or it cannot be understood.
    fn read(&self, problems: &mut Vec<Problem>) -> Vec<Option<Said>> {
        let (path, read) = match &self.place {
            Place::File(path) => (path.clone(), file::read(path, MAX_SETTINGS_BYTES)),
            Place::Beneath(root, components) => {
                let path = components.iter().fold(root.clone(), |path, component| path.join(component));
                (path, file::read_beneath(root, components, MAX_SETTINGS_BYTES))
            }
        };
        match read {
            Ok(None) => Vec::new(),
            Ok(Some(read)) => {
                let mut log = ProblemLog::new(&path, &read.text);
                let said = parse(&read.text, self.author, &mut log);
                problems.extend(log.into_problems());
                said
            }
            Err(error) => {
                problems.push(Problem::of_file(&path, error.to_string(), "mend or remove it; it is ignored"));
                Vec::new()
            }
        }
    }
}

/// JSON as people write it in settings files: with comments and with commas at the end of a list.
pub(crate) fn jsonc() -> ParseOptions {
    ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    }
}

/// Reads JSON with comments and trailing commas, and no other liberty: what we accept, the original must accept too.
fn parse(text: &str, author: Author, log: &mut ProblemLog<'_>) -> Vec<Option<Said>> {
    let options = jsonc();
    match parse_to_ast(text, &CollectOptions::default(), &options) {
        Ok(parsed) => match parsed.value {
            None => Vec::new(),
            Some(Value::Object(root)) => KEYS.iter().map(|key| key.read(author, &root, log)).collect(),
            Some(other) => {
                log.at(other.start(), "it must hold an object", "correct it; it is ignored");
                Vec::new()
            }
        },
        Err(error) => {
            log.at(
                error.range().start,
                format!("it is not valid JSON ({})", error.kind()),
                "correct it; it is ignored",
            );
            Vec::new()
        }
    }
}

/// The rows of the reference: key, default, values, who may set it, and what it is.
pub(super) fn reference_rows() -> impl Iterator<Item = [String; 5]> {
    KEYS.iter().map(|key| {
        let default = match key.kind {
            Kind::Flag { default } => default.to_string(),
            Kind::Number { default, .. } => default.to_string(),
            Kind::Names { .. } | Kind::Delegation => "[]".to_owned(),
            Kind::Texts { .. } => "{}".to_owned(),
        };
        let project = match key.from_project {
            FromProject::Nothing => "nothing",
            FromProject::Lower => "lower it",
            FromProject::Extend => "add to it",
            FromProject::Set => "set it",
        };
        let other = key.other_name.map(|other| format!(" Also read as `{other}`.")).unwrap_or_default();
        let strict =
            key.strict_max.map(|max| format!(" At most {max} under `OMC_SECURITY=strict`.")).unwrap_or_default();
        let doc = format!("{}{other}{strict}", key.doc);
        [format!("`{}`", key.name), format!("`{default}`"), key.wanted(), project.to_owned(), doc]
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// A home and a project with settings files in them.
    struct World {
        dir: tempfile::TempDir,
    }

    const PROJECT_CLAUDE: &str = "project/.claude/omc.jsonc";
    const PROJECT_OMC: &str = "project/.omc/config.json";
    const USER: &str = "home/.config/claude-omc/config.jsonc";
    const USER_CLAUDE: &str = "home/.claude/.omc-config.json";
    const USER_OMC: &str = "home/.omc/config.json";

    impl World {
        fn new(files: &[(&str, &str)]) -> Self {
            let world = Self { dir: tempfile::tempdir().expect("a folder") };
            fs::create_dir_all(world.path("project")).expect("created");
            for (path, text) in files {
                fs::create_dir_all(world.path(path).parent().expect("a parent")).expect("created");
                fs::write(world.path(path), text).expect("written");
            }
            world
        }

        fn path(&self, relative: &str) -> PathBuf {
            self.dir.path().join(relative)
        }

        fn settings(&self, security: &str) -> GuestSettings {
            let home = self.path("home");
            let env = Env::from_pairs(&[("HOME", home.as_os_str()), ("OMC_SECURITY", security.as_ref())]);
            let project = self.path("project");
            GuestSettings::new(&Paths::resolve(&env, Some(&project), None), Some(&project), &env)
        }
    }

    fn get(files: &[(&str, &str)], key: &str) -> String {
        World::new(files).settings("").get(key).expect("a known key")
    }

    #[test]
    fn without_files_every_key_has_its_default_and_others_are_unknown() {
        let settings = World::new(&[]).settings("");
        for (key, value) in [
            ("keywordDetector.disabled", "[]"),
            ("keywordDetector.ralplanGate", "true"),
            ("keywordDetector.ralplanGateWords", "15"),
            ("ralph.maxIterations", "100"),
            ("ralph.hardMaxIterations", "500"),
            ("persistentMode.noProgressLimit", "8"),
            ("taskSizeDetection.enabled", "true"),
            ("taskSizeDetection.smallWordLimit", "50"),
            ("taskSizeDetection.largeWordLimit", "200"),
            ("taskSizeDetection.suppressHeavyModesForSmallTasks", "true"),
            ("wiki.autoCapture", "true"),
        ] {
            assert_eq!(settings.get(key).as_deref(), Some(value), "{key}");
        }
        for key in ["", "keywordDetector", "security.hardMaxIterations", "ralph.MaxIterations", "apiKey"] {
            assert_eq!(settings.get(key), None, "{key}");
        }
        assert_eq!(settings.problems(), []);
    }

    #[test]
    fn without_a_home_and_a_project_the_defaults_hold() {
        let settings = GuestSettings::new(&Paths::default(), None, &Env::default());
        assert_eq!(settings.get("ralph.maxIterations").as_deref(), Some("100"));
    }

    #[test]
    fn disabled_keywords_are_joined_over_all_files_and_cancel_is_never_one() {
        let names = |names: &str| format!("{{\"keywordDetector\": {{\"disabled\": {names}}}}}");
        let files = [
            (PROJECT_CLAUDE, names("[\"ralph\", \"tdd\", \"cancel\"]")),
            (PROJECT_OMC, names("[\"ralph\", \" wiki \"]")),
            (USER, names("[\"analyze\", 5, \"\", null]")),
            (USER_CLAUDE, names("[\"ultrathink\"]")),
            (USER_OMC, names("[\"cancel\"]")),
        ];
        let files = files.each_ref().map(|(path, text)| (*path, text.as_str()));
        assert_eq!(get(&files, "keywordDetector.disabled"), r#"["ralph","tdd","wiki","analyze","ultrathink"]"#);
    }

    #[test]
    fn a_long_list_and_long_entries_are_bounded() {
        let names: Vec<String> = (0..5_000).map(|n| format!("k{n}")).chain(["x".repeat(10_000)]).collect();
        let text = serde_json::json!({"keywordDetector": {"disabled": names}}).to_string();
        let value = get(&[(PROJECT_CLAUDE, &text)], "keywordDetector.disabled");
        assert_eq!(serde_json::from_str::<Vec<String>>(&value).expect("a list").len(), MAX_LIST_ENTRIES);
        let text = serde_json::json!({"keywordDetector": {"disabled": ["x".repeat(10_000), "ralph"]}}).to_string();
        assert_eq!(get(&[(PROJECT_CLAUDE, &text)], "keywordDetector.disabled"), r#"["ralph"]"#);
    }

    #[test]
    fn caps_are_the_users_and_only_lowered_elsewhere() {
        let cap = |cap: &str| format!("{{\"ralph\": {{\"hardMaxIterations\": {cap}}}}}");
        let theirs = |cap: &str| format!("{{\"security\": {{\"hardMaxIterations\": {cap}}}}}");
        for (files, value, why) in [
            (vec![(USER, cap("900"))], "900", "the user may raise"),
            (vec![(USER, theirs("120"))], "120", "by the original's name too"),
            (vec![(USER, cap("900")), (USER_CLAUDE, cap("50"))], "900", "the first of the user's files"),
            (vec![(PROJECT_CLAUDE, cap("900"))], "500", "a project cannot raise"),
            (vec![(PROJECT_OMC, theirs("900"))], "500", "by no name"),
            (vec![(USER_OMC, cap("900"))], "500", "nor can a file that guests may write"),
            (vec![(PROJECT_CLAUDE, cap("90"))], "90", "a project may lower"),
            (vec![(USER, cap("900")), (PROJECT_CLAUDE, cap("90")), (PROJECT_OMC, cap("80"))], "80", "the least holds"),
            (vec![(USER, cap("40")), (PROJECT_CLAUDE, cap("90"))], "40", "also where that is the user's"),
            (vec![(PROJECT_CLAUDE, cap("0"))], "500", "zero is no cap"),
            (vec![(PROJECT_CLAUDE, cap("-5"))], "500", "nor less"),
            (vec![(USER, cap("1e3"))], "1000", "whole in any form"),
            (vec![(USER, cap("99999999999999999999"))], "500", "too large"),
            (vec![(USER, cap("\"90\""))], "500", "text is no number"),
        ] {
            let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
            assert_eq!(get(&files, "ralph.hardMaxIterations"), value, "{why}");
        }
    }

    #[test]
    fn strict_security_caps_iterations_at_two_hundred() {
        for (security, user, value) in [
            ("strict", "900", "200"),
            ("strict", "90", "90"),
            ("strict", "null", "200"),
            ("lax", "900", "900"),
            ("STRICT", "900", "900"),
        ] {
            let world = World::new(&[(USER, &format!("{{\"ralph\": {{\"hardMaxIterations\": {user}}}}}"))]);
            assert_eq!(
                world.settings(security).get("ralph.hardMaxIterations").as_deref(),
                Some(value),
                "{security} {user}"
            );
        }
    }

    #[test]
    fn rules_of_all_files_that_enforce_them_are_joined() {
        let rules = |enforce: &str, pattern: &str| {
            format!(
                r#"{{"routing": {{"forceDelegation": {{"enforce": {enforce}, "rules": [
                    {{"pattern": "{pattern}", "threshold": {{"count": 2, "windowSeconds": 99999}}, "bypassEnv": "LET_ME"}},
                    {{"pattern": "x"}}, {{"threshold": {{"count": 1}}}}, 7
                ]}}}}}}"#
            )
        };
        let (user, project) = (rules("true", "Read"), rules("true", "Bash"));
        let off = rules("\"true\"", "Edit");
        let got =
            get(&[(USER_CLAUDE, &user), (PROJECT_OMC, &project), (PROJECT_CLAUDE, &off)], "routing.forceDelegation");
        let got: serde_json::Value = serde_json::from_str(&got).expect("JSON");
        assert_eq!(
            got,
            serde_json::json!([
                {"pattern": "Bash", "count": 2, "windowSeconds": 3600, "denyMessage": null, "bypassEnv": "LET_ME", "isBypassed": false},
                {"pattern": "Read", "count": 2, "windowSeconds": 3600, "denyMessage": null, "bypassEnv": "LET_ME", "isBypassed": false},
            ])
        );
        assert_eq!(get(&[], "routing.forceDelegation"), "[]");
        assert_eq!(
            get(&[(USER, r#"{"routing": {"forceDelegation": {"enforce": true}}}"#)], "routing.forceDelegation"),
            "[]"
        );

        let home = tempfile::tempdir().expect("a folder");
        fs::create_dir_all(home.path().join(".claude")).expect("created");
        let user = user.replace(r#""x""#, r#""x", "threshold": {"count": 1}"#);
        fs::write(home.path().join(".claude/.omc-config.json"), user).expect("written");
        let env = Env::from_pairs(&[("HOME", home.path().as_os_str()), ("LET_ME", "1".as_ref())]);
        let settings = GuestSettings::new(&Paths::resolve(&env, None, None), None, &env);
        assert!(settings.get("routing.forceDelegation").expect("known").contains("\"isBypassed\":true"));
    }

    #[test]
    fn models_are_joined_agent_by_agent_and_the_projects_word_comes_first() {
        let user =
            r#"{"agents": {"debugger": {"model": "haiku"}, "executor": {"model": "haiku"}, "writer": 5, "x": {}}}"#;
        let project = r#"{"agents": {"executor": {"model": " opus "}, "": {"model": "opus"}}}"#;
        let got = get(&[(USER, user), (PROJECT_CLAUDE, project)], "agents");
        let got: serde_json::Value = serde_json::from_str(&got).expect("JSON");
        assert_eq!(got, serde_json::json!({"debugger": "haiku", "executor": "opus"}));
        assert_eq!(get(&[], "agents"), "{}");
    }

    #[test]
    fn a_project_cannot_have_its_own_commands_approved() {
        let on = r#"{"permissionHandler": {"approveProjectCommands": true}}"#;
        for (file, value) in [(USER, "true"), (USER_CLAUDE, "true"), (PROJECT_CLAUDE, "false"), (PROJECT_OMC, "false")]
        {
            assert_eq!(get(&[(file, on)], "permissionHandler.approveProjectCommands"), value, "{file}");
        }
    }

    #[test]
    fn the_gate_is_the_users_alone() {
        let off = r#"{"keywordDetector": {"ralplanGate": false, "ralplanGateWords": 3}}"#;
        for (file, gate, words) in [
            (USER, "false", "3"),
            (USER_CLAUDE, "false", "3"),
            (PROJECT_CLAUDE, "true", "15"),
            (PROJECT_OMC, "true", "15"),
            (USER_OMC, "true", "15"),
        ] {
            assert_eq!(get(&[(file, off)], "keywordDetector.ralplanGate"), gate, "{file}");
            assert_eq!(get(&[(file, off)], "keywordDetector.ralplanGateWords"), words, "{file}");
        }
        let world = World::new(&[(PROJECT_CLAUDE, off)]);
        let settings = world.settings("");
        assert_eq!(settings.get("keywordDetector.ralplanGate").as_deref(), Some("true"));
        assert!(settings.problems()[0].what.contains("only in the user's own files"), "{:?}", settings.problems());
    }

    #[test]
    fn in_matters_of_style_the_projects_word_comes_first() {
        let limit = |words: u32| format!("{{\"taskSizeDetection\": {{\"smallWordLimit\": {words}}}}}");
        let (project, user, home) = (limit(80), limit(30), limit(20));
        let key = "taskSizeDetection.smallWordLimit";
        assert_eq!(get(&[(PROJECT_CLAUDE, &project), (USER, &user)], key), "80");
        assert_eq!(get(&[(USER, &user), (USER_OMC, &home)], key), "30");
        assert_eq!(get(&[(USER_OMC, &home)], key), "20");
        let no_pages = r#"{"wiki": {"autoCapture": false}}"#;
        assert_eq!(get(&[("project/.omc/.omc-config.json", no_pages)], "wiki.autoCapture"), "false");
    }

    #[test]
    fn comments_and_trailing_commas_are_read_and_no_other_liberty_is() {
        let key = "ralph.maxIterations";
        let commented = "\u{feff}// https://x.test\n{\n  \"docs\": \"https://x.test/a\", /* off */ \"ralph\": {\"maxIterations\": 7,},\n}\n";
        assert_eq!(get(&[(USER, commented)], key), "7");
        for text in [
            "{ralph: {\"maxIterations\": 7}}",
            "{'ralph': {'maxIterations': 7}}",
            "{\"ralph\": {\"maxIterations\": 0x7}}",
            "{\"ralph\": {\"maxIterations\": +7}}",
        ] {
            assert_eq!(get(&[(USER, text)], key), "100", "{text}");
        }
        assert_eq!(
            get(&[(USER, "{\"ralph\": {\"maxIterations\": 7}, \"ralph\": {\"maxIterations\": 9}}")], key),
            "9",
            "the last of two"
        );
    }

    #[test]
    fn a_faulty_file_is_noted_with_its_line_and_the_others_still_count() {
        for (text, noted) in [
            ("{\n  \"ralph\": {\"maxIterations\": \n}", "line 3: it is not valid JSON"),
            ("[]", "line 1: it must hold an object"),
            (
                "{\n\"ralph\": {\"maxIterations\": true}}",
                "line 2: `ralph.maxIterations` must be a whole number from 1 to 10000",
            ),
            (
                "{\"keywordDetector\": {\"disabled\": \"ralph\"}}",
                "line 1: `keywordDetector.disabled` must be a list of names",
            ),
            (
                "{\"keywordDetector\": {\"ralplanGate\": 0}}",
                "line 1: `keywordDetector.ralplanGate` must be `true` or `false`",
            ),
        ] {
            let world = World::new(&[(USER, text), (USER_CLAUDE, "{\"ralph\": {\"maxIterations\": 7}}")]);
            let settings = world.settings("");
            assert_eq!(settings.get("ralph.maxIterations").as_deref(), Some("7"), "{text}");
            let problem = settings.problems()[0].to_string();
            assert!(problem.contains(noted), "{problem}");
        }
        for text in ["", "// nothing yet\n", "{}", "{\"ralph\": 5, \"security\": []}"] {
            let world = World::new(&[(USER, text)]);
            let settings = world.settings("");
            assert_eq!(
                (settings.get("ralph.maxIterations").as_deref(), settings.problems()),
                (Some("100"), &[][..]),
                "{text:?}"
            );
        }
    }

    #[test]
    fn hostile_text_is_read_in_bounded_time_and_stack() {
        let fill = |piece: &str| piece.repeat((250 << 10) / piece.len());
        for text in [
            fill("["),
            fill("{\"a\":"),
            fill("/*"),
            fill("/**/"),
            fill("\""),
            fill("\\"),
            format!("{{\"ralph\":{}", fill("{\"ralph\":")),
        ] {
            let started = std::time::Instant::now();
            assert_eq!(get(&[(PROJECT_CLAUDE, &text)], "ralph.maxIterations"), "100");
            assert!(started.elapsed() < std::time::Duration::from_secs(2), "{:?}", &text[..9]);
        }
    }

    #[test]
    fn files_are_read_once_and_only_when_a_key_is_asked_for() {
        let world = World::new(&[]);
        let settings = world.settings("");
        assert_eq!(settings.get("unknown.key"), None);
        fs::create_dir_all(world.path("project/.claude")).expect("created");
        fs::write(world.path(PROJECT_CLAUDE), "{\"ralph\": {\"maxIterations\": 7}}").expect("written");
        assert_eq!(settings.get("ralph.maxIterations").as_deref(), Some("7"), "written after `new`");
        fs::remove_file(world.path(PROJECT_CLAUDE)).expect("removed");
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    assert_eq!(settings.get("ralph.maxIterations").as_deref(), Some("7"), "one answer for all");
                });
            }
        });
    }

    #[cfg(unix)]
    #[test]
    fn what_is_planted_in_place_of_a_file_is_ignored_at_once() {
        use std::os::unix::fs::symlink;
        type Plant = fn(&World);
        let lower = "{\"ralph\": {\"maxIterations\": 7}}";
        let planted: [(&str, usize, Plant); 4] = [
            ("a link", 1, |world| symlink(world.path("secret"), world.path(PROJECT_OMC)).expect("linked")),
            // With two files of the guests' in it.
            ("a linked folder", 2, |world| {
                fs::remove_dir(world.path("project/.omc")).expect("removed");
                symlink(world.path("elsewhere"), world.path("project/.omc")).expect("linked");
            }),
            ("a FIFO", 1, |world| {
                let kind = rustix::fs::FileType::Fifo;
                rustix::fs::mknodat(rustix::fs::CWD, world.path(PROJECT_OMC), kind, 0o600.into(), 0).expect("made");
            }),
            ("a giant", 1, |world| fs::write(world.path(PROJECT_OMC), " ".repeat(300_000)).expect("written")),
        ];
        for (what, problems, plant) in planted {
            let world = World::new(&[("secret", lower), ("elsewhere/config.json", lower)]);
            fs::create_dir_all(world.path("project/.omc")).expect("created");
            plant(&world);
            let settings = world.settings("");
            assert_eq!(settings.get("ralph.maxIterations").as_deref(), Some("100"), "{what}");
            assert_eq!(settings.problems().len(), problems, "{what}: {:?}", settings.problems());
        }
        let world = World::new(&[("dotfiles/omc.jsonc", lower), ("home/.config/claude-omc/x", "")]);
        symlink(world.path("dotfiles/omc.jsonc"), world.path(USER)).expect("linked");
        assert_eq!(world.settings("").get("ralph.maxIterations").as_deref(), Some("7"), "the user's own may be a link");
    }

    #[test]
    fn no_file_of_a_project_loosens_any_key() {
        let hostile = r#"{
            "keywordDetector": {"disabled": [], "ralplanGate": false, "ralplanGateWords": 1},
            "ralph": {"maxIterations": 10000, "hardMaxIterations": 10000},
            "security": {"hardMaxIterations": 10000},
            "persistentMode": {"noProgressLimit": 1000}
        }"#;
        let world = World::new(&[(PROJECT_CLAUDE, hostile), (PROJECT_OMC, hostile), (USER_OMC, hostile)]);
        let (settings, defaults) = (world.settings(""), World::new(&[]).settings(""));
        for key in KEYS.iter().filter(|key| key.from_project != FromProject::Set) {
            assert_eq!(settings.get(key.name), defaults.get(key.name), "{}", key.name);
        }
    }
}
