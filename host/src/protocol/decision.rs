//! What guests say about an event, and how their opinions become one answer.
//!
//! [`merge`] puts every opinion through the event's contract first and joins what is left. The verdict does not depend on
//! the order of the guests: halt > block > ask > allow > pass. Texts are joined in the order of the opinions, which is the
//! configured one, so that what matters most stands first. [`Merged::fit`] then brings every text under what the agent takes:
//! the whole goes to a file, and the agent gets its beginning, its end and the file's path. All texts that leave here are fit
//! to be shown: no control characters but line ends and tabs.

use std::borrow::Cow;
use std::fmt;

use serde_json::Value;

use super::contract::{Cap, Carry, Context, Contract, Rewrite};
use super::event::Event;

/// What a guest says about an event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Decision {
    /// No opinion.
    #[default]
    Pass,
    /// It may happen without a question.
    Allow,
    /// A person must decide, for this reason.
    Ask(String),
    /// It must not happen, for this reason.
    Block(String),
    /// The agent must end its turn, for this reason.
    Halt(String),
}

impl Decision {
    /// The decision's name, as guests, the trail and people read it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Allow => "allow",
            Self::Ask(_) => "ask",
            Self::Block(_) => "block",
            Self::Halt(_) => "halt",
        }
    }

    /// Which decision wins over which: the higher one.
    fn rank(&self) -> u8 {
        match self {
            Self::Pass => 0,
            Self::Allow => 1,
            Self::Ask(_) => 2,
            Self::Block(_) => 3,
            Self::Halt(_) => 4,
        }
    }

    /// Why, where the decision has a reason.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Pass | Self::Allow => None,
            Self::Ask(reason) | Self::Block(reason) | Self::Halt(reason) => Some(reason),
        }
    }
}

/// What a guest adds to its decision.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Effects {
    /// Texts for the model.
    pub context: Vec<String>,
    /// Texts for the person.
    pub messages: Vec<String>,
    /// The tool's whole new input.
    pub updated_input: Option<Value>,
    /// Variables for the session's later commands, by name.
    pub session_environment: Vec<(String, String)>,
}

/// All that one guest says about an event.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Opinion {
    /// The guest's name.
    pub guest: String,
    /// Its decision.
    pub decision: Decision,
    /// What it adds.
    pub effects: Effects,
}

/// What all guests together say, within the event's contract: the answer before it is written.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Merged {
    /// The strongest decision that the contract carries, with the reasons of all who made it.
    pub decision: Decision,
    /// Text for the model.
    pub context: Option<String>,
    /// Text for the person.
    pub message: Option<String>,
    /// The tool's whole new input.
    pub updated_input: Option<Value>,
    /// Variables for the session's later commands; they are no part of the answer's bytes.
    pub session_environment: Vec<Variable>,
    /// What was said and does not count.
    pub dropped: Vec<Dropped>,
    /// Who wrote what of the texts, until they are made to fit.
    parts: Vec<Part>,
}

/// A variable for the session's later commands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// The guest that sets it.
    pub guest: String,
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
}

/// A guest's part of a joined text.
#[derive(Clone, Debug, PartialEq)]
struct Part {
    /// Which text.
    what: &'static str,
    guest: String,
    /// Where it ends, in bytes.
    end: usize,
}

/// Something that a guest said and that the answer does not carry as it was said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dropped {
    /// The guest's name.
    pub guest: String,
    /// What it said.
    pub what: &'static str,
    /// Why it does not count.
    pub why: Why,
}

/// Why something does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// The event of this agent has no place for it.
    NotCarried,
    /// The agent has no such answer, and a block was given in its place.
    BecameBlock,
    /// The agent has no such answer, and ends its turn in its place.
    BecameHalt,
    /// Another guest's decision was stronger.
    Outvoted,
    /// Another guest's came first in the configured order.
    Conflict,
    /// The tool is not run, or not by this answer.
    Undecided,
    /// It is not what the tool takes.
    Invalid,
    /// It went over what the agent takes. The whole is in a file that the answer names.
    Spilled,
    /// The agent's place for it cannot be used.
    NoPlace,
    /// It went over what the agent takes, and was cut or left out.
    OverCap,
}

