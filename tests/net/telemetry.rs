//! Telemetry: what the endpoint is sent, once each, and nothing that the operator did not switch on.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use opentelemetry_proto::tonic::collector::logs::v1::{
    ExportLogsPartialSuccess, ExportLogsServiceRequest, ExportLogsServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value};
use opentelemetry_proto::tonic::logs::v1::LogRecord;
use prost::Message as _;
use serde_json::json;

use crate::server::{Answer, Server};
use crate::world::{Guest, Run, Running, World, write};
use crate::{configure, run};

fn world() -> World {
    World::new(&[Guest { name: "puppet".to_owned(), grants: Vec::new() }])
}

fn act(world: &World, secret: &str) {
    let event = json!({
        "hook_event_name": "UserPromptSubmit", "session_id": "session-SECRET", "cwd": world.project(), "prompt": "SECRET",
        "puppet": [{"log": secret}, {"print": secret}, {"fail": secret}],
    });
    Running::start(world.host(["hook", "--agent", "claude"]), event.to_string().into_bytes()).finish();
}

fn taken() -> Answer {
    let headers = vec!["Content-Type: application/x-protobuf".to_owned()];
    Answer { status: "200 OK", headers, body: ExportLogsServiceResponse::default().encode_to_vec(), is_endless: false }
}

fn send(world: &World) -> Run {
    run(world, &["telemetry", "send"])
}

/// The records that a server was sent.
fn records(server: &Server) -> Vec<LogRecord> {
    let requests = server.requests();
    let decoded = requests.iter().map(|request| {
        assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", "/v1/logs"));
        assert!(request.headers.iter().any(|line| line == "content-type: application/x-protobuf"));
        ExportLogsServiceRequest::decode(request.body.as_slice()).expect("OTLP")
    });
    let resources = decoded.flat_map(|request| request.resource_logs);
    let scopes = resources.flat_map(|resource| {
        assert_eq!(
            text(&resource.resource.expect("a resource").attributes, "service.name").as_deref(),
            Some("omc-host")
        );
        resource.scope_logs
    });
    scopes.flat_map(|scope| scope.log_records).collect()
}

fn text(attributes: &[KeyValue], key: &str) -> Option<String> {
    let found = attributes.iter().find(|attribute| attribute.key == key)?;
    match found.value.as_ref()?.value.as_ref()? {
        any_value::Value::StringValue(text) => Some(text.clone()),
        other => Some(format!("{other:?}")),
    }
}

fn on(server: &Server, more: &str) -> String {
    format!("[telemetry]\nendpoint = \"http://{}\"\n{more}", server.address)
}

#[test]
fn without_an_endpoint_nothing_is_sent_and_that_is_in_order() {
    let world = world();
    act(&world, "x");
    let run = send(&world);
    assert_eq!(
        (run.code, String::from_utf8_lossy(&run.stdout).as_ref()),
        (Some(0), "telemetry is off: the configuration names no endpoint\n")
    );
    assert!(!world.path("home/.local/state/omc-host/telemetry").exists());
}

#[test]
fn each_record_is_sent_once_as_protobuf_without_a_strangers_word() {
    let world = world();
    let server = Server::start(|_| taken());
    configure(&world, &on(&server, ""));
    act(&world, "SECRET");
    let first = send(&world);
    assert_eq!(first.code, Some(0), "{}", first.stderr);
    assert_eq!(send(&world).code, Some(0));
    act(&world, "SECRET");
    assert_eq!(send(&world).code, Some(0));

    let lines = world.trail().lines().count();
    let sent = records(&server);
    assert_eq!(sent.len(), lines);
    let ids: BTreeSet<_> = sent.iter().filter_map(|record| text(&record.attributes, "omc.record.id")).collect();
    assert_eq!(ids.len(), lines, "each has its own id");
    let puppet: Vec<_> =
        sent.iter().filter(|record| text(&record.attributes, "omc.guest.name").as_deref() == Some("puppet")).collect();
    assert_eq!(puppet.len(), 2);
    let record = puppet[0];
    assert_eq!((record.event_name.as_str(), record.severity_number), ("omc.call", 13));
    assert_eq!(text(&record.attributes, "omc.fault.kind").as_deref(), Some("guest"));
    assert_eq!(text(&record.attributes, "omc.event").as_deref(), Some("user-prompt-submit"));
    assert!(text(&record.attributes, "omc.fuel").is_some_and(|fuel| fuel.starts_with("IntValue")));
    assert!(record.time_unix_nano > 1_700_000_000_000_000_000);
    let everything: Vec<u8> = server.requests().iter().flat_map(|request| request.body.clone()).collect();
    for secret in ["SECRET", world.project().to_str().expect("UTF-8")] {
        assert!(
            !everything.windows(secret.len()).any(|window| window == secret.as_bytes()),
            "{secret} left the machine"
        );
    }
}

