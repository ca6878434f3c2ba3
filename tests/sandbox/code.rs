//! Compiled code of guests of others: every kind of damage is a miss with an answer, and the next event finds the code again.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::components::adding;
use crate::small_disk::SmallDisk;
use crate::world::{Running, World, compiler, component, write};
use crate::{IN_TIME, Outcome, prompt, send, world_with_puppet};

/// Longest time for compiling the puppet on a machine with other work.
const COMPILED: Duration = Duration::from_mins(1);

/// A host with a compiler beside it, as it is installed. What the compiler is given is in `compiled`, a line for each time it is
/// started.
struct Installed {
    world: World,
}

impl Installed {
    fn new() -> Self {
        let world = world_with_puppet();
        let (host, beside) = (world.path("bin/omc-host"), world.path("bin/omc-compiler"));
        fs::create_dir(world.path("bin")).expect("a folder");
        let built = Path::new(env!("CARGO_BIN_EXE_omc-host"));
        // Not a link: the host finds its folder by where it really is.
        fs::hard_link(built, &host).or_else(|_| fs::copy(built, &host).map(drop)).expect("a copy of the host");
        let script = format!(
            "#!/bin/sh\necho \"$@\" >> {}\nexec {} \"$@\"\n",
            world.path("compiled").display(),
            compiler().display()
        );
        write(&beside, 0o700, script.as_bytes());
        Self { world }
    }

    fn command(&self) -> Command {
        let mut command = Command::new(self.world.path("bin/omc-host"));
        command.args(["hook", "--agent", "claude"]).current_dir(self.world.project());
        command.env_clear().env("HOME", self.world.home());
        command
    }

    fn act(&self) -> Outcome {
        send(&self.world, self.command(), &json!([]))
    }

    /// How often the compiler was started.
    fn compiled(&self) -> usize {
        fs::read_to_string(self.world.path("compiled")).unwrap_or_default().lines().count()
    }

    fn folder(&self) -> PathBuf {
        let mut folders = fs::read_dir(self.world.path("home/.cache/omc-host/code")).expect("a cache");
        folders.next().expect("a folder for this host").expect("a folder").path()
    }

    /// The file of the cache with this ending.
    fn file(&self, extension: &str) -> PathBuf {
        let files = fs::read_dir(self.folder()).expect("a folder").map(|entry| entry.expect("an entry").path());
        let mut files = files.filter(|path| path.extension().is_some_and(|found| found == extension));
        files.next().unwrap_or_else(|| panic!("there is no .{extension}"))
    }

