//! Makes the folders of a project (`init`) and clears away what is left over (`maintenance`).
//!
//! Agents say it as the source of a session or as an event of its own.

use std::time::SystemTime;

use omc_bare as _;
use omc_guest::{Decision, Effects, Error, Event, EventKind, Guest, log, session_environment, state_lock};
use omc_state::{SessionId, Store, Timestamp, notepad};

/// The guest.
#[derive(Debug)]
pub struct Setup;

omc_guest::export!(Setup, {
    "description": "Makes a project's folders, and removes what is left over",
    "subscriptions": [
        {"event": "session-start", "matcher": "init|maintenance", "order": 400},
        {"event": "setup", "order": 400}
    ],
    "requests": [
        {"capability": "omc", "scope": ["rw:/omc"], "reason": "makes the usual folders; removes dead sessions, old records and notes, and debris"},
        {"capability": "session-environment", "scope": ["OMC_INITIALIZED"], "reason": "tells commands of the session that the folders are there"}
    ]
});

impl Guest for Setup {
    fn handle(event: &Event<'_>, effects: &mut Effects<'_>) -> Result<Decision, Error> {
        let what = match event.kind() {
            EventKind::SessionStart | EventKind::Setup => event.source(),
            _ => None,
        };
        let store = Store::new(&omc_guest::omc_dir());
        let text = match what.as_deref() {
            Some("init") => init(&store),
            Some("maintenance") => {
                let session = event.session_id().as_deref().and_then(SessionId::parse);
                maintain(&store, session.as_ref(), SystemTime::now().into())
            }
            _ => return Ok(Decision::Pass),
        };
        effects.add_context(&text)?;
        Ok(Decision::Pass)
    }
}

fn init(store: &Store) -> String {
    let made = report(store.make_folders()).unwrap_or_default();
    if let Err(error) = session_environment::set("OMC_INITIALIZED", "true") {
        log::debug(&format!("OMC_INITIALIZED is not set: {error}"));
    }
    let is_ignored = report(store.ensure_ignored()).is_some();
    let hint = if is_ignored { "" } else { " Add `.omc/` to the repository's .gitignore." };
    format!("[OMC SETUP] {}.{hint}", counted(made, "folder was made in .omc", "folders were made in .omc"))
}

fn maintain(store: &Store, own: Option<&SessionId>, now: Timestamp) -> String {
    let cleaned = report(store.clean_up(&state_lock::acquire, own, now)).unwrap_or_default();
    let files = cleaned.files + store.remove_leftovers(now);
    let notes = report(store.prune_notepad(&state_lock::acquire, notepad::WORKING_DAYS, now));
    let notes = notes.map_or(0, |pruned| pruned.dropped);
    if cleaned.sessions + files + notes == 0 {
        return "[OMC MAINTENANCE] Nothing had to be cleared away.".to_owned();
    }
    format!(
        "[OMC MAINTENANCE] Cleared away: {}, {}, {}.",
        counted(cleaned.sessions, "dead session", "dead sessions"),
        counted(files, "old file", "old files"),
        counted(notes, "old note", "old notes"),
    )
}

fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

fn report<T>(done: Result<T, omc_state::Error>) -> Option<T> {
    done.inspect_err(|error| log::warn(&error.chain())).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use omc_guest::testing::{Outcome, World};
    use serde_json::json;
    use std::{fs, time::Duration};
    use tempfile::TempDir;

    fn event(omc: &TempDir, kind: &str, word: &str) -> Outcome {
        let payload = json!({"session_id": "s1", "source": word, "trigger": word});
        World::new(kind, payload).with_omc_dir(omc.path()).call::<Setup>()
    }

    #[test]
    fn init_makes_the_folders_whichever_way_it_is_said() {
        for kind in ["session-start", "setup"] {
            let omc = tempfile::tempdir().expect("a folder");
            assert_eq!(event(&omc, kind, "init").context, ["[OMC SETUP] 7 folders were made in .omc."]);
            for folder in ["state/checkpoints", "logs", "notepads", "plans", "research", "drafts"] {
                assert!(omc.path().join(folder).is_dir(), "{folder}");
            }
            assert_eq!(event(&omc, kind, "init").context, ["[OMC SETUP] 0 folders were made in .omc."]);
        }
    }

    #[test]
    fn maintenance_says_what_it_removed() {
        let omc = tempfile::tempdir().expect("a folder");
        assert_eq!(event(&omc, "setup", "maintenance").context, ["[OMC MAINTENANCE] Nothing had to be cleared away."]);
        fs::create_dir_all(omc.path().join("state/sessions/hollow")).expect("a folder");
        fs::write(omc.path().join("notepad.md"), "## Working Memory\n### 2020-01-02 03:04\nold\n").expect("a file");
        let leftover = omc.path().join("state/idle-notif-cooldown.json");
        fs::write(&leftover, "{}").expect("a file");
        let file = fs::File::options().write(true).open(&leftover).expect("the file");
        file.set_modified(SystemTime::now() - Duration::from_hours(8 * 24)).expect("a time");
        let text = "[OMC MAINTENANCE] Cleared away: 1 dead session, 1 old file, 1 old note.";
        assert_eq!(event(&omc, "session-start", "maintenance").context, [text]);
        assert!(!leftover.exists());
    }

    #[test]
    fn other_starts_are_none_of_its_business() {
        let omc = tempfile::tempdir().expect("a folder");
        for (kind, word) in [("session-start", "startup"), ("setup", "other"), ("session-end", "init")] {
            assert!(event(&omc, kind, word).context.is_empty(), "{kind} {word}");
        }
        assert_eq!(fs::read_dir(omc.path()).expect("a folder").count(), 0);
    }

    #[test]
    fn where_nothing_can_be_written_a_hint_is_all() {
        let omc = tempfile::tempdir().expect("a folder");
        let file = omc.path().join("file");
        fs::write(&file, "").expect("a file");
        let world = World::new("setup", json!({"trigger": "init"})).with_omc_dir(&file);
        let outcome = world.call::<Setup>();
        assert!(outcome.context[0].ends_with(".gitignore.") && outcome.logged.len() == 2, "{outcome:?}");
    }
}
