//! What is known of one guest, put together from its binary, its manifest, the configuration and the trail.

use std::collections::{BTreeMap, BTreeSet};

use omc_artifact::{Capability, Component, Manifest};
use serde::Serialize;

use crate::audit::{GuestRecord, Record};
use crate::cli::difference;
use crate::config::audit_policy::{AuditPolicy, Denied};
use crate::config::{Limit, Paths, Settings};
use crate::interfaces::{self, Import, Mismatch};
use crate::policy::{self, Grants, parse_grant};
use crate::registry::{Faults, Guest};
use crate::signature::{self, Key, Signer};

/// What is audited.
pub(super) enum Subject {
    Guest(Guest),
    /// A component that has not been added.
    File {
        named: String,
        component: Box<Component>,
        bytes: Vec<u8>,
        signature: Option<String>,
    },
}

/// What a guest says about itself, and what its binary says.
pub(super) struct About {
    pub(super) digest: String,
    pub(super) manifest: Manifest,
    pub(super) imports: Vec<String>,
}

/// What guests are held against.
pub(super) struct Context<'a> {
    pub(super) paths: &'a Paths,
    pub(super) settings: &'a Settings,
    pub(super) faults: &'a Faults,
    pub(super) records: &'a [Record],
    pub(super) trusted: &'a BTreeSet<Key>,
    pub(super) policy: Option<&'a AuditPolicy>,
}

/// What one guest can do. `docs/audit.schema.json` describes it; a test compares the two.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Report {
    pub(super) name: String,
    pub(super) version: String,
    /// SHA-256 of the component.
    pub(super) digest: String,
    /// `built-in`, `installed`, or the file's path.
    pub(super) source: String,
    /// Where an installed guest came from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) origin: Option<String>,
    /// Who agreed to it, and when.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) agreed: Option<Agreed>,
    pub(super) signature: Signature,
    pub(super) enabled: bool,
    /// The version of `omc:hook` it is built for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) wit_version: Option<String>,
    pub(super) subscriptions: Vec<String>,
    pub(super) imports: Imports,
    pub(super) requested: Vec<Requested>,
    /// What of it is granted, `capability scope…` each.
    pub(super) granted: Vec<String>,
    /// Capabilities that the trail shows in use, with in how many calls.
    pub(super) used: BTreeMap<String, u64>,
    pub(super) limits: BTreeMap<&'static str, LimitReport>,
    pub(super) history: History,
    /// What does not fit together, or breaks the policy.
    pub(super) findings: Vec<String>,
}

#[derive(Debug, Serialize)]
pub(super) struct Agreed {
    pub(super) at: String,
    pub(super) by: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Signature {
    /// `built-in`, `none`, `unknown`, `trusted` or `invalid`.
    pub(super) state: &'static str,
    /// The id of the key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) key: Option<String>,
}

/// A component's imports by what they mean.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Imports {
    /// Of `omc:hook`, always granted.
    pub(super) always: Vec<String>,
    /// Of `omc:hook`, each a capability.
    pub(super) capability: Vec<String>,
    /// Of WASI: what the language's runtime imports, asked for or not. Files are only what `omc` grants, sockets are denied.
    pub(super) runtime: Vec<String>,
    /// Anything else: this host has no such interface.
    pub(super) unknown: Vec<String>,
}

#[derive(Debug, Serialize)]
pub(super) struct Requested {
    pub(super) capability: String,
    pub(super) scope: Vec<String>,
    pub(super) reason: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct LimitReport {
    /// What holds.
    pub(super) holds: u64,
    /// What the guest would like to have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) wished: Option<u64>,
}

/// What the trail says about these bytes.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct History {
    pub(super) calls: u64,
    /// Faults by kind.
    pub(super) faults: BTreeMap<String, u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) last_fault: Option<String>,
    /// How often it was refused something.
    pub(super) refusals: u64,
    /// Until when it is set aside because of faults in a row.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) set_aside_until: Option<String>,
}

impl Subject {
    pub(super) fn about(&self) -> About {
        match self {
            Self::Guest(guest) => {
                About { digest: guest.digest().to_owned(), manifest: guest.manifest(), imports: guest.imports() }
            }
            Self::File { component, .. } => About {
                digest: component.digest.clone(),
                manifest: component.manifest.clone(),
                imports: component.imports.clone(),
            },
        }
    }

    fn is_ours(&self) -> bool {
        matches!(self, Self::Guest(Guest::FirstParty(_)))
    }

