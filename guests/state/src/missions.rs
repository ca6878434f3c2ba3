//! The mission board, `state/mission-state.json`: what sessions and teams are at.

use serde_json::Value;

use crate::{Error, SessionId, Store, Timestamp, shared_path};

const FILE: &str = "mission-state.json";

impl Store {
    /// Takes the missions of these sessions off the board. Teams' stay. For use under the lock of the state.
    ///
    /// # Errors
    ///
    /// What keeps the board from being read or written.
    pub fn drop_missions(&self, sessions: &[SessionId], now: Timestamp) -> Result<(), Error> {
        let path = shared_path(FILE);
        if sessions.is_empty() || !self.exists(&path) {
            return Ok(());
        }
        let Some(mut board) = self.read_fields(&path)? else { return Ok(()) };
        let Some(missions) = board.get_mut("missions").and_then(Value::as_array_mut) else { return Ok(()) };
        let before = missions.len();
        missions.retain(|mission| {
            let text = |name| mission.get(name).and_then(Value::as_str).unwrap_or_default();
            // The whole id, up to its colon: `s1` is not `s10`.
            let owner = text("id").strip_prefix("session:").and_then(|rest| rest.split(':').next());
            let is_theirs = owner.is_some_and(|owner| sessions.iter().any(|session| session.as_str() == owner));
            !(text("source") == "session" && is_theirs)
        });
        if missions.len() == before {
            return Ok(());
        }
        board.set_time("updatedAt", now);
        self.replace(&path, &board)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{now, plant, session, store};
    use serde_json::json;
    use std::fs;

    #[test]
    fn only_the_sessions_own_missions_leave_the_board() {
        let (folder, store) = store();
        store.drop_missions(&[session("s1")], now()).expect("no board");
        let mission = |id: &str, source: &str| json!({"id": id, "source": source, "name": "n"});
        let board = json!({"updatedAt": "x", "mine": 1, "missions": [
            mission("session:s1:ralph", "session"), mission("session:s1", "session"), mission("session:s10:ralph", "session"),
            mission("session:s1:ralph", "team"), mission("team-s1", "team"), 7,
        ]});
        plant(&folder, "state/mission-state.json", board.to_string());
        store.drop_missions(&[session("s1")], now()).expect("a write");
        let left: Value =
            serde_json::from_str(&fs::read_to_string(folder.path().join("state/mission-state.json")).expect("a file"))
                .expect("JSON");
        let missions = board["missions"].as_array().expect("a list");
        assert_eq!(left, json!({"updatedAt": now().to_string(), "mine": 1, "missions": missions[2..]}));
    }

    #[test]
    fn a_board_that_cannot_be_read_is_left_alone() {
        let (folder, store) = store();
        plant(&folder, "state/mission-state.json", "{\"missions\": [");
        assert!(store.drop_missions(&[session("s1")], now()).is_err());
        assert_eq!(
            fs::read_to_string(folder.path().join("state/mission-state.json")).expect("a file"),
            "{\"missions\": ["
        );
    }
}
