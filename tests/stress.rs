//! Many at once, death at any moment, full disks, and guests that stand in each other's way: through the real host, and on the
//! formats of `.omc` without it.
//!
//! Time decides in these tests, and machines are slow when it matters least. So they demand what must hold on any machine (the
//! answer is in time, nothing is lost or torn, what is recorded is what happened), never that something was quick.
#![cfg(target_os = "linux")]

mod small_disk;
mod world;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{PoisonError, RwLock};
use std::thread;
use std::time::{Duration, SystemTime};

use omc_state::{Error, Locker, Mode, ModeState, NewMode, SessionId, Store, Timestamp};
use rustix::fs::{CWD, FileType, FlockOperation, flock, makedev, mknodat};
use serde_json::{Value, json};

use small_disk::SmallDisk;
use world::{Guest, Run, Running, World, compiler, component, create_dirs, write};

/// Longest time for an answer: the design's bound for an event, and the process around it.
const IN_TIME: Duration = Duration::from_secs(3);

/// Written to while a crowd is on the machine: what must be in time then waits for its end.
static CROWD: RwLock<()> = RwLock::new(());

/// An event of this project as Claude Code sends it.
fn event(world: &World, kind: &str, more: &Value) -> Value {
    let mut event = json!({"hook_event_name": kind, "session_id": "s1", "cwd": world.project()});
    let members = event.as_object_mut().expect("it is an object");
    members.extend(more.as_object().expect("members are an object").clone());
    event
}

fn start(world: &World, kind: &str, more: &Value) -> Running {
    Running::start(world.host(["hook", "--agent", "claude"]), event(world, kind, more).to_string().into_bytes())
}

/// Sends an event; the answer must be in time, without a complaint.
fn send(world: &World, kind: &str, more: &Value) -> Run {
    let alone = CROWD.read().unwrap_or_else(PoisonError::into_inner);
    let run = start(world, kind, more).finish();
    drop(alone);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{kind}");
    assert!(run.took < IN_TIME, "{kind} took {:?}", run.took);
    run
}

/// The records of one guest's calls, in the order in which they were written.
fn records(world: &World, guest: &str) -> Vec<Value> {
    let trail = world.trail();
    let records = trail.lines().map(|line| serde_json::from_str::<Value>(line).expect("a record is never torn"));
    records.map(|record| record["guest"].clone()).filter(|call| call["name"] == guest).collect()
}

const PROMPT: &str = "ralph: fix src/queue.rs until all tests pass";

/// A world in which ralph holds the agent, however often it is refused.
fn at_work(world: &World) {
    let settings = world.path("home/.config/claude-omc/config.jsonc");
    write(&settings, 0o600, br#"{"persistentMode": {"noProgressLimit": 1000}}"#);
    send(world, "UserPromptSubmit", &json!({"prompt": PROMPT}));
    send(world, "PreToolUse", &json!({"tool_name": "Skill", "tool_input": {"skill": "ralph"}}));
    assert_eq!(iteration(world), 1);
}

/// Where ralph's state is.
fn state_file(world: &World) -> PathBuf {
    world.path("project/.omc/state/sessions/s1/ralph-state.json")
}

/// The iteration in ralph's state, which must be whole.
fn iteration(world: &World) -> u64 {
    let bytes = fs::read(state_file(world)).expect("there is always a state");
    let state: Value = serde_json::from_slice(&bytes).expect("a state is never torn");
    state["iteration"].as_u64().expect("a state counts")
}

/// The iteration that a refusal names; absent if the agent may stop.
fn refused_iteration(run: &Run) -> Option<u64> {
    let answer: Value = serde_json::from_slice(&run.stdout).ok()?;
    // The last of a hundred is past ralph's limit, and says first that it was extended.
    let (_, reason) = answer["reason"].as_str()?.split_once("[RALPH LOOP - ITERATION ")?;
    reason.split_once('/')?.0.parse().ok()
}

/// The names in a folder.
fn names(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).expect("the folder can be listed");
    entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("our names are UTF-8")).collect()
}

