//! A choice put to the user in prose: the last sentence of a message asks for one of two or more named things.
//!
//! When in doubt there is none: what is quoted or code is no evidence, and a text whose quotes or fences do not close is not
//! judged.

/// Stands for what was masked; a candidate with it is no candidate.
const MASK: char = '\u{fffc}';

/// How far before the question something may say that the choice is already made, in bytes.
const DEAD_WITHIN: usize = 600;

const DEAD: &[&str] = &[
    "ruled out",
    "eliminated",
    "discarded",
    "not viable",
    "no longer an option",
    "already chosen",
    "already selected",
    "already resolved",
    " remains",
];
const DEAD_ITEM: &[&str] = &["ruled out", "(ruled out)"];
const VAGUE: &[&str] = &["this", "that", "it", "something", "yes", "no", "not", "other", "others", ""];
const HELPERS: &[&str] = &[
    "please", "pick", "choose", "select", "use", "can", "could", "do", "does", "is", "are", "should", "would", "will",
    "which", "what", "who", "where", "when", "why", "how",
];
const AUXILIARIES: &[&str] = &["be", "have", "do", "can", "could", "will", "would", "not"];
const CHOICES: &[&str] = &["option", "approach", "path", "one"];
const SETUPS: &[&str] = &[" are viable options", " are viable", " are options", " were considered"];

/// Whether the message ends with such a choice.
pub fn is_fork(message: &str) -> bool {
    let Some(text) = masked(message) else { return false };
    let text = text.trim_end_matches(|c: char| c.is_whitespace() || ")]*_\"”".contains(c));
    let Some(body) = text.strip_suffix('?') else { return false };
    let start = sentence_start(body);
    let (before, question) = (&body[..start], body[start..].trim());
    let lower = question.to_lowercase();
    let near = &before[before.floor_char_boundary(before.len().saturating_sub(DEAD_WITHIN))..];
    let near = near.to_lowercase();

    if is_closer(&lower) {
        // A list says itself what is dead; a sentence before the question says it for all.
        if let Some(live) = list_above(before) {
            return differ(&live);
        }
        return !DEAD.iter().any(|dead| near.contains(dead)) && is_setup(before);
    }
    if DEAD.iter().any(|dead| near.contains(dead)) || !follows_an_end(before) {
        return false;
    }
    let preferred = lower.strip_prefix("would you prefer ").or(lower.strip_prefix("do you prefer "));
    let (options, max_words, is_other_question) = if let Some(rest) = preferred {
        (rest, 6, false)
    } else if let Some(rest) = lower.strip_prefix("should i ") {
        (rest, 8, AUXILIARIES.contains(&first_word(rest)))
    } else {
        (lower.as_str(), 1, lower.split(' ').any(|word| HELPERS.contains(&word)))
    };
    let Some((first, second)) = options.split_once(" or ") else { return false };
    let single = !second.contains(" or ") && !options.contains([',', ';', ':']) && !options.contains(" and ");
    let short = |option: &str| (1..=max_words).contains(&option.split_whitespace().count());
    let opposite = first_word(second) == "not" || second.starts_with("don't");
    !is_other_question
        && single
        && short(first)
        && short(second)
        && !opposite
        && differ(&[first.to_owned(), second.to_owned()])
}

/// The message without quoted lines, with code and quotations masked; absent if one of them does not close.
fn masked(message: &str) -> Option<String> {
    let mut text = String::with_capacity(message.len());
    let mut fence = None;
    for line in message.lines() {
        let start = line.trim_start();
        let mark = ["```", "~~~"].into_iter().find(|mark| start.starts_with(mark));
        match (fence, mark) {
            (None, Some(mark)) => fence = Some(mark),
            (Some(open), Some(mark)) if open == mark => {
                fence = None;
                text.push(MASK);
            }
            (Some(_), _) => {}
            (None, None) if start.starts_with('>') => text.push(MASK),
            (None, None) => mask_line(line, &mut text)?,
        }
        text.push('\n');
    }
    fence.is_none().then_some(text)
}

fn mask_line(line: &str, text: &mut String) -> Option<()> {
    let mut rest = line;
    while let Some(at) = rest.find(['`', '"', '“']) {
        let open = rest[at..].chars().next()?;
        let close = if open == '“' { '”' } else { open };
        let inner = &rest[at + open.len_utf8()..];
        let end = inner.find(close)?;
        text.push_str(&rest[..at]);
        text.push(MASK);
        rest = &inner[end + close.len_utf8()..];
    }
    text.push_str(rest);
    Some(())
}

/// Where the last sentence starts.
fn sentence_start(body: &str) -> usize {
    let ends = body.char_indices().rev().find(|&(at, c)| {
        let next = body[at + c.len_utf8()..].chars().next();
        c == '\n' || matches!(c, '.' | '!' | '?' | ';') && next.is_some_and(char::is_whitespace)
    });
    ends.map_or(0, |(at, c)| at + c.len_utf8())
}

/// Whether a new thought can start here: nothing, a blank line, or the end of a sentence is before it.
fn follows_an_end(before: &str) -> bool {
    let line = before.strip_suffix('\n').unwrap_or(before).rsplit('\n').next().unwrap_or_default().trim_end();
    line.is_empty() || line.ends_with(['.', '!', '?'])
}

