"""Limits that end something: each of them, of a saga and of a node, tolerated and not.

What only slows down is in test_slowing_limits.py, what only shortens in test_summary.py.
"""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from baton.core.decide.context import Standing
from baton.core.decide.decision import StopSteps
from baton.core.decide.outcomes import Outcome
from baton.core.decide.program import Program
from baton.core.expressions import iso
from baton.core.graph.graph import Cap, Join, Loop, Node
from baton.core.log import events as ev
from baton.core.log.state import Used
from baton.core.read.views import saga_view
from tests.core.asked import cancels_of, children_of, steps_of, stops_of
from tests.core.build import T0, Saga, child, done, failed, interrupted, program, ready, task, wait
from tests.core.graphs_of import again, limited
from tests.kit.sentences import Says
from tests.kit.views import as_json


def spent(outcome: Outcome, micro: int) -> Outcome:
    return replace(outcome, cost=micro)


def end_of(saga: Saga) -> tuple[str, str, str]:
    """How the saga ended: status, code, node."""
    assert saga.state.ended is not None
    failure = saga.state.ended.failure
    return saga.state.ended.status, failure.code if failure else "", failure.node if failure else ""


def wide(**limits: Cap) -> Program:
    """a has the limits; b and c are behind it."""
    return program(task("a", limits=limits), task("b", "a"), task("c", "a"))


# ---- the saga --------------------------------------------------------------------------------------------------


def test_a_saga_ends_when_more_nodes_would_run_than_it_may_have(says: Says) -> None:
    saga = Saga(limited(program(task("a"), task("b", "a"), task("c", "b")), hops=Cap(most=2)))
    assert ready(saga.go(done("a"))) == ["b"]
    saga.go(done("b"))
    assert end_of(saga) == ("failed", "limit_hops", "")
    assert saga.state.failure is not None
    says(saga.state.failure.message)
    assert saga.kinds == ["step_succeeded", "limit_reached", "saga_ended"]


def test_nodes_that_are_under_way_count_and_those_that_are_skipped_do_not() -> None:
    nodes = task("a"), task("b"), wait("w", signal="s"), child("k"), task("dead"), Node(name="p", kind="pass")
    fits = Saga(limited(program(*nodes), hops=Cap(most=5)), dead=["dead"])
    assert ready(fits.go()) == ["a", "b"]
    assert fits.state.failure is None
    assert fits.state.used[""].hops == 1, "the one that passed"
    tight = Saga(limited(program(*nodes), hops=Cap(most=4)), dead=["dead"])
    tight.go()
    assert end_of(tight) == ("failed", "limit_hops", "")


def test_nothing_begins_beside_a_node_that_fails_at_once() -> None:
    first = replace(task("a"), arguments={"v": "${input.nothing}"})
    saga = Saga(limited(program(first, task("b")), hops=Cap(most=9)))
    assert ready(saga.go()) == []
    assert end_of(saga)[0] == "failed"
    assert saga.state.failure is not None
    assert saga.state.failure.node == "a"


def test_running_steps_end_before_their_saga_does() -> None:
    saga = Saga(limited(program(task("a"), task("b"), task("c", "a")), hops=Cap(most=2)))
    saga.go()
    decision = saga.go(done("a"), running=["b"])
    assert saga.kinds == ["step_succeeded", "limit_reached"]
    assert (steps_of(decision), decision.of(StopSteps)) == ((), None)
    saga.go(done("b"))
    assert end_of(saga) == ("failed", "limit_hops", "")


def test_a_saga_whose_limit_is_reached_begins_nothing_else() -> None:
    nodes = task("a"), *(task(name, "a") for name in "bcd")
    saga = Saga(limited(program(*nodes), hops=Cap(most=2)))
    saga.go(done("a"))
    assert saga.kinds == ["step_succeeded", "limit_reached", "saga_ended"]
    assert end_of(saga) == ("failed", "limit_hops", "")


@pytest.mark.parametrize(("most", "ends"), [(12, False), (11, True)])
def test_a_saga_ends_when_its_outputs_are_too_many_bytes(most: int, ends: bool) -> None:
    saga = Saga(limited(program(task("a"), task("b", "a"), task("c", "b")), bytes=Cap(most=most)))
    saga.go(done("a", "1234"))
    saga.go(done("b", 123_456))
    if not ends:
        assert saga.state.used == {"": Used(hops=2, bytes=12, last=T0 + 5)}
    assert (saga.state.ended is not None) == ends
    if ends:
        assert end_of(saga) == ("failed", "limit_bytes", "")


