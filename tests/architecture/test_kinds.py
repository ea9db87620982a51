"""What reads documents, draws them or serves them names no kind of node: it asks the registry.

The words of kinds are found as literals. Some of them mean something else, too: `EXCEPTIONS` says where.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

from baton.core.documents.nodes.registry import NODE_TYPES

ENGINE = Path(__file__).parents[2] / "layers/engine/baton"
ROOMS = ("core/documents", "builder", "cli", "client", "web", "testing")
OWN = "core/documents/nodes/"
WORDS = frozenset(word for kind in NODE_TYPES for word in (kind.kind, kind.key))
# The list may get shorter, and nothing is added but what means no kind.
EXCEPTIONS: Mapping[str, set[str]] = {
    "builder/workflow.py": {"tool", "wait", "workflow", "value"},  # a method for each kind
    # The word of another engine for all nodes.
    "core/documents/compile/expressions.py": {"task"},
    # The definition of any JSON value.
    "core/documents/parts/failing_schema.py": {"tool", "value"},
    "core/documents/parts/fields.py": {"value"},
    "core/documents/schema.py": {"value"},
    # A tool: of a policy, of a hint, of an event, in a list of tools; a part of an example.
    "builder/failing.py": {"tool"},
    "cli/catalog.py": {"tool"},
    "core/documents/models.py": {"tool"},
    "core/documents/parts/failing.py": {"tool"},
    "core/documents/parts/node.py": {"tool"},
    # The workflow of a saga, or of a request.
    "cli/announcing.py": {"workflow"},
    "cli/completion.py": {"workflow"},
    "cli/neighbours.py": {"workflow"},
    "cli/render.py": {"workflow"},
    "cli/sagas.py": {"workflow"},
    "cli/tables.py": {"workflow", "tool"},
    "cli/workflows.py": {"workflow"},
    "client/api.py": {"workflow", "value"},
    "client/prefixes.py": {"workflow"},
    "web/routes.py": {"workflow"},
    "testing/result.py": {"workflow", "tool"},
    # A value that a condition compares with.
    "builder/conditions.py": {"value"},
}


def words_in(source: str) -> Iterator[str]:
    """The words of kinds that stand in a file as literals."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and node.value in WORDS:
            yield str(node.value)


def test_no_room_names_a_kind() -> None:
    found: dict[str, set[str]] = {}
    for room in ROOMS:
        for file in sorted((ENGINE / room).rglob("*.py")):
            name = file.relative_to(ENGINE).as_posix()
            words = set() if name.startswith(OWN) else set(words_in(file.read_text(encoding="utf-8")))
            if words:
                found[name] = words
    assert found == dict(EXCEPTIONS)


def test_a_literal_is_found() -> None:
    assert set(words_in("if node['kind'] == 'wait' or x in {'pass': 1}: pass")) == {"wait", "pass"}
