//! Invocations: how a prompt can name a keyword so that there is nothing left to guess.
//!
//! `/ralph`, `/omc:ralph` and `/oh-my-claudecode:ralph` are one command. `$ralph`, `omc:ralph`, `!ralph` and `force: ralph` at the
//! start of a prompt are as sure. A slash command of somebody else is not a request for a mode, whatever its arguments say.
//!
//! Codex has no slash commands of skills: there `$ralph` and `$omc:ralph` are the command.

use omc_state::Invocation;

use super::{
    keywords::Keyword,
    text::{is_space, is_word_byte, starts_with_ignoring_case},
};

/// What may stand before a name: our plugin, and the original's for each agent.
const PREFIXES: &[&str] = &["omc:", "oh-my-claudecode:", "oh-my-codex:"];

/// A word before a request with which the user waives the gate. `!` is the short form.
pub(super) const FORCE: &str = "force:";

/// How a prompt begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Opening {
    /// With words.
    Words,
    /// With the agent's command for this keyword. It is all that is asked for, and the agent starts its skill by itself.
    Command(Keyword),
    /// With this keyword and a marker before it.
    Marked(Keyword),
    /// With `force:` or `!` before words.
    Forced,
    /// With a slash command that is not ours.
    OtherCommand,
    /// With a command that hands its text to another agent.
    Delegation,
}

impl Opening {
    /// The user said expressly that work shall start: the gate has no say.
    pub(super) fn skips_gate(self) -> bool {
        matches!(self, Self::Command(_) | Self::Marked(_) | Self::Forced)
    }

    /// The rest of the prompt is the user's own words to the agent, not the arguments of a command.
    pub(super) fn is_followed_by_words(self) -> bool {
        matches!(self, Self::Words | Self::Marked(_) | Self::Forced)
    }
}

/// How the request begins.
pub(super) fn opening(request: &str, invocation: Invocation) -> Opening {
    let text = request.trim_start_matches(is_space);
    if let Some(command) = text.strip_prefix('/') {
        return slash_command(command);
    }
    if let Some(rest) = text.strip_prefix('$') {
        if invocation == Invocation::Dollar {
            // Not every `$` is ours: amounts and variables begin with one, too.
            return named_at_start(rest).map_or(Opening::Words, Opening::Command);
        }
        return mode_at_start(rest).map_or(Opening::Words, Opening::Marked);
    }
    let forced =
        text.strip_prefix('!').or_else(|| starts_with_ignoring_case(text, FORCE).then(|| &text[FORCE.len()..]));
    if let Some(rest) = forced {
        if invocation == Invocation::Dollar && is_only_cancel(rest) {
            return Opening::Command(Keyword::Cancel);
        }
        return mode_at_start(rest.trim_start_matches(is_space)).map_or(Opening::Forced, Opening::Marked);
    }
    match after_prefix(text) {
        Some(rest) => mode_at_start(rest).map_or(Opening::Words, Opening::Marked),
        None => Opening::Words,
    }
}

/// The start of the occurrence at `start` together with a marker that stands directly before it: `/`, `$`, `!` or `/omc:`.
pub(super) fn start_with_prefix(lower: &str, start: usize) -> usize {
    let before = &lower[..start];
    let before = PREFIXES.iter().find_map(|prefix| before.strip_suffix(prefix)).unwrap_or(before);
    let with_marker = before.strip_suffix(['/', '$', '!']).unwrap_or(before);
    let opens = |c: char| is_space(c) || "(\"'“‘「,;:*".contains(c) || !c.is_ascii();
    if with_marker.chars().next_back().is_none_or(opens) { with_marker.len() } else { start }
}

fn slash_command(command: &str) -> Opening {
    let word = command.split(is_space).next().unwrap_or_default().trim_end_matches([':', ',', '.', '!']);
    let name = after_prefix(word).unwrap_or(word);
    if name.is_empty() || !word.bytes().all(|byte| is_word_byte(byte) || matches!(byte, b':' | b'-')) {
        // A path, or a slash in the text.
        return Opening::Words;
    }
    match Keyword::from_command(name) {
        Some(keyword) if keyword.sort().has_skill() => Opening::Command(keyword),
        _ if name.eq_ignore_ascii_case("ask") => Opening::Delegation,
        _ => Opening::OtherCommand,
    }
}

