"""An agent in the middle of a turn: forked, cancelled, out of time, no longer needed, or begun again in a loop."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from baton.core.log import events as ev
from baton.core.log.folding.workflow_limits import UNANSWERED
from tests.kit.corpus import start
from tests.kit.scripted import Scripted, asks_for, by_turn, says
from tests.kit.world import World
from tests.runtime.test_agents import of_kind

TABLES = """
name: w
nodes:
  find: {{agent: {{model: m, prompt: Find a table., tools: [add, work, take_table]}}{node}}}
output: ${{ctx.find.output}}
"""
THREE = asks_for(
    ("add", {"numbers": [1]}), ("work", {"n": 1, "seconds": 3}), ("take_table", {"table": "door"})
)


async def begun(world: World, text: str, seconds: float) -> str:
    saga = await start(world, text, {}, "w")
    await asyncio.sleep(seconds)
    return saga


async def ended(world: World, saga: str) -> dict[str, Any]:
    await world.settle()
    return await world.queries().show(saga)


def version_of(world: World, saga: str, item: str) -> int:
    """The entry in which a turn or a call has succeeded."""
    return next(
        entry.version
        for entry in world.entries(saga)
        for event in entry.events
        if isinstance(event, ev.StepSucceeded) and event.item == item
    )


# ---- forks


async def test_a_fork_in_the_middle_of_a_turn_keeps_what_is_done_and_does_the_rest_again_under_the_same_keys() -> (
    None
):
    world = World.start()
    books = world.books
    world.models = model = Scripted(by_turn(THREE, says("done")))
    saga = await start(world, TABLES.format(node=""), {}, "w")
    before = await ended(world, saga)
    cut = version_of(world, saga, "t1-0")
    assert cut < version_of(world, saga, "t1-2") < version_of(world, saga, "t1-1")
    await world.service().fork(saga, cut, "in the middle")
    shown = await ended(world, saga)
    assert (shown["status"], shown["result"]) == ("completed", "done")
    assert shown["branch"] == 1
    new = [event for entry in world.entries(saga) if entry.branch == 1 for event in entry.events]
    done = [event.item for event in new if isinstance(event, ev.StepSucceeded)]
    assert sorted(done) == ["t1-1", "t1-2", "t2"], "the answer and the first call are kept"
    (table,) = [event for event in new if isinstance(event, ev.StepSucceeded) and event.item == "t1-2"]
    assert table.recorded, "what may happen only once had happened"
    assert books.happened == ["book door"]
    assert len(books.asked) == 2
    assert len(set(books.asked)) == 1, "the same key"
    first, second, again = model.requests
    assert again.messages == second.messages
    assert first.messages == second.messages[:1]
    assert shown["spent_usd"] == pytest.approx(before["spent_usd"] + 0.0002)


async def test_a_fork_to_a_turn_under_way_asks_in_the_same_words_and_pays_for_it() -> None:
    world = World.start(timeout_s=200)
    world.models = model = Scripted(by_turn(THREE, says("done")), takes_s=40)
    saga = await begun(world, TABLES.format(node=", timeout: 1m"), 0.5)
    await world.service().fork(saga, 2, "while it is asked")
    shown = await ended(world, saga)
    assert shown["result"] == "done"
    first, again, _ = model.requests
    assert again.messages == first.messages
    (cut,) = of_kind(world, saga, ev.StepInterrupted)
    assert (cut.why, cut.cost) == ("stopped", cut.assumed), "who stopped listening pays all the same"
    assert cut.cost > 0


async def test_a_fork_behind_the_end_of_an_agent_leaves_it_as_it_was() -> None:
    text = TABLES.format(node="") + "  "
    text = text.replace("output:", "  last: {tool: work, with: {n: 7}, after: find}\noutput:")
    world = World.start()
    world.models = model = Scripted(by_turn(THREE, says("done")))
    saga = await start(world, text, {}, "w")
    await ended(world, saga)
    await world.service().fork(saga, version_of(world, saga, "t2"), "the last step again")
    shown = await ended(world, saga)
    assert (shown["result"], len(model.requests)) == ("done", 2)


# ---- ends from outside


@pytest.mark.parametrize(("seconds", "what"), [(0.5, "its request"), (41, "its calls")])
async def test_a_cancel_in_the_middle_of_a_turn_stops_it_and_what_was_under_way_is_paid(
    seconds: float, what: str
) -> None:
    world = World.start(timeout_s=200)
    books = world.books
    long = asks_for(("work", {"n": 1, "seconds": 25}))
    world.models = model = Scripted(by_turn(long, says("done")), takes_s=40)
    saga = await begun(world, TABLES.format(node=", timeout: 1m"), seconds)
    await world.service().cancel(saga, "enough", 0)
    shown = await ended(world, saga)
    assert shown["status"] == "cancelled"
    assert len(model.requests) == 1
    cut = [event for event in of_kind(world, saga, ev.StepInterrupted) if event.item == "t1"]
    assert [event.assumed > 0 for event in cut] == ([True] if seconds < 1 else [])
    assert books.done == {}
    sums = {account: world.budgets.read(account) for account in world.budgets.spent()}
    assert all(one.reserved == 0 for one in sums.values())
    assert sum(one.spent for one in sums.values()) == round(shown["spent_usd"] * 1_000_000)
    (line,) = (await world.queries().cost(saga))["models"]
    assert line["what"] == (UNANSWERED if seconds < 1 else "scripted")
    assert (line["node"], line["requests"], line["usd"]) == ("find", 1, shown["spent_usd"])


async def test_an_agent_that_has_no_more_time_fails_with_what_it_has_under_way() -> None:
    world = World.start()
    books = world.books
    world.models = model = Scripted(by_turn(THREE, says("done")), takes_s=2)
    node = ", limits: {wall_time: 3s}, on_failure: fail"
    saga = await start(world, TABLES.format(node=node), {}, "w")
    shown = await ended(world, saga)
    assert (shown["status"], shown["error"]["code"]) == ("failed", "limit_wall_time"), shown["error"]
    assert len(model.requests) == 1
    assert books.done == {}, "the call that takes 3 seconds is stopped"


async def test_a_saga_whose_deadline_comes_in_the_middle_of_a_turn_ends() -> None:
    world = World.start(timeout_s=120)
    world.models = model = Scripted(by_turn(THREE, says("done")), takes_s=60)
    text = TABLES.format(node=", timeout: 3m") + "limits: {wall_time: 10s}\n"
    saga = await start(world, text, {}, "w")
    shown = await ended(world, saga)
    assert (shown["status"], shown["error"]["code"]) == ("failed", "limit_wall_time"), shown["error"]
    assert len(model.requests) >= 1
    assert shown["spent_usd"] > 0, "the provider bills what was not heard to its end"


async def test_a_join_that_needs_no_more_stops_an_agent_and_counts_what_it_was_asking() -> None:
    text = """
