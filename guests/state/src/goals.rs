//! The goals of an ultragoal run, `ultragoal/goals.json`: read only, as far as Stop and the tool hooks need them.
//!
//! The file belongs to the project, not to a session; it says what is to be reached and how far that is.

use std::path::Path;

use crate::{Fields, ModeState, Store};

/// Values of a goal's status that leave nothing to do for the agent.
const OVER: [&str; 2] = ["complete", "review_blocked"];

/// Members of a state that hold the objective, the most deliberate first.
const OBJECTIVE: [&str; 7] = [
    "claude_goal_objective",
    "claudeGoalObjective",
    "codex_objective",
    "codexObjective",
    "goal_objective",
    "goalObjective",
    "objective",
];

/// The goals of the project.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Goals {
    fields: Fields,
}

impl Goals {
    /// Whether all is reached, or what is left waits for somebody else.
    pub fn are_over(&self) -> bool {
        let whole = self.fields.object("aggregateCompletion");
        if whole.is_some_and(|whole| whole.text("status") == Some("complete")) {
            return true;
        }
        let mut goals = self.fields.objects("goals").peekable();
        goals.peek().is_some() && goals.all(|goal| goal.text("status").is_some_and(|status| OVER.contains(&status)))
    }

    /// What is to be reached, as the state says, else as the goals do. Text from files: not to be shown as it is.
    pub fn objective(&self, state: &ModeState) -> Option<String> {
        let of_goals = || {
            let whole = self.fields.object("aggregateCompletion");
            let current = || self.fields.objects("goals").find(|goal| goal.text("status") == Some("in_progress"));
            let named = |fields: Fields| fields.text("objective").map(str::to_owned);
            self.fields
                .text("claudeObjective")
                .map(str::to_owned)
                .or_else(|| named(whole?))
                .or_else(|| named(current()?))
        };
        OBJECTIVE.iter().find_map(|name| state.fields().text(name)).map(str::to_owned).or_else(of_goals)
    }
}

impl From<Fields> for Goals {
    fn from(fields: Fields) -> Self {
        Self { fields }
    }
}

impl Store {
    /// The project's goals; none if there is no file that can be read.
    pub fn read_goals(&self) -> Goals {
        self.read_fields(Path::new("ultragoal/goals.json")).ok().flatten().unwrap_or_default().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{fields, plant, state, store};
    use serde_json::json;

    #[test]
    fn goals_are_over_as_a_whole_or_one_by_one() {
        for (members, over) in [
            (json!({"aggregateCompletion": {"status": "complete"}}), true),
            (json!({"aggregateCompletion": {"status": "open"}, "goals": [{"status": "complete"}]}), true),
            (json!({"goals": [{"status": "complete"}, {"status": "review_blocked"}]}), true),
            (json!({"goals": [{"status": "complete"}, {"status": "in_progress"}]}), false),
            (json!({"goals": [{"status": "complete"}, {}]}), false),
            (json!({"goals": []}), false),
            (json!({"goals": "complete", "aggregateCompletion": ["complete"]}), false),
            (json!({}), false),
        ] {
            assert_eq!(Goals::from(fields(members.clone())).are_over(), over, "{members}");
        }
    }

    #[test]
    fn the_objective_is_the_states_else_the_goals() {
        let file = json!({"aggregateCompletion": {"objective": "whole"}, "goals": [{"status": "in_progress", "objective": "now"}]});
        for (of_state, goals, objective) in [
            (json!({"objective": "mine", "goal_objective": "deliberate"}), file.clone(), Some("deliberate")),
            (json!({"objective": " "}), file.clone(), Some("whole")),
            (
                json!({}),
                json!({"goals": [{"status": "open", "objective": "x"}, {"status": "in_progress", "objective": "now"}]}),
                Some("now"),
            ),
            (json!({}), json!({"claudeObjective": "said"}), Some("said")),
            (json!({}), json!({}), None),
        ] {
            assert_eq!(Goals::from(fields(goals)).objective(&state(of_state)).as_deref(), objective);
        }
    }

    #[test]
    fn a_file_that_cannot_be_read_has_no_goals() {
        let (folder, store) = store();
        assert_eq!(store.read_goals(), Goals::default());
        plant(&folder, "ultragoal/goals.json", "{");
        assert_eq!(store.read_goals(), Goals::default());
        plant(&folder, "ultragoal/goals.json", "{\"goals\": [{\"status\": \"complete\"}]}");
        assert!(store.read_goals().are_over());
    }
}