fn after_prefix(text: &str) -> Option<&str> {
    PREFIXES.iter().find(|prefix| starts_with_ignoring_case(text, prefix)).map(|prefix| &text[prefix.len()..])
}

/// Whether the text is the name of cancel and nothing else: with more words it may be about something to cancel.
fn is_only_cancel(text: &str) -> bool {
    let name = text.trim_matches(is_space);
    Keyword::from_command(after_prefix(name).unwrap_or(name)) == Some(Keyword::Cancel)
}

fn mode_at_start(text: &str) -> Option<Keyword> {
    named_at_start(text).filter(|keyword| *keyword != Keyword::Cancel)
}

fn named_at_start(text: &str) -> Option<Keyword> {
    let text = after_prefix(text.strip_prefix('/').unwrap_or(text)).unwrap_or(text);
    let length = text.bytes().take_while(|byte| is_word_byte(*byte) || *byte == b'-').count();
    let keyword = Keyword::from_command(&text[..length])?;
    keyword.sort().has_skill().then_some(keyword)
}

#[cfg(test)]
mod tests {
    use super::{Invocation, Keyword, Opening, opening};

    #[test]
    fn the_start_of_a_prompt_says_how_sure_the_request_is() {
        for (request, want) in [
            ("ralph fix it", Opening::Words),
            ("/ralph fix it", Opening::Command(Keyword::Ralph)),
            (" \n/RALPH", Opening::Command(Keyword::Ralph)),
            ("/omc:ralph: fix it", Opening::Command(Keyword::Ralph)),
            ("/oh-my-claudecode:ulw x", Opening::Command(Keyword::Ultrawork)),
            ("/oh-my-claudecode:ralplan\nx", Opening::Command(Keyword::Ralplan)),
            ("/cancel", Opening::Command(Keyword::Cancel)),
            ("/omc:cancel --force", Opening::Command(Keyword::Cancel)),
            ("/cancelled orders", Opening::OtherCommand),
            ("/ralph-step x", Opening::OtherCommand),
            ("/team 3 ralph x", Opening::OtherCommand),
            ("/code-review ralph", Opening::OtherCommand),
            ("/ask codex ralph x", Opening::Delegation),
            ("/omc:ask gemini ralph x", Opening::Delegation),
            ("/etc/hosts and ralph", Opening::Words),
            ("/ ralph", Opening::Words),
            ("$ralph x", Opening::Marked(Keyword::Ralph)),
            ("$ ralph x", Opening::Words),
            ("$ralph-loop x", Opening::Words),
            ("$5 for ralph", Opening::Words),
            ("!ulw x", Opening::Marked(Keyword::Ultrawork)),
            ("! fix it", Opening::Forced),
            ("Force: ralph x", Opening::Marked(Keyword::Ralph)),
            ("force:ralph x", Opening::Marked(Keyword::Ralph)),
            ("force: /omc:ralph x", Opening::Marked(Keyword::Ralph)),
            ("force: please use ralph", Opening::Forced),
            ("omc:ralph x", Opening::Marked(Keyword::Ralph)),
            ("omc: x", Opening::Words),
            ("!cancelomc", Opening::Forced),
        ] {
            assert_eq!(opening(request, Invocation::Slash), want, "{request:?}");
        }
    }

    #[test]
    fn in_codex_a_dollar_makes_the_command() {
        for (request, want) in [
            ("$ralph fix it", Opening::Command(Keyword::Ralph)),
            (" \n$omc:RALPH: fix it", Opening::Command(Keyword::Ralph)),
            ("$cancel", Opening::Command(Keyword::Cancel)),
            ("$omc:cancel --force", Opening::Command(Keyword::Cancel)),
            ("!cancel", Opening::Command(Keyword::Cancel)),
            ("!omc:cancel ", Opening::Command(Keyword::Cancel)),
            ("!cancel the order of a user who is gone", Opening::Forced),
            ("/cancel", Opening::Command(Keyword::Cancel)),
            ("/ralph fix it", Opening::Command(Keyword::Ralph)),
            ("!ulw x", Opening::Marked(Keyword::Ultrawork)),
            ("$cancelled orders", Opening::Words),
            ("$ralph-loop x", Opening::Words),
            ("$ cancel", Opening::Words),
            ("$5 for ralph", Opening::Words),
            ("say $cancel", Opening::Words),
        ] {
            assert_eq!(opening(request, Invocation::Dollar), want, "{request:?}");
        }
    }
}
