//! `omc-host bench`: how long the events of a session take on this computer.

use std::collections::BTreeMap;
use std::fs;
use std::io::{IsTerminal as _, Write as _};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde::Serialize;
use serde_json::{Value, json};

use super::table::table;
use crate::audit;
use crate::config::Paths;

pub(super) const EXAMPLES: &str = "\
Examples:
  omc-host bench              a session, 30 times
  omc-host bench --runs 200   more of them, for steadier numbers
  omc-host bench --json       for programs

It runs whole processes, as an agent does, in a project of its own that is removed afterwards; your guests and your settings take
part, your state does not.";

/// Longest time for one event, far beyond what the host allows itself.
const LIMIT: Duration = Duration::from_secs(20);

/// What the baseline is called: this program, which reads standard input, prints `{}` and ends.
const BARE: &str = "(bare process)";

/// The arguments that make it the baseline. They are seen before anything else is set up, as those of a hook are.
pub(super) const BARE_PROCESS: [&str; 2] = ["bench", "--bare-process"];

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// How often the session is played
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u64).range(2..=10_000))]
    runs: u64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// How long something took, in milliseconds.
#[derive(Debug, PartialEq, Serialize)]
struct Times {
    runs: usize,
    p50_ms: f64,
    p95_ms: f64,
}

/// One row: an event, or a guest on an event.
#[derive(Debug, Serialize)]
struct Row {
    event: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    guest: Option<String>,
    #[serde(flatten)]
    times: Times,
}

pub(super) fn run(args: &Args, paths: &Paths) -> Result<bool> {
    let scratch = tempfile::tempdir().context("failed to create a scratch project")?;
    let session = Session::new(scratch.path(), paths)?;
    let mut times: BTreeMap<usize, Vec<Duration>> = BTreeMap::new();
    let is_terminal = std::io::stderr().is_terminal();
    let events = session.events();
    for round in 0..args.runs {
        if is_terminal {
            write!(std::io::stderr(), "\rround {} of {}", round + 1, args.runs)?;
        }
        times.entry(0).or_default().push(session.bare()?);
        for (place, (_, event)) in events.iter().enumerate() {
            times.entry(place + 1).or_default().push(session.send(event)?);
        }
    }
    if is_terminal {
        // Back to the line's beginning, and clear it.
        write!(std::io::stderr(), "\r\u{1b}[K")?;
    }
    let names = [BARE].into_iter().chain(events.iter().map(|(name, _)| *name));
    let rows: Vec<Row> = names
        .zip(times.into_values())
        .map(|(event, times)| Row { event: event.to_owned(), guest: None, times: Times::of(times) })
        .collect();
    let guests = session.guests()?;
    let mut stdout = std::io::stdout().lock();
    if args.json {
        writeln!(stdout, "{}", serde_json::to_string_pretty(&json!({ "events": rows, "guests": guests }))?)?;
        return Ok(true);
    }
    let bare = rows.first().map_or(1.0, |row| row.times.p50_ms);
    let cells = |row: &Row| {
        let Times { p50_ms, p95_ms, .. } = row.times;
        (format!("{p50_ms:.2}"), format!("{p95_ms:.2}"))
    };
    let lines = rows.iter().map(|row| {
        let (p50, p95) = cells(row);
        [row.event.clone(), p50, p95, format!("{:.1}", row.times.p50_ms / bare)]
    });
    writeln!(stdout, "{}", table(["EVENT", "P50 MS", "P95 MS", "RATIO"], lines))?;
    let lines = guests.iter().map(|row| {
        let (p50, p95) = cells(row);
        [row.guest.clone().unwrap_or_default(), row.event.clone(), row.times.runs.to_string(), p50, p95]
    });
    writeln!(stdout, "\n{}", table(["GUEST", "EVENT", "CALLS", "P50 MS", "P95 MS"], lines))?;
    Ok(true)
}

/// What a hook costs that does nothing.
pub(super) fn bare() -> ExitCode {
    let read = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
    let written = read.and_then(|_| std::io::stdout().lock().write_all(b"{}"));
    if written.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

impl Times {
    fn of(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        let at = |percent: usize| {
            let rank = (times.len() * percent).div_ceil(100).max(1);
            times.get(rank - 1).map_or(0.0, |time| time.as_secs_f64() * 1_000.0)
        };
        Self { runs: times.len(), p50_ms: at(50), p95_ms: at(95) }
    }
}

/// A scratch project in which a session is played.
struct Session<'a> {
    root: &'a Path,
    paths: &'a Paths,
    host: std::path::PathBuf,
}

impl<'a> Session<'a> {
    fn new(root: &'a Path, paths: &'a Paths) -> Result<Self> {
        for folder in ["home", "project/.git", "project/src"] {
            fs::create_dir_all(root.join(folder))?;
        }
        fs::write(root.join("project/.git/HEAD"), "ref: refs/heads/main\n")?;
        fs::write(root.join("project/src/login.rs"), "fn main() {}\n")?;
        let host = std::env::current_exe().context("failed to find this program's own path")?;
        Ok(Self { root, paths, host })
    }

