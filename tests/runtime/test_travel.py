"""Time travel: what is shown of an earlier version is what was shown then, and two states are compared."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from baton import tool
from baton.core.limits import DAY_MS, Limits
from baton.errors import NotFound
from baton.runtime.requests import travel
from baton.runtime.requests.queries import Queries
from tests.kit.tampering import lose
from tests.kit.virtual_time import VirtualClock
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
TELLS = """
name: tells
input: {type: object}
nodes: {say: {tool: echo, with: {text: '${input.text}'}}}
output: '${ctx.say.output}'
"""
MOMENT_S = 0.01
PERIOD_MS = 8 * DAY_MS


async def telling(texts: Sequence[str]) -> tuple[World, list[str]]:
    """Sagas whose input, output and result are these texts, each in another period of the bucket."""
    world, sagas = World.start(limits=Limits(saga_days=4, retention_days=4)), list[str]()

    @tool("echo", registry=world.registry)
    async def echo(text: str) -> str:
        return text

    world.tools = world.registry.specs()
    await world.service().register(TELLS, json_only=False)
    for number, text in enumerate(texts):
        if number:
            await asyncio.sleep((PERIOD_MS - VirtualClock().now() % PERIOD_MS) / 1_000)
        view, _ = await world.service().start("tells", {"text": text}, f"k{number}")
        await world.settle()
        sagas.append(str(view["id"]))
    return world, sagas


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


async def test_equal_values_in_other_periods_of_the_bucket_are_equal() -> None:
    world, (one, other) = await telling(["x" * 20_000] * 2)
    found = await travel.compare(queries(world), one, other, 0, 0)
    assert (found.differences, found.equal) == ([], 1)


async def test_large_parts_are_compared_by_reference_so_that_an_answer_has_room_for_them() -> None:
    world, (one, other) = await telling(["a" * 1_500_000, "b" * 1_500_000])
    found = await travel.compare(queries(world), one, other, 0, 0)
    sizes = [(one.what, one.first.size) for one in found.differences[:2]]
    assert sizes == [("input", 1_500_011), ("result", 1_500_002)]
    assert len(msgspec.json.encode(found)) < 10_000


async def test_a_version_before_damage_is_shown_as_it_was() -> None:
    world = World.start()
    saga = await ended(world)
    then = await queries(world).show(saga, 2)
    lose(world, saga, 4)
    assert await queries(world).show(saga, 2) == then
    assert (await queries(world).show(saga)).status == "completed"


async def test_a_saga_of_another_tenant_is_not_there() -> None:
    world = World.start()
    mine = await waiting(world)
    await world.service(tenant="globex").register(ASKS, json_only=False)
    view, _ = await world.service(tenant="globex").start("asks", {"n": 2}, "other")
    await world.settle()
    theirs, other = str(view["id"]), world.queries(tenant="globex")._service
    for at in (0, 1):
        with pytest.raises(NotFound):
            await travel.state_at(other, mine, at, 0, 10)
    for pair in ((theirs, mine), (mine, theirs)):
        with pytest.raises(NotFound):
            await travel.compare(other, *pair, 0, 0)


async def test_going_back_in_a_long_log_reads_on_from_a_snapshot(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World.start(limits=Limits(snapshot_tail_bytes=1_024))
    nodes = {f"n{n}": {"wait": {"for": "20s"}} for n in range(30)}
    afters = {name: {"after": f"n{n}"} for n, name in enumerate([*nodes][1:])}
    document = {
        "name": "long",
        "nodes": {name: {**one, **afters.get(name, {})} for name, one in nodes.items()},
    }
    await world.service().register(json.dumps(document), json_only=False)
    saga = str((await world.service().start("long", {}, ""))[0]["id"])
    await asyncio.sleep(1_000)
    last, read = await newest(world, saga), list[int]()
    then, real = await queries(world).show(saga, last - 9), world.log.read_tail

    def counted(*args: Any) -> Any:
        read.append(len(found := real(*args)))
        return found

    monkeypatch.setattr(world.log, "read_tail", counted)
    assert await queries(world).show(saga, last - 9) == then
    assert sum(read) < 10 < last
