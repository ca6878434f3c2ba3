//! The audit trail: one line of JSON for each call of a guest, and for each event that could not be handled.
//!
//! Written by the host alone, after the answer is out, into the user's state folder: `trail.jsonl`, rotated at
//! [`MAX_TRAIL_BYTES`]. Payloads are not in it, unless the operator's `log-payloads` says so; then every record does, too. Text that comes from a guest is capped and stands in JSON strings, with everything
//! escaped that some reader takes for a line's end or a terminal for a command: it can forge neither.

use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use serde_json::Value;

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

/// What is kept of a payload, in bytes of its JSON text: a prompt, or the beginning of a tool's output.
const MAX_PAYLOAD_BYTES: usize = 16 * 1024;
/// What every record says while payloads are logged.
const PAYLOADS_ARE_LOGGED: &str = "`log-payloads` is on: this trail holds prompts, files and secrets";

/// The trail's file.
const TRAIL: &str = "trail.jsonl";

/// One line of the trail.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
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
    /// The beginning of the agent's payload as JSON text, only with `log-payloads`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) payload: Option<String>,
}

/// What the trail keeps of one call.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
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
    /// What it looked at beside files of `.omc`, with how often: `read`, `git`, `transcript`, `env`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) used: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) fault: Option<FaultRecord>,
    /// Instructions, as fuel counts them; absent where nobody knows, since the guest was stopped in the midst of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) fuel: Option<u64>,
    /// Largest linear memory, in bytes.
    pub(crate) memory_bytes: usize,
    /// From the event's dispatch to the guest's end, in microseconds.
    pub(crate) micros: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) files: Option<FilesRecord>,
    /// What it wrote to its log, `level: text` each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) log: Vec<String>,
    /// How many lines of it this record has no room for.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) log_left_out: usize,
    /// What it wrote to its standard output and error, capped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) output: Option<String>,
}

/// A fault in the trail.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct FaultRecord {
    pub(crate) kind: String,
    pub(crate) detail: String,
}

/// What a call did with files.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
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
    payload: Option<String>,
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
        Self { record, payload: None }
    }

    /// Lets the trail hold the event's payload, and every record say so.
    pub(crate) fn log_payload(&mut self, event: &Event) {
        self.record.note = Some(PAYLOADS_ARE_LOGGED.to_owned());
        self.payload = Some(beginning(event.payload()));
    }

    /// What can be said when there is no event.
    pub(crate) fn unknown() -> Self {
        let record = Record { time: now(), process: std::process::id(), ..Record::default() };
        Self { record, payload: None }
    }

    /// A record about the event itself.
    pub(crate) fn note(&self, note: impl Into<String>) -> Record {
        let mut text = guest_text(&note.into());
        if let Some(always) = &self.record.note {
            text.extend(["; ", always]);
        }
        Record { note: Some(text), ..self.record.clone() }
    }

    /// A record with the payload, if it is to be logged.
    pub(crate) fn payload(&self) -> Option<Record> {
        self.payload.clone().map(|payload| Record { payload: Some(payload), ..self.record.clone() })
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
        (record.log, record.log_left_out) = log_lines(&called.log);
        if let Some(usage) = &called.usage {
            describe_usage(&mut record, usage);
        }
        Record { guest: Some(record), ..self.record.clone() }
    }
}

