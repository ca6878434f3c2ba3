//! The context filter: is this place of a keyword a request, or only talk about it?
//!
//! A mode that starts by mistake costs the user a turn, one that does not start costs a word more. So a keyword counts only where
//! a request can stand: at the start of a clause ("ralph fix …", "…, then ulw the rest"), after a verb that starts things ("use
//! ralph"), as the tool of an order ("fix … with ralph"), with the particles and verbs that say so in Korean, Japanese and
//! Chinese. Denials, questions, quotes and talk about a mode's faults are mentions. Politeness changes nothing.
//!
//! Everything is decided from [`REACH`] characters to both sides, so that one judgement costs the same in any prompt.

use super::{
    invocation,
    keywords::{self, Form, Found, Keyword, Occurrence, ROWS, Sort},
    sanitize::{Sanitized, THING},
    text::{is_cjk, is_space},
    words as w, work,
};

/// How far around a keyword is looked, in characters: a long sentence.
const REACH: usize = 120;

/// Longest quotation, in characters; a quote mark that closes later is taken for something else.
const MAX_QUOTE: usize = 400;

/// Names in one list ("ralph, autopilot and ultrawork") that are judged as one.
const MAX_LIST: usize = 6;

/// Words between a denial and the keyword.
const DENIAL_REACH: usize = 8;

/// Characters after the keyword within which Korean and Japanese deny or activate it.
const CJK_NEAR: usize = 12;

/// Judges the occurrences in one text.
pub(super) struct Context<'a> {
    text: &'a Sanitized,
    /// Quotations: start and end, marks included, in order of their ends.
    quotes: Vec<(usize, usize)>,
    /// The text explains or compares modes.
    reference: bool,
}

impl<'a> Context<'a> {
    pub(super) fn new(text: &'a Sanitized, found: &Found) -> Self {
        Self { text, quotes: quotes(&text.clean), reference: is_reference(&text.lower, found) }
    }

    /// Whether the occurrence is a request.
    pub(super) fn is_request(&self, place: &Occurrence) -> bool {
        let lower = &self.text.lower;
        let start = invocation::start_with_prefix(lower, place.start);
        let (mut start, mut end, mut bare_quote) = (start, place.end, false);
        if let Some((open, close)) = self.quote_around(start, end) {
            bare_quote = is_same_words(&lower[open..close], &lower[start..end]);
            if !bare_quote {
                return false;
            }
            (start, end) = (open, close);
        }
        let around = Around::new(lower, start, end);
        work::spend(4 * REACH);
        if place.keyword == Keyword::Cancel && !bare_quote && around.is_interjection() {
            return true;
        }
        let sure = if around.is_cjk(&lower[place.start..place.end]) { around.judge_cjk() } else { around.judge(place) };
        match sure {
            Sure::No => false,
            Sure::Yes => true,
            // A quoted name needs a verb beside it, and a text that explains modes names them at the start of clauses too.
            Sure::Placed => !self.reference && (!bare_quote || around.starts_order()),
        }
    }

    fn quote_around(&self, start: usize, end: usize) -> Option<(usize, usize)> {
        let after = self.quotes.partition_point(|(_, close)| *close < end);
        // Quotations of different marks may be nested; a few steps see the nearest.
        self.quotes[after..].iter().take(4).copied().find(|(open, close)| *open < start && end <= *close)
    }
}

/// What the context says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sure {
    /// A mention.
    No,
    /// A request only by its place.
    Placed,
    /// A request by the words around it.
    Yes,
}

impl Sure {
    fn placed(yes: bool) -> Self {
        if yes { Self::Placed } else { Self::No }
    }
}

/// The words around a keyword, or around the list of names that it is in.
struct Around<'a> {
    /// From the start of the sentence to the keyword.
    sentence_lead: &'a str,
    /// From the start of the clause to the keyword.
    lead: &'a str,
    /// From the keyword to the end of the clause.
    clause_tail: &'a str,
    /// From the keyword to the end of the sentence, its mark included.
    tail: &'a str,
}

