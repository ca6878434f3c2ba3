//! One configuration file as it is written, before it is weighed against the others.
//!
//! The operator's, the user's and a project's file share this form. Nothing is resolved here: each value is absent or as
//! written, with its line. What cannot be understood becomes a [`Problem`] with its line and makes the file
//! [`Standing::Suspect`]: the rest of it still counts where it is stricter than the default, because one slip of the pen in
//! a file must not let loose what the same file holds back.

use super::limits::Limit;
use super::problem::{Problem, ProblemLog, quote};
use crate::signature::Key;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

/// Longest name of a guest, in bytes; it names folders and fills a column of a table.
const MAX_GUEST_NAME_BYTES: usize = 64;

/// Powers that can be withheld from a guest, by the names its manifest requests them with, and what each is.
pub const CAPABILITIES: &[(&str, &str)] = &[
    ("omc", "the project's `.omc`"),
    ("omc-user", "the user's own `~/.omc`"),
    ("read", "reading files of the project, of the agent and of the user"),
    ("transcript", "the end of the session's transcript"),
    ("git", "facts about the repository"),
    ("env", "named environment variables"),
    ("http", "requests to named hosts"),
    ("session-environment", "variables for the session's later commands"),
    ("allow", "letting something happen without a question"),
    ("update-input", "replacing a tool's input"),
    ("permission-updates", "changing the session's permission rules"),
    ("halt", "ending the agent's turn"),
];

/// How far a file is believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// All of it counts.
    Sound,
    /// It has faults, or others could have written it: what loosens something does not count.
    Suspect,
}

/// Limits as written.
pub(crate) type LimitOptions = BTreeMap<Limit, u64>;

/// A `[guests.NAME]` table as written.
#[derive(Debug, Default)]
pub(crate) struct GuestOptions {
    pub(crate) enabled: Option<bool>,
    pub(crate) required: Option<bool>,
    pub(crate) order: Option<i32>,
    pub(crate) limits: LimitOptions,
    pub(crate) withhold: BTreeSet<&'static str>,
}

impl GuestOptions {
    pub(crate) fn is_required(&self) -> bool {
        self.required == Some(true)
    }

    /// Whether it takes something away from the guest.
    pub(crate) fn narrows(&self) -> bool {
        self.enabled == Some(false) || !self.limits.is_empty() || !self.withhold.is_empty()
    }
}

/// `[telemetry]` as written.
#[derive(Debug, Default)]
pub(crate) struct TelemetryOptions {
    pub(crate) endpoint: Option<String>,
    pub(crate) texts: Option<bool>,
    pub(crate) headers_file: Option<PathBuf>,
}

/// A file as written.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) origin: PathBuf,
    pub(crate) standing: Standing,
    pub(crate) limits: LimitOptions,
    pub(crate) guests: BTreeMap<String, GuestOptions>,
    pub(crate) log_payloads: Option<bool>,
    /// Keys whose signatures are believed.
    pub(crate) trusted_keys: Vec<Key>,
    /// Keys of which one must have signed every guest of somebody else.
    pub(crate) require_signature: Option<Vec<Key>>,
    pub(crate) telemetry: TelemetryOptions,
    pub(crate) deny_channel: Option<DenyChannel>,
}

/// How the refusal of a tool reaches the agent.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum DenyChannel {
    /// In the answer, with exit status 0.
    #[default]
    Json,
    /// In the answer, and as exit status 2 with the reason on standard error.
    Both,
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
            trusted_keys: Vec::new(),
            require_signature: None,
            telemetry: TelemetryOptions::default(),
            deny_channel: None,
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
                "trusted-keys" => options.trusted_keys = keys(key, value, log),
                // What cannot be read is required all the same: no guest has its signature.
                "require-signature" => options.require_signature = Some(keys(key, value, log)),
                "telemetry" => options.telemetry = telemetry(value, log),
                "deny-channel" => options.deny_channel = deny_channel(key, value, log),
                _ => unknown(key, log),
            }
        }
        if !log.is_empty() {
            options.standing = Standing::Suspect;
        }
        options
    }

    /// The value for a guest: its own, else the general one of the same file.
    pub(crate) fn limit(&self, guest: Option<&str>, limit: Limit) -> Option<u64> {
        let own = guest.and_then(|guest| self.guests.get(guest)?.limits.get(&limit));
        own.or_else(|| self.limits.get(&limit)).copied()
    }
}

