"""What template.yaml declares, on moto, and its functions loaded as Lambda loads them: from their folder,
with the environment that the template gives.

Building, calling and looking; what must hold is in the tests.
"""

from __future__ import annotations

import copy
import importlib.util
import itertools
import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import boto3
import pytest
from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.dynamodb.models import dynamodb_backends
from moto.dynamodb.models.table import Table
from moto.sqs.models import sqs_backends

from baton import wiring
from baton.adapters.aws import Aws
from baton.adapters.dynamo.log import DynamoLog
from baton.core.log.codec import decode_entry
from baton.core.log.events import Entry
from baton.local.stack import Stack, StreamSource
from baton.local.template import Resolver, Template, effective, load
from baton.ports import Head, SagaRef
from tests.kit.table import create_table

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_s3.type_defs import CreateBucketConfigurationTypeDef
    from mypy_boto3_sns import SNSClient
    from mypy_boto3_sqs import SQSClient

ROOT = Path(__file__).parents[2]
EVENTS = ROOT / "events"
REGION: Final = "eu-central-1"
SHARDS = 4
_LOGICAL = {
    "api": "ApiFunction",
    "worker": "WorkerFunction",
    "relay": "RelayFunction",
    "reconciler": "ReconcilerFunction",
}
_numbers = itertools.count(1)
Item = dict[str, Any]


@cache
def _payload_text(function: str, name: str) -> str:
    """Read once: most requests are made from the same payload."""
    return (EVENTS / function / f"{name}.json").read_text("utf-8")


def payload(function: str, name: str) -> dict[str, Any]:
    """`events/<function>/<name>.json`: each time a document of its own."""
    loaded: dict[str, Any] = json.loads(_payload_text(function, name))
    return loaded


def payload_names(function: str) -> list[str]:
    return sorted(file.stem for file in (EVENTS / function).glob("*.json"))


def request_names() -> list[str]:
    """Of the payloads of the api function, those that are requests and no events of a bus."""
    return [name for name in payload_names("api") if "requestContext" in payload("api", name)]


@cache
def _template() -> Template:
    """Expanded once: the translator leaves references to parameters as they are."""
    return load(ROOT / "template.yaml", {})


@cache
def _clients() -> tuple[DynamoDBClient, SQSClient, S3Client]:
    """The tests' own; they cost more than the stores, which are made anew for each module."""
    return (
        boto3.client("dynamodb", region_name=REGION),
        boto3.client("sqs", region_name=REGION),
        boto3.client("s3", region_name=REGION),
    )


@cache
def _aws() -> Aws:
    """Of all functions: to create its clients would be most of what the loading of one takes."""
    return Aws()


@cache
def _sns() -> SNSClient:
    return boto3.client("sns", region_name=REGION)


@dataclass
class Context:
    """Lambda's context object, as far as the handlers use it; its time runs."""

    milliseconds: int = 15_000
    aws_request_id: str = field(default_factory=lambda: f"request-{next(_numbers)}")
    _born: float = field(default_factory=time.monotonic)

    def get_remaining_time_in_millis(self) -> int:
        return self.milliseconds - round((time.monotonic() - self._born) * 1_000)


