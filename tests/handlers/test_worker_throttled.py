"""A busy table: asked again with jitter inside the invocation's budget, beyond it the message comes again."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise

import pytest

from tests.handlers.deployment import Deployment, Interference, throttled
from tests.handlers.pauses import Pauses
from tests.handlers.sagas import ADA, ECHO, GRACE, begin
from tests.handlers.workers import Worker

PARAMETERS = {"AppModule": "tests.kit.app.trial", "ClockSkewMs": "100"}
FIRST_S = 0.020
BUDGET_MS = 15_000  # of each invocation, unless it is told otherwise


@pytest.fixture
def table(worker: Worker) -> Interference:
    begin(worker.engine, ADA, ECHO)
    return Interference(worker.engine.log._client)


def pauses(moments: Sequence[float]) -> list[float]:
    return [after - before for before, after in pairwise(moments)]


@pytest.mark.parametrize("operation", ["GetItem", "UpdateItem", "Query", "PutItem"])
def test_whatever_is_throttled_is_asked_again_and_the_saga_is_done_once(
    operation: str, table: Interference, worker: Worker, deployment: Deployment
) -> None:
    with table.answering(operation, lambda n: throttled() if n <= 4 else None) as moments:
        assert worker.wake(ADA) == []
    assert len(moments) >= 5
    assert deployment.head(ADA).status == "completed"
    assert [entry.version for entry in deployment.entries(ADA)] == [1, 2]


def test_pauses_grow_and_are_never_the_same_twice(
    table: Interference, worker: Worker, deployment: Deployment
) -> None:
    with table.answering("GetItem", lambda n: throttled() if n <= 5 else None) as moments:
        worker.wake(ADA)
    begin(worker.engine, GRACE, ECHO)
    with table.answering("GetItem", lambda n: throttled() if n <= 5 else None) as again:
        worker.wake(GRACE)
    for found in (pauses(moments), pauses(again)):
        ceilings = [FIRST_S * 2**index for index in range(5)]
        assert all(pause >= ceiling / 2 for pause, ceiling in zip(found, ceilings, strict=True))
    differences = [abs(a - b) for a, b in zip(pauses(moments), pauses(again), strict=True)]
    assert max(differences) > 0.005  # of up to 160 ms between them


def test_a_table_that_is_busy_for_longer_than_the_budget_gives_the_message_back_in_time(
    table: Interference, worker: Worker, deployment: Deployment, pauses: Pauses
) -> None:
    with table.answering("PutItem", lambda _: throttled()) as moments:
        assert worker.wake(ADA) == ["m0"]
    assert 5_000 < pauses.passed < BUDGET_MS
    assert len(moments) > 3
    assert deployment.dead_letters() == []
    assert [entry.version for entry in deployment.entries(ADA)] == [1]


def test_only_the_throttled_saga_of_a_batch_comes_again(
    table: Interference, worker: Worker, deployment: Deployment, pauses: Pauses
) -> None:
    begin(worker.engine, GRACE, ECHO)
    hooks = worker.engine.log._client.meta.events
    refusal = throttled()

    def throttle_ada(model: object, params: dict[str, object], **_: object) -> object:
        if ADA.id in json.dumps(params, default=str):
            return _Refused(refusal[0]), {**refusal[1], "ResponseMetadata": {"HTTPStatusCode": refusal[0]}}
        return None

    hooks.register_first("before-call.dynamodb.PutItem", throttle_ada)
    try:
        assert worker.wake(ADA, GRACE) == ["m0"]
    finally:
        hooks.unregister("before-call.dynamodb.PutItem", throttle_ada)
    assert deployment.head(GRACE).status == "completed"


class _Refused:
    def __init__(self, status_code: int) -> None:
        self.status_code = status_code


def kinds(deployment: Deployment) -> list[object]:
    return [e.__struct_config__.tag for entry in deployment.entries(ADA) for e in entry.events]


def test_a_saga_that_was_given_up_is_free_and_no_death_is_counted_against_it(
    table: Interference, worker: Worker, deployment: Deployment, pauses: Pauses
) -> None:
    with table.answering("PutItem", lambda _: throttled()):
        assert worker.wake(ADA) == ["m0"]
    head = deployment.head(ADA)
    assert head.owner == ""
    assert head.due_at is not None  # should the message be lost, too
    assert worker.wake(ADA) == []
    assert deployment.head(ADA).status == "completed"
    assert kinds(deployment) == ["saga_started", "step_succeeded", "saga_ended"]


def test_if_not_even_the_lease_can_be_given_back_it_runs_out_and_the_message_goes_on(
    table: Interference, worker: Worker, deployment: Deployment, pauses: Pauses
) -> None:
    with (
        table.answering("PutItem", lambda _: throttled()),
        table.answering("UpdateItem", lambda n: None if n == 1 else throttled()),
    ):
        assert worker.wake(ADA) == ["m0"]
    head = deployment.head(ADA)
    assert head.due_at == head.until + 100
    assert head.until > pauses.now
    assert worker.wake(ADA) == []  # too early: held
    assert kinds(deployment) == ["saga_started"]
    pauses.now = head.due_at + 1  # what the queue's visibility waits for
    assert worker.wake(ADA) == []
    assert deployment.head(ADA).status == "completed"
    assert kinds(deployment) == ["saga_started", "revived", "step_succeeded", "saga_ended"]


def test_an_answer_that_was_lost_is_no_second_step(
    table: Interference, worker: Worker, deployment: Deployment
) -> None:
    with table.losing("PutItem", 1):
        assert worker.wake(ADA) == []
    assert [entry.version for entry in deployment.entries(ADA)] == [1, 2]
    assert deployment.head(ADA).status == "completed"


def test_a_lost_answer_to_the_take_or_the_release_does_no_harm(
    table: Interference, worker: Worker, deployment: Deployment
) -> None:
    with table.losing("UpdateItem", 2):
        assert worker.wake(ADA) == []
    assert deployment.head(ADA).status == "completed"
    assert [entry.version for entry in deployment.entries(ADA)] == [1, 2]
