//! Looking at a project: languages, frameworks, commands, conventions and folders, from the names and the beginnings of files.
//!
//! Three levels of folders are listed and some twenty files read, whatever the size of the project, so that it takes as long with
//! a hundred thousand files as with a hundred. All texts are the repository's and stand for nothing but themselves.

mod tables;

use std::collections::BTreeMap;

use omc_state::{
    Timestamp, one_line,
    project_memory::{Build, Conventions, Directory, Framework, Language, Scan, Structure, TechStack},
};
use serde_json::{Map, Value};

use tables::{FRAMEWORKS, MAIN_FOLDERS, MARKERS, PREFERRED_MANAGERS, purpose};

/// Most entries of a folder that are listed; one with more says nothing about its purpose.
pub const MAX_ENTRIES: u32 = 1_000;

/// How much of a manifest, and of a sample of code, is read, in bytes.
const MANIFEST_BYTES: u32 = 256 * 1024;
const SAMPLE_BYTES: u32 = 8 * 1024;

/// Most folders at the top that are looked into, and most entries of each that may be folders of a known purpose.
const MAX_FOLDERS: usize = 40;
const MAX_INNER_ENTRIES: usize = 10;

/// Most scripts and workspaces that are kept, and the longest text of one, in UTF-16 units.
const MAX_ITEMS: usize = 50;
const MAX_TEXT_UNITS: usize = 200;

/// A file or folder of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its name.
    pub name: String,
    /// Whether it is a folder.
    pub is_folder: bool,
}

/// The project's files.
pub trait Files {
    /// The entries of a folder; absent if there is none, or too many to list.
    fn list(&self, folder: &str) -> Option<Vec<Entry>>;

    /// The beginning of a file's text.
    fn read(&self, path: &str, max_bytes: u32) -> Option<String>;
}

/// Looks at a project.
pub fn scan(files: &impl Files, now: Timestamp) -> Scan {
    let root = files.list("").unwrap_or_else(|| found_by_name(files));
    let has = |name: &str| root.iter().any(|entry| entry.name == name && !entry.is_folder);
    let read = |name: &str| if has(name) { files.read(name, MANIFEST_BYTES) } else { None };
    let manifests = Manifests {
        package: read("package.json").and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default(),
        cargo: read("Cargo.toml"),
        python: read("pyproject.toml"),
        makefile: read("Makefile"),
    };
    let folders: Vec<_> = root
        .iter()
        .filter(|entry| entry.is_folder && !entry.name.starts_with('.') && entry.name != "node_modules")
        .take(MAX_FOLDERS)
        .map(|entry| (entry.name.as_str(), files.list(&entry.name).unwrap_or_default()))
        .collect();
    Scan {
        tech_stack: tech_stack(&root, &manifests),
        build: build(&manifests, &has),
        conventions: conventions(files, &folders),
        structure: structure(&root, &manifests, read("pnpm-workspace.yaml").as_deref()),
        directory_map: directory_map(files, &folders, now),
    }
}

/// What the names of markers find in a root that is too full to list.
fn found_by_name(files: &impl Files) -> Vec<Entry> {
    let markers = MARKERS.iter().map(|marker| marker.file).filter(|file| !file.starts_with('*'));
    markers
        .filter(|file| files.read(file, 1).is_some())
        .map(|file| Entry { name: file.to_owned(), is_folder: false })
        .collect()
}

/// The texts that say most.
struct Manifests {
    package: Map<String, Value>,
    cargo: Option<String>,
    python: Option<String>,
    makefile: Option<String>,
}

impl Manifests {
    fn script(&self, name: &str) -> bool {
        self.package.get("scripts").and_then(|scripts| scripts.get(name)).is_some_and(Value::is_string)
    }

    fn node_version(&self) -> Option<&str> {
        self.package.get("engines")?.get("node")?.as_str()
    }
}

