//! Numbers and words of the guard.

/// Fill of the context from which the guard speaks, in percent, unless the user moved it: the original's.
pub const DEFAULT_THRESHOLD: u64 = 75;

/// From here on its words are stronger, in percent.
const URGENT_PERCENT: u64 = 90;

/// Refusals until the next compaction: whoever does not react to two does not to a third.
pub const MAX_REFUSALS: u64 = 2;

/// Why the agent may not stop yet. `count` is the number of this refusal.
pub fn refusal(percent: u64, threshold: u64, count: u64) -> String {
    let (marker, hurry) = if percent < URGENT_PERCENT {
        ("[OMC HIGH]", "Soon there will be no room left for the work.")
    } else {
        ("[OMC CRITICAL]", "There is hardly room left.")
    };
    format!(
        "{marker} The context is {percent}% full (threshold {threshold}%). {hurry} Note what must not be lost with \
         notepad_write_priority, and ask the user to run /compact now. If that is not possible, start no more agents, finish the \
         step at hand, and say that a fresh session can go on from the saved state. ({count}/{MAX_REFUSALS})"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_how_full_it_is_and_what_to_do() {
        for (percent, marker) in
            [(75, "[OMC HIGH]"), (89, "[OMC HIGH]"), (90, "[OMC CRITICAL]"), (94, "[OMC CRITICAL]")]
        {
            let text = refusal(percent, DEFAULT_THRESHOLD, 1);
            assert!(text.starts_with(marker) && text.contains(&format!("{percent}%")), "{text}");
            assert!(text.contains("/compact") && text.contains("1/2"), "{text}");
        }
    }
}
