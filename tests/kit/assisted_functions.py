"""Functions that ask agents and models, and a durable handler of AWS: each beside the document that does the same."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from baton import Agent, WorkflowContext, workflow
from baton.compat.aws_durable import DurableContext, Duration, StepContext, durable_execution
from baton.ports.models import ModelAnswer, ModelRequest
from baton.tools.define import Registry
from baton.tools.functions.define import document_of
from tests.kit.function_members import members
from tests.kit.process import RUNS_IN
from tests.kit.scripted import Scripted, asks_for, by_turn, says
from tests.kit.simulated_models import uncorrected

if TYPE_CHECKING:
    from tests.kit.toolbox import Books
    from tests.kit.world import World

ASSISTED = """
name: assisted-document
nodes:
  before: {tool: work, with: {n: 4}}
  helper:
    agent: {model: m, instructions: Find a seat., prompt: 'For ${ctx.before.output.n}.', tools: [add, work, lend], turns: 4}
    after: before
    timeout: 20s
    output_schema: {type: object, required: [seat], properties: {seat: {type: string}}}
  note:
    map: {over: [1, 2, 3], concurrency: 2}
    model: {name: m, prompt: 'n ${item}'}
    after: before
    timeout: 20s
    output_schema: {type: object, required: [of], properties: {of: {type: string}}}
  last: {tool: work, after: [helper, note], join: all, with: {n: 50}}
output: {seat: '${ctx.helper.output.seat}', notes: '${ctx.note.output}', last: '${ctx.last.output.n}'}
"""
_TURNS = by_turn(
    asks_for(("add", {"numbers": [1, 2]}), ("work", {"n": 1}), ("lend", {"what": "seat"})),
    asks_for(("work", {"n": 2}), ("nonsense", {})),
    says(json.dumps({"seat": "by the window"})),
)


@dataclass
class Seat:
    """Answer of the agent."""

    seat: str


@dataclass
class Note:
    """Answer of a model."""

    of: str


def add_assisted(registry: Registry, books: Books) -> None:
    """Declare both."""
    helper = Agent(
        "helper", model="m", instructions="Find a seat.", tools=["add", "work", "lend"], turns=4, timeout="20s", output=Seat
    )  # fmt: skip

    @workflow("assisted", registry=registry, tools=[helper, "work"])
    async def assisted(context: WorkflowContext) -> dict[str, Any]:
        """An agent and models at once."""
        before = await context.step("work", 4)

        async def note(n: int) -> str:
            return (await context.model("m", f"n {n}", schema=Note, timeout="20s")).of

        found, notes = await asyncio.gather(
            context.agent(helper, f"For {before['n']}."), context.map(note, [1, 2, 3], concurrency=2)
        )
        last = await context.step("work", 50)
        return {"seat": found.seat, "notes": [{"of": one} for one in notes], "last": last["n"]}

    def do(n: int) -> Callable[[StepContext], int]:
        def work(_: StepContext) -> int:
            if (process := RUNS_IN.get()) is not None:
                process.check()
            books.act(f"durable {n}", ["durable", n])
            return n + 1

        return work

    @durable_execution(name="durable-child", registry=registry)
    def child(event: Any, context: DurableContext) -> int:
        """Two steps."""
        return context.step(do(event)) + context.step(do(event + 1))

    @durable_execution(name="durable", registry=registry)
    def durable(event: Any, context: DurableContext) -> dict[str, Any]:
        """Steps, a wait, branches, another workflow and a callback, in plain code."""
        first = context.step(do(event["first"]))
        context.wait(Duration.from_seconds(40))
        many = context.map([10, 20, 30], lambda inner, n, *_: inner.step(do(n)) + inner.step(do(n + 1)))
        child = context.invoke("durable-child", 5)
        return {"first": first, "many": many.get_results(), "child": child}


def assisting() -> Scripted:
    """Answer by the messages alone; a note is wrong until that is said."""

    def script(request: ModelRequest, number: int) -> ModelAnswer:
        if request.tools:
            return _TURNS(request, number)
        (about,) = (one["content"] for one in uncorrected(request.messages))
        is_told = len(request.messages) > 1
        return says(json.dumps({"of": about}) if is_told or about != "n 2" else "two")

    return Scripted(script)


async def assisted(world: World, *, start: Any, patiently: Any, form: str = "assisted") -> str:
    """An agent, and models at once; as a function, or as a document."""
    world.models = assisting()
    document = ASSISTED if form != "assisted" else json.dumps(document_of(world.registry[form]))
    return str(await start(world, document, {}, form))


async def durable(world: World, *, start: Any, patiently: Any) -> str:
    """A handler of AWS's durable functions."""
    child, document = (json.dumps(document_of(world.registry[name])) for name in ("durable-child", "durable"))
    await patiently(world, lambda service: service.register(child, json_only=False))
    return str(await start(world, document, {"event": {"first": 1}}, "durable"))


OF_ASSISTED: Mapping[str, Any] = {"assisted": assisted, "durable": durable, "members": members}
