"""An effect that several steps of a saga share, because its key says so, is undone once."""

from __future__ import annotations

from baton import Context, Key, tool
from tests.kit.world import World
from tests.runtime.undoing import Ledger, add_ledger, view_of

TWINS = """
name: w
on_failure: [rollback]
nodes:
  a: {tool: once.pay, with: {order: x}}
  b: {tool: once.pay, with: {order: x}, after: a}
  c: {tool: trip.fail, after: b}
"""


async def test_what_two_steps_were_given_is_undone_once() -> None:
    world = World.start()
    add_ledger(world, Ledger())
    deeds: list[str] = []

    @tool("once.pay", effect="once", undo="once.refund", key=Key.saga(), registry=world.registry)
    async def pay(order: str) -> dict[str, str]:
        deeds.append("pay")
        return {"order": order}

    @tool("once.refund", effect="once", registry=world.registry)
    async def refund(order: str, context: Context) -> None:
        deeds.append("refund")

    world.tools = world.registry.specs()
    view = await view_of(world, TWINS)
    assert (view["status"], deeds) == ("rolled_back", ["pay", "refund"])
    assert view["undo"]["done"] | {"back_to": 0} == {
        "undone": 1,
        "failed": 0,
        "lasting": 0,
        "stays": [],
        "back_to": 0,
    }
