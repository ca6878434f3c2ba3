//! Signatures: whose count, and what a missing, wrong, altered or borrowed one leads to.

use std::fs;
use std::path::Path;

use minisign::KeyPair;
use serde_json::{Value, json};

use crate::world::{Running, World, write};
use crate::{act, change, configure, entry, guest_file, printed, refused, run, text};

fn keys() -> KeyPair {
    KeyPair::generate_unencrypted_keypair().expect("random numbers")
}

/// Signs a file as `minisign -S` does.
fn sign(keys: &KeyPair, file: &Path) {
    let bytes = fs::read(file).expect("a component");
    let signature = minisign::sign(None, &keys.sk, bytes.as_slice(), Some("timestamp:1"), None).expect("a signature");
    fs::write(signature_of(file), signature.into_string()).expect("written");
}

fn signature_of(file: &Path) -> std::path::PathBuf {
    file.with_extension("wasm.minisig")
}

fn require(world: &World, keys: &KeyPair) {
    configure(world, &format!("require-signature = [\"{}\"]\n", keys.pk.to_base64()));
}

fn state(world: &World, name: &str) -> Value {
    let list: Value = serde_json::from_str(&printed(world, ["guests", "list", "--json"])).expect("JSON");
    list.as_array().expect("guests").iter().find(|guest| guest["name"] == name).cloned().unwrap_or_default()
}

#[test]
fn a_guest_without_the_required_signature_is_not_added() {
    let world = World::new(&[]);
    let (alice, eve) = (keys(), keys());
    require(&world, &alice);
    let none = json!([]);
    let file = guest_file(&world, "guard", "1", &none);
    let other = guest_file(&world, "other", "1", &none);
    let add = || change(&world, &["add", text(&file)]);

    let missing = add();
    assert!(missing.stderr.contains("and that of `guard` is: none"), "{}", missing.stderr);
    sign(&eve, &file);
    assert!(add().stderr.contains("which is not a trusted key: not checked"), "somebody else's key");
    sign(&alice, &other);
    fs::copy(signature_of(&other), signature_of(&file)).expect("copied");
    assert!(
        add().stderr.contains("it is not a signature of these bytes by the trusted key"),
        "a signature of another file"
    );
    sign(&alice, &file);
    let mut bytes = fs::read(&file).expect("bytes");
    *bytes.last_mut().expect("bytes") ^= 1;
    fs::write(&file, &bytes).expect("written");
    assert!(!add().stderr.is_empty(), "altered bytes");
    fs::write(signature_of(&file), "x".repeat(5_000)).expect("written");
    guest_file(&world, "guard", "1", &none);
    assert!(add().stderr.contains("is refused: it is not a signature of minisign (it is too large)"));
    assert!(!world.path("home/.local/share/omc-host/guests.json").exists(), "nothing was added by any of it");

    sign(&alice, &file);
    let added = add();
    assert_eq!(added.code, Some(0), "{}", added.stderr);
    assert!(String::from_utf8_lossy(&added.stdout).contains("signature  by the trusted key "));
    assert_eq!(entry(&world, "guard")["signature"]["signer"], alice.pk.to_base64());
    assert_eq!(state(&world, "guard")["signed-by"].as_str().map(str::len), Some(16));
    assert_eq!(act(&world, "guard", &json!([]))["decision"], "pass");
}

#[test]
fn a_guest_that_loses_its_standing_is_not_called_and_a_required_one_closes() {
    let world = World::new(&[]);
    let (alice, bob) = (keys(), keys());
    let file = guest_file(&world, "guard", "1", &json!([]));
    sign(&alice, &file);
    configure(&world, &format!("trusted-keys = [\"{}\"]\n", alice.pk.to_base64()));
    assert_eq!(change(&world, &["add", text(&file)]).code, Some(0));
    assert_eq!(act(&world, "guard", &json!([]))["decision"], "pass");

    require(&world, &bob);
    let record = act(&world, "guard", &json!([]));
    assert_eq!(record["fault"]["kind"], "signature", "{record}");
    assert_eq!(state(&world, "guard")["state"], "unsigned");
    let why = String::from_utf8(run(&world, ["guests", "verify", "guard"]).stdout).expect("UTF-8");
    assert!(why.contains("it has no signature by a key of `require-signature`"), "{why}");
    let audit = run(&world, ["audit", "guard"]);
    assert_eq!(audit.code, Some(1));
    assert!(String::from_utf8_lossy(&audit.stdout).contains("so it is not called"));

    let both = format!("require-signature = [\"{}\"]\n[guests.guard]\nrequired = true\n", bob.pk.to_base64());
    configure(&world, &both);
    let event = json!({"hook_event_name": "PreToolUse", "session_id": "s1", "cwd": world.project(), "tool_name": "Bash", "tool_input": {"command": "ls"}});
    let answer = Running::start(world.host(["hook", "--agent", "claude"]), event.to_string().into_bytes()).finish();
    let answer = String::from_utf8_lossy(&answer.stdout).into_owned();
    assert!(answer.contains("\"deny\"") && answer.contains("signature"), "{answer}");

    // Signed again by the right key, it is added again by `update`, although its bytes are the same.
    configure(&world, &both);
    sign(&bob, &file);
    assert_eq!(change(&world, &["update", "guard"]).code, Some(0));
    assert_eq!(act(&world, "guard", &json!([]))["decision"], "pass");
}

#[test]
fn a_lock_file_that_only_says_it_is_signed_is_found_out() {
    let world = World::new(&[]);
    let alice = keys();
    let file = guest_file(&world, "guard", "1", &json!([]));
    let other = guest_file(&world, "other", "1", &json!([]));
    sign(&alice, &other);
    assert_eq!(change(&world, &["add", text(&file)]).code, Some(0));
    let list = world.path("home/.local/share/omc-host/guests.json");
    let mut lock: Value = serde_json::from_slice(&fs::read(&list).expect("a list")).expect("JSON");
    let borrowed = fs::read_to_string(signature_of(&other)).expect("a signature");
    lock["guests"][0]["signature"] = json!({"text": borrowed, "signer": alice.pk.to_base64()});
    write(&list, 0o600, lock.to_string().as_bytes());
    require(&world, &alice);
    for args in [&["guests", "verify", "guard"][..], &["audit", "guard"]] {
        let run = run(&world, args.iter().copied());
        assert_eq!(run.code, Some(1), "{args:?}");
        assert!(String::from_utf8_lossy(&run.stdout).contains("not a signature of these bytes"), "{args:?}");
    }
}

#[test]
fn what_is_no_key_in_the_configuration_requires_all_the_same() {
    let world = World::new(&[]);
    let file = guest_file(&world, "guard", "1", &json!([]));
    configure(&world, "require-signature = [\"alice\"]\n");
    let why = refused(&world, ["guests", "add", text(&file), "--yes", "--compiler", "/nowhere"]);
    assert!(
        why.contains("no public key of minisign") && why.contains("`require-signature` of the configuration"),
        "{why}"
    );
}
