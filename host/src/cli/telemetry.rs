//! `omc-host telemetry`: sends the trail to where the operator wants it, for a timer or a person; never on an event.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read as _, Write as _};
use std::path::Path;

use anyhow::{Context as _, Result, bail};

use super::guests;
use super::net::{self, Transport};
use crate::config::{Paths, Telemetry};
use crate::registry::open_private;
use crate::telemetry::{Batch, Spool, export};
use crate::text::inert;

/// Largest file of headers that is read, in bytes: a few tokens.
const MAX_HEADERS_BYTES: u64 = 16 * 1024;

pub(super) const EXAMPLES: &str = "\
Examples:
  omc-host telemetry send             what has not been sent yet
  omc-host telemetry send --dry-run   show it, and send nothing";

/// Send the audit trail to where the operator wants it.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Send what has not been sent yet as OTLP logs
    #[command(after_help = "\
The endpoint is in the configuration and nowhere else:
  [telemetry]
  endpoint = \"https://collector.example.com:4318\"
  texts = false          also texts of guests, notes, sessions and projects
  headers-file = \"/etc/omc-host/otlp-headers\"   lines of `Name: value`

Without it nothing is sent, and that is in order. Call it from a timer; see docs/telemetry.md.")]
    Send {
        /// Print what would be sent as JSON, and send nothing
        #[arg(long)]
        dry_run: bool,
        #[command(flatten)]
        transport: Transport,
    },
}

pub(super) fn run(command: Command, paths: &Paths) -> Result<bool> {
    let Command::Send { dry_run, transport } = command;
    let mut stdout = std::io::stdout().lock();
    let telemetry = guests::settings(paths).telemetry();
    let Some(telemetry) = telemetry else {
        writeln!(stdout, "telemetry is off: the configuration names no endpoint")?;
        return Ok(true);
    };
    let folder = paths
        .state_dir
        .as_ref()
        .context("there is no trail: neither HOME nor XDG_STATE_HOME is set to an absolute path")?;
    let mut spool = match Spool::open(folder) {
        Err(error) if error.kind() == ErrorKind::WouldBlock => {
            bail!("another `telemetry send` is at work; it sends what there is")
        }
        opened => opened.with_context(|| format!("failed to use `{}`", folder.display()))?,
    };
    if dry_run {
        let batch = spool.next().context("failed to read the trail")?;
        let shown = serde_json::to_string_pretty(&export(&batch, telemetry.texts, &BTreeMap::new()))?;
        writeln!(stdout, "{}", crate::text::inert_json(shown))?;
        return Ok(true);
    }
    let headers = telemetry.headers_file.as_deref().map(read_headers).transpose()?.unwrap_or_default();
    let (mut sent, mut rejected) = (0, 0);
    loop {
        let batch = spool.next().context("failed to read the trail")?;
        if batch.records.is_empty() {
            break;
        }
        sent += batch.records.len();
        rejected += send(&transport, &telemetry, &headers, &batch)?;
        spool.done(batch).context("failed to note what was sent; it will be sent again")?;
    }
    writeln!(stdout, "sent {sent} records to {}", inert(&telemetry.endpoint))?;
    if rejected > 0 {
        writeln!(stdout, "{rejected} of them were refused there")?;
    }
    Ok(rejected == 0)
}

/// Sends a batch; returns how many of it were refused for good.
fn send(
    transport: &Transport,
    telemetry: &Telemetry,
    headers: &BTreeMap<String, String>,
    batch: &Batch,
) -> Result<u64> {
    let records = serde_json::to_vec(&export(batch, telemetry.texts, headers))?;
    let sent = net::send_logs(transport, &telemetry.endpoint, &records)?;
    if !sent.message.is_empty() {
        super::warn([format!("`{}` says: {}", telemetry.endpoint, sent.message)]);
    }
    Ok(sent.rejected)
}

/// Reads headers, which may hold a secret: nobody else may be able to change them.
fn read_headers(path: &Path) -> Result<BTreeMap<String, String>> {
    let mut text = String::new();
    let read = open_private(path).and_then(|file| file.take(MAX_HEADERS_BYTES).read_to_string(&mut text));
    read.with_context(|| format!("failed to read headers from `{}`", path.display()))?;
    let mut headers = BTreeMap::new();
    for (number, line) in (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty()) {
        let Some((name, value)) = line.split_once(':') else {
            bail!("line {number} of `{}` is no header; write `Name: value`", path.display());
        };
        headers.insert(name.trim().to_owned(), value.trim().to_owned());
    }
    Ok(headers)
}
