//! Which model a subagent gets: what its provider cannot route is refused, what the user configured is filled in.

use std::collections::BTreeMap;

use omc_state::{
    one_line,
    provider::{Provider, is_provider_id},
};
use serde_json::Value;

/// Longest name of a model that is repeated, in UTF-16 units.
const MAX_QUOTE_UNITS: usize = 100;

/// The tiers, in the order in which they are looked for in a model's name.
const TIERS: [&str; 4] = ["opus", "sonnet", "haiku", "fable"];

/// Agents by the names that calls use, and the key under which their model is configured. Other names are their own key.
const KEYS: &[(&str, &str)] = &[
    ("security-reviewer", "securityReviewer"),
    ("code-reviewer", "codeReviewer"),
    ("test-engineer", "testEngineer"),
    ("qa-tester", "qaTester"),
    ("git-master", "gitMaster"),
    ("code-simplifier", "codeSimplifier"),
    ("document-specialist", "documentSpecialist"),
    ("researcher", "documentSpecialist"),
    ("dependency-expert", "documentSpecialist"),
    ("vision", "documentSpecialist"),
    ("tdd-guide", "testEngineer"),
    ("api-reviewer", "codeReviewer"),
    ("performance-reviewer", "codeReviewer"),
    ("quality-strategist", "codeReviewer"),
    ("quality-reviewer", "codeReviewer"),
    ("reviewer", "codeReviewer"),
    ("deep-executor", "executor"),
    ("build-fixer", "debugger"),
    ("harsh-critic", "critic"),
];

/// The environment variables that the rules look at, without those of [`TIERS`].
pub const ENV: &[&str] = &[
    "OMC_ROUTING_FORCE_INHERIT",
    "OMC_SUBAGENT_MODEL",
    "CLAUDE_MODEL",
    "ANTHROPIC_MODEL",
    "CLAUDE_CODE_USE_BEDROCK",
    "CLAUDE_CODE_USE_VERTEX",
    "ANTHROPIC_BASE_URL",
];

/// What is known around a call.
pub struct Surroundings<'a> {
    /// An environment variable.
    pub env: &'a dyn Fn(&str) -> Option<String>,
    /// The setting `routing.forceInherit`.
    pub force_inherit: bool,
    /// The setting `agents`: models by key.
    pub models: &'a BTreeMap<String, String>,
    /// The `model` of an agent's own definition, by its plain name.
    pub definition: &'a dyn Fn(&str) -> Option<String>,
}

/// What becomes of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Routing {
    /// It goes on as it is.
    Keep,
    /// It goes on with this model.
    Use(&'static str),
    /// It does not, for this reason.
    Refuse(String),
}

/// Decides about the model of the agent that a call starts.
pub fn route(input: &Value, around: &Surroundings<'_>) -> Routing {
    let model = match input.get("model") {
        None | Some(Value::Null) => None,
        Some(Value::String(model)) => Some(model.trim().to_owned()).filter(|model| !model.is_empty()),
        // Whatever it is, no provider routes it.
        Some(other) => Some(other.to_string()),
    };
    let agent = input.get("subagent_type").and_then(Value::as_str).map(plain_agent);
    if around.inherits() {
        return around.refusal(model.as_deref(), agent).map_or(Routing::Keep, Routing::Refuse);
    }
    let configured = agent.filter(|_| model.is_none()).and_then(|agent| around.configured(agent));
    configured.map_or(Routing::Keep, Routing::Use)
}

