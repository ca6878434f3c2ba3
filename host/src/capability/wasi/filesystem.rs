//! `wasi:filesystem`: the functions that guests' standard libraries call, over the walk of `tree.rs`.
//!
//! The order in each function: find the place, check the grant, look at what is there, act on the handle, count. Only regular
//! files and folders are opened; a file with a second name is never changed; links are neither followed nor made.
//!
//! `path-flags.symlink-follow` therefore only decides what is said about a link: with it the call fails, without it the link
//! itself is looked at.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use wasmtime::component::Resource;

use super::bindings::clocks::wall_clock::Datetime;
use super::bindings::filesystem::preopens;
use super::bindings::filesystem::types::{
    self, Advice, DescriptorFlags, DescriptorStat, DescriptorType, DirectoryEntry, ErrorCode, Filesize,
    MetadataHashValue, NewTimestamp, OpenFlags, PathFlags,
};
use super::error::{FsError, StreamFailure};
use super::os::{self, Kind, SetTime, Stat};
use super::path;
use super::streams::{InputStream, OutputStream};
use super::tree::{Folder, Mount, Place, Target};
use super::usage::{LimitHit, Reason};
use super::{LastStat, Wasi};

/// Most bytes that one read gives out, whatever the guest asks for.
///
/// A state file comes in one piece, and a guest cannot make the host hold much more than it has room for itself.
const MAX_READ_BYTES: u64 = 256 << 10;

/// How often opening a file is tried anew when somebody creates or removes it at the same moment.
const MAX_RACES: usize = 8;

/// What is behind `wasi:filesystem/types.descriptor`.
pub struct Descriptor(Node);

enum Node {
    Folder(Folder),
    File(Arc<OpenFile>),
}

/// A file that a guest has open; streams share it.
pub struct OpenFile {
    file: os::File,
    mount: Arc<Mount>,
    path: String,
    read: bool,
    write: bool,
    /// Whether the record counts this file as read, and as written.
    noted_read: AtomicBool,
    noted_write: AtomicBool,
    /// Counts open files: there is one clone for each.
    _open: Arc<()>,
}

/// What is behind `wasi:filesystem/types.directory-entry-stream`.
pub struct Listing {
    entries: os::Entries,
    folder: Folder,
    /// It has a file descriptor of its own and counts as an open file.
    _open: Arc<()>,
}

/// Where a write goes.
#[derive(Clone, Copy)]
pub(super) enum Position {
    At(u64),
    End,
}

impl Descriptor {
    pub(super) fn preopen(mount: Arc<Mount>) -> Self {
        Self(Node::Folder(Folder { mount, path: String::new() }))
    }
}

/// How a file is to be opened.
#[derive(Clone, Copy)]
struct Wanted {
    open: OpenFlags,
    flags: DescriptorFlags,
}

impl Wanted {
    fn new(open: OpenFlags, flags: DescriptorFlags) -> Result<Self, FsError> {
        let integrity = DescriptorFlags::FILE_INTEGRITY_SYNC
            | DescriptorFlags::DATA_INTEGRITY_SYNC
            | DescriptorFlags::REQUESTED_WRITE_SYNC;
        if flags.intersects(integrity) {
            // A promise that would not be kept; guests call `sync`.
            return Err(ErrorCode::Unsupported.into());
        }
        let for_files = OpenFlags::CREATE | OpenFlags::EXCLUSIVE | OpenFlags::TRUNCATE;
        if open.contains(OpenFlags::DIRECTORY) && open.intersects(for_files) {
            return Err(ErrorCode::Invalid.into());
        }
        Ok(Self { open, flags })
    }

    /// Who does not say what to do with a file wants to read it.
    fn read(self) -> bool {
        self.flags.contains(DescriptorFlags::READ) || !self.write()
    }

    fn write(self) -> bool {
        self.flags.contains(DescriptorFlags::WRITE)
    }

    fn create(self) -> bool {
        self.open.contains(OpenFlags::CREATE)
    }

    /// Whether it is an error that there is something of this name.
    fn new_only(self) -> bool {
        self.open.contains(OpenFlags::CREATE | OpenFlags::EXCLUSIVE)
    }

    fn truncate(self) -> bool {
        self.open.contains(OpenFlags::TRUNCATE)
    }

