//! Guests of others: the lock file, adding and removing, and what is granted to them.
//!
//! The guest's bytes lie in the data folder under their digest, its compiled code in the [`cache`]. The lock file says which guests there are and what was agreed to. It names digests, so that other bytes are another guest.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use omc_artifact::{Capability, Component, ComponentError, Manifest};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use thiserror::Error;

use super::FIRST_PARTY;
use super::cache;
use super::trust::{Durability, Locked, create_private_dir, lock_dir, open_private, replace_private};
use crate::config::Paths;
use crate::interfaces::{self, Mismatch};
use crate::policy::{self, in_parts, merged, parse_grant};
use crate::protocol::matcher::Matcher;
use crate::runtime::{self, Code, Fault};
use crate::signature::{self, Key, MAX_SIGNATURE_BYTES, SignatureError, Signer};

/// Largest lock file that is read, in bytes: hundreds of guests.
const MAX_LOCK_BYTES: u64 = 4 * 1024 * 1024;
/// Length of a digest: SHA-256 in hex.
const DIGEST_DIGITS: usize = 64;
/// Version of the lock file's format.
const LOCK_VERSION: u32 = 1;

/// How long a command waits for another one that is changing the lock file: that is a matter of milliseconds.
const WAIT_FOR_LOCK: Duration = Duration::from_secs(10);

/// What is appended to a component's name for the file with its signature.
const SIGNATURE_EXTENSION: &str = ".minisig";

/// A guest of somebody else, as the lock file has it.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Installed {
    /// SHA-256 of the component's bytes, in hex.
    pub(crate) digest: String,
    /// Where it came from, and where `guests update` looks: a file, a folder, or `oci://REFERENCE`.
    pub(crate) source: String,
    /// The digest of the registry's artifact that it was taken from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) artifact: Option<String>,
    /// When it was last agreed to, or to a change of its grants.
    pub(crate) added: String,
    /// Whose account that was.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) by: String,
    /// The signature that came with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) signature: Option<Signed>,
    /// What it said about itself then. It cannot change without another digest.
    pub(crate) manifest: Manifest,
    /// What it imports.
    pub(crate) imports: Vec<String>,
    /// What the operator agreed to.
    #[serde(with = "grants")]
    pub(crate) grants: Vec<Capability>,
}

/// A signature, and the key with which it was checked when the guest was added.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Signed {
    /// The text of the `.minisig` file.
    pub(crate) text: String,
    /// The trusted key; none if the signer was not known then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) signer: Option<String>,
}

/// A component that somebody offers, read once: what is shown, agreed to and installed are the same bytes.
pub(crate) struct Candidate {
    pub(crate) component: Component,
    bytes: Vec<u8>,
    pub(crate) source: String,
    pub(crate) artifact: Option<String>,
    signature: Option<String>,
    pub(crate) signer: Signer,
}

