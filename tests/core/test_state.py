"""Status and snapshots: what a state says about itself, and how it is stored."""

from __future__ import annotations

import json
import typing
from typing import Any

import msgspec
import pytest
from hypothesis import given

from baton.core.failures.alternatives import Alternative
from baton.core.failures.strategies.base import History
from baton.core.log import events as ev
from baton.core.log.records import Paused
from baton.core.log.scopes import MadeCall
from baton.core.log.snapshots import PARTS, SHAPE, decode_state, encode_moved, encode_state, moved_to
from baton.core.log.state import (
    FINISHED,
    WAITING,
    Failing,
    Money,
    Outbox,
    Recovery,
    State,
    Used,
    group_of,
    status_of,
)
from baton.core.log.work import Journal
from tests.core.build import PROPERTY, Saga, chain, child, done, of_struct, program, task, wait

# ---- status ----------------------------------------------------------------------------------------------------


def test_a_saga_without_an_entry_is_pending() -> None:
    assert status_of(State()) == "pending"


@pytest.mark.parametrize("status", ["completed", "failed", "cancelled"])
def test_an_ended_saga_has_the_status_of_its_end(status: str) -> None:
    saga = Saga(chain(1))
    saga.put(ev.Parked(code="x", message="y"))
    saga.put(ev.SagaEnded(status=status))
    assert status_of(saga.state) == status


def test_a_parked_saga_is_parked_until_it_is_cancelled_or_resumed() -> None:
    saga = Saga(chain(1))
    saga.put(ev.Parked(code="x", message="y"))
    assert status_of(saga.state) == "parked"
    assert status_of(Saga.put(saga, ev.Resumed(by="x", at=1))) == "running"


def test_a_saga_waits_when_all_it_has_are_open_waits_and_children() -> None:
    saga = Saga(program(wait("w", signal="s"), child("c"), task("a")))
    saga.go()
    assert status_of(saga.state) == "running"
    saga.go(done("a"))
    assert status_of(saga.state) == "waiting"


def test_a_join_that_still_misses_an_edge_does_not_make_a_waiting_saga_run() -> None:
    saga = Saga(program(task("a"), wait("w", signal="s"), task("j", "a", "w"), task("k", "a")))
    saga.go()
    saga.go(done("a"))
    assert status_of(saga.state, saga.program) == "running", "k is ready"
    saga.go(done("k"))
    assert status_of(saga.state, saga.program) == "waiting"
    assert status_of(saga.state) == "running", "without the graph it is unknown"


def test_a_saga_with_nothing_open_runs() -> None:
    assert status_of(Saga(chain(1)).state) == "running"


@pytest.mark.parametrize("status", sorted(FINISHED))
def test_finished_sagas_are_done(status: str) -> None:
    assert group_of(status) == "done"


@pytest.mark.parametrize("status", sorted(WAITING))
def test_sagas_that_wait_for_a_person_or_a_signal_are_waiting(status: str) -> None:
    assert group_of(status) == "waiting"


@pytest.mark.parametrize("status", ["pending", "running", "compensating"])
def test_all_others_are_open(status: str) -> None:
    assert group_of(status) == "open"


# ---- snapshots ---------------------------------------------------------------------------------------------------


