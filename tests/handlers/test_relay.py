"""The relay function against every payload in events/relay, and against real records of a table's stream."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from typing import Any

import boto3
import pytest

from baton.core.log.events import ChildReported
from baton.local.sandbox import InvocationResult
from baton.local.streams import BatchRunner, Record, event_record
from baton.ports import SagaRef
from tests.handlers.deployment import (
    REGION,
    Context,
    Deployment,
    Interference,
    payload,
    payload_names,
    throttled,
)
from tests.handlers.pauses import Pauses
from tests.handlers.sagas import ADA, GRACE, batch, begin, failures
from tests.handlers.workers import Worker

PARAMETERS = {"AppModule": "tests.kit.app.trial"}
MINUTE = 60_000
_WRITTEN_S = 1_767_225_600.0  # when the payloads' records were written


class Relay:
    """`module` is the imported functions/relay/app.py."""

    def __init__(self, module: Any) -> None:
        self.module = module
        self.queue = Interference(module._relay._queue._client)
        self.table = Interference(module._relay._inbox._client)

    def send(self, event: dict[str, Any], milliseconds: int = 15_000) -> list[str]:
        """Call the handler; the sequence numbers from which the stream must deliver again."""
        return failures(json.loads(json.dumps(self.module.handler(event, Context(milliseconds)))))


@pytest.fixture(scope="module")
def shared_relay(shared_deployment: Deployment) -> Iterator[Relay]:
    with shared_deployment.function("relay") as module:
        yield Relay(module)
        module._loop.close()


@pytest.fixture
def relay(shared_relay: Relay, deployment: Deployment) -> Relay:
    return shared_relay


def sent(deployment: Deployment) -> list[Any]:
    return [json.loads(message["Body"]) for message in deployment.messages("WakeQueue")]


def message(ref: SagaRef, version: int) -> dict[str, Any]:
    return {"saga": str(ref), "v": version}


def waking(event: dict[str, Any], **wake: Any) -> dict[str, Any]:
    """The event with another wake in its last record."""
    event["Records"][-1]["dynamodb"]["NewImage"]["wake"]["S"] = json.dumps(wake)
    return event


def test_every_payload_has_a_test_of_its_own() -> None:
    assert payload_names("relay") == ["batch", "children", "entry", "head", "poison", "timer"]


# ---- wakes become messages


@pytest.mark.parametrize(("name", "version"), [("entry", 1), ("head", 4), ("timer", 4)])
def test_a_wake_becomes_one_message(name: str, version: int, relay: Relay, deployment: Deployment) -> None:
    assert relay.send(payload("relay", name)) == []
    assert sent(deployment) == [message(ADA, version)]


def test_of_several_wakes_of_a_saga_the_newest_says_it_all(relay: Relay, deployment: Deployment) -> None:
    assert relay.send(payload("relay", "batch")) == []
    assert sorted(sent(deployment), key=str) == [message(ADA, 5), message(GRACE, 7)]


@pytest.mark.parametrize(
    ("ahead_ms", "delay_s"),
    [(-MINUTE, 0), (0, 0), (5 * MINUTE, 300), (14 * MINUTE, 840)],
)
def test_a_wake_for_later_is_delayed_to_the_second(
    ahead_ms: int, delay_s: int, relay: Relay, deployment: Deployment
) -> None:
    at = relay.module._relay.clock.now() + ahead_ms
    with relay.queue.watching("SendMessageBatch") as requests:
        assert relay.send(waking(payload("relay", "timer"), v=4, at=at)) == []
    ((entry,),) = [request["Entries"] for request in requests]
    assert entry["DelaySeconds"] in (delay_s, delay_s - 1)
    assert json.loads(entry["MessageBody"]) == message(ADA, 4)


def test_a_wake_further_away_than_a_message_can_wait_is_left_to_the_reconciler(
    relay: Relay, deployment: Deployment
) -> None:
    at = relay.module._relay.clock.now() + 16 * MINUTE
    assert relay.send(waking(payload("relay", "timer"), v=4, at=at)) == []
    assert sent(deployment) == []


def test_a_queue_that_refuses_is_asked_again_and_then_the_records_come_again(
    relay: Relay, deployment: Deployment, pauses: Pauses
) -> None:
    event = payload("relay", "batch")
    with relay.queue.answering("SendMessageBatch", lambda n: throttled() if n <= 3 else None):
        assert relay.send(event) == []
    assert len(sent(deployment)) == 2
    with relay.queue.answering("SendMessageBatch", lambda _: throttled()):
        again = relay.send(event)
    assert set(again) == {record["dynamodb"]["SequenceNumber"] for record in event["Records"]}
    assert sent(deployment) == []


def test_a_single_message_that_the_queue_refuses_brings_its_records_again(relay: Relay) -> None:
    event = payload("relay", "batch")
    numbers = {
        record["dynamodb"]["SequenceNumber"]
        for record in event["Records"]
        if record["dynamodb"]["Keys"]["pk"]["S"] == str(GRACE)
    }
    refused = {"Id": "1", "SenderFault": False, "Code": "InternalError"}
    with relay.queue.answering("SendMessageBatch", lambda _: (200, {"Successful": [], "Failed": [refused]})):
        assert set(relay.send(event)) == numbers


# ---- poison


def test_a_record_that_cannot_be_read_harms_neither_those_before_it_nor_those_behind(
    relay: Relay, deployment: Deployment
) -> None:
    """Delivered by the template's event source: with bisecting, partial failures, and an end to retries."""
    good, *poison = payload("relay", "poison")["Records"]
    behind = payload("relay", "batch")["Records"][-1]
    aside = deliver(relay, deployment, [good, *poison, behind])
    assert good["dynamodb"]["SequenceNumber"] not in aside
    assert {record["dynamodb"]["SequenceNumber"] for record in poison} <= set(aside)
    found = sent(deployment)
    assert message(ADA, 1) in found
    assert message(GRACE, 7) in found
    assert {letter["saga"] for letter in found} == {str(ADA), str(GRACE)}


