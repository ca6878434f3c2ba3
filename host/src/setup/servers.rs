//! Our server in the text of Codex's `config.toml`: a table of its own at the end.
//!
//! Nothing else in the file is touched. After every edit both texts are parsed, and the new one has to say what the old one said
//! and nothing but the one table more or less; else the file is left alone.

use serde_json::{Map, Value, json};
use thiserror::Error;

use super::places::NAME;
use crate::hooks_file;

/// The table's name.
const TABLES: &str = "mcp_servers";

/// Why the file is left alone.
#[derive(Debug, Error, PartialEq, Eq)]
pub(crate) enum Refusal {
    #[error("it is not TOML ({0}); mend it first")]
    NotToml(String),
    #[error("it has a server `{NAME}` that was written or changed by hand; rename or remove it first")]
    Foreign,
    #[error(
        "a table cannot be added to it, since `{TABLES}` is not written as tables; add the server by hand: `codex mcp add {NAME} -- omc-host mcp`"
    )]
    NotTables,
}

/// The server's entry, for agents that read JSON.
pub(super) fn entry(program: &str) -> Value {
    json!({ "command": program, "args": ["mcp"] })
}

/// The text with our server.
pub(super) fn register(text: &str, program: &str) -> Result<String, Refusal> {
    let root = parse(text)?;
    let wanted = entry(program);
    match ours(&root) {
        Ok(Some(found)) if found == wanted => return Ok(text.to_owned()),
        Ok(Some(_)) => return register(&unregister(text)?, program),
        Ok(None) => {}
        Err(refusal) => return Err(refusal),
    }
    let newline = if text.split_once('\n').is_some_and(|(line, _)| line.ends_with('\r')) { "\r\n" } else { "\n" };
    let gap = match text {
        "" => "",
        text if text.ends_with('\n') => newline,
        _ => &newline.repeat(2),
    };
    // The escapes of a JSON text are those of a basic string.
    let table =
        [format!("[{TABLES}.{NAME}]"), format!("command = {}", Value::from(program)), "args = [\"mcp\"]".to_owned()];
    let new = format!("{text}{gap}{}{newline}", table.join(newline));
    let mut expected = root;
    let servers = expected.entry(TABLES).or_insert_with(|| json!({})).as_object_mut().ok_or(Refusal::NotTables)?;
    servers.insert(NAME.to_owned(), wanted);
    if parse(&new).is_ok_and(|found| found == expected) { Ok(new) } else { Err(Refusal::NotTables) }
}

/// The text without our server.
pub(super) fn unregister(text: &str) -> Result<String, Refusal> {
    let mut expected = parse(text)?;
    if ours(&expected)?.is_none() {
        return Ok(text.to_owned());
    }
    if let Some(servers) = expected.get_mut(TABLES).and_then(Value::as_object_mut) {
        servers.remove(NAME);
        if servers.is_empty() {
            expected.remove(TABLES);
        }
    }
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let is_ours = |line: &&str| {
        let line = line.trim();
        line.starts_with("command =") || line.starts_with("args =")
    };
    let header = format!("[{TABLES}.{NAME}]");
    let mut places = lines.iter().enumerate().filter(|(_, line)| line.trim() == header).map(|(at, _)| at);
    places
        .find_map(|at| {
            let end = at + 1 + lines[at + 1..].iter().take_while(|line| is_ours(line)).count();
            // The empty line that was put before it.
            let start = if at > 0 && lines[at - 1].trim().is_empty() { at - 1 } else { at };
            let new = [&lines[..start], &lines[end..]].concat().concat();
            let found = parse(&new).ok()?;
            (found == expected).then_some(new)
        })
        .ok_or(Refusal::Foreign)
}

fn parse(text: &str) -> Result<Map<String, Value>, Refusal> {
    hooks_file::toml(text).map_err(Refusal::NotToml)
}

/// Our server, if it is there and as we write it.
fn ours(root: &Map<String, Value>) -> Result<Option<Value>, Refusal> {
    let Some(found) = root.get(TABLES).and_then(|servers| servers.get(NAME)) else { return Ok(None) };
    let program = found.get("command").and_then(Value::as_str).unwrap_or_default();
    let name = program.rsplit(['/', '\\']).next();
    let is_ours = matches!(name, Some("omc-host" | "omc-host.exe")) && *found == entry(program);
    if is_ours { Ok(Some(found.clone())) } else { Err(Refusal::Foreign) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_is_a_table_at_the_end_that_leaves_without_a_trace() {
        for text in [
            "",
            "model = \"m\"\n",
            "# mine\r\n[a]\r\nb = 1\r\n",
            "[mcp_servers.other]\ncommand = \"x\"\n",
            "x = '''\n[mcp_servers.omc]\n'''\n",
        ] {
            for program in ["/opt/omc-host", "/a b/\"q\"/한국어/omc-host", "C:\\omc\\omc-host.exe"] {
                let with = register(text, program).unwrap();
                assert!(with.starts_with(text) && with.contains("[mcp_servers.omc]"), "{with}");
                assert_eq!(parse(&with).unwrap()["mcp_servers"]["omc"], entry(program));
                assert_eq!(register(&with, program).as_deref(), Ok(&*with));
                assert_eq!(unregister(&with).as_deref(), Ok(text));
                // Codex appends what the user trusts.
                let more = format!("{with}\n[hooks.state.\"/a:stop:0:0\"]\ntrusted_hash = \"sha256:0\"\n");
                let moved = register(&more, "/new/omc-host").unwrap();
                assert_eq!(parse(&moved).unwrap()["mcp_servers"]["omc"]["command"], "/new/omc-host");
                assert_eq!(parse(&moved).unwrap()["hooks"], parse(&more).unwrap()["hooks"]);
            }
        }
    }

    #[test]
    fn what_cannot_be_edited_safely_is_refused() {
        for (text, refusal) in [
            ("mcp_servers = { other = { command = \"x\" } }\n", Refusal::NotTables),
            ("mcp_servers = 1\n", Refusal::NotTables),
            ("[mcp_servers.omc]\ncommand = \"mine\"\n", Refusal::Foreign),
            ("[mcp_servers.omc]\ncommand = \"/a/omc-host\"\nargs = [\"mcp\"]\nenv = {}\n", Refusal::Foreign),
        ] {
            assert_eq!(register(text, "/opt/omc-host"), Err(refusal), "{text}");
        }
        assert!(matches!(register("a = ", "/opt/omc-host"), Err(Refusal::NotToml(_))));
    }
}
