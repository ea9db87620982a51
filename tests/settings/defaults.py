"""What is measured of the settings that stand in for what a document leaves open. No tests here."""

from __future__ import annotations

import asyncio

from baton import StepFailure, tool
from baton.core.log.events import CancelRequested
from baton.core.log.folding.fold import fold
from baton.core.log.questions import unclosed_questions
from baton.core.log.state import State
from tests.kit.scripted import Scripted, in_turn
from tests.kit.scripted import says as answers
from tests.kit.world import World

DOWN = "name: w\non_failure: fail\nnodes: {a: {tool: fetch}}"
HOUR = 3_600_000


def declare(world: World) -> list[str]:
    """Tools that fail; the calls of them."""
    calls: list[str] = []

    @tool("fetch", registry=world.registry)
    async def fetch() -> None:
        calls.append("fetch")
        raise StepFailure("down", "nothing answers", kind="transient")

    @tool("look", registry=world.registry)
    async def look() -> None:
        raise StepFailure("file_not_found", "it is not there", kind="recoverable")

    @tool("give", undo="take", registry=world.registry)
    async def give() -> None: ...

    @tool("take", registry=world.registry)
    async def take() -> None:
        calls.append("take")
        raise StepFailure("down", "nothing answers", kind="transient")

    for number in range(5):

        @tool(f"other{number}", instead_of="look", hints=["alternative_path"], registry=world.registry)
        async def other() -> None:
            calls.append("other")
            raise StepFailure("file_not_found", "nor there", kind="recoverable")

    world.tools = world.registry.specs()
    return calls


async def begin(world: World, document: str, seconds: float = 3_600) -> str:
    registered = await world.service().register(document, json_only=False)
    view, _ = await world.service().start(registered.definition.name, {}, "")
    await asyncio.sleep(seconds)
    return str(view["id"])


async def attempts_of_a_step(world: World) -> int:
    calls = declare(world)
    await begin(world, DOWN)
    return len(calls)


async def attempts_of_an_inverse(world: World) -> int:
    calls = declare(world)
    saga = await begin(world, "name: w\nnodes: {a: {tool: give}}", 10)
    wanted = CancelRequested(reason="no", by="", at=0, grace_ms=0, undo=True)
    await world.service().rollback(saga, wanted)
    await asyncio.sleep(3_600)
    return len(calls)


async def hours_of_questions(world: World) -> tuple[int, ...]:
    """Of a `human` node, one that says two days, a failed step, and an approval."""
    declare(world)
    document = """
name: w
nodes:
  a: {human: {type: approval, title: May I?}}
  b: {human: {type: approval, title: May I?, expires: 2d}}
  c: {tool: look}
  d: {tool: give, requires_approval: true}
"""
    saga = await begin(world, document, 60)
    state = State()
    for entry in world.entries(saga):
        state = fold(state, entry)
    return tuple(
        sorted(round((ask.expires_at - ask.asked_at) / HOUR) for _, ask in unclosed_questions(state))
    )


async def fates_after_an_hour(world: World) -> tuple[str, str]:
    """Of a saga whose document says nothing, and of one that may take two hours."""
    waits = "nodes: {a: {wait: {signal: go}}}"
    sagas = await begin(world, f"name: w\n{waits}", 1), await begin(world, f"name: v\ntimeout: 2h\n{waits}")
    first, second = [(await world.queries().show(saga))["status"] for saga in sagas]
    return str(first), str(second)


async def other_ways_of_a_step(world: World) -> int:
    calls = declare(world)
    await begin(world, "name: w\non_failure: fail\nnodes: {a: {tool: look}}", 600)
    return calls.count("other")


async def is_a_model_asked_about_a_failed_step(world: World) -> bool:
    declare(world)
    world.models = models = Scripted(in_turn(answers("{}")))
    document = (
        "name: w\nnodes: {a: {tool: fetch, on_failure: {any: [replan]}, replan: {model: m, tools: [give]}}}"
    )
    await begin(world, document, 60)
    return bool(models.requests)
