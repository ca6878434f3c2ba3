//! Which project an event belongs to, and where its `.omc` is.
//!
//! One answer per event, for all guests of it. The folder worked in comes from the agent's payload, which may be wrong,
//! outdated or hostile: it only ever selects a folder that exists, and nothing is created here. In order:
//!
//! 1. `OMC_STATE_DIR` (absolute): `<it>/<name>-<16 hex digits>` of the folder that would hold `.omc` otherwise;
//! 2. the nearest folder with an `.omc-workspace` marker that is the user's own and below the home folder;
//! 3. the top of the git work tree; a submodule, a linked work tree and a nested repository are work trees of their own;
//! 4. the folder worked in.
//!
//! Never the home folder itself and never the root of the file system: both are above everything the user has, so state
//! there would be shared by all that is no project. The walk upwards ends before them, after `MAX_LEVELS` at the latest.
//!
//! The folder worked in may be reached through a link. `.omc` itself may not be one; that is checked on the handle when it
//! is opened, not here.

use super::env::{Env, EnvVars};
use super::problem::Problem;
use sha2::{Digest, Sha256};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Most folders looked at on the way up; deeper than any real tree, and a bound on what a payload can make us do.
const MAX_LEVELS: usize = 64;

/// Longest path taken from a payload, in bytes: Linux takes no longer one.
const MAX_CWD_BYTES: usize = 4_096;

/// Longest readable part of a central folder's name, in bytes; with its digest it stays below the 255 of file systems.
const MAX_NAME_BYTES: usize = 200;

/// Bytes of SHA-256 in a central folder's name, twice as many hex digits: what the original writes.
const DIGEST_BYTES: usize = 8;

/// The file or folder that joins the repositories below it.
const MARKER: &str = ".omc-workspace";

/// The name of the state directory in a project and in the home folder.
pub const OMC_DIR: &str = ".omc";

/// Whether the folder that holds the state directory is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parent {
    /// It exists.
    Present,
    /// It is the `OMC_STATE_DIR` of a user who has not used it yet: to be created with [`StateRoot::create_parent`].
    Missing,
}

/// Where the state of an event's project is.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct StateRoot {
    /// The project's root, canonical: the top of the git work tree, else the folder worked in.
    pub project_root: PathBuf,
    /// Whether that is the top of a git work tree.
    pub is_work_tree: bool,
    /// The folder that holds the state directory; canonical if it exists.
    pub omc_parent: PathBuf,
    /// The state directory's name in it: `.omc`, or the project's own name below `OMC_STATE_DIR`.
    pub omc_name: OsString,
    /// Whether `omc_parent` exists.
    pub parent: Parent,
    /// How the agent reaches the project, if that is over a link.
    pub linked: Option<LinkedFolder>,
    /// What was ignored on the way.
    pub problems: Vec<Problem>,
}

/// A folder of the project (its root, where that can be told) as the agent writes it, over a link, and as it is without links.
///
/// Agents write paths as they were started, and the project's root is canonical: who compares the two by their texts finds
/// nothing of a project that is reached over a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkedFolder {
    written: String,
    canonical: String,
}

impl LinkedFolder {
    /// Compares the folder worked in, as written and canonical. What is not plain text for a folder has no other name.
    fn find(written: &str, cwd: &Path, project_root: &Path) -> Option<Self> {
        let (written, cwd) = (written.trim_end_matches('/'), cwd.to_str()?);
        let is_plain = written.starts_with('/') && !written[1..].split('/').any(|part| matches!(part, "" | "." | ".."));
        if !is_plain || written == cwd {
            return None;
        }
        // The same folders below the root at the end of both texts: then the rest is a name of the root, unless one of these
        // folders is the link. One question to the file system tells, and only where there is a link at all.
        let root = project_root.to_str()?;
        let inside = cwd.strip_prefix(root)?;
        let above = written.strip_suffix(inside).filter(|above| !above.is_empty() && !inside.is_empty());
        match above.filter(|above| Path::new(above).canonicalize().is_ok_and(|found| found == project_root)) {
            Some(above) => Some(Self { written: above.to_owned(), canonical: root.to_owned() }),
            None => Some(Self { written: written.to_owned(), canonical: cwd.to_owned() }),
        }
    }

