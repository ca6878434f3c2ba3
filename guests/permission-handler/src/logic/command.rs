//! From a shell's text to the plain words of one simple command.
//!
//! A bash parser says how the text is built; what follows holds for bash, zsh and POSIX shells alike, because which of them
//! reads the text is not known here. Every character of the text has to be accounted for: it is part of a word whose value is
//! certain, a plain space between two words, or the one form of here-document that is understood.

use rable::{Node, NodeKind};

use super::table::is_program;

/// Longest command that is looked at, in bytes: far above commands that people would call simple, with a commit message.
pub const MAX_COMMAND_BYTES: usize = 8 * 1024;

/// Most signs of the shell's grammar in front of a message: what has more is no simple command, and the parser need not find
/// out how deep it is nested.
const MAX_OPENERS: usize = 64;

/// One simple command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// Its words without their quotes, the program first.
    pub words: Vec<String>,
    /// The text that it is fed by a here-document, or that one of its words is made from.
    pub message: Option<String>,
}

/// Stands for the word that a here-document gives; no other word has a control character.
pub(super) const MESSAGE_WORD: &str = "\u{1}";

impl Command {
    /// The command, if the text is understood whole.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim_start_matches(' ');
        if text.len() > MAX_COMMAND_BYTES || text.chars().any(|c| c != '\n' && hides(c)) {
            return None;
        }
        let (text, message) = match text.split_once('\n') {
            None => (text.trim_end_matches(' '), None),
            Some((line, _)) => (text, Some(Message::find(text, line)?)),
        };
        let head = &text[..message.as_ref().map_or(text.len(), |message| message.at)];
        // One look for most commands; and reserved words, which nest too, can then stand nowhere.
        if !head.split(' ').next().is_some_and(is_program) {
            return None;
        }
        if head.matches(['(', '{', '[', '`', '<', ';', '&', '|']).count() > MAX_OPENERS {
            return None;
        }
        let [Node { kind: NodeKind::Command { assignments, words, redirects }, .. }] =
            &rable::parse(text, false).ok()?[..]
        else {
            return None;
        };
        if !assignments.is_empty() || words.is_empty() {
            return None;
        }

        // The parser counts characters, not bytes.
        let chars: Vec<char> = text.chars().collect();
        let slice = |from, to| chars.get(from..to).map(|chars| chars.iter().collect::<String>());
        let message_at = head.chars().count();
        let mut parsed = Self { words: Vec::new(), message: message.as_ref().map(|message| message.body.to_owned()) };
        let mut end = 0;
        for (at, word) in words.iter().enumerate() {
            let gap = slice(end, word.span.start)?;
            if !gap.chars().all(|c| c == ' ') || (gap.is_empty() && at > 0) {
                return None;
            }
            if message.as_ref().is_some_and(|message| message.is_word) && word.span.start == message_at {
                parsed.words.push(MESSAGE_WORD.to_owned());
                return (at + 1 == words.len() && redirects.is_empty()).then_some(parsed);
            }
            parsed.words.push(unquoted(&slice(word.span.start, word.span.end)?)?);
            end = word.span.end;
        }
        let gap = slice(end, message_at)?;
        let fed = match (&redirects[..], &message) {
            ([], None) => true,
            ([Node { kind: NodeKind::HereDoc { .. }, .. }], Some(message)) => !message.is_word,
            _ => false,
        };
        (fed && gap.chars().all(|c| c == ' ')).then_some(parsed)
    }
}

/// A text in a here-document that ends the command.
struct Message<'a> {
    /// Where the here-document, or the word that is made of it, begins, in bytes.
    at: usize,
    /// It is the word `"$(cat <<'WORD'`, and does not feed the command.
    is_word: bool,
    body: &'a str,
}

impl<'a> Message<'a> {
    /// The message that begins in the text's first line, if nothing but its end comes behind it.
    fn find(text: &'a str, line: &str) -> Option<Self> {
        const SUBSTITUTED: &str = "\"$(cat <<";
        if let Some(at) = line.find(SUBSTITUTED) {
            let (body, tail) = heredoc(&text[at + SUBSTITUTED.len()..], true)?;
            // What an old shell, which does not know here-documents in a substitution, would make of the body: it may end
            // the substitution at a parenthesis, but then the text must be inert within the double quotes; or else it must
            // not end it.
            let inert = !body.contains(['"', '$', '`', '\\']);
            let cannot_end = !body.contains(['(', ')', '\'', '"', '\\']);
            let closes = tail.trim_start_matches([' ', '\n']).trim_end_matches(' ') == ")\"";
            return (closes && (inert || cannot_end)).then_some(Self { at, is_word: true, body });
        }
        let at = line.rfind("<<")?;
        let rest = &text[at + 2..];
        let plain = || heredoc(rest, false).filter(|(body, _)| !body.contains(['$', '`', '\\']));
        let (body, tail) = heredoc(rest, true).or_else(plain)?;
        tail.chars().all(|c| c == '\n' || c == ' ').then_some(Self { at, is_word: false, body })
    }
}