/// The beginning of a value's JSON text.
fn beginning(value: &Value) -> String {
    struct Capped(Vec<u8>);
    impl io::Write for Capped {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let room = MAX_PAYLOAD_BYTES - self.0.len();
            self.0.extend_from_slice(&bytes[..bytes.len().min(room)]);
            // Ten megabytes are not written out for the sake of their beginning.
            if bytes.len() > room { Err(io::ErrorKind::FileTooLarge.into()) } else { Ok(bytes.len()) }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut text = Capped(Vec::new());
    drop(serde_json::to_writer(&mut text, value));
    String::from_utf8_lossy(&text.0).into_owned()
}

/// The first lines of a log, and how many more there were.
fn log_lines(log: &[LogLine]) -> (Vec<String>, usize) {
    let lines = log.iter().take(MAX_LOG_LINES).map(|line| format!("{}: {}", line.level, line.text)).collect();
    (lines, log.len().saturating_sub(MAX_LOG_LINES))
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the form that the derive asks for")]
fn is_zero(number: &usize) -> bool {
    *number == 0
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
/// Each event's records are one write at the end of the file, so that those of events side by side do not mix, and none is lost
/// while the trail is rotated: who has the full one open still writes into it. What can be lost: the records of an event for
/// which there is no room on the disk, the last ones before a power cut, and the oldest when there are more than
/// [`KEPT_TRAILS`].
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
        rotate(folder)?;
        file = open_for_append(&path)?;
    }
    let mut lines = Vec::new();
    if is_torn(&file)? {
        lines.push(b'\n');
    }
    for record in records {
        lines.extend(line(record));
    }
    file.write_all(&lines)
}

/// Whether the last line has no end, because the disk was full.
fn is_torn(mut file: &File) -> io::Result<bool> {
    let mut last = [b'\n'];
    if file.seek(SeekFrom::End(0))? > 0 {
        file.seek(SeekFrom::End(-1))?;
        // Writes go to the end wherever this is.
        file.read_exact(&mut last)?;
    }
    Ok(last != [b'\n'])
}

/// A record as a line, within the bound: what is long is shortened until it fits.
fn line(record: &Record) -> Vec<u8> {
    let mut json = json(record);
    if json.len() >= MAX_RECORD_BYTES {
        let mut short = record.clone();
        while json.len() >= MAX_RECORD_BYTES && short.shorten() {
            json = self::json(&short);
        }
    }
    json.push('\n');
    json.into_bytes()
}

impl Record {
    /// Cuts in half what is long and says so; false if nothing is. All other parts are bounded when they are made.
    fn shorten(&mut self) -> bool {
        /// Shorter texts are not worth it, in bytes.
        const ENOUGH: usize = 512;
        let halve = |text: &mut String| {
            let long = text.len() > ENOUGH;
            if long {
                text.truncate(text::cut_to_bytes(text, text.len() / 2).len());
            }
            long
        };
        if self.payload.as_mut().is_some_and(halve) {
            return true;
        }
        let Some(guest) = &mut self.guest else { return false };
        if guest.output.as_mut().is_some_and(halve) {
            return true;
        }
        if guest.log.len() > 1 {
            guest.log_left_out += guest.log.len().div_ceil(2);
            guest.log.truncate(guest.log.len() / 2);
            return true;
        }
        guest.log.first_mut().is_some_and(halve)
    }
}

/// A record as JSON on one line, whoever reads it.
pub(crate) fn json(record: &Record) -> String {
    text::inert_json(serde_json::to_string(record).unwrap_or_default())
}

fn open_for_append(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.read(true).append(true).create(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
        options.mode(0o600).custom_flags(flags.bits().cast_signed());
    }
    options.open(path)
}

/// Opens a trail. Of what is no file nothing is waited for.
fn open_for_reading(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.read(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, rustix::fs::OFlags::NONBLOCK.bits().cast_signed());
    let file = options.open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("it is not a regular file")) }
}

