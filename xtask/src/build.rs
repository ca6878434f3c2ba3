//! From sources to a host with its guests inside.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::SystemTime;

use anyhow::{Context as _, Result, bail};

/// The target of every guest.
const GUEST_TARGET: &str = "wasm32-wasip2";
/// The profile of the programs beside the host: optimised, and built more quickly than a release.
pub(crate) const QUICK: &str = "compiler";
/// Crates below `guests/` that are no guests.
const LIBRARIES: &[&str] = &["bare", "sdk", "state", "turn"];

/// Where things are, all absolute.
pub(crate) struct Workspace {
    pub(crate) root: PathBuf,
    pub(crate) target: PathBuf,
}

/// The compiled code of the guests.
pub(crate) struct Guests {
    /// Holds `NAME.cwasm` and `NAME.json` for each first-party guest.
    pub(crate) aot: PathBuf,
    /// Holds `NAME.wasm` for each guest, first-party or for tests.
    pub(crate) wasm: PathBuf,
    /// The ahead-of-time compiler.
    pub(crate) compiler: PathBuf,
}

impl Workspace {
    pub(crate) fn find() -> Result<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask has no parent folder")?.to_path_buf();
        let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |dir| root.join(dir));
        Ok(Self { root, target })
    }

    /// Cargo at the workspace's root, with the guests' place known to the host's build script.
    pub(crate) fn cargo(&self, guests: Option<&Guests>) -> Command {
        let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo.current_dir(&self.root);
        if let Some(guests) = guests {
            cargo.env("OMC_HOST_AOT_DIR", &guests.aot);
        }
        cargo
    }

    /// The names of the crates in a folder that are guests.
    fn guests_in(&self, folder: &str) -> Result<Vec<String>> {
        let path = self.root.join(folder);
        let entries = fs::read_dir(&path).with_context(|| format!("failed to list `{}`", path.display()))?;
        let mut names = Vec::new();
        for entry in entries {
            let entry = entry?;
            let name = entry.file_name().into_string().unwrap_or_default();
            if entry.path().join("Cargo.toml").is_file() && !LIBRARIES.contains(&name.as_str()) {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }
}

/// Builds `omc-host` for use and returns its path. The programs that it starts are put beside it.
pub(crate) fn release() -> Result<PathBuf> {
    let workspace = Workspace::find()?;
    let guests = guests(&workspace)?;
    let folder = workspace.target.join("release");
    let host = for_use(&workspace, &guests, &["omc-host", "omc-mcp"])?;
    copy_if_newer(&guests.compiler, &folder.join(executable("omc-compiler")))?;
    copy_if_newer(&net(&workspace)?, &folder.join(executable("omc-net")))?;
    Ok(host)
}

/// Builds only `omc-host` as people get it.
pub(crate) fn host_for_use(workspace: &Workspace, guests: &Guests) -> Result<PathBuf> {
    for_use(workspace, guests, &["omc-host"])
}

/// Builds programs as people get them, puts them into `target/release`, and returns the path of the first.
fn for_use(workspace: &Workspace, guests: &Guests, programs: &[&str]) -> Result<PathBuf> {
    let triple = host_triple()?;
    let mut cargo = workspace.cargo(Some(guests));
    cargo.args(["build", "--profile", "dist", "--target", &triple]);
    for program in programs {
        cargo.args(["--package", program]);
    }
    if can_link_statically(&triple) {
        // Finding and loading shared libraries is a third of what a start of this process costs. Random numbers come from the
        // system call itself: its crate would look for the C library's function at run time, find none in a static program, and
        // open a device instead.
        let mut flags = vec!["-Ctarget-feature=+crt-static", "--cfg=getrandom_backend=\"linux_getrandom\""];
        if knows_packed_relocations() {
            flags.push("-Clink-arg=-Wl,-z,pack-relative-relocs");
        }
        cargo.arg("--config").arg(format!("target.{triple}.rustflags={}", serde_json::to_string(&flags)?));
    }
    run(&mut cargo)?;
    let (built, folder) = (workspace.target.join(&triple).join("dist"), workspace.target.join("release"));
    fs::create_dir_all(&folder).with_context(|| format!("failed to create `{}`", folder.display()))?;
    for program in programs.iter().map(|program| executable(program)) {
        copy_if_newer(&built.join(&program), &folder.join(&program))?;
    }
    Ok(folder.join(executable(programs[0])))
}

/// Whether the C library applies packed relocations, which are a twentieth of the others' size: glibc does since 2.36.
fn knows_packed_relocations() -> bool {
    const SINCE: (u32, u32) = (2, 36);
    let version = output(Command::new("getconf").arg("GNU_LIBC_VERSION")).unwrap_or_default();
    let parts = version.trim().strip_prefix("glibc ").and_then(|version| version.split_once('.'));
    let number = |text: &str| text.parse::<u32>().ok();
    parts.is_some_and(|(major, minor)| Some(SINCE) <= number(major).zip(number(minor)))
}

/// Whether the C library can be linked into the host: on Linux with glibc, if its static archive is installed.
fn can_link_statically(triple: &str) -> bool {
    let finds_archive = || {
        let printed = output(Command::new("cc").arg("-print-file-name=libc.a")).ok()?;
        // The bare name, if there is none.
        Path::new(printed.trim()).is_absolute().then_some(())
    };
    triple.ends_with("-linux-gnu") && finds_archive().is_some()
}

/// Builds the program that opens sockets and returns its path.
///
/// Once, for use and for tests: its libraries take longer than all the rest, and none of them is the host's.
pub(crate) fn net(workspace: &Workspace) -> Result<PathBuf> {
    run(workspace.cargo(None).args(["build", "--profile", QUICK, "--package", "omc-net"]))?;
    Ok(workspace.target.join(QUICK).join(executable("omc-net")))
}

/// Prints where an OCI registry for tests is; fetches one where there is none.
pub(crate) fn registry(workspace: &Workspace) -> Result<PathBuf> {
    let script = workspace.root.join("scripts/test-registry.sh");
    let printed = output(Command::new("bash").arg(script).arg(workspace.target.join("registry")))?;
    Ok(printed.trim().into())
}

/// Builds all guests for wasm and compiles the first-party ones for this machine.
pub(crate) fn guests(workspace: &Workspace) -> Result<Guests> {
    let (first_party, for_tests) = (workspace.guests_in("guests")?, workspace.guests_in("tests/guests")?);
    let wasm = build_wasm(workspace, first_party.iter().chain(&for_tests))?;

    run(workspace.cargo(None).args(["build", "--profile", QUICK, "--package", "omc-compiler"]))?;
    let compiler = workspace.target.join(QUICK).join(executable("omc-compiler"));

    let aot = workspace.target.join("aot").join(host_triple()?);
    fs::create_dir_all(&aot).with_context(|| format!("failed to create `{}`", aot.display()))?;
    for name in &first_party {
        let component = wasm.join(name.replace('-', "_")).with_extension("wasm");
        let (code, about) = (aot.join(name).with_extension("cwasm"), aot.join(name).with_extension("json"));
        if is_newer(&code, &component) && is_newer(&code, &compiler) && about.exists() {
            continue;
        }
        run(Command::new(&compiler).arg("build").arg(&component).arg(&code).arg("--describe").arg(&about))?;
    }
    // A guest that was removed from the sources must not be embedded.
    for entry in fs::read_dir(&aot)? {
        let path = entry?.path();
        let known =
            path.file_stem().and_then(OsStr::to_str).is_some_and(|stem| first_party.iter().any(|name| name == stem));
        if !known {
            fs::remove_file(&path).with_context(|| format!("failed to remove `{}`", path.display()))?;
        }
    }
    Ok(Guests { aot, wasm, compiler })
}

/// Builds guests for wasm; they land in the folder that is returned.
pub(crate) fn build_wasm<'a>(workspace: &Workspace, names: impl Iterator<Item = &'a String>) -> Result<PathBuf> {
    let rustc = guests_rustc(workspace)?;
    let target = workspace.target.join("guests");
    let mut cargo = workspace.cargo(None);
    // Possibly another compiler than the host's, hence a target folder of its own.
    cargo.env("RUSTC", rustc.trim()).arg("build").arg("--target-dir").arg(&target);
    cargo.args(["--target", GUEST_TARGET, "--profile", "guest"]);
    for name in names {
        cargo.args(["--package", name]);
    }
    run(&mut cargo)?;
    Ok(target.join(GUEST_TARGET).join("guest"))
}

