"""A workflow node is a child saga: recorded before it is started, and done when it has said how it ended."""

from __future__ import annotations

import pytest

from baton.core.decide.context import FetchedValues
from baton.core.decide.decide import advance, decide
from baton.core.decide.parking import CHILDREN_PER_EVENT
from baton.core.decide.spending import DEFAULT, Bounds
from baton.core.graph.graph import Join
from baton.core.log import codec
from baton.core.log import events as ev
from baton.core.log.records import Child
from baton.core.log.state import LONGEST_ID, status_of
from tests.core.asked import cancels_of, children_cancelled, children_of, needs_of, steps_of
from tests.core.build import Saga, child, done, entry, failed, program, ready, slots, started, task
from tests.kit.sentences import Says


def reported(saga: Saga, status: str = "completed", slot: str = "c", **more: object) -> None:
    one = saga.state.children[slot]
    saga.put(ev.ChildReported(slot=slot, child=one.saga, status=status, **more), epoch=0, invocation="relay")  # type: ignore[arg-type]  # the fields of a report


def test_a_child_is_recorded_with_its_input_before_it_is_started() -> None:
    saga = Saga(program(child("c", arguments={"n": "${input.n}"}, workflow="dinner@2")), {"n": 3})
    decision = saga.go()
    opened = ev.ChildOpened(
        node="c", child="s1.0.c", workflow="dinner@2", input=ev.Value(v={"n": 3}), number=1
    )
    assert saga.entries[-1].events == (opened,)
    assert children_of(decision) == (
        ("c", Child(saga="s1.0.c", workflow="dinner@2", input=ev.Value(v={"n": 3}))),
    )
    assert status_of(saga.state) == "waiting"


def test_an_open_child_is_named_until_it_has_reported() -> None:
    saga = Saga(program(child("c"), task("a", "c")))
    saga.go()
    assert [slot for slot, _ in children_of(saga.go())] == ["c"]
    reported(saga)
    decision = saga.go()
    assert (children_of(decision), ready(decision)) == ((), ["a"])


def test_what_a_child_ended_with_is_the_output_of_its_node() -> None:
    saga = Saga(program(child("c"), task("a", "c", arguments={"x": "${ctx.c.output.n}"})))
    saga.go()
    reported(saga, output=ev.Value(v={"n": 4}))
    (step,) = steps_of(saga.go())
    assert step.arguments == {"x": 4}
    assert saga.entries[-1].events == (
        ev.ChildClosed(node="c", child="s1.0.c", output=ev.Value(v={"n": 4}), emits=(ev.Token("c", "a"),)),
    )
    assert saga.state.children == {}


@pytest.mark.parametrize(
    ("status", "failure"),
    [
        ("failed", ev.Failure("x", "no table")),
        ("cancelled", ev.Failure("cancelled", "enough")),
        ("cancelled", None),
    ],
)
def test_a_child_that_did_not_complete_fails_its_node(
    status: str, failure: ev.Failure | None, says: Says
) -> None:
    saga = Saga(program(child("c")))
    saga.go()
    reported(saga, status, failure=failure)
    saga.go()
    assert saga.kinds == ["step_failed", "saga_ended"]
    assert saga.state.ended is not None
    found = saga.state.ended.failure
    assert found is not None
    assert (found.code, found.node) == ("child_failed", "c")
    says(found.message)
    assert [(one.code, one.message) for one in found.errors] == (
        [(failure.code, failure.message)] if failure else []
    )


def test_children_of_one_entry_are_closed_together() -> None:
    saga = Saga(program(child("c"), child("d"), task("a", "c", "d")))
    saga.go()
    reported(saga, slot="c")
    reported(saga, slot="d")
    assert ready(saga.go()) == ["a"]
    assert saga.kinds == ["child_closed", "child_closed"]


def test_two_children_that_end_together_leave_nothing_held_that_only_they_read() -> None:
    read = {"x": "${ctx.a.output}"}
    nodes = task("a"), child("c", "a", arguments=read), child("d", "a", arguments=read), task("z", "c", "d")
    saga = Saga(program(*nodes))
    saga.go(done("a", 1))
    reported(saga, slot="c")
    reported(saga, slot="d")
    saga.go()
    assert saga.state.outputs == {}


