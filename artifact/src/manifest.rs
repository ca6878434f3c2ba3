//! The manifest: what a guest says about itself, readable without running it.
//!
//! It is JSON in the custom section `omc:manifest` of the component. What it requests is not what it gets: the operator grants.
//! Unknown members and capabilities are kept out of the way, so that a manifest of a later version can still be shown.

use std::fmt;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::condition::Condition;
use crate::scope::{self, ReadScope};

/// The name of the custom section that holds the manifest.
pub const MANIFEST_SECTION: &str = "omc:manifest";

/// Largest manifest that is read, in bytes: enough for hundreds of subscriptions, too small to be a burden.
pub const MAX_MANIFEST_BYTES: usize = 64 * 1024;

/// Longest name of a guest, in characters: it becomes a folder's name and a table's key.
const MAX_NAME_CHARS: usize = 64;
/// Most subscriptions, requests and entries of a request's scope in one manifest; each is looked at on an event.
const MAX_ENTRIES: usize = 64;

/// What a guest says about itself.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Manifest {
    /// Its name: 1 to 64 of `a-z`, `0-9` and `-`, starting with a letter.
    pub name: String,
    /// Its version, for people.
    pub version: String,
    /// One line for people.
    #[serde(default)]
    pub description: String,
    /// Whether it is on where the operator does not say; true unless the manifest says otherwise.
    #[serde(default = "default_enabled", skip_serializing_if = "Clone::clone")]
    pub enabled: bool,
    /// The events it wants to see.
    pub subscriptions: Vec<Subscription>,
    /// The capabilities it asks for.
    #[serde(default)]
    pub requests: Vec<Request>,
    /// The limits it would like to have.
    #[serde(default, skip_serializing_if = "WishedLimits::is_empty")]
    pub limits: WishedLimits,
}

/// An event that a guest wants to see.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Subscription {
    /// The kind of event in kebab-case, such as `pre-tool-use`.
    pub event: String,
    /// Which of them: compared with the event's target (a tool's name, a session's source, …); absent means all. Names with `|`
    /// between them are compared as they are, anything else is a regular expression.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matcher: Option<String>,
    /// The place among the guests of an event; lower comes first, and equal orders go by name.
    #[serde(default = "default_order")]
    pub order: i32,
    /// Conditions, see [`Condition`]: the guest is only called if one of them holds. Empty means always.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub when: Vec<String>,
}

fn default_enabled() -> bool {
    true
}

/// The order of a subscription that says nothing of it: room on both sides.
pub const DEFAULT_ORDER: i32 = 1_000;

fn default_order() -> i32 {
    DEFAULT_ORDER
}

/// A capability that a guest asks for, and why.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "RawRequest", into = "RawRequest")]
pub struct Request {
    /// What it asks for.
    pub capability: Capability,
    /// Why, for the person who decides.
    pub reason: String,
}

/// A kind of power, with its scope where it has one.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Capability {
    /// `omc`: files of the `.omc` directories.
    Omc(Vec<DirScope>),
    /// `read`: files of the project, of the agent and of the user.
    Read(Vec<ReadScope>),
    /// `transcript`: the end of the session's transcript.
    Transcript,
    /// `git`: facts about the repository.
    Git,
    /// `env`: environment variables by name.
    Env(Vec<String>),
    /// `session-environment`: variables for the session's later commands, by name.
    SessionEnvironment(Vec<String>),
    /// `allow`: the decision that lets something happen without a question.
    Allow,
    /// `halt`: the decision that ends the agent's turn.
    Halt,
    /// `update-input`: the effect that rewrites a tool's input.
    UpdateInput,
    /// A capability that this version does not know; it is never granted.
    Unknown {
        /// Its name.
        name: String,
        /// Its scope, as written.
        scope: Vec<String>,
    },
}

