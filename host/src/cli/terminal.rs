//! Talking with a person at a terminal: questions, and a sign of life while something takes long.
//!
//! Both go to standard error, so that standard output holds results only. Without a terminal nobody is asked and nothing moves.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use crate::text::inert;

/// Time between two looks of the sign of life: often enough to be seen to move.
const TICK: Duration = Duration::from_millis(120);
/// The signs, one after the other.
const SIGNS: [char; 4] = ['|', '/', '-', '\\'];

/// Whether there is somebody to ask.
pub(super) fn is_attended() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks a question that yes or no answers. Anything but a yes is a no, and so is the end of the input.
pub(super) fn ask(question: &str) -> Result<bool> {
    let mut stderr = io::stderr().lock();
    write!(stderr, "{} [y/N] ", inert(question))?;
    stderr.flush()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer).context("failed to read your answer")?;
    Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}

/// Does something that takes seconds, and shows at a terminal that it goes on.
pub(super) fn with_progress<T>(what: &str, work: impl FnOnce() -> T) -> T {
    if !io::stderr().is_terminal() {
        return work();
    }
    let (done, is_done) = mpsc::channel::<()>();
    thread::scope(|scope| {
        scope.spawn(move || {
            let began = Instant::now();
            let mut signs = SIGNS.iter().cycle();
            let mut stderr = io::stderr();
            while is_done.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
                let sign = signs.next().copied().unwrap_or(' ');
                // Nobody misses it where it cannot be written.
                let _ = write!(stderr, "\r{sign} {what}, {} s ", began.elapsed().as_secs());
                let _ = stderr.flush();
            }
            let _ = write!(stderr, "\r\u{1b}[K");
            let _ = stderr.flush();
        });
        let result = work();
        drop(done);
        result
    })
}
