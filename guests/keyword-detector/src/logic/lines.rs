//! The lines of a prompt, each with what it is: the user's words, pasted material, or our own words come back.
//!
//! One pass over the lines with a small state machine. Pasted material (fenced code, diffs, quotes, tables, shell transcripts)
//! cannot start a mode but belongs to the request; our own words (echo blocks, injected guides, records of a conversation) do
//! neither.

use super::{
    echo,
    text::{starts_with_ignoring_case, trim},
    work,
};

/// What a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// The user's own words, as far as a line can tell.
    Own,
    /// Material that the user shows: no word in it is a request.
    Shown,
    /// What a hook or the agent wrote: neither request nor part of one.
    System,
}

/// Tags that wrap the records of a conversation.
const ROLES: &[&str] = &["system", "human", "assistant", "user", "tool_use", "tool_result"];

/// Prefixes of the line with which a guide names its skill.
const SKILL_LINES: &[&str] = &["Skill: oh-my-claudecode:", "Skill: oh-my-codex:", "Skill: omc:"];

/// Starts of the headers of a guide that a keyword injected.
const MAGIC_HEADERS: &[&str] =
    &["[MAGIC KEYWORD:", "[MAGIC KEYWORDS:", "[MAGIC KEYWORD DETECTED:", "[MAGIC KEYWORDS DETECTED:"];

/// Start of the line under which a guide repeats the request.
const REQUEST_LABEL: &str = "User request";

/// Prompts of shells. A `$` that is followed by a word is a marker of an invocation instead.
const SHELL_PROMPTS: &[&str] = &["$ ", "% ", "❯ "];

/// Lines with which a diff or a part of it starts.
const DIFF_STARTS: &[&str] = &["diff --git a/", "--- a/", "+++ b/", "--- /dev/null", "+++ /dev/null", "@@ -"];

/// Other lines of a diff.
const DIFF_HEADERS: &[&str] = &[
    "index ",
    "new file mode",
    "deleted file mode",
    "old mode",
    "new mode",
    "similarity index",
    "rename from",
    "rename to",
    "copy from",
    "copy to",
    "Binary files",
    "\\ No newline",
];

enum Block {
    None,
    /// A guide of ours. It ends with the paragraph of the request that it repeats, or with its own if it repeats none.
    Guide {
        repeats_request: bool,
        request_named: bool,
        request_begun: bool,
    },
    /// A record of a conversation. One that is never closed ends with its paragraph, so that it hides no request after it.
    Role {
        name: &'static str,
        closed: bool,
    },
    /// Code between fences; one that is never closed reaches to the end, as Markdown has it.
    Fence {
        mark: u8,
        length: usize,
    },
    Diff,
    /// What follows an echo's header. To the line with which such a text closes, if its paragraph has one, all of it; else the
    /// lines that are known.
    Echo {
        closes: bool,
    },
    /// The line after a bare `User request:`.
    Repeated,
}

/// An iterator over the lines of a text and their kinds.
pub(super) struct Lines<'a> {
    text: &'a str,
    rest: Option<&'a str>,
    block: Block,
    /// For each of [`ROLES`] how far from the text's end its last closing tag starts, once that was looked up; see
    /// [`last_from_end`].
    last_closing: [Option<usize>; ROLES.len()],
    /// The same for [`REQUEST_LABEL`].
    last_label: Option<usize>,
    /// The next line that closes an echo, of each kind, and the next blank line.
    closings: [Next; echo::CLOSINGS.len()],
    blank: Next,
}