    /// Both names.
    pub fn names(&self) -> omc_tool::Linked<'_> {
        omc_tool::Linked { written: &self.written, canonical: &self.canonical }
    }
}

/// Why an event has no project, and so no state. The event is handled all the same.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// Neither the event nor the process names a folder.
    #[error("the folder worked in is not known")]
    Unknown,
    /// The path cannot be one of this system.
    #[error("the folder worked in is no path: it {0}")]
    NotAPath(&'static str),
    /// The folder is not there, or cannot be reached.
    #[error("the folder worked in cannot be reached")]
    Unreachable(#[source] io::Error),
    /// The path is that of a file.
    #[error("the folder worked in is no folder")]
    NotAFolder,
    /// The user's home folder is no project.
    #[error("the home folder is no project")]
    Home,
    /// The root of the file system is no project.
    #[error("the root of the file system is no project")]
    FilesystemRoot,
    /// `OMC_STATE_DIR` names something that is no folder.
    #[error("`OMC_STATE_DIR` is no folder that can hold state")]
    StateDir(#[source] io::Error),
}

impl StateRoot {
    /// Finds the project of an event.
    ///
    /// `cwd` is the folder from the payload; absent or empty, the process's own stands in, and a relative one is taken from
    /// there. `process_cwd` is `None` if the process's own folder is gone.
    ///
    /// # Errors
    ///
    /// A [`Refusal`] if there is no folder that may hold state. Nothing was created.
    pub fn resolve(cwd: Option<&str>, process_cwd: Option<&Path>, env: &Env) -> Result<Self, Refusal> {
        let written = cwd.unwrap_or_default();
        let cwd = canonical_cwd(cwd, process_cwd)?;
        let home = env.home().map(canonical_or_same);
        if home.as_deref() == Some(&*cwd) {
            return Err(Refusal::Home);
        }
        if cwd.parent().is_none() {
            return Err(Refusal::FilesystemRoot);
        }

        let markers = !env.is(EnvVars::OMC_DISABLE_MULTIREPO, &["1"]);
        let Found { work_tree, workspace } = walk_up(&cwd, home.as_deref(), markers);
        let is_work_tree = work_tree.is_some();
        let project_root = work_tree.unwrap_or_else(|| cwd.clone());
        let linked = LinkedFolder::find(written, &cwd, &project_root);
        let owner = workspace.unwrap_or_else(|| project_root.clone());

        let mut problems = Vec::new();
        let (omc_parent, omc_name, parent) = match central_dir(env, &mut problems)? {
            Some((dir, parent)) => (dir, central_name(&owner), parent),
            None => (owner, OMC_DIR.into(), Parent::Present),
        };
        Ok(Self { project_root, is_work_tree, omc_parent, omc_name, parent, linked, problems })
    }

    /// Creates the folder that holds the state directory, if it is a central one that is [`Parent::Missing`].
    ///
    /// To be called right before the first write, so that a silent event leaves no trace. A project's own folder is never
    /// created: one that was deleted meanwhile stays deleted.
    pub fn create_parent(&self) -> io::Result<()> {
        match self.parent {
            Parent::Present => Ok(()),
            Parent::Missing => create_private_dir(&self.omc_parent),
        }
    }
}

fn canonical_cwd(cwd: Option<&str>, process_cwd: Option<&Path>) -> Result<PathBuf, Refusal> {
    let cwd = Path::new(cwd.unwrap_or_default());
    let bytes = cwd.as_os_str().as_encoded_bytes();
    if bytes.len() > MAX_CWD_BYTES {
        return Err(Refusal::NotAPath("is too long"));
    }
    if bytes.contains(&0) {
        return Err(Refusal::NotAPath("contains a NUL"));
    }
    let absolute = if cwd.is_absolute() { cwd.to_owned() } else { process_cwd.ok_or(Refusal::Unknown)?.join(cwd) };
    let canonical = absolute.canonicalize().map_err(Refusal::Unreachable)?;
    if canonical.is_dir() { Ok(canonical) } else { Err(Refusal::NotAFolder) }
}

/// What lies above a folder.
struct Found {
    work_tree: Option<PathBuf>,
    workspace: Option<PathBuf>,
}

/// Looks for the nearest git work tree and the nearest marker, from `cwd` to below the home folder and the file system's root.
fn walk_up(cwd: &Path, home: Option<&Path>, markers: bool) -> Found {
    let mut found = Found { work_tree: None, workspace: None };
    let mut markers = markers && home.is_some_and(|home| cwd.starts_with(home));
    for folder in project_folders(cwd, home) {
        if found.work_tree.is_none() && is_work_tree(folder) {
            found.work_tree = Some(folder.to_owned());
        }
        if markers && is_own_marker(&folder.join(MARKER)) {
            found.workspace = Some(folder.to_owned());
            markers = false;
        }
        if found.work_tree.is_some() && !markers {
            break;
        }
    }
    found
}

/// The folder and those above it that may be a project.
fn project_folders<'a>(cwd: &'a Path, home: Option<&Path>) -> impl Iterator<Item = &'a Path> {
    cwd.ancestors().take(MAX_LEVELS).take_while(move |folder| folder.parent().is_some() && Some(*folder) != home)
}

