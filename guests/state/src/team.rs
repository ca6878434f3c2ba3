//! Which team a session leads: its coarse state, `team-state.json`, else the store of teams, `state/team/NAME/`.
//!
//! The store is another program's; here it is only read, marked as over when the mode ends, and removed when it is cleared: a team
//! that outlived its mode would still be taken for one at work. What a state says is its team is looked for among the folders
//! that there are, and never made a path of.

use std::path::{Path, PathBuf};

use crate::{Error, Fields, Mode, ModeState, SessionId, Store, Timestamp};

/// Most teams of a project that are looked at.
const MAX_TEAMS: usize = 64;

/// Phases in which a team works.
const AT_WORK: [&str; 4] = ["initializing", "planning", "executing", "fixing"];

/// The phase of a team whose mode was ended.
const CANCELLED: &str = "cancelled";

const MANIFEST: &str = "manifest.json";
const PHASE: &str = "phase-state.json";

/// Most files of a team that are removed, and how deep its folders may lie in each other: many times what a team leaves.
const MAX_FILES: usize = 10_000;
const MAX_DEPTH: usize = 8;

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
            let name = team_name(&state);
            let stage = ["current_phase", "currentPhase"].iter().find_map(|name| state.fields().text(name));
            return state
                .is_live(now)
                .then(|| Team { name: name.unwrap_or("team").to_owned(), stage: stage.map(str::to_owned) });
        }
        self.team_names().into_iter().find_map(|name| self.stored_team(session, name))
    }

    fn stored_team(&self, session: &SessionId, name: String) -> Option<Team> {
        if !self.leader_of(&name)?.belongs_to(session) {
            return None;
        }
        let phase = self.phase_of(&name)?.text("current_phase").filter(|phase| AT_WORK.contains(phase))?.to_owned();
        let stage = match phase.as_str() {
            "executing" => "team-exec",
            "fixing" => "team-fix",
            _ => "team-plan",
        };
        Some(Team { name, stage: Some(stage.to_owned()) })
    }

    /// Marks the session's teams in the store as cancelled, and says whether one was at work. For use under the session's lock.
    ///
    /// # Errors
    ///
    /// The first file that could not be written, after all have been tried.
    pub(crate) fn end_teams(&self, session: &SessionId, now: Timestamp) -> Result<bool, Error> {
        let mut result = Ok(false);
        for name in self.teams_of(session) {
            let Some(mut phase) = self.phase_of(&name) else { continue };
            if !phase.text("current_phase").is_some_and(|phase| AT_WORK.contains(&phase)) {
                continue;
            }
            phase.set("current_phase", CANCELLED);
            phase.set_time("updated_at", now);
            let written = self.replace(&folder_of(&name).join(PHASE), &phase);
            result = result.and_then(|_| written.map(|()| true));
        }
        result
    }

    /// Removes the session's teams from the store, and their missions from the board; says whether there was one. For use under
    /// the session's lock.
    ///
    /// # Errors
    ///
    /// The first thing that could not be removed, after all have been tried.
    pub(crate) fn clear_teams(&self, session: &SessionId, now: Timestamp) -> Result<bool, Error> {
        self.drop_teams(&self.teams_of(session), now)
    }

    /// The same for every team of the project.
    pub(crate) fn clear_all_teams(&self, now: Timestamp) -> Result<bool, Error> {
        self.drop_teams(&self.team_names(), now)
    }

    /// Whether there may be teams in the store.
    pub(crate) fn has_teams(&self) -> bool {
        self.exists(&teams_folder())
    }

    fn drop_teams(&self, names: &[String], now: Timestamp) -> Result<bool, Error> {
        let mut result = self.drop_team_missions(names, now);
        for name in names {
            let removed = self.remove_tree(&folder_of(name), MAX_DEPTH, &mut { MAX_FILES });
            result = result.and(removed);
        }
        result.map(|()| !names.is_empty())
    }

    /// The session's teams in the store: those that it leads, and the one that its state names unless somebody else leads it.
    fn teams_of(&self, session: &SessionId) -> Vec<String> {
        let state = self.read_mode(session, Mode::Team).ok().flatten();
        let named = state.as_ref().and_then(team_name);
        let mut teams = self.team_names();
        teams.retain(|name| match self.leader_of(name) {
            Some(leader) => leader.belongs_to(session),
            None => named == Some(name),
        });
        teams
    }

    fn team_names(&self) -> Vec<String> {
        let mut names = self.names(&teams_folder(), MAX_TEAMS);
        names.sort_unstable();
        names
    }

    fn leader_of(&self, name: &str) -> Option<Fields> {
        self.read_fields(&folder_of(name).join(MANIFEST)).ok().flatten()?.object("leader")
    }

    fn phase_of(&self, name: &str) -> Option<Fields> {
        self.read_fields(&folder_of(name).join(PHASE)).ok().flatten()
    }
}

/// The team that a state names.
fn team_name(state: &ModeState) -> Option<&str> {
    ["team_name", "teamName", "team"].iter().find_map(|name| state.fields().text(name))
}

fn teams_folder() -> PathBuf {
    Path::new("state").join("team")
}

