"""Aliases of parameters through the engine: what is counted, applied, shown in the log, told to the model and decided."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from baton import tool
from baton.core.limits import SETTING, Limits
from baton.core.log.events import StepSucceeded
from baton.errors import NotAllowedNow, NotFound, StoreUnavailable, UserError
from baton.tools.define import Registry
from tests.kit.scripted import Scripted, asks_for, by_turn, says
from tests.kit.sentences import Says
from tests.kit.views import as_json
from tests.kit.world import USER, World

DOCUMENT = "name: w\nnodes: {a: {agent: {model: m, prompt: Refund., tools: [refund]}}}\n"
MISTAKEN = by_turn(asks_for(("refund", {"orderid": "17"})), says("Done."))


class Shop:
    """A world with a tool, and a model that mistakes its parameter; `orders`: what was refunded."""

    def __init__(self, **limits: Any) -> None:
        self.orders: list[str] = []
        self.world = World.start(models=Scripted(MISTAKEN), limits=replace_limits(**limits))

        @tool("refund", registry=self.world.registry)
        async def refund(order_id: str) -> str:
            self.orders.append(order_id)
            return order_id

        self.world.tools = self.world.registry.specs()

    async def ran(self, sagas: int, tenant: str = "acme", first: int = 0) -> list[str]:
        """Run so many sagas to their end, one after the other."""
        ids = []
        for number in range(first, first + sagas):
            service = self.world.service(tenant=tenant)
            await service.register(DOCUMENT, json_only=False)
            ids.append(str((await service.start("w", {}, f"k{number}"))[0]["id"]))
            await self.world.settle()
        return ids

    async def decide(self, *of: str) -> Any:
        return as_json(await self.world.service().aliases.decide(*of))["aliases"]

    async def listed(self, tenant: str = "acme") -> Any:
        return as_json(await self.world.service(tenant=tenant).aliases.listed())["aliases"]

    def call(self, saga: str) -> dict[str, Any]:
        """The call of the first turn, as the log has it."""
        for event in self.world.events(saga):
            if isinstance(event, StepSucceeded) and event.item == "t1":
                found: dict[str, Any] = event.output.v["calls"][0]
                return found
        raise AssertionError(saga)


def replace_limits(**limits: Any) -> Limits:
    return Limits(**limits)


async def test_five_mistakes_propose_an_alias_and_an_approved_one_makes_the_call() -> None:
    shop = Shop()
    await shop.ran(4)
    assert [(one["status"], one["mismatches"]) for one in await shop.listed()] == [("counted", 4)]
    five = (await shop.ran(1, first=4))[0]
    (proposed,) = await shop.listed()
    assert (proposed["status"], proposed["mismatches"], proposed["by"]) == ("proposed", 5, None)
    assert len(proposed["sagas"]) == 5
    refused = shop.call(five)
    assert refused["error"]["code"] == "input_invalid"
    assert "order_id" in refused["error"]["message"], "the model is told the right name"
    (approved,) = await shop.decide("refund", "orderid", "order_id", "approve")
    assert (approved["status"], approved["by"], approved["useless_because"]) == ("approved", USER, None)
    (saga,) = await shop.ran(1, first=5)
    assert shop.orders == ["17"]
    assert shop.call(saga) == {
        "tool": "refund",
        "arguments": {"order_id": "17"},
        "renamed": {"orderid": "order_id"},
    }
    asked = shop.world.models.requests[-1].messages  # type: ignore[union-attr]
    assert asked[-2]["tool_calls"][0]["function"]["arguments"] == '{"order_id":"17"}'


async def test_a_tenant_has_aliases_of_its_own() -> None:
    shop = Shop()
    await shop.decide("refund", "orderid", "order_id", "approve")
    await shop.ran(1, tenant="globex")
    assert shop.orders == []
    assert [one["status"] for one in await shop.listed("globex")] == ["counted"]


async def test_the_setting_approves_after_five_sagas() -> None:
    shop = Shop(alias_approval=SETTING)
    await shop.ran(5)
    (approved,) = await shop.listed()
    assert (approved["status"], approved["by"]) == ("approved", "AliasApproval")
    await shop.ran(1, first=5)
    assert shop.orders == ["17"]


async def test_one_saga_proposes_and_never_approves() -> None:
    shop = Shop(alias_approval=SETTING)
    wrong = asks_for(*[("refund", {"orderid": str(number)}) for number in range(6)])
    shop.world.models = Scripted(by_turn(wrong, wrong, says("Done.")))
    await shop.ran(1)
    assert [(one["status"], one["mismatches"]) for one in await shop.listed()] == [("proposed", 5)]


async def test_a_call_without_a_mistake_reads_and_writes_nothing() -> None:
    shop = Shop()
    shop.world.models = Scripted(by_turn(asks_for(("refund", {"order_id": "17"})), says("Done.")))
    there: list[str] = []
    entities = shop.world.store.entities
    shop.world.store.entities.get = lambda *_: there.append("get")  # type: ignore[method-assign]
    await shop.ran(1)
    assert (there, shop.orders) == ([], ["17"])
    assert entities is shop.world.store.entities


async def test_an_alias_is_not_applied_to_a_document() -> None:
    shop = Shop()
    await shop.decide("refund", "orderid", "order_id", "approve")
    document = "name: w\nnodes: {a: {tool: refund, with: {orderid: '17'}}}\n"
    with pytest.raises(UserError, match="problems"):
        await shop.world.service().register(document, json_only=False)


async def test_an_alias_rests_while_the_tool_takes_the_name_itself() -> None:
    shop = Shop()
    await shop.decide("refund", "orderid", "order_id", "approve")
    newer, taken = Registry(), list[tuple[str, str]]()

    @tool("refund", registry=newer)
    async def refund(order_id: str = "", orderid: str = "") -> None:
        taken.append((order_id, orderid))

    shop.world.registry = newer
    shop.world.tools = newer.specs()
    await shop.ran(1)
    assert taken == [("", "17")]
    (one,) = await shop.listed()
    assert one["status"] == "approved"
    assert one["useless_because"]


async def test_a_store_that_is_away_leaves_the_answer_as_the_model_has_written_it() -> None:
    shop = Shop()

    def away(*_: Any) -> None:
        raise StoreUnavailable("no answer")

    shop.world.store.entities.get = away  # type: ignore[assignment,method-assign]
    (saga,) = await shop.ran(1)
    assert shop.call(saga)["error"]["code"] == "input_invalid"


async def test_operators_approve_reject_and_drop(says: Says, caplog: pytest.LogCaptureFixture) -> None:
    shop = Shop()
    of = "refund", "orderid", "order_id"
    with caplog.at_level(logging.WARNING, "baton.aliases"):
        (rejected,) = await shop.decide(*of, "reject")
    assert [(one.decision, one.by) for one in caplog.records] == [("reject", USER)]  # type: ignore[attr-defined]
    assert rejected["status"] == "rejected"
    await shop.ran(6)
    assert [(one["status"], one["mismatches"]) for one in await shop.listed()] == [("rejected", 0)]
    assert await shop.decide(*of, "drop") == []
    assert await shop.decide(*of, "drop") == [], "repeated"
    (operation,) = await shop.decide("shop.getOrder", "orderid", "id", "reject")
    (operation,) = await shop.decide("shop.getOrder", "orderid", "id", "approve")
    assert operation["useless_because"] is None, "an operation of an API that was counted has an alias, too"
    await shop.decide("shop.getOrder", "orderid", "id", "drop")
    (one,) = await shop.decide(*of, "approve")
    assert await shop.decide(*of, "approve") == [one], "repeated"
    refusals: list[Exception] = []
    for wrong in (
        ("refnd", "orderid", "order_id"),
        ("refund", "order_id", "order_id"),
        ("refund", "orderid", "order"),
    ):
        with pytest.raises((NotFound, UserError)) as found:
            await shop.decide(*wrong, "approve")
        refusals.append(found.value)
    says([str(one) for one in refusals])


async def test_a_name_has_one_alias_and_there_are_fifty_at_most(says: Says) -> None:
    shop = Shop()

    @tool("transfer", registry=shop.world.registry)
    async def transfer(amount: int, currency: str) -> None: ...

    shop.world.tools = shop.world.registry.specs()
    await shop.decide("transfer", "sum", "amount", "approve")
    with pytest.raises(NotAllowedNow) as rival:
        await shop.decide("transfer", "sum", "currency", "approve")
    for number in range(49):
        await shop.decide("transfer", f"a{number}", "amount", "reject")
    with pytest.raises(NotAllowedNow) as full:
        await shop.decide("transfer", "total", "amount", "approve")
    says([str(rival.value), str(full.value)])