impl<'a> Around<'a> {
    fn new(lower: &'a str, start: usize, end: usize) -> Self {
        let (first, last) = whole_list(lower, start, end);
        let before = last_chars(&lower[..first], REACH);
        let after = first_chars(&lower[last..], REACH);
        let sentence_lead = &before[last_break(before, ends_sentence)..];
        let lead = &sentence_lead[last_break(sentence_lead, breaks_clause)..];
        let tail = &after[..first_break(after, ends_sentence)];
        let clause_tail =
            &tail[..first_break(tail, |c, before, next| breaks_clause(c, before, next) || "!?。！？".contains(c))];
        Self { sentence_lead, lead, clause_tail, tail }
    }

    /// Korean, Japanese or Chinese grammar applies: the keyword or its neighbour is written so.
    fn is_cjk(&self, keyword: &str) -> bool {
        let letter = |c: &char| c.is_alphabetic() || *c == THING;
        let next = self.tail.chars().find(letter).is_some_and(is_cjk);
        let previous = self.lead.chars().rev().find(letter).is_some_and(is_cjk);
        keyword.chars().any(is_cjk) || next || previous
    }

    /// The keyword is followed by an order: a verb of work, also after "can you", or an object to work on.
    fn starts_order(&self) -> bool {
        let following: Vec<&str> = words(self.tail).take(8).collect();
        let is_verb = |word: &&str| is_one_of(word, &[w::WORK, w::ACTIVATE]);
        let Manner { rest, opened, .. } = manner(&following);
        following.first().is_some_and(|word| is_verb(word) || w::OBJECTS.contains(word) || word.starts_with(THING))
            || opened && rest.first().is_some_and(is_verb)
    }

    /// The sentence is a question, and not only one for assent.
    fn is_question(&self) -> bool {
        let Some(mark) = self.tail.find(['?', '？']) else { return false };
        let asked = &self.tail[..mark];
        let last_clause = asked[last_break(asked, breaks_clause)..].trim();
        asked.len() == last_clause.len() || !w::TAGS.contains(&last_clause)
    }

    /// The keyword is the first clause of its sentence, alone: "cancelomc, why is it still running?".
    fn is_interjection(&self) -> bool {
        let first = words(self.sentence_lead).all(|word| is_one_of(word, &[w::FILLERS])) && !self.is_heading();
        first && matches!(self.clause_tail.trim(), "," | ";" | "，" | "；" | "、" | "—" | "–" | "-" | "…")
    }

    fn is_heading(&self) -> bool {
        self.sentence_lead.trim_start().starts_with('#')
    }

    /// English grammar, which is also that of any other language with spaces.
    fn judge(&self, place: &Occurrence) -> Sure {
        let all: Vec<&str> = words(self.lead).collect();
        let clause = after_conjunction(&all[all.len().saturating_sub(24)..]);
        let Manner { rest, opened, polite } = manner(clause);
        let following: Vec<&str> = words(self.clause_tail).take(4).collect();
        // To remove such a thing is the request, not its end.
        let is_thing = matches!(place.form, Form::Object | Form::Untidy);
        let cleaned = place.form == Form::Untidy && self.orders_cleaning();
        let talked_about = !is_thing && is_stopped(rest)
            || is_asked_about(rest)
            || is_at_fault(rest)
            || is_told_of(&following)
            || w::THAI_ASKING.iter().any(|asking| self.tail.contains(asking) || self.sentence_lead.contains(asking));
        if is_denied(rest) || talked_about && !cleaned {
            return Sure::No;
        }
        let order = self.starts_order() || place.keyword.takes_question() && self.names_open_question();
        if self.is_question() && !(opened || polite || order) {
            return Sure::No;
        }
        if w::LAUGHTER.iter().any(|laugh| self.tail.contains(laugh) || self.sentence_lead.contains(laugh)) {
            return Sure::No;
        }
        let ordered = is_order(rest);
        if place.form == Form::Ending {
            let ends = following.iter().all(|word| is_one_of(word, &[w::FILLERS]));
            return Sure::placed(ordered && ends);
        }
        if is_thing {
            let fits = place.form == Form::Object || rest.iter().any(|word| w::CLEANING.contains(word));
            return Sure::placed(cleaned || ordered && fits);
        }
        let asked_for = opened && rest.iter().all(|word| is_one_of(word, &[w::DETERMINERS, w::FILLERS]));
        if asked_for || is_activated(rest) || is_instrument(rest, ordered) || is_caused(rest, &following) {
            return Sure::Yes;
        }
        if rest.last() == Some(&"in") && following.first() == Some(&"mode") && (ordered || rest.len() == 1) {
            return Sure::Yes;
        }
        if !order && place.form != Form::Order && self.tail_asks() {
            return Sure::No;
        }
        let made = matches!(place.keyword.sort(), Sort::Planning | Sort::Skill | Sort::Block) && is_made(rest);
        let wished = place.keyword.sort() == Sort::Block && is_wished(rest, &following);
        let last = rest.iter().rev().find(|word| !w::DETERMINERS.contains(word));
        let joined = last.is_some_and(|last| ["and", "plus", "&", "or", "also"].contains(last));
        let ends = following.iter().all(|word| is_one_of(word, &[w::FILLERS, &["mode"]]));
        let trails =
            ordered && ends && rest.last().is_some_and(|last| w::TRAILED.contains(last) || last.starts_with(THING));
        let starts = rest.is_empty() && !self.is_heading();
        Sure::placed(starts || made || wished || joined && ordered || trails || place.form == Form::Coined)
    }

