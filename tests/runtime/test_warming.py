"""Kept results of tools with a `cache`: taken by equal calls of one user, counted, and fetched ahead by `POST /warm`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from baton import tool
from baton.core.log.events import SagaEnded, StepSucceeded
from baton.errors import InvalidInput, NotAllowedNow, NotFound, StoreUnavailable
from baton.ports import CheckpointRow
from baton.tools.define import ToolError
from tests.kit.sentences import Says
from tests.kit.world import World

DOCUMENT = """
name: dinner
input: {type: object}
nodes: {look: {tool: tables.search, with: {city: '${input.city}', party: 2}}}
output: '${ctx.look.output}'
"""


class House:
    """A world with a tool whose results are kept for five minutes; `asked`: its calls."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.world = World.start()

        @tool("tables.search", registry=self.world.registry, effect="pure", cache="5m")
        async def search(city: str, party: int) -> list[str]:
            self.asked.append(city)
            return [f"{city} {party}", str(len(self.asked))]

        @tool("tables.book", registry=self.world.registry)
        async def book(city: str) -> str:
            return city

        self.world.tools = self.world.registry.specs()

    async def dinner(self, city: str, key: str, document: str = DOCUMENT, **who: str) -> list[Any]:
        """Run a saga to its end; what was kept of the call, the result, and the saga."""
        service = self.world.service(**who)  # type: ignore[arg-type]
        await service.register(document, json_only=False)
        saga = str((await service.start("dinner", {"city": city}, key))[0]["id"])
        await self.world.settle()
        entries = self.world.entries(saga, who.get("tenant", "acme"))
        (done,) = [one for entry in entries for one in entry.events if isinstance(one, StepSucceeded)]
        return [done.cache, done.output.v, saga]

    async def warm(self, city: str) -> tuple[dict[str, Any], bool]:
        found = await self.world.service().warm("tables.search", {"city": city, "party": 2})
        await self.world.settle()
        return found


async def test_what_was_fetched_ahead_is_used_by_the_saga_that_follows() -> None:
    house = House()
    view, is_new = await house.warm("Vienna")
    end = house.world.end(view["id"])
    assert (is_new, isinstance(end, SagaEnded) and end.status) == (True, "completed")
    assert (await house.warm("Vienna"))[1] is False
    cache, output, saga = await house.dinner("Vienna", "k1")
    assert (cache, output, house.asked) == ("hit", ["Vienna 2", "1"], ["Vienna"])
    assert (await house.dinner("Linz", "k2"))[0] == "miss"
    assert (await house.dinner("Linz", "k3"))[0] == "hit"
    assert house.asked == ["Vienna", "Linz"]
    cost = await house.world.queries().cost(saga)
    assert (cost["cache_hits"], cost["cache_misses"]) == (1, 0)


async def test_a_result_is_kept_for_its_time_and_for_its_user_and_tenant() -> None:
    house = House()
    await house.dinner("Vienna", "k1")
    others = [{"user": "bob"}, {"tenant": "globex"}]
    assert [(await house.dinner("Vienna", "k2", **one))[0] for one in others] == ["miss", "miss"]
    assert (await house.dinner("Vienna", "k3"))[0] == "hit"
    await asyncio.sleep(300)
    assert (await house.dinner("Vienna", "k4"))[0] == "miss"


async def test_a_call_that_a_person_approves_is_made() -> None:
    house = House()
    await house.dinner("Vienna", "k1")
    asks = DOCUMENT.replace("party: 2}}", "party: 2}, requires_approval: true}")
    service = house.world.service()
    await service.register(asks, json_only=False)
    saga = str((await service.start("dinner", {"city": "Vienna"}, "k2"))[0]["id"])
    await house.world.settle(30)
    assert (house.asked, house.world.end(saga)) == (["Vienna"], None)


class Broken:
    """Rows of threads that no store has."""

    def rows(self, *_: Any) -> Sequence[CheckpointRow]:
        raise StoreUnavailable("no answer")

    def put(self, *_: Any) -> bool:
        raise StoreUnavailable("no answer")


async def test_a_step_does_not_fail_for_its_cache() -> None:
    house = House()
    house.world.store.checkpoints = Broken()  # type: ignore[assignment]
    assert (await house.dinner("Vienna", "k1"))[:2] == ["miss", ["Vienna 2", "1"]]


