//! What goes by itself: sessions that nobody ended, checkpoints, records and debris. The user's own files are never in here.
//!
//! Called at the start and at the end of a session. What is needed for the next decision, sessions and checkpoints, is looked at
//! every time; the rest once an hour, since looking costs a question to the file system for each file. A call removes a bounded
//! number of files and leaves the rest to the next.

use std::path::{Path, PathBuf};

use crate::{
    Area, Error, Fields, Locker, SessionFacts, SessionId, Store, Timestamp,
    file::{Entry, Kind},
    shared_path,
};

const HOUR_MS: i64 = 60 * 60 * 1000;
const DAY_MS: i64 = 24 * HOUR_MS;

/// Age from which a session of which no file has changed is dead, in milliseconds: the original's 24 hours.
const SESSION_MS: i64 = DAY_MS;

/// Most folders of sessions that ended and were not taken up again, whatever their age: looking at each costs time.
const MAX_ENDED: usize = 32;

/// Age from which `maintenance` takes a file of the shared state for a leftover, in milliseconds: 7 days.
const LEFTOVER_MS: i64 = 7 * DAY_MS;

/// Most entries of a folder that are looked at, and most files that one call removes.
const MAX_LISTED: usize = 512;
const MAX_REMOVED: usize = 1_000;

const SESSIONS: &str = "state/sessions";
const CHECKPOINTS: &str = "state/checkpoints";

/// When the rest was looked at last: the time of this file.
const LAST_CLEAN_UP: &str = "last-clean-up.json";

/// Files of one kind in one folder, and how long they stay.
struct Rule {
    folder: &'static str,
    before: &'static str,
    after: &'static str,
    max_age_ms: i64,
    max_files: usize,
    /// Looked at every time.
    is_urgent: bool,
}

const fn rule(
    folder: &'static str,
    (before, after): (&'static str, &'static str),
    max_age_ms: i64,
    max_files: usize,
) -> Rule {
    Rule { folder, before, after, max_age_ms, max_files, is_urgent: false }
}

/// What stays how long. Ages are the original's where it has one; for records a month, and a count against many sessions a day.
const RULES: &[Rule] = &[
    Rule { is_urgent: true, ..rule(CHECKPOINTS, ("checkpoint-", ".json"), DAY_MS, 20) },
    Rule { is_urgent: true, ..rule(CHECKPOINTS, ("wisdom-", ".md"), DAY_MS, 20) },
    rule("sessions", ("", ".json"), 30 * DAY_MS, 200),
    rule("state", ("agent-replay-", ".jsonl"), 7 * DAY_MS, 10),
    rule("state", ("drift-warned-", ".json"), 30 * DAY_MS, 200),
    rule("state", ("session-summary-", ".json"), 30 * DAY_MS, 200),
    rule("state", ("sibling-retrofit-warned-", ".json"), 30 * DAY_MS, 200),
    rule("state/session-end-jobs", ("", ".json"), 30 * DAY_MS, 200),
    rule("spill", ("", ".md"), DAY_MS, 50),
    rule("spill", ("", ".txt"), DAY_MS, 50),
    rule("logs", ("", ".1"), 30 * DAY_MS, 10),
    rule("logs", ("", ".old"), 30 * DAY_MS, 10),
];

/// Folders in which writers that died may have left files behind.
const TEMP_FOLDERS: &[&str] = &["", "state", CHECKPOINTS, "sessions", "wiki"];

/// What `maintenance` leaves alone in the shared state, whatever its age: records of what is going on, and not just of one session.
const PERMANENT: &[&str] = &["mission-state.json", "skill-sessions.json", LAST_CLEAN_UP];

/// Ends of the names of files that `maintenance` may remove: what programs write. All else is somebody's.
const PROGRAMS_OWN: &[&str] = &[".json", ".jsonl", ".lock", ".reclaim.guard", "-last-steer-at"];

/// What was removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CleanedUp {
    /// Folders of sessions that nobody ended.
    pub sessions: usize,
    /// Other files.
    pub files: usize,
}