impl Why {
    /// Whether nothing of it reached the agent.
    pub fn is_loss(self) -> bool {
        !matches!(self, Self::BecameBlock | Self::BecameHalt | Self::Spilled | Self::OverCap)
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotCarried => "this event of this agent cannot carry it",
            Self::BecameBlock => "the agent has no such answer; it became a block",
            Self::BecameHalt => "the agent has no such answer; it ends the turn",
            Self::Outvoted => "another guest's decision is stronger",
            Self::Conflict => "another guest's came first",
            Self::Undecided => "the decision leaves no room for it",
            Self::Invalid => "the tool does not take it",
            Self::Spilled => "it is longer than the agent takes; the whole is in a file that the answer names",
            Self::NoPlace => "the agent's place for it cannot be used",
            Self::OverCap => "it was cut to what the agent takes",
        })
    }
}

/// What variables for the session are called where they are dropped.
const SESSION_ENVIRONMENT: &str = "session-environment";

/// Stands between joined reasons and contexts.
const PARAGRAPH: &str = "\n\n";

/// Told to the model with a block that stands in for a question.
const ASK_THE_USER: &str = "This needs the user's consent. Say what you want to do and why, and wait for the answer.";

/// Room for the note about the rest, in the cap's unit: paths of usual length fit, so that the length of one changes nothing else.
const NOTE_ROOM: usize = 400;

/// The end's share of what is shown of a long text: what matters most stands first.
const ENDS_SHARE: usize = 4;

/// Ends a text that was cut.
const CUT_NOTE: &str = "\n[cut: longer than one hook may say]";

/// Joins the opinions, given in configured order, within the contract of the event.
pub fn merge(event: &Event, opinions: &[Opinion]) -> Merged {
    let contract = event.contract();
    let mut dropped = Vec::new();

    let verdicts: Vec<(&str, Decision)> =
        opinions.iter().map(|opinion| (opinion.guest.as_str(), carried(contract, opinion, &mut dropped))).collect();
    let rank = verdicts.iter().map(|(_, decision)| decision.rank()).max().unwrap_or_default();
    let strongest = verdicts.iter().filter(|(_, decision)| decision.rank() == rank);
    let mut parts = Vec::new();
    let mut reason = Joined::new(PARAGRAPH);
    for (guest, decision) in strongest.clone() {
        if let Some(text) = decision.reason() {
            reason.add(guest, text);
        }
    }
    for (guest, decision) in verdicts.iter().filter(|(_, decision)| (1..rank).contains(&decision.rank())) {
        dropped.push(Dropped { guest: (*guest).to_owned(), what: decision.name(), why: Why::Outvoted });
    }
    let reason = reason.finish("reason", &mut parts).unwrap_or_default();
    let decision = match strongest.map(|(_, decision)| decision).next() {
        None | Some(Decision::Pass) => Decision::Pass,
        Some(Decision::Allow) => Decision::Allow,
        Some(Decision::Ask(_)) => Decision::Ask(reason),
        Some(Decision::Block(_)) => Decision::Block(reason),
        Some(Decision::Halt(_)) => Decision::Halt(reason),
    };

    let mut context = Joined::new(PARAGRAPH);
    let mut message = Joined::new("\n");
    if let (Decision::Block(reason), Carry::Decline) = (&decision, contract.block) {
        message.add("", reason);
    }
    for opinion in opinions {
        let guest = opinion.guest.as_str();
        for text in &opinion.effects.context {
            match contract.context {
                Context::Specific => context.add(guest, text),
                Context::AsMessage => message.add(guest, text),
                Context::No => drop_text(guest, "context", text, &mut dropped),
            }
        }
        for text in &opinion.effects.messages {
            if contract.message {
                message.add(guest, text);
            } else {
                drop_text(guest, "message", text, &mut dropped);
            }
        }
    }
    let context = context.finish("context", &mut parts);
    let message = message.finish("message", &mut parts);
    let updated_input = updated_input(event, &decision, opinions, &mut dropped);
    let session_environment = session_environment(contract, opinions, &mut dropped);
    Merged { decision, context, message, updated_input, session_environment, dropped, parts }
}

impl Merged {
    /// Drops the variables for the session: the agent's place for them turned out not to be usable.
    pub fn drop_session_environment(&mut self) {
        let variables = std::mem::take(&mut self.session_environment).into_iter();
        self.dropped.extend(variables.map(|variable| Dropped {
            guest: variable.guest,
            what: SESSION_ENVIRONMENT,
            why: Why::NoPlace,
        }));
    }

