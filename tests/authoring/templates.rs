//! The templates for JavaScript and Python, as far as that can be seen without a network: they fit the interface, their manifests
//! are taken, their code runs against what the interface has, and their build scripts do all but compile.
//!
//! What turns a script into a component comes from npm and PyPI. Here a stand-in gives a component that was built already; the
//! real ones, of the same versions, build the frozen guests (`cargo xtask compat`).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};
use wit_parser::{Resolve, TypeDefKind, WorldKey};

use super::{is_there, text};
use crate::world::{World, component, run, write};

/// The interface of this repository.
const WIT: &str = include_str!("../../wit/hook.wit");

/// A project as `guests new` writes it.
fn project(world: &World, language: &str) -> PathBuf {
    let name = format!("guard-{language}");
    let made = run(world, ["guests", "new", &name, "--lang", language]);
    assert_eq!(made.code, Some(0), "{}", made.stderr);
    world.path("project").join(name)
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The world of a project, with the interface that it brings.
fn resolve(hook: &str, world: &str) -> Resolve {
    let mut resolve = Resolve::default();
    for (path, text) in [("hook.wit", hook), ("world.wit", world)] {
        resolve.push_source(path, text).unwrap_or_else(|error| panic!("{error:?} in {text}"));
    }
    resolve
}

/// The names of the interfaces that the project's world imports and exports.
fn world_of(resolve: &Resolve) -> (Vec<String>, Vec<String>) {
    let (_, world) = resolve
        .worlds
        .iter()
        .find(|(_, world)| resolve.packages[world.package.expect("a package")].name.namespace == "local")
        .expect("the project's world");
    let name = |key: &WorldKey| resolve.name_world_key(key);
    (world.imports.keys().map(name).collect(), world.exports.keys().map(name).collect())
}

/// The methods of a resource, and the cases of the decision, as the interface spells them.
fn names_of(resolve: &Resolve) -> (Vec<String>, Vec<String>, Vec<String>) {
    let (_, types) =
        resolve.interfaces.iter().find(|(_, it)| it.name.as_deref() == Some("types")).expect("the interface `types`");
    let methods = |resource: &str| {
        let prefix = format!("[method]{resource}.");
        types.functions.keys().filter_map(|name| Some(name.strip_prefix(&prefix)?.to_owned())).collect()
    };
    let TypeDefKind::Variant(decision) = &resolve.types[types.types["decision"]].kind else { panic!("a variant") };
    (methods("event"), methods("effects"), decision.cases.iter().map(|case| case.name.clone()).collect())
}

fn printed(mut command: Command) -> String {
    let Output { status, stdout, stderr } = command.output().expect("it was there a moment ago");
    assert!(status.success(), "{}{}", String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    String::from_utf8(stdout).expect("UTF-8")
}

#[test]
fn the_worlds_of_templates_are_worlds_of_the_interface() {
    let world = World::new(&[]);
    for language in ["js", "python"] {
        let project = project(&world, language);
        assert_eq!(read(&project.join("wit/deps/omc-hook/hook.wit")), WIT, "{language}");
        let text = read(&project.join("wit/world.wit"));
        let (imports, exports) = world_of(&resolve(WIT, &text));
        assert_eq!(
            (imports, exports),
            (vec!["omc:hook/types@0.1.0".to_owned()], vec!["omc:hook/handler@0.1.0".to_owned()])
        );
        // The imports that authors are to switch on, each with the capability behind it.
        let (mut whole, _) =
            world_of(&resolve(WIT, &text.replace("// import omc:hook", "import omc:hook").replace(";   ", "; //")));
        let package = resolve(WIT, &text);
        let (_, of_interface) =
            package.worlds.iter().find(|(_, it)| it.name == "guest").expect("the interface's world");
        let mut expected: Vec<_> = of_interface.imports.keys().map(|key| package.name_world_key(key)).collect();
        expected.sort();
        whole.sort();
        assert_eq!(whole, expected, "all that there is to import");
    }
}

#[test]
fn the_manifests_of_templates_are_taken_with_their_example_of_a_request_and_without() {
    let world = World::new(&[]);
    for language in ["js", "python"] {
        let project = project(&world, language);
        let manifest = project.join("guest.toml");
        let plain = read(&manifest);
        let requesting: String = plain
            .lines()
            .map(|line| {
                line.strip_prefix("# ")
                    .filter(|rest| rest.contains("[[") || rest.contains(" = "))
                    .unwrap_or(line)
                    .to_owned()
                    + "\n"
            })
            .collect();
        assert!(requesting.contains("\n[[requests]]\n"), "{requesting}");
        for text_of_manifest in [plain, requesting] {
            write(&manifest, 0o600, text_of_manifest.as_bytes());
            let (file, packed) = (component("no-force-push"), world.path("packed.wasm"));
            let run = run(&world, ["guests", "pack", text(&file), "--manifest", text(&manifest), "-o", text(&packed)]);
            assert_eq!(run.code, Some(0), "{}", run.stderr);
        }
    }
}

#[test]
fn templates_name_one_version_of_each_tool_and_it_is_the_one_that_builds_the_frozen_guests() {
    let templates = Path::new(env!("CARGO_MANIFEST_DIR")).join("templates");
    let frozen = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/compat/src");
    let tools = |folder: &Path| -> Value {
        let package: Value = serde_json::from_str(&read(&folder.join("js/package.json"))).expect("JSON");
        json!([package["devDependencies"], read(&folder.join("python/requirements.txt"))])
    };
    assert_eq!(tools(&templates), tools(&frozen));
    let versions = tools(&templates)[0].as_object().expect("tools").values().cloned().collect::<Vec<_>>();
    let is_exact =
        |version: &Value| version.as_str().is_some_and(|it| it.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'.')));
    assert!(!versions.is_empty() && versions.iter().all(is_exact), "{versions:?}");
}

