//! Registries that lie: about sizes, digests and types, without end, or with somebody else's address.

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::packed::with_manifest;
use crate::server::{Answer, Server};
use crate::world::World;
use crate::{change, entry};

const MANIFEST_TYPE: &str = "application/vnd.oci.image.manifest.v1+json";

fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold("sha256:".to_owned(), |hex, byte| format!("{hex}{byte:02x}"))
}

fn component() -> Vec<u8> {
    with_manifest(&json!({"name": "guard", "version": "1", "subscriptions": []}))
}

/// The manifest of an honest registry.
fn honest() -> Value {
    let component = component();
    json!({
        "schemaVersion": 2, "mediaType": MANIFEST_TYPE,
        "config": {"mediaType": "application/vnd.wasm.config.v0+json", "digest": digest(b"{}"), "size": 2},
        "layers": [{"mediaType": "application/wasm", "digest": digest(&component), "size": component.len()}],
    })
}

/// A registry with this manifest and this blob.
fn registry(manifest: Answer, blob: Answer) -> Server {
    Server::start(move |request| match request.path.as_str() {
        "/v2/" => Answer { status: "200 OK", ..Answer::default() },
        path if path.contains("/manifests/") => manifest.clone(),
        path if path.contains("/blobs/") => blob.clone(),
        _ => Answer { status: "404 Not Found", ..Answer::default() },
    })
}

fn ok(body: Vec<u8>) -> Answer {
    Answer { status: "200 OK", headers: vec![format!("Content-Type: {MANIFEST_TYPE}")], body, is_endless: false }
}

#[test]
fn an_honest_registry_of_this_kind_is_believed() {
    let world = World::new(&[]);
    let server = registry(ok(honest().to_string().into_bytes()), ok(component()));
    let run = change(&world, &["add", &format!("oci://{}/guard:1", server.address)]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(server.requests().iter().all(|request| request.method == "GET"), "{:?}", server.requests());
}

/// What a registry lies about, its manifest, its blob if that is another one, and why it is refused.
type Lie<'a> = (&'a str, &'a dyn Fn(&mut Value), Option<Vec<u8>>, &'a str);

