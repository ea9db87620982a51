"""A world in memory and virtual time for each test, with the corpus's tools and some that misbehave."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from baton import Context, tool
from tests.kit.faults import Crash
from tests.kit.toolbox import Books, make_registry
from tests.kit.virtual import run_virtual
from tests.kit.world import World

Story = Callable[[World, Books], Awaitable[None]]


class Stage:
    """Runs a story in a new world; `options` are the world's. `kind`: of which class it is."""

    def __call__(self, story: Story, **options: Any) -> None:
        async def main() -> None:
            books = Books()
            registry = make_registry(books)
            kind: type[World] = options.pop("kind", World)
            world = kind(registry, **options)
            _add_misbehaving_tools(world)
            world.tools = registry.specs()
            world.switch_on()
            await story(world, books)

        run_virtual(main())


def _add_misbehaving_tools(world: World) -> None:
    registry = world.registry

    @tool("kill", registry=registry)
    async def kill(context: Context) -> None:
        """Takes its whole process down, as a segfault or running out of memory would."""
        world.running[context.saga, context.node].is_dead = True
        raise Crash

    @tool("stubborn", registry=registry, timeout="10m")
    async def stubborn() -> None:
        """Ignores being cancelled, for a minute."""
        loop = asyncio.get_running_loop()
        end = loop.time() + 60
        while loop.time() < end:
            try:
                await asyncio.sleep(3_600)
            except asyncio.CancelledError:
                continue

    @tool("quits", registry=registry)
    async def quits() -> None:
        """Cancels itself, as a library may."""
        raise asyncio.CancelledError

    @tool("odd", registry=registry)
    async def odd(what: str) -> Any:
        return {"nan": float("nan"), "set": {1, 2}, "huge": "x" * 6_000_000}[what]


@pytest.fixture
def stage() -> Stage:
    return Stage()
