//! Which guests there are, and which of them an event selects.
//!
//! First-party guests are inside the binary; those of others are in the user's data folder and listed in its lock file. Selecting
//! reads tables, and looks at what a matching subscription's conditions name: a guest that does not match costs a comparison.

mod cache;
mod faults;
mod installed;
mod trust;

use std::sync::Arc;

use omc_artifact::{Capability, Manifest, Request};
use serde_json::Value;

use crate::capability::conditions::Conditions;
use crate::config::{GuestPolicy, Occasion, Paths};
use crate::protocol::event::Event;
use crate::protocol::matcher::Matcher;
use crate::runtime::{Aligned, Code, EmbeddedCode, Fault};
use crate::surroundings::Surroundings;

pub(crate) use cache::{compiler_beside, mend};
pub(crate) use faults::{Faults, Outcome, Streak};
pub(crate) use installed::{
    Agreement, Candidate, InstallError, Installed, Lock, change_grants, check, install, remove, signature_beside,
    strays, without,
};
pub(crate) use trust::{
    Durability, Locked, PrivateDir, create_private_dir, lock_dir, open_private, replace_over, replace_private,
};

/// A guest inside this binary. The table is written by the build script.
pub(crate) struct Embedded {
    pub(crate) name: &'static str,
    pub(crate) version: &'static str,
    pub(crate) digest: &'static str,
    /// The manifest, as JSON; only read for guests that an event selects.
    pub(crate) manifest: &'static str,
    pub(crate) imports: &'static [&'static str],
    pub(crate) enabled: bool,
    pub(crate) subscriptions: &'static [Wanted],
    code: EmbeddedCode,
}

/// A subscription of an embedded guest.
pub(crate) struct Wanted {
    pub(crate) event: &'static str,
    pub(crate) matcher: Option<&'static str>,
    pub(crate) order: i32,
    pub(crate) when: &'static [&'static str],
}

/// The guests that this project makes.
#[expect(clippy::unreadable_literal, reason = "the build script writes lengths as they are")]
pub(crate) static FIRST_PARTY: &[Embedded] = include!(concat!(env!("OUT_DIR"), "/first_party.rs"));

/// All guests.
pub(crate) struct Registry {
    pub(crate) installed: Vec<Arc<Installed>>,
    /// What is wrong with the lock file, for the trail and for people.
    pub(crate) problem: Option<InstallError>,
    /// Which guests are set aside for a while.
    pub(crate) faults: Faults,
}

/// A guest, wherever it comes from.
#[derive(Clone)]
pub(crate) enum Guest {
    FirstParty(&'static Embedded),
    Installed(Arc<Installed>),
}

/// A guest that an event selects, and what it runs under.
pub(crate) struct Handler {
    pub(crate) guest: Guest,
    pub(crate) policy: GuestPolicy,
    order: i32,
}

impl Registry {
    /// Reads the lock file and who is set aside. A broken or untrusted lock file means no guests of others, and a problem.
    pub(crate) fn load(paths: &Paths) -> Self {
        Self::with(Lock::load(paths), paths)
    }

    /// The same with those guests of others only that may want an event of this kind.
    pub(crate) fn load_for(paths: &Paths, kind: &str) -> Self {
        Self::with(Lock::load_for(paths, kind), paths)
    }

    fn with(lock: Result<Lock, InstallError>, paths: &Paths) -> Self {
        let faults = Faults::load(paths);
        match lock {
            Ok(lock) => Self { installed: lock.guests.into_iter().map(Arc::new).collect(), problem: None, faults },
            Err(error) => Self { installed: Vec::new(), problem: Some(error), faults },
        }
    }

    /// All guests, first-party ones first.
    pub(crate) fn guests(&self) -> impl Iterator<Item = Guest> + '_ {
        FIRST_PARTY.iter().map(Guest::FirstParty).chain(self.installed.iter().cloned().map(Guest::Installed))
    }

    /// Those of some guests that are not there.
    pub(crate) fn missing<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
        names.into_iter().filter(|name| !self.guests().any(|guest| guest.name() == *name)).collect()
    }

    /// The guests that an event selects, the configuration admits and their faults have not set aside, in the order in which
    /// their texts are joined.
    pub(crate) fn select(
        &self,
        event: &Event,
        surroundings: &Surroundings,
        conditions: &Conditions<'_>,
    ) -> Vec<Handler> {
        let config = &surroundings.config;
        let occasion = occasion(event);
        let mut selected: Vec<_> = self
            .guests()
            .filter_map(|guest| {
                // From what is cheap to what may ask the file system.
                if !guest.subscribes_to(event.kind_name()) {
                    return None;
                }
                let policy = config.admit(guest.name(), guest.is_on_by_default(), occasion)?;
                if !policy.required && self.faults.sets_aside(&guest).is_some() {
                    return None;
                }
                let wanted = guest.wants(event, conditions, &policy)?;
                Some(Handler { order: policy.order.unwrap_or(wanted), policy, guest })
            })
            .collect();
        selected.sort_by(|a, b| a.order.cmp(&b.order).then_with(|| a.guest.name().cmp(b.guest.name())));
        selected
    }
}