#[test]
fn a_hundred_events_at_once_lose_no_update_and_a_reader_always_sees_a_whole_file() {
    const EVENTS: usize = 100;
    let world = World::new(&[]);
    at_work(&world);
    let crowd = CROWD.write().unwrap_or_else(PoisonError::into_inner);
    let done = AtomicBool::new(false);
    let runs: Vec<Run> = thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let (mut last, mut reads) = (0, 0_u32);
            while !done.load(Ordering::Relaxed) {
                let now = iteration(&world);
                assert!(now >= last, "the count went from {last} to {now}");
                (last, reads) = (now, reads + 1);
            }
            reads
        });
        let running: Vec<_> = (0..EVENTS).map(|_| start(&world, "Stop", &json!({}))).collect();
        let runs = running.into_iter().map(Running::finish).collect();
        done.store(true, Ordering::Relaxed);
        assert!(reader.join().expect("the reader saw only whole files") > 0);
        runs
    });
    drop(crowd);
    assert!(runs.iter().all(|run| run.code == Some(0) && run.stderr.is_empty()));

    let said: Vec<u64> = runs.iter().filter_map(refused_iteration).collect();
    assert_eq!(said.len(), said.iter().collect::<BTreeSet<_>>().len(), "two refusals have one number: {said:?}");
    // A machine with other work may not give a guest the lock or the time. Then it says so, and no refusal names its number.
    let stops = records(&world, "persistent-mode");
    let gave_up = |call: &&Value| call.get("fault").is_some() || call["log"].to_string().contains("let the agent stop");
    let explained = stops.iter().filter(gave_up).count();
    assert_eq!(said.len() + explained, EVENTS, "{stops:#?}");
    let counted = iteration(&world) - 1;
    assert!(said.iter().all(|number| (2..=counted + 1).contains(number)), "{said:?}, {counted} counted");
    assert!(said.len() as u64 <= counted && counted <= EVENTS as u64);
    let debris: Vec<_> = names(&world.path("project/.omc/state/sessions/s1"))
        .into_iter()
        .filter(|name| name.starts_with(".tmp-"))
        .collect();
    // A writer that was given up at the event's end dies with its process.
    assert!(debris.len() <= explained, "{debris:?}");
}

/// A lock between processes, on the folder itself, which its holder waits for as long as it takes.
struct FolderLock(PathBuf);

impl Locker for FolderLock {
    type Guard = fs::File;
    type Error = io::Error;

    fn lock(&self, _name: &str, _wait: Duration) -> io::Result<fs::File> {
        let folder = fs::File::open(&self.0)?;
        flock(&folder, FlockOperation::LockExclusive)?;
        Ok(folder)
    }
}

fn session() -> SessionId {
    SessionId::parse("s1").expect("an id")
}

fn now() -> Timestamp {
    SystemTime::now().into()
}

/// A text in the state, long enough that writing it takes more than one page.
fn filling(count: u64) -> String {
    format!("{count}-").repeat(4_000)
}

/// Counts once in ralph's state, as a Stop does.
fn count_once(store: &Store, locker: &FolderLock) -> Result<(), Error> {
    let session = session();
    store.locked(locker, &session, |store| {
        let mut state = store.read_mode(&session, Mode::Ralph)?.expect("the state is there");
        let next = state.fields().count("iteration").expect("a state counts") + 1;
        state.fields_mut().set("iteration", next);
        state.fields_mut().set("filling", filling(next));
        store.write_mode(&session, Mode::Ralph, &state)
    })
}

/// A store in which ralph is at iteration 1.
fn store_at_work(folder: &Path) -> Store {
    let store = Store::new(folder);
    let session = session();
    let start =
        NewMode { session: &session, prompt: "fix it", project_path: None, awaiting_confirmation: false, now: now() };
    let mut state = ModeState::new(Mode::Ralph, &start);
    state.fields_mut().set("filling", filling(1));
    store.write_mode(&session, Mode::Ralph, &state).expect("a state can be written");
    store
}

/// The count in the state, which must be whole.
fn counted(store: &Store) -> u64 {
    let state = store.read_mode(&session(), Mode::Ralph).expect("a state is never torn").expect("a state is there");
    let count = state.fields().count("iteration").expect("a state counts");
    assert!(state.fields().text("filling") == Some(&filling(count)), "two versions are mixed");
    count
}

