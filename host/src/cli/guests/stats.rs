//! `omc-host guests stats`: what the trail says about guests in numbers.

use std::collections::BTreeMap;
use std::io::Write as _;

use anyhow::Result;
use serde::Serialize;

use super::{find, registry};
use crate::audit::Record;
use crate::cli::log::{self, Period};
use crate::cli::table::table;
use crate::config::Paths;

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Args {
    /// A guest's name; all guests that were called unless given
    name: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    period: Period,
}

/// One guest's numbers. Times are in microseconds, from the event's dispatch to the guest's end.
#[derive(Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
struct Stats {
    guest: String,
    calls: usize,
    micros_p50: u64,
    micros_p95: u64,
    fuel_p50: u64,
    fuel_max: u64,
    faults: usize,
    /// Faults by kind.
    faults_by_kind: BTreeMap<String, usize>,
}

pub(super) fn run(args: &Args, paths: &Paths) -> Result<bool> {
    let mut records = log::read(paths)?;
    records.retain(|record| args.period.holds(&record.time));
    let mut all = of(&records);
    if let Some(name) = &args.name {
        all.retain(|stats| stats.guest == *name);
        if all.is_empty() {
            find(&registry(paths)?, name)?;
        }
    }
    let mut stdout = std::io::stdout().lock();
    if args.json {
        writeln!(stdout, "{}", crate::text::inert_json(serde_json::to_string_pretty(&all)?))?;
        return Ok(true);
    }
    if all.is_empty() {
        let what =
            if args.period.is_all() { "the trail has no calls yet" } else { "the trail has no calls of that time" };
        writeln!(stdout, "{what}")?;
        return Ok(true);
    }
    let rows = all.iter().map(|stats| {
        let faults = stats.faults_by_kind.iter().map(|(kind, count)| format!("{kind} ×{count}")).collect::<Vec<_>>();
        [
            stats.guest.clone(),
            stats.calls.to_string(),
            log::millis(stats.micros_p50),
            log::millis(stats.micros_p95),
            log::fuel(stats.fuel_p50),
            log::fuel(stats.fuel_max),
            if faults.is_empty() { "-".to_owned() } else { faults.join(", ") },
        ]
    });
    writeln!(stdout, "{}", table(["GUEST", "CALLS", "MS P50", "MS P95", "FUEL P50", "FUEL MAX", "FAULTS"], rows))?;
    Ok(true)
}

/// The numbers of each guest in some records, by name.
fn of(records: &[Record]) -> Vec<Stats> {
    let mut calls: BTreeMap<&str, Vec<_>> = BTreeMap::new();
    for guest in records.iter().filter_map(|record| record.guest.as_ref()) {
        calls.entry(&guest.name).or_default().push(guest);
    }
    let stats = calls.into_iter().map(|(name, calls)| {
        let sorted = |mut numbers: Vec<u64>| {
            numbers.sort_unstable();
            numbers
        };
        let micros = sorted(calls.iter().map(|call| call.micros).collect());
        let fuel = sorted(calls.iter().filter_map(|call| call.fuel).collect());
        let mut faults_by_kind = BTreeMap::new();
        for fault in calls.iter().filter_map(|call| call.fault.as_ref()) {
            *faults_by_kind.entry(fault.kind.clone()).or_default() += 1;
        }
        Stats {
            guest: name.to_owned(),
            calls: calls.len(),
            micros_p50: percentile(&micros, 50),
            micros_p95: percentile(&micros, 95),
            fuel_p50: percentile(&fuel, 50),
            fuel_max: fuel.last().copied().unwrap_or_default(),
            faults: faults_by_kind.values().sum(),
            faults_by_kind,
        }
    });
    stats.collect()
}

/// The least number that this many of a hundred do not exceed.
fn percentile(sorted: &[u64], of_hundred: usize) -> u64 {
    let rank = (sorted.len() * of_hundred).div_ceil(100);
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::{FaultRecord, GuestRecord};

    #[test]
    fn percentiles_are_of_the_calls_there_were() {
        assert_eq!(percentile(&[], 50), 0);
        assert_eq!((percentile(&[7], 50), percentile(&[7], 95)), (7, 7));
        let hundred: Vec<_> = (1..=100).collect();
        assert_eq!((percentile(&hundred, 50), percentile(&hundred, 95)), (50, 95));
        assert_eq!(percentile(&[1, 2, 3, 100], 95), 100);
    }

    #[test]
    fn each_guest_has_its_own_numbers_and_faults_are_counted_by_kind() {
        let call = |name: &str, micros, fault: Option<&str>| Record {
            guest: Some(GuestRecord {
                name: name.to_owned(),
                micros,
                fuel: Some(micros * 10),
                fault: fault.map(|kind| FaultRecord { kind: kind.to_owned(), detail: String::new() }),
                ..GuestRecord::default()
            }),
            ..Record::default()
        };
        let records = [
            call("b", 5, None),
            call("a", 1, None),
            call("a", 3, Some("trap")),
            call("a", 2, Some("trap")),
            Record::default(),
        ];
        let [a, b] = of(&records).try_into().unwrap();
        assert_eq!(
            (a.guest.as_str(), a.calls, a.micros_p50, a.micros_p95, a.fuel_max, a.faults),
            ("a", 3, 2, 3, 30, 2)
        );
        assert_eq!(a.faults_by_kind, BTreeMap::from([("trap".to_owned(), 2)]));
        assert_eq!((b.calls, b.faults, b.fuel_p50), (1, 0, 50));
    }
}