def busy() -> State:
    """A state with something in every field that a snapshot can lose."""
    read = {"x": "${ctx.a.output}"}
    nodes = task("a"), wait("w", signal="s", ms=5), child("c"), task("b", "a", "w", "c", arguments=read)
    saga = Saga(program(*nodes), {"n": 1}, parent="p", slot="x", depth=2, handled=True, last="fail")
    saga.go(done("a", {"deep": [1.5, None]}))
    saga.signal("other", {"p": 1})
    saga.put(ev.StepInterrupted(node="w", started_at=1, ended_at=2, budget_ms=3))
    saga.die()
    saga.put(ev.Parked(code="x", message="y", node="a"))
    at = saga.state.version
    saga.put(ev.Forked(cut=1, branch=1, by="x", at=1, key="k"))
    saga.put(ev.Forked(cut=at, branch=2, by="x", at=1))
    saga.put(ev.ChildOpened(node="c", child="s1.2.c", workflow="other", input=ev.Value(v=1)))
    saga.cancel(grace_ms=9)
    failure = ev.Failure("x", "y", "a")
    return msgspec.structs.replace(
        saga.state,
        errors={"b": {"a": (failure,)}},
        closed={"b": ("w",)},
        approved={"b": ("digest", "other")},
        items={"c#a": ev.Value(v=1), "c#b": None},
        journals={"c": Journal(head=3, units=2, size=9)},
        made={"d": MadeCall("c#a", ev.Value(v=1))},
        admitted=("c",),
        begun={"b": 7},
        pinned="1.2.3",
        first_started_at={"b": 8},
        recovery=Recovery(epoch=saga.state.recovery.epoch, possibly_running=("b",)),
        origin=msgspec.structs.replace(saga.state.origin, scope="s0/a"),
        money=Money(spent=3, budget=2_000_000),
        used={"": Used(hops=1, bytes=2, cost=3, last=4, since=5)},
        previous={"b/a": ev.Value(v=1)},
        pauses={"c@1": Paused(until=9, ends_by=12)},
        failing={"a": failing_with_all(failure)},
        outbox=Outbox(due=(NOTICE,), sent=("old",)),
    )


NOTICE = ev.Notice(key="k", to="user", code="c", message="m", severity="high", node="a", at=1, incident=True)


def failing_with_all(failure: ev.Failure) -> Failing:
    way = Alternative(name="w", hints=("h",), tool="t", arguments={"x": 1}, shorten="x")
    return Failing(
        attempts=2,
        failure=failure,
        history=History(since=1, retries=1, total=1, used={"replan": 1}, ways=("w",)),
        policies={"p": 1},
        strategy="ask_user",
        due_at=5,
        hooks=("t",),
        way=way,
        arguments={"x": [1.5, None]},
        ask=ev.Ask(id="i", kind="input", message="m", options=("retry",), expires_at=9),
        decided="i-1",
        given=ev.Value(v=1),
    )


def test_a_snapshot_holds_everything() -> None:
    state = busy()
    empty = {name for name in state.__struct_fields__ if getattr(state, name) == getattr(State(), name)}
    empty_after = {"failure", "result", "parked", "stood", "ended", "held", "corrections", "undo", "graphs"}
    assert empty == empty_after, "a fork clears these"
    assert decode_state(encode_state(state)) == state


@given(of_struct(ev.SagaEnded), of_struct(ev.Parked))
@PROPERTY
def test_a_snapshot_comes_back_as_it_was(ended: ev.SagaEnded, parked: ev.Parked) -> None:
    state = msgspec.structs.replace(busy(), ended=ended, parked=parked, failure=ended.failure)
    assert decode_state(encode_state(state)) == state


def test_a_snapshot_that_is_a_blob_names_it_and_one_that_is_not_names_none() -> None:
    assert moved_to(encode_moved("cas://sha256/00")) == "cas://sha256/00"
    assert moved_to(encode_state(busy())) == ""
    assert moved_to(b"") == ""
    with pytest.raises(msgspec.DecodeError):
        moved_to(b'{"ref":7}')


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"{", id="broken"),
        pytest.param(
            encode_moved("cas://sha256/00"), id="only the name of a blob, as earlier versions see it"
        ),
        pytest.param(encode_state(busy()).replace(SHAPE.encode(), b"other"), id="of another shape"),
        pytest.param(json.dumps({"state": {}}).encode(), id="without a shape"),
        pytest.param(json.dumps({"shape": SHAPE, "state": {"version": "x"}}).encode(), id="of other types"),
    ],
)
def test_a_snapshot_that_another_version_wrote_is_refused_so_that_the_log_is_read(data: bytes) -> None:
    """A field that was added since would silently be its default, which is not what the log says."""
    with pytest.raises(msgspec.DecodeError):
        decode_state(data)


def test_a_snapshot_is_known_by_every_struct_that_a_state_is_made_of() -> None:
    """A field that is added to any of them is another shape, and the log is read once more."""
    found: set[type] = set()

    def walk(part: Any) -> None:
        if isinstance(part, type) and issubclass(part, msgspec.Struct) and part not in found:
            found.add(part)
            for its in typing.get_type_hints(part).values():
                walk(its)
        for its in typing.get_args(part):
            walk(its)

    walk(State)
    assert found == set(PARTS)
