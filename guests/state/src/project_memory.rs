//! What is known about the project, `project-memory.json`: found by looking at it, learned from tools, told by the user.
//!
//! A scan replaces what it found before and nothing else; notes, directives, hot paths and members that nobody here knows stay.
//! Lists are bounded: the user's directives go last. Languages and frameworks are objects; plain names, an older shape, are read
//! too.

mod merge;

use std::{collections::BTreeMap, path::Path};

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::{Area, Error, Fields, Locker, Store, Timestamp, file::Durability, units};

/// Age from which the project is looked at again, in milliseconds: 24 hours.
pub const RESCAN_MS: i64 = 24 * 60 * 60 * 1000;

/// Most hot paths that are kept.
pub const MAX_HOT_PATHS: usize = 50;

/// Most notes that are kept.
pub const MAX_NOTES: usize = 20;

/// Most directives of the user that are kept.
pub const MAX_DIRECTIVES: usize = 20;

/// Longest directive, in UTF-16 units: twenty of them fit into what one guest may say to the model.
pub const MAX_DIRECTIVE_UNITS: usize = 400;

/// Longest note, in UTF-16 units.
pub const MAX_NOTE_UNITS: usize = 1000;

/// Longest path that gets hot, in bytes; a longer one is generated.
const MAX_PATH_BYTES: usize = 512;

/// Longest command that is learned, in bytes.
const MAX_COMMAND_BYTES: usize = 200;

/// Days after which the count of a hot path that nobody used is halved, at a scan.
const DECAY_MS: i64 = 7 * 24 * 60 * 60 * 1000;

const FILE: &str = "project-memory.json";
const VERSION: &str = "1.0.0";

/// Whether a hot path is a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathKind {
    /// It was read or written.
    File,
    /// It was searched.
    Directory,
}

impl PathKind {
    fn name(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Directory => "directory",
        }
    }
}

/// A path that tools used often or lately.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HotPath {
    /// Relative to the project's root, with `/`.
    pub path: String,
    /// How often.
    pub count: u64,
    /// When last.
    pub last_used: Timestamp,
    /// What it is.
    pub kind: PathKind,
}

impl HotPath {
    /// How hot it is: often counts most, then lately, and a file more than a folder.
    pub fn score(&self, now: Timestamp) -> i64 {
        let hours = now.ms_since(self.last_used) / 3_600_000;
        let count = i64::try_from(self.count.min(1_000_000)).unwrap_or(0);
        let kind = if self.kind == PathKind::File { 6 } else { 3 };
        count * 10 + (120 - hours).clamp(0, 120) + kind
    }

    fn from_fields(fields: &Fields) -> Option<Self> {
        Some(Self {
            path: fields.text("path")?.to_owned(),
            count: fields.count("accessCount").unwrap_or(1),
            last_used: fields.time("lastAccessed").unwrap_or(Timestamp::from_epoch_ms(0)),
            kind: if fields.text("type") == Some("directory") { PathKind::Directory } else { PathKind::File },
        })
    }
}

/// A fact about the project or its surroundings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// When it was noted.
    pub written: Timestamp,
    /// A word for what it is about, such as `runtime`.
    pub category: String,
    /// The fact.
    pub content: String,
    /// Whether a person wrote it.
    pub is_manual: bool,
}

/// Something that the user wants to be obeyed in every session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Directive {
    /// When it was said last.
    pub said: Timestamp,
    /// The user's words.
    pub text: String,
    /// Whether it is a must.
    pub is_high: bool,
}

/// A command of the project that people run often.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command {
    /// Builds it.
    Build,
    /// Tests it.
    Test,
    /// Checks its style.
    Lint,
    /// Starts it for development.
    Dev,
}

impl Command {
    /// The member that holds it.
    fn member(self) -> &'static str {
        match self {
            Self::Build => "buildCommand",
            Self::Test => "testCommand",
            Self::Lint => "lintCommand",
            Self::Dev => "devCommand",
        }
    }
}

/// What looking at the project found: what a scan replaces.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "the members of the file, by their names there")]
pub struct Scan {
    pub tech_stack: TechStack,
    pub build: Build,
    pub conventions: Conventions,
    pub structure: Structure,
    pub directory_map: BTreeMap<String, Directory>,
}

