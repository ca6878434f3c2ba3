//! What an agent makes of a hooks file: for each handler whether it runs, and what about it is not as it looks.
//!
//! An agent says little about a hook that never runs, and the one that was to guard something is then missed too late. Rules
//! are those of the agents' own parsers; where those are not known to the letter, the milder finding is given.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use serde::Serialize;
use serde_json::{Map, Value};

use super::document::{Document, Format};
use super::reach::{self, Reach};
use super::rules::{self, COMMAND, Shape};
use super::trust::{self, Trust, Trusted};
use crate::cli::HookArguments;
use crate::protocol::contract::{self, Contract, Install};
use crate::protocol::event::{Agent, Kind};

/// A timeout from here on, in seconds, is taken for one that was meant in milliseconds: nobody waits a quarter of an hour for
/// a hook, and a second written in milliseconds is 1000.
const SUSPICIOUS_TIMEOUT_S: f64 = 900.0;

/// What the host needs between its own deadline and the agent's: to start, and to write its answer.
const OWN_MARGIN: Duration = Duration::from_millis(200);

/// All there is to say about a hooks file.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Report {
    pub(crate) agent: &'static str,
    /// Whether the agent takes the file at all.
    pub(crate) loads: bool,
    /// What is to be said about the file as a whole.
    pub(crate) findings: Vec<Finding>,
    pub(crate) handlers: Vec<HandlerReport>,
}

impl Report {
    /// Whether nothing is wrong with it.
    pub fn is_in_order(&self) -> bool {
        let mut all = self.findings.iter().chain(self.handlers.iter().flat_map(|handler| &handler.findings));
        self.loads && all.all(|finding| finding.severity == Severity::Note)
    }

    /// What is wrong with the file as a whole.
    pub(crate) fn problems(&self) -> impl Iterator<Item = &str> {
        let problems = self.findings.iter().filter(|finding| finding.severity == Severity::Problem);
        problems.map(|finding| finding.text.as_str())
    }
}

/// What happens to one handler.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct HandlerReport {
    pub(crate) event: String,
    /// Its group's and its own number, as Codex counts them.
    pub(crate) group: usize,
    pub(crate) handler: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) matcher: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) r#type: Option<String>,
    /// What it does: the command, the URL, the tool or the prompt.
    pub(crate) what: String,
    pub(crate) outcome: Outcome,
    pub(crate) findings: Vec<Finding>,
    /// Codex's hash of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) hash: Option<String>,
    /// What Codex's state says of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) trust: Option<Trust>,
}

/// Whether a handler runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Outcome {
    Runs,
    /// The agent leaves it out.
    Skipped,
    /// It is there and its matcher or condition is never met.
    NeverMatches,
    /// The agent refuses the whole file because of it.
    BreaksFile,
    /// It would run if the file were not refused.
    NotLoaded,
}

/// Something to be said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    pub(crate) severity: Severity,
    pub(crate) text: String,
}

/// Whether something has to be done about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Severity {
    Problem,
    Note,
}

pub(super) fn problem(text: impl Into<String>) -> Finding {
    Finding { severity: Severity::Problem, text: text.into() }
}

pub(super) fn note(text: impl Into<String>) -> Finding {
    Finding { severity: Severity::Note, text: text.into() }
}

/// What to check with.
pub struct Context<'a> {
    /// The file's name, for its format.
    pub path: &'a Path,
    /// The name under which Codex keeps trust in the file.
    pub source: &'a str,
    /// The agent, if it was named.
    pub agent: Option<Agent>,
    /// What Codex trusts, if that is known.
    pub trusted: Option<&'a Trusted>,
}

