//! The end of a session's transcript, for guests that were granted it.
//!
//! The path comes from the payload, so it is not trusted: only a regular file with the ending of transcripts that belongs to the
//! user is read, without waiting for anything, and only its end.

use std::fs::File;
use std::io::{ErrorKind, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use crate::runtime::wit::types::AccessError;

/// Most that is read, in bytes: the last turns of a conversation.
const MAX_TAIL_BYTES: u32 = 256 * 1024;

/// The last whole lines that fit.
pub(super) fn tail(path: Option<&str>, max_bytes: u32) -> Result<String, AccessError> {
    let path = Path::new(path.ok_or(AccessError::NotFound)?);
    if !path.is_absolute() || path.extension().is_none_or(|extension| extension != "jsonl") {
        return Err(AccessError::NotFound);
    }
    let max_bytes = u64::from(max_bytes.min(MAX_TAIL_BYTES));
    let tail = match read_tail(path, max_bytes) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            outside_of_worktree(path).map_or(Err(error), |path| read_tail(&path, max_bytes))
        }
        tail => tail,
    };
    tail.map_err(|error| match error.kind() {
        ErrorKind::NotFound => AccessError::NotFound,
        _ => AccessError::Other(error.kind().to_string()),
    })
}

/// Where the transcript lies if the path is that of a work tree which the agent made, and the session began outside of it: the
/// folder is named after the project's path, to which `.claude/worktrees/NAME` was added.
fn outside_of_worktree(path: &Path) -> Option<PathBuf> {
    let folder = path.parent()?;
    let (project, _) = folder.file_name()?.to_str()?.split_once("--claude-worktrees-")?;
    if project.is_empty() { None } else { Some(folder.with_file_name(project).join(path.file_name()?)) }
}

fn read_tail(path: &Path, max_bytes: u64) -> std::io::Result<String> {
    let mut file = open(path)?;
    let length = file.metadata()?.len();
    let from = length.saturating_sub(max_bytes);
    // One byte more tells whether the first line is whole.
    file.seek(SeekFrom::Start(from.saturating_sub(1)))?;
    let mut bytes = Vec::new();
    file.take(length.min(max_bytes + 1)).read_to_end(&mut bytes)?;
    let mut tail = bytes.as_slice();
    if from > 0 {
        let first_end = tail.iter().position(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        // A last line that is longer than the limit is better cut than absent.
        let from = if first_end == tail.len() || first_end == 0 { 1 } else { first_end };
        // It may have shrunk since its length was read.
        tail = tail.get(from..).unwrap_or_default();
    }
    Ok(String::from_utf8_lossy(tail).into_owned())
}

#[cfg(unix)]
fn open(path: &Path) -> std::io::Result<File> {
    use std::os::unix::fs::MetadataExt as _;

    use rustix::fs::{Mode, OFlags};

    // Without waiting: a FIFO in its place would wait for a writer.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    let about = file.metadata()?;
    if !about.is_file() || about.uid() != rustix::process::geteuid().as_raw() {
        return Err(ErrorKind::PermissionDenied.into());
    }
    Ok(file)
}

#[cfg(not(unix))]
fn open(path: &Path) -> std::io::Result<File> {
    let file = File::open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(ErrorKind::PermissionDenied.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tail_of(text: &str, max_bytes: u32) -> String {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.jsonl");
        std::fs::write(&path, text).unwrap();
        tail(path.to_str(), max_bytes).unwrap()
    }

    #[test]
    fn only_whole_lines_are_given() {
        assert_eq!(tail_of("{\"a\":1}\n{\"b\":2}\n", 100), "{\"a\":1}\n{\"b\":2}\n");
        assert_eq!(tail_of("{\"a\":1}\n{\"b\":2}\n", 8), "{\"b\":2}\n");
        assert_eq!(tail_of("{\"a\":1}\n{\"b\":2}\n", 12), "{\"b\":2}\n");
        assert_eq!(tail_of("0123456789\n", 5), "6789\n");
        assert_eq!(tail_of("0123456789", 5), "56789");
        assert_eq!(tail_of("", 5), "");
    }

    #[test]
    fn a_session_that_moved_to_a_work_tree_has_its_transcript_where_it_began() {
        let root = tempfile::tempdir().unwrap();
        let (began, moved) =
            (root.path().join("-home-u-shop"), root.path().join("-home-u-shop--claude-worktrees-feat"));
        std::fs::create_dir(&began).unwrap();
        std::fs::write(began.join("t.jsonl"), "old\n").unwrap();
        assert_eq!(tail(moved.join("t.jsonl").to_str(), 100).unwrap(), "old\n");
        assert!(tail(moved.join("u.jsonl").to_str(), 100).is_err());
        assert!(tail(root.path().join("--claude-worktrees-feat/t.jsonl").to_str(), 100).is_err());
        std::fs::create_dir(&moved).unwrap();
        std::fs::write(moved.join("t.jsonl"), "new\n").unwrap();
        assert_eq!(tail(moved.join("t.jsonl").to_str(), 100).unwrap(), "new\n");
    }

    #[test]
    fn what_is_no_transcript_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let secret = folder.path().join("id_rsa");
        std::fs::write(&secret, "secret").unwrap();
        assert!(matches!(tail(secret.to_str(), 100), Err(AccessError::NotFound)));
        assert!(matches!(tail(Some("relative.jsonl"), 100), Err(AccessError::NotFound)));
        assert!(matches!(tail(None, 100), Err(AccessError::NotFound)));
        let dir = folder.path().join("d.jsonl");
        std::fs::create_dir(&dir).unwrap();
        assert!(tail(dir.to_str(), 100).is_err());
        assert!(tail(Some("/nonexistent/t.jsonl"), 100).is_err());
    }

    #[cfg(unix)]
    #[test]
    fn a_pipe_in_its_place_does_not_wait() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.jsonl");
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        assert!(tail(path.to_str(), 100).is_err());
    }
}
