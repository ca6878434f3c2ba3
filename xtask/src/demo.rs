//! What a newcomer sees first, and how fast it is: both run the real host on a scratch project.

use std::ffi::OsStr;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

use crate::build::{self, Workspace, executable, run as run_command};

/// A project and a home folder that nobody else uses.
struct Scratch {
    folder: tempfile::TempDir,
    host: PathBuf,
}

impl Scratch {
    fn new(host: PathBuf) -> Result<Self> {
        let folder = tempfile::tempdir().context("failed to create a scratch folder")?;
        for name in ["project", "home"] {
            fs::create_dir(folder.path().join(name))?;
        }
        Ok(Self { folder, host })
    }

    fn project(&self) -> PathBuf {
        self.folder.path().join("project")
    }

    /// The host, with nothing of the caller's surroundings but its PATH.
    fn host(&self, args: &[&str]) -> Command {
        let mut host = Command::new(&self.host);
        host.args(args).env_clear().env("HOME", self.folder.path().join("home")).current_dir(self.project());
        host.envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
        host
    }

    /// Sends an event as the agent does and returns the answer.
    fn send(&self, event: &Value) -> Result<String> {
        feed(self.host(&["hook", "--agent", "claude"]), event.to_string().as_bytes())
    }

    /// An event of this project.
    fn event(&self, name: &str, more: &Value) -> Value {
        let mut event = json!({ "hook_event_name": name, "session_id": "demo", "cwd": self.project() });
        if let (Some(event), Some(more)) = (event.as_object_mut(), more.as_object()) {
            event.extend(more.clone());
        }
        event
    }
}

/// Writes to a program's standard input and returns what it prints.
fn feed(mut program: Command, input: &[u8]) -> Result<String> {
    let mut child = program
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("failed to start {program:?}"))?;
    child.stdin.take().context("the program has no standard input")?.write_all(input)?;
    let output = child.wait_with_output()?;
    if !output.status.success() {
        bail!("{program:?} ended with {}", output.status);
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// Builds everything and shows the main job: a keyword turns into an answer, and the agent may not stop before it is done.
pub(crate) fn run() -> Result<()> {
    let scratch = Scratch::new(build::release()?)?;
    let prompt = "ralph fix the login in src/login.rs";
    let steps = [
        ("The user asks for a mode by its keyword", "UserPromptSubmit", json!({ "prompt": prompt })),
        (
            "The model starts the mode with its Skill tool, which confirms it",
            "PreToolUse",
            json!({ "tool_name": "Skill", "tool_input": { "skill": "omc:ralph" } }),
        ),
        ("The model wants to stop, and is refused", "Stop", json!({ "stop_hook_active": false })),
        ("It tries again, and the count goes up", "Stop", json!({ "stop_hook_active": true })),
        ("The user cancels", "UserPromptSubmit", json!({ "prompt": "/omc:cancel" })),
        ("Now it may stop: no bytes mean no objection", "Stop", json!({ "stop_hook_active": true })),
    ];
    let mut out = std::io::stdout();
    for (title, name, more) in steps {
        let event = scratch.event(name, &more);
        writeln!(out, "\n# {title}\n> {}", json!({ "hook_event_name": name, "…": more }))?;
        let answer = scratch.send(&event)?;
        if answer.trim().is_empty() {
            writeln!(out, "< (nothing)")?;
        } else {
            let answer: Value = serde_json::from_str(&answer).context("the host's answer is not JSON")?;
            writeln!(out, "< {answer:#}")?;
        }
    }
    writeln!(out, "\n# What the trail says (`omc-host log`)")?;
    let trail = scratch.host(&["log"]).output()?;
    out.write_all(&trail.stdout)?;
    writeln!(out, "\nThe host is `{}`. Next: README.md, \"Use it\".", scratch.host.display())?;
    Ok(())
}

/// Runs of each program, in turns, so that a busy moment hits all alike.
const RUNS: usize = 51;

/// Compares whole processes: a program that reads standard input and prints `{}`, and the host on real events.
pub(crate) fn bench() -> Result<()> {
    let scratch = Scratch::new(build::release()?)?;
    let workspace = Workspace::find()?;
    run_command(workspace.cargo(None).args(["build", "--release", "--package", "xtask", "--example", "noop"]))?;
    let noop = workspace.target.join("release/examples").join(executable("noop"));

    let cases = [
        (
            "no guest matches",
            scratch.event("Notification", &json!({ "message": "idle", "notification_type": "idle_prompt" })),
        ),
        (
            "prompt without a keyword",
            scratch.event("UserPromptSubmit", &json!({ "prompt": "please look at the parser" })),
        ),
        ("prompt with a keyword", scratch.event("UserPromptSubmit", &json!({ "prompt": "ralph fix src/a.rs" }))),
        (
            "tool without an active mode",
            scratch.event("PreToolUse", &json!({ "tool_name": "Bash", "tool_input": { "command": "ls" } })),
        ),
        ("stop without an active mode", scratch.event("Stop", &json!({ "session_id": "other" }))),
    ];
    let mut times: Vec<Vec<Duration>> = vec![Vec::new(); cases.len() + 1];
    for _ in 0..RUNS {
        times[0].push(timed(|| feed(Command::new(&noop), b"{}"))?);
        for (place, (_, event)) in cases.iter().enumerate() {
            times[place + 1].push(timed(|| scratch.send(event))?);
        }
    }
    let medians: Vec<_> = times.iter_mut().map(|times| median(times)).collect();
    let names = ["native program: reads stdin, prints {}"].into_iter().chain(cases.iter().map(|(name, _)| *name));
    let mut out = std::io::stdout();
    writeln!(out, "| whole process, median of {RUNS} | ms | ratio |\n|---|---|---|")?;
    for (name, time) in names.zip(&medians) {
        let ratio = time.as_secs_f64() / medians[0].as_secs_f64();
        writeln!(out, "| {name} | {:.2} | {ratio:.1} |", time.as_secs_f64() * 1_000.0)?;
    }
    let size = size_of(&scratch.host)?;
    writeln!(out, "\n`{}` has {:.1} MB.", scratch.host.file_name().and_then(OsStr::to_str).unwrap_or_default(), size)?;
    Ok(())
}

fn timed<T>(work: impl FnOnce() -> Result<T>) -> Result<Duration> {
    let began = Instant::now();
    work()?;
    Ok(began.elapsed())
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

#[expect(clippy::cast_precision_loss, reason = "a size for people")]
fn size_of(path: &Path) -> Result<f64> {
    Ok(fs::metadata(path)?.len() as f64 / 1e6)
}
