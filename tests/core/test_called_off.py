"""A signal calls a child off: the child is cancelled, says what it has done by then, and its node goes on with both."""

from __future__ import annotations

from typing import Any

import pytest

from baton.core.decide.program import Program
from baton.core.graph.graph import Graph, Node
from baton.core.log import events as ev
from baton.core.log.folding.received import cancelling_signal
from baton.core.nodes.child import ChildKind
from baton.core.nodes.registry import KINDS
from tests.core.asked import children_of, needs_of
from tests.core.build import AT_ONCE, Saga, done, problems_of, program, task
from tests.core.test_children import reported
from tests.kit.sentences import Says

CHILD = Node(name="c", kind="workflow", workflow="other", arguments={}, signal="off")
DONE = {"hold": 7, "order": None}


def called_off(payload: Any = "enough") -> Saga:
    saga = Saga(Program(Graph(name="w", nodes=(CHILD,), output="${ctx.c.output}", failures=AT_ONCE), KINDS))
    saga.go()
    saga.signal("off", payload)
    return saga


def test_a_child_that_is_called_off_is_waited_for() -> None:
    saga = called_off()
    ((slot, child),) = children_of(saga.go())
    assert (slot, child.signal, child.status) == ("c", "off", "")
    assert cancelling_signal(saga.state, child) == saga.state.signals[0]


@pytest.mark.parametrize("status", ["cancelled", "completed"])
def test_its_node_gives_what_was_said_and_what_was_done_and_has_taken_the_signal(status: str) -> None:
    saga = called_off()
    why = ev.Failure("cancelled", "the signal") if status == "cancelled" else None
    reported(saga, status, output=ev.Value(v=DONE), failure=why)
    saga.go()
    closed = saga.entries[-1].events[0]
    assert isinstance(closed, ev.ChildClosed)
    assert (closed.by, closed.output.v) == ("k-off", {"cancelled": "enough", "result": DONE})
    assert saga.state.signals == ()
    assert saga.state.ended is not None
    assert saga.state.ended.status == "completed"


def test_what_was_done_is_fetched_where_it_is_large() -> None:
    saga = called_off()
    reported(saga, "cancelled", output=ev.Value(ref="cas://sha256/1", size=9))
    assert needs_of(saga.go()) == {"cas://sha256/1"}
    saga.go(blobs={"cas://sha256/1": DONE})
    assert saga.state.ended is not None
    assert saga.state.ended.output.v == {"cancelled": "enough", "result": DONE}


def test_one_that_fails_meanwhile_fails_its_node_and_leaves_the_signal() -> None:
    saga = called_off()
    reported(saga, "failed", failure=ev.Failure("x", "no"))
    saga.go()
    failed = saga.entries[-1].events[0]
    assert isinstance(failed, ev.StepFailed)
    assert (failed.failure.code, failed.by) == ("child_failed", "")


def test_a_signal_that_brings_a_failure_fails_the_node_with_it() -> None:
    saga = Saga(program(CHILD))
    saga.go()
    failure = ev.Failure("gone", "the guest has left")
    saga.put(
        ev.SignalReceived(name="off", key="k", payload=ev.Value(), by="ada", at=saga.now, failure=failure),
        epoch=0,
    )
    reported(saga, "cancelled")
    saga.go()
    assert saga.state.ended is not None
    assert saga.state.ended.failure is not None
    assert (saga.state.ended.failure.code, saga.state.ended.failure.node) == ("gone", "c")


def test_without_the_signal_its_output_is_the_result_alone_and_a_cancel_fails_it() -> None:
    saga = Saga(program(CHILD))
    saga.go()
    reported(saga, output=ev.Value(v=DONE))
    saga.go()
    closed = saga.entries[-1].events[0]
    assert isinstance(closed, ev.ChildClosed)
    assert (closed.by, closed.output.v) == ("", DONE)


def test_a_fork_to_before_the_signal_opens_another_child_and_one_to_behind_it_keeps_it() -> None:
    saga = called_off()
    before, behind = saga.state.version - 1, saga.state.version
    saga.put(ev.Forked(cut=behind, branch=1, by="ada", at=saga.now), epoch=0)
    assert [one.saga for one in saga.state.children.values()] == ["s1.0.c"]
    saga.put(ev.Forked(cut=before, branch=2, by="ada", at=saga.now), epoch=0)
    assert (saga.state.children, [one.saga for one in saga.state.orphaned_children]) == ({}, ["s1.0.c"])


# ---- the child's side -----------------------------------------------------------------------------------------------


def stopped(saga: Saga, *, result: bool = True, grace_ms: int = 0) -> ev.SagaEnded:
    saga.put(
        ev.CancelRequested(reason="off", by="p", at=saga.now, grace_ms=grace_ms, result=result),
        epoch=0,
        invocation="w",
    )
    saga.go()
    assert saga.state.ended is not None
    assert saga.state.ended.status == "cancelled"
    return saga.state.ended


OUTPUT = {"a": "${ctx.a.output?}", "b": "${ctx.b.output?}"}


def halfway(output: Any = OUTPUT, value: Any = 1, ref: str = "") -> Saga:
    saga = Saga(program(task("a"), task("b", "a"), output=output))
    saga.go()
    saga.go(done("a", value, ref=ref))
    return saga


def test_a_saga_that_is_called_off_ends_with_what_was_done() -> None:
    assert stopped(halfway()).output.v == {"a": 1, "b": None}


def test_any_other_cancel_gives_nothing() -> None:
    assert stopped(halfway(), result=False).output == ev.Value()


@pytest.mark.parametrize("output", ["${ctx.b.output}", "${ctx.a.output.no}"])
def test_an_output_that_cannot_be_made_yet_is_null(output: str) -> None:
    assert stopped(halfway(output)).output == ev.Value()


def test_one_that_is_too_large_is_null() -> None:
    assert stopped(halfway(["${ctx.a.output}"] * 3, "x" * 2_000_000)).output == ev.Value()


def test_what_it_names_is_fetched_first() -> None:
    saga = halfway(ref="cas://sha256/1", output={"a": "${ctx.a.output.n}"})
    saga.put(ev.CancelRequested(reason="off", by="p", at=saga.now, grace_ms=0, result=True), epoch=0)
    assert needs_of(saga.go()) == {"cas://sha256/1"}
    saga.go(blobs={"cas://sha256/1": {"n": 3}})
    assert saga.state.ended is not None
    assert saga.state.ended.output.v == {"a": 3}


def test_a_second_cancel_with_less_grace_does_not_forget_what_the_first_asks_for() -> None:
    saga = halfway()
    saga.put(ev.CancelRequested(reason="off", by="p", at=saga.now, grace_ms=9_000, result=True), epoch=0)
    assert stopped(saga, result=False).output.v == {"a": 1, "b": None}


# ---- how it is written and shown ------------------------------------------------------------------------------------


def test_a_signal_goes_with_a_child_alone(says: Says) -> None:
    (problem,) = problems_of("name: w\nnodes: {a: {tool: t, cancel_on: off}}")
    says(problem.message)
    assert problems_of("name: w\nnodes: {a: {workflow: other, cancel_on: off}}") == ()


def test_views_name_the_signal() -> None:
    saga = called_off()
    assert ChildKind().node_view(CHILD) == {"workflow": "other", "signal": "off"}
    assert saga.state.children["c"].view(None) == {"saga": "s1.0.c", "signal": "off"}
