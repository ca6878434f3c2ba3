//! Trusted compiled code: the one place that turns bytes into something to execute.
//!
//! Compiled code is native code. Loading it is safe if and only if our own compiler wrote it, so this module says who may hand
//! it in, and nothing else in the host is allowed to use `unsafe`. Code is used where it lies, in the binary or in a mapped
//! file: only the pages that a call needs are ever read.
#![expect(unsafe_code, reason = "loading compiled code is unsafe by nature; see the argument at each use")]

use std::fs::File;

use wasmtime::component::Component;
use wasmtime::{Config, Engine};

use super::fault::{Fault, FaultKind};

/// Compiled code and where its trust comes from.
pub(crate) enum Code {
    /// Put into this binary when it was built.
    Embedded(EmbeddedCode),
    /// An open file of the cache that only the user can write and that is what the compiler sealed; see the registry's cache,
    /// which judges the opened file, not its name.
    Cached {
        file: File,
        /// Whether all of it had to be read to see that, because the file is not the one that was sealed.
        stale_seal: bool,
    },
}

/// Compiled code in this binary.
#[derive(Clone, Copy)]
pub(crate) enum EmbeddedCode {
    /// Used where it lies.
    InPlace(&'static Aligned<[u8]>),
    /// Packed with LZ4, since it is hardly ever used.
    Packed {
        packed: &'static [u8],
        /// Its length when it is unpacked.
        bytes: usize,
    },
}

/// Bytes that begin where a page of memory may begin, so that they can be made executable in place.
///
/// Compiled code is aligned to the pages of its target: 4 KiB on x86-64, up to 64 KiB elsewhere.
#[cfg_attr(target_arch = "x86_64", repr(C, align(4096)))]
#[cfg_attr(not(target_arch = "x86_64"), repr(C, align(65536)))]
pub(crate) struct Aligned<Bytes: ?Sized>(pub(crate) Bytes);

impl Code {
    /// Whether its seal should be renewed after the event.
    pub(super) fn has_stale_seal(&self) -> bool {
        matches!(self, Self::Cached { stale_seal: true, .. })
    }

