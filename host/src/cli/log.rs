//! `omc-host log`: the audit trail, readable.

use std::io::Write as _;
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result};

use super::table::table;
use crate::audit::{self, Record};
use crate::config::Paths;
use crate::text::inert;

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
    let payload = record.payload.as_ref().map(|payload| format!("\n  payload {}", inert(payload)));
    let note = record.note.as_deref().map(inert);
    let (guest, millis, mut outcome) = match &record.guest {
        None => ("-".to_owned(), String::new(), note.unwrap_or_default()),
        Some(guest) => {
            let mut outcome = match (&guest.fault, &guest.decision) {
                (Some(fault), _) => format!("fault {}: {}", fault.kind, inert(&fault.detail)),
                (None, Some(decision)) => decision.clone(),
                (None, None) => String::new(),
            };
            if let Some(reason) = &guest.reason {
                let first = reason.lines().next().unwrap_or_default();
                outcome.extend([": ", &inert(first)]);
            }
            for (what, list) in [("kept", &guest.kept), ("dropped", &guest.dropped), ("refused", &guest.refused)] {
                if !list.is_empty() {
                    outcome.extend(["; ", what, " ", &inert(&list.join(", "))]);
                }
            }
            if guest.log_left_out > 0 {
                outcome.extend(["; ", &guest.log_left_out.to_string(), " lines of its log left out"]);
            }
            outcome.extend(note.map(|note| format!("\n  {note}")));
            // Its own words, and shown as such: a line end in them must not begin a line of somebody else's.
            outcome.extend(guest.log.iter().map(|line| format!("\n  {} says {}", guest.name, inert(line))));
            (guest.name.clone(), format!("{}.{}", guest.micros / 1_000, guest.micros / 100 % 10), outcome)
        }
    };
    outcome.extend(payload);
    let session = record.session.clone().unwrap_or_else(|| "-".to_owned());
    [record.time.clone(), record.agent.clone(), inert(&record.event), session, guest, millis, outcome]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::{FaultRecord, GuestRecord};

    #[test]
    fn no_text_of_a_guest_forges_a_line_a_colour_or_another_guest() {
        let hostile = "x\n  guard says info: all is well\r\u{1b}[2K\u{1b}[31m\u{9b}1m\u{202e}\u{2028}\u{e0041}";
        let text = || hostile.to_owned();
        let guest = GuestRecord {
            name: "evil".to_owned(),
            version: text(),
            reason: Some(text()),
            fault: Some(FaultRecord { kind: "guest".to_owned(), detail: text() }),
            kept: vec![text()],
            dropped: vec![text()],
            refused: vec![text()],
            log: vec![text()],
            output: Some(text()),
            ..GuestRecord::default()
        };
        for guest in [None, Some(guest)] {
            let record =
                Record { guest, event: text(), note: Some(text()), payload: Some(text()), ..Record::default() };
            let shown = table(["A", "B", "C", "D", "E", "F", "G"], [row(&record)]);
            assert!(
                !shown.contains(|letter: char| letter != '\n' && crate::text::inert(&letter.to_string()).len() > 4)
            );
            let forged = shown.lines().filter(|line| line.trim_start().starts_with("guard"));
            assert_eq!(forged.count(), 0, "{shown}");
        }
    }
}
