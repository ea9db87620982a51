"""Work elsewhere in the simulation: what hands it over, what carries it out, and what is said of it, early, late and twice.

The workers elsewhere are no processes of the engine: nothing stops them. They speak to the API as any client does.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from baton import Context, tool
from baton.core.log.folding.received import FAILURE, HEARTBEAT, SUCCESS, CallbackReport
from baton.errors import CallbackOver, EngineFault, NotAllowedNow
from baton.runtime.requests.service import Service
from baton.tools.define import Registry
from tests.kit.faults import Crash
from tests.kit.process import pause
from tests.kit.virtual_time import until_something_happens

if TYPE_CHECKING:
    from tests.kit.world import World

HANDED = """
name: handed
on_failure: {any: fail}
retry: {max_attempts: 6, base: 1s, max_delay: 1s}
nodes:
  quick: {tool: hand_over, with: {job: quick, seconds: 1}, callback: 5m}
  lively: {tool: hand_over, with: {job: lively}, callback: {timeout: 10m, heartbeat: 10s}}
  silent: {tool: hand_over, with: {job: silent}, callback: {timeout: 10m, heartbeat: 10s}}
  broken: {tool: hand_over, with: {job: broken}, callback: 5m}
  trusted: {tool: entrust, with: {job: trusted}, callback: 1h, after: [quick, broken]}
output:
  quick: '${ctx.quick.output}'
  lively: '${ctx.lively.output}'
  silent: '${ctx.silent.output}'
  broken: '${ctx.broken.output}'
  trusted: '${ctx.trusted.output}'
