//! The mission board: what sessions and teams are at, for the status line.
//!
//! A session's subagents are on its own board, `state/sessions/ID/mission-state.json`: one mission for each mode, with its agents
//! and the last steps. `state/mission-state.json` is the older board that all share; of it only ended sessions are taken off.

use serde_json::{Map, Value, json};

use crate::{
    Error, Fields, Mode, SessionId, Store, Timestamp, one_line, session_path, shared_path,
    subagents::{AgentStart, AgentStop, short_type},
    truncate_units,
};

const FILE: &str = "mission-state.json";

/// Most missions of a session (there is one for each mode that starts agents), and most agents of a mission; those that were
/// touched last stay. With the longest texts, all in Korean, the board stays below the store's bound.
const MAX_MISSIONS: usize = 5;
const MAX_AGENTS: usize = 32;

/// Steps of a mission that are kept, the newest: the original's number.
const MAX_STEPS: usize = 3;

/// Longest texts of the board, in UTF-16 units: the original's columns.
const MAX_OBJECTIVE_UNITS: usize = 72;
const MAX_STEP_UNITS: usize = 56;
const MAX_SUMMARY_UNITS: usize = 64;
const MAX_NAME_UNITS: usize = 64;

/// Letters of an agent's id in its name.
const ID_LETTERS: usize = 7;

/// The missions of a board, as objects.
fn missions_of(board: &Fields) -> Vec<Fields> {
    board.objects("missions").collect()
}

fn put_missions(board: &mut Fields, mut missions: Vec<Fields>) {
    // Stable: those of the same moment keep their order.
    missions.sort_by_key(|mission| mission.time("updatedAt"));
    missions.drain(..missions.len().saturating_sub(MAX_MISSIONS));
    board.set("missions", values(missions));
}

fn values(objects: Vec<Fields>) -> Vec<Value> {
    objects.into_iter().map(Map::from).map(Value::Object).collect()
}

/// An agent's name on the board: `executor:agent-a`.
fn agent_name(agent_type: &str, id: &str) -> String {
    let id: String = id.chars().take(ID_LETTERS).collect();
    one_line(&format!("{}:{id}", short_type(agent_type)), MAX_NAME_UNITS)
}

/// Puts an agent's members into a mission, and a step beside them; then counts anew.
fn note(mission: &mut Fields, id: &str, members: &Value, kind: &str, detail: &str, now: Timestamp) {
    let mut agents: Vec<_> = mission.objects("agents").collect();
    let known = agents.iter().position(|agent| agent.text("ownership") == Some(id));
    let mut agent = known.map(|at| agents.remove(at)).unwrap_or_default();
    for (name, value) in members.as_object().into_iter().flatten() {
        agent.set(name, value.clone());
    }
    agent.set_time("updatedAt", now);
    let name = agent.text("name").unwrap_or_default().to_owned();
    agents.push(agent);
    agents.drain(..agents.len().saturating_sub(MAX_AGENTS));

    let is = |status: &str| agents.iter().filter(|agent| agent.text("status") == Some(status)).count();
    let (running, done, blocked) = (is("running"), is("done"), is("blocked"));
    let status = if running > 0 {
        "running"
    } else if blocked > 0 {
        "blocked"
    } else {
        "done"
    };
    mission.set("status", status);
    mission.set("workerCount", agents.len());
    mission.set(
        "taskCounts",
        json!({"total": agents.len(), "pending": 0, "blocked": 0, "inProgress": running, "completed": done, "failed": blocked}),
    );
    mission.set("agents", values(agents));

    let mut steps: Vec<_> = mission.objects("timeline").collect();
    let mut step = Fields::default();
    step.set("id", format!("{kind}:{id}:{}", now.epoch_ms()));
    step.set_time("at", now);
    step.set("kind", kind);
    step.set("agent", name);
    step.set("detail", one_line(detail, MAX_OBJECTIVE_UNITS));
    step.set("sourceKey", format!("session:{kind}:{id}"));
    steps.push(step);
    steps.drain(..steps.len().saturating_sub(MAX_STEPS));
    mission.set("timeline", values(steps));
    mission.set_time("updatedAt", now);
}

