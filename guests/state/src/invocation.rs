//! How an agent is told to use a skill of this plugin, so that a text names the form that works where it is read.

/// How the agent is told to start a skill.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Invocation {
    /// With a slash command, or by the model's own call of the Skill tool.
    #[default]
    Slash,
    /// With `$NAME`, as in Codex, which has no Skill tool.
    Dollar,
}

impl Invocation {
    /// The form of the agent of this name, as events give it.
    pub fn of_agent(agent: &str) -> Self {
        if agent == "codex" { Self::Dollar } else { Self::Slash }
    }

    /// The name under which the agent lists our skill.
    pub fn skill(self, name: &str) -> String {
        match self {
            Self::Slash => format!("omc:{name}"),
            Self::Dollar => name.to_owned(),
        }
    }

    /// The command that starts our skill.
    pub fn command(self, name: &str) -> String {
        let marker = match self {
            Self::Slash => '/',
            Self::Dollar => '$',
        };
        format!("{marker}{}", self.skill(name))
    }

    /// The command that ends every mode, with the older plugin's beside it where the agent has such commands.
    pub fn cancel_by_any_name(self) -> String {
        let own = self.command("cancel");
        match self {
            Self::Slash => format!("{own} (or /oh-my-claudecode:cancel)"),
            Self::Dollar => own,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Invocation;

    #[test]
    fn each_agent_reads_the_form_that_it_understands() {
        for (agent, skill, command, cancel) in [
            ("claude", "omc:ralph", "/omc:ralph", "/omc:cancel (or /oh-my-claudecode:cancel)"),
            ("codex", "ralph", "$ralph", "$cancel"),
            // Nothing is installed there by us; what speaks Claude Code's formats reads its form.
            ("unknown", "omc:ralph", "/omc:ralph", "/omc:cancel (or /oh-my-claudecode:cancel)"),
        ] {
            let invocation = Invocation::of_agent(agent);
            assert_eq!(invocation.skill("ralph"), skill, "{agent}");
            assert_eq!(invocation.command("ralph"), command, "{agent}");
            assert_eq!(invocation.cancel_by_any_name(), cancel, "{agent}");
        }
    }
}
