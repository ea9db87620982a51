"""How long a step is likely to take, learned from the log and from this process's own runs."""

from __future__ import annotations

from collections.abc import Iterable

from baton.core.log.events import CallbackOpened, Entry, StepInterrupted, StepSucceeded

WEIGHT = 0.3
MARGIN = 1.5
NODES_KEPT = 20_000


class DurationEstimator:
    """Smoothed durations, shared by all sagas of a process: of each node of a graph, and of each tool.

    A node that was never seen is expected to take as long as its tool does elsewhere.
    """

    def __init__(self, estimate: int) -> None:
        self._estimate = estimate
        self._nodes: dict[tuple[str, str], float] = {}
        self._tools: dict[str, float] = {}

    def observe(self, graph: str, node: str, tool: str, duration: float) -> None:
        """A run of this node took `duration` ms."""
        if len(self._nodes) > NODES_KEPT:
            self._nodes.clear()  # a guess is all that is lost
        before = self._nodes.get((graph, node), duration)
        self._nodes[graph, node] = before + WEIGHT * (duration - before)
        before = self._tools.get(tool, duration)
        self._tools[tool] = before + WEIGHT * (duration - before)

    def learn(self, graph: str, entries: Iterable[Entry]) -> None:
        """Take in a log's steps."""
        for entry in entries:
            for event in entry.events:
                if isinstance(event, CallbackOpened) or (
                    isinstance(event, StepSucceeded) and not event.callback
                ):
                    self.observe(graph, event.node, event.tool, event.ended_at - event.started_at)
                elif isinstance(event, StepInterrupted) and not event.why:
                    self.cut_off(graph, event.node, event.ended_at - event.started_at)

    def cut_off(self, graph: str, node: str, after: float) -> None:
        """A run of this node was interrupted after `after` ms: it needs at least twice that time."""
        self._nodes[graph, node] = max(self._nodes.get((graph, node), 0), 2 * after)

    def expected(self, graph: str, node: str, tool: str, timeout: int) -> float:
        """Milliseconds the next run should be given, never more than its timeout."""
        seen = self._nodes.get((graph, node), self._tools.get(tool))
        return min(self._estimate if seen is None else MARGIN * seen, timeout)
