//! Which commands are approved. What a shell really does with them is checked by `tests/oracle.rs`.

use super::*;

/// Files of the repository `/p`; everything else is absent.
fn kind(path: &str) -> Option<Kind> {
    match path {
        "" | "src" | "my folder" | "sub" | "secrets" => Some(Kind::Folder),
        "src/a.ts" | "src/b test.ts" | "a.txt" | "sub/c.ts" | "src/문서.md" => Some(Kind::File),
        ".env" | ".env.local" | ".envrc" | "sub/.envrc" | "secrets/k" | "id_rsa" | ".npmrc" | "prod.pem" => {
            Some(Kind::File)
        }
        _ => None,
    }
}

fn judge(text: &str, cwd: &str, project_code: bool) -> bool {
    let folders = Folders::new("/p", cwd);
    Command::parse(text).is_some_and(|command| approves(&command, folders.as_ref(), project_code, &kind).is_some())
}

fn assert_all(commands: &[&str], expected: bool) {
    for text in commands {
        assert_eq!(judge(text, "/p", false), expected, "{text:?}");
    }
}

const QUOTED: &str =
    "git commit -m \"$(cat <<'EOF'\nfeat: parser\n\nRun `make` && enjoy $HOME; rm -rf / is only text.\nEOF\n)\"";

#[test]
fn commands_that_only_read_are_approved() {
    assert_all(
        &[
            "git status",
            "  git status  ",
            "git  status -sb",
            "git status --porcelain=v2 --branch",
            "git log -1",
            "git log --oneline -n 5",
            "git log --max-count=3 --format='%h %s'",
            "git log --grep='a; b | c'",
            "git log -1 @{u}",
            "git log main..feature -- src/a.ts",
            "git diff",
            "git diff --cached --stat",
            "git diff HEAD~1 -- src/a.ts",
            "git diff main...HEAD",
            "git diff -U5 HEAD^",
            "git show HEAD:src/a.ts",
            "git show HEAD^",
            "git show stash@{0}",
            "git show 'HEAD^{tree}'",
            "git branch",
            "git branch --list",
            "git branch --list 'feat/*'",
            "git branch -vv",
            "git branch --show-current",
            "git branch --contains=HEAD~3",
            "ls",
            "ls -la",
            "ls \"my folder\"",
            "ls src",
            "ls /p/src",
            "gh pr view 1",
            "gh pr view",
            "gh issue list",
            "gh pr list --state open --limit 5",
            "gh pr view 7 --json title,body",
            "gh pr list -R owner/name",
            "cat src/a.ts",
            "cat \"src/b test.ts\"",
            "cat -- src/a.ts",
            "cat ./src/a.ts a.txt",
            "cat src/문서.md",
            "head -n 5 src/a.ts",
            "head -n5 src/a.ts",
            "head -5 src/a.ts",
            "tail -n +2 src/a.ts",
            "sed -n 1,5p src/a.ts",
            "sed -n '1,5p' src/a.ts",
            "rg -n v src/a.ts",
            "rg -- v src/a.ts",
            "rg 'a|b' src/a.ts a.txt",
        ],
        true,
    );
}

#[test]
fn anything_beside_the_one_command_is_not_understood() {
    assert_all(
        &[
            "",
            " ",
            "git status && rm -rf /",
            "git status; ls",
            "git status;",
            "git status | cat",
            "git status &",
            "git status > x",
            "git status >x 2>&1",
            "git status 2>/dev/null",
            "git status < x",
            "git status <<< x",
            "git status\nrm x",
            "git status\r\nrm x",
            "git status\trm",
            "git status\n",
            "git log \"$(id)\"",
            "git log `id`",
            "git log \"`id`\"",
            "git log $(id)",
            "git log $((1+1))",
            "git diff <(id) src/a.ts",
            "cat src/a.ts || id",
            "ls $HOME",
            "ls \"$HOME\"",
            "ls ${HOME}",
            "ls {a,b}",
            "ls {1..3}",
            "ls *.ts",
            "ls src/?.ts",
            "ls [ab]",
            "ls ~/x",
            "ls ~",
            "cat a.txt:~",
            "(git status)",
            "{ git status; }",
            "! git status",
            "time git status",
            "if git status; then ls; fi",
            "git status # note",
            "git status #",
            "git status \\\n",
            "git\\ status",
            "git st\\atus",
            "git log $'-1'",
            "git log $\"x\"",
            "git log \"a\\\"b\"",
            "git log --grep \"!x\"",
            "git log !x",
            "git log ^main",
            "git log a^{b,c}",
            "git log @{a..b}",
            "git log =ls",
            "ls 'a",
            "ls \"a",
            "f() { git status; }",
            "coproc git status",
            "[[ -f a ]]",
            "git status |& cat",
            "git log 1>&2",
            "git log --grep=a\u{7f}",
            "git 'log\nx'",
        ],
        false,
    );
}

