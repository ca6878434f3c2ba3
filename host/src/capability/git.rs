//! Facts about a repository, without anything that the repository configures.
//!
//! A repository is hostile: its configuration can name programs for a monitor, hooks, filters, drivers, helpers and transports, and
//! git runs them when it looks at the work tree. So branch and commit are read from the files that hold them, and for the paths
//! that changed git gets a git directory of our own ([`facade`]), which has no configuration but ours, no hooks and no attributes,
//! and borrows only objects and index from the repository. What is read is bounded, owned by the user, and no link.

use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use super::wasi::os::{Dir, Kind};
use crate::registry::create_private_dir;
use crate::runtime::wit::git::{Change, ChangeKind, Changes};
use crate::runtime::wit::types::AccessError;

/// Longest file that holds one name or path, in bytes.
const MAX_NAME_FILE_BYTES: usize = 4 * 1024;
/// Longest file of packed references, in bytes: some fifty thousand of them.
const MAX_PACKED_REFS_BYTES: usize = 4 * 1024 * 1024;
/// Longest configuration of a repository that is looked at, in bytes.
const MAX_CONFIG_BYTES: usize = 256 * 1024;
/// Longest name of a reference, in bytes, and how many of them lead from one to the next.
const MAX_REF_BYTES: usize = 512;
const MAX_REF_HOPS: usize = 5;
/// Most paths that one answer holds.
const MAX_CHANGES: u32 = 4_096;
/// Most that git's answer is read of, in bytes: what so many paths take.
const MAX_OUTPUT_BYTES: u64 = 1024 * 1024;
/// How long git may take, all together. Tests run many at once, and are not about this.
const MAX_TIME: Duration = Duration::from_millis(if cfg!(test) { 2_000 } else { 500 });

/// Where git is, in the order in which it is looked for. `PATH` is not asked: a repository's settings can set it for hooks.
const PROGRAMS: &[&str] = &[
    "/usr/bin/git",
    "/usr/local/bin/git",
    "/opt/homebrew/bin/git",
    "/run/current-system/sw/bin/git",
    r"C:\Program Files\Git\cmd\git.exe",
];

/// How git is asked for differences: no program of anybody's has a say in them.
const DIFF: &[&str] = &["diff", "--no-renames", "--no-ext-diff", "--no-textconv", "--ignore-submodules=all"];

/// Before the first commit, paths are compared with a tree that holds nothing. Every git knows these two.
const EMPTY_TREE_SHA1: &str = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";
const EMPTY_TREE_SHA256: &str = "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321";

/// The repository of a project.
pub(super) struct Repository {
    work_tree: PathBuf,
    /// What is this work tree's own: `HEAD`, the index.
    git_dir: PathBuf,
    /// What all work trees of the repository share: references, objects.
    common_dir: PathBuf,
}

/// What `HEAD` says.
#[derive(Debug, PartialEq, Eq)]
enum Head {
    /// The name of a reference, `refs/heads/…`.
    Ref(String),
    /// A commit.
    Commit(String),
}

impl Repository {
    /// Finds the repository whose work tree this is. A linked work tree and a submodule name theirs in a file.
    pub(super) fn find(work_tree: &Path) -> Result<Self, AccessError> {
        let top = own_dir(work_tree)?;
        let git_dir = match top.stat_at(".git").map_err(|problem| error(&problem))?.kind {
            Kind::Dir => work_tree.join(".git"),
            Kind::File => {
                let text = read_small(&top, ".git", MAX_NAME_FILE_BYTES)?.ok_or(AccessError::NotFound)?;
                let path = text.strip_prefix("gitdir: ").ok_or(AccessError::NotFound)?;
                work_tree.join(path.trim_end_matches(['\r', '\n']))
            }
            _ => return Err(AccessError::NotFound),
        };
        let common_dir = match read_small(&own_dir(&git_dir)?, "commondir", MAX_NAME_FILE_BYTES)? {
            Some(path) => git_dir.join(path.trim_end_matches(['\r', '\n'])),
            None => git_dir.clone(),
        };
        own_dir(&common_dir)?;
        Ok(Self { work_tree: work_tree.to_owned(), git_dir, common_dir })
    }

    /// The branch that is checked out.
    pub(super) fn branch(&self) -> Result<Option<String>, AccessError> {
        Ok(match self.head_file()? {
            Head::Ref(name) => name.strip_prefix("refs/heads/").map(str::to_owned),
            Head::Commit(_) => None,
        })
    }

