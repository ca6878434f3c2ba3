//! A scratch world for one test, and the real host in it.
//!
//! A world is a temporary folder with a `project` (with enough of `.git` to be one), a `home` and an `outside` that is nobody's
//! business. The host runs in the project with an emptied environment. Guests of others are added by the real command, once for
//! each combination in a test process, because compiling takes longer than all the rest; worlds get copies of that home.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde::Deserialize;
use tempfile::TempDir;

/// Longest time for one run of the host. It answers within 2.5 s; the rest is for a machine with other work.
const LIMIT: Duration = Duration::from_secs(10);

/// Length of a world's path: texts that name it are cut at the same place on every machine. Long enough for most machines' folder
/// for temporary files, and short enough for the path of a socket.
const ROOT_LENGTH: usize = 72;

/// Length of the random end of a world's path.
const RANDOM_LENGTH: usize = 6;

/// How often a run is looked at.
const LOOK: Duration = Duration::from_millis(1);

/// A guest of somebody else, and what the person grants it.
#[derive(Clone, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd)]
#[serde(deny_unknown_fields)]
pub(crate) struct Guest {
    /// Its component's name.
    pub(crate) name: String,
    /// Arguments of `--grant`.
    #[serde(default)]
    pub(crate) grants: Vec<String>,
}

/// A scratch world. It is gone when it is dropped.
pub(crate) struct World {
    root: PathBuf,
    _dir: TempDir,
}

impl World {
    /// A world in which these guests have been added.
    pub(crate) fn new(guests: &[Guest]) -> Self {
        let world = Self::without_guests();
        for (path, mode, bytes) in home_with(guests).iter() {
            write(&world.home().join(path), *mode, bytes);
        }
        world
    }

    fn without_guests() -> Self {
        let temporary = std::env::temp_dir().canonicalize().expect("there is a folder for temporary files");
        let padding = ROOT_LENGTH.saturating_sub(temporary.as_os_str().len() + "/".len() + RANDOM_LENGTH);
        let prefix = "w".repeat(padding);
        let dir = tempfile::Builder::new().prefix(&prefix).rand_bytes(RANDOM_LENGTH).tempdir_in(temporary);
        let dir = dir.expect("a temporary folder");
        let world = Self { root: dir.path().to_owned(), _dir: dir };
        for folder in ["home", "outside"] {
            create_dirs(&world.path(folder));
        }
        write(&world.path("project/.git/HEAD"), 0o600, b"ref: refs/heads/main\n");
        world
    }

    /// A path in the world.
    pub(crate) fn path(&self, relative: &str) -> PathBuf {
        self.root.join(relative)
    }

    /// The project that is worked on.
    pub(crate) fn project(&self) -> PathBuf {
        self.path("project")
    }

    /// The user's home.
    pub(crate) fn home(&self) -> PathBuf {
        self.path("home")
    }

    /// A command line of the host.
    pub(crate) fn host<A: AsRef<std::ffi::OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Command {
        let mut command = Command::new(host());
        command.args(args).current_dir(self.project()).env_clear().env("HOME", self.home());
        command.env("OMC_SKIP_HOOKS", others());
        if let Some(path) = std::env::var_os("PATH") {
            command.env("PATH", path);
        }
        command
    }

    /// Lets the host forget which guests fault again and again.
    #[allow(dead_code, reason = "not every test needs it")]
    pub(crate) fn forget_faults(&self) {
        // None have been counted if it is not there.
        drop(fs::remove_file(self.path("home/.local/state/omc-host/faults.json")));
    }

    /// The audit trail; empty if there is none.
    #[allow(dead_code, reason = "not every test needs it")]
    pub(crate) fn trail(&self) -> String {
        fs::read_to_string(self.path("home/.local/state/omc-host/trail.jsonl")).unwrap_or_default()
    }
}

/// The real host. Tests of another package find it where cargo puts every program of the workspace.
fn host() -> PathBuf {
    let beside = || Some(std::env::current_exe().ok()?.parent()?.with_file_name("omc-host"));
    option_env!("CARGO_BIN_EXE_omc-host").map(PathBuf::from).or_else(beside).expect("this test is a file in a folder")
}

/// The host's own guests that take part in these tests.
const TAKING_PART: [&str; 2] = ["keyword-detector", "persistent-mode"];

/// The host's own guests that take no part, as `OMC_SKIP_HOOKS` names them: they have tests of their own, and what they say and
/// write would be in every expectation here.
pub(crate) fn others() -> String {
    let guests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../guests");
    let folders =
        fs::read_dir(guests).expect("the guests have a folder").map(|entry| entry.expect("an entry").file_name());
    let mut names: Vec<_> = folders.filter_map(|name| name.into_string().ok()).collect();
    names.retain(|name| !TAKING_PART.contains(&name.as_str()));
    names.sort();
    names.join(",")
}

/// What a run of the host came to.
pub(crate) struct Run {
    /// The exit status; absent if a signal ended it.
    pub(crate) code: Option<i32>,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
    #[allow(dead_code, reason = "not every test needs it")]
    pub(crate) took: Duration,
}

/// A run under way.
pub(crate) struct Running {
    pub(crate) child: Child,
    began: Instant,
    limit: Duration,
    stdout: JoinHandle<Vec<u8>>,
    stderr: JoinHandle<Vec<u8>>,
}

impl Running {
    /// Starts a command and gives it `stdin`.
    pub(crate) fn start(command: Command, stdin: Vec<u8>) -> Self {
        Self::start_slowly(command, vec![stdin], Duration::ZERO)
    }

