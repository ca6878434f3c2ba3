//! Guests that fault again and again are set aside for a while, so that a broken one does not cost every event its time.
//!
//! After [`FAULTS_IN_A_ROW`] faults a guest is not called for a minute, then it has one more chance; each further fault doubles
//! the time, up to an hour, and one success forgets it all. Only what the guest did counts ([`FaultKind::is_the_guests`]); a
//! `required` guest is never set aside, whatever it does. Another version of a guest begins anew.
//!
//! The streaks are in `faults.json` in the user's state folder, outside of everything that a guest can reach. There is no such
//! file while no guest faults, so that an event costs one look at a name that is not there. It is changed after the answer is out, under the folder's
//! lock; where that cannot be had in time, a fault is not counted.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::Guest;
use super::trust::{Durability, lock_dir, open_private, replace_private};
use crate::config::Paths;
use crate::runtime::FaultKind;

/// Faults in a row after which a guest is set aside: a passing trouble is over before that.
const FAULTS_IN_A_ROW: u32 = 5;
/// How long a guest is set aside the first time: about a turn of the agent.
const FIRST_WHILE: Duration = Duration::from_mins(1);
/// How long at most: who repairs a guest does not wait for longer.
const LONGEST_WHILE: Duration = Duration::from_hours(1);
/// A streak that is older than this is forgotten.
const FORGET_AFTER: Duration = Duration::from_hours(24);
/// Most guests that are kept count of; beyond them the ones that faulted longest ago are forgotten.
const MAX_STREAKS: usize = 256;
/// Largest file that is read, in bytes: [`MAX_STREAKS`] with the longest names.
const MAX_BYTES: u64 = 128 * 1024;
/// How long an event waits for others that count their faults. Its answer is out, but its agent may wait for the process.
const WAIT_FOR_LOCK: Duration = Duration::from_millis(100);

/// What a guest did last.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outcome<'a> {
    pub(crate) guest: &'a str,
    pub(crate) digest: &'a str,
    /// Its fault, or none if it gave an opinion.
    pub(crate) fault: Option<FaultKind>,
}

/// Faults of one guest with no success in between.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Streak {
    digest: String,
    pub(crate) faults: u32,
    /// The kind of the last one.
    pub(crate) kind: String,
    /// When that was, in milliseconds since 1970.
    last: u64,
    /// How often it has been set aside in this streak.
    rounds: u32,
    /// Until when it is set aside, in milliseconds since 1970; 0 if it never was.
    until: u64,
}

/// The streaks of all guests.
#[derive(Debug, Default, Deserialize, Serialize)]
pub(crate) struct Faults {
    guests: BTreeMap<String, Streak>,
}

impl Faults {
    /// Reads the streaks. A file that is missing, damaged or not the user's alone sets nobody aside.
    pub(crate) fn load(paths: &Paths) -> Self {
        path(paths).and_then(|path| read(&path).ok()?).unwrap_or_default()
    }

    /// The streak for which a guest is set aside now.
    pub(crate) fn sets_aside(&self, guest: &Guest) -> Option<&Streak> {
        self.streak(guest.name(), guest.digest()).filter(|streak| streak.left(now()).is_some())
    }

    /// Whether there is something to remember of what a guest did, or to forget.
    pub(crate) fn are_changed_by(&self, guest: &Guest, fault: Option<FaultKind>) -> bool {
        fault.map_or_else(|| self.streak(guest.name(), guest.digest()).is_some(), FaultKind::is_the_guests)
    }

