"""Evidence of a run as plain data: the API, the local Lambda, the services' books, and the table."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from baton.client.api import Api
from baton.client.transport import Reader
from baton.local.aws import Aws
from baton.local.processes import InvocationRecord

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


class Books:
    """The books of all services of a run."""

    def __init__(self, reader: Reader, services: Sequence[str]) -> None:
        self._reader = reader
        self._services = services

    async def all(self) -> list[dict[str, Any]]:
        """Return every book, complete."""
        return list(await asyncio.gather(*(self._reader.get(f"{url}/books") for url in self._services)))

    async def unanswered(self) -> list[dict[str, Any]]:
        """Return the effects carried out so far whose callers have not received the answer."""
        pages = (self._reader.get(f"{url}/books/unanswered") for url in self._services)
        return [effect for page in await asyncio.gather(*pages) for effect in page["effects"]]

    async def switch(self, place: str, faults: Sequence[Any]) -> None:
        """Set the faults of a place from now on, in each service that knows the operations."""
        await asyncio.gather(*(self._reader.put(f"{url}/faults/{place}", faults) for url in self._services))


WRITE_UNIT_BYTES = 1024
_KINDS = {"HEAD": "head", "LOG": "entry", "SNAP": "snapshot", "V": "definition", "EFFECT": "effect"}


def count_items(client: DynamoDBClient, table: str) -> tuple[dict[str, int], dict[str, int], int]:
    """Return the items and write units by kind, and the sum of epochs, which only takes raise."""
    counts: Counter[str] = Counter()
    units: Counter[str] = Counter()
    takes = 0
    for page in client.get_paginator("scan").paginate(TableName=table, ConsistentRead=True):
        for item in page["Items"]:
            kind = item_kind(str(item.get("sk", {}).get("S", "")))
            counts[kind] += 1
            units[kind] += -(-item_bytes(item) // WRITE_UNIT_BYTES)
            if kind == "head":
                takes += int(item.get("epoch", {}).get("N", "0"))
    return dict(counts), dict(units), takes


def lease_owner(client: DynamoDBClient, table: str, tenant: str, saga: str) -> str:
    """Return the worker that holds a saga's lease, empty without. The log names only the last writer."""
    key = {"pk": {"S": f"T#{tenant}#SAGA#{saga}"}, "sk": {"S": "HEAD"}}
    head = client.get_item(TableName=table, Key=key, ConsistentRead=True).get("Item", {})
    return head.get("owner", {}).get("S", "")


def item_kind(sort_key: str) -> str:
    """Return the kind of item of a sort key."""
    return _KINDS.get(sort_key.partition("#")[0], "other")


def item_bytes(item: Mapping[str, Any]) -> int:
    """Return the bytes of an item as DynamoDB counts them, for the types used here: S, N, B, BOOL."""
    return sum(len(name.encode()) + _value_size(value) for name, value in item.items())


def _value_size(value: Mapping[str, Any]) -> int:
    (kind, content), *_ = value.items()
    if kind == "S":
        return len(content.encode())
    if kind == "N":
        # Two digits to a byte, and a byte for the exponent.
        return (len(content.lstrip("-").replace(".", "")) + 1) // 2 + 1
    return len(content) if kind == "B" else 1


Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Kill:
    """A worker process killed during `request_id`, after an `effect` for `saga`, or without both."""

    pid: int
    request_id: str
    at_ms: int
    busy_ms: int
    moment: str
    saga: str = ""
    effect: str = ""


@dataclass(slots=True)
class Course:
    """Actions on the system, in order, recorded while the scenario runs."""

    expected_steps: int = 0
    asked_to_end_by_ms: int = 0
    started_ms: int = 0
    ended_ms: int = 0
    sagas: list[str] = field(default_factory=list)
    kills: list[Kill] = field(default_factory=list)
    kills_wanted: int = 0
    planning: str = ""
    cancelled: str = ""
    cancelled_ms: int = 0
    asking: str = ""
    approved_ms: int = 0
    changed_ms: int = 0
    falling: str = ""

    def is_planned(self, saga: str) -> bool:
        """Return true for the saga of the guest who began with words, and for its children."""
        return bool(self.planning) and saga.partition(".")[0] == self.planning