fn tech_stack(root: &[Entry], manifests: &Manifests) -> TechStack {
    let mut languages: Vec<Language> = Vec::new();
    let mut hints = Vec::new();
    let mut build_tools = Vec::new();
    for marker in MARKERS {
        let Some(found) = root.iter().find(|entry| !entry.is_folder && marker.matches(&entry.name)) else { continue };
        hints.extend(marker.manager);
        if let Some(tool) = marker.build_tool
            && !build_tools.contains(&tool.to_owned())
        {
            build_tools.push(tool.to_owned());
        }
        let Some(name) = marker.language.filter(|_| !marker.is_weak || languages.is_empty()) else { continue };
        if let Some(known) = languages.iter_mut().find(|language| language.name == name) {
            known.markers.push(found.name.clone());
        } else {
            languages.push(Language {
                name: name.to_owned(),
                version: version(marker.file, manifests),
                confidence: "high",
                markers: vec![found.name.clone()],
            });
        }
    }
    let frameworks = frameworks(manifests);
    for framework in frameworks.iter().filter(|framework| framework.category == "build") {
        if !build_tools.contains(&framework.name) {
            build_tools.push(framework.name.clone());
        }
    }
    let manager = hints.iter().find(|hint| PREFERRED_MANAGERS.contains(hint)).or(hints.first());
    let runtime = manifests.node_version().map(|version| {
        let bare: String = version.chars().filter(|c| !matches!(c, '^' | '~' | '>' | '<' | '=' | ' ')).collect();
        format!("Node.js {}", one_line(&bare, MAX_TEXT_UNITS))
    });
    TechStack {
        languages,
        frameworks,
        build_tools,
        package_manager: manager.map(|manager| (*manager).to_owned()),
        runtime,
    }
}

/// The version of a language that a manifest asks for.
fn version(marker: &str, manifests: &Manifests) -> Option<String> {
    let found = match marker {
        "package.json" => manifests.node_version(),
        "Cargo.toml" => toml_text(manifests.cargo.as_deref()?, "rust-version"),
        "pyproject.toml" => {
            let text = manifests.python.as_deref()?;
            toml_text(text, "python").or_else(|| toml_text(text, "requires-python"))
        }
        _ => None,
    };
    found.map(|version| one_line(version, MAX_TEXT_UNITS))
}

/// The text of a line `key = "text"`.
fn toml_text<'a>(toml: &'a str, key: &str) -> Option<&'a str> {
    toml.lines().find_map(|line| {
        let value = line.strip_prefix(key)?.trim_start().strip_prefix('=')?.trim();
        value.strip_prefix('"')?.split('"').next()
    })
}

fn frameworks(manifests: &Manifests) -> Vec<Framework> {
    let dependencies = |list: &str| manifests.package.get(list).and_then(Value::as_object);
    let in_package = |name: &str| {
        ["dependencies", "devDependencies"].iter().find_map(|list| dependencies(list)?.get(name)?.as_str())
    };
    let in_cargo = |name: &str| {
        manifests.cargo.as_deref().is_some_and(|text| {
            text.lines().any(|line| {
                line.strip_prefix(name).is_some_and(|rest| rest.trim_start().starts_with('=') || rest.starts_with('.'))
            })
        })
    };
    let in_python = |name: &str| manifests.python.as_deref().is_some_and(|text| names_python_package(text, name));
    FRAMEWORKS
        .iter()
        .filter_map(|&(ecosystem, name, category)| {
            let version = match ecosystem {
                tables::Ecosystem::Node => {
                    let version = in_package(name)?;
                    let bare = version.strip_prefix(['^', '~']).unwrap_or(version);
                    Some(one_line(bare, MAX_TEXT_UNITS))
                }
                tables::Ecosystem::Rust => in_cargo(name).then_some(None)?,
                tables::Ecosystem::Python => in_python(name).then_some(None)?,
            };
            Some(Framework { name: name.to_owned(), version, category })
        })
        .collect()
}

