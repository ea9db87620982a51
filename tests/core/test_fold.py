"""A fold is the only way from a log to a state: in order, each event counted once, trusting its writer.

What each kind of event leaves behind in the state. Forks are in test_fork.py, signals in
test_waits.py; test_random_graphs.py counts the tokens of whole sagas.
"""

from __future__ import annotations

import typing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from baton.core.log import events as ev
from baton.core.log.folding import fold as fold_module
from baton.core.log.folding.fold import apply, fold
from baton.core.log.records import Child
from baton.core.log.state import State
from baton.core.log.work import Wait
from baton.errors import CorruptLog
from tests.core.build import EVENTS, FEW, PROPERTY, T0, Saga, child, done, entry, program, slots, task, wait
from tests.kit.sentences import Says

PAIR = program(task("a"), task("b", "a"))


def succeeded(
    node: str, *emits: ev.Token, iteration: tuple[int, ...] = (), **more: typing.Any
) -> ev.StepSucceeded:
    fields: dict[str, typing.Any] = {
        "attempt": 1,
        "output": ev.Value(v=node),
        "started_at": T0,
        "ended_at": T0,
        "tool": "t",
        "tool_version": "1",
        "schema_hash": "h",
        **more,
    }
    return ev.StepSucceeded(node=node, iteration=iteration, emits=emits, **fields)


def test_every_kind_of_event_has_its_function() -> None:
    assert set(fold_module._TABLE) == set(typing.get_args(ev.Event))


# ---- order -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [1, 3, 0, -1])
def test_only_the_next_version_can_follow(version: int, says: Says) -> None:
    state = Saga(PAIR).state
    with says.raised(CorruptLog):
        fold(state, entry(version, ev.Resumed(by="x", at=1)))


def test_an_entry_of_another_branch_cannot_follow(says: Says) -> None:
    state = Saga(PAIR).state
    with says.raised(CorruptLog):
        fold(state, entry(2, ev.Resumed(by="x", at=1), branch=1))


def test_a_fork_cannot_be_folded_as_if_it_went_forward() -> None:
    with pytest.raises(CorruptLog, match="branch 1"):
        fold(Saga(PAIR).state, entry(2, ev.Forked(cut=1, branch=1, by="x", at=1)))


@given(st.lists(EVENTS, max_size=3))
@PROPERTY
def test_a_fold_changes_nothing_that_it_was_given(events: list[ev.Event]) -> None:
    saga = Saga(program(task("a"), wait("w", signal="s"), child("c")))
    saga.go()
    before = repr(saga.state)
    for event in events:
        if not isinstance(event, ev.Forked):
            apply(saga.state, event)
    assert repr(saga.state) == before


# ---- the entry around the events ------------------------------------------------------------------------------


def test_the_first_entry_names_the_saga() -> None:
    state = Saga(PAIR, {"n": 1}, parent="T#acme#SAGA#p", slot="c").state
    assert (
        state.origin.workflow,
        state.origin.graph,
        state.origin.tenant,
        state.origin.user,
        state.origin.saga,
    ) == (
        "w",
        "hash",
        "acme",
        "ada",
        "s1",
    )
    assert (state.origin.input, state.origin.started_at) == (ev.Value(v={"n": 1}), T0)
    assert (state.origin.parent, state.origin.parent_slot) == ("T#acme#SAGA#p", "c")


def test_the_trace_is_that_of_the_first_entry() -> None:
    event = Saga(PAIR).entries[0].events[0]
    state = fold(State(), entry(1, event, traceparent="00-a"))
    state = fold(state, entry(2, ev.Resumed(by="x", at=1), traceparent="00-b"))
    assert state.origin.traceparent == "00-a"


def test_the_state_knows_when_and_by_whom_it_was_written_last() -> None:
    state = fold(Saga(PAIR).state, entry(2, ev.Resumed(by="x", at=1), at=77, epoch=4, invocation="i4"))
    assert (state.version, state.last_at, state.epoch, state.invocation) == (2, 77, 4, "i4")


