//! The commands that are known to only read, with the options and operands that keep it so.
//!
//! An option that is not here is not understood, also in an abbreviated or joined form. What a tool may be told by the user's
//! own configuration (a pager, a diff driver, a credential helper) is the user's will.

use super::command::MESSAGE_WORD;

/// How one command may be called.
#[derive(Debug)]
pub(super) struct Rule {
    /// The words it begins with.
    words: &'static [&'static str],
    options: &'static [&'static [Opt]],
    pub(super) operands: Operands,
    /// It runs what the repository says: only for users who switched that on.
    pub(super) runs_project_code: bool,
}

/// What may stand beside the options.
#[derive(Debug, Clone, Copy)]
pub(super) enum Operands {
    None,
    /// Names and numbers that are no paths and no addresses.
    Plain {
        most: usize,
    },
    /// Patterns, but only with one of these options; without one, an operand changes something.
    PatternsIf(&'static [&'static str]),
    /// Revisions and paths of a repository.
    Git,
    /// Existing files, or folders too, behind a leading word of its own kind.
    Files {
        leading: Option<fn(&str) -> bool>,
        least: usize,
        most: usize,
        folders_too: bool,
    },
}

/// An option and the values it takes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Opt {
    name: &'static str,
    value: Value,
}

#[derive(Debug, Clone, Copy)]
enum Value {
    None,
    /// `--name`, or `--name=VALUE`.
    Optional(fn(&str) -> bool),
    /// `--name=VALUE`, `--name VALUE`, `-nVALUE` or `-n VALUE`.
    Required(fn(&str) -> bool),
}

const fn flag(name: &'static str) -> Opt {
    Opt { name, value: Value::None }
}

const fn may(name: &'static str, check: fn(&str) -> bool) -> Opt {
    Opt { name, value: Value::Optional(check) }
}

const fn with(name: &'static str, check: fn(&str) -> bool) -> Opt {
    Opt { name, value: Value::Required(check) }
}

const ANY_NUMBER: usize = usize::MAX;

/// What `git diff`, `git log` and `git show` have in common. Not here: `--output`, `--ext-diff`, `--textconv`, `--no-index`,
/// and `-O`, which reads a file.
const DIFF: &[Opt] = &[
    flag("-p"),
    flag("-u"),
    flag("--patch"),
    flag("-s"),
    flag("--no-patch"),
    with("-U", is_number),
    with("--unified", is_number),
    flag("--raw"),
    flag("--minimal"),
    flag("--patience"),
    flag("--histogram"),
    may("--stat", is_word),
    flag("--numstat"),
    flag("--shortstat"),
    flag("--compact-summary"),
    flag("--summary"),
    flag("--name-only"),
    flag("--name-status"),
    flag("-z"),
    flag("--no-color"),
    may("--color", is_word),
    may("--word-diff", is_word),
    flag("--no-renames"),
    flag("--full-index"),
    may("--abbrev", is_number),
    may("--find-renames", is_word),
    may("--find-copies", is_word),
    flag("-M"),
    flag("-C"),
    with("--diff-filter", is_word),
    with("-S", is_text),
    with("-G", is_text),
    flag("-R"),
    flag("-a"),
    flag("--text"),
    flag("-w"),
    flag("-b"),
    flag("--ignore-all-space"),
    flag("--ignore-space-change"),
    flag("--ignore-space-at-eol"),
    flag("--ignore-blank-lines"),
    flag("--function-context"),
    flag("-W"),
    flag("--no-ext-diff"),
    flag("--no-textconv"),
    flag("--exit-code"),
];

/// What `git log` and `git show` have in common.
const COMMITS: &[Opt] = &[
    flag("--oneline"),
    may("--pretty", is_format),
    with("--format", is_format),
    flag("--abbrev-commit"),
    flag("--no-abbrev-commit"),
    may("--decorate", is_word),
    flag("--no-decorate"),
    with("--date", is_format),
    flag("-m"),
    flag("-c"),
    flag("--cc"),
    flag("--first-parent"),
];

