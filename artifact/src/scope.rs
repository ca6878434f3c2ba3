//! Scopes that say which files a guest may read and which variables it may set: what can be asked for at all.

use std::fmt;

/// Longest glob, in bytes, and most parts of one: each part costs a look at every name on the way.
const MAX_GLOB_BYTES: usize = 256;
const MAX_GLOB_PARTS: usize = 16;
/// Longest name of a variable, in bytes.
const MAX_VARIABLE_NAME_BYTES: usize = 128;

/// Letters that make a part of a glob match more than itself.
const WILD: [char; 4] = ['*', '?', '[', '{'];

/// Matches any number of folders.
const ANY_FOLDERS: &str = "**";

/// The beginning of names of files that hold a project's secrets by custom.
const SECRETS: &str = ".env";

/// Folders that `**` leaves out: their contents are others' or generated, and there are many.
pub const SKIPPED_FOLDERS: [&str; 3] = ["node_modules", "target", "__pycache__"];

/// Files that a guest may read, written `ROOT:GLOB`.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct ReadScope {
    /// Where the glob begins.
    pub root: ReadRoot,
    /// The glob, relative to the root.
    pub glob: String,
}

/// Where readable files are.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum ReadRoot {
    /// `project`: the project's root.
    Project,
    /// `agent`: the agent's own folder of settings.
    Agent,
    /// `home`: the user's home folder.
    Home,
}

impl ReadRoot {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Project, Self::Agent, Self::Home];

    /// The root's name in scopes and in the interface.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Project => "project",
            Self::Agent => "agent",
            Self::Home => "home",
        }
    }

    /// The root of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|root| root.name() == name)
    }
}

impl fmt::Display for ReadScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.root.name(), self.glob)
    }
}

impl ReadScope {
    /// Reads `ROOT:GLOB`.
    ///
    /// The parts of a glob are plain names or patterns: none is empty, `.` or `..`; `**` stands alone; escapes and negation do not
    /// exist. In the home folder the first part is a plain name, so that nobody is given the whole of it.
    pub fn parse(text: &str) -> Option<Self> {
        let (root, glob) = text.split_once(':')?;
        Self::of(ReadRoot::from_name(root)?, glob)
    }

    fn of(root: ReadRoot, glob: &str) -> Option<Self> {
        let parts = || glob.split('/');
        let fits = glob.len() <= MAX_GLOB_BYTES
            && parts().count() <= MAX_GLOB_PARTS
            && parts().all(is_part)
            && (root != ReadRoot::Home || parts().next().is_some_and(is_plain));
        fits.then(|| Self { root, glob: glob.to_owned() })
    }

    /// Whether this scope matches nothing that the other one does not.
    ///
    /// It errs on the side of no: a pattern is within another part only if it is the same, because whether two patterns match
    /// the same names is not worked out here. Plain names are tried as they are.
    pub fn is_within(&self, other: &Self) -> bool {
        self == other || self.root == other.root && is_glob_within(&self.glob, &other.glob)
    }
}

/// Follows a glob through another one, part by part. A position is one at which the other glob can go on whatever the names are
/// that this one has matched so far.
fn is_glob_within(glob: &str, other: &str) -> bool {
    let other: Vec<_> = other.split('/').collect();
    let end = other.len();
    // `**` also stands for no folder, except at the end: a folder is not among what is in it.
    let skip = |mut positions: u32| {
        for (at, part) in other.iter().enumerate().take(end - 1) {
            if *part == ANY_FOLDERS && positions & (1 << at) != 0 {
                positions |= 1 << (at + 1);
            }
        }
        positions
    };
    let mut positions = skip(1);
    for part in glob.split('/') {
        let mut next = 0;
        for (at, asked) in other.iter().enumerate().filter(|(at, _)| positions & (1 << at) != 0) {
            if *asked == ANY_FOLDERS {
                let goes_through = is_open(part);
                next |= u32::from(goes_through) << at;
                next |= u32::from(goes_through && at + 1 == end) << end;
            } else if part == *asked || is_plain(part) && part_matches(asked, part) {
                next |= 1 << (at + 1);
            }
        }
        positions = skip(next);
    }
    positions & (1 << end) != 0
}

/// Whether `**` goes through everything that a part of a glob matches.
fn is_open(part: &str) -> bool {
    // Of the folders that `**` leaves out, those with a dot are matched by parts with one only.
    part == ANY_FOLDERS || !part.starts_with('.') && !SKIPPED_FOLDERS.iter().any(|skipped| part_matches(part, skipped))
}

