//! `omc-host explain`: what one event would do.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};

use super::table::table;
use crate::audit::Record;
use crate::config::Env;
use crate::explain::{Explanation, explain};
use crate::input::{self, Blocking, Input};
use crate::protocol::dialect;
use crate::text;

pub(super) const EXAMPLES: &str = "\
Examples:
  omc-host explain event.json
  omc-host explain --agent codex < event.json
  echo '{\"hook_event_name\":\"Stop\",\"session_id\":\"s1\",\"cwd\":\"'\"$PWD\"'\"}' | omc-host explain --json

Guests work on copies of the `.omc` directories, requests to other hosts are denied, and no trail is written.";

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The event, as the agent sends it; standard input unless given
    event: Option<PathBuf>,
    /// The agent that sends it: claude, codex, …; found out from the event unless given
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args, env: &Env) -> Result<bool> {
    if let Some(agent) = &args.agent
        && dialect::dialect(agent).is_none()
    {
        bail!("there is no agent `{}` here; `claude` and `codex` are the ones that are answered", text::inert(agent));
    }
    let limits = input::Limits::default();
    let read = match &args.event {
        None => input::read_stdin(&limits),
        Some(path) => {
            let file =
                std::fs::File::open(path).with_context(|| format!("failed to open the event `{}`", path.display()))?;
            input::read_event(&mut Blocking(file), &limits)
        }
    };
    let Input { payload, repaired, .. } = read.context("failed to read the event")?;
    let notes =
        if repaired { vec!["the event was not JSON by the letter and has been repaired".to_owned()] } else { vec![] };
    let explanation = explain(args.agent.as_deref(), payload, env, notes)
        .context("failed to copy the state into a temporary folder")?;
    let mut stdout = std::io::stdout().lock();
    if args.json {
        writeln!(stdout, "{}", serde_json::to_string_pretty(&explanation)?)?;
    } else {
        writeln!(stdout, "{}", render(&explanation))?;
    }
    Ok(true)
}

fn render(explanation: &Explanation) -> String {
    let Explanation { agent, event, session, project, target, merged, .. } = explanation;
    let or_none = |value: &Option<String>| value.as_deref().map_or_else(|| "-".to_owned(), text::inert);
    let mut out = format!("event    {} of {agent}, session {}", text::inert(event), or_none(session));
    let mut line = |label: &str, value: &str| {
        // A string takes everything.
        let _ = write!(out, "\n{label:<9}{value}");
    };
    line("target", &or_none(target));
    line("project", &or_none(project));
    for copied in &explanation.copied {
        line("", &text::inert(copied));
    }
    for note in explanation.records.iter().filter_map(|record| record.note.as_deref()) {
        line("note", &text::inert(note));
    }

    let calls = explanation.records.iter().filter_map(row);
    let guests = explanation
        .guests
        .iter()
        .map(|guest| [guest.guest.clone(), if guest.called { "called" } else { "-" }.to_owned(), guest.why.clone()]);
    let mut parts = vec![out, table(["GUEST", "CALLED", "WHY"], guests)];
    let calls: Vec<_> = calls.collect();
    if !calls.is_empty() {
        parts.push(table(["GUEST", "DECISION", "KEPT", "DROPPED", "REFUSED", "FUEL", "MS"], calls));
    }

    let mut answer =
        format!("merged   {}", if merged.decision.is_empty() { "no guest was called" } else { &merged.decision });
    let updated = merged.updated_input.as_ref().map(ToString::to_string);
    let texts =
        [("reason", &merged.reason), ("context", &merged.context), ("message", &merged.message), ("input", &updated)];
    for (label, value) in texts {
        if let Some(value) = value {
            let shown: Vec<_> = value.lines().map(text::inert).collect();
            let _ = write!(answer, "\n{label:<9}{}", shown.join("\n         "));
        }
    }
    let bytes = explanation.stdout.len();
    let _ = write!(
        answer,
        "\nanswer   {bytes} bytes, exit status {}, after {}\n{}",
        explanation.exit_code,
        millis(explanation.micros),
        text::inert(explanation.stdout.trim_end())
    );
    parts.push(answer);
    parts.join("\n\n").trim_end().to_owned()
}

/// A call as a row.
fn row(record: &Record) -> Option<[String; 7]> {
    let guest = record.guest.as_ref()?;
    let mut decision = match (&guest.fault, &guest.decision) {
        (Some(fault), _) => format!("fault {}: {}", fault.kind, fault.detail),
        (None, decision) => decision.clone().unwrap_or_default(),
    };
    if let Some(reason) = guest.reason.as_ref().and_then(|reason| reason.lines().next()) {
        decision = format!("{decision}: {reason}");
    }
    decision.extend(guest.log.iter().map(|line| format!("\n  says {line}")));
    let list = |items: &[String]| if items.is_empty() { "-".to_owned() } else { items.join("\n") };
    let (kept, dropped, refused) = (list(&guest.kept), list(&guest.dropped), list(&guest.refused));
    Some([
        guest.name.clone(),
        decision,
        kept,
        dropped,
        refused,
        guest.fuel.map_or_else(|| "-".to_owned(), |fuel| fuel.to_string()),
        millis(guest.micros),
    ])
}

fn millis(micros: u64) -> String {
    format!("{}.{} ms", micros / 1_000, micros / 100 % 10)
}