/// Languages and tools.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "the members of the file, by their names there")]
pub struct TechStack {
    pub languages: Vec<Language>,
    pub frameworks: Vec<Framework>,
    pub build_tools: Vec<String>,
    pub package_manager: Option<String>,
    pub runtime: Option<String>,
}

/// A language and the files that show it.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[expect(missing_docs, reason = "the members of the file, by their names there")]
pub struct Language {
    pub name: String,
    pub version: Option<String>,
    pub confidence: &'static str,
    pub markers: Vec<String>,
}

/// A framework, by what it is for.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[expect(missing_docs, reason = "the members of the file, by their names there")]
pub struct Framework {
    pub name: String,
    pub version: Option<String>,
    pub category: &'static str,
}

/// The project's commands.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "the members of the file, by their names there")]
pub struct Build {
    pub build_command: Option<String>,
    pub test_command: Option<String>,
    pub lint_command: Option<String>,
    pub dev_command: Option<String>,
    pub scripts: BTreeMap<String, String>,
}

/// How its code is written.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "the members of the file, by their names there")]
pub struct Conventions {
    pub naming_style: Option<String>,
    pub import_style: Option<String>,
    pub test_pattern: Option<String>,
    pub file_organization: Option<String>,
}

/// How its folders are laid out.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "the members of the file, by their names there")]
pub struct Structure {
    pub is_monorepo: bool,
    pub workspaces: Vec<String>,
    pub main_directories: Vec<String>,
    pub git_branches: Option<GitBranches>,
}

/// What git says of its branches.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "the members of the file, by their names there")]
pub struct GitBranches {
    pub default_branch: String,
    pub branching_strategy: Option<String>,
}

/// What a folder is for.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "the members of the file, by their names there")]
pub struct Directory {
    pub path: String,
    pub purpose: Option<String>,
    pub file_count: usize,
    pub last_accessed: i64,
    pub key_files: Vec<String>,
}

/// The file in memory.
#[derive(Debug, Clone, PartialEq)]
pub struct ProjectMemory {
    fields: Fields,
}

impl ProjectMemory {
    /// A memory that knows nothing yet and wants a scan.
    pub fn new(project_root: Option<&str>) -> Self {
        let mut fields = Fields::default();
        fields.set("version", VERSION);
        // In the past, and not 0: the original takes 0 for no file at all.
        fields.set("lastScanned", 1);
        fields.set("projectRoot", project_root.unwrap_or_default());
        let scan = serde_json::to_value(Scan::default()).unwrap_or_default();
        for (name, value) in scan.as_object().into_iter().flatten() {
            fields.set(name, value.clone());
        }
        for list in ["customNotes", "hotPaths", "userDirectives"] {
            fields.set(list, Value::Array(Vec::new()));
        }
        Self { fields }
    }

    /// A memory with these members.
    pub fn from_fields(fields: Fields) -> Self {
        Self { fields }
    }

    /// The members.
    pub fn fields(&self) -> &Fields {
        &self.fields
    }

    /// Whether a scan has been here: there are a version, a root and a time.
    pub fn is_complete(&self) -> bool {
        self.fields.text("version").is_some()
            && self.fields.text("projectRoot").is_some()
            && self.fields.time("lastScanned").is_some_and(|time| time.epoch_ms() > 0)
    }

    /// When the project was looked at last.
    pub fn last_scanned(&self) -> Option<Timestamp> {
        self.fields.time("lastScanned")
    }

    /// Whether the project has to be looked at: never done, too long ago, or in the future, which is a wrong clock.
    pub fn wants_scan(&self, now: Timestamp) -> bool {
        !self.is_complete() || !self.last_scanned().is_some_and(|time| time.is_within(RESCAN_MS, now))
    }

    /// Names of the languages, the one with most markers first.
    pub fn languages(&self) -> Vec<String> {
        let mut named: Vec<_> = items(self.tech_stack("languages"))
            .map(|item| {
                let markers = item.get("markers").and_then(Value::as_array).map_or(0, Vec::len);
                (markers, item)
            })
            .filter_map(|(markers, item)| Some((markers, name_of(item)?)))
            .collect();
        named.sort_by_key(|(markers, _)| std::cmp::Reverse(*markers));
        named.into_iter().map(|(_, name)| name).collect()
    }