    fn signer(&self, context: &Context<'_>) -> Result<Signer, String> {
        match self {
            Self::Guest(Guest::FirstParty(_)) => Ok(Signer::None),
            Self::Guest(Guest::Installed(guest)) => guest.verify_signature(context.paths, context.trusted),
            Self::File { bytes, signature, .. } => {
                signature::verify(bytes, signature.as_deref(), context.trusted).map_err(|error| error.to_string())
            }
        }
    }
}

/// The report about a guest.
pub(super) fn of(subject: &Subject, context: &Context<'_>) -> Report {
    let About { digest, manifest, imports } = subject.about();
    let policy = context.settings.guest(&manifest.name);
    let grants = match subject {
        Subject::Guest(guest) => Grants::of(&manifest.requests, guest.granted(), &policy.withheld),
        Subject::File { .. } => Grants::default(),
    };
    let granted = grants.describe();
    let split = split(&imports);
    let mut findings = misfits(&manifest, &split);
    if let Subject::File { component, .. } = subject {
        let fits = interfaces::check(&component.imports, &component.exports);
        // What is missing has been found import by import.
        findings.extend(
            fits.err()
                .filter(|mismatch| !matches!(mismatch, Mismatch::MissingImport(_)))
                .map(|mismatch| mismatch.to_string()),
        );
    }
    let signer = subject.signer(context);
    let signature = match &signer {
        _ if subject.is_ours() => Signature { state: "built-in", key: None },
        Ok(Signer::None) => Signature { state: "none", key: None },
        Ok(Signer::Unknown(id)) => Signature { state: "unknown", key: Some(id.to_string()) },
        Ok(Signer::Trusted(key)) => Signature { state: "trusted", key: Some(key.id().to_string()) },
        Err(why) => {
            findings.push(format!("its signature: {why}"));
            Signature { state: "invalid", key: None }
        }
    };
    let signer = match signer {
        Ok(Signer::Trusted(key)) => Some(key),
        _ => None,
    };
    let recorded = match subject {
        Subject::Guest(Guest::Installed(guest)) => guest.signer(),
        Subject::Guest(Guest::FirstParty(_)) | Subject::File { .. } => signer.as_ref().map(Key::as_str),
    };
    if !subject.is_ours() && !context.settings.admits_signer(recorded) {
        findings.push("it has no signature by a key of `require-signature`, so it is not called".to_owned());
    }
    if let Some(rules) = context.policy {
        // Before it is added, what it asks for is what it might be granted.
        let judged = match subject {
            Subject::Guest(_) => granted.clone(),
            Subject::File { .. } => difference::parts(&manifest),
        };
        findings.extend(denials(rules, &judged, &imports));
        let limits = rules.exceeded(|limit| policy.limits.get(limit));
        findings
            .extend(limits.iter().map(|(key, holds, max)| format!("`{key}` is {holds}, and the policy allows {max}")));
        if !subject.is_ours() && !rules.allows(&digest, signer.as_ref()) {
            findings.push("the policy allows neither its digest nor its publisher".to_owned());
        }
    }
    let calls = context.records.iter().filter_map(|record| Some((record, record.guest.as_ref()?)));
    let calls: Vec<_> = calls.filter(|(_, call)| call.name == manifest.name && call.digest == digest).collect();
    let (source, origin, agreed, enabled) = match subject {
        Subject::Guest(guest) => {
            let enabled = policy.switch.is_on(guest.is_on_by_default());
            match guest {
                Guest::FirstParty(_) => ("built-in".to_owned(), None, None, enabled),
                Guest::Installed(guest) => {
                    let agreed = Agreed { at: guest.added.clone(), by: guest.by.clone() };
                    ("installed".to_owned(), Some(guest.source.clone()), Some(agreed), enabled)
                }
            }
        }
        Subject::File { named, .. } => (named.clone(), None, None, false),
    };
    let all_wished = difference::wishes(&manifest.limits);
    let limits = Limit::ALL.iter().map(|limit| {
        let key = limit.spec().key;
        let wished = all_wished.iter().find(|(wish, _)| *wish == key).and_then(|(_, wished)| *wished);
        (key, LimitReport { holds: policy.limits.get(*limit), wished })
    });
    let set_aside = match subject {
        Subject::Guest(guest) => context.faults.sets_aside(guest),
        Subject::File { .. } => None,
    };
    Report {
        wit_version: interfaces::built_for(&imports, &[]).map(str::to_owned),
        subscriptions: difference::events(&manifest),
        requested: manifest
            .requests
            .iter()
            .map(|request| Requested {
                capability: request.capability.name().to_owned(),
                scope: request.capability.scope(),
                reason: request.reason.clone(),
            })
            .collect(),
        used: used(&calls),
        limits: limits.collect(),
        history: History {
            set_aside_until: set_aside.map(|streak| omc_state::Timestamp::from(streak.until()).to_string()),
            ..history(&calls)
        },
        name: manifest.name,
        version: manifest.version,
        digest,
        source,
        origin,
        agreed,
        signature,
        enabled,
        imports: split,
        granted,
        findings,
    }
}

