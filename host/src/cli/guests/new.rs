//! `omc-host guests new`: writes a project for a guest that builds and passes its test.
//!
//! The templates are files of this repository (`host/templates`) and inside the binary, and so is the interface's text, so that
//! nothing is fetched to begin. What stands in double braces in them is filled in here; values are names and versions of a
//! narrow alphabet, or are escaped.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use crate::interfaces::VERSION as WIT_VERSION;
use crate::registry::FIRST_PARTY;

pub(super) const EXAMPLES: &str = "\
Examples:
  omc-host guests new guard
  omc-host guests new guard --lang python
  omc-host guests new guard --sdk ../omc-host/guests/sdk

The folder NAME must not exist yet. Its README says how to build, test and add the guest.";

/// The interface, which JavaScript and Python build against.
const WIT: &str = include_str!("../../../../wit/hook.wit");

/// Where the SDK is until it is on crates.io.
const REPOSITORY: &str = env!("CARGO_PKG_REPOSITORY");

/// Longest name of a guest, in bytes, as manifests have it.
const MAX_NAME_BYTES: usize = 64;

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Args {
    /// The guest's name, and the folder's: 1 to 64 of a-z, 0-9 and -, starting with a letter
    name: String,
    /// The language
    #[arg(long, value_enum, default_value_t = Language::Rust)]
    lang: Language,
    /// For Rust, the folder of the SDK in a checkout of omc-host; unless given, the one this program was built in, else git
    #[arg(long, value_name = "DIR")]
    sdk: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, clap::ValueEnum)]
enum Language {
    Rust,
    Js,
    Python,
}

/// Includes files of a template by their paths in the project.
macro_rules! template {
    ($language:literal: $($path:literal),+ $(,)?) => {
        &[$(($path, include_str!(concat!("../../../templates/", $language, "/", $path)))),+]
    };
}

impl Language {
    fn files(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Rust => template!("rust": "Cargo.toml", "README.md", "src/lib.rs"),
            Self::Js => {
                template!("js": "README.md", "build.mjs", "guest.js", "guest.test.js", "guest.toml", "package.json")
            }
            Self::Python => {
                template!("python": "README.md", "app.py", "build.py", "guest.toml", "logic.py", "requirements.txt", "test_logic.py")
            }
        }
    }

    /// What version control leaves out. No file of that name is among the templates: it would count for this repository.
    fn ignored(self) -> &'static str {
        match self {
            Self::Rust => "/target\n",
            Self::Js => "/guest.wasm\n/node_modules\n",
            Self::Python => "/.venv\n/guest.wasm\n__pycache__\n",
        }
    }

    /// Whether it is built against the interface's text instead of an SDK.
    fn needs_wit(self) -> bool {
        self != Self::Rust
    }

    fn build_and_test(self) -> (&'static str, &'static str) {
        match self {
            Self::Rust => ("cargo build --release --target wasm32-wasip2", "cargo test"),
            Self::Js => ("npm run build", "npm test"),
            Self::Python => ("python3 build.py", "python3 -m unittest"),
        }
    }
}

pub(super) fn run(args: &Args) -> Result<bool> {
    let name = &args.name;
    check_name(name)?;
    if args.sdk.is_some() && args.lang != Language::Rust {
        bail!("--sdk is for guests in Rust; the others are built against `wit/`, which is written into the project");
    }
    let sdk = sdk(args.sdk.as_deref())?;
    let folder = Path::new(name);
    if folder.symlink_metadata().is_ok() {
        bail!("there is a `{name}` already; choose another name, or another folder to run this in");
    }
    let fill = |text: &str| {
        let filled = text.replace("{{name}}", name).replace("{{sdk}}", &sdk);
        filled.replace("{{repository}}", REPOSITORY).replace("{{wit}}", WIT_VERSION)
    };
    // Beside the place it goes to, so that there is a whole project or none.
    let draft = tempfile::Builder::new().prefix(".omc-guest-").tempdir_in(".").context("failed to write here")?;
    for (path, text) in args.lang.files() {
        write(&draft.path().join(path), &fill(text))?;
    }
    write(&draft.path().join(".gitignore"), args.lang.ignored())?;
    if args.lang.needs_wit() {
        write(&draft.path().join("wit/world.wit"), &fill(include_str!("../../../templates/wit/world.wit")))?;
        write(&draft.path().join("wit/deps/omc-hook/hook.wit"), WIT)?;
    }
    open_to_others(draft.path())?;
    fs::rename(draft.path(), folder).with_context(|| format!("failed to create `{name}`"))?;
    // It is not there any more.
    drop(draft.keep());

    let (build, test) = args.lang.build_and_test();
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "wrote `{name}`; next:\n  cd {name}\n  {test}\n  {build}")?;
    if args.lang == Language::Rust {
        writeln!(stdout, "the SDK: omc-guest = {sdk}")?;
    }
    Ok(true)
}

