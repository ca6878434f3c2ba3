//! Looks for a plan that waits for the word to start its work, see [`logic::plan`](crate::logic::plan).
//!
//! Only asked after a prompt that is such a word, so that no ordinary prompt lists a folder.

use std::{
    fs::{self, File},
    io::Read,
    path::Path,
    time::SystemTime,
};

use omc_state::{Mode, SessionId, Store};

use crate::logic::plan::{self, Lane};

/// Most entries of the folder of plans that are looked at.
const MAX_LISTED: usize = 256;

/// Longest document that is read, in bytes: plans of people have some ten kilobytes.
const MAX_DOCUMENT_BYTES: u64 = 256 * 1024;

/// Whether the session's planning is over and its newest plan is complete and starts its work in this lane.
pub(crate) fn exists(store: &Store, session: &SessionId, lane: Lane) -> bool {
    let Ok(Some(state)) = store.read_mode(session, Mode::Ralplan) else { return false };
    let phases = ["current_phase", "phase", "status"];
    let over = phases.iter().filter_map(|name| state.fields().text(name)).any(plan::is_over);
    !state.is_active() && over && newest_plan_is_ready(&omc_guest::omc_dir().join("plans"), lane)
}

fn newest_plan_is_ready(folder: &Path, lane: Lane) -> bool {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().take(MAX_LISTED);
    let newest = entries
        .filter_map(|entry| {
            let file = entry.file_name().into_string().ok()?;
            let subject = plan::subject_of_prd(&file)?.to_owned();
            let modified = fs::symlink_metadata(entry.path()).ok()?.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            Some((modified, subject))
        })
        .max();
    newest.is_some_and(|(_, subject)| {
        let prd = read(&folder.join(format!("prd-{subject}.md")));
        let test_spec = read(&folder.join(format!("test-spec-{subject}.md")));
        prd.zip(test_spec).is_some_and(|(prd, test_spec)| plan::is_ready(&prd, &test_spec, lane))
    })
}

/// A document, if it is a plain file of ordinary size. The type is looked at first, as opening a pipe would wait for ever.
fn read(path: &Path) -> Option<String> {
    let found = fs::symlink_metadata(path).ok()?;
    if !found.is_file() || found.len() > MAX_DOCUMENT_BYTES {
        return None;
    }
    let mut text = String::new();
    File::open(path).ok()?.take(MAX_DOCUMENT_BYTES).read_to_string(&mut text).ok()?;
    Some(text)
}
