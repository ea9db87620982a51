"""What was fetched for a decision, what could not be had, and what is too large to be made."""

from __future__ import annotations

import pytest

from baton.core.conditions.model import Matches
from baton.core.decide.context import FetchedValues
from baton.core.decide.decide import advance, decide
from baton.core.decide.spending import Bounds
from baton.core.graph.graph import Branch, Node, Rule
from baton.core.log import events as ev
from baton.errors import CorruptLog
from tests.core.asked import needs_of
from tests.core.build import T0, Saga, done, program, task

REF = "cas://sha256/" + "a" * 64


def test_a_condition_breaks_whose_own_blob_cannot_be_had() -> None:
    rule = Rule(condition=Matches(ref=REF), then=("b",))
    graph = program(task("a", branch=Branch(rules=(rule,))), task("b", "a"))
    saga = Saga(graph)
    lacking = advance(graph, saga.state, [done("a", 1)], T0).decision
    assert needs_of(lacking) == {REF}
    found = FetchedValues(absent={REF: "it is not there"})
    settled = advance(graph, saga.state, [done("a", 1)], T0, found=found).events[0]
    assert isinstance(settled, ev.StepSucceeded)
    assert settled.fault is not None
    assert settled.fault.code == "condition_missing"


def test_nothing_can_be_said_where_a_blob_that_the_log_names_cannot_be_had() -> None:
    graph = program(task("a", arguments={"x": "${input.n}"}))
    saga = Saga(graph, ev.Value(ref=REF, size=9))
    assert needs_of(decide(graph, saga.state, T0)) == {REF}
    with pytest.raises(CorruptLog, match="it is gone"):
        decide(graph, saga.state, T0, found=FetchedValues(absent={REF: "it is gone"}))


@pytest.mark.parametrize(("most", "fails"), [(7, False), (6, True)])
def test_no_value_that_is_made_of_others_is_larger_than_is_allowed(most: int, fails: bool) -> None:
    graph = program(Node(name="p", kind="pass", value=["${input}"]), output="${ctx.p.output}")
    saga = Saga(graph, "123")
    events = advance(graph, saga.state, [], T0, bounds=Bounds(value_bytes=most)).events
    assert isinstance(events[0], ev.StepFailed if fails else ev.NodePassed)
    end = events[-1]
    assert isinstance(end, ev.SagaEnded)
    assert (end.status, end.failure.code if end.failure else "") == (
        ("failed", "value_too_large") if fails else ("completed", "")
    )


def test_a_saga_whose_output_is_too_large_fails_instead_of_completing() -> None:
    graph = program(task("a"), output=["${ctx.a.output}", "${ctx.a.output}"])
    saga = Saga(graph)
    end = advance(graph, saga.state, [done("a", "12345")], T0, bounds=Bounds(value_bytes=16)).events[-1]
    assert isinstance(end, ev.SagaEnded)
    assert end.failure is not None
    assert end.failure.code == "output_too_large"
