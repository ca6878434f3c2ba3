//! One scenario: reads its files, plays its steps, compares what came of them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use serde::Deserialize;
use serde_json::Value;
use similar::TextDiff;

use crate::redact::{self, Redaction};
use crate::world::{self, Guest, Run, Running, World};

/// Largest JSON file that is shown and not only named, in bytes: a state with a short prompt.
const MAX_SHOWN_BYTES: usize = 4 * 1024;

/// Folders of the home whose contents are the host's own format, or not text: their files are only named.
const NOT_SHOWN: &[&str] = &["home/.cache", "home/.local"];

/// `scenario.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Scenario {
    /// One sentence: what must hold.
    about: String,
    /// Guests that are added before the first step.
    #[serde(default)]
    guests: Vec<Guest>,
    /// What is changed before the first step.
    #[serde(default)]
    files: Vec<Change>,
    steps: Vec<Step>,
}

/// A change of the world. Only one of its ways is taken.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Change {
    path: String,
    /// Writes this text.
    text: Option<String>,
    /// Cuts the file to this many bytes.
    cut_to: Option<u64>,
    /// Sets the mode, in octal.
    mode: Option<String>,
    /// Makes a symbolic link to this.
    link: Option<String>,
    /// Makes a folder.
    #[serde(default)]
    folder: bool,
}

/// A run of the host.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Step {
    /// Its files begin with this.
    name: String,
    #[serde(default = "hook")]
    args: Vec<String>,
    /// How often it is done. The last answer counts, and the records of all.
    #[serde(default = "once")]
    times: u32,
    /// Variables beside `PATH` and `HOME`; a value of `false` takes one away.
    #[serde(default)]
    env: BTreeMap<String, Variable>,
    /// What is changed before it.
    #[serde(default)]
    files: Vec<Change>,
    /// The exit status of commands other than `hook`, which always ends with 0.
    #[serde(default)]
    exit: i32,
    /// Longest time, where being in time is the point.
    within_ms: Option<u64>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Variable {
    Set(String),
    IsSet(bool),
}

fn hook() -> Vec<String> {
    ["hook", "--agent", "claude"].map(str::to_owned).to_vec()
}

fn once() -> u32 {
    1
}

/// Plays the scenario in a folder.
pub(crate) fn run(folder: &Path) -> Result<()> {
    let text = fs::read_to_string(folder.join("scenario.toml")).context("failed to read `scenario.toml`")?;
    let scenario: Scenario = toml::from_str(&text).context("failed to read `scenario.toml`")?;
    ensure!(scenario.about.ends_with('.'), "`about` is a sentence");
    let world = World::new(&scenario.guests);
    let mut player = Player::new(folder, &world, &scenario.guests);
    player.change(&scenario.files)?;
    for step in &scenario.steps {
        player.play(step).with_context(|| format!("in step `{}`", step.name))?;
    }
    let files = player.listing()?;
    player.expect("files.txt", &files)?;
    player.finish()
}

/// A scenario under way.
struct Player<'a> {
    folder: &'a Path,
    world: &'a World,
    redaction: Redaction,
    /// Bytes of the trail that are accounted for.
    trail: usize,
    /// Names of files of the scenario that have been used.
    used: BTreeSet<String>,
    /// What was not as expected.
    differences: String,
    bless: bool,
}

impl<'a> Player<'a> {
    fn new(folder: &'a Path, world: &'a World, guests: &[Guest]) -> Self {
        let mut folders =
            vec![(world.project(), "${PROJECT}"), (world.home(), "${HOME}"), (world.path("outside"), "${OUTSIDE}")];
        if let Some(guest) = guests.first() {
            let component = world::component(&guest.name);
            folders.extend(component.parent().map(|folder| (folder.to_owned(), "${WASM}")));
        }
        // Inside the home, so before it.
        if let Some(code) = code(&world.home()) {
            folders.splice(0..0, code.parent().map(|folder| (folder.to_owned(), "${CODE_FOLDER}")));
            folders.insert(0, (code, "${CODE}"));
        }
        let redaction = Redaction::new(&folders);
        Self {
            folder,
            world,
            redaction,
            trail: 0,
            used: BTreeSet::from(["scenario.toml".to_owned()]),
            differences: String::new(),
            bless: std::env::var_os("BLESS").is_some_and(|bless| bless == "1"),
        }
    }