/// The top of the git work tree that holds a canonical folder.
pub(super) fn work_tree_of(folder: &Path, home: Option<&Path>) -> Option<PathBuf> {
    project_folders(folder, home).find(|folder| is_work_tree(folder)).map(Path::to_owned)
}

/// Whether git would take the folder for the top of a work tree, without asking git.
///
/// `.git` is a file in a submodule and in a linked work tree. As a folder it needs a `HEAD`, so that an empty one, which git
/// passes over, does not split a repository's state.
fn is_work_tree(folder: &Path) -> bool {
    let git = folder.join(".git");
    match fs::metadata(&git) {
        Ok(metadata) if metadata.is_dir() => fs::symlink_metadata(git.join("HEAD")).is_ok(),
        Ok(metadata) => metadata.is_file(),
        Err(_) => false,
    }
}

/// Whether this is a marker that counts: one that somebody else left in a shared folder must not join the user's projects.
fn is_own_marker(marker: &Path) -> bool {
    fs::symlink_metadata(marker).is_ok_and(|metadata| (metadata.is_file() || metadata.is_dir()) && is_own(&metadata))
}

#[cfg(unix)]
fn is_own(metadata: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    metadata.uid() == rustix::process::geteuid().as_raw()
}

#[cfg(not(unix))]
fn is_own(_: &fs::Metadata) -> bool {
    true
}

/// The folder that `OMC_STATE_DIR` names, if it names one.
fn central_dir(env: &Env, problems: &mut Vec<Problem>) -> Result<Option<(PathBuf, Parent)>, Refusal> {
    let Some(value) = env.get(EnvVars::OMC_STATE_DIR) else { return Ok(None) };
    let dir = Path::new(value);
    if !dir.is_absolute() {
        // Relative to what? Each hook would find another folder, so the project's own is the better answer.
        problems.push(Problem::of_environment(
            format!("`{}` is not an absolute path and was ignored", EnvVars::OMC_STATE_DIR),
            "set it to an absolute path, without `~`",
        ));
        return Ok(None);
    }
    match dir.canonicalize() {
        Ok(dir) if dir.is_dir() => Ok(Some((dir, Parent::Present))),
        Ok(_) => Err(Refusal::StateDir(io::ErrorKind::NotADirectory.into())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Some((dir.to_owned(), Parent::Missing))),
        Err(error) => Err(Refusal::StateDir(error)),
    }
}

/// The project's name below `OMC_STATE_DIR`: `<folder's name, made safe>-<16 hex digits of SHA-256 of its path>`.
///
/// The path is the canonical one of the folder that would hold `.omc`. The original hashes the URL of the remote `origin`
/// where there is one, or an id out of the marker. Both can be copied: a repository could claim another project's state,
/// and two work trees of one repository would share theirs. Without a remote both ways give the same name.
fn central_name(owner: &Path) -> OsString {
    let name = owner.file_name().map(OsStr::to_string_lossy).unwrap_or_default();
    let mut central = String::with_capacity(name.len() + 1 + 2 * DIGEST_BYTES);
    for char in name.chars() {
        if central.len() >= MAX_NAME_BYTES {
            break;
        }
        if char.is_ascii_alphanumeric() || matches!(char, '_' | '-') {
            central.push(char);
        } else {
            // One underscore a UTF-16 unit, as the original has it.
            central.extend(std::iter::repeat_n('_', char.len_utf16()));
        }
    }
    central.push('-');
    central.push_str(&omc_artifact::hex(&Sha256::digest(owner.as_os_str().as_encoded_bytes())[..DIGEST_BYTES]));
    central.into()
}