    /// Remembers what guests did. Returns what a person should know: who is set aside, who works again.
    pub(crate) fn record(paths: &Paths, outcomes: &[Outcome<'_>]) -> io::Result<Vec<String>> {
        let path = path(paths).ok_or(io::ErrorKind::NotFound)?;
        let folder = path.parent().ok_or(io::ErrorKind::NotFound)?;
        let _locked = lock_dir(folder, WAIT_FOR_LOCK)?;
        // Read again under the lock: others count as well.
        let mut faults = match read(&path) {
            Ok(found) => found.unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                fs::rename(&path, path.with_extension("json.corrupt"))?;
                Self::default()
            }
            Err(error) => return Err(error),
        };
        let notes = faults.apply(outcomes, now());
        if faults.guests.is_empty() {
            match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => return Ok(notes),
            }
        }
        replace_private(&path, &serde_json::to_vec(&faults)?, Durability::Unsynced)?;
        Ok(notes)
    }

    fn streak(&self, guest: &str, digest: &str) -> Option<&Streak> {
        self.guests.get(guest).filter(|streak| streak.digest == digest)
    }

    fn apply(&mut self, outcomes: &[Outcome<'_>], now: u64) -> Vec<String> {
        let mut notes = Vec::new();
        let forgotten = now.saturating_sub(millis(FORGET_AFTER));
        // One from the future was written before the clock was set back.
        self.guests.retain(|_, streak| (forgotten..=now).contains(&streak.last));
        for outcome in outcomes {
            let name = outcome.guest;
            let Some(kind) = outcome.fault else {
                let streak = self.guests.remove(name);
                let was_set_aside = streak.is_some_and(|streak| streak.rounds > 0 && streak.digest == outcome.digest);
                notes.extend(was_set_aside.then(|| format!("the guest `{name}` works again")));
                continue;
            };
            if !kind.is_the_guests() {
                continue;
            }
            let streak = self.guests.entry(name.to_owned()).or_insert_with(|| Streak::new(outcome.digest));
            if streak.digest != outcome.digest {
                *streak = Streak::new(outcome.digest);
            }
            if let Some(length) = streak.add(kind, now) {
                let minutes = length.as_secs() / 60;
                let faults = streak.faults;
                notes.push(format!(
                    "the guest `{name}` is set aside for {minutes} min after {faults} faults in a row, the last of them `{}`",
                    kind.name()
                ));
            }
        }
        while self.guests.len() > MAX_STREAKS {
            let oldest = self.guests.iter().min_by_key(|(_, streak)| streak.last).map(|(name, _)| name.clone());
            oldest.map(|name| self.guests.remove(&name));
        }
        notes
    }
}

impl Streak {
    fn new(digest: &str) -> Self {
        Self { digest: digest.to_owned(), faults: 0, kind: String::new(), last: 0, rounds: 0, until: 0 }
    }

    /// Counts a fault; says for how long the guest is set aside if that begins with it.
    fn add(&mut self, kind: FaultKind, now: u64) -> Option<Duration> {
        self.faults = self.faults.saturating_add(1);
        kind.name().clone_into(&mut self.kind);
        self.last = now;
        // Those that were called before it began, and fault now, have been judged.
        if self.faults < FAULTS_IN_A_ROW || self.left(now).is_some() {
            return None;
        }
        let length = FIRST_WHILE.saturating_mul(1 << self.rounds.min(16)).min(LONGEST_WHILE);
        self.rounds = self.rounds.saturating_add(1);
        self.until = now + millis(length);
        Some(length)
    }

    /// How long the guest is still set aside. Longer than possible means that the clock was set back, and it is not.
    fn left(&self, now: u64) -> Option<Duration> {
        let left = Duration::from_millis(self.until.saturating_sub(now));
        (!left.is_zero() && left <= LONGEST_WHILE).then_some(left)
    }

    /// Until when the guest is set aside.
    pub(crate) fn until(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_millis(self.until)
    }
}

fn path(paths: &Paths) -> Option<PathBuf> {
    Some(paths.state_dir.as_ref()?.join("faults.json"))
}

