//! Attacks on the sandbox through the real host: what a hostile repository plants, what a hostile guest tries, many events at
//! once, and death at any moment.
//!
//! The guest is the puppet with all of `.omc` to write and a read-only folder in it. Whatever it does, nothing outside changes;
//! the answer is in time and no attack costs another guest its say. The walk itself is attacked more closely beside its code.
#![cfg(unix)]

mod snapshot;
mod world;

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{chown, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use snapshot::Snapshot;
use world::{Guest, Run, Running, World, create_dirs, write};

/// The answer to a tool event about which nobody has an opinion.
const SILENCE: &str = "{\"continue\":true,\"suppressOutput\":true}\n";

/// Longest time for an answer: the design's bound for an event, and the process around it.
const IN_TIME: Duration = Duration::from_secs(3);

/// A world with the puppet, a filled `.omc` and things outside that must stay as they are.
struct Scene {
    world: World,
}

/// Puts something in a place, given the path of that and of a folder outside.
type Plant = fn(&Path, &Path);

/// What the puppet reported: the record of its call, and how each step went.
struct Acted {
    record: Value,
    /// `verb path: ok …` or `verb path: error …` each.
    steps: Vec<String>,
}

impl Scene {
    fn new() -> Self {
        let grants = ["omc=rw:/omc", "omc=ro:/omc/read-only"].map(str::to_owned).to_vec();
        let world = World::new(&[Guest { name: "puppet".to_owned(), grants }]);
        for (path, text) in [
            ("project/source.rs", "fn main() {}"),
            ("outside/precious", "precious"),
            ("outside/folder/deep", "deep"),
            ("outside/passwd", "root:x:0:0::/root:/bin/sh"),
            ("home/.ssh/id", "secret"),
            ("home/.omc/notes", "the user's own"),
            ("project/.omc/own", "the guest's own"),
            ("project/.omc/sub/own", "the guest's own"),
            ("project/.omc/read-only/kept", "kept"),
            ("project/.omc/read-only/sub/kept", "kept"),
        ] {
            write(&world.path(path), 0o600, text.as_bytes());
        }
        let scene = Self { world };
        // The trail's folder comes with the first record, and would be a difference.
        scene.act(&json!([]));
        scene
    }

    fn omc(&self, path: &str) -> PathBuf {
        self.world.path("project/.omc").join(path)
    }

    /// Everything that no guest may change.
    fn outside(&self) -> Snapshot {
        let trees = ["project", "home", "outside"].map(|tree| self.world.path(tree));
        Snapshot::of(&trees, &[self.omc(""), self.world.path("home/.local/state")])
    }

    /// Writes the user's configuration.
    fn configure(&self, text: &str) {
        write(&self.world.path("home/.config/omc-host/config.toml"), 0o600, text.as_bytes());
    }

    fn read_only(&self) -> Snapshot {
        Snapshot::of(&[self.omc("read-only")], &[])
    }

    fn run(&self, event: &Value) -> Run {
        Running::start(self.world.host(["hook", "--agent", "claude"]), event.to_string().into_bytes()).finish()
    }

    /// An event in this project.
    fn event(&self, kind: &str, more: &Value) -> Value {
        let mut event = json!({"hook_event_name": kind, "session_id": "s1", "cwd": self.world.project()});
        let members = event.as_object_mut().expect("it is an object");
        members.extend(more.as_object().expect("members are an object").clone());
        event
    }

    /// Lets the puppet act on a tool event, which it must survive without a word to the agent.
    fn act(&self, steps: &Value) -> Acted {
        let more = json!({"tool_name": "Bash", "tool_input": {"command": "ls"}, "puppet": steps});
        let run = self.run(&self.event("PreToolUse", &more));
        assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
        assert_eq!(String::from_utf8_lossy(&run.stdout), SILENCE);
        assert!(run.took < IN_TIME, "it took {:?}", run.took);
        let trail = self.world.trail();
        let record = trail.lines().last().map(serde_json::from_str::<Value>);
        let record = record.expect("the call left a record").expect("the record is JSON");
        assert_eq!(record["guest"]["name"], "puppet");
        let log = record["guest"]["log"].as_array().cloned().unwrap_or_default();
        let steps = log.iter().filter_map(|line| line.as_str()?.strip_prefix("info: ").map(str::to_owned)).collect();
        Acted { record: record["guest"].clone(), steps }
    }

    /// Lets the puppet act; every step must fail.
    fn act_in_vain(&self, steps: &[Value]) {
        // The log holds some dozens of lines.
        for steps in steps.chunks(16) {
            let acted = self.act(&Value::from(steps));
            assert_eq!(acted.record.get("fault"), None, "{}", acted.record);
            assert_eq!(acted.steps.len(), steps.len(), "a step said nothing: {:?}", acted.steps);
            for step in &acted.steps {
                assert!(step.contains(": error "), "it worked: {step}");
            }
        }
    }
}

/// Everything that a guest can do with a path.
fn verbs(path: &str) -> Vec<Value> {
    let below = format!("{path}/new");
    vec![
        json!({"read": path}),
        json!({"read-first-bytes": path}),
        json!({"list": path}),
        json!({"stat": path}),
        json!({"read-link": path}),
        json!({"write": [path, "x"]}),
        json!({"append": [path, "x"]}),
        json!({"truncate": path}),
        json!({"create-dir": below}),
        json!({"write": [below, "x"]}),
        json!({"remove": below}),
        json!({"remove-dir": below}),
        json!({"rename": ["/omc/own", below]}),
        json!({"rename": [below, "/omc/stolen"]}),
        json!({"hard-link": [path, "/omc/hard"]}),
        json!({"hard-link": ["/omc/own", below]}),
    ]
}

#[test]
fn links_that_a_repository_planted_lead_nowhere() {
    let scene = Scene::new();
    let outside = scene.world.path("outside");
    let targets: &[(&str, PathBuf)] = &[
        ("leaf", outside.join("precious")),
        ("folder", outside.clone()),
        ("relative", "../source.rs".into()),
        ("chain-1", "chain-2".into()),
        ("chain-2", "sub/chain-3".into()),
        ("sub/chain-3", outside.join("folder")),
        ("dangling", outside.join("new")),
        ("passwd", outside.join("passwd")),
        ("up", "..".into()),
        ("root", "/".into()),
        ("circle", "circle".into()),
        ("inside", "read-only".into()),
        ("sub/inside", "../own".into()),
    ];
    for (link, target) in targets {
        symlink(target, scene.omc(link)).unwrap();
    }
    let (before, kept) = (scene.outside(), scene.read_only());
    for (link, _) in targets {
        for path in [
            format!("/omc/{link}"),
            format!("/omc/{link}/"),
            format!("/omc/{link}/."),
            format!("/omc/sub/../{link}"),
            format!("/omc/./{link}/../{link}/kept"),
            format!("/omc/{link}/precious"),
        ] {
            scene.act_in_vain(&verbs(&path));
            before.assert_same(&scene.outside(), &path);
            kept.assert_same(&scene.read_only(), &path);
        }
    }
    let acted = scene.act(&json!([{"read": "/omc/leaf"}]));
    assert_eq!(acted.record["refused"], json!(["symbolic-link: /omc/leaf"]));
    assert_eq!(fs::read_to_string(scene.omc("own")).unwrap(), "the guest's own");
}

#[test]
fn a_link_can_be_cleared_away_without_touching_what_it_names() {
    let scene = Scene::new();
    for link in ["removed", "moved", "replaced"] {
        symlink(scene.world.path("outside/precious"), scene.omc(link)).unwrap();
    }
    let before = scene.outside();
    let acted = scene.act(&json!([
        {"remove": "/omc/removed"},
        {"rename": ["/omc/own", "/omc/replaced"]},
        {"write": ["/omc/replaced", "mine"]},
    ]));
    assert!(acted.steps.iter().all(|step| step.contains(": ok ")), "{:?}", acted.steps);
    before.assert_same(&scene.outside(), "clearing links away");
    assert_eq!(fs::read_to_string(scene.omc("replaced")).unwrap(), "mine");
}

#[test]
fn paths_that_climb_lead_nowhere() {
    let scene = Scene::new();
    let before = scene.outside();
    let outside = scene.world.path("outside").display().to_string();
    for path in [
        "/omc/..",
        "/omc/../source.rs",
        "/omc/../../outside/precious",
        "/omc/./../source.rs",
        "/omc/sub/../../source.rs",
        "/omc/sub/../../../outside/precious",
        "/omc/missing/../../source.rs",
        "/omc//../source.rs",
        "//omc/../source.rs",
        "/omc/../.omc/../source.rs",
        "/omc/own/../../source.rs",
        "/omc-user/notes",
        "/omc/../../home/.omc/notes",
        "/proc/self/environ",
        "/dev/stdin",
        "/",
        "",
        outside.as_str(),
        &format!("{outside}/precious"),
        &format!("/omc/..{outside}/precious"),
    ] {
        scene.act_in_vain(&verbs(path));
        before.assert_same(&scene.outside(), path);
    }
    let acted = scene.act(&json!([{"read": "/omc/../source.rs"}]));
    assert_eq!(acted.record["refused"], json!(["escape: /omc/../source.rs"]));
}

#[test]
fn what_is_granted_read_only_stays_as_it_is() {
    let scene = Scene::new();
    let (before, kept) = (scene.outside(), scene.read_only());
    for path in [
        "/omc/read-only/kept",
        "/omc/read-only/new",
        "/omc/read-only/sub/kept",
        "/omc/read-only/sub/new",
        "/omc/./read-only/kept",
        "/omc/sub/../read-only/kept",
        "/omc/read-only/sub/../kept",
        "/omc/read-only/./sub/./new",
    ] {
        scene.act_in_vain(&[
            json!({"write": [path, "x"]}),
            json!({"append": [path, "x"]}),
            json!({"truncate": path}),
            json!({"remove": path}),
            json!({"rename": [path, "/omc/stolen"]}),
            json!({"rename": ["/omc/own", path]}),
            json!({"rename": [path, format!("{path}-2")]}),
            json!({"hard-link": ["/omc/own", format!("{path}-2")]}),
            json!({"hard-link": [path, "/omc/hard"]}),
            json!({"create-dir": format!("{path}/folder")}),
        ]);
        kept.assert_same(&scene.read_only(), path);
    }
    scene.act_in_vain(&[
        json!({"rename": ["/omc/read-only", "/omc/moved"]}),
        json!({"rename": ["/omc/read-only/", "/omc/moved/"]}),
        json!({"rename": ["/omc/sub", "/omc/read-only"]}),
        json!({"rename": ["/omc/sub", "/omc/read-only/sub"]}),
        json!({"rename": ["/omc/read-only/sub", "/omc/sub-2"]}),
        json!({"remove-dir": "/omc/read-only"}),
        json!({"remove-dir": "/omc/read-only/sub"}),
        json!({"create-dir": "/omc/read-only/folder"}),
        // Names in other letters are other files here, and must be no way in where they are not.
        json!({"write": ["/omc/READ-ONLY/kept", "x"]}),
        json!({"write": ["/omc/Read-Only/KEPT", "x"]}),
        json!({"write": ["/omc/read-only./kept", "x"]}),
        json!({"write": ["/omc/read-only /kept", "x"]}),
    ]);
    kept.assert_same(&scene.read_only(), "renaming folders");

    let acted = scene.act(&json!([
        {"read": "/omc/read-only/kept"},
        {"list": "/omc/read-only"},
        {"stat": "/omc/read-only/sub/kept"},
    ]));
    assert_eq!(
        acted.steps,
        ["read /omc/read-only/kept: ok 4", "list /omc/read-only: ok 2", "stat /omc/read-only/sub/kept: ok 4"]
    );
    kept.assert_same(&scene.read_only(), "reading");
    before.assert_same(&scene.outside(), "all of it");
}

#[test]
fn pipes_sockets_and_second_names_are_refused_at_once() {
    let scene = Scene::new();
    rustix::fs::mknodat(rustix::fs::CWD, scene.omc("pipe"), rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    let _listening = UnixListener::bind(scene.omc("socket")).unwrap();
    fs::hard_link(scene.world.path("outside/precious"), scene.omc("second-name")).unwrap();
    let before = scene.outside();
    for path in ["/omc/pipe", "/omc/socket"] {
        scene.act_in_vain(&[
            json!({"read": path}),
            json!({"read-first-bytes": path}),
            json!({"list": path}),
            json!({"write": [path, "x"]}),
            json!({"append": [path, "x"]}),
            json!({"truncate": path}),
            json!({"rename": [path, "/omc/moved"]}),
            json!({"create-dir": format!("{path}/folder")}),
        ]);
    }
    scene.act_in_vain(&[
        json!({"write": ["/omc/second-name", "x"]}),
        json!({"append": ["/omc/second-name", "x"]}),
        json!({"truncate": "/omc/second-name"}),
    ]);
    before.assert_same(&scene.outside(), "special files");
}

#[test]
fn a_transcript_that_is_no_file_of_the_users_holds_nobody_up() {
    let grants = vec!["transcript".to_owned()];
    let scene = Scene { world: World::new(&[Guest { name: "puppet".to_owned(), grants }]) };
    let pipe = scene.world.path("outside/pipe.jsonl");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    write(&scene.world.path("outside/secret"), 0o600, b"secret\n");
    symlink(scene.world.path("outside/secret"), scene.world.path("outside/none.txt")).unwrap();
    let outside = scene.world.path("outside");
    for path in [pipe, outside.join("secret"), outside.join("none.txt"), outside, "relative.jsonl".into(), "".into()] {
        let more = json!({"transcript_path": path, "tool_name": "Bash", "puppet": [{"transcript": 1000}]});
        let run = scene.run(&scene.event("PreToolUse", &more));
        assert_eq!((run.code, String::from_utf8_lossy(&run.stdout).as_ref()), (Some(0), SILENCE));
        assert!(run.took < IN_TIME);
        assert!(scene.world.trail().ends_with("\"log\":[\"info: transcript: None\"]}}\n"), "{}", scene.world.trail());
    }
}

#[test]
fn files_without_end_are_read_to_a_limit() {
    let scene = Scene::new();
    fs::File::create(scene.omc("huge")).unwrap().set_len(3 << 30).unwrap();
    let acted = scene.act(&json!([{"read-first-bytes": "/omc/huge"}, {"stat": "/omc/huge"}]));
    assert_eq!(acted.steps, ["read-first-bytes /omc/huge: ok 16", "stat /omc/huge: ok 3221225472"]);
    let acted = scene.act(&json!([{"read": "/omc/huge"}]));
    let stopped = acted.record["fault"]["kind"] == "memory" || acted.steps[0].contains(": error ");
    assert!(stopped, "{}", acted.record);
    assert!(acted.record["memory-bytes"].as_u64().unwrap() <= 128 << 20);
}

#[test]
fn folders_without_end_are_listed_to_a_limit() {
    let scene = Scene::new();
    // On a busy machine the limit on time would come first.
    scene.configure("[limits]\ncall-deadline-ms = 2_500\n");
    fs::create_dir(scene.omc("many")).unwrap();
    for number in 0..10_100 {
        fs::File::create(scene.omc("many").join(number.to_string())).unwrap();
    }
    let acted = scene.act(&json!([{"list": "/omc/many"}]));
    assert_eq!(acted.record["refused"], json!(["limit: listed-entries"]), "{}", acted.record);
}

#[test]
fn an_omc_that_is_not_the_users_own_folder_gives_nothing() {
    let plants: &[(&str, Plant)] = &[
        ("a link to a folder", |omc, elsewhere| symlink(elsewhere, omc).unwrap()),
        ("a dangling link", |omc, elsewhere| symlink(elsewhere.join("new"), omc).unwrap()),
        ("a file", |omc, _| write(omc, 0o600, b"x")),
        ("a pipe", |omc, _| {
            rustix::fs::mknodat(rustix::fs::CWD, omc, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        }),
        ("somebody else's folder", |omc, _| {
            create_dirs(omc);
            write(&omc.join("own"), 0o600, b"x");
            // Only root can give a folder away; for others there is no such folder to try.
            if chown(omc, Some(54_321), None).is_err() {
                fs::remove_dir_all(omc).unwrap();
                write(omc, 0o600, b"x");
            }
        }),
    ];
    for (what, plant) in plants {
        let scene = Scene::new();
        fs::remove_dir_all(scene.omc("")).unwrap();
        let omc = scene.world.path("project/.omc");
        plant(&omc, &scene.world.path("outside/folder"));
        let trees = ["project", "outside"].map(|tree| scene.world.path(tree));
        let before = Snapshot::of(&trees, &[]);
        for path in ["/omc", "/omc/own", "/omc/state", "/omc/read-only/kept"] {
            scene.act_in_vain(&verbs(path));
        }
        let run =
            scene.run(&scene.event("UserPromptSubmit", &json!({"prompt": "ralph: fix src/queue.rs until tests pass"})));
        assert_eq!(run.code, Some(0), "{what}");
        assert_eq!(scene.run(&scene.event("Stop", &json!({}))).stdout, b"", "{what}");
        before.assert_same(&Snapshot::of(&trees, &[]), what);
    }
}

#[test]
fn a_text_that_is_too_long_is_not_kept_where_a_repository_leads_it() {
    let plants: &[(&str, Plant)] = &[
        ("a link to a folder", |spill, elsewhere| symlink(elsewhere, spill).unwrap()),
        ("a dangling link", |spill, elsewhere| symlink(elsewhere.join("new"), spill).unwrap()),
        ("a file", |spill, _| write(spill, 0o600, b"x")),
        ("a pipe", |spill, _| {
            rustix::fs::mknodat(rustix::fs::CWD, spill, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        }),
        ("a link in it", |spill, elsewhere| {
            create_dirs(spill);
            symlink(elsewhere.join("deep"), spill.join(".gitignore")).unwrap();
        }),
    ];
    for (what, plant) in plants {
        let scene = Scene::new();
        plant(&scene.omc("spill"), &scene.world.path("outside/folder"));
        let before = scene.outside();
        let more =
            json!({"prompt": "ralph: fix src/queue.rs until tests pass", "puppet": [{"context-of-units": 9990}]});
        let run = scene.run(&scene.event("UserPromptSubmit", &more));
        let answer: Value = serde_json::from_slice(&run.stdout).expect("an answer");
        let context = answer["hookSpecificOutput"]["additionalContext"].as_str().expect("a context");
        assert!(context.starts_with("[MAGIC KEYWORD: RALPH]") && context.len() <= 10_000, "{what}: {context}");
        assert!(run.took < IN_TIME, "{what}: it took {:?}", run.took);
        before.assert_same(&scene.outside(), what);
    }
}

#[test]
fn an_event_in_which_nobody_writes_leaves_no_trace() {
    let scene =
        Scene { world: World::new(&[Guest { name: "puppet".to_owned(), grants: vec!["omc=rw:/omc".to_owned()] }]) };
    let before = Snapshot::of(&[scene.world.project()], &[]);
    for (kind, more) in [
        ("UserPromptSubmit", json!({"prompt": "what does this do?"})),
        (
            "UserPromptSubmit",
            json!({"prompt": "hello", "puppet": [{"list": "/omc"}, {"stat": "/omc/x"}, {"read": "/omc/x"}]}),
        ),
        ("PreToolUse", json!({"tool_name": "Bash", "tool_input": {"command": "ls"}})),
        ("PreToolUse", json!({"tool_name": "Skill", "tool_input": {"skill": "ralph"}})),
        ("PostToolUse", json!({"tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_response": ""})),
        ("SessionStart", json!({"source": "startup"})),
        ("Stop", json!({"stop_hook_active": false})),
        ("SubagentStop", json!({"stop_hook_active": false})),
        ("SessionEnd", json!({"reason": "other"})),
    ] {
        assert_eq!(scene.run(&scene.event(kind, &more)).code, Some(0), "{kind}");
        before.assert_same(&Snapshot::of(&[scene.world.project()], &[]), kind);
    }
}

#[test]
fn an_event_that_comes_slowly_is_judged_all_the_same() {
    /// Shorter than the silence after which the host takes an event for incomplete.
    const PAUSE: Duration = Duration::from_millis(700);
    let scene = Scene::new();
    let more = json!({"prompt": "hello", "puppet": [{"block": "not here"}]});
    let event = scene.event("UserPromptSubmit", &more).to_string().into_bytes();
    // Longer than an event may take once it is there.
    let pieces = event.chunks(event.len().div_ceil(5)).map(<[u8]>::to_vec).collect();
    let run = Running::start_slowly(scene.world.host(["hook", "--agent", "claude"]), pieces, PAUSE).finish();
    assert!(run.took > PAUSE * 4);
    assert!(String::from_utf8_lossy(&run.stdout).contains("not here"), "{}", scene.world.trail());
}

#[test]
fn a_host_that_is_held_up_lets_nothing_past_a_required_guest() {
    use rustix::process::{Pid, Signal, kill_process};

    let scene = Scene::new();
    scene.configure("[guests.puppet]\nrequired = true\nlimits = { fuel = 1_000_000_000_000 }\n");
    let more = json!({"tool_name": "Bash", "tool_input": {"command": "ls"}, "puppet": [{"loop": null}]});
    let event = scene.event("PreToolUse", &more);
    let running = Running::start(scene.world.host(["hook", "--agent", "claude"]), event.to_string().into_bytes());
    // The guest is at it when the host is stopped, and every deadline has passed when it goes on.
    let host = Pid::from_child(&running.child);
    thread::sleep(Duration::from_millis(400));
    kill_process(host, Signal::STOP).unwrap();
    thread::sleep(Duration::from_millis(2_500));
    kill_process(host, Signal::CONT).unwrap();
    let run = running.finish();
    let answer = String::from_utf8_lossy(&run.stdout);
    assert_eq!(run.code, Some(0));
    assert!(answer.contains("\"deny\"") && answer.contains("is required here and could not judge"), "{answer}");
}

#[test]
fn an_agent_that_has_gone_away_still_finds_a_record() {
    let scene = Scene::new();
    let records = scene.world.trail().lines().count();
    let mut command = scene.world.host(["hook", "--agent", "claude"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let event = scene.event("PreToolUse", &json!({"tool_name": "Bash", "puppet": [{"block": "not here"}]}));
    child.stdin.take().unwrap().write_all(event.to_string().as_bytes()).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(scene.world.trail().lines().count(), records + 1);
}

/// A scene in which ralph holds the agent, however often it is refused.
fn at_work() -> Scene {
    let scene = Scene::new();
    let settings = scene.world.path("home/.config/claude-omc/config.jsonc");
    write(&settings, 0o600, br#"{"persistentMode": {"noProgressLimit": 1000}}"#);
    for (kind, more) in [
        ("UserPromptSubmit", json!({"prompt": "ralph: fix src/queue.rs until all tests pass"})),
        ("PreToolUse", json!({"tool_name": "Skill", "tool_input": {"skill": "ralph"}})),
    ] {
        assert_eq!(scene.run(&scene.event(kind, &more)).code, Some(0));
    }
    assert_eq!(scene.iteration(), 1);
    scene
}

impl Scene {
    fn stop(&self) -> Running {
        let event = self.event("Stop", &json!({"stop_hook_active": false}));
        Running::start(self.world.host(["hook", "--agent", "claude"]), event.to_string().into_bytes())
    }

    /// The iteration in ralph's state, which must be whole.
    fn iteration(&self) -> u64 {
        let bytes = fs::read(self.omc("state/sessions/s1/ralph-state.json")).expect("there is always a state");
        let state: Value = serde_json::from_slice(&bytes).expect("a state is never torn");
        state["iteration"].as_u64().expect("a state counts")
    }

    /// The names in the session's folder.
    fn session_files(&self) -> BTreeSet<String> {
        let entries = fs::read_dir(self.omc("state/sessions/s1")).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }
}

/// The iteration that a refusal names; absent if the agent may stop.
fn refused_iteration(run: &Run) -> Option<u64> {
    let answer: Value = serde_json::from_slice(&run.stdout).ok()?;
    let reason = answer["reason"].as_str()?.strip_prefix("[RALPH LOOP - ITERATION ")?;
    reason.split_once('/')?.0.parse().ok()
}

#[test]
fn a_guest_holds_up_nobody_who_writes_where_it_may_not() {
    let grants = vec!["omc=rw:/omc/guests/mine".to_owned()];
    let scene = Scene { world: World::new(&[Guest { name: "puppet".to_owned(), grants }]) };
    let more = json!({"prompt": "ralph: fix src/queue.rs until all tests pass", "puppet": [
        {"lock": "."}, {"lock": "state"}, {"lock": "guests"}, {"lock": "guests/other"}, {"lock": "guests/mine/../.."},
        {"lock": "guests/mine/deep"}, {"hold-lock": ["guests/mine", 900]},
    ]});
    let run = scene.run(&scene.event("UserPromptSubmit", &more));
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    let trail = scene.world.trail();
    let record = |guest: &str| {
        let records = trail.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["guest"].clone());
        records.into_iter().find(|record| record["name"] == guest).unwrap_or_else(|| panic!("no {guest} in {trail}"))
    };
    let locks: Vec<_> = record("puppet")["log"].as_array().unwrap().iter().map(ToString::to_string).collect();
    let held: Vec<_> = locks.iter().filter(|line| line.contains(": held")).collect();
    assert_eq!((locks.len(), held.len()), (7, 2), "{locks:?}");
    assert!(held.iter().all(|line| line.contains("guests/mine")), "{locks:?}");
    assert!(!record("keyword-detector")["log"].to_string().contains("failed to get the lock"), "{trail}");
    assert!(scene.omc("state/sessions/s1/ralph-state.json").exists());
    let mut folders: Vec<_> =
        fs::read_dir(scene.omc("guests")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    folders.sort();
    assert_eq!(folders, ["mine"], "nothing is made where it may not write");
}

#[test]
fn a_lock_is_no_way_to_make_folders_beyond_the_limit() {
    let scene = Scene::new();
    scene.configure("[limits]\nnew-files = 3\n");
    let acted = scene.act(&json!([{"lock": "a/b"}, {"lock": "c/d/e"}, {"lock": "read-only/new"}, {"lock": "a"}]));
    assert_eq!(acted.steps, ["lock a/b: held", "lock c/d/e: not held", "lock read-only/new: not held", "lock a: held"]);
    assert!(acted.record["refused"].to_string().contains("limit: new-files"), "{}", acted.record);
    assert!(!scene.omc("c/d").exists() && !scene.omc("read-only/new").exists());
}

#[test]
fn a_deadline_does_not_make_the_trail_tell_a_little_fuel_from_much() {
    let scene = Scene::new();
    scene.configure("[guests.puppet.limits]\ncall-deadline-ms = 60\nfuel = 1_000_000_000_000\n");
    let stopped = scene.act(&json!([{"loop": true}])).record;
    assert_eq!((&stopped["fault"]["kind"], stopped.get("fuel")), (&json!("deadline"), None), "{stopped}");
    scene.configure("[guests.puppet.limits]\nfuel = 100_000_000\n");
    let spent = scene.act(&json!([{"loop": true}])).record;
    assert_eq!(spent["fault"]["kind"], "fuel");
    assert!(spent["fuel"].as_u64().is_some_and(|fuel| fuel >= 100_000_000), "{spent}");
}

#[test]
fn death_at_any_moment_leaves_the_old_or_the_new_state() {
    /// Steps through all of an event, which takes some ten milliseconds.
    const STEP: Duration = Duration::from_micros(250);
    const DEATHS: u32 = 64;
    let scene = at_work();
    let mut before = scene.iteration();
    for death in 0..DEATHS {
        let running = scene.stop();
        thread::sleep(STEP * death);
        running.kill();
        let now = scene.iteration();
        assert!(now == before || now == before + 1, "death {death}: {before} became {now}");
        before = now;
    }
    // Locks died with their holders, and debris is in nobody's way.
    let run = scene.stop().finish();
    assert_eq!(refused_iteration(&run), Some(before + 1));
    let known = ["ralph-state.json", "ultrawork-state.json", "no-progress-stop-breaker.json"];
    for name in scene.session_files() {
        assert!(known.contains(&name.as_str()) || name.starts_with(".tmp-"), "what is `{name}`?");
    }
    for line in scene.world.trail().lines() {
        serde_json::from_str::<Value>(line).expect("a record is never torn");
    }
}

#[test]
fn a_guest_that_misbehaves_costs_no_other_guest_its_say() {
    const ROUNDS: usize = 20;
    let scene = Scene::new();
    // Enough to get in the way of others, and short, because there are many rounds.
    let limits = "[guests.puppet.limits]\ncall-deadline-ms = 60\nfuel = 1_000_000_000_000\n";
    scene.configure(limits);
    for round in 0..ROUNDS {
        let step = [json!({"loop": null}), json!({"sleep-ms": 5000}), json!({"allocate": null})][round % 3].clone();
        let more = json!({"prompt": "ralph: fix src/queue.rs until all tests pass", "session_id": format!("s{round}"), "puppet": [step]});
        let run = scene.run(&scene.event("UserPromptSubmit", &more));
        let answer: Value = serde_json::from_slice(&run.stdout).expect("an answer");
        let context = answer["hookSpecificOutput"]["additionalContext"].as_str().expect("the other guest's text");
        assert!(context.starts_with("[MAGIC KEYWORD: RALPH]"), "round {round}: {context}");
        assert!(run.took < IN_TIME, "round {round} took {:?}", run.took);
        // Otherwise it would be set aside.
        scene.world.forget_faults();
    }
    let trail = scene.world.trail();
    let records = |guest: &str| {
        let records = trail.lines().map(|line| serde_json::from_str::<Value>(line).expect("a record"));
        let calls: Vec<_> =
            records.map(|record| record["guest"].clone()).filter(|call| call["name"] == guest).collect();
        calls
    };
    let honest = records("keyword-detector");
    assert_eq!(honest.len(), ROUNDS);
    assert!(honest.iter().all(|call| call.get("fault").is_none()), "{honest:?}");
    let faults = records("puppet").iter().filter(|call| call.get("fault").is_some()).count();
    assert_eq!(faults, ROUNDS);
}
