"""What once went wrong, or nearly: forks at the end, huge states, outages, deaths far apart, crowds, late keys."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from baton.core.log.events import ChildrenAbandoned, ChildReported, Parked, Revived, StepSucceeded
from baton.errors import InvalidDefinition, KeyReused, NotAllowedNow, Throttled, UserError
from baton.ports import Message, SagaRef
from tests.kit.corpus import start
from tests.kit.documents import FAILING, WAITING, chain_of
from tests.kit.faults import Crash
from tests.kit.sentences import Says
from tests.kit.world import TENANT, World

SIGNAL = "name: w\nnodes:\n  go: {wait: {signal: go}}\n  after: {tool: work, after: go, with: {n: 1}}\n"


async def parked_or_done(world: World, saga: str) -> dict[str, Any]:
    await world.settle()
    return await world.queries().show(saga)


async def test_a_fork_at_the_end_of_a_branch_is_refused_and_names_the_last_version_that_works(
    says: Says,
) -> None:
    world = World.start()
    saga = await start(world, FAILING, {}, "failing")
    view = await parked_or_done(world, saga)
    with says.raised(UserError):
        await world.service().fork(saga, view["version"], "again")
    await world.service().fork(saga, view["version"] - 1, "again")
    await asyncio.sleep(30)
    assert (await world.queries().show(saga))["status"] == "failed", "the bad step ran, and failed, again"


async def test_a_repeated_fork_with_the_same_key_is_one_fork() -> None:
    world = World.start()
    saga = await start(world, chain_of(3), {"n": 0}, "chain")
    await world.settle()
    for _ in range(2):
        await world.service().fork(saga, 2, "again", key="k")
    await world.settle()
    assert (await world.queries().show(saga))["branch"] == 1
    with pytest.raises(KeyReused):
        await world.service().fork(saga, 3, "again", key="k")


async def test_many_forks_of_forks_cost_a_reader_no_more_than_the_log() -> None:
    world = World.start()
    saga = await start(world, chain_of(3), {"n": 0}, "chain")
    await world.settle()
    for number in range(12):
        view = await world.queries().show(saga)
        await world.service().fork(saga, view["version"] - 1, "again", key=str(number))
        await asyncio.sleep(20)
    reads = 0
    real = world.log.read_tail

    def read_tail(ref: SagaRef, branch: int, after: int, limit: int | None = None) -> Any:
        nonlocal reads
        reads += 1
        return real(ref, branch, after, limit)

    any_log: Any = world.log
    any_log.read_tail = read_tail
    assert (await world.queries().show(saga))["branch"] == 12
    assert reads < 200


async def test_a_fork_cancels_the_children_that_its_cut_does_not_know() -> None:
    world = World.start()
    await world.service().register("name: slow\nnodes: {a: {wait: {for: 1h}}}", json_only=False)
    document = "name: parent\nnodes:\n  go: {wait: {signal: go}}\n  child: {workflow: slow, after: go}\n"
    saga = await start(world, document, {}, "parent")
    await asyncio.sleep(1)
    await world.service().signal(saga, "go", None, "k")
    await asyncio.sleep(5)
    child = (await world.queries().show(saga))["active"][0]["saga"]
    await world.service().fork(saga, 2, "before the child")
    await asyncio.sleep(5)
    assert (await world.queries().show(child))["status"] == "cancelled"
    assert any(isinstance(event, ChildrenAbandoned) for event in world.events(saga))
    await world.service().signal(saga, "go", None, "k")
    await asyncio.sleep(5)
    assert (await world.queries().show(saga))["active"][0]["saga"] != child, "the same key counts again"


async def test_a_state_too_large_for_a_snapshot_does_not_keep_a_saga_from_its_end() -> None:
    fills = "".join(f"  f{i}: {{tool: fill, with: {{size: 8000}}}}\n" for i in range(70))
    output = ", ".join(f"'${{ctx.f{i}.output.text}}'" for i in range(70))
    document = f"name: w\nnodes:\n{fills}  go: {{wait: {{for: 30s}}}}\noutput: [{output}]\n"
    world = World.start()
    saga = await start(world, document, {}, "w")
    view = await parked_or_done(world, saga)
    assert view["status"] == "completed"
    assert view["revivals"] == 0


async def test_an_outage_of_a_store_is_not_counted_as_a_step_that_kills_its_worker() -> None:
    world = World.start()
    real = world.blobs.put
    until = asyncio.get_running_loop().time() + 300

    def put(tenant: str, data: bytes, period: str = "") -> str:
        if asyncio.get_running_loop().time() < until and data.startswith(b'{"text"'):
            raise Throttled("slow down")
        return real(tenant, data, period)

    any_blobs: Any = world.blobs
    any_blobs.put = put
    document = "name: w\nnodes: {a: {tool: fill, with: {size: 20000}}}"
    view = await parked_or_done(world, await start(world, document, {}, "w"))
    assert (view["status"], view["revivals"]) == ("completed", 0)


async def test_deaths_far_apart_do_not_add_up() -> None:
    world = World.start(reconciler_gap_s=3_600)  # months of minutes would be 170 000 sweeps
    saga = await start(world, SIGNAL, {}, "w")
    ref = SagaRef(TENANT, saga)
    await asyncio.sleep(10)
    for month in range(4):
        head = world.log.read_head(ref)
        assert head is not None
        now = world.process("worker").clock.now()
        assert world.log.take(ref, f"dies-{month}", now + 7_000, head.epoch, now + 10_000) is not None
        await asyncio.sleep(30 * 86_400)
    assert (await world.queries().show(saga))["status"] == "waiting"
    deaths = [event for event in world.events(saga) if isinstance(event, Revived)]
    assert len(deaths) == 4


async def test_a_take_whose_answer_was_lost_still_counts_the_death_before_it() -> None:
    world = World.start()
    real = world.log.take

    def take(ref: SagaRef, owner: str, *lease: Any) -> Any:
        answer = real(ref, owner, *lease)
        if owner not in seen:
            seen.add(owner)
            raise Throttled("the answer is lost")
        return answer

    seen: set[str] = set()
    any_log: Any = world.log
    any_log.take = take
    saga = await start(world, "name: w\nnodes: {a: {tool: kill}}", {}, "w")
    view = await parked_or_done(world, saga)
    assert (view["status"], view["revivals"]) == ("parked", 3)


async def test_a_crowd_that_makes_progress_in_every_invocation_is_not_parked() -> None:
    from baton import tool

    world = World.start()
    two_at_once = asyncio.Semaphore(2)

    @tool("slow_client", registry=world.registry)
    async def slow_client(i: int) -> int:
        async with two_at_once:
            await asyncio.sleep(0.5)
        return i

    world.tools = world.registry.specs()
    nodes = "".join(f"  n{i}: {{tool: slow_client, with: {{i: {i}}}}}\n" for i in range(60))
    view = await parked_or_done(world, await start(world, f"name: w\nnodes:\n{nodes}", {}, "w"))
    assert view["status"] == "completed"
    assert view["interruptions"] > 0


async def test_what_was_done_beside_a_failure_is_in_the_log_however_much_it_is() -> None:
    nodes = "".join(f"  n{i}: {{tool: fill, with: {{size: {7_000 + i}}}}}\n" for i in range(60))
    world = World.start()
    books = world.books
    document = f"name: w\nnodes:\n{nodes}  bad: {{tool: odd, with: {{what: huge}}}}\n"
    saga = await start(world, document, {}, "w")
    view = await parked_or_done(world, saga)
    assert view["status"] == "failed"
    done = [event for event in world.events(saga) if isinstance(event, StepSucceeded)]
    assert len(done) == len(books.done) == 60
    largest = max(len(record.data) for record in world.log.read_tail(SagaRef(TENANT, saga), 0, 0))
    assert largest < 200_000


async def test_many_children_with_large_results_fit_into_several_entries() -> None:
    world = World.start(timeout_s=20)
    child = "name: child\nnodes: {a: {tool: fill, with: {size: 7000}}}\noutput: '${ctx.a.output}'"
    await world.service().register(child, json_only=False)
    nodes = "".join(f"  c{i}: {{workflow: child}}\n" for i in range(60))
    saga = await start(world, f"name: parent\nnodes:\n{nodes}", {}, "parent")
    assert (await parked_or_done(world, saga))["status"] == "completed"
    reported = [event for event in world.events(saga) if isinstance(event, ChildReported)]
    assert len(reported) == 60


async def test_sagas_that_start_each_other_end_at_a_depth() -> None:
    world = World.start()
    ping, pong = "name: ping\nnodes: {a: {workflow: pong}}", "name: pong\nnodes: {a: {workflow: ping}}"
    await world.service().register(pong, json_only=False)
    saga = await start(world, ping, {}, "ping")
    assert (await parked_or_done(world, saga))["status"] == "failed"
    assert len(world.log.heads()) <= 10
    with pytest.raises(InvalidDefinition, match="without end"):
        await world.service().register("name: me\nnodes: {a: {workflow: me}}", json_only=False)


async def test_a_signal_key_with_another_payload_is_refused_and_is_free_for_another_signal() -> None:
    world = World.start()
    two = "name: w\nnodes:\n  a: {wait: {signal: a}}\n  b: {wait: {signal: b}}\n"
    saga = await start(world, two, {}, "w")
    await world.service().signal(saga, "a", 1, "k")
    await world.service().signal(saga, "a", 1, "k")
    with pytest.raises(KeyReused):
        await world.service().signal(saga, "a", 2, "k")
    await world.service().signal(saga, "b", 2, "k")
    assert (await parked_or_done(world, saga))["status"] == "completed"


async def test_signals_that_no_wait_takes_are_bounded() -> None:
    world = World.start(stream_on=False, reconciler_on=False)
    saga = await start(world, WAITING, {}, "waiting")
    await asyncio.sleep(5)
    for number in range(100):
        await world.service().signal(saga, "answer", number, str(number))
    with pytest.raises(NotAllowedNow, match="no more are kept"):
        await world.service().signal(saga, "answer", 100, "100")


async def test_a_repeated_start_finds_its_saga_even_if_the_workflow_has_changed() -> None:
    world = World.start()
    await world.service().register(chain_of(1), json_only=False)
    first, _ = await world.service().start("chain", {"n": 0}, "key")
    stricter = chain_of(1) + "\ninput: {type: object, required: [more]}"
    await world.service().register(stricter, json_only=False)
    again, is_new = await world.service().start("chain", {"n": 0}, "key")
    assert (again["id"], is_new) == (first["id"], False)


async def test_a_yield_is_taken_up_at_once_by_a_worker_whose_clock_is_behind() -> None:
    world = World.start()
    real = world.process

    def process(role: str, *more: Any) -> Any:
        made = real(role, *more)
        made.clock.skew = -400 if role == "worker" and len(world.invocations) % 2 else 0
        return made

    any_world: Any = world
    any_world.process = process
    saga = await start(world, chain_of(12, 0.9), {"n": 0}, "chain")
    started = asyncio.get_running_loop().time()
    while world.end(saga) is None:
        await asyncio.sleep(0.1)
    assert asyncio.get_running_loop().time() - started < 20


async def test_one_store_call_that_hangs_costs_only_its_own_saga() -> None:
    world = World.start(stream_on=False, reconciler_on=False)
    await world.service().register(chain_of(2), json_only=False)
    sagas = [(await world.service().start("chain", {"n": 0}, str(i)))[0]["id"] for i in range(3)]
    real = world.process

    def process(role: str, *more: Any) -> Any:
        made = real(role, *more)
        offload = made.offload

        async def hanging(function: Any, /, *args: Any, **kwargs: Any) -> Any:
            mine = bool(args) and str(args[0]).endswith(sagas[0])
            if role == "worker" and len(world.invocations) == 1 and mine and function.__name__ == "append":
                await asyncio.sleep(60)
            return await offload(function, *args, **kwargs)

        any_made: Any = made
        any_made.offload = hanging
        return made

    any_world: Any = world
    any_world.process = process
    failed = await world.work([Message(str(SagaRef(TENANT, saga)), 1) for saga in sagas])
    assert [message.saga for message in failed] == [str(SagaRef(TENANT, sagas[0]))]
    assert all(world.end(saga) is not None for saga in sagas[1:])
    assert not any(isinstance(event, Parked) for saga in sagas for event in world.events(saga))


def test_a_crash_is_never_mistaken_for_a_fault() -> None:
    assert not issubclass(Crash, Exception)
