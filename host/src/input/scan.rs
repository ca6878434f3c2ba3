//! Finds the end of the first JSON object in a stream, without parsing it and without looking at a byte twice.

use memchr::memchr2;

/// Where the first object of a stream begins and ends.
///
/// It knows strings and nesting and nothing else: what it calls complete may still be malformed. [`super::repair`] agrees
/// with it about where a string ends, which is what makes a repaired event the one that the scanner saw.
pub(super) struct Scanner {
    state: State,
    /// Bytes of all chunks before the current one.
    passed: usize,
    start: Option<usize>,
    depth: usize,
    values: usize,
}

#[derive(Clone, Copy)]
enum State {
    /// Before the object: white space, or a byte order mark.
    Before,
    /// In the object, outside of strings.
    Structure,
    Text,
    /// In a string, after a backslash.
    Escape,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// The object goes on.
    More,
    /// The object ends after so many bytes of this chunk.
    Complete(usize),
    /// The first value is something else.
    NotAnObject,
}

impl Scanner {
    pub(super) fn new() -> Self {
        Self { state: State::Before, passed: 0, start: None, depth: 0, values: 0 }
    }

    /// A scanner for what follows an opening bracket.
    pub(super) fn inside() -> Self {
        Self { state: State::Structure, depth: 1, ..Self::new() }
    }

    /// Offset of the object's first byte, once it was seen.
    pub(super) fn start(&self) -> Option<usize> {
        self.start
    }

    /// Upper bound on the number of values in what was scanned.
    pub(super) fn values(&self) -> usize {
        self.values
    }

    /// Takes the next chunk. What follows the object is left alone.
    pub(super) fn feed(&mut self, chunk: &[u8]) -> Progress {
        let mut at = 0;
        while let Some(&byte) = chunk.get(at) {
            at += 1;
            match self.state {
                State::Before => match byte {
                    b' ' | b'\t' | b'\n' | b'\r' | 0xEF | 0xBB | 0xBF => {}
                    b'{' => {
                        self.start = Some(self.passed + at - 1);
                        self.depth = 1;
                        self.state = State::Structure;
                    }
                    _ => return Progress::NotAnObject,
                },
                State::Structure => match byte {
                    b'"' => self.state = State::Text,
                    b'{' | b'[' => {
                        self.depth += 1;
                        self.values += 1;
                    }
                    b',' => self.values += 1,
                    b'}' | b']' => {
                        self.depth -= 1;
                        if self.depth == 0 {
                            return Progress::Complete(at);
                        }
                    }
                    _ => {}
                },
                State::Text => {
                    at -= 1;
                    match chunk.get(at..).and_then(|rest| memchr2(b'"', b'\\', rest)) {
                        Some(found) => {
                            at += found + 1;
                            self.state = if chunk[at - 1] == b'"' { State::Structure } else { State::Escape };
                        }
                        None => at = chunk.len(),
                    }
                }
                State::Escape => self.state = State::Text,
            }
        }
        self.passed += chunk.len();
        Progress::More
    }
}