const LOG: &[Opt] = &[
    with("-n", is_number),
    with("--max-count", is_number),
    with("--skip", is_number),
    flag("--graph"),
    flag("--all"),
    may("--branches", is_text),
    may("--tags", is_text),
    may("--remotes", is_text),
    with("--since", is_text),
    with("--after", is_text),
    with("--until", is_text),
    with("--before", is_text),
    with("--author", is_text),
    with("--committer", is_text),
    with("--grep", is_text),
    flag("--all-match"),
    flag("--invert-grep"),
    flag("-i"),
    flag("-E"),
    flag("-F"),
    flag("--merges"),
    flag("--no-merges"),
    flag("--reverse"),
    flag("--topo-order"),
    flag("--date-order"),
    flag("--author-date-order"),
    flag("--follow"),
    flag("--left-right"),
    flag("--cherry-pick"),
    flag("--cherry-mark"),
    flag("--ancestry-path"),
    flag("--full-history"),
    flag("--simplify-by-decoration"),
    flag("--source"),
    flag("--boundary"),
    flag("--merge-base"),
];

const STATUS: &[Opt] = &[
    flag("-s"),
    flag("-b"),
    flag("-sb"),
    flag("--short"),
    flag("--branch"),
    flag("--show-stash"),
    may("--porcelain", is_word),
    flag("--long"),
    flag("-uno"),
    flag("-unormal"),
    flag("-uall"),
    may("--untracked-files", is_word),
    may("--ignored", is_word),
    flag("-z"),
    flag("--ahead-behind"),
    flag("--no-ahead-behind"),
    flag("--no-renames"),
];

const BRANCH: &[Opt] = &[
    flag("--list"),
    flag("-a"),
    flag("--all"),
    flag("-r"),
    flag("--remotes"),
    flag("-v"),
    flag("-vv"),
    flag("-av"),
    flag("-avv"),
    flag("-rv"),
    flag("-rvv"),
    flag("--verbose"),
    flag("--show-current"),
    flag("-i"),
    flag("--ignore-case"),
    flag("--no-color"),
    may("--color", is_word),
    with("--sort", is_word),
    may("--contains", is_revision),
    may("--no-contains", is_revision),
    may("--merged", is_revision),
    may("--no-merged", is_revision),
    with("--points-at", is_revision),
];

const LS: &[Opt] = &[
    flag("--all"),
    flag("--almost-all"),
    flag("--human-readable"),
    flag("--recursive"),
    flag("--reverse"),
    flag("--classify"),
    flag("--directory"),
    flag("--group-directories-first"),
    flag("--size"),
    may("--color", is_word),
];

/// Letters that may be joined behind one dash in `ls`.
const LS_LETTERS: &str = "1ACFGRSTUacdfghiklmnopqrstux";

const HEAD: &[Opt] = &[with("-n", is_line_count)];

const RG: &[Opt] = &[
    flag("-n"),
    flag("--line-number"),
    flag("-S"),
    flag("--smart-case"),
    flag("-F"),
    flag("--fixed-strings"),
    flag("-i"),
    flag("--ignore-case"),
    flag("--no-heading"),
];

/// Not here: `--web`, which starts a browser, and `--jq`, whose programs see the environment.
const GH: &[Opt] = &[with("--json", is_word), with("-R", is_repository), with("--repo", is_repository)];

const GH_VIEW: &[Opt] = &[flag("--comments"), flag("-c")];

const GH_LIST: &[Opt] = &[
    with("-s", is_word),
    with("--state", is_word),
    with("-L", is_number),
    with("--limit", is_number),
    with("-A", is_text),
    with("--author", is_text),
    with("-a", is_text),
    with("--assignee", is_text),
    with("-l", is_text),
    with("--label", is_text),
    with("-B", is_plain_name),
    with("--base", is_plain_name),
    with("-H", is_plain_name),
    with("--head", is_plain_name),
    with("-S", is_text),
    with("--search", is_text),
    flag("-d"),
    flag("--draft"),
];

