"""One user's day: a single item of the table that every attempt of all their sagas is counted on.

DynamoDB bills each write by the whole item, and takes 1,000 write units a second for one key ("Best practices for
designing and using partition keys" of its developer guide). In virtual time with the engine's own requests against a key
that takes no more than that, and with as many requests as the embedded AWS carries.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from baton.adapters.aws import Aws
from baton.adapters.dynamo.budgets import DynamoBudgets
from baton.adapters.memory.store import MemoryBudgets
from baton.core.limits import Limits
from baton.core.read.costs import units
from baton.errors import Throttled
from baton.ports import Account, BudgetAnswer, Budgets, Offload, ReservationChange
from baton.runtime.invocation.context import StoreRetrier, Threads
from baton.runtime.money.accounts import AccountQueue
from benchmarks.figures import Bench, Figure, Sample
from tests.kit import ministack
from tests.kit.meter import TABLE
from tests.kit.table import create_table
from tests.kit.virtual_time import EPOCH, SeededEntropy, VirtualClock, run_virtual

KEY_UNITS = 1_000  # a second, of one partition key
LATENCY_S = 0.01
INVOCATIONS, SAGAS = 100, 10  # and sagas in each
DAY = EPOCH // 86_400_000
ADA = Account("acme", "auth0|5f7c8ec7c33c6c004bbafe82", DAY)
CENT = 10_000
UNTIL = EPOCH + 900_000
LIMIT = 1_000_000 * CENT

ITEM_BYTES, HOLDER_BYTES = 90, 32
OLD_ATTEMPT = len("r#0123456789abcdef0123") + len("50000 1790000000000")
OLD_MOST = 200  # that were open at a time
"""Before each invocation had one reservation: one for each attempt, of so many bytes."""


def item_bytes(invocations: int) -> int:
    """The size of a day's item while so many invocations hold something."""
    return ITEM_BYTES + HOLDER_BYTES * invocations


def attempts_per_second(invocations: int, attempt_s: float, sagas: int = SAGAS) -> float:
    """How many attempts that cost something one user's sagas come to on one key, closed form.

    An invocation has one request at a time. Where the key takes fewer than are asked for, each invocation has its turn
    every `turn` seconds, and an attempt waits one and a half of them before it begins, and as long at its end.
    """
    requests = KEY_UNITS / units(item_bytes(invocations))
    turn = max(LATENCY_S, invocations / requests)
    free, crowded = (invocations * sagas / (attempt_s + 3 * wait) for wait in (LATENCY_S, turn))
    return min(free, max(requests / 2, crowded))


def attempts_per_second_before(invocations: int, attempt_s: float, sagas: int = SAGAS) -> float:
    """The same when each attempt had a reservation of its own, and two requests."""
    most = min(OLD_MOST, invocations * sagas)
    fits = (at_once for at_once in range(1, most + 1) if _old_units(at_once, attempt_s) <= KEY_UNITS)
    return max(fits) / attempt_s


def _old_units(at_once: int, attempt_s: float) -> float:
    return 2 * at_once / attempt_s * units(item_bytes(0) + at_once * OLD_ATTEMPT)


class OneKey(MemoryBudgets):
    """A store with one key: it takes no more units in a second than DynamoDB does, a refused one included."""

    def __init__(self) -> None:
        super().__init__()
        self.units = 0
        self._left, self._at = 0.0, 0.0

    def move(self, account: Account, change: ReservationChange, now: int) -> BudgetAnswer:
        at, item = asyncio.get_running_loop().time(), self._item(account)
        self._left = min(KEY_UNITS, self._left + (at - self._at) * KEY_UNITS)
        self._at = at
        size = item_bytes(len(item.held_by))
        if units(size) > self._left:
            raise Throttled("the key is hot")
        self._left -= units(size)
        self.units += units(size)
        return super().move(account, change, now)


