//! The ledger of skills, `skill-active-state.json`: which modes have completed, and which other skill is at work.
//!
//! In its second version the ledger has a slot for every workflow skill under `active_skills`; a slot with `completed_at` is
//! a tombstone. A skill that is no mode stands under `support_skill`. The first version is a flat object of such a skill and
//! has no tombstones. The file lies in the session's folder; the skill at work is also written to `state/`, where older readers
//! look for it.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::{
    Error, Fields, Mode, ModeState, SessionId, Store, Timestamp, mode::own_skill_name, session_path, shared_path,
};

/// How long a tombstone hides the state of its mode, in milliseconds: 24 hours, the original's rule.
const TOMBSTONE_MS: i64 = 24 * 60 * 60 * 1000;

const FILE: &str = "skill-active-state.json";

const MINUTE_MS: i64 = 60 * 1000;

/// How far a skill that is no mode holds the agent: the original's three levels.
struct Protection {
    /// Refusals after which it lets go.
    max_refusals: u64,
    /// Age in milliseconds from which it is forgotten.
    life_ms: i64,
    /// The skills that have this level. Modes have rules of their own; every other skill holds nobody.
    skills: &'static [&'static str],
}

const LIGHT: Protection =
    Protection { max_refusals: 3, life_ms: 5 * MINUTE_MS, skills: &["skill", "ask", "configure-notifications"] };
const MEDIUM: Protection = Protection {
    max_refusals: 5,
    life_ms: 15 * MINUTE_MS,
    skills: &[
        "omc-plan",
        "plan",
        "review",
        "external-context",
        "ai-slop-cleaner",
        "sciomc",
        "skillify",
        "learner",
        "omc-setup",
        "setup",
        "mcp-setup",
        "project-session-manager",
        "psm",
        "writer-memory",
        "ralph-init",
        "release",
        "ccg",
    ],
};
const HEAVY: Protection =
    Protection { max_refusals: 10, life_ms: 30 * MINUTE_MS, skills: &["deep-interview", "deepinit"] };

impl Protection {
    fn of(skill: &str) -> Option<Self> {
        [LIGHT, MEDIUM, HEAVY].into_iter().find(|level| level.skills.contains(&skill))
    }
}

/// A skill that is no mode and that is at work.
#[derive(Debug, Clone, PartialEq)]
pub struct ActiveSkill {
    fields: Fields,
}

impl ActiveSkill {
    /// The skill that starts now, if `name` (as a tool or a command spells it) is one of this plugin that is protected.
    pub fn start(name: &str, session: &SessionId, now: Timestamp) -> Option<Self> {
        let name = own_skill_name(name)?;
        let level = Protection::of(&name)?;
        let mut fields = Fields::default();
        fields.set("active", true);
        fields.set("skill_name", name);
        fields.set("session_id", session.as_str());
        fields.set_time("started_at", now);
        fields.set_time("last_checked_at", now);
        fields.set("reinforcement_count", 0);
        fields.set("max_reinforcements", level.max_refusals);
        fields.set("stale_ttl_ms", level.life_ms);
        let about = json!({"written_at": now.to_string(), "mode": "skill-active", "sessionId": session.as_str()});
        fields.set("_meta", about);
        Some(Self { fields })
    }

    /// The name, without a prefix. Text from a file: not to be shown as it is.
    pub fn name(&self) -> &str {
        self.fields.text("skill_name").unwrap_or_default()
    }

    /// When it started.
    pub fn started_at(&self) -> Option<Timestamp> {
        self.fields.time("started_at")
    }

    /// How often it held the agent.
    pub fn refusals(&self) -> u64 {
        self.fields.count("reinforcement_count").unwrap_or(0)
    }

    /// How often it may: what the file says, the heaviest level at most.
    pub fn max_refusals(&self) -> u64 {
        self.fields.count("max_reinforcements").unwrap_or(LIGHT.max_refusals).min(HEAVY.max_refusals)
    }

