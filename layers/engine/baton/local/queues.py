"""SQS as an event source of Lambda: polling, fair queues, and evaluation of batch answers."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
from collections import Counter, deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from baton.local.aws import REGION, Aws
from baton.local.functions import Lambdas, Throttled
from baton.local.processes import Tasks
from baton.local.stack import QueueSource


def failed_items(answer: Any, known: Collection[str], partial: bool) -> frozenset[str]:
    """Return the ids among `known` to repeat, by a parsed answer; none without ReportBatchItemFailures."""
    everything = frozenset(known)
    if not partial or answer is None or answer == {} or answer == "":
        return frozenset()
    if not isinstance(answer, dict):
        return everything
    failures = answer.get("batchItemFailures")
    if failures is None:
        return frozenset()
    if not isinstance(failures, list):
        return everything
    failed = set()
    for failure in failures:
        identifier = failure.get("itemIdentifier") if isinstance(failure, dict) else None
        if not isinstance(identifier, str) or identifier not in everything:
            return everything  # null, empty, another key, or a record that was not in the batch
        failed.add(identifier)
    return frozenset(failed)


NOISY_SHARE = 0.1
OF_LATE_S = 30.0
"""Seconds for which a processed message counts as in use by its group. The period of SQS is not
documented.
"""


def fairest(groups: Sequence[str], used: Mapping[str, int], count: int) -> list[int]:
    """Return the positions of the `count` messages to receive next, among those that wait in the order of
    `groups`.

    `used`: by group, the number of its messages in flight or recently in flight. A group that is not noisy
    counts as one without any. The group with fewer messages is first, and the earlier one if they are equal.
    """
    waiting: dict[str, deque[int]] = {}
    for position, group in enumerate(groups):
        waiting.setdefault(group, deque()).append(position)
    known, taken = Counter(used), list[int]()

    def rank(group: str) -> tuple[int, int]:
        mine = known[group]
        return (mine if mine > NOISY_SHARE * known.total() else 0), waiting[group][0]

    while waiting and len(taken) < count:
        group = min(waiting, key=rank)
        taken.append(waiting[group].popleft())
        known[group] += 1
        if not waiting[group]:
            del waiting[group]
    return taken


log = logging.getLogger("baton.local")
_LONG_POLL_S = 2
# MiniStack looks at a waiting request's queue every 100 ms; while there is traffic, asking is quicker.
_BRISK_FOR_S = 0.5
_BRISK_PAUSE_S = 0.05
_MAX_EVENT_BYTES = 6 * 1024 * 1024
_MOST_RECEIVED = 1_000
_HOLD_S = 600
Message = Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class _Held:
    """A message that waits for its group's turn. `until`: its return to the queue, in loop time."""

    message: Message
    until: float


