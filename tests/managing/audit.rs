//! `omc-host audit`: its JSON is what the schema says, policies hold or break, and two guests are compared.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::world::{World, component};
use crate::{act, change, guest_file, run, text, world_with};

/// Where a value is not what a schema says. The schema is one of ours: types, members, lists, and what is required.
fn misfits(value: &Value, schema: &Value, place: &str, found: &mut Vec<String>) {
    let is = |name: &str| match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_u64(),
        "boolean" => value.is_boolean(),
        _ => false,
    };
    if !schema["type"].as_str().is_some_and(is) {
        found.push(format!("{place} is no {}", schema["type"]));
        return;
    }
    if let Some(choices) = schema["enum"].as_array()
        && !choices.contains(value)
    {
        found.push(format!("{place} is {value}"));
    }
    for (at, item) in value.as_array().into_iter().flatten().enumerate() {
        misfits(item, &schema["items"], &format!("{place}[{at}]"), found);
    }
    let Some(members) = value.as_object() else { return };
    for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if !members.contains_key(name) {
            found.push(format!("{place} has no {name}"));
        }
    }
    for (name, member) in members {
        match (&schema["properties"][name], &schema["additionalProperties"]) {
            (Value::Null, Value::Object(_)) => {
                misfits(member, &schema["additionalProperties"], &format!("{place}.{name}"), found);
            }
            (Value::Null, _) => found.push(format!("{place}.{name} is not in the schema")),
            (schema, _) => misfits(member, schema, &format!("{place}.{name}"), found),
        }
    }
}

/// The names of all members that a schema describes.
fn described(schema: &Value, names: &mut BTreeSet<String>) {
    for (name, member) in schema["properties"].as_object().into_iter().flatten() {
        names.insert(name.clone());
        described(member, names);
    }
    for below in [&schema["items"], &schema["additionalProperties"]] {
        if below.is_object() {
            described(below, names);
        }
    }
}

#[test]
fn the_json_is_what_the_schema_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/audit.schema.json");
    let schema: Value = serde_json::from_slice(&fs::read(path).expect("the schema")).expect("JSON");
    let world = World::new(&[]);
    let file = guest_file(&world, "guard", "1", &json!([{"capability": "git", "reason": "x"}]));
    assert_eq!(change(&world, &["add", text(&file), "--grant", "git"]).code, Some(0));
    act(&world, "guard", &json!([{"git": 1}]));
    for _ in 0..5 {
        act(&world, "guard", &json!([{"fail": "x"}]));
    }
    // It imports more than it requests, which is a finding.
    let audit = run(&world, ["audit", "--json"]);
    assert_eq!(audit.code, Some(1));
    let all: Value = serde_json::from_slice(&audit.stdout).expect("JSON");
    let mut found = Vec::new();
    misfits(&all, &schema, "", &mut found);
    assert_eq!(found, [""; 0]);
    let guard = all.as_array().expect("reports").iter().find(|report| report["name"] == "guard").expect("it is there");
    assert_eq!(guard["used"], json!({"git": 1}));
    assert_eq!((&guard["history"]["calls"], &guard["history"]["faults"]), (&json!(6), &json!({"guest": 5})));
    assert!(guard["history"]["set-aside-until"].is_string(), "{guard}");
    assert_eq!((&guard["granted"], &guard["wit-version"]), (&json!(["git"]), &json!("0.1.0")));
    // And all that it describes is there, except what only a key brings.
    let mut names = BTreeSet::new();
    described(&schema, &mut names);
    let text = all.to_string();
    let missing: Vec<_> = names.iter().filter(|name| !text.contains(&format!("\"{name}\":"))).collect();
    assert_eq!(missing, ["key", "wished"]);
}

