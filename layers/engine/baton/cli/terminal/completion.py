"""Shell completion: the script, and values of arguments. It waits a second at most, and prints no errors."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import click
from click.shell_completion import CompletionItem, get_completion_class

from baton.client.connection import find_connection
from baton.words.text import plain

SHELLS = ("bash", "zsh", "fish")
_VARIABLE = "_BATON_COMPLETE"
_OFFERED = 50
ANSWERS = {
    "retry": "try the step again",
    "use": "take an output in its place",
    "fail": "let it fail",
    "approve": "of an approval: it may be done",
    "reject": "of an approval: it may not be done",
    "submit": "of an input: the data that --data gives",
    "done": "of a takeover: it is done by hand",
}


@click.command(short_help="Print the completion script of a shell.")
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> None:
    """Print the script that completes commands, options, sagas, workflows and tools in a shell.

    bash: eval "$(baton completion bash)" in ~/.bashrc. zsh: the same with zsh, in ~/.zshrc. fish: baton
    completion fish > ~/.config/fish/completions/baton.fish
    """
    found = get_completion_class(shell)
    assert found is not None, "click knows these shells"
    root = click.get_current_context().find_root().command
    click.echo(found(root, {}, "baton", _VARIABLE).source())


def _complete(
    path: str, offered: Callable[[Any], list[CompletionItem]]
) -> Callable[..., list[CompletionItem]]:
    """Return a completer: `offered` gives the items of the answer at `path` that begin as typed."""

    def complete(context: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
        answer = _ask(context, path)
        if answer is None:
            return []
        try:
            return [item for item in offered(answer) if str(item.value).startswith(incomplete)]
        except (KeyError, TypeError, AttributeError):
            return []  # another kind of service answers there

    return complete


def _ask(context: click.Context, path: str) -> Any:
    from baton.client.transport import glance

    said = context.find_root().params
    auth = "aws" if said.get("aws") else os.environ.get("BATON_AUTH")
    try:
        connection = find_connection(said.get("url"), said.get("token"), auth)
    except click.ClickException:
        return None
    return glance(connection, path)


def _item(value: str, about: str) -> CompletionItem:
    return CompletionItem(plain(value), help=plain(about.strip().partition("\n")[0]))


complete_sagas = _complete(
    f"/sagas?limit={_OFFERED}",
    lambda answer: [_item(saga["id"], f"{saga['workflow']}, {saga['status']}") for saga in answer["sagas"]],
)
complete_workflows = _complete(
    "/workflows?limit=100",
    lambda answer: [_item(found["name"], f"version {found['version']}") for found in answer["workflows"]],
)
complete_tools = _complete(
    "/tools", lambda answer: [_item(tool["name"], tool.get("description") or "") for tool in answer["tools"]]
)
complete_kinds = _complete(
    "/node-types", lambda answer: [_item(node["kind"], node["description"]) for node in answer["node_types"]]
)


def complete_nodes(context: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete the nodes that the saga has reached."""
    path = f"/sagas/{quote(str(context.params.get('saga') or '-'), safe='')}/explain?limit={_OFFERED}"
    answer = _ask(context, path)
    try:
        found = {str(one["node"]): str(one["text"]) for one in (*answer["steps"], *answer["open"])}
    except (KeyError, TypeError):
        return []  # no answer, or another kind of service
    return [_item(name, text) for name, text in found.items() if name.startswith(incomplete)]


def _complete_documents(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(incomplete, type="file")]  # the shell knows its files


def complete_actions(context: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete actions of an answer. The ids of questions, which are long, are left to `baton show`."""
    return [
        CompletionItem(action, help=about)
        for action, about in ANSWERS.items()
        if action.startswith(incomplete)
    ]


saga_argument = click.argument("saga", shell_complete=complete_sagas)
saga_or_many = click.argument("saga", required=False, shell_complete=complete_sagas)
workflow_argument = click.argument("workflow", shell_complete=complete_workflows)
documents_argument = click.argument(
    "documents",
    nargs=-1,
    metavar="[FILE|MODULE:ATTRIBUTE|NAME]...",
    shell_complete=_complete_documents,
)
