"""A decision costs the same after 10 steps and after 1,000: nothing in it grows with what is behind.

Measured in calls, not in time: the interpreter's own profile of one step (decide, record, fold), early and
late in one long saga, is the same to the call. What a call may hide, copying, is bounded by the size of the
state, which must not grow either.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from types import FrameType
from typing import Any

import pytest

from baton.core.decide.decide import advance
from baton.core.decide.program import Program
from baton.core.documents.compile import compile_document
from baton.core.log.events import Value
from baton.core.log.folding.fold import fold
from baton.core.log.slots import Slot, slot_of
from baton.core.log.snapshots import encode_state
from baton.core.log.state import State
from baton.core.pipelines.base import Pattern, WorkBudget
from baton.errors import InvalidDefinition
from tests.core.build import TOOLS, Saga, chain, done, entry, program, started, task, wait

# What is taken here is the same way many times over; the tests that name it are elsewhere.
pytestmark = pytest.mark.no_cover


def calls_of(function: Callable[[], Any]) -> int:
    """How many calls, Python's and C's, a function makes."""
    count = 0

    def look(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    gc.disable()  # what is called when it runs is not measured here
    sys.setprofile(look)
    try:
        function()
    finally:
        sys.setprofile(before)
        gc.enable()
    return count


def step(graph: Program, state: State, node: str, value: Any = None) -> State:
    """Settle one node and fold the entry that follows."""
    moved = advance(graph, state, [done(node, value)], 0)
    return fold(state, entry(state.version + 1, *moved.events, epoch=1))


def test_a_step_costs_the_same_after_10_and_after_1_000() -> None:
    length = 1_020
    graph = chain(length, x="${input.n}")
    state = fold(State(), entry(1, started(graph, Value(v={"n": 1}))))
    calls, sizes = {}, {}
    for number in range(length - 10):
        if number in (10, 1_000):
            Slot.parse.cache_clear()  # the names of other tests
            slot_of.cache_clear()
            calls[number] = calls_of(partial(step, graph, state, f"n{number}"))
            sizes[number] = len(encode_state(state))
        state = step(graph, state, f"n{number}")
    assert state.counts.steps == length - 10
    assert calls[10] == calls[1_000] > 0
    assert sizes[1_000] - sizes[10] <= 4 * len("00"), "some numbers got longer, nothing else did"


def test_signals_that_were_used_leave_only_a_bounded_memory() -> None:
    nodes = [wait("w0", signal="s")]
    nodes += [wait(f"w{i}", f"w{i - 1}", signal="s") for i in range(1, 600)]
    saga = Saga(program(*nodes))
    sizes = []
    for number in range(590):
        saga.go()
        saga.signal("s", {"n": number}, f"key-{number:04}")
        saga.go()
        sizes.append(len(encode_state(saga.state)))
    assert sizes[-1] <= sizes[300] + 2 * len("0"), "some numbers got longer, nothing else did"


def test_a_step_of_a_wide_graph_costs_what_is_in_flight_and_not_what_is_done() -> None:
    middle = [task(f"m{i}") for i in range(64)]
    tail = [task(f"t{i}", *([f"t{i - 1}"] if i else [node.name for node in middle])) for i in range(500)]
    graph = program(*middle, *tail)
    state = fold(State(), entry(1, started(graph)))
    wide = calls_of(partial(step, graph, state, "m0"))
    for node in (*middle, tail[0]):  # the first of the tail waits for all of them
        state = step(graph, state, node.name)
    narrow = [calls_of(partial(step, graph, state, "t1"))]
    for node in tail[1:400]:
        state = step(graph, state, node.name)
    narrow.append(calls_of(partial(step, graph, state, "t400")))
    assert narrow[0] == narrow[1] < wide / 4


def test_a_pattern_is_weighed_once_for_all_texts() -> None:
    pattern = Pattern("(a?)" * 100)
    assert calls_of(partial(pattern.charge, ["a"] * 1_000, WorkBudget())) < 10 * 1_000


def document(nodes: int, before: str) -> str:
    lines = [f"  n{i}: {{tool: t, after: {before}{i - 1}}}\n" for i in range(1, nodes)]
    return "name: w\nnodes:\n  n0: {tool: t}\n" + "".join(lines)


def test_compiling_costs_in_proportion_to_the_document() -> None:
    small, large = (calls_of(partial(compile_document, document(n, "n"), TOOLS)) for n in (125, 500))
    assert large < small * 4.5


def test_naming_many_problems_costs_in_proportion_too() -> None:
    """Each suggestion compares a name with all others, so only the first few problems get one."""

    def check(nodes: int) -> None:
        with suppress(InvalidDefinition):
            compile_document(document(nodes, "zz"), TOOLS)

    small, large = (calls_of(partial(check, n)) for n in (125, 500))
    assert large < small * 6