    fn directory(self) -> bool {
        self.open.contains(OpenFlags::DIRECTORY)
    }

    /// Whether opening or using the file may change anything.
    fn changes(self) -> bool {
        self.write() || self.create() || self.truncate()
    }
}

impl Wasi {
    fn node(&self, descriptor: &Resource<Descriptor>) -> Result<&Node, FsError> {
        Ok(&self.table.get(descriptor)?.0)
    }

    fn folder(&self, descriptor: &Resource<Descriptor>) -> Result<Folder, FsError> {
        match self.node(descriptor)? {
            Node::Folder(folder) => Ok(folder.clone()),
            Node::File(_) => Err(ErrorCode::NotDirectory.into()),
        }
    }

    fn file(&self, descriptor: &Resource<Descriptor>) -> Result<Arc<OpenFile>, FsError> {
        match self.node(descriptor)? {
            Node::File(file) => Ok(Arc::clone(file)),
            Node::Folder(_) => Err(ErrorCode::BadDescriptor.into()),
        }
    }

    /// Fails if one more file or folder would be too many.
    fn room_for_entry(&self) -> Result<(), FsError> {
        if self.usage.entries_created < self.limits.new_entries {
            Ok(())
        } else {
            Err(FsError::Limit(LimitHit::NewEntries))
        }
    }

    /// Makes a folder in which the guest may write, and those above it, where they are missing: as if it had done so itself, by
    /// its grants and limits and in its record.
    pub(crate) fn make_folder(&mut self, guest_path: &str, path: &str) -> wasmtime::Result<Result<(), ErrorCode>> {
        self.folder_made(guest_path, path).map_or_else(|error| self.note(error).map(Err), |()| Ok(Ok(())))
    }

