//! Records as OTLP logs, sent over HTTP as protobuf.
//!
//! On standard input: `{"resource": {…}, "headers": {…}, "records": [{"time-unix-ms", "severity", "event-name", "body",
//! "attributes"}]}`, all of it chosen by the host. One request is one batch: it is taken, or an error says that nothing was.
//! Redirects are not followed, since headers may hold a token.

use std::collections::BTreeMap;
use std::io::{self, Read as _};

use anyhow::{Context as _, Result, bail};
use opentelemetry_proto::tonic::collector::logs::v1::{ExportLogsServiceRequest, ExportLogsServiceResponse};
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue, any_value};
use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs};
use opentelemetry_proto::tonic::resource::v1::Resource;
use prost::Message as _;
use reqwest::redirect::Policy;
use reqwest::{Client, StatusCode, Url};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::transport::{CONNECT_TIMEOUT, READ_TIMEOUT, is_loopback};

/// Where logs go below an endpoint.
const LOGS_PATH: &str = "v1/logs";
/// Largest batch, in bytes of JSON.
const MAX_BATCH_BYTES: u64 = 64 * 1024 * 1024;
/// Largest answer that is read, in bytes: a number and a sentence.
const MAX_ANSWER_BYTES: usize = 64 * 1024;
const NANOS_PER_MS: u64 = 1_000_000;

#[derive(Deserialize)]
struct Batch {
    resource: Map<String, Value>,
    headers: BTreeMap<String, String>,
    records: Vec<Record>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Record {
    time_unix_ms: u64,
    severity: i32,
    event_name: String,
    body: String,
    attributes: Map<String, Value>,
}

/// Sends a batch; gives how many records the endpoint refused, and what it said.
pub(crate) async fn send(endpoint: &str, plain_http: bool) -> Result<Value> {
    let url = url(endpoint, plain_http)?;
    let batch: Batch =
        serde_json::from_reader(io::stdin().lock().take(MAX_BATCH_BYTES)).context("failed to read the records")?;
    let client = Client::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        .read_timeout(READ_TIMEOUT)
        .redirect(Policy::none())
        .user_agent(concat!("omc-net/", env!("CARGO_PKG_VERSION")))
        .build()
        .context("failed to set up a client")?;
    let mut request = client.post(url).header("content-type", "application/x-protobuf");
    for (name, value) in &batch.headers {
        request = request.header(name, value);
    }
    let mut answer = request.body(encode(batch).encode_to_vec()).send().await.context("failed to send")?;
    let status = answer.status();
    let mut body = Vec::new();
    while let Some(piece) = answer.chunk().await.context("failed to read the answer")? {
        if body.len() + piece.len() > MAX_ANSWER_BYTES {
            bail!("the answer is longer than {MAX_ANSWER_BYTES} bytes");
        }
        body.extend_from_slice(&piece);
    }
    if status != StatusCode::OK {
        bail!("the endpoint answered {status}; nothing was taken, and it will be sent again");
    }
    let answer = ExportLogsServiceResponse::decode(body.as_slice()).context("failed to understand the answer")?;
    let partial = answer.partial_success.unwrap_or_default();
    Ok(json!({ "rejected": partial.rejected_log_records.max(0), "message": partial.error_message }))
}

/// The address to send to.
fn url(endpoint: &str, plain_http: bool) -> Result<Url> {
    let mut url: Url = endpoint.parse().with_context(|| format!("`{endpoint}` is no URL"))?;
    match url.scheme() {
        "https" => {}
        "http" if plain_http || url.host_str().is_some_and(is_loopback) => {}
        "http" => bail!("`{endpoint}` is not this machine; use https, or say --plain-http"),
        _ => bail!("`{endpoint}` is neither https nor http"),
    }
    if !url.path().trim_end_matches('/').ends_with(LOGS_PATH) {
        let path = format!("{}/{LOGS_PATH}", url.path().trim_end_matches('/'));
        url.set_path(&path);
    }
    Ok(url)
}

fn encode(batch: Batch) -> ExportLogsServiceRequest {
    let scope = InstrumentationScope {
        name: "omc-host".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        ..InstrumentationScope::default()
    };
    let records = batch.records.into_iter().map(|record| LogRecord {
        time_unix_nano: record.time_unix_ms.saturating_mul(NANOS_PER_MS),
        severity_number: record.severity,
        body: Some(any(Value::String(record.body))),
        attributes: attributes(record.attributes),
        event_name: record.event_name,
        ..LogRecord::default()
    });
    let scope_logs = ScopeLogs { scope: Some(scope), log_records: records.collect(), ..ScopeLogs::default() };
    let resource = Resource { attributes: attributes(batch.resource), ..Resource::default() };
    let resource_logs =
        ResourceLogs { resource: Some(resource), scope_logs: vec![scope_logs], ..ResourceLogs::default() };
    ExportLogsServiceRequest { resource_logs: vec![resource_logs] }
}

fn attributes(members: Map<String, Value>) -> Vec<KeyValue> {
    members.into_iter().map(|(key, value)| KeyValue { key, value: Some(any(value)), ..KeyValue::default() }).collect()
}

fn any(value: Value) -> AnyValue {
    let value = match value {
        Value::Bool(truth) => any_value::Value::BoolValue(truth),
        Value::Number(number) => match number.as_i64() {
            Some(number) => any_value::Value::IntValue(number),
            None => any_value::Value::DoubleValue(number.as_f64().unwrap_or_default()),
        },
        Value::String(text) => any_value::Value::StringValue(text),
        other => any_value::Value::StringValue(other.to_string()),
    };
    AnyValue { value: Some(value) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_below_the_endpoint_and_never_in_the_clear_unasked() {
        for (endpoint, expected) in [
            ("https://c.example:4318", "https://c.example:4318/v1/logs"),
            ("https://c.example/otlp/", "https://c.example/otlp/v1/logs"),
            ("https://c.example/v1/logs", "https://c.example/v1/logs"),
            ("http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/logs"),
            ("http://[::1]:4318", "http://[::1]:4318/v1/logs"),
        ] {
            assert_eq!(url(endpoint, false).unwrap().as_str(), expected);
        }
        for endpoint in ["http://c.example", "ftp://c.example", "file:///etc/passwd", "c.example", ""] {
            assert!(url(endpoint, false).is_err(), "{endpoint}");
        }
        assert!(url("http://c.example", true).is_ok());
    }
}