class SqsPoller:
    def __init__(self, source: QueueSource, lambdas: Lambdas, aws: Aws) -> None:
        self._source, self._lambdas, self._aws = source, lambdas, aws
        limit = lambdas.find(source.function).limit
        if source.concurrency is not None:
            limit = min(limit, source.concurrency)
        # Taken before receiving: a message that no worker can take yet stays visible in the queue.
        self._slots = asyncio.Semaphore(limit)
        self._batches = Tasks(source.logical_id)
        self._brisk_until = 0.0
        self._held: list[_Held] = []
        self._used: Counter[str] = Counter()  # messages that are or were just worked on, by their group

    async def run(self) -> None:
        """Run until cancelled. Batches in progress are then abandoned."""
        try:
            while True:
                await self._slots.acquire()
                messages: Sequence[Message] = ()
                try:
                    messages = await self._gather()
                except (ClientError, BotoCoreError) as error:
                    log.warning("%s: receiving failed: %s", self._source.logical_id, error)
                    await asyncio.sleep(1)
                finally:
                    if not messages:
                        self._slots.release()
                if messages:
                    work = self._batches.add(self._work(messages))
                    groups = [_group_of(message) for message in messages]
                    self._used.update(groups)
                    work.add_done_callback(partial(self._done, groups))
        finally:
            self._batches.cancel()

    def _done(self, groups: Sequence[str], _: object) -> None:
        asyncio.get_running_loop().call_later(OF_LATE_S, self._used.subtract, groups)
        self._slots.release()

    # ---- receiving

    async def _gather(self) -> Sequence[Message]:
        """Return one batch, available or until its window closes, of the messages that SQS would choose."""
        size, loop = self._source.batch_size, asyncio.get_running_loop()
        messages = [] if self._held else list(await self._receive(size))
        if self._held or len(messages) >= min(size, 10):
            return await self._fair_batch(messages, size)
        if not messages:
            return ()
        closes = loop.time() + self._source.window_s
        while len(messages) < self._source.batch_size and loop.time() < closes:
            more = await self._receive(self._source.batch_size - len(messages))
            messages += more
            if sum(len(message["Body"]) for message in messages) > _MAX_EVENT_BYTES - 256 * 1024:
                break
        return messages

    async def _fair_batch(self, received: list[Message], size: int) -> Sequence[Message]:
        """Return a fair batch of received, held and queued messages. The rest is held back."""
        while len(received) < _MOST_RECEIVED and (more := await self._receive(10, waits=False)):
            received += more
        now = asyncio.get_running_loop().time()
        before = [held for held in self._held if held.until > now]  # the others are in the queue again
        waiting = [*before, *(_Held(message, now + _HOLD_S) for message in received)]
        groups = [_group_of(held.message) for held in waiting]
        chosen = set(fairest(groups, self._used, size))
        self._held = [held for position, held in enumerate(waiting) if position not in chosen]
        await self._see_again_in(_HOLD_S, [held for held in self._held if held not in before])
        again = [waiting[position] for position in chosen if position < len(before)]
        if again:
            await self._see_again_in(await self._visibility(), again)
        return [waiting[position].message for position in sorted(chosen)]

    async def _see_again_in(self, seconds: int, held: Sequence[_Held]) -> None:
        change: Callable[..., Any] = self._aws.sqs.change_message_visibility_batch
        for start in range(0, len(held), 10):
            entries = [
                {
                    "Id": str(index),
                    "ReceiptHandle": one.message["ReceiptHandle"],
                    "VisibilityTimeout": seconds,
                }
                for index, one in enumerate(held[start : start + 10])
            ]
            await self._aws.call(change, QueueUrl=self._source.url, Entries=entries)

    async def _visibility(self) -> int:
        ask: Callable[..., Any] = self._aws.sqs.get_queue_attributes
        answer = await self._aws.call(ask, QueueUrl=self._source.url, AttributeNames=["VisibilityTimeout"])
        return int(answer["Attributes"]["VisibilityTimeout"])

    async def _receive(self, count: int, *, waits: bool = True) -> Sequence[Message]:
        loop = asyncio.get_running_loop()
        brisk = loop.time() < self._brisk_until or not waits
        receive: Callable[..., Any] = self._aws.sqs.receive_message
        answer = await self._aws.call(
            receive,
            QueueUrl=self._source.url,
            MaxNumberOfMessages=min(count, 10),
            WaitTimeSeconds=0 if brisk else _LONG_POLL_S,
            AttributeNames=["All"],
            MessageAttributeNames=["All"],
        )
        messages: Sequence[Message] = answer.get("Messages", [])
        if messages:
            self._brisk_until = loop.time() + _BRISK_FOR_S
        elif brisk and waits:
            await asyncio.sleep(_BRISK_PAUSE_S)
        return messages

    # ---- one batch

    async def _work(self, messages: Sequence[Message]) -> None:
        records = {message["MessageId"]: event_record(message, self._source.arn) for message in messages}
        passing = {key: record for key, record in records.items() if self._passes(record)}
        failed: frozenset[str] = frozenset()
        if passing:
            try:
                event = {"Records": list(passing.values())}
                result = await self._lambdas.invoke(self._source.function, event, "sqs")
            except Throttled:
                return
            if not result.ok:
                failed = frozenset(passing)
            else:
                failed = failed_items(result.document(), passing, self._source.partial)
        # What the filter holds back is deleted too, as Lambda does.
        await self._delete([message for message in messages if message["MessageId"] not in failed])

    def _passes(self, record: Mapping[str, Any]) -> bool:
        if not self._source.filters:
            return True
        try:
            body = json.loads(record["body"])
        except ValueError:
            body = record["body"]
        return self._source.filters.match({**record, "body": body})

    async def _delete(self, messages: Sequence[Message]) -> None:
        delete: Callable[..., Any] = self._aws.sqs.delete_message_batch
        for start in range(0, len(messages), 10):
            entries = [
                {"Id": str(index), "ReceiptHandle": message["ReceiptHandle"]}
                for index, message in enumerate(messages[start : start + 10])
            ]
            try:
                await self._aws.call(delete, QueueUrl=self._source.url, Entries=entries)
            except (ClientError, BotoCoreError) as error:
                log.warning("%s: deleting failed: %s", self._source.logical_id, error)


def _group_of(message: Message) -> str:
    """Return the group of a message. A message without a group is a group of its own."""
    return str(message.get("Attributes", {}).get("MessageGroupId", message["MessageId"]))


def event_record(message: Message, queue_arn: str) -> dict[str, Any]:
    """Return a received message as an entry of `Records` in the function's event."""
    return {
        "messageId": message["MessageId"],
        "receiptHandle": message["ReceiptHandle"],
        "body": message["Body"],
        "attributes": message.get("Attributes", {}),
        "messageAttributes": {
            name: _attribute(value) for name, value in message.get("MessageAttributes", {}).items()
        },
        "md5OfBody": message.get("MD5OfBody", ""),
        "eventSource": "aws:sqs",
        "eventSourceARN": queue_arn,
        "awsRegion": REGION,
    }


def _attribute(value: Mapping[str, Any]) -> dict[str, Any]:
    attribute: dict[str, Any] = {
        "stringListValues": [],
        "binaryListValues": [],
        "dataType": value["DataType"],
    }
    if "StringValue" in value:
        attribute["stringValue"] = value["StringValue"]
    if "BinaryValue" in value:
        attribute["binaryValue"] = base64.b64encode(value["BinaryValue"]).decode()
    return attribute
