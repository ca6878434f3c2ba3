//! `DISABLE_OMC` and `OMC_SKIP_HOOKS`: the person's way to silence guests without touching a file.
//!
//! Asked before the guests of an event are selected. Whoever asks must let `required` guests pass: a repository's own
//! settings can set these variables too.
//!
//! Tokens are compared exactly, letter case included, as the original does. Besides a guest's own name, the names of the
//! original's scripts count and the tokens that these read; some stand for a guest on one event only, because the original
//! has a script for each event where we have one guest.

use super::env::{Env, EnvVars};

/// The event that a guest would be called for, as far as the switches tell events apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Occasion<'a> {
    /// The kind of event in kebab-case, such as `pre-compact`.
    pub kind: &'a str,
    /// What started the session or the set-up (`source`, `trigger`), such as `init`.
    pub source: Option<&'a str>,
}

/// One token that silences a first-party guest besides the guest's own name.
#[derive(Debug)]
struct Alias {
    guest: &'static str,
    token: &'static str,
    /// The only kinds of event it is about; empty for all.
    kinds: &'static [&'static str],
    /// The only source it is about.
    source: Option<&'static str>,
}

const fn always(guest: &'static str, token: &'static str) -> Alias {
    Alias { guest, token, kinds: &[], source: None }
}

const fn on(guest: &'static str, token: &'static str, kinds: &'static [&'static str]) -> Alias {
    Alias { guest, token, kinds, source: None }
}

const fn from(guest: &'static str, token: &'static str, source: &'static str) -> Alias {
    Alias { guest, token, kinds: &[], source: Some(source) }
}

/// What the original's scripts answer to. Names that are a guest's own are not repeated.
const ALIASES: &[Alias] = &[
    on("project-memory", "project-memory-session", &["session-start", "user-prompt-submit"]),
    on("project-memory", "project-memory-posttool", &["post-tool-use"]),
    on("project-memory", "post-tool-use", &["post-tool-use"]),
    on("project-memory", "project-memory-precompact", &["pre-compact"]),
    on("wiki", "wiki-session-start", &["session-start"]),
    on("wiki", "wiki-pre-compact", &["pre-compact"]),
    on("wiki", "wiki-session-end", &["session-end"]),
    from("setup", "setup-init", "init"),
    from("setup", "setup-maintenance", "maintenance"),
    always("pre-tool-enforcer", "pre-tool-use"),
    always("permission-handler", "permission-request"),
    on("post-tool-verifier", "post-tool-use", &["post-tool-use"]),
    always("rules-injector", "post-tool-rules-injector"),
    always("rules-injector", "post-tool-use"),
    always("tool-failure", "post-tool-use-failure"),
    always("tool-failure", "post-tool-use"),
    on("subagent-tracker", "subagent-start", &["subagent-start"]),
    on("subagent-tracker", "subagent-stop", &["subagent-stop"]),
    always("verify-deliverables", "subagent-stop"),
    always("context-guard", "context-guard-stop"),
    always("persistent-mode", "stop-continuation"),
    // The original notes the start of a skill in the script that this token switches off.
    on("persistent-mode", "pre-tool-use", &["pre-tool-use"]),
];

/// The switches of one event.
#[derive(Debug, Clone, Default)]
pub struct KillSwitch {
    all: bool,
    tokens: String,
}

impl KillSwitch {
    /// Reads the two variables.
    pub fn from_env(env: &Env) -> Self {
        Self {
            all: env.is(EnvVars::DISABLE_OMC, &["1", "true"]),
            // A token that is not UTF-8 names nothing, and must not hide its neighbours.
            tokens: env
                .get(EnvVars::OMC_SKIP_HOOKS)
                .map(|list| list.to_string_lossy().into_owned())
                .unwrap_or_default(),
        }
    }

    /// Whether a guest that is not `required` stays silent on this occasion.
    pub fn skips(&self, guest: &str, occasion: Occasion<'_>) -> bool {
        let mut tokens = self.tokens.split(',').map(str::trim).filter(|token| !token.is_empty());
        self.all || tokens.any(|token| token == guest || is_alias(token, guest, occasion))
    }
}

fn is_alias(token: &str, guest: &str, occasion: Occasion<'_>) -> bool {
    ALIASES.iter().any(|alias| {
        alias.guest == guest
            && alias.token == token
            && (alias.kinds.is_empty() || alias.kinds.contains(&occasion.kind))
            && (alias.source.is_none() || alias.source == occasion.source)
    })
}

