//! Whether a message says that the work is done.

/// Words that say so, in lower case. Korean, Japanese and Chinese have no spaces that matter here.
const WORDS: &[&str] = &["done", "complete", "completed", "completes", "finished", "implemented", "fixed", "resolved"];
const PHRASES: &[&str] = &[
    "all set",
    "ready for review",
    "ready for merge",
    "ready for release",
    "ready for qa",
    "ready for testing",
    "ready to merge",
    "ready to ship",
    "ready to release",
    "ready to submit",
];
const CJK: &[&str] = &[
    "완료했",
    "완료됐",
    "완료되었",
    "구현했",
    "수정했",
    "끝났습니다",
    "끝냈습니다",
    "完了しました",
    "実装しました",
    "修正しました",
    "終わりました",
    "已完成",
    "完成了",
    "已修复",
    "已实现",
    "修復完成",
];

/// Words before a claim that deny or postpone it.
const DENIALS: &[&str] = &[
    "not",
    "isn't",
    "isn’t",
    "aren't",
    "wasn't",
    "hasn't",
    "haven't",
    "never",
    "almost",
    "nearly",
    "partially",
    "partly",
    "until",
    "once",
    "when",
    "if",
    "cannot",
    "can't",
    "be",
    "get",
];

/// Words between a denial and the claim.
const DENIAL_REACH: usize = 3;

/// Whether the message claims that the work is done.
pub fn is_claimed(message: &str) -> bool {
    let lower = message.to_lowercase();
    if CJK.iter().any(|claim| lower.contains(claim)) {
        return true;
    }
    let not_letter = |c: char| !c.is_alphanumeric() && c != '\'' && c != '’';
    lower.split(['.', '!', '?', '\n', ';']).any(|sentence| {
        let words: Vec<&str> = sentence.split(not_letter).filter(|word| !word.is_empty()).collect();
        let is_free = |at: usize| !words[at.saturating_sub(DENIAL_REACH)..at].iter().any(|word| DENIALS.contains(word));
        let phrase = |at: usize| {
            PHRASES.iter().any(|phrase| {
                let phrase: Vec<&str> = phrase.split(' ').collect();
                words[at..].starts_with(&phrase)
            })
        };
        (0..words.len()).any(|at| (WORDS.contains(&words[at]) || phrase(at)) && is_free(at))
    })
}

#[cfg(test)]
mod tests {
    use super::is_claimed;

    #[test]
    fn a_claim_is_told_from_its_denial() {
        for message in [
            "Done.",
            "All tests pass, the parser is complete!",
            "I fixed the date bug.",
            "This is ready for review.",
            "All set",
            "파서를 구현했습니다. 완료했습니다.",
            "パーサーの修正が完了しました。",
            "解析器已完成。",
        ] {
            assert!(is_claimed(message), "{message}");
        }
        for message in [
            "It is not done yet.",
            "The parser isn't fully implemented",
            "I will report when it is finished",
            "Nearly complete",
            "It cannot be fixed here",
            "Here is what I found so far.",
            "The abandoned branch",
            "아직 작업 중입니다",
            "",
        ] {
            assert!(!is_claimed(message), "{message}");
        }
    }
}
