//! Where rules lie: beside the file at work, in every folder above it up to the project's root, and in the user's own folder.

/// Folders of rules, and how the files in them end.
const FOLDERS: [(&str, &[&str]); 3] = [
    (".github/instructions", &[".instructions.md"]),
    (".cursor/rules", &[".md", ".mdc"]),
    (".claude/rules", &[".md", ".mdc"]),
];

/// The one file that always applies.
const COPILOT: &str = ".github/copilot-instructions.md";

/// The folder of rules in the agent's own.
pub const USERS: &str = "rules";

/// How many folders above a file are looked at.
const MAX_LEVELS: usize = 24;

/// A rule file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Its path below the project's root, or below the agent's folder.
    pub read_from: String,
    /// Its path as it is shown.
    pub shown: String,
    /// It is the user's own.
    pub is_users: bool,
    /// It needs no reason to apply.
    pub always_applies: bool,
}

/// A file of the project that may hold a rule that always applies.
pub fn copilot() -> Found {
    Found { read_from: COPILOT.to_owned(), shown: COPILOT.to_owned(), is_users: false, always_applies: true }
}

/// The folders to search for a file, the nearest first; each below the root, with the root's own last.
pub fn folders(path: &str) -> Vec<String> {
    let mut above = path;
    let mut all = Vec::new();
    for _ in 0..MAX_LEVELS {
        let Some((folder, _)) = above.rsplit_once('/') else { break };
        all.extend(FOLDERS.iter().map(|(rules, _)| format!("{folder}/{rules}")));
        above = folder;
    }
    all.extend(FOLDERS.iter().map(|(rules, _)| (*rules).to_owned()));
    all
}

/// The rule files among those that lie in a folder.
pub fn in_folder(folder: &str, files: Vec<String>) -> impl Iterator<Item = Found> + use<> {
    let endings =
        FOLDERS.iter().find(|(rules, _)| folder.ends_with(rules)).map_or(&[".md", ".mdc"][..], |(_, endings)| endings);
    let is_users = folder == USERS;
    let mut files: Vec<_> =
        files.into_iter().filter(|file| endings.iter().any(|ending| file.ends_with(ending))).collect();
    files.sort_unstable();
    files.into_iter().map(move |file| Found {
        shown: if is_users { format!("{file} (the user's own)") } else { file.clone() },
        read_from: file,
        is_users,
        always_applies: false,
    })
}

/// A path below the root: absolute ones have to lie in it, others begin at the folder worked in. By the text alone.
pub fn below_root(path: &str, cwd: &str, root: &str) -> Option<String> {
    let absolute = if path.starts_with('/') { path.to_owned() } else { format!("{cwd}/{path}") };
    let below = absolute.strip_prefix(root.trim_end_matches('/'))?.strip_prefix('/')?;
    let mut parts: Vec<&str> = Vec::new();
    for part in below.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    (!parts.is_empty()).then(|| parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_searched_from_the_file_up_to_the_root() {
        assert_eq!(
            folders("src/deep/a.ts").iter().filter(|folder| folder.ends_with(".claude/rules")).collect::<Vec<_>>(),
            ["src/deep/.claude/rules", "src/.claude/rules", ".claude/rules"]
        );
        assert_eq!(folders("a.ts"), [".github/instructions", ".cursor/rules", ".claude/rules"]);
        assert!(folders(&"a/".repeat(5_000)).len() <= 3 * (MAX_LEVELS + 1));
    }

    #[test]
    fn only_files_with_the_right_ending_are_rules() {
        let names = |folder: &str, files: &[&str]| -> Vec<String> {
            let files = files.iter().map(|file| format!("{folder}/{file}")).collect();
            in_folder(folder, files).map(|found| found.read_from[folder.len() + 1..].to_owned()).collect()
        };
        let files = ["b.md", "a.mdc", "c.txt", "g.instructions.md"];
        assert_eq!(names(".claude/rules", &files), ["a.mdc", "b.md", "g.instructions.md"]);
        assert_eq!(names("src/.cursor/rules", &files), ["a.mdc", "b.md", "g.instructions.md"]);
        assert_eq!(names(".github/instructions", &files), ["g.instructions.md"]);
        assert_eq!(names(USERS, &files), ["a.mdc", "b.md", "g.instructions.md"]);
    }

    #[test]
    fn only_paths_inside_the_root_have_a_place() {
        for (path, below) in [
            ("/p/src/a.ts", Some("src/a.ts")),
            ("src/a.ts", Some("sub/src/a.ts")),
            ("../a.ts", Some("a.ts")),
            ("../../x", None),
            ("/p/../x", None),
            ("/pp/a.ts", None),
            ("/p", None),
            ("/p/", None),
            ("", Some("sub")),
            ("/p//src/./a.ts", Some("src/a.ts")),
        ] {
            assert_eq!(below_root(path, "/p/sub", "/p").as_deref(), below, "{path}");
        }
    }
}