#[test]
fn a_hundred_writers_of_one_file_lose_no_update() {
    const WRITERS: u64 = 100;
    let folder = tempfile::tempdir().expect("a folder");
    let store = store_at_work(folder.path());
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    counted(&store);
                }
            });
        }
        // Each opens the folder itself, so that they lock each other out as processes do.
        let writers: Vec<_> = (0..WRITERS)
            .map(|_| scope.spawn(|| count_once(&store, &FolderLock(folder.path().to_owned())).expect("counted")))
            .collect();
        for writer in writers {
            writer.join().expect("no writer fails");
        }
        done.store(true, Ordering::Relaxed);
    });
    assert_eq!(counted(&store), 1 + WRITERS);
    let files = names(&folder.path().join("state/sessions/s1"));
    assert_eq!(files, BTreeSet::from(["ralph-state.json".to_owned()]), "debris, or a file taken for corrupt");
}

/// Names the folder in which [`the_process_that_is_killed`] counts.
const KILLED_IN: &str = "OMC_TEST_KILLED_IN";

#[test]
#[ignore = "the process that `a_writer_that_is_killed_at_any_moment_leaves_the_old_or_the_new_file` kills"]
fn the_process_that_is_killed() {
    let Some(folder) = std::env::var_os(KILLED_IN).map(PathBuf::from) else { return };
    let store = Store::new(&folder);
    while count_once(&store, &FolderLock(folder.clone())).is_ok() {}
}

#[test]
fn a_writer_that_is_killed_at_any_moment_leaves_the_old_or_the_new_file() {
    const DEATHS: u32 = 60;
    let folder = tempfile::tempdir().expect("a folder");
    let store = store_at_work(folder.path());
    let spawn = || -> Child {
        let mut command = Command::new(std::env::current_exe().expect("the path of this program"));
        command.args(["--exact", "the_process_that_is_killed", "--ignored"]).env(KILLED_IN, folder.path());
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("this program starts")
    };
    let mut last = counted(&store);
    for death in 0..DEATHS {
        let mut writer = spawn();
        // Until it is at work: then it writes without a pause, so that death comes at any point of a write.
        while counted(&store) < last + 2 {
            assert!(writer.try_wait().expect("a child can be asked").is_none(), "the writer ended by itself");
        }
        thread::sleep(Duration::from_micros(u64::from(death % 20) * 97));
        writer.kill().expect("it is there");
        writer.wait().expect("it was there");
        let now = counted(&store);
        assert!(now >= last + 2);
        last = now;
    }

    // Its lock died with it, and what it left is swept once it is old.
    let session_folder = folder.path().join("state/sessions/s1");
    write(&session_folder.join(".tmp-of-one-more"), 0o600, b"{\"iteration\": 1");
    let debris: Vec<_> = names(&session_folder).into_iter().filter(|name| name.starts_with(".tmp-")).collect();
    for name in &debris {
        let file = fs::File::options().write(true).open(session_folder.join(name)).expect("debris");
        file.set_modified(SystemTime::now() - Duration::from_mins(2)).expect("a time");
    }
    count_once(&store, &FolderLock(folder.path().to_owned())).expect("nobody holds the lock");
    assert_eq!(counted(&store), last + 1);
    assert_eq!(names(&session_folder), BTreeSet::from(["ralph-state.json".to_owned()]));
}

/// What every attempt to write must come to on a disk that takes nothing: answers as if there were no state, the old state as it
/// was, and a record that says why. A session that ends is left out: it takes its state away, for which there is always room.
fn nothing_can_be_written(world: &World, why: &str) {
    let before = fs::read(state_file(world)).expect("a state");
    let files = names(&world.path("project/.omc/state/sessions/s1"));
    for (kind, more) in [
        ("Stop", json!({})),
        ("UserPromptSubmit", json!({"prompt": "autopilot: build src/queue.rs and its tests"})),
        ("PreToolUse", json!({"tool_name": "Skill", "tool_input": {"skill": "ralph"}})),
        ("PostToolUse", json!({"tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_response": ""})),
    ] {
        let run = send(world, kind, &more);
        assert_eq!(refused_iteration(&run), None, "nobody is held by a count that cannot be written");
    }
    assert_eq!(fs::read(state_file(world)).expect("a state"), before);
    assert_eq!(names(&world.path("project/.omc/state/sessions/s1")), files);
    for (guest, says) in
        [("persistent-mode", "let the agent stop"), ("keyword-detector", "not every state could be written")]
    {
        let calls = records(world, guest);
        let is_clear = |call: &Value| call["log"].to_string().contains(says) && call.to_string().contains(why);
        assert!(calls.iter().any(is_clear), "`{guest}` does not say `{why}`: {calls:#?}");
    }
}

