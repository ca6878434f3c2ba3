//! The host side of `omc:hook`: the traits that the bindings ask for, with each interface's checks; what takes more than a few
//! lines is in the modules beside this one.
//!
//! Every function checks the call's grants where its interface needs one, answers `denied` without, and counts the refusal for the
//! trail. What a guest sends is bounded before it is kept.

use std::borrow::Cow;
use std::io::Write;
use std::sync::Arc;

use omc_artifact::{Preopen, ReadRoot};
use omc_tool::Output;
use serde_json::Value;
use wasmtime::component::{HasSelf, Linker, Resource};

use crate::config::Limit;
use crate::protocol::event::Kind;
use crate::runtime::{GuestState, LogLine, wit};
use crate::surroundings::Surroundings;
use crate::text;
use wit::git::Changes;
use wit::project_files::{Entry, Found};
use wit::types::{AccessError, EffectError, FileOperation};

use super::git::Repository;
use super::project_files::Files;
use super::wasi::ErrorCode;
use super::{lock, session_environment, transcript};

/// Longest text that a guest gets from an event, in bytes: far beyond any prompt a person writes, and small against the memory a
/// guest has.
const MAX_TEXT_BYTES: usize = 8 * 1024 * 1024;
/// Largest new input of a tool, in bytes.
const MAX_INPUT_BYTES: usize = 1024 * 1024;
/// Longest value of an environment variable that a guest gets, in bytes.
const MAX_VARIABLE_BYTES: usize = 32 * 1024;

/// Longest name or path of a guest's that a refusal is recorded with, in bytes.
const MAX_NAMED_BYTES: usize = 64;

/// The event of a call. There is one, so the handle holds nothing.
#[derive(Debug)]
pub struct EventHandle;
/// The effects of a call. There is one set, so the handle holds nothing.
#[derive(Debug)]
pub struct EffectsHandle;

/// Adds those interfaces of `omc:hook` to a linker that are `wanted`.
pub(crate) fn add_to_linker(linker: &mut Linker<GuestState>, wanted: &dyn Fn(&str) -> bool) -> wasmtime::Result<()> {
    type Own = HasSelf<GuestState>;
    macro_rules! add {
        ($($interface:ident $name:literal),+ $(,)?) => {$(
            if wanted(concat!("omc:hook/", $name)) {
                wit::$interface::add_to_linker::<_, Own>(linker, |state| state)?;
            }
        )+};
    }
    add! {
        types "types",
        log "log",
        settings "settings",
        state_lock "state-lock",
        transcript "transcript",
        environment "environment",
        project_files "project-files",
        git "git",
        session_environment "session-environment",
    }
    Ok(())
}

impl wit::types::Host for GuestState {}

impl wit::types::HostEvent for GuestState {
    fn kind(&mut self, _: Resource<EventHandle>) -> wasmtime::Result<String> {
        Ok(self.event.kind_name().to_owned())
    }

    fn agent(&mut self, _: Resource<EventHandle>) -> wasmtime::Result<String> {
        Ok(self.event.agent().name().to_owned())
    }

    fn session_id(&mut self, _: Resource<EventHandle>) -> wasmtime::Result<Option<String>> {
        Ok(self.event.session_id().map(str::to_owned))
    }

    fn subagent_id(&mut self, _: Resource<EventHandle>) -> wasmtime::Result<Option<String>> {
        Ok(self.event.subagent_id().map(bounded))
    }

    fn cwd(&mut self, _: Resource<EventHandle>) -> wasmtime::Result<Option<String>> {
        Ok(self.event.cwd().map(|cwd| bounded_cow(self.surroundings.without_link(cwd))))
    }

    fn project_root(&mut self, _: Resource<EventHandle>) -> wasmtime::Result<Option<String>> {
        Ok(self.surroundings.project_root().map(|root| root.to_string_lossy().into_owned()))
    }

    fn in_work_tree(&mut self, _: Resource<EventHandle>) -> wasmtime::Result<bool> {
        Ok(self.surroundings.in_work_tree())
    }

    fn prompt(&mut self, _: Resource<EventHandle>) -> wasmtime::Result<Option<String>> {
        Ok(self.event.prompt().map(bounded_cow))
    }

    fn tool_name(&mut self, _: Resource<EventHandle>) -> wasmtime::Result<Option<String>> {
        Ok(self.event.tool_name().map(bounded))
    }

    fn field(&mut self, _: Resource<EventHandle>, pointer: String) -> wasmtime::Result<Option<String>> {
        Ok(self.event.pointer(&pointer).and_then(json_text))
    }

    fn text(&mut self, _: Resource<EventHandle>, pointer: String) -> wasmtime::Result<Option<String>> {
        Ok(self.event.pointer(&pointer).and_then(Value::as_str).map(bounded))
    }

