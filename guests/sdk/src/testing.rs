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

use omc_tool::{Output, ToolCall};

use crate::bindings::omc::hook::types;
use crate::git::{Change, Changes};
use crate::project_files::{Entry, Found, Root};
use crate::state_lock::LockError;
use crate::{AccessError, Decision, EffectError, Effects, Error, Event, Guest};

thread_local! {
    /// The world of the call that runs on this thread: what the functions of the SDK answer from.
    static CURRENT: RefCell<Option<World>> = const { RefCell::new(None) };
}

/// UTF-16 units of context that a guest may add, all calls together: the host's default.
const CONTEXT_UNITS: usize = 10_000;
/// UTF-16 units of messages that a guest may add, all calls together: the host's default.
const MESSAGE_UNITS: usize = 4_000;

/// Longest file that is read, in bytes: the host's limit.
const MAX_FILE_BYTES: u32 = 1024 * 1024;
/// Most entries of an answer: the host's limit.
const MAX_ENTRIES: u32 = 4_096;
/// Longest value of a variable, in bytes: the host's limit.
const MAX_VARIABLE_BYTES: usize = 4 * 1024;
/// Most variables of a call: the host's limit.
const MAX_VARIABLES: usize = 32;

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
    /// Files of the project, the agent and the user, by root and path.
    pub files: BTreeMap<(Root, String), File>,
    /// The project's repository, if it has one.
    pub git: Option<Repository>,
    /// The folder that stands for `/omc`.
    omc_dir: PathBuf,
    /// The folder that stands for `/omc-user`.
    omc_user_dir: PathBuf,
    /// Lines the guest wrote, each with its level.
    pub(crate) logged: Vec<String>,
    /// Variables the guest set.
    session_environment: BTreeMap<String, String>,
}

/// A file that a guest may read.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct File {
    /// Its text.
    pub text: String,
    /// When it was changed last, in milliseconds since 1970.
    pub modified_ms: u64,
}

