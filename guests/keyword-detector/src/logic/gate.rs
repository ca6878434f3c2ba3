//! The ralplan gate: a short request for work that names nothing concrete is planned first.
//!
//! "ralph make it nicer" would send the agent into a loop without an end to reach. The gate looks for one *signal* of something
//! concrete in the request as the user wrote it, code included, and counts its words if there is none.

use super::{
    keywords::Keyword,
    text::{is_cjk, is_space, is_word_byte},
    work,
};

/// How much of a request is looked at, in bytes: a longer one has words enough, or is no text of words.
const LOOKED_AT_BYTES: usize = 16 * 1024;

/// Shortest fenced block that is a signal, in bytes.
const MIN_FENCE_BYTES: usize = 20;

/// Extensions of file names.
const EXTENSIONS: &[&str] = &[
    "ts", "js", "mjs", "cjs", "py", "go", "rs", "java", "kt", "tsx", "jsx", "vue", "svelte", "rb", "php", "swift", "c",
    "cc", "cpp", "h", "hpp", "cs", "css", "scss", "html", "json", "jsonc", "yaml", "yml", "toml", "md", "sql", "sh",
    "proto", "lock", "txt", "xml", "ini", "env", "wit", "wasm", "lua", "ex", "exs", "dart", "scala", "zig",
];

/// Directories of source trees: with a slash and a name they are a path.
const DIRECTORIES: &[&str] = &[
    "src",
    "lib",
    "test",
    "tests",
    "spec",
    "app",
    "apps",
    "pages",
    "components",
    "hooks",
    "utils",
    "services",
    "api",
    "dist",
    "build",
    "scripts",
    "docs",
    "packages",
    "crates",
    "pkg",
    "cmd",
    "internal",
    "server",
    "client",
    "config",
    "public",
    "host",
    "guests",
    ".github",
    ".claude",
];

/// Words of code that a name follows.
const DECLARATIONS: &[&str] = &[
    "function",
    "class",
    "method",
    "interface",
    "type",
    "const",
    "let",
    "var",
    "def",
    "fn",
    "struct",
    "enum",
    "trait",
    "module",
    "endpoint",
    "table",
    "column",
];

/// Words that are no name after a declaration: "let me", "type of".
const NO_NAMES: &[&str] = &[
    "me",
    "us",
    "it",
    "the",
    "a",
    "an",
    "of",
    "to",
    "that",
    "this",
    "is",
    "and",
    "for",
    "in",
    "on",
    "with",
    "my",
    "our",
    "all",
    "every",
    "by",
    "so",
    "or",
    "be",
    "them",
    "him",
    "her",
    "names",
    "name",
    "everything",
    "until",
    "go",
    "know",
];

/// Phrases that say what shall be reached, what went wrong, or how it is checked.
const PHRASES: &[&str] = &[
    "acceptance criteria",
    "test spec",
    "test plan",
    "test case",
    "should return",
    "should throw",
    "should render",
    "should display",
    "should create",
    "should delete",
    "should update",
    "stack trace",
    "stacktrace",
    "traceback",
    "exception",
    "error:",
    "pull request",
    "npm test",
    "npm run ",
    "npx vitest",
    "npx jest",
    "pytest",
    "cargo test",
    "cargo build",
    "go test",
    "make test",
    "yarn test",
    "pnpm test",
    "in file ",
];

/// Words before a number or a hash that together name one thing.
const NUMBERED: &[&str] = &["pr", "issue", "bug", "ticket", "line", "commit"];

/// Whether the request has fewer words than `enough` and names nothing concrete, so that it has to be planned first.
pub(super) fn is_vague(request: &str, enough: usize) -> bool {
    let looked_at = &request[..request.floor_char_boundary(LOOKED_AT_BYTES)];
    work::spend(looked_at.len());
    count_words(looked_at, enough) < enough && !has_signal(looked_at)
}

/// The words of a text, counted until there are `enough`.
///
/// Japanese and Chinese have no spaces: two of their characters count as a word.
fn count_words(text: &str, enough: usize) -> usize {
    let mut count = 0;
    for word in text.split(is_space).filter(|word| word.chars().any(char::is_alphanumeric)) {
        let unspaced = word
            .chars()
            .filter(|c| is_cjk(*c) && !matches!(c, '\u{1100}'..='\u{11ff}' | '\u{ac00}'..='\u{d7af}'))
            .count();
        count += (unspaced / 2).max(1);
        if count >= enough {
            break;
        }
    }
    count
}

fn has_signal(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    PHRASES.iter().any(|phrase| lower.contains(phrase)) || has_steps(text) || has_code(text) || has_named_thing(text)
}

/// A numbered or bulleted line.
fn has_steps(text: &str) -> bool {
    text.lines().any(|line| {
        let line = line.trim_start();
        let digits = line.bytes().take_while(u8::is_ascii_digit).count();
        let item =
            if digits > 0 { line[digits..].strip_prefix(['.', ')']) } else { line.strip_prefix(['-', '*', '•']) };
        item.is_some_and(|item| item.starts_with(is_space) && !item.trim().is_empty())
    })
}

/// A fenced block that is long enough, or inline code that is more than a keyword's name.
fn has_code(text: &str) -> bool {
    text.split("```").enumerate().any(|(part, text)| {
        let is_fenced = part % 2 == 1;
        if is_fenced { text.trim().len() >= MIN_FENCE_BYTES } else { has_inline_code(text) }
    })
}

