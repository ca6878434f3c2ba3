//! What a newcomer sees first: the real host on a scratch project.

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

use crate::build;

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
