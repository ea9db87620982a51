"""What becomes of stream records whose batch fails: retried in order, halved, or set aside with a reason.

The function is a scripted one and the clock stands still; polling and processes are not involved.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
from collections.abc import Callable, Sequence
from typing import Any

from baton.local.functions import Throttled
from baton.local.sandbox import InvocationResult
from baton.local.stack import Filters, StreamSource
from baton.local.streams import BatchRunner, Condition, Record, describe

NOW = 1_000_000.0
Answer = Callable[[list[str]], Any]
SOURCE = StreamSource(
    logical_id="Outbox",
    function="Relay",
    arn="arn:aws:dynamodb:us-east-1:000000000000:table/t/stream/s",
    batch_size=4,
    window_s=0,
    partial=True,
    start="TRIM_HORIZON",
    bisect=False,
    parallel=1,
    retries=2,
    max_age_s=None,
    on_failure_url="",
    filters=Filters([]),
)


def records(*numbers: str, age_s: float = 0) -> list[Record]:
    return [
        {"dynamodb": {"SequenceNumber": number, "ApproximateCreationDateTime": NOW - age_s}}
        for number in numbers
    ]


def failures(*numbers: str) -> dict[str, Any]:
    return {"batchItemFailures": [{"itemIdentifier": number} for number in numbers]}


class Run:
    """One run of a `BatchRunner` over scripted answers; an exception as an answer is a failed invocation."""

    def __init__(self, answer: Answer, batch: Sequence[Record], **changes: Any) -> None:
        self.seen: list[str] = []
        self.pauses: list[float] = []
        self.set_aside: list[tuple[str, Condition, int]] = []
        self._answer = answer
        runner = BatchRunner(
            dataclasses.replace(SOURCE, **changes),
            invoke=self._invoke,
            set_aside=self._aside,
            sleep=self._sleep,
            now=lambda: NOW,
        )
        asyncio.run(runner.run("shard", batch))

    async def _invoke(self, event: dict[str, Any]) -> InvocationResult:
        numbers = [record["dynamodb"]["SequenceNumber"] for record in event["Records"]]
        self.seen.append("".join(numbers))
        answer = self._answer(numbers)
        if isinstance(answer, Throttled):
            raise answer
        if isinstance(answer, Exception):
            return InvocationResult("r", "error", b"{}")
        return InvocationResult("r", "ok", json.dumps(answer).encode())

    async def _aside(
        self, _shard: str, batch: Sequence[Record], condition: Condition, _request: str, attempts: int
    ) -> None:
        numbers = "".join(record["dynamodb"]["SequenceNumber"] for record in batch)
        self.set_aside.append((numbers, condition, attempts))

    async def _sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)


def test_records_come_in_order_in_batches_of_the_given_size() -> None:
    run = Run(lambda _: {}, records(*"abcdef"))
    assert run.seen == ["abcd", "ef"]


def test_a_partial_failure_repeats_everything_from_the_lowest_reported_record() -> None:
    first = iter([failures("d", "b"), {}])
    run = Run(lambda _: next(first), records(*"abcd"))
    assert run.seen == ["abcd", "bcd"]
    assert run.set_aside == []


def test_a_batch_that_always_fails_is_set_aside_after_its_retries_and_the_next_one_follows() -> None:
    run = Run(lambda seen: ValueError() if "a" in seen else {}, records(*"abcdef"))
    assert run.seen == ["abcd", "abcd", "abcd", "ef"]
    assert run.set_aside == [("abcd", "RetryAttemptsExhausted", 3)]
    assert run.pauses == [0.2, 0.4]


def test_progress_gives_the_rest_its_full_number_of_retries() -> None:
    run = Run(lambda seen: failures("c") if "c" in seen else {}, records(*"abcd"))
    assert run.seen == ["abcd", "cd", "cd", "cd"]
    assert run.set_aside == [("cd", "RetryAttemptsExhausted", 3)]


def test_bisecting_isolates_the_one_record_that_fails_its_batch() -> None:
    run = Run(lambda seen: ValueError() if "c" in seen else {}, records(*"abcd"), bisect=True, retries=1)
    assert run.seen == ["abcd", "ab", "cd", "c", "c", "d"]
    assert run.set_aside == [("c", "RetryAttemptsExhausted", 2)]


def test_a_malformed_answer_fails_the_whole_batch() -> None:
    run = Run(lambda _: {"batchItemFailures": [{"itemIdentifier": "z"}]}, records("a"), retries=0)
    assert run.set_aside == [("a", "RetryAttemptsExhausted", 1)]


def test_records_that_are_too_old_are_set_aside_without_being_tried() -> None:
    run = Run(lambda _: {}, [*records("a", age_s=61), *records("b")], max_age_s=60.0)
    assert run.seen == ["b"]
    assert run.set_aside == [("a", "RecordAgeExceeded", 0)]


def test_being_throttled_is_not_an_attempt() -> None:
    answers = iter([Throttled("f"), Throttled("f"), {}])
    run = Run(lambda _: next(answers), records("a"), retries=0)
    assert run.seen == ["a", "a", "a"]
    assert run.set_aside == []


def test_the_document_for_the_failure_queue_names_the_records_and_does_not_contain_them() -> None:
    document = describe(SOURCE, "arn:f", "shard", records(*"ab"), "RecordAgeExceeded", "request", 0)
    assert document["requestContext"] == {
        "requestId": "request",
        "functionArn": "arn:f",
        "condition": "RecordAgeExceeded",
        "approximateInvokeCount": 0,
    }
    assert document["DDBStreamBatchInfo"] == {
        "shardId": "shard",
        "startSequenceNumber": "a",
        "endSequenceNumber": "b",
        "approximateArrivalOfFirstRecord": "1970-01-12T13:46:40.000Z",
        "approximateArrivalOfLastRecord": "1970-01-12T13:46:40.000Z",
        "batchSize": 2,
        "streamArn": SOURCE.arn,
    }
