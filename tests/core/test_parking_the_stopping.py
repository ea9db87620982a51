"""A saga that kills its worker while it stops, or while it cancels what was left behind, is parked too, and goes on as it was."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from baton.core.decide.decide import Decision, advance
from baton.core.decide.outcomes import MONEY
from baton.core.decide.parking import CHILDREN_PER_EVENT
from baton.core.decide.program import Program
from baton.core.decide.spending import DEFAULT
from baton.core.effects.toolspec import ONCE
from baton.core.graph.graph import Cap
from baton.core.log import events as ev
from baton.core.log.snapshots import PARTS, SHAPE
from baton.core.log.state import status_of
from baton.core.nodes.registry import KINDS
from baton.core.read.views import saga_view
from tests.core.asked import cancels_of, children_cancelled, children_ended, children_of, notices_of
from tests.core.build import T0, Saga, child, done, failed, interrupted, program, task
from tests.core.told import why
from tests.kit.sentences import Says
from tests.kit.views import as_json

WORKER_KILLED = "worker_killed"
MANY = 2 * CHILDREN_PER_EVENT + 5
TOMORROW = 86_400_000
HOUR = {"wall_time": Cap(most=3_600_000)}
SPENT = ev.Parked(code="budget_saga", message="all is spent", node="a")


def parent(children: int = 2, **limits: Any) -> Saga:
    """Of children that are open, and of a step."""
    graph = program(task("a"), *(child(f"c{number}") for number in range(children)))
    saga = Saga(Program(msgspec.structs.replace(graph.graph, **limits), KINDS))
    saga.go()
    return saga


def cancelled(children: int = 2) -> Saga:
    saga = parent(children)
    saga.cancel(grace_ms=30_000)
    return saga


def failing(children: int = 2) -> Saga:
    """Its failure is in the log, its end is not: nothing is cancelled before."""
    saga = parent(children)
    saga.put(*advance(saga.program, saga.state, [failed("a")], saga.now).events)
    return saga


def left_behind(children: int = 2, **limits: Any) -> Saga:
    saga = parent(children, **limits)
    saga.put(ev.Forked(cut=1, branch=1, by="ada", at=saga.now), epoch=0)
    return saga


def wants(saga: Saga) -> Decision:
    """What a worker does next, but for what it writes down of it."""
    return advance(saga.program, saga.state, [], saga.now).decision


def asked(saga: Saga) -> int:
    """Count the children that a worker would ask to stop next."""
    decision = wants(saga)
    return len(cancels_of(decision) or children_of(decision))


def kill(saga: Saga) -> None:
    """Every worker dies before it writes anything of what it does, until the saga is parked."""
    for _ in range(DEFAULT.deaths):
        assert asked(saga)
        saga.die()
    saga.go()
    assert saga.kinds == ["notice_due", "parked"]


STOPPING = pytest.mark.parametrize(
    ("make", "end"), [(cancelled, "cancelled"), (failing, "failed"), (left_behind, "")]
)


@STOPPING
def test_a_saga_whose_children_cannot_be_cancelled_is_parked_and_starts_nothing(
    make: Any, end: str, says: Says
) -> None:
    saga = make()
    kill(saga)
    assert status_of(saga.state, saga.program) == "parked"
    assert saga.state.parked is not None
    assert (saga.state.parked.code, saga.state.parked.node) == (WORKER_KILLED, "")
    says(saga.state.parked.message)
    version = saga.state.version
    for _ in range(3):
        saga.die()
        assert saga.go(after_ms=TOMORROW) == Decision()
    assert saga.state.version == version + 3, "the deaths, and nothing else"
    assert as_json(saga_view(saga.state, saga.program))["reason"].startswith(WORKER_KILLED)


@STOPPING
def test_a_person_who_resumes_it_lets_it_go_on_where_it_stopped(make: Any, end: str) -> None:
    saga = make()
    kill(saga)
    saga.tell()
    saga.put(ev.Resumed(by="ada", at=saga.now), epoch=0)
    for _ in range(DEFAULT.deaths - 1):
        saga.die()
        assert asked(saga) == 2
    saga.go()
    assert status_of(saga.state) == (end or "running")
    assert saga.state.orphaned_children == ()


@STOPPING
def test_a_cancel_lets_it_go_on_too(make: Any, end: str) -> None:
    saga = make()
    kill(saga)
    saga.cancel(grace_ms=60_000)
    assert (status_of(saga.state), saga.state.recovery.consecutive_crashes) == ("running", 0)
    assert saga.state.cancel is not None
    assert saga.state.cancel.grace_ms == (30_000 if end == "cancelled" else 60_000), "never a longer grace"
    assert asked(saga) == 2
    saga.go()
    assert status_of(saga.state) == "cancelled"


@pytest.mark.no_cover
@STOPPING
def test_each_part_of_the_children_that_is_in_the_log_is_progress(make: Any, end: str, says: Says) -> None:
    saga = make(MANY)
    for _ in range(2):
        for _ in range(DEFAULT.deaths - 1):
            saga.die()
        decision = wants(saga)
        left = [one for _, one in cancels_of(decision)[:CHILDREN_PER_EVENT]]
        saga.put(*(children_cancelled(left) or children_ended(children_of(decision)[:CHILDREN_PER_EVENT])))
        assert saga.state.recovery.consecutive_crashes == 0
    kill(saga)
    assert saga.state.parked is not None
    says(saga.state.parked.message)


def test_what_was_cut_off_or_nearly_killed_its_workers_before_is_not_held_against_what_stops() -> None:
    """Nothing of it runs again."""
    saga = Saga(program(task("a"), task("b")))
    for _ in range(DEFAULT.deaths - 1):
        saga.go(interrupted("a"), running=["b"])
    saga.cancel(grace_ms=60_000)
    saga.go(interrupted("a"), running=["b"])
    assert saga.kinds == ["step_interrupted"]
    saga.go(done("b"))
    assert status_of(saga.state) == "cancelled"
    saga = parent()
    for _ in range(DEFAULT.deaths - 1):
        saga.die()
    saga.cancel()
    saga.die()
    assert asked(saga) == 2


def test_the_end_of_its_time_ends_one_that_is_parked_and_counts_its_deaths_anew() -> None:
    saga = left_behind(limits=HOUR)
    kill(saga)
    assert wants(saga).due == T0 + 3_600_000
    saga.now += 3_600_000
    saga.put(*advance(saga.program, saga.state, [], saga.now).events)
    assert saga.kinds == ["limit_reached"]
    assert (status_of(saga.state), saga.state.parked, saga.state.recovery.consecutive_crashes) == (
        "running",
        None,
        0,
    )
    kill(saga)
    saga.tell()
    saga.put(ev.Resumed(by="ada", at=saga.now), epoch=0)
    saga.go()
    assert status_of(saga.state) == "failed"


@pytest.mark.parametrize("fault", [False, True])
def test_a_failure_that_comes_while_a_saga_is_parked_ends_it(fault: bool) -> None:
    saga = Saga(program(task("a"), task("b")))
    saga.put(ev.Parked(code="over_budget", message="too long", node="a"))
    failure = ev.Failure("tool_error", "it broke", "b")
    if fault:
        saga.put(ev.NodeSkipped(node="b", fault=failure))
    else:
        saga.put(*advance(saga.program, saga.state, [failed("b")], saga.now, ["a"]).events)
    assert (status_of(saga.state), saga.state.parked) == ("running", None)
    saga.go()
    assert status_of(saga.state) == "failed"


# ---- parked for something else --------------------------------------------------------------------------------------


def test_what_was_left_behind_is_cancelled_though_the_saga_waits_for_its_money() -> None:
    saga = left_behind()
    saga.put(SPENT)
    assert asked(saga) == 2
    kill(saga)
    assert saga.state.parked is not None
    assert saga.state.parked.code == WORKER_KILLED, "that is what a person has to decide about first"


def test_an_attempt_that_comes_no_further_does_not_park_a_saga_that_stops() -> None:
    for saga in (cancelled(), failing()):
        saga.go(replace(interrupted("a"), why=MONEY, cost=5, halt=SPENT))
        assert saga.state.money.spent == 5
        assert not any(isinstance(event, ev.Parked) for one in saga.entries for event in one.events)


def test_an_old_log_in_which_one_did_goes_on_as_it_did() -> None:
    saga = cancelled()
    saga.put(SPENT)
    assert status_of(saga.state) == "running"
    saga.go()
    assert status_of(saga.state) == "cancelled"


def test_a_snapshot_of_a_version_that_did_not_park_what_stops_is_not_believed() -> None:
    """In it, a saga that was cancelled while it was parked looks like one that is parked while it stops."""
    old = [(part.__name__, part.__struct_fields__) for part in PARTS]
    assert hashlib.sha256(repr(old).encode()).hexdigest()[:12] != SHAPE


# ---- what is said of it ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make",
    [
        cancelled,
        failing,
    ],
)
def test_it_is_explained_why_what_was_stopped_does_not_end(make: Any, says: Says) -> None:
    saga = make()
    says(why(saga, "c1"))
    kill(saga)
    says(why(saga, "c1"))
    saga.put(ev.Resumed(by="ada", at=saga.now), epoch=0)
    says(why(saga, "c1"))


def test_a_saga_that_stops_names_the_child_that_it_waits_for(says: Says) -> None:
    saga = failing()
    says(saga_view(saga.state, saga.program).reason)
    says(why(saga, "c0"))
    saga.put(ev.ChildReported(slot="c0", child="s1.0.c0", status="cancelled"))
    says(why(saga, "c1"))
    saga.put(ev.ChildReported(slot="c1", child="s1.0.c1", status="cancelled"))
    assert saga_view(saga.state, saga.program).reason is None
    saga.go()
    says(why(saga, "c1"))


def test_a_cancel_of_a_parked_saga_is_all_that_is_said_of_it(says: Says) -> None:
    saga = parent()
    saga.put(SPENT)
    assert "the saga is parked" in why(saga, "a")
    saga.cancel()
    says(why(saga, "a"))


# ---- people to be told -----------------------------------------------------------------------------------------------


def test_who_is_to_be_told_is_told_once_more_when_it_is_parked_and_then_no_more() -> None:
    """Telling may be what kills the workers."""
    saga = Saga(program(task("a", effect=ONCE)))
    saga.go(interrupted("a"))
    saga.cancel()
    for _ in range(DEFAULT.deaths):
        assert len(notices_of(saga.go())) == 1
        saga.die()
    assert len(notices_of(saga.go())) == 2, "and of the parking itself"
    assert status_of(saga.state) == "parked"
    saga.die()
    assert saga.go() == Decision()
    saga.put(ev.Resumed(by="ada", at=saga.now), epoch=0)
    saga.tell()
    assert status_of(saga.state) == "cancelled"
