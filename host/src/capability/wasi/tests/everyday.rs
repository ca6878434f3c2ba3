//! What guests' standard libraries do all day.

use std::os::unix::fs::PermissionsExt as _;

use wasmtime::component::Linker;
use wasmtime::{Engine, Store};

use super::super::bindings::cli::environment::Host as _;
use super::super::bindings::cli::{exit, stderr::Host as _, stdin::Host as _, stdout::Host as _};
use super::super::bindings::filesystem::types::{Advice, DescriptorType};
use super::super::bindings::random::{insecure_seed::Host as _, random::Host as _};
use super::super::{Exit, WasiView, add_to_linker};
use super::*;
use crate::capability::omc_dir::Status;

#[test]
fn a_silent_call_creates_no_directory() {
    let tree = Tree::new();
    let mut guest = tree.writer();
    for path in ["file", "state/file", "."] {
        assert_eq!(guest.read(path).unwrap_err(), ErrorCode::NoEntry, "{path}");
        assert_eq!(guest.stat(path).map(|stat| stat.size), Err(ErrorCode::NoEntry), "{path}");
        assert_eq!(guest.list(path).map(|entries| entries.len()), Err(ErrorCode::NoEntry), "{path}");
    }
    assert_eq!(guest.remove_file("file"), Err(ErrorCode::NoEntry));
    assert_eq!(guest.rename("file", "other"), Err(ErrorCode::NoEntry));
    assert_eq!(guest.set_times("file"), Err(ErrorCode::NoEntry));
    assert_eq!(guest.write_with("file", OpenFlags::empty(), b"x"), Err(ErrorCode::NoEntry));
    // The folder for this one would have to be created first.
    assert_eq!(guest.write("state/file", b"x"), Err(ErrorCode::NoEntry));
    let fd = guest.fd();
    assert_eq!(guest.wasi.get_type(fd).unwrap(), DescriptorType::Directory);
    assert_eq!(fs::read_dir(tree.path("project")).unwrap().count(), 0);
    assert_eq!(guest.usage(), &Usage::default());
}

#[test]
fn the_first_write_creates_the_directory_for_all_guests_of_the_event() {
    let tree = Tree::new();
    let dir = tree.dir();
    let all = [("", Access::ReadWrite)];
    let mut first = Guest::new(vec![preopen("/omc", Arc::clone(&dir), &all)], FsLimits::default());
    let mut second = Guest::new(vec![preopen("/omc", Arc::clone(&dir), &all)], FsLimits::default());
    assert_eq!(dir.status(), Status::Missing);
    first.write("file", b"one").unwrap();
    assert_eq!(dir.status(), Status::Open);
    assert_eq!(second.read("file").unwrap(), b"one");
}

#[test]
fn a_path_of_new_folders_is_made_step_by_step() {
    // `create_dir_all("/omc")` in an empty project, then deeper ones.
    let tree = Tree::new();
    let mut guest = tree.writer();
    guest.create_dir(".").unwrap();
    assert_eq!(guest.create_dir(".").unwrap_err(), ErrorCode::Exist);
    assert_eq!(guest.stat(".").unwrap().type_, DescriptorType::Directory);
    assert_eq!(guest.create_dir("a/b").unwrap_err(), ErrorCode::NoEntry);
    guest.create_dir("a").unwrap();
    guest.create_dir("a/b/").unwrap();
    assert_eq!(guest.create_dir("a/b").unwrap_err(), ErrorCode::Exist);
    guest.write("a/b/c", b"x").unwrap();
    assert_eq!(guest.create_dir("a/b/c").unwrap_err(), ErrorCode::Exist);
    assert_eq!(guest.create_dir("a/b/c/d").unwrap_err(), ErrorCode::NotDirectory);
}

