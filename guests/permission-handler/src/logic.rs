//! Whether a shell command may run without a question: one simple command that is known to only read.
//!
//! The path of a decision: [`command`] turns the text into plain words, or into nothing if a shell could read it in any other
//! way; [`table`] says which programs, options and operands are known; [`files`] keeps operands inside the repository and away
//! from secrets; [`user_rules`] has the last word. There is no "unsafe" here, only "understood" and "no opinion".

mod command;
mod files;
mod table;
mod user_rules;

pub use command::{Command, MAX_COMMAND_BYTES};
pub use files::{Folders, Kind};
pub use user_rules::{UserRules, forbids_approval};

use table::{Known, Operands};

/// Whether the command may run without a question. `kind` says what lies at a path below the repository's root, where no part
/// of the path is a link.
pub fn approves(
    command: &Command,
    folders: Option<&Folders>,
    runs_project_code: bool,
    kind: &dyn Fn(&str) -> Option<Kind>,
) -> Option<Approval> {
    let known = Known::find(&command.words)?;
    if known.rule.runs_project_code && !runs_project_code {
        return None;
    }
    if command.message.is_some() != known.rule.takes_message() {
        return None;
    }
    let paths = known.operands_are_fine(folders, kind)?;
    Some(Approval { paths, reads_files: known.rule.reads_files() })
}

/// An approved command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approval {
    /// The paths that it names, below the root.
    pub paths: Vec<String>,
    /// It shows what is in files.
    pub reads_files: bool,
}

impl Known<'_> {
    /// Checks the operands; the paths among them, below the root.
    fn operands_are_fine(&self, folders: Option<&Folders>, kind: &dyn Fn(&str) -> Option<Kind>) -> Option<Vec<String>> {
        let words = self.operands.iter().copied();
        match self.rule.operands {
            Operands::None => self.operands.is_empty().then(Vec::new),
            Operands::Plain { most } => {
                let plain = self.operands.len() <= most && words.clone().all(table::is_plain_name);
                plain.then(Vec::new)
            }
            Operands::PatternsIf(options) => {
                let listed = options.iter().any(|option| self.options.contains(option));
                (listed || self.operands.is_empty()).then(Vec::new)
            }
            Operands::Git => self.git_operands(folders),
            Operands::Files { leading, least, most, folders_too } => {
                let mut words = words;
                if let Some(check) = leading
                    && !check(words.next()?)
                {
                    return None;
                }
                let paths: Vec<_> = words.map(|word| folders?.resolve(word, kind)).collect::<Option<_>>()?;
                let fits = (least..=most).contains(&paths.len());
                let plain = paths.iter().all(|path| match kind(path) {
                    Some(Kind::File) => true,
                    Some(Kind::Folder) => folders_too,
                    None => false,
                });
                (fits && plain).then_some(paths)
            }
        }
    }

    /// Revisions and, at the latest behind `--`, paths. Neither need exist; both stay inside the repository.
    fn git_operands(&self, folders: Option<&Folders>) -> Option<Vec<String>> {
        if self.operands.is_empty() {
            return Some(Vec::new());
        }
        // Outside a repository `git diff A B` compares any two files.
        let folders = folders?;
        let mut paths = Vec::new();
        for (at, &word) in self.operands.iter().enumerate() {
            let behind_dashes = self.dashes.is_some_and(|dashes| at >= dashes);
            let path = if behind_dashes {
                if word.contains(['*', '?', '[', ':']) {
                    return None;
                }
                word
            } else {
                if !table::is_revision(word) {
                    return None;
                }
                // `REV:PATH` names a file as well as `PATH` does.
                word.split_once(':').map_or(word, |(_, path)| path)
            };
            paths.push(folders.resolve_named(path)?);
        }
        Some(paths)
    }
}

#[cfg(test)]
mod tests;
