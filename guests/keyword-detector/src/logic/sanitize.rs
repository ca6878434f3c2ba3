//! From a prompt to the words in which a keyword may be looked for, and to the request that is repeated to the model.
//!
//! Two texts come out. The *request* is the prompt without our own words come back ([`Kind::System`]): what the user said and
//! showed. The *clean* text also lacks what the user only shows: fenced and inline code, quotes, tables, diffs, tags with their
//! content, comments, addresses and paths. Every step is one pass; no input makes a step look at a byte more often than a
//! constant.

use std::collections::BTreeMap;

use super::{
    lines::{Kind, Lines},
    text::{is_space, is_word_byte},
    work,
};

/// Stands for a thing that was hidden within a line: code, a path, an address. A noun, so to say.
pub(super) const THING: char = '\u{fffc}';

/// Longest name of a tag, in bytes; longer ones are no markup that anybody writes.
const MAX_TAG_NAME: usize = 64;

/// Longest run of back-ticks around inline code.
const MAX_TICKS: usize = 8;

/// The two texts of a prompt.
#[derive(Debug, PartialEq)]
pub(super) struct Sanitized {
    /// The user's words as written. Spaces are collapsed, curly apostrophes within words are straight.
    pub(super) clean: String,
    /// The same in lower case (ASCII only, so that positions are the same).
    pub(super) lower: String,
    /// The prompt without our own words.
    pub(super) request: String,
}

/// Takes a prompt apart.
pub(super) fn sanitize(prompt: &str) -> Sanitized {
    let mut request = String::with_capacity(prompt.len());
    let mut own = String::with_capacity(prompt.len());
    for (line, kind) in Lines::new(prompt) {
        if kind != Kind::System {
            request.push_str(line);
        }
        if kind == Kind::Own {
            own.push_str(line);
        }
        request.push('\n');
        own.push('\n');
    }
    let clean = without(&own, &hidden_spans(&own));
    let lower = clean.to_ascii_lowercase();
    Sanitized { clean, lower, request }
}

/// A stretch of a text that is hidden.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Span {
    start: usize,
    end: usize,
    /// What takes its place: [`THING`], or a space for what is nothing in the sentence.
    substitute: char,
}

fn hidden_spans(text: &str) -> Vec<Span> {
    let mut spans = inline_code(text);
    let comments = comments(text);
    let mut hidden = spans.clone();
    hidden.extend(&comments);
    hidden.sort_unstable();
    spans.extend(tags(text, &hidden));
    spans.extend(comments);
    addresses_and_paths(text, &mut spans);
    spans.sort_unstable();
    spans
}

/// The text with its spans (sorted, they may overlap) replaced and its white space collapsed.
fn without(text: &str, spans: &[Span]) -> String {
    let mut out = Collapsed(String::with_capacity(text.len()));
    let mut at = 0;
    for span in spans {
        if span.start >= at {
            out.push_text(&text[at..span.start]);
            if text[span.start..span.end].contains('\n') { out.push('\n') } else { out.push(span.substitute) }
        }
        at = at.max(span.end);
    }
    out.push_text(&text[at..]);
    out.0
}

/// A text in which runs of spaces are one space, and the apostrophes of words are straight.
struct Collapsed(String);

impl Collapsed {
    fn push_text(&mut self, text: &str) {
        let mut rest = text.chars().peekable();
        while let Some(character) = rest.next() {
            let in_word = |c: &char| c.is_ascii_alphabetic();
            if character == '’'
                && self.0.chars().next_back().is_some_and(|c| in_word(&c))
                && rest.peek().is_some_and(in_word)
            {
                self.0.push('\'');
            } else {
                self.push(character);
            }
        }
    }

    fn push(&mut self, character: char) {
        match character {
            '\n' => self.0.push('\n'),
            _ if is_space(character) || character.is_control() => {
                if !self.0.ends_with([' ', '\n']) && !self.0.is_empty() {
                    self.0.push(' ');
                }
            }
            _ => self.0.push(character),
        }
    }
}

/// Inline code: a run of back-ticks and the next run of the same length in the line.
fn inline_code(text: &str) -> Vec<Span> {
    let mut spans = Vec::new();
    let mut start_of_line = 0;
    for line in text.split_inclusive('\n') {
        work::spend(line.len());
        let mut runs = Vec::new();
        let mut at = 0;
        while let Some(offset) = line[at..].find('`') {
            let start = at + offset;
            let length = line[start..].bytes().take_while(|byte| *byte == b'`').count();
            runs.push((start, length));
            at = start + length;
        }
        // The next run of the same length, for each run, from right to left.
        let mut next_of_length = [usize::MAX; MAX_TICKS + 1];
        let mut partner = vec![usize::MAX; runs.len()];
        for (index, (_, length)) in runs.iter().enumerate().rev() {
            if let Some(next) = next_of_length.get_mut(*length) {
                partner[index] = *next;
                *next = index;
            }
        }
        let mut index = 0;
        while index < runs.len() {
            let Some((end, length)) = runs.get(partner[index]).copied() else {
                index += 1;
                continue;
            };
            let (start, end) = (start_of_line + runs[index].0, start_of_line + end + length);
            spans.push(Span { start, end, substitute: THING });
            index = partner[index] + 1;
        }
        start_of_line += line.len();
    }
    spans
}

