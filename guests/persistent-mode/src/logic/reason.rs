//! What the model and the person get to read: the marker first, what to do next, the task, how to end.
//!
//! Markers are fixed, because the keyword detector knows them and takes a text with one for an echo. What comes from files
//! is one line without control characters, cut to a length.

use std::fmt::Write as _;

use omc_state::{Critic, Invocation, MAX_VERIFICATION_ATTEMPTS, Mode, Scope, ToolError, truncate_units};

/// Longest quotation of a task or of an error, in UTF-16 units: what a state keeps of a prompt.
const MAX_QUOTE_UNITS: usize = 500;

/// Longest phase or tool name that is quoted, in UTF-16 units.
const MAX_NAME_UNITS: usize = 60;

/// From this many failures of the same call another try is no use: the original's number.
const RETRIES_BEFORE_CHANGE: u64 = 5;

/// What stands in these texts for the command that ends a mode, alone and with the older plugin's beside it, until
/// [`name_commands`]. Only we can write it: quotations have no control characters.
pub(super) const CANCEL: &str = "\u{1}";
const CANCEL_BY_ANY_NAME: &str = "\u{2}";

/// The line that says how to end. Contains [`CANCEL_BY_ANY_NAME`].
const HOW_TO_END: &str = "When it is done and checked, end the mode with \u{2}; add --force if it will not end.";

/// A text with the commands as the agent understands them.
pub(super) fn name_commands(text: &str, invocation: Invocation) -> String {
    text.replace(CANCEL_BY_ANY_NAME, &invocation.cancel_by_any_name()).replace(CANCEL, &invocation.command("cancel"))
}

pub(super) fn ralph(iteration: u64, limit: u64, is_extended: bool, hint: Option<&str>, task: Option<&str>) -> String {
    let extended = if is_extended { "[RALPH LOOP - EXTENDED] " } else { "" };
    let head =
        format!("{extended}[RALPH LOOP - ITERATION {iteration}/{limit}] The task is not finished. Keep working.");
    compose(&head, task, hint.unwrap_or("Compare what is there with the task, do the next missing part and test it."))
}

pub(super) fn next_story(id: &str, title: &str, confirmed: usize, all: usize) -> String {
    let title = quote(title, MAX_NAME_UNITS);
    format!(
        "Stories confirmed: {confirmed} of {all}. Next is {} ({title}): meet its acceptance criteria, check them, then set its \
         `passes` in the PRD.",
        name(id)
    )
}

/// What a reviewer is asked.
pub(super) struct Request<'a> {
    pub(super) id: &'a str,
    pub(super) scope: &'a Scope,
    pub(super) critic: Critic,
}

pub(super) fn review(request: &Request<'_>, attempt: u64) -> String {
    review_text(request, attempt, "is said to be done.", "Have it")
}

pub(super) fn review_again(request: &Request<'_>, attempt: u64, feedback: &str) -> String {
    let found = format!("was not confirmed: {}", quote(feedback, MAX_QUOTE_UNITS));
    review_text(request, attempt, &found, "Correct that, then have it")
}

fn review_text(request: &Request<'_>, attempt: u64, found: &str, order: &str) -> String {
    let (what, story) = match request.scope {
        Scope::Story(id) => (format!("Story {}", name(id)), format!(" story-id=\"{}\"", name(id))),
        Scope::Completion => ("The whole work".to_owned(), String::new()),
    };
    let (critic, id) = (request.critic.name(), request.id);
    let who = match request.critic {
        Critic::Architect => "a subagent that did not write it, in the role of an architect",
        Critic::Critic => "a subagent that did not write it, in the role of a critic",
        Critic::Codex => "Codex, from the command line",
    };
    format!(
        "[ARCHITECT VERIFICATION REQUIRED - Attempt {attempt}/{MAX_VERIFICATION_ATTEMPTS}] {what} {found} {order} reviewed \
         against the acceptance criteria by {who}. The reviewer ends its answer with\n\
         <ralph-approved critic=\"{critic}\" request-id=\"{id}\"{story}>VERIFIED_COMPLETE</ralph-approved>\n\
         if everything is met, else with\n\
         <ralph-rejected critic=\"{critic}\" request-id=\"{id}\"{story}>what is missing</ralph-rejected>\n\
         Only the reviewer's own answer counts. {HOW_TO_END}"
    )
}