impl Capability {
    /// The capability's name in manifests and policies.
    pub fn name(&self) -> &str {
        match self {
            Self::Omc(_) => "omc",
            Self::Read(_) => "read",
            Self::Transcript => "transcript",
            Self::Git => "git",
            Self::Env(_) => "env",
            Self::SessionEnvironment(_) => "session-environment",
            Self::Allow => "allow",
            Self::Halt => "halt",
            Self::UpdateInput => "update-input",
            Self::Unknown { name, .. } => name,
        }
    }

    /// The capability's scope as a manifest spells it; empty where it has none.
    pub fn scope(&self) -> Vec<String> {
        match self {
            Self::Omc(scopes) => scopes.iter().map(ToString::to_string).collect(),
            Self::Read(scopes) => scopes.iter().map(ToString::to_string).collect(),
            Self::Env(names) | Self::SessionEnvironment(names) => names.clone(),
            Self::Unknown { scope, .. } => scope.clone(),
            Self::Transcript | Self::Git | Self::Allow | Self::Halt | Self::UpdateInput => Vec::new(),
        }
    }
}

/// A part of an `.omc` directory, written `ro:/omc/state` or `rw:/omc-user/notes`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct DirScope {
    /// Which directory.
    pub preopen: Preopen,
    /// The path below it, without a leading slash; empty for the whole.
    pub path: String,
    /// Whether it may be written.
    pub access: Access,
}

/// The directories that guests can be given.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Preopen {
    /// `/omc`: the project's `.omc`.
    Project,
    /// `/omc-user`: the user's `.omc`.
    User,
}

impl Preopen {
    /// The path at which a guest sees the directory.
    pub fn guest_path(self) -> &'static str {
        match self {
            Self::Project => "/omc",
            Self::User => "/omc-user",
        }
    }

    /// The name by which the directory is withheld.
    pub fn capability(self) -> &'static str {
        match self {
            Self::Project => "omc",
            Self::User => "omc-user",
        }
    }

    /// Which directory a guest's path is in, and the rest of the path: empty for the directory itself.
    pub(crate) fn split(path: &str) -> Option<(Self, &str)> {
        let path = path.strip_prefix('/')?;
        let (name, rest) = path.split_once('/').map_or((path, None), |(name, rest)| (name, Some(rest)));
        let preopen = match name {
            "omc" => Self::Project,
            "omc-user" => Self::User,
            _ => return None,
        };
        match rest {
            None => Some((preopen, "")),
            Some("") => None,
            Some(rest) => Some((preopen, rest)),
        }
    }
}

/// How a directory may be used.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Access {
    /// `ro`: reading and listing.
    ReadOnly,
    /// `rw`: also writing, creating, renaming and removing.
    ReadWrite,
}

impl fmt::Display for DirScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let access = match self.access {
            Access::ReadOnly => "ro",
            Access::ReadWrite => "rw",
        };
        write!(f, "{access}:{}", self.preopen.guest_path())?;
        if self.path.is_empty() { Ok(()) } else { write!(f, "/{}", self.path) }
    }
}

impl DirScope {
    /// Reads `ro:PATH` or `rw:PATH`; the path is plain: no `.`, `..`, empty parts or backslashes.
    fn parse(text: &str) -> Option<Self> {
        let (access, path) = text.split_once(':')?;
        let access = match access {
            "ro" => Access::ReadOnly,
            "rw" => Access::ReadWrite,
            _ => return None,
        };
        let (preopen, path) = Preopen::split(path)?;
        (path.is_empty() || is_plain_path(path)).then(|| Self { preopen, path: path.to_owned(), access })
    }
}

/// Whether a path has only plain parts: none is empty, `.` or `..` or holds a backslash.
pub(crate) fn is_plain_path(path: &str) -> bool {
    path.split('/').all(|part| !matches!(part, "" | "." | "..") && !part.contains(['\\', '\0']))
}

/// The limits that a guest would like to have; the operator's limits bind.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct WishedLimits {
    /// Fuel for a call, in instructions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fuel: Option<u64>,
    /// Linear memory, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Time for a call, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_ms: Option<u64>,
}

