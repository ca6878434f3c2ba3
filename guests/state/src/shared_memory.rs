//! Memory that agents of a project share, `state/shared-memory/NAMESPACE/KEY.json`: any JSON under a name, for a time or for ever.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::{Area, Error, Fields, Locker, Store, Timestamp, file::Kind, shared_path};

/// Longest life that can be asked for, in seconds: a week.
pub const MAX_TTL_SECONDS: u64 = 604_800;

/// Most keys of a namespace, and most namespaces: an agent that loops must not fill the disk.
pub const MAX_KEYS: usize = 500;
/// See [`MAX_KEYS`].
pub const MAX_NAMESPACES: usize = 100;

/// A checked name of a namespace or a key: 1 to 128 of ASCII letters, digits, `.`, `_` and `-`, a letter or digit first, no `..`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name(String);

impl Name {
    /// The name, if it is one.
    pub fn parse(text: &str) -> Option<Self> {
        let fits = (1..=128).contains(&text.len())
            && text.as_bytes()[0].is_ascii_alphanumeric()
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-'))
            && !text.contains("..");
        fits.then(|| Self(text.to_owned()))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// What is stored under a key.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    fields: Fields,
}

impl Entry {
    /// What was stored.
    pub fn value(&self) -> &Value {
        self.fields.get("value").unwrap_or(&Value::Null)
    }

    /// Whether its time is over.
    pub fn has_expired(&self, now: Timestamp) -> bool {
        self.fields.time("expiresAt").is_some_and(|time| time <= now)
    }

    /// All members.
    pub fn fields(&self) -> &Fields {
        &self.fields
    }
}

fn folder() -> PathBuf {
    shared_path("shared-memory")
}

fn path_of(namespace: &Name, key: &Name) -> PathBuf {
    folder().join(&namespace.0).join(format!("{}.json", key.0))
}

impl Store {
    /// Stores a value, under the lock of the state. The time at which the key was made first stays.
    ///
    /// # Errors
    ///
    /// [`Error::TooMany`] if there are too many keys or namespaces, or what keeps the file from being written.
    pub fn write_shared<L: Locker>(
        &self,
        locker: &L,
        (namespace, key): (&Name, &Name),
        value: Value,
        ttl_seconds: Option<u64>,
        now: Timestamp,
    ) -> Result<(), Error> {
        let path = path_of(namespace, key);
        self.locked_in(locker, Area::State, |store| {
            let known = store.read_fields(&path).ok().flatten();
            if known.is_none() {
                let own = folder().join(&namespace.0);
                let full = |path: PathBuf, max| Error::TooMany { path, max };
                if store.names(&own, MAX_KEYS).len() >= MAX_KEYS {
                    return Err(full(own, MAX_KEYS));
                }
                if !store.exists(&own) && store.names(&folder(), MAX_NAMESPACES).len() >= MAX_NAMESPACES {
                    return Err(full(folder(), MAX_NAMESPACES));
                }
            }
            let created = known.as_ref().and_then(|fields| fields.time("createdAt")).unwrap_or(now);
            let mut fields = known.unwrap_or_default();
            fields.set("key", key.as_str());
            fields.set("value", value);
            fields.set("namespace", namespace.as_str());
            fields.set_time("createdAt", created);
            fields.set_time("updatedAt", now);
            fields.remove("ttl");
            fields.remove("expiresAt");
            if let Some(seconds) = ttl_seconds.map(|seconds| seconds.clamp(1, MAX_TTL_SECONDS)) {
                fields.set("ttl", seconds);
                fields.set_time(
                    "expiresAt",
                    now.plus_ms(i64::try_from(seconds).unwrap_or(i64::MAX).saturating_mul(1000)),
                );
            }
            store.replace(&path, &fields)
        })
    }

    /// The value of a key; absent if there is none or its time is over.
    ///
    /// # Errors
    ///
    /// What keeps the file from being read.
    pub fn read_shared(&self, namespace: &Name, key: &Name, now: Timestamp) -> Result<Option<Entry>, Error> {
        let entry = self.read_fields(&path_of(namespace, key))?.map(|fields| Entry { fields });
        Ok(entry.filter(|entry| !entry.has_expired(now)))
    }

    /// The keys of a namespace whose time is not over, sorted, each with its entry. What cannot be read is left out.
    pub fn list_shared(&self, namespace: &Name, now: Timestamp) -> Vec<(Name, Entry)> {
        let mut listed: Vec<_> = self
            .keys(namespace)
            .into_iter()
            .filter_map(|key| Some((self.read_shared(namespace, &key, now).ok()??, key)))
            .map(|(entry, key)| (key, entry))
            .collect();
        listed.sort_by(|(a, _), (b, _)| a.cmp(b));
        listed
    }

    /// The namespaces, sorted.
    pub fn shared_namespaces(&self) -> Vec<Name> {
        let mut names: Vec<_> = self
            .entries(&folder(), MAX_NAMESPACES)
            .into_iter()
            .filter(|entry| entry.kind == Kind::Folder)
            .filter_map(|entry| Name::parse(&entry.name))
            .collect();
        names.sort();
        names
    }

    /// Forgets a key.
    ///
    /// # Errors
    ///
    /// What keeps the file from being removed.
    pub fn remove_shared(&self, namespace: &Name, key: &Name) -> Result<(), Error> {
        self.remove(&path_of(namespace, key))
    }