def test_a_childs_name_is_its_parents_with_branch_and_slot_and_so_unique() -> None:
    saga = Saga(program(child("c")))
    saga.put(ev.Forked(cut=1, branch=1, by="ada", at=1), epoch=0)
    saga.go()
    assert saga.state.children["c"].saga == "s1.1.c"


def test_a_childs_name_has_only_characters_that_a_path_can_hold() -> None:
    graph = program(child("c"))
    first = started(graph)
    saga = Saga(graph)
    saga.state = type(saga.state)()
    saga.put(ev.SagaStarted(**{name: getattr(first, name) for name in first.__struct_fields__ if name != "emits"},
                            emits=(ev.Token("", "c", (2, 0)),)))  # fmt: skip
    saga.go()
    assert saga.state.children["c@2.0"].saga == "s1.0.c-2.0"


def test_a_child_whose_input_cannot_be_bound_is_never_opened() -> None:
    saga = Saga(program(child("c", arguments={"x": "${input.nope}"})), {})
    saga.go()
    assert saga.kinds == ["step_failed", "saga_ended"]
    assert saga.state.ended is not None
    assert saga.state.ended.failure is not None
    assert saga.state.ended.failure.code == "input_unbound"


def test_a_child_whose_input_is_in_a_blob_is_opened_once_the_blob_was_read() -> None:
    saga = Saga(program(child("c", arguments={"x": "${input.n}"})), ev.Value(ref="cas://in", size=9))
    assert needs_of(saga.go()) == {"cas://in"}
    assert slots(saga.state) == {"c"}
    assert saga.state.children == {}
    saga.go(blobs={"cas://in": {"n": 1}})
    assert saga.state.children["c"].input == ev.Value(v={"x": 1})


def test_a_saga_that_stops_waits_for_its_open_children() -> None:
    saga = Saga(program(child("c"), child("d"), task("a")))
    saga.go()
    reported(saga, slot="d")
    saga.cancel()
    step = advance(saga.program, saga.state, [], saga.now)
    assert step.events == (), "it does not end before they have"
    assert [(slot, one.saga) for slot, one in children_of(step.decision)] == [("c", "s1.0.c")]
    assert status_of(saga.state) == "running"
    reported(saga, "cancelled", cost=5)
    saga.go()
    assert saga.entries[-1].events == (
        ev.SagaEnded(status="cancelled", failure=ev.Failure("cancelled", "enough")),
    )
    assert (status_of(saga.state), saga.state.money.spent) == ("cancelled", 5)


@pytest.mark.parametrize("status", ["completed", "failed", "cancelled", "rolled_back"])
def test_its_end_is_its_own_however_its_children_end(status: str) -> None:
    saga = Saga(program(child("c"), task("a")))
    saga.go()
    saga.put(*advance(saga.program, saga.state, [failed("a")], saga.now).events)
    assert [slot for slot, _ in children_of(advance(saga.program, saga.state, [], saga.now).decision)] == [
        "c"
    ]
    reported(saga, status)
    saga.go()
    assert saga.state.ended is not None
    assert saga.state.ended.failure is not None
    assert (saga.state.ended.status, saga.state.ended.failure.node) == ("failed", "a")


def test_a_child_that_has_something_to_undo_is_in_the_list_of_a_saga_that_undoes_nothing() -> None:
    saga = Saga(program(child("c"), child("d"), task("a")))
    saga.go()
    saga.cancel()
    reported(saga, "completed", undoable=True)  # just when it was asked to stop
    reported(saga, "cancelled", "d")
    saga.go()
    assert saga.kinds == ["step_stopped", "saga_ended"]
    assert saga.state.undo.can == 1, "a later rollback comes to it"