    fn folder_made(&mut self, guest_path: &str, path: &str) -> Result<(), FsError> {
        let mount = self.mounts.iter().find(|mount| mount.guest_path == guest_path).ok_or(ErrorCode::Access)?;
        let root = Folder { mount: Arc::clone(mount), path: String::new() };
        root.mount.may_write(path)?;
        root.mount.ensure_root()?;
        let mut below = String::new();
        for name in path::names(path) {
            below = path::join(&below, name);
            let Target::Entry(place) = root.resolve(&below)? else { continue };
            match place.parent()?.stat_at(name) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                // What it is shows when it is opened.
                found => {
                    found?;
                    continue;
                }
            }
            self.room_for_entry()?;
            match place.parent()?.create_dir(name) {
                // Somebody else was quicker.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                created => created?,
            }
            self.usage.entries_created += 1;
            self.usage.note_path(&root.mount.show(&below));
        }
        Ok(())
    }

    fn room_for_file(&self) -> Result<(), FsError> {
        // One of the references is our own.
        let open = Arc::strong_count(&self.open_files) - 1;
        if open < self.limits.open_files as usize { Ok(()) } else { Err(FsError::Limit(LimitHit::OpenFiles)) }
    }

    fn open(&mut self, folder: &Folder, path: &str, wanted: Wanted) -> Result<Node, FsError> {
        let mount = &folder.mount;
        let mut place = match folder.resolve(path)? {
            Target::Entry(place) => place,
            Target::Root(root) => {
                mount.pass("")?;
                if wanted.changes() {
                    return Err(ErrorCode::IsDirectory.into());
                }
                root.ok_or(ErrorCode::NoEntry)?;
                return Ok(Node::Folder(Folder { mount: Arc::clone(mount), path: String::new() }));
            }
        };
        mount.pass(&place.path)?;
        if wanted.changes() {
            mount.may_write(&place.path)?;
        }
        for _ in 0..MAX_RACES {
            let found = place.parent().and_then(|parent| parent.stat_at(place.name()));
            let opened = match found {
                Ok(_) if wanted.new_only() => return Err(ErrorCode::Exist.into()),
                Ok(stat) if stat.kind == Kind::Dir => {
                    if wanted.changes() {
                        return Err(ErrorCode::IsDirectory.into());
                    }
                    return Ok(Node::Folder(Folder { mount: Arc::clone(mount), path: place.path }));
                }
                Ok(stat) => self.open_file(mount, &place, stat.kind, wanted),
                Err(error) if error.kind() == io::ErrorKind::NotFound && wanted.create() => {
                    self.create_file(mount, &mut place, wanted)
                }
                Err(error) => return Err(error.into()),
            };
            match opened {
                // Somebody created the file after we looked, or removed it: look again, unless that is the answer.
                Err(FsError::Code(ErrorCode::Exist)) if !wanted.new_only() => {}
                Err(FsError::Code(ErrorCode::NoEntry)) if wanted.create() => {}
                opened => return opened.map(|file| Node::File(Arc::new(file))),
            }
        }
        Err(ErrorCode::Busy.into())
    }

    fn open_file(
        &mut self,
        mount: &Arc<Mount>,
        place: &Place,
        kind: Kind,
        wanted: Wanted,
    ) -> Result<OpenFile, FsError> {
        regular(mount, &place.path, kind)?;
        if wanted.directory() || place.must_be_dir {
            return Err(ErrorCode::NotDirectory.into());
        }
        mount.may_read(&place.path)?;
        self.room_for_file()?;
        let file = place.parent()?.open_file(place.name(), wanted.read(), wanted.write() || wanted.truncate())?;
        // What was opened is judged, not what was there a moment ago.
        let stat = file.stat()?;
        regular(mount, &place.path, stat.kind)?;
        if wanted.changes() {
            single(mount, &place.path, &stat)?;
        }
        let file = self.opened(mount, place, file, wanted);
        if wanted.truncate() && stat.size > 0 {
            file.file.set_len(0)?;
            self.note_write(&file);
        }
        Ok(file)
    }

    fn create_file(&mut self, mount: &Arc<Mount>, place: &mut Place, wanted: Wanted) -> Result<OpenFile, FsError> {
        if place.must_be_dir {
            return Err(ErrorCode::IsDirectory.into());
        }
        self.room_for_entry()?;
        self.room_for_file()?;
        place.ensure_parent()?;
        let file = place.parent()?.create_file(place.name(), wanted.read())?;
        self.usage.entries_created += 1;
        self.usage.note_path(&mount.show(&place.path));
        Ok(self.opened(mount, place, file, wanted))
    }

    fn opened(&self, mount: &Arc<Mount>, place: &Place, file: os::File, wanted: Wanted) -> OpenFile {
        OpenFile {
            file,
            mount: Arc::clone(mount),
            path: place.path.clone(),
            read: wanted.read(),
            write: wanted.write(),
            noted_read: AtomicBool::new(false),
            noted_write: AtomicBool::new(false),
            _open: Arc::clone(&self.open_files),
        }
    }

    fn note_write(&mut self, file: &OpenFile) {
        if !file.noted_write.swap(true, Ordering::Relaxed) {
            self.usage.files_written += 1;
            self.usage.note_path(&file.mount.show(&file.path));
        }
    }

    /// Reads what is there at `offset`; nothing means the end of the file.
    ///
    /// A file that grows all the time ends where the call's limit does.
    pub(super) fn read_file(&mut self, file: &OpenFile, offset: u64, len: u64) -> Result<Vec<u8>, FsError> {
        if !file.read {
            return Err(ErrorCode::BadDescriptor.into());
        }
        let there = file.file.stat()?.size.saturating_sub(offset);
        let wanted = len.min(there).min(MAX_READ_BYTES);
        let left = self.limits.bytes_read.saturating_sub(self.usage.bytes_read);
        if wanted == 0 {
            return Ok(Vec::new());
        }
        if left == 0 {
            return Err(FsError::Limit(LimitHit::BytesRead));
        }
        let len = usize::try_from(wanted.min(left)).map_err(|_| ErrorCode::Overflow)?;
        let bytes = file.file.read_at(len, offset)?;
        self.usage.bytes_read += bytes.len() as u64;
        if !bytes.is_empty() && !file.noted_read.swap(true, Ordering::Relaxed) {
            self.usage.files_read += 1;
        }
        Ok(bytes)
    }

    /// Writes all of `bytes`, or nothing if that would be over a limit.
    pub(super) fn write_file(&mut self, file: &OpenFile, position: Position, bytes: &[u8]) -> Result<(), FsError> {
        if !file.write {
            return Err(ErrorCode::BadDescriptor.into());
        }
        let start = match position {
            Position::At(offset) => offset,
            Position::End => file.file.stat()?.size,
        };
        let end = start.saturating_add(bytes.len() as u64);
        self.room_for_bytes(bytes.len() as u64, end)?;
        if bytes.is_empty() {
            return Ok(());
        }
        self.note_write(file);
        let mut rest = bytes;
        let mut offset = start;
        while !rest.is_empty() {
            let written = match position {
                Position::At(_) => file.file.write_at(rest, offset)?,
                Position::End => file.file.append(rest)?,
            };
            if written == 0 {
                return Err(ErrorCode::Io.into());
            }
            self.usage.bytes_written += written as u64;
            offset += written as u64;
            rest = &rest[written..];
        }
        Ok(())
    }

    /// Fails if `bytes` more are too many for the call, or `end` is too far for one file.
    fn room_for_bytes(&self, bytes: u64, end: u64) -> Result<(), FsError> {
        if bytes > 0 && end > self.limits.file_bytes {
            return Err(FsError::Limit(LimitHit::FileBytes));
        }
        if self.usage.bytes_written.saturating_add(bytes) > self.limits.bytes_written {
            return Err(FsError::Limit(LimitHit::BytesWritten));
        }
        Ok(())
    }

    fn set_size_of(&mut self, file: &OpenFile, size: u64) -> Result<(), FsError> {
        if !file.write {
            return Err(ErrorCode::BadDescriptor.into());
        }
        // Growing a file costs what writing the zeros would, though most file systems store none.
        let grown = size.saturating_sub(file.file.stat()?.size);
        self.room_for_bytes(grown, size)?;
        file.file.set_len(size)?;
        self.usage.bytes_written += grown;
        self.note_write(file);
        Ok(())
    }

    fn sync_node(&self, descriptor: &Resource<Descriptor>) -> Result<(), FsError> {
        match self.node(descriptor)? {
            Node::File(file) if file.write => file.file.sync()?,
            Node::Folder(folder) if folder.mount.grants.rights(&folder.path).write => folder.open()?.sync()?,
            // What cannot be changed needs no sync.
            Node::File(_) | Node::Folder(_) => {}
        }
        Ok(())
    }

    fn stat_of(&self, descriptor: &Resource<Descriptor>) -> Result<Stat, FsError> {
        match self.node(descriptor)? {
            Node::File(file) => Ok(file.file.stat()?),
            Node::Folder(folder) => {
                folder.mount.pass(&folder.path)?;
                Ok(folder.open()?.stat()?)
            }
        }
    }

    fn stat_path(&self, descriptor: &Resource<Descriptor>, flags: PathFlags, path: &str) -> Result<Stat, FsError> {
        let folder = self.folder(descriptor)?;
        let target = folder.resolve(path)?;
        folder.mount.pass(target.path())?;
        match target {
            Target::Root(Some(dir)) => Ok(dir.stat()?),
            Target::Root(None) => Err(ErrorCode::NoEntry.into()),
            Target::Entry(place) => {
                let stat = place.parent()?.stat_at(place.name())?;
                match stat.kind {
                    Kind::Symlink if place.must_be_dir || flags.contains(PathFlags::SYMLINK_FOLLOW) => {
                        Err(folder.mount.refused(Reason::SymbolicLink, &place.path))
                    }
                    Kind::Dir => Ok(stat),
                    _ if place.must_be_dir => Err(ErrorCode::NotDirectory.into()),
                    _ => Ok(stat),
                }
            }
        }
    }

    /// The entry that `path` names, for a change of the folder that lists it.
    fn entry(&self, descriptor: &Resource<Descriptor>, path: &str) -> Result<(Folder, Place), FsError> {
        let folder = self.folder(descriptor)?;
        match folder.resolve(path)? {
            Target::Entry(place) => {
                folder.mount.may_unlink(&place.path)?;
                Ok((folder, place))
            }
            Target::Root(_) => Err(folder.mount.refused(Reason::HoldsGrant, "")),
        }
    }
}

