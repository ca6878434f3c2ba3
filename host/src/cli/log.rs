//! `omc-host log`: the audit trail, readable.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::thread;
use std::time::{Duration, SystemTime};

use anyhow::{Context as _, Result, bail};

use super::table::table;
use crate::audit::{self, GuestRecord, Record};
use crate::config::Paths;
use crate::protocol::event::{Kind, kebab_case};
use crate::registry::Registry;
use crate::text::inert;

pub(super) const EXAMPLES: &str = "\
Examples:
  omc-host log                           the last 50 records
  omc-host log --guest persistent-mode   of one guest
  omc-host log --fault --since 2h        faults of the last two hours
  omc-host log --event pre-tool-use --session 4f1c
  omc-host log --json                    one record a line, for programs
  omc-host log --follow                  and what comes

A time is an age (90s, 10m, 2h, 7d) or the beginning of a date in UTC (2026-08-01, 2026-08-01T12:30).";

/// Time between two looks at the trail with `--follow`.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// Least likeness of a name that is suggested, in percent: two letters changed places in a short name.
const MIN_LIKENESS: usize = 30;

/// Most names that are suggested.
const MAX_LIKE: usize = 4;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Print one JSON record a line
    #[arg(long)]
    json: bool,
    /// Go on printing what comes
    #[arg(long)]
    follow: bool,
    /// How many records, counted from the last
    #[arg(long, value_name = "N", default_value_t = 50)]
    last: usize,
    #[command(flatten)]
    filter: Filter,
}

/// Which records are wanted. All that is given must hold.
#[derive(Debug, Default, clap::Args)]
pub(super) struct Filter {
    /// Only records of this guest
    #[arg(long, value_name = "NAME")]
    guest: Option<String>,
    /// Only records of sessions whose id begins like this
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// Only records of this kind of event, such as pre-tool-use or PreToolUse
    #[arg(long, value_name = "KIND")]
    event: Option<String>,
    /// Only faults, or only those of one kind, such as trap
    #[arg(long, value_name = "KIND", num_args = 0..=1, default_missing_value = "")]
    fault: Option<String>,
    #[command(flatten)]
    period: Period,
}

/// Which time is wanted.
#[derive(Debug, Default, clap::Args)]
pub(super) struct Period {
    /// Only records from this time on
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    since: Option<String>,
    /// Only records up to this time
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    until: Option<String>,
}

impl Period {
    /// Whether it is all the time there is.
    pub(super) fn is_all(&self) -> bool {
        self.since.is_none() && self.until.is_none()
    }

    /// Whether a record's time is in it. Times in the trail are all of one form, so that their order is that of their letters.
    pub(super) fn holds(&self, time: &str) -> bool {
        let up_to = |until: &String| time.get(..until.len()).unwrap_or(time) <= until.as_str();
        self.since.as_deref().is_none_or(|since| time >= since) && self.until.as_ref().is_none_or(up_to)
    }
}

/// The known kinds whose names are most like a text, the likest first.
fn kinds_like(text: &str) -> Vec<&'static str> {
    let pairs = |name: &str| -> Vec<(char, char)> {
        let letters: Vec<_> = name.chars().filter(char::is_ascii_alphanumeric).collect();
        letters.windows(2).map(|pair| (pair[0], pair[1])).collect()
    };
    let wanted = pairs(text);
    // Dice's coefficient of their pairs of letters, in percent.
    let likeness = |name: &str| {
        let pairs = pairs(name);
        let shared = pairs.iter().filter(|pair| wanted.contains(pair)).count();
        200 * shared / (pairs.len() + wanted.len()).max(1)
    };
    let mut like: Vec<_> = Kind::KNOWN.iter().map(|kind| (likeness(kind.name()), kind.name())).collect();
    like.retain(|(likeness, _)| *likeness >= MIN_LIKENESS);
    like.sort_by_key(|(likeness, _)| std::cmp::Reverse(*likeness));
    like.into_iter().take(MAX_LIKE).map(|(_, name)| name).collect()
}

/// Reads an age or the beginning of a date, as the trail has it.
fn parse_time(text: &str) -> Result<String, String> {
    let problem = || format!("`{text}` is no time: write an age such as `2h`, or a date such as `2026-08-01T12:30`");
    if let Some((at, unit)) = text.char_indices().next_back()
        && let Ok(number) = text[..at].parse::<u64>()
        && let Some(seconds) = [('s', 1), ('m', 60), ('h', 3_600), ('d', 86_400)].iter().find(|(name, _)| *name == unit)
    {
        let age = Duration::from_secs(number.saturating_mul(seconds.1));
        let then = SystemTime::now().checked_sub(age).filter(|then| *then >= SystemTime::UNIX_EPOCH);
        return Ok(omc_state::Timestamp::from(then.unwrap_or(SystemTime::UNIX_EPOCH)).to_string());
    }
    let form = "0000-00-00T00:00:00.000Z";
    let fits = |(letter, form): (char, char)| if form == '0' { letter.is_ascii_digit() } else { letter == form };
    let is_date = (4..=form.len()).contains(&text.len()) && text.chars().zip(form.chars()).all(fits);
    if is_date { Ok(text.to_owned()) } else { Err(problem()) }
}

