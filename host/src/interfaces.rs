//! Which interfaces this host has: the one table for `guests add`, `audit`, and what a failure to link is called.
//!
//! Pure. A component's imports and exports are names with versions in its binary. Of `omc:hook`, versions of one line (0.1.x)
//! fit both ways as long as nothing is used that the other side does not have; another line does not fit at all.

use std::fmt;

use crate::capability::wasi;

/// The package of our own interfaces.
const PACKAGE: &str = "omc:hook";
/// The version of `omc:hook` that this host has.
pub(crate) const VERSION: &str = "0.1.0";
/// What a guest exports.
const HANDLER: &str = "omc:hook/handler";

/// The interfaces of `omc:hook` and the capability that each one is; none is always granted.
pub(crate) const INTERFACES: &[(&str, Option<&str>)] = &[
    ("omc:hook/types", None),
    ("omc:hook/log", None),
    ("omc:hook/settings", None),
    ("omc:hook/state-lock", Some("omc")),
    ("omc:hook/transcript", Some("transcript")),
    ("omc:hook/environment", Some("env")),
    ("omc:hook/project-files", Some("read")),
    ("omc:hook/git", Some("git")),
    ("omc:hook/session-environment", Some("session-environment")),
];

/// What an import is to this host.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Import {
    /// Of `omc:hook`, always granted.
    Always,
    /// Of `omc:hook`, the interface of this capability.
    Capability(&'static str),
    /// Of WASI: what a language's runtime imports, asked for or not.
    Runtime,
    /// This host has no such interface.
    Unknown,
}

impl Import {
    /// Looks an import up. Of our own package the version is not looked at; see [`check`].
    pub(crate) fn of(import: &str) -> Self {
        let (bare, _) = split(import);
        match INTERFACES.iter().find(|(interface, _)| *interface == bare) {
            Some((_, None)) => Self::Always,
            Some((_, Some(capability))) => Self::Capability(capability),
            None if wasi::has_interface(import) => Self::Runtime,
            None => Self::Unknown,
        }
    }
}

/// Why a component does not fit this host.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Mismatch {
    /// It is built for another version of `omc:hook`.
    Version(String),
    /// It imports what this host does not have.
    MissingImport(String),
    /// It does not export what a guest exports.
    WrongWorld,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Version(theirs) if number(theirs) > number(VERSION) => write!(
                f,
                "it is built for `{PACKAGE}` {theirs}, and this host has {VERSION}: update omc-host, or rebuild the guest with an \
                 older `omc-guest`"
            ),
            Self::Version(theirs) => write!(
                f,
                "it is built for `{PACKAGE}` {theirs}, and this host has {VERSION}: rebuild the guest with a newer `omc-guest`"
            ),
            Self::MissingImport(import) => write!(f, "it imports `{import}`, which this host does not have"),
            Self::WrongWorld => write!(
                f,
                "it does not export `{HANDLER}@{VERSION}`, so there is nothing to call: build it for the world `{PACKAGE}/guest`"
            ),
        }
    }
}

/// Compares a component's imports and exports with what this host has, as far as names tell.
pub(crate) fn check(imports: &[String], exports: &[String]) -> Result<(), Mismatch> {
    // First the version: of another one, a missing interface is only a consequence.
    match versions(imports, exports).find(|theirs| line(theirs) != line(VERSION)) {
        Some(theirs) => Err(Mismatch::Version(theirs.to_owned())),
        None => match imports.iter().find(|import| Import::of(import) == Import::Unknown) {
            // One of our own package comes with a later version of the line.
            Some(import) if is_ours(import) && number(split(import).1) > number(VERSION) => {
                Err(Mismatch::Version(split(import).1.to_owned()))
            }
            Some(import) => Err(Mismatch::MissingImport(import.clone())),
            None if exports.iter().any(|export| split(export).0 == HANDLER) => Ok(()),
            None => Err(Mismatch::WrongWorld),
        },
    }
}

/// Why a component did not link: what its names tell, or that it is built for a later version of the same line, in which an
/// interface has more in it.
pub(crate) fn explain(imports: &[String], exports: &[String]) -> Option<Mismatch> {
    check(imports, exports).err().or_else(|| {
        let later = versions(imports, exports).find(|theirs| number(theirs) > number(VERSION));
        later.map(|theirs| Mismatch::Version(theirs.to_owned()))
    })
}

/// The version of `omc:hook` that a component is built for: the latest of those that it names.
pub(crate) fn built_for<'a>(imports: &'a [String], exports: &'a [String]) -> Option<&'a str> {
    versions(imports, exports).max_by_key(|version| number(version))
}

/// Whether a text is the name of an interface, without a version: `wasi:sockets/tcp`.
pub(crate) fn is_interface_name(text: &str) -> bool {
    let is_word =
        |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    text.split_once(':')
        .and_then(|(namespace, rest)| Some((namespace, rest.split_once('/')?)))
        .is_some_and(|(namespace, (package, interface))| [namespace, package, interface].into_iter().all(is_word))
}

