//! Reads one event from the agent: bytes in, a JSON object out.
//!
//! First step of the path of an event. It acts on the first complete JSON object even when the pipe stays open, reads to
//! that object's end even when nobody wants the event, and repairs what is readable but not JSON by the letter
//! ([`repair`]), because a guard that never sees an event lets it pass.
//!
//! Limits: [`Limits`]. Cost: one `poll` and one `read` for an event of up to 64 KiB and one pass to find its end; the bytes
//! are read into one buffer, and the parsed value is the only copy of them.

mod repair;
mod scan;

use std::fmt;
use std::io;
use std::time::{Duration, Instant};

use serde_json::{Map, Value};

use scan::{Progress, Scanner};

/// Room for one read, in bytes: what a pipe holds on Linux, so that a full pipe is emptied at once.
const CHUNK_BYTES: usize = 64 << 10;

/// How much of an event that cannot be read is looked through for its first members, in bytes.
///
/// They tell the agent and the event, which is all that an answer to an unreadable event needs.
const PARTIAL_BYTES: usize = 64 << 10;

/// Most values an event is kept with.
///
/// A parsed value takes some 70 bytes where its text takes two (`0,`): without a bound, 64 MiB of text become gigabytes.
const MAX_VALUES: usize = 1_000_000;

/// Wait for the rest of what follows an event, once something does follow.
const DRAIN_GRACE: Duration = Duration::from_millis(5);

/// How much is read, and how long for.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Longest event that is handled, in bytes. More is read to its end, not kept, and reported as too large.
    pub max_bytes: usize,
    /// Longest wait for the next byte.
    pub quiet: Duration,
    /// Longest time for the whole event: a writer that drips does not hold the host for ever.
    pub total: Duration,
    /// Longest time spent on reading away what follows the event.
    pub drain: Duration,
}

impl Default for Limits {
    /// - 64 MiB: a tool's result is tens of megabytes at worst;
    /// - 1 s of silence: agents write an event with one call, and the shortest time an agent waits for a hook is of that order;
    /// - 5 s in all: below the usual timeouts of the agents;
    /// - 200 ms of draining: more than a machine under load needs for what is already on its way.
    fn default() -> Self {
        Self {
            max_bytes: 64 << 20,
            quiet: Duration::from_secs(1),
            total: Duration::from_secs(5),
            drain: Duration::from_millis(200),
        }
    }
}

/// An event that was read.
pub struct Input {
    /// The agent's own object, with all its members.
    pub payload: Map<String, Value>,
    /// Length of the event's text.
    pub bytes: usize,
    /// Whether it was no proper JSON, or held more values or levels than are kept.
    pub repaired: bool,
}

impl fmt::Debug for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Payloads hold secrets and do not belong into diagnostics.
        f.debug_struct("Input").field("bytes", &self.bytes).field("repaired", &self.repaired).finish_non_exhaustive()
    }
}

/// An event that could not be read: the answer is the dialect's silence, or what required guests demand.
#[derive(thiserror::Error)]
#[error("{fault}")]
pub struct Unreadable {
    /// What was wrong with it.
    pub fault: InputFault,
    /// The complete members at its beginning. Enough to tell agent and event, not enough to judge by.
    pub partial: Map<String, Value>,
}

impl fmt::Debug for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unreadable").field("fault", &self.fault).finish_non_exhaustive()
    }
}

/// Why an event could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InputFault {
    /// Standard input was closed, empty, or silent.
    #[error("standard input held no event")]
    Empty,
    /// What came first is not the beginning of a JSON object.
    #[error("the event is not a JSON object")]
    NotAnObject,
    /// The end, or too long a silence, came before the event was complete.
    #[error("the event ended before it was complete")]
    Incomplete,
    /// It is over [`Limits::max_bytes`].
    #[error("the event is larger than {limit} bytes")]
    TooLarge {
        /// The limit that was in force.
        limit: usize,
    },
    /// It is beyond repair.
    #[error("the event is not JSON")]
    Malformed,
}

/// Whether a read would give something at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// There are bytes, or the end.
    Ready,
    /// Nothing came in the time that was given.
    Quiet,
    /// This source cannot tell without blocking.
    Unknown,
}

/// Where an event comes from.
pub trait Source {
    /// Waits at most `within` until a read would not block.
    fn ready(&mut self, within: Duration) -> io::Result<Readiness>;

    /// Appends what one read gives to the spare capacity of `buffer`; 0 is the end.
    fn read_into(&mut self, buffer: &mut Vec<u8>) -> io::Result<usize>;
}

/// Reads the event on standard input.
pub fn read_stdin(limits: &Limits) -> Result<Input, Unreadable> {
    #[cfg(unix)]
    return read_event(&mut Descriptor(io::stdin()), limits);
    #[cfg(not(unix))]
    return read_event(&mut Blocking(io::stdin().lock()), limits);
}

