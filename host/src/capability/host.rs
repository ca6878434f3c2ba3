//! The host side of `omc:hook`: event, effects, log, settings, environment, transcript and lock.
//!
//! Every function checks the call's grants where its interface needs one, answers `denied` without, and counts the refusal for the
//! trail. What a guest sends is bounded before it is kept.

use std::borrow::Cow;
use std::io::Write;

use serde_json::Value;
use wasmtime::component::{HasSelf, Linker, Resource};

use crate::config::Limit;
use crate::runtime::{GuestState, LogLine, wit};
use crate::surroundings::Surroundings;
use crate::text;
use wit::types::{AccessError, EffectError};

use super::{lock, transcript};

/// Longest text that a guest gets from an event, in bytes: far beyond any prompt a person writes, and small against the memory a
/// guest has.
const MAX_TEXT_BYTES: usize = 8 * 1024 * 1024;
/// Largest new input of a tool, in bytes.
const MAX_INPUT_BYTES: usize = 1024 * 1024;
/// Longest value of an environment variable that a guest gets, in bytes.
const MAX_VARIABLE_BYTES: usize = 32 * 1024;

/// The event of a call. There is one, so the handle holds nothing.
#[derive(Debug)]
pub struct EventHandle;
/// The effects of a call. There is one set, so the handle holds nothing.
#[derive(Debug)]
pub struct EffectsHandle;

/// Adds `omc:hook` to a linker.
pub(crate) fn add_to_linker(linker: &mut Linker<GuestState>) -> wasmtime::Result<()> {
    type Own = HasSelf<GuestState>;
    wit::types::add_to_linker::<_, Own>(linker, |state| state)?;
    wit::log::add_to_linker::<_, Own>(linker, |state| state)?;
    wit::settings::add_to_linker::<_, Own>(linker, |state| state)?;
    wit::state_lock::add_to_linker::<_, Own>(linker, |state| state)?;
    wit::transcript::add_to_linker::<_, Own>(linker, |state| state)?;
    wit::environment::add_to_linker::<_, Own>(linker, |state| state)?;
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
        Ok(self.event.cwd().map(bounded))
    }

    fn project_root(&mut self, _: Resource<EventHandle>) -> wasmtime::Result<Option<String>> {
        Ok(self.surroundings.project_root().map(|root| root.to_string_lossy().into_owned()))
    }

    fn prompt(&mut self, _: Resource<EventHandle>) -> wasmtime::Result<Option<String>> {
        Ok(self.event.prompt().map(|prompt| match prompt {
            Cow::Borrowed(prompt) => bounded(prompt),
            Cow::Owned(prompt) => bounded(&prompt),
        }))
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

    fn drop(&mut self, _: Resource<EventHandle>) -> wasmtime::Result<()> {
        Ok(())
    }
}

fn bounded(text: &str) -> String {
    text::cut_to_bytes(text, MAX_TEXT_BYTES).to_owned()
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
            self.refuse(&format!("env {}", text::cut_to_bytes(&name, 64)));
            return Ok(Err(AccessError::Denied));
        }
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
        Ok(transcript::tail(self.event.transcript_path(), max_bytes))
    }
}

impl wit::state_lock::Host for GuestState {
    fn acquire(
        &mut self,
        name: String,
        wait_ms: u32,
    ) -> wasmtime::Result<Result<Resource<lock::LockHandle>, AccessError>> {
        if !self.grants.writes_project() {
            self.refuse("state-lock");
            return Ok(Err(AccessError::Denied));
        }
        if !lock::is_name(&name) {
            return Ok(Err(AccessError::Other("a lock's name is 1 to 64 of a-z, 0-9 and -".to_owned())));
        }
        if self.holds_lock {
            return Ok(Err(AccessError::Other("a guest holds one lock at a time".to_owned())));
        }
        let acquired = match self.surroundings.project_dir() {
            Some(dir) => lock::acquire(dir, wait_ms, self.deadline),
            None => Err(AccessError::NotFound),
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
    fn drop(&mut self, lock: Resource<lock::LockHandle>) -> wasmtime::Result<()> {
        self.wasi.table().delete(lock)?;
        self.holds_lock = false;
        Ok(())
    }
}
