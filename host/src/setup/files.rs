//! Files of a person, changed: read, replaced whole, and brought back.
//!
//! A file is replaced by a rename in its folder, so that whoever reads it sees the old or the new one. A link in its place stays
//! and what it points to is replaced, because people keep their settings behind links; in a project, where a link may point
//! anywhere, it is refused. What was there before is kept in the user's state folder, with a receipt of what was written:
//! as long as nobody changed the file since, it can be brought back to the byte.
//!
//! Two commands at once wait for each other. Agents lock nothing, so a file that changed since it was read is not replaced.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::config::Paths;
use crate::registry::{Durability, Locked, lock_dir, open_private, replace_over, replace_private};

/// Largest file that is read, in bytes: hundreds of times the largest real one.
const MAX_FILE_BYTES: u64 = 8 << 20;

/// Largest list of receipts that is read, in bytes: some ten thousand files.
const MAX_RECEIPTS_BYTES: u64 = 4 << 20;

/// How long a command waits for another one that writes.
const WAIT_FOR_LOCK: Duration = Duration::from_secs(10);

/// Characters of a digest that tell copies of a file apart.
const DIGEST_CHARS: usize = 16;

/// What is to happen to a file.
#[derive(Debug)]
pub(crate) struct Change {
    pub(crate) path: PathBuf,
    /// What is there; nothing if there is no file.
    pub(crate) before: Option<Vec<u8>>,
    /// What is to be there; nothing if the file is to go.
    pub(crate) after: Option<Vec<u8>>,
    /// What was there before omc-host came, as far as that is known.
    pub(crate) origin: Origin,
    /// Nothing below this folder may be a link.
    pub(crate) beneath: Option<PathBuf>,
    /// Whether it is worth waiting for the disk: what somebody wrote is, what can be written again is not.
    pub(crate) durability: Durability,
}

/// What a file was before there was anything of ours in it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case", tag = "was")]
pub(crate) enum Origin {
    /// There was no file.
    Absent,
    /// The file with this name in the folder of copies.
    Kept {
        /// Its name.
        copy: String,
    },
    /// As it is now: nothing of ours is in it.
    Present,
    /// Nobody knows: entries of ours were in it already.
    Unknown,
}

/// What was written into a file, and what it was before.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Receipt {
    /// SHA-256 of what was written.
    written: String,
    pub(crate) origin: Origin,
    /// Folders that were created for it.
    #[serde(default)]
    folders: Vec<PathBuf>,
}

/// A file from before: its bytes, or nothing where there was none.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Original(pub(crate) Option<Vec<u8>>);

/// The receipts, and the copies of files from before.
pub(crate) struct Archive {
    folder: PathBuf,
    receipts: BTreeMap<PathBuf, Receipt>,
    /// Folders that were created for files that are gone now.
    emptied: Vec<PathBuf>,
}

impl Archive {
    /// Opens the archive. One that is missing is empty.
    pub(crate) fn open(paths: &Paths) -> Result<Self> {
        let folder = paths
            .state_dir
            .as_ref()
            .context("there is no folder for copies of files: HOME is not set to an absolute path")?;
        let mut archive = Self { folder: folder.join("setup"), receipts: BTreeMap::new(), emptied: Vec::new() };
        archive.read()?;
        Ok(archive)
    }

    fn read(&mut self) -> Result<()> {
        let path = self.list();
        let file = match open_private(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            opened => opened.with_context(|| format!("failed to open `{}`", path.display()))?,
        };
        let mut bytes = Vec::new();
        file.take(MAX_RECEIPTS_BYTES)
            .read_to_end(&mut bytes)
            .with_context(|| format!("failed to read `{}`", path.display()))?;
        self.receipts = serde_json::from_slice(&bytes).with_context(|| {
            format!(
                "`{}` is damaged; remove it, and files can only be cleaned of entries, not be brought back",
                path.display()
            )
        })?;
        Ok(())
    }

    fn list(&self) -> PathBuf {
        self.folder.join("receipts.json")
    }