    /// Starts a command and gives it standard input piece by piece, with a pause between two.
    pub(crate) fn start_slowly(mut command: Command, pieces: Vec<Vec<u8>>, pause: Duration) -> Self {
        let began = Instant::now();
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap_or_else(|error| panic!("failed to start {command:?}: {error}"));
        let mut pipe = child.stdin.take().expect("standard input is a pipe");
        thread::spawn(move || {
            for (place, piece) in pieces.iter().enumerate() {
                if place > 0 {
                    thread::sleep(pause);
                }
                // A host that has what it needs, or was killed, need not read the rest.
                if pipe.write_all(piece).is_err() {
                    return;
                }
            }
        });
        let stdout = read_all(child.stdout.take().expect("standard output is a pipe"));
        let stderr = read_all(child.stderr.take().expect("standard error is a pipe"));
        Self { child, began, limit: LIMIT, stdout, stderr }
    }

    /// Lets it take longer than an event may: it compiles a whole language.
    #[allow(dead_code, reason = "not every test needs it")]
    pub(crate) fn within(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Waits for its end; fails the test if that takes too long.
    pub(crate) fn finish(mut self) -> Run {
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("a child can be waited for") {
                break status;
            }
            if self.began.elapsed() > self.limit {
                let limit = self.limit;
                self.kill();
                panic!("the host was not done within {limit:?}");
            }
            thread::sleep(LOOK);
        };
        let took = self.began.elapsed();
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        let read = |reader: JoinHandle<Vec<u8>>| reader.join().expect("reading a pipe does not panic");
        Run { code: status.code(), stdout: read(self.stdout), stderr: text(read(self.stderr)), took }
    }

    /// Ends it with SIGKILL.
    pub(crate) fn kill(mut self) {
        // It may have ended by itself.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn read_all(mut pipe: impl Read + Send + 'static) -> JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        drop(pipe.read_to_end(&mut bytes));
        bytes
    })
}

/// Writes a file with a mode, and the folders that it needs for the user alone.
pub(crate) fn write(path: &Path, mode: u32, bytes: &[u8]) {
    create_dirs(path.parent().expect("a path in the world has a parent"));
    let file = fs::File::options().write(true).create(true).truncate(true).mode(mode).open(path);
    let written = file.and_then(|mut file| file.write_all(bytes));
    written.unwrap_or_else(|error| panic!("failed to write `{}`: {error}", path.display()));
}

/// Creates a folder and those above it, for the user alone.
pub(crate) fn create_dirs(path: &Path) {
    let created = fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
    created.unwrap_or_else(|error| panic!("failed to create `{}`: {error}", path.display()));
}

/// The component of a guest.
pub(crate) fn component(name: &str) -> PathBuf {
    from_env("OMC_TEST_WASM_DIR").join(name.replace('-', "_")).with_extension("wasm")
}

/// The ahead-of-time compiler.
pub(crate) fn compiler() -> PathBuf {
    from_env("OMC_TEST_COMPILER")
}

pub(crate) fn from_env(name: &str) -> PathBuf {
    let value = std::env::var_os(name);
    value.unwrap_or_else(|| panic!("`{name}` is not set: run these tests with `cargo xtask test`")).into()
}

/// The files of a home: path, mode, bytes. In memory, so that nothing of it is left on the disk.
type Home = Vec<(PathBuf, u32, Vec<u8>)>;

/// A home in which these guests have been added.
fn home_with(guests: &[Guest]) -> Arc<Home> {
    static HOMES: Mutex<BTreeMap<Vec<Guest>, Arc<Home>>> = Mutex::new(BTreeMap::new());

    // Held while a guest is compiled, so that others who want the same wait for it. One that failed fails again.
    let mut homes = HOMES.lock().unwrap_or_else(PoisonError::into_inner);
    let home = homes.entry(guests.to_vec()).or_insert_with(|| {
        let world = World::without_guests();
        for guest in guests {
            let mut command = world.host(["guests", "add"]);
            command.arg(component(&guest.name)).args(["--yes", "--compiler"]).arg(compiler());
            command.args(guest.grants.iter().flat_map(|grant| ["--grant", grant]));
            let run = Running::start(command, Vec::new()).finish();
            assert_eq!(run.code, Some(0), "failed to add `{}`: {}", guest.name, run.stderr);
        }
        let mut home = Home::new();
        collect(&world.home(), Path::new(""), &mut home);
        Arc::new(home)
    });
    Arc::clone(home)
}

fn collect(root: &Path, below: &Path, home: &mut Home) {
    for entry in fs::read_dir(root.join(below)).expect("a home can be listed") {
        let entry = entry.expect("a home can be listed");
        let (path, about) = (below.join(entry.file_name()), entry.metadata().expect("a home is nobody else's"));
        if about.is_dir() {
            collect(root, &path, home);
        } else {
            home.push((path, about.mode() & 0o777, fs::read(entry.path()).expect("a home can be read")));
        }
    }
}

/// Runs a command of the host to its end.
#[allow(dead_code, reason = "not every test needs it")]
pub(crate) fn run<'a>(world: &World, args: impl IntoIterator<Item = &'a str>) -> Run {
    Running::start(world.host(args), Vec::new()).finish()
}

/// What a command prints; it must succeed.
#[allow(dead_code, reason = "not every test needs it")]
pub(crate) fn printed<'a>(world: &World, args: impl IntoIterator<Item = &'a str>) -> String {
    let run = run(world, args);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    String::from_utf8(run.stdout).expect("UTF-8")
}