def deliver(relay: Relay, deployment: Deployment, records: list[Record]) -> list[str]:
    """As the stream's event source does, without its pauses; the sequence numbers that it set aside."""
    aside: list[str] = []

    async def invoke(event: dict[str, Any]) -> InvocationResult:
        try:
            # In a thread: the handler has an event loop of its own.
            answer = await asyncio.to_thread(relay.module.handler, event, Context())
        except Exception as error:  # noqa: BLE001  # as Lambda: whatever it raises is a failed invocation
            return InvocationResult("r", "error", json.dumps({"errorMessage": str(error)}).encode())
        return InvocationResult("r", "ok", json.dumps(answer).encode())

    async def set_aside(
        shard: str, given: Sequence[Record], condition: str, request: str, tries: int
    ) -> None:
        aside.extend(record["dynamodb"]["SequenceNumber"] for record in given)

    async def at_once(_: float) -> None:
        return

    runner = BatchRunner(
        deployment.stream_source, invoke=invoke, set_aside=set_aside, sleep=at_once, now=lambda: _WRITTEN_S
    )
    asyncio.run(runner.run("shard", records))
    return aside


# ---- the end of a child becomes word to its parent

CHILD = """
name: child
nodes:
  say: {tool: trial.echo, with: {value: "${input.n}"}}
output: "${ctx.say.output}"
"""
NEWS = {"saga": str(ADA)}  # it knows no version
PARENT = """
name: parent
nodes:
  one: {workflow: child, with: {n: 1}}
  two: {workflow: child, with: {n: 2}}
output: ["${ctx.one.output}", "${ctx.two.output}"]
"""


def stream_of(deployment: Deployment, after: int = 0) -> list[Record]:
    """The records of the table's stream behind the first `after` that the relay's filter lets through."""
    streams = boto3.client("dynamodbstreams", region_name=REGION)
    arn = deployment.stream
    (shard,) = streams.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"]
    iterator = streams.get_shard_iterator(
        StreamArn=arn, ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON"
    )["ShardIterator"]
    found = [event_record(record, arn) for record in streams.get_records(ShardIterator=iterator)["Records"]]
    return [record for record in found if deployment.stream_source.filters.match(record)][after:]


def waiting_parent(worker: Worker, deployment: Deployment) -> list[Record]:
    """ADA waits for two children that have ended; the records of their ends."""
    begin(worker.engine, SagaRef("acme", "unused"), CHILD)
    begin(worker.engine, ADA, PARENT)
    worker.wake(ADA)
    known = len(stream_of(deployment))
    assert worker.wake(*(SagaRef("acme", f"{ADA.id}.0.{slot}") for slot in ("one", "two"))) == []
    ends = stream_of(deployment, known)
    named = [json.loads(record["dynamodb"]["NewImage"]["wake"]["S"])["parent"] for record in ends]
    assert named == [str(ADA)] * 2
    return ends