/// Checks a file of an agent.
pub fn check(text: &str, context: &Context<'_>) -> Report {
    let document = match Document::parse(context.path, text, context.agent) {
        Ok(document) => document,
        Err(error) => {
            let agent = context.agent.map_or("unknown", Agent::name);
            return Report {
                agent,
                loads: false,
                findings: vec![problem(format!("the file cannot be read: {error}"))],
                handlers: Vec::new(),
            };
        }
    };
    let mut checker = Checker { document: &document, context, loads: true, findings: Vec::new(), handlers: Vec::new() };
    checker.file();
    for (event, groups) in document.events() {
        checker.event(event, groups);
    }
    checker.duplicates();
    checker.order();
    let Checker { loads, findings, mut handlers, .. } = checker;
    if !loads {
        for handler in &mut handlers {
            if handler.outcome != Outcome::BreaksFile {
                handler.outcome = Outcome::NotLoaded;
            }
        }
    }
    Report { agent: document.agent.name(), loads, findings, handlers }
}

struct Checker<'a> {
    document: &'a Document,
    context: &'a Context<'a>,
    loads: bool,
    findings: Vec<Finding>,
    handlers: Vec<HandlerReport>,
}

impl Checker<'_> {
    fn is_codex(&self) -> bool {
        self.document.agent == Agent::Codex
    }

    /// Something that Codex refuses the whole file for, and Claude Code leaves out.
    fn malformed(&mut self, what: &str) {
        if self.is_codex() {
            self.loads = false;
            self.findings.push(problem(format!("{what}; Codex refuses the whole file for it")));
        } else {
            self.findings.push(problem(format!("{what}; Claude Code leaves it out")));
        }
    }

    fn file(&mut self) {
        let root = &self.document.root;
        if self.is_codex() && self.document.format == Format::Hooks {
            for key in root.keys().filter(|key| !matches!(key.as_str(), "description" | "hooks")) {
                self.malformed(&format!("`{key}` stands beside `hooks`"));
            }
        }
        match root.get("hooks") {
            None => self.findings.push(note("there are no hooks in it")),
            Some(Value::Object(_)) => {}
            Some(Value::String(_) | Value::Array(_)) => {
                self.findings.push(note("`hooks` names other files; check those"));
            }
            Some(_) => self.malformed("`hooks` is no object"),
        }
        if root.get("disableAllHooks") == Some(&Value::Bool(true)) {
            self.findings.push(problem("`disableAllHooks` is true, so that no hook runs"));
        }
        let features = root.get("features");
        let is_off = |name: &str| features.and_then(|features| features.get(name)) == Some(&Value::Bool(false));
        if self.document.format == Format::Toml && (is_off("hooks") || is_off("codex_hooks")) {
            self.findings.push(problem("`features.hooks` is false, so that no hook runs"));
        }
    }

    fn event(&mut self, event: &str, groups: &Value) {
        let contract = contract::of(self.document.agent, event);
        if contract.kind == Kind::Other {
            let rows = contract::rows(self.document.agent);
            let meant = rows.iter().find(|row| is_same_name(row.event, event));
            let meant = meant.map(|row| format!("; is `{}` meant?", row.event)).unwrap_or_default();
            let agent = title(self.document.agent);
            self.findings.push(problem(format!("{agent} has no event `{event}`, so its hooks never run{meant}")));
        } else if contract.install == Install::OnRequest {
            self.findings.push(note(format!("a hook on `{event}` changes what the agent does by being there")));
        }
        let Value::Array(groups) = groups else { return self.malformed(&format!("`{event}` is no list of groups")) };
        for (number, group) in groups.iter().enumerate() {
            let Value::Object(group) = group else {
                self.malformed(&format!("`{event}` number {number} is no object"));
                continue;
            };
            self.group(event, contract, number, group);
        }
    }

    fn group(&mut self, event: &str, contract: &Contract, number: usize, group: &Map<String, Value>) {
        let here = format!("`{event}` number {number}");
        let matcher = match group.get("matcher") {
            None | Some(Value::Null) => None,
            Some(Value::String(matcher)) => Some(matcher.as_str()),
            Some(_) => return self.malformed(&format!("the matcher of {here} is no text")),
        };
        let handlers = match group.get("hooks") {
            Some(Value::Array(handlers)) => handlers,
            None if group.contains_key("type") => {
                return self.malformed(&format!("{here} is a handler and no group: it belongs into a group's `hooks`"));
            }
            _ => return self.malformed(&format!("{here} has no list `hooks`")),
        };
        let reach = match contract.kind {
            Kind::Other => Reach { outcome: Outcome::Skipped, findings: Vec::new() },
            _ => reach::of(contract, matcher),
        };
        for (at, handler) in handlers.iter().enumerate() {
            let Value::Object(handler) = handler else {
                self.malformed(&format!("handler {at} of {here} is no object"));
                continue;
            };
            let mut report = HandlerReport {
                event: event.to_owned(),
                group: number,
                handler: at,
                matcher: matcher.map(str::to_owned),
                r#type: handler.get("type").and_then(Value::as_str).map(str::to_owned),
                what: what(handler),
                outcome: reach.outcome,
                findings: reach.findings.clone(),
                hash: None,
                trust: None,
            };
            Handler { checker: self, contract, members: handler, report: &mut report }.check();
            if self.is_codex() && contract.kind != Kind::Other {
                self.trust(contract, matcher, handler, &mut report);
            }
            self.loads &= report.outcome != Outcome::BreaksFile;
            self.handlers.push(report);
        }
    }

    fn trust(
        &self,
        contract: &Contract,
        matcher: Option<&str>,
        handler: &Map<String, Value>,
        report: &mut HandlerReport,
    ) {
        let Some(hash) = trust::hash(contract, matcher, handler) else { return };
        let place = trust::place(self.context.source, contract, report.group, report.handler);
        if let Some(trusted) = self.context.trusted {
            let trust = trusted.judge(&place, &hash);
            report.findings.extend(match &trust {
                Trust::Trusted => None,
                Trust::New => Some(note("Codex does not trust it yet; until you do in `/hooks`, it is skipped")),
                Trust::Changed => Some(problem("it changed since it was trusted; until you do again, it is skipped")),
                Trust::Moved { from } => Some(problem(format!(
                    "it is trusted as `{from}` and stands elsewhere now; put it back, new ones after it, or trust it again"
                ))),
            });
            report.trust = Some(trust);
        }
        report.hash = Some(hash);
    }

    /// The same handler more than once on an event: Codex runs both, and so does Claude Code across a plugin and settings.
    fn duplicates(&mut self) {
        let mut seen = BTreeMap::new();
        for (at, handler) in self.handlers.iter().enumerate() {
            let key = (handler.event.clone(), handler.matcher.clone(), handler.r#type.clone(), handler.what.clone());
            seen.entry(key).or_insert_with(Vec::new).push(at);
        }
        let is_codex = self.is_codex();
        for places in seen.values().filter(|places| places.len() > 1) {
            for &at in &places[1..] {
                let first = &self.handlers[places[0]];
                let first = format!("number {}, handler {}", first.group, first.handler);
                let text = if is_codex { "it runs as often" } else { "it runs once all the same" };
                let text = format!("it is the same as that of {first}; {text}");
                self.handlers[at].findings.push(if is_codex { problem(text) } else { note(text) });
            }
        }
    }

    /// Which order must stay: the place is part of Codex's trust.
    fn order(&mut self) {
        if !self.is_codex() {
            return;
        }
        let mut events: Vec<(&str, Vec<&Option<String>>)> = Vec::new();
        for handler in &self.handlers {
            match events.iter_mut().find(|(event, _)| *event == handler.event) {
                Some((_, hashes)) => hashes.push(&handler.hash),
                None => events.push((&handler.event, vec![&handler.hash])),
            }
        }
        for (event, hashes) in events {
            let differ = hashes.windows(2).any(|pair| pair[0] != pair[1]);
            if differ {
                self.findings.push(note(format!(
                    "the order of the {} handlers of `{event}` is part of what Codex trusts: append new ones at the end",
                    hashes.len()
                )));
            }
        }
    }
}

