"""A store call that never answers ends by itself, in time: the saga is let go, and what was done meanwhile is kept."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from baton import Context, tool
from baton.core.log.events import Revived, StepInterrupted, StepSucceeded
from baton.errors import EngineFault, StoreUnavailable
from baton.ports import Message, SagaRef, Sums
from baton.runtime.engine.parts import InvocationScope
from baton.runtime.invocation.context import Invocation
from baton.runtime.worker.runner import Runner
from tests.kit.corpus import start
from tests.kit.faults import HANG
from tests.kit.virtual_time import VirtualClock
from tests.kit.world import TENANT, World
from tests.runtime.test_money import sums

FOREVER = 100_000.0
LARGE = "name: w\nnodes: {a: {tool: fill, with: {size: 20000}}}"
ALONE: dict[str, Any] = {"stream_on": False, "reconciler_on": False}


async def hang(world: World, call: str, seconds: float) -> None:
    """For so long, no call of that name gets an answer."""
    world.slow[call] = FOREVER
    await asyncio.sleep(seconds)
    del world.slow[call]


def deaths(world: World, saga: str) -> int:
    return sum(isinstance(event, Revived) for event in world.events(saga))


def end(world: World, saga: str) -> str:
    ended = world.end(saga)
    return ended.status if ended is not None else ""


@pytest.mark.parametrize("call", ["put", "append"])
async def test_after_three_minutes_without_an_answer_the_saga_goes_on_and_nothing_looks_like_a_death(
    call: str,
) -> None:
    world = World.start()
    saga = await start(world, LARGE, {}, "w")
    await hang(world, call, 180)
    await world.settle()
    assert end(world, saga) == "completed"
    assert deaths(world, saga) == 0
    assert not any(isinstance(event, StepInterrupted) for event in world.events(saga))


async def test_a_blob_that_hangs_while_the_saga_is_decided_does_not_look_like_a_death_either() -> None:
    document = LARGE[:-1] + ", b: {tool: size, after: a, with: {text: '${ctx.a.output.text}'}}}"
    world = World.start()

    @tool("size", registry=world.registry)
    async def size(text: str) -> int:
        return len(text)

    world.tools = world.registry.specs()
    saga = await start(world, document, {}, "w")
    await hang(world, "get", 180)
    await world.settle()
    assert end(world, saga) == "completed"
    assert deaths(world, saga) == 0


async def test_a_worker_whose_store_hangs_gives_the_lease_back_before_its_deadline() -> None:
    world = World.start(**ALONE)
    saga = await start(world, LARGE, {}, "w")
    world.slow["append"] = FOREVER
    began = VirtualClock().now()
    message = Message(str(SagaRef(TENANT, saga)), 1)
    assert await world.work([message]) == [message]
    assert VirtualClock().now() < began + 6_000
    head = world.log.read_head(SagaRef(TENANT, saga))
    assert head is not None
    assert head.owner == ""
    assert head.due_at is not None
    assert head.due_at >= began + world.limits.fault_pause_ms


async def test_a_worker_that_may_write_nothing_has_all_its_time_for_giving_the_lease_back() -> None:
    """One of the release before reads what a newer one has written, and its first look at the head hangs."""
    world = World.start(**ALONE)
    saga = await start(world, "name: w\nnodes: {a: {wait: {for: 1h}}}", {}, "w")
    message = Message(str(SagaRef(TENANT, saga)), 9)
    await world.work([message])
    world.rolls_s = FOREVER
    world.plan.at_reads[len(world.plan.reads) + 6] = HANG  # after the head and the log
    await world.work([message])
    assert world.faults == [f"{world.invocations[1]}: hang at read_head"]
    head = world.log.read_head(SagaRef(TENANT, saga))
    assert head is not None
    assert (head.owner, head.epoch) == ("", 2)


async def test_a_take_whose_answer_never_came_is_given_back() -> None:
    world = World.start(**ALONE)
    saga = await start(world, LARGE, {}, "w")
    real = world.log.take

    def take(*arguments: Any) -> Any:
        real(*arguments)
        raise StoreUnavailable("the answer is lost")

    any_log: Any = world.log
    any_log.take = take
    message = Message(str(SagaRef(TENANT, saga)), 1)
    assert await world.work([message]) == [message]
    any_log.take = real
    head = world.log.read_head(SagaRef(TENANT, saga))
    assert head is not None
    assert (head.owner, head.epoch > 0) == ("", True)
    await world.work([message])
    await asyncio.sleep(61)
    await world.work([message])
    assert end(world, saga) == "completed"
    assert deaths(world, saga) == 0


async def test_a_take_that_fails_gives_nothing_back_that_is_anothers() -> None:
    world = World.start(**ALONE)
    saga = await start(world, LARGE, {}, "w")
    ref, now = SagaRef(TENANT, saga), VirtualClock().now()
    real = world.log.take

    def take(*_: Any) -> Any:
        real(ref, "another", now + 60_000, 0, now + 63_000)
        raise StoreUnavailable("no answer")

    any_log: Any = world.log
    any_log.take = take
    process = world.process("worker")
    scope = InvocationScope(world.engine(process), Invocation(process.id, now, now + 6_000))
    with pytest.raises(EngineFault):
        await Runner(scope).run(Message(str(ref), 1), alone=True)
    head = world.log.read_head(ref)
    assert head is not None
    assert head.owner == "another"


# ---- what was done meanwhile


def add_tools(world: World) -> Counter[str]:
    """Tools that take their time and may spend. Returns how often each node of theirs began."""
    began: Counter[str] = Counter()

    @tool("takes", registry=world.registry, timeout="60s")
    async def takes(context: Context, seconds: float, usd: str = "0") -> int:
        began[context.node] += 1
        if usd != "0":
            context.spend(usd)
        await asyncio.sleep(seconds)
        return 1

    world.tools = world.registry.specs()
    return began


async def test_a_step_that_finished_while_the_saga_could_not_be_decided_is_not_run_again() -> None:
    document = """
        name: w
        nodes:
          first: {tool: takes, with: {seconds: 1}}
          big: {tool: fill, after: first, with: {size: 20000}}
          quick: {tool: takes, with: {seconds: 2}}
          needs: {tool: takes, after: big, with: {seconds: '${ctx.big.output.text}'}, when: 'ctx.big.output.text != ""'}
    """
    world = World.start(**ALONE)
    began = add_tools(world)
    saga = await start(world, document, {}, "w")
    work = asyncio.create_task(world.work([Message(str(SagaRef(TENANT, saga)), 1)]))
    await asyncio.sleep(0.5)
    world.slow["get"] = FOREVER
    await work
    done = [event.node for event in world.events(saga) if isinstance(event, StepSucceeded)]
    assert (began["quick"], sorted(done)) == (1, ["big", "first", "quick"])
    assert deaths(world, saga) == 0


async def test_a_step_that_finished_just_when_the_blob_of_another_gave_up_is_not_run_again() -> None:
    world = World.start(**ALONE)
    began = add_tools(world)
    seconds = 6 - 0.7 - 0.002 * 5  # until just before it is cut off
    document = f"name: w\nnodes:\n  big: {{tool: fill, with: {{size: 20000}}}}\n  q: {{tool: takes, with: {{seconds: {seconds}}}}}\n"
    saga = await start(world, document, {}, "w")
    world.slow["put"] = FOREVER
    await world.work([Message(str(SagaRef(TENANT, saga)), 1)])
    done = [event.node for event in world.events(saga) if isinstance(event, StepSucceeded)]
    assert (began["q"], done) == (1, ["q"])


async def test_what_finished_while_an_append_hung_is_appended_once_it_answers_again() -> None:
    world = World.start(**ALONE)
    began = add_tools(world)
    document = """
            name: w
            nodes:
              one: {tool: takes, with: {seconds: 1}}
              two: {tool: takes, with: {seconds: 3, usd: '0.1'}}
              three: {tool: takes, with: {seconds: 30, usd: '0.2'}}
        """
    saga = await start(world, document, {}, "w")
    work = asyncio.create_task(world.work([Message(str(SagaRef(TENANT, saga)), 1)]))
    await asyncio.sleep(0.5)
    world.slow["append"] = FOREVER
    await asyncio.sleep(4)
    del world.slow["append"]  # the call that hangs does so for good; others are answered
    await work
    events = world.events(saga)
    done = [event.node for event in events if isinstance(event, StepSucceeded)]
    assert (began, sorted(done)) == ({"one": 1, "two": 1, "three": 1}, ["one", "two"])
    (cut,) = (event for event in events if isinstance(event, StepInterrupted))
    assert (cut.node, cut.cost, cut.why) == ("three", 200_000, "fault")
    view = await world.queries().show(saga)
    assert (view["interruptions"], view["spent_usd"]) == (0, 0.3)
    assert deaths(world, saga) == 0


async def test_an_append_that_hung_and_happened_all_the_same_is_counted_once() -> None:
    world = World.start(**ALONE)
    add_tools(world)
    document = """
            name: w
            nodes:
              one: {tool: takes, with: {seconds: 1, usd: '0.1'}}
              two: {tool: takes, with: {seconds: 3, usd: '0.1'}}
        """
    saga = await start(world, document, {}, "w")
    real = world.log.append
    late: list[Any] = []

    def append(*args: Any) -> bool:
        real(*args)
        if not late:
            late.append(args)
            world.slow["read_tail"] = FOREVER  # nor is there any answer to the look afterwards
            raise StoreUnavailable("the answer is lost")
        return False

    any_log: Any = world.log
    any_log.append = append
    work = asyncio.create_task(world.work([Message(str(SagaRef(TENANT, saga)), 1)]))
    await asyncio.sleep(5)
    any_log.append = real
    del world.slow["read_tail"]
    await work
    done = [event.node for event in world.events(saga) if isinstance(event, StepSucceeded)]
    assert sorted(done) == ["one", "two"]
    assert (await world.queries().show(saga))["spent_usd"] == 0.2


async def test_what_finished_in_the_round_of_a_fault_is_in_the_log_before_the_fault_comes_out() -> None:
    world = World.start(**ALONE)
    began = add_tools(world)

    @tool("large", registry=world.registry)
    async def large(context: Context) -> str:
        began[context.node] += 1
        await asyncio.sleep(0.3)
        context.spend("0.1")
        return "x" * 20_000

    world.tools = world.registry.specs()
    document = """
            name: w
            nodes:
              one: {tool: takes, with: {seconds: 0.1}}
              bad: {tool: large}
              good: {tool: takes, with: {seconds: 0.3}}
              worse: {tool: large}
              fine: {tool: takes, with: {seconds: 0.3}}
        """
    saga = await start(world, document, {}, "w")
    real = world.blobs.put

    def put(tenant: str, data: bytes, period: str = "") -> str:
        raise EngineFault("broken")

    any_blobs: Any = world.blobs
    any_blobs.put = put
    world.slow["append"] = 0.5  # all the others are done by then
    await world.work([Message(str(SagaRef(TENANT, saga)), 1)])
    done = [event.node for event in world.events(saga) if isinstance(event, StepSucceeded)]
    assert sorted(done) == ["fine", "good", "one"]
    cuts = [event for event in world.events(saga) if isinstance(event, StepInterrupted)]
    assert [(cut.cost, cut.why) for cut in cuts] == [(100_000, "fault")] * 2
    head = world.log.read_head(SagaRef(TENANT, saga))
    assert head is not None
    assert head.owner == "", "the fault came out, and the lease was given back"
    any_blobs.put = real
    await asyncio.sleep(61)
    await world.work([Message(str(SagaRef(TENANT, saga)), 1)])
    assert end(world, saga) == "completed"
    assert (began["good"], began["bad"], began["worse"]) == (1, 2, 2)


async def test_a_settlement_that_failed_is_tried_again_before_the_invocation_is_over() -> None:
    world = World.start(**ALONE)

    @tool("paid", registry=world.registry, cost_usd="0.30")
    async def paid(context: Context) -> None:
        context.spend("0.20")

    world.tools = world.registry.specs()
    saga = await start(world, "name: w\nnodes: {a: {tool: paid}}", {}, "w")
    real = world.budgets.move
    tries: list[Any] = []

    def move(*args: Any) -> Any:
        tries.append(args)
        if len(tries) == 2:  # the first is its reservation
            raise EngineFault("broken")
        return real(*args)

    any_budgets: Any = world.budgets
    any_budgets.move = move
    await world.work([Message(str(SagaRef(TENANT, saga)), 1)])
    assert end(world, saga) == "completed"
    assert sums(world) == Sums(200_000, 200_000, 0)


async def test_what_has_acted_when_its_record_hung_is_told_of_if_its_saga_is_cancelled_before_a_look() -> (
    None
):
    world = World.start(**ALONE)
    deeds: list[str] = []

    @tool("card", registry=world.registry, effect="once")
    async def card() -> str:
        deeds.append("card")
        world.slow["change"] = FOREVER
        return "by card"

    world.tools = world.registry.specs()
    saga = await start(world, "name: w\nnodes: {a: {tool: card}}", {}, "w")
    message = Message(str(SagaRef(TENANT, saga)), 1)
    await world.work([message])
    world.slow.clear()
    await world.service().cancel(saga, "enough", 0)
    await asyncio.sleep(61)
    await world.work([message])
    assert (end(world, saga), deeds, deaths(world, saga)) == ("cancelled", ["card"], 0)
    assert [told.code for told in world.notices.said] == ["unknown_outcome"]


async def test_nothing_is_appended_after_an_end_that_a_fault_interrupts() -> None:
    document = "name: w\nnodes: {a: {tool: work, with: {n: 1}}}"
    world = World.start()
    saga = await start(world, document, {}, "w")
    await hang(world, "release", 100)
    await world.settle()
    assert end(world, saga) == "completed"
    assert isinstance(world.events(saga)[-1], type(world.end(saga)))


@pytest.mark.parametrize("call", ["reserve", "settle"])
async def test_steps_that_report_costs_beside_each_other_are_in_the_log_though_the_account_hangs(
    call: str,
) -> None:
    nodes = "".join(f"  n{i}: {{tool: takes, with: {{seconds: 1, usd: '0.01'}}}}\n" for i in range(5))
    world = World.start(**ALONE)
    began = add_tools(world)
    saga = await start(world, f"name: w\nnodes:\n{nodes}", {}, "w")
    world.slow[call] = FOREVER
    await world.work([Message(str(SagaRef(TENANT, saga)), 1)])
    done = [event.node for event in world.events(saga) if isinstance(event, StepSucceeded)]
    assert sorted(done) == ["n0", "n1", "n2", "n3", "n4"]
    assert set(began.values()) == {1}
    assert deaths(world, saga) == 0
