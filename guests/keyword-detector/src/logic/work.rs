//! A counter of the work done on a prompt, for tests.
//!
//! The scanners tell it how many bytes or comparisons a step took. Tests assert that the sum grows in proportion to the
//! prompt, whatever the prompt is made of: a count is exact where a clock is not. Outside tests it compiles to nothing.

#[cfg(test)]
thread_local! {
    static STEPS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// Adds `steps` to the count of this thread.
#[inline]
pub(super) fn spend(steps: usize) {
    #[cfg(test)]
    STEPS.with(|count| count.set(count.get() + steps as u64));
    #[cfg(not(test))]
    let _ = steps;
}

/// The steps that `job` took on this thread.
#[cfg(test)]
pub(super) fn steps_of(job: impl FnOnce()) -> u64 {
    STEPS.with(|count| count.set(0));
    job();
    STEPS.with(std::cell::Cell::get)
}