#[test]
fn what_comes_before_the_program_is_never_looked_through() {
    assert_all(
        &[
            "GIT_PAGER=x git log",
            "A=1 git status",
            "PATH=/x:$PATH git status",
            "sudo git status",
            "env git status",
            "command git status",
            "exec git status",
            "nice git status",
            "xargs git status",
            "bash -c 'git status'",
            "eval git status",
            "git -C . status",
            "git -c core.fsmonitor=x status",
            "git --git-dir=/x status",
            "git --exec-path=/x status",
            "git -p log",
            "cd sub && git status",
            "npx tsc --noEmit",
            "./git status",
            "/usr/bin/git status",
            "Git status",
            "gіt status",
            "сat src/a.ts",
            "git ѕtatus",
            ". src/a.ts",
            "source src/a.ts",
        ],
        false,
    );
}

#[test]
fn words_and_options_are_compared_whole() {
    assert_all(
        &[
            "git statusx",
            "git status-x",
            "git difftool --extcmd=sh -y",
            "git difftool -x sh",
            "git fetch-pack --exec=x .",
            "git fetch",
            "git fetch origin",
            "git fetch --upload-pack=touch origin",
            "git fetch --upload-pac='touch x;' .",
            "git log-x",
            "npm run build-evil",
            "lsof",
            "tscx",
            "gh pr viewx",
            "gh pr create",
            "gh api x",
            "gh alias list",
            "git diff --output=/x",
            "git diff --output /x",
            "git diff \"--output=x\"",
            "git diff --out'put'=x",
            "git diff --outpu=x",
            "git diff --out=x",
            "git log --output x",
            "git diff --ext-diff",
            "git diff --ext-dif",
            "git show --textconv HEAD",
            "git diff --no-index /etc/passwd /dev/null",
            "git diff --no-ind a b",
            "git diff -O/x",
            "git log --show-signature",
            "git log --format=%G?",
            "git log --pretty='%GK'",
            "git log '--format=%(trailers)'",
            "git log --grep",
            "git log --exec=x",
            "git branch -D main",
            "git branch new-name",
            "git branch -v new-name",
            "git branch -m a b",
            "git branch --edit-description",
            "git branch -l x",
            "git branch -f a b",
            "git branch -u x",
            "git show --ext-diff",
            "git show -O x",
            "git status --no-optional-locks",
            "git remote -v",
            "git commit -m x",
            "git tag",
            "git tag v1",
            "git push",
            "git stash",
            "git config -l",
            "git ls-files",
            "git blame a",
            "cat",
            "cat -n src/a.ts",
            "cat -",
            "cat -A src/a.ts",
            "head src/a.ts -c5",
            "head -c 5 src/a.ts",
            "tail -f src/a.ts",
            "tail --follow src/a.ts",
            "tail -n 5 -f src/a.ts",
            "sed -i s/a/b/ src/a.ts",
            "sed -n '1,5p;w x' src/a.ts",
            "sed -n '1e id' src/a.ts",
            "sed -n 1,5p",
            "sed -n 1,5w src/a.ts",
            "sed -n -i 1,5p src/a.ts",
            "sed 1,5p src/a.ts",
            "sed -n -f src/a.ts a.txt",
            "rg v",
            "rg v src",
            "rg --pre=sh v src/a.ts",
            "rg --pre sh v src/a.ts",
            "rg -e v src/a.ts",
            "rg -nF v src/a.ts",
            "rg -f src/a.ts a.txt",
            "rg -z v src/a.ts",
            "rg --hostname-bin=x v a.txt",
            "rg -- -v src/a.ts",
            "gh pr view 1 --web",
            "gh pr view -w",
            "gh pr view 1 --jq env",
            "gh pr view 1 -q env",
            "gh pr view https://x.test/p",
            "gh pr view //x",
            "gh pr list -R x.test/owner/name",
            "gh pr list --web",
            "gh issue view 1 -R https://x/y",
            "ls --hyperlink",
            "ls -la --dired",
            "rm -rf x",
            "make x",
            "find .",
            "grep -r x .",
            "echo x",
            "true",
        ],
        false,
    );
}

