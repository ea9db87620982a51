"""Wakes whose saga another worker holds: which of them come again depends on how often they were delivered."""

from __future__ import annotations

from typing import Any

import pytest

from baton.ports import SagaRef
from tests.handlers.deployment import Deployment
from tests.handlers.sagas import ADA, GRACE, batch, begin, wake
from tests.handlers.workers import Worker

PARAMETERS = {"AppModule": "tests.kit.app.trial"}


def received(event: dict[str, Any], *counts: int) -> dict[str, Any]:
    """The event, with how often each of its messages was received."""
    for record, count in zip(event["Records"], counts, strict=True):
        record["attributes"]["ApproximateReceiveCount"] = str(count)
    return event


def hold(worker: Worker, ref: SagaRef) -> None:
    """Another worker takes the lease for the next minute."""
    begin(worker.engine, ref)
    now = worker.engine.clock.now()
    assert worker.engine.log.take(ref, "another", now + 60_000, 0, now + 63_000) is not None


@pytest.mark.parametrize(("count", "comes_again"), [(1, []), (2, ["m0"]), (3, ["m0"]), (4, []), (5, [])])
def test_a_wake_that_was_delivered_before_comes_again_while_its_deliveries_last(
    count: int, comes_again: list[str], worker: Worker, deployment: Deployment
) -> None:
    hold(worker, ADA)
    assert worker.send(received(batch(wake(ADA)), count)) == comes_again
    assert deployment.head(ADA).pending_wake == 1, "the holder is told either way"
    assert deployment.head(ADA).owner == "another"


def test_of_the_wakes_of_a_batch_only_those_come_again_that_have_a_reason_to(
    worker: Worker, deployment: Deployment
) -> None:
    hold(worker, ADA)
    begin(worker.engine, GRACE)
    event = received(batch(wake(ADA), wake(GRACE), wake(ADA)), 1, 2, 2)
    assert worker.send(event) == ["m2"]
    assert deployment.head(GRACE).status == "completed"
