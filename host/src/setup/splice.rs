//! Edits of JSON text that touch nothing but what they are about.
//!
//! Settings files belong to people: comments, commas at the end, odd indentation and line ends stay as they are. So a file is
//! never written anew from its value. An item is put in as text behind its siblings, in their style, and taken out as text; of
//! everything else not one byte changes. Taking out what was put in gives the bytes from before, unless the container was empty:
//! `{}`, `{ }` and two lines are then one.
//!
//! The parser is that of the rest of the host; its own editing tree breaks lines of containers that it adds to.

use std::ops::Range;

use jsonc_parser::ast::{Array, Object, Value as Node};
use jsonc_parser::tokens::{Token, TokenAndRange};
use jsonc_parser::{CollectOptions, CommentCollectionStrategy, ParseOptions, parse_to_ast};
use serde::Serialize as _;
use serde_json::Value;

/// Indentation of a file that shows none.
const USUAL_INDENT: &str = "  ";

/// A parsed text.
pub(super) struct Tree<'a> {
    pub(super) text: &'a str,
    pub(super) root: Option<Node<'a>>,
    tokens: Vec<TokenAndRange<'a>>,
    newline: &'static str,
    indent: String,
}

/// An object or array: where it is, and where its items are.
pub(super) struct Container {
    range: Range<usize>,
    items: Vec<Range<usize>>,
}

impl Container {
    pub(super) fn of_object(object: &Object<'_>) -> Self {
        Self { range: bytes(object), items: object.properties.iter().map(bytes).collect() }
    }

    pub(super) fn of_array(array: &Array<'_>) -> Self {
        Self { range: bytes(array), items: array.elements.iter().map(bytes).collect() }
    }

    fn inside(&self) -> Range<usize> {
        self.range.start + 1..self.range.end - 1
    }
}

/// Where a node is in its text.
pub(super) fn bytes(node: &impl jsonc_parser::common::Ranged) -> Range<usize> {
    let range = node.range();
    range.start..range.end
}

impl<'a> Tree<'a> {
    /// Parses a text; an error is the parser's sentence.
    pub(super) fn parse(text: &'a str, options: &ParseOptions) -> Result<Self, String> {
        let collect = CollectOptions { comments: CommentCollectionStrategy::AsTokens, tokens: true };
        let parsed = parse_to_ast(text, &collect, options).map_err(|error| error.to_string())?;
        let newline = if text.split_once('\n').is_some_and(|(line, _)| line.ends_with('\r')) { "\r\n" } else { "\n" };
        let first = match &parsed.value {
            Some(Node::Object(object)) => object.properties.first().map(bytes),
            _ => None,
        };
        let indent = first.and_then(|item| indentation(text, item.start)).filter(|indent| !indent.is_empty());
        Ok(Self {
            text,
            root: parsed.value,
            tokens: parsed.tokens.unwrap_or_default(),
            newline,
            indent: indent.unwrap_or(USUAL_INDENT).to_owned(),
        })
    }

    /// The text with a value behind what is there, for a text that has none.
    pub(super) fn with_root(&self, value: &Value) -> String {
        let before = self.text.trim_end_matches([' ', '\t', '\r', '\n']);
        let gap = if before.is_empty() { "" } else { self.newline };
        format!("{before}{gap}{}{}", self.render(value, ""), self.newline)
    }

    /// The text with one more item at the container's end: a member if it has a key, else an element.
    pub(super) fn with_appended(&self, container: &Container, key: Option<&str>, value: &Value) -> String {
        let inside = container.inside();
        let is_multi_line = self.text[inside.clone()].contains('\n');
        let item = |indent: &str, is_multi_line: bool| {
            let value = if is_multi_line { self.render(value, indent) } else { value.to_string() };
            key.map_or_else(|| value.clone(), |key| format!("{}: {value}", Value::from(key)))
        };
        let (Some(first), Some(last)) = (container.items.first(), container.items.last()) else {
            let at = self.after_comments(inside.start, inside.end);
            let outer = indentation_of_line(self.text, container.range.start);
            let inner = format!("{outer}{}", self.indent);
            let end = if self.text[at..inside.end].contains('\n') {
                String::new()
            } else {
                format!("{}{outer}", self.newline)
            };
            let new = format!("{}{inner}{}{end}", self.newline, item(&inner, true));
            return apply(self.text, vec![(at..at, new)]);
        };
        let comma = self.comma(last.end, inside.end);
        let at = self.after_comments(comma.as_ref().map_or(last.end, |comma| comma.end), inside.end);
        let gap = if is_multi_line {
            let indent = indentation(self.text, first.start).map_or_else(
                || format!("{}{}", indentation_of_line(self.text, container.range.start), self.indent),
                str::to_owned,
            );
            format!("{}{indent}{}", self.newline, item(&indent, true))
        } else {
            format!(" {}", item("", false))
        };
        let mut edits = Vec::new();
        if comma.is_some() {
            edits.push((at..at, gap + ","));
        } else {
            edits.push((last.end..last.end, ",".to_owned()));
            edits.push((at..at, gap));
        }
        apply(self.text, edits)
    }

