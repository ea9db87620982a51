"""Each setting about dead letters changes what the reconciler does."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from tests.handlers.deployment import Deployment
from tests.handlers.test_reconciler import Reconciler

_numbers = itertools.count(1)


def queue(deployment: Deployment) -> str:
    """A queue besides those of the template."""
    return str(deployment.sqs.create_queue(QueueName=f"other-of-letters-{next(_numbers)}")["QueueUrl"])


def collected(deployment: Deployment, variable: str, *, is_set: bool) -> Any:
    """How many dead letters the reconciler finds, where one is in another queue than its own."""
    other = queue(deployment)
    deployment.sqs.send_message(QueueUrl=other, MessageBody="dead")
    changed = {variable: other} if is_set else {}
    with deployment.function("reconciler", **changed) as module:
        found = Reconciler(module).send({"task": "dead-letters"})
        module._loop.close()
    return found["dead_letters"]


@pytest.mark.parametrize(("is_set", "count"), [(False, 0), (True, 1)])
def test_dead_letter_url_of_the_reconciler(is_set: bool, count: int, deployment: Deployment) -> None:
    assert collected(deployment, "BATON_DEAD_LETTER_URL", is_set=is_set) == count


@pytest.mark.parametrize(("is_set", "count"), [(False, 0), (True, 1)])
def test_relay_failure_url(is_set: bool, count: int, deployment: Deployment) -> None:
    assert collected(deployment, "BATON_RELAY_FAILURE_URL", is_set=is_set) == count


def test_operator_tenant(deployment: Deployment) -> None:
    other = queue(deployment)
    deployment.sqs.send_message(QueueUrl=other, MessageBody="dead")
    changed = {"BATON_DEAD_LETTER_URL": other, "BATON_OPERATOR_TENANT": "ops"}
    with deployment.function("reconciler", **changed) as module:
        Reconciler(module).send({"task": "dead-letters"})
        letters, _ = module._letters._letters.listed("ops", "pending", 10)
        assert [letter.body for letter in letters] == ["dead"]
        module._loop.close()
