//! What a hostile repository plants and a hostile guest tries.

use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::net::UnixListener;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use super::*;

/// Paths that lead out of `.omc`, or over a link that stays inside.
const WAYS_OUT: &[&str] = &[
    "../../outside/secret",
    "..",
    "sub/../../../outside/secret",
    "./../../outside/secret",
    "/",
    "/etc/hostname",
    "//etc/hostname",
    "link/secret",
    "link/",
    "link/.",
    "link/./secret",
    "link/../secret",
    "link/folder/secret",
    "link/new",
    "./link/secret",
    "sub/../link/secret",
    "sub/../link/new",
    "folder/secret",
    "folder/../secret",
    "leaf",
    "leaf/",
    "sub/leaf",
    "dangling",
    "sub/up/file",
    "sub/up/../outside/secret",
    "parent/.omc/file",
    "loop",
    "loop/x",
    "inside",
    "root/etc/hostname",
    "file/../leaf",
    "link\\secret",
    "li\u{200b}nk/secret",
    "LINK/secret",
];

/// Everything that a guest can do with a path. It may fail or not, but must be without effect outside.
type Attack = fn(&mut Guest, &str) -> Outcome<Vec<u8>>;

const ATTACKS: &[(&str, Attack)] = &[
    ("read", |guest, path| guest.read(path)),
    ("write", |guest, path| guest.write(path, b"x").map(|()| Vec::new())),
    ("create new", |guest, path| {
        guest.write_with(path, OpenFlags::CREATE | OpenFlags::EXCLUSIVE, b"x").map(|()| Vec::new())
    }),
    ("overwrite", |guest, path| guest.write_with(path, OpenFlags::empty(), b"x").map(|()| Vec::new())),
    ("truncate", |guest, path| {
        let file = guest.open(path, OpenFlags::TRUNCATE, DescriptorFlags::READ)?;
        guest.read_all(file)
    }),
    ("append", |guest, path| guest.append(path, b"x").map(|()| Vec::new())),
    ("set size", |guest, path| guest.set_size(path, 1).map(|()| Vec::new())),
    ("set times", |guest, path| guest.set_times(path).map(|()| Vec::new())),
    ("create folder", |guest, path| guest.create_dir(path).map(|()| Vec::new())),
    ("remove folder", |guest, path| guest.remove_dir(path).map(|()| Vec::new())),
    ("remove file", |guest, path| guest.remove_file(path).map(|()| Vec::new())),
    ("rename to", |guest, path| guest.rename("file", path).map(|()| Vec::new())),
    ("rename folder to", |guest, path| guest.rename("sub", path).map(|()| Vec::new())),
    ("rename from", |guest, path| {
        guest.rename(path, "taken")?;
        guest.read("taken")
    }),
    ("hard link to", |guest, path| guest.hard_link("file", path).map(|()| Vec::new())),
    ("hard link from", |guest, path| {
        guest.hard_link(path, "taken")?;
        guest.read("taken")
    }),
    ("symlink", |guest, path| guest.symlink("file", path).map(|()| Vec::new())),
    ("read link", |guest, path| guest.read_link(path).map(String::into_bytes)),
    ("look at", |guest, path| guest.stat(path).map(|_| Vec::new())),
    ("list", |guest, path| guest.names(path).map(|names| names.concat().into_bytes())),
    ("open folder", |guest, path| {
        let dir = guest.open(path, OpenFlags::DIRECTORY, DescriptorFlags::READ | DescriptorFlags::MUTATE_DIRECTORY)?;
        guest.root = dir;
        guest.read("secret")
    }),
];

/// Tries everything everywhere. `check` sees the tree after each attack, and the project as it was before.
fn attack(access: Access, check: impl Fn(&Tree, &BTreeMap<PathBuf, String>, &str)) {
    let mut tree = Tree::hostile();
    for &(what, attack) in ATTACKS {
        for &path in WAYS_OUT {
            let outside = snapshot(&tree.path("outside"));
            let project = snapshot(&tree.path("project"));
            let found = attack(&mut tree.guest(&[("", access)]), path).unwrap_or_default();
            let context = format!("{what} `{path}` with {access:?}");
            assert!(!found.windows(SECRET.len()).any(|window| window == SECRET), "{context} found the secret");
            assert_eq!(snapshot(&tree.path("outside")), outside, "{context} changed something outside");
            let around = fs::read_dir(tree.root.path()).unwrap().count();
            assert_eq!(around, 2, "{context} left something beside the project");
            check(&tree, &project, &context);
            if snapshot(&tree.path("project")) != project {
                tree = Tree::hostile();
            }
        }
    }
}

