"""Which attempts of a log may act only once, so that each has a claim: those of steps, and of calls that agents make."""

from __future__ import annotations

from collections.abc import Collection

from baton.core.effects.toolspec import ONCE
from baton.core.graph.graph import Graph
from baton.core.log import events as ev
from baton.core.log.maps import is_index
from baton.core.log.state import slot_of

_ATTEMPTS = ev.StepSucceeded | ev.StepFailed | ev.AttemptFailed | ev.CallbackOpened


class Claims:
    """`nodes` are those whose tools may act only once, `calls` the agents and those of their tools."""

    def __init__(self, nodes: Collection[str] = (), calls: Collection[tuple[str, str]] = ()) -> None:
        self._nodes, self._calls = nodes, calls
        self._called: dict[str, str] = {}  # tools, by slot

    @classmethod
    def of(cls, graph: Graph) -> Claims:
        """As a graph says it."""
        nodes = frozenset(node.name for node in graph.work if node.effect == ONCE)
        agents = [(node.name, node.agent) for node in graph.nodes if node.agent is not None]
        calls = frozenset(
            (name, call.tool) for name, parts in agents for call in parts.calls if call.effect == ONCE
        )
        return cls(nodes, calls)

    def has(self, event: ev.Event) -> bool:
        """Whether the event, the next one of its log, is about an attempt with a claim."""
        if isinstance(event, ev.CallsBegan):
            for one in event.calls:
                self._called[slot_of(event.node, event.iteration, one.item)] = one.tool
        ends_elsewhere = getattr(event, "callback", "") and not isinstance(event, ev.CallbackOpened)
        if not isinstance(event, _ATTEMPTS) or ends_elsewhere:
            return False
        if not event.item or is_index(event.item):
            return event.node in self._nodes
        return (
            event.node,
            self._called.get(slot_of(event.node, event.iteration, event.item), ""),
        ) in self._calls
