"""Circuit breakers around the calls of one invocation; loaded with the first call that has one.

A healthy call waits for nothing: where no failures of a target are known of, by this process or by the
step, its record is read beside a call, once a minute, so that an operator's word is heard. What a record
means is in core/failures/breakers.py. A store that gives no answer holds nothing up: calls go through.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

from baton.core.decide.decision import RunStep
from baton.core.decide.outcomes import HELD, Outcome
from baton.core.failures.breakers import (
    CLOSED,
    OPEN,
    Breaker,
    BreakerTerms,
    FailureReport,
    is_quiet,
    may_pass,
    may_probe,
    next_look,
    speaks_of_target,
    with_probe,
    with_reports,
    with_verdict,
)
from baton.core.failures.codes import ENGINE
from baton.core.log.state import Held, State
from baton.errors import CorruptLog, EngineFault
from baton.runtime.invocation.context import InvocationContext
from baton.runtime.invocation.watch import Metrics
from baton.runtime.money.accounts import short_name

logger = logging.getLogger("baton.breakers")

FRESH_MS = 5_000
"""Longest age, in ms, of a process's copy of a breaker, if the breaker matters."""
GLANCE_MS = 60_000
"""Milliseconds between reads of the record of a target without known failures.
No call waits for these reads.
"""
SILENT_MS = 5_000
"""Milliseconds without requests to the store after it has given no answer."""
WRITE_EVERY_MS = 1_000
"""The shortest time between two reports of failures by one process, for each target."""
BRIEFLY_MS = 500
"""Longest time, in ms, that a call waits for the record of its target."""
TRIES = 8
MOST_KNOWN = 1_000
"""Highest number of targets that one process remembers; the number of hosts has no bound."""

Place = tuple[str, str]
_SAYS_NOTHING = ENGINE - {"timeout", "result_too_large", "result_invalid"}


@dataclass(slots=True)
class LocalBreaker:
    """State of a breaker as one process knows it, and calls not reported yet.
    It outlives an invocation.

    `calls`: of the window that began at `calls_from`, since the last report.
    """

    breaker: Breaker | None = None
    read_at: int = 0
    written_at: int = 0
    silent_until: int = 0
    calls: int = 0
    calls_from: int = 0
    pending: list[FailureReport] = field(default_factory=list)


