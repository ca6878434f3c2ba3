//! `omc-host check`: what an agent makes of a hooks file.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow};

use super::agents::agent;
use super::table::table;
use crate::config::{Env, EnvVars, file};
use crate::hooks_file::check::{self, Outcome, Report, Severity};
use crate::hooks_file::{self, Trusted};
use crate::protocol::event::Agent;
use crate::text;

pub(super) const EXAMPLES: &str = "\
Examples:
  omc-host check ~/.claude/settings.json
  omc-host check .codex/hooks.json --json
  omc-host check hooks/hooks.json --agent codex     would Codex take Claude Code's file?
  omc-host check .claude/settings.json --convert codex > .codex/hooks.json

The exit status is 1 if something is wrong with the file, or if a conversion loses something. Of Codex's trust, which is bound to
content and place, it knows what `config.toml` in $CODEX_HOME or ~/.codex says.";

/// Largest file that is read, in bytes: hundreds of times the largest real one.
const MAX_FILE_BYTES: u64 = 4 << 20;

/// Longest command in the table, in characters.
const MAX_WHAT: usize = 60;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// A hooks file: Claude Code's settings.json, a plugin's hooks.json, or Codex's hooks.json or config.toml
    file: PathBuf,
    /// The agent that is to read it: claude or codex; told by the file unless given
    #[arg(long, value_name = "NAME", value_parser = agent)]
    agent: Option<Agent>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Print the nearest file for the other agent, and on standard error what it cannot say
    #[arg(long, value_name = "AGENT", value_parser = agent)]
    convert: Option<Agent>,
}

pub(super) fn run(args: &Args, env: &Env) -> Result<bool> {
    let text = read(&args.file)?.with_context(|| format!("there is no file `{}`", args.file.display()))?;
    if let Some(to) = args.convert {
        return convert(args, &text, to);
    }
    // Codex knows a file by its whole path.
    let source = args.file.canonicalize().unwrap_or_else(|_| args.file.clone());
    let (source, trusted) = (source.to_string_lossy(), trusted(env)?);
    let context = check::Context { path: &args.file, source: &source, agent: args.agent, trusted: trusted.as_ref() };
    let report = check::check(&text, &context);
    let mut stdout = std::io::stdout().lock();
    if args.json {
        writeln!(stdout, "{}", serde_json::to_string_pretty(&report)?)?;
    } else {
        writeln!(stdout, "{}", render(&report))?;
    }
    Ok(report.is_in_order())
}

fn read(path: &Path) -> Result<Option<String>> {
    let text = file::read(path, MAX_FILE_BYTES).with_context(|| format!("failed to read `{}`", path.display()))?;
    Ok(text.map(|text| text.text))
}

/// What the user trusts in Codex; nothing if Codex was never used here.
fn trusted(env: &Env) -> Result<Option<Trusted>> {
    let home = env.absolute(EnvVars::CODEX_HOME).map(Path::to_path_buf);
    let Some(home) = home.or_else(|| env.home().map(|home| home.join(".codex"))) else { return Ok(None) };
    let path = home.join("config.toml");
    Ok(read(&path)?.and_then(|text| hooks_file::trusted(&path, &text)))
}

fn convert(args: &Args, text: &str, to: Agent) -> Result<bool> {
    let converted = hooks_file::convert(&args.file, text, args.agent, to)
        .map_err(|problem| anyhow!("failed to convert `{}`: {problem}", args.file.display()))?;
    let mut stdout = std::io::stdout().lock();
    if args.json {
        writeln!(stdout, "{}", serde_json::to_string_pretty(&converted)?)?;
    } else {
        writeln!(stdout, "{}", serde_json::to_string_pretty(&converted.file)?)?;
        let mut stderr = std::io::stderr().lock();
        for lost in &converted.lost {
            writeln!(stderr, "lost: {}", text::inert(lost))?;
        }
    }
    Ok(converted.lost.is_empty())
}

fn render(report: &Report) -> String {
    let rows = report.handlers.iter().map(|handler| {
        let outcome = match handler.outcome {
            Outcome::Runs => "runs",
            Outcome::Skipped => "skipped",
            Outcome::NeverMatches => "never matches",
            Outcome::BreaksFile => "breaks the file",
            Outcome::NotLoaded => "not loaded",
        };
        let findings: Vec<String> =
            handler.findings.iter().map(|finding| format!("{}{}", mark(finding.severity), finding.text)).collect();
        let mut what: String = handler.what.chars().take(MAX_WHAT).collect();
        if what.len() < handler.what.len() {
            what.push('…');
        }
        [
            format!("{} {}.{}", handler.event, handler.group, handler.handler),
            handler.matcher.clone().unwrap_or_else(|| "-".to_owned()),
            handler.r#type.clone().unwrap_or_else(|| "-".to_owned()),
            what.replace('\n', " "),
            outcome.to_owned(),
            findings.join("\n"),
        ]
    });
    let mut text = format!("{} reads {} hooks", report.agent, report.handlers.len());
    text.push_str(if report.loads { "\n" } else { "; it does not take this file\n" });
    if !report.handlers.is_empty() {
        text.push_str(&table(["EVENT", "MATCHER", "TYPE", "WHAT", "OUTCOME", "FINDINGS"], rows));
    }
    let lines =
        report.findings.iter().map(|finding| format!("\n{}{}", mark(finding.severity), text::inert(&finding.text)));
    text.extend(lines);
    text
}

fn mark(severity: Severity) -> &'static str {
    match severity {
        Severity::Problem => "! ",
        Severity::Note => "",
    }
}
