//! What a tool's result says, and what the model is told about it. Pure: texts in, texts out.

pub mod command;
pub mod notes;
pub mod write;

/// A text's beginning and end, of `length` bytes each, for a look that costs the same however long it is.
pub fn ends(text: &str, length: usize) -> impl Iterator<Item = &str> {
    let (first, last) = if text.len() <= 2 * length {
        (text, "")
    } else {
        (&text[..text.floor_char_boundary(length)], &text[text.ceil_char_boundary(text.len() - length)..])
    };
    [first, last].into_iter().filter(|part| !part.is_empty())
}

/// The same where something that went wrong is looked for: tools say that first or last, and what a program prints in between
/// is its own matter.
pub(crate) fn of_result(text: &str) -> impl Iterator<Item = &str> {
    const LENGTH: usize = 64 * 1024;
    ends(text, LENGTH)
}

/// A text without what stands in quotation marks on one line: a quoted error is no error.
pub(crate) fn without_quotes(text: &str) -> String {
    /// Longest quotation, in bytes; a mark without its like within that is an apostrophe.
    const LONGEST: usize = 400;
    const MARKS: [(char, char); 4] = [('"', '"'), ('\'', '\''), ('\u{201c}', '\u{201d}'), ('\u{2018}', '\u{2019}')];
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((at, mark)) = rest.char_indices().find(|(_, c)| MARKS.iter().any(|(open, _)| open == c)) {
        let close = MARKS.iter().find(|(open, _)| *open == mark).map_or(mark, |(_, close)| *close);
        let inside = &rest[at + mark.len_utf8()..];
        let line = &inside[..inside.find('\n').unwrap_or(inside.len()).min(inside.floor_char_boundary(LONGEST))];
        let in_word = rest[..at].ends_with(char::is_alphanumeric) && matches!(mark, '\'' | '\u{2018}');
        kept.push_str(&rest[..at]);
        rest = match line.find(close).filter(|_| !in_word) {
            Some(end) => &inside[end + close.len_utf8()..],
            None => inside,
        };
    }
    kept + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_long_text_both_ends_are_looked_at() {
        assert_eq!(of_result("short").collect::<Vec<_>>(), ["short"]);
        assert_eq!(of_result("").count(), 0);
        let long = format!("begin{}end", "é".repeat(200_000));
        let parts: Vec<_> = of_result(&long).collect();
        assert!(parts.len() == 2 && parts[0].starts_with("begin") && parts[1].ends_with("end"));
        assert!(parts.iter().map(|part| part.len()).sum::<usize>() <= 128 * 1024);
    }

    #[test]
    fn quotations_go_and_apostrophes_stay() {
        for (text, kept) in [
            ("say \"failed to\" twice", "say  twice"),
            ("don't fail, it's fine", "dont fail, its fine"),
            ("'a' and \u{201c}b\u{201d}", " and "),
            ("open \"\nfailed\"", "open \nfailed"),
            ("", ""),
        ] {
            assert_eq!(without_quotes(text), kept, "{text}");
        }
    }
}
