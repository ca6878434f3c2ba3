//! Guests of others: the lock file, adding and removing.
//!
//! The guest's bytes lie in the data folder under their digest, its compiled code in the [`cache`]. The lock file says which guests there are and what was agreed to. It names digests, so that other bytes are another guest.

use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use omc_artifact::{Capability, Component, ComponentError, Manifest, Request};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::FIRST_PARTY;
use super::cache;
use super::trust::{Durability, Locked, create_private_dir, lock_dir, open_private, replace_private};
use crate::config::Paths;
use crate::interfaces::{self, Mismatch};
use crate::policy;
use crate::protocol::matcher::Matcher;
use crate::runtime::{self, Code, Fault};

/// Largest lock file that is read, in bytes: hundreds of guests.
const MAX_LOCK_BYTES: u64 = 4 * 1024 * 1024;
/// Length of a digest: SHA-256 in hex.
const DIGEST_DIGITS: usize = 64;
/// Version of the lock file's format.
const LOCK_VERSION: u32 = 1;

/// How long a command waits for another one that is changing the lock file: that is a matter of milliseconds.
const WAIT_FOR_LOCK: Duration = Duration::from_secs(10);

/// A guest of somebody else, as the lock file has it.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Installed {
    /// SHA-256 of the component's bytes, in hex.
    pub(crate) digest: String,
    /// Where it came from, for people.
    pub(crate) source: String,
    /// When it was agreed to.
    pub(crate) added: String,
    /// What it said about itself then. It cannot change without another digest.
    pub(crate) manifest: Manifest,
    /// What it imports.
    pub(crate) imports: Vec<String>,
    /// What the operator agreed to.
    #[serde(with = "grants")]
    pub(crate) grants: Vec<Capability>,
}

/// The lock file.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Lock {
    version: u32,
    pub(crate) guests: Vec<Installed>,
}

/// Why a guest could not be added, removed or found.
#[derive(Debug, Error)]
pub(crate) enum InstallError {
    #[error("there is no folder to keep guests in: neither HOME nor XDG_DATA_HOME is set to an absolute path")]
    NoFolder,
    #[error("failed to read `{path}`")]
    Read { path: PathBuf, source: io::Error },
    #[error("failed to write `{path}`")]
    Write { path: PathBuf, source: io::Error },
    #[error("the lock file `{path}` is damaged; restore it, or remove it and add the guests again")]
    Damaged { path: PathBuf, source: serde_json::Error },
    #[error(
        "the lock file `{path}` has format {version}, and this host knows format {LOCK_VERSION}; use a newer omc-host"
    )]
    Newer { path: PathBuf, version: u32 },
    #[error("`{path}` is not a guest")]
    NotAGuest { path: PathBuf, source: ComponentError },
    #[error("the name `{0}` belongs to a guest of omc-host itself; the author must choose another")]
    Reserved(String),
    #[error("the guest `{guest}` subscribes to `{event}` with a matcher that cannot be used: {problem}")]
    Matcher { guest: String, event: String, problem: String },
    #[error("the grant `{grant}` is more than the guest `{guest}` requests; see `omc-host audit FILE`")]
    TooMuch { guest: String, grant: String },
    #[error("the guest `{guest}` does not fit this host: {mismatch}")]
    Mismatch { guest: String, mismatch: Mismatch },
    #[error("the guest `{guest}` does not fit this host ({fault})")]
    Link { guest: String, fault: Fault },
    #[error("failed to compile the guest: {0}")]
    Compile(String),
    #[error("there is no guest `{0}`; `omc-host guests list` shows those there are")]
    Unknown(String),
}

/// The one member that the lock files of all versions have.
#[derive(Deserialize)]
struct Version {
    version: u32,
}

impl Lock {
    fn path(paths: &Paths) -> Result<PathBuf, InstallError> {
        Ok(paths.data_dir.as_ref().ok_or(InstallError::NoFolder)?.join("guests.json"))
    }

    /// Reads the lock file; a missing one means no guests.
    pub(crate) fn load(paths: &Paths) -> Result<Self, InstallError> {
        let none = Self { version: LOCK_VERSION, guests: Vec::new() };
        let Ok(path) = Self::path(paths) else { return Ok(none) };
        let file = match open_private(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(none),
            Err(source) => return Err(InstallError::Read { path, source }),
        };
        let mut bytes = Vec::new();
        match file.take(MAX_LOCK_BYTES).read_to_end(&mut bytes) {
            Ok(_) => {}
            Err(source) => return Err(InstallError::Read { path, source }),
        }
        Self::parse(&bytes).map_err(|problem| match problem {
            Unfit::Newer(version) => InstallError::Newer { path, version },
            Unfit::Damaged(source) => InstallError::Damaged { path, source },
        })
    }

