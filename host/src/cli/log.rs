//! `omc-host log`: the audit trail, readable.

use std::io::Write as _;
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result};

use super::table::table;
use crate::audit::{self, Record};
use crate::config::Paths;

pub(super) const EXAMPLES: &str = "\
Examples:
  omc-host log                           the last 50 records
  omc-host log --guest persistent-mode   of one guest
  omc-host log --json                    one record a line, for programs
  omc-host log --follow                  and what comes";

/// Time between two looks at the trail with `--follow`.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Print one JSON record a line
    #[arg(long)]
    json: bool,
    /// Go on printing what comes
    #[arg(long)]
    follow: bool,
    /// Only records of this guest
    #[arg(long, value_name = "NAME")]
    guest: Option<String>,
    /// How many records, counted from the last
    #[arg(long, value_name = "N", default_value_t = 50)]
    last: usize,
}

pub(super) fn run(args: &Args, paths: &Paths) -> Result<bool> {
    let folder = paths
        .state_dir
        .as_ref()
        .context("there is no trail: neither HOME nor XDG_STATE_HOME is set to an absolute path")?;
    let read = || -> Result<Vec<Record>> {
        let mut records =
            audit::read(folder).with_context(|| format!("failed to read the trail in `{}`", folder.display()))?;
        if let Some(name) = &args.guest {
            records.retain(|record| record.guest.as_ref().is_some_and(|guest| guest.name == *name));
        }
        Ok(records)
    };
    let mut records = read()?;
    let first = records.len().saturating_sub(args.last);
    if records.is_empty() && !args.json {
        writeln!(std::io::stdout(), "the trail is empty: no guest has been called yet")?;
    } else {
        print(&records[first..], args.json, true)?;
    }
    if !args.follow {
        return Ok(true);
    }
    loop {
        thread::sleep(LOOK_AGAIN);
        let now = read()?;
        // Rotation takes records away at the front, so what is known is found again by its end.
        let known = records.last().map_or(0, |last| position_after(&now, last));
        print(&now[known..], args.json, false)?;
        records = now;
    }
}

/// The place after a record; all are new if it is gone.
fn position_after(records: &[Record], last: &Record) -> usize {
    let key =
        |record: &Record| (record.time.clone(), record.process, record.guest.as_ref().map(|guest| guest.name.clone()));
    let last = key(last);
    records.iter().rposition(|record| key(record) == last).map_or(0, |at| at + 1)
}

fn print(records: &[Record], json: bool, headings: bool) -> Result<()> {
    let mut stdout = std::io::stdout().lock();
    if json {
        for record in records {
            writeln!(stdout, "{}", audit::json(record))?;
        }
        return Ok(());
    }
    if records.is_empty() {
        return Ok(());
    }
    let text = table(["TIME", "AGENT", "EVENT", "SESSION", "GUEST", "MS", "OUTCOME"], records.iter().map(row));
    let text = if headings { text.as_str() } else { text.split_once('\n').map_or("", |(_, rows)| rows) };
    writeln!(stdout, "{text}")?;
    Ok(())
}

fn row(record: &Record) -> [String; 7] {
    let (guest, millis, outcome) = match &record.guest {
        None => ("-".to_owned(), String::new(), record.note.clone().unwrap_or_default()),
        Some(guest) => {
            let mut outcome = match (&guest.fault, &guest.decision) {
                (Some(fault), _) => format!("fault {}: {}", fault.kind, fault.detail),
                (None, Some(decision)) => decision.clone(),
                (None, None) => String::new(),
            };
            if let Some(reason) = &guest.reason {
                let first = reason.lines().next().unwrap_or_default();
                outcome.push_str(": ");
                outcome.push_str(first);
            }
            for (what, list) in [("kept", &guest.kept), ("dropped", &guest.dropped), ("refused", &guest.refused)] {
                if !list.is_empty() {
                    outcome.extend(["; ", what, " ", &list.join(", ")]);
                }
            }
            // Its own words, and shown as such.
            outcome.extend(guest.log.iter().map(|line| format!("\n  {} says {line}", guest.name)));
            (guest.name.clone(), format!("{}.{}", guest.micros / 1_000, guest.micros / 100 % 10), outcome)
        }
    };
    let session = record.session.clone().unwrap_or_else(|| "-".to_owned());
    [record.time.clone(), record.agent.clone(), record.event.clone(), session, guest, millis, outcome]
}
