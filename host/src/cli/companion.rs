//! `omc-host mcp`, `completions` and `man`: done by `omc-mcp`, the program beside this one that carries what no event needs, an
//! async runtime and generators of text, so that this one stays small.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

pub(super) const MCP_EXAMPLES: &str = "\
Examples:
  claude mcp add omc -- omc-host mcp
  codex mcp add omc -- omc-host mcp

The tools work on the project of the folder that the server is started in: state_*, notepad_*, project_memory_*, shared_memory_*,
wiki_*.";

pub(super) const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  omc-host completions bash > ~/.local/share/bash-completion/completions/omc-host
  omc-host completions zsh > ~/.zfunc/_omc-host
  omc-host completions fish > ~/.config/fish/completions/omc-host.fish";

pub(super) const MAN_EXAMPLES: &str = "\
Examples:
  omc-host man > ~/.local/share/man/man1/omc-host.1
  omc-host man guests add > ~/.local/share/man/man1/omc-host-guests-add.1
  omc-host man | man -l -                      read it at once";

/// Shells that can be completed for, as the companion names them.
pub(super) const SHELLS: [&str; 5] = ["bash", "elvish", "fish", "powershell", "zsh"];

/// Hands over to the companion.
pub(super) fn run<A: AsRef<OsStr>>(args: &[A]) -> Result<bool> {
    let companion = beside().context("failed to find this program's own folder")?;
    if !companion.is_file() {
        bail!("the program `{}` is not there; it ships beside `omc-host`: install both again", companion.display());
    }
    hand_over(&companion, args)
}

/// The companion that ships beside this program. No configuration, project or variable names another.
fn beside() -> std::io::Result<PathBuf> {
    Ok(std::env::current_exe()?.with_file_name(format!("omc-mcp{}", std::env::consts::EXE_SUFFIX)))
}

/// Becomes the companion, so that the agent's signals and the end of its pipes reach it.
#[cfg(unix)]
fn hand_over<A: AsRef<OsStr>>(companion: &Path, args: &[A]) -> Result<bool> {
    use std::os::unix::process::CommandExt as _;

    let error = Command::new(companion).args(args).exec();
    Err(error).with_context(|| format!("failed to start `{}`", companion.display()))
}

/// Runs the companion to its end.
#[cfg(not(unix))]
fn hand_over<A: AsRef<OsStr>>(companion: &Path, args: &[A]) -> Result<bool> {
    let status = Command::new(companion).args(args).status();
    Ok(status.with_context(|| format!("failed to start `{}`", companion.display()))?.success())
}