const CARGO: &[Opt] = &[
    flag("--workspace"),
    flag("--all"),
    flag("--all-targets"),
    flag("--all-features"),
    flag("--no-default-features"),
    flag("--lib"),
    flag("--bins"),
    flag("--tests"),
    flag("--examples"),
    flag("--release"),
    flag("-r"),
    flag("-q"),
    flag("--quiet"),
    flag("-v"),
    flag("--verbose"),
    flag("--locked"),
    flag("--offline"),
    flag("--frozen"),
    with("-p", is_plain_name),
    with("--package", is_plain_name),
    with("-F", is_word),
    with("--features", is_word),
];

const TSC: &[Opt] = &[flag("--noEmit"), with("--pretty", is_word)];
const ESLINT: &[Opt] = &[flag("--quiet"), flag("--no-color"), flag("--color")];
const PRETTIER: &[Opt] = &[flag("--check"), flag("-c"), flag("--list-different"), flag("-l")];

/// The message is what the here-document says; `-F -` reads it from there.
const COMMIT: &[Opt] =
    &[with("-m", is_message), with("--message", is_message), with("-F", is_dash), with("--file", is_dash)];
const TAG: &[Opt] = &[
    flag("-a"),
    flag("--annotate"),
    with("-m", is_message),
    with("--message", is_message),
    with("-F", is_dash),
    with("--file", is_dash),
];

const fn reads(words: &'static [&'static str], options: &'static [&'static [Opt]], operands: Operands) -> Rule {
    Rule { words, options, operands, runs_project_code: false }
}

const fn runs(words: &'static [&'static str], options: &'static [&'static [Opt]], operands: Operands) -> Rule {
    Rule { words, options, operands, runs_project_code: true }
}

const FILES: Operands = Operands::Files { leading: None, least: 1, most: ANY_NUMBER, folders_too: false };
const ONE_FILE: Operands = Operands::Files { leading: None, least: 1, most: 1, folders_too: false };
const PATHS: Operands = Operands::Files { leading: None, least: 0, most: ANY_NUMBER, folders_too: true };
const NUMBERED: Operands = Operands::Plain { most: 1 };

