"""An effect that happens once: claim it, act, record what came of it; and what an earlier claim means.

Belongs here: the order of the writes, and every way to meet an effect that is there already. Does not belong here: what
a key is made of (core/keys), which failures leave a doubt (core/failures/doubts.py), how a claim is stored.

A happy effect is two writes: the claim before, the result after. A crash before the claim has done nothing; one after
the result finds it. One in between leaves a claim that nobody holds: whether the effect has happened is not known, and
it is never simply done again. `verify` looks, or a person does.

A claim is nobody's when its time has passed by every clock, when its try has ended in this process, or when it is of this very saga
and of another invocation: only one at a time runs a saga.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec.structs import replace

from baton.core.events import Value
from baton.core.failures import sanitised
from baton.core.failures.doubts import leaves_doubt
from baton.core.keys import REFUSE
from baton.core.limits import Limits
from baton.core.rows import Row
from baton.core.schema import violations
from baton.core.toolspec import ToolSpec
from baton.ports import Blobs, Clock, Effect, Effects, Entropy, NoRoom, StepContext, StepFailure
from baton.ports.effects import COMPLETED, FAILED, FREED, IN_PROGRESS
from baton.runtime.patience import Patience

Act = Callable[[], Awaitable[Any]]

DAY_MS = 86_400_000
MOST_MESSAGE = 2_000
logger = logging.getLogger("baton.worker")


class _Outcome(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is recorded: the result, and the rows that were to be written with it."""

    value: Value
    rows: tuple[Row, ...] = ()


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(_Outcome).decode


@dataclass(frozen=True)
class Done:
    """What came of an effect. `is_recorded`: it had happened before, and nothing was done now."""

    value: Value
    rows: tuple[Row, ...] = ()
    is_recorded: bool = False


@dataclass
class _Try:
    """One try of one attempt. `claim` is what it puts; `pause` is the next one if it has to wait."""

    spec: ToolSpec
    context: StepContext
    claim: Effect
    verify: Act | None
    decided: str
    pause: int


class OfClaim(StepFailure):
    """What became of a claim could not be found out. `claim` is its owner: what a person says of it holds for that one."""

    def __init__(self, failure: StepFailure, claim: str) -> None:
        super().__init__(
            failure.code,
            failure.message,
            kind=failure.kind,
            status=failure.status,
            retry_after=failure.retry_after,
            happened=failure.happened,
        )
        self.claim = claim


