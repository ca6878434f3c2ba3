//! Which paths of a preopen a guest may read, write, or only pass through. Pure: no files are looked at.
//!
//! The longest granted prefix decides, so that a read-only folder inside a writable one stays read-only. What no grant covers
//! does not exist for the guest, but the folders on the way to a granted path can be passed, looked at and, where the grant is
//! read-write, created.

use super::path;

/// What a grant allows below its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reading and listing. Nothing changes, not even a modification time.
    ReadOnly,
    /// Reading, writing, creating and removing.
    ReadWrite,
}

/// Why a path cannot be granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a granted path is relative, in printable ASCII, with `/` between names and without `.` or `..`")]
pub struct BadGrantPath;

/// One granted path of a preopen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathGrant {
    path: String,
    access: Access,
}

impl PathGrant {
    /// A grant for everything at and below `path`; the empty path is the whole preopen.
    ///
    /// Names are ASCII, so that no file system can know them under a second spelling but by case, which is looked after.
    pub fn new(path: &str, access: Access) -> Result<Self, BadGrantPath> {
        let good = |name: &str| {
            !matches!(name, "" | "." | "..") && name.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic())
        };
        let fits = path.len() <= path::MAX_PATH_BYTES && path.split('/').count() <= path::MAX_COMPONENTS;
        if path.is_empty() || (fits && path.split('/').all(good)) {
            Ok(Self { path: path.to_owned(), access })
        } else {
            Err(BadGrantPath)
        }
    }

    /// The granted path, relative to the preopen.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// What is granted there.
    pub fn access(&self) -> Access {
        self.access
    }
}

/// What may be done at one path. The default is nothing.
#[expect(clippy::struct_excessive_bools, reason = "four rights, of which any may come with any other")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Rights {
    /// Look at it and go through it.
    pub(super) pass: bool,
    /// Read and list it.
    pub(super) read: bool,
    /// Change it.
    pub(super) write: bool,
    /// Create a folder of this name, because a writable grant is at it or below it.
    pub(super) make_dir: bool,
}

impl Rights {
    fn and(self, other: Self) -> Self {
        Self {
            pass: self.pass && other.pass,
            read: self.read && other.read,
            write: self.write && other.write,
            make_dir: self.make_dir && other.make_dir,
        }
    }
}

/// The grants of one preopen.
#[derive(Clone, Debug)]
pub(super) struct Grants {
    grants: Vec<PathGrant>,
    /// The usual case, a grant of the whole preopen and no other, needs no comparing of names.
    whole: bool,
}

impl Grants {
    pub(super) fn new(grants: Vec<PathGrant>) -> Self {
        let whole = !grants.is_empty() && grants.iter().all(|grant| grant.path.is_empty());
        Self { grants, whole }
    }

    /// What may be done at `path`.
    ///
    /// A file system that ignores case knows `RO/file` and `ro/file` as one file, and which file systems do is not for us to
    /// guess: the path is judged as written and with case folded away, and only what both allow is allowed.
    pub(super) fn rights(&self, path: &str) -> Rights {
        let exact = self.judge(path, |ours, theirs| ours == theirs);
        if self.whole { exact } else { exact.and(self.judge(path, same_folded)) }
    }

    /// Whether a grant lies strictly below `path`, so that moving the folder there would move what is granted.
    pub(super) fn any_below(&self, path: &str) -> bool {
        self.grants.iter().any(|grant| matches!(relation(&grant.path, path, same_folded), Relation::Below))
    }

    fn judge(&self, path: &str, same: impl Fn(&str, &str) -> bool + Copy) -> Rights {
        let mut rights = Rights::default();
        let mut longest: Option<(usize, Access)> = None;
        for grant in &self.grants {
            match relation(&grant.path, path, same) {
                Relation::Covers(names) => {
                    longest = match longest {
                        Some((other, _)) if other > names => longest,
                        // Of two grants for one path the narrower counts.
                        Some((other, Access::ReadOnly)) if other == names => longest,
                        _ => Some((names, grant.access)),
                    };
                }
                Relation::Below => {
                    rights.pass = true;
                    rights.make_dir |= grant.access == Access::ReadWrite;
                }
                Relation::Apart => {}
            }
        }
        if let Some((_, access)) = longest {
            rights.pass = true;
            rights.read = true;
            rights.write = access == Access::ReadWrite;
            rights.make_dir |= rights.write;
        }
        rights
    }
}

/// How a granted path lies to another one.
enum Relation {
    /// At it or above it, with this many names.
    Covers(usize),
    /// Strictly below it.
    Below,
    /// Elsewhere.
    Apart,
}

fn relation(grant: &str, path: &str, same: impl Fn(&str, &str) -> bool) -> Relation {
    let (mut ours, mut theirs) = (path::names(grant), path::names(path));
    let mut names = 0;
    loop {
        match (ours.next(), theirs.next()) {
            (None, _) => return Relation::Covers(names),
            (Some(_), None) => return Relation::Below,
            (Some(our), Some(their)) if same(our, their) => names += 1,
            _ => return Relation::Apart,
        }
    }
}

