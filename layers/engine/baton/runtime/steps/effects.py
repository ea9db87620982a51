"""Effects that happen once: claim, act, record; and the meaning of an earlier claim."""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import logging
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from baton.core.conditions.schema import violations
from baton.core.decide.unknown_outcomes import SAGA, STEP
from baton.core.effects.keys import REFUSE
from baton.core.effects.rows import Row
from baton.core.effects.toolspec import ToolSpec
from baton.core.failures import quoted
from baton.core.failures.codes import leaves_doubt
from baton.core.limits import DAY_MS
from baton.core.log.events import Value
from baton.core.log.slots import Slot
from baton.ports import Effect, NoRoom, StepContext, StepFailure
from baton.ports.log import period_of
from baton.ports.records import COMPLETED, FAILED, FREED, IN_PROGRESS
from baton.runtime.invocation.context import InvocationContext


class Recorded(msgspec.Struct, frozen=True, omit_defaults=True):
    """Recorded data of an effect: the result, and the rows to be written with it."""

    value: Value
    rows: tuple[Row, ...] = ()


encode = msgspec.json.Encoder().encode
decode = msgspec.json.Decoder(Recorded).decode


class EffectResult(Struct, frozen=True):
    """The result of an effect.
    `is_recorded`: it had happened before, and nothing was done now; `is_own`: not for another saga;
    `is_here`: not for another step.
    """

    value: Value
    rows: tuple[Row, ...] = ()
    is_recorded: bool = False
    is_own: bool = True
    is_here: bool = True

    @property
    def by(self) -> str:
        """Other place that has done the effect; see `Outcome.done_by`."""
        return "" if self.is_here else STEP if self.is_own else SAGA


class UndecidedClaim(StepFailure):
    """The outcome of a claim could not be found out.
    A person's answer is valid for `claim`, its owner, alone.
    """

    def __init__(self, failure: StepFailure, claim: str) -> None:
        super().__init__(
            failure.code,
            failure.message,
            kind=failure.kind,
            status=failure.status,
            retry_after=failure.retry_after,
            happened=failure.happened,
            unsent=failure.unsent,
        )
        self.claim = claim


def place_of(effect: Effect) -> tuple[str, str]:
    """Return the saga, in any branch of it, and the slot of an effect."""
    return effect.scope or effect.saga, effect.slot


def key_of_its_own(effect: Effect) -> str:
    """Return the key that keeps an effect's result for its own place,
    once another place uses the effect's key.
    """
    place = hashlib.sha256("\n".join(place_of(effect)).encode()).hexdigest()
    return f"{effect.key}.{place[:16]}"


def check_about(there: Effect, about: str) -> None:
    """Raise `StepFailure` if the recorded call had other parameters: its result is no answer to this one."""
    if there.about in ("", about) or not about:
        return
    raise StepFailure(
        "idempotency_key_reused",
        f"`{there.tool}` was called with other parameters for the same thing by saga {there.saga} at `{there.slot}`, "
        f"at {iso(there.first)}: what came of that is no answer to this",
        happened=False,
    )


def unknown(there: Effect, why: str, is_sure: bool = False) -> StepFailure:
    """Return the failure of a step whose effect may have happened."""
    begun = f"an attempt of saga {there.saga} at `{there.slot}` began at {iso(there.updated)}"
    if is_sure:
        return StepFailure(
            "unknown_outcome",
            f"`{there.tool}` has happened, but what came of it is not known: {begun}; {why}",
        )
    return StepFailure(
        "unknown_outcome",
        f"`{there.tool}` may have happened: {begun} and did not say how it ended; {why}. "
        "It is not done again before a person has looked",
    )


