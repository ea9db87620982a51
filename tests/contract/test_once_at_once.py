"""One action by fifty sagas at the same moment, on every store whose conditional writes are atomic: it happens once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from baton.core.effects.keys import Key
from baton.core.effects.toolspec import ToolSpec
from baton.core.limits import Limits
from baton.ports import StepContext
from baton.runtime.invocation.context import Invocation, InvocationContext, StoreRetrier, Tenure, Threads
from baton.runtime.steps.effects import EffectClaims
from tests.contract.stores import StillClock, Stores
from tests.kit.virtual_time import SeededEntropy

P = ParamSpec("P")
T = TypeVar("T")
MANY = 50
SPEC = ToolSpec(name="pay.card", version="1", effect="once", parameters={}, result={}, key=Key.given("id"))
LIMITS = Limits(effect_pause_first_ms=1, effect_pause_longest_ms=2)


def test_of_fifty_sagas_that_do_the_same_at_once_one_acts_and_all_have_its_result(
    concurrent_stores: Stores,
) -> None:
    threads, clock = Threads(MANY), StillClock()
    waiting, acted = set[str](), list[str]()

    async def main() -> list[Any]:
        all_wait = asyncio.Event()

        async def attempt(saga: str) -> Any:
            async def offload(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
                if function.__name__ == "read":  # it was refused, and looks for a result
                    waiting.add(saga)
                    if len(waiting) == MANY - 1:
                        all_wait.set()
                return await threads(function, *args, **kwargs)

            async def act() -> Any:
                acted.append(saga)
                await all_wait.wait()
                return {"by": saga}

            entropy = SeededEntropy(int(saga))
            call = StoreRetrier(offload, clock, entropy, LIMITS, clock.now() + 60_000)
            stores = concurrent_stores
            me = Invocation(saga, clock.now(), clock.now() + 60_000)
            once = EffectClaims(
                InvocationContext(
                    me, stores.store, stores.blobs, clock, entropy, LIMITS, call, Tenure.of(me, clock, LIMITS)
                )
            )
            context = StepContext(
                saga=saga,
                tenant="acme",
                user="ada",
                node="pay",
                idempotency_key="f" * 32,
                deadline_ms=clock.now() + 30_000,
            )
            return await once.run(SPEC, "pay#0", context, act)

        return list(await asyncio.gather(*(attempt(str(n)) for n in range(MANY))))

    done = asyncio.run(main())
    (winner,) = acted
    assert [each.value.v for each in done] == [{"by": winner}] * MANY
    assert [each.is_recorded for each in done].count(False) == 1