#[test]
fn the_guests_of_templates_run_on_what_the_interface_has_and_nothing_else() {
    // They get every method that the interface has, and would fail on any other.
    const JS: &str = "
        import { handler } from './guest.js';
        const [event, effects] = JSON.parse(process.argv[1]);
        const camel = (name) => name.replace(/-(.)/g, (_, letter) => letter.toUpperCase());
        const having = (names, values) =>
          Object.fromEntries(names.map((name) => [camel(name), (...args) => values[name]?.(...args)]));
        const told = [];
        const decide = (command) => handler.handle(
          having(event, { kind: () => 'pre-tool-use', 'tool-command': () => command }),
          having(effects, { 'add-context': (text) => void told.push(text) }));
        console.log(JSON.stringify([decide('git push --force'), decide('git push'), told.length]));
    ";
    const PYTHON: &str = r#"
import json, sys, types
event, effects, cases = json.loads(sys.argv[1])
def having(names, values):
    return types.SimpleNamespace(**{name.replace("-", "_"): values.get(name, lambda *_: None) for name in names})
class Case:
    def __init__(self, *value): self.value = list(value)
given = types.ModuleType("wit_world.imports.types")
given.Event = given.Effects = given.Decision = Case
for case in cases:
    name = "Decision_" + case.title().replace("-", "")
    setattr(given, name, type(name, (Case,), {"tag": case}))
world, imports = types.ModuleType("wit_world"), types.ModuleType("wit_world.imports")
world.exports, imports.types = types.SimpleNamespace(Handler=object), given
sys.modules |= {"wit_world": world, "wit_world.imports": imports}
sys.path.insert(0, ".")
from app import Handler
told = []
def decide(command):
    decision = Handler().handle(
        having(event, {"kind": lambda: "pre-tool-use", "tool-command": lambda: command}),
        having(effects, {"add-context": told.append}))
    return {"tag": decision.tag} | ({"val": decision.value[0]} if decision.value else {})
print(json.dumps([decide("git push --force"), decide("git push"), len(told)]))
"#;
    let world = World::new(&[]);
    for (language, program, args) in
        [("js", "node", &["--input-type=module", "--eval", JS][..]), ("python", "python3", &["-c", PYTHON])]
    {
        if !is_there(program) {
            continue;
        }
        let project = project(&world, language);
        let names = names_of(&resolve(WIT, &read(&project.join("wit/world.wit"))));
        let mut command = Command::new(program);
        command.args(args).arg(json!(names).to_string()).current_dir(&project).env("PYTHONDONTWRITEBYTECODE", "1");
        let decided: Value = serde_json::from_str(&printed(command)).expect("JSON");
        let (_, _, cases) = names;
        assert_eq!(decided[0]["tag"], "block", "{decided}");
        assert!(decided[0]["val"].as_str().is_some_and(|reason| reason.contains("forced push")), "{decided}");
        assert_eq!((&decided[1], &decided[2]), (&json!({ "tag": "pass" }), &json!(1)), "{decided}");
        assert!(["block", "pass"].iter().all(|tag| cases.iter().any(|case| case == tag)), "{cases:?}");
    }
}

