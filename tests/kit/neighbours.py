"""Two tenants in one world with few workers: one floods it with sagas, the other's twenty are timed.

The scenario and its one figure. The test and the bench set its bounds.
"""

from __future__ import annotations

import asyncio
from typing import Any

from baton.core.limits import Limits
from baton.ports import SagaRef
from tests.kit.documents import chain_of
from tests.kit.virtual_time import run_virtual
from tests.kit.world import World

NOISY, QUIET = "acme", "globex"
SLOTS, BATCH = 50, 10  # as in the template: workers that the queue keeps busy, and wakes of each
SAGAS = 20


def seconds_of_twenty(flood: int, *, noisy: str = "", **options: Any) -> float:
    """From their start to the end of the last one, in virtual time. `flood`: sagas of another tenant before them.

    `noisy`: the document of the flood; by default that of the twenty, five steps of 0.4 s.
    """

    async def main() -> float:
        settings: dict[str, Any] = {
            "slots": SLOTS,
            "batch": BATCH,
            "timeout_s": 60,
            "limits": Limits(),
        } | options
        world = World.start(**settings)
        await _start(world, NOISY, flood, noisy or chain_of(5))
        began = asyncio.get_running_loop().time()
        quiet = await _start(world, QUIET, SAGAS, chain_of(5))
        while any((head := world.log.read_head(ref)) is None or head.group != "done" for ref in quiet):
            await asyncio.sleep(0.02)
        return asyncio.get_running_loop().time() - began

    return run_virtual(main())


async def _start(world: World, tenant: str, count: int, document: str) -> list[SagaRef]:
    """Started side by side, as by many callers at once."""
    if not count:
        return []
    service = world.service(tenant=tenant)
    name = (await service.register(document, json_only=False)).definition.name
    views = await asyncio.gather(*(service.start(name, {"n": 0}, "") for _ in range(count)))
    return [SagaRef(tenant, view["id"]) for view, _ in views]
