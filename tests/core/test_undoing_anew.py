"""Which keys steps have when a saga goes on from before what was undone."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from baton.core.graph.graph import Catch, Loop, Node
from baton.core.limits import Limits
from baton.core.log import events as ev
from baton.core.log.incarnations import Keys, ReplacedSaga
from baton.core.log.state import UNKNOWN_OUTCOME, status_of
from tests.core.asked import steps_of
from tests.core.build import Saga, done, failed, program, task
from tests.core.graphs_of import again
from tests.core.test_undoing import AT_ONCE, undoable
from tests.core.undo_asking import say

CANCEL = ev.CancelRequested(reason="", by="ada", at=0, grace_ms=0, undo=True)


def rounds() -> Saga:
    """A loop of three rounds at most, and a step behind it."""
    loop = Loop(condition=again(), max_iterations=3, back_to="a")
    return Saga(program(undoable("a", effect="once", loop=loop, loops=("a",)), task("z", "a")))


def gone_through_again(saga: Saga) -> list[tuple[str, int]]:
    """The steps and the generations of their keys when a saga that was undone goes through its first two rounds again."""
    saga.put(ev.Forked(cut=1, branch=1, by="ada", at=saga.now))
    saga.go()
    found = [(step.slot, step.generation) for step in steps_of(saga.decision)]
    saga.go(done("a@0"))
    return [*found, *((step.slot, step.generation) for step in steps_of(saga.decision))]


def test_a_round_that_nothing_undoes_keeps_its_key_when_others_of_its_node_are_undone() -> None:
    """Otherwise a saga that is forked would do again what has stayed."""
    saga = rounds()
    saga.go(done("a@0"))
    saga.go(replace(done("a@1"), tool="other"))
    saga.go(failed("a@2"))
    saga.go(done("a@0#undo"))
    assert saga.state.ended is not None
    assert saga.state.ended.undone == ev.Undone(done=1, lasts=1, lasting=("a@1",))
    assert gone_through_again(saga) == [("a@0", 1), ("a@1", 0)]


def test_a_round_that_may_have_happened_keeps_its_key_when_others_of_its_node_are_undone() -> None:
    """Otherwise it could happen twice: under its old key the claim is met, and a person looks."""
    saga = rounds()
    saga.go(done("a@0"))
    saga.go(failed("a@1", UNKNOWN_OUTCOME))
    saga.put(CANCEL)
    saga.go()
    say(saga, "a@1#undo", "fail")
    saga.go(done("a@0#undo"))
    saga.now += Limits().untold_end_ms  # people are told before the end, if they can be
    saga.go()
    assert status_of(saga.state) == "rollback_failed"
    assert saga.state.undo.in_doubt == ("a@1",)
    assert gone_through_again(saga) == [("a@0", 1), ("a@1", 0)]


@pytest.mark.parametrize(("node", "named"), [(undoable("b"), ("b",)), (task("b"), ())])
def test_a_step_that_is_cut_off_each_time_and_could_have_been_undone_is_named(
    node: Node, named: tuple[str, ...]
) -> None:
    """Its output has not come, so that its inverse cannot be called: the saga does not say that all is undone."""
    saga = Saga(program(undoable("a"), node))
    saga.go(done("a"))
    cut_off = ev.StepInterrupted(node="b", started_at=1, ended_at=2, budget_ms=1)
    saga.put(cut_off, cut_off, cut_off, CANCEL)
    saga.go()
    if named:
        say(saga, "b#undo", "fail")
    saga.go(done("a#undo"))
    assert saga.state.ended is not None
    assert saga.state.ended.undone == ev.Undone(done=1, doubtful=named, doubts=len(named))
    assert status_of(saga.state) == ("rollback_failed" if named else "rolled_back")


def test_what_may_have_happened_before_anything_was_done_is_named_too() -> None:
    first = undoable("a", effect="once", failures=AT_ONCE)
    saga = Saga(program(replace(first, catch=(Catch(then=("b",)),)), undoable("b", "a"), task("c", "b")))
    saga.put(
        ev.StepFailed(
            node="a",
            attempt=1,
            tool="t",
            tool_version="",
            schema_hash="",
            failure=ev.Failure(UNKNOWN_OUTCOME, "no answer"),
            started_at=1,
            ended_at=2,
            emits=(ev.Token("a", "b"),),
        )
    )
    saga.put(ev.Forked(cut=2, branch=1, by="ada", at=saga.now))
    saga.go()
    saga.go(done("b"))
    saga.go(failed("c"))
    saga.go(done("b#undo"))
    assert status_of(saga.state) == "rollback_failed"
    assert saga.state.undo.doubtful == ("a",)


def test_what_could_not_be_undone_is_tried_once_after_a_fork_to_before_it_was_tried() -> None:
    saga = Saga(program(undoable("a"), undoable("b", "a"), task("c", "b")))
    saga.go(done("a"))
    saga.go(done("b"))
    saga.go(failed("c"))
    saga.go(done("b#undo"))
    saga.go(failed("a#undo", "closed", "permanent"))
    saga.note_told()
    saga.go()
    assert status_of(saga.state) == "rollback_failed"
    saga.put(ev.Forked(cut=2, branch=1, by="ada", at=saga.now))
    assert (saga.state.undo.head, saga.state.undo.failed) == (2, ())
    saga.put(CANCEL)
    saga.go()
    saga.go(done("a#undo"))
    assert saga.state.ended is not None
    assert saga.state.ended.undone == ev.Undone(done=1)


def test_a_saga_does_anew_what_the_one_in_its_place_has_undone_and_nothing_else() -> None:
    before = (ReplacedSaga("s0.0.a", 1),)
    keys = Keys(rounds={"a": ((),), "b": ((),)}, standing={"b": 1})
    saga = Saga(program(undoable("a"), undoable("b"), task("c")), before=before, keys=keys)
    assert saga.state.origin.before == before
    saga.go()
    assert {step.slot: step.generation for step in steps_of(saga.decision)} == {"a": 1, "b": 0, "c": 0}
    saga.go(done("a"))
    saga.put(ev.Forked(cut=1, branch=1, by="ada", at=saga.now))
    saga.go()
    assert {step.slot: step.generation for step in steps_of(saga.decision)} == {"a": 1, "b": 0, "c": 0}