    /// Names of the frameworks, those that shape most of the code first.
    pub fn frameworks(&self) -> Vec<String> {
        const ORDER: [&str; 5] = ["fullstack", "frontend", "backend", "testing", "build"];
        let rank = |item: &Value| {
            let category = item.get("category").and_then(Value::as_str).unwrap_or_default();
            ORDER.iter().position(|known| *known == category).unwrap_or(ORDER.len())
        };
        let mut named: Vec<_> =
            items(self.tech_stack("frameworks")).filter_map(|item| Some((rank(item), name_of(item)?))).collect();
        named.sort_by_key(|(rank, _)| *rank);
        named.into_iter().map(|(_, name)| name).collect()
    }

    /// Names of the tools that build the project.
    pub fn build_tools(&self) -> Vec<String> {
        items(self.tech_stack("buildTools")).filter_map(name_of).collect()
    }

    /// The package manager.
    pub fn package_manager(&self) -> Option<&str> {
        text_of(self.tech_stack("packageManager"))
    }

    /// The runtime with its version.
    pub fn runtime(&self) -> Option<&str> {
        text_of(self.tech_stack("runtime"))
    }

    /// One of the project's commands.
    pub fn command(&self, command: Command) -> Option<&str> {
        text_of(self.fields.get("build")?.get(command.member()))
    }

    /// The notes, in the file's order.
    pub fn notes(&self) -> Vec<Note> {
        self.fields
            .objects("customNotes")
            .filter_map(|note| {
                Some(Note {
                    written: note.time("timestamp").unwrap_or(Timestamp::from_epoch_ms(0)),
                    category: note.text("category").unwrap_or("other").to_owned(),
                    content: note.text("content")?.to_owned(),
                    is_manual: note.text("source") == Some("manual"),
                })
            })
            .collect()
    }

    /// The hot paths, in the file's order.
    pub fn hot_paths(&self) -> Vec<HotPath> {
        self.fields.objects("hotPaths").filter_map(|path| HotPath::from_fields(&path)).collect()
    }

    /// The user's directives: musts first, then the newest.
    pub fn directives(&self) -> Vec<Directive> {
        let mut directives: Vec<_> = self
            .fields
            .objects("userDirectives")
            .filter_map(|directive| {
                Some(Directive {
                    said: directive.time("timestamp").unwrap_or(Timestamp::from_epoch_ms(0)),
                    text: directive.text("directive")?.to_owned(),
                    is_high: directive.text("priority") == Some("high"),
                })
            })
            .collect();
        directives.sort_by_key(|directive| std::cmp::Reverse((directive.is_high, directive.said)));
        directives
    }

    /// A tool used a path. Of more than [`MAX_HOT_PATHS`] the least hot one goes, of several the one that was not used for
    /// longest, but not this one. Says whether it is kept.
    pub fn touch(&mut self, path: &str, kind: PathKind, now: Timestamp) -> bool {
        if path.is_empty() || path.len() > MAX_PATH_BYTES {
            return false;
        }
        let paths = self.list_mut("hotPaths");
        let is_it = |item: &Value| item.get("path").and_then(Value::as_str) == Some(path);
        if let Some(known) = paths.iter_mut().find(|item| is_it(item)).and_then(Value::as_object_mut) {
            let mut fields = Fields::from(std::mem::take(known));
            fields.set("accessCount", fields.count("accessCount").unwrap_or(0).saturating_add(1));
            fields.set("lastAccessed", now.epoch_ms());
            *known = fields.into();
        } else {
            paths.push(json!({"path": path, "accessCount": 1, "lastAccessed": now.epoch_ms(), "type": kind.name()}));
        }
        while paths.len() > MAX_HOT_PATHS {
            let coldest = (0..paths.len())
                .filter(|&at| !is_it(&paths[at]))
                .min_by_key(|&at| hot(&paths[at]).map(|path| (path.score(now), path.last_used)));
            let Some(coldest) = coldest else { break };
            paths.remove(coldest);
        }
        paths.sort_by_key(|item| std::cmp::Reverse(hot(item).map(|path| path.count)));
        true
    }

