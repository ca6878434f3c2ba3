//! `cargo xtask bench`: what an event costs beside starting a process.
//!
//! Times are of whole processes, on real events, in turns with the programs they are compared with: a busy moment hits all alike,
//! and the ratios hold on another machine. `docs/performance.md` has a table of these and says what is left.

use std::fs::{self, File};
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::build::{self, Workspace, executable, run};
use crate::compat;
use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

/// Fewest rounds whose median stands still.
const MIN_ROUNDS: usize = 30;

/// How many guests are installed beside the first-party ones.
const INSTALLED: [usize; 3] = [1, 20, 50];

/// Files of the large project, and how many of them a folder holds.
const LARGE_PROJECT_FILES: usize = 100_000;
const FILES_PER_FOLDER: usize = 500;

/// Size of the long transcript, in bytes: a sparse file with a real end.
const LONG_TRANSCRIPT_BYTES: u64 = 1 << 30;

/// Events that are sent at once.
const AT_ONCE: usize = 16;

/// What is measured: a program, where it runs, and what it is sent.
pub(crate) struct Case {
    group: &'static str,
    pub(crate) name: String,
    pub(crate) program: PathBuf,
    pub(crate) args: &'static [&'static str],
    home: PathBuf,
    project: PathBuf,
    input: Vec<u8>,
    /// Folders that are removed before each run, so that each begins at the same place.
    reset: Vec<PathBuf>,
    /// How many run at once; the time is that of all together.
    pub(crate) at_once: usize,
    times: Vec<Duration>,
    /// The largest resident set of one process, in bytes.
    peak_bytes: u64,
}

impl Case {
    fn start(&self) -> Result<Child> {
        let mut command = Command::new(&self.program);
        command.args(self.args).stdout(Stdio::null()).stderr(Stdio::null());
        self.spawn(&mut command)
    }

    /// Starts a command where the case runs, with its event still to come.
    fn spawn(&self, command: &mut Command) -> Result<Child> {
        command.env_clear().env("HOME", &self.home).current_dir(&self.project);
        command.envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
        command.stdin(Stdio::piped());
        command.spawn().with_context(|| format!("failed to start {command:?}"))
    }

    /// Runs another command in the place of the program, on the same event, and returns what it prints.
    pub(crate) fn run_as(&self, mut command: Command) -> Result<String> {
        let mut child = self.spawn(command.stdout(Stdio::piped()).stderr(Stdio::null()))?;
        // A program that reads nothing has closed it.
        drop(child.stdin.take().context("the program has no standard input")?.write_all(&self.input));
        let output = child.wait_with_output()?;
        if !output.status.success() {
            bail!("it ended with {} on {}", output.status, self.name);
        }
        Ok(String::from_utf8(output.stdout)?)
    }

    /// Runs once, and remembers how long it took.
    pub(crate) fn run(&mut self) -> Result<()> {
        self.start_anew()?;
        let began = Instant::now();
        let mut running = Vec::with_capacity(self.at_once);
        for _ in 0..self.at_once {
            let mut child = self.start()?;
            let mut stdin = child.stdin.take().context("the program has no standard input")?;
            if self.at_once == 1 {
                // A program that reads nothing has closed it.
                drop(stdin.write_all(&self.input));
            } else {
                let input = self.input.clone();
                std::thread::spawn(move || drop(stdin.write_all(&input)));
            }
            running.push(child);
        }
        for mut child in running {
            let status = child.wait()?;
            if !status.success() {
                bail!("`{}` ended with {status} on {}", self.program.display(), self.name);
            }
        }
        self.times.push(began.elapsed());
        Ok(())
    }

    /// Runs once more, and remembers how much memory it had. `peak` is the program that measures it.
    fn measure_peak(&mut self, peak: &Path) -> Result<()> {
        self.start_anew()?;
        let mut command = Command::new(peak);
        command.arg(&self.program).args(self.args);
        self.peak_bytes = self.run_as(command)?.parse().context("no peak was measured")?;
        Ok(())
    }

    /// Removes what is to be removed before a run.
    fn start_anew(&self) -> Result<()> {
        for folder in &self.reset {
            if folder.exists() {
                fs::remove_dir_all(folder).with_context(|| format!("failed to remove `{}`", folder.display()))?;
            }
        }
        Ok(())
    }

    /// The median time in milliseconds.
    fn median_ms(&self) -> f64 {
        let mut times = self.times.clone();
        times.sort_unstable();
        times[times.len() / 2].as_secs_f64() * 1_000.0
    }
}

/// The folder in which everything happens, and the host.
pub(crate) struct World {
    folder: tempfile::TempDir,
    host: PathBuf,
}

