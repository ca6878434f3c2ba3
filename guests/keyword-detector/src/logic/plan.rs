//! The step from an approved plan to its work.
//!
//! Ralplan ends with two documents, a PRD and a test specification, and a command in the PRD that starts the work. Once the user
//! says "ralph" after that, everything the gate would ask for is written down, so the gate lets it pass.

use super::{keywords::Keyword, text::trim};

/// Sections that a PRD must have, in lower case.
const PRD_SECTIONS: &[&str] = &["acceptance criteria", "requirement coverage map"];

/// Sections that a test specification must have.
const TEST_SECTIONS: &[&str] = &["unit coverage", "verification mapping"];

/// Phases of a ralplan that is over and may be followed by work. Spaces and underscores read as hyphens.
const APPROVED_PHASES: &[&str] = &[
    "complete",
    "completed",
    "done",
    "handoff",
    "pending-approval",
    "awaiting-approval",
    "approval-required",
    "failed",
    "cancelled",
    "canceled",
    "aborted",
    "terminated",
];

/// The prompt is only the word to start the work of a plan: "ralph", "ralph please", "run ralph".
pub fn is_go_ahead(prompt: &str) -> bool {
    let prompt = trim(prompt).to_ascii_lowercase();
    let prompt = prompt.trim_end_matches(['.', '!']);
    let name = Keyword::Ralph.name();
    let verbs = ["run ", "start ", "launch ", "go ", "please ", "/", ""];
    let bare = prompt.strip_suffix(" please").unwrap_or(prompt);
    verbs.iter().any(|verb| bare.strip_prefix(verb) == Some(name))
}

/// The phase says that the planning is over.
pub fn is_over(phase: &str) -> bool {
    let phase = phase.trim().to_ascii_lowercase().replace([' ', '_'], "-");
    APPROVED_PHASES.contains(&phase.as_str()) || phase.starts_with("handoff:") || phase.starts_with("handoff-")
}

/// The name that a PRD and its test specification share: `prd-NAME.md`, `test-spec-NAME.md`.
pub fn subject_of_prd(file: &str) -> Option<&str> {
    file.strip_prefix("prd-")?.strip_suffix(".md").filter(|name| !name.is_empty())
}

/// Both documents are complete, and the PRD starts the work with ralph.
pub fn is_ready(prd: &str, test_spec: &str) -> bool {
    PRD_SECTIONS.iter().all(|section| has_section(prd, section))
        && TEST_SECTIONS.iter().all(|section| has_section(test_spec, section))
        && launches_ralph(prd)
}

/// A heading of that name with text below it.
fn has_section(document: &str, name: &str) -> bool {
    let mut inside = false;
    for line in document.lines().map(trim) {
        if line.starts_with('#') {
            inside = line.trim_start_matches('#').trim().trim_end_matches(':').eq_ignore_ascii_case(name);
        } else if inside && !line.is_empty() {
            return true;
        }
    }
    false
}

/// Exactly one command for ralph with a quoted task.
fn launches_ralph(prd: &str) -> bool {
    const COMMANDS: &[&str] =
        &["omc ralph \"", "omx ralph \"", "$ralph \"", "/omc:ralph \"", "/oh-my-claudecode:ralph \""];
    let launches = |line: &str| COMMANDS.iter().map(|command| line.matches(command).count()).sum::<usize>();
    prd.lines().map(launches).sum::<usize>() == 1
}

#[cfg(test)]
mod tests {
    use super::{is_go_ahead, is_over, is_ready, subject_of_prd};

    const PRD: &str =
        "# PRD\n\n## Acceptance criteria\n- stored\n\n## Requirement coverage map\n- R1\n\nomc ralph \"build it\"\n";
    const TEST_SPEC: &str = "## Unit coverage\n- store\n## Verification mapping:\n- T1\n";

    #[test]
    fn only_a_bare_word_is_a_go_ahead() {
        for prompt in
            ["ralph", " Ralph please ", "run ralph", "/ralph", "go ralph!", "launch ralph please", "please ralph"]
        {
            assert!(is_go_ahead(prompt), "{prompt}");
        }
        for prompt in ["ralph fix it", "what is ralph", "ralphy", "do not run ralph", "ralph?", ""] {
            assert!(!is_go_ahead(prompt), "{prompt}");
        }
    }

    #[test]
    fn a_plan_is_ready_when_all_its_sections_say_something_and_one_command_starts_it() {
        assert!(is_ready(PRD, TEST_SPEC));
        assert!(!is_ready(PRD, "## Unit coverage\n## Verification mapping\n- T1"));
        assert!(!is_ready(&PRD.replace("- stored", ""), TEST_SPEC));
        assert!(!is_ready(&PRD.replace("omc ralph", "omc team"), TEST_SPEC));
        assert!(!is_ready(&[PRD, PRD].concat(), TEST_SPEC));
    }

    #[test]
    fn phases_and_files_are_read_as_the_planner_writes_them() {
        for phase in ["complete", "Awaiting Approval", "approval_required", "handoff:ralph", "handoff-team"] {
            assert!(is_over(phase), "{phase}");
        }
        for phase in ["ralplan", "", "handoffs"] {
            assert!(!is_over(phase), "{phase}");
        }
        assert_eq!(subject_of_prd("prd-shop.md"), Some("shop"));
        assert_eq!(subject_of_prd("prd-.md"), None);
        assert_eq!(subject_of_prd("test-spec-shop.md"), None);
    }
}