impl Surroundings<'_> {
    fn provider(&self) -> Provider<'_> {
        Provider::new(self.env)
    }

    fn var(&self, name: &str) -> Option<String> {
        self.provider().var(name)
    }

    /// Neither of the two big providers; a setting alone tells that only where nothing speaks for the standard one.
    fn is_proxy(&self) -> bool {
        let provider = self.provider();
        let is_claude = provider.session_model().is_some_and(|model| model.to_ascii_lowercase().contains("claude"));
        !provider.is_bedrock() && !provider.is_vertex() && (provider.is_elsewhere() || self.force_inherit && !is_claude)
    }

    /// Whether subagents have to use the session's model. Bedrock and Vertex know no plain names, so there they do unasked.
    fn inherits(&self) -> bool {
        let provider = self.provider();
        provider.forced().unwrap_or_else(|| self.force_inherit || provider.is_bedrock() || provider.is_vertex())
    }

    /// The full name that a tier has here, if it has one.
    fn routable(&self, tier: &str) -> Option<String> {
        let tier = tier.to_ascii_uppercase();
        let of_provider = |model: &String| is_provider_id(model);
        self.var("OMC_SUBAGENT_MODEL")
            .filter(|model| is_safe(model))
            .or_else(|| self.var(&format!("CLAUDE_CODE_BEDROCK_{tier}_MODEL")).filter(of_provider))
            .or_else(|| {
                let default = self.var(&format!("ANTHROPIC_DEFAULT_{tier}_MODEL"))?;
                (of_provider(&default) || self.is_proxy()).then_some(default)
            })
    }

    fn refusal(&self, model: Option<&str>, agent: Option<&str>) -> Option<String> {
        if let Some(model) = model {
            let routed = is_tier(model) && self.routable(model).is_some();
            return (!routed && !is_safe(model)).then(|| wrong_model(model));
        }
        // The longest of the two counts: an extended context is what cannot be inherited.
        let extended =
            ["CLAUDE_MODEL", "ANTHROPIC_MODEL"].iter().filter_map(|name| self.var(name)).find(|m| is_extended(m));
        if let Some(session) = extended {
            let tier = tier_of(&session).unwrap_or("sonnet");
            let hint = match self.routable(tier) {
                Some(_) => String::new(),
                None => format!(
                    " Set ANTHROPIC_DEFAULT_{}_MODEL first, so that it can be routed.",
                    tier.to_ascii_uppercase()
                ),
            };
            return Some(format!(
                "[MODEL ROUTING] The session's model `{}` has a context suffix that subagents cannot inherit. Pass \
                 model=\"{tier}\".{hint}",
                one_line(&session, MAX_QUOTE_UNITS)
            ));
        }
        let agent = agent.filter(|agent| is_plain(agent))?;
        let defined = (self.definition)(agent)?;
        if is_safe(&defined) || is_tier(&defined) {
            return None;
        }
        let tier = tier_of(&defined)?;
        let resolved = self.routable(tier)?;
        Some(format!(
            "[MODEL ROUTING] The agent `{agent}` is defined with the model `{}`, which this provider does not know. Add \
             model=\"{tier}\"; here that is `{}`.",
            one_line(&defined, MAX_QUOTE_UNITS),
            one_line(&resolved, MAX_QUOTE_UNITS)
        ))
    }

    fn configured(&self, agent: &str) -> Option<&'static str> {
        let key = KEYS.iter().find(|(name, _)| *name == agent).map_or(agent, |(_, key)| key);
        tier_of(self.models.get(key)?)
    }
}

fn wrong_model(model: &str) -> String {
    let shown = one_line(model, MAX_QUOTE_UNITS);
    let hint = match tier_of(model) {
        Some(tier) => format!(
            "Set ANTHROPIC_DEFAULT_{}_MODEL or OMC_SUBAGENT_MODEL to a name that it knows, or leave `model` out.",
            tier.to_ascii_uppercase()
        ),
        None => "Leave `model` out, or set ANTHROPIC_DEFAULT_SONNET_MODEL and pass model=\"sonnet\".".to_owned(),
    };
    format!(
        "[MODEL ROUTING] This session's provider is not the standard one and cannot route the model `{shown}`. {hint}"
    )
}

/// An agent's name without this plugin's prefix.
fn plain_agent(agent: &str) -> &str {
    let agent = agent.trim();
    agent.strip_prefix("oh-my-claudecode:").or_else(|| agent.strip_prefix("omc:")).unwrap_or(agent)
}

fn is_plain(agent: &str) -> bool {
    !agent.is_empty()
        && agent.len() <= 64
        && agent.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
}

/// Whether the name ends in `[1m]` or the like.
fn is_extended(model: &str) -> bool {
    let inside = model.strip_suffix(']').and_then(|rest| rest.rsplit_once('[')).map(|(_, inside)| inside);
    inside
        .and_then(|inside| inside.strip_suffix(['m', 'k', 'M', 'K']))
        .is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()))
}

