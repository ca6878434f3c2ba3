//! The subagents of a session: `state/sessions/ID/subagent-tracking-state.json`, and a copy in `state/subagent-tracking.json`,
//! where the original has it; the copy is of the session that wrote last and names it.
//!
//! Agents start dozens at a time, and whoever writes these files must have the session's lock. A start or an end that cannot have
//! it in time is put off: it waits in a file of its own, and the next one that has the lock takes it in.

use std::path::PathBuf;

use serde_json::{Map, Value};

use crate::{
    Error, Fields, Locker, Mode, SessionId, Store, Timestamp, fingerprint, session_path, shared_path, truncate_units,
};

const FILE: &str = "subagent-tracking-state.json";
const SHARED_FILE: &str = "subagent-tracking.json";

/// How the name of a file begins in which a start or an end waits, followed by its time.
const WAITING: &str = "waiting-agent-";

/// Most files of a session's folder that are looked through for those that wait.
const MAX_LISTED: usize = 512;

/// Age from which an agent that runs is called stale, in milliseconds: 5 minutes, the original's number.
pub const STALE_AGENT_MS: i64 = 5 * 60 * 1000;

/// Age from which an agent that runs is taken for lost when another starts, in milliseconds: 30 minutes. One that ends after all is
/// counted right then.
const LOST_AGENT_MS: i64 = 30 * 60 * 1000;

/// Most agents that are kept after their end; the oldest go first.
const MAX_FINISHED: usize = 100;

/// Longest list of agents, in bytes: with it the file stays below the store's bound.
const MAX_LIST_BYTES: usize = 200 * 1024;

/// Longest id and type, in UTF-16 units.
const MAX_NAME_UNITS: usize = 128;
/// Longest task, in UTF-16 units with its dots: the original's 200.
const MAX_TASK_UNITS: usize = 203;
/// Longest summary, in UTF-16 units with its dots: the original's 500.
const MAX_SUMMARY_UNITS: usize = 503;

/// Type of an agent of which only the end was seen, and not even a type.
const UNTRACKED: &str = "untracked-native-fork";

/// Members that an agent has only after its end.
const RESULT: [&str; 6] =
    ["completed_at", "duration_ms", "output_summary", "synthetic", "telemetry_status", "telemetry_note"];

/// The subagents of one session.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Subagents {
    fields: Fields,
    agents: Vec<Fields>,
}

/// An agent that starts.
#[derive(Debug, Clone, Copy)]
pub struct AgentStart<'a> {
    /// Its id.
    pub id: &'a str,
    /// Its type, such as `omc:executor`.
    pub agent_type: &'a str,
    /// The mode the session is in.
    pub parent_mode: Option<Mode>,
    /// What it is to do.
    pub task: Option<&'a str>,
    /// Its model.
    pub model: Option<&'a str>,
}

/// An agent that ends.
#[derive(Debug, Clone, Copy)]
pub struct AgentStop<'a> {
    /// Its id.
    pub id: &'a str,
    /// Its type, where the event says it.
    pub agent_type: Option<&'a str>,
    /// Whether it reached its end.
    pub succeeded: bool,
    /// What it said last.
    pub summary: Option<&'a str>,
}

/// How many agents are in which state.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentCounts {
    /// At work.
    pub running: u64,
    /// Their types, without this plugin's prefix, each once. Text from a file: not to be shown as it is.
    pub running_types: Vec<String>,
    /// Ended well.
    pub completed: u64,
    /// Ended badly, or lost.
    pub failed: u64,
}

impl Subagents {
    fn new(mut fields: Fields) -> Self {
        let agents = match fields.remove("agents") {
            Some(Value::Array(agents)) => agents,
            _ => Vec::new(),
        };
        let agents = agents.into_iter().filter_map(|agent| match agent {
            Value::Object(agent) => Some(Fields::from(agent)),
            _ => None,
        });
        Self { fields, agents: agents.collect() }
    }

