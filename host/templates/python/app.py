"""Keeps shared branches as they are: a forced push needs a person.

`event` and `effects` are the host's; `wit/deps/omc-hook/hook.wit` explains each of their functions, which have snake_case names
here. An absent value is `None`, an error is raised as `componentize_py_types.Err`.
"""

from wit_world import exports
from wit_world.imports import types

from logic import is_forced_push


class Handler(exports.Handler):
    def handle(self, event: types.Event, effects: types.Effects) -> types.Decision:
        # Whatever the agent calls its tool for commands; `None` if this is another tool.
        command = event.tool_command()
        if event.kind() != "pre-tool-use" or command is None or not is_forced_push(command):
            return types.Decision_Pass()
        effects.add_context("Shared branches are not rewritten in this project; push to a new branch instead.")
        return types.Decision_Block("a forced push rewrites what others have")
