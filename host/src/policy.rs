//! Who may do what, and what a fault means. Pure: no files, no guests, no clock.
//!
//! A guest has a power when its manifest requests it and it is granted. First-party guests are granted what they request; those
//! of others what the operator agreed to when the guest was added. Either can be narrowed by the configuration, never widened.

use std::collections::BTreeSet;

use omc_artifact::{Access, Capability, DirScope, Preopen, ReadScope, Request};

use crate::protocol::decision::{Decision, Effects};

/// What one guest may do on one event. The default is nothing.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each capability is given or not, independently of the others")]
pub(crate) struct Grants {
    /// Parts of the `.omc` directories; the longest path that covers a file decides.
    pub(crate) dirs: Vec<DirScope>,
    /// Files of the project, of the agent and of the user, to be read.
    pub(crate) read: Vec<ReadScope>,
    /// The end of the transcript.
    pub(crate) transcript: bool,
    /// Facts about the repository.
    pub(crate) git: bool,
    /// Environment variables by name.
    pub(crate) env: BTreeSet<String>,
    /// Variables for the session's later commands, by name.
    pub(crate) session_environment: BTreeSet<String>,
    /// The decision `allow`.
    pub(crate) allow: bool,
    /// The decision `halt`.
    pub(crate) halt: bool,
    /// The effect `update-input`.
    pub(crate) update_input: bool,
}

impl Grants {
    /// What is granted of what is requested, without the capabilities that the configuration withholds.
    ///
    /// `granted` is what the operator agreed to, or none for a first-party guest: then a request is enough.
    pub(crate) fn of(requests: &[Request], granted: Option<&[Capability]>, withheld: &BTreeSet<&'static str>) -> Self {
        let mut grants = Self::default();
        let requested: Vec<_> = requests.iter().map(|request| &request.capability).collect();
        let given: Vec<&Capability> = match granted {
            None => requested.clone(),
            Some(granted) => granted.iter().filter(|grant| covers(&requested, grant)).collect(),
        };
        for capability in given {
            match capability {
                Capability::Omc(scopes) => {
                    for scope in scopes.iter().cloned().chain(narrowings(&requested, scopes)) {
                        // Each of the two directories can be withheld by itself.
                        if !withheld.contains(scope.preopen.capability()) && !grants.dirs.contains(&scope) {
                            grants.dirs.push(scope);
                        }
                    }
                }
                withheld_as_a_whole if withheld.contains(withheld_as_a_whole.name()) => {}
                Capability::Env(names) => grants.env.extend(names.iter().cloned()),
                Capability::Read(scopes) => grants.read.extend(scopes.iter().cloned()),
                Capability::SessionEnvironment(names) => grants.session_environment.extend(names.iter().cloned()),
                Capability::Transcript => grants.transcript = true,
                Capability::Git => grants.git = true,
                Capability::Allow => grants.allow = true,
                Capability::Halt => grants.halt = true,
                Capability::UpdateInput => grants.update_input = true,
                // What this version does not know it cannot give.
                _ => {}
            }
        }
        grants
    }

    /// Whether some part of the project's `.omc` may be written; with it comes the lock for read-modify-write.
    pub(crate) fn writes_project(&self) -> bool {
        self.dirs.iter().any(|scope| scope.preopen == Preopen::Project && scope.access == Access::ReadWrite)
    }

    /// The grants for people: `capability scope` each.
    pub(crate) fn describe(&self) -> Vec<String> {
        let mut all: Vec<_> = self.dirs.iter().map(|scope| format!("omc {scope}")).collect();
        all.extend(self.read.iter().map(|scope| format!("read {scope}")));
        all.extend(self.env.iter().map(|name| format!("env {name}")));
        all.extend(self.session_environment.iter().map(|name| format!("session-environment {name}")));
        let plain = [
            ("transcript", self.transcript),
            ("git", self.git),
            ("allow", self.allow),
            ("halt", self.halt),
            ("update-input", self.update_input),
        ];
        all.extend(plain.iter().filter(|(_, granted)| *granted).map(|(name, _)| (*name).to_owned()));
        all
    }

    /// The decision as far as it is granted, and what was refused of it.
    pub(crate) fn permit(&self, decision: Decision) -> (Decision, Option<&'static str>) {
        match decision {
            Decision::Allow if !self.allow => (Decision::Pass, Some("allow")),
            // What must not go on does not go on: without the stronger word it is refused with the weaker one.
            Decision::Halt(reason) if !self.halt => (Decision::Block(reason), Some("halt")),
            decision => (decision, None),
        }
    }
}

