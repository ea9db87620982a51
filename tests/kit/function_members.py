"""One function whose members are operations of any kind, in any scope of asyncio, and what the world outside does for them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from baton import Agent, WorkflowContext, workflow
from baton.core.log import events as ev
from baton.errors import NotAllowedNow
from baton.ports.models import ModelAnswer, ModelRequest
from baton.tools.define import Registry
from baton.tools.functions.define import document_of
from tests.kit.drawn_functions import KID
from tests.kit.external_work import carry_out
from tests.kit.scripted import Scripted, says
from tests.kit.simulated_models import attended, first_of
from tests.kit.virtual_time import until_something_happens

if TYPE_CHECKING:
    from tests.kit.world import World

KINDS = ("step", "sleep", "signal", "ask", "callback", "call", "start", "agent", "model")
SCOPES = ("gather", "group", "map", "wait", "late")
"""`late`: the time is over before the members end."""
ENDLESS = ("sleep", "signal", "ask", "callback", "call")
"""Kinds that have not ended when the time is over, whatever happens to their workers."""
CELLS = [(kind, scope) for kind in KINDS for scope in SCOPES if scope != "late" or kind in ENDLESS]
SLOW = "name: slow\nnodes: {a: {wait: {for: 30d}}}"


def add_members(registry: Registry) -> None:
    """Declare the function."""
    scout = Agent("scout", model="m", tools=["add"], output={"type": "object"})

    @workflow("members", registry=registry, tools=[scout, "work", "measure", "send_token"])
    async def members(kind: str, scope: str, context: WorkflowContext) -> list[Any]:
        """Two members of a kind, each with a step behind it, and a step of its own."""

        async def member(n: int, kind: str = kind) -> list[Any]:
            first = await _begun(kind, n, context, scout, is_endless=scope == "late")
            return [first, (await context.step("work", n * 10))["n"]]

        async def other() -> int:
            return int((await context.step("work", 5))["n"])

        found: list[Any] = []
        match scope:
            case "all":
                kinds = (one for one in KINDS if one != "start")  # that stays when the others are undone
                found += await asyncio.gather(*(member(n, one) for n, one in enumerate(kinds, 1)))
            case "gather":
                found += await asyncio.gather(member(1), other(), member(2))
            case "group":
                async with asyncio.TaskGroup() as group:
                    tasks = [group.create_task(one) for one in (member(1), other(), member(2))]
                found += [one.result() for one in tasks]
            case "map":
                found += await context.map(member, [1, 2, 3], concurrency=2)
            case "wait":
                waits = [asyncio.create_task(one) for one in (member(1), other(), member(2))]
                left = set(waits)
                while left:
                    _, left = await asyncio.wait(left, return_when=asyncio.FIRST_COMPLETED)
                found += [one.result() for one in waits]
            case "late":
                try:
                    async with asyncio.timeout(200):
                        await asyncio.gather(member(1), member(2))
                except TimeoutError:
                    found.append("late")
        return [*found, (await context.step("work", 7_000))["n"]]


async def _begun(kind: str, n: int, context: WorkflowContext, scout: Agent[Any], *, is_endless: bool) -> Any:
    match kind:
        case "step":
            return (await context.step("measure", "x" * n))["n"]
        case "sleep":
            return await context.sleep("30d" if is_endless else n)
        case "signal":
            return await context.signal("never" if is_endless else f"go{n}")
        case "ask":
            return (await context.ask(f"Is it {n}?", options=["yes", "no"], expires="30d"))["answer"]
        case "callback":
            made = context.callback(timeout="30d")
            await context.step("send_token", "silent" if is_endless else f"job {n}", made.token)
            return await made
        case "call":
            return await context.call("slow" if is_endless else "kid", {"n": n})
        case "start":
            return bool(await context.start("kid", {"n": n}))
        case "agent":
            return await context.agent(scout, f"for {n}")
    return await context.model("m", f"about {n}")


async def members(
    world: World, kind: str = "", scope: str = "all", *, start: Any, patiently: Callable[..., Any]
) -> str:
    """The function, by default with a member of each kind, and a world that signals, answers, reports and asks, unless its time is to be over."""

    def script(request: ModelRequest, _: int) -> ModelAnswer:
        said = str(request.messages[-1]["content"])
        return says(json.dumps({"found": said})) if request.tools else says(f"all {said}")

    world.models = Scripted(script)
    for document in (KID, SLOW):
        await patiently(world, lambda service, one=document: service.register(one, json_only=False))
    document = json.dumps(document_of(world.registry["members"]))
    saga = str(await start(world, document, {"kind": kind, "scope": scope}, "members"))
    if scope == "late":
        return saga
    if kind in ("signal", ""):
        world.spawn(_signals(world, saga, patiently))
    if kind in ("callback", ""):
        world.spawn(carry_out(world, saga, partial(patiently, world)))
    if kind in ("ask", ""):
        return await attended(world, saga, patiently, lambda ask: first_of(ask, "yes"))
    return saga


async def _signals(world: World, saga: str, patiently: Callable[..., Any]) -> None:
    sent = set[str]()
    while world.end(saga) is None:
        open_ = {one.signal for one in world.events(saga) if isinstance(one, ev.WaitOpened) and one.signal}
        for name in sorted(open_ - sent):
            with suppress(NotAllowedNow):
                await patiently(world, lambda service, one=name: service.signal(saga, one, one, one))
            sent.add(name)
        await until_something_happens(1)
