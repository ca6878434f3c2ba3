//! The host itself: its programs, folders, configuration, guests and the project it is called in.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use serde_json::Value;

use super::{Finding, Mend, Patient};
use crate::audit;
use crate::capability::Status;
use crate::config::paths::SYSTEM_CONFIG_FILE;
use crate::config::{Settings, StateRoot};
use crate::registry::{Guest, PrivateDir, Registry};
use crate::setup::bundle::COMPANIONS;
use crate::surroundings::project_dir;

/// Faults that are told of: those of the last day.
const RECENT: Duration = Duration::from_hours(24);

/// Largest lock file that is looked into, in bytes: the original's have a process id and a time.
const MAX_LOCK_BYTES: u64 = 1_024;

/// Most entries of a folder that are looked at: more than a state folder of a project has.
const MAX_ENTRIES: usize = 2_000;

pub(super) fn program(patient: &Patient<'_>) -> Vec<Finding> {
    let version = env!("CARGO_PKG_VERSION");
    let mut findings = vec![Finding::ok(format!("omc-host {version} at `{}`", patient.program))];
    let Ok(own) = std::env::current_exe() else { return findings };
    for (name, without) in COMPANIONS {
        let path = own.with_file_name(format!("{name}{}", std::env::consts::EXE_SUFFIX));
        if !path.is_file() {
            findings.push(Finding::problem(
                format!("`{name}` is not beside omc-host: {without}"),
                format!("put `{name}` of the same release to `{}`", path.display()),
            ));
        }
    }
    findings
}

pub(super) fn folders(patient: &Patient<'_>) -> Vec<Finding> {
    let paths = patient.paths;
    let all = [&paths.config_dir, &paths.data_dir, &paths.cache_dir, &paths.state_dir];
    let there: Vec<_> = all.into_iter().flatten().filter(|folder| folder.exists()).collect();
    let mut findings = Vec::new();
    for folder in &there {
        if let Err(error) = PrivateDir::open(folder) {
            let text = format!("`{}` is not used: {error}", folder.display());
            let fix = format!("chmod go-w `{}`, after a look at what is in it", folder.display());
            let is_own = is_own(folder);
            let finding = Finding::problem(text, fix);
            findings.push(if is_own { finding.with(Mend::Protect((*folder).clone())) } else { finding });
        }
    }
    if findings.is_empty() {
        findings.push(Finding::ok("only you can write the folders of omc-host"));
    }
    findings
}

#[cfg(unix)]
fn is_own(path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    fs::metadata(path).is_ok_and(|about| about.uid() == rustix::process::geteuid().as_raw())
}

#[cfg(not(unix))]
fn is_own(_: &Path) -> bool {
    false
}

pub(super) fn configuration(patient: &Patient<'_>) -> Vec<Finding> {
    let user_file = patient.paths.user_config_file();
    let settings = Settings::load(SYSTEM_CONFIG_FILE.as_ref(), user_file.as_deref(), patient.project);
    let problems = patient.paths.problems.iter().chain(&settings.problems);
    let mut findings: Vec<_> =
        problems.map(|problem| Finding::problem(problem.to_string(), "see docs/configuration.md")).collect();
    if settings.log_payloads() {
        findings.push(Finding::note("`log-payloads` is on: the audit trail holds prompts, files and secrets"));
    }
    if findings.is_empty() {
        findings.push(Finding::ok("the configuration is read as it is written"));
    }
    findings
}

pub(super) fn guests(patient: &Patient<'_>) -> Vec<Finding> {
    let registry = Registry::load(patient.paths);
    let user_file = patient.paths.user_config_file();
    let settings = Settings::load(SYSTEM_CONFIG_FILE.as_ref(), user_file.as_deref(), None);
    let trusted = settings.trusted_keys();
    let mut findings = Vec::new();
    if let Some(problem) = &registry.problem {
        findings.push(Finding::problem(
            format!("guests of others are not called: {problem}"),
            "mend or remove the file, and add the guests again",
        ));
    }
    for name in registry.missing(settings.required()) {
        findings.push(Finding::problem(
            format!("the guest `{name}` is required and is not there, so that tools are refused"),
            "add it again, or take `required` out of the configuration",
        ));
    }
    for guest in registry.guests() {
        if let Some(streak) = registry.faults.sets_aside(&guest) {
            let (name, until) = (guest.name(), omc_state::Timestamp::from(streak.until()));
            findings.push(Finding::problem(
                format!(
                    "the guest `{name}` is set aside until {until} after {} faults (`{}`)",
                    streak.faults, streak.kind
                ),
                format!("omc-host log --guest {name}"),
            ));
        }
        if let Guest::Installed(installed) = &guest {
            let problems = installed.verify(patient.paths, &trusted).into_iter();
            findings.extend(problems.map(|problem| {
                let text = format!("the guest `{}` is not in order: {problem}", guest.name());
                Finding::problem(text, format!("omc-host guests add {}", installed.source))
            }));
        }
    }
    if findings.is_empty() {
        let (own, others) = (registry.guests().count() - registry.installed.len(), registry.installed.len());
        findings.push(Finding::ok(format!("{own} guests built in, {others} of others, with their digests and code")));
    }
    findings
}