    /// Keeps other commands out until this is dropped, and reads what they wrote.
    pub(crate) fn lock(&mut self) -> Result<Locked> {
        let locked = lock_dir(&self.folder, WAIT_FOR_LOCK).with_context(|| {
            format!("failed to lock `{}`; is another omc-host setting things up?", self.folder.display())
        })?;
        self.read()?;
        Ok(locked)
    }

    /// The receipt for a file that is as it was written.
    pub(crate) fn receipt(&self, path: &Path, bytes: &[u8]) -> Option<&Receipt> {
        self.receipts.get(path).filter(|receipt| receipt.written == digest(bytes))
    }

    /// What a file was before omc-host came. `is_clean` says that nothing of ours is in it now.
    pub(crate) fn origin(&self, path: &Path, now: Option<&[u8]>, is_clean: bool) -> Origin {
        match now {
            None => Origin::Absent,
            Some(bytes) => match self.receipt(path, bytes) {
                Some(receipt) => receipt.origin.clone(),
                None if is_clean => Origin::Present,
                None => Origin::Unknown,
            },
        }
    }

    /// What a file was before, if nobody changed it since it was written.
    pub(crate) fn original(&self, path: &Path, now: &[u8]) -> Option<Original> {
        match &self.receipt(path, now)?.origin {
            Origin::Absent => Some(Original(None)),
            Origin::Kept { copy } => {
                let bytes = fs::read(self.folder.join(copy)).ok()?;
                // A copy that is not what its name says is no copy.
                copy.starts_with(&digest(&bytes)[..DIGEST_CHARS]).then_some(Original(Some(bytes)))
            }
            Origin::Present | Origin::Unknown => None,
        }
    }

    /// Whether this file was ever written, and not taken back.
    pub(crate) fn knows(&self, path: &Path) -> bool {
        self.receipts.contains_key(path)
    }

    /// Files below a folder that have receipts.
    pub(crate) fn below(&self, folder: &Path) -> Vec<PathBuf> {
        self.receipts.keys().filter(|path| path.starts_with(folder)).cloned().collect()
    }

    /// Makes a change. Returns where the file from before is kept, if there was one that is not ours. The receipt is on the disk
    /// with the next [`Archive::save`].
    pub(crate) fn apply(&mut self, change: &Change) -> Result<Option<PathBuf>> {
        let Change { path, before, after, origin, beneath, durability } = change;
        let target = target(path, beneath.as_deref())?;
        let is_ours = before.as_deref().is_some_and(|before| self.receipt(path, before).is_some());
        let mut kept = None;
        if let Some(before) = before
            && !is_ours
        {
            kept = Some(self.keep(path, before)?);
        }
        let origin = match (origin, &kept) {
            (Origin::Present, Some(copy)) => Origin::Kept { copy: copy.clone() },
            (Origin::Present, None) => Origin::Unknown,
            (origin, _) => origin.clone(),
        };
        if read(path)? != *before {
            bail!("`{}` was changed by somebody else just now; run the command again", path.display());
        }
        let known = self.receipts.get(path).map(|receipt| receipt.folders.clone()).unwrap_or_default();
        if let Some(bytes) = after {
            let folder = target.parent().context("the file has no folder")?;
            let mut folders = create(folder)?;
            folders.extend(known);
            replace(&target, bytes, *durability).with_context(|| format!("failed to write `{}`", target.display()))?;
            self.receipts.insert(path.clone(), Receipt { written: digest(bytes), origin, folders });
        } else {
            fs::remove_file(&target).with_context(|| format!("failed to remove `{}`", target.display()))?;
            self.receipts.remove(path);
            self.emptied.extend(known);
        }
        Ok(kept.map(|copy| self.folder.join(copy)))
    }

    /// Removes the folders that were created for files that are gone. Those that others put something into stay.
    pub(crate) fn sweep(&mut self) {
        let mut folders = std::mem::take(&mut self.emptied);
        folders.sort_by_key(|folder| std::cmp::Reverse(folder.components().count()));
        for folder in folders {
            drop(fs::remove_dir(folder));
        }
    }

    /// Makes a change after which nothing of ours is in the file.
    pub(crate) fn undo(&mut self, change: &Change) -> Result<Option<PathBuf>> {
        let kept = self.apply(change)?;
        self.receipts.remove(&change.path);
        Ok(kept)
    }