/// Moves the trails on by one. Of several processes that want to, one does: the others write on, or find a short trail.
fn rotate(folder: &Path) -> io::Result<()> {
    // The folder and not the file, so that whoever holds the lock sees what its holder before has done.
    #[cfg(unix)]
    let folder_handle = File::open(folder)?;
    #[cfg(unix)]
    if folder_handle.try_lock().is_err() {
        return Ok(());
    }
    let path = folder.join(TRAIL);
    if fs::metadata(&path).map_or(0, |about| about.len()) <= MAX_TRAIL_BYTES {
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

/// The trail's files, oldest first, whether or not they are there.
pub(crate) fn files(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let older = (1..=KEPT_TRAILS).rev().map(|age| older_trail(folder, age));
    older.chain([folder.join(TRAIL)])
}

/// The trail's records, oldest first; lines that are no records are left out.
///
/// # Errors
///
/// What the file system says, except that a missing trail is an empty one.
pub(crate) fn read(folder: &Path) -> io::Result<Vec<Record>> {
    let mut records = Vec::new();
    for path in files(folder) {
        let mut bytes = Vec::new();
        match open_for_reading(&path) {
            Ok(file) => file.take(2 * MAX_TRAIL_BYTES).read_to_end(&mut bytes)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        // A damaged line is no record, and costs the others nothing.
        let text = String::from_utf8_lossy(&bytes);
        records.extend(text.lines().filter_map(|line| serde_json::from_str(line).ok()));
    }
    Ok(records)
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;
    use crate::protocol::dialect;
    use crate::protocol::event::Agent;

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
        assert_eq!(log_lines(&log[3..]).1, 0);
        let (lines, left_out) = log_lines(&log);
        assert_eq!((lines.len(), left_out), (MAX_LOG_LINES, 3));
    }

    #[test]
    fn a_record_is_bounded_whatever_a_guest_says() {
        let guest = |log: Vec<String>, output: &str| GuestRecord {
            log,
            output: Some(output.to_owned()),
            ..GuestRecord::default()
        };
        let of = |guest| Record { guest: Some(guest), ..record("x") };
        let payload = Record { payload: Some("\u{1b}".repeat(MAX_PAYLOAD_BYTES)), ..record("x") };
        for long in [
            of(guest(vec!["y".repeat(1_000); 100], "")),
            of(guest(vec!["\u{7}".repeat(1 << 20)], "")),
            of(guest(vec!["\u{202e}".repeat(2_000); 2], &"\u{7}".repeat(512))),
            payload,
        ] {
            let bytes = line(&long);
            assert!(bytes.len() < MAX_RECORD_BYTES, "{}", bytes.len());
            let kept: Record = serde_json::from_slice(&bytes).unwrap();
            match (kept.guest, long.guest) {
                (Some(kept), Some(long)) => assert_eq!(kept.log.len() + kept.log_left_out, long.log.len()),
                _ => assert!(kept.payload.unwrap().len() > 1_000, "its beginning is kept"),
            }
        }
        assert!(record(&"z".repeat(10_000)).note.unwrap().len() <= MAX_GUEST_TEXT_BYTES);
    }

    #[test]
    fn payloads_are_logged_only_when_asked_and_then_every_record_says_so() {
        let event = dialect::of(Agent::Claude).decode(
            serde_json::json!({"hook_event_name": "UserPromptSubmit", "prompt": "x".repeat(1 << 20)})
                .as_object()
                .unwrap()
                .clone(),
        );
        let mut about = About::event(&event, None);
        assert_eq!(about.payload(), None);
        assert!(!line(&about.note("a")).windows(4).any(|part| part == b"xxxx"));
        about.log_payload(&event);
        assert_eq!(about.note("a").note.unwrap(), format!("a; {PAYLOADS_ARE_LOGGED}"));
        let record = about.payload().unwrap();
        assert_eq!(record.note.as_deref(), Some(PAYLOADS_ARE_LOGGED));
        assert_eq!(record.payload.unwrap().len(), MAX_PAYLOAD_BYTES);
    }

    #[test]
    fn a_line_that_is_no_text_costs_itself_and_no_other() {
        let home = tempfile::tempdir().unwrap();
        append(home.path(), &[record("one")]).unwrap();
        let mut file = File::options().append(true).open(home.path().join(TRAIL)).unwrap();
        file.write_all(b"\xff\xfe\0\n").unwrap();
        append(home.path(), &[record("two")]).unwrap();
        let notes: Vec<_> = read(home.path()).unwrap().into_iter().filter_map(|record| record.note).collect();
        assert_eq!(notes, ["one", "two"]);
    }

    #[cfg(unix)]
    #[test]
    fn a_pipe_in_the_trails_place_makes_nobody_wait() {
        let home = tempfile::tempdir().unwrap();
        let pipe = home.path().join(TRAIL);
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        assert!(read(home.path()).is_err() && append(home.path(), &[record("x")]).is_err());
    }

    #[test]
    fn a_torn_line_costs_itself_and_not_the_next() {
        let home = tempfile::tempdir().unwrap();
        append(home.path(), &[record("one")]).unwrap();
        let whole = fs::read(home.path().join(TRAIL)).unwrap();
        fs::write(home.path().join(TRAIL), &whole[..whole.len() - 5]).unwrap();
        append(home.path(), &[record("two")]).unwrap();
        append(home.path(), &[record("three")]).unwrap();
        let notes: Vec<_> = read(home.path()).unwrap().into_iter().filter_map(|record| record.note).collect();
        assert_eq!(notes, ["two", "three"]);
    }

    #[test]
    fn no_record_is_lost_when_many_write_while_the_trail_is_rotated() {
        const WRITERS: usize = 8;
        const EACH: usize = 40;
        let home = tempfile::tempdir().unwrap();
        let folder = home.path();
        // Just below the bound, so that it is passed in the middle of it.
        append(folder, &[record("first")]).unwrap();
        let file = File::options().append(true).open(folder.join(TRAIL)).unwrap();
        let padding = vec![b'\n'; usize::try_from(MAX_TRAIL_BYTES).unwrap() - 20_000];
        (&file).write_all(&padding).unwrap();
        thread::scope(|scope| {
            for writer in 0..WRITERS {
                scope.spawn(move || {
                    for number in 0..EACH {
                        append(folder, &[record(&format!("{writer}-{number}"))]).unwrap();
                    }
                });
            }
        });
        let mut notes: Vec<_> = read(folder).unwrap().into_iter().filter_map(|record| record.note).collect();
        assert!(folder.join("trail.1.jsonl").exists() && !folder.join("trail.2.jsonl").exists(), "it was rotated once");
        notes.sort_unstable();
        notes.dedup();
        assert_eq!(notes.len(), WRITERS * EACH + 1);
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
