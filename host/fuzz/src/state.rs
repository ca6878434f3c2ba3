//! The files of a project's `.omc`, which the repository may have brought along.

use std::convert::Infallible;
use std::fs;
use std::path::Path;
use std::time::Duration;

use omc_state::project_memory::{Command, Occasion, PathKind, ProjectMemory};
use omc_state::subagents::{AgentStart, AgentStop};
use omc_state::{Breaker, CancelSignal, Error, Locker, Mode, NewMode, SessionId, Store, Timestamp};
use serde_json::{Map, Value};

use crate::scratch::{parts, plant, with_folder};

/// Every file that is read for an event of the session `s1`; `%` stands for `state/sessions/s1`.
const FILES: &[&str] = &[
    "%/ralph-state.json",
    "state/ralph-state.json",
    "%/autopilot-state.json",
    "%/ultrawork-state.json",
    "%/ralplan-state.json",
    "%/cancel-signal.json",
    "state/cancel-signal-state.json",
    "%/ralplan-stop-breaker.json",
    "%/no-progress-stop-breaker.json",
    "%/hud-state.json",
    "%/hud-stdin-cache.json",
    "%/subagent-tracking-state.json",
    "state/subagent-tracking.json",
    "%/scheduled-wakeup-state.json",
    "%/skill-active-state.json",
    "state/skill-active-state.json",
    "state/last-tool-error.json",
    "%/last-tool-error-state.json",
    "project-memory.json",
];

/// A lock that is always free: there is one thread.
struct Free;

impl Locker for Free {
    type Guard = ();
    type Error = Infallible;

    fn lock(&self, _name: &str, _wait: Duration) -> Result<(), Infallible> {
        Ok(())
    }
}

/// Puts the parts of the input into files of `.omc`, reads them all and writes what is usually written.
///
/// The first byte says which file gets the first part, and so on. Promises: what is written can be read, whatever stood there;
/// a file that was no JSON object is set aside unchanged; nothing half-written stays.
pub fn state_files(bytes: &[u8]) {
    let Some((&first, rest)) = bytes.split_first() else { return };
    let now = Timestamp::from_epoch_ms(1_796_048_880_000);
    let session = SessionId::parse("s1").expect("an id");
    with_folder(|folder| {
        let omc = folder.join("omc");
        drop(fs::remove_dir_all(&omc));
        let planted: [&[u8]; 3] = parts(rest);
        for (at, content) in planted.iter().enumerate() {
            plant(&omc, &path(FILES[(usize::from(first) + at) % FILES.len()]), content);
        }
        let store = Store::new(&omc);
        read_all(&store, &session, now);

        let start =
            NewMode { session: &session, prompt: "fix it", project_path: None, awaiting_confirmation: true, now };
        for &mode in Mode::ALL {
            match store.read_mode(&session, mode) {
                Ok(Some(state)) => store.write_mode(&session, mode, &state).expect("a state can be written back"),
                Ok(None) | Err(Error::Corrupt { .. }) => {
                    let state = omc_state::ModeState::new(mode, &start);
                    store.write_mode(&session, mode, &state).expect("a new state can be written");
                }
                Err(error) => panic!("{error}"),
            }
            let state = store.read_mode(&session, mode).expect("what was written can be read");
            assert!(state.is_some_and(|state| state.fields().belongs_to(&session)));
        }
        store.confirm_modes(&Free, &session, Mode::ALL, now).expect("modes can be confirmed");
        for breaker in [Breaker::Ralplan, Breaker::Team, Breaker::ContextGuard, Breaker::NoProgress] {
            store.write_breaker(&session, breaker, 3, now).expect("a count can be written");
            assert_eq!(store.read_breaker(&session, breaker, now), 3);
        }
        remember(&store, &session, now);
        store.sweep_cancel_signals(&session, now).expect("old signals can be swept");
        let signal = CancelSignal::new(&session, "test", now);
        store.write_cancel_signal(&session, &signal).expect("a signal can be written");
        assert!(store.read_cancel_signals(&session).iter().any(|signal| signal.is_valid(now)));
        store.end_modes(&session, "test", now).expect("modes can be ended");
        for &mode in Mode::ALL {
            let state = store.read_mode(&session, mode).expect("what was written can be read");
            assert!(state.is_none_or(|state| !state.is_active()), "a mode goes on");
        }
        read_all(&store, &session, now);
        nothing_is_lost(&omc, &planted, first);
    });
}

