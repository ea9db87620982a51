"""The AWS clients and the translation of their errors. botocore is here, in aws.py and in aws_signer.py.

One `Aws` per process. Endpoint, region and credentials come from the ordinary AWS_* environment. What a
service is asked for is in the adapter of its technology, not here.
"""

from __future__ import annotations

import gc
import gzip
import platform
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar, cast

import botocore
import msgspec
from botocore import exceptions
from botocore.client import BaseClient
from botocore.config import Config
from botocore.loaders import JSONFileLoader, Loader
from botocore.session import Session

from baton.core.limits import LONGEST_INVOCATION_MS
from baton.errors import ChannelRefused, Forbidden, StoreUnavailable, Throttled

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_lambda import LambdaClient
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_sesv2 import SESV2Client
    from mypy_boto3_sns import SNSClient
    from mypy_boto3_sqs import SQSClient

# How a file's forms are named and unpacked, in botocore's order.
_FORMS: Mapping[str, Callable[[bytes], bytes]] = MappingProxyType(
    {".json": bytes, ".json.gz": gzip.decompress}
)


class _Files(JSONFileLoader):
    """Loader of botocore's data that takes a quarter of the time: ordinary dicts keep their order."""

    def load_file(self, file_path: str) -> object:
        for suffix, unpack in _FORMS.items():
            try:
                data = Path(file_path + suffix).read_bytes()
            except FileNotFoundError:
                continue
            return msgspec.json.decode(unpack(data))
        return None


class ServiceModels(Loader):
    """Loader of the descriptions of these services: botocore's own lists every service's folder, twice."""

    def __init__(self, *services: str) -> None:
        super().__init__(file_loader=_Files())
        self._services = sorted(services)

    def list_available_services(self, type_name: str) -> list[str]:
        return self._services


@contextmanager
def without_garbage_collection() -> Iterator[None]:
    """Keep the garbage collector off while ten thousand objects are made that all stay."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


# Answers that say: nothing was done, come back later.
_THROTTLED = frozenset({
    "ConditionalRequestConflict", "LimitExceededException", "OverLimit",
    "ProvisionedThroughputExceededException", "RequestLimitExceeded", "RequestThrottled",
    "RequestThrottledException", "SlowDown", "Throttling", "ThrottlingException",
    "TooManyRequestsException", "TransactionConflictException",
})  # fmt: skip
# DynamoDB's, and S3's. Of two conditional puts of an object at once S3 refuses one with a conflict, and it may come
# again: it is throttled.
_CONDITION_FAILED = frozenset({"ConditionalCheckFailedException", "PreconditionFailed"})
_CANCELLED_FOR_NOW = frozenset({"TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"})
_MISSING = "NoSuchKey"
_NO_FUNCTION = "ResourceNotFoundException"  # of a table or a secret it is a mistake of the deployment
_OF_FUNCTIONS = ("Invoke", "DeleteAlias", "DeleteFunction")
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
    """Error for a requested object or function that does not exist."""


@contextmanager
def translated(invalid: type[Exception] | None = None) -> Iterator[None]:
    """Turn botocore's errors into the ports'. What is neither a pause nor an outage stays as it is.

    `invalid` is what becomes of a request that no repetition makes valid, where the caller can do without it.
    """
    try:
        yield
    except exceptions.ClientError as error:
        # Not every answer carries every part: a proxy's 502 has no code, for one.
        response: Mapping[str, Any] = error.response
        code = response.get("Error", {}).get("Code", "")
        status = response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        if code in _CONDITION_FAILED:
            raise ConditionFailed(response.get("Item", {})) from error
        reasons = response.get("CancellationReasons", ()) if code == "TransactionCanceledException" else ()
        why = {reason.get("Code", "") for reason in reasons}
        if "ConditionalCheckFailed" in why:
            raise ConditionFailed({}) from error
        if why & _CANCELLED_FOR_NOW:
            raise Throttled(str(error)) from error
        if invalid is not None and (code == "ValidationException" or "ValidationError" in why):
            said = "; ".join(reason["Message"] for reason in reasons if reason.get("Message"))
            raise invalid(said or str(error)) from error
        if code == _MISSING or (code == _NO_FUNCTION and error.operation_name in _OF_FUNCTIONS):
            raise Missing(str(error)) from error
        if code in _THROTTLED or status == _TOO_MANY_REQUESTS:
            raise Throttled(str(error)) from error
        if status >= _SERVER_FAULT:
            raise StoreUnavailable(str(error)) from error
        raise
    except _NO_ANSWER as error:
        raise StoreUnavailable(str(error)) from error


@contextmanager
def refusals_are_outages(for_ever: Collection[str] = ()) -> Iterator[None]:
    """Translate as `translated`, and refusals as outages. Raises `ChannelRefused` for codes `for_ever`."""
    try:
        yield
    except exceptions.ClientError as error:
        refused = error.response.get("Error", {}).get("Code") in for_ever
        raise (ChannelRefused if refused else StoreUnavailable)(str(error)) from error


@contextmanager
def told_to_operators() -> Iterator[None]:
    """Turn whatever AWS refuses an operator's credentials, or their absence, into `Forbidden`."""
    try:
        yield
    except (exceptions.BotoCoreError, exceptions.ClientError, Missing) as error:
        raise Forbidden(str(error)) from error


