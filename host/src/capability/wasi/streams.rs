//! `wasi:io`: streams and waiting, all synchronous.
//!
//! Every stream is a file, the captured output, or closed, so a read or write is done when the call returns and a stream is always
//! ready. The only thing that a guest can wait for is time, and that ends at the call's deadline: the thread sleeps, nobody else
//! does. There is no runtime, no queue and no second thread.

use std::sync::Arc;
use std::time::{Duration, Instant};

use wasmtime::component::Resource;

use super::Wasi;
use super::bindings::io::{error, poll, streams};
use super::error::{DeadlinePassed, StreamError, StreamFailure};
use super::filesystem::{OpenFile, Position};

/// Bytes that a stream takes in one write, and that a guest can make the host fill with zeros.
const MAX_WRITE_BYTES: usize = 256 << 10;

/// What `blocking-write-and-flush` takes at most, as its definition says.
const MAX_BLOCKING_WRITE_BYTES: usize = 4096;

/// What is behind `wasi:io/streams.input-stream`.
pub struct InputStream(Input);

enum Input {
    Closed,
    File { file: Arc<OpenFile>, offset: u64 },
}

impl InputStream {
    /// A stream that has ended, such as standard input.
    pub(super) fn closed() -> Self {
        Self(Input::Closed)
    }

    pub(super) fn file(file: Arc<OpenFile>, offset: u64) -> Self {
        Self(Input::File { file, offset })
    }
}

/// What is behind `wasi:io/streams.output-stream`.
pub struct OutputStream(Output);

enum Output {
    /// A write failed, and the guest was told so.
    Closed,
    /// Standard output or standard error, kept for the record.
    Captured,
    File {
        file: Arc<OpenFile>,
        position: Position,
    },
}

impl OutputStream {
    pub(super) fn captured() -> Self {
        Self(Output::Captured)
    }

    pub(super) fn file(file: Arc<OpenFile>, position: Position) -> Self {
        Self(Output::File { file, position })
    }
}

/// What is behind `wasi:io/poll.pollable`.
pub struct Pollable(When);

#[derive(Clone, Copy)]
enum When {
    Now,
    At(Instant),
    Never,
}

impl Pollable {
    /// Ready at once, as all streams are.
    pub(super) fn now() -> Self {
        Self(When::Now)
    }

    /// Ready after a while; never, if that is too far off to say.
    pub(super) fn after(duration: Duration) -> Self {
        Self(Instant::now().checked_add(duration).map_or(When::Never, When::At))
    }
}

impl When {
    fn is_ready(self) -> bool {
        match self {
            Self::Now => true,
            Self::At(instant) => instant <= Instant::now(),
            Self::Never => false,
        }
    }
}

impl Wasi {
    fn read_stream(&mut self, stream: &Resource<InputStream>, len: u64) -> Result<Vec<u8>, StreamError> {
        let (file, offset) = match &self.table.get(stream)?.0 {
            Input::Closed => return Err(StreamError::Closed),
            Input::File { file, offset } => (Arc::clone(file), *offset),
        };
        let read = self.read_file(&file, offset, len);
        let input = &mut self.table.get_mut(stream)?.0;
        match read {
            // The file may grow later, but a stream that has ended stays so.
            Ok(bytes) if bytes.is_empty() && len > 0 => {
                *input = Input::Closed;
                Err(StreamError::Closed)
            }
            Ok(bytes) => {
                *input = Input::File { file, offset: offset.saturating_add(bytes.len() as u64) };
                Ok(bytes)
            }
            Err(error) => {
                *input = Input::Closed;
                Err(error.into())
            }
        }
    }