    /// How many agents are in which state.
    pub fn counts(&self) -> AgentCounts {
        let mut types: Vec<String> = Vec::new();
        for agent in self.agents.iter().filter(|agent| is_running(agent)) {
            let name = short_type(agent.text("agent_type").unwrap_or("unknown")).to_owned();
            if !types.contains(&name) {
                types.push(name);
            }
        }
        let is = |status| self.agents.iter().filter(|agent| agent.text("status") == Some(status)).count() as u64;
        AgentCounts {
            running: is("running"),
            running_types: types,
            completed: self.fields.count("total_completed").unwrap_or_else(|| is("completed")),
            failed: self.fields.count("total_failed").unwrap_or_else(|| is("failed")),
        }
    }

    /// Notes the start of an agent, and says whether it is a new one or one that was at its end.
    pub fn start(&mut self, start: &AgentStart<'_>, now: Timestamp) -> bool {
        self.give_up_older_than(LOST_AGENT_MS, now);
        let id = truncate_units(start.id, MAX_NAME_UNITS);
        let known = self.agents.iter_mut().find(|agent| agent.text("agent_id") == Some(&id));
        let starts = !known.as_deref().is_some_and(is_running);
        let agent = if let Some(agent) = known {
            agent
        } else {
            self.agents.push(Fields::default());
            self.agents.last_mut().expect("it was pushed")
        };
        agent.set("agent_id", id);
        agent.set("agent_type", truncate_units(start.agent_type, MAX_NAME_UNITS));
        if starts {
            agent.set_time("started_at", now);
            for name in RESULT {
                agent.remove(name);
            }
        }
        agent.set("parent_mode", start.parent_mode.map_or("none", Mode::name));
        if let Some(task) = start.task {
            agent.set("task_description", truncate_units(task, MAX_TASK_UNITS));
        }
        agent.set("status", "running");
        if let Some(model) = start.model {
            agent.set("model", truncate_units(model, MAX_NAME_UNITS));
        }
        if starts {
            self.add("total_spawned", 1);
        }
        starts
    }

    /// Notes the end of an agent, and says how long it worked, if anybody knows.
    ///
    /// An end that nobody started is that of the only running agent of the same type, if there is one; else it is kept as an
    /// entry of its own.
    pub fn stop(&mut self, stop: &AgentStop<'_>, now: Timestamp) -> Option<i64> {
        let id = truncate_units(stop.id, MAX_NAME_UNITS);
        let known = self.agents.iter().position(|agent| agent.text("agent_id") == Some(&id));
        let at = known.or_else(|| self.only_running(stop.agent_type?));
        if at.is_none() {
            self.give_up_older_than(STALE_AGENT_MS, now);
        }
        let at = at.unwrap_or_else(|| {
            let mut agent = Fields::default();
            agent.set("agent_id", id);
            agent.set("agent_type", truncate_units(stop.agent_type.unwrap_or(UNTRACKED), MAX_NAME_UNITS));
            agent.set_time("started_at", now);
            agent.set("parent_mode", "none");
            agent.set("synthetic", true);
            agent.set("telemetry_status", "unmatched_stop");
            agent.set("telemetry_note", "its start was not seen");
            self.agents.push(agent);
            self.agents.len() - 1
        });
        let agent = &mut self.agents[at];
        // An agent that was given up, or that ends twice, is counted by its last end.
        let before = agent.text("status").map(str::to_owned);
        let status = if stop.succeeded { "completed" } else { "failed" };
        agent.set("status", status);
        agent.set_time("completed_at", now);
        let worked =
            agent.time("started_at").filter(|_| !agent.flag("synthetic")).map(|start| now.ms_since(start).max(0));
        if let Some(worked) = worked {
            agent.set("duration_ms", worked);
        }
        if let Some(summary) = stop.summary.map(str::trim).filter(|summary| !summary.is_empty()) {
            agent.set("output_summary", truncate_units(summary, MAX_SUMMARY_UNITS));
        }
        match before.as_deref() {
            Some("completed") => self.add("total_completed", -1),
            Some("failed") => self.add("total_failed", -1),
            _ => {}
        }
        self.add(if stop.succeeded { "total_completed" } else { "total_failed" }, 1);
        worked
    }

