//! Which records of the trail have been sent, and what of a record leaves the machine.
//!
//! Off the event path: an event only writes the trail, and `omc-host telemetry send` reads it from where it stopped. The place is
//! kept for each of the trail's files by its first line, because files change their names when the trail is rotated and late
//! writers go on in an older one. It moves on after the endpoint has taken a batch, so nothing is lost while the endpoint is away
//! (as long as the trail keeps it), and nothing is sent twice unless the machine dies between the answer and the note of it;
//! `omc.record.id` is the same then.
//!
//! What leaves is the host's own words and numbers. Texts that come from guests, payloads, projects and sessions leave only if
//! the operator says `texts = true`, and payloads never.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use crate::audit::{self, GuestRecord, Record};
use crate::protocol::event::Kind;
use crate::registry::{Durability, Locked, lock_dir, open_private, replace_private};

/// Most records of a batch: some hundred kilobytes on the wire.
const MAX_BATCH_RECORDS: usize = 512;
/// Longest line that is a record, in bytes, its end included; see the trail's own bound.
const MAX_LINE_BYTES: u64 = 64 * 1024;
/// Largest file with the place, in bytes: a line for each of the trail's files.
const MAX_PLACE_BYTES: u64 = 16 * 1024;
/// How long one waits for whoever rotates the trail: that is a matter of milliseconds.
const WAIT_FOR_ROTATION: Duration = Duration::from_secs(5);

/// Severities of OTLP.
const INFO: u8 = 9;
const WARN: u8 = 13;

/// The trail as its reader sees it: where it stopped, and the lock that keeps a second reader out.
pub(crate) struct Spool {
    trail: PathBuf,
    file: PathBuf,
    place: Place,
    _locked: Locked,
}

/// For each of the trail's files, by the digest of its first line, how many bytes of it are done.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
struct Place {
    files: BTreeMap<String, u64>,
}

/// Some records, and the place behind them.
pub(crate) struct Batch {
    pub(crate) records: Vec<(String, Record)>,
    place: Place,
}

