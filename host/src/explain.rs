//! A dry run of one event: the same path as the real one, on copies.
//!
//! Guests get copies of the `.omc` directories, in a folder that is removed afterwards; requests to other hosts are withheld;
//! variables for the session and the trail are not written. So nothing changes in the project or outside, and what guests decide is
//! what they would decide now.

mod copies;

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::{Map, Value};

use crate::audit::Record;
use crate::capability::conditions::Conditions;
use crate::config::{Env, GuestPolicy};
use crate::dispatch::{self, Answer};
use crate::protocol::dialect;
use crate::protocol::event::{Event, Kind};
use crate::protocol::matcher::Matcher;
use crate::registry::{Guest, Registry, occasion};
use crate::surroundings::Surroundings;

use self::copies::Copies;

/// What would happen.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Explanation {
    pub(crate) agent: &'static str,
    /// The event's kind.
    pub(crate) event: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) session: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) project: Option<String>,
    /// What the event's matchers are compared with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) target: Option<String>,
    /// Every guest there is, in no order.
    pub(crate) guests: Vec<Considered>,
    /// The calls, in the order in which their texts are joined; and what there is to say about the event.
    pub(crate) records: Vec<Record>,
    /// What all together say.
    pub(crate) merged: Summary,
    /// What the agent would get.
    pub(crate) stdout: String,
    pub(crate) exit_code: u8,
    /// What would be on standard error.
    pub(crate) stderr: String,
    /// How long it took, without the copies, in microseconds.
    pub(crate) micros: u64,
    /// How the state was copied.
    pub(crate) copied: Vec<String>,
}

/// A guest, and why it is called or not.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Considered {
    pub(crate) guest: String,
    pub(crate) called: bool,
    pub(crate) why: String,
}

/// The merged answer before it is written.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Summary {
    pub(crate) decision: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) context: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) updated_input: Option<Value>,
}

/// Runs an event dry. `agent` is what `--agent` would say.
///
/// # Errors
///
/// When there is no folder for the copies.
pub(crate) fn explain(
    agent: Option<&str>,
    payload: Map<String, Value>,
    env: &Env,
    notes: Vec<String>,
) -> std::io::Result<Explanation> {
    let dialect = dialect::resolve(agent, &payload, &|name| std::env::var_os(name).is_some());
    let event = Arc::new(dispatch::decode(dialect, payload, env));
    let mut surroundings = Surroundings::find(&event, env);
    let guests = considered(&event, &surroundings);
    let copies = Copies::take(&mut surroundings)?;
    let surroundings = Arc::new(surroundings);

    let began = Instant::now();
    let deadline = began + event.contract().deadline();
    let Answer { reply, merged, trail } =
        dispatch::answer(dialect, &event, None, &surroundings, deadline, &OnceLock::new(), notes);
    let micros = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
    // Guests that were late still hold the copies; they get a moment, since what they write should not outlive the folder.
    if began.elapsed() > event.contract().deadline() {
        std::thread::sleep(LATE);
    }
    Ok(Explanation {
        agent: event.agent().name(),
        event: event.kind_name().to_owned(),
        session: event.session_id().map(str::to_owned),
        project: surroundings.project_root().map(|root| root.display().to_string()),
        target: event.target().map(str::to_owned),
        guests,
        records: trail.records,
        merged: merged.map_or_else(Summary::default, |merged| Summary {
            decision: merged.decision.name().to_owned(),
            reason: merged.decision.reason().map(str::to_owned),
            context: merged.context,
            message: merged.message,
            updated_input: merged.updated_input,
        }),
        stdout: String::from_utf8_lossy(&reply.stdout).into_owned(),
        exit_code: reply.exit_code,
        stderr: String::from_utf8_lossy(&reply.stderr).into_owned(),
        micros,
        copied: copies.notes().to_vec(),
    })
}

/// How long guests are waited for that were not done by the deadline: one that is stopped by its epoch ends in this time.
const LATE: Duration = Duration::from_millis(50);

/// Every guest, and why the event selects it or not.
fn considered(event: &Event, surroundings: &Surroundings) -> Vec<Considered> {
    let config = &surroundings.config;
    let registry = Registry::load(&config.paths);
    let conditions = Conditions::new(event, surroundings);
    let selected = registry.select(event, surroundings, &conditions);
    let occasion = occasion(event);
    let of_guest = |guest: Guest| {
        let name = guest.name().to_owned();
        let called = selected.iter().any(|handler| handler.guest.name() == name);
        let why = why(&guest, event, &conditions, &config.settings.guest(&name)).map(|why| {
            let is_on = config.settings.guest(&name).switch.is_on(guest.is_on_by_default());
            let is_skipped = config.kill_switch.skips(&name, occasion);
            match (called, is_on, is_skipped) {
                (true, ..) => why,
                (false, false, _) => "it is switched off".to_owned(),
                (false, true, true) => "DISABLE_OMC or OMC_SKIP_HOOKS silences it".to_owned(),
                (false, true, false) => match registry.faults.sets_aside(&guest) {
                    Some(streak) => format!("it is set aside after {} faults in a row", streak.faults),
                    None => "it is not admitted".to_owned(),
                },
            }
        });
        let (Ok(why) | Err(why)) = why;
        Considered { guest: name, called, why }
    };
    registry.guests().map(of_guest).collect()
}