/// Writes what is learned about the project and the subagents.
fn remember(store: &Store, session: &SessionId, now: Timestamp) {
    let change = |memory: &mut ProjectMemory| {
        let touched = memory.touch("src/a.rs", PathKind::File, now);
        let noted = memory.add_note("build", "it needs a database", true, now);
        let directed = memory.add_directive("never push", "", true, now);
        memory.learn_command(Command::Test, "cargo test") | touched | noted | directed
    };
    store.change_memory(&Free, Occasion::User(Some("/p")), change).expect("a memory can be written");
    let memory = store.read_memory().expect("what was written can be read").expect("it was written");
    assert!(memory.has_note("build", "it needs a database"));
    let _ = (memory.languages(), memory.frameworks(), memory.build_tools(), memory.notes(), memory.directives());
    let _ = (memory.hot_paths().iter().map(|path| path.score(now)).max(), memory.wants_scan(now), memory.is_complete());

    let start = AgentStart { id: "a1", agent_type: "omc:executor", parent_mode: None, task: None, model: None };
    let stop = AgentStop { id: "a1", agent_type: None, succeeded: true, summary: Some("done") };
    let running = store.change_subagents(&Free, session, now, |agents, _| {
        agents.start(&start, now);
        agents.counts().running
    });
    assert!(running.expect("subagents can be written") >= 1);
    let worked = store.change_subagents(&Free, session, now, |agents, _| agents.stop(&stop, now));
    assert_eq!(worked.expect("subagents can be written"), Some(0));
}

fn path(file: &str) -> String {
    file.replace('%', "state/sessions/s1")
}

fn read_all(store: &Store, session: &SessionId, now: Timestamp) {
    for &mode in Mode::ALL {
        if let Ok(Some(state)) = store.read_mode(session, mode) {
            let _ = (state.is_live(now), state.is_awaiting_confirmation(now), state.is_finished());
            let _ = (state.phase().map(str::len), state.prompt().map(str::len), state.started_at());
            for signal in store.read_cancel_signals(session) {
                let _ = signal.covers(mode, &state, now);
            }
            let _ = store.read_skills(session).has_completed(mode, now);
        }
        let _ = store.excluded_by(session, mode, now);
    }
    let _ = (store.read_pending(session, now), store.read_tool_error(session, now));
    let _ = (store.live_modes(session, now), store.read_goals().are_over(), store.read_prd(session));
    let _ = (store.read_verification(session).request(now).is_some(), store.read_status_line_percent(session));
    let _ = (store.read_told_skills(session, now), store.read_simplified(session, "c1"));
    if let Some(skill) = store.read_skills(session).active() {
        let _ = (skill.is_stale(now), skill.refusals(), skill.max_refusals());
    }
    for breaker in [Breaker::Ralplan, Breaker::Team, Breaker::ContextGuard, Breaker::NoProgress] {
        let _ = store.read_breaker(session, breaker, now);
    }
}

/// Each planted file is still there, was replaced by JSON, or was set aside as it was.
fn nothing_is_lost(omc: &Path, planted: &[&[u8]], first: u8) {
    let contents: Vec<_> = [omc.to_owned(), omc.join("state"), omc.join("state/sessions/s1")]
        .iter()
        .flat_map(|folder| fs::read_dir(folder).into_iter().flatten().flatten())
        .filter(|entry| entry.path().is_file())
        .map(|entry| (entry.file_name().into_string().expect("our names"), fs::read(entry.path()).expect("a file")))
        .collect();
    assert!(!contents.iter().any(|(name, _)| name.starts_with(".tmp-")), "debris");
    for (at, content) in planted.iter().enumerate() {
        let file = path(FILES[(usize::from(first) + at) % FILES.len()]);
        let is_json = serde_json::from_slice::<Map<String, Value>>(content).is_ok();
        // Signals are removed when their time is over.
        let may_go = content.is_empty() || is_json && file.contains("cancel-signal");
        let stays = omc.join(&file).is_file() && is_json || contents.iter().any(|(_, kept)| kept == content);
        assert!(may_go || stays, "`{file}` is lost");
    }
}
