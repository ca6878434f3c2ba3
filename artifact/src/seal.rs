//! The seal of compiled code in the host's cache: what was written, for which engine, and what the file looked like then.
//!
//! Compiled code must not be loaded unless it is what the compiler wrote, and to hash megabytes on every event would cost more
//! than the event. So the compiler leaves a small file beside the code, after it, with the code's digest and the stamp that the
//! file system gave it. As long as the stamp is the same, so are the bytes: every write, and everything that puts another file
//! in the place, gives a new time of change, which no program can set. A file with another stamp (a restored backup, an
//! attack, a bad copy) is hashed. What this does not see is a disk that changes bytes by itself, as with any program on it.

use std::fmt;
use std::fs::File;
use std::io::{self, Read, Seek as _, SeekFrom};
use std::path::PathBuf;

use sha2::{Digest as _, Sha256};

use crate::component::hex;

/// Largest seal that is read, in bytes: one line of some two hundred.
pub const MAX_SEAL_BYTES: u64 = 1024;

/// The first word of a seal; it changes with the meaning of the others.
const FORMAT: &str = "omc-seal-1";

/// The place of one guest's compiled code in a folder of the cache.
#[derive(Clone, Debug)]
pub struct CacheEntry {
    /// The folder, which belongs to one version of the host.
    pub folder: PathBuf,
    /// SHA-256 of the component, in hex.
    pub component: String,
}

impl CacheEntry {
    /// The compiled code.
    pub fn code(&self) -> PathBuf {
        self.file("cwasm")
    }

    /// Its seal.
    pub fn seal(&self) -> PathBuf {
        self.file("seal")
    }

    /// Why it could not be compiled, while that is so.
    pub fn failure(&self) -> PathBuf {
        self.file("failed")
    }

    fn file(&self, extension: &str) -> PathBuf {
        self.folder.join(format!("{}.{extension}", self.component))
    }
}

/// What a file looks like from outside.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Stamp {
    size: u64,
    /// When its contents changed, in nanoseconds since 1970.
    modified: i128,
    /// When anything about it changed.
    changed: i128,
    inode: u64,
}

impl Stamp {
    #[cfg(unix)]
    fn of(file: &File) -> io::Result<Self> {
        use std::os::unix::fs::MetadataExt as _;

        let about = file.metadata()?;
        let nanos = |seconds: i64, nanos: i64| i128::from(seconds) * 1_000_000_000 + i128::from(nanos);
        Ok(Self {
            size: about.len(),
            modified: nanos(about.mtime(), about.mtime_nsec()),
            changed: nanos(about.ctime(), about.ctime_nsec()),
            inode: about.ino(),
        })
    }

    /// Elsewhere a file has fewer marks.
    #[cfg(not(unix))]
    fn of(file: &File) -> io::Result<Self> {
        let about = file.metadata()?;
        let modified = about.modified()?.duration_since(std::time::UNIX_EPOCH).map_err(io::Error::other)?;
        let modified = i128::try_from(modified.as_nanos()).map_err(io::Error::other)?;
        Ok(Self { size: about.len(), modified, changed: 0, inode: 0 })
    }
}

/// What is known of a file with compiled code.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Seal {
    engine: String,
    digest: String,
    stamp: Stamp,
}

/// What a seal says about a file.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Verdict {
    /// It is the file that was sealed.
    Same,
    /// The bytes are the ones that were sealed, in a file that looks otherwise; this is the seal for it.
    SameBytes(Seal),
    /// It is code for another engine.
    OtherEngine,
    /// The bytes are not the ones that were sealed.
    OtherBytes,
}

impl Seal {
    /// Seals the code in a file. `engine` names the engine it was made for.
    ///
    /// # Errors
    ///
    /// What the file system says.
    pub fn of(file: &File, engine: &str) -> io::Result<Self> {
        Ok(Self { engine: engine.to_owned(), digest: digest(file)?, stamp: Stamp::of(file)? })
    }