/// One handler under inspection.
struct Handler<'a, 'c> {
    checker: &'a Checker<'c>,
    contract: &'a Contract,
    members: &'a Map<String, Value>,
    report: &'a mut HandlerReport,
}

impl Handler<'_, '_> {
    fn check(mut self) {
        let agent = self.checker.document.agent;
        let known = rules::known_types(agent);
        let Some(kind) = self.members.get("type").and_then(Value::as_str).filter(|kind| known.contains(kind)) else {
            let written = self.members.get("type").map_or("no type".to_owned(), |kind| format!("the type {kind}"));
            return self.malformed(&format!("it has {written}; {} takes {}", title(agent), known.join(", ")));
        };
        let runs = rules::types(agent, self.contract.kind);
        if self.contract.kind != Kind::Other && !runs.contains(&kind) {
            let event = if agent == Agent::Codex && [rules::PROMPT, rules::AGENT].contains(&kind) {
                "on any event".to_owned()
            } else {
                format!("on `{}`", self.contract.event)
            };
            self.skipped(&format!("{} runs no handler of type `{kind}` {event}", title(agent)));
        }
        self.shapes(kind);
        self.ignored(kind);
        self.timeout();
        match agent {
            Agent::Codex => self.codex(),
            _ => self.claude(),
        }
        self.command();
    }