fn is_safe(model: &str) -> bool {
    is_provider_id(model) && !is_extended(model)
}

fn is_tier(model: &str) -> bool {
    TIERS.iter().any(|tier| tier.eq_ignore_ascii_case(model))
}

fn tier_of(model: &str) -> Option<&'static str> {
    let model = model.to_ascii_lowercase();
    TIERS.into_iter().find(|tier| model.contains(tier))
}

/// The `model` of an agent's definition: the first word of the line in its front matter.
pub fn of_definition(text: &str) -> Option<String> {
    let text = text.trim_start_matches('\u{feff}');
    let mut lines = text.lines();
    (lines.next()?.trim_end() == "---").then_some(())?;
    let line = lines.take_while(|line| line.trim_end() != "---").find_map(|line| line.strip_prefix("model:"))?;
    let word = line.split_whitespace().next()?.trim_matches(['"', '\'']);
    (!word.is_empty()).then(|| word.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn decide(input: &Value, env: &[(&str, &str)], models: &[(&str, &str)], definition: Option<&str>) -> Routing {
        let env = |name: &str| env.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
        let models = models.iter().map(|(key, model)| ((*key).to_owned(), (*model).to_owned())).collect();
        let definition = |_: &str| definition.map(str::to_owned);
        route(input, &Surroundings { env: &env, force_inherit: false, models: &models, definition: &definition })
    }

    #[test]
    fn a_model_that_the_provider_cannot_route_is_refused() {
        const ON: (&str, &str) = ("OMC_ROUTING_FORCE_INHERIT", "true");
        const SONNET: &str = "ANTHROPIC_DEFAULT_SONNET_MODEL";
        const BEDROCK_1M: &str = "us.anthropic.claude-sonnet-4-6[1m]";
        for (model, env, refused) in [
            (json!("sonnet"), vec![ON], Some(SONNET)),
            (json!("claude-sonnet-4-6"), vec![ON], Some(SONNET)),
            (json!("gpt-5"), vec![ON], Some("`gpt-5`")),
            (json!(123), vec![ON], Some("`123`")),
            (json!({"a": "sonnet"}), vec![ON], Some("MODEL")),
            (json!("us.anthropic.claude-sonnet-4-6-v1:0"), vec![ON], None),
            (json!("arn:aws-cn:bedrock:x:1:inference-profile/claude"), vec![ON], None),
            (json!("vertex_ai/claude"), vec![ON], None),
            (json!("us.anthropic.claude-sonnet-4-6-v1:0[1m]"), vec![ON], Some("[1m]")),
            (json!("sonnet"), vec![ON, (SONNET, BEDROCK_1M)], None),
            (json!("sonnet"), vec![ON, ("OMC_SUBAGENT_MODEL", BEDROCK_1M)], Some(SONNET)),
            (json!("sonnet"), vec![ON, ("OMC_SUBAGENT_MODEL", "us.anthropic.claude-x")], None),
            (json!("sonnet"), vec![ON, ("CLAUDE_CODE_BEDROCK_SONNET_MODEL", BEDROCK_1M)], None),
            (json!("sonnet"), vec![ON, (SONNET, "glm-5"), ("ANTHROPIC_BASE_URL", "https://proxy.test")], None),
            (json!("sonnet"), vec![ON, (SONNET, "glm-5")], Some(SONNET)),
            (
                json!("sonnet"),
                vec![ON, (SONNET, "glm-5"), ("ANTHROPIC_BASE_URL", "https://api.anthropic.com")],
                Some(SONNET),
            ),
            (json!("sonnet"), vec![("CLAUDE_CODE_USE_BEDROCK", "1")], Some(SONNET)),
            (json!("sonnet"), vec![("CLAUDE_MODEL", "vertex_ai/claude-opus")], Some(SONNET)),
            (json!("sonnet"), vec![("CLAUDE_CODE_USE_BEDROCK", "1"), ("OMC_ROUTING_FORCE_INHERIT", "false")], None),
            (json!("sonnet"), vec![], None),
            (json!(""), vec![ON], None),
            (json!(null), vec![ON], None),
        ] {
            let routing = decide(&json!({"model": model, "prompt": "p"}), &env, &[], None);
            match (&routing, refused) {
                (Routing::Refuse(text), Some(named)) => {
                    assert!(text.starts_with("[MODEL ROUTING]") && text.contains(named), "{text}");
                }
                (Routing::Keep, None) => {}
                _ => panic!("{model} with {env:?}: {routing:?}"),
            }
        }
    }

    #[test]
    fn a_context_suffix_is_not_inherited() {
        let env = |name| [("OMC_ROUTING_FORCE_INHERIT", "true"), (name, "us.anthropic.claude-opus-4-6[1m]")];
        for name in ["CLAUDE_MODEL", "ANTHROPIC_MODEL"] {
            let Routing::Refuse(text) = decide(&json!({"prompt": "p"}), &env(name), &[], None) else {
                panic!("{name}")
            };
            assert!(text.contains("`us.anthropic.claude-opus-4-6[1m]`") && text.contains("model=\"opus\""), "{text}");
            assert!(text.contains("ANTHROPIC_DEFAULT_OPUS_MODEL"), "{text}");
        }
        assert_eq!(decide(&json!({}), &[("CLAUDE_MODEL", "claude-opus[1m]")], &[], None), Routing::Keep, "not forced");
    }

    #[test]
    fn an_agents_own_model_needs_a_tier_that_can_be_routed() {
        let on = ("OMC_ROUTING_FORCE_INHERIT", "true");
        let sonnet = ("ANTHROPIC_DEFAULT_SONNET_MODEL", "us.anthropic.claude-sonnet-4-6");
        let input = json!({"subagent_type": "omc:reader"});
        for (env, definition, refused) in [
            (vec![on, sonnet], Some("claude-sonnet-4-6"), true),
            (vec![on], Some("claude-sonnet-4-6"), false),
            (vec![on, sonnet], Some("sonnet"), false),
            (vec![on, sonnet], Some("inherit"), false),
            (vec![on, sonnet], None, false),
        ] {
            let routing = decide(&input, &env, &[], definition);
            assert_eq!(matches!(routing, Routing::Refuse(_)), refused, "{definition:?} {routing:?}");
        }
        for odd in ["../x", "a/b", "", "a b"] {
            assert_eq!(
                decide(&json!({"subagent_type": odd}), &[on, sonnet], &[], Some("claude-sonnet")),
                Routing::Keep
            );
        }
    }

    #[test]
    fn a_configured_tier_is_filled_in_where_the_call_names_none() {
        let models =
            [("executor", "claude-opus-4-6"), ("codeReviewer", "haiku"), ("writer", "inherit"), ("explore", "gpt-5")];
        for (input, routing) in [
            (json!({"subagent_type": "oh-my-claudecode:executor"}), Routing::Use("opus")),
            (json!({"subagent_type": "omc:executor"}), Routing::Use("opus")),
            (json!({"subagent_type": "deep-executor"}), Routing::Use("opus")),
            (json!({"subagent_type": "reviewer"}), Routing::Use("haiku")),
            (json!({"subagent_type": "executor", "model": "sonnet"}), Routing::Keep),
            (json!({"subagent_type": "writer"}), Routing::Keep),
            (json!({"subagent_type": "explore"}), Routing::Keep),
            (json!({"subagent_type": "planner"}), Routing::Keep),
            (json!({"subagent_type": 7}), Routing::Keep),
            (json!({}), Routing::Keep),
            (json!("text"), Routing::Keep),
        ] {
            assert_eq!(decide(&input, &[], &models, None), routing, "{input}");
        }
    }

    #[test]
    fn the_model_of_a_definition_is_read_from_its_front_matter() {
        for (text, model) in [
            ("---\nname: x\nmodel: \"claude-sonnet-4-6\"\n---\nbody", Some("claude-sonnet-4-6")),
            ("\u{feff}---\r\nmodel: opus # best\r\n---\r\n", Some("opus")),
            ("---\nname: x\n---\nmodel: opus", None),
            ("model: opus", None),
            ("---\nmodel:\n---", None),
            ("", None),
        ] {
            assert_eq!(of_definition(text).as_deref(), model, "{text:?}");
        }
    }
}