/// Whether a character shows nothing, or something else than it is: white space other than the plain space, control and format
/// characters, fillers.
pub(super) fn hides(c: char) -> bool {
    /// Format characters and fillers, which `char` has no method for.
    const INVISIBLE: &[(char, char)] = &[
        ('\u{ad}', '\u{ad}'),
        ('\u{34f}', '\u{34f}'),
        ('\u{600}', '\u{605}'),
        ('\u{61c}', '\u{61c}'),
        ('\u{6dd}', '\u{6dd}'),
        ('\u{70f}', '\u{70f}'),
        ('\u{890}', '\u{891}'),
        ('\u{8e2}', '\u{8e2}'),
        ('\u{115f}', '\u{1160}'),
        ('\u{17b4}', '\u{17b5}'),
        ('\u{180b}', '\u{180f}'),
        ('\u{200b}', '\u{200f}'),
        ('\u{202a}', '\u{202e}'),
        ('\u{2060}', '\u{206f}'),
        ('\u{2800}', '\u{2800}'),
        ('\u{3164}', '\u{3164}'),
        ('\u{fe00}', '\u{fe0f}'),
        ('\u{feff}', '\u{feff}'),
        ('\u{ffa0}', '\u{ffa0}'),
        ('\u{fff0}', '\u{fffd}'),
        ('\u{110bd}', '\u{110bd}'),
        ('\u{110cd}', '\u{110cd}'),
        ('\u{13430}', '\u{1343f}'),
        ('\u{1bca0}', '\u{1bca3}'),
        ('\u{1d173}', '\u{1d17a}'),
        ('\u{e0000}', '\u{e0fff}'),
    ];
    c.is_control()
        || (c.is_whitespace() && c != ' ')
        || INVISIBLE.iter().any(|(first, last)| (*first..=*last).contains(&c))
}

/// The word's value, if every shell gives it the same one.
fn unquoted(raw: &str) -> Option<String> {
    let mut value = String::new();
    let mut before = None;
    let mut chars = raw.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\'' => loop {
                match chars.next()? {
                    '\'' => break,
                    '\n' => return None,
                    inside => value.push(inside),
                }
            },
            '"' => loop {
                match chars.next()? {
                    '"' => break,
                    '\n' | '$' | '`' | '\\' | '!' => return None,
                    inside => value.push(inside),
                }
            },
            // `@{u}` and `HEAD^{tree}`: without a comma or two dots no shell expands braces.
            '{' if matches!(before, Some('@' | '^')) => {
                value.push('{');
                loop {
                    match chars.next()? {
                        '}' => break,
                        inside if inside.is_ascii_alphanumeric() || inside == '-' || inside == '/' => {
                            value.push(inside);
                        }
                        _ => return None,
                    }
                }
                value.push('}');
            }
            // Home folders, and patterns of zsh, begin words; `=` and `:` begin one, too.
            '~' | '^' if matches!(before, None | Some('=' | ':' | '/' | '~')) => return None,
            // zsh reads `=cmd` as a path.
            '=' if before.is_none() => return None,
            '~' | '^' | '=' | '-' | '_' | '.' | '/' | ':' | ',' | '@' | '%' | '+' => value.push(c),
            c if c.is_alphanumeric() => value.push(c),
            _ => return None,
        }
        before = Some(c);
    }
    (!value.is_empty()).then_some(value)
}

/// The body of a here-document, from its word on, and what follows the line that ends it.
fn heredoc(text: &str, quoted: bool) -> Option<(&str, &str)> {
    let (line, body) = text.split_once('\n')?;
    let line = line.trim_start_matches(' ');
    let word = if quoted { line.strip_prefix('\'')?.strip_suffix('\'')? } else { line };
    let plain = word.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if !plain || word.is_empty() {
        return None;
    }
    let mut at = 0;
    for line in body.split_inclusive('\n') {
        if line.strip_suffix('\n').unwrap_or(line) == word {
            return Some((&body[..at], &body[at + word.len()..]));
        }
        at += line.len();
    }
    None
}
