//! The tools: each finds the project, does one operation and says in words what came of it.
//!
//! A failure is a result with words, too, so that the model can do something about it. Texts come from files that anybody may
//! have written: what could end the frame around them, or hide, is made inert, and they are cut to a length.

use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};

use omc_host::config::Env;
use omc_host::operations::wiki::Contribution;
use omc_host::operations::{self, Project};
use omc_state::notepad::Section;
use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{Implementation, ServerCapabilities, ServerConfig};
use rmcp::{ServerHandler, tool, tool_handler, tool_router};

use crate::arguments::{
    AddDirective, AddNote, Contribute, GetStatus, ListActive, Nothing, PageName, Priority, PruneNotepad, QueryWiki,
    ReadMemory, ReadNotepad, ReadPage, ReadState, SharedKey, SharedNamespace, WriteMemory, WriteNote, WriteShared,
    WriteState,
};

/// Longest answer, in UTF-16 units: about as much as Claude Code takes from a tool without a complaint.
const MAX_ANSWER_UNITS: usize = 60_000;

/// What a tool says: an `Err` is shown to the model as a failed call.
type Answer = std::result::Result<String, String>;

/// The server.
#[derive(Debug, Clone)]
pub(crate) struct Tools {
    env: Env,
    tool_router: ToolRouter<Self>,
}

impl Tools {
    pub(crate) fn new() -> Self {
        Self { env: Env::from_process(), tool_router: Self::tool_router() }
    }

    /// Does one operation on the project of a folder. The project is found anew each time: a folder may have become a
    /// repository, or its `.omc` a link, since the server started.
    fn answer<T: Display>(
        &self,
        folder: Option<&str>,
        operation: impl FnOnce(&Project) -> operations::Result<T>,
    ) -> Answer {
        let run = || Project::find_within(&self.env, folder).and_then(|project| operation(&project));
        match catch_unwind(AssertUnwindSafe(run)) {
            Ok(Ok(done)) => Ok(for_a_model(&done.to_string())),
            Ok(Err(error)) => Err(for_a_model(&format!("{:#}", anyhow::Error::from(error)))),
            Err(_) => Err("this is a bug of omc-mcp; please report it with what you asked for".to_owned()),
        }
    }
}

/// A text that can say nothing but what it says, cut to a length.
fn for_a_model(text: &str) -> String {
    let text = omc_state::inert(text);
    let units = omc_state::units(&text);
    if units <= MAX_ANSWER_UNITS {
        return text;
    }
    let kept = omc_state::truncate_units(&text, MAX_ANSWER_UNITS);
    format!("{kept}\n[{} characters are left out; ask for less]", units - MAX_ANSWER_UNITS)
}

#[tool_router]
impl Tools {
    /// Read the state of a mode (ralph, autopilot, ultrawork, …) with all its members.
    #[tool(annotations(title = "Read a mode's state", read_only_hint = true, open_world_hint = false))]
    fn state_read(&self, Parameters(args): Parameters<ReadState>) -> Answer {
        self.answer(args.working_directory.as_deref(), |project| {
            project.read_state(&args.mode, args.session_id.as_deref())
        })
    }

