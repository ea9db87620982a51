"""What a saga has cost, asked for while it runs, waits, and when it is over; the formula is core/read/usage.py's."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from baton.core.read.costs import BillingSettings
from baton.errors import NotFound, TooLarge
from baton.runtime.requests import costs
from tests.kit.corpus import start
from tests.kit.documents import chain_of
from tests.kit.sentences import Says
from tests.kit.views import as_json
from tests.kit.world import World

LEASE = 1  # write units of a take; a release is 3, and one more at the end


class Clock:
    """It is always that late."""

    def __init__(self, at: int) -> None:
        self.at = at

    def now(self) -> int:
        return self.at


def quantity(view: dict[str, Any], what: str) -> float:
    return next(float(line["quantity"]) for line in view["aws"] if line["what"] == what)


async def test_a_finished_saga_has_a_cost_with_all_its_parts() -> None:
    world = World.start()
    saga = await start(world, chain_of(5), {"n": 0}, "chain")
    await world.settle()
    view = await world.queries().cost(saga)
    assert (view["saga"], view["status"], view["steps"], view["invocations"]) == (saga, "completed", 5, 1)
    assert quantity(view, "DynamoDB writes") == 4 + LEASE + 5 + 4
    assert quantity(view, "Lambda requests") == 3
    assert view["usd"]["total"] == pytest.approx(sum(line["usd"] for line in view["aws"]))
    assert view["usd_per_million_steps"] == pytest.approx(view["usd"]["total"] / 5 * 1e6, rel=1e-3)


async def test_the_cost_of_a_running_saga_grows_with_its_steps_and_waiting_costs_nothing() -> None:
    document = "name: w\nnodes:\n  a: {tool: work, with: {n: 1}}\n  b: {wait: {for: 4m}, after: a}\n"
    world = World.start()
    saga = await start(world, document, {}, "w")
    started = await world.queries().cost(saga)
    await asyncio.sleep(10)
    waiting = [await world.queries().cost(saga)]
    await asyncio.sleep(120)
    waiting.append(await world.queries().cost(saga))
    await world.settle()
    ended = await world.queries().cost(saga)
    assert started["usd"]["total"] < waiting[0]["usd"]["total"] == waiting[1]["usd"]["total"]
    assert waiting[1]["usd"]["total"] < ended["usd"]["total"]
    assert (started["usd_per_million_steps"], started["steps"]) == (None, 0)


async def test_a_log_of_many_pages_and_branches_is_read_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World.start()
    saga = await start(world, chain_of(7), {"n": 0}, "chain")
    await world.settle()
    await world.service().fork(saga, 3, "again from the second step")
    await world.settle()
    whole = await world.queries().cost(saga)
    assert whole["steps"] == 7 + 5, "what was done before the fork was paid too"
    for size in (1, 2, 4):
        monkeypatch.setattr(costs, "PAGE", size)
        assert await world.queries().cost(saga) == whole


async def test_what_is_appended_while_the_log_is_read_is_left_for_the_next_time() -> None:
    world = World.start()
    saga = await start(world, chain_of(3), {"n": 0}, "chain")
    await world.settle()
    before = await world.queries().cost(saga)
    opened = await world.queries()._request.open(saga)
    await world.service().fork(saga, 2, "meanwhile")
    again = await costs.saga_cost(
        world.log, world.queries()._parts.call, Clock(0), opened, BillingSettings.of(world.limits)
    )
    assert as_json(again) == before


async def test_a_log_that_cannot_be_read_before_the_request_ends_is_refused_with_how_far_it_came(
    monkeypatch: pytest.MonkeyPatch, says: Says
) -> None:
    monkeypatch.setattr(costs, "PAGE", 4)
    world = World.start()
    saga = await start(world, chain_of(7), {"n": 0}, "chain")
    await world.settle()
    opened = await world.queries()._request.open(saga)
    call = world.queries()._parts.call
    with says.raised(TooLarge):
        await costs.saga_cost(world.log, call, Clock(call.deadline), opened, BillingSettings.of(world.limits))
    monkeypatch.setattr(costs, "PAGE", 8)
    await costs.saga_cost(world.log, call, Clock(call.deadline), opened, BillingSettings.of(world.limits))


async def test_a_saga_that_is_not_there_has_no_cost() -> None:
    world = World.start()
    with pytest.raises(NotFound):
        await world.queries().cost("nowhere")
