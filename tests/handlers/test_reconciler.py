"""The reconciler function against every payload in events/reconciler: what is due, what soon, what is dead."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from baton.ports import TIMER, Head, SagaRef
from baton.ports.log import shard_of
from tests.handlers.deployment import (
    SHARDS,
    Context,
    Deployment,
    Interference,
    payload,
    payload_names,
    throttled,
)
from tests.handlers.workers import ACCEPTED
from tests.kit import emf

MINUTE = 60_000


class Reconciler:
    """`module` is the imported functions/reconciler/app.py."""

    def __init__(self, module: Any) -> None:
        self.module = module
        self.now: int = module._reconciler._clock.now()
        self.lambdas = Interference(module._reconciler._invoker._client)
        self.queue = Interference(module._reconciler._queue._client)
        self.table = Interference(module._reconciler._log._client)
        self.invoked: list[dict[str, Any]] = []

    def send(self, event: dict[str, Any]) -> Any:
        """Call the handler; Lambda accepts what it asks for, and starts nothing."""
        with (
            self.lambdas.watching("Invoke") as requests,
            self.lambdas.answering("Invoke", lambda _: (ACCEPTED, {"StatusCode": ACCEPTED})),
        ):
            answer = self.module.handler(event, Context(50_000))
        self.invoked = requests
        return json.loads(json.dumps(answer))

    def woken(self) -> list[list[str]]:
        """The sagas that the last call woke, by invocation."""
        return [[wake["saga"] for wake in json.loads(r["Payload"])["wakes"]] for r in self.invoked]


@pytest.fixture(scope="module")
def shared_module(shared_deployment: Deployment) -> Iterator[Any]:
    with shared_deployment.function("reconciler") as module:
        yield module
        module._loop.close()


@pytest.fixture
def reconciler(shared_module: Any, deployment: Deployment) -> Reconciler:
    return Reconciler(shared_module)


def saga_in(shard: int, skip: int = 0) -> SagaRef:
    """The id of some saga that belongs to a shard of the index."""
    found = [n for n in range(10_000) if shard_of(f"saga-{n}", SHARDS) == shard]
    return SagaRef("acme", f"saga-{found[skip]}")


def due(deployment: Deployment, ref: SagaRef, at: int | None) -> SagaRef:
    """A head that is due at a moment, or that has ended."""
    head = Head(
        ref=ref,
        workflow="w",
        graph="g",
        user="ada",
        created=1,
        start_hash="0",
        start=b"{}",
        due_at=at,
        lane=TIMER,
        status="running" if at is not None else "completed",
        group="open" if at is not None else "done",
    )
    assert deployment.log.create_head(head) is None
    return ref


def test_every_payload_has_a_test_of_its_own() -> None:
    assert payload_names("reconciler") == ["dead-letters", "poison", "shard"]


def test_what_is_due_is_woken_by_invoking_the_worker_directly(
    reconciler: Reconciler, deployment: Deployment
) -> None:
    shard = payload("reconciler", "shard")["shard"]
    late = due(deployment, saga_in(shard), reconciler.now - 1)
    due(deployment, saga_in(shard, 1), reconciler.now + 10 * MINUTE)
    due(deployment, saga_in(shard, 2), None)
    due(deployment, saga_in(shard + 1), reconciler.now - 1)
    answer = reconciler.send(payload("reconciler", "shard"))
    assert answer == {
        "shard": shard,
        "woken": 1,
        "timed": 0,
        "failed": 0,
        "more": False,
        "mended": 0,
        "found": 0,
    }
    (request,) = reconciler.invoked
    assert (request["FunctionName"], request["InvocationType"]) == ("baton-worker", "Event")
    assert json.loads(request["Payload"]) == {"wakes": [{"saga": str(late)}]}
    assert deployment.messages("WakeQueue") == []


def test_the_shards_together_wake_everything_that_is_due_once(
    reconciler: Reconciler, deployment: Deployment
) -> None:
    refs = [due(deployment, SagaRef("acme", f"saga-{n}"), reconciler.now - n) for n in range(12)]
    woken: list[str] = []
    for shard in range(SHARDS):
        reconciler.send({"shard": shard})
        woken += [saga for sagas in reconciler.woken() for saga in sagas]
    assert sorted(woken) == sorted(map(str, refs))


def test_an_invocation_is_asked_to_wake_no_more_than_a_batch(
    reconciler: Reconciler, deployment: Deployment
) -> None:
    for number in range(23):
        due(deployment, saga_in(0, number), reconciler.now - 1)
    assert reconciler.send({"shard": 0})["woken"] == 23
    assert [len(sagas) for sagas in reconciler.woken()] == [10, 10, 3]


@pytest.mark.parametrize("ahead_ms", [1_500, 58_000, 118_000])
def test_what_falls_due_before_the_next_run_is_a_message_with_the_exact_delay(
    ahead_ms: int, reconciler: Reconciler, deployment: Deployment
) -> None:
    now = reconciler.module._reconciler._clock.now()
    soon = due(deployment, saga_in(0), now + ahead_ms)
    with reconciler.queue.watching("SendMessageBatch") as requests:
        answer = reconciler.send({"shard": 0})
    assert (answer["woken"], answer["timed"]) == (0, 1)
    (entry,) = requests[0]["Entries"]
    assert json.loads(entry["MessageBody"]) == {"saga": str(soon)}
    late = now + entry["DelaySeconds"] * 1_000 - (now + ahead_ms)
    assert -1_000 <= late <= 1_000


def test_a_busy_index_is_left_to_the_state_machine_and_the_next_run(
    reconciler: Reconciler, deployment: Deployment
) -> None:
    late = due(deployment, saga_in(0), reconciler.now - 1)
    with (
        reconciler.table.answering("Query", lambda _: throttled()),
        pytest.raises(Exception, match="throughput"),
    ):
        reconciler.send({"shard": 0})
    reconciler.send({"shard": 0})
    assert reconciler.woken() == [[str(late)]]


def test_a_queue_that_refuses_keeps_nothing_that_is_overdue_from_being_woken(
    reconciler: Reconciler, deployment: Deployment, caplog: pytest.LogCaptureFixture
) -> None:
    late = due(deployment, saga_in(0), reconciler.now - 1)
    due(deployment, saga_in(0, 1), reconciler.now + MINUTE)
    with (
        caplog.at_level(logging.WARNING, logger="baton"),
        reconciler.queue.answering("SendMessageBatch", lambda _: throttled()),
    ):
        answer = reconciler.send({"shard": 0})
    assert answer == {"shard": 0, "woken": 1, "timed": 0, "failed": 1, "more": False, "mended": 0, "found": 0}
    assert reconciler.woken() == [[str(late)]]
    assert [record.levelname for record in caplog.records] == ["WARNING", "ERROR"]


def test_a_run_that_lambda_lets_wake_no_worker_fails_so_that_its_alarm_sees_it(
    reconciler: Reconciler, deployment: Deployment
) -> None:
    due(deployment, saga_in(0), reconciler.now - 1)
    with (
        reconciler.lambdas.answering("Invoke", lambda _: throttled()),
        pytest.raises(Exception, match="throughput"),
    ):
        reconciler.module.handler({"shard": 0}, Context())


def test_a_run_without_time_says_that_there_is_more(reconciler: Reconciler, deployment: Deployment) -> None:
    due(deployment, saga_in(0), reconciler.now - 1)
    with reconciler.lambdas.watching("Invoke") as requests:
        answer = reconciler.module.handler({"shard": 0}, Context(5_000))
    assert (answer["woken"], answer["failed"], answer["more"], requests) == (0, 0, True, [])


def test_where_nothing_is_dead_a_run_asks_for_two_counts_and_one_list(
    reconciler: Reconciler, caplog: pytest.LogCaptureFixture
) -> None:
    with (
        caplog.at_level(logging.ERROR, logger="baton"),
        reconciler.queue.watching("GetQueueAttributes") as counts,
        reconciler.queue.watching("ReceiveMessage") as received,
        reconciler.table.watching("Query") as queries,
        reconciler.table.watching("PutItem") as puts,
    ):
        answer = reconciler.send(payload("reconciler", "dead-letters"))
    assert answer == {"dead_letters": 0, "moved": 0, "oldest_s": 0, "failed": 0, "more": False}
    assert (len(counts), len(received), len(queries), len(puts)) == (2, 0, 1, 0)
    assert caplog.records == []


def test_dead_letters_are_moved_counted_said_aloud_and_written_as_figures(
    reconciler: Reconciler,
    deployment: Deployment,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for number in range(23):
        deployment.sqs.send_message(
            QueueUrl=deployment.url("WakeDeadLetterQueue"), MessageBody=f"letter {number}"
        )
    with caplog.at_level(logging.ERROR, logger="baton"):
        first = reconciler.send(payload("reconciler", "dead-letters"))
        again = reconciler.send(payload("reconciler", "dead-letters"))
    assert (first["dead_letters"], first["moved"]) == (23, 23)
    assert (again["dead_letters"], again["moved"]) == (0, 0), "no tenant sees them: they are said once"
    assert deployment.messages("WakeDeadLetterQueue") == []
    assert [record.dead_letters for record in caplog.records if hasattr(record, "dead_letters")] == [23]
    figures = emf.read(capsys.readouterr().out.splitlines())
    function = deployment.name("WorkerFunction")
    assert emf.total(figures, "DeadMessages", function=function) == 23
    assert emf.total(figures, "DeadLetters", function=function) == 23


def test_a_task_that_it_does_not_know_fails_and_wakes_no_worker(
    reconciler: Reconciler, deployment: Deployment
) -> None:
    due(deployment, saga_in(0), reconciler.now - 1)
    with pytest.raises((KeyError, ValueError)):
        reconciler.send(payload("reconciler", "poison"))
    assert reconciler.invoked == []