class Breaking:
    """Circuit breakers of one invocation: they let calls through, hold them back,
    and count their outcomes.
    """

    def __init__(
        self,
        context: InvocationContext,
        cache: dict[Place, LocalBreaker],
        terms: BreakerTerms,
        metrics: Metrics,
    ) -> None:
        self._call, self._clock, self._entropy = context.call, context.clock, context.entropy
        self._skew, self._by = context.limits.clock_skew_ms, short_name(context.invocation.id)
        self._breakers, self._cache, self._terms, self._metrics = (
            context.store.breakers,
            cache,
            terms,
            metrics,
        )
        self._reading: dict[Place, asyncio.Task[None]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def around(
        self,
        target: str,
        state: State,
        step: RunStep,
        lasts_ms: int,
        attempt: Callable[[], Awaitable[Outcome]],
    ) -> Outcome:
        """Return the outcome of an attempt, or `HELD`: it was not made. `lasts_ms`: its longest duration."""
        place, now = (state.origin.tenant, target), self._clock.now()
        known = self._cache.get(place) or self._remember(place)
        probe = ""
        if self._matters(known, state, step, now):
            name = f"{self._by}/{short_name(f'{state.origin.saga}/{step.slot}/{step.attempt}/{now}')}"
            answer = await self._ask(place, known, name, lasts_ms)
            if isinstance(answer, Held):
                end = self._clock.now()
                return Outcome(
                    slot=step.slot, attempt=step.attempt, started_at=now, ended_at=end, why=HELD, held=answer
                )
            probe = answer
        elif now - known.read_at >= GLANCE_MS and now >= known.silent_until:
            known.read_at = now
            self._soon(place, known, self._look(place, known))
        verdict: str | None = None
        try:
            outcome = await attempt()
            verdict = verdict_of(outcome)
        finally:
            self._heard(place, known, probe, verdict)
        return outcome

    async def drain(self) -> None:
        """Wait for the reports under way; each takes little time."""
        if self._tasks:
            await asyncio.wait(self._tasks)

    # ---- before the call

    def _remember(self, place: Place) -> LocalBreaker:
        """Remember one more target, in place of the oldest."""
        if len(self._cache) >= MOST_KNOWN:
            del self._cache[next(iter(self._cache))]
        known = self._cache[place] = LocalBreaker()
        return known

    def _matters(self, known: LocalBreaker, state: State, step: RunStep, now: int) -> bool:
        """Return true if the record may refuse the call. Otherwise nothing is read."""
        if now < known.silent_until:
            return False
        last = step.failure
        if step.slot in state.held or (
            last is not None and speaks_of_target(last.code, last.kind, last.status)
        ):
            return True
        return bool(known.pending) or (
            known.breaker is not None and not is_quiet(known.breaker, self._terms, now)
        )

    async def _ask(self, place: Place, known: LocalBreaker, name: str, lasts_ms: int) -> str | Held:
        """Ask the breaker for a call. An empty text: it may be made. A name: it is the probe of that name.
        Else when to ask again.
        """
        try:
            is_closed = known.breaker is not None and may_pass(known.breaker)
            # Where failures are known of and it is not open yet, it may open any moment.
            most = WRITE_EVERY_MS if is_closed else FRESH_MS
            if self._clock.now() - known.read_at >= most or self._may_report(known):
                await self._refresh(place, known)
            return await self._pass(place, known, name, lasts_ms)
        except (EngineFault, CorruptLog) as error:
            self._no_answer(place, known, error)
            return ""

    async def _refresh(self, place: Place, known: LocalBreaker) -> None:
        """Read the breaker; several steps that ask at once share one answer."""
        task = self._reading.get(place)
        if task is None or task.done():
            task = self._reading[place] = asyncio.create_task(self._look(place, known))
            task.add_done_callback(_hear)
        await asyncio.shield(task)

    async def _look(self, place: Place, known: LocalBreaker) -> None:
        if self._may_report(known):
            await self._report(place, known)
            return
        found = await self._briefly()(self._breakers.read_breaker, *place)
        if found is None or known.breaker is None or found.version >= known.breaker.version:
            known.breaker = found or Breaker()  # a read that is behind tells nothing
        known.read_at = self._clock.now()

    async def _pass(self, place: Place, known: LocalBreaker, name: str, lasts_ms: int) -> str | Held:
        for _ in range(TRIES):
            there, now = known.breaker or Breaker(), self._clock.now()
            if may_pass(there):
                return ""
            if not may_probe(there, self._terms, now):
                break
            # Others judge its end by their own clocks.
            after = with_probe(there, name, now + lasts_ms + self._skew, self._terms, now)
            if await self._write(place, known, after) or any(
                one.by == name for one in (known.breaker or after).probes
            ):
                return name
        there, now = known.breaker or Breaker(), self._clock.now()
        until = next_look(there, self._terms, now, self._entropy.uniform())
        return Held(breaker=place[1], at=now, until=until, state=there.state)

    # ---- after the call

    def _heard(self, place: Place, known: LocalBreaker, probe: str, verdict: str | None) -> None:
        now = self._clock.now()
        if probe:
            self._soon(place, known, self._judge(place, known, probe, verdict))
            return
        if verdict is None:
            return
        if now - known.calls_from >= self._terms.window_ms:
            known.calls, known.calls_from = 0, now
        known.calls += 1
        if not verdict:
            return
        same = next((one for one in known.pending if one.code == verdict), None)
        count, calls = (0, 0) if same is None else (same.count, same.calls)
        failed = FailureReport(now, verdict, count + 1, calls + known.calls, self._by)
        known.pending = [*(one for one in known.pending if one is not same), failed]
        known.calls = 0
        if self._may_report(known):
            self._soon(place, known, self._report(place, known))

    def _may_report(self, known: LocalBreaker) -> bool:
        return bool(known.pending) and self._clock.now() - known.written_at >= WRITE_EVERY_MS

    async def _report(self, place: Place, known: LocalBreaker) -> None:
        """Write the failures that are pending. Those that cannot be written are pending again."""
        reports, known.pending, known.written_at = tuple(known.pending), [], self._clock.now()
        done = False
        try:
            for _ in range(TRIES):
                there, now = known.breaker or Breaker(), self._clock.now()
                after = with_reports(there, reports, self._terms, now, self._entropy.uniform())
                done = after is there or await self._write(place, known, after)
                if done:
                    known.read_at = now
                    return
        finally:
            if not done:
                first = self._clock.now() - self._terms.window_ms
                known.pending = [*(one for one in reports if one.at > first), *known.pending]

    async def _judge(self, place: Place, known: LocalBreaker, probe: str, verdict: str | None) -> None:
        for _ in range(TRIES):
            there, now = known.breaker or Breaker(), self._clock.now()
            after = with_verdict(there, probe, verdict, self._terms, now, self._entropy.uniform())
            if after is there or await self._write(place, known, after):
                return

    # ---- the store

    async def _write(self, place: Place, known: LocalBreaker, after: Breaker) -> bool:
        """Write the record. Return true if it was written. The copy is as fresh as the answer, either way."""
        before = known.breaker
        refused = await self._briefly()(self._breakers.write_breaker, *place, after, self._clock.now())
        known.breaker, known.read_at = (after if refused is None else refused), self._clock.now()
        if refused is None and (before.state if before else CLOSED) != after.state:
            self._tell(place, after)
        return refused is None

    def _briefly(self) -> Callable[..., Awaitable[Any]]:
        return self._call.within(BRIEFLY_MS)

    def _tell(self, place: Place, after: Breaker) -> None:
        tenant, target = place
        logger.warning(
            "the breaker `%s` is %s: %s",
            target,
            after.state.replace("_", "-"),
            after.moves[-1].why,
            extra={"tenant": tenant, "breaker": target, "state": after.state},
        )
        if after.state == OPEN:
            self._metrics.opened(target, self._clock.now())

    def _soon(self, place: Place, known: LocalBreaker, work: Coroutine[Any, Any, None]) -> None:
        async def told() -> None:
            try:
                await work
            except (EngineFault, CorruptLog) as error:
                self._no_answer(place, known, error)

        task = asyncio.create_task(told(), name=f"breaker {place[1]}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _no_answer(self, place: Place, known: LocalBreaker, error: Exception) -> None:
        known.silent_until = self._clock.now() + SILENT_MS
        logger.warning("the breaker `%s` is not known, calls go through: %r", place[1], error)


def verdict_of(outcome: Outcome) -> str | None:
    """Return the code of a failure of the target, an empty text if it has answered,
    None if the attempt says nothing of it.
    """
    failure = outcome.failure
    if outcome.why or (failure is None and outcome.output is None):
        return None
    if failure is None:
        return ""
    if speaks_of_target(failure.code, failure.kind, failure.status):
        return failure.code
    return None if failure.code in _SAYS_NOTHING else ""


def _hear(task: asyncio.Task[None]) -> None:
    """Retrieve the task's exception. Callers that wait get it; without any, it was reported already."""
    if not task.cancelled():
        task.exception()