def test_a_blob_counts_by_its_size() -> None:
    saga = Saga(limited(program(task("a"), task("b", "a")), bytes=Cap(most=8)))
    saga.go(done("a", ref="cas://sha256/1"))
    assert end_of(saga) == ("failed", "limit_bytes", "")


@pytest.mark.parametrize(("most", "ends"), [(30, False), (29, True)])
def test_a_saga_ends_when_it_has_cost_too_much(most: int, ends: bool, says: Says) -> None:
    saga = Saga(limited(program(task("a"), task("b", "a"), task("c", "b")), cost=Cap(most=most)))
    saga.go(spent(done("a"), 10))
    saga.go(spent(interrupted("b"), 5))
    saga.go(spent(done("b"), 15))
    assert saga.state.money.spent == 30
    assert (saga.state.ended is not None) == ends
    if ends:
        assert end_of(saga) == ("failed", "limit_cost", "")
        assert saga.state.ended is not None
        assert saga.state.ended.failure is not None
        says(saga.state.ended.failure.message)


def test_a_failed_attempt_costs_what_it_cost() -> None:
    saga = Saga(program(task("a")))
    saga.go(spent(failed("a"), 7))
    assert saga.state.money.spent == 7
    assert saga.state.used == {}, "nothing is counted where nothing is limited"


def test_the_money_of_children_is_their_parents() -> None:
    saga = Saga(limited(program(child("k"), task("b", "k")), cost=Cap(most=5)))
    saga.go()
    told = ev.ChildReported(slot="k", child=saga.state.children["k"].saga, status="completed", cost=6)
    saga.put(told)
    saga.put(told)
    assert saga.state.money.spent == 6
    saga.go()
    assert end_of(saga) == ("failed", "limit_cost", "")


def test_a_saga_ends_at_the_end_of_its_time_and_stops_what_runs(says: Says) -> None:
    saga = Saga(limited(program(task("a"), wait("w", signal="s"), child("k")), wall_time=Cap(most=1_000)))
    assert saga.go(running=["a"]).due == T0 + 1_000
    assert saga.go(running=["a"], after_ms=999).due == T0 + 1_000
    assert saga.go(running=["a"], after_ms=1).is_lacking, "first it looks whether its child stands still"
    decision = saga.go(running=["a"], standing=Standing(saga.now))
    assert stops_of(decision) == ("a",)
    assert saga.kinds == ["limit_reached"]
    assert [slot for slot, _ in children_of(saga.go())] == ["k"]
    assert end_of(saga) == ("failed", "limit_wall_time", "")
    assert saga.state.ended is not None
    assert saga.state.ended.failure is not None
    says(saga.state.ended.failure.message)


def test_time_that_is_over_ends_a_parked_saga_too() -> None:
    saga = Saga(limited(program(task("a")), wall_time=Cap(most=1_000)))
    saga.put(ev.Parked(code="x", message="y"))
    assert saga.go().due == T0 + 1_000
    saga.go(after_ms=1_000)
    assert end_of(saga) == ("failed", "limit_wall_time", "")


def test_a_cancel_comes_before_every_limit() -> None:
    saga = Saga(limited(program(task("a")), wall_time=Cap(most=1_000)))
    saga.cancel(grace_ms=5_000)
    assert saga.go(running=["a"], after_ms=2_000).due == T0 + 5_000


# ---- a node ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limits", "outcome", "code"),
    [
        ({"fan_out": Cap(most=1)}, done("a"), "limit_fan_out"),
        ({"bytes": Cap(most=3)}, done("a", "abc"), "limit_bytes"),
        ({"cost": Cap(most=3)}, spent(done("a"), 4), "limit_cost"),
    ],
)
def test_a_node_that_has_done_too_much_fails_after_the_fact(
    limits: dict[str, Cap], outcome: Outcome, code: str
) -> None:
    saga = Saga(wide(**limits))
    saga.go(outcome)
    assert end_of(saga) == ("failed", code, "a")
    (event, _) = saga.entries[-1].events
    assert isinstance(event, ev.StepSucceeded)
    assert event.fault is not None
    assert event.fault.message.startswith("`limits.")
    assert "of node `a` is " in event.fault.message
    assert (event.output, event.keep) == (outcome.output, False)