def test_who_writes_without_a_lease_leaves_epoch_and_invocation_alone() -> None:
    saga = Saga(PAIR)
    saga.go(done("a"))
    saga.signal("s")
    assert (saga.state.epoch, saga.state.invocation, saga.state.counts.invocations) == (1, "i1", 1)


def test_invocations_are_counted_and_not_their_entries() -> None:
    saga = Saga(program(task("a"), task("b", "a"), task("c", "b")))
    saga.go(done("a"))
    saga.go(done("b"))
    assert saga.state.counts.invocations == 1
    saga.die()
    assert saga.state.counts.invocations == 2


# ---- second delivery ---------------------------------------------------------------------------------------


def test_a_second_delivery_of_a_result_is_a_no_op() -> None:
    saga = Saga(PAIR)
    event = succeeded("a", ev.Token("a", "b"))
    once = apply(saga.state, event)
    assert once.counts.steps == 1
    assert apply(once, event) is once


def test_a_second_delivery_of_a_failure_or_an_interruption_is_a_no_op() -> None:
    state = apply(Saga(PAIR).state, succeeded("a", ev.Token("a", "b")))
    common: dict[str, typing.Any] = {"node": "a", "started_at": T0, "ended_at": T0}
    late = ev.StepFailed(
        attempt=1, failure=ev.Failure("x", "y"), tool="t", tool_version="1", schema_hash="h", **common
    )
    assert apply(state, late) is state
    assert apply(state, ev.StepInterrupted(budget_ms=1, **common)) is state


def test_a_wait_and_a_child_are_opened_once_and_only_where_a_token_waits() -> None:
    saga = Saga(program(wait("w", signal="s"), child("c")))
    opened = (
        ev.WaitOpened(node="w", until=5),
        ev.ChildOpened(node="c", child="k", workflow="o", input=ev.Value()),
    )
    state = apply(apply(saga.state, opened[0]), opened[1])
    assert state.open == {"w": Wait(until=5), "c": Child(saga="k", workflow="o", input=ev.Value())}
    for event in opened:
        assert apply(state, event) is state
    assert apply(state, ev.WaitOpened(node="elsewhere")) is state
    elsewhere = ev.ChildOpened(node="elsewhere", child="k", workflow="o", input=ev.Value())
    assert apply(state, elsewhere) is state


def test_a_node_is_admitted_once_and_only_where_a_token_waits() -> None:
    state = apply(Saga(PAIR).state, ev.NodeAdmitted(node="a"))
    assert state.admitted == ("a",)
    assert apply(state, ev.NodeAdmitted(node="a")) is state
    assert apply(state, ev.NodeAdmitted(node="b")) is state


def test_a_wait_or_a_child_that_is_closed_stays_closed() -> None:
    saga = Saga(program(wait("w", signal="s"), child("c")))
    saga.go()
    closed = ev.WaitClosed(node="w", by="time", output=ev.Value())
    state = apply(saga.state, closed)
    assert (list(state.open), slots(state)) == (["c"], {"c"})
    assert apply(state, closed) is state
    ended = ev.ChildClosed(node="c", child="s1.0.c", output=ev.Value(v=1))
    state = apply(state, ended)
    assert (state.open, state.tokens) == ({}, {})
    assert apply(state, ended) is state


def test_a_skipped_node_is_no_step() -> None:
    event = ev.NodeSkipped(node="a", emits=(ev.Token("a", "b", (), False),))
    state = apply(Saga(PAIR).state, event)
    assert (state.tokens, state.outputs, state.counts.steps) == ({"b": {"a": False}}, {}, 0)
    assert apply(state, event) is state


# ---- outputs -----------------------------------------------------------------------------------------------


def test_an_output_is_kept_only_where_a_node_can_read_it() -> None:
    state = Saga(PAIR).state
    assert apply(state, succeeded("a", ev.Token("a", "b"))).outputs == {"a": ev.Value(v="a")}
    assert apply(state, succeeded("a", ev.Token("a", "b"), keep=False)).outputs == {}


