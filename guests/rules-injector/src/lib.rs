//! Shows the model the rule files that apply to the file it has just read or changed: of Claude, Cursor and GitHub, nearest first.
//!
//! A rule is shown once in a session, and one text once, wherever it lies. What does not fit is left for the next event. Rules are
//! texts of the repository: they are bounded, and named by where they come from.

pub mod logic;

use std::time::SystemTime;

use omc_bare as _;
use omc_guest::project_files::{self, Root};
use omc_guest::{Decision, Effects, Error, Event, EventKind, Guest, log, state_lock};
use omc_state::{SessionId, Store};

use logic::place::{self, Found, USERS};
use logic::{Rule, show};

/// Tools after which rules are shown, in any case of letters. Searches look at many files and are about none.
const TOOLS: [&str; 8] =
    ["read", "write", "edit", "multiedit", "notebookedit", "apply_patch", "read_file", "view_image"];

/// Most files of one call whose rules are looked for; a patch may name more.
const MAX_PATHS: usize = 16;

/// Most rule files of one folder that are looked at.
const MAX_FILES: u32 = 64;

/// How much of a rule file is read, in bytes: more than is shown of it.
const RULE_BYTES: u32 = 32 * 1024;

/// The guest.
#[derive(Debug)]
pub struct RulesInjector;

omc_guest::export!(RulesInjector, {
    "description": "Shows rule files that apply to the file at work",
    "subscriptions": [{"event": "post-tool-use", "order": 300, "when": [
        "near:.claude/rules", "near:.cursor/rules", "near:.github/instructions", "read:project:.github/copilot-instructions.md",
        "read:agent:rules"
    ]}],
    "requests": [
        {"capability": "read", "scope": [
            "project:**/.claude/rules/**/*.md", "project:**/.claude/rules/**/*.mdc", "project:**/.cursor/rules/**/*.md",
            "project:**/.cursor/rules/**/*.mdc", "project:**/.github/instructions/**/*.instructions.md",
            "project:.github/copilot-instructions.md", "agent:rules/**/*.md", "agent:rules/**/*.mdc"
        ], "reason": "reads the project's and the user's rule files"},
        {"capability": "omc", "scope": ["rw:/omc/state"], "reason": "remembers which rules the session has been shown"}
    ]
});

impl Guest for RulesInjector {
    fn handle(event: &Event<'_>, effects: &mut Effects<'_>) -> Result<Decision, Error> {
        let is_at_work =
            event.tool_name().is_some_and(|name| TOOLS.iter().any(|tool| tool.eq_ignore_ascii_case(&name)));
        if event.kind() != EventKind::PostToolUse || !is_at_work {
            return Ok(Decision::Pass);
        }
        // Without a session nobody could remember what was shown.
        let Some(session) = event.session_id().as_deref().and_then(SessionId::parse) else { return Ok(Decision::Pass) };
        let paths = paths(event);
        if paths.is_empty() {
            return Ok(Decision::Pass);
        }
        let store = Store::new(&omc_guest::omc_dir());
        let known = store.shown_rules(&session);
        let rules: Vec<Rule> = rule_files(&paths)
            .filter(|found| !known.contains(&found.shown))
            .filter_map(|found| read(&found, &paths))
            .collect();
        if rules.is_empty() {
            return Ok(Decision::Pass);
        }
        let named: Vec<_> = rules.iter().map(|rule| (rule.path.clone(), rule.body.clone())).collect();
        let now = SystemTime::now().into();
        let text = store
            .claim_rules(&state_lock::acquire, &session, &named, now, |fresh| show(fresh.iter().map(|&at| &rules[at])));
        match text {
            Ok(text) if !text.is_empty() => effects.add_context(&text)?,
            Ok(_) => {}
            Err(error) => log::warn(&format!("no rule is shown, because it would be shown again: {}", error.chain())),
        }
        Ok(Decision::Pass)
    }
}

