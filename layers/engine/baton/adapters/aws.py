"""The AWS clients and the translation of their errors: the only file that imports boto3 or botocore.

One `Aws` per process. Endpoint, region and credentials come from the ordinary AWS_* environment. What a
service is asked for is in the adapter of its technology, not here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any

import boto3
from botocore import exceptions
from botocore.config import Config

from baton.errors import StoreUnavailable, Throttled

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_lambda import LambdaClient
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_sqs import SQSClient

# Answers that say: nothing was done, come back later.
_THROTTLED = frozenset(
    {
        "LimitExceededException",
        "OverLimit",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "RequestThrottled",
        "RequestThrottledException",
        "SlowDown",
        "Throttling",
        "ThrottlingException",
        "TooManyRequestsException",
        "TransactionConflictException",
    }
)
_CANCELLED_FOR_NOW = frozenset({"TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"})
_TOO_MANY_REQUESTS = 429
_SERVER_FAULT = 500

# No answer, or one that cannot be read: what was asked may have been done.
_NO_ANSWER = (
    exceptions.HTTPClientError,
    exceptions.ConnectionError,
    exceptions.IncompleteReadError,
    exceptions.FlexibleChecksumError,
)


class ConditionFailed(Exception):
    """A conditional write was refused. `item` is what was there, where the request asked for it."""

    def __init__(self, item: Mapping[str, Any]) -> None:
        super().__init__("the condition of a write did not hold")
        self.item = item


class Missing(Exception):
    """The object that was asked for is not there."""


@contextmanager
def translated() -> Iterator[None]:
    """Turn botocore's errors into the ports'. What is neither a pause nor an outage stays as it is."""
    try:
        yield
    except exceptions.ClientError as error:
        # Not every answer carries every part: a proxy's 502 has no code, for one.
        response: Mapping[str, Any] = error.response
        code = response.get("Error", {}).get("Code", "")
        status = response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        if code == "ConditionalCheckFailedException":
            raise ConditionFailed(response.get("Item", {})) from error
        if code == "TransactionCanceledException":
            reasons = {reason.get("Code", "") for reason in response.get("CancellationReasons", ())}
            if "ConditionalCheckFailed" in reasons:
                raise ConditionFailed({}) from error
            if reasons & _CANCELLED_FOR_NOW:
                raise Throttled(str(error)) from error
        if code == "NoSuchKey":
            raise Missing(str(error)) from error
        if code in _THROTTLED or status == _TOO_MANY_REQUESTS:
            raise Throttled(str(error)) from error
        if status >= _SERVER_FAULT:
            raise StoreUnavailable(str(error)) from error
        raise
    except _NO_ANSWER as error:
        raise StoreUnavailable(str(error)) from error


def _config(read_timeout_s: float) -> Config:
    """No retries of botocore's own: they would sleep inside a call and hide throttling from the runner."""
    return Config(
        retries={"total_max_attempts": 1, "mode": "standard"},
        connect_timeout=1,
        read_timeout=read_timeout_s,
        tcp_keepalive=True,
        max_pool_connections=50,
    )


class Aws:
    """The clients of one process, each created when it is first used."""

    def __init__(self, endpoint: str | None = None) -> None:
        self._endpoint = endpoint
        self._session = boto3.Session()

    @cached_property
    def dynamodb(self) -> DynamoDBClient:
        return self._session.client("dynamodb", endpoint_url=self._endpoint, config=_config(5))

    @cached_property
    def s3(self) -> S3Client:
        return self._session.client("s3", endpoint_url=self._endpoint, config=_config(15))

    @cached_property
    def sqs(self) -> SQSClient:
        return self._session.client("sqs", endpoint_url=self._endpoint, config=_config(5))

    @cached_property
    def lambda_(self) -> LambdaClient:
        return self._session.client("lambda", endpoint_url=self._endpoint, config=_config(5))
