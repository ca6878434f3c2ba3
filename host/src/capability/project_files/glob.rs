//! Which paths the granted globs match, one name at a time: the same rules for a single path and for a walk.
//!
//! Nothing is compiled. A place on the way down is a set of positions in each glob, so that a walk only enters folders in which
//! something can still match, and a glob with many `**` costs no more than its length for each name.

use omc_artifact::{ReadRoot, ReadScope, SKIPPED_FOLDERS, part_matches};

/// Most globs of a root that count: each is tried on each name.
const MAX_GLOBS: usize = 64;

/// Names that are never given, whatever the glob: state and repositories have interfaces of their own, and credentials are nobody's.
const NEVER: [&str; 4] = [".git", ".omc", ".hg", ".credentials.json"];
/// The same outside of projects, where the name is that of an agent's credentials.
const NEVER_OUTSIDE: [&str; 1] = ["auth.json"];

/// Letters that make a part of a glob match more than itself.
const WILD: [char; 4] = ['*', '?', '[', '{'];

/// Matches any number of folders.
const ANY_FOLDERS: &str = "**";

/// The globs of one root.
pub(super) struct Globs<'a> {
    root: ReadRoot,
    /// Each glob's parts. At most 16, see [`ReadScope::parse`], so that a set of positions fits into 32 bits.
    globs: Vec<Vec<&'a str>>,
}

/// A place below the root: for each glob the positions at which it may go on, as bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place(Vec<u32>);

impl<'a> Globs<'a> {
    pub(super) fn new(root: ReadRoot, scopes: &'a [ReadScope]) -> Self {
        let globs = scopes.iter().filter(|scope| scope.root == root).take(MAX_GLOBS);
        Self { root, globs: globs.map(|scope| scope.glob.split('/').collect()).collect() }
    }

    /// The root itself.
    pub(super) fn start(&self) -> Place {
        Place(self.globs.iter().map(|parts| skip_any_folders(parts, 1)).collect())
    }

    /// The place of an entry in the folder at `place`.
    pub(super) fn enter(&self, place: &Place, name: &str) -> Place {
        if self.is_never_given(name) {
            return Place(vec![0; self.globs.len()]);
        }
        Place(self.globs.iter().zip(&place.0).map(|(parts, positions)| step(parts, *positions, name)).collect())
    }

    /// Whether a glob matches an entry in the folder at `place`: what a walk asks most, and without keeping anything.
    pub(super) fn match_in(&self, place: &Place, name: &str) -> bool {
        let ends = |(parts, positions): (&Vec<&str>, &u32)| step(parts, *positions, name) & (1 << parts.len()) != 0;
        self.globs.iter().zip(&place.0).any(ends) && !self.is_never_given(name)
    }

    /// Whether a glob matches the entry at a place.
    pub(super) fn matches(&self, place: &Place) -> bool {
        self.globs.iter().zip(&place.0).any(|(parts, positions)| positions & (1 << parts.len()) != 0)
    }

    /// Whether a glob can match something below the folder at a place.
    pub(super) fn lead_on(&self, place: &Place) -> bool {
        self.globs.iter().zip(&place.0).any(|(parts, positions)| positions & !(1 << parts.len()) != 0)
    }

    /// The only names that can match in the folder at a place, if the globs name them.
    pub(super) fn only_names(&self, place: &Place) -> Option<Vec<&'a str>> {
        let mut names = Vec::new();
        for (parts, positions) in self.globs.iter().zip(&place.0) {
            let here = parts.iter().enumerate().filter(|(at, _)| positions & (1 << at) != 0);
            for (_, part) in here {
                if part.contains(WILD) {
                    return None;
                }
                names.push(*part);
            }
        }
        names.sort_unstable();
        names.dedup();
        Some(names)
    }

    fn is_never_given(&self, name: &str) -> bool {
        // File systems may not tell upper from lower case.
        let is = |never: &&str| name.eq_ignore_ascii_case(never);
        NEVER.iter().any(is)
            || self.root != ReadRoot::Project && NEVER_OUTSIDE.iter().any(is)
            || name.is_empty()
            || name.chars().any(char::is_control)
    }
}

/// From the positions in a glob at a folder to those at an entry in it.
fn step(parts: &[&str], positions: u32, name: &str) -> u32 {
    let mut next = 0;
    for (at, part) in parts.iter().enumerate().filter(|(at, _)| positions & (1 << at) != 0) {
        if *part == ANY_FOLDERS {
            next |= u32::from(is_open(name)) << at;
        } else if part_matches(part, name) {
            next |= 1 << (at + 1);
        }
    }
    skip_any_folders(parts, next)
}

/// `**` also stands for no folder at all, so a position before it is one behind it, too.
fn skip_any_folders(parts: &[&str], mut positions: u32) -> u32 {
    for (at, part) in parts.iter().enumerate() {
        if *part == ANY_FOLDERS && positions & (1 << at) != 0 {
            positions |= 1 << (at + 1);
        }
    }
    positions
}

