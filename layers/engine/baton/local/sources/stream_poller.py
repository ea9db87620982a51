"""Reads one DynamoDB stream for one function, as Lambda's event source mapping does: shard by shard, in order.

Finding shards and reading records is here; what happens to a batch that fails is in stream_batch.py.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from baton.local.aws.aws import Aws
from baton.local.processes.tasks import Tasks
from baton.local.sources.stream_batch import BatchRunner
from baton.local.sources.stream_record import Record, event_record, partition_of
from baton.local.template.declared import StreamSource

log = logging.getLogger("baton.local")
_PAUSE_S = 0.25  # as Lambda does
# Where there was something lately, more is likely to come, and a saga waits for it.
_BRISK_FOR_S = 1.0
_BRISK_PAUSE_S = 0.1
_LOOK_FOR_SHARDS_S = 10.0
_PAGE = 1000


class StreamPoller:
    def __init__(self, source: StreamSource, runner: BatchRunner, aws: Aws) -> None:
        self._source, self._runner, self._aws = source, runner, aws
        self._shards: dict[str, asyncio.Task[Any]] = {}
        self._tasks = Tasks(source.logical_id)

    async def run(self) -> None:
        """Until cancelled. A shard waits for its parent, so that the order per item holds across splits."""
        start = self._source.start
        try:
            while True:
                try:
                    shards = await self._describe()
                except (ClientError, BotoCoreError) as error:
                    log.warning("%s: the stream cannot be described: %s", self._source.logical_id, error)
                    await asyncio.sleep(1)
                    continue
                for shard in shards:
                    shard_id = shard["ShardId"]
                    if shard_id not in self._shards:
                        parent = self._shards.get(shard.get("ParentShardId", ""))
                        reading = self._read_shard(shard_id, start, parent)
                        self._shards[shard_id] = self._tasks.add(reading)
                start = "TRIM_HORIZON"  # shards that appear later are read from their beginning
                await asyncio.sleep(_LOOK_FOR_SHARDS_S)
        finally:
            self._tasks.cancel()

    async def _describe(self) -> Sequence[Mapping[str, Any]]:
        shards: list[Mapping[str, Any]] = []
        more: dict[str, str] = {}
        describe: Callable[..., Any] = self._aws.streams.describe_stream
        while True:
            answer = await self._aws.call(describe, StreamArn=self._source.arn, **more)
            shards += answer["StreamDescription"]["Shards"]
            last = answer["StreamDescription"].get("LastEvaluatedShardId")
            if not last:
                return shards
            more = {"ExclusiveStartShardId": last}

    # ---- one shard

    async def _read_shard(self, shard_id: str, start: str, parent: asyncio.Task[Any] | None) -> None:
        if parent is not None:
            await asyncio.wait([parent])
        position: dict[str, str] = {"ShardIteratorType": start}
        iterator: str | None = None
        while True:
            try:
                if iterator is None:
                    ask: Callable[..., Any] = self._aws.streams.get_shard_iterator
                    answer = await self._aws.call(
                        ask, StreamArn=self._source.arn, ShardId=shard_id, **position
                    )
                    iterator = answer["ShardIterator"]
                records, iterator = await self._read(str(iterator))
            except (ClientError, BotoCoreError) as error:
                # An iterator expires after 15 minutes; go on after the last record that was read.
                log.warning("%s: reading %s failed: %s", self._source.logical_id, shard_id, error)
                iterator = None
                await asyncio.sleep(1)
                continue
            if records:
                last = records[-1]["dynamodb"]["SequenceNumber"]
                position = {"ShardIteratorType": "AFTER_SEQUENCE_NUMBER", "SequenceNumber": last}
                try:
                    await self._deliver(shard_id, records)
                except (ClientError, BotoCoreError) as error:
                    log.error("%s: records were lost: %s", self._source.logical_id, error)
            if iterator is None:
                return  # the shard is closed and read to its end

    async def _read(self, iterator: str) -> tuple[list[Record], str | None]:
        """The next records, and where to go on. With a batching window it waits for a full batch."""
        loop = asyncio.get_running_loop()
        get: Callable[..., Any] = self._aws.streams.get_records
        records: list[Record] = []
        here: str | None = iterator
        closes, brisk_until = 0.0, loop.time() + _BRISK_FOR_S
        while here is not None:
            answer = await self._aws.call(get, ShardIterator=here, Limit=_PAGE)
            here = answer.get("NextShardIterator")
            records += [event_record(record, self._source.arn) for record in answer["Records"]]
            if records and not closes:
                closes = loop.time() + self._source.window_s
            if records and (loop.time() >= closes or len(records) >= self._source.batch_size):
                break
            if not answer["Records"]:
                await asyncio.sleep(_BRISK_PAUSE_S if loop.time() < brisk_until else _PAUSE_S)
        return records, here

    async def _deliver(self, shard_id: str, records: Sequence[Record]) -> None:
        """In order within a lane; the lanes of ParallelizationFactor keep items of one key together."""
        lanes: dict[int, list[Record]] = {}
        for record in records:
            if self._source.filters.match(record):
                lane = hash(partition_of(record)) % self._source.parallel
                lanes.setdefault(lane, []).append(record)
        await asyncio.gather(*(self._runner.run(shard_id, lane) for lane in lanes.values()))
