//! Looks, when a subagent of a team ends, whether the team's stage has delivered what it should.
//!
//! Advice and nothing else: the agent that ends is neither held nor addressed. What is missing is kept, and the verifier tells the
//! team's leader after its next tool.

pub mod logic;

use std::time::SystemTime;

use omc_bare as _;
use omc_guest::project_files::{self, Root};
use omc_guest::{AccessError, Decision, Effects, Error, Event, EventKind, Guest, log, state_lock};
use omc_state::{DeliverableIssues, SessionId, Store};

use logic::{Content, Stage};

/// Largest deliverable that is looked into, in bytes.
const MAX_BYTES: u32 = 256 * 1024;

/// The guest.
#[derive(Debug)]
pub struct VerifyDeliverables;

omc_guest::export!(VerifyDeliverables, {
    "description": "Looks whether a team's stage delivered what it should",
    "subscriptions": [{"event": "subagent-stop", "order": 200}],
    "requests": [
        {"capability": "omc", "scope": ["rw:/omc/state", "ro:/omc/deliverables.json"], "reason": "reads the team's stage and the table of deliverables, keeps what is missing"},
        {"capability": "read", "scope": ["project:**"], "reason": "looks into the files that the table names"}
    ]
});

impl Guest for VerifyDeliverables {
    fn handle(event: &Event<'_>, _effects: &mut Effects<'_>) -> Result<Decision, Error> {
        if event.kind() == EventKind::SubagentStop
            && let Some(session) = event.session_id().as_deref().and_then(SessionId::parse)
        {
            verify(&session);
        }
        Ok(Decision::Pass)
    }
}

fn verify(session: &SessionId) {
    let store = Store::new(&omc_guest::omc_dir());
    let now = SystemTime::now().into();
    let Some(name) = store.team_of(session, now).and_then(|team| team.stage) else { return };
    let Some(stage) = Stage::find(store.read_deliverables().as_ref(), &name) else { return };
    let found = DeliverableIssues { stage: name, issues: stage.issues(read) };
    if let Err(error) = store.note_deliverable_issues(&state_lock::acquire, session, &found, now) {
        log::warn(&format!("{} missing deliverables were not noted: {}", found.issues.len(), error.chain()));
    }
}

fn read(path: &str) -> Content {
    match project_files::read(Root::Project, path, MAX_BYTES) {
        Ok(text) => Content::Text(text),
        Err(AccessError::NotFound) => Content::Missing,
        Err(_) => Content::Unread,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use omc_guest::testing::World;
    use serde_json::{Value, json};
    use std::fs;
    use tempfile::TempDir;

    fn omc(stage: &str) -> TempDir {
        let omc = tempfile::tempdir().expect("a folder");
        let now: omc_state::Timestamp = SystemTime::now().into();
        let team = json!({"active": true, "session_id": "s1", "current_phase": stage, "updated_at": now.to_string()});
        let folder = omc.path().join("state/sessions/s1");
        fs::create_dir_all(&folder).expect("folders");
        fs::write(folder.join("team-state.json"), team.to_string()).expect("a file");
        omc
    }

    fn stop(omc: &TempDir, files: &[(&str, &str)]) -> Option<Value> {
        let mut world =
            World::new("subagent-stop", json!({"session_id": "s1", "agent_id": "a1"})).with_omc_dir(omc.path());
        for (path, text) in files {
            world = world.with_file(Root::Project, path, text);
        }
        let outcome = world.call::<VerifyDeliverables>();
        assert_eq!(outcome.decision, Ok(Decision::Pass));
        assert!(outcome.context.is_empty() && outcome.messages.is_empty(), "the agent that ends is not addressed");
        let text = fs::read_to_string(omc.path().join("state/sessions/s1/deliverable-issues.json")).ok()?;
        serde_json::from_str(&text).ok()
    }

    #[test]
    fn what_is_missing_is_kept_for_the_leader() {
        let omc = omc("team-plan");
        assert_eq!(stop(&omc, &[]).expect("issues")["issues"], json!(["`DESIGN.md` is missing"]));
        let design = format!("## File Ownership\n## Architecture\n{}", "x".repeat(500));
        assert_eq!(stop(&omc, &[("DESIGN.md", &design)]).expect("none left")["issues"], json!([]));
    }

    #[test]
    fn without_a_team_or_a_stage_with_deliverables_nothing_is_written() {
        for stage in ["team-exec", "completed", ""] {
            assert_eq!(stop(&omc(stage), &[]), None, "{stage}");
        }
        let nobody = tempfile::tempdir().expect("a folder");
        assert_eq!(stop(&nobody, &[]), None);
        assert_eq!(fs::read_dir(nobody.path()).expect("a folder").count(), 0);
    }

    #[test]
    fn the_projects_own_table_counts_and_a_broken_one_does_not() {
        let omc = omc("team-plan");
        fs::write(omc.path().join("deliverables.json"), "{\"team-plan\": {\"files\": [\"A.md\"]}}").expect("a file");
        assert_eq!(stop(&omc, &[]).expect("issues")["issues"], json!(["`A.md` is missing"]));
        fs::write(omc.path().join("deliverables.json"), "{\"team-plan\": ").expect("a file");
        assert_eq!(stop(&omc, &[]).expect("issues")["issues"], json!(["`DESIGN.md` is missing"]));
    }
}
