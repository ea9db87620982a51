"""Circuit breakers: calls that are held back while their target is down, and what that costs when it is not."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from typing import Any

import pytest

from baton.core.failures.breakers import CLOSED, OPEN
from baton.core.log.events import AttemptFailed, StepHeld, StepSucceeded
from baton.runtime.engine.parts import Engine
from baton.runtime.steps import breaking
from tests.kit.corpus import patiently
from tests.kit.process import Process
from tests.kit.unavailable_target import PAYMENTS, Target, add_down
from tests.kit.world import TENANT, World


def with_target(world: World, **options: Any) -> Target:
    target = Target(**options)
    add_down(world.registry, target)
    world.tools = world.registry.specs()
    return target


def waits(world: World, saga: str) -> list[StepHeld]:
    return [event for event in world.events(saga) if isinstance(event, StepHeld)]


async def begin(world: World, count: int, document: str = PAYMENTS) -> list[str]:
    name = document.split()[1]
    await patiently(world, lambda service: service.register(document, json_only=False))

    async def one(number: int) -> str:
        view, _ = await patiently(world, lambda service: service.start(name, {}, f"{name}-{number}"))
        return str(view["id"])

    return [await one(number) for number in range(count)]


async def test_healthy_calls_write_nothing_and_wait_for_nothing_and_a_process_reads_once_a_minute() -> None:
    world = World.start(is_warm=True, slots=1)
    target = with_target(world)
    world.slow["read_breaker"] = 0.4
    sagas = await begin(world, 20)
    await world.settle()
    assert len(target.calls) == len(sagas)
    assert "write_breaker" not in world.plan.writes
    assert world.plan.reads.count("read_breaker") == 1
    for saga in sagas:
        (done,) = (event for event in world.events(saga) if isinstance(event, StepSucceeded))
        assert done.ended_at - done.started_at == 100, "so long the call takes"


async def test_a_target_that_is_down_is_called_a_few_times_and_every_saga_completes_after_it() -> None:
    world = World.start()
    target = with_target(world, down=((0, 600),))
    sagas = await begin(world, 20)
    await world.settle()
    assert [world.end(saga).status for saga in sagas] == ["completed"] * 20  # type: ignore[union-attr]
    opened = world.store.breakers.read_breaker(TENANT, "payments")
    assert opened is not None
    assert opened.state == CLOSED
    assert (opened.moves[0].to, opened.moves[-1].to) == (OPEN, CLOSED)
    assert len(target.while_down) < 45


async def test_a_step_that_is_held_back_makes_no_attempt() -> None:
    world = World.start()
    with_target(world, down=((0, 300),))
    sagas = await begin(world, 10)
    await world.settle()
    for saga in sagas:
        failed = [event for event in world.events(saga) if isinstance(event, AttemptFailed)]
        assert len(failed) < 3
        assert waits(world, saga)


OTHER_WAY = """
name: other
nodes:
  pay:
    tool: charge
    with: {n: 1}
    failover: [{name: cash, when: {code: breaker_open}, then: {tool: cash}}]
output: '${ctx.pay.output}'
"""


async def open_by_hand(world: World) -> None:
    """An operator opens the breaker `payments`."""
    opened = await world.service().breakers.open("payments", 0)
    assert opened.state == OPEN


async def test_what_an_operator_has_opened_is_open_until_it_is_reset() -> None:
    world = World.start(is_warm=True, slots=1)
    target = with_target(world)
    (first,) = await begin(world, 1)
    await asyncio.sleep(1)
    await open_by_hand(world)
    await asyncio.sleep(61)
    # A process that knows of no failures reads beside its next call, which goes through.
    second, third = (await begin(world, 3))[1:]
    await asyncio.sleep(300)
    assert len(target.calls) == 2
    assert world.end(first) is not None
    assert [world.end(saga) for saga in (second, third)].count(None) == 1
    await world.service().breakers.reset("payments")
    await world.settle()
    assert [world.end(saga).status for saga in (second, third)] == ["completed"] * 2  # type: ignore[union-attr]


async def test_a_document_goes_another_way_at_once() -> None:
    world = World.start()
    target = with_target(world, down=((0, 600),))
    await begin(world, 5)
    await asyncio.sleep(20)
    known = world.store.breakers.read_breaker(TENANT, "payments")
    assert known is not None
    assert known.state == OPEN
    before = len(target.calls)
    (saga,) = await begin(world, 1, OTHER_WAY)
    await asyncio.sleep(10)
    assert world.end(saga) is not None
    assert world.tool_of(saga, "pay") == "cash"
    assert waits(world, saga) == []
    assert len(target.calls) - before <= 1, "the call by which its process has learnt of it"


async def test_a_node_takes_its_tools_breaker_away() -> None:
    world = World.start()
    with_target(world, down=((0, 2),))
    await begin(world, 3, PAYMENTS.replace("retry: {", "breaker: none, retry: {"))
    await world.settle()
    assert world.store.breakers.read_breaker(TENANT, "payments") is None


async def test_a_node_names_a_breaker_for_a_tool_that_has_none() -> None:
    world = World.start()
    with_target(world, down=((0, 2),))
    document = PAYMENTS.replace("tool: charge", "tool: bare").replace("retry: {", "breaker: shop, retry: {")
    await begin(world, 3, document)
    await world.settle()
    assert [name for name, _ in world.store.breakers.all(TENANT)] == ["shop"]


async def test_failures_that_say_nothing_of_the_target_count_for_nothing() -> None:
    world = World.start()
    with_target(world, down=((0, 3_600),), code="bad_request")
    await begin(
        world, 8, "\nname: payments\non_failure: [rollback]\nnodes: {pay: {tool: charge, with: {n: 1}}}"
    )
    await world.settle()
    assert world.store.breakers.read_breaker(TENANT, "payments") is None


async def test_a_process_remembers_only_so_many_targets(monkeypatch: pytest.MonkeyPatch) -> None:
    """A saga may call thousands of hosts; their process must not grow with each."""
    monkeypatch.setattr(breaking, "MOST_KNOWN", 5)
    engines: list[Engine] = []
    real = World.engine

    def engine(self: World, process: Process) -> Engine:
        engines.append(made := real(self, process))
        return made

    monkeypatch.setattr(World, "engine", engine)
    world = World.start(is_warm=True, slots=1)
    with_target(world)
    for number in range(12):
        document = PAYMENTS.replace("name: payments", f"name: shop-{number}").replace(
            "retry: {", f"breaker: shop-{number}, retry: {{"
        )
        await begin(world, 1, document)
    await world.settle()
    caches = [engine.breakers for engine in engines]
    assert max(map(len, caches)) == 5


def test_a_worker_loads_nothing_of_breakers_before_a_call_has_one() -> None:
    program = "import sys, baton.wiring, baton.runtime.worker.worker, baton.tools.perform, baton.adapters.dynamo.store\nprint([m for m in sys.modules if 'break' in m])"
    made = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert made.stdout == "[]\n"
