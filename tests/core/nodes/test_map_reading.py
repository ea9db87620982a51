"""What the items of a map read, and for how long that is kept; what begins beside a node that fails the saga."""

from __future__ import annotations

from typing import Any

from baton.core.decide.decide import advance
from baton.core.decide.program import Program
from baton.core.decide.spending import Bounds
from baton.core.documents.compile import compile_document
from baton.core.log import events as ev
from baton.core.nodes.registry import KINDS
from tests.core.asked import steps_of
from tests.core.build import Saga, done, failed, tool_spec

TOOLS = {"t": tool_spec("t", x={}, y={})}


def saga_of(nodes: str, given: Any = None) -> Saga:
    saga = Saga(Program(compile_document(f"name: w\nnodes: {{{nodes}}}", TOOLS), KINDS), given)
    saga.go()
    return saga


def test_an_item_knows_the_failure_that_its_map_handles() -> None:
    saga = saga_of(
        "a: {tool: t, catch: m}, m: {tool: t, map: [1, 2], with: {x: '${last_error.code}', y: '${item}'}}"
    )
    saga.go(failed("a", "not_there", "permanent"))
    assert [step.arguments for step in steps_of(saga.decision)] == [
        {"x": "not_there", "y": 1},
        {"x": "not_there", "y": 2},
    ]


def test_an_item_knows_what_has_come_to_the_join_of_its_map() -> None:
    saga = saga_of(
        "a: {tool: t}, b: {tool: t}, m: {tool: t, map: [1], after: [a, b], with: {x: '${join.outputs}', y: '${join.arrived}'}}"
    )
    saga.go(done("a", 1), done("b", 2))
    (step,) = steps_of(saga.decision)
    assert step.arguments == {"x": {"a": 1, "b": 2}, "y": ["a", "b"]}


def test_what_only_the_items_of_a_map_have_read_is_forgotten_with_it() -> None:
    nodes = "a: {tool: t}, m: {tool: t, map: {over: [1, 2], wait_for: any}, after: a, with: {x: '${ctx.a.output}'}}, b: {tool: t, after: m}"
    saga = saga_of(nodes)
    saga.go(done("a", 1))
    assert set(saga.state.outputs) == {"a"}
    saga.go(done("m#1", 2), running=["m#0"])
    assert set(saga.state.tokens) == {"b"}
    assert saga.state.outputs == {}


def test_what_is_done_about_a_child_that_has_failed_is_in_the_entry_that_says_so() -> None:
    saga = saga_of("c: {workflow: v, on_failure: ask_user}")
    why = ev.Failure("business_rule", "no")
    saga.put(ev.ChildReported(slot="c", child="s1.0.c", status="failed", failure=why))
    step = advance(saga.program, saga.state, (), saga.now, bounds=Bounds(entry_bytes=1))
    kinds = [type(event) for event in step.events]
    assert kinds == [ev.AttemptFailed, ev.StrategyChosen, ev.NoticeDue]


def test_a_saga_that_has_failed_opens_no_child() -> None:
    saga = saga_of("a: {tool: t, with: {x: '${input.x}'}}, c: {workflow: v}")
    events = [event for entry in saga.entries for event in entry.events]
    assert not [event for event in events if isinstance(event, ev.ChildOpened | ev.ChildrenAbandoned)]
    assert saga.state.ended is not None
    assert saga.state.ended.failure is not None
    assert saga.state.ended.failure.code == "input_unbound"
