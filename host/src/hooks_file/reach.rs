//! What a group's matcher can ever match, by its agent's rules and by what is known of the event's target.

use super::check::{Finding, Outcome, Severity, note, problem, shortened, title};
use super::rules;
use crate::protocol::contract::{Contract, Target};
use crate::protocol::event::Agent;
use crate::protocol::matcher::{Matcher, Syntax};

/// Whether a matcher reaches anything, and what else is to be said about it.
pub(super) struct Reach {
    pub(super) outcome: Outcome,
    pub(super) findings: Vec<Finding>,
}

impl Reach {
    fn runs(findings: Vec<Finding>) -> Self {
        Self { outcome: Outcome::Runs, findings }
    }

    fn never(why: impl Into<String>) -> Self {
        Self { outcome: Outcome::NeverMatches, findings: vec![problem(why)] }
    }
}

/// What the matcher of a group reaches.
pub(super) fn of(contract: &Contract, pattern: Option<&str>) -> Reach {
    let agent = contract.agent;
    let matcher = match Matcher::with_syntax(Syntax::of(contract), pattern) {
        Ok(matcher) => matcher,
        // JavaScript has more than this host's engine.
        Err(_) if agent == Agent::Claude && pattern.is_some_and(is_javascript_only) => {
            return Reach::runs(vec![note(
                "the matcher uses what only JavaScript's expressions have; whether it matches was not looked at",
            )]);
        }
        Err(error) => return Reach { outcome: Outcome::Skipped, findings: vec![problem(error.to_string())] },
    };
    if matcher.is_everything() {
        return Reach::runs(Vec::new());
    }
    let pattern = pattern.unwrap_or_default();
    match contract.target {
        Target::None => Reach::runs(vec![problem(format!(
            "`{}` has nothing to match: the hook runs on each, whatever its matcher says",
            contract.event
        ))]),
        Target::Member(member, values) if !values.is_empty() => of_values(contract, &matcher, member, values),
        Target::Member(..) | Target::FileName => Reach::runs(spills_over(contract, &matcher, pattern)),
        Target::Tool(_) => of_tools(contract, &matcher, pattern),
    }
}

/// A matcher of an event whose target has known values.
fn of_values(contract: &Contract, matcher: &Matcher, member: &str, values: &[&str]) -> Reach {
    let known = || format!("`{member}` is one of {}", values.join(", "));
    if !values.iter().any(|value| matcher.matches_target(contract, value)) {
        return Reach::never(format!("the matcher matches no value that is known: {}", known()));
    }
    let strangers = matcher.names().into_iter().flatten().filter(|name| !values.contains(&name.as_str()));
    Reach::runs(strangers.map(|name| problem(format!("no event has `{}`: {}", shortened(name), known()))).collect())
}

/// A matcher of an event about tools. There are more tools than are known, so that only what cannot be a name is sure.
fn of_tools(contract: &Contract, matcher: &Matcher, pattern: &str) -> Reach {
    let agent = contract.agent;
    let Some(names) = matcher.names() else {
        // Blanks and commas are no part of any tool's name.
        let alternatives: Vec<&str> = pattern.split('|').collect();
        let is_list = pattern.chars().all(|letter| letter.is_ascii_alphanumeric() || "_- ,|".contains(letter));
        let dead = alternatives.iter().filter(|name| is_list && name.contains([' ', ','])).count();
        if dead == alternatives.len() {
            return Reach::never("the matcher is an expression here, and no tool's name has a comma or a blank in it");
        }
        let mut findings = spills_over(contract, matcher, pattern);
        if dead > 0 {
            findings.push(problem("a comma or a blank is part of the name here, and no tool's name has one"));
        } else if !pattern.contains("mcp") && !rules::tools(agent).any(|tool| matcher.matches_target(contract, tool)) {
            findings.push(note("the matcher matches no tool that is known"));
        }
        return Reach::runs(findings);
    };
    let judged: Vec<Option<Finding>> = names.iter().map(|name| of_tool(agent, name)).collect();
    let is_dead =
        |finding: &Option<Finding>| finding.as_ref().is_some_and(|finding| finding.severity == Severity::Problem);
    let outcome = if judged.iter().all(is_dead) { Outcome::NeverMatches } else { Outcome::Runs };
    Reach { outcome, findings: judged.into_iter().flatten().collect() }
}

/// What is to be said about the name of a tool: a problem if nothing has it, a note if nobody knows.
fn of_tool(agent: Agent, name: &str) -> Option<Finding> {
    if rules::tools(agent).any(|tool| tool == name) {
        return None;
    }
    if name.is_empty() {
        return Some(problem("there is an empty name in the matcher"));
    }
    if let Some(rest) = name.strip_prefix("mcp__") {
        let is_whole = rest.split_once("__").is_some_and(|(server, tool)| !server.is_empty() && !tool.is_empty());
        return (!is_whole).then(|| {
            problem(format!(
                "`{}` is compared as it is and is no tool's whole name; `{}__.*` matches all tools of that server",
                shortened(name),
                shortened(name.trim_end_matches('_'))
            ))
        });
    }
    if let Some(tool) = rules::tools(agent).find(|tool| tool.eq_ignore_ascii_case(name)) {
        return Some(problem(format!("`{name}` is not `{tool}`: letter case counts")));
    }
    let other = if agent == Agent::Codex { Agent::Claude } else { Agent::Codex };
    if rules::tools(other).any(|tool| tool == name) {
        return Some(problem(format!("{} has no tool `{name}`; {} does", title(agent), title(other))));
    }
    Some(note(format!("no tool `{}` is known", shortened(name))))
}

/// Names that are taken for expressions, which match longer names too.
fn spills_over(contract: &Contract, matcher: &Matcher, pattern: &str) -> Vec<Finding> {
    let looks_like_a_name =
        pattern.chars().all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | ':'));
    if matcher.names().is_some() || !looks_like_a_name {
        return Vec::new();
    }
    vec![note(format!(
        "{} takes this for an expression, which matches `{pattern}-2` too; `^{pattern}$` does not",
        title(contract.agent)
    ))]
}

/// Whether a pattern has what JavaScript's engine takes and a linear one cannot: look-around, back references, named groups.
fn is_javascript_only(pattern: &str) -> bool {
    let has_reference = pattern.as_bytes().windows(2).any(|pair| pair[0] == b'\\' && pair[1].is_ascii_digit());
    has_reference || ["(?=", "(?!", "(?<", "\\k<", "\\u", "\\p{"].iter().any(|part| pattern.contains(part))
}