impl World {
    pub(crate) fn new(host: PathBuf) -> Result<Self> {
        Ok(Self { folder: tempfile::tempdir().context("failed to create a scratch folder")?, host })
    }

    /// A home folder of this name.
    fn home(&self, name: &str) -> Result<PathBuf> {
        let home = self.folder.path().join("homes").join(name);
        fs::create_dir_all(&home)?;
        Ok(home)
    }

    /// A project of this name: a git work tree with a few files.
    fn project(&self, name: &str) -> Result<PathBuf> {
        let project = self.folder.path().join("projects").join(name);
        for folder in [".git", "src"] {
            fs::create_dir_all(project.join(folder))?;
        }
        fs::write(project.join(".git/HEAD"), "ref: refs/heads/main\n")?;
        fs::write(project.join("Cargo.toml"), "[package]\nname = \"bench\"\nversion = \"0.1.0\"\n")?;
        fs::write(project.join("src/lib.rs"), "pub fn one() -> u32 {\n    1\n}\n")?;
        Ok(project)
    }

    /// A program that is no host.
    fn program(&self, name: &str, program: &Path, args: &'static [&'static str]) -> Result<Case> {
        Ok(Case {
            group: "beside",
            name: name.to_owned(),
            program: program.to_path_buf(),
            args,
            home: self.home("plain")?,
            project: self.project("plain")?,
            input: b"{}".to_vec(),
            reset: Vec::new(),
            at_once: 1,
            times: Vec::new(),
            peak_bytes: 0,
        })
    }

    /// An event in a project of its own.
    fn event(&self, group: &'static str, name: &str, event: &str, more: &Value) -> Result<Case> {
        let plain = format!("{group}-{name}").replace(|letter: char| !letter.is_ascii_alphanumeric(), "-");
        let project = self.project(&plain)?;
        let transcript = project.join("transcript.jsonl");
        if !transcript.exists() {
            fs::write(&transcript, TRANSCRIPT_END)?;
        }
        let mut payload = json!({
            "hook_event_name": event, "session_id": "bench", "cwd": project, "transcript_path": transcript,
            "permission_mode": "default",
        });
        if let (Some(payload), Some(more)) = (payload.as_object_mut(), more.as_object()) {
            payload.extend(more.clone());
        }
        let host = self.host.clone();
        Ok(Case {
            group,
            args: &["hook", "--agent", "claude"],
            project,
            input: payload.to_string().into_bytes(),
            ..self.program(name, &host, &[])?
        })
    }

    /// Adds a guest for the user with this home.
    fn add_guest(&self, home: &Path, guest: &Path) -> Result<()> {
        let mut host = Command::new(&self.host);
        host.args(["guests", "add"])
            .arg(guest)
            .arg("--yes")
            .env("HOME", home)
            .stdout(Stdio::null())
            .stdin(Stdio::null());
        run(&mut host)
    }
}

/// What a transcript ends with: the fill of the context.
const TRANSCRIPT_END: &str = concat!(
    r#"{"type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":"done"}],"#,
    r#""usage":{"input_tokens":1200,"cache_read_input_tokens":30000,"output_tokens":300}}}"#,
    "\n"
);

/// Measures everything and writes a table and `bench.json` in the target folder.
pub(crate) fn run_all(rounds: usize) -> Result<()> {
    if rounds < MIN_ROUNDS {
        bail!("the median of {rounds} runs says nothing; use at least {MIN_ROUNDS}");
    }
    let host = build::release()?;
    let workspace = Workspace::find()?;
    let guests = build::guests(&workspace)?;
    run(workspace.cargo(None).args(["build", "--release", "--package", "xtask", "--examples"]))?;
    let example = |name| workspace.target.join("release/examples").join(executable(name));
    let (noop, peak) = (example("noop"), example("peak"));
    let world = World::new(host)?;

    note("preparing projects and guests")?;
    let mut cases = vec![world.program("a program that reads its input and prints {}", &noop, &[])?];
    if runs("node") {
        cases.push(world.program("node -e 0", Path::new("node"), &["-e", "0"])?);
    }
    cases.extend(events(&world)?);
    cases.extend(first_events(&world)?);
    cases.extend(installed(&world, &guests.wasm.join("workflow_drift_guard.wasm"))?);
    cases.extend(languages(&world, &workspace.root)?);
    cases.extend(sizes(&world)?);

    for round in 0..rounds {
        note(&format!("round {} of {rounds}", round + 1))?;
        for case in &mut cases {
            case.run()?;
        }
    }
    for case in cases.iter_mut().filter(|case| case.at_once == 1) {
        case.measure_peak(&peak)?;
    }
    report(&cases, rounds, &world.host, &workspace.target)
}