def test_an_outcome_that_lacks_a_blob_is_not_lost_when_a_join_leaves_a_child_behind() -> None:
    strict = {"output_schema": {"type": "string"}}
    graph = program(
        task("a", **strict),
        task("b"),
        task("c"),
        child("k"),
        task("j", "b", "k", join=Join(need=1)),
    )
    saga = Saga(graph)
    saga.go()
    outcomes = [done("a", ref="cas://large"), done("b"), done("c")]
    step = advance(graph, saga.state, outcomes, saga.now)
    assert not step.events
    assert step.taken == 0
    assert needs_of(step.decision) == {"cas://large"}


@pytest.mark.parametrize(("length", "kind"), [(396, "child_opened"), (397, "step_failed")])
def test_a_child_whose_id_would_be_too_long_for_a_key_fails_its_node(length: int, kind: str) -> None:
    saga = Saga(program(child("c")), saga="s" * length)
    saga.go()
    assert saga.kinds[0] == kind


# ---- thousands of them ---------------------------------------------------------------------------------------------

MANY = 2 * CHILDREN_PER_EVENT + 5


def crowd() -> Saga:
    saga = Saga(program(*(child(f"c{number}") for number in range(MANY))))
    saga.go()
    return saga


def part_of(saga: Saga) -> list[str]:
    """Do what is to be done next for an ending: the children that are asked to stop, and then say so."""
    asked = cancels_of(decide(saga.program, saga.state, saga.now))
    cancelled = {(one.saga, undo) for _, one in asked for undo in (False, True)}
    decision = decide(saga.program, saga.state, saga.now, found=FetchedValues(cancelled=cancelled))
    saga.put(*decision.record)
    return [one.saga for _, one in asked]


def test_the_children_of_a_saga_that_stops_are_named_until_the_last_has_reported() -> None:
    saga = crowd()
    every = list(saga.state.children)
    saga.cancel()
    while left := children_of(advance(saga.program, saga.state, [], saga.now).decision):
        assert [slot for slot, _ in left] == every
        for slot in every[:100]:
            reported(saga, "cancelled", slot, undoable=True)
        del every[:100]
    assert not every
    saga.go()
    assert saga.kinds == ["step_stopped"] * MANY + ["saga_ended"]
    assert saga.state.undo.can == MANY, "a rollback would come to each"


def test_an_end_that_has_no_room_for_all_its_children_takes_several_entries() -> None:
    saga = crowd()
    saga.cancel()
    for slot in saga.state.children:
        reported(saga, "cancelled", slot, undoable=True)
    before = len(saga.entries)
    saga.go(room=10_000)
    assert len(saga.entries) > before + 1
    assert (status_of(saga.state), saga.state.undo.can) == ("cancelled", MANY)


def test_children_that_a_fork_left_are_cancelled_in_parts_too() -> None:
    saga = crowd()
    saga.put(ev.Forked(cut=1, branch=1, by="ada", at=saga.now), epoch=0)
    assert [len(part_of(saga)) for _ in range(3)] == [CHILDREN_PER_EVENT, CHILDREN_PER_EVENT, 5]
    assert (saga.kinds, saga.state.orphaned_children) == (["children_abandoned"], ())
    assert len(saga.state.tokens) == MANY


def test_the_largest_part_fits_into_an_entry_however_long_its_ids_are() -> None:
    ids = [f"{number:0{LONGEST_ID}d}" for number in range(CHILDREN_PER_EVENT)]
    part = children_cancelled(Child(saga=one, workflow="w", input=ev.Value()) for one in ids)
    assert len(codec.encode_entry(entry(2, *part))) < DEFAULT.entry_bytes


def test_only_those_for_which_there_was_time_are_recorded_and_the_rest_follows() -> None:
    saga = crowd()
    saga.put(ev.Forked(cut=1, branch=1, by="ada", at=saga.now), epoch=0)
    saga.put(*children_cancelled(saga.state.orphaned_children[:2]))
    assert len(saga.state.orphaned_children) == MANY - 2
    assert part_of(saga)[0] == "s1.0.c2"