#[test]
fn a_file_is_written_read_appended_cut_and_removed() {
    let tree = Tree::new();
    let mut guest = tree.writer();
    guest.write("file", b"one two").unwrap();
    assert_eq!(guest.read("file").unwrap(), b"one two");
    guest.write_with("file", OpenFlags::empty(), b"ONE").unwrap();
    assert_eq!(guest.read("./file").unwrap(), b"ONE two");
    guest.append("file", b" three").unwrap();
    assert_eq!(fs::read(tree.omc("file")).unwrap(), b"ONE two three");
    guest.set_size("file", 3).unwrap();
    assert_eq!(guest.read("file").unwrap(), b"ONE");
    guest.set_size("file", 5).unwrap();
    assert_eq!(guest.read("file").unwrap(), b"ONE\0\0");
    guest.write("file", b"").unwrap();
    assert_eq!(guest.read("file").unwrap(), b"");
    assert_eq!(guest.stat("file").unwrap().size, 0);
    guest.remove_file("file").unwrap();
    assert_eq!(guest.read("file").unwrap_err(), ErrorCode::NoEntry);

    let usage = guest.usage();
    assert_eq!(usage.paths_written, ["/omc/file"]);
    assert_eq!((usage.entries_created, usage.entries_removed), (1, 1));
    assert_eq!(usage.bytes_written, 7 + 3 + 6 + 2);
    assert!(usage.refusals.is_empty() && usage.limits_hit.is_empty());
}

#[test]
fn opening_says_what_is_in_the_way() {
    let tree = Tree::new();
    let mut guest = tree.writer();
    guest.write("file", b"x").unwrap();
    guest.create_dir("dir").unwrap();
    let (none, create) = (OpenFlags::empty(), OpenFlags::CREATE);
    let (read, write) = (DescriptorFlags::READ, DescriptorFlags::WRITE);
    for (path, open, flags, expected) in [
        ("file", none, read, Ok(())),
        ("file", none, DescriptorFlags::empty(), Ok(())),
        ("file", create, read | write, Ok(())),
        ("file", create | OpenFlags::EXCLUSIVE, write, Err(ErrorCode::Exist)),
        ("dir", create | OpenFlags::EXCLUSIVE, write, Err(ErrorCode::Exist)),
        ("file", OpenFlags::DIRECTORY, read, Err(ErrorCode::NotDirectory)),
        ("file/", none, read, Err(ErrorCode::NotDirectory)),
        ("file/.", none, read, Err(ErrorCode::NotDirectory)),
        ("file/x", create, write, Err(ErrorCode::NotDirectory)),
        ("new/", create, write, Err(ErrorCode::IsDirectory)),
        ("dir", none, read, Ok(())),
        ("dir/", OpenFlags::DIRECTORY, read | DescriptorFlags::MUTATE_DIRECTORY, Ok(())),
        ("dir", none, write, Err(ErrorCode::IsDirectory)),
        ("dir", OpenFlags::TRUNCATE, read, Err(ErrorCode::IsDirectory)),
        (".", none, read, Ok(())),
        (".", create, write, Err(ErrorCode::IsDirectory)),
        ("dir/..", OpenFlags::DIRECTORY, read, Ok(())),
        ("gone", none, read, Err(ErrorCode::NoEntry)),
        ("gone/../file", none, read, Err(ErrorCode::NoEntry)),
        ("", none, read, Err(ErrorCode::NoEntry)),
        ("dir", OpenFlags::DIRECTORY | create, write, Err(ErrorCode::Invalid)),
        ("file", none, write | DescriptorFlags::FILE_INTEGRITY_SYNC, Err(ErrorCode::Unsupported)),
    ] {
        assert_eq!(guest.open(path, open, flags).map(|_| ()), expected, "{path} {open:?} {flags:?}");
    }
    assert!(!tree.omc("new").exists());
}