/// Reads the file; `InvalidData` if it is damaged.
fn read(path: &Path) -> io::Result<Option<Faults>> {
    // Usually it is not there, and then its folder is not looked at.
    if fs::symlink_metadata(path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    open_private(path)?.take(MAX_BYTES).read_to_end(&mut bytes)?;
    serde_json::from_slice(&bytes).map(Some).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// The time, in milliseconds since 1970.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, millis)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: u64 = 60_000;

    fn outcome(fault: Option<FaultKind>) -> [Outcome<'static>; 1] {
        [Outcome { guest: "g", digest: "d", fault }]
    }

    /// The minutes for which each of some faults at some minutes sets the guest aside.
    fn minutes(faults: &mut Faults, kind: FaultKind, times: impl IntoIterator<Item = u64>) -> Vec<Option<u64>> {
        let mut last_until = faults.guests.get("g").map_or(0, |streak| streak.until);
        let fault = |time: u64| {
            faults.apply(&outcome(Some(kind)), time * MINUTE);
            let until = faults.guests.get("g").map_or(0, |streak| streak.until);
            let began = until != last_until;
            last_until = until;
            began.then(|| until / MINUTE - time)
        };
        times.into_iter().map(fault).collect()
    }

    #[test]
    fn five_faults_in_a_row_set_a_guest_aside_for_a_while_that_doubles_up_to_an_hour() {
        let mut faults = Faults::default();
        let times = [100, 100, 100, 100, 100, 101, 103, 107, 115, 131, 163, 223, 283];
        assert_eq!(
            minutes(&mut faults, FaultKind::Trap, times),
            [
                None,
                None,
                None,
                None,
                Some(1),
                Some(2),
                Some(4),
                Some(8),
                Some(16),
                Some(32),
                Some(60),
                Some(60),
                Some(60)
            ]
        );
        let streak = &faults.guests["g"];
        assert_eq!((streak.faults, streak.kind.as_str()), (13, "trap"));
        assert!(streak.left(342 * MINUTE).is_some() && streak.left(343 * MINUTE).is_none());
    }

    #[test]
    fn faults_of_events_side_by_side_set_aside_once() {
        let mut faults = Faults::default();
        let lengths = minutes(&mut faults, FaultKind::Fuel, [100; 20]);
        assert_eq!(lengths.iter().flatten().count(), 1);
        assert_eq!(lengths[4], Some(1));
    }

    #[test]
    fn one_success_forgets_the_faults_and_says_so_if_the_guest_was_set_aside() {
        let mut faults = Faults::default();
        minutes(&mut faults, FaultKind::Guest, [100; 4]);
        assert_eq!(faults.apply(&outcome(None), 100 * MINUTE), [""; 0]);
        assert!(faults.guests.is_empty());
        assert_eq!(minutes(&mut faults, FaultKind::Guest, [100; 4]), [None; 4]);
        let begins = faults.apply(&outcome(Some(FaultKind::Memory)), 100 * MINUTE);
        let expected = "the guest `g` is set aside for 1 min after 5 faults in a row, the last of them `memory`";
        assert_eq!(begins, [expected]);
        assert_eq!(faults.apply(&outcome(None), 101 * MINUTE), ["the guest `g` works again"]);
    }

    #[test]
    fn only_what_a_guest_did_itself_counts() {
        for (kind, counts) in [
            (FaultKind::Trap, true),
            (FaultKind::Stack, true),
            (FaultKind::Fuel, true),
            (FaultKind::Deadline, true),
            (FaultKind::Memory, true),
            (FaultKind::HostCalls, true),
            (FaultKind::Link, true),
            (FaultKind::MissingImport, true),
            (FaultKind::Guest, true),
            (FaultKind::Exit, true),
            (FaultKind::EventDeadline, false),
            (FaultKind::NotCompiled, false),
            (FaultKind::Signature, false),
            (FaultKind::Input, false),
            (FaultKind::Host, false),
        ] {
            let mut faults = Faults::default();
            minutes(&mut faults, kind, [100; 5]);
            assert_eq!(faults.guests.contains_key("g"), counts, "{}", kind.name());
            // What does not count does not end a streak either.
            minutes(&mut faults, FaultKind::Trap, [100; 5]);
            minutes(&mut faults, kind, [100]);
            assert!(faults.guests["g"].left(100 * MINUTE).is_some(), "{}", kind.name());
        }
    }

    #[test]
    fn another_version_of_a_guest_begins_anew() {
        let mut faults = Faults::default();
        minutes(&mut faults, FaultKind::Trap, [100; 5]);
        assert!(faults.streak("g", "d").is_some() && faults.streak("g", "new").is_none());
        let fault = [Outcome { guest: "g", digest: "new", fault: Some(FaultKind::Trap) }];
        faults.apply(&fault, 100 * MINUTE);
        assert_eq!((faults.guests["g"].faults, faults.guests["g"].until), (1, 0));
    }

    #[test]
    fn what_is_old_or_from_the_future_is_forgotten_and_the_number_is_bounded() {
        let mut faults = Faults::default();
        minutes(&mut faults, FaultKind::Trap, [10_000; 5]);
        assert!(faults.guests["g"].left(9_000 * MINUTE).is_none(), "a clock that was set back sets nobody aside");
        for now in [9_999, 10_000 + 24 * 60 + 1] {
            let mut faults = Faults { guests: faults.guests.clone() };
            faults.apply(&[], now * MINUTE);
            assert!(faults.guests.is_empty(), "{now}");
        }
        let names: Vec<_> = (0..300).map(|number| format!("guest-{number:03}")).collect();
        for (now, name) in (20_000_000..).zip(&names) {
            faults.apply(&[Outcome { guest: name, digest: &"d".repeat(64), fault: Some(FaultKind::Trap) }], now);
        }
        assert_eq!(faults.guests.len(), MAX_STREAKS);
        assert!(!faults.guests.contains_key("guest-000") && faults.guests.contains_key("guest-299"));
        assert!(serde_json::to_vec(&faults).unwrap().len() < usize::try_from(MAX_BYTES).unwrap());
    }

    #[test]
    fn the_file_comes_with_the_first_fault_and_goes_with_the_last_and_no_fault_is_lost_between() {
        let home = tempfile::tempdir().unwrap();
        let paths = Paths { state_dir: Some(home.path().join("state")), ..Paths::default() };
        let file = home.path().join("state/faults.json");
        let counted: usize = std::thread::scope(|scope| {
            let record = || Faults::record(&paths, &outcome(Some(FaultKind::Trap))).is_ok();
            let threads: Vec<_> = (0..20).map(|_| scope.spawn(record)).collect();
            threads.into_iter().map(|thread| usize::from(thread.join().unwrap())).sum()
        });
        // On a busy machine one or the other may have waited in vain.
        assert!(counted > 0);
        assert_eq!(usize::try_from(Faults::load(&paths).guests["g"].faults).unwrap(), counted);
        assert_eq!(
            fs::read_dir(home.path().join("state")).unwrap().count(),
            1,
            "no lock and no temporary file is left"
        );
        Faults::record(&paths, &outcome(None)).unwrap();
        assert!(!file.exists());

        fs::write(&file, "{\"guests\": {\"g\"").unwrap();
        assert!(Faults::load(&paths).guests.is_empty());
        Faults::record(&paths, &outcome(Some(FaultKind::Trap))).unwrap();
        assert_eq!(Faults::load(&paths).guests["g"].faults, 1);
        assert!(file.with_extension("json.corrupt").exists());
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_others_can_write_sets_nobody_aside() {
        use std::os::unix::fs::PermissionsExt as _;

        let home = tempfile::tempdir().unwrap();
        let paths = Paths { state_dir: Some(home.path().join("state")), ..Paths::default() };
        Faults::record(&paths, &outcome(Some(FaultKind::Trap))).unwrap();
        assert!(!Faults::load(&paths).guests.is_empty());
        fs::set_permissions(home.path().join("state"), fs::Permissions::from_mode(0o777)).unwrap();
        assert!(Faults::load(&paths).guests.is_empty());
        assert!(Faults::record(&paths, &outcome(Some(FaultKind::Trap))).is_err());
    }
}
