//! Variables for the commands that the agent runs later: lines appended to the file that Claude Code names for that.
//!
//! The agent's shell reads the file, so what stands in it is code. A line is only ever `export NAME='…'` with a name that a guest
//! was granted and a value in which nothing but the quotes' end could act, and that is written so that it does not.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::Path;

use crate::protocol::decision::Variable;
use crate::runtime::wit::types::AccessError;

/// Longest value, in bytes: a path or a list of some, and far below what a command line takes.
const MAX_VALUE_BYTES: usize = 4 * 1024;
/// Most variables of one call.
const MAX_VARIABLES: usize = 32;
/// Size at which the file takes no more, in bytes: the agent's shell reads it before each command.
const MAX_FILE_BYTES: u64 = 256 * 1024;

/// Adds a variable to those that a guest has set; the last value of a name counts.
pub(super) fn set(variables: &mut Vec<(String, String)>, name: String, value: String) -> Result<(), AccessError> {
    if value.chars().any(char::is_control) {
        return Err(AccessError::Other("the value holds control characters".to_owned()));
    }
    if value.len() > MAX_VALUE_BYTES {
        return Err(AccessError::TooLarge);
    }
    if let Some((_, held)) = variables.iter_mut().find(|(held, _)| *held == name) {
        *held = value;
    } else if variables.len() == MAX_VARIABLES {
        return Err(AccessError::TooLarge);
    } else {
        variables.push((name, value));
    }
    Ok(())
}

/// Appends the variables to the agent's file, with one write. One that has this value there already is not written again.
///
/// # Errors
///
/// If the path is not absolute, or if what is there is no regular file of the user's own; nothing was written then.
pub(crate) fn append(path: &Path, variables: &[Variable]) -> io::Result<()> {
    if !path.is_absolute() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "its path is not absolute"));
    }
    let mut file = open(path)?;
    let mut held = Vec::new();
    (&mut file).take(MAX_FILE_BYTES).read_to_end(&mut held)?;
    let held = String::from_utf8_lossy(&held);
    let lines = variables.iter().filter_map(|Variable { name, value, .. }| {
        let beginning = format!("export {name}=");
        let line = format!("{beginning}'{}'", value.replace('\'', r"'\''"));
        let last = held.lines().rfind(|held| held.starts_with(&beginning));
        (last != Some(&line)).then(|| line + "\n")
    });
    let text: String = lines.collect();
    if text.is_empty() {
        return Ok(());
    }
    // Whatever stands at the end without a line's end, an empty line behind it changes nothing.
    let text = if held.is_empty() { text } else { format!("\n{text}") };
    if file.metadata()?.len() + text.len() as u64 > MAX_FILE_BYTES {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    file.write_all(text.as_bytes())
}

/// Opens the file to append to, and creates it for the user alone if it is not there.
#[cfg(unix)]
fn open(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::MetadataExt as _;

    use rustix::fs::{Mode, OFlags};

    let flags = OFlags::RDWR | OFlags::APPEND | OFlags::CREATE | OFlags::NOFOLLOW;
    // Without waiting: a FIFO in its place would wait for a reader.
    let flags = flags | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::from_raw_mode(0o600))?);
    let about = file.metadata()?;
    // A second name would be a file of somebody's elsewhere, such as one that every shell reads.
    if !about.is_file() || about.uid() != rustix::process::geteuid().as_raw() || about.nlink() != 1 {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "it is no regular file of the user's own"));
    }
    Ok(file)
}