/// Succeeds for a regular file; says what is wrong with anything but a folder.
fn regular(mount: &Mount, path: &str, kind: Kind) -> Result<(), FsError> {
    match kind {
        Kind::File => Ok(()),
        Kind::Dir => Err(ErrorCode::IsDirectory.into()),
        Kind::Symlink => Err(mount.refused(Reason::SymbolicLink, path)),
        Kind::Fifo | Kind::Socket | Kind::CharDevice | Kind::BlockDevice | Kind::Unknown => {
            Err(mount.refused(Reason::SpecialFile, path))
        }
    }
}

/// Succeeds if this is the file's only name: another one may be anywhere.
fn single(mount: &Mount, path: &str, stat: &Stat) -> Result<(), FsError> {
    if stat.links > 1 { Err(mount.refused(Reason::HardLink, path)) } else { Ok(()) }
}

fn descriptor_type(kind: Kind) -> DescriptorType {
    match kind {
        Kind::File => DescriptorType::RegularFile,
        Kind::Dir => DescriptorType::Directory,
        Kind::Symlink => DescriptorType::SymbolicLink,
        Kind::Fifo => DescriptorType::Fifo,
        Kind::Socket => DescriptorType::Socket,
        Kind::CharDevice => DescriptorType::CharacterDevice,
        Kind::BlockDevice => DescriptorType::BlockDevice,
        Kind::Unknown => DescriptorType::Unknown,
    }
}