/// Reads one event: the first JSON object that `source` gives.
pub fn read_event(source: &mut impl Source, limits: &Limits) -> Result<Input, Unreadable> {
    let started = Instant::now();
    let mut buffer = Vec::with_capacity(CHUNK_BYTES);
    let mut scanner = Scanner::new();
    let mut too_large = false;
    let end = loop {
        let left = limits.total.saturating_sub(started.elapsed());
        if left.is_zero() || matches!(source.ready(limits.quiet.min(left)), Ok(Readiness::Quiet) | Err(_)) {
            break None;
        }
        if buffer.capacity() - buffer.len() < CHUNK_BYTES {
            buffer.reserve(CHUNK_BYTES.max(buffer.len()));
        }
        let before = buffer.len();
        // A closed standard input (EBADF) and any other error mean what the end means: there is no more to come.
        let (Ok(1..), Some(read)) = (source.read_into(&mut buffer), buffer.get(before..)) else { break None };
        match scanner.feed(read) {
            Progress::More => {}
            Progress::NotAnObject => {
                drain(source, limits, DRAIN_GRACE);
                return Err(unreadable(InputFault::NotAnObject));
            }
            Progress::Complete(length) => break Some(before + length),
        }
        too_large |= buffer.len() > limits.max_bytes;
        if too_large {
            buffer.truncate(PARTIAL_BYTES);
        }
    };

    let Some(start) = scanner.start() else { return Err(unreadable(InputFault::Empty)) };
    let event = buffer.get(start..end.unwrap_or(buffer.len())).unwrap_or_default();
    if let Some(end) = end {
        // A line's end is how some writers close an event; anything else may be the beginning of more.
        let ends_here = buffer.get(end..).unwrap_or_default().trim_ascii().is_empty();
        drain(source, limits, if ends_here { Duration::ZERO } else { DRAIN_GRACE });
    }
    if too_large || event.len() > limits.max_bytes {
        return Err(Unreadable { fault: InputFault::TooLarge { limit: limits.max_bytes }, partial: beginning(event) });
    }
    if end.is_none() {
        return Err(Unreadable { fault: InputFault::Incomplete, partial: beginning(event) });
    }
    parse(event, scanner.values())
}

/// Parses one JSON object, strictly first and leniently when that fails.
///
/// `values` is an upper bound on the number of values in it: above [`MAX_VALUES`] only the lenient parser, which keeps no
/// more than that, may see it.
fn parse(event: &[u8], values: usize) -> Result<Input, Unreadable> {
    let bytes = event.len();
    if values <= MAX_VALUES
        && let Ok(payload) = serde_json::from_slice(event)
    {
        return Ok(Input { payload, bytes, repaired: false });
    }
    match repair::parse(event, MAX_VALUES) {
        Ok(payload) => Ok(Input { payload, bytes, repaired: true }),
        Err(partial) => Err(Unreadable { fault: InputFault::Malformed, partial }),
    }
}

fn unreadable(fault: InputFault) -> Unreadable {
    Unreadable { fault, partial: Map::new() }
}

/// The complete members at the beginning of an event.
fn beginning(event: &[u8]) -> Map<String, Value> {
    let event = event.get(..PARTIAL_BYTES).unwrap_or(event);
    repair::parse(event, MAX_VALUES).unwrap_or_else(|partial| partial)
}

/// Reads away what follows the event, so that its writer gets no broken pipe.
fn drain(source: &mut impl Source, limits: &Limits, first_wait: Duration) {
    let started = Instant::now();
    let mut wait = first_wait;
    let mut scrap = Vec::new();
    while started.elapsed() < limits.drain && matches!(source.ready(wait), Ok(Readiness::Ready)) {
        scrap.clear();
        scrap.reserve(CHUNK_BYTES);
        let Ok(1..) = source.read_into(&mut scrap) else { return };
        wait = DRAIN_GRACE;
    }
}

/// An open file: a pipe, a socket, a terminal, a regular file.
#[cfg(unix)]
pub struct Descriptor<F>(pub F);

#[cfg(unix)]
impl<F: std::os::fd::AsFd> Source for Descriptor<F> {
    fn ready(&mut self, within: Duration) -> io::Result<Readiness> {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};

        let until = Instant::now() + within;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let left = Timespec::try_from(left).map_err(io::Error::other)?;
            match poll(&mut [PollFd::new(&self.0, PollFlags::IN)], Some(&left)) {
                Ok(0) => return Ok(Readiness::Quiet),
                Ok(_) => return Ok(Readiness::Ready),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn read_into(&mut self, buffer: &mut Vec<u8>) -> io::Result<usize> {
        Ok(rustix::io::retry_on_intr(|| rustix::io::read(&self.0, rustix::buffer::spare_capacity(buffer)))?)
    }
}

/// Any reader, with blocking reads: where there is nothing to poll with, an event ends with its last byte or the end of input.
pub struct Blocking<R>(pub R);

impl<R: io::Read> Source for Blocking<R> {
    fn ready(&mut self, _within: Duration) -> io::Result<Readiness> {
        Ok(Readiness::Unknown)
    }

    fn read_into(&mut self, buffer: &mut Vec<u8>) -> io::Result<usize> {
        let before = buffer.len();
        buffer.resize(buffer.capacity(), 0);
        let read = loop {
            match self.0.read(&mut buffer[before..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => break read,
            }
        };
        buffer.truncate(before + *read.as_ref().unwrap_or(&0));
        read
    }
}

#[cfg(test)]
mod tests;