    /// The same under the lock of the state. Says whether there was one.
    ///
    /// # Errors
    ///
    /// As [`remove_shared`](Self::remove_shared), or what keeps the lock from being taken.
    pub fn remove_shared_locked<L: Locker>(&self, locker: &L, namespace: &Name, key: &Name) -> Result<bool, Error> {
        if !self.exists(&path_of(namespace, key)) {
            return Ok(false);
        }
        self.locked_in(locker, Area::State, |store| {
            let was_there = store.exists(&path_of(namespace, key));
            store.remove_shared(namespace, key)?;
            store.remove_folder(&folder().join(&namespace.0));
            Ok(was_there)
        })
    }

    /// Removes entries whose time is over, of one namespace or of all, and names them. For use under the lock of the state.
    pub fn sweep_shared(&self, only: Option<&Name>, now: Timestamp) -> Vec<(Name, Name)> {
        let mut removed = Vec::new();
        for namespace in only.map_or_else(|| self.shared_namespaces(), |name| vec![name.clone()]) {
            for key in self.keys(&namespace) {
                let entry = self.read_fields(&path_of(&namespace, &key)).ok().flatten().map(|fields| Entry { fields });
                if entry.is_some_and(|entry| entry.has_expired(now)) && self.remove_shared(&namespace, &key).is_ok() {
                    removed.push((namespace.clone(), key));
                }
            }
            self.remove_folder(&folder().join(&namespace.0));
        }
        removed
    }

    fn keys(&self, namespace: &Name) -> Vec<Name> {
        let names = self.names(&folder().join(Path::new(&namespace.0)), MAX_KEYS);
        names.iter().filter_map(|name| Name::parse(name.strip_suffix(".json")?)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        lock::testing::ThreadLocker,
        testing::{now, plant, store},
    };
    use serde_json::json;

    fn name(text: &str) -> Name {
        Name::parse(text).expect("a name")
    }

    #[test]
    fn names_cannot_leave_their_folder() {
        let longest = "a".repeat(128);
        for good in ["a", "A.b_c-1", "0", longest.as_str()] {
            assert_eq!(Name::parse(good).as_ref().map(Name::as_str), Some(good));
        }
        let too_long = "a".repeat(129);
        for bad in ["", ".", "..", "a..b", ".a", "-a", "a/b", "a\\b", "a b", "é", "a\0", too_long.as_str()] {
            assert_eq!(Name::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn an_entry_lives_as_long_as_was_asked() {
        let (_folder, store) = store();
        let locker = ThreadLocker::default();
        let (ns, short, long) = (name("team"), name("short"), name("long"));
        store.write_shared(&&locker, (&ns, &short), json!({"a": 1}), Some(1), now()).expect("a write");
        store.write_shared(&&locker, (&ns, &long), json!([2]), None, now()).expect("a write");
        let later = now().plus_ms(1_000);
        store.write_shared(&&locker, (&ns, &long), json!([3]), None, later).expect("a write");
        let read = |key, time| store.read_shared(&ns, key, time).expect("a read").map(|entry| entry.value().clone());
        assert_eq!(read(&short, now()), Some(json!({"a": 1})));
        assert_eq!(read(&short, later), None);
        assert_eq!(read(&long, later), Some(json!([3])));
        let listed = store.list_shared(&ns, later);
        assert_eq!(listed.len(), 1);
        assert_eq!(listed[0].1.fields().time("createdAt"), Some(now()), "the first time stays");
        assert_eq!(store.sweep_shared(Some(&name("other")), later), []);
        assert_eq!(store.sweep_shared(None, later), [(ns.clone(), short.clone())]);
        assert_eq!(store.shared_namespaces().len(), 1);
        store.remove_shared(&ns, &long).expect("removed");
        store.sweep_shared(None, later);
        assert_eq!(store.shared_namespaces(), []);
    }

    #[test]
    fn unknown_members_survive_and_broken_files_are_left_out() {
        let (folder, store) = store();
        let locker = ThreadLocker::default();
        plant(&folder, "state/shared-memory/n/k.json", json!({"key": "k", "value": 1, "mine": 2}).to_string());
        plant(&folder, "state/shared-memory/n/torn.json", "{");
        plant(&folder, "state/shared-memory/n/no key.json", "{}");
        let (ns, key) = (name("n"), name("k"));
        store.write_shared(&&locker, (&ns, &key), json!(3), None, now()).expect("a write");
        let listed = store.list_shared(&ns, now());
        assert_eq!(listed.len(), 1);
        assert_eq!(listed[0].1.fields().get("mine"), Some(&json!(2)));
    }

    #[test]
    fn an_agent_that_loops_fills_nothing() {
        let (folder, store) = store();
        for at in 0..MAX_KEYS {
            plant(&folder, &format!("state/shared-memory/n/k{at}.json"), "{}");
        }
        let locker = ThreadLocker::default();
        let write = |ns: &str, key: &str| store.write_shared(&&locker, (&name(ns), &name(key)), json!(1), None, now());
        assert!(matches!(write("n", "new"), Err(Error::TooMany { .. })));
        write("n", "k0").expect("a key that is there");
        write("m", "new").expect("another namespace");
    }
}