impl Filter {
    fn wants(&self, record: &Record) -> bool {
        let guest = record.guest.as_ref();
        let is_guest = |name: &String| guest.is_some_and(|guest| guest.name == *name);
        let is_session = |id: &String| record.session.as_ref().is_some_and(|session| session.starts_with(id.as_str()));
        let is_fault = |kind: &String| {
            let fault = guest.and_then(|guest| guest.fault.as_ref());
            // Without a kind all are wanted.
            fault.is_some_and(|fault| kind.is_empty() || fault.kind == *kind)
        };
        self.guest.as_ref().is_none_or(is_guest)
            && self.session.as_ref().is_none_or(is_session)
            && self.event.as_ref().is_none_or(|event| record.event == kebab_case(event))
            && self.fault.as_ref().is_none_or(is_fault)
            && self.period.holds(&record.time)
    }

    /// Refuses a guest or a kind that is neither known nor in the trail: a slip of the pen would look like a guest that does
    /// nothing, or an event that never happens.
    fn check(&self, all: &[Record], paths: &Paths) -> Result<()> {
        if let Some(kind) = self.event.as_deref().map(kebab_case)
            && Kind::from_name(&kind).is_none()
            && all.iter().all(|record| record.event != kind)
        {
            let next = match kinds_like(&kind).as_slice() {
                [] => "kinds are named like `pre-tool-use`".to_owned(),
                like => format!("did you mean `{}`?", like.join("`, `")),
            };
            bail!("there is no event `{kind}`, and the trail has none of that name; {next}");
        }
        let Some(name) = &self.guest else { return Ok(()) };
        let in_trail: BTreeSet<_> =
            all.iter().filter_map(|record| Some(record.guest.as_ref()?.name.as_str())).collect();
        if in_trail.contains(name.as_str()) || Registry::load(paths).guests().any(|guest| guest.name() == name) {
            return Ok(());
        }
        bail!(
            "there is no guest `{name}`, and the trail has none of that name; `omc-host guests list` shows those there are"
        )
    }
}

/// All records of the trail.
pub(super) fn read(paths: &Paths) -> Result<Vec<Record>> {
    let folder = paths
        .state_dir
        .as_ref()
        .context("there is no trail: neither HOME nor XDG_STATE_HOME is set to an absolute path")?;
    audit::read(folder).with_context(|| format!("failed to read the trail in `{}`", folder.display()))
}