/// The compiler that guests are built with, after it was seen to that it can.
fn guests_rustc(workspace: &Workspace) -> Result<String> {
    if cfg!(windows) {
        // The `bash` that is found there first is that of another system, and only rustup has the target.
        run(Command::new("rustup").args(["target", "add", GUEST_TARGET]))?;
        return output(Command::new("rustup").args(["which", "rustc"]));
    }
    output(Command::new("bash").arg(workspace.root.join("scripts/wasm-target.sh")).arg("--print-rustc"))
}

pub(crate) fn host_triple() -> Result<String> {
    let about = output(Command::new("rustc").arg("-vV"))?;
    let triple = about.lines().find_map(|line| line.strip_prefix("host: ")).context("rustc names no host")?;
    Ok(triple.to_owned())
}

pub(crate) fn executable(name: &str) -> String {
    format!("{name}{}", env::consts::EXE_SUFFIX)
}

/// Runs a command to its end; an exit status other than 0 is an error.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("failed to start {command:?}"))?;
    if !status.success() {
        bail!("{command:?} ended with {status}");
    }
    Ok(())
}

/// Runs a command and returns what it printed.
fn output(command: &mut Command) -> Result<String> {
    let output = command.stderr(Stdio::inherit()).output().with_context(|| format!("failed to start {command:?}"))?;
    if !output.status.success() {
        bail!("{command:?} ended with {}", output.status);
    }
    String::from_utf8(output.stdout).with_context(|| format!("{command:?} printed something that is not UTF-8"))
}

fn copy_if_newer(from: &Path, to: &Path) -> Result<()> {
    if !is_newer(to, from) {
        fs::copy(from, to).with_context(|| format!("failed to copy `{}` to `{}`", from.display(), to.display()))?;
    }
    Ok(())
}

/// Whether a file exists and was written after another.
fn is_newer(file: &Path, than: &Path) -> bool {
    let modified = |path: &Path| path.metadata().and_then(|about| about.modified()).ok();
    modified(file).is_some_and(|time: SystemTime| modified(than).is_some_and(|other| time >= other))
}