    /// The last commit; none before the first one.
    pub(super) fn head(&self) -> Result<Option<String>, AccessError> {
        let mut head = self.head_file()?;
        for _ in 0..MAX_REF_HOPS {
            match head {
                Head::Commit(id) => return Ok(Some(id)),
                Head::Ref(name) => match self.resolve(&name)? {
                    Some(next) => head = next,
                    None => return Ok(None),
                },
            }
        }
        Err(AccessError::Other("references lead in a circle".to_owned()))
    }

    /// The paths that differ from the last commit. `cache` is the user's folder for our files.
    pub(super) fn changed_paths(&self, max_entries: u32, cache: &Path, until: Instant) -> Result<Changes, AccessError> {
        let git = self.git(cache, until)?;
        let mut printed = Printed { changes: Vec::new(), most: max_entries.min(MAX_CHANGES) as usize, complete: true };
        let tracked = git.run(&[DIFF, &["--name-status", "-z", &git.against, "--"]].concat())?;
        printed.add_tracked(&tracked);
        let others = git.run(&[
            "ls-files",
            "-z",
            "-t",
            "--unmerged",
            "--others",
            "--directory",
            "--no-empty-directory",
            "--exclude-standard",
            "--",
        ])?;
        printed.add_others(&others);
        printed.changes.retain(|change| !self.is_other_repository(&change.path));
        Ok(Changes { paths: printed.changes, complete: printed.complete })
    }

    /// Numbers of the lines of a tracked file that the last commit does not have.
    pub(super) fn added_lines(
        &self,
        path: &str,
        max_lines: u32,
        cache: &Path,
        until: Instant,
    ) -> Result<Vec<u32>, AccessError> {
        let git = self.git(cache, until)?;
        let printed = git.run(&[DIFF, &["--unified=0", "--no-color", &git.against, "--", path]].concat())?;
        let added = String::from_utf8_lossy(&printed).lines().filter_map(added_by).flatten().collect::<Vec<_>>();
        Ok(added.into_iter().take(max_lines.min(MAX_CHANGES) as usize).collect())
    }

    /// Git, to be asked what differs from the last commit.
    fn git(&self, cache: &Path, until: Instant) -> Result<Git<'_>, AccessError> {
        let head = self.head()?;
        let format = match &head {
            Some(id) => Format::of_id(id),
            None => self.format()?,
        };
        let program = PROGRAMS.iter().map(Path::new).find(|path| path.is_file()).ok_or(AccessError::NotFound)?;
        Ok(Git {
            program,
            facade: facade(cache, format)?,
            repository: self,
            against: head.unwrap_or_else(|| format.empty_tree().to_owned()),
            until: until.min(Instant::now() + MAX_TIME),
        })
    }

    /// Whether the path is that of a folder with a repository of its own, which is another project.
    fn is_other_repository(&self, path: &str) -> bool {
        path.ends_with('/') && own_dir(&self.work_tree.join(path)).is_ok_and(|dir| dir.stat_at(".git").is_ok())
    }

    fn head_file(&self) -> Result<Head, AccessError> {
        let text = read_small(&own_dir(&self.git_dir)?, "HEAD", MAX_NAME_FILE_BYTES)?.ok_or(AccessError::NotFound)?;
        parse_ref(&text).ok_or_else(|| AccessError::Other("`HEAD` cannot be read".to_owned()))
    }

    /// What a reference holds: a file of its own, in this work tree or the repository, or a line of the packed ones.
    fn resolve(&self, name: &str) -> Result<Option<Head>, AccessError> {
        for folder in [&self.git_dir, &self.common_dir] {
            let text = match read_below(folder, name) {
                Ok(text) => text,
                // `refs/heads/a` is no folder if there is a branch `a/b` no more, and the other way round.
                Err(AccessError::NotFound) => None,
                Err(error) => return Err(error),
            };
            if let Some(text) = text {
                let held =
                    parse_ref(&text).ok_or_else(|| AccessError::Other("a reference cannot be read".to_owned()))?;
                return Ok(Some(held));
            }
        }
        let packed = read_small(&own_dir(&self.common_dir)?, "packed-refs", MAX_PACKED_REFS_BYTES)?.unwrap_or_default();
        let line = packed.lines().find_map(|line| line.strip_suffix(name)?.strip_suffix(' '));
        Ok(line.filter(|id| is_id(id)).map(|id| Head::Commit(id.to_owned())))
    }

    /// The kind of ids before there is one: the only thing taken from the repository's configuration, and it is one of two words.
    fn format(&self) -> Result<Format, AccessError> {
        let config = read_small(&own_dir(&self.common_dir)?, "config", MAX_CONFIG_BYTES)?.unwrap_or_default();
        let says_sha256 = |line: &str| {
            let plain: String = line.chars().filter(|letter| !letter.is_whitespace()).collect();
            plain.eq_ignore_ascii_case("objectformat=sha256")
        };
        Ok(if config.lines().any(says_sha256) { Format::Sha256 } else { Format::Sha1 })
    }
}

