//! Whether a tool that changes a file succeeded, by its result. What is in the file is no evidence.

use super::{of_result, without_quotes};

/// Signs of a failure in what such a tool says.
const BAD_WORDS: [&str; 7] = [
    "failed to",
    "write failed",
    "operation failed",
    "permission denied",
    "read-only",
    "no such file",
    "directory not found",
];

/// What such tools say when all went well.
const GOOD_LINES: [&str; 4] = [
    "the file has been updated successfully",
    "file created successfully",
    "file written successfully",
    "file updated successfully",
];

/// The evidence in a result.
#[derive(Debug, Clone, Default)]
pub struct Evidence {
    /// Its structure names the changed file.
    pub names_file: bool,
    /// Its structure holds an error.
    pub holds_error: bool,
    /// What it says, where it is a text.
    pub text: String,
}

impl Evidence {
    /// Whether the change failed.
    pub fn is_failure(&self) -> bool {
        self.holds_error || !(self.names_file || says_success(&self.text)) && says_failure(&self.text)
    }
}

fn says_success(text: &str) -> bool {
    of_result(text).flat_map(str::lines).any(|line| {
        let line = line.trim().to_ascii_lowercase();
        GOOD_LINES.iter().any(|good| line.starts_with(good))
            || line.starts_with("the file ") && line.contains(" has been updated successfully")
            || line.contains("file state is current in your context")
    })
}

/// Whether a text tells of a failure to write.
pub fn says_failure(text: &str) -> bool {
    of_result(text).any(|part| {
        let part = without_quotes(&part.to_ascii_lowercase());
        BAD_WORDS.iter().any(|word| part.contains(word))
            || part.match_indices("error:").any(|(at, _)| !part[..at].ends_with(char::is_alphanumeric))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_structure_is_believed_before_the_text() {
        for (names_file, holds_error, text, failure) in [
            (true, false, "a error: in the content", false),
            (true, true, "", true),
            (false, false, "EACCES: permission denied, open '/x'", true),
            (false, false, "error: String to replace not found", true),
            (false, false, "String to replace not found in file", false),
            (false, false, "File created successfully at: /p/error: b", false),
            (false, false, "The file /a has been updated successfully.", false),
            (false, false, "note: file state is current in your context", false),
            (false, false, "it says \"failed to open\"", false),
            (false, false, "noerror: here", false),
            (false, false, "", false),
        ] {
            let evidence = Evidence { names_file, holds_error, text: text.to_owned() };
            assert_eq!(evidence.is_failure(), failure, "{evidence:?}");
        }
    }
}