#[test]
fn a_file_is_replaced_in_one_step() {
    let tree = Tree::new();
    let mut guest = tree.writer();
    guest.create_dir("state").unwrap();
    guest.write("state/mode.json", b"old").unwrap();
    guest.write("state/.mode.json.tmp", b"new").unwrap();
    guest.rename("state/.mode.json.tmp", "state/mode.json").unwrap();
    assert_eq!(guest.read("state/mode.json").unwrap(), b"new");
    assert_eq!(guest.names("state").unwrap(), ["mode.json"]);

    guest.create_dir("other").unwrap();
    assert_eq!(guest.rename("state/mode.json", "other").unwrap_err(), ErrorCode::IsDirectory);
    assert_eq!(guest.rename("other", "state").unwrap_err(), ErrorCode::NotEmpty);
    assert_eq!(guest.rename("other", "other/inside").unwrap_err(), ErrorCode::Invalid);
    guest.rename("state", "other").unwrap();
    assert_eq!(guest.read("other/mode.json").unwrap(), b"new");
    assert_eq!(guest.usage().entries_renamed, 2);
}

#[test]
fn a_folder_is_listed_with_kinds() {
    let tree = Tree::hostile();
    let mut guest = tree.reader();
    let kinds: Vec<_> = guest.list(".").unwrap().into_iter().map(|entry| (entry.name, entry.type_)).collect();
    assert!(kinds.contains(&("file".to_owned(), DescriptorType::RegularFile)));
    assert!(kinds.contains(&("sub".to_owned(), DescriptorType::Directory)));
    assert!(kinds.contains(&("leaf".to_owned(), DescriptorType::SymbolicLink)));
    assert!(!kinds.iter().any(|(name, _)| name == "." || name == ".."));
    assert_eq!(guest.names("sub").unwrap(), ["leaf", "up"]);
}

#[test]
fn a_descriptor_of_a_folder_is_a_place_to_start_from() {
    let tree = Tree::new();
    let mut guest = tree.writer();
    guest.create_dir("a").unwrap();
    guest.create_dir("a/b").unwrap();
    guest.root = guest.open("a", OpenFlags::DIRECTORY, DescriptorFlags::READ).unwrap();
    guest.write("b/file", b"x").unwrap();
    assert_eq!(guest.read("b/../b/file").unwrap(), b"x");
    assert_eq!(guest.read("../a/b/file").unwrap_err(), ErrorCode::NotPermitted);
    assert_eq!(guest.read("b/../../a/b/file").unwrap_err(), ErrorCode::NotPermitted);
    assert!(tree.omc("a/b/file").exists());
    fs::remove_dir_all(tree.omc("a")).unwrap();
    assert_eq!(guest.write("file", b"x").unwrap_err(), ErrorCode::NoEntry);
}

#[test]
fn a_files_numbers_are_those_of_the_file_that_has_the_name_now() {
    let tree = Tree::new();
    let mut guest = tree.writer();
    guest.write("file", b"1").unwrap();
    guest.write("other", b"2").unwrap();
    let hash = |guest: &mut Guest| {
        let hash = guest.wasi.metadata_hash_at(guest.fd(), PathFlags::SYMLINK_FOLLOW, "file".to_owned());
        let hash = guest.told(hash).unwrap();
        (hash.lower, hash.upper)
    };
    guest.stat("file").unwrap();
    let (told, asked) = (hash(&mut guest), hash(&mut guest));
    assert_eq!(told, asked, "from what was just told, and from a look of its own");
    guest.stat("other").unwrap();
    assert_eq!(hash(&mut guest), asked, "what was told is another file's");
    guest.stat("file").unwrap();
    guest.rename("other", "file").unwrap();
    assert_ne!(hash(&mut guest), asked, "the name has changed hands since");
}

