"""Planted bugs in pauses and retries, as in bugs.py."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from msgspec.structs import replace

from baton.core.decide import decide as deciding
from baton.core.decide.decision import Decision, DecisionBuilder
from baton.core.log import events as ev
from baton.core.log.folding import fold as folding
from baton.core.log.folding import whole_folds
from baton.core.log.state import State
from baton.runtime.requests import forking, steering
from baton.runtime.starting import start
from tests.kit.bugs import replaced


@contextmanager
def a_paused_saga_schedules_on() -> Iterator[None]:
    """Pause row: the decision looks at what the saga is parked for, and not at its pause."""

    def parked(builder: DecisionBuilder) -> Decision | None:
        if builder.state.is_paused:
            free = replace(builder.state, parked=None)
            return deciding._schedule(
                DecisionBuilder(
                    builder.program, free, builder.now, builder.running, builder.found, bounds=builder.bounds
                )
            )
        return deciding._parked(builder)

    rules = tuple(rule._replace(then=parked) if rule.name == "parked" else rule for rule in deciding.RULES)
    with replaced(deciding, "RULES", rules):
        yield


@contextmanager
def time_goes_on_in_a_pause() -> Iterator[None]:
    """Resume row: the end of a pause moves no time limit."""

    def same(state: State, at: int) -> State:
        return state

    with replaced(whole_folds, "resumed_after_defect", same):
        yield


@contextmanager
def a_resume_ends_all_pauses() -> Iterator[None]:
    """Resume row: the end of one pause lets the saga go on whatever else holds it."""
    real = folding._TABLE[ev.Resumed]

    def resumed(state: State, event: Any) -> State:
        return real(state, replace(event, code="") if event.code and state.is_paused else event)

    with _folded(ev.Resumed, resumed):
        yield


@contextmanager
def _folded(kind: type[Any], fold: Any) -> Iterator[None]:
    table: Any = folding._TABLE
    old = table[kind]
    table[kind] = fold
    try:
        yield
    finally:
        table[kind] = old


@contextmanager
def a_retry_forgets_its_key() -> Iterator[None]:
    """Retry row: the fork is not remembered, so the same request retries a saga once more."""
    real = forking.fork_saga

    async def fork(request: Any, opened: Any, wanted: Any, key: str, *, lists: bool) -> Any:
        return await real(request, opened, wanted, "", lists=lists)

    with replaced(steering, "fork_saga", fork):
        yield


@contextmanager
def a_start_does_not_read_the_pause() -> Iterator[None]:
    """Pause row of a workflow: a new saga begins as if its workflow were not paused."""

    def alone(request: Any, started: ev.SagaStarted) -> tuple[ev.Event, ...]:
        return (started,)

    with replaced(start, "_events", alone):
        yield