    fn write_stream(&mut self, stream: &Resource<OutputStream>, bytes: &[u8], limit: usize) -> Result<(), StreamError> {
        if bytes.len() > limit {
            return Err(StreamError::Trap(wasmtime::format_err!("a write of more bytes than the stream permits")));
        }
        let (file, position) = match &self.table.get(stream)?.0 {
            Output::Closed => return Err(StreamError::Closed),
            Output::Captured => {
                self.usage.keep_output(bytes, self.limits.output_bytes);
                return Ok(());
            }
            Output::File { file, position } => (Arc::clone(file), *position),
        };
        let written = self.write_file(&file, position, bytes);
        let output = &mut self.table.get_mut(stream)?.0;
        match written {
            Ok(()) => {
                if let Position::At(offset) = position {
                    let position = Position::At(offset.saturating_add(bytes.len() as u64));
                    *output = Output::File { file, position };
                }
                Ok(())
            }
            Err(error) => {
                *output = Output::Closed;
                Err(error.into())
            }
        }
    }

    fn permit(&self, stream: &Resource<OutputStream>) -> Result<usize, StreamError> {
        match self.table.get(stream)?.0 {
            Output::Closed => Err(StreamError::Closed),
            Output::Captured | Output::File { .. } => Ok(MAX_WRITE_BYTES),
        }
    }

    fn zeros(&mut self, stream: &Resource<OutputStream>, len: u64, limit: usize) -> Result<(), StreamError> {
        // One more than permitted is refused like any number above it.
        let len = usize::try_from(len).unwrap_or(usize::MAX).min(limit + 1);
        self.write_stream(stream, &vec![0; len], limit)
    }

    fn transfer(
        &mut self,
        to: &Resource<OutputStream>,
        from: &Resource<InputStream>,
        len: u64,
    ) -> Result<u64, StreamError> {
        let permit = self.permit(to)?;
        let bytes = self.read_stream(from, len.min(permit as u64))?;
        self.write_stream(to, &bytes, permit)?;
        Ok(bytes.len() as u64)
    }

    fn pollable(&self, pollable: &Resource<Pollable>) -> wasmtime::Result<When> {
        Ok(self.table.get(pollable)?.0)
    }

    /// Sleeps until a moment, and not beyond the deadline: then the guest ends here.
    fn sleep_until(&self, instant: Option<Instant>) -> wasmtime::Result<()> {
        let until = instant.map_or(self.deadline, |instant| instant.min(self.deadline));
        std::thread::sleep(until.saturating_duration_since(Instant::now()));
        match instant {
            Some(instant) if instant <= self.deadline => Ok(()),
            _ => Err(DeadlinePassed.into()),
        }
    }
}

impl error::Host for Wasi {}

impl error::HostError for Wasi {
    fn to_debug_string(&mut self, error: Resource<StreamFailure>) -> wasmtime::Result<String> {
        Ok(self.table.get(&error)?.0.name().to_owned())
    }

    fn drop(&mut self, error: Resource<StreamFailure>) -> wasmtime::Result<()> {
        self.table.delete(error)?;
        Ok(())
    }
}

impl poll::Host for Wasi {
    fn poll(&mut self, pollables: Vec<Resource<Pollable>>) -> wasmtime::Result<Vec<u32>> {
        if pollables.is_empty() {
            return Err(wasmtime::format_err!("a poll of nothing"));
        }
        let waits = pollables.iter().map(|pollable| self.pollable(pollable)).collect::<wasmtime::Result<Vec<_>>>()?;
        let ready = || (0..).zip(&waits).filter(|(_, when)| when.is_ready()).map(|(index, _)| index).collect();
        let now: Vec<u32> = ready();
        if !now.is_empty() {
            return Ok(now);
        }
        let first = waits
            .iter()
            .filter_map(|when| match when {
                When::At(instant) => Some(*instant),
                When::Now | When::Never => None,
            })
            .min();
        self.sleep_until(first)?;
        Ok(ready())
    }
}

impl poll::HostPollable for Wasi {
    fn ready(&mut self, pollable: Resource<Pollable>) -> wasmtime::Result<bool> {
        Ok(self.pollable(&pollable)?.is_ready())
    }

    fn block(&mut self, pollable: Resource<Pollable>) -> wasmtime::Result<()> {
        match self.pollable(&pollable)? {
            When::Now => Ok(()),
            When::At(instant) => self.sleep_until(Some(instant)),
            When::Never => self.sleep_until(None),
        }
    }