#[test]
fn a_full_disk_damages_nothing_and_is_recorded() {
    let world = World::new(&[]);
    let Some(disk) = SmallDisk::mount(&world.path("project/.omc")) else { return };
    at_work(&world);
    disk.fill();
    nothing_can_be_written(&world, "disk-full: ");
    // A session that ends is not forgotten where there is no room for its summary.
    let before = fs::read(state_file(&world)).expect("a state");
    let mut command = world.host(["hook", "--agent", "claude"]);
    command.env_remove("OMC_SKIP_HOOKS");
    let end = event(&world, "SessionEnd", &json!({"reason": "other"})).to_string().into_bytes();
    assert_eq!(Running::start(command, end).finish().code, Some(0));
    assert_eq!(fs::read(state_file(&world)).expect("a state"), before);
    fs::remove_file(world.path("project/.omc/filling")).expect("it is there");
    assert_eq!(refused_iteration(&send(&world, "Stop", &json!({}))), Some(2), "with room again, work goes on");
}

#[test]
fn a_read_only_folder_damages_nothing_and_is_recorded() {
    let world = World::new(&[]);
    let omc = world.path("project/.omc");
    // Modes do not bind root, and mounting does not work for others.
    let disk = SmallDisk::mount(&omc);
    at_work(&world);
    let session_folder = omc.join("state/sessions/s1");
    let set_mode = |mode| fs::set_permissions(&session_folder, fs::Permissions::from_mode(mode)).expect("our folder");
    match &disk {
        Some(disk) => disk.remount("remount,ro"),
        None => set_mode(0o500),
    }
    nothing_can_be_written(&world, if disk.is_some() { "disk-read-only: " } else { "Permission denied" });
    match &disk {
        Some(disk) => disk.remount("remount,rw"),
        None => set_mode(0o700),
    }
    assert_eq!(refused_iteration(&send(&world, "Stop", &json!({}))), Some(2), "with rights again, work goes on");
}

/// The puppet, and beside it a second one that obeys another member of the payload.
fn world_of_two() -> World {
    let world = World::new(&[Guest { name: "puppet".to_owned(), grants: vec!["omc=rw:/omc".to_owned()] }]);
    // Its name and its member have as many letters, so that the component stays a component.
    let mut bytes = fs::read(component("puppet")).expect("the puppet was built");
    let (name, twin) = (b"puppet", b"poppet");
    for at in 0..bytes.len().saturating_sub(name.len()) {
        if bytes[at..].starts_with(name) {
            bytes[at..at + name.len()].copy_from_slice(twin);
        }
    }
    let path = world.path("outside/poppet.wasm");
    write(&path, 0o600, &bytes);
    let mut command = world.host(["guests", "add"]);
    command.arg(&path).args(["--yes", "--compiler"]).arg(compiler());
    let run = Running::start(command, Vec::new()).finish();
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    world
}