pub(super) fn faults(patient: &Patient<'_>) -> Vec<Finding> {
    let Some(folder) = &patient.paths.state_dir else { return vec![Finding::note("there is no trail without HOME")] };
    let records = match audit::read(folder) {
        Ok(records) => records,
        Err(error) => {
            let text = format!("the trail in `{}` cannot be read: {error}", folder.display());
            return vec![Finding::problem(text, "see who owns it, and remove it if nobody needs it")];
        }
    };
    let since = SystemTime::now().checked_sub(RECENT).map(omc_state::Timestamp::from);
    let since = since.map(|since| since.to_string()).unwrap_or_default();
    let mut faults: BTreeMap<(String, String), (usize, String)> = BTreeMap::new();
    // Times are written so that their texts are in their order.
    for record in records.iter().filter(|record| record.time > since) {
        if let Some(guest) = &record.guest
            && let Some(fault) = &guest.fault
        {
            let entry = faults.entry((guest.name.clone(), fault.kind.clone())).or_default();
            *entry = (entry.0 + 1, record.time.clone());
        }
    }
    if faults.is_empty() {
        return vec![Finding::ok(format!("no fault in the last {} hours", RECENT.as_secs() / 3_600))];
    }
    let note = |((guest, kind), (count, last))| {
        Finding::note(format!(
            "the guest `{guest}` had {count} times the fault `{kind}`, last at {last}; see `omc-host log --guest {guest}`"
        ))
    };
    faults.into_iter().map(note).collect()
}

pub(super) fn project(patient: &Patient<'_>) -> Vec<Finding> {
    let cwd = std::env::current_dir().ok();
    let root = match StateRoot::resolve(None, cwd.as_deref(), patient.env) {
        Ok(root) => root,
        Err(refusal) => {
            return vec![Finding::note(format!("this folder is no project, so guests have no files: {refusal}"))];
        }
    };
    let problems = root.problems.iter();
    let mut findings: Vec<_> =
        problems.map(|problem| Finding::problem(problem.to_string(), "see docs/configuration.md")).collect();
    let omc = root.omc_parent.join(&root.omc_name);
    let shown = omc.display();
    if let Status::Refused(why) = project_dir(&root).status() {
        let fix = format!("look at `{shown}`, and move it away if you did not put it there");
        findings.push(Finding::problem(format!("guests do not get `{shown}`: {why}"), fix));
        return findings;
    }
    if let Some(lock) = lock_of_the_original(&omc) {
        findings.push(Finding::problem(
            format!("oh-my-claudecode has been at work in `{shown}` (`{lock}`): it locks in its own way, and both at once lose updates"),
            "use one of the two: `claude plugin disable oh-my-claudecode@omc`, or `omc-host uninstall`",
        ));
    }
    if findings.is_empty() {
        let state = if omc.is_dir() { "is there, and yours" } else { "is not there yet" };
        findings.push(Finding::ok(format!("`{shown}` {state}")));
    }
    findings
}

/// A lock file that the original left or holds, if it is of this day. We lock without files.
fn lock_of_the_original(omc: &Path) -> Option<String> {
    let mut folders = vec![omc.to_owned(), omc.join("state"), omc.join("wiki")];
    let sessions = fs::read_dir(omc.join("state/sessions")).into_iter().flatten().flatten();
    folders.extend(sessions.take(MAX_ENTRIES).map(|entry| entry.path()));
    folders.iter().find_map(|folder| {
        let entries = fs::read_dir(folder).ok()?.flatten().take(MAX_ENTRIES);
        let lock = entries.map(|entry| entry.path()).find(|path| {
            let is_lock = path.extension().is_some_and(|extension| extension == "lock");
            is_lock && is_of_the_original(path)
        })?;
        Some(lock.strip_prefix(omc).unwrap_or(&lock).display().to_string())
    })
}

/// Whether a file is of this day and names a process, as the original's locks do.
fn is_of_the_original(path: &Path) -> bool {
    let Ok(about) = fs::symlink_metadata(path) else { return false };
    let is_recent = about.modified().is_ok_and(|time| time.elapsed().is_ok_and(|age| age < RECENT));
    if !about.is_file() || !is_recent || about.len() > MAX_LOCK_BYTES {
        return false;
    }
    let lock: Option<Value> = fs::read(path).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
    lock.is_some_and(|lock| lock["pid"].is_number())
}
