//! Checkpoints, `state/checkpoints/checkpoint-TIME.json` and `wisdom-TIME.md`: what was going on when a conversation was compacted.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::{Area, Error, Fields, Locker, Mode, ModeState, SessionId, Store, Timestamp, Todos, truncate_units};

/// Age below which a checkpoint of the same session is as good as a new one, in milliseconds: compactions that were started
/// side by side.
const RECENT_MS: i64 = 2_000;

/// Longest prompt that a checkpoint keeps, in UTF-16 units: what a state keeps of it.
const MAX_PROMPT_UNITS: usize = 500;

/// Most checkpoints that are looked through for one of a session: what clean-up leaves, and a few that it has not seen yet.
const MAX_LISTED: usize = 64;

const FOLDER: &str = "state/checkpoints";
const BEFORE: &str = "checkpoint-";
const AFTER: &str = ".json";

/// What a checkpoint is made from.
#[derive(Debug, Clone, Copy)]
pub struct NewCheckpoint<'a> {
    /// Whose conversation it is.
    pub session: &'a SessionId,
    /// What started the compaction: `manual` or `auto`.
    pub trigger: Option<&'a str>,
    /// The session's modes that are on.
    pub modes: &'a [(Mode, ModeState)],
    /// The project's to-do lists.
    pub todos: Todos,
    /// What plans have noted.
    pub wisdom: Option<&'a str>,
    /// The time.
    pub now: Timestamp,
}

/// What was written.
#[derive(Debug, Clone, PartialEq)]
pub struct Checkpoint {
    fields: Fields,
    name_time: String,
}

impl Checkpoint {
    /// The members.
    pub fn fields(&self) -> &Fields {
        &self.fields
    }

    /// The to-do lists of that moment.
    pub fn todos(&self) -> Todos {
        let summary = self.fields.get("todo_summary").and_then(Value::as_object).cloned().unwrap_or_default();
        let summary = Fields::from(summary);
        let count = |name| summary.count(name).unwrap_or(0);
        Todos { pending: count("pending"), in_progress: count("in_progress"), completed: count("completed") }
    }

    /// Where plan wisdom of that moment lies below `.omc`, if there was some.
    pub fn wisdom_path(&self) -> Option<String> {
        self.fields.flag("wisdom_exported").then(|| wisdom_path(&self.name_time).to_string_lossy().into_owned())
    }
}

fn checkpoint_path(time: &str) -> PathBuf {
    Path::new(FOLDER).join(format!("{BEFORE}{time}{AFTER}"))
}

fn wisdom_path(time: &str) -> PathBuf {
    Path::new(FOLDER).join(format!("wisdom-{time}.md"))
}

/// What a checkpoint keeps of a mode: the members of the original for those that it knew.
fn mode_summary(mode: Mode, state: &ModeState) -> Value {
    let fields = state.fields();
    let prompt = truncate_units(state.prompt().or(fields.text("originalPrompt")).unwrap_or_default(), MAX_PROMPT_UNITS);
    let phase = state.phase().map(|phase| truncate_units(phase, MAX_PROMPT_UNITS));
    let mut summary = match mode {
        Mode::Autopilot => {
            let idea = fields.text("originalIdea").map_or(prompt, |idea| truncate_units(idea, MAX_PROMPT_UNITS));
            return json!({"phase": phase.unwrap_or_else(|| "unknown".to_owned()), "originalIdea": idea});
        }
        Mode::Ralph => {
            let mut summary = json!({"iteration": fields.count("iteration").unwrap_or(0), "prompt": prompt});
            if let Some(limit) = fields.count("max_iterations") {
                summary["max_iterations"] = json!(limit);
            }
            summary
        }
        Mode::Ultrawork => json!({"original_prompt": prompt}),
        Mode::Ultraqa => json!({"cycle": fields.count("cycle").unwrap_or(0), "prompt": prompt}),
        _ => json!({"prompt": prompt}),
    };
    if let Some(phase) = phase {
        summary["phase"] = json!(phase);
    }
    summary
}

impl Store {
    /// Writes a checkpoint under the checkpoints' lock, unless the session has one of a moment ago; absent then. Those that are
    /// too old or too many go.
    ///
    /// # Errors
    ///
    /// What keeps the lock from being taken or the files from being written.
    pub fn write_checkpoint<L: Locker>(
        &self,
        locker: &L,
        new: &NewCheckpoint<'_>,
    ) -> Result<Option<Checkpoint>, Error> {
        self.locked_in(locker, Area::Checkpoints, |store| {
            let recent = store.latest_checkpoint(new.session);
            if recent
                .and_then(|known| known.fields.time("created_at"))
                .is_some_and(|time| time.is_within(RECENT_MS, new.now))
            {
                return Ok(None);
            }
            let name_time = new.now.to_file_text();
            if let Some(wisdom) = new.wisdom {
                store.replace_text(&wisdom_path(&name_time), wisdom)?;
            }
            let mut fields = Fields::default();
            fields.set_time("created_at", new.now);
            if let Some(trigger) = new.trigger {
                fields.set("trigger", trigger);
            }
            fields.set("session_id", new.session.as_str());
            let modes = new.modes.iter().map(|(mode, state)| (mode.name().to_owned(), mode_summary(*mode, state)));
            fields.set("active_modes", Value::Object(modes.collect()));
            let Todos { pending, in_progress, completed } = new.todos;
            fields.set("todo_summary", json!({"pending": pending, "in_progress": in_progress, "completed": completed}));
            fields.set("wisdom_exported", new.wisdom.is_some());
            fields.set("background_jobs", json!({"active": [], "recent": [], "stats": null}));
            store.replace(&checkpoint_path(&name_time), &fields)?;
            store.prune_checkpoints(new.now);
            Ok(Some(Checkpoint { fields, name_time }))
        })
    }

