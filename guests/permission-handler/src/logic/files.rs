//! Which files a command may name: inside the repository, reached without a link, and nobody's secret.

/// What lies at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
}

/// The repository and the place in it where the command runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folders {
    root: String,
    /// The components of the folder worked in, below the root.
    inside: Vec<String>,
}

impl Folders {
    /// The folders, if the one is inside the other.
    pub fn new(root: &str, cwd: &str) -> Option<Self> {
        let root = root.trim_end_matches('/');
        let below = cwd.strip_prefix(root)?;
        if !root.starts_with('/') || !(below.is_empty() || below.starts_with('/')) {
            return None;
        }
        let inside: Vec<_> = below.split('/').filter(|part| !part.is_empty()).map(str::to_owned).collect();
        inside.iter().all(|part| part != "." && part != "..").then(|| Self { root: root.to_owned(), inside })
    }

    /// The root, without a slash at its end.
    pub fn root(&self) -> &str {
        &self.root
    }

    /// Every folder from the root to the one worked in, below the root; the root itself is empty.
    pub fn ancestry(&self) -> impl Iterator<Item = String> + '_ {
        (0..=self.inside.len()).map(|depth| self.inside[..depth].join("/"))
    }

    /// The path below the root that a command means by a word, if it is allowed to name it and no link is on the way.
    pub(super) fn resolve(&self, word: &str, kind: &dyn Fn(&str) -> Option<Kind>) -> Option<String> {
        // A `..` leads elsewhere if the folder worked in is itself a link.
        if !self.inside.is_empty() && kind(&self.inside.join("/")) != Some(Kind::Folder) {
            return None;
        }
        self.resolve_named(word)
    }

    /// The same by the word alone; whether anything is there is not asked.
    pub(super) fn resolve_named(&self, word: &str) -> Option<String> {
        let (mut parts, word) = if word.starts_with('/') {
            let below = word.strip_prefix(self.root.as_str())?;
            (Vec::new(), below.strip_prefix('/').or(below.is_empty().then_some(""))?)
        } else {
            (self.inside.clone(), word)
        };
        let mut named = false;
        for part in word.split('/') {
            match part {
                "" | "." => {}
                // Behind a name, `..` leads to wherever a link of that name leads.
                ".." if named => return None,
                ".." => {
                    parts.pop()?;
                }
                part => {
                    named = true;
                    parts.push(part.to_owned());
                }
            }
        }
        (!is_sensitive(&parts)).then(|| parts.join("/"))
    }
}

/// Whether a path leads to what is kept secret, in any case of letters.
fn is_sensitive(parts: &[String]) -> bool {
    const NAMES: &[&str] = &[
        ".aws",
        ".azure",
        ".docker",
        ".git",
        ".git-credentials",
        ".gnupg",
        ".htpasswd",
        ".kube",
        ".netrc",
        ".npmrc",
        ".pgpass",
        ".pypirc",
        ".ssh",
        ".vault-token",
        ".yarnrc.yml",
        "_netrc",
        "credentials",
        "credentials.json",
        "secret",
        "secrets",
    ];
    const PREFIXES: &[&str] = &[".env", "id_", "secrets."];
    const SUFFIXES: &[&str] =
        &[".env", ".jks", ".kdbx", ".key", ".keystore", ".p12", ".pem", ".pfx", ".ppk", ".tfstate", ".tfvars"];
    let folded: Vec<String> = parts.iter().map(|part| fold(part)).collect();
    folded.windows(2).any(|pair| pair == ["node_modules", ".cache"])
        || folded.iter().any(|part| {
            NAMES.contains(&part.as_str())
                || PREFIXES.iter().any(|prefix| part.starts_with(prefix))
                || SUFFIXES.iter().any(|suffix| part.ends_with(suffix))
        })
}

/// Folds letters as file systems that ignore their case do: `ſ` (long s) is an `s` to them.
fn fold(text: &str) -> String {
    text.chars().flat_map(char::to_uppercase).flat_map(char::to_lowercase).collect()
}
