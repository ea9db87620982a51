"""A strategy has one file: its name stands nowhere else, and only the registry imports it.

What a strategy is says core/failures/strategies/base.py; a strategy that is added this way is in tests/core/failures/test_a_new_strategy.py.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from baton.core.failures.strategies.registry import END, LOOK, STRATEGIES
from tests.architecture.law import nodes_of

ENGINE = Path(__file__).parents[2] / "layers/engine/baton"
ROOM = "core/failures/strategies/"
NAMES = {*STRATEGIES, END.name, LOOK.name}

_FIELD, _REPLAN = {"retry"}, {"replan"}
# The words that a file may have all the same, because there they mean something else, or are data. The list may get shorter.
ALLOWED: dict[str, set[str]] = {
    # The data of the matrix, and what stored graphs leave out.
    "core/failures/matrix.py": set(STRATEGIES),
    "core/failures/failover.py": {"replan"},
    # The fields `retry` and `replan` of documents, and their examples.
    "builder/control.py": {*_FIELD, "escalate"},
    "builder/workflow.py": {*_FIELD, *_REPLAN, "fail", "escalate"},
    "cli/text/graph.py": _REPLAN,
    "tools/functions/define.py": {"rollback", "fail"},  # all that a function's own policy can be
    "core/documents/familiar.py": {"retry", "escalate"},
    "core/documents/models.py": {"retry", "escalate"},
    "core/documents/compile/tools.py": _REPLAN,
    "core/documents/nodes/base.py": {*_FIELD, *_REPLAN},
    "core/documents/parts/failing.py": {*_FIELD, "escalate"},
    "client/calls.py": {"retry", "rollback"},  # the routes
    # Of a saga: the command, and the reason of its fork.
    "cli/deployment/steering.py": {"retry"},
    "runtime/requests/steering.py": {"retry"},
    "core/documents/parts/node.py": {"retry", "rollback", "escalate"},
    "core/nodes/task.py": _REPLAN,
    # A document's word for an empty end of the ladder.
    "core/failures/policy.py": {"fail"},
    "testing/result.py": {"fail"},
    # A kind of node.
    "core/documents/nodes/end.py": {"fail"},
    "core/documents/nodes/child.py": {"retry", "replan"},
    "core/decide/failure_handling.py": {"retry"},
    "core/nodes/fail.py": {"fail"},
    # What a person answers.
    "cli/terminal/completion.py": {"retry", "fail"},
    "console/inbox.py": {"retry", "fail"},
    # A page, by the name of its command.
    "console/acting.py": {"rollback"},
    "core/log/questions.py": {"retry", "fail"},
    # A field of questions, in the builder too: what happens without an answer.
    "cli/text/render.py": {"escalate", "look"},
    "core/decide/approvals.py": {"escalate"},
    "core/documents/nodes/human.py": {"escalate"},
    "core/documents/nodes/task.py": _REPLAN,
    "core/documents/parts/people.py": {"escalate"},
    "tools/abilities.py": {"escalate"},
    "core/nodes/human.py": {"escalate"},
    "core/read/views.py": {"escalate"},
    # A field of an event.
}


def named(source: str) -> Iterator[str]:
    """The strategies that a file names, by a text that is nothing else or by a constant."""
    constants = {name.upper(): name for name in STRATEGIES}
    for node in nodes_of(source):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in NAMES:
            yield node.value
        elif isinstance(node, ast.Name) and node.id in constants:
            yield constants[node.id]
        elif isinstance(node, ast.alias) and node.name in constants:
            yield constants[node.name]


def imported(source: str) -> Iterator[str]:
    """The modules of the strategies' room that a file imports."""
    room = "baton." + ROOM.replace("/", ".")
    for node in nodes_of(source):
        if isinstance(node, ast.ImportFrom):
            module = node.module or ""
            names = (
                [f"{module}."] if f"{module}." != room else [f"{module}.{one.name}." for one in node.names]
            )
        else:
            names = [f"{one.name}." for one in node.names] if isinstance(node, ast.Import) else []
        yield from (
            name[len(room) :].split(".")[0] for name in names if name.startswith(room) and name != room
        )


def test_a_strategy_is_named_in_its_own_file_only() -> None:
    found = {
        path: words
        for file in sorted(ENGINE.rglob("*.py"))
        if not (path := file.relative_to(ENGINE).as_posix()).startswith(ROOM)
        and (words := set(named(file.read_text())))
    }
    assert found == ALLOWED


def test_only_the_registry_imports_the_strategies() -> None:
    for file in sorted(ENGINE.rglob("*.py")):
        if file.relative_to(ENGINE).as_posix() != f"{ROOM}registry.py":
            assert set(imported(file.read_text())) <= {"base", "ladder", "registry"}, file


def test_every_file_of_the_room_is_a_strategy_that_the_registry_has() -> None:
    files = {file.stem for file in (ENGINE / ROOM).glob("*.py")} - {"__init__", "base", "ladder", "registry"}
    assert files == NAMES
    assert files == set(imported((ENGINE / ROOM / "registry.py").read_text())) - {"base"}


def test_what_names_or_imports_a_strategy_is_found() -> None:
    assert list(named("if strategy == 'retry' or strategy in {ESCALATE}: ...")) == ["retry", "escalate"]
    assert list(named("from baton.core.failures.matrix import ROLLBACK")) == ["rollback"]
    assert list(named("'''retry, replan or escalate'''\nretry = 1")) == []
    assert list(imported("from baton.core.failures.strategies.retry import Retry")) == ["retry"]
    assert list(imported("from baton.core.failures.strategies import replan")) == ["replan"]
    assert list(imported("import baton.core.failures.strategies.fail, baton.core.log")) == ["fail"]
    assert list(imported("from baton.core.failures import strategies")) == []
