//! Which files are asked about, and the words for it.

use std::fmt::Write as _;

use omc_state::Invocation;

/// Endings of files that hold code, unless the user lists others: the original's.
pub const DEFAULT_EXTENSIONS: &[&str] = &[".ts", ".tsx", ".js", ".jsx", ".py", ".go", ".rs"];

/// Most files that are named, unless the user set another number: the original's.
pub const DEFAULT_MAX_FILES: usize = 10;

/// Longest path that is named, in bytes; a longer one is nobody's file.
const MAX_PATH_BYTES: usize = 300;

/// The changed files that hold code and were not asked about.
pub fn to_simplify<'a>(changed: impl Iterator<Item = &'a str>, extensions: &[String], known: &[String]) -> Vec<String> {
    let is_code = |path: &str| {
        let Some((stem, ending)) = path.rsplit('/').next().and_then(|name| name.rsplit_once('.')) else { return false };
        !stem.is_empty() && extensions.iter().any(|wanted| wanted.trim_start_matches('.') == ending)
    };
    // A name with a line break could write lines of its own.
    let is_inert = |path: &str| path.len() <= MAX_PATH_BYTES && !path.chars().any(char::is_control);
    let wanted = |path: &&str| is_code(path) && is_inert(path) && !known.iter().any(|known| known == path);
    changed.filter(wanted).map(str::to_owned).collect()
}

/// Why the agent may not stop yet; absent if there is nothing to simplify.
pub fn refusal(files: &[String], max_files: usize, invocation: Invocation) -> Option<String> {
    if files.is_empty() {
        return None;
    }
    let mut text = String::from(
        "[CODE SIMPLIFIER] Before you stop, have the code that was changed simplified, without changing what it does:\n",
    );
    // Writing to a string cannot fail.
    for file in files.iter().take(max_files) {
        let _ = writeln!(text, "- {file}");
    }
    if let Some(more) = files.len().checked_sub(max_files).filter(|more| *more > 0) {
        let _ = writeln!(text, "(and {more} more)");
    }
    text.push_str(match invocation {
        Invocation::Slash => {
            "Start a subagent with the Task tool (subagent_type `code-simplifier` where there is one) and give it these paths, or \
             call the skill `omc:code-simplifier`."
        }
        Invocation::Dollar => "Give these paths to a subagent, or follow the skill `code-simplifier`.",
    });
    text.push_str(" Run the tests afterwards. You are asked once for each file.");
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(items: &[&str]) -> Vec<String> {
        items.iter().map(|&item| item.to_owned()).collect()
    }

    #[test]
    fn only_new_changes_to_code_are_asked_about() {
        let changed =
            ["src/a.ts", "src/b.md", "src/c.rs", "Makefile", "new/", "d.rs.orig", ".rs", "x/.py", "e\n.rs", "old.go"];
        let long = format!("{}.rs", "x".repeat(400));
        let files = |extensions: &[&str]| {
            let changed = changed.iter().copied().chain([long.as_str()]);
            to_simplify(changed, &list(extensions), &list(&["old.go"]))
        };
        assert_eq!(files(DEFAULT_EXTENSIONS), ["src/a.ts", "src/c.rs"]);
        assert_eq!(files(&["md"]), ["src/b.md"]);
        assert!(files(&[]).is_empty());
    }

    #[test]
    fn the_words_name_the_files_up_to_the_limit() {
        assert_eq!(refusal(&[], 10, Invocation::Slash), None);
        let text = refusal(&list(&["a.rs", "b.rs", "c.rs"]), 2, Invocation::Slash).expect("words");
        assert!(text.starts_with("[CODE SIMPLIFIER]") && text.contains("\n- a.rs\n- b.rs\n(and 1 more)\n"), "{text}");
        assert!(!refusal(&list(&["a.rs"]), 2, Invocation::Slash).expect("words").contains("more)"));
        let many = list(&vec!["x".repeat(300).as_str(); 100]);
        let text = refusal(&many, DEFAULT_MAX_FILES, Invocation::Slash).expect("words");
        assert!(text.encode_utf16().count() < 4_000, "the host's limit");
    }
}
