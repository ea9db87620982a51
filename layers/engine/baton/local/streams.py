"""DynamoDB Streams as an event source of Lambda: polling, batches, retries, and failure destination."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

from botocore.exceptions import BotoCoreError, ClientError

from baton.local.aws import REGION, Aws
from baton.local.functions import RESPONSE_CONTEXT, Throttled, request_context, timestamp
from baton.local.processes import Tasks
from baton.local.queues import failed_items
from baton.local.sandbox import InvocationResult
from baton.local.stack import Function, StreamSource

Record = dict[str, Any]


def event_record(record: Mapping[str, Any], stream_arn: str) -> Record:
    """Return the record as JSON. boto3 has decoded binary values and the creation time, which JSON lacks."""
    change = {key: _plain(value) for key, value in record["dynamodb"].items()}
    return {
        "eventID": record["eventID"],
        "eventName": record["eventName"],
        "eventVersion": record.get("eventVersion", "1.1"),
        "eventSource": "aws:dynamodb",
        "awsRegion": record.get("awsRegion", REGION),
        "dynamodb": change,
        "eventSourceARN": stream_arn,
    }


def sequence_of(record: Record) -> str:
    return str(record["dynamodb"]["SequenceNumber"])


def created_at(record: Record) -> float:
    """Return the creation time in epoch seconds. DynamoDB reports whole seconds."""
    return float(record["dynamodb"].get("ApproximateCreationDateTime", 0))


def partition_of(record: Record) -> str:
    """Return the partition of a record: equal texts for records of one item."""
    return json.dumps(record["dynamodb"].get("Keys", {}), sort_keys=True)


def _plain(value: Any) -> Any:
    if isinstance(value, (bytes, bytearray)):
        return base64.b64encode(value).decode()
    if isinstance(value, datetime):
        return int(value.timestamp())
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value


log = logging.getLogger("baton.local")
Condition = Literal["RetryAttemptsExhausted", "RecordAgeExceeded"]
Invoke = Callable[[dict[str, Any]], Awaitable[InvocationResult]]
SetAside = Callable[[str, Sequence[Record], Condition, str, int], Awaitable[None]]
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.2, 5.0


class BatchRunner:
    """Runner of batches, which calls `set_aside(…)` for every abandoned batch."""

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
        """Process all records in order. Returns when each has succeeded or has been set aside."""
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

    def _progress(self, result: InvocationResult, batch: Sequence[Record]) -> tuple[int, bool]:
        """Return the number of completed records, and true if the answer is about the whole batch."""
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
        """Run until cancelled. A shard waits for its parent: the order per item holds across splits."""
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
        """Return the next records, and the next iterator. With a batching window, wait for a full batch."""
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
        """Deliver in order within a lane. ParallelizationFactor keeps items of one key together."""
        lanes: dict[int, list[Record]] = {}
        for record in records:
            if self._source.filters.match(record):
                lane = hash(partition_of(record)) % self._source.parallel
                lanes.setdefault(lane, []).append(record)
        await asyncio.gather(*(self._runner.run(shard_id, lane) for lane in lanes.values()))


def failure_queue(source: StreamSource, function: Function, aws: Aws) -> SetAside:
    """Return the `set_aside` of one stream source. Without a destination, the records are only logged."""

    async def set_aside(
        shard: str, records: Sequence[Record], condition: Condition, request_id: str, attempts: int
    ) -> None:
        document = describe(source, function.arn, shard, records, condition, request_id, attempts)
        log.warning("%s: %d records set aside: %s", source.logical_id, len(records), condition)
        if source.on_failure_url:
            send: Callable[..., Any] = aws.sqs.send_message
            await aws.call(send, QueueUrl=source.on_failure_url, MessageBody=json.dumps(document))

    return set_aside


def describe(
    source: StreamSource,
    function_arn: str,
    shard: str,
    records: Sequence[Record],
    condition: Condition,
    request_id: str,
    attempts: int,
) -> dict[str, Any]:
    """Return the failure document. `requestId` is that of the last attempt, empty if there was none."""
    return {
        "requestContext": request_context(function_arn, request_id, condition, attempts),
        "responseContext": RESPONSE_CONTEXT,
        "version": "1.0",
        "timestamp": timestamp(),
        "DDBStreamBatchInfo": {
            "shardId": shard,
            "startSequenceNumber": sequence_of(records[0]),
            "endSequenceNumber": sequence_of(records[-1]),
            "approximateArrivalOfFirstRecord": timestamp(created_at(records[0])),
            "approximateArrivalOfLastRecord": timestamp(created_at(records[-1])),
            "batchSize": len(records),
            "streamArn": source.arn,
        },
    }