#[test]
fn no_way_leads_out_with_a_writable_grant() {
    attack(Access::ReadWrite, |tree, _, context| {
        let around = fs::read_dir(tree.path("project")).unwrap().count();
        assert_eq!(around, 1, "{context} left something beside `.omc`");
    });
}

#[test]
fn a_read_only_grant_changes_nothing_not_even_a_modification_time() {
    attack(Access::ReadOnly, |tree, before, context| {
        assert_eq!(&snapshot(&tree.path("project")), before, "{context} changed something inside");
    });
}

#[test]
fn plain_use_of_a_read_only_grant_changes_nothing() {
    for &(what, attack) in ATTACKS {
        for path in ["file", "sub", "new", "sub/new", "."] {
            let tree = Tree::hostile();
            let before = snapshot(&tree.path("project"));
            let mut guest = tree.reader();
            let _either_way = attack(&mut guest, path);
            assert_eq!(snapshot(&tree.path("project")), before, "{what} `{path}`");
        }
    }
}

#[test]
fn a_guest_hears_why() {
    let tree = Tree::hostile();
    let mut guest = tree.writer();
    for (path, code, reason) in [
        ("../x", ErrorCode::NotPermitted, Reason::Escape),
        ("/x", ErrorCode::NotPermitted, Reason::Escape),
        ("link/x", ErrorCode::Loop, Reason::SymbolicLink),
        ("leaf", ErrorCode::Loop, Reason::SymbolicLink),
        ("dangling", ErrorCode::Loop, Reason::SymbolicLink),
        ("a\nb", ErrorCode::Invalid, Reason::BadName),
    ] {
        assert_eq!(guest.write(path, b"x").unwrap_err(), code, "{path}");
        assert_eq!(guest.read(path).unwrap_err(), code, "{path}");
        assert_eq!(guest.refusals().last(), Some(&reason), "{path}");
    }
    assert_eq!(guest.hard_link("file", "other").unwrap_err(), ErrorCode::NotPermitted);
    assert_eq!(guest.symlink("file", "other").unwrap_err(), ErrorCode::NotPermitted);
    assert_eq!(guest.refusals().last(), Some(&Reason::NewLink));
    assert_eq!(tree.reader().write("file", b"x").unwrap_err(), ErrorCode::ReadOnly);
}

#[test]
fn a_link_can_be_looked_at_removed_and_replaced_but_not_read() {
    let tree = Tree::hostile();
    let outside = snapshot(&tree.path("outside"));
    let mut guest = tree.writer();
    let stat = guest.stat_link("leaf").unwrap();
    assert_eq!(stat.type_, super::super::bindings::filesystem::types::DescriptorType::SymbolicLink);
    assert_eq!(guest.read_link("leaf").unwrap_err(), ErrorCode::Loop);
    assert_eq!(guest.read_link("file").unwrap_err(), ErrorCode::Invalid);
    assert_eq!(guest.rename("leaf", "moved").unwrap_err(), ErrorCode::Loop);

    guest.rename("file", "leaf").unwrap();
    assert_eq!(guest.read("leaf").unwrap(), b"ours");
    guest.remove_file("link").unwrap();
    guest.create_dir("link").unwrap();
    assert_eq!(snapshot(&tree.path("outside")), outside);
}

