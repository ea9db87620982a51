"""A table's stream: what the filter lets through, in order, repeated when it fails, set aside in the end."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from baton.local.run import LocalRun
from tests.local.project import client, received, until, write_project

pytestmark = pytest.mark.e2e
ONLY_STREAM = frozenset({"queue", "schedule"})


async def put(run: LocalRun, key: str, wake: dict[str, Any] | None = None) -> None:
    item: dict[str, Any] = {"pk": {"S": key}, "blob": {"B": b"\xff"}}
    if wake is not None:
        item["wake"] = {"S": json.dumps(wake)}
    await asyncio.to_thread(client(run, "dynamodb").put_item, TableName=run.physical["Table"], Item=item)


def keys(run: LocalRun) -> list[str]:
    """The keys of each batch, oldest first."""
    return [
        "".join(record["dynamodb"]["Keys"]["pk"]["S"] for record in invocation.event["Records"])
        for invocation in run.invocations
        if invocation.trigger == "stream"
    ]


def test_only_matching_items_arrive_and_a_failed_one_is_repeated_before_those_behind_it(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        async with LocalRun(write_project(tmp_path), switched_off=ONLY_STREAM) as run:
            await put(run, "x")
            await put(run, "a", {"do": "nothing"})
            await until(lambda: keys(run) == ["a"])
            record = run.invocations[0].event["Records"][0]
            assert record["dynamodb"]["NewImage"]["blob"] == {"B": "/w=="}
            assert record["eventSource"] == "aws:dynamodb"
            await put(run, "b", {"do": "fail once"})
            await put(run, "y")
            await put(run, "c", {"do": "nothing"})
            await until(lambda: "".join(keys(run)).count("b") == 2 and keys(run)[-1].endswith("c"))
            # `c` may have been read together with `b`, or after it had succeeded; never before.
            assert keys(run) in (["a", "bc", "bc"], ["a", "b", "b", "c"])

    asyncio.run(scenario())


def test_a_record_that_never_succeeds_is_described_in_the_failure_queue_and_the_stream_goes_on(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        async with LocalRun(write_project(tmp_path), switched_off=ONLY_STREAM) as run:
            await put(run, "a", {"do": "raise"})
            letter = json.loads((await received(run, "Failures"))["Body"])
            assert letter["requestContext"]["condition"] == "RetryAttemptsExhausted"
            assert letter["requestContext"]["approximateInvokeCount"] == 2
            assert letter["DDBStreamBatchInfo"]["batchSize"] == 1
            await put(run, "b", {"do": "nothing"})
            await until(lambda: keys(run)[-1:] == ["b"])

    asyncio.run(scenario())