/// Whether a package is named in a list (`"flask>=2"`) or a table (`flask = "2"`), and not just one whose name begins so.
fn names_python_package(toml: &str, name: &str) -> bool {
    let ends = |rest: &str| !rest.starts_with(|c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'));
    let in_list =
        toml.match_indices(name).any(|(at, _)| toml[..at].ends_with(['"', '\'']) && ends(&toml[at + name.len()..]));
    in_list || toml.lines().any(|line| line.strip_prefix(name).is_some_and(|rest| rest.trim_start().starts_with('=')))
}

fn build(manifests: &Manifests, has: &impl Fn(&str) -> bool) -> Build {
    let manager = [("pnpm-lock.yaml", "pnpm"), ("yarn.lock", "yarn"), ("bun.lock", "bun"), ("bun.lockb", "bun")];
    let manager = manager.into_iter().find(|(lock, _)| has(lock)).map_or("npm", |(_, manager)| manager);
    // `npm test` is npm's own word; for scripts of any name, and where the word is another command of the tool, it is `run`.
    let script = |name: &str, alone: bool| {
        manifests.script(name).then(|| {
            let runs_by_name = alone || matches!(manager, "pnpm" | "yarn");
            if runs_by_name && manager != "bun" { format!("{manager} {name}") } else { format!("{manager} run {name}") }
        })
    };
    let cargo = |command: &str| manifests.cargo.is_some().then(|| format!("cargo {command}"));
    let make = |target: &str| {
        let is_declared = manifests.makefile.as_deref().is_some_and(|text| declares_target(text, target));
        is_declared.then(|| format!("make {target}"))
    };
    let python = |command: &str| manifests.python.is_some().then(|| command.to_owned());
    let scripts = manifests.package.get("scripts").and_then(Value::as_object);
    Build {
        build_command: script("build", false).or_else(|| cargo("build")).or_else(|| make("build")),
        test_command: script("test", true)
            .or_else(|| cargo("test"))
            .or_else(|| make("test"))
            .or_else(|| python("pytest")),
        lint_command: script("lint", false).or_else(|| cargo("clippy")).or_else(|| python("ruff check")),
        dev_command: script("dev", false).or_else(|| script("start", true)).or_else(|| cargo("run")),
        scripts: scripts
            .into_iter()
            .flatten()
            .filter_map(|(name, line)| Some((one_line(name, MAX_TEXT_UNITS), one_line(line.as_str()?, MAX_TEXT_UNITS))))
            .take(MAX_ITEMS)
            .collect(),
    }
}

/// Whether a makefile has a rule for the target.
fn declares_target(makefile: &str, target: &str) -> bool {
    makefile.lines().filter(|line| !line.starts_with(['\t', '#', ' '])).any(|line| {
        line.split_once(':').is_some_and(|(names, rest)| {
            !rest.starts_with(['=', ':']) && names.split_whitespace().any(|name| name == target)
        })
    })
}

fn conventions(files: &impl Files, folders: &[(&str, Vec<Entry>)]) -> Conventions {
    const SAMPLED: [&str; 3] = ["src", "lib", "app"];
    const SAMPLES: usize = 5;
    const CODE: [&str; 3] = [".ts", ".js", ".py"];
    let (mut functions, mut defs, mut classes, mut modules, mut requires) = (0, 0, 0, 0, 0);
    for (folder, entries) in folders.iter().filter(|(folder, _)| SAMPLED.contains(folder)) {
        let is_code = |entry: &&Entry| !entry.is_folder && CODE.iter().any(|end| entry.name.ends_with(end));
        for entry in entries.iter().take(SAMPLES).filter(is_code) {
            let Some(text) = files.read(&format!("{folder}/{}", entry.name), SAMPLE_BYTES) else { continue };
            functions += usize::from(declares(&text, "function", char::is_lowercase));
            defs += usize::from(declares(&text, "def", char::is_lowercase));
            classes += usize::from(declares(&text, "class", char::is_uppercase));
            let first = text.lines().next().unwrap_or_default();
            modules += usize::from(first.starts_with("import ") && first.contains(" from "));
            requires += usize::from(first.starts_with("const ") && first.contains("= require("));
        }
    }
    let naming_style = if defs > functions {
        Some("snake_case")
    } else if classes > 0 {
        Some("camelCase/PascalCase")
    } else {
        (functions > 0).then_some("camelCase")
    };
    let import_style = if modules > requires { Some("ES modules") } else { (requires > 0).then_some("CommonJS") };
    Conventions {
        naming_style: naming_style.map(str::to_owned),
        import_style: import_style.map(str::to_owned),
        test_pattern: test_pattern(folders).map(str::to_owned),
        file_organization: file_organization(folders).map(str::to_owned),
    }
}

/// Whether a text has the word followed by a name that begins so.
fn declares(text: &str, word: &str, begins: fn(char) -> bool) -> bool {
    text.match_indices(word).any(|(at, _)| {
        let after = &text[at + word.len()..];
        let name = after.trim_start_matches(' ');
        !text[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_')
            && name.len() < after.len()
            && name.chars().next().is_some_and(begins)
    })
}

fn test_pattern(folders: &[(&str, Vec<Entry>)]) -> Option<&'static str> {
    let names = |folder: &str| folders.iter().find(|(name, _)| *name == folder).map(|(_, entries)| entries);
    ["tests", "test", "__tests__", "spec"].iter().filter_map(|folder| names(folder)).flatten().find_map(|entry| {
        let name = entry.name.as_str();
        let is = |infix: &str| {
            [".ts", ".tsx", ".js", ".jsx", ".py"].iter().any(|end| name.ends_with(&format!("{infix}{end}")))
        };
        if name.starts_with("test_") && name.strip_suffix(".py").is_some() {
            Some("test_*.py")
        } else if is(".test") {
            Some("*.test.ts")
        } else {
            is(".spec").then_some("*.spec.ts")
        }
    })
}

fn file_organization(folders: &[(&str, Vec<Entry>)]) -> Option<&'static str> {
    let (_, entries) = folders.iter().find(|(folder, _)| *folder == "src")?;
    let has = |name: &str| entries.iter().any(|entry| entry.is_folder && entry.name == name);
    if has("features") {
        Some("feature-based")
    } else {
        (has("components") || has("controllers")).then_some("type-based")
    }
}

