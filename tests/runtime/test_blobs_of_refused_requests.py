"""A request that is refused leaves nothing in the bucket: large payloads are stored once they are accepted, and once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from baton import StepFailure, tool
from baton.adapters.memory.store import MemoryBlobs
from baton.core.log.codec import encode_entry
from baton.core.log.events import Entry, SignalReceived, Value
from baton.core.log.questions import Answer
from baton.errors import UserError
from baton.ports import Record, SagaRef
from baton.runtime.requests.service import Service
from tests.kit.corpus import start
from tests.kit.world import TENANT, World

LARGE = "x" * 20_000
WAITS = """
name: w
input: {type: object, properties: {text: {type: string, maxLength: 30000}}}
nodes:
  a: {wait: {signal: go}, output_schema: {type: string}}
  b: {wait: {signal: go}, after: a, output_schema: {type: string}}
"""
ASKS = "name: asks\nnodes: {a: {tool: call, on_failure: ask_user}}"
Case = Callable[[Service, str], Awaitable[Any]]


class CountedBlobs(MemoryBlobs):
    """Counts what is written. `meanwhile` happens once, during the next write."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[bytes] = []
        self.meanwhile: Callable[[], None] = lambda: None

    def put(self, tenant: str, data: bytes, period: str = "") -> str:
        self.written.append(data)
        meanwhile, self.meanwhile = self.meanwhile, lambda: None
        meanwhile()
        return super().put(tenant, data, period)


async def opened(world: World, document: str, name: str) -> tuple[str, CountedBlobs]:
    """A saga that waits or asks; what it takes to get there is not counted."""

    @tool("call", registry=world.registry)
    async def call() -> str:
        raise StepFailure("business_rule", "no")

    world.tools = world.registry.specs()
    world.blobs = blobs = CountedBlobs()
    saga = await start(world, document, {}, name)
    await asyncio.sleep(3)
    blobs.written.clear()
    return saga, blobs


async def question(world: World, saga: str) -> str:
    (found,) = (await world.queries().show(saga))["questions"]
    return str(found["id"])


# ---- signals


async def _unknown(service: Service, saga: str) -> None:
    await service.signal(saga, "gone", LARGE, "")


async def _against_the_schema(service: Service, saga: str) -> None:
    await service.signal(saga, "go", [LARGE], "")


async def _under_a_used_key(service: Service, saga: str) -> None:
    await service.signal(saga, "go", LARGE, "k")


@pytest.mark.parametrize("case", [_unknown, _against_the_schema, _under_a_used_key])
async def test_a_signal_that_is_refused_stores_no_payload(case: Case) -> None:
    world = World.start()
    saga, blobs = await opened(world, WAITS, "w")
    if case is _under_a_used_key:
        await world.service().signal(saga, "go", "small", "k")
    with pytest.raises(UserError):
        await case(world.service(), saga)
    assert blobs.written == []


async def test_a_signal_to_a_saga_that_has_ended_or_keeps_too_many_stores_no_payload() -> None:
    world = World.start()
    saga, blobs = await opened(world, WAITS, "w")
    await world.service().cancel(saga, "enough", 0)
    await world.settle()
    with pytest.raises(UserError, match="has ended"):
        await world.service().signal(saga, "go", LARGE, "")
    assert blobs.written == []


async def test_a_large_signal_is_stored_once_whatever_comes_in_between_and_however_often_it_is_sent() -> None:
    world = World.start()
    saga, blobs = await opened(world, WAITS, "w")
    last = world.entries(saga)[-1]

    def meanwhile() -> None:
        other = SignalReceived(name="go", key="other", payload=Value(v="other"), by="bo", at=last.at)
        entry = Entry(version=last.version + 1, at=last.at, invocation="other", events=(other,))
        assert world.log.append(SagaRef(TENANT, saga), Record(0, entry.version, encode_entry(entry)), None)

    blobs.meanwhile = meanwhile
    for _ in range(2):
        await world.service().signal(saga, "go", LARGE, "k")
    signals = [event.key for event in world.events(saga) if isinstance(event, SignalReceived)]
    assert signals == ["other", "k"]
    assert len(blobs.written) == 1


# ---- answers


@pytest.mark.parametrize(
    ("said", "key"),
    [
        ({"ask": "0.b.1", "action": "use"}, ""),
        ({"action": "guess"}, ""),
        ({"action": "fail"}, ""),
    ],
)
async def test_an_answer_that_is_refused_stores_no_output(said: dict[str, Any], key: str) -> None:
    world = World.start()
    saga, blobs = await opened(world, ASKS, "asks")
    answer = Answer(**{"ask": await question(world, saga), "output": LARGE, **said})
    with pytest.raises(UserError):
        await world.service().answer(saga, answer, key)
    assert blobs.written == []


async def test_a_large_answer_is_stored_once_and_another_one_not_at_all() -> None:
    world = World.start()
    saga, blobs = await opened(world, ASKS, "asks")
    ask = await question(world, saga)
    for _ in range(2):
        await world.service().answer(saga, Answer(ask=ask, action="use", output=LARGE), "k")
    for key in ("k", "", "other"):
        with pytest.raises(UserError):
            await world.service().answer(saga, Answer(ask=ask, action="use", output=LARGE + "y"), key)
    assert [data[:6] for data in blobs.written if LARGE.encode() in data].count(b'{"ask"') == 1


# ---- starts


async def _start_against_the_schema(service: Service) -> None:
    await service.start("w", {"text": LARGE * 2}, "")


async def _start_of_nothing(service: Service) -> None:
    await service.start("gone", {"text": LARGE}, "")


async def _start_under_a_used_key(service: Service) -> None:
    await service.start("w", {"text": LARGE}, "key-1")


@pytest.mark.parametrize("case", [_start_against_the_schema, _start_of_nothing, _start_under_a_used_key])
async def test_a_start_that_is_refused_stores_no_input(case: Callable[[Service], Awaitable[None]]) -> None:
    world = World.start()
    _, blobs = await opened(world, WAITS, "w")
    with pytest.raises(UserError):
        await case(world.service())
    assert blobs.written == []