impl Store {
    /// Removes what is over, but nothing of `own`, the session that is at work. What cannot be removed stays for the next time.
    ///
    /// # Errors
    ///
    /// What keeps the lock from being taken, if there is something that needs it. The rest is done.
    pub fn clean_up<L: Locker>(&self, locker: &L, own: Option<&SessionId>, now: Timestamp) -> Result<CleanedUp, Error> {
        let marker = shared_path(LAST_CLEAN_UP);
        let is_hour_over = !self.modified(&marker).is_some_and(|time| time.is_within(HOUR_MS, now));
        let mut files = 0;
        for rule in RULES.iter().filter(|rule| rule.is_urgent || is_hour_over) {
            files += self.apply(rule, now, MAX_REMOVED.saturating_sub(files));
        }
        if is_hour_over {
            for folder in TEMP_FOLDERS {
                let debris = self.entries(Path::new(folder), MAX_LISTED).into_iter().filter(|entry| {
                    entry.kind == Kind::File && is_temp(&entry.name) && !entry.modified.is_within(HOUR_MS, now)
                });
                files += self.remove_all(Path::new(folder), debris.map(|entry| entry.name));
            }
            if self.exists(Path::new("state")) {
                let mut fields = Fields::default();
                fields.set_time("cleaned_up_at", now);
                // Without it the next call looks again.
                drop(self.replace(&marker, &fields));
            }
        }

        let dead = self.dead_sessions(own, now);
        if dead.is_empty() {
            return Ok(CleanedUp { sessions: 0, files });
        }
        self.locked_in(locker, Area::State, |store| {
            // Again: while we waited, one of them may have come back.
            let removed: Vec<_> = store
                .dead_sessions(own, now)
                .into_iter()
                .filter(|name| store.sum_up(name) && store.remove_session(name))
                .collect();
            let ids: Vec<_> = removed.iter().filter_map(|name| SessionId::parse(name)).collect();
            // The board may be somebody else's work in progress; its missions are no reason to keep a dead session.
            drop(store.drop_missions(&ids, now));
            Ok(CleanedUp { sessions: removed.len(), files })
        })
    }

    /// Removes the checkpoints, and what belongs to them, that are too old or too many. For use under the checkpoints' lock.
    pub(crate) fn prune_checkpoints(&self, now: Timestamp) {
        for rule in RULES.iter().filter(|rule| rule.folder == CHECKPOINTS) {
            self.apply(rule, now, MAX_REMOVED);
        }
    }

    /// What `maintenance` does besides: removes leftovers from the shared state, and says how many.
    ///
    /// A leftover is a program's file that nobody touched for a week and that is no mode in which somebody is at work.
    pub fn remove_leftovers(&self, now: Timestamp) -> usize {
        let folder = Path::new("state");
        let leftovers: Vec<_> = self
            .entries(folder, MAX_LISTED)
            .into_iter()
            .filter(|entry| {
                let life = if is_numbered_session(&entry.name) { DAY_MS } else { LEFTOVER_MS };
                entry.kind == Kind::File
                    && PROGRAMS_OWN.iter().any(|end| entry.name.ends_with(end))
                    && !PERMANENT.contains(&entry.name.as_str())
                    && !entry.modified.is_within(life, now)
                    && !self.is_at_work(&entry.name)
            })
            .map(|entry| entry.name)
            .collect();
        self.remove_all(folder, leftovers.into_iter())
    }

    /// Whether it is the state of a mode that is on. The time does not matter here: a team may wait for weeks.
    fn is_at_work(&self, file: &str) -> bool {
        file.ends_with("-state.json")
            && self
                .read_fields(&shared_path(file))
                .is_ok_and(|fields| fields.is_some_and(|fields| fields.flag("active")))
    }

    fn apply(&self, rule: &Rule, now: Timestamp, budget: usize) -> usize {
        let folder = Path::new(rule.folder);
        let mut found: Vec<_> = self
            .entries(folder, MAX_LISTED)
            .into_iter()
            .filter(|entry| {
                entry.kind == Kind::File && entry.name.starts_with(rule.before) && entry.name.ends_with(rule.after)
            })
            .map(|entry| (entry.modified.min(time_in_name(&entry, rule)), entry.name))
            .collect();
        found.sort_unstable_by(|a, b| b.cmp(a));
        let over = found
            .into_iter()
            .enumerate()
            .filter(|(at, (time, _))| *at >= rule.max_files || !time.is_within(rule.max_age_ms, now) && *time < now)
            .map(|(_, (_, name))| name)
            .take(budget);
        self.remove_all(folder, over)
    }