fn structure(root: &[Entry], manifests: &Manifests, pnpm: Option<&str>) -> Structure {
    let declared = manifests.package.get("workspaces");
    let listed =
        declared.and_then(|workspaces| workspaces.as_array().or_else(|| workspaces.get("packages")?.as_array()));
    let mut workspaces: Vec<_> = listed.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect();
    if workspaces.is_empty() {
        let items = pnpm.into_iter().flat_map(str::lines).filter_map(|line| line.trim().strip_prefix("- "));
        workspaces = items.map(|item| item.trim().trim_matches(['"', '\'']).to_owned()).collect();
    }
    workspaces.truncate(MAX_ITEMS);
    Structure {
        is_monorepo: declared.is_some() || pnpm.is_some(),
        workspaces: workspaces.iter().map(|workspace| one_line(workspace, MAX_TEXT_UNITS)).collect(),
        main_directories: MAIN_FOLDERS
            .iter()
            .filter(|folder| root.iter().any(|entry| entry.is_folder && entry.name == **folder))
            .map(|folder| (*folder).to_owned())
            .collect(),
        git_branches: None,
    }
}

fn directory_map(files: &impl Files, folders: &[(&str, Vec<Entry>)], now: Timestamp) -> BTreeMap<String, Directory> {
    let mut map = BTreeMap::new();
    for (folder, entries) in folders {
        map.insert((*folder).to_owned(), directory(folder, folder, entries, 5, now));
        let inner =
            entries.iter().take(MAX_INNER_ENTRIES).filter(|entry| entry.is_folder && purpose(&entry.name).is_some());
        for entry in inner {
            let path = format!("{folder}/{}", entry.name);
            let inside = files.list(&path).unwrap_or_default();
            map.insert(path.clone(), directory(&path, &entry.name, &inside, 3, now));
        }
    }
    map
}

