//! What the guard looks for in the last message of a turn, and in the code that goes with it.

pub mod claim;
pub mod fork;
pub mod leftover;

use std::fmt::Write as _;

use leftover::Finding;

/// Most leftovers that are named: the original's limit.
pub const MAX_FINDINGS: usize = 8;

/// The words for a choice that was put to the user in prose.
pub fn ask_properly() -> String {
    "[WORKFLOW DRIFT GUARD] You end with a choice in prose. Ask it with the structured question tool: two to four options, each \
     with what it means, and room for another answer. If one of them is clearly better, take it and say why instead."
        .to_owned()
}

/// The words for leftovers in work that is called done; absent if there are none.
pub fn not_done(findings: &[Finding]) -> Option<String> {
    if findings.is_empty() {
        return None;
    }
    let mut text =
        String::from("[WORKFLOW DRIFT GUARD] You say that the work is done, but its new lines hold leftovers:\n");
    for Finding { path, line, kind, text: found } in findings.iter().take(MAX_FINDINGS) {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{path}:{line} {kind}: {found}");
    }
    text.push_str("Finish them, or say in one sentence for each why it stays.");
    Some(text)
}
