//! `omc-host hook`: the main job, on the shortest way.

use std::ffi::OsString;
use std::io::Write as _;
use std::panic;
use std::process::ExitCode;
use std::time::Instant;

use crate::dispatch;

/// For `--help`.
pub(super) const EXAMPLES: &str = "\
Examples:
  echo '{\"hook_event_name\":\"UserPromptSubmit\",\"session_id\":\"s1\",\"cwd\":\"/tmp\",\"prompt\":\"ralph fix src/a.rs\"}' | omc-host hook
  omc-host hook --agent claude < event.json

It answers with exit status 0 whatever happens; `omc-host log` says what did.";

/// Handles the event, or returns nothing if the arguments ask for help.
///
/// The two usual forms are read by hand: the argument parser costs more than reading the event.
pub(super) fn run(args: &[OsString], began: Instant) -> Option<ExitCode> {
    let (agent, complaint) = match args {
        [] => (None, None),
        [flag, name] if flag == "--agent" => (name.to_str(), None),
        [word] if word.to_str().is_some_and(|word| word.starts_with("--agent=")) => {
            (word.to_str().and_then(|word| word.strip_prefix("--agent=")), None)
        }
        args if args.iter().any(|arg| arg == "--help" || arg == "-h") => return None,
        args => {
            // A hooks file with a slip in it must not switch the guards off, so the event is handled all the same.
            let at = args.iter().position(|arg| arg == "--agent");
            let agent = at.and_then(|at| args.get(at + 1)).and_then(|name| name.to_str());
            let written: Vec<_> = args.iter().map(|arg| arg.to_string_lossy()).collect();
            (agent, Some(written.join(" ")))
        }
    };
    // A panic is caught and recorded where it matters; its message would reach the agent's user.
    panic::set_hook(Box::new(|_| {}));
    let answer = dispatch::handle(agent, began, complaint.as_deref());
    let code = ExitCode::from(answer.reply.exit_code);
    let mut stdout = std::io::stdout().lock();
    // The agent may have gone away; then there is nobody to answer.
    drop(stdout.write_all(&answer.reply.stdout).and_then(|()| stdout.flush()));
    answer.leave_trail();
    Some(code)
}
