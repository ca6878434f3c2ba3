//! Small helpers on text: what of a long prompt is looked at, and what counts as a space or a letter.

use std::borrow::Cow;

/// Bytes looked at from each end of a prompt that is longer than both together.
///
/// People write their request before or after what they paste; 64 KiB from each end hold any request, and the bound keeps the
/// work on a prompt of 8 MiB (the most an event gives) as small as on one of 128 KiB.
pub(super) const END_BYTES: usize = 64 * 1024;

/// How far from a cut a line's end is looked for, in bytes: lines are cut only where they are longer than anybody types.
const LINE_SEARCH_BYTES: usize = 4 * 1024;

/// The part of the prompt that is looked at: all of it, or its two ends with a blank line between.
pub(super) fn excerpt(prompt: &str) -> Cow<'_, str> {
    if prompt.len() <= 2 * END_BYTES {
        return Cow::Borrowed(prompt);
    }
    let head = &prompt[..prompt.floor_char_boundary(END_BYTES)];
    let last_lines = head.ceil_char_boundary(head.len() - LINE_SEARCH_BYTES);
    let head = head[last_lines..].rfind('\n').map_or(head, |end| &head[..last_lines + end]);

    let tail = &prompt[prompt.ceil_char_boundary(prompt.len() - END_BYTES)..];
    let first_lines = &tail[..tail.floor_char_boundary(LINE_SEARCH_BYTES)];
    let tail = first_lines.find('\n').map_or(tail, |end| &tail[end + 1..]);

    Cow::Owned([head, "\n\n", tail].concat())
}

/// White space as the agents see it: Unicode's, and the byte order mark.
pub(super) fn is_space(character: char) -> bool {
    character.is_whitespace() || character == '\u{feff}'
}

/// The text without white space at both ends.
pub(super) fn trim(text: &str) -> &str {
    text.trim_matches(is_space)
}

/// A byte of an ASCII word. Deliberately not Unicode: `ralph로` contains the word `ralph`.
pub(super) fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// A letter of Korean, Japanese or Chinese text.
pub(super) fn is_cjk(character: char) -> bool {
    matches!(character, '\u{3005}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}' | '\u{1100}'..='\u{11ff}' | '\u{f900}'..='\u{faff}' | '\u{ff66}'..='\u{ff9f}')
}

/// `text` starts with `prefix`, whatever the case of its ASCII letters.
pub(super) fn starts_with_ignoring_case(text: &str, prefix: &str) -> bool {
    text.as_bytes().get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::{END_BYTES, excerpt};

    #[test]
    fn a_prompt_of_ordinary_length_is_looked_at_whole() {
        let prompt = "x".repeat(2 * END_BYTES);
        assert_eq!(excerpt(&prompt), prompt);
    }

    #[test]
    fn of_a_long_prompt_whole_lines_of_both_ends_are_looked_at() {
        let prompt = format!("first\n{}last", "middle 가\n".repeat(100_000));
        let seen = excerpt(&prompt);
        assert!(seen.starts_with("first\nmiddle 가\n"));
        assert!(seen.ends_with("middle 가\nlast"));
        assert!(seen.lines().all(|line| ["first", "middle 가", "", "last"].contains(&line)));
        assert!(seen.len() <= 2 * END_BYTES + 2);
    }

    #[test]
    fn a_long_line_is_cut_at_a_character() {
        let seen = excerpt(&"가".repeat(1_000_000)).into_owned();
        assert!(seen.len() <= 2 * END_BYTES + 2);
        assert!(seen.chars().all(|character| character == '가' || character == '\n'));
    }
}