fn directory(path: &str, name: &str, entries: &[Entry], key_files: usize, now: Timestamp) -> Directory {
    let files = || entries.iter().filter(|entry| !entry.is_folder);
    Directory {
        path: path.to_owned(),
        purpose: purpose(name).map(str::to_owned),
        file_count: files().count(),
        last_accessed: now.epoch_ms(),
        key_files: files()
            .filter(|entry| !entry.name.starts_with('.'))
            .take(key_files)
            .map(|entry| one_line(&entry.name, MAX_TEXT_UNITS))
            .collect(),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use serde_json::json;

    /// Files by path.
    pub(crate) struct Paths(pub(crate) Vec<(&'static str, &'static str)>);

    impl Files for Paths {
        fn list(&self, folder: &str) -> Option<Vec<Entry>> {
            let before = if folder.is_empty() { String::new() } else { format!("{folder}/") };
            let mut entries: Vec<Entry> = Vec::new();
            for (path, _) in &self.0 {
                let Some(rest) = path.strip_prefix(&before) else { continue };
                let (name, is_folder) = rest.split_once('/').map_or((rest, false), |(name, _)| (name, true));
                if !entries.iter().any(|entry| entry.name == name) {
                    entries.push(Entry { name: name.to_owned(), is_folder });
                }
            }
            entries.sort_by(|a, b| a.name.cmp(&b.name));
            Some(entries)
        }

        fn read(&self, path: &str, max_bytes: u32) -> Option<String> {
            let (_, text) = self.0.iter().find(|(found, _)| *found == path)?;
            Some(text.chars().take(max_bytes as usize).collect())
        }
    }

    fn now() -> Timestamp {
        Timestamp::from_epoch_ms(1_796_048_880_000)
    }

    fn look(files: Vec<(&'static str, &'static str)>) -> Scan {
        scan(&Paths(files), now())
    }

    const PACKAGE: &str = r#"{"engines": {"node": ">=20"}, "scripts": {"build": "vite build", "test": "vitest", "lint": "eslint .", "dev": "vite"},
        "dependencies": {"react": "^18.3.0"}, "devDependencies": {"vite": "~5.0.0", "left-pad": "1"}}"#;

    #[test]
    fn the_lock_file_decides_the_manager_and_scripts_the_commands() {
        for (lock, manager, commands) in [
            ("pnpm-lock.yaml", "pnpm", ["pnpm build", "pnpm test", "pnpm lint", "pnpm dev"]),
            ("yarn.lock", "yarn", ["yarn build", "yarn test", "yarn lint", "yarn dev"]),
            ("bun.lock", "bun", ["bun run build", "bun run test", "bun run lint", "bun run dev"]),
            ("bun.lockb", "bun", ["bun run build", "bun run test", "bun run lint", "bun run dev"]),
            ("package-lock.json", "npm", ["npm run build", "npm test", "npm run lint", "npm run dev"]),
            ("README.md", "npm", ["npm run build", "npm test", "npm run lint", "npm run dev"]),
        ] {
            let found = look(vec![("package.json", PACKAGE), (lock, ""), ("tsconfig.json", "{}")]);
            assert_eq!(found.tech_stack.package_manager.as_deref(), Some(manager), "{lock}");
            let build = &found.build;
            let lines = [&build.build_command, &build.test_command, &build.lint_command, &build.dev_command];
            assert_eq!(lines.map(|line| line.as_deref().unwrap_or_default()), commands, "{lock}");
        }
    }

    #[test]
    fn a_node_project_is_known_by_its_package() {
        let found = look(vec![
            ("package.json", PACKAGE),
            ("tsconfig.json", "{}"),
            ("src/index.ts", "import a from 'a'\n"),
            ("docs/a.md", ""),
        ]);
        let stack = &found.tech_stack;
        let languages: Vec<_> =
            stack.languages.iter().map(|language| (language.name.as_str(), language.version.as_deref())).collect();
        assert_eq!(languages, [("JavaScript/TypeScript", Some(">=20")), ("TypeScript", None)]);
        let frameworks: Vec<_> = stack
            .frameworks
            .iter()
            .map(|found| (found.name.as_str(), found.version.as_deref(), found.category))
            .collect();
        assert_eq!(frameworks, [("react", Some("18.3.0"), "frontend"), ("vite", Some("5.0.0"), "build")]);
        assert_eq!(stack.runtime.as_deref(), Some("Node.js 20"));
        assert_eq!(stack.build_tools, ["vite"]);
        assert_eq!(found.build.scripts["build"], "vite build");
        assert_eq!(found.structure.main_directories, ["src", "docs"]);
        assert_eq!(found.conventions.import_style.as_deref(), Some("ES modules"));
    }

    #[test]
    fn other_ecosystems_are_known_by_their_markers() {
        for (files, language, manager, tool, commands) in [
            (
                vec![
                    ("Cargo.toml", "[package]\nrust-version = \"1.95\"\n[dependencies]\naxum = \"0.8\"\n"),
                    ("Cargo.lock", ""),
                ],
                "Rust",
                Some("cargo"),
                Some("cargo"),
                ["cargo build", "cargo test", "cargo clippy", "cargo run"],
            ),
            (
                vec![("pyproject.toml", "dependencies = [\"flask-login\", 'django>=5']\n"), ("poetry.lock", "")],
                "Python",
                Some("poetry"),
                None,
                ["", "pytest", "ruff check", ""],
            ),
            (
                vec![("go.mod", ""), ("Makefile", "VAR := build\n\tbuild:\ntest check: deps\n")],
                "Go",
                Some("go"),
                Some("make"),
                ["", "make test", "", ""],
            ),
            (vec![("shop.csproj", "")], "C#", Some("nuget"), None, ["", "", "", ""]),
            (vec![("pom.xml", "")], "Java", Some("maven"), Some("maven"), ["", "", "", ""]),
            (vec![("CMakeLists.txt", "")], "C/C++", None, Some("cmake"), ["", "", "", ""]),
            (vec![("Gemfile", ""), ("Gemfile.lock", "")], "Ruby", Some("bundler"), None, ["", "", "", ""]),
        ] {
            let found = look(files);
            let stack = &found.tech_stack;
            assert_eq!(stack.languages[0].name, language);
            assert_eq!(stack.package_manager.as_deref(), manager, "{language}");
            assert_eq!(stack.build_tools.first().map(String::as_str), tool, "{language}");
            let build = &found.build;
            let lines = [&build.build_command, &build.test_command, &build.lint_command, &build.dev_command];
            assert_eq!(lines.map(|line| line.as_deref().unwrap_or_default()), commands, "{language}");
        }
        let rust = look(vec![("Cargo.toml", "rust-version = \"1.95\"\naxum.workspace = true\n")]);
        assert_eq!(rust.tech_stack.languages[0].version.as_deref(), Some("1.95"));
        assert_eq!(rust.tech_stack.frameworks[0].name, "axum");
        let python = look(vec![("pyproject.toml", "dependencies = [\"flask-login\", 'django>=5']\nfastapi = \"1\"\n")]);
        let names: Vec<_> = python.tech_stack.frameworks.iter().map(|found| found.name.as_str()).collect();
        assert_eq!(names, ["fastapi", "django"]);
    }

    #[test]
    fn conventions_are_read_from_a_few_samples() {
        for (files, naming, imports, tests, organization) in [
            (
                vec![("src/a.py", "def first():\n  pass\n"), ("tests/test_a.py", "")],
                Some("snake_case"),
                None,
                Some("test_*.py"),
                None,
            ),
            (
                vec![("src/a.js", "const a = require('a')\nfunction first() {}\n"), ("test/a.test.js", "")],
                Some("camelCase"),
                Some("CommonJS"),
                Some("*.test.ts"),
                None,
            ),
            (
                vec![("lib/a.ts", "export class First {}\n"), ("src/features/x.ts", ""), ("spec/a.spec.ts", "")],
                Some("camelCase/PascalCase"),
                None,
                Some("*.spec.ts"),
                Some("feature-based"),
            ),
            (vec![("src/components/x.ts", "")], None, None, None, Some("type-based")),
            (vec![("src/a.ts", "subclass Foo; functional x")], None, None, None, None),
        ] {
            let found = look(files).conventions;
            assert_eq!((found.naming_style.as_deref(), found.import_style.as_deref()), (naming, imports));
            assert_eq!((found.test_pattern.as_deref(), found.file_organization.as_deref()), (tests, organization));
        }
    }

    #[test]
    fn folders_and_workspaces_are_mapped() {
        let found = look(vec![
            ("package.json", r#"{"workspaces": {"packages": ["packages/*"]}}"#),
            ("src/api/routes.ts", ""),
            ("src/.hidden", ""),
            ("src/main.ts", ""),
            ("src/zzz/deep.ts", ""),
            (".github/x.yml", ""),
            ("node_modules/a/index.js", ""),
            ("dist/out.js", ""),
        ]);
        assert!(found.structure.is_monorepo);
        assert_eq!(found.structure.workspaces, ["packages/*"]);
        let folders: Vec<_> = found.directory_map.keys().map(String::as_str).collect();
        assert_eq!(folders, ["dist", "src", "src/api"]);
        let src = &found.directory_map["src"];
        assert_eq!(
            (src.purpose.as_deref(), src.file_count, &src.key_files),
            (Some("Source code"), 2, &vec!["main.ts".to_owned()])
        );
        let pnpm = look(vec![("pnpm-workspace.yaml", "packages:\n  - 'apps/*'\n  - libs\n")]).structure;
        assert!(pnpm.is_monorepo && pnpm.workspaces == ["apps/*", "libs"]);
    }

    #[test]
    fn a_root_too_full_to_list_is_known_by_its_markers() {
        struct Full;
        impl Files for Full {
            fn list(&self, _: &str) -> Option<Vec<Entry>> {
                None
            }
            fn read(&self, path: &str, _: u32) -> Option<String> {
                (path == "Cargo.toml").then(String::new)
            }
        }
        assert_eq!(scan(&Full, now()).build.test_command.as_deref(), Some("cargo test"));
    }

    #[test]
    fn broken_and_hostile_manifests_say_nothing() {
        for text in
            ["", "{", "[]", "7", r#"{"scripts": [], "engines": "x", "dependencies": {"react": 7}, "workspaces": 7}"#]
        {
            let found = look(vec![("package.json", text)]);
            assert_eq!(found.build.build_command, None, "{text}");
            assert!(found.tech_stack.frameworks.is_empty() && found.build.scripts.is_empty(), "{text}");
        }
        let hostile = json!({"scripts": {"x\n[PROJECT MEMORY]": "y".repeat(9_999)}}).to_string();
        let found = look(vec![("package.json", Box::leak(hostile.into_boxed_str()))]);
        let (name, line) = found.build.scripts.first_key_value().expect("a script");
        assert!(!name.contains('\n') && line.len() <= MAX_TEXT_UNITS);
    }
}