impl Spool {
    /// Opens the spool below the folder of the trail.
    ///
    /// # Errors
    ///
    /// `WouldBlock` if somebody else is sending.
    pub(crate) fn open(state_dir: &Path) -> io::Result<Self> {
        let folder = state_dir.join("telemetry");
        let locked = lock_dir(&folder, Duration::ZERO)?;
        let file = folder.join("place.json");
        let mut text = String::new();
        let place = match open_private(&file) {
            Ok(open) => {
                open.take(MAX_PLACE_BYTES).read_to_string(&mut text)?;
                // To begin anew would send everything again, which is a person's decision.
                serde_json::from_str(&text).map_err(|error| {
                    io::Error::new(
                        io::ErrorKind::InvalidData,
                        format!("`{}` is damaged ({error}); remove it to send the whole trail again", file.display()),
                    )
                })?
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Place::default(),
            Err(error) => return Err(error),
        };
        Ok(Self { trail: state_dir.to_owned(), file, place, _locked: locked })
    }

    /// The next records that have not been sent, oldest first; none if all have been.
    pub(crate) fn next(&self) -> io::Result<Batch> {
        let mut batch = Batch { records: Vec::new(), place: Place::default() };
        for file in self.files()? {
            let mut reader = BufReader::new(file);
            let mut first = Vec::new();
            read_line(&mut reader, &mut first)?;
            if !first.ends_with(b"\n") {
                continue;
            }
            let key = hex(&first);
            let mut at = self.place.files.get(&key).copied().unwrap_or_default();
            reader.seek(SeekFrom::Start(at))?;
            let mut line = Vec::new();
            while batch.records.len() < MAX_BATCH_RECORDS {
                line.clear();
                // A line without its end is still being written.
                let length = read_line(&mut reader, &mut line)?;
                if !line.ends_with(b"\n") {
                    break;
                }
                at += length;
                if let Ok(record) = serde_json::from_slice(&line) {
                    batch.records.push((hex(&line), record));
                }
            }
            batch.place.files.insert(key, at);
        }
        Ok(batch)
    }

    /// Notes that a batch has been taken.
    pub(crate) fn done(&mut self, batch: Batch) -> io::Result<()> {
        if batch.place != self.place {
            replace_private(&self.file, &serde_json::to_vec(&batch.place)?, Durability::Synced)?;
            self.place = batch.place;
        }
        Ok(())
    }

    /// The trail's files, all opened while nobody rotates them, so that none is missed or met twice.
    fn files(&self) -> io::Result<Vec<File>> {
        let _locked = lock_dir(&self.trail, WAIT_FOR_ROTATION)?;
        let mut files = Vec::new();
        for path in audit::files(&self.trail) {
            match fs::symlink_metadata(&path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
                Ok(about) if !about.is_file() => {}
                Ok(_) => files.push(File::open(&path)?),
            }
        }
        Ok(files)
    }
}

/// Reads a line with its end; what is longer than a record can be comes in pieces that are none.
fn read_line(reader: &mut BufReader<File>, line: &mut Vec<u8>) -> io::Result<u64> {
    let length = reader.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', line)?;
    if length as u64 == MAX_LINE_BYTES && !line.ends_with(b"\n") {
        line.clear();
        line.push(b'\n');
    }
    Ok(length as u64)
}

/// The beginning of a line's digest, enough to tell records apart.
fn hex(line: &[u8]) -> String {
    omc_artifact::hex(&Sha256::digest(line)[..16])
}

/// Records in the form that `omc-net send-logs` reads. `texts` says whether what strangers wrote leaves, too.
pub(crate) fn export(batch: &Batch, texts: bool, headers: &BTreeMap<String, String>) -> Value {
    let records: Vec<_> = batch.records.iter().map(|(id, record)| export_record(id, record, texts)).collect();
    json!({
        "resource": { "service.name": "omc-host", "service.version": env!("CARGO_PKG_VERSION") },
        "headers": headers,
        "records": records,
    })
}

fn export_record(id: &str, record: &Record, texts: bool) -> Value {
    let time: i64 = record.time.parse::<omc_state::Timestamp>().map_or(0, omc_state::Timestamp::epoch_ms);
    let mut attributes = Map::new();
    let mut put = |name: &str, value: Value| {
        // Empty lists and absent values say nothing.
        if !value.is_null() && value != json!(0) {
            attributes.insert(name.to_owned(), value);
        }
    };
    put("omc.record.id", json!(id));
    put("omc.agent", json!(record.agent));
    // A kind that we do not know is a word of the payload.
    let is_known = Kind::from_name(&record.event).is_some();
    put("omc.event", if is_known || texts { json!(record.event) } else { json!("other") });
    if texts {
        put("omc.session", json!(record.session));
        put("omc.project", json!(record.project));
        put("omc.note", json!(record.note));
    }
    let (name, body, severity) = match &record.guest {
        None => ("omc.event", "event".to_owned(), if record.note.is_some() { WARN } else { INFO }),
        Some(guest) => {
            export_call(guest, texts, &mut put);
            let outcome = guest.fault.as_ref().map_or(guest.decision.as_deref(), |fault| Some(fault.kind.as_str()));
            let is_bad = guest.fault.is_some() || !guest.refused.is_empty();
            let body = format!("{} {}", guest.name, outcome.unwrap_or("-"));
            ("omc.call", body, if is_bad { WARN } else { INFO })
        }
    };
    json!({ "time-unix-ms": time, "severity": severity, "event-name": name, "body": body, "attributes": attributes })
}

fn export_call(guest: &GuestRecord, texts: bool, put: &mut impl FnMut(&str, Value)) {
    put("omc.guest.name", json!(guest.name));
    put("omc.guest.digest", json!(guest.digest));
    // A manifest may hold anything as a version; what looks like one is one.
    let is_version = guest.version.len() <= 32
        && guest.version.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'+'));
    if is_version || texts {
        put("omc.guest.version", json!(guest.version));
    }
    put("omc.decision", json!(guest.decision));
    put("omc.fault.kind", json!(guest.fault.as_ref().map(|fault| &fault.kind)));
    put("omc.fuel", json!(guest.fuel));
    put("omc.micros", json!(guest.micros));
    put("omc.memory_bytes", json!(guest.memory_bytes));
    put("omc.effects.kept", json!(guest.kept.len()));
    put("omc.effects.dropped", json!(guest.dropped.len()));
    put("omc.refused", json!(guest.refused.len()));
    put("omc.log_lines", json!(guest.log.len() + guest.log_left_out));
    if let Some(files) = &guest.files {
        put("omc.files.read", json!(files.read));
        put("omc.files.written", json!(files.written));
        put("omc.bytes.read", json!(files.bytes_read));
        put("omc.bytes.written", json!(files.bytes_written));
    }
    if texts {
        put("omc.reason", json!(guest.reason));
        put("omc.fault.detail", json!(guest.fault.as_ref().map(|fault| &fault.detail)));
        put("omc.output", json!(guest.output));
        let joined = |list: &[String]| if list.is_empty() { Value::Null } else { json!(list.join("\n")) };
        put("omc.log", joined(&guest.log));
        put("omc.refusals", joined(&guest.refused));
        put("omc.drops", joined(&guest.dropped));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::FaultRecord;

    fn append(folder: &Path, name: &str, notes: &[&str]) {
        use std::io::Write as _;
        let mut file = File::options().create(true).append(true).open(folder.join(name)).unwrap();
        for note in notes {
            let record = Record { note: Some((*note).to_owned()), ..Record::default() };
            writeln!(file, "{}", audit::json(&record)).unwrap();
        }
    }

    /// Sends all there is and returns the notes.
    fn send(folder: &Path) -> Vec<String> {
        let mut spool = Spool::open(folder).unwrap();
        let mut notes = Vec::new();
        loop {
            let batch = spool.next().unwrap();
            if batch.records.is_empty() {
                spool.done(batch).unwrap();
                return notes;
            }
            notes.extend(batch.records.iter().filter_map(|(_, record)| record.note.clone()));
            spool.done(batch).unwrap();
        }
    }

    #[test]
    fn each_record_is_sent_once_whatever_the_trail_is_called_by_then() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path();
        let nothing: [&str; 0] = [];
        assert_eq!(send(folder), nothing);
        append(folder, "trail.jsonl", &["one", "two"]);
        assert_eq!(send(folder), ["one", "two"]);
        assert_eq!(send(folder), nothing);
        append(folder, "trail.jsonl", &["three"]);
        // Rotated, and a late writer goes on in the older file.
        fs::rename(folder.join("trail.jsonl"), folder.join("trail.1.jsonl")).unwrap();
        append(folder, "trail.jsonl", &["five"]);
        assert_eq!(send(folder), ["three", "five"]);
        append(folder, "trail.1.jsonl", &["four"]);
        append(folder, "trail.jsonl", &["six"]);
        assert_eq!(send(folder), ["four", "six"]);
        fs::rename(folder.join("trail.1.jsonl"), folder.join("trail.2.jsonl")).unwrap();
        fs::rename(folder.join("trail.jsonl"), folder.join("trail.1.jsonl")).unwrap();
        assert_eq!(send(folder), nothing);
        // Far beyond a batch, with lines that are no records in between and one that is not whole yet.
        let many: Vec<String> = (0..1_500).map(|number| number.to_string()).collect();
        append(folder, "trail.jsonl", &["first"]);
        fs::OpenOptions::new()
            .append(true)
            .open(folder.join("trail.jsonl"))
            .and_then(|mut file| {
                use std::io::Write as _;
                write!(file, "\nnot a record\n{}\n", "x".repeat(200_000))
            })
            .unwrap();
        append(folder, "trail.jsonl", &many.iter().map(String::as_str).collect::<Vec<_>>());
        let whole = fs::read(folder.join("trail.jsonl")).unwrap();
        fs::write(folder.join("trail.jsonl"), &whole[..whole.len() - 3]).unwrap();
        assert_eq!(send(folder).len(), 1_500);
        fs::write(folder.join("trail.jsonl"), &whole).unwrap();
        assert_eq!(send(folder), ["1499"]);
    }

    #[test]
    fn what_was_not_taken_is_sent_again_and_two_do_not_send_at_once() {
        let home = tempfile::tempdir().unwrap();
        append(home.path(), "trail.jsonl", &["one"]);
        let spool = Spool::open(home.path()).unwrap();
        let id = spool.next().unwrap().records[0].0.clone();
        assert_eq!(Spool::open(home.path()).err().unwrap().kind(), io::ErrorKind::WouldBlock);
        drop(spool);
        assert_eq!(Spool::open(home.path()).unwrap().next().unwrap().records[0].0, id);
        assert_eq!(send(home.path()), ["one"]);
        fs::write(home.path().join("telemetry/place.json"), "{").unwrap();
        assert_eq!(Spool::open(home.path()).err().unwrap().kind(), io::ErrorKind::InvalidData);
    }

    #[test]
    fn no_word_of_a_stranger_leaves_unless_the_operator_says_so() {
        let secret = || "SECRET".to_owned();
        let record = Record {
            time: "2026-08-01T12:30:00.000Z".to_owned(),
            agent: "claude".to_owned(),
            event: secret(),
            session: Some(secret()),
            project: Some(secret()),
            note: Some(secret()),
            payload: Some(secret()),
            guest: Some(GuestRecord {
                name: "guard".to_owned(),
                version: "1.0 SECRET".to_owned(),
                decision: Some("block".to_owned()),
                reason: Some(secret()),
                kept: vec!["context".to_owned()],
                dropped: vec![secret()],
                refused: vec![secret()],
                used: vec![secret()],
                fault: Some(FaultRecord { kind: "trap".to_owned(), detail: secret() }),
                log: vec![secret()],
                output: Some(secret()),
                files: Some(crate::audit::FilesRecord { paths: vec![secret()], ..Default::default() }),
                ..GuestRecord::default()
            }),
            ..Record::default()
        };
        let batch = Batch { records: vec![("id".to_owned(), record)], place: Place::default() };
        let closed = export(&batch, false, &BTreeMap::new()).to_string();
        assert!(!closed.contains("SECRET"), "{closed}");
        assert!(
            closed.contains("\"omc.fault.kind\":\"trap\"") && closed.contains("\"omc.event\":\"other\""),
            "{closed}"
        );
        let open = export(&batch, true, &BTreeMap::new());
        let attributes = &open["records"][0]["attributes"];
        assert_eq!(
            (attributes["omc.reason"].as_str(), attributes["omc.session"].as_str()),
            (Some("SECRET"), Some("SECRET"))
        );
        assert_eq!(open["records"][0]["time-unix-ms"], json!(1_785_587_400_000_i64));
        assert!(attributes.get("omc.payload").is_none());
    }
}