@pytest.mark.parametrize("kind", [ev.WaitClosed, ev.ChildClosed])
def test_what_a_wait_or_a_child_gave_is_kept_only_where_a_node_can_read_it(kind: typing.Any) -> None:
    saga = Saga(program(wait("w", signal="s"), child("c")))
    saga.go()
    more = {"node": "w", "by": "k"} if kind is ev.WaitClosed else {"node": "c", "child": "s1.0.c"}
    kept = apply(saga.state, kind(output=ev.Value(v=1), **more))
    dropped = apply(saga.state, kind(output=ev.Value(v=1), keep=False, **more))
    assert (kept.outputs, dropped.outputs) == ({more["node"]: ev.Value(v=1)}, {})


def test_outputs_are_forgotten_in_the_same_step_that_makes_them_useless() -> None:
    state = apply(Saga(PAIR).state, succeeded("a", ev.Token("a", "b")))
    assert apply(state, succeeded("b", forget=("a",), keep=False)).outputs == {}


# ---- children ----------------------------------------------------------------------------------------------


def test_the_report_of_a_child_counts_once_and_only_from_that_child() -> None:
    saga = Saga(program(child("c")))
    saga.go()
    other = ev.ChildReported(slot="c", child="another", status="completed")
    assert apply(saga.state, other) is saga.state
    nowhere = ev.ChildReported(slot="x", child="s1.0.c", status="completed")
    assert apply(saga.state, nowhere) is saga.state
    told = apply(
        saga.state, ev.ChildReported(slot="c", child="s1.0.c", status="failed", failure=ev.Failure("x", "y"))
    )
    assert told.children["c"].status == "failed"
    assert told.children["c"].failure == ev.Failure("x", "y")
    again = ev.ChildReported(slot="c", child="s1.0.c", status="completed")
    assert apply(told, again) is told


# ---- cancel, parking, the end ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("second_at", "second_grace", "deadline"),
    [(T0 + 10, 20, T0 + 30), (T0 + 10, 90, T0 + 100), (T0 + 10, 95, T0 + 100), (T0 + 99, 0, T0 + 99)],
)
def test_a_second_cancel_can_only_shorten_the_first(second_at: int, second_grace: int, deadline: int) -> None:
    first = ev.CancelRequested(reason="a", by="x", at=T0, grace_ms=100)
    second = ev.CancelRequested(reason="b", by="y", at=second_at, grace_ms=second_grace)
    cancel = apply(apply(Saga(PAIR).state, first), second).cancel
    assert cancel is not None
    assert cancel.at + cancel.grace_ms == deadline


def test_the_first_failure_is_the_one_that_is_told() -> None:
    saga = Saga(program(task("a"), task("b")))
    for node in ("a", "b"):
        event = ev.StepFailed(
            node=node, attempt=1, failure=ev.Failure("c", node), started_at=1, ended_at=2,
            tool="t", tool_version="1", schema_hash="h",
        )  # fmt: skip
        saga.put(event)
    assert saga.state.failure == ev.Failure("c", "a")


def test_deaths_in_a_row_are_counted_until_something_is_settled() -> None:
    saga = Saga(PAIR)
    saga.die()
    saga.die()
    assert (saga.state.recovery.consecutive_crashes, saga.state.counts.revivals) == (2, 2)
    saga.go(done("a"))
    assert (saga.state.recovery.consecutive_crashes, saga.state.counts.revivals) == (0, 2)


def test_a_death_after_an_invocation_that_ended_in_order_is_the_first_of_a_new_row() -> None:
    saga = Saga(PAIR)
    saga.die()
    saga.die()
    saga.epoch += 1  # a worker took the lease and gave it back
    saga.die()
    assert (saga.state.recovery.consecutive_crashes, saga.state.counts.revivals) == (1, 3)


