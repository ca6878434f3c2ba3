//! Attacks and everyday use, as the generated bindings would call us.
//!
//! Each test plays a guest against a real directory tree: `project/.omc` is what it gets, `outside` is what it must not touch.

mod attacks;
mod everyday;
mod limits;
mod waiting;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use wasmtime::component::Resource;

use super::bindings::filesystem::preopens::Host as _;
use super::bindings::filesystem::types::{
    self, DescriptorFlags, DescriptorStat, DirectoryEntry, ErrorCode, Host as _, HostDescriptor as _,
    HostDirectoryEntryStream as _, NewTimestamp, OpenFlags, PathFlags,
};
use super::bindings::io::streams::{self, Host as _, HostInputStream as _, HostOutputStream as _};
use super::error::{FsError, StreamError};
use super::filesystem::Descriptor;
use super::{Access, FsLimits, PathGrant, Preopen, Reason, Usage, Wasi, WasiConfig};
use crate::capability::omc_dir::OmcDir;

/// What must never reach a guest.
const SECRET: &[u8] = b"the secret";

/// A directory tree with a project in it and something beside it.
struct Tree {
    root: TempDir,
}

impl Tree {
    fn new() -> Self {
        let tree = Self { root: tempfile::tempdir().unwrap() };
        fs::create_dir_all(tree.path("project")).unwrap();
        fs::create_dir_all(tree.path("outside/folder")).unwrap();
        fs::write(tree.path("outside/secret"), SECRET).unwrap();
        fs::write(tree.path("outside/folder/secret"), SECRET).unwrap();
        tree
    }

    /// The same with a `.omc` that a hostile repository filled.
    fn hostile() -> Self {
        let tree = Self::new();
        fs::create_dir_all(tree.omc("sub")).unwrap();
        fs::write(tree.omc("file"), "ours").unwrap();
        for (link, to) in [
            ("link", tree.path("outside")),
            ("folder", tree.path("outside/folder")),
            ("leaf", tree.path("outside/secret")),
            ("dangling", tree.path("outside/new")),
            ("sub/up", PathBuf::from("../..")),
            ("sub/leaf", PathBuf::from("../../../outside/secret")),
            ("parent", PathBuf::from("..")),
            ("loop", PathBuf::from("loop")),
            ("inside", PathBuf::from("file")),
            ("root", PathBuf::from("/")),
        ] {
            symlink(to, tree.omc(link)).unwrap();
        }
        tree
    }

    fn path(&self, path: &str) -> PathBuf {
        self.root.path().join(path)
    }

    fn omc(&self, path: &str) -> PathBuf {
        self.path("project/.omc").join(path)
    }

    fn dir(&self) -> Arc<OmcDir> {
        Arc::new(OmcDir::find(&self.path("project"), ".omc"))
    }

    /// A guest with these grants.
    fn guest(&self, grants: &[(&str, Access)]) -> Guest {
        self.limited(grants, FsLimits::default())
    }

    fn limited(&self, grants: &[(&str, Access)], limits: FsLimits) -> Guest {
        Guest::new(vec![preopen("/omc", self.dir(), grants)], limits)
    }

    fn writer(&self) -> Guest {
        self.guest(&[("", Access::ReadWrite)])
    }

    fn reader(&self) -> Guest {
        self.guest(&[("", Access::ReadOnly)])
    }
}

fn preopen(guest_path: &str, dir: Arc<OmcDir>, grants: &[(&str, Access)]) -> Preopen {
    let grants = grants.iter().map(|&(path, access)| PathGrant::new(path, access).unwrap()).collect();
    Preopen { guest_path: guest_path.to_owned(), dir, grants }
}

/// Everything about a tree that must stay as it is: kinds, modes, owners, link counts, modification times, contents.
fn snapshot(path: &Path) -> BTreeMap<PathBuf, String> {
    fn visit(path: &Path, into: &mut BTreeMap<PathBuf, String>) {
        let stat = fs::symlink_metadata(path).unwrap();
        let contents = if stat.is_symlink() {
            fs::read_link(path).unwrap().display().to_string()
        } else if stat.is_file() {
            format!("{:?}", fs::read(path).unwrap())
        } else {
            String::new()
        };
        let meta = (stat.mode(), stat.uid(), stat.nlink(), stat.mtime(), stat.mtime_nsec(), stat.ino());
        into.insert(path.to_owned(), format!("{meta:?} {contents}"));
        if stat.is_dir() {
            for entry in fs::read_dir(path).unwrap() {
                visit(&entry.unwrap().path(), into);
            }
        }
    }
    let mut into = BTreeMap::new();
    visit(path, &mut into);
    into
}

