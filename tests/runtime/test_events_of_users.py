"""An event starts a saga of the user whom the rule names, and the saga spends that user's money."""

from __future__ import annotations

from typing import Any

import pytest

from baton.core.limits import DAY_MS, Limits
from baton.ports import Account, Reservation, ReservationChange
from tests.kit.virtual_time import VirtualClock
from tests.kit.world import TENANT, World
from tests.runtime.test_events import did, event, register, take

CARE = """
name: care
events: {start: [{type: asked, user: "${event.data.customer}"}]}
nodes: {think: {value: 1}}
"""


def asked(number: str = "e1", **data: Any) -> dict[str, Any]:
    return event("asked", number, **data)


def spend(world: World, user: str, cost: int) -> None:
    now = VirtualClock().now()
    account, held = Account(TENANT, user, now // DAY_MS), Reservation(1, 0, now + DAY_MS)
    world.budgets.move(account, ReservationChange("x", None, held), now)
    world.budgets.move(account, ReservationChange("x", held, None, cost), now)


async def test_the_saga_is_that_users_and_a_repetition_finds_it() -> None:
    world = World.start()
    await register(world, CARE)
    (done,) = await take(world, asked(customer="ada"))
    await world.settle()
    assert (await world.queries().show(done["saga"]))["user"] == "ada"
    assert await take(world, asked(customer="ada")) == [{**done, "did": "duplicate"}]
    assert [head.user for head in world.log.heads()] == ["ada"]


@pytest.mark.parametrize(
    "data", [{"customer": None}, {"customer": ""}, {"customer": 7}, {"customer": "a b"}, {}]
)
async def test_an_event_that_names_no_user_starts_nothing_at_the_cost_of_another(
    data: dict[str, Any],
) -> None:
    world = World.start()
    await register(world, CARE)
    assert did(await take(world, asked(**data))) == [("care", "refused")]
    assert world.log.heads() == []


async def test_only_the_user_whose_day_is_spent_has_to_wait() -> None:
    world = World.start(limits=Limits(user_day_budget_usd="5"))
    await register(world, CARE)
    spend(world, "ada", 5_000_000)
    assert did(await take(world, asked(customer="ada"))) == [("care", "later")]
    assert did(await take(world, asked("e2", customer="bob"))) == [("care", "started")]
