//! What is wrong with a configuration, said so that a person can mend it.
//!
//! A bad file never stops an event: its problem goes to the audit trail and to `doctor`, and the event goes on with
//! stricter values. Texts of files are cut and made inert here, because a project's file is hostile and a trail is read on
//! a terminal.

use std::fmt;
use std::path::{Path, PathBuf};

/// Most problems kept for one file; the trail needs the first few, and a hostile file could hold thousands.
const MAX_PROBLEMS_PER_FILE: usize = 16;

/// Longest piece of a file's text that a problem quotes, in characters; longer than any key we know.
const MAX_QUOTE_CHARS: usize = 64;

/// Longest path that a problem shows, in characters; enough for any that a person works with.
const MAX_PATH_CHARS: usize = 1_024;

/// One thing that is wrong with the host's surroundings.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Problem {
    /// The file it is in; `None` if it is about an environment variable.
    pub file: Option<PathBuf>,
    /// The line in the file, from 1; `None` if it is about the whole file.
    pub line: Option<usize>,
    /// What is wrong, as a fragment without a final period.
    pub what: String,
    /// What a person should do about it, as a fragment without a final period.
    pub next: &'static str,
}

impl Problem {
    /// A problem that no file has.
    pub(crate) fn of_environment(what: String, next: &'static str) -> Self {
        Self { file: None, line: None, what, next }
    }

    /// A problem of a whole file.
    pub(crate) fn of_file(file: &Path, what: String, next: &'static str) -> Self {
        Self { file: Some(file.to_owned()), line: None, what, next }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A repository names its own folders.
        let file = self.file.as_ref().map(|file| inert(&file.to_string_lossy(), MAX_PATH_CHARS));
        match (file, self.line) {
            (Some(file), Some(line)) => write!(f, "{file} line {line}: ")?,
            (Some(file), None) => write!(f, "{file}: ")?,
            (None, _) => {}
        }
        write!(f, "{}; {}", self.what, self.next)
    }
}

/// Collects the problems of one file, up to a bound.
#[derive(Debug)]
pub(crate) struct ProblemLog<'a> {
    file: &'a Path,
    text: &'a str,
    found: Vec<Problem>,
}

impl<'a> ProblemLog<'a> {
    pub(crate) fn new(file: &'a Path, text: &'a str) -> Self {
        Self { file, text, found: Vec::new() }
    }

    /// Notes a problem at a byte offset of the text.
    pub(crate) fn at(&mut self, offset: usize, what: impl Into<String>, next: &'static str) {
        if self.has_room() {
            let line = Some(line_of(self.text, offset));
            self.found.push(Problem { file: Some(self.file.to_owned()), line, what: what.into(), next });
        }
    }

    /// Notes a problem of the file as a whole.
    pub(crate) fn of_file(&mut self, what: impl Into<String>, next: &'static str) {
        if self.has_room() {
            self.found.push(Problem::of_file(self.file, what.into(), next));
        }
    }

    /// Whether another problem is wanted; says in the list that there are more as soon as none is.
    fn has_room(&mut self) -> bool {
        if self.found.len() == MAX_PROBLEMS_PER_FILE {
            self.found.push(Problem::of_file(
                self.file,
                "it has more problems".to_owned(),
                "mend the first ones first",
            ));
        }
        self.found.len() < MAX_PROBLEMS_PER_FILE
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    pub(crate) fn into_problems(self) -> Vec<Problem> {
        self.found
    }
}

/// The line of a byte offset, from 1.
fn line_of(text: &str, offset: usize) -> usize {
    text.as_bytes().iter().take(offset).filter(|&&byte| byte == b'\n').count() + 1
}

/// A piece of a file's text, in backticks, cut and inert.
pub(crate) fn quote(text: &str) -> String {
    inert(text, MAX_QUOTE_CHARS)
}

/// Text in backticks that cannot drive a terminal, hide or reorder what stands beside it.
fn inert(text: &str, max_chars: usize) -> String {
    let mut inert = String::from("`");
    for char in text.chars().take(max_chars) {
        match char {
            '`' => inert.push('\''),
            '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' => {
                inert.extend(char.escape_unicode());
            }
            _ if char.is_control() => inert.extend(char.escape_unicode()),
            _ => inert.push(char),
        }
    }
    if text.chars().nth(max_chars).is_some() {
        inert.push('…');
    }
    inert.push('`');
    inert
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_names_file_line_fault_and_next_step() {
        let mut log = ProblemLog::new(Path::new("/etc/x.toml"), "a = 1\nb = 2\n");
        log.at(6, "unknown key `b`", "remove it");
        assert_eq!(log.into_problems()[0].to_string(), "`/etc/x.toml` line 2: unknown key `b`; remove it");
    }

    #[test]
    fn a_file_full_of_faults_gives_a_bounded_list_that_says_so() {
        let mut log = ProblemLog::new(Path::new("x"), "");
        for _ in 0..10_000 {
            log.at(0, "bad", "mend it");
        }
        let problems = log.into_problems();
        assert_eq!(problems.len(), MAX_PROBLEMS_PER_FILE + 1);
        assert_eq!(problems[MAX_PROBLEMS_PER_FILE].what, "it has more problems");
    }

    #[test]
    fn quoted_text_cannot_drive_a_terminal_and_is_cut() {
        for (text, quoted) in [
            ("plain", "`plain`"),
            ("\u{1b}[2Jx", "`\\u{1b}[2Jx`"),
            ("a`b\n", "`a'b\\u{a}`"),
            ("\u{202e}exe", "`\\u{202e}exe`"),
            ("ü's", "`ü's`"),
        ] {
            assert_eq!(quote(text), quoted);
        }
        assert_eq!(quote(&"x".repeat(1_000)).chars().count(), MAX_QUOTE_CHARS + 3);
        let problem = Problem::of_file(Path::new("/repo/\u{1b}[2J/omc-host.toml"), "bad".to_owned(), "mend it");
        assert_eq!(problem.to_string(), "`/repo/\\u{1b}[2J/omc-host.toml`: bad; mend it");
    }
}
