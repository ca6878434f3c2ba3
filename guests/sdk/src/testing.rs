//! A native test harness: give a guest an event and a world, see its decision and effects.
//!
//! ```
//! use omc_guest::testing::World;
//! # use omc_guest::{Decision, Effects, Error, Event, Guest};
//! # struct Greeter;
//! # impl Guest for Greeter {
//! #     fn handle(event: &Event, effects: &mut Effects) -> Result<Decision, Error> {
//! #         if event.prompt().is_some_and(|prompt| prompt.contains("hello")) {
//! #             effects.add_context("Say hello back.")?;
//! #         }
//! #         Ok(Decision::Pass)
//! #     }
//! # }
//! let world = World::new("user-prompt-submit", serde_json::json!({ "session_id": "s1", "prompt": "hello" }));
//! let outcome = world.call::<Greeter>();
//! assert_eq!(outcome.decision, Ok(Decision::Pass));
//! assert_eq!(outcome.context, ["Say hello back."]);
//! ```

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use crate::{Decision, EffectError, Effects, Error, Event, Guest};

thread_local! {
    /// The world of the call that runs on this thread: what the functions of the SDK answer from.
    static CURRENT: RefCell<Option<World>> = const { RefCell::new(None) };
}

/// UTF-16 units of context that a guest may add, all calls together: the host's default.
const CONTEXT_UNITS: usize = 10_000;
/// UTF-16 units of messages that a guest may add, all calls together: the host's default.
const MESSAGE_UNITS: usize = 4_000;

/// An event and everything around it that the host would answer from.
///
/// The harness grants everything; what the real host refuses without a grant is absent in [`World`] unless it is set.
#[derive(Clone, Debug)]
pub struct World {
    kind: String,
    payload: Value,
    /// The agent's name; `claude` unless set.
    pub agent: String,
    /// The project's root, if there is one.
    pub project_root: Option<String>,
    /// Settings by key.
    pub settings: BTreeMap<String, Value>,
    /// Environment variables by name.
    pub environment: BTreeMap<String, String>,
    /// The transcript's text.
    pub transcript: Option<String>,
    /// Whether locks are free.
    pub locks_are_free: bool,
    /// The folder that stands for `/omc`.
    omc_dir: PathBuf,
    /// Lines the guest wrote, each with its level.
    pub(crate) logged: Vec<String>,
}

/// What a guest did with an event.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Its decision.
    pub decision: Result<Decision, Error>,
    /// The texts for the model.
    pub context: Vec<String>,
    /// The texts for the person.
    pub messages: Vec<String>,
    /// The tool's new input.
    pub updated_input: Option<Value>,
    /// The lines for the trail, each with its level.
    pub logged: Vec<String>,
}

/// The effects of one call, kept as the host keeps them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recorded {
    context: Vec<String>,
    messages: Vec<String>,
    updated_input: Option<Value>,
}

impl World {
    /// A world with this kind of event (kebab-case) and the agent's payload; no files, settings or variables.
    pub fn new(kind: &str, payload: Value) -> Self {
        Self {
            kind: kind.to_owned(),
            payload,
            agent: "claude".to_owned(),
            project_root: None,
            settings: BTreeMap::new(),
            environment: BTreeMap::new(),
            transcript: None,
            locks_are_free: true,
            omc_dir: PathBuf::from("/nonexistent/omc"),
            logged: Vec::new(),
        }
    }

    /// The same world with this folder as the project's `.omc`.
    #[must_use]
    pub fn with_omc_dir(mut self, folder: &Path) -> Self {
        self.omc_dir = folder.to_path_buf();
        self
    }

    /// The same world with a setting.
    #[must_use]
    pub fn with_setting(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.settings.insert(key.to_owned(), value.into());
        self
    }

    /// The same world with an environment variable.
    #[must_use]
    pub fn with_env(mut self, name: &str, value: &str) -> Self {
        self.environment.insert(name.to_owned(), value.to_owned());
        self
    }

    /// Calls the guest with the event.
    pub fn call<G: Guest>(&self) -> Outcome {
        CURRENT.set(Some(self.clone()));
        let mut recorded = Recorded::default();
        let decision = G::handle(&Event::from_world(self), &mut Effects::record(&mut recorded));
        let logged = CURRENT.take().map(|world| world.logged).unwrap_or_default();
        // As in the host: a guest that failed has no effects.
        let Recorded { context, messages, updated_input } =
            if decision.is_ok() { recorded } else { Recorded::default() };
        Outcome { decision, context, messages, updated_input, logged }
    }

    pub(crate) fn with_current<T>(look: impl FnOnce(&World) -> T) -> T {
        CURRENT.with_borrow(|world| look(world.as_ref().expect("natively the SDK answers only inside `World::call`")))
    }