/// Which of a guest's subscriptions is about the event, or why none is.
fn why(guest: &Guest, event: &Event, conditions: &Conditions<'_>, policy: &GuestPolicy) -> Result<String, String> {
    let kind = event.kind_name();
    let subscriptions = guest.manifest().subscriptions;
    let (mut wanted, mut unmatched, mut unmet) = (false, Vec::new(), Vec::new());
    for subscription in subscriptions.iter().filter(|subscription| subscription.event == kind) {
        wanted = true;
        let shown = || subscription.matcher.clone().unwrap_or_else(|| "*".to_owned());
        match Matcher::parse(subscription.matcher.as_deref()) {
            Ok(matcher) if matcher.matches(event) => {
                let when = subscription.when.iter().map(String::as_str);
                if !conditions.hold(when, |capability| guest.lacks(capability, policy)) {
                    unmet.extend(subscription.when.iter().map(|condition| format!("`{condition}`")));
                    continue;
                }
                let order = subscription.order;
                return Ok(match &subscription.matcher {
                    Some(matcher) => format!("it wants {kind} that match `{matcher}`, at {order}"),
                    None if subscription.when.is_empty() => format!("it wants every {kind}, at {order}"),
                    None => format!("it wants this {kind}, at {order}, because a condition of its holds"),
                });
            }
            Ok(_) => unmatched.push(format!("`{}`", shown())),
            Err(error) => unmatched.push(error.to_string()),
        }
    }
    Err(if !unmet.is_empty() {
        format!("it has nothing to do here: none of its conditions holds ({})", unmet.join(", "))
    } else if wanted {
        let target = event.target().map_or_else(|| "nothing".to_owned(), |target| format!("`{target}`"));
        format!("it wants {kind} that match {}, and this is {target}", unmatched.join(", "))
    } else if event.kind() == Kind::Other {
        "no guest wants an event that nobody knows".to_owned()
    } else {
        format!("it does not want {kind}")
    })
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs;

    use serde_json::json;

    use super::*;
    use crate::protocol::event::Agent;

    // What guests do in a dry run is tested from outside: a process loads the code that lies in it once.

    #[test]
    fn every_guest_is_there_with_why_it_is_called_or_not() {
        let (home, project) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::create_dir(project.path().join(".git")).unwrap();
        let why = |mut event: Value, name: &str, variable: Option<(&str, &str)>| {
            event["cwd"] = json!(project.path());
            let Value::Object(payload) = event else { panic!("an event is an object") };
            let mut pairs = vec![("HOME", home.path().to_str().unwrap())];
            pairs.extend(variable);
            let event = Event::new(Agent::Claude, payload);
            let guests = considered(&event, &Surroundings::find(&event, &Env::from_pairs(&pairs)));
            assert!(guests.len() >= 2, "{guests:?}");
            let guest = guests.into_iter().find(|guest| guest.guest == name).expect("it is there");
            (guest.called, guest.why)
        };
        let tool = json!({"hook_event_name": "PreToolUse", "tool_name": "Bash"});
        let edit = json!({"hook_event_name": "PermissionRequest", "tool_name": "Edit"});
        let prompt = json!({"hook_event_name": "UserPromptSubmit", "prompt": "hello"});

        let cases = [
            (&tool, "keyword-detector", None, false, "it does not want pre-tool-use"),
            (&tool, "persistent-mode", None, false, "none of its conditions holds"),
            (&edit, "permission-handler", None, false, "match `Bash|proxy_Bash`, and this is `Edit`"),
            (&prompt, "keyword-detector", None, true, "it wants every user-prompt-submit, at "),
            (&prompt, "keyword-detector", Some(("DISABLE_OMC", "1")), false, "DISABLE_OMC or OMC_SKIP_HOOKS"),
            (&prompt, "keyword-detector", Some(("OMC_SKIP_HOOKS", "keyword-detector")), false, "OMC_SKIP_HOOKS"),
        ];
        for (event, name, variable, called, part) in cases {
            let (is_called, reason) = why(event.clone(), name, variable);
            assert_eq!(is_called, called, "{name} {variable:?}: {reason}");
            assert!(reason.contains(part), "{name} {variable:?}: {reason}");
        }

        let config = home.path().join(".config/omc-host");
        fs::create_dir_all(&config).unwrap();
        fs::write(config.join("config.toml"), "[guests.keyword-detector]\nenabled = false\n").unwrap();
        let (called, reason) = why(prompt, "keyword-detector", None);
        assert!(!called && reason.contains("switched off"), "{reason}");
    }
}