fn create_private_dir(dir: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(dir)
}

/// The canonical form of a path, or the path itself where there is nothing yet.
pub(super) fn canonical_or_same(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, chown, symlink};
    use tempfile::TempDir;

    /// A temporary folder with a home in it, and ways to fill it.
    struct World {
        dir: TempDir,
    }

    impl World {
        fn new(folders: &[&str], files: &[&str]) -> Self {
            let world = Self { dir: tempfile::tempdir().expect("a folder") };
            fs::create_dir(world.path("home")).expect("created");
            for folder in folders {
                fs::create_dir_all(world.path(folder)).expect("created");
            }
            for file in files {
                fs::create_dir_all(world.path(file).parent().expect("a parent")).expect("created");
                fs::write(world.path(file), "").expect("written");
            }
            world
        }

        fn path(&self, relative: &str) -> PathBuf {
            self.dir.path().canonicalize().expect("canonical").join(relative)
        }

        fn text(&self, relative: &str) -> String {
            self.path(relative).to_str().expect("UTF-8").to_owned()
        }

        fn resolve(&self, cwd: &str, extra: &[(&str, &str)]) -> Result<StateRoot, Refusal> {
            let home = self.text("home");
            let mut pairs = vec![(EnvVars::HOME, home.as_str())];
            pairs.extend_from_slice(extra);
            StateRoot::resolve(Some(&self.text(cwd)), None, &Env::from_pairs(&pairs))
        }

        /// Every path below, to show that nothing was made or removed.
        fn tree(&self) -> Vec<PathBuf> {
            let mut found = Vec::new();
            let mut open = vec![self.dir.path().to_owned()];
            while let Some(folder) = open.pop() {
                for entry in fs::read_dir(folder).expect("listed") {
                    let entry = entry.expect("an entry");
                    if entry.file_type().expect("a type").is_dir() {
                        open.push(entry.path());
                    }
                    found.push(entry.path());
                }
            }
            found.sort();
            found
        }
    }

    #[test]
    fn the_project_is_the_work_tree_else_the_folder() {
        let repo = ["home/repo/.git/HEAD", "home/repo/vendor/sub/.git", "home/repo/empty/.git/x"];
        let world = World::new(&["home/repo/pkg/deep", "home/repo/vendor/sub/src", "home/plain/deep", "repo/x"], &repo);
        fs::create_dir_all(world.path("repo/.git")).expect("created");
        fs::write(world.path("repo/.git/HEAD"), "").expect("written");
        for (cwd, project, why) in [
            ("home/repo", "home/repo", "the top itself"),
            ("home/repo/pkg/deep", "home/repo", "a folder in it"),
            ("home/repo/vendor/sub/src", "home/repo/vendor/sub", "a submodule or linked work tree has a .git file"),
            ("home/repo/empty", "home/repo", "a .git folder without HEAD is none"),
            ("home/repo/.git", "home/repo", "inside .git"),
            ("home/plain/deep", "home/plain/deep", "no repository"),
            ("repo/x", "repo", "outside of the home folder"),
        ] {
            let found = world.resolve(cwd, &[]).expect(why);
            assert_eq!(found.project_root, world.path(project), "{why}");
            assert_eq!(
                (found.omc_parent, found.omc_name.as_os_str()),
                (world.path(project), OsStr::new(".omc")),
                "{why}"
            );
        }
    }

    #[test]
    fn the_home_folder_and_the_root_hold_no_state_even_as_repositories() {
        let world = World::new(&["home/notes/deep"], &["home/.git/HEAD", "home/.omc-workspace"]);
        assert!(matches!(world.resolve("home", &[]), Err(Refusal::Home)));
        assert!(matches!(world.resolve("home/notes/..", &[]), Err(Refusal::Home)));
        symlink(world.path("home"), world.path("link")).expect("linked");
        assert!(matches!(world.resolve("link", &[]), Err(Refusal::Home)), "by another name");
        let central = world.text("central");
        assert!(matches!(world.resolve("home", &[(EnvVars::OMC_STATE_DIR, &central)]), Err(Refusal::Home)));
        assert_eq!(world.resolve("home/notes/deep", &[]).expect("a project").omc_parent, world.path("home/notes/deep"));
        assert!(matches!(StateRoot::resolve(Some("/"), None, &Env::default()), Err(Refusal::FilesystemRoot)));
        assert!(matches!(StateRoot::resolve(Some("/tmp/.."), None, &Env::default()), Err(Refusal::FilesystemRoot)));
    }

    #[test]
    fn a_home_that_is_a_link_is_recognised() {
        let world = World::new(&["real"], &[]);
        symlink(world.path("real"), world.path("linked-home")).expect("linked");
        let linked = world.text("linked-home");
        assert!(world.resolve("real", &[]).is_ok());
        let env = Env::from_pairs(&[(EnvVars::HOME, &linked)]);
        assert!(matches!(StateRoot::resolve(Some(&world.text("real")), None, &env), Err(Refusal::Home)));
    }

    #[test]
    fn a_folder_that_cannot_be_one_is_refused_and_nothing_is_created() {
        let world = World::new(&[], &["home/file"]);
        let before = world.tree();
        let long = format!("/{}", "a/".repeat(4_000));
        let gone = world.text("home/gone/away");
        let file = world.text("home/file");
        let nul = format!("{}\0", world.text("home"));
        let env = Env::from_pairs(&[(EnvVars::HOME, "/nonexistent")]);
        for (cwd, refused) in [
            (gone.as_str(), "Unreachable"),
            (&format!("{file}/x"), "Unreachable"),
            (&file, "NotAFolder"),
            (&nul, "NotAPath"),
            (&long, "NotAPath"),
            (&format!("/{}", "a".repeat(300)), "Unreachable"),
        ] {
            let refusal = StateRoot::resolve(Some(cwd), None, &env).expect_err(refused);
            assert!(format!("{refusal:?}").starts_with(refused), "{refusal:?} instead of {refused}");
        }
        assert_eq!(world.tree(), before);
    }

    #[test]
    fn without_a_folder_the_processs_own_stands_in_and_relative_ones_start_there() {
        let world = World::new(&["work/sub"], &[]);
        let own = world.path("work");
        for (cwd, project) in [
            (None, "work"),
            (Some(""), "work"),
            (Some("."), "work"),
            (Some("sub"), "work/sub"),
            (Some("sub/.."), "work"),
        ] {
            let found = StateRoot::resolve(cwd, Some(&own), &Env::default()).expect("a project");
            assert_eq!(found.project_root, world.path(project), "{cwd:?}");
        }
        assert!(matches!(StateRoot::resolve(None, None, &Env::default()), Err(Refusal::Unknown)));
        assert!(matches!(StateRoot::resolve(Some("sub"), None, &Env::default()), Err(Refusal::Unknown)));
        assert!(matches!(
            StateRoot::resolve(None, Some(&world.path("gone")), &Env::default()),
            Err(Refusal::Unreachable(_))
        ));
    }

    #[test]
    fn a_link_to_a_work_tree_is_the_work_tree() {
        let world = World::new(&["home/repo/pkg"], &["home/repo/.git/HEAD"]);
        symlink(world.path("home/repo/pkg"), world.path("home/link")).expect("linked");
        assert_eq!(world.resolve("home/link", &[]).expect("a project").omc_parent, world.path("home/repo"));
    }

    #[test]
    fn a_project_that_is_reached_over_a_link_has_its_root_under_both_names() {
        let world =
            World::new(&["home/repo/src/deep", "home/plain", "other/src"], &["home/repo/.git/HEAD", "home/src/secret"]);
        for (target, link) in [
            ("home/repo", "link"),
            ("home", "linked-home"),
            ("home/repo/src", "elsewhere"),
            // Its name is that of the folder behind it, so what is above the two seems to be the same.
            ("home/repo/src", "other/nested"),
            ("home/plain", "plain"),
        ] {
            symlink(world.path(target), world.path(link)).expect("linked");
        }
        fs::remove_dir(world.path("other/src")).expect("removed");
        fs::rename(world.path("other/nested"), world.path("other/src")).expect("renamed");
        for (cwd, names) in [
            ("home/repo", None),
            ("home/repo/src/deep", None),
            ("link", Some(("link", "home/repo"))),
            ("link/", Some(("link", "home/repo"))),
            ("link/src/deep", Some(("link", "home/repo"))),
            ("linked-home/repo/src", Some(("linked-home/repo", "home/repo"))),
            ("plain", Some(("plain", "home/plain"))),
            ("elsewhere", Some(("elsewhere", "home/repo/src"))),
            ("elsewhere/deep", Some(("elsewhere/deep", "home/repo/src/deep"))),
            ("other/src", Some(("other/src", "home/repo/src"))),
            ("link/src/../src", None),
            ("link//src", None),
        ] {
            let found = world.resolve(cwd, &[]).expect("a project").linked;
            let expected =
                names.map(|(written, real)| LinkedFolder { written: world.text(written), canonical: world.text(real) });
            assert_eq!(found, expected, "{cwd}");
        }
    }

    #[test]
    fn a_marker_of_the_users_own_below_home_joins_repositories() {
        let files = [
            "home/ws/.omc-workspace",
            "home/ws/api/.git/HEAD",
            "home/ws/inner/.omc-workspace",
            "outside/.omc-workspace",
        ];
        let world = World::new(&["home/ws/api/src", "home/ws/inner/x", "outside/x"], &files);
        for (cwd, parent, why) in [
            ("home/ws/api/src", "home/ws", "a repository below the marker"),
            ("home/ws", "home/ws", "the marker's own folder"),
            ("home/ws/inner/x", "home/ws/inner", "the nearest one"),
            ("outside/x", "outside/x", "not below the home folder"),
        ] {
            assert_eq!(world.resolve(cwd, &[]).expect(why).omc_parent, world.path(parent), "{why}");
        }
        let found = world.resolve("home/ws/api/src", &[]).expect("a project");
        assert_eq!(found.project_root, world.path("home/ws/api"), "the project stays the repository");
        let off = world.resolve("home/ws/api/src", &[(EnvVars::OMC_DISABLE_MULTIREPO, "1")]).expect("a project");
        assert_eq!(off.omc_parent, world.path("home/ws/api"));
        let on = world.resolve("home/ws/api/src", &[(EnvVars::OMC_DISABLE_MULTIREPO, "0")]).expect("a project");
        assert_eq!(on.omc_parent, world.path("home/ws"));
    }

    #[test]
    fn a_marker_that_is_a_link_or_somebody_elses_joins_nothing() {
        let world = World::new(&["home/a/x", "home/b/x"], &["home/real", "home/b/.omc-workspace"]);
        symlink("../real", world.path("home/a/.omc-workspace")).expect("linked");
        assert_eq!(world.resolve("home/a/x", &[]).expect("a project").omc_parent, world.path("home/a/x"));
        if chown(world.path("home/b/.omc-workspace"), Some(54_321), None).is_ok() {
            assert_eq!(world.resolve("home/b/x", &[]).expect("a project").omc_parent, world.path("home/b/x"));
        }
    }

    #[test]
    fn a_fifo_in_the_place_of_git_or_the_marker_is_neither() {
        let world = World::new(&["home/a/x"], &[]);
        for name in ["home/a/.git", "home/a/.omc-workspace"] {
            rustix::fs::mknodat(rustix::fs::CWD, world.path(name), rustix::fs::FileType::Fifo, 0o600.into(), 0)
                .expect("a FIFO");
        }
        assert_eq!(world.resolve("home/a/x", &[]).expect("a project").omc_parent, world.path("home/a/x"));
    }

    #[test]
    fn the_walk_upwards_is_bounded() {
        let deep = format!("home/repo/{}", "d/".repeat(MAX_LEVELS + 1));
        let world = World::new(&[&deep], &["home/repo/.git/HEAD"]);
        assert_eq!(world.resolve(&deep, &[]).expect("a project").project_root, world.path(deep.trim_end_matches('/')));
    }

    #[test]
    fn a_central_folder_holds_one_directory_a_work_tree() {
        let world = World::new(&["home/r-1/pkg", "home/r-2", "home/ü b.😀", "home/central"], &["home/r-1/.git/HEAD"]);
        let central = world.text("home/central");
        let at = |cwd: &str| world.resolve(cwd, &[(EnvVars::OMC_STATE_DIR, &central)]).expect("a project");
        let (top, below) = (at("home/r-1"), at("home/r-1/pkg"));
        assert_eq!(top.omc_parent, world.path("home/central"));
        assert_eq!(top.project_root, world.path("home/r-1"));
        assert_eq!(top.omc_name, below.omc_name);
        assert_ne!(top.omc_name, at("home/r-2").omc_name);
        let name = at("home/ü b.😀").omc_name.into_string().expect("ASCII");
        let (safe, digest) = name.rsplit_once('-').expect("a digest");
        assert_eq!(safe, "__b___");
        assert!(digest.len() == 16 && digest.bytes().all(|byte| byte.is_ascii_hexdigit()), "{digest}");
    }

    #[test]
    fn a_central_name_is_what_the_original_writes_without_a_remote() {
        // printf %s /home/dev/proj | sha256sum
        assert_eq!(central_name(Path::new("/home/dev/proj")), OsStr::new("proj-bb97ae4cdb5b0dd7"));
    }

    #[test]
    fn neither_a_remote_nor_a_markers_text_can_claim_anothers_central_state() {
        let world = World::new(&["home/a/proj", "home/b/proj"], &["home/a/proj/.git/HEAD", "home/b/proj/.git/HEAD"]);
        for side in ["a", "b"] {
            fs::write(
                world.path(&format!("home/{side}/proj/.git/config")),
                "[remote \"origin\"]\n\turl = https://x.test/r\n",
            )
            .expect("written");
            fs::write(world.path(&format!("home/{side}/proj/.omc-workspace")), "{\"id\": \"victim\"}")
                .expect("written");
        }
        let central = world.text("central");
        let name = |cwd| world.resolve(cwd, &[(EnvVars::OMC_STATE_DIR, &central)]).expect("a project").omc_name;
        assert_ne!(name("home/a/proj"), name("home/b/proj"));
    }

    #[test]
    fn a_long_folder_name_gives_a_name_that_file_systems_take() {
        for name in ["n".repeat(255), "ü".repeat(127)] {
            assert!(central_name(Path::new(&format!("/{name}"))).len() < 255);
        }
    }

    #[test]
    fn a_missing_central_folder_is_created_only_when_asked_and_private() {
        let world = World::new(&["home/p"], &[]);
        let central = world.text("home/not/yet");
        let before = world.tree();
        let found = world.resolve("home/p", &[(EnvVars::OMC_STATE_DIR, &central)]).expect("a project");
        assert_eq!((found.parent, world.tree()), (Parent::Missing, before));
        found.create_parent().expect("created");
        found.create_parent().expect("and again");
        let mode = fs::metadata(&central).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
    }

    #[test]
    fn a_deleted_project_is_not_created_again() {
        let world = World::new(&["home/p"], &[]);
        let found = world.resolve("home/p", &[]).expect("a project");
        fs::remove_dir(world.path("home/p")).expect("removed");
        found.create_parent().expect("nothing to do");
        assert!(!world.path("home/p").exists());
    }

    #[test]
    fn a_state_dir_that_is_no_absolute_folder_is_ignored_or_refused() {
        let world = World::new(&["home/p"], &["home/file"]);
        let found = world.resolve("home/p", &[(EnvVars::OMC_STATE_DIR, "~/state")]).expect("a project");
        assert_eq!((found.omc_parent, found.problems.len()), (world.path("home/p"), 1));
        for place in ["home/file", "home/file/below"] {
            let result = world.resolve("home/p", &[(EnvVars::OMC_STATE_DIR, &world.text(place))]);
            assert!(matches!(result, Err(Refusal::StateDir(_))), "{place}");
        }
    }
}
