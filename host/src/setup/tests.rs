//! Installing and uninstalling in scratch homes: whatever a settings file looks like, it comes back to the byte.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use tempfile::TempDir;

use super::*;
use crate::config::Env;
use crate::config::guest_settings::jsonc;
use crate::hooks_file::ours;

const PROGRAM: &str = "/opt/omc host/it's \"한국어\"/omc-host";

/// A home in which both agents have been used.
struct Home(TempDir);

impl Home {
    fn new() -> Self {
        let home = Self(tempfile::tempdir().expect("a folder"));
        for folder in ["home/.claude", "home/.codex", "project/.git"] {
            fs::create_dir_all(home.path(folder)).expect("created");
        }
        home
    }

    fn path(&self, below: &str) -> PathBuf {
        self.0.path().canonicalize().expect("canonical").join(below)
    }

    fn paths(&self) -> Paths {
        let home = self.path("home");
        Paths::resolve(&Env::from_pairs(&[("HOME", home.to_str().expect("UTF-8"))]), None, None)
    }

    fn write(&self, below: &str, bytes: impl AsRef<[u8]>) {
        let path = self.path(below);
        fs::create_dir_all(path.parent().expect("a folder")).expect("created");
        fs::write(path, bytes).expect("written");
    }

    fn read(&self, below: &str) -> String {
        fs::read_to_string(self.path(below)).expect("readable")
    }

    /// Every file with its bytes, and every folder, beside the archive's own.
    fn everything(&self) -> Vec<(PathBuf, Option<Vec<u8>>)> {
        fn collect(folder: &Path, found: &mut Vec<(PathBuf, Option<Vec<u8>>)>) {
            for entry in fs::read_dir(folder).expect("listed") {
                let path = entry.expect("an entry").path();
                if path.is_dir() {
                    found.push((path.clone(), None));
                    collect(&path, found);
                } else {
                    let bytes = fs::read(&path).expect("readable");
                    found.push((path, Some(bytes)));
                }
            }
        }
        let mut found = Vec::new();
        collect(&self.path(""), &mut found);
        found.retain(|(path, _)| !path.starts_with(self.path("home/.local")));
        found.sort();
        found
    }

    fn run(&self, aim: Aim, scope: Scope) -> Result<(Vec<Done>, Vec<String>)> {
        self.run_with(aim, scope, PROGRAM)
    }

    fn run_with(&self, aim: Aim, scope: Scope, program: &str) -> Result<(Vec<Done>, Vec<String>)> {
        let (paths, project) = (self.paths(), self.path("project"));
        let mut archive = Archive::open(&paths)?;
        let places = places(&AGENTS, scope, Some(&project), &paths)?;
        let mut plan = plan(aim, &places, program, &paths, &archive);
        if let Some(problem) = plan.problems.pop() {
            return Err(problem.error);
        }
        Ok((plan.carry_out(aim, &mut archive)?, plan.notes))
    }

    fn install(&self) -> Vec<Done> {
        self.run(Aim::Install, Scope::User).expect("installed").0
    }

    fn uninstall(&self) -> Vec<Done> {
        self.run(Aim::Uninstall, Scope::User).expect("uninstalled").0
    }
}

const SETTINGS: &str = "home/.claude/settings.json";
const CODEX_HOOKS: &str = "home/.codex/hooks.json";
const CODEX_CONFIG: &str = "home/.codex/config.toml";

/// How a file is written.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "any of them goes with any other")]
struct Style {
    indent: &'static str,
    newline: &'static str,
    one_line: bool,
    trailing_commas: bool,
    comments: bool,
    byte_order_mark: bool,
    final_newline: bool,
    /// Chooses between the forms at each place.
    seed: u64,
}