    /// A fact was learned, or told by a person. Says whether it is new.
    ///
    /// Of more than [`MAX_NOTES`] the oldest goes, and what a person wrote only when there is nothing else.
    pub fn add_note(&mut self, category: &str, content: &str, is_manual: bool, now: Timestamp) -> bool {
        let content = content.trim();
        if content.is_empty() || units(content) > MAX_NOTE_UNITS || self.has_note(category, content) {
            return false;
        }
        let source = if is_manual { "manual" } else { "learned" };
        let notes = self.list_mut("customNotes");
        notes.push(json!({"timestamp": now.epoch_ms(), "source": source, "category": category, "content": content}));
        while notes.len() > MAX_NOTES {
            let age = |note: &Value| {
                let note = fields_of(note);
                (note.text("source") == Some("manual"), note.time("timestamp"))
            };
            let Some(oldest) = (0..notes.len()).min_by_key(|&at| age(&notes[at])) else { break };
            notes.remove(oldest);
        }
        self.has_note(category, content)
    }

    /// Whether this is noted already.
    pub fn has_note(&self, category: &str, content: &str) -> bool {
        self.notes().iter().any(|note| note.category == category && note.content == content)
    }

    /// The user wants something to be obeyed. Says whether it is new.
    ///
    /// Of more than [`MAX_DIRECTIVES`] the oldest that is no must goes, else the oldest must.
    pub fn add_directive(&mut self, text: &str, context: &str, is_high: bool, now: Timestamp) -> bool {
        let text = text.trim();
        let folded = text.to_lowercase();
        let is_known = self.directives().iter().any(|known| known.text.to_lowercase() == folded);
        if text.is_empty() || units(text) > MAX_DIRECTIVE_UNITS || is_known {
            return false;
        }
        let priority = if is_high { "high" } else { "normal" };
        let directives = self.list_mut("userDirectives");
        directives.push(json!({
            "timestamp": now.epoch_ms(), "directive": text, "context": context, "source": "explicit", "priority": priority,
        }));
        while directives.len() > MAX_DIRECTIVES {
            let rank = |directive: &Value| {
                let directive = fields_of(directive);
                (directive.text("priority") == Some("high"), directive.time("timestamp"))
            };
            let Some(least) = (0..directives.len()).min_by_key(|&at| rank(&directives[at])) else { break };
            directives.remove(least);
        }
        true
    }

    /// A command was seen to work. One that the project's own files name stays. Says whether something changed.
    pub fn learn_command(&mut self, command: Command, line: &str) -> bool {
        const LEARNED: &str = "learned";
        let line = line.trim();
        if line.is_empty() || line.len() > MAX_COMMAND_BYTES || self.command(command) == Some(line) {
            return false;
        }
        let is_learned = items(self.fields.get("build").and_then(|build| build.get(LEARNED)))
            .any(|name| name.as_str() == Some(command.member()));
        if self.command(command).is_some() && !is_learned {
            return false;
        }
        let build = self.object_mut("build");
        build.insert(command.member().to_owned(), json!(line));
        if !is_learned {
            match build.get_mut(LEARNED).and_then(Value::as_array_mut) {
                Some(names) => names.push(json!(command.member())),
                None => drop(build.insert(LEARNED.to_owned(), json!([command.member()]))),
            }
        }
        true
    }