#[test]
fn a_looping_guest_costs_a_busy_one_beside_it_nothing() {
    const ROUNDS: usize = 50;
    /// Longer than the looping guest may take, so that the busy one is at work when that is stopped.
    const BUSY: Duration = Duration::from_millis(100);
    /// Rounds between two in which nobody loops: a guest that always faults is no longer called.
    const CALM: usize = 4;
    let world = world_of_two();
    let config = "[limits]\nfuel = 1_000_000_000_000\nhost-calls = 100_000_000\nevent-deadline-ms = 2_500\n\
                  [guests.puppet.limits]\ncall-deadline-ms = 50\n\
                  [guests.poppet.limits]\ncall-deadline-ms = 2_400\n";
    write(&world.path("home/.config/omc-host/config.toml"), 0o600, config.as_bytes());
    for round in 0..ROUNDS {
        if round % CALM == 0 {
            send(&world, "PreToolUse", &json!({"tool_name": "Bash"}));
        }
        let more = json!({
            "tool_name": "Bash",
            "tool_input": {"command": "ls"},
            "puppet": [{"loop": null}],
            "poppet": [{"spin-ms": BUSY.as_millis()}, {"message": format!("round {round}")}],
        });
        let run = send(&world, "PreToolUse", &more);
        let answer: Value = serde_json::from_slice(&run.stdout).expect("an answer");
        assert_eq!(answer["systemMessage"], format!("round {round}"), "{}", world.trail());
    }
    let (looping, busy) = (records(&world, "puppet"), records(&world, "poppet"));
    assert!(busy.iter().all(|call| call.get("fault").is_none()), "{busy:#?}");
    let at_work =
        busy.iter().filter(|call| u128::from(call["micros"].as_u64().unwrap_or_default()) >= BUSY.as_micros());
    assert!(at_work.count() >= ROUNDS);
    let faults: Vec<_> = looping.iter().filter_map(|call| call.get("fault")).collect();
    assert!(faults.len() >= ROUNDS);
    assert!(faults.iter().all(|fault| fault["kind"] == "deadline"), "{faults:#?}");
}

#[test]
fn a_lock_that_somebody_keeps_holds_nobody_up() {
    let world = World::new(&[]);
    at_work(&world);
    let folder = fs::File::open(world.path("project/.omc/state")).expect("it is there");
    flock(&folder, FlockOperation::LockExclusive).expect("nobody holds it");
    let run = send(&world, "Stop", &json!({}));
    assert_eq!(refused_iteration(&run), None);
    let last = records(&world, "persistent-mode").pop().expect("a record");
    let log = last["log"].to_string();
    assert!(log.contains("let the agent stop"), "{last:#}");
    assert!(log.contains("failed to get the lock `state`: somebody else held it for the whole time\""), "{last:#}");
    assert_eq!(iteration(&world), 1);
    drop(folder);
    assert_eq!(refused_iteration(&send(&world, "Stop", &json!({}))), Some(2));
}

#[test]
fn a_file_that_grows_while_it_is_read_is_read_to_a_limit() {
    let world = World::new(&[Guest { name: "puppet".to_owned(), grants: vec!["omc=rw:/omc".to_owned()] }]);
    let path = world.path("project/.omc/growing");
    write(&path, 0o600, b"x");
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            // Without bytes on the disk, and faster than anybody reads.
            let file = fs::File::options().write(true).open(&path).expect("it is there");
            for megabytes in (1..=4096_u64).cycle() {
                if done.load(Ordering::Relaxed) {
                    break;
                }
                file.set_len(megabytes << 20).expect("a length");
                thread::sleep(Duration::from_micros(50));
            }
        });
        for _ in 0..3 {
            let more = json!({"tool_name": "Bash", "puppet": [{"read": "/omc/growing"}]});
            send(&world, "PreToolUse", &more);
            let call = records(&world, "puppet").pop().expect("a record");
            assert!(call["memory-bytes"].as_u64().is_some_and(|bytes| bytes <= 128 << 20), "{call:#}");
        }
        done.store(true, Ordering::Relaxed);
    });
}

#[test]
fn nothing_in_a_repository_that_is_no_file_makes_the_host_wait() {
    /// Everything that the host or its guests read below a project.
    const READ: &[&str] = &[
        ".git",
        ".omc-workspace",
        "omc-host.toml",
        ".claude/omc.jsonc",
        ".omc/config.json",
        ".omc/state/sessions/s1/ralph-state.json",
        ".omc/state/sessions/s1/cancel-signal.json",
        ".omc/state/sessions/s1/no-progress-stop-breaker.json",
        ".omc/state/sessions/s1/hud-state.json",
        ".omc/state/subagent-tracking.json",
        ".omc/plans",
        "transcript.jsonl",
    ];
    // `/dev/zero`, which never ends. Only root can plant it.
    let zero = makedev(1, 5);
    for (kind, device) in [(FileType::Fifo, 0), (FileType::Socket, 0), (FileType::CharacterDevice, zero)] {
        let world = World::new(&[]);
        fs::remove_dir_all(world.path("project/.git")).expect("a world has one");
        for path in READ {
            let path = world.project().join(path);
            create_dirs(path.parent().expect("it is in the project"));
            // For others than root there is no device to try.
            if mknodat(CWD, &path, kind, 0o600.into(), device).is_err() {
                assert_eq!(kind, FileType::CharacterDevice);
            }
        }
        let transcript = world.project().join("transcript.jsonl");
        for (kind, more) in [
            ("SessionStart", json!({"source": "startup"})),
            ("UserPromptSubmit", json!({"prompt": PROMPT})),
            ("PreToolUse", json!({"tool_name": "Skill", "tool_input": {"skill": "ralph"}})),
            ("PostToolUse", json!({"tool_name": "Bash", "tool_response": ""})),
            ("Stop", json!({})),
            ("SessionEnd", json!({"reason": "other"})),
        ] {
            let mut more = more;
            more["transcript_path"] = json!(transcript);
            send(&world, kind, &more);
        }
    }
}

