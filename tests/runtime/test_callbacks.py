"""Work elsewhere, in virtual time: what it holds and costs while it is waited for, and what may be handed over only once."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from baton.core.log.events import CallbackHeartbeat, CallbackOpened, SignalReceived, StepSucceeded
from baton.core.log.folding.received import CallbackReport
from baton.core.log.questions import Answer
from baton.errors import CallbackOver, EngineFault, NotFound
from tests.kit.corpus import start
from tests.kit.process import REFUSES, Outage
from tests.kit.toolbox import Books
from tests.kit.world import World

DOCUMENT = """
name: w
retry: {max_attempts: 4, base: 1s}
on_failure: {any: ask}
nodes: {a: {tool: TOOL, with: {job: j}, callback: {timeout: 2h, heartbeat: 20m}}}
output: '${ctx.a.output}'
"""
DONE = CallbackReport(status="success", output="done")


async def handed(world: World, books: Books, tool: str = "hand_over") -> tuple[str, str]:
    """A saga whose work was handed over, and the token."""
    world.books = books
    saga = await start(world, DOCUMENT.replace("TOOL", tool), {}, "w")
    await asyncio.sleep(5)
    (token,) = books.jobs.all
    return saga, token


async def cost_of(world: World, saga: str) -> float:
    return float((await world.queries().cost(saga))["usd"]["total"])


async def view(world: World, saga: str) -> Any:
    return await world.queries().show(saga)


async def test_while_it_is_waited_for_nothing_runs_and_a_heartbeat_wakes_no_worker() -> None:
    world = World.start()
    books = world.books
    saga, token = await handed(world, books)
    (head,) = world.log.heads()
    assert (head.status, head.owner) == ("waiting", "")
    cost = await cost_of(world, saga)
    ran = len(world.invocations)
    for _ in range(5):
        await asyncio.sleep(15 * 60)
        before = len(world.invocations)
        await world.service().callback(token, CallbackReport(status="heartbeat"))
        await asyncio.sleep(5)
        assert len(world.invocations) == before
    assert sum(isinstance(one, CallbackHeartbeat) for one in world.events(saga)) == 5
    assert len(world.invocations) <= ran + 6, "one look for each heartbeat that fell due"
    await world.service().callback(token, DONE)
    await world.settle()
    assert (await view(world, saga))["result"] == "done"
    lasted = world.entries(saga)[-1].at - world.entries(saga)[0].at
    assert lasted > 75 * 60_000
    assert await cost_of(world, saga) < 2 * cost + 0.0001, "the time of the wait costs nothing"


async def test_a_process_that_cannot_reach_the_bucket_hears_heartbeats_and_failures() -> None:
    world = World.start()
    books = world.books
    saga, token = await handed(world, books)
    await asyncio.sleep(15 * 60)
    world.outages = (Outage("s3", REFUSES),)
    await world.service().callback(token, CallbackReport(status="heartbeat"))
    assert isinstance(world.events(saga)[-1], CallbackHeartbeat)
    with pytest.raises(EngineFault):
        await world.service().callback(token, DONE)  # its output may have a schema, which is in the bucket
    await world.service().callback(token, CallbackReport(status="failure", code="business_rule"))
    assert isinstance(world.events(saga)[-1], SignalReceived)


async def test_an_old_token_is_refused_and_a_token_of_another_deployment_is_none() -> None:
    world = World.start()
    books = world.books
    saga, token = await handed(world, books)
    await world.service().callback(token, CallbackReport(status="failure", code="server_error"))
    await asyncio.sleep(10)
    old, new = books.jobs.all
    assert old == token
    with pytest.raises(CallbackOver, match=r"has been completed"):
        await world.service().callback(old, CallbackReport(status="heartbeat"))
    await world.service().callback(new, DONE)
    await world.settle()
    assert (await view(world, saga))["result"] == "done"
    with pytest.raises(NotFound):
        await world.service(tenant="globex").callback(new, DONE)
    other = World(world.registry)
    with pytest.raises(NotFound):
        await other.service().callback(new, DONE)


async def test_every_process_of_a_deployment_has_one_key() -> None:
    world = World.start()
    from baton.runtime.people.links import Holder, token_for

    holder = Holder(tenant="acme", saga="s1", callback="0.a.1")

    async def token() -> str:
        parts = world.service()._parts
        return await token_for(parts.context, {}, holder)

    assert len(set(await asyncio.gather(*(token() for _ in range(20))))) == 1


async def test_what_may_happen_only_once_is_handed_over_again_when_it_has_failed_elsewhere() -> None:
    world = World.start()
    books = world.books
    saga, token = await handed(world, books, "entrust")
    assert books.happened == ["entrust j"]
    await world.service().callback(token, CallbackReport(status="failure", code="server_error"))
    await asyncio.sleep(10)
    assert books.happened == ["entrust j"] * 2, "that it failed there is certain"
    _, new = books.jobs.all
    await world.service().callback(new, DONE)
    await world.settle()
    assert (await view(world, saga))["result"] == "done"
    assert len({deed.key for deed in world.deeds}) == 2, "another act has another key"


@pytest.mark.parametrize(("action", "acts"), [("use", 1), ("retry", 2)])
async def test_of_what_may_happen_only_once_and_is_silent_a_person_says_what_became(
    action: str, acts: int
) -> None:
    world = World.start()
    books = world.books
    saga, token = await handed(world, books, "entrust")
    await asyncio.sleep(21 * 60)
    shown = await view(world, saga)
    assert (shown["status"], books.happened) == ("suspended", ["entrust j"])
    (question,) = shown["questions"]
    assert "unknown_outcome" in question["message"]
    with pytest.raises(CallbackOver, match="unknown_outcome"):
        await world.service().callback(token, DONE)
    output: dict[str, Any] = {"output": "by hand"} if action == "use" else {}
    await world.service().answer(saga, Answer(ask=question["id"], action=action, **output), "")
    await asyncio.sleep(30)
    assert len(books.happened) == acts
    if action == "retry":
        await world.service().callback(list(books.jobs.all)[-1], DONE)
    await world.settle()
    assert (await view(world, saga))["result"] == ("done" if action == "retry" else "by hand")


async def test_a_worker_that_dies_while_it_hands_over_repeats_it_with_the_same_token() -> None:
    world = World.start()
    books = world.books
    world.books = books
    world.timeout_s = 6
    document = DOCUMENT.replace("TOOL", "hand_over").replace("job: j", "job: j, seconds: 5")
    saga = await start(world, document, {}, "w")
    while not books.jobs.all:
        await asyncio.sleep(0.05)
    world.running[saga, "a"].is_dead = True
    (token,) = books.jobs.all
    await asyncio.sleep(60)
    assert list(books.jobs.all) == [token], "the same work"
    await world.service().callback(token, DONE)
    await world.settle()
    events = world.events(saga)
    assert sum(isinstance(one, CallbackOpened) for one in events) <= 1
    assert [one.callback for one in events if isinstance(one, StepSucceeded)] == ["0.a.1"]
