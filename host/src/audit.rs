//! The audit trail: one line of JSON for each call of a guest, and for each event that could not be handled.
//!
//! Written by the host alone, after the answer is out, into the user's state folder: `trail.jsonl`, rotated at
//! [`MAX_TRAIL_BYTES`]. Payloads are not in it. Text that comes from a guest is capped and stands in JSON strings, with everything
//! escaped that some reader takes for a line's end or a terminal for a command: it can forge neither.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use crate::capability::wasi::Usage;
use crate::protocol::decision::{Dropped, Merged};
use crate::protocol::event::Event;
use crate::registry::{Guest, create_private_dir};
use crate::runtime::{Called, LogLine};
use crate::text;

/// Size at which the trail is rotated, in bytes: some ten thousand calls, quick to search.
const MAX_TRAIL_BYTES: u64 = 8 * 1024 * 1024;
/// Older trails that are kept, `trail.1.jsonl` being the youngest.
const KEPT_TRAILS: u32 = 3;
/// Longest record, in bytes, its line end included: a pipe-sized write lands in the file as one piece.
const MAX_RECORD_BYTES: usize = 32 * 1024;
/// Longest text of a guest in a record, in bytes; lines of its log have the operator's limit for all of them together.
const MAX_GUEST_TEXT_BYTES: usize = 512;
/// Most log lines of a guest in a record.
const MAX_LOG_LINES: usize = 64;

/// The trail's file.
const TRAIL: &str = "trail.jsonl";

/// One line of the trail.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Record {
    /// When, in RFC 3339 with milliseconds, UTC.
    pub(crate) time: String,
    /// The host's process: records of one event have the same.
    pub(crate) process: u32,
    #[serde(default)]
    pub(crate) agent: String,
    /// The event's kind.
    #[serde(default)]
    pub(crate) event: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) session: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) project: Option<String>,
    /// The guest that was called; absent where the record is about the event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) guest: Option<GuestRecord>,
    /// What is to be said about the event itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) note: Option<String>,
}

/// What the trail keeps of one call.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct GuestRecord {
    pub(crate) name: String,
    pub(crate) version: String,
    /// SHA-256 of the component.
    pub(crate) digest: String,
    /// `pass`, `allow`, `ask`, `block` or `halt`; absent after a fault.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) decision: Option<String>,
    /// The beginning of the decision's reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    /// The effects that reached the agent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) kept: Vec<String>,
    /// The effects and decisions that did not, each with why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) dropped: Vec<String>,
    /// What it tried without a grant or beyond a limit, with how often.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) refused: Vec<String>,
    /// What it used of its grants beside files of `.omc`, with how often.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) used: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) fault: Option<FaultRecord>,
    /// Instructions, as fuel counts them.
    pub(crate) fuel: u64,
    /// Largest linear memory, in bytes.
    pub(crate) memory_bytes: usize,
    /// From the event's dispatch to the guest's end, in microseconds.
    pub(crate) micros: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) files: Option<FilesRecord>,
    /// What it wrote to its log, `level: text` each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) log: Vec<String>,
    /// What it wrote to its standard output and error, capped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) output: Option<String>,
}

/// A fault in the trail.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct FaultRecord {
    pub(crate) kind: String,
    pub(crate) detail: String,
}

/// What a call did with files.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct FilesRecord {
    pub(crate) read: u64,
    pub(crate) written: u64,
    pub(crate) bytes_read: u64,
    pub(crate) bytes_written: u64,
    /// Some of the paths written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) paths: Vec<String>,
}

/// The facts of an event that all its records share.
pub(crate) struct About {
    record: Record,
}

impl About {
    /// Facts of an event, and of its project if it has one.
    pub(crate) fn event(event: &Event, project: Option<&Path>) -> Self {
        let record = Record {
            agent: event.agent().name().to_owned(),
            event: guest_text(event.kind_name()),
            session: event.session_id().map(str::to_owned),
            project: project.map(|path| guest_text(&path.to_string_lossy())),
            ..Self::unknown().record
        };
        Self { record }
    }

    /// What can be said when there is no event.
    pub(crate) fn unknown() -> Self {
        let record = Record { time: now(), process: std::process::id(), ..Record::default() };
        Self { record }
    }

    /// A record about the event itself.
    pub(crate) fn note(&self, note: impl Into<String>) -> Record {
        Record { note: Some(guest_text(&note.into())), ..self.record.clone() }
    }

