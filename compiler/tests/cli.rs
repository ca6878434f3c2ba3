//! The program as the host and `cargo xtask` start it: files in, files and an exit status out.

use std::env::consts::ARCH;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use omc_artifact::{BASELINE_TARGETS, Component, MAX_COMPONENT_BYTES};

#[path = "../src/testing.rs"]
mod testing;

use testing::{guest, guest_that_is_not_valid, guest_that_lacks};

/// An empty folder of a test's own, which stays until the next run.
fn folder(test: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
    if folder.exists() {
        fs::remove_dir_all(&folder).expect("removed");
    }
    fs::create_dir_all(&folder).expect("created");
    folder
}

fn plant(folder: &Path, name: &str, bytes: &[u8]) -> PathBuf {
    let path = folder.join(name);
    fs::write(&path, bytes).expect("written");
    path
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").file_name());
    let mut names: Vec<_> = entries.map(|name| name.into_string().expect("UTF-8")).collect();
    names.sort();
    names
}

fn run<A: AsRef<OsStr>>(args: impl IntoIterator<Item = A>) -> Output {
    Command::new(env!("CARGO_BIN_EXE_omc-compiler")).args(args).stdin(Stdio::null()).output().expect("started")
}

/// A run that must fail with exit status 1, one sentence and nothing on standard output; the sentence.
fn refused<A: AsRef<OsStr>>(args: impl IntoIterator<Item = A>) -> String {
    let Output { status, stdout, stderr } = run(args);
    let why = String::from_utf8(stderr).expect("UTF-8");
    assert_eq!((status.code(), stdout.as_slice()), (Some(1), b"".as_slice()), "{why}");
    assert!(why.starts_with("omc-compiler: ") && why.matches('\n').count() == 1, "{why}");
    why
}

/// The digest that names a guest.
fn digest(bytes: &[u8]) -> String {
    Component::read(bytes).expect("a guest").digest
}

#[test]
fn a_build_writes_stripped_code_and_what_is_known_of_the_guest() {
    let folder = folder("a_build_writes");
    let component = plant(&folder, "adder.wasm", &guest());
    let (code, about) = (folder.join("adder.cwasm"), folder.join("adder.json"));
    let args = [OsStr::new("build"), component.as_ref(), code.as_ref(), "--describe".as_ref(), about.as_ref()];
    let output = run(args);
    assert!(output.status.success() && output.stdout.is_empty() && output.stderr.is_empty(), "{output:?}");
    let bytes = fs::read(&code).expect("code");
    assert!(bytes.starts_with(b"\x7fELF") && bytes.len() < 1 << 20, "{} bytes", bytes.len());
    let symbol = format!("function[0]::{}", testing::FUNCTION_NAME);
    assert!(!bytes.windows(symbol.len()).any(|window| window == symbol.as_bytes()));
    let about: serde_json::Value = serde_json::from_slice(&fs::read(&about).expect("a description")).expect("JSON");
    assert_eq!((&about["manifest"]["name"], about["digest"].as_str()), (&"adder".into(), Some(&*digest(&guest()))));
    assert_eq!(names(&folder), ["adder.cwasm", "adder.json", "adder.wasm"], "nothing temporary is left");
}

#[test]
fn the_same_guest_gives_the_same_code_for_each_target() {
    let folder = folder("the_same_guest");
    let component = plant(&folder, "adder.wasm", &guest());
    let build = |name: &str, target: &str| {
        let output = folder.join(name);
        let output_arg = output.as_os_str();
        let done = run([OsStr::new("build"), component.as_ref(), output_arg, "--target".as_ref(), target.as_ref()]);
        assert!(done.status.success(), "{target}: {done:?}");
        fs::read(output).expect("code")
    };
    // The compiler makes code for its own processors only.
    let own = BASELINE_TARGETS.iter().map(|baseline| baseline.triple).filter(|triple| triple.starts_with(ARCH));
    let codes: Vec<_> = own.map(|target| (target, build("a.cwasm", target), build("b.cwasm", target))).collect();
    assert!(codes.len() > 1);
    for (target, first, second) in &codes {
        assert!(first == second, "{target}");
    }
    assert!(codes[0].1 != codes[1].1, "for another system, other code");
}