/// Whether some file system could take the two names for one.
fn same_folded(left: &str, right: &str) -> bool {
    if left.is_ascii() && right.is_ascii() {
        // The same, and what nearly all names are: each of them is judged on every step of every path.
        return left.eq_ignore_ascii_case(right);
    }
    folded(left).eq(folded(right))
}

/// A name without case and without what Apple's file systems ignore.
///
/// Upper case first, because that also takes apart what only folds to ASCII as a whole (`ﬁ`, `ſ`, `ß`).
fn folded(name: &str) -> impl Iterator<Item = char> {
    name.chars()
        .filter(
            |c| !matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'),
        )
        .flat_map(char::to_uppercase)
        .flat_map(char::to_lowercase)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grants(list: &[(&str, Access)]) -> Grants {
        Grants::new(
            list.iter().map(|&(path, access)| PathGrant::new(path, access).expect("a good grant path")).collect(),
        )
    }

    /// `-` nothing, `p` pass, `d` pass and create the folder, `r` read, `R` read and create the folder, `w` write.
    fn letter(rights: Rights) -> char {
        match (rights.pass, rights.read, rights.write, rights.make_dir) {
            (false, false, false, false) => '-',
            (true, false, false, false) => 'p',
            (true, false, false, true) => 'd',
            (true, true, false, false) => 'r',
            (true, true, false, true) => 'R',
            (true, true, true, true) => 'w',
            other => panic!("no such rights: {other:?}"),
        }
    }

    #[test]
    fn the_longest_granted_prefix_decides() {
        use Access::{ReadOnly, ReadWrite};
        type Case<'a> = (&'a [(&'a str, Access)], &'a [(&'a str, char)]);
        let cases: [Case<'_>; 9] = [
            (&[], &[("", '-'), ("a", '-')]),
            (&[("", ReadWrite)], &[("", 'w'), ("a", 'w'), ("a/b", 'w')]),
            (&[("", ReadOnly)], &[("", 'r'), ("a/b", 'r')]),
            (&[("a/b", ReadWrite)], &[("", 'd'), ("a", 'd'), ("a/b", 'w'), ("a/b/c", 'w'), ("a/c", '-'), ("ab", '-')]),
            (&[("a/b", ReadOnly)], &[("", 'p'), ("a", 'p'), ("a/b", 'r'), ("a/bc", '-')]),
            (
                &[("", ReadWrite), ("a/ro", ReadOnly)],
                &[("", 'w'), ("a", 'w'), ("a/ro", 'r'), ("a/ro/x", 'r'), ("a/rox", 'w')],
            ),
            (
                &[("", ReadOnly), ("a/rw", ReadWrite), ("a/rw/ro", ReadOnly)],
                &[("", 'R'), ("a", 'R'), ("a/rw", 'w'), ("a/rw/x", 'w'), ("a/rw/ro/x", 'r'), ("b", 'r')],
            ),
            (&[("a", ReadWrite), ("a", ReadOnly)], &[("a", 'r')]),
            (&[("a", ReadOnly), ("a", ReadWrite)], &[("a", 'r')]),
        ];
        for (list, expectations) in cases {
            for &(path, expected) in expectations {
                assert_eq!(letter(grants(list).rights(path)), expected, "`{path}` under {list:?}");
            }
        }
    }

    #[test]
    fn another_spelling_of_a_granted_name_gets_the_narrower_rights() {
        let list = grants(&[("", Access::ReadWrite), ("fixkits", Access::ReadOnly)]);
        for path in [
            "FIXKITS/a",
            "FixKits",
            "\u{fb01}xkits",
            "fix\u{212a}its",
            "fixkit\u{17f}",
            "fix\u{200c}kits",
            "fixkits\u{feff}",
        ] {
            assert_eq!(letter(list.rights(path)), 'r', "{path:?}");
        }
        assert_eq!(letter(list.rights("fixkit")), 'w');
        assert_eq!(letter(grants(&[("work", Access::ReadWrite)]).rights("WORK/a")), '-');
        assert_eq!(letter(grants(&[("", Access::ReadOnly), ("work", Access::ReadWrite)]).rights("WORK/a")), 'r');
    }

    #[test]
    fn a_folder_that_holds_a_granted_path_is_known() {
        let list = grants(&[("", Access::ReadWrite), ("a/b", Access::ReadOnly)]);
        for (path, expected) in [("", true), ("a", true), ("A", true), ("a/b", false), ("a/b/c", false), ("c", false)] {
            assert_eq!(list.any_below(path), expected, "{path}");
        }
    }

    #[test]
    fn a_grant_path_that_could_be_read_in_two_ways_is_refused() {
        for bad in
            ["/", "/a", "a/", "a//b", ".", "..", "a/../b", "./a", "é", "a\nb", &"a/".repeat(40), &"a".repeat(2000)]
        {
            assert_eq!(PathGrant::new(bad, Access::ReadOnly), Err(BadGrantPath), "{bad:?}");
        }
        for good in ["", "a", "a/b", ".hidden", "state/sessions", "two words"] {
            PathGrant::new(good, Access::ReadOnly).expect(good);
        }
    }
}