/// Whether `**` goes through a folder of this name, or ends in a file of it.
fn is_open(name: &str) -> bool {
    !name.starts_with('.') && !SKIPPED_FOLDERS.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scopes(globs: &[&str]) -> Vec<ReadScope> {
        globs.iter().map(|glob| ReadScope::parse(glob).expect("a scope")).collect()
    }

    fn is_matched(globs: &[&str], path: &str) -> bool {
        let scopes = scopes(globs);
        let globs = Globs::new(scopes[0].root, &scopes);
        let (folders, name) = path.rsplit_once('/').map_or((None, path), |(folders, name)| (Some(folders), name));
        let folder = folders.into_iter().flat_map(|folders| folders.split('/'));
        let folder = folder.fold(globs.start(), |place, name| globs.enter(&place, name));
        let is_matched = globs.matches(&globs.enter(&folder, name));
        assert_eq!(globs.match_in(&folder, name), is_matched);
        is_matched
    }

    #[test]
    fn globs_match_whole_names() {
        for (glob, path, expected) in [
            ("project:a.md", "a.md", true),
            ("project:a.md", "b/a.md", false),
            ("project:*.md", "a.md", true),
            ("project:*.md", "a/b.md", false),
            ("project:*", "a/b.md", false),
            ("project:?.md", "ab.md", false),
            ("project:[ab].md", "b.md", true),
            ("project:*.{md,txt}", "a.txt", true),
            ("project:**", "a/b/c", true),
            ("project:**/a.md", "a.md", true),
            ("project:**/a.md", "x/y/a.md", true),
            ("project:**/x/**/a.md", "1/x/2/3/a.md", true),
            ("project:**/x/**/a.md", "1/2/3/a.md", false),
            ("project:a/**", "a/b", true),
            ("project:a/**", "ab/b", false),
            ("project:.claude/rules/**/*.md", ".claude/rules/x/y.md", true),
            ("project:é*/**", "été/x", true),
        ] {
            assert_eq!(is_matched(&[glob], path), expected, "{glob} {path}");
        }
    }

    #[test]
    fn wildcards_match_no_hidden_names_and_no_heaps() {
        for path in [".env", ".npmrc", "a/.ssh/id", ".claude/x", "node_modules/a/b.md", "a/target/b.md"] {
            assert!(!is_matched(&["project:**", "project:*", "project:*/*", "project:**/*"], path), "{path}");
        }
        assert!(is_matched(&["project:node_modules/a.md"], "node_modules/a.md"));
        assert!(is_matched(&["project:.npm*"], ".npmrc"));
        assert!(!is_matched(&["project:{.npmrc,a}"], ".npmrc"));
    }

    #[test]
    fn secrets_are_given_only_under_their_whole_name() {
        for glob in ["project:.e*", "project:.env*", "project:.[e]nv", "project:.?nv.local", "project:.*"] {
            assert!(!is_matched(&[glob], ".env") && !is_matched(&[glob], ".env.local"), "{glob}");
        }
        assert!(!is_matched(&["project:.E*"], ".ENV"));
        assert!(is_matched(&["project:.env.example"], ".env.example"));
    }

    #[test]
    fn repositories_state_and_credentials_are_never_given() {
        for (glob, path) in [
            ("project:.git/config", ".git/config"),
            ("project:.GIT/**", ".GIT/config"),
            ("project:**/.git/**", "a/.git/x"),
            ("project:.omc/**", ".omc/state/x"),
            ("home:.omc/**", ".omc/x"),
            ("agent:.credentials.json", ".credentials.json"),
            ("home:.claude/.credentials.json", ".claude/.credentials.json"),
            ("agent:auth.json", "auth.json"),
            ("home:.codex/*.json", ".codex/auth.json"),
            ("project:*", "a\u{1b}[2J"),
        ] {
            assert!(!is_matched(&[glob], path), "{glob} {path}");
        }
        assert!(is_matched(&["project:auth.json"], "auth.json"));
    }

    #[test]
    fn a_walk_goes_only_where_something_can_match() {
        let scopes = scopes(&["project:.claude/rules/**", "project:docs/*.md", "project:a"]);
        let globs = Globs::new(ReadRoot::Project, &scopes);
        let at = |path: &str| path.split('/').fold(globs.start(), |place, name| globs.enter(&place, name));
        for (path, leads) in [
            (".claude", true),
            (".claude/rules", true),
            (".claude/rules/x/y", true),
            (".claude/skills", false),
            ("docs", true),
            ("docs/x", false),
            ("a", false),
            ("src", false),
        ] {
            assert_eq!(globs.lead_on(&at(path)), leads, "{path}");
        }
        assert_eq!(globs.only_names(&globs.start()), Some(vec![".claude", "a", "docs"]));
        assert_eq!(globs.only_names(&at(".claude")), Some(vec!["rules"]));
        assert_eq!(globs.only_names(&at("docs")), None);
    }

    #[test]
    fn many_wildcards_cost_no_more_than_their_number() {
        let glob = format!("project:{}x", "**/".repeat(15));
        let deep = vec!["a"; 32].join("/");
        assert!(!is_matched(&[&glob], &deep));
    }
}