name: w
nodes:
  quick: {tool: work, with: {n: 1}}
  find: {agent: {model: m, prompt: hi, tools: [add]}}
  first: {tool: work, with: {n: 2}, after: [quick, find], join: any}
output: ${ctx.first.output}
"""
    world = World.start()
    world.models = model = Scripted(by_turn(says("late")), takes_s=5)
    saga = await start(world, text, {}, "w")
    shown = await ended(world, saga)
    assert (shown["status"], shown["result"]) == ("completed", {"n": 3})
    assert len(model.requests) == 1
    (cut,) = of_kind(world, saga, ev.StepInterrupted)
    assert (cut.item, cut.why, cut.cost) == ("t1", "stopped", cut.assumed)
    (account,) = world.budgets.spent()
    assert world.budgets.read(account).held == cut.cost


# ---- a loop


async def test_an_agent_in_a_loop_begins_anew_in_each_round() -> None:
    text = """
name: w
nodes:
  find:
    agent: {model: m, prompt: hi, tools: [work]}
    loop: {while: {cel: 'loop.iteration < 1'}, max_iterations: 3}
  last: {tool: work, after: find, with: {n: 9}}
output: ${ctx.find.output}
"""
    world = World.start()
    books = world.books
    world.models = model = Scripted(by_turn(asks_for(("work", {"n": 1})), says("done")))
    saga = await start(world, text, {}, "w")
    shown = await ended(world, saga)
    assert shown["status"] == "completed", shown
    assert [len(request.messages) for request in model.requests] == [1, 3, 1, 3]
    done = [(event.iteration, event.item) for event in of_kind(world, saga, ev.StepSucceeded) if event.item]
    assert done == [
        ((0,), "t1"),
        ((0,), "t1-0"),
        ((0,), "t2"),
        ((1,), "t1"),
        ((1,), "t1-0"),
        ((1,), "t2"),
    ]
    assert len(set(books.asked)) == 3, "each round has keys of its own"