#[test]
fn an_omc_that_is_a_link_a_file_or_someone_elses_gives_nothing() {
    type Plant = fn(&Tree, &Path);
    let plant: [(&str, Plant); 4] = [
        ("a link to a folder", |tree, omc| symlink(tree.path("outside"), omc).unwrap()),
        ("a dangling link", |tree, omc| symlink(tree.path("outside/new"), omc).unwrap()),
        ("a file", |_, omc| fs::write(omc, "x").unwrap()),
        ("someone else's", |_, omc| {
            fs::create_dir(omc).unwrap();
            fs::write(omc.join("secret"), SECRET).unwrap();
            chown(omc, Some(54321), None).unwrap();
        }),
    ];
    // Only root can give a folder away, so only root can try that one.
    let able = if is_root() { 4 } else { 3 };
    for (what, plant) in plant.into_iter().take(able) {
        let tree = Tree::new();
        plant(&tree, &tree.path("project/.omc"));
        let before = snapshot(tree.root.path());
        let mut guest = tree.writer();
        for &(name, attack) in ATTACKS {
            for path in ["secret", "new", "."] {
                assert!(attack(&mut guest, path).is_err(), "{name} `{path}` where `.omc` is {what}");
            }
        }
        assert_eq!(guest.read("secret").unwrap_err(), ErrorCode::Access, "{what}");
        assert!(guest.refusals().contains(&Reason::Directory), "{what}");
        assert_eq!(snapshot(tree.root.path()), before, "{what}");
    }
}

#[test]
fn a_read_only_folder_inside_a_writable_one_stays_as_it_is() {
    let tree = Tree::new();
    fs::create_dir_all(tree.omc("a/locked/deep")).unwrap();
    fs::create_dir_all(tree.omc("b/locked")).unwrap();
    fs::write(tree.omc("a/locked/file"), "kept").unwrap();
    fs::write(tree.omc("b/locked/file"), "other").unwrap();
    let before = snapshot(&tree.omc("a/locked"));
    let mut guest = tree.guest(&[("", Access::ReadWrite), ("a/locked", Access::ReadOnly)]);

    assert_eq!(guest.read("a/locked/file").unwrap(), b"kept");
    for path in ["a/locked/file", "a/locked/new", "a/locked/deep/new", "a/./locked/new", "b/../a/locked/file"] {
        assert_eq!(guest.write(path, b"x").unwrap_err(), ErrorCode::ReadOnly, "{path}");
    }
    for path in ["A/locked/file", "a/LOCKED/file", "a/loc\u{200d}ked/file"] {
        assert!(matches!(guest.write(path, b"x"), Err(ErrorCode::ReadOnly | ErrorCode::NoEntry)), "{path}");
    }
    // Moving the folder, or what holds it, or another one over it, would take the grant's meaning away.
    for (from, to) in [
        ("a/locked", "c"),
        ("a", "c"),
        ("a/locked/file", "c"),
        ("b", "a"),
        ("b/locked", "a/locked"),
        ("b/locked/file", "a/locked/file"),
        ("b", "A"),
    ] {
        let code = guest.rename(from, to).unwrap_err();
        assert!(matches!(code, ErrorCode::ReadOnly | ErrorCode::NotPermitted), "{from} to {to}: {code:?}");
    }
    for path in ["a/locked/deep", "a/locked"] {
        assert_eq!(guest.remove_dir(path).unwrap_err(), ErrorCode::ReadOnly, "{path}");
    }
    assert_eq!(guest.remove_file("a/locked/file").unwrap_err(), ErrorCode::ReadOnly);
    assert_eq!(guest.set_times("a/locked").unwrap_err(), ErrorCode::ReadOnly);

    // Nor does a descriptor of the folder, or one from before, give more.
    guest.root = guest.open("a/locked", OpenFlags::DIRECTORY, DescriptorFlags::MUTATE_DIRECTORY).unwrap();
    assert_eq!(guest.write("file", b"x").unwrap_err(), ErrorCode::ReadOnly);
    assert_eq!(guest.write("../../b/new", b"x").unwrap_err(), ErrorCode::NotPermitted);
    assert_eq!(snapshot(&tree.omc("a/locked")), before);
}

