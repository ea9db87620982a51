"""Time travel: what is shown of an earlier version is what was shown then, and two states are compared."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from baton.errors import NotFound
from baton.runtime.requests import travel
from baton.runtime.requests.queries import Queries
from tests.kit.world import World

ASKS = """
name: asks
nodes:
  first: {tool: add, with: {numbers: ['${input.n}', 1]}}
  pause: {wait: {signal: go}, after: first}
  each: {map: [1, 2], tool: add, with: {numbers: ['${item}']}, after: pause}
  last: {tool: add, with: {numbers: ['${ctx.first.output.n}', 10]}, after: each}
output: '${ctx.last.output.n}'
"""
MOMENT_S = 0.01


def queries(world: World) -> Queries:
    """The reading use cases, with answers as they are."""
    found: Queries = world.queries()._service
    return found


async def newest(world: World, saga: str) -> int:
    return (await queries(world).show(saga)).version


async def waiting(world: World, n: int = 1) -> str:
    """A saga that waits for its signal."""
    await world.service().register(ASKS, json_only=False)
    view, _ = await world.service().start("asks", {"n": n}, "")
    await world.settle()
    return str(view["id"])


async def ended(world: World, n: int = 1) -> str:
    saga = await waiting(world, n)
    await world.service().signal(saga, "go", {}, "k")
    await world.settle()
    return saga


async def outputs(world: World, saga: str, at: int = 0) -> dict[str, Any]:
    found, after = dict[str, Any](), 0
    while True:
        page = await travel.state_at(queries(world), saga, at, after, 2)
        for one in page.outputs:
            name = f"{one.node}{f'#{one.item}' if one.item else ''}"
            assert name not in found, "each once"
            found[name] = one.output
        if page.next is None:
            return found
        after = page.next


async def test_an_earlier_version_is_shown_as_it_was_shown_then() -> None:
    world = World.start()
    await world.service().register(ASKS, json_only=False)
    view, _ = await world.service().start("asks", {"n": 1}, "")
    saga, then = str(view["id"]), dict[int, Any]()
    for moment in range(400):
        if moment == 100:
            await world.service().signal(saga, "go", {}, "k")
        if moment == 250:
            await world.service().fork(saga, 2, "again")
        if moment == 300:
            await world.service().signal(saga, "go", {}, "k2")
        shown = await queries(world).show(saga)
        then[shown.version] = shown
        await asyncio.sleep(MOMENT_S)
    assert len(then) > 8
    assert {one.status for one in then.values()} >= {"running", "waiting", "completed"}
    assert {one.branch for one in then.values()} == {0, 1}
    for version, shown in then.items():
        assert await queries(world).show(saga, version) == shown


async def test_outputs_are_those_of_the_version_and_of_its_branch() -> None:
    world = World.start()
    saga = await ended(world)
    whole = await outputs(world, saga)
    assert whole["last"] == {"n": 12}
    assert {"first", "last", "each", "pause"} <= whole.keys()
    version = await newest(world, saga)
    await world.service().fork(saga, 2, "again")
    await world.settle()
    assert await outputs(world, saga) == {"first": {"n": 2}}, "those of the branch that was left are none"
    assert await outputs(world, saga, version) == whole


async def test_a_version_that_is_not_there_yet_is_none() -> None:
    world = World.start()
    saga = await waiting(world)
    last = await newest(world, saga)
    with pytest.raises(NotFound, match=rf"\b{last}$"):
        await travel.state_at(queries(world), saga, last + 1, 0, 10)


async def test_sagas_are_compared_by_their_parts_and_the_last_attempts_at_their_nodes() -> None:
    world = World.start()
    one, same, other = await ended(world), await ended(world), await ended(world, 5)
    equal = await travel.compare(queries(world), one, same, 0, 0)
    assert (equal.differences, equal.more) == ([], 0)
    found = await travel.compare(queries(world), one, other, 0, 0)
    assert found.equal == equal.equal - 2
    assert [(it.what, it.node) for it in found.differences] == [
        ("input", None),
        ("result", None),
        ("node", "first"),
        ("node", "last"),
    ]
    assert [found.differences[0].first, found.differences[0].second] == [{"n": 1}, {"n": 5}]
    assert [found.differences[-1].first.output, found.differences[-1].second.output] == [{"n": 12}, {"n": 16}]


async def test_a_saga_is_compared_with_itself_before() -> None:
    world = World.start()
    saga = await waiting(world)
    then = await newest(world, saga)
    await world.service().signal(saga, "go", {}, "k")
    await world.settle()
    found = await travel.compare(queries(world), saga, saga, then, 0)
    assert (found.first.version, found.first.status, found.second.status) == (then, "waiting", "completed")
    missing = {it.node for it in found.differences if it.what == "node" and it.first is None}
    assert missing == {"pause", "each", "last"}
