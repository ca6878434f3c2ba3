//! Guests: a stranger's component before it is run, and our own guests on events of anybody.

use code_simplifier::CodeSimplifier;
use context_guard::ContextGuard;
use keyword_detector::KeywordDetector;
use omc_artifact::{Component, Manifest};
use omc_guest::testing::{Outcome, World};
use omc_host::input::{self, Blocking, Limits};
use omc_host::protocol::dialect;
use omc_host::protocol::event::Agent;
use permission_handler::PermissionHandler;
use persistent_mode::PersistentMode;
use post_tool_verifier::PostToolVerifier;
use pre_compact::PreCompact;
use pre_tool_enforcer::PreToolEnforcer;
use project_memory::ProjectMemoryGuest;
use serde_json::Value;
use session_end::SessionEnd;
use session_start::SessionStart;
use setup::Setup;
use skill_injector::SkillInjector;
use subagent_tracker::SubagentTracker;
use tool_failure::ToolFailureGuest;
use wiki::Wiki;
use workflow_drift_guard::WorkflowDriftGuard;

use crate::scratch::{parts, plant, with_folder};

/// Reads a component's manifest, imports and digest.
///
/// Promises: it is read or refused; a manifest that was read means the same after it was written again.
pub fn component(bytes: &[u8]) {
    if let Ok(manifest) = Manifest::parse(bytes) {
        same_again(&manifest);
    }
    if let Ok(component) = Component::read(bytes) {
        assert_eq!(component.digest.len(), 64);
        same_again(&component.manifest);
    }
}

fn same_again(manifest: &Manifest) {
    let json = serde_json::to_vec(manifest).expect("a manifest is JSON");
    // Escapes and defaults can make it longer than the one that was read.
    if let Ok(again) = Manifest::parse(&json) {
        assert_eq!(*manifest, again);
    }
}

/// What calls a guest.
type Call = fn(&World) -> Outcome;

/// Every first-party guest.
const GUESTS: &[Call] = &[
    World::call::<CodeSimplifier>,
    World::call::<ContextGuard>,
    World::call::<KeywordDetector>,
    World::call::<PermissionHandler>,
    World::call::<PersistentMode>,
    World::call::<PostToolVerifier>,
    World::call::<PreCompact>,
    World::call::<PreToolEnforcer>,
    World::call::<ProjectMemoryGuest>,
    World::call::<SessionEnd>,
    World::call::<SessionStart>,
    World::call::<Setup>,
    World::call::<SkillInjector>,
    World::call::<SubagentTracker>,
    World::call::<ToolFailureGuest>,
    World::call::<Wiki>,
    World::call::<WorkflowDriftGuard>,
];

/// Files of `.omc` that get the same bytes.
const STATE: &[&str] = &[
    "state/sessions/s1/ralph-state.json",
    "state/sessions/s1/subagent-tracking-state.json",
    "state/sessions/s1/todos.json",
    "project-memory.json",
    "notepad.md",
    "wiki/page.md",
];

/// Calls our own guests with an event, a transcript and a state file of anybody.
///
/// Promises: no guest panics, and what it wants to say has bounds.
pub fn guests(bytes: &[u8]) {
    let [event, transcript, state] = parts(bytes);
    let Ok(read) = input::read_event(&mut Blocking(event), &Limits::default()) else { return };
    let event = dialect::of(Agent::Claude).decode(read.payload);
    with_folder(|folder| {
        let omc = folder.join("guests");
        drop(std::fs::remove_dir_all(&omc));
        for file in STATE {
            plant(&omc, file, state);
        }
        let mut world = World::new(event.kind_name(), event.payload().clone()).with_omc_dir(&omc);
        world.transcript = Some(String::from_utf8_lossy(transcript).into_owned());
        world.project_root = Some("/project".to_owned());
        for guest in GUESTS {
            let outcome = guest(&world);
            if let Some(input) = outcome.updated_input {
                assert!(matches!(input, Value::Object(_)));
            }
        }
    });
}
