"""Planted engine bugs that only show where steps fail at random: each is one plausible mistake about failures.

Like those of bugs.py, each is made by replacing a function; the other tests of the simulation do not see it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import msgspec

from baton.core.decide import decide, outcomes, parking
from baton.core.failures.codes import leaves_doubt
from baton.core.failures.strategies.base import History
from baton.core.log.events import NoticeDue, Revived, StepFailed
from baton.core.log.folding import fold as folding
from baton.core.log.state import State
from baton.ports import StepFailure
from baton.runtime.invocation import attempt
from baton.runtime.log.lease import WithinLease
from baton.runtime.steps import effects
from baton.runtime.steps.effects import EffectClaims
from tests.kit.bugs import replaced


@contextmanager
def who_cannot_look_says_that_it_has_not_happened() -> Iterator[None]:
    """Effects: a `verify` that fails is taken for one that has found nothing, and the effect is repeated."""
    real = EffectClaims._look

    async def look(self: EffectClaims, one: Any, there: Any) -> Any:
        try:
            return await real(self, one, there)
        except StepFailure as failure:
            if failure.happened is not True:
                raise
            return await self._take(one, there)

    with replaced(EffectClaims, "_look", look):
        yield


@contextmanager
def what_is_catastrophic_has_not_happened() -> Iterator[None]:
    """Effects: a class of failures that leaves a doubt is taken for a refusal."""

    def no_doubt(code: str, kind: str = "", happened: bool | None = None) -> bool:
        return leaves_doubt(code, kind, happened) and kind != "catastrophic"

    with replaced(effects, "leaves_doubt", no_doubt), replaced(attempt, "leaves_doubt", no_doubt):
        yield


@contextmanager
def an_end_sends_no_notice_of_a_doubt() -> Iterator[None]:
    """Ends: a saga that fails or is cancelled while an effect is in doubt says nothing of it."""

    def nothing(*_: Any) -> Iterator[Any]:
        return iter(())

    with replaced(parking, "unknown_outcome_notices", nothing):
        yield


@contextmanager
def an_end_sends_no_notice_that_a_look_has_failed() -> Iterator[None]:
    """Ends: what could not be found out while the saga ends is the step's failure, and no person is asked."""
    real = outcomes.settle

    def settle(program: Any, state: State, outcome: Any, *more: Any) -> Iterator[Any]:
        events = list(real(program, state, outcome, *more))
        is_sure = any(isinstance(event, StepFailed) and not event.failure.doubt for event in events)
        return (event for event in events if not (is_sure and isinstance(event, NoticeDue)))

    with replaced(decide, "settle", settle):
        yield


@contextmanager
def a_lease_is_looked_at_only_before_what_precedes_a_call() -> Iterator[None]:
    """Step row: a claim takes longer than the lease, and the tool is called all the same."""

    async def perform(self: WithinLease, tool: str, arguments: Any, context: Any) -> Any:
        return await self._performer.perform(tool, arguments, context)

    with replaced(WithinLease, "perform", perform):
        yield


@contextmanager
def the_same_failure_again_is_not_written_down() -> Iterator[None]:
    """Attempts: one that fails as the one before it is taken for a repetition, and the next has its number."""
    real = outcomes.settle

    def settle(program: Any, state: State, outcome: Any, *more: Any) -> Iterator[Any]:
        before, failure = state.failing.get(outcome.slot), outcome.failure
        is_transient = failure is not None and failure.kind == "transient"
        if is_transient and before is not None and failure.code == before.failure.code:
            return iter(())
        return real(program, state, outcome, *more)

    with replaced(decide, "settle", settle):
        yield


@contextmanager
def a_death_gives_all_retries_anew() -> Iterator[None]:
    """Retries: what was tried is forgotten when an invocation takes over from a dead one."""
    real = folding._TABLE[Revived]

    def revived(state: State, event: Revived) -> State:
        failing = {
            slot: msgspec.structs.replace(one, history=History()) for slot, one in state.failing.items()
        }
        return real(msgspec.structs.replace(state, failing=failing), event)

    with replaced(folding, "_TABLE", {**folding._TABLE, Revived: revived}):
        yield


FAILURE_BUGS: Mapping[str, tuple[Callable[[], Any], str]] = {
    bug.__name__: (bug, scenario)
    for bug, scenario in (
        (who_cannot_look_says_that_it_has_not_happened, "effects"),
        (what_is_catastrophic_has_not_happened, "effects"),
        (an_end_sends_no_notice_of_a_doubt, "doubts"),
        (an_end_sends_no_notice_that_a_look_has_failed, "doubts"),
        (a_lease_is_looked_at_only_before_what_precedes_a_call, "doubts"),
        (the_same_failure_again_is_not_written_down, "effects"),
        (a_death_gives_all_retries_anew, "effects"),
    )
}
"""Each bug with the scenario of the corpus that shows it."""