/// HTML comments. One that is never closed hides the rest of its line.
fn comments(text: &str) -> Vec<Span> {
    let mut spans = Vec::new();
    let mut at = 0;
    // Once no end was found from some place on, none will be found later.
    let mut has_end = true;
    while let Some(offset) = text[at..].find("<!--") {
        let start = at + offset;
        let body = start + "<!--".len();
        let close = has_end.then(|| text[body..].find("-->")).flatten();
        has_end = close.is_some();
        let line_end = || text[body..].find('\n').map_or(text.len(), |length| body + length);
        let end = close.map_or_else(line_end, |length| body + length + "-->".len());
        spans.push(Span { start, end, substitute: ' ' });
        work::spend(end - at);
        at = end;
    }
    spans
}

/// Tags: pairs of the same name with all between them, and self-closing ones. Tags within `hidden` (sorted) are none.
fn tags(text: &str, hidden: &[Span]) -> Vec<Span> {
    let mut spans = Vec::new();
    let mut open: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    let mut hidden = hidden.iter().peekable();
    let mut at = 0;
    while let Some(offset) = text[at..].find('<') {
        let start = at + offset;
        work::spend(start + 1 - at);
        at = start + 1;
        while hidden.next_if(|span| span.end <= start).is_some() {}
        if hidden.peek().is_some_and(|span| span.start <= start) {
            continue;
        }
        let closing = text[at..].starts_with('/');
        let name_start = at + usize::from(closing);
        let name_length =
            text[name_start..].bytes().take_while(|byte| is_word_byte(*byte) || b"-:.".contains(byte)).count();
        work::spend(name_length);
        let name = &text[name_start..name_start + name_length];
        if name_length > MAX_TAG_NAME || !name.starts_with(|first: char| first.is_ascii_alphabetic()) {
            continue;
        }
        // A `<` ends the search, so that no byte is searched twice.
        let attributes = name_start + name_length;
        let Some(length) = text[attributes..].find(['<', '>']) else { break };
        work::spend(length);
        at = attributes + length;
        let inside = &text[attributes..at];
        let well_formed = inside.is_empty() || inside.starts_with(|first: char| first.is_whitespace() || first == '/');
        if text[at..].starts_with('<') || !well_formed {
            continue;
        }
        at += 1;
        if closing {
            if let Some(opened) = open.get_mut(name).and_then(Vec::pop) {
                spans.push(Span { start: opened, end: at, substitute: ' ' });
            }
        } else if inside.ends_with('/') {
            spans.push(Span { start, end: at, substitute: ' ' });
        } else {
            open.entry(name).or_default().push(start);
        }
    }
    spans
}

/// Addresses (`http://…`) and paths (`dir/name.ext`).
fn addresses_and_paths(text: &str, spans: &mut Vec<Span>) {
    let mut before = '\n';
    let mut next = 0;
    for (at, character) in text.char_indices() {
        if at < next {
            continue;
        }
        let rest = &text[at..];
        let length = if character == 'h' && (rest.starts_with("http://") || rest.starts_with("https://")) {
            rest.find(|c: char| is_space(c) || ")>]".contains(c)).unwrap_or(rest.len())
        } else if starts_token(before) {
            path_length(rest)
        } else {
            0
        };
        work::spend(length + 1);
        if length > 0 {
            spans.push(Span { start: at, end: at + length, substitute: THING });
            next = at + length;
        }
        before = character;
    }
}

/// A path may start after this: at a line's start or after a space, a quote, a back-tick, `(` or `@`.
fn starts_token(before: char) -> bool {
    matches!(before, '"' | '\'' | '`' | '(' | '@' | '“' | '‘' | '「') || is_space(before)
}

/// Letters of directories and of a file's stem: ASCII words, `.`, `-`, and the scripts people name files in.
fn is_path_character(character: char) -> bool {
    character.is_ascii_alphanumeric()
        || matches!(character, '_' | '.' | '-' | '~')
        || matches!(character, '\u{3000}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}' | '\u{0400}'..='\u{04ff}'
            | '\u{0600}'..='\u{06ff}' | '\u{0900}'..='\u{097f}' | '\u{0e00}'..='\u{0e7f}' | '\u{1000}'..='\u{109f}')
            && !is_space(character)
            && !matches!(character, '\u{3001}' | '\u{3002}' | '\u{300c}' | '\u{300d}')
}

