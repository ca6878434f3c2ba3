//! What is different between two guests, or two versions of one: for `audit --diff`, `guests add` and `guests update`.
//!
//! Pure. A difference widens when the new guest can ask for more, see more or run for longer than the old one; that is what a
//! person has to look at.

use omc_artifact::{Capability, DEFAULT_ORDER, Manifest, Subscription, WishedLimits};
use serde::Serialize;

use crate::policy::{self, parse_grant};

/// Most conditions of a subscription that are shown at a glance.
const MAX_CONDITIONS: usize = 3;

/// A guest, as far as it is compared.
#[derive(Clone, Copy)]
pub(super) struct Side<'a> {
    pub(super) digest: &'a str,
    pub(super) manifest: &'a Manifest,
    pub(super) imports: &'a [String],
}

/// One difference.
#[derive(Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Difference {
    /// What is different: `version`, `digest`, `event`, `order`, `request`, `import`, `limit`, …
    pub(super) what: &'static str,
    /// As it was; absent if there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) old: Option<String>,
    /// As it is; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) new: Option<String>,
    /// Whether the new guest can do more by it.
    pub(super) widens: bool,
}

impl Difference {
    /// A line for people: `+` what came, `-` what went, `~` what changed, and `!` after it where it widens.
    pub(super) fn line(&self) -> String {
        let mark = if self.widens { "!" } else { " " };
        match (&self.old, &self.new) {
            (None, Some(new)) => format!("+{mark} {} {new}", self.what),
            (Some(old), None) => format!("-{mark} {} {old}", self.what),
            (old, new) => {
                let shown = |side: &Option<String>| side.clone().unwrap_or_default();
                format!("~{mark} {} {} -> {}", self.what, shown(old), shown(new))
            }
        }
    }
}

/// All differences from one guest to another.
pub(super) fn between(old: Side<'_>, new: Side<'_>) -> Vec<Difference> {
    let mut found = Vec::new();
    let mut changed = |what, old: &str, new: &str| {
        if old != new {
            let (old, new) = (Some(old.to_owned()), Some(new.to_owned()));
            found.push(Difference { what, old, new, widens: false });
        }
    };
    changed("name", &old.manifest.name, &new.manifest.name);
    changed("version", &old.manifest.version, &new.manifest.version);
    changed("digest", old.digest, new.digest);
    changed("description", &old.manifest.description, &new.manifest.description);
    let on = |manifest: &Manifest| if manifest.enabled { "on" } else { "off" };
    changed("default", on(old.manifest), on(new.manifest));

    let requested: Vec<&Capability> = old.manifest.requests.iter().map(|request| &request.capability).collect();
    let is_more = |part: &String| {
        let (capability, scope) =
            part.split_once(' ').map_or((part.as_str(), None), |(name, scope)| (name, Some(scope)));
        let scope: Vec<_> = scope.into_iter().map(str::to_owned).collect();
        parse_grant(capability, &scope).map_or(true, |grant| !policy::covers(&requested, &grant))
    };
    compare("request", &parts(old.manifest), &parts(new.manifest), is_more, &mut found);
    compare("event", &events(old.manifest), &events(new.manifest), |_| true, &mut found);
    // Being asked earlier or later is not being able to do more.
    compare("order", &orders(old.manifest), &orders(new.manifest), |_| false, &mut found);
    compare("import", old.imports, new.imports, |_| true, &mut found);
    limits(&old.manifest.limits, &new.manifest.limits, &mut found);
    found
}

fn compare(
    what: &'static str,
    old: &[String],
    new: &[String],
    widens: impl Fn(&String) -> bool,
    found: &mut Vec<Difference>,
) {
    let came = new.iter().filter(|entry| !old.contains(entry));
    let came = came.map(|entry| Difference { what, old: None, widens: widens(entry), new: Some(entry.clone()) });
    let went = old.iter().filter(|entry| !new.contains(entry));
    let went = went.map(|entry| Difference { what, old: Some(entry.clone()), new: None, widens: false });
    found.extend(came.chain(went));
}

fn limits(old: &WishedLimits, new: &WishedLimits, found: &mut Vec<Difference>) {
    for ((what, old), (_, new)) in wishes(old).into_iter().zip(wishes(new)) {
        if old != new {
            let text = |value: Option<u64>| value.map(|value| format!("{what} {value}"));
            // Without a wish it has the operator's limit, which is the most it can have.
            let widens = old.is_some() && new.is_none_or(|new| Some(new) > old);
            found.push(Difference { what: "limit", old: text(old), new: text(new), widens });
        }
    }
}

