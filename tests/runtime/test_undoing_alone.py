"""A saga that a function has started to go on alone: a rollback of the function's saga leaves it as it is."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from baton import WorkflowContext, tool, workflow
from tests.kit.world import World
from tests.runtime.functions import Application, killed

ALONE = "name: alone\nnodes: {a: {wait: {for: 1h}}}"


@pytest.mark.parametrize("write", range(10, 18))
def test_a_worker_dies_before_it_reports_the_start_and_the_rollback_does_not_cancel_it(write: int) -> None:
    app, undone, alone = Application(), list[str](), list[str]()

    @tool("lend", undo="give_back", registry=app.registry)
    async def lend() -> None:
        await asyncio.sleep(1)

    @tool("give_back", registry=app.registry)
    async def give_back() -> None:
        undone.append("hall")

    @workflow("orders", registry=app.registry, tools=["lend"])
    async def orders(context: WorkflowContext) -> None:
        await context.step("lend")
        await context.start("alone")
        await context.sleep("1d")

    async def during(world: World, saga: str) -> Any:
        await world.service().register(ALONE, json_only=False)
        while not (found := [head.ref.id for head in world.log.heads() if head.ref.id != saga]):
            await asyncio.sleep(0.01)
        await world.service().cancel(saga, "changed my mind", 0, undo=True)
        await world.settle(7_200)
        view = await world.queries_without_faults().show(found[0])
        alone.append(view["status"])

    result = app.run("orders", during=during, plan=killed(write))
    assert (result.status, undone, alone) == ("rolled_back", ["hall"], ["completed"])