    /// Reads the text of a lock file.
    fn parse(bytes: &[u8]) -> Result<Self, Unfit> {
        let parsed = serde_json::from_slice::<Self>(bytes);
        // First, since a later format may look like this one and mean something else.
        let version = match &parsed {
            Ok(lock) => Some(lock.version),
            Err(_) => serde_json::from_slice::<Version>(bytes).ok().map(|version| version.version),
        };
        if let Some(version) = version.filter(|version| *version > LOCK_VERSION) {
            return Err(Unfit::Newer(version));
        }
        let lock = parsed.map_err(Unfit::Damaged)?;
        match lock.guests.iter().find_map(Installed::flaw) {
            Some(flaw) => Err(Unfit::Damaged(serde::de::Error::custom(flaw))),
            None => Ok(lock),
        }
    }

    /// Changes the lock file, with nobody else changing it meanwhile.
    fn change<T>(paths: &Paths, change: impl FnOnce(&mut Self) -> Result<T, InstallError>) -> Result<T, InstallError> {
        let path = Self::path(paths)?;
        let _locked = lock_data(paths)?;
        let mut lock = Self::load(paths)?;
        let done = change(&mut lock)?;
        let bytes =
            serde_json::to_vec_pretty(&lock).map_err(|source| InstallError::Damaged { path: path.clone(), source })?;
        write(&path, &bytes)?;
        Ok(done)
    }

    fn uses(&self, digest: &str) -> bool {
        self.guests.iter().any(|guest| guest.digest == digest)
    }
}

/// Locks the data folder, so that the lock file and the guests beside it are changed by one command at a time.
fn lock_data(paths: &Paths) -> Result<Locked, InstallError> {
    let data = paths.data_dir.as_ref().ok_or(InstallError::NoFolder)?;
    lock_dir(data, WAIT_FOR_LOCK).map_err(|source| InstallError::Write { path: data.clone(), source })
}

/// Why the text of a lock file cannot be used.
enum Unfit {
    Newer(u32),
    Damaged(serde_json::Error),
}

impl Installed {
    /// What is wrong with an entry, if `add` would never have written it.
    fn flaw(&self) -> Option<String> {
        let is_digest = self.digest.len() == DIGEST_DIGITS
            && self.digest.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let manifest = self.manifest.check().err().map(|error| error.to_string());
        manifest.or_else(|| (!is_digest).then(|| format!("`{}` has no digest", self.manifest.name)))
    }

    /// The guest's compiled code, from the cache.
    pub(super) fn code(&self, paths: &Paths) -> Result<Code, Fault> {
        cache::open(paths, &self.digest)
    }
}

/// Adds a guest: checks it, compiles it, sees that it links, writes it down. A guest of the same name is replaced.
pub(crate) fn install(
    paths: &Paths,
    file: &Path,
    grants: Vec<Capability>,
    compiler: &Path,
    now: String,
) -> Result<Installed, InstallError> {
    let (component, bytes) =
        Component::load(file).map_err(|source| InstallError::NotAGuest { path: file.to_owned(), source })?;
    check(&component, &grants)?;
    let digest = &component.digest;
    let kept = cache::component_path(paths, digest).ok_or(InstallError::NoFolder)?;
    {
        let _locked = lock_data(paths)?;
        write(&kept, &bytes)?;
    }
    let linked = cache::compile_now(paths, digest, compiler).and_then(|()| link(paths, &component));
    if let Err(error) = linked {
        // What was added before under the same digest stays as it was.
        if !Lock::load(paths).is_ok_and(|lock| lock.uses(digest)) {
            discard(paths, digest);
        }
        return Err(error);
    }

    let Component { manifest, imports, digest, .. } = component;
    let source = file.display().to_string();
    let installed = Installed { digest, source, added: now, manifest, imports, grants };
    let replaced = Lock::change(paths, |lock| {
        let name = &installed.manifest.name;
        let (replaced, mut kept): (Vec<_>, Vec<_>) =
            std::mem::take(&mut lock.guests).into_iter().partition(|guest| guest.manifest.name == *name);
        kept.push(installed.clone());
        kept.sort_by(|a, b| a.manifest.name.cmp(&b.manifest.name));
        lock.guests = kept;
        Ok(replaced.into_iter().map(|guest| guest.digest).filter(|digest| !lock.uses(digest)).collect::<Vec<_>>())
    })?;
    for digest in &replaced {
        discard(paths, digest);
    }
    Ok(installed)
}