/// Every kind of event that comes often, with all first-party guests.
pub(crate) fn events(world: &World) -> Result<Vec<Case>> {
    const GROUP: &str = "event";
    let read = json!({
        "tool_name": "Read", "tool_input": { "file_path": "src/lib.rs" },
        "tool_response": { "type": "text", "file": { "filePath": "src/lib.rs", "content": "pub fn one() -> u32 {\n    1\n}\n" } },
    });
    let bash = json!({ "tool_name": "Bash", "tool_input": { "command": "ls src" } });
    let held = world.event(GROUP, "Stop in ralph, refused", "Stop", &json!({ "stop_hook_active": false }))?;
    start_ralph(world, &held)?;
    let at_work = world.event(GROUP, "PostToolUse Read in ralph", "PostToolUse", &read)?;
    start_ralph(world, &at_work)?;
    Ok(vec![
        world.event(GROUP, "Notification, no guest", "Notification", &json!({ "message": "idle" }))?,
        world.event(
            GROUP,
            "UserPromptSubmit",
            "UserPromptSubmit",
            &json!({ "prompt": "please look at the parser" }),
        )?,
        world.event(
            GROUP,
            "UserPromptSubmit ralph",
            "UserPromptSubmit",
            &json!({ "prompt": "ralph fix src/lib.rs" }),
        )?,
        world.event(GROUP, "PreToolUse Bash", "PreToolUse", &bash)?,
        world.event(GROUP, "PostToolUse Read", "PostToolUse", &read)?,
        at_work,
        world.event(GROUP, "Stop", "Stop", &json!({ "stop_hook_active": false, "last_assistant_message": "done" }))?,
        held,
        world.event(GROUP, "SessionStart", "SessionStart", &json!({ "source": "startup" }))?,
        world.event(GROUP, "SessionEnd", "SessionEnd", &json!({ "reason": "other" }))?,
        Case { at_once: AT_ONCE, ..world.event(GROUP, "16 × PostToolUse Read at once", "PostToolUse", &read)? },
    ])
}

/// Turns ralph on in the project of a case, as the user and the model do.
fn start_ralph(world: &World, case: &Case) -> Result<()> {
    let events = [
        ("UserPromptSubmit", json!({ "prompt": "ralph fix src/lib.rs" })),
        ("PreToolUse", json!({ "tool_name": "Skill", "tool_input": { "skill": "omc:ralph" } })),
    ];
    for (event, more) in events {
        let mut step = world.event("prepare", "ralph", event, &more)?;
        step.input = String::from_utf8(step.input)?
            .replace(&step.project.display().to_string(), &case.project.display().to_string())
            .into_bytes();
        step.project.clone_from(&case.project);
        step.run()?;
    }
    Ok(())
}

/// The first event after installation, beside a later one.
fn first_events(world: &World) -> Result<Vec<Case>> {
    let bash = json!({ "tool_name": "Bash", "tool_input": { "command": "ls src" } });
    let mut first = world.event("first", "PreToolUse, nothing there yet", "PreToolUse", &bash)?;
    first.home = world.home("first")?;
    first.reset = vec![first.home.join(".local"), first.home.join(".cache"), first.project.join(".omc")];
    let later = world.event("first", "PreToolUse, later", "PreToolUse", &bash)?;
    Ok(vec![first, later])
}

/// Guests of others, which want this event or another.
fn installed(world: &World, guest: &Path) -> Result<Vec<Case>> {
    let component = fs::read(guest).with_context(|| format!("failed to read `{}`", guest.display()))?;
    let idle = json!({ "message": "idle" });
    let mut cases = vec![world.event("installed", "none", "Notification", &idle)?];
    for (wanted, what) in [("file-changed", "not matching"), ("notification", "matching")] {
        for count in INSTALLED {
            let name = format!("{count} {what}");
            let mut case = world.event("installed", &name, "Notification", &idle)?;
            case.home = world.home(&name.replace(' ', "-"))?;
            for number in 0..count {
                let manifest = json!({
                    "name": format!("extra-{number}"), "version": "0.1.0", "description": "One more guest",
                    "subscriptions": [{ "event": wanted }],
                });
                let file = world.folder.path().join("extra.wasm");
                fs::write(&file, with_manifest(&component, &manifest.to_string())?)?;
                world.add_guest(&case.home, &file)?;
            }
            cases.push(case);
        }
    }
    Ok(cases)
}

/// The same guest in three languages, from the frozen ones of the tests.
fn languages(world: &World, root: &Path) -> Result<Vec<Case>> {
    let bash = json!({ "tool_name": "Bash", "tool_input": { "command": "ls src" } });
    let mut cases = Vec::new();
    for language in ["rust", "js", "python"] {
        let guest = world.folder.path().join(language).with_extension("wasm");
        compat::unpack(&root.join(format!("tests/compat/0.1.0-{language}.wasm.xz")), &guest)?;
        let mut case = world.event("language", language, "PreToolUse", &bash)?;
        case.home = world.home(language)?;
        world.add_guest(&case.home, &guest)?;
        cases.push(case);
    }
    Ok(cases)
}

