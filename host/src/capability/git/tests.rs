//! Real repositories, and ones that would like to run something.

use std::os::unix::fs::{PermissionsExt as _, symlink};

use tempfile::TempDir;

use super::*;

/// A folder with repositories, and a cache for what the host keeps.
struct Place {
    folder: TempDir,
}

impl Place {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    /// The same with a repository in `repo` that has one commit.
    fn with_commit() -> Self {
        let place = Self::new();
        place.write("repo/kept.txt", "kept\n");
        place.write("repo/changed.txt", "before\n");
        place.write("repo/removed.txt", "removed\n");
        place.git("repo", &["init", "--quiet", "--initial-branch", "main"]);
        place.git("repo", &["add", "."]);
        place.git("repo", &["commit", "--quiet", "--message", "first"]);
        place
    }

    fn path(&self, path: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(path)
    }

    fn write(&self, path: &str, text: &str) {
        fs::create_dir_all(self.path(path).parent().unwrap()).unwrap();
        fs::write(self.path(path), text).unwrap();
    }

    /// Runs the real git as its user would, with the repository's configuration in force.
    fn git(&self, folder: &str, args: &[&str]) -> String {
        let output = Command::new("git")
            .args(["-c", "user.name=T", "-c", "user.email=t@example.org", "-c", "protocol.file.allow=always"])
            .args(args)
            .current_dir(self.path(folder))
            .env_remove("GIT_DIR")
            .env("HOME", self.path("."))
            .output()
            .unwrap();
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    fn repository(&self, folder: &str) -> Result<Repository, String> {
        Repository::find(&self.path(folder)).map_err(name)
    }

    fn changes(&self, folder: &str) -> Result<Vec<(String, char)>, String> {
        // Longer than an event has: tests run side by side.
        let until = Instant::now() + MAX_TIME;
        let changes = self.repository(folder)?.changed_paths(100, &self.path("cache"), until).map_err(name)?;
        assert!(changes.complete);
        Ok(changes.paths.into_iter().map(|change| (change.path, letter(change.kind))).collect())
    }

    fn added(&self, folder: &str, path: &str, most: u32) -> Result<Vec<u32>, String> {
        let until = Instant::now() + MAX_TIME;
        self.repository(folder)?.added_lines(path, most, &self.path("cache"), until).map_err(name)
    }
}

fn letter(kind: ChangeKind) -> char {
    match kind {
        ChangeKind::Added => 'A',
        ChangeKind::Modified => 'M',
        ChangeKind::Deleted => 'D',
        ChangeKind::Conflicted => 'U',
        ChangeKind::Untracked => '?',
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

fn paths(expected: &[(&str, char)]) -> Vec<(String, char)> {
    expected.iter().map(|&(path, kind)| (path.to_owned(), kind)).collect()
}

#[test]
fn branch_and_commit_are_what_git_says() {
    let place = Place::with_commit();
    let id = place.git("repo", &["rev-parse", "HEAD"]);
    let facts = |folder: &str| {
        let repository = place.repository(folder).unwrap();
        (repository.branch().unwrap(), repository.head().unwrap())
    };
    assert_eq!(facts("repo"), (Some("main".to_owned()), Some(id.clone())));
    place.git("repo", &["checkout", "--quiet", "-b", "feature/한국어"]);
    assert_eq!(facts("repo"), (Some("feature/한국어".to_owned()), Some(id.clone())));
    place.git("repo", &["pack-refs", "--all"]);
    assert!(!place.path("repo/.git/refs/heads/main").exists());
    assert_eq!(facts("repo"), (Some("feature/한국어".to_owned()), Some(id.clone())));
    place.git("repo", &["checkout", "--quiet", "--detach"]);
    assert_eq!(facts("repo"), (None, Some(id.clone())));
    place.git("repo", &["worktree", "add", "--quiet", "-b", "other", "../linked"]);
    assert_eq!(facts("linked"), (Some("other".to_owned()), Some(id)));
}

#[test]
fn changed_paths_are_what_git_says() {
    let place = Place::with_commit();
    assert_eq!(place.changes("repo"), Ok(Vec::new()));
    place.write("repo/changed.txt", "after\n");
    fs::remove_file(place.path("repo/removed.txt")).unwrap();
    place.write("repo/staged name.txt", "new\n");
    place.git("repo", &["add", "staged name.txt"]);
    place.write("repo/new/한국어.txt", "new\n");
    place.write("repo/ignored.log", "");
    place.write("repo/.gitignore", "*.log\n");
    place.write("repo/private.tmp", "");
    place.write("repo/.git/info/exclude", "*.tmp\n");
    place.write("repo/other/theirs.txt", "");
    place.git("repo/other", &["init", "--quiet"]);
    let expected =
        [("changed.txt", 'M'), ("removed.txt", 'D'), ("staged name.txt", 'A'), (".gitignore", '?'), ("new/", '?')];
    assert_eq!(place.changes("repo"), Ok(paths(&expected)));
    let few = place.repository("repo").unwrap();
    let few = few.changed_paths(2, &place.path("cache"), Instant::now() + MAX_TIME).map_err(name).unwrap();
    assert!(few.paths.len() == 2 && !few.complete);
}

#[test]
fn added_lines_are_those_that_the_commit_lacks() {
    let place = Place::new();
    let numbered = (1..=9).fold(String::new(), |text, number| text + &format!("line {number}\n"));
    for path in ["repo/code.rs", "repo/[a-z]*.rs", "repo/same.rs"] {
        place.write(path, &numbered);
    }
    place.git("repo", &["init", "--quiet"]);
    place.git("repo", &["add", "."]);
    place.git("repo", &["commit", "--quiet", "--message", "first"]);
    let changed =
        numbered.replace("line 2\n", "line 2\n@@ -1,1 +1,99 @@\n+++ b/x\n").replace("line 7\n", "") + "the end";
    place.write("repo/code.rs", &changed);
    place.write("repo/[a-z]*.rs", &numbered.replace("line 5", "line V"));
    place.write("repo/new.rs", &numbered);
    place.write("outside.rs", &numbered);
    let added = |path: &str, most| place.added("repo", path, most);
    assert_eq!(added("code.rs", 100), Ok(vec![3, 4, 11]));
    assert_eq!(added("code.rs", 2), Ok(vec![3, 4]));
    assert_eq!(added("[a-z]*.rs", 100), Ok(vec![5]), "a path is no pattern");
    for path in ["same.rs", "new.rs", "gone.rs"] {
        assert_eq!(added(path, 100), Ok(Vec::new()), "{path}");
    }
    for path in ["../outside.rs", "/etc/passwd", ""] {
        assert!(added(path, 100).is_err(), "{path}");
    }
}

#[test]
fn linked_work_trees_and_submodules_have_changes_of_their_own() {
    let place = Place::with_commit();
    place.git("repo", &["worktree", "add", "--quiet", "-b", "other", "../linked"]);
    place.write("linked/changed.txt", "after\n");
    assert_eq!(place.changes("linked"), Ok(paths(&[("changed.txt", 'M')])));
    assert_eq!(place.changes("repo"), Ok(Vec::new()));

    fs::create_dir(place.path("super")).unwrap();
    place.git("super", &["init", "--quiet"]);
    place.git("super", &["submodule", "--quiet", "add", "../repo", "sub"]);
    place.git("super", &["commit", "--quiet", "--message", "with a submodule"]);
    place.write("super/sub/kept.txt", "after\n");
    assert_eq!(place.changes("super/sub"), Ok(paths(&[("kept.txt", 'M')])));
    // What happens inside a submodule is not its parent's.
    assert_eq!(place.changes("super"), Ok(Vec::new()));
}

#[test]
fn a_conflict_is_one_change() {
    let place = Place::with_commit();
    place.git("repo", &["checkout", "--quiet", "-b", "one"]);
    place.write("repo/changed.txt", "one\n");
    place.git("repo", &["commit", "--quiet", "--all", "--message", "one"]);
    place.git("repo", &["checkout", "--quiet", "main"]);
    place.write("repo/changed.txt", "two\n");
    place.git("repo", &["commit", "--quiet", "--all", "--message", "two"]);
    // It ends with an error, as it should.
    let merge = ["-c", "user.name=T", "-c", "user.email=t@example.org", "merge", "one"];
    drop(Command::new("git").args(merge).current_dir(place.path("repo")).output().unwrap());
    assert_eq!(place.changes("repo"), Ok(paths(&[("changed.txt", 'U')])));
}

#[test]
fn before_the_first_commit_everything_is_new() {
    let place = Place::new();
    for format in ["sha1", "sha256"] {
        fs::create_dir(place.path(format)).unwrap();
        place.git(format, &["init", "--quiet", "--initial-branch", "main", "--object-format", format]);
        place.write(&format!("{format}/a.txt"), "a\n");
        place.git(format, &["add", "a.txt"]);
        let repository = place.repository(format).unwrap();
        assert_eq!(repository.branch().map_err(name), Ok(Some("main".to_owned())));
        assert_eq!(repository.head().map_err(name), Ok(None));
        assert_eq!(place.changes(format), Ok(paths(&[("a.txt", 'A')])));
        place.git(format, &["commit", "--quiet", "--message", "first"]);
        place.write(&format!("{format}/a.txt"), "b\n");
        assert_eq!(place.changes(format), Ok(paths(&[("a.txt", 'M')])), "{format}");
    }
}

#[test]
fn nothing_that_a_repository_configures_is_run() {
    let place = Place::with_commit();
    let marker = place.path("ran");
    let script = place.path("evil.sh");
    // It behaves as a monitor, a filter and a driver could, so that nothing fails before it runs.
    fs::write(&script, format!("#!/bin/sh\necho \"$0 $*\" >> {}\ncat\n", marker.display())).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let evil = script.to_str().unwrap();
    let hooks = place.path("repo/.git/hooks");
    fs::create_dir_all(&hooks).unwrap();
    for hook in ["post-index-change", "pre-commit", "post-checkout", "fsmonitor-watchman", "reference-transaction"] {
        fs::copy(&script, hooks.join(hook)).unwrap();
    }
    let more_hooks = place.path("more-hooks");
    fs::create_dir(&more_hooks).unwrap();
    fs::copy(&script, more_hooks.join("post-index-change")).unwrap();
    for (key, value) in [
        ("core.fsmonitor", evil),
        ("core.hooksPath", more_hooks.to_str().unwrap()),
        ("core.pager", evil),
        ("core.editor", evil),
        ("core.askPass", evil),
        ("core.sshCommand", evil),
        ("core.gitProxy", evil),
        ("core.alternateRefsCommand", evil),
        ("pager.diff", "true"),
        ("diff.external", evil),
        ("diff.evil.command", evil),
        ("diff.evil.textconv", evil),
        ("filter.evil.clean", evil),
        ("filter.evil.smudge", evil),
        ("filter.evil.process", evil),
        ("filter.evil.required", "true"),
        ("merge.evil.driver", evil),
        ("credential.helper", evil),
        ("uploadpack.packObjectsHook", evil),
        ("remote.origin.url", &format!("ext::{evil}")),
        ("remote.origin.promisor", "true"),
        ("remote.origin.uploadpack", evil),
        ("extensions.partialClone", "origin"),
        ("protocol.ext.allow", "always"),
        ("alias.diff", &format!("!{evil}")),
        ("alias.ls-files", &format!("!{evil}")),
        ("submodule.recurse", "true"),
        ("core.worktree", "/"),
        ("include.path", place.path("included").to_str().unwrap()),
    ] {
        place.git("repo", &["config", key, value]);
    }
    place.write("included", &format!("[core]\n\tfsmonitor = {evil}\n"));
    place.write("repo/.gitattributes", "* filter=evil diff=evil merge=evil\n");
    place.write("repo/.git/info/attributes", "* filter=evil diff=evil\n");
    // A change in the contents but not in the size: git has to look into the file, which is when filters run.
    place.write("repo/changed.txt", "after!\n");
    place.write("repo/kept.txt", "kept\n");

    let changes = place.changes("repo").unwrap();
    assert!(changes.contains(&("changed.txt".to_owned(), 'M')), "{changes:?}");
    assert!(!changes.iter().any(|(path, _)| path == "kept.txt"), "{changes:?}");
    assert_eq!(place.added("repo", "changed.txt", 9), Ok(vec![1]));
    let repository = place.repository("repo").unwrap();
    assert_eq!(repository.branch().map_err(name), Ok(Some("main".to_owned())));
    assert!(!marker.exists(), "{}", fs::read_to_string(&marker).unwrap());

    // The trap is real: with the repository's configuration in force, git falls into it.
    drop(Command::new("git").arg("status").current_dir(place.path("repo")).output().unwrap());
    assert!(marker.exists());
}

#[test]
fn nothing_is_written_into_the_repository() {
    let place = Place::with_commit();
    let index = place.path("repo/.git/index");
    let before = (fs::read(&index).unwrap(), fs::metadata(&index).unwrap().modified().unwrap());
    // Touched and unchanged: git would like to note that in the index.
    place.write("repo/kept.txt", "kept\n");
    assert_eq!(place.changes("repo"), Ok(Vec::new()));
    assert_eq!(place.added("repo", "kept.txt", 9), Ok(Vec::new()));
    assert_eq!((fs::read(&index).unwrap(), fs::metadata(&index).unwrap().modified().unwrap()), before);
    assert!(!place.path("repo/.git/index.lock").exists());
    let mut facade: Vec<_> =
        fs::read_dir(place.path("cache/git-sha1")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    facade.sort();
    assert_eq!(facade, ["HEAD", "config", "refs"]);
}

#[test]
fn what_could_make_it_wait_is_given_up_in_time() {
    for trap in ["repo/.git/index", "repo/.git/info/exclude", "repo/.git/objects/info/alternates"] {
        let place = Place::with_commit();
        drop(fs::remove_file(place.path(trap)));
        fs::create_dir_all(place.path(trap).parent().unwrap()).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, place.path(trap), rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        let began = Instant::now();
        drop(place.changes("repo"));
        drop(place.added("repo", "changed.txt", 9));
        assert!(began.elapsed() < MAX_TIME * 6, "{trap}: {:?}", began.elapsed());
    }
    for trap in ["repo/.git/HEAD", "repo/.git/packed-refs", "repo/.git/commondir"] {
        let place = Place::with_commit();
        fs::remove_file(place.path("repo/.git/refs/heads/main")).unwrap();
        drop(fs::remove_file(place.path(trap)));
        rustix::fs::mknodat(rustix::fs::CWD, place.path(trap), rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        assert!(place.repository("repo").and_then(|repository| repository.head().map_err(name)).is_err(), "{trap}");
    }
}

#[test]
fn names_that_lead_out_of_the_repository_are_not_followed() {
    let place = Place::with_commit();
    let id = place.git("repo", &["rev-parse", "HEAD"]);
    place.write("secret", &format!("{id}\n"));
    for head in [
        "ref: ../secret",
        "ref: refs/../../../secret",
        "ref: /etc/passwd",
        "ref: refs/heads/.hidden",
        "ref: refs//x",
        "ref: refs/heads/a\u{1b}[2J",
        "something else",
        "",
        &"a".repeat(39),
        &format!("ref: refs/heads/{}", "a".repeat(600)),
        &"x".repeat(MAX_NAME_FILE_BYTES + 1),
    ] {
        place.write("repo/.git/HEAD", head);
        let repository = place.repository("repo").unwrap();
        assert!(repository.branch().is_err() && repository.head().is_err(), "{head}");
    }
    place.write("repo/.git/HEAD", "ref: refs/heads/link\n");
    symlink(place.path("secret"), place.path("repo/.git/refs/heads/link")).unwrap();
    assert!(place.repository("repo").unwrap().head().ok().flatten().is_none());
    place.write("repo/.git/HEAD", "ref: refs/heads/circle\n");
    place.write("repo/.git/refs/heads/circle", "ref: refs/heads/circle\n");
    assert!(place.repository("repo").unwrap().head().is_err());
}

#[test]
fn what_is_no_repository_of_the_users_own_is_none() {
    let place = Place::new();
    fs::create_dir(place.path("plain")).unwrap();
    assert!(place.repository("plain").is_err_and(|why| why == "not-found"));
    fs::create_dir(place.path("linked")).unwrap();
    symlink(place.path("plain"), place.path("linked/.git")).unwrap();
    assert!(place.repository("linked").is_err_and(|why| why == "not-found"));
    for text in ["", "gitdir: ", "gitdir: /nonexistent\n", "gitdir: ../../../..\0\n", "nonsense"] {
        place.write("file/.git", text);
        let found = place.repository("file").map(|repository| repository.head().map_err(name));
        assert!(!matches!(found, Ok(Ok(_))), "{text}: {found:?}");
    }
    let foreign = Place::with_commit();
    // Only root can give a folder away, and only root would otherwise be let in.
    if std::os::unix::fs::chown(foreign.path("repo/.git"), Some(54321), None).is_ok() {
        assert!(foreign.repository("repo").is_err());
    }
}