impl WishedLimits {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

#[derive(Clone, Deserialize, Serialize)]
struct RawRequest {
    capability: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    scope: Vec<String>,
    reason: String,
}

impl From<Request> for RawRequest {
    fn from(request: Request) -> Self {
        Self {
            capability: request.capability.name().to_owned(),
            scope: request.capability.scope(),
            reason: request.reason,
        }
    }
}

impl TryFrom<RawRequest> for Request {
    type Error = ManifestError;

    fn try_from(raw: RawRequest) -> Result<Self, ManifestError> {
        if raw.scope.len() > MAX_ENTRIES {
            return Err(ManifestError::TooMany { what: "entries in a scope", count: raw.scope.len() });
        }
        let name = raw.capability.as_str();
        let refused = |scope: &str| ManifestError::Scope { capability: name.to_owned(), scope: scope.to_owned() };
        let scopeless = |capability: Capability| {
            if raw.scope.is_empty() { Ok(capability) } else { Err(refused(&raw.scope.join(", "))) }
        };
        let capability = match name {
            "omc" => Capability::Omc(each(&raw.scope, DirScope::parse).map_err(refused)?),
            "read" => Capability::Read(each(&raw.scope, ReadScope::parse).map_err(refused)?),
            "session-environment" => {
                let name = |name: &str| scope::may_be_set(name).then(|| name.to_owned());
                Capability::SessionEnvironment(each(&raw.scope, name).map_err(refused)?)
            }
            "env" => Capability::Env(raw.scope),
            "transcript" => scopeless(Capability::Transcript)?,
            "git" => scopeless(Capability::Git)?,
            "allow" => scopeless(Capability::Allow)?,
            "halt" => scopeless(Capability::Halt)?,
            "update-input" => scopeless(Capability::UpdateInput)?,
            _ => Capability::Unknown { name: raw.capability, scope: raw.scope },
        };
        Ok(Self { capability, reason: raw.reason })
    }
}

/// Reads each entry of a scope, or gives back the first that cannot be read.
fn each<T>(scope: &[String], parse: impl Fn(&str) -> Option<T>) -> Result<Vec<T>, &str> {
    scope.iter().map(|text| parse(text).ok_or(text.as_str())).collect()
}

/// Why a manifest was not accepted.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ManifestError {
    /// There is none.
    #[error("there is no `{MANIFEST_SECTION}` section; build the guest with the SDK's `export!` macro")]
    Missing,
    /// There are several, so that nobody could say which one counts.
    #[error("there are several `{MANIFEST_SECTION}` sections; keep one")]
    Several,
    /// It is larger than a manifest may be.
    #[error("the manifest has {0} bytes; at most {MAX_MANIFEST_BYTES} are read")]
    TooLarge(usize),
    /// It is not the JSON that a manifest is.
    #[error("the manifest is not valid JSON for a manifest")]
    Json(#[from] serde_json::Error),
    /// The name cannot be used.
    #[error("the name `{0}` is not 1 to {MAX_NAME_CHARS} of a-z, 0-9 and -, starting with a letter")]
    Name(String),
    /// A list is too long.
    #[error("there are {count} {what}; at most {MAX_ENTRIES} are read")]
    TooMany {
        /// Which list.
        what: &'static str,
        /// How many it has.
        count: usize,
    },
    /// A subscription's condition cannot be read.
    #[error(
        "there is no condition `{0}`; it is `file:/omc/PATH`, `read:project:PATH`, `read:agent:PATH`, `near:PATH`, `payload:TEXT` or `setting:KEY`"
    )]
    Condition(String),
    /// A subscription's condition looks where the guest requests nothing.
    #[error(
        "the condition `{0}` looks where nothing is requested; request `omc` or `read` with a scope that covers it"
    )]
    ConditionScope(String),
    /// A capability's scope cannot be read.
    #[error("the capability `{capability}` has no scope `{scope}`{}", hint(capability))]
    Scope {
        /// Which capability.
        capability: String,
        /// The scope as written.
        scope: String,
    },
}