/// An event under a limit of the shell's, as `ulimit` takes it.
fn send_under(world: &World, limit: &str, kind: &str, more: &Value) -> Run {
    let host = world.host(["hook", "--agent", "claude"]);
    let mut command = Command::new("sh");
    command.args(["-c", &format!("ulimit {limit}; exec \"$@\""), "sh"]).arg(host.get_program()).args(host.get_args());
    command.current_dir(world.project()).env_clear();
    command.envs(host.get_envs().filter_map(|(name, value)| Some((name, value?))));
    Running::start(command, event(world, kind, more).to_string().into_bytes()).finish()
}

#[test]
fn where_no_file_may_grow_the_host_answers_and_harms_nothing() {
    let world = World::new(&[]);
    at_work(&world);
    let before = fs::read(state_file(&world)).expect("a state");
    for (kind, more) in [("UserPromptSubmit", json!({"prompt": PROMPT})), ("Stop", json!({}))] {
        let run = send_under(&world, "-f 0", kind, &more);
        assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{kind}");
        assert!(run.took < IN_TIME, "{kind} took {:?}", run.took);
    }
    assert_eq!(fs::read(state_file(&world)).expect("a state"), before, "old or new, and nothing new fits");
}

#[test]
fn where_address_space_is_short_the_trail_names_the_way_out_and_no_guest_is_to_blame() {
    let world = World::new(&[]);
    for _ in 0..6 {
        let run = send_under(&world, "-v 2000000", "UserPromptSubmit", &json!({"prompt": PROMPT}));
        assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
        assert!(run.took < IN_TIME, "it took {:?}", run.took);
    }
    let called = records(&world, "keyword-detector");
    assert_eq!(called.len(), 6, "it was never set aside");
    for call in called {
        assert_eq!(call["fault"]["kind"], "host", "{call}");
        assert!(call["fault"]["detail"].as_str().is_some_and(|detail| detail.contains("ulimit -v")), "{call}");
    }
}

#[test]
fn every_corrupt_state_is_kept_under_a_name_that_says_so() {
    let world = World::new(&[]);
    let session_folder = world.path("project/.omc/state/sessions/s1");
    let corrupt = [("ralph-state.json", &b"{\"active\": tr"[..]), ("ultrawork-state.json", b"\xff\xfe[1]")];
    for (name, bytes) in corrupt {
        write(&session_folder.join(name), 0o600, bytes);
    }
    send(&world, "Stop", &json!({}));
    send(&world, "UserPromptSubmit", &json!({"prompt": PROMPT}));
    send(&world, "PreToolUse", &json!({"tool_name": "Skill", "tool_input": {"skill": "ralph"}}));
    assert_eq!(refused_iteration(&send(&world, "Stop", &json!({}))), Some(2));
    let contents: BTreeMap<String, Vec<u8>> = names(&session_folder)
        .into_iter()
        .map(|name| (name.clone(), fs::read(session_folder.join(&name)).expect("a file")))
        .collect();
    for (name, bytes) in corrupt {
        let aside = contents.iter().find(|(other, _)| other.starts_with(&format!("{name}.corrupt-")));
        assert_eq!(aside.map(|(_, kept)| kept.as_slice()), Some(bytes), "`{name}` in {:?}", contents.keys());
    }
}