pub(super) fn keys(key: &Spanned<DeString<'_>>, value: &Spanned<DeValue<'_>>, log: &mut ProblemLog<'_>) -> Vec<Key> {
    let Some(list) = value.get_ref().as_array() else {
        wrong_type(key, "a list of public keys", log);
        return Vec::new();
    };
    let read = list.iter().filter_map(|item| {
        let read = item.get_ref().as_str().and_then(Key::parse);
        if read.is_none() {
            let what = "this is no public key of minisign";
            log.at(item.span().start, what, "write the second line of the `.pub` file, which begins with `RW`");
        }
        read
    });
    read.collect()
}

fn telemetry(value: &Spanned<DeValue<'_>>, log: &mut ProblemLog<'_>) -> TelemetryOptions {
    let mut options = TelemetryOptions::default();
    for (key, value) in entries("telemetry", value, log) {
        match name(key) {
            "endpoint" => options.endpoint = text(key, value, log),
            "texts" => options.texts = boolean(key, value, log),
            "headers-file" => {
                options.headers_file = text(key, value, log).map(PathBuf::from).filter(|path| path.is_absolute());
                if options.headers_file.is_none() {
                    wrong_type(key, "an absolute path", log);
                }
            }
            _ => unknown(key, log),
        }
    }
    options
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
                options.order = order;
                if order.is_none() {
                    wrong_type(key, "a whole number of at most 32 bits", log);
                }
            }
            "limits" => options.limits = limits(value, log),
            "withhold" => options.withhold = withhold(key, value, log),
            _ => unknown(key, log),
        }
    }
    if options.required == Some(true) && options.enabled == Some(false) {
        let what = format!("guest {} is both required and disabled; it stays required", quote(name(key)));
        log.at(key.span().start, what, "remove one of the two");
        options.enabled = None;
    }
    options
}

fn withhold(
    key: &Spanned<DeString<'_>>,
    value: &Spanned<DeValue<'_>>,
    log: &mut ProblemLog<'_>,
) -> BTreeSet<&'static str> {
    let mut withheld = BTreeSet::new();
    let Some(list) = value.get_ref().as_array() else {
        wrong_type(key, "a list of capabilities", log);
        return withheld;
    };
    for item in list {
        match item.get_ref().as_str() {
            Some(text) => {
                let known = CAPABILITIES.iter().map(|(capability, _)| *capability).find(|known| *known == text);
                if known.is_none() {
                    let what = format!("{} is no capability", quote(text));
                    log.at(item.span().start, what, "use one of those in the configuration reference");
                }
                withheld.extend(known);
            }
            None => wrong_type(key, "a list of capabilities", log),
        }
    }
    withheld
}

pub(super) fn limits(value: &Spanned<DeValue<'_>>, log: &mut ProblemLog<'_>) -> LimitOptions {
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
            log.at(
                value.span().start,
                what,
                "correct it; meanwhile the nearest of these holds, or the default if that is less",
            );
        }
        if let Ok(value_in_range) = u64::try_from(number.clamp(min, max)) {
            limits.insert(limit, value_in_range);
        }
    }
    limits
}

/// The entries of a table, none if it is something else.
fn entries<'a, 'i>(
    table: &str,
    value: &'a Spanned<DeValue<'i>>,
    log: &mut ProblemLog<'_>,
) -> impl Iterator<Item = (&'a Spanned<DeString<'i>>, &'a Spanned<DeValue<'i>>)> + use<'a, 'i> {
    let entries = value.get_ref().as_table();
    if entries.is_none() {
        log.at(value.span().start, format!("{} must be a table", quote(table)), "correct it");
    }
    entries.into_iter().flatten()
}

pub(super) fn name<'a>(key: &'a Spanned<DeString<'_>>) -> &'a str {
    key.get_ref()
}

