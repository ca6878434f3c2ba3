//! What the host looks at before it calls a guest: the conditions of its subscription.
//!
//! A guest that has nothing to do is then not loaded at all, which is most of what an event costs. Looking costs a few questions
//! to the file system; like everything here it goes from handle to handle, follows no link, and is bounded. What cannot be told
//! holds: to call a guest once too often harms nobody.

use std::borrow::Cow;
use std::cell::{Cell, OnceCell};
use std::io;
use std::path::Path;

use omc_artifact::{Condition, Preopen, SESSION};
use serde_json::Value;

use super::OmcDir;
use super::wasi::os::Dir;
use crate::protocol::event::Event;
use crate::surroundings::Surroundings;

/// Most entries of a folder whose names are compared with a pattern. A folder with more holds anything.
const MAX_NAMES: usize = 256;
/// Most files of one tool call that are asked for rules near them, and how many folders above each.
const MAX_FILES: usize = 16;
const MAX_LEVELS: usize = 32;

/// How much is looked at for one event, in bytes compared; a question to the file system counts as [`QUESTION_STEPS`]. Together
/// some ten milliseconds: what guests of others want to know holds up nobody. When it is used up, conditions hold.
const MAX_STEPS: usize = 16 * 1024 * 1024;
const QUESTION_STEPS: usize = 32 * 1024;

/// Looks at the conditions of one event.
pub(crate) struct Conditions<'a> {
    event: &'a Event,
    surroundings: &'a Surroundings,
    /// What is left of [`MAX_STEPS`].
    steps: Cell<usize>,
    /// The files that the tool call names, found when they are asked for first: a patch is a long text.
    files: OnceCell<Files>,
}

/// The files that a tool call names.
enum Files {
    Named(Vec<String>),
    /// More than anybody looks at.
    TooMany,
}

impl<'a> Conditions<'a> {
    pub(crate) fn new(event: &'a Event, surroundings: &'a Surroundings) -> Self {
        Self { event, surroundings, steps: Cell::new(MAX_STEPS), files: OnceCell::new() }
    }

    /// Of an event of which only a part could be read: nothing can be told, so all of them hold.
    pub(crate) fn of_unreadable(event: &'a Event, surroundings: &'a Surroundings) -> Self {
        Self { steps: Cell::new(0), ..Self::new(event, surroundings) }
    }

    /// Whether a guest with these conditions is called: one of them holds, or there is none. `withheld` says of a capability
    /// that the guest does not have it: what it may not look at is not looked at in its place.
    pub(crate) fn hold<'b>(
        &self,
        mut conditions: impl ExactSizeIterator<Item = &'b str>,
        withheld: impl Fn(&str) -> bool,
    ) -> bool {
        // One that cannot be read was refused when the guest was added or built, so it comes from a damaged lock file.
        conditions.len() == 0
            || conditions.any(|text| {
                Condition::parse(text)
                    .is_none_or(|condition| capability(condition).is_some_and(&withheld) || self.holds(condition))
            })
    }

    /// Takes from what may still be looked at; false when it is used up.
    fn spend(&self, steps: usize) -> bool {
        let left = self.steps.get().checked_sub(steps);
        self.steps.set(left.unwrap_or(0));
        left.is_some()
    }

    fn holds(&self, condition: Condition<'_>) -> bool {
        let Self { event, surroundings, .. } = self;
        if !self.spend(QUESTION_STEPS) {
            return true;
        }
        match condition {
            Condition::File { preopen, path } => {
                let dir = match preopen {
                    Preopen::Project => surroundings.project_dir(),
                    Preopen::User => surroundings.user_dir(),
                };
                dir.is_some_and(|dir| has_file(dir, path, event.session_id()))
            }
            Condition::Read { root, path } => {
                let Some(folder) = surroundings.readable(root, event.agent()) else { return false };
                may_be(Dir::open_parent(&folder)).map_or_else(|unknown| unknown, |folder| exists(&folder, path))
            }
            Condition::Near(path) => self.is_near(path),
            Condition::Payload(text) => self.contains(event.payload(), text.as_bytes()),
            // A key that this version does not know, or that is no switch, cannot be told.
            Condition::Setting(key) => surroundings.config.guest_settings.get(key).is_none_or(|value| value != "false"),
            _ => true,
        }
    }

    /// Whether something of this name is in a folder on the way from the project's root to a file that the tool call names.
    fn is_near(&self, path: &str) -> bool {
        let Some(root) = self.surroundings.project_root() else { return false };
        let Some(root) = root.to_str() else { return true };
        let Files::Named(files) = self.files.get_or_init(|| files_of(self.event, self.surroundings)) else {
            return true;
        };
        if files.is_empty() {
            return false;
        }
        let Ok(top) = Dir::open_parent(Path::new(root)) else { return true };
        exists(&top, path) || files.iter().any(|file| is_on_the_way(&top, root, file, path))
    }

    /// Whether a text of the payload contains this one, whatever the case of ASCII letters.
    fn contains(&self, value: &Value, text: &[u8]) -> bool {
        match value {
            Value::String(string) => self.finds(string.as_bytes(), text),
            Value::Array(values) => values.iter().any(|value| self.contains(value, text)),
            Value::Object(members) => members.values().any(|value| self.contains(value, text)),
            _ => false,
        }
    }

    fn finds(&self, bytes: &[u8], text: &[u8]) -> bool {
        let Some((&first, _)) = text.split_first() else { return true };
        let is_here = |at: usize| {
            !self.spend(text.len())
                || bytes.get(at..at + text.len()).is_some_and(|found| found.eq_ignore_ascii_case(text))
        };
        !self.spend(bytes.len())
            || memchr::memchr2_iter(first.to_ascii_lowercase(), first.to_ascii_uppercase(), bytes).any(is_here)
    }
}