/// Whether one part of a glob, other than `**`, matches a name.
///
/// A pattern matches no name that begins with a dot unless it does so itself, and a file of secrets is only matched by its whole
/// name.
pub fn part_matches(part: &str, name: &str) -> bool {
    if part == name {
        return true;
    }
    let is_secret = name.get(..SECRETS.len()).is_some_and(|beginning| beginning.eq_ignore_ascii_case(SECRETS));
    if is_secret || name.starts_with('.') && !part.starts_with('.') || is_plain(part) {
        return false;
    }
    fast_glob::glob_match(part, name)
}

/// Whether a path is one place that may be read below this root: a glob that matches only itself.
pub(crate) fn is_plain_path_below(root: ReadRoot, path: &str) -> bool {
    path.split('/').all(is_plain) && ReadScope::of(root, path).is_some()
}

/// Whether a part of a glob matches only itself.
fn is_plain(part: &str) -> bool {
    !part.contains(WILD)
}

fn is_part(part: &str) -> bool {
    let is_name = !matches!(part, "" | "." | "..")
        && !part.starts_with('!')
        && !part.chars().any(|letter| letter == '\\' || letter.is_control());
    is_name && (part == "**" || !part.contains("**")) && is_balanced(part)
}

/// Whether each bracket and brace of a part is closed, and none is nested.
fn is_balanced(part: &str) -> bool {
    let mut open = None;
    for letter in part.chars() {
        match (open, letter) {
            (None, '[') => open = Some(']'),
            (None, '{') => open = Some('}'),
            (None, ']' | '}') | (Some(_), '[' | '{') => return false,
            (Some(close), letter) if letter == close => open = None,
            _ => {}
        }
    }
    open.is_none()
}

/// Names of variables that decide which programs run, what they load or whom they trust, or that steer agent and host.
const STEERING: &[&str] = &[
    "PATH",
    "HOME",
    "SHELL",
    "IFS",
    "ENV",
    "BASH_ENV",
    "BASHOPTS",
    "SHELLOPTS",
    "CDPATH",
    "PS4",
    "PROMPT_COMMAND",
    "ZDOTDIR",
    "EDITOR",
    "VISUAL",
    "PAGER",
    "BROWSER",
    "TMPDIR",
    "PWD",
    "OLDPWD",
    "USER",
    "LOGNAME",
    "CLASSPATH",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "MAVEN_OPTS",
    "GRADLE_OPTS",
    "MAKEFLAGS",
    "CC",
    "CXX",
    "LD",
    "AR",
    "LESS",
    "LESSOPEN",
    "LESSCLOSE",
    "MANPAGER",
    "DISABLE_OMC",
    "OMC_SKIP_HOOKS",
    "OMC_STATE_DIR",
    "OMC_DISABLE_MULTIREPO",
    "OMC_SECURITY",
];

/// Beginnings of such names.
const STEERING_PREFIXES: &[&str] = &[
    "LD_",
    "DYLD_",
    "GIT_",
    "SSH_",
    "GPG_",
    "BASH_FUNC_",
    "NODE_",
    "NPM_",
    "PYTHON",
    "PIP_",
    "UV_",
    "PERL",
    "RUBY",
    "GEM_",
    "BUNDLE_",
    "CARGO_",
    "RUST",
    "GO",
    "DOTNET_",
    "LUA_",
    "PHP",
    "JAVA_",
    "_JAVA",
    "DOCKER_",
    "KUBE",
    "AWS_",
    "GOOGLE_",
    "AZURE_",
    "SSL_",
    "CURL_",
    "XDG_",
    "CLAUDE",
    "ANTHROPIC_",
    "CODEX_",
    "OPENAI_",
    "FZF_",
];

/// Endings of such names.
const STEERING_SUFFIXES: &[&str] =
    &["_PROXY", "_CA_BUNDLE", "_PRELOAD", "PATH", "_COMMAND", "_TOKEN", "_SECRET", "_KEY"];