/// "which option should I take": only the end of a choice.
fn is_closer(question: &str) -> bool {
    let words: Vec<&str> = question.split_whitespace().collect();
    let Some(rest) = words.strip_prefix(&["which"]) else { return false };
    let rest = rest.split_first().filter(|(noun, _)| CHOICES.contains(noun)).map_or(rest, |(_, rest)| rest);
    matches!(rest, ["should", "i", "choose" | "use" | "take"])
}

/// The live items of a list directly above; absent if there is no list.
fn list_above(before: &str) -> Option<Vec<String>> {
    let lines = before.strip_suffix('\n')?.rsplit('\n');
    let items: Vec<&str> = lines.map_while(|line| item(line.trim())).collect();
    if items.len() < 2 {
        return None;
    }
    let is_live = |item: &&&str| {
        let lower = item.to_lowercase();
        !DEAD_ITEM.iter().any(|dead| lower.ends_with(dead)) && item.split_whitespace().count() <= 8
    };
    Some(items.iter().filter(is_live).map(|item| (*item).to_owned()).collect())
}

fn item(line: &str) -> Option<&str> {
    if let Some(rest) = ["- ", "* ", "+ "].iter().find_map(|mark| line.strip_prefix(mark)) {
        return Some(rest);
    }
    let (number, rest) = line.split_once(". ")?;
    let is_number =
        (1..=2).contains(&number.len()) && number.chars().all(|c| c.is_ascii_digit() || c.is_ascii_uppercase());
    is_number.then_some(rest)
}

/// The sentence before names the candidates, or counts them.
fn is_setup(before: &str) -> bool {
    let before = before.trim_end();
    let Some(body) = before.strip_suffix(['.', '!', ':']) else { return false };
    let sentence = body[sentence_start(body)..].trim().to_lowercase();
    let counted = ["paths", "options", "approaches"].iter().any(|noun| {
        ["i found", "there are"].iter().any(|start| sentence.starts_with(&format!("{start} two viable {noun}")))
    });
    if counted || sentence.starts_with("two viable ") && sentence.ends_with(" remain") {
        return true;
    }
    let Some(names) = SETUPS.iter().find_map(|end| sentence.strip_suffix(end)) else { return false };
    let names: Vec<String> = names
        .replace(" and ", ",")
        .split(',')
        .map(|name| name.trim().to_owned())
        .filter(|name| !name.is_empty())
        .collect();
    let short = names.iter().all(|name| (1..=4).contains(&name.split_whitespace().count()));
    (2..=4).contains(&names.len()) && short && differ(&names)
}

/// At least two candidates, all of them real and different.
fn differ(candidates: &[String]) -> bool {
    let bare = |candidate: &String| {
        let lower = candidate.to_lowercase();
        let inner = lower.trim_matches(|c: char| !c.is_alphanumeric() && c != MASK);
        let inner = ["a ", "an ", "the "].iter().find_map(|article| inner.strip_prefix(article)).unwrap_or(inner);
        inner.to_owned()
    };
    let bare: Vec<String> = candidates.iter().map(bare).collect();
    let real = bare.iter().all(|it| !it.contains(MASK) && !VAGUE.contains(&it.as_str()) && !it.contains("free-form"));
    bare.len() >= 2 && real && bare.iter().enumerate().all(|(at, it)| !bare[..at].contains(it))
}

fn first_word(text: &str) -> &str {
    text.split_whitespace().next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::is_fork;

    #[test]
    fn choices_in_prose_are_found() {
        for message in [
            "Redis or Postgres?",
            "The cache needs a store. Redis or Postgres?",
            "Would you prefer a new module or one more function?",
            "Do you prefer tabs or spaces?",
            "Should I rename the function or add an alias?",
            "Redis and Postgres are viable options. Which should I use?",
            "Redis, Postgres and SQLite were considered. Which one should I choose?",
            "I found two viable paths. Which path should I take?",
            "Two viable approaches remain. Which approach should I use?",
            "- Redis\n- Postgres\nWhich option should I use?",
            "1. keep the API\n2. break the API\nWhich one should I take?)",
        ] {
            assert!(is_fork(message), "{message}");
        }
    }

    #[test]
    fn what_is_no_choice_or_no_longer_one_passes() {
        for message in [
            "",
            "Done.",
            "Yes or no?",
            "Redis or other?",
            "Redis or Redis?",
            "Redis, Postgres or SQLite?",
            "Should I merge it or not merge it?",
            "Should I continue?",
            "Do you want me to add a test or a comment?",
            "Is it Redis or Postgres?",
            "Redis and Postgres are viable options; only Redis remains. Which should I use?",
            "- Redis\n- Postgres (ruled out)\nWhich should I use?",
            "- Redis\n- Postgres\n\nWhich option should I use?",
            "- Redis\nWhich option should I use?",
            "He asked \"Redis or Postgres?\"",
            "The label is `Redis or Postgres?`",
            "> Redis or Postgres?",
            "```\nRedis or Postgres?\n```",
            "```\nRedis or Postgres?",
            "Should I use `a` or `b`?",
            "this line goes on\nRedis or Postgres?",
            "Redis or Postgres? I took Redis.",
        ] {
            assert!(!is_fork(message), "{message}");
        }
    }

    #[test]
    fn any_text_is_judged_without_a_panic() {
        for message in [
            "?",
            "or?",
            " or ?",
            "\u{fffc}?",
            "“",
            "`",
            "가 or 나?",
            &"a or ".repeat(10_000),
            &"?\n".repeat(10_000),
            "1. ?",
            "- \n- \nwhich should I use?",
        ] {
            let _ = is_fork(message);
        }
    }
}