    fn permission_mode(&mut self, _: Resource<EventHandle>) -> wasmtime::Result<Option<String>> {
        Ok(self.event.permission_mode().map(bounded))
    }

    fn source(&mut self, _: Resource<EventHandle>) -> wasmtime::Result<Option<String>> {
        Ok(self.event.source().map(bounded))
    }

    fn tool_kind(&mut self, _: Resource<EventHandle>) -> wasmtime::Result<Option<String>> {
        Ok(self.event.tool_call().map(|call| call.kind().name().to_owned()))
    }

    fn tool_paths(
        &mut self,
        _: Resource<EventHandle>,
    ) -> wasmtime::Result<Result<Vec<wit::types::ToolPath>, AccessError>> {
        let paths = self.surroundings.tool_call(&self.event).map_or(Ok(Vec::new()), |call| call.paths());
        Ok(match paths {
            Ok(paths) => Ok(paths.into_iter().map(tool_path).collect()),
            Err(omc_tool::TooMany) => Err(AccessError::TooLarge),
        })
    }

    fn tool_command(&mut self, _: Resource<EventHandle>) -> wasmtime::Result<Option<String>> {
        Ok(self.event.tool_call().and_then(|call| call.command()).map(bounded_cow))
    }

    fn tool_result(&mut self, _: Resource<EventHandle>) -> wasmtime::Result<Option<String>> {
        Ok(match self.event.tool_call().and_then(|call| call.output()) {
            None => None,
            Some(Output::Text(text)) => Some(bounded_cow(text)),
            Some(Output::Json(value)) => json_text(value),
        })
    }

    fn tool_failed(&mut self, _: Resource<EventHandle>) -> wasmtime::Result<Option<bool>> {
        Ok(self.event.tool_call().and_then(|call| call.failed()))
    }

    fn tool_interrupted(&mut self, _: Resource<EventHandle>) -> wasmtime::Result<bool> {
        Ok(self.event.tool_call().is_some_and(|call| call.interrupted()))
    }

    fn drop(&mut self, _: Resource<EventHandle>) -> wasmtime::Result<()> {
        Ok(())
    }
}

fn bounded(text: &str) -> String {
    text::cut_to_bytes(text, MAX_TEXT_BYTES).to_owned()
}

/// A text that was put together is already a copy; one that is lent is copied here, and not before it is cut.
fn bounded_cow(text: Cow<'_, str>) -> String {
    match text {
        Cow::Borrowed(text) => bounded(text),
        Cow::Owned(mut text) => {
            text.truncate(text::cut_to_bytes(&text, MAX_TEXT_BYTES).len());
            text
        }
    }
}

fn tool_path(named: omc_tool::ToolPath) -> wit::types::ToolPath {
    let operation = match named.operation {
        omc_tool::Operation::Read => FileOperation::Read,
        omc_tool::Operation::Write => FileOperation::Write,
        omc_tool::Operation::Edit => FileOperation::Edit,
        omc_tool::Operation::Delete => FileOperation::Delete,
    };
    wit::types::ToolPath { path: named.path, operation }
}

