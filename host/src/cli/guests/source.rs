//! Where a guest is taken from: a file, a folder with one, or an OCI registry.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf, absolute};

use anyhow::{Context as _, Result, bail};

use crate::cli::net::{self, Transport};
use crate::registry::Candidate;
use crate::signature::Key;

/// What a reference to a registry begins with.
pub(super) const OCI: &str = "oci://";

/// Reads the guest that a source names.
pub(super) fn read(source: &str, transport: &Transport, trusted: &BTreeSet<Key>) -> Result<Candidate> {
    if let Some(reference) = source.strip_prefix(OCI) {
        let folder = tempfile::tempdir().context("failed to create a folder for what is fetched")?;
        let pulled = net::pull(transport, reference, folder.path())?;
        let candidate = Candidate::read(&pulled.component, source.to_owned(), Some(pulled.digest), trusted);
        return candidate.with_context(|| format!("`{source}` is not a guest that can be added"));
    }
    let path = Path::new(source);
    let file = match fs::metadata(path) {
        Ok(about) if about.is_dir() => only_component(path)?,
        // Files that are missing, and what is no file, have their messages where they are read.
        _ => path.to_owned(),
    };
    // Written down so that `update` finds it from any folder.
    let whole = absolute(path).with_context(|| format!("failed to find `{source}` from here"))?;
    Ok(Candidate::read(&file, whole.display().to_string(), None, trusted)?)
}

/// The one component in a folder.
fn only_component(folder: &Path) -> Result<PathBuf> {
    let shown = folder.display();
    let entries = fs::read_dir(folder).with_context(|| format!("failed to list `{shown}`"))?;
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let mut components: Vec<_> =
        paths.filter(|path| path.extension().is_some_and(|extension| extension == "wasm")).collect();
    components.sort();
    match components.as_slice() {
        [one] => Ok(one.clone()),
        [] => bail!("there is no `.wasm` file in `{shown}`; name the component's file"),
        several => {
            let names: Vec<_> = several.iter().filter_map(|path| path.file_name()?.to_str()).take(8).collect();
            bail!("there are several components in `{shown}` ({}); name one of them", names.join(", "))
        }
    }
}
