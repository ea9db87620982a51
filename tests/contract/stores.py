"""Every adapter behind one face: the ports of one backend, and a look at what they left behind.

Building and looking only; what must hold is in the tests.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec
from boto3.dynamodb.types import TypeDeserializer

from baton.adapters.aws import Aws
from baton.adapters.channels.sns import SnsNotices
from baton.adapters.clock import SystemClock
from baton.adapters.dynamo.budgets import DynamoBudgets
from baton.adapters.dynamo.items import image_wake
from baton.adapters.dynamo.store import DynamoStore
from baton.adapters.memory.people import MemoryNotices
from baton.adapters.memory.queues import MemoryDeadLetters, MemoryQueue
from baton.adapters.memory.store import MemoryBlobs, MemoryBudgets, MemoryStore
from baton.adapters.queues import SqsDeadLetters, SqsQueue
from baton.adapters.s3 import S3Blobs
from baton.ports import (
    Blobs,
    Budgets,
    DeadLetters,
    Definition,
    Definitions,
    Effects,
    Head,
    Inbox,
    Live,
    Log,
    NoticeRecord,
    Questions,
    Queue,
    Rates,
    Record,
    Release,
    SagaRef,
    Store,
    Wake,
)
from baton.ports.people import Notices
from tests.kit.ministack import patient
from tests.kit.table import create_bucket, create_table

if TYPE_CHECKING:
    from mypy_boto3_dynamodbstreams import DynamoDBStreamsClient

    from baton.ports.operators import Breakers

SHARDS = 4
REGION: Final = "eu-central-1"
SAGA = SagaRef(tenant="acme", id="dinner-1")
OTHER = SagaRef(tenant="acme", id="dinner-2")
_numbers = itertools.count(1)


class Stores(Protocol):
    """One backend. What it makes is made when it is first asked for."""

    @property
    def store(self) -> Store: ...

    @property
    def log(self) -> Log:
        return self.store.log

    @property
    def inbox(self) -> Inbox:
        return self.store.inbox

    @property
    def definitions(self) -> Definitions:
        return self.store.definitions

    @property
    def rates(self) -> Rates:
        return self.store.rates

    @property
    def breakers(self) -> Breakers:
        return self.store.breakers

    @property
    def effects(self) -> Effects:
        return self.store.effects

    @property
    def budgets(self) -> Budgets:
        return self.store.budgets

    @property
    def notice_record(self) -> NoticeRecord:
        return self.store.notice_record

    @property
    def live(self) -> Live:
        return self.store.live

    @property
    def questions(self) -> Questions:
        return self.store.questions

    @property
    def blobs(self) -> Blobs: ...

    @property
    def notices(self) -> Notices: ...

    def told(self) -> list[dict[str, str]]:
        """The notices sent so far: the attributes of each notice that are not empty, and its message."""
        ...

    @property
    def queue(self) -> Queue: ...

    @property
    def dead_letters(self) -> DeadLetters: ...

    def wakes(self) -> list[tuple[SagaRef, Wake]]:
        """The stream so far, as far as the relay's filter lets it through."""
        ...

    def visible(self) -> list[str]:
        """Take the bodies that the queue would hand out now."""
        ...

    def letters(self) -> list[tuple[str, str]]:
        """Take the dead letters, as (body, reason)."""
        ...

    def overwrite_blob(self, tenant: str, ref: str, data: bytes) -> None: ...

    def rows(self, tenant: str) -> dict[tuple[str, str], Any]:
        """A tenant's own rows: (key, sort) to attributes."""
        ...


class StillClock:
    """A clock that stands."""

    def now(self) -> int:
        return 1_000_000