    /// A clause of the sentence orders to clean up: "refactor it, it is full of …", "there is … in it, please prune it".
    fn orders_cleaning(&self) -> bool {
        let clauses = [self.sentence_lead, self.tail].into_iter().flat_map(|text| text.split([',', ';', ':']));
        let cleans = |rest: &[&str]| manner(rest).rest.first().is_some_and(|first| w::CLEANING.contains(first));
        clauses
            .map(|clause| words(clause).collect::<Vec<_>>())
            .any(|all| cleans(&all) || cleans(after_conjunction(&all)))
    }

    /// What follows the keyword, after a comma or colon, asks or tells.
    fn tail_asks(&self) -> bool {
        match *words(self.tail).take(2).collect::<Vec<_>>() {
            ["you", next] => w::TELLING.contains(&next),
            [first, ..] => w::ASKING.contains(&first) || ["tell", "show", "you're", "you've"].contains(&first),
            [] => false,
        }
    }

    /// What follows the keyword is a question that a plan or thought answers: "how to migrate", "which database", "why it fails".
    fn names_open_question(&self) -> bool {
        match *words(self.tail).take(2).collect::<Vec<_>>() {
            ["which" | "whether" | "why", _] => true,
            ["how", next] => ["to", "should", "can", "could", "we"].contains(&next),
            ["what", next] => ["to", "if", "should", "can", "could", "would", "might"].contains(&next),
            _ => false,
        }
    }