#[test]
fn a_registry_that_lies_brings_nothing_and_is_told_from_an_honest_one() {
    let layer = |manifest: &mut Value, member: &str, value: Value| manifest["layers"][0][member] = value;
    let mut longer = component();
    longer.extend([0; 1_000]);
    let mut altered = component();
    *altered.last_mut().expect("bytes") ^= 1;
    let lies: &[Lie<'_>] = &[
        ("other bytes of the same length", &|_| {}, Some(altered), "failed to read the component"),
        ("more bytes than it says", &|_| {}, Some(longer), "failed to read the component"),
        ("fewer bytes than it says", &|_| {}, Some(component()[..100].to_vec()), "failed to read the component"),
        ("a size beyond all bounds", &|manifest| layer(manifest, "size", json!(1_u64 << 40)), None, "and a guest 1 to"),
        ("a size below nothing", &|manifest| layer(manifest, "size", json!(-1)), None, "and a guest 1 to"),
        (
            "a layer of another type",
            &|manifest| layer(manifest, "mediaType", json!("application/vnd.oci.image.layer.v1.tar")),
            None,
            "its layer is of the type",
        ),
        (
            "a config of another type",
            &|manifest| manifest["config"]["mediaType"] = json!("application/vnd.oci.image.config.v1+json"),
            None,
            "no WebAssembly artifact",
        ),
        ("no layer", &|manifest| manifest["layers"] = json!([]), None, "it has 0 layers"),
        (
            "two layers",
            &|manifest| {
                let one = manifest["layers"][0].clone();
                manifest["layers"] = json!([one, one]);
            },
            None,
            "it has 2 layers",
        ),
        (
            "a digest that is none",
            &|manifest| layer(manifest, "digest", json!("sha256:../../../etc/passwd")),
            None,
            "failed to read",
        ),
        ("a digest of another kind", &|manifest| layer(manifest, "digest", json!("md5:00")), None, "failed to read"),
        (
            "a signature without end",
            &|manifest| manifest["annotations"] = json!({"io.github.omc-host.minisig": "x".repeat(10_000)}),
            None,
            "its signature is larger than",
        ),
        (
            "a signature that is none",
            &|manifest| manifest["annotations"] = json!({"io.github.omc-host.minisig": "x"}),
            None,
            "not a signature of minisign",
        ),
        (
            "an index",
            &|manifest| {
                *manifest = json!({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": []});
            },
            None,
            "an index of several artifacts",
        ),
        ("no manifest", &|manifest| *manifest = json!("x"), None, "failed to read the manifest"),
        (
            "bytes that are no guest",
            &|manifest| {
                layer(manifest, "digest", json!(digest(b"garbage")));
                layer(manifest, "size", json!(7));
            },
            Some(b"garbage".to_vec()),
            "not a WebAssembly component",
        ),
    ];
    for (what, lie, blob, why) in lies {
        let world = World::new(&[]);
        let mut manifest = honest();
        lie(&mut manifest);
        let server = registry(ok(manifest.to_string().into_bytes()), ok(blob.clone().unwrap_or_else(component)));
        let run = change(&world, &["add", &format!("oci://{}/guard:1", server.address)]);
        assert_eq!(run.code, Some(1), "{what}: {}", String::from_utf8_lossy(&run.stdout));
        assert!(run.stderr.contains(why), "{what}: {}", run.stderr);
        assert_eq!(entry(&world), Value::Null, "{what}");
    }
}

#[test]
fn a_manifest_that_is_not_what_its_digest_says_is_refused() {
    let world = World::new(&[]);
    let server = registry(ok(honest().to_string().into_bytes()), ok(component()));
    let reference = format!("oci://{}/guard@sha256:{}", server.address, "0".repeat(64));
    let run = change(&world, &["add", &reference]);
    assert_eq!(run.code, Some(1));
    assert!(run.stderr.contains("failed to read the manifest"), "{}", run.stderr);
}

#[test]
fn answers_without_an_end_have_one_here() {
    let endless = Answer { is_endless: true, ..ok(Vec::new()) };
    for (manifest, blob) in [(endless.clone(), ok(component())), (ok(honest().to_string().into_bytes()), endless)] {
        let world = World::new(&[]);
        let server = registry(manifest, blob);
        let run = change(&world, &["add", &format!("oci://{}/guard:1", server.address)]);
        assert_eq!(run.code, Some(1), "{}", String::from_utf8_lossy(&run.stdout));
        assert_eq!(entry(&world), Value::Null);
    }
}

#[test]
fn what_a_registry_says_acts_on_no_terminal() {
    let hostile = "x\u{1b}[2J\r\nadded `guard` 1.0\u{202e}";
    let body = json!({"errors": [{"code": "DENIED", "message": hostile, "detail": hostile}]});
    let answer = Answer { status: "403 Forbidden", ..ok(body.to_string().into_bytes()) };
    let server = registry(answer.clone(), answer);
    let world = World::new(&[]);
    let run = change(&world, &["add", &format!("oci://{}/guard:1", server.address)]);
    assert_eq!(run.code, Some(1));
    assert!(!run.stderr.trim_end().contains(['\u{1b}', '\r', '\n', '\u{202e}']), "{:?}", run.stderr);
}

#[test]
fn nothing_is_said_in_the_clear_to_other_machines_unasked() {
    let world = World::new(&[]);
    // Another name of this machine, and not one of those that are known to be: TLS is tried, and nothing else.
    let run = change(&world, &["add", "oci://0.0.0.0:1/guard:1"]);
    assert_eq!(run.code, Some(1));
    assert!(run.stderr.contains("https://0.0.0.0:1") && !run.stderr.contains("http://"), "{}", run.stderr);
}