#[test]
fn a_single_file_can_be_read_only_among_writable_ones() {
    let tree = Tree::hostile();
    fs::write(tree.omc("other"), "x").unwrap();
    let before = snapshot(&tree.omc("file"));
    let mut guest = tree.guest(&[("", Access::ReadWrite), ("file", Access::ReadOnly)]);
    for path in ["file", "./file", "sub/../file", "FILE"] {
        assert_eq!(guest.write(path, b"x").unwrap_err(), ErrorCode::ReadOnly, "{path}");
        assert_eq!(guest.remove_file(path).unwrap_err(), ErrorCode::ReadOnly, "{path}");
        assert_eq!(guest.rename("other", path).unwrap_err(), ErrorCode::ReadOnly, "{path}");
        assert_eq!(guest.rename(path, "new").unwrap_err(), ErrorCode::ReadOnly, "{path}");
        assert_eq!(guest.set_times(path).unwrap_err(), ErrorCode::ReadOnly, "{path}");
    }
    let file = guest.open("file", OpenFlags::empty(), DescriptorFlags::READ).unwrap();
    let set = guest.wasi.set_times(Resource::new_borrow(file), NewTimestamp::Now, NewTimestamp::Now);
    assert_eq!(guest.told(set), Err(ErrorCode::ReadOnly));
    guest.write("other", b"y").unwrap();
    assert_eq!(snapshot(&tree.omc("file")), before);
}

#[test]
fn a_read_only_folder_that_is_not_there_cannot_be_put_there() {
    let tree = Tree::new();
    fs::create_dir_all(tree.omc("made/locked")).unwrap();
    fs::write(tree.omc("made/locked/file"), "planted").unwrap();
    let mut guest = tree.guest(&[("", Access::ReadWrite), ("a/locked", Access::ReadOnly)]);
    assert_eq!(guest.rename("made", "a").unwrap_err(), ErrorCode::NotPermitted);
    guest.create_dir("a").unwrap();
    assert_eq!(guest.create_dir("a/locked").unwrap_err(), ErrorCode::ReadOnly);
    assert_eq!(guest.rename("made/locked", "a/locked").unwrap_err(), ErrorCode::ReadOnly);
    assert_eq!(guest.write("a/Locked", b"x").unwrap_err(), ErrorCode::ReadOnly);
    assert!(!tree.omc("a/locked").exists() && !tree.omc("a/Locked").exists());
}

#[test]
fn what_no_grant_covers_is_out_of_reach() {
    let tree = Tree::new();
    fs::create_dir_all(tree.omc("guests/mine")).unwrap();
    fs::create_dir_all(tree.omc("guests/other")).unwrap();
    fs::write(tree.omc("guests/other/secret"), SECRET).unwrap();
    fs::write(tree.omc("guests/mine/file"), "mine").unwrap();
    fs::write(tree.omc("top"), SECRET).unwrap();
    let mut guest = tree.guest(&[("guests/mine", Access::ReadWrite)]);

    assert_eq!(guest.read("guests/mine/file").unwrap(), b"mine");
    guest.stat(".").unwrap();
    guest.stat("guests").unwrap();
    for path in ["top", "guests/other/secret", "guests/mine/../other/secret", "guests/other/../mine/file", "new"] {
        assert_eq!(guest.read(path).unwrap_err(), ErrorCode::Access, "{path}");
        assert_eq!(guest.stat(path).unwrap_err(), ErrorCode::Access, "{path}");
        assert_eq!(guest.write(path, b"x").unwrap_err(), ErrorCode::Access, "{path}");
        assert_eq!(guest.rename("guests/mine/file", path).unwrap_err(), ErrorCode::Access, "{path}");
        assert_eq!(guest.rename(path, "guests/mine/taken").unwrap_err(), ErrorCode::Access, "{path}");
    }
    for path in [".", "guests"] {
        assert_eq!(guest.list(path).unwrap_err(), ErrorCode::Access, "{path}");
        assert!(guest.remove_dir(path).is_err(), "{path}");
        assert_eq!(guest.set_times(path).unwrap_err(), ErrorCode::Access, "{path}");
    }
    // The granted folder is listed by one that is not the guest's to change.
    assert_eq!(guest.rename("guests/mine", "guests/mine2").unwrap_err(), ErrorCode::NotPermitted);
    assert_eq!(guest.remove_dir("guests/mine").unwrap_err(), ErrorCode::NotPermitted);
    assert_eq!(fs::read(tree.omc("guests/other/secret")).unwrap(), SECRET);
}

