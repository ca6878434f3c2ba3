//! `<remember>` in what an agent says: facts that it wants to be kept.
//!
//! Only for words of a model: a tool's output and a file's content are not asked. Quoted tags are samples and no wish: those in
//! code fences, in inline code and in lines that begin with `>`. What is between the tags is taken literally, without the white
//! space around it.

/// Most notes that are taken from one text: more is a list that somebody pasted, or a loop.
const MAX_NOTES: usize = 32;

const CLOSE: &str = "</remember>";

/// One fact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// Whether it is to be in every session from now on.
    pub is_priority: bool,
    /// The fact.
    pub text: String,
}

/// The notes in a text, in their order.
///
/// Letter case does not matter, the tag may have attributes; one called `priority` makes a priority note, unless its value says
/// that it does not. An inner opening tag is part of the outer one's text.
pub fn find_notes(text: &str) -> Vec<Note> {
    let mut notes = Vec::new();
    let mut scanner = Scanner { text, at: 0, fence: None };
    while notes.len() < MAX_NOTES
        && let Some(note) = scanner.next_note()
    {
        if !note.text.is_empty() {
            notes.push(note);
        }
    }
    notes
}

struct Scanner<'a> {
    text: &'a str,
    /// Start of what is left.
    at: usize,
    /// The marks that a code fence is open with.
    fence: Option<&'a str>,
}

impl Scanner<'_> {
    fn next_note(&mut self) -> Option<Note> {
        while self.at < self.text.len() {
            let start = self.at;
            let is_line_start = start == 0 || self.text.as_bytes()[start - 1] == b'\n';
            let end = self.text[start..].find('\n').map_or(self.text.len(), |length| start + length + 1);
            let line = &self.text[start..end];
            self.at = end;
            if is_line_start && self.is_quoted(line) {
                continue;
            }
            let Some((after, is_priority)) = opening_tag(self.text, start, end) else { continue };
            let Some(length) = find_ignoring_case(&self.text[after..], CLOSE) else {
                // Without an end there is no note. Looking for another opening would find none with an end either.
                self.at = self.text.len();
                return None;
            };
            self.at = after + length + CLOSE.len();
            return Some(Note { is_priority, text: self.text[after..after + length].trim().to_owned() });
        }
        None
    }

    /// Whether the line is in, or a mark of, a code fence, or a quotation.
    fn is_quoted(&mut self, line: &str) -> bool {
        let trimmed = line.trim_start();
        let marks = ["```", "~~~"].into_iter().find(|marks| trimmed.starts_with(marks));
        match (self.fence, marks) {
            (None, Some(marks)) => {
                self.fence = Some(marks);
                true
            }
            (Some(open), Some(marks)) if open == marks => {
                self.fence = None;
                true
            }
            (Some(_), _) => true,
            (None, None) => trimmed.starts_with('>'),
        }
    }
}

/// The first opening tag that starts in a line and not in inline code: what is after it, and whether it is a priority.
///
/// A tag may go on over line ends, but not for long.
fn opening_tag(text: &str, start: usize, end: usize) -> Option<(usize, bool)> {
    /// Longest tag, in bytes: the name and a few attributes.
    const MAX_TAG: usize = 200;
    const OPEN: &str = "<remember";
    let mut at = start;
    let mut is_code = false;
    while let Some(found) = find_ignoring_case(&text[at..end], OPEN) {
        let open = at + found;
        let inside = open + OPEN.len();
        is_code ^= text[at..open].bytes().filter(|byte| *byte == b'`').count() % 2 == 1;
        at = inside;
        let Some(length) = text.as_bytes()[inside..].iter().take(MAX_TAG).position(|byte| matches!(byte, b'>' | b'<'))
        else {
            continue;
        };
        let attributes = &text[inside..inside + length];
        let is_name_over = attributes.is_empty() || attributes.starts_with(|c: char| c.is_ascii_whitespace());
        if !is_code && is_name_over && text.as_bytes()[inside + length] == b'>' {
            return Some((inside + length + 1, has_priority(attributes)));
        }
    }
    None
}