impl Store {
    /// Puts a subagent that starts on its session's board. For use under the session's lock.
    ///
    /// # Errors
    ///
    /// What keeps the board from being written. One that cannot be read is begun anew.
    pub fn show_agent_start(&self, session: &SessionId, start: &AgentStart<'_>, now: Timestamp) -> Result<(), Error> {
        let mode = start.parent_mode.map_or("none", Mode::name);
        let id = format!("session:{session}:{mode}");
        let task = one_line(start.task.unwrap_or_default(), MAX_OBJECTIVE_UNITS);
        let agent_id = truncate_units(start.id, MAX_NAME_UNITS);
        self.change_board(session, now, |missions| {
            let known = missions.iter().position(|mission| mission.text("id") == Some(&id));
            let mut mission = known.map(|at| missions.remove(at)).unwrap_or_default();
            if known.is_none() {
                mission.set("id", id);
                mission.set("source", "session");
                mission.set("name", mode);
                mission.set("objective", task.as_str());
                mission.set_time("createdAt", now);
            }
            let agent = json!({
                "name": agent_name(start.agent_type, start.id), "role": one_line(short_type(start.agent_type), MAX_NAME_UNITS),
                "ownership": agent_id, "status": "running", "currentStep": one_line(&task, MAX_STEP_UNITS),
                "latestUpdate": one_line(&task, MAX_SUMMARY_UNITS), "completedSummary": null,
            });
            note(&mut mission, &agent_id, &agent, "update", &format!("started {task}"), now);
            missions.push(mission);
        })
    }

    /// Notes on its session's board that a subagent has ended, if it is there. For use under the session's lock.
    ///
    /// # Errors
    ///
    /// As of [`show_agent_start`](Self::show_agent_start).
    pub fn show_agent_stop(&self, session: &SessionId, stop: &AgentStop<'_>, now: Timestamp) -> Result<(), Error> {
        if !self.exists(&session_path(session, FILE)) {
            return Ok(());
        }
        let summary = one_line(stop.summary.unwrap_or_default(), MAX_SUMMARY_UNITS);
        let id = truncate_units(stop.id, MAX_NAME_UNITS);
        self.change_board(session, now, |missions| {
            // Nobody else's agent is closed in place of one that is not there.
            let has_agent =
                |mission: &Fields| mission.objects("agents").any(|agent| agent.text("ownership") == Some(&id));
            let Some(mission) = missions.iter_mut().rev().find(|mission| has_agent(mission)) else { return };
            let (status, kind) = if stop.succeeded { ("done", "completion") } else { ("blocked", "failure") };
            let agent = json!({
                "status": status, "currentStep": null, "latestUpdate": summary,
                "completedSummary": if stop.succeeded { Value::from(summary.as_str()) } else { Value::Null },
            });
            note(mission, &id, &agent, kind, &summary, now);
        })
    }

    fn change_board(
        &self,
        session: &SessionId,
        now: Timestamp,
        change: impl FnOnce(&mut Vec<Fields>),
    ) -> Result<(), Error> {
        let path = session_path(session, FILE);
        let mut board = self.read_fields(&path).ok().flatten().unwrap_or_default();
        let mut missions = missions_of(&board);
        change(&mut missions);
        board.set_time("updatedAt", now);
        put_missions(&mut board, missions);
        self.replace(&path, &board)
    }

    /// Takes the missions of these sessions off the board that all share. Teams' stay. For use under the lock of the state.
    ///
    /// # Errors
    ///
    /// What keeps the board from being read or written.
    pub fn drop_missions(&self, sessions: &[SessionId], now: Timestamp) -> Result<(), Error> {
        if sessions.is_empty() {
            return Ok(());
        }
        self.keep_missions(now, |text| {
            // The whole id, up to its colon: `s1` is not `s10`.
            let id = text("id");
            let owner = id.strip_prefix("session:").and_then(|rest| rest.split(':').next());
            let is_theirs = owner.is_some_and(|owner| sessions.iter().any(|session| session.as_str() == owner));
            !(text("source") == "session" && is_theirs)
        })
    }

    /// The same for missions of teams.
    ///
    /// # Errors
    ///
    /// As of [`drop_missions`](Self::drop_missions).
    pub(crate) fn drop_team_missions(&self, teams: &[String], now: Timestamp) -> Result<(), Error> {
        if teams.is_empty() {
            return Ok(());
        }
        self.keep_missions(now, |text| {
            let name = if text("teamName").is_empty() { text("name") } else { text("teamName") };
            !(text("source") == "team" && teams.contains(&name))
        })
    }

    /// Leaves the missions on the board that all share of which `keep` says so, given their texts by name.
    fn keep_missions(&self, now: Timestamp, keep: impl Fn(&dyn Fn(&str) -> String) -> bool) -> Result<(), Error> {
        let path = shared_path(FILE);
        if !self.exists(&path) {
            return Ok(());
        }
        let Some(mut board) = self.read_fields(&path)? else { return Ok(()) };
        let Some(missions) = board.get_mut("missions").and_then(Value::as_array_mut) else { return Ok(()) };
        let before = missions.len();
        missions
            .retain(|mission| keep(&|name| mission.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()));
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

    fn start<'a>(id: &'a str, mode: Option<Mode>, task: &'a str) -> AgentStart<'a> {
        AgentStart { id, agent_type: "omc:executor", parent_mode: mode, task: Some(task), model: None }
    }

    fn stop(id: &str, succeeded: bool) -> AgentStop<'_> {
        AgentStop { id, agent_type: None, succeeded, summary: Some("all\ngreen") }
    }