    /// Waits until the compiler has done its work, and then for its end.
    fn wait(&self) {
        let began = Instant::now();
        loop {
            let folder = fs::File::open(self.folder()).expect("a folder");
            if folder.try_lock().is_ok() {
                return;
            }
            assert!(began.elapsed() < COMPILED, "the compiler is not done");
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// An event that finds no code, and the next one, which does.
    fn misses_once(&self, what: &str, why: &str) {
        let miss = self.act();
        assert_eq!(miss.fault(), "not-compiled", "{what}: {}", miss.puppet);
        assert!(miss.detail().contains(why), "{what}: {}", miss.puppet);
        self.wait();
        let hit = self.act();
        assert_eq!(hit.fault(), "", "{what}: {}", hit.puppet);
    }
}

/// Changes a file and sets its time back, as a clever attacker would.
fn change(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let written = fs::metadata(path).and_then(|about| about.modified()).expect("a time");
    let mut bytes = fs::read(path).expect("a file");
    change(&mut bytes);
    fs::write(path, bytes).expect("written");
    fs::File::options().write(true).open(path).and_then(|file| file.set_modified(written)).expect("a time");
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("a mode");
}

/// What is done, a part of what the trail says of it, and how.
type Damage = (&'static str, &'static str, fn(&Installed));

#[test]
fn every_kind_of_damage_is_a_miss_and_the_next_event_finds_the_code() {
    let installed = Installed::new();
    assert_eq!(installed.act().fault(), "", "a copied cache has the same bytes");
    let damages: &[Damage] = &[
        ("cut off", "not what the compiler wrote", |it| change(&it.file("cwasm"), |bytes| bytes.truncate(300_000))),
        ("empty", "not what the compiler wrote", |it| change(&it.file("cwasm"), Vec::clear)),
        ("one bit", "not what the compiler wrote", |it| change(&it.file("cwasm"), |bytes| bytes[200_000] ^= 1)),
        ("another file of the same size and time", "not what the compiler wrote", |it| {
            let path = it.file("cwasm");
            let about = fs::metadata(&path).expect("a file");
            fs::remove_file(&path).expect("removed");
            write(&path, 0o600, &vec![0x7f; usize::try_from(about.len()).expect("a size")]);
            let file = fs::File::options().write(true).open(&path).expect("a file");
            file.set_modified(about.modified().expect("a time")).expect("a time");
        }),
        ("code of somebody else with a seal of its own", "not what the compiler wrote", |it| {
            change(&it.file("seal"), |bytes| {
                let text = String::from_utf8(bytes.clone()).expect("text");
                let mut words: Vec<_> = text.trim_end().split(' ').map(str::to_owned).collect();
                words[2] = "0".repeat(64);
                words[6] = "1".to_owned();
                *bytes = format!("{}\n", words.join(" ")).into_bytes();
            });
        }),
        ("gone", "No such file", |it| fs::remove_file(it.file("cwasm")).expect("removed")),
        ("seal gone", "its seal: No such file", |it| fs::remove_file(it.file("seal")).expect("removed")),
        ("seal empty", "its seal is damaged", |it| change(&it.file("seal"), Vec::clear)),
        ("seal torn", "its seal is damaged", |it| change(&it.file("seal"), |bytes| bytes.truncate(120))),
        ("seal of another engine", "for another engine", |it| {
            change(&it.file("seal"), |bytes| bytes[11..27].copy_from_slice(b"0123456789abcdef"));
        }),
        ("a link", "Too many levels of symbolic links", |it| {
            let (path, elsewhere) = (it.file("cwasm"), it.world.path("elsewhere"));
            fs::rename(&path, &elsewhere).expect("moved");
            symlink(&elsewhere, &path).expect("a link");
        }),
        ("writable by others", "can be written by others", |it| set_mode(&it.file("cwasm"), 0o622)),
        ("seal writable by others", "can be written by others", |it| set_mode(&it.file("seal"), 0o662)),
        ("all of the cache gone", "No such file", |it| {
            fs::remove_dir_all(it.world.path("home/.cache/omc-host")).expect("removed");
        }),
    ];
    for (count, (what, why, damage)) in damages.iter().enumerate() {
        damage(&installed);
        installed.misses_once(what, why);
        assert_eq!(installed.compiled(), count + 1, "{what}");
        let left: Vec<_> =
            fs::read_dir(installed.folder()).expect("a folder").map(|entry| entry.expect("an entry").path()).collect();
        assert_eq!(left.len(), 2, "{what} leaves code and seal and nothing else: {left:?}");
    }
}

#[test]
fn a_folder_that_others_can_write_is_neither_read_nor_written() {
    let installed = Installed::new();
    installed.act();
    set_mode(&installed.folder(), 0o777);
    for _ in 0..2 {
        let miss = installed.act();
        assert_eq!(miss.fault(), "not-compiled");
        assert!(miss.detail().contains("its folder can be written by others; `chmod go-w`"), "{}", miss.puppet);
    }
    set_mode(&installed.folder(), 0o700);
    assert_eq!((installed.act().fault(), installed.compiled()), ("", 0));
}

#[test]
fn the_same_bytes_in_another_file_are_read_once_and_sealed_again() {
    let installed = Installed::new();
    installed.act();
    let sealed = fs::read_to_string(installed.file("seal")).expect("a seal");
    let code = installed.file("cwasm");
    let bytes = fs::read(&code).expect("code");
    fs::remove_file(&code).expect("removed");
    write(&code, 0o600, &bytes);
    assert_eq!(installed.act().fault(), "");
    let again = fs::read_to_string(installed.file("seal")).expect("a seal");
    assert_ne!(again, sealed);
    assert_eq!(installed.act().fault(), "");
    assert_eq!(fs::read_to_string(installed.file("seal")).expect("a seal"), again);
    assert_eq!(installed.compiled(), 0);
}

#[test]
fn twenty_cold_starts_at_once_compile_once_and_all_answer() {
    let installed = Installed::new();
    fs::remove_dir_all(installed.world.path("home/.cache/omc-host")).expect("removed");
    let event = prompt(&installed.world, &json!([]));
    let running: Vec<_> = (0..20).map(|_| Running::start(installed.command(), event.clone())).collect();
    for run in running.into_iter().map(Running::finish) {
        assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
        assert!(String::from_utf8_lossy(&run.stdout).contains("[MAGIC KEYWORD: RALPH]"));
    }
    installed.wait();
    assert_eq!(installed.compiled(), 1);
    assert_eq!(installed.act().fault(), "");
    assert_eq!(installed.compiled(), 1);
    let names: Vec<_> =
        fs::read_dir(installed.folder()).expect("a folder").map(|entry| entry.expect("an entry").file_name()).collect();
    assert_eq!(names.len(), 2, "no lock file and no debris: {names:?}");
}

#[test]
fn a_compiler_that_is_killed_holds_nobody_up_and_is_cleaned_up_after() {
    let installed = Installed::new();
    let code = installed.file("cwasm");
    fs::remove_file(&code).expect("removed");
    // What one that was killed leaves behind: a part of the code, and that it began.
    fs::write(code.with_extension("cwasm.4711.tmp"), "part of it").expect("written");
    fs::write(code.with_extension("failed"), "the compiler did not come to an end").expect("written");
    let miss = installed.act();
    assert!(miss.detail().contains("the compiler did not come to an end"), "{}", miss.puppet);
    assert_eq!(installed.compiled(), 0, "it is not tried again at once");
    let failed = fs::File::options().write(true).open(code.with_extension("failed")).expect("the failure");
    failed.set_modified(std::time::SystemTime::now() - Duration::from_mins(11)).expect("a time");
    installed.misses_once("a killed compiler", "No such file");
    assert_eq!(fs::read_dir(installed.folder()).expect("a folder").count(), 2);
}

#[test]
fn a_guest_whose_bytes_changed_is_not_compiled_and_not_tried_on_every_event() {
    let installed = Installed::new();
    fs::remove_dir_all(installed.world.path("home/.cache/omc-host")).expect("removed");
    let kept = fs::read_dir(installed.world.path("home/.local/share/omc-host/guests")).expect("guests").next();
    change(&kept.expect("a guest").expect("a guest").path(), |bytes| {
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
    });
    assert_eq!(installed.act().fault(), "not-compiled");
    installed.wait();
    for _ in 0..3 {
        let miss = installed.act();
        assert_eq!(miss.fault(), "not-compiled");
        assert!(miss.detail().contains("compiling it failed: "), "{}", miss.puppet);
        installed.wait();
    }
    assert_eq!(installed.compiled(), 1);
    // Whoever adds the guest again need not wait.
    let added = adding(&installed.world, component("puppet").to_str().expect("UTF-8"));
    assert_eq!(added.code, Some(0), "{}", added.stderr);
    assert_eq!(installed.act().fault(), "");
}

#[test]
fn a_cache_that_cannot_be_written_still_gives_answers() {
    let installed = Installed::new();
    let cache = installed.world.path("home/.cache/omc-host");
    let moved = installed.world.path("cache-before");
    fs::rename(&cache, &moved).expect("moved");
    // A folder that cannot be made, which binds root as well.
    fs::write(&cache, "a file").expect("written");
    assert_eq!(installed.act().fault(), "not-compiled");
    assert_eq!(installed.compiled(), 0);
    fs::remove_file(&cache).expect("removed");

    let Some(disk) = SmallDisk::mount(&cache) else { return };
    fs::create_dir_all(cache.join("code")).expect("a folder");
    disk.fill();
    for _ in 0..2 {
        assert_eq!(installed.act().fault(), "not-compiled", "on a full disk");
        if cache.join("code").read_dir().expect("a folder").next().is_some() {
            installed.wait();
        }
    }
    let started = installed.compiled();
    disk.remount("remount,ro");
    assert_eq!(installed.act().fault(), "not-compiled", "on a disk that can only be read");
    assert!(installed.compiled() <= started + 1);
}

#[test]
fn without_a_compiler_beside_it_the_host_answers_and_looks_for_none() {
    let installed = Installed::new();
    fs::remove_file(installed.world.path("bin/omc-compiler")).expect("removed");
    fs::remove_file(installed.file("cwasm")).expect("removed");
    // Neither the project nor the search path names a compiler.
    let lure = format!("#!/bin/sh\necho lured >> {}\n", installed.world.path("compiled").display());
    write(&installed.world.path("project/omc-compiler"), 0o700, lure.as_bytes());
    let mut command = installed.command();
    command.env("PATH", installed.world.project());
    let outcome = send(&installed.world, command, &json!([]));
    assert_eq!(outcome.fault(), "not-compiled");
    thread::sleep(Duration::from_millis(50));
    assert_eq!(installed.compiled(), 0);
}

#[test]
fn a_missing_code_of_a_required_guest_closes_until_it_is_there() {
    let installed = Installed::new();
    crate::configure(&installed.world, "[guests.puppet]\nrequired = true\n");
    fs::remove_file(installed.file("cwasm")).expect("removed");
    let event = json!({
        "hook_event_name": "PreToolUse", "session_id": "s1", "cwd": installed.world.project(),
        "tool_name": "Bash", "tool_input": {"command": "ls"}, "puppet": [],
    });
    let run = || Running::start(installed.command(), event.to_string().into_bytes()).finish();
    let closed = run();
    assert!(String::from_utf8_lossy(&closed.stdout).contains("could not judge (not-compiled)"));
    assert!(closed.took < IN_TIME, "the compiler is not waited for: {:?}", closed.took);
    installed.wait();
    assert!(!String::from_utf8_lossy(&run().stdout).contains("could not judge"));
}