class Deployment:
    """Table, bucket and queues on moto. `parameters` are the template's.

    What is looked up or set back is so in moto's own table: a request would cost more than most tests do.
    """

    def __init__(self, parameters: Mapping[str, str]) -> None:
        self.dynamodb, self.sqs, self._s3 = _clients()
        # Rates are counted in the table, and tests compare tables: only those of the rates switch it on.
        given = {"TenantRateLimit": "0", **parameters}
        self._resolver = Resolver(_template(), effective(_template(), given, {}))
        self.table = self._resolver.name("SagaTable")
        self._resolver.learn("HttpApi", "ApiEndpoint", "https://api.test")
        self._create()
        self.keep()
        self.log = DynamoLog(self.dynamodb, self.table, SHARDS)

    def _create(self) -> None:
        self.stream = create_table(self.dynamodb, self.table)
        self._resolver.learn("SagaTable", "StreamArn", self.stream)
        where: CreateBucketConfigurationTypeDef = {"LocationConstraint": REGION}
        self._s3.create_bucket(Bucket=self._resolver.name("BlobBucket"), CreateBucketConfiguration=where)
        for queue in ("WakeQueue", "WakeDeadLetterQueue", "RelayFailureQueue"):
            url = self.sqs.create_queue(QueueName=self._resolver.name(queue))["QueueUrl"]
            self._resolver.learn(queue, "Ref", url)
        # Where there is none, each notice is tried for seconds.
        topic = _sns().create_topic(Name=self._resolver.name("NoticesTopic"))["TopicArn"]
        self._resolver.learn("NoticesTopic", "Ref", topic)

    @contextmanager
    def function(self, name: str, **changed: str) -> Iterator[Any]:
        """The module `functions/<name>/app.py`, imported anew with its environment and what is changed of it."""
        variables = self._resolver.properties(_LOGICAL[name])["Environment"]["Variables"] | changed
        path = ROOT / "functions" / name / "app.py"
        spec = importlib.util.spec_from_file_location(f"app_of_{name}_{next(_numbers)}", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        with pytest.MonkeyPatch.context() as patch:
            for variable, value in variables.items():
                patch.setenv(variable, str(value))
            patch.setattr(wiring, "Aws", _aws)
            spec.loader.exec_module(module)
            try:
                yield module
            finally:
                del sys.modules[spec.name]

    def keep(self) -> None:
        """The items of now are what `reset` comes back to."""
        self._kept = copy.deepcopy(self._stored.items)

    def reset(self) -> None:
        """As it was at first, or when it was kept: these items, an empty stream, no messages."""
        self._stored.items = copy.deepcopy(self._kept)
        assert self._stored.stream_shard is not None
        self._stored.stream_shard.items.clear()
        for queue in ("WakeQueue", "WakeDeadLetterQueue", "RelayFailureQueue"):
            stored = sqs_backends[DEFAULT_ACCOUNT_ID][REGION].get_queue(self._resolver.name(queue))
            stored._messages, stored._pending_messages = [], set()

    @property
    def _stored(self) -> Table:
        return dynamodb_backends[DEFAULT_ACCOUNT_ID][REGION].tables[self.table]

    @cached_property
    def stream_source(self) -> StreamSource:
        """How Lambda reads the table's stream for the relay, as the template says."""
        (source,) = Stack(_template(), self._resolver).streams
        return source

    def make_due(self, ref: SagaRef, at: int) -> None:
        """As if its time had come at that moment, in epoch ms."""
        self.dynamodb.update_item(
            TableName=self.table,
            Key={"pk": {"S": str(ref)}, "sk": {"S": "HEAD"}},
            UpdateExpression="SET due_at = :at",
            ExpressionAttributeValues={":at": {"N": str(at)}},
        )

    # ---- looking

    def name(self, resource: str) -> str:
        return str(self._resolver.name(resource))

    def url(self, queue: str) -> str:
        return str(self._resolver.ref(queue, queue))

    def items(self) -> list[Item]:
        return [item.to_json()["Attributes"] for item in self._stored.all_items()]

    def saga_items(self, ref: SagaRef) -> dict[str, Item]:
        """All items of a saga, by sort key."""
        mine = [item for item in self.items() if item["pk"]["S"] == str(ref)]
        return {item["sk"]["S"]: item for item in mine}

    def head(self, ref: SagaRef) -> Head:
        head = self.log.read_head(ref)
        assert head is not None
        return head

    def entries(self, ref: SagaRef) -> list[Entry]:
        """The log of a saga, all branches, in order of versions."""
        records = [
            record
            for branch in range(self.head(ref).branch + 2)
            for record in self.log.read_tail(ref, branch, 0)
        ]
        return sorted((decode_entry(record.data) for record in records), key=lambda entry: entry.version)

    def messages(self, queue: str) -> list[dict[str, Any]]:
        """Take what a queue would hand out now: body, attributes, message attributes."""
        found: list[dict[str, Any]] = []
        while True:
            answer = self.sqs.receive_message(
                QueueUrl=self.url(queue),
                MaxNumberOfMessages=10,
                AttributeNames=["All"],
                MessageAttributeNames=["All"],
            )
            if not answer.get("Messages"):
                return found
            for message in answer["Messages"]:
                self.sqs.delete_message(QueueUrl=self.url(queue), ReceiptHandle=message["ReceiptHandle"])
                found.append(dict(message))

    def dead_letters(self) -> list[tuple[str, str]]:
        """Take them, as (body, reason)."""
        return [
            (message["Body"], message["MessageAttributes"]["reason"]["StringValue"])
            for message in self.messages("WakeDeadLetterQueue")
        ]


class Interference:
    """botocore hooks on a client: what it asks for, and answers given in the service's place."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._service = client.meta.service_model.service_id.hyphenize()

    @contextmanager
    def watching(self, operation: str) -> Iterator[list[dict[str, Any]]]:
        """The parameters of every request of that kind, as they are made."""
        seen: list[dict[str, Any]] = []
        with self._hook(
            f"provide-client-params.{self._service}.{operation}", lambda params, **_: seen.append(params)
        ):
            yield seen

    @contextmanager
    def answering(self, operation: str, answer: Callable[[int], Any]) -> Iterator[list[float]]:
        """`answer(n)` is the n-th answer (from 1), as (status, document); None lets the request through.

        Yields the moments of the requests, in seconds.
        """
        moments: list[float] = []

        def hook(**_: Any) -> Any:
            moments.append(time.monotonic())
            given = answer(len(moments))
            if given is None:
                return None
            status, document = given
            return _Http(status), {**document, "ResponseMetadata": {"HTTPStatusCode": status}}

        with self._hook(f"before-call.{self._service}.{operation}", hook):
            yield moments

    @contextmanager
    def losing(self, operation: str, count: int) -> Iterator[None]:
        """The first `count` requests are carried out, and instead of their answers there comes a fault."""
        left = count

        def hook(http_response: Any, parsed: dict[str, Any], **_: Any) -> None:
            nonlocal left
            if left:
                left -= 1
                http_response.status_code = 500
                parsed["Error"] = {"Code": "InternalServerError", "Message": "no answer"}
                parsed["ResponseMetadata"] = {"HTTPStatusCode": 500}

        with self._hook(f"after-call.{self._service}.{operation}", hook):
            yield

    @contextmanager
    def _hook(self, event: str, hook: Callable[..., Any]) -> Iterator[None]:
        events = self._client.meta.events
        events.register_first(event, hook)
        try:
            yield
        finally:
            events.unregister(event, hook)


@dataclass(frozen=True)
class _Http:
    status_code: int


def throttled() -> tuple[int, dict[str, Any]]:
    """What DynamoDB says when it is asked for too much."""
    code = "ProvisionedThroughputExceededException"
    return 400, {"Error": {"Code": code, "Message": "The level of configured provisioned throughput ..."}}


def changed(document: Mapping[str, Any], **changes: Any) -> dict[str, Any]:
    """A deep copy with some keys set."""
    return copy.deepcopy(dict(document)) | changes
