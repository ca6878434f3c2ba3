//! How the agents are set up: our entries in all their files, those of the original, and what would keep them from running.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use super::{Finding, Mend, Patient, version};
use crate::hooks_file::check::{self, Context};
use crate::hooks_file::ours::{self, Entry, Program};
use crate::hooks_file::{self, Registered, Trust, Trusted};
use crate::protocol::contract;
use crate::protocol::event::Agent;
use crate::setup::{AGENTS, Places, Scope, entries, files, hooks, servers, skills, title};

/// The first version of Claude Code that starts a hook without a shell; an older one starts the program without its arguments.
const OLDEST_CLAUDE: [u32; 3] = [2, 1, 139];

/// Timeouts from here on, in seconds, were most likely meant in milliseconds.
const SUSPICIOUS_TIMEOUT_S: u64 = 900;

pub(super) fn claude(patient: &Patient<'_>) -> Vec<Finding> {
    let mut findings = agent(Agent::Claude, patient);
    findings.extend(version::of("claude", Some(OLDEST_CLAUDE), patient));
    findings.extend(plugins(patient));
    findings
}

pub(super) fn codex(patient: &Patient<'_>) -> Vec<Finding> {
    let mut findings = agent(Agent::Codex, patient);
    findings.extend(version::of("codex", None, patient));
    if let Some(config) = read(patient.paths.codex_dir.as_deref().map(|dir| dir.join("config.toml")).as_deref()) {
        match hooks_file::toml(&config) {
            Err(problem) => findings.push(Finding::problem(
                format!("Codex's `config.toml` cannot be read: {problem}"),
                "mend it; Codex does not start with it",
            )),
            Ok(config) => {
                let is_off = |name| config.get("features").and_then(|all| all.get(name)) == Some(&Value::Bool(false));
                if is_off("hooks") || is_off("codex_hooks") {
                    findings.push(Finding::problem(
                        "`features.hooks` is false in Codex's `config.toml`, so that no hook runs",
                        "take it out, if you want guests to be called",
                    ));
                }
            }
        }
    }
    findings
}

/// What an agent's files of both scopes say.
fn agent(agent: Agent, patient: &Patient<'_>) -> Vec<Finding> {
    let name = title(agent);
    let Some(user) = Places::of_user(agent, patient.paths) else {
        return vec![Finding::note("there is no home folder")];
    };
    let project = patient.project.and_then(|root| Places::of_project(agent, root));
    if !user.agent_is_there() && !project.as_ref().is_some_and(|places| places.hooks.exists()) {
        return vec![Finding::note(format!("{name} has not been used here (there is no `{}`)", user.root.display()))];
    }
    let mut findings = Vec::new();
    let mut set_up = Vec::new();
    let mut names_another = false;
    for places in std::iter::once(&user).chain(&project) {
        let Some(text) = read(Some(&places.hooks)) else { continue };
        match hooks_file::handlers(&places.hooks, &text, agent) {
            Err(problem) => findings.push(Finding::problem(
                format!("{name} cannot read `{}`: {problem}", places.hooks.display()),
                format!("mend it; see `omc-host check {}`", places.hooks.display()),
            )),
            Ok(handlers) => {
                findings.extend(of_the_original(places, &handlers));
                let ours: Vec<_> =
                    handlers.into_iter().filter(|found| ours::program_of(&found.handler).is_some()).collect();
                if !ours.is_empty() {
                    let named = named(&ours, patient);
                    let patient = &Patient { program: &named, ..*patient };
                    names_another |= ours.iter().any(|found| is_another(found, patient));
                    findings.extend(entries_of(places, &text, &ours, patient));
                    set_up.push((places.clone(), named));
                }
            }
        }
    }
    match &*set_up {
        [] if plugin_is_on(agent, patient) => {}
        [] => findings.push(Finding::problem(
            format!("{name} does not call omc-host"),
            format!("omc-host install --agent {}", agent.name()),
        )),
        [(one, program)] => findings.extend(own_files(one, &Patient { program, ..*patient })),
        [_, ..] => findings.push(Finding::problem(
            format!(
                "{name} has entries of omc-host for this user and for this project: every event may be handled twice"
            ),
            format!("omc-host uninstall --agent {} --scope project", agent.name()),
        )),
    }
    if !set_up.is_empty() && plugin_is_on(agent, patient) {
        findings.push(plugin_beside_entries(agent));
    }
    if names_another {
        // Which of the two is to be called is for the person to say.
        for finding in &mut findings {
            finding.mend = None;
        }
    }
    if findings.is_empty() {
        let files: Vec<_> = set_up.iter().map(|(places, _)| places.hooks.display().to_string()).collect();
        findings.push(Finding::ok(format!("{name} is set up (`{}`)", files.join("`, `"))));
    }
    findings
}