#[test]
fn metadata_tells_what_a_standard_library_wants_to_know() {
    let tree = Tree::new();
    let mut guest = tree.writer();
    guest.write("file", b"1234").unwrap();
    guest.write("other", b"1234").unwrap();
    let stat = guest.stat("file").unwrap();
    assert_eq!((stat.type_, stat.size, stat.link_count), (DescriptorType::RegularFile, 4, 1));
    let modified = stat.data_modification_timestamp.unwrap().seconds;
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    assert!(now.abs_diff(modified) < 60);

    let mut hash = |path: &str| {
        let hash = guest.wasi.metadata_hash_at(guest.fd(), PathFlags::SYMLINK_FOLLOW, path.to_owned());
        let hash = guest.told(hash).unwrap();
        (hash.lower, hash.upper)
    };
    assert_eq!(hash("file"), hash("./file"));
    assert_ne!(hash("file"), hash("other"));

    let a = guest.open("file", OpenFlags::empty(), DescriptorFlags::READ).unwrap();
    let b = guest.open("file", OpenFlags::empty(), DescriptorFlags::READ | DescriptorFlags::WRITE).unwrap();
    let c = guest.open("other", OpenFlags::empty(), DescriptorFlags::READ).unwrap();
    let of = Resource::<Descriptor>::new_borrow;
    assert!(guest.wasi.is_same_object(of(a), of(b)).unwrap());
    assert!(!guest.wasi.is_same_object(of(a), of(c)).unwrap());
    assert!(guest.wasi.is_same_object(guest.fd(), guest.fd()).unwrap());
    assert_eq!(guest.wasi.get_flags(of(a)).unwrap(), DescriptorFlags::READ);
    assert_eq!(guest.wasi.get_flags(of(b)).unwrap(), DescriptorFlags::READ | DescriptorFlags::WRITE);
    assert_eq!(guest.wasi.get_flags(guest.fd()).unwrap(), DescriptorFlags::READ | DescriptorFlags::MUTATE_DIRECTORY);
    assert_eq!(tree.reader().wasi.get_flags(Resource::new_borrow(0)).unwrap(), DescriptorFlags::READ);
    guest.wasi.sync(of(b)).unwrap();
    guest.wasi.sync_data(of(a)).unwrap();
    guest.wasi.sync(guest.fd()).unwrap();
    guest.wasi.advise(of(a), 0, 0, Advice::Sequential).unwrap();
    guest.set_times("file").unwrap();
    guest.set_times(".").unwrap();
}

#[test]
fn a_descriptor_does_what_it_was_opened_for() {
    let tree = Tree::new();
    let mut guest = tree.writer();
    guest.write("file", b"123456").unwrap();
    let read = guest.open("file", OpenFlags::empty(), DescriptorFlags::READ).unwrap();
    let write = guest.open("file", OpenFlags::empty(), DescriptorFlags::WRITE).unwrap();
    let of = Resource::<Descriptor>::new_borrow;
    assert_eq!(guest.write_at(read, b"x", 0), Err(ErrorCode::BadDescriptor));
    let stream = guest.wasi.append_via_stream(of(read)).map(|stream| stream.rep());
    assert_eq!(guest.told(stream), Err(ErrorCode::BadDescriptor));
    let size = guest.wasi.set_size(of(read), 0);
    assert_eq!(guest.told(size), Err(ErrorCode::BadDescriptor));
    assert_eq!(guest.read_at(write, 1, 0), Err(ErrorCode::BadDescriptor));
    let stream = guest.wasi.read_via_stream(guest.fd(), 0).map(|stream| stream.rep());
    assert_eq!(guest.told(stream), Err(ErrorCode::IsDirectory));

    assert_eq!(guest.write_at(write, b"AB", 2), Ok(2));
    assert_eq!(guest.read_at(read, 3, 1), Ok((b"2AB".to_vec(), false)));
    assert_eq!(guest.read_at(read, 9, 6), Ok((Vec::new(), true)));
    assert_eq!(guest.read_at(read, 9, u64::MAX), Ok((Vec::new(), true)));
    assert_eq!(guest.read_at(read, 0, 0), Ok((Vec::new(), false)));
}

#[test]
fn unlinking_says_what_is_in_the_way() {
    let tree = Tree::new();
    let mut guest = tree.writer();
    guest.create_dir("dir").unwrap();
    guest.write("dir/file", b"x").unwrap();
    assert_eq!(guest.remove_dir("dir").unwrap_err(), ErrorCode::NotEmpty);
    assert_eq!(guest.remove_dir("dir/file").unwrap_err(), ErrorCode::NotDirectory);
    assert_eq!(guest.remove_file("dir").unwrap_err(), ErrorCode::IsDirectory);
    assert_eq!(guest.remove_file("dir/file/").unwrap_err(), ErrorCode::NotDirectory);
    assert_eq!(guest.remove_dir(".").unwrap_err(), ErrorCode::NotPermitted);
    guest.remove_file("dir/file").unwrap();
    guest.remove_dir("dir/").unwrap();
    assert_eq!(guest.names(".").unwrap(), Vec::<String>::new());
}