    fn problem(&mut self, text: impl Into<String>) {
        self.report.findings.push(problem(text));
    }

    fn note(&mut self, text: impl Into<String>) {
        self.report.findings.push(note(text));
    }

    fn malformed(&mut self, what: &str) {
        if self.checker.is_codex() {
            self.report.outcome = Outcome::BreaksFile;
            self.problem(format!("{what}; Codex refuses the whole file for it"));
        } else {
            self.skipped(&format!("{what}; Claude Code leaves it out"));
        }
    }

    fn skipped(&mut self, why: &str) {
        if self.report.outcome != Outcome::BreaksFile {
            self.report.outcome = Outcome::Skipped;
        }
        self.problem(why);
    }

    /// Members that are missing or of the wrong kind.
    fn shapes(&mut self, kind: &str) {
        for member in rules::members(self.checker.document.agent) {
            if !member.types.contains(&kind) {
                continue;
            }
            let name = member.name;
            match self.members.get(name) {
                None if member.required => self.malformed(&format!("`{name}` is missing")),
                // Codex takes null for absent, but for flags.
                Some(Value::Null) if self.checker.is_codex() && !member.required && member.shape != Shape::Flag => {}
                Some(value) if !fits(value, member.shape) => {
                    self.malformed(&format!("`{name}` is {}", shortened(&value.to_string())));
                }
                None | Some(_) => {}
            }
        }
        if kind == COMMAND
            && self.members.get("command").and_then(Value::as_str).is_some_and(|text| text.trim().is_empty())
        {
            self.skipped("the command is empty");
        }
    }

    /// Members that do nothing here.
    fn ignored(&mut self, kind: &str) {
        let agent = self.checker.document.agent;
        for name in self.members.keys() {
            let known = rules::members(agent).iter().find(|member| member.name == name);
            match known {
                Some(member) if member.types.contains(&kind) => {}
                Some(_) => self.problem(format!("`{name}` means nothing for the type `{kind}`")),
                None => self.problem(match name.as_str() {
                    "if" => "`if` is ignored: the hook runs without its condition".to_owned(),
                    "args" => "`args` is ignored: the command runs without its arguments".to_owned(),
                    _ => format!("`{name}` is ignored"),
                }),
            }
        }
    }

    fn timeout(&mut self) {
        let Some(written) = self.members.get("timeout") else { return };
        let Some(seconds) = written.as_f64() else { return };
        if self.checker.is_codex() && written.as_u64().is_none() {
            return self.malformed(&format!("the timeout {written} is no whole number of seconds"));
        }
        let max = self.contract.max_timeout_ms.map(|max| f64::from(max) / 1_000.0);
        if seconds <= 0.0 {
            self.problem(format!("the timeout {written} leaves no time"));
        } else if seconds >= SUSPICIOUS_TIMEOUT_S {
            self.problem(format!("the timeout of {written} s looks like milliseconds; it is in seconds"));
        } else if let Some(max) = max.filter(|&max| seconds > max) {
            self.problem(format!("the timeout of {written} s is above the maximum of {max} s, which counts"));
        }
        if self.contract.kind == Kind::SessionEnd
            && self.checker.document.agent == Agent::Claude
            && self.checker.document.format == Format::Hooks
        {
            let budget = f64::from(self.contract.timeout_ms) / 1_000.0;
            if seconds > budget {
                self.note(format!(
                    "in a plugin this timeout does not raise the budget of {budget} s for all hooks together"
                ));
            }
        }
    }