impl<'a> Lines<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self {
            text,
            rest: Some(text),
            block: Block::None,
            last_closing: [None; ROLES.len()],
            last_label: None,
            closings: [Next::default(); _],
            blank: Next::default(),
        }
    }

    /// Whether a tag that closes this role follows. The whole text is searched once a role, not once a line.
    fn closes_later(&mut self, role: usize, rest: &str) -> bool {
        let text = self.text;
        let last = *self.last_closing[role].get_or_insert_with(|| last_from_end(text, &closing_tag(ROLES[role])));
        last <= rest.len()
    }

    /// Whether the paragraph that goes on with `rest` has a line that closes an echo.
    fn echo_closes(&mut self, rest: &str) -> bool {
        let at = self.text.len() - rest.len();
        let paragraph_end = self.blank.at_or_after(self.text, at, "\n\n");
        let closing = self.closings.iter_mut().zip(echo::CLOSINGS);
        closing.map(|(next, line)| next.at_or_after(self.text, at, line)).any(|closing| closing < paragraph_end)
    }

    /// Whether a guide's repetition of the request follows.
    fn is_labelled_later(&mut self, rest: &str) -> bool {
        let text = self.text;
        *self.last_label.get_or_insert_with(|| last_from_end(text, REQUEST_LABEL)) <= rest.len()
    }

    /// The kind of the line, given the lines before it. `rest` is what follows it.
    fn kind(&mut self, line: &str, rest: &str) -> Kind {
        let trimmed = trim(line);
        match &mut self.block {
            Block::Fence { mark, length } => {
                if closes_fence(trimmed, *mark, *length) {
                    self.block = Block::None;
                }
                return Kind::Shown;
            }
            Block::Role { name, closed } => {
                if *closed {
                    if line.contains(&closing_tag(name)) {
                        self.block = Block::None;
                    }
                    return Kind::System;
                }
                if !trimmed.is_empty() {
                    return Kind::System;
                }
                self.block = Block::None;
                return Kind::Own;
            }
            Block::None | Block::Guide { .. } | Block::Diff | Block::Echo { .. } | Block::Repeated => {}
        }
        if let Some(kind) = self.role_tag(line, trimmed, rest) {
            return kind;
        }
        if let Block::Guide { repeats_request, request_named, request_begun } = &mut self.block {
            if trimmed.is_empty() && (!*repeats_request || *request_named && *request_begun) {
                self.block = Block::None;
                return Kind::Own;
            }
            if *request_named {
                *request_begun |= !trimmed.is_empty();
            }
            *request_named |= is_request_label(trimmed);
            return Kind::System;
        }
        if MAGIC_HEADERS.iter().any(|header| starts_with_ignoring_case(trimmed, header)) {
            let repeats_request = self.is_labelled_later(rest);
            self.block = Block::Guide { repeats_request, request_named: false, request_begun: false };
            return Kind::System;
        }
        if trimmed.is_empty() {
            self.block = Block::None;
            return Kind::Own;
        }
        if echo::is_header(line) {
            self.block = Block::Echo { closes: self.echo_closes(rest) };
            return Kind::System;
        }
        match self.block {
            Block::Echo { closes: true } => {
                if echo::is_closing(line) {
                    self.block = Block::Echo { closes: false };
                }
                return Kind::System;
            }
            Block::Echo { closes: false } if echo::is_continuation(line) => return Kind::System,
            Block::Repeated => {
                self.block = Block::None;
                return Kind::System;
            }
            Block::Diff if line.starts_with([' ', '+', '-', '\t']) || starts_with_any(trimmed, DIFF_HEADERS) => {
                return Kind::Shown;
            }
            _ => self.block = Block::None,
        }
        if is_request_label(trimmed) {
            self.block = Block::Repeated;
            return Kind::System;
        }
        if starts_with_any(trimmed, SKILL_LINES) {
            return Kind::System;
        }
        if starts_with_any(trimmed, DIFF_STARTS) || is_diff_index(trimmed) {
            self.block = Block::Diff;
            return Kind::Shown;
        }
        if let Some((mark, length)) = opens_fence(trimmed) {
            self.block = Block::Fence { mark, length };
            return Kind::Shown;
        }
        let shown = starts_with_any(trimmed, SHELL_PROMPTS) || trimmed.starts_with('>') || is_table_row(trimmed);
        if shown { Kind::Shown } else { Kind::Own }
    }

    /// The kind of a line that starts with a role's tag, if it does.
    fn role_tag(&mut self, line: &str, trimmed: &str, rest: &str) -> Option<Kind> {
        let inner = trimmed.strip_prefix('<')?;
        let closing = inner.starts_with('/');
        let inner = inner.strip_prefix('/').unwrap_or(inner);
        let role = ROLES.iter().position(|role| {
            inner.strip_prefix(role).is_some_and(|after| {
                after.starts_with('>') || after.starts_with(char::is_whitespace) && after.contains('>')
            })
        })?;
        let name = ROLES[role];
        if closing {
            self.block = Block::None;
        } else if !line.contains(&closing_tag(name)) {
            self.block = Block::Role { name, closed: self.closes_later(role, rest) };
        } else {
            // Opened and closed in one line: the tags' own rule hides what is between, not what is after.
            return None;
        }
        Some(Kind::System)
    }
}

