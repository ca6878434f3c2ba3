//! What a guest can use up: the guest gets an error, the record says which limit it was, and nobody waits.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use super::super::LimitHit;
use super::*;

const ALL: [(&str, Access); 1] = [("", Access::ReadWrite)];

fn limited(limits: FsLimits) -> (Tree, Guest) {
    let tree = Tree::new();
    let guest = tree.limited(&ALL, limits);
    (tree, guest)
}

#[test]
fn bytes_written_are_counted_over_all_files_and_ways_to_write() {
    let (tree, mut guest) = limited(FsLimits { bytes_written: 10, ..FsLimits::default() });
    guest.write("a", b"1234").unwrap();
    guest.append("a", b"56").unwrap();
    guest.set_size("a", 8).unwrap();
    assert_eq!(guest.write("b", b"123"), Err(ErrorCode::Quota));
    assert_eq!(guest.append("a", b"123"), Err(ErrorCode::Quota));
    assert_eq!(guest.set_size("a", 11), Err(ErrorCode::Quota));
    let file = guest.open("b", OpenFlags::empty(), DescriptorFlags::WRITE).unwrap();
    assert_eq!(guest.write_at(file, b"123", 0), Err(ErrorCode::Quota));
    guest.write("b", b"12").unwrap();
    assert_eq!(guest.write("b", b"1"), Err(ErrorCode::Quota));
    assert_eq!(guest.usage().limits_hit, [LimitHit::BytesWritten]);
    assert_eq!(guest.usage().bytes_written, 10);
    assert_eq!(fs::metadata(tree.omc("a")).unwrap().len(), 8);
}

#[test]
fn one_file_has_a_size() {
    let (tree, mut guest) = limited(FsLimits { file_bytes: 10, ..FsLimits::default() });
    guest.write("a", b"1234567890").unwrap();
    assert_eq!(guest.append("a", b"1"), Err(ErrorCode::FileTooLarge));
    assert_eq!(guest.write("b", b"12345678901"), Err(ErrorCode::FileTooLarge));
    assert_eq!(guest.set_size("b", 11), Err(ErrorCode::FileTooLarge));
    let file = guest.open("b", OpenFlags::empty(), DescriptorFlags::WRITE).unwrap();
    for offset in [10, u64::MAX] {
        assert_eq!(guest.write_at(file, b"1", offset), Err(ErrorCode::FileTooLarge));
    }
    assert_eq!(guest.usage().limits_hit, [LimitHit::FileBytes]);
    assert_eq!(fs::metadata(tree.omc("b")).unwrap().len(), 0);
    // A file that is larger already can be made smaller.
    fs::write(tree.omc("large"), [b'x'; 100]).unwrap();
    guest.set_size("large", 5).unwrap();
}

#[test]
fn new_files_and_folders_are_counted_together() {
    let (tree, mut guest) = limited(FsLimits { new_entries: 3, ..FsLimits::default() });
    guest.create_dir("dir").unwrap();
    guest.write("dir/a", b"").unwrap();
    guest.write("dir/b", b"").unwrap();
    assert_eq!(guest.write("dir/c", b""), Err(ErrorCode::Quota));
    assert_eq!(guest.create_dir("other"), Err(ErrorCode::Quota));
    // Removing one gives no room: the work was done.
    guest.remove_file("dir/a").unwrap();
    assert_eq!(guest.write("dir/a", b""), Err(ErrorCode::Quota));
    guest.write("dir/b", b"still").unwrap();
    assert_eq!(guest.usage().limits_hit, [LimitHit::NewEntries]);
    assert_eq!(fs::read_dir(tree.omc("dir")).unwrap().count(), 1);
}

#[test]
fn bytes_read_are_counted_over_all_files() {
    let (_tree, mut guest) = limited(FsLimits { bytes_read: 10, ..FsLimits::default() });
    guest.write("a", b"123456").unwrap();
    assert_eq!(guest.read("a").unwrap(), b"123456");
    assert_eq!(guest.read("a"), Err(ErrorCode::Quota));
    assert_eq!(guest.usage().bytes_read, 10);
    assert_eq!(guest.usage().limits_hit, [LimitHit::BytesRead]);
}

#[test]
fn a_huge_file_costs_no_memory_and_ends_at_the_limit() {
    let (tree, mut guest) = limited(FsLimits { bytes_read: 1 << 20, ..FsLimits::default() });
    guest.create_dir(".").unwrap();
    fs::File::create(tree.omc("huge")).unwrap().set_len(1 << 40).unwrap();
    let file = guest.open("huge", OpenFlags::empty(), DescriptorFlags::READ).unwrap();
    let (bytes, end) = guest.read_at(file, u64::MAX, 0).unwrap();
    assert_eq!((bytes.len(), bytes.capacity(), end), (256 << 10, 256 << 10, false));
    assert_eq!(guest.read_all(file), Err(ErrorCode::Quota));
    assert_eq!(guest.usage().bytes_read, 1 << 20);
}

#[test]
fn what_is_asked_for_is_not_what_is_allocated() {
    let (_tree, mut guest) = limited(FsLimits::default());
    guest.write("a", b"123").unwrap();
    let file = guest.open("a", OpenFlags::empty(), DescriptorFlags::READ).unwrap();
    let (bytes, _) = guest.read_at(file, 1 << 40, 0).unwrap();
    assert!(bytes.capacity() < 64);
}

