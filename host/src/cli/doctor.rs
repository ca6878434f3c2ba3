//! `omc-host doctor`: is everything in order?

use std::io::Write as _;

use anyhow::Result;

use super::table::table;
use crate::config::{Env, Paths, StateRoot};
use crate::setup::doctor::{self, Finding, Patient, State};
use crate::setup::files::Archive;
use crate::setup::own_program;
use crate::text::{inert, inert_json};

pub(super) const EXAMPLES: &str = "\
Examples:
  omc-host doctor           everything there is to look at, and what to do about what is wrong
  omc-host doctor --fix     mends what needs no decision of yours: old or missing entries, folders that others can write
  omc-host doctor --json    for programs

The exit status is 1 if there is a problem.";

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Mend what can be mended safely, and look again
    #[arg(long)]
    fix: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Args {
    /// Whether something may be changed.
    pub(super) fn mends(&self) -> bool {
        self.fix
    }
}

pub(super) fn run(args: &Args, env: &Env, paths: &Paths) -> Result<bool> {
    let program = own_program()?;
    let root = StateRoot::resolve(None, std::env::current_dir().ok().as_deref(), env).ok();
    let project = root.as_ref().map(|root| root.project_root.as_path());
    let look = || doctor::examine(&Patient { env, paths, project, program: &program });
    let mut findings = look();
    let mut mended = Vec::new();
    if args.fix {
        mended = doctor::mend(&findings, paths, &mut Archive::open(paths)?)?;
        if !mended.is_empty() {
            findings = look();
        }
    }
    let in_order = findings.iter().all(|finding| finding.state != State::Problem);
    let mut stdout = std::io::stdout().lock();
    if args.json {
        let value = serde_json::json!({ "in-order": in_order, "findings": findings, "mended": mended });
        writeln!(stdout, "{}", inert_json(serde_json::to_string_pretty(&value)?))?;
        return Ok(in_order);
    }
    for mended in &mended {
        writeln!(stdout, "mended: {}", inert(mended))?;
    }
    writeln!(stdout, "{}", table(["CHECK", "", "FINDING"], findings.iter().map(row)))?;
    let problems = findings.iter().filter(|finding| finding.state == State::Problem).count();
    if problems > 0 {
        let mendable = findings.iter().filter(|finding| finding.mend.is_some()).count();
        let hint = if mendable > 0 && !args.fix { "; `omc-host doctor --fix` mends some of it" } else { "" };
        writeln!(stdout, "\n{problems} to be mended{hint}")?;
    }
    Ok(in_order)
}

fn row(finding: &Finding) -> [String; 3] {
    let mark = match finding.state {
        State::Ok => "ok",
        State::Note => "note",
        State::Problem => "!",
    };
    let fix = finding.fix.as_ref().map(|fix| format!("\n  → {fix}")).unwrap_or_default();
    // Lines of their texts are not lines of ours.
    let text = inert(&finding.text);
    [finding.check.to_owned(), mark.to_owned(), text + &fix]
}
