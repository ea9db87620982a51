"""What happened at most once when something else goes wrong, too: answers misread, forks, other sagas, limits, deploys."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from pydantic import BaseModel

from baton import Context, Key, StepFailure, tool
from baton.core.effects.keys import KeyRule
from baton.core.log.events import StrategyChosen
from baton.core.log.questions import Answer
from baton.ports.records import IN_PROGRESS
from tests.kit.faults import Crash
from tests.kit.world import World
from tests.runtime.test_once_in_sagas import begin, view_of

HOUR = 3_600
INVOICE = Key.business("invoice", "invoice")
Act = Callable[[int], Awaitable[None]]


class Receipt(BaseModel):
    """What the service answers, as its client believes."""

    number: int


async def at_once(number: int) -> None:
    """Nothing goes wrong."""


async def misreads(number: int) -> None:
    """The money has moved; only its receipt looks different."""
    Receipt.model_validate({"number": "nonsense"})


def hangs(*numbers: int) -> Act:
    async def act(number: int) -> None:
        if number in numbers:
            await asyncio.sleep(60)

    return act


def bank(
    world: World, act: Act = at_once, *, key: KeyRule | None = None, timeout: str = "2s", verify: bool = False
) -> Counter[str]:
    """Tools that move money, `act` with the number of the call when it has moved. Returns what was moved by each."""
    moved: Counter[str] = Counter()
    more: dict[str, Any] = {"key": key} if key else {}

    @tool(
        "bill",
        effect="once",
        timeout=timeout,
        verify="find" if verify else "",
        registry=world.registry,
        **more,
    )
    async def bill(invoice: str, cents: int = 5) -> int:
        moved["bill"] += 1
        await act(moved["bill"])
        return cents

    @tool("transfer", effect="once", registry=world.registry)
    async def transfer(cents: int = 5) -> int:
        moved["transfer"] += 1
        return cents

    @tool("find", effect="pure", registry=world.registry)
    async def find(context: Context) -> dict[str, Any]:
        return {"happened": bool(moved["bill"]), "result": 7}

    world.tools = world.registry.specs()
    return moved


def bills(name: str = "w", given: str = "invoice: i", rest: str = "") -> str:
    return f"name: {name}\nnodes: {{a: {{tool: bill, with: {{{given}}}{rest}}}}}\noutput: ${{ctx.a.output}}"


async def ask_of(world: World, saga: str) -> str:
    (question,) = (await view_of(world, saga))["questions"]
    return str(question["id"])


async def test_a_tool_that_trips_over_the_answer_of_its_own_call_may_have_acted() -> None:
    world = World.start()
    moved = bank(world, misreads, key=INVOICE)
    for name in ("w", "again"):
        saga = await begin(world, bills(name))
        await asyncio.sleep(30)
        (question,) = (await view_of(world, saga))["questions"]
        assert "unknown_outcome" in question["message"]
    assert moved["bill"] == 1


async def test_a_fork_repeats_nothing_that_a_child_has_done() -> None:
    world = World.start()
    moved = bank(world)
    await world.service().register(bills("child"), json_only=False)
    nodes = "k: {workflow: child}, z: {tool: transfer, after: k}"
    saga = await begin(world, f"name: w\nnodes: {{{nodes}}}\noutput: ${{ctx.k.output}}")
    for _ in range(2):
        await world.settle()
        view = await view_of(world, saga)
        assert (view["status"], view["result"]) == ("completed", 5)
        await world.service().fork(saga, 1, "again")
    assert moved == {"bill": 1, "transfer": 1}


async def test_children_at_other_nodes_are_other_ones() -> None:
    world = World.start()
    moved = bank(world)
    await world.service().register(bills("child"), json_only=False)
    await begin(world, "name: w\nnodes: {k: {workflow: child}, l: {workflow: child}}")
    await world.settle()
    assert moved["bill"] == 2


async def test_what_a_tool_does_by_default_is_the_same_action_said_or_not() -> None:
    world = World.start()
    moved = bank(world, key=Key.saga())
    nodes = "a: {tool: bill, with: {invoice: i}}, b: {tool: bill, with: {cents: 5, invoice: i}, after: a}"
    await begin(world, f"name: w\nnodes: {{{nodes}}}")
    await world.settle()
    assert moved["bill"] == 1


@pytest.mark.parametrize("given", ["", "with: {account: main}"])
async def test_a_thing_that_is_named_by_default_is_named(given: str) -> None:
    world = World.start()
    moved: Counter[str] = Counter()

    @tool("close", effect="once", key=Key.business("account", "account"), registry=world.registry)
    async def close(account: str = "main") -> int:
        moved[account] += 1
        return moved[account]

    world.tools = world.registry.specs()
    saga = await begin(world, f"name: w\nnodes: {{a: {{tool: close, {given}}}}}")
    await world.settle()
    assert ((await view_of(world, saga))["status"], moved) == ("completed", {"main": 1})


async def test_an_answer_covers_no_attempt_without_a_question() -> None:
    """Two sagas are in doubt about one claim; the second try of the one is not what the other's person looked at."""
    world = World.start()
    moved = bank(world, hangs(1, 2), key=INVOICE)
    first = await begin(world, bills("x"))
    await asyncio.sleep(20)
    second = await begin(world, bills("y"))
    await asyncio.sleep(60)
    for number, saga in ((2, second), (2, first)):
        answer = Answer(ask=await ask_of(world, saga), action="retry")
        await world.service().answer(saga, answer, "")
        await asyncio.sleep(60)
        assert (moved["bill"], (await view_of(world, saga))["status"]) == (number, "suspended")