#[test]
fn the_projects_own_code_runs_only_where_the_user_said_so() {
    for text in [
        "npm run lint",
        "npm run build",
        "pnpm lint",
        "pnpm run typecheck",
        "yarn build",
        "tsc",
        "tsc --noEmit",
        "eslint src",
        "eslint .",
        "prettier --check src/a.ts",
        "cargo check --workspace",
        "cargo clippy --all-targets",
        "cargo build --release",
        "vitest run src/a.ts",
        "npm test -- --run src/a.ts",
        "yarn test --run src/a.ts",
        "node --test src/a.ts",
    ] {
        assert!(!judge(text, "/p", false), "{text}");
        assert!(judge(text, "/p", true), "{text}");
    }
    for text in [
        "npm run build --prefix /x/evil",
        "npm run lint:fix",
        "npm run deploy",
        "npm test",
        "npm install",
        "npm run lint -- --fix",
        "yarn checkout",
        "yarn check",
        "pnpm run deploy",
        "cargo buildx",
        "cargo build --manifest-path /x/evil/Cargo.toml",
        "cargo clippy --fix",
        "cargo --config x build",
        "cargo build --config x",
        "cargo build --target-dir /x",
        "cargo test",
        "cargo run",
        "cargo +nightly build",
        "tsc --outDir /x",
        "tsc -p /x",
        "tsc --build --clean",
        "eslint -c /x/evil.js src",
        "eslint --fix src",
        "eslint --rulesdir /x src",
        "eslint /x",
        "prettier --write .",
        "prettier --plugin=x a.txt",
        "prettier --config x a.txt",
        "vitest run",
        "vitest run src/a.ts --config x",
        "vitest run ../x.ts",
        "node src/a.ts",
        "node --test src/a.ts a.txt",
        "node --test --import=x src/a.ts",
        "npx vitest run src/a.ts",
        "rm -rf x",
    ] {
        assert!(!judge(text, "/p", true), "{text}");
    }
}

#[test]
fn only_plain_files_of_the_repository_that_keep_no_secret_are_shown() {
    assert_all(
        &[
            "cat .env",
            "cat .env.local",
            "cat .ENV",
            "cat .envrc",
            "cat sub/.envrc",
            "cat secrets/k",
            "cat Secrets/k",
            "cat .git/config",
            "cat .GIT/config",
            "cat ./.git/config",
            "cat id_rsa",
            "cat .npmrc",
            "cat prod.pem",
            "cat prod.PEM",
            "cat .\u{17f}sh/x",
            "cat src/missing.ts",
            "cat src",
            "cat src/",
            "cat ../x",
            "cat /etc/passwd",
            "cat /p/../etc/passwd",
            "cat src/../a.txt",
            "cat //etc/passwd",
            "cat /pp/a.txt",
            "cat link.txt",
            "ls ..",
            "ls ../..",
            "ls /",
            "ls /home",
            "ls -la /home/u/.ssh",
            "ls .ssh",
            "ls secrets",
            "ls link",
            "head -n 5 .env",
            "rg x .env",
            "sed -n 1p .env",
            "git show HEAD:.env",
            "git show HEAD:secrets/k",
            "git diff -- .env",
            "git diff a.txt ../x",
            "git diff /etc/passwd a.txt",
            "git diff a.txt ..",
            "git log -- /etc/passwd",
            "git log -- ../x",
            "git diff -- ':(top).env'",
            "git diff :/x",
            "git show HEAD:../.env",
            "git diff src/../../x a.txt",
            "git show :.env",
            "git log -- '*.pem'",
        ],
        false,
    );
}

#[test]
fn paths_are_read_from_the_folder_worked_in() {
    for (text, cwd, approved) in [
        ("cat ../a.txt", "/p/sub", true),
        ("cat c.ts", "/p/sub", true),
        ("cat a.txt", "/p/sub", false),
        ("cat ../../x", "/p/sub", false),
        ("cat /p/a.txt", "/p/sub", true),
        ("git diff -- ../a.txt", "/p/sub", true),
        ("git diff -- ../../a.txt", "/p/sub", false),
        ("cat a.txt", "/elsewhere", false),
        ("cat a.txt", "/pp", false),
        ("cat ../a.txt", "/p/link", false),
        ("cat a.txt", "/p/sub/..", false),
        ("git status", "/elsewhere", true),
        ("git diff a b", "/elsewhere", false),
        ("ls", "/elsewhere", true),
    ] {
        assert_eq!(judge(text, cwd, false), approved, "{text} in {cwd}");
    }
}