class LocalStores(Stores):
    """A store in this process, and everything else in memory. `wakes` and `rows` are the store's."""

    @cached_property
    def blobs(self) -> MemoryBlobs:
        return MemoryBlobs()

    @cached_property
    def notices(self) -> MemoryNotices:
        return MemoryNotices()

    @cached_property
    def queue(self) -> MemoryQueue:
        return MemoryQueue(StillClock())

    @cached_property
    def dead_letters(self) -> MemoryDeadLetters:
        return MemoryDeadLetters()

    def visible(self) -> list[str]:
        return [msgspec.json.encode(message).decode() for message in self.queue.receive()]

    def letters(self) -> list[tuple[str, str]]:
        return self.dead_letters.letters

    def told(self) -> list[dict[str, str]]:
        return [
            {
                "tenant": told.tenant,
                "saga": told.saga,
                "user": told.user,
                **{
                    name: getattr(told.notice, name) for name in ("node", "to", "code", "severity", "message")
                },
            }
            for told in self.notices.told
        ]

    def overwrite_blob(self, tenant: str, ref: str, data: bytes) -> None:
        self.blobs.stored[tenant, ref] = data


class MemoryStores(LocalStores):
    """The adapters in memory."""

    def __init__(self) -> None:
        self._stream: list[tuple[SagaRef, Wake]] = []

    @cached_property
    def store(self) -> MemoryStore:
        return MemoryStore(SHARDS, clock=SystemClock())

    def a_small_budgets(self, most_open: int) -> Budgets:
        return MemoryBudgets(most_open)

    def wakes(self) -> list[tuple[SagaRef, Wake]]:
        self._stream += self.store.log.drain()
        return self._stream

    def rows(self, tenant: str) -> dict[tuple[str, str], Any]:
        return {(key, sort): row for (of, key, sort), row in self.store.log.rows.items() if of == tenant}


