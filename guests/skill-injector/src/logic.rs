//! Which learned skills fit a prompt, and how that is told: the pure part of the guest.
//!
//! The path of a prompt: [`skill`] reads what a file says about itself, [`matching`] scores it against the prompt, [`block`] writes
//! the best into one bounded text. The bodies of skills are never shown: the model reads the file if it needs it.

pub mod block;
pub mod matching;
pub mod skill;

use std::cmp::Reverse;

pub use skill::{Scope, Skill};

use matching::Prompt;

/// Skills that are told of at once: the original's limit.
const MAX_TOLD: usize = 5;

/// Triggers that are compared with one prompt, over all skills: an honest collection has a few hundred.
const MAX_TRIGGERS: usize = 1_000;

/// A skill that fits, and how well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fit<'a> {
    /// The skill.
    pub skill: &'a Skill,
    /// How well: ten for each trigger that is found.
    pub score: u32,
}

/// The skills that fit best, best first; among equals the first ones.
///
/// `is_known` says of a path that this session was told of it already.
pub fn best<'a>(prompt: &str, skills: &'a [Skill], is_known: impl Fn(&str) -> bool) -> Vec<Fit<'a>> {
    let prompt = Prompt::new(prompt);
    let mut triggers = 0;
    let mut fits: Vec<_> = skills
        .iter()
        .take_while(|skill| {
            triggers += skill.triggers.len();
            triggers <= MAX_TRIGGERS
        })
        .filter(|skill| !is_known(&skill.path))
        .map(|skill| Fit { skill, score: prompt.score(skill) })
        .filter(|fit| fit.score > 0)
        .collect();
    fits.sort_by_key(|fit| Reverse(fit.score));
    fits.truncate(MAX_TOLD);
    fits
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skill(name: &str, triggers: &[&str]) -> Skill {
        let list: Vec<_> = triggers.iter().map(|trigger| format!("  - {trigger}\n")).collect();
        let text = format!("---\nname: {name}\ntriggers:\n{}---\nBody.\n", list.concat());
        Skill::read(&text, format!("/p/{name}.md"), name, Scope::Project).expect("a skill")
    }

    #[test]
    fn the_best_five_are_told_of_and_among_equals_the_first() {
        let skills: Vec<_> = [
            ("one", &["alpha"][..]),
            ("three", &["alpha", "beta", "gamma"]),
            ("two", &["alpha", "beta"]),
            ("late-0", &["gamma"]),
            ("late-1", &["gamma"]),
            ("late-2", &["gamma"]),
            ("none", &["delta"]),
        ]
        .iter()
        .map(|(name, triggers)| skill(name, triggers))
        .collect();
        let names = |known: &str| -> Vec<_> {
            let fits = best("Alpha BETA gamma", &skills, |path| path == known);
            fits.iter().map(|fit| (fit.skill.name.clone(), fit.score)).collect()
        };
        let told = |list: &[(&str, u32)]| -> Vec<_> {
            list.iter().map(|(name, score)| ((*name).to_owned(), *score)).collect()
        };
        assert_eq!(names(""), told(&[("three", 30), ("two", 20), ("one", 10), ("late-0", 10), ("late-1", 10)]));
        assert_eq!(
            names("/p/three.md"),
            told(&[("two", 20), ("one", 10), ("late-0", 10), ("late-1", 10), ("late-2", 10)])
        );
    }

    #[test]
    fn more_triggers_than_anybody_writes_are_not_compared() {
        let many: Vec<_> = (0..1_100).map(|n| skill(&format!("s{n}"), &["alpha"])).collect();
        assert_eq!(best("alpha", &many[1_050..], |_| false).len(), 5);
        assert_eq!(best("alpha", &many, |path| path != "/p/s1050.md").len(), 0);
    }
}
