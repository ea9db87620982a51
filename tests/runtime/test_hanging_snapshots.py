"""A snapshot only saves reading: one that cannot be written stands in no saga's way."""

from __future__ import annotations

from typing import Any

import pytest

from baton import tool
from baton.ports import Message, SagaRef
from tests.kit.corpus import start
from tests.kit.process import HANGS, REFUSES, Outage
from tests.kit.virtual_time import VirtualClock
from tests.kit.world import TENANT, World

ALONE: dict[str, Any] = {"stream_on": False, "reconciler_on": False}


@pytest.mark.parametrize("how", ["hangs", "refuses"])
async def test_a_snapshot_that_cannot_be_written_holds_up_a_release_for_two_seconds_at_most(how: str) -> None:
    """It only saves reading: a signal that comes meanwhile is heard soon, also in an invocation of minutes."""
    steps = "".join(f"  n{i}: {{tool: large{f', after: n{i - 1}' if i else ''}}}\n" for i in range(12))
    used = "".join(f"${{ctx.n{i}.output}}" for i in range(12))
    document = f"name: w\nnodes:\n{steps}  w: {{wait: {{signal: go}}, after: n11}}\n  z: {{value: '{used}', after: w}}\n"
    world = World.start(timeout_s=60, **ALONE)

    @tool("large", registry=world.registry)
    async def large() -> str:
        return "x" * 7_000

    world.tools = world.registry.specs()
    saga = await start(world, document, {}, "w")
    world.outages = (Outage("s3", HANGS if how == "hangs" else REFUSES, 0.1),)
    began = VirtualClock().now()
    await world.work([Message(str(SagaRef(TENANT, saga)), 1)])
    assert VirtualClock().now() - began < 3_000
    head = world.log.read_head(SagaRef(TENANT, saga))
    assert head is not None
    assert (head.owner, head.status) == ("", "waiting")