/// The path by which handlers of ours name this program; the one by which it was started, if none does.
///
/// It may have several names, and the one that was chosen for the hooks is as good as any: Codex trusts it.
fn named(ours: &[Registered], patient: &Patient<'_>) -> String {
    let own = Path::new(patient.program).canonicalize().ok();
    let mut programs = ours.iter().filter_map(|found| ours::program_of(&found.handler));
    let is_own = |program: &String| Path::new(program).is_absolute() && Path::new(program).canonicalize().ok() == own;
    programs.find(is_own).unwrap_or_else(|| patient.program.to_owned())
}

/// Whether a handler of ours names another omc-host than this one, and one that is there.
fn is_another(found: &Registered, patient: &Patient<'_>) -> bool {
    let own = Path::new(patient.program).canonicalize().ok();
    let other = ours::program_of(&found.handler).and_then(|program| Path::new(&program).canonicalize().ok());
    other.is_some_and(|other| Some(other) != own)
}

/// What is wrong with our entries in a file.
fn entries_of(places: &Places, text: &str, found: &[Registered], patient: &Patient<'_>) -> Vec<Finding> {
    let (agent, file) = (places.agent, places.hooks.display());
    let install = || Mend::Install(places.clone(), patient.program.to_owned());
    let again = || fix(places);
    let mut findings = Vec::new();
    let programs: BTreeSet<String> = found.iter().filter_map(|found| ours::program_of(&found.handler)).collect();
    let own = Path::new(patient.program).canonicalize().ok();
    for program in &programs {
        match Path::new(program).canonicalize() {
            // One that is looked for by the agent's PATH.
            _ if !Path::new(program).is_absolute() => {}
            Err(_) => findings.push(
                Finding::problem(
                    format!("hooks in `{file}` name `{program}`, which is not there, and do nothing"),
                    again(),
                )
                .with(install()),
            ),
            Ok(found) if Some(&found) != own.as_ref() => findings.push(Finding::problem(
                format!("hooks in `{file}` name another omc-host than this one: `{program}`"),
                format!("{}, with the one that is to be called", again()),
            )),
            Ok(_) => {}
        }
    }
    let (wanted, _) = entries(agent, Program::At(patient.program), patient.paths);
    findings.extend(
        events(&wanted, found)
            .into_iter()
            .map(|text| Finding::problem(format!("`{file}`: {text}"), again()).with(install())),
    );
    findings.extend(
        timeouts(agent, found)
            .into_iter()
            .map(|text| Finding::problem(format!("`{file}`: {text}"), again()).with(install())),
    );
    let is_current = hooks::register(text, agent, &wanted).is_ok_and(|new| new == text);
    if findings.is_empty() && !is_current {
        let text = format!("the entries in `{file}` are not those that this version writes");
        findings.push(Finding::problem(text, again()).with(install()));
    }
    findings.extend(checked(places, text, patient));
    findings
}