fn descriptor_stat(stat: &Stat) -> DescriptorStat {
    // WASI has no times before 1970; a guest sees none there.
    let time =
        |(seconds, nanoseconds): os::Time| u64::try_from(seconds).ok().map(|seconds| Datetime { seconds, nanoseconds });
    DescriptorStat {
        type_: descriptor_type(stat.kind),
        link_count: stat.links,
        size: stat.size,
        data_access_timestamp: time(stat.accessed),
        data_modification_timestamp: time(stat.modified),
        status_change_timestamp: time(stat.changed),
    }
}

/// A number for a file that is the same for all its names. Guests see it as the inode.
fn metadata_hash(stat: &Stat) -> MetadataHashValue {
    let hash = |salt: u8| {
        let mut hasher = DefaultHasher::new();
        (salt, stat.identity).hash(&mut hasher);
        hasher.finish()
    };
    MetadataHashValue { lower: hash(0), upper: hash(1) }
}

fn set_time(time: NewTimestamp) -> Result<SetTime, FsError> {
    Ok(match time {
        NewTimestamp::NoChange => SetTime::Keep,
        NewTimestamp::Now => SetTime::Now,
        NewTimestamp::Timestamp(Datetime { seconds, nanoseconds }) => {
            if nanoseconds >= 1_000_000_000 {
                return Err(ErrorCode::Invalid.into());
            }
            SetTime::To((i64::try_from(seconds).map_err(|_| ErrorCode::Overflow)?, nanoseconds))
        }
    })
}

impl preopens::Host for Wasi {
    fn get_directories(&mut self) -> wasmtime::Result<Vec<(Resource<Descriptor>, String)>> {
        let mounts = self.mounts.clone();
        mounts
            .into_iter()
            .map(|mount| {
                let name = mount.guest_path.clone();
                Ok((self.table.push(Descriptor::preopen(mount))?, name))
            })
            .collect()
    }
}

impl types::Host for Wasi {
    fn convert_error_code(&mut self, error: FsError) -> wasmtime::Result<ErrorCode> {
        self.note(error)
    }

    fn filesystem_error_code(&mut self, error: Resource<StreamFailure>) -> wasmtime::Result<Option<ErrorCode>> {
        Ok(Some(self.table.get(&error)?.0))
    }
}

impl types::HostDescriptor for Wasi {
    fn read_via_stream(
        &mut self,
        fd: Resource<Descriptor>,
        offset: Filesize,
    ) -> Result<Resource<InputStream>, FsError> {
        let file = match self.node(&fd)? {
            Node::File(file) if file.read => Arc::clone(file),
            Node::File(_) => return Err(ErrorCode::BadDescriptor.into()),
            Node::Folder(_) => return Err(ErrorCode::IsDirectory.into()),
        };
        Ok(self.table.push(InputStream::file(file, offset))?)
    }

    fn write_via_stream(
        &mut self,
        fd: Resource<Descriptor>,
        offset: Filesize,
    ) -> Result<Resource<OutputStream>, FsError> {
        let file = self.file(&fd)?;
        if !file.write {
            return Err(ErrorCode::BadDescriptor.into());
        }
        Ok(self.table.push(OutputStream::file(file, Position::At(offset)))?)
    }