/// Whether a guest may ask to set a variable of this name: it is a name of shells, and none by which a guest could make later
/// commands run its own programs or send the user's data elsewhere.
pub(crate) fn may_be_set(name: &str) -> bool {
    let is_name = name.len() <= MAX_VARIABLE_NAME_BYTES
        && name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let upper = name.to_ascii_uppercase();
    is_name
        && !STEERING.contains(&upper.as_str())
        && !STEERING_PREFIXES.iter().any(|prefix| upper.starts_with(prefix))
        && !STEERING_SUFFIXES.iter().any(|suffix| upper.ends_with(suffix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_that_could_lead_elsewhere_are_refused() {
        for text in [
            "",
            "project",
            "project:",
            "etc:**",
            "project:/etc",
            "project:a//b",
            "project:../a",
            "project:a/..",
            "project:./a",
            "project:a\\b",
            "project:a**",
            "project:**.md",
            "project:!a",
            "project:{a",
            "project:a}",
            "project:{a,{b}}",
            "project:[a",
            "project:{a/b,c}",
            "project:a\nb",
            "home:**",
            "home:*",
            "home:*/x",
            "home:.[a-z]*/x",
            "home:",
        ] {
            assert_eq!(ReadScope::parse(text), None, "{text}");
        }
        assert_eq!(ReadScope::parse(&format!("project:{}", "a/".repeat(MAX_GLOB_PARTS))), None);
        assert_eq!(ReadScope::parse(&format!("project:{}", "a".repeat(MAX_GLOB_BYTES + 1))), None);
        for text in [
            "project:**",
            "project:a.{md,txt}",
            "agent:skills/**/SKILL.md",
            "home:.agents/**",
            "home:.x",
            "project:[ab]?",
        ] {
            assert_eq!(ReadScope::parse(text).map(|scope| scope.to_string()).as_deref(), Some(text));
        }
    }

    #[test]
    fn a_scope_is_within_another_only_if_it_matches_less() {
        let within = |scope, other| ReadScope::parse(scope).unwrap().is_within(&ReadScope::parse(other).unwrap());
        for (scope, other, expected) in [
            ("project:a.md", "project:a.md", true),
            ("project:.claude/rules/**", "project:.claude/**", true),
            ("project:.claude/rules/*.md", "project:.claude/**", true),
            ("project:src/a.rs", "project:**", true),
            ("project:**/*.md", "project:**", true),
            ("project:.env", "project:**", false),
            ("project:a/.ssh/**", "project:**", false),
            ("project:node_modules/x", "project:**", false),
            ("project:.claude", "project:.claude/**", false),
            ("project:.claude2/a", "project:.claude/**", false),
            ("project:**", "project:.claude/**", false),
            ("agent:a", "project:**", false),
            ("project:a/b/c", "project:a/*/**", true),
            ("project:a/.b/c", "project:a/*/**", false),
            ("project:a/b", "project:a/*/**", false),
            ("project:a.md", "project:*.md", true),
            ("project:docs/*.md", "project:**/*.md", true),
            ("project:docs/**/*.md", "project:**/*.md", true),
            ("project:docs/a.md", "project:**/*.md", true),
            ("project:a.md", "project:**/*.md", true),
            ("project:a.txt", "project:**/*.md", false),
            ("project:docs/*", "project:**/*.md", false),
            ("project:docs/**", "project:**/*.md", false),
            ("project:.a.md", "project:*.md", false),
            ("project:.env.md", "project:.*.md", false),
            ("project:.x/a.md", "project:**/*.md", false),
            ("project:*/a.md", "project:**/*.md", false),
            ("project:*/x", "project:**", false),
            ("project:t*/x", "project:**", false),
            ("project:d*/x", "project:**", true),
            ("project:*", "project:*", true),
            ("project:*.md", "project:*", false),
            ("project:a/b", "project:*", false),
            ("project:**/a/**/b", "project:**/b", true),
            ("project:**/b", "project:**/a/**/b", false),
            ("project:x/a/y/b", "project:**/a/**/b", true),
            ("project:a/b", "project:**/a/**/b", true),
            ("home:.agents/skills/x/SKILL.md", "home:.agents/skills/**/SKILL.md", true),
        ] {
            assert_eq!(within(scope, other), expected, "{scope} within {other}");
        }
    }

    #[test]
    fn hostile_globs_are_compared_in_bounded_time() {
        let many = format!("project:{}x", "**/".repeat(MAX_GLOB_PARTS - 1));
        let scope = ReadScope::parse(&many).unwrap();
        let other = ReadScope::parse(&many.replace('x', "y")).unwrap();
        let began = std::time::Instant::now();
        assert!(!scope.is_within(&other));
        assert!(began.elapsed() < std::time::Duration::from_millis(100));
    }

    #[test]
    fn variables_that_steer_programs_cannot_be_asked_for() {
        for name in [
            "",
            "1A",
            "A-B",
            "A B",
            "A=B",
            "A\n",
            "é",
            "PATH",
            "Path",
            "LD_PRELOAD",
            "DYLD_INSERT_LIBRARIES",
            "NODE_OPTIONS",
            "GIT_SSH_COMMAND",
            "BASH_ENV",
            "PYTHONPATH",
            "MANPATH",
            "http_proxy",
            "HTTPS_PROXY",
            "npm_config_registry",
            "CLAUDE_CONFIG_DIR",
            "ANTHROPIC_BASE_URL",
            "OMC_STATE_DIR",
            "GOFLAGS",
            "RUSTC_WRAPPER",
            "SSH_AUTH_SOCK",
            "GH_TOKEN",
        ] {
            assert!(!may_be_set(name), "{name:?}");
        }
        for name in ["OMC_INITIALIZED", "PROJECT_STAGE", "_x", "CI"] {
            assert!(may_be_set(name), "{name:?}");
        }
        assert!(!may_be_set(&"A".repeat(MAX_VARIABLE_NAME_BYTES + 1)));
    }
}
