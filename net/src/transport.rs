//! What every task keeps to: how much memory a stranger can make it use, and where it speaks without TLS.

use std::io;
use std::net::IpAddr;
use std::time::Duration;

/// How long a connection may take to come about.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);
/// How long the other side may be silent.
pub(crate) const READ_TIMEOUT: Duration = Duration::from_mins(1);

/// Most memory of this process, in bytes: the largest component twice, and room to work in. A registry's library reads
/// manifests whole, however long they are; one without an end ends here.
const MAX_MEMORY_BYTES: u64 = 1 << 30;

/// Bounds the memory of this process.
#[cfg(unix)]
pub(crate) fn bound_memory() -> io::Result<()> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let now = getrlimit(Resource::As);
    let least = |limit: Option<u64>| Some(limit.unwrap_or(u64::MAX).min(MAX_MEMORY_BYTES));
    Ok(setrlimit(Resource::As, Rlimit { current: least(now.current), maximum: least(now.maximum) })?)
}

/// Elsewhere the system has no such bound.
#[cfg(not(unix))]
pub(crate) fn bound_memory() -> io::Result<()> {
    Ok(())
}

/// Whether a host is this machine: only its own users hear what is said.
pub(crate) fn is_loopback(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_is_spoken_to_in_the_clear() {
        for host in ["localhost", "127.0.0.1", "127.9.9.9", "::1", "[::1]"] {
            assert!(is_loopback(host), "{host}");
        }
        for host in
            ["", "localhost.example.com", "127.0.0.1.example.com", "10.0.0.1", "0.0.0.0", "2130706433", "example.com"]
        {
            assert!(!is_loopback(host), "{host}");
        }
    }
}