/// What a person agreed to.
pub(crate) struct Agreement {
    pub(crate) grants: Vec<Capability>,
    pub(crate) by: String,
    pub(crate) at: String,
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
    #[error("there is no file `{path}`")]
    NotThere { path: PathBuf },
    #[error("`{path}` is not a guest")]
    NotAGuest { path: PathBuf, source: ComponentError },
    #[error("the signature `{path}` is refused")]
    Signature { path: PathBuf, source: SignatureError },
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
    #[error("the guest `{guest}` is not granted `{grant}`; `omc-host audit {guest}` shows its grants")]
    NotGranted { guest: String, grant: String },
    #[error(
        "`{grant}` is a part of what the guest `{guest}` is granted: revoke the whole, `{whole}`, and grant what is to remain"
    )]
    PartOfAGrant { guest: String, grant: String, whole: String },
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
        Self::load_where(paths, |_| true)
    }

    /// Reads of the lock file the guests that may want an event of this kind. The others stay text, which is most of what it costs
    /// to have them installed.
    pub(crate) fn load_for(paths: &Paths, kind: &str) -> Result<Self, InstallError> {
        // As a manifest spells it; a guest that has the word elsewhere is read in vain.
        let named = format!("\"{kind}\"");
        Self::load_where(paths, |guest| memchr::memmem::find(guest.as_bytes(), named.as_bytes()).is_some())
    }

    fn load_where(paths: &Paths, is_wanted: impl Fn(&str) -> bool) -> Result<Self, InstallError> {
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
        Self::parse(&bytes, is_wanted).map_err(|problem| match problem {
            Unfit::Newer(version) => InstallError::Newer { path, version },
            Unfit::Damaged(source) => InstallError::Damaged { path, source },
        })
    }

    /// Reads the text of a lock file, and of its guests those whose text is wanted.
    fn parse(bytes: &[u8], is_wanted: impl Fn(&str) -> bool) -> Result<Self, Unfit> {
        let parsed = serde_json::from_slice::<Entries<'_>>(bytes);
        // First, since a later format may look like this one and mean something else.
        let version = match &parsed {
            Ok(entries) => Some(entries.version),
            Err(_) => serde_json::from_slice::<Version>(bytes).ok().map(|version| version.version),
        };
        if let Some(version) = version.filter(|version| *version > LOCK_VERSION) {
            return Err(Unfit::Newer(version));
        }
        let entries = parsed.map_err(Unfit::Damaged)?;
        let wanted = entries.guests.into_iter().map(RawValue::get).filter(|guest| is_wanted(guest));
        let guests =
            wanted.map(serde_json::from_str::<Installed>).collect::<Result<Vec<_>, _>>().map_err(Unfit::Damaged)?;
        match guests.iter().find_map(Installed::flaw) {
            Some(flaw) => Err(Unfit::Damaged(serde::de::Error::custom(flaw))),
            None => Ok(Self { version: entries.version, guests }),
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

/// A lock file whose guests are still text.
#[derive(Deserialize)]
struct Entries<'a> {
    version: u32,
    #[serde(borrow)]
    guests: Vec<&'a RawValue>,
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

    /// The trusted key whose signature it had when it was added.
    pub(crate) fn signer(&self) -> Option<&str> {
        self.signature.as_ref()?.signer.as_deref()
    }

    /// Whose signature its bytes have, with the keys that are trusted now.
    pub(crate) fn verify_signature(&self, paths: &Paths, trusted: &BTreeSet<Key>) -> Result<Signer, String> {
        let Some(signed) = &self.signature else { return Ok(Signer::None) };
        let path = cache::component_path(paths, &self.digest).ok_or_else(|| InstallError::NoFolder.to_string())?;
        let (_, bytes) = Component::load(&path).map_err(|error| format!("its bytes cannot be read: {error}"))?;
        signature::verify(&bytes, Some(&signed.text), trusted).map_err(|error| error.to_string())
    }

    /// Whether the bytes that were agreed to are still there.
    pub(crate) fn is_whole(&self, paths: &Paths) -> bool {
        let path = cache::component_path(paths, &self.digest);
        path.is_some_and(|path| Component::load(&path).is_ok_and(|(component, _)| component.digest == self.digest))
    }

    /// What is wrong with the guest's files; nothing if they are those that were agreed to and only the user can change them.
    pub(crate) fn verify(&self, paths: &Paths, trusted: &BTreeSet<Key>) -> Vec<String> {
        let Some(path) = cache::component_path(paths, &self.digest) else {
            return vec![InstallError::NoFolder.to_string()];
        };
        let mut problems = Vec::new();
        if let Err(error) = open_private(&path) {
            problems.push(format!("its component `{}` is not to be trusted: {error}", path.display()));
        }
        match Component::load(&path) {
            Err(error) => {
                problems.push(format!("its component `{}` cannot be read: {error}; add it again", path.display()));
            }
            Ok((component, _)) if component.digest != self.digest => {
                problems.push(format!(
                    "the bytes of its component `{}` are not those that were agreed to; add it again",
                    path.display()
                ));
            }
            Ok((component, _)) => {
                if component.manifest != self.manifest || component.imports != self.imports {
                    problems.push("the lock file says something else about it than its component".to_owned());
                }
                problems.extend(check(&component, &self.grants).err().map(|error| error.to_string()));
            }
        }
        problems.extend(cache::open(paths, &self.digest).err().map(|fault| fault.detail));
        problems.extend(self.verify_signature(paths, trusted).err().map(|why| format!("its signature: {why}")));
        problems
    }
}

/// Files among the guests' that the lock file does not name.
pub(crate) fn strays(paths: &Paths, lock: &Lock) -> Vec<PathBuf> {
    let folder = paths.data_dir.as_ref().map(|dir| dir.join("guests"));
    let entries = folder.and_then(|folder| fs::read_dir(folder).ok()).into_iter().flatten();
    let is_stray =
        |path: &PathBuf| !path.file_stem().is_some_and(|stem| lock.guests.iter().any(|guest| *stem == *guest.digest));
    entries.filter_map(|entry| Some(entry.ok()?.path())).filter(is_stray).collect()
}

impl Candidate {
    /// Reads a component from a file, and its signature if there is one beside it.
    pub(crate) fn read(
        file: &Path,
        source: String,
        artifact: Option<String>,
        trusted: &BTreeSet<Key>,
    ) -> Result<Self, InstallError> {
        let (component, bytes) = Component::load(file).map_err(|source| match source {
            ComponentError::Read(error) if error.kind() == io::ErrorKind::NotFound => {
                InstallError::NotThere { path: file.to_owned() }
            }
            source => InstallError::NotAGuest { path: file.to_owned(), source },
        })?;
        check(&component, &[])?;
        let path = signature_path(file);
        let signature = read_signature(&path)?;
        let signer = signature::verify(&bytes, signature.as_deref(), trusted)
            .map_err(|source| InstallError::Signature { path, source })?;
        Ok(Self { component, bytes, source, artifact, signature, signer })
    }

    /// Sees that nothing is granted beyond the request.
    pub(crate) fn check_grants(&self, grants: &[Capability]) -> Result<(), InstallError> {
        check(&self.component, grants)
    }

    /// The trusted key that signed it.
    pub(crate) fn signing_key(&self) -> Option<&str> {
        match &self.signer {
            Signer::Trusted(key) => Some(key.as_str()),
            Signer::None | Signer::Unknown(_) => None,
        }
    }

    pub(crate) fn size(&self) -> usize {
        self.bytes.len()
    }
}

/// The file with the signature of a component.
fn signature_path(file: &Path) -> PathBuf {
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(SIGNATURE_EXTENSION);
    file.with_file_name(name)
}

/// The signature beside a component's file, if there is one.
pub(crate) fn signature_beside(file: &Path) -> Result<Option<String>, InstallError> {
    read_signature(&signature_path(file))
}

fn read_signature(path: &Path) -> Result<Option<String>, InstallError> {
    let refused = |why: &str| {
        let source = SignatureError::Format(why.to_owned());
        InstallError::Signature { path: path.to_owned(), source }
    };
    match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        // Before it is opened: opening a pipe would wait for its other end.
        Ok(about) if !about.is_file() => return Err(refused("it is not a regular file")),
        _ => {}
    }
    let mut bytes = Vec::new();
    fs::File::open(path)
        .and_then(|file| file.take(MAX_SIGNATURE_BYTES + 1).read_to_end(&mut bytes))
        .map_err(|source| InstallError::Read { path: path.to_owned(), source })?;
    if bytes.len() as u64 > MAX_SIGNATURE_BYTES {
        return Err(refused("it is too large"));
    }
    String::from_utf8(bytes).map(Some).map_err(|_| refused("it is not text"))
}