    fn change(&self, changes: &[Change]) -> Result<()> {
        for change in changes {
            let path = PathBuf::from(self.redaction.fill(&change.path));
            self.change_one(&path, change).with_context(|| format!("failed to change `{}`", change.path))?;
        }
        Ok(())
    }

    fn change_one(&self, path: &Path, change: &Change) -> Result<()> {
        if let Some(text) = &change.text {
            world::write(path, 0o600, self.redaction.fill(text).as_bytes());
        }
        if let Some(length) = change.cut_to {
            fs::File::options().write(true).open(path)?.set_len(length)?;
        }
        if let Some(target) = &change.link {
            std::os::unix::fs::symlink(self.redaction.fill(target), path)?;
        }
        if change.folder {
            world::create_dirs(path);
        }
        if let Some(mode) = &change.mode {
            fs::set_permissions(path, fs::Permissions::from_mode(u32::from_str_radix(mode, 8)?))?;
        }
        Ok(())
    }

    fn play(&mut self, step: &Step) -> Result<()> {
        self.change(&step.files)?;
        let is_hook = step.args.first().is_some_and(|command| command == "hook");
        let stdin = if is_hook { self.event(&step.name)? } else { Vec::new() };
        let mut last = None;
        for _ in 0..step.times {
            let mut command = self.world.host(step.args.iter().map(|arg| self.redaction.fill(arg)));
            for (name, value) in &step.env {
                match value {
                    Variable::Set(value) => command.env(name, self.redaction.fill(value)),
                    Variable::IsSet(false) => command.env_remove(name),
                    Variable::IsSet(true) => bail!("`{name}` is set to a text, or `false` takes it away"),
                };
            }
            let run = Running::start(command, stdin.clone()).finish();
            check(step, is_hook, &run)?;
            last = Some(run);
        }
        let run = last.ok_or_else(|| anyhow!("a step is done at least once"))?;
        self.expect_answer(&step.name, &run.stdout)?;
        self.expect(&format!("{}.stderr.txt", step.name), &self.redaction.text(&run.stderr))?;
        let records = self.new_records()?;
        self.expect(&format!("{}.trail.jsonl", step.name), &records)
    }

    /// The bytes of an event, with placeholders filled in.
    fn event(&mut self, step: &str) -> Result<Vec<u8>> {
        for form in ["json", "txt"] {
            let name = format!("{step}.event.{form}");
            if let Ok(bytes) = fs::read(self.folder.join(&name)) {
                self.used.insert(name);
                return Ok(self.redaction.fill_bytes(&bytes));
            }
        }
        bail!("there is no `{step}.event.json` and no `{step}.event.txt`")
    }

    /// JSON is compared as JSON, for people to read; its being one line has been checked.
    fn expect_answer(&mut self, step: &str, stdout: &[u8]) -> Result<()> {
        let (json, txt) = match serde_json::from_slice::<Value>(stdout) {
            Ok(mut answer) => {
                self.redaction.json(&mut answer);
                (format!("{answer:#}\n"), String::new())
            }
            Err(_) => (String::new(), self.redaction.text(&String::from_utf8_lossy(stdout))),
        };
        self.expect(&format!("{step}.answer.json"), &json)?;
        self.expect(&format!("{step}.answer.txt"), &txt)
    }

    /// The records that were added to the trail, one line each as in the trail itself.
    fn new_records(&mut self) -> Result<String> {
        let trail = self.world.trail();
        let new = trail.get(self.trail..).context("the trail became shorter")?;
        self.trail = trail.len();
        ensure!(new.is_empty() || new.ends_with('\n'), "the trail's last record is torn");
        let acts = |c: char| c.is_control() && c != '\n' || matches!(c, '\u{2028}'..='\u{202e}');
        ensure!(!new.contains(acts), "the trail holds characters that act on its readers");
        let mut records = String::new();
        for line in new.lines() {
            let mut record: Value = serde_json::from_str(line).with_context(|| format!("not a record: {line}"))?;
            self.redaction.json(&mut record);
            writeln!(records, "{}", redact::visible(&record.to_string()))?;
        }
        Ok(records)
    }

