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

It answers with exit status 0 whatever happens; `omc-host log` says what did. Only where `deny-channel = \"both\"` is set is a tool
refused by exit status 2 as well.";

/// What the command line of `hook` says.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Arguments {
    /// What `--agent` names.
    pub(crate) agent: Option<String>,
    /// The arguments, if they are not what they should be.
    pub(crate) complaint: Option<String>,
}

impl Arguments {
    /// Reads the arguments after `hook`, or nothing if they ask for help.
    ///
    /// The two usual forms are read by hand: the argument parser costs more than reading the event.
    pub(crate) fn read(args: &[OsString]) -> Option<Self> {
        let name = |name: &OsString| name.to_str().map(str::to_owned);
        let usual = |agent| Some(Self { agent, complaint: None });
        match args {
            [] => usual(None),
            [flag, agent] if flag == "--agent" => usual(name(agent)),
            [word] if word.to_str().is_some_and(|word| word.starts_with("--agent=")) => {
                usual(word.to_str().and_then(|word| word.strip_prefix("--agent=")).map(str::to_owned))
            }
            [word] if word == "--help" || word == "-h" => None,
            args => {
                // A hooks file with a slip in it must not switch the guards off, so the event is handled all the same.
                let at = args.iter().position(|arg| arg == "--agent");
                let agent = at.and_then(|at| args.get(at + 1)).and_then(name);
                let written: Vec<_> = args.iter().map(|arg| arg.to_string_lossy()).collect();
                Some(Self { agent, complaint: Some(written.join(" ")) })
            }
        }
    }
}

/// Handles the event, or returns nothing if the arguments ask for help.
pub(super) fn run(args: &[OsString], began: Instant) -> Option<ExitCode> {
    let Arguments { agent, complaint } = Arguments::read(args)?;
    // A panic is caught and recorded where it matters; its message would reach the agent's user.
    panic::set_hook(Box::new(|_| {}));
    let answer = dispatch::handle(agent.as_deref(), began, complaint.as_deref());
    let code = ExitCode::from(answer.reply.exit_code);
    let mut stdout = std::io::stdout().lock();
    // The agent may have gone away; then there is nobody to answer.
    drop(stdout.write_all(&answer.reply.stdout).and_then(|()| stdout.flush()));
    drop(std::io::stderr().write_all(&answer.reply.stderr));
    answer.leave_trail();
    Some(code)
}
