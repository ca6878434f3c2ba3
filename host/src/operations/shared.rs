//! Memory that agents of a project share: any JSON under a key of a namespace, for a time or for ever.

use std::fmt;

use omc_state::Area;
use omc_state::shared_memory::{MAX_TTL_SECONDS, Name};
use serde::Serialize;
use serde_json::Value;

use super::{Error, Project, Result, now, pretty};

/// The setting that switches it off.
const SETTING: &str = "agents.sharedMemory.enabled";

/// What is stored under a key.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Item {
    /// The namespace.
    pub namespace: String,
    /// The key.
    pub key: String,
    /// What was stored; left out of lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// When it was stored last.
    pub updated_at: Option<String>,
    /// When its time is over, if ever.
    pub expires_at: Option<String>,
}

/// The value of a key, if there is one.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Found(pub Option<Item>);

impl fmt::Display for Found {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(item) => pretty(item, formatter),
            None => formatter.write_str("not found: there is no such key, or its time is over"),
        }
    }
}

/// The keys of a namespace, or the namespaces.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Listed {
    /// The namespaces.
    Namespaces(Vec<String>),
    /// The keys of one, without their values.
    Keys(Vec<Item>),
}

impl fmt::Display for Listed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<_> = match self {
            Self::Namespaces(names) => names.clone(),
            Self::Keys(items) => items
                .iter()
                .map(|item| {
                    let expires = item.expires_at.as_ref().map(|time| format!(", until {time}")).unwrap_or_default();
                    format!(
                        "{} (updated {}{expires})",
                        item.key,
                        item.updated_at.as_deref().unwrap_or("at no known time")
                    )
                })
                .collect(),
        };
        formatter.write_str(if lines.is_empty() { "nothing is stored" } else { "" })?;
        formatter.write_str(&lines.join("\n"))
    }
}

/// What was stored or removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Stored {
    /// The namespace.
    pub namespace: String,
    /// The key.
    pub key: String,
    /// Whether something changed.
    pub changed: bool,
    #[serde(skip)]
    done: &'static str,
}

impl fmt::Display for Stored {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} `{}` in `{}`", self.done, self.key, self.namespace)
    }
}

/// What a clean-up removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CleanedUp {
    /// The keys that are gone, as `namespace/key`.
    pub removed: Vec<String>,
}

impl fmt::Display for CleanedUp {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "removed {} entries whose time is over", self.removed.len())?;
        self.removed.iter().try_for_each(|name| write!(formatter, "\n{name}"))
    }
}

fn name(argument: &'static str, text: &str) -> Result<Name> {
    let why = "a name is 1 to 128 letters, digits, `.`, `_` or `-`, begins with a letter or digit and has no `..`";
    Name::parse(text).ok_or_else(|| Error::argument(argument, why))
}

impl Project {
    fn check_shared(&self) -> Result<()> {
        if self.is_on(SETTING) { Ok(()) } else { Err(Error::SwitchedOff("shared memory")) }
    }

    /// Stores a value, for a number of seconds or for ever.
    ///
    /// # Errors
    ///
    /// An argument that cannot be used, or what keeps the file from being written.
    pub fn write_shared(&self, namespace: &str, key: &str, value: Value, ttl: Option<u64>) -> Result<Stored> {
        self.check_shared()?;
        let (ns, key) = (name("namespace", namespace)?, name("key", key)?);
        if ttl.is_some_and(|ttl| !(1..=MAX_TTL_SECONDS).contains(&ttl)) {
            return Err(Error::argument("ttl", format!("it is a number of seconds from 1 to {MAX_TTL_SECONDS}")));
        }
        self.writable()?.write_shared(&self.locker(), (&ns, &key), value, ttl, now())?;
        Ok(Stored { namespace: namespace.to_owned(), key: key.as_str().to_owned(), changed: true, done: "stored" })
    }

    /// The value of a key.
    ///
    /// # Errors
    ///
    /// An argument that cannot be used, or what keeps the file from being read.
    pub fn read_shared(&self, namespace: &str, key: &str) -> Result<Found> {
        self.check_shared()?;
        let (ns, key) = (name("namespace", namespace)?, name("key", key)?);
        let entry = self.store.read_shared(&ns, &key, now())?;
        Ok(Found(entry.map(|entry| item(&ns, &key, &entry, true))))
    }

    /// The keys of a namespace, or the namespaces.
    ///
    /// # Errors
    ///
    /// An argument that cannot be used.
    pub fn list_shared(&self, namespace: Option<&str>) -> Result<Listed> {
        self.check_shared()?;
        let Some(namespace) = namespace else {
            let names = self.store.shared_namespaces();
            return Ok(Listed::Namespaces(names.iter().map(|name| name.as_str().to_owned()).collect()));
        };
        let ns = name("namespace", namespace)?;
        let listed = self.store.list_shared(&ns, now());
        Ok(Listed::Keys(listed.iter().map(|(key, entry)| item(&ns, key, entry, false)).collect()))
    }

    /// Forgets a key.
    ///
    /// # Errors
    ///
    /// An argument that cannot be used, or what keeps the file from being removed.
    pub fn delete_shared(&self, namespace: &str, key: &str) -> Result<Stored> {
        self.check_shared()?;
        let (ns, key) = (name("namespace", namespace)?, name("key", key)?);
        let changed = self.store.remove_shared_locked(&self.locker(), &ns, &key)?;
        let done = if changed { "removed" } else { "there is no" };
        Ok(Stored { namespace: namespace.to_owned(), key: key.as_str().to_owned(), changed, done })
    }

    /// Removes what is over, in one namespace or in all.
    ///
    /// # Errors
    ///
    /// An argument that cannot be used, or what keeps the lock from being taken.
    pub fn clean_up_shared(&self, namespace: Option<&str>) -> Result<CleanedUp> {
        self.check_shared()?;
        let only = namespace.map(|namespace| name("namespace", namespace)).transpose()?;
        if self.store.shared_namespaces().is_empty() {
            return Ok(CleanedUp { removed: Vec::new() });
        }
        let removed =
            self.store.locked_in(&self.locker(), Area::State, |store| Ok(store.sweep_shared(only.as_ref(), now())))?;
        let shown = |(namespace, key): &(Name, Name)| format!("{}/{}", namespace.as_str(), key.as_str());
        Ok(CleanedUp { removed: removed.iter().map(shown).collect() })
    }
}

fn item(namespace: &Name, key: &Name, entry: &omc_state::shared_memory::Entry, with_value: bool) -> Item {
    let time = |name: &str| entry.fields().time(name).map(|time| time.to_string());
    Item {
        namespace: namespace.as_str().to_owned(),
        key: key.as_str().to_owned(),
        value: with_value.then(|| entry.value().clone()),
        updated_at: time("updatedAt"),
        expires_at: time("expiresAt"),
    }
}
