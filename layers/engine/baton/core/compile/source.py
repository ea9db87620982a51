"""A document whose shape is right, and what more than one check asks of it, each worked out once.

Belongs here: who is asked for what. Does not belong here: how it is worked out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from baton.core.compile.edges import Edges
from baton.core.compile.flow import Flow
from baton.core.compile.loops import Loops
from baton.core.compile.produced import Produced
from baton.core.conditions.document import read_condition
from baton.core.conditions.model import Condition
from baton.core.definition import WorkflowModel
from baton.core.toolspec import ToolSpec, nearest
from baton.errors import Problem

if TYPE_CHECKING:
    from baton.core.definition import NodeModel

Tools = Mapping[str, ToolSpec]
# Looking for the nearest of many names takes long, and nobody mends a document from the end.
MAX_HINTS = 20


@dataclass
class Source:
    """The model of a document. Not `is_whole`: some nodes are only what is left of them, or stand in for others."""

    model: WorkflowModel
    tools: Tools
    is_whole: bool = True
    hints_left: int = MAX_HINTS

    @property
    def nodes(self) -> dict[str, NodeModel]:
        return self.model.nodes

    def hint(self, name: str, known: Iterable[str]) -> str:
        """The nearest known name, for the first few problems."""
        self.hints_left -= 1
        return nearest(name, known) if self.hints_left >= 0 else ""

    @cached_property
    def edges(self) -> Edges:
        return Edges(self.nodes)

    @cached_property
    def flow(self) -> Flow:
        return Flow(self.nodes, self.edges)

    @cached_property
    def loops(self) -> Loops:
        return Loops(self.nodes, self.edges, self.flow)

    @cached_property
    def produced(self) -> Produced | None:
        """What each node can count on; None when there is too much wrong with the edges to say."""
        if not self.is_whole or self.edges.problems or self.edges.circle or self.loops.problems:
            return None
        return Produced(self.flow)

    @cached_property
    def _read(self) -> dict[str, tuple[Condition | None, tuple[Problem, ...]]]:
        return {
            place: _plain(read_condition(value, place, self.model.schemas, of=of))
            for place, value, of in _conditions(self.nodes)
        }

    def condition(self, place: str) -> Condition | None:
        """The condition that stands there, if it can be read."""
        return self._read[place][0]

    @property
    def conditions(self) -> Iterable[tuple[str, Condition | None, tuple[Problem, ...]]]:
        """Each condition's place, what was read there, and what is wrong with it."""
        return ((place, condition, problems) for place, (condition, problems) in self._read.items())


def _plain(read: tuple[Condition | None, Iterable[Problem]]) -> tuple[Condition | None, tuple[Problem, ...]]:
    return read[0], tuple(read[1])


def _conditions(nodes: Mapping[str, NodeModel]) -> Iterable[tuple[str, Any, str]]:
    """(JSON Pointer, condition, what it is about if it does not say)."""
    for name, node in nodes.items():
        if node.when is not None:
            yield f"/nodes/{name}/when", node.when, "input"
        if node.branch is not None:
            for index, rule in enumerate(node.branch.rules):
                yield f"/nodes/{name}/branch/rules/{index}/if", rule.if_, "output"
        if node.loop is not None:
            yield f"/nodes/{name}/loop/while", node.loop.while_, "output"