#[cfg(not(unix))]
fn open(path: &Path) -> io::Result<File> {
    let file = File::options().read(true).append(true).create(true).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::ErrorKind::PermissionDenied.into()) }
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    use std::process::Command;

    use super::*;

    fn variable(name: &str, value: &str) -> Variable {
        Variable { guest: "g".to_owned(), name: name.to_owned(), value: value.to_owned() }
    }

    #[test]
    fn a_shell_reads_back_every_value_and_runs_none() {
        let folder = tempfile::tempdir().unwrap();
        let (path, marker) = (folder.path().join("env"), folder.path().join("ran"));
        let touch = format!("touch {}", marker.display());
        let values = [
            "plain".to_owned(),
            String::new(),
            "with 'quotes' and \"more\"".to_owned(),
            format!("'; {touch}; '"),
            format!("$({touch}) `{touch}` ${{X:={touch}}}"),
            "back\\slash\\'".to_owned(),
            "한국어 😀 \u{2028}".to_owned(),
            "!history #comment ~ *".to_owned(),
        ];
        for value in values {
            fs::write(&path, "export BEFORE=1").unwrap();
            append(&path, &[variable("VALUE", &value), variable("AFTER", "2")]).unwrap();
            let script = format!(". {}; printf '%s' \"$BEFORE|$VALUE|$AFTER\"", path.display());
            let shell = Command::new("sh").args(["-c", &script]).output().unwrap();
            assert_eq!(String::from_utf8(shell.stdout).unwrap(), format!("1|{value}|2"));
            assert!(!marker.exists(), "{value}");
        }
    }

    #[test]
    fn values_that_could_end_a_line_or_fill_the_file_are_refused() {
        let mut variables = Vec::new();
        let mut set = |name: &str, value: &str| set(&mut variables, name.to_owned(), value.to_owned());
        for value in ["a\nb", "a\rb", "a\0b", "\u{1b}[31m", "\u{85}"] {
            assert!(matches!(set("A", value), Err(AccessError::Other(_))), "{value:?}");
        }
        assert!(matches!(set("A", &"x".repeat(MAX_VALUE_BYTES + 1)), Err(AccessError::TooLarge)));
        for number in 0..MAX_VARIABLES {
            assert!(set(&format!("A{number}"), "1").is_ok());
        }
        assert!(matches!(set("B", "1"), Err(AccessError::TooLarge)));
        assert!(set("A0", "2").is_ok());
        assert_eq!(variables[0].1, "2");
        assert_eq!(variables.len(), MAX_VARIABLES);
    }

    #[test]
    fn only_a_regular_file_of_the_users_own_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("victim"), "theirs").unwrap();
        symlink(at("victim"), at("link")).unwrap();
        symlink(at("new"), at("dangling")).unwrap();
        fs::write(at("shared"), "").unwrap();
        fs::hard_link(at("shared"), at("second-name")).unwrap();
        fs::create_dir(at("folder")).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, at("fifo"), rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        for name in ["link", "dangling", "second-name", "folder", "fifo", "gone/env"] {
            assert!(append(&at(name), &[variable("A", "1")]).is_err(), "{name}");
        }
        assert!(append(Path::new("relative"), &[variable("A", "1")]).is_err());
        assert_eq!(fs::read_to_string(at("victim")).unwrap(), "theirs");
        assert!(!at("new").exists());
        assert_eq!(fs::read_to_string(at("shared")).unwrap(), "");
        fs::write(at("foreign"), "").unwrap();
        // Only root can give a file away, and only root would otherwise be let in.
        if std::os::unix::fs::chown(at("foreign"), Some(54321), None).is_ok() {
            assert!(append(&at("foreign"), &[variable("A", "1")]).is_err());
        }
    }

    #[test]
    fn a_missing_file_is_created_for_the_user_alone_and_none_grows_without_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("env");
        append(&path, &[variable("A", "1")]).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "export A='1'\n");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        append(&path, &[variable("A", "1")]).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "export A='1'\n", "once is enough");
        append(&path, &[variable("A", "2"), variable("A2", "1")]).unwrap();
        append(&path, &[variable("A", "1"), variable("A2", "1")]).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(
            text.lines().filter(|line| !line.is_empty()).collect::<Vec<_>>(),
            ["export A='1'", "export A='2'", "export A2='1'", "export A='1'"]
        );
        fs::write(&path, vec![b'#'; usize::try_from(MAX_FILE_BYTES).unwrap()]).unwrap();
        assert!(append(&path, &[variable("A", "1")]).is_err());
    }
}