# The user agent that AWS reads. Fixed, because botocore would put it together twice for every request,
# which is a tenth of what a request costs.
_USER_AGENT = f"Baton Botocore/{botocore.__version__} Python/{platform.python_version()}"


def _config(read_timeout_s: float) -> Config:
    """Return a configuration without botocore's retries, which would hide throttling from the runner."""
    return Config(
        retries={"total_max_attempts": 1, "mode": "standard"},
        connect_timeout=1,
        read_timeout=read_timeout_s,
        tcp_keepalive=True,
        max_pool_connections=50,
        user_agent=_USER_AGENT,
    )


# Each service with the seconds that an answer may take.
_READ_TIMEOUT_S = {
    "dynamodb": 5,
    "s3": 15,
    "s3vectors": 8,
    "sqs": 5,
    "sns": 5,
    "sesv2": 8,
    "events": 5,
    "lambda": 5,
    "ssm": 5,
    "secretsmanager": 5,
}


class Aws:
    """The clients of one process, each created when it is first asked for.

    They are what `boto3.client` gives; boto3 itself would only add the import of its resources and transfers.
    """

    def __init__(self, endpoint: str | None = None) -> None:
        self._endpoint = endpoint
        self._session = Session()
        self._session.register_component("data_loader", ServiceModels(*_READ_TIMEOUT_S))
        self._creating = threading.Lock()  # a session creates one client at a time
        self._clients: dict[str, BaseClient] = {}

    @property
    def dynamodb(self) -> DynamoDBClient:
        return cast("DynamoDBClient", self._client("dynamodb"))

    @property
    def s3(self) -> S3Client:
        return cast("S3Client", self._client("s3"))

    @property
    def s3vectors(self) -> Any:
        """Amazon S3 Vectors: the requests are those of adapters/facts.py."""
        return self._client("s3vectors")

    @property
    def sqs(self) -> SQSClient:
        return cast("SQSClient", self._client("sqs"))

    @property
    def sesv2(self) -> SESV2Client:
        return cast("SESV2Client", self._client("sesv2"))

    @property
    def events(self) -> Any:
        """EventBridge: what of it is used is described where it is used."""
        return self._client("events")

    @property
    def ssm(self) -> Any:
        return self._client("ssm")

    @property
    def secretsmanager(self) -> Any:
        return self._client("secretsmanager")

    @property
    def sns(self) -> SNSClient:
        return cast("SNSClient", self._client("sns"))

    @property
    def lambda_(self) -> LambdaClient:
        return cast("LambdaClient", self._client("lambda"))

    @property
    def patient_lambda(self) -> LambdaClient:
        """The same, for calls that wait until an invocation has ended."""
        return cast("LambdaClient", self._client("lambda", LONGEST_INVOCATION_MS / 1_000))

    def _client(self, service: str, read_timeout_s: float = 0) -> BaseClient:
        name, timeout_s = f"{service} {read_timeout_s}", read_timeout_s or _READ_TIMEOUT_S[service]
        with self._creating:
            if name not in self._clients:
                with without_garbage_collection():
                    self._clients[name] = self._session.create_client(
                        service, endpoint_url=self._endpoint, config=_config(timeout_s)
                    )
            return self._clients[name]


C = TypeVar("C")


class _Later:
    """Stands for a client until one of its methods is asked for."""

    def __init__(self, create: Callable[[], Any]) -> None:
        self._create = create

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._create(), name)
        setattr(self, name, found)  # asked once for each method
        return found


def later(create: Callable[[], C]) -> C:
    """Return a client that `create` makes at its first use: for a function that seldom needs it."""
    return cast("C", _Later(create))
