//! A lenient JSON parser for events that are readable, but no JSON by the letter.
//!
//! It runs only after the strict parser refused an event. A control character or a broken escape in a command must not hide
//! that command from the guards, so everything whose meaning is plain is taken: raw control characters, invalid UTF-8 and
//! lone surrogates (as U+FFFD), invalid escapes (as they are written), numbers that no `f64` holds (as null), trailing
//! commas, any depth. Structure is not guessed: a missing quote, colon or bracket makes the event unreadable.
//!
//! Limits: values below [`MAX_DEPTH`] become null, and values beyond the caller's bound are left out. No recursion.

use memchr::memchr2;
use serde_json::{Map, Number, Value};

use super::scan::{Progress, Scanner};

/// Deepest level that is kept. Dropping and writing a value recurse: this bounds the stack they take to a few dozen KiB.
const MAX_DEPTH: usize = 256;

/// Most members of the event itself that are kept when it holds more values than it may: real ones have a few dozen.
const MAX_MEMBERS: usize = 4096;

/// Parses one object. The error is what was complete of its members.
pub(super) fn parse(bytes: &[u8], max_values: usize) -> Result<Map<String, Value>, Map<String, Value>> {
    let mut parser = Parser { bytes, at: 0, stack: Vec::new(), max_values, values: 0 };
    match parser.run() {
        Some(event) => Ok(event),
        None => match parser.stack.into_iter().next() {
            Some(Frame::Object(members, _)) => Err(members),
            _ => Err(Map::new()),
        },
    }
}

struct Parser<'a> {
    bytes: &'a [u8],
    at: usize,
    stack: Vec<Frame>,
    max_values: usize,
    values: usize,
}

/// A container that is still open, and the key whose value comes next.
enum Frame {
    Array(Vec<Value>),
    Object(Map<String, Value>, Option<String>),
}

#[derive(Clone, Copy)]
enum Expect {
    KeyOrEnd,
    Colon,
    Value,
    ValueOrEnd,
    CommaOrEnd,
}