/// What a capability's scope looks like, for those whose scope can be wrong.
fn hint(capability: &str) -> &'static str {
    match capability {
        "omc" => "; it takes `ro:/omc/PATH` or `rw:/omc/PATH`",
        "read" => "; it takes `project:GLOB`, `agent:GLOB` or `home:FOLDER/GLOB`",
        "session-environment" => "; it takes names of variables that do not decide which programs run",
        _ => "",
    }
}

impl Manifest {
    /// Reads and checks a manifest.
    ///
    /// # Errors
    ///
    /// Every reason for which a manifest is refused: see [`ManifestError`].
    pub fn parse(json: &[u8]) -> Result<Self, ManifestError> {
        if json.len() > MAX_MANIFEST_BYTES {
            return Err(ManifestError::TooLarge(json.len()));
        }
        let manifest: Self = serde_json::from_slice(json)?;
        manifest.check()?;
        Ok(manifest)
    }

    /// Checks what JSON alone does not tell, for whoever reads manifests as a part of something else.
    ///
    /// # Errors
    ///
    /// As for [`Self::parse`].
    pub fn check(&self) -> Result<(), ManifestError> {
        let name = &self.name;
        let plain = name.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'));
        if !plain || name.len() > MAX_NAME_CHARS || !name.starts_with(|first: char| first.is_ascii_lowercase()) {
            return Err(ManifestError::Name(name.clone()));
        }
        for (what, count) in [("subscriptions", self.subscriptions.len()), ("requests", self.requests.len())] {
            if count > MAX_ENTRIES {
                return Err(ManifestError::TooMany { what, count });
            }
        }
        for Subscription { when, .. } in &self.subscriptions {
            if when.len() > MAX_ENTRIES {
                return Err(ManifestError::TooMany { what: "conditions of a subscription", count: when.len() });
            }
            for text in when {
                let condition = Condition::parse(text).ok_or_else(|| ManifestError::Condition(text.clone()))?;
                if !condition.is_within(&self.requests) {
                    return Err(ManifestError::ConditionScope(text.clone()));
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = r#"{
        "name": "guard", "version": "0.1.0", "description": "Guards",
        "subscriptions": [{"event": "pre-tool-use", "matcher": "Bash", "order": 5}, {"event": "stop"}],
        "requests": [
            {"capability": "omc", "scope": ["rw:/omc/state", "ro:/omc-user"], "reason": "keeps its state"},
            {"capability": "env", "scope": ["CI"], "reason": "is quiet in CI"},
            {"capability": "telepathy", "scope": ["all"], "reason": "later"}
        ],
        "limits": {"fuel": 5, "later": true},
        "later": {}
    }"#;

    #[test]
    fn a_manifest_survives_a_round_trip() {
        let manifest = Manifest::parse(WHOLE.as_bytes()).unwrap();
        assert_eq!(manifest.subscriptions[1].order, 1_000);
        assert_eq!(manifest.requests[0].capability.scope(), ["rw:/omc/state", "ro:/omc-user"]);
        let again = Manifest::parse(&serde_json::to_vec(&manifest).unwrap()).unwrap();
        assert_eq!(manifest, again);
    }

    #[test]
    fn what_a_later_version_knows_is_never_granted_as_something_else() {
        let manifest = Manifest::parse(WHOLE.as_bytes()).unwrap();
        assert!(matches!(&manifest.requests[2].capability, Capability::Unknown { name, .. } if name == "telepathy"));
    }

    #[test]
    fn names_and_scopes_that_could_lead_elsewhere_are_refused() {
        for name in ["", "-a", "9a", "Guard", "a/b", "..", "a b", "a\u{0430}", &"a".repeat(65)] {
            let json = format!(r#"{{"name": {name:?}, "version": "1", "subscriptions": []}}"#);
            assert!(matches!(Manifest::parse(json.as_bytes()), Err(ManifestError::Name(_))), "{name:?}");
        }
        let scopes = [
            "/omc",
            "rw:omc",
            "rw:/etc",
            "rw:/omc/../etc",
            "rw:/omc/./a",
            "rw:/omc//a",
            "rwx:/omc",
            "rw:/omc/a\\..\\b",
        ];
        for scope in scopes {
            let request = serde_json::json!({"capability": "omc", "scope": [scope], "reason": ""});
            assert!(serde_json::from_value::<Request>(request).is_err(), "{scope}");
        }
        assert_eq!(DirScope::parse("rw:/omc").unwrap().path, "");
        for (capability, scope) in [
            ("read", "project:../a"),
            ("read", "home:**"),
            ("session-environment", "LD_PRELOAD"),
            ("session-environment", "A;B"),
            ("git", "all"),
        ] {
            let request = serde_json::json!({"capability": capability, "scope": [scope], "reason": ""});
            let error = serde_json::from_value::<Request>(request).unwrap_err().to_string();
            assert!(error.contains(&format!("`{capability}` has no scope `{scope}`")), "{error}");
        }
    }

    #[test]
    fn conditions_are_checked_when_a_manifest_is_read() {
        let with = |when: &str| {
            let requests = r#"[
                {"capability": "omc", "scope": ["ro:/omc/wiki"], "reason": ""},
                {"capability": "read", "scope": ["project:**/.claude/rules/**", "agent:rules/*.md"], "reason": ""}
            ]"#;
            let subscriptions = format!(r#"[{{"event": "stop", "when": {when}}}]"#);
            let json =
                format!(r#"{{"name": "a", "version": "1", "subscriptions": {subscriptions}, "requests": {requests}}}"#);
            Manifest::parse(json.as_bytes())
        };
        assert_eq!(with(r#"["file:/omc/wiki", "moon:full"]"#).unwrap().subscriptions[0].when.len(), 2);
        assert!(
            matches!(with(r#"["file:/etc"]"#), Err(ManifestError::Condition(condition)) if condition == "file:/etc")
        );
        with(r#"["near:.claude/rules", "read:agent:rules", "file:/omc/wiki/*.md"]"#).unwrap();
        for elsewhere in [
            "file:/omc/state",
            "file:/omc/wiki2",
            "file:/omc-user/wiki",
            "read:project:.env",
            "read:agent:.credentials.json",
            "near:.git",
        ] {
            let refused = with(&format!("[{elsewhere:?}]"));
            assert!(matches!(refused, Err(ManifestError::ConditionScope(_))), "{elsewhere}");
        }
        let many = serde_json::to_string(&vec!["payload:x"; MAX_ENTRIES + 1]).unwrap();
        assert!(matches!(with(&many), Err(ManifestError::TooMany { .. })));
    }

    #[test]
    fn scopes_survive_a_round_trip() {
        for (capability, scope) in [
            ("read", &["project:**/CLAUDE.md", "agent:settings.json", "home:.agents/skills/**"][..]),
            ("session-environment", &["OMC_INITIALIZED"]),
            ("git", &[]),
        ] {
            let json = serde_json::json!({"capability": capability, "scope": scope, "reason": "a test"});
            let request: Request = serde_json::from_value(json).unwrap();
            assert_eq!(request.capability.name(), capability);
            assert_eq!(request.capability.scope(), scope);
        }
    }

    #[test]
    fn endless_manifests_are_refused() {
        let long = format!(r#"{{"name": "a", "version": "{}", "subscriptions": []}}"#, "1".repeat(MAX_MANIFEST_BYTES));
        assert!(matches!(Manifest::parse(long.as_bytes()), Err(ManifestError::TooLarge(_))));
        let event = r#"{"event": "stop"},"#.repeat(MAX_ENTRIES + 1);
        let many = format!(r#"{{"name": "a", "version": "1", "subscriptions": [{}]}}"#, event.trim_end_matches(','));
        assert!(matches!(Manifest::parse(many.as_bytes()), Err(ManifestError::TooMany { .. })));
        let scope = vec!["A"; MAX_ENTRIES + 1];
        let request = serde_json::json!({"capability": "env", "scope": scope, "reason": ""});
        assert!(serde_json::from_value::<Request>(request).is_err());
    }
}