/// The limits that a guest wishes for, by their keys.
pub(super) fn wishes(limits: &WishedLimits) -> [(&'static str, Option<u64>); 3] {
    [("fuel", limits.fuel), ("memory-bytes", limits.memory_bytes), ("call-deadline-ms", limits.deadline_ms)]
}

/// What a manifest requests, one part of a scope each: `omc rw:/omc/state`, `git`.
pub(super) fn parts(manifest: &Manifest) -> Vec<String> {
    manifest.requests.iter().flat_map(|request| capability_parts(&request.capability)).collect()
}

/// A capability, one part of its scope each.
pub(super) fn capability_parts(capability: &Capability) -> Vec<String> {
    let (name, scope) = (capability.name(), capability.scope());
    if scope.is_empty() {
        return vec![name.to_owned()];
    }
    scope.into_iter().map(|part| format!("{name} {part}")).collect()
}

/// The events that a manifest subscribes to, each with its matcher and its conditions.
pub(super) fn events(manifest: &Manifest) -> Vec<String> {
    manifest.subscriptions.iter().map(|wanted| event(wanted, usize::MAX)).collect()
}

/// The same for a glance: with some of the conditions, since a guest can have a hundred.
pub(super) fn events_in_short(manifest: &Manifest) -> Vec<String> {
    manifest.subscriptions.iter().map(|wanted| event(wanted, MAX_CONDITIONS)).collect()
}

/// A subscription, with so many of its conditions.
fn event(wanted: &Subscription, most: usize) -> String {
    let mut text = target(wanted);
    let (shown, left_out) = wanted.when.split_at(most.min(wanted.when.len()));
    if !shown.is_empty() {
        text.extend([" when ", &shown.join(" or ")]);
    }
    if !left_out.is_empty() {
        text.extend([" … and ", &left_out.len().to_string(), " more"]);
    }
    text
}

/// The event of a subscription, with its matcher.
fn target(wanted: &Subscription) -> String {
    [Some(wanted.event.as_str()), wanted.matcher.as_deref()].into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// The orders of subscriptions, as far as they are not the usual one.
fn orders(manifest: &Manifest) -> Vec<String> {
    let unusual = manifest.subscriptions.iter().filter(|wanted| wanted.order != DEFAULT_ORDER);
    unusual.map(|wanted| format!("{} {}", target(wanted), wanted.order)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(text: &str) -> Manifest {
        Manifest::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn what_a_new_version_can_do_beyond_the_old_one_is_marked() {
        let old = manifest(
            r#"{"name": "a", "version": "1", "subscriptions": [{"event": "stop"}], "limits": {"fuel": 5},
                "requests": [{"capability": "omc", "scope": ["rw:/omc/a"], "reason": ""}, {"capability": "git", "reason": ""}]}"#,
        );
        let new = manifest(
            r#"{"name": "a", "version": "2", "subscriptions": [{"event": "stop"}, {"event": "pre-tool-use", "matcher": "Bash", "order": 5}],
                "requests": [{"capability": "omc", "scope": ["ro:/omc/a/b", "rw:/omc/c"], "reason": ""}]}"#,
        );
        let imports = ["omc:hook/types@0.1.0".to_owned(), "omc:hook/git@0.1.0".to_owned()];
        let old = Side { digest: "d1", manifest: &old, imports: &imports };
        let new = Side { digest: "d2", manifest: &new, imports: &imports[..1] };
        let lines: Vec<_> = between(old, new).iter().map(Difference::line).collect();
        assert_eq!(
            lines,
            [
                "~  version 1 -> 2",
                "~  digest d1 -> d2",
                "+  request omc ro:/omc/a/b",
                "+! request omc rw:/omc/c",
                "-  request omc rw:/omc/a",
                "-  request git",
                "+! event pre-tool-use Bash",
                "+  order pre-tool-use Bash 5",
                "-  import omc:hook/git@0.1.0",
                "-! limit fuel 5",
            ]
        );
        assert!(between(old, old).is_empty());
    }

    #[test]
    fn another_order_is_a_difference_that_widens_nothing() {
        let with = |order: &str| {
            manifest(&format!(r#"{{"name": "a", "version": "1", "subscriptions": [{{"event": "stop"{order}}}]}}"#))
        };
        let lines = |old: &str, new: &str| -> Vec<_> {
            let (old, new) = (with(old), with(new));
            let side = |manifest| Side { digest: "d", manifest, imports: &[] };
            between(side(&old), side(&new)).iter().map(Difference::line).collect()
        };
        assert_eq!(lines(r#", "order": 3"#, r#", "order": 5"#), ["+  order stop 5", "-  order stop 3"]);
        assert_eq!(lines("", r#", "order": 5"#), ["+  order stop 5"]);
        assert_eq!(lines(r#", "order": 1000"#, ""), Vec::<String>::new());
    }

    #[test]
    fn many_conditions_are_some_and_how_many_more() {
        let conditions: Vec<_> = (1..=40).map(|number| format!("payload:{number}")).collect();
        let text = serde_json::json!({"name": "a", "version": "1", "subscriptions": [
            {"event": "stop", "when": conditions}, {"event": "setup", "when": &conditions[..3]},
        ]});
        let manifest = manifest(&text.to_string());
        let short = "stop when payload:1 or payload:2 or payload:3 … and 37 more";
        assert_eq!(events_in_short(&manifest), [short, "setup when payload:1 or payload:2 or payload:3"]);
        assert!(events(&manifest)[0].ends_with(" or payload:40"));
    }
}