/// Which events are missing, too many or there twice.
fn events(wanted: &[Entry], found: &[Registered]) -> Vec<String> {
    let there: BTreeSet<&str> = found.iter().map(|found| &*found.event).collect();
    let missing: Vec<_> = wanted.iter().map(|entry| entry.event).filter(|event| !there.contains(event)).collect();
    let surplus: Vec<_> =
        there.iter().copied().filter(|event| wanted.iter().all(|entry| entry.event != *event)).collect();
    let twice: Vec<_> =
        there.iter().copied().filter(|event| found.iter().filter(|found| found.event == *event).count() > 1).collect();
    let say = |events: Vec<&str>, what: &str| (!events.is_empty()).then(|| format!("{}: {what}", events.join(", ")));
    [
        say(missing, "guests ask for these events and no hook sends them"),
        say(surplus, "no guest asks for these events any more"),
        say(twice, "these events are sent more than once"),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Which timeouts are shorter than what the host takes for itself, or longer than anybody means.
fn timeouts(agent: Agent, found: &[Registered]) -> Vec<String> {
    let wrong = |found: &Registered| {
        let seconds = found.handler.get("timeout")?.as_u64()?;
        let deadline = contract::of(agent, &found.event).deadline();
        let (event, least) = (&found.event, deadline.as_secs_f64());
        if seconds >= SUSPICIOUS_TIMEOUT_S {
            Some(format!("the timeout of {event} is {seconds} seconds; were milliseconds meant?"))
        } else if u128::from(seconds) * 1_000 <= deadline.as_millis() {
            Some(format!("the timeout of {event} is {seconds} s, and the host takes up to {least} s"))
        } else {
            None
        }
    };
    found.iter().filter_map(wrong).collect()
}

/// What the agent makes of the whole file: switches, and Codex's trust computed anew.
fn checked(places: &Places, text: &str, patient: &Patient<'_>) -> Vec<Finding> {
    let source = places.hooks.canonicalize().unwrap_or_else(|_| places.hooks.clone());
    let source = source.to_string_lossy();
    let trusted = if places.agent == Agent::Codex { trusted(patient) } else { Trusted::default() };
    let context = Context { path: &places.hooks, source: &source, agent: Some(places.agent), trusted: Some(&trusted) };
    let report = check::check(text, &context);
    let file = places.hooks.display();
    let mut findings = Vec::new();
    for problem in report.problems() {
        findings.push(Finding::problem(format!("`{file}`: {problem}"), format!("omc-host check {file}")));
    }
    if places.agent == Agent::Codex {
        let is_ours = |what: &str| what.contains("omc-host");
        let ours: Vec<_> = report.handlers.iter().filter(|handler| is_ours(&handler.what)).collect();
        let inert: Vec<_> = ours
            .iter()
            .filter(|handler| handler.trust.as_ref().is_some_and(|trust| *trust != Trust::Trusted))
            .collect();
        if !inert.is_empty() {
            let events: Vec<_> = inert.iter().map(|handler| handler.event.as_str()).collect();
            findings.push(Finding::problem(
                format!(
                    "Codex does not trust {} of {} hooks and skips them: {}",
                    inert.len(),
                    ours.len(),
                    events.join(", ")
                ),
                "start `codex`, look at `/hooks`, and trust them if they are what you expect",
            ));
        }
    }
    findings
}

/// What Codex trusts.
fn trusted(patient: &Patient<'_>) -> Trusted {
    let path = patient.paths.codex_dir.as_deref().map(|dir| dir.join("config.toml"));
    let text = read(path.as_deref());
    text.zip(path).and_then(|(text, path)| hooks_file::trusted(&path, &text)).unwrap_or_default()
}

/// What is missing or old beside the hooks.
fn own_files(places: &Places, patient: &Patient<'_>) -> Option<Finding> {
    let is_current =
        |(path, text): &(std::path::PathBuf, String)| read(Some(&places.skills.join(path))).as_deref() == Some(text);
    let stale = skills::folder(places, patient.program).iter().filter(|file| !is_current(file)).count();
    let server_is_there = places.servers.as_ref().is_none_or(|file| {
        let text = read(Some(file)).unwrap_or_default();
        servers::register(&text, patient.program).is_ok_and(|new| new == text)
    });
    if stale == 0 && server_is_there {
        return None;
    }
    let what = if server_is_there { "skills or the server" } else { "the server of tools" };
    let text = format!("{what} of {} are missing or of another version", title(places.agent));
    let mend = Mend::Install(places.clone(), patient.program.to_owned());
    Some(Finding::problem(text, fix(places)).with(mend))
}

/// What handles the same events beside entries of ours: the original, and this project's plugin.
pub(super) fn rivals(patient: &Patient<'_>) -> Vec<Finding> {
    let mut findings = plugins(patient);
    for agent in AGENTS {
        let user = Places::of_user(agent, patient.paths);
        let project = patient.project.and_then(|root| Places::of_project(agent, root));
        for places in user.iter().chain(&project) {
            let handlers =
                read(Some(&places.hooks)).and_then(|text| hooks_file::handlers(&places.hooks, &text, agent).ok());
            findings.extend(handlers.and_then(|handlers| of_the_original(places, &handlers)));
        }
        findings.extend(plugin_is_on(agent, patient).then(|| plugin_beside_entries(agent)));
    }
    findings
}

/// The plugin and entries of ours are two ways to one thing.
fn plugin_beside_entries(agent: Agent) -> Finding {
    Finding::problem(
        format!("{} has omc-host as a plugin and in its settings: every event is handled twice", title(agent)),
        format!("omc-host uninstall --agent {}, or remove the plugin", agent.name()),
    )
}

/// Hooks of the original in a file.
fn of_the_original(places: &Places, handlers: &[Registered]) -> Option<Finding> {
    let count = handlers.iter().filter(|found| ours::is_of_the_original(&found.handler)).count();
    let text =
        format!("`{}` has hooks of oh-my-claudecode ({count}): both at once is not supported", places.hooks.display());
    (count > 0).then(|| Finding::problem(text, "take them out, or run `omc-host uninstall`"))
}

/// Plugins of Claude Code that do the same, or whose folder is gone.
fn plugins(patient: &Patient<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let Some(dir) = &patient.paths.claude_dir else { return findings };
    for name in enabled_plugins(patient).iter().filter(|name| name.starts_with("oh-my-claudecode@")) {
        findings.push(Finding::problem(
            format!("the plugin `{name}` is on: it and omc-host handle the same events, and both at once lose updates"),
            format!("claude plugin disable {name}, or `omc-host uninstall`"),
        ));
    }
    let installed = read(Some(&dir.join("plugins/installed_plugins.json"))).and_then(|text| parse(&text));
    let plugins = installed.as_ref().and_then(|all| all.get("plugins")?.as_object());
    for (name, installations) in plugins.into_iter().flatten() {
        let is_ours = ["omc@", "oh-my-claudecode@"].iter().any(|prefix| name.starts_with(prefix));
        let paths = installations.as_array().into_iter().flatten().filter_map(|one| one.get("installPath")?.as_str());
        for path in paths.filter(|path| is_ours && !Path::new(path).is_dir()) {
            findings.push(Finding::problem(
                format!("the plugin `{name}` is installed in `{path}`, which is not there: its hooks do nothing"),
                format!("claude plugin uninstall {name}, and install it again if you want it"),
            ));
        }
    }
    findings
}

/// Whether this project's plugin is switched on in an agent.
fn plugin_is_on(agent: Agent, patient: &Patient<'_>) -> bool {
    if agent == Agent::Claude {
        return enabled_plugins(patient).iter().any(|name| name == "omc@omc-host");
    }
    let config = read(patient.paths.codex_dir.as_deref().map(|dir| dir.join("config.toml")).as_deref());
    let config = config.and_then(|text| hooks_file::toml(&text).ok());
    let plugins = config.as_ref().and_then(|config| config.get("plugins")?.as_object());
    plugins
        .into_iter()
        .flatten()
        .any(|(name, about)| name.starts_with("omc@") && about.get("enabled").and_then(Value::as_bool).unwrap_or(true))
}

/// Plugins that any of Claude Code's settings switches on.
fn enabled_plugins(patient: &Patient<'_>) -> BTreeSet<String> {
    let user = patient.paths.claude_dir.iter().map(|dir| dir.join("settings.json"));
    let project = patient
        .project
        .iter()
        .flat_map(|root| ["settings.json", "settings.local.json"].map(|name| root.join(".claude").join(name)));
    let settings = user.chain(project).filter_map(|path| parse(&read(Some(&path))?));
    let enabled = settings.flat_map(|settings| {
        let plugins = settings.get("enabledPlugins").and_then(Value::as_object).cloned().unwrap_or_default();
        plugins.into_iter().filter(|(_, value)| *value == Value::Bool(true)).map(|(name, _)| name)
    });
    enabled.collect()
}

/// The command that sets these places up again.
fn fix(places: &Places) -> String {
    let scope = if places.scope == Scope::Project { " --scope project" } else { "" };
    format!("omc-host install --agent {}{scope}", places.agent.name())
}

/// The text of a file that can be read.
fn read(path: Option<&Path>) -> Option<String> {
    let bytes = files::read(path?).ok()??;
    files::text(path?, &bytes).ok().map(|(_, text)| text)
}

fn parse(text: &str) -> Option<Value> {
    jsonc_parser::parse_to_serde_value(text, &crate::config::guest_settings::jsonc()).ok()
}
