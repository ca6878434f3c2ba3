//! The head of a rule file: the few lines of YAML that all three agents' rules have.
//!
//! Keys with a text, a list in one line, or a list in lines; nothing else of YAML is in use there, and what is not understood is
//! passed over.

/// Most patterns of one rule.
const MAX_GLOBS: usize = 64;

/// Longest pattern, in bytes.
const MAX_GLOB_BYTES: usize = 256;

/// When a rule applies.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FrontMatter {
    /// Always.
    pub always_apply: bool,
    /// For files that match one of these.
    pub globs: Vec<String>,
}

impl FrontMatter {
    /// Splits a file's text into its head and the rest. A text without a whole head is all rest.
    pub fn split(text: &str) -> (Self, &str) {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let Some(head) = text.strip_prefix("---").and_then(after_line_end) else { return (Self::default(), text) };
        let mut at = 0;
        for line in head.split_inclusive('\n') {
            if line.trim_end() == "---" {
                return (Self::parse(&head[..at]), &head[at + line.len()..]);
            }
            at += line.len();
        }
        (Self::default(), text)
    }

    fn parse(head: &str) -> Self {
        let mut found = Self::default();
        let mut list_goes_on = false;
        for line in head.lines() {
            if let Some(item) = line.trim_start().strip_prefix("- ").filter(|_| list_goes_on) {
                found.add(unquoted(without_comment(item)));
                continue;
            }
            if line.trim().is_empty() {
                continue;
            }
            let Some((key, value)) = line.split_once(':') else { continue };
            let value = without_comment(value);
            list_goes_on = false;
            match key.trim() {
                "alwaysApply" => found.always_apply = value.eq_ignore_ascii_case("true"),
                "globs" | "paths" | "applyTo" => {
                    list_goes_on = value.is_empty();
                    let inside = value.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
                    match inside {
                        Some(inside) => split_list(inside).for_each(|item| found.add(unquoted(item))),
                        None => split_list(unquoted(value)).for_each(|item| found.add(unquoted(item))),
                    }
                }
                _ => {}
            }
        }
        found
    }

    fn add(&mut self, glob: &str) {
        let glob = glob.trim();
        if !glob.is_empty() && glob.len() <= MAX_GLOB_BYTES && self.globs.len() < MAX_GLOBS {
            self.globs.push(glob.to_owned());
        }
    }
}

fn after_line_end(text: &str) -> Option<&str> {
    let (line, rest) = text.split_once('\n')?;
    line.trim().is_empty().then_some(rest)
}

/// The value without a comment behind it. Within quotation marks there is none.
fn without_comment(value: &str) -> &str {
    let value = value.trim();
    let mut quote = None;
    for (at, c) in value.char_indices() {
        match (quote, c) {
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), c) if open == c => quote = None,
            (None, '#') if at == 0 || value[..at].ends_with([' ', '\t']) => return value[..at].trim_end(),
            _ => {}
        }
    }
    value
}

fn unquoted(value: &str) -> &str {
    let value = value.trim();
    ['"', '\''].into_iter().find_map(|quote| value.strip_prefix(quote)?.strip_suffix(quote)).unwrap_or(value)
}

/// The items between commas, but not between those in braces, brackets or quotation marks.
fn split_list(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_u32;
    let mut quote = None;
    text.split(move |c| {
        match (quote, c) {
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), c) if open == c => quote = None,
            (None, '{') => depth += 1,
            (None, '}') => depth = depth.saturating_sub(1),
            (None, ',') if depth == 0 => return true,
            _ => {}
        }
        false
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_a_list_is_read() {
        for (head, globs) in [
            ("applyTo: \"x.ts,a.ts\"", vec!["x.ts", "a.ts"]),
            ("globs: [x.ts, \"a.ts\"]", vec!["x.ts", "a.ts"]),
            ("globs: ['x, y.ts', a.ts]", vec!["x, y.ts", "a.ts"]),
            ("description: \"d\"\npaths:\n  - x.ts\n\n  - 'a.ts' # why\n", vec!["x.ts", "a.ts"]),
            ("paths:\n- a.ts\nother: 1\n- b.ts", vec!["a.ts"]),
            ("globs: *.md, src/*.ts", vec!["*.md", "src/*.ts"]),
            ("globs: src/*.{ts,tsx}, b", vec!["src/*.{ts,tsx}", "b"]),
            ("globs: a.ts # only this", vec!["a.ts"]),
            ("globs: \"a#b\"", vec!["a#b"]),
            ("globs: a\npaths: b\napplyTo: c", vec!["a", "b", "c"]),
            ("globs:", vec![]),
            ("globs: \"\"", vec![]),
            ("nonsense\n: x", vec![]),
        ] {
            for text in [
                format!("---\n{head}\n---\nbody"),
                format!("\u{feff}---\r\n{}\r\n---\r\nbody", head.replace('\n', "\r\n")),
            ] {
                let (found, body) = FrontMatter::split(&text);
                assert_eq!((found.globs, body), (globs.iter().map(ToString::to_string).collect(), "body"), "{text:?}");
            }
        }
    }

    #[test]
    fn only_a_whole_head_counts() {
        for text in
            ["---\nglobs: [a.ts\nno end\n", "--- x\nglobs: a\n---\n", "globs: a", "---", "----\nglobs: a\n---\n"]
        {
            assert_eq!(FrontMatter::split(text), (FrontMatter::default(), text));
        }
        assert_eq!(FrontMatter::split("---\n---\nbody"), (FrontMatter::default(), "body"));
    }

    #[test]
    fn always_is_any_spelling_of_true() {
        for (value, always) in
            [("true", true), ("True", true), ("TRUE # yes", true), ("false", false), ("yes", false), ("", false)]
        {
            let text = format!("---\nalwaysApply: {value}\n---\n");
            assert_eq!(FrontMatter::split(&text).0.always_apply, always, "{value}");
        }
    }

    #[test]
    fn patterns_are_bounded() {
        let many = vec!["a.ts"; 500].join(",");
        let long = "x".repeat(10_000);
        assert_eq!(FrontMatter::split(&format!("---\nglobs: {many}\n---\n")).0.globs.len(), MAX_GLOBS);
        assert!(FrontMatter::split(&format!("---\nglobs: {long}\n---\n")).0.globs.is_empty());
    }
}
