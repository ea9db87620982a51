"""Agents with a model in memory: CPU and writes of a turn, what a resume reads after 20 and 200 turns, and Lambda's time.

A turn is a request to the model and the calls of tools that its answer asks for. The model and the tools do nothing, so that
what is measured is the engine; in virtual time, a model that thinks shows what waiting for it costs.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from baton import tool
from baton.adapters.memory.store import MemoryBlobs
from baton.core.models.usage import Price, Usage
from baton.core.read.costs import BillingSettings as Assumed
from baton.ports import Appended, Message, Record, SagaRef, Wake
from baton.ports.models import CALLS, ModelAnswer, ModelCall, ModelRequest, Over
from baton.runtime.engine.parts import Engine
from baton.runtime.invocation.context import Deadline
from baton.runtime.log.history import History
from baton.runtime.worker.runner import YIELDED, Runner
from baton.tools.define import Registry
from benchmarks.calls import calls_of
from benchmarks.client import cpu_ms
from benchmarks.figures import Bench, Figure, Sample
from benchmarks.growth import CountingLog
from benchmarks.stage import invocation, memory_engine, run_all, sagas_of
from tests.kit.virtual_time import run_virtual
from tests.kit.world import World

AGENTS, TURNS, CALLS_A_TURN = 20, 10, 2
SHORT, LONG, WINDOW = 20, 200, 32  # turns behind a resume; resumes that are averaged
THINKS_S = 10.0
CALL_S = 0.2  # of a call that hands a request over, or fetches its answer
MEMORY_GB = Assumed().worker_mb / 1_024
DOCUMENT = """
name: agents
nodes:
  find: {agent: {model: m, prompt: Go., tools: [add], turns: 1000, calls: 10000, max_output: 100}}