    /// The running agent of that type, if there is exactly one.
    fn only_running(&self, agent_type: &str) -> Option<usize> {
        let same = |agent: &Fields| {
            agent.text("agent_type").is_some_and(|name| short_type(name) == short_type(agent_type.trim()))
        };
        let mut found = self.agents.iter().enumerate().filter(|(_, agent)| is_running(agent) && same(agent));
        let (at, _) = found.next()?;
        found.next().is_none().then_some(at)
    }

    /// Agents that have run for longer than that, or since nobody knows when, have failed.
    fn give_up_older_than(&mut self, age_ms: i64, now: Timestamp) {
        let mut lost = 0;
        for agent in self.agents.iter_mut().filter(|agent| is_running(agent)) {
            if !agent.time("started_at").is_some_and(|start| start.is_within(age_ms, now)) {
                agent.set("status", "failed");
                agent.set_time("completed_at", now);
                agent.set("output_summary", "no end was seen");
                lost += 1;
            }
        }
        self.add("total_failed", lost);
    }

    /// Takes in a start or an end that was put off.
    fn take_in(&mut self, waiting: &Fields) {
        let (Some(id), Some(time)) = (waiting.text("agent_id"), waiting.time("at")) else { return };
        let (agent_type, text) = (waiting.text("agent_type"), waiting.text("text"));
        if waiting.text("event") == Some("start") {
            // It may have been taken in before, by somebody who then died.
            let is_known = |agent: &Fields| {
                agent.text("agent_id") == Some(id) && agent.time("started_at").is_some_and(|start| start >= time)
            };
            if !self.agents.iter().any(is_known) {
                let parent_mode = waiting.text("parent_mode").and_then(Mode::from_name);
                let agent_type = agent_type.unwrap_or("unknown");
                self.start(&AgentStart { id, agent_type, parent_mode, task: text, model: waiting.text("model") }, time);
            }
        } else {
            self.stop(&AgentStop { id, agent_type, succeeded: waiting.flag("success"), summary: text }, time);
        }
    }

    fn add(&mut self, name: &str, number: i64) {
        let count = self.fields.count(name).unwrap_or(0).saturating_add_signed(number);
        self.fields.set(name, count);
    }

    /// The members, with the oldest agents left out if there are too many.
    fn into_fields(mut self, session: &SessionId, now: Timestamp) -> Fields {
        let ended_at = |agent: &Fields| agent.time("completed_at").map_or(0, Timestamp::epoch_ms);
        let mut ends: Vec<i64> = self.agents.iter().filter(|agent| !is_running(agent)).map(ended_at).collect();
        ends.sort_unstable();
        let mut surplus = ends.len().saturating_sub(MAX_FINISHED);
        if let Some(&last) = surplus.checked_sub(1).and_then(|last| ends.get(last)) {
            self.agents.retain(|agent| {
                let goes = surplus > 0 && !is_running(agent) && ended_at(agent) <= last;
                surplus -= usize::from(goes);
                !goes
            });
        }
        let size = |agent: &Fields| serde_json::to_string(agent).map_or(0, |text| text.len() * 5 / 4);
        let mut sizes: Vec<usize> = self.agents.iter().map(size).collect();
        let mut total: usize = sizes.iter().sum();
        while total > MAX_LIST_BYTES {
            let at = self.agents.iter().position(|agent| !is_running(agent)).unwrap_or(0);
            self.agents.remove(at);
            total -= sizes.remove(at);
        }
        let mut fields = Fields::default();
        fields.set("session_id", session.as_str());
        fields.set("agents", self.agents.into_iter().map(Map::from).map(Value::Object).collect::<Vec<_>>());
        for name in ["total_spawned", "total_completed", "total_failed"] {
            let count = self.fields.count(name).unwrap_or(0);
            fields.set(name, count);
        }
        for (name, value) in Map::from(self.fields) {
            if fields.get(&name).is_none() {
                fields.set(&name, value);
            }
        }
        fields.set_time("last_updated", now);
        fields
    }
}

fn is_running(agent: &Fields) -> bool {
    agent.text("status") == Some("running")
}