    /// Korean, Japanese and Chinese: what is asked stands after the keyword, or in Chinese before it.
    fn judge_cjk(&self) -> Sure {
        let near = first_chars(self.clause_tail, CJK_NEAR);
        let before = last_chars(self.lead, CJK_NEAR);
        let has = |text: &str, list: &[&str]| list.iter().any(|piece| text.contains(piece));
        if has(near, w::CJK_NEGATION_AFTER) || has(before, w::CJK_NEGATION_BEFORE) || has(near, w::CJK_BROKEN) {
            return Sure::No;
        }
        // An English verb before a name that Korean or Japanese words follow, and the reverse.
        let english: Vec<&str> = words(self.lead).collect();
        let english = manner(after_conjunction(&english)).rest;
        if is_denied(english) || is_stopped(english) {
            return Sure::No;
        }
        let names_other = starts_with_any(self.clause_tail, w::CJK_NAME_OF)
            || starts_with_any(self.clause_tail.trim_start(), w::CJK_NAME_OF);
        if names_other || self.comes_again() {
            return Sure::No;
        }
        if has(self.tail, w::CJK_ASKING_FOR_A_WAY) {
            return Sure::No;
        }
        let particle = starts_with_any(self.clause_tail, w::CJK_MEANS_PARTICLES) || self.clause_tail == "로";
        let after = if particle { Some(0) } else { earliest(self.tail, w::CJK_ACTIVATION_AFTER) };
        let activation = if has(before, w::CJK_ACTIVATION_BEFORE) { Some(0) } else { after };
        let asking = earliest(self.tail, w::CJK_ASKING);
        let request = has(self.tail, w::CJK_REQUEST) || has(self.sentence_lead, w::CJK_REQUEST);
        // "I do not know what is wrong, fix it with ralph" asks nothing about ralph.
        if has(self.sentence_lead, w::CJK_ASKING) && !(after.is_some() && request) {
            return Sure::No;
        }
        if asking.is_some_and(|asking| activation.is_none_or(|activation| asking < activation || !request)) {
            return Sure::No;
        }
        if self.is_question() && !request {
            return Sure::No;
        }
        if has(self.tail, w::LAUGHTER) && activation.is_none() {
            return Sure::No;
        }
        if activation.is_some() || is_activated(english) {
            return Sure::Yes;
        }
        let topic = starts_with_any(self.clause_tail, w::CJK_TOPIC_PARTICLES);
        let starts = words(self.lead).all(|word| is_one_of(word, &[w::FILLERS])) && !self.is_heading();
        Sure::placed(request || starts && !topic)
    }

    /// The keyword, soon a word for again, soon a fault.
    fn comes_again(&self) -> bool {
        let Some(again) = earliest(first_chars(self.tail, 2 * CJK_NEAR), w::CJK_AGAIN) else { return false };
        earliest(first_chars(&self.tail[again..], 2 * CJK_NEAR), w::CJK_FAULT).is_some()
    }
}

/// What a clause says before the keyword, its polite opening taken off.
struct Manner<'a, 'b> {
    rest: &'b [&'a str],
    /// It opens as a request: "can you", "I want you to".
    opened: bool,
    /// It says please.
    polite: bool,
}

fn manner<'a, 'b>(words: &'b [&'a str]) -> Manner<'a, 'b> {
    let mut manner = Manner { rest: words, opened: false, polite: false };
    loop {
        if let Some(opener) = w::OPENERS.iter().find(|opener| manner.rest.starts_with(opener)) {
            manner.rest = &manner.rest[opener.len()..];
            manner.opened = true;
        } else if let Some((first, rest)) = manner.rest.split_first().filter(|(first, _)| w::FILLERS.contains(first)) {
            manner.polite |= w::POLITE.contains(first);
            manner.rest = rest;
        } else {
            return manner;
        }
    }
}

/// The clause's words after the last "then", "but", or "and" with a new verb.
///
/// "do not install and run ralph" has two verbs under one denial: there the "and" does not begin anything.
fn after_conjunction<'a, 'b>(words: &'b [&'a str]) -> &'b [&'a str] {
    let is_verb = |word: &&str| is_one_of(word, &[w::WORK, w::ACTIVATE]);
    for index in (0..words.len()).rev() {
        let next = words.get(index + 1);
        let new_verb = next.is_some_and(|next| is_verb(next) || ["please", "let's"].contains(next));
        let verb_before = index > 0 && is_verb(&words[index - 1]);
        let begins = match words[index] {
            "then" | "but" => true,
            "that" => index > 0 && words[index - 1] == "after",
            "so" => next.is_none() || new_verb,
            "and" => new_verb && !verb_before,
            _ => false,
        };
        if begins {
            return &words[index + 1..];
        }
    }
    words
}

fn is_denied(rest: &[&str]) -> bool {
    rest.iter().rev().take(DENIAL_REACH).any(|word| w::NEGATORS.contains(word))
}

