"""Contract of `Builds` and `DeployedBuilds`. Lambda is a stub that checks each request: nothing would run here."""

from __future__ import annotations

import asyncio
import io
import json
from typing import Any

import pytest
from botocore.exceptions import NoCredentialsError
from botocore.response import StreamingBody
from botocore.stub import Stubber

from baton.adapters.aws import Aws, told_to_operators
from baton.adapters.queues import LambdaBuilds, LambdaDeployedBuilds
from baton.errors import CodeGone, Forbidden, StoreUnavailable, Throttled
from baton.ports import CodeBuild, Message
from baton.runtime.invocation.context import inline

WAKES = [Message(saga="T#acme#SAGA#dinner-1", v=7), Message(saga="T#acme#SAGA#dinner-2")]
BUILD, ALIAS = "12.3.4", "build-12-3-4"


def body(answer: Any) -> StreamingBody:
    data = json.dumps(answer).encode()
    return StreamingBody(io.BytesIO(data), len(data))


def run(client: Any) -> Any:
    return asyncio.run(LambdaBuilds(client, "worker", inline).run(BUILD, WAKES, 90_000))


def test_one_invocation_carries_all_wakes_and_says_which_come_again() -> None:
    client = Aws().patient_lambda
    sent: list[Any] = []
    client.meta.events.register(
        "provide-client-params.lambda.Invoke", lambda params, **_: sent.append(params.copy())
    )
    answer = {"batchItemFailures": [{"itemIdentifier": "1"}]}
    with Stubber(client) as lambda_:
        lambda_.add_response("invoke", {"StatusCode": 200, "Payload": body(answer)})
        assert run(client) == [1]
    (request,) = sent
    assert (request["FunctionName"], request["Qualifier"]) == ("worker", ALIAS)
    assert json.loads(request["Payload"]) == {
        "wakes": [{"saga": "T#acme#SAGA#dinner-1", "v": 7}, {"saga": "T#acme#SAGA#dinner-2"}],
        "until": 90_000,
        "build": BUILD,
    }


def test_an_invocation_that_failed_is_a_fault() -> None:
    client = Aws().patient_lambda
    with Stubber(client) as lambda_:
        failed = {
            "StatusCode": 200,
            "FunctionError": "Unhandled",
            "Payload": body({"errorType": "MemoryError"}),
        }
        lambda_.add_response("invoke", failed)
        with pytest.raises(StoreUnavailable, match="MemoryError"):
            run(client)


@pytest.mark.parametrize(
    ("code", "status", "expected"),
    [
        ("ResourceNotFoundException", 404, CodeGone),
        ("TooManyRequestsException", 429, Throttled),
        ("ServiceException", 500, StoreUnavailable),
    ],
)
def test_a_refused_invocation_is_reported(code: str, status: int, expected: type[Exception]) -> None:
    client = Aws().patient_lambda
    with Stubber(client) as lambda_:
        lambda_.add_client_error("invoke", service_error_code=code, http_status_code=status)
        with pytest.raises(expected):
            run(client)


def test_it_waits_as_long_as_an_invocation_lasts() -> None:
    aws = Aws()
    patient, other = (vars(one.meta.config)["read_timeout"] for one in (aws.patient_lambda, aws.lambda_))
    assert (patient, other) == (900, 5)


def test_builds_are_the_aliases_of_their_versions_and_the_deployed_one_is_current() -> None:
    client = Aws().lambda_
    with Stubber(client) as lambda_:
        lambda_.add_response(
            "get_function_configuration",
            {
                "LastModified": "2026-11-29T12:00:00.000+0000",
                "Environment": {"Variables": {"BATON_BUILD": BUILD}},
            },
            {"FunctionName": "worker"},
        )
        aliases = [
            {"Name": "build-12-3-4", "FunctionVersion": "10"},
            {"Name": "build-12-3-3", "FunctionVersion": "9"},
            {"Name": "mine", "FunctionVersion": "1"},
        ]
        first = {"Aliases": aliases[:1], "NextMarker": "m"}
        lambda_.add_response("list_aliases", first, {"FunctionName": "worker"})
        rest = {"FunctionName": "worker", "Marker": "m"}
        lambda_.add_response("list_aliases", {"Aliases": aliases[1:]}, rest)
        assert LambdaDeployedBuilds(client, "worker").listed() == (
            [
                CodeBuild(build="12.3.3", version="9"),
                CodeBuild(build="12.3.4", version="10", is_current=True),
            ],
            1_795_953_600_000,
        )


@pytest.mark.parametrize("is_there", [True, False])
def test_a_build_is_deleted_with_its_alias_first(is_there: bool) -> None:
    client = Aws().lambda_
    with Stubber(client) as lambda_:
        lambda_.add_response("delete_alias", {}, {"FunctionName": "worker", "Name": ALIAS})
        if is_there:
            lambda_.add_response("delete_function", {}, {"FunctionName": "worker", "Qualifier": "10"})
        else:
            lambda_.add_client_error("delete_function", "ResourceNotFoundException", http_status_code=404)
        LambdaDeployedBuilds(client, "worker").delete(CodeBuild(build=BUILD, version="10"))
        lambda_.assert_no_pending_responses()


def test_an_operator_without_credentials_is_told_so() -> None:
    with pytest.raises(Forbidden, match="credentials"), told_to_operators():
        raise NoCredentialsError
