"""Undoing, decided and folded: what is undone, in which order, and what is kept of it."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from baton.core.decide.program import Program
from baton.core.failures.policy import ANY, FAIL, PolicyChange, RetryChange
from baton.core.graph.graph import Catch, Node, Undo
from baton.core.log import events as ev
from baton.core.log.slots import Slot, subject_item
from baton.core.log.snapshots import decode_state, encode_state
from baton.core.log.state import group_of, status_of
from baton.core.log.undos import NotUndone, Undoable, undo_item
from baton.core.nodes.registry import KINDS
from baton.core.read.views import saga_view, undo_view
from tests.core.asked import steps_of
from tests.core.build import Saga, done, failed, program, ready, task, wait
from tests.core.undo_asking import incidents
from tests.kit.views import as_json

AT_ONCE = {ANY: PolicyChange(last=FAIL, retry=RetryChange(max_attempts=1))}


def undoable(name: str, *before: str, arguments: Any = None, keeps: Any = (), **more: Any) -> Node:
    """A task whose tool `t` is undone by `u`."""
    step = Node(
        name=name, kind="task", tool="u", arguments=arguments or {}, failures=more.pop("failures", AT_ONCE)
    )
    return replace(task(name, *before, **more), undo={"t": Undo(step=step, keeps=keeps)})


def kinds(saga: Saga) -> list[str]:
    return [str(event.__struct_config__.tag) for event in saga.entries[-1].events]


def test_items_at_which_others_are_undone() -> None:
    assert [undo_item(""), undo_item("t1-0")] == ["undo", "undo-t1-0"]
    assert [subject_item("undo"), subject_item("undo-t1-0")] == ["", "t1-0"]
    assert [Slot.parse(one).scope for one in ("a@1#undo", "a#t1", "undo")] == ["undo", "", ""]


def test_a_graph_that_undoes_nothing_names_nothing() -> None:
    saga = Saga(program(task("a"), task("b", "a")))
    saga.go(done("a"))
    saga.go(failed("b"))
    assert saga.state.undo == Undoable()
    assert as_json(saga_view(saga.state, saga.program))["undo"] is None
    assert saga.state.ended is not None
    assert (saga.state.ended.status, saga.state.ended.undone) == ("failed", None)


def two() -> Saga:
    saga = Saga(program(undoable("a"), task("b", "a"), undoable("c", "b"), task("d", "c")))
    for name in "abc":
        saga.go(done(name))
    return saga


def test_a_failed_saga_undoes_the_last_first() -> None:
    saga = two()
    assert (saga.state.undo.head, saga.state.undo.can, saga.state.undo.cannot) == (4, 2, 1)
    saga.go(failed("d"))
    assert kinds(saga) == ["step_failed", "undo_began", "undo_step_began"]
    assert ready(saga.decision) == ["c#undo"]
    assert [step.place.scope for step in steps_of(saga.decision)] == ["undo"]
    assert (status_of(saga.state), group_of("compensating")) == ("compensating", "open")
    assert as_json(saga_view(saga.state, saga.program))["active"][0]["label"] == "undo"
    assert decode_state(encode_state(saga.state)) == saga.state
    shown = as_json(undo_view(saga.state, saga.program))
    assert shown is not None
    assert shown["under_way"]["left"] == 2
    saga.go(done("c#undo"))
    assert kinds(saga) == ["step_succeeded", "undo_passed", "undo_step_began"]
    saga.go(done("a#undo"))
    assert kinds(saga) == ["step_succeeded", "saga_ended"]
    end = saga.state.ended
    assert end is not None
    assert (end.status, end.failure and end.failure.node) == ("rolled_back", "d")
    assert end.undone == ev.Undone(done=2, lasts=1, lasting=("b",))
    assert saga.state.undo.spans == ((2, 5),)
    assert (saga.state.undo.can, saga.state.undo.cannot) == (0, 0)
    assert saga.state.undo.generation("a") == 1
    assert saga.state.undo.generation("b") == 0


def test_what_fails_to_be_undone_stands_and_is_taken_up_again() -> None:
    saga = two()
    saga.go(failed("d"))
    saga.go(failed("c#undo", "gone", "permanent"))
    saga.note_told()
    saga.go(done("a#undo"))
    end = saga.state.ended
    assert end is not None
    assert end.undone is not None
    assert (end.status, end.undone.fails, end.undone.failed[0].slot) == ("rollback_failed", 1, "c")
    assert saga.state.undo.generation("c") == 0, "what stands is not done again"
    saga.put(ev.Forked(cut=saga.state.version, branch=1, by="ada", at=saga.now, undo=True, key="k"))
    saga.go()
    assert ready(saga.decision) == ["c#undo"]
    saga.go(done("c#undo"))
    assert saga.state.ended is not None
    assert saga.state.ended.status == "rolled_back"
    assert saga.state.undo.generation("c") == 1


def test_a_fork_keeps_what_was_undone_and_does_it_under_another_key() -> None:
    saga = two()
    saga.go(failed("d"))
    saga.go(failed("c#undo", "gone", "permanent"))
    saga.note_told()
    saga.go(done("a#undo"))
    saga.put(ev.Forked(cut=1, branch=1, by="ada", at=saga.now))
    saga.go()
    assert [step.generation for step in steps_of(saga.decision)] == [1]
    assert (saga.state.undo.head, saga.state.undo.failed, status_of(saga.state)) == (0, (), "running")
    saga.go(done("a"))
    saga.go(done("b"))
    assert [step.generation for step in steps_of(saga.decision)] == [0]
    saga.go(done("c"))
    saga.go(failed("d"))
    assert [(step.slot, step.generation) for step in steps_of(saga.decision)] == [("c#undo", 0)]


def test_two_in_one_entry_are_undone_one_after_the_other() -> None:
    saga = Saga(program(undoable("a"), undoable("b"), task("d", "a", "b")))
    saga.go(done("a"), done("b"))
    saga.go(failed("d"))
    assert ready(saga.decision) == ["b#undo"]
    saga.go(done("b#undo"))
    assert ready(saga.decision) == ["a#undo"]
    saga.go(done("a#undo"))
    assert saga.state.ended is not None
    assert saga.state.ended.undone == ev.Undone(done=2)


def test_all_are_undone_side_by_side_where_that_is_said() -> None:
    made = program(undoable("a"), undoable("b", "a"), task("d", "b"))
    together = Program(replace(made.graph, undo_together=True), KINDS)
    saga = Saga(together)
    saga.go(done("a"))
    saga.go(done("b"))
    saga.go(failed("d"))
    assert ready(saga.decision) == ["b#undo", "a#undo"]
    saga.go(done("a#undo"), running=["b#undo"])
    assert status_of(saga.state) == "compensating"
    saga.go(done("b#undo"))
    assert status_of(saga.state) == "rolled_back"
    assert saga.state.undo.spans == ((2, 4),)


def test_side_by_side_after_a_death_one_at_a_time() -> None:
    made = program(undoable("a"), undoable("b", "a"), task("d", "b"))
    saga = Saga(Program(replace(made.graph, undo_together=True), KINDS))
    saga.go(done("a"))
    saga.go(done("b"))
    saga.go(failed("d"))
    saga.die()
    assert len(ready(saga.go())) == 1
    assert ready(saga.go(running=ready(saga.decision))) == []


def test_arguments_name_what_the_step_got_and_gave() -> None:
    given = {
        "id": "${step.output.id}",
        "n": "${step.input.n?}",
        "m": "${step.input.m?}",
        "who": "${saga.user}",
    }
    saga = Saga(program(undoable("a", arguments=given, keeps=("n",)), task("d", "a")))
    saga.go(replace(done("a", {"id": 7}), kept=ev.Value(v={"n": 3})))
    saga.go(failed("d"))
    assert steps_of(saga.decision)[0].arguments == {"id": 7, "n": 3, "who": "ada"}


def test_values_in_blobs_are_fetched() -> None:
    saga = Saga(program(undoable("a", arguments={"id": "${step.output.id}"}), task("d", "a")))
    saga.go(done("a", ref="cas://sha256/1"))
    saga.go(failed("d"), blobs={"cas://sha256/1": {"id": 7}})
    assert steps_of(saga.decision)[0].arguments == {"id": 7}


@pytest.mark.parametrize("given", ["${step.input.id}", "${step.output.id}", "${input.city}"])
def test_arguments_that_cannot_be_made_are_a_failure(given: str) -> None:
    saga = Saga(program(undoable("a", arguments={"id": given}), task("d", "a")))
    saga.go(done("a", {}))
    saga.go(failed("d"))
    assert incidents(saga) == ["input_unbound"]
    end = saga.state.ended
    assert end is not None
    assert end.undone is not None
    assert [one.code for one in end.undone.failed] == ["input_unbound"]


def test_an_undo_that_the_graph_does_not_have_any_more_is_told() -> None:
    saga = two()
    saga.go(failed("d"))
    nodes = tuple(replace(node, undo={}) for node in saga.program.graph.nodes)
    bare = Program(replace(saga.program.graph, nodes=nodes), KINDS)
    saga.program = bare
    saga.program.has_reversible = True
    saga.go()
    assert incidents(saga) == ["tool_missing"]
    end = saga.state.ended
    assert end is not None
    assert end.undone is not None
    assert (end.undone.failed[0].code, end.undone.lasting) == ("tool_missing", ("b", "a"))


@pytest.mark.parametrize(("known", "told"), [(19, ["tool_missing"]), (20, [])])
def test_of_more_inverses_that_are_not_called_than_are_named_only_the_first_are_told(
    known: int, told: list[str]
) -> None:
    saga = two()
    saga.go(failed("d"))
    before = tuple(NotUndone(slot=f"n{number}", version=1) for number in range(known))
    saga.state = replace(saga.state, undo=replace(saga.state.undo, failed=before))
    saga.program = Program(
        replace(saga.program.graph, nodes=tuple(replace(node, undo={}) for node in saga.program.graph.nodes)),
        KINDS,
    )
    saga.program.has_reversible = True
    saga.go()
    assert incidents(saga) == told


def test_a_saga_that_may_end_without_it_undoes_nothing() -> None:
    saga = Saga(program(undoable("a"), task("d", "a"), failures={ANY: PolicyChange(last=FAIL)}))
    saga.go(done("a"))
    saga.go(failed("d", "gone", "permanent"))
    assert saga.state.ended is not None
    assert (saga.state.ended.status, saga.state.undo.stays) == ("failed", True)


def test_a_cancel_undoes_only_if_it_says_so() -> None:
    for undo, status in ((False, "cancelled"), (True, "rolled_back")):
        saga = Saga(program(undoable("a"), wait("w", "a", signal="go")))
        saga.go(done("a"))
        saga.put(ev.CancelRequested(reason="", by="ada", at=saga.now, grace_ms=0, undo=undo))
        saga.go()
        if undo:
            saga.go(done("a#undo"))
        assert saga.state.ended is not None
        assert saga.state.ended.status == status


def test_a_second_cancel_may_ask_for_it() -> None:
    saga = Saga(program(undoable("a"), task("b", "a")))
    saga.go(done("a"))
    first = ev.CancelRequested(reason="", by="ada", at=saga.now, grace_ms=1_000)
    saga.put(first)
    saga.put(replace(first, grace_ms=60_000, undo=True, back_to=1))
    saga.put(replace(first, grace_ms=0))
    cancel = saga.state.cancel
    assert cancel is not None
    assert (cancel.undo, cancel.back_to, cancel.grace_ms) == (True, 1, 0)


def test_what_was_done_up_to_a_version_stays() -> None:
    saga = two()
    saga.put(ev.CancelRequested(reason="", by="ada", at=saga.now, grace_ms=0, undo=True, back_to=2))
    saga.go()
    saga.go(done("c#undo"))
    end = saga.state.ended
    assert end is not None
    assert (end.status, saga.state.undo.head, saga.state.undo.can) == ("rolled_back", 2, 1)
    assert end.undone == ev.Undone(done=1, lasts=1, lasting=("b",), back_to=2)


def test_a_failure_at_the_end_is_undone_too() -> None:
    saga = Saga(program(undoable("a"), output="${ctx.a.output.no}"))
    saga.go(done("a", {}))
    assert ready(saga.decision) == ["a#undo"]


def test_a_failure_handler_and_an_incident_are_told_what_could_not_be_undone() -> None:
    saga = Saga(program(undoable("a"), task("b", "a")))
    saga.go(done("a"))
    saga.go(failed("b", "business_rule"))
    saga.go(failed("a#undo", "gone", "permanent"))
    saga.note_told()
    saga.go()
    end = saga.state.ended
    assert end is not None
    assert saga.state.given_up == {"a"}
    assert end.report == {"undone": {"done": 0, "failed": ["a"], "stands": [], "doubtful": []}}
    assert replace(end, undone=None).report == {"undone": None}


@pytest.mark.parametrize("undo", [False, True])
def test_a_cancel_decides_about_a_rollback_also_where_a_step_fails_in_its_grace(undo: bool) -> None:
    saga = Saga(program(replace(undoable("a"), after=("b",)), task("b", "a")))
    saga.go(done("a"), running=["b"])
    saga.put(ev.CancelRequested(reason="", by="ada", at=saga.now, grace_ms=60_000, undo=undo))
    saga.go(failed("b", "business_rule"))
    assert status_of(saga.state) == ("compensating" if undo else "cancelled")


def test_where_a_failure_is_caught_its_rule_does_not_keep_what_was_done_when_another_step_fails() -> None:
    quiet = {ANY: PolicyChange(ladder=())}
    b = replace(task("b", "a", failures=quiet, catch=(Catch(then=("c",)),)), after=("c",))
    saga = Saga(program(replace(undoable("a"), after=("b",)), b, task("c", "b")))
    saga.go(done("a"))
    saga.go(failed("b", "business_rule"))
    saga.go(failed("c", "business_rule"))
    assert ready(saga.decision) == ["a#undo"]


def test_a_step_that_runs_when_the_saga_is_to_be_undone_is_stopped_and_one_in_doubt_is_looked_at() -> None:
    once = replace(undoable("b"), effect="once")
    saga = Saga(program(undoable("a"), once))
    saga.go(done("a"), running=["b"])
    saga.die()
    saga.put(ev.CancelRequested(reason="", by="ada", at=saga.now, grace_ms=0, undo=True))
    step = steps_of(saga.go())[0]
    assert (step.slot, step.look, step.failure and step.failure.code) == ("b", True, "cancelled")
    saga.go(running=["b"])
    assert saga.decision.commands == ()
    saga.go(done("b"))
    assert ready(saga.decision) == ["b#undo"]


def test_events_that_come_twice_change_nothing() -> None:
    saga = two()
    saga.go(failed("d"))
    state = saga.state
    for event in (
        ev.UndoBegan(reason="", at=1),
        ev.UndoStepBegan(node="c", item="undo", at=1, version=4),
        ev.UndoPassed(node="b", version=9),
    ):
        saga.put(event)
        assert replace(saga.state, version=state.version, last_at=state.last_at) == state
    plain = Saga(program(task("a")))
    before = plain.state
    for event in (
        ev.UndoPassed(node="b", version=9),
        ev.UndoStepBegan(node="c", item="undo", at=1, version=4),
    ):
        plain.put(event)
    plain.put(ev.ChildUndone(node="c", item="undo", child="x"))
    assert plain.state.undo == before.undo


def test_what_is_undone_in_the_same_entry_is_read_once_that_is_written() -> None:
    saga = Saga(program(undoable("a"), task("d")))
    saga.go(done("a"), failed("d"))
    assert ready(saga.decision) == ["a#undo"]
    assert [len(entry.events) for entry in saga.entries] == [1, 3, 1]