#[test]
fn the_folders_on_the_way_to_a_writable_grant_can_be_made() {
    let tree = Tree::new();
    let mut guest = tree.guest(&[("guests/mine", Access::ReadWrite)]);
    assert_eq!(guest.create_dir("guests/mine").unwrap_err(), ErrorCode::NoEntry);
    assert!(!tree.omc("").exists());
    guest.create_dir("guests").unwrap();
    assert_eq!(guest.create_dir("other").unwrap_err(), ErrorCode::Access);
    assert_eq!(guest.write("guests/x", b"x").unwrap_err(), ErrorCode::Access);
    guest.create_dir("guests/mine").unwrap();
    guest.write("guests/mine/x", b"x").unwrap();
    let mut reader = Tree::new().guest(&[("guests/mine", Access::ReadOnly)]);
    assert_eq!(reader.create_dir("guests").unwrap_err(), ErrorCode::Access);
}

#[test]
fn a_file_with_a_second_name_is_read_but_never_changed() {
    let tree = Tree::new();
    fs::create_dir(tree.omc("")).unwrap();
    fs::hard_link(tree.path("outside/secret"), tree.omc("hard")).unwrap();
    let before = snapshot(&tree.path("outside"));
    let mut guest = tree.writer();
    assert_eq!(guest.read("hard").unwrap(), SECRET);
    for (what, code) in [
        ("write", guest.write("hard", b"x")),
        ("overwrite", guest.write_with("hard", OpenFlags::empty(), b"x")),
        ("append", guest.append("hard", b"x")),
        ("set size", guest.set_size("hard", 1)),
        ("set times", guest.set_times("hard")),
    ] {
        assert_eq!(code, Err(ErrorCode::TooManyLinks), "{what}");
    }
    let file = guest.open("hard", OpenFlags::empty(), DescriptorFlags::READ).unwrap();
    let set = guest.wasi.set_times(Resource::new_borrow(file), NewTimestamp::Now, NewTimestamp::Now);
    assert_eq!(guest.told(set), Err(ErrorCode::TooManyLinks));
    assert_eq!(snapshot(&tree.path("outside")), before);
}

#[test]
fn special_files_are_refused_at_once() {
    let tree = Tree::new();
    fs::create_dir(tree.omc("")).unwrap();
    let make = |name: &str, kind, device| {
        rustix::fs::mknodat(rustix::fs::CWD, tree.omc(name), kind, 0o666.into(), device).unwrap();
    };
    let mut special = vec!["fifo", "socket"];
    make("fifo", rustix::fs::FileType::Fifo, 0);
    if is_root() {
        make("zero", rustix::fs::FileType::CharacterDevice, rustix::fs::makedev(1, 5));
        make("terminal", rustix::fs::FileType::CharacterDevice, rustix::fs::makedev(5, 0));
        special.extend(["zero", "terminal"]);
    }
    let _socket = UnixListener::bind(tree.omc("socket")).unwrap();
    let before = snapshot_without_reading(&tree.omc(""));

    let started = Instant::now();
    let mut guest = tree.writer();
    for path in special {
        assert_eq!(guest.read(path).unwrap_err(), ErrorCode::NotPermitted, "{path}");
        assert_eq!(guest.write(path, b"x").unwrap_err(), ErrorCode::NotPermitted, "{path}");
        assert_eq!(guest.append(path, b"x").unwrap_err(), ErrorCode::NotPermitted, "{path}");
        assert_eq!(guest.set_times(path).unwrap_err(), ErrorCode::NotPermitted, "{path}");
        assert_eq!(guest.rename(path, "moved").unwrap_err(), ErrorCode::NotPermitted, "{path}");
        assert_eq!(guest.read(&format!("{path}/x")).unwrap_err(), ErrorCode::NotDirectory, "{path}");
        assert_eq!(guest.list(path).unwrap_err(), ErrorCode::NotPermitted, "{path}");
    }
    assert!(started.elapsed() < Duration::from_secs(2), "a special file was waited for");
    assert!(guest.refusals().iter().all(|reason| *reason == Reason::SpecialFile));
    assert_eq!(snapshot_without_reading(&tree.omc("")), before);
    // Looking at it, and clearing it away, is no danger.
    guest.stat("fifo").unwrap();
    guest.remove_file("fifo").unwrap();
}

