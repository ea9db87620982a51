"""Rests that a rollback keeps for a later one: a step that it does not come to, and a child that a round has left."""

from __future__ import annotations

from baton.core.log import events as ev
from baton.core.log.state import status_of
from tests.core.asked import steps_of
from tests.core.build import Saga, done, failed, program, ready, task
from tests.core.test_stopped_children import stopped, undoing
from tests.core.test_stopped_steps import LOOP, begun
from tests.core.test_undoing import undoable


def again(saga: Saga, back_to: int = 0) -> None:
    """An operator has the saga rolled back once more."""
    branch = saga.state.lineage.branch + 1
    fork = ev.Forked(cut=saga.state.version, branch=branch, by="ada", at=saga.now, undo=True, back_to=back_to)
    saga.put(fork, epoch=0, invocation="api")
    saga.go()


def gives_up(saga: Saga, slot: str) -> None:
    saga.go(failed(slot, "gone", "permanent"))
    saga.note_told()
    saga.go()


def test_a_step_from_before_the_version_that_could_not_be_undone_is_tried_by_the_rollback_after_it() -> None:
    saga = Saga(program(undoable("a"), undoable("b", "a"), task("c", "b")))
    saga.go(done("a"))
    saga.go(done("b"))
    saga.go(failed("c"))
    for slot in ("b#undo", "a#undo"):
        gives_up(saga, slot)
    assert [one.slot for one in saga.state.undo.failed] == ["b", "a"]
    again(saga, back_to=2)
    assert ready(saga.decision) == ["b#undo"]
    saga.go(done("b#undo"))
    saga.note_told()
    saga.go()
    assert (status_of(saga.state), [one.slot for one in saga.state.undo.failed]) == ("rollback_failed", ["a"])
    again(saga)
    assert [(step.slot, step.generation) for step in steps_of(saga.decision)] == [("a#undo", 0)]
    saga.go(done("a#undo"))
    assert (status_of(saga.state), saga.state.undo.failed) == ("rolled_back", ())
    assert [saga.state.undo.generation(slot) for slot in "ab"] == [1, 1]


def test_a_child_that_the_end_of_its_round_stops_is_undone_in_its_turn() -> None:
    saga = begun(
        LOOP.replace('b: {tool: %s, with: {who: "${ctx.a.output.name}"}', "b: {workflow: other") % "run"
    )
    child = saga.state.children["b@0"].saga
    saga.go(done("c@0"))
    assert stopped(saga) == [("b@0", child)]
    saga.go(done("c@1"))
    saga.go(failed("f"))
    asked: list[tuple[str, str]] = []
    while saga.state.ended is None:
        for slot, name in undoing(saga):
            asked.append((slot, name))
            node, _, rounds = slot.partition("@")
            iteration = (int(rounds.partition("#")[0]),)
            saga.put(ev.ChildUndone(node=node, iteration=iteration, item="undo", child=name))
        saga.go(*(done(slot) for slot in ready(saga.decision)))
        saga.note_told()
    assert asked == [("b@1#undo", "s1.0.b-1"), ("b@0#undo", child)]
    assert status_of(saga.state) == "rolled_back"