/// Adds a guest: checks it, compiles it, sees that it links, writes it down. A guest of the same name is replaced.
pub(crate) fn install(
    paths: &Paths,
    candidate: Candidate,
    agreement: Agreement,
    compiler: &Path,
) -> Result<Installed, InstallError> {
    let Agreement { grants, by, at } = agreement;
    candidate.check_grants(&grants)?;
    let signer = candidate.signing_key().map(str::to_owned);
    let Candidate { component, bytes, source, artifact, signature, .. } = candidate;
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
    let signature = signature.map(|text| Signed { text, signer });
    let installed = Installed { digest, source, artifact, added: at, by, signature, manifest, imports, grants };
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

/// Changes what a guest is granted; `change` says what of it is to be granted from now on.
pub(crate) fn change_grants(
    paths: &Paths,
    name: &str,
    by: String,
    at: String,
    change: impl FnOnce(&Installed) -> Result<Vec<Capability>, InstallError>,
) -> Result<Vec<Capability>, InstallError> {
    Lock::change(paths, |lock| {
        let guest = lock.guests.iter_mut().find(|guest| guest.manifest.name == name);
        let guest = guest.ok_or_else(|| InstallError::Unknown(name.to_owned()))?;
        let grants = merged(change(guest)?);
        within_request(&guest.manifest, &grants)?;
        (guest.grants, guest.by, guest.added) = (grants.clone(), by, at);
        Ok(grants)
    })
}

/// Grants without a capability, or without a part of its scope.
pub(crate) fn without(
    guest: &Installed,
    capability: &str,
    part: Option<&str>,
) -> Result<Vec<Capability>, InstallError> {
    let name = || guest.manifest.name.clone();
    let not_granted = || {
        let grant = part.map_or_else(|| capability.to_owned(), |part| format!("{capability}={part}"));
        InstallError::NotGranted { guest: name(), grant }
    };
    let (mut found, mut left): (Vec<_>, Vec<_>) =
        guest.grants.iter().cloned().partition(|grant| grant.name() == capability);
    let granted = found.pop().ok_or_else(not_granted)?;
    let Some(part) = part else { return Ok(left) };
    let (taken, scope): (Vec<_>, Vec<_>) = granted.scope().into_iter().partition(|granted| granted == part);
    if taken.is_empty() {
        let inner = parse_grant(capability, &[part.to_owned()]).map_err(|_| not_granted())?;
        let around = granted.scope().into_iter().find(|whole| {
            parse_grant(capability, std::slice::from_ref(whole)).is_ok_and(|whole| policy::covers(&[&whole], &inner))
        });
        let whole = around.ok_or_else(not_granted)?;
        return Err(InstallError::PartOfAGrant { guest: name(), grant: part.to_owned(), whole });
    }
    if !scope.is_empty() {
        left.push(parse_grant(capability, &scope).map_err(|_| not_granted())?);
    }
    Ok(left)
}

/// Checks what can be known of a guest without compiling it, and what it is to be granted.
/// Sees that a component can be a guest of somebody else here, as far as can be told without compiling it, and that nothing is
/// granted beyond its requests.
pub(crate) fn check(component: &Component, grants: &[Capability]) -> Result<(), InstallError> {
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
    within_request(manifest, grants)
}

fn within_request(manifest: &Manifest, grants: &[Capability]) -> Result<(), InstallError> {
    let requested: Vec<_> = manifest.requests.iter().map(|request| &request.capability).collect();
    match grants.iter().flat_map(in_parts).find(|part| !policy::covers(&requested, part)) {
        Some(part) => {
            let grant = [vec![part.name().to_owned()], part.scope()].concat().join(" ");
            Err(InstallError::TooMuch { guest: manifest.name.clone(), grant })
        }
        None => Ok(()),
    }
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

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::config::Env;

    fn lock(version: u32, digest: &str, name: &str) -> Value {
        json!({"version": version, "guests": [{
            "digest": digest, "source": "x.wasm", "added": "2026-01-01T00:00:00.000Z", "imports": [], "grants": [],
            "manifest": {"name": name, "version": "1", "subscriptions": []},
        }]})
    }

    #[test]
    fn an_event_reads_the_guests_that_may_want_it_and_no_others() {
        let guest = |name: &str, event: &str| {
            json!({
                "digest": "0".repeat(DIGEST_DIGITS), "source": "x.wasm", "added": "2026-01-01T00:00:00.000Z",
                "imports": [], "grants": [],
                "manifest": {"name": name, "version": "1", "subscriptions": [{"event": event}]},
            })
        };
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().join("home");
        let paths = Paths::resolve(&Env::from_pairs(&[("HOME", home.as_os_str())]), None, None);
        let data = paths.data_dir.clone().unwrap();
        create_private_dir(&data).unwrap();
        // The second could not be read at all.
        let lock =
            json!({"version": LOCK_VERSION, "guests": [guest("a", "stop"), {"manifest": 7}, guest("b", "setup")]});
        write(&Lock::path(&paths).unwrap(), lock.to_string().as_bytes()).unwrap();
        let names = |kind| -> Vec<_> {
            let lock = Lock::load_for(&paths, kind).unwrap();
            lock.guests.into_iter().map(|guest| guest.manifest.name).collect()
        };
        assert_eq!(
            (names("stop"), names("setup"), names("sto")),
            (vec!["a".to_owned()], vec!["b".to_owned()], Vec::new())
        );
        assert!(Lock::load(&paths).is_err());
    }

    #[test]
    fn a_lock_file_that_add_did_not_write_is_refused() {
        let digest = "0".repeat(DIGEST_DIGITS);
        let read = |value: Value| match Lock::parse(value.to_string().as_bytes(), |_| true) {
            Ok(lock) => format!("{} guests", lock.guests.len()),
            Err(Unfit::Newer(version)) => format!("newer {version}"),
            Err(Unfit::Damaged(source)) => source.to_string(),
        };
        assert_eq!(read(lock(LOCK_VERSION, &digest, "guard")), "1 guests");
        assert_eq!(read(lock(LOCK_VERSION + 1, &digest, "guard")), "newer 2", "though it looks the same");
        assert_eq!(read(json!({"version": 7})), "newer 7");
        assert_eq!(read(json!({"version": LOCK_VERSION, "guests": [7]})).split(':').next(), Some("invalid type"));
        for bad in ["", "0", "../../x", &digest.replace('0', "G"), &format!("{digest}0")] {
            assert_eq!(read(lock(LOCK_VERSION, bad, "guard")), "`guard` has no digest", "{bad}");
        }
        for bad in ["", "../x", "a\u{1b}[31m", "A", &"a".repeat(65)] {
            assert!(read(lock(LOCK_VERSION, &digest, bad)).starts_with("the name"), "{bad}");
        }
    }
}
