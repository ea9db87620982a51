"""Contract of `Invoker`. Lambda is a stub that checks each request: nothing would run here."""

from __future__ import annotations

import json
from typing import Any

import pytest
from botocore.stub import Stubber

from baton.adapters.aws import Aws
from baton.adapters.memory.queues import MemoryInvoker
from baton.adapters.queues import LambdaInvoker
from baton.errors import StoreUnavailable, Throttled
from baton.ports import Message

WAKES = [Message(saga="T#acme#SAGA#dinner-1", v=7), Message(saga="T#acme#SAGA#dinner-2")]


def test_one_asynchronous_invocation_carries_all_wakes() -> None:
    client = Aws().lambda_
    sent: list[Any] = []
    client.meta.events.register(
        "provide-client-params.lambda.Invoke", lambda params, **_: sent.append(params.copy())
    )
    with Stubber(client) as lambda_:
        lambda_.add_response("invoke", {"StatusCode": 202})
        LambdaInvoker(client, "worker").invoke(WAKES)
        lambda_.assert_no_pending_responses()
    (request,) = sent
    assert (request["FunctionName"], request["InvocationType"]) == ("worker", "Event")
    assert json.loads(request["Payload"]) == {
        "wakes": [{"saga": "T#acme#SAGA#dinner-1", "v": 7}, {"saga": "T#acme#SAGA#dinner-2"}]
    }


def test_no_wakes_are_no_invocation() -> None:
    client = Aws().lambda_
    with Stubber(client):
        LambdaInvoker(client, "worker").invoke([])


@pytest.mark.parametrize(
    ("code", "status", "expected"),
    [("TooManyRequestsException", 429, Throttled), ("ServiceException", 500, StoreUnavailable)],
)
def test_a_refused_invocation_is_reported(code: str, status: int, expected: type[Exception]) -> None:
    client = Aws().lambda_
    with Stubber(client) as lambda_:
        lambda_.add_client_error("invoke", service_error_code=code, http_status_code=status)
        with pytest.raises(expected):
            LambdaInvoker(client, "worker").invoke(WAKES)


def test_in_memory_invocations_are_kept_until_they_are_drained() -> None:
    invoker = MemoryInvoker()
    invoker.invoke(WAKES)
    invoker.invoke([])
    invoker.invoke(WAKES[:1])
    assert invoker.drain() == [tuple(WAKES), (WAKES[0],)]
    assert invoker.drain() == []
