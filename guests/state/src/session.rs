//! Ids of sessions, checked once so that they can be part of a path.

use std::fmt;

/// The id of a session: an ASCII letter or digit, then at most 255 letters, digits, `_` or `-`.
///
/// Agents write `unknown` when they have no id; that names nobody and is no id here, in any case of letters.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SessionId(String);

impl SessionId {
    /// Longest id, in bytes: what file systems accept as one name.
    const MAX_BYTES: usize = 256;

    /// The id, if it is one.
    pub fn parse(text: &str) -> Option<Self> {
        let mut bytes = text.bytes();
        let fits = text.len() <= Self::MAX_BYTES
            && bytes.next().is_some_and(|first| first.is_ascii_alphanumeric())
            && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
        (fits && !text.eq_ignore_ascii_case("unknown")).then(|| Self(text.to_owned()))
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_names_are_ids() {
        let longest = "a".repeat(256);
        for good in ["s1", "S", "0", "a-b_c", "3f0c9a52-6b1e-4d5a-9a57-1f2b6c7d8e90", &longest] {
            assert_eq!(SessionId::parse(good).as_ref().map(SessionId::as_str), Some(good));
        }
        let too_long = "a".repeat(257);
        for bad in [
            "", ".", "..", "../s1", "./s1", "s1/", "a/b", "a\\b", "-a", "_a", "s1\0", "s 1", "é", "s.1", "C:",
            "unknown", "Unknown", &too_long,
        ] {
            assert_eq!(SessionId::parse(bad), None, "{bad:?}");
        }
    }
}