    fn append_via_stream(&mut self, fd: Resource<Descriptor>) -> Result<Resource<OutputStream>, FsError> {
        let file = self.file(&fd)?;
        if !file.write {
            return Err(ErrorCode::BadDescriptor.into());
        }
        Ok(self.table.push(OutputStream::file(file, Position::End))?)
    }

    fn advise(&mut self, fd: Resource<Descriptor>, _: Filesize, _: Filesize, _: Advice) -> Result<(), FsError> {
        // Advice may be ignored, and these files are small.
        self.file(&fd).map(|_| ())
    }

    fn sync_data(&mut self, fd: Resource<Descriptor>) -> Result<(), FsError> {
        self.sync_node(&fd)
    }

    fn get_flags(&mut self, fd: Resource<Descriptor>) -> Result<DescriptorFlags, FsError> {
        let (write, may_write, read) = match self.node(&fd)? {
            Node::File(file) => (DescriptorFlags::WRITE, file.write, file.read),
            Node::Folder(folder) => {
                let rights = folder.mount.grants.rights(&folder.path);
                (DescriptorFlags::MUTATE_DIRECTORY, rights.write || rights.make_dir, true)
            }
        };
        let when = |flag, set| if set { flag } else { DescriptorFlags::empty() };
        Ok(when(write, may_write) | when(DescriptorFlags::READ, read))
    }

    fn get_type(&mut self, fd: Resource<Descriptor>) -> Result<DescriptorType, FsError> {
        Ok(match self.node(&fd)? {
            Node::File(_) => DescriptorType::RegularFile,
            Node::Folder(_) => DescriptorType::Directory,
        })
    }

    fn set_size(&mut self, fd: Resource<Descriptor>, size: Filesize) -> Result<(), FsError> {
        let file = self.file(&fd)?;
        self.set_size_of(&file, size)
    }

    fn set_times(
        &mut self,
        fd: Resource<Descriptor>,
        accessed: NewTimestamp,
        modified: NewTimestamp,
    ) -> Result<(), FsError> {
        let (accessed, modified) = (set_time(accessed)?, set_time(modified)?);
        match self.node(&fd)? {
            Node::File(file) => {
                file.mount.may_write(&file.path)?;
                single(&file.mount, &file.path, &file.file.stat()?)?;
                Ok(file.file.set_times(accessed, modified)?)
            }
            Node::Folder(folder) => {
                folder.mount.may_write(&folder.path)?;
                Ok(folder.open()?.set_times(accessed, modified)?)
            }
        }
    }

    fn read(&mut self, fd: Resource<Descriptor>, len: Filesize, offset: Filesize) -> Result<(Vec<u8>, bool), FsError> {
        let file = self.file(&fd)?;
        let bytes = self.read_file(&file, offset, len)?;
        let end = bytes.is_empty() && len > 0;
        Ok((bytes, end))
    }

    fn write(&mut self, fd: Resource<Descriptor>, bytes: Vec<u8>, offset: Filesize) -> Result<Filesize, FsError> {
        let file = self.file(&fd)?;
        self.write_file(&file, Position::At(offset), &bytes)?;
        Ok(bytes.len() as u64)
    }

    fn read_directory(&mut self, fd: Resource<Descriptor>) -> Result<Resource<Listing>, FsError> {
        let folder = self.folder(&fd)?;
        folder.mount.may_read(&folder.path)?;
        self.room_for_file()?;
        let entries = folder.open()?.entries()?;
        Ok(self.table.push(Listing { entries, folder, _open: Arc::clone(&self.open_files) })?)
    }

    fn sync(&mut self, fd: Resource<Descriptor>) -> Result<(), FsError> {
        self.sync_node(&fd)
    }

    fn create_directory_at(&mut self, fd: Resource<Descriptor>, path: String) -> Result<(), FsError> {
        self.last_stat = None;
        let folder = self.folder(&fd)?;
        let mount = &folder.mount;
        let target = folder.resolve(&path)?;
        let rights = mount.pass(target.path())?;
        if !rights.make_dir {
            let reason = if rights.read { Reason::ReadOnly } else { Reason::NotGranted };
            return Err(mount.refused(reason, target.path()));
        }
        match target {
            Target::Root(Some(_)) => return Err(ErrorCode::Exist.into()),
            Target::Root(None) => {
                mount.ensure_root()?;
            }
            Target::Entry(mut place) => {
                self.room_for_entry()?;
                place.ensure_parent()?;
                place.parent()?.create_dir(place.name())?;
                self.usage.entries_created += 1;
                self.usage.note_path(&mount.show(&place.path));
            }
        }
        Ok(())
    }

