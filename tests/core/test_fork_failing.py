"""A log goes back to where a step was failing: what was asked then, and what is tried now."""

from __future__ import annotations

from baton.core import events as ev
from baton.core.failures.answers import asked
from baton.core.failures.cells import ASK_USER, ESCALATE, Change
from baton.core.state import status_of
from tests.core.build import Saga, program, task
from tests.core.failing import DAY, attempts, broken


def forked(strategy: str) -> Saga:
    """Five days after a step has failed and somebody was asked, the saga goes back to that moment."""
    saga = Saga(program(task("a"), failures={"x": Change(ladder=(strategy,))}))
    saga.go(broken("a", "x"))
    saga.now += 5 * DAY
    saga.put(ev.Forked(cut=saga.state.version, branch=1, by="bob", at=saga.now))
    return saga


def test_whoever_forks_a_saga_to_an_incident_has_its_step_tried_again() -> None:
    saga = forked(ESCALATE)
    assert attempts(saga.go()) == [("a", 2)]
    assert list(asked(saga.state)) == [], "nobody would hear an answer"


def test_whoever_forks_a_saga_to_a_question_waits_for_its_answer() -> None:
    saga = forked(ASK_USER)
    assert attempts(saga.go()) == []
    assert [slot for slot, _ in asked(saga.state)] == ["a"]
    assert status_of(saga.state, saga.program) == "suspended"
