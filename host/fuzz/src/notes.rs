//! The Markdown of `.omc`: notepad, wiki and plans, which people and models write by turns.

use std::collections::BTreeSet;

use omc_state::notepad::{Notepad, Section};
use omc_state::wiki::{Page, slug};
use omc_state::{Timestamp, Todos, plan_notepads, remember};

use crate::scratch::parts;

/// Takes any text for a file of each kind, and writes any words into it.
///
/// Promises: what was not changed comes back byte for byte; no line of the user's is lost by a new entry; an entry is read as it was
/// written, whatever it looks like; the name that a title gives is a plain one.
pub fn notes(bytes: &[u8]) {
    let [file, words] = parts(bytes).map(String::from_utf8_lossy);
    notepad(&file, &words);
    page(&file, &words);
    for note in remember::find_notes(&words) {
        assert!(!note.text.trim().is_empty());
    }
    let _ = (plan_notepads::parse_entries(&file), Todos::parse(&file).open());
    let name = slug(&words);
    assert!(!name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\\', '\0', '\n']), "{name:?}");
}

fn notepad(file: &str, words: &str) {
    let now = Timestamp::from_epoch_ms(1_796_048_880_000);
    let notepad = Notepad::parse(file);
    assert_eq!(notepad.render(), file);
    let lines = |text: &str| text.lines().map(|line| line.trim().to_owned()).collect::<BTreeSet<_>>();
    let without_returns = |text: &str| text.replace('\r', "");
    for section in [Section::Working, Section::Manual] {
        let mut changed = notepad.clone();
        if changed.append(section, words, now).is_ok() {
            let text = changed.render();
            assert!(lines(&text).is_superset(&lines(file)), "a line of the user's is lost");
            let entries = Notepad::parse(&text).entries(section);
            let newest = entries.last().expect("an entry was written");
            assert_eq!(
                without_returns(&newest.content),
                without_returns(words.trim()),
                "an entry reads as another one"
            );
        }
    }
    let kept = |notepad: &Notepad| [Section::Priority, Section::Manual].map(|section| notepad.text(section));
    let mut pruned = notepad.clone();
    pruned.prune(7, now);
    assert_eq!(kept(&pruned), kept(&notepad), "what is kept for ever was dropped");
    let mut replaced = notepad.clone();
    if replaced.set_priority(words).is_ok() {
        let again = Notepad::parse(&replaced.render());
        assert_eq!(again.text(Section::Manual), notepad.text(Section::Manual), "a priority note ate the user's text");
    }
}

fn page(file: &str, words: &str) {
    let Some(mut page) = Page::parse(file) else { return };
    let same_again = |page: &Page| {
        let again = Page::parse(&page.render()).expect("a page that was written is one");
        // A page has its line ends from here, whatever they were.
        assert_eq!(again.body().replace('\r', "").trim(), page.body().replace('\r', "").trim());
        for key in ["title", "category", "created", "confidence"] {
            assert_eq!(again.text(key), page.text(key), "`{key}` reads as another value");
        }
        for key in ["tags", "sources", "links"] {
            assert_eq!(again.list(key), page.list(key), "`{key}` reads as another list");
        }
    };
    same_again(&page);
    page.set_text("title", words);
    page.set_list("tags", &[words, "second"]);
    page.set_body(words);
    same_again(&page);
    let _ = (page.category(), page.updated());
}