fn is_stopped(rest: &[&str]) -> bool {
    let verb = rest.iter().rev().find(|word| !is_one_of(word, &[w::DETERMINERS, w::STOPPER_GAP]));
    let Some(verb) = verb else { return false };
    match *verb {
        // Only as "instead of", "out of", "turn off", "shut down".
        "of" => rest.iter().any(|word| ["instead", "out", "rid"].contains(word)),
        "off" => rest.iter().any(|word| ["turn", "turning", "switch", "switching", "shut"].contains(word)),
        "down" => rest.contains(&"shut"),
        verb => w::STOPPERS.contains(&verb) && rest.last() != Some(&"with"),
    }
}

fn is_asked_about(rest: &[&str]) -> bool {
    let Some(first) = rest.first() else { return false };
    let question = w::AUXILIARIES.contains(first)
        // "Do it with ralph" is an order.
        || w::AUXILIARIES_BEFORE_PRONOUN.contains(first)
            && rest.get(1).is_some_and(|next| *next != "it" && w::PRONOUNS.contains(next));
    let when = rest.windows(2).any(|pair| pair[0] == "when" && is_one_of(pair[1], &[w::AUXILIARIES, &["to", "do"]]));
    let topic = rest.iter().rev().find(|word| !w::DETERMINERS.contains(word));
    question
        || when
        || rest.iter().any(|word| w::ASKING.contains(word))
        || topic.is_some_and(|word| w::TOPIC_PREPOSITIONS.contains(word))
}

/// "fix the bug in …": the fault is the keyword's. With "with" after an order it is the tool instead.
fn is_at_fault(rest: &[&str]) -> bool {
    let Some(fault) = rest.iter().rposition(|word| w::FAULTS.contains(word)) else { return false };
    let Some((preposition, between)) = rest[fault + 1..].split_first() else { return false };
    let near = between.iter().all(|word| w::DETERMINERS.contains(word));
    w::FAULT_PREPOSITIONS.contains(preposition) && near && !(*preposition == "with" && is_order(rest))
}

/// The clause gives an order: it begins with a verb, or with another keyword used as one.
fn is_order(rest: &[&str]) -> bool {
    rest.first().is_some_and(|first| {
        is_one_of(first, &[w::WORK, w::ACTIVATE]) || keywords::starts_with_keyword(first).is_some()
    })
}

/// "use", "start the", "switch over to": a verb that starts things, with nothing of weight between it and the keyword.
fn is_activated(rest: &[&str]) -> bool {
    let verb =
        rest.iter().rposition(|word| !is_one_of(word, &[w::DETERMINERS, w::BETWEEN]) || w::ACTIVATE.contains(word));
    verb.is_some_and(|verb| {
        w::ACTIVATE.contains(&rest[verb]) && !rest[..verb].iter().any(|word| w::SUBJECTS.contains(word))
    })
}

/// "draft a ralplan", "write a code review".
fn is_made(rest: &[&str]) -> bool {
    let verb = rest.iter().rposition(|word| !w::DETERMINERS.contains(word));
    verb.is_some_and(|verb| verb + 1 < rest.len() && w::MAKE.contains(&rest[verb]) && (verb == 0 || is_order(rest)))
}

/// "a quick code review of …": an indefinite thing, as one asks for it.
fn is_wished(rest: &[&str], following: &[&str]) -> bool {
    let Some((first, rest)) = rest.split_first() else { return false };
    ["a", "an", "another"].contains(first)
        && rest.iter().all(|word| w::DETERMINERS.contains(word))
        && following.first().is_none_or(|word| ["of", "for", "on", "in", "please"].contains(word))
}

/// "with ralph", as the tool of an order or alone.
fn is_instrument(rest: &[&str], ordered: bool) -> bool {
    let by = rest.iter().rposition(|word| !w::DETERMINERS.contains(word));
    by.is_some_and(|by| w::INSTRUMENTS.contains(&rest[by]) && (ordered || by == 0))
}

/// "let ralph fix it", "ask ralph to fix it".
fn is_caused(rest: &[&str], following: &[&str]) -> bool {
    let Some((last, before)) = rest.split_last() else { return false };
    let works = |word: Option<&&str>| word.is_some_and(|word| is_one_of(word, &[w::WORK, w::ACTIVATE]));
    let does = works(following.first()) || following.first() == Some(&"to") && works(following.get(1));
    before.is_empty() && w::CAUSATIVES.contains(last) && does
}

