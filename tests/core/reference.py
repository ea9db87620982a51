"""A second, naive interpreter of workflow shapes, and the strategy that draws them.

It shares no code with the engine: no tokens, no log, no templates; only "who is done" and the plain
rules of a graph. The engine must agree with it (test_random_graphs.py).
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

KINDS = ("task", "task", "task", "wait", "workflow")


@dataclass(frozen=True)
class Spot:
    """One node of a shape: what it comes after, and whose outputs it reads."""

    name: str
    kind: str
    before: tuple[str, ...]
    reads: tuple[str, ...]


@dataclass(frozen=True)
class Shape:
    """A workflow, as plain as can be. `output` names the nodes that the saga's output shows."""

    spots: tuple[Spot, ...]
    output: tuple[str, ...]

    def text(self) -> str:
        """The workflow document, as JSON."""
        return json.dumps(
            {
                "name": "w",
                "nodes": {spot.name: self._node(spot) for spot in self.spots},
                "output": {name: f"${{ctx.{name}.output}}" for name in self.output},
            }
        )

    def _node(self, spot: Spot) -> dict[str, Any]:
        given = {name: f"${{ctx.{name}.output}}" for name in spot.reads}
        kinds: dict[str, dict[str, Any]] = {
            "task": {"tool": "t", "with": given},
            "wait": {"wait": {"signal": spot.name}},
            "workflow": {"workflow": "other", "with": given},
        }
        return {**kinds[spot.kind], "after": list(spot.before)}


@st.composite
def shapes(draw: st.DrawFn, kinds: tuple[str, ...] = KINDS, most: int = 9) -> Shape:
    """Any acyclic graph of up to `most` nodes; a node may read whatever has surely run before it."""
    names = [f"n{number}" for number in draw(st.permutations(range(draw(st.integers(1, most)))))]
    ancestors: dict[str, set[str]] = {}
    spots = []
    for index, name in enumerate(names):
        earlier = names[:index]
        # Mostly near ones, so that long paths through the graph are as common as wide ones.
        near = earlier[-draw(st.sampled_from((1, 1, 2, 9))) :]
        before = draw(st.lists(st.sampled_from(near), unique=True, max_size=4)) if near else []
        ancestors[name] = set(before).union(*(ancestors[other] for other in before))
        kind = draw(st.sampled_from(kinds))
        known = sorted(ancestors[name])
        reads = (
            draw(st.lists(st.sampled_from(known), unique=True, max_size=2))
            if known and kind != "wait"
            else []
        )
        spots.append(Spot(name, kind, tuple(before), tuple(reads)))
    output = draw(st.lists(st.sampled_from(names), unique=True, max_size=2))
    return Shape(tuple(draw(st.permutations(spots))), tuple(output))


@dataclass
class Reference:
    """The interpreter: which nodes are done, with what."""

    shape: Shape
    values: dict[str, Any] = field(default_factory=dict)

    @property
    def open(self) -> set[str]:
        """Nodes that are ready: all before them are done, they are not."""
        return {
            spot.name
            for spot in self.shape.spots
            if spot.name not in self.values and all(name in self.values for name in spot.before)
        }

    def open_of(self, kind: str) -> set[str]:
        return {spot.name for spot in self.shape.spots if spot.kind == kind} & self.open

    def given(self, name: str) -> dict[str, Any]:
        """What a node gets: the values that it reads."""
        spot = next(spot for spot in self.shape.spots if spot.name == name)
        return {read: self.values[read] for read in spot.reads}

    def settle(self, name: str, value: Any) -> None:
        assert name in self.open
        self.values[name] = value

    @property
    def is_over(self) -> bool:
        return len(self.values) == len(self.shape.spots)

    @property
    def held(self) -> set[str]:
        """Outputs that a node which is not done, or the saga's output, reads."""
        to_come = {read for spot in self.shape.spots if spot.name not in self.values for read in spot.reads}
        return (to_come | set(self.shape.output)) & set(self.values)

    @property
    def result(self) -> dict[str, Any]:
        return {name: self.values[name] for name in self.shape.output}