class Once:
    """Once-only effects for one invocation."""

    def __init__(
        self,
        effects: Effects,
        blobs: Blobs,
        clock: Clock,
        entropy: Entropy,
        limits: Limits,
        call: Patience,
    ) -> None:
        self._effects = effects
        self._blobs = blobs
        self._clock = clock
        self._entropy = entropy
        self._limits = limits
        self._call = call
        self._numbers = itertools.count(1)
        self._name = ""
        self._live: set[str] = set()

    async def run(
        self,
        spec: ToolSpec,
        slot: str,
        context: StepContext,
        act: Act,
        verify: Act | None = None,
        *,
        decided: str = "",
        generation: int = 0,
        about: str = "",
        scope: str = "",
    ) -> Done:
        """What came of the effect `context.idempotency_key`, now or when it happened.

        `act` does it, within the time until `context.deadline_ms`; `verify` says what `spec.verify` returns.
        `decided`: a person has said that what this owner has claimed has not happened; empty if no person has. Raises
        `StepFailure`, and whatever `act` raises; `in_progress` is its own, and so is `OfClaim` where nobody could find
        out what became of a claim. Cancelled, it leaves its claim as it is. A store that stays away is an engine fault,
        also after the effect: nothing else could be written either, and the next attempt looks whether it has happened.
        """
        self._name = self._name or self._entropy.token(64)
        claim = Effect(
            tenant=context.tenant,
            key=context.idempotency_key,
            status=IN_PROGRESS,
            owner=f"{self._name}-{next(self._numbers)}",
            tool=spec.name,
            saga=context.saga,
            slot=slot,
            until=context.deadline_ms + self._limits.effect_grace_ms,
            first=self._clock.now(),
            updated=self._clock.now(),
            generation=generation,
            about=about,
            scope=scope,
        )
        one = _Try(spec, context, claim, verify, decided, self._limits.effect_pause_first_ms)
        self._live.add(claim.owner)
        try:
            there = await self._claim(one)
            while there is not None:
                if there.status == COMPLETED:
                    _check_about(there, about)
                    return await self._recorded(there, claim)
                if there.owner == claim.owner:  # its own, of a call whose answer was lost
                    break
                met = await self._meet(one, there)
                if isinstance(met, Done):
                    return met
                there = met
            return await self._act(one, act)
        finally:
            self._live.discard(claim.owner)

    async def happened(
        self, spec: ToolSpec, slot: str, context: StepContext, value: Value, decided: str, scope: str = ""
    ) -> bool:
        """Record what a person says came of a doubtful effect. False where there is none any more.

        `decided` owns the claim that the person was asked about. Where that is not known, it is that of this place.
        """
        there = await self._call(self._effects.read, context.tenant, context.idempotency_key)
        if there is None or there.status != IN_PROGRESS:
            return False
        mine = replace(there, saga=context.saga, slot=slot, scope=scope)
        if there.owner != decided if decided else _place(there) != _place(mine):
            return False
        # Another name, so that the holder of the claim, if it lives, learns of it.
        done = replace(await self._completed(mine, spec, _Outcome(value)), owner=f"{there.owner}/said")
        now_there = await self._call(self._effects.change, there, done)
        return now_there is None or now_there.owner == done.owner

    # -- meeting an effect that is there

    async def _meet(self, one: _Try, there: Effect) -> Effect | Done | None:
        """What is there after this one was met; None when the claim is ours, and it is our turn to act."""
        now = self._clock.now()
        if there.status == FREED:
            return await self._take(one, there)
        if there.status == FAILED:
            window = one.spec.key.retry_window_ms or self._limits.effect_retry_ms
            if now - there.first <= window:
                return await self._take(one, there)
            raise StepFailure(
                there.code,
                f"{there.message} (it failed at {_iso(there.updated)}; its time to be tried again is over)",
                kind=there.kind,
                happened=False,
            )
        if not self._is_nobodys(one, there, now):
            return await self._wait(one, there, now)
        if there.owner == one.decided:
            return await self._take(one, there)
        try:
            return await self._look(one, there)
        except StepFailure as failure:
            raise OfClaim(failure, there.owner) from failure

    def _is_nobodys(self, one: _Try, there: Effect, now: int) -> bool:
        if self._over(there) <= now:
            return True
        if there.owner.startswith(f"{self._name}-"):
            return there.owner not in self._live
        return there.saga == one.context.saga

    def _over(self, there: Effect) -> int:
        """When the time of a claim is over by every clock: its holder acts until its own says so."""
        return there.until + self._limits.clock_skew_ms

    async def _wait(self, one: _Try, there: Effect, now: int) -> Effect | None:
        """Look again after a pause, until the step's own time is over."""
        left = one.context.deadline_ms - now
        if one.spec.key.in_progress == REFUSE or left <= 0:
            whose = "this saga" if there.saga == one.context.saga else f"saga {there.saga}"
            raise StepFailure(
                "in_progress",
                f"`{there.tool}` is being done by {whose}, which began at {_iso(there.updated)}",
            )
        await asyncio.sleep(min(one.pause, left, self._over(there) - now) / 1_000)
        one.pause = min(one.pause * 2, self._limits.effect_pause_longest_ms)
        found = await self._call(self._effects.read, there.tenant, there.key)
        return await self._claim(one) if found is None else found

    async def _look(self, one: _Try, there: Effect) -> Effect | Done | None:
        """A claim that nobody holds: whether it has happened is for `verify` to say, or for a person."""
        if one.verify is None:
            raise _unknown(there, "the tool names no `verify` that could look")
        try:
            told = await one.verify()
        except (StepFailure, TimeoutError) as error:
            failure = error if isinstance(error, StepFailure) else StepFailure("timeout", "no answer in its time")
            why = f"`{one.spec.verify}` could not look whether `{there.tool}` has happened: {failure.message}"
            raise StepFailure(
                failure.code,
                why,
                kind=failure.kind,
                status=failure.status,
                retry_after=failure.retry_after,
                happened=True,  # as far as anybody knows
            ) from error
        match told:
            case {"happened": True}:
                _check_about(there, one.claim.about)
                result = told.get("result")
                if problems := violations(one.spec.result, result):
                    what = f"`{one.spec.verify}` says so, but gives no result that `{there.tool}` could have"
                    raise _unknown(
                        there, f"{what}: at {problems[0].path or '/'}: {problems[0].message}", True
                    )
                outcome = _Outcome(await self._value(one, result))
                done = await self._completed(self._renewed(one, there), one.spec, outcome)
                found = await self._call(self._effects.change, there, done)
                return Done(outcome.value, is_recorded=True) if found is None else found
            case {"happened": False}:
                return await self._take(one, there)
            case {"happened": None}:
                raise _unknown(there, f"`{one.spec.verify}` cannot tell")
        raise StepFailure(
            "result_invalid",
            f"`{one.spec.verify}` must return an object with `happened` (true, false or null), and a `result` if true",
        )

    # -- writing

    async def _claim(self, one: _Try) -> Effect | None:
        now = self._clock.now()
        one.claim = replace(one.claim, first=now, updated=now)
        return await self._call(self._effects.claim, one.claim, now)

    def _renewed(self, one: _Try, there: Effect) -> Effect:
        """Our claim, of an effect that was begun when that one was."""
        return replace(one.claim, first=there.first, updated=self._clock.now())

    async def _take(self, one: _Try, there: Effect) -> Effect | None:
        one.claim = self._renewed(one, there)
        return await self._call(self._effects.change, there, one.claim)

    async def _act(self, one: _Try, act: Act) -> Done:
        claim = one.claim
        try:
            result = await act()
        except NoRoom:
            freed = replace(claim, status=FREED, expires=self._expiry(one.spec))
            await self._call(self._effects.change, claim, freed)
            raise
        except StepFailure as failure:
            if not leaves_doubt(failure.code, failure.kind, failure.happened):
                failed = replace(
                    claim,
                    status=FAILED,
                    updated=self._clock.now(),
                    code=failure.code,
                    message=sanitised(failure.message[: 10 * MOST_MESSAGE])[:MOST_MESSAGE],
                    kind=failure.kind,
                    expires=self._expiry(one.spec),
                )
                await self._call(self._effects.change, claim, failed)
            raise
        outcome = _Outcome(await self._value(one, result), tuple(one.context.rows))
        done = await self._completed(claim, one.spec, outcome)
        found = await self._call(self._effects.change, claim, done)
        if found is not None and found.owner != claim.owner:
            # Our time was over, and somebody was told that it had not happened, or has found that it had. What they
            # recorded is what everybody gets; without that, ours is as true.
            logger.warning(
                "an effect was taken over while it was acted on",
                extra={"tool": one.spec.name, "saga": claim.saga, "key": claim.key},
            )
            if found.status == COMPLETED:
                return await self._recorded(found, claim)
        return Done(outcome.value, outcome.rows)

    async def _completed(self, claim: Effect, spec: ToolSpec, outcome: _Outcome) -> Effect:
        """The effect with its outcome: in the item, or in a blob if it is large."""
        data, ref = _encode(outcome), ""
        if len(data) > 2 * self._limits.inline_bytes:
            data, ref = b"", await self._call(self._blobs.put, claim.tenant, data)
        return replace(
            claim,
            status=COMPLETED,
            updated=self._clock.now(),
            data=data,
            ref=ref,
            expires=self._expiry(spec),
        )

    def _expiry(self, spec: ToolSpec) -> int:
        """In whole seconds, as the table's time to live is."""
        keep = spec.key.keep_ms or self._limits.effect_ttl_days * DAY_MS
        return -(-(self._clock.now() + keep) // 1_000) * 1_000

    async def _value(self, one: _Try, result: Any) -> Value:
        """The result as a value. Raises `StepFailure` for one that is too large: the claim stays, for it has happened."""
        data = _encode(result)
        if len(data) > self._limits.result_bytes:
            limit = self._limits.result_bytes
            raise StepFailure("result_too_large", f"the result is larger than {limit} bytes")
        if len(data) <= self._limits.inline_bytes:
            return Value(v=result)
        return Value(ref=await self._call(self._blobs.put, one.context.tenant, data), size=len(data))

    async def _recorded(self, there: Effect, mine: Effect) -> Done:
        """What was recorded. Rows are the saga's own that acted: only its entry brings them, however often it is tried."""
        data = there.data or await self._call(self._blobs.get, there.tenant, there.ref)
        outcome = _decode(data)
        is_own = (there.scope or there.saga) == (mine.scope or mine.saga)
        return Done(outcome.value, outcome.rows if is_own else (), is_recorded=True)


def _place(effect: Effect) -> tuple[str, str]:
    """Where in which saga an effect belongs, in whatever branch of it."""
    return effect.scope or effect.saga, effect.slot


def _check_about(there: Effect, about: str) -> None:
    """What came of a call is no answer to one with other parameters. Raises `StepFailure`."""
    if there.about in ("", about) or not about:
        return
    raise StepFailure(
        "idempotency_key_reused",
        f"`{there.tool}` was called with other parameters for the same thing by saga {there.saga} at `{there.slot}`, "
        f"at {_iso(there.first)}: what came of that is no answer to this",
        happened=False,
    )


def _unknown(there: Effect, why: str, is_sure: bool = False) -> StepFailure:
    begun = f"an attempt of saga {there.saga} at `{there.slot}` began at {_iso(there.updated)}"
    if is_sure:
        return StepFailure(
            "unknown_outcome",
            f"`{there.tool}` has happened, but what came of it is not known: {begun}; {why}",
        )
    return StepFailure(
        "unknown_outcome",
        f"`{there.tool}` may have happened: {begun} and did not say how it ended; {why}. "
        "It is not done again before somebody has looked",
    )


def _iso(moment: int) -> str:
    return datetime.fromtimestamp(moment / 1_000, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
