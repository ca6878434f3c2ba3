//! Changing one switch in the user's `config.toml` and leaving every other byte as it is.
//!
//! Pure: text in, text out. The result is read again before it is given back, so that an edit which would mean anything else is
//! refused, whatever the file looks like.

use std::path::Path;

use thiserror::Error;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::options::Options;
use super::problem::ProblemLog;

/// Why a file was not changed.
#[derive(Debug, Error)]
pub(crate) enum EditError {
    #[error("it is not valid TOML; mend it first")]
    Broken,
    #[error(
        "it is written in a way that cannot be changed here; write `enabled = {enabled}` into the table `[guests.{guest}]` by hand"
    )]
    ByHand { guest: String, enabled: bool },
}

/// The text with a guest switched on or off.
pub(crate) fn set_enabled(text: &str, guest: &str, enabled: bool) -> Result<String, EditError> {
    let (root, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        return Err(EditError::Broken);
    }
    let table = member(root.get_ref(), "guests").and_then(|guests| member(guests.get_ref().as_table()?, guest));
    let switch = table.and_then(|table| member(table.get_ref().as_table()?, "enabled"));
    let header = format!("[guests.{guest}]");
    let line_end = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let edited = if let Some(switch) = switch {
        let place = switch.span();
        format!("{}{enabled}{}", &text[..place.start], &text[place.end..])
    } else if let Some(at) = after_line(text, &header) {
        let before = &text[..at];
        let end = if before.ends_with('\n') { "" } else { line_end };
        format!("{before}{end}enabled = {enabled}{line_end}{}", &text[at..])
    } else {
        let end = if text.is_empty() || text.ends_with('\n') { "" } else { line_end };
        let gap = if text.trim().is_empty() { "" } else { line_end };
        format!("{text}{end}{gap}{header}{line_end}enabled = {enabled}{line_end}")
    };
    let is_meant = meaning(&edited, guest).is_some_and(|(switch, rest)| {
        switch == Some(enabled) && meaning(text, guest).is_some_and(|(_, before)| before == rest)
    });
    if is_meant { Ok(edited) } else { Err(EditError::ByHand { guest: guest.to_owned(), enabled }) }
}

fn member<'a, 'i>(table: &'a DeTable<'i>, name: &str) -> Option<&'a Spanned<DeValue<'i>>> {
    table.iter().find(|(key, _)| key.get_ref() == name).map(|(_, value)| value)
}

/// The place after the line that is a table's header.
fn after_line(text: &str, header: &str) -> Option<usize> {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        at += line.len();
        let code = line.split('#').next().unwrap_or_default();
        if code.chars().filter(|letter| !letter.is_whitespace()).eq(header.chars()) {
            return Some(at);
        }
    }
    None
}

/// What a file says about a guest's switch, and what it says besides.
fn meaning(text: &str, guest: &str) -> Option<(Option<bool>, String)> {
    let origin = Path::new("");
    let (_, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        return None;
    }
    let mut log = ProblemLog::new(origin, text);
    let mut options = Options::parse(text, origin, &mut log);
    let of_guest = options.guests.entry(guest.to_owned()).or_default();
    let switch = of_guest.enabled.take();
    let problems = log.into_problems().into_iter().map(|problem| problem.what).collect::<Vec<_>>();
    Some((switch, format!("{options:?} {problems:?}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_switch_changes() {
        for (text, expected) in [
            ("", "[guests.a]\nenabled = false\n"),
            ("# mine\n", "# mine\n\n[guests.a]\nenabled = false\n"),
            ("[limits]\nfuel = 2_000_000", "[limits]\nfuel = 2_000_000\n\n[guests.a]\nenabled = false\n"),
            ("[guests.a]\nenabled = true # why\n", "[guests.a]\nenabled = false # why\n"),
            ("[guests.a]\nenabled = false\n", "[guests.a]\nenabled = false\n"),
            ("[ guests . a ] # x\norder = 5\n", "[ guests . a ] # x\nenabled = false\norder = 5\n"),
            ("[guests.a]", "[guests.a]\nenabled = false\n"),
            ("[guests.a]\r\norder = 5\r\n", "[guests.a]\r\nenabled = false\r\norder = 5\r\n"),
            (
                "[guests.a.limits]\nfuel = 5_000_000\n",
                "[guests.a.limits]\nfuel = 5_000_000\n\n[guests.a]\nenabled = false\n",
            ),
            ("guests.a.enabled = true\n", "guests.a.enabled = false\n"),
            ("guests = { a = { enabled = true } }\n", "guests = { a = { enabled = false } }\n"),
        ] {
            assert_eq!(set_enabled(text, "a", false).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn what_cannot_be_changed_for_sure_is_left_alone() {
        for text in [
            "guests = { b = { enabled = true } }\n",
            "guests.a.order = 5\n",
            "x = '''\n[guests.a]\n'''\n[guests]\na.order = 5\n",
        ] {
            assert!(matches!(set_enabled(text, "a", false), Err(EditError::ByHand { .. })), "{text}");
        }
        for text in ["[guests.a\n", "x = \n"] {
            assert!(matches!(set_enabled(text, "a", false), Err(EditError::Broken)), "{text}");
        }
    }
}
