"""A deploy that changes the schema of a tool under a saga: what still fits goes on, what does not waits for code that fits."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from baton import tool
from baton.core.log import events as ev
from baton.ports import SagaRef
from baton.tools.define import Registry
from tests.kit.corpus import start
from tests.kit.sentences import Says
from tests.kit.toolbox import Books, make_registry
from tests.kit.views import as_json
from tests.kit.world import TENANT, World

DOCUMENT = """
name: w
nodes:
  pay: {tool: shop.pay}
  rest: {wait: {for: 1h}, after: pay}
  look: {tool: shop.look, after: rest, with: {id: '17'}}
  mail: {tool: shop.mail, after: look, with: {price: '${ctx.look.output.price}'}}
output: ${ctx.look.output.price}
"""


@dataclass
class Found:
    price: int
    colour: str


@dataclass
class Other:
    cost: int
    colour: str


@dataclass
class Less:
    price: int


@dataclass
class Shop:
    """A world whose tools differ from deploy to deploy; `done`: what they did."""

    world: World = field(default_factory=World.start)
    done: list[str] = field(default_factory=list)

    def deploy(self, build: str, look: Any) -> None:
        """Deploy tools of which one is `look`."""
        registry = make_registry(Books())

        @tool("shop.pay", undo="shop.refund", registry=registry)
        async def pay() -> str:
            self.done.append("paid")
            return "p"

        @tool("shop.refund", registry=registry)
        async def refund() -> None:
            self.done.append("refunded")

        @tool("shop.mail", registry=registry)
        async def mail(price: int) -> None:
            self.done.append(f"mailed {price}")

        tool("shop.look", registry=registry, version=build)(look)
        world = self.world
        world.registry, world.tools = registry, registry.specs()
        world.limits = replace(world.limits, build=build)

    def status(self, saga: str) -> str:
        head = self.world.log.read_head(SagaRef(TENANT, saga))
        assert head is not None
        return head.status

    def failures(self, saga: str) -> list[ev.Failure]:
        return [one.failure for one in self.world.events(saga) if isinstance(one, ev.AttemptFailed)]

    async def begun(self) -> str:
        """A saga that has paid with the tools of `b1`, and rests."""

        async def look(id: str) -> Found:
            self.done.append("looked")
            return Found(3, "red")

        self.deploy("b1", look)
        saga = await start(self.world, DOCUMENT, {}, "w")
        await asyncio.sleep(60)
        assert self.status(saga) == "waiting"
        return saga


async def test_a_result_without_a_field_that_is_read_stops_the_step_before_it_acts_until_it_fits(
    says: Says,
) -> None:
    shop = Shop()
    saga = await shop.begun()

    async def look(id: str) -> Other:
        shop.done.append("looked")
        return Other(3, "red")

    shop.deploy("b2", look)
    await asyncio.sleep(7_200)
    assert (shop.status(saga), shop.done) == ("reflecting", ["paid"])
    (failure,) = shop.failures(saga)
    assert failure.code == "schema_changed"
    says(failure.message)
    view = await shop.world.queries().show(saga)
    assert view["status"] == "reflecting"
    page = as_json(await shop.world.queries().sagas(status="reflecting", limit=5, cursor=""))
    assert [one["id"] for one in page["sagas"]] == [saga]
    incidents = (await shop.world.queries().incidents())["incidents"]
    assert [(one["code"], one["status"]) for one in incidents] == [("schema_changed", "open")]

    async def mended(id: str) -> Found:
        return Found(4, "red")

    shop.deploy("b3", mended)
    await asyncio.sleep(3_600)
    assert (shop.status(saga), shop.done) == ("completed", ["paid", "mailed 4"])


async def test_arguments_that_a_tool_takes_no_longer_stop_the_step_and_undo_nothing(says: Says) -> None:
    shop = Shop()
    saga = await shop.begun()

    async def look(id: str, shelf: int) -> Found:
        raise AssertionError("it is not called")

    shop.deploy("b2", look)
    await asyncio.sleep(7_200)
    assert (shop.status(saga), shop.done) == ("reflecting", ["paid"])
    (failure,) = shop.failures(saga)
    assert failure.code == "schema_changed"
    says(failure.message)
    await shop.world.service().resume(saga)
    await asyncio.sleep(60)
    assert shop.status(saga) == "reflecting", "a person may let it try again"
    await shop.world.service().cancel(saga, "no", 0)
    await asyncio.sleep(600)
    assert (shop.status(saga), shop.done) == ("cancelled", ["paid"])


async def test_what_the_document_does_not_use_may_change() -> None:
    shop = Shop()
    saga = await shop.begun()

    async def look(id: str, shelf: int = 1) -> Less:
        return Less(shelf + 1)

    shop.deploy("b2", look)
    await asyncio.sleep(7_200)
    assert (shop.status(saga), shop.done) == ("completed", ["paid", "mailed 2"])
    assert shop.failures(saga) == []


@pytest.mark.parametrize("order", ["b2 b1", "b1 b2"])
async def test_while_a_deploy_rolls_the_old_code_carries_on_what_the_new_one_cannot(order: str) -> None:
    shop = Shop()
    saga = await shop.begun()
    old, new = shop.world.registry, Registry()

    async def look(id: str) -> Other:
        raise AssertionError("it is not called")

    shop.deploy("b2", look)
    new = shop.world.registry
    for build in order.split():
        shop.world.registry = {"b1": old, "b2": new}[build]
        shop.world.tools = shop.world.registry.specs()
        shop.world.limits = replace(shop.world.limits, build=build)
        await asyncio.sleep(7_200)
    assert (shop.status(saga), shop.done) == ("completed", ["paid", "looked", "mailed 3"])
