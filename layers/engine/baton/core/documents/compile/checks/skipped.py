"""Why a node need not have given an output: it is skipped with a node before it whose `when` does not hold, or on a way that ends the saga.

The one change to a document that helps is found by trying it. What each node can count on is in analysis/available_outputs.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from baton.core.documents.compile.analysis.flow import Flow
from baton.core.documents.compile.analysis.source import Source

if TYPE_CHECKING:
    from baton.core.documents.compile.analysis.available_outputs import Produced

# What is tried takes about as long as the whole check of a document.
_MOST_NODES = 500


def by_a_when(source: Source, name: str, reader: str) -> str:
    """What to write so that `name` has given something when `reader` (empty: the end) asks, whatever a `when` says.

    An empty string where no such change is found.
    """
    if len(source.nodes) > _MOST_NODES:
        return ""
    for asking, skipped in _candidates(source, name):
        if source.tries_left <= 0:
            break
        source.tries_left -= 1
        after = [*source.edges.before[asking], *source.nodes[skipped].after]
        produced = _with(source, skipped, after)
        if produced is not None and (produced.has(reader, name) if reader else produced.has_at_the_end(name)):
            so = f"`{skipped}` is skipped too" + (f", and `{name}` with it" if skipped != name else "")
            return f"if `{asking}` is skipped, {so}; write `after: [{', '.join(after)}]` at `{skipped}`"
    return ""


def by_an_end(produced: Produced, name: str, reader: str) -> str:
    """What the reader (empty: none that can wait) has to wait for, if the saga ends without `name`, but only after a step."""
    last = produced.awaited(reader, name) if reader else ""
    if not last:
        return ""
    return (
        f"where `{last}` runs, the saga ends without `{name}`, but only when `{last}` is done; "
        f"add `{last}` to `after`, so that this waits for it"
    )


def _candidates(source: Source, name: str) -> Iterator[tuple[str, str]]:
    """(node with a `when`, node that comes directly after it) on the paths to `name`, the nearest first."""
    flow: Flow = source.flow
    behind = flow.behind[flow.at[name]]
    for index in range(flow.at[name] - 1, -1, -1):
        asking = flow.names[index]
        if not behind >> index & 1 or source.nodes[asking].when is None or not source.edges.before[asking]:
            continue
        for skipped in source.edges.after[asking]:
            at = flow.at[skipped]
            is_on_the_way = skipped == name or behind >> at & 1
            if is_on_the_way and asking in source.nodes[skipped].after:
                yield asking, skipped


def _with(source: Source, name: str, after: list[str]) -> Produced | None:
    node = source.nodes[name].model_copy(update={"after": after})
    model = source.model.model_copy(update={"nodes": {**source.nodes, name: node}})
    return Source(model, source.tools).produced