#[test]
fn texts_leave_when_the_operator_says_so_and_a_token_comes_from_its_file() {
    let world = world();
    let server = Server::start(|_| taken());
    let file = world.path("outside/headers");
    write(&file, 0o600, b"Authorization: Bearer t0ken\n");
    configure(&world, &on(&server, &format!("texts = true\nheaders-file = \"{}\"\n", file.display())));
    act(&world, "SECRET");
    let dry = run(&world, &["telemetry", "send", "--dry-run"]);
    let shown = String::from_utf8_lossy(&dry.stdout).into_owned();
    assert!(shown.contains("SECRET") && !shown.contains("t0ken"), "{shown}");
    assert!(server.requests().is_empty());
    assert_eq!(send(&world).code, Some(0));
    let sent = records(&server);
    assert!(sent.iter().any(|record| text(&record.attributes, "omc.log").is_some_and(|log| log.contains("SECRET"))));
    assert!(server.requests()[0].headers.iter().any(|line| line == "authorization: Bearer t0ken"));
    // The prompt is not in the trail, so it is nowhere.
    assert!(!sent.iter().any(|record| record.attributes.iter().any(|attribute| attribute.key.contains("payload"))));
}

#[test]
fn what_an_endpoint_does_not_take_is_sent_again() {
    let world = world();
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let server = Server::start(move |_| match counted.fetch_add(1, Ordering::SeqCst) {
        0 => Answer { status: "503 Service Unavailable", ..taken() },
        1 => Answer { status: "302 Found", headers: vec!["Location: http://127.0.0.1:1/".to_owned()], ..taken() },
        2 => Answer { body: b"garbage that is no protobuf".to_vec(), ..taken() },
        _ => taken(),
    });
    configure(&world, &on(&server, ""));
    act(&world, "x");
    for expected in ["503", "302", "failed to understand the answer"] {
        let run = send(&world);
        assert_eq!(run.code, Some(1));
        assert!(run.stderr.contains(expected), "{}", run.stderr);
    }
    assert_eq!(send(&world).code, Some(0));
    let requests = server.requests();
    assert!(requests.iter().all(|request| request.body == requests[0].body), "the same records, each time");
    assert_eq!(send(&world).code, Some(0));
    assert_eq!(server.requests().len(), 4, "and no more");
}

#[test]
fn what_an_endpoint_refuses_for_good_is_reported_and_not_sent_again() {
    let world = world();
    let server = Server::start(|_| {
        let partial = ExportLogsPartialSuccess { rejected_log_records: 1, error_message: "no\u{1b}[2Jroom".to_owned() };
        let body = ExportLogsServiceResponse { partial_success: Some(partial) }.encode_to_vec();
        Answer { body, ..taken() }
    });
    configure(&world, &on(&server, ""));
    act(&world, "x");
    let run = send(&world);
    assert_eq!(run.code, Some(1));
    assert!(run.stderr.contains("says: no\\u{1b}[2Jroom"), "{:?}", run.stderr);
    assert!(String::from_utf8_lossy(&run.stdout).contains("1 of them were refused there"));
    assert_eq!(send(&world).code, Some(0));
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn an_endpoint_on_another_machine_needs_tls_unless_somebody_says_otherwise() {
    let world = world();
    configure(&world, "[telemetry]\nendpoint = \"http://collector.invalid:4318\"\n");
    act(&world, "x");
    let run = send(&world);
    assert!(run.stderr.contains("use https, or say --plain-http"), "{}", run.stderr);
}