/// The kinds of ids that git has.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Format {
    Sha1,
    Sha256,
}

impl Format {
    fn of_id(id: &str) -> Self {
        if id.len() == EMPTY_TREE_SHA256.len() { Self::Sha256 } else { Self::Sha1 }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Sha1 => "sha1",
            Self::Sha256 => "sha256",
        }
    }

    fn empty_tree(self) -> &'static str {
        match self {
            Self::Sha1 => EMPTY_TREE_SHA1,
            Self::Sha256 => EMPTY_TREE_SHA256,
        }
    }
}

/// The git directory that git is given in place of the repository's: a `HEAD` that names nothing, no references, and a
/// configuration that says nothing but the kind of ids. Made once, and never written by git.
fn facade(cache: &Path, format: Format) -> Result<PathBuf, AccessError> {
    // Guests of one event run side by side, and a draft is named after the process.
    static MAKING: Mutex<()> = Mutex::new(());
    let folder = cache.join(format!("git-{}", format.name()));
    let _making = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
    if !folder.is_dir() {
        let draft = cache.join(format!(".git-{}.{}", format.name(), std::process::id()));
        let made = make_facade(&draft, format).and_then(|()| fs::rename(&draft, &folder));
        // Another process may have been first: then this draft is one too many.
        if let Err(error) = made.or_else(|error| if folder.is_dir() { fs::remove_dir_all(&draft) } else { Err(error) })
        {
            return Err(AccessError::Other(format!("failed to prepare a folder for git: {error}")));
        }
    }
    own_dir(&folder)?;
    Ok(folder)
}

fn make_facade(folder: &Path, format: Format) -> io::Result<()> {
    create_private_dir(&folder.join("refs"))?;
    let config = match format {
        Format::Sha1 => "[core]\n\trepositoryformatversion = 0\n\tbare = false\n",
        Format::Sha256 => {
            "[core]\n\trepositoryformatversion = 1\n\tbare = false\n[extensions]\n\tobjectformat = sha256\n"
        }
    };
    fs::write(folder.join("config"), config)?;
    fs::write(folder.join("HEAD"), "ref: refs/heads/none\n")
}

/// One run of git after the other, within one time.
struct Git<'a> {
    program: &'a Path,
    facade: PathBuf,
    repository: &'a Repository,
    /// The last commit, or the tree that holds nothing.
    against: String,
    until: Instant,
}

