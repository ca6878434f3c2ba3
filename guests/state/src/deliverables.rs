//! What a team's stage has to deliver, `deliverables.json`, and what was found missing,
//! `state/sessions/ID/deliverable-issues.json`.

use std::path::Path;

use serde_json::Value;

use crate::{Error, Fields, Locker, SessionId, Store, Timestamp, session_path, truncate_units};

const ISSUES: &str = "deliverable-issues.json";

/// Most issues that are kept of one stage.
const MAX_ISSUES: usize = 16;

/// Longest issue, in UTF-16 units.
const MAX_ISSUE_UNITS: usize = 200;

/// What was found missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliverableIssues {
    /// The stage.
    pub stage: String,
    /// One line each. Texts with names from files: not to be shown as they are.
    pub issues: Vec<String>,
}

impl Store {
    /// The project's own table of deliverables; absent if there is none, or none that is an object.
    pub fn read_deliverables(&self) -> Option<Fields> {
        self.read_fields(Path::new("deliverables.json")).ok().flatten()
    }

    /// Keeps what was found missing, until somebody tells the leader; nothing missing takes older issues back. Says whether
    /// anything changed.
    ///
    /// # Errors
    ///
    /// What keeps the file from being locked or written.
    pub fn note_deliverable_issues<L: Locker>(
        &self,
        locker: &L,
        session: &SessionId,
        found: &DeliverableIssues,
        now: Timestamp,
    ) -> Result<bool, Error> {
        let path = session_path(session, ISSUES);
        if found.issues.is_empty() && !self.exists(&path) {
            return Ok(false);
        }
        self.locked(locker, session, |store| {
            let mut fields = store.read_fields(&path).ok().flatten().unwrap_or_default();
            let issues: Vec<Value> = found
                .issues
                .iter()
                .take(MAX_ISSUES)
                .map(|issue| truncate_units(issue, MAX_ISSUE_UNITS).into())
                .collect();
            let stage = truncate_units(&found.stage, MAX_ISSUE_UNITS);
            if fields.get("issues").and_then(Value::as_array) == Some(&issues) && fields.text("stage") == Some(&stage) {
                return Ok(false);
            }
            fields.set("session_id", session.as_str());
            fields.set("stage", stage);
            fields.set("told", issues.is_empty());
            fields.set("issues", issues);
            fields.set_time("checked_at", now);
            store.replace(&path, &fields)?;
            Ok(true)
        })
    }

    /// Takes what the leader has not been told yet. One question to the file system while there is nothing.
    ///
    /// # Errors
    ///
    /// What keeps the file from being locked or written; it should not be told then, or it would be told again.
    pub fn take_deliverable_issues<L: Locker>(
        &self,
        locker: &L,
        session: &SessionId,
    ) -> Result<Option<DeliverableIssues>, Error> {
        let path = session_path(session, ISSUES);
        let untold = |store: &Self| {
            let fields = store.read_fields(&path).ok().flatten();
            fields.filter(|fields| fields.belongs_to(session) && fields.get("told") == Some(&Value::Bool(false)))
        };
        if !self.exists(&path) || untold(self).is_none() {
            return Ok(None);
        }
        self.locked(locker, session, |store| {
            let Some(mut fields) = untold(store) else { return Ok(None) };
            fields.set("told", true);
            store.replace(&path, &fields)?;
            let issues = fields.get("issues").and_then(Value::as_array).into_iter().flatten();
            Ok(Some(DeliverableIssues {
                stage: fields.text("stage").unwrap_or_default().to_owned(),
                issues: issues.filter_map(Value::as_str).take(MAX_ISSUES).map(str::to_owned).collect(),
            }))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        lock::testing::ThreadLocker,
        testing::{now, plant, session, store},
    };

    #[test]
    fn issues_are_told_once_and_again_only_if_they_change() {
        let (_folder, store) = store();
        let (s1, locks) = (session("s1"), &ThreadLocker::default());
        let found = |issues: &[&str]| DeliverableIssues {
            stage: "team-plan".to_owned(),
            issues: issues.iter().map(|issue| (*issue).to_owned()).collect(),
        };
        let note =
            |issues: &[&str]| store.note_deliverable_issues(&locks, &s1, &found(issues), now()).expect("a write");
        let take = || store.take_deliverable_issues(&locks, &s1).expect("a write");
        assert!(!note(&[]));
        assert_eq!(take(), None);
        assert!(note(&["`DESIGN.md` is missing"]));
        assert_eq!(take(), Some(found(&["`DESIGN.md` is missing"])));
        assert_eq!(take(), None);
        assert!(!note(&["`DESIGN.md` is missing"]));
        assert_eq!(take(), None);
        assert!(note(&["`DESIGN.md` is too short"]));
        assert!(note(&[]));
        assert_eq!(take(), None, "it was mended before anybody was told");
        assert_eq!(store.take_deliverable_issues(&locks, &session("s2")).expect("nothing"), None);
    }

    #[test]
    fn files_of_any_content_are_read_without_harm() {
        for content in ["{", "[1]", "{\"told\": false}", "{\"told\": false, \"session_id\": \"s1\", \"issues\": 7}"] {
            let (folder, store) = store();
            plant(&folder, "state/sessions/s1/deliverable-issues.json", content);
            plant(&folder, "deliverables.json", content);
            let taken = store.take_deliverable_issues(&&ThreadLocker::default(), &session("s1")).expect("a write");
            assert!(taken.is_none_or(|taken| taken.issues.is_empty()), "{content}");
            assert_eq!(store.read_deliverables().is_some(), content.starts_with("{\""), "{content}");
        }
    }
}