    /// The events of a session, each with a name for people.
    fn events(&self) -> Vec<(&'static str, Value)> {
        let event = |name: &str, more: Value| {
            let mut event = json!({ "hook_event_name": name, "session_id": "bench", "cwd": self.root.join("project") });
            if let (Some(event), Value::Object(more)) = (event.as_object_mut(), more) {
                event.extend(more);
            }
            event
        };
        let bash = json!({ "tool_name": "Bash", "tool_input": { "command": "ls src" } });
        let edit = json!({
            "tool_name": "Edit",
            "tool_input": { "file_path": self.root.join("project/src/login.rs"), "old_string": "a", "new_string": "b" },
        });
        let done = |tool: &Value, response: Value| {
            let mut tool = tool.clone();
            tool["tool_response"] = response;
            tool
        };
        vec![
            ("SessionStart", event("SessionStart", json!({ "source": "startup" }))),
            ("UserPromptSubmit", event("UserPromptSubmit", json!({ "prompt": "please look at the parser" }))),
            ("PreToolUse Bash", event("PreToolUse", bash.clone())),
            ("PostToolUse Bash", event("PostToolUse", done(&bash, json!({ "stdout": "login.rs", "stderr": "" })))),
            ("PreToolUse Edit", event("PreToolUse", edit.clone())),
            ("PostToolUse Edit", event("PostToolUse", done(&edit, json!({ "filePath": "src/login.rs" })))),
            ("SubagentStart", event("SubagentStart", json!({ "agent_id": "a1", "agent_type": "explorer" }))),
            ("SubagentStop", event("SubagentStop", json!({ "agent_id": "a1", "agent_type": "explorer" }))),
            ("PreCompact", event("PreCompact", json!({ "trigger": "auto" }))),
            ("Stop", event("Stop", json!({ "stop_hook_active": false }))),
            ("Notification", event("Notification", json!({ "message": "idle", "notification_type": "idle_prompt" }))),
            ("UserPromptSubmit ralph", event("UserPromptSubmit", json!({ "prompt": "ralph fix src/login.rs" }))),
            ("UserPromptSubmit cancel", event("UserPromptSubmit", json!({ "prompt": "cancelomc" }))),
            ("SessionEnd", event("SessionEnd", json!({ "reason": "other" }))),
        ]
    }

    /// This program in surroundings of its own: the user's configuration, guests and compiled code, nobody's state.
    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.host);
        command.args(args).current_dir(self.root.join("project")).env_clear().env("HOME", self.root.join("home"));
        command.envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
        command.env("XDG_STATE_HOME", self.root.join("home/state"));
        let folders = [
            ("XDG_CONFIG_HOME", &self.paths.config_dir),
            ("XDG_DATA_HOME", &self.paths.data_dir),
            ("XDG_CACHE_HOME", &self.paths.cache_dir),
        ];
        for (variable, folder) in folders {
            command.envs(folder.as_deref().and_then(Path::parent).map(|folder| (variable, folder)));
        }
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    fn bare(&self) -> Result<Duration> {
        timed(self.command(&BARE_PROCESS), b"{}")
    }

    fn send(&self, event: &Value) -> Result<Duration> {
        timed(self.command(&["hook", "--agent", "claude"]), event.to_string().as_bytes())
    }

    /// What the trail says of each guest on each event.
    fn guests(&self) -> Result<Vec<Row>> {
        let records =
            audit::read(&self.root.join("home/state/omc-host")).context("failed to read the scratch trail")?;
        let mut calls: BTreeMap<(String, String), Vec<Duration>> = BTreeMap::new();
        for record in records {
            if let Some(guest) = record.guest {
                calls.entry((guest.name, record.event)).or_default().push(Duration::from_micros(guest.micros));
            }
        }
        let row = |((guest, event), times)| Row { event, guest: Some(guest), times: Times::of(times) };
        Ok(calls.into_iter().map(row).collect())
    }
}

/// How long a process takes from its start to its end.
fn timed(mut command: Command, input: &[u8]) -> Result<Duration> {
    let began = Instant::now();
    let mut child = command.spawn().context("failed to start this program again")?;
    if let Some(mut stdin) = child.stdin.take() {
        // One that does not read is done already.
        drop(stdin.write_all(input));
    }
    let status = child.wait()?;
    let took = began.elapsed();
    if !status.success() || took > LIMIT {
        bail!("an event ended with {status} after {took:?}; `omc-host doctor` may know why");
    }
    Ok(took)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_those_of_the_nearest_rank() {
        let times = |millis: &[u64]| Times::of(millis.iter().copied().map(Duration::from_millis).collect());
        assert_eq!(times(&[3, 1, 2]), Times { runs: 3, p50_ms: 2.0, p95_ms: 3.0 });
        let hundred: Vec<u64> = (1..=100).collect();
        assert_eq!(times(&hundred), Times { runs: 100, p50_ms: 50.0, p95_ms: 95.0 });
        assert_eq!(times(&[7]), Times { runs: 1, p50_ms: 7.0, p95_ms: 7.0 });
    }
}
