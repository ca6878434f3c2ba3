//! What an operation came to: JSON for programs, lines for people.

use std::fmt::Display;
use std::io::{Read as _, Write as _};

use anyhow::{Context as _, Result, bail};
use serde::Serialize;

use crate::text;

/// Longest text that is taken from standard input, in bytes: more than any file of `.omc` may have.
const MAX_STDIN_BYTES: u64 = 1 << 20;

/// Prints the result of an operation. Its texts come from files that anybody may have written.
pub(super) fn print(answer: &(impl Serialize + Display), json: bool) -> Result<()> {
    let mut stdout = std::io::stdout().lock();
    if json {
        writeln!(stdout, "{}", text::inert_json(serde_json::to_string_pretty(answer)?))?;
    } else {
        for line in answer.to_string().lines() {
            writeln!(stdout, "{}", text::inert(line))?;
        }
    }
    Ok(())
}

/// The text that an argument stands for: itself, or standard input for `-`.
pub(super) fn text_of(argument: &str) -> Result<String> {
    if argument != "-" {
        return Ok(argument.to_owned());
    }
    let mut text = String::new();
    let read = std::io::stdin().lock().take(MAX_STDIN_BYTES + 1).read_to_string(&mut text);
    read.context("failed to read standard input as UTF-8")?;
    if text.len() as u64 > MAX_STDIN_BYTES {
        bail!("standard input is longer than {MAX_STDIN_BYTES} bytes");
    }
    Ok(text)
}

/// The names of the modes, for arguments.
pub(super) fn modes() -> clap::builder::PossibleValuesParser {
    omc_state::Mode::ALL.iter().map(|mode| mode.name()).collect::<Vec<_>>().into()
}

/// An id of a session that can be used.
pub(super) fn session(text: &str) -> Result<String, String> {
    let id = omc_state::SessionId::parse(text);
    id.map(|id| id.to_string()).ok_or_else(|| "an id has letters, digits, `_` and `-`, 256 at most".to_owned())
}

/// A JSON object.
pub(super) fn object(text: &str) -> Result<serde_json::Map<String, serde_json::Value>> {
    serde_json::from_str(text).context("failed to read a JSON object")
}
