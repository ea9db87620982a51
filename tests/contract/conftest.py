"""The backends that every contract is held against: stores in this process, MiniStack where it is marked, and moto in `make soak`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

import boto3
import pytest
from moto import mock_aws

from baton.adapters.aws import Aws
from tests.contract.stores import REGION, AwsStores, LocalStores, MemoryStores, Stores
from tests.contract.toy_store import ToyStores
from tests.kit import ministack as kit
from tests.kit.quick_moto import hasten

if TYPE_CHECKING:
    from mypy_boto3_dynamodbstreams import DynamoDBStreamsClient

hasten()
LOCAL: dict[str, type[LocalStores]] = {"memory": MemoryStores, "toy": ToyStores}
MOTO = pytest.param("moto", marks=pytest.mark.soak)  # the functions of tests/handlers run on it
EMBEDDED = pytest.param("embedded", id="ministack", marks=pytest.mark.ministack)


@pytest.fixture(scope="module", autouse=True)
def _no_real_account() -> Iterator[None]:
    """Credentials that are worth nothing, and none of the machine's own settings."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("AWS_PROFILE", "AWS_ENDPOINT_URL", "AWS_SESSION_TOKEN"):
            patch.delenv(name, raising=False)
        patch.setenv("AWS_ACCESS_KEY_ID", "test")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "test")
        patch.setenv("AWS_DEFAULT_REGION", REGION)
        patch.setenv("AWS_CONFIG_FILE", "/dev/null")
        patch.setenv("NO_PROXY", "127.0.0.1")  # a proxy of the shell is not asked about loopback
        patch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        patch.setenv("AWS_ACCOUNT_ID_ENDPOINT_MODE", "disabled")  # moto answers no account's own endpoint
        yield


@pytest.fixture(scope="session")
def ministack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of an embedded AWS."""
    with kit.running(tmp_path_factory.mktemp("ministack")) as address:
        yield address


@cache
def _clients(address: str | None = None) -> tuple[Aws, DynamoDBStreamsClient]:
    """Clients cost more than moto's stores, which are made anew for each test."""
    return Aws(address), boto3.client("dynamodbstreams", endpoint_url=address)


@pytest.fixture(scope="module")
def shared_aws(_no_real_account: None) -> Aws:
    return _clients()[0]


@pytest.fixture
def moto_aws(shared_aws: Aws) -> Iterator[Aws]:
    with mock_aws():
        yield shared_aws


@pytest.fixture
def moto(moto_aws: Aws) -> Stores:
    return AwsStores(moto_aws, _clients()[1])


@pytest.fixture
def embedded(_no_real_account: None, ministack: str) -> Stores:
    return AwsStores(*_clients(ministack))


@pytest.fixture
def memory() -> Stores:
    return MemoryStores()


def _backend(request: pytest.FixtureRequest) -> Stores:
    if request.param in LOCAL:
        return LOCAL[request.param]()
    backend: Stores = request.getfixturevalue(request.param)
    return backend


@pytest.fixture(params=[*LOCAL, MOTO, EMBEDDED])
def stores(request: pytest.FixtureRequest) -> Stores:
    """Each backend in turn."""
    return _backend(request)


@pytest.fixture(params=["memory", MOTO, EMBEDDED])
def tables(request: pytest.FixtureRequest) -> Stores:
    """Those that size their items by DynamoDB's rule."""
    return _backend(request)


@pytest.fixture(params=[*LOCAL, EMBEDDED])
def concurrent_stores(request: pytest.FixtureRequest) -> Stores:
    """Without moto, whose conditional writes are not atomic under threads."""
    return _backend(request)