/// The length of the path at the start of the text, 0 if there is none: directories, then `stem.ext` or an ASCII name.
///
/// Extensions and names without one are ASCII, so that Korean or Japanese words glued to a path survive.
fn path_length(text: &str) -> usize {
    let run = text.find(|c: char| c != '/' && !is_path_character(c)).unwrap_or(text.len());
    work::spend(run);
    let run = &text[..run];
    // The last slash with something before it that is a directory's name, and an ASCII name after it.
    let mut end = 0;
    let mut component_start = usize::from(run.starts_with('/'));
    let mut directories = 0;
    loop {
        let component = run[component_start..].find('/').map(|length| &run[component_start..component_start + length]);
        let Some(component) = component else { break };
        if component.is_empty() {
            break;
        }
        directories += 1;
        component_start += component.len() + 1;
        end = component_start;
    }
    if directories == 0 {
        return 0;
    }
    let last = &run[end..];
    let last = last.split('/').next().unwrap_or_default();
    match last_component_length(last) {
        // `lib/autopilot/` is the directory `lib` and the name `autopilot`; `lib/` alone is no path.
        0 if directories > 1 => end - 1,
        0 => 0,
        length => end + length,
    }
}

fn last_component_length(last: &str) -> usize {
    let mut with_extension = last.match_indices('.').filter(|(dot, _)| *dot > 0).filter_map(|(dot, _)| {
        let extension = last[dot + 1..].bytes().take_while(|byte| is_word_byte(*byte)).count();
        (extension > 0).then_some(dot + 1 + extension)
    });
    let plain = last.bytes().take_while(|byte| is_word_byte(*byte) || matches!(byte, b'.' | b'-' | b'~')).count();
    with_extension.next_back().unwrap_or(0).max(plain)
}

#[cfg(test)]
mod tests {
    use super::{THING, sanitize};

    fn clean(text: &str) -> String {
        sanitize(text).clean.trim_end_matches('\n').replace(THING, "#")
    }

    #[test]
    fn what_a_user_only_shows_is_hidden() {
        for (what, text, want) in [
            ("inline code", "the `ralph` word", "the # word"),
            ("code with a tick in it", "the ``a ` ralph`` word", "the # word"),
            ("a tick that is never closed", "the `ralph word", "the `ralph word"),
            ("ticks of two lines", "the ` ralph\nword ` b", "the ` ralph\nword ` b"),
            ("a comment", "a <!-- ralph --> b", "a b"),
            ("a comment over lines", "a <!-- ralph\nx --> b", "a \nb"),
            ("a comment that is never closed", "a <!-- ralph\nb", "a \nb"),
            ("a tag with content", "<note x=\"1\">ralph</note> b", "b"),
            ("a tag over lines", "<note>\nralph\n</note>\nb", "\n\nb"),
            ("tags within tags", "<a><a>x</a>ralph</a> b", "b"),
            ("tags that do not match", "<a>ralph</b> c", "<a>ralph</b> c"),
            ("names differ by case", "<A>ralph</a> c", "<A>ralph</a> c"),
            ("a tag that closes itself", "a <img alt=\"ralph\"/> b", "a b"),
            ("less than", "if a < b ralph > c", "if a < b ralph > c"),
            ("tags in code", "`<a>` ralph `</a>`", "# ralph #"),
            ("an address", "see https://x.dev/ralph?a=b now", "see # now"),
            ("an address in brackets", "[x](https://x.dev/ralph) now", "[x](#) now"),
            ("a path", "open lib/autopilot/start.rs now", "open # now"),
            ("an absolute path", "open /opt/ralph/x now", "open # now"),
            ("a path with dots", "open ../ralph/x.tar.gz now", "open # now"),
            ("a folder", "open lib/autopilot/ now", "open #/ now"),
            ("a path with a note's sign", "see @src/ralph.rs now", "see @# now"),
            ("a path in Korean", "문서/랄프.md를 열어", "#를 열어"),
            ("words glued to a path", "src/ralph에서 고쳐", "#에서 고쳐"),
            ("a file name alone", "cat autopilot.rs", "cat autopilot.rs"),
            ("a slash command", "/ralph x", "/ralph x"),
            ("one folder alone", "autopilot/ x", "autopilot/ x"),
            ("a fence", "a\n```\nralph\n```\nb", "a\n\n\n\nb"),
            ("a quote", "> ralph\nb", "\nb"),
        ] {
            assert_eq!(clean(text), want, "{what}");
        }
    }

    #[test]
    fn spaces_collapse_and_apostrophes_are_straight() {
        assert_eq!(clean("a \t\u{a0}\u{3000} b\nc\u{1b}d’s ’x’"), "a b\nc d's ’x’");
    }

    #[test]
    fn the_request_keeps_what_is_shown_and_drops_our_own_words() {
        let got = sanitize("[ULTRAWORK #1/50] x\nTask: y\nralph fix `a` in src/b.rs\n> quoted\n<user>\nz\n</user>");
        assert_eq!(got.request.trim(), "ralph fix `a` in src/b.rs\n> quoted");
    }
}
