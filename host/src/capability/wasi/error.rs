//! Why a WASI call failed, and what becomes of it: an error code for the guest, an entry in the record, or a trap.

use std::io;

use wasmtime::component::ResourceTableError;

use super::bindings::filesystem::types::ErrorCode;
use super::usage::{LimitHit, Reason};

/// Ends a guest that called `exit`. Not a fault of its own: the host decides what an exit in the middle of a call means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the guest exited with status {0}")]
pub struct Exit(pub u8);

/// Ends a guest that waited until the call's deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the guest waited until its deadline")]
pub struct DeadlinePassed;

/// Why a file system function failed.
#[derive(Debug)]
pub enum FsError {
    /// An ordinary error, only for the guest.
    Code(ErrorCode),
    /// A refusal by the host: an error for the guest and an entry in the record.
    Refused(Reason, String),
    /// A limit was reached: an error for the guest and an entry in the record.
    Limit(LimitHit),
    /// The guest broke the contract.
    Trap(wasmtime::Error),
}

impl FsError {
    pub(super) fn refused(reason: Reason, what: &str) -> Self {
        Self::Refused(reason, what.to_owned())
    }
}

/// What a guest is told of a refusal.
pub(super) fn refusal_code(reason: Reason) -> ErrorCode {
    match reason {
        Reason::NotGranted | Reason::Directory => ErrorCode::Access,
        Reason::ReadOnly | Reason::DiskReadOnly => ErrorCode::ReadOnly,
        Reason::DiskFull => ErrorCode::InsufficientSpace,
        Reason::SymbolicLink => ErrorCode::Loop,
        Reason::HardLink => ErrorCode::TooManyLinks,
        Reason::BadName => ErrorCode::Invalid,
        Reason::Escape | Reason::SpecialFile | Reason::NewLink | Reason::HoldsGrant | Reason::Network => {
            ErrorCode::NotPermitted
        }
    }
}

/// What a guest is told of a limit.
pub(super) fn limit_code(limit: LimitHit) -> ErrorCode {
    match limit {
        LimitHit::FileBytes => ErrorCode::FileTooLarge,
        // There is no code for "too many open files".
        LimitHit::OpenFiles | LimitHit::Resources => ErrorCode::InsufficientMemory,
        LimitHit::BytesWritten
        | LimitHit::NewEntries
        | LimitHit::BytesRead
        | LimitHit::ListedEntries
        | LimitHit::OutputBytes => ErrorCode::Quota,
    }
}

impl From<ErrorCode> for FsError {
    fn from(code: ErrorCode) -> Self {
        Self::Code(code)
    }
}

impl From<io::Error> for FsError {
    fn from(error: io::Error) -> Self {
        use io::ErrorKind;
        // What the person has to mend is for the record, too.
        Self::Code(match error.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
                return Self::refused(Reason::DiskFull, "something could not be written");
            }
            ErrorKind::ReadOnlyFilesystem => {
                return Self::refused(Reason::DiskReadOnly, "something could not be written");
            }
            ErrorKind::NotFound => ErrorCode::NoEntry,
            ErrorKind::PermissionDenied => ErrorCode::Access,
            ErrorKind::AlreadyExists => ErrorCode::Exist,
            ErrorKind::WouldBlock => ErrorCode::WouldBlock,
            ErrorKind::NotADirectory => ErrorCode::NotDirectory,
            ErrorKind::IsADirectory => ErrorCode::IsDirectory,
            ErrorKind::DirectoryNotEmpty => ErrorCode::NotEmpty,
            ErrorKind::InvalidInput => ErrorCode::Invalid,
            ErrorKind::InvalidFilename => ErrorCode::NameTooLong,
            ErrorKind::FileTooLarge => ErrorCode::FileTooLarge,
            ErrorKind::ResourceBusy => ErrorCode::Busy,
            ErrorKind::ExecutableFileBusy => ErrorCode::TextFileBusy,
            ErrorKind::CrossesDevices => ErrorCode::CrossDevice,
            ErrorKind::TooManyLinks => ErrorCode::TooManyLinks,
            ErrorKind::Interrupted => ErrorCode::Interrupted,
            ErrorKind::Unsupported => ErrorCode::Unsupported,
            ErrorKind::OutOfMemory => ErrorCode::InsufficientMemory,
            _ => ErrorCode::Io,
        })
    }
}

impl From<ResourceTableError> for FsError {
    fn from(error: ResourceTableError) -> Self {
        match error {
            ResourceTableError::Full => Self::Limit(LimitHit::Resources),
            other => Self::Trap(other.into()),
        }
    }
}

/// Why a stream function failed.
#[derive(Debug)]
pub enum StreamError {
    /// The end, or a stream that failed before.
    Closed,
    /// The file behind it failed.
    Failed(FsError),
    /// The guest broke the contract.
    Trap(wasmtime::Error),
}

impl From<FsError> for StreamError {
    fn from(error: FsError) -> Self {
        match error {
            FsError::Trap(trap) => Self::Trap(trap),
            error => Self::Failed(error),
        }
    }
}

impl From<ResourceTableError> for StreamError {
    fn from(error: ResourceTableError) -> Self {
        FsError::from(error).into()
    }
}

/// What is behind the resource `wasi:io/error.error`: the error of the file behind a stream.
#[derive(Debug)]
pub struct StreamFailure(pub(super) ErrorCode);
