"""A map over 10,000 children, and one over 1,000 items of its own: what the parent's log and the table have of it.

The children run on the engine's own worker and relay, in memory and in virtual time: each call of the store takes 6 to 14 ms, eight
relays pass on what eight shards of the stream have, 50 workers take ten wakes each.
"""

from __future__ import annotations

import asyncio
import random
import tracemalloc
from collections import Counter, deque
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import msgspec

from baton.adapters.memory.log import MemoryLog
from baton.adapters.memory.queues import MemoryDeadLetters, MemoryInvoker
from baton.adapters.memory.store import MemoryBlobs, MemoryStore
from baton.adapters.monty_sandbox import MontySandbox
from baton.core.limits import Limits
from baton.core.log.events import Event, Value
from baton.core.read.costs import units
from baton.ports import Appended, Head, Message, Record, Release, SagaRef, Wake
from baton.runtime.engine.parts import Engine, InvocationScope
from baton.runtime.engine.request import Caller
from baton.runtime.invocation.context import Invocation
from baton.runtime.log.history import History
from baton.runtime.relay import Relay, StreamItem
from baton.runtime.requests.service import Service
from baton.runtime.worker.worker import Delivery, Worker
from baton.tools.perform import ToolPerformer
from benchmarks.figures import Bench, Figure, Sample
from benchmarks.stage import HOUR_MS, NOTICES, REGISTRY, TENANT, USER
from tests.kit.virtual_time import SeededEntropy, VirtualClock, run_virtual

T = TypeVar("T")
CHILDREN, ITEMS, SHARDS, WORKERS, BATCH = 10_000, 1_000, 8, 50, 10
INVOCATION_MS = 60_000
CHILD = "name: kid\ninput: {type: object}\nnodes: {s: {tool: step, with: {n: '${input.n}'}}}\noutput: '${ctx.s.output}'"
PARENT = """
name: parent
input: {type: object}
nodes:
  all: {map: {over: "${input.l}", concurrency: 256}, workflow: kid, with: {n: "${item}"}}
output: "${ctx.all.output[9]}"
"""
EACH = """
name: each
input: {type: object}
nodes: {all: {map: "${input.l}", tool: step, with: {n: "${item}"}}}
output: "${ctx.all.output[9]}"
"""


class _Log(MemoryLog):
    """A log that counts write units by DynamoDB's rule, as docs/protocols.md has them, and the parent's appends."""

    def __init__(self, on_wake: Callable[[SagaRef, Wake], None]) -> None:
        super().__init__(SHARDS, on_wake=on_wake, clock=VirtualClock())
        self.units: Counter[str] = Counter()
        self.tries: Counter[SagaRef] = Counter()
        self.entries: Counter[SagaRef] = Counter()

    def create_head(self, head: Head) -> Head | None:
        self.units["start"] += 3
        return super().create_head(head)

    def take(
        self, ref: SagaRef, owner: str, until: int, epoch: int, due_at: int, stays: bool = False
    ) -> Head | None:
        self.units["take"] += 1 if stays else 3
        return super().take(ref, owner, until, epoch, due_at, stays)

    def release(self, ref: SagaRef, owner: str, epoch: int, release: Release) -> bool:
        moved = 3 if release.group_at is None else 5
        self.units["release"] += 4 if release.due_at is None else moved
        return super().release(ref, owner, epoch, release)

    def append(self, ref: SagaRef, record: Record, wake: Wake | None = None) -> Appended | None:
        done = super().append(ref, record, wake)
        self.tries[ref] += 1
        self.entries[ref] += done is not None
        self.units["entries"] += units(self._entries[ref, record.branch][record.version].size)
        return done

    def announce(self, ref: SagaRef) -> bool:
        self.units["announce"] += 1
        return super().announce(ref)

    def leave_wake(self, ref: SagaRef, owner: str, epoch: int, version: int) -> bool:
        self.units["nudge"] += 1
        return super().leave_wake(ref, owner, epoch, version)


