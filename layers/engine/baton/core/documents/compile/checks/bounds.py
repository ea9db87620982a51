"""Limits and guardrails: edges that may not be taken, and sends that no limit can ever allow.

These are contradictions inside one document. Tools that may not run are in compile/tools.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from baton.core.documents.compile.analysis.edges import listed
from baton.core.documents.compile.analysis.flow import caught_ways, least_ways
from baton.errors import Problem

if TYPE_CHECKING:
    from baton.core.documents.compile.analysis.source import Source
    from baton.core.documents.definition import NodeModel


def check(source: Source) -> Iterator[Problem]:
    """What `guardrails.allowed_transitions`, an agent's `among` and `limits.fan_out` do not allow."""
    yield from _transitions(source)
    for name, node in source.nodes.items():
        if source.kinds[name].chooses and node.branch is not None and node.branch.choose is not None:
            yield from _outside_of_among(source, name, node)
        yield from _fan_out(source, name, node)


def _transitions(source: Source) -> Iterator[Problem]:
    nodes = source.nodes
    allowed = source.model.guardrails.allowed_transitions if source.model.guardrails is not None else {}
    for src, receivers in allowed.items():
        place = f"/guardrails/allowed_transitions/{src}"
        for where, name in ((place, src), *listed(place, receivers)):
            if name not in nodes:
                yield Problem(where, f"there is no node `{name}`", source.hint(name, nodes))
        if src not in nodes:
            continue
        taken = [(dst, source.edges.written[src, dst]) for dst in source.edges.after[src]]
        if (loop := nodes[src].loop) is not None:
            where = f"/nodes/{src}/loop" + ("/back_to" if loop.back_to is not None else "")
            taken.append((loop.back_to or src, where))
        for dst, where in taken:
            if dst not in receivers:
                message = (
                    f"`{src}` may not go on to `{dst}`: `guardrails.allowed_transitions` does not name it"
                )
                known = f"it may go on to {', '.join(map('`{}`'.format, receivers)) or 'no node'}"
                yield Problem(where, message, known)


def _outside_of_among(source: Source, name: str, node: NodeModel) -> Iterator[Problem]:
    """An agent chooses where the saga goes on: no other edge may follow it."""
    assert node.branch is not None
    named = {*node.branch.among, *node.branch.default}.union(*caught_ways(node))
    for dst in source.edges.after[name]:
        if dst not in named:
            message = (
                f"the {source.kinds[name].key} `{name}` goes on only to the nodes that its `branch` names"
            )
            hint = f"add `{dst}` to `among`, or let it come after another node"
            yield Problem(source.edges.written[name, dst], message, hint)


def _fan_out(source: Source, name: str, node: NodeModel) -> Iterator[Problem]:
    """To how many nodes it sends at the very least."""
    count = min(map(len, least_ways(node, source.edges.after[name])))
    for place, limits in ((f"/nodes/{name}/limits", node.limits), ("/limits", source.model.limits)):
        limit = limits.get("fan_out")
        if limit is not None and limit.then == "terminate" and count > limit.max:
            message = (
                f"`{name}` goes on to {count} nodes at once, and `fan_out` ends the saga beyond {limit.max}"
            )
            yield Problem(f"{place}/fan_out", message, f"allow {count}, or write `then: throttle`")
            return
