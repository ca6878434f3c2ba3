//! Paths as guests write them: pure text, checked before anything is looked up.
//!
//! A path is relative to a descriptor. What could be read in two ways (empty, absolute, control characters) is refused here, so
//! that the walk (`tree.rs`) only sees names, `.` and `..`.

use super::bindings::filesystem::types::ErrorCode;
use super::error::FsError;
use super::usage::Reason;

/// Longest path of a guest, in bytes; also the longest that any folder may be away from its preopen.
///
/// The deepest state file is far below it, and the kernel's own limit (4,096 with the prefix that guests do not see) far above.
pub(super) const MAX_PATH_BYTES: usize = 1024;

/// Most components of a path: each one is a system call and an open handle during the walk.
pub(super) const MAX_COMPONENTS: usize = 32;

/// One component of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step<'a> {
    /// `.`
    Here,
    /// `..`
    Up,
    /// A name.
    Into(&'a str),
}

/// A path cut into its components.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Steps<'a> {
    pub(super) steps: Vec<Step<'a>>,
    /// It ended in a slash: what it names has to be a folder.
    pub(super) must_be_dir: bool,
}

/// Cuts a guest's path into components, or says why it cannot be used.
pub(super) fn parse(path: &str) -> Result<Steps<'_>, FsError> {
    if path.is_empty() {
        return Err(ErrorCode::NoEntry.into());
    }
    if path.len() > MAX_PATH_BYTES {
        return Err(ErrorCode::NameTooLong.into());
    }
    if path.starts_with('/') {
        return Err(FsError::refused(Reason::Escape, path));
    }
    let mut steps = Vec::new();
    for part in path.split('/') {
        let step = match part {
            // `a//b` is `a/b`.
            "" => continue,
            "." => Step::Here,
            ".." => Step::Up,
            name if is_plain(name) => Step::Into(name),
            _ => return Err(FsError::refused(Reason::BadName, path)),
        };
        if steps.len() == MAX_COMPONENTS {
            return Err(ErrorCode::NameTooLong.into());
        }
        steps.push(step);
    }
    Ok(Steps { steps, must_be_dir: path.ends_with('/') })
}

/// Whether a name may be used: control characters have no business in file names and much in terminals.
pub(super) fn is_plain(name: &str) -> bool {
    !name.chars().any(char::is_control)
}

/// `name` inside the folder at `base`; the preopen itself is the empty path.
pub(super) fn join(base: &str, name: &str) -> String {
    if base.is_empty() { name.to_owned() } else { format!("{base}/{name}") }
}

/// The folder that holds the entry at `path`, and the entry's name; `None` for the preopen itself.
pub(super) fn split(path: &str) -> Option<(&str, &str)> {
    match path.rsplit_once('/') {
        Some(split) => Some(split),
        None if path.is_empty() => None,
        None => Some(("", path)),
    }
}

/// The names of a path that was joined by [`join`].
pub(super) fn names(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::super::error::refusal_code;
    use super::*;

    #[test]
    fn a_path_is_cut_into_its_components() {
        let steps = |path| parse(path).map(|parsed| (parsed.steps, parsed.must_be_dir)).expect("a usable path");
        assert_eq!(steps("a"), (vec![Step::Into("a")], false));
        assert_eq!(steps("a//b/"), (vec![Step::Into("a"), Step::Into("b")], true));
        assert_eq!(steps("./a/../b"), (vec![Step::Here, Step::Into("a"), Step::Up, Step::Into("b")], false));
        assert_eq!(steps("."), (vec![Step::Here], false));
        // Three dots, or a backslash, are ordinary parts of a name here.
        assert_eq!(steps("..."), (vec![Step::Into("...")], false));
        assert_eq!(steps("..\\a"), (vec![Step::Into("..\\a")], false));
    }

    #[test]
    fn a_path_that_cannot_be_meant_is_refused_before_any_lookup() {
        let long = "a/".repeat(MAX_COMPONENTS + 1);
        let wide = "a".repeat(MAX_PATH_BYTES + 1);
        for (path, code) in [
            ("", ErrorCode::NoEntry),
            ("/", ErrorCode::NotPermitted),
            ("/etc/passwd", ErrorCode::NotPermitted),
            ("a\0b", ErrorCode::Invalid),
            ("a\nb", ErrorCode::Invalid),
            ("\u{1b}[2J", ErrorCode::Invalid),
            (&long, ErrorCode::NameTooLong),
            (&wide, ErrorCode::NameTooLong),
        ] {
            let told = match parse(path).expect_err(path) {
                FsError::Code(code) => code,
                FsError::Refused(reason, _) => refusal_code(reason),
                other => panic!("{path:?}: {other:?}"),
            };
            assert_eq!(told, code, "{path:?}");
        }
    }
}
