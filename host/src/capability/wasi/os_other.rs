//! Files and folders by handle, on systems without an implementation yet: no directory can be opened, so nothing can happen.
//!
//! The functions and types of `os_unix.rs`, where each one is explained. `Dir` has no values here, hence nothing below it can run.

use std::ffi::CString;
use std::io;
use std::path::Path;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    File,
    Dir,
    Symlink,
    Fifo,
    Socket,
    CharDevice,
    BlockDevice,
    Unknown,
}

pub type Time = (i64, u32);

#[derive(Clone, Copy, Debug)]
pub struct Stat {
    pub kind: Kind,
    pub identity: (u64, u64),
    pub owner: u32,
    pub links: u64,
    pub size: u64,
    pub accessed: Time,
    pub modified: Time,
    pub changed: Time,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetTime {
    Keep,
    Now,
    To(Time),
}

#[derive(Debug)]
pub enum Dir {}

impl Dir {
    pub fn open_parent(_: &Path) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub fn open_dir(&self, _: &str) -> io::Result<Self> {
        match *self {}
    }

    pub fn open_file(&self, _: &str, _: bool, _: bool) -> io::Result<File> {
        match *self {}
    }

    pub fn create_file(&self, _: &str, _: bool) -> io::Result<File> {
        match *self {}
    }

    pub fn create_dir(&self, _: &str) -> io::Result<()> {
        match *self {}
    }

    pub fn stat(&self) -> io::Result<Stat> {
        match *self {}
    }

    pub fn stat_at(&self, _: &str) -> io::Result<Stat> {
        match *self {}
    }

    pub fn remove_file(&self, _: &str) -> io::Result<()> {
        match *self {}
    }

    pub fn remove_dir(&self, _: &str) -> io::Result<()> {
        match *self {}
    }

    pub fn rename(&self, _: &str, _: &Self, _: &str) -> io::Result<()> {
        match *self {}
    }

    pub fn entries(&self) -> io::Result<Entries> {
        match *self {}
    }

    pub fn set_times(&self, _: SetTime, _: SetTime) -> io::Result<()> {
        match *self {}
    }

    pub fn sync(&self) -> io::Result<()> {
        match *self {}
    }

    pub fn is_own(&self) -> io::Result<bool> {
        match *self {}
    }
}

pub enum Entries {}

impl Entries {
    pub fn read(&mut self) -> Option<io::Result<(CString, Kind)>> {
        match *self {}
    }

    pub fn stat_at(&self, _: &str) -> io::Result<Stat> {
        match *self {}
    }
}

#[derive(Debug)]
pub enum File {}

impl File {
    pub fn stat(&self) -> io::Result<Stat> {
        match *self {}
    }

    pub fn read_at(&self, _: usize, _: u64) -> io::Result<Vec<u8>> {
        match *self {}
    }

    pub fn write_at(&self, _: &[u8], _: u64) -> io::Result<usize> {
        match *self {}
    }

    pub fn append(&self, _: &[u8]) -> io::Result<usize> {
        match *self {}
    }

    pub fn set_len(&self, _: u64) -> io::Result<()> {
        match *self {}
    }

    pub fn set_times(&self, _: SetTime, _: SetTime) -> io::Result<()> {
        match *self {}
    }

    pub fn sync(&self) -> io::Result<()> {
        match *self {}
    }
}