"""
FAILURES = ("service_unavailable", "rate_limited", "out_of_paper", "never_heard_of", "business_rule")
"""Codes that work elsewhere fails with where it may."""
BEAT_S = 4
Say = Callable[[Callable[[Service], Awaitable[Any]]], Awaitable[Any]]


@dataclass(frozen=True)
class Job:
    """One piece of work elsewhere. `number`: how many of its kind there were with it."""

    kind: str
    number: int
    token: str


class Jobs:
    """What was handed over. A token names it: shown again, it is the same work."""

    def __init__(self) -> None:
        self.all: dict[str, Job] = {}
        self._count: Counter[str] = Counter()

    def begin(self, kind: str, token: str) -> None:
        if token not in self.all:
            self._count[kind] += 1
            self.all[token] = Job(kind, self._count[kind], token)


def add_handing(registry: Registry, books: Any) -> None:
    """The tools that hand work over: one that may run again, and one that may act only once."""

    @tool("hand_over", registry=registry, timeout="10s")
    async def hand_over(job: str, context: Context, seconds: float = 0.2) -> None:
        await pause(0.1)
        books.jobs.begin(job, context.callback_token)
        await pause(seconds)

    @tool("send_token", registry=registry, timeout="10s")
    async def send_token(job: str, token: str) -> None:
        await pause(0.1)
        books.jobs.begin(job, token)

    @tool("entrust", registry=registry, effect="once", verify="find_entrusted", timeout="10s")
    async def entrust(job: str, context: Context) -> None:
        await pause(0.1, stands_still=False)
        books.do(f"entrust {job}")
        books.jobs.begin(job, context.callback_token)
        await pause(0.2)

    @tool("find_entrusted", registry=registry, effect="pure")
    async def find_entrusted(job: str) -> dict[str, Any]:
        return {"happened": f"entrust {job}" in books.happened, "result": None}


async def handed(world: World, start: Callable[..., Awaitable[str]], patiently: Callable[..., Any]) -> str:
    """Work elsewhere that is quick, slow, silent, broken, and that may be done only once."""
    saga = await start(world, HANDED, {}, "handed")
    await carry_out(world, saga, partial(patiently, world))
    return saga


class Luck:
    """What befalls work elsewhere and what it says, drawn from the seeds of its world; with seed 0 nothing does.

    What it says comes late, and more than once. Where steps fail at random, work elsewhere does, too.
    """

    def __init__(self, world: World) -> None:
        troubles = world.troubles
        self._draw = random.Random(f"elsewhere {world.seed} {troubles and troubles.seed}")
        self._is_mixed = bool(world.seed or troubles)
        self._may_fail = troubles is not None

    async def is_on_its_way(self) -> None:
        if self._is_mixed:
            await asyncio.sleep(self._draw.choice([0, 0, 0.3, 1.5, 3]))

    def copies(self) -> int:
        """How often one thing is said, all at once."""
        return self._draw.choice([1, 1, 1, 2, 3]) if self._is_mixed else 1

    def failure(self, job: Job) -> str:
        """The code that it fails with; empty if it does not. What was entrusted is done from the first."""
        if not self._may_fail or job.kind == "trusted" or self._draw.random() > 0.2:
            return ""
        return self._draw.choice(FAILURES)


async def carry_out(world: World, saga: str, say: Say, known: Collection[str] = ()) -> None:
    """All the work of a saga but that of `known` tokens, until it ends and every worker has said what it has to say."""
    luck, attending = Luck(world), asyncio.create_task(_resume(world, saga))
    begun: dict[str, asyncio.Task[None]] = {}
    while world.end(saga) is None or not all(task.done() for task in begun.values()):
        for job in list(world.books.jobs.all.values()):
            if job.token not in begun and job.token not in known:
                begun[job.token] = asyncio.create_task(_work(job, world.books.jobs, say, luck))
        await until_something_happens(0.05)
    attending.cancel()
    await asyncio.gather(*begun.values())


async def _resume(world: World, saga: str) -> None:
    """A person for whom three deaths in a row park the saga. Where steps fail at random, another one does that (people.py)."""
    while world.troubles is None:
        await asyncio.sleep(15)
        if any(head.ref.id == saga and head.status == "parked" for head in world.log.heads()):
            with suppress(Crash, EngineFault, NotAllowedNow):
                await world.service().resume(saga)


async def _work(job: Job, jobs: Jobs, say: Say, luck: Luck) -> None:
    told = Telling(job, say, luck)
    if code := luck.failure(job):
        await told.tell(status=FAILURE, code=code, message="Out of luck.")
    elif job.kind == "silent" and job.number == 1:
        for _ in range(120):  # until it was given up, however long the store is out of order
            if any(other.kind == job.kind and other.number > 1 for other in jobs.all.values()):
                break
            await asyncio.sleep(5)
        await told.tell(status=SUCCESS, output="stale")
    elif job.kind == "broken" and job.number == 1:
        await asyncio.sleep(2)
        await told.tell(status=FAILURE, code="service_unavailable", message="Out of order.")
    elif job.kind == "lively":
        for _ in range(7):
            await asyncio.sleep(BEAT_S)
            await told.tell(status=HEARTBEAT)
        await told.report()
    else:
        if job.kind == "trusted":
            await asyncio.sleep(3)
        await asyncio.gather(told.report(), told.report())
        with suppress(NotAllowedNow):  # something else than before
            await told.tell(status=SUCCESS, output="another")


@dataclass(frozen=True)
class Telling:
    """What one piece of work says of itself."""

    job: Job
    say: Say
    luck: Luck

    async def tell(self, **said: Any) -> None:
        await self.luck.is_on_its_way()
        await asyncio.gather(*(self._tell_once(CallbackReport(**said)) for _ in range(self.luck.copies())))

    async def report(self) -> None:
        """That it is done. It gives signs of life until that is heard, for which the API may need a service that is out of order."""
        kind = self.job.kind
        beating = asyncio.create_task(self._beat())
        await self.tell(
            status=SUCCESS,
            output={"receipt": f"entrust {kind}"} if kind == "trusted" else f"{kind} is done",
        )
        beating.cancel()

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(BEAT_S)
            await self._tell_once(CallbackReport(status=HEARTBEAT))

    async def _tell_once(self, said: CallbackReport) -> None:
        with suppress(CallbackOver):  # it is not waited for any more
            await self.say(lambda service: service.callback(self.job.token, said))