    /// A record about a call, and what became of its decision and effects.
    pub(crate) fn call(&self, guest: &Guest, called: &Called, merged: &Merged) -> Record {
        let name = guest.name();
        let mut record = GuestRecord {
            name: name.to_owned(),
            version: guest_text(guest.version()),
            digest: guest.digest().to_owned(),
            fuel: called.fuel,
            memory_bytes: called.memory_bytes,
            micros: u64::try_from(called.elapsed.as_micros()).unwrap_or(u64::MAX),
            ..GuestRecord::default()
        };
        let dropped: Vec<&Dropped> = merged.dropped.iter().filter(|dropped| dropped.guest == name).collect();
        record.dropped = dropped.iter().map(|dropped| format!("{}: {}", dropped.what, dropped.why)).collect();
        record.refused = called.refused.iter().map(|(what, count)| format!("{} ×{count}", guest_text(what))).collect();
        record.refused.extend(called.not_granted.map(|what| format!("{what} ×1")));
        record.used = called.used.iter().map(|(what, count)| format!("{what} ×{count}")).collect();
        match &called.outcome {
            Ok((decision, effects)) => {
                record.decision = Some(decision.name().to_owned());
                record.reason = decision.reason().map(guest_text);
                let kept = [
                    ("context", !effects.context.is_empty()),
                    ("message", !effects.messages.is_empty()),
                    ("updated-input", effects.updated_input.is_some()),
                    ("session-environment", !effects.session_environment.is_empty()),
                ];
                let is_kept = |what: &str| !dropped.iter().any(|dropped| dropped.what == what && dropped.why.is_loss());
                record.kept = kept
                    .iter()
                    .filter(|(what, wanted)| *wanted && is_kept(what))
                    .map(|(what, _)| (*what).to_owned())
                    .collect();
            }
            Err(fault) => {
                record.fault =
                    Some(FaultRecord { kind: fault.kind.name().to_owned(), detail: guest_text(&fault.detail) });
            }
        }
        record.log = log_lines(&called.log);
        if let Some(usage) = &called.usage {
            describe_usage(&mut record, usage);
        }
        Record { guest: Some(record), ..self.record.clone() }
    }
}

/// The first lines of a log, and how many more there were.
fn log_lines(log: &[LogLine]) -> Vec<String> {
    let mut lines: Vec<_> =
        log.iter().take(MAX_LOG_LINES).map(|line| format!("{}: {}", line.level, line.text)).collect();
    if log.len() > MAX_LOG_LINES {
        lines.push(format!("warn: {} more lines were left out", log.len() - MAX_LOG_LINES));
    }
    lines
}

/// What a call did with files and beyond its grants.
fn describe_usage(record: &mut GuestRecord, usage: &Usage) {
    record.refused.extend(usage.refusals.iter().map(|refusal| format!("{}: {}", refusal.reason.name(), refusal.what)));
    record.refused.extend(usage.limits_hit.iter().map(|limit| format!("limit: {}", limit.name())));
    if usage.refusals_left_out > 0 {
        record.refused.push(format!("and {} more", usage.refusals_left_out));
    }
    if usage.files_read > 0 || !usage.paths_written.is_empty() {
        record.files = Some(FilesRecord {
            read: usage.files_read.into(),
            written: usage.files_written.into(),
            bytes_read: usage.bytes_read,
            bytes_written: usage.bytes_written,
            paths: usage.paths_written.clone(),
        });
    }
    if !usage.output.is_empty() {
        record.output = Some(guest_text(&String::from_utf8_lossy(&usage.output)));
    }
}

/// A text of a guest or a payload, capped. [`json`] makes its control characters inert, and readers print it through
/// [`text::inert`].
fn guest_text(text: &str) -> String {
    text::cut_to_bytes(text, MAX_GUEST_TEXT_BYTES).to_owned()
}

/// The time now, as records and the lock file have it.
pub(crate) fn now() -> String {
    omc_state::Timestamp::from(SystemTime::now()).to_string()
}

/// Appends records to the trail in a folder, which is created if it is missing.
///
/// # Errors
///
/// What the file system says. The caller has answered already and has nobody to tell.
pub(crate) fn append(folder: &Path, records: &[Record]) -> io::Result<()> {
    if records.is_empty() {
        return Ok(());
    }
    let path = folder.join(TRAIL);
    let mut file = match open_for_append(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            create_private_dir(folder)?;
            open_for_append(&path)?
        }
        opened => opened?,
    };
    if file.metadata()?.len() > MAX_TRAIL_BYTES {
        rotate(folder, &file)?;
        file = open_for_append(&path)?;
    }
    let mut lines = Vec::new();
    for record in records {
        lines.extend(line(record));
    }
    // One write, so that lines of events side by side do not mix.
    file.write_all(&lines)
}

/// A record as a line; over the bound it loses its log and what it printed, which are the only parts that can be long.
fn line(record: &Record) -> Vec<u8> {
    let mut json = json(record);
    if json.len() >= MAX_RECORD_BYTES {
        let mut short = record.clone();
        if let Some(guest) = &mut short.guest {
            let lines = guest.log.len();
            guest.log = vec![format!("warn: {lines} lines were too much for one record")];
            guest.output = None;
        }
        json = self::json(&short);
    }
    json.push('\n');
    json.into_bytes()
}

