//! Whether new text introduces an ad-hoc fallback or workaround. A question to the model, never a refusal.
//!
//! Words, not patterns: after quotations and code spans are gone, a segment is looked at word by word.

/// What is asked then.
pub const WARNING: &str = "[SLOP WARNING] This introduces a fallback or workaround. Avoid ad-hoc fallback layers, shims and \
    environment-specific patches unless they are justified: fix the cause. If it is a question of architecture, consult the \
    architect agent; if it depends on the environment, confirm that with the user.";

/// Most of a text that is looked at, in bytes.
const MAX_TEXT_BYTES: usize = 256 * 1024;

const CREATING: [&str; 11] =
    ["add", "build", "create", "implement", "introduce", "make", "patch", "use", "using", "write", "adding"];
const ARTICLES: [&str; 3] = ["a", "an", "the"];
const PARTS: [&str; 8] = ["layer", "path", "handler", "shim", "patch", "implementation", "mechanism", "mode"];
const OBJECTS: [&str; 6] = ["it", "this", "that", "the", "a", "an"];
/// What a fallback may be of: an ordinary default.
const DEFAULTS: [&str; 8] = ["value", "variable", "parameter", "argument", "option", "setting", "config", "default"];
/// What a workaround may be for: something that is named.
const NAMED: [&str; 9] = ["commit", "change", "issue", "bug", "regression", "version", "release", "pr", "pull"];
const KNOWN_CAUSES: [&str; 9] =
    ["memory", "sql", "sqlite", "mysql", "postgres", "typescript", "node", "browser", "runtime"];
const SOURCES: [&str; 7] = ["cjs", "js", "mjs", "py", "sh", "ts", "tsx"];

/// Folders and endings of texts about code, where such words belong.
const DOC_FOLDERS: [&str; 13] = [
    "doc",
    "docs",
    "documentation",
    "guide",
    "guides",
    "instruction",
    "instructions",
    "prompt",
    "prompts",
    ".omc",
    ".omt",
    ".omx",
    "pre-tool-enforcer",
];
const DOC_ENDINGS: [&str; 4] = ["md", "mdx", "txt", "rst"];

/// Whether a file is one about code.
pub fn is_documentation(path: &str) -> bool {
    let path = path.to_ascii_lowercase();
    let ending = path.rsplit_once('.').map(|(_, ending)| ending);
    ending.is_some_and(|ending| DOC_ENDINGS.contains(&ending))
        || path.split(['/', '\\']).any(|part| DOC_FOLDERS.contains(&part))
}

/// Whether a text that is about to be written or run introduces one.
pub fn is_slop(text: &str) -> bool {
    let text = &text[..text.floor_char_boundary(MAX_TEXT_BYTES)];
    // One look for most texts.
    let mentions =
        text.as_bytes().windows(4).any(|four| four.eq_ignore_ascii_case(b"fall") || four.eq_ignore_ascii_case(b"work"));
    mentions && segments(&without_quotes(text)).any(|segment| introduces(&words(segment)))
}

fn segments(text: &str) -> impl Iterator<Item = &str> {
    text.split(['\n', '!', '?', ';'])
}

/// The text without fenced and inline code and without what stands in quotation marks on one line.
fn without_quotes(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut fenced = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
            continue;
        }
        if fenced {
            continue;
        }
        let mut rest = line;
        while let Some(at) = rest.find(['`', '"', '\'']) {
            let mark = rest[at..].chars().next().unwrap_or_default();
            let inside = &rest[at + 1..];
            // An apostrophe in a word opens nothing.
            let in_word = mark == '\'' && rest[..at].ends_with(|c: char| c.is_alphanumeric());
            if let Some(end) = inside.find(mark).filter(|_| !in_word) {
                kept.push_str(&rest[..at]);
                kept.push(' ');
                rest = &inside[end + 1..];
            } else {
                kept.push_str(&rest[..=at]);
                rest = inside;
            }
        }
        kept.push_str(rest);
        kept.push('\n');
    }
    kept
}