fn check_name(name: &str) -> Result<()> {
    let plain = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-');
    if !(name.len() <= MAX_NAME_BYTES
        && name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.bytes().all(plain))
    {
        bail!("the name `{name}` is not 1 to {MAX_NAME_BYTES} of a-z, 0-9 and -, starting with a letter");
    }
    if FIRST_PARTY.iter().any(|guest| guest.name == name) {
        bail!("the name `{name}` belongs to a guest of omc-host itself; choose another");
    }
    Ok(())
}

/// The dependency on the SDK, as `Cargo.toml` has it.
fn sdk(named: Option<&Path>) -> Result<String> {
    let is_sdk = |folder: &Path| {
        fs::read_to_string(folder.join("Cargo.toml")).is_ok_and(|text| text.contains("name = \"omc-guest\""))
    };
    let folder = match named {
        Some(named) if !is_sdk(named) => {
            bail!("`{}` is not the SDK; it is the folder `guests/sdk` of omc-host", named.display())
        }
        Some(named) => Some(named.to_owned()),
        None => {
            // From `target/release/omc-host` or `target/TRIPLE/debug/omc-host`.
            let program = std::env::current_exe().context("failed to find this program's own folder")?;
            program.ancestors().skip(1).take(5).map(|above| above.join("guests/sdk")).find(|folder| is_sdk(folder))
        }
    };
    Ok(match folder {
        Some(folder) => {
            let whole = folder.canonicalize().with_context(|| format!("failed to find `{}`", folder.display()))?;
            let whole = whole.to_str().with_context(|| format!("the path `{}` is not UTF-8", whole.display()))?;
            // A string of JSON is one of TOML as well.
            format!("{{ path = {} }}", serde_json::Value::from(whole))
        }
        None => format!("{{ version = \"{}\", git = \"{REPOSITORY}\" }}", env!("CARGO_PKG_VERSION")),
    })
}

fn write(path: &Path, text: &str) -> Result<()> {
    let failed = || format!("failed to write `{}`", path.display());
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).with_context(failed)?;
    }
    fs::write(path, text).with_context(failed)
}

/// Gives the folder the mode that a new one has; a temporary one is for its owner alone.
#[cfg(unix)]
fn open_to_others(folder: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    // A folder inside it was made as any other.
    let probe = folder.join(".mode");
    fs::create_dir(&probe).and_then(|()| {
        let mode = fs::metadata(&probe)?.permissions().mode();
        fs::remove_dir(&probe)?;
        fs::set_permissions(folder, fs::Permissions::from_mode(mode))
    })?;
    Ok(())
}

#[cfg(not(unix))]
fn open_to_others(_: &Path) -> Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_could_not_be_guests_or_lead_elsewhere_are_refused() {
        for name in ["", "A", "9a", "-a", "a/b", "..", "a b", "a.b", "stop\n", &"a".repeat(65)] {
            assert!(check_name(name).is_err(), "{name:?}");
        }
        assert!(check_name("keyword-detector").unwrap_err().to_string().contains("of omc-host itself"));
        assert!(check_name("guard-2").is_ok());
    }

    #[test]
    fn nothing_in_a_template_is_left_unfilled() {
        for language in [Language::Rust, Language::Js, Language::Python] {
            for (path, text) in language.files() {
                let left = text.replace("{{name}}", "").replace("{{sdk}}", "").replace("{{repository}}", "");
                assert!(!left.replace("{{wit}}", "").contains("{{"), "{path}");
            }
        }
    }

    #[test]
    fn a_folder_that_is_not_the_sdk_is_refused_and_one_that_is_becomes_a_dependency() {
        assert!(sdk(Some(Path::new("/"))).unwrap_err().to_string().contains("guests/sdk"));
        let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("../guests/sdk");
        let dependency = sdk(Some(&here)).unwrap();
        assert!(dependency.starts_with("{ path = \"/") && dependency.ends_with("guests/sdk\" }"), "{dependency}");
    }
}