    fn keep(&self, path: &Path, bytes: &[u8]) -> Result<String> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let copy = format!("{}-{name}", &digest(bytes)[..DIGEST_CHARS]);
        let to = self.folder.join(&copy);
        replace_private(&to, bytes, Durability::Synced)
            .with_context(|| format!("failed to keep a copy of `{}` in `{}`", path.display(), self.folder.display()))?;
        Ok(copy)
    }

    /// Writes the receipts.
    pub(crate) fn save(&self) -> Result<()> {
        let path = self.list();
        let bytes = serde_json::to_vec_pretty(&self.receipts)?;
        replace_private(&path, &bytes, Durability::Synced)
            .with_context(|| format!("failed to write `{}`", path.display()))
    }
}

/// A file's bytes; nothing if there is none.
pub(crate) fn read(path: &Path) -> Result<Option<Vec<u8>>> {
    let failed = || format!("failed to read `{}`", path.display());
    match fs::metadata(path) {
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(error) => return Err(error).with_context(failed),
        // What is no file could keep the reader waiting for ever.
        Ok(about) if !about.is_file() => bail!("`{}` is not a file", path.display()),
        Ok(about) if about.len() > MAX_FILE_BYTES => {
            bail!("`{}` is larger than {MAX_FILE_BYTES} bytes", path.display())
        }
        Ok(_) => {}
    }
    let mut bytes = Vec::new();
    File::open(path).and_then(|file| file.take(MAX_FILE_BYTES).read_to_end(&mut bytes)).with_context(failed)?;
    Ok(Some(bytes))
}

/// A file's text and whether it began with a byte order mark; nothing if there is none.
pub(crate) fn text(path: &Path, bytes: &[u8]) -> Result<(bool, String)> {
    let text =
        std::str::from_utf8(bytes).map_err(|_| anyhow!("`{}` is not UTF-8 text; mend it first", path.display()))?;
    Ok(match text.strip_prefix('\u{feff}') {
        Some(text) => (true, text.to_owned()),
        None => (false, text.to_owned()),
    })
}

/// The file that is to be replaced: where a link leads, unless links are not to be followed.
fn target(path: &Path, beneath: Option<&Path>) -> Result<PathBuf> {
    if let Some(root) = beneath {
        refuse_links(root, path)?;
    }
    let target = match fs::symlink_metadata(path) {
        Ok(about) if about.is_symlink() => path.canonicalize().with_context(|| {
            format!("`{}` is a link to something that is not there; mend or remove it", path.display())
        })?,
        _ => path.to_owned(),
    };
    if fs::metadata(&target).is_ok_and(|about| about.permissions().readonly()) {
        bail!("`{}` is read-only, and that may be on purpose; make it writable first", target.display());
    }
    Ok(target)
}

/// Refuses a path on which something below the root is a link: it would lead out of the project.
pub(crate) fn refuse_links(root: &Path, path: &Path) -> Result<()> {
    for part in path.ancestors().take_while(|part| *part != root) {
        if fs::symlink_metadata(part).is_ok_and(|about| about.is_symlink()) {
            bail!("`{}` is a link; in a project links are not followed, since they may lead anywhere", part.display());
        }
    }
    Ok(())
}

/// Creates a folder and what is missing above it. Returns what was created, outermost first.
fn create(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut missing: Vec<_> = folder.ancestors().take_while(|part| !part.exists()).map(Path::to_owned).collect();
    missing.reverse();
    fs::create_dir_all(folder).with_context(|| format!("failed to create `{}`", folder.display()))?;
    Ok(missing)
}

/// Replaces a file. The new one has the mode of the old one, or is the user's alone.
fn replace(path: &Path, bytes: &[u8], durability: Durability) -> io::Result<()> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    // One name for all: the caller holds the lock, and what a killed command left is swept here.
    let temporary = path.with_file_name(format!(".{}.omc-host.tmp", name.to_string_lossy()));
    let permissions = fs::metadata(path).ok().map(|about| about.permissions());
    replace_over(&temporary, path, bytes, durability, permissions)
}

/// SHA-256 in hex.
pub(crate) fn digest(bytes: &[u8]) -> String {
    omc_artifact::hex(&Sha256::digest(bytes))
}