    /// Brings each text under what the agent takes, in the answer to an event of this contract.
    ///
    /// `save` keeps a text that is longer and says where, as the model is to read it; without a place the text is cut.
    #[must_use]
    pub fn fit(mut self, contract: &Contract, save: &mut dyn FnMut(&str) -> Option<String>) -> Self {
        let parts = std::mem::take(&mut self.parts);
        let dropped = &mut self.dropped;
        let mut fit = |what: &'static str, text: &mut String| {
            let Some((shown, kept, why)) = shorten(contract.cap, text, save) else { return };
            for part in parts.iter().filter(|part| part.what == what && part.end > kept) {
                dropped.push(Dropped { guest: part.guest.clone(), what, why });
            }
            *text = shown;
        };
        if let Decision::Ask(reason) | Decision::Block(reason) | Decision::Halt(reason) = &mut self.decision {
            fit("reason", reason);
        }
        if let Some(context) = &mut self.context {
            fit("context", context);
        }
        if let Some(message) = &mut self.message {
            fit("message", message);
        }
        self
    }
}

/// What is shown of a text that is longer than the cap, the length of its beginning in bytes, and what became of the rest.
fn shorten(cap: Cap, text: &str, save: &mut dyn FnMut(&str) -> Option<String>) -> Option<(String, usize, Why)> {
    if cap.measure(text) <= cap.limit {
        return None;
    }
    let note = save(text).map(|place| format!("\n\n[The middle is left out here. The whole text is in {place}]\n\n"));
    // A note that takes half of the room says less than the text would.
    if let Some(note) = note.filter(|note| cap.measure(note) < cap.limit / 2) {
        let room = cap.limit - cap.measure(&note).max(NOTE_ROOM);
        let beginning = whole_lines(cap.beginning(text, room - room / ENDS_SHARE));
        let end = last_whole_lines(cap.end(text, room / ENDS_SHARE));
        return Some((format!("{beginning}{note}{end}"), beginning.len(), Why::Spilled));
    }
    let kept = whole_lines(cap.beginning(text, cap.limit - cap.measure(CUT_NOTE)));
    Some((format!("{kept}{CUT_NOTE}"), kept.len(), Why::OverCap))
}

/// The text up to its last line's end; of one long line most would be lost at a line's end, so that one is kept.
fn whole_lines(text: &str) -> &str {
    text.rfind('\n').filter(|&line| line >= text.len() / 2).map_or(text, |line| &text[..line])
}

/// The text from the beginning of its first whole line on, likewise.
fn last_whole_lines(text: &str) -> &str {
    text.find('\n').filter(|&line| line < text.len() / 2).map_or(text, |line| &text[line + 1..])
}

/// The variables that guests set, the first guest's value for each name.
fn session_environment(contract: &Contract, opinions: &[Opinion], dropped: &mut Vec<Dropped>) -> Vec<Variable> {
    let mut kept: Vec<Variable> = Vec::new();
    for Opinion { guest, effects, .. } in opinions {
        for (name, value) in &effects.session_environment {
            let why = if !contract.session_environment {
                Why::NotCarried
            } else if kept.iter().any(|held| held.name == *name) {
                Why::Conflict
            } else {
                kept.push(Variable { guest: guest.clone(), name: name.clone(), value: value.clone() });
                continue;
            };
            dropped.push(Dropped { guest: guest.clone(), what: SESSION_ENVIRONMENT, why });
        }
    }
    kept
}