    /// Takes in what looking at the project found.
    ///
    /// Members of the replaced objects that no scan makes stay, and so do learned commands where the scan found none. The counts
    /// of hot paths that nobody used for a week are halved.
    pub fn apply_scan(&mut self, scan: &Scan, project_root: &str, now: Timestamp) {
        if self.fields.text("version").is_none() {
            self.fields.set("version", VERSION);
        }
        self.fields.set("lastScanned", now.epoch_ms());
        self.fields.set("projectRoot", project_root);
        let learned: Vec<_> = [Command::Build, Command::Test, Command::Lint, Command::Dev]
            .into_iter()
            .filter(|command| {
                items(self.fields.get("build").and_then(|build| build.get("learned")))
                    .any(|name| name.as_str() == Some(command.member()))
            })
            .filter_map(|command| Some((command, self.command(command)?.to_owned())))
            .collect();
        let found = serde_json::to_value(scan).unwrap_or_default();
        for (name, value) in found.as_object().into_iter().flatten() {
            if name == "directoryMap" {
                self.fields.set(name, value.clone());
                continue;
            }
            let target = self.object_mut(name);
            for (member, value) in value.as_object().into_iter().flatten() {
                target.insert(member.clone(), value.clone());
            }
        }
        self.object_mut("build").shift_remove("learned");
        for (command, line) in learned {
            self.learn_command(command, &line);
        }
        for list in ["customNotes", "userDirectives"] {
            self.list_mut(list);
        }
        for item in self.list_mut("hotPaths") {
            let Some(path) = hot(item).filter(|path| !path.last_used.is_within(DECAY_MS, now)) else { continue };
            item["accessCount"] = json!((path.count / 2).max(1));
        }
    }

    fn tech_stack(&self, member: &str) -> Option<&Value> {
        self.fields.get("techStack")?.get(member)
    }

    /// The member as a list of objects; what else it held is no entry.
    fn list_mut(&mut self, name: &str) -> &mut Vec<Value> {
        if !self.fields.get(name).is_some_and(Value::is_array) {
            self.fields.set(name, Value::Array(Vec::new()));
        }
        let list = self.fields.get_mut(name).and_then(Value::as_array_mut).expect("it was made a list");
        list.retain(Value::is_object);
        list
    }

    fn object_mut(&mut self, name: &str) -> &mut Map<String, Value> {
        if !self.fields.get(name).is_some_and(Value::is_object) {
            self.fields.set(name, Value::Object(Map::new()));
        }
        self.fields.get_mut(name).and_then(Value::as_object_mut).expect("it was made an object")
    }
}

fn items(list: Option<&Value>) -> impl Iterator<Item = &Value> {
    list.and_then(Value::as_array).into_iter().flatten()
}

/// A plain name, or the name of an object.
fn name_of(item: &Value) -> Option<String> {
    text_of(Some(item)).or_else(|| text_of(item.get("name"))).map(str::to_owned)
}

fn text_of(value: Option<&Value>) -> Option<&str> {
    value?.as_str().map(str::trim).filter(|text| !text.is_empty())
}

fn fields_of(item: &Value) -> Fields {
    item.as_object().cloned().unwrap_or_default().into()
}

fn hot(item: &Value) -> Option<HotPath> {
    HotPath::from_fields(&fields_of(item))
}