impl Parser<'_> {
    /// `None` where the text ends early or has no meaning; the stack then holds what was read.
    fn run(&mut self) -> Option<Map<String, Value>> {
        let mut expect = Expect::Value;
        loop {
            let byte = self.skip_white_space()?;
            expect = match (expect, byte) {
                (Expect::KeyOrEnd, b'"') => {
                    let name = self.text()?;
                    if let Some(Frame::Object(_, key)) = self.stack.last_mut() {
                        *key = Some(name);
                    }
                    Expect::Colon
                }
                (Expect::Colon, b':') => {
                    self.at += 1;
                    Expect::Value
                }
                (Expect::CommaOrEnd, b',') => {
                    self.at += 1;
                    if let Some(Frame::Object(..)) = self.stack.last() { Expect::KeyOrEnd } else { Expect::ValueOrEnd }
                }
                (Expect::KeyOrEnd | Expect::CommaOrEnd | Expect::ValueOrEnd, b'}' | b']') => {
                    self.at += 1;
                    match (self.stack.pop()?, byte) {
                        (Frame::Object(members, _), b'}') if self.stack.is_empty() => return Some(members),
                        (Frame::Object(members, _), b'}') => self.add(Value::Object(members)),
                        (Frame::Array(items), b']') => self.add(Value::Array(items)),
                        (open, _) => {
                            self.stack.push(open);
                            return None;
                        }
                    }
                    Expect::CommaOrEnd
                }
                (Expect::Value | Expect::ValueOrEnd, b'{' | b'[') => {
                    self.at += 1;
                    if self.stack.len() >= MAX_DEPTH || self.values > self.max_values {
                        let rest = self.bytes.get(self.at..)?;
                        let Progress::Complete(length) = Scanner::inside().feed(rest) else { return None };
                        self.at += length;
                        self.add(Value::Null);
                        Expect::CommaOrEnd
                    } else if byte == b'{' {
                        self.stack.push(Frame::Object(Map::new(), None));
                        Expect::KeyOrEnd
                    } else {
                        self.stack.push(Frame::Array(Vec::new()));
                        Expect::ValueOrEnd
                    }
                }
                (Expect::Value | Expect::ValueOrEnd, b'"') => {
                    let text = self.text()?;
                    self.add(Value::String(text));
                    Expect::CommaOrEnd
                }
                (Expect::Value | Expect::ValueOrEnd, _) => {
                    let value = self.word()?;
                    self.add(value);
                    Expect::CommaOrEnd
                }
                _ => return None,
            };
        }
    }

    fn skip_white_space(&mut self) -> Option<u8> {
        while let b' ' | b'\t' | b'\n' | b'\r' = self.bytes.get(self.at)? {
            self.at += 1;
        }
        self.bytes.get(self.at).copied()
    }

    /// Puts a value into the innermost open container. Of a key that appears twice the last value counts.
    fn add(&mut self, value: Value) {
        self.values += 1;
        let full = self.values > self.max_values;
        let outermost = self.stack.len() == 1;
        match self.stack.last_mut() {
            Some(Frame::Array(items)) if !full => items.push(value),
            Some(Frame::Object(members, key)) => {
                if let Some(key) = key.take()
                    && (!full || outermost && members.len() < MAX_MEMBERS)
                {
                    members.insert(key, value);
                }
            }
            _ => {}
        }
    }

    /// A word outside of strings. What is neither a literal nor a number that fits (`1e400`, `NaN`) is a value nobody can use.
    fn word(&mut self) -> Option<Value> {
        let rest = self.bytes.get(self.at..)?;
        let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.' | b'_');
        let length = rest.iter().position(|byte| !is_part(byte)).unwrap_or(rest.len());
        self.at += length;
        match rest.get(..length)? {
            b"" => None,
            b"true" => Some(Value::Bool(true)),
            b"false" => Some(Value::Bool(false)),
            word => {
                let number = std::str::from_utf8(word).ok().and_then(|word| word.parse::<Number>().ok());
                Some(number.map_or(Value::Null, Value::Number))
            }
        }
    }

    /// A string; `at` is at its opening quote.
    fn text(&mut self) -> Option<String> {
        let mut text = String::new();
        self.at += 1;
        loop {
            let rest = self.bytes.get(self.at..)?;
            let length = memchr2(b'"', b'\\', rest)?;
            text.push_str(&String::from_utf8_lossy(&rest[..length]));
            self.at += length;
            if rest[length] == b'"' {
                self.at += 1;
                return Some(text);
            }
            self.escape(&mut text)?;
        }
    }

    /// An escape; `at` is at its backslash.
    fn escape(&mut self, text: &mut String) -> Option<()> {
        let letter = *self.bytes.get(self.at + 1)?;
        self.at += 2;
        text.push(match letter {
            b'"' | b'\\' | b'/' => char::from(letter),
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' if let Some(high) = self.unit(self.at) => {
                self.at += 4;
                let low =
                    if self.bytes.get(self.at..self.at + 2) == Some(br"\u") { self.unit(self.at + 2) } else { None };
                match char::decode_utf16([high].into_iter().chain(low)).next() {
                    Some(Ok(character)) => {
                        if character.len_utf16() == 2 {
                            self.at += 6;
                        }
                        character
                    }
                    _ => char::REPLACEMENT_CHARACTER,
                }
            }
            // No escape at all, such as in `C:\Users`: the backslash stands for itself, and so does what follows it.
            _ => {
                self.at -= 1;
                '\\'
            }
        });
        Some(())
    }

    /// The UTF-16 unit that four hex digits at `at` write.
    fn unit(&self, at: usize) -> Option<u16> {
        let digits = self.bytes.get(at..at + 4)?;
        digits.iter().try_fold(0, |unit, &digit| Some(unit << 4 | u16::try_from(char::from(digit).to_digit(16)?).ok()?))
    }
}