class _Deployment:
    """Relays and workers beside each other, on one store in memory."""

    def __init__(self) -> None:
        self.shards: list[deque[StreamItem]] = [deque() for _ in range(SHARDS)]
        self.queue: deque[Message] = deque()
        self.log = _Log(self._on_wake)
        store = MemoryStore(SHARDS, clock=VirtualClock())
        store.log = self.log
        store.inbox = type(store.inbox)(self.log)
        self.blobs, self.lasts, self._draw, self._number = MemoryBlobs(), True, random.Random(1), 0
        self.engine = Engine.on(
            store,
            self.blobs,
            VirtualClock(),
            Limits(),
            entropy=SeededEntropy(1),
            offload=self._offload,
            performer=ToolPerformer(REGISTRY),
            sandbox=MontySandbox(self._offload),
            tools=REGISTRY.specs(),
            notices=NOTICES,
        )
        engine = self.engine
        self.relay = Relay(store.inbox, self, engine.clock, engine.entropy, engine.offload, engine.limits)
        self.worker = Worker(engine, MemoryDeadLetters(), MemoryInvoker())

    async def _offload(self, function: Callable[..., T], /, *args: Any, **kwargs: Any) -> T:
        await asyncio.sleep(self._draw.uniform(0.006, 0.014))
        return function(*args, **kwargs)

    def _on_wake(self, ref: SagaRef, wake: Wake) -> None:
        self._number += 1
        self.shards[hash(ref.id) % SHARDS].append(StreamItem(str(self._number), ref, wake))

    def send(self, messages: Sequence[tuple[Message, int]]) -> Sequence[int]:
        """The queue of the relay. What is for later is left out, because no child waits."""
        self.queue.extend(message for message, delay in messages if not delay)
        return []

    def backlog(self) -> int:
        return len(self.queue)

    async def relays(self, shard: deque[StreamItem]) -> None:
        while self.lasts:
            batch = [shard.popleft() for _ in range(min(len(shard), 100))]
            if batch:
                await self.relay.handle(batch, self.engine.clock.now() + HOUR_MS)
            await asyncio.sleep(0.05)

    async def works(self, number: int) -> None:
        turn = 0
        while self.lasts:
            batch = [self.queue.popleft() for _ in range(min(len(self.queue), BATCH))]
            turn += 1
            if batch:
                now = self.engine.clock.now()
                deliveries = [
                    Delivery(str(index), msgspec.json.encode(message).decode(), 1)
                    for index, message in enumerate(batch)
                ]
                again = await self.worker.handle(
                    deliveries, Invocation(f"w{number}-{turn}", now, now + INVOCATION_MS)
                )
                self.queue.extend(batch[int(index)] for index in again)
            await asyncio.sleep(0.02)

    async def run(self, documents: Sequence[str], name: str, given: Any) -> SagaRef:
        """The saga of the last document, to its end."""
        caller = Caller(tenant=TENANT, user=USER, request="bench")
        service = Service(self.engine, caller, self.engine.clock.now() + HOUR_MS)
        for document in documents:
            await service.register(document, json_only=False)
        view, _ = await service.start(name, given, "")
        ref = SagaRef(TENANT, view["id"])
        tasks = [asyncio.create_task(self.relays(shard)) for shard in self.shards]
        tasks += [asyncio.create_task(self.works(number)) for number in range(WORKERS)]
        while (head := self.log.read_head(ref)) is not None and head.group != "done":  # noqa: ASYNC110  in virtual time
            await asyncio.sleep(1)
        self.lasts = False
        await asyncio.gather(*tasks)
        if head is None or head.status != "completed":
            raise RuntimeError(f"the parent has not completed: {head}")
        return ref


async def _family(children: int) -> Sample:
    made = _Deployment()
    parent = await made.run([CHILD, PARENT], "parent", {"l": [*range(children)]})
    entries = made.log.entries[parent]
    ends = children  # an item of the inbox for each
    return {
        "entries": entries,
        "tries": made.log.tries[parent] / entries,
        "units": (sum(made.log.units.values()) + ends) / children,
        "memory": await _memory(made, parent),
        "seconds": asyncio.get_running_loop().time(),
    }


async def _memory(made: _Deployment, parent: SagaRef) -> float:
    """Megabytes that a worker allocates to read the parent's whole log, its list and all results: more than any invocation of it has."""
    now, head = made.engine.clock.now(), made.log.read_head(parent)
    assert head is not None, "it has run"
    scope = InvocationScope(made.engine, Invocation("memory", now, now + HOUR_MS))
    tracemalloc.start()
    history = History(made.log, made.blobs, scope.call, parent)
    entries = await history.load(msgspec.structs.replace(head, snapshot=0))
    values = [value for entry in entries for event in entry.events for value in _values_of(event)]
    content = [msgspec.json.decode(made.blobs.get(TENANT, value.ref)) for value in values if value.ref]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    del content
    return peak / 1_048_576


def _values_of(event: Event) -> list[Value]:
    return [value for name in event.made if isinstance(value := getattr(event, name, None), Value)]


async def _inline(items: int) -> float:
    made = _Deployment()
    saga = await made.run([EACH], "each", {"l": [*range(items)]})
    return made.log.entries[saga]


def measure(children: int = CHILDREN, items: int = ITEMS) -> Sample:
    return {**run_virtual(_family(children)), "inline": run_virtual(_inline(items))}


BENCH = Bench(
    "map",
    f"{CHILDREN:,} children of one map, {SHARDS} relays at once, and {ITEMS:,} items of one saga",
    {
        "entries": Figure("entries of the parent", "", CHILDREN / 50, digits=0),
        "tries": Figure("tries of an append of the parent, for each entry", "", 1.2, digits=2),
        "units": Figure("write units for each child, the parent's included", "", 14, digits=1),
        "memory": Figure("memory for all that the parent's log names", "MB", 256, digits=0),
        "seconds": Figure("from the start to the end, in virtual time", "s", digits=0),
        "inline": Figure(f"entries of {ITEMS:,} pure items", "", 30, digits=0),
    },
    measure,
    runs=1,
)