    /// The session's newest checkpoint.
    pub fn latest_checkpoint(&self, session: &SessionId) -> Option<Checkpoint> {
        let mut times: Vec<_> = self
            .names(Path::new(FOLDER), MAX_LISTED)
            .into_iter()
            .filter_map(|name| Some(name.strip_prefix(BEFORE)?.strip_suffix(AFTER)?.to_owned()))
            .collect();
        times.sort_unstable();
        times.into_iter().rev().find_map(|name_time| {
            let fields = self.read_fields(&checkpoint_path(&name_time)).ok().flatten()?;
            fields.belongs_to(session).then_some(Checkpoint { fields, name_time })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        lock::testing::ThreadLocker,
        testing::{now, plant, session, state, store},
    };
    use std::fs;

    #[test]
    fn every_mode_leaves_what_is_needed_to_go_on() {
        for (mode, members, summary) in [
            (
                Mode::Ralph,
                json!({"iteration": 7, "max_iterations": 9, "prompt": "p"}),
                json!({"iteration": 7, "prompt": "p", "max_iterations": 9}),
            ),
            (Mode::Ralph, json!({"iteration": "x"}), json!({"iteration": 0, "prompt": ""})),
            (Mode::Ultrawork, json!({"original_prompt": "p"}), json!({"original_prompt": "p"})),
            (Mode::Ultraqa, json!({"cycle": 2, "original_prompt": "p"}), json!({"cycle": 2, "prompt": "p"})),
            (
                Mode::Autopilot,
                json!({"current_phase": "qa", "original_prompt": "p"}),
                json!({"phase": "qa", "originalIdea": "p"}),
            ),
            (Mode::Autopilot, json!({"originalIdea": "i"}), json!({"phase": "unknown", "originalIdea": "i"})),
            (Mode::Team, json!({"phase": "team-exec", "prompt": "p"}), json!({"prompt": "p", "phase": "team-exec"})),
        ] {
            assert_eq!(mode_summary(mode, &state(members.clone())), summary, "{mode} {members}");
        }
        let long = mode_summary(Mode::Ultrawork, &state(json!({"original_prompt": "Z".repeat(50_000)})));
        assert_eq!(long["original_prompt"].as_str().map(str::len), Some(500));
    }

    #[test]
    fn a_checkpoint_is_written_once_in_two_seconds_a_session() {
        let (folder, store) = store();
        let locker = ThreadLocker::default();
        let modes = [(Mode::Ralph, state(json!({"iteration": 1, "prompt": "p"})))];
        let write = |id: &str, ms| {
            let session = session(id);
            let new = NewCheckpoint {
                session: &session,
                trigger: Some("auto"),
                modes: &modes,
                todos: Todos { pending: 2, in_progress: 1, completed: 3 },
                wisdom: Some("## Plan Wisdom"),
                now: now().plus_ms(ms),
            };
            store.write_checkpoint(&&locker, &new).expect("a write")
        };
        let first = write("s1", 0).expect("written");
        assert_eq!(write("s1", 1_000), None);
        assert!(write("s2", 1_001).is_some());
        assert!(write("s1", 3_000).is_some());
        assert_eq!(fs::read_dir(folder.path().join(FOLDER)).expect("a folder").count(), 6);
        assert_eq!(first.fields.get("active_modes"), Some(&json!({"ralph": {"iteration": 1, "prompt": "p"}})));
        assert_eq!(first.todos().completed, 3);
        let wisdom = first.wisdom_path().expect("some");
        assert_eq!(fs::read_to_string(folder.path().join(wisdom)).expect("a file"), "## Plan Wisdom");
        let latest = store.latest_checkpoint(&session("s1")).expect("one");
        assert_eq!(latest.fields.time("created_at"), Some(now().plus_ms(3_000)));
        assert_eq!(store.latest_checkpoint(&session("s3")), None);
    }

    #[test]
    fn twenty_checkpoints_of_a_day_stay() {
        let (folder, store) = store();
        let count =
            |what: &str| store.names(Path::new(FOLDER), 512).iter().filter(|name| name.starts_with(what)).count();
        let name = |minutes: i64| now().plus_ms(-minutes * 60_000).to_file_text();
        for minutes in (1..=25).chain([1_441, 2_000]) {
            plant(&folder, &format!("{FOLDER}/checkpoint-{}.json", name(minutes)), "{}");
            plant(&folder, &format!("{FOLDER}/wisdom-{}.md", name(minutes)), "w");
        }
        plant(&folder, &format!("{FOLDER}/mine.txt"), "kept");
        let session = session("s1");
        let new = NewCheckpoint {
            session: &session,
            trigger: None,
            modes: &[],
            todos: Todos::default(),
            wisdom: None,
            now: now(),
        };
        store.write_checkpoint(&&ThreadLocker::default(), &new).expect("a write").expect("written");
        assert_eq!((count("checkpoint-"), count("wisdom-"), count("mine")), (20, 20, 1));
        assert!(store.latest_checkpoint(&session).is_some(), "the new one is one of them");
        assert!(!folder.path().join(format!("{FOLDER}/checkpoint-{}.json", name(20))).exists(), "the oldest go first");
    }
}
