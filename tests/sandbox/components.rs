//! Files that are no guests, and guests that do not fit: refused when they are added, and a fault of a kind of its own where one
//! got past that.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::world::{Run, World, compiler, component, write};
use crate::{Running, act, printed, world_with_puppet};

/// The puppet with some names in it replaced by others of the same length, so that everything else stays in its place.
pub(crate) fn puppet_with(names: &[(&str, &str)]) -> Vec<u8> {
    let mut bytes = fs::read(component("puppet")).expect("the puppet is built");
    for (from, to) in names {
        assert_eq!(from.len(), to.len(), "{from} and {to}");
        let places: Vec<_> =
            (0..bytes.len() - from.len()).filter(|at| bytes[*at..].starts_with(from.as_bytes())).collect();
        assert!(!places.is_empty(), "the puppet has no `{from}`");
        for at in places {
            bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
        }
    }
    bytes
}

/// Adds a guest from a file.
pub(crate) fn adding(world: &World, file: &str) -> Run {
    let mut command = world.host(["guests", "add", file]);
    command.args(["--yes", "--compiler"]).arg(compiler());
    Running::start(command, Vec::new()).finish()
}

/// The puppet for another version of `omc:hook`.
fn of_version(version: &str) -> Vec<u8> {
    let names = ["types", "log", "settings", "state-lock", "transcript", "environment", "handler"];
    let pairs: Vec<_> =
        names.iter().map(|name| (format!("omc:hook/{name}@0.1.0"), format!("omc:hook/{name}@{version}"))).collect();
    puppet_with(&pairs.iter().map(|(from, to)| (from.as_str(), to.as_str())).collect::<Vec<_>>())
}

const METHOD: (&str, &str) = ("[method]event.tool-name", "[method]event.tool-nome");

#[test]
fn what_is_no_guest_or_does_not_fit_is_refused_with_its_reason_and_leaves_nothing() {
    let world = World::new(&[]);
    let core = b"\0asm\x01\0\0\0".to_vec();
    let later_method = {
        let mut bytes = of_version("0.1.7");
        let other = puppet_with(&[METHOD]);
        let old = fs::read(component("puppet")).expect("the puppet is built");
        for (at, byte) in other.iter().enumerate().filter(|(at, byte)| old[*at] != **byte) {
            bytes[at] = *byte;
        }
        bytes
    };
    let cases: &[(&str, Vec<u8>, &[&str])] = &[
        ("nothing", Vec::new(), &["the file is empty"]),
        ("garbage", b"garbage garbage garbage".to_vec(), &["not a WebAssembly component"]),
        ("core module", core, &["core WebAssembly module", "wasm32-wasip2"]),
        (
            "half of it",
            fs::read(component("puppet")).expect("built")[..100_000].to_vec(),
            &["not a WebAssembly component"],
        ),
        (
            "later line",
            of_version("0.2.0"),
            &["`puppet`", "`omc:hook` 0.2.0", "this host has 0.1.0", "update omc-host"],
        ),
        ("earlier line", of_version("0.0.9"), &["`puppet`", "`omc:hook` 0.0.9", "this host has 0.1.0", "rebuild"]),
        ("later method", later_method, &["`puppet`", "`omc:hook` 0.1.7", "this host has 0.1.0", "update omc-host"]),
        ("unknown method", puppet_with(&[METHOD]), &["`puppet`", "link", "tool-nome"]),
        (
            "unknown interface",
            puppet_with(&[("omc:hook/transcript@", "omc:hook/telepathyy@")]),
            &["`puppet`", "it imports `omc:hook/telepathyy@0.1.0`, which this host does not have"],
        ),
        (
            "unknown package",
            puppet_with(&[("wasi:cli/environment@", "wasi:cli/telepathyyy@")]),
            &["`puppet`", "it imports `wasi:cli/telepathyyy@"],
        ),
        (
            "wrong world",
            puppet_with(&[("omc:hook/handler@", "omc:hook/handyer@")]),
            &["`puppet`", "it does not export `omc:hook/handler@0.1.0`"],
        ),
    ];
    for (what, bytes, reasons) in cases {
        let file = world.path("guest.wasm");
        fs::write(&file, bytes).expect("written");
        refused(&world, &file, what, reasons);
    }
    let huge = world.path("huge.wasm");
    fs::File::create(&huge).and_then(|file| file.set_len(300 << 20)).expect("a hole");
    let began = std::time::Instant::now();
    refused(&world, &huge, "300 MB", &["314572800 bytes"]);
    assert!(began.elapsed() < std::time::Duration::from_secs(2), "it was not read: {:?}", began.elapsed());
    let pipe = world.path("pipe.wasm");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).expect("a pipe");
    refused(&world, &pipe, "a pipe", &["not a regular file"]);
    refused(&world, Path::new("/dev/zero"), "a device", &["not a regular file"]);
}