/// The words after the keyword tell of it, deny it, or make it the name of something else.
fn is_told_of(following: &[&str]) -> bool {
    let following = match following.split_first() {
        Some((noun, rest)) if w::MODE_NOUNS.contains(noun) => rest,
        _ => following,
    };
    let Some(first) = following.first() else { return false };
    let second = following.get(1);
    if w::MODALS.contains(first) && second == Some(&"not") {
        return true;
    }
    if *first == "not" {
        // "use autopilot not ralph" denies the other one.
        return second.is_none_or(|second| keywords::starts_with_keyword(second).is_none());
    }
    if w::TELLING_ADVERBS.contains(first) {
        return second.is_some_and(|second| w::TELLING.contains(second) && !w::TELLING_ADVERBS.contains(second));
    }
    w::TELLING.contains(first) || w::TOPIC_NOUNS.contains(first)
}

/// The names around an occurrence that form a list with it: "ralph, autopilot and ultrawork".
fn whole_list(lower: &str, start: usize, end: usize) -> (usize, usize) {
    const JOINTS: &[&str] =
        &["and", "or", "nor", "plus", "&", "+", ",", "와", "과", "랑", "하고", "や", "と", "和", "、", "，"];
    let (mut first, mut last) = (start, end);
    for _ in 0..MAX_LIST {
        let before = trim_end(&lower[..first]);
        let mut joined = before;
        while let Some(rest) = JOINTS.iter().find_map(|joint| joined.strip_suffix(joint)) {
            joined = trim_end(rest);
        }
        if joined.len() == before.len() {
            break;
        }
        match keywords::ends_with_keyword(lower, joined.len()) {
            Some(start) => first = invocation::start_with_prefix(lower, start),
            None => break,
        }
    }
    for _ in 0..MAX_LIST {
        let after = lower[last..].trim_start_matches(' ');
        let mut joined = after;
        while let Some(rest) = JOINTS.iter().find_map(|joint| joined.strip_prefix(joint)) {
            joined = rest.trim_start_matches(' ');
        }
        if joined.len() == after.len() {
            break;
        }
        match keywords::starts_with_keyword(joined) {
            Some(end) => last = lower.len() - joined.len() + end,
            None => break,
        }
    }
    (first, last)
}

fn trim_end(text: &str) -> &str {
    text.trim_end_matches(' ')
}

/// Whether the text compares modes or defines several of them: it informs, and asks for nothing.
fn is_reference(lower: &str, found: &Found) -> bool {
    const COMPARING: &[&str] =
        &[" vs ", " vs. ", "versus", "compared to", "comparison", "비교", "차이", "比較", "比较", "区别", "違い"];
    if found.modes_named() < 2 {
        return false;
    }
    work::spend(lower.len() * COMPARING.len());
    let defined = ROWS.iter().filter(|row| row.keyword.sort().is_mode()).filter(|row| {
        found.of(row.keyword).any(|place| {
            let starts_line =
                lower[..place.start].trim_end_matches([' ', '-', '*', '•']).ends_with(['\n']) || place.start == 0;
            let after = lower[place.end..].trim_start_matches([' ', '*']);
            starts_line && after.starts_with([':', '：', '=', '→', '⇒', '-', '—', '–'])
        })
    });
    defined.count() >= 2 || COMPARING.iter().any(|word| lower.contains(word))
}