output: "${ctx.find.output}"
"""
MESSAGES = 1 + CALLS_A_TURN  # of a turn: what the model said, and the results

USAGE = Usage(input=100, output=20)

REGISTRY = Registry()


@tool("add", registry=REGISTRY, effect="pure")
async def add(a: int, b: int) -> int:
    """The cheapest tool."""
    return a + b


class Model:
    """Asks for the same tool twice in each of so many turns, each time with other arguments; then it answers."""

    def __init__(self, turns: int, thinks_s: float = 0.0) -> None:
        self._answers = [*map(_asking, range(turns)), ModelAnswer(text="done", usage=USAGE, model="m")]
        self._thinks_s = thinks_s
        self.requests = 0
        self._handed: list[tuple[ModelRequest, float]] = []
        self.over: Callable[[str], None] = lambda _: None
        """Is told of a response that is over, as a webhook does."""

    async def answer(self, request: ModelRequest) -> ModelAnswer:
        self.requests += 1
        if self._thinks_s:
            await asyncio.sleep(self._thinks_s)
        return self._answers[(len(request.messages) - 1) // MESSAGES]

    async def submit(self, request: ModelRequest) -> str:
        self.requests += 1
        await asyncio.sleep(CALL_S)
        loop = asyncio.get_running_loop()
        response = f"resp_{len(self._handed)}"
        self._handed.append((request, loop.time() + self._thinks_s))
        loop.call_later(self._thinks_s, self.over, response)
        return response

    async def collect(self, model: str, response: str) -> ModelAnswer | None:
        await asyncio.sleep(CALL_S)
        request, at = self._handed[int(response.removeprefix("resp_"))]
        is_over = asyncio.get_running_loop().time() >= at
        return self._answers[(len(request.messages) - 1) // MESSAGES] if is_over else None

    async def cancel(self, model: str, response: str) -> None:
        raise AssertionError("none is cancelled")

    async def heard(self, profile: str, headers: Mapping[str, str], body: bytes) -> Over:
        request, _ = self._handed[int(body.decode().removeprefix("resp_"))]
        return Over(response=body.decode(), token=request.token)

    def price(self, model: str) -> Price:
        return Price(input=250_000, output=2_000_000)


def _asking(turn: int) -> ModelAnswer:
    calls = tuple(
        ModelCall(id=str(index), name="add", arguments=json.dumps({"a": turn, "b": index}))
        for index in range(CALLS_A_TURN)
    )
    return ModelAnswer(calls=calls, finish=CALLS, usage=USAGE, model="m")


class _Writes(CountingLog):
    """Counts what is appended, too."""

    def __init__(self) -> None:
        super().__init__()
        self.appended = 0

    def append(self, ref: SagaRef, record: Record, wake: Wake | None = None) -> Appended | None:
        self.appended += 1
        return super().append(ref, record, wake)


class _Reads(MemoryBlobs):
    """Counts what is read of blobs."""

    def __init__(self) -> None:
        super().__init__()
        self.gets = 0

    def get(self, tenant: str, ref: str) -> bytes:
        self.gets += 1
        return super().get(tenant, ref)


def _engine(model: Model, log: CountingLog, blobs: MemoryBlobs | None = None) -> Engine:
    return replace(memory_engine(log, REGISTRY, blobs), models=model)


async def _turns(agents: int, turns: int) -> Sample:
    """CPU, function calls and log writes of a turn, of agents side by side in one invocation."""
    model, log = Model(turns), _Writes()
    engine = _engine(model, log)
    refs = await sagas_of(engine, DOCUMENT, {}, agents)
    log.appended = 0
    before = time.process_time()
    await run_all(engine, refs)
    cpu = (time.process_time() - before) * 1_000
    again = Model(turns)
    engine = _engine(again, _Writes())
    calls = await calls_of(run_all(engine, await sagas_of(engine, DOCUMENT, {}, agents)))
    return {
        "cpu": cpu / model.requests,
        "calls": calls / again.requests,
        "writes": log.appended / model.requests,
    }


class _OneTurn(Deadline, frozen=True):
    """A deadline that is over after one turn, whatever the time."""

    steps = 0

    def fits(self, now: int, expected: float) -> bool:
        _OneTurn.steps += 1
        return _OneTurn.steps <= 1 + CALLS_A_TURN

    def is_fresh(self, now: int) -> bool:
        return False


async def _resumes(turns: int, window: int) -> Sample:
    """What the resumes before and after so many turns read, each followed by one turn."""
    model, log, blobs = Model(turns + window), _Writes(), _Reads()
    engine = _engine(model, log, blobs)
    (ref,) = await sagas_of(engine, DOCUMENT, {}, 1)
    found = dict.fromkeys(("entries", "bytes", "load", "blobs"), 0.0)
    ending, resumes = YIELDED, 0
    while ending == YIELDED:
        resumes += 1
        is_counted = model.requests >= turns
        if is_counted:
            found["load"] += await _load(engine, ref)
        log.entries = log.bytes = blobs.gets = 0
        parts = invocation(engine, f"i{resumes}")
        _OneTurn.steps = 0
        deadline = _OneTurn(parts.invocation.started, parts.invocation.deadline, 1_000)
        ending = await Runner(parts, deadline).run(Message(str(ref), 1), alone=True)
        if is_counted:
            found["entries"] += log.entries
            found["bytes"] += log.bytes
            found["blobs"] = max(found["blobs"], blobs.gets)
    counted = window + 1
    return {name: value if name == "blobs" else value / counted for name, value in found.items()}


async def _load(engine: Engine, ref: SagaRef, times: int = 5) -> float:
    """CPU milliseconds of reading and folding what a resume reads."""
    head = engine.log.read_head(ref)
    assert head is not None
    parts = invocation(engine, "load")
    before = time.process_time()
    for _ in range(times):
        await History(engine.log, engine.blobs, parts.context.call, ref).load(head)
    return (time.process_time() - before) * 1_000 / times


def _lambda_time(
    agents: int, turns: int, thinks_s: float, *, together: bool, background: bool = False
) -> float:
    """GB-seconds of a turn in virtual time, where agents wait for their models: ten in an invocation, or each in its own.

    With `background` no worker waits, and a webhook says when a model is done.
    """

    async def story() -> float:
        world = World(REGISTRY, timeout_s=60, batch=10 if together else 1, runaway=100_000)
        world.models = model = Model(turns, thinks_s)
        model.over = lambda response: world.spawn(world.service().announced("m", {}, response.encode()))
        world.switch_on()
        said = "background: true, model: m" if background else "model: m"
        await world.service().register(DOCUMENT.replace("model: m", said), json_only=False)
        begun = await asyncio.gather(*(world.service().start("agents", {}, "") for _ in range(agents)))
        sagas = [view["id"] for view, _ in begun]
        await world.settle()
        shown: Any = [(await world.queries().show(saga))["status"] for saga in sagas]
        if set(shown) != {"completed"}:
            raise RuntimeError(f"not all agents are done: {shown}")
        return world.billed_s * MEMORY_GB / model.requests

    return run_virtual(story())


def measure(
    agents: int = AGENTS, turns: int = TURNS, lengths: tuple[int, int] = (SHORT, LONG), window: int = WINDOW
) -> Sample:
    sample = dict(asyncio.run(_turns(agents, turns)))
    for length, name in zip(lengths, ("short", "long"), strict=True):
        found = asyncio.run(_resumes(length, window))
        sample |= {f"{what} {name}": value for what, value in found.items()}
    sample["lambda"] = _lambda_time(agents, turns, THINKS_S, together=False)
    sample["lambda together"] = _lambda_time(agents, turns, THINKS_S, together=True)
    sample["lambda background"] = _lambda_time(agents, turns, THINKS_S, together=False, background=True)
    sample["client"] = cpu_ms(10 * agents)
    return sample


_READ = {
    "entries": ("entries read by a resume", "", 1),
    "bytes": ("bytes read by a resume, snapshots included", "B", 0),
    "load": ("CPU of reading and folding them", "ms", 3),
}

BENCH = Bench(
    "agent",
    f"{AGENTS} agents, {TURNS} turns with {CALLS_A_TURN} calls each and the answer",
    {
        "cpu": Figure("engine CPU per turn, its tools included", "ms", 0.5, cpu=True),
        "calls": Figure("  function calls of Python for it", "", 2_050, digits=0),
        "client": Figure("CPU of the client, per request to a provider on loopback", "ms", cpu=True),
        "writes": Figure("log writes per turn, its tools included", "", 2, digits=2),
        **{
            f"{what} {name}": Figure(f"{says}, after {length} turns", unit, digits=digits, cpu=what == "load")
            for what, (says, unit, digits) in _READ.items()
            for name, length in (("short", SHORT), ("long", LONG))
        },
        **{
            f"{what} ratio": Figure(
                f"{says}: after {LONG} turns against {SHORT}",
                "×",
                1.5,
                digits=2,
                ratio=(f"{what} long", f"{what} short"),
            )
            for what, (says, _, _) in _READ.items()
        },
        "blobs short": Figure(f"blobs read by a turn, after {SHORT} turns, at most", "", 6, digits=0),
        "blobs long": Figure(f"blobs read by a turn, after {LONG} turns, at most", "", 9, digits=0),
        "lambda": Figure(
            f"Lambda's time for a turn whose model thinks for {THINKS_S:g} s, alone", "GB-s", digits=2
        ),
        "lambda together": Figure("  the same, ten agents in an invocation", "GB-s", digits=2),
        "lambda background": Figure(
            f"  the same in the background, {CALL_S:g} s for each call of the provider", "GB-s", 1, digits=2
        ),
    },
    measure,
    runs=5,
)
