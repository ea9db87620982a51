"""A table's stream: what the filter lets through, in order, repeated when it fails, set aside in the end."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from baton.local.run import LocalRun
from tests.local.project import Scenario, client, received, shared_run, until, write_project

pytestmark = pytest.mark.e2e
ONLY_STREAM = frozenset({"queue", "schedule"})


@pytest.fixture(scope="module")
def play(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[Scenario], None]]:
    with shared_run(write_project(tmp_path_factory.mktemp("stream")), switched_off=ONLY_STREAM) as play:
        yield play


async def put(run: LocalRun, key: str, wake: dict[str, Any] | None = None) -> None:
    item: dict[str, Any] = {"pk": {"S": key}, "blob": {"B": b"\xff"}}
    if wake is not None:
        item["wake"] = {"S": json.dumps(wake)}
    await asyncio.to_thread(client(run, "dynamodb").put_item, TableName=run.physical["Table"], Item=item)


def keys(run: LocalRun, before: int) -> list[str]:
    """The keys of each batch after so many invocations, oldest first."""
    return [
        "".join(record["dynamodb"]["Keys"]["pk"]["S"] for record in invocation.event["Records"])
        for invocation in run.invocations[before:]
        if invocation.trigger == "stream"
    ]


def test_only_matching_items_arrive_and_a_failed_one_is_repeated_before_those_behind_it(
    play: Callable[[Scenario], None],
) -> None:
    async def scenario(run: LocalRun) -> None:
        before = len(run.invocations)
        await put(run, "x")
        await put(run, "a", {"do": "nothing"})
        await until(lambda: keys(run, before) == ["a"])
        record = run.invocations[before].event["Records"][0]
        assert record["dynamodb"]["NewImage"]["blob"] == {"B": "/w=="}
        assert record["eventSource"] == "aws:dynamodb"
        await put(run, "b", {"do": "fail once"})
        await put(run, "y")
        await put(run, "c", {"do": "nothing"})
        await until(
            lambda: "".join(keys(run, before)).count("b") == 2 and keys(run, before)[-1].endswith("c")
        )
        # `c` may have been read together with `b`, or after it had succeeded; never before.
        assert keys(run, before) in (["a", "bc", "bc"], ["a", "b", "b", "c"])

    play(scenario)


def test_a_record_that_never_succeeds_is_described_in_the_failure_queue_and_the_stream_goes_on(
    play: Callable[[Scenario], None],
) -> None:
    async def scenario(run: LocalRun) -> None:
        before = len(run.invocations)
        await put(run, "a", {"do": "raise"})
        letter = json.loads((await received(run, "Failures"))["Body"])
        assert letter["requestContext"]["condition"] == "RetryAttemptsExhausted"
        assert letter["requestContext"]["approximateInvokeCount"] == 2
        assert letter["DDBStreamBatchInfo"]["batchSize"] == 1
        await put(run, "b", {"do": "nothing"})
        await until(lambda: keys(run, before)[-1:] == ["b"])

    play(scenario)