def test_a_failure_is_progress_too() -> None:
    saga = Saga(PAIR)
    saga.die()
    event = ev.StepFailed(
        node="a", attempt=1, failure=ev.Failure("c", "m"), started_at=1, ended_at=2,
        tool="t", tool_version="1", schema_hash="h",
    )  # fmt: skip
    assert apply(saga.state, event).recovery.consecutive_crashes == 0


def test_the_epoch_of_the_last_revival_is_the_careful_one() -> None:
    saga = Saga(PAIR)
    saga.epoch = 6
    saga.die()
    assert (saga.state.recovery.epoch, saga.state.epoch) == (7, 7)
    saga.epoch = 8
    saga.put(ev.Resumed(by="x", at=1))
    assert (saga.state.recovery.epoch, saga.state.epoch) == (7, 8)


def test_interruptions_are_counted_by_slot_until_there_is_any_progress() -> None:
    saga = Saga(program(task("a"), task("b"), task("c", "a", "b")))
    cut: dict[str, typing.Any] = {"started_at": 1, "ended_at": 2, "budget_ms": 3}
    saga.put(ev.StepInterrupted(node="a", **cut), ev.StepInterrupted(node="b", **cut))
    saga.put(ev.StepInterrupted(node="a", **cut))
    assert (saga.state.recovery.interruptions, saga.state.counts.interrupted) == ({"a": 2, "b": 1}, 3)
    saga.go(done("a"))
    assert (saga.state.recovery.interruptions, saga.state.counts.interrupted) == ({}, 3)


def test_a_person_who_resumes_gives_a_parked_saga_a_fresh_start() -> None:
    saga = Saga(PAIR)
    for _ in range(3):
        saga.die()
    saga.put(ev.StepInterrupted(node="a", started_at=1, ended_at=2, budget_ms=3))
    saga.go()
    assert saga.state.parked is not None
    saga.put(ev.Resumed(by="ada", at=T0), epoch=0)
    state = saga.state
    assert (state.parked is None, state.recovery.consecutive_crashes, state.recovery.interruptions) == (
        True,
        0,
        {},
    )


def test_the_end_clears_whatever_was_still_open() -> None:
    saga = Saga(program(task("a"), wait("w", signal="s"), child("c"), task("d", "a", "w", "c")))
    saga.go(done("a", 1))
    saga.signal("other")
    saga.put(ev.SagaEnded(status="failed", failure=ev.Failure("x", "y")))
    state = saga.state
    assert (state.tokens, state.outputs, state.open) == ({}, {}, {})
    assert (state.signals, state.recovery.interruptions, state.in_flight) == ((), {}, 0)
    assert state.ended == ev.SagaEnded(status="failed", failure=ev.Failure("x", "y"))
    assert list(state.keys) == ["other/k-other"]


def test_an_edge_that_is_told_twice_has_spoken_once() -> None:
    saga = Saga(program(task("a"), task("b"), task("j", "a", "b")))
    token = ev.Token("a", "j")
    state = apply(apply(saga.state, succeeded("a", token)), succeeded("b", token))
    assert state.tokens == {"j": {"a": True}}


# ---- rounds of a loop ----------------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 5), max_size=3).map(tuple))
@FEW
def test_tokens_of_one_round_are_not_those_of_another(iteration: tuple[int, ...]) -> None:
    emits = (ev.Token("", "a", iteration), ev.Token("", "a", (*iteration, 9)))
    first = Saga(PAIR).entries[0].events[0]
    assert isinstance(first, ev.SagaStarted)
    state = fold(
        State(),
        entry(
            1, ev.SagaStarted(**{f: getattr(first, f) for f in first.__struct_fields__} | {"emits": emits})
        ),
    )
    assert state.in_flight == 2
    state = apply(state, succeeded("a", ev.Token("a", "b", iteration), iteration=iteration))
    assert state.in_flight == 2
    assert len(state.tokens) == 2
