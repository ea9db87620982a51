"""What was meant by an expression that begins with something that nothing is called."""

from __future__ import annotations

from typing import TYPE_CHECKING

from baton.core.expressions import ROOTS, STEP, ExpressionError, UnknownRoot

if TYPE_CHECKING:
    from baton.core.documents.compile.analysis.source import Source

# What other engines call the results of nodes.
_NODES_ELSEWHERE = frozenset(("steps", "step", "nodes", "node", "tasks", "task", "outputs", "results"))


def root_hint(source: Source, error: ExpressionError) -> str:
    """For an expression that begins with a node's name or with a root that is not quite one."""
    if not isinstance(error, UnknownRoot):
        return ""
    root, dot, rest = error.source.partition(".")
    first = root
    if root in _NODES_ELSEWHERE and root not in source.nodes:
        first, dot, rest = rest.partition(".")
    if first not in source.nodes:
        return "" if root == STEP else source.hint(root, ROOTS)
    inner = rest.removeprefix("output") if rest.split(".")[0].split("[")[0] == "output" else dot + rest
    return f"did you mean `ctx.{first}.output{inner}`?"