    /// The text without one of the container's items.
    pub(super) fn without(&self, container: &Container, index: usize) -> String {
        let (inside, item) = (container.inside(), &container.items[index]);
        let next = container.items.get(index + 1).map_or(inside.end, |next| next.start);
        let comma = self.comma(item.end, next);
        let mut start = self.text[..item.start].trim_end_matches([' ', '\t', '\r', '\n']).len().max(inside.start);
        let end = comma.as_ref().filter(|comma| comma.start == item.end).map_or(item.end, |comma| comma.end);
        // What follows must not become part of a comment.
        let ends_in_comment = self.tokens.iter().any(|token| {
            matches!(token.token, Token::CommentLine(_)) && (start..item.start).contains(&self.comment_end(token))
        });
        let rest = self.text[end..].trim_start_matches([' ', '\t']);
        if ends_in_comment && !rest.starts_with(['\r', '\n']) {
            start = self.text[start..].find('\n').map_or(start, |at| start + at + 1);
        }
        if container.items.len() == 1 && comma.as_ref().is_none_or(|comma| comma.end == end) {
            let rest = [&self.text[inside.start..start], &self.text[end..inside.end]];
            if rest.iter().all(|part| part.trim().is_empty()) {
                return apply(self.text, vec![(inside, String::new())]);
            }
        }
        let mut edits = vec![(start..end, String::new())];
        match comma {
            Some(comma) if comma.start == item.end => {}
            Some(comma) => edits.push((comma, String::new())),
            None if index > 0 => {
                edits
                    .extend(self.comma(container.items[index - 1].end, item.start).map(|comma| (comma, String::new())));
            }
            None => {}
        }
        apply(self.text, edits)
    }

    /// The text with another value in the place of one.
    pub(super) fn with_replaced(&self, range: Range<usize>, value: &Value) -> String {
        let new = if self.text[range.clone()].contains('\n') {
            self.render(value, indentation_of_line(self.text, range.start))
        } else {
            value.to_string()
        };
        apply(self.text, vec![(range, new)])
    }

    /// A value over several lines, for a line with this indentation.
    fn render(&self, value: &Value, indent: &str) -> String {
        let formatter = serde_json::ser::PrettyFormatter::with_indent(self.indent.as_bytes());
        let mut json = Vec::new();
        let mut serializer = serde_json::Serializer::with_formatter(&mut json, formatter);
        value.serialize(&mut serializer).expect("a value serialises, and a vector takes it");
        // In JSON's strings no line ends.
        String::from_utf8_lossy(&json).replace('\n', &format!("{}{indent}", self.newline))
    }

    /// The first comma between two places.
    fn comma(&self, from: usize, to: usize) -> Option<Range<usize>> {
        let mut tokens = self.tokens.iter().filter(|token| token.range.start >= from && token.range.end <= to);
        tokens.find(|token| token.token == Token::Comma).map(|token| token.range.start..token.range.end)
    }

    /// The place after the comments that follow on the same line.
    fn after_comments(&self, mut at: usize, to: usize) -> usize {
        let comments = self
            .tokens
            .iter()
            .filter(|token| matches!(token.token, Token::CommentLine(_) | Token::CommentBlock(_)))
            .filter(|token| token.range.end <= to);
        for comment in comments {
            if comment.range.start >= at && self.text[at..comment.range.start].trim_matches([' ', '\t']).is_empty() {
                at = self.comment_end(comment);
            }
        }
        at
    }

    /// The end of a comment, without its line's end.
    fn comment_end(&self, comment: &TokenAndRange<'_>) -> usize {
        self.text[..comment.range.end].trim_end_matches(['\r', '\n']).len()
    }
}

/// What stands before a place on its line, if that is nothing but blanks.
fn indentation(text: &str, at: usize) -> Option<&str> {
    let line = &text[text[..at].rfind('\n')? + 1..at];
    line.trim_matches([' ', '\t']).is_empty().then_some(line)
}

/// The blanks at the beginning of a place's line.
fn indentation_of_line(text: &str, at: usize) -> &str {
    let line = &text[text[..at].rfind('\n').map_or(0, |end| end + 1)..at];
    &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
}