async def test_a_fork_stays_in_the_window_of_its_steps_turn() -> None:
    world = World.start()
    moved = bank(world, hangs(1), key=Key.window("1h"))
    saga = await begin(world, bills())
    await asyncio.sleep(2 * HOUR)
    await world.service().fork(saga, 2, "again")
    await asyncio.sleep(60)
    assert (moved["bill"], (await view_of(world, saga))["status"]) == (1, "suspended")


async def test_the_same_thing_with_other_parameters_is_a_mistake_and_no_result() -> None:
    world = World.start()
    moved = bank(world, key=INVOICE)
    await begin(world, bills("x", "invoice: i, cents: 5"))
    await world.settle()
    saga = await begin(world, bills("y", "invoice: i, cents: 500"))
    await world.settle()
    view = await view_of(world, saga)
    assert (view["status"], view["error"]["code"]) == ("failed", "idempotency_key_reused")
    assert moved["bill"] == 1


@pytest.mark.parametrize("code", ["invalid_input", "connection_failed"])
async def test_what_has_not_happened_can_be_done_with_other_parameters(code: str) -> None:
    """It was refused, or a person says that it did not come to it."""

    async def refuses_the_first(number: int) -> None:
        if number == 1:
            raise StepFailure(code, "no")

    world = World.start()
    moved = bank(world, refuses_the_first, key=INVOICE)
    may = "{may_change: cents}"
    rest = f", on_failure: {{any: {may}, unknown_outcome: {may}}}"
    saga = await begin(world, bills(rest=rest))
    await asyncio.sleep(60)
    answer = Answer(ask=await ask_of(world, saga), action="retry", arguments={"cents": 500})
    await world.service().answer(saga, answer, "")
    await world.settle()
    view = await view_of(world, saga)
    assert (view["status"], view["result"], moved["bill"]) == ("completed", 500, 2)


async def test_verify_is_not_called_before_a_call_that_was_cut_off_can_have_ended() -> None:
    world = World.start(timeout_s=60)
    moved: Counter[str] = Counter()

    @tool("look", effect="pure", registry=world.registry)
    async def look() -> dict[str, Any]:
        return {"happened": bool(moved["bill"]), "result": 7}

    @tool("bill", effect="once", verify="look", timeout="2s", registry=world.registry)
    async def bill() -> int:
        async def work() -> int:
            await asyncio.sleep(4)
            moved["bill"] += 1
            return 1

        return await asyncio.shield(asyncio.ensure_future(work()))

    world.tools = world.registry.specs()
    saga = await begin(world, "name: w\nnodes: {a: {tool: bill}}\noutput: ${ctx.a.output}")
    await world.settle()
    assert ((await view_of(world, saga))["result"], moved["bill"]) == (7, 1)


PAY = """
name: w
nodes:
  p: {tool: bill, with: {invoice: i}, limits: {wall_time: LIMIT}, catch: q}
  q: {tool: transfer}
"""


@pytest.mark.parametrize(
    ("worker_s", "timeout", "limit"),
    [
        pytest.param(300, "60s", "3s", id="while it runs"),
        pytest.param(6, "60s", "8s", id="while a person is asked about what was cut off"),
        pytest.param(60, "2s", "3s", id="before verify has looked"),
    ],
)
async def test_a_limit_that_is_reached_takes_no_other_way_while_it_is_not_known_what_happened(
    worker_s: float,
    timeout: str,  # noqa: ASYNC109  # of a document
    limit: str,
) -> None:
    world = World.start(timeout_s=worker_s)
    moved = bank(world, hangs(1), timeout=timeout)
    await begin(world, PAY.replace("LIMIT", limit))
    await world.settle(600)
    assert moved == {"bill": 1}


async def test_no_alternative_is_taken_while_a_doubt_is_not_cleared_up() -> None:
    world = World.start()
    moved = bank(world, hangs(1))
    saga = await begin(
        world, "name: w\nnodes: {p: {tool: bill, with: {invoice: i}, catch: q}, q: {tool: transfer}}"
    )
    await asyncio.sleep(600)
    assert (moved, (await view_of(world, saga))["status"]) == ({"bill": 1}, "suspended")
    looks = [event.look for event in world.events(saga) if isinstance(event, StrategyChosen)]
    assert looks[-1] is False
    (effect,) = world.effects.stored.values()
    assert effect.status == IN_PROGRESS


@pytest.mark.parametrize(
    ("nodes", "told"),
    [
        ("p: {tool: bill, with: {invoice: i}, limits: {wall_time: 3s}, catch: q}, q: {tool: transfer}", 0),
        (
            "p: {tool: bill, with: {invoice: i}}, s: {wait: {for: 3s}}, j: {value: 1, after: [p, s], join: any}",
            1,
        ),
    ],
)
async def test_what_a_dead_worker_has_begun_is_in_doubt(nodes: str, told: int) -> None:
    """Its invocation left nothing in the log but that it has died; the next one comes when the limit is over."""
    world = World.start()

    async def dies(number: int) -> None:
        if number == 1:
            next(iter(world.running.values())).is_dead = True
            raise Crash

    moved = bank(world, dies, timeout="60s")
    await begin(world, f"name: w\nnodes: {{{nodes}}}")
    await world.settle(600)
    assert moved == {"bill": 1}
    assert sum(notice.incident for notice in world.notices.said) == told
