//! A project's own `omc-host.toml`, which may only narrow.
//!
//! It is part of the repository that is being worked on, and a cloned repository is hostile until proved otherwise. So it
//! can disable guests that are not required, lower limits and withhold capabilities; whatever else is written in it is
//! ignored and noted. It lies at the project's root, outside of `.omc`, where no guest can write it.

use super::file;
use super::options::{Loaded, Options};
use super::problem::{Problem, ProblemLog};
use std::path::Path;

/// The file's name at the project's root.
pub const PROJECT_CONFIG_FILE: &str = "omc-host.toml";

/// Largest file that is read, in bytes; a few hundred guests.
pub const MAX_PROJECT_BYTES: u64 = 64 << 10;

/// Reads the file of a project. Links are not followed, and a FIFO in its place does not hold up the event.
pub(crate) fn load(project_root: &Path) -> Loaded {
    let path = project_root.join(PROJECT_CONFIG_FILE);
    match file::read_beneath(project_root, &[PROJECT_CONFIG_FILE], MAX_PROJECT_BYTES) {
        Ok(None) => Loaded::default(),
        Ok(Some(read)) => {
            let mut log = ProblemLog::new(&path, &read.text);
            let mut options = Options::parse(&read.text, &path, &mut log);
            narrow_only(&mut options, &mut log);
            Loaded { options: Some(options), problems: log.into_problems() }
        }
        Err(error) => {
            let problem = Problem::of_file(&path, error.to_string(), "mend or remove it; it is ignored");
            Loaded { options: None, problems: vec![problem] }
        }
    }
}

/// Takes out what a project has no say in. Limits stay as written: resolving takes the smaller one.
fn narrow_only(options: &mut Options, log: &mut ProblemLog<'_>) {
    let mut ignore = |key: &str| {
        log.of_file(format!("a project cannot set {key}"), "set it in your own configuration if you want it");
    };
    if options.deny_channel.take().is_some() {
        ignore("`deny-channel`");
    }
    if options.log_payloads.take().is_some() {
        ignore("`log-payloads`");
    }
    if !options.trusted_keys.is_empty() || options.require_signature.is_some() {
        options.trusted_keys.clear();
        options.require_signature = None;
        ignore("whose signatures count");
    }
    let telemetry = std::mem::take(&mut options.telemetry);
    if telemetry.endpoint.is_some() || telemetry.texts.is_some() || telemetry.headers_file.is_some() {
        ignore("`telemetry`");
    }
    for (name, guest) in &mut options.guests {
        if guest.enabled == Some(true) {
            guest.enabled = None;
            ignore(&format!("`guests.{name}.enabled` to `true`"));
        }
        if guest.required.take().is_some() {
            ignore(&format!("`guests.{name}.required`"));
        }
        if guest.order.take().is_some() {
            ignore(&format!("`guests.{name}.order`"));
        }
    }
}