/// The rows of the reference: guest, token, and where the token counts.
pub(super) fn reference_rows() -> impl Iterator<Item = (&'static str, &'static str, String)> {
    ALIASES.iter().map(|alias| {
        let kinds = alias.kinds.iter().map(|kind| format!("`{kind}`")).collect::<Vec<_>>().join(", ");
        let scope = match (alias.source, kinds.is_empty()) {
            (Some(source), _) => format!("source `{source}`"),
            (None, true) => "all its events".to_owned(),
            (None, false) => kinds,
        };
        (alias.guest, alias.token, scope)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(kind: &'static str) -> Occasion<'static> {
        Occasion { kind, source: None }
    }

    fn skips(tokens: &str, guest: &str, kind: &'static str) -> bool {
        KillSwitch::from_env(&Env::from_pairs(&[("OMC_SKIP_HOOKS", tokens)])).skips(guest, at(kind))
    }

    #[test]
    fn one_and_true_silence_everything_and_nothing_else_does() {
        for (value, silent) in [
            ("1", true),
            ("true", true),
            ("", false),
            ("0", false),
            ("TRUE", false),
            ("yes", false),
            ("false", false),
            (" 1", false),
        ] {
            let switch = KillSwitch::from_env(&Env::from_pairs(&[("DISABLE_OMC", value)]));
            assert_eq!(switch.skips("keyword-detector", at("user-prompt-submit")), silent, "{value:?}");
            assert_eq!(switch.skips("somebodys-guest", at("new-kind")), silent, "{value:?}");
        }
        assert!(!KillSwitch::from_env(&Env::default()).skips("keyword-detector", at("stop")));
    }

    #[test]
    fn a_list_names_guests_scripts_and_tokens() {
        for (tokens, guest, kind, skipped) in [
            ("keyword-detector", "keyword-detector", "user-prompt-submit", true),
            ("a, keyword-detector ,b", "keyword-detector", "user-prompt-submit", true),
            ("nobody", "keyword-detector", "user-prompt-submit", false),
            (",, ,", "keyword-detector", "user-prompt-submit", false),
            ("Keyword-Detector", "keyword-detector", "user-prompt-submit", false),
            ("keyword", "keyword-detector", "user-prompt-submit", false),
            ("persistent-mode", "persistent-mode", "pre-tool-use", true),
            ("stop-continuation", "persistent-mode", "stop", true),
            ("pre-tool-use", "persistent-mode", "pre-tool-use", true),
            ("pre-tool-use", "persistent-mode", "stop", false),
            ("pre-tool-use", "pre-tool-enforcer", "pre-tool-use", true),
            ("permission-request", "permission-handler", "permission-request", true),
            ("post-tool-use", "post-tool-verifier", "post-tool-use", true),
            ("post-tool-use", "rules-injector", "post-tool-use", true),
            ("post-tool-use", "tool-failure", "post-tool-use-failure", true),
            ("post-tool-use-failure", "post-tool-verifier", "post-tool-use", false),
            ("post-tool-use", "post-tool-verifier", "stop", false),
            ("post-tool-verifier", "post-tool-verifier", "stop", true),
            ("subagent-stop", "subagent-tracker", "subagent-stop", true),
            ("subagent-stop", "subagent-tracker", "subagent-start", false),
            ("subagent-tracker", "subagent-tracker", "subagent-start", true),
            ("subagent-stop", "verify-deliverables", "subagent-stop", true),
            ("context-guard-stop", "context-guard", "stop", true),
            ("their-guest", "their-guest", "stop", true),
        ] {
            assert_eq!(skips(tokens, guest, kind), skipped, "{tokens:?} for {guest} on {kind}");
        }
    }

    #[test]
    fn the_name_of_an_event_is_not_a_token_of_every_guest_on_it() {
        for guest in ["wiki", "project-memory", "setup"] {
            assert!(!skips("session-start", guest, "session-start"), "{guest}");
        }
        assert!(!skips("pre-compact", "wiki", "pre-compact"));
        assert!(!skips("session-end", "wiki", "session-end"));
        assert!(!skips("pre-tool-enforcer,sessions,memory", "project-memory", "session-start"));
    }

    #[test]
    fn a_script_of_one_event_silences_its_guest_on_that_event_only() {
        for (token, guest, kind, other) in [
            ("project-memory-session", "project-memory", "session-start", "pre-compact"),
            ("project-memory-posttool", "project-memory", "post-tool-use", "session-start"),
            ("project-memory-precompact", "project-memory", "pre-compact", "post-tool-use"),
            ("wiki-session-start", "wiki", "session-start", "session-end"),
            ("wiki-pre-compact", "wiki", "pre-compact", "session-start"),
            ("wiki-session-end", "wiki", "session-end", "pre-compact"),
        ] {
            assert!(skips(token, guest, kind) && !skips(token, guest, other), "{token}");
        }
        for (source, init, maintenance) in [
            (Some("init"), true, false),
            (Some("maintenance"), false, true),
            (Some("startup"), false, false),
            (None, false, false),
        ] {
            for kind in ["session-start", "setup"] {
                let skips = |tokens| {
                    KillSwitch::from_env(&Env::from_pairs(&[("OMC_SKIP_HOOKS", tokens)]))
                        .skips("setup", Occasion { kind, source })
                };
                assert_eq!((skips("setup-init"), skips("setup-maintenance")), (init, maintenance), "{kind} {source:?}");
            }
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_token_that_is_not_text_hides_no_other() {
        use std::os::unix::ffi::OsStrExt;
        let list = std::ffi::OsStr::from_bytes(b"\xff\xfe,persistent-mode");
        assert!(
            KillSwitch::from_env(&Env::from_pairs(&[("OMC_SKIP_HOOKS", list)])).skips("persistent-mode", at("stop"))
        );
    }
}
