"""The table's stream in the simulation: shards with their order, batches, retries, bisecting, and what is set aside.

What becomes of a batch is the product's own reading of Lambda's rules (baton.local.streams); here is only who waits
for what.
"""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from baton.errors import EngineFault
from baton.local.sandbox import InvocationResult
from baton.local.stack import Filters, StreamSource
from baton.local.streams import BatchRunner, Record, sequence_of
from baton.ports import SagaRef, Wake
from baton.ports.log import shard_of
from baton.runtime.invocation.context import answer
from baton.runtime.relay import StreamItem
from tests.kit.faults import Crash
from tests.kit.virtual_time import VirtualClock

if TYPE_CHECKING:
    from tests.kit.world import World

SHARDS = 2
BATCH, RETRIES, OLDEST_S = 100, 10, 3_600  # as in the template
TIMEOUT_S = 10.0
POLL_S = 0.001


class Stream:
    """Hands the wakes of the table to relays, each shard in its order. `set_aside` counts what was given up."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._numbers = itertools.count(1)
        self._items: dict[str, StreamItem] = {}
        self._waiting: dict[int, list[Record]] = {shard: [] for shard in range(SHARDS)}
        self._busy: set[int] = set()
        self.set_aside = 0
        source = StreamSource(
            logical_id="relay",
            function="relay",
            arn="",
            batch_size=BATCH,
            window_s=0,
            partial=True,
            start="TRIM_HORIZON",
            bisect=True,
            parallel=1,
            retries=RETRIES,
            max_age_s=OLDEST_S,
            on_failure_url="",
            filters=Filters(()),
        )
        self._runner = BatchRunner(
            source,
            invoke=self._invoke,
            set_aside=self._set_aside,
            sleep=asyncio.sleep,
            now=lambda: VirtualClock().now() / 1_000,
        )

    def put(self, ref: SagaRef, wake: Wake) -> None:
        """A record for an item that carries a wake: in the order of the writes of its partition key."""
        number, shard = f"{next(self._numbers):012d}", shard_of(ref.id, SHARDS)
        self._items[number] = StreamItem(number, ref, wake)
        change = {"SequenceNumber": number, "ApproximateCreationDateTime": VirtualClock().now() / 1_000}
        self._waiting[shard].append({"dynamodb": change})
        if shard not in self._busy:
            self._busy.add(shard)
            self._world.spawn(self._poll(shard))

    async def _poll(self, shard: int) -> None:
        while self._waiting[shard]:
            await asyncio.sleep(POLL_S)
            records, self._waiting[shard] = self._waiting[shard], []
            await self._runner.run(str(shard), records)
        self._busy.discard(shard)

    async def _invoke(self, event: dict[str, Any]) -> InvocationResult:
        process = self._world.process("relay")
        relay = self._world.relay(process)
        items = [self._items[sequence_of(record)] for record in event["Records"]]
        deadline = process.clock.now() + round(TIMEOUT_S * 1_000)
        task = asyncio.create_task(relay.handle(items, deadline))
        await asyncio.wait({task}, timeout=TIMEOUT_S)
        if not task.done():
            process.is_dead = True
            task.cancel()
            await asyncio.wait({task})
        with suppress(Crash, EngineFault, asyncio.CancelledError):
            failed = task.result()
            self._world.is_over(process)
            return InvocationResult(process.id, "ok", json.dumps(answer(failed)).encode())
        return InvocationResult(process.id, "error", b"{}")

    async def _set_aside(self, shard: str, records: Sequence[Record], *_: Any) -> None:
        self.set_aside += len(records)