/// The files that the call is about, below the project's root.
fn paths(event: &Event<'_>) -> Vec<String> {
    let (Some(root), cwd) = (event.project_root(), event.cwd().unwrap_or_default()) else { return Vec::new() };
    let mut named: Vec<String> = event.tool_paths().unwrap_or_default().into_iter().map(|named| named.path).collect();
    if named.is_empty() {
        // Older versions call the member `path`, and other spellings of a tool's name are not in the host's tables.
        let path = ["/tool_input/file_path", "/tool_input/path"].iter().find_map(|pointer| event.text(pointer));
        // Over a link the folder worked in has two names, and a path as it is written begins with the one in the payload.
        let written = event.text("/cwd").unwrap_or_default();
        let below = |path: &str| Some(path.strip_prefix(&written)?.strip_prefix('/')?.to_owned());
        named.extend(path.map(|path| below(&path).unwrap_or(path)));
    }
    let mut paths: Vec<String> = Vec::new();
    for path in named.iter().filter_map(|path| place::below_root(path, &cwd, &root)) {
        if paths.len() < MAX_PATHS && !paths.contains(&path) {
            paths.push(path);
        }
    }
    paths
}

/// All rule files that may apply: the nearest first, the user's own last.
fn rule_files(paths: &[String]) -> impl Iterator<Item = Found> {
    let mut folders: Vec<String> = paths.iter().flat_map(|path| place::folders(path)).collect();
    // The deepest folder first; of those at the same depth, in the order of their kinds.
    folders.sort_by_key(|folder| std::cmp::Reverse(folder.matches('/').count()));
    let mut seen = Vec::new();
    folders.retain(|folder| {
        !seen.contains(folder) && {
            seen.push(folder.clone());
            true
        }
    });
    let in_project = folders.into_iter().flat_map(|folder| {
        let files =
            project_files::find(Root::Project, &folder, MAX_FILES).map_or_else(|_| Vec::new(), |found| found.paths);
        place::in_folder(&folder, files)
    });
    let users = std::iter::once_with(|| project_files::find(Root::Agent, USERS, MAX_FILES))
        .flat_map(|found| place::in_folder(USERS, found.map_or_else(|_| Vec::new(), |found| found.paths)));
    in_project.chain(std::iter::once(place::copilot())).chain(users)
}

/// The rule in a file, if it applies.
fn read(found: &Found, paths: &[String]) -> Option<Rule> {
    let root = if found.is_users { Root::Agent } else { Root::Project };
    let text = project_files::read_start(root, &found.read_from, RULE_BYTES).ok()?;
    let is_cut = text.len() + 4 > RULE_BYTES as usize;
    Rule::of(found, &text, is_cut, paths)
}

#[cfg(test)]
mod tests {
    use super::*;
    use omc_guest::testing::World;
    use serde_json::{Value, json};
    use tempfile::TempDir;

    const ALWAYS: &str = "---\nalwaysApply: true\n---\n";

    fn world(omc: &TempDir, tool: &str, input: &Value, files: &[(&str, &str)]) -> World {
        let payload =
            json!({"session_id": "s1", "cwd": "/p", "tool_name": tool, "tool_input": input, "tool_response": "x"});
        let mut world = World::new("post-tool-use", payload).with_omc_dir(omc.path());
        world.project_root = Some("/p".to_owned());
        for (path, text) in files {
            let (root, path) = path.strip_prefix("~/").map_or((Root::Project, *path), |path| (Root::Agent, path));
            world = world.with_file(root, path, text);
        }
        world
    }

    fn shown(world: &World) -> String {
        let outcome = world.call::<RulesInjector>();
        assert_eq!(outcome.decision, Ok(Decision::Pass));
        outcome.context.join("\n")
    }

    #[test]
    fn rules_of_all_places_are_shown_the_nearest_first() {
        let omc = tempfile::tempdir().expect("a folder");
        let rule = |name: &str| format!("{ALWAYS}RULE-{name}\n");
        let (project, near, far, users) = (rule("PROJECT"), rule("NEAR"), rule("FAR"), rule("USER"));
        let files = [
            (".claude/rules/p.md", project.as_str()),
            ("src/.claude/rules/near.md", &near),
            ("lib/.claude/rules/far.md", &far),
            ("~/rules/u.md", &users),
            (".cursor/rules/c.mdc", "---\nglobs: \"*.md, src/*.ts\"\n---\nRULE-CURSOR\n"),
            (".github/instructions/g.instructions.md", "---\napplyTo: \"**\"\n---\nRULE-GITHUB\n"),
            (".github/instructions/other.md", "---\napplyTo: \"**\"\n---\nRULE-WRONG\n"),
            (".github/copilot-instructions.md", "RULE-COPILOT\n"),
        ];
        let text = shown(&world(&omc, "Read", &json!({"file_path": "/p/src/a.ts"}), &files));
        let order: Vec<_> = ["NEAR", "GITHUB", "CURSOR", "PROJECT", "COPILOT", "USER"]
            .iter()
            .map(|name| text.find(&format!("RULE-{name}")).unwrap_or_else(|| panic!("{name} in {text}")))
            .collect();
        assert!(order.is_sorted(), "{text}");
        assert!(!text.contains("RULE-FAR") && !text.contains("RULE-WRONG"));
        assert!(text.contains("[Rule: src/.claude/rules/near.md]\n[Match: alwaysApply]\nRULE-NEAR"));
    }