/// The JSON text of a value, unless it is too long. It is never longer in memory than the bound.
fn json_text(value: &Value) -> Option<String> {
    struct Bounded(Vec<u8>);
    impl Write for Bounded {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            if self.0.len() + bytes.len() > MAX_TEXT_BYTES {
                return Err(std::io::ErrorKind::FileTooLarge.into());
            }
            self.0.extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut out = Bounded(Vec::new());
    serde_json::to_writer(&mut out, value).ok()?;
    String::from_utf8(out.0).ok()
}

impl wit::types::HostEffects for GuestState {
    fn add_context(&mut self, _: Resource<EffectsHandle>, text: String) -> wasmtime::Result<Result<(), EffectError>> {
        let limit = self.limits.context_units;
        Ok(keep_within(&mut self.effects.context, text, limit).inspect_err(|_| self.refuse_over(Limit::ContextUnits)))
    }

    fn add_message(&mut self, _: Resource<EffectsHandle>, text: String) -> wasmtime::Result<Result<(), EffectError>> {
        let limit = self.limits.message_units;
        Ok(keep_within(&mut self.effects.messages, text, limit).inspect_err(|_| self.refuse_over(Limit::MessageUnits)))
    }

    fn update_input(&mut self, _: Resource<EffectsHandle>, json: String) -> wasmtime::Result<Result<(), EffectError>> {
        if !self.grants.update_input {
            self.refuse("update-input");
            return Ok(Err(EffectError::Denied));
        }
        if json.len() > MAX_INPUT_BYTES {
            self.refuse("new input over the limit");
            return Ok(Err(EffectError::TooLong));
        }
        if self.effects.updated_input.is_some() {
            return Ok(Err(EffectError::TooMany));
        }
        let Ok(input @ Value::Object(_)) = serde_json::from_str(&json) else {
            return Ok(Err(EffectError::Invalid));
        };
        self.effects.updated_input = Some(input);
        Ok(Ok(()))
    }

    fn drop(&mut self, _: Resource<EffectsHandle>) -> wasmtime::Result<()> {
        Ok(())
    }
}

/// Keeps a text if all texts together stay within a number of UTF-16 units.
fn keep_within(texts: &mut Vec<String>, text: String, limit: u64) -> Result<(), EffectError> {
    let held: usize = texts.iter().map(|text| text::units(text)).sum();
    if (held + text::units(&text)) as u64 > limit {
        return Err(EffectError::TooLong);
    }
    texts.push(text);
    Ok(())
}

/// What a line costs beyond its text, so that empty lines are not free.
const LINE_COST_BYTES: usize = 32;

impl wit::log::Host for GuestState {
    fn write(&mut self, level: wit::log::Level, message: String) -> wasmtime::Result<()> {
        let limit = usize::try_from(self.limits.log_bytes).unwrap_or(usize::MAX);
        let left = limit.saturating_sub(self.log_bytes).saturating_sub(LINE_COST_BYTES);
        let kept = text::cut_to_bytes(&message, left);
        if kept.len() < message.len() {
            self.refuse_over(Limit::LogBytes);
        }
        if left == 0 {
            return Ok(());
        }
        self.log_bytes += kept.len() + LINE_COST_BYTES;
        let level = match level {
            wit::log::Level::Debug => "debug",
            wit::log::Level::Info => "info",
            wit::log::Level::Warn => "warn",
            wit::log::Level::Error => "error",
        };
        self.log.push(LogLine { level, text: kept.to_owned() });
        Ok(())
    }
}

impl wit::settings::Host for GuestState {
    fn get(&mut self, key: String) -> wasmtime::Result<Option<String>> {
        Ok(self.surroundings.config.guest_settings.get(&key))
    }
}

impl wit::environment::Host for GuestState {
    fn get(&mut self, name: String) -> wasmtime::Result<Result<Option<String>, AccessError>> {
        if !self.grants.env.contains(&name) {
            self.refuse(&format!("env {}", text::cut_to_bytes(&name, MAX_NAMED_BYTES)));
            return Ok(Err(AccessError::Denied));
        }
        self.uses("env");
        Ok(match Surroundings::variable(&name) {
            Some(value) if value.len() > MAX_VARIABLE_BYTES => Err(AccessError::TooLarge),
            value => Ok(value),
        })
    }
}

impl wit::transcript::Host for GuestState {
    fn tail(&mut self, max_bytes: u32) -> wasmtime::Result<Result<String, AccessError>> {
        if !self.grants.transcript {
            self.refuse("transcript");
            return Ok(Err(AccessError::Denied));
        }
        self.uses("transcript");
        Ok(transcript::tail(self.event.transcript_path(), max_bytes))
    }
}

impl GuestState {
    /// Lets a guest read below a root, if it was granted anything there; a refusal goes to the trail under the path's name.
    fn files<T>(
        &mut self,
        root: &str,
        path: &str,
        read: impl FnOnce(&mut Files<'_>) -> Result<T, AccessError>,
    ) -> Result<T, AccessError> {
        let answer = match ReadRoot::from_name(root) {
            Some(root) if self.grants.read.iter().any(|scope| scope.root == root) => {
                match self.surroundings.readable(root, self.event.agent()) {
                    Some(folder) => read(&mut Files::new(&folder, root, &self.grants.read, &mut self.files)),
                    None => Err(AccessError::NotFound),
                }
            }
            Some(_) => Err(AccessError::Denied),
            None => Err(AccessError::NotFound),
        };
        if answer.is_ok() {
            self.uses("read");
        }
        if matches!(answer, Err(AccessError::Denied)) {
            let what = format!("read {root}:{}", text::cut_to_bytes(path, MAX_NAMED_BYTES));
            self.refuse(&what);
        }
        answer
    }

    /// Lets a guest ask about the repository, unless too many such events come for anybody to wait for.
    fn repository<T>(
        &mut self,
        ask: impl FnOnce(&Self, &Repository) -> Result<T, AccessError>,
    ) -> Result<T, AccessError> {
        let is_about_a_tool = self.event.tool_call().is_some() || self.event.kind() == Kind::PostToolBatch;
        if !self.grants.git || is_about_a_tool {
            self.refuse(if self.grants.git { "git on an event about a tool" } else { "git" });
            return Err(AccessError::Denied);
        }
        self.uses("git");
        let root = self.surroundings.project_root().ok_or(AccessError::NotFound)?;
        ask(self, &Repository::find(root)?)
    }
}

impl wit::project_files::Host for GuestState {
    fn read(&mut self, root: String, path: String, max_bytes: u32) -> wasmtime::Result<Result<String, AccessError>> {
        Ok(self.files(&root, &path, |files| files.read(&path, max_bytes, true)))
    }

    fn read_start(
        &mut self,
        root: String,
        path: String,
        max_bytes: u32,
    ) -> wasmtime::Result<Result<String, AccessError>> {
        Ok(self.files(&root, &path, |files| files.read(&path, max_bytes, false)))
    }

    fn list(
        &mut self,
        root: String,
        folder: String,
        max_entries: u32,
    ) -> wasmtime::Result<Result<Vec<Entry>, AccessError>> {
        Ok(self.files(&root, &folder, |files| files.list(&folder, max_entries)))
    }

    fn find(&mut self, root: String, folder: String, max_entries: u32) -> wasmtime::Result<Result<Found, AccessError>> {
        Ok(self.files(&root, &folder, |files| files.find(&folder, max_entries)))
    }
}

impl wit::git::Host for GuestState {
    fn branch(&mut self) -> wasmtime::Result<Result<Option<String>, AccessError>> {
        Ok(self.repository(|_, repository| repository.branch()))
    }

    fn head(&mut self) -> wasmtime::Result<Result<Option<String>, AccessError>> {
        Ok(self.repository(|_, repository| repository.head()))
    }

    fn changed_paths(&mut self, max_entries: u32) -> wasmtime::Result<Result<Changes, AccessError>> {
        Ok(self.repository(|state, repository| {
            let cache = state.surroundings.config.paths.cache_dir.as_deref().ok_or(AccessError::NotFound)?;
            repository.changed_paths(max_entries, cache, state.deadline)
        }))
    }

    fn added_lines(&mut self, path: String, max_lines: u32) -> wasmtime::Result<Result<Vec<u32>, AccessError>> {
        Ok(self.repository(|state, repository| {
            let cache = state.surroundings.config.paths.cache_dir.as_deref().ok_or(AccessError::NotFound)?;
            repository.added_lines(&path, max_lines, cache, state.deadline)
        }))
    }
}

impl wit::session_environment::Host for GuestState {
    fn set(&mut self, name: String, value: String) -> wasmtime::Result<Result<(), AccessError>> {
        if !self.grants.session_environment.contains(&name) {
            self.refuse(&format!("session-environment {}", text::cut_to_bytes(&name, MAX_NAMED_BYTES)));
            return Ok(Err(AccessError::Denied));
        }
        Ok(session_environment::set(&mut self.effects.session_environment, name, value))
    }
}

impl wit::state_lock::Host for GuestState {
    fn acquire(
        &mut self,
        folder: String,
        wait_ms: u32,
    ) -> wasmtime::Result<Result<Resource<lock::LockHandle>, AccessError>> {
        if !self.grants.writes_project() {
            self.refuse("state-lock");
            return Ok(Err(AccessError::Denied));
        }
        let Some(path) = lock::path(&folder) else {
            return Ok(Err(AccessError::Other("a lock's folder is `.` or a path below `.omc`".to_owned())));
        };
        if self.holds_lock {
            return Ok(Err(AccessError::Other("a guest holds one lock at a time".to_owned())));
        }
        let Some(dir) = self.surroundings.project_dir().map(Arc::clone) else {
            return Ok(Err(AccessError::Other("there is no project here, so there is no `.omc`".to_owned())));
        };
        let acquired = match self.wasi.make_folder(Preopen::Project.guest_path(), path)? {
            Ok(()) => lock::acquire(&dir, path, wait_ms, self.deadline),
            Err(ErrorCode::Access | ErrorCode::NotPermitted | ErrorCode::ReadOnly) => Err(AccessError::Denied),
            Err(error) => Err(AccessError::Other(error.message().to_owned())),
        };
        Ok(match acquired {
            Ok(held) => {
                let handle = self.wasi.table().push(held)?;
                self.holds_lock = true;
                Ok(handle)
            }
            Err(error) => {
                // Guests tend to hear only that they did not get it.
                if let AccessError::Other(why) = &error {
                    self.refuse(&format!("state-lock: {why}"));
                }
                Err(error)
            }
        })
    }
}

impl wit::state_lock::HostLock for GuestState {
    fn release(&mut self, lock: Resource<lock::LockHandle>) -> wasmtime::Result<()> {
        self.holds_lock &= !self.wasi.table().get_mut(&lock)?.release();
        Ok(())
    }

    fn drop(&mut self, lock: Resource<lock::LockHandle>) -> wasmtime::Result<()> {
        // One that was released does not end the one that was acquired after it.
        self.holds_lock &= !self.wasi.table().delete(lock)?.release();
        Ok(())
    }
}
