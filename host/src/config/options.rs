//! One configuration file as it is written, before it is weighed against the others.
//!
//! The operator's, the user's and a project's file share this form. Nothing is resolved here: each value is absent or as
//! written, with its line. What cannot be understood becomes a [`Problem`] with its line and makes the file
//! [`Standing::Suspect`]: the rest of it still counts where it is stricter than the default, because one slip of the pen in
//! a file must not let loose what the same file holds back.

use super::limits::Limit;
use super::problem::{Problem, ProblemLog, quote};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

/// Longest name of a guest, in bytes; it names folders and fills a column of a table.
const MAX_GUEST_NAME_BYTES: usize = 64;

/// Powers that can be withheld from a guest, by the names its manifest requests them with.
pub const CAPABILITIES: &[&str] = &[
    "omc",
    "omc-user",
    "read",
    "transcript",
    "git",
    "env",
    "http",
    "session-environment",
    "allow",
    "update-input",
    "permission-updates",
    "halt",
];

/// How far a file is believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// All of it counts.
    Sound,
    /// It has faults, or others could have written it: what loosens something does not count.
    Suspect,
}

/// A value and the line it is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Written<T> {
    pub(crate) value: T,
    /// Offset in the file, for problems.
    pub(crate) offset: usize,
}

/// Limits as written.
pub(crate) type LimitOptions = BTreeMap<Limit, Written<u64>>;

/// A `[guests.NAME]` table as written.
#[derive(Debug, Default)]
pub(crate) struct GuestOptions {
    pub(crate) enabled: Option<Written<bool>>,
    pub(crate) required: Option<Written<bool>>,
    pub(crate) order: Option<Written<i32>>,
    pub(crate) limits: LimitOptions,
    pub(crate) withhold: BTreeSet<String>,
}

/// A file as written.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) origin: PathBuf,
    pub(crate) standing: Standing,
    pub(crate) limits: LimitOptions,
    pub(crate) guests: BTreeMap<String, GuestOptions>,
    pub(crate) log_payloads: Option<Written<bool>>,
}

impl Options {
    /// A file of which nothing is known but that it should be there.
    pub(crate) fn unreadable(origin: &Path) -> Self {
        Self {
            origin: origin.to_owned(),
            standing: Standing::Suspect,
            limits: LimitOptions::new(),
            guests: BTreeMap::new(),
            log_payloads: None,
        }
    }

    /// Reads the text of a file. It cannot fail: what is left out is in the log.
    pub(crate) fn parse(text: &str, origin: &Path, log: &mut ProblemLog<'_>) -> Self {
        let mut options = Self { standing: Standing::Sound, ..Self::unreadable(origin) };
        let (root, errors) = DeTable::parse_recoverable(text);
        for error in &errors {
            let offset = error.span().map_or(text.len(), |span| span.start);
            log.at(offset, format!("it is not valid TOML ({})", error.message()), "correct it");
        }
        for (key, value) in root.get_ref() {
            match name(key) {
                "limits" => options.limits = limits(value, log),
                "guests" => options.guests = guests(value, log),
                "log-payloads" => options.log_payloads = boolean(key, value, log),
                _ => unknown(key, log),
            }
        }
        if !log.is_empty() {
            options.standing = Standing::Suspect;
        }
        options
    }

    /// The value for a guest: its own, else the general one of the same file.
    pub(crate) fn limit(&self, guest: Option<&str>, limit: Limit) -> Option<Written<u64>> {
        let own = guest.and_then(|guest| self.guests.get(guest)?.limits.get(&limit));
        own.or_else(|| self.limits.get(&limit)).copied()
    }

    /// The options of a guest, if the file has some.
    pub(crate) fn guest(&self, guest: &str) -> Option<&GuestOptions> {
        self.guests.get(guest)
    }
}

fn guests(value: &Spanned<DeValue<'_>>, log: &mut ProblemLog<'_>) -> BTreeMap<String, GuestOptions> {
    let mut guests = BTreeMap::new();
    for (key, value) in entries("guests", value, log) {
        if is_guest_name(name(key)) {
            guests.insert(name(key).to_owned(), guest(key, value, log));
        } else {
            let what = format!("{} is no name of a guest", quote(name(key)));
            log.at(key.span().start, what, "use lower-case letters, digits and hyphens");
        }
    }
    guests
}