#[test]
fn what_is_no_guest_is_refused_with_its_reason_and_the_old_code_stays() {
    let folder = folder("what_is_no_guest");
    let output = plant(&folder, "old.cwasm", b"the old code");
    let whole = guest();
    let too_large = folder.join("too-large.wasm");
    let file = fs::File::create(&too_large).expect("created");
    // A hole in the file: nothing of that size is written or read.
    file.set_len(MAX_COMPONENT_BYTES as u64 + 1).expect("grown");
    for (component, reason) in [
        (folder.join("gone.wasm"), "it cannot be read: No such file"),
        (folder.clone(), "it is not a regular file"),
        (too_large, "it has 134217729 bytes, and a guest at most 134217728"),
        (plant(&folder, "empty.wasm", b""), "the file is empty"),
        (plant(&folder, "text.wasm", b"not wasm at all"), "this is not a WebAssembly component"),
        (plant(&folder, "core.wasm", b"\0asm\x01\0\0\0"), "a guest is a component"),
        (plant(&folder, "bare.wasm", b"\0asm\x0d\0\x01\0"), "manifest"),
        (plant(&folder, "cut.wasm", &whole[..whole.len() / 2]), "this is not a WebAssembly component"),
        (plant(&folder, "invalid.wasm", &guest_that_is_not_valid()), "failed to compile"),
    ] {
        let why = refused([OsStr::new("build"), component.as_ref(), output.as_ref()]);
        assert!(why.contains(reason) && why.contains(component.to_str().expect("UTF-8")), "{reason}: {why}");
        assert_eq!(fs::read(&output).expect("the old code"), b"the old code", "{reason}");
    }
    assert!(names(&folder).iter().all(|name| !name.contains(".tmp")), "{:?}", names(&folder));
}

#[test]
fn a_reason_with_names_out_of_a_guest_does_not_act_on_a_terminal() {
    let folder = folder("a_reason_with_names");
    let component = plant(&folder, "evil.wasm", &guest_that_lacks("\u{1b}[31m\nomc-compiler: all is well\u{9b}2J"));
    let why = refused([OsStr::new("build"), component.as_ref(), folder.join("code").as_ref()]);
    assert!(why.contains("failed to compile") && why.contains("[31m omc-compiler: all is well 2J"), "{why:?}");
    assert!(!why.trim_end().contains(char::is_control), "{why:?}");
}

#[test]
fn a_guest_that_is_cut_anywhere_is_refused() {
    let folder = folder("a_guest_that_is_cut");
    let (whole, output) = (guest(), folder.join("code"));
    for end in (0..whole.len()).step_by(1 + whole.len() / 16) {
        let component = plant(&folder, "cut.wasm", &whole[..end]);
        refused([OsStr::new("build"), component.as_ref(), output.as_ref()]);
        assert!(!output.exists(), "{end}");
    }
}

