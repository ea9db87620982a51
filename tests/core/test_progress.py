"""How far a saga is: of how many steps, in which round, and what a signal that it waits for must bring."""

from __future__ import annotations

from typing import Any

from baton.core.conditions.model import Compare
from baton.core.graph.graph import FunctionParts, Loop, Node
from baton.core.log import events as ev
from baton.core.read.views import saga_view
from tests.core.build import T0, Saga, chain, done, program, task
from tests.kit.views import as_json


def view(saga: Saga) -> Any:
    return as_json(saga_view(saga.state, saga.program))


NEVER = Compare(left=1, operator="==", right=2)
"""A condition that never holds."""

LOOPED = program(
    task("a"),
    Node(
        name="ask", kind="wait", before=("a",), signal="go", loops=("b",), output_schema={"type": "integer"}
    ),
    task("b", "ask", loops=("b",), loop=Loop(condition=NEVER, max_iterations=5, back_to="ask")),
    task("c", "b"),
)


def test_the_steps_of_a_saga_are_counted_until_a_loop_decides_how_many_there_are() -> None:
    saga = Saga(program(task("a"), task("b", "a"), task("c", "a", when=NEVER), task("d", "b", "c")))
    assert view(saga)["most_steps"] == 4
    saga.go()
    saga.go(done("a"))
    saga.go()
    assert (view(saga)["steps"], view(saga)["most_steps"]) == (1, 3), "what was skipped is not counted"
    assert view(Saga(LOOPED))["most_steps"] is None


def test_a_function_takes_as_many_steps_as_it_asks_for() -> None:
    code = Node(name="b", kind="function", before=("a",), function=FunctionParts(name="code"))
    assert view(Saga(program(task("a"), code)))["most_steps"] is None


def test_a_saga_that_starts_nothing_any_more_does_not_say_how_many_steps_it_will_have() -> None:
    saga = Saga(chain(3))
    saga.put(ev.CancelRequested(at=T0, by="ada", reason="", grace_ms=0))
    assert view(saga)["most_steps"] is None


def test_a_wait_in_a_loop_says_its_rounds_and_what_its_signal_must_bring() -> None:
    saga = Saga(LOOPED)
    saga.go()
    saga.go(done("a"))
    assert view(saga)["active"] == [
        {
            "node": "ask", "iteration": [0], "state": "waiting", "most_rounds": [5],
            "signal": "go", "until": None, "payload": {"type": "integer"},
        }
    ]  # fmt: skip
