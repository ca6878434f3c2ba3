//! What tools teach: paths that are used, facts about the surroundings in what a command printed, and commands that work.

use omc_state::{
    Timestamp,
    project_memory::{Command, PathKind, ProjectMemory},
};

/// How much of an output is looked at, in bytes, at each of its ends: that is where versions and errors are.
const MAX_OUTPUT_BYTES: usize = 64 * 1024;

/// Longest name of a module or variable, in bytes.
const MAX_NAME_BYTES: usize = 100;

/// Longest command line that is taken apart, in bytes; a longer one is a script.
const MAX_LINE_BYTES: usize = 4 * 1024;

/// Folders whose files say nothing about the work: generated, fetched or ours.
const IGNORED: &[&str] =
    &["node_modules", ".git", ".omc", "dist", "build", ".cache", ".next", ".nuxt", "coverage", ".DS_Store"];

/// Commands that build or test, by their first words.
const KNOWN: &[(&str, Command)] = &[
    ("npm run build", Command::Build),
    ("pnpm build", Command::Build),
    ("pnpm run build", Command::Build),
    ("yarn build", Command::Build),
    ("yarn run build", Command::Build),
    ("bun run build", Command::Build),
    ("cargo build", Command::Build),
    ("go build", Command::Build),
    ("tsc", Command::Build),
    ("make build", Command::Build),
    ("mvn package", Command::Build),
    ("gradle build", Command::Build),
    ("./gradlew build", Command::Build),
    ("npm test", Command::Test),
    ("npm run test", Command::Test),
    ("pnpm test", Command::Test),
    ("pnpm run test", Command::Test),
    ("yarn test", Command::Test),
    ("bun test", Command::Test),
    ("bun run test", Command::Test),
    ("cargo test", Command::Test),
    ("cargo nextest run", Command::Test),
    ("go test", Command::Test),
    ("pytest", Command::Test),
    ("python -m pytest", Command::Test),
    ("jest", Command::Test),
    ("vitest", Command::Test),
    ("make test", Command::Test),
];

/// Programs that run another one, which is then what is meant.
const RUNNERS: &[&str] = &["npx", "pnpm exec", "uv run", "poetry run", "bunx"];

/// Words in an argument that make it a secret.
const SECRETS: &[&str] = &["token", "secret", "password", "passwd", "apikey", "api-key", "api_key", "credential"];

/// What one use of a tool teaches.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lesson {
    /// Facts, each with its category.
    pub notes: Vec<(&'static str, String)>,
    /// Commands that work.
    pub commands: Vec<(Command, String)>,
    /// Paths that were used.
    pub paths: Vec<(String, PathKind)>,
}

impl Lesson {
    /// Whether it teaches nothing.
    pub fn is_empty(&self) -> bool {
        self.notes.is_empty() && self.commands.is_empty() && self.paths.is_empty()
    }

    /// Puts it into the memory and says whether that changed.
    pub fn teach(&self, memory: &mut ProjectMemory, now: Timestamp) -> bool {
        let mut changed = false;
        for (category, content) in &self.notes {
            changed |= memory.add_note(category, content, false, now);
        }
        for (command, line) in &self.commands {
            changed |= memory.learn_command(*command, line);
        }
        for (path, kind) in &self.paths {
            changed |= memory.touch(path, *kind, now);
        }
        changed
    }
}

/// The path below the root, with `/`; absent for the root itself, what is outside, and what says nothing about the work.
pub fn relative_path(path: &str, root: &str) -> Option<String> {
    let (path, root) = (path.replace('\\', "/"), root.replace('\\', "/"));
    let below = path.strip_prefix(root.trim_end_matches('/'))?.strip_prefix('/')?;
    let mut parts = Vec::new();
    for part in below.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part if IGNORED.contains(&part) || part.contains(char::is_control) => return None,
            part => parts.push(part),
        }
    }
    (!parts.is_empty()).then(|| parts.join("/"))
}