async def attempts(
    budgets: Budgets, offload: Offload, attempt_s: float, seconds: float, invocations: int = INVOCATIONS
) -> float:
    """Attempts a second of a thousand sagas, each with one attempt after the other."""
    loop, clock, done = asyncio.get_running_loop(), VirtualClock(), 0
    end, warm = loop.time() + 2 * seconds, loop.time() + seconds

    async def saga(mine: AccountQueue, late_s: float) -> None:
        nonlocal done
        await asyncio.sleep(late_s)
        while loop.time() < end:
            await mine.ask(EPOCH, more=5 * CENT)
            await asyncio.sleep(attempt_s)
            await mine.ask(EPOCH, less=5 * CENT, spent=3 * CENT)
            done += warm < loop.time() < end

    sagas = []
    for n in range(invocations):
        call = StoreRetrier(offload, clock, SeededEntropy(n), Limits(), 1 << 62)
        mine = AccountQueue(budgets, call, f"i{n}", UNTIL, LIMIT, ADA)
        sagas += [saga(mine, attempt_s * (n * SAGAS + k) / invocations / SAGAS) for k in range(SAGAS)]
    await asyncio.gather(*sagas)
    return done / seconds


async def _after_a_while(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    await asyncio.sleep(LATENCY_S)
    return function(*args, **kwargs)


def on_one_key(attempt_s: float, seconds: float, invocations: int = INVOCATIONS) -> tuple[float, OneKey]:
    """Attempts a second in virtual time, and the key."""
    key = OneKey()
    return run_virtual(attempts(key, _after_a_while, attempt_s, seconds, invocations)), key


def on_ministack(seconds: float, invocations: int) -> tuple[float, float]:
    """Attempts a second of 1 s each, and requests for each, as far as the embedded AWS carries."""
    with tempfile.TemporaryDirectory() as folder, ministack.running(Path(folder)) as endpoint:
        aws = Aws(endpoint)
        create_table(aws.dynamodb, TABLE)
        requests = 0

        def count(**_: object) -> None:
            nonlocal requests
            requests += 1

        aws.dynamodb.meta.events.register("after-call.dynamodb.UpdateItem", count)
        budgets = DynamoBudgets(aws.dynamodb, TABLE)
        rate = asyncio.run(attempts(budgets, Threads(), 1, seconds, invocations))
        spent = budgets.read(ADA).spent // (3 * CENT)
    return rate, requests / spent


def measure(seconds: float = 20, invocations: int = INVOCATIONS) -> Sample:
    short, short_key = on_one_key(1, seconds, invocations)
    long, long_key = on_one_key(30, 3 * seconds, invocations)
    alone, alone_key = on_one_key(1, seconds, 1)
    real, requests = on_ministack(seconds / 4, invocations)
    return {
        "bytes": item_bytes(invocations),
        "short": short,
        "short closed": attempts_per_second(invocations, 1),
        "short before": attempts_per_second_before(invocations, 1),
        "short units": _units_each(short_key),
        "long": long,
        "long closed": attempts_per_second(invocations, 30),
        "long before": attempts_per_second_before(invocations, 30),
        "long units": _units_each(long_key),
        "alone": alone,
        "alone units": _units_each(alone_key),
        "ministack": real,
        "ministack requests": requests,
    }


def _units_each(key: OneKey) -> float:
    """Write units for each attempt."""
    (spent,) = key.spent().values()
    return key.units / (spent / (3 * CENT))


BENCH = Bench(
    "money",
    f"{INVOCATIONS * SAGAS:,} sagas of one user that spend, in {INVOCATIONS} invocations, on one key",
    {
        "bytes": Figure("the item of the day", "bytes", 4_096, digits=0),
        "short": Figure("attempts of 1 s, in virtual time", "a second", 300, at_most=False, digits=0),
        "short closed": Figure("  closed form", "a second", at_most=False, digits=0),
        "short before": Figure("  with a reservation for each attempt", "a second", at_most=False, digits=0),
        "short units": Figure("  write units for each", "units", digits=1),
        "long": Figure("attempts of 30 s, in virtual time", "a second", 30, at_most=False, digits=1),
        "long closed": Figure("  closed form", "a second", at_most=False, digits=1),
        "long before": Figure("  with a reservation for each attempt", "a second", at_most=False, digits=1),
        "long units": Figure("  write units for each", "units", digits=1),
        "alone": Figure("10 sagas in one invocation, attempts of 1 s", "a second", at_most=False, digits=1),
        "alone units": Figure("  write units for each", "units", 2, digits=2),
        "ministack": Figure("attempts of 1 s on the embedded AWS", "a second", at_most=False, digits=0),
        "ministack requests": Figure("  requests for each", "requests", 2, digits=2),
    },
    measure,
    runs=1,
)