/// Lower-case words; `fall back` and `fallback` are one, `work around` is kept apart from `workaround`.
fn words(segment: &str) -> Vec<String> {
    let is_part = |c: char| c.is_alphanumeric() || "-_.#/".contains(c);
    let split = segment.split(|c: char| !is_part(c));
    let mut words: Vec<String> = Vec::new();
    for word in split.map(|word| word.trim_matches(['-', '.', '/']).to_lowercase()).filter(|word| !word.is_empty()) {
        let joined = match (words.last().map(String::as_str), word.as_str()) {
            (Some("fall"), "back") => "fallback",
            (Some("work"), "around") => "work around",
            _ => {
                words.push(word);
                continue;
            }
        };
        words.pop();
        words.push(joined.to_owned());
    }
    words
}

fn introduces(words: &[String]) -> bool {
    let word = |at: Option<usize>| at.and_then(|at| words.get(at)).map_or("", String::as_str);
    (0..words.len()).any(|at| {
        let (this, next) = (word(Some(at)), word(Some(at + 1)));
        let (before, before_that) = (word(at.checked_sub(1)), word(at.checked_sub(2)));
        let is_created = CREATING.contains(&before) || ARTICLES.contains(&before) && CREATING.contains(&before_that);
        match this {
            "fallback" => {
                let benign = before == "fail-soft"
                    || DEFAULTS.contains(&next)
                    || next == "to"
                        && (word(Some(at + 2)) == "default"
                            || word(Some(at + 3)) == "default" && word(Some(at + 2)) == "the");
                !benign && (is_created || PARTS.contains(&next) || ["to", "on", "onto"].contains(&next))
            }
            "workaround" => {
                let cause = word(Some(at + 2));
                let is_named = next == "for" && (NAMED.contains(&cause) || cause.starts_with('#') || is_commit(cause));
                let benign = is_named || KNOWN_CAUSES.contains(&before);
                !benign && (is_created || PARTS.contains(&next) || OBJECTS.contains(&next))
            }
            "work around" => !next.is_empty(),
            file => {
                let named = file.contains("fallback") || file.contains("workaround");
                named && file.rsplit_once('.').is_some_and(|(_, ending)| SOURCES.contains(&ending))
            }
        }
    })
}

fn is_commit(word: &str) -> bool {
    (7..=40).contains(&word.len()) && word.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ad_hoc_fallback_is_questioned() {
        for text in [
            "// Add a fallback to the old API",
            "Add the fallback",
            "introduce workaround here",
            "we fall back to polling",
            "Fallback on the cache",
            "a fallback layer around it",
            "workaround it",
            "work around the flaky test runner",
            "node fallback-shim.js",
            "import x from ./net/workaround_v2.ts",
            "it's late, don't: add a fallback to x",
            "ok; use a workaround",
        ] {
            assert!(is_slop(text), "{text}");
        }
    }

    #[test]
    fn defaults_quotations_and_named_causes_are_not() {
        for text in [
            "",
            "network work",
            "// fallback to default config",
            "fallback to the default",
            "use the fallback value",
            "a fail-soft fallback result",
            "log('Add a fallback to the old API')",
            "log(\"add a fallback\")",
            "see `add a fallback to x`",
            "```\nadd a fallback to x\n```",
            "add workaround for issue 12",
            "use a workaround for #12",
            "add a workaround for 1a2b3c4d",
            "add a sqlite workaround",
            "fallbacks are everywhere",
            "fallback.md",
            "the fallback",
            "work around",
        ] {
            assert!(!is_slop(text), "{text}");
        }
    }

    #[test]
    fn texts_about_code_are_exempt_by_their_path() {
        for (path, documentation) in [
            ("/p/docs/a.ts", true),
            ("/p/README.md", true),
            ("/p/NOTES.TXT", true),
            ("/p/.omc/plans/x", true),
            ("C:\\p\\prompts\\a.py", true),
            ("/p/src/a.ts", false),
            ("/p/docs.ts", false),
            ("/p/src/markdown.rs", false),
        ] {
            assert_eq!(is_documentation(path), documentation, "{path}");
        }
    }

    #[test]
    fn a_long_text_is_looked_at_in_part_and_never_cut_in_a_letter() {
        let long = format!("{}add a fallback to x", "é".repeat(MAX_TEXT_BYTES));
        assert!(!is_slop(&long));
        assert!(is_slop(&format!("add a fallback to x\n{long}")));
    }
}