/// Whether an import is of this interface, in whatever version.
pub(crate) fn is_of(import: &str, interface: &str) -> bool {
    split(import).0 == interface
}

/// The versions of `omc:hook` among some names.
fn versions<'a>(imports: &'a [String], exports: &'a [String]) -> impl Iterator<Item = &'a str> {
    imports.iter().chain(exports).filter(|name| is_ours(name)).map(|name| split(name).1)
}

fn is_ours(name: &str) -> bool {
    name.strip_prefix(PACKAGE).is_some_and(|rest| rest.starts_with('/'))
}

/// A name without its version, and the version.
fn split(name: &str) -> (&str, &str) {
    name.split_once('@').unwrap_or((name, ""))
}

/// The part of a version within which names match: `0.1` of `0.1.3`, `1` of `1.2.3`. A pre-release is a line of its own.
fn line(version: &str) -> &str {
    if version.contains('-') {
        return version;
    }
    let parts = if version.starts_with("0.") { 2 } else { 1 };
    version.match_indices('.').nth(parts - 1).map_or(version, |(end, _)| &version[..end])
}

/// A version as numbers, to be compared. What is no number is none.
fn number(version: &str) -> [u32; 3] {
    let mut parts = version.split(['.', '-', '+']).map(|part| part.parse().unwrap_or_default());
    std::array::from_fn(|_| parts.next().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    const FITS: [&str; 2] = ["omc:hook/types@0.1.0", "wasi:io/streams@0.2.6"];
    const GUEST: &[&str] = &["omc:hook/handler@0.1.0"];

    /// Imports, exports, and how they fit.
    type Case<'a> = (&'a [&'a str], &'a [&'a str], Result<(), Mismatch>);

    fn owned(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let version = |theirs: &str| Err(Mismatch::Version(theirs.to_owned()));
        let missing = |import: &str| Err(Mismatch::MissingImport(import.to_owned()));
        let cases: &[Case<'_>] = &[
            (&FITS, GUEST, Ok(())),
            (&[], GUEST, Ok(())),
            (&["omc:hook/types@0.1.9"], &["omc:hook/handler@0.1.9"], Ok(())),
            (&["omc:hook/types@0.2.0"], &["omc:hook/handler@0.2.0"], version("0.2.0")),
            (&["omc:hook/telepathy@0.2.0"], GUEST, version("0.2.0")),
            (&["omc:hook/types@1.1.0"], GUEST, version("1.1.0")),
            (&["omc:hook/types@0.0.3"], GUEST, version("0.0.3")),
            (&["omc:hook/types@0.1.0-rc.1"], GUEST, version("0.1.0-rc.1")),
            (&["omc:hook/types"], GUEST, version("")),
            (&["omc:hook/telepathy@0.1.4"], GUEST, version("0.1.4")),
            (&["omc:hook/telepathy@0.1.0"], GUEST, missing("omc:hook/telepathy@0.1.0")),
            (&["wasi:http/outgoing-handler@0.2.0"], GUEST, missing("wasi:http/outgoing-handler@0.2.0")),
            (&["wasi:io/streams@0.3.0"], GUEST, missing("wasi:io/streams@0.3.0")),
            (&["omc:hooks/types@0.1.0"], GUEST, missing("omc:hooks/types@0.1.0")),
            (&FITS, &[], Err(Mismatch::WrongWorld)),
            (&FITS, &["wasi:cli/run@0.2.0"], Err(Mismatch::WrongWorld)),
        ];
        for (imports, exports, expected) in cases {
            assert_eq!(&check(&owned(imports), &owned(exports)), expected, "{imports:?} {exports:?}");
        }
    }

    #[test]
    fn of_two_versions_both_are_named_and_what_to_do() {
        for (theirs, step) in
            [("0.2.0", "update omc-host"), ("0.1.7", "update omc-host"), ("0.0.9", "rebuild the guest")]
        {
            let text = Mismatch::Version(theirs.to_owned()).to_string();
            assert!(text.contains(theirs) && text.contains(VERSION) && text.contains(step), "{text}");
        }
    }

    #[test]
    fn a_later_version_of_the_line_explains_what_names_do_not() {
        let later = explain(&owned(&["omc:hook/types@0.1.7"]), &owned(GUEST));
        assert_eq!(later, Some(Mismatch::Version("0.1.7".to_owned())));
        assert_eq!(explain(&owned(&FITS), &owned(GUEST)), None);
    }

    #[test]
    fn the_table_is_that_of_the_package() {
        let wit = include_str!("../../wit/hook.wit");
        let imports: Vec<_> = wit
            .lines()
            .filter_map(|line| line.trim().strip_prefix("import ")?.strip_suffix(';'))
            .map(|interface| format!("{PACKAGE}/{interface}"))
            .collect();
        let table: Vec<_> = INTERFACES.iter().map(|(interface, _)| (*interface).to_owned()).collect();
        assert_eq!(table, imports);
        assert!(wit.contains(&format!("package {PACKAGE}@{VERSION};")));
    }
}
