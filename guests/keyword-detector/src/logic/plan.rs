//! The step from an approved plan to its work.
//!
//! Ralplan ends with two documents, a PRD and a test specification, and a command in the PRD that starts the work: by ralph or by
//! a team. Once the user says "ralph" after that, everything the gate would ask for is written down, so the gate lets it pass; and
//! "team", else a word like any other, is the command to start.

use super::text::trim;

/// Who does the work of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lane {
    /// The agent itself, until it is done.
    Ralph,
    /// A team of agents.
    Team,
}

impl Lane {
    fn name(self) -> &'static str {
        match self {
            Self::Ralph => "ralph",
            Self::Team => "team",
        }
    }
}

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

/// The lane, if the prompt is only the word to start the work of a plan: "ralph", "ralph please", "run team".
pub fn go_ahead(prompt: &str) -> Option<Lane> {
    /// Longer prompts are more than the word.
    const MAX_BYTES: usize = 64;
    let prompt = Some(trim(prompt)).filter(|prompt| prompt.len() <= MAX_BYTES)?.to_ascii_lowercase();
    let prompt = prompt.trim_end_matches(['.', '!']);
    let verbs = ["run ", "start ", "launch ", "go ", "please ", "/", ""];
    let endings = [" please", "으로 해줘", "로 해줘"];
    let bare = endings.iter().find_map(|ending| prompt.strip_suffix(ending)).unwrap_or(prompt);
    [Lane::Ralph, Lane::Team]
        .into_iter()
        .find(|lane| verbs.iter().any(|verb| bare.strip_prefix(verb) == Some(lane.name())))
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

/// Both documents are complete, and the PRD starts the work in this lane.
pub fn is_ready(prd: &str, test_spec: &str, lane: Lane) -> bool {
    PRD_SECTIONS.iter().all(|section| has_section(prd, section))
        && TEST_SECTIONS.iter().all(|section| has_section(test_spec, section))
        && launches(prd, lane)
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

/// Exactly one command for the lane with a quoted task.
fn launches(prd: &str, lane: Lane) -> bool {
    const COMMANDS: &[&str] = &["omc ", "omx ", "$", "/omc:", "/oh-my-claudecode:"];
    let tasks = format!("{} \"", lane.name());
    let commands =
        prd.match_indices(&tasks).filter(|(at, _)| COMMANDS.iter().any(|command| prd[..*at].ends_with(command)));
    commands.count() == 1
}

#[cfg(test)]
mod tests {
    use super::{Lane, go_ahead, is_over, is_ready, subject_of_prd};

    const PRD: &str =
        "# PRD\n\n## Acceptance criteria\n- stored\n\n## Requirement coverage map\n- R1\n\nomc ralph \"build it\"\n";
    const TEST_SPEC: &str = "## Unit coverage\n- store\n## Verification mapping:\n- T1\n";

    #[test]
    fn only_a_bare_word_is_a_go_ahead() {
        for prompt in
            ["ralph", " Ralph please ", "run ralph", "/ralph", "go ralph!", "launch ralph please", "please ralph"]
        {
            assert_eq!(go_ahead(prompt), Some(Lane::Ralph), "{prompt}");
        }
        for prompt in
            ["team", "/team", "TEAM please", "run team", "start team", "launch team", "go team", "team으로 해줘"]
        {
            assert_eq!(go_ahead(prompt), Some(Lane::Team), "{prompt}");
        }
        let long = format!("ralph{}", " ".repeat(100)) + "please";
        for prompt in [
            "ralph fix it",
            "what is ralph",
            "ralphy",
            "do not run ralph",
            "ralph?",
            "",
            "team fix it",
            "teams",
            long.as_str(),
        ] {
            assert_eq!(go_ahead(prompt), None, "{prompt}");
        }
    }

    #[test]
    fn a_plan_is_ready_when_all_its_sections_say_something_and_one_command_starts_it() {
        let ready = |prd: &str, test_spec: &str| is_ready(prd, test_spec, Lane::Ralph);
        assert!(ready(PRD, TEST_SPEC));
        assert!(!ready(PRD, "## Unit coverage\n## Verification mapping\n- T1"));
        assert!(!ready(&PRD.replace("- stored", ""), TEST_SPEC));
        assert!(!ready(&[PRD, PRD].concat(), TEST_SPEC));
        for command in ["omc team \"x\"", "$team \"x\"", "/omc:team \"x\""] {
            let prd = PRD.replace("omc ralph \"build it\"", command);
            assert!(!ready(&prd, TEST_SPEC) && is_ready(&prd, TEST_SPEC, Lane::Team), "{command}");
        }
        assert!(!is_ready(&PRD.replace("omc ralph", "our team"), TEST_SPEC, Lane::Team));
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