/// A type without this plugin's prefix.
pub fn short_type(agent_type: &str) -> &str {
    let stripped = agent_type.strip_prefix("oh-my-claudecode:").or_else(|| agent_type.strip_prefix("omc:"));
    stripped.unwrap_or(agent_type)
}

impl Store {
    /// The session's subagents; none if no file of the session can be read.
    pub fn read_subagents(&self, session: &SessionId) -> Subagents {
        let mut subagents = self.find_subagents(session).ok().flatten().map(Subagents::new).unwrap_or_default();
        for path in self.waiting_agents(session) {
            self.read_fields(&path).ok().flatten().iter().for_each(|waiting| subagents.take_in(waiting));
        }
        subagents
    }

    /// Puts off the start of a subagent, for want of the lock: the next one that has it takes it in.
    ///
    /// # Errors
    ///
    /// What keeps the file from being written.
    pub fn put_off_start(&self, session: &SessionId, start: &AgentStart<'_>, now: Timestamp) -> Result<(), Error> {
        let mut fields = Fields::default();
        fields.set("event", "start");
        fields.set("parent_mode", start.parent_mode.map_or("none", Mode::name));
        fields.set("model", start.model.map(|model| truncate_units(model, MAX_NAME_UNITS)));
        fields.set("text", start.task.map(|task| truncate_units(task, MAX_TASK_UNITS)));
        self.put_off(session, fields, start.id, Some(start.agent_type), now)
    }

    /// Puts off the end of a subagent likewise.
    ///
    /// # Errors
    ///
    /// What keeps the file from being written.
    pub fn put_off_stop(&self, session: &SessionId, stop: &AgentStop<'_>, now: Timestamp) -> Result<(), Error> {
        let mut fields = Fields::default();
        fields.set("event", "stop");
        fields.set("success", stop.succeeded);
        fields.set("text", stop.summary.map(|summary| truncate_units(summary, MAX_SUMMARY_UNITS)));
        self.put_off(session, fields, stop.id, stop.agent_type, now)
    }

    fn put_off(
        &self,
        session: &SessionId,
        mut fields: Fields,
        id: &str,
        agent_type: Option<&str>,
        now: Timestamp,
    ) -> Result<(), Error> {
        let id = truncate_units(id, MAX_NAME_UNITS);
        // Of the same moment, a start comes before an end.
        let event = fields.text("event").unwrap_or_default();
        let name = format!("{WAITING}{:014}-{event}-{}.json", now.epoch_ms().max(0), fingerprint(&id));
        fields.set("agent_id", id);
        fields.set("agent_type", agent_type.map(|name| truncate_units(name, MAX_NAME_UNITS)));
        fields.set_time("at", now);
        self.replace(&session_path(session, &name), &fields)
    }

    /// The files in which starts and ends wait, in the order in which these came.
    fn waiting_agents(&self, session: &SessionId) -> Vec<PathBuf> {
        let mut names = self.names(&session_path(session, ""), MAX_LISTED);
        names.retain(|name| name.starts_with(WAITING) && name.strip_suffix(".json").is_some());
        names.sort_unstable();
        names.iter().map(|name| session_path(session, name)).collect()
    }

    /// The session's own file, else the shared one if it names the session.
    fn find_subagents(&self, session: &SessionId) -> Result<Option<Fields>, Error> {
        if let Some(fields) = self.read_fields(&session_path(session, FILE))? {
            return Ok(Some(fields));
        }
        let shared = self.read_fields(&shared_path(SHARED_FILE)).ok().flatten();
        Ok(shared.filter(|fields| fields.belongs_to(session)))
    }

