//! Streams that are always ready, and waits that end.

use super::super::DeadlinePassed;
use super::super::bindings::clocks::monotonic_clock::Host as _;
use super::super::bindings::io::poll::{Host as _, HostPollable as _};
use super::super::streams::Pollable;
use super::*;

/// A guest that has this long to live.
fn guest(time: Duration) -> Guest {
    let deadline = Instant::now() + time;
    let wasi = Wasi::new(WasiConfig { preopens: Vec::new(), limits: FsLimits::default(), deadline });
    Guest { wasi, root: 0 }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap()
}

#[test]
fn a_sleep_takes_its_time() {
    let mut guest = guest(Duration::from_mins(1));
    let sleep = Duration::from_millis(30);
    let started = Instant::now();
    let timer = guest.wasi.subscribe_duration(nanos(sleep)).unwrap().rep();
    assert!(!guest.wasi.ready(Resource::new_borrow(timer)).unwrap());
    guest.wasi.block(Resource::new_borrow(timer)).unwrap();
    assert!(started.elapsed() >= sleep);
    assert!(guest.wasi.ready(Resource::new_borrow(timer)).unwrap());

    let now = guest.wasi.now().unwrap();
    let past = guest.wasi.subscribe_instant(now).unwrap();
    assert!(guest.wasi.ready(past).unwrap());
    let later = guest.wasi.subscribe_instant(now + nanos(sleep)).unwrap();
    guest.wasi.block(later).unwrap();
    assert!(guest.wasi.now().unwrap() >= now + nanos(sleep));
}

#[test]
fn nobody_sleeps_beyond_the_deadline() {
    for wait in [nanos(Duration::from_hours(1)), u64::MAX] {
        for poll in [false, true] {
            let mut guest = guest(Duration::from_millis(30));
            let started = Instant::now();
            let timer = guest.wasi.subscribe_duration(wait).unwrap();
            let ended = if poll { guest.wasi.poll(vec![timer]).map(|_| ()) } else { guest.wasi.block(timer) };
            assert_eq!(ended.unwrap_err().downcast_ref(), Some(&DeadlinePassed));
            assert!(started.elapsed() < Duration::from_secs(5));
        }
    }
}

#[test]
fn a_poll_names_what_is_ready_first() {
    let mut guest = guest(Duration::from_mins(1));
    let mut timer = |millis: u64| guest.wasi.subscribe_duration(millis * 1_000_000).unwrap().rep();
    let (long, short, none) = (timer(3_600_000), timer(20), timer(0));
    let stream = super::super::bindings::cli::stdin::Host::get_stdin(&mut guest.wasi).unwrap();
    let stream = streams::HostInputStream::subscribe(&mut guest.wasi, stream).unwrap().rep();
    let of = Resource::<Pollable>::new_borrow;
    assert_eq!(guest.wasi.poll(vec![of(long), of(none), of(stream)]).unwrap(), [1, 2]);
    assert_eq!(guest.wasi.poll(vec![of(long), of(short)]).unwrap(), [1]);
    assert!(guest.wasi.poll(Vec::new()).is_err());
}

#[test]
fn streams_start_no_thread() {
    let tree = Tree::new();
    let mut guest = tree.writer();
    guest.write("file", b"x").unwrap();
    assert_eq!(guest.read("file").unwrap(), b"x");
    let timer = guest.wasi.subscribe_duration(1).unwrap();
    guest.wasi.block(timer).unwrap();
    // A thread inherits this one's name, or has one of its own; the other tests' threads are named after them.
    let names: Vec<String> = fs::read_dir("/proc/self/task")
        .into_iter()
        .flatten()
        .filter_map(|task| fs::read_to_string(task.ok()?.path().join("comm")).ok())
        .collect();
    assert!(!names.iter().any(|name| name.contains("tokio") || name.contains("runtime")), "{names:?}");
}