#[test]
fn a_name_that_becomes_a_link_during_the_walk_leads_nowhere() {
    let tree = Tree::new();
    fs::create_dir_all(tree.omc("flip")).unwrap();
    fs::create_dir_all(tree.omc("held")).unwrap();
    let before = snapshot(&tree.path("outside"));
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let (flip, aside, link) = (tree.omc("flip"), tree.omc("aside"), tree.omc("held/link"));
            while !stop.load(Ordering::Relaxed) {
                symlink(tree.path("outside"), &link).unwrap();
                fs::rename(&flip, &aside).unwrap();
                fs::rename(&link, &flip).unwrap();
                fs::remove_file(&flip).unwrap();
                fs::rename(&aside, &flip).unwrap();
            }
        });
        let mut guest = tree.writer();
        let mut times = 0;
        let started = Instant::now();
        while started.elapsed() < Duration::from_millis(300) {
            if let Ok(bytes) = guest.read("flip/secret") {
                assert_ne!(bytes, SECRET);
            }
            let _either_way = guest.write("flip/secret", b"guest");
            let _either_way = guest.create_dir("flip/folder/new");
            let _either_way = guest.remove_file("flip/folder/secret");
            times += 1;
        }
        stop.store(true, Ordering::Relaxed);
        assert!(times > 10);
    });
    assert_eq!(snapshot(&tree.path("outside")), before);
}

#[test]
fn files_do_not_move_between_preopens() {
    let tree = Tree::new();
    fs::create_dir_all(tree.path("home/.omc")).unwrap();
    fs::create_dir_all(tree.omc("")).unwrap();
    fs::write(tree.omc("file"), "ours").unwrap();
    let user = Arc::new(OmcDir::find(&tree.path("home"), ".omc"));
    let all = [("", Access::ReadWrite)];
    let mut guest =
        Guest::new(vec![preopen("/omc", tree.dir(), &all), preopen("/omc-user", user, &all)], FsLimits::default());
    let directories = guest.wasi.get_directories().unwrap();
    assert_eq!(directories.iter().map(|(_, path)| path.as_str()).collect::<Vec<_>>(), ["/omc", "/omc-user"]);
    let user = Resource::new_borrow(directories[1].0.rep());
    let renamed = guest.wasi.rename_at(guest.fd(), "file".to_owned(), user, "file".to_owned());
    assert_eq!(guest.told(renamed).unwrap_err(), ErrorCode::CrossDevice);
    assert!(tree.omc("file").exists());
}

#[test]
fn a_preopen_without_a_grant_is_not_there() {
    let tree = Tree::hostile();
    assert!(tree.guest(&[]).wasi.get_directories().unwrap().is_empty());
}

#[test]
fn new_files_and_folders_are_the_users_alone() {
    let tree = Tree::new();
    let mut guest = tree.writer();
    guest.create_dir("sub").unwrap();
    guest.write("sub/file", b"x").unwrap();
    let mode = |path| fs::metadata(tree.omc(path)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(""), mode("sub"), mode("sub/file")), (0o700, 0o700, 0o600));
}

#[test]
fn a_name_that_a_repository_planted_spoils_no_listing() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;
    let tree = Tree::hostile();
    fs::write(tree.omc("").join(OsStr::from_bytes(b"\xff\xfe")), "").unwrap();
    fs::write(tree.omc("\u{1b}[2J"), "").unwrap();
    fs::write(tree.omc("FILE"), "").unwrap();
    let mut guest = tree.guest(&[("", Access::ReadWrite), ("file", Access::ReadOnly)]);
    let names = guest.names(".").unwrap();
    assert!(names.contains(&"file".to_owned()) && names.contains(&"link".to_owned()));
    assert!(!names.iter().any(|name| name.contains('\u{1b}')));
    assert_eq!(guest.refusals(), [Reason::BadName]);
    // A standard library asks this about each name that it lists.
    for name in names {
        let hash = guest.wasi.metadata_hash_at(guest.fd(), PathFlags::empty(), name.clone());
        guest.told(hash).expect(&name);
    }
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Kinds, sizes and times; reading a FIFO would wait.
fn snapshot_without_reading(path: &Path) -> BTreeMap<PathBuf, (u32, u64, i64, i64)> {
    let entries = fs::read_dir(path).unwrap().map(|entry| {
        let path = entry.unwrap().path();
        let stat = fs::symlink_metadata(&path).unwrap();
        (path, (stat.mode(), stat.len(), stat.mtime(), stat.mtime_nsec()))
    });
    entries.collect()
}