@pytest.mark.parametrize("name", ["fan_out", "bytes", "cost"])
def test_a_node_may_do_exactly_as_much(name: str) -> None:
    saga = Saga(wide(**{name: Cap(most=2)}))
    assert ready(saga.go(spent(done("a", 12), 2))) == ["b", "c"]


def test_the_fan_out_of_a_saga_is_that_of_each_of_its_nodes() -> None:
    saga = Saga(limited(wide(), fan_out=Cap(most=1)))
    saga.go(done("a"))
    assert end_of(saga) == ("failed", "limit_fan_out", "a")


def test_a_join_tolerates_a_limit_like_any_failure() -> None:
    nodes = (
        task("b", limits={"bytes": Cap(most=1)}),
        task("c"),
        task("z", "b", "c", join=Join(tolerated=1), arguments={"errors": "${join.errors}"}),
    )
    saga = Saga(program(*nodes))
    saga.go(done("b", "too long"))
    (step,) = steps_of(saga.go(done("c")))
    (error,) = step.arguments["errors"]
    assert (error["node"], error["code"]) == ("b", "limit_bytes")


def looped(limits: dict[str, Cap], join: Join | None = None) -> Program:
    """a, whose loop goes on for ever, and z behind it."""
    return program(
        task("a", limits=limits, loop=Loop(condition=again(), max_iterations=9, back_to="a"), loops=("a",)),
        task("z", "a", join=join),
    )


@pytest.mark.parametrize(
    ("limits", "code"),
    [({"hops": Cap(most=2)}, "limit_hops"), ({"cost": Cap(most=5)}, "limit_cost")],
)
def test_a_node_that_may_not_run_once_more_fails_before_it_does(limits: dict[str, Cap], code: str) -> None:
    saga = Saga(looped(limits))
    assert ready(saga.go(spent(done("a@0"), 3))) == ["a@1"]
    if code == "limit_cost":
        saga.go(spent(interrupted("a@1"), 3))
    else:
        saga.go(spent(done("a@1"), 2))
    assert end_of(saga) == ("failed", code, "a")
    assert "step_failed" in saga.kinds


def test_such_a_failure_is_tolerated_too() -> None:
    saga = Saga(looped({"hops": Cap(most=1)}, Join(tolerated=1)))
    assert ready(saga.go(done("a@0"))) == ["z"]


def test_a_node_fails_at_the_end_of_its_time_and_its_step_is_stopped() -> None:
    saga = Saga(program(task("a", limits={"wall_time": Cap(most=100)}), task("b")))
    decision = saga.go()
    assert saga.kinds == ["node_began"]
    assert (ready(decision), decision.due) == (["a", "b"], T0 + 100)
    assert saga.go(running=["a", "b"], after_ms=99).due == T0 + 100
    decision = saga.go(running=["a", "b"], after_ms=1)
    assert stops_of(decision) == ("a",), "another step may end"
    assert stops_of(saga.go(running=["b"])) == ()
    saga.go(done("b"))
    assert end_of(saga) == ("failed", "limit_wall_time", "a")


def test_the_time_of_a_node_is_recorded_with_what_made_it_ready() -> None:
    saga = Saga(program(task("a"), task("b", "a", limits={"wall_time": Cap(most=100)}), task("c", "b")))
    saga.go(done("a"), after_ms=50)
    assert saga.kinds == ["step_succeeded", "node_began"]
    assert saga.state.begun == {"b": T0 + 50}
    saga.die()
    assert saga.go(after_ms=60).due == T0 + 150
    assert saga.kinds == ["revived"], "its time does not begin again"
    saga.go(done("b"))
    assert saga.state.begun == {}


def test_a_tolerated_end_of_time_lets_the_saga_go_on() -> None:
    nodes = (
        wait("w", signal="s"),
        child("k"),
        task("z", "w", "k", join=Join(tolerated=2)),
    )
    late = {"wall_time": Cap(most=100)}
    timed = tuple(msgspec.structs.replace(node, limits=late) if node.name != "z" else node for node in nodes)
    saga = Saga(program(*timed))
    assert saga.go().due == T0 + 100
    assert saga.kinds == ["node_began", "wait_opened", "node_began", "child_opened"]
    assert [left.workflow for _, left in cancels_of(saga.go(after_ms=100))] == ["other"]
    assert ready(saga.go()) == ["z"]


