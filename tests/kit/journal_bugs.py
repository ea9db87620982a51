"""Planted bugs of journals: what is read, recorded and looked at. Where each is searched for is in planted.py."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from msgspec.structs import replace

from baton.core.decide import outcomes
from baton.ports import StepContext
from baton.runtime.steps import journal
from baton.runtime.steps.journal import AttemptJournal, KnownUnits, UnitQueue
from tests.kit.bugs import replaced


@contextmanager
def recorded_units_are_not_read() -> Iterator[None]:
    """Journal row: a further attempt does not know the units of those before."""

    async def read_known(*_: Any) -> dict[str, KnownUnits]:
        return {}

    with replaced(journal, "read_known", read_known):
        yield


@contextmanager
def a_unit_forgets_those_before_it() -> Iterator[None]:
    """Journal row: the link to the units before is lost."""

    def unit(*given: Any) -> Iterator[Any]:
        for event in real(*given):
            yield replace(event, prior=0)

    real, instead = vars(outcomes)["_unit"], vars(outcomes)["_INSTEAD"]
    with replaced(outcomes, "_INSTEAD", {**instead, outcomes.UNIT: unit}):
        yield


@contextmanager
def a_tool_goes_on_before_its_unit_is_in_the_log() -> Iterator[None]:
    """Journal row: the result is given to the tool before the entry is written."""

    def add(self: UnitQueue, *given: Any) -> Any:
        answer = real(self, *given)
        answer.set_result(None)
        return answer

    real = UnitQueue.add
    with replaced(UnitQueue, "add", add):
        yield


@contextmanager
def a_unit_has_the_key_of_another_step() -> Iterator[None]:
    """Journal row: keys of units hang on their names alone."""
    real = StepContext.key

    def key(self: StepContext, name: str) -> str:
        return real(replace(self, idempotency_key=""), name)

    with replaced(StepContext, "key", key):
        yield


@contextmanager
def the_cost_of_a_unit_is_not_in_its_entry() -> Iterator[None]:
    """Journal row: what a unit has cost is counted with the attempt, as if that could not be lost."""

    async def bill(self: AttemptJournal, *given: Any) -> int:
        return 0

    with replaced(AttemptJournal, "_bill", bill):
        yield


@contextmanager
def a_unit_is_paid_with_its_attempt_too() -> Iterator[None]:
    """Journal row: the attempt keeps what the log has with a unit."""

    async def bill(self: Any, *given: Any) -> int:
        spent = [*self._attempt.spent]
        cost: int = await real(self, *given)
        self._attempt.spent[:] = spent
        return cost

    real = vars(AttemptJournal)["_bill"]
    with replaced(AttemptJournal, "_bill", bill):
        yield
