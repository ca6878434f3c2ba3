//! The page `docs/events.md`, made from the contracts.
//!
//! A test compares the page with them, and rewrites it when the variable `BLESS` is set, so neither can be changed without the
//! other.

use std::fmt::Write as _;

use super::{Cap, Carry, Context, Contract, Install, Rewrite, Silence, Target, Unanswered, Unit, rows};
use crate::protocol::event::Agent;

/// What stands before the tables.
const INTRODUCTION: &str = "\
# Events

One table for each agent, one row an event, in the order of a session. Generated from the contracts in
`host/src/protocol/contract`, which the host runs on: what a row cannot carry is dropped and recorded (`omc-host log`,
`omc-host explain`), never sent in the hope that it is understood.

| column | says |
|---|---|
| event | the agent's name; the name that guests and manifests use |
| matcher | what a matcher is compared with, and the values that are known |
| allow, ask, block, halt | how the decision is said: by a member of the answer, as another decision, or not at all (-) |
| context | where text for the model goes |
| message | whether a text for the person is shown |
| rewrite | how the tool's input is replaced |
| variables | whether guests can set variables for the session's later commands |
| silence | what \"no opinion\" looks like |
| no answer | what the agent does when none comes, or none that it can read |
| timeout | what the agent waits by default, at most, and by our hooks files; (never unasked) where no hook is installed unasked |
| deadline | when the host has answered at the latest, by our hooks files |

An event that is not here is answered with silence within 0.8 s. Exit status 2 is never used, except for
a refused tool where `deny-channel = \"both\"` asks for it (docs/configuration.md).

`SessionEnd` and `Interrupt` have 0.8 s, because the agents leave about one second. What must not be lost comes first: the
session's summary is written, and only when it is kept does the state go that it was drawn from. Clearing away comes last, and
what time or disk did not allow is done at the next `SessionStart`, which also sums up sessions whose end nobody saw. No process
goes on in the background.
";

/// The whole page.
pub fn page() -> String {
    let mut page = INTRODUCTION.to_owned();
    for (agent, title) in [(Agent::Claude, "Claude Code"), (Agent::Codex, "Codex CLI")] {
        let rows = rows(agent);
        let Some(cap) = rows.first().map(|row| row.cap) else { continue };
        // A string takes everything.
        let _ = write!(page, "\n## {title}\n\n{} events. Longest text: {}.\n\n", rows.len(), in_words(cap));
        page.push_str("| event | matcher | allow | ask | block | halt | context | message | rewrite | variables | silence | no answer | timeout | deadline |\n");
        page.push_str("|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n");
        for row in rows {
            let _ = writeln!(page, "| {} |", cells(row).join(" | "));
        }
    }
    page
}

fn in_words(cap: Cap) -> String {
    let unit = match cap.unit {
        Unit::Utf16 => "UTF-16 units",
        Unit::Bytes => "bytes of UTF-8",
    };
    format!("{} {unit}; the whole of a longer one is in a file that the answer names", cap.limit)
}

fn cells(row: &Contract) -> [String; 14] {
    let context = match row.context {
        Context::No => "-",
        Context::Specific => "`additionalContext`",
        Context::AsMessage => "`systemMessage`",
    };
    let silence = match row.silence {
        Silence::Quiet => "`{\"continue\":true,\"suppressOutput\":true}`",
        Silence::NoBytes => "no bytes",
    };
    let unanswered = match row.unanswered {
        Unanswered::Proceeds => "goes on",
        Unanswered::TimeoutBlocks => "goes on; a timeout refuses",
        Unanswered::Fails => "fails",
    };
    [
        format!("`{}` `{}`", row.event, row.kind.name()),
        target(row.target),
        carry(row.allow).to_owned(),
        carry(row.ask).to_owned(),
        carry(row.block).to_owned(),
        carry(row.halt).to_owned(),
        context.to_owned(),
        if row.message { "yes" } else { "-" }.to_owned(),
        rewrite(row.updated_input),
        if row.session_environment { "yes" } else { "-" }.to_owned(),
        silence.to_owned(),
        unanswered.to_owned(),
        timeout(row),
        format!("{} ms", row.deadline().as_millis()),
    ]
}

fn target(target: Target) -> String {
    match target {
        Target::None => "-".to_owned(),
        Target::Member(name, []) => format!("`{name}`"),
        Target::Member(name, values) => format!("`{name}`: {}", values.join(", ")),
        Target::Tool([]) => "the tool".to_owned(),
        Target::Tool(aliases) => {
            let names = aliases.iter().map(|(name, others)| format!("`{name}` is also {}", others.join(", ")));
            format!("the tool; {}", names.collect::<Vec<_>>().join("; "))
        }
        Target::FileName => "the file's name".to_owned(),
    }
}

fn carry(carry: Carry) -> &'static str {
    match carry {
        Carry::No => "-",
        Carry::Unsaid => "by silence",
        Carry::Permission => "`permissionDecision`",
        Carry::Behavior => "`decision.behavior`",
        Carry::Decision => "`decision`",
        Carry::Decline => "`action`",
        Carry::Stop => "`continue`",
        Carry::StopAndBlock => "`continue`, and a block",
        Carry::AsBlock => "as a block",
    }
}

fn rewrite(rewrite: Rewrite) -> String {
    match rewrite {
        Rewrite::No => "-".to_owned(),
        Rewrite::Alone => "`updatedInput`".to_owned(),
        Rewrite::WithAllow(tools) => {
            format!("`updatedInput` beside an allow; {} need a `command`", tools.join(" and "))
        }
        Rewrite::InAllow => "`decision.updatedInput`, with an allow".to_owned(),
    }
}

fn timeout(row: &Contract) -> String {
    let seconds = |ms: u32| format!("{} s", f64::from(ms) / 1_000.0);
    let mut text = seconds(row.timeout_ms);
    if let Some(max) = row.max_timeout_ms {
        let _ = write!(text, ", at most {}", seconds(max));
    }
    match (row.hook_timeout_s, row.install) {
        (Some(ours), _) => {
            let _ = write!(text, "; ours {ours} s");
        }
        (None, Install::OnRequest) => text.push_str(" (never unasked)"),
        (None, Install::WhenNeeded) => {}
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/events.md");

    #[test]
    fn the_page_has_the_contracts_of_the_code() {
        let current = page();
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(PAGE, &current).expect("written");
        }
        let page = std::fs::read_to_string(PAGE).expect("the page is there");
        assert!(page == current, "docs/events.md is out of date: run this test with BLESS=1");
    }
}