/// The files that the event's tool call names: as every guest is told, else under the members that older versions use.
fn files_of(event: &Event, surroundings: &Surroundings) -> Files {
    let files = match surroundings.tool_call(event).map(|call| call.paths()) {
        Some(Ok(files)) => files.into_iter().map(|file| file.path).collect(),
        Some(Err(omc_tool::TooMany)) => return Files::TooMany,
        None => Vec::new(),
    };
    let other = || {
        let texts = ["/tool_input/file_path", "/tool_input/path"].into_iter();
        let texts = texts.filter_map(|at| event.pointer(at)?.as_str());
        texts.map(|text| {
            let cwd = event.cwd().filter(|_| !text.starts_with('/')).unwrap_or_default();
            let absolute = if cwd.is_empty() { Cow::Borrowed(text) } else { Cow::Owned(format!("{cwd}/{text}")) };
            surroundings.without_link(&absolute).into_owned()
        })
    };
    match files.len() {
        0 => Files::Named(other().collect()),
        1..=MAX_FILES => Files::Named(files),
        _ => Files::TooMany,
    }
}

/// The capability that lets a guest look by itself at what a condition names.
fn capability(condition: Condition<'_>) -> Option<&'static str> {
    match condition {
        Condition::File { preopen: Preopen::Project, .. } => Some("omc"),
        Condition::File { preopen: Preopen::User, .. } => Some("omc-user"),
        Condition::Read { .. } | Condition::Near(_) => Some("read"),
        _ => None,
    }
}

/// What was opened, or whether it counts as being there: only what is surely missing does not.
fn may_be<T>(opened: io::Result<T>) -> Result<T, bool> {
    opened.map_err(|error| error.kind() != io::ErrorKind::NotFound)
}

/// Whether something of this name is in an `.omc` directory.
fn has_file(dir: &OmcDir, path: &str, session: Option<&str>) -> bool {
    let dir = match dir.handle() {
        Ok(Some(dir)) => dir,
        Ok(None) => return false,
        // The guest is called and refused, so that the trail says what is wrong with the directory.
        Err(_) => return true,
    };
    let (folders, name) = path.rsplit_once('/').map_or((None, path), |(folders, name)| (Some(folders), name));
    let of_session = |part| if part == SESSION { session } else { Some(part) };
    let mut folder = None;
    for part in folders.into_iter().flat_map(|folders| folders.split('/')) {
        let Some(part) = of_session(part) else { return false };
        match may_be(folder.as_ref().unwrap_or(&*dir).open_dir(part)) {
            Ok(next) => folder = Some(next),
            Err(unknown) => return unknown,
        }
    }
    let folder = folder.as_ref().unwrap_or(&*dir);
    let Some(name) = of_session(name) else { return false };
    if !name.contains('*') {
        return may_be(folder.stat_at(name)).map_or_else(|unknown| unknown, |_| true);
    }
    let Ok(mut entries) = folder.entries() else { return true };
    for _ in 0..MAX_NAMES {
        match entries.read() {
            None => return false,
            Some(Ok((entry, _))) if fast_glob::glob_match(name, entry.to_bytes()) => return true,
            Some(Ok(_)) => {}
            Some(Err(_)) => return true,
        }
    }
    true
}

/// Whether something of this name is below a folder.
fn exists(folder: &Dir, path: &str) -> bool {
    let there = match path.rsplit_once('/') {
        None => folder.stat_at(path),
        Some((parents, name)) => open(folder, parents.split('/')).and_then(|parent| parent.stat_at(name)),
    };
    may_be(there).map_or_else(|unknown| unknown, |_| true)
}

fn open<'a>(folder: &Dir, mut names: impl Iterator<Item = &'a str>) -> io::Result<Dir> {
    let first = folder.open_dir(names.next().unwrap_or_default())?;
    names.try_fold(first, |folder, name| folder.open_dir(name))
}