def test_a_node_that_runs_nothing_has_no_time() -> None:
    limits = {"wall_time": Cap(most=100)}
    saga = Saga(program(Node(name="p", kind="pass", limits=limits), task("b", "p")))
    saga.go()
    assert saga.kinds == ["node_passed"]


def test_an_event_that_comes_twice_counts_once() -> None:
    saga = Saga(
        limited(program(task("a"), task("b", "a", limits={"wall_time": Cap(most=9)})), cost=Cap(most=99))
    )
    saga.go(spent(done("a"), 5))
    before = saga.state
    for event in saga.entries[-1].events:
        saga.put(event)
    assert (saga.state.used, saga.state.money.spent, saga.state.begun) == (
        before.used,
        before.money.spent,
        before.begun,
    )
    saga.put(ev.NodeBegan(node="absent", at=1))
    assert saga.state.begun == before.begun


# ---- forks and snapshots ---------------------------------------------------------------------------------------


def test_a_fork_begins_with_the_outputs_of_its_cut_all_the_money_and_new_time() -> None:
    limits = {"hops": Cap(most=9), "wall_time": Cap(most=100), "cost": Cap(most=99)}
    saga = Saga(limited(program(task("a", limits={"cost": Cap(most=99)}), task("b", "a")), **limits))
    saga.go(spent(done("a", "x"), 5), after_ms=10)
    cut = saga.state.version
    saga.go(spent(done("b"), 7), after_ms=10)
    assert saga.state.ended is not None
    at = T0 + 1_000
    saga.put(ev.Forked(cut=cut, branch=1, by="x", at=at))
    assert saga.state.money.spent == 12
    assert saga.state.used == {
        "": Used(hops=1, bytes=3, cost=12, last=T0 + 5, since=at),
        "a": Used(hops=1, bytes=3, cost=5, last=T0 + 5, since=at),
    }
    assert saga.go(after_ms=1_000 - 20).due == at + 100


def test_the_view_of_a_saga_says_what_was_used() -> None:
    limits = {"hops": Cap(most=9), "wall_time": Cap(most=100), "fan_out": Cap(most=2)}
    late = {"cost": Cap(most=2_000_000, then="throttle"), "wall_time": Cap(most=9)}
    saga = Saga(limited(program(task("a", limits=late), task("b", "a")), **limits))
    saga.go(spent(done("a"), 1_500_000))
    shown = as_json(saga_view(saga.state, saga.program))
    assert shown["spent_usd"] == 1.5
    assert shown["limits"] == [
        {"node": None, "limit": "hops", "most": 9, "then": "terminate", "used": 1},
        {"node": None, "limit": "wall_time_ms", "most": 100, "then": "terminate", "until": iso(T0 + 100)},
        {"node": "a", "limit": "cost_usd", "most": 2.0, "then": "throttle", "used": 1.5},
    ]


def test_a_saga_without_limits_says_nothing_of_them() -> None:
    saga: Any = Saga(program(task("a"), task("b", "a")))
    saga.go(done("a"))
    entries, state = (msgspec.json.encode(what).decode() for what in (saga.entries, saga.state))
    assert '"counts"' not in entries  # of a state they are those of its steps
    text = entries + state
    for word in ("used", "spent", "cost", "begun", "full"):
        assert f'"{word}"' not in text


def test_a_fork_gives_what_had_begun_its_time_anew() -> None:
    node = Node(name="w", kind="wait", signal="go", limits={"wall_time": Cap(most=10_000)})
    saga = Saga(program(node))
    saga.go()
    saga.go(after_ms=4_000)
    saga.put(ev.Forked(cut=saga.state.version, branch=1, by="ada", at=saga.now), epoch=0)
    assert saga.go().due == T0 + 14_000
    saga.go(after_ms=10_000)
    assert saga.state.ended is not None
    assert saga.state.ended.failure is not None
    assert saga.state.ended.failure.code == "limit_wall_time"


def test_hops_of_a_node_are_told_as_its_runs(says: Says) -> None:
    loop = Loop(condition=again(), max_iterations=9, back_to="a")
    saga = Saga(program(task("a", limits={"hops": Cap(most=1)}, loop=loop, loops=("a",))))
    saga.go(done("a@0"))
    assert saga.state.failure is not None
    says(saga.state.failure.message)