#[test]
fn a_file_that_the_user_may_not_read_is_an_error_like_any_other() {
    let tree = Tree::new();
    fs::create_dir(tree.omc("")).unwrap();
    fs::write(tree.omc("file"), "x").unwrap();
    fs::set_permissions(tree.omc("file"), fs::Permissions::from_mode(0o000)).unwrap();
    if !rustix::process::geteuid().is_root() {
        assert_eq!(tree.writer().read("file").unwrap_err(), ErrorCode::Access);
    }
}

#[test]
fn there_is_no_environment_no_argument_and_no_input_and_output_is_kept() {
    let mut guest = Guest::new(Vec::new(), FsLimits::default());
    assert!(guest.wasi.get_environment().unwrap().is_empty());
    assert!(guest.wasi.get_arguments().unwrap().is_empty());
    let stdin = guest.wasi.get_stdin().unwrap();
    let read = guest.wasi.blocking_read(stdin, 10);
    assert_eq!(guest.told_of_stream(read), Ok(None));
    let (out, err) = (guest.wasi.get_stdout().unwrap().rep(), guest.wasi.get_stderr().unwrap().rep());
    guest.wasi.blocking_write_and_flush(Resource::new_borrow(out), b"out ".to_vec()).unwrap();
    guest.wasi.blocking_write_and_flush(Resource::new_borrow(err), b"err ".to_vec()).unwrap();
    guest.put(out, &vec![b'x'; 100_000]).unwrap();
    assert!(guest.usage().output.starts_with(b"out err xxx"));
    assert_eq!(guest.usage().output.len(), 16 << 10);
}

#[test]
fn random_numbers_differ_and_are_bounded() {
    let mut guest = Guest::new(Vec::new(), FsLimits::default());
    let first = guest.wasi.get_random_bytes(32).unwrap();
    assert_eq!(first.len(), 32);
    assert_ne!(first, guest.wasi.get_random_bytes(32).unwrap());
    assert_ne!(guest.wasi.insecure_seed().unwrap(), guest.wasi.insecure_seed().unwrap());
    assert!(guest.wasi.get_random_bytes(u64::MAX).is_err());
}

#[test]
fn an_exit_ends_the_call_with_its_status() {
    let mut guest = Guest::new(Vec::new(), FsLimits::default());
    for (ended, status) in [
        (exit::Host::exit(&mut guest.wasi, Ok(())), 0),
        (exit::Host::exit(&mut guest.wasi, Err(())), 1),
        (exit::Host::exit_with_code(&mut guest.wasi, 42), 42),
    ] {
        assert_eq!(ended.unwrap_err().downcast_ref(), Some(&Exit(status)));
    }
}

struct Data(Wasi);

impl WasiView for Data {
    fn wasi(&mut self) -> &mut Wasi {
        &mut self.0
    }
}

#[test]
fn only_what_is_imported_is_linked() {
    let engine = Engine::default();
    let mut linker = Linker::<Data>::new(&engine);
    add_to_linker(&mut linker, &|_| true).unwrap();
    // Linking the same name again is an error, so this shows what is there.
    assert!(add_to_linker(&mut linker, &|name| name == "wasi:io/streams").is_err());
    assert!(add_to_linker(&mut linker, &|name| name == "wasi:sockets/tcp").is_err());
    add_to_linker(&mut linker, &|_| false).unwrap();

    let mut linker = Linker::<Data>::new(&engine);
    add_to_linker(&mut linker, &|name| name != "wasi:io/streams").unwrap();
    add_to_linker(&mut linker, &|name| name == "wasi:io/streams").unwrap();
    let _fits_a_store = Store::new(&engine, Data(Guest::new(Vec::new(), FsLimits::default()).wasi));
}
