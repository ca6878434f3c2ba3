//! Keeps shared branches as they are: a forced push needs a person.

use omc_guest::{Decision, Effects, Error, Event, EventKind, Guest};

struct NoForcePush;

impl Guest for NoForcePush {
    fn handle(event: &Event<'_>, effects: &mut Effects<'_>) -> Result<Decision, Error> {
        if event.kind() != EventKind::PreToolUse {
            return Ok(Decision::Pass);
        }
        // Whatever the agent calls its tool for commands.
        let Some(command) = event.tool_command() else { return Ok(Decision::Pass) };
        if !is_forced_push(&command) {
            return Ok(Decision::Pass);
        }
        effects.add_context("Shared branches are not rewritten in this project; push to a new branch instead.")?;
        Ok(Decision::Block("a forced push rewrites what others have".to_owned()))
    }
}

/// Logic is best kept in functions that know nothing of hosts and guests.
fn is_forced_push(command: &str) -> bool {
    let mut words = command.split_whitespace().skip_while(|word| *word != "push");
    words.any(|word| matches!(word, "--force" | "-f"))
}

omc_guest::export!(NoForcePush, {
    "description": "Keeps shared branches as they are",
    "subscriptions": [{ "event": "pre-tool-use", "matcher": "Bash", "when": ["payload:push"] }],
    "requests": []
});

#[cfg(test)]
mod tests {
    use omc_guest::testing::World;
    use serde_json::json;

    use super::*;

    fn running(command: &str) -> omc_guest::testing::Outcome {
        let payload = json!({ "tool_name": "Bash", "tool_input": { "command": command } });
        World::new("pre-tool-use", payload).call::<NoForcePush>()
    }

    #[test]
    fn a_forced_push_is_blocked_and_the_model_told_what_to_do() {
        for command in ["git push --force", "git push origin main -f"] {
            let outcome = running(command);
            assert!(matches!(outcome.decision, Ok(Decision::Block(_))), "{command}");
            assert_eq!(outcome.context.len(), 1, "{command}");
        }
    }

    #[test]
    fn other_commands_are_none_of_its_business() {
        for command in ["git push", "rm -f notes", "echo --force"] {
            assert_eq!(running(command).decision, Ok(Decision::Pass), "{command}");
        }
    }
}
