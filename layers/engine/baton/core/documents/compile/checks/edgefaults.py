"""Problems of the edges of a document: names that lead nowhere, circles, and edges that must be meant otherwise.

The edges themselves are in analysis/edges.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import TYPE_CHECKING

from baton.core.documents.compile.analysis.edges import caught, chosen, left_by, listed
from baton.errors import Problem

if TYPE_CHECKING:
    from baton.core.documents.compile.analysis.source import Source
    from baton.core.documents.definition import NodeModel

_MOST_NAMES = 20
_LONGEST = 56


def _handlers(source: Source, name: str, node: NodeModel) -> Iterator[Problem]:
    """Handlers to which the node leads besides, and rules that are never asked."""
    otherwise = {to for _, to in (*chosen(name, node), *left_by(name, node))}
    for place, to in caught(name, node):
        between = _free(f"to_{to}", source)
        value = (
            f"in `catch`, write `{between}` in place of `{to}`; add `{between}: {{value: null}}` to the nodes"
        )
        if to in otherwise:
            message = f"`{name}` leads to `{to}` when it is done, too, by its `branch` or `loop`"
            yield Problem(place, message, f"{value}, and `{between}` to `after` of `{to}`")
        elif to in source.nodes and name in source.nodes[to].after:
            message = f"`{name}` leads here only when it has failed, by its `catch`"
            hint = (
                f"take `{name}` out of `after`; or leave it there: {value}, and `{between}` to `after` here"
            )
            yield Problem(f"/nodes/{to}/after", message, hint)
    for index, rule in enumerate(node.catch[:-1]):
        if rule.fits_all:
            message = f"this rule is never asked: rule {index + 1} fits every failure"
            hint = "let the rule without `code`, `class` and `if` come last"
            yield Problem(f"/nodes/{name}/catch/{index + 1}", message, hint)
            return


def _free(name: str, source: Source) -> str:
    """A name for a new node."""
    names = (name[:_LONGEST] + f"_{number}" * (number > 1) for number in count(1))
    return next(one for one in names if one not in source.nodes)


def check(source: Source) -> Iterator[Problem]:
    """Unknown names, circles, and edges that mean something else."""
    nodes, edges = source.nodes, source.edges
    for name, node in nodes.items():
        named = [*listed(f"/nodes/{name}/after", node.after), *chosen(name, node), *left_by(name, node)]
        named += caught(name, node)
        if node.loop is not None and node.loop.back_to is not None:
            named.append((f"/nodes/{name}/loop/back_to", node.loop.back_to))
        for place, other in named:
            if other not in nodes:
                yield Problem(place, f"there is no node `{other}`", source.hint(other, nodes))
        for place, other in listed(f"/nodes/{name}/after", node.after):
            if other in nodes and source.kinds[other].ends:
                message = f"the saga ends with `{other}`: nothing comes after it"
                yield Problem(place, message, f"take `{other}` out of `after`")
        if node.catch:
            yield from _handlers(source, name, node)
    yield from edges.problems
    if edges.circle:
        names = sorted(edges.circle)
        told = ", ".join(names[:_MOST_NAMES])
        more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
        place = next(
            place for (src, dst), place in edges.written.items() if dst == names[0] and src in edges.circle
        )
        message = f"these nodes wait for each other and can never start: {told}{more}"
        yield Problem(place, message, "to go round again, write `loop` at the last of them")