/// A guest's decision as this event of this agent can carry it.
fn carried(contract: &Contract, opinion: &Opinion, dropped: &mut Vec<Dropped>) -> Decision {
    let decision = &opinion.decision;
    let carry = match decision {
        Decision::Pass => return Decision::Pass,
        Decision::Allow => contract.allow,
        Decision::Ask(_) => contract.ask,
        Decision::Block(_) => contract.block,
        Decision::Halt(_) => contract.halt,
    };
    let mut record = |why| dropped.push(Dropped { guest: opinion.guest.clone(), what: decision.name(), why });
    let reason = |text: &str| {
        let text = text.trim();
        if text.is_empty() { format!("`{}` refused this and gave no reason.", opinion.guest) } else { text.to_owned() }
    };
    match (carry, decision) {
        (Carry::No, _) => {
            record(Why::NotCarried);
            Decision::Pass
        }
        (Carry::AsBlock, Decision::Ask(text)) => {
            record(Why::BecameBlock);
            let text = text.trim();
            let separator = if text.is_empty() { "" } else { PARAGRAPH };
            Decision::Block(format!("{text}{separator}{ASK_THE_USER}"))
        }
        (Carry::AsBlock, Decision::Halt(text)) => {
            record(Why::BecameBlock);
            Decision::Block(reason(text))
        }
        (Carry::Stop, Decision::Block(text)) => {
            record(Why::BecameHalt);
            Decision::Block(reason(text))
        }
        (_, Decision::Ask(text)) if text.trim().is_empty() => {
            Decision::Ask(format!("`{}` wants you to decide and gave no reason.", opinion.guest))
        }
        (_, Decision::Block(text)) => Decision::Block(reason(text)),
        (_, Decision::Halt(text)) => Decision::Halt(reason(text)),
        (_, decision) => decision.clone(),
    }
}

/// The first rewrite in configured order that the tool takes and the decision leaves room for.
fn updated_input(
    event: &Event,
    decision: &Decision,
    opinions: &[Opinion],
    dropped: &mut Vec<Dropped>,
) -> Option<Value> {
    let rewrite = event.contract().updated_input;
    let has_room = match rewrite {
        Rewrite::No => false,
        Rewrite::InAllow => *decision == Decision::Allow,
        Rewrite::WithAllow(_) => matches!(decision, Decision::Pass | Decision::Allow),
        Rewrite::Alone => matches!(decision, Decision::Pass | Decision::Allow | Decision::Ask(_)),
    };
    let needs_command = match rewrite {
        Rewrite::WithAllow(tools) => event.tool_name().is_some_and(|tool| tools.contains(&tool)),
        _ => false,
    };
    let mut first = None;
    for opinion in opinions {
        let Some(input) = &opinion.effects.updated_input else { continue };
        let why = if rewrite == Rewrite::No {
            Why::NotCarried
        } else if !input.is_object() || needs_command && !input["command"].is_string() {
            Why::Invalid
        } else if !has_room {
            Why::Undecided
        } else if first.is_some() {
            Why::Conflict
        } else {
            first = Some(input.clone());
            continue;
        };
        dropped.push(Dropped { guest: opinion.guest.clone(), what: "updated-input", why });
    }
    first
}

fn drop_text(guest: &str, what: &'static str, text: &str, dropped: &mut Vec<Dropped>) {
    if !text.trim().is_empty() {
        dropped.push(Dropped { guest: guest.to_owned(), what, why: Why::NotCarried });
    }
}

/// Texts of several guests that become one text.
struct Joined<'a> {
    text: String,
    /// Who wrote up to which byte.
    parts: Vec<(&'a str, usize)>,
    separator: &'static str,
}

impl<'a> Joined<'a> {
    fn new(separator: &'static str) -> Self {
        Self { text: String::new(), parts: Vec::new(), separator }
    }

    fn add(&mut self, guest: &'a str, text: &str) {
        if text.trim().is_empty() {
            return;
        }
        if !self.text.is_empty() {
            self.text.push_str(self.separator);
        }
        self.text.push_str(&inert(text));
        self.parts.push((guest, self.text.len()));
    }

    fn finish(self, what: &'static str, parts: &mut Vec<Part>) -> Option<String> {
        parts.extend(self.parts.into_iter().map(|(guest, end)| Part { what, guest: guest.to_owned(), end }));
        Some(self.text).filter(|text| !text.is_empty())
    }
}

/// The text without what could act on a terminal: line ends become `\n`, other control characters but tabs U+FFFD.
///
/// The agent shows reasons and messages to a person, and a guest may quote a hostile file in them.
fn inert(text: &str) -> Cow<'_, str> {
    let acts = |letter: char| letter.is_control() && !matches!(letter, '\n' | '\t');
    if !text.contains(acts) {
        return Cow::Borrowed(text);
    }
    let replace = |letter| match letter {
        '\r' => '\n',
        letter if acts(letter) => char::REPLACEMENT_CHARACTER,
        letter => letter,
    };
    Cow::Owned(text.replace("\r\n", "\n").chars().map(replace).collect())
}

#[cfg(test)]
mod tests;