impl Guest {
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::FirstParty(guest) => guest.name,
            Self::Installed(guest) => &guest.manifest.name,
        }
    }

    pub(crate) fn version(&self) -> &str {
        match self {
            Self::FirstParty(guest) => guest.version,
            Self::Installed(guest) => &guest.manifest.version,
        }
    }

    pub(crate) fn digest(&self) -> &str {
        match self {
            Self::FirstParty(guest) => guest.digest,
            Self::Installed(guest) => &guest.digest,
        }
    }

    pub(crate) fn imports(&self) -> Vec<String> {
        match self {
            Self::FirstParty(guest) => guest.imports.iter().map(ToString::to_string).collect(),
            Self::Installed(guest) => guest.imports.clone(),
        }
    }

    /// What the guest says about itself.
    pub(crate) fn manifest(&self) -> Manifest {
        match self {
            Self::FirstParty(guest) => Manifest::parse(guest.manifest.as_bytes())
                .expect("the build reads the same manifest with the same function"),
            Self::Installed(guest) => guest.manifest.clone(),
        }
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.manifest().requests
    }

    /// What the operator agreed to; none for a first-party guest, which is granted what it requests.
    pub(crate) fn granted(&self) -> Option<&[Capability]> {
        match self {
            Self::FirstParty(_) => None,
            Self::Installed(guest) => Some(&guest.grants),
        }
    }

    /// Whether it is on where nobody says otherwise.
    pub(crate) fn is_on_by_default(&self) -> bool {
        match self {
            Self::FirstParty(guest) => guest.enabled,
            Self::Installed(guest) => guest.manifest.enabled,
        }
    }

    /// Whether it wants to see any event of this kind.
    pub(crate) fn subscribes_to(&self, kind: &str) -> bool {
        match self {
            Self::FirstParty(guest) => guest.subscriptions.iter().any(|wanted| wanted.event == kind),
            Self::Installed(guest) => guest.manifest.subscriptions.iter().any(|wanted| wanted.event == kind),
        }
    }

    /// The guest's order on an event that it wants to see: that of its first subscription that matches and whose conditions hold.
    fn wants(&self, event: &Event, conditions: &Conditions<'_>, policy: &GuestPolicy) -> Option<i32> {
        let kind = event.kind_name();
        match self {
            Self::FirstParty(guest) => guest
                .subscriptions
                .iter()
                .filter(|wanted| wanted.event == kind && matches(wanted.matcher, event))
                .find(|wanted| {
                    conditions.hold(wanted.when.iter().copied(), |capability| self.lacks(capability, policy))
                })
                .map(|wanted| wanted.order),
            Self::Installed(guest) => guest
                .manifest
                .subscriptions
                .iter()
                .filter(|wanted| wanted.event == kind && matches(wanted.matcher.as_deref(), event))
                .find(|wanted| {
                    conditions.hold(wanted.when.iter().map(String::as_str), |capability| self.lacks(capability, policy))
                })
                .map(|wanted| wanted.order),
        }
    }

    /// Whether the guest was not granted a capability, or has it withheld.
    pub(crate) fn lacks(&self, capability: &str, policy: &GuestPolicy) -> bool {
        let is_granted = |granted: &[Capability]| {
            granted.iter().any(|granted| match granted {
                Capability::Omc(scopes) => scopes.iter().any(|scope| scope.preopen.guest_path()[1..] == *capability),
                granted => granted.name() == capability,
            })
        };
        policy.withheld.contains(capability) || self.granted().is_some_and(|granted| !is_granted(granted))
    }

    /// Finds the guest's compiled code; may read files.
    pub(crate) fn code(&self, paths: &Paths) -> Result<Code, Fault> {
        match self {
            Self::FirstParty(guest) => Ok(Code::Embedded(guest.code)),
            Self::Installed(guest) => guest.code(paths),
        }
    }
}

/// What kill switches tell events apart by.
pub(crate) fn occasion(event: &Event) -> Occasion<'_> {
    let source = event.pointer("/source").or_else(|| event.pointer("/trigger")).and_then(Value::as_str);
    Occasion { kind: event.kind_name(), source }
}

/// Whether a subscription's matcher matches. One that cannot be read matches nothing: `guests add` refuses it, so that it can
/// only come from a damaged lock file.
fn matches(matcher: Option<&str>, event: &Event) -> bool {
    Matcher::parse(matcher).is_ok_and(|matcher| matcher.matches(event))
}