/// The quotations of a text, each on one line, in order of their ends.
///
/// A straight single quote opens only before a word and closes only after one, so that apostrophes are none.
fn quotes(text: &str) -> Vec<(usize, usize)> {
    const PAIRS: [(char, char); 7] =
        [('"', '"'), ('\'', '\''), ('“', '”'), ('‘', '’'), ('「', '」'), ('『', '』'), ('«', '»')];
    let mut found = Vec::new();
    let mut open: [Option<(usize, usize)>; PAIRS.len()] = [None; PAIRS.len()];
    let mut before = '\n';
    let mut characters = text.char_indices().enumerate().peekable();
    work::spend(text.len());
    while let Some((index, (at, character))) = characters.next() {
        if character == '\n' {
            open = [None; PAIRS.len()];
        } else if !character.is_alphanumeric() && character != ' ' {
            let next = characters.peek().map_or('\n', |(_, (_, next))| *next);
            let single = character == '\'';
            let may_close = !single || !is_space(before) && !next.is_alphanumeric();
            let may_open = !single || !before.is_alphanumeric() && !is_space(next);
            let closed =
                PAIRS.iter().zip(&mut open).filter(|((_, closing), _)| may_close && *closing == character).any(
                    |(_, open)| match *open {
                        Some((opened_index, opened_at)) if index - opened_index <= MAX_QUOTE => {
                            found.push((opened_at, at + character.len_utf8()));
                            *open = None;
                            true
                        }
                        _ => false,
                    },
                );
            if !closed
                && may_open
                && let Some(kind) = PAIRS.iter().position(|(opening, _)| *opening == character)
            {
                open[kind] = Some((index, at));
            }
        }
        before = character;
    }
    found
}

fn is_same_words(quoted: &str, keyword: &str) -> bool {
    quoted.trim_matches(|c: char| !c.is_alphanumeric()) == keyword.trim_matches(|c: char| !c.is_alphanumeric())
}

fn ends_sentence(character: char, _before: Option<char>, next: Option<char>) -> bool {
    match character {
        '\n' | '。' | '！' | '？' | '．' => true,
        '.' | '!' | '?' => next.is_none_or(is_space),
        _ => false,
    }
}

fn breaks_clause(character: char, before: Option<char>, next: Option<char>) -> bool {
    match character {
        '-' => before.is_none_or(is_space) && next.is_none_or(is_space),
        ',' | ';' | ':' | '(' | ')' | '—' | '–' | '，' | '；' | '：' | '、' | '（' | '）' | '→' | '⇒' | '…' | '!'
        | '?' => true,
        _ => false,
    }
}

type Break = fn(char, Option<char>, Option<char>) -> bool;

/// Where the text after the last break starts.
fn last_break(text: &str, is_break: Break) -> usize {
    let mut next = None;
    let mut characters = text.char_indices().rev().peekable();
    while let Some((at, character)) = characters.next() {
        let before = characters.peek().map(|(_, before)| *before);
        if is_break(character, before, next) {
            return at + character.len_utf8();
        }
        next = Some(character);
    }
    0
}

/// Where the text up to and with the first break ends.
fn first_break(text: &str, is_break: impl Fn(char, Option<char>, Option<char>) -> bool) -> usize {
    let mut before = None;
    let mut characters = text.char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        if is_break(character, before, characters.peek().map(|(_, next)| *next)) {
            return at + character.len_utf8();
        }
        before = Some(character);
    }
    text.len()
}

fn last_chars(text: &str, count: usize) -> &str {
    let start = text.char_indices().rev().take(count).last().map_or(text.len(), |(at, _)| at);
    &text[start..]
}

fn first_chars(text: &str, count: usize) -> &str {
    let end = text.char_indices().nth(count).map_or(text.len(), |(at, _)| at);
    &text[..end]
}

/// The words of a text without the punctuation around them.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let part_of_word = |c: char| c.is_alphanumeric() || c == THING || c == '&';
    text.split(is_space).map(move |word| word.trim_matches(|c| !part_of_word(c))).filter(|word| !word.is_empty())
}

fn is_one_of(word: &str, lists: &[&[&str]]) -> bool {
    lists.iter().any(|list| list.contains(&word))
}

fn starts_with_any(text: &str, pieces: &[&str]) -> bool {
    pieces.iter().any(|piece| text.starts_with(piece))
}

/// Where the first of the pieces stands.
fn earliest(text: &str, pieces: &[&str]) -> Option<usize> {
    pieces.iter().filter_map(|piece| text.find(piece)).min()
}

/// Whether one of the keyword's occurrences is a request.
pub(super) fn asks_for(context: &Context<'_>, found: &Found, keyword: Keyword) -> bool {
    found.of(keyword).any(|place| context.is_request(place))
}