#[test]
fn what_the_eye_does_not_see_is_not_understood() {
    for hidden in [
        '\u{a0}',
        '\u{2003}',
        '\u{3000}',
        '\u{2028}',
        '\u{85}',
        '\u{b}',
        '\u{c}',
        '\u{0}',
        '\u{1b}',
        '\t',
        '\u{200b}',
        '\u{200d}',
        '\u{202e}',
        '\u{2066}',
        '\u{feff}',
        '\u{ad}',
        '\u{e0041}',
        '\u{3164}',
        '\u{1}',
    ] {
        for text in [
            format!("git{hidden}status"),
            format!("git status{hidden}-s"),
            format!("git status {hidden}"),
            format!("{hidden}git status"),
            format!("cat src/a.ts{hidden}"),
            format!("git log --grep='{hidden}'"),
            format!("ls{hidden}rm -rf x"),
            QUOTED.replace("feat", &hidden.to_string()),
        ] {
            assert!(!judge(&text, "/p", false), "{text:?}");
        }
    }
}

#[test]
fn a_commit_message_in_a_here_document_is_text_and_nothing_else_is() {
    assert_all(
        &[
            QUOTED,
            "git commit -m \"$(cat <<'EOF'\nfeat(parser): don't panic (again)\nEOF\n)\"",
            "git commit -m \"$(cat <<'EOF'\nx\nEOF\n\n)\"",
            "git commit --message \"$(cat <<'END_1'\nx\nEOF\nEND_1\n)\"",
            "git commit -F - <<'EOF'\nRun `make` && $HOME\nEOF",
            "git commit -F - <<EOF\nplain words\nEOF\n",
            "git tag -a v1.2 -F - <<'EOF'\nx\nEOF",
        ],
        true,
    );
    let quoted = |tail: &str| format!("{QUOTED}{tail}");
    for text in [
        quoted("; git push"),
        quoted("\ngit push"),
        quoted(" && x"),
        quoted(" > x"),
        quoted(" --amend"),
        quoted("x"),
        quoted("$(id)"),
    ] {
        assert!(!judge(&text, "/p", false), "{text:?}");
    }
    assert_all(
        &[
            "git commit -F - <<EOF\nmsg\nEOF\nrm -rf /x",
            "git commit -m x; touch /x <<EOF\nx\nEOF",
            "git commit -F - <<EOF\n$(touch /x)\nEOF",
            "git commit -F - <<EOF\n`touch /x`\nEOF",
            "git commit -F - <<EOF\n\\$x\nEOF",
            "git commit -F - <<'EOF' && touch /x\nmsg\nEOF",
            "git commit -F - <<'EOF' > /x\nmsg\nEOF",
            "git commit -F - <<'EOF' <<'E2'\nmsg\nEOF\nx\nE2",
            "git commit -F - <<-'EOF'\nmsg\nEOF",
            "git commit -F - <<'EOF'\nno end",
            "git commit -F - <<'EOF'\nmsg\nEOF x",
            "git commit -F - <<\"EOF\"\nmsg\nEOF",
            "git commit -F - <<E'O'F\nmsg\nEOF",
            "git commit <<'EOF'\nmsg\nEOF -m x",
            "git commit-graph write <<E\nE",
            "git tag -d v1 <<EOF\nEOF",
            "git commit -m \"no heredoc\nline2\"",
            "git commit -m 'x'",
            "git commit --amend -F - <<'EOF'\nx\nEOF",
            "git commit -F x <<'EOF'\nx\nEOF",
            "git commit -n -F - <<'EOF'\nx\nEOF",
            "git -c x=y commit -F - <<'EOF'\nx\nEOF",
            "git commit --fixup=x -F - <<'EOF'\nx\nEOF",
            "cat > x <<EOF\na\nEOF",
            "cat <<'EOF'\na\nEOF",
            "git status <<'EOF'\na\nEOF",
            "git log --grep \"$(cat <<'EOF'\nx\nEOF\n)\"",
            "git commit -m \"$(cat <<EOF\nx\nEOF\n)\"",
            "git commit -m \"$(cat <<'EOF'\nx\nEOF\nid)\"",
            "git commit -m \"$(cat <<'EOF'; id\nx\nEOF\n)\"",
            "git commit -m \"$(cat - <<'EOF'\nx\nEOF\n)\"",
            "git commit -m \"x $(cat <<'EOF'\nx\nEOF\n)\"",
            "git commit -m \"$(cat <<'EOF'\nx\nEOF\n) $(id)\"",
            "git commit -m $(cat <<'EOF'\nx\nEOF\n)",
            // What a shell that ends a substitution at the first parenthesis would run.
            "git commit -m \"$(cat <<'EOF'\nx)$(id)\nEOF\n)\"",
            "git commit -m \"$(cat <<'EOF'\nx)\"; id; \"\nEOF\n)\"",
            "git commit -m \"$(cat <<'EOF'\nit's `id`\nEOF\n)\"",
        ],
        false,
    );
}