pub(super) fn review_failed(feedback: &str) -> String {
    format!(
        "The reviewer did not confirm it: {} Take `passes` back in the PRD, correct the work and go on.",
        quote(feedback, MAX_QUOTE_UNITS)
    )
}

pub(super) fn no_review() -> String {
    "No reviewer has answered. Go on with the work, and ask for the review again when it is possible.".to_owned()
}

pub(super) fn ralph_verified() -> String {
    "[RALPH LOOP VERIFIED COMPLETE] Every story is done and a reviewer confirmed the whole, so ralph has ended."
        .to_owned()
}

pub(super) fn ralph_team_complete() -> String {
    "[RALPH LOOP COMPLETE - TEAM] The team that ralph worked through has finished, so ralph has ended.".to_owned()
}

pub(super) fn ralph_team_failed() -> String {
    "[RALPH LOOP STOPPED - TEAM FAILED] The team that ralph worked through has failed, so ralph has ended. Look at its state \
     before you start again."
        .to_owned()
}

pub(super) fn ralph_team_cancelled() -> String {
    "[RALPH LOOP CANCELLED - TEAM] The team that ralph worked through was cancelled, and ralph with it.".to_owned()
}

pub(super) fn ultragoal(count: u64, limit: u64, objective: Option<&str>) -> String {
    let head = format!("[ULTRAGOAL #{count}/{limit}] The goal is not reached. Keep working.");
    compose(
        &head,
        objective,
        "Take the next open goal, do it, check it, and note its status in .omc/ultragoal/goals.json.",
    )
}

pub(super) fn team(stage: &str, count: u64, limit: u64, task: Option<&str>) -> String {
    let stage = name(stage).to_uppercase();
    let head = format!(
        "[TEAM PIPELINE - PHASE: {stage} | REINFORCEMENT {count}/{limit}] The team is at work. Go on leading it."
    );
    compose(&head, task, NEXT_FOR_TEAM)
}

pub(super) fn omc_teams(stage: &str, task: Option<&str>) -> String {
    let head = format!("[OMC TEAMS - Phase: {}] The teams are at work. Go on leading them.", name(stage));
    compose(&head, task, NEXT_FOR_TEAM)
}

const NEXT_FOR_TEAM: &str =
    "Read what the members report, hand out what is free, check what is done, and note the next stage in the state.";

pub(super) fn team_breaker(limit: u64) -> String {
    format!(
        "[TEAM PIPELINE CIRCUIT BREAKER] {limit} reminders in a few minutes did not move the team, so the agent may stop. \
         The team is still on: send a message to go on, or end it with {CANCEL}."
    )
}

pub(super) fn skill(skill: &str, count: u64, limit: u64) -> String {
    format!(
        "[SKILL ACTIVE: {}] ({count}/{limit}) The skill is not finished. Go on with its next step; if it waits for the user, ask \
         with the question tool. When it is done, say so by ending it with {CANCEL_BY_ANY_NAME}.",
        name(skill)
    )
}

pub(super) fn ralph_hard_limit(cap: u64) -> String {
    format!(
        "[RALPH LOOP - HARD LIMIT] Ralph has ended: it reached {cap} iterations, the most that are allowed. \
         Look at what is missing before you start it again; ralph.hardMaxIterations sets the limit."
    )
}

