//! The cache of compiled code of guests of others: looked into on an event, filled outside of one.
//!
//! `<cache>/code/<host version>-<architecture>/` holds, for each component by its SHA-256, the code, its seal
//! ([`omc_artifact::Seal`]) and, if it could not be compiled, why. All of it may be deleted at any time. Code is loaded only if
//! the folder and both files are the user's alone and the code is what the compiler sealed for this engine; anything else is a
//! miss. Processor features need no check here: code is made for a baseline that is fixed per target, and the engine checks at
//! loading that the processor has it.
//!
//! A miss costs the event that guest's opinion (`not-compiled`). When the answer is out and the trail written, [`mend`] starts
//! the compiler that ships beside the host, which goes on by itself, and the next event finds the code. However many events
//! miss at once, one compiler runs: it inherits the lock on the folder, which ends with it.

use std::env;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use omc_artifact::{CacheEntry, MAX_SEAL_BYTES, Seal, Verdict};

use super::installed::{InstallError, Installed};
use super::trust::{Durability, Locked, PrivateDir, lock_dir, open_private, replace_private};
use crate::config::Paths;
use crate::runtime::{Code, Fault, FaultKind};
use crate::text;

/// Time after which a guest that could not be compiled is tried again by itself. Not sooner, because it costs a processor seconds;
/// `guests add` tries at once.
const RETRY_AFTER: Duration = Duration::from_mins(10);

/// How long `guests add` waits for a compiler that is at work already: it may have several large guests to do.
const WAIT_FOR_COMPILER: Duration = Duration::from_mins(2);

/// Age from which another version's folder of code is removed, by when something was last compiled into it: a version that
/// somebody still uses beside this one would have to compile again, and does so by itself.
const PRUNE_AFTER: Duration = Duration::from_hours(30 * 24);

/// Longest description of a failure that is read, in bytes.
const MAX_FAILURE_BYTES: u64 = 2048;

/// The engine that this host runs code with, by the name that the compiler gave it when the host was built.
const ENGINE: &str = include_str!(concat!(env!("OUT_DIR"), "/engine"));

/// The compiled code of a component, or why there is none that can be trusted.
pub(super) fn open(paths: &Paths, component: &str) -> Result<Code, Fault> {
    let fault = |why: String| Fault::new(FaultKind::NotCompiled, why);
    let entry = entry(paths, component).ok_or_else(|| fault("there is no cache folder: HOME is not set".to_owned()))?;
    let found = PrivateDir::open(&entry.folder).and_then(|folder| trusted(&entry, &folder));
    found.map(|(file, renewed)| Code::Cached { file, stale_seal: renewed.is_some() }).map_err(|miss| {
        let failed = failure(&entry).map(|(why, _)| format!("; compiling it failed: {why}")).unwrap_or_default();
        fault(format!("no compiled code that can be trusted: {miss}{failed}"))
    })
}

/// Opens an entry's code, if it is what was sealed. With it comes a new seal, if it is in another file than the sealed one.
fn trusted(entry: &CacheEntry, folder: &PrivateDir) -> io::Result<(File, Option<Seal>)> {
    let open = |path: PathBuf| folder.open_file(path.file_name().ok_or(io::ErrorKind::InvalidInput)?);
    let code = open(entry.code())?;
    let mut seal = String::new();
    let sealed = |error: io::Error| io::Error::new(error.kind(), format!("its seal: {error}"));
    open(entry.seal()).and_then(|file| file.take(MAX_SEAL_BYTES).read_to_string(&mut seal)).map_err(sealed)?;
    let seal = Seal::parse(&seal).ok_or_else(|| io::Error::other("its seal is damaged"))?;
    match seal.judge(&code, ENGINE)? {
        Verdict::Same => Ok((code, None)),
        Verdict::SameBytes(renewed) => Ok((code, Some(renewed))),
        Verdict::OtherEngine => Err(io::Error::other("it is for another engine")),
        Verdict::OtherBytes => Err(io::Error::other("it is not what the compiler wrote")),
    }
}

/// Renews seals, and starts the compiler for those guests that have no code, unless it runs or failed a short while ago. It is
/// not waited for.
///
/// # Errors
///
/// Where nothing can be written, or no compiler is beside the host, nothing is started.
pub(crate) fn mend<'a>(paths: &Paths, guests: impl Iterator<Item = &'a Installed>, compiler: &Path) -> io::Result<()> {
    let folder = folder(paths).ok_or(io::ErrorKind::NotFound)?;
    let locked = match lock_dir(&folder, Duration::ZERO) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
        locked => locked?,
    };
    // Looked at again under the lock: who held it before may have done the work.
    let mut missing = Vec::new();
    for guest in guests {
        let entry = entry(paths, &guest.digest).ok_or(io::ErrorKind::NotFound)?;
        match trusted(&entry, locked.dir()) {
            // So that the next event need not read all of it. Where that cannot be written, it does.
            Ok((_, Some(renewed))) => {
                drop(replace_private(&entry.seal(), renewed.to_string().as_bytes(), Durability::Unsynced));
            }
            Err(_) if is_due(&entry) => missing.extend(component_path(paths, &guest.digest)),
            Ok((_, None)) | Err(_) => {}
        }
    }
    if missing.is_empty() {
        return Ok(());
    }
    sweep(&folder);
    prune(&folder);
    let mut command = command(compiler, &folder, &missing, locked);
    // The agent waits until nobody holds its pipes any more.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    // What the agent does to its hook's process group is not meant for the compiler.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    command.spawn().map(drop)
}