fn has_inline_code(text: &str) -> bool {
    let closed = text.matches('`').count() / 2;
    text.split('`').skip(1).step_by(2).take(closed).any(|code| {
        let code = code.trim();
        code.len() >= 2 && code.chars().any(char::is_alphanumeric) && Keyword::from_command(code).is_none()
    })
}

/// A path, a file, a symbol, a number of an issue, a hash of a commit, the name of an error.
fn has_named_thing(text: &str) -> bool {
    let part_of_name = |c: char| c.is_ascii_alphanumeric() || "_./#\\-@~".contains(c) || is_cjk(c);
    let mut before = "";
    text.split(|c: char| !part_of_name(c)).filter(|name| !name.is_empty()).any(|name| {
        let name = name.trim_start_matches(['-', '@', '~']).trim_end_matches(['.', '-', '@', '~']);
        // Korean and Japanese glue their particles to a name: `parser.rs를`.
        let bare = name.trim_end_matches(is_cjk);
        let found = is_reference(before, bare)
            || is_file(bare)
            || is_path(name)
            || is_symbol(name)
            || is_declared(before, bare);
        before = name;
        found
    })
}

fn is_reference(before: &str, name: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let named = NUMBERED.iter().any(|word| before.eq_ignore_ascii_case(word));
    let hash = name.len() >= 7 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
    name.split_once('#').is_some_and(|(_, number)| digits(number)) || named && (digits(name) || hash)
}

fn is_file(name: &str) -> bool {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    last.rsplit_once('.').is_some_and(|(stem, extension)| {
        !stem.is_empty() && EXTENSIONS.iter().any(|known| extension.eq_ignore_ascii_case(known))
    })
}

fn is_path(name: &str) -> bool {
    let parts: Vec<&str> = name.split(['/', '\\']).filter(|part| !part.is_empty()).take(3).collect();
    match parts.as_slice() {
        [first, _] => DIRECTORIES.contains(first) || name.starts_with(['/', '.']) && !is_command(name),
        [_, _, _] => true,
        _ => false,
    }
}

/// `/omc:ralph` and the like are no paths; the colon has cut them before.
fn is_command(name: &str) -> bool {
    name.rsplit('/').next().is_some_and(|last| Keyword::from_command(last).is_some())
}

/// `camelCase`, `PascalCase` of two parts, `snake_case`. Error names are such.
fn is_symbol(name: &str) -> bool {
    name.split(|c: char| !c.is_ascii() || !is_word_byte(c as u8)).any(|word| {
        let bytes = word.as_bytes();
        let snake =
            bytes.windows(3).any(|w| w[0].is_ascii_alphanumeric() && w[1] == b'_' && w[2].is_ascii_alphanumeric());
        let hump = bytes.windows(2).any(|w| w[0].is_ascii_lowercase() && w[1].is_ascii_uppercase());
        snake || hump && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    })
}

fn is_declared(before: &str, name: &str) -> bool {
    let starts_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    DECLARATIONS.contains(&before) && starts_name && !NO_NAMES.iter().any(|word| name.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::{count_words, has_signal, is_vague};

    #[test]
    fn a_concrete_thing_is_a_signal() {
        for text in [
            "fix parser.rs",
            "fix src/auth/login",
            "fix lib/date",
            "fix `src/auth.ts`",
            "fix ./run",
            "fix /etc/hosts",
            "fix src\\app\\main",
            "fix #42",
            "fix PR #7",
            "fix org/repo#7",
            "fix issue 42",
            "see commit 0123abc",
            "see the pull request",
            "fix parseDate",
            "fix DateParser",
            "fix parse_date",
            "fix function parse",
            "fix the TypeError at startup",
            "fix `parse`",
            "add class Order",
            "it threw an exception",
            "error: no such table",
            "the stack trace is below",
            "fix it\n1. read\n2. guard",
            "fix it\n- read",
            "login should return null",
            "see the acceptance criteria",
            "until cargo test is green",
            "until pytest is green",
            "fix this\n```\nlet total = sum(items) / count\n```",
            "https://x.test/a/b",
            "고쳐줘 src/서버.ts",
            "parser.rs를 고쳐줘",
            "#42번 고쳐줘",
            "parseDate를 고쳐줘",
            "update README.md",
        ] {
            assert!(has_signal(text), "{text:?}");
        }
    }

    #[test]
    fn plain_words_are_no_signal() {
        for text in [
            "make the shop nicer",
            "let me see",
            "type of thing",
            "a/b",
            "and/or",
            "fix it.",
            "it failed again!",
            "ralph",
            "fix this\n```\nshort\n```",
            "fix ```this``` now",
            "`ralph`",
            "/omc:ralph it",
            "do it - now",
            "3.5 times",
            "99%",
            "fix this\n```\nx\n```",
            "e.g. this",
            "리팩터링 해줘",
            "fix the login page",
            "version 2",
            "I'd like it",
            "A ` alone",
            "ok...",
            "C",
        ] {
            assert!(!has_signal(text), "{text:?}");
        }
    }

    #[test]
    fn words_are_counted_in_any_script() {
        for (text, want) in [
            ("", 0),
            ("one two  three", 3),
            ("one, two - three!", 3),
            ("하나 둘 셋", 3),
            ("在这里修复登录页面", 4),
            ("オートパイロットで進めて", 6),
            (&"word ".repeat(100), 15),
        ] {
            assert_eq!(count_words(text, 15), want, "{text:?}");
        }
    }

    #[test]
    fn fourteen_words_are_vague_and_fifteen_are_not() {
        assert!(is_vague(&"word ".repeat(14), 15));
        assert!(!is_vague(&"word ".repeat(15), 15));
        assert!(!is_vague("word src/a.rs", 15));
    }
}