pub(super) fn autopilot(phase: Option<&str>, task: Option<&str>) -> String {
    let (phase, next) = match phase {
        Some(phase) => (name(phase), "Finish this phase, note the next one in the state and go on with it."),
        None => (
            "not noted yet".to_owned(),
            "See which phase the work is in (expansion, planning, execution, qa or validation), note it in the state and go on \
             with it.",
        ),
    };
    let head = format!("[AUTOPILOT - Phase: {phase}] The work is not finished. Keep working.");
    compose(&head, task, next)
}

pub(super) fn ralplan(count: u64, limit: u64, task: Option<&str>) -> String {
    let head = format!(
        "[RALPLAN - CONSENSUS PLANNING | REINFORCEMENT {count}/{limit}] There is no agreed plan yet. Go on planning."
    );
    compose(
        &head,
        task,
        "Take the next step of planner, architect and critic; when they agree, ask the user to approve.",
    )
}

pub(super) fn ralplan_breaker(limit: u64) -> String {
    format!(
        "[RALPLAN CIRCUIT BREAKER] Ralplan has ended: {limit} rounds brought no agreed plan. \
         Read what there is and decide, or start again with a smaller question."
    )
}

pub(super) fn ultraqa(cycle: u64, limit: u64, goal: Option<&str>) -> String {
    let head = format!("[ULTRAQA - Cycle {cycle}/{limit}] Not everything passes yet. Keep working.");
    compose(&head, goal, "Run the checks, find the cause of the first failure, fix it, run them again.")
}

pub(super) fn ultrawork(count: u64, limit: u64, task: Option<&str>) -> String {
    let head = format!("[ULTRAWORK #{count}/{limit}] The work may not be finished. Keep working.");
    let next = "Go through your open items, run independent ones in parallel, and check each result.";
    compose(&head, task, next)
}

/// A mode has used up its refusals.
pub(super) fn exhausted(mode: Mode, limit: u64) -> String {
    let marker = mode.name().to_uppercase();
    format!("[{marker} ENDED] {limit} reminders did not bring {mode} to its end, so it no longer holds the agent.")
}

pub(super) fn no_progress(limit: u64) -> String {
    format!(
        "[PERSISTENT MODE PAUSED - NO TOOL PROGRESS] The agent was sent on {limit} times in a row and used no tool, so it \
         may stop. The mode goes on with the next tool call; {CANCEL} ends it."
    )
}

/// What stands before the reason when a tool has just failed.
pub(super) fn tool_error(error: &ToolError) -> String {
    let (marker, next) = if error.retry_count < RETRIES_BEFORE_CHANGE {
        ("[TOOL ERROR - RETRY REQUIRED]", "Find the cause, fix it and try again before you go on.")
    } else {
        (
            "[TOOL ERROR - ALTERNATIVE APPROACH NEEDED]",
            "The same call keeps failing: do not repeat it. Take another way, check the environment, or ask the user.",
        )
    };
    let tool = name(&error.tool_name);
    let times = if error.retry_count > 1 { format!(" ({} times)", error.retry_count) } else { String::new() };
    let quote = quote(&error.error, MAX_QUOTE_UNITS);
    format!("{marker} {tool} failed{times}: {quote}\n{next}")
}

fn compose(head: &str, task: Option<&str>, next: &str) -> String {
    let mut text = format!("{head}\n{next}\n");
    if let Some(task) = task {
        // Writing to a String cannot fail.
        let _infallible = writeln!(text, "Task: {}", quote(task, MAX_QUOTE_UNITS));
    }
    text.push_str(HOW_TO_END);
    text
}

/// A short word from a file that stands inside a marker or a sentence.
pub(super) fn name(text: &str) -> String {
    quote(&text.replace(['[', ']', '<', '>', '"'], ""), MAX_NAME_UNITS)
}

/// Text from a file on one line, without control characters.
fn quote(text: &str, max_units: usize) -> String {
    // Bounded before it is looked at: a quotation never needs more than this of a long text.
    let text = truncate_units(text, 4 * max_units);
    let words: Vec<_> =
        text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty()).collect();
    truncate_units(&words.join(" "), max_units)
}
