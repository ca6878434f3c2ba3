//! What goes over the network, through the real programs: guests to and from a real registry, registries that lie, and telemetry
//! to an endpoint that reads what it is sent.
//!
//! Everything listens on loopback. `OMC_TEST_REGISTRY` names the registry and `OMC_TEST_NET` the program that opens sockets;
//! `cargo xtask test` sets both, and without them these tests fail.
#![cfg(target_os = "linux")]

mod packed;
mod world;

#[path = "net/hostile.rs"]
mod hostile;
#[path = "net/registry.rs"]
mod registry;
#[path = "net/server.rs"]
mod server;
#[path = "net/telemetry.rs"]
mod telemetry;

use std::path::PathBuf;

use serde_json::{Value, json};

use world::{Run, Running, World, compiler, from_env, write};

/// The program that opens sockets.
fn net() -> PathBuf {
    from_env("OMC_TEST_NET")
}

/// A command of the host that opens sockets, through the real program.
fn run<A: AsRef<std::ffi::OsStr>>(world: &World, args: &[A]) -> Run {
    let mut command = world.host(args);
    command.arg("--net").arg(net());
    Running::start(command, Vec::new()).finish()
}

/// `guests add` or `update`, without questions.
fn change(world: &World, args: &[&str]) -> Run {
    let mut command = world.host(["guests"]);
    command.args(args).args(["--yes", "--compiler"]).arg(compiler()).arg("--net").arg(net());
    Running::start(command, Vec::new()).finish()
}

/// A guest of this version in a file.
fn guest_file(world: &World, version: &str) -> PathBuf {
    let manifest = json!({"name": "guard", "version": version, "subscriptions": [{"event": "user-prompt-submit"}]});
    let file = world.path("outside/guard.wasm");
    write(&file, 0o600, &packed::with_manifest(&manifest));
    file
}

fn configure(world: &World, text: &str) {
    write(&world.path("home/.config/omc-host/config.toml"), 0o600, text.as_bytes());
}

/// The lock file's entry for the guest.
fn entry(world: &World) -> Value {
    let list = std::fs::read(world.path("home/.local/share/omc-host/guests.json")).unwrap_or_default();
    serde_json::from_slice::<Value>(&list).map(|lock| lock["guests"][0].clone()).unwrap_or_default()
}

#[test]
fn a_wrong_command_line_is_64_and_never_2_which_agents_read_as_a_refusal() {
    for (args, status) in [(&["fetch"][..], 64), (&["pull", "only-a-reference"], 64), (&[], 64), (&["--help"], 0)] {
        let output = std::process::Command::new(net()).args(args).output().expect("started");
        assert_eq!(output.status.code(), Some(status), "{args:?}");
        assert_eq!(output.stdout.is_empty(), status != 0, "{args:?}");
    }
}