fn folder_of(name: &str) -> PathBuf {
    teams_folder().join(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        lock::testing::ThreadLocker,
        testing::{ago, now, plant, session, store},
    };
    use serde_json::{Value, json};
    use std::fs;
    use tempfile::TempDir;

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

    /// Teams of two sessions, of one without a word about its leader, and their missions.
    fn teams(state: &Value) -> (TempDir, Store) {
        let (folder, store) = store();
        for (name, leader) in
            [("atlas", json!({"session_id": "s1"})), ("bolt", json!({"session_id": "s2"})), ("cog", json!(null))]
        {
            plant(&folder, &format!("state/team/{name}/manifest.json"), json!({"leader": leader}).to_string());
            plant(
                &folder,
                &format!("state/team/{name}/phase-state.json"),
                json!({"current_phase": "executing", "max": 3}).to_string(),
            );
            plant(&folder, &format!("state/team/{name}/workers/w1/inbox.md"), "work");
        }
        let mission = |team: &str| json!({"id": format!("team:{team}"), "source": "team", "teamName": team});
        let missions =
            json!({"missions": [mission("atlas"), mission("bolt"), {"id": "session:s1:none", "source": "session"}]});
        plant(&folder, "state/mission-state.json", missions.to_string());
        if !state.is_null() {
            plant(&folder, "state/sessions/s1/team-state.json", state.to_string());
        }
        (folder, store)
    }

    fn left(folder: &TempDir) -> Vec<String> {
        let names = fs::read_dir(folder.path().join("state/team")).into_iter().flatten();
        let mut names: Vec<_> =
            names.map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8")).collect();
        names.sort();
        names
    }

    fn missions(folder: &TempDir) -> String {
        let board = fs::read_to_string(folder.path().join("state/mission-state.json")).expect("a board");
        let board: Value = serde_json::from_str(&board).expect("JSON");
        let ids = board["missions"]
            .as_array()
            .expect("missions")
            .iter()
            .map(|mission| mission["id"].as_str().expect("an id"));
        ids.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn clearing_a_sessions_team_takes_its_store_and_its_missions_and_nothing_of_others() {
        let locker = ThreadLocker::default();
        let named = |name: &str| json!({"active": true, "session_id": "s1", "team_name": name});
        for (state, gone) in [
            (json!(null), "atlas"),
            (named("atlas"), "atlas"),
            (named("bolt"), "atlas"),
            (named("../team/bolt"), "atlas"),
            (named(".."), "atlas"),
            (named("."), "atlas"),
            (named("cog"), "atlas cog"),
        ] {
            let (folder, store) = teams(&state);
            let s1 = session("s1");
            assert_eq!(store.clear_mode(&&locker, &s1, Mode::Team, now()).expect("cleared"), [Mode::Team], "{state}");
            let expected: Vec<_> = ["atlas", "bolt", "cog"].into_iter().filter(|name| !gone.contains(name)).collect();
            assert_eq!(left(&folder), expected, "{state}");
            assert_eq!(missions(&folder), "team:bolt session:s1:none", "{state}");
            assert_eq!(store.team_of(&s1, now()), None, "{state}");
            assert_eq!(store.clear_mode(&&locker, &s1, Mode::Team, now()).expect("nothing"), [], "{state}");
        }
        let (folder, store) = teams(&json!(null));
        store.clear_mode(&&locker, &session("s1"), Mode::Ralph, now()).expect("nothing");
        assert_eq!(left(&folder).len(), 3, "another mode is no team");
        assert!(store.clear_shared_mode(&&locker, Mode::Team, now()).expect("cleared"), "every team of the project");
        assert_eq!((left(&folder).len(), missions(&folder)), (0, "session:s1:none".to_owned()));
        assert!(!store.clear_shared_mode(&&locker, Mode::Team, now()).expect("nothing"));
    }

    #[cfg(unix)]
    #[test]
    fn what_lies_behind_a_link_in_a_team_stays() {
        use std::os::unix::fs::symlink;
        let (folder, store) = teams(&json!(null));
        let outside = tempfile::tempdir().expect("a folder");
        fs::write(outside.path().join("precious"), "x").expect("written");
        for place in ["state/team/atlas/link", "state/team/zed"] {
            symlink(outside.path(), folder.path().join(place)).expect("a link");
        }
        store.clear_mode(&&ThreadLocker::default(), &session("s1"), Mode::Team, now()).expect("cleared");
        assert_eq!(left(&folder), ["bolt", "cog", "zed"]);
        assert!(store.clear_shared_mode(&&ThreadLocker::default(), Mode::Team, now()).is_err(), "a link is no team");
        assert_eq!(left(&folder), ["zed"]);
        assert!(outside.path().join("precious").exists());
    }

    #[test]
    fn the_end_of_the_mode_is_the_end_of_the_team_in_the_store() {
        let locker = ThreadLocker::default();
        let s1 = session("s1");
        let phase = |folder: &TempDir, name: &str| -> Value {
            let text = fs::read_to_string(folder.path().join(format!("state/team/{name}/phase-state.json")));
            serde_json::from_str(&text.expect("a phase")).expect("JSON")
        };
        let (folder, store) = teams(&json!(null));
        assert!(store.team_of(&s1, now()).is_some());
        assert_eq!(store.cancel(&&locker, &s1, "test", now()).expect("cancelled"), [Mode::Team]);
        assert_eq!(store.team_of(&s1, now()), None);
        let ended = phase(&folder, "atlas");
        assert_eq!((&ended["current_phase"], &ended["max"]), (&json!("cancelled"), &json!(3)));
        assert_eq!(phase(&folder, "bolt")["current_phase"], "executing");
        assert_eq!(left(&folder).len(), 3, "a cancel removes nothing");
        assert_eq!(store.cancel(&&locker, &s1, "test", now()).expect("nothing"), []);

        let (folder, store) = teams(&json!({"active": true, "session_id": "s1", "team_name": "cog"}));
        assert_eq!(store.end_mode(&s1, Mode::Team, "state_write", now()).expect("ended"), [Mode::Team]);
        assert_eq!(phase(&folder, "cog")["current_phase"], "cancelled");
    }
}