fn guest(key: &Spanned<DeString<'_>>, value: &Spanned<DeValue<'_>>, log: &mut ProblemLog<'_>) -> GuestOptions {
    let mut options = GuestOptions::default();
    for (key, value) in entries(name(key), value, log) {
        match name(key) {
            "enabled" => options.enabled = boolean(key, value, log),
            "required" => options.required = boolean(key, value, log),
            "order" => {
                let order = integer(value).and_then(|order| i32::try_from(order).ok());
                options.order = order.map(|order| written(order, &value.span()));
                if order.is_none() {
                    wrong_type(key, "a whole number of at most 32 bits", log);
                }
            }
            "limits" => options.limits = limits(value, log),
            "withhold" => options.withhold = withhold(key, value, log),
            _ => unknown(key, log),
        }
    }
    options
}

fn withhold(key: &Spanned<DeString<'_>>, value: &Spanned<DeValue<'_>>, log: &mut ProblemLog<'_>) -> BTreeSet<String> {
    let mut withheld = BTreeSet::new();
    let Some(list) = value.get_ref().as_array() else {
        wrong_type(key, "a list of capabilities", log);
        return withheld;
    };
    for item in list {
        match item.get_ref().as_str() {
            Some(capability) if CAPABILITIES.contains(&capability) => {
                withheld.insert(capability.to_owned());
            }
            Some(other) => {
                let what = format!("{} is no capability", quote(other));
                log.at(item.span().start, what, "use one of those in the configuration reference");
            }
            None => wrong_type(key, "a list of capabilities", log),
        }
    }
    withheld
}

fn limits(value: &Spanned<DeValue<'_>>, log: &mut ProblemLog<'_>) -> LimitOptions {
    let mut limits = LimitOptions::new();
    for (key, value) in entries("limits", value, log) {
        let Some(limit) = Limit::from_key(name(key)) else {
            unknown(key, log);
            continue;
        };
        let Some(number) = integer(value) else {
            wrong_type(key, "a whole number", log);
            continue;
        };
        let spec = limit.spec();
        let (min, max) = (i128::from(spec.min), i128::from(spec.max));
        if !(min..=max).contains(&number) {
            let what = format!("`{}` must be between {min} and {max}", spec.key);
            log.at(value.span().start, what, "correct it; meanwhile the nearest of these holds, or the default if that is less");
        }
        if let Ok(value_in_range) = u64::try_from(number.clamp(min, max)) {
            limits.insert(limit, written(value_in_range, &value.span()));
        }
    }
    limits
}

/// The entries of a table, none if it is something else.
fn entries<'a, 'i>(
    table: &str,
    value: &'a Spanned<DeValue<'i>>,
    log: &mut ProblemLog<'_>,
) -> impl Iterator<Item = (&'a Spanned<DeString<'i>>, &'a Spanned<DeValue<'i>>)> {
    let entries = value.get_ref().as_table();
    if entries.is_none() {
        log.at(value.span().start, format!("{} must be a table", quote(table)), "correct it");
    }
    entries.into_iter().flatten()
}

fn name<'a>(key: &'a Spanned<DeString<'_>>) -> &'a str {
    key.get_ref()
}

fn written<T>(value: T, span: &Range<usize>) -> Written<T> {
    Written { value, offset: span.start }
}

fn boolean(key: &Spanned<DeString<'_>>, value: &Spanned<DeValue<'_>>, log: &mut ProblemLog<'_>) -> Option<Written<bool>> {
    let boolean = value.get_ref().as_bool();
    if boolean.is_none() {
        wrong_type(key, "`true` or `false`", log);
    }
    boolean.map(|boolean| written(boolean, &value.span()))
}

/// A whole number; one too long for any type is as good as the largest.
fn integer(value: &Spanned<DeValue<'_>>) -> Option<i128> {
    let integer = value.get_ref().as_integer()?;
    let saturated = if integer.as_str().starts_with('-') { i128::MIN } else { i128::MAX };
    Some(i128::from_str_radix(integer.as_str(), integer.radix()).unwrap_or(saturated))
}

fn wrong_type(key: &Spanned<DeString<'_>>, wanted: &str, log: &mut ProblemLog<'_>) {
    log.at(key.span().start, format!("{} must be {wanted}", quote(name(key))), "correct it");
}

fn unknown(key: &Spanned<DeString<'_>>, log: &mut ProblemLog<'_>) {
    log.at(key.span().start, format!("unknown key {}", quote(name(key))), "remove it or correct its name");
}

fn is_guest_name(name: &str) -> bool {
    name.len() <= MAX_GUEST_NAME_BYTES
        && name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
}

/// What reading a configuration file gave: its options, if there is such a file, and its problems.
#[derive(Debug, Default)]
pub(crate) struct Loaded {
    pub(crate) options: Option<Options>,
    pub(crate) problems: Vec<Problem>,
}
