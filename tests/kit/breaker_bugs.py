"""Planted bugs about circuit breakers, made as those of bugs.py are; with the oracle of breaker_runs.py that finds each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from msgspec.structs import replace

from baton.core.decide import failure_handling
from baton.core.failures.breakers import HALF_OPEN, Breaker, BreakerTerms
from baton.runtime.steps import breaking
from tests.kit.breaker_runs import ATTEMPTS, CALLS, ENDS, PROBES, STATE
from tests.kit.bugs import replaced


@contextmanager
def a_probe_never_ends() -> Iterator[None]:
    """Break row: a probe whose process has died keeps its place for ever."""

    def may_probe(there: Breaker, terms: BreakerTerms, now: int) -> bool:
        return bool(real(there, terms, now)) and not (there.state == HALF_OPEN and there.probes)

    real: Any = vars(breaking)["may_probe"]
    with replaced(breaking, "may_probe", may_probe):
        yield


@contextmanager
def a_breaker_never_closes() -> Iterator[None]:
    """Break row: the answer of a probe is not taken for one."""

    def judged(there: Breaker, by: str, verdict: str | None, *more: Any) -> Any:
        return real(there, by, verdict or None, *more)

    real: Any = vars(breaking)["with_verdict"]
    with replaced(breaking, "with_verdict", judged):
        yield


@contextmanager
def a_breaker_never_opens() -> Iterator[None]:
    """Break row: failures are reported and not counted."""

    def reported(there: Breaker, *more: Any) -> Breaker:
        after = real(there, *more)
        return after if after is there else replace(there, version=after.version)

    real: Any = vars(breaking)["with_reports"]
    with replaced(breaking, "with_reports", reported):
        yield


@contextmanager
def a_wait_counts_as_an_attempt() -> Iterator[None]:
    """A step that is held back has failed."""
    with replaced(failure_handling, "may_wait_for_breaker", lambda *_: False):
        yield


@contextmanager
def every_call_is_let_through() -> Iterator[None]:
    """Break row: a call when the pause is over claims nothing."""

    def probed(there: Breaker, by: str, until: int, terms: BreakerTerms, now: int) -> Any:
        after = real(there, by, until, terms, now)
        return (
            replace(after, state=there.state, until=there.until, probes=()) if after is not there else there
        )

    real: Any = vars(breaking)["with_probe"]
    with replaced(breaking, "with_probe", probed):
        yield


@contextmanager
def a_step_that_is_held_back_is_never_due() -> Iterator[None]:
    """The time at which it asks again is that of the end of the world."""

    def next_look(*_: Any) -> int:
        return 1 << 45

    with replaced(breaking, "next_look", next_look):
        yield


BREAKER_BUGS: Mapping[Callable[[], AbstractContextManager[None]], str] = {
    a_probe_never_ends: ENDS,
    a_breaker_never_closes: STATE,
    a_breaker_never_opens: CALLS,
    a_wait_counts_as_an_attempt: ATTEMPTS,
    every_call_is_let_through: PROBES,
    a_step_that_is_held_back_is_never_due: ENDS,
}
