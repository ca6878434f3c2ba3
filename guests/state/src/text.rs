//! Cutting text to a length, in the agents' measure.

/// Cuts `text` to at most `max` UTF-16 units (3 at least), with `...` at the end of one that was longer.
///
/// A character is never cut in two.
pub fn truncate_units(text: &str, max: usize) -> String {
    const DOTS: &str = "...";
    let mut units = 0;
    let mut keep = 0;
    for (start, character) in text.char_indices() {
        units += character.len_utf16();
        if units > max {
            return format!("{}{DOTS}", &text[..keep]);
        }
        if units + DOTS.len() <= max {
            keep = start + character.len_utf8();
        }
    }
    text.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_ends_with_dots_within_the_limit() {
        for (text, max, cut) in [
            ("", 5, ""),
            ("short", 5, "short"),
            ("longer", 5, "lo..."),
            ("파서를 고치자", 5, "파서..."),
            ("😀😀😀", 6, "😀😀😀"),
            ("😀😀😀", 5, "😀..."),
            ("a😀😀", 4, "a..."),
            ("abcdef", 3, "..."),
        ] {
            assert_eq!(truncate_units(text, max), cut, "{text:?} to {max}");
        }
    }

    #[test]
    fn no_length_makes_it_too_long() {
        let text = "a😀é파".repeat(20);
        for max in 3..120 {
            assert!(truncate_units(&text, max).encode_utf16().count() <= max);
        }
    }
}
