//! The policy file of `omc-host audit --policy`: what a guest may be like on this machine or in this CI.
//!
//! It is its own file and not a part of the configuration: it judges, and changes nothing. A fault in it is an error, because a
//! check that passes over a slip of the pen is none.

use super::file;
use super::limits::Limit;
use super::options::{self, LimitOptions};
use super::problem::{Problem, ProblemLog, quote};
use crate::interfaces;
use crate::policy::parse_grant;
use crate::signature::Key;
use omc_artifact::Capability;
use std::collections::BTreeSet;
use std::path::Path;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Largest policy file, in bytes: thousands of digests.
const MAX_POLICY_BYTES: u64 = 1 << 20;

/// A policy as written.
#[derive(Debug, Default)]
pub(crate) struct AuditPolicy {
    pub(crate) deny: Vec<Denied>,
    pub(crate) max_limits: LimitOptions,
    /// Who may have written guests of others; anybody if neither list is there.
    pub(crate) allowed_digests: Option<BTreeSet<String>>,
    pub(crate) allowed_publishers: Option<Vec<Key>>,
}

/// Something that no guest may have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Denied {
    /// A capability, whatever its scope.
    Capability(String),
    /// A part of a capability's scope, with all that is around or in it.
    Part(Capability),
    /// An interface that its binary imports.
    Import(String),
}

impl AuditPolicy {
    /// Reads a file.
    pub(crate) fn load(path: &Path) -> Result<Self, Vec<Problem>> {
        let problem = |what: String, next| vec![Problem::of_file(path, what, next)];
        match file::read(path, MAX_POLICY_BYTES) {
            Ok(Some(read)) => Self::parse(&read.text, path),
            Ok(None) => Err(problem("there is no such file".to_owned(), "name a policy file")),
            Err(error) => Err(problem(error.to_string(), "mend it, or name another")),
        }
    }

    fn parse(text: &str, origin: &Path) -> Result<Self, Vec<Problem>> {
        let mut log = ProblemLog::new(origin, text);
        let mut policy = Self::default();
        let (root, errors) = DeTable::parse_recoverable(text);
        for error in &errors {
            let offset = error.span().map_or(text.len(), |span| span.start);
            log.at(offset, format!("it is not valid TOML ({})", error.message()), "correct it");
        }
        for (key, value) in root.get_ref() {
            match options::name(key) {
                "deny" => policy.deny = texts(value, denied, "no capability and no interface", &mut log),
                "max-limits" => policy.max_limits = options::limits(value, &mut log),
                "allowed-digests" => {
                    let digests = texts(value, digest, "no SHA-256 in hex", &mut log);
                    policy.allowed_digests = Some(digests.into_iter().collect());
                }
                "allowed-publishers" => policy.allowed_publishers = Some(options::keys(key, value, &mut log)),
                _ => options::unknown(key, &mut log),
            }
        }
        let problems = log.into_problems();
        if problems.is_empty() { Ok(policy) } else { Err(problems) }
    }

    /// The keys that it names.
    pub(crate) fn publishers(&self) -> &[Key] {
        self.allowed_publishers.as_deref().unwrap_or_default()
    }

    /// Whether somebody else's guest with this digest and signer may be here.
    pub(crate) fn allows(&self, digest: &str, signer: Option<&Key>) -> bool {
        match (&self.allowed_digests, &self.allowed_publishers) {
            (None, None) => true,
            (digests, publishers) => {
                digests.as_ref().is_some_and(|digests| digests.contains(digest))
                    || signer.is_some_and(|signer| publishers.as_ref().is_some_and(|keys| keys.contains(signer)))
            }
        }
    }

    /// The limits among these that are larger than it allows: key, what holds, what is allowed.
    pub(crate) fn exceeded(&self, holds: impl Fn(Limit) -> u64) -> Vec<(&'static str, u64, u64)> {
        let limits = self.max_limits.iter().map(|(limit, max)| (limit.spec().key, holds(*limit), *max));
        limits.filter(|(_, holds, max)| holds > max).collect()
    }
}

fn texts<T>(
    value: &Spanned<DeValue<'_>>,
    read: impl Fn(&str) -> Option<T>,
    otherwise: &str,
    log: &mut ProblemLog<'_>,
) -> Vec<T> {
    let Some(list) = value.get_ref().as_array() else {
        log.at(value.span().start, "this must be a list of texts", "correct it");
        return Vec::new();
    };
    let items = list.iter().filter_map(|item| {
        let text = item.get_ref().as_str().unwrap_or_default();
        let read = read(text);
        if read.is_none() {
            log.at(item.span().start, format!("{} is {otherwise}", quote(text)), "correct it");
        }
        read
    });
    items.collect()
}

fn denied(text: &str) -> Option<Denied> {
    if let Some((capability, part)) = text.split_once(' ') {
        return parse_grant(capability, &[part.to_owned()]).ok().map(Denied::Part);
    }
    if text.contains(':') {
        return interfaces::is_interface_name(text).then(|| Denied::Import(text.to_owned()));
    }
    options::CAPABILITIES.iter().any(|(known, _)| *known == text).then(|| Denied::Capability(text.to_owned()))
}

fn digest(text: &str) -> Option<String> {
    let hex = text.strip_prefix("sha256:").unwrap_or(text);
    let is_digest = hex.len() == 64 && hex.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    is_digest.then(|| hex.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_policy_is_read_and_judges() {
        let digest = "0f".repeat(32);
        let key = "RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3";
        let text = format!(
            "deny = [\"halt\", \"omc rw:/omc-user\", \"wasi:sockets/tcp\"]\nallowed-digests = [\"sha256:{digest}\"]\n\
             allowed-publishers = [\"{key}\"]\n[max-limits]\nfuel = 2_000_000\n"
        );
        let policy = AuditPolicy::parse(&text, Path::new("p")).unwrap();
        assert_eq!(policy.deny.len(), 3);
        assert_eq!(policy.exceeded(|_| 5_000_000), [("fuel", 5_000_000, 2_000_000)]);
        assert!(policy.exceeded(|_| 2_000_000).is_empty());
        let key = Key::parse(key).unwrap();
        assert!(policy.allows(&digest, None) && policy.allows("other", Some(&key)) && !policy.allows("other", None));
        assert!(AuditPolicy::default().allows("other", None));
        let nobody = AuditPolicy::parse("allowed-digests = []", Path::new("p")).unwrap();
        assert!(!nobody.allows(&digest, Some(&key)));
    }

    #[test]
    fn a_slip_of_the_pen_is_an_error() {
        for text in [
            "denny = []",
            "deny = \"halt\"",
            "deny = [\"hallt\"]",
            "deny = [1]",
            "deny = [\"omc rw:/etc\"]",
            "deny = [\"wasi:\"]",
            "allowed-digests = [\"0f\"]",
            "allowed-publishers = [\"alice\"]",
            "[max-limits]\nfeul = 1",
            "[max-limits]\nfuel = 1",
            "deny = [",
        ] {
            assert!(AuditPolicy::parse(text, Path::new("p")).is_err(), "{text}");
        }
    }
}