impl Git<'_> {
    /// Runs git and returns what it prints: at most [`MAX_OUTPUT_BYTES`], and one byte more if there is more.
    fn run(&self, args: &[&str]) -> Result<Vec<u8>, AccessError> {
        let Repository { work_tree, git_dir, common_dir } = self.repository;
        let mut excludes = std::ffi::OsString::from("core.excludesFile=");
        excludes.push(common_dir.join("info/exclude"));
        let mut git = Command::new(self.program);
        // With our own git directory none of the repository's settings is in force. These say so once more, for the settings by
        // which git would run a program, in case a later git finds another place to read them from.
        git.args(["--no-pager", "--no-optional-locks", "--literal-pathspecs", "-c", "core.fsmonitor=false"])
            .args([
                "-c",
                "core.hooksPath=/dev/null",
                "-c",
                "core.attributesFile=/dev/null",
                "-c",
                "protocol.allow=never",
            ])
            .args(["-c", "core.quotePath=false", "-c", "submodule.recurse=false"])
            // What git learns on the way it would note in the index, which is not ours.
            .args(["-c", "diff.autoRefreshIndex=false", "-c"])
            .arg(excludes)
            .args(args);
        git.env_clear()
            .env("GIT_DIR", &self.facade)
            .env("GIT_WORK_TREE", work_tree)
            .env("GIT_INDEX_FILE", git_dir.join("index"))
            .env("GIT_OBJECT_DIRECTORY", common_dir.join("objects"))
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_ATTR_NOSYSTEM", "1")
            .env("GIT_NO_LAZY_FETCH", "1")
            .env("GIT_NO_REPLACE_OBJECTS", "1")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("LC_ALL", "C")
            .current_dir(work_tree)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let failed = |error: io::Error| AccessError::Other(format!("failed to run git: {error}"));
        let mut child = git.spawn().map_err(failed)?;
        let Some(stdout) = child.stdout.take() else { return Err(AccessError::Other("git has no output".to_owned())) };
        let (sender, receiver) = mpsc::channel();
        // It ends with git: at its end, or when it is killed below.
        let reader = thread::Builder::new().spawn(move || {
            let mut bytes = Vec::new();
            let read = stdout.take(MAX_OUTPUT_BYTES + 1).read_to_end(&mut bytes);
            drop(sender.send(read.map(|_| bytes)));
        });
        let printed = match reader {
            Ok(_) => receiver.recv_timeout(self.until.saturating_duration_since(Instant::now())),
            Err(_) => Err(mpsc::RecvTimeoutError::Disconnected),
        };
        let cut = matches!(&printed, Ok(Ok(bytes)) if bytes.len() as u64 > MAX_OUTPUT_BYTES);
        let done = matches!(printed, Ok(Ok(_))) && !cut;
        if !done {
            // Whatever it says to that, the answer does not wait for it.
            drop(child.kill());
        }
        let status = child.wait().map_err(failed)?;
        match printed {
            Ok(Ok(bytes)) if cut || status.success() => Ok(bytes),
            Ok(Ok(_)) => Err(AccessError::Other("git cannot read the repository".to_owned())),
            Ok(Err(error)) => Err(failed(error)),
            Err(_) => Err(AccessError::Other("git was not done in time".to_owned())),
        }
    }
}

/// The branch and the commit of the repository at a work tree, as guests are told; none where they get an error. For trying
/// repositories that nobody would make.
pub fn branch_and_head(work_tree: &Path) -> [Option<String>; 2] {
    let Ok(repository) = Repository::find(work_tree) else { return [None, None] };
    [repository.branch().ok().flatten(), repository.head().ok().flatten()]
}

/// The paths that guests would be told, at most `most`, if git printed this of tracked files and of the others. For trying what no
/// git prints.
pub fn paths_in(tracked: &[u8], others: &[u8], most: usize) -> Vec<String> {
    let mut printed = Printed { changes: Vec::new(), most, complete: true };
    printed.add_tracked(tracked);
    printed.add_others(others);
    printed.changes.into_iter().map(|change| change.path).collect()
}

/// Collects what git prints.
struct Printed {
    changes: Vec<Change>,
    most: usize,
    complete: bool,
}

impl Printed {
    /// `STATUS NUL PATH NUL`, again and again.
    fn add_tracked(&mut self, printed: &[u8]) {
        let mut fields = self.fields(printed).into_iter();
        while let (Some(status), Some(path)) = (fields.next(), fields.next()) {
            let kind = match status.bytes().next() {
                Some(b'A') => ChangeKind::Added,
                Some(b'D') => ChangeKind::Deleted,
                Some(b'U') => ChangeKind::Conflicted,
                _ => ChangeKind::Modified,
            };
            self.add(path, kind);
        }
    }

    /// `? PATH NUL` of what is not in the index, `M MODE ID STAGE TAB PATH NUL` of each side of a conflict, in whatever order.
    fn add_others(&mut self, printed: &[u8]) {
        for field in self.fields(printed) {
            if let Some(path) = field.strip_prefix("? ") {
                self.add(path.to_owned(), ChangeKind::Untracked);
            } else if let Some((_, path)) = field.split_once('\t') {
                match self.changes.iter_mut().find(|change| change.path == path) {
                    Some(change) => change.kind = ChangeKind::Conflicted,
                    None => self.add(path.to_owned(), ChangeKind::Conflicted),
                }
            }
        }
    }

    fn add(&mut self, path: String, kind: ChangeKind) {
        // Git names nothing so; what is read is not taken for git's on its word.
        if path.is_empty() {
            return;
        }
        if self.changes.len() == self.most {
            self.complete = false;
        } else {
            self.changes.push(Change { path, kind });
        }
    }

