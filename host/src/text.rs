//! Text from strangers: bounded and inert before it reaches a log, a terminal or a model.

use std::fmt::Write as _;

/// Cuts a text to a number of UTF-16 units, at a character's end.
pub(crate) fn cut_to_units(mut text: String, units: usize) -> String {
    let mut left = units;
    let end = text.char_indices().find_map(|(at, letter)| match left.checked_sub(letter.len_utf16()) {
        Some(rest) => {
            left = rest;
            None
        }
        None => Some(at),
    });
    if let Some(end) = end {
        text.truncate(end);
    }
    text
}

/// Cuts a text to a number of bytes, at a character's end.
pub(crate) fn cut_to_bytes(text: &str, bytes: usize) -> &str {
    let mut end = bytes.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// The number of UTF-16 units of a text.
pub(crate) fn units(text: &str) -> usize {
    text.chars().map(char::len_utf16).sum()
}

/// A text for a terminal or a log line: control characters, and characters that reorder or hide others, are written out.
pub(crate) fn inert(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        if letter.is_control() || is_invisible(letter) {
            out.extend(letter.escape_unicode());
        } else {
            out.push(letter);
        }
    }
    out
}

/// JSON text with everything that [`inert`] writes out escaped in JSON's own way: the same value, fit for a terminal and for
/// readers that know more line ends than JSON does.
pub(crate) fn inert_json(json: String) -> String {
    // Its own ASCII control characters JSON has escaped already; line ends between values are for its reader.
    let acts = |letter: char| letter != '\n' && (letter.is_control() || is_invisible(letter));
    if !json.contains(acts) {
        return json;
    }
    let mut out = String::with_capacity(json.len());
    for letter in json.chars() {
        if acts(letter) {
            for unit in letter.encode_utf16(&mut [0; 2]) {
                // Writing to a string cannot fail.
                let _infallible = write!(out, "\\u{unit:04x}");
            }
        } else {
            out.push(letter);
        }
    }
    out
}

/// Characters that show nothing and change how others are shown: directions, joiners without use here, line separators, tags.
fn is_invisible(letter: char) -> bool {
    matches!(letter,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cutting_keeps_characters_whole() {
        assert_eq!(cut_to_units("a😀b".into(), 2), "a");
        assert_eq!(cut_to_units("a😀b".into(), 3), "a😀");
        assert_eq!(cut_to_units("a😀b".into(), 4), "a😀b");
        assert_eq!(cut_to_bytes("aéb", 2), "a");
        assert_eq!(cut_to_bytes("aéb", 99), "aéb");
        assert_eq!(units("a😀"), 3);
    }

    #[test]
    fn what_could_act_on_a_terminal_is_written_out() {
        assert_eq!(inert("a\u{1b}[31mb\n"), "a\\u{1b}[31mb\\u{a}");
        assert_eq!(inert("\u{202e}txt\u{200b}\u{9b}"), "\\u{202e}txt\\u{200b}\\u{9b}");
        assert_eq!(inert("한국어 é 😀"), "한국어 é 😀");
    }

    #[test]
    fn json_stays_the_same_value_when_it_is_made_inert() {
        let hostile = "\u{1b}[31m\n\u{7f}\u{85}\u{9b}2J\u{2028}\u{202e}\u{e0041} 한국어 é 😀";
        let json = inert_json(serde_json::to_string(hostile).unwrap());
        assert!(!json.contains(|letter: char| letter.is_control() || is_invisible(letter)), "{json:?}");
        assert!(json.contains("\\u009b2J\\u2028\\u202e\\udb40\\udc41 한국어 é 😀"), "{json}");
        assert_eq!(serde_json::from_str::<String>(&json).unwrap(), hostile);
        assert_eq!(inert_json("{\n  \"é\": 1\n}".to_owned()), "{\n  \"é\": 1\n}");
    }
}
