//! An event through the very program that an agent's hooks name, started as that agent starts it.
//!
//! In a scratch project with a scratch home, so that it changes nothing: what it shows is that the program starts, answers, and
//! answers in time. Without a hook this program itself is asked.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

use super::{Finding, Patient};
use crate::hooks_file::{self, Registered, ours};
use crate::protocol::event::Agent;
use crate::setup::{AGENTS, Places, files, title};

/// An answer that takes longer is worth a word: a person notices it.
const SLOW: Duration = Duration::from_millis(300);

/// The event whose hook is tried: every agent has it, and a guest of ours answers it.
const EVENT: &str = "UserPromptSubmit";

pub(super) fn canary(patient: &Patient<'_>) -> Vec<Finding> {
    let registered = AGENTS.into_iter().filter_map(|agent| Some((agent, handler(agent, patient)?)));
    let mut tries: Vec<(Agent, Option<Value>)> = registered.map(|(agent, handler)| (agent, Some(handler))).collect();
    if tries.is_empty() {
        tries.push((Agent::Claude, None));
    }
    let one = |(agent, handler): (Agent, Option<Value>)| {
        let whose =
            handler.as_ref().map_or_else(|| "this program".to_owned(), |_| format!("the hook of {}", title(agent)));
        match sing(agent, handler.as_ref(), patient.program) {
            Ok(took) if took > SLOW => Finding::note(format!(
                "{whose} answers an event, in {} ms: slow; see `omc-host bench`",
                took.as_millis()
            )),
            Ok(took) => Finding::ok(format!("{whose} answers an event, in {} ms", took.as_millis())),
            Err(error) => Finding::problem(
                format!("{whose} does not answer an event: {error:#}"),
                "run its command by hand with an event on standard input (`omc-host hook --help` has one)",
            ),
        }
    };
    tries.into_iter().map(one).collect()
}

/// Our handler for the event in the agent's own file.
fn handler(agent: Agent, patient: &Patient<'_>) -> Option<Value> {
    let places = Places::of_user(agent, patient.paths)?;
    let (_, text) = files::text(&places.hooks, &files::read(&places.hooks).ok()??).ok()?;
    let handlers = hooks_file::handlers(&places.hooks, &text, agent).ok()?;
    let mut ours =
        handlers.into_iter().filter(|found| found.event == EVENT && ours::program_of(&found.handler).is_some());
    ours.next().map(|Registered { handler, .. }| handler)
}

/// Sends the event and looks at the answer. Returns how long it took.
fn sing(agent: Agent, handler: Option<&Value>, program: &str) -> Result<Duration> {
    let scratch = tempfile::tempdir().context("failed to create a scratch project")?;
    for folder in ["home", "project/.git"] {
        fs::create_dir_all(scratch.path().join(folder))?;
    }
    fs::write(scratch.path().join("project/.git/HEAD"), "ref: refs/heads/main\n")?;
    let event = json!({
        "hook_event_name": EVENT,
        "session_id": "canary",
        "cwd": scratch.path().join("project"),
        "prompt": "ralph fix the login in src/login.rs",
    });
    let began = Instant::now();
    let mut child = command(agent, handler, program, scratch.path()).spawn().context("it cannot be started")?;
    // One that does not read says so by its answer.
    drop(child.stdin.take().context("it has no standard input")?.write_all(event.to_string().as_bytes()));
    let output = child.wait_with_output()?;
    let took = began.elapsed();
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        bail!("it ended with {}: {}", output.status, stderr.lines().next().unwrap_or_default());
    }
    let answer = String::from_utf8_lossy(&output.stdout);
    if !answer.trim().is_empty() && serde_json::from_str::<Value>(&answer).is_err() {
        bail!("its answer is not one JSON object: {}", answer.chars().take(80).collect::<String>());
    }
    Ok(took)
}

/// What the agent would start.
fn command(agent: Agent, handler: Option<&Value>, program: &str, scratch: &Path) -> Command {
    let line = handler.and_then(|handler| handler.get("command")?.as_str());
    let args = handler.and_then(|handler| handler.get("args")?.as_array());
    let mut command = match (line, args) {
        (Some(program), Some(args)) => {
            let mut command = Command::new(program);
            command.args(args.iter().filter_map(Value::as_str));
            command
        }
        (Some(line), None) if cfg!(windows) => {
            let mut command = Command::new("cmd");
            command.args(["/C", line]);
            command
        }
        (Some(line), None) => {
            let mut command = Command::new("sh");
            command.args(["-c", line]);
            command
        }
        (None, _) => {
            let mut command = Command::new(program);
            command.args(["hook", "--agent", agent.name()]);
            command
        }
    };
    command.current_dir(scratch.join("project")).env_clear().env("HOME", scratch.join("home"));
    // What programs need to start at all.
    for name in ["PATH", "SystemRoot", "TEMP", "TMPDIR"] {
        command.envs(std::env::var_os(name).map(|value| (name, value)));
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}
