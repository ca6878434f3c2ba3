//! The arguments of the tools, with the names that the original gives them. Their comments are what the model reads.
//!
//! An argument that no tool has is refused: a misspelt `session_id` must not become "every session".

use omc_host::operations::state::Change;
use omc_state::notepad::Section;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

/// Declares the arguments of one tool: each may name a folder of the project besides.
macro_rules! arguments {
    ($($(#[$attribute:meta])* $name:ident { $($(#[$member_attribute:meta])* $member:ident: $type:ty,)* })*) => {
        $(
            $(#[$attribute])*
            #[derive(Debug, Deserialize, JsonSchema)]
            #[serde(deny_unknown_fields)]
            pub(crate) struct $name {
                $($(#[$member_attribute])* pub(crate) $member: $type,)*
                /// A folder inside the project; the one that the server runs in unless given
                #[serde(default, rename = "workingDirectory")]
                pub(crate) working_directory: Option<String>,
            }
        )*
    };
}

arguments! {
    /// Nothing but the project.
    Nothing {}
    ReadState {
        /// The mode, such as ralph or autopilot
        mode: String,
        /// Only of this session; of all unless given
        #[serde(default)]
        session_id: Option<String>,
    }
    WriteState {
        /// The mode, such as ralph or autopilot
        mode: String,
        /// false ends the mode, so that you may stop; true starts it
        #[serde(default)]
        active: Option<bool>,
        /// How often it went round
        #[serde(default)]
        iteration: Option<u64>,
        /// How often it may
        #[serde(default)]
        max_iterations: Option<u64>,
        /// The phase it is in, 200 characters at most
        #[serde(default)]
        current_phase: Option<String>,
        /// What is being done, 2000 characters at most
        #[serde(default)]
        task_description: Option<String>,
        /// The file with the plan, 500 characters at most
        #[serde(default)]
        plan_path: Option<String>,
        /// When it started (ISO 8601)
        #[serde(default)]
        started_at: Option<String>,
        /// When it was done (ISO 8601)
        #[serde(default)]
        completed_at: Option<String>,
        /// What went wrong, 2000 characters at most
        #[serde(default)]
        error: Option<String>,
        /// Any other members; those above win. 100 at most, nested 10 deep at most
        #[serde(default)]
        state: Option<Map<String, Value>>,
        /// Drop the members that are not named here; they stay unless this is true
        #[serde(default)]
        replace: bool,
        /// Whose state it is; the only session at work in the mode unless given
        #[serde(default)]
        session_id: Option<String>,
    }
    ListActive {
        /// Only of this session
        #[serde(default)]
        session_id: Option<String>,
        /// Of all sessions, even if this one is known
        #[serde(default)]
        all: bool,
    }
    GetStatus {
        /// Only this mode
        #[serde(default)]
        mode: Option<String>,
        /// Only of this session
        #[serde(default)]
        session_id: Option<String>,
    }
    ReadNotepad {
        /// The section; all of them unless given
        #[serde(default)]
        section: NotepadPart,
    }
    WriteNote {
        /// The text: 2000 characters at most for the priority context, 4000 for an entry
        content: String,
    }
    PruneNotepad {
        /// The age in days from which entries go, 1 to 365
        #[serde(default = "seven", rename = "daysOld")]
        days_old: i64,
    }
    ReadMemory {
        /// all, techStack, build, conventions, structure, notes or directives
        #[serde(default)]
        section: Option<String>,
    }
    WriteMemory {
        /// The members to take in; with `merge`, null removes one
        memory: Map<String, Value>,
        /// Join them with what is known (true, unless given), or put them in its place
        #[serde(default = "yes")]
        merge: bool,
    }
    AddNote {
        /// A word for what it is about, such as build, test, deploy or env, 50 characters at most
        category: String,
        /// The fact, 1000 characters at most
        content: String,
    }
    AddDirective {
        /// What every session has to obey, 400 characters at most
        directive: String,
        /// Why, or where, 500 characters at most
        #[serde(default)]
        context: Option<String>,
        /// high for a must
        #[serde(default)]
        priority: Priority,
    }
    WriteShared {
        /// The key: letters, digits, `.`, `_` and `-`, 128 at most
        key: String,
        /// Any JSON
        value: Value,
        /// The namespace, such as the name of the team or of the pipeline
        namespace: String,
        /// For how many seconds, a week at most; for ever unless given
        #[serde(default)]
        ttl: Option<u64>,
    }
    SharedKey {
        /// The key
        key: String,
        /// The namespace
        namespace: String,
    }
    SharedNamespace {
        /// The namespace; all of them unless given
        #[serde(default)]
        namespace: Option<String>,
    }
    Contribute {
        /// The page's title, 200 characters at most; its file name is made of it
        title: String,
        /// Markdown, 50000 characters at most; `[[Title]]` links to another page
        content: String,
        /// Words to find it by, 20 at most
        #[serde(default)]
        tags: Vec<String>,
        /// Where it comes from, 10 at most
        #[serde(default)]
        sources: Vec<String>,
        /// architecture, decision, pattern, debugging, environment, session-log, reference or convention
        #[serde(default)]
        category: Option<String>,
        /// high, medium or low
        #[serde(default)]
        confidence: Option<String>,
    }
    QueryWiki {
        /// Words to look for
        query: String,
        /// Tags that make a page better
        #[serde(default)]
        tags: Vec<String>,
        /// Only pages of this category
        #[serde(default)]
        category: Option<String>,
        /// Most pages that come back, 1 to 50; 20 unless given
        #[serde(default)]
        limit: Option<usize>,
    }
    ReadPage {
        /// The page's file name, with or without .md, or its title
        page: String,
    }
    PageName {
        /// The page's file name, with or without .md
        page: String,
    }
}

fn seven() -> i64 {
    omc_state::notepad::WORKING_DAYS
}

fn yes() -> bool {
    true
}

/// A section of the notepad, or all.
#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum NotepadPart {
    #[default]
    All,
    Priority,
    Working,
    Manual,
}

impl NotepadPart {
    pub(crate) fn section(self) -> Option<Section> {
        match self {
            Self::All => None,
            Self::Priority => Some(Section::Priority),
            Self::Working => Some(Section::Working),
            Self::Manual => Some(Section::Manual),
        }
    }
}

/// How much a directive binds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Priority {
    High,
    #[default]
    Normal,
}

impl WriteState {
    /// What to change.
    pub(crate) fn change(self) -> Change {
        Change {
            active: self.active,
            iteration: self.iteration,
            max_iterations: self.max_iterations,
            current_phase: self.current_phase,
            task_description: self.task_description,
            plan_path: self.plan_path,
            started_at: self.started_at,
            completed_at: self.completed_at,
            error: self.error,
            state: self.state.unwrap_or_default(),
            replace: self.replace,
        }
    }
}
