//! `omc-host install` and `uninstall`: this program in the agents' own settings, and out of them again.

use std::io::Write as _;
use std::path::Path;

use anyhow::{Result, bail};

use super::agents::agent;
use super::table::table;
use crate::config::{Env, Paths, StateRoot};
use crate::protocol::event::Agent;
use crate::setup::doctor::{self, Patient};
use crate::setup::files::Archive;
use crate::setup::{self, Aim, Done, Plan, Problem, Scope, Step};
use crate::text::{inert, inert_json};

pub(super) const EXAMPLES: &str = "\
Examples:
  omc-host install --dry-run                        what would be written, and where
  omc-host install                                  every agent that is used here, for all projects
  omc-host install --agent claude --scope project   only this project, and only for you
  omc-host uninstall                                the files as they were before

Files that change are copied first; the copies are in the folder `setup` of the state folder. With `--scope project` Claude Code
gets its hooks in `.claude/settings.local.json`, which is not for the repository.";

/// Longest line of a file that is shown, in characters.
const MAX_LINE: usize = 110;
/// Most lines of a file that are shown.
const MAX_LINES: usize = 40;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The agent: claude or codex; every one that is used here unless given
    #[arg(long, value_name = "NAME", value_parser = agent)]
    agent: Option<Agent>,
    /// For all projects or only for this one
    #[arg(long, value_enum, default_value_t = Scope::User)]
    scope: Scope,
    /// Only show what would change
    #[arg(long)]
    dry_run: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(aim: Aim, args: &Args, env: &Env, paths: &Paths) -> Result<bool> {
    let project = match args.scope {
        Scope::User => None,
        Scope::Project => Some(StateRoot::resolve(None, std::env::current_dir().ok().as_deref(), env)?.project_root),
    };
    let agents: Vec<Agent> = args.agent.into_iter().collect();
    let places = setup::places(&agents, args.scope, project.as_deref(), paths)?;
    if places.is_empty() {
        bail!("neither Claude Code nor Codex has been used here; name the agent: `--agent claude` or `--agent codex`");
    }
    let program = setup::own_program()?;
    let mut archive = Archive::open(paths)?;
    let mut plan = setup::plan(aim, &places, &program, paths, &archive);
    if aim == Aim::Install {
        plan.notes.extend(setup::next_steps(&places, &program, &plan));
        let patient = Patient { env, paths, project: project.as_deref(), program: &program };
        plan.notes.extend(doctor::rivals(&patient));
    }
    if args.dry_run {
        return show(&plan, args.json);
    }
    let done = plan.carry_out(aim, &mut archive)?;
    let mut stdout = std::io::stdout().lock();
    if args.json {
        let value = serde_json::json!({
            "dry-run": false, "changes": done, "notes": plan.notes, "problems": problems(&plan),
        });
        writeln!(stdout, "{}", inert_json(serde_json::to_string_pretty(&value)?))?;
        return Ok(plan.problems.is_empty());
    }
    if done.is_empty() && !plan.problems.is_empty() {
        writeln!(stdout, "nothing was changed")?;
    } else if done.is_empty() {
        writeln!(stdout, "{}", nothing_to_do(aim, args.scope))?;
    } else {
        writeln!(stdout, "{}", rows(done.iter().map(File::from)))?;
    }
    for Done { path, copy, .. } in &done {
        if let Some(copy) = copy {
            let (path, copy) = (path.display().to_string(), copy.display().to_string());
            writeln!(stdout, "\nthe `{}` from before is kept as `{}`", inert(&path), inert(&copy))?;
        }
    }
    notes(&mut stdout, &plan)
}

/// What is said where nothing is to be done.
fn nothing_to_do(aim: Aim, scope: Scope) -> &'static str {
    match (aim, scope) {
        (Aim::Install, _) => "everything is set up already; nothing was changed",
        (Aim::Uninstall, Scope::User) => {
            "nothing of omc-host is set up for the user; nothing was changed (`--scope project` takes it out of this project)"
        }
        (Aim::Uninstall, Scope::Project) => {
            "nothing of omc-host is set up for this project; nothing was changed (`--scope user` takes it out for all projects)"
        }
    }
}

/// A sentence for each agent that stays as it is.
fn problems(plan: &Plan) -> Vec<String> {
    let sentence = |Problem { agent, error }: &Problem| format!("{} stays as it is: {error:#}", setup::title(*agent));
    plan.problems.iter().map(sentence).collect()
}

