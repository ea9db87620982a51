"""Scenarios of workflows that are Python functions, what must hold of their logs, and bugs that break it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from baton import StepFailure, Update, WorkflowContext, workflow
from baton.core.log import events as ev
from baton.core.log.slots import owner_of
from baton.errors import InvalidInput, NotAllowedNow
from baton.tools.define import Registry
from baton.tools.functions.define import document_of
from tests.kit.documents import chain_of
from tests.kit.external_work import carry_out
from tests.kit.shared_budget import resume_parked

if TYPE_CHECKING:
    from tests.kit.world import World

FUNCTIONS = "functions"
UPDATES, MOVES, PATIENCE = "updates", 4, 400
PLACE = {"type": "object", "properties": {"to": {"type": "integer"}}, "required": ["to"]}
DEPLOYED = {"code": 1}
HEARTBEATS = {"lively": "5m", "silent": "10s"}  # the store may be out of order for a minute
SLOW = "name: slow\nnodes: {a: {wait: {for: 5h}}}"


def add_functions(registry: Registry) -> None:  # noqa: C901  five functions
    """Declare the workflows. What each returns is the same whatever went wrong."""

    @workflow("in-turn", registry=registry)
    async def in_turn(first: int, context: WorkflowContext) -> dict[str, Any]:
        """One after the other: large values, money, a time, an effect that happens once, and a failure that is caught."""
        one = await context.step("work", first)
        text = (await context.step("fill", 30_000))["text"]
        size = await context.step("measure", text)
        stamp = await context.step("measure", f"{context.now().timestamp() * 1_000:.0f} {context.uuid()}")
        await context.step("purchase", 0.3)
        await context.sleep(40)
        rented = await context.step("rent", f"stall {context.random()}"[:7])
        caught = ""
        try:
            await context.step("refuse")
        except StepFailure as error:
            caught = error.code
        last = await context.step("work", one["n"] + size["n"])
        return {"last": last, "caught": caught, "stamp": stamp, "is_rented": bool(rented["receipt"])}

    @workflow("side-by-side", registry=registry)
    async def side_by_side(count: int, context: WorkflowContext) -> dict[str, Any]:
        """Steps together, items by turns, and groups in which one fails. In which order they end is of use only to it."""
        order = []

        async def wave(n: int) -> int:
            found = await context.step("work", n, seconds=(7 * n) % 5 / 10)
            order.append(str(n))
            return int(found["n"])

        waves = await asyncio.gather(*map(wave, range(count)))
        length = await context.step("measure", "-".join(order))

        async def item(n: int) -> int:
            await context.sleep(n)
            return int((await context.step("work", n * 10))["n"])

        items = await context.map(item, range(1, 5), concurrency=2)
        failed: list[str] = []
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(item(5_000))
                group.create_task(_refused(context))
        except* StepFailure as found:
            failed = [error.code for error in found.exceptions if isinstance(error, StepFailure)]
        return {"waves": waves, "length": length, "items": items, "failed": failed}

    @workflow("races", registry=registry)
    async def races(context: WorkflowContext) -> dict[str, Any]:
        """The first of two counts, and the other is stopped: a signal against a time, and steps against a time."""
        told: list[Any] = [await context.step("work", 1)]
        for patience in (5, 7_200):
            try:
                async with asyncio.timeout(patience):
                    told.append(await context.signal("answer"))
            except TimeoutError:
                told.append("too late")
        fast, slow = context.sleep(3), context.signal("never")
        done, left = await asyncio.wait({fast, slow}, return_when=asyncio.FIRST_COMPLETED)
        told.append(fast in done)
        for one in left:
            one.cancel()
        try:
            await asyncio.wait_for(context.step("meter", 30), 2)
        except TimeoutError:
            told.append("stopped")
        told.append(await context.step("work", 2))
        return {"told": told}

    @workflow("with-children", registry=registry)
    async def with_children(context: WorkflowContext) -> dict[str, Any]:
        """Children, one of which takes too long and is left."""
        first = await context.call("chain", {"n": 10})
        other = context.call("slow")
        more = [*await asyncio.gather(context.call("chain", {"n": 20}), context.step("work", 3))]
        try:
            await asyncio.wait_for(other, 60)
        except TimeoutError:
            more.append("left")
        return {"first": first, "more": more}

    @workflow("lends-in-turn", registry=registry, on_failure="rollback")
    async def lends_in_turn(context: WorkflowContext) -> None:
        """Loans are taken back in reverse, when its last step fails."""
        await context.step("lend", "hall")
        await asyncio.gather(context.step("pledge", "chairs"), context.step("lend", "tent"))
        await context.call("lent-child")
        await context.step("refuses")

    @workflow("begins-another", registry=registry)
    async def begins_another(context: WorkflowContext) -> None:
        """It is rolled back as soon as the saga that it has started exists, which goes on alone."""
        await context.step("work", 1)
        await context.start("chain", {"n": 10})
        await context.sleep("10m")

    @workflow("changes", registry=registry, tools=["work", "measure"])
    async def changes(context: WorkflowContext) -> str:
        """Other code is deployed while it sleeps."""
        await (context.step("work", 1) if DEPLOYED["code"] == 1 else context.step("measure", "1"))
        await context.sleep("10m")
        return str(await context.step("measure", "done"))

    @workflow("promises", registry=registry)
    async def promises(context: WorkflowContext) -> dict[str, Any]:
        """Callbacks of its own: reported at once and with signs of life, never, and with a failure; and a saga that goes on alone."""

        async def told(job: str) -> Any:
            made = context.callback(timeout="10m", heartbeat=HEARTBEATS.get(job))
            await context.step("send_token", job, made.token)
            try:
                return await made
            except TimeoutError:
                return "silent"
            except StepFailure as failure:
                return failure.code

        await context.start("chain", {"n": 30})
        jobs = ("quick", "lively", "silent", "broken")
        return dict(zip(jobs, await context.map(told, jobs), strict=True))

    @workflow("moves", registry=registry)
    async def moves(context: WorkflowContext) -> list[int]:
        """Updates, two at a time: each is answered by what a step has made of it."""
        seen: list[int] = []

        async def reply(asked: Update[Any], made: Mapping[str, Any]) -> None:
            await asked.answer({"to": asked.value["to"], "n": made["n"]})

        while len(seen) < MOVES:
            pair = [await context.update("move", PLACE) for _ in range(2)]
            seen += [one.value["to"] for one in pair]
            made = await asyncio.gather(*(context.step("work", one.value["to"]) for one in pair))
            await asyncio.gather(*map(reply, pair, made))
        return sorted(seen)

    async def _refused(context: WorkflowContext) -> None:
        await context.sleep(1)
        await context.step("refuses")


async def _begin(world: World, name: str, given: Any, start: Any) -> str:
    return str(await start(world, json.dumps(document_of(world.registry[name])), given, name))


async def in_turn(world: World, *, start: Any, patiently: Any) -> str:
    """Steps one after the other."""
    return await _begin(world, "in-turn", {"first": 1}, start)


async def side_by_side(world: World, *, start: Any, patiently: Any) -> str:
    """Steps at once."""
    return await _begin(world, "side-by-side", {"count": 6}, start)


async def races(world: World, *, start: Any, patiently: Any) -> str:
    """A signal that comes between two times."""
    saga = await _begin(world, "races", {}, start)
    while (
        sum(isinstance(event, ev.WaitOpened) and event.signal == "answer" for event in world.events(saga)) < 2
    ):
        await asyncio.sleep(20)
        await resume_parked(world, patiently)
    await patiently(world, lambda service: service.signal(saga, "answer", {"yes": True}, "sig-1"))
    return saga


async def with_children(world: World, *, start: Any, patiently: Any) -> str:
    """A function that starts other workflows."""
    for document in (chain_of(2), SLOW):
        await patiently(world, lambda service, one=document: service.register(one, json_only=False))
    return await _begin(world, "with-children", {}, start)


async def promises(world: World, *, start: Any, patiently: Any) -> str:
    """A function whose tokens others have."""
    await patiently(world, lambda service: service.register(chain_of(2), json_only=False))
    saga = await _begin(world, "promises", {}, start)
    await carry_out(world, saga, partial(patiently, world))
    return saga


async def moves(world: World, *, start: Any, patiently: Any) -> str:
    """Senders that repeat their updates until they have answers, and one whose updates do not fit."""
    saga = await _begin(world, "moves", {}, start)

    async def send(key: str, to: Any) -> None:
        for _ in range(PATIENCE):
            sent = await patiently(world, lambda service: service.signal(saga, "move", {"to": to}, key))
            if sent["outcome"] in ("answered", "ended"):
                return
            await resume_parked(world, patiently)
            await asyncio.sleep(3)

    async def misfit(key: str) -> None:
        with suppress(InvalidInput, NotAllowedNow):
            await send(key, "nowhere")

    for to in range(0, MOVES, 2):
        await asyncio.gather(misfit(f"bad-{to}"), send(f"move-{to}", to), send(f"move-{to + 1}", to + 1))
    await send("move-0", 0)
    return saga


def of_updates(world: World) -> Iterator[str]:
    """A sender hears one answer to its update, however often it asks, and that to its own."""
    sent = {(one.saga, one.name, one.key): one.payload for one in world.acknowledged if one.what == "signal"}
    replies: dict[tuple[str, str, str], Any] = {}
    for one in world.acknowledged:
        if one.what != "reply":
            continue
        key = one.saga, one.name, one.key
        if replies.setdefault(key, one.payload) != one.payload:
            yield f"{key} was answered by {replies[key]} and by {one.payload}"
        if one.payload["to"] != sent[key]["to"]:
            yield f"{key} asked for {sent[key]}, and the answer is {one.payload}"


async def lends_in_turn(world: World, *, start: Any, patiently: Any) -> str:
    """A function whose effects are undone."""
    from tests.kit.undoable_tools import CHILD

    await patiently(world, lambda service: service.register(CHILD, json_only=False))
    return await _begin(world, "lends-in-turn", {}, start)


async def begins_another(world: World, *, start: Any, patiently: Any) -> str:
    """A function that is rolled back, and a saga that goes on alone."""
    await patiently(world, lambda service: service.register(chain_of(2), json_only=False))
    saga = await _begin(world, "begins-another", {}, start)
    while len(world.log.heads()) == 1:
        await asyncio.sleep(0.002)
    await patiently(world, lambda service: service.cancel(saga, "", 0, undo=True))
    return saga


async def changes(world: World, *, start: Any, patiently: Any) -> str:
    """A function with other code than that with which its saga began; it is parked, and does nothing."""
    DEPLOYED["code"] = 1
    saga = await _begin(world, "changes", {}, start)
    while not any(isinstance(event, ev.WaitOpened) for event in world.events(saga)):
        await asyncio.sleep(20)
        await resume_parked(world, patiently)
    DEPLOYED["code"] = 2
    return saga


def of_functions(logs: Mapping[str, list[ev.Entry]]) -> Iterator[str]:
    """A function asks for each operation once, and hears what has ended: once, in the order of the log, and all of it."""
    for saga, entries in logs.items():
        asked = set[str]()
        ended: dict[str, list[str]] = {}
        for event in (event for entry in entries for event in entry.events):
            if isinstance(event, ev.Forked):
                break  # what was asked for after the cut is asked for again
            if isinstance(event, ev.FunctionBegan):
                ended[event.slot] = []
            elif isinstance(event, ev.Settles) and event.item and (owner := owner_of(event.slot)) in ended:
                ended[owner].append(event.item)
            elif isinstance(event, ev.OperationsBegan | ev.FunctionClosed):
                known = ended.pop(event.slot) if isinstance(event, ev.FunctionClosed) else ended[event.slot]
                if list(event.heard) != known:
                    yield f"{saga}: it has heard {list(event.heard)}, and what has ended is {known}"
                known.clear()
            if isinstance(event, ev.OperationsBegan):
                again = [one.item for one in event.operations if one.item in asked]
                yield from (f"{saga}: it asks for {item} twice" for item in again)
                asked |= {one.item for one in event.operations}


OF_FUNCTIONS: Mapping[str, Any] = {
    "in-turn": in_turn,
    "side-by-side": side_by_side,
    "races": races,
    "with-children": with_children,
    "promises": promises,
    "moves": moves,
}
