"""What this deployment asks for is within what Lambda takes; nothing here refuses what AWS would refuse.

The limits are Lambda's own (docs/aws-ledger.md); the template is the real one, with its defaults.
"""

from __future__ import annotations

from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from baton.local.functions import routes
from baton.local.sandbox import INIT_LIMIT_S
from tests.deploy.stack import FUNCTIONS, stack

MAX_ENVIRONMENT_BYTES = 4 * 1024
MAX_LAYERS = 5
MAX_TIMEOUT_S = 900
# A reference to a resource that exists only in the cloud is at most as long as this.
LONGEST_REFERENCE = "x" * 256


@pytest.mark.parametrize("function", FUNCTIONS)
def test_the_variables_of_a_function_fit_into_its_environment_with_room_for_ones_own(function: str) -> None:
    variables = stack().variables(function)
    size = sum(
        len(name) + max(len(value), len(LONGEST_REFERENCE) if value.startswith("http") else 0)
        for name, value in variables.items()
    )
    assert 0 < size < MAX_ENVIRONMENT_BYTES * 5 // 8


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_function_has_no_more_layers_and_no_more_time_than_lambda_gives(function: str) -> None:
    properties = stack().properties(FUNCTIONS[function])
    assert len(properties["Layers"]) <= MAX_LAYERS
    assert int(properties["Timeout"]) <= MAX_TIMEOUT_S


def test_lambda_accepts_the_visibility_of_the_queue_that_it_polls() -> None:
    timeout = int(stack().properties("WorkerFunction")["Timeout"])
    visibility = int(stack().properties("WakeQueue")["VisibilityTimeout"])
    assert visibility >= timeout, "refused when the event source mapping is created"


def test_a_delivery_may_take_seconds_before_its_wake_would_come_back_too_early() -> None:
    values = stack().parameters
    lease_s = (
        int(values["WorkerTimeout"]) + (int(values["LeaseGraceMs"]) + int(values["ClockSkewMs"])) / 1_000
    )
    visibility = int(stack().properties("WakeQueue")["VisibilityTimeout"])
    assert visibility - lease_s >= 3


def test_the_concurrency_of_the_queue_is_one_that_lambda_takes() -> None:
    parameter = stack().template.parameters["WorkerConcurrency"]
    assert (parameter["MinValue"], parameter["MaxValue"]) == (2, 1000)


def test_initialisation_here_is_given_no_less_time_than_by_lambda() -> None:
    assert INIT_LIMIT_S >= 10


def test_a_version_is_not_there() -> None:
    """So no worker is called with the newest code in place of the code that a saga stays with."""

    class Known:
        def find(self, name: str) -> object:
            return object()

    lambdas: Any = Known()
    http = TestClient(Starlette(routes=routes(lambdas, "key")))
    signed = {"authorization": "AWS4-HMAC-SHA256 Credential=key/20261129/us-east-1/lambda/aws4_request, a=b"}
    path = "/2015-03-31/functions/worker/invocations?Qualifier=build-1-2-3"
    answer = http.post(path, headers=signed | {"content-type": "application/json"}, content=b"{}")
    assert (answer.status_code, answer.headers["x-amzn-errortype"]) == (404, "ResourceNotFoundException")