/// Prints what would be done.
fn show(plan: &Plan, json: bool) -> Result<bool> {
    let mut stdout = std::io::stdout().lock();
    if json {
        let step = |step: &Step| {
            serde_json::json!({
                "agent": step.agent.name(), "path": step.change.path, "change": step.kind(), "what": step.what,
            })
        };
        let changes: Vec<_> = plan.steps.iter().map(step).collect();
        let value = serde_json::json!({
            "dry-run": true, "changes": changes, "notes": plan.notes, "problems": problems(plan),
        });
        writeln!(stdout, "{}", inert_json(serde_json::to_string_pretty(&value)?))?;
        return Ok(plan.problems.is_empty());
    }
    if plan.steps.is_empty() {
        writeln!(stdout, "nothing would change")?;
    } else {
        writeln!(stdout, "this would change, and nothing else:\n\n{}", rows(plan.steps.iter().map(File::from)))?;
    }
    for step in plan.steps.iter().filter(|step| step.kind() == "edit") {
        let text =
            |bytes: &Option<Vec<u8>>| bytes.as_deref().map(String::from_utf8_lossy).unwrap_or_default().into_owned();
        writeln!(stdout, "\n{}", inert(&step.change.path.display().to_string()))?;
        for line in difference(&text(&step.change.before), &text(&step.change.after)) {
            writeln!(stdout, "{line}")?;
        }
    }
    notes(&mut stdout, plan)
}

/// Prints what is to be known beside the changes. Says whether every agent is in order.
fn notes(stdout: &mut impl std::io::Write, plan: &Plan) -> Result<bool> {
    for note in &plan.notes {
        writeln!(stdout, "\n{}", inert(note))?;
    }
    super::warn(problems(plan));
    Ok(plan.problems.is_empty())
}

/// A table of files; those of a folder that is ours alone are one row.
fn rows<'a>(files: impl Iterator<Item = File<'a>>) -> String {
    let mut rows: Vec<(File<'a>, usize)> = Vec::new();
    for file in files {
        let is_same = |(row, _): &&mut (File<'a>, usize)| {
            file.own_folder.is_some()
                && (row.agent, row.change, row.own_folder) == (file.agent, file.change, file.own_folder)
        };
        match rows.iter_mut().find(is_same) {
            Some((_, count)) => *count += 1,
            None => rows.push((file, 1)),
        }
    }
    let row = |(File { agent, change, path, what, own_folder }, count): (File<'a>, usize)| {
        let what = if own_folder.is_some() {
            format!("skills and what goes with them: {count} files")
        } else {
            what.to_owned()
        };
        let path = own_folder.unwrap_or(path);
        [agent.to_owned(), change.to_owned(), path.display().to_string(), what]
    };
    table(["AGENT", "CHANGE", "FILE", "WHAT"], rows.into_iter().map(row))
}

/// A file that is or would be changed.
struct File<'a> {
    agent: &'a str,
    change: &'a str,
    path: &'a Path,
    what: &'a str,
    own_folder: Option<&'a Path>,
}

impl<'a> From<&'a Step> for File<'a> {
    fn from(step: &'a Step) -> Self {
        let (agent, change, own_folder) = (step.agent.name(), step.kind(), step.own_folder.as_deref());
        Self { agent, change, path: &step.change.path, what: &step.what, own_folder }
    }
}

impl<'a> From<&'a Done> for File<'a> {
    fn from(done: &'a Done) -> Self {
        let Done { agent, change, path, what, own_folder, .. } = done;
        Self { agent, change, path, what, own_folder: own_folder.as_deref() }
    }
}

/// The lines between what two texts have in common at their beginning and end, as `diff` marks them.
fn difference(before: &str, after: &str) -> Vec<String> {
    let (old, new): (Vec<_>, Vec<_>) = (before.lines().collect(), after.lines().collect());
    let first = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    let rest = old[first..].iter().rev().zip(new[first..].iter().rev());
    let last = rest.take_while(|(old, new)| old == new).count();
    let marked = |mark: char, lines: &[&str]| -> Vec<String> {
        let line = |line: &&str| format!("{mark} {}", inert(&line.chars().take(MAX_LINE).collect::<String>()));
        let mut shown: Vec<_> = lines.iter().take(MAX_LINES).map(line).collect();
        if let more @ 1.. = lines.len().saturating_sub(MAX_LINES) {
            shown.push(format!("{mark} … and {more} lines more"));
        }
        shown
    };
    let mut lines = marked('-', &old[first..old.len() - last]);
    lines.extend(marked('+', &new[first..new.len() - last]));
    lines
}

#[cfg(test)]
mod tests {
    use super::difference;

    #[test]
    fn a_difference_shows_the_lines_between_what_is_common() {
        assert_eq!(difference("a\nb\nc\n", "a\nx\ny\nc\n"), ["- b", "+ x", "+ y"]);
        assert_eq!(difference("a\na\n", "a\na\na\n"), ["+ a"]);
        assert_eq!(difference("", "\u{1b}[31m"), ["+ \\u{1b}[31m"]);
        assert!(difference("a", "a").is_empty());
    }
}