def test_a_child_that_a_fork_left_is_not_heard_any_more() -> None:
    saga = crowd()
    one = saga.state.children["c0"]
    saga.put(ev.Forked(cut=1, branch=1, by="ada", at=saga.now), epoch=0)
    before = saga.state.children
    saga.put(ev.ChildReported(slot="c0", child=one.saga, status="cancelled", cost=5), epoch=0)
    assert (saga.state.children, saga.state.money.spent) == (before, 0)


@pytest.mark.parametrize("has_ended", [False, True])
def test_a_fork_into_the_stopping_opens_what_was_stopped_anew_and_keeps_what_had_completed(
    has_ended: bool,
) -> None:
    saga = crowd()
    saga.cancel()
    reported(saga, "completed", "c0")  # while it was being asked
    reported(saga, "cancelled", "c1")
    reported(saga, "rolled_back", "c2")
    cut = saga.state.version
    if has_ended:
        saga.go()
        assert status_of(saga.state) == "cancelled"
    saga.put(ev.Forked(cut=cut, branch=1, by="ada", at=saga.now), epoch=0)
    assert list(saga.state.children) == ["c0"]
    left = 0 if has_ended else MANY - 3
    assert len(saga.state.orphaned_children) == left, "those that have not ended"
    while saga.state.orphaned_children:
        part_of(saga)
    saga.go()
    assert "c0" not in saga.state.tokens
    assert {one.saga for one in saga.state.children.values()} == {
        f"s1.1.c{number}" for number in range(1, MANY)
    }


def test_an_entry_without_room_for_what_follows_from_one_outcome_leaves_the_next_to_another() -> None:
    parts = [child(f"k{number}", "a") for number in range(5)]
    graph = program(task("a"), task("b"), *parts, task("j", "b", "k0", join=Join(need=1)))
    saga = Saga(graph)
    saga.go()
    step = advance(graph, saga.state, [done("a"), done("b")], saga.now, bounds=Bounds(entry_bytes=600))
    assert (step.taken, step.more) == (1, True)
    saga.go(done("a"), done("b"), room=600)
    assert (sorted(saga.state.children), ready(saga.decision)) == (["k1", "k2", "k3", "k4"], ["j"])


def test_an_outcome_does_not_wait_for_children_that_are_to_be_cancelled() -> None:
    graph = program(task("b"), task("c"), child("k"), task("j", "b", "k", join=Join(need=1)))
    saga = Saga(graph)
    saga.go()
    step = advance(graph, saga.state, [done("b")], saga.now, ["c"])
    saga.put(*step.events)
    assert [one.saga for one in saga.state.orphaned_children] == ["s1.0.k"]
    late = advance(graph, saga.state, [done("c")], saga.now)
    assert [type(event) for event in late.events] == [ev.StepSucceeded]
    assert (late.taken, [one.saga for _, one in cancels_of(late.decision)]) == (1, ["s1.0.k"])


# ---- where they report


def test_children_are_numbered_as_they_are_opened_and_report_in_windows_of_64() -> None:
    saga = crowd()
    numbers = [event.number for event in saga.entries[-1].events if isinstance(event, ev.ChildOpened)]
    assert numbers == list(range(1, MANY + 1))
    windows = [one.window for one in saga.state.children.values()]
    assert windows == [number // 64 for number in numbers]
    assert saga.state.counts.children == MANY


def test_a_new_branch_goes_on_counting() -> None:
    saga = crowd()
    saga.put(ev.Forked(cut=1, branch=1, by="ada", at=saga.now), epoch=0)
    while saga.state.orphaned_children:
        part_of(saga)
    saga.go()
    windows = {one.window for one in saga.state.children.values()}
    assert windows == set(range((MANY + 1) // 64, 2 * MANY // 64 + 1))


def test_children_of_a_log_that_did_not_number_them_report_to_the_first_window() -> None:
    saga = Saga(program(child("c")))
    saga.put(ev.ChildOpened(node="c", child="k", workflow="w", input=ev.Value()))
    assert (saga.state.children["c"].window, saga.state.counts.children) == (0, 0)
