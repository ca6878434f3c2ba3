//! What the tests of several modules share.

use std::fs;

use serde_json::Value;
use tempfile::TempDir;

use crate::{Fields, ModeState, Place, SessionId, Store, Timestamp};

pub(crate) fn now() -> Timestamp {
    Timestamp::from_epoch_ms(1_796_048_880_000)
}

pub(crate) fn ago(ms: i64) -> String {
    now().plus_ms(-ms).to_string()
}

pub(crate) fn session(id: &str) -> SessionId {
    SessionId::parse(id).expect("an id")
}

pub(crate) fn fields(value: Value) -> Fields {
    serde_json::from_value(value).expect("an object")
}

pub(crate) fn state(value: Value) -> ModeState {
    ModeState::from_fields(fields(value), Place::Session)
}

pub(crate) fn store() -> (TempDir, Store) {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::new(folder.path());
    (folder, store)
}

pub(crate) fn plant(folder: &TempDir, path: &str, content: impl AsRef<[u8]>) {
    let path = folder.path().join(path);
    fs::create_dir_all(path.parent().expect("a parent")).expect("folders");
    fs::write(path, content).expect("a file");
}
