"""What tests of once-only effects share: a restaurant with stores in memory, and invocations that die and are born.

No tests here.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any, ParamSpec, TypeVar

import pytest
from msgspec.structs import replace

from baton.adapters.memory.store import MemoryBlobs, MemoryStore
from baton.core.effects.keys import KeyRule, key_of
from baton.core.effects.toolspec import ToolSpec
from baton.core.limits import Limits
from baton.errors import StoreUnavailable
from baton.ports import Effect, StepContext, StepFailure
from baton.runtime.invocation import context
from baton.runtime.invocation.context import StoreRetrier
from baton.runtime.steps.effects import EffectClaims, EffectResult
from tests.kit.virtual_time import SeededEntropy, VirtualClock

P = ParamSpec("P")
T = TypeVar("T")
DAY = 86_400_000
DINNER = {"restaurant": "Luigi's", "at": "19:30"}


class Killed(BaseException):
    """The process is gone."""


class Invocation:
    """One process: its own `Once`, and what of it reaches the store. Its clock is `skew` ms ahead of the others."""

    def __init__(self, place: Place, seed: int, skew: int = 0) -> None:
        self.place, self.calls = place, list[str]()
        self.die_before: str = ""
        self.die_after: str = ""
        self.lose_answer_of: str = ""
        self.entropy = SeededEntropy(seed)
        self.clock = VirtualClock()
        self.clock.skew = skew
        call = StoreRetrier(self.offload, self.clock, self.entropy, place.limits, self.clock.now() + 600_000)
        now = self.clock.now()
        me = context.Invocation(f"i{seed}", now, now + 600_000)
        self.once = EffectClaims(
            context.InvocationContext(
                me,
                place.store,
                place.blobs,
                self.clock,
                self.entropy,
                place.limits,
                call,
                context.Tenure.of(me, self.clock, place.limits),
            )
        )

    async def offload(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        await asyncio.sleep(0.002)
        name = function.__name__
        self.calls.append(name)
        if name == self.die_before:
            raise Killed
        result = function(*args, **kwargs)
        if name == self.die_after:
            raise Killed
        if name == self.lose_answer_of:
            self.lose_answer_of = ""
            raise StoreUnavailable("no answer")
        return result

    async def run(
        self,
        saga: str = "s1",
        slot: str = "book#0",
        arguments: Any = DINNER,
        *,
        act: Callable[[], Awaitable[Any]] | None = None,
        key: KeyRule | None = None,
        verify: Callable[[], Awaitable[Any]] | None = None,
        iteration: tuple[int, ...] = (),
        lasts: int = 30_000,
        decided: str = "",
        rows: int = 0,
    ) -> EffectResult:
        """One attempt of a step, as the engine makes it."""
        place = self.place
        rule, node = key or KeyRule(), slot.partition("#")[0]
        now = self.clock.now()
        told = StepContext(
            saga=saga,
            tenant="acme",
            user="ada",
            node=node,
            idempotency_key=key_of(
                rule,
                tenant="acme",
                user="ada",
                saga=saga,
                node=node,
                tool="table.book",
                parameters=arguments,
                occurrence=iteration,
                at=now,
            ),
            deadline_ms=now + lasts,
            rows=[],
        )

        async def book() -> Any:
            for number in range(rows):
                told.put_row("bookings", str(number), {"at": "19:30"})
            return await place.book(told.idempotency_key)

        spec = replace(SPEC, key=rule, verify="table.find" if verify else "")
        return await self.once.run(spec, slot, told, act or book, verify, decided=decided)


SPEC = ToolSpec(
    name="table.book",
    version="1",
    effect="once",
    parameters={},
    result={"type": "object", "required": ["number"]},
)


class Place:
    """What there is outside of all invocations: the stores, and the restaurant."""

    def __init__(self) -> None:
        self.clock, self.limits = VirtualClock(), Limits()
        self.store, self.blobs = MemoryStore(), MemoryBlobs()
        self.effects = self.store.effects
        self.booked = Counter[str]()
        self.seconds = 1.0
        self._seed = 0

    def invocation(self, skew: int = 0) -> Invocation:
        self._seed += 1
        return Invocation(self, self._seed, skew)

    async def book(self, key: str) -> Any:
        await asyncio.sleep(self.seconds)
        self.booked[key] += 1
        return {"number": self.booked.total()}

    @property
    def effect(self) -> Effect:
        (effect,) = self.effects.stored.values()
        return effect

    async def finds(self) -> Any:
        """A `verify` that knows."""
        return {"happened": True, "result": {"number": 1}} if self.booked else {"happened": False}


async def failed(attempt: Awaitable[Any]) -> StepFailure:
    with pytest.raises(StepFailure) as caught:
        await attempt
    return caught.value


async def killed(attempt: Awaitable[Any]) -> None:
    with pytest.raises(Killed):
        await attempt


def raising(error: BaseException) -> Callable[[], Awaitable[Any]]:
    async def act() -> Any:
        raise error

    return act


def saying(verdict: Any) -> Callable[[], Awaitable[Any]]:
    async def verify() -> Any:
        return verdict

    return verify


async def in_doubt(place: Place) -> Invocation:
    """An invocation after another whose attempt broke off."""
    await failed(place.invocation().run(act=raising(StepFailure("connection_failed", "reset"))))
    return place.invocation()