fn refused(world: &World, file: &Path, what: &str, reasons: &[&str]) {
    let run = adding(world, file.to_str().expect("UTF-8"));
    assert_eq!(run.code, Some(1), "{what}: {}", run.stderr);
    for reason in reasons {
        assert!(run.stderr.contains(reason), "{what}: {}", run.stderr);
    }
    assert!(!printed(world, ["guests", "list"]).contains("puppet"), "{what}");
    for folder in ["home/.local/share/omc-host/guests", "home/.cache/omc-host/code"] {
        let left = files_below(&world.path(folder));
        assert!(
            left.iter().all(|path| path.extension().is_some_and(|extension| extension == "failed")),
            "{what}: {left:?}"
        );
    }
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
    entries.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
}

/// Puts a component into the puppet's place behind the host's back, compiled and sealed, as an older host would have left it.
fn smuggle(world: &World, bytes: &[u8]) {
    let data = world.path("home/.local/share/omc-host");
    let list = data.join("guests.json");
    let mut lock: Value = serde_json::from_slice(&fs::read(&list).expect("a list")).expect("JSON");
    let digest = sha256(bytes);
    lock["guests"][0]["digest"] = json!(digest);
    fs::write(&list, lock.to_string()).expect("written");
    let kept = data.join("guests").join(&digest).with_extension("wasm");
    write(&kept, 0o600, bytes);
    let folder = fs::read_dir(world.path("home/.cache/omc-host/code")).expect("a cache").next();
    let folder = folder.expect("a folder for this host").expect("a folder").path();
    let done = Command::new(compiler()).arg("cache").arg(folder).arg(kept).status().expect("the compiler runs");
    assert!(done.success());
}

fn sha256(bytes: &[u8]) -> String {
    use sha2::Digest as _;
    sha2::Sha256::digest(bytes).iter().fold(String::new(), |hex, byte| format!("{hex}{byte:02x}"))
}

#[test]
fn what_does_not_link_is_a_fault_of_its_kind_and_costs_nobody_else_anything() {
    let world = world_with_puppet();
    for (bytes, kind, detail) in [
        (of_version("0.2.0"), "wit-version", "built for `omc:hook` 0.2.0, and this host has 0.1.0"),
        (puppet_with(&[("omc:hook/transcript@", "omc:hook/telepathyy@")]), "missing-import", "omc:hook/telepathyy"),
        (puppet_with(&[("omc:hook/handler@", "omc:hook/handyer@")]), "wrong-world", "omc:hook/handler@0.1.0"),
        (puppet_with(&[METHOD]), "link", "tool-nome"),
    ] {
        smuggle(&world, &bytes);
        let outcome = act(&world, &json!([]));
        assert_eq!(outcome.fault(), kind, "{}", outcome.puppet);
        assert!(outcome.detail().contains(detail), "{}", outcome.puppet);
    }
    // A later version of the same line that uses nothing new is at home here.
    smuggle(&world, &of_version("0.1.7"));
    assert_eq!(act(&world, &json!([])).fault(), "");
}
