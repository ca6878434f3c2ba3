//! Real shells and real programs as judges over what is approved.
//!
//! 120,000 commands are grown around the safe list by a generator with a fixed seed: pieces are put in, left out, exchanged.
//! Every one that is approved is given to bash with no program to be found: it must ask for one program, the approved one, with
//! exactly the words that were understood, and for nothing else. Those that begin with a program of this machine are then run
//! for real in a scratch repository, and nothing may have changed afterwards.
#![cfg(unix)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Command as Process, Stdio};

use permission_handler::logic::{Command, Folders, Kind, approves};
use tempfile::TempDir;

const COMMANDS: usize = 120_000;

/// Commands to begin with.
const SEEDS: &[&str] = &[
    "git status",
    "git status -sb",
    "git diff",
    "git diff HEAD~1 -- src/a.ts",
    "git diff --cached --stat",
    "git log -1",
    "git log --oneline -n 5 main",
    "git log --grep='a; b | c' -p",
    "git log --format=%h --since=yesterday",
    "git show HEAD:src/a.ts",
    "git show HEAD^",
    "git log -1 @{u}",
    "git branch",
    "git branch --list 'f*'",
    "git branch -vv --contains=HEAD",
    "git commit -m \"$(cat <<'EOF'\nfeat: parser\n\nit's $HOME\nEOF\n)\"",
    "git commit -F - <<'EOF'\nfeat(x): `id`\nEOF\n",
    "git commit -F - <<EOF\nplain\nEOF",
    "git tag -a v1 -F - <<'EOF'\nx\nEOF",
    "ls",
    "ls -la \"my folder\"",
    "cat src/a.ts",
    "cat -- 'src/a.ts' a.txt",
    "head -n 5 src/a.ts",
    "tail -n +2 a.txt",
    "sed -n '1,5p' src/a.ts",
    "rg -n v src/a.ts",
    "gh pr view 1 --json title",
    "gh pr list --state open",
];

/// What is put into them.
const PIECES: &[&str] = &[
    " ",
    "  ",
    "\t",
    "\n",
    "\r",
    ";",
    "&",
    "&&",
    "|",
    "||",
    "|&",
    ">",
    ">>",
    "<",
    "<<",
    "<<<",
    ">x",
    "2>&1",
    ">&2",
    "<(",
    ">(",
    "(",
    ")",
    "{",
    "}",
    "{a,b}",
    "{1..3}",
    "[",
    "]",
    "[ab]",
    "*",
    "?",
    "~",
    "~/",
    "~+",
    "!",
    "!!",
    "#",
    " # x",
    "$",
    "$(",
    "$(id)",
    "`",
    "`id`",
    "$((1))",
    "${HOME}",
    "$HOME",
    "$'x'",
    "$\"x\"",
    "'",
    "\"",
    "''",
    "\"\"",
    "\\",
    "\\\n",
    "\\;",
    "^",
    "%",
    "=",
    "+",
    ":",
    ",",
    "@",
    "-",
    "--",
    "/",
    "..",
    "../",
    ".",
    "id",
    "touch pwned",
    "; touch pwned",
    "\ntouch pwned\n",
    " && touch pwned",
    "$(touch pwned)",
    "`touch pwned`",
    " > pwned",
    "--output=pwned",
    " --output pwned",
    " --outp=pwned",
    " --ext-diff",
    " --textconv",
    " --no-index",
    " -O pwned",
    " --upload-pack=touch",
    " --extcmd=touch",
    " -x touch",
    " -D",
    " -d",
    " -m x",
    " -f",
    " -i",
    " -n",
    " -p",
    " -e",
    " -w",
    " --web",
    " --pre=touch",
    " -c",
    " --amend",
    " -F pwned",
    " new-name",
    " A=1",
    "A=1 ",
    "env ",
    "sudo ",
    "command ",
    "exec ",
    "! ",
    "time ",
    "if ",
    "then ",
    "fi",
    "do ",
    "in ",
    "case ",
    "function ",
    "EOF",
    "\nEOF\n",
    "\nEOF",
    "'EOF'",
    "<<'EOF'\n",
    ")\"",
    "\u{a0}",
    "\u{3000}",
    "\u{200b}",
    "\u{2028}",
    "\u{b}",
    "\u{0}",
    "\u{1b}",
    "é",
    "문",
    "/etc/passwd",
    " a.txt",
    " src",
    " .env",
    " HEAD",
    " main",
    " -",
    " --grep=x",
    " --format=%G?",
    " --show-signature",
    "1",
    "5",
    "p",
    "w pwned",
    "e",
    "@{",
    "^{",
    "{}",
    "=ls",
];

struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).expect("31 bits") % limit
    }

    fn command(&mut self) -> String {
        let mut chars: Vec<char> = SEEDS[self.below(SEEDS.len())].chars().collect();
        for _ in 0..self.below(4) {
            let at = self.below(chars.len() + 1);
            match self.below(5) {
                0 if !chars.is_empty() => {
                    let to = (at + 1 + self.below(4)).min(chars.len());
                    chars.drain(at.min(to)..to);
                }
                1 => {
                    let other: Vec<char> = SEEDS[self.below(SEEDS.len())].chars().collect();
                    let from = self.below(other.len());
                    chars.splice(at..at, other[from..].iter().copied());
                }
                _ => {
                    let piece = PIECES[self.below(PIECES.len())];
                    chars.splice(at..at, piece.chars());
                }
            }
        }
        chars.into_iter().collect()
    }
}

/// A repository with a commit, and a change that is not in it.
fn repository() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    for (name, text) in [("src/a.ts", "v\n"), ("a.txt", "x\ny\n"), ("my folder/x.txt", "x\n"), (".env", "K=1\n")] {
        fs::create_dir_all(path.join(name).parent().expect("a parent")).expect("folders");
        fs::write(path.join(name), text).expect("a file");
    }
    for arguments in [
        &["init", "-q", "-b", "main"][..],
        &["-c", "user.name=t", "-c", "user.email=t@t", "add", "."],
        &["-c", "user.name=t", "-c", "user.email=t@t", "commit", "-q", "-m", "one"],
    ] {
        let done = Process::new("git").args(arguments).current_dir(path).status().expect("git starts");
        assert!(done.success());
    }
    fs::write(path.join("a.txt"), "changed\n").expect("a file");
    folder
}

fn kind(root: &Path, path: &str) -> Option<Kind> {
    let about = fs::symlink_metadata(root.join(path)).ok()?;
    if about.is_dir() { Some(Kind::Folder) } else { about.is_file().then_some(Kind::File) }
}

/// Every file below a folder with its content, except those that git rewrites when it only looks.
fn contents(folder: &Path, into: &mut BTreeMap<String, Vec<u8>>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            contents(&path, into);
        } else if !path.ends_with(".git/index") {
            into.insert(path.to_string_lossy().into_owned(), fs::read(&path).expect("a file"));
        }
    }
}

/// The commands among the generated ones that are approved, each once.
fn approved(root: &Path) -> BTreeMap<String, Command> {
    let name = root.to_string_lossy();
    let folders = Folders::new(&name, &name).expect("folders");
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut approved = BTreeMap::new();
    for _ in 0..COMMANDS {
        let text = random.command();
        let Some(command) = Command::parse(&text) else { continue };
        if approves(&command, Some(&folders), false, &|path| kind(root, path)).is_some() {
            approved.insert(text, command);
        }
    }
    approved
}