    /// Whether it was forgotten: nobody touched it for its time, or nobody knows when.
    pub fn is_stale(&self, now: Timestamp) -> bool {
        let life = self.fields.count("stale_ttl_ms").and_then(|life| i64::try_from(life).ok());
        let life = life.unwrap_or(LIGHT.life_ms).min(HEAVY.life_ms);
        let newest = ["last_checked_at", "started_at"].iter().filter_map(|name| self.fields.time(name)).max();
        !newest.is_some_and(|time| time.is_within(life, now))
    }

    /// It holds the agent once more.
    pub fn count_refusal(&mut self, now: Timestamp) {
        self.fields.set("reinforcement_count", self.refusals().saturating_add(1));
        self.fields.set_time("last_checked_at", now);
    }
}

/// The skills of one session.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SkillLedger {
    fields: Fields,
    active: Option<ActiveSkill>,
}

impl SkillLedger {
    /// A ledger with these members, of which the skill at work counts if it names the session.
    pub fn new(fields: Fields, session: &SessionId) -> Self {
        let active = active_skill(&fields, session);
        Self { fields, active }
    }

    /// The skill at work that is no mode, stale or not.
    pub fn active(&self) -> Option<&ActiveSkill> {
        self.active.as_ref()
    }

    /// Whether the mode has a tombstone that counts: for 24 hours; one whose time cannot be read counts, because it was set.
    ///
    /// Whoever starts the mode anew takes it away, but for the original's keywords.
    pub fn has_tombstone(&self, mode: Mode, now: Timestamp) -> bool {
        self.tombstone(mode).is_some_and(|slot| {
            slot.time("completed_at").is_none_or(|completed| now.ms_since(completed) <= TOMBSTONE_MS)
        })
    }

    /// Whether the mode has completed, so that what is left of its state does not count. A run that started after the
    /// tombstone was set is a new one.
    pub fn has_completed(&self, mode: Mode, state: &ModeState, now: Timestamp) -> bool {
        let is_after =
            |completed| state.started_at().is_some_and(|started| started > completed && !started.is_future(now));
        let completed = self.tombstone(mode).and_then(|slot| slot.time("completed_at"));
        self.has_tombstone(mode, now) && !completed.is_some_and(is_after)
    }

    /// The mode's slot, if it says that the mode has completed.
    fn tombstone(&self, mode: Mode) -> Option<Fields> {
        let slot = self.fields.get("active_skills")?.get(mode.name())?.as_object()?;
        let is_set = !matches!(slot.get("completed_at")?, Value::Null | Value::Bool(false));
        is_set.then(|| Fields::from(slot.clone()))
    }
}

/// Whether these are the members of the second version.
fn has_slots(fields: &Fields) -> bool {
    fields.get("active_skills").is_some() || fields.get("support_skill").is_some()
}

/// The session's skill at work, in either version.
fn active_skill(fields: &Fields, session: &SessionId) -> Option<ActiveSkill> {
    let fields = if has_slots(fields) {
        Fields::from(fields.get("support_skill")?.as_object()?.clone())
    } else {
        fields.clone()
    };
    let counts = fields.flag("active") && fields.text("skill_name").is_some() && fields.belongs_to(session);
    counts.then_some(ActiveSkill { fields })
}

/// Where the skill at work is written: the session's folder, and the place that the sessions share.
fn paths(session: &SessionId) -> [PathBuf; 2] {
    [session_path(session, FILE), shared_path(FILE)]
}

impl Store {
    /// The session's ledger; empty if there is none that can be read.
    ///
    /// A skill that only the shared file knows counts where that file names the session.
    pub fn read_skills(&self, session: &SessionId) -> SkillLedger {
        let read = |path: &Path| self.read_fields(path).ok().flatten();
        let [own, shared] = paths(session);
        match read(&own) {
            Some(fields) => SkillLedger::new(fields, session),
            None => SkillLedger {
                active: read(&shared).and_then(|fields| active_skill(&fields, session)),
                ..SkillLedger::default()
            },
        }
    }