    fn stat(&mut self, fd: Resource<Descriptor>) -> Result<DescriptorStat, FsError> {
        self.stat_of(&fd).map(|stat| descriptor_stat(&stat))
    }

    fn stat_at(&mut self, fd: Resource<Descriptor>, flags: PathFlags, path: String) -> Result<DescriptorStat, FsError> {
        let stat = self.stat_path(&fd, flags, &path)?;
        let follows_links = flags.contains(PathFlags::SYMLINK_FOLLOW);
        self.last_stat = Some(LastStat { descriptor: fd.rep(), follows_links, path, stat });
        Ok(descriptor_stat(&stat))
    }

    fn set_times_at(
        &mut self,
        fd: Resource<Descriptor>,
        _: PathFlags,
        path: String,
        accessed: NewTimestamp,
        modified: NewTimestamp,
    ) -> Result<(), FsError> {
        let (accessed, modified) = (set_time(accessed)?, set_time(modified)?);
        let folder = self.folder(&fd)?;
        let mount = &folder.mount;
        let target = folder.resolve(&path)?;
        mount.may_write(target.path())?;
        if let Target::Entry(place) = &target {
            let (parent, name) = (place.parent()?, place.name());
            let stat = parent.stat_at(name)?;
            if stat.kind != Kind::Dir {
                regular(mount, &place.path, stat.kind)?;
                if place.must_be_dir {
                    return Err(ErrorCode::NotDirectory.into());
                }
                // By handle, so that what is checked is what is changed.
                let file = parent.open_file(name, true, false)?;
                let stat = file.stat()?;
                regular(mount, &place.path, stat.kind)?;
                single(mount, &place.path, &stat)?;
                return Ok(file.set_times(accessed, modified)?);
            }
        }
        Ok(target.open(mount)?.set_times(accessed, modified)?)
    }

    fn link_at(
        &mut self,
        fd: Resource<Descriptor>,
        _: PathFlags,
        _: String,
        _: Resource<Descriptor>,
        new_path: String,
    ) -> Result<(), FsError> {
        let folder = self.folder(&fd)?;
        Err(folder.mount.refused(Reason::NewLink, &path::join(&folder.path, &new_path)))
    }

    fn open_at(
        &mut self,
        fd: Resource<Descriptor>,
        _: PathFlags,
        path: String,
        open: OpenFlags,
        flags: DescriptorFlags,
    ) -> Result<Resource<Descriptor>, FsError> {
        self.last_stat = None;
        let folder = self.folder(&fd)?;
        let node = self.open(&folder, &path, Wanted::new(open, flags)?)?;
        Ok(self.table.push(Descriptor(node))?)
    }

    fn readlink_at(&mut self, fd: Resource<Descriptor>, path: String) -> Result<String, FsError> {
        // Where a link leads to is a path of the host. A path resolver asks this for every component and needs to hear
        // that the others are no links.
        let stat = self.stat_path(&fd, PathFlags::SYMLINK_FOLLOW, &path)?;
        debug_assert_ne!(stat.kind, Kind::Symlink, "a link was refused before");
        Err(ErrorCode::Invalid.into())
    }

    fn remove_directory_at(&mut self, fd: Resource<Descriptor>, path: String) -> Result<(), FsError> {
        self.last_stat = None;
        let (folder, place) = self.entry(&fd, &path)?;
        place.parent()?.remove_dir(place.name())?;
        self.usage.entries_removed += 1;
        self.usage.note_path(&folder.mount.show(&place.path));
        Ok(())
    }

    fn rename_at(
        &mut self,
        fd: Resource<Descriptor>,
        old_path: String,
        new_fd: Resource<Descriptor>,
        new_path: String,
    ) -> Result<(), FsError> {
        self.last_stat = None;
        let (folder, old) = self.entry(&fd, &old_path)?;
        let (new_folder, new) = self.entry(&new_fd, &new_path)?;
        let mount = &folder.mount;
        if !Arc::ptr_eq(mount, &new_folder.mount) {
            return Err(ErrorCode::CrossDevice.into());
        }
        for path in [&old.path, &new.path] {
            if mount.grants.any_below(path) {
                return Err(mount.refused(Reason::HoldsGrant, path));
            }
        }
        let stat = old.parent()?.stat_at(old.name())?;
        if stat.kind != Kind::Dir {
            regular(mount, &old.path, stat.kind)?;
            if old.must_be_dir || new.must_be_dir {
                return Err(ErrorCode::NotDirectory.into());
            }
        }
        old.parent()?.rename(old.name(), new.parent()?, new.name())?;
        self.usage.entries_renamed += 1;
        self.usage.note_path(&mount.show(&old.path));
        self.usage.note_path(&mount.show(&new.path));
        Ok(())
    }

