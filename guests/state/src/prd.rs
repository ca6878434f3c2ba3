//! What ralph works through, `prd.json`, and what a reviewer confirmed of it, `ralph-verification-state.json`.
//!
//! The model writes the PRD, so that its `passes` is a claim; this crate only reads it. That a claim holds is said by a
//! reviewer in answer to a request, which the verification file keeps, together with the stories that were confirmed.

use std::path::PathBuf;

use serde_json::Value;

use crate::{Error, Fields, ModeState, SessionId, Store, Timestamp, session_path, shared_path};

/// Most stories that are looked at: more than a person would read.
const MAX_STORIES: usize = 200;

/// Rejections after which a request is withdrawn: the original's number.
pub const MAX_VERIFICATION_ATTEMPTS: u64 = 3;

/// Age from which an open request is forgotten, in milliseconds: 2 hours, as for the states of modes.
const REQUEST_LIFE_MS: i64 = crate::STALE_MS;

const VERIFICATION_FILE: &str = "ralph-verification-state.json";

/// One piece of the work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Story {
    /// Its id. Text from a file: not to be shown as it is.
    pub id: String,
    /// Its title, likewise.
    pub title: String,
    /// The model says that its acceptance criteria are met.
    pub passes: bool,
    /// The file says that a reviewer confirmed it.
    pub is_verified: bool,
}

/// The work, piece by piece.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Prd {
    /// The pieces in their order.
    pub stories: Vec<Story>,
}

impl From<Fields> for Prd {
    fn from(fields: Fields) -> Self {
        let text = |story: &Fields, name: &str| story.text(name).unwrap_or_default().to_owned();
        let story = |story: Fields| Story {
            id: text(&story, "id"),
            title: text(&story, "title"),
            passes: story.flag("passes"),
            is_verified: story.flag("architectVerified"),
        };
        let stories = fields.objects("userStories").take(MAX_STORIES).map(story);
        Self { stories: stories.filter(|story| !story.id.is_empty()).collect() }
    }
}

impl Prd {
    /// Longest PRD that is read from the project, in bytes: [`MAX_STORIES`] with a page of criteria each.
    pub const MAX_BYTES: u32 = 512 * 1024;

    /// A PRD from the text of a file; one without a story, or that cannot be read, is none.
    pub fn parse(text: &str) -> Option<Self> {
        let fields: Fields = serde_json::from_str(text).ok()?;
        Some(Self::from(fields)).filter(|prd| !prd.stories.is_empty())
    }
}

/// What a reviewer is asked to confirm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// One story.
    Story(String),
    /// The whole work.
    Completion,
}

/// Who reviews.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Critic {
    /// A subagent that looks at the whole.
    Architect,
    /// A subagent that looks for faults.
    Critic,
    /// Codex, called from the command line.
    Codex,
}

impl Critic {
    /// The reviewer that the run of ralph is set to.
    pub fn of(ralph: &ModeState) -> Self {
        match ralph.fields().text("critic_mode") {
            Some("critic") => Self::Critic,
            Some("codex") => Self::Codex,
            _ => Self::Architect,
        }
    }

    /// The name in files and answers.
    pub fn name(self) -> &'static str {
        match self {
            Self::Architect => "architect",
            Self::Critic => "critic",
            Self::Codex => "codex",
        }
    }
}

/// The request to a reviewer, and what was confirmed so far.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Verification {
    fields: Fields,
}

impl Verification {
    /// The open request: its id and scope.
    pub fn request(&self, now: Timestamp) -> Option<(&str, Scope)> {
        let fresh = self.fields.time("requested_at").is_some_and(|time| time.is_within(REQUEST_LIFE_MS, now));
        let id = self.fields.text("request_id").filter(|_| fresh && self.fields.flag("pending"))?;
        let scope = match self.fields.text("story_id") {
            Some(story) if self.fields.text("verification_scope") != Some("completion") => {
                Scope::Story(story.to_owned())
            }
            _ => Scope::Completion,
        };
        Some((id, scope))
    }

    /// How often a reviewer has refused this request.
    pub fn rejections(&self) -> u64 {
        self.fields.count("verification_attempts").unwrap_or(0)
    }

    /// How often the agent was reminded of this request.
    pub fn reminders(&self) -> u64 {
        self.fields.count("reminders").unwrap_or(0)
    }

    /// Whether a reviewer confirmed the story.
    pub fn confirms(&self, story: &str) -> bool {
        let confirmed = self.fields.get("verified_stories").and_then(Value::as_array);
        confirmed.is_some_and(|stories| stories.iter().any(|id| id.as_str() == Some(story)))
    }