/// Whose memory is changed, and what a power cut may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Occasion<'a> {
    /// A tool taught something: only where a scan has been, and cheaply.
    Tool,
    /// The project with this root was scanned: the file is made where there is none, and then holds nothing that another scan would
    /// not find.
    Scan(&'a str),
    /// The user said something: the file is made where there is none, with this root.
    User(Option<&'a str>),
}

impl Store {
    /// Whether there is a project memory: one question to the file system.
    pub fn has_memory(&self) -> bool {
        self.exists(Path::new(FILE))
    }

    /// The project memory; absent if there is none.
    ///
    /// # Errors
    ///
    /// What keeps the file from being read.
    pub fn read_memory(&self) -> Result<Option<ProjectMemory>, Error> {
        Ok(self.read_fields(Path::new(FILE))?.map(ProjectMemory::from_fields))
    }

    /// Changes the memory under its lock, if `change` says that it did.
    ///
    /// What is there and is no JSON is set aside when the user is to be heard or the project was scanned; a tool leaves it to the next scan.
    ///
    /// # Errors
    ///
    /// What keeps the lock from being taken, or the file from being read or written.
    pub fn change_memory<L: Locker>(
        &self,
        locker: &L,
        occasion: Occasion<'_>,
        change: impl FnOnce(&mut ProjectMemory) -> bool,
    ) -> Result<(), Error> {
        let path = Path::new(FILE);
        self.locked_in(locker, Area::Root, |store| {
            let (mut memory, durability) = match (occasion, store.read_memory()) {
                (Occasion::Tool, Ok(Some(memory))) if memory.is_complete() => (memory, Durability::Rename),
                (Occasion::Tool, Ok(_)) => return Ok(()),
                (Occasion::Scan(_) | Occasion::User(_), Ok(Some(memory))) => (memory, Durability::Synced),
                (Occasion::Scan(root), Ok(None) | Err(Error::Corrupt { .. } | Error::TooLarge { .. })) => {
                    (ProjectMemory::new(Some(root)), Durability::Rename)
                }
                (Occasion::User(root), Ok(None) | Err(Error::Corrupt { .. } | Error::TooLarge { .. })) => {
                    (ProjectMemory::new(root), Durability::Synced)
                }
                (_, Err(error)) => return Err(error),
            };
            if change(&mut memory) { store.replace_json(path, &memory.fields, durability) } else { Ok(()) }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        lock::testing::{NeverFree, ThreadLocker},
        testing::{fields, now, plant, store},
    };
    use std::{fs, thread};

    const HOUR: i64 = 3_600_000;

    fn memory(over: &Value) -> ProjectMemory {
        let mut memory = ProjectMemory::new(Some("/p"));
        memory.fields.set("lastScanned", now().epoch_ms() - HOUR);
        for (name, value) in over.as_object().expect("an object") {
            memory.fields.set(name, value.clone());
        }
        memory
    }

    fn ms(age: i64) -> i64 {
        now().epoch_ms() - age
    }

    #[test]
    fn a_memory_is_scanned_when_it_is_new_incomplete_old_or_from_the_future() {
        assert!(ProjectMemory::new(Some("/p")).wants_scan(now()));
        assert!(ProjectMemory::from_fields(fields(json!({"a": 1}))).wants_scan(now()));
        for (age, wants) in [(HOUR, false), (24 * HOUR, false), (25 * HOUR, true), (-HOUR, true)] {
            assert_eq!(memory(&json!({"lastScanned": ms(age)})).wants_scan(now()), wants, "{age}");
        }
        assert!(memory(&json!({"version": ""})).wants_scan(now()));
    }

    #[test]
    fn both_shapes_of_a_tech_stack_are_read() {
        let old = memory(
            &json!({"techStack": {"languages": ["typescript"], "frameworks": ["express"], "buildTools": ["esbuild"]}}),
        );
        assert_eq!(old.languages(), ["typescript"]);
        assert_eq!(old.frameworks(), ["express"]);
        assert_eq!(old.build_tools(), ["esbuild"]);
        assert_eq!(old.package_manager(), None);
        let new = memory(&json!({"techStack": {
            "languages": [{"name": "Go", "markers": ["a"]}, {"name": "Rust", "markers": ["a", "b"]}, 7, {"name": 7}],
            "frameworks": [{"name": "vite", "category": "build"}, {"name": "next", "category": "fullstack"}],
            "packageManager": "pnpm", "runtime": "Node.js 20",
        }}));
        assert_eq!(new.languages(), ["Rust", "Go"]);
        assert_eq!(new.frameworks(), ["next", "vite"]);
        assert_eq!((new.package_manager(), new.runtime()), (Some("pnpm"), Some("Node.js 20")));
        for broken in [json!(7), json!([]), json!({"languages": 7, "frameworks": {"a": 1}, "runtime": [1]})] {
            let memory =
                memory(&json!({"techStack": broken, "hotPaths": broken, "userDirectives": broken, "build": broken}));
            assert!(memory.languages().is_empty() && memory.frameworks().is_empty() && memory.runtime().is_none());
            assert!(memory.hot_paths().is_empty() && memory.directives().is_empty() && memory.notes().is_empty());
        }
    }

    #[test]
    fn a_used_path_is_counted_once_a_use_and_the_coldest_makes_room() {
        let old: Vec<_> = (0..50)
            .map(|at| {
                let last_used = ms((20 + i64::from(at % 7 == 3)) * 24 * HOUR + i64::from(at));
                json!({"path": format!("old/{at}"), "accessCount": 2, "lastAccessed": last_used, "type": "file", "mine": at})
            })
            .collect();
        let mut memory = memory(&json!({"hotPaths": old}));
        assert!(memory.touch("src/today.py", PathKind::File, now()));
        assert!(memory.touch("src/today.py", PathKind::File, now()));
        assert!(memory.touch("src", PathKind::Directory, now()));
        let paths = memory.hot_paths();
        assert_eq!(paths.len(), MAX_HOT_PATHS);
        let found = |path: &str| paths.iter().find(|hot| hot.path == path).map(|hot| (hot.count, hot.kind));
        assert_eq!(found("src/today.py"), Some((2, PathKind::File)));
        assert_eq!(found("src"), Some((1, PathKind::Directory)));
        assert!(memory.fields.objects("hotPaths").filter(|path| path.get("mine").is_some()).count() == 48);
        assert!(found("old/45").is_none() && found("old/38").is_none(), "the stalest go, not the first of the list");
        assert!(!memory.touch("", PathKind::File, now()) && !memory.touch(&"x".repeat(513), PathKind::File, now()));
    }

    #[test]
    fn the_oldest_learned_note_makes_room_and_what_a_person_wrote_stays() {
        let notes: Vec<_> = (0..20)
            .map(|at| json!({"timestamp": ms((40 - at) * HOUR), "source": if at == 0 { "manual" } else { "learned" }, "category": "other", "content": format!("n{at}")}))
            .collect();
        let mut memory = memory(&json!({"customNotes": notes}));
        assert!(memory.add_note("runtime", "Python 3.12.4", false, now()));
        assert!(!memory.add_note("runtime", "Python 3.12.4", false, now()), "known");
        let left: Vec<_> = memory.notes().into_iter().map(|note| note.content).collect();
        assert_eq!(left.len(), MAX_NOTES);
        assert!(left.contains(&"n0".to_owned()) && !left.contains(&"n1".to_owned()) && left[19] == "Python 3.12.4");
    }

    #[test]
    fn of_too_many_directives_the_oldest_wish_goes_before_any_must() {
        let mut memory = memory(&json!({}));
        for at in 0..25 {
            assert!(memory.add_directive(&format!("rule {at}"), "c", at < 3, now().plus_ms(at)));
        }
        assert!(!memory.add_directive("RULE 24", "c", true, now()), "known");
        assert!(!memory.add_directive(&"x".repeat(401), "c", true, now()), "too long");
        let texts: Vec<_> = memory.directives().into_iter().map(|directive| directive.text).collect();
        assert_eq!(texts.len(), MAX_DIRECTIVES);
        assert_eq!(texts[..4], ["rule 2", "rule 1", "rule 0", "rule 24"]);
    }

    #[test]
    fn a_learned_command_gives_way_to_the_projects_own() {
        let mut memory = memory(&json!({}));
        assert!(memory.learn_command(Command::Test, "pytest -q"));
        assert!(!memory.learn_command(Command::Test, "pytest -q"));
        assert!(memory.learn_command(Command::Test, "pytest -x"));
        memory.apply_scan(&Scan::default(), "/p", now());
        assert_eq!(memory.command(Command::Test), Some("pytest -x"), "the scan found none");
        let build = Build { test_command: Some("make test".into()), ..Build::default() };
        memory.apply_scan(&Scan { build, ..Scan::default() }, "/p", now());
        assert_eq!(memory.command(Command::Test), Some("make test"));
        assert!(!memory.learn_command(Command::Test, "pytest -q"));
        memory.apply_scan(&Scan::default(), "/p", now());
        assert_eq!(memory.command(Command::Test), None, "it came from a file that is gone");
    }

    #[test]
    fn a_scan_keeps_what_it_did_not_find() {
        let mut memory = memory(&json!({
            "lastScanned": ms(25 * HOUR), "teamNotes": {"lead": "ops"}, "conventions": {"mine": 1, "namingStyle": "old"},
            "hotPaths": [
                {"path": "a", "accessCount": 9, "lastAccessed": ms(8 * 24 * HOUR), "type": "file"},
                {"path": "b", "accessCount": 1, "lastAccessed": ms(8 * 24 * HOUR), "type": "file"},
                {"path": "c", "accessCount": 9, "lastAccessed": ms(HOUR), "type": "file"},
            ],
        }));
        memory.add_note("build", "needs protoc 25", true, now());
        memory.add_directive("metric units", "c", true, now());
        memory.apply_scan(&Scan::default(), "/q", now());
        let counts: Vec<_> = memory.hot_paths().iter().map(|path| path.count).collect();
        assert_eq!(counts, [4, 1, 9]);
        assert_eq!((memory.notes().len(), memory.directives().len()), (1, 1));
        assert_eq!(memory.fields.get("teamNotes"), Some(&json!({"lead": "ops"})));
        assert_eq!(memory.fields.get("conventions").and_then(|c| c.get("mine")), Some(&json!(1)));
        assert_eq!(memory.fields.text("projectRoot"), Some("/q"));
        assert!(!memory.wants_scan(now()));
    }

    #[test]
    fn tools_teach_only_a_memory_that_was_scanned() {
        let (folder, store) = store();
        let locker = ThreadLocker::default();
        let touch = |memory: &mut ProjectMemory| memory.touch("a", PathKind::File, now());
        store.change_memory(&&locker, Occasion::Tool, touch).expect("nothing to do");
        assert!(!store.has_memory());
        for content in ["{\"a\": 1}", "{\"version\": \"1"] {
            plant(&folder, FILE, content);
            drop(store.change_memory(&&locker, Occasion::Tool, touch));
            assert_eq!(fs::read_to_string(folder.path().join(FILE)).expect("a file"), content);
        }
        let tell = |memory: &mut ProjectMemory| memory.add_directive("never rebase", "c", true, now());
        store.change_memory(&&locker, Occasion::User(Some("/p")), tell).expect("made anew");
        assert_eq!(store.read_memory().expect("a read").expect("a memory").directives().len(), 1);
        let aside = fs::read_dir(folder.path()).expect("a folder").flatten();
        assert_eq!(aside.filter(|entry| entry.file_name().to_string_lossy().contains(".corrupt-")).count(), 1);
        assert!(matches!(store.change_memory(&NeverFree, Occasion::Tool, touch), Err(Error::Lock { .. })));
    }

    #[test]
    fn many_writers_lose_nothing() {
        let (_folder, store) = store();
        let locker = ThreadLocker::default();
        store
            .change_memory(&&locker, Occasion::User(Some("/p")), |memory| {
                memory.apply_scan(&Scan::default(), "/p", now());
                true
            })
            .expect("made");
        thread::scope(|scope| {
            for at in 0..16 {
                let (store, locker) = (&store, &locker);
                scope.spawn(move || {
                    store
                        .change_memory(&locker, Occasion::Tool, |memory| {
                            memory.touch(&format!("f{at}"), PathKind::File, now())
                        })
                        .expect("stored");
                });
            }
        });
        assert_eq!(store.read_memory().expect("a read").expect("a memory").hot_paths().len(), 16);
    }

    proptest::proptest! {
        #[test]
        fn what_nobody_here_knows_survives_every_change(name in "[a-z]{1,8}", value in "\\PC{0,20}", steps in proptest::collection::vec(0..5_u8, 0..12)) {
            let own = format!("x-{name}");
            let mut memory = memory(&json!({}));
            memory.fields.set(&own, value.clone());
            for (at, step) in steps.iter().enumerate() {
                match step {
                    0 => drop(memory.touch(&format!("p{at}"), PathKind::File, now())),
                    1 => drop(memory.add_note("c", &format!("n{at}"), false, now())),
                    2 => drop(memory.add_directive(&format!("d{at}"), "c", false, now())),
                    3 => drop(memory.learn_command(Command::Build, &format!("make {at}"))),
                    _ => memory.apply_scan(&Scan::default(), "/p", now()),
                }
            }
            let text = serde_json::to_string(&memory.fields).expect("JSON");
            let read = ProjectMemory::from_fields(serde_json::from_str(&text).expect("JSON"));
            proptest::prop_assert_eq!(&read, &memory);
            proptest::prop_assert_eq!(read.fields.get(&own).and_then(Value::as_str), Some(value.as_str()));
        }
    }
}