    fn remove_all(&self, folder: &Path, names: impl Iterator<Item = String>) -> usize {
        names.filter(|name| self.remove(&folder.join(name)).is_ok()).count()
    }

    /// Names of the folders of other sessions that are empty, or in which nothing has changed for [`SESSION_MS`], and of those
    /// that ended the oldest above [`MAX_ENDED`].
    fn dead_sessions(&self, own: Option<&SessionId>, now: Timestamp) -> Vec<String> {
        let mut dead = Vec::new();
        let mut ended = Vec::new();
        for folder in self.entries(Path::new(SESSIONS), MAX_LISTED) {
            let name = folder.name;
            if folder.kind != Kind::Folder || own.is_some_and(|own| own.as_str() == name) {
                continue;
            }
            let files = self.entries(&session_folder(&name), MAX_LISTED);
            let newest = files.iter().map(|file| file.modified).max();
            let is_old = newest.is_none_or(|newest| !newest.is_within(SESSION_MS, now) && newest < now);
            if files.iter().any(|file| file.kind != Kind::File) {
                // Somebody made this for more than a session's state.
            } else if is_old {
                dead.push(name);
            } else if self.has_ended(&name, &files) {
                ended.push((newest, name));
            }
        }
        ended.sort_unstable();
        let surplus = ended.len().saturating_sub(MAX_ENDED);
        dead.extend(ended.into_iter().take(surplus).map(|(_, name)| name));
        dead
    }

    /// Whether a session has its summary and did not start again after it.
    fn has_ended(&self, name: &str, files: &[Entry]) -> bool {
        !files.iter().any(|file| file.name == "session-started.json")
            && self.exists(&Path::new("sessions").join(format!("{name}.json")))
    }

    /// Writes the summary of a dead session that has none and left something to sum up: its end was not to be seen, or there was
    /// no time or room for it. Says whether its state may go now.
    fn sum_up(&self, name: &str) -> bool {
        let Some(session) = SessionId::parse(name) else { return true };
        let facts = self.session_facts(&session);
        if self.has_summary(&session) || facts == SessionFacts::default() {
            return true;
        }
        // Its last sign of life, as far as files tell.
        let seen = self.entries(&session_folder(name), MAX_LISTED).iter().map(|file| file.modified).max();
        seen.is_none_or(|seen| self.write_summary(&session, &facts, None, seen).is_ok())
    }

    fn remove_session(&self, name: &str) -> bool {
        let folder = session_folder(name);
        let files = self.entries(&folder, MAX_LISTED).into_iter().map(|entry| entry.name);
        self.remove_all(&folder, files);
        self.remove_folder(&folder)
    }
}

fn session_folder(name: &str) -> PathBuf {
    Path::new(SESSIONS).join(name)
}

/// The time in a file's name, where it has one: copying or checking out a file makes only its own time new.
fn time_in_name(entry: &Entry, rule: &Rule) -> Timestamp {
    let middle = entry.name[rule.before.len()..].strip_suffix(rule.after).unwrap_or_default();
    let text = match middle.as_bytes() {
        [.., b'Z'] if middle.len() == 24 && middle.is_ascii() => {
            let (date, time) = middle.split_at(11);
            format!("{date}{}:{}:{}.{}", &time[..2], &time[3..5], &time[6..8], &time[9..])
        }
        _ => return entry.modified,
    };
    text.parse().unwrap_or(entry.modified)
}

/// Whether a name is that of a file that is being written, by us or by the original (`.NAME.tmp.UUID`).
fn is_temp(name: &str) -> bool {
    let is_uuid = |text: &str| text.len() == 36 && text.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    name.starts_with(crate::file::TEMP_PREFIX)
        || name.strip_prefix('.').and_then(|name| name.rsplit_once(".tmp.")).is_some_and(|(_, end)| is_uuid(end))
}