    /// Changes the session's subagents, and runs what else is to be done under the same lock.
    ///
    /// # Errors
    ///
    /// What keeps the files from being locked, read or written. A corrupt file is set aside and begun anew.
    pub fn change_subagents<L: Locker, T>(
        &self,
        locker: &L,
        session: &SessionId,
        now: Timestamp,
        change: impl FnOnce(&mut Subagents, &Self) -> T,
    ) -> Result<T, Error> {
        self.locked(locker, session, |store| {
            let fields = match store.find_subagents(session) {
                Ok(fields) => fields.unwrap_or_default(),
                Err(Error::Corrupt { .. } | Error::TooLarge { .. }) => Fields::default(),
                Err(error) => return Err(error),
            };
            let mut subagents = Subagents::new(fields);
            let waiting = store.waiting_agents(session);
            for path in &waiting {
                store.read_fields(path).ok().flatten().iter().for_each(|waiting| subagents.take_in(waiting));
            }
            let result = change(&mut subagents, store);
            let fields = subagents.into_fields(session, now);
            store.replace(&session_path(session, FILE), &fields)?;
            // Now they are kept. One that cannot be removed is known when it is taken in again.
            let removed = waiting.iter().try_for_each(|path| store.remove(path));
            store.replace(&shared_path(SHARED_FILE), &fields)?;
            removed.map(|()| result)
        })
    }

    /// The mode that the session is in, as its subagents are told: the first that is on and was touched lately.
    pub fn parent_mode(&self, session: &SessionId, now: Timestamp) -> Option<Mode> {
        let modes = [Mode::Autopilot, Mode::Ultrawork, Mode::Ralph, Mode::Team];
        let is_on = |mode: &Mode| self.read_mode(session, *mode).ok().flatten().is_some_and(|state| state.is_live(now));
        modes.into_iter().find(is_on)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        lock::testing::ThreadLocker,
        testing::{ago, now, plant, session, store},
    };
    use serde_json::json;
    use std::{fs, thread};
    use tempfile::TempDir;

    const OWN: &str = "state/sessions/s1/subagent-tracking-state.json";
    const SHARED: &str = "state/subagent-tracking.json";

    fn read(folder: &TempDir, path: &str) -> Value {
        serde_json::from_str(&fs::read_to_string(folder.path().join(path)).expect("a file")).expect("JSON")
    }

    fn begin<'a>(id: &'a str, agent_type: &'a str) -> AgentStart<'a> {
        AgentStart { id, agent_type, parent_mode: None, task: None, model: None }
    }

    fn end<'a>(id: &'a str, agent_type: Option<&'a str>) -> AgentStop<'a> {
        AgentStop { id, agent_type, succeeded: true, summary: None }
    }

    fn agent(id: &str, agent_type: &str, status: &str, age: i64) -> Value {
        json!({"agent_id": id, "agent_type": agent_type, "status": status, "started_at": ago(age)})
    }

    fn of(agents: &Value) -> Subagents {
        let fields = json!({"agents": agents, "total_spawned": 9, "total_completed": 1, "total_failed": 0});
        Subagents::new(crate::testing::fields(fields))
    }

    fn status(subagents: &Subagents, id: &str) -> Option<String> {
        let found = subagents.agents.iter().find(|agent| agent.text("agent_id") == Some(id))?;
        found.text("status").map(str::to_owned)
    }

    #[test]
    fn one_life_of_an_agent_is_in_both_files() {
        let (folder, store) = store();
        let (s1, locks) = (session("s1"), &ThreadLocker::default());
        let task = "p".repeat(300);
        let start = AgentStart {
            parent_mode: Some(Mode::Ralph),
            task: Some(&task),
            model: Some("sonnet"),
            ..begin("a1", "omc:executor")
        };
        assert!(store.change_subagents(&locks, &s1, now(), |all, _| all.start(&start, now())).expect("a write"));
        assert!(!store.change_subagents(&locks, &s1, now(), |all, _| all.start(&start, now())).expect("a write"));
        let file = read(&folder, OWN);
        assert_eq!(file, read(&folder, SHARED));
        assert_eq!(
            file,
            json!({
                "session_id": "s1",
                "agents": [{
                    "agent_id": "a1", "agent_type": "omc:executor", "started_at": now().to_string(), "parent_mode": "ralph",
                    "task_description": format!("{}...", &task[..200]), "status": "running", "model": "sonnet",
                }],
                "total_spawned": 1, "total_completed": 0, "total_failed": 0, "last_updated": now().to_string(),
            })
        );

        let later = now().plus_ms(1_500);
        let stop = AgentStop { summary: Some(" found it "), ..end("a1", None) };
        let worked = store.change_subagents(&locks, &s1, later, |all, _| all.stop(&stop, later)).expect("a write");
        assert_eq!(worked, Some(1_500));
        let file = read(&folder, SHARED);
        assert_eq!(
            (&file["total_completed"], &file["agents"][0]["status"], &file["agents"][0]["output_summary"]),
            (&json!(1), &json!("completed"), &json!("found it"))
        );

        assert!(store.change_subagents(&locks, &s1, later, |all, _| all.start(&start, later)).expect("a write"));
        let file = read(&folder, OWN);
        assert_eq!((&file["total_spawned"], &file["agents"][0]["completed_at"]), (&json!(2), &Value::Null));
        assert_eq!(store.read_subagents(&s1).counts().running, 1);
        assert_eq!(store.read_subagents(&session("s2")).counts(), AgentCounts::default());
    }

