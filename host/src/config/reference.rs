//! The tables of `docs/configuration.md`, made from the tables that the code runs on.
//!
//! A test compares the document with them, and rewrites it when the variable `BLESS` is set, so neither can be changed
//! without the other.

use super::env::EnvVars;
use super::guest_settings;
use super::kill_switch;
use super::limits::Limit;
use super::options::CAPABILITIES;

/// Every generated table by the name it has in the document.
pub fn tables() -> [(&'static str, String); 5] {
    [
        ("limits", limits()),
        ("capabilities", capabilities()),
        ("guest-settings", guest_settings()),
        ("environment", environment()),
        ("skip-tokens", skip_tokens()),
    ]
}

/// The document with each table brought up to date.
///
/// A table stands between the lines `<!-- generated: NAME -->` and `<!-- end -->`. `None` if one has no place.
pub fn update(document: &str) -> Option<String> {
    tables().into_iter().try_fold(document.to_owned(), |document, (name, table)| {
        let (before, rest) = document.split_once(&format!("<!-- generated: {name} -->\n"))?;
        let (_, after) = rest.split_once("<!-- end -->")?;
        Some(format!("{before}<!-- generated: {name} -->\n{table}<!-- end -->{after}"))
    })
}

fn table<const N: usize>(head: [&str; N], rows: impl IntoIterator<Item = [String; N]>) -> String {
    let line = |cells: &str| format!("| {cells} |\n");
    let rows = rows.into_iter().map(|row| line(&row.join(" | ")));
    [line(&head.join(" | ")), format!("|{}\n", "---|".repeat(N))].into_iter().chain(rows).collect()
}

fn limits() -> String {
    table(
        ["key", "default", "from", "to", "unit", "limits", "why this default"],
        Limit::ALL.iter().map(|limit| {
            let spec = limit.spec();
            let (default, min, max) = (grouped(spec.default), grouped(spec.min), grouped(spec.max));
            let (doc, reason) = (spec.doc.trim().to_owned(), spec.reason.to_owned());
            [format!("`{}`", spec.key), default, min, max, spec.unit.to_owned(), doc, reason]
        }),
    )
}

fn capabilities() -> String {
    let rows = CAPABILITIES.iter().map(|(name, what)| [format!("`{name}`"), (*what).to_owned()]);
    table(["capability", "what is withheld"], rows)
}

fn guest_settings() -> String {
    table(["key", "default", "values", "a project may", "meaning"], guest_settings::reference_rows())
}

fn environment() -> String {
    table(["variable", "meaning"], EnvVars::ALL.iter().map(|(name, doc)| [format!("`{name}`"), doc.trim().to_owned()]))
}

fn skip_tokens() -> String {
    let rows =
        kill_switch::reference_rows().map(|(guest, token, scope)| [format!("`{token}`"), format!("`{guest}`"), scope]);
    table(["token", "guest", "on"], rows)
}

/// A number as TOML takes it, in groups of three digits.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.char_indices() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push('_');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/configuration.md");

    #[test]
    fn the_document_has_the_tables_of_the_code() {
        let document = std::fs::read_to_string(DOCUMENT).expect("the document");
        let current = update(&document).expect("every table has its place");
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(DOCUMENT, &current).expect("written");
        } else {
            assert!(document == current, "docs/configuration.md is out of date: run this test with BLESS=1");
        }
    }

    #[test]
    fn the_examples_of_the_document_are_valid_files() {
        use crate::config::options::Options;
        use crate::config::problem::ProblemLog;
        let document = std::fs::read_to_string(DOCUMENT).expect("the document");
        let examples: Vec<&str> =
            document.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
        assert!(!examples.is_empty());
        for example in examples {
            let mut log = ProblemLog::new(std::path::Path::new("example"), example);
            Options::parse(example, std::path::Path::new("example"), &mut log);
            assert_eq!(log.into_problems(), []);
        }
    }

    #[test]
    fn numbers_are_grouped_as_toml_takes_them() {
        for (number, text) in [(0, "0"), (999, "999"), (1_000, "1_000"), (1_234_567, "1_234_567")] {
            assert_eq!(grouped(number), text);
        }
    }
}
