"""The frozen guest in Python: it uses every function of `omc:hook` 0.1.0 and says what it got. See ../../README.md."""

from componentize_py_types import Err
from wit_world import exports
from wit_world.imports import (
    environment,
    git,
    log,
    project_files,
    session_environment,
    settings,
    state_lock,
    transcript,
    types,
)

ERRORS = {
    types.AccessError_Denied: "denied",
    types.AccessError_NotFound: "not-found",
    types.AccessError_TooLarge: "too-large",
    types.AccessError_Other: "other",
}
REASONED = {"ask": types.Decision_Ask, "block": types.Decision_Block, "halt": types.Decision_Halt}


def shown(value):
    if value is None:
        return "-"
    return str(value).lower() if isinstance(value, bool) else str(value)


def name(case):
    """The name of an enum's or variant's case, as WIT writes it."""
    return ERRORS.get(type(case)) or case.name.lower().replace("_", "-")


def asked(call):
    """What a call gave, or the name of its error."""
    try:
        return shown(call())
    except Err as error:
        return f"error {name(error.value)}"


def paths(event):
    return " ".join(f"{name(found.operation)} {found.path}" for found in event.tool_paths())


def event_facts(event):
    return [
        f"kind: {event.kind()}",
        f"agent: {event.agent()}",
        f"session-id: {shown(event.session_id())}",
        f"subagent-id: {shown(event.subagent_id())}",
        f"cwd: {shown(event.cwd() is not None)}",
        f"project-root: {shown(event.project_root() is not None)}",
        f"in-work-tree: {shown(event.in_work_tree())}",
        f"prompt: {shown(event.prompt())}",
        f"tool-name: {shown(event.tool_name())}",
        f"field: {shown(event.field('/number'))}",
        f"text: {shown(event.text('/number'))}",
        f"permission-mode: {shown(event.permission_mode())}",
        f"source: {shown(event.source())}",
        f"tool-kind: {shown(event.tool_kind())}",
        f"tool-paths: {asked(lambda: paths(event))}",
        f"tool-command: {shown(event.tool_command())}",
        f"tool-result: {shown(event.tool_result())}",
        f"tool-failed: {shown(event.tool_failed())}",
        f"tool-interrupted: {shown(event.tool_interrupted())}",
    ]


def locked():
    # Twice, because a guest holds one at a time.
    for _ in range(2):
        with state_lock.acquire("guests/compat-python", 50) as lock:
            lock.release()
    return "held"


def listed():
    entries = project_files.list("project", "", 9)
    return " ".join(
        f"{name(entry.kind)} {entry.name} {entry.size} {shown(entry.modified_ms > 0)}" for entry in entries
    )


def found():
    found = project_files.find("project", "", 9)
    return f"{' '.join(found.paths)} {shown(found.complete)}"


def changed():
    changes = git.changed_paths(9)
    return f"{' '.join(f'{name(change.kind)} {change.path}' for change in changes.paths)} {shown(changes.complete)}"


def head():
    id = git.head()
    return None if id is None else len(id)


def capability_facts(effects):
    return [
        f"settings: {shown(settings.get('no.such.key'))}",
        f"state-lock: {asked(locked)}",
        f"transcript: {asked(lambda: transcript.tail(64).strip())}",
        f"environment: {asked(lambda: environment.get('CI'))}",
        f"read: {asked(lambda: project_files.read('project', 'notes.md', 100).strip())}",
        f"read-start: {asked(lambda: project_files.read_start('project', 'notes.md', 2))}",
        f"list: {asked(listed)}",
        f"find: {asked(found)}",
        f"branch: {asked(git.branch)}",
        f"head: {asked(head)}",
        f"changed-paths: {asked(changed)}",
        f"added-lines: {asked(lambda: ' '.join(map(str, git.added_lines('notes.md', 9))))}",
        f"session-environment: {asked(lambda: session_environment.set('COMPAT', '1') or 'set')}",
        f"add-message: {asked(lambda: effects.add_message('a message') or 'added')}",
        "update-input: " + asked(lambda: effects.update_input('{"command":"true"}') or "updated"),
    ]


class Handler(exports.Handler):
    def handle(self, event: types.Event, effects: types.Effects) -> types.Decision:
        wanted = event.text("/compat")
        if wanted == "fail":
            raise Err("on purpose")
        log.write(log.Level.INFO, f"asked for {shown(wanted)}")
        facts = event_facts(event)
        if wanted == "everything":
            facts += capability_facts(effects)
        effects.add_context("\n".join(facts))
        if wanted == "allow":
            return types.Decision_Allow()
        if wanted in REASONED:
            return REASONED[wanted](f"for the reason {wanted}")
        return types.Decision_Pass()