#[cfg(unix)]
#[test]
fn the_output_is_replaced_as_a_whole_and_only_its_owner_reads_it() {
    use std::io::Read as _;
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

    let folder = folder("the_output_is_replaced");
    let component = plant(&folder, "adder.wasm", &guest());
    let precious = plant(&folder, "precious", b"somebody else's");
    let output = plant(&folder, "code", b"the old code");
    fs::set_permissions(&output, fs::Permissions::from_mode(0o644)).expect("changed");
    let mut reader = fs::File::open(&output).expect("open");
    let build = |output: &Path| run([OsStr::new("build"), component.as_ref(), output.as_ref()]);
    assert!(build(&output).status.success());
    let mut read = Vec::new();
    reader.read_to_end(&mut read).expect("read");
    assert_eq!(read, b"the old code", "who has it open reads the old file to its end");
    let about = fs::metadata(&output).expect("code");
    assert_eq!((about.mode() & 0o777, about.ino() == reader.metadata().expect("open").ino()), (0o600, false));

    // A link in its place is replaced, and what it leads to stays.
    let link = folder.join("link");
    symlink(&precious, &link).expect("linked");
    assert!(build(&link).status.success());
    assert!(fs::symlink_metadata(&link).expect("code").is_file());
    assert_eq!(fs::read(&precious).expect("a file"), b"somebody else's");

    let taken = folder.join("taken");
    fs::create_dir(&taken).expect("created");
    let why = refused([OsStr::new("build"), component.as_ref(), taken.as_ref()]);
    assert!(why.contains("failed to write `") && why.contains("taken`"), "{why}");
    let why = refused([OsStr::new("build"), component.as_ref(), folder.join("no/such/folder").as_ref()]);
    assert!(why.contains("failed to write `"), "{why}");
    assert_eq!(names(&folder), ["adder.wasm", "code", "link", "precious", "taken"], "nothing temporary is left");
}

#[test]
fn a_guest_that_fails_costs_the_others_in_the_cache_nothing() {
    let (folder, cache) = (folder("guests"), folder("cache"));
    let good = guest();
    let broken = guest_that_is_not_valid();
    let named = |bytes: &[u8]| plant(&folder, &format!("{}.wasm", digest(bytes)), bytes);
    let other_name = plant(&folder, &format!("{}.wasm", "0".repeat(64)), &good);
    let why = refused([
        OsStr::new("cache"),
        cache.as_ref(),
        named(&broken).as_ref(),
        other_name.as_ref(),
        named(&good).as_ref(),
    ]);
    assert!(why.contains("failed to compile") && why.contains("holds another component than its name says"), "{why}");
    let (good, broken) = (digest(&good), digest(&broken));
    let mut expected = [
        format!("{good}.cwasm"),
        format!("{good}.seal"),
        format!("{broken}.failed"),
        format!("{}.failed", "0".repeat(64)),
    ];
    expected.sort();
    assert_eq!(names(&cache), expected, "no code without its seal, and no seal of code that failed");
    let reason = fs::read_to_string(cache.join(format!("{broken}.failed"))).expect("a reason");
    assert!(reason.contains("failed to compile"), "{reason}");
}

#[test]
fn a_guest_that_failed_once_is_no_failure_when_it_compiles() {
    let (folder, cache) = (folder("mended-guest"), folder("mended-cache"));
    let digest = digest(&guest());
    let component = plant(&folder, &format!("{digest}.wasm"), &guest());
    plant(&cache, &format!("{digest}.failed"), b"the compiler did not come to an end");
    assert!(run([OsStr::new("cache"), cache.as_ref(), component.as_ref()]).status.success());
    assert_eq!(names(&cache), [format!("{digest}.cwasm"), format!("{digest}.seal")]);
}

#[test]
fn a_wrong_command_line_is_64_and_help_is_0() {
    for args in [&[][..], &["compile"], &["build", "a.wasm"], &["cache", "folder"], &["build", "a", "b", "--fast"]] {
        let output = run(args);
        assert_eq!((output.status.code(), output.stdout.is_empty()), (Some(64), true), "{args:?}");
        assert!(!output.stderr.is_empty(), "{args:?}");
    }
    for args in [["--help"], ["--version"]] {
        assert_eq!(run(args).status.code(), Some(0), "{args:?}");
    }
}

#[test]
fn a_target_that_nobody_compiles_for_is_refused_and_the_known_ones_are_named() {
    let folder = folder("a_target");
    let component = plant(&folder, "adder.wasm", &guest());
    let output = folder.join("code");
    let args = [OsStr::new("build"), component.as_ref(), output.as_ref(), "--target".as_ref(), "z80-none".as_ref()];
    let why = refused(args);
    assert!(why.contains("for `z80-none`") && why.contains("x86_64-unknown-linux-gnu"), "{why}");
    assert!(!output.exists());
}