#[test]
fn a_file_that_grows_while_it_is_read_comes_to_an_end() {
    let (tree, mut guest) = limited(FsLimits { bytes_read: 8 << 20, ..FsLimits::default() });
    guest.create_dir(".").unwrap();
    let stop = AtomicBool::new(false);
    let chunk = vec![b'x'; 64 << 10];
    fs::write(tree.omc("growing"), &chunk).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            use std::io::Write as _;
            let mut file = fs::OpenOptions::new().append(true).open(tree.omc("growing")).unwrap();
            // Faster than any reader, but not without end, should the test fail.
            for _ in 0..4096 {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                file.write_all(&chunk).unwrap();
            }
        });
        let started = Instant::now();
        let read = guest.read("growing");
        stop.store(true, Ordering::Relaxed);
        assert!(started.elapsed() < Duration::from_secs(5));
        assert!(matches!(read, Ok(_) | Err(ErrorCode::Quota)));
        assert!(guest.usage().bytes_read <= 8 << 20);
    });
}

#[test]
fn files_and_listings_take_descriptors_of_the_host_and_give_them_back() {
    let (_tree, mut guest) = limited(FsLimits { open_files: 2, ..FsLimits::default() });
    guest.write("a", b"x").unwrap();
    let (none, read) = (OpenFlags::empty(), DescriptorFlags::READ);
    let first = guest.open("a", none, read).unwrap();
    let second = guest.open("a", none, read).unwrap();
    assert_eq!(guest.open("a", none, read), Err(ErrorCode::InsufficientMemory));
    assert_eq!(guest.list(".").map(|entries| entries.len()), Err(ErrorCode::InsufficientMemory));
    // A folder takes none.
    guest.open(".", OpenFlags::DIRECTORY, read).unwrap();
    // A stream keeps its file open.
    let stream = guest.wasi.read_via_stream(Resource::new_borrow(first), 0).unwrap().rep();
    guest.close(first);
    assert_eq!(guest.open("a", none, read), Err(ErrorCode::InsufficientMemory));
    streams::HostInputStream::drop(&mut guest.wasi, Resource::new_own(stream)).unwrap();
    guest.close(second);
    assert_eq!(guest.names(".").unwrap(), ["a"]);
    assert_eq!(guest.read("a").unwrap(), b"x");
    assert_eq!(guest.usage().limits_hit, [LimitHit::OpenFiles]);
}

#[test]
fn the_table_of_resources_is_bounded() {
    let (_tree, mut guest) = limited(FsLimits { resources: 8, ..FsLimits::default() });
    guest.create_dir(".").unwrap();
    let opened =
        (0..20).map(|_| guest.open(".", OpenFlags::DIRECTORY, DescriptorFlags::READ)).take_while(Result::is_ok).count();
    assert!(opened < 8);
    assert_eq!(guest.usage().limits_hit, [LimitHit::Resources]);
}

#[test]
fn names_given_out_are_counted() {
    let (tree, mut guest) = limited(FsLimits { listed_entries: 5, ..FsLimits::default() });
    guest.create_dir(".").unwrap();
    for name in 0..20 {
        fs::write(tree.omc(&name.to_string()), "").unwrap();
    }
    assert_eq!(guest.list(".").map(|entries| entries.len()), Err(ErrorCode::Quota));
    assert_eq!(guest.usage().limits_hit, [LimitHit::ListedEntries]);
    assert_eq!(guest.usage().entries_listed, 5);
}

#[test]
fn a_stream_that_failed_stays_closed() {
    let (_tree, mut guest) = limited(FsLimits { bytes_written: 3, ..FsLimits::default() });
    let file = guest.open("a", OpenFlags::CREATE, DescriptorFlags::WRITE).unwrap();
    let stream = guest.wasi.write_via_stream(Resource::new_borrow(file), 0).unwrap().rep();
    let borrow = || Resource::new_borrow(stream);
    let written = guest.wasi.blocking_write_and_flush(borrow(), b"1234".to_vec());
    assert_eq!(guest.told_of_stream(written), Err(ErrorCode::Quota));
    let written = guest.wasi.blocking_write_and_flush(borrow(), b"1".to_vec());
    assert_eq!(guest.told_of_stream(written), Ok(None));
    let permit = guest.wasi.check_write(borrow());
    assert_eq!(guest.told_of_stream(permit), Ok(None));
}

#[test]
fn a_write_beyond_the_permit_is_a_trap() {
    let (_tree, mut guest) = limited(FsLimits::default());
    let file = guest.open("a", OpenFlags::CREATE, DescriptorFlags::WRITE).unwrap();
    let stream = guest.wasi.write_via_stream(Resource::new_borrow(file), 0).unwrap().rep();
    let borrow = || Resource::new_borrow(stream);
    let permit = usize::try_from(guest.wasi.check_write(borrow()).unwrap()).unwrap();
    for written in [
        guest.wasi.blocking_write_and_flush(borrow(), vec![0; 4097]),
        guest.wasi.blocking_write_zeroes_and_flush(borrow(), 4097),
        guest.wasi.write_zeroes(borrow(), u64::MAX),
        streams::HostOutputStream::write(&mut guest.wasi, borrow(), vec![0; permit + 1]),
    ] {
        assert!(matches!(written, Err(StreamError::Trap(_))));
    }
    guest.wasi.write_zeroes(borrow(), 3).unwrap();
    assert_eq!(guest.read("a").unwrap(), b"\0\0\0");
}
