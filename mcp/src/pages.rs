//! Shell completions and manual pages, made from the same definitions as `--help`.

use std::io::Write as _;

use anyhow::{Context as _, Result, anyhow};
use clap_complete::Shell;

/// Prints the script for a shell.
pub(crate) fn completions(shell: &str) -> Result<()> {
    let shell: Shell = shell.parse().map_err(|_| anyhow!("no script for the shell `{shell}`"))?;
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut omc_host::cli::command(), "omc-host", &mut script);
    let mut script = String::from_utf8(script).context("failed to make the script")?;
    if shell == Shell::Bash {
        // clap_complete 4.6 writes the hyphen of a program's name in two ways, so that no command would be completed.
        script = script.replace("omc__subcmd__host", "omc__host");
    }
    print(script.as_bytes())
}

/// Prints the page of the program, or of the command to which these names lead, such as `guests` and `add`.
pub(crate) fn man(names: &[&str]) -> Result<()> {
    let mut program = omc_host::cli::command();
    program.build();
    let mut page = &program;
    for (at, name) in names.iter().enumerate() {
        let known = [&["omc-host"], &names[..at]].concat().join(" ");
        let unknown = || anyhow!("there is no command `{known} {name}`; `{known} --help` lists them");
        page = page.find_subcommand(name).ok_or_else(unknown)?;
    }
    let mut text = Vec::new();
    let page = clap_mangen::Man::new(page.clone()).source(concat!("omc-host ", env!("CARGO_PKG_VERSION")));
    page.render(&mut text).context("failed to make the page")?;
    print(&text)
}

/// Writes to standard output. A reader that has gone away, as `head` does, has what it wanted.
fn print(text: &[u8]) -> Result<()> {
    match std::io::stdout().write_all(text) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        written => written.context("failed to write to standard output"),
    }
}