/// Whether something of this name is in a folder between the root, which is open as `top`, and the file.
fn is_on_the_way(top: &Dir, root: &str, file: &str, path: &str) -> bool {
    let Some(below) = file.strip_prefix(root).filter(|rest| rest.starts_with('/')) else { return false };
    let mut parts = below.split('/').filter(|part| !matches!(*part, "" | ".")).peekable();
    let mut folder: Option<Dir> = None;
    for _ in 0..MAX_LEVELS {
        let Some(part) = parts.next() else { return false };
        // Text that climbs is left to the guest.
        if part == ".." {
            return true;
        }
        if parts.peek().is_none() {
            return false;
        }
        match folder.as_ref().unwrap_or(top).open_dir(part) {
            Ok(next) if exists(&next, path) => return true,
            Ok(next) => folder = Some(next),
            Err(error) => return error.kind() != io::ErrorKind::NotFound,
        }
    }
    true
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use serde_json::json;

    use super::*;
    use crate::config::Env;
    use crate::protocol::event::Agent;

    /// A project with a user's home beside it.
    struct Scratch(tempfile::TempDir);

    impl Scratch {
        fn new() -> Self {
            let scratch = Self(tempfile::tempdir().unwrap());
            for folder in ["project/.git", "home/.omc/skills", "home/.claude/rules"] {
                fs::create_dir_all(scratch.0.path().join(folder)).unwrap();
            }
            fs::write(scratch.0.path().join("project/.git/HEAD"), "ref: refs/heads/main\n").unwrap();
            scratch
        }

        fn plant(&self, path: &str, text: &str) {
            let path = self.0.path().join("project").join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        fn hold(&self, conditions: &[&str], more: &Value) -> bool {
            let project = self.0.path().join("project").canonicalize().unwrap();
            let mut payload = json!({"hook_event_name": "PostToolUse", "session_id": "s1", "cwd": project});
            payload.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            let event = Event::new(Agent::Claude, payload.as_object().unwrap().clone());
            let home = self.0.path().join("home").canonicalize().unwrap();
            let env = Env::from_pairs(&[("HOME", home.as_os_str())]);
            let surroundings = Surroundings::find(&event, &env);
            Conditions::new(&event, &surroundings).hold(conditions.iter().copied(), |_| false)
        }
    }

    #[test]
    fn without_conditions_a_guest_is_always_called() {
        assert!(Scratch::new().hold(&[], &json!({})));
    }

    #[test]
    fn files_are_looked_for_in_the_sessions_own_folder() {
        let scratch = Scratch::new();
        let modes = &["file:/omc/state/sessions/{session}/*-state.json"];
        assert!(!scratch.hold(modes, &json!({})), "there is no directory");
        scratch.plant(".omc/state/sessions/s10/ralph-state.json", "{}");
        scratch.plant(".omc/state/sessions/s1/other.json", "{}");
        assert!(!scratch.hold(modes, &json!({})), "the state is another session's");
        scratch.plant(".omc/state/sessions/s1/ralph-state.json", "{}");
        assert!(scratch.hold(modes, &json!({})));
        assert!(!scratch.hold(modes, &json!({"session_id": "../s1"})), "an id that is no name");
        assert!(scratch.hold(&["file:/omc-user/skills"], &json!({})));
        assert!(!scratch.hold(&["file:/omc-user/wiki"], &json!({})));
    }

    #[test]
    fn a_folder_with_more_names_than_are_looked_at_holds_anything() {
        let scratch = Scratch::new();
        for number in 0..=MAX_NAMES {
            scratch.plant(&format!(".omc/state/{number}.txt"), "");
        }
        assert!(scratch.hold(&["file:/omc/state/*.json"], &json!({})));
    }

    #[test]
    fn a_link_is_not_followed_and_left_to_the_guest() {
        let scratch = Scratch::new();
        scratch.plant("real/x.json", "");
        scratch.plant(".omc/a", "");
        let project = scratch.0.path().join("project");
        symlink(project.join("real"), project.join(".omc/link")).unwrap();
        // Whether or not something of the name is behind it.
        for name in ["x.json", "nothing", "*.json"] {
            assert!(scratch.hold(&[&format!("file:/omc/link/{name}")], &json!({})), "{name}");
        }
        symlink(project.join("real"), project.join(".agents")).unwrap();
        assert!(scratch.hold(&["read:project:.agents/nothing"], &json!({})));
    }

    #[test]
    fn files_of_project_and_agent_are_looked_for() {
        let scratch = Scratch::new();
        assert!(scratch.hold(&["read:agent:rules"], &json!({})));
        assert!(!scratch.hold(&["read:project:.agents/skills"], &json!({})));
        scratch.plant(".agents/skills/a.md", "");
        assert!(scratch.hold(&["read:project:.agents/skills"], &json!({})));
    }

    #[test]
    fn something_is_near_a_file_if_it_is_on_the_way_to_it() {
        let scratch = Scratch::new();
        scratch.plant("src/deep/a.rs", "");
        scratch.plant("src/.claude/rules/a.md", "");
        let near = |path: &str| {
            scratch.hold(&["near:.claude/rules"], &json!({"tool_name": "Read", "tool_input": {"file_path": path}}))
        };
        let root = scratch.0.path().join("project").canonicalize().unwrap();
        assert!(near(&format!("{}/src/deep/a.rs", root.display())));
        assert!(near("src/deep/a.rs"), "a path from the folder worked in");
        assert!(near("src/new/folder/b.rs"), "a file that is about to be");
        assert!(near("other/../src/a.rs"), "text that climbs is left to the guest");
        assert!(!near("other/a.rs"));
        assert!(!near("/etc/passwd"));
        let no_file = json!({"tool_name": "Bash", "tool_input": {"command": "ls"}});
        assert!(!scratch.hold(&["near:.claude/rules"], &no_file));
        scratch.plant(".claude/rules/b.md", "");
        assert!(near("other/a.rs"), "what is at the root is near everything in it");
    }

    #[test]
    fn a_file_is_in_the_project_by_either_name_of_a_link_to_it() {
        let scratch = Scratch::new();
        scratch.plant("src/.claude/rules/a.md", "");
        scratch.plant("lib/b.rs", "");
        let base = scratch.0.path().canonicalize().unwrap();
        symlink(base.join("project"), base.join("link")).unwrap();
        symlink(base.join("project/src"), base.join("src")).unwrap();
        let near = |cwd: &str, tool: &str, member: &str, path: &str| {
            let path = path.replace("BASE", base.to_str().unwrap());
            let event = json!({"cwd": base.join(cwd), "tool_name": tool, "tool_input": {member: path}});
            scratch.hold(&["near:.claude/rules"], &event)
        };
        for (cwd, path, is_near) in [
            ("link", "BASE/link/src/a.rs", true),
            ("link", "BASE/project/src/a.rs", true),
            ("link", "src/a.rs", true),
            ("link/lib", "BASE/link/src/a.rs", true),
            ("link/lib", "../src/a.rs", true),
            ("src", "BASE/src/a.rs", true),
            ("src", "a.rs", true),
            ("link", "BASE/link/lib/b.rs", false),
            ("link/lib", "b.rs", false),
            // What lies beside the link, or only looks like it, is not in the project.
            ("link", "BASE/link-2/src/a.rs", false),
            ("link", "../src/a.rs", false),
            ("src", "BASE/project-2/a.rs", false),
            ("src", "../a.rs", false),
            ("src", "/etc/passwd", false),
        ] {
            // The second is as older versions name it, and no tool that the host knows.
            for (tool, member) in [("Read", "file_path"), ("read_file", "path")] {
                let is_left_to_the_guest = member == "path" && path.starts_with("..");
                let found = near(cwd, tool, member, path);
                assert!(found == is_near || is_left_to_the_guest, "{cwd}: {tool} {path}");
            }
        }
    }

    #[test]
    fn texts_are_found_wherever_they_are_in_the_event() {
        let scratch = Scratch::new();
        for more in [
            json!({"tool_response": "a <Remember> b"}),
            json!({"tool_response": {"content": [{"text": "<remember priority>"}]}}),
        ] {
            assert!(scratch.hold(&["payload:<remember"], &more), "{more}");
        }
        for more in
            [json!({"tool_response": "remember"}), json!({"<remember>": 1}), json!({"tool_response": "<remembe"})]
        {
            assert!(!scratch.hold(&["payload:<remember"], &more), "{more}");
        }
    }

    #[test]
    fn settings_hold_where_the_user_switched_them_on() {
        let scratch = Scratch::new();
        assert!(!scratch.hold(&["setting:codeSimplifier.enabled"], &json!({})));
        scratch.plant(".omc/config.json", r#"{"codeSimplifier": {"enabled": true}}"#);
        assert!(scratch.hold(&["setting:codeSimplifier.enabled"], &json!({})));
    }

    #[test]
    fn what_cannot_be_told_holds() {
        let scratch = Scratch::new();
        for condition in ["moon:full", "setting:of.a.later.version", "setting:ralph.maxIterations"] {
            assert!(scratch.hold(&["payload:nowhere", condition], &json!({})), "{condition}");
        }
    }

    #[test]
    fn looking_is_bounded_and_then_everything_holds() {
        let scratch = Scratch::new();
        let payload = json!({"hook_event_name": "PreToolUse", "text": "a".repeat(1_000_000)});
        let event = Event::new(Agent::Claude, payload.as_object().unwrap().clone());
        let home = scratch.0.path().join("home");
        let surroundings = Surroundings::find(&event, &Env::from_pairs(&[("HOME", home.as_os_str())]));
        let conditions = Conditions::new(&event, &surroundings);
        let hostile = format!("payload:{}b", "a".repeat(100));
        assert!(conditions.hold([hostile.as_str()].into_iter(), |_| false));
        assert_eq!(conditions.steps.get(), 0);
        assert!(conditions.hold(["payload:nowhere"].into_iter(), |_| false));
    }

    #[test]
    fn of_an_event_that_could_not_be_read_and_of_what_is_withheld_everything_holds() {
        let event = Event::new(Agent::Claude, serde_json::Map::new());
        let surroundings = Surroundings::find(&event, &Env::from_pairs::<&str>(&[]));
        let unreadable = Conditions::of_unreadable(&event, &surroundings);
        assert!(unreadable.hold(["payload:secret"].into_iter(), |_| false));
        let readable = Conditions::new(&event, &surroundings);
        for condition in ["file:/omc/private", "read:agent:rules", "near:.git"] {
            assert!(readable.hold([condition].into_iter(), |_| true), "{condition}");
        }
        assert!(!readable.hold(["payload:secret"].into_iter(), |_| true));
    }
}
