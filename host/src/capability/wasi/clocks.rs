//! `wasi:clocks` and `wasi:random`: always there, never waiting for anything but time.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use wasmtime::component::Resource;

use super::Wasi;
use super::bindings::clocks::{monotonic_clock, wall_clock};
use super::bindings::random::{insecure, insecure_seed, random};
use super::streams::Pollable;

/// Most random bytes that one call gives out: key material comes in dozens, and the function cannot say "fewer".
const MAX_RANDOM_BYTES: u64 = 64 << 10;

/// The clocks tell nanoseconds.
const RESOLUTION_NANOS: u32 = 1;

impl wall_clock::Host for Wasi {
    fn now(&mut self) -> wasmtime::Result<wall_clock::Datetime> {
        // A clock that is set before 1970 stands still there.
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Ok(wall_clock::Datetime { seconds: now.as_secs(), nanoseconds: now.subsec_nanos() })
    }

    fn resolution(&mut self) -> wasmtime::Result<wall_clock::Datetime> {
        Ok(wall_clock::Datetime { seconds: 0, nanoseconds: RESOLUTION_NANOS })
    }
}

impl Wasi {
    /// Nanoseconds since the call began: guests learn nothing about the machine's own clock.
    fn monotonic_nanos(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

impl monotonic_clock::Host for Wasi {
    fn now(&mut self) -> wasmtime::Result<u64> {
        Ok(self.monotonic_nanos())
    }

    fn resolution(&mut self) -> wasmtime::Result<u64> {
        Ok(RESOLUTION_NANOS.into())
    }

    fn subscribe_instant(&mut self, when: u64) -> wasmtime::Result<Resource<Pollable>> {
        let nanos = when.saturating_sub(self.monotonic_nanos());
        self.subscribe_duration(nanos)
    }

    fn subscribe_duration(&mut self, nanos: u64) -> wasmtime::Result<Resource<Pollable>> {
        Ok(self.table.push(Pollable::after(Duration::from_nanos(nanos)))?)
    }
}

fn random_bytes(len: u64) -> wasmtime::Result<Vec<u8>> {
    if len > MAX_RANDOM_BYTES {
        return Err(wasmtime::format_err!("more random bytes than {MAX_RANDOM_BYTES} at once"));
    }
    let mut bytes = vec![0; usize::try_from(len)?];
    getrandom::fill(&mut bytes).map_err(no_randomness)?;
    Ok(bytes)
}

fn random_u64() -> wasmtime::Result<u64> {
    getrandom::u64().map_err(no_randomness)
}

fn no_randomness(error: getrandom::Error) -> wasmtime::Error {
    wasmtime::format_err!("the system gives no random bytes: {error}")
}

impl random::Host for Wasi {
    fn get_random_bytes(&mut self, len: u64) -> wasmtime::Result<Vec<u8>> {
        random_bytes(len)
    }

    fn get_random_u64(&mut self) -> wasmtime::Result<u64> {
        random_u64()
    }
}

impl insecure::Host for Wasi {
    fn get_insecure_random_bytes(&mut self, len: u64) -> wasmtime::Result<Vec<u8>> {
        random_bytes(len)
    }

    fn get_insecure_random_u64(&mut self) -> wasmtime::Result<u64> {
        random_u64()
    }
}

impl insecure_seed::Host for Wasi {
    fn insecure_seed(&mut self) -> wasmtime::Result<(u64, u64)> {
        Ok((random_u64()?, random_u64()?))
    }
}