/// Compiles one guest and waits for it.
pub(super) fn compile_now(paths: &Paths, component: &str, compiler: &Path) -> Result<(), InstallError> {
    let entry = entry(paths, component).ok_or(InstallError::NoFolder)?;
    let path = component_path(paths, component).ok_or(InstallError::NoFolder)?;
    let locked = lock_dir(&entry.folder, WAIT_FOR_COMPILER)
        .map_err(|source| InstallError::Write { path: entry.folder.clone(), source })?;
    let output = command(compiler, &entry.folder, &[path], locked).output().map_err(|error| {
        InstallError::Compile(format!(
            "failed to start `{}`: {error}; it belongs beside `omc-host`",
            compiler.display()
        ))
    })?;
    if output.status.success() {
        prune(&entry.folder);
        Ok(())
    } else {
        let said = String::from_utf8_lossy(&output.stderr);
        let said = text::cut_to_bytes(said.trim(), usize::try_from(MAX_FAILURE_BYTES).unwrap_or(usize::MAX));
        Err(InstallError::Compile(match said {
            "" => format!("`{}` ended with {} and said nothing", compiler.display(), output.status),
            said => said.to_owned(),
        }))
    }
}

/// Removes what there is of a component.
pub(super) fn remove(paths: &Paths, component: &str) {
    if let Some(entry) = entry(paths, component) {
        for path in [entry.code(), entry.seal(), entry.failure()] {
            // Gone already is as good as removed; the lock file is what counts.
            drop(fs::remove_file(path));
        }
    }
}

/// The compiler that ships beside this program. No configuration, project or variable names another.
pub(crate) fn compiler_beside() -> io::Result<PathBuf> {
    Ok(env::current_exe()?.with_file_name(format!("omc-compiler{}", env::consts::EXE_SUFFIX)))
}

/// The file with a component's bytes.
pub(super) fn component_path(paths: &Paths, component: &str) -> Option<PathBuf> {
    Some(paths.data_dir.as_ref()?.join("guests").join(component).with_extension("wasm"))
}

fn folder(paths: &Paths) -> Option<PathBuf> {
    let name = format!("{}-{}", env!("CARGO_PKG_VERSION"), env::consts::ARCH);
    Some(paths.cache_dir.as_ref()?.join("code").join(name))
}

fn entry(paths: &Paths, component: &str) -> Option<CacheEntry> {
    Some(CacheEntry { folder: folder(paths)?, component: component.to_owned() })
}

/// The compiler at work on some components, holding the folder's lock.
fn command(compiler: &Path, folder: &Path, components: &[PathBuf], locked: Locked) -> Command {
    let mut command = Command::new(compiler);
    command.arg("cache").arg(folder).args(components).stdin(locked.into_stdio()).env_clear().current_dir(folder);
    command
}

/// Why a component could not be compiled, and when that was.
fn failure(entry: &CacheEntry) -> Option<(String, SystemTime)> {
    let file = open_private(&entry.failure()).ok()?;
    let when = file.metadata().ok()?.modified().ok()?;
    let mut text = Vec::new();
    file.take(MAX_FAILURE_BYTES).read_to_end(&mut text).ok()?;
    Some((String::from_utf8_lossy(&text).into_owned(), when))
}

/// Whether it is time to compile a component: it did not fail lately. A failure in the future was before the clock was set back.
fn is_due(entry: &CacheEntry) -> bool {
    failure(entry).is_none_or(|(_, when)| when.elapsed().map_or(true, |passed| passed >= RETRY_AFTER))
}

/// Removes what other versions of the host compiled long ago. Best effort: the next compilation tries again.
fn prune(own: &Path) {
    let Some(entries) = own.parent().and_then(|code| fs::read_dir(code).ok()) else { return };
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())).filter(|path| path != own) {
        let Ok(about) = fs::symlink_metadata(&path) else { continue };
        let is_old = about.modified().is_ok_and(|time| time.elapsed().is_ok_and(|age| age >= PRUNE_AFTER));
        if about.is_dir() && is_old {
            drop(fs::remove_dir_all(&path));
        }
    }
}

/// Removes what killed compilers left behind. The folder is locked, so nobody is writing.
fn sweep(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        if path.extension().is_some_and(|extension| extension == "tmp") {
            drop(fs::remove_file(path));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_of_other_versions_goes_when_it_is_old() {
        let cache = tempfile::tempdir().unwrap();
        let old = SystemTime::now() - PRUNE_AFTER - Duration::from_hours(1);
        for (name, time) in [("own", old), ("young", SystemTime::now()), ("old", old)] {
            let folder = cache.path().join(name);
            fs::create_dir(&folder).unwrap();
            fs::write(folder.join("code"), name).unwrap();
            File::open(&folder).unwrap().set_modified(time).unwrap();
        }
        prune(&cache.path().join("own"));
        let mut left: Vec<_> = fs::read_dir(cache.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["own", "young"]);
    }
}
