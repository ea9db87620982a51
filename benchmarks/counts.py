"""What the engine itself writes, reads and calls, as small vectors: the only figures of the model of scale that are measured.

Whole lives in virtual time: the log in memory decides, and the same requests go to a table whose meter counts units by
DynamoDB's own rule (tests/kit/mirror.py, meter.py). How that becomes a ceiling or a bill is not here.
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeVar

from baton.adapters.aws import Aws
from baton.adapters.dynamo.items import STATUS_INDEX, item_size
from baton.core.limits import Limits
from baton.ports import SagaRef
from baton.runtime.reconcile import Reconciler
from benchmarks import shipped
from tests.kit.documents import chain_of
from tests.kit.meter import TABLE, Meter, Spent, index_rows
from tests.kit.mirror import MeteredWorld
from tests.kit.process import Process
from tests.kit.roles import DirectInvoker
from tests.kit.table import create_table
from tests.kit.toolbox import Books, make_registry
from tests.kit.virtual_time import run_virtual
from tests.kit.world import SHARDS

T = TypeVar("T")
TABLE_ITSELF = "table"
_WAITS = "{name: w, nodes: {go: {wait: {signal: go}}}}"
HOUR_S = 3_600
OVERHEAD_BYTES = 100  # that DynamoDB bills for an item, and for a row of an index
TIMEOUT_S = Limits.worker_timeout_s
CALM = Limits(
    yield_reserve_ms=60_000, news_every_ms=60_000
)  # two thirds of an invocation, and no looks for news


@dataclass(frozen=True)
class Use:
    """Units and calls. `writes` by table and index; `rows` by kind of partition of an index, without the number of its shard.

    `relayed`: wakes that the stream carries; `messages`: of the queue; `invocations`: of the worker, with one saga in each.
    """

    writes: Mapping[str, float] = field(default_factory=dict)
    rows: Mapping[tuple[str, str], float] = field(default_factory=dict)
    reads: float = 0
    relayed: float = 0
    messages: float = 0
    invocations: float = 0

    @property
    def units(self) -> float:
        """All write units together, which is what is billed."""
        return sum(self.writes.values())

    def hottest(self, index: str) -> float:
        """Units on the kind of partition of an index that has most of them."""
        return max((units for (name, _), units in self.rows.items() if name == index), default=0)

    def __add__(self, other: Use) -> Use:
        return self._with(other, lambda a, b: a + b)

    def __sub__(self, other: Use) -> Use:
        return self._with(other, lambda a, b: a - b)

    def __mul__(self, times: float) -> Use:
        return self._with(Use(), lambda a, _: a * times)

    def _with(self, other: Use, of: Callable[[float, float], float]) -> Use:
        def both(here: Mapping[Any, float], there: Mapping[Any, float]) -> dict[Any, float]:
            return {key: of(here.get(key, 0), there.get(key, 0)) for key in {**here, **there}}

        return Use(
            writes=both(self.writes, other.writes),
            rows=both(self.rows, other.rows),
            reads=of(self.reads, other.reads),
            relayed=of(self.relayed, other.relayed),
            messages=of(self.messages, other.messages),
            invocations=of(self.invocations, other.invocations),
        )


@dataclass(frozen=True)
class Counts:
    """The engine's own count, for items of up to a kilobyte.

    `saga`: start, one take, the end. `step`: one step more. `further`: one invocation more. `look`: one look at a saga that
    waits and finds nothing. `looks_s`: when those came, from the beginning of the wait. `at_work_bytes`: a row that the limit
    of a tenant's sagas counts. `item_bytes`, `entry_bytes`: what a saga keeps for ever, and each step more.
    `definition_reads`: of the newest version of a workflow, by a process that is busy, in a second. `timed_at_work`: rows that
    a run of the reconciler sends as timers for each saga that a worker holds.
    """

    saga: Use
    step: Use
    further: Use
    look: Use
    looks_s: tuple[float, ...]
    at_work_bytes: int
    item_bytes: int
    entry_bytes: int
    definition_reads: float
    timed_at_work: float


class _World(MeteredWorld):
    """Counts the wakes of the stream and the messages of the queue, too, and notes when workers begin."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.wakes = 0
        self.sent = 0
        self.worked: list[float] = []
        send = self.queue.send

        def counted(messages: Any) -> Any:
            self.sent += len(messages)
            return send(messages)

        self.queue.send = counted  # type: ignore[method-assign]

    def _on_wake(self, ref: SagaRef, wake: Any) -> None:
        self.wakes += 1
        super()._on_wake(ref, wake)

    def process(self, role: str, version: str = "") -> Process:
        if role == "worker":
            self.worked.append(asyncio.get_running_loop().time())
        return super().process(role, version)

    def use(self) -> Use:
        writes: Counter[str] = Counter()
        rows: Counter[tuple[str, str]] = Counter()
        for spent in self.meter.written:
            _count(spent, writes, rows)
        return Use(
            writes=writes,
            rows=rows,
            reads=sum(one.units for one in self.meter.read),
            relayed=self.wakes,
            messages=self.sent,
            invocations=len(self.worked),
        )

    def items(self) -> list[Any]:
        """All items of the table, but for those of no saga."""
        return list(self.meter.client.scan(TableName=TABLE, ConsistentRead=True)["Items"])

    async def begin(self, document: str, name: str) -> str:
        await self.service().register(document, json_only=False)
        view, _ = await self.service().start(name, {"n": 0}, "key")
        return str(view["id"])