    /// Reads a seal; nothing if the text is none.
    pub fn parse(text: &str) -> Option<Self> {
        // Whole lines only: a torn file must not read as a shorter number.
        let mut words = text.strip_suffix('\n')?.split(' ');
        if words.next()? != FORMAT {
            return None;
        }
        let (engine, digest) = (words.next()?.to_owned(), words.next()?.to_owned());
        let stamp = Stamp {
            size: words.next()?.parse().ok()?,
            modified: words.next()?.parse().ok()?,
            changed: words.next()?.parse().ok()?,
            inode: words.next()?.parse().ok()?,
        };
        words.next().is_none().then_some(Self { engine, digest, stamp })
    }

    /// Compares a file with the seal. Only a file with another stamp is read.
    ///
    /// # Errors
    ///
    /// What the file system says.
    pub fn judge(&self, file: &File, engine: &str) -> io::Result<Verdict> {
        if self.engine != engine {
            return Ok(Verdict::OtherEngine);
        }
        let stamp = Stamp::of(file)?;
        if stamp == self.stamp {
            return Ok(Verdict::Same);
        }
        if stamp.size != self.stamp.size || digest(file)? != self.digest {
            return Ok(Verdict::OtherBytes);
        }
        Ok(Verdict::SameBytes(Self { stamp, ..self.clone() }))
    }
}

impl fmt::Display for Seal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Stamp { size, modified, changed, inode } = self.stamp;
        writeln!(f, "{FORMAT} {} {} {size} {modified} {changed} {inode}", self.engine, self.digest)
    }
}

/// SHA-256 of a file, in hex. Its position is at the end afterwards.
fn digest(mut file: &File) -> io::Result<String> {
    let mut hasher = Sha256::new();
    // A page table's worth: larger pieces are not faster.
    let mut piece = vec![0; 256 * 1024];
    file.seek(SeekFrom::Start(0))?;
    loop {
        match file.read(&mut piece) {
            Ok(0) => return Ok(hex(&hasher.finalize())),
            Ok(read) => hasher.update(&piece[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_seal_is_read_as_it_was_written_and_nothing_else_is_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("code");
        fs::write(&path, "code").unwrap();
        let seal = Seal::of(&File::open(&path).unwrap(), "engine").unwrap();
        let text = seal.to_string();
        assert!((text.len() as u64) < MAX_SEAL_BYTES);
        assert_eq!(Seal::parse(&text), Some(seal));
        for end in 0..text.len() {
            assert_eq!(Seal::parse(&text[..end]), None, "{end} bytes of it");
        }
        for other in [text.replace(FORMAT, "omc-seal-2"), format!("{text}{text}"), text.replace('\n', " 1\n")] {
            assert_eq!(Seal::parse(&other), None, "{other}");
        }
    }

    #[test]
    fn only_the_bytes_that_were_sealed_pass() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("code");
        fs::write(&path, "code").unwrap();
        let seal = Seal::of(&File::open(&path).unwrap(), "engine").unwrap();
        let judge = |engine| seal.judge(&File::open(&path).unwrap(), engine).unwrap();
        assert_eq!(judge("engine"), Verdict::Same);
        assert_eq!(judge("other"), Verdict::OtherEngine);

        let written = fs::metadata(&path).unwrap().modified().unwrap();
        for (bytes, passes) in [("edoc", false), ("cod", false), ("code!", false), ("", false), ("code", true)] {
            fs::remove_file(&path).unwrap();
            fs::write(&path, bytes).unwrap();
            // Who changes the bytes may set the time of that; the time of change is the system's.
            File::options().write(true).open(&path).unwrap().set_modified(written).unwrap();
            match judge("engine") {
                Verdict::SameBytes(again) if passes => {
                    assert_eq!(again.judge(&File::open(&path).unwrap(), "engine").unwrap(), Verdict::Same);
                }
                verdict => assert_eq!((verdict, passes), (Verdict::OtherBytes, false), "{bytes:?}"),
            }
        }
    }
}