    /// Notes that the skill is at work, in the session's folder and in the shared place. For use under the session's lock.
    ///
    /// # Errors
    ///
    /// The first file that could not be written, after both have been tried.
    pub fn start_skill(&self, session: &SessionId, skill: &ActiveSkill) -> Result<(), Error> {
        let [own, shared] = paths(session).map(|path| self.put_skill(&path, skill));
        own.and(shared)
    }

    /// Writes the session's skill at work wherever it is noted, and nowhere else: what somebody removed stays away. For use
    /// under the session's lock.
    ///
    /// # Errors
    ///
    /// The first file that could not be written, after both have been tried.
    pub fn update_skill(&self, session: &SessionId, skill: &ActiveSkill) -> Result<(), Error> {
        let [own, shared] = paths(session).map(|path| {
            let noted = self.read_fields(&path).ok().flatten().and_then(|fields| active_skill(&fields, session));
            if noted.is_some() { self.put_skill(&path, skill) } else { Ok(()) }
        });
        own.and(shared)
    }

    fn put_skill(&self, path: &Path, skill: &ActiveSkill) -> Result<(), Error> {
        match self.read_fields(path).ok().flatten().filter(has_slots) {
            Some(mut ledger) => {
                ledger.set("support_skill", Value::Object(skill.fields.clone().into()));
                self.replace(path, &ledger)
            }
            None => self.replace(path, &skill.fields),
        }
    }

    /// Forgets the session's skill at work; tombstones and other sessions' skills stay. For use under the session's lock.
    ///
    /// # Errors
    ///
    /// The first file that could not be changed, after both have been tried.
    pub fn end_active_skill(&self, session: &SessionId) -> Result<(), Error> {
        let end = |path: &Path| {
            let Some(mut ledger) = self.read_fields(path)? else { return Ok(()) };
            if active_skill(&ledger, session).is_none() {
                return Ok(());
            }
            if !has_slots(&ledger) {
                return self.remove(path);
            }
            ledger.set("support_skill", Value::Null);
            self.replace_ledger(path, &ledger)
        };
        let [own, shared] = paths(session).map(|path| end(&path));
        own.and(shared)
    }

    /// Forgets that the mode has completed: it starts anew. For use under the session's lock.
    ///
    /// # Errors
    ///
    /// What keeps the ledger from being read or written.
    pub fn clear_tombstone(&self, session: &SessionId, mode: Mode) -> Result<(), Error> {
        let path = session_path(session, FILE);
        let Some(mut fields) = self.read_fields(&path)? else { return Ok(()) };
        let Some(slots) = fields.get_mut("active_skills").and_then(Value::as_object_mut) else { return Ok(()) };
        let completed = |slot: &Value| slot.get("completed_at").is_some_and(|time| !time.is_null());
        if !slots.get(mode.name()).is_some_and(completed) {
            return Ok(());
        }
        slots.shift_remove(mode.name());
        self.replace_ledger(&path, &fields)
    }