pub(super) fn run(args: &Args, paths: &Paths) -> Result<bool> {
    let all = read(paths)?;
    args.filter.check(&all, paths)?;
    let is_empty = all.is_empty();
    let wanted =
        |records: Vec<Record>| records.into_iter().filter(|record| args.filter.wants(record)).collect::<Vec<_>>();
    let mut records = wanted(all);
    let first = records.len().saturating_sub(args.last);
    if records.is_empty() && !args.json {
        let what =
            if is_empty { "the trail is empty: no guest has been called yet" } else { "the trail has no such records" };
        writeln!(std::io::stdout(), "{what}")?;
    } else {
        print(&records[first..], args.json, true)?;
    }
    if !args.follow {
        return Ok(true);
    }
    loop {
        thread::sleep(LOOK_AGAIN);
        let now = wanted(read(paths)?);
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
    let text = table(["TIME", "AGENT", "EVENT", "SESSION", "GUEST", "MS", "FUEL", "OUTCOME"], records.iter().map(row));
    let text = if headings { text.as_str() } else { text.split_once('\n').map_or("", |(_, rows)| rows) };
    writeln!(stdout, "{text}")?;
    Ok(())
}

fn row(record: &Record) -> [String; 8] {
    let payload = record.payload.as_ref().map(|payload| format!("\n  payload {}", inert(payload)));
    let note = record.note.as_deref().map(inert);
    let (guest, millis, fuel, mut outcome) = match &record.guest {
        None => ("-".to_owned(), String::new(), String::new(), note.unwrap_or_default()),
        Some(guest) => (
            guest.name.clone(),
            self::millis(guest.micros),
            guest.fuel.map_or_else(String::new, fuel),
            outcome(guest, note),
        ),
    };
    outcome.extend(payload);
    let session = record.session.clone().unwrap_or_else(|| "-".to_owned());
    [record.time.clone(), record.agent.clone(), inert(&record.event), session, guest, millis, fuel, outcome]
}

/// What came of a call.
fn outcome(guest: &GuestRecord, note: Option<String>) -> String {
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
    outcome
}

/// Microseconds as milliseconds for people.
pub(super) fn millis(micros: u64) -> String {
    format!("{}.{}", micros / 1_000, micros / 100 % 10)
}

/// Fuel for people: to three places, since more of it is not the same on the next day.
pub(super) fn fuel(fuel: u64) -> String {
    let short = |unit: u64, letter: char| format!("{}.{}{letter}", fuel / unit, fuel / (unit / 10) % 10);
    match fuel {
        0..10_000 => fuel.to_string(),
        10_000..1_000_000 => format!("{}k", fuel / 1_000),
        1_000_000..1_000_000_000 => short(1_000_000, 'M'),
        _ => short(1_000_000_000, 'G'),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::FaultRecord;
    use crate::protocol::contract;
    use crate::protocol::event::Agent;

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
            let shown = table(["A", "B", "C", "D", "E", "F", "G", "H"], [row(&record)]);
            assert!(
                !shown.contains(|letter: char| letter != '\n' && crate::text::inert(&letter.to_string()).len() > 4)
            );
            let forged = shown.lines().filter(|line| line.trim_start().starts_with("guard"));
            assert_eq!(forged.count(), 0, "{shown}");
        }
    }

    #[test]
    fn every_filter_takes_away_and_all_must_hold() {
        let guest = GuestRecord {
            name: "guard".to_owned(),
            fault: Some(FaultRecord { kind: "trap".to_owned(), detail: String::new() }),
            ..GuestRecord::default()
        };
        let record = Record {
            time: "2026-08-01T12:30:00.000Z".to_owned(),
            event: "stop".to_owned(),
            session: Some("4f1c-77".to_owned()),
            guest: Some(guest),
            ..Record::default()
        };
        let some = |text: &str| Some(text.to_owned());
        let of = |since, until| Filter { period: Period { since, until }, ..Filter::default() };
        for (filter, expected) in [
            (Filter::default(), true),
            (Filter { guest: some("guard"), ..Filter::default() }, true),
            (Filter { guest: some("guar"), ..Filter::default() }, false),
            (Filter { session: some("4f1c"), ..Filter::default() }, true),
            (Filter { session: some("f1c"), ..Filter::default() }, false),
            (Filter { event: some("stop"), ..Filter::default() }, true),
            (Filter { event: some("setup"), guest: some("guard"), ..Filter::default() }, false),
            (Filter { fault: some(""), ..Filter::default() }, true),
            (Filter { fault: some("trap"), ..Filter::default() }, true),
            (Filter { fault: some("fuel"), ..Filter::default() }, false),
            (of(some("2026-08-01"), None), true),
            (of(some("2026-08-01T12:31"), None), false),
            (of(None, some("2026-08-01")), true),
            (of(None, some("2026-08-01T12:30")), true),
            (of(None, some("2026-08-01T12:29")), false),
            (of(None, some("2026-07")), false),
        ] {
            assert_eq!(filter.wants(&record), expected, "{filter:?}");
        }
    }

    #[test]
    fn a_kind_is_known_by_either_spelling_and_a_slip_of_the_pen_is_not_silence() {
        for row in [Agent::Claude, Agent::Codex].into_iter().flat_map(contract::rows) {
            let record = Record { event: row.kind.name().to_owned(), ..Record::default() };
            for spelling in [row.event, row.kind.name()] {
                let filter = Filter { event: Some(spelling.to_owned()), ..Filter::default() };
                assert!(filter.wants(&record), "{spelling}");
            }
        }
        let env = crate::config::Env::from_pairs::<&str>(&[]);
        let paths = Paths::resolve(&env, None, None);
        let check = |event: &str, trail: &[Record]| {
            let filter = Filter { event: Some(event.to_owned()), ..Filter::default() };
            filter.check(trail, &paths).map_err(|error| error.to_string())
        };
        assert_eq!(check("Stop", &[]), Ok(()));
        let record = Record { event: "quantum-leap".to_owned(), ..Record::default() };
        assert_eq!(check("QuantumLeap", &[record]), Ok(()));
        for (wrong, right) in [("stpo", "`stop`"), ("pretool", "`pre-tool-use`"), ("zzz", "named like")] {
            let said = check(wrong, &[]).expect_err("refused");
            assert!(said.contains(right), "{said}");
        }
    }

    #[test]
    fn times_are_ages_or_beginnings_of_dates() {
        for text in ["", "yesterday", "2h30", "h", "-2h", "2026/08/01", "2026-08-01T12:30:00.000Zx", "é"] {
            assert!(parse_time(text).is_err(), "{text}");
        }
        assert_eq!(parse_time("2026-08-01T12").as_deref(), Ok("2026-08-01T12"));
        let hour_ago = parse_time("1h").unwrap();
        assert!(hour_ago < parse_time("0s").unwrap() && hour_ago > parse_time("2h").unwrap());
        assert_eq!(parse_time("99999999999999999d").unwrap(), "1970-01-01T00:00:00.000Z");
    }

    #[test]
    fn fuel_is_short() {
        for (number, text) in
            [(0, "0"), (9_999, "9999"), (10_000, "10k"), (1_250_000, "1.2M"), (40_960_000_000, "40.9G")]
        {
            assert_eq!(fuel(number), text);
        }
    }
}