/// Facts about the surroundings in what a command printed, each once.
pub fn hints(output: &str) -> Vec<(&'static str, String)> {
    let (head, tail) = ends(output);
    let mut found: Vec<(&'static str, String)> = Vec::new();
    for line in head.lines().chain(tail.lines()) {
        let hints = [
            version(line, "Node.js").map(|version| ("runtime", format!("Node.js {version}"))),
            version(line, "Python").map(|version| ("runtime", format!("Python {version}"))),
            version(line, "rustc").map(|version| ("runtime", format!("Rust {version}"))),
            missing_module(line).map(|name| ("dependency", format!("Missing dependency: {name}"))),
            missing_variable(line).map(|name| ("env", format!("Requires env var: {name}"))),
        ];
        for hint in hints.into_iter().flatten() {
            // One of a kind: the second version of a runtime in one output is somebody else's.
            if !found.iter().any(|(_, known)| known.split(' ').next() == hint.1.split(' ').next()) {
                found.push(hint);
            }
        }
    }
    found
}

/// Whether a command's text says that it ended with an error, where an agent tells that in no other way.
pub fn tells_of_failure(output: &str) -> bool {
    let (head, tail) = ends(output);
    head.lines().chain(tail.lines()).any(|line| {
        let line = line.trim();
        let code = ["Error: Exit code ", "Exit code ", "exit code: ", "Exit code: ", "exit status "]
            .iter()
            .find_map(|begin| line.strip_prefix(begin));
        code.and_then(|code| code.parse::<i64>().ok()).is_some_and(|code| code != 0)
    })
}

/// The beginning and the end of a text, without what is between if it is long.
fn ends(text: &str) -> (&str, &str) {
    if text.len() <= 2 * MAX_OUTPUT_BYTES {
        return (text, "");
    }
    let boundary = |from: usize| (from..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
    (&text[..boundary(MAX_OUTPUT_BYTES)], &text[boundary(text.len() - MAX_OUTPUT_BYTES)..])
}

/// `NAME v1.2.3`.
fn version(line: &str, name: &str) -> Option<String> {
    let (_, rest) = line.split_once(name)?;
    let bare = rest.trim_start();
    if bare.len() == rest.len() {
        return None;
    }
    let bare = bare.strip_prefix('v').unwrap_or(bare);
    let end = bare.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(bare.len());
    let numbers: Vec<_> = bare[..end].trim_end_matches('.').split('.').collect();
    let is_version = numbers.len() == 3 && numbers.iter().all(|number| (1..=5).contains(&number.len()));
    is_version.then(|| numbers.join("."))
}

fn missing_module(line: &str) -> Option<&str> {
    let (_, rest) = line.split_once("Cannot find module '").or_else(|| line.split_once("No module named '"))?;
    let (name, _) = rest.split_once('\'')?;
    let is_package = |c: char| c.is_ascii_alphanumeric() || matches!(c, '@' | '/' | '-' | '_' | '.');
    // A path is a file of the project that is missing, and no dependency.
    (is_name(name) && !name.starts_with(['.', '/']) && name.chars().all(is_package)).then_some(name)
}

fn missing_variable(line: &str) -> Option<&str> {
    let rest = ["Missing ", "Required "].iter().find_map(|word| Some(line.split_once(word)?.1))?;
    let rest = rest.strip_prefix("environment ").unwrap_or(rest);
    let rest =
        rest.strip_prefix("variable").or_else(|| rest.strip_prefix("env var")).or_else(|| rest.strip_prefix("env"))?;
    let rest = rest.trim_start_matches([':', ' ', '\'', '"', '`']);
    let end = rest.find(|c: char| !c.is_ascii_uppercase() && !c.is_ascii_digit() && c != '_').unwrap_or(rest.len());
    let name = &rest[..end];
    (is_name(name) && name.len() > 1 && !name.starts_with(|c: char| c.is_ascii_digit())).then_some(name)
}

fn is_name(name: &str) -> bool {
    (1..=MAX_NAME_BYTES).contains(&name.len())
}

/// Commands in a line that build or test, each without what stands around it. The line worked as a whole.
pub fn commands(line: &str) -> Vec<(Command, String)> {
    let mut found: Vec<(Command, String)> = Vec::new();
    if line.len() > MAX_LINE_BYTES {
        return found;
    }
    for words in simple_commands(line) {
        let text = words.join(" ");
        let bare = RUNNERS.iter().find_map(|runner| text.strip_prefix(runner)?.strip_prefix(' ')).unwrap_or(&text);
        let is_it = |known: &str| bare.strip_prefix(known).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '));
        let Some((_, command)) = KNOWN.iter().find(|(known, _)| is_it(known)) else { continue };
        if !found.iter().any(|(known, _)| known == command) {
            found.push((*command, text));
        }
    }
    found
}

/// The words of the plain commands of a line. What has substitutions, a secret, or ran because something failed is left out.
fn simple_commands(line: &str) -> Vec<Vec<String>> {
    let mut commands = Vec::new();
    let mut words: Vec<String> = Vec::new();
    let mut word = String::new();
    let mut quote = None;
    let mut is_plain = true;
    let mut is_alternative = false;
    let mut characters = line.chars().peekable();
    let mut finish = |words: &mut Vec<String>, is_plain: bool| {
        let words = std::mem::take(words);
        commands.extend(without_surroundings(words).filter(|_| is_plain));
    };
    while let Some(character) = characters.next() {
        match (quote, character) {
            (Some(open), close) if open == close => {
                word.push(close);
                quote = None;
            }
            (None, '\'' | '"') => {
                word.push(character);
                quote = Some(character);
            }
            (_, '\\' | '`' | '$' | '(' | ')' | '{' | '}') => is_plain = false,
            (Some(_), inside) => word.push(inside),
            (None, '&') if word.ends_with('>') || characters.peek() == Some(&'>') => word.push('&'),
            (None, ';' | '&' | '|' | '\n') => {
                let doubled = characters.next_if_eq(&character).is_some();
                words.extend((!word.is_empty()).then(|| std::mem::take(&mut word)));
                finish(&mut words, is_plain && !is_alternative);
                is_plain = true;
                is_alternative = character == '|' && doubled;
            }
            (None, space) if space.is_whitespace() => {
                words.extend((!word.is_empty()).then(|| std::mem::take(&mut word)));
            }
            (None, other) => word.push(other),
        }
    }
    words.extend((!word.is_empty()).then_some(word));
    finish(&mut words, is_plain && !is_alternative && quote.is_none());
    commands
}

/// A command without variables before it and redirections after it; absent if one of its words may be a secret.
fn without_surroundings(words: Vec<String>) -> impl Iterator<Item = Vec<String>> {
    let is_variable = |word: &String| {
        word.split_once('=').is_some_and(|(name, _)| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'))
    };
    let mut kept: Vec<String> = Vec::new();
    let mut is_target = false;
    for word in words.into_iter().skip_while(is_variable) {
        let redirects = word.trim_start_matches(|c: char| c.is_ascii_digit() || c == '&').starts_with(['>', '<']);
        if redirects {
            // `> file` and `>file`
            is_target = word.ends_with(['>', '<']);
        } else if is_target {
            is_target = false;
        } else {
            kept.push(word);
        }
    }
    let is_secret = |word: &String| {
        let word = word.to_ascii_lowercase();
        SECRETS.iter().any(|secret| word.contains(secret))
    };
    let is_fit = !kept.is_empty() && !kept.iter().any(is_secret);
    is_fit.then_some(kept).into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_paths_inside_the_project_and_of_its_own_count() {
        for (path, below) in [
            ("/p/src/a.ts", Some("src/a.ts")),
            ("/p/src/../lib/inside.ts", Some("lib/inside.ts")),
            ("/p/./src//a.ts", Some("src/a.ts")),
            ("/p/src/builder.ts", Some("src/builder.ts")),
            ("/p/src/distance.ts", Some("src/distance.ts")),
            ("/p/test/coverage.ts", Some("test/coverage.ts")),
            ("/p", None),
            ("/p/", None),
            ("/p/..", None),
            ("/p/../p-old/a.ts", None),
            ("/p-old/a.ts", None),
            ("/etc/hosts", None),
            ("src/a.ts", None),
            ("", None),
            ("/p/node_modules/left-pad/index.js", None),
            ("/p/web/.next/page.js", None),
            ("/p/.git/config", None),
            ("/p/.omc/notepad.md", None),
            ("/p/dist/app.js", None),
            ("/p/a\nb", None),
        ] {
            assert_eq!(relative_path(path, "/p").as_deref(), below, "{path}");
        }
        assert_eq!(relative_path("C:\\p\\src\\a.ts", "C:\\p\\").as_deref(), Some("src/a.ts"));
    }

    #[test]
    fn an_exit_code_in_a_line_of_its_own_tells_of_failure() {
        for (output, failed) in [
            ("Error: Exit code 1\nx", true),
            ("x\n  exit status 3  ", true),
            ("exit code: 7", true),
            ("Error: Exit code 0\nx", false),
            ("exit code: 0", false),
            ("tests check exit code: 7 here", false),
            ("exit status of the shell", false),
            ("", false),
        ] {
            assert_eq!(tells_of_failure(output), failed, "{output}");
        }
    }

    #[test]
    fn an_output_tells_of_its_surroundings() {
        for (output, found) in [
            (
                "Node.js v20.11.1\nError: Cannot find module 'undici'\nMissing environment variable: QUEUE_URL\n",
                vec![
                    ("runtime", "Node.js 20.11.1"),
                    ("dependency", "Missing dependency: undici"),
                    ("env", "Requires env var: QUEUE_URL"),
                ],
            ),
            ("Python 3.12.4", vec![("runtime", "Python 3.12.4")]),
            ("rustc 1.95.0 (abc 2026-01-01)", vec![("runtime", "Rust 1.95.0")]),
            ("Cannot find module '@scope/pkg'", vec![("dependency", "Missing dependency: @scope/pkg")]),
            ("ModuleNotFoundError: No module named 'flask'", vec![("dependency", "Missing dependency: flask")]),
            ("Required env: API_URL", vec![("env", "Requires env var: API_URL")]),
            ("Missing variable `DB_URL`", vec![("env", "Requires env var: DB_URL")]),
            ("Python 3.12.4\nPython 3.9.1", vec![("runtime", "Python 3.12.4")]),
            ("Cannot find module './local'", vec![]),
            ("Cannot find module '/abs'", vec![]),
            ("Cannot find module 'a b; rm'", vec![]),
            ("Python 3.12", vec![]),
            ("Python3.12.4", vec![]),
            ("Pythonic 3.12.4", vec![]),
            ("Missing variable: name", vec![]),
            ("", vec![]),
        ] {
            let found: Vec<_> = found.into_iter().map(|(category, text)| (category, text.to_owned())).collect();
            assert_eq!(hints(output), found, "{output}");
        }
    }

    #[test]
    fn a_huge_output_is_looked_at_by_its_ends() {
        let output = format!("Python 3.12.4\n{}\nrustc 1.95.0", "가 x\n".repeat(1_000_000));
        assert_eq!(hints(&output).len(), 2);
    }

    #[test]
    fn a_command_is_learned_without_what_stands_around_it() {
        use Command::{Build, Test};
        for (line, found) in [
            ("cd services/api && pytest -q 2>&1 | tail -5", vec![(Test, "pytest -q")]),
            ("cargo build --release", vec![(Build, "cargo build --release")]),
            ("cargo build && cargo test; echo done", vec![(Build, "cargo build"), (Test, "cargo test")]),
            ("npm   run\tbuild > out.txt 2> err.txt", vec![(Build, "npm run build")]),
            ("CI=1 NODE_ENV=test npx vitest run 'a b'", vec![(Test, "npx vitest run 'a b'")]),
            ("uv run pytest", vec![(Test, "uv run pytest")]),
            ("make test &>/dev/null", vec![(Test, "make test")]),
            ("pytest || cargo test", vec![(Test, "pytest")]),
            ("echo \"cargo build; cargo test\"", vec![]),
            ("pytest --token=abc", vec![]),
            ("pytest --password hunter2", vec![]),
            ("pytest $(cat args)", vec![]),
            ("pytest `cat args`", vec![]),
            ("pytester", vec![]),
            ("cargo builder", vec![]),
            ("vim pytest.ini", vec![]),
            ("pytest 'never closed", vec![]),
            ("", vec![]),
        ] {
            let found: Vec<_> = found.into_iter().map(|(command, text)| (command, text.to_owned())).collect();
            assert_eq!(commands(line), found, "{line}");
        }
        assert_eq!(commands(&format!("pytest {}", "x".repeat(5_000))), []);
    }
}
