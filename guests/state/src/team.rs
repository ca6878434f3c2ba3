//! Which team a session leads: its coarse state, `team-state.json`, else the store of teams, `state/team/NAME/`.

use std::path::{Path, PathBuf};

use crate::{Fields, Mode, SessionId, Store, Timestamp};

/// Most teams of a project that are looked at.
const MAX_TEAMS: usize = 64;

/// Phases in which a team works.
const AT_WORK: [&str; 4] = ["initializing", "planning", "executing", "fixing"];

/// A team at work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Team {
    /// Its name. Text from a file: not to be shown as it is.
    pub name: String,
    /// The stage it is at, such as `team-plan`.
    pub stage: Option<String>,
}

impl Store {
    /// The team that the session leads and that is at work.
    pub fn team_of(&self, session: &SessionId, now: Timestamp) -> Option<Team> {
        if let Ok(Some(state)) = self.read_mode(session, Mode::Team) {
            let name = ["team_name", "teamName", "team"].iter().find_map(|name| state.fields().text(name));
            let stage = ["current_phase", "currentPhase"].iter().find_map(|name| state.fields().text(name));
            return state
                .is_live(now)
                .then(|| Team { name: name.unwrap_or("team").to_owned(), stage: stage.map(str::to_owned) });
        }
        let teams = Path::new("state").join("team");
        let mut names = self.names(&teams, MAX_TEAMS);
        names.sort_unstable();
        names.into_iter().find_map(|name| self.stored_team(session, &teams.join(&name), name))
    }

    fn stored_team(&self, session: &SessionId, folder: &Path, name: String) -> Option<Team> {
        let read =
            |file: &str| -> Option<Fields> { self.read_fields(&PathBuf::from(folder).join(file)).ok().flatten() };
        let leader = read("manifest.json")?.object("leader")?;
        if !leader.belongs_to(session) {
            return None;
        }
        let phase = read("phase-state.json")?.text("current_phase").filter(|phase| AT_WORK.contains(phase))?.to_owned();
        let stage = match phase.as_str() {
            "executing" => "team-exec",
            "fixing" => "team-fix",
            _ => "team-plan",
        };
        Some(Team { name, stage: Some(stage.to_owned()) })
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{ago, now, plant, session, store};
    use serde_json::{Value, json};

    fn found(files: &[(&str, Value)]) -> Option<(String, Option<String>)> {
        let (folder, store) = store();
        for (path, value) in files {
            plant(&folder, path, value.to_string());
        }
        store.team_of(&session("s1"), now()).map(|team| (team.name, team.stage))
    }

    #[test]
    fn the_sessions_own_fresh_state_names_the_team() {
        const STATE: &str = "state/sessions/s1/team-state.json";
        let state = |over: Value| {
            let mut state = json!({"active": true, "session_id": "s1", "team_name": "atlas", "current_phase": "team-exec", "updated_at": ago(1_000)});
            for (name, value) in over.as_object().expect("an object") {
                state[name] = value.clone();
            }
            state
        };
        let atlas = Some(("atlas".to_owned(), Some("team-exec".to_owned())));
        assert_eq!(found(&[(STATE, state(json!({})))]), atlas);
        assert_eq!(found(&[("state/team-state.json", state(json!({})))]), atlas);
        for over in [
            json!({"active": false}),
            json!({"session_id": "s2"}),
            json!({"updated_at": ago(3 * 60 * 60 * 1000)}),
            json!({"current_phase": "completed"}),
        ] {
            assert_eq!(found(&[(STATE, state(over.clone()))]), None, "{over}");
        }
    }

    #[test]
    fn else_the_store_of_teams_is_asked() {
        let team = |name: &str, leader: &str, phase: &str| {
            [
                (format!("state/team/{name}/manifest.json"), json!({"leader": {"session_id": leader}})),
                (format!("state/team/{name}/phase-state.json"), json!({"current_phase": phase})),
            ]
        };
        for (teams, name) in [
            (vec![team("t1", "s1", "executing")], Some(("t1", "team-exec"))),
            (vec![team("t1", "s2", "executing"), team("t2", "s1", "planning")], Some(("t2", "team-plan"))),
            (vec![team("t1", "s1", "completed"), team("t2", "s1", "fixing")], Some(("t2", "team-fix"))),
            (vec![team("t1", "s1", "failed")], None),
            (vec![team("t1", "s1", "odd")], None),
            (vec![], None),
        ] {
            let files: Vec<_> = teams.iter().flatten().map(|(path, value)| (path.as_str(), value.clone())).collect();
            let name = name.map(|(name, stage)| (name.to_owned(), Some(stage.to_owned())));
            assert_eq!(found(&files), name, "{files:?}");
        }
    }
}