    /// Writes a ledger of the second version; one that is empty is removed, as the original does.
    fn replace_ledger(&self, path: &Path, ledger: &Fields) -> Result<(), Error> {
        let has_slot = ledger.get("active_skills").and_then(Value::as_object).is_some_and(|slots| !slots.is_empty());
        let has_support = ledger.get("support_skill").is_some_and(|skill| !skill.is_null());
        if has_slot || has_support { self.replace(path, ledger) } else { self.remove(path) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{ago, fields, now, plant, session, state, store};
    use serde_json::json;

    const HOUR: i64 = 60 * 60 * 1000;
    const OWN: &str = "state/sessions/s1/skill-active-state.json";
    const SHARED: &str = "state/skill-active-state.json";

    fn ledger_of(value: Value) -> SkillLedger {
        SkillLedger::new(fields(value), &session("s1"))
    }

    fn skill(over: &Value) -> Value {
        let mut skill = json!({
            "active": true, "skill_name": "plan", "session_id": "s1", "started_at": ago(HOUR), "last_checked_at": ago(60_000),
            "reinforcement_count": 2, "max_reinforcements": 5, "stale_ttl_ms": 900_000,
        });
        for (name, value) in over.as_object().expect("an object") {
            skill[name] = value.clone();
        }
        skill
    }

    #[test]
    fn a_tombstone_hides_its_mode_for_a_day() {
        let run = state(json!({"started_at": ago(30 * HOUR)}));
        for (completed_at, hidden) in [
            (json!(ago(100_000)), true),
            (json!(ago(24 * HOUR)), true),
            (json!(ago(25 * HOUR)), false),
            (json!("garbage"), true),
            (json!(null), false),
        ] {
            let ledger = ledger_of(json!({"active_skills": {"ralph": {"completed_at": completed_at}}}));
            assert_eq!(ledger.has_completed(Mode::Ralph, &run, now()), hidden, "{completed_at}");
            assert!(!ledger.has_completed(Mode::Autopilot, &run, now()));
        }
        for ledger in [json!({}), json!({"active_skills": []}), json!({"active_skills": {"ralph": "x"}})] {
            assert!(!ledger_of(ledger).has_completed(Mode::Ralph, &run, now()));
        }
    }

    #[test]
    fn a_run_that_started_after_the_end_is_a_new_one() {
        let ledger = ledger_of(json!({"active_skills": {"ralph": {"completed_at": ago(HOUR)}}}));
        for (started, hidden) in [(2 * HOUR, true), (HOUR / 2, false), (-HOUR, true)] {
            let run = state(json!({"started_at": ago(started)}));
            assert_eq!(ledger.has_completed(Mode::Ralph, &run, now()), hidden, "started {started} ms ago");
            assert!(ledger.has_tombstone(Mode::Ralph, now()), "it is there all the same");
        }
        assert!(ledger.has_completed(Mode::Ralph, &state(json!({})), now()));
    }

    #[test]
    fn clearing_a_tombstone_leaves_the_rest_of_the_ledger() {
        let (folder, store) = store();
        let s1 = session("s1");
        store.clear_tombstone(&s1, Mode::Ralph).expect("no ledger");
        let done = json!({"completed_at": ago(1)});
        let ledger = json!({"version": 2, "active_skills": {"ralph": done, "autopilot": {"completed_at": null}}});
        plant(&folder, "state/sessions/s1/skill-active-state.json", ledger.to_string());
        store.clear_tombstone(&s1, Mode::Autopilot).expect("it has not completed");
        assert_eq!(store.read_skills(&s1), ledger_of(ledger));
        store.clear_tombstone(&s1, Mode::Ralph).expect("a write");
        let left = json!({"version": 2, "active_skills": {"autopilot": {"completed_at": null}}});
        assert_eq!(store.read_skills(&s1), ledger_of(left));

        plant(
            &folder,
            "state/sessions/s1/skill-active-state.json",
            json!({"active_skills": {"ralph": done}}).to_string(),
        );
        store.clear_tombstone(&s1, Mode::Ralph).expect("removed");
        assert!(
            !folder.path().join("state/sessions/s1/skill-active-state.json").exists(),
            "an empty ledger is removed"
        );
    }

    #[test]
    fn skills_of_this_plugin_are_protected_by_their_level() {
        for (name, level) in [
            ("oh-my-claudecode:ask", Some((3, 300_000))),
            ("omc:plan", Some((5, 900_000))),
            ("/omc:plan", Some((5, 900_000))),
            ("oh-my-claudecode:Deep-Interview", Some((10, 1_800_000))),
            ("omc:deepinit", Some((10, 1_800_000))),
            ("omc:ralph", None),
            ("omc:cancel", None),
            ("omc:trace", None),
            ("plan", None),
            ("other:plan", None),
            ("omc:", None),
        ] {
            let started = ActiveSkill::start(name, &session("s1"), now()).map(|skill| {
                assert!(!skill.is_stale(now()) && skill.refusals() == 0, "{name}");
                (skill.max_refusals(), skill.fields.count("stale_ttl_ms").expect("a time"))
            });
            assert_eq!(started, level, "{name}");
        }
    }

    #[test]
    fn only_the_sessions_own_skill_is_at_work() {
        let slots = |skill: Value| json!({"version": 2, "active_skills": {}, "support_skill": skill});
        for (path, value, found) in [
            (OWN, skill(&json!({})), true),
            (OWN, slots(skill(&json!({}))), true),
            (SHARED, skill(&json!({})), true),
            (SHARED, slots(skill(&json!({}))), true),
            (OWN, skill(&json!({"session_id": "s2"})), false),
            (OWN, skill(&json!({"session_id": null})), false),
            (SHARED, skill(&json!({"session_id": "s2"})), false),
            (SHARED, slots(skill(&json!({"session_id": ""}))), false),
            (OWN, skill(&json!({"active": false})), false),
            (OWN, skill(&json!({"active": "true"})), false),
            (OWN, skill(&json!({"skill_name": 7})), false),
            (OWN, slots(json!("plan")), false),
            (OWN, slots(json!(null)), false),
        ] {
            let (folder, store) = store();
            plant(&folder, path, value.to_string());
            assert_eq!(store.read_skills(&session("s1")).active().is_some(), found, "{path}: {value}");
        }
    }

    #[test]
    fn numbers_of_a_file_are_bounded_and_repaired() {
        for (over, limit, stale) in [
            (json!({}), 5, false),
            (json!({"max_reinforcements": 1_000_000, "stale_ttl_ms": u64::MAX}), 10, false),
            (json!({"max_reinforcements": "4", "stale_ttl_ms": 59_000}), 4, true),
            (json!({"max_reinforcements": [], "stale_ttl_ms": null}), 3, false),
            (json!({"last_checked_at": ago(HOUR)}), 5, true),
            (json!({"last_checked_at": ago(-HOUR)}), 5, true),
            (json!({"last_checked_at": "now", "started_at": null}), 5, true),
        ] {
            let ledger = ledger_of(skill(&over));
            let active = ledger.active().expect("at work");
            assert_eq!((active.max_refusals(), active.is_stale(now())), (limit, stale), "{over}");
        }
    }

    #[test]
    fn a_skill_at_work_is_written_twice_and_forgotten_without_its_neighbours() {
        let (folder, store) = store();
        let (s1, s2) = (session("s1"), session("s2"));
        let mut plan = ActiveSkill::start("omc:plan", &s1, now()).expect("protected");
        store.update_skill(&s1, &plan).expect("nothing to update");
        assert!(!folder.path().join("state").exists());
        store.start_skill(&s1, &plan).expect("writes");
        plan.count_refusal(now());
        store.update_skill(&s1, &plan).expect("writes");
        for path in [OWN, SHARED] {
            let text = std::fs::read_to_string(folder.path().join(path)).expect("a file");
            assert_eq!(serde_json::from_str::<Value>(&text).expect("JSON")["reinforcement_count"], 1, "{path}");
        }
        // Another session's skill takes the shared place.
        let other = ActiveSkill::start("omc:review", &s2, now()).expect("protected");
        store.start_skill(&s2, &other).expect("writes");
        store.end_active_skill(&s1).expect("forgotten");
        assert!(!folder.path().join(OWN).exists() && folder.path().join(SHARED).exists());
        store.end_active_skill(&s2).expect("forgotten");
        assert!(!folder.path().join(SHARED).exists());
        store.end_active_skill(&s2).expect("nothing to forget");
    }

    #[test]
    fn tombstones_survive_a_skill_that_comes_and_goes() {
        let (folder, store) = store();
        let s1 = session("s1");
        plant(&folder, OWN, json!({"version": 2, "active_skills": {"ralph": {"completed_at": ago(1)}}}).to_string());
        store.start_skill(&s1, &ActiveSkill::start("omc:plan", &s1, now()).expect("protected")).expect("writes");
        let run = state(json!({"started_at": ago(HOUR)}));
        let both = store.read_skills(&s1);
        assert!(both.has_completed(Mode::Ralph, &run, now()) && both.active().is_some());
        store.end_active_skill(&s1).expect("forgotten");
        let left = store.read_skills(&s1);
        assert!(left.has_completed(Mode::Ralph, &run, now()) && left.active().is_none());
    }
}