/// A guest that calls WASI the way a standard library does.
struct Guest {
    wasi: Wasi,
    /// The first preopen; 0 if there is none.
    root: u32,
}

type Outcome<T> = Result<T, ErrorCode>;

impl Guest {
    fn new(preopens: Vec<Preopen>, limits: FsLimits) -> Self {
        let mut wasi = Wasi::new(WasiConfig { preopens, limits, deadline: Instant::now() + Duration::from_mins(1) });
        let root = wasi.get_directories().unwrap().first().map_or(0, |(root, _)| root.rep());
        Self { wasi, root }
    }

    fn fd(&self) -> Resource<Descriptor> {
        Resource::new_borrow(self.root)
    }

    /// What the bindings do with an error.
    fn told<T>(&mut self, result: Result<T, FsError>) -> Outcome<T> {
        result.map_err(|error| self.wasi.convert_error_code(error).expect("an error, not a trap"))
    }

    fn told_of_stream<T>(&mut self, result: Result<T, StreamError>) -> Outcome<Option<T>> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(error) => match self.wasi.convert_stream_error(error).expect("an error, not a trap") {
                streams::StreamError::Closed => Ok(None),
                streams::StreamError::LastOperationFailed(error) => {
                    Err(self.wasi.filesystem_error_code(error).unwrap().expect("a code for every failure"))
                }
            },
        }
    }

    fn open(&mut self, path: &str, open: OpenFlags, flags: DescriptorFlags) -> Outcome<u32> {
        let opened = self.wasi.open_at(self.fd(), PathFlags::SYMLINK_FOLLOW, path.to_owned(), open, flags);
        self.told(opened).map(|file| file.rep())
    }

    fn close(&mut self, file: u32) {
        types::HostDescriptor::drop(&mut self.wasi, Resource::new_own(file)).unwrap();
    }

    fn read(&mut self, path: &str) -> Outcome<Vec<u8>> {
        let file = self.open(path, OpenFlags::empty(), DescriptorFlags::READ)?;
        let bytes = self.read_all(file);
        self.close(file);
        bytes
    }

    fn read_all(&mut self, file: u32) -> Outcome<Vec<u8>> {
        let stream = self.wasi.read_via_stream(Resource::new_borrow(file), 0);
        let stream = self.told(stream)?.rep();
        let mut bytes = Vec::new();
        let outcome = loop {
            let read = self.wasi.blocking_read(Resource::new_borrow(stream), 1 << 20);
            match self.told_of_stream(read) {
                Ok(Some(more)) => bytes.extend(more),
                Ok(None) => break Ok(bytes),
                Err(code) => break Err(code),
            }
        };
        streams::HostInputStream::drop(&mut self.wasi, Resource::new_own(stream)).unwrap();
        outcome
    }

    fn write(&mut self, path: &str, bytes: &[u8]) -> Outcome<()> {
        self.write_with(path, OpenFlags::CREATE | OpenFlags::TRUNCATE, bytes)
    }

    fn write_with(&mut self, path: &str, open: OpenFlags, bytes: &[u8]) -> Outcome<()> {
        let file = self.open(path, open, DescriptorFlags::WRITE)?;
        let stream = self.wasi.write_via_stream(Resource::new_borrow(file), 0);
        let outcome = self.told(stream).and_then(|stream| self.put(stream.rep(), bytes));
        self.close(file);
        outcome
    }

    fn read_at(&mut self, file: u32, len: u64, offset: u64) -> Outcome<(Vec<u8>, bool)> {
        let read = types::HostDescriptor::read(&mut self.wasi, Resource::new_borrow(file), len, offset);
        self.told(read)
    }

    fn write_at(&mut self, file: u32, bytes: &[u8], offset: u64) -> Outcome<u64> {
        let file = Resource::new_borrow(file);
        let written = types::HostDescriptor::write(&mut self.wasi, file, bytes.to_vec(), offset);
        self.told(written)
    }

    fn append(&mut self, path: &str, bytes: &[u8]) -> Outcome<()> {
        let file = self.open(path, OpenFlags::CREATE, DescriptorFlags::WRITE)?;
        let stream = self.wasi.append_via_stream(Resource::new_borrow(file));
        let outcome = self.told(stream).and_then(|stream| self.put(stream.rep(), bytes));
        self.close(file);
        outcome
    }

    /// Writes all bytes to a stream in the pieces that it permits, and drops the stream.
    fn put(&mut self, stream: u32, bytes: &[u8]) -> Outcome<()> {
        let mut outcome = Ok(());
        let mut rest = bytes;
        while outcome.is_ok() && !rest.is_empty() {
            let permit = self.wasi.check_write(Resource::new_borrow(stream));
            let permit = usize::try_from(self.told_of_stream(permit)?.expect("an open stream")).unwrap();
            let (piece, next) = rest.split_at(rest.len().min(permit));
            let written =
                streams::HostOutputStream::write(&mut self.wasi, Resource::new_borrow(stream), piece.to_vec());
            outcome = self.told_of_stream(written).map(|written| written.expect("an open stream"));
            rest = next;
        }
        streams::HostOutputStream::drop(&mut self.wasi, Resource::new_own(stream)).unwrap();
        outcome
    }

    fn create_dir(&mut self, path: &str) -> Outcome<()> {
        let created = self.wasi.create_directory_at(self.fd(), path.to_owned());
        self.told(created)
    }

    fn remove_dir(&mut self, path: &str) -> Outcome<()> {
        let removed = self.wasi.remove_directory_at(self.fd(), path.to_owned());
        self.told(removed)
    }

    fn remove_file(&mut self, path: &str) -> Outcome<()> {
        let removed = self.wasi.unlink_file_at(self.fd(), path.to_owned());
        self.told(removed)
    }

    fn rename(&mut self, from: &str, to: &str) -> Outcome<()> {
        let renamed = self.wasi.rename_at(self.fd(), from.to_owned(), self.fd(), to.to_owned());
        self.told(renamed)
    }

    fn hard_link(&mut self, from: &str, to: &str) -> Outcome<()> {
        let linked = self.wasi.link_at(self.fd(), PathFlags::empty(), from.to_owned(), self.fd(), to.to_owned());
        self.told(linked)
    }

    fn symlink(&mut self, to: &str, path: &str) -> Outcome<()> {
        let linked = self.wasi.symlink_at(self.fd(), to.to_owned(), path.to_owned());
        self.told(linked)
    }

    fn read_link(&mut self, path: &str) -> Outcome<String> {
        let link = self.wasi.readlink_at(self.fd(), path.to_owned());
        self.told(link)
    }

    fn stat(&mut self, path: &str) -> Outcome<DescriptorStat> {
        let stat = self.wasi.stat_at(self.fd(), PathFlags::SYMLINK_FOLLOW, path.to_owned());
        self.told(stat)
    }

    fn stat_link(&mut self, path: &str) -> Outcome<DescriptorStat> {
        let stat = self.wasi.stat_at(self.fd(), PathFlags::empty(), path.to_owned());
        self.told(stat)
    }

    fn set_times(&mut self, path: &str) -> Outcome<()> {
        let (accessed, modified) = (NewTimestamp::Now, NewTimestamp::Now);
        let set = self.wasi.set_times_at(self.fd(), PathFlags::SYMLINK_FOLLOW, path.to_owned(), accessed, modified);
        self.told(set)
    }

    fn set_size(&mut self, path: &str, size: u64) -> Outcome<()> {
        let file = self.open(path, OpenFlags::empty(), DescriptorFlags::READ | DescriptorFlags::WRITE)?;
        let set = self.wasi.set_size(Resource::new_borrow(file), size);
        let outcome = self.told(set);
        self.close(file);
        outcome
    }

    fn list(&mut self, path: &str) -> Outcome<Vec<DirectoryEntry>> {
        let dir = self.open(path, OpenFlags::DIRECTORY, DescriptorFlags::READ)?;
        let listing = self.wasi.read_directory(Resource::new_borrow(dir));
        let listing = self.told(listing)?.rep();
        let mut entries = Vec::new();
        let outcome = loop {
            let entry = self.wasi.read_directory_entry(Resource::new_borrow(listing));
            match self.told(entry) {
                Ok(Some(entry)) => entries.push(entry),
                Ok(None) => break Ok(entries),
                Err(code) => break Err(code),
            }
        };
        types::HostDirectoryEntryStream::drop(&mut self.wasi, Resource::new_own(listing)).unwrap();
        self.close(dir);
        outcome.map(|mut entries| {
            entries.sort_by(|a, b| a.name.cmp(&b.name));
            entries
        })
    }

    fn names(&mut self, path: &str) -> Outcome<Vec<String>> {
        Ok(self.list(path)?.into_iter().map(|entry| entry.name).collect())
    }

    fn usage(&self) -> &Usage {
        self.wasi.usage()
    }

    fn refusals(&self) -> Vec<Reason> {
        self.usage().refusals.iter().map(|refusal| refusal.reason).collect()
    }
}