fn deny_channel(
    key: &Spanned<DeString<'_>>,
    value: &Spanned<DeValue<'_>>,
    log: &mut ProblemLog<'_>,
) -> Option<DenyChannel> {
    match value.get_ref().as_str() {
        Some("json") => Some(DenyChannel::Json),
        Some("both") => Some(DenyChannel::Both),
        _ => {
            wrong_type(key, "`\"json\"` or `\"both\"`", log);
            None
        }
    }
}

fn boolean(key: &Spanned<DeString<'_>>, value: &Spanned<DeValue<'_>>, log: &mut ProblemLog<'_>) -> Option<bool> {
    let boolean = value.get_ref().as_bool();
    if boolean.is_none() {
        wrong_type(key, "`true` or `false`", log);
    }
    boolean
}

fn text(key: &Spanned<DeString<'_>>, value: &Spanned<DeValue<'_>>, log: &mut ProblemLog<'_>) -> Option<String> {
    let text = value.get_ref().as_str().map(str::to_owned);
    if text.is_none() {
        wrong_type(key, "a text", log);
    }
    text
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

pub(super) fn unknown(key: &Spanned<DeString<'_>>, log: &mut ProblemLog<'_>) {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> (Options, Vec<String>) {
        let origin = Path::new("config.toml");
        let mut log = ProblemLog::new(origin, text);
        let options = Options::parse(text, origin, &mut log);
        (options, log.into_problems().iter().map(ToString::to_string).collect())
    }

    #[test]
    fn a_whole_file_is_read() {
        let (options, problems) = parse(
            "log-payloads = true\n[limits]\nfuel = 2_000_000\nlog-bytes = 0\n\
             [guests.my-guest]\nenabled = true\nrequired = true\norder = -5\nwithhold = [\"http\", \"env\"]\n\
             [guests.my-guest.limits]\ncall-deadline-ms = 50\n[guests.other]\nenabled = false\n",
        );
        assert_eq!(problems, [""; 0]);
        assert_eq!((options.standing, options.log_payloads), (Standing::Sound, Some(true)));
        assert_eq!(options.limits, LimitOptions::from([(Limit::Fuel, 2_000_000), (Limit::LogBytes, 0)]));
        let guest = &options.guests["my-guest"];
        assert_eq!((guest.enabled, guest.required, guest.order), (Some(true), Some(true), Some(-5)));
        assert_eq!(guest.withhold, BTreeSet::from(["env", "http"]));
        assert_eq!(options.limit(Some("my-guest"), Limit::CallDeadlineMs), Some(50));
        assert_eq!(options.limit(Some("my-guest"), Limit::Fuel), Some(2_000_000), "the general one stands in");
        assert_eq!(options.limit(None, Limit::CallDeadlineMs), None);
        assert_eq!(options.guests["other"].enabled, Some(false));
    }

    #[test]
    fn an_empty_file_says_nothing() {
        let (options, problems) = parse("");
        assert_eq!((options.standing, problems.len(), options.guests.len()), (Standing::Sound, 0, 0));
    }

    #[test]
    fn every_fault_has_its_line_and_a_next_step_and_makes_the_file_suspect() {
        for (text, problem) in [
            ("\nlimit = 1", "line 2: unknown key `limit`; remove it or correct its name"),
            ("[limits]\nfeul = 1", "line 2: unknown key `feul`; remove it or correct its name"),
            ("limits = 1", "line 1: `limits` must be a table; correct it"),
            ("guests = []", "line 1: `guests` must be a table; correct it"),
            ("[guests]\na = 1", "line 2: `a` must be a table; correct it"),
            ("[limits]\nfuel = \"1\"", "line 2: `fuel` must be a whole number; correct it"),
            ("[limits]\nfuel = 1.5e9", "line 2: `fuel` must be a whole number; correct it"),
            ("log-payloads = 1", "line 1: `log-payloads` must be `true` or `false`; correct it"),
            ("[guests.g]\nenabled = \"no\"", "line 2: `enabled` must be `true` or `false`; correct it"),
            (
                "[guests.g]\norder = 3_000_000_000",
                "line 2: `order` must be a whole number of at most 32 bits; correct it",
            ),
            ("[guests.g]\nwithhold = \"env\"", "line 2: `withhold` must be a list of capabilities; correct it"),
            ("[guests.g]\nwithhold = [1]", "line 2: `withhold` must be a list of capabilities; correct it"),
            (
                "[guests.g]\nwithhold = [\"network\"]",
                "line 2: `network` is no capability; use one of those in the configuration reference",
            ),
            ("trusted-keys = \"RWQ\"", "line 1: `trusted-keys` must be a list of public keys; correct it"),
            (
                "require-signature = [\"RWQ\"]",
                "line 1: this is no public key of minisign; write the second line of the `.pub` file, which begins with `RW`",
            ),
            ("[telemetry]\nendpoint = 1", "line 2: `endpoint` must be a text; correct it"),
            ("[telemetry]\nheaders-file = \"x\"", "line 2: `headers-file` must be an absolute path; correct it"),
            ("[telemetry]\npayloads = true", "line 2: unknown key `payloads`; remove it or correct its name"),
            ("[guests.g]\ngrants = 1", "line 2: unknown key `grants`; remove it or correct its name"),
            (
                "[guests.\"../x\"]\nenabled = true",
                "line 1: `../x` is no name of a guest; use lower-case letters, digits and hyphens",
            ),
            (
                "[guests.g]\nrequired = true\nenabled = false",
                "line 1: guest `g` is both required and disabled; it stays required; remove one of the two",
            ),
        ] {
            let (options, problems) = parse(text);
            assert_eq!(problems, [format!("`config.toml` {problem}")], "{text}");
            assert_eq!(options.standing, Standing::Suspect, "{text}");
        }
    }

    #[test]
    fn a_number_out_of_range_becomes_the_nearest_one() {
        for (text, fuel) in [
            ("0", 1_000_000),
            ("-1", 1_000_000),
            ("9_223_372_036_854_775_807", 1_000_000_000_000),
            ("99999999999999999999999999999999999999999999999999", 1_000_000_000_000),
            ("-99999999999999999999999999999999999999999999999999", 1_000_000),
            ("0xF_FFFF_FFFF_FFFF", 1_000_000_000_000),
        ] {
            let (options, problems) = parse(&format!("[limits]\nfuel = {text}"));
            assert_eq!(options.limits.get(&Limit::Fuel), Some(&fuel), "{text}");
            assert!(problems[0].contains("`fuel` must be between 1000000 and 1000000000000"), "{problems:?}");
        }
    }

    #[test]
    fn what_can_be_understood_of_broken_toml_is_kept() {
        let (options, problems) =
            parse("[guests.guard]\nrequired = true\n[limits]\nfuel = \n[guests.noisy]\nenabled = false\n");
        assert_eq!(options.standing, Standing::Suspect);
        assert!(problems[0].starts_with("`config.toml` line 4: it is not valid TOML"), "{problems:?}");
        assert_eq!(options.guests["guard"].required, Some(true));
        assert_eq!(options.guests["noisy"].enabled, Some(false));
    }

    #[test]
    fn hostile_text_is_read_in_bounded_time_and_stack() {
        let kib64 = |piece: &str| piece.repeat((64 << 10) / piece.len());
        for text in [
            kib64("["),
            kib64("[["),
            format!("x = {}", kib64("[")),
            format!("x = {}", kib64("{a=")),
            kib64("a."),
            kib64("\0"),
            kib64("\"\"\""),
            kib64("[guests.a]\nenabled=1\n"),
            (0..5_000).map(|n| format!("k{n}=1")).collect::<Vec<_>>().join("\n"),
        ] {
            let started = std::time::Instant::now();
            let (options, problems) = parse(&text);
            assert_eq!(options.standing, Standing::Suspect);
            assert!(problems.len() <= 17, "{} problems", problems.len());
            let generous = std::time::Duration::from_secs(2);
            assert!(started.elapsed() < generous, "{:?} for {:?}…", started.elapsed(), &text[..8]);
        }
    }
}
