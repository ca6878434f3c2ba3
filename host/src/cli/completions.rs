//! `omc-host completions` and `omc-host man`: made from the same definitions as `--help`.

use std::io::Write as _;

use anyhow::{Result, bail};
use clap::CommandFactory as _;
use clap_complete::Shell;

use super::Cli;

pub(super) const EXAMPLES: &str = "\
Examples:
  omc-host completions bash > ~/.local/share/bash-completion/completions/omc-host
  omc-host completions zsh > ~/.zfunc/_omc-host
  omc-host completions fish > ~/.config/fish/completions/omc-host.fish";

pub(super) const MAN_EXAMPLES: &str = "\
Examples:
  omc-host man > ~/.local/share/man/man1/omc-host.1
  omc-host man state > ~/.local/share/man/man1/omc-host-state.1
  omc-host man | man -l -                      read it at once";

pub(super) fn completions(shell: Shell) -> Result<bool> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "omc-host", &mut script);
    std::io::stdout().write_all(&script)?;
    Ok(true)
}

/// Prints the page of the program or of one of its commands.
pub(super) fn man(command: Option<&str>) -> Result<bool> {
    let mut program = Cli::command();
    program.build();
    let page = match command {
        None => program,
        Some(name) => match program.find_subcommand(name) {
            Some(command) => command.clone(),
            None => bail!("there is no command `{name}`; `omc-host --help` lists them"),
        },
    };
    let mut text = Vec::new();
    clap_mangen::Man::new(page).render(&mut text)?;
    std::io::stdout().write_all(&text)?;
    Ok(true)
}
