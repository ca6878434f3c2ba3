//! The file formats of a project's `.omc` directory, read and written in one place.
//!
//! Whoever touches `.omc/state` (a guest, the command line, the MCP server) does it through [`Store`]. The crate knows files
//! and their meaning, nothing of events, decisions or wasm; below the root it uses plain `std::fs`, so that it works on a
//! preopened `/omc` as on a folder of the machine. The caller passes the time in as a [`Timestamp`] and the lock as a
//! [`Locker`]; nothing here reads a clock to decide.
//!
//! What every file of this crate has in common:
//!
//! * The content is untrusted. A file over [`MAX_FILE_BYTES`], a folder, a pipe or a link in its place is an [`Error`] that
//!   readers may treat like an absent file. Members of a wrong type are repaired or ignored, never joined as text.
//! * Members that this version does not know survive a rewrite.
//! * A write is a new file that takes the old one's place: a reader sees the one or the other, whenever the writer dies.
//! * JSON that does not parse is moved to `NAME.corrupt-TIME` before its place is taken, see [`Store::write_mode`].
//! * What belongs to a session names it: a missing, foreign or `unknown` id never counts, see [`SessionId`].
//!
//! One module is one family of files. Names and fields are those that oh-my-claudecode writes.

#![warn(missing_docs)]

mod advice;
mod breaker;
mod cancel;
mod checkpoint;
mod clean_up;
pub mod context;
mod control;
mod delegation;
mod deliverables;
mod error;
mod fields;
mod file;
mod folder;
mod goals;
mod invocation;
mod layout;
mod lock;
mod missions;
mod mode;
pub mod notepad;
mod pending;
pub mod plan_notepads;
mod prd;
pub mod project_memory;
pub mod provider;
pub mod remember;
#[cfg(test)]
mod round_trips;
mod seen_goal;
mod session;
mod session_record;
pub mod shared_memory;
mod shown_rules;
mod simplifier;
mod skill;
mod skill_sessions;
pub mod subagents;
mod team;
#[cfg(test)]
mod testing;
mod text;
mod time;
mod todos;
mod tool_error;
mod tool_stats;
mod trace;
pub mod wiki;

use std::path::{Path, PathBuf};

pub use breaker::Breaker;
pub use cancel::CancelSignal;
pub use checkpoint::{Checkpoint, NewCheckpoint};
pub use clean_up::CleanedUp;
pub use control::{OwnedState, mode_path};
pub use delegation::ToolUse;
pub use deliverables::DeliverableIssues;
pub use error::{Error, chain};
pub use fields::Fields;
pub use file::MAX_FILE_BYTES;
pub use goals::Goals;
pub use invocation::Invocation;
pub use lock::{Area, LOCK_WAIT, Locker};
pub use mode::{AWAITING_MS, Mode, ModeState, NewMode, Place, STALE_MS, bare_skill_name, own_skill_name};
pub use pending::Pending;
pub use prd::{Critic, MAX_VERIFICATION_ATTEMPTS, Prd, Scope, Story, Verification};
pub use session::SessionId;
pub use session_record::SessionFacts;
pub use skill::{ActiveSkill, SkillLedger};
pub use team::Team;
pub use text::{fingerprint, inert, one_line, truncate_units, units};
pub use time::{MAX_CLOCK_SKEW_MS, ParseTimestampError, Timestamp};
pub use todos::Todos;
pub use tool_error::{ToolError, ToolFailure};

/// The `.omc` directory of one project.
///
/// Cheap to make: nothing is read, created or checked before the first operation. That `root` itself is no link and belongs
/// to the user is for its opener to see to (the host does it when it opens the directory for its guests).
#[derive(Debug, Clone)]
pub struct Store {
    root: PathBuf,
}

impl Store {
    /// A store over the `.omc` directory at `root`, which need not exist yet.
    pub fn new(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }
}

/// Path, below the root, of a file that all sessions of the project share.
fn shared_path(file: &str) -> PathBuf {
    Path::new("state").join(file)
}

/// Path, below the root, of a file of one session.
fn session_path(session: &SessionId, file: &str) -> PathBuf {
    Path::new("state").join("sessions").join(session.as_str()).join(file)
}