    #[test]
    fn a_rule_and_a_text_are_shown_once_in_a_session() {
        let omc = tempfile::tempdir().expect("a folder");
        let rule = format!("{ALWAYS}RULE-A");
        let files = [(".claude/rules/a.md", rule.as_str()), ("src/.claude/rules/copy.md", &rule)];
        let read = world(&omc, "Read", &json!({"file_path": "/p/src/a.ts"}), &files);
        assert_eq!(shown(&read).matches("RULE-A").count(), 1);
        assert_eq!(shown(&read), "");
        assert_eq!(shown(&world(&omc, "Edit", &json!({"file_path": "/p/b.ts"}), &files)), "");
    }

    #[test]
    fn only_work_on_files_of_the_project_shows_rules() {
        let rule = format!("{ALWAYS}RULE-A");
        let files = [(".claude/rules/a.md", rule.as_str())];
        for (tool, input, shows) in [
            ("Read", json!({"file_path": "/p/gone.ts"}), true),
            ("READ", json!({"file_path": "/p/a.ts"}), true),
            ("MultiEdit", json!({"file_path": "/p/a.ts"}), true),
            ("Read", json!({"file_path": "src/a.ts"}), true),
            ("Read", json!({"path": "/p/a.ts"}), true),
            ("apply_patch", json!({"command": "*** Begin Patch\n*** Add File: x.ts\n+x\n*** End Patch"}), true),
            ("Grep", json!({"pattern": "x", "path": "/p/src"}), false),
            ("Glob", json!({"pattern": "**/*.ts"}), false),
            ("Bash", json!({"command": "cat a.ts"}), false),
            ("Read", json!({}), false),
            ("Read", json!({"file_path": 7}), false),
            ("Read", json!({"file_path": "/elsewhere/a.ts"}), false),
            ("Read", json!({"file_path": "../a.ts"}), false),
        ] {
            let omc = tempfile::tempdir().expect("a folder");
            assert_eq!(!shown(&world(&omc, tool, &input, &files)).is_empty(), shows, "{tool} {input}");
        }
    }

    #[test]
    fn without_a_session_or_a_lock_nothing_is_shown() {
        let omc = tempfile::tempdir().expect("a folder");
        let rule = format!("{ALWAYS}RULE-A");
        let files = [(".claude/rules/a.md", rule.as_str())];
        let mut busy = world(&omc, "Read", &json!({"file_path": "/p/a.ts"}), &files);
        busy.locks_are_free = false;
        assert_eq!(shown(&busy), "");
        let payload =
            json!({"session_id": "../../evil", "cwd": "/p", "tool_name": "Read", "tool_input": {"file_path": "/p/a"}});
        let mut evil = World::new("post-tool-use", payload).with_file(Root::Project, ".claude/rules/a.md", &rule);
        evil.project_root = Some("/p".to_owned());
        assert_eq!(shown(&evil), "");
    }

    #[test]
    fn what_does_not_fit_comes_with_the_next_event() {
        let omc = tempfile::tempdir().expect("a folder");
        let rules: Vec<_> = (0..4).map(|n| format!("{ALWAYS}RULE-{n} {}", "word ".repeat(5_000))).collect();
        let names: Vec<_> = (0..4).map(|n| format!(".claude/rules/{n}.md")).collect();
        let files: Vec<_> = names.iter().map(String::as_str).zip(rules.iter().map(String::as_str)).collect();
        let read = world(&omc, "Read", &json!({"file_path": "/p/a.ts"}), &files);
        let (first, second, third) = (shown(&read), shown(&read), shown(&read));
        assert!(
            first.contains("RULE-0")
                && first.contains("RULE-1")
                && first.encode_utf16().count() <= logic::MAX_TOTAL_UNITS
        );
        assert!(second.contains("RULE-2") && second.contains("RULE-3"));
        assert_eq!(third, "");
    }
}