    /// The same as far as it concerns this run of ralph: an earlier run confirmed nothing.
    ///
    /// The original notes no run. What it asked after the run had started was asked in it.
    #[must_use]
    pub fn of_run(self, ralph: &ModeState) -> Self {
        let started = ralph.fields().text("started_at");
        let is_same = match self.fields.text("run_started_at") {
            Some(run) => Some(run) == started,
            None if started.is_none() => true,
            None => self.fields.time("requested_at").zip(ralph.started_at()).is_some_and(|(asked, run)| asked >= run),
        };
        if is_same { self } else { Self::default() }
    }

    /// Asks a reviewer about the work of `ralph`, under a new id. What was confirmed stays.
    pub fn ask(&mut self, id: &str, scope: &Scope, ralph: &ModeState, now: Timestamp) {
        let (scope, story) = match scope {
            Scope::Story(story) => ("story", Value::from(story.as_str())),
            Scope::Completion => ("completion", Value::Null),
        };
        self.fields.set("pending", true);
        self.fields.set("completion_claim", "all acceptance criteria are met");
        self.fields.set("verification_attempts", 0);
        self.fields.set("max_verification_attempts", MAX_VERIFICATION_ATTEMPTS);
        self.fields.set_time("requested_at", now);
        self.fields.set("original_task", ralph.prompt().unwrap_or_default());
        self.fields.set("verification_scope", scope);
        self.fields.set("story_id", story);
        self.fields.set("critic_mode", Critic::of(ralph).name());
        self.fields.set("request_id", id);
        self.fields.set("run_started_at", ralph.fields().text("started_at").unwrap_or_default());
        self.fields.set("reminders", 0);
    }

    /// The agent was reminded once more.
    pub fn count_reminder(&mut self) {
        self.fields.set("reminders", self.reminders().saturating_add(1));
    }

    /// The reviewer refused, and is asked again under a new id.
    pub fn count_rejection(&mut self, next_id: &str) {
        self.fields.set("verification_attempts", self.rejections().saturating_add(1));
        self.fields.set("request_id", next_id);
    }

    /// The request is over, whatever became of it.
    pub fn close(&mut self) {
        self.fields.set("pending", false);
        self.fields.remove("request_id");
    }

    /// The reviewer confirmed the story.
    pub fn confirm(&mut self, story: &str) {
        let mut stories = self.fields.get("verified_stories").and_then(Value::as_array).cloned().unwrap_or_default();
        stories.push(Value::from(story));
        stories.drain(..stories.len().saturating_sub(MAX_STORIES));
        self.fields.set("verified_stories", stories);
        self.close();
    }
}

impl From<Fields> for Verification {
    fn from(fields: Fields) -> Self {
        Self { fields }
    }
}

impl Store {
    /// The work of the session: its own PRD, else the project's. One without a story, or that cannot be read, is none.
    pub fn read_prd(&self, session: &SessionId) -> Option<Prd> {
        let places = [session_path(session, "prd.json"), shared_path("prd.json"), PathBuf::from("prd.json")];
        let mut read = places.iter().filter_map(|path| self.read_fields(path).ok().flatten());
        read.next().map(Prd::from).filter(|prd| !prd.stories.is_empty())
    }

    /// What was asked and confirmed in the session; nothing if that cannot be read.
    pub fn read_verification(&self, session: &SessionId) -> Verification {
        let fields = self.read_fields(&session_path(session, VERIFICATION_FILE)).ok().flatten();
        fields.unwrap_or_default().into()
    }

    /// Writes it. For use under the session's lock.
    ///
    /// # Errors
    ///
    /// What keeps the file from being written.
    pub fn write_verification(&self, session: &SessionId, verification: &Verification) -> Result<(), Error> {
        self.replace(&session_path(session, VERIFICATION_FILE), &verification.fields)
    }

