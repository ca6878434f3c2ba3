//! Conditions of a subscription: what the host can see at once, so that a guest with nothing to do is not even loaded.
//!
//! A condition is a text, `KIND:WHAT`. A kind that this version does not know holds always: a guest is called once too often
//! rather than missing an event.

use crate::manifest::{Capability, Preopen, Request, is_plain_path};
use crate::scope::{self, ReadRoot};

/// Longest condition, in bytes. It bounds how much work the search for a text can be.
pub const MAX_CONDITION_BYTES: usize = 128;

/// What stands for the event's session in a path.
pub const SESSION: &str = "{session}";

/// Something that the host looks at before it calls a guest.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Condition<'a> {
    /// `file:/omc/PATH`: there is a file or folder of that name in an `.omc` directory. A part `{session}` is the event's session,
    /// and the last part may hold `*` for any letters.
    File {
        /// Which directory.
        preopen: Preopen,
        /// The path below it.
        path: &'a str,
    },
    /// `read:project:PATH` or `read:agent:PATH`: there is a file or folder of that name in the project or in the agent's folder.
    Read {
        /// Where the path begins.
        root: ReadRoot,
        /// The path, without wildcards.
        path: &'a str,
    },
    /// `near:PATH`: it is there in the folder of a file that the tool call names, or in one above it, up to the project's root.
    Near(&'a str),
    /// `payload:TEXT`: a text of the event contains this one, whatever the case of ASCII letters.
    Payload(&'a str),
    /// `setting:KEY`: the user switched it on.
    Setting(&'a str),
    /// Of a later version.
    Unknown,
}

impl<'a> Condition<'a> {
    /// Reads a condition; nothing if it is one that could lead elsewhere or never hold.
    pub fn parse(text: &'a str) -> Option<Self> {
        let (kind, what) = text.split_once(':')?;
        if what.is_empty() || text.len() > MAX_CONDITION_BYTES {
            return None;
        }
        Some(match kind {
            "file" => {
                let (preopen, path) = Preopen::split(what)?;
                let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
                let is_plain = |part: &str| !part.contains(['{', '}', '[', ']', '?', '!']);
                let parts = path.split('/').all(|part| part == SESSION || is_plain(part));
                if !is_plain_path(path) || folder.contains('*') || !parts {
                    return None;
                }
                Self::File { preopen, path }
            }
            "read" => {
                let (root, path) = what.split_once(':')?;
                // The user's home is nobody's business who was not granted it: that a guest is called says what is there.
                let root = ReadRoot::from_name(root).filter(|root| *root != ReadRoot::Home)?;
                scope::is_plain_path_below(root, path).then_some(Self::Read { root, path })?
            }
            "near" => scope::is_plain_path_below(ReadRoot::Project, what).then_some(Self::Near(what))?,
            "payload" => Self::Payload(what),
            "setting" => Self::Setting(what),
            _ => Self::Unknown,
        })
    }

    /// Whether it looks only where these requests lead: that a guest is called tells it what is there.
    pub(crate) fn is_within(self, requests: &[Request]) -> bool {
        let globs = |root: ReadRoot| {
            let scopes = requests.iter().filter_map(|request| match &request.capability {
                Capability::Read(scopes) => Some(scopes),
                _ => None,
            });
            scopes.flatten().filter(move |scope| scope.root == root).map(|scope| scope.glob.as_str())
        };
        match self {
            Self::File { preopen, path } => requests.iter().any(|request| match &request.capability {
                Capability::Omc(scopes) => scopes.iter().any(|scope| {
                    let rest = path.strip_prefix(scope.path.as_str());
                    scope.preopen == preopen
                        && (scope.path.is_empty() || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/')))
                }),
                _ => false,
            }),
            Self::Read { root, path } => globs(root)
                .any(|glob| glob.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))),
            Self::Near(path) => globs(ReadRoot::Project).any(|glob| {
                let glob = glob.strip_prefix("**/").unwrap_or(glob);
                glob.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            }),
            Self::Payload(_) | Self::Setting(_) | Self::Unknown => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_read() {
        let project = |path| Condition::File { preopen: Preopen::Project, path };
        for (text, condition) in [
            ("file:/omc/wiki", project("wiki")),
            ("file:/omc/state/sessions/{session}/*-state.json", project("state/sessions/{session}/*-state.json")),
            ("file:/omc-user/skills", Condition::File { preopen: Preopen::User, path: "skills" }),
            ("read:agent:rules", Condition::Read { root: ReadRoot::Agent, path: "rules" }),
            ("near:.claude/rules", Condition::Near(".claude/rules")),
            ("payload:<remember", Condition::Payload("<remember")),
            ("setting:codeSimplifier.enabled", Condition::Setting("codeSimplifier.enabled")),
            ("moon:full", Condition::Unknown),
        ] {
            assert_eq!(Condition::parse(text), Some(condition), "{text}");
        }
    }

    #[test]
    fn conditions_that_lead_elsewhere_or_say_nothing_are_refused() {
        for text in [
            "",
            "file",
            "file:",
            "file:wiki",
            "file:/omc",
            "file:/etc/passwd",
            "file:/omc/../x",
            "file:/omc/a//b",
            "file:/omc/*/x",
            "file:/omc/x{session}",
            "file:/omc/state/[!x]*",
            "file:/omc/state/?",
            "read:.claude",
            "read:moon:x",
            "read:home:.ssh",
            "read:project:../x",
            "read:project:/etc",
            "read:project:**",
            "near:../x",
            "near:/etc",
            "near:*.md",
            "payload:",
        ] {
            assert_eq!(Condition::parse(text), None, "{text}");
        }
        assert_eq!(Condition::parse(&format!("payload:{}", "x".repeat(MAX_CONDITION_BYTES))), None);
    }
}