/// Writes a program that stands in for another.
fn stand_in(path: &Path, script: &str) {
    write(path, 0o700, script.as_bytes());
}

#[test]
fn the_build_scripts_of_templates_make_a_guest_of_what_the_tools_give() {
    let world = World::new(&[]);
    let built = component("no-force-push");
    let host = Path::new(env!("CARGO_BIN_EXE_omc-host")).parent().expect("a folder");
    let path = std::env::join_paths(
        std::iter::once(host.to_owned()).chain(std::env::var_os("PATH").iter().flat_map(std::env::split_paths)),
    );
    let path = path.expect("a path");
    for (language, program, script) in [("js", "node", "build.mjs"), ("python", "python3", "build.py")] {
        if !is_there(program) {
            continue;
        }
        let project = project(&world, language);
        // Each sees that it is asked for this world, with its source there, and gives a component that was built already.
        let tool = project.join("node_modules/@bytecodealliance/componentize-js");
        write(&tool.join("package.json"), 0o600, br#"{"name": "x", "type": "module", "exports": "./index.js"}"#);
        let script_of_tool = format!(
            "import {{ existsSync, readFileSync }} from 'node:fs';
             export async function componentize(source, {{ witPath, worldName }}) {{
               if (!source.includes('handler') || !existsSync(`${{witPath}}/world.wit`) || worldName !== 'guest') throw source;
               return {{ component: readFileSync({:?}) }};
             }}",
            text(&built)
        );
        write(&tool.join("index.js"), 0o600, script_of_tool.as_bytes());
        let programs = project.join(".venv/bin");
        stand_in(
            &programs.join("python"),
            "#!/bin/sh\ntest \"$1 $2 $3\" = '-m pip install' && grep -q componentize requirements.txt\n",
        );
        stand_in(
            &programs.join("componentize-py"),
            &format!(
                "#!/bin/sh\ntest \"$*\" = '-q -d wit -w guest componentize app -o guest.wasm' && test -f app.py -a -f wit/world.wit \
                 && cp '{}' guest.wasm\n",
                built.display()
            ),
        );

        let mut command = Command::new(program);
        command.arg(script).current_dir(&project).env("PATH", &path).env("HOME", world.home());
        let said = printed(command);
        assert!(said.contains(&format!("packed `guard-{language}` 0.1.0")), "{said}");
        let audit = run(&world, ["audit", text(&project.join("guest.wasm"))]);
        assert!(
            String::from_utf8_lossy(&audit.stdout).contains(&format!("guard-{language} 0.1.0")),
            "{}",
            audit.stderr
        );
    }
}