fn style() -> impl Strategy<Value = Style> {
    let indent = prop_oneof![Just("  "), Just("    "), Just("\t"), Just(""), Just("   ")];
    let newline = prop_oneof![Just("\n"), Just("\r\n")];
    (indent, newline, any::<[bool; 5]>(), any::<u64>()).prop_map(
        |(indent, newline, [one_line, trailing_commas, comments, byte_order_mark, final_newline], seed)| Style {
            indent,
            newline,
            one_line,
            trailing_commas,
            comments,
            byte_order_mark,
            final_newline,
            seed,
        },
    )
}

/// Writes a value as a person might.
struct Writer {
    style: Style,
    out: String,
}

impl Writer {
    fn write(style: Style, value: &Value) -> String {
        let mut writer = Self { style, out: String::new() };
        if writer.style.byte_order_mark {
            writer.out.push('\u{feff}');
        }
        writer.value(value, 0);
        if writer.style.final_newline {
            writer.out.push_str(writer.style.newline);
        }
        writer.out
    }

    fn chance(&mut self, of: u64) -> bool {
        self.style.seed =
            self.style.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.style.seed >> 33).is_multiple_of(of)
    }

    fn gap(&mut self, depth: usize) {
        if self.style.one_line {
            if self.chance(2) {
                self.out.push(' ');
            }
        } else {
            if self.style.comments && self.chance(4) {
                self.out.push_str(" // \"hooks\": {");
            }
            let line = format!("{}{}", self.style.newline, self.style.indent.repeat(depth));
            if self.chance(8) {
                self.out.push_str(self.style.newline);
            }
            self.out.push_str(&line);
            if self.style.comments && self.chance(6) {
                self.out.push_str("/* , */");
                self.out.push_str(&line);
            }
        }
    }

    fn items<'a>(
        &mut self,
        brackets: [char; 2],
        items: impl ExactSizeIterator<Item = (Option<&'a String>, &'a Value)>,
        depth: usize,
    ) {
        self.out.push(brackets[0]);
        let count = items.len();
        for (at, (key, value)) in items.enumerate() {
            self.gap(depth + 1);
            if let Some(key) = key {
                self.out.push_str(&Value::from(key.as_str()).to_string());
                let colon = if self.chance(5) { " :" } else { ": " };
                self.out.push_str(colon);
            }
            self.value(value, depth + 1);
            if at + 1 < count || self.style.trailing_commas {
                if self.chance(9) {
                    self.out.push(' ');
                }
                self.out.push(',');
            }
        }
        if count > 0 || self.chance(4) {
            self.gap(depth);
        }
        self.out.push(brackets[1]);
    }

    fn value(&mut self, value: &Value, depth: usize) {
        match value {
            Value::Object(members) => {
                self.items(['{', '}'], members.iter().map(|(key, value)| (Some(key), value)), depth);
            }
            Value::Array(elements) => self.items(['[', ']'], elements.iter().map(|value| (None, value)), depth),
            other => self.out.push_str(&other.to_string()),
        }
    }
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[a-z \"\\\\/{}\\[\\],:한é]{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-z]{1,5}", inner, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// Hooks of others on some events.
fn hooks() -> impl Strategy<Value = Value> {
    let handler = "[a-z ]{1,8}".prop_map(|command| json!({ "type": "command", "command": command }));
    let group =
        (prop::option::of("[A-Z][a-z]{2,5}"), prop::collection::vec(handler, 0..3)).prop_map(|(matcher, handlers)| {
            let mut group = Map::new();
            group.extend(matcher.map(|matcher| ("matcher".to_owned(), Value::from(matcher))));
            group.insert("hooks".to_owned(), Value::from(handlers));
            Value::Object(group)
        });
    let event =
        prop_oneof![Just("Stop"), Just("PreToolUse"), Just("Notification"), Just("SessionStart"), Just("Whatever")];
    prop::collection::btree_map(event, prop::collection::vec(group, 0..3), 0..4)
        .prop_map(|events| events.into_iter().map(|(event, groups)| (event.to_owned(), Value::from(groups))).collect())
}

fn settings() -> impl Strategy<Value = Value> {
    let others = prop::collection::btree_map("[a-z]{1,6}", value(), 0..4);
    (others, prop::option::of(hooks()), any::<bool>()).prop_map(|(others, hooks, first)| {
        let mut root = Map::new();
        let hooks = hooks.map(|hooks| ("hooks".to_owned(), hooks));
        if first {
            root.extend(hooks.clone());
        }
        root.extend(others.into_iter().filter(|(name, _)| name != "hooks"));
        if !first {
            root.extend(hooks);
        }
        Value::Object(root)
    })
}

fn parsed(text: &str) -> Value {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    jsonc_parser::parse_to_serde_value(text, &jsonc()).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// The value without handlers of ours, and without what only they filled.
fn without_ours(mut value: Value) -> Value {
    let Some(hooks) = value.get_mut("hooks").and_then(Value::as_object_mut) else { return value };
    hooks.retain(|_, groups| {
        let Some(groups) = groups.as_array_mut() else { return true };
        let count = groups.len();
        groups.retain_mut(|group| {
            let Some(handlers) = group.get_mut("hooks").and_then(Value::as_array_mut) else { return true };
            let before = handlers.len();
            handlers.retain(|handler| ours::program_of(handler).is_none());
            !handlers.is_empty() || handlers.len() == before
        });
        !groups.is_empty() || groups.len() == count
    });
    value
}

/// The same, with an empty `hooks` and none counted as equal: a container that only we filled goes.
fn normal(value: Value) -> Value {
    let mut value = without_ours(value);
    if let Some(hooks) = value.get_mut("hooks").and_then(Value::as_object_mut) {
        hooks.retain(|_, groups| groups.as_array().is_none_or(|groups| !groups.is_empty()));
        if hooks.is_empty() {
            value.as_object_mut().expect("an object").remove("hooks");
        }
    }
    value
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_settings_file_comes_back_to_the_byte(claude in settings(), codex in hooks(), style in style(), plain in style()) {
        let home = Home::new();
        let text = Writer::write(style, &claude);
        // Codex's file is JSON to the letter.
        let strict = Style { comments: false, trailing_commas: false, byte_order_mark: false, ..plain };
        let codex_text = Writer::write(strict, &json!({ "hooks": codex }));
        home.write(SETTINGS, &text);
        home.write(CODEX_HOOKS, &codex_text);
        let before = home.everything();

        prop_assert!(!home.install().is_empty());
        let installed = home.everything();
        prop_assert_eq!(normal(parsed(&home.read(SETTINGS))), normal(claude.clone()));
        prop_assert!(home.install().is_empty(), "not idempotent: {}", home.read(SETTINGS));
        prop_assert_eq!(&home.everything(), &installed);
        // Nothing that was there before is gone: the new text is the old one with something put in.
        prop_assert!(is_within(&text, &home.read(SETTINGS)), "{}\n{}", text, home.read(SETTINGS));

        home.uninstall();
        prop_assert_eq!(&home.everything(), &before);
    }

    #[test]
    fn a_file_that_was_changed_meanwhile_loses_our_entries_and_nothing_else(claude in settings(), style in style()) {
        let home = Home::new();
        let text = Writer::write(style, &claude);
        home.write(SETTINGS, &text);
        home.install();
        // Whoever changed the file, the receipt does not fit any more.
        fs::remove_dir_all(home.path("home/.local")).expect("removed");
        home.uninstall();
        let after = home.read(SETTINGS);
        prop_assert_eq!(normal(parsed(&after)), normal(claude.clone()));
        let has_others = claude.as_object().is_some_and(|root| !root.is_empty());
        let hooks_stay = claude.get("hooks").is_none_or(|hooks| {
            let events = hooks.as_object().expect("an object");
            !events.is_empty() && events.values().all(|groups| groups.as_array().is_some_and(|groups| !groups.is_empty()))
        });
        if has_others && hooks_stay {
            prop_assert_eq!(after, text);
        }
    }
}

/// Whether every character of one text is in another, in order.
fn is_within(small: &str, large: &str) -> bool {
    let mut letters = large.chars();
    small.chars().all(|wanted| letters.any(|letter| letter == wanted))
}

#[test]
fn files_of_every_odd_kind_come_back_to_the_byte() {
    for text in [
        "",
        " \n",
        "{}",
        "{ }",
        "{\n}",
        "// mine\n",
        "\u{feff}{}",
        "{\"hooks\": {}}",
        "{\"hooks\": {\"Stop\": []}}",
        "{\r\n}\r\n",
    ] {
        let home = Home::new();
        home.write(SETTINGS, text);
        home.write(CODEX_CONFIG, "model = \"m\"");
        let before = home.everything();
        home.install();
        let hooks = parsed(&home.read(SETTINGS));
        assert!(ours::program_of(&hooks["hooks"]["Stop"][0]["hooks"][0]).is_some(), "{text:?}");
        assert!(home.install().is_empty(), "{text:?}");
        home.uninstall();
        assert_eq!(home.everything(), before, "{text:?}");
    }
}

#[test]
fn files_and_folders_that_were_not_there_are_not_there_again() {
    for folders in [&["home/.claude", "home/.codex"][..], &[]] {
        let home = Home::new();
        for folder in folders {
            fs::remove_dir(home.path(folder)).expect("removed");
        }
        let before = home.everything();
        let made = home.install();
        assert!(made.iter().all(|done| done.change == "create"), "{made:#?}");
        for path in [
            SETTINGS,
            CODEX_HOOKS,
            CODEX_CONFIG,
            "home/.claude/skills/omc/skills/ralph/SKILL.md",
            "home/.agents/skills/omc/cancel/SKILL.md",
        ] {
            assert!(home.path(path).is_file(), "{path}");
        }
        home.uninstall();
        assert_eq!(home.everything(), before);
        assert!(home.uninstall().is_empty());
    }
}

#[test]
fn an_upgrade_changes_nothing_that_codex_trusts_and_a_move_only_the_path() {
    let home = Home::new();
    home.write(SETTINGS, "{\n  \"model\": \"x\" // mine\n}\n");
    let before = home.everything();
    home.install();
    let first = [home.read(SETTINGS), home.read(CODEX_HOOKS)];
    assert!(home.install().is_empty());
    home.run_with(Aim::Install, Scope::User, "/new/omc-host").expect("installed");
    let moved = [home.read(SETTINGS), home.read(CODEX_HOOKS)];
    assert_eq!(
        parsed(&moved[0])["hooks"].as_object().map(Map::len),
        parsed(&first[0])["hooks"].as_object().map(Map::len)
    );
    assert!(moved.iter().all(|text| text.contains("/new/omc-host") && !text.contains("/opt/omc host")));
    home.uninstall();
    assert_eq!(home.everything(), before);
}

#[test]
fn a_file_that_somebody_changed_since_keeps_the_change() {
    let home = Home::new();
    home.write(SETTINGS, "{\n  \"model\": \"x\"\n}\n");
    home.write(CODEX_CONFIG, "# mine\n");
    home.install();
    home.write(SETTINGS, home.read(SETTINGS).replace("\"x\"", "\"y\""));
    home.write(CODEX_CONFIG, home.read(CODEX_CONFIG) + "\n[projects.\"/p\"]\ntrust_level = \"trusted\"\n");
    let skill = "home/.claude/skills/omc/skills/ralph/SKILL.md";
    home.write(skill, "mine now");
    let (_, notes) = home.run(Aim::Uninstall, Scope::User).expect("uninstalled");
    assert_eq!(home.read(SETTINGS), "{\n  \"model\": \"y\"\n}\n");
    assert_eq!(home.read(CODEX_CONFIG), "# mine\n\n[projects.\"/p\"]\ntrust_level = \"trusted\"\n");
    assert_eq!(home.read(skill), "mine now");
    assert!(notes.iter().any(|note| note.contains("ralph/SKILL.md") && note.contains("stays")), "{notes:?}");
}

#[test]
fn hooks_of_others_that_lose_codexs_trust_are_named() {
    let home = Home::new();
    home.install();
    let mut hooks = parsed(&home.read(CODEX_HOOKS));
    for (event, at) in [("Stop", 1), ("PreToolUse", 0)] {
        let group = json!({ "hooks": [{ "type": "command", "command": "mine" }] });
        hooks["hooks"][event].as_array_mut().expect("groups").insert(at, group);
    }
    home.write(CODEX_HOOKS, hooks.to_string());
    let (_, notes) = home.run(Aim::Uninstall, Scope::User).expect("uninstalled");
    assert!(notes.iter().any(|note| note.starts_with("other hooks on Stop move up")), "{notes:?}");
}

#[test]
fn a_link_stays_a_link_and_what_it_points_to_is_edited() {
    let home = Home::new();
    home.write("dotfiles/claude.json", "{\n  \"a\": 1\n}\n");
    fs::set_permissions(home.path("dotfiles/claude.json"), fs::Permissions::from_mode(0o640)).expect("set");
    symlink(home.path("dotfiles/claude.json"), home.path(SETTINGS)).expect("linked");
    home.install();
    let is_link = || fs::symlink_metadata(home.path(SETTINGS)).expect("there").is_symlink();
    assert!(is_link() && home.read("dotfiles/claude.json").contains("omc-host"));
    assert_eq!(fs::metadata(home.path("dotfiles/claude.json")).expect("there").permissions().mode() & 0o777, 0o640);
    home.uninstall();
    assert!(is_link());
    assert_eq!(home.read("dotfiles/claude.json"), "{\n  \"a\": 1\n}\n");
    // One that leads nowhere.
    fs::remove_file(home.path("dotfiles/claude.json")).expect("removed");
    let error = format!("{:#}", home.run(Aim::Install, Scope::User).expect_err("refused"));
    assert!(error.contains("is a link to something that is not there"), "{error}");
}

#[test]
fn what_must_not_be_changed_is_refused_and_left_alone() {
    type Setup = fn(&Home);
    let cases: [(Setup, &str); 6] = [
        (|home| home.write(SETTINGS, "{\"hooks\": {}, \"hooks\": {}}"), "`hooks` stands in it twice"),
        (|home| home.write(SETTINGS, "{"), "it is not JSON as Claude Code reads it"),
        (|home| home.write(SETTINGS, [0xff, 0xfe]), "is not UTF-8 text"),
        (
            |home| {
                home.write(SETTINGS, "{}");
                fs::set_permissions(home.path(SETTINGS), fs::Permissions::from_mode(0o444)).expect("set");
            },
            "is read-only, and that may be on purpose",
        ),
        (|home| fs::create_dir(home.path(SETTINGS)).expect("created"), "is not a file"),
        (|home| home.write("home/.claude/skills/omc/.mcp.json", "{}"), "is there and not omc-host's"),
    ];
    for (setup, complaint) in cases {
        let home = Home::new();
        setup(&home);
        let before = home.everything();
        let error = format!("{:#}", home.run(Aim::Install, Scope::User).expect_err(complaint));
        assert!(error.contains(complaint), "{error}");
        let settings =
            |all: &[(PathBuf, Option<Vec<u8>>)]| all.iter().find(|(path, _)| path.ends_with("settings.json")).cloned();
        assert_eq!(settings(&home.everything()), settings(&before));
    }
}

#[test]
fn a_link_in_a_project_is_never_followed() {
    type Plant = fn(&Home);
    let plants: [Plant; 4] = [
        |home| symlink(home.path("outside"), home.path("project/.claude")).expect("linked"),
        |home| {
            fs::create_dir(home.path("project/.claude")).expect("created");
            symlink(home.path("outside/precious.json"), home.path("project/.claude/settings.local.json"))
                .expect("linked");
        },
        |home| symlink(home.path("outside"), home.path("project/.agents")).expect("linked"),
        |home| {
            fs::create_dir(home.path("project/.codex")).expect("created");
            symlink(home.path("outside/precious.json"), home.path("project/.codex/config.toml")).expect("linked");
        },
    ];
    for plant in plants {
        let home = Home::new();
        home.write("outside/precious.json", "{}");
        plant(&home);
        let before = home.everything();
        let error = format!("{:#}", home.run(Aim::Install, Scope::Project).expect_err("refused"));
        assert!(error.contains("in a project links are not followed"), "{error}");
        assert_eq!(home.everything(), before);
    }
}

#[test]
fn a_projects_shared_settings_are_not_touched_and_ours_are_ignored_by_git() {
    let home = Home::new();
    home.write("project/.claude/settings.json", "{}");
    let before = home.everything();
    home.run(Aim::Install, Scope::Project).expect("installed");
    assert_eq!(home.read("project/.claude/settings.json"), "{}");
    assert!(home.read("project/.claude/settings.local.json").contains("omc-host"));
    for folder in ["project/.claude/skills/omc", "project/.agents/skills/omc"] {
        assert_eq!(home.read(&format!("{folder}/.gitignore")), "*\n");
    }
    home.run(Aim::Uninstall, Scope::Project).expect("uninstalled");
    assert_eq!(home.everything(), before);
}

#[test]
fn a_file_that_changes_under_our_hands_is_not_overwritten() {
    let home = Home::new();
    home.write(SETTINGS, "{}");
    let paths = home.paths();
    let mut archive = Archive::open(&paths).expect("opened");
    let places = places(&[Agent::Claude], Scope::User, None, &paths).expect("places");
    let plan = plan(Aim::Install, &places, PROGRAM, &paths, &archive);
    home.write(SETTINGS, "{\"new\": 1}");
    let error = format!("{:#}", plan.carry_out(Aim::Install, &mut archive).expect_err("refused"));
    assert!(error.contains("was changed by somebody else just now"), "{error}");
    assert_eq!(home.read(SETTINGS), "{\"new\": 1}");
}

#[test]
fn two_installations_at_once_come_to_one_result() {
    let home = Home::new();
    home.write(SETTINGS, "{\n  \"a\": 1\n}\n");
    let before = home.everything();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            // One of them wins, and the others find it done or say that the file changed.
            scope.spawn(|| drop(home.run(Aim::Install, Scope::User)));
        }
    });
    assert!(home.install().len() <= 1 + 2 * skills::SKILLS.len() + 5, "the rest, if any, in one go");
    let stop = &parsed(&home.read(SETTINGS))["hooks"]["Stop"];
    assert_eq!(stop.as_array().map(Vec::len), Some(1));
    home.uninstall();
    assert_eq!(home.everything(), before);
}

#[test]
fn only_events_that_an_enabled_guest_asks_for_are_registered() {
    let home = Home::new();
    let off = "[guests.permission-handler]\nenabled = false\n";
    home.write("home/.config/omc-host/config.toml", off);
    fs::set_permissions(home.path("home/.config/omc-host/config.toml"), fs::Permissions::from_mode(0o600))
        .expect("set");
    let events = |home: &Home| {
        let hooks = parsed(&home.read(SETTINGS))["hooks"].as_object().expect("hooks").clone();
        hooks.keys().cloned().collect::<BTreeSet<_>>()
    };
    home.install();
    let few = events(&home);
    assert!(few.contains("Stop") && !few.contains("PermissionRequest"), "{few:?}");
    // Switched on again, the events come back; switched off, they go.
    let config = home.path("home/.config/omc-host/config.toml");
    fs::remove_file(&config).expect("removed");
    home.install();
    assert!(events(&home).contains("PermissionRequest"));
    fs::write(&config, off).expect("written");
    home.install();
    assert_eq!(events(&home), few);
    for event in ["MessageDisplay", "FileChanged", "PreModelSwitch", "WorktreeCreate", "WorktreeRemove"] {
        assert!(!few.contains(event));
    }
}