/// The facts about a repository.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Repository {
    /// The branch that is checked out.
    pub branch: Option<String>,
    /// The last commit.
    pub head: Option<String>,
    /// The paths that differ from it.
    pub changes: Vec<Change>,
    /// Numbers of the lines of modified files that it does not have.
    pub added_lines: BTreeMap<String, Vec<u32>>,
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
    /// The variables for the session's later commands.
    pub session_environment: BTreeMap<String, String>,
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
            files: BTreeMap::new(),
            git: None,
            omc_dir: PathBuf::from("/nonexistent/omc"),
            omc_user_dir: PathBuf::from("/nonexistent/omc-user"),
            logged: Vec::new(),
            session_environment: BTreeMap::new(),
        }
    }

    /// The same world with this folder as the project's `.omc`.
    #[must_use]
    pub fn with_omc_dir(mut self, folder: &Path) -> Self {
        self.omc_dir = folder.to_path_buf();
        self
    }

    /// The same world with this folder as the user's `.omc`.
    #[must_use]
    pub fn with_omc_user_dir(mut self, folder: &Path) -> Self {
        self.omc_user_dir = folder.to_path_buf();
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

    /// The same world with a file, changed at the beginning of 1970.
    #[must_use]
    pub fn with_file(mut self, root: Root, path: &str, text: &str) -> Self {
        self.files.insert((root, path.to_owned()), File { text: text.to_owned(), modified_ms: 0 });
        self
    }

    /// Calls the guest with the event.
    pub fn call<G: Guest>(&self) -> Outcome {
        CURRENT.set(Some(self.clone()));
        let mut recorded = Recorded::default();
        let decision = G::handle(&Event::from_world(self), &mut Effects::record(&mut recorded));
        let (logged, session_environment) =
            CURRENT.take().map(|world| (world.logged, world.session_environment)).unwrap_or_default();
        // As in the host: a guest that failed has no effects.
        let (Recorded { context, messages, updated_input }, session_environment) =
            if decision.is_ok() { (recorded, session_environment) } else { Default::default() };
        Outcome { decision, context, messages, updated_input, logged, session_environment }
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

    pub(crate) fn omc_user_dir(&self) -> PathBuf {
        self.omc_user_dir.clone()
    }

    /// Waiting changes nothing here: a lock is free, or somebody holds it for ever.
    pub(crate) fn lock(&self, _folder: &str, _wait: Duration) -> Result<(), LockError> {
        if self.locks_are_free { Ok(()) } else { Err(LockError::Held) }
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

    pub(crate) fn in_work_tree(&self) -> bool {
        self.git.is_some()
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

    pub(crate) fn permission_mode(&self) -> Option<String> {
        self.text("/permission_mode")
    }

    pub(crate) fn source(&self) -> Option<String> {
        let member = match self.kind.as_str() {
            "setup" | "pre-compact" | "post-compact" => "/trigger",
            "session-end" => "/reason",
            "instructions-loaded" => "/load_reason",
            _ => "/source",
        };
        self.text(member)
    }

    pub(crate) fn tool_kind(&self) -> Option<String> {
        self.tool_call(|call| call.kind().name().to_owned())
    }

    pub(crate) fn tool_paths(&self) -> Result<Vec<types::ToolPath>, types::AccessError> {
        let paths = self.tool_call(|call| call.paths()).unwrap_or(Ok(Vec::new()));
        let paths = paths.map_err(|omc_tool::TooMany| types::AccessError::TooLarge)?;
        let named = |named: omc_tool::ToolPath| {
            let operation = match named.operation {
                omc_tool::Operation::Read => types::FileOperation::Read,
                omc_tool::Operation::Write => types::FileOperation::Write,
                omc_tool::Operation::Edit => types::FileOperation::Edit,
                omc_tool::Operation::Delete => types::FileOperation::Delete,
            };
            types::ToolPath { path: named.path, operation }
        };
        Ok(paths.into_iter().map(named).collect())
    }

    pub(crate) fn tool_command(&self) -> Option<String> {
        self.tool_call(|call| call.command().map(Into::into))?
    }

    pub(crate) fn tool_result(&self) -> Option<String> {
        self.tool_call(|call| {
            Some(match call.output()? {
                Output::Text(text) => text.into_owned(),
                Output::Json(value) => value.to_string(),
            })
        })?
    }

    pub(crate) fn tool_failed(&self) -> Option<bool> {
        self.tool_call(|call| call.failed())?
    }

    pub(crate) fn tool_interrupted(&self) -> bool {
        self.tool_call(|call| call.interrupted()).unwrap_or_default()
    }

    fn tool_call<T>(&self, look: impl FnOnce(ToolCall<'_>) -> T) -> Option<T> {
        let name = self.tool_name()?;
        let member = |name| self.payload.get(name).filter(|value| !value.is_null());
        Some(look(ToolCall {
            agent: &self.agent,
            event: &self.kind,
            name: &name,
            input: member("tool_input"),
            response: member("tool_response"),
            error: member("error"),
            interrupted: member("is_interrupt") == Some(&Value::Bool(true)),
            cwd: member("cwd").and_then(Value::as_str),
            linked: None,
        }))
    }

    pub(crate) fn read_file(&self, root: Root, path: &str, max_bytes: u32) -> Result<String, AccessError> {
        let text = &self.file(root, path)?.text;
        if text.len() > max_bytes.min(MAX_FILE_BYTES) as usize {
            return Err(AccessError::TooLarge);
        }
        Ok(text.clone())
    }

    pub(crate) fn read_file_start(&self, root: Root, path: &str, max_bytes: u32) -> Result<String, AccessError> {
        let text = &self.file(root, path)?.text;
        let end = text.floor_char_boundary(max_bytes.min(MAX_FILE_BYTES) as usize);
        Ok(text[..end].to_owned())
    }

    pub(crate) fn list_folder(&self, root: Root, folder: &str, max_entries: u32) -> Result<Vec<Entry>, AccessError> {
        let mut entries: BTreeMap<&str, Entry> = BTreeMap::new();
        for (path, file) in self.below(root, folder) {
            let (name, is_folder) = path.split_once('/').map_or((path, false), |(name, _)| (name, true));
            let (size, modified_ms) = if is_folder { (0, 0) } else { (file.text.len() as u64, file.modified_ms) };
            entries.insert(name, Entry { name: name.to_owned(), is_folder, size, modified_ms });
        }
        match entries.len() {
            0 if !folder.is_empty() => Err(AccessError::NotFound),
            count if count > max_entries.min(MAX_ENTRIES) as usize => Err(AccessError::TooLarge),
            _ => Ok(entries.into_values().collect()),
        }
    }

    pub(crate) fn find_files(&self, root: Root, folder: &str, max_entries: u32) -> Result<Found, AccessError> {
        let mut paths: Vec<_> = self
            .below(root, folder)
            .map(|(path, _)| if folder.is_empty() { path.to_owned() } else { format!("{folder}/{path}") })
            .collect();
        if paths.is_empty() && !folder.is_empty() {
            return Err(AccessError::NotFound);
        }
        // Those in outer folders first, as the host has it.
        paths.sort_by_key(|path| path.matches('/').count());
        let most = max_entries.min(MAX_ENTRIES) as usize;
        let complete = paths.len() <= most;
        paths.truncate(most);
        Ok(Found { paths, complete })
    }

    fn file(&self, root: Root, path: &str) -> Result<&File, AccessError> {
        self.files.get(&(root, path.to_owned())).ok_or(AccessError::NotFound)
    }

    /// The files below a folder, by their paths from there.
    fn below<'a>(&'a self, root: Root, folder: &'a str) -> impl Iterator<Item = (&'a str, &'a File)> {
        self.files.iter().filter(move |((of, _), _)| *of == root).filter_map(move |((_, path), file)| {
            let path = if folder.is_empty() { path } else { path.strip_prefix(folder)?.strip_prefix('/')? };
            Some((path, file))
        })
    }

    pub(crate) fn repository(&self) -> Result<&Repository, AccessError> {
        self.git.as_ref().ok_or(AccessError::NotFound)
    }

    pub(crate) fn changed_paths(&self, max_entries: u32) -> Result<Changes, AccessError> {
        let mut paths = self.repository()?.changes.clone();
        let most = max_entries.min(MAX_ENTRIES) as usize;
        let complete = paths.len() <= most;
        paths.truncate(most);
        Ok(Changes { paths, complete })
    }

    pub(crate) fn added_lines(&self, path: &str, max_lines: u32) -> Result<Vec<u32>, AccessError> {
        let lines = self.repository()?.added_lines.get(path).cloned().unwrap_or_default();
        Ok(lines.into_iter().take(max_lines.min(MAX_ENTRIES) as usize).collect())
    }

    pub(crate) fn set_session_variable(&mut self, name: &str, value: &str) -> Result<(), AccessError> {
        if value.chars().any(char::is_control) {
            return Err(AccessError::Other("the value holds control characters".to_owned()));
        }
        if value.len() > MAX_VARIABLE_BYTES || self.session_environment.len() >= MAX_VARIABLES {
            return Err(AccessError::TooLarge);
        }
        self.session_environment.insert(name.to_owned(), value.to_owned());
        Ok(())
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::git::{self, ChangeKind};
    use crate::{ToolKind, project_files, session_environment, state_lock};

    /// Does what a test asks of it, inside a call.
    struct Guided;

    type Guide = Box<dyn FnOnce(&Event<'_>)>;

    thread_local! {
        static GUIDE: RefCell<Option<Guide>> = const { RefCell::new(None) };
    }

    impl Guest for Guided {
        fn handle(event: &Event<'_>, _effects: &mut Effects<'_>) -> Result<Decision, Error> {
            let guide = GUIDE.take().expect("a guide");
            guide(event);
            if event.kind() == crate::EventKind::SessionEnd { Err("on purpose".into()) } else { Ok(Decision::Pass) }
        }
    }

    fn inside(world: &World, guide: impl FnOnce(&Event<'_>) + 'static) -> Outcome {
        GUIDE.set(Some(Box::new(guide)));
        world.call::<Guided>()
    }

    #[test]
    fn tools_read_as_with_the_host() {
        let payload = json!({
            "cwd": "/p", "permission_mode": "plan", "tool_name": "apply_patch",
            "tool_input": { "command": "*** Begin Patch\n*** Delete File: a\n*** End Patch" },
            "tool_response": { "content": [{ "type": "text", "text": "done" }], "isError": true }
        });
        let mut world = World::new("post-tool-use", payload);
        world.agent = "codex".to_owned();
        inside(&world, |event| {
            assert_eq!(event.tool_kind(), Some(ToolKind::Delete));
            let path = crate::ToolPath { path: "/p/a".to_owned(), operation: crate::Operation::Delete };
            assert_eq!(event.tool_paths(), Ok(vec![path]));
            assert_eq!((event.tool_command(), event.tool_failed()), (None, Some(true)));
            assert_eq!((event.tool_result().as_deref(), event.tool_interrupted()), (Some("done"), false));
            assert_eq!((event.permission_mode().as_deref(), event.source()), (Some("plan"), None));
        });
        inside(&World::new("pre-compact", json!({ "trigger": "auto" })), |event| {
            assert_eq!((event.tool_kind(), event.source().as_deref()), (None, Some("auto")));
            assert_eq!(event.tool_paths(), Ok(Vec::new()));
        });
    }

    #[test]
    fn files_are_read_listed_and_found() {
        let world = World::new("session-start", json!({}))
            .with_file(Root::Project, "a/b/deep.md", "deep")
            .with_file(Root::Project, "a/top.md", "tôp")
            .with_file(Root::Home, ".x/y", "");
        inside(&world, |_| {
            let root = Root::Project;
            assert_eq!(project_files::read(root, "a/top.md", 4), Ok("tôp".to_owned()));
            assert_eq!(project_files::read(root, "a/top.md", 3), Err(AccessError::TooLarge));
            assert_eq!(project_files::read_start(root, "a/top.md", 2), Ok("t".to_owned()));
            assert_eq!(project_files::read(Root::Agent, "a/top.md", 9), Err(AccessError::NotFound));
            let names = |folder| {
                let entries = project_files::list(root, folder, 9).expect("a folder");
                entries.into_iter().map(|entry| (entry.name, entry.is_folder)).collect::<Vec<_>>()
            };
            assert_eq!(names(""), [("a".to_owned(), true)]);
            assert_eq!(names("a"), [("b".to_owned(), true), ("top.md".to_owned(), false)]);
            assert_eq!(project_files::list(root, "gone", 9), Err(AccessError::NotFound));
            let found = project_files::find(root, "", 9).expect("files");
            assert_eq!((found.paths, found.complete), (vec!["a/top.md".to_owned(), "a/b/deep.md".to_owned()], true));
            assert!(!project_files::find(root, "a", 1).expect("files").complete);
        });
    }

    #[test]
    fn a_repository_is_there_if_the_world_has_one() {
        let mut world = World::new("stop", json!({}));
        inside(&world, |_| assert_eq!(git::branch(), Err(AccessError::NotFound)));
        let change = Change { path: "a".to_owned(), kind: ChangeKind::Modified };
        let added_lines = BTreeMap::from([("a".to_owned(), vec![2, 3])]);
        world.git = Some(Repository {
            branch: Some("main".to_owned()),
            head: None,
            changes: vec![change.clone()],
            added_lines,
        });
        inside(&world, move |_| {
            assert_eq!((git::branch(), git::head()), (Ok(Some("main".to_owned())), Ok(None)));
            assert_eq!(git::changed_paths(9), Ok(Changes { paths: vec![change], complete: true }));
            assert_eq!((git::added_lines("a", 1), git::added_lines("b", 9)), (Ok(vec![2]), Ok(Vec::new())));
        });
    }

    #[test]
    fn a_lock_that_is_not_to_be_had_says_why() {
        let mut world = World::new("stop", json!({}));
        let acquire = || state_lock::acquire("state", Duration::ZERO).err();
        inside(&world, move |_| assert_eq!(acquire(), None));
        world.locks_are_free = false;
        inside(&world, move |_| assert_eq!(acquire(), Some(LockError::Held)));
    }

    #[test]
    fn variables_are_kept_unless_the_guest_fails() {
        let set = |_: &Event<'_>| {
            assert_eq!(session_environment::set("A", "1"), Ok(()));
            assert!(matches!(session_environment::set("A", "a\nb"), Err(AccessError::Other(_))));
        };
        let outcome = inside(&World::new("session-start", json!({})), set);
        assert_eq!(outcome.session_environment, BTreeMap::from([("A".to_owned(), "1".to_owned())]));
        assert!(inside(&World::new("session-end", json!({})), set).session_environment.is_empty());
    }
}