/// A record as JSON on one line, whoever reads it.
pub(crate) fn json(record: &Record) -> String {
    text::inert_json(serde_json::to_string(record).unwrap_or_default())
}

fn open_for_append(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.append(true).create(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
        options.mode(0o600).custom_flags(flags.bits().cast_signed());
    }
    options.open(path)
}

/// Moves the trails on by one. Of several processes that want to, one does: the others find a short trail when they hold the lock.
fn rotate(folder: &Path, full: &File) -> io::Result<()> {
    #[cfg(unix)]
    if rustix::fs::flock(full, rustix::fs::FlockOperation::NonBlockingLockExclusive).is_err() {
        return Ok(());
    }
    #[cfg(not(unix))]
    let _ = full;
    let path = folder.join(TRAIL);
    if fs::metadata(&path)?.len() <= MAX_TRAIL_BYTES {
        return Ok(());
    }
    for age in (1..KEPT_TRAILS).rev() {
        let (younger, older) = (older_trail(folder, age), older_trail(folder, age + 1));
        match fs::rename(&younger, &older) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    fs::rename(&path, older_trail(folder, 1))
}

fn older_trail(folder: &Path, age: u32) -> PathBuf {
    folder.join(format!("trail.{age}.jsonl"))
}

/// The trail's records, oldest first; lines that are no records are left out.
///
/// # Errors
///
/// What the file system says, except that a missing trail is an empty one.
pub(crate) fn read(folder: &Path) -> io::Result<Vec<Record>> {
    let older = (1..=KEPT_TRAILS).rev().map(|age| older_trail(folder, age));
    let mut records = Vec::new();
    for path in older.chain([folder.join(TRAIL)]) {
        let mut text = String::new();
        match File::open(&path) {
            Ok(file) => file.take(2 * MAX_TRAIL_BYTES).read_to_string(&mut text)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        records.extend(text.lines().filter_map(|line| serde_json::from_str(line).ok()));
    }
    Ok(records)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(note: &str) -> Record {
        About::unknown().note(note)
    }

    #[test]
    fn records_come_back_in_order_and_one_a_line() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("state/omc-host");
        append(&folder, &[]).unwrap();
        assert!(!folder.exists(), "nothing to say, nothing made");
        let hostile = "two\n{\"forged\": true}\u{1b}[31m\u{9b}31m\u{2028}\u{85}";
        append(&folder, &[record("one"), record(hostile)]).unwrap();
        append(&folder, &[record("three")]).unwrap();
        let text = fs::read_to_string(folder.join(TRAIL)).unwrap();
        assert_eq!(text.lines().count(), 3);
        assert!(!text.contains(['\u{1b}', '\u{9b}', '\u{2028}', '\u{85}']));
        let notes: Vec<_> = read(&folder).unwrap().into_iter().filter_map(|record| record.note).collect();
        assert_eq!(notes, ["one", hostile, "three"]);
    }

    #[test]
    fn a_full_trail_is_rotated_and_the_oldest_goes() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path();
        for round in 0..5 {
            append(folder, &[record(&format!("round {round}"))]).unwrap();
            let file = File::options().append(true).open(folder.join(TRAIL)).unwrap();
            file.set_len(MAX_TRAIL_BYTES + 1).unwrap();
        }
        append(folder, &[record("last")]).unwrap();
        let mut names: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["trail.1.jsonl", "trail.2.jsonl", "trail.3.jsonl", TRAIL]);
        assert!(fs::metadata(folder.join(TRAIL)).unwrap().len() < 1_000);
    }

    #[test]
    fn lines_that_are_left_out_are_counted() {
        let log = vec![LogLine { level: "info", text: "again".to_owned() }; MAX_LOG_LINES + 3];
        assert_eq!(log_lines(&log[3..]).len(), MAX_LOG_LINES);
        let lines = log_lines(&log);
        assert_eq!(lines.len(), MAX_LOG_LINES + 1);
        assert_eq!(lines[MAX_LOG_LINES], "warn: 3 more lines were left out");
    }

    #[test]
    fn a_record_is_bounded_whatever_a_guest_says() {
        let mut long = record("x");
        long.guest = Some(GuestRecord { log: vec!["y".repeat(1_000); 100], ..GuestRecord::default() });
        let bytes = line(&long);
        assert!(bytes.len() < MAX_RECORD_BYTES);
        assert!(String::from_utf8(bytes).unwrap().contains("100 lines were too much"));
        assert!(record(&"z".repeat(10_000)).note.unwrap().len() <= MAX_GUEST_TEXT_BYTES);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_in_the_trails_place_is_not_followed() {
        let home = tempfile::tempdir().unwrap();
        let precious = home.path().join("precious");
        fs::write(&precious, "mine").unwrap();
        std::os::unix::fs::symlink(&precious, home.path().join(TRAIL)).unwrap();
        assert!(append(home.path(), &[record("x")]).is_err());
        assert_eq!(fs::read_to_string(&precious).unwrap(), "mine");
    }
}
