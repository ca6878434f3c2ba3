//! A real registry: what is published is what is added, with its signature, by tag and by digest.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use minisign::KeyPair;
use serde_json::json;

use crate::world::{Running, World, from_env, write};
use crate::{change, configure, entry, guest_file, run};

/// How long the registry may take to start on a machine with other work.
const STARTED: Duration = Duration::from_secs(30);

/// A registry on loopback that keeps its artifacts in a world. It ends with this.
struct Registry {
    child: Child,
    address: String,
}

impl Registry {
    /// Starts one; with a `user:password` in the form of htpasswd it asks for that.
    fn start(world: &World, htpasswd: Option<&str>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address").to_string();
        drop(listener);
        let auth = htpasswd.map_or_else(String::new, |entry| {
            let file = world.path("outside/htpasswd");
            write(&file, 0o600, entry.as_bytes());
            format!("auth:\n  htpasswd:\n    realm: test\n    path: {}\n", file.display())
        });
        let config = format!(
            "version: 0.1\nlog:\n  level: error\nstorage:\n  filesystem:\n    rootdirectory: {}\nhttp:\n  addr: {address}\n{auth}",
            world.path("outside/registry").display()
        );
        let file = world.path("outside/registry.yml");
        write(&file, 0o600, config.as_bytes());
        let mut command = Command::new(from_env("OMC_TEST_REGISTRY"));
        command.arg("serve").arg(file).env_clear().stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let registry = Self { child: command.spawn().expect("the registry starts"), address };
        let began = Instant::now();
        while TcpStream::connect(&registry.address).is_err() {
            assert!(began.elapsed() < STARTED, "the registry does not answer");
            thread::sleep(Duration::from_millis(20));
        }
        registry
    }