def iso(moment: int) -> str:
    return datetime.fromtimestamp(moment / 1_000, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


class EffectRecords:
    """Records of effects for one invocation."""

    def __init__(self, context: InvocationContext) -> None:
        self._blobs = context.blobs
        self._clock = context.clock
        self._limits = context.limits
        self._call = context.call

    async def completed(self, claim: Effect, spec: ToolSpec, outcome: Recorded) -> Effect:
        """Return the effect with its outcome: in the item, or in a blob if it is large."""
        data, ref = encode(outcome), ""
        if len(data) > 2 * self._limits.inline_bytes:
            data, ref = b"", await self._call(self._blobs.put, claim.tenant, data, self._period(spec))
        return replace(self.ended(claim, COMPLETED, spec), data=data, ref=ref)

    def ended(self, claim: Effect, status: str, spec: ToolSpec) -> Effect:
        """Return the ended effect: remembered for longer than its saga lasts,
        shared as long as its tool says.
        """
        now, keep, lasts = self._clock.now(), spec.key.keep_ms, self._lasts(spec)
        return replace(
            claim,
            status=status,
            updated=now,
            shared_until=now + keep if keep else 0,
            expires=-(-(now + lasts) // 1_000) * 1_000,  # in whole seconds, as the table's time to live is
        )

    def freed(self, claim: Effect) -> Effect:
        """Return a claim under which the next call acts, remembered as long as a result."""
        now = self._clock.now()
        days = max(self._limits.effect_ttl_days, self._limits.saga_days)
        return replace(
            claim,
            status=FREED,
            updated=now,
            data=b"",
            ref="",
            code="",
            kind="",
            shared_until=0,
            expires=now + days * DAY_MS,
        )

    def _lasts(self, spec: ToolSpec) -> int:
        """Return the milliseconds for which the result of an effect is kept."""
        days = max(self._limits.effect_ttl_days, self._limits.saga_days)
        return max(days * DAY_MS, spec.key.keep_ms)

    async def value(self, spec: ToolSpec, tenant: str, result: Any) -> Value:
        """Return the result as a value.
        Raises `StepFailure` for one that is too large: the claim stays, because the effect has happened.
        """
        data = encode(result)
        if len(data) > self._limits.result_bytes:
            limit = self._limits.result_bytes
            raise StepFailure("result_too_large", f"the result is larger than {limit} bytes")
        if len(data) <= self._limits.inline_bytes:
            return Value(v=result)
        ref = await self._call(self._blobs.put, tenant, data, self._period(spec))
        return Value(ref=ref, size=len(data))

    def _period(self, spec: ToolSpec) -> str:
        """Return the storage period of a result: the last saga that gets it may only just have begun then."""
        now, limits = self._clock.now(), self._limits
        life = (limits.saga_days + limits.retention_days) * DAY_MS
        return period_of(now, now + self._lasts(spec) + life)

    async def recorded(self, there: Effect, mine: Effect) -> EffectResult:
        """Return the recorded result.
        Only the saga that acted gets the rows: its entry writes them, however often it is tried.
        """
        data = there.data or await self._call(self._blobs.get, there.tenant, there.ref)
        outcome = decode(data)
        is_own = (there.scope or there.saga) == (mine.scope or mine.saga)
        return EffectResult(
            outcome.value,
            outcome.rows if is_own else (),
            is_recorded=True,
            is_own=is_own,
            is_here=place_of(there) == place_of(mine),
        )


Act = Callable[[], Awaitable[Any]]

MOST_MESSAGE = 2_000
logger = logging.getLogger("baton.worker")


class _Try(Struct):
    """One try of one attempt. It puts `claim`; `pause` is its next pause if it has to wait.

    `before` is the record that `claim` replaced; `has_asked`: it has read the record kept for its own place.
    """

    spec: ToolSpec
    context: StepContext
    claim: Effect
    verify: Act | None
    decided: str
    pause: int
    before: Effect | None = None
    has_asked: bool = False


class EffectClaims:
    """Claims of once-only effects, for one invocation."""

    def __init__(self, context: InvocationContext) -> None:
        self._effects = context.store.effects
        self._records = EffectRecords(context)
        self._clock = context.clock
        self._entropy = context.entropy
        self._limits = context.limits
        self._call = context.call
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
    ) -> EffectResult:
        """Return the result of the effect `context.idempotency_key`, of now or of an earlier time.

        `act` does it, within the time until `context.deadline_ms`; `verify` returns the result of
        `spec.verify`. `decided`: the owner whose claim has not happened, as a person has said; empty if no
        person has. Raises `StepFailure`, and any error of `act`; raises `in_progress` itself, and
        `UndecidedClaim` if the outcome of a claim could not be found out. Cancelled, it leaves its claim as
        it is. A store that stays away is an engine fault, also after the effect: nothing else could be
        written either, and the next attempt checks the effect.
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
            attempt=context.attempt,
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
                met = await self._meet(one, there)
                if isinstance(met, EffectResult):
                    return met
                there = met
            return await self._act(one, act)
        finally:
            self._live.discard(claim.owner)

    async def happened(
        self, spec: ToolSpec, slot: str, context: StepContext, value: Value, decided: str, scope: str = ""
    ) -> bool:
        """Record what a person says came of a doubtful effect. False where there is none any more.

        `decided` owns the claim that the person was asked about. Where that is not known, it is that of this
        place.
        """
        there = await self._call(self._effects.read, context.tenant, context.idempotency_key)
        if there is None or there.status != IN_PROGRESS:
            return False
        mine = replace(there, saga=context.saga, slot=slot, scope=scope)
        if there.owner != decided if decided else place_of(there) != place_of(mine):
            return False
        # Another name, so that the holder of the claim, if it lives, learns of it.
        done = replace(
            await self._records.completed(mine, spec, Recorded(value)), owner=f"{there.owner}/said"
        )
        await self._keep_for(there, done, spec)
        now_there = await self._call(self._effects.change, there, done)
        return now_there is None or now_there.owner == done.owner

    # -- meeting an effect that is there

    async def _meet(self, one: _Try, there: Effect) -> Effect | EffectResult | None:
        """Return the effect that is stored after this one was met; None when the claim is ours,
        and we act.
        """
        now = self._clock.now()
        is_own = place_of(there) == place_of(one.claim)
        if not is_own and (kept := await self._kept(one)) is not None:
            return await self._given(one, kept)
        is_over = bool(one.spec.key.keep_ms) and 0 < there.shared_until <= now
        if there.status == COMPLETED and (is_own or not is_over):
            return await self._given(one, there)
        if there.owner == one.claim.owner:  # its own, of a call whose answer was lost
            return None
        if there.status == COMPLETED:
            await self._keep(there)
        if is_over:
            return await self._take(one, replace(there, first=now))
        if there.status == FREED:
            return await self._take(one, there)
        if there.status == FAILED:
            return await self._try_again(one, there, now)
        if not self._is_orphaned(one, there, now):
            return await self._wait(one, there, now)
        if there.owner == one.decided:
            return await self._take(one, there)
        try:
            return await self._look(one, there)
        except StepFailure as failure:
            raise UndecidedClaim(failure, there.owner) from failure

    async def _try_again(self, one: _Try, there: Effect, now: int) -> Effect | None:
        """Claim anew what has certainly not happened; of an inverse, a person looks first once that is long
        ago.
        """
        is_inverse = bool(Slot.parse(one.claim.slot).scope)
        if is_inverse and now - there.first <= self._limits.effect_retry_ms:
            return await self._take(one, there)
        if not is_inverse or there.owner == one.decided:
            return await self._take(one, replace(there, first=now))
        said = f"{there.message} (it failed at {iso(there.updated)}; the time for its retries is over)"
        # Those on whose service it acts may not know its key any more.
        why = f"`{there.tool}` was to undo what was done, and is not called again before a person has looked whether it was undone since: {said}"
        raise UndecidedClaim(StepFailure("unknown_outcome", why), there.owner)

    async def _kept(self, one: _Try) -> Effect | None:
        """Return the earlier result of this place, if its key was used anew since.
        Read once: no other writer adds it.
        """
        if not one.spec.key.keep_ms or one.has_asked:
            return None
        one.has_asked = True
        return await self._call(self._effects.read, one.claim.tenant, key_of_its_own(one.claim))

    def _is_orphaned(self, one: _Try, there: Effect, now: int) -> bool:
        if self._over(there) <= now:
            return True
        if there.owner.startswith(f"{self._name}-"):
            return there.owner not in self._live
        return there.saga == one.context.saga

    def _over(self, there: Effect) -> int:
        """Return the end of a claim by every clock: its holder acts until its own clock says so."""
        return there.until + self._limits.clock_skew_ms

    async def _wait(self, one: _Try, there: Effect, now: int) -> Effect | None:
        """Look again after a pause, until the step's own time is over."""
        left = one.context.deadline_ms - now
        if one.spec.key.in_progress == REFUSE or left <= 0:
            whose = "this saga" if there.saga == one.context.saga else f"saga {there.saga}"
            raise StepFailure(
                "in_progress",
                f"`{there.tool}` is being done by {whose}, which began at {iso(there.updated)}",
            )
        await asyncio.sleep(min(one.pause, left, self._over(there) - now) / 1_000)
        one.pause = min(one.pause * 2, self._limits.effect_pause_longest_ms)
        found = await self._call(self._effects.read, there.tenant, there.key)
        return await self._claim(one) if found is None else found

    async def _look(self, one: _Try, there: Effect) -> Effect | EffectResult | None:
        """Ask about an orphaned claim: `verify` says whether the effect has happened, or a person does."""
        if one.verify is None:
            raise unknown(there, "the tool names no `verify` that could look")
        try:
            told = await one.verify()
        except (StepFailure, TimeoutError) as error:
            failure = (
                error if isinstance(error, StepFailure) else StepFailure("timeout", "no answer in its time")
            )
            why = f"`{one.spec.verify}` could not look whether `{there.tool}` has happened: {failure.message}"
            raise StepFailure(
                failure.code,
                why,
                kind=failure.kind,
                status=failure.status,
                retry_after=failure.retry_after,
                happened=True,  # as far as is known
            ) from error
        match told:
            case {"happened": True}:
                check_about(there, one.claim.about)
                result = told.get("result")
                if problems := violations(one.spec.result, result):
                    what = f"`{one.spec.verify}` says so, but gives no result that `{there.tool}` could have"
                    raise unknown(there, f"{what}: at {problems[0].path or '/'}: {problems[0].message}", True)
                outcome = Recorded(await self._records.value(one.spec, one.context.tenant, result))
                done = await self._records.completed(self._renewed(one, there), one.spec, outcome)
                await self._keep_for(there, done, one.spec)
                found = await self._call(self._effects.change, there, done)
                return EffectResult(outcome.value, is_recorded=True) if found is None else found
            case {"happened": False}:
                return await self._take(one, there)
            case {"happened": None}:
                raise unknown(there, f"`{one.spec.verify}` cannot tell")
        raise StepFailure(
            "result_invalid",
            f"`{one.spec.verify}` must return an object with `happened` (true, false or null), and a `result` if true",
        )

    # -- writing

    async def _claim(self, one: _Try) -> Effect | None:
        now = self._clock.now()
        one.claim, one.before = replace(one.claim, first=now, updated=now), None
        return await self._call(self._effects.claim, one.claim)

    def _renewed(self, one: _Try, there: Effect) -> Effect:
        """Return our claim, of an effect that was begun when that one was."""
        return replace(one.claim, first=there.first, updated=self._clock.now())

    async def _take(self, one: _Try, there: Effect) -> Effect | None:
        one.claim, one.before = self._renewed(one, there), there
        return await self._call(self._effects.change, there, one.claim)

    async def _act(self, one: _Try, act: Act) -> EffectResult:
        claim = one.claim
        try:
            result = await act()
        except NoRoom:
            # Nothing was done. No other attempt meets a freed claim, so where a key is kept for other places, the
            # record from before is put back.
            before = one.before if one.spec.key.keep_ms else None
            await self._call(
                self._effects.change, claim, before or self._records.ended(claim, FREED, one.spec)
            )
            raise
        except StepFailure as failure:
            if not leaves_doubt(failure.code, failure.kind, failure.happened):
                failed = replace(
                    self._records.ended(claim, FAILED, one.spec),
                    code=failure.code,
                    message=quoted(failure.message, MOST_MESSAGE),
                    kind=failure.kind,
                )
                await self._call(self._effects.change, claim, failed)
            raise
        outcome = Recorded(
            await self._records.value(one.spec, one.context.tenant, result), tuple(one.context.rows)
        )
        done = await self._records.completed(claim, one.spec, outcome)
        found = await self._call(self._effects.change, claim, done)
        if found is not None and found.status == FREED:
            # An operator has freed the claim, and no other attempt has taken it since: it has happened.
            found = await self._call(self._effects.change, found, done)
        if found is not None and found.owner != claim.owner:
            # Our time was over, and another attempt was told that it had not happened, or has found that it had. Its
            # record is what every attempt gets; without one, ours is as true.
            logger.warning(
                "an effect was taken over while it was acted on",
                extra={"tool": one.spec.name, "saga": claim.saga, "key": claim.key},
            )
            if one.spec.key.keep_ms:
                await self._keep(done)
            if found.status == COMPLETED:
                return await self._records.recorded(found, claim)
        return EffectResult(outcome.value, outcome.rows)

    async def _keep_for(self, there: Effect, done: Effect, spec: ToolSpec) -> None:
        """Keep the result of another place's claim, which is about to be recorded as this place's."""
        if spec.key.keep_ms and place_of(there) != place_of(done):
            await self._keep(
                replace(done, saga=there.saga, slot=there.slot, scope=there.scope, about=there.about)
            )

    async def _keep(self, done: Effect) -> None:
        """Keep the result of an effect for its own place. The first that is kept stays."""
        kept = replace(done, key=key_of_its_own(done), shared_until=0)
        await self._call(self._effects.claim, kept)

    async def _given(self, one: _Try, there: Effect) -> EffectResult:
        check_about(there, one.claim.about)
        return await self._records.recorded(there, one.claim)