const RULES: &[Rule] = &[
    reads(&["git", "status"], &[STATUS], Operands::Git),
    reads(
        &["git", "diff"],
        &[DIFF, &[flag("--cached"), flag("--staged"), flag("--merge-base"), flag("--check")]],
        Operands::Git,
    ),
    reads(&["git", "log"], &[DIFF, COMMITS, LOG], Operands::Git),
    reads(&["git", "show"], &[DIFF, COMMITS], Operands::Git),
    reads(
        &["git", "branch"],
        &[BRANCH],
        Operands::PatternsIf(&["--list", "--contains", "--no-contains", "--merged", "--no-merged", "--points-at"]),
    ),
    reads(&["git", "commit"], &[COMMIT], Operands::None),
    reads(&["git", "tag"], &[TAG], NUMBERED),
    reads(&["ls"], &[LS], PATHS),
    reads(&["cat"], &[], FILES),
    reads(&["head"], &[HEAD], FILES),
    reads(&["tail"], &[HEAD], FILES),
    reads(
        &["sed", "-n"],
        &[],
        Operands::Files { leading: Some(is_print_range), least: 1, most: ANY_NUMBER, folders_too: false },
    ),
    reads(&["rg"], &[RG], Operands::Files { leading: Some(is_text), least: 1, most: ANY_NUMBER, folders_too: false }),
    reads(&["gh", "issue", "view"], &[GH, GH_VIEW], NUMBERED),
    reads(&["gh", "issue", "list"], &[GH, GH_LIST], Operands::None),
    reads(&["gh", "issue", "status"], &[GH], Operands::None),
    reads(&["gh", "pr", "view"], &[GH, GH_VIEW], NUMBERED),
    reads(&["gh", "pr", "list"], &[GH, GH_LIST], Operands::None),
    reads(&["gh", "pr", "status"], &[GH], Operands::None),
    runs(&["npm", "run", "lint"], &[], Operands::None),
    runs(&["npm", "run", "build"], &[], Operands::None),
    runs(&["npm", "run", "check"], &[], Operands::None),
    runs(&["npm", "run", "typecheck"], &[], Operands::None),
    runs(&["pnpm", "lint"], &[], Operands::None),
    runs(&["pnpm", "build"], &[], Operands::None),
    runs(&["pnpm", "check"], &[], Operands::None),
    runs(&["pnpm", "typecheck"], &[], Operands::None),
    runs(&["pnpm", "run", "lint"], &[], Operands::None),
    runs(&["pnpm", "run", "build"], &[], Operands::None),
    runs(&["pnpm", "run", "check"], &[], Operands::None),
    runs(&["pnpm", "run", "typecheck"], &[], Operands::None),
    runs(&["yarn", "lint"], &[], Operands::None),
    runs(&["yarn", "build"], &[], Operands::None),
    // `yarn check` is a command of yarn's own.
    runs(&["yarn", "typecheck"], &[], Operands::None),
    runs(&["yarn", "run", "lint"], &[], Operands::None),
    runs(&["yarn", "run", "build"], &[], Operands::None),
    runs(&["yarn", "run", "check"], &[], Operands::None),
    runs(&["yarn", "run", "typecheck"], &[], Operands::None),
    runs(&["tsc"], &[TSC], Operands::None),
    runs(&["eslint"], &[ESLINT], PATHS),
    runs(&["prettier"], &[PRETTIER], PATHS),
    runs(&["cargo", "check"], &[CARGO], Operands::None),
    runs(&["cargo", "clippy"], &[CARGO], Operands::None),
    runs(&["cargo", "build"], &[CARGO], Operands::None),
    runs(&["vitest", "run"], &[], ONE_FILE),
    runs(&["pnpm", "vitest", "run"], &[], ONE_FILE),
    runs(&["yarn", "vitest", "run"], &[], ONE_FILE),
    runs(&["npm", "test", "--", "--run"], &[], ONE_FILE),
    runs(&["npm", "run", "test", "--", "--run"], &[], ONE_FILE),
    runs(&["pnpm", "test", "--", "--run"], &[], ONE_FILE),
    runs(&["pnpm", "run", "test", "--", "--run"], &[], ONE_FILE),
    runs(&["yarn", "test", "--run"], &[], ONE_FILE),
    runs(&["node", "--test"], &[], ONE_FILE),
];

/// Whether the table has any command of this program.
pub(super) fn is_program(word: &str) -> bool {
    RULES.iter().any(|rule| rule.words[0] == word)
}

/// A command that is in the table, taken apart.
#[derive(Debug)]
pub(super) struct Known<'a> {
    pub(super) rule: &'static Rule,
    /// The options it has, by name.
    pub(super) options: Vec<&'static str>,
    pub(super) operands: Vec<&'a str>,
    /// How many operands come before `--`.
    pub(super) dashes: Option<usize>,
}

impl<'a> Known<'a> {
    /// The rule for these words, if every option is known.
    pub(super) fn find(words: &'a [String]) -> Option<Self> {
        let begins =
            |rule: &&Rule| rule.words.len() <= words.len() && rule.words.iter().zip(words).all(|(a, b)| a == b);
        let rule = RULES.iter().filter(begins).max_by_key(|rule| rule.words.len())?;
        let mut known = Self { rule, options: Vec::new(), operands: Vec::new(), dashes: None };
        let mut rest = words[rule.words.len()..].iter().map(String::as_str);
        while let Some(word) = rest.next() {
            if known.dashes.is_some() || !word.starts_with('-') {
                known.operands.push(word);
            } else if word == "--" {
                known.dashes = Some(known.operands.len());
            } else {
                let (option, value) = rule.option(word)?;
                if let (Value::Required(check), None) = (option.value, value)
                    && !check(rest.next()?)
                {
                    return None;
                }
                known.options.push(option.name);
            }
        }
        Some(known)
    }
}

