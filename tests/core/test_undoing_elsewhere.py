"""A saga is undone while another system still works at a step of it: a person is asked, and nothing is taken for done."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from baton.core.decide.program import Program
from baton.core.documents.compile import compile_document
from baton.core.log import events as ev
from baton.core.log.questions import open_questions
from baton.core.log.state import status_of
from baton.core.nodes.registry import KINDS
from tests.core.asked import steps_of
from tests.core.build import Saga, done, failed, tool_spec
from tests.core.nodes.handing import hand_over, last
from tests.core.nodes.handing import say as called_back
from tests.core.undo_asking import CANCEL_WITH_UNDO, asked, say
from tests.kit.sentences import Says

ANY: dict[str, Any] = {}
ID = {"type": "object", "properties": {"id": {}}, "required": ["id"]}
TOOLS = {
    "t": tool_spec("t"),
    "back": tool_spec("back", id=ANY),
    "look": tool_spec("look"),
    "pay": replace(tool_spec("pay", ID), effect="once", undo="back", timeout_ms=5_000),
    "wire": replace(tool_spec("wire", ID), effect="once", verify="look", undo="back", timeout_ms=5_000),
    "send": replace(tool_spec("send", ID), effect="idempotent", undo="back", timeout_ms=5_000),
}
DOCUMENT = """
name: w
limits: {wall_time: 10m}
on_failure: [rollback]
nodes:
  a: {tool: TOOL, callback: {timeout: 1h}}
  b: {tool: t}
"""


def handing(tool: str) -> Saga:
    saga = Saga(Program(compile_document(DOCUMENT.replace("TOOL", tool), TOOLS), KINDS))
    saga.go()
    hand_over(saga)
    return saga


def cancelled(saga: Saga) -> None:
    saga.put(CANCEL_WITH_UNDO)


def fails(saga: Saga) -> None:
    saga.go(failed("b"))


def at_its_limit(saga: Saga) -> None:
    saga.go(after_ms=601_000)


ENDS = [cancelled, fails, at_its_limit]


@pytest.mark.parametrize("tool", ["pay", "wire", "send"])
@pytest.mark.parametrize("end", ENDS, ids=lambda end: end.__name__)
def test_a_person_is_asked_and_nothing_is_looked_at_or_taken_for_done(
    tool: str, end: Any, says: Says
) -> None:
    saga = handing(tool)
    end(saga)
    decision = saga.go()
    assert (list(steps_of(decision)), asked(saga)) == ([], ["a#undo"])
    [(_, ask)] = open_questions(saga.state)
    says.within(ask.message)
    say(saga, "a#undo", "use", output={"id": "c1"})
    [step] = steps_of(saga.go())
    assert (step.slot, step.arguments) == ("a#undo", {"id": "c1"})


@pytest.mark.parametrize("end", ENDS, ids=lambda end: end.__name__)
def test_where_the_person_says_that_it_never_happened_nothing_is_called(end: Any) -> None:
    saga = handing("pay")
    end(saga)
    saga.go()
    say(saga, "a#undo", "retry")
    assert not steps_of(saga.go())
    assert status_of(saga.state) == "rolled_back"


@pytest.mark.parametrize("tool", ["pay", "wire", "send"])
def test_what_it_has_said_before_the_saga_stops_is_what_is_undone(tool: str) -> None:
    saga = handing(tool)
    called_back(saga, output={"id": "c1"})
    cancelled(saga)
    [step] = steps_of(saga.go())
    assert (step.slot, step.arguments, asked(saga)) == ("a#undo", {"id": "c1"}, [])


def test_where_it_has_failed_before_the_saga_stops_there_is_nothing_to_undo() -> None:
    saga = handing("pay")
    called_back(saga, code="declined")
    cancelled(saga)
    saga.go()
    assert (asked(saga), last(saga, ev.SagaEnded).status) == ([], "cancelled")


def test_the_arguments_that_its_inverse_needs_are_read_first_where_they_lie_outside_the_log() -> None:
    document = "name: w\nnodes:\n  x: {tool: t}\n  a: {tool: book, after: x, with: {id: '${ctx.x.output}'}, callback: {timeout: 1h}}\n"
    book = replace(tool_spec("book", id=ANY), effect="once", undo="back", timeout_ms=5_000)
    saga = Saga(Program(compile_document(document, {**TOOLS, "book": book}), KINDS))
    saga.go()
    saga.go(done("x", ref="cas://sha256/00"), blobs={"cas://sha256/00": "c1"})
    hand_over(saga)
    called_back(saga)
    cancelled(saga)
    assert "cas://sha256/00" in str(saga.go().commands)
    [step] = steps_of(saga.go(blobs={"cas://sha256/00": "c1"}))
    assert (step.slot, step.arguments) == ("a#undo", {"id": "c1"})
