//! The program `omc-net`, which opens sockets so that this one never does: what it is given and what it gives back.
//!
//! | call | given | gives |
//! |---|---|---|
//! | `omc-net pull REFERENCE FOLDER` | an empty folder of ours | `FOLDER/guest.wasm`, `FOLDER/guest.wasm.minisig` if there is one, and `{"digest": …}` |
//! | `omc-net push FILE REFERENCE` | a component, its `.minisig` beside it, and `{"created", "imports", "exports"}` on standard input | `{"digest": …}` |
//! | `omc-net send-logs ENDPOINT` | records as JSON on standard input | `{"rejected": n, "message": …}` |
//!
//! It ends with 0 or with a sentence on standard error. Of this process's environment it sees what finds credentials,
//! certificates and proxies, and nothing else. What it fetched is read here as if a stranger had sent it.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, anyhow, bail};
use omc_artifact::Component;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::text;

/// Variables that it sees.
const PASSED_ON: &[&str] = &[
    "HOME",
    "PATH",
    "DOCKER_CONFIG",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "HTTPS_PROXY",
    "https_proxy",
    "HTTP_PROXY",
    "http_proxy",
    "NO_PROXY",
    "no_proxy",
    "SystemRoot",
    "USERPROFILE",
];

/// Longest sentence of it that is passed on, in bytes.
const MAX_COMPLAINT_BYTES: usize = 4 * 1024;

/// How `omc-net` is found and what it may do.
#[derive(Clone, Debug, Default, clap::Args)]
pub(super) struct Transport {
    /// The program that opens sockets; the one beside this program unless given
    #[arg(long, value_name = "FILE")]
    net: Option<PathBuf>,
    /// Speak HTTP without TLS to a host that is not this machine
    #[arg(long)]
    plain_http: bool,
}

/// What was fetched.
pub(super) struct Pulled {
    pub(super) component: PathBuf,
    /// The digest of the artifact, as the registry names it.
    pub(super) digest: String,
}

/// What became of records that were sent.
#[derive(Debug, Deserialize)]
pub(super) struct Sent {
    /// How many of them the endpoint did not take.
    #[serde(default)]
    pub(super) rejected: u64,
    /// What it says to that.
    #[serde(default)]
    pub(super) message: String,
}

#[derive(Deserialize)]
struct Artifact {
    digest: String,
}

/// Fetches a component into a folder.
pub(super) fn pull(transport: &Transport, reference: &str, folder: &Path) -> Result<Pulled> {
    let mut command = command(transport, "pull")?;
    command.arg(reference).arg(folder);
    let what = format!("fetching {reference}");
    let Artifact { digest } = super::terminal::with_progress(&what, || run(command, &[]))
        .with_context(|| format!("failed to fetch `oci://{reference}`"))?;
    Ok(Pulled { component: folder.join("guest.wasm"), digest })
}

/// Publishes a component; returns the artifact's digest.
pub(super) fn push(transport: &Transport, file: &Path, component: &Component, reference: &str) -> Result<String> {
    let mut command = command(transport, "push")?;
    command.arg(file).arg(reference);
    let about = serde_json::json!({
        "created": crate::audit::now(),
        "imports": component.imports,
        "exports": component.exports,
    });
    let about = about.to_string().into_bytes();
    let what = format!("publishing {reference}");
    let Artifact { digest } = super::terminal::with_progress(&what, || run(command, &about))
        .with_context(|| format!("failed to publish `oci://{reference}`"))?;
    Ok(digest)
}

/// Sends records to an OTLP endpoint.
pub(super) fn send_logs(transport: &Transport, endpoint: &str, records: &[u8]) -> Result<Sent> {
    let mut command = command(transport, "send-logs")?;
    command.arg(endpoint);
    run(command, records).with_context(|| format!("failed to send to `{endpoint}`"))
}

fn command(transport: &Transport, task: &str) -> Result<Command> {
    let program = match &transport.net {
        Some(named) => named.clone(),
        None => super::beside("omc-net", "--net")?,
    };
    let mut command = Command::new(program);
    command.arg(task).env_clear();
    command.envs(PASSED_ON.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
    if transport.plain_http {
        command.arg("--plain-http");
    }
    Ok(command)
}

/// Runs it to its end and reads what it prints.
fn run<T: DeserializeOwned>(mut command: Command, input: &[u8]) -> Result<T> {
    let program = command.get_program().to_owned();
    let shown = program.to_string_lossy();
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("failed to start `{shown}`"))?;
    if let Some(mut stdin) = child.stdin.take() {
        // One that fails before it has read everything says why.
        let _ = stdin.write_all(input);
    }
    let output = child.wait_with_output().with_context(|| format!("failed to wait for `{shown}`"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(match text::cut_to_bytes(said.trim(), MAX_COMPLAINT_BYTES) {
            "" => anyhow!("`{shown}` ended with {} and said nothing", output.status),
            said => anyhow!("{}", said.strip_prefix("omc-net: ").unwrap_or(said)),
        });
    }
    match serde_json::from_slice(&output.stdout) {
        Ok(result) => Ok(result),
        Err(_) => bail!("`{shown}` is not the `omc-net` of this version: its answer cannot be read"),
    }
}