impl<'a> Iterator for Lines<'a> {
    type Item = (&'a str, Kind);

    fn next(&mut self) -> Option<Self::Item> {
        let text = self.rest?;
        let (line, rest) = match text.split_once('\n') {
            Some((line, rest)) => (line, Some(rest)),
            None => (text, None),
        };
        self.rest = rest;
        work::spend(line.len() + 1);
        Some((line, self.kind(line, rest.unwrap_or_default())))
    }
}

/// Where a piece of text comes next. Asked for places that only go forward, it searches no byte twice.
#[derive(Clone, Copy, Default)]
struct Next {
    known: Option<usize>,
}

impl Next {
    /// The first `piece` at or after the place; the end of the text if there is none.
    fn at_or_after(&mut self, text: &str, place: usize, piece: &str) -> usize {
        if let Some(known) = self.known.filter(|known| *known >= place) {
            return known;
        }
        let found = text[place..].find(piece).map_or(text.len(), |offset| place + offset);
        work::spend(found - place + 1);
        self.known = Some(found);
        found
    }
}

fn starts_with_any(line: &str, starts: &[&str]) -> bool {
    starts.iter().any(|start| line.starts_with(start))
}

/// How far from the text's end the last `piece` starts; without one, further than any text is long.
fn last_from_end(text: &str, piece: &str) -> usize {
    work::spend(text.len());
    text.rfind(piece).map_or(usize::MAX, |at| text.len() - at)
}

fn closing_tag(name: &str) -> String {
    format!("</{name}>")
}

/// `User request:` and nothing after it; a remark in parentheses may stand before the colon.
fn is_request_label(trimmed: &str) -> bool {
    let Some(after) = trimmed.strip_prefix(REQUEST_LABEL) else { return false };
    let Some(before_colon) = after.strip_suffix(':') else { return false };
    let remark = before_colon.trim();
    remark.is_empty() || remark.starts_with('(') && remark.ends_with(')')
}

fn is_diff_index(trimmed: &str) -> bool {
    let Some(range) = trimmed.strip_prefix("index ") else { return false };
    let Some((from, to)) = range.split_once("..") else { return false };
    let to = to.split(' ').next().unwrap_or_default();
    [from, to].iter().all(|hash| hash.len() >= 4 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

fn opens_fence(trimmed: &str) -> Option<(u8, usize)> {
    let mark = trimmed.bytes().next().filter(|byte| matches!(byte, b'`' | b'~'))?;
    let length = trimmed.bytes().take_while(|byte| *byte == mark).count();
    let language = &trimmed[length..];
    (length >= 3 && !(mark == b'`' && language.contains('`'))).then_some((mark, length))
}

fn closes_fence(trimmed: &str, mark: u8, length: usize) -> bool {
    trimmed.len() >= length && trimmed.bytes().all(|byte| byte == mark)
}

/// A row of a table with two cells or more, or the line under its head.
fn is_table_row(trimmed: &str) -> bool {
    let bars = trimmed.bytes().filter(|byte| *byte == b'|').count();
    let rule = bars >= 1 && trimmed.contains("--") && trimmed.bytes().all(|byte| b"|-: \t".contains(&byte));
    rule || trimmed.starts_with('|') && bars >= 3
}

#[cfg(test)]
mod tests {
    use super::{Kind, Lines};

    /// One letter a line: `o`wn, `s`hown, s`y`stem.
    fn kinds(text: &str) -> String {
        Lines::new(text)
            .map(|(_, kind)| match kind {
                Kind::Own => 'o',
                Kind::Shown => 's',
                Kind::System => 'y',
            })
            .collect()
    }

    #[test]
    fn each_line_is_told_from_the_lines_before_it() {
        for (what, text, want) in [
            ("plain words", "a\n\nb", "ooo"),
            ("a back-tick fence", "a\n```rust\nx\n```\nb", "ossso"),
            ("a tilde fence", "~~~\nx\n~~~\nb", "ssso"),
            ("a shorter fence does not close", "````\n```\n````\nb", "ssso"),
            ("a fence of the other kind does not close", "~~~\n```\n~~~\nb", "ssso"),
            ("a fence that is never closed reaches to the end", "a\n```\nx\n\ny", "ossss"),
            ("code within a line is no fence", "```x``` a\nb", "oo"),
            ("a block quote", "> x\n>y\nb", "sso"),
            ("a table", "| a | b |\n| --- | --- |\n| 1 | 2 |\nb", "ssso"),
            ("one bar is no table", "a | b\n| x", "oo"),
            ("a shell transcript", "$ x\n% x\n❯ x\n$x", "ssso"),
            (
                "a diff",
                "diff --git a/f b/f\nindex 0123abc..0123abd 100644\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n x\n+y\n-z\nb",
                "sssssssso",
            ),
            ("a diff ends at a blank line", "--- a/f\n+x\n\n+b", "ssoo"),
            ("a hunk alone", "@@ -1,2 +1,2 @@ fn\n ralph\n-x\nb", "ssso"),
            ("an index that is none", "index of files\nb", "oo"),
            ("a record", "<assistant>\nx\n\ny\n</assistant>\nb", "yyyyyo"),
            (
                "a record with another in it",
                "<assistant>\n<tool_use id=\"1\">\nx\n</tool_use>\ny\n</assistant>\nb",
                "yyyyyyo",
            ),
            ("a record that is never closed ends with its paragraph", "<user>\nx\ny\n\nb", "yyyoo"),
            ("a record in one line is left to the tag rule", "<system>x</system>b\nc", "oo"),
            ("a tag that only looks like a record's", "<users>\nb", "oo"),
            ("a stray closing tag", "</system>\nb", "yo"),
            ("a guide of ours", "[MAGIC KEYWORD: RALPH]\nx\n\ny\nUser request:\nz\n\nb", "yyyyyyoo"),
            (
                "a guide whose request has not begun goes on",
                "[MAGIC KEYWORDS DETECTED: A, B]\nUser request (short):\n\nz\n\nb",
                "yyyyoo",
            ),
            ("a guide without a request is a paragraph", "[MAGIC KEYWORD: X]\na\n\nb", "yyoo"),
            ("a guide ends at a record", "[MAGIC KEYWORD: X]\n<user>\na\n</user>\nb", "yyyyo"),
            ("a request label alone", "User request:\nx\nb", "yyo"),
            ("a request label before a blank line", "User request:\n\nb", "yoo"),
            ("a request label with words is words", "User request: x\nb", "oo"),
            ("a skill's name", "Skill: omc:ralph\nb", "yo"),
            ("an echo", "[ULTRAWORK #4/50] x\nTask: y\nb", "yyo"),
            ("a continuation alone is no echo", "Task: x", "o"),
            (
                "a whole reason",
                "[ULTRAWORK #4/50] x\ny\nWhen it is done and checked, end the mode with /omc:cancel\nb",
                "yyyo",
            ),
            (
                "a reason whose end is missing",
                "[ULTRAWORK #4/50] x\nb\n\nWhen it is done and checked, end the mode with z",
                "yooo",
            ),
            ("an echo ends at a blank line", "[ULTRAWORK #4/50] x\n\nTask: y", "yoo"),
            ("an echo within a fence is shown", "```\n[ULTRAWORK #4/50]\n```", "sss"),
            ("carriage returns", "```\r\nx\r\n```\r\nb", "ssso"),
        ] {
            assert_eq!(kinds(text), want, "{what}");
        }
    }
}
