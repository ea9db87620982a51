"""One deployment on moto for each module of tests, set back after each test, and its functions.

A module may set PARAMETERS, the template's parameters that it wants other than by default.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from moto import mock_aws

from tests.handlers.deployment import REGION, Deployment
from tests.handlers.http import Http
from tests.handlers.pauses import Pauses, skipped
from tests.handlers.workers import Worker
from tests.kit.quick_moto import hasten

hasten()


@pytest.fixture(scope="module", autouse=True)
def _no_real_account() -> Iterator[None]:
    """Credentials that are worth nothing, and none of the machine's own settings."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("AWS_PROFILE", "AWS_ENDPOINT_URL", "AWS_SESSION_TOKEN", "AWS_REGION"):
            patch.delenv(name, raising=False)
        patch.setenv("AWS_ACCESS_KEY_ID", "test")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "test")
        patch.setenv("AWS_DEFAULT_REGION", REGION)
        patch.setenv("AWS_CONFIG_FILE", "/dev/null")
        patch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        patch.setenv("AWS_ACCOUNT_ID_ENDPOINT_MODE", "disabled")
        yield


@pytest.fixture(scope="module")
def shared_deployment(request: pytest.FixtureRequest, _no_real_account: None) -> Iterator[Deployment]:
    with mock_aws():
        yield Deployment(getattr(request.module, "PARAMETERS", {}))


@pytest.fixture
def deployment(shared_deployment: Deployment) -> Iterator[Deployment]:
    yield shared_deployment
    shared_deployment.reset()


@pytest.fixture
def pauses() -> Iterator[Pauses]:
    """For tests of stores that stay busy: no pause takes time, and no time passes but in pauses."""
    with skipped() as pauses:
        yield pauses


@pytest.fixture(scope="module")
def shared_http(shared_deployment: Deployment) -> Iterator[Http]:
    with shared_deployment.function("api") as module:
        yield Http(module)
        module._api._loop.close()


@pytest.fixture
def http(shared_http: Http, deployment: Deployment) -> Http:
    """Calls of the api function."""
    return shared_http


@pytest.fixture(scope="module")
def shared_worker(shared_deployment: Deployment) -> Iterator[Worker]:
    with shared_deployment.function("worker") as module:
        yield Worker(module)
        module._loop.close()


@pytest.fixture
def worker(shared_worker: Worker, deployment: Deployment) -> Iterator[Worker]:
    """Calls of the worker function."""
    with shared_worker.without_lambda():
        yield shared_worker