    fn symlink_at(&mut self, fd: Resource<Descriptor>, _: String, new_path: String) -> Result<(), FsError> {
        let folder = self.folder(&fd)?;
        Err(folder.mount.refused(Reason::NewLink, &path::join(&folder.path, &new_path)))
    }

    fn unlink_file_at(&mut self, fd: Resource<Descriptor>, path: String) -> Result<(), FsError> {
        self.last_stat = None;
        let (folder, place) = self.entry(&fd, &path)?;
        let parent = place.parent()?;
        // A link or a FIFO may go: that removes the name and touches nothing behind it.
        match parent.stat_at(place.name())?.kind {
            Kind::Dir => return Err(ErrorCode::IsDirectory.into()),
            _ if place.must_be_dir => return Err(ErrorCode::NotDirectory.into()),
            _ => parent.remove_file(place.name())?,
        }
        self.usage.entries_removed += 1;
        self.usage.note_path(&folder.mount.show(&place.path));
        Ok(())
    }

    fn is_same_object(&mut self, a: Resource<Descriptor>, b: Resource<Descriptor>) -> wasmtime::Result<bool> {
        // There is no way to say that a folder is gone; it is then not the same as anything.
        Ok(match (self.stat_of(&a), self.stat_of(&b)) {
            (Ok(a), Ok(b)) => a.identity == b.identity,
            _ => false,
        })
    }

    fn metadata_hash(&mut self, fd: Resource<Descriptor>) -> Result<MetadataHashValue, FsError> {
        self.stat_of(&fd).map(|stat| metadata_hash(&stat))
    }

    fn metadata_hash_at(
        &mut self,
        fd: Resource<Descriptor>,
        flags: PathFlags,
        path: String,
    ) -> Result<MetadataHashValue, FsError> {
        let follows_links = flags.contains(PathFlags::SYMLINK_FOLLOW);
        let is_of =
            |last: &LastStat| last.descriptor == fd.rep() && last.follows_links == follows_links && last.path == path;
        let stat = match self.last_stat.take().filter(is_of) {
            Some(last) => last.stat,
            None => self.stat_path(&fd, flags, &path)?,
        };
        Ok(metadata_hash(&stat))
    }

    fn drop(&mut self, fd: Resource<Descriptor>) -> wasmtime::Result<()> {
        self.table.delete(fd)?;
        Ok(())
    }
}

impl types::HostDirectoryEntryStream for Wasi {
    fn read_directory_entry(&mut self, listing: Resource<Listing>) -> Result<Option<DirectoryEntry>, FsError> {
        let Self { table, usage, limits, .. } = self;
        let listing = table.get_mut(&listing)?;
        while let Some(entry) = listing.entries.read() {
            let (name, kind) = entry?;
            // Those that the guest may not see cost as much as the others.
            if usage.entries_listed == limits.listed_entries {
                return Err(FsError::Limit(LimitHit::ListedEntries));
            }
            usage.entries_listed += 1;
            // One bad name that a repository planted must not spoil the list.
            let Some(name) = name.to_str().ok().filter(|name| path::is_plain(name)) else {
                usage.note_refusal(Reason::BadName, &listing.folder.mount.show(&listing.folder.path));
                continue;
            };
            let kind = match kind {
                Kind::Unknown => listing.entries.stat_at(name).map_or(Kind::Unknown, |stat| stat.kind),
                kind => kind,
            };
            return Ok(Some(DirectoryEntry { type_: descriptor_type(kind), name: name.to_owned() }));
        }
        Ok(None)
    }

    fn drop(&mut self, listing: Resource<Listing>) -> wasmtime::Result<()> {
        self.table.delete(listing)?;
        Ok(())
    }
}