#[test]
fn a_policy_breaks_for_each_thing_it_forbids_and_holds_otherwise() {
    let world = world_with(&["omc=rw:/omc/notes", "halt"]);
    let policy = world.path("outside/policy.toml");
    let audit = |rules: &str, subject: &str| {
        fs::write(&policy, rules).expect("written");
        run(&world, ["audit", subject, "--policy", text(&policy)])
    };
    let puppet = component("puppet");
    let digest = crate::entry(&world, "puppet")["digest"].as_str().expect("a digest").to_owned();
    for (rules, subject, finding) in [
        ("", "puppet", None),
        ("deny = [\"halt\"]", "puppet", Some("has `halt`, which the policy denies")),
        ("deny = [\"allow\"]", "puppet", None),
        ("deny = [\"allow\"]", text(&puppet), Some("has `allow`, which the policy denies")),
        ("deny = [\"omc\"]", "puppet", Some("has `omc rw:/omc/notes`, which the policy denies")),
        ("deny = [\"omc-user\"]", "puppet", None),
        ("deny = [\"omc rw:/omc/notes/secret\"]", "puppet", Some("which the policy denies")),
        ("deny = [\"omc rw:/omc\"]", "puppet", Some("which the policy denies")),
        ("deny = [\"omc rw:/omc/other\"]", "puppet", None),
        ("deny = [\"omc:hook/git\"]", "puppet", Some("imports `omc:hook/git@0.1.0`, which the policy denies")),
        ("deny = [\"wasi:sockets/tcp\"]", "keyword-detector", None),
        ("[max-limits]\nfuel = 500_000_000", "puppet", Some("`fuel` is 1000000000, and the policy allows 500000000")),
        ("[max-limits]\nfuel = 1_000_000_000", "puppet", None),
        ("allowed-digests = []", "puppet", Some("the policy allows neither its digest nor its publisher")),
        ("allowed-digests = []", "keyword-detector", None),
        (&format!("allowed-digests = [\"{digest}\"]"), "puppet", None),
        (&format!("allowed-digests = [\"{digest}\"]"), text(&puppet), None),
    ] {
        let run = audit(rules, subject);
        let shown = String::from_utf8_lossy(&run.stdout);
        assert_eq!(run.code, Some(i32::from(finding.is_some())), "{rules} {subject}: {shown}{}", run.stderr);
        assert!(shown.contains(finding.unwrap_or("")), "{rules} {subject}: {shown}");
    }
    let slip = audit("denny = [\"halt\"]", "puppet");
    assert_eq!(slip.code, Some(1));
    assert!(
        slip.stderr.contains("the policy cannot be used") && slip.stderr.contains("unknown key `denny`"),
        "{}",
        slip.stderr
    );
}

#[test]
fn publishers_of_a_policy_are_believed_by_their_keys() {
    let world = World::new(&[]);
    let alice = minisign::KeyPair::generate_unencrypted_keypair().expect("random numbers");
    let file = world.path("outside/puppet.wasm");
    fs::copy(component("puppet"), &file).expect("copied");
    let policy = world.path("outside/policy.toml");
    fs::write(&policy, format!("allowed-publishers = [\"{}\"]", alice.pk.to_base64())).expect("written");
    let audit = || run(&world, ["audit", text(&file), "--policy", text(&policy)]).code;
    assert_eq!(audit(), Some(1));
    let bytes = fs::read(&file).expect("a component");
    let signature = minisign::sign(None, &alice.sk, bytes.as_slice(), None, None).expect("a signature");
    fs::write(file.with_extension("wasm.minisig"), signature.into_string()).expect("written");
    assert_eq!(audit(), Some(0));
}

#[test]
fn two_guests_are_compared_and_what_widens_is_a_finding() {
    let world = World::new(&[]);
    let less = guest_file(&world, "guard", "1", &json!([{"capability": "git", "reason": "x"}]));
    let more = guest_file(
        &world,
        "more",
        "2",
        &json!([{"capability": "git", "reason": "x"}, {"capability": "allow", "reason": "x"}]),
    );
    let diff = |old: &str, new: &str| {
        let run = run(&world, ["audit", "--diff", old, new]);
        (run.code, String::from_utf8_lossy(&run.stdout).into_owned())
    };
    let (code, shown) = diff(text(&less), text(&more));
    assert_eq!(code, Some(1));
    assert!(shown.contains("+! request allow") && shown.contains("~  name guard -> more"), "{shown}");
    assert_eq!(diff(text(&more), text(&less)).0, Some(0), "less is in order");
    assert_eq!(diff(text(&less), text(&less)), (Some(0), "nothing is different\n".to_owned()));
    assert_eq!(diff("keyword-detector", text(&less)).0, Some(1));
    assert_eq!(run(&world, ["audit", "--diff", "keyword-detector"]).code, Some(64));
}
