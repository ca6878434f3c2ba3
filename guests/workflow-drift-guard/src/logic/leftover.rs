//! Leftovers in code: skipped tests, placeholders, what is not implemented. Line by line, and only what needs no parser.

/// Endings of files that are looked through.
pub const EXTENSIONS: &[&str] = &[
    "js", "jsx", "ts", "tsx", "mjs", "cjs", "mts", "cts", "py", "sh", "bash", "zsh", "go", "rs", "java", "kt", "kts",
    "swift", "rb", "php", "cs", "c", "cc", "cpp", "h", "hpp",
];

/// Longest quotation of a line, in characters: the original's limit.
const MAX_TEXT_CHARS: usize = 160;

/// Longest line that is looked at, in bytes; a longer one was written by a machine.
const MAX_LINE_BYTES: usize = 2_000;

/// A leftover.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The file, from the project's root.
    pub path: String,
    /// The line, from 1.
    pub line: usize,
    /// What it is.
    pub kind: &'static str,
    /// The line itself, on one line and cut.
    pub text: String,
}

const TEST_CALLS: &[&str] = &["it.skip(", "it.only(", "test.skip(", "test.only(", "describe.skip(", "describe.only("];
const UNIMPLEMENTED: &[&str] = &["todo!(", "unimplemented!(", "raise notimplementederror"];
const THROWS: &[&str] = &["throw ", "raise ", "panic!(", "panic("];
const TODO_VERBS: &[&str] =
    &["implement", "fix", "replace", "stub", "placeholder", "later", "follow-up", "wire", "add", "fill"];
const PLACEHOLDERS: &[&str] = &["stub", "placeholder", "not implemented", "unimplemented"];
const PLACEHOLDER_NOUNS: &[&str] = &["implementation", "branch", "path", "test", "coverage"];

/// Whether the path names a file of code.
pub fn is_code(path: &str) -> bool {
    let ending = path.rsplit('/').next().and_then(|name| name.rsplit_once('.')).map(|(_, ending)| ending);
    ending.is_some_and(|ending| EXTENSIONS.contains(&ending))
}

/// The leftovers of a file, line by line.
pub fn find<'a>(path: &'a str, text: &'a str) -> impl Iterator<Item = Finding> + 'a {
    let lines = text.lines().enumerate().filter(|(_, line)| line.len() <= MAX_LINE_BYTES);
    lines.filter_map(move |(at, line)| {
        let kind = kind_of(line)?;
        let quoted = line.trim().chars().filter(|c| !c.is_control()).take(MAX_TEXT_CHARS).collect();
        Some(Finding { path: path.to_owned(), line: at + 1, kind, text: quoted })
    })
}

fn kind_of(line: &str) -> Option<&'static str> {
    let lower = line.to_lowercase();
    let (code, comment) = split(&lower);
    if TEST_CALLS.iter().any(|call| code.contains(call)) {
        return Some("skipped or focused test");
    }
    let throws = THROWS.iter().any(|word| code.contains(word)) && lower.contains("not implemented");
    if throws || UNIMPLEMENTED.iter().any(|call| code.contains(call)) {
        return Some("not implemented");
    }
    let comment = comment?;
    if is_todo(comment) {
        return Some("placeholder TODO");
    }
    let returns = code.trim_start().starts_with("return null") || code.trim_start().starts_with("return undefined");
    let names = |words: &[&str]| words.iter().any(|word| has_word(comment, word));
    if returns && (names(PLACEHOLDERS) || names(&["todo"])) {
        return Some("placeholder return");
    }
    (names(PLACEHOLDERS) && names(PLACEHOLDER_NOUNS)).then_some("placeholder implementation")
}

/// The code of a line with its strings blanked, and its comment.
fn split(line: &str) -> (String, Option<&str>) {
    let mut code = String::with_capacity(line.len());
    let mut quote = None;
    let mut characters = line.char_indices().peekable();
    while let Some((at, c)) = characters.next() {
        match quote {
            Some(_) if c == '\\' => {
                characters.next();
            }
            Some(open) => {
                if c == open {
                    quote = None;
                    code.push(c);
                }
            }
            None if c == '#' || c == '/' && characters.peek().is_some_and(|(_, next)| matches!(next, '/' | '*')) => {
                return (code, Some(&line[at..]));
            }
            None => {
                if matches!(c, '"' | '\'' | '`') {
                    quote = Some(c);
                }
                code.push(c);
            }
        }
    }
    (code, None)
}

/// "TODO: implement", "TODO(me) fix"; a bare TODO is a note.
fn is_todo(comment: &str) -> bool {
    let Some((_, rest)) = comment.split_once("todo") else { return false };
    let rest = rest.trim_start();
    let rest = rest.strip_prefix('(').and_then(|rest| rest.split_once(')')).map_or(rest, |(_, rest)| rest);
    let rest = rest.trim_start().trim_start_matches(':').trim_start();
    TODO_VERBS.iter().any(|verb| rest.starts_with(verb))
}

fn has_word(text: &str, word: &str) -> bool {
    let is_letter = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    text.match_indices(word)
        .any(|(at, _)| !is_letter(text[..at].chars().next_back()) && !is_letter(text[at + word.len()..].chars().next()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leftovers_are_told_from_notes_and_strings() {
        for (line, kind) in [
            ("it.skip('parses', () => {})", Some("skipped or focused test")),
            ("  describe.only(\"x\", f)", Some("skipped or focused test")),
            ("// TODO: implement this", Some("placeholder TODO")),
            ("x = 1  # TODO implement", Some("placeholder TODO")),
            ("// TODO(me): fix later", Some("placeholder TODO")),
            ("return null; // stub", Some("placeholder return")),
            ("// placeholder implementation", Some("placeholder implementation")),
            ("throw new Error('Not implemented')", Some("not implemented")),
            ("todo!(\"parse\")", Some("not implemented")),
            ("    raise NotImplementedError", Some("not implemented")),
            ("// TODO", None),
            ("// see the todo list", None),
            ("let s = \"// TODO: implement\";", None),
            ("let s = 'it.skip(';", None),
            ("// the stubborn branch", None),
            ("return null;", None),
            ("unit.skip_all(x)", None),
            ("let url = \"https://x.test\";", None),
        ] {
            assert_eq!(kind_of(line), kind, "{line}");
        }
    }

    #[test]
    fn findings_have_their_place_and_an_end() {
        let text = format!("fn a() {{\n// TODO: implement \u{7}{}\n}}\n{}", "x".repeat(300), "todo!()\n".repeat(50));
        let found: Vec<_> = find("src/a.rs", &text).take(8).collect();
        assert_eq!((found.len(), found[0].line, found[1].line), (8, 2, 4));
        assert!(found[0].text.chars().count() <= MAX_TEXT_CHARS && !found[0].text.contains('\u{7}'));
        assert_eq!(find("a.rs", &format!("// TODO: implement {}", "x".repeat(5_000))).next(), None);
        for (path, code) in [("a/b.rs", true), ("b.md", false), ("Makefile", false), (".rs", true), ("x.d.ts", true)] {
            assert_eq!(is_code(path), code, "{path}");
        }
    }
}