    /// Change the state of a mode. Call it with active=false when the work of a mode is done: the mode ends, and your next stop
    /// is not refused because of it. Members that you do not name stay as they are.
    #[tool(annotations(
        title = "Change a mode's state",
        destructive_hint = false,
        idempotent_hint = true,
        open_world_hint = false
    ))]
    fn state_write(&self, Parameters(args): Parameters<WriteState>) -> Answer {
        let (folder, mode, session) = (args.working_directory.clone(), args.mode.clone(), args.session_id.clone());
        self.answer(folder.as_deref(), |project| project.write_state(&mode, session.as_deref(), &args.change()))
    }

    /// Remove the state of a mode: of one session, or of every session of the project unless you name one. Of a team its folder in
    /// state/team goes as well.
    #[tool(annotations(
        title = "Clear a mode's state",
        destructive_hint = true,
        idempotent_hint = true,
        open_world_hint = false
    ))]
    fn state_clear(&self, Parameters(args): Parameters<ReadState>) -> Answer {
        self.answer(args.working_directory.as_deref(), |project| {
            project.clear_state(&args.mode, args.session_id.as_deref())
        })
    }

    /// List the modes that are on, with their sessions, phases and iterations.
    #[tool(annotations(title = "List active modes", read_only_hint = true, open_world_hint = false))]
    fn state_list_active(&self, Parameters(args): Parameters<ListActive>) -> Answer {
        self.answer(args.working_directory.as_deref(), |project| {
            project.active_states(args.session_id.as_deref(), args.all)
        })
    }

    /// Say how one mode or all modes stand, on or off, with the beginning of their states.
    #[tool(annotations(title = "Status of modes", read_only_hint = true, open_world_hint = false))]
    fn state_get_status(&self, Parameters(args): Parameters<GetStatus>) -> Answer {
        self.answer(args.working_directory.as_deref(), |project| {
            project.state_status(args.mode.as_deref(), args.session_id.as_deref())
        })
    }

    /// Read the project's notepad: the priority context, the working memory, the manual notes, or all.
    #[tool(annotations(title = "Read the notepad", read_only_hint = true, open_world_hint = false))]
    fn notepad_read(&self, Parameters(args): Parameters<ReadNotepad>) -> Answer {
        self.answer(args.working_directory.as_deref(), |project| project.read_notes(args.section.section()))
    }

    /// Replace the priority context: what every later session is told at its start. Keep it below 500 characters.
    #[tool(annotations(
        title = "Write the priority context",
        destructive_hint = true,
        idempotent_hint = true,
        open_world_hint = false
    ))]
    fn notepad_write_priority(&self, Parameters(args): Parameters<WriteNote>) -> Answer {
        self.note(Section::Priority, &args)
    }

    /// Add an entry to the working memory, which forgets entries after 7 days.
    #[tool(annotations(title = "Add to the working memory", destructive_hint = false, open_world_hint = false))]
    fn notepad_write_working(&self, Parameters(args): Parameters<WriteNote>) -> Answer {
        self.note(Section::Working, &args)
    }

    /// Add an entry to the manual section, which forgets nothing.
    #[tool(annotations(title = "Add a lasting note", destructive_hint = false, open_world_hint = false))]
    fn notepad_write_manual(&self, Parameters(args): Parameters<WriteNote>) -> Answer {
        self.note(Section::Manual, &args)
    }

    /// Drop entries of the working memory that are older than so many days.
    #[tool(annotations(
        title = "Prune the working memory",
        destructive_hint = true,
        idempotent_hint = true,
        open_world_hint = false
    ))]
    fn notepad_prune(&self, Parameters(args): Parameters<PruneNotepad>) -> Answer {
        self.answer(args.working_directory.as_deref(), |project| project.prune_notes(args.days_old))
    }

    /// Say how much is in the notepad: bytes, entries, the oldest entry.
    #[tool(annotations(title = "Notepad statistics", read_only_hint = true, open_world_hint = false))]
    fn notepad_stats(&self, Parameters(args): Parameters<Nothing>) -> Answer {
        self.answer(args.working_directory.as_deref(), Project::note_stats)
    }

    /// Read what is known about the project: languages, build and test commands, conventions, structure, notes, directives.
    #[tool(annotations(title = "Read the project memory", read_only_hint = true, open_world_hint = false))]
    fn project_memory_read(&self, Parameters(args): Parameters<ReadMemory>) -> Answer {
        self.answer(args.working_directory.as_deref(), |project| project.read_memory(args.section.as_deref()))
    }

    /// Take members into the project memory, joined with what is known unless merge is false.
    #[tool(annotations(
        title = "Write the project memory",
        destructive_hint = true,
        idempotent_hint = true,
        open_world_hint = false
    ))]
    fn project_memory_write(&self, Parameters(args): Parameters<WriteMemory>) -> Answer {
        self.answer(args.working_directory.as_deref(), |project| project.write_memory(args.memory, args.merge))
    }

    /// Add a fact about the project that later sessions should know.
    #[tool(annotations(
        title = "Note a fact about the project",
        destructive_hint = false,
        idempotent_hint = true,
        open_world_hint = false
    ))]
    fn project_memory_add_note(&self, Parameters(args): Parameters<AddNote>) -> Answer {
        self.answer(args.working_directory.as_deref(), |project| project.add_memory_note(&args.category, &args.content))
    }

    /// Keep something that the user wants every session to obey. Use the user's own words.
    #[tool(annotations(
        title = "Keep a directive of the user",
        destructive_hint = false,
        idempotent_hint = true,
        open_world_hint = false
    ))]
    fn project_memory_add_directive(&self, Parameters(args): Parameters<AddDirective>) -> Answer {
        self.answer(args.working_directory.as_deref(), |project| {
            project.add_directive(&args.directive, args.context.as_deref(), args.priority == Priority::High)
        })
    }

    /// Store a value that other agents of the project can read.
    #[tool(annotations(
        title = "Share a value",
        destructive_hint = true,
        idempotent_hint = true,
        open_world_hint = false
    ))]
    fn shared_memory_write(&self, Parameters(args): Parameters<WriteShared>) -> Answer {
        self.answer(args.working_directory.as_deref(), |project| {
            project.write_shared(&args.namespace, &args.key, args.value, args.ttl)
        })
    }

    /// Read a value that an agent of the project stored.
    #[tool(annotations(title = "Read a shared value", read_only_hint = true, open_world_hint = false))]
    fn shared_memory_read(&self, Parameters(args): Parameters<SharedKey>) -> Answer {
        self.answer(args.working_directory.as_deref(), |project| project.read_shared(&args.namespace, &args.key))
    }

    /// List the keys of a namespace, or the namespaces.
    #[tool(annotations(title = "List shared values", read_only_hint = true, open_world_hint = false))]
    fn shared_memory_list(&self, Parameters(args): Parameters<SharedNamespace>) -> Answer {
        self.answer(args.working_directory.as_deref(), |project| project.list_shared(args.namespace.as_deref()))
    }

    /// Forget a shared value.
    #[tool(annotations(
        title = "Delete a shared value",
        destructive_hint = true,
        idempotent_hint = true,
        open_world_hint = false
    ))]
    fn shared_memory_delete(&self, Parameters(args): Parameters<SharedKey>) -> Answer {
        self.answer(args.working_directory.as_deref(), |project| project.delete_shared(&args.namespace, &args.key))
    }

    /// Remove shared values whose time is over.
    #[tool(annotations(
        title = "Clean up shared values",
        destructive_hint = true,
        idempotent_hint = true,
        open_world_hint = false
    ))]
    fn shared_memory_cleanup(&self, Parameters(args): Parameters<SharedNamespace>) -> Answer {
        self.answer(args.working_directory.as_deref(), |project| project.clean_up_shared(args.namespace.as_deref()))
    }

    /// Keep knowledge in the wiki: on a new page, or below what the page of this title says already.
    #[tool(annotations(title = "Keep knowledge in the wiki", destructive_hint = false, open_world_hint = false))]
    fn wiki_ingest(&self, Parameters(args): Parameters<Contribute>) -> Answer {
        self.contribute(args, false)
    }

    /// Add a new page to the wiki. Fails if there is one of this title; wiki_ingest extends that.
    #[tool(annotations(title = "Add a wiki page", destructive_hint = false, open_world_hint = false))]
    fn wiki_add(&self, Parameters(args): Parameters<Contribute>) -> Answer {
        self.contribute(args, true)
    }

    /// Find wiki pages by words. Read the best ones with wiki_read.
    #[tool(annotations(title = "Search the wiki", read_only_hint = true, open_world_hint = false))]
    fn wiki_query(&self, Parameters(args): Parameters<QueryWiki>) -> Answer {
        self.answer(args.working_directory.as_deref(), |project| {
            project.query_wiki(&args.query, &args.tags, args.category.as_deref(), args.limit)
        })
    }

    /// List all wiki pages with their categories.
    #[tool(annotations(title = "List wiki pages", read_only_hint = true, open_world_hint = false))]
    fn wiki_list(&self, Parameters(args): Parameters<Nothing>) -> Answer {
        self.answer(args.working_directory.as_deref(), |project| Ok(project.list_wiki()))
    }

    /// Read a wiki page with its front matter; `index` and `log` are the wiki's own.
    #[tool(annotations(title = "Read a wiki page", read_only_hint = true, open_world_hint = false))]
    fn wiki_read(&self, Parameters(args): Parameters<ReadPage>) -> Answer {
        self.answer(args.working_directory.as_deref(), |project| project.read_wiki(&args.page))
    }

    /// Delete a wiki page. The index, the log and the page about the environment stay.
    #[tool(annotations(
        title = "Delete a wiki page",
        destructive_hint = true,
        idempotent_hint = true,
        open_world_hint = false
    ))]
    fn wiki_delete(&self, Parameters(args): Parameters<PageName>) -> Answer {
        self.answer(args.working_directory.as_deref(), |project| project.delete_wiki(&args.page))
    }

    /// Look for trouble in the wiki: broken links, orphans, old, long and contradicting pages.
    #[tool(annotations(title = "Check the wiki", read_only_hint = true, open_world_hint = false))]
    fn wiki_lint(&self, Parameters(args): Parameters<Nothing>) -> Answer {
        self.answer(args.working_directory.as_deref(), |project| Ok(project.lint_wiki()))
    }

    /// Make the wiki's index anew, and its page about the project's environment.
    #[tool(annotations(
        title = "Refresh the wiki's index",
        destructive_hint = false,
        idempotent_hint = true,
        open_world_hint = false
    ))]
    fn wiki_refresh(&self, Parameters(args): Parameters<Nothing>) -> Answer {
        self.answer(args.working_directory.as_deref(), Project::refresh_wiki)
    }
}

impl Tools {
    fn note(&self, section: Section, args: &WriteNote) -> Answer {
        self.answer(args.working_directory.as_deref(), |project| project.note(section, &args.content))
    }

    fn contribute(&self, args: Contribute, only_new: bool) -> Answer {
        let contribution = Contribution {
            title: args.title,
            content: args.content,
            tags: args.tags,
            sources: args.sources,
            category: args.category,
            confidence: args.confidence,
        };
        self.answer(args.working_directory.as_deref(), |project| project.contribute(&contribution, only_new))
    }
}

#[tool_handler(router = self.tool_router)]
impl ServerHandler for Tools {
    fn get_info(&self) -> ServerConfig {
        let mut config = ServerConfig::new(ServerCapabilities::builder().enable_tools().build());
        config.server_info = Implementation::new("omc-host", env!("CARGO_PKG_VERSION"));
        config.with_instructions(
            "State of this project's modes (state_*), notes (notepad_*), what is known about it (project_memory_*), what its \
             agents share (shared_memory_*) and its wiki (wiki_*). When the work of a mode is done, end it with \
             state_write and active=false.",
        )
    }
}