    fn claude(&mut self) {
        let kind = self.contract.kind;
        let text = |name: &str| self.members.get(name).and_then(Value::as_str);
        let is_set = |name: &str| self.members.get(name) == Some(&Value::Bool(true));
        let (shell, args) = (text("shell").is_some(), self.members.contains_key("args"));
        let (is_async, rewakes) = (is_set("async"), is_set("asyncRewake"));
        let on_failure = text("onFailure").map(str::to_owned);
        if self.members.contains_key("if") && kind != Kind::Other && !rules::EVENTS_WITH_IF.contains(&kind) {
            self.problem(format!("`if` is never met on `{}`, so that it never runs", self.contract.event));
            if self.report.outcome == Outcome::Runs {
                self.report.outcome = Outcome::NeverMatches;
            }
        }
        if self.members.contains_key("once") {
            self.problem("`once` counts only in the hooks of a skill");
        }
        if shell && args {
            self.problem("`shell` is ignored beside `args`: no shell is started");
        }
        if is_async && self.members.contains_key("timeout") {
            self.problem("the timeout does not count beside `async`");
        }
        if is_async && can_refuse(self.contract) {
            self.note("with `async` it cannot refuse anything");
        }
        match on_failure.as_deref() {
            Some("block") if is_async || rewakes || rules::EVENTS_WITHOUT_ON_FAILURE.contains(&kind) => {
                self.problem("`onFailure` does nothing here");
            }
            None | Some("continue" | "block") => {}
            Some(other) => {
                let other = shortened(other);
                self.problem(format!("`onFailure` is `{other}`, which is neither continue nor block"));
            }
        }
    }

    fn codex(&mut self) {
        let kind = self.contract.kind;
        if self.members.contains_key("additionalContextLimit")
            && kind != Kind::Other
            && !rules::EVENTS_WITH_CONTEXT_LIMIT.contains(&kind)
        {
            self.problem(format!("`additionalContextLimit` is ignored on `{}`", self.contract.event));
        }
        if self.members.get("async") == Some(&Value::Bool(true)) {
            if kind == Kind::SessionEnd {
                self.problem("`async` is ignored on `SessionEnd`, with a warning");
            } else if can_refuse(self.contract) {
                self.note("with `async` it cannot refuse anything");
            }
        }
        let windows = ["commandWindows", "command_windows"].iter().find_map(|name| self.members.get(*name)?.as_str());
        if windows.is_some_and(|command| command.trim_start().starts_with(['"', '\''])) {
            self.problem(
                "PowerShell prints a quoted path instead of running it: `commandWindows` must start without quotes",
            );
        }
    }

    /// What is known about the command line, above all if it is our own.
    fn command(&mut self) {
        let Some(command) = self.members.get("command").and_then(Value::as_str) else { return };
        let agent = self.checker.document.agent;
        let args = self.members.get("args").and_then(Value::as_array).filter(|_| agent != Agent::Codex);
        let args: Vec<&str> = args.into_iter().flatten().filter_map(Value::as_str).collect();
        let mentions = |name: &str| command.contains(name) || args.iter().any(|arg| arg.contains(name));
        if agent == Agent::Codex && mentions("CLAUDE_PROJECT_DIR") {
            self.problem("Codex sets no `CLAUDE_PROJECT_DIR`");
        }
        let in_plugin = self.checker.document.format == Format::Hooks;
        if !in_plugin && (mentions("CLAUDE_PLUGIN_ROOT") || mentions("{PLUGIN_ROOT}")) {
            self.problem("the variable with the plugin's folder is set for hooks of plugins only");
        }
        if agent == Agent::Claude && !mentions("CLAUDE_PLUGIN_ROOT") && mentions("PLUGIN_ROOT") {
            self.problem("Claude Code sets `CLAUDE_PLUGIN_ROOT`, not `PLUGIN_ROOT`");
        }
        if let Some(words) = own_arguments(command, &args) {
            self.own(&words);
        }
    }

