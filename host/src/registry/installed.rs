//! Guests of others: the lock file, adding and removing, and their compiled code.
//!
//! The guest's bytes lie in the data folder under their digest, its compiled code in the cache folder under digest and engine.
//! The lock file says which guests there are and what was agreed to. It names digests, so that other bytes are another guest.

use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use omc_artifact::{Capability, Component, ComponentError, MAX_COMPONENT_BYTES, Manifest, Request};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::{FIRST_PARTY, create_private_dir, open_private, replace_private};
use crate::config::Paths;
use crate::policy;
use crate::protocol::matcher::Matcher;
use crate::runtime::{Code, Fault, FaultKind};

/// Largest lock file that is read, in bytes: hundreds of guests.
const MAX_LOCK_BYTES: u64 = 4 * 1024 * 1024;
/// Version of the lock file's format.
const LOCK_VERSION: u32 = 1;

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
        match serde_json::from_slice(&bytes) {
            Ok(lock) => Ok(lock),
            // A later format need not look like this one.
            Err(source) => match serde_json::from_slice::<Version>(&bytes) {
                Ok(Version { version }) if version > LOCK_VERSION => Err(InstallError::Newer { path, version }),
                _ => Err(InstallError::Damaged { path, source }),
            },
        }
    }

    fn save(&self, paths: &Paths) -> Result<(), InstallError> {
        let path = Self::path(paths)?;
        let bytes =
            serde_json::to_vec_pretty(self).map_err(|source| InstallError::Damaged { path: path.clone(), source })?;
        write(&path, &bytes)
    }
}

impl Installed {
    /// The guest's compiled code, from the cache.
    pub(super) fn code(&self, paths: &Paths) -> Result<Code, Fault> {
        let path = cache_path(paths, &self.digest)
            .ok_or_else(|| Fault::new(FaultKind::NotCompiled, "there is no cache folder: HOME is not set"))?;
        open_private(&path).map(Code::Cached).map_err(|error| {
            let again = format!("`omc-host guests add` the guest `{}` again", self.manifest.name);
            Fault::new(FaultKind::NotCompiled, format!("no compiled code that can be trusted ({error}); {again}"))
        })
    }
}

/// Where the compiled code of a guest lies: by digest, version of the host (and with it of the engine) and processor kind.
fn cache_path(paths: &Paths, digest: &str) -> Option<PathBuf> {
    let host = concat!(env!("CARGO_PKG_VERSION"), "-");
    let folder = format!("{host}{}", std::env::consts::ARCH);
    Some(paths.cache_dir.as_ref()?.join("code").join(folder).join(digest).with_extension("cwasm"))
}

/// Adds a guest: checks it, compiles it, writes it down. A guest of the same name is replaced.
pub(crate) fn install(
    paths: &Paths,
    file: &Path,
    grants: Vec<Capability>,
    compiler: &Path,
    now: String,
) -> Result<Installed, InstallError> {
    let bytes = read_component(file)?;
    let component =
        Component::read(&bytes).map_err(|source| InstallError::NotAGuest { path: file.to_owned(), source })?;
    let name = component.manifest.name.clone();
    if FIRST_PARTY.iter().any(|guest| guest.name == name) {
        return Err(InstallError::Reserved(name));
    }
    for subscription in &component.manifest.subscriptions {
        if let Err(problem) = Matcher::parse(subscription.matcher.as_deref()) {
            let (guest, event) = (name, subscription.event.clone());
            return Err(InstallError::Matcher { guest, event, problem: problem.to_string() });
        }
    }
    let requested: Vec<_> = component.manifest.requests.iter().map(|request| &request.capability).collect();
    if let Some(grant) = grants.iter().find(|grant| !policy::covers(&requested, grant)) {
        let grant = [vec![grant.name().to_owned()], grant.scope()].concat().join(" ");
        return Err(InstallError::TooMuch { guest: name, grant });
    }

    let data = paths.data_dir.as_ref().ok_or(InstallError::NoFolder)?;
    let kept = data.join("guests").join(&component.digest).with_extension("wasm");
    let code = cache_path(paths, &component.digest).ok_or(InstallError::NoFolder)?;
    write(&kept, &bytes)?;
    compile(compiler, &kept, &code)?;

    let Component { manifest, imports, digest } = component;
    let installed = Installed { digest, source: file.display().to_string(), added: now, manifest, imports, grants };
    let mut lock = Lock::load(paths)?;
    lock.guests.retain(|guest| guest.manifest.name != name);
    lock.guests.push(installed.clone());
    lock.guests.sort_by(|a, b| a.manifest.name.cmp(&b.manifest.name));
    lock.save(paths)?;
    Ok(installed)
}

/// Takes a guest off the list and removes its bytes.
pub(crate) fn remove(paths: &Paths, name: &str) -> Result<(), InstallError> {
    let mut lock = Lock::load(paths)?;
    let at = lock
        .guests
        .iter()
        .position(|guest| guest.manifest.name == name)
        .ok_or_else(|| InstallError::Unknown(name.to_owned()))?;
    let removed = lock.guests.remove(at);
    lock.save(paths)?;
    if lock.guests.iter().all(|guest| guest.digest != removed.digest) {
        let data = paths.data_dir.as_ref().ok_or(InstallError::NoFolder)?;
        for path in
            [Some(data.join("guests").join(&removed.digest).with_extension("wasm")), cache_path(paths, &removed.digest)]
        {
            // Gone already is as good as removed; the lock file is what counts.
            path.map(fs::remove_file).transpose().ok();
        }
    }
    Ok(())
}

fn read_component(path: &Path) -> Result<Vec<u8>, InstallError> {
    let failed = |source| InstallError::Read { path: path.to_owned(), source };
    let file = fs::File::open(path).map_err(failed)?;
    let mut bytes = Vec::new();
    // One byte over the limit, so that the component's reader says that it is too large.
    file.take(MAX_COMPONENT_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(failed)?;
    Ok(bytes)
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), InstallError> {
    let folder = path.parent().unwrap_or(path);
    create_private_dir(folder)
        .and_then(|()| replace_private(path, bytes))
        .map_err(|source| InstallError::Write { path: path.to_owned(), source })
}

/// Compiles with the compiler that ships beside the host. It writes through a temporary file of its own.
fn compile(compiler: &Path, component: &Path, code: &Path) -> Result<(), InstallError> {
    create_private_dir(code.parent().unwrap_or(code))
        .map_err(|source| InstallError::Write { path: code.to_owned(), source })?;
    let output = Command::new(compiler).arg(component).arg(code).output().map_err(|error| {
        InstallError::Compile(format!(
            "failed to start `{}`: {error}; it belongs beside `omc-host`",
            compiler.display()
        ))
    })?;
    if output.status.success() {
        Ok(())
    } else {
        Err(InstallError::Compile(String::from_utf8_lossy(&output.stderr).trim().to_owned()))
    }
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
