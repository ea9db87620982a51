"""Programs drawn from a seed, which run as a workflow function and, for an oracle, by plain asyncio over plain functions."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from baton import StepFailure, WorkflowContext, workflow
from baton.tools.define import Registry
from baton.tools.functions.define import document_of
from tests.kit.external_work import carry_out

if TYPE_CHECKING:
    from tests.kit.world import World

Program = list[Any]
PATIENCE_S, LONG_S = 60, 1_000_000
"""No fault lasts so long as the second: what takes it has lost each race."""
KID = """
name: kid
input: {type: object}
nodes: {a: {tool: work, with: {n: "${input.n}"}}}
output: "${ctx.a.output.n}"
"""


async def play(program: Program, at: Any) -> Any:  # noqa: C901  a case for each kind
    """Run a program over `at`, which has the operations."""
    kind, *parts = program
    match kind:
        case "work":
            return (await at.step("work", parts[0], seconds=parts[1]))["n"]
        case "lend":
            return len(await at.step("lend", parts[0]))
        case "child":
            return await at.call("kid", {"n": parts[0]})
        case "promise":
            made = at.callback()
            await at.step("send_token", f"job {parts[0]}", made.token)
            return await made
        case "start":
            return bool(await at.start("kid", {"n": parts[0]}))
        case "fail":
            await at.step("refuses")
        case "sleep":
            await asyncio.sleep(parts[0])
        case "turn":
            return [await play(one, at) for one in parts]
        case "gather":
            return await asyncio.gather(*(play(one, at) for one in parts))
        case "group":
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(play(one, at)) for one in parts]
            return [one.result() for one in tasks]
        case "each":
            return await _each(parts, at)
        case "race":
            return await _race(parts, at)
        case "late":
            try:
                async with asyncio.timeout(PATIENCE_S):
                    await play(["turn", ["sleep", LONG_S], parts[0]], at)
            except TimeoutError:
                return ["late", await play(parts[1], at)]
        case "try":
            try:
                await play(["turn", parts[0], ["fail"]], at)
            except StepFailure as error:
                return [error.code, await play(parts[1], at)]
    return None


async def _each(parts: list[Any], at: Any) -> Any:
    """Items of a list, so many at a time."""
    places = asyncio.Semaphore(parts[0])

    async def one(part: Program) -> Any:
        async with places:
            return await play(part, at)

    return await asyncio.gather(*map(one, parts[1:]))


async def _race(parts: list[Any], at: Any) -> Any:
    """The first part against others that take too long."""
    tasks = [asyncio.ensure_future(play(parts[0], at))]
    tasks += [asyncio.ensure_future(play(["turn", ["sleep", LONG_S], one], at)) for one in parts[1:]]
    done, left = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for one in left:
        one.cancel()
    gone = await asyncio.gather(*left, return_exceptions=True)
    return [[one.result() for one in done], [type(one).__name__ for one in gone]]


def add_drawn(registry: Registry) -> None:
    @workflow(
        "drawn", registry=registry, on_failure="rollback", tools=["work", "lend", "refuses", "send_token"]
    )
    async def drawn(program: list[Any], context: WorkflowContext) -> Any:
        """A program that its input tells."""
        return await play(program, context)


# ---- drawn -------------------------------------------------------------------------------------------------------------


def draw(seed: int) -> Program:
    """Any program there is; each fourth one fails in the end, so that all of it is undone."""
    source = random.Random(f"program {seed}")
    counter = iter(range(1, 10_000))
    parts = [_drawn(source, counter.__next__, 3) for _ in range(source.randint(1, 4))]
    return ["turn", *parts, *([["lend", "last"], ["fail"]] if seed % 4 == 3 else [])]


def _drawn(source: random.Random, number: Callable[[], int], depth: int) -> Program:
    simple = ["work", "work", "work", "lend", "child", "sleep", "promise", "start"]
    kind = source.choice(
        simple if not depth else [*simple, *["turn", "gather", "group", "each", "race", "late", "try"]]
    )
    inner = partial(_drawn, source, number, depth - 1)
    match kind:
        case "promise":
            return [kind, number()]
        case "work":
            return [kind, number() * 100, source.choice([0.1, 0.4, 1.5])]
        case "child" | "lend" | "start":
            return [kind, f"loan {number()}" if kind == "lend" else number() * 100]
        case "sleep":
            return [kind, source.choice([0, 0.5, 3, 200])]
        case "each":
            return [kind, source.randint(1, 3), *(inner() for _ in range(source.randint(1, 4)))]
        case "late" | "try":
            return [kind, inner(), inner()]
        case _:
            return [kind, *(inner() for _ in range(source.randint(1, 3)))]


# ---- the oracle --------------------------------------------------------------------------------------------------------


@dataclass
class _Promise:
    """A future with a token, as a callback has."""

    made: asyncio.Future[Any]
    token: str

    def __await__(self) -> Any:
        return self.made.__await__()


@dataclass
class Plain:
    """Plain functions under the names of the operations, and what they have done."""

    done: list[Any] = field(default_factory=list)
    promises: list[asyncio.Future[Any]] = field(default_factory=list)
    started: list[asyncio.Task[Any]] = field(default_factory=list)

    def callback(self) -> Any:
        self.promises.append(asyncio.get_running_loop().create_future())
        return _Promise(self.promises[-1], str(len(self.promises)))

    async def step(self, tool: str, what: Any = None, token: str = "", seconds: float = 0.2) -> Any:
        await asyncio.sleep(seconds)
        if tool == "refuses":
            raise StepFailure("sold_out", "there is none", kind="permanent")
        if tool == "send_token":
            self.promises[int(token) - 1].set_result(f"{what} is done")
            return None
        self.done.append(what)
        return {"n": what + 1} if tool == "work" else {"id": what}

    async def call(self, workflow: str, given: Any) -> Any:
        return (await self.step("work", given["n"]))["n"]

    async def start(self, workflow: str, given: Any) -> bool:
        self.started.append(asyncio.create_task(self.call(workflow, given)))
        return True


async def plainly(program: Program) -> tuple[str, Any, list[Any]]:
    """Outcome of a program by plain asyncio: its status, its result, and what it has done."""
    at = Plain()
    try:
        result = await play(program, at)
    except StepFailure:
        await asyncio.gather(*at.started)
        return "rolled_back", None, sorted(at.done, key=str)
    await asyncio.gather(*at.started)
    return "completed", result, sorted(at.done, key=str)


def done_in(world: World) -> list[Any]:
    """Effects that were done in a world, once for each key."""
    acted = [what[1] for what in world.books.done.values()]
    lent = [what.partition(" ")[2] for what in world.books.loans.ever.values()]
    return sorted([*acted, *lent], key=str)


async def drawn(world: World, program: Program, *, start: Any, patiently: Any) -> str:
    """A program as a workflow function."""
    await patiently(world, lambda service: service.register(KID, json_only=False))
    document = json.dumps(document_of(world.registry["drawn"]))
    saga = str(await start(world, document, {"program": program}, "drawn"))
    await carry_out(world, saga, partial(patiently, world))
    return saga
