"""What models have cost on a day, over ten thousand sagas: in pages of bounded reads, whose sums are right."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest
from msgspec.structs import replace

from baton.core.limits import DAY_MS, Limits
from baton.core.money import MICRO
from baton.core.read.day_costs import DayCosts
from baton.errors import UserError
from baton.ports import SagaRef
from baton.runtime.invocation.context import StoreRetrier, inline
from baton.runtime.requests.costs import LOOKED_AT, day_costs
from tests.contract.stores import MemoryStores, Stores, a_head, a_release
from tests.kit.views import as_json
from tests.kit.virtual_time import SeededEntropy, VirtualClock

DAY = 20_700


def call() -> StoreRetrier:
    clock = VirtualClock()
    return StoreRetrier(inline, clock, SeededEntropy(1), Limits(), clock.now() + 600_000)


def sums_of(
    stores: Stores, day: int, by: str, most: int = LOOKED_AT
) -> tuple[list[dict[str, object]], list[int]]:
    """All pages added up, and how many rows each has looked at."""

    async def main() -> tuple[list[dict[str, object]], list[int]]:
        found, looked, cursor = Counter[tuple[str, str]](), [], ""
        while True:
            sums, count, after = await day_costs(stores.log, call(), "acme", day, by, cursor, most)
            looked.append(count)
            for row in as_json(sums.rows()):
                key = row.pop("key")
                found.update({(key, name): value for name, value in row.items()})
            if after is None:
                break
            cursor = after
        keys = sorted({key for key, _ in found})
        names = ("sagas", "input", "output", "usd")
        return [{"key": key, **{name: round(found[key, name], 6) for name in names}} for key in keys], looked

    return asyncio.run(main())


def test_ten_thousand_sagas_are_added_up_in_pages_of_bounded_reads(stores: Stores) -> None:
    count, most = (10_000, LOOKED_AT) if isinstance(stores, MemoryStores) else (120, 25)
    expected = Counter[str]()
    for number in range(count):
        day, workflow = DAY + number % 2, f"w{number % 3}"
        at = day * DAY_MS + number
        models = {} if number % 5 == 0 else {f"m{number // 2 % 4}": (100, 10, number)}
        head = replace(
            a_head(SagaRef("acme", f"k{number:05d}")),
            workflow=workflow,
            user=f"u{number % 7}",
            created=at,
            models=models,
        )
        assert stores.log.create_head(head) is None
        expected[workflow] += number if models and day == DAY else 0
    found, looked = sums_of(stores, DAY, "workflow", most)
    assert {row["key"]: round(float(str(row["usd"])) * MICRO) for row in found} == dict(expected)
    assert max(looked) <= most < sum(looked)
    assert sum(looked) <= count // 2 + 1, "no row of another day is read"
    for by, keys in (("user", 7), ("model", 4)):
        again, _ = sums_of(stores, DAY, by)
        assert len(again) == keys
        assert sum(float(str(row["usd"])) for row in again) == pytest.approx(sum(expected.values()) / MICRO)
    assert sums_of(stores, DAY + 2, "user") == ([], [0])


def test_a_row_shows_what_the_last_release_of_its_saga_left(stores: Stores) -> None:
    ref = SagaRef("acme", "k1")
    stores.log.create_head(a_head(ref))
    assert stores.log.take(ref, "me", 90_000, 0, 93_000) is not None
    models = {"gpt": (1_000, 20, 77), "others": (1, 2, 3)}
    end = a_release(status="completed", group="done", group_at=DAY * DAY_MS, due_at=None, models=models)
    assert stores.log.release(ref, "me", 1, end)
    head = stores.log.read_head(ref)
    assert head is not None
    assert head.models == models
    rows, _ = sums_of(stores, DAY, "model")
    assert rows == [
        {"key": "gpt", "sagas": 1, "input": 1_000, "output": 20, "usd": 0.000077},
        {"key": "others", "sagas": 1, "input": 1, "output": 2, "usd": 0.000003},
    ]
    assert stores.log.take(ref, "me", 90_000, 1, 93_000) is not None
    assert stores.log.release(ref, "me", 2, a_release(status="completed", group="done", due_at=None))
    head = stores.log.read_head(ref)
    assert head is not None
    assert head.models == models, "what has not changed stays"


def test_a_cursor_of_another_day_is_refused() -> None:
    async def ask(day: int, cursor: str) -> DayCosts:
        from baton.adapters.memory.store import MemoryStore

        store = MemoryStore(1)
        return (await day_costs(store.log, call(), "acme", day, "user", cursor))[0]

    for cursor in ("nonsense", "eJw="):
        with pytest.raises(UserError):
            asyncio.run(ask(DAY, cursor))