    fn board(store: &Store) -> Value {
        let fields = store.read_fields(&session_path(&session("s1"), FILE)).expect("a read").expect("a board");
        serde_json::to_value(fields).expect("JSON")
    }

    #[test]
    fn a_session_shows_its_agents_from_start_to_end() {
        let (_folder, store) = store();
        let s1 = session("s1");
        let long = "port the parser\nand its tests ".repeat(9);
        store.show_agent_start(&s1, &start("agent-abcdef1", Some(Mode::Ralph), &long), now()).expect("a write");
        store.show_agent_start(&s1, &start("agent-2", Some(Mode::Ralph), "x"), now()).expect("a write");
        let mission = &board(&store)["missions"][0];
        assert_eq!((&mission["id"], &mission["name"]), (&json!("session:s1:ralph"), &json!("ralph")));
        assert_eq!((&mission["status"], &mission["workerCount"]), (&json!("running"), &json!(2)));
        let objective = mission["objective"].as_str().expect("a text");
        assert!(objective.len() == 72 && objective.ends_with("...") && !objective.contains('\n'), "{objective}");
        let agent = &mission["agents"][0];
        assert_eq!((&agent["name"], &agent["role"]), (&json!("executor:agent-a"), &json!("executor")));

        store.show_agent_stop(&s1, &stop("agent-abcdef1", true), now().plus_ms(1)).expect("a write");
        store.show_agent_stop(&s1, &stop("agent-2", false), now().plus_ms(2)).expect("a write");
        let mission = &board(&store)["missions"][0];
        assert_eq!(mission["status"], "blocked");
        let counts = json!({"total": 2, "pending": 0, "blocked": 0, "inProgress": 0, "completed": 1, "failed": 1});
        assert_eq!(mission["taskCounts"], counts);
        assert_eq!(mission["agents"][0]["completedSummary"], "all green");
        let kinds: Vec<_> = mission["timeline"].as_array().expect("steps").iter().map(|step| &step["kind"]).collect();
        assert_eq!(kinds, ["update", "completion", "failure"]);
    }

    #[test]
    fn an_end_that_nobody_started_closes_nobody() {
        let (_folder, store) = store();
        let s1 = session("s1");
        store.show_agent_stop(&s1, &stop("a1", true), now()).expect("no board");
        assert!(!store.exists(&session_path(&s1, FILE)));
        store.show_agent_start(&s1, &start("a1", None, "x"), now()).expect("a write");
        store.show_agent_stop(&s1, &stop("a2", true), now()).expect("a write");
        assert_eq!(board(&store)["missions"][0]["agents"][0]["status"], "running");
    }

    #[test]
    fn a_board_is_bounded_and_what_it_does_not_know_stays() {
        let (folder, store) = store();
        let s1 = session("s1");
        let known = json!({"mine": 1, "missions": [{"id": "session:s1:none", "mine": 2, "agents": [{"ownership": "a0", "mine": 3}]}, 7]});
        plant(&folder, "state/sessions/s1/mission-state.json", known.to_string());
        store.show_agent_start(&s1, &start("a0", None, "x"), now()).expect("a write");
        let kept = board(&store);
        let mission = &kept["missions"][0];
        assert_eq!((&kept["mine"], &mission["mine"], &mission["agents"][0]["mine"]), (&json!(1), &json!(2), &json!(3)));
        for at in 0..200 {
            let (id, mode) = (format!("b{at}"), Mode::ALL[at % 2]);
            store.show_agent_start(&s1, &start(&id, Some(mode), "x"), now().plus_ms(1)).expect("a write");
        }
        let missions = board(&store)["missions"].clone();
        assert_eq!(missions.as_array().map(Vec::len), Some(3));
        assert_eq!(missions[2]["agents"].as_array().map(Vec::len), Some(MAX_AGENTS));
        assert_eq!(missions[2]["timeline"].as_array().map(Vec::len), Some(MAX_STEPS));
        plant(&folder, "state/sessions/s1/mission-state.json", "{\"missions\": [");
        store.show_agent_start(&s1, &start("a1", None, "x"), now()).expect("begun anew");
        assert_eq!(board(&store)["missions"].as_array().map(Vec::len), Some(1));

        for at in 0..MAX_MISSIONS * MAX_AGENTS {
            let (long, mode) = ("가".repeat(5_000), Mode::ALL[at % MAX_MISSIONS]);
            let id = format!("{at}{long}");
            let start =
                AgentStart { id: &id, agent_type: &long, parent_mode: Some(mode), task: Some(&long), model: None };
            store.show_agent_start(&s1, &start, now()).expect("it fits");
        }
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
