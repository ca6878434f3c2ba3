//! What a tool gave, as text, and whether that says that it failed.

use std::borrow::Cow;

use serde_json::Value;

/// Longest text that is put together from parts, in bytes; a single text is lent as it is.
pub const MAX_TEXT_BYTES: usize = 8 * 1024 * 1024;

/// What a tool gave.
#[derive(Clone, Debug, PartialEq)]
pub enum Output<'a> {
    /// A text, or the text in an object or in blocks.
    Text(Cow<'a, str>),
    /// Something that holds no text of its own.
    Json(&'a Value),
}

/// Members that hold a result's text, the more telling ones first: MCP and most tools, shells of older versions, web pages.
const TEXTS: &[&str] = &["content", "output", "text", "result", "message"];

/// Members that hold lists of texts: names of files, results of a search.
const LISTS: &[&str] = &["filenames", "results"];

/// Members that say whether a call failed, and the value that means so.
const FLAGS: &[(&str, bool)] = &[("isError", true), ("is_error", true), ("success", false)];

/// Members that hold a command's exit status, and pointers to one further down.
const STATUSES: &[&str] = &["/exit_code", "/exitCode", "/metadata/exit_code"];

/// How a line that tells a command's exit status begins.
const STATUS_LINES: &[&str] = &["Exit code: ", "Exit code ", "Process exited with code "];

/// Lines at the beginning of a text among which the exit status is looked for: it is part of a short heading.
const HEADING_LINES: usize = 6;

/// What a value gives as text.
pub(crate) fn of(value: &Value) -> Output<'_> {
    text(value).map_or(Output::Json(value), Output::Text)
}

fn text(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::String(text) => Some(Cow::Borrowed(text)),
        Value::Array(blocks) => joined(blocks.iter().filter_map(block)),
        Value::Object(object) => {
            let streams = ["stdout", "stderr"].iter().filter_map(|name| object.get(*name)?.as_str());
            if let Some(text) = joined(streams) {
                return Some(text);
            }
            let member = |name: &&str| match object.get(*name)? {
                Value::String(text) => Some(Cow::Borrowed(text.as_str())),
                Value::Array(blocks) => joined(blocks.iter().filter_map(block)),
                _ => None,
            };
            let file = || value.pointer("/file/content")?.as_str().map(Cow::Borrowed);
            TEXTS.iter().find_map(member).or_else(file).or_else(|| LISTS.iter().find_map(member))
        }
        _ => None,
    }
}

/// The text of a content block; a block may be a bare text.
fn block(value: &Value) -> Option<&str> {
    value.as_str().or_else(|| value.get("text")?.as_str())
}

/// Texts with line ends between them, up to [`MAX_TEXT_BYTES`]; a single one that is not empty is lent. `None` if there are none.
fn joined<'a>(texts: impl Iterator<Item = &'a str>) -> Option<Cow<'a, str>> {
    let mut all: Option<Cow<'a, str>> = None;
    for text in texts {
        match &mut all {
            None => all = Some(Cow::Borrowed(text)),
            Some(joined) if joined.is_empty() => *joined = Cow::Borrowed(text),
            Some(_) if text.is_empty() => {}
            Some(joined) => {
                if joined.len() >= MAX_TEXT_BYTES {
                    break;
                }
                let joined = joined.to_mut();
                if !joined.ends_with('\n') {
                    joined.push('\n');
                }
                let left = MAX_TEXT_BYTES.saturating_sub(joined.len());
                joined.push_str(&text[..text.floor_char_boundary(left)]);
            }
        }
    }
    all
}

/// Whether a result says that the call failed.
pub(crate) fn says_failed(value: &Value) -> Option<bool> {
    match value {
        Value::Object(object) => {
            let flag = FLAGS.iter().find_map(|(name, failed)| Some(object.get(*name)?.as_bool()? == *failed));
            let status = || STATUSES.iter().find_map(|pointer| Some(value.pointer(pointer)?.as_i64()? != 0));
            flag.or_else(status)
        }
        Value::String(text) => text.lines().take(HEADING_LINES).find_map(|line| {
            let status = STATUS_LINES.iter().find_map(|beginning| line.strip_prefix(beginning))?;
            status.trim().parse::<i64>().ok().map(|status| status != 0)
        }),
        _ => None,
    }
}