def reports_of(deployment: Deployment, after: int) -> list[ChildReported]:
    """Those in the one entry behind so many."""
    (entry, *_) = deployment.entries(ADA)[after:]
    assert entry.epoch > 0, "a worker of the parent puts it"
    return [event for event in entry.events if isinstance(event, ChildReported)]


def test_the_ends_of_two_children_wake_their_parent_once_which_puts_them_into_one_entry(
    relay: Relay, worker: Worker, deployment: Deployment
) -> None:
    ends = waiting_parent(worker, deployment)
    before = len(deployment.entries(ADA))

    with relay.table.watching("*") as requests:
        assert relay.send({"Records": ends}) == []
    assert [len(request.get("RequestItems", {}).get(deployment.table, ())) for request in requests] == [2, 0]
    assert len(deployment.entries(ADA)) == before, "the relay writes into no log"
    assert deployment.head(ADA).inbox == 1
    (wake,) = sent(deployment)
    assert wake == NEWS
    assert worker.send(batch(json.dumps(wake))) == []
    assert sorted(report.output.v for report in reports_of(deployment, before)) == [1, 2]
    assert (deployment.head(ADA).status, deployment.head(ADA).inbox) == ("completed", 0)

    assert relay.send({"Records": ends}) == []  # delivered again, when the parent has ended: nothing
    assert sent(deployment) == []
    assert deployment.head(ADA).inbox == 0


def test_the_ends_of_children_are_told_by_their_records_alone(
    relay: Relay, worker: Worker, deployment: Deployment
) -> None:
    waiting_parent(worker, deployment)
    event, before = payload("relay", "children"), len(deployment.entries(ADA))
    assert relay.send(event) == []
    assert relay.send(event) == []
    assert deployment.head(ADA).inbox == 2
    worker.wake(ADA)
    assert sorted(report.output.v for report in reports_of(deployment, before)) == [1, 2]


def test_a_parent_that_is_at_work_is_not_woken(relay: Relay, worker: Worker, deployment: Deployment) -> None:
    ends = waiting_parent(worker, deployment)
    head = deployment.head(ADA)
    worker.engine.log.take(ADA, "another", 1 << 41, head.epoch, 1 << 41)
    assert relay.send({"Records": ends}) == []
    assert (deployment.head(ADA).inbox, sent(deployment)) == (1, [])


def test_a_child_whose_parent_is_gone_is_no_poison(relay: Relay, deployment: Deployment) -> None:
    event = waking(payload("relay", "entry"), v=1, parent="T#acme#SAGA#gone", slot="one")
    assert relay.send(event) == []
    event = waking(payload("relay", "entry"), v=1, parent="nowhere", slot="one")
    assert relay.send(event) == []
    assert sent(deployment) == []


@pytest.mark.parametrize("operation", ["BatchWriteItem", "UpdateItem"])
def test_a_parent_that_cannot_be_told_now_is_told_when_the_record_comes_again(
    operation: str, relay: Relay, worker: Worker, deployment: Deployment, pauses: Pauses
) -> None:
    ends = waiting_parent(worker, deployment)
    event = {"Records": [payload("relay", "batch")["Records"][-1], *ends]}
    with relay.table.answering(operation, lambda _: throttled()):
        failed = relay.send(event)
    assert set(failed) == {record["dynamodb"]["SequenceNumber"] for record in ends}
    assert sent(deployment) == [message(GRACE, 7)]
    assert relay.send({"Records": ends}) == []
    assert sent(deployment) == [NEWS]


def test_a_parent_that_the_queue_does_not_take_is_told_once_more(
    relay: Relay, worker: Worker, deployment: Deployment, pauses: Pauses
) -> None:
    ends = waiting_parent(worker, deployment)
    with relay.queue.answering("SendMessageBatch", lambda _: throttled()):
        failed = relay.send({"Records": ends})
    assert set(failed) == {record["dynamodb"]["SequenceNumber"] for record in ends}
    assert relay.send({"Records": ends}) == []
    assert (deployment.head(ADA).inbox, sent(deployment)) == (2, [NEWS])
