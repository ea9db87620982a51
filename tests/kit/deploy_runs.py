"""Deploys under sagas that are parked for a defect: code that mends nothing, versions that take turns, and code that mends.

Each process has the code that was deployed when its environment was made; while a deploy rolls, that is one of two.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from baton import tool
from baton.adapters.memory.outside import MemoryEntities
from baton.core.limits import Limits
from baton.core.log import events as ev
from baton.ports import PARKED, Message, Release, SagaRef
from baton.runtime.engine.parts import Engine
from baton.runtime.invocation.context import Invocation, InvocationContext, Tenure
from baton.runtime.log.lease import Lease, Leases
from baton.runtime.mending import DeployedBuild
from baton.runtime.reconcile import Reconciler
from tests.kit import crowds
from tests.kit.corpus import patiently
from tests.kit.crowds import MINUTE_S, Crowd
from tests.kit.faults import Plan
from tests.kit.process import RUNS_IN, Process
from tests.kit.toolbox import Books, make_registry
from tests.kit.virtual_time import run_virtual
from tests.kit.world import TENANT, World

MENDED, ONCE, TOLD, DONE = "mended", "once", "told", "done"
"""The oracles: code that mends reaches each saga in time; each step is tried once with each code; people are told once; what was
paid stays paid."""
WORKFLOW = "name: w\nnodes: {pay: {tool: shop.pay}, mail: {tool: shop.mail, after: pay}}"
BAD = frozenset({"b1", "b2"})
ROLLING_S, AFTER_S = 300, 1_800
SAGAS = 4
LATE_MS = 240_000
LOOK_MS = Limits().parked_look_ms


@dataclass
class Deploys(World):
    """A world whose code changes. `builds`: one of them is that of a new environment."""

    builds: tuple[str, ...] = ("b1",)
    turns: random.Random = field(default_factory=lambda: random.Random("turns"))
    deployed_at: int = 0
    refunded: int = 0

    def process(self, role: str, version: str = "") -> Process:
        """While a deploy rolls, a new environment as often as one that idles."""
        idle = self._idle.get(role, [])
        self.turns.shuffle(idle)
        if len(self.builds) == 1 or self.turns.random() < 0.5:
            return super().process(role, version)
        self._idle[role] = []
        try:
            return super().process(role, version)
        finally:
            self._idle[role] = idle

    def build_of(self, process: Process) -> str:
        found = getattr(process.home, "build", "")
        if not found:
            found = process.home.build = self.turns.choice(self.builds)  # type: ignore[attr-defined]  # only here
        return str(found)

    def _new_engine(self, process: Process) -> Engine:
        self.limits = replace(self.limits, build=self.build_of(process))
        return super()._new_engine(process)

    def _deployment(self, process: Process) -> DeployedBuild | None:
        home: Any = process.home
        if not hasattr(home, "deployment"):
            home.deployment = DeployedBuild(
                self.store.entities, process.clock, process.offload, self.build_of(process)
            )
        home.deployment._offload = process.offload
        return home.deployment  # type: ignore[no-any-return]

    async def deploy(self, build: str) -> None:
        """Both versions take turns for a while; then no process of the one before is left."""
        self.builds = (*self.builds, build)
        await asyncio.sleep(ROLLING_S)
        self.builds = (build,)
        for homes in self._idle.values():
            homes[:] = [home for home in homes if getattr(home, "build", build) == build]


def mending(seed: int, **faults: Any) -> tuple[list[str], Plan]:
    """What is broken when a deploy mends nothing, and the next one mends; and what was called meanwhile."""
    plan = Plan(**faults)

    async def main() -> list[str]:
        world = Deploys(make_registry(Books()), plan=plan, seed=seed, is_warm=True)
        world.turns = random.Random(f"turns {seed}")
        world.limits = replace(Limits(), build="b1")
        _add_tools(world)
        world.switch_on()
        sagas = [await _start(world, number) for number in range(SAGAS)]
        await asyncio.sleep(AFTER_S)
        world.deployed_at = world.process("clock").clock.now()
        rolling = asyncio.create_task(world.deploy("b2"))
        await asyncio.sleep(ROLLING_S // 2)
        # They may be parked by a worker of the code before.
        sagas += [await _start(world, number) for number in range(SAGAS, 2 * SAGAS)]
        while not rolling.done():
            await _poke(world, sagas[0])
            await asyncio.sleep(20)
        await asyncio.sleep(AFTER_S)
        await world.deploy("b3")
        await asyncio.sleep(AFTER_S)
        return list(_broken(world, sagas))

    return run_virtual(main()), plan


async def _poke(world: Deploys, saga: str) -> None:
    """Some news that is none: a worker of either version takes the saga and looks."""
    ref = SagaRef(TENANT, saga)
    head = world.log.read_head(ref)
    assert head is not None
    await world.work([Message(str(ref), head.folded + 1)])


def _add_tools(world: Deploys) -> None:
    @tool("shop.pay", undo="shop.refund", registry=world.registry)
    async def pay() -> str:
        return "paid"

    @tool("shop.refund", registry=world.registry)
    async def refund() -> None:
        world.refunded += 1

    @tool("shop.mail", registry=world.registry)
    async def mail() -> str:
        process = RUNS_IN.get()
        assert process is not None
        if world.build_of(process) in BAD:
            raise KeyError("to")
        return "mailed"

    world.tools = world.registry.specs()


async def _start(world: Deploys, number: int) -> str:
    await patiently(world, lambda service: service.register(WORKFLOW, json_only=False))
    view, _ = await patiently(world, lambda service: service.start("w", {"n": number}, f"key-{number}"))
    return str(view["id"])


def _broken(world: Deploys, sagas: list[str]) -> Iterator[str]:
    for number, saga in enumerate(sagas):
        head, events = world.log.read_head(SagaRef(TENANT, saga)), world.events(saga)
        assert head is not None
        if head.status != "completed":
            yield f"{MENDED}: {saga} is {head.status} half an hour after the deploy that mends it"
        tried = Counter(event.build for event in events if isinstance(event, ev.StrategyChosen))
        # A worker of new code that dies has let the step go on, and its heir may be of the code before.
        has_died = any(isinstance(event, ev.Revived) for event in events)
        for build, times in tried.items():
            if times > 1 and not has_died:
                yield f"{ONCE}: {saga} was tried {times} times with {build}"
        second = [
            event.at for event in events if isinstance(event, ev.StrategyChosen) and event.build == "b2"
        ]
        if tried and not second:
            yield f"{MENDED}: {saga} was not tried with b2 in half an hour"
        late = second[0] - world.deployed_at - 1_000 * ROLLING_S if second and number < SAGAS else 0
        if late > LATE_MS and not has_died:
            yield f"{MENDED}: {saga} was tried with b2 {late // 1_000} s after the deploy was over"
        if (told := sum(isinstance(event, ev.NoticeDue) for event in events)) > 1:
            yield f"{TOLD}: people were told {told} times of {saga}"
    if world.refunded:
        yield f"{DONE}: something was undone"
    for error in world.endings:
        yield f"{DONE}: {error!r}"


# ---- very many of them


@dataclass
class ParkedCrowd(Crowd):
    """Very many sagas that are parked for a defect: a worker that takes one tries it in vain, and parks it again."""

    tried: set[SagaRef] = field(default_factory=set)
    taken: Counter[SagaRef] = field(default_factory=Counter)
    minutes: list[int] = field(default_factory=list)
    """How many were taken in each minute."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.began = self.clock.now()

    def deploy(self, build: str) -> None:
        self.build = build
        entities: MemoryEntities = self.store.entities
        deployment = DeployedBuild(entities, self.clock, self._offload, build)
        self._reconciler = Reconciler(
            self.log, self, self, self.clock, self._offload, MINUTE_S * 1_000, deployment
        )

    async def _wake(self, message: Message, delay_s: int) -> None:
        await asyncio.sleep(delay_s)
        now, ref = self.clock.now(), SagaRef.parse(message.saga)
        invocation = Invocation(f"i{next(self._numbers)}", now, now + crowds.WORKER_MS)
        call: Any = crowds._Call(now + crowds.WORKER_MS)
        limits = replace(crowds.LIMITS, build=self.build)
        context = InvocationContext(
            invocation,
            self.store,
            self._blobs,
            self.clock,
            self._entropy,
            limits,
            call,
            Tenure.of(invocation, self.clock, limits),
        )
        lease = await Leases(context).acquire(ref, message, alone=True)
        if not isinstance(lease, Lease):
            return
        self.tried.add(ref)
        self.taken[ref] += 1
        minute = (now - self.began) // (MINUTE_S * 1_000)
        self.minutes += [0] * (minute + 1 - len(self.minutes))
        self.minutes[minute] += 1
        again = Release(
            folded=2,
            status="parked",
            group="waiting",
            group_at=None,
            branch=0,
            snapshot=0,
            due_at=self.clock.now() + LOOK_MS,
            lane=PARKED,
            armed=lease.armed,
        )
        assert self.log.release(ref, lease.owner, lease.epoch, again)


def many(count: int, minutes: int, *, seed: int = 0) -> ParkedCrowd:
    """So many sagas, parked within an hour before a deploy that mends none of them; and the minutes after that."""

    async def main() -> ParkedCrowd:
        crowd = ParkedCrowd(seed=seed)
        for number in range(count):
            parked = crowd.clock.now() - crowd.draw.randrange(crowds.HOUR_MS)
            crowd.add(SagaRef("acme", f"s{number}"), parked + LOOK_MS, PARKED)
        crowd.deploy("b2")
        for _ in range(minutes):
            await crowd.run()
            await asyncio.sleep(MINUTE_S)
        return crowd

    return run_virtual(main())