/// Large payloads, transcripts and projects.
fn sizes(world: &World) -> Result<Vec<Case>> {
    let mut cases = Vec::new();
    for (name, bytes) in [("1 KB", 1_000), ("1 MB", 1_000_000), ("10 MB", 10_000_000)] {
        let result = json!({
            "tool_name": "Bash", "tool_input": { "command": "make" },
            "tool_response": { "stdout": "All is well so far.\n".repeat(bytes / 20), "stderr": "" },
        });
        cases.push(world.event("payload", name, "PostToolUse", &result)?);
    }
    let stop = json!({ "stop_hook_active": false, "last_assistant_message": "done" });
    cases.push(world.event("transcript", "200 bytes", "Stop", &stop)?);
    let long = world.event("transcript", "1 GB", "Stop", &stop)?;
    let mut file = File::create(long.project.join("transcript.jsonl"))?;
    file.seek(SeekFrom::Start(LONG_TRANSCRIPT_BYTES))?;
    file.write_all(format!("\n{TRANSCRIPT_END}").as_bytes())?;
    cases.push(long);

    let start = json!({ "source": "startup" });
    let mut small = world.event("project", "3 files, first look", "SessionStart", &start)?;
    small.reset = vec![small.project.join(".omc")];
    let mut large = world.event("project", "100,000 files, first look", "SessionStart", &start)?;
    for number in 0..LARGE_PROJECT_FILES {
        let folder = large.project.join(format!("src/part{}", number / FILES_PER_FOLDER));
        if number % FILES_PER_FOLDER == 0 {
            fs::create_dir_all(&folder)?;
        }
        File::create(folder.join(format!("module{number}.rs")))?;
    }
    large.reset = vec![large.project.join(".omc")];
    cases.extend([small, large]);
    Ok(cases)
}

/// A component with another manifest: the section of the outermost component counts.
fn with_manifest(component: &[u8], manifest: &str) -> Result<Vec<u8>> {
    const NAME: &str = "omc:manifest";
    let mut section = vec![u8::try_from(NAME.len())?];
    section.extend(NAME.bytes());
    section.extend(manifest.bytes());
    let mut bytes = component.to_vec();
    // A custom section: 0, its length as LEB128, its name, its content.
    bytes.push(0);
    let mut length = section.len();
    while length >= 0x80 {
        bytes.push(u8::try_from(length & 0x7f)? | 0x80);
        length >>= 7;
    }
    bytes.push(u8::try_from(length)?);
    bytes.extend(section);
    Ok(bytes)
}

fn runs(program: &str) -> bool {
    Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
}

fn note(text: &str) -> Result<()> {
    writeln!(std::io::stderr(), "bench: {text}").context("failed to write to standard error")
}

/// Writes the table for people to standard output, and the figures for programs beside the build.
fn report(cases: &[Case], rounds: usize, host: &Path, target: &Path) -> Result<()> {
    let base = cases[0].median_ms();
    let node = cases.iter().find(|case| case.name.starts_with("node")).map(Case::median_ms);
    let mut out = std::io::stdout();
    writeln!(
        out,
        "| | whole process, median of {rounds} | ms | × {{}} | % of node | peak MB |\n|---|---|---|---|---|---|"
    )?;
    let mut figures = Vec::new();
    for case in cases {
        let (ms, bytes) = (case.median_ms(), case.peak_bytes);
        let of_node = node.map_or_else(String::new, |node| format!("{:.0}", ms / node * 100.0));
        let (ratio, megabytes) = (ms / base, as_megabytes(bytes));
        writeln!(out, "| {} | {} | {ms:.2} | {ratio:.2} | {of_node} | {megabytes:.1} |", case.group, case.name)?;
        figures.push(json!({
            "group": case.group, "name": case.name, "median-ms": ms, "ratio": ratio, "peak-bytes": bytes,
            "input-bytes": case.input.len(), "at-once": case.at_once,
        }));
    }
    let binary = fs::metadata(host)?.len();
    writeln!(out, "\nomc-host has {:.1} MB.", as_megabytes(binary))?;
    let file = target.join("bench.json");
    let all = json!({ "rounds": rounds, "binary-bytes": binary, "cases": figures });
    fs::write(&file, serde_json::to_vec_pretty(&all)?)?;
    writeln!(out, "The same as JSON: `{}`.", file.display())?;
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "a size for people")]
fn as_megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}
