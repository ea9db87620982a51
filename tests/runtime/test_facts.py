"""Facts of a user, as an operator lists and erases them."""

from __future__ import annotations

from typing import Any

import pytest

from baton.errors import UserError
from baton.ports.outside import Fact
from tests.kit.views import as_json
from tests.kit.virtual_time import run_virtual
from tests.kit.world import World


def remembered(world: World, count: int, tenant: str = "acme", user: str = "ada") -> None:
    for n in range(count):
        fact = Fact(
            id=f"{n:032x}", text=f"fact {n}", saga="s1", at=n, model="m", expires=n and 2_000_000_000_000
        )
        world.store.facts.put(tenant, user, fact, [1.0])


def test_facts_are_listed_page_by_page_and_erased_for_one_user_of_one_tenant() -> None:
    async def go() -> None:
        world = World.start()
        remembered(world, 230)
        remembered(world, 2, user="bob")
        remembered(world, 2, tenant="globex")
        service, found, cursor = world.service().facts, list[Any](), ""
        while True:
            page = as_json(await service.page("ada", 100, cursor))
            found += page["facts"]
            if not (cursor := page["next"]):
                break
        assert (len(found), found[-1]["text"], found[-1]["expires_at"]) == (230, "fact 0", None)
        assert (await service.erase("ada")).more
        done = await world.service().facts.erase("ada")
        assert (done.erased, done.more) == (30, False)
        assert (await service.page("ada", 100, "")).facts == []
        assert len((await service.page("bob", 100, "")).facts) == 2
        assert len((await world.service(tenant="globex").facts.page("ada", 100, "")).facts) == 2
        with pytest.raises(UserError, match="`user`"):
            await service.page("", 100, "")

    run_virtual(go())


def test_a_user_with_many_facts_is_erased_in_few_reads_of_the_rows_that_erased_ones_leave(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def go() -> None:
        world = World.start()
        remembered(world, 1_010)
        rounds, reads = 0, list[str]()
        while (await world.service().facts.erase("ada")).more:
            rounds += 1
        real = world.store.facts.listed

        def listed(*args: Any) -> Any:
            reads.append("")
            return real(*args)

        monkeypatch.setattr(world.store.facts, "listed", listed)
        assert not (await world.service().facts.erase("ada")).more
        assert (rounds, len(reads)) == (5, 2)

    run_virtual(go())