    /// A hook that calls this program.
    fn own(&mut self, words: &[String]) {
        let agent = self.checker.document.agent;
        let words: Vec<_> = words.iter().map(Into::into).collect();
        match HookArguments::read(&words) {
            None => self.problem("omc-host is only asked for help"),
            Some(HookArguments { complaint: Some(complaint), .. }) => {
                self.problem(format!("omc-host does not take the arguments `{}`", shortened(&complaint)));
            }
            Some(HookArguments { agent: Some(named), .. }) if named != agent.name() => {
                self.problem(format!(
                    "omc-host is told to answer `{}`, and this is {}",
                    shortened(&named),
                    title(agent)
                ));
            }
            Some(_) => {}
        }
        let needed = self.contract.deadline() + OWN_MARGIN;
        let timeout = self.members.get("timeout").and_then(Value::as_f64);
        if self.contract.kind != Kind::Other && timeout.is_some_and(|seconds| seconds < needed.as_secs_f64()) {
            self.problem(format!("omc-host may need {} ms here, more than the timeout leaves", needed.as_millis()));
        }
    }
}

/// The arguments after `hook`, if the command line calls this program.
pub(super) fn own_arguments(command: &str, args: &[&str]) -> Option<Vec<String>> {
    let is_ours = |program: &str| {
        let name = program.trim_matches(['"', '\'']).rsplit(['/', '\\']).next().unwrap_or_default();
        name == "omc-host" || name == "omc-host.exe"
    };
    let words: Vec<&str> = if args.is_empty() {
        let at = command.find("omc-host")?;
        let (program, rest) = command.split_at(at + command[at..].find(char::is_whitespace)?);
        if !is_ours(program) {
            return None;
        }
        rest.split_whitespace().collect()
    } else {
        if !is_ours(command) {
            return None;
        }
        args.to_vec()
    };
    let (first, rest) = words.split_first()?;
    (*first == "hook").then(|| rest.iter().map(|word| (*word).to_owned()).collect())
}

/// Whether an answer to the event can keep something from happening.
fn can_refuse(contract: &Contract) -> bool {
    contract.block != contract::Carry::No
}

/// Whether a value is of the kind that a member holds.
pub(super) fn fits(value: &Value, shape: Shape) -> bool {
    match shape {
        Shape::Text => value.is_string(),
        Shape::Texts => value.as_array().is_some_and(|items| items.iter().all(Value::is_string)),
        Shape::Number => value.is_number(),
        Shape::Flag => value.is_boolean(),
        Shape::Object => value.is_object(),
    }
}

/// What a handler does, in one line.
fn what(handler: &Map<String, Value>) -> String {
    let text = |name: &str| handler.get(name).and_then(Value::as_str);
    let mut what = text("command").or_else(|| text("url")).or_else(|| text("prompt")).unwrap_or_default().to_owned();
    if let (Some(server), Some(tool)) = (text("server"), text("tool")) {
        what = format!("{server} {tool}");
    }
    for arg in handler.get("args").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str) {
        what = what + " " + arg;
    }
    what
}

/// The agent's name in a sentence.
pub(super) fn title(agent: Agent) -> &'static str {
    if agent == Agent::Codex { "Codex" } else { "Claude Code" }
}

/// Whether two names differ only in case and separators.
fn is_same_name(one: &str, other: &str) -> bool {
    let letters = |name: &str| -> String {
        name.chars().filter(|letter| letter.is_alphanumeric()).flat_map(char::to_lowercase).collect()
    };
    letters(one) == letters(other)
}

/// A text of the file within a sentence.
pub(super) fn shortened(text: &str) -> String {
    /// Characters that are shown: enough to find the place.
    const MAX_SHOWN: usize = 80;
    if text.chars().count() <= MAX_SHOWN {
        text.to_owned()
    } else {
        text.chars().take(MAX_SHOWN).collect::<String>() + "…"
    }
}

#[cfg(test)]
mod tests;
