//! Is everything in order? A table of checks, each of which looks and says what it found, with what to do about it.
//!
//! Nothing is changed here. What can be mended without a decision of the person's comes with a [`Mend`], which `--fix` carries out:
//! entries of ours that are old, missing or doubled, and folders that others can write. What somebody has to want (to trust a
//! hook, to part with the original, to add a guest again) is only said.

mod agents;
mod canary;
mod host;
mod version;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde::Serialize;

use super::files::Archive;
use super::{Aim, Places};
use crate::config::{Env, Paths};

/// What the checks look at.
#[derive(Clone, Copy)]
pub(crate) struct Patient<'a> {
    pub(crate) env: &'a Env,
    pub(crate) paths: &'a Paths,
    /// The project that the command runs in, if it does.
    pub(crate) project: Option<&'a Path>,
    /// The path of this program as hooks name it.
    pub(crate) program: &'a str,
}

/// Whether something has to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum State {
    /// In order.
    Ok,
    /// To be known.
    Note,
    /// Not in order.
    Problem,
}

/// What a check found.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Finding {
    pub(crate) state: State,
    pub(crate) check: &'static str,
    pub(crate) text: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) fix: Option<String>,
    /// How it can be mended by itself.
    #[serde(skip)]
    pub(crate) mend: Option<Mend>,
}

/// A change that needs no decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Mend {
    /// Set the agent up again, at these places and with the program of this path.
    Install(Places, String),
    /// Take the right to write from everybody but the user.
    Protect(PathBuf),
}

impl Finding {
    fn ok(text: impl Into<String>) -> Self {
        Self { state: State::Ok, check: "", text: text.into(), fix: None, mend: None }
    }

    fn note(text: impl Into<String>) -> Self {
        Self { state: State::Note, ..Self::ok(text) }
    }

    fn problem(text: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { state: State::Problem, fix: Some(fix.into()), ..Self::ok(text) }
    }

    fn with(self, mend: Mend) -> Self {
        Self { mend: Some(mend), ..self }
    }
}

/// One check: what it is about, and how it looks.
struct Check {
    name: &'static str,
    look: fn(&Patient<'_>) -> Vec<Finding>,
}

/// The checks, in the order in which their findings make sense.
static CHECKS: [Check; 9] = [
    Check { name: "program", look: host::program },
    Check { name: "folders", look: host::folders },
    Check { name: "configuration", look: host::configuration },
    Check { name: "guests", look: host::guests },
    Check { name: "faults", look: host::faults },
    Check { name: "claude", look: agents::claude },
    Check { name: "codex", look: agents::codex },
    Check { name: "project", look: host::project },
    Check { name: "canary", look: canary::canary },
];

/// Runs all checks.
pub(crate) fn examine(patient: &Patient<'_>) -> Vec<Finding> {
    let look = |check: &Check| {
        let findings = (check.look)(patient);
        findings.into_iter().map(|finding| Finding { check: check.name, ..finding }).collect::<Vec<_>>()
    };
    CHECKS.iter().flat_map(look).collect()
}

/// What else handles the same events, each with what to do about it.
pub(crate) fn rivals(patient: &Patient<'_>) -> Vec<String> {
    let sentence = |Finding { text, fix, .. }: Finding| match fix {
        Some(fix) => format!("{text}; {fix}"),
        None => text,
    };
    agents::rivals(patient).into_iter().map(sentence).collect()
}

/// Carries out what needs no decision. Returns a sentence for each thing that was mended.
pub(crate) fn mend(findings: &[Finding], paths: &Paths, archive: &mut Archive) -> Result<Vec<String>> {
    let mut mends: Vec<&Mend> = Vec::new();
    for mend in findings.iter().filter_map(|finding| finding.mend.as_ref()) {
        if !mends.contains(&mend) {
            mends.push(mend);
        }
    }
    let mut mended = Vec::new();
    for mend in mends {
        match mend {
            Mend::Install(places, program) => {
                let mut plan = super::plan(Aim::Install, std::slice::from_ref(places), program, paths, archive);
                if let Some(problem) = plan.problems.pop() {
                    return Err(problem.error);
                }
                let done = plan.carry_out(Aim::Install, archive)?;
                mended.extend(done.iter().map(|done| format!("{}: `{}`", done.change, done.path.display())));
            }
            Mend::Protect(path) => {
                protect(path).with_context(|| format!("failed to change who can write `{}`", path.display()))?;
                mended.push(format!("only you can write `{}` now", path.display()));
            }
        }
    }
    Ok(mended)
}

#[cfg(unix)]
fn protect(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;

    let mode = std::fs::metadata(path)?.permissions().mode();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode & !0o022))
}

#[cfg(not(unix))]
fn protect(_: &Path) -> std::io::Result<()> {
    Err(std::io::ErrorKind::Unsupported.into())
}
