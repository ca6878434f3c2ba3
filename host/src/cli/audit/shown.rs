//! Reports for people: a table of all guests, or everything about one.
//!
//! Every text of a guest is on one line: a line end in it must not look like another entry.

use std::fmt::Write as _;

use super::report::Report;
use crate::cli::table;
use crate::config::{Limit, Limits};
use crate::text::inert;

/// One row a guest, and the findings below.
pub(super) fn table(reports: &[Report]) -> String {
    let rows = reports.iter().map(|report| {
        let mut identity =
            format!("{} {}\n{}\n{}", report.name, inert(&report.version), short(&report.digest), inert(&report.source));
        if report.signature.state != "built-in" {
            let _infallible = write!(identity, "\nsigned: {}", signature(report));
        }
        [
            identity,
            report.subscriptions.iter().map(|wanted| beginning(&inert(wanted))).collect::<Vec<_>>().join("\n"),
            imports(report),
            parts(report).join("\n"),
            granted(report),
            used(report).join("\n"),
        ]
    });
    let mut text = table::table(["GUEST", "EVENTS", "IMPORTS", "REQUESTED", "GRANTED", "USED"], rows);
    for report in reports {
        for finding in &report.findings {
            text.extend(["\nfinding: ", report.name.as_str(), " ", &inert(finding)]);
        }
    }
    text
}

/// Everything about one guest.
pub(super) fn whole(report: &Report) -> String {
    let mut text = String::new();
    let mut line = |what: &str, value: &str| {
        let _infallible = writeln!(text, "{what:<10} {}", inert(value));
    };
    line("guest", &format!("{} {}", report.name, report.version));
    line("digest", &report.digest);
    line("source", report.origin.as_ref().unwrap_or(&report.source));
    if let Some(agreed) = &report.agreed {
        line("agreed", format!("{} {}", agreed.at, agreed.by).trim_end());
    }
    line("signature", &signature(report));
    line(
        "built for",
        &report.wit_version.as_ref().map_or_else(|| "-".to_owned(), |version| format!("omc:hook {version}")),
    );
    line("enabled", if report.enabled { "yes" } else { "no" });
    for wanted in &report.subscriptions {
        line("event", wanted);
    }
    for import in report.imports.always.iter().chain(&report.imports.capability) {
        line("imports", import);
    }
    for import in &report.imports.unknown {
        line("imports", &format!("{import}, which this host does not have"));
    }
    line("imports", &format!("{} of the language runtime", report.imports.runtime.len()));
    for entry in requested(report) {
        line("requests", &entry);
    }
    for entry in &report.granted {
        line("granted", entry);
    }
    for entry in used(report) {
        line("used", &entry);
    }
    for limit in Limit::ALL {
        let key = limit.spec().key;
        let Some(reported) = report.limits.get(key) else { continue };
        let wished = reported.wished.map(|wished| format!(", {wished} wished for")).unwrap_or_default();
        // Most have the default; that is a page of the documentation.
        if !wished.is_empty() || reported.holds != Limits::default().get(*limit) {
            line("limit", &format!("{key} {}{wished}", reported.holds));
        }
    }
    let history = &report.history;
    line("calls", &format!("{} in the trail, {} refusals", history.calls, history.refusals));
    for (kind, count) in &history.faults {
        line("faults", &format!("{kind} ×{count}"));
    }
    if let Some(last) = &history.last_fault {
        line("last fault", last);
    }
    if let Some(until) = &history.set_aside_until {
        line("set aside", &format!("until {until}"));
    }
    for finding in &report.findings {
        line("finding", &format!("{} {finding}", report.name));
    }
    text
}

fn signature(report: &Report) -> String {
    let signature = &report.signature;
    match (signature.state, &signature.key) {
        ("trusted", Some(key)) => format!("trusted {key}"),
        ("unknown", Some(key)) => format!("unknown {key}, not checked"),
        (state, _) => state.to_owned(),
    }
}

fn imports(report: &Report) -> String {
    let short = |import: &String| inert(import.strip_prefix("omc:hook/").unwrap_or(import));
    let mut imports: Vec<_> = report.imports.capability.iter().chain(&report.imports.unknown).map(short).collect();
    imports.push(format!("({} of the language runtime)", report.imports.runtime.len()));
    imports.join("\n")
}

fn requested(report: &Report) -> Vec<String> {
    let requested = report.requested.iter().map(|request| {
        let scope = request.scope.join(", ");
        let separator = if scope.is_empty() { "" } else { " " };
        inert(&format!("{}{separator}{scope}: {}", request.capability, request.reason))
    });
    requested.collect()
}

/// The beginning of a text that may be long: a matcher can be any regular expression.
fn beginning(text: &str) -> String {
    /// Wide enough for a kind of event and a few names.
    const LETTERS: usize = 48;
    match text.char_indices().nth(LETTERS) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

/// What is requested, one part of a scope each; the reasons are in the report about the one guest.
fn parts(report: &Report) -> Vec<String> {
    let parts = report.requested.iter().flat_map(|request| {
        let name = &request.capability;
        let each = request.scope.iter().map(move |part| inert(&format!("{name} {part}")));
        if request.scope.is_empty() { vec![inert(name)] } else { each.collect() }
    });
    parts.collect()
}

/// What of it is granted, in a word where one will do.
fn granted(report: &Report) -> String {
    let mut requested = parts(report);
    let mut granted = report.granted.clone();
    requested.sort();
    granted.sort();
    match (requested.as_slice(), granted.as_slice()) {
        ([], []) => String::new(),
        (_, []) => "nothing".to_owned(),
        (requested, granted) if requested == granted => "all".to_owned(),
        _ => report.granted.join("\n"),
    }
}

fn used(report: &Report) -> Vec<String> {
    report.used.iter().map(|(capability, calls)| inert(&format!("{capability} ×{calls}"))).collect()
}

fn short(digest: &str) -> String {
    crate::cli::guests::short(digest)
}
