"""A poll is undone once, by its last try: its tries are one act."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from baton.core.conditions.model import Compare
from baton.core.graph.graph import Loop, Node, Poll
from baton.core.log import events as ev
from baton.core.log.state import status_of
from tests.core.build import Saga, done, failed, program, ready, task
from tests.core.test_undoing import undoable
from tests.core.undo_asking import say

AGAIN = Compare(left="${output.again}", operator="==", right=True)


def poll(name: str, *before: str) -> Node:
    loop = Loop(condition=AGAIN, max_iterations=9, back_to=name, poll=Poll())
    return undoable(name, *before, loop=loop, loops=(name,))


def polled(*more: Node, tries: int = 3, together: bool = False) -> Saga:
    """A poll of some tries, of which the saga makes no more."""
    saga = Saga(program(poll("a"), *more))
    saga.program.graph = replace(saga.program.graph, undo_together=together)
    for number in range(tries):
        saga.go(done(f"a@{number}", {"again": True}))
    return saga


def passed(saga: Saga) -> list[str]:
    events = [event for entry in saga.entries for event in entry.events]
    return [event.slot for event in events if isinstance(event, ev.UndoPassed) and event.polled]


def test_its_last_try_is_undone_and_the_others_with_it() -> None:
    saga = polled()
    saga.go(failed("a@3", "sold_out", "permanent"))
    assert ready(saga.decision) == ["a@2#undo"]
    saga.go(done("a@2#undo"))
    assert (status_of(saga.state), passed(saga), saga.state.undo.can) == ("rolled_back", ["a@1", "a@0"], 0)
    assert saga.state.undo.spans == ((2, saga.state.undo.spans[0][1]),), (
        "no fork goes on from between its tries"
    )
    assert [saga.state.undo.generation(f"a@{number}") for number in range(3)] == [1, 1, 1]


def test_where_that_fails_the_others_keep_their_keys_too() -> None:
    saga = polled()
    saga.go(failed("a@3", "sold_out", "permanent"))
    saga.go(failed("a@2#undo", "gone", "permanent"))
    saga.note_told()
    saga.go()
    assert (status_of(saga.state), passed(saga), saga.state.undo.spans) == (
        "rollback_failed",
        ["a@1", "a@0"],
        (),
    )
    assert [saga.state.undo.generation(f"a@{number}") for number in range(3)] == [0, 0, 0]


def test_of_a_last_try_that_has_not_happened_the_one_before_it_is_undone() -> None:
    saga = polled()
    saga.go(failed("a@3", "timeout"))
    say(saga, "a@3#undo", "retry")
    assert ready(saga.decision) == ["a@2#undo"]


@pytest.mark.parametrize("together", [True, False])
def test_no_two_tries_are_undone_at_a_time(together: bool) -> None:
    saga = polled(undoable("b"), together=together)
    saga.go(done("b"))
    saga.go(failed("a@3", "sold_out", "permanent"))
    assert ready(saga.decision) == (["b#undo", "a@2#undo"] if together else ["b#undo"])
    saga.go(done("b#undo"), running=["a@2#undo"] if together else ())
    saga.go(done("a@2#undo"))
    assert (status_of(saga.state), passed(saga)) == ("rolled_back", ["a@1", "a@0"])


@pytest.mark.parametrize("together", [True, False])
def test_another_round_of_the_loop_around_it_is_another_poll(together: bool) -> None:
    outer = Loop(condition=AGAIN, max_iterations=2, back_to="a")
    inner = Loop(condition=AGAIN, max_iterations=9, back_to="a", poll=Poll())
    a = undoable("a", loop=inner, loops=("b", "a"))
    saga = Saga(program(a, task("b", "a", loop=outer, loops=("b",))))
    saga.program.graph = replace(saga.program.graph, undo_together=together)
    for slot in ("a@0.0", "a@0.1"):
        saga.go(done(slot, {"again": slot == "a@0.0"}))
    saga.go(done("b@0", {"again": True}))
    saga.go(done("a@1.0", {"again": True}))
    saga.go(failed("a@1.1", "sold_out", "permanent"))
    assert ready(saga.decision) == ["a@1.0#undo", *(["a@0.1#undo"] if together else [])]
    saga.go(done("a@1.0#undo"))
    assert ready(saga.decision) == ["a@0.1#undo"]
    saga.go(done("a@0.1#undo"))
    assert (status_of(saga.state), passed(saga)) == ("rolled_back", ["a@0.0"])
