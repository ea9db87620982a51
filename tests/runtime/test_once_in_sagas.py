"""Tools that act only once, in whole sagas: what becomes of a saga when the outcome of its step is unknown."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import pytest

from baton import Context, Key, StepFailure, tool
from baton.core.effects.keys import KeyRule
from baton.core.log.folding.fold import fold
from baton.core.log.questions import Answer, unclosed_questions
from baton.core.log.state import State
from baton.ports.records import COMPLETED, IN_PROGRESS
from tests.kit.corpus import start
from tests.kit.faults import CRASH_AFTER, CRASH_BEFORE, Crash, Plan
from tests.kit.virtual_time import run_virtual
from tests.kit.world import World

BOOK = "{tool: table.book, with: {at: '19:30'}}"
DINNER = f"name: w\nnodes: {{book: {BOOK}}}\noutput: ${{ctx.book.output}}"


@dataclass
class Restaurant:
    """Books tables. `fate`: what the next bookings come to: an error before or after it, or the end of the process."""

    fate: list[Any] = field(default_factory=list)
    booked: Counter[str] = field(default_factory=Counter)
    keys: list[str] = field(default_factory=list)
    seconds: float = 0.1

    def open(
        self, world: World, *, verify: bool = False, key: KeyRule | None = None, timeout: str = "10s"
    ) -> None:
        more: dict[str, Any] = {"verify": "table.find"} if verify else {}
        if key is not None:
            more["key"] = key

        @tool("table.find", effect="pure", registry=world.registry)
        async def find(context: Context) -> dict[str, Any]:
            happened = bool(self.booked[context.idempotency_key])
            return {"happened": True, "result": 1} if happened else {"happened": False}

        @tool("table.book", effect="once", timeout=timeout, registry=world.registry, **more)
        async def book(at: str, context: Context) -> int:
            self.keys.append(context.idempotency_key)
            fate = self.fate.pop(0) if self.fate else None
            if isinstance(fate, Exception):
                raise fate
            await asyncio.sleep(self.seconds)
            self.booked[context.idempotency_key] += 1
            if fate == "dies":
                world.running[context.saga, context.node].is_dead = True
                raise Crash
            if fate == "hangs":
                await asyncio.sleep(60)
            return self.booked.total()

        world.tools = world.registry.specs()


async def begin(world: World, document: str, key: str = "") -> str:
    """The id of a new saga of the document."""
    await world.service().register(document, json_only=False)
    view, _ = await world.service().start(document.split()[1], {}, key)
    return str(view["id"])


async def view_of(world: World, saga: str) -> dict[str, Any]:
    return await world.queries().show(saga)


async def question(world: World, saga: str) -> str:
    """The id of the only question that is open."""
    state = State()
    for entry in world.entries(saga):
        state = fold(state, entry)
    ((_, ask),) = unclosed_questions(state)
    return ask.id


async def test_twenty_equal_dinners_of_one_user_are_twenty_bookings() -> None:
    world = World.start()
    restaurant = Restaurant()
    restaurant.open(world)
    sagas = [await begin(world, DINNER) for n in range(20)]
    await world.settle()
    results = [(await view_of(world, saga))["result"] for saga in sagas]
    assert sorted(results) == list(range(1, 21))
    assert restaurant.booked.total() == len(restaurant.booked) == 20


async def test_what_a_wider_key_makes_one_happens_once_for_all_sagas() -> None:
    world = World.start()
    restaurant = Restaurant(seconds=2)
    restaurant.open(world, key=Key.user("at"))
    sagas = [await begin(world, DINNER) for n in range(20)]
    await world.settle()
    assert {(await view_of(world, saga))["result"] for saga in sagas} == {1}
    assert restaurant.booked.total() == 1


async def test_once_in_a_window_is_once_in_each() -> None:
    world = World.start()
    restaurant = Restaurant()
    restaurant.open(world, key=Key.window("1h"))
    for _ in range(3):
        saga = await begin(world, DINNER)
        await world.settle()
        assert (await view_of(world, saga))["status"] == "completed"
        await asyncio.sleep(1_300)
    assert 1 <= restaurant.booked.total() <= 2
    await asyncio.sleep(3_600)
    before = restaurant.booked.total()
    await begin(world, DINNER)
    await world.settle()
    assert restaurant.booked.total() == before + 1


async def test_the_window_is_that_of_the_steps_turn() -> None:
    world = World.start()
    restaurant = Restaurant()
    restaurant.open(world, key=Key.window("1h"))
    await begin(world, DINNER)
    late = f"name: late\nnodes: {{rest: {{wait: {{for: 2h}}}}, book: {{after: rest, {BOOK[1:]}}}"
    await begin(world, late)
    await world.settle(10_000)
    assert restaurant.booked.total() == 2


AGAIN = f"book: {BOOK}, again: {{tool: table.book, with: {{at: '19:30:00'}}, after: book}}"
TWICE = f"name: w\nnodes: {{{AGAIN}}}\noutput: ['${{ctx.book.output}}', '${{ctx.again.output}}']"


@pytest.mark.parametrize(("key", "results"), [(None, [1, 2]), (Key.node(), [1, 2]), (Key.saga(), [1, 1])])
async def test_the_same_action_at_another_node_is_done_again_unless_the_tool_says_once_a_saga(
    key: KeyRule | None, results: list[int]
) -> None:
    world = World.start()
    restaurant = Restaurant()
    restaurant.open(world, key=key)
    saga = await begin(world, TWICE)
    await world.settle()
    assert (await view_of(world, saga))["result"] == results
    assert restaurant.booked.total() == results[-1]


async def test_each_round_of_a_loop_acts() -> None:
    world = World.start()
    restaurant = Restaurant()
    restaurant.open(world)
    loop = "loop: {while: output < 3, max_iterations: 5}"
    saga = await begin(
        world, f"name: w\nnodes: {{book: {BOOK[:-1]}, {loop}}}}}\noutput: ${{ctx.book.output}}"
    )
    await world.settle()
    assert (await view_of(world, saga))["result"] == 3
    assert restaurant.booked.total() == len(restaurant.booked) == 3


@pytest.mark.parametrize("fate", [StepFailure("rate_limited", "429"), "dies"])
async def test_a_retry_a_revival_and_a_fork_of_either_node_act_no_third_time(fate: Any) -> None:
    world = World.start()
    restaurant = Restaurant([None, fate])
    restaurant.open(world, verify=True)
    saga = await begin(world, TWICE)
    for version in (1, 2):
        await world.settle()
        assert (await view_of(world, saga))["status"] == "completed"
        assert sorted(restaurant.booked.values()) == [1, 1]
        await world.service().fork(saga, version, "again")
    await world.settle()
    assert sorted(restaurant.booked.values()) == [1, 1]


@pytest.mark.parametrize("fate", ["dies", "hangs", StepFailure("connection_failed", "reset by peer")])
async def test_a_tool_that_can_be_asked_is_asked_and_it_happens_once(fate: Any) -> None:
    world = World.start()
    restaurant = Restaurant([fate])
    restaurant.open(world, verify=True)
    saga = await begin(world, DINNER)
    await world.settle()
    view = await view_of(world, saga)
    assert (view["status"], view["result"]) == ("completed", 1)
    assert restaurant.booked.total() == 1


@pytest.mark.parametrize("fate", ["dies", "hangs"])
@pytest.mark.parametrize("action", ["use", "retry", "fail"])
async def test_without_it_a_person_is_asked_and_decides(fate: str, action: str) -> None:
    world = World.start()
    restaurant = Restaurant([fate])
    restaurant.open(world)
    saga = await begin(world, DINNER)
    await world.settle(600)
    (effect,) = world.effects.stored.values()
    assert effect.status == IN_PROGRESS
    assert restaurant.booked.total() == 1
    more: dict[str, Any] = {"output": 7} if action == "use" else {}
    await world.service().answer(saga, Answer(ask=await question(world, saga), action=action, **more), "")
    await world.settle()
    view = await view_of(world, saga)
    expected = {"use": ("completed", 7), "retry": ("completed", 2), "fail": ("failed", None)}
    assert (view["status"], view["result"]) == expected[action]
    assert restaurant.booked.total() == (2 if action == "retry" else 1)
    (effect,) = world.effects.stored.values()
    assert effect.status == (IN_PROGRESS if action == "fail" else COMPLETED)


async def test_what_a_person_said_holds_for_one_attempt() -> None:
    world = World.start()
    restaurant = Restaurant(["dies", "dies"])
    restaurant.open(world)
    saga = await begin(world, DINNER)
    await world.settle(600)
    first = await question(world, saga)
    await world.service().answer(saga, Answer(ask=first, action="retry"), "")
    await world.settle(600)
    assert restaurant.booked.total() == 2
    assert await question(world, saga) != first, "asked anew, and not simply done a third time"


@pytest.mark.parametrize("key", [None, Key.window("1s")])
async def test_what_was_refused_is_tried_again_with_the_same_key(key: KeyRule | None) -> None:
    world = World.start()
    restaurant = Restaurant([StepFailure("rate_limited", "429"), StepFailure("rate_limited", "429")])
    restaurant.open(world, key=key)
    saga = await begin(world, DINNER)
    await world.settle()
    assert (await view_of(world, saga))["result"] == 1
    assert (len(restaurant.keys), len(set(restaurant.keys))) == (3, 1)


async def test_a_slow_store_does_not_make_a_doubt_of_what_was_done_in_time() -> None:
    world = World.start()
    restaurant = Restaurant(seconds=1.9)
    restaurant.open(world, timeout="2s")
    world.slow["change"] = 0.5
    saga = await begin(world, DINNER)
    await world.settle()
    assert (await view_of(world, saga))["result"] == 1
    assert len(restaurant.keys) == 1


async def test_who_waits_in_vain_for_another_is_told_that_it_is_in_progress() -> None:
    world = World.start()
    restaurant = Restaurant(seconds=5)
    restaurant.open(world, key=Key.user("at"))
    first = await begin(world, DINNER)
    await asyncio.sleep(1)
    hasty = "name: hasty\non_failure: [rollback]\nnodes: {book: {tool: table.book, with: {at: '19:30'}, timeout: 2s}}"
    second = await begin(world, hasty)
    await world.settle()
    assert (await view_of(world, second))["error"]["code"] == "in_progress"
    view = await view_of(world, first)
    assert (view["status"], view["result"]) == ("completed", 1)


@pytest.mark.parametrize("verify", [True, False])
def test_a_crash_at_any_write_is_never_a_second_booking(verify: bool) -> None:
    for fate in (CRASH_BEFORE, CRASH_AFTER):
        for number in range(1, 9):

            async def crashes_at(number: int, fate: str) -> None:
                world = World.start(plan=Plan({number: fate}))
                restaurant = Restaurant()
                restaurant.open(world, verify=verify)
                saga = await start(world, DINNER, {}, "w")
                await world.settle(600)
                view = await view_of(world, saga)
                assert restaurant.booked.total() <= 1
                if verify:
                    assert (view["status"], view["result"]) == ("completed", 1)

            run_virtual(crashes_at(number, fate))