/// Reads a grant: a capability's name and its scope.
pub(crate) fn parse_grant(capability: &str, scope: &[String]) -> Result<Capability, String> {
    let request = serde_json::json!({ "capability": capability, "scope": scope, "reason": "" });
    match serde_json::from_value::<Request>(request) {
        Ok(Request { capability: Capability::Unknown { name, .. }, .. }) => {
            Err(format!("there is no capability `{name}`"))
        }
        Ok(request) => Ok(request.capability),
        Err(error) => Err(error.to_string()),
    }
}

/// A capability, one part of its scope each.
pub(crate) fn in_parts(capability: &Capability) -> Vec<Capability> {
    let scope = capability.scope();
    if scope.is_empty() {
        return vec![capability.clone()];
    }
    // They have been read from such a scope.
    scope.iter().filter_map(|part| parse_grant(capability.name(), std::slice::from_ref(part)).ok()).collect()
}

/// Grants with one entry for each capability, and each part of a scope once.
pub(crate) fn merged(grants: Vec<Capability>) -> Vec<Capability> {
    let mut merged: Vec<Capability> = Vec::new();
    for grant in grants {
        let Some(known) = merged.iter_mut().find(|known| known.name() == grant.name()) else {
            merged.push(grant);
            continue;
        };
        let mut scope = known.scope();
        scope.extend(grant.scope().into_iter().filter(|part| !known.scope().contains(part)));
        // Both have been read from such a scope.
        if let Ok(both) = parse_grant(grant.name(), &scope) {
            *known = both;
        }
    }
    merged
}

/// Whether a grant asks for nothing beyond what the guest requests.
pub(crate) fn covers(requested: &[&Capability], grant: &Capability) -> bool {
    match grant {
        Capability::Omc(scopes) => scopes.iter().all(|scope| {
            let access = dirs(requested).filter(|asked| holds(asked, scope)).max_by_key(|asked| rank(asked));
            access.is_some_and(|asked| asked.access == Access::ReadWrite || scope.access == Access::ReadOnly)
        }),
        Capability::Read(scopes) => scopes.iter().all(|scope| {
            requested.iter().any(|request| match request {
                Capability::Read(asked) => asked.iter().any(|asked| scope.is_within(asked)),
                _ => false,
            })
        }),
        Capability::Env(names) => names.iter().all(|name| {
            requested.iter().any(|request| matches!(request, Capability::Env(asked) if asked.contains(name)))
        }),
        Capability::SessionEnvironment(names) => names.iter().all(|name| {
            requested
                .iter()
                .any(|request| matches!(request, Capability::SessionEnvironment(asked) if asked.contains(name)))
        }),
        Capability::Unknown { .. } => false,
        grant => requested.contains(&grant),
    }
}

/// All parts of directories that are requested.
fn dirs<'a>(requested: &'a [&Capability]) -> impl Iterator<Item = &'a DirScope> {
    requested.iter().flat_map(|request| match request {
        Capability::Omc(scopes) => scopes.as_slice(),
        _ => &[],
    })
}

/// Where a guest asks for less inside of what it is granted: a folder that it wants to read only stays so, whether or not the
/// person who granted the folder around it named it as well.
fn narrowings(requested: &[&Capability], granted: &[DirScope]) -> Vec<DirScope> {
    let is_inside = |asked: &&DirScope| {
        asked.access == Access::ReadOnly
            && granted
                .iter()
                .any(|scope| scope.access == Access::ReadWrite && holds(scope, asked) && scope.path != asked.path)
            && !granted.contains(asked)
    };
    dirs(requested).filter(is_inside).cloned().collect()
}

/// Whether one part of a directory is another one or has it inside.
fn holds(outer: &DirScope, inner: &DirScope) -> bool {
    let below = match inner.path.strip_prefix(outer.path.as_str()) {
        Some(rest) => outer.path.is_empty() || rest.is_empty() || rest.starts_with('/'),
        None => false,
    };
    outer.preopen == inner.preopen && below
}

/// Of several requested parts around a path the longest decides; of two equal ones the one that may write.
fn rank(scope: &DirScope) -> (usize, bool) {
    (scope.path.len(), scope.access == Access::ReadWrite)
}