async def test_only_what_a_tool_keeps_and_takes_is_fetched_ahead(says: Says) -> None:
    house = House()
    for error, name, arguments in (
        (NotFound, "tables.serch", {}),
        (NotAllowedNow, "tables.book", {"city": "Vienna"}),
        (InvalidInput, "tables.search", {"city": "Vienna", "party": "two"}),
    ):
        with pytest.raises(error) as caught:
            await house.world.service().warm(name, arguments)
        says(str(caught.value))


@pytest.mark.parametrize(
    ("more", "cache"),
    [
        ({"effect": "once"}, "5m"),
        ({"effect": "pure", "requires_approval": True}, "5m"),
        ({"effect": "pure"}, "2d"),
        ({"effect": "pure"}, "x"),
    ],
)
def test_a_cache_is_declared_where_it_can_be_right(more: dict[str, Any], cache: str, says: Says) -> None:
    with pytest.raises(ToolError) as caught:

        @tool("look", cache=cache, **more)
        def look() -> str:
            return ""

    says(str(caught.value).partition(" (")[0])


@pytest.mark.parametrize("name", ["rows", "put"])
async def test_a_store_that_hangs_leaves_a_step_most_of_its_time(name: str) -> None:
    house = House()
    house.world.slow[name] = 5.0
    short = DOCUMENT.replace("party: 2}}", "party: 2}, timeout: 1s, retry: none}")
    assert (await house.dinner("Vienna", "k1", short))[:2] == ["miss", ["Vienna 2", "1"]]


async def test_a_row_that_no_release_reads_is_a_miss() -> None:
    house = House()
    await house.dinner("Vienna", "k1")
    stored = house.world.store.checkpoints.stored
    for place, row in list(stored.items()):
        stored[place] = replace(row, data=b'["soon"]')
    assert (await house.dinner("Vienna", "k2"))[:2] == ["miss", ["Vienna 2", "2"]]


async def test_a_changed_tool_and_another_one_are_called() -> None:
    house = House()
    await house.dinner("Vienna", "k1")
    search = house.world.tools["tables.search"]

    @tool("tables.look", registry=house.world.registry, effect="pure", cache="5m")
    async def look(city: str, party: int) -> list[str]:
        return []

    other = DOCUMENT.replace("tables.search", "tables.look")
    changes: list[dict[str, Any]] = [{"version": "2"}, {"result": {"type": "array"}}, {}]
    found = list[str]()
    for number, change in enumerate(changes):
        changed = {
            "tables.search": replace(search, **change),
            "tables.look": replace(search, name="tables.look"),
        }
        house.world.tools = {**house.world.registry.specs(), **changed}
        house.world._idle.clear()
        document = DOCUMENT if change else other
        found.append((await house.dinner("Vienna", f"n{number}", document))[0])
    assert found == ["miss", "miss", "miss"]


async def test_a_saga_that_was_forked_calls_again() -> None:
    house = House()
    saga = (await house.dinner("Vienna", "k1"))[2]
    await house.world.service().fork(saga, 1, "the answer was wrong")
    await house.world.settle()
    assert house.asked == ["Vienna", "Vienna"]
    assert (await house.dinner("Vienna", "k2"))[:2] == ["hit", ["Vienna 2", "2"]], "the newer one is kept"


async def test_a_call_ahead_that_failed_is_made_again_after_five_minutes() -> None:
    house = House()

    @tool("slots", registry=house.world.registry, effect="pure", cache="1d")
    async def slots() -> str:
        house.asked.append("slots")
        if len(house.asked) == 1:
            raise LookupError("down")
        return "two"

    house.world.tools = house.world.registry.specs()
    views = list[Any]()
    for _ in range(3):
        view, _ = await house.world.service().warm("slots", {})
        views.append(view["id"])
        await house.world.settle()
        await asyncio.sleep(0 if len(views) == 1 else 300)
    assert (views[0] == views[1], views[1] == views[2]) == (True, False)
    end = house.world.end(views[2])
    assert (len(house.asked), isinstance(end, SagaEnded) and end.status) == (2, "completed")