    pub(crate) fn with_current_mut<T>(change: impl FnOnce(&mut World) -> T) -> T {
        CURRENT.with_borrow_mut(|world| {
            change(world.as_mut().expect("natively the SDK answers only inside `World::call`"))
        })
    }

    pub(crate) fn omc_dir(&self) -> PathBuf {
        self.omc_dir.clone()
    }

    pub(crate) fn lock(&self, _name: &str, _wait: Duration) -> bool {
        self.locks_are_free
    }

    pub(crate) fn transcript_tail(&self, max_bytes: u32) -> Option<String> {
        let text = self.transcript.as_ref()?;
        let from = text.len().saturating_sub(max_bytes as usize);
        let from = (from..=text.len()).find(|at| text.is_char_boundary(*at))?;
        let tail = &text[from..];
        let whole = if from == 0 { tail } else { tail.split_once('\n').map_or(tail, |(_, rest)| rest) };
        Some(whole.to_owned())
    }

    pub(crate) fn kind(&self) -> String {
        self.kind.clone()
    }

    pub(crate) fn agent(&self) -> String {
        self.agent.clone()
    }

    pub(crate) fn session_id(&self) -> Option<String> {
        let id = self.text("/session_id")?;
        let mut bytes = id.bytes();
        let first = bytes.next()?;
        let fits = first.is_ascii_alphanumeric()
            && id.len() <= 256
            && bytes.all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
        fits.then_some(id)
    }

    pub(crate) fn subagent_id(&self) -> Option<String> {
        self.text("/agent_id")
    }

    pub(crate) fn cwd(&self) -> Option<String> {
        self.text("/cwd")
    }

    pub(crate) fn project_root(&self) -> Option<String> {
        self.project_root.clone()
    }

    pub(crate) fn prompt(&self) -> Option<String> {
        self.text("/prompt")
    }

    pub(crate) fn tool_name(&self) -> Option<String> {
        self.text("/tool_name").map(|name| if name == "Agent" { "Task".to_owned() } else { name })
    }

    pub(crate) fn field(&self, pointer: &str) -> Option<String> {
        self.payload.pointer(pointer).map(ToString::to_string)
    }

    pub(crate) fn text(&self, pointer: &str) -> Option<String> {
        self.payload.pointer(pointer)?.as_str().map(str::to_owned)
    }
}

impl Recorded {
    pub(crate) fn add_context(&mut self, text: &str) -> Result<(), EffectError> {
        add_within(&mut self.context, text, CONTEXT_UNITS)
    }

    pub(crate) fn add_message(&mut self, text: &str) -> Result<(), EffectError> {
        add_within(&mut self.messages, text, MESSAGE_UNITS)
    }

    pub(crate) fn update_input(&mut self, input: &Value) -> Result<(), EffectError> {
        if !input.is_object() {
            return Err(EffectError::Invalid);
        }
        if self.updated_input.is_some() {
            return Err(EffectError::TooMany);
        }
        self.updated_input = Some(input.clone());
        Ok(())
    }
}

/// Panics if a manifest, without the name and version that come from the crate, is not what the host reads.
#[doc(hidden)]
pub fn check_manifest(name: &str, json: &str) {
    let manifest: Value =
        serde_json::from_str(json).unwrap_or_else(|error| panic!("the manifest is no JSON: {error}\n{json}"));
    let plain = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-');
    assert!(
        name.len() <= 64 && name.bytes().all(plain) && name.starts_with(|first: char| first.is_ascii_lowercase()),
        "the crate's name `{name}` cannot be a guest's: it is 1 to 64 of a-z, 0-9 and -, starting with a letter"
    );
    let subscriptions = manifest["subscriptions"].as_array();
    let events = subscriptions.into_iter().flatten().filter(|wanted| wanted["event"].is_string()).count();
    assert!(
        events > 0 && Some(events) == subscriptions.map(Vec::len),
        "`subscriptions` is a list of objects with an `event`"
    );
    for request in manifest["requests"].as_array().into_iter().flatten() {
        let is_complete = request["capability"].is_string() && request["reason"].is_string();
        assert!(is_complete, "a request has a `capability` and a `reason`: {request}");
    }
}

fn add_within(texts: &mut Vec<String>, text: &str, limit: usize) -> Result<(), EffectError> {
    let units = |text: &str| text.encode_utf16().count();
    let held: usize = texts.iter().map(|text| units(text)).sum();
    if held + units(text) > limit {
        return Err(EffectError::TooLong);
    }
    texts.push(text.to_owned());
    Ok(())
}