def _count(spent: Spent, writes: Counter[str], rows: Counter[tuple[str, str]]) -> None:
    of_indexes = 0
    for (index, partition), units in spent.rows.items():
        writes[index] += units
        rows[index, partition.rpartition("#")[0]] += units
        of_indexes += units
    writes[TABLE_ITSELF] += round(spent.units - of_indexes)


@contextmanager
def metered() -> Iterator[Meter]:
    """A table in this process, and the meter that watches it; no account is asked, whatever the shell is logged in to."""
    from moto import mock_aws  # takes a second, and most who import this module ask for no count

    from tests.kit.quick_moto import hasten

    hasten()
    before = dict(os.environ)
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        del os.environ[name]
    os.environ.update(shipped.ENVIRONMENT, AWS_ACCOUNT_ID_ENDPOINT_MODE="disabled")
    try:
        with mock_aws():
            yield Meter(Aws())
    finally:
        os.environ.clear()
        os.environ.update(before)


def _live(meter: Meter, drive: Callable[[_World], Awaitable[T]], **options: Any) -> T:
    """What `drive` makes of a new deployment with an empty table."""
    create_table(meter.client, TABLE)
    meter.clear()

    async def main() -> T:
        world = _World(make_registry(Books()), meter=meter, **options)
        world.switch_on()
        return await drive(world)

    try:
        return run_virtual(main())
    finally:
        meter.client.delete_table(TableName=TABLE)


async def _chain(world: _World, length: int, step_s: float = 1.0) -> tuple[Use, int]:
    """A saga of so many steps, and the bytes that it leaves."""
    await world.begin(chain_of(length, step_s), "chain")
    await world.settle()
    use = world.use()
    return use, sum(map(stored_bytes, world.items()))


def stored_bytes(item: Any) -> int:
    """What DynamoDB bills for keeping an item and its rows in indexes: 100 bytes more for each."""
    return sum(item_size(image) + OVERHEAD_BYTES for image in (item, *index_rows(item).values()))


async def _waiting(world: _World, hours: int) -> tuple[Use, tuple[float, ...]]:
    """One look at a saga that waits, and when those of so many hours came."""
    await world.begin(_WAITS, "w")
    await asyncio.sleep(30)
    before, began = world.use(), asyncio.get_running_loop().time() - 30
    await asyncio.sleep(hours * HOUR_S)
    looks = world.worked[round(before.invocations) :]
    return (world.use() - before) * (1 / max(len(looks), 1)), tuple(at - began for at in looks)


async def _busy(world: _World) -> tuple[float, int]:
    """Reads of the newest version by a process with more than five starts a second; bytes of a row that is at work."""
    await world.service().register(chain_of(1), json_only=False)
    process, asked = world.process("api"), 0
    definitions = world.store.definitions
    get = definitions.get

    def counted(*arguments: Any) -> Any:
        nonlocal asked
        asked += 1
        return get(*arguments)

    definitions.get = counted  # type: ignore[method-assign, assignment]
    for number in range(11):
        await world.service(process).start("chain", {"n": 0}, f"key-{number}")
        await asyncio.sleep(0.18)
    head = next(item for item in world.items() if item["sk"]["S"] == "HEAD")
    return asked / 2, item_size(index_rows(head)[STATUS_INDEX])


async def _held(world: _World) -> float:
    """What a run of the reconciler sends as timers while a worker holds a saga."""
    await world.begin(chain_of(2, 2.0), "chain")
    await asyncio.sleep(2)
    world.log.settle_index()
    process = world.process("reconciler")
    roles = (world.queue, DirectInvoker(world), process.clock, process.offload)
    reconciler = Reconciler(world.log, *roles, 60_000)
    return sum([(await reconciler.sweep(shard, 50_000)).timed for shard in range(SHARDS)])


@cache
def counted() -> Counts:
    """Counted once in a process; a second of it is the import of what stands in for the table."""
    with metered() as meter:
        short, short_bytes = _live(meter, lambda world: _chain(world, 1), timeout_s=TIMEOUT_S)
        long, long_bytes = _live(meter, lambda world: _chain(world, 3), timeout_s=TIMEOUT_S)
        # A shorter timeout would do as well, but a take costs more where a saga is due only after the lease.
        turns, _ = _live(
            meter, lambda world: _chain(world, 3, TIMEOUT_S / 3.1), timeout_s=TIMEOUT_S, limits=CALM
        )
        look, looks = _live(meter, lambda world: _waiting(world, 5), reconciler_gap_s=300)
        reads, row = _live(meter, _busy, stream_on=False, reconciler_on=False)
        timed = _live(meter, _held, timeout_s=TIMEOUT_S, reconciler_on=False)
    step = (long - short) * (1 / 2)
    further = turns.invocations - long.invocations
    return Counts(
        saga=short - step,
        step=step,
        further=(turns - long) * (1 / further),
        look=look,
        looks_s=looks,
        at_work_bytes=row,
        item_bytes=short_bytes - (long_bytes - short_bytes) // 2,
        entry_bytes=(long_bytes - short_bytes) // 2,
        definition_reads=reads,
        timed_at_work=timed,
    )