    fn reference(&self, rest: &str) -> String {
        format!("oci://{}/team/guard{rest}", self.address)
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        // It may have ended by itself.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Publishes a file and returns the reference with its digest.
fn push(world: &World, file: &std::path::Path, reference: &str) -> String {
    let file = file.to_str().expect("UTF-8");
    let pushed = run(world, &["guests", "push", file, reference]);
    assert_eq!(pushed.code, Some(0), "{}", pushed.stderr);
    let shown = String::from_utf8(pushed.stdout).expect("UTF-8");
    shown.lines().last().expect("a reference").to_owned()
}

#[test]
fn what_is_published_is_what_is_added_and_updated_by_its_tag_and_pinned_by_its_digest() {
    let world = World::new(&[]);
    let registry = Registry::start(&world, None);
    let tag = registry.reference(":stable");
    let first = push(&world, &guest_file(&world, "1.0.0"), &tag);
    assert!(first.starts_with(&format!("{tag}@sha256:")), "{first}");

    let added = change(&world, &["add", &tag]);
    assert_eq!(added.code, Some(0), "{}", added.stderr);
    let shown = String::from_utf8_lossy(&added.stdout);
    let digest = first.split('@').nth(1).expect("a digest").to_owned();
    assert!(shown.contains(&format!("artifact   {digest}")) && shown.contains("signature  none"), "{shown}");
    assert_eq!((entry(&world)["source"].as_str(), entry(&world)["artifact"].as_str()), (Some(&*tag), Some(&*digest)));
    let event =
        json!({"hook_event_name": "UserPromptSubmit", "session_id": "s", "cwd": world.project(), "prompt": "x"});
    Running::start(world.host(["hook"]), event.to_string().into_bytes()).finish();
    assert!(world.trail().contains("\"name\":\"guard\",\"version\":\"1.0.0\""), "it is called: {}", world.trail());

    // The tag moves on, the digest does not.
    push(&world, &guest_file(&world, "2.0.0"), &tag);
    let pinned = World::new(&[]);
    assert_eq!(change(&pinned, &["add", &first]).code, Some(0));
    assert_eq!(entry(&pinned)["manifest"]["version"], "1.0.0");
    assert!(String::from_utf8_lossy(&change(&pinned, &["update"]).stdout).contains("up to date"));
    assert_eq!(change(&world, &["update", "guard"]).code, Some(0));
    assert_eq!(entry(&world)["manifest"]["version"], "2.0.0");

    for (reference, why) in [
        (registry.reference(":gone"), "failed to fetch"),
        (format!("{tag}@sha256:{}", "0".repeat(64)), "failed to fetch"),
        (registry.reference(":bad tag"), "is no reference"),
        ("oci://guard:1".to_owned(), "names no host"),
        ("oci://library/guard:1".to_owned(), "names no host"),
        ("oci://".to_owned(), "is no reference"),
        ("oci://127.0.0.1:1/team/guard:1".to_owned(), "failed to fetch"),
    ] {
        let run = change(&world, &["add", &reference]);
        assert_eq!(run.code, Some(1), "{reference}");
        assert!(run.stderr.contains(why), "{reference}: {}", run.stderr);
    }
    assert_eq!(entry(&world)["manifest"]["version"], "2.0.0");
    let pinned_push = run(&world, &["guests", "push", guest_file(&world, "3").to_str().expect("UTF-8"), &first]);
    assert!(pinned_push.stderr.contains("name a tag instead"), "{}", pinned_push.stderr);
}

#[test]
fn a_signature_travels_with_the_artifact_and_is_checked_where_it_arrives() {
    let world = World::new(&[]);
    let registry = Registry::start(&world, None);
    let keys = KeyPair::generate_unencrypted_keypair().expect("random numbers");
    let file = guest_file(&world, "1.0.0");
    let bytes = fs::read(&file).expect("a component");
    let signature = minisign::sign(None, &keys.sk, bytes.as_slice(), None, None).expect("a signature").into_string();
    fs::write(file.with_extension("wasm.minisig"), &signature).expect("written");
    configure(&world, &format!("require-signature = [\"{}\"]\n", keys.pk.to_base64()));
    let signed = registry.reference(":signed");
    push(&world, &file, &signed);
    assert_eq!(change(&world, &["add", &signed]).code, Some(0));
    assert_eq!(entry(&world)["signature"]["signer"], keys.pk.to_base64());

    // Other bytes under the same signature.
    let file = guest_file(&world, "1.0.1");
    let altered = registry.reference(":altered");
    push(&world, &file, &altered);
    let refused = change(&world, &["add", &altered]);
    assert!(refused.stderr.contains("it is not a signature of these bytes"), "{}", refused.stderr);
    fs::remove_file(file.with_extension("wasm.minisig")).expect("removed");
    let unsigned = registry.reference(":unsigned");
    push(&world, &file, &unsigned);
    assert!(change(&world, &["add", &unsigned]).stderr.contains("and that of `guard` is: none"));
    assert_eq!(entry(&world)["manifest"]["version"], "1.0.0");
}

#[test]
fn credentials_are_those_of_docker_and_without_them_nothing_is_given() {
    let world = World::new(&[]);
    // `hunter2`, hashed with the least effort that the format has.
    let registry =
        Registry::start(&world, Some("alice:$2y$04$abcdefghijklmnopqrstuuV3duMsC0HpUex6N9qapiuOHHWkwRXVm\n"));
    let reference = registry.reference(":1");
    let file = guest_file(&world, "1.0.0");
    let anonymous = run(&world, &["guests", "push", file.to_str().expect("UTF-8"), &reference]);
    assert_eq!(anonymous.code, Some(1), "{}", String::from_utf8_lossy(&anonymous.stdout));
    // `alice:hunter2` in Base64.
    let auths = json!({"auths": {registry.address.clone(): {"auth": "YWxpY2U6aHVudGVyMg=="}}});
    write(&world.path("home/.docker/config.json"), 0o600, auths.to_string().as_bytes());
    push(&world, &file, &reference);
    assert_eq!(change(&world, &["add", &reference]).code, Some(0));
}