impl Rule {
    /// The option that a word is, and the value that is joined to it.
    fn option<'a>(&self, word: &'a str) -> Option<(Opt, Option<&'a str>)> {
        let all = || self.options.iter().copied().flatten().copied();
        if let Some(option) = all().find(|option| option.name == word) {
            return Some((option, None));
        }
        if word.starts_with("--") {
            let (name, value) = word.split_once('=')?;
            let option = all().find(|option| option.name == name)?;
            let (Value::Optional(check) | Value::Required(check)) = option.value else { return None };
            return check(value).then_some((option, Some(value)));
        }
        let letters = &word[1..];
        match self.words {
            ["ls"] if letters.chars().all(|letter| LS_LETTERS.contains(letter)) => {
                return Some((flag("--all"), None));
            }
            // `-5` counts lines, or commits.
            ["head" | "tail"] | ["git", "log" | "show"] if is_number(letters) => return Some((flag("-n"), None)),
            _ => {}
        }
        all().find_map(|option| {
            let value = word.strip_prefix(option.name).filter(|value| !value.is_empty())?;
            let Value::Required(check) = option.value else { return None };
            (option.name.len() == 2 && check(value)).then_some((option, Some(value)))
        })
    }

    /// It writes a message into the repository's history, which may be approved only if that is all it does.
    pub(super) fn takes_message(&self) -> bool {
        matches!(self.words, ["git", "commit" | "tag"])
    }

    /// Whether it shows what is in the files that it names.
    pub(super) fn reads_files(&self) -> bool {
        matches!(self.operands, Operands::Files { .. } | Operands::Git)
    }
}

fn is_number(text: &str) -> bool {
    (1..=9).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_line_count(text: &str) -> bool {
    is_number(text.strip_prefix(['+', '-']).unwrap_or(text))
}

/// A sed program that prints lines from here to there.
fn is_print_range(text: &str) -> bool {
    let Some(range) = text.strip_suffix('p') else { return false };
    match range.split_once(',') {
        Some((from, to)) => is_number(from) && is_number(to),
        None => is_number(range),
    }
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_,.:/%".contains(&byte))
}

/// Any text that is no option.
fn is_text(text: &str) -> bool {
    !text.starts_with('-') && text != MESSAGE_WORD
}

/// A format of git's that asks nobody else: `%G` starts the program that checks signatures.
fn is_format(text: &str) -> bool {
    is_text(text) && !text.contains("%G") && !text.contains("%(")
}

/// A number, a branch, a package: no path out of here, no address.
pub(super) fn is_plain_name(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes.next().is_some_and(|first| first.is_ascii_alphanumeric())
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || b"-_./@".contains(&byte))
        && !text.contains("..")
        && !text.contains("//")
}

/// `OWNER/NAME`. With a host in front, the request would go there.
fn is_repository(text: &str) -> bool {
    text.split_once('/').is_some_and(|(owner, name)| is_plain_name(owner) && is_plain_name(name) && !name.contains('/'))
}

/// What git may read as a revision or a range of them, or as a path.
pub(super) fn is_revision(text: &str) -> bool {
    let fits = |c: char| c.is_alphanumeric() || "-_./@{}^~:+, ".contains(c);
    !text.starts_with(['-', ':']) && !text.is_empty() && text.chars().all(fits)
}

fn is_message(text: &str) -> bool {
    text == MESSAGE_WORD
}

fn is_dash(text: &str) -> bool {
    text == "-"
}
