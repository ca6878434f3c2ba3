//! Which rules apply to a file, and how they are shown. Pure: paths and texts in, a text out.

pub mod front_matter;
pub mod place;

use omc_state::{inert, one_line, truncate_units, units};

use front_matter::FrontMatter;
use place::Found;

/// Longest part of one rule that is shown, in UTF-16 units: a page. The model can read the rest itself.
const MAX_RULE_UNITS: usize = 4_000;

/// Longest text of one event, in UTF-16 units: below the 10,000 that a guest may add.
pub const MAX_TOTAL_UNITS: usize = 9_000;

/// Longest name or pattern in a heading, in UTF-16 units.
const MAX_NAME_UNITS: usize = 200;

/// A rule that applies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// Its path, as it is shown and remembered.
    pub path: String,
    reason: String,
    /// Its text, without the front matter.
    pub body: String,
    /// Its text was longer than what was read of it.
    is_cut: bool,
}

impl Rule {
    /// The rule in a file's text, if it applies to one of the paths (relative to the root, with `/`).
    pub fn of(found: &Found, text: &str, is_cut: bool, paths: &[String]) -> Option<Self> {
        let (front, body) = FrontMatter::split(text);
        let reason = if found.always_applies {
            "copilot-instructions (always apply)".to_owned()
        } else if front.always_apply {
            "alwaysApply".to_owned()
        } else {
            let matches = |glob: &&String| paths.iter().any(|path| fast_glob::glob_match(glob.as_str(), path));
            format!("glob: {}", front.globs.iter().find(matches)?)
        };
        let body = body.trim().to_owned();
        (!body.is_empty()).then(|| Self { path: found.shown.clone(), reason, body, is_cut })
    }

    fn shown(&self) -> String {
        let heading = |text: &str| one_line(text, MAX_NAME_UNITS);
        let body = inert(&self.body);
        let is_long = units(&body) > MAX_RULE_UNITS;
        let mut text = format!(
            "[Rule: {}]\n[Match: {}]\n{}",
            heading(&self.path),
            heading(&self.reason),
            truncate_units(&body, MAX_RULE_UNITS)
        );
        if is_long || self.is_cut {
            text.push_str("\n[This rule is longer; read the file for the rest.]");
        }
        text
    }
}

/// As many of the rules as fit, in their order, and how many these are. The first is always shown; if some are left over, the
/// text says so.
pub fn show<'a>(rules: impl Iterator<Item = &'a Rule>) -> (usize, String) {
    const MORE: &str = "\n\n[More rules apply to this file; they come with the next call that concerns it.]";
    let mut all = String::new();
    let mut count = 0;
    for rule in rules {
        let text = rule.shown();
        if count > 0 && units(&all) + units(&text) + units(MORE) + 2 > MAX_TOTAL_UNITS {
            all.push_str(MORE);
            break;
        }
        if count > 0 {
            all.push_str("\n\n");
        }
        all.push_str(&text);
        count += 1;
    }
    (count, all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(always_applies: bool) -> Found {
        Found { read_from: "r.md".into(), shown: ".claude/rules/r.md".into(), is_users: false, always_applies }
    }

    fn applies(globs: &str, path: &str) -> bool {
        Rule::of(&found(false), &format!("---\nglobs: {globs}\n---\nbody"), false, &[path.to_owned()]).is_some()
    }

    #[test]
    fn globs_match_whole_paths_as_everywhere_else() {
        for (globs, path, matches) in [
            ("\"src/**/*.ts\"", "src/a.ts", true),
            ("\"src/**/*.ts\"", "src/x/y/a.ts", true),
            ("\"src/**/*.ts\"", "lib/a.ts", false),
            ("\"**/*.rs\"", "build.rs", true),
            ("\"**/*.rs\"", "a/b/c.rs", true),
            ("lib/*.ts", "lib/deep/a.ts", false),
            ("lib/*.ts", "lib/a.ts", true),
            ("*.ts", "src/a.ts", false),
            ("\"**\"", "a/b", true),
            ("\"src/*.{ts,tsx}\"", "src/a.tsx", true),
            ("\"src/*.{ts,tsx}\"", "src/a.js", false),
            ("[\"src/[ab].rs\"]", "src/b.rs", true),
            ("[\"src/[ab].rs\"]", "src/c.rs", false),
            ("\"src/c++/*.h\"", "src/c++/x.h", true),
            ("\"a.b\"", "axb", false),
            ("\"src/[\"", "src/[", false),
            ("\"(src\"", "src/a.ts", false),
            ("\"{a,{b,c}\"", "a", false),
            ("\"packages/**\"", "packages/api/src/a.ts", true),
        ] {
            assert_eq!(applies(globs, path), matches, "{globs} {path}");
        }
    }

    #[test]
    fn a_hostile_pattern_is_judged_in_no_time() {
        let started = std::time::Instant::now();
        for pattern in ["**/".repeat(60) + "x", "*a".repeat(100), "{a,".repeat(80), "[".repeat(200), "{a,b}".repeat(40)]
        {
            assert!(!applies(&format!("\"{pattern}\""), &"a/".repeat(100)), "{pattern}");
        }
        assert!(started.elapsed().as_secs() < 2);
    }

    #[test]
    fn without_a_reason_a_rule_does_not_apply() {
        for (text, applies) in [
            ("---\nalwaysApply: true\n---\nbody", true),
            ("---\nalwaysApply: true\n---\n \n", false),
            ("---\ndescription: x\n---\nbody", false),
            ("body", false),
            ("", false),
        ] {
            assert_eq!(Rule::of(&found(false), text, false, &["a.ts".to_owned()]).is_some(), applies, "{text:?}");
        }
        assert!(Rule::of(&found(true), "body", false, &[]).is_some(), "the one file that needs none");
    }

    #[test]
    fn what_is_shown_is_bounded_and_harmless() {
        let rule =
            |body: String, is_cut| Rule { path: "a\nb.md".into(), reason: "glob: *\u{1b}[31m".into(), body, is_cut };
        let long = rule("word ".repeat(9_000), false);
        let (count, text) = show([&long, &long, &long].into_iter());
        assert_eq!(count, 2);
        assert!(units(&text) <= MAX_TOTAL_UNITS && text.contains("read the file for the rest"));
        assert!(
            text.ends_with("[More rules apply to this file; they come with the next call that concerns it.]"),
            "{text}"
        );
        assert!(!show([&long, &long].into_iter()).1.contains("More rules"));
        let (_, text) = show(std::iter::once(&rule("x\u{202e}y\u{7}z".into(), true)));
        assert_eq!(
            text,
            "[Rule: a b.md]\n[Match: glob: * [31m]\nxyz\n[This rule is longer; read the file for the rest.]"
        );
        assert_eq!(show(std::iter::empty()), (0, String::new()));
    }
}