/// Puts texts in the place of others, which must not overlap.
fn apply(text: &str, mut edits: Vec<(Range<usize>, String)>) -> String {
    edits.sort_by_key(|(range, _)| range.start);
    let mut new = String::with_capacity(text.len() + 1024);
    let mut from = 0;
    for (range, replacement) in edits {
        new.push_str(&text[from..range.start]);
        new.push_str(&replacement);
        from = range.end;
    }
    new.push_str(&text[from..]);
    new
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::config::guest_settings::jsonc;

    fn appended(text: &str) -> String {
        let tree = Tree::parse(text, &jsonc()).expect("JSON");
        let root = tree.root.as_ref().and_then(Node::as_object).expect("an object");
        tree.with_appended(&Container::of_object(root), Some("new"), &json!({"k": [1]}))
    }

    fn removed(text: &str, name: &str) -> String {
        let tree = Tree::parse(text, &jsonc()).expect("JSON");
        let root = tree.root.as_ref().and_then(Node::as_object).expect("an object");
        let at = root.properties.iter().position(|property| property.name.as_str() == name).expect("the member");
        tree.without(&Container::of_object(root), at)
    }

    #[test]
    fn an_item_is_put_in_as_its_siblings_are_written_and_taken_out_without_a_trace() {
        let block = "\"new\": {\n  \"k\": [\n    1\n  ]\n}";
        let indented =
            |indent: &str| block.replace("\n  ", &format!("\n{indent}  ")).replace("\n}", &format!("\n{indent}}}"));
        for (text, expected) in [
            ("{\n  \"a\": 1\n}\n", format!("{{\n  \"a\": 1,\n  {}\n}}\n", indented("  "))),
            ("{\n  \"a\": 1,\n}", format!("{{\n  \"a\": 1,\n  {},\n}}", indented("  "))),
            ("{\n  \"a\": 1 // note\n}", format!("{{\n  \"a\": 1, // note\n  {}\n}}", indented("  "))),
            (
                "{\n  \"a\": 1, /* b */ // c\n  // end\n}",
                format!("{{\n  \"a\": 1, /* b */ // c\n  {},\n  // end\n}}", indented("  ")),
            ),
            ("{\"a\": 1}", "{\"a\": 1, \"new\": {\"k\":[1]}}".to_owned()),
            ("{\"a\": 1 /* b */ }", "{\"a\": 1, /* b */ \"new\": {\"k\":[1]} }".to_owned()),
            ("{\"a\": 1,}", "{\"a\": 1, \"new\": {\"k\":[1]},}".to_owned()),
            ("{\"a\":\n1}", format!("{{\"a\":\n1,\n  {}}}", indented("  "))),
        ] {
            assert_eq!(appended(text), expected, "{text:?}");
            assert_eq!(removed(&expected, "new"), text, "{expected:?}");
        }
        // The file's own indentation and line ends.
        let crlf = appended("{\r\n\t\"a\": 1 // n\r\n}\r\n");
        assert_eq!(crlf, "{\r\n\t\"a\": 1, // n\r\n\t\"new\": {\r\n\t\t\"k\": [\r\n\t\t\t1\r\n\t\t]\r\n\t}\r\n}\r\n");
        assert_eq!(removed(&crlf, "new"), "{\r\n\t\"a\": 1 // n\r\n}\r\n");
    }

    #[test]
    fn an_empty_container_gets_lines_of_its_own_and_is_empty_again() {
        for (text, after) in [
            ("{}", "{}"),
            ("{ }", "{}"),
            ("{\n}\n", "{}\n"),
            ("{ // why\n}", "{ // why\n}"),
            ("{ /* why */ }", "{ /* why */\n }"),
        ] {
            let with = appended(text);
            assert!(with.contains("\n  \"new\": {\n"), "{with:?}");
            assert_eq!(removed(&with, "new"), after, "{with:?}");
        }
    }

    #[test]
    fn an_item_is_taken_out_wherever_somebody_moved_it() {
        for (text, expected) in [
            ("{\"x\": 1, \"b\": 2}", "{ \"b\": 2}"),
            ("{\n  \"x\": 1,\n  \"b\": 2\n}", "{\n  \"b\": 2\n}"),
            ("{\n  \"a\": 0,\n  \"x\": 1, // of x\n  \"b\": 2\n}", "{\n  \"a\": 0, // of x\n  \"b\": 2\n}"),
            ("{\"a\": 0 // c\n , \"x\": 1 }", "{\"a\": 0 // c\n  }"),
            ("{\"a\": 0, // c\n \"x\": 1 }", "{\"a\": 0 // c\n }"),
            ("{\"x\": 1 /* of x */ , \"b\": 2}", "{ /* of x */  \"b\": 2}"),
        ] {
            let after = removed(text, "x");
            assert_eq!(after, expected, "{text:?}");
            assert!(Tree::parse(&after, &jsonc()).is_ok(), "{after:?}");
        }
    }
}
