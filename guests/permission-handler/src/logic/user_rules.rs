//! The user's own rules in the agent's settings: what they want to be asked about, or have forbidden, is never approved here.
//!
//! The agent's patterns are read generously: a rule that might be about the command is. What cannot be understood forbids
//! every approval.

use serde_json::Value;

use super::{Approval, Command, Folders};

/// The rules of all settings files that say "ask" or "deny".
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UserRules {
    rules: Vec<Rule>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Rule {
    tool: String,
    /// What is in the parentheses.
    about: Option<String>,
}

/// A settings file, or a rule in it, that was not understood. Nothing may be approved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotUnderstood;

impl UserRules {
    /// Adds the rules of a settings file (strict JSON, as the agent reads it).
    ///
    /// # Errors
    ///
    /// [`NotUnderstood`] if the file is not JSON or a rule is not a text.
    pub fn add(&mut self, settings: &str) -> Result<(), NotUnderstood> {
        let settings: Value = serde_json::from_str(settings).map_err(|_| NotUnderstood)?;
        let settings = settings.as_object().ok_or(NotUnderstood)?;
        let permissions = match settings.get("permissions") {
            None | Some(Value::Null) => None,
            Some(Value::Object(permissions)) => Some(permissions),
            Some(_) => return Err(NotUnderstood),
        };
        for list in ["deny", "ask"] {
            for place in [permissions, Some(settings)] {
                match place.and_then(|place| place.get(list)) {
                    None | Some(Value::Null) => {}
                    Some(Value::Array(rules)) => {
                        for rule in rules {
                            self.rules.push(Rule::parse(rule.as_str().ok_or(NotUnderstood)?)?);
                        }
                    }
                    Some(_) => return Err(NotUnderstood),
                }
            }
        }
        Ok(())
    }

    /// Whether a rule may be about the command, as it was written or as it is understood, or about a file it reads.
    pub fn concern(&self, text: &str, command: &Command, approval: &Approval, folders: Option<&Folders>) -> bool {
        let plain = command.words.join(" ");
        let root = folders.map_or("", Folders::root);
        self.rules.iter().any(|rule| {
            if fast_glob::glob_match(&rule.tool, "Bash") {
                return rule
                    .about
                    .as_deref()
                    .is_none_or(|pattern| is_about(pattern, text.trim_matches(' ')) || is_about(pattern, &plain));
            }
            approval.reads_files
                && fast_glob::glob_match(&rule.tool, "Read")
                && rule.about.as_deref().is_none_or(|pattern| {
                    // Without operands, the command reads whatever is there.
                    approval.paths.is_empty() || approval.paths.iter().any(|path| is_about_path(pattern, root, path))
                })
        })
    }
}

impl Rule {
    fn parse(text: &str) -> Result<Self, NotUnderstood> {
        let text = text.trim();
        let (tool, about) = match text.split_once('(') {
            None => (text, None),
            Some((tool, rest)) => (tool, Some(rest.strip_suffix(')').ok_or(NotUnderstood)?.to_owned())),
        };
        Ok(Self { tool: tool.trim().to_owned(), about })
    }
}

/// Whether a pattern of the agent's may be about a command. `*` is any text; `:*` and ` *` at the end also mean none.
fn is_about(pattern: &str, command: &str) -> bool {
    let pattern = pattern.trim();
    let stem = pattern.strip_suffix(":*").or_else(|| pattern.strip_suffix(" *"));
    let (stem, open) = stem.map_or((pattern, false), |stem| (stem.trim_end(), true));
    let mut pieces = stem.split('*');
    let Some(mut rest) = pieces.next().and_then(|first| command.strip_prefix(first)) else { return false };
    let mut last = None;
    for piece in pieces {
        let Some(at) = rest.find(piece) else { return false };
        rest = &rest[at + piece.len()..];
        last = Some(piece);
    }
    open || last.map_or(rest.is_empty(), |last| command.ends_with(last))
}

/// Whether a pattern for paths may be about a file, wherever the pattern is anchored; a folder stands for what is in it.
fn is_about_path(pattern: &str, root: &str, path: &str) -> bool {
    let core = pattern.trim().trim_start_matches(['~', '.']).trim_matches('/');
    let absolute = format!("{root}/{path}");
    [path, absolute.trim_start_matches('/')].iter().any(|path| {
        ["", "**/"]
            .iter()
            .any(|lead| ["", "/**"].iter().any(|tail| fast_glob::glob_match(format!("{lead}{core}{tail}"), path)))
    })
}

/// Whether Codex's own rules (files of `prefix_rule(…)`) hold anything back. They are programs, so no more is read from them.
pub fn forbids_approval(rules: &str) -> bool {
    ["prompt", "forbidden"].iter().any(|word| rules.contains(word))
}