fn has_priority(attributes: &str) -> bool {
    attributes.split_ascii_whitespace().any(|attribute| {
        let (name, value) = attribute.split_once('=').unwrap_or((attribute, ""));
        let value = value.trim_matches(['"', '\'']).to_ascii_lowercase();
        name.eq_ignore_ascii_case("priority") && !matches!(value.as_str(), "false" | "no" | "low" | "normal")
    })
}

/// Where `needle`, which is ASCII in lower case, starts in `text`.
fn find_ignoring_case(text: &str, needle: &str) -> Option<usize> {
    text.as_bytes().windows(needle.len()).position(|window| window.eq_ignore_ascii_case(needle.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notes(text: &str) -> Vec<(bool, String)> {
        find_notes(text).into_iter().map(|note| (note.is_priority, note.text)).collect()
    }

    #[test]
    fn tags_are_found_wherever_the_model_says_them() {
        for (text, found) in [
            ("a <remember>one</remember> b <remember>two</remember>", vec![(false, "one"), (false, "two")]),
            ("<remember priority>p</remember>", vec![(true, "p")]),
            ("<REMEMBER PRIORITY>p</Remember>", vec![(true, "p")]),
            ("<remember\n PRIORITY>\n  p\n</remember>", vec![(true, "p")]),
            ("<remember priority=\"high\">p</remember>", vec![(true, "p")]),
            ("<remember priority >p</remember>", vec![(true, "p")]),
            ("<remember priority=low>p</remember>", vec![(false, "p")]),
            ("<remember >x</remember>", vec![(false, "x")]),
            ("<remember id='7'>x</remember>", vec![(false, "x")]),
            ("<remember>line\n\"two\" $& $1</remember>", vec![(false, "line\n\"two\" $& $1")]),
            ("<remember>a <remember>b</remember> c</remember>", vec![(false, "a <remember>b")]),
            ("<remember>use\n```sh\nmake\n```\n</remember>", vec![(false, "use\n```sh\nmake\n```")]),
            ("<remember> \n </remember><remember>x</remember>", vec![(false, "x")]),
            ("<remember>한글 노트</remember>", vec![(false, "한글 노트")]),
            ("<remembered>x</remembered>", vec![]),
            ("<remember-me>x</remember>", vec![]),
            ("<remember>never closed", vec![]),
            ("</remember><remember", vec![]),
            ("<remember <remember>x</remember>", vec![(false, "x")]),
            ("", vec![]),
        ] {
            let found: Vec<_> = found.into_iter().map(|(priority, text)| (priority, text.to_owned())).collect();
            assert_eq!(notes(text), found, "{text}");
        }
    }

    #[test]
    fn quoted_tags_are_samples() {
        for text in [
            "```xml\n<remember priority>x</remember>\n```",
            "  ~~~\n<remember>x</remember>\n```\n<remember>y</remember>\n~~~",
            "Write `<remember>x</remember>` to keep a fact.",
            "> <remember>x</remember>",
            "```\n<remember>x</remember>",
        ] {
            assert_eq!(notes(text), [], "{text}");
        }
        let text = "```\n<remember>sample</remember>\n```\n<remember>real</remember>\n";
        assert_eq!(notes(text), [(false, "real".to_owned())]);
        assert_eq!(notes("`a` <remember>real</remember> `b`"), [(false, "real".to_owned())]);
    }

    #[test]
    fn a_flood_of_tags_is_bounded_and_quick() {
        assert_eq!(notes(&"<remember>x</remember>".repeat(1_000)).len(), MAX_NOTES);
        assert_eq!(notes(&"<remember>".repeat(200_000)), []);
        assert_eq!(notes(&"<remember ".repeat(200_000)), []);
    }
}