@dataclass(frozen=True, slots=True)
class FunctionRun:
    """One run of a function. `wakes`: number of messages; `changes`: true if a request changed something."""

    function: str
    request_id: str
    outcome: str
    cold: bool
    duration_ms: float
    wakes: int = 0
    changes: bool = True


@dataclass(frozen=True, slots=True)
class Items:
    """Contents of the table: items and write units by kind, and takes as counted by the heads."""

    counts: dict[str, int]
    units: dict[str, int]
    takes: int


@dataclass(frozen=True, slots=True)
class Evidence:
    """All evidence of a run. `models`: book of the models' provider. Documents are as served."""

    course: Course
    sagas: list[Json]
    logs: dict[str, list[Json]]
    books: list[Json]
    invocations: list[FunctionRun]
    items: Items
    memory_mb: dict[str, int]
    models: list[Json]

    def save(self, path: Path) -> None:
        """Write the evidence to a file, so that each figure can be checked manually."""
        path.write_text(
            json.dumps(dataclasses.asdict(self), indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
        )

    @classmethod
    def load(cls, path: Path) -> Evidence:
        """Read the evidence from a file that `save` has written."""
        data = json.loads(path.read_text(encoding="utf-8"))
        course = data["course"]
        course["kills"] = [Kill(**kill) for kill in course["kills"]]
        return cls(
            course=Course(**course),
            sagas=data["sagas"],
            logs=data["logs"],
            books=data["books"],
            invocations=[FunctionRun(**item) for item in data["invocations"]],
            items=Items(**data["items"]),
            memory_mb=data["memory_mb"],
            models=data["models"],
        )


async def collect(
    api: Api,
    course: Course,
    books: Books,
    models: Books,
    invocations: Iterable[InvocationRecord],
    aws: Aws,
    table: str,
    memory_mb: dict[str, int],
) -> Evidence:
    """Collect the evidence once, after the last saga has ended."""
    planned = await _log(api, course.planning)
    opened = [event for entry in planned for event in entry["events"] if event["kind"] == "child_opened"]
    known = [*course.sagas, *(event["child"] for event in opened)]
    sagas, logs, books_read, asked, items = await asyncio.gather(
        asyncio.gather(*(api.show(saga) for saga in course.sagas)),
        asyncio.gather(*(_log(api, saga) for saga in known)),
        books.all(),
        models.all(),
        aws.call(count_items, aws.dynamodb, table),
    )
    return Evidence(
        course=course,
        sagas=list(sagas),
        logs=dict(zip(known, logs, strict=True)),
        books=books_read,
        invocations=[reduce_invocation(item) for item in invocations],
        items=Items(*items),
        memory_mb=memory_mb,
        models=asked,
    )


async def _log(api: Api, saga: str) -> list[Json]:
    return [entry async for entry in api.events(saga)]


def reduce_invocation(raw: InvocationRecord) -> FunctionRun:
    """Return the part of an invocation that the figures need, without its whole event."""
    event = raw.event if isinstance(raw.event, Mapping) else {}
    records = event.get("Records")
    wakes = len(records) if isinstance(records, list) else 0
    http = (
        event.get("requestContext", {}).get("http", {})
        if isinstance(event.get("requestContext"), Mapping)
        else {}
    )
    return FunctionRun(
        function=raw.function,
        request_id=raw.request_id,
        outcome=raw.outcome,
        cold=raw.cold,
        duration_ms=raw.duration_ms,
        wakes=wakes,
        changes=http.get("method", "POST") != "GET",
    )


def request_of(invocation: str) -> str:
    """Return the Lambda request id in a worker's name: `<request id>.<its own suffix>`."""
    return invocation.partition(".")[0]


def tally(values: Iterable[str]) -> dict[str, int]:
    """Return the frequency of each value, most frequent first, and equally frequent ones by name."""
    return dict(sorted(Counter(values).items(), key=lambda pair: (-pair[1], pair[0])))