    #[test]
    fn thirty_two_starts_and_stops_at_once_lose_nothing() {
        let (_folder, store) = store();
        let (s1, locks) = (session("s1"), ThreadLocker::default());
        let each = |change: &(dyn Fn(&mut Subagents, &str) -> bool + Sync)| {
            thread::scope(|scope| {
                for n in 0..32 {
                    let (store, s1, locks) = (&store, &s1, &locks);
                    scope.spawn(move || {
                        let id = format!("agent-{n}");
                        store.change_subagents(&locks, s1, now(), |all, _| change(all, &id)).expect("a write");
                    });
                }
            });
            let counts = store.read_subagents(&s1).counts();
            (counts.running, counts.completed)
        };
        assert_eq!(each(&|all, id| all.start(&begin(id, "Explore"), now())), (32, 0));
        assert_eq!(each(&|all, id| all.stop(&end(id, None), now()).is_some()), (0, 32));
    }

    #[test]
    fn an_end_that_nobody_started_closes_the_only_agent_of_its_type_or_none() {
        const MINUTE: i64 = 60_000;
        for (agents, stop, closed, synthetic) in [
            (json!([agent("e1", "Explore", "running", MINUTE)]), end("x", Some("Explore")), vec!["e1"], false),
            (json!([agent("e1", "omc:executor", "running", MINUTE)]), end("x", Some("executor")), vec!["e1"], false),
            (json!([agent("e1", "Explore", "running", MINUTE)]), end("x", None), vec![], true),
            (json!([agent("e1", "Explore", "running", MINUTE)]), end("x", Some("Plan")), vec![], true),
            (
                json!([agent("e1", "Explore", "running", MINUTE), agent("e2", "Explore", "running", MINUTE)]),
                end("x", Some("Explore")),
                vec![],
                true,
            ),
        ] {
            let mut all = of(&agents);
            all.stop(&stop, now());
            let completed: Vec<_> =
                ["e1", "e2"].into_iter().filter(|id| status(&all, id).as_deref() == Some("completed")).collect();
            assert_eq!(completed, closed, "{agents}");
            assert_eq!(status(&all, "x").is_some(), synthetic, "{agents}");
            assert_eq!(all.fields.count("total_completed"), Some(2));
        }
    }

    #[test]
    fn who_is_lost_has_failed_until_it_ends_after_all() {
        let mut all =
            of(&json!([agent("old", "x", "running", STALE_AGENT_MS + 1), agent("new", "x", "running", 1_000)]));
        all.stop(&end("zzz", None), now());
        assert_eq!((status(&all, "old").as_deref(), status(&all, "new").as_deref()), (Some("failed"), Some("running")));
        all.stop(&end("old", None), now());
        let counts = all.counts();
        assert_eq!((counts.running, counts.completed, counts.failed), (1, 3, 0));

        let mut all = of(&json!([
            agent("lost", "x", "running", LOST_AGENT_MS + 1),
            agent("slow", "x", "running", LOST_AGENT_MS - 1)
        ]));
        all.start(&begin("a", "x"), now());
        assert_eq!(
            (status(&all, "lost").as_deref(), status(&all, "slow").as_deref()),
            (Some("failed"), Some("running"))
        );
    }