#[test]
fn long_and_deeply_nested_commands_are_not_looked_at() {
    assert!(!judge(&format!("cat {}", "src/a.ts ".repeat(2_000)), "/p", false));
    for text in ["$(", "(", "{ ", "`", "\"$(", "<(", "${a:-", "[[ ", "$((", "if "] {
        for begin in ["", "git status $", "git commit -m \"$(cat <<'EOF'\n"] {
            assert!(!judge(&format!("{begin}{}", text.repeat(8_000 / text.len())), "/p", false), "{text}");
        }
    }
}

fn concerned(settings: &str, text: &str) -> bool {
    let mut rules = UserRules::default();
    rules.add(settings).expect("settings that are understood");
    let command = Command::parse(text).expect("a command");
    let folders = Folders::new("/p", "/p");
    let approval = approves(&command, folders.as_ref(), false, &kind).expect("approved");
    rules.concern(text, &command, &approval, folders.as_ref())
}

#[test]
fn a_rule_that_may_be_about_the_command_counts() {
    for (rule, text, counts) in [
        ("Bash", "git status", true),
        ("Bash(*)", "git status", true),
        ("Bash()", "git status", false),
        ("*", "git status", true),
        ("Bash(git status)", "git status", true),
        ("Bash(git status)", "git  status", true),
        ("Bash(git status)", "git 'status'", true),
        ("Bash(git status)", "git status -s", false),
        ("Bash(git status:*)", "git status -s", true),
        ("Bash(git:*)", "git status", true),
        ("Bash(git log *)", "git log -1", true),
        ("Bash(git log *)", "git log", true),
        ("Bash(git lo*)", "git log", true),
        ("Bash(git * main)", "git show main", true),
        ("Bash(git * main)", "git show main~1", false),
        ("Bash(* status)", "git status", true),
        ("Bash(*stat*)", "git status", true),
        ("Bash(git push:*)", "git status", false),
        ("Bash(rm *)", "git status", false),
        ("Edit", "git status", false),
        ("BashOutput", "git status", false),
        ("Read", "cat src/a.ts", true),
        ("Read(src/**)", "cat src/a.ts", true),
        ("Read(./src/a.ts)", "head -n 1 src/a.ts", true),
        ("Read(//p/src/**)", "cat src/a.ts", true),
        ("Read(~/p/src)", "cat src/a.ts", true),
        ("Read(*.ts)", "cat src/a.ts", true),
        ("Read(lib/**)", "cat src/a.ts", false),
        ("Read(*.rs)", "cat src/a.ts", false),
        ("Read(src/**)", "git show HEAD:src/a.ts", true),
        ("Read(src/**)", "git diff", true),
    ] {
        for settings in [
            serde_json::json!({"permissions": {"ask": [rule], "allow": ["Bash"]}}),
            serde_json::json!({"permissions": {"deny": ["Edit", rule]}}),
            serde_json::json!({"ask": [rule]}),
            serde_json::json!({"deny": [rule], "permissions": {"ask": []}}),
        ] {
            assert_eq!(concerned(&settings.to_string(), text), counts, "{settings} for {text}");
        }
    }
    assert!(!concerned(r#"{"permissions": {"allow": ["Bash(git status)"]}}"#, "git status"));
}

#[test]
fn settings_that_are_not_understood_are_an_error() {
    for settings in [
        "",
        "[]",
        "null",
        "{",
        "{\"permissions\": {\"ask\": [\"Bash\"]},",
        "// note\n{}",
        "{\"permissions\": []}",
        "{\"ask\": \"Bash\"}",
        "{\"permissions\": {\"deny\": [{\"tool\": \"Bash\"}]}}",
        "{\"ask\": [\"Bash(git status\"]}",
    ] {
        assert_eq!(UserRules::default().add(settings), Err(super::user_rules::NotUnderstood), "{settings}");
    }
}

#[test]
fn codex_rules_that_hold_something_back_are_not_overruled() {
    assert!(forbids_approval("prefix_rule(pattern = [\"git\"], decision = \"prompt\")"));
    assert!(forbids_approval("prefix_rule(pattern = [\"git\"], decision = \"forbidden\")"));
    assert!(!forbids_approval("prefix_rule(pattern = [\"git\", \"status\"], decision = \"allow\")"));
}
