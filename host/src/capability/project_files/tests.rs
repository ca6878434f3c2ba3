//! Everyday use and attacks, on real folders.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use tempfile::TempDir;

use super::*;

/// A root with files in it, and something beside it.
struct Tree {
    folder: TempDir,
}

impl Tree {
    fn new(files: &[(&str, &str)]) -> Self {
        let tree = Self { folder: tempfile::tempdir().unwrap() };
        tree.write("outside/secret.md", "secret");
        fs::create_dir(tree.path("root")).unwrap();
        for (path, text) in files {
            tree.write(&format!("root/{path}"), text);
        }
        tree
    }

    fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    fn write(&self, path: &str, text: &str) {
        fs::create_dir_all(self.path(path).parent().unwrap()).unwrap();
        fs::write(self.path(path), text).unwrap();
    }

    /// Does something with the files that these globs grant, with a fresh budget.
    fn with<T>(&self, globs: &[&str], use_it: impl FnOnce(&mut Files<'_>) -> T) -> T {
        self.within(globs, &mut Budget::default(), use_it)
    }

    fn within<T>(&self, globs: &[&str], budget: &mut Budget, use_it: impl FnOnce(&mut Files<'_>) -> T) -> T {
        let scopes: Vec<_> = globs.iter().map(|glob| ReadScope::parse(glob).unwrap()).collect();
        use_it(&mut Files::new(&self.path("root"), ReadRoot::Project, &scopes, budget))
    }

    fn read(&self, globs: &[&str], path: &str) -> Result<String, String> {
        self.with(globs, |files| files.read(path, 100, true)).map_err(name)
    }

    fn find(&self, globs: &[&str], folder: &str) -> Result<Vec<String>, String> {
        self.with(globs, |files| files.find(folder, 100)).map(|found| found.paths).map_err(name)
    }

    fn list(&self, globs: &[&str], folder: &str) -> Result<Vec<String>, String> {
        self.with(globs, |files| files.list(folder, 100))
            .map(|entries| entries.into_iter().map(|entry| entry.name).collect())
            .map_err(name)
    }
}

fn name(error: AccessError) -> String {
    match error {
        AccessError::Denied => "denied".to_owned(),
        AccessError::NotFound => "not-found".to_owned(),
        AccessError::TooLarge => "too-large".to_owned(),
        AccessError::Other(text) => text,
    }
}

fn refused<T>(why: &str) -> Result<T, String> {
    Err(why.to_owned())
}

#[test]
fn granted_files_are_read_and_others_are_denied() {
    let tree = Tree::new(&[("a.md", "hello"), ("src/b.md", "deep"), (".env", "KEY=1"), ("src/c.rs", "")]);
    let globs = ["project:**/*.md"];
    assert_eq!(tree.read(&globs, "a.md"), Ok("hello".to_owned()));
    assert_eq!(tree.read(&globs, "src/b.md"), Ok("deep".to_owned()));
    assert_eq!(tree.read(&globs, "gone.md"), refused("not-found"));
    assert_eq!(tree.read(&globs, "gone/a.md"), refused("not-found"));
    assert_eq!(tree.read(&globs, "a.md/b.md"), refused("not-found"));
    for path in ["src/c.rs", ".env", "src", "", "/", "/etc/passwd", "../outside/secret.md", "src/../a.md", "./a.md"] {
        assert_eq!(tree.read(&globs, path), refused("denied"), "{path}");
    }
    for path in ["a.md/", "src//b.md", "src\\b.md", "a\0.md", "a\n.md", &"a/".repeat(40), &"a".repeat(2_000)] {
        assert_eq!(tree.read(&globs, path), refused("denied"), "{path:?}");
    }
    assert_eq!(tree.read(&["home:.x/**"], "a.md"), refused("denied"));
}

#[test]
fn texts_are_bounded_and_characters_whole() {
    let tree = Tree::new(&[("a.md", "héllo wörld")]);
    tree.with(&["project:a.md"], |files| {
        assert_eq!(files.read("a.md", 13, true).map_err(name), Ok("héllo wörld".to_owned()));
        assert_eq!(files.read("a.md", 12, true).map_err(name), refused("too-large"));
        for (max_bytes, expected) in [(0, ""), (1, "h"), (2, "h"), (3, "hé"), (10, "héllo wö"), (9, "héllo w")] {
            assert_eq!(files.read("a.md", max_bytes, false).map_err(name), Ok(expected.to_owned()), "{max_bytes}");
        }
    });
    fs::write(tree.path("root/b.md"), b"a\xff\xfeb").unwrap();
    assert_eq!(tree.read(&["project:b.md"], "b.md"), Ok("a\u{fffd}\u{fffd}b".to_owned()));
    fs::write(tree.path("root/c.md"), vec![0x80; 50]).unwrap();
    assert_eq!(tree.with(&["project:c.md"], |files| files.read("c.md", 10, false)).unwrap().chars().count(), 10);
    fs::write(tree.path("root/big.md"), vec![b'x'; 2 << 20]).unwrap();
    let start = tree.with(&["project:big.md"], |files| files.read("big.md", u32::MAX, false));
    assert_eq!(start.unwrap().len(), 1 << 20);
}

#[test]
fn links_lead_nowhere() {
    let tree = Tree::new(&[("real/a.md", "inside")]);
    for (link, to) in [
        ("leaf.md", tree.path("outside/secret.md")),
        ("relative.md", PathBuf::from("../outside/secret.md")),
        ("inside.md", PathBuf::from("real/a.md")),
        ("folder", tree.path("outside")),
        ("up", PathBuf::from("..")),
        ("loop.md", PathBuf::from("loop.md")),
        ("real/around", PathBuf::from("..")),
    ] {
        symlink(to, tree.path("root").join(link)).unwrap();
    }
    let globs = ["project:**"];
    for path in ["leaf.md", "relative.md", "inside.md", "folder/secret.md", "up/outside/secret.md", "loop.md"] {
        assert_eq!(tree.read(&globs, path), refused("a link is not followed"), "{path}");
    }
    assert_eq!(tree.find(&globs, ""), Ok(vec!["real/a.md".to_owned()]));
    assert_eq!(tree.find(&globs, "folder"), refused("a link is not followed"));
    assert_eq!(tree.list(&globs, ""), Ok(vec!["real".to_owned()]));
    assert_eq!(tree.list(&globs, "up"), refused("a link is not followed"));
}

#[test]
fn what_is_no_regular_file_is_neither_opened_nor_waited_for() {
    let tree = Tree::new(&[]);
    let fifo = tree.path("root/fifo.md");
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(tree.path("root/socket.md")).unwrap();
    fs::create_dir(tree.path("root/folder.md")).unwrap();
    for path in ["fifo.md", "socket.md", "folder.md"] {
        assert_eq!(tree.read(&["project:*.md"], path), refused("not-found"), "{path}");
    }
    assert_eq!(tree.find(&["project:*.md"], ""), Ok(Vec::new()));
}

#[test]
fn listings_show_only_what_is_granted_or_leads_there() {
    let tree = Tree::new(&[
        (".claude/rules/a.md", "rule"),
        (".claude/rules/sub/b.md", ""),
        (".claude/settings.local.json", ""),
        (".env", ""),
        ("src/x.rs", ""),
        ("README.md", "readme"),
    ]);
    let globs = ["project:.claude/rules/**/*.md", "project:README.md"];
    assert_eq!(tree.list(&globs, ""), Ok(vec![".claude".to_owned(), "README.md".to_owned()]));
    assert_eq!(tree.list(&globs, ".claude"), Ok(vec!["rules".to_owned()]));
    assert_eq!(tree.list(&globs, ".claude/rules"), Ok(vec!["a.md".to_owned(), "sub".to_owned()]));
    for folder in ["src", ".git", "..", ".claude/..", "README.md"] {
        assert_eq!(tree.list(&globs, folder), refused("denied"), "{folder}");
    }
    // A file in the place of a folder that a glob leads through is not what was granted.
    assert_eq!(tree.list(&["project:README.md/x", "project:src/**"], ""), Ok(vec!["src".to_owned()]));
    assert_eq!(tree.list(&["project:README*/x"], ""), Ok(Vec::new()));
    let entries = tree.with(&globs, |files| files.list(".claude/rules", 100)).unwrap();
    assert!(matches!(entries[0].kind, EntryKind::File) && entries[0].size == 4 && entries[0].modified_ms > 0);
    assert!(matches!(entries[1].kind, EntryKind::Folder) && entries[1].size == 0);
    assert_eq!(tree.with(&globs, |files| files.list("", 1)).map(|_| ()).map_err(name), refused("too-large"));
    assert_eq!(
        tree.find(&globs, ""),
        Ok(["README.md", ".claude/rules/a.md", ".claude/rules/sub/b.md",].map(str::to_owned).to_vec())
    );
    assert_eq!(tree.find(&globs, ".claude/rules/sub"), Ok(vec![".claude/rules/sub/b.md".to_owned()]));
}

#[test]
fn a_search_that_leaves_something_out_says_so() {
    let tree = Tree::new(&[("a/1.md", ""), ("a/2.md", ""), ("b/3.md", "")]);
    let find = |most| tree.with(&["project:**/*.md"], |files| files.find("", most)).unwrap();
    assert!(find(3).complete && find(3).paths.len() == 3);
    assert!(!find(2).complete && find(2).paths == ["a/1.md", "a/2.md"]);
    tree.write(&format!("root/{}x.md", "d/".repeat(MAX_FIND_DEPTH + 1)), "");
    assert!(!find(9).complete && find(9).paths.len() == 3);
}

#[test]
fn a_huge_repository_costs_a_few_milliseconds() {
    let tree = Tree::new(&[("a.md", "")]);
    for folder in 0..12 {
        let folder = tree.path(&format!("root/heap/{folder}"));
        fs::create_dir_all(&folder).unwrap();
        for file in 0..1_000 {
            fs::write(folder.join(format!("{file}.txt")), "").unwrap();
        }
    }
    tree.with(&["project:**/*.md"], |files| {
        let began = Instant::now();
        let found = files.find("", 100).unwrap();
        // Twenty times what it takes by itself: tests run side by side.
        assert!(began.elapsed() < Duration::from_millis(400), "{:?}", began.elapsed());
        assert_eq!((found.paths, found.complete), (vec!["a.md".to_owned()], false));
    });
    let mut budget = Budget { entries: 500, ..Budget::default() };
    tree.within(&["project:**/*.md"], &mut budget, |files| {
        assert!(matches!(files.list("heap/0", 100), Err(AccessError::Other(_))));
        assert!(!files.find("heap/1", 100).unwrap().complete);
    });
    assert_eq!(budget.entries, 0);
    // Names that the globs give are looked up, not searched for.
    let globs = ["project:heap/7/a.md", "project:a.md", "project:heap/7/7.txt"];
    let found =
        tree.within(&globs, &mut Budget { entries: 5, ..Budget::default() }, |files| files.find("", 100)).unwrap();
    assert_eq!((found.paths, found.complete), (vec!["a.md".to_owned(), "heap/7/7.txt".to_owned()], true));
}

#[test]
fn a_call_reads_only_so_much() {
    let tree = Tree::new(&[]);
    fs::write(tree.path("root/a.md"), vec![b'x'; 1 << 20]).unwrap();
    tree.with(&["project:a.md"], |files| {
        let reads = (0..40).take_while(|_| files.read("a.md", u32::MAX, true).is_ok()).count();
        assert_eq!(reads, 16);
    });
}

#[test]
fn a_folder_that_is_missing_or_replaced_is_not_found() {
    let tree = Tree::new(&[("a.md", "x")]);
    fs::rename(tree.path("root"), tree.path("moved")).unwrap();
    assert_eq!(tree.read(&["project:a.md"], "a.md"), refused("not-found"));
    assert_eq!(tree.find(&["project:**"], ""), refused("not-found"));
    fs::write(tree.path("root"), "a file").unwrap();
    assert_eq!(tree.list(&["project:**"], ""), refused("not-found"));
}