    fn drop(&mut self, pollable: Resource<Pollable>) -> wasmtime::Result<()> {
        self.table.delete(pollable)?;
        Ok(())
    }
}

impl streams::Host for Wasi {
    fn convert_stream_error(&mut self, error: StreamError) -> wasmtime::Result<streams::StreamError> {
        match error {
            StreamError::Closed => Ok(streams::StreamError::Closed),
            StreamError::Failed(error) => {
                let code = self.note(error)?;
                // Without room for the reason, the guest still learns that it is over.
                Ok(self
                    .table
                    .push(StreamFailure(code))
                    .map_or(streams::StreamError::Closed, streams::StreamError::LastOperationFailed))
            }
            StreamError::Trap(trap) => Err(trap),
        }
    }
}

impl streams::HostInputStream for Wasi {
    fn read(&mut self, stream: Resource<InputStream>, len: u64) -> Result<Vec<u8>, StreamError> {
        self.read_stream(&stream, len)
    }

    fn blocking_read(&mut self, stream: Resource<InputStream>, len: u64) -> Result<Vec<u8>, StreamError> {
        self.read_stream(&stream, len)
    }

    fn skip(&mut self, stream: Resource<InputStream>, len: u64) -> Result<u64, StreamError> {
        self.read_stream(&stream, len).map(|bytes| bytes.len() as u64)
    }

    fn blocking_skip(&mut self, stream: Resource<InputStream>, len: u64) -> Result<u64, StreamError> {
        self.skip(stream, len)
    }

    fn subscribe(&mut self, _: Resource<InputStream>) -> wasmtime::Result<Resource<Pollable>> {
        Ok(self.table.push(Pollable::now())?)
    }

    fn drop(&mut self, stream: Resource<InputStream>) -> wasmtime::Result<()> {
        self.table.delete(stream)?;
        Ok(())
    }
}

impl streams::HostOutputStream for Wasi {
    fn check_write(&mut self, stream: Resource<OutputStream>) -> Result<u64, StreamError> {
        self.permit(&stream).map(|permit| permit as u64)
    }

    fn write(&mut self, stream: Resource<OutputStream>, bytes: Vec<u8>) -> Result<(), StreamError> {
        self.write_stream(&stream, &bytes, MAX_WRITE_BYTES)
    }

    fn blocking_write_and_flush(&mut self, stream: Resource<OutputStream>, bytes: Vec<u8>) -> Result<(), StreamError> {
        self.write_stream(&stream, &bytes, MAX_BLOCKING_WRITE_BYTES)
    }

    fn flush(&mut self, stream: Resource<OutputStream>) -> Result<(), StreamError> {
        // Nothing is held back.
        self.permit(&stream).map(|_| ())
    }

    fn blocking_flush(&mut self, stream: Resource<OutputStream>) -> Result<(), StreamError> {
        self.flush(stream)
    }

    fn subscribe(&mut self, _: Resource<OutputStream>) -> wasmtime::Result<Resource<Pollable>> {
        Ok(self.table.push(Pollable::now())?)
    }

    fn write_zeroes(&mut self, stream: Resource<OutputStream>, len: u64) -> Result<(), StreamError> {
        self.zeros(&stream, len, MAX_WRITE_BYTES)
    }

    fn blocking_write_zeroes_and_flush(&mut self, stream: Resource<OutputStream>, len: u64) -> Result<(), StreamError> {
        self.zeros(&stream, len, MAX_BLOCKING_WRITE_BYTES)
    }

    fn splice(
        &mut self,
        to: Resource<OutputStream>,
        from: Resource<InputStream>,
        len: u64,
    ) -> Result<u64, StreamError> {
        self.transfer(&to, &from, len)
    }

    fn blocking_splice(
        &mut self,
        to: Resource<OutputStream>,
        from: Resource<InputStream>,
        len: u64,
    ) -> Result<u64, StreamError> {
        self.transfer(&to, &from, len)
    }

    fn drop(&mut self, stream: Resource<OutputStream>) -> wasmtime::Result<()> {
        self.table.delete(stream)?;
        Ok(())
    }
}
