//! Events, from the agent's bytes to the answer's, and matchers.

use std::io;
use std::time::Duration;

use omc_host::input::{self, InputFault, Limits, Readiness, Source};
use omc_host::protocol::contract;
use omc_host::protocol::decision::{Decision, Effects, Opinion, merge};
use omc_host::protocol::dialect::{self, Dialect};
use omc_host::protocol::event::{Agent, Event};
use omc_host::protocol::matcher::{Matcher, Syntax};
use serde_json::{Map, Value, json};

use crate::scratch::parts;

const AGENTS: &[Agent] = &[
    Agent::Claude,
    Agent::Codex,
    Agent::Cursor,
    Agent::Copilot,
    Agent::Gemini,
    Agent::Qwen,
    Agent::Droid,
    Agent::Grok,
    Agent::Unknown,
];

/// Small enough that inputs of a fuzzer reach it.
const MAX_BYTES: usize = 1 << 16;

/// The event arrives in pieces of one size.
struct Pieces<'a> {
    bytes: &'a [u8],
    size: usize,
}

impl Source for Pieces<'_> {
    fn ready(&mut self, _within: Duration) -> io::Result<Readiness> {
        Ok(Readiness::Unknown)
    }

    fn read_into(&mut self, buffer: &mut Vec<u8>) -> io::Result<usize> {
        let (piece, rest) = self.bytes.split_at(self.size.min(self.bytes.len()));
        buffer.extend_from_slice(piece);
        self.bytes = rest;
        Ok(piece.len())
    }
}

/// The event, or the part of it that could be read.
type Read = Result<(Map<String, Value>, bool), (InputFault, Map<String, Value>)>;

fn read(bytes: &[u8], size: usize) -> Read {
    let limits = Limits { max_bytes: MAX_BYTES, ..Limits::default() };
    let read = input::read_event(&mut Pieces { bytes, size }, &limits);
    read.map(|read| (read.payload, read.repaired)).map_err(|unreadable| (unreadable.fault, unreadable.partial))
}

/// Reads, repairs, decodes, merges and encodes.
///
/// Promises: how the bytes are cut into pieces changes nothing; what is JSON is taken as it is; every agent gets nothing or one
/// line of JSON with exit status 0; the order of guests does not change the verdict; no text is over the agent's limit.
pub fn event(bytes: &[u8]) {
    let whole = read(bytes, usize::MAX);
    for size in [1, 7] {
        assert_eq!(read(bytes, size), whole, "in pieces of {size}");
    }
    let strict = serde_json::from_slice::<Map<String, Value>>(bytes);
    if let (Ok(strict), Ok((payload, repaired))) = (strict, &whole)
        && !repaired
    {
        assert_eq!(*payload, strict, "it is JSON");
    }
    let (Ok((payload, _)) | Err((_, payload))) = whole;
    // Texts of guests come from the same hands.
    let text = String::from_utf8_lossy(bytes);
    for agent in AGENTS {
        answers(dialect::of(*agent), payload.clone(), &text);
    }
    check_reply(&dialect::resolve(None, &payload, &|_| false).silent(&Event::new(Agent::Unknown, payload)));
}

fn answers(dialect: &dyn Dialect, payload: Map<String, Value>, text: &str) {
    let event = dialect.decode(payload);
    check_reply(&dialect.silent(&event));
    look_at(&event);
    let opinion = |guest: &str, decision, effects| Opinion { guest: guest.to_owned(), decision, effects };
    let effects = Effects {
        context: vec![text.to_owned(), String::new()],
        messages: vec![text.to_owned()],
        updated_input: Some(json!({ "command": text })),
        ..Effects::default()
    };
    let opinions = [
        opinion("lenient", Decision::Allow, effects.clone()),
        opinion("careful", Decision::Ask(text.to_owned()), effects),
        opinion("strict", Decision::Block(text.repeat(3)), Effects::default()),
        opinion("final", Decision::Halt(text.to_owned()), Effects::default()),
    ];
    let contract = event.contract();
    for count in 1..=opinions.len() {
        let mut chosen = opinions[..count].to_vec();
        let merged = merge(&event, &chosen);
        chosen.reverse();
        assert_eq!(merged.decision.name(), merge(&event, &chosen).decision.name(), "the order decides");
        // Where a long text goes: a path of any length, or nowhere.
        let merged = merged.fit(contract, &mut |text| (count % 2 == 0).then(|| "/folder".repeat(text.len() % 4_096)));
        let texts = [merged.decision.reason(), merged.context.as_deref(), merged.message.as_deref()];
        for text in texts.into_iter().flatten() {
            assert!(contract.cap.measure(text) <= contract.cap.limit, "a text is over the agent's limit");
            assert!(!text.contains(is_active), "a text is not inert");
        }
        check_reply(&dialect.encode(&event, &merged));
    }
}

/// A character that a terminal would obey.
fn is_active(letter: char) -> bool {
    letter.is_control() && !matches!(letter, '\n' | '\t' | '\r')
}

fn check_reply(reply: &dialect::Reply) {
    assert_eq!(reply.exit_code, 0);
    if let Some((end, json)) = reply.stdout.split_last() {
        assert_eq!(*end, b'\n');
        assert!(!json.contains(&b'\n'), "an answer is one line");
        let answer: Value = serde_json::from_slice(json).expect("an answer is JSON");
        assert!(answer.is_object());
    }
}

/// Asks an event all that guests can ask.
fn look_at(event: &Event) {
    if let Some(id) = event.session_id() {
        assert!(!id.contains(['/', '\\', '.', '\0']), "an id leads elsewhere");
    }
    assert!(event.kind_name().bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-'));
    let _ = (event.prompt(), event.tool_name(), event.cwd(), event.transcript_path(), event.spelling());
    for pointer in ["", "/", "/tool_input", "/tool_input/command", "/tool_response/0", "/prompt/~1", "tool_input"] {
        let _ = event.pointer(pointer);
    }
    if let Some(call) = event.tool_call() {
        let _ = (call.kind(), call.command(), call.output(), call.failed(), call.interrupted());
        // A guard compares paths: one with a detour in it would be another file to it.
        for path in call.paths().into_iter().flatten().filter(|path| path.path.starts_with('/')) {
            let mut names = path.path.split('/').skip(1);
            assert!(path.path == "/" || names.all(|name| !matches!(name, "" | "." | "..")), "a path makes a detour");
        }
    }
    let everything = Matcher::parse(None).expect("no pattern is a matcher");
    assert!(everything.matches(event));
}

/// Parses a pattern and compares it with a name.
///
/// Promises: every syntax takes or refuses; a pattern that is refused says so in one line; `*` matches all.
pub fn matcher(bytes: &[u8]) {
    let [pattern, name] = parts(bytes).map(String::from_utf8_lossy);
    let rows = [Agent::Claude, Agent::Codex].map(contract::rows);
    for syntax in [Syntax::Subscription, Syntax::Claude, Syntax::ClaudeNarrow, Syntax::Codex] {
        match Matcher::with_syntax(syntax, Some(&pattern)) {
            Ok(matcher) => {
                for row in rows.into_iter().flatten() {
                    assert!(matcher.matches_target(row, &name) || !matcher.is_everything());
                }
                // One of its own names is what a list matches, whatever else it does.
                for name in matcher.names().unwrap_or_default() {
                    assert!(rows.into_iter().flatten().all(|row| matcher.matches_target(row, name)));
                }
            }
            Err(error) => assert!(!error.to_string().contains(is_active), "an error is not inert"),
        }
    }
    drop(Matcher::parse(Some(&pattern)));
}