class AwsStores(Stores):
    """The AWS adapters, on a table, a bucket and queues of their own."""

    def __init__(self, aws: Aws, streams: DynamoDBStreamsClient) -> None:
        self._aws = aws
        self._streams = streams
        self._name = f"contract-{next(_numbers)}"
        self._stream = ""
        self._told: list[dict[str, str]] = []

    @cached_property
    def _table(self) -> str:
        self._stream = create_table(self._aws.dynamodb, self._name)
        return self._name

    @cached_property
    def _bucket(self) -> str:
        create_bucket(self._aws.s3, self._name)
        return self._name

    @cached_property
    def _wake_url(self) -> str:
        return patient(self._aws.sqs).create_queue(QueueName=self._name)["QueueUrl"]

    @cached_property
    def _dead_url(self) -> str:
        return patient(self._aws.sqs).create_queue(QueueName=f"{self._name}-dead")["QueueUrl"]

    @cached_property
    def store(self) -> DynamoStore:
        return DynamoStore(self._aws.dynamodb, self._table, SHARDS)

    @cached_property
    def blobs(self) -> Blobs:
        return S3Blobs(self._aws.s3, self._bucket)

    def a_small_budgets(self, most_open: int) -> Budgets:
        return DynamoBudgets(self._aws.dynamodb, self._table, most_open)

    @cached_property
    def topic(self) -> str:
        """A topic that sends everything on to a queue."""
        arn = patient(self._aws.sns).create_topic(Name=self._name)["TopicArn"]
        asked = self._aws.sqs.get_queue_attributes(QueueUrl=self._told_url, AttributeNames=["QueueArn"])
        self._aws.sns.subscribe(
            TopicArn=arn,
            Protocol="sqs",
            Endpoint=asked["Attributes"]["QueueArn"],
            Attributes={"RawMessageDelivery": "true"},
        )
        return arn

    @cached_property
    def _told_url(self) -> str:
        return patient(self._aws.sqs).create_queue(QueueName=f"{self._name}-told")["QueueUrl"]

    @cached_property
    def notices(self) -> Notices:
        return SnsNotices(self._aws.sns, self.topic)

    def told(self) -> list[dict[str, str]]:
        assert self.topic
        for message in self._received(self._told_url):
            attributes = message["MessageAttributes"].items()
            text, facts = message["Body"].split("\n\n")
            told = {name: value["StringValue"] for name, value in attributes}
            assert all(f"{name}: {value}\n" in facts for name, value in told.items())
            self._told.append(told | {"message": text})
        return self._told

    def scan(self) -> Sequence[Any]:
        """All items of the table."""
        return self._aws.dynamodb.scan(TableName=self._table)["Items"]

    @cached_property
    def queue(self) -> Queue:
        return SqsQueue(self._aws.sqs, self._wake_url)

    @cached_property
    def dead_letters(self) -> DeadLetters:
        return SqsDeadLetters(self._aws.sqs, self._dead_url)

    def wakes(self) -> list[tuple[SagaRef, Wake]]:
        images: list[Any] = []
        shards = self._streams.describe_stream(StreamArn=self._stream)["StreamDescription"]["Shards"]
        for shard in shards:
            iterator = self._streams.get_shard_iterator(
                StreamArn=self._stream, ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON"
            )["ShardIterator"]
            records = self._streams.get_records(ShardIterator=iterator)["Records"]
            images += [record["dynamodb"].get("NewImage", {}) for record in records]
        return [image_wake(image) for image in images if "wake" in image]

    def visible(self) -> list[str]:
        return [message["Body"] for message in self._received(self._wake_url)]

    def groups(self) -> list[str]:
        """Of the messages that the queue would hand out now."""
        return [message["Attributes"]["MessageGroupId"] for message in self._received(self._wake_url)]

    def letters(self) -> list[tuple[str, str]]:
        return [
            (message["Body"], message["MessageAttributes"]["reason"]["StringValue"])
            for message in self._received(self._dead_url)
        ]

    def _received(self, url: str) -> Sequence[Any]:
        # Receiving is not part of any port: the messages stay invisible afterwards, as for a worker.
        found: list[Any] = []
        while True:
            answer = self._aws.sqs.receive_message(
                QueueUrl=url,
                MaxNumberOfMessages=10,
                MessageAttributeNames=["All"],
                AttributeNames=["MessageGroupId"],
            )
            if not answer.get("Messages"):
                return found
            found += answer["Messages"]

    def overwrite_blob(self, tenant: str, ref: str, data: bytes) -> None:
        digest, _, period = ref.removeprefix("cas://sha256/").partition("@")
        begin = period.replace("d", "d/") + "/" if period else ""
        self._aws.s3.put_object(Bucket=self._bucket, Key=f"{begin}T/{tenant}/sha256/{digest}", Body=data)

    def rows(self, tenant: str) -> dict[tuple[str, str], Any]:
        prefix = f"T#{tenant}#ROW#"
        found = {}
        for item in self._aws.dynamodb.scan(TableName=self._table)["Items"]:
            plain = {name: TypeDeserializer().deserialize(value) for name, value in item.items()}
            pk, sk = plain.pop("pk"), plain.pop("sk")
            if pk.startswith(prefix):
                found[pk.removeprefix(prefix), sk] = plain
        return found


def a_head(ref: SagaRef = SAGA, **changes: Any) -> Head:
    fields: dict[str, Any] = {
        "ref": ref,
        "workflow": "dinner",
        "graph": "9f86d081",
        "user": "ada",
        "created": 1_000,
        "start_hash": "2c26b46b",
        "start": b'{"kind":"saga.started"}',
        "due_at": 61_000,
    }
    return Head(**fields | changes)


def a_release(**changes: Any) -> Release:
    fields: dict[str, Any] = {
        "folded": 1,
        "status": "running",
        "group": "open",
        "group_at": None,
        "branch": 0,
        "snapshot": 0,
        "due_at": 300_000,
        "armed": 0,
    }
    return Release(**fields | changes)


def an_entry(version: int, data: bytes = b'{"kind":"step.completed"}', branch: int = 0) -> Record:
    return Record(branch=branch, version=version, data=data)


def as_written(record: Record | None) -> Record | None:
    """Without the size, which only what was read has."""
    return None if record is None else msgspec.structs.replace(record, size=0)


def a_definition(name: str = "dinner", version: int = 1, **changes: Any) -> Definition:
    fields: dict[str, Any] = {
        "tenant": "acme",
        "graph": "9f86d081",
        "document": "cas://sha256/00",
        "created": 1_000,
        "by": "ada",
    }
    return Definition(name=name, version=version, **fields | changes)