    /// What the world looks like: project, home and the folder outside, with the contents of small JSON files.
    fn listing(&self) -> Result<String> {
        let mut listing = String::new();
        for folder in ["project", "home", "outside"] {
            self.list(folder, &mut listing)?;
        }
        Ok(listing)
    }

    fn list(&self, folder: &str, listing: &mut String) -> Result<()> {
        let mut names = fs::read_dir(self.world.path(folder))?
            .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
            .collect::<Result<Vec<_>>>()?;
        names.sort();
        for name in names.iter().filter(|name| *name != ".git") {
            let path = format!("{folder}/{name}");
            let about = fs::symlink_metadata(self.world.path(&path))?;
            let (kind, shown) = (about.file_type(), self.redaction.text(&path));
            if kind.is_dir() {
                writeln!(listing, "{shown}/ {:04o}", about.mode() & 0o7777)?;
                self.list(&path, listing)?;
            } else if kind.is_file() {
                writeln!(listing, "{shown} {:04o}{}", about.mode() & 0o7777, self.contents(&path, about.len())?)?;
            } else {
                writeln!(listing, "{shown} is neither a folder nor a file")?;
            }
        }
        Ok(())
    }

    fn contents(&self, path: &str, size: u64) -> Result<String> {
        if NOT_SHOWN.iter().any(|folder| path.starts_with(folder)) {
            return Ok(String::new());
        }
        let bytes = fs::read(self.world.path(path))?;
        match serde_json::from_slice::<Value>(&bytes) {
            Ok(mut value) if bytes.len() <= MAX_SHOWN_BYTES => {
                self.redaction.json(&mut value);
                Ok(format!("\n{value:#}"))
            }
            _ => Ok(format!(" {size} bytes")),
        }
    }

    /// Compares with a file of the scenario, which is not there where nothing is expected.
    fn expect(&mut self, name: &str, actual: &str) -> Result<()> {
        let path = self.folder.join(name);
        let expected = fs::read_to_string(&path).unwrap_or_default();
        if !expected.is_empty() || !actual.is_empty() {
            self.used.insert(name.to_owned());
        }
        if expected == actual {
            return Ok(());
        }
        if self.bless {
            return match actual {
                "" => fs::remove_file(&path),
                _ => fs::write(&path, actual),
            }
            .with_context(|| format!("failed to bless `{name}`"));
        }
        let diff = TextDiff::from_lines(expected.as_str(), actual);
        write!(self.differences, "\n{}", diff.unified_diff().header(name, "what came"))?;
        Ok(())
    }

    fn finish(self) -> Result<()> {
        for entry in fs::read_dir(self.folder)? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            ensure!(self.used.contains(&name), "no step uses `{name}`: remove it");
        }
        if self.differences.is_empty() {
            return Ok(());
        }
        bail!("not as expected (read it; `BLESS=1` accepts it):\n{}", self.differences)
    }
}

/// What holds for every run, whatever a scenario expects.
fn check(step: &Step, is_hook: bool, run: &Run) -> Result<()> {
    ensure!(run.code == Some(step.exit), "exit status {:?}: {}", run.code, run.stderr);
    if let Some(limit) = step.within_ms {
        ensure!(run.took <= Duration::from_millis(limit), "the answer took {:?}", run.took);
    }
    if is_hook {
        ensure!(run.code == Some(0), "`hook` ended with {:?}", run.code);
        ensure!(run.stderr.is_empty(), "`hook` wrote to standard error: {}", run.stderr);
        let lines = run.stdout.split_inclusive(|byte| *byte == b'\n').count();
        let is_object = serde_json::from_slice::<Value>(&run.stdout).is_ok_and(|answer| answer.is_object());
        let is_line = lines == 1 && run.stdout.ends_with(b"\n") && is_object;
        ensure!(
            run.stdout.is_empty() || is_line,
            "the answer is not one line with one JSON object: {:?}",
            String::from_utf8_lossy(&run.stdout)
        );
    }
    Ok(())
}

/// The compiled code of the first guest in a home.
fn code(home: &Path) -> Option<PathBuf> {
    let version = fs::read_dir(home.join(".cache/omc-host/code")).ok()?.next()?.ok()?.path();
    let files = fs::read_dir(version).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    files.filter(|path| path.extension().is_some_and(|extension| extension == "cwasm")).min()
}
