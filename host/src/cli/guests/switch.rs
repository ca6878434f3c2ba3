//! `omc-host guests enable` and `disable`: one switch in the user's `config.toml`.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use super::{find, registry, settings};
use crate::config::operator::MAX_OPERATOR_BYTES;
use crate::config::{Paths, edit, file};
use crate::registry::lock_dir;

/// How long a command waits for another one that changes the same file.
const WAIT_FOR_LOCK: Duration = Duration::from_secs(10);

/// What is appended to the file's name for the copy of it as it was.
const BACKUP: &str = ".bak";

pub(super) fn set(name: &str, enabled: bool, paths: &Paths) -> Result<bool> {
    let guest = find(&registry(paths)?, name)?;
    if !enabled && settings(paths).guest(name).required {
        bail!("`{name}` is required, which keeps it on; take `required` out of `[guests.{name}]` first");
    }
    let path = paths
        .user_config_file()
        .context("there is no configuration to change: neither HOME nor XDG_CONFIG_HOME is set to an absolute path")?;
    let folder = path.parent().context("the configuration has no folder")?;
    {
        let _locked =
            lock_dir(folder, WAIT_FOR_LOCK).with_context(|| format!("failed to lock `{}`", folder.display()))?;
        let text = match file::read(&path, MAX_OPERATOR_BYTES) {
            Ok(read) => read.map(|read| read.text),
            Err(error) => return Err(error).with_context(|| format!("failed to read `{}`", path.display())),
        };
        let before = text.as_deref().unwrap_or_default();
        let after = edit::set_enabled(before, name, enabled)
            .with_context(|| format!("`{}` was not changed", path.display()))?;
        if after != before || text.is_none() {
            replace(&path, text.is_some(), &after).with_context(|| format!("failed to write `{}`", path.display()))?;
        }
    }
    // Whoever else has a say may have said otherwise.
    let is_on = settings(paths).guest(name).switch.is_on(guest.is_on_by_default());
    let state = if is_on { "on" } else { "off" };
    if is_on == enabled {
        writeln!(io::stdout(), "`{name}` is {state}")?;
        return Ok(true);
    }
    bail!(
        "`{name}` is still {state}: the operator's file decides, or `{}` has a fault; see `[guests.{name}]` in both",
        path.display()
    );
}

/// Writes the file in one step, with the mode that it has, and keeps a copy of what it was. A link stays a link.
fn replace(path: &Path, is_there: bool, text: &str) -> io::Result<()> {
    let target = if is_there { path.canonicalize()? } else { path.to_owned() };
    let folder = target.parent().ok_or(io::ErrorKind::InvalidInput)?;
    let mut new = tempfile::NamedTempFile::new_in(folder)?;
    new.write_all(text.as_bytes())?;
    if is_there {
        let mut backup: PathBuf = target.clone();
        backup.as_mut_os_string().push(BACKUP);
        fs::copy(&target, &backup)?;
        new.as_file().set_permissions(File::open(&target)?.metadata()?.permissions())?;
    }
    new.as_file().sync_all()?;
    new.persist(&target)?;
    Ok(())
}