/// Checks what can be known of a guest without compiling it, and what it is to be granted.
fn check(component: &Component, grants: &[Capability]) -> Result<(), InstallError> {
    let manifest = &component.manifest;
    let name = &manifest.name;
    if FIRST_PARTY.iter().any(|guest| guest.name == name) {
        return Err(InstallError::Reserved(name.clone()));
    }
    for subscription in &manifest.subscriptions {
        if let Err(problem) = Matcher::parse(subscription.matcher.as_deref()) {
            let (guest, event) = (name.clone(), subscription.event.clone());
            return Err(InstallError::Matcher { guest, event, problem: problem.to_string() });
        }
    }
    interfaces::check(&component.imports, &component.exports)
        .map_err(|mismatch| InstallError::Mismatch { guest: name.clone(), mismatch })?;
    let requested: Vec<_> = manifest.requests.iter().map(|request| &request.capability).collect();
    if let Some(grant) = grants.iter().find(|grant| !policy::covers(&requested, grant)) {
        let grant = [vec![grant.name().to_owned()], grant.scope()].concat().join(" ");
        return Err(InstallError::TooMuch { guest: name.clone(), grant });
    }
    Ok(())
}

/// Sees that compiled code links: names alone do not tell whether functions and types fit.
fn link(paths: &Paths, component: &Component) -> Result<(), InstallError> {
    let linked = cache::open(paths, &component.digest).and_then(|code| runtime::link(code, &component.imports));
    linked.map_err(|fault| InstallError::Link { guest: component.manifest.name.clone(), fault })
}

/// Takes a guest off the list and removes its bytes.
pub(crate) fn remove(paths: &Paths, name: &str) -> Result<(), InstallError> {
    let unused = Lock::change(paths, |lock| {
        let at = lock.guests.iter().position(|guest| guest.manifest.name == name);
        let removed = lock.guests.remove(at.ok_or_else(|| InstallError::Unknown(name.to_owned()))?);
        Ok((!lock.uses(&removed.digest)).then_some(removed.digest))
    })?;
    if let Some(digest) = unused {
        discard(paths, &digest);
    }
    Ok(())
}

/// Removes the bytes and the compiled code of a component that the list does not name.
fn discard(paths: &Paths, digest: &str) {
    if let Some(kept) = cache::component_path(paths, digest) {
        // Gone already is as good as removed; the lock file is what counts.
        drop(fs::remove_file(kept));
    }
    cache::remove(paths, digest);
}

/// Writes a file below the data folder, which the caller has locked.
fn write(path: &Path, bytes: &[u8]) -> Result<(), InstallError> {
    let folder = path.parent().unwrap_or(path);
    create_private_dir(folder)
        .and_then(|()| replace_private(path, bytes, Durability::Synced))
        .map_err(|source| InstallError::Write { path: path.to_owned(), source })
}

/// Grants in the lock file look like requests without a reason.
mod grants {
    use serde::de::Error as _;
    use serde::{Deserializer, Serializer};

    use super::{Capability, Deserialize, Serialize};

    #[derive(Deserialize, Serialize)]
    struct Grant {
        capability: String,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        scope: Vec<String>,
    }

    pub(super) fn serialize<S: Serializer>(grants: &[Capability], serializer: S) -> Result<S::Ok, S::Error> {
        let plain: Vec<_> =
            grants.iter().map(|grant| Grant { capability: grant.name().to_owned(), scope: grant.scope() }).collect();
        plain.serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Capability>, D::Error> {
        let plain = Vec::<Grant>::deserialize(deserializer)?;
        plain
            .into_iter()
            .map(|grant| super::parse_grant(&grant.capability, &grant.scope).map_err(D::Error::custom))
            .collect()
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

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn lock(version: u32, digest: &str, name: &str) -> Value {
        json!({"version": version, "guests": [{
            "digest": digest, "source": "x.wasm", "added": "2026-01-01T00:00:00.000Z", "imports": [], "grants": [],
            "manifest": {"name": name, "version": "1", "subscriptions": []},
        }]})
    }

    #[test]
    fn a_lock_file_that_add_did_not_write_is_refused() {
        let digest = "0".repeat(DIGEST_DIGITS);
        let read = |value: Value| match Lock::parse(value.to_string().as_bytes()) {
            Ok(lock) => format!("{} guests", lock.guests.len()),
            Err(Unfit::Newer(version)) => format!("newer {version}"),
            Err(Unfit::Damaged(source)) => source.to_string(),
        };
        assert_eq!(read(lock(LOCK_VERSION, &digest, "guard")), "1 guests");
        assert_eq!(read(lock(LOCK_VERSION + 1, &digest, "guard")), "newer 2", "though it looks the same");
        assert_eq!(read(json!({"version": 7})), "newer 7");
        for bad in ["", "0", "../../x", &digest.replace('0', "G"), &format!("{digest}0")] {
            assert_eq!(read(lock(LOCK_VERSION, bad, "guard")), "`guard` has no digest", "{bad}");
        }
        for bad in ["", "../x", "a\u{1b}[31m", "A", &"a".repeat(65)] {
            assert!(read(lock(LOCK_VERSION, &digest, bad)).starts_with("the name"), "{bad}");
        }
    }
}