    #[test]
    fn the_file_is_bounded_however_many_agents_there_are() {
        let (folder, store) = store();
        let (s1, locks) = (session("s1"), &ThreadLocker::default());
        let long = "말".repeat(2_000);
        for finished in [true, false] {
            store
                .change_subagents(&locks, &s1, now(), |all, _| {
                    for n in 0..2_000 {
                        let id = format!("{finished}-{n}");
                        all.start(&AgentStart { task: Some(&long), ..begin(&id, &long) }, now());
                        if finished {
                            all.stop(&AgentStop { summary: Some(&long), ..end(&id, None) }, now().plus_ms(n));
                        }
                    }
                })
                .expect("it fits");
            let file = read(&folder, OWN);
            let agents = file["agents"].as_array().expect("agents");
            assert!(agents.len() > 20, "{}", agents.len());
            assert!(fs::metadata(folder.path().join(OWN)).expect("a file").len() < crate::MAX_FILE_BYTES);
            let newest = format!("{finished}-1999");
            assert!(agents.iter().any(|agent| agent["agent_id"] == newest), "the newest is kept");
        }
        assert_eq!(read(&folder, OWN)["total_spawned"], 4_000);
    }

    #[test]
    fn files_of_any_content_are_read_without_harm() {
        for content in [
            "{",
            "[]",
            "{\"agents\": 7}",
            "{\"agents\": [7, null, {}]}",
            "{\"agents\": [{\"status\": \"running\", \"agent_id\": 7}], \"total_spawned\": \"x\"}",
        ] {
            let (folder, store) = store();
            plant(&folder, OWN, content);
            let s1 = session("s1");
            store
                .change_subagents(&&ThreadLocker::default(), &s1, now(), |all, _| all.start(&begin("a1", "x"), now()))
                .expect("a write");
            assert_eq!(store.read_subagents(&s1).counts().running, 1, "{content}");
        }
    }

    #[test]
    fn what_cannot_have_the_lock_waits_and_is_taken_in_by_the_next() {
        let (folder, store) = store();
        let s1 = session("s1");
        let locks = ThreadLocker::default();
        for at in 0..40 {
            store.put_off_start(&s1, &begin(&format!("a{at}"), "omc:executor"), now().plus_ms(at)).expect("a write");
        }
        let end = AgentStop { id: "a7", agent_type: Some("omc:executor"), succeeded: false, summary: Some("no") };
        store.put_off_stop(&s1, &end, now().plus_ms(100)).expect("a write");
        let seen = |store: &Store| {
            let counts = store.read_subagents(&s1).counts();
            (counts.running, counts.failed)
        };
        assert_eq!(seen(&store), (39, 1), "who only reads sees them too");
        let later = now().plus_ms(200);
        store.change_subagents(&&locks, &s1, later, |all, _| all.start(&begin("b", "x"), later)).expect("a write");
        assert_eq!(seen(&store), (40, 1));
        let names: Vec<_> = std::fs::read_dir(folder.path().join("state/sessions/s1")).expect("a folder").collect();
        assert_eq!(names.len(), 1, "{names:?}");
        // Somebody died after he had taken it in.
        store.put_off_start(&s1, &begin("a3", "omc:executor"), now().plus_ms(3)).expect("a write");
        plant(&folder, "state/sessions/s1/waiting-agent-x.json", "{");
        store.change_subagents(&&locks, &s1, later, |_, _| ()).expect("a write");
        assert_eq!(seen(&store), (40, 1));
    }

    #[test]
    fn the_parents_mode_is_the_sessions_own_and_fresh() {
        let (folder, store) = store();
        let state =
            |session: &str, age| json!({"active": true, "session_id": session, "started_at": ago(age)}).to_string();
        plant(&folder, "state/sessions/s1/ralph-state.json", state("s1", 1_000));
        plant(&folder, "state/sessions/s1/autopilot-state.json", state("s1", 3 * 60 * 60 * 1000));
        plant(&folder, "state/ultrawork-state.json", state("s2", 1_000));
        assert_eq!(store.parent_mode(&session("s1"), now()), Some(Mode::Ralph));
        assert_eq!(store.parent_mode(&session("s2"), now()), Some(Mode::Ultrawork));
        assert_eq!(store.parent_mode(&session("s3"), now()), None);
    }
}
