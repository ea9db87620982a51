"""Questions about a saga's log for the tests of explanations: values in, answers out."""

from __future__ import annotations

from typing import Any

from baton.core.decide.program import Program
from baton.core.documents.compile import compile_document
from baton.core.log.slots import Slot
from baton.core.nodes.registry import KINDS
from baton.core.read.explain import STATES
from baton.core.read.story import Story, read_story
from tests.core.build import TOOLS, Saga
from tests.kit.views import as_json, explain, way

ROOM = 1_000_000


def of(nodes: str, given: Any = None) -> Saga:
    """A saga of a document's nodes that has begun; nothing of it has run that takes time."""
    lines = "\n".join(f"  {line}" for line in nodes.strip().splitlines())
    text = f"name: w\non_failure: [rollback]\nnodes:\n{lines}\n"  # what fails is tried once
    saga = Saga(Program(compile_document(text, TOOLS), KINDS), given)
    saga.go()
    return saga


def story(saga: Saga) -> Story:
    return read_story(saga.program, saga.state, saga.entries)


def whole(saga: Saga, name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = as_json(explain(story(saga), name, ROOM))["iterations"]
    assert {one["state"] for one in found} <= set(STATES), "they are described to the outside"
    return found


def why(saga: Saga, slot: str) -> str:
    """The sentence on one slot."""
    place = Slot.parse(slot)
    (text,) = (one["text"] for one in whole(saga, place.node) if one["iteration"] == list(place.iteration))
    return str(text)


def steps(saga: Saga) -> list[tuple[str, str, str]]:
    """The way: slot, what became of it, and the words."""
    found = as_json(way(story(saga), 0, 1_000, ROOM))["steps"]
    return [(place(step), step["became"], step["text"]) for step in found]


def place(step: dict[str, Any]) -> str:
    rounds = ".".join(map(str, step["iteration"]))
    return str(step["node"]) + (f"@{rounds}" if rounds else "")


BRANCH = """
ask: {tool: t, branch: {rules: [{if: "output.n > 9", then: big}, {if: "output.n > 5", then: [mid, note]}], default: low}}
big: {tool: t}
mid: {tool: t}
note: {tool: t}
low: {tool: t}
low2: {tool: t, after: low}
end: {tool: t, after: [big, mid, note, low2]}
"""
"""A branch with all there is about it."""
