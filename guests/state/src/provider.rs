//! Who serves the session's models, as far as the agent's environment tells: a provider of its own has its own names for them.

/// Beginnings of names that say how a provider routes them.
const PREFIXES: [&str; 6] =
    ["us.anthropic.", "eu.anthropic.", "ap.anthropic.", "global.anthropic.", "anthropic.claude", "vertex_ai/"];

/// The provider of the session's models.
#[derive(Clone, Copy)]
pub struct Provider<'a> {
    env: &'a dyn Fn(&str) -> Option<String>,
}

impl<'a> Provider<'a> {
    /// The provider that these variables tell of.
    pub fn new(env: &'a dyn Fn(&str) -> Option<String>) -> Self {
        Self { env }
    }

    /// A variable without the space around it; absent if it is empty.
    pub fn var(&self, name: &str) -> Option<String> {
        (self.env)(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
    }

    /// Whether the user said that subagents have to use the session's model, or that they have not.
    pub fn forced(&self) -> Option<bool> {
        match self.var("OMC_ROUTING_FORCE_INHERIT")?.as_str() {
            "true" | "1" => Some(true),
            "false" | "0" => Some(false),
            _ => None,
        }
    }

    /// The session's model.
    pub fn session_model(&self) -> Option<String> {
        self.var("CLAUDE_MODEL").or_else(|| self.var("ANTHROPIC_MODEL"))
    }

    /// Amazon Bedrock.
    pub fn is_bedrock(&self) -> bool {
        self.is_on("CLAUDE_CODE_USE_BEDROCK")
            || self.session_model().is_some_and(|model| {
                let model = model.to_ascii_lowercase();
                is_bedrock_arn(&model) || (is_provider_id(&model) && !model.starts_with("vertex_ai/"))
            })
    }

    /// Google Vertex AI.
    pub fn is_vertex(&self) -> bool {
        self.is_on("CLAUDE_CODE_USE_VERTEX")
            || self.session_model().is_some_and(|model| model.to_ascii_lowercase().starts_with("vertex_ai/"))
    }

    /// Somebody else: the service is elsewhere, or the model is another maker's.
    pub fn is_elsewhere(&self) -> bool {
        let is_foreign = |model: String| !model.to_ascii_lowercase().contains("claude");
        self.var("ANTHROPIC_BASE_URL").is_some_and(|url| !url.contains("anthropic.com"))
            || self.session_model().is_some_and(is_foreign)
    }

    fn is_on(&self, name: &str) -> bool {
        self.var(name).is_some_and(|value| value == "1" || value.eq_ignore_ascii_case("true"))
    }
}

/// Whether a model's name is one that Bedrock or Vertex routes.
pub fn is_provider_id(model: &str) -> bool {
    let model = model.to_ascii_lowercase();
    PREFIXES.iter().any(|prefix| model.starts_with(prefix)) || is_bedrock_arn(&model)
}

/// `arn:aws:bedrock:…`, or of another partition such as `aws-cn`.
fn is_bedrock_arn(model: &str) -> bool {
    model
        .strip_prefix("arn:aws")
        .and_then(|rest| rest.split_once(":bedrock:"))
        .is_some_and(|(partition, _)| partition.is_empty() || (partition.starts_with('-') && !partition.contains(':')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_tells_who_serves_the_models() {
        for (name, value, [bedrock, vertex, elsewhere]) in [
            ("CLAUDE_CODE_USE_BEDROCK", "1", [true, false, false]),
            ("CLAUDE_CODE_USE_BEDROCK", "true", [true, false, false]),
            ("CLAUDE_CODE_USE_BEDROCK", "0", [false; 3]),
            ("CLAUDE_CODE_USE_VERTEX", " 1 ", [false, true, false]),
            ("ANTHROPIC_MODEL", "us.anthropic.claude-opus-4-6-v1:0", [true, false, false]),
            ("CLAUDE_MODEL", "arn:aws-cn:bedrock:x:1:inference-profile/claude", [true, false, false]),
            ("CLAUDE_MODEL", "vertex_ai/claude-opus", [false, true, false]),
            ("CLAUDE_MODEL", "glm-5", [false, false, true]),
            ("CLAUDE_MODEL", "claude-opus-4-6", [false; 3]),
            ("ANTHROPIC_BASE_URL", "https://proxy.test/v1", [false, false, true]),
            ("ANTHROPIC_BASE_URL", "https://api.anthropic.com", [false; 3]),
            ("ANTHROPIC_BASE_URL", "", [false; 3]),
        ] {
            let env = |asked: &str| (asked == name).then(|| value.to_owned());
            let provider = Provider::new(&env);
            let found = [provider.is_bedrock(), provider.is_vertex(), provider.is_elsewhere()];
            assert_eq!(found, [bedrock, vertex, elsewhere], "{name}={value}");
            assert_eq!(provider.forced(), None);
        }
        for (value, forced) in
            [("true", Some(true)), ("1", Some(true)), ("false", Some(false)), ("0", Some(false)), ("x", None)]
        {
            assert_eq!(Provider::new(&|_| Some(value.to_owned())).forced(), forced, "{value}");
        }
    }
}