/// Where a component and its manifest contradict each other, or this host cannot serve them.
pub(in crate::cli) fn misfits_of(component: &Component) -> Vec<String> {
    misfits(&component.manifest, &split(&component.imports))
}

fn misfits(manifest: &Manifest, imports: &Imports) -> Vec<String> {
    let mut findings: Vec<_> =
        imports.unknown.iter().map(|import| format!("imports `{import}`, which this host does not have")).collect();
    for import in &imports.capability {
        if let Import::Capability(capability) = Import::of(import)
            && !manifest.requests.iter().any(|request| request.capability.name() == capability)
        {
            findings.push(format!("imports `{import}` without requesting `{capability}`"));
        }
    }
    for request in &manifest.requests {
        if let Capability::Unknown { name, .. } = &request.capability {
            findings.push(format!("requests `{name}`, which this version cannot give"));
        }
    }
    findings
}

fn split(imports: &[String]) -> Imports {
    let mut split = Imports::default();
    for import in imports {
        let list = match Import::of(import) {
            Import::Always => &mut split.always,
            Import::Capability(_) => &mut split.capability,
            Import::Runtime => &mut split.runtime,
            Import::Unknown => &mut split.unknown,
        };
        list.push(import.clone());
    }
    split
}

/// What the policy denies of some parts of capabilities and some imports.
fn denials(rules: &AuditPolicy, parts: &[String], imports: &[String]) -> Vec<String> {
    let mut findings = Vec::new();
    for denied in &rules.deny {
        match denied {
            Denied::Import(interface) => {
                let found = imports.iter().filter(|import| interfaces::is_of(import, interface));
                findings.extend(found.map(|import| format!("imports `{import}`, which the policy denies")));
            }
            Denied::Capability(name) => {
                // The two directories have one capability and two names.
                let is_meant = |part: &&String| match part.split_once(' ') {
                    Some(("omc", scope)) => {
                        (name == "omc-user") == scope.contains(":/omc-user") && name.starts_with("omc")
                    }
                    Some((capability, _)) => capability == name,
                    None => *part == name,
                };
                findings
                    .extend(parts.iter().filter(is_meant).map(|part| format!("has `{part}`, which the policy denies")));
            }
            Denied::Part(denied) => {
                let touches = |part: &&String| {
                    let Some((capability, scope)) = part.split_once(' ') else { return false };
                    parse_grant(capability, &[scope.to_owned()])
                        .is_ok_and(|part| policy::covers(&[denied], &part) || policy::covers(&[&part], denied))
                };
                findings
                    .extend(parts.iter().filter(touches).map(|part| format!("has `{part}`, which the policy denies")));
            }
        }
    }
    findings
}

/// In how many calls each capability was used.
fn used(calls: &[(&Record, &GuestRecord)]) -> BTreeMap<String, u64> {
    let mut used = BTreeMap::new();
    for (_, call) in calls {
        let mut capabilities: BTreeSet<&str> =
            call.used.iter().filter_map(|entry| entry.split_once(" ×").map(|(what, _)| what)).collect();
        let is_kept = |what: &str| call.kept.iter().any(|kept| kept == what);
        for (capability, is_used) in [
            ("omc", call.files.is_some()),
            ("update-input", is_kept("updated-input")),
            ("session-environment", is_kept("session-environment")),
            ("allow", call.decision.as_deref() == Some("allow")),
            ("halt", call.decision.as_deref() == Some("halt")),
        ] {
            if is_used {
                capabilities.insert(capability);
            }
        }
        for capability in capabilities {
            *used.entry(capability.to_owned()).or_default() += 1;
        }
    }
    used
}

fn history(calls: &[(&Record, &GuestRecord)]) -> History {
    let mut history = History { calls: calls.len() as u64, ..History::default() };
    for (record, call) in calls {
        history.refusals += call.refused.len() as u64;
        if let Some(fault) = &call.fault {
            *history.faults.entry(fault.kind.clone()).or_default() += 1;
            history.last_fault = Some(record.time.clone());
        }
    }
    history
}
