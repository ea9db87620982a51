"""Graphs and workflows that start themselves: refused only where every saga of them, whatever happens, would start the next one.

A recursion that is missed ends at the limit of the depth; one that is refused although it ends cannot be written at all.
"""

from __future__ import annotations

import pytest

from tests.core.build import problems_of
from tests.core.compiling import TOOLS, told
from tests.kit.sentences import Says

FAIL = "fail: {code: c, message: m}"
BRANCH = "a: {value: '${input.n}', branch: {rules: [{if: output > 2, then: e}], default: x}}"
# `x` starts the next saga; what is before it, and what ends the saga.
ENDING = {
    "a branch": "CHOICE, e: {end: {}}, x: {START}",
    "a branch to a failure": "CHOICE, e: {FAIL}, x: {START}",
    "a `when`": "a: {value: 1}, e: {end: {}, when: input.n > 2, after: a}, x: {START, after: a}",
    "a `when` at a failure": "a: {value: 1}, e: {FAIL, when: input.n > 2, after: a}, x: {START, after: a}",
    "a race": "s: {wait: {signal: stop}}, e: {end: {}, after: s}, b: {wait: {for: 1h}}, x: {START, after: b}",
    "a race with a failure": "s: {wait: {signal: stop}}, e: {FAIL, after: s}, b: {wait: {for: 1h}}, x: {START, after: b}",
    "a handler that ends it": "a: {tool: t, catch: e}, e: {end: {}}, x: {START, after: a}",
    "a handler that fails": "a: {tool: t, catch: e}, e: {FAIL}, x: {START, after: a}",
    "a join": "a: {value: 1}, b: {value: 2}, e: {end: {}, after: [a, b], when: input.n > 2}, x: {START, after: [a, b]}",
    "one end of two": "a: {value: 1}, x: {START, after: a}, e: {end: {}, after: x}, f: {end: {}, after: a, when: input.n > 2}",
}
ENDLESS = {
    "no end": "a: {value: 1}, x: {START, after: a}",
    "a tool before it": "a: {tool: t}, x: {START, after: a}",
    "an end behind it": "a: {value: 1}, x: {START, after: a}, e: {end: {}, after: x}",
    "ends behind it": "x: {START, branch: {rules: [{if: output == 1, then: e}], default: f}}, e: {end: {}}, f: {FAIL}",
    "a failure that may be behind it": "x: {START}, f: {FAIL, after: x, when: input.n > 2}, b: {value: 1, after: x}",
}


def started(nodes: str, start: str) -> str:
    return nodes.replace("CHOICE", BRANCH).replace("FAIL", FAIL).replace("START", start)


def refused(first: str, second: str = "") -> list[str]:
    two = f"\n  two: {{nodes: {{{started(second, 'graph: one')}}}}}" if second else ""
    start = "graph: two" if second else "graph: one"
    graphs = f"graphs:\n  one: {{nodes: {{{started(first, start)}}}}}{two}"
    document = f"name: w\nnodes: {{a: {{graph: one}}}}\n{graphs}"
    return [f"{one.path}: {one.message}" for one in problems_of(document, TOOLS)]


@pytest.mark.parametrize("nodes", ENDING.values(), ids=ENDING)
def test_a_recursion_that_an_end_or_a_failure_can_stop_is_not_refused(nodes: str) -> None:
    assert told(started(nodes, "workflow: w")) == []
    assert refused(nodes) == []
    assert refused(nodes, "x: {START}") == []
    assert refused("x: {START}", nodes) == []


@pytest.mark.parametrize("nodes", ENDLESS.values(), ids=ENDLESS)
def test_one_whose_end_comes_after_the_next_saga_is(nodes: str, says: Says) -> None:
    ((path, message, _),) = told(started(nodes, "workflow: w"))
    assert path == "/nodes/x/workflow"
    says(message)
    says(refused(nodes))
    says(refused(nodes, "x: {START}"))
    says(refused("x: {START}", nodes))