/// What bash asks for when it is given each command, as lists of words.
fn bash_asks_for(folder: &Path, commands: &[&String]) -> Vec<Vec<Vec<String>>> {
    // Nothing can be found, so that every program that bash would start ends in the handler; the substituted `cat` has to
    // hand its text on.
    const SCRIPT: &str = r#"
        PATH=/nonexistent
        command_not_found_handle() {
            printf '%s\0' "$#" "$@" >&3
            if [ "$#" = 1 ] && [ "$1" = cat ]; then IFS= read -r -d '' text; printf '%s' "$text"; fi
        }
        while IFS= read -r -d '' command <&4; do
            eval "$command" </dev/null
            printf 'end\0' >&3
        done 3>&1 4<&0 >/dev/null 2>&1
    "#;
    let mut bash = Process::new("bash")
        .args(["--norc", "--noprofile", "-c", SCRIPT])
        .current_dir(folder)
        .env_clear()
        .env("HOME", folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("bash starts");
    let mut stdin = bash.stdin.take().expect("a pipe");
    let all: String = commands.iter().flat_map(|command| [command.as_str(), "\0"]).collect();
    let writer = std::thread::spawn(move || stdin.write_all(all.as_bytes()));
    let mut out = String::new();
    bash.stdout.take().expect("a pipe").read_to_string(&mut out).expect("UTF-8");
    writer.join().expect("no panic").expect("all is written");
    assert!(bash.wait().expect("an end").success());

    let mut fields = out.split_terminator('\0');
    let mut asked = Vec::new();
    let mut current = Vec::new();
    while let Some(field) = fields.next() {
        if field == "end" {
            asked.push(std::mem::take(&mut current));
        } else {
            let count: usize = field.parse().expect("a count");
            current.push(fields.by_ref().take(count).map(str::to_owned).collect());
        }
    }
    asked
}

#[test]
fn an_approved_command_starts_what_was_understood_and_nothing_else() {
    let repository = repository();
    let root = repository.path().canonicalize().expect("a path");
    let approved = approved(&root);
    assert!(approved.len() > 500, "the generator stays close to the safe list: {}", approved.len());
    let mut before = BTreeMap::new();
    contents(&root, &mut before);

    let texts: Vec<&String> = approved.keys().collect();
    let asked = bash_asks_for(&root, &texts);
    assert_eq!(asked.len(), texts.len());
    for (text, asked) in texts.iter().zip(asked) {
        let command = &approved[*text];
        let mut expected = Vec::new();
        let mut words = command.words.clone();
        if let Some(message) = &command.message
            && let Some(last) = words.last_mut().filter(|word| word.starts_with(char::is_control))
        {
            expected.push(vec!["cat".to_owned()]);
            message.trim_end_matches('\n').clone_into(last);
        }
        expected.push(words);
        assert_eq!(asked, expected, "{text:?}");
    }
    let mut after = BTreeMap::new();
    contents(&root, &mut after);
    assert_eq!(before, after);
}

#[test]
fn an_approved_command_changes_nothing() {
    let repository = repository();
    let root = repository.path().canonicalize().expect("a path");
    let here = ["git", "ls", "cat", "head", "tail", "sed"];
    // Each way of calling a program once: what differs only in texts and numbers does the same.
    let mut shapes = BTreeSet::new();
    let commands: Vec<_> = approved(&root)
        .into_values()
        .filter(|command| command.message.is_none() && here.contains(&command.words[0].as_str()))
        .filter(|command| {
            let shape: Vec<_> =
                command.words.iter().take(6).map(|word| word.chars().take(10).collect::<String>()).collect();
            shapes.insert(shape)
        })
        .take(1_500)
        .collect();
    assert!(commands.len() > 200, "{}", commands.len());
    fs::write(root.join(".git/trap"), "#!/bin/sh\ntouch \"$0-was-run\"\n").expect("a file");
    let trap = root.join(".git/trap").to_string_lossy().into_owned();

    let mut before = BTreeMap::new();
    contents(&root, &mut before);
    for command in &commands {
        Process::new(&command.words[0])
            .args(&command.words[1..])
            .current_dir(&root)
            .env("HOME", "/nonexistent")
            .env("GIT_CONFIG_COUNT", "2")
            .env("GIT_CONFIG_KEY_0", "gpg.program")
            .env("GIT_CONFIG_VALUE_0", &trap)
            .env("GIT_CONFIG_KEY_1", "core.pager")
            .env("GIT_CONFIG_VALUE_1", &trap)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .expect("it starts");
    }
    let mut after = BTreeMap::new();
    contents(&root, &mut after);
    let changed: Vec<_> =
        after.iter().filter(|(path, bytes)| before.get(*path) != Some(bytes)).map(|(path, _)| path).collect();
    assert!(changed.is_empty() && before.len() == after.len(), "{changed:?}");
}