    /// Forgets it: a new run confirms anew.
    ///
    /// # Errors
    ///
    /// What keeps the file from being removed.
    pub fn clear_verification(&self, session: &SessionId) -> Result<(), Error> {
        self.remove(&session_path(session, VERIFICATION_FILE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{ago, fields, now, plant, session, state, store};
    use serde_json::json;

    #[test]
    fn stories_are_read_as_far_as_they_have_an_id() {
        let prd = Prd::from(fields(json!({"userStories": [
            {"id": "US-1", "title": "Parse", "passes": true, "architectVerified": true, "priority": 1},
            {"id": "US-2", "passes": "yes"}, {"title": "nameless"}, 7,
        ]})));
        let expected = |id: &str, title: &str, done| Story {
            id: id.to_owned(),
            title: title.to_owned(),
            passes: done,
            is_verified: done,
        };
        assert_eq!(prd.stories, [expected("US-1", "Parse", true), expected("US-2", "", false)]);
        let many: Vec<_> = (0..1_000).map(|n| json!({"id": format!("US-{n}")})).collect();
        assert_eq!(Prd::from(fields(json!({"userStories": many}))).stories.len(), MAX_STORIES);
    }

    #[test]
    fn the_nearest_prd_counts_and_an_empty_one_is_none() {
        let (folder, store) = store();
        let s1 = session("s1");
        assert_eq!(store.read_prd(&s1), None);
        for (path, id) in [("prd.json", "P"), ("state/prd.json", "S"), ("state/sessions/s1/prd.json", "O")] {
            plant(&folder, path, json!({"userStories": [{"id": id}]}).to_string());
            assert_eq!(store.read_prd(&s1).expect("a PRD").stories[0].id, id);
        }
        plant(&folder, "state/sessions/s1/prd.json", "{\"userStories\": []}");
        assert_eq!(store.read_prd(&s1), None);
    }

    #[test]
    fn a_prd_from_a_text_has_stories_or_is_none() {
        let prd = Prd::parse("{\"userStories\": [{\"id\": \"P\", \"passes\": true}]}").expect("a PRD");
        assert!(prd.stories[0].passes && prd.stories[0].id == "P");
        for text in ["", "[]", "{}", "{\"userStories\": []}", "{\"userStories\": [{\"title\": \"x\"}]}"] {
            assert_eq!(Prd::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_request_of_the_original_belongs_to_the_run_in_which_it_was_asked() {
        let ralph = state(json!({"started_at": ago(600_000)}));
        for (requested_at, counts) in [(json!(ago(60_000)), true), (json!(ago(700_000)), false), (json!(null), false)] {
            let asked: Fields = serde_json::from_value(
                json!({"pending": true, "requested_at": requested_at, "request_id": "r1", "verification_scope": "completion"}),
            )
            .expect("members");
            let request = Verification::from(asked).of_run(&ralph);
            assert_eq!(request.request(now()), counts.then_some(("r1", Scope::Completion)), "{requested_at}");
        }
    }

    #[test]
    fn a_request_is_open_until_it_is_closed_or_forgotten() {
        let ralph = state(json!({"started_at": ago(1), "prompt": "port it", "critic_mode": "critic"}));
        let mut verification = Verification::default();
        assert_eq!(verification.request(now()), None);
        verification.ask("r1", &Scope::Story("US-1".into()), &ralph, now());
        assert_eq!(verification.fields.text("critic_mode"), Some("critic"));
        assert_eq!(verification.clone().of_run(&ralph), verification);
        assert_eq!(verification.clone().of_run(&state(json!({"started_at": ago(2)}))), Verification::default());
        assert_eq!(verification.request(now()), Some(("r1", Scope::Story("US-1".into()))));
        assert_eq!(verification.request(now().plus_ms(REQUEST_LIFE_MS + 1)), None);
        verification.count_rejection("r2");
        assert_eq!((verification.rejections(), verification.request(now()).expect("open").0), (1, "r2"));
        verification.confirm("US-1");
        assert_eq!(verification.request(now()), None);
        assert!(verification.confirms("US-1") && !verification.confirms("US-2"));
        verification.ask("r3", &Scope::Completion, &ralph, now());
        assert_eq!(verification.request(now()), Some(("r3", Scope::Completion)));
        assert!(verification.confirms("US-1") && verification.rejections() == 0);

        let odd = Verification::from(fields(json!({"pending": true, "request_id": 7, "requested_at": ago(1)})));
        assert_eq!(odd.request(now()), None);
    }

    #[test]
    fn what_was_confirmed_is_kept_in_a_file() {
        let (folder, store) = store();
        let s1 = session("s1");
        assert_eq!(store.read_verification(&s1), Verification::default());
        let mut verification = Verification::default();
        verification.ask("r1", &Scope::Story("US-1".into()), &state(json!({})), now());
        verification.confirm("US-1");
        store.write_verification(&s1, &verification).expect("a write");
        assert_eq!(store.read_verification(&s1), verification);
        store.clear_verification(&s1).expect("removed");
        assert!(!folder.path().join("state/sessions/s1").join(VERIFICATION_FILE).exists());
    }
}