/// What it means that a required guest could not judge: a refusal where the event asks if something may be done, elsewhere a
/// word to the person.
pub(crate) fn unjudged(guest: &str, why: &str, can_refuse: bool) -> (Decision, Effects) {
    let reason = format!("the guest `{guest}` is required here and could not judge ({why}); see `omc-host log`");
    if can_refuse {
        (Decision::Block(reason), Effects::default())
    } else {
        (Decision::Pass, Effects { messages: vec![reason], ..Effects::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(capability: &str, scope: &[&str]) -> Request {
        serde_json::from_value(serde_json::json!({"capability": capability, "scope": scope, "reason": "a test"}))
            .unwrap()
    }

    fn grants(requests: &[Request], granted: &[Request], withheld: &[&'static str]) -> Grants {
        let granted: Vec<_> = granted.iter().map(|grant| grant.capability.clone()).collect();
        Grants::of(requests, Some(&granted), &withheld.iter().copied().collect())
    }

    #[test]
    fn a_grant_counts_only_within_the_request() {
        let asked = [
            request("omc", &["rw:/omc/state", "ro:/omc"]),
            request("read", &["project:.claude/**", "agent:settings.json"]),
            request("env", &["CI"]),
            request("session-environment", &["STAGE"]),
            request("halt", &[]),
        ];
        let cases: &[(Request, bool)] = &[
            (request("omc", &["rw:/omc/state"]), true),
            (request("omc", &["ro:/omc/state/sessions"]), true),
            (request("omc", &["ro:/omc"]), true),
            (request("omc", &["rw:/omc"]), false),
            (request("omc", &["rw:/omc/statements"]), false),
            (request("omc", &["ro:/omc-user"]), false),
            (request("env", &["CI"]), true),
            (request("env", &["HOME"]), false),
            (request("env", &["STAGE"]), false),
            (request("read", &["project:.claude/rules/*.md"]), true),
            (request("read", &["agent:settings.json"]), true),
            (request("read", &["agent:**"]), false),
            (request("read", &["project:**"]), false),
            (request("session-environment", &["STAGE"]), true),
            (request("session-environment", &["CI"]), false),
            (request("git", &[]), false),
            (request("halt", &[]), true),
            (request("allow", &[]), false),
            (request("telepathy", &[]), false),
        ];
        for (grant, counts) in cases {
            let got = grants(&asked, std::slice::from_ref(grant), &[]);
            assert_eq!(got != Grants::default(), *counts, "{grant:?}");
        }
    }

    #[test]
    fn a_folder_that_a_guest_asks_to_read_only_is_not_written_under_any_grant() {
        let asked = [request("omc", &["rw:/omc", "ro:/omc/policy", "rw:/omc/policy/own"])];
        let given = |scope: &[&str]| {
            let grants = grants(&asked, &[request("omc", scope)], &[]);
            grants.dirs.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(given(&["rw:/omc"]), ["rw:/omc", "ro:/omc/policy"]);
        assert_eq!(given(&["rw:/omc/policy"]), [""; 0], "more than it asks for");
        assert_eq!(given(&["rw:/omc/policy/own"]), ["rw:/omc/policy/own"]);
        assert_eq!(given(&["ro:/omc/policy"]), ["ro:/omc/policy"]);
        assert_eq!(given(&["rw:/omc/guests/x"]), ["rw:/omc/guests/x"]);
    }

    #[test]
    fn what_is_withheld_is_not_given_to_anybody() {
        let asked = [request("omc", &["rw:/omc"]), request("transcript", &[])];
        let first_party = Grants::of(&asked, None, &BTreeSet::from(["transcript"]));
        assert!(first_party.writes_project() && !first_party.transcript);
        assert_eq!(grants(&asked, &asked, &["omc", "transcript"]), Grants::default());
        let both = [request("omc", &["rw:/omc", "ro:/omc-user"])];
        for (withheld, left) in [("omc", "omc ro:/omc-user"), ("omc-user", "omc rw:/omc")] {
            assert_eq!(grants(&both, &both, &[withheld]).describe(), [left]);
        }
    }

    #[test]
    fn decisions_beyond_the_grant_are_weakened_never_lost() {
        let nothing = Grants::default();
        assert_eq!(nothing.permit(Decision::Allow), (Decision::Pass, Some("allow")));
        assert_eq!(nothing.permit(Decision::Halt("x".into())), (Decision::Block("x".into()), Some("halt")));
        assert_eq!(nothing.permit(Decision::Ask("x".into())), (Decision::Ask("x".into()), None));
    }
}
