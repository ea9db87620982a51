"""What happens to stream records once they are read: batches, retries, bisecting, giving up.

Pure sequencing over two functions (invoke, set aside) and a clock, so that it is tested without AWS.
Reading shards is in stream_poller.py.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Literal

from baton.local.functions.pool import Throttled
from baton.local.functions.sandbox import Result
from baton.local.sources.batch import failed_items
from baton.local.sources.stream_record import Record, created_at, sequence_of
from baton.local.template.declared import StreamSource

log = logging.getLogger("baton.local")
Condition = Literal["RetryAttemptsExhausted", "RecordAgeExceeded"]
Invoke = Callable[[dict[str, Any]], Awaitable[Result]]
SetAside = Callable[[str, Sequence[Record], Condition, str, int], Awaitable[None]]
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.2, 5.0


class BatchRunner:
    """`set_aside(shard, records, condition, request_id, attempts)` is told of every batch that is given up."""

    def __init__(
        self,
        source: StreamSource,
        *,
        invoke: Invoke,
        set_aside: SetAside,
        sleep: Callable[[float], Awaitable[None]],
        now: Callable[[], float],
    ) -> None:
        self._source = source
        self._invoke, self._set_aside = invoke, set_aside
        self._sleep, self._now = sleep, now

    async def run(self, shard: str, records: Sequence[Record]) -> None:
        """All records, in order; returns when each has succeeded or has been set aside."""
        size = self._source.batch_size
        for start in range(0, len(records), size):
            await self._batch(shard, list(records[start : start + size]))

    async def _batch(self, shard: str, batch: list[Record]) -> None:
        attempts, request_id = 0, ""
        while True:
            batch = await self._drop_old(shard, batch, request_id, attempts)
            if not batch:
                return
            try:
                result = await self._invoke({"Records": batch})
            except Throttled:  # not an attempt: the function has not seen the batch
                await self._sleep(_FIRST_PAUSE_S)
                continue
            request_id = result.request_id
            done, whole = self._progress(result, batch)
            if done == len(batch):
                return
            if done:
                # The checkpoint moved on: what is left is a batch of its own.
                batch, attempts = batch[done:], 0
                continue
            if whole and self._source.bisect and len(batch) > 1:
                # Halving is not counted as a retry (Lambda developer guide).
                half = len(batch) // 2
                await self._batch(shard, batch[:half])
                batch, attempts = batch[half:], 0
                continue
            attempts += 1
            retries = self._source.retries
            if retries is not None and attempts > retries:
                await self._set_aside(shard, batch, "RetryAttemptsExhausted", request_id, attempts)
                return
            await self._sleep(min(_FIRST_PAUSE_S * 2 ** (attempts - 1), _LONGEST_PAUSE_S))

    def _progress(self, result: Result, batch: Sequence[Record]) -> tuple[int, bool]:
        """How many records from the front are done, and whether the answer spoke of the batch as a whole."""
        if not result.ok:
            return 0, True
        numbers = [sequence_of(record) for record in batch]
        failed = failed_items(result.document(), numbers, self._source.partial)
        if not failed:
            return len(batch), False
        # The lowest of the reported numbers is the checkpoint: all from there on is repeated.
        return min(numbers.index(number) for number in failed), len(failed) == len(batch)

    async def _drop_old(
        self, shard: str, batch: list[Record], request_id: str, attempts: int
    ) -> list[Record]:
        limit_s = self._source.max_age_s
        if limit_s is None:
            return batch
        old = [record for record in batch if self._now() - created_at(record) > limit_s]
        if not old:
            return batch
        await self._set_aside(shard, old, "RecordAgeExceeded", request_id, attempts)
        return [record for record in batch if record not in old]