    /// Loads the code. It fails if the code was made by another version of the engine, for another target or with other settings.
    pub(super) fn load(self, engine: &Engine) -> Result<Component, Fault> {
        let loaded = match self {
            // SAFETY: the bytes were written by `omc-compiler`, of the same engine version, while this binary was built, and
            // they are part of it: whoever could change them could change the host. They live as long as the process, and
            // nothing writes to them: the engine only reads, and `InPlace` changes protections and not contents.
            #[cfg(unix)]
            Self::Embedded(EmbeddedCode::InPlace(bytes)) => unsafe {
                Component::deserialize_raw(engine, std::ptr::NonNull::from(&bytes.0))
            },
            // SAFETY: as above; the engine makes a copy of its own.
            #[cfg(not(unix))]
            Self::Embedded(EmbeddedCode::InPlace(bytes)) => unsafe { Component::deserialize(engine, &bytes.0) },
            // SAFETY: as above: unpacking gives the bytes that were packed.
            Self::Embedded(EmbeddedCode::Packed { packed, bytes }) => unsafe { load_packed(engine, packed, bytes) },
            // SAFETY: the registry's cache opened the file without following a link, and saw on the handle that file and folder
            // belong to the user and nobody else can write them, and that the bytes are the ones that the compiler sealed for
            // this very engine. Only `omc-compiler` writes code there, and it replaces files by renaming and never changes one
            // that may be mapped. Whoever can write there as the user can replace the host as well.
            Self::Cached { file, .. } => unsafe { load_file(engine, &file) },
        };
        loaded.map_err(|error| Fault::new(FaultKind::NotCompiled, format!("compiled code does not load: {error:#}")))
    }
}

/// Loads packed code.
///
/// # Safety
///
/// That of `Component::deserialize`: our own compiler wrote what was packed.
unsafe fn load_packed(engine: &Engine, packed: &[u8], bytes: usize) -> wasmtime::Result<Component> {
    #[cfg(unix)]
    {
        use std::ptr::{self, NonNull};
        use std::slice;

        use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};

        // Into pages of their own, where it can be used in place: the engine would copy it once more.
        let (access, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
        // SAFETY: a new mapping at an address of the system's choice touches no memory of ours. It is never unmapped.
        let start = unsafe { mmap_anonymous(ptr::null_mut(), bytes, access, flags) }?.cast::<u8>();
        // SAFETY: the mapping has this length, is full of zeros, and nobody else knows of it.
        let room = unsafe { slice::from_raw_parts_mut(start, bytes) };
        lz4_flex::block::decompress_into(packed, room)?;
        let code = NonNull::from(&*room);
        // SAFETY: the caller's, and the mapping lasts as long as the process.
        unsafe { Component::deserialize_raw(engine, code) }
    }
    #[cfg(not(unix))]
    // SAFETY: the caller's.
    unsafe {
        Component::deserialize(engine, lz4_flex::block::decompress(packed, bytes)?)
    }
}

/// Loads the code in an open file, from that very file.
///
/// # Safety
///
/// That of `Component::deserialize`: our own compiler wrote the file, and nobody changes it.
#[cfg(unix)]
unsafe fn load_file(engine: &Engine, file: &File) -> wasmtime::Result<Component> {
    // The engine maps the memory that a guest begins with from a file that it knows, and else copies it: of a language with an
    // interpreter that is 8 MB, and most of the time of an event.
    if let Some(name) = name_of_open(file) {
        // SAFETY: the caller's.
        return unsafe { Component::deserialize_file(engine, name) };
    }
    let bytes = mapped(file)?;
    // SAFETY: the caller's, and the mapping lasts as long as the process.
    unsafe { Component::deserialize_raw(engine, bytes) }
}

/// Loads the code in an open file.
///
/// # Safety
///
/// That of `Component::deserialize`: our own compiler wrote the file.
#[cfg(not(unix))]
unsafe fn load_file(engine: &Engine, file: &File) -> wasmtime::Result<Component> {
    let bytes = contents(file)?;
    // SAFETY: the caller's.
    unsafe { Component::deserialize(engine, bytes) }
}

/// A name that leads to the open file itself, whatever happens to its own; none where the system has no such names.
#[cfg(unix)]
fn name_of_open(file: &File) -> Option<std::path::PathBuf> {
    use std::os::fd::AsRawFd as _;
    use std::os::unix::fs::MetadataExt as _;

    let name = std::path::PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
    let (there, here) = (std::fs::metadata(&name).ok()?, file.metadata().ok()?);
    ((there.dev(), there.ino()) == (here.dev(), here.ino())).then_some(name)
}

/// The file's bytes, mapped for the rest of the process.
#[cfg(unix)]
fn mapped(file: &File) -> std::io::Result<std::ptr::NonNull<[u8]>> {
    use std::ptr::{self, NonNull};

    use rustix::mm::{MapFlags, ProtFlags, mmap};

    let length = usize::try_from(file.metadata()?.len()).map_err(|_| std::io::ErrorKind::FileTooLarge)?;
    // SAFETY: a new mapping at an address of the system's choice touches no memory of ours. It is never unmapped.
    let start = unsafe { mmap(ptr::null_mut(), length, ProtFlags::READ, MapFlags::PRIVATE, file, 0) }?;
    let start = NonNull::new(start.cast::<u8>()).ok_or(std::io::ErrorKind::OutOfMemory)?;
    Ok(NonNull::slice_from_raw_parts(start, length))
}

/// The file's bytes.
#[cfg(not(unix))]
fn contents(mut file: &File) -> std::io::Result<Vec<u8>> {
    use std::io::Read as _;

    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Makes the engine use embedded code in place instead of copying it.
pub(super) fn use_code_in_place(config: &mut Config) {
    #[cfg(unix)]
    config.with_custom_code_memory(Some(std::sync::Arc::new(in_place::InPlace)));
    #[cfg(not(unix))]
    let _ = config;
}

#[cfg(unix)]
mod in_place {
    use rustix::mm::{MprotectFlags, mprotect};
    use wasmtime::CustomCodeMemory;

    use super::Aligned;

    /// Changes the protection of code where it lies.
    pub(super) struct InPlace;

    impl InPlace {
        fn protect(pointer: *const u8, length: usize, flags: MprotectFlags) -> wasmtime::Result<()> {
            // SAFETY: the engine asks this for the code sections of images that it was given in `Code::load`: whole pages of
            // our own mappings, which nobody holds a mutable reference to. They are never made writable.
            unsafe { mprotect(pointer.cast_mut().cast(), length, flags) }?;
            Ok(())
        }
    }

    impl CustomCodeMemory for InPlace {
        fn required_alignment(&self) -> usize {
            align_of::<Aligned<()>>()
        }

        fn publish_executable(&self, pointer: *const u8, length: usize) -> wasmtime::Result<()> {
            Self::protect(pointer, length, MprotectFlags::READ | MprotectFlags::EXEC)
        }

        fn unpublish_executable(&self, pointer: *const u8, length: usize) -> wasmtime::Result<()> {
            Self::protect(pointer, length, MprotectFlags::READ)
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_was_opened_is_loaded_and_not_what_took_its_name() {
        let folder = tempfile::tempdir().expect("a folder");
        let (judged, other) = (folder.path().join("code"), folder.path().join("other"));
        fs::write(&judged, "judged").expect("written");
        fs::write(&other, "other").expect("written");
        let file = File::open(&judged).expect("opened");
        fs::rename(&other, &judged).expect("renamed");
        let name = name_of_open(&file).expect("Linux has names for open files");
        assert_eq!(fs::read(&name).expect("read"), b"judged");
        fs::remove_file(&judged).expect("removed");
        assert_eq!(fs::read(name).expect("read"), b"judged");
    }
}