    /// The fields that are there as a whole.
    fn fields(&mut self, printed: &[u8]) -> Vec<String> {
        let whole = printed.iter().rposition(|byte| *byte == 0).unwrap_or(0);
        self.complete &= printed.len() as u64 <= MAX_OUTPUT_BYTES;
        let fields = printed[..whole].split(|byte| *byte == 0).filter(|field| !field.is_empty());
        fields.map(|field| String::from_utf8_lossy(field).into_owned()).collect()
    }
}

/// The lines that a part of a difference adds, by its heading `@@ -FROM,COUNT +FROM,COUNT @@`. Every other line of a difference
/// begins with another sign, whatever stands in the file.
fn added_by(line: &str) -> Option<std::ops::Range<u32>> {
    let (_, added) = line.strip_prefix("@@ -")?.split_once(" +")?;
    let added = added.split(' ').next()?;
    let (from, count) = added.split_once(',').unwrap_or((added, "1"));
    let (from, count): (u32, u32) = (from.parse().ok()?, count.parse().ok()?);
    Some(from..from.saturating_add(count.min(MAX_CHANGES)))
}

/// What a file with a reference in it says: an id, or `ref: ` and a name.
fn parse_ref(text: &str) -> Option<Head> {
    let text = text.trim_end();
    if let Some(name) = text.strip_prefix("ref:") {
        let name = name.trim_start();
        return is_ref_name(name).then(|| Head::Ref(name.to_owned()));
    }
    is_id(text).then(|| Head::Commit(text.to_owned()))
}

/// Whether a name of a reference leads to a file below the git directory and nowhere else.
fn is_ref_name(name: &str) -> bool {
    name.len() <= MAX_REF_BYTES
        && name.starts_with("refs/")
        && name.split('/').all(|part| !part.is_empty() && !part.starts_with('.'))
        && !name.chars().any(|letter| letter.is_control() || letter == '\\' || letter == ' ')
}

fn is_id(text: &str) -> bool {
    [EMPTY_TREE_SHA1.len(), EMPTY_TREE_SHA256.len()].contains(&text.len())
        && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Opens a folder of the user's own: git, too, takes no other's word.
fn own_dir(path: &Path) -> Result<Dir, AccessError> {
    let dir = Dir::open_parent(path).map_err(|problem| error(&problem))?;
    if dir.is_own().map_err(|problem| error(&problem))? {
        Ok(dir)
    } else {
        Err(AccessError::Other("it belongs to another user".to_owned()))
    }
}

/// The text of the file at a path of plain names below a folder; none if it is not there.
fn read_below(folder: &Path, path: &str) -> Result<Option<String>, AccessError> {
    let mut dir = own_dir(folder)?;
    let mut names = path.split('/');
    let name = names.next_back().ok_or(AccessError::NotFound)?;
    for folder in names {
        dir = dir.open_dir(folder).map_err(|problem| error(&problem))?;
    }
    read_small(&dir, name, MAX_NAME_FILE_BYTES)
}

/// The text of a regular file in a folder; none if there is nothing of this name, an error if it is longer than `max_bytes`.
fn read_small(dir: &Dir, name: &str, max_bytes: usize) -> Result<Option<String>, AccessError> {
    match dir.stat_at(name) {
        Ok(stat) if stat.kind == Kind::File => {}
        Ok(_) => return Err(AccessError::NotFound),
        Err(other) if other.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(other) => return Err(error(&other)),
    }
    let file = dir.open_file(name, true, false).map_err(|problem| error(&problem))?;
    if file.stat().map_err(|problem| error(&problem))?.kind != Kind::File {
        return Err(AccessError::NotFound);
    }
    let mut bytes = Vec::new();
    loop {
        let part = file
            .read_at((max_bytes + 1 - bytes.len()).min(64 * 1024), bytes.len() as u64)
            .map_err(|problem| error(&problem))?;
        if part.is_empty() {
            break;
        }
        bytes.extend(part);
        if bytes.len() > max_bytes {
            return Err(AccessError::TooLarge);
        }
    }
    String::from_utf8(bytes).map(Some).map_err(|_| AccessError::Other("it is not UTF-8".to_owned()))
}

fn error(error: &io::Error) -> AccessError {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => AccessError::NotFound,
        kind => AccessError::Other(kind.to_string()),
    }
}

#[cfg(all(test, unix))]
mod tests;
