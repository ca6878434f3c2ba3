//! `omc-host mcp`: starts the MCP server, which is a program of its own beside this one, so that nothing on the path of an event
//! carries an async runtime.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

pub(super) const EXAMPLES: &str = "\
Examples:
  claude mcp add omc -- omc-host mcp
  codex mcp add omc -- omc-host mcp

The tools work on the project of the folder that the server is started in: state_*, notepad_*, project_memory_*, shared_memory_*,
wiki_*.";

pub(super) fn run() -> Result<bool> {
    let server = server_beside().context("failed to find this program's own folder")?;
    if !server.is_file() {
        bail!("the MCP server `{}` is not there; it ships beside `omc-host`: install both again", server.display());
    }
    serve(&server)
}

/// The server that ships beside this program. No configuration, project or variable names another.
fn server_beside() -> std::io::Result<PathBuf> {
    Ok(std::env::current_exe()?.with_file_name(format!("omc-mcp{}", std::env::consts::EXE_SUFFIX)))
}

/// Becomes the server, so that the agent's signals and the end of its pipes reach it.
#[cfg(unix)]
fn serve(server: &Path) -> Result<bool> {
    use std::os::unix::process::CommandExt as _;

    let error = Command::new(server).exec();
    Err(error).with_context(|| format!("failed to start `{}`", server.display()))
}

/// Runs the server to its end.
#[cfg(not(unix))]
fn serve(server: &Path) -> Result<bool> {
    let status = Command::new(server).status().with_context(|| format!("failed to start `{}`", server.display()))?;
    Ok(status.success())
}
