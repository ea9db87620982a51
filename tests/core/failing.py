"""Failing steps, answers and what was done about them, for the tests of failures. No assertions here."""

from __future__ import annotations

from typing import Any

from baton.core.decide.decide import Decision
from baton.core.decide.outcomes import Outcome
from baton.core.decide.program import Program
from baton.core.failures.policy import CUSTOM, PolicyChange, RetryChange
from baton.core.graph.graph import Node
from baton.core.log import events as ev
from baton.core.log.state import ANSWER
from tests.core.asked import steps_of
from tests.core.build import T0, Saga, program
from tests.core.strategies import RETRY, ROLLBACK

DAY = 86_400_000


def broken(slot: str, code: str = "service_unavailable", *, attempt: int = 1, **more: Any) -> Outcome:
    failure = ev.Failure(code, "it broke", slot, status=more.pop("status", 0))
    return Outcome(
        slot=slot, attempt=attempt, started_at=T0, ended_at=more.pop("at", T0), failure=failure, **more
    )


def one(node: Node, **failures: PolicyChange) -> Program:
    return program(node, failures=failures)


def schedule(*pauses: int) -> PolicyChange:
    """So many pauses between attempts, and then the end of the step."""
    policy = RetryChange(
        backoff=CUSTOM, schedule=pauses, max_attempts=len(pauses) + 1, max_delay_ms=max(pauses)
    )
    return PolicyChange(retry=policy, ladder=(RETRY, ROLLBACK))


def chosen(saga: Saga) -> list[str]:
    """What was done about each failure, in the order of the log."""
    return [
        event.strategy
        for entry in saga.entries
        for event in entry.events
        if isinstance(event, ev.StrategyChosen)
    ]


def attempts(decision: Decision) -> list[tuple[str, int]]:
    return [(step.slot, step.attempt) for step in steps_of(decision)]


def answer(saga: Saga, action: str, key: str = "k", **more: Any) -> None:
    ask = next(failing.ask for failing in saga.state.failing.values() if failing.ask)
    said = {"ask": ask.id, "action": action, **more}
    event = ev.SignalReceived(name=ANSWER, key=key, payload=ev.Value(v=said), by="bob", at=saga.now)
    saga.put(event, epoch=0, invocation="api")