/// Whether a name is `…-session-HEX.json`.
fn is_numbered_session(name: &str) -> bool {
    let id = name.strip_suffix(".json").and_then(|name| name.rsplit_once("-session-")).map(|(_, id)| id);
    id.is_some_and(|id| !id.is_empty() && id.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'a'..=b'f' | b'-')))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        lock::testing::{NeverFree, ThreadLocker},
        testing::{plant, session, store},
    };
    use serde_json::json;
    use std::{fs, time::Duration, time::SystemTime};
    use tempfile::TempDir;

    fn now() -> Timestamp {
        SystemTime::now().into()
    }

    fn aged(folder: &TempDir, path: &str, content: &str, hours: u64) {
        plant(folder, path, content);
        let file = fs::File::options().write(true).open(folder.path().join(path)).expect("the file");
        file.set_modified(SystemTime::now() - Duration::from_secs(hours * 3600)).expect("a time");
    }

    fn exists(folder: &TempDir, path: &str) -> bool {
        folder.path().join(path).exists()
    }

    #[test]
    fn dead_sessions_go_and_living_ones_stay() {
        let (folder, store) = store();
        let mission = |id: &str| json!({"id": format!("session:{id}:ralph"), "source": "session"});
        plant(
            &folder,
            "state/mission-state.json",
            json!({"missions": [mission("gone"), mission("alive")]}).to_string(),
        );
        aged(&folder, "state/sessions/gone/ralph-state.json", "{}", 25);
        aged(&folder, "state/sessions/gone/session-started.json", "{}", 30);
        aged(&folder, "state/sessions/unknown/x.json", "{}", 30);
        aged(&folder, "state/sessions/alive/old.json", "{}", 30);
        plant(&folder, "state/sessions/alive/ralph-state.json", "{}");
        aged(&folder, "state/sessions/s1/ralph-state.json", "{}", 30);
        aged(&folder, "state/sessions/deep/er/file", "x", 30);
        fs::create_dir_all(folder.path().join("state/sessions/hollow")).expect("a folder");
        let locker = ThreadLocker::default();
        let own = session("s1");
        let cleaned = store.clean_up(&&locker, Some(&own), now()).expect("a lock");
        assert_eq!(cleaned.sessions, 3);
        for (name, stays) in
            [("gone", false), ("unknown", false), ("hollow", false), ("alive", true), ("s1", true), ("deep", true)]
        {
            assert_eq!(exists(&folder, &format!("state/sessions/{name}")), stays, "{name}");
        }
        let board = fs::read_to_string(folder.path().join("state/mission-state.json")).expect("a board");
        assert!(board.contains("alive") && !board.contains("gone"));
        store.clean_up(&NeverFree, Some(&own), now()).expect("nothing to do needs no lock");
    }

    #[test]
    fn a_dead_session_that_nobody_summed_up_is_summed_up_before_it_goes() {
        let (folder, store) = store();
        let mode = |id: &str| json!({"active": true, "session_id": id, "started_at": now().to_string()}).to_string();
        for id in ["killed", "ended"] {
            aged(&folder, &format!("state/sessions/{id}/ralph-state.json"), &mode(id), 30);
        }
        plant(&folder, "sessions/ended.json", "{\"reason\": \"logout\"}");
        store.clean_up(&&ThreadLocker::default(), None, now()).expect("a lock");
        let read = |path: &str| fs::read_to_string(folder.path().join(path)).expect("a file");
        let summary: serde_json::Value = serde_json::from_str(&read("sessions/killed.json")).expect("JSON");
        assert_eq!(summary["modes_used"], json!(["ralph"]));
        assert!(summary["ended_at"].as_str().expect("a time") < now().to_string().as_str(), "when it was last seen");
        assert_eq!(read("sessions/ended.json"), "{\"reason\": \"logout\"}");
        for id in ["killed", "ended"] {
            assert!(!exists(&folder, &format!("state/sessions/{id}")), "{id}");
        }
    }

    #[test]
    fn of_many_sessions_that_ended_the_newest_stay() {
        let (folder, store) = store();
        for at in 0..40 {
            aged(&folder, &format!("state/sessions/e{at}/prd.json"), "{}", at / 2);
            plant(&folder, &format!("sessions/e{at}.json"), "{}");
        }
        for at in [38, 39] {
            plant(&folder, &format!("state/sessions/e{at}/session-started.json"), "{}");
        }
        let locker = ThreadLocker::default();
        assert_eq!(store.clean_up(&&locker, None, now()).expect("a lock").sessions, 6);
        assert!(!exists(&folder, "state/sessions/e37") && exists(&folder, "state/sessions/e38"));
    }

    #[test]
    fn checkpoints_are_bounded_by_age_and_number() {
        let (folder, store) = store();
        let time = now();
        let name = |at: i64| format!("state/checkpoints/checkpoint-{}.json", time.plus_ms(-at * 60_000).to_file_text());
        let newest = name(1);
        for at in 1..=25 {
            plant(&folder, &name(at), "{}");
        }
        aged(&folder, "state/checkpoints/wisdom-2024-01-01T03-04-05-678Z.md", "w", 0);
        aged(&folder, "state/checkpoints/checkpoint-x.json", "{}", 26);
        plant(&folder, "state/checkpoints/mine.json", "{}");
        let locker = ThreadLocker::default();
        store.clean_up(&&locker, None, now()).expect("no sessions");
        let left: Vec<_> = fs::read_dir(folder.path().join("state/checkpoints")).expect("a folder").collect();
        assert_eq!(left.len(), 21, "{left:?}");
        assert!(exists(&folder, &newest) && exists(&folder, "state/checkpoints/mine.json"));
    }

    #[test]
    fn records_and_debris_are_looked_at_once_an_hour() {
        let (folder, store) = store();
        let locker = ThreadLocker::default();
        let uuid = "3f0c9a52-6b1e-4d5a-9a57-1f2b6c7d8e90";
        let gone = [
            ("sessions/old.json".to_owned(), 31 * 24),
            ("state/agent-replay-a.jsonl".to_owned(), 8 * 24),
            (".tmp-0123".to_owned(), 2),
            (format!("state/.ralph-state.json.tmp.{uuid}"), 2),
        ];
        let kept = [
            ("sessions/new.json".to_owned(), 29 * 24),
            ("plans/budget.tmp".to_owned(), 99 * 24),
            ("plans/.x.tmp.mine".to_owned(), 99 * 24),
            (".x.tmp.mine".to_owned(), 99 * 24),
            ("notepad.md".to_owned(), 99 * 24),
            ("state/.tmp-4567".to_owned(), 0),
        ];
        for (path, hours) in gone.iter().chain(&kept) {
            aged(&folder, path, "{}", *hours);
        }
        assert_eq!(store.clean_up(&&locker, None, now()).expect("done").files, gone.len());
        assert!(
            gone.iter().all(|(path, _)| !exists(&folder, path)) && kept.iter().all(|(path, _)| exists(&folder, path))
        );
        aged(&folder, &gone[0].0, "{}", gone[0].1);
        assert_eq!(store.clean_up(&&locker, None, now()).expect("done").files, 0, "not within the hour");
        assert_eq!(store.clean_up(&&locker, None, now().plus_ms(HOUR_MS + 60_000)).expect("done").files, 2);
    }

    #[test]
    fn maintenance_removes_only_what_is_dead() {
        let (folder, store) = store();
        let week = 8 * 24;
        for (file, content, hours, stays) in [
            ("idle-notif-cooldown.json", "{}", week, false),
            ("ralph-state.json", "{\"active\": false}", week, false),
            ("team-state.json", "{\"active\": true}", week, true),
            ("ultrawork-state.json", "{\"active\": tr", week, false),
            ("jobs.db", "not a database", week, true),
            ("jobs.db-wal", "", week, true),
            ("notes.md", "mine", week, true),
            ("mission-state.json", "{}", week, true),
            ("fresh.json", "{}", 1, true),
            ("x-session-0a1b-2c.json", "{}", 25, false),
            ("x-session-mine.json", "{}", 25, true),
        ] {
            aged(&folder, &format!("state/{file}"), content, hours);
            store.remove_leftovers(now());
            assert_eq!(exists(&folder, &format!("state/{file}")), stays, "{file}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn links_lead_nowhere() {
        let (folder, store) = store();
        let outside = tempfile::tempdir().expect("a folder");
        aged(&outside, "gone/ralph-state.json", "{}", 48);
        fs::create_dir_all(folder.path().join("state")).expect("a folder");
        std::os::unix::fs::symlink(outside.path(), folder.path().join(SESSIONS)).expect("a link");
        store.clean_up(&&ThreadLocker::default(), None, now()).expect("nothing to do");
        assert!(exists(&outside, "gone/ralph-state.json"));
    }
}
